"""zstd cut into its frames and blocks before it is unpacked.

The library would turn four bytes into 128 KB without a bound on the output of a call, and would throw away a whole call's output
at the first damage. Fed block by block (each at most 128 KB unpacked) it does neither.
"""

from __future__ import annotations

import zstandard

MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE = b"\x2a\x4d\x18"  # behind 0x50..0x5f
_DICTIONARY = (0, 1, 2, 4)
_CONTENT = (0, 2, 4, 8)


class ZstdError(ValueError):
    """Data that is no zstd, or damaged."""


def starts_frame(data: bytes) -> bool:
    """Whether `data` (8 bytes or more) begins a frame or a skippable frame."""
    return data.startswith(MAGIC) or data[1:4] == SKIPPABLE and data[0] & 0xF0 == 0x50


class ZstdFrames:
    """All frames of a zstd stream, in the manner of `bz2.BZ2Decompressor`: `eof` at the first byte between frames that begins none."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._buffer = b""
        self._at = 0
        self._inner: zstandard.ZstdDecompressionObj | None = None
        self._checksum = False
        self._last = False
        self._skip = 0
        self._starved = True
        self.eof = False

    @property
    def needs_input(self) -> bool:
        return self._starved and not self.eof

    @property
    def unused_data(self) -> bytes:
        return self._buffer[self._at :] if self.eof else b""

    @property
    def between(self) -> bool:
        """Nothing is half read (zeros are padding): the data may end here."""
        return self._inner is None and not self._skip and not self._buffer[self._at :].strip(b"\0")

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most one block's output (128 KB), whatever `max_length` (0: none)."""
        if data:
            self._buffer = self._buffer[self._at :] + data
            self._at = 0
            self._starved = False
        while not self._starved and not self.eof and max_length:
            out = self._one()
            if out:
                return out
        return b""

    def _one(self) -> bytes:
        """The next header, block or checksum; sets `_starved` where it is not all there yet."""
        ready = len(self._buffer) - self._at
        if self._skip:
            step = min(self._skip, ready)
            self._skip -= step
            self._at += step
            self._starved = self._skip > 0 or step == ready
            return b""
        if self._inner is None:
            self._head(ready)
            return b""
        if self._last:
            return self._feed(4, ready, end=True)
        if ready < 3:
            self._starved = True
            return b""
        word = int.from_bytes(self._buffer[self._at : self._at + 3], "little")
        kind, size = word >> 1 & 3, word >> 3
        if kind == 3 or size > 128 << 10:
            raise ZstdError("a block of no known kind")
        count, last = 3 + (1 if kind == 1 else size), bool(word & 1)
        self._last = last and self._checksum and ready >= count
        return self._feed(count, ready, end=last and not self._checksum)

    def _feed(self, count: int, ready: int, end: bool) -> bytes:
        """Give the decoder the next `count` bytes once they are all there; `end`: the frame ends with them."""
        if ready < count:
            self._starved = True
            return b""
        assert self._inner is not None
        block = self._buffer[self._at : self._at + count]
        try:
            out = self._inner.decompress(block)
        except zstandard.ZstdError as error:
            raise ZstdError(str(error)) from error
        self._at += count
        if end:
            self._inner, self._last = None, False
        self._starved = ready == count
        return out

    def _head(self, ready: int) -> None:
        """The header of a frame, or of a skippable one."""
        head = self._buffer[self._at : self._at + 18]
        if ready < 8:  # no frame is shorter
            self._starved = True
            return
        if not starts_frame(head):
            self.eof = True
            return
        if not head.startswith(MAGIC):
            self._skip = int.from_bytes(head[4:8], "little")
            self._at += 8
            self._starved = ready == 8
            return
        flags = head[4]
        single = bool(flags & 0x20)
        content = _CONTENT[flags >> 6] or (1 if single else 0)
        size = 5 + (not single) + _DICTIONARY[flags & 3] + content
        if ready < size:
            self._starved = True
            return
        if single:
            window = int.from_bytes(head[size - content : size], "little") + (256 if content == 2 else 0)
        else:
            window = (1 << (10 + (head[5] >> 3))) // 8 * (8 + (head[5] & 7))
        if window > self._window:
            raise MemoryError(f"a window of {window} bytes")
        self._inner = zstandard.ZstdDecompressor(max_window_size=max(self._window, 1 << 10)).decompressobj()
        self._checksum = bool(flags & 4)
        self._feed(size, ready, end=False)
