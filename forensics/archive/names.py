"""Names of members as they are shown: decoded, without control characters, inside the bundle, each different from all others."""

from __future__ import annotations

import hashlib
import re

from forensics.archive.ledger import Ledger

_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|$)")
LONGEST = 500
"""Characters of a name that are shown."""


def decode(raw: bytes, fallback: str = "utf-8") -> str:
    """A name in UTF-8, else in GB18030, else in `fallback` with the odd bytes spelled out."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode(fallback, "backslashreplace")


def visible(name: str) -> str:
    """The name with odd characters spelled out as \\x1b or \\u202e, and cut in the middle where it is very long."""
    if not name.isprintable():  # controls, what turns or hides text, halves of characters; a wide space is harmless
        name = "".join(char if char.isprintable() or char == "\u3000" else _spell(ord(char)) for char in name)
    if len(name) > LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
        name = f"{name[: LONGEST // 2]}…{digest}…{name[-LONGEST // 2 + 20 :]}"
    return name


def _spell(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def inside(name: str) -> tuple[str, bool]:
    """The name as a path that stays inside, and whether it had tried to leave (.., an absolute path, a drive)."""
    if name.isascii() and name[:1] not in "/.\\" and ".." not in name and ":" not in name and "//" not in name and "/./" not in name:
        return name, False
    escapes = False
    drive = _DRIVE.match(name)
    if drive:
        name, escapes = name[drive.end() :], True
    escapes = escapes or name.startswith("/")
    parts = name.split("/")
    escapes = escapes or ".." in parts
    return "/".join(part for part in parts if part not in ("", ".", "..")), escapes


class Unique:
    """Gives a name that came before a number: x.log, x.log (2), x.log (3)."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._next: dict[str, int] = {}

    def claim(self, name: str) -> str:
        if name not in self._seen:
            self._seen.add(name)
            return name
        number = self._next.get(name, 2)
        while (numbered := f"{name} ({number})") in self._seen:
            number += 1
        self._next[name] = number + 1
        self._seen.add(numbered)
        return numbered


class Place:
    """Where the members of one archive or folder stand in the bundle: turns their names into display paths."""

    def __init__(self, container: str, unique: Unique, ledger: Ledger) -> None:
        """`container`: display path of the archive, empty for the outermost."""
        self._prefix = f"{container}/" if container else ""
        self._unique, self._ledger = unique, ledger

    def show(self, name: str) -> str:
        """The path of something that is named but not read."""
        return visible(self._prefix + name)

    def claim(self, name: str) -> str:
        """The path of a member that is read: inside the bundle and unlike any other."""
        kept, escapes = inside(name)
        path = self._unique.claim(visible(self._prefix + (kept or "no-name")))
        if escapes:
            self._ledger.lose(
                self.show(name),
                "skipped",
                f"the name leads out of the bundle: its bytes were read as {path}, nothing was written",
                f"名称指向包外：其内容以 {path} 读取，未写入任何文件",
                partial=False,
            )
        return path
