"""The same death told by many: what follows from a diagnosis, each kind once, with how many ranks and nodes repeat it."""

from __future__ import annotations

from collections.abc import Sequence

from rules.model import Echo, Finding, Scope
from rules.seats import Attempt


def echoes(following: Sequence[Finding], attempts: Sequence[Attempt]) -> list[Echo]:
    """One entry for each finding, in the order given."""
    return [_echo(finding, attempts) for finding in following]


def _echo(finding: Finding, attempts: Sequence[Attempt]) -> Echo:
    processes: set[tuple[str, int]] = set()
    ranks: set[int] = set()
    for hit in finding.hits:
        if hit.pid is not None:
            processes.add((hit.node, hit.pid))
        if hit.rank is not None:
            ranks.add(hit.rank)
    for attempt in attempts:
        ranks |= {seat.rank for seat in attempt.seats if seat.rank is not None and seat.pid is not None and (seat.node, seat.pid) in processes}
    nodes = {hit.node for hit in finding.hits if hit.node}
    return Echo(finding.rule.id, finding.occurrences, len(processes), len(ranks), len(nodes), finding.first)


def placed(scope: Scope, attempts: Sequence[Attempt]) -> Scope:
    """A scope with what the job's joins tell of its process or its card."""
    for attempt in attempts:
        seat = attempt.of_process(scope.node, scope.pid) if scope.pid is not None else None
        if seat is None and scope.device is not None and (scope.node or len({one.node for one in attempt.seats}) == 1):
            seat = attempt.of_device(scope.node, scope.device)
        if seat is None and scope.rank is not None and len(attempts) == 1:
            seat = attempt.of_rank(scope.rank)
        if seat is not None:
            device = scope.device if scope.device is not None else seat.physical if seat.physical is not None else seat.device
            return Scope(
                scope.node or seat.node or seat.server,
                device,
                scope.rank if scope.rank is not None else seat.rank,
                scope.pid if scope.pid is not None else seat.pid,
            )
    return scope
