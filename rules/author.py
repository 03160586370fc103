"""Tools for people who write rules: whether examples hold, who takes whose lines, and which edges and fields lead nowhere."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence

import msgspec

from rules import query, reader, scan
from rules.diagnose import Conclusion, diagnose
from rules.model import FactRow, Hit, MetricRow, Problem, Rule, RuleSet


class Trial(msgspec.Struct, frozen=True):
    """One example that did not do what its rule promises, or that a rule of another root cause claims as well."""

    rule: str
    file: str
    line: int
    message: str
    example: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}: {self.message}: {' '.join(self.example.split())[:160]}"


_FACT = re.compile(r"#fact +(?P<name>[\w.*-]+) *= *(?P<value>.*)")
_METRIC = re.compile(r"#metric +(?P<name>[\w.-]+) *= *(?P<value>-?[\d.]+(?:e-?\d+)?)(?: +device=(?P<device>\d+))?(?: +label=(?P<label>.+))?")


def stated(text: str) -> tuple[str, list[FactRow], list[MetricRow]]:
    """An example without its statements, and these: `#fact cann.version = 8.1.RC1`, `#metric npu.hbm.usage = 97 device=3 label=HBM`.

    The lines stay as empty ones, so that numbers of lines hold."""
    lines, facts, metrics = [], [], []
    for number, line in enumerate(text.splitlines(), 1):
        if fact := _FACT.fullmatch(line.strip()):
            facts.append(FactRow(fact["name"], fact["value"].strip(), file="example", line_no=number))
        elif (metric := _METRIC.fullmatch(line.strip())) and metric["value"].count(".") < 2:
            device = int(metric["device"]) if metric["device"] else None
            value, label = float(metric["value"]), metric["label"] or ""
            metrics.append(MetricRow(metric["name"], value, device=device, label=label, file="example", line_no=number))
        else:
            lines.append(line)
            continue
        lines.append("")
    return "\n".join(lines), facts, metrics


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
    tables = query.example(text)
    text, facts, metrics = stated(text)
    hits, counts = hits_of(scanner, text)
    return diagnose(rules, scanner.leaves, hits, counts, facts, metrics, tables=tables)


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


def thefts(rules: RuleSet, only: Sequence[Rule] | None = None) -> Iterator[Trial]:
    """Examples that rules of two root causes claim, neither as a consequence of the other: where only one of them is meant, it needs more
    evidence, or an edge (`explains`). With `only`: examples of those rules, and examples of others that those rules claim."""
    scanner = scan.Scanner.load(rules)
    own = {rule.id for rule in only} if only is not None else None
    quick = scan.Scanner.load(RuleSet((), tuple(only))) if only is not None else None
    for rule in rules.rules:
        if rule.role != "cause":
            continue
        mine = own is None or rule.id in own
        for example in rule.examples.match:
            if not mine and quick is not None and "#" not in example and not hits_of(quick, example)[0]:
                continue
            found = fires(scanner, rules, example)
            if all(finding.rule.id != rule.id for finding in found.findings):
                continue
            for diagnosis in found.diagnoses:
                other = diagnosis.finding.rule
                if other.role != "cause" or other.root_cause == rule.root_cause or not (mine or own is None or other.id in own):
                    continue
                place = "before it" if diagnosis.rank == 1 else "beside it"
                message = f"{other.id} ({other.root_cause}) claims its example, {place}"
                yield Trial(rule.id, rule.file, rule.line, message, example)


def loose_edges(rules: RuleSet, others: RuleSet) -> Iterator[Problem]:
    """Causal edges of a pack that lead nowhere, to the rule itself, or round in a circle; `others` are the rules they may name besides."""
    names = [rule.id for rule in (*rules.rules, *others.rules)]
    known = frozenset(names)  # a glob may well take in the rule itself, or one that explains it: such edges are dropped as a matter of course
    effects = {rule.id: {one.rule for one in rule.explains if one.rule in known} for rule in rules.rules}
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
        for field in dict.fromkeys(match[0] for text in texts for match in _BRACES.finditer(text) if "." in match[0] and match[0][1] != "."):
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
