"""tar in all its dialects, front to back: v7, ustar, PAX, GNU; cut, joined, damaged.

Where no valid header stands in its place, the bytes up to the next valid one are given as a member of their own: a damaged
header costs a name, not the log lines behind it. Links and devices are named and never followed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from forensics.archive.detect import is_tar
from forensics.archive.ledger import Ledger, human, human_zh
from forensics.archive.names import Place, decode, visible
from forensics.archive.stream import Bounded, Stream

BLOCK = 512
_ZERO = bytes(BLOCK)
_SEARCH = 64 << 10
_LINKS = {b"1": ("hard link", "硬链接"), b"2": ("symbolic link", "符号链接")}
_DEVICES = {b"3": ("character device", "字符设备"), b"4": ("block device", "块设备"), b"6": ("named pipe", "命名管道")}
_LARGEST = 1 << 63


class Entry(msgspec.Struct):
    """A file of an archive, to be read before the next one is asked for."""

    path: str
    """Display path in the bundle."""
    stream: Stream
    size: int | None = None
    mtime: float | None = None


class _Extended:
    """What PAX and GNU headers say about the member behind them."""

    def __init__(self) -> None:
        self.name: bytes | None = None
        self.size: int | None = None
        self.mtime: float | None = None
        self.sparse = ""
        """Sparse format of GNU tar, such as 1.0."""


class Tar:
    """The members of one tar stream, and of any tar that follows it in the stream.

    `path`: display path of the archive, under which its own losses stand.
    """

    def __init__(self, stream: Stream, path: str, ledger: Ledger, place: Place) -> None:
        self._stream, self._path, self._ledger, self._place = stream, path, ledger, place
        self._extended = _Extended()

    def entries(self) -> Iterator[Entry]:
        stream, zeros, cut = self._stream, 0, False
        while True:
            at = stream.position
            block = stream.take(BLOCK)
            if len(block) < BLOCK:
                if not stream.damaged and not cut:
                    self._end(block, zeros)
                return
            if block == _ZERO:
                zeros += 1
                while (data := stream.peek(_SEARCH)) and (run := (len(data) - len(data.lstrip(b"\0"))) // BLOCK * BLOCK):
                    stream.skip(run)
                continue
            if not is_tar(block):
                yield self._salvage(block, at, zeros > 0)
                zeros = 0
                continue
            zeros = 0
            self._ledger.member()
            entry = self._entry(block)
            if entry is None:
                continue
            bounded = entry.stream
            yield entry
            left = bounded.remaining or 0
            cut = bounded.skip(left) < left or bounded.damaged
            if bounded.size % BLOCK:
                stream.skip(BLOCK - bounded.size % BLOCK)

    # ------------------------------------------------------------ headers

    def _entry(self, block: bytes) -> _File | None:
        """The member this header announces; None where there is nothing to read (and what it has for data was passed over)."""
        kind, size = block[156:157], number(block[124:136])
        if kind in b"xgXLKN" and kind:
            self._header_of_next(kind, size)
            return None
        extended, self._extended = self._extended, _Extended()
        name = decode(extended.name if extended.name is not None else _name(block))
        if kind in _LINKS:
            self._link(name, kind, block)
            return None
        if kind in _DEVICES:
            word, word_zh = _DEVICES[kind]
            self._skipped(name, f"{word}, never opened", f"{word_zh}，不会打开")
            return None
        if kind == b"5" or kind == b"\0" and name.endswith("/"):
            return None
        if extended.size is not None:
            size = extended.size
        if size is None or size < 0:
            self._ledger.lose(
                self._place.show(name),
                "damaged",
                f"the tar header gives no usable size ({visible(ascii(block[124:136])[2:-1])}); the member is lost",
                "tar 头部中的大小字段无效，该成员丢失",
            )
            return None
        if kind in b"DV":  # a list of names, a label: no file
            self._stream.skip(size + -size % BLOCK)
            return None
        return self._file(name, size, extended, block, kind)

    def _file(self, name: str, size: int, extended: _Extended, block: bytes, kind: bytes) -> _File:
        path = self._place.claim(name)
        if kind == b"S":
            more = block[482]
            while more:
                part = self._stream.take(BLOCK)
                more = len(part) == BLOCK and part[504]
            self._holes(path, size)
        bounded = Bounded(self._stream, size, lambda missing: self._cut(path, size, missing))
        if extended.sparse:
            if extended.sparse.startswith("1"):
                _pass_sparse_map(bounded)
            self._holes(path, bounded.remaining or 0)
        mtime = extended.mtime
        if mtime is None:
            seconds = number(block[136:148])
            mtime = float(seconds) if seconds is not None and abs(seconds) < 1 << 36 else None
        return _File(path, bounded, bounded.remaining, mtime)

    def _header_of_next(self, kind: bytes, size: int | None) -> None:
        """A PAX header or a GNU long name: data about the next member."""
        if size is None or size < 0:
            self._remark("a tar header for the next member has no usable size", "tar 中描述下一成员的头部大小无效")
            return
        if size > self._ledger.limits.header_bytes:
            most = human(self._ledger.limits.header_bytes)
            self._ledger.lose(
                self._path,
                "skipped",
                f"limit: a tar header of {human(size)} (at most {most}) was skipped; the member it belongs to keeps its short name",
                f"达到上限：{human_zh(size)} 的 tar 扩展头（上限 {most}）被跳过；其后的成员使用短名称",
                partial=False,
            )
            self._stream.skip(size + -size % BLOCK)
            return
        data = self._stream.take(size)
        self._stream.skip(-size % BLOCK)
        if kind in b"LN":
            self._extended.name = data.split(b"\0", 1)[0] or None
        elif kind in b"xX" and not self._pax(data):
            self._remark("a PAX header is damaged; what could be read of it was used", "PAX 头部损坏；仅采用其中可读的部分")

    def _pax(self, data: bytes) -> bool:
        """Records of `length key=value`; False where they are not all sound."""
        at, sound, extended = 0, True, self._extended
        while at < len(data):
            space = data.find(b" ", at, at + 20)
            digits = data[at:space] if space > 0 else b""
            if not digits.isdigit() or data[at] == 0:
                return sound and not data[at:].strip(b"\0")
            end = at + int(digits)
            record = data[space + 1 : end]
            if end > len(data) or end <= space + 1 or not record.endswith(b"\n") or b"=" not in record:
                return False
            key, _, value = record[:-1].partition(b"=")
            if key in (b"path", b"GNU.sparse.name"):
                if value and (key != b"path" or not extended.sparse):
                    extended.name = value
                sound = sound and bool(value)
            elif key == b"size":
                extended.size = int(value) if value.isdigit() and len(value) < 20 and int(value) < _LARGEST else None
                sound = sound and extended.size is not None
            elif key == b"mtime":
                extended.mtime = _seconds(value)
                sound = sound and extended.mtime is not None
            elif key == b"GNU.sparse.major":
                extended.sparse = value.decode("ascii", "replace")
            elif key == b"GNU.sparse.map" or key == b"GNU.sparse.numblocks":
                extended.sparse = extended.sparse or "0"
            at = end
        return sound

    # ------------------------------------------------------------ damage

    def _salvage(self, block: bytes, at: int, behind_end: bool) -> Entry:
        """The bytes from a bad header up to the next good one, as a member."""
        self._ledger.member()
        self._extended = _Extended()
        named = block[257:262] == b"ustar" and _name(block)
        path = self._place.claim(decode(named) if named else f"bytes-at-{at}")
        what = "there are other bytes after the end of the tar" if behind_end else "a tar header is damaged"
        what_zh = "tar 结束标记之后还有其他数据" if behind_end else "tar 头部损坏"
        self._ledger.lose(
            path,
            "damaged",
            f"{what} (byte {at} of {self._path}): the bytes up to the next good header were read under this name",
            f"{what_zh}（{self._path} 的第 {at} 字节）：到下一个有效头部为止的数据以此名称读取",
        )
        return Entry(path, _UntilHeader(self._stream, b"" if named else block))

    def _cut(self, path: str, size: int, missing: int) -> None:
        self._ledger.lose(
            path,
            "damaged",
            f"cut off: {human(size - missing)} of {human(size)} are there",
            f"被截断：共 {human_zh(size)}，仅有 {human_zh(size - missing)}",
            missing,
        )

    def _end(self, block: bytes, zeros: int) -> None:
        if block.strip(b"\0"):
            self._ledger.lose(
                self._path,
                "damaged",
                f"the tar ends inside a header ({len(block)} bytes of it are there)",
                f"tar 在头部中间被截断（仅有 {len(block)} 字节）",
                len(block),
            )
        elif not zeros:
            self._ledger.lose(
                self._path,
                "damaged",
                "the tar has no end mark: it may have been cut off between two members",
                "tar 没有结束标记：可能在两个成员之间被截断",
            )

    # ------------------------------------------------------------ remarks

    def _skipped(self, name: str, note: str, note_zh: str) -> None:
        self._ledger.lose(self._place.show(name), "skipped", note, note_zh, partial=False)

    def _link(self, name: str, kind: bytes, block: bytes) -> None:
        word, word_zh = _LINKS[kind]
        target = visible(decode(block[157:257].split(b"\0", 1)[0]))
        self._skipped(name, f"{word} to {target}, never followed", f"指向 {target} 的{word_zh}，不会跟随")

    def _holes(self, path: str, size: int) -> None:
        self._ledger.lose(
            path,
            "skipped",
            f"sparse file: the {human(size)} stored for it were read, its holes (zeros) left out",
            f"稀疏文件：已读取其存储的 {human_zh(size)}，空洞（零字节）略去",
            partial=False,
        )

    def _remark(self, note: str, note_zh: str) -> None:
        self._ledger.lose(self._path, "damaged", note, note_zh, partial=False)


class _File(Entry):
    """A member with a known end; `stream` is always a Bounded."""

    stream: Bounded


class _UntilHeader(Stream):
    """`first`, then what the source holds up to its next valid ustar header, at whatever byte that begins."""

    def __init__(self, source: Stream, first: bytes) -> None:
        super().__init__()
        self._source, self._first, self._ended = source, first, False

    def _fill(self) -> bytes:
        if self._first:
            out, self._first = self._first, b""
            return out
        if self._ended:
            return b""
        data = self._source.peek(_SEARCH)
        found = data.find(b"ustar", 257)
        while found >= 0:
            start = found - 257
            block = data[start : start + BLOCK]
            if len(block) == BLOCK and is_tar(block):
                self._ended = True
                return self._source.take(start)
            found = data.find(b"ustar", found + 1)
        return self._source.take(max(len(data) - BLOCK, 0) or len(data))


def number(field: bytes) -> int | None:
    """A number of a tar header: octal text, or base 256 where the first bit is set; None where it is neither."""
    if field[:1] >= b"\x80":
        value = int.from_bytes(field, "big", signed=False)
        bits = 8 * len(field)
        return value - (1 << bits) if field[0] == 0xFF else value - (1 << (bits - 1))
    text = field.split(b"\0", 1)[0].strip()
    if not text:
        return 0
    try:
        return int(text, 8) if text.isdigit() else None
    except ValueError:
        return None


def _name(block: bytes) -> bytes:
    name = block[:100].split(b"\0", 1)[0]
    if block[257:263] == b"ustar\0" and block[345]:
        return block[345:500].split(b"\0", 1)[0] + b"/" + name
    return name


def _seconds(value: bytes) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and abs(seconds) < 1 << 36 else None


def _pass_sparse_map(stream: Bounded) -> None:
    """PAX sparse 1.0: the data begins with a count and pairs of numbers, one a line, filled up to a block."""
    lines, wanted, tail = 0, None, b""
    while wanted is None or lines < wanted:
        block = stream.take(BLOCK)
        if len(block) < BLOCK:
            return
        parts = (tail + block).split(b"\n")
        tail = parts.pop()
        if wanted is None and parts:
            count = parts.pop(0)
            wanted = 2 * int(count) if count.isdigit() and len(count) < 10 else 0
        lines += len(parts)
