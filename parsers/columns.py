"""Whole blocks of log lines as columns: the fast way to the rows that `Parser.record` would give, line by line.

Plain lines of the most frequent kinds are read by compiled code (`compiled`); all others, and all of small texts, by their parser.
Both ways give the same rows; a test holds them together. A record's message reaches to the end of its last continuation line; a blank
line that belongs to no record is no row.

>>> seen = Columns().read(b"[ERROR] GE(7,main):2025-10-14-06:12:40.118.362 [api.cc:12]9 Load:failed\\n  cause: none\\n", "plog")
>>> seen.rows, seen.message(0), seen.values["line_no"].tolist(), seen.values["n_lines"].tolist()
(1, 'failed\\n  cause: none', [1], [2])
>>> seen.text("module", 0), seen.text("function", 0), int(seen.values["tid"][0]), int(seen.values["src_line"][0])
('GE', 'Load', 9, 12)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from parsers import encoding, registry
from parsers.base import clean
from parsers.rows import Record

if TYPE_CHECKING:
    from parsers.compiled import Compiled

Ints = NDArray[np.int64]

NONE = -(1 << 62)
"""Stands for a value that is not there."""
CONTINUED = 2000
"""Lines one record may have; further ones stand alone."""
LINE, LINE_HEAD, LINE_TAIL = 1 << 20, 64 << 10, 4 << 10
"""A line longer than LINE is kept as its first LINE_HEAD and last LINE_TAIL characters."""
COMPILED_FROM = 1 << 20
"""Bytes of a segment from which the compiled code is worth its import."""
COMPILED_KINDS = frozenset({"plog", "device", "kernel", "console"})
TEXTS = 200_000
"""Different texts after which the table of texts is begun anew."""

NUMBERS = ("line_no", "n_lines", "offset", "ts", "device", "rank", "pid", "tid", "stream_id", "task_id", "src_line")
NAMES = ("source", "severity", "module", "process", "node", "function", "src_file", "code")


class Rows(msgspec.Struct):
    """Records of one segment as columns."""

    rows: int
    lines: int
    """Lines of the segment, a last one without an end included."""
    values: dict[str, Ints]
    """NUMBERS; `line_no` counts from 1 in the segment, `offset` is the byte at which the record begins in it."""
    names: dict[str, Ints]
    """NAMES, as indices into `texts`."""
    texts: list[str]
    start: Ints
    length: Ints
    """Where each message lies: bytes of `data`, or of `side` where `aside`."""
    aside: NDArray[np.bool_]
    data: Any
    side: bytearray

    def text(self, name: str, row: int) -> str:
        return self.texts[int(self.names[name][row])]

    def message(self, row: int) -> str:
        source = self.side if self.aside[row] else self.data
        start, length = int(self.start[row]), int(self.length[row])
        return bytes(memoryview(source)[start : start + length]).decode()


_TILE = 1 << 18


def line_ends(octets: NDArray[np.uint8]) -> int:
    """How many line ends there are; a tile at a time, so that what is between stays in the processor's cache."""
    room = np.empty(_TILE, np.bool_)
    count = 0
    for at in range(0, len(octets), _TILE):
        tile = octets[at : at + _TILE]
        count += int(np.count_nonzero(np.equal(tile, 10, out=room[: len(tile)])))
    return count


