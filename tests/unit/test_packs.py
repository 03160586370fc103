"""The shipped packs keep what they promise: every rule fires on its examples, on none of its near misses, and is not outranked on its own."""

from __future__ import annotations

import fnmatch

import pytest

from rules import author, pack, scan
from rules.model import RuleSet


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return pack.load()


def test_every_rule_does_on_its_examples_what_it_promises(rules: RuleSet) -> None:
    assert [str(trial) for trial in author.trials(rules)] == []


def test_every_rule_speaks_both_languages_and_says_what_to_do(rules: RuleSet) -> None:
    silent = [rule.id for rule in rules.rules if rule.role == "cause" and not (rule.remedy.get("en") and rule.remedy.get("zh"))]
    assert silent == []
    latin = [rule.id for rule in rules.rules if not any(ord(c) > 0x2E80 for c in rule.title.zh)]
    assert latin == []


def test_every_rule_has_an_example_and_a_near_miss(rules: RuleSet) -> None:
    of_lines = [rule for rule in rules.rules if all(leaf.of_line for leaf in scan.leaves_of(rule.match))]
    assert [rule.id for rule in of_lines if not rule.examples.match] == []
    assert sum(not rule.examples.no_match for rule in of_lines) <= len(of_lines) * 0.02


def test_a_rule_that_explains_names_rules_that_exist(rules: RuleSet) -> None:
    names = [rule.id for rule in rules.rules]
    lost = [(rule.id, one.rule) for rule in rules.rules for one in rule.explains if not fnmatch.filter(names, one.rule)]
    assert lost == []
