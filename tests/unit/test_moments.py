"""When error lines were printed: none is lost from the count, a storm costs a few lines only, and clocks are brought to UTC."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forensics import moments, overview
from forensics.clocks import FileClock
from forensics.moments import Moments, sampled
from forensics.result import Window
from parsers.rows import Record
from rules.scan import Marked

SECOND = 1_000_000


class Heads:
    """A file whose line n was printed at second n; counts how often it was asked."""

    def __init__(self, timed: bool = True) -> None:
        self.asked = 0
        self.timed = timed

    def __call__(self, start: int, end: int) -> tuple[Record | None, str, int]:
        self.asked += 1
        return (Record("x", ts=start * SECOND, clock="local") if self.timed else None), "x", 0


def kind(count: int, first: int = 0, step: int = 1, keep: int = 32) -> Marked:
    """`count` lines that look alike, from line `first`; line n begins at byte n."""
    lines = [(n, n, n + 1) for n in range(first, first + count * step, step)]
    return Marked(*lines[0], (-1,), count, lines[:keep], lines[-1])


def test_in_a_small_file_every_error_line_has_its_own_moment() -> None:
    assert sampled([kind(3), kind(2, 10)], 1000, Heads()) == [(n * SECOND, "local", 1) for n in (0, 1, 2, 10, 11)]


def test_lines_of_one_time_are_one_moment() -> None:
    def head(start: int, end: int) -> tuple[Record | None, str, int]:
        return Record("x", ts=5, clock="local"), "x", 0

    assert sampled([kind(30)], 1000, head) == [(5, "local", 30)]


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60), st.sampled_from([1000, 8 << 20]))
def test_whatever_is_left_out_counts_for_its_neighbours(counts: list[int], size: int) -> None:
    heads = Heads()
    found = sampled([kind(count, n) for n, count in enumerate(counts)], size, heads)
    assert sum(count for _, _, count in found) == sum(counts)
    assert heads.asked <= (moments.MORE if size <= moments.SMALL else moments.FEW) + 2 * moments.STORMS


def test_a_storm_is_spread_up_to_its_last_line() -> None:
    found = sampled([kind(6032)], 8 << 20, Heads())
    late = [ts for ts, _, count in found if count > 100]
    assert len(late) == moments.PIECES and max(late) == 6031 * SECOND
    assert min(late) > 31 * SECOND


def test_lines_without_a_time_have_no_moment() -> None:
    assert sampled([kind(5000)], 8 << 20, Heads(timed=False)) == []


def test_many_moments_become_fewer_that_stand_for_as_many_lines() -> None:
    kept = Moments()
    for file_id in range(5):
        kept.add(file_id, moments.KEPT // 4, [(n, "utc", 1) for n in range(moments.KEPT // 4)])
    dated = kept.dated(dict.fromkeys(range(5), FileClock()))
    assert len(dated) <= moments.KEPT
    assert sum(count for _, _, count in dated) == 5 * (moments.KEPT // 4)
    assert kept.errors_of == dict.fromkeys(range(5), moments.KEPT // 4)


def test_moments_are_brought_to_utc_and_those_of_no_known_clock_are_left_out() -> None:
    kept = Moments()
    kept.add(0, 1, [(1_756_976_400 * SECOND, "local", 1)])
    kept.add(1, 1, [(5, "boot", 1)])
    assert kept.dated({0: FileClock(offset=28800), 1: FileClock()}) == [(0, (1_756_976_400 - 28800) * SECOND, 1)]


# ---------------------------------------------------------------- windows


def inside(window: Window, ts: int) -> bool:
    return window.start <= ts < window.start + window.step * window.bins


def test_a_short_incident_in_a_long_log_gets_a_window_of_its_own() -> None:
    old, storm = [(0, 3)], [(86_400 * SECOND + n * SECOND, 10) for n in range(40)]
    whole, near = overview._windows(old + storm, [86_400 * SECOND])
    assert inside(whole, 0) and inside(whole, storm[-1][0])
    assert not inside(near, 0) and all(inside(near, ts) for ts, _ in storm)
    assert near.step * near.bins < 120 * SECOND


def test_where_all_is_close_together_one_window_is_enough() -> None:
    assert len(overview._windows([(n * SECOND, 1) for n in range(20)], [0])) == 1
    assert overview._windows([], []) == []
    [only] = overview._windows([], [7 * SECOND])
    assert inside(only, 7 * SECOND)


def test_links_that_others_imply_are_left_out() -> None:
    links = {(0, 1): True, (1, 2): True, (0, 2): False, (2, 3): False, (0, 3): True}
    assert overview._reduced(links) == {(0, 1): True, (1, 2): True, (2, 3): False}
    deep = {(n, n + 1): True for n in range(400)}
    assert overview._reduced(deep) == deep
