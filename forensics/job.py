"""The job behind the logs: its nodes with their clocks, its attempts, and what of it is not in the bundle."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest import Scan
from forensics.result import AttemptSeen, NodeSeen, Note
from rules.diagnose import Conclusion
from rules.model import FirstRow
from rules.seats import numbers


def first_rows(scan: Scan) -> list[FirstRow]:
    """The first errors of processes as the rules want them."""
    return [FirstRow(one.node, one.pid, one.ts, one.file, one.line, one.text) for one in scan.first_errors]


def doubt(scan: Scan) -> dict[str, int]:
    """Node -> microseconds by which its times may still be off, of nodes whose clocks were compared."""
    return {node: skew.within for node, skew in scan.skews.items() if skew.why != "none"}


def nodes(scan: Scan, found: Conclusion) -> list[NodeSeen]:
    """All machines that the bundle has logs of, then those that others only speak of; each in order of name."""
    last = next((attempt for attempt in reversed(found.attempts) if len(attempt.seats) > 1), None)
    ranks: dict[str, list[int]] = {}
    servers: dict[str, str] = {}
    for seat in last.seats if last is not None else ():
        if seat.rank is not None and (seat.node or seat.server):
            ranks.setdefault(seat.node or seat.server, []).append(seat.rank)
    for attempt in found.attempts:
        servers.update({seat.node or seat.server: seat.server for seat in attempt.seats if not seat.known and seat.server})
    first: dict[str, int] = {}
    for error in scan.first_errors:
        if error.ts is not None and error.node:
            first[error.node] = min(first.get(error.node, error.ts), error.ts)
    out = []
    for machine in scan.machines:
        skew = scan.skews.get(machine.name)
        compared = skew is not None and skew.why != "none"
        out.append(
            NodeSeen(
                machine.name, machine.why, True, sorted(machine.hosts), sorted(machine.servers), sorted(machine.places), machine.files,
                sorted(ranks.get(machine.name, [])), first.get(machine.name),
                ahead=skew.ahead if skew is not None and compared else None,
                within=skew.within if skew is not None and compared else None,
                moments=skew.moments if skew is not None else 0,
                compared_by=skew.why if skew is not None else "none",
                taken_off=skew is not None and bool(skew.shift),
            )
        )  # fmt: skip
    known = {machine.name for machine in scan.machines}
    addresses = {server for machine in scan.machines for server in machine.servers}
    spoken = {name: server for name, server in servers.items() if name not in known and server not in addresses}
    return out + [NodeSeen(name, "peers", False, [], [spoken[name]], [], 0, sorted(ranks.get(name, [])), None) for name in sorted(spoken)]


def attempts(found: Conclusion) -> list[AttemptSeen]:
    """The attempts of jobs of more than one rank."""
    began = {one.attempt: one for one in found.began}
    out = []
    for attempt in found.attempts:
        if len(attempt.seats) < 2:
            continue
        missing = sorted(seat.rank for seat in attempt.seats if not seat.known and seat.rank is not None)
        known = sum(seat.known for seat in attempt.seats)
        out.append(AttemptSeen(attempt.number, attempt.ranks, known, missing, attempt.first, began.get(attempt.number)))
    return out


def wanted(found: Sequence[NodeSeen], tries: Sequence[AttemptSeen]) -> list[Note]:
    """What of the job is not in the bundle, and how to get it."""
    missing = tries[-1].missing if tries else []
    if not missing:
        return []
    named = [node.name for node in found if not node.logs]
    shown = numbers(missing)
    english = f"The bundle has no logs of ranks {shown}" + (f"; nodes without logs that others speak of: {', '.join(named)}" if named else "")
    chinese = f"日志包中没有 rank {shown} 的日志" + (f"；其他节点提到但缺少日志的节点：{'、'.join(named)}" if named else "")
    return [
        Note(
            f"{english}. On each node they ran on, as the user of the job: tar czf $(hostname).tar.gz ~/ascend/log /var/log/messages*;"
            " then triage all bundles together: dsforensics triage *.tar.gz",
            f"{chinese}。请在这些 rank 所在的每个节点上以任务用户执行：tar czf $(hostname).tar.gz ~/ascend/log /var/log/messages*；"
            "然后将所有日志包一起分析：dsforensics triage *.tar.gz",
        )
    ]
