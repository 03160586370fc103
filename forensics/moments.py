"""When error lines were printed: every one of them in small files, a sample in large ones, so that a storm of errors costs no more time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from forensics.clocks import FileClock
from parsers.rows import Record

FEW = 24
"""Error lines of one segment whose time is read."""
MORE, SMALL = 200, 256 << 10
"""The same of a segment of at most so many bytes."""
KEPT = 200_000
"""Moments kept of all files; beyond, every two neighbours of one file become one."""

Moment = tuple[int, str, int]
"""Printed time, its clock, and the error lines it stands for."""


def sampled(
    marked: Sequence[tuple[int, int, int, tuple[int, ...]]], size: int, head: Callable[[int, int], tuple[Record | None, str, int]]
) -> list[Moment]:
    """Moments of error lines, evenly spread over a segment of `size` bytes. `marked`: (line, begin, end, leaves) of each, `head`: reads
    the head of the record that a line belongs to. Lines whose record has no time have no moment."""
    count = len(marked)
    taken = min(count, MORE if size <= SMALL else FEW)
    out: list[Moment] = []
    for n in range(taken):
        first, after = n * count // taken, (n + 1) * count // taken
        _, start, end, _ = marked[first]
        record = head(start, end)[0]
        if record is None or record.ts is None:
            continue
        if out and out[-1][:2] == (record.ts, record.clock):
            out[-1] = record.ts, record.clock, out[-1][2] + after - first
        else:
            out.append((record.ts, record.clock, after - first))
    return out


class Moments:
    """Those of all files; they come in the order of files and lines."""

    def __init__(self) -> None:
        self.errors_of: dict[int, int] = {}
        self._kept: list[tuple[int, int, str, int]] = []

    def add(self, file_id: int, errors: int, moments: Sequence[Moment]) -> None:
        if errors:
            self.errors_of[file_id] = self.errors_of.get(file_id, 0) + errors
        self._kept += [(file_id, *moment) for moment in moments]
        if len(self._kept) > KEPT:
            self._kept = _thinned(self._kept)

    def dated(self, clocks: Mapping[int, FileClock]) -> list[tuple[int, int, int]]:
        """(file, UTC microseconds, error lines), of those whose clock is known."""
        times = ((file_id, clocks[file_id].utc(ts, clock), count) for file_id, ts, clock, count in self._kept)
        return [(file_id, ts, count) for file_id, ts, count in times if ts is not None]


def _thinned(moments: list[tuple[int, int, str, int]]) -> list[tuple[int, int, str, int]]:
    """Half as many, that stand for as many lines: of two neighbours in one file the first."""
    out: list[tuple[int, int, str, int]] = []
    joined = True
    for file_id, ts, clock, count in moments:
        if not joined and out[-1][0] == file_id:
            out[-1] = (*out[-1][:3], out[-1][3] + count)
            joined = True
        else:
            out.append((file_id, ts, clock, count))
            joined = False
    return out
