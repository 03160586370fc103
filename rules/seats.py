"""The seats of a job: which rank ran as which process on which device of which node, in which attempt, and which rank nobody has logs of."""

from __future__ import annotations

import functools
import ipaddress
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from rules.model import Remark

LATE = 900_000_000
"""Microseconds before the first join of an attempt that still belong to it."""


class Seat(msgspec.Struct):
    """One rank of one attempt; `known`: whether the bundle has logs of it."""

    number: int
    """Index in `Attempt.seats`."""
    rank: int | None = None
    node: str = ""
    server: str = ""
    """Address of the node as processes state it."""
    device: int | None = None
    physical: int | None = None
    device_ip: str = ""
    pid: int | None = None
    known: bool = True
    groups: dict[str, int] = msgspec.field(default_factory=dict)
    """Group -> the rank in it."""
    first: int | None = None
    addresses: set[str] = msgspec.field(default_factory=set)


class Attempt(msgspec.Struct, dict=True):
    """One start of the job, until it ended."""

    number: int
    """From 1."""
    ranks: int
    """Ranks the job has; 0 where nobody says."""
    seats: list[Seat]
    first: int | None
    last: int | None = None

    def of_rank(self, rank: int) -> Seat | None:
        return next((seat for seat in self.seats if seat.rank == rank), None)

    def of_process(self, node: str, pid: int | None) -> Seat | None:
        if pid is None:
            return None
        return next((seat for seat in self.seats if seat.pid == pid and (seat.node == node or not node or not seat.node)), None)

    def of_device(self, node: str, device: int | None, server: str = "") -> Seat | None:
        """By the physical device, or the logical one where that is not known; `server` in place of the node where only it is known."""
        if device is None:
            return None
        for seat in self.seats:
            same = (seat.server == server) if server else (seat.node == node)
            if same and (seat.physical if seat.physical is not None else seat.device) == device:
                return seat
        return next((s for s in self.seats if ((s.server == server) if server else (s.node == node)) and s.device == device), None)

    def of_address(self, address: str, server: str = "") -> Seat | None:
        """By the address of a card; of addresses that every node uses alike, the one on `server`."""
        found = [seat for seat in self.seats if address == seat.device_ip or address in seat.addresses]
        near = [seat for seat in found if server and seat.server == server]
        return near[0] if len(near) == 1 else found[0] if len(found) == 1 else None

    def of_group(self, group: str, rank: int) -> Seat | None:
        """By the rank in a group; of a member nobody has logs of, by the even steps in which groups take their ranks."""
        members, begin, step = self._groups.get(group, ({}, 0, 0))
        if rank in members:
            return members[rank]
        return self.of_rank(begin + rank * step) if step else None

    @functools.cached_property
    def _groups(self) -> dict[str, tuple[dict[int, Seat], int, int]]:
        """Group -> its members by their rank in it; the rank in the job of its first, and the step to the next, 0 where it is uneven."""
        members: dict[str, dict[int, Seat]] = defaultdict(dict)
        for seat in self.seats:
            for group, own in seat.groups.items():
                members[group][own] = seat
        return {group: (found, *_steps(found)) for group, found in members.items()}


def _steps(members: dict[int, Seat]) -> tuple[int, int]:
    """(rank in the job of the first member, step from one to the next); step 0 where that is not even, or not known."""
    places = sorted((own, seat.rank) for own, seat in members.items() if seat.rank is not None)
    if len(places) < 2:
        return 0, 0
    (first, begin), (last, end) = places[0], places[-1]
    step, rest = divmod(end - begin, last - first)
    begin -= first * step
    return (0, 0) if rest or any(place != begin + own * step for own, place in places) else (begin, step)


def attempts(remarks: Sequence[Remark], processes: Iterable[tuple[str, int, int | None, int | None, int | None]]) -> list[Attempt]:
    """All attempts, in time. `processes`: (node, pid, device, rank, time) of processes that lines other than joins know of."""
    seats = _joined(remarks)
    if not seats:
        return _unjoined(processes)
    found = [_attempt(members) for members in _starts(seats)]
    found.sort(key=lambda attempt: (attempt.first is None, attempt.first or 0, attempt.ranks))
    for number, attempt in enumerate(found, 1):
        attempt.number = number
        if number < len(found) and found[number].ranks == attempt.ranks:
            attempt.last = found[number].first
        _fill(attempt)
    return found


