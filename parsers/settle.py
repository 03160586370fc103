"""Which zone each file's clock shows: the seconds to subtract from its printed times to get UTC, and how sure that is.

    >>> host = ClockEvidence(1, "n0", "noyear", first=8 * 3600 * SECOND, twins={"heartbeat lost device 1": 8 * 3600 * SECOND + 5})
    >>> other = ClockEvidence(2, "n0", "utc", twins={"heartbeat lost device 1": 7})
    >>> settle([host, other])[1]
    Offset(seconds=28800, sure='measured', why='twin', weight=1)
    >>> settle([ClockEvidence(1, "n0", "local")])[1], settle([ClockEvidence(1, "n0", "local")], given=8 * 3600)[1].seconds
    (Offset(seconds=0, sure='assumed', why='default', weight=0), 28800)

Containers mostly run in UTC and hosts in local time, so files of one node differ by whole hours. The zone of a file follows, best first:
from a clock that is UTC or prints its zone; from zones its own lines state; from twins, lines of the same text in two files whose times
differ by a multiple of half an hour; from the same process writing both; from a file name in host time beside a first line in device
time; from the time at which the file was last written; from errors of its node that come at the same moment; from what the user says
(`given`); from the zone its node, or most nodes, state. Clocks of devices may be off by any amount: twins measure it, and where there
are none they are taken to be UTC.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

import msgspec

from parsers.clock import SECOND, UNSET

HALF_HOUR = 1800
WIDEST = 26 * 3600
"""Two clocks on Earth differ by no more: UTC-12 against UTC+14."""
TWIN_SLACK = 3 * SECOND
"""Twins are written within this time of each other."""
NAME_SLACK = 180
MOMENT_SLACK = 5 * SECOND
"""A fault shows in the logs of the host and of the process within this time."""
CHINA = 8 * 3600
"""The zone of hosts whose containers run in UTC, nearly always."""
WRITE_SLACK = 20
"""Seconds between the last record of a file and its last write."""
COMMON = 40
"""A text that stands in more files than this tells nothing apart."""


_TAGS = re.compile(r"^(?:\[[A-Z_]{2,16}\])+ ?")
"""Phases that plog prints before a text which consoles print bare: [INIT][DEFAULT]."""


class ClockEvidence(msgspec.Struct, frozen=True):
    """What one file says about its clock. All times in microseconds as printed; of yearless stamps, with their year."""

    file_id: int
    node: str
    clock: str
    """As in `Record.clock`."""
    first: int | None = None
    last: int | None = None
    twins: dict[str, int] = {}
    """Distinctive texts (`twin_key`) and the time at which this file has each, of texts that it has once."""
    zones: tuple[int, ...] = ()
    """Seconds east of UTC that the file states about its own clock."""
    named: int | None = None
    """The time in the file's name, which is host time also where the lines are device time."""
    mtime: float | None = None
    """Last write, seconds since 1970; leave it out where the archive keeps local times (zip)."""
    process: str = ""
    """Who wrote it, such as the pid within one container; files of one process share its zone."""


Sureness = Literal["exact", "measured", "likely", "given", "assumed", "unset"]
Reason = Literal["utc", "stated", "twin", "process", "name", "written", "moment", "given", "node", "nodes", "default", "unset"]


class Offset(msgspec.Struct, frozen=True):
    """What to subtract from a file's printed times."""

    seconds: int
    sure: Sureness
    """exact: the clock is UTC or prints its zone; unset: the clock was never set (1970), its times order lines only within the file."""
    why: Reason
    weight: int = 0
    """How many observations agree."""


def twin_key(message: str) -> str:
    """The text by which a line is recognised in another file; empty for a text that is too common or too short to be one."""
    text = _TAGS.sub("", message.strip())[:200]
    letters = sum(letter.isalpha() for letter in text)
    return text if len(text) >= 32 and letters >= 16 and any(letter.isdigit() for letter in text) else ""


def settle(files: Iterable[ClockEvidence], given: int | None = None) -> dict[int, Offset]:
    """The offset of every file that has a wall clock, by file id; the same for the same evidence in any order.

    `given`: the zone of the local clocks that the user names, in seconds east of UTC.
    """
    files = sorted(files, key=lambda one: one.file_id)
    known: dict[int, Offset] = {}
    open_files: dict[int, ClockEvidence] = {}
    for one in files:
        if one.clock in ("utc", "zoned"):
            known[one.file_id] = Offset(0, "exact", "utc")
        elif one.clock not in ("local", "noyear", "device"):
            continue
        elif one.clock != "noyear" and one.last is not None and one.last < UNSET:
            known[one.file_id] = Offset(0, "unset", "unset")
        elif len(set(one.zones)) == 1:
            known[one.file_id] = Offset(one.zones[0], "measured", "stated", len(one.zones))
        else:
            open_files[one.file_id] = one
    edges = _edges(files, open_files)
    _spread(known, open_files, edges)
    _by_writing(known, open_files)
    _spread(known, open_files, edges)
    _by_moments(files, known, open_files)
    _spread(known, open_files, edges)
    zones = _zones(files, known)
    for one in list(open_files.values()):  # devices last: their own twins were asked first
        if one.file_id in open_files and one.clock == "device":
            known[one.file_id] = Offset(0, "assumed", "default")
            del open_files[one.file_id]
    _spread(known, open_files, edges)
    groups = _groups(open_files, edges)
    for group in sorted(groups, key=lambda group: (max(group.values()) == 0, min(group))):  # those that span zones first: they tell of the others
        alike = _alike(group, files, known) if max(group.values()) == 0 and given is None else None
        offset = alike or _of_group(group, open_files, zones, given)
        for file_id, printed_ahead in group.items():
            known[file_id] = msgspec.structs.replace(offset, seconds=offset.seconds + printed_ahead)
    return known


