"""One rule read from its YAML: every field checked, every mistake located, all of them collected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from rules import model, query, scan, yaml_text
from rules.expression import Expression, ExpressionError
from rules.model import Count, Examples, Explains, Group, Leaf, Near, Node, Problem, Reference, Replay, Rule, Series, Text
from rules.taxonomy import ROOT_CAUSES

ID = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*\Z")
_DURATION = re.compile(r"(?P<n>\d+(?:\.\d+)?)\s*(?P<unit>us|ms|s|m|h|)\Z")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_SERIES = frozenset({"min", "max", "mean", "first", "last", "count", "spread"})
RULE_KEYS = (
    "id", "root_cause", "title", "layer", "severity", "provenance", "strength", "role", "applies_to", "match", "where", "metrics",
    "explains", "action", "remedy", "references", "note", "replay", "examples",
)  # fmt: skip
_LEAF_KEYS = (
    "id", "contains", "regex", "code", "fact", "metric", "mismatch", "sql", "not_contains", "ignore_case", "source", "severity", "module", "near",
    "optional",
)  # fmt: skip
MATCHERS = ("contains", "regex", "code", "fact", "metric", "mismatch", "sql")
GROUPS = ("all", "any", "none_of", "sequence")
SOURCES = (
    "plog", "device", "device-os", "firmware", "bbox", "kernel", "console", "mindie", "npu-smi", "hccn-tool", "environment", "cluster",
    "bmc", "profile", "metrics", "text",
)  # fmt: skip


class _Bad(Exception):
    def __init__(self, message: str, at: tuple[int, int]) -> None:
        super().__init__(message)
        self.at = at


def read_rule(item: Any, file: str, at: tuple[int, int], pack: str = "") -> tuple[Rule | None, list[Problem]]:
    """One rule from its YAML, with all that is wrong with it. None where it cannot run."""
    if not isinstance(item, yaml_text.Mapping):
        return None, [Problem(file, *at, "a rule is a mapping that starts with `id:`; found " + type(item).__name__)]
    reader = _Reader(item, file, pack)
    return reader.rule(), reader.problems


class _Reader:
    """Reads one rule, collecting problems instead of stopping at the first."""

    def __init__(self, item: yaml_text.Mapping, file: str, pack: str) -> None:
        self.item, self.file, self.pack = item, file, pack
        self.problems: list[Problem] = []
        self.fatal = False
        self._leaf_number = 0

    def bad(self, message: str, at: tuple[int, int], level: str = "error") -> None:
        name = self.item.get("id") if isinstance(self.item.get("id"), str) else "rule"
        self.problems.append(Problem(self.file, *at, f"{str(name)[:80]}: {message}", level))
        self.fatal |= level == "error"

    def at(self, key: str) -> tuple[int, int]:
        return self.item.at.get(key, (self.item.line, self.item.column))

    def rule(self) -> Rule | None:
        item = self.item
        for key in item:
            if key not in RULE_KEYS:
                self.bad(f"there is no field {key!r}{_suggest(key, RULE_KEYS)}", self.at(key))
        ident = item.get("id")
        if not isinstance(ident, str) or not ID.match(ident) or len(ident) > 120:
            self.bad("`id` must be lower-case words joined by dots or dashes, such as hccl.link.timeout", self.at("id"))
            ident = "unnamed"
        match = self._guard(lambda: self._match(item.get("match")))
        leaves = {} if match is None else {leaf.id: captures_of(leaf) for leaf in scan.leaves_of(match)}
        if match is not None:
            self._check_near(match)
        where = self._text("where", "") or ""
        if where or "where" in item:
            try:
                known = {name: captures | {"ts"} for name, captures in leaves.items()}  # every line may carry its time
                Expression(str(item.get("where") if item.get("where") is not None else ""), known)
            except ExpressionError as error:
                line, column = self.at("where")
                self.bad(f"where: {error}", (line, column))
        metrics = self._metrics()
        title = self._both("title")
        built = {
            "id": ident,
            "root_cause": self._root_cause(),
            "title": title,
            "layer": self._choice("layer", model.LAYERS),
            "severity": self._choice("severity", model.SEVERITIES),
            "provenance": self._choice("provenance", model.PROVENANCES, "field"),
            "strength": self._choice("strength", model.STRENGTHS, "moderate"),
            "role": self._choice("role", model.ROLES, "cause"),
            "action": self._choice("action", model.ACTIONS, "investigate"),
            "match": match,
            "where": where,
            "metrics": metrics,
            "applies_to": self._applies_to(),
            "explains": self._explains(),
            "remedy": self._remedy(),
            "references": self._references(),
            "note": self._both("note") if "note" in item else None,
            "replay": self._replay(),
            "examples": self._examples(),
            "pack": self.pack,
            "file": self.file,
            "line": item.line,
        }
        if self.fatal or match is None or title is None:
            return None
        return Rule(**built)

    # ------------------------------------------------------------ fields

    def _guard(self, read: Any) -> Any:
        try:
            return read()
        except _Bad as error:
            self.bad(str(error), error.at)
            return None

    def _text(self, key: str, default: str | None) -> str | None:
        value = self.item.get(key, default)
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None or isinstance(value, (str, int, float)):
            return None if value is None else str(value)
        self.bad(f"`{key}` must be a text", self.at(key))
        return default

    def _choice(self, key: str, allowed: Sequence[str], default: str | None = None) -> str:
        value = self.item.get(key, default)
        if value not in allowed if isinstance(value, str) else True:
            self.bad(f"`{key}` must be one of {', '.join(allowed)}; found {str(value)[:40]!r}", self.at(key))
            return allowed[0]
        return str(value)

    def _root_cause(self) -> str:
        value = self.item.get("root_cause")
        if not isinstance(value, str) or not ID.match(value):
            self.bad("`root_cause` must be a slug such as hbm-oom", self.at("root_cause"))
            return "unknown"
        if value not in ROOT_CAUSES:
            self.bad(f"the root cause {value!r} is not in the list{_suggest(value, ROOT_CAUSES)}", self.at("root_cause"), "warning")
        return value

    def _both(self, key: str) -> Text | None:
        value = self.item.get(key)
        if isinstance(value, yaml_text.Mapping):
            texts = [str(value.get(lang) if isinstance(value.get(lang), str) else "").strip() for lang in ("en", "zh")]
            if all(texts):
                return Text(texts[0], texts[1])
        self.bad(f"`{key}` needs a text in both languages: {{en: ..., zh: ...}}", self.at(key))
        return None

    def _strings(self, value: Any, what: str, at: tuple[int, int]) -> tuple[str, ...]:
        if value is None:
            return ()
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(one, (str, int, float)) and not isinstance(one, bool) for one in items):
            raise _Bad(f"{what} must be a text or a list of texts", at)
        return tuple(str(one) for one in items)

    def _remedy(self) -> dict[str, tuple[str, ...]]:
        value = self.item.get("remedy")
        if value is None:
            return {}
        if not isinstance(value, yaml_text.Mapping) or set(value) != {"en", "zh"}:
            self.bad("`remedy` needs both languages: {en: [...], zh: [...]}", self.at("remedy"))
            return {}
        return {lang: self._guard(lambda lang=lang: self._strings(value[lang], f"remedy.{lang}", self.at("remedy"))) or () for lang in ("en", "zh")}

    def _references(self) -> tuple[Reference, ...]:
        value = self.item.get("references") or []
        out = []
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                out.append(Reference(one))
            elif isinstance(one, yaml_text.Mapping) and isinstance(one.get("title"), str):
                out.append(Reference(one["title"], str(one.get("id") or "")))
            else:
                self.bad("`references` holds texts or {title: ..., id: ...}", self.at("references"))
        return tuple(out)

    def _applies_to(self) -> dict[str, str | tuple[str, ...]]:
        value = self.item.get("applies_to")
        if value is None:
            return {}
        if not isinstance(value, yaml_text.Mapping):
            self.bad("`applies_to` is a mapping such as {cann: '>=8.0'}", self.at("applies_to"))
            return {}
        out: dict[str, str | tuple[str, ...]] = {}
        for key, one in value.items():
            texts = self._guard(lambda one=one: self._strings(one, "applies_to", self.at("applies_to"))) or ()
            out[key] = texts if isinstance(one, list) else "".join(texts)
        return out

    def _metrics(self) -> tuple[Series, ...]:
        out = []
        value = self.item.get("metrics") or []
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, yaml_text.Mapping) or not isinstance(one.get("series"), str) or not isinstance(one.get("test"), str):
                self.bad("`metrics` holds {series: npu.hbm.usage, test: 'max > 85'}", self.at("metrics"))
                continue
            try:
                Expression(one["test"], {}, _SERIES)
            except ExpressionError as error:
                self.bad(f"metrics: {error}", self.at("metrics"))
                continue
            out.append(Series(one["series"], one["test"]))
        return tuple(out)

    def _explains(self) -> tuple[Explains, ...]:
        out = []
        value = self.item.get("explains") or []
        for one in value if isinstance(value, list) else [value]:
            target = one.get("rule") if isinstance(one, yaml_text.Mapping) else one
            if not isinstance(target, str):
                self.bad("`explains` holds {rule: an id or glob, same: [pid], within: 10s}", self.at("explains"))
                continue
            same, within = (one.get("same"), one.get("within")) if isinstance(one, yaml_text.Mapping) else (None, None)
            out.append(Explains(target, self._scopes(same, self.at("explains")), self._duration(within, self.at("explains"))))
        return tuple(out)

    def _replay(self) -> Replay | None:
        value = self.item.get("replay")
        if value is None:
            return None
        params = value.get("params") if isinstance(value, yaml_text.Mapping) else None
        if not isinstance(value, yaml_text.Mapping) or not isinstance(value.get("kernel"), str) or not isinstance(params or {}, dict):
            self.bad("`replay` is {kernel: name, params: {...}}", self.at("replay"))
            return None
        clean = {key: one for key, one in (params or {}).items() if isinstance(one, (str, int, float, bool))}
        return Replay(value["kernel"], clean)

    def _examples(self) -> Examples:
        value = self.item.get("examples")
        if value is None:
            return Examples()
        if not isinstance(value, yaml_text.Mapping) or not set(value) <= {"match", "no_match"}:
            self.bad("`examples` holds `match` and `no_match`, each a list of texts", self.at("examples"))
            return Examples()
        read = {
            key: self._guard(lambda key=key: self._strings(value.get(key), f"examples.{key}", self.at("examples"))) or ()
            for key in ("match", "no_match")
        }
        return Examples(read["match"], read["no_match"])

    # ------------------------------------------------------------ match

    def _match(self, value: Any) -> Node:
        at = self.at("match")
        if isinstance(value, yaml_text.Mapping):
            return self._node(value, at, 0)
        if isinstance(value, yaml_text.Sequence) and value:
            return Group("all", tuple(self._node(one, place, 0) for one, place in zip(value, value.at, strict=True)))
        raise _Bad("`match` needs a pattern: {contains: ...}, {regex: ...}, {code: ...}, or all/any/none_of/sequence/count of them", at)

    def _node(self, value: Any, at: tuple[int, int], depth: int) -> Node:
        if depth > 8:
            raise _Bad("`match` is nested more than 8 deep", at)
        if not isinstance(value, yaml_text.Mapping):
            raise _Bad("a part of `match` must be a mapping such as {contains: text}", at)
        at = (value.line, value.column)
        groups = [key for key in GROUPS if key in value]
        if groups and any(key in value for key in MATCHERS):
            raise _Bad(f"{groups[0]} cannot stand beside {', '.join(k for k in MATCHERS if k in value)}; nest them", at)
        if len(groups) > 1 or (groups and "none_of" in value and len(groups) > 1):
            rest = [self._group(key, value, at, depth) for key in groups]
            return Group("all", tuple(rest), self._duration(value.get("within"), at), self._scopes(value.get("same"), at))
        if groups:
            return self._group(groups[0], value, at, depth)
        if "count" in value:
            return self._count(value["count"], at)
        return self._leaf(value, at)

    def _group(self, key: str, value: yaml_text.Mapping, at: tuple[int, int], depth: int) -> Group:
        items = value[key]
        if isinstance(items, yaml_text.Mapping):
            items = yaml_text.Sequence(items.line, items.column)
            items.append(value[key])
            items.at.append(at)
        if not isinstance(items, yaml_text.Sequence) or not items:
            raise _Bad(f"`{key}` needs a list of patterns", at)
        unknown = set(value) - set(GROUPS) - {"within", "same", "id"}
        if unknown:
            raise _Bad(f"there is no field {min(unknown)!r} beside `{key}`", at)
        nodes = tuple(self._node(one, place, depth + 1) for one, place in zip(items, items.at, strict=True))
        within, same = self._duration(value.get("within"), at), self._scopes(value.get("same"), at)
        return Group(key, nodes, within, same)  # type: ignore[arg-type]

    def _count(self, value: Any, at: tuple[int, int]) -> Count:
        if not isinstance(value, yaml_text.Mapping) or not isinstance(value.get("of"), yaml_text.Mapping):
            raise _Bad("`count` is {of: {contains: ...}, min: 3, distinct: rank}", at)
        low, high, distinct = value.get("min", 1), value.get("max"), value.get("distinct", "")
        if not isinstance(low, int) or not (high is None or isinstance(high, int)) or not isinstance(distinct, str):
            raise _Bad("`count` takes whole numbers for min and max and a name for distinct", at)
        return Count(self._leaf(value["of"], at), low, high, distinct)

    def _leaf(self, value: yaml_text.Mapping, at: tuple[int, int]) -> Leaf:
        for key in value:
            if key not in _LEAF_KEYS:
                raise _Bad(f"there is no field {key!r} in a pattern{_suggest(key, _LEAF_KEYS + GROUPS)}", value.at.get(key, at))
        given = [key for key in MATCHERS if value.get(key) is not None]
        if len(given) != 1:
            raise _Bad(f"a pattern has exactly one of {', '.join(MATCHERS)}; found {', '.join(given) or 'none'}", at)
        self._leaf_number += 1
        ident = value.get("id") or f"m{self._leaf_number}"
        if not isinstance(ident, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", ident):
            raise _Bad("the id of a pattern is a lower-case word such as `dims`", at)
        contains = self._strings(value.get("contains"), "contains", at)
        if given == ["contains"] and (not contains or not all(word.strip() for word in contains)):
            raise _Bad("`contains` is empty, so it would match everything; give it a text", at)
        if given == ["contains"] and max(map(len, contains)) < 3:
            raise _Bad("`contains` needs a text of at least 3 characters", at)
        ignore = value.get("ignore_case", False)
        if not isinstance(ignore, bool):
            raise _Bad("`ignore_case` is true or false", at)
        optional = value.get("optional", False)
        if not isinstance(optional, bool):
            raise _Bad("`optional` is true or false", at)
        source = self._strings(value.get("source"), "source", at)
        for one in source:
            if one not in SOURCES:
                raise _Bad(f"there is no source {one!r}{_suggest(one, SOURCES)}; known are {', '.join(SOURCES)}", at)
        for key in ("regex", "fact", "metric", "mismatch", "sql"):
            if value.get(key) is not None and not isinstance(value[key], str):
                raise _Bad(f"`{key}` must be a text", at)
        if given[0] != "contains" and not str(value[given[0]]).strip("[] "):
            raise _Bad(f"`{given[0]}` is empty, so it would match everything; give it a text", at)
        if len(value.get("regex") or "") > 4000:
            raise _Bad("the regex is longer than 4000 characters", at)
        if given == ["sql"] and (wrong := query.problem(value["sql"])):
            raise _Bad(f"sql: {wrong}", value.at.get("sql", at))
        refused = self._strings(value.get("not_contains"), "not_contains", at)
        return Leaf(
            id=ident,
            contains=tuple(word.lower() for word in contains) if ignore else contains,
            regex=value.get("regex") or "",
            codes=self._strings(value.get("code"), "code", at),
            fact=value.get("fact") or "",
            metric=value.get("metric") or "",
            mismatch=value.get("mismatch") or "",
            sql=(value.get("sql") or "").strip(),
            not_contains=tuple(word.lower() for word in refused) if ignore else refused,
            ignore_case=ignore,
            source=source,
            severity=tuple(word.upper() for word in self._strings(value.get("severity"), "severity", at)),
            module=self._strings(value.get("module"), "module", at),
            near=self._near(value.get("near"), at),
            optional=optional,
        )

    def _near(self, value: Any, at: tuple[int, int]) -> Near | None:
        if value is None:
            return None
        if not isinstance(value, yaml_text.Mapping) or not isinstance(value.get("of"), str) or set(value) - {"of", "within", "lines", "same", "side"}:
            raise _Bad("`near` is {of: id of another pattern, within: 2s, lines: 20, same: [pid], side: after}", at)
        lines = value.get("lines")
        if lines is not None and not isinstance(lines, int):
            raise _Bad("`lines` is a whole number", at)
        side = value.get("side", "")
        if side not in ("", "before", "after"):
            raise _Bad("`side` is before or after: where this line stands, seen from the other one", at)
        return Near(value["of"], self._duration(value.get("within"), at), lines, self._scopes(value.get("same"), at), side)

    def _check_near(self, match: Node) -> None:
        leaves = scan.leaves_of(match)
        if all(leaf.optional for leaf in leaves):
            self.bad("all patterns are optional, so the rule would hold on everything; at least one must be there", self.at("match"))
        names = [leaf.id for leaf in leaves]
        for leaf in leaves:
            if names.count(leaf.id) > 1:
                self.bad(f"two patterns have the id {leaf.id!r}", self.at("match"))
                return
            if leaf.near and (leaf.near.of not in names or leaf.near.of == leaf.id):
                self.bad(f"`near` of {leaf.id!r} names {leaf.near.of!r}, which is no other pattern of this rule", self.at("match"))

    def _scopes(self, value: Any, at: tuple[int, int]) -> tuple[str, ...]:
        scopes = self._strings(value, "same", at)
        for scope in scopes:
            if scope not in model.SCOPES:
                raise _Bad(f"`same` takes {', '.join(model.SCOPES)}; found {scope!r}", at)
        return scopes

    def _duration(self, value: Any, at: tuple[int, int]) -> float | None:
        if value is None:
            return None
        found = _DURATION.match(str(value)) if isinstance(value, (str, int, float)) and len(str(value)) < 20 else None
        if found is None:
            raise _Bad("`within` is a time such as 500ms, 2s, 10m", at)
        return float(found["n"]) * _UNITS[found["unit"]]


def captures_of(leaf: Leaf) -> frozenset[str]:
    if leaf.fact:
        return frozenset({"value", "name"})
    if leaf.metric:
        return frozenset({"value", "label", "device", "name"})
    if leaf.sql:
        return frozenset(re.findall(r"[a-z_][a-z0-9_]*", leaf.sql))
    if leaf.mismatch:
        return frozenset({"name", "left", "left_version", "right", "right_version", "expected", "expected_zh", "strength"})
    return frozenset(re.findall(r"\(\?P<(\w+)>", leaf.regex)) | {"text", "pid", "device", "rank", "node", "ts"}


def _suggest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(word)[:60], list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
