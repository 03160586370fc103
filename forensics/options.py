"""What a triage is asked to do, and what it says while it works: plain data between the command line and the pipeline."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from forensics.errors import UsageError
from forensics.safe_text import safe
from rules.model import Text

_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?", re.ASCII)
_SIZE = re.compile(r"(\d{1,18}) ?([kKmMgGtT]?)(?:i?[bB])?", re.ASCII)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Every field has the default of the command line."""

    out: str | None = None
    """The case folder; None: `<bundle name>.case` in the working folder."""
    packs: tuple[str, ...] = ()
    """Folders of further rule packs."""
    since: datetime | None = None
    """Lines before are left out. Without a zone: in the zone of the report."""
    until: datetime | None = None
    tz: str | None = None
    """Zone of wall clocks that do not say theirs, and of the report: "+08:00", "UTC" or a name such as "Asia/Shanghai"; None: found out."""
    workers: int | None = None
    """Processes that scan; None: as many as pay."""
    index: bool = True
    """Store all lines, so that they can be searched and asked by SQL."""
    force: bool = False
    """Replace a case folder that belongs to another bundle."""
    profile: str | None = None
    """Rules that are asked besides: "preflight", the checks before go-live."""
    baseline: str | None = None
    """Bundle of a good run that this one is compared with."""
    settings: tuple[tuple[str, str], ...] = ()
    """Options of rule packs (`pack.name`) and the values they get instead of their own."""
    max_bytes: int | None = None
    """Unpacked bytes at which reading stops; None here and below: the reader's own default."""
    max_members: int | None = None
    max_depth: int | None = None
    """Archives inside archives."""
    max_ratio: int | None = None
    """Unpacked bytes for each packed byte."""


class Progress(msgspec.Struct, frozen=True):
    """How far a stage is. Sent now and then, not for every block."""

    stage: Literal["read", "rules", "index", "copy"]
    done: int
    """Bytes of the input as given."""
    total: int
    """0: not known (standard input)."""
    lines: int = 0
    what: str = ""
    """The member being read."""
    finding: Text | None = None
    """Title of the first diagnosis that stands, long before the end; sent once."""


def zone(text: str) -> tzinfo:
    """The zone of `--tz`: an offset such as +08:00, UTC, or a name such as Asia/Shanghai. Raises UsageError."""
    if found := _OFFSET.fullmatch(text.strip()):
        sign, hours, minutes = found.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset < timedelta(hours=24):
            return timezone(-offset if sign == "-" else offset)
    elif text.strip().upper() in ("UTC", "Z"):
        return timezone.utc
    else:
        with contextlib.suppress(ValueError, OSError, KeyError):  # an unknown name is a KeyError, a path or a folder one of the others
            return ZoneInfo(text.strip())
    raise UsageError(f"--tz wants an offset such as +08:00, or a zone such as Asia/Shanghai; {safe(text)!r} is neither.")


def moment(text: str, option: str) -> datetime:
    """The time of `--since` or `--until`; without a zone where the text names none. Raises UsageError."""
    try:
        return datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text.strip()))
    except ValueError:
        raise UsageError(
            f"{option} wants a time such as 2025-09-04T09:12:03, with +08:00 or Z behind it where the zone matters; found {safe(text)!r}."
        ) from None


def setting(text: str) -> tuple[str, str]:
    """`pack.name=value` of `--set`. Raises UsageError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"--set wants an option of a rule pack and its value, such as profile.aicpu_least_us=50; found {safe(text)!r}.")
    return name.strip(), value.strip()


def byte_count(text: str, option: str) -> int:
    """A size such as 64G, 500M or 1000000; the units are powers of 1024. Raises UsageError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or int(found[1]) == 0:
        raise UsageError(f"{option} wants a size such as 64G, 500M or 1000000; found {safe(text)!r}.")
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[found[2].lower()]
