"""Numbers and times as a reader wants them."""

from __future__ import annotations

from datetime import datetime, timedelta

EPOCH = datetime(1970, 1, 1)


def _moment(us: int, offset: int = 0) -> datetime | None:
    try:
        return EPOCH + timedelta(microseconds=us, seconds=offset)
    except OverflowError:
        return None


def iso(us: int | None) -> str | None:
    """UTC microseconds as `2025-09-04T01:50:11.954001Z`; None for no time, or for one no calendar has."""
    when = None if us is None else _moment(us)
    return None if when is None else when.isoformat(timespec="microseconds") + "Z"


def offset_of(zone: str) -> int:
    """Seconds east of UTC of an offset such as +08:00; 0 for anything else."""
    try:
        return int(datetime.strptime(zone, "%z").utcoffset().total_seconds()) if zone else 0  # type: ignore[union-attr]
    except ValueError:
        return 0


def zone_name(zone: str) -> str:
    """UTC+8 for +08:00."""
    seconds = offset_of(zone)
    if not seconds:
        return "UTC"
    hours, rest = divmod(abs(seconds) // 60, 60)
    return f"UTC{'+' if seconds > 0 else '-'}{hours}" + (f":{rest:02d}" if rest else "")


class Clock:
    """Shows times in the zone of the report; with the date only where the report spans more than a day."""

    def __init__(self, zone: str, first: int | None, last: int | None):
        self.zone, self.offset = zone, offset_of(zone)
        ends = [self._at(us) for us in (first, last)]
        self.dated = any(end is None for end in ends) or ends[0].date() != ends[1].date()  # type: ignore[union-attr]

    def _at(self, us: int | None) -> datetime | None:
        return None if us is None else _moment(us, self.offset)

    def time(self, us: int | None) -> str:
        """`09:50:11.954`, with `2025-09-04` in front where needed; empty for no time."""
        when = self._at(us)
        if when is None:
            return ""
        text = when.strftime("%H:%M:%S") + f".{when.microsecond // 1000:03d}"
        return f"{when.date().isoformat()} {text}" if self.dated else text

    def span(self, first: int | None, last: int | None) -> str:
        """`2025-09-04 09:12:03 → 09:50:14 UTC+8`; empty where either is missing."""
        begin, end = self._at(first), self._at(last)
        if begin is None or end is None:
            return ""
        tail = end.isoformat(" ", "seconds") if self.dated else end.strftime("%H:%M:%S")
        return f"{begin.isoformat(' ', 'seconds')} → {tail} {zone_name(self.zone)}"


def span(us: int, lang: str) -> str:
    """A length of time: `4 min 12.3 s`, `0.5 s`."""
    minutes, rest = divmod(us / 1e6, 60)
    seconds = f"{rest:.1f}".removesuffix(".0")
    if lang == "zh":
        return f"{minutes:.0f} 分 {seconds} 秒" if minutes else f"{seconds} 秒"
    return f"{minutes:.0f} min {seconds} s" if minutes else f"{seconds} s"


def duration(ms: float) -> str:
    """Milliseconds to three digits, in a unit that suits them: `812 µs`, `1.53 ms`, `2.40 s`."""
    for factor, unit in ((1e3, "µs"), (1.0, "ms")):
        if ms * factor < 999.5:
            return f"{_digits(ms * factor)} {unit}"
    return f"{_digits(ms / 1e3)} s"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def size(count: float) -> str:
    """Bytes as `1.02 GB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}" if count < 999.5 else f"{count:.0f} {unit}"


def number(count: int, lang: str) -> str:
    """A count, short: `7.1 M`, `12,034`; in Chinese `710 万`."""
    if lang == "zh":
        for unit, name in ((10**8, "亿"), (10**4, "万")):
            if count >= unit:
                return f"{count / unit:.3g} {name}" if count / unit < 999.5 else f"{count // unit} {name}"
        return str(count)
    return f"{count / 1e6:.3g} M" if 1_000_000 <= count < 999_500_000 else f"{count:,}"
