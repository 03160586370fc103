"""Moments as they are typed: a time, a time further on or back, a share of the whole."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from forensics.errors import UsageError
from forensics.report.figures import EPOCH, Clock
from forensics.safe_text import safe

_STEP = re.compile(r"([+-])\s*(\d{1,9}(?:\.\d{1,6})?)\s*(us|ms|s|m|h|d)?")
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)\s*%")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,6}))?)?")
_UNITS = {"us": 1, "ms": 1000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
DAY = _UNITS["d"]


def parse(text: str, clock: Clock, here: int | None, first: int, last: int) -> int:
    """UTC microseconds. `here`: where the reader is; `first`, `last`: the ends of what there is. Times of day are taken in the zone of
    the report, on the day that brings them closest to `here`. Raises UsageError."""
    text = text.strip()
    at = here if here is not None else first
    if found := _SHARE.fullmatch(text):
        return round(first + min(100.0, float(found[1])) / 100 * (last - first))
    if found := _STEP.fullmatch(text):
        step = round(float(found[2]) * _UNITS[found[3] or "s"])
        return at + step if found[1] == "+" else at - step
    if found := _CLOCK.fullmatch(text):
        hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3] or 0)
        if hours < 24 and minutes < 60 and seconds < 60:
            micros = int((found[4] or "").ljust(6, "0"))
            in_day = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros
            offset = clock.offset * 1_000_000
            midnight = (at + offset) // DAY * DAY - offset
            choices = [midnight + shift * DAY + in_day for shift in (-1, 0, 1)]
            inside = [one for one in choices if first - _UNITS["m"] <= one <= last + _UNITS["m"]]
            return min(inside or choices, key=lambda one: abs(one - at))
    try:
        when = datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text.replace("/", "-")))
    except ValueError:
        raise UsageError(f"a time is wanted, such as 09:50:11, 2025-09-04 09:50, +5m, -30s or 50%; found {safe(text)!r}") from None
    if when.tzinfo is None:
        when -= timedelta(seconds=clock.offset)
    else:
        when = when.replace(tzinfo=None) - (when.utcoffset() or timedelta())
    return round((when - EPOCH).total_seconds() * 1_000_000)