class Texts:
    """Numbers for texts, so that a column of names is a column of numbers."""

    def __init__(self) -> None:
        self.all: list[str] = [""]
        self._known: dict[str, int] = {"": 0}
        self._rows: dict[tuple[str, ...], tuple[int, ...]] = {}

    def number(self, text: str) -> int:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = len(self.all)
            self.all.append(text)
        return known

    def numbers(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        """Those of a row's NAMES; rows with the same texts follow each other."""
        known = self._rows.get(texts)
        if known is None:
            if len(self._rows) > TEXTS:
                self._rows.clear()
            known = self._rows[texts] = tuple(map(self.number, texts))
        return known


class Stamp(Protocol):
    """What becomes of printed times in the column `ts`."""

    def one(self, ts: int | None, clock: str) -> int | None: ...

    def many(self, ts: Ints, clock: str) -> Ints:
        """The same for many times of one clock; NONE stays NONE."""
        ...


class AsPrinted:
    def one(self, ts: int | None, clock: str) -> int | None:
        return ts

    def many(self, ts: Ints, clock: str) -> Ints:
        copied: Ints = ts.copy()
        return copied


AS_PRINTED = AsPrinted()


class Columns:
    """Reads segments; keeps its tables of texts from one to the next, and its working memory with them."""

    def __init__(self) -> None:
        self.texts = Texts()
        self._compiled: Compiled | None = None

    def trim(self) -> None:
        """Forget all texts where there are too many; `Rows` read before keep theirs."""
        if len(self.texts.all) > TEXTS:
            self.texts, self._compiled = Texts(), None

    def read(self, data: Any, kind: str, start: int = 0, stop: int | None = None, stamp: Stamp = AS_PRINTED, compiled: bool | None = None) -> Rows:
        """The records of data[start:stop] (bytes, or an mmap), a segment of whole UTF-8 lines of a member of this kind.

        `compiled`: whether to use the compiled code;
        None: where it pays."""
        stop = len(data) if stop is None else stop
        if compiled if compiled is not None else (kind in COMPILED_KINDS and stop - start >= COMPILED_FROM):
            if kind not in COMPILED_KINDS:
                raise ValueError(f"no compiled code for {kind}")
            if self._compiled is None:
                from parsers.compiled import Compiled  # here, because it takes half a second

                self._compiled = Compiled(self.texts)
            rows = self._compiled.read(data, kind, start, stop, stamp)
            if rows is not None:
                return rows
        return self._line_by_line(data, kind, start, stop, stamp)

    def _line_by_line(self, data: Any, kind: str, start: int, stop: int, stamp: Stamp) -> Rows:
        """What `Rows` is by definition."""
        record_of = registry.parser(kind).record
        raw = bytes(memoryview(data)[start:stop])
        lines = _lines(raw)
        offsets = _offsets(raw)
        found: list[tuple[int, ...]] = []
        counts: list[int] = []
        starts: list[int] = []  # of the messages in the side buffer, characters or bytes
        parts: list[str] = []
        size = 0
        open_record = False
        names_of, columns_of = self.texts.numbers, _columns_of
        for n, text in enumerate(lines):
            record = record_of(text if len(text) <= LINE_HEAD else text[:LINE_HEAD])
            if record is None:
                if open_record and counts[-1] < CONTINUED:
                    counts[-1] += 1
                    message = "\n" + text
                elif not text:  # a blank line outside of any record is no row
                    open_record = False
                    continue
                else:
                    open_record = False
                    found.append((n, offsets[n], *_BARE, *names_of((kind, "", "", "", "", "", "", ""))))
                    counts.append(1)
                    starts.append(size)
                    message = text
            else:
                open_record = True
                found.append((n, offsets[n], *columns_of(record, stamp), *names_of((
                    record.grammar or kind, record.severity, record.module, record.process, record.node, record.function, record.src_file,
                    record.code,
                ))))  # fmt: skip
                counts.append(1)
                starts.append(size)
                message = record.message if len(text) <= LINE_HEAD or not record.message_at else text[record.message_at :]
            parts.append(message)
            size += len(message) if message.isascii() else len(message.encode("utf-8", "replace"))
        side = bytearray("".join(parts).encode("utf-8", "replace"))
        rows = len(found)
        table = np.array(found, np.int64).reshape(rows, 2 + len(NUMBERS) - 3 + len(NAMES)).T
        values = {"line_no": table[0] + 1, "n_lines": np.array(counts, np.int64), "offset": table[1]}
        values |= {name: table[2 + k] for k, name in enumerate(NUMBERS[3:])}
        names = {name: table[2 + len(NUMBERS) - 3 + k] for k, name in enumerate(NAMES)}
        begin = np.array(starts, np.int64)
        length = np.diff(np.append(begin, size))
        return Rows(rows, len(lines), values, names, self.texts.all, begin, length, np.ones(rows, np.bool_), data, side)


_BARE = (NONE,) * 8


def _columns_of(record: Record, stamp: Stamp) -> tuple[int, ...]:
    """NUMBERS from `ts` on."""
    return (
        to_int(stamp.one(record.ts, record.clock)), NONE if (v := record.device) is None else v, NONE if (v := record.rank) is None else v,
        NONE if (v := record.pid) is None else to_int(v), NONE if (v := record.tid) is None else to_int(v),
        NONE if (v := record.stream_id) is None else v, NONE if (v := record.task_id) is None else v, NONE if (v := record.src_line) is None else v,
    )  # fmt: skip


_SUSPECT = (b"\0", b"\x1b", b"\r", b"^[", b"^M", b"\\x1b", b"\\033", b"\\u001b")


def _dirty(raw: bytes) -> bool:
    """Whether `clean` would change anything."""
    return any(mark in raw for mark in _SUSPECT)


def _lines(raw: bytes) -> list[str]:
    """All lines as parsers get them."""
    if raw.isascii() and not _dirty(raw) and len(raw) <= LINE:
        lines = raw.decode("ascii").split("\n")
        if not lines[-1]:
            lines.pop()
        return lines
    pieces = raw.split(b"\n")
    if not pieces[-1]:
        pieces.pop()
    if raw.isascii() and not _dirty(raw):
        return [shortened(piece.decode("ascii")) for piece in pieces]
    return [readable(piece) for piece in pieces]


def _offsets(raw: bytes) -> list[int]:
    """Where each line begins, in bytes."""
    out, at = [], 0
    for piece in raw.split(b"\n"):
        out.append(at)
        at += len(piece) + 1
    return out


def readable(line: bytes) -> str:
    """A line of bytes, as parsers get it."""
    if line.isascii():
        text = line.decode("ascii")
    else:
        text = encoding.decode(line, "utf-8")
    return shortened(clean(text))


def shortened(text: str) -> str:
    return text if len(text) <= LINE else text[:LINE_HEAD] + " ... " + text[-LINE_TAIL:]


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def to_int(value: int | None) -> int:
    return NONE if value is None or not -(1 << 62) < value < 1 << 62 else value


def numbers_and_names(record: Record | None, kind: str, text: str, number: Callable[[str], int], stamp: Stamp) -> tuple[list[int], bytes]:
    """NUMBERS from `ts` on and NAMES of one record, and its message as far as its first line goes."""
    if record is None:
        return [NONE] * 8 + [number(kind), 0, 0, 0, 0, 0, 0, 0], encoded(text)
    message = record.message if len(text) <= LINE_HEAD or not record.message_at else text[record.message_at :]
    names = (record.grammar or kind, record.severity, record.module, record.process, record.node, record.function, record.src_file, record.code)
    return [*_columns_of(record, stamp), *map(number, names)], encoded(message)
