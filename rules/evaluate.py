"""From hits to findings: which rules hold on this bundle, on which lines, with which values."""

from __future__ import annotations

import fnmatch
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from rules import scan
from rules.expression import Expression, ExpressionError
from rules.model import Count, FactRow, Finding, Group, Hit, Leaf, MetricRow, Near, Node, Rule, RuleSet, Scope, Series
from rules.query import Tables
from rules.versions import check, satisfies

STEPS = 20_000
"""Lines tried for one rule before it is given up; a rule that needs more is named in the notes."""
SLACK = 2_000_000
"""Microseconds by which two clocks of one node may disagree."""

Binding = dict[str, Hit]


class Evidences(msgspec.Struct):
    """All a bundle shows, as the rules see it."""

    hits: list[Hit]
    """By leaf index of the scanner; in order of file and line."""
    counts: Mapping[int, int]
    """Leaf -> lines it matched on, also those not kept."""
    facts: Sequence[FactRow] = ()
    metrics: Sequence[MetricRow] = ()
    tables: Tables | None = None
    """What profiles hold; None where the bundle has none, and no query is run."""
    options: Mapping[str, Mapping[str, float | str]] = {}
    """Pack -> its options, for queries."""


class _TooMany(Exception):
    pass


def order(hit: Hit) -> tuple[int, int, int]:
    """Hits in time where times are known, else as they stand."""
    return (hit.ts if hit.ts is not None else 1 << 62, hit.file_id, hit.line_no)


