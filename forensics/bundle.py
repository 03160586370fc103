"""A bundle: everything that was collected after an incident, read once, front to back, whatever it is packed in.

A bundle is an archive, a folder, one file or standard input. What its members are is told by their bytes and never by their
names. Archives inside archives are opened where they lie. Nothing is unpacked to disk: only a zip that is too large for memory
inside another archive, and a copy of what comes through a pipe, go to the scratch folder, without a name there.

    with Bundle("logs.tar.gz") as bundle:
        for member in bundle.members():
            while count := member.readinto(view):
                ...
        for lost in bundle.lost: ...
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from forensics.archive.compress import Decoder
from forensics.archive.detect import COMPRESSED, HEAD, UNSUPPORTED, detect
from forensics.archive.folder import Folder
from forensics.archive.ledger import Ledger, Limits, Lost, Stopped, human, human_zh
from forensics.archive.names import Place, Unique, decode, visible
from forensics.archive.source import FileStream, PipeStream, open_input, write_all
from forensics.archive.stream import CHUNK, Blob, FileBlob, MemoryBlob, Stream
from forensics.archive.tar import Entry, Tar
from forensics.archive.zip import Zip
from forensics.archive.zip_directory import ends_like_zip
from forensics.errors import CaseError, UnreadableBundle, UsageError

__all__ = ["Bundle", "Limits", "Lost", "Member"]


class Member:
    """One file of the bundle; to be read before the next one is asked for."""

    def __init__(self, entry: Entry, ledger: Ledger) -> None:
        self.path = entry.path
        """Display path: parts joined by /, archives by their own names ("node1.tar.gz/plog/plog-1.log"); unlike any other."""
        self.size = entry.size
        """Bytes, as far as they are known beforehand (never for a compressed file)."""
        self.mtime = entry.mtime
        """Seconds since 1970, where the bundle says."""
        self.given = 0
        """Bytes read so far."""
        self._stream, self._ledger = entry.stream, ledger
        self._paid = ledger.paid
        self._ended = False

    def readinto(self, view: memoryview) -> int:
        """Fill `view`; less than its length only at the end, 0 from then on. Damage ends the member and is in `Bundle.lost`."""
        if self._ended:
            return 0
        count = self._stream.readinto(view)
        self._ended = count < len(view)
        self.given += count
        self._ledger.given += count
        limits = self._ledger.limits
        if self.given > limits.ratio_floor and self.given > limits.ratio * (self._ledger.paid - self._paid):
            self._limit(f"it grows more than {limits.ratio} times when unpacked", f"解压后膨胀超过 {limits.ratio} 倍")
        elif self._ledger.given > min(limits.total_bytes, max(4 * limits.ratio_floor, limits.ratio * self._ledger.read)):
            self._ledger.stopped = True
            self._limit(f"the bundle unpacks to more than {human(self._ledger.given)}", f"整个包解压超过 {human_zh(self._ledger.given)}")
        return count

    def _limit(self, why: str, why_zh: str) -> None:
        if not self._ended:
            self._ended = True
            self._ledger.limit(
                self.path,
                f"{why}; everything after the first {human(self.given)} was not read",
                f"{why_zh}；仅读取前 {human_zh(self.given)}，其后的内容未读取",
            )

    def skip_rest(self) -> None:
        """Read what was not asked for, so that damage in it is found."""
        if not self._ended:
            buffer = memoryview(bytearray(CHUNK))
            while self.readinto(buffer):
                pass


class Bundle:
    """The bundle at `source` ("-": standard input).

    `scratch`: an existing folder for copies that have to be made; without one, pipes and inner zips are held up to `limits.memory`.
    `exclude`: a folder inside the bundle that is no part of it (the case folder).
    Raises UsageError where there is nothing at `source`, UnreadableBundle where it is no bundle or cannot be opened.
    """

    def __init__(
        self, source: str | Path, limits: Limits | None = None, scratch: Path | None = None, exclude: Path | None = None, _again: Bundle | None = None
    ) -> None:
        self._source, self._scratch, self._exclude = os.fspath(source), scratch, exclude
        self.limits = limits or Limits()
        self._ledger = Ledger(self.limits)
        self._unique = Unique()
        self._place = Place("", self._unique, self._ledger)
        self._members = 0
        self._begun = False
        self._sha256 = ""
        self._descriptor = -1
        self._copy: int | None = None
        self._spools: list[int] = []
        self._start = 0
        self._pipe_first = b""
        self._folder: Folder | None = None
        self._file_size: int | None = None
        self._mtime: float | None = None
        if _again is not None:
            self._sha256 = _again.sha256
            self._share(_again)
        elif self._source == "-":
            self.name = "stdin"
            self._open_stdin()
        else:
            self.name = visible(decode(os.path.basename(os.fsencode(os.path.abspath(self._source))))) or "root"
            self._open_path()
        if self._folder is None and self._file_size is None and self._copy is None and scratch is not None:
            self._copy = self._scratch_file()

    # ------------------------------------------------------------ what is known of it

    @property
    def lost(self) -> list[Lost]:
        """All that was not, or not wholly, read so far."""
        return self._ledger.lost

    @property
    def size(self) -> int:
        """Bytes of the input as given: of the archive, or of all files of the folder. Of a pipe, what has come so far."""
        if self._folder is not None:
            if self._file_size is None:
                self._file_size = self._folder.measure()
            return self._file_size
        return self._file_size if self._file_size is not None else self._ledger.read

    @property
    def compressed_read(self) -> int:
        """Bytes of the input read so far: progress against `size`."""
        return self._ledger.read

    @property
    def unpacked(self) -> int:
        """Bytes given out as members so far."""
        return self._ledger.given

    @property
    def sha256(self) -> str:
        """Of the input's bytes (of a folder: over path, size and digest of its files); empty until all members were asked for."""
        return self._sha256

    # ------------------------------------------------------------ members

    def members(self) -> Iterator[Member]:
        """Every file of the bundle, once. Raises UnreadableBundle at the end where there was none that could be read."""
        if self._begun:
            raise RuntimeError("the members of a bundle can be asked for once: use reopen()")
        self._begun = True
        try:
            if self._folder is not None:
                yield from self._of_folder(self._folder)
            else:
                yield from self._of_stream()
        except Stopped:
            pass
        if not self._members:
            raise UnreadableBundle(self._nothing())

    def _of_folder(self, folder: Folder) -> Iterator[Member]:
        try:
            for entry in folder.entries():
                yield from self._each(self._open(entry, entry.path, 0, False))
        finally:
            self._sha256 = self._sha256 or folder.sha256()

    def _of_stream(self) -> Iterator[Member]:
        digest = None if self._sha256 else hashlib.sha256()
        stream: FileStream | PipeStream
        if self._file_size is not None:
            stream = FileStream(self._descriptor, self._file_size, self._ledger, digest, self._shorter, self._start)
            entry = Entry(self.name, stream, self._file_size, self._mtime)
        else:
            stream = PipeStream(self._descriptor, self.name, self._ledger, digest, self._copy, self._pipe_first)
            entry = Entry(self.name, stream)
        if not stream.peek(1):
            raise UnreadableBundle(f"{self._shown()} is empty (0 bytes): give an archive, a folder or a log file")
        try:
            yield from self._each(self._open(entry, "", 0, False))
        finally:
            if isinstance(stream, FileStream) or not self._ledger.stopped:  # a pipe may never end
                stream.finish()
            self._file_size = stream.size
            if digest is not None:
                self._sha256 = digest.hexdigest()

    def _each(self, members: Iterator[Member]) -> Iterator[Member]:
        """The members of one file of the bundle, until the bundle as a whole has reached a limit."""
        for member in members:
            self._members += 1
            yield member
            member.skip_rest()
            if self._ledger.stopped:
                raise Stopped

    def _open(self, entry: Entry, container: str, depth: int, packed: bool) -> Iterator[Member]:
        """The members inside one run of bytes, or that run as a member.

        `container`: display path its members stand under; `depth`: archives around it; `packed`: the innermost of them is plain
        compression, which makes one archive together with a tar in it.
        """
        stream, path = entry.stream, entry.path
        kind = detect(stream.peek(HEAD)) or self._zip_behind(stream, path)
        if kind == "tar":
            depth -= packed
        if not kind:
            yield Member(entry, self._ledger)
        elif kind in UNSUPPORTED:
            self._ledger.lose(
                path,
                "skipped",
                f"a {UNSUPPORTED[kind]} archive, which is not read: unpack it and give the folder",
                f"{UNSUPPORTED[kind]} 归档不受支持：请先解压，再以文件夹形式输入",
                entry.size or stream.remaining or 0,
            )
        elif depth >= self.limits.depth:
            self._ledger.limit(
                path,
                f"archives are nested deeper than {self.limits.depth} levels; this one was not opened",
                f"归档嵌套超过 {self.limits.depth} 层，未打开",
                entry.size or stream.remaining or 0,
            )
        elif kind in COMPRESSED:
            decoder = Decoder(stream, kind, path, self._ledger)
            if decoder.peek(1) or not decoder.damaged:
                yield from self._open(Entry(path, decoder, None, entry.mtime), container, depth + 1, True)
        else:
            place, spools = Place(container, self._unique, self._ledger), len(self._spools)
            archive: Tar | Zip | None = Tar(stream, path, self._ledger, place) if kind == "tar" else self._zip(stream, path, place)
            for inner in archive.entries() if archive else ():
                yield from self._open(inner, inner.path, depth + 1, False)
            while len(self._spools) > spools:
                os.close(self._spools.pop())

    def _zip_behind(self, stream: Stream, path: str) -> str:
        """A zip with a program in front, or with a damaged head: its directory stands at its end."""
        head = stream.peek(4)
        if not head.startswith((b"MZ", b"\x7fELF", b"#!")) and not path.lower().endswith(".zip"):
            return ""
        blob = stream.blob()
        return "zip" if blob is not None and ends_like_zip(blob) else ""

    def _zip(self, stream: Stream, path: str, place: Place) -> Zip | None:
        """The zip in this stream; None (and a word in the ledger) where there is no room to hold it."""
        ledger = self._ledger

        def paid(count: int) -> None:
            ledger.paid += count

        def read(count: int) -> None:
            ledger.paid += count
            ledger.read += count

        if isinstance(stream, PipeStream) and stream.blob() is None:
            stream.drain()
        blob = stream.blob()
        if blob is None:
            blob = self._held(stream, path)
        return None if blob is None else Zip(blob, path, ledger, place, read if isinstance(stream, FileStream) else paid)

    def _held(self, stream: Stream, path: str) -> Blob | None:
        """All of a stream in memory, or in the scratch folder where it is too much."""
        data, most = bytearray(), self.limits.memory
        while len(data) <= most and (piece := stream.piece(CHUNK)):
            data += piece
        if len(data) <= most:
            return MemoryBlob(data)
        room = self.limits.spool_bytes - self._ledger.spooled
        if self._scratch is not None and room > 0:
            descriptor, size = self._scratch_file(), 0
            self._spools.append(descriptor)
            part: bytes | memoryview = memoryview(data)
            while part and size < room:
                write_all(descriptor, part)
                size += len(part)
                part = stream.piece(CHUNK)
            self._ledger.spooled += size
            if not part:
                return FileBlob(descriptor, size)
        self._ledger.limit(
            path,
            f"a zip inside another archive is larger than the {human(max(most, room if self._scratch else 0))} there is room for; it was not read",
            f"嵌套的 zip 超过可用空间（{human_zh(max(most, room if self._scratch else 0))}），未读取",
            stream.remaining or 0,
        )
        return None

    def _nothing(self) -> str:
        """Why no member came out of the bundle, in one sentence."""
        first = next((lost for lost in self.lost if lost.partial), self.lost[0] if self.lost else None)
        if first is None:
            return f"{self._shown()} holds no files: give a folder or an archive with log files in it"
        where = "" if first.path in ("", self.name) else f"{first.path}: "
        return f"nothing in {self._shown()} could be read ({where}{first.note})"

    def _shown(self) -> str:
        return "standard input" if self._source == "-" else repr(self.name)

    def _shorter(self, missing: int, why: str) -> None:
        what, what_zh = (f"could not be read on: {why}", f"读取出错：{why}") if why else ("became shorter while it was read", "读取期间变短")
        self._ledger.lose(self.name, "damaged", f"the file {what}; {human(missing)} are missing", f"文件{what_zh}；缺失 {human_zh(missing)}", missing)

    # ------------------------------------------------------------ opening and closing

    def _open_path(self) -> None:
        try:
            mode = os.stat(self._source).st_mode
        except FileNotFoundError as error:
            raise UsageError(f"no file or folder at {self._source!a}: check the path") from error
        except (OSError, ValueError) as error:
            raise UnreadableBundle(f"{self._source!a} cannot be looked at ({getattr(error, 'strerror', None) or error})") from error
        if stat.S_ISDIR(mode):
            try:
                self._descriptor = os.open(self._source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                raise UnreadableBundle(f"the folder {self._source!a} cannot be opened ({error.strerror}): check that it may be read") from error
            self._set_folder()
            return
        self._descriptor, status, self._pipe_first = open_input(self._source)
        if stat.S_ISREG(status.st_mode):
            self._file_size, self._mtime = status.st_size, status.st_mtime

    def _open_stdin(self) -> None:
        try:
            if sys.stdin is None:  # closed: its number may belong to another file by now
                raise OSError("closed")
            status = os.fstat(0)
            self._descriptor = os.dup(0)
        except OSError as error:
            raise UnreadableBundle("standard input is closed: pipe a bundle in, or give a file or a folder") from error
        if stat.S_ISREG(status.st_mode):
            self._start = os.lseek(0, 0, os.SEEK_CUR)
            self._file_size, self._mtime = max(status.st_size - self._start, 0), status.st_mtime
        elif stat.S_ISDIR(status.st_mode):
            raise UnreadableBundle("standard input is a folder: give it by its path")
        elif stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode) and not (os.isatty(0) or status.st_rdev == os.stat(os.devnull).st_rdev):
            raise UnreadableBundle("standard input is a device, which may never end: pipe a bundle in, or give a file or a folder")

    def _set_folder(self) -> None:
        out = None
        if self._exclude is not None:
            try:
                status = os.stat(self._exclude)
                out = (status.st_dev, status.st_ino)
            except OSError:
                pass  # not there yet: nothing to leave out
        self._folder = Folder(self._descriptor, self._ledger, self._place, out, hashed=not self._sha256)

    def _scratch_file(self) -> int:
        """A file without a name in the scratch folder: it is gone with its descriptor, even when the run is killed."""
        try:
            descriptor, path = tempfile.mkstemp(prefix="bundle-", dir=self._scratch)
            os.unlink(path)
        except OSError as error:
            raise CaseError(
                f"no file can be made in the scratch folder {str(self._scratch)!a} ({error.strerror}): check that it may be written"
            ) from error
        return descriptor

    def _share(self, first: Bundle) -> None:
        """Stand where `first` stood before it was read."""
        self.name = first.name
        self._start, self._file_size, self._mtime = first._start, first._file_size, first._mtime
        if first._folder is not None:
            self._descriptor, self._file_size = os.dup(first._descriptor), None
            self._set_folder()
        elif first._copy is not None:
            self._descriptor, self._start = os.dup(first._copy), 0
        elif first._file_size is not None and stat.S_ISREG(os.fstat(first._descriptor).st_mode):
            self._descriptor = os.dup(first._descriptor)
        else:
            raise UsageError("what came through the pipe is gone: give a scratch folder for a copy, or a file")

    def reopen(self) -> Bundle:
        """The same bundle for a second pass; a pipe is read from its copy, and must have been read to its end."""
        return Bundle(self._source, self.limits, self._scratch, self._exclude, _again=self)

    def close(self) -> None:
        """Let go of the input and of all copies."""
        for descriptor in (self._descriptor, self._copy, *self._spools):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)
        self._descriptor, self._copy, self._spools = -1, None, []

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
