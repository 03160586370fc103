"""The compiled way to `columns.Rows`: runs the loops of `kernel_plog` and `kernel_lines`, and has parsers read what those leave to them.

Importing this takes half a second, compiling its loops, once per installation, ten.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from parsers import kernel as k
from parsers import kernel_lines, kernel_plog, plog, registry
from parsers.base import Parser
from parsers.columns import (
    CONTINUED,
    LINE_HEAD,
    NAMES,
    NONE,
    NUMBERS,
    Ints,
    Rows,
    Stamp,
    Texts,
    encoded,
    line_ends,
    numbers_and_names,
    readable,
    to_int,
)
from parsers.rows import Record

TEXTS = 30_000
"""Interned pieces after which they are forgotten."""
ASKING = 0.4
"""Share of rows left to the parser from which it reads all of them."""
_CLOCKS = {k.NOYEAR: "noyear", k.BOOT: "boot"}
_OF_PIECES = ("source", "severity", "module", "process", "node", "function", "src_file")
_TOLD_BY = {"severity": (0,), "module": (0,), "process": (0,), "pid": (0,), "src_file": (1,), "src_line": (1,), "function": (2,)}
"""Of a CANN record, which of its pieces (head, site, function) may say it; the other columns are said by none."""
_NUMBERS_OF_PIECES = ("pid", "tid", "rank", "src_line")


@functools.cache
def _seed() -> np.uint64:
    """Keeps a bundle from being made so that two of its texts share a number."""
    seed: np.uint64 = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
    return seed


class Compiled:
    """The loops' memory, used again for every segment."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.lines = 0
        self.keys = np.zeros(1 << 17, np.uint64)
        self.numbers = np.zeros(1 << 17, np.int32)
        self.spans = np.zeros((1 << 14, 4), np.int64)
        self.counts = np.zeros(2, np.int64)
        self.day = np.full(2, -1, np.int64)
        self.marks = np.empty(0, np.int32)
        self.found = np.zeros(1, np.int64)
        self.look = np.empty(1 << 14, np.uint8)
        size = len(self.keys) // 2
        self.sound = np.zeros(size, np.bool_)
        """Of each interned piece, whether it means what the loops take it for."""
        self.sound[0] = True
        self.names = {name: np.zeros(size, np.int64) for name in _OF_PIECES}
        self.values = {name: np.full(size, NONE) for name in _NUMBERS_OF_PIECES}
        """What each piece says; 0 and NONE where it says nothing."""
        self.codes = np.zeros(size, np.int64)

    def _room(self, lines: int, size: int) -> None:
        if size // 3 + 16 > len(self.marks):
            self.marks = np.empty(size // 3 + 16, np.int32)
        if lines > self.lines:
            self.lines = lines = max(lines, 1 << 16)
            self.ends = np.empty(lines, np.int32)
            self.flags = np.empty(lines, np.uint8)
            self.table = np.empty((k.WIDTH, lines), np.int64)
        if self.counts[0] > TEXTS:
            self.keys[:] = 0
            self.counts[:] = 0
            for name in _OF_PIECES:
                self.names[name][:] = 0
            for name in _NUMBERS_OF_PIECES:
                self.values[name][:] = NONE
            self.codes[:] = 0
            self.sound[1:] = False

    def read(self, data: Any, kind: str, start: int, stop: int, stamp: Stamp) -> Rows | None:
        """As `Columns.read`; None for what has to be read line by line."""
        octets = np.frombuffer(data, np.uint8)
        if not octets.flags.writeable or len(octets) == stop:  # compiled for writable memory, and looks one byte ahead; it does not write
            octets = np.append(octets, np.uint8(0))
        self._room(line_ends(octets[start:stop]) + 1, stop - start)
        lines = k.find_lines(octets, start, stop, self.ends, self.flags, self.marks, self.found, self.look, self.look.view(np.uint64))
        begin = (octets, start, lines, self.ends, self.flags, self.marks, self.found[0], self.table, 0)
        interned = (self.keys, self.numbers, self.spans, self.counts, _seed())
        if kind in ("plog", "device"):
            rows = kernel_plog.read_plog(*begin, *interned, self.day, self.sound)
        else:
            rows = kernel_lines.read_lines(*begin, *interned, kernel_lines.KERNEL if kind == "kernel" else kernel_lines.CONSOLE)
        self._learn(data, kind)
        t = self.table[:, :rows]
        state = t[k.STATE]
        pieces = t[k.HEAD], t[k.SITE], t[k.FUNCTION]
        told = _TOLD_BY if kind in ("plog", "device") else {}
        sound = self.sound[pieces[0]] & self.sound[pieces[1]] & self.sound[pieces[2]]
        if not sound.all():
            state[~sound] = state[~sound] & k.UNCLEAN | k.ASKED
        if np.count_nonzero(state & 3 == k.ASKED) > ASKING * rows:
            return None
        asked = self._ask(data, t, kind)
        if asked is None:
            return None
        state[((state & 3) == k.BARE) & (t[k.STOP] == t[k.START])] |= k.DROPPED  # a blank line outside of any record is no row
        values = {
            "line_no": t[k.LINE] + 1, "n_lines": t[k.LINES].copy(), "offset": t[k.START] - start, "ts": _stamped(t, kind, stamp),
            "device": t[k.DEVICE].copy(), "rank": self._values("rank", pieces, told), "pid": self._values("pid", pieces, told, t[k.PID]),
            "tid": self._values("tid", pieces, told, t[k.TID]), "stream_id": t[k.STREAM].copy(), "task_id": t[k.TASK].copy(),
            "src_line": self._values("src_line", pieces, told),
        }  # fmt: skip
        names = {name: self._names(name, pieces, told) for name in _OF_PIECES}
        names["source"][names["source"] == 0] = self.texts.number(kind)
        names["code"] = self.codes[t[k.CODED]]
        found = Rows(
            rows, lines, values, names, self.texts.all, t[k.MESSAGE].copy(), t[k.STOP] - t[k.MESSAGE], np.zeros(rows, np.bool_), data, bytearray()
        )
        self._finish(found, t, kind, asked, stamp)
        kept = (state & k.DROPPED) == 0
        if not kept.all():
            found.rows = int(np.count_nonzero(kept))
            found.values = {name: column[kept] for name, column in values.items()}
            found.names = {name: column[kept] for name, column in names.items()}
            found.start, found.length, found.aside = found.start[kept], found.length[kept], found.aside[kept]
        return found

    def _names(self, name: str, pieces: tuple[Ints, ...], told: Mapping[str, tuple[int, ...]]) -> Ints:
        """A column of texts: what the last of a row's pieces that says anything says. `told`: which pieces may, if not all."""
        return self._last(self.names[name], 0, name, pieces, told)

    def _values(self, name: str, pieces: tuple[Ints, ...], told: Mapping[str, tuple[int, ...]], read: Ints | None = None) -> Ints:
        """A column of numbers, likewise; those that were read from the line itself come first."""
        out = self._last(self.values[name], NONE, name, pieces, told)
        return out if read is None else np.where(read != NONE, read, out)

    def _last(self, said: Ints, nothing: int, name: str, pieces: tuple[Ints, ...], told: Mapping[str, tuple[int, ...]]) -> Ints:
        which = told.get(name, ()) if told else range(len(pieces))
        out: Ints | None = None
        for number in which:
            more: Ints = said[pieces[number]]
            if out is None:
                out = more
            elif (known := more != nothing).any():
                out = np.where(known, more, out)
        return np.full(len(pieces[0]), nothing) if out is None else out

    # ------------------------------------------------------------ what is left to Python

    def _ask(self, data: Any, t: Ints, kind: str) -> dict[int, tuple[str, Record | None]] | None:
        """Have the parser read the lines that were left to it. One that begins no record is joined to the record above, and its
        row marked DROPPED. None for what is too tangled, which is then read line by line."""
        view = memoryview(data)
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
                t[k.STATE, row] = k.BARE | k.UNCLEAN | (0 if text else k.DROPPED)
            asked[row] = text, record
        return asked

    def _finish(self, found: Rows, t: Ints, kind: str, asked: dict[int, tuple[str, Record | None]], stamp: Stamp) -> None:
        """Put in what the parser said, codes and rarer devices, and messages that have to be cleaned."""
        number, data, view = self.texts.number, found.data, memoryview(found.data)
        state = t[k.STATE]
        odd = np.flatnonzero(state & ~k.BARE)
        for row, flags in zip(odd.tolist(), state[odd].tolist(), strict=True):
            if flags & k.DROPPED:
                continue
            begin, end = int(found.start[row]), int(t[k.STOP, row])
            if row in asked:
                text, record = asked[row]
                seen, message = numbers_and_names(record, kind, text, number, stamp)
                for name, value in zip((*NUMBERS[3:], *NAMES), seen, strict=True):
                    (found.values if name in found.values else found.names)[name][row] = value
                rest = data.find(b"\n", begin, end)
                if rest >= 0:
                    message += b"".join(b"\n" + encoded(readable(line)) for line in bytes(view[rest + 1 : end]).split(b"\n"))
            else:
                if flags & (k.CODE | k.RANKED | k.OTHER):
                    stop_line = data.find(b"\n", begin, end)
                    self._look_into(found, row, kind, flags, bytes(view[begin : end if stop_line < 0 else stop_line]).decode("ascii", "replace"))
                if not flags & (k.UNCLEAN | k.LATER):
                    continue
                raw = bytes(view[begin:end])
                message = b"\n".join(encoded(readable(line)) for line in raw.split(b"\n"))
                if message == raw:
                    continue
            found.start[row], found.length[row], found.aside[row] = len(found.side), len(message), True
            found.side += message

    def _look_into(self, found: Rows, row: int, kind: str, flags: int, message: str) -> None:
        """Codes, ranks and devices of one message, as the parser of its kind looks for them."""
        number = self.texts.number
        if kind == "console":
            if flags & k.CODE and "rror code is " in message:
                found.names["code"][row] = number(plog.error_code(message))
            return
        if kind == "kernel":
            if flags & k.CODE and "vent" in message:
                found.names["code"][row] = number(plog.event_code(message))
            if flags & k.OTHER and ("dev" in message or "hy" in message):
                found.values["device"][row] = to_int(plog.device_of(message))
            return
        if flags & k.CODE:
            found.names["code"][row] = number(plog.error_code(message))
        if flags & k.OTHER and ("ev" in message or "hip" in message):
            found.values["device"][row] = to_int(plog.device_of(message))
        if flags & k.RANKED and found.names["module"][row] == number("HCCL"):
            found.values["rank"][row] = to_int(plog.rank_of(message))

    # ------------------------------------------------------------ interned pieces

    def _learn(self, data: Any, kind: str) -> None:
        """Have the parser read the pieces that were interned for the first time."""
        view, texts, parser = memoryview(data), self.texts.number, registry.parser(kind)
        sound: list[int] = []
        said: list[tuple[int, ...]] = []
        for number, role, start, stop in self.spans[: self.counts[1]].tolist():
            text = bytes(view[start:stop]).decode("ascii", "replace")
            record: Record | None
            if role == k.ROLE_HEAD:
                head = plog.head_of(text)
                record = Record("", severity=head[0], module=head[1], pid=head[2], process=head[3]) if head else None
            elif role == k.ROLE_SITE:
                name, _, line = text.rpartition(":")
                record = Record("", src_file=name, src_line=int(line))
            elif role == k.ROLE_FUNCTION:
                record = Record("", function=text)
            elif role == k.ROLE_CODE:
                record = Record("", code=text)
            else:
                record = _piece(role, text, parser)
            if record is not None:
                sound.append(number)
                said.append((
                    texts(record.grammar), texts(record.severity), texts(record.module), texts(record.process), texts(record.node),
                    texts(record.function), texts(record.src_file), texts(record.code),
                    to_int(record.pid), to_int(record.tid), to_int(record.rank), to_int(record.src_line),
                ))  # fmt: skip
        self.counts[1] = 0
        if sound:
            self.sound[sound] = True
            columns = (*self.names.values(), self.codes, *self.values.values())
            for column, values in zip(columns, np.array(said, np.int64).T, strict=True):
                column[sound] = values


def _piece(role: int, text: str, parser: Parser) -> Record | None:
    """What a piece of a line's head says, told by the parser on a line made of it; None where the parser sees it otherwise."""
    message = "x"
    if role == k.ROLE_ASCEND:
        line = f"[    1.000000] {text}x"
    elif role == k.ROLE_WHO:
        line = f"[    1.000000] [ascend] [m] [f 1] {text}x"
    elif role == k.ROLE_WORD:
        line, message = f"[    1.000000] {text}x", f"{text}x"
    elif role == k.ROLE_TAG:
        line = f"Sep  4 09:00:00 {text}[1]: x"
    elif role == k.ROLE_VLLM:
        line = f"{text}09-04 09:00:00 [a.py:1] x"
    else:
        line = f"2025-09-04 09:00:00,000{text}x"
    record = parser.record(line)
    if record is None or record.message != message or record.device is not None or record.code or record.stream_id is not None:
        return None
    if role == k.ROLE_WORD and (text.startswith("devdrv") or record.module or record.process or record.severity or record.pid is not None):
        return None  # more than a word
    if role == k.ROLE_WHO:
        record.module = record.function = record.severity = ""
        record.src_line = None
    if role == k.ROLE_TAG:
        if record.pid != 1 or record.module:
            return None
        record.pid = None
    if role == k.ROLE_VLLM:
        if record.src_file != "a.py":
            return None
        record.src_file, record.src_line = "", None
    return record


def _stamped(t: Ints, kind: str, stamp: Stamp) -> Ints:
    """The column `ts` of all rows, each by the clock that printed it."""
    wall = "device" if kind == "device" else "local"
    clocks = t[k.CLOCK]
    if not clocks.any():
        return stamp.many(t[k.TS], wall)
    out = np.full(len(clocks), NONE)
    for clock in np.unique(clocks).tolist():
        chosen = clocks == clock
        out[chosen] = stamp.many(t[k.TS][chosen], _CLOCKS.get(clock, wall))
    return out