class Evaluator:
    """Holds what all rules of one run share."""

    def __init__(self, leaves: Sequence[scan.LeafRef], evidences: Evidences) -> None:
        self.evidences = evidences
        self._index = {(ref.rule, ref.leaf.id): number for number, ref in enumerate(leaves)}
        self._hits: dict[int, list[Hit]] = {}
        for hit in sorted(evidences.hits, key=order):
            self._hits.setdefault(hit.leaf, []).append(hit)
        self.noise: set[tuple[int, int]] = set()
        """Lines taken out of the evidence: (file, line)."""
        self.exhausted: list[str] = []
        """Rules that ran out of steps."""
        self.failed: dict[str, str] = {}
        """Rules whose query failed, and why."""
        self.trouble = ""
        """Of the last query."""

    def findings(self, rules: RuleSet) -> list[Finding]:
        """All rules that hold. Noise rules are asked first, and their lines are then nobody's evidence."""
        for number, rule in enumerate(rules.rules):
            if rule.role == "noise" and (harmless := self.finding(number, rule)) is not None:
                self.noise.update((hit.file_id, hit.line_no) for hit in harmless.hits)
        asked = [(number, rule) for number, rule in enumerate(rules.rules) if rule.role not in ("noise", "check") and self._touched(number, rule)]
        return [found for number, rule in asked if (found := self.finding(number, rule)) is not None]

    def _touched(self, number: int, rule: Rule) -> bool:
        """Whether any line, fact or metric the rule looks for is there at all; most rules end here."""
        for leaf in scan.leaves_of(rule.match):
            if self.evidences.tables is not None if leaf.sql else not leaf.of_line or self._index.get((number, leaf.id)) in self._hits:
                return True
        return bool(rule.metrics)

    def finding(self, number: int, rule: Rule) -> Finding | None:
        """What rule `number` found, or None."""
        doubts, excluded = self._fits(rule)
        if excluded:
            return None
        search = _Search(self, number, rule)
        try:
            binding = search.first()
        except _TooMany:
            self.exhausted.append(rule.id)
            return None
        if binding is None or not all(self._series_holds(one) for one in rule.metrics):
            return None
        deciding = list({id(hit): hit for hit in binding.values()}.values())
        if not deciding:
            return None
        anchor = deciding[0]
        seen = {(hit.file_id, hit.line_no) for hit in deciding}
        further = [hit for hit in search.like(anchor) if (hit.file_id, hit.line_no) not in seen]
        times = [hit.ts for hit in deciding + further if hit.ts is not None]
        return Finding(
            rule=rule,
            hits=deciding + further,
            deciding=len(deciding),
            scope=_scope(deciding),
            first=min((hit.ts for hit in deciding if hit.ts is not None), default=None),
            last=max(times, default=None),
            occurrences=max(self.evidences.counts.get(anchor.leaf, 1) if anchor.leaf >= 0 else 1, 1 + len(further)),
            captures={name: hit.captures for name, hit in binding.items()},
            doubts=doubts,
        )

    def lines(self, number: int, rule: Rule, most: int) -> list[Hit]:
        """Every line, fact and number on which rule `number` holds, in the order they were found; at most `most`, and none twice."""
        search = _Search(self, number, rule)
        found: dict[tuple[int, int, str], Hit] = {}
        try:
            for binding in search.all():
                found.update(((hit.file_id, hit.line_no, hit.text), hit) for hit in binding.values())
                if len(found) >= most:
                    break
        except _TooMany:
            self.exhausted.append(rule.id)
        return list(found.values())[:most]

    # ------------------------------------------------------------ parts

    def candidates(self, number: int, leaf: Leaf, pack: str) -> list[Hit]:
        """The lines, facts, numbers or rows that one leaf of a rule of this pack can stand for; all but rows in time."""
        if leaf.fact:
            return [_fact_hit(row) for row in self.evidences.facts if fnmatch.fnmatchcase(row.name, leaf.fact)]
        if leaf.metric:
            return [_metric_hit(row) for row in self.evidences.metrics if fnmatch.fnmatchcase(row.name, leaf.metric)]
        if leaf.sql:
            return self._rows(leaf, pack)
        if leaf.mismatch:
            return [hit for hit in self._mismatches if fnmatch.fnmatchcase(hit.captures["name"], leaf.mismatch)]
        found = self._hits.get(self._index.get((number, leaf.id), -1), [])
        return [hit for hit in found if (hit.file_id, hit.line_no) not in self.noise and _admits(leaf, hit)]

    def _rows(self, leaf: Leaf, pack: str) -> list[Hit]:
        """The rows a query finds, in its own order, as lines."""
        if self.evidences.tables is None:
            return []
        answer = self.evidences.tables.ask(leaf.sql, self.evidences.options.get(pack, {}))
        self.trouble = answer.problem
        return [
            Hit(
                -1, row.file_id, row.file, row.line_no, -1, row.text, row.captures, "profile", "profile", row.ts, node=row.node, device=row.device,
                rank=row.rank, row=row.row_no,
            )
            for row in answer.rows
        ]  # fmt: skip

    @functools.cached_property
    def _mismatches(self) -> list[Hit]:
        """Versions of one node that contradict each other, each on the line of its left side."""
        nodes: dict[str, dict[str, FactRow]] = {}
        for row in self.evidences.facts:
            nodes.setdefault(row.node, {}).setdefault(row.name, row)
        hits = []
        for rows in nodes.values():
            for found in check({name: row.value for name, row in rows.items()}):
                captures = {
                    "name": found.relation,
                    "left": found.left.removesuffix(".version"),
                    "left_version": found.left_version,
                    "right": found.right.removesuffix(".version"),
                    "right_version": found.right_version,
                    "expected": found.expected.en,
                    "expected_zh": found.expected.zh,
                    "strength": found.strength,
                }
                at = rows.get(found.left) or rows.get(found.right)
                if at is not None:
                    hits.append(msgspec.structs.replace(_fact_hit(at), captures=captures))
        return hits

    def fact(self, name: str) -> str | None:
        for row in self.evidences.facts:
            if fnmatch.fnmatchcase(row.name, name):
                return row.value
        return None

    def metric(self, name: str, how: str) -> float | None:
        return _aggregate([row.value for row in self.evidences.metrics if fnmatch.fnmatchcase(row.name, name)]).get(how)

    def _series_holds(self, series: Series) -> bool:
        values = _aggregate([row.value for row in self.evidences.metrics if fnmatch.fnmatchcase(row.name, series.series)])
        try:
            return bool(values) and Expression(series.test, {}, frozenset(values)).holds(names=values)
        except ExpressionError:
            return False

    def _fits(self, rule: Rule) -> tuple[list[str], bool]:
        """Doubts, and whether the environment excludes the rule. What is unknown never excludes."""
        doubts = []
        for key, wanted in rule.applies_to.items():
            name = key if key in ("soc", "stack") or "." in key else f"{key}.version"
            have = self.fact(name)
            if have is None:
                if key != "stack":
                    doubts.append(f"{name} unknown")
                continue
            if isinstance(wanted, tuple):
                if not any(fnmatch.fnmatchcase(have.lower(), one.lower()) for one in wanted):
                    return doubts, True
            elif satisfies(have, wanted) is False:
                return doubts, True
        return doubts, False


