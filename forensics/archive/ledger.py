"""What reading a bundle may cost, and what of it could not be read: one ledger is shared by all readers of a bundle."""

from __future__ import annotations

from typing import Literal

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """How much a bundle may ask for before the reader stops and says so. Sizes are bytes after unpacking."""

    total_bytes: int = 64 << 30
    """All members together."""
    ratio: int = 200
    """Times the input a member may grow; logs grow 10 to 40 times."""
    ratio_floor: int = 256 << 20
    """A member below this size is never held against `ratio`; all members together have four times this, one decoder sixteen."""
    members: int = 1_000_000
    depth: int = 8
    """Archives inside archives; a tar and the compression around it count once."""
    memory: int = 64 << 20
    """A zip inside another archive up to this size is held in memory; a larger one goes to the scratch folder."""
    spool_bytes: int = 64 << 30
    """What may be written to the scratch folder."""
    header_bytes: int = 1 << 20
    """A PAX header or a GNU long name."""
    window: int = 128 << 20
    """Memory one decoder may ask for (zstd window, xz dictionary)."""
    lost: int = 10_000
    """Harmless losses (links, devices) named one by one; further ones are counted only."""


class Lost(msgspec.Struct):
    """One thing of the bundle that was not, or not wholly, read."""

    path: str
    """Display path of the member, archive or folder; the name of the bundle where it is the bundle itself."""
    status: Literal["damaged", "skipped"]
    note: str
    note_zh: str
    bytes: int = 0
    """Bytes missing, as far as they are known: unpacked for a member, packed for an archive."""
    partial: bool = True
    """True where log text may be missing (damage, limits, no permission); False for what is by design never followed
    (links, devices) and for remarks on what was read after all."""


class Stopped(Exception):
    """The bundle as a whole has reached a limit (already in the ledger): no further member is read."""


class Ledger:
    """Losses and costs of one pass over a bundle."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.lost: list[Lost] = []
        self.read = 0
        """Bytes of the input consumed so far."""
        self.paid = 0
        """The same, and the packed bytes of archives that were copied before they could be read: what `ratio` is held against."""
        self.given = 0
        """Bytes handed out as members."""
        self.members = 0
        self.spooled = 0
        self.stopped = False
        """The bundle as a whole has reached a limit: nothing more is read."""
        self._harmless = 0
        self._more: Lost | None = None

    def lose(self, path: str, status: Literal["damaged", "skipped"], note: str, note_zh: str, missing: int = 0, partial: bool = True) -> None:
        if not partial:
            self._harmless += 1
            if self._harmless > self.limits.lost:
                self._count_only()
                return
        self.lost.append(Lost(path, status, note, note_zh, max(missing, 0), partial))

    def limit(self, path: str, note: str, note_zh: str, missing: int = 0) -> None:
        """A limit was hit: always a loss of text."""
        self.lose(path, "skipped", f"limit: {note}", f"达到上限：{note_zh}", missing)

    def member(self) -> None:
        """Count one entry of any archive or folder, read or not; raises Stopped past the limit."""
        self.members += 1
        if self.members > self.limits.members:
            self.stopped = True
            self.limit(
                "",
                f"the bundle holds more than {self.limits.members} members; the rest were not read",
                f"包内成员超过 {self.limits.members} 个，其后的成员未读取",
            )
            raise Stopped

    def _count_only(self) -> None:
        more = self._harmless - self.limits.lost
        if self._more is None:
            self._more = Lost("", "skipped", "", "", 0, False)
            self.lost.append(self._more)
        self._more.note = f"{more} further links, devices or odd names were skipped and are not listed one by one"
        self._more.note_zh = f"另有 {more} 个链接、设备或异常名称被跳过，不再逐一列出"


def human(count: int) -> str:
    """A number of bytes for a person: 1.5 GB, 20 bytes."""
    if count < 10_000:
        return f"{count} bytes"
    power = min((len(str(count)) - 1) // 3, 6)
    return f"{count / 1000**power:.3g} {('', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB')[power]}"


def human_zh(count: int) -> str:
    return f"{count} 字节" if count < 10_000 else human(count)
