"""What follows from what: the causal graph over findings. An effect never comes before its cause, as far as the clocks can tell."""

from __future__ import annotations

import fnmatch

import msgspec

from rules.evaluate import SLACK
from rules.model import LAYERS, Finding, Hit

ACROSS_NODES = 30_000_000
"""Microseconds by which the clocks of two nodes may disagree."""


class Edge(msgspec.Struct, frozen=True):
    """`effect` follows from `cause`; both are indexes of findings."""

    cause: int
    effect: int
    reason: str
    """rule: a rule says so; symptom: the effect decides nothing by itself."""


def edges(findings: list[Finding]) -> list[Edge]:
    """All causal edges, none of which closes a circle: stated ones first, then symptoms to the causes they can follow from."""
    found: list[Edge] = []
    for n, cause in enumerate(findings):
        for stated in cause.rule.explains:
            for m, effect in enumerate(findings):
                if n == m or not fnmatch.fnmatchcase(effect.rule.id, stated.rule):
                    continue
                if _possible(cause, effect, stated.within) and _shares(cause, effect, stated.same):
                    found.append(Edge(n, m, "rule"))
    for m, effect in enumerate(findings):
        if effect.rule.role == "symptom":
            found += [Edge(n, m, "symptom") for n, cause in enumerate(findings) if cause.rule.role == "cause" and _possible(cause, effect, None)]
    return _without_circles(found)


def roots(findings: list[Finding], graph: list[Edge]) -> list[int]:
    """Findings that nothing else explains."""
    explained = {edge.effect for edge in graph}
    return [n for n in range(len(findings)) if n not in explained]


def chain(root: int, findings: list[Finding], graph: list[Edge]) -> list[int]:
    """What follows from a root, directly or through others: in order of time, then from low layers to high ones."""
    reached: set[int] = set()
    waiting = [root]
    while waiting:
        at = waiting.pop()
        for edge in graph:
            if edge.cause == at and edge.effect not in reached and edge.effect != root:
                reached.add(edge.effect)
                waiting.append(edge.effect)
    return sorted(reached, key=lambda n: (findings[n].first or 1 << 62, LAYERS.index(findings[n].rule.layer), findings[n].rule.id))


def _possible(cause: Finding, effect: Finding, within: float | None) -> bool:
    """In time: the cause is not later than the last of the effect, within the uncertainty of the clocks."""
    if cause.first is None or effect.last is None or effect.first is None:
        return True
    slack = SLACK if cause.scope.node == effect.scope.node or not (cause.scope.node and effect.scope.node) else ACROSS_NODES
    if cause.first > effect.last + slack:
        return False
    return within is None or effect.first - cause.first <= within * 1e6 + slack


def _shares(cause: Finding, effect: Finding, scopes: tuple[str, ...]) -> bool:
    """Whether some line of each agree on all scopes that both know."""
    if not scopes:
        return True
    return any(_agree(one, two, scopes) for one in cause.hits[:16] for two in effect.hits[:64])


def _agree(one: Hit, two: Hit, scopes: tuple[str, ...]) -> bool:
    for scope in scopes:
        name = "file_id" if scope == "file" else scope
        left, right = getattr(one, name), getattr(two, name)
        if left not in (None, "") and right not in (None, "") and left != right:
            return False
    return True


def _without_circles(found: list[Edge]) -> list[Edge]:
    kept: list[Edge] = []
    below: dict[int, set[int]] = {}

    def reaches(start: int, goal: int) -> bool:
        seen, waiting = set(), [start]
        while waiting:
            at = waiting.pop()
            if at == goal:
                return True
            if at not in seen:
                seen.add(at)
                waiting += below.get(at, ())
        return False

    for edge in found:
        if edge.effect in below.get(edge.cause, ()) or reaches(edge.effect, edge.cause):
            continue
        kept.append(edge)
        below.setdefault(edge.cause, set()).add(edge.effect)
    return kept
