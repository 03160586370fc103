"""Where an incident began: the node, the device and the rank, by what the ranks of the job say about each other and by who says nothing.

Every sign adds to the score of the seat it points at; the seat with the highest score is named, with its signs as reasons. A sign is a
pointer, not a cause: what it was is for the rules to say. Signs: HCCL's own word; whom all the others end up waiting for; who reported
nothing while the rest timed out; who failed by itself before the rest gave up, and whether the rest gave up as much later as the timeout
is set to; who was at another call than the rest; at whose card broken RDMA connections meet; who never joined; whom its launcher saw die.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rules import signs
from rules.model import Began, FactRow, Finding, FirstRow, Hit, Remark
from rules.seats import Attempt, attempts

MOST_ATTEMPTS = 12
"""Attempts that are looked into: the last ones, where there are more."""


def begin(
    remarks: Sequence[Remark],
    firsts: Sequence[FirstRow],
    findings: Sequence[Finding],
    facts: Sequence[FactRow] = (),
    doubt: Mapping[str, int] | None = None,
) -> tuple[list[Attempt], list[Began]]:
    """The attempts of the job, and where each of them began to fail, in order of time: nowhere for a bundle of one process, or where
    nothing tells.

    `firsts`: the first error of every process; `doubt`: microseconds by which the clock of a node may be off."""
    doubt = doubt or {}
    located = _located(findings)
    processes = [(hit.node, hit.pid, hit.device, hit.rank, hit.ts) for _, hit in located if hit.pid is not None]
    processes += [(first.node, first.pid, first.device, first.rank, first.ts) for first in firsts if first.pid is not None]
    processes += [(one.node, one.pid, one.device, one.rank, one.ts) for one in remarks if one.pid is not None]
    found = attempts(remarks, processes)
    out = []
    for attempt in found[-MOST_ATTEMPTS:]:
        if len(attempt.seats) < 2:
            continue
        own = signs.Own(attempt, found, remarks, firsts, located)
        began = _judged(attempt, own, facts, doubt)
        if began is not None:
            out.append(began)
    return found, out


def _located(findings: Sequence[Finding]) -> list[tuple[Finding, Hit]]:
    """Lines that show a cause at a place, of rules that say what it was and not who waited for whom."""
    return [
        (finding, hit)
        for finding in findings
        if finding.rule.role == "cause" and finding.rule.layer in signs.PLACED and finding.rule.severity in ("fatal", "error")
        for hit in finding.hits
        if hit.leaf >= 0 and (hit.pid is not None or hit.device is not None or hit.node)
    ]


def _judged(attempt: Attempt, own: signs.Own, facts: Sequence[FactRow], doubt: Mapping[str, int]) -> Began | None:
    scores = signs.Scores(attempt)
    waits = signs.waits(own)
    waiting = {seat.number for seat in waits}
    waiting |= {seat.number for first in own.firsts if signs.ECHO.search(first.text) and (seat := own.of(first)) is not None}
    gave_up = signs.gave_up(own, waits)
    limits = signs.limits(own, facts)
    signs.own_word(own, scores)
    signs.never_joined(own, scores)
    signs.graph(own, scores, waiting)
    early = signs.own_errors(own, scores, waiting, gave_up, limits, doubt)
    signs.lateness(own, scores, limits, doubt)
    signs.silence(own, scores, waiting, early)
    signs.other_call(own, scores)
    signs.rdma(own, scores)
    signs.launcher(own, scores)
    ranked = sorted(scores.points, key=lambda number: (-scores.points[number], not attempt.seats[number].known, number))
    if not ranked or scores.points[ranked[0]] < 1:
        return None
    return _told(attempt, scores, ranked, len(waiting), limits)


def _told(attempt: Attempt, scores: signs.Scores, ranked: list[int], waiting: int, limits: dict[str, int]) -> Began:
    best = attempt.seats[ranked[0]]
    top = scores.points[ranked[0]]
    alike = [number for number in ranked if scores.points[number] > 0.95 * top]
    rest = next((scores.points[number] for number in ranked if number not in alike), 0.0)
    found = sorted(scores.signs[best.number], key=lambda sign: -sign.points)
    node, rank, pid = best.node or best.server, best.rank, best.pid
    device = best.physical if best.physical is not None else best.device
    ranks = sorted(one for number in alike if (one := attempt.seats[number].rank) is not None)
    if len(alike) > 1:  # the signs do not tell these apart: what they share is all there is to say
        nodes = {attempt.seats[number].node or attempt.seats[number].server for number in alike}
        node = nodes.pop() if len(nodes) == 1 else ""
        device = rank = pid = None
    kinds = {sign.kind for sign in found}
    share = top / (top + rest)
    sure = "high" if top >= 3 and share >= 0.6 and len(kinds) > 1 and len(alike) == 1 else "medium" if top >= 2 and share >= 0.55 else "low"
    return Began(
        attempt=attempt.number,
        node=node,
        device=device,
        rank=rank,
        pid=pid,
        ranks=ranks if len(alike) > 1 else [],
        logs=best.known,
        sure=sure,
        signs=found,
        waiting=waiting,
        size=attempt.ranks or len(attempt.seats),
        first=attempt.first,
        limits=limits,
    )
