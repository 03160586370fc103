"""When error lines were printed: every one of them in small files, a sample in large ones, so that a storm of errors costs no more time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from forensics.clocks import FileClock
from parsers.rows import Record
from rules.scan import Marked

FEW = 10
"""Error lines of one segment whose time is read."""
MORE, SMALL = 200, 256 << 10
"""The same of a segment of at most so many bytes."""
STORMS, PIECES = 4, 6
"""Kinds of lines of one segment that are more than the scanner keeps places of: these are spread evenly, in so many pieces, over the time
up to their last."""
KEPT = 200_000
"""Moments kept of all files; beyond, every two neighbours of one file become one."""

Moment = tuple[int, str, int]
"""Printed time, its clock, and the error lines it stands for."""
Place = tuple[int, int, int]
"""Of a line in its segment: number, begin, end."""
Head = Callable[[int, int], tuple[Record | None, str, int]]


def sampled(marked: Sequence[Marked], size: int, head: Head) -> list[Moment]:
    """Moments of the error lines of a segment of `size` bytes. `head` reads the head of the record that a line belongs to. Lines whose
    record has no time have no moment."""
    most = MORE if size <= SMALL else FEW
    stride = max(1, sum(len(kind.lines) for kind in marked) // (8 * most))
    known: list[tuple[Place, int]] = []
    storms: list[tuple[int, Place, Place]] = []
    for kind in marked:
        rest = kind.count - len(kind.lines)
        if rest > 0:
            storms.append((rest, kind.lines[-1], kind.last))
        places = len(kind.lines)
        known += [(kind.lines[n], min(stride, places - n)) for n in range(0, places, stride)]
    storms.sort(key=lambda storm: (-storm[0], storm[1]))
    known += [(place, rest) for rest, place, _ in storms[STORMS:]]
    known.sort()
    out: list[Moment] = []
    count = len(known)
    taken = min(count, most)
    for n in range(taken):
        first, after = n * count // taken, (n + 1) * count // taken
        when = _time(known[first][0], head)
        if when is None:
            continue
        lines = sum(weight for _, weight in known[first:after])
        if out and out[-1][:2] == when:
            out[-1] = *when, out[-1][2] + lines
        else:
            out.append((*when, lines))
    for rest, start, stop in storms[:STORMS]:
        out += _spread(rest, _time(start, head), _time(stop, head))
    return out


def _time(place: Place, head: Head) -> tuple[int, str] | None:
    record = head(place[1], place[2])[0]
    return None if record is None or record.ts is None else (record.ts, record.clock)


def _spread(lines: int, begin: tuple[int, str] | None, end: tuple[int, str] | None) -> list[Moment]:
    """`lines` between two times of one clock."""
    if begin is None or end is None or begin[1] != end[1]:
        one = begin or end
        return [] if one is None else [(*one, lines)]
    cuts = [lines * n // PIECES for n in range(PIECES + 1)]
    return [
        (begin[0] + (end[0] - begin[0]) * n // PIECES, begin[1], after - before)
        for n, (before, after) in enumerate(pairwise(cuts), 1)
        if after > before
    ]


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