class _Search:
    """Looks for lines that satisfy one rule together: earliest first, with a limit on the number of tries."""

    def __init__(self, evaluator: Evaluator, number: int, rule: Rule) -> None:
        self._evaluator, self._number, self._rule = evaluator, number, rule
        self._where = Expression(rule.where) if rule.where else None
        self._steps = 0
        self._pool: dict[str, list[Hit]] = {}

    def first(self) -> Binding | None:
        return next(self.all(), None)

    def all(self) -> Iterator[Binding]:
        """Every way in which the rule holds."""
        return (found for found in self._solve(self._rule.match, {}) if self._where is None or self._where.holds(_Names(self, found)))

    def like(self, anchor: Hit) -> list[Hit]:
        """Further lines of the pattern that `anchor` stands for."""
        return next((pool for pool in self._pool.values() if any(hit is anchor for hit in pool)), [])

    def pool(self, leaf: Leaf) -> list[Hit]:
        if leaf.id not in self._pool:
            self._pool[leaf.id] = self._evaluator.candidates(self._number, leaf, self._rule.pack)
            if leaf.sql and self._evaluator.trouble:
                self._evaluator.failed[self._rule.id] = self._evaluator.trouble
        return self._pool[leaf.id]

    def lines(self, leaf_id: str) -> int:
        leaf = next(leaf for leaf in scan.leaves_of(self._rule.match) if leaf.id == leaf_id)
        kept = self.pool(leaf)
        total = self._evaluator.evidences.counts.get(kept[0].leaf, 0) if kept and kept[0].leaf >= 0 else 0
        return max(len(kept), total if not (leaf.source or leaf.severity or leaf.module) else 0)

    def fact(self, name: str) -> str | None:
        return self._evaluator.fact(name)

    def metric(self, name: str, how: str) -> float | None:
        return self._evaluator.metric(name, how)

    def _solve(self, node: Node, bound: Binding) -> Iterator[Binding]:
        if isinstance(node, Leaf):
            yield from self._leaf(node, bound)
        elif isinstance(node, Count):
            yield from self._count(node, bound)
        elif node.op == "any":
            for item in node.items:
                yield from self._solve(item, bound)
        elif node.op == "none_of":
            if not any(next(self._solve(item, bound), None) is not None for item in node.items):
                yield bound
        else:
            items = sorted(node.items, key=_lateness) if node.op == "all" else list(node.items)
            for found in self._all(items, bound):
                if self._together(node, found):
                    yield found

    def _all(self, items: list[Node], bound: Binding) -> Iterator[Binding]:
        if not items:
            yield bound
            return
        for found in self._solve(items[0], bound):
            yield from self._all(items[1:], found)

    def _leaf(self, leaf: Leaf, bound: Binding) -> Iterator[Binding]:
        if leaf.optional:
            yield next(self._places(leaf, bound), bound)
        else:
            yield from self._places(leaf, bound)

    def _places(self, leaf: Leaf, bound: Binding) -> Iterator[Binding]:
        """The lines that a pattern can stand for beside those that are bound."""
        for hit in self.pool(leaf):
            self._steps += 1
            if self._steps > STEPS:
                raise _TooMany
            other = bound.get(leaf.near.of) if leaf.near else None
            if leaf.near is None or other is None or _close(hit, other, leaf.near):
                yield {**bound, leaf.id: hit}

    def _count(self, node: Count, bound: Binding) -> Iterator[Binding]:
        pool = self.pool(node.of)
        values = {_value(hit, node.distinct) for hit in pool} - {None, ""} if node.distinct else set()
        number = len(values) if node.distinct else self.lines(node.of.id) if pool else 0
        if node.min <= number and (node.max is None or number <= node.max):
            yield {**bound, node.of.id: pool[0]} if pool else bound

    def _together(self, group: Group, found: Binding) -> bool:
        names = [leaf.id for leaf in scan.leaves_of(group) if leaf.id in found]
        hits = [found[name] for name in names]
        if group.op == "sequence" and any(not _before(one, two) for one, two in itertools.pairwise(hits)):
            return False
        times = [hit.ts for hit in hits if hit.ts is not None]
        if group.within is not None and times and max(times) - min(times) > group.within * 1e6:
            return False
        return all(_same(one, two, group.same) for one, two in itertools.pairwise(hits))


