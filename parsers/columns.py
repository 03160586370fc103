"""Whole blocks of log lines as columns: the fast way to the rows that `Parser.record` would give, line by line.

Plain CANN records are read by compiled code (`kernel`); all other lines, and all lines of small texts, by the parser of their kind.
Both ways give the same rows; a test holds them together. A record's message reaches to the end of its last continuation line.

>>> seen = Columns().read(b"[ERROR] GE(7,main):2025-10-14-06:12:40.118.362 [api.cc:12]9 Load:failed\\n  cause: none\\n", "plog")
>>> seen.rows, seen.message(0), seen.values["line_no"].tolist(), seen.values["n_lines"].tolist()
(1, 'failed\\n  cause: none', [1], [2])
>>> seen.text("module", 0), seen.text("function", 0), int(seen.values["tid"][0]), int(seen.values["src_line"][0])
('GE', 'Load', 9, 12)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from parsers import encoding, plog, registry
from parsers.base import clean
from parsers.rows import Record

Ints = NDArray[np.int64]

NONE = -(1 << 62)
"""Stands for a value that is not there."""
CONTINUED = 2000
"""Lines one record may have; further ones stand alone."""
LINE, LINE_HEAD, LINE_TAIL = 1 << 20, 64 << 10, 4 << 10
"""A line longer than LINE is kept as its first LINE_HEAD and last LINE_TAIL characters."""
COMPILED_FROM = 1 << 20
"""Bytes of a segment from which the compiled code is worth its import."""
COMPILED_KINDS = frozenset({"plog", "device"})
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
        self._compiled: _Compiled | None = None

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
                self._compiled = _Compiled(self.texts)
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
        _int(stamp.one(record.ts, record.clock)), NONE if (v := record.device) is None else v, NONE if (v := record.rank) is None else v,
        NONE if (v := record.pid) is None else _int(v), NONE if (v := record.tid) is None else _int(v),
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


def _int(value: int | None) -> int:
    return NONE if value is None or not -(1 << 62) < value < 1 << 62 else value


def _numbers(record: Record | None, kind: str, text: str, number: Callable[[str], int], stamp: Stamp) -> tuple[list[int], bytes]:
    """NUMBERS from `ts` on and NAMES of one record, and its message as far as its first line goes."""
    if record is None:
        return [NONE] * 8 + [number(kind), 0, 0, 0, 0, 0, 0, 0], encoded(text)
    message = record.message if len(text) <= LINE_HEAD or not record.message_at else text[record.message_at :]
    names = (record.grammar or kind, record.severity, record.module, record.process, record.node, record.function, record.src_file, record.code)
    return [*_columns_of(record, stamp), *map(number, names)], encoded(message)


@functools.cache
def _seed() -> np.uint64:
    """Keeps a bundle from being made so that two of its texts share a number."""
    import os

    seed: np.uint64 = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
    return seed


class _Compiled:
    """The compiled way, with its memory."""

    def __init__(self, texts: Texts) -> None:
        from parsers import kernel  # here, because it takes half a second

        self.kernel, self.texts = kernel, texts
        self.lines = 0
        self.keys = np.zeros(1 << 17, np.uint64)
        self.numbers = np.zeros(1 << 17, np.int32)
        self.spans = np.zeros((1 << 14, 4), np.int64)
        self.counts = np.zeros(2, np.int64)
        self.sound = np.zeros(1 << 16, np.bool_)
        self.day = np.full(2, -1, np.int64)
        self.severity, self.first, self.second, self.pid = (np.zeros(1 << 16, np.int64) for _ in range(4))
        self.pid[:] = NONE
        self.second[:] = NONE  # for sites: the line; heads have a process there
        self.marks = np.empty(0, np.int32)
        self.found = np.zeros(1, np.int64)
        self.look = np.empty(1 << 14, np.uint8)

    def _room(self, lines: int, size: int) -> None:
        if size // 3 + 16 > len(self.marks):
            self.marks = np.empty(size // 3 + 16, np.int32)
        if lines > self.lines:
            self.lines = lines = max(lines, 1 << 16)
            self.ends = np.empty(lines, np.int32)
            self.flags = np.empty(lines, np.uint8)
            self.table = np.empty((self.kernel.WIDTH, lines), np.int64)

    def read(self, data: Any, kind: str, start: int, stop: int, stamp: Stamp) -> Rows | None:
        """As `Columns.read`; None for what has to be read line by line."""
        k = self.kernel
        octets = np.frombuffer(data, np.uint8)
        if not octets.flags.writeable:  # compiled for writable memory only; it does not write
            octets = octets.copy()
        need = int(np.count_nonzero(octets[start:stop] == 10)) + 1
        self._room(need, stop - start)
        lines = k.find_lines(octets, start, stop, self.ends, self.flags, self.marks, self.found, self.look, self.look.view(np.uint64))
        before = int(self.counts[0])
        rows = k.read_plog(
            octets,
            start,
            lines,
            self.ends,
            self.flags,
            self.marks,
            self.found[0],
            self.table,
            0,
            self.keys,
            self.numbers,
            self.spans,
            self.counts,
            _seed(),
            self.day,
            self.sound,
        )
        self._learn(data, before)
        t = self.table[:, :rows]
        head, site, function, state = t[k.HEAD], t[k.SITE], t[k.FUNCTION], t[k.STATE]
        asked = self._ask(data, t, kind)
        if asked is None:
            return None
        values = {
            "line_no": t[k.LINE] + 1, "n_lines": t[k.LINES].copy(), "offset": t[k.START] - start, "ts": stamp.many(t[k.TS], "device" if kind == "device" else "local"),
            "device": t[k.DEVICE].copy(), "rank": t[k.RANK].copy(), "pid": self.pid[head], "tid": t[k.TID].copy(), "stream_id": t[k.STREAM].copy(),
            "task_id": t[k.TASK].copy(), "src_line": self.second[site],
        }  # fmt: skip
        names = {
            "source": np.full(rows, self.texts.number(kind)), "severity": self.severity[head], "module": self.first[head],
            "process": np.where(head > 0, self.second[head], 0), "node": np.zeros(rows, np.int64), "function": self.first[function],
            "src_file": self.first[site], "code": np.zeros(rows, np.int64),
        }  # fmt: skip
        at, length = t[k.MESSAGE].copy(), t[k.STOP] - t[k.MESSAGE]
        aside = np.zeros(rows, np.bool_)
        side = bytearray()
        number = self.texts.number
        view = memoryview(data)
        odd = np.flatnonzero((state & ~k.BARE) | (state & k.DROPPED))
        for row, flags in zip(odd.tolist(), state[odd].tolist(), strict=True):
            if flags & k.DROPPED:
                continue
            begin, end = int(at[row]), int(t[k.STOP, row])
            if row in asked:
                text, record = asked[row]
                seen, message = _numbers(record, kind, text, number, stamp)
                for name, value in zip((*NUMBERS[3:], *NAMES), seen, strict=True):
                    (values if name in values else names)[name][row] = value
                rest = data.find(b"\n", begin, end)
                if rest >= 0:
                    message += b"".join(b"\n" + encoded(readable(line)) for line in bytes(view[rest + 1 : end]).split(b"\n"))
            else:
                if flags & (k.CODE | k.RANKED | k.OTHER):
                    stop_line = data.find(b"\n", begin, end)
                    first = bytes(view[begin : end if stop_line < 0 else stop_line]).decode("ascii", "replace")
                    if flags & k.CODE:
                        names["code"][row] = number(plog.error_code(first))
                    if flags & k.OTHER and ("ev" in first or "hip" in first):
                        values["device"][row] = _int(plog.device_of(first))
                    if flags & k.RANKED and names["module"][row] == number("HCCL"):
                        values["rank"][row] = _int(plog.rank_of(first))
                if not flags & (k.UNCLEAN | k.LATER):
                    continue
                raw = bytes(view[begin:end])
                message = b"\n".join(encoded(readable(line)) for line in raw.split(b"\n"))
                if message == raw:
                    continue
            at[row], length[row], aside[row] = len(side), len(message), True
            side += message
        kept = (state & k.DROPPED) == 0
        if not kept.all():
            values = {name: column[kept] for name, column in values.items()}
            names = {name: column[kept] for name, column in names.items()}
            at, length, aside = at[kept], length[kept], aside[kept]
        return Rows(len(at), lines, values, names, self.texts.all, at, length, aside, data, side)

    def _ask(self, data: Any, t: Ints, kind: str) -> dict[int, tuple[str, Record | None]] | None:
        """Have the parser read the lines that were left to it. One that begins no record is joined to the record above, and its
        row marked DROPPED. None for what is too tangled, which is then read line by line."""
        k, view = self.kernel, memoryview(data)
        record_of = registry.parser(kind).record
        asked: dict[int, tuple[str, Record | None]] = {}
        for row in np.flatnonzero((t[k.STATE] & 3) == k.ASKED).tolist():
            begin, end = int(t[k.START, row]), int(t[k.STOP, row])
            stop_line = data.find(b"\n", begin, end)
            text = readable(bytes(view[begin : end if stop_line < 0 else stop_line]))
            record = record_of(text if len(text) <= LINE_HEAD else text[:LINE_HEAD])
            if record is None:
                above = row - 1
                while above >= 0 and t[k.STATE, above] & k.DROPPED:
                    above -= 1
                if above >= 0 and (t[k.STATE, above] & 3) != k.BARE:
                    if t[k.LINES, above] + t[k.LINES, row] > CONTINUED:
                        return None
                    t[k.LINES, above] += t[k.LINES, row]
                    t[k.STOP, above] = t[k.STOP, row]
                    t[k.STATE, above] |= k.LATER
                    t[k.STATE, row] |= k.DROPPED
                    continue
                if t[k.LINES, row] > 1:
                    return None
                t[k.STATE, row] = k.BARE | k.UNCLEAN
            asked[row] = text, record
        return asked

    def _learn(self, data: Any, before: int) -> None:
        """Turn the spans of texts seen for the first time into numbers."""
        k, view = self.kernel, memoryview(data)
        for number, role, start, stop in self.spans[: self.counts[1]].tolist():
            text = bytes(view[start:stop]).decode("utf-8", "replace")
            if role == k.ROLE_HEAD:
                head = plog._prefix(text)
                if head:
                    severity, module, pid, process = head
                    self.severity[number] = self.texts.number(severity)
                    self.first[number], self.second[number] = self.texts.number(module), self.texts.number(process)
                    self.pid[number] = _int(pid)
            elif role == k.ROLE_SITE:
                name, _, line = text.rpartition(":")
                self.first[number], self.second[number] = self.texts.number(name), int(line)
            else:
                self.first[number] = self.texts.number(text)
        self.counts[1] = 0
