"""Runs of bytes that are read once, front to back; and blobs, which can be read at any place.

A stream never raises for what the data says: it ends early, and whoever knows why writes it into the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Protocol

CHUNK = 256 << 10


class Stream:
    """Base: subclasses give `_fill`; those that can put bytes straight into the caller's buffer also override `_direct`."""

    def __init__(self) -> None:
        self._chunk = b""
        self._at = 0
        self.position = 0
        """Bytes handed out so far."""
        self.damaged = False
        """It ended too early or its bytes are in doubt; the ledger says why."""

    def _fill(self) -> bytes:
        """The next bytes, at least one; empty at the end, and from then on."""
        raise NotImplementedError

    def _direct(self, view: memoryview) -> int:
        """Put the next bytes into `view` without a chunk between; 0 at the end."""
        chunk = self._fill()
        if len(chunk) <= len(view):
            view[: len(chunk)] = chunk
            return len(chunk)
        count = len(view)
        view[:] = memoryview(chunk)[:count]
        self._chunk, self._at = chunk, count
        return count

    def readinto(self, view: memoryview) -> int:
        """Fill `view` as far as there are bytes; less than its length only at the end."""
        done, room = 0, len(view)
        while done < room:
            ready = len(self._chunk) - self._at
            if ready:
                count = min(ready, room - done)
                view[done : done + count] = memoryview(self._chunk)[self._at : self._at + count]
                self._at += count
            else:
                count = self._direct(view[done:] if done else view)
                if not count:
                    break
            done += count
        self.position += done
        return done

    def peek(self, count: int) -> bytes:
        """Up to `count` of the next bytes without consuming them; fewer only at the end."""
        end = self._at + count
        if len(self._chunk) >= end:
            return self._chunk[self._at : end]
        parts, ready = [self._chunk[self._at :]], len(self._chunk) - self._at
        while ready < count:
            more = self._fill()
            if not more:
                break
            parts.append(more)
            ready += len(more)
        self._chunk, self._at = b"".join(parts), 0
        return self._chunk[:count]

    def take(self, count: int) -> bytes:
        """The next `count` bytes; fewer only at the end."""
        out = self.peek(count)
        self._at += len(out)
        self.position += len(out)
        return out

    def piece(self, most: int) -> bytes:
        """Between 1 and `most` of the next bytes, whatever is at hand; empty at the end."""
        if self._at >= len(self._chunk):
            self._chunk, self._at = self._fill(), 0
        out = self._chunk[self._at : self._at + most]
        self._at += len(out)
        self.position += len(out)
        return out

    def skip(self, count: int) -> int:
        """Pass over `count` bytes; gives how many there were."""
        done = 0
        while done < count:
            ready = len(self._chunk) - self._at
            if not ready:
                self._chunk, self._at = self._fill(), 0
                ready = len(self._chunk)
                if not ready:
                    break
            step = min(ready, count - done)
            self._at += step
            done += step
        self.position += done
        return done

    def again(self, start: int, end: int) -> Iterator[bytes] | None:
        """The bytes `start`..`end` of this stream once more, in pieces; None where they are gone."""
        return None

    def blob(self) -> Blob | None:
        """All bytes of this stream for reading at any place, where they lie in a file as they are."""
        return None

    @property
    def remaining(self) -> int | None:
        """Bytes still to come, where that is known."""
        return None


class Bounded(Stream):
    """The next `size` bytes of another stream: a member of an archive.

    `cut` is called, once, with the number of bytes missing when the other stream ends first.
    """

    def __init__(self, source: Stream, size: int, cut: Callable[[int], None]) -> None:
        super().__init__()
        self._source = source
        self._start = source.position
        self.size = size
        self.left = size
        """Bytes not yet taken from the source; peeked ones count as taken only when consumed."""
        self._cut = cut

    def _end(self) -> None:
        if self.left and not self.damaged:
            self.damaged = True
            self._cut(self.left)

    def readinto(self, view: memoryview) -> int:
        if self.left < len(view):
            view = view[: self.left]
        done = self._source.readinto(view)
        self.left -= done
        self.position += done
        if done < len(view):
            self._end()
        return done

    def peek(self, count: int) -> bytes:
        return self._source.peek(min(count, self.left))

    def take(self, count: int) -> bytes:
        return self._took(self._source.take(min(count, self.left)), count)

    def piece(self, most: int) -> bytes:
        return self._took(self._source.piece(min(most, self.left)), 1)

    def _took(self, out: bytes, wanted: int) -> bytes:
        self.left -= len(out)
        self.position += len(out)
        if len(out) < wanted:
            self._end()
        return out

    def skip(self, count: int) -> int:
        wanted = min(count, self.left)
        done = self._source.skip(wanted)
        self.left -= done
        self.position += done
        if done < wanted:
            self._end()
        return done

    def again(self, start: int, end: int) -> Iterator[bytes] | None:
        return self._source.again(self._start + start, self._start + end)

    def blob(self) -> Blob | None:
        whole = self._source.blob()
        return None if whole is None else _Window(whole, self._start, min(self.size, max(whole.size - self._start, 0)))

    @property
    def remaining(self) -> int | None:
        return self.left


class Blob(Protocol):
    """Bytes that can be read at any place: what a zip needs."""

    @property
    def size(self) -> int: ...

    def read(self, start: int, count: int) -> bytes:
        """The bytes from `start`; fewer than `count` only at the end (or where the file fails)."""
        ...


class MemoryBlob:
    def __init__(self, data: bytes | bytearray) -> None:
        self._data = memoryview(data)
        self.size = len(data)

    def read(self, start: int, count: int) -> bytes:
        return bytes(self._data[start : start + count]) if start >= 0 and count > 0 else b""


class FileBlob:
    """A regular file, by its descriptor (which stays its owner's to close)."""

    def __init__(self, descriptor: int, size: int, start: int = 0) -> None:
        self._descriptor = descriptor
        self._start = start
        self.size = size

    def read(self, start: int, count: int) -> bytes:
        count = min(count, self.size - start) if start >= 0 else 0
        parts = []
        while count > 0:
            try:
                part = os.pread(self._descriptor, count, self._start + start)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
            start += len(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class _Window:
    """A stretch of another blob."""

    def __init__(self, whole: Blob, start: int, size: int) -> None:
        self._whole, self._start = whole, start
        self.size = size

    def read(self, start: int, count: int) -> bytes:
        return self._whole.read(self._start + start, min(count, self.size - start)) if 0 <= start < self.size else b""


class BlobStream(Stream):
    """A stretch of a blob as a stream; `used` is told of every byte read."""

    def __init__(self, blob: Blob, start: int, size: int, used: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self._blob = blob
        self._start = self._next = start
        self._stop = start + size
        self._used = used

    def _fill(self) -> bytes:
        out = self._blob.read(self._next, min(CHUNK, self._stop - self._next)) if self._next < self._stop else b""
        self._next += len(out)
        if self._used:
            self._used(len(out))
        return out

    def again(self, start: int, end: int) -> Iterator[bytes] | None:
        return reread(self._blob, self._start + start, self._start + end)

    @property
    def remaining(self) -> int | None:
        return self._stop - self._next + len(self._chunk) - self._at


def reread(blob: Blob, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        part = blob.read(start, min(CHUNK, end - start))
        if not part:
            return
        start += len(part)
        yield part
