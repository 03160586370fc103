"""Printed times become UTC by what each file's clock is."""

from __future__ import annotations

from forensics.clocks import FileClock, Told, settled
from parsers.clock import HOUR, SECOND, bsd, iso

NOON = iso("2025-09-04 12:00:00")[0] or 0


def test_a_zone_given_by_the_user_is_taken_off() -> None:
    clock = settled([Told(0, "n", "local", NOON, NOON)], 8 * 3600)[0]
    assert clock.utc(NOON, "local") == NOON - 8 * HOUR and clock.utc(NOON, "zoned") == NOON


def test_yearless_times_take_the_year_of_their_neighbours() -> None:
    last, first = bsd("Jan  2 00:00:00"), bsd("Dec 31 23:00:00")
    new_year = iso("2026-01-02 01:00:00")[0]
    clocks = settled([Told(0, "n", "noyear", first, last), Told(1, "n", "local", NOON, new_year)])
    assert clocks[0].utc(first, "noyear") == iso("2025-12-31 23:00:00")[0] and clocks[0].utc(last, "noyear") == iso("2026-01-02 00:00:00")[0]


def test_uptimes_are_placed_by_lines_that_print_both() -> None:
    clocks = settled(
        [Told(0, "n", "local", NOON, NOON, anchors=[(NOON, "local", 60 * SECOND)]), Told(1, "n", "boot", 0, 9), Told(2, "m", "boot", 0, 9)]
    )
    assert clocks[1].utc(61 * SECOND, "boot") == NOON + SECOND and clocks[2].utc(5, "boot") is None


def test_a_clock_that_was_never_set_gives_no_times() -> None:
    assert settled([Told(0, "n", "device", 10 * SECOND, 20 * SECOND)])[0].utc(15 * SECOND, "device") is None
    assert FileClock().utc(None, "local") is None and FileClock().utc(5, "none") is None
