"""The same death told by many: what follows from a diagnosis, each kind once, with how many ranks and nodes repeat it."""

from __future__ import annotations

from collections.abc import Sequence

from rules.model import Echo, Finding
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