class _Edge(msgspec.Struct, frozen=True):
    """`file` prints times that are `ahead` seconds later than those of the file the edge hangs on."""

    weight: int
    file: int
    ahead: int
    why: Reason


def _edges(files: list[ClockEvidence], open_files: dict[int, ClockEvidence]) -> dict[int, list[_Edge]]:
    by_key: dict[tuple[str, str], list[ClockEvidence]] = defaultdict(list)
    by_process: dict[tuple[str, str], list[ClockEvidence]] = defaultdict(list)
    by_device: dict[tuple[str, str], list[ClockEvidence]] = defaultdict(list)
    for one in files:
        if one.clock in ("none", "boot") or (one.clock != "noyear" and one.last is not None and one.last < UNSET):
            continue
        for key in one.twins:
            by_key[one.node, key].append(one)
        if one.process and one.clock in ("local", "device"):
            (by_process if one.clock == "local" else by_device)[one.node, one.process].append(one)
    votes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (_, key), sharing in by_key.items():
        if len(sharing) <= COMMON:
            for k, one in enumerate(sharing):
                for other in sharing[k + 1 :]:
                    if one.file_id in open_files or other.file_id in open_files:
                        votes[one.file_id, other.file_id].append(other.twins[key] - one.twins[key])
    clocks = {one.file_id: one.clock for one in files}
    edges: dict[int, list[_Edge]] = defaultdict(list)

    def tie(one: int, other: int, ahead: int, weight: int, why: Reason) -> None:
        edges[one].append(_Edge(weight, other, ahead, why))
        edges[other].append(_Edge(weight, one, -ahead, why))

    for (one_id, other_id), apart in sorted(votes.items()):
        ahead, weight = _agreed(apart, "device" in (clocks[one_id], clocks[other_id]))
        if weight:
            tie(one_id, other_id, ahead, weight, "twin")
    for process, writers in by_process.items():
        for one, other in pairwise(writers):
            tie(one.file_id, other.file_id, 0, 1, "process")
        for one in by_device.get(process, ()):
            if one.named is not None and one.first is not None:
                ahead, off = _half_hours(one.named - one.first)
                if off <= NAME_SLACK * SECOND:
                    tie(one.file_id, writers[0].file_id, ahead, 1, "name")
    return edges


def _half_hours(apart: int) -> tuple[int, int]:
    """The nearest multiple of half an hour in seconds, and how far it is, in microseconds."""
    near = round(apart / (HALF_HOUR * SECOND)) * HALF_HOUR
    return near, abs(apart - near * SECOND) if abs(near) <= WIDEST else WIDEST * SECOND


