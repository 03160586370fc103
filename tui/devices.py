"""What is known of each card: the last value of each number, its course over time, its health, its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tui.filters import BAD

if TYPE_CHECKING:
    import duckdb

SPARKS = "▁▂▃▄▅▆▇█"


class Series(msgspec.Struct):
    """A number over time; `times` are UTC microseconds, empty where the readings have no times."""

    name: str
    unit: str
    times: list[int] = []
    values: list[float] = []

    @property
    def last(self) -> float:
        return self.values[-1]


class Device(msgspec.Struct):
    """A card."""

    node: str
    device: int
    series: dict[str, Series] = {}
    facts: dict[str, str] = {}
    lines: int = 0
    errors: int = 0
    warnings: int = 0
    first_error: int | None = None

    def number(self, *names: str) -> Series | None:
        return next((self.series[name] for name in names if name in self.series), None)


def read(connection: duckdb.DuckDBPyConnection) -> list[Device]:
    """All cards of a case, by node and number."""
    found: dict[tuple[str, int], Device] = {}

    def at(node: str | None, device: int) -> Device:
        return found.setdefault((node or "", device), Device(node or "", device, {}, {}))

    rows = connection.execute(
        "SELECT coalesce(node, ''), device, name, unit, epoch_us(ts), value FROM metrics WHERE device >= 0 AND value IS NOT NULL "
        "ORDER BY ts NULLS FIRST, file_id, line_no"
    ).fetchall()
    for node, device, name, unit, ts, value in rows:
        one = at(node, device).series.setdefault(name, Series(name, unit, [], []))
        one.values.append(value)
        if ts is not None:
            one.times.append(ts)
    for node, device, name, value in connection.execute(
        "SELECT coalesce(node, ''), device, name, value FROM facts WHERE device >= 0 AND name LIKE 'device.%' ORDER BY file_id, line_no"
    ).fetchall():
        at(node, device).facts[name.split(".", 2)[-1]] = value
    bad = ", ".join(repr(one) for one in BAD)
    for node, device, lines, errors, warnings, first in connection.execute(
        f"SELECT coalesce(node, ''), device, count(*), count(*) FILTER (severity IN ({bad})), count(*) FILTER (severity = 'WARNING'), "
        f"epoch_us(min(ts) FILTER (severity IN ({bad}))) FROM events WHERE device >= 0 GROUP BY ALL"
    ).fetchall():
        one_device = at(node, device)
        one_device.lines, one_device.errors, one_device.warnings, one_device.first_error = lines, errors, warnings, first
    return [found[key] for key in sorted(found)]


def spark(values: list[float], width: int, low: float | None = None, high: float | None = None) -> str:
    """A course as `width` bars at most; of several values in one bar the highest."""
    if not values or width < 1:
        return ""
    low = min(values) if low is None else low
    high = max(values) if high is None else high
    count = min(width, len(values))
    out = ""
    for k in range(count):
        some = values[k * len(values) // count : max(k * len(values) // count + 1, (k + 1) * len(values) // count)]
        share = (max(some) - low) / (high - low) if high > low else 0.0
        out += SPARKS[min(7, max(0, int(share * 8)))]
    return out


def names(devices: list[Device]) -> list[str]:
    """Every number some card has, the usual ones first."""
    usual = ("npu.temperature", "npu.power", "npu.hbm.usage", "npu.hbm.used", "npu.aicore.usage", "npu.usage")
    there = {name for device in devices for name in device.series}
    return [name for name in usual if name in there] + sorted(there - set(usual))


def ecc(device: Device) -> float | None:
    """Double-bit errors that the card counts; None where nothing counts them."""
    counted = [max(one.values) for name, one in device.series.items() if name.startswith("npu.ecc.double_bit")]
    return max(counted) if counted else None