def _joined(remarks: Sequence[Remark]) -> list[tuple[Seat, int]]:
    """One seat for each process that joined a group, with the size of its largest group."""
    by_process: dict[tuple[str, int | None, str], Seat] = {}
    sizes: dict[tuple[str, int | None, str], int] = defaultdict(int)
    told = [one for one in remarks if one.kind in ("join", "member")]  # a task that failed states its group and rank as well
    for remark in sorted(told, key=lambda one: (one.ts or 0, one.file_id, one.line_no)):
        values = remark.values
        key = (remark.node or values.get("server", ""), remark.pid, "" if remark.pid is not None else remark.file)
        seat = by_process.setdefault(key, Seat(0, node=remark.node, pid=remark.pid))
        size, rank = int(values.get("ranks", 0)), int(values["rank"])
        if size > sizes[key] or seat.rank is None:
            sizes[key], seat.rank = max(size, sizes[key]), rank
        seat.server = seat.server or values.get("server", "")
        seat.device_ip = seat.device_ip or values.get("device_ip", "")
        seat.device = seat.device if seat.device is not None else _number(values.get("device"))
        seat.physical = seat.physical if seat.physical is not None else _number(values.get("physical"))
        if group := values.get("group"):
            seat.groups[group] = rank
        if remark.ts is not None and remark.kind == "join":
            seat.first = remark.ts if seat.first is None else min(seat.first, remark.ts)
    for remark in remarks:
        if remark.kind == "listen":
            for seat in by_process.values():
                if seat.node == remark.node and seat.pid == remark.pid:
                    seat.addresses.add(remark.values["ip"])
    return [(seat, sizes[key]) for key, seat in by_process.items()]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _starts(seats: list[tuple[Seat, int]]) -> list[list[tuple[Seat, int]]]:
    """Seats that started together: those that share a group whose name is unique, and of the rest as many as fit beside each other."""
    above = list(range(len(seats)))

    def top(n: int) -> int:
        while above[n] != n:
            above[n] = above[above[n]]
            n = above[n]
        return n

    by_group: dict[str, int] = {}
    for n, (seat, _) in enumerate(seats):
        for group in seat.groups:
            if not group.startswith(("hccl_world_group", "group_name_")):
                above[top(n)] = top(by_group.setdefault(group, n))
    parts: dict[int, list[tuple[Seat, int]]] = defaultdict(list)
    for n, one in enumerate(seats):
        parts[top(n)].append(one)
    found: list[list[tuple[Seat, int]]] = []
    ordered = sorted(parts.values(), key=lambda part: (min(seat.first or 0 for seat, _ in part), min(seat.rank or 0 for seat, _ in part)))
    for part in ordered:
        for start in reversed(found):
            if _beside(start, part):
                start += part
                break
        else:
            found.append(list(part))
    return found


def _beside(start: list[tuple[Seat, int]], part: list[tuple[Seat, int]]) -> bool:
    """Whether they can be of one attempt: a job of the same size, no rank twice, and started within a quarter of an hour."""
    if max(size for _, size in start) != max(size for _, size in part):
        return False
    if {seat.rank for seat, _ in start} & {seat.rank for seat, _ in part}:
        return False
    times = [seat.first for seat, _ in (*start, *part) if seat.first is not None]
    return not times or max(times) - min(times) <= LATE


def _attempt(members: list[tuple[Seat, int]]) -> Attempt:
    seats = sorted((seat for seat, _ in members), key=lambda seat: (seat.rank if seat.rank is not None else 1 << 30, seat.node, seat.pid or 0))
    times = [seat.first for seat in seats if seat.first is not None]
    return Attempt(0, max(size for _, size in members), seats, min(times, default=None))


