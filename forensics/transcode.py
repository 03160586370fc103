"""Members that are not plain UTF-8 lines, turned into such while they are read: UTF-16, GB18030, Latin-1, lines that end in a
lone CR, and the JSON lines that Docker writes. The number of lines stays what it was.

A bad byte becomes U+FFFD. A line of Docker's JSON becomes what containerd would have written: time, stream, F or P, text.
"""

from __future__ import annotations

import codecs
import json
from typing import Protocol

PIECE = 256 << 10
LONGEST = 4 << 20
"""A JSON line that has not ended by then is handed on as it is."""
PLAIN = ("utf-8", "utf-8-sig")
WIDE = ("utf-16-le", "utf-16-be", "gb18030", "latin-1")
"""Encodings whose texts have another length in UTF-8."""


class Source(Protocol):
    path: str
    size: int | None
    mtime: float | None

    def readinto(self, view: memoryview) -> int: ...


def form(encoding: str, head: bytes) -> str:
    """What has to be done to a member: its encoding, or "cr" or "docker-json" where it is UTF-8 of another shape."""
    if encoding not in PLAIN:
        return encoding
    if head.startswith((b'{"log":"', b'{"log": "')):
        return "docker-json"
    if head.count(b"\r") > 1 and b"\n" not in head:
        return "cr"
    return encoding


def raw_size(text: bytes | memoryview, encoding: str) -> int:
    """Bytes that a piece of transcoded text took up in its member; exact where every byte was sound."""
    if encoding not in WIDE:
        return len(text)
    return len(bytes(text).decode("utf-8", "replace").encode(encoding, "replace"))


class Lines:
    """A source that reads as UTF-8 lines. `bytes_read` counts what was read of the member underneath."""

    def __init__(self, source: Source, head: bytes, encoding: str):
        self.path, self.mtime = source.path, source.mtime
        self.size: int | None = None
        self.bytes_read = len(head)
        self._source, self._encoding = source, encoding
        codec = "utf-8" if encoding in ("cr", "docker-json") else encoding
        self._decoder = codecs.getincrementaldecoder(codec)("replace")
        self._scratch = memoryview(bytearray(PIECE))
        self._rest = b""
        self._done = False
        self._ready = self._turn(head[len(self.mark(head, encoding)) :], False)

    @staticmethod
    def mark(head: bytes, encoding: str) -> bytes:
        """The byte order mark a member begins with, or nothing."""
        known = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, codecs.BOM_UTF8)
        return known if head.startswith(known) else b""

    def readinto(self, view: memoryview) -> int:
        while not self._ready and not self._done:
            count = self._source.readinto(self._scratch)
            self.bytes_read += count
            self._done = not count
            self._ready = self._turn(bytes(self._scratch[:count]), self._done)
        count = min(len(self._ready), len(view))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _turn(self, raw: bytes, final: bool) -> bytes:
        if self._encoding == "cr":
            return raw.replace(b"\r", b"\n")
        if self._encoding == "docker-json":
            raw = self._rest + raw
            end = len(raw) if final or len(raw) > LONGEST else raw.rfind(b"\n") + 1
            *lines, last = raw[:end].split(b"\n")
            self._rest = raw[end:]
            return b"".join(docker_line(line) + b"\n" for line in lines) + (docker_line(last) if last else b"")
        return self._decoder.decode(raw, final).encode("utf-8", "replace")


def docker_line(line: bytes) -> bytes:
    """`{"log":"text\\n","stream":"stderr","time":"…Z"}` as `…Z stderr F text`; anything else stays as it is."""
    try:
        entry = json.loads(line)
        text, time, stream = entry["log"], entry["time"], entry.get("stream", "stdout")
        whole = text.endswith("\n")
        shown: str = f"{time} {stream} {'F' if whole else 'P'} " + text.rstrip("\r\n").replace("\n", " ").replace("\r", " ")
        return shown.encode("utf-8", "replace")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return line
