"""Printed times: read fast, and brought to UTC once it is known what each file's clock shows.

    >>> cann("2025-10-14-06:12:40.118.362")        # CANN: milliseconds.microseconds
    1760422360118362
    >>> iso("2020-12-31T00:39:25.857705+08:00")    # a zone is printed, so this one is UTC already
    (1609346365857705, 'zoned')
    >>> iso("2025-02-30 10:00:00")                 # no such day
    (None, 'local')
    >>> year_of(bsd("Dec 31 23:59:59"), near=iso("2026-01-02 00:00:00")[0])
    2025

Times are microseconds since 1970 as if the printed clock were UTC. A text that is no valid time gives None; nothing here raises.
Stamps without a year (clock "noyear") count in the leap year 1972, so that 29 February has a place; `in_year` moves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
YEARLESS = 1972
"""Year in which stamps without one are counted."""
LONGEST_UPTIME = 100 * 366 * DAY
UNSET = int(datetime(2001, 1, 1, tzinfo=timezone.utc).timestamp()) * SECOND
"""A wall clock before this was not set yet: devices start in 1970 until they are synchronised."""

_EPOCH = datetime(1970, 1, 1)
_SECOND = re.compile(r"([0-9]{4})[-/]([0-9]{2})[-/]([0-9]{2})[-T ]([0-9]{2}):([0-9]{2}):([0-9]{2})")
_ISO = re.compile(r"(.{19})(?:[.,:]([0-9]{1,9}))?(?: ?(Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)(?: DST)?)?")
_MONTHS = {name: k for k, name in enumerate(("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1)}
_BSD = re.compile(r"([A-Z][a-z]{2}|[0-9]{1,2}月) +([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]{1,9}))?")
_CTIME = re.compile(r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) +([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})")
_HMS = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]{1,9}))?")

_seconds: dict[str, int | None] = {}
"""Whole seconds seen lately: neighbouring lines share them."""
_MILLI = {f"{k:03}": k * 1000 for k in range(1000)}
_MICRO = {f"{k:03}": k for k in range(1000)}


def wall(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micro: int = 0) -> int | None:
    """Microseconds since 1970 of a date and time, None for one that does not exist; second 60 is a leap second."""
    leap = second == 60
    try:
        seen = datetime(year, month, day, hour, minute, 59 if leap else second, micro) - _EPOCH
    except ValueError:
        return None
    return (seen.days * 86400 + seen.seconds + leap) * SECOND + seen.microseconds


def fraction(digits: str | None) -> int:
    """Microseconds of the digits behind the point of a second."""
    return int(digits[:6].ljust(6, "0")) if digits else 0


def second(text: str) -> int | None:
    """`2025-10-14-06:12:40` (T, blank or dash before the hour, / in the date) to microseconds."""
    try:
        return _seconds[text]
    except KeyError:
        pass
    seen = _SECOND.fullmatch(text)
    value = wall(*map(int, seen.groups())) if seen else None
    if len(_seconds) > 20_000:
        _seconds.clear()
    _seconds[text] = value
    return value


def cann(text: str) -> int | None:
    """`2025-10-14-06:12:40.118.362`, `….118362`, `….118` or without a fraction; the groups may lack leading zeros."""
    key = text[:19]
    base = _seconds.get(key) or second(key)
    if base is None or len(text) == 19:
        return base
    try:  # three digits, a point, three digits: nearly always
        if text[23] == ".":
            return base + _MILLI[text[20:23]] + _MICRO[text[24:]]
    except (KeyError, IndexError):
        pass
    milli, _, micro = text[20:].partition(".")
    if not (milli.isdigit() and milli.isascii() and (not micro or (micro.isdigit() and micro.isascii()))):
        return None
    if len(milli) > 3 or not micro:
        return base + fraction(milli)
    return base + int(milli) * 1000 + int(micro[:3])


def iso(text: str) -> tuple[int | None, str]:
    """`2025-10-14T06:12:40.118331+08:00` and its relatives to (microseconds, "zoned" or "local").

    Separators T, blank or dash; fraction behind a point, comma or colon; zone Z, +08:00, +0800 or +08, also behind a blank.
    """
    seen = _ISO.fullmatch(text)
    base = second(seen[1]) if seen else None
    if seen is None or base is None:
        return None, "local"
    ts = base + fraction(seen[2])
    zone = seen[3]
    if not zone:
        return ts, "local"
    return ts - zone_seconds(zone) * SECOND, "zoned"


def zone_seconds(zone: str) -> int:
    """Seconds east of UTC of `Z`, `+08:00`, `+0800` or `+08`; 0 for a zone that no clock on Earth has."""
    digits = zone[1:].replace(":", "")
    if zone[:1] not in ("+", "-") or not (digits.isdigit() and digits.isascii()):
        return 0
    east = int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60
    return 0 if east > 14 * 3600 else east if zone[0] == "+" else -east


def ctime(text: str) -> int | None:
    """`Tue Oct 14 14:12:00 2025`, `Oct 14 14:12:00 2025`."""
    seen = _CTIME.fullmatch(text)
    if seen is None or seen[1] not in _MONTHS:
        return None
    return wall(int(seen[6]), _MONTHS[seen[1]], int(seen[2]), int(seen[3]), int(seen[4]), int(seen[5]))


def bsd(text: str) -> int | None:
    """`Oct 14 14:12:01` or, on Chinese systems, `10月 14 14:12:01`, with or without a fraction: a yearless stamp."""
    seen = _BSD.fullmatch(text)
    if seen is None:
        return None
    month = int(seen[1][:-1]) if seen[1].endswith("月") else _MONTHS.get(seen[1], 0)
    return wall(YEARLESS, month, int(seen[2]), int(seen[3]), int(seen[4]), int(seen[5]), fraction(seen[6]))


def month_day(month: str, day: str, clock: str) -> int | None:
    """Month and day as digits and `HH:MM:SS[.fraction]`: a yearless stamp, as vLLM, klog and c10 print it."""
    seen = _HMS.fullmatch(clock)
    if seen is None or not (month + day).isdigit() or not (month + day).isascii():
        return None
    return wall(YEARLESS, int(month), int(day), int(seen[1]), int(seen[2]), int(seen[3]), fraction(seen[4]))


def uptime(text: str) -> int | None:
    """Seconds since boot, `1197.584409`, to microseconds; None for more than a hundred years."""
    whole, _, part = text.strip().partition(".")
    if not (whole.isdigit() and whole.isascii()) or len(whole) > 12 or (part and not (part.isdigit() and part.isascii())):
        return None
    value = int(whole) * SECOND + fraction(part)
    return value if value <= LONGEST_UPTIME else None


def stamp14(text: str) -> int | None:
    """The time in a file name, `20251014061240[118]`: 12 (minutes), 14 or 17 digits."""
    if not (text.isdigit() and text.isascii()) or len(text) not in (12, 14, 17):
        return None
    month, day, hour, minute, sec = (int(text[k : k + 2] or 0) for k in range(4, 14, 2))
    return wall(int(text[:4]), month, day, hour, minute, sec, int(text[14:] or 0) * 1000)


# ---------------------------------------------------------------- years


def in_year(ts: int, year: int) -> int | None:
    """A yearless stamp moved into a year; None for 29 February of a year that has none."""
    seen = _EPOCH + timedelta(microseconds=ts)
    try:
        moved = seen.replace(year=year) - _EPOCH
    except ValueError:
        return None
    return (moved.days * 86400 + moved.seconds) * SECOND + moved.microseconds


def year_of(ts: int | None, near: int | None) -> int | None:
    """The year that puts a yearless stamp closest to a dated one; None where either is missing."""
    if ts is None or near is None:
        return None
    about = (_EPOCH + timedelta(microseconds=near)).year
    placed = [(abs(moved - near), year) for year in range(max(about - 4, 1970), about + 5) if (moved := in_year(ts, year)) is not None]
    return min(placed)[1] if placed else None


def dated(stamps: Iterable[int | None], last_near: int | None) -> list[int | None]:
    """The yearless stamps of one file, in file order, with their years.

    `last_near`: a dated time close to the end of the file (its mtime, a neighbour's last record); without it nothing can be dated.
    Going back from the end, the year drops where the month jumps up by more than half a year: 1 January stands behind 31 December.
    """
    out: list[int | None] = list(stamps)
    later, year = None, None
    for k in range(len(out) - 1, -1, -1):
        ts = out[k]
        if ts is None:
            continue
        if year is None:
            year = year_of(ts, last_near)
        elif later is not None and ts - later > 183 * DAY:
            year -= 1
        elif later is not None and later - ts > 183 * DAY:
            year += 1  # written a little out of order around New Year
        later = ts
        out[k] = None if year is None else in_year(ts, year)
    return out


# ---------------------------------------------------------------- boot


def boot_time(anchors: Sequence[tuple[int, int]]) -> int | None:
    """Wall time of the boot, from (wall, uptime) pairs that single lines print together; None without any.

    The middle one of all differences: lines are written a little late, and a clock step falsifies only some.
    """
    zeros = sorted(wall_ts - up for wall_ts, up in anchors)
    return zeros[len(zeros) // 2] if zeros else None


def boots(uptimes: Sequence[int | None]) -> list[int]:
    """Which boot each line of one kernel log belongs to, from 0: a new one where the uptime falls by more than a minute."""
    out, boot, high = [], 0, 0
    for up in uptimes:
        if up is not None:
            if up < high - MINUTE:
                boot, high = boot + 1, up
            high = max(high, up)
        out.append(boot)
    return out
