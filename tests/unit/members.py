"""Members of a bundle that exist only in memory, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from forensics.archive.ledger import Lost


class Text:
    """A member; `piece`: most bytes given at once."""

    def __init__(self, path: str, data: bytes, mtime: float | None = None, piece: int = 1 << 20):
        self.path, self.size, self.mtime = path, len(data), mtime
        self._data, self._piece, self._at = memoryview(data), piece, 0

    def readinto(self, view: memoryview) -> int:
        count = min(len(view), self._piece, len(self._data) - self._at)
        view[:count] = self._data[self._at : self._at + count]
        self._at += count
        return count


class Texts:
    """A bundle of such members."""

    def __init__(self, files: Mapping[str, bytes], piece: int = 1 << 20, mtime: float | None = None):
        self.files, self.piece, self.mtime = dict(files), piece, mtime
        self.lost: list[Lost] = []
        self.size = sum(map(len, files.values()))

    def members(self) -> Iterator[Text]:
        for path, data in self.files.items():
            yield Text(path, data, self.mtime, self.piece)


def plog(message: str, second: int = 0, level: str = "INFO", pid: int = 7) -> str:
    return f"[{level}] RUNTIME({pid},python3):2025-09-04-09:{second // 60 % 60:02d}:{second % 60:02d}.000.000 [engine.cc:12]{pid} Run:{message}\n"
