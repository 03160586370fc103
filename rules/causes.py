"""What follows from what: the causal graph over findings. An effect never comes before its cause, as far as the clocks can tell.

Two faults that have nothing to do with each other stay apart: a consequence hangs on the causes that are nearest to it in time and
place, and roots that share neither do not compete.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

import msgspec

from rules.evaluate import SLACK
from rules.model import LAYERS, Finding, FirstRow, Hit

ACROSS_NODES = 30_000_000
"""Microseconds by which the clocks of two nodes may disagree where nothing compared them."""
APART = 3_600_000_000
"""Microseconds from which on two findings are of different times: longer than any timeout that is usual."""


class Edge(msgspec.Struct, frozen=True):
    """`effect` follows from `cause`; both are indexes of findings."""

    cause: int
    effect: int
    reason: str
    """rule: a rule says so; symptom: the effect decides nothing by itself."""


def edges(findings: list[Finding], doubt: Mapping[str, int] | None = None) -> list[Edge]:
    """All causal edges, none of which closes a circle: stated ones first, then symptoms to the causes they can follow from.

    `doubt`: microseconds by which the clock of a node may be off, where that was measured."""
    doubt = doubt or {}
    found: list[Edge] = []
    stated_to: dict[int, list[int]] = {}
    for n, cause in enumerate(findings):
        for stated in cause.rule.explains:
            for m, effect in enumerate(findings):
                if n == m or not fnmatch.fnmatchcase(effect.rule.id, stated.rule):
                    continue
                if not (_possible(cause, effect, stated.within, doubt) and _shares(cause, effect, stated.same) and _linked(cause, effect)):
                    continue
                if effect.rule.role == "symptom":
                    stated_to.setdefault(m, []).append(n)
                else:
                    found.append(Edge(n, m, "rule"))
    for m, effect in enumerate(findings):
        if effect.rule.role == "symptom":
            stated_by = stated_to.get(m, [])
            able = [n for n, cause in enumerate(findings) if n != m and (n in stated_by or cause.rule.role == "cause")]
            able = [n for n in able if n in stated_by or _possible(findings[n], effect, None, doubt)]
            found += [Edge(n, m, "rule" if n in stated_by else "symptom") for n in _nearest(able, effect, findings)]
    found.sort(key=lambda edge: edge.reason != "rule")
    return _without_circles(found)


def contend(one: Finding, other: Finding) -> bool:
    """Whether two roots are explanations of the same thing: not where they are of different times, or of different processes or nodes."""
    if _gap(one, other) > APART:
        return False
    if one.scope.node and other.scope.node and one.scope.node != other.scope.node:
        return one.rule.layer == "collective" or other.rule.layer == "collective" or bool(_files(one) & _files(other))
    left, right = _pids(one), _pids(other)
    if left and right and not left & right:
        return not _alone(one) or not _alone(other)
    return True


def onset_of(finding: Finding, firsts: Sequence[FirstRow], onset: int | None) -> int | None:
    """When the errors began that a finding is of: the first of all, unless its process erred first long after those that came before."""
    pids = {(hit.node, hit.pid) for hit in finding.hits[: finding.deciding] if hit.pid is not None}
    own = min((first.ts for first in firsts if first.ts is not None and (first.node, first.pid) in pids), default=None)
    if own is None:
        return onset
    earlier = sorted(first.ts for first in firsts if first.ts is not None and first.ts <= own)
    for before, after in zip(reversed(earlier[:-1]), reversed(earlier[1:]), strict=True):
        if after - before > APART:
            return after
    return onset


def _alone(finding: Finding) -> bool:
    """Whether it is a matter of its own process: what a card, a link or a group of ranks has, other processes feel too."""
    return finding.rule.layer in ("operator", "framework", "application", "runtime")


def _linked(cause: Finding, effect: Finding) -> bool:
    """Whether one may have led to the other at all: in one stretch of time, or else on one card of one node."""
    if _gap(cause, effect) <= APART:
        if effect.rule.role != "cause" or cause.rule.root_cause == effect.rule.root_cause:
            return True
        if cause.first is not None and effect.first is not None:
            return True
        return bool(_files(cause) & _files(effect)) or bool(_pids(cause) & _pids(effect))
    one, other = cause.scope, effect.scope
    return one.device is not None and one.device == other.device and one.node == other.node


def _gap(one: Finding, other: Finding) -> int:
    """Microseconds between what two findings span; 0 where they overlap, or where times are not known."""
    if one.first is None or other.first is None:
        return 0
    return max(0, one.first - (other.last or other.first), other.first - (one.last or one.first))


def _nearest(able: list[int], effect: Finding, findings: list[Finding]) -> list[int]:
    """Of the causes that a symptom can follow from, those that are closest to it. Symptoms that pass from one process to another belong to
    all causes of their time; others to those of their own process or log, and to what a whole node feels."""
    able = [n for n in able if _gap(findings[n], effect) <= APART] or able
    if len(able) < 2:
        return able
    pids, files = _pids(effect), _files(effect)
    own = [n for n in able if pids & _pids(findings[n]) or files & _files(findings[n])]
    timed = [n for n in able if effect.first is not None and findings[n].first is not None]
    if effect.rule.layer in ("collective", "framework", "application"):
        kept = {*own, *timed}
    else:
        kept = {*own, *(n for n in timed if findings[n].rule.layer in LAYERS[:4] or not _pids(findings[n]))} if own else set(timed)
    return [n for n in able if n in kept] or able


def _pids(finding: Finding) -> set[tuple[str, int]]:
    return {(hit.node, hit.pid) for hit in finding.hits[:64] if hit.pid is not None}


def _files(finding: Finding) -> set[int]:
    return {hit.file_id for hit in finding.hits[:64]}


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


def _possible(cause: Finding, effect: Finding, within: float | None, doubt: Mapping[str, int]) -> bool:
    """In time: the cause is not later than the last of the effect, within the uncertainty of the clocks."""
    if cause.first is None or effect.last is None or effect.first is None:
        return True
    slack, one, other = SLACK, cause.scope.node, effect.scope.node
    if one and other and one != other:
        slack += doubt[one] + doubt[other] if one in doubt and other in doubt else ACROSS_NODES
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
