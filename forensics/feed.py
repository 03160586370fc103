"""Members of a bundle, laid into blocks of shared memory that are cut at record heads: what both passes read from.

A block holds segments: whole small members, or pieces of large ones. Where a block is cut depends on the bytes alone, so every
number of workers sees the same blocks. A member in another encoding is turned into UTF-8 lines on its way in (`transcode`).
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from forensics import transcode
from parsers import registry
from parsers.base import clean
from parsers.profile import TABLES

BLOCK = 8 << 20
"""Bytes of a block."""
WHOLE = 4 << 20
"""A member up to this size lies in one segment."""
HEAD = 64 << 10
"""Bytes that the kind of a member is judged by."""
LINE = 1 << 20
"""A longer line is kept as its first LINE_HEAD and its last LINE_TAIL bytes where it does not fit into a block."""
LINE_HEAD, LINE_TAIL = 64 << 10, 4 << 10
SEGMENTS = 2000
"""Members in one block; a description of so many fits into ROOM."""
ROOM = 512 << 10
"""Bytes behind a block in which it is described to the process that works on it."""
BACK = 64
"""Lines that are tried, from the end of a full block backwards, for one that begins a record."""


class Source(Protocol):
    """What is needed of a member (forensics.bundle.Member has it)."""

    path: str
    size: int | None
    mtime: float | None

    def readinto(self, view: memoryview) -> int: ...


class File(msgspec.Struct, gc=False):
    """A member as it was read. Text is what its kind and encoding were judged by."""

    file_id: int
    path: str
    kind: str
    encoding: str
    """utf-8, utf-8-sig, utf-16-le, utf-16-be, gb18030, latin-1, docker-json (turned into lines), cr (lines that end in CR)."""
    mtime: float | None
    bytes: int = 0
    text: int = 0
    """Bytes handed on as text; for a plain UTF-8 member the same as `bytes`."""
    lines: int = 0
    """Line ends so far, where they are counted."""
    cut_lines: int = 0
    """Lines that were too long to be kept whole."""


class Segment(msgspec.Struct, array_like=True):
    """A piece of one member: bytes `start` to `end` of a block."""

    file_id: int
    kind: str
    encoding: str
    start: int
    end: int
    base: int
    """Where it begins in the member, in bytes of the member (before transcoding)."""
    first: bool
    last: bool
    line: int = 0
    """Lines of the member before it, where they are counted."""


class Task(msgspec.Struct, array_like=True):
    """One filled block."""

    number: int
    block: int
    segments: list[Segment]

    @property
    def size(self) -> int:
        return self.segments[-1].end if self.segments else 0


Block = mmap.mmap

Divert = Callable[["File", "Source", bytes], None]
"""(file, member, what was read of it): reads a member of a kind in TABLES to its end and sets the sizes of the file."""
Known = Callable[[int, str], "tuple[str, str] | None"]
"""(file id, path) -> kind and encoding of the member, where they are known."""


def new_block() -> Block:
    """A block that forked processes share, with ROOM behind it."""
    return mmap.mmap(-1, BLOCK + ROOM)


class Feed:
    """Fills blocks with the members of a bundle, in order; `files` grows as it goes."""

    def __init__(
        self,
        members: Iterator[Source],
        blocks: list[Block],
        acquire: Callable[[], int],
        count: Callable[[memoryview], int] | None = None,
        known: Known | None = None,
        divert: Divert | None = None,
    ):
        """`acquire` gives the index of a block that nobody reads any more, waiting for one if need be. `count` counts line ends,
        where segments have to know their line. `known`: what an earlier pass judged members to be, so that they are not judged again.
        `divert` takes what is read as tables, not as lines; without it such members are passed over."""
        self.divert = divert
        self.members, self.blocks, self.acquire, self.count, self.known = members, blocks, acquire, count, known
        self.files: list[File] = []
        self._number = 0
        self._segments: list[Segment] = []
        self._used = 0
        self._block = -1

    def tasks(self) -> Iterator[Task]:
        """Every block as soon as it is full; it may be changed again once `acquire` has given it out."""
        for member in self.members:
            if self._used > BLOCK - WHOLE or len(self._segments) >= SEGMENTS:
                yield self._flush()
            yield from self._member(member)
        if self._segments:
            yield self._flush()

    def _flush(self) -> Task:
        task = Task(self._number, self._block, self._segments)
        self._number += 1
        self._segments, self._used, self._block = [], 0, -1
        return task

    def _view(self) -> memoryview:
        if self._block < 0:
            self._block = self.acquire()
        return memoryview(self.blocks[self._block])[:BLOCK]

    def _member(self, member: Source) -> Iterator[Task]:
        view = self._view()
        start = self._used
        ready = _fill(member, view, start, min(start + HEAD, BLOCK))
        head = bytes(view[start:ready])
        judged = self.known(len(self.files), member.path) if self.known is not None else None
        if judged is None:
            seen = registry.classify(member.path, head)
            judged = seen.kind, transcode.form(seen.encoding, head)
        kind, encoding = judged
        file = File(len(self.files), member.path, kind, encoding, member.mtime, bytes=ready - start)
        self.files.append(file)
        if kind in TABLES and self.divert is not None:
            self.divert(file, member, head)
            return
        if kind == "binary" or kind in TABLES:
            file.bytes += _drain(member)
            return
        reader: Source = member
        turned: transcode.Lines | None = None
        if encoding == "utf-8-sig":
            start += 3
        elif encoding != "utf-8":
            turned = transcode.Lines(member, head, encoding)
            reader, ready = turned, start
        base = len(transcode.Lines.mark(head, encoding)) if encoding != "utf-8" else 0
        first = True
        record = registry.parser(kind).record
        while True:
            filled = _fill(reader, view, ready, BLOCK)
            if reader is member:
                file.bytes += filled - ready
            ended = filled < BLOCK
            if ended:
                if filled > start:
                    self._add(file, start, filled, base, first, True)
                break
            at = cut(self.blocks[self._block], start, filled, record)
            if at == start and start > HEAD:  # nothing of this member fits: begin it in the next block
                rest = bytes(view[start:filled])
            elif at == start:  # a line longer than a block
                at, lost, rest = self._squeeze(reader, view, start)
                file.cut_lines += 1
                if reader is member:
                    file.bytes += lost + at - start + len(rest) - (filled - start)
                self._add(file, start, at, base, first, False)
                base += lost
            else:
                rest = bytes(view[at:filled])
                self._add(file, start, at, base, first, False)
            if at > start:
                base += transcode.raw_size(view[start:at], encoding)
                first = False
            yield self._flush()
            view = self._view()
            view[: len(rest)] = rest
            start, ready = 0, len(rest)
        if turned is not None:
            file.bytes = turned.bytes_read

    def _add(self, file: File, start: int, end: int, base: int, first: bool, last: bool) -> None:
        self._segments.append(Segment(file.file_id, file.kind, file.encoding, start, end, base, first, last, file.lines))
        if self.count is not None:
            file.lines += self.count(memoryview(self.blocks[self._block])[start:end])
        file.text += end - start
        self._used = end

    def _squeeze(self, reader: Source, view: memoryview, start: int) -> tuple[int, int, bytes]:
        """Of a line that begins at `start` and fills the block, keep head and tail. Returns its end in the block, the number of
        bytes dropped, and what was read beyond it."""
        scratch = memoryview(bytearray(LINE))
        tail = bytes(view[BLOCK - LINE_TAIL : BLOCK])
        total, rest = BLOCK - start, b""
        while count := reader.readinto(scratch):
            piece = bytes(scratch[:count])
            stop = piece.find(b"\n") + 1
            tail = (tail + (piece[:stop] if stop else piece))[-LINE_TAIL:]
            total += stop or count
            if stop:
                rest = piece[stop:]
                break
        end = start + LINE_HEAD + 5 + len(tail)
        view[start + LINE_HEAD : end] = b" ... " + tail
        return end, total - (end - start), rest


def _fill(source: Source, view: memoryview, start: int, stop: int) -> int:
    while start < stop:
        count = source.readinto(view[start:stop])
        if not count:
            break
        start += count
    return start


def _drain(source: Source) -> int:
    scratch = memoryview(bytearray(LINE))
    total = 0
    while count := source.readinto(scratch):
        total += count
    return total


def cut(block: Block, start: int, end: int, record: Callable[[str], object]) -> int:
    """Where to cut a full block: before the last line that begins a record, else after the last line end, else at `start`."""
    last = block.rfind(b"\n", start, end) + 1
    if not last:
        return start
    stop, floor = last, max(start, last - LINE)
    for _ in range(BACK):
        at = block.rfind(b"\n", floor, stop - 1) + 1
        if not at:
            break
        line = bytes(block[at : min(stop - 1, at + LINE_HEAD)]).decode("utf-8", "replace")
        if record(clean(line)) is not None:
            return at
        stop = at
    return last