class _Names:
    """The captures of one binding, for expressions."""

    def __init__(self, search: _Search, bound: Binding) -> None:
        self._search, self._bound = search, bound

    def capture(self, leaf: str, name: str) -> str | None:
        hit = self._bound.get(leaf)
        if hit is None:
            return None
        if name in hit.captures:
            return hit.captures[name]
        value = _value(hit, name)
        return None if value is None else str(value)

    def fact(self, name: str) -> str | None:
        return self._search.fact(name)

    def metric(self, name: str, how: str) -> float | None:
        return self._search.metric(name, how)

    def count(self, leaf: str) -> int:
        return self._search.lines(leaf)


# ---------------------------------------------------------------- relations between lines


def _lateness(node: Node) -> int:
    """Patterns that stand near another one are bound after it, then those that may be missing, exclusions last."""
    if isinstance(node, Group):
        return 3 if node.op == "none_of" else max((_lateness(item) for item in node.items), default=0)
    return (2 if node.optional else 1 if node.near else 0) if isinstance(node, Leaf) else 0


def _admits(leaf: Leaf, hit: Hit) -> bool:
    """Whether the line's source, severity and module are what the leaf asks for; what a line does not say is no obstacle."""
    if leaf.source and hit.kind not in leaf.source and hit.grammar not in leaf.source and hit.kind != "text":
        return False
    if leaf.severity and hit.severity and hit.severity not in leaf.severity and not (hit.severity == "FATAL" and "ERROR" in leaf.severity):
        return False
    return not (leaf.module and hit.module and hit.module not in leaf.module)


def _close(hit: Hit, other: Hit, near: Near) -> bool:
    if not _same(hit, other, near.same):
        return False
    if near.side and not (_before(hit, other) if near.side == "before" else _before(other, hit)):
        return False
    if near.lines is not None and (hit.file_id != other.file_id or abs(hit.line_no - other.line_no) > near.lines):
        return False
    return near.within is None or hit.ts is None or other.ts is None or abs(hit.ts - other.ts) <= near.within * 1e6


def _before(one: Hit, two: Hit) -> bool:
    if one.file_id == two.file_id:
        return one.line_no <= two.line_no
    return one.ts is None or two.ts is None or one.ts <= two.ts + SLACK


def _value(hit: Hit, name: str) -> object:
    if name in hit.captures:
        return hit.captures[name]
    return getattr(hit, {"file": "file_id"}.get(name, name), None)


def _same(one: Hit, two: Hit, scopes: Sequence[str]) -> bool:
    for scope in scopes:
        left, right = _value(one, scope), _value(two, scope)
        if left not in (None, "") and right not in (None, "") and left != right:
            return False
    return True


def _scope(hits: list[Hit]) -> Scope:
    """Node, device, rank and process of the first line that knows each."""

    def first(pick: Callable[[Hit], object]) -> object:
        return next((value for hit in hits if (value := pick(hit)) not in (None, "")), None)

    return Scope(
        node=str(first(lambda hit: hit.node) or ""),
        device=first(lambda hit: hit.device),  # type: ignore[arg-type]
        rank=first(lambda hit: hit.rank),  # type: ignore[arg-type]
        pid=first(lambda hit: hit.pid),  # type: ignore[arg-type]
    )


def _fact_hit(row: FactRow) -> Hit:
    text, captures = row.text or f"{row.name} = {row.value}", {"value": row.value, "name": row.name}
    return Hit(-1, row.file_id, row.file, row.line_no, -1, text, captures, "environment", node=row.node, device=row.device)


def _metric_hit(row: MetricRow) -> Hit:
    captures = {"value": f"{row.value:g}" if abs(row.value) < 1e6 else repr(row.value), "label": row.label, "name": row.name}
    if row.device is not None:
        captures["device"] = str(row.device)
    text = row.text or f"{f'{row.name} {row.label}'.rstrip()} = {row.value:g}{row.unit}"
    return Hit(-1, row.file_id, row.file, row.line_no, -1, text, captures, "npu-smi", ts=row.ts, node=row.node, device=row.device)


def _aggregate(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    return {
        "min": min(values),
        "max": max(values),
        "mean": sum(values) / len(values),
        "first": values[0],
        "last": values[-1],
        "count": float(len(values)),
        "spread": max(values) - min(values),
    }
