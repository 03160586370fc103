"""Printed times: which are read, which are refused, and how missing years and boot times are filled in."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import clock


def micros(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=timezone.utc).timestamp()) * clock.SECOND  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "0000-00-00-00:00:00.000.000",
        "2025-02-30-09:50:11.954.001",
        "2025-09-04-25:61:61.000.000",
        "-2025-09-04--9:50:11.-54.001",
        "99999999-99-99-99:99:99.999999.999999",
        "２０２５-09-04-09:50:11.954.001",
        "2025-09-04-09:50:11.９５４.001",
        "2025-09-04-09:50:11.",
        "",
    ],
)
def test_times_that_do_not_exist_are_none(text: str) -> None:
    assert clock.cann(text) is None


def test_leap_second_is_the_second_after_59() -> None:
    assert clock.cann("2016-12-31-23:59:60.500.000") == micros(2017, 1, 1) + 500_000


@pytest.mark.parametrize("text, micro", [("118.362", 118362), ("118362", 118362), ("118", 118000), ("07.003", 7003), ("7.3", 7003), ("1183", 118300)])
def test_cann_fractions_in_all_widths(text: str, micro: int) -> None:
    assert clock.cann("2025-10-14-06:12:40." + text) == micros(2025, 10, 14, 6, 12, 40) + micro


@pytest.mark.parametrize(
    "text, seconds_back, name",
    [
        ("2025-10-14T06:12:40", 0, "local"),
        ("2025/10/14 06:12:40.000001", 0, "local"),
        ("2025-10-14 06:12:40,5", 0, "local"),
        ("2025-10-14T06:12:40.123456789Z", 0, "zoned"),
        ("2025-10-14T06:12:40.1+08:00", 8 * 3600, "zoned"),
        ("2025-10-14 06:12:40.1+0530", 19800, "zoned"),
        ("2025-10-14 06:12:40.1 -03", -3 * 3600, "zoned"),
        ("2025-10-14 06:12:40.144+08:00 DST", 8 * 3600, "zoned"),
    ],
)
def test_iso_times_with_every_zone(text: str, seconds_back: int, name: str) -> None:
    ts, seen = clock.iso(text)
    assert seen == name
    assert ts is not None
    assert ts // clock.SECOND == micros(2025, 10, 14, 6, 12, 40) // clock.SECOND - seconds_back


def test_huge_negative_and_wide_uptimes_are_none() -> None:
    assert [clock.uptime(text) for text in ("99999999999999999999.000000", "-5.000000", "nan", "１２.5", "")] == [None] * 5
    assert clock.uptime("    0.000000") == 0
    assert clock.uptime("1310493.343613") == 1310493343613


def test_file_name_times_of_12_14_and_17_digits() -> None:
    assert clock.stamp14("202506302036") == micros(2025, 6, 30, 20, 36)
    assert clock.stamp14("20250813013158") == micros(2025, 8, 13, 1, 31, 58)
    assert clock.stamp14("20251014061240118") == micros(2025, 10, 14, 6, 12, 40) + 118_000
    assert clock.stamp14("2025101406124") is None
    assert clock.stamp14("20251399061240118") is None


def test_years_over_new_year_follow_file_order() -> None:
    stamps = [clock.bsd("Dec 30 10:00:00"), clock.bsd("Dec 31 23:59:59"), None, clock.bsd("Jan  1 00:00:01")]
    assert clock.dated(stamps, micros(2026, 1, 2)) == [micros(2025, 12, 30, 10), micros(2025, 12, 31, 23, 59, 59), None, micros(2026, 1, 1, 0, 0, 1)]


def test_29_february_needs_a_leap_year() -> None:
    leap = clock.bsd("Feb 29 12:00:00")
    assert leap is not None
    assert clock.in_year(leap, 2024) == micros(2024, 2, 29, 12)
    assert clock.in_year(leap, 2025) is None
    assert clock.year_of(leap, micros(2025, 3, 1)) == 2024
    assert clock.bsd("Feb 30 00:00:00") is None


def test_without_a_neighbour_no_year_is_invented() -> None:
    assert clock.dated([clock.bsd("Oct 14 14:12:01")], None) == [None]


def test_boot_time_is_not_moved_by_a_few_late_lines() -> None:
    boot = micros(2025, 10, 14)
    anchors = [(boot + up * clock.SECOND + late, up * clock.SECOND) for up, late in ((10, 0), (20, 5), (30, 0), (40, 9_000_000))]
    assert abs((clock.boot_time(anchors) or 0) - boot) <= 5
    assert clock.boot_time([]) is None


def test_a_falling_uptime_starts_a_new_boot() -> None:
    second = clock.SECOND
    assert clock.boots([5 * second, 900 * second, 899 * second, None, 0, 3 * second]) == [0, 0, 0, 0, 1, 1]


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31, 23, 59, 59)))
def test_a_printed_time_is_read_back(when: datetime) -> None:
    text = f"{when.year:04}-{when:%m-%d-%H:%M:%S}.{when.microsecond // 1000:03}.{when.microsecond % 1000:03}"
    ts = clock.cann(text)
    assert ts is not None
    day, rest = divmod(ts, clock.DAY)
    assert day == (when - datetime(1970, 1, 1)).days
    assert rest % clock.SECOND == when.microsecond


@given(st.text(max_size=60))
def test_no_text_makes_the_readers_raise(text: str) -> None:
    for read in (clock.cann, clock.iso, clock.ctime, clock.bsd, clock.uptime, clock.stamp14, clock.second, clock.zone_seconds):
        read(text)
    clock.month_day(text[:2], text[2:4], text[4:])
