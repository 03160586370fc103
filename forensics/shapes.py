"""Shapes of all lines of a bundle, counted: what is left of a line without its numbers, hexadecimal and punctuation.

Two lines that differ in times, pids, addresses, counters or lengths of lists have one shape. The letters a to f go with the digits, so no
look at single words is needed and a block is shaped at the speed of `bytes.translate`; other words still differ in the letters that stay.

>>> skeletons(b"[ERROR] HCCL(88,python3): rank 3 lost after 0x7f3a s\\n[ERROR] HCCL(91,python3): rank 12 lost after 0x1b2 s")
[b'RRORHLpythonrnklosttrxs', b'RRORHLpythonrnklosttrxs']

A minus in front of a number stays: memory that is left is one shape, and memory that is not another. Of tables and answers of tools the
values are kept as well, as long as a shape has no more than a few.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import msgspec

from forensics.bundle import Bundle
from forensics.feed import Block, Task
from forensics.pool import Failed, Pool
from forensics.several import Several
from parsers import registry
from parsers.base import clean

SHAPES = 300_000
"""Shapes kept with their text; beyond, their numbers only."""
KEYS = 4_000_000
TEXT = 1000
"""Bytes kept of a shape's first line."""
_BAR = b"\xe2\x96\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
_VARIABLE = bytes(b for b in range(256) if not (0x67 <= b <= 0x7A or 0x47 <= b <= 0x5A or b >= 0x80) or b in _BAR)
"""All but the letters from g on and other scripts; bars of progress are no text either."""
_NEGATIVE = re.compile(rb" -(?=[0-9])")
_DROPPED = _VARIABLE.replace(b"\n", b"")
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")


def skeletons(data: bytes) -> list[bytes]:
    """The shape of each line; of the lines of a progress bar, which share one, the first."""
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    if b" -" in data:
        data = _NEGATIVE.sub(b"\xff", data)
    return data.translate(None, _DROPPED).split(b"\n")


def key_of(skeleton: bytes) -> int:
    """A number for a shape, the same in every process."""
    return int.from_bytes(hashlib.blake2b(skeleton, digest_size=8).digest(), "big")


VALUES = 4
"""Different lines of one shape that are kept of tables; with more, the values say nothing."""
TABLES = frozenset({"npu-smi", "hccn-tool", "environment", "bbox", "text"})
TABLE_BYTES = 1 << 20
"""A larger member is a log."""


class Value(msgspec.Struct, gc=False):
    """One line of a table: how often it stands there, and where first."""

    count: int
    file_id: int
    line: int


class Shape(msgspec.Struct, gc=False):
    """Lines of one shape: how many, and the first of them."""

    count: int
    file_id: int = -1
    line: int = 0
    """From 1, in its member."""
    text: str = ""
    kind: str = ""
    """Source kind of the member."""
    ts: int | None = None
    """As printed, by `clock`."""
    clock: str = "none"
    severity: str = ""
    node: str = ""
    device: int | None = None


class Counted(msgspec.Struct):
    """All shapes of a bundle, by their numbers."""

    shapes: dict[int, Shape]
    lines: int
    crowded: bool
    """Whether there were more than could be kept."""
    files: list[str]
    """Path of each member, by its number."""
    values: dict[int, dict[str, Value]]
    """Of tables: shape -> its lines; more than VALUES of them where they vary."""


class _Seen(msgspec.Struct, array_like=True):
    """What one segment showed: counts, and the first lines of shapes that this process had not met."""

    file_id: int
    lines: int
    counts: dict[int, int]
    fresh: list[tuple[int, int, str]]
    """Shape, line in the segment from 0, text."""
    kind: str
    rows: list[tuple[int, int, str, int]]
    """Of a table: shape, line, text, count."""


