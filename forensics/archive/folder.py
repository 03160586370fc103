"""A folder: its regular files in a fixed order, opened so that no link is followed and nothing blocks, even if it changes underfoot."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator

from forensics.archive.ledger import Ledger, human, human_zh
from forensics.archive.names import Place, decode, visible
from forensics.archive.source import FileStream
from forensics.archive.tar import Entry

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 1000
"""Folders inside folders."""
_KINDS = (
    (stat.S_ISFIFO, "named pipe", "命名管道"),
    (stat.S_ISSOCK, "socket", "套接字"),
    (stat.S_ISCHR, "character device", "字符设备"),
    (stat.S_ISBLK, "block device", "块设备"),
    (stat.S_ISLNK, "symbolic link", "符号链接"),
)


class Folder:
    """`descriptor`: the folder, open; stays its owner's. `exclude`: (device, inode) of a folder to leave out. `hashed`: make digests."""

    def __init__(self, descriptor: int, ledger: Ledger, place: Place, exclude: tuple[int, int] | None, hashed: bool) -> None:
        self._descriptor, self._ledger, self._place, self._exclude = descriptor, ledger, place, exclude
        self._hashed = hashed
        self._digests: list[tuple[bytes, int, str]] = []
        self.size = 0
        """Bytes of the files opened so far."""

    def sha256(self) -> str:
        """Over path, size and digest of every file, sorted by path."""
        whole = hashlib.sha256()
        for path, size, digest in sorted(self._digests):
            whole.update(path + b"\0" + f"{size} {digest}\n".encode())
        return whole.hexdigest()

    def measure(self) -> int:
        """Bytes of all regular files, by their directory entries alone."""
        total, quiet = 0, Ledger(self._ledger.limits)
        for folder, _, names in self._folders(quiet):
            for name, is_link in names:
                if not is_link:
                    try:
                        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    except OSError:
                        continue
                    total += status.st_size if stat.S_ISREG(status.st_mode) else 0
        return total

    def entries(self) -> Iterator[Entry]:
        for folder, parts, names in self._folders(self._ledger):
            for name, is_link in names:
                self._ledger.member()
                shown = "/".join(decode(part) for part in (*parts, name))
                if is_link:
                    self._link(shown, name, folder)
                else:
                    yield from self._file(shown, b"/".join((*parts, name)), name, folder)

    def _file(self, shown: str, path: bytes, name: bytes, folder: int) -> Iterator[Entry]:
        try:
            if not stat.S_ISREG(mode := os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                self._special(shown, mode)  # known before it is opened: to open a device can have effects
                return
            descriptor = os.open(name, _FILE, dir_fd=folder)
        except OSError as error:
            self._unreadable(self._place.show(shown), error)
            return
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                self._special(shown, status.st_mode)
                return
            self.size += status.st_size
            claimed = self._place.claim(shown)
            digest = hashlib.sha256() if self._hashed else None
            stream = FileStream(
                descriptor, status.st_size, self._ledger, digest, lambda missing, why: self._shorter(claimed, status.st_size, missing, why)
            )
            yield Entry(claimed, stream, status.st_size, status.st_mtime)
            stream.finish()
            if digest is not None:
                self._digests.append((path, status.st_size, digest.hexdigest()))
            grown = os.fstat(descriptor).st_size - status.st_size
            if grown > 0:
                self._ledger.lose(
                    claimed,
                    "skipped",
                    f"the file grew by {human(grown)} while it was read; they are not part of this diagnosis",
                    f"读取期间文件增长了 {human_zh(grown)}，增长部分未纳入诊断",
                    grown,
                    partial=False,
                )
        finally:
            os.close(descriptor)

    # ------------------------------------------------------------ walking

    def _folders(self, ledger: Ledger) -> Iterator[tuple[int, tuple[bytes, ...], list[tuple[bytes, bool]]]]:
        """(descriptor, path, names with "is a link") of every folder: files before folders, both sorted.

        Each folder is opened anew from the top, part by part, so that few descriptors are open however deep it lies.
        """
        waiting: list[tuple[bytes, ...]] = [()]
        while waiting:
            parts = waiting.pop()
            shown = "/".join(decode(part) for part in parts)
            if len(parts) > DEEPEST:
                ledger.limit(self._place.show(shown), f"folders nested deeper than {DEEPEST} were not read", f"文件夹嵌套超过 {DEEPEST} 层，未读取")
                continue
            try:
                descriptor = self._open(parts)
            except OSError as error:
                self._unreadable(self._place.show(shown), error, ledger)
                continue
            try:
                status = os.fstat(descriptor)
                if (status.st_dev, status.st_ino) == self._exclude:
                    continue
                try:
                    names, folders = _listed(descriptor)
                except OSError as error:
                    self._unreadable(self._place.show(shown), error, ledger)
                    continue
                yield descriptor, parts, names
                waiting += [(*parts, name) for name in reversed(folders)]
            finally:
                os.close(descriptor)

    def _open(self, parts: tuple[bytes, ...]) -> int:
        descriptor = os.open(".", _FOLDER, dir_fd=self._descriptor)
        for part in parts:
            try:
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor

    # ------------------------------------------------------------ losses

    def _link(self, shown: str, name: bytes, folder: int) -> None:
        try:
            target = visible(decode(os.readlink(name, dir_fd=folder)))
        except OSError:
            target = "?"
        self._ledger.lose(
            self._place.show(shown), "skipped", f"symbolic link to {target}, never followed", f"指向 {target} 的符号链接，不会跟随", partial=False
        )

    def _special(self, shown: str, mode: int) -> None:
        word, word_zh = next(((en, zh) for test, en, zh in _KINDS if test(mode)), ("no regular file", "非普通文件"))
        self._ledger.lose(self._place.show(shown), "skipped", f"{word}, never opened", f"{word_zh}，不会打开", partial=False)

    def _unreadable(self, path: str, error: OSError, ledger: Ledger | None = None) -> None:
        why = error.strerror or "error"
        (ledger or self._ledger).lose(path or ".", "skipped", f"could not be opened: {why}", f"无法打开：{why}")

    def _shorter(self, path: str, size: int, missing: int, why: str) -> None:
        if why:
            self._ledger.lose(
                path,
                "damaged",
                f"could not be read on after {human(size - missing)}: {why}",
                f"读取 {human_zh(size - missing)} 后出错：{why}",
                missing,
            )
        else:
            self._ledger.lose(
                path,
                "damaged",
                f"the file became shorter while it was read: {human(size - missing)} of {human(size)} were there",
                f"读取期间文件变短：共 {human_zh(size)}，仅读到 {human_zh(size - missing)}",
                missing,
            )


def _listed(descriptor: int) -> tuple[list[tuple[bytes, bool]], list[bytes]]:
    """Sorted: (name, is a link) of all that is no folder, and the folders' names."""
    names, folders = [], []
    with os.scandir(descriptor) as found:
        for entry in found:
            name = os.fsencode(entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            else:
                names.append((name, entry.is_symlink()))
    return sorted(names), sorted(folders)
