"""gzip, bzip2, xz, zstd and the packed members of a zip as streams.

A decoder gives every byte that comes before the damage. Libraries throw away what the failing call had already unpacked;
so the decoder then starts that frame anew from the same packed bytes and feeds the last stretch byte by byte.
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable, Iterator
from typing import Protocol, cast

from isal import igzip_lib, isal_zlib

from forensics.archive.ledger import Ledger, human, human_zh
from forensics.archive.stream import Stream
from forensics.archive.zstd import ZstdFrames, starts_frame

PIECE = 16 << 10
"""Packed bytes fed at once: as fast as larger ones, and little to go through again after damage."""
OUT = 128 << 10
TAPE = 4 << 20
"""Packed bytes of a frame that are kept for a second try where the source cannot be read again."""
RETRY_OUT = 256

TITLES = {
    "gzip": "gzip",
    "bzip2": "bzip2",
    "xz": "xz",
    "zstd": "zstd",
    "deflate": "deflate",
    "lzma": "lzma",
}
MAGIC = {"gzip": b"\x1f\x8b\x08", "bzip2": b"BZh", "xz": b"\xfd7zXZ\0"}
"""How a further frame of the same kind begins (of zstd, `starts_frame` knows)."""
_ISAL = cast("type[Exception]", igzip_lib.IsalError)  # its stub calls it an instance
FAULTS = (_ISAL, OSError, ValueError, EOFError, lzma.LZMAError, MemoryError)


class Engine(Protocol):
    """What igzip, bz2, lzma and `ZstdFrames` have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def engine(kind: str, window: int, end_marker: bool = True) -> Engine:
    """A fresh decoder of one frame; `window`: the most memory (bytes) it may ask for."""
    if kind == "gzip":
        return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    if kind == "deflate":
        return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
    if kind == "bzip2":
        return bz2.BZ2Decompressor()
    if kind == "xz":
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=window)
    if kind == "lzma":
        return ZipLzma(window)
    return ZstdFrames(window)


