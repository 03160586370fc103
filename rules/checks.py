"""Checks before go-live: rules of the role `check`, asked of a node that is meant to be healthy.

Such a rule holds where something is not as it should be. It passes only if what it looks at is in the bundle: what nobody asked the
node about is not checked, which is not the same as sound.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from rules import scan, versions
from rules.evaluate import Evaluator, Evidences, order
from rules.model import Count, FactRow, Group, Hit, Leaf, MetricRow, Node, Rule, RuleSet

LINES = 64
"""Lines that are kept of one failed check."""

Status = Literal["pass", "fail", "not-checked"]


class Check(msgspec.Struct):
    """What became of one check."""

    rule: Rule
    status: Status
    hits: list[Hit]
    """Where it failed: the lines, facts and numbers that are not as they should be."""
    wanting: list[str]
    """Where it was not checked: facts, metrics, pairs of versions and sources that the bundle does not hold."""


def run(
    rules: RuleSet,
    leaves: Sequence[scan.LeafRef],
    hits: list[Hit],
    counts: dict[int, int],
    facts: Sequence[FactRow],
    metrics: Sequence[MetricRow],
    kinds: Iterable[str],
) -> list[Check]:
    """All checks of all packs, in the order they are written. `kinds`: the kinds of files that the bundle has lines of."""
    there = _There(facts, metrics, frozenset(kinds))
    evaluator = Evaluator(leaves, Evidences(hits, counts, facts, metrics))
    out = []
    for number, rule in enumerate(rules.rules):
        if rule.role != "check":
            continue
        if found := sorted(evaluator.lines(number, rule, LINES), key=order):
            out.append(Check(rule, "fail", found, []))
            continue
        wanting = there.wanting(rule.match)
        out.append(Check(rule, "not-checked" if wanting or rule.id in evaluator.exhausted else "pass", [], wanting))
    return out


class _There:
    """What the bundle holds to look at."""

    def __init__(self, facts: Sequence[FactRow], metrics: Sequence[MetricRow], kinds: frozenset[str]) -> None:
        self._facts, self._metrics, self._kinds = {row.name for row in facts}, {row.name for row in metrics}, kinds
        nodes: dict[str, dict[str, str]] = {}
        for row in facts:
            nodes.setdefault(row.node, {}).setdefault(row.name, row.value)
        self._pairs = {relation for values in nodes.values() for relation in versions.compared(values)}

    def wanting(self, node: Node) -> list[str]:
        """What of a match cannot be looked at; empty where enough can."""
        if isinstance(node, Count):
            return self.wanting(node.of)
        if isinstance(node, Group):
            if node.op == "none_of":
                return []
            parts = [self.wanting(item) for item in node.items]
            if node.op == "any":
                return [] if not all(parts) else list(dict.fromkeys(name for part in parts for name in part))
            return list(dict.fromkeys(name for part in parts for name in part))
        return [] if self._has(node) else [node.fact or node.metric or node.mismatch or " / ".join(node.source)]

    def _has(self, leaf: Leaf) -> bool:
        for wanted, names in ((leaf.fact, self._facts), (leaf.metric, self._metrics), (leaf.mismatch, self._pairs)):
            if wanted:
                return any(fnmatch.fnmatchcase(name, wanted) for name in names)
        return bool(self._kinds.intersection(leaf.source) if leaf.source else self._kinds)
