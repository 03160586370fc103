"""The headers of a zip: its central directory, wherever it lies and whatever stands before or behind it."""

from __future__ import annotations

import calendar
import struct
from collections.abc import Iterator

from forensics.archive.names import decode
from forensics.archive.stream import Blob

LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_PLACE64 = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_FULL = 0xFFFFFFFF
_LARGEST = 256 << 20
"""Bytes of a central directory that is held in memory: 2 million entries and more."""
_SEARCH = 1 << 20


class Header:
    """What a central or a local header says of an entry."""

    __slots__ = ("attributes", "crc", "flags", "method", "mtime", "name", "offset", "packed", "size", "system")

    def __init__(
        self, name: bytes, flags: int, method: int, stamp: int, crc: int | None, packed: int, size: int | None, extra: bytes, offset: int = 0
    ) -> None:
        self.flags, self.method, self.crc, self.packed, self.size, self.offset = flags, method, crc, packed, size, offset
        self.attributes = self.system = 0
        self.mtime = _seconds(stamp)
        self.name = name
        self._extra(extra)

    def _extra(self, extra: bytes) -> None:
        at = 0
        while at + 4 <= len(extra):
            tag, length = struct.unpack_from("<HH", extra, at)
            body = extra[at + 4 : at + 4 + length]
            if tag == 1:  # zip64
                numbers = list(struct.unpack_from(f"<{len(body) // 8}Q", body))
                if self.size == _FULL and numbers:
                    self.size = numbers.pop(0)
                if self.packed == _FULL and numbers:
                    self.packed = numbers.pop(0)
                if self.offset == _FULL and numbers:
                    self.offset = numbers.pop(0)
            elif tag == 0x5455 and len(body) >= 5 and body[0] & 1:
                self.mtime = float(struct.unpack_from("<i", body, 1)[0])
            at += 4 + length

    def text(self) -> str:
        name = decode(self.name, "utf-8" if self.flags & 0x800 else "cp437")
        return name.replace("\\", "/") if "/" not in name else name


class Directory:
    """A central directory that was found sound.

    `order`: for every entry, as they lie in the file, that place << 32 | its place in `data`. `start`: where the directory begins.
    `shift`: bytes in front of the zip that its numbers do not know of. `promised`: how many entries the end record says there are.
    """

    def __init__(self, data: bytes, order: list[int], start: int, shift: int, promised: int) -> None:
        self._data, self.order, self.start, self.shift, self.promised = data, order, start, shift, promised

    def headers(self) -> Iterator[Header]:
        return (_central(self._data, key & _FULL, self.shift) for key in self.order)

    def room(self, index: int) -> int:
        """Bytes from an entry's local header to that of the next one, or to the directory."""
        place, index = self.order[index] >> 32, index + 1
        while index < len(self.order) and self.order[index] >> 32 == place:
            index += 1
        return (self.order[index] >> 32 if index < len(self.order) else self.start - self.shift) - place


def find_directory(blob: Blob) -> Directory | None:
    """The central directory; None where there is none, or none that is sound."""
    tail_at = max(blob.size - _END.size - 0xFFFF, 0)
    tail = blob.read(tail_at, blob.size - tail_at)
    exact: list[int] = []
    loose: list[int] = []
    at = tail.rfind(b"PK\x05\x06")
    while at >= 0 and len(loose) < 64:
        if at + _END.size <= len(tail):
            behind = len(tail) - at - _END.size
            length = _END.unpack_from(tail, at)[7]
            (exact if length == behind else loose).append(at)
        at = tail.rfind(b"PK\x05\x06", 0, at)
    for at in exact + loose:
        found = _directory(blob, tail, at, tail_at)
        if found is not None:
            return found
    return None


def ends_like_zip(blob: Blob) -> bool:
    """Whether a sound directory with entries stands at the end: a zip with a program or other bytes in front."""
    found = find_directory(blob)
    return found is not None and bool(found.order)


def _directory(blob: Blob, tail: bytes, at: int, tail_at: int) -> Directory | None:
    _, _, _, _, count, size, offset, _ = _END.unpack_from(tail, at)
    end = tail_at + at
    if at >= _PLACE64.size and tail[at - _PLACE64.size : at - _PLACE64.size + 4] == b"PK\x06\x07":
        place = _PLACE64.unpack_from(tail, at - _PLACE64.size)[2]
        for start in (end - _PLACE64.size - _END64.size, place):
            record = blob.read(start, _END64.size) if 0 <= start < blob.size else b""
            if len(record) == _END64.size and record[:4] == b"PK\x06\x06":
                count, size, offset = _END64.unpack(record)[7:10]
                end = start
                break
    if size > min(_LARGEST, end):
        return None
    if not size:
        return Directory(b"", [], 0, 0, count) if not count and blob.read(0, 4) != b"PK\x03\x04" else None
    for start in (end - size, offset):
        data = blob.read(start, size) if start + size <= blob.size else b""
        if data[:4] == b"PK\x01\x02":
            order = _order(data)
            return Directory(data, order, start, start - offset, count) if order is not None else None
    return None


def _order(data: bytes) -> list[int] | None:
    """(place in the file << 32 | place in the directory) of every entry, sorted; None where the directory is not sound."""
    keys, at = [], 0
    while at < len(data):
        if data[at : at + 4] != b"PK\x01\x02" or at + _CENTRAL.size > len(data):
            return None
        n_name, n_extra, n_comment = struct.unpack_from("<3H", data, at + 28)
        offset = int.from_bytes(data[at + 42 : at + 46], "little")
        if offset == _FULL:
            offset = _central(data, at, 0).offset
        keys.append(offset << 32 | at)
        at += _CENTRAL.size + n_name + n_extra + n_comment
    return sorted(keys) if at == len(data) else None


def _central(data: bytes, at: int, shift: int) -> Header:
    _, made_by, _, flags, method, time, date, crc, packed, size, n_name, n_extra, _, _, _, attributes, offset = _CENTRAL.unpack_from(data, at)
    at += _CENTRAL.size
    header = Header(data[at : at + n_name], flags, method, date << 16 | time, crc, packed, size, data[at + n_name : at + n_name + n_extra], offset)
    header.attributes, header.system = attributes, made_by >> 8
    header.offset += shift
    return header


def search(blob: Blob, mark: bytes, at: int) -> int:
    """Where `mark` (4 bytes) stands next, from `at` on; -1 where it does not."""
    step = 4096  # most often it stands right here
    while at < blob.size:
        data = blob.read(at, step)
        found = data.find(mark)
        if found >= 0:
            return at + found
        if len(data) < 4:
            break
        at += len(data) - 3
        step = min(4 * step, _SEARCH)
    return -1


def _seconds(stamp: int) -> float | None:
    """A DOS time (local to the machine that packed, taken as UTC)."""
    date, time = stamp >> 16, stamp & 0xFFFF
    month, day = date >> 5 & 15, date & 31
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    return float(calendar.timegm((1980 + (date >> 9), month, day, time >> 11, time >> 5 & 63, 2 * (time & 31))))