class ZipLzma:
    """LZMA as zip packs it: two bytes version, two bytes length, five bytes properties, then raw data."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._head = b""
        self._inner: lzma.LZMADecompressor | None = None

    @property
    def eof(self) -> bool:
        return self._inner is not None and self._inner.eof

    @property
    def needs_input(self) -> bool:
        return self._inner is None or self._inner.needs_input

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data if self._inner is not None else b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._inner is None:
            self._head += data
            if len(self._head) < 9:
                return b""
            flags, dictionary = self._head[4], int.from_bytes(self._head[5:9], "little")
            if self._head[2:4] != b"\x05\0" or flags >= 9 * 5 * 5:
                raise lzma.LZMAError("not an LZMA header")
            if dictionary > self._window:
                raise MemoryError(f"dictionary of {human(dictionary)}")
            lc, lp, pb = flags % 9, flags // 9 % 5, flags // 45
            self._inner = lzma.LZMADecompressor(
                format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": max(dictionary, 4096), "lc": lc, "lp": lp, "pb": pb}]
            )
            data, self._head = self._head[9:], b""
        return self._inner.decompress(data, max_length)


class Decoder(Stream):
    """The unpacked bytes of `source`, over all frames that follow one another.

    `path`: under which losses are written down. `single`: one frame only, as in a zip. `size`: unpacked bytes promised by the
    archive, where it says (raw LZMA in a zip may have no end mark of its own).
    """

    def __init__(self, source: Stream, kind: str, path: str, ledger: Ledger, single: bool = False, size: int | None = None) -> None:
        super().__init__()
        self._source, self._kind, self._path, self._ledger = source, kind, path, ledger
        self._single, self._size = single, size
        self._engine = engine(kind, ledger.limits.window)
        self._out = 0  # unpacked bytes of all frames
        self._begin = source.position  # where the source stood when this decoder began
        self._frame_in = source.position  # where in the source the frame begins
        self._frame_out = 0  # unpacked bytes of this frame
        self._tape: list[bytes] | None = []
        self._taped = 0
        self._piece_at = source.position  # where in the source the last piece fed begins
        self._rest = b""  # first piece of a new frame, read together with the end of the frame before
        self._ended = False

    @property
    def used(self) -> int:
        """Packed bytes this decoder has used up so far."""
        return self._source.position - self._begin - (len(self._engine.unused_data) if self._engine.eof else 0)

    def _fill(self) -> bytes:
        while not self._ended:
            try:
                out = self._step()
            except FAULTS as fault:
                out = self._retry()
                self._fault(fault, self._out + len(out))
            if out:
                self._frame_out += len(out)
                self._out += len(out)
                self._check_growth()
                return out
        return b""

    def _step(self) -> bytes:
        """One call of the engine; empty output is no end."""
        if self._engine.eof:
            self._next_frame()
            return b""
        if not self._engine.needs_input:
            return self._engine.decompress(b"", OUT)
        if self._rest:
            piece, self._rest = self._rest, b""
        else:
            self._piece_at = self._source.position
            piece = self._source.piece(PIECE)
        if not piece:
            self._ended = True
            whole = self._engine.between if isinstance(self._engine, ZstdFrames) else self._size is not None and self._out >= self._size
            if not whole:
                self._cut_short()
            return b""
        self._keep(piece)
        return self._engine.decompress(piece, OUT)

    def _keep(self, piece: bytes) -> None:
        if self._tape is not None:
            self._tape.append(piece)
            self._taped += len(piece)
            if self._taped > TAPE:
                self._tape = None

    def _next_frame(self) -> None:
        """After the end of a frame: zeros are padding, another frame goes on, anything else is named."""
        rest = self._engine.unused_data
        if self._single:
            self._ended = True
            return
        at = self._source.position - len(rest)
        while True:
            stripped = rest.lstrip(b"\0")
            at += len(rest) - len(stripped)
            if stripped:
                rest = stripped
                break
            rest = self._source.piece(PIECE)
            if not rest:
                self._ended = True
                return
        while len(rest) < 8:
            more = self._source.piece(PIECE)
            if not more:
                break
            rest += more
        if not (starts_frame(rest) if self._kind == "zstd" else rest.startswith(MAGIC[self._kind])):
            self._after_end(at)
            return
        self._engine = engine(self._kind, self._ledger.limits.window)
        self._frame_in, self._frame_out, self._piece_at = at, 0, at
        self._tape, self._taped = [], 0
        self._rest = rest

    # ------------------------------------------------------------ damage

    def _retry(self) -> bytes:
        """What the failing call had unpacked before it failed: the frame once more, its last stretch byte by byte."""
        safe = self._piece_at - self._frame_in
        pieces = self._packed()
        if pieces is None or self._kind == "zstd":  # which is fed block by block and has nothing to give
            return b""
        decoder, skip, done = engine(self._kind, self._ledger.limits.window), self._frame_out, 0
        got: list[bytes] = []
        try:
            for piece in pieces:
                whole = min(max(safe - done, 0), len(piece))
                done += len(piece)
                for data in (piece[:whole], *(piece[k : k + 1] for k in range(whole, len(piece)))):
                    feed = bool(data)
                    while feed or not (decoder.needs_input or decoder.eof):
                        out = decoder.decompress(data if feed else b"", OUT if skip > OUT else RETRY_OUT)
                        got += [out[skip:]] if len(out) > skip else []
                        skip, feed = max(skip - len(out), 0), False
        except FAULTS:
            pass
        return b"".join(got)

    def _packed(self) -> Iterator[bytes] | None:
        """The packed bytes of this frame up to where the source stands."""
        if self._tape is not None:
            return iter(self._tape)
        return self._source.again(self._frame_in, self._source.position)

    def _lose(self, note: str, note_zh: str) -> None:
        self.damaged = True
        self._ledger.lose(self._path, "damaged", note, note_zh, self._source.remaining or 0)

    def _fault(self, fault: BaseException, given: int) -> None:
        self._ended = True
        if isinstance(fault, MemoryError) or "memory usage limit" in str(fault).lower():
            self.damaged = True
            most = human(self._ledger.limits.window)
            self._ledger.limit(
                self._path,
                f"the {TITLES[self._kind]} data asks for more memory than {most} to be unpacked",
                f"解压该 {TITLES[self._kind]} 数据所需内存超过 {most}",
                self._source.remaining or 0,
            )
            return
        at = self._piece_at - self._begin
        if "checksum" in str(fault).lower() or "crc" in str(fault).lower():
            self._lose(
                f"the {TITLES[self._kind]} checksum or length is wrong: {human(given)} were unpacked but may hold wrong bytes",
                f"{TITLES[self._kind]} 校验和或长度不符：已解压 {human_zh(given)}，其中可能有错误字节",
            )
            return
        self._lose(
            f"the {TITLES[self._kind]} data is damaged near packed byte {at}: everything after the first {human(given)} (unpacked) is lost",
            f"{TITLES[self._kind]} 数据在压缩流第 {at} 字节附近损坏：仅解压出前 {human_zh(given)}，其后的内容丢失",
        )

    def _cut_short(self) -> None:
        self._lose(
            f"the {TITLES[self._kind]} data is cut off before its end: {human(self._out)} could be unpacked",
            f"{TITLES[self._kind]} 数据在结束标记之前中断（被截断）：已解压 {human_zh(self._out)}",
        )

    def _after_end(self, at: int) -> None:
        self._ended = True
        self._lose(
            f"after the end of the {TITLES[self._kind]} data, from packed byte {at - self._begin} on, there are other bytes; they were not read",
            f"{TITLES[self._kind]} 数据结束之后（压缩流第 {at - self._begin} 字节起）还有不属于该格式的字节，未读取",
        )

    def _check_growth(self) -> None:
        """A last bound for bytes that nobody sees: what is skipped or looked through for headers."""
        limits = self._ledger.limits
        if self._out > 16 * limits.ratio_floor and self._out > limits.ratio * (self._source.position - self._begin):
            self._ended = True
            self._ledger.limit(
                self._path,
                f"the {TITLES[self._kind]} data grows more than {limits.ratio} times; everything after the first {human(self._out)} was not read",
                f"{TITLES[self._kind]} 数据膨胀超过 {limits.ratio} 倍；仅读取前 {human_zh(self._out)}，其后的内容未读取",
                self._source.remaining or 0,
            )


class Checked(Stream):
    """A stream whose length and CRC-32 are known beforehand (or not: None): says at its end whether they hold.

    `wrong` is called with the bytes read and whether the checksum (not the length) is what differs.
    """

    def __init__(self, source: Stream, size: int | None, crc: int | None, wrong: Callable[[int, bool], None]) -> None:
        super().__init__()
        self._source, self._size, self._want, self._wrong = source, size, crc, wrong
        self._crc = 0
        self._done = 0
        self._told = False

    def _fill(self) -> bytes:
        out = self._source.piece(OUT)
        if out:
            self._crc = isal_zlib.crc32(out, self._crc)
            self._done += len(out)
        elif not self._told:
            self._told = True
            if self._size is not None and self._done != self._size:
                self._wrong(self._done, False)
            elif self._want is not None and self._crc != self._want:
                self._wrong(self._done, True)
        return out

    @property
    def remaining(self) -> int | None:
        return None