def _agreed(apart: list[int], any_amount: bool) -> tuple[int, int]:
    """What most twins of two files agree on: (seconds, number of twins); number 0 where they do not."""
    votes = Counter(near for near, off in map(_half_hours, apart) if off <= TWIN_SLACK)
    if votes:
        weight, ahead = max((count, -abs(near), near) for near, count in votes.items())[0::2]
        if weight * 5 >= len(apart) * 3:
            return ahead, weight
    if any_amount and len(apart) >= 2:
        middle = sorted(apart)[len(apart) // 2]
        weight = sum(abs(one - middle) <= TWIN_SLACK for one in apart)
        if weight >= 2 and weight * 5 >= len(apart) * 3:
            return round(middle / SECOND), weight
    return 0, 0


def _spread(known: dict[int, Offset], open_files: dict[int, ClockEvidence], edges: dict[int, list[_Edge]]) -> None:
    """Carry known offsets along the edges, the heaviest first."""
    ways: list[tuple[int, bool, int, int, int]] = []

    def offer(file_id: int) -> None:
        if known[file_id].sure != "unset":
            for k, edge in enumerate(edges.get(file_id, ())):
                if edge.file in open_files:
                    heapq.heappush(ways, (-edge.weight, edge.why != "twin", edge.file, file_id, k))

    for file_id in sorted(known):
        offer(file_id)
    while ways:
        _, _, to, file_id, k = heapq.heappop(ways)
        if to not in open_files:
            continue
        edge, source = edges[file_id][k], known[file_id]
        sure: Sureness = "measured" if source.sure == "exact" else source.sure
        if sure == "assumed" and edge.ahead:
            sure = "likely"  # a clock that is whole hours off what was taken for UTC bears that out
        known[to] = Offset(source.seconds + edge.ahead, sure, edge.why, edge.weight)
        del open_files[to]
        offer(to)


def _by_writing(known: dict[int, Offset], open_files: dict[int, ClockEvidence]) -> None:
    """A log is last written when its last record is: the difference to that time, where it is a zone, is the file's zone."""
    found: dict[int, int] = {}
    for one in open_files.values():
        if one.mtime is not None and one.last is not None and one.clock != "device":
            ahead, off = _half_hours(one.last - round(one.mtime * SECOND))
            if off <= WRITE_SLACK * SECOND and -12 * 3600 <= ahead <= 14 * 3600:
                found[one.file_id] = ahead
    agreeing = Counter((open_files[file_id].node, ahead) for file_id, ahead in found.items())
    for file_id, ahead in found.items():
        known[file_id] = Offset(ahead, "likely", "written", agreeing[open_files[file_id].node, ahead])
        del open_files[file_id]


def _by_moments(files: list[ClockEvidence], known: dict[int, Offset], open_files: dict[int, ClockEvidence]) -> None:
    """Errors of one node that are whole zones apart are of one moment: of two such, or of one where the zone is the usual one and no
    error fits without it."""
    moments: dict[str, set[int]] = defaultdict(set)
    for one in files:
        offset = known.get(one.file_id)
        if offset is not None and offset.sure in ("exact", "measured"):
            moments[one.node].update(ts - offset.seconds * SECOND for ts in one.twins.values())
    for one in list(open_files.values()):
        if one.clock == "device" or not moments[one.node]:
            continue
        votes: Counter[int] = Counter()
        for ts in set(one.twins.values()):
            near = (_half_hours(ts - moment) for moment in moments[one.node])
            votes.update({zone for zone, off in near if off <= MOMENT_SLACK and -12 * 3600 <= zone <= 14 * 3600})
        zone = max(votes, key=lambda zone: (votes[zone], zone == CHINA, -abs(zone)), default=0)
        if zone and votes[zone] > votes[0] and (votes[zone] > 1 or (zone == CHINA and len(votes) == 1)):
            known[one.file_id] = Offset(zone, "likely", "moment", votes[zone])
            del open_files[one.file_id]


def _zones(files: list[ClockEvidence], known: dict[int, Offset]) -> dict[str, tuple[int, int]]:
    """The zone each node states or was measured to have, as (seconds, number of files); under "" that of most nodes."""
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for one in files:
        stated = set(one.zones) - {0}
        offset = known.get(one.file_id)
        if offset is not None and offset.sure in ("measured", "likely") and one.clock != "device" and offset.seconds:
            stated.add(offset.seconds)
        for zone in stated:
            counts[one.node][zone] += 1
            counts[""][zone] += 1
    return {node: max(((zone, count) for zone, count in zones.items()), key=lambda item: (item[1], -item[0])) for node, zones in counts.items()}


def _groups(open_files: dict[int, ClockEvidence], edges: dict[int, list[_Edge]]) -> list[dict[int, int]]:
    """All open files, those that hang together in one group each."""
    groups: list[dict[int, int]] = []
    for file_id in open_files:
        if not any(file_id in group for group in groups):
            groups.append(_group(file_id, open_files, edges))
    return groups


def _alike(group: dict[int, int], files: list[ClockEvidence], known: dict[int, Offset]) -> Offset | None:
    """The offset that all settled files with the same kind of clock have, where it is one and was measured: consoles of all nodes are
    mostly set up alike."""
    clocks = {one.clock for one in files if one.file_id in group}
    same = [known[one.file_id] for one in files if one.clock in clocks and one.file_id in known and known[one.file_id].sure != "unset"]
    if len(clocks) == 1 and len({offset.seconds for offset in same}) == 1 and same[0].seconds:
        return Offset(same[0].seconds, "likely", "nodes", len(same))
    return None


def _group(start: int, open_files: dict[int, ClockEvidence], edges: dict[int, list[_Edge]]) -> dict[int, int]:
    """All open files that hang together with `start`, and how far ahead of it each prints, the least being 0."""
    ahead = {start: 0}
    todo = [start]
    while todo:
        one = todo.pop()
        for edge in sorted(edges.get(one, ()), key=lambda edge: (-edge.weight, edge.file)):
            if edge.file in open_files and edge.file not in ahead:
                ahead[edge.file] = ahead[one] + edge.ahead
                todo.append(edge.file)
    least = min(ahead.values())
    return {file_id: value - least for file_id, value in ahead.items()}


def _of_group(group: dict[int, int], open_files: dict[int, ClockEvidence], zones: dict[str, tuple[int, int]], given: int | None) -> Offset:
    """The offset of the file of a group that prints the earliest times. Where the group spans zones, that file is taken to run in
    UTC, unless the zone is known: then the file that prints the latest times has it."""
    most = max(group.values())
    if given is not None:
        return Offset(given - most, "given", "given")
    node = open_files[min(group)].node
    if node in zones:
        return Offset(zones[node][0] - most, "likely", "node", zones[node][1])
    if most:
        return Offset(0, "assumed", "default")
    if "" in zones:
        return Offset(zones[""][0], "likely", "nodes", zones[""][1])
    return Offset(0, "assumed", "default")
