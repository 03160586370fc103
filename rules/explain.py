"""Why a rule holds on a bundle, or why not: each of its parts, what was found for it, and what evidence would settle it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rules import scan
from rules.diagnose import Conclusion
from rules.evaluate import Evaluator
from rules.expression import Expression
from rules.model import Evidence, Leaf, Rule, RuleSet, Text


class Part(msgspec.Struct, frozen=True):
    """One pattern of a rule, and the lines it found."""

    leaf: str
    pattern: str
    """The pattern in the rule's own words."""
    lines: int
    """Lines it was found on, before filters."""
    admitted: int
    """Of the lines kept, those that also pass source, severity, module and noise."""
    evidence: tuple[Evidence, ...]
    needed: bool
    """False for parts of `any` and `none_of`."""


class Explanation(msgspec.Struct):
    rule: Rule
    fired: bool
    rank: int | None
    """Rank of the diagnosis it became, where it did."""
    explained_by: list[str]
    """Rules it follows from, so that it is no root."""
    parts: list[Part]
    where: bool | None
    """Whether `where` held on the best lines; None where there is none or a pattern is missing."""
    verdict: Text
    doubts: list[str]


def explain(ident: str, rules: RuleSet, leaves: Sequence[scan.LeafRef], evaluator: Evaluator, conclusion: Conclusion) -> Explanation:
    """What became of the rule `ident` on a bundle. Raises KeyError where there is no such rule."""
    number, rule = next(((n, rule) for n, rule in enumerate(rules.rules) if rule.id == ident), (-1, None))
    if rule is None:
        raise KeyError(ident)
    index = {(ref.rule, ref.leaf.id): n for n, ref in enumerate(leaves)}
    optional = _optional(rule)
    parts = []
    for leaf in scan.leaves_of(rule.match):
        admitted = evaluator.candidates(number, leaf, rule.pack)
        lines = len(admitted) if not leaf.of_line else evaluator.evidences.counts.get(index[number, leaf.id], 0)
        shown = tuple(Evidence(hit.file, hit.line_no, hit.text, "context", hit.ts, leaf.id) for hit in admitted[:3])
        parts.append(Part(leaf.id, pattern_of(leaf), lines, len(admitted), shown, leaf.id not in optional))
    place = next((n for n, finding in enumerate(conclusion.findings) if finding.rule.id == ident), None)
    rank = next((diagnosis.rank for diagnosis in conclusion.diagnoses if diagnosis.finding.rule.id == ident), None)
    above = [conclusion.findings[edge.cause].rule.id for edge in conclusion.edges if edge.effect == place] if place is not None else []
    missing = [part for part in parts if part.needed and not part.admitted]
    if not any(part.admitted for part in parts):
        missing = parts
    where = (place is not None) if rule.where and not missing else None
    doubts = conclusion.findings[place].doubts if place is not None else []
    return Explanation(rule, place is not None, rank, above, parts, where, _verdict(rule, place, rank, above, missing), doubts)


def pattern_of(leaf: Leaf) -> str:
    """A pattern as its author wrote it."""
    if leaf.contains:
        return "contains " + ", ".join(repr(word) for word in leaf.contains)
    if leaf.codes:
        return "code " + ", ".join(leaf.codes)
    named = (("regex", leaf.regex), ("fact", leaf.fact), ("metric", leaf.metric), ("mismatch", leaf.mismatch), ("sql", " ".join(leaf.sql.split())))
    return next((f"{name} {value}" for name, value in named if value), "")


def _optional(rule: Rule) -> set[str]:
    """Leaves without which the rule can still hold."""
    found: set[str] = set()

    def walk(node: object, inside: bool) -> None:
        if isinstance(node, Leaf):
            found.update({node.id} if inside or node.optional else ())
        for item in getattr(node, "items", ()):
            walk(item, inside or getattr(node, "op", "") in ("any", "none_of"))

    walk(rule.match, False)
    return found


def _verdict(rule: Rule, place: int | None, rank: int | None, above: list[str], missing: list[Part]) -> Text:
    if rank is not None:
        return Text(f"It holds, and is diagnosis {rank}.", f"规则成立，为第 {rank} 项诊断。")
    if above:
        return Text(f"It holds, but follows from {', '.join(above[:3])}.", f"规则成立，但属于 {'、'.join(above[:3])} 的后果。")
    if place is not None:
        return Text("It holds, and supports another diagnosis of the same root cause.", "规则成立，作为同一根因其他诊断的佐证。")
    if missing:
        names = ", ".join(part.leaf for part in missing)
        seen = [part.leaf for part in missing if part.lines]
        if seen:
            return Text(
                f"It does not hold: {', '.join(seen)} was seen, but in a source, severity or module that the rule does not take.",
                f"规则不成立：{'、'.join(seen)} 虽然出现，但来源、级别或模块不符合规则要求。",
            )
        return Text(
            f"It does not hold: no line for {names}. A line that fits the pattern above would settle it.",
            f"规则不成立：没有匹配 {names} 的日志。出现符合上述模式的日志即可判定。",
        )
    if rule.where and Expression(rule.where):
        return Text(f"All patterns were seen, but nowhere does this hold: {rule.where}", f"所有模式均已出现，但条件不满足：{rule.where}")
    return Text(
        "All patterns were seen, but not together as the rule wants: time, order, process, or a version that does not fit.",
        "所有模式均已出现，但未按规则要求同时满足（时间、顺序、进程或版本不符）。",
    )
