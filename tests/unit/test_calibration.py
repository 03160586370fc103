"""The chance a reader is told: made from measured terms, never certain, and never moved the wrong way by evidence."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import calibration, confidence
from rules.calibration import chance, features
from rules.confidence import Weight
from rules.model import Finding, Hit, Leaf, Rule, Scope, Text


def finding(strength: str = "strong", role: str = "cause", severity: str = "error", lines: int = 1) -> Finding:
    rule = Rule("t.a", "link-down", Text("t", "t"), "network", severity, Leaf("m", contains=("down",)), strength=strength, role=role)
    hits = [Hit(0, 0, "a.log", n, 0, "down", {}) for n in range(lines)]
    return Finding(rule, hits, lines, Scope(), None, None, lines, {})


def told(one: Finding, support: int = 0, contest: float = 0.0) -> float:
    return chance(features(one, confidence.weigh(one, None), support, contest))


def test_the_documentation_holds() -> None:
    assert doctest.testmod(calibration).failed == 0


def test_the_table_knows_every_term_and_nothing_else() -> None:
    assert set(calibration._terms()) == {*calibration.BASES, *calibration.SIGNS}


@pytest.mark.parametrize(("surer", "less"), [("decisive", "strong"), ("strong", "moderate"), ("moderate", "weak")])
def test_a_stronger_rule_is_surer(surer: str, less: str) -> None:
    assert told(finding(surer)) > told(finding(less))


def test_a_weak_reading_or_a_mere_consequence_is_never_sure() -> None:
    assert told(finding("weak", lines=3), support=1) < confidence.HIGH
    assert told(finding("moderate", role="symptom")) < confidence.HIGH


def test_a_remark_of_severity_info_is_no_alarm() -> None:
    assert confidence.level(told(finding("weak", severity="info"))) == "low"


@given(st.dictionaries(st.sampled_from([*calibration.BASES, *calibration.SIGNS]), st.floats(0, 2), max_size=6), st.sampled_from([*calibration.SIGNS]))
def test_what_speaks_for_a_diagnosis_never_lowers_it_and_what_speaks_against_never_raises_it(found: dict[str, float], term: str) -> None:
    less, more = chance(found | {term: 0.0}), chance(found | {term: 1.0})
    assert (more - less) * calibration.SIGNS[term] >= 0
    assert 0.01 <= less <= calibration.CERTAIN


def test_support_and_rivals_count() -> None:
    assert told(finding("moderate"), support=1) > told(finding("moderate")) > told(finding("moderate"), contest=1.0)
    assert told(finding("moderate", lines=2)) > told(finding("moderate"))


def test_the_line_below_a_diagnosis_says_how_often_such_are_right() -> None:
    one = finding()
    text = confidence.why(one, Weight(0.8, 1, False, 0), 0, 0.94)
    assert text.en.endswith("right in about 94 of 100 such cases")
    assert text.zh.endswith("此类诊断约 94% 正确")
