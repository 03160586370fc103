"""Printed times of the files of a bundle, brought to UTC: what each file's clock is, from what the scan saw of it."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median_low

import msgspec

from parsers import settle
from parsers.clock import DAY, SECOND, boot_time, in_year, year_of

_NONE: dict[str, int] = {}
UNTRUE = 946_684_800 * SECOND
"""Times before 2000 are those of a clock that was not set."""


class Told(msgspec.Struct, gc=False):
    """What the scan saw of one file's clock; times as printed."""

    file_id: int
    node: str
    clock: str
    first: int | None = None
    last: int | None = None
    twins: dict[str, int] | None = None
    """Text -> time, of lines by which this clock may be compared with others."""
    named: int | None = None
    mtime: float | None = None
    process: str = ""
    anchors: list[tuple[int, str, int]] | None = None
    """(wall time, its clock, uptime) of lines that print both."""
    zones: tuple[int, ...] = ()
    """Seconds east of UTC of its local times, where its lines give them away."""


class FileClock(msgspec.Struct, frozen=True, gc=False):
    """How to read the times that one file prints."""

    offset: int | None = None
    """Seconds to subtract from wall times; None where that is not known."""
    sure: str = ""
    """As in `settle.Offset`."""
    last: int | None = None
    """Last yearless stamp of the file, and its year, from which the others are dated."""
    year: int | None = None
    boot: int | None = None
    """UTC of uptime 0."""
    shift: int = 0
    """Microseconds by which the clock of its machine is ahead of those of the others."""

    def utc(self, ts: int | None, clock: str) -> int | None:
        """A printed time in UTC, None where it cannot be told."""
        found = self._utc(ts, clock)
        return None if found is None else found - self.shift

    def _utc(self, ts: int | None, clock: str) -> int | None:
        if ts is None or clock == "none":
            return None
        if clock in ("utc", "zoned"):
            return ts
        if clock == "boot":
            return None if self.boot is None else self.boot + ts
        if clock == "noyear":
            dated = self.dated(ts)
            return None if dated is None else dated - (self.offset or 0) * SECOND
        if ts < UNTRUE:
            return None
        return ts - (self.offset or 0) * SECOND

    def dated(self, ts: int) -> int | None:
        """A yearless stamp with its year: that of the file's last, or one beside it across New Year."""
        if self.year is None or self.last is None:
            return None
        year = self.year
        if ts - self.last > 183 * DAY:
            year -= 1
        elif self.last - ts > 183 * DAY:
            year += 1
        return in_year(ts, year)


def settled(told: list[Told], zone: int | None = None) -> dict[int, FileClock]:
    """The clock of every file. `zone`: that of local clocks, in seconds east of UTC, where the user says it."""
    near = _near(told)
    dated: dict[int, FileClock] = {}
    evidence = []
    for one in told:
        clock = FileClock()
        first, last, twins = one.first, one.last if one.last is not None else one.first, one.twins or _NONE
        if one.clock == "noyear" and last is not None:
            about = near.get(one.node, near.get("")) or (round(one.mtime * SECOND) if one.mtime else None)
            clock = FileClock(last=last, year=year_of(last, about))
            first, last = (clock.dated(ts) if ts is not None else None for ts in (first, last))
            twins = {key: at for key, ts in twins.items() if (at := ts if ts > UNTRUE else clock.dated(ts)) is not None}
        dated[one.file_id] = clock
        evidence.append(settle.ClockEvidence(one.file_id, one.node, one.clock, first, last, twins, one.zones, one.named, one.mtime, one.process))
    offsets = settle.settle(evidence, zone)
    out = {}
    alike: dict[FileClock, FileClock] = {}  # there may be a million files, and few different clocks
    for one in told:
        offset = offsets.get(one.file_id)
        clock = dated[one.file_id]
        if offset is not None:
            clock = msgspec.structs.replace(clock, offset=offset.seconds, sure=offset.sure)
        if one.anchors:
            walls = [(wall, up) for ts, name, up in one.anchors if (wall := clock.utc(ts, name)) is not None]
            clock = msgspec.structs.replace(clock, boot=boot_time(walls))
        out[one.file_id] = alike.setdefault(clock, clock)
    _share_boots(told, out)
    return out


def _near(told: Iterable[Told]) -> dict[str, int]:
    """A dated time close to the incident, by node, and under "" of all: the middle of the ends of files that print the year."""
    ends: dict[str, list[int]] = {}
    for one in told:
        if one.clock in ("local", "utc", "zoned", "device") and one.last is not None and one.last > UNTRUE:
            for node in {one.node, ""}:
                ends.setdefault(node, []).append(one.last)
    return {node: median_low(sorted(times)) for node, times in ends.items()}


def _share_boots(told: list[Told], clocks: dict[int, FileClock]) -> None:
    """A file with uptimes only takes the boot time of its node, where its node has just one."""
    boots: dict[str, set[int]] = {}
    for one in told:
        boot = clocks[one.file_id].boot
        if boot is not None:
            boots.setdefault(one.node, set()).add(boot)
    for one in told:
        if one.clock == "boot" and clocks[one.file_id].boot is None:
            known = boots.get(one.node, set())
            if known and max(known) - min(known) < 60 * SECOND:
                clocks[one.file_id] = msgspec.structs.replace(clocks[one.file_id], boot=min(known))
