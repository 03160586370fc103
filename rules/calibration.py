"""How often a diagnosis of a kind turns out to be right: learnt from incidents with known answers, kept as data.

    >>> firm = chance({"strong": 1.0, "lines": 1.0})
    >>> 0.9 < firm < 0.98 and chance({"strong": 1.0, "contest": 1.0}) < chance({"strong": 1.0})
    True

`confidence.py` weighs findings against each other and puts them in order; what a reader is told is the chance from here. The table
`data/calibration.tsv` holds the log-odds of each term, made by `python -m tests.bench.calibrate`: each incident counts once with all
rules, and once more, at a share, as if no rule knew its cause. Whoever relies on the figure meets both kinds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from rules.confidence import SYMPTOM, Weight
from rules.model import Finding
from rules.tables import table

BASES = ("decisive", "strong", "moderate", "weak", "symptom")
"""Each diagnosis has one of them: the strength of its rule, or that it is only a consequence."""
SIGNS = {"lines": 1, "support": 1, "contest": -1, "late": -1, "doubts": -1, "info": -1}
"""What else counts, and which way it may only count."""
CERTAIN = 0.97
"""No diagnosis is surer."""


def features(finding: Finding, weight: Weight, support: int, contest: float) -> dict[str, float]:
    """What the chance of a diagnosis depends on. `support`: further rules of its root cause that hold; `contest`: weight of the best
    other explanation as a share of its own, at most 1."""
    rule = finding.rule
    consequence = rule.role == "symptom"
    found = {"symptom" if consequence else rule.strength: 1.0}
    if not consequence:
        agreeing = 0 if rule.strength == "weak" else min(weight.lines - 1, 2)  # lines that hardly say anything do not say more together
        found |= {"lines": float(agreeing), "support": float(min(support, 2))}
    found |= {"contest": min(contest, 1.0), "late": float(weight.late), "doubts": float(min(weight.doubts, 2))}
    found["info"] = float(rule.severity == "info")
    return {name: value for name, value in found.items() if value}


def chance(found: Mapping[str, float]) -> float:
    """How often diagnoses with these features are right, between 0.01 and CERTAIN; of mere consequences at most SYMPTOM, whatever was measured."""
    odds = sum(_terms().get(name, 0.0) * value for name, value in found.items())
    return round(max(0.01, min(1 / (1 + math.exp(-odds)), SYMPTOM if found.get("symptom") else CERTAIN)), 3)


@cache
def _terms() -> dict[str, float]:
    """The log-odds of each term. A missing table or figure is a broken installation and raises."""
    return {name: float(value) for name, value in table("calibration", 2)}