class _Work:
    def __init__(self) -> None:
        self._keys: dict[bytes, int] = {}
        self._shown: set[int] = set()

    def work(self, task: Task, block: Block) -> list[_Seen]:
        out = []
        for segment in task.segments:
            table = segment.kind in TABLES and segment.first and segment.last and segment.end - segment.start <= TABLE_BYTES
            out.append(self._segment(segment.file_id, segment.kind, block[segment.start : segment.end], table))
        return out

    def finish(self) -> None:
        return None

    def _segment(self, file_id: int, kind: str, data: bytes, table: bool) -> _Seen:
        skeleton_of_line = skeletons(data)
        if not skeleton_of_line[-1] and data.endswith(b"\n"):
            skeleton_of_line.pop()
        counted = Counter(skeleton_of_line)
        counted.pop(b"", None)
        counts: dict[int, int] = {}
        fresh: dict[bytes, int] = {}
        if len(self._keys) > KEYS:
            self._keys.clear()
        for skeleton, count in counted.items():
            key = self._keys.get(skeleton)
            if key is None:
                key = self._keys[skeleton] = key_of(skeleton)
            counts[key] = counts.get(key, 0) + count
            if key not in self._shown and len(self._shown) < SHAPES:
                self._shown.add(key)
                fresh[skeleton] = key
        rows = self._rows(skeleton_of_line, data) if table else []
        return _Seen(file_id, len(skeleton_of_line), counts, self._first(skeleton_of_line, fresh, data), kind, rows)

    def _rows(self, skeleton_of_line: list[bytes], data: bytes) -> list[tuple[int, int, str, int]]:
        rows: dict[tuple[int, bytes], list[int]] = {}
        for number, (skeleton, line) in enumerate(zip(skeleton_of_line, data.split(b"\n"), strict=False)):
            if skeleton:
                row = rows.setdefault((self._keys.get(skeleton) or key_of(skeleton), b" ".join(line[:TEXT].split())), [number, 0])
                row[1] += 1
        return [(key, number, clean(line.decode("utf-8", "replace")), count) for (key, line), (number, count) in rows.items()]

    @staticmethod
    def _first(skeleton_of_line: list[bytes], fresh: dict[bytes, int], data: bytes) -> list[tuple[int, int, str]]:
        if not fresh:
            return []
        out, lines = [], data.split(b"\n")
        for number, skeleton in enumerate(skeleton_of_line):
            key = fresh.pop(skeleton, None)
            if key is not None:
                out.append((key, number, clean(lines[number][:TEXT].decode("utf-8", "replace"))))
                if not fresh:
                    break
        return out


def count(bundle: Bundle | Several, workers: int | None = None) -> Counted:
    """Count the shapes of a bundle that has not been read yet (or was opened again). The same for every number of workers."""
    pool: Pool[list[_Seen]] = Pool(bundle.members(), lambda _: _Work(), workers)
    shapes: dict[int, Shape] = {}
    total, crowded = 0, False
    lines: dict[int, int] = {}
    values: dict[int, dict[str, Value]] = {}
    for _, result in pool.results():
        if isinstance(result, Failed):
            continue  # the first pass has named it
        for seen in result:
            before = lines.get(seen.file_id, 0)
            for key, number in seen.counts.items():
                shape = shapes.get(key)
                if shape is not None:
                    shape.count += number
                elif len(shapes) < KEYS:
                    shapes[key] = Shape(number)
                else:
                    crowded = True
            for key, line, text in seen.fresh:
                shape = shapes.get(key)
                if shape is not None and not shape.text:
                    shape.file_id, shape.line, shape.text, shape.kind = seen.file_id, before + line + 1, text, seen.kind
            for key, line, text, number in seen.rows:
                kept = values.setdefault(key, {})
                if text in kept:
                    kept[text].count += number
                elif len(kept) <= VALUES:
                    kept[text] = Value(number, seen.file_id, before + line + 1)
            lines[seen.file_id] = before + seen.lines
            total += seen.lines
    return Counted(shapes, total, crowded or len(shapes) > SHAPES, [file.path for file in pool.feed.files], values)


def dated(shape: Shape) -> None:
    """Read the head of a shape's first line: time, severity, where from."""
    record = registry.parser(shape.kind).record(shape.text) if shape.kind else None
    if record is not None:
        shape.ts, shape.clock, shape.severity = record.ts, record.clock, record.severity
        shape.node, shape.device = record.node, record.device