def _unjoined(processes: Iterable[tuple[str, int, int | None, int | None, int | None]]) -> list[Attempt]:
    """Of a job whose joins are not in the bundle: its processes as far as other lines know them, as one attempt."""
    seats: dict[tuple[str, int], Seat] = {}
    for node, pid, device, rank, ts in processes:
        seat = seats.setdefault((node, pid), Seat(0, node=node, pid=pid))
        seat.device = seat.device if seat.device is not None else device
        seat.rank = seat.rank if seat.rank is not None else rank
        if ts is not None:
            seat.first = ts if seat.first is None else min(seat.first, ts)
    if not seats:
        return []
    found = [seats[key] for key in sorted(seats)]
    for number, seat in enumerate(found):
        seat.number = number
    return [Attempt(1, 0, found, min((seat.first for seat in found if seat.first is not None), default=None))]


def _fill(attempt: Attempt) -> None:
    """Seats for the ranks that nobody has logs of, on the node and the device that the order of the others suggests."""
    width = layout(attempt)
    present = {seat.rank for seat in attempt.seats}
    by_block = {(seat.rank or 0) // width: (seat.node, seat.server) for seat in attempt.seats} if width else {}
    for rank in range(min(attempt.ranks, 1 << 16)):
        if rank not in present:
            node, server = by_block.get(rank // width, ("", "")) if width else ("", "")
            device = rank % width if width else None
            attempt.seats.append(Seat(0, rank, node, server, device, device, known=False))
    attempt.seats.sort(key=lambda seat: (seat.rank if seat.rank is not None else 1 << 30, seat.node, seat.pid or 0))
    for number, seat in enumerate(attempt.seats):
        seat.number = number


def layout(attempt: Attempt) -> int:
    """Ranks of one node, where they are numbered node by node and device by device; 0 where they are not, or where too few are known."""
    known = [seat for seat in attempt.seats if seat.known and seat.rank is not None and seat.device is not None]
    for width in (8, 16, 4, 2):
        if attempt.ranks % width or len(known) < 2:
            continue
        blocks: dict[int, set[str]] = defaultdict(set)
        for seat in known:
            blocks[seat.rank // width].add(seat.node or seat.server)  # type: ignore[operator]
        owners = Counter(name for names in blocks.values() for name in names)
        devices = all(seat.device == seat.rank % width or seat.physical == seat.rank % width for seat in known)  # type: ignore[operator]
        if devices and all(len(names) == 1 for names in blocks.values()) and max(owners.values()) == 1:
            return width
    return 0


def missing_seat(attempt: Attempt, server: str, device: int) -> Seat | None:
    """The seat without logs that a server without logs must have: by the one block of ranks that is open, or by the order of addresses."""
    width = layout(attempt)
    if not width:
        return None
    owners = {seat.rank // width: seat.server for seat in attempt.seats if seat.known and seat.rank is not None}
    open_blocks = sorted({seat.rank // width for seat in attempt.seats if not seat.known and seat.rank is not None} - set(owners))
    if len(open_blocks) > 1:
        own, order = _order(server), {block: _order(name) for block, name in owners.items()}
        if own is None or None in order.values():
            return None
        placed = sorted((block, value) for block, value in order.items() if value is not None)
        steps = {value - block for block, value in placed}
        if len(steps) == 1:  # addresses counted up node by node
            open_blocks = [block for block in open_blocks if block + min(steps) == own]
        if [value for _, value in placed] != sorted(value for _, value in placed):
            return None
        open_blocks = [block for block in open_blocks if all((value < own) == (other < block) for other, value in placed)]
    if len(open_blocks) != 1:
        return None
    seat = attempt.of_rank(open_blocks[0] * width + device)
    if seat is not None and not seat.known:
        for one in attempt.seats:
            if one.rank is not None and one.rank // width == open_blocks[0] and not one.known:
                one.server, one.node = server, one.node or server
    return seat


def _order(address: str) -> int | None:
    try:
        return int(ipaddress.ip_address(address))
    except ValueError:
        return None


def numbers(ranks: Sequence[int]) -> str:
    """1, 3, 5-7."""
    out: list[str] = []
    start = previous = None
    for rank in [*ranks, None]:
        if previous is not None and rank == previous + 1:
            previous = rank
            continue
        if start is not None:
            out.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = rank
    return ", ".join(out)
