"""Where the bytes of a bundle come from: regular files, and pipes, which are copied so that they can be read again."""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from forensics.archive.ledger import Ledger, human, human_zh
from forensics.archive.stream import CHUNK, Blob, FileBlob, MemoryBlob, Stream, reread
from forensics.errors import CaseError, UnreadableBundle

WAIT = 3.0
"""Seconds a named pipe is given to find a writer."""


class Digest(Protocol):
    """What hashlib gives."""

    def update(self, data: bytes | memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


class FileStream(Stream):
    """A regular file from `start` to the size it had when it was opened; bytes are counted and go into `digest` as they pass.

    `changed` is called with the number of bytes that are missing where the file has become shorter, or cannot be read on.
    """

    def __init__(
        self, descriptor: int, size: int, ledger: Ledger, digest: Digest | None, changed: Callable[[int, str], None], start: int = 0
    ) -> None:
        super().__init__()
        self._blob = FileBlob(descriptor, size, start)
        self._descriptor, self._start = descriptor, start
        self._next = 0
        self.size = size
        self._ledger, self._digest, self._changed = ledger, digest, changed

    def _fill(self) -> bytes:
        buffer = bytearray(min(CHUNK, self.size - self._next))
        count = self._direct(memoryview(buffer)) if buffer else 0
        return bytes(buffer[:count]) if count < len(buffer) else bytes(buffer)

    def _direct(self, view: memoryview) -> int:
        view = view[: self.size - self._next]
        if not len(view) or self.damaged:
            return 0
        why = ""
        try:
            count = os.preadv(self._descriptor, [view], self._start + self._next)
        except OSError as error:
            count, why = 0, error.strerror or "error"
        if not count:
            self.damaged = True
            self._changed(self.size - self._next, why)
            return 0
        self._next += count
        self._ledger.read += count
        self._ledger.paid += count
        if self._digest is not None:
            self._digest.update(view[:count])
        return count

    def blob(self) -> Blob:
        """The same file for reading at any place; what is read there is not counted."""
        return self._blob

    def finish(self) -> None:
        """Put what nobody asked for into the digest, so that it covers the whole file."""
        if self._digest is not None:
            for part in reread(self._blob, self._next, self.size):
                self._digest.update(part)
        self._next = self.size

    def again(self, start: int, end: int) -> Iterator[bytes] | None:
        return reread(self._blob, start, end)

    @property
    def remaining(self) -> int | None:
        return self.size - self._next + len(self._chunk) - self._at


class PipeStream(Stream):
    """Standard input or a named pipe: waited for, and copied to `copy` (or, without one, held while it is small)."""

    def __init__(self, descriptor: int, name: str, ledger: Ledger, digest: Digest | None, copy: int | None, first: bytes = b"") -> None:
        super().__init__()
        self._first, self._name = first, name
        self._descriptor, self._ledger, self._digest, self._copy = descriptor, ledger, digest, copy
        self._held: bytearray | None = bytearray() if copy is None else None
        self._ended = False
        self.size = 0
        """Bytes that have come so far."""

    def _fill(self) -> bytes:
        parts, ready = [], 0
        while ready < CHUNK and not self._ended:  # whole chunks, so that nothing depends on how the bytes arrive
            part = self._read(CHUNK - ready)
            if not part:
                self._ended = True
                break
            parts.append(part)
            ready += len(part)
        out = b"".join(parts)
        if out:
            self._keep(out)
        return out

    def _read(self, most: int) -> bytes:
        if self._first:
            out, self._first = self._first, b""
            return out
        while True:
            try:
                return os.read(self._descriptor, most)
            except BlockingIOError:
                select.select([self._descriptor], [], [])
            except OSError as error:
                raise UnreadableBundle(f"standard input cannot be read ({error.strerror}): give a file, a folder, or pipe a bundle in") from error

    def _keep(self, data: bytes) -> None:
        self.size += len(data)
        self._ledger.read += len(data)
        self._ledger.paid += len(data)
        if self._digest is not None:
            self._digest.update(data)
        if self._copy is not None:
            if self.size > self._ledger.limits.spool_bytes:
                self._ended = True
                self._ledger.limit(
                    self._name,
                    f"more than {human(self.size)} came through the pipe; what followed was not read",
                    f"管道输入超过 {human_zh(self.size)}，其后的内容未读取",
                )
            write_all(self._copy, data)
        elif self._held is not None:
            self._held += data
            if len(self._held) > self._ledger.limits.memory:
                self._held = None

    def drain(self) -> None:
        """Read to the end, for the sake of the copy and the digest."""
        while self.piece(CHUNK):
            pass

    def blob(self) -> Blob | None:
        """All that came, once drained; None before that, and where it was too much to hold and there is no copy."""
        return self._kept() if self._ended else None

    def _kept(self) -> Blob | None:
        if self._copy is not None:
            return FileBlob(self._copy, self.size)
        return MemoryBlob(self._held) if self._held is not None else None

    def again(self, start: int, end: int) -> Iterator[bytes] | None:
        blob = self._kept()
        return None if blob is None else reread(blob, start, end)

    finish = drain


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Append to a scratch file; a full disk ends the run with one sentence."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise CaseError(
            f"no space to write {human(len(data))} of a copy of the bundle into the scratch folder ({error.strerror}): free space there, "
            "or unpack the bundle and give the folder"
        ) from error


def open_input(path: str) -> tuple[int, os.stat_result, bytes]:
    """The descriptor of a file or of a pipe with a writer, and what was read of the pipe; devices and sockets are refused."""
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            kind = "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "a socket"
            raise UnreadableBundle(f"{path!a} is {kind}, not a bundle: give an archive, a folder or a log file, or - for standard input")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise UnreadableBundle(f"{path!a} cannot be opened ({error.strerror}): check that it may be read") from error
    status = os.fstat(descriptor)
    if stat.S_ISFIFO(status.st_mode):
        return descriptor, status, _await_writer(descriptor, path)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise UnreadableBundle(f"{path!a} changed its kind while it was opened: give an archive, a folder or a log file")
    return descriptor, status, b""


def _await_writer(descriptor: int, path: str) -> bytes:
    """Wait until somebody has opened the pipe for writing; gives the first byte where it had to be read to find out."""
    patience = time.monotonic() + WAIT
    while time.monotonic() < patience:
        try:
            first = os.read(descriptor, 1)
        except BlockingIOError:  # there is a writer, which has written nothing yet
            return b""
        if first:
            return first
        time.sleep(0.05)
    os.close(descriptor)
    raise UnreadableBundle(f"{path!a} is a named pipe nobody writes to: start its writer first, or give an archive, a folder or a log file")
