"""Tools for people who write rules: `dsforensics rules list, show, search, lint, test, schema`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence

import msgspec

from rules import query, reader, scan
from rules.diagnose import Conclusion, diagnose
from rules.model import Hit, Problem, Rule, RuleSet


class Trial(msgspec.Struct, frozen=True):
    """One example that did not do what its rule promises."""

    rule: str
    file: str
    line: int
    message: str
    example: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.message}: {' '.join(self.example.split())[:160]}"


def hits_of(scanner: scan.Scanner, text: str, file_id: int = 0) -> tuple[list[Hit], dict[int, int]]:
    """What a small text shows, without any knowledge of its format: every source and time fits."""
    data = text.encode() + b"\n"
    found = scanner.scan(data, len(data))
    hits = [
        Hit(one.leaf, file_id, "example", one.line + 1, one.start, scan.line_text(data, one.start, one.end), one.captures)
        for one in found.hits
        if one.leaf >= 0
    ]
    return hits, found.counts


def fires(scanner: scan.Scanner, rules: RuleSet, text: str) -> Conclusion:
    """All rules that hold on an example; `query.example` says how it writes tables."""
    hits, counts = hits_of(scanner, text)
    return diagnose(rules, scanner.leaves, hits, counts, tables=query.example(text))


def trials(rules: RuleSet, only: Sequence[Rule] | None = None) -> Iterator[Trial]:
    """Every example on which its rule does not fire, every near miss on which it does, every example whose line another rule takes as noise."""
    scanner = scan.Scanner.load(rules)
    for rule in only if only is not None else rules.rules:
        if not rule.examples.match and all(leaf.of_line or leaf.sql for leaf in scan.leaves_of(rule.match)):
            yield Trial(rule.id, rule.file, rule.line, "has no example on which it must fire")
        for example in rule.examples.match:
            own = fires(scanner, rules, example)
            names = {finding.rule.id for finding in own.findings}
            if rule.role == "noise":
                if not own.noise:
                    yield Trial(rule.id, rule.file, rule.line, "does not fire on its example", example)
            elif rule.id not in names:
                because = f" ({own.failed[rule.id]})" if rule.id in own.failed else ""
                yield Trial(rule.id, rule.file, rule.line, f"does not fire on its example{because}", example)
            elif rule.role == "cause" and (stronger := _thief(own, rule)):
                yield Trial(rule.id, rule.file, rule.line, f"is outranked on its own example by {stronger}", example)
        for example in rule.examples.no_match:
            if rule.id in {finding.rule.id for finding in fires(scanner, rules, example).findings}:
                yield Trial(rule.id, rule.file, rule.line, "fires on a near miss", example)


def loose_edges(rules: RuleSet, others: RuleSet) -> Iterator[Problem]:
    """Causal edges of a pack that lead nowhere, to the rule itself, or round in a circle; `others` are the rules they may name besides."""
    names = [rule.id for rule in (*rules.rules, *others.rules)]
    effects = {rule.id: {name for one in rule.explains for name in fnmatch.filter(names, one.rule)} for rule in rules.rules}
    for rule in rules.rules:
        for one in rule.explains:
            if not fnmatch.filter(names, one.rule):
                yield Problem(rule.file, rule.line, 1, f"{rule.id}: explains {one.rule!r}, which is no rule here or in the shipped packs", "warning")
        if rule.id in effects[rule.id]:
            yield Problem(rule.file, rule.line, 1, f"{rule.id}: explains itself; nothing comes of that", "warning")
        elif _comes_back(rule.id, effects):
            yield Problem(rule.file, rule.line, 1, f"{rule.id}: is explained by what it explains; one edge of the circle will be dropped", "warning")


_BRACES = re.compile(r"\{[^{}\s]{1,80}\}?")
ABSURD = 1e12
"""No size of a kernel is beyond this."""


def loose_texts(rules: RuleSet) -> Iterator[Problem]:
    """Fields in titles, remedies and replays that no pattern captures, and sizes that no kernel has."""
    for rule in rules.rules:
        known = {f"{{{leaf.id}.{name}}}" for leaf in scan.leaves_of(rule.match) for name in reader.captures_of(leaf)}
        texts = [rule.title.en, rule.title.zh, *(text for texts in rule.remedy.values() for text in texts)]
        params = rule.replay.params if rule.replay else {}
        texts += [value for value in params.values() if isinstance(value, str)]
        for field in dict.fromkeys(match[0] for text in texts for match in _BRACES.finditer(text) if "." in match[0]):
            if field not in known:
                message = f"{rule.id}: {field} is no capture of a pattern of this rule and is shown as it stands"
                yield Problem(rule.file, rule.line, 1, message, "warning")
        for name, value in params.items():
            if isinstance(value, (int, float)) and abs(value) > ABSURD:
                yield Problem(rule.file, rule.line, 1, f"{rule.id}: replay: {name} is {value:g}; no kernel is that large", "warning")


def _comes_back(start: str, effects: dict[str, set[str]]) -> bool:
    seen: set[str] = set()
    waiting = list(effects[start])
    while waiting:
        at = waiting.pop()
        if at == start:
            return True
        if at not in seen:
            seen.add(at)
            waiting += effects.get(at, ())
    return False


def _thief(conclusion: Conclusion, rule: Rule) -> str:
    """A rule of another root cause that comes first on this example, or an empty text."""
    if not conclusion.diagnoses:
        return "nothing (it is no root)"
    first = conclusion.diagnoses[0].finding.rule
    if first.root_cause == rule.root_cause or first.role != "cause":
        return ""
    return f"{first.id} ({first.root_cause})"
