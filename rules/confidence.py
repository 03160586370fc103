"""How findings weigh against each other: what the rule's text can claim, what the evidence adds or takes away, and who else competes.

The weights put diagnoses in order. What a reader is told is how often such a diagnosis is right, which was measured (`calibration.py`).
"""

from __future__ import annotations

import msgspec

from rules.model import Finding, Text

BASE = {"decisive": 0.92, "strong": 0.8, "moderate": 0.6, "weak": 0.38}
"""Chance that a full match of a rule of this strength names the root cause, before anything else is known."""
SYMPTOM = 0.3
"""At most so sure when all there is are consequences."""
AS_BEFORE, NEW = 0.6, 0.1
"""Share of its weight that a finding keeps which holds in the good run too; share of the doubt that one loses which does not."""
HIGH, MEDIUM = 0.7, 0.4
_SEVERITY = {"fatal": 1.0, "error": 1.0, "warning": 0.9, "info": 0.8}


class Weight(msgspec.Struct, frozen=True):
    """A finding's weight and what it was made of."""

    value: float
    lines: int
    late: bool
    doubts: int
    before: bool | None = None
    """Whether the rule holds in the good run too; None where there is none to compare with."""


def weigh(finding: Finding, onset: int | None, before: frozenset[str] | None = None) -> Weight:
    """The weight of one finding by itself. `onset`: UTC microseconds of the bundle's first fatal or error line; `before`: rules that hold
    in a good run too. What holds there hardly broke this one, and what does not is a little surer for it."""
    rule = finding.rule
    value = BASE[rule.strength] * _SEVERITY[rule.severity]
    lines = len({(hit.file_id, hit.line_no) for hit in finding.hits[: finding.deciding]})
    value += (1 - value) * min(0.12 * (lines - 1), 0.36)
    quiet = all(hit.severity in ("DEBUG", "INFO") for hit in finding.hits[: finding.deciding])
    if quiet and rule.severity in ("fatal", "error"):
        value *= 0.92
    late = onset is not None and finding.first is not None and finding.first > onset + 120_000_000
    if late:
        value *= 0.85
    value *= 0.92 ** len(finding.doubts)
    known = None if before is None else rule.id in before
    if known is not None:
        value = value * AS_BEFORE if known else value + (1 - value) * NEW
    if rule.role == "symptom":
        value = min(value * 0.45, SYMPTOM)
    return Weight(max(0.01, min(value, 0.97)), lines, late, len(finding.doubts), known)


def confidence(weights: list[Weight], place: int, causes: list[str]) -> float:
    """What the diagnosis at `place` (0: first) weighs among its rivals; `causes` are the root causes in the same order."""
    own = weights[place].value
    rivals = [weight.value for n, weight in enumerate(weights) if causes[n] != causes[place]]
    if not rivals:
        return round(own, 3)
    share = own / (own + 0.5 * sum(sorted(rivals, reverse=True)[:3]) * max(rivals) / max(own, 0.01))
    return round(max(0.01, min(own * (0.45 + 0.55 * share), 0.97)), 3)


def level(value: float) -> str:
    return "high" if value >= HIGH else "medium" if value >= MEDIUM else "low"


def rule_is_sure(finding: Finding) -> bool:
    return finding.rule.strength in ("decisive", "strong")


def why(finding: Finding, weight: Weight, rivals: int, chance: float) -> Text:
    """One line on what the confidence rests on, and what it means."""
    kind = {
        "decisive": ("the text names this cause", "日志直接点明该原因"),
        "strong": ("hardly anything else prints this", "几乎只有该原因会打印此内容"),
        "moderate": ("the usual reading of these lines", "这些日志的通常含义"),
        "weak": ("one reading among several", "多种可能之一"),
    }[finding.rule.strength]
    if finding.hits and finding.hits[0].kind == "profile":
        kind = ("measured in the profile", "性能数据实测") if rule_is_sure(finding) else ("the usual reading of these numbers", "这些数据的通常含义")
    english, chinese = [kind[0]], [kind[1]]
    if finding.rule.role == "symptom":
        english, chinese = ["only consequences were found, no cause"], ["只发现后果类日志，未发现原因"]
    if weight.lines > 1:
        english.append(f"{weight.lines} lines agree")
        chinese.append(f"{weight.lines} 处日志相互印证")
    if rivals:
        english.append(f"{rivals} other explanation{'s' if rivals > 1 else ''} possible")
        chinese.append(f"另有 {rivals} 种可能的解释")
    if weight.before is not None:
        english.append("the good run has it too" if weight.before else "the good run does not have it")
        chinese.append("正常运行中同样出现" if weight.before else "正常运行中没有")
    if weight.late:
        english.append("seen only after the first errors")
        chinese.append("在首批错误之后才出现")
    if finding.doubts:
        english.append("; ".join(finding.doubts[:3]))
        chinese.append("；".join(doubt.replace(" unknown", " 未知") for doubt in finding.doubts[:3]))
    share = max(1, round(chance * 100))
    return Text(f"{', '.join(english)}: right in about {share} of 100 such cases", f"{'，'.join(chinese)}；此类诊断约 {share}% 正确")
