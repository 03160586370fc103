"""Zones of files: from what is printed, from twins, from names and write times, and what is only assumed."""

from __future__ import annotations

import random

from parsers.clock import DAY, HOUR, SECOND
from parsers.settle import ClockEvidence, Offset, settle, twin_key

NOON = 20_000 * DAY + 12 * HOUR
EAST = 8 * 3600


def test_printed_zones_need_no_offset() -> None:
    found = settle([ClockEvidence(1, "n", "zoned"), ClockEvidence(2, "n", "utc"), ClockEvidence(3, "n", "boot"), ClockEvidence(4, "n", "none")])
    assert found == {1: Offset(0, "exact", "utc"), 2: Offset(0, "exact", "utc")}


def test_a_file_that_states_its_zone_elsewhere_is_taken_at_its_word() -> None:
    assert settle([ClockEvidence(1, "n", "local", NOON, NOON, zones=(EAST, EAST))])[1] == Offset(EAST, "measured", "stated", 2)


def test_twins_give_the_hours_between_two_files() -> None:
    twins = {f"device {k} heartbeat lost": NOON + k * SECOND for k in range(5)}
    late = {key: ts + EAST * SECOND + 400_000 for key, ts in twins.items()}
    found = settle([ClockEvidence(1, "n", "local", twins=late), ClockEvidence(2, "n", "zoned", twins=twins)])
    assert found[1] == Offset(EAST, "measured", "twin", 5)


def test_twins_on_other_nodes_say_nothing() -> None:
    found = settle([ClockEvidence(1, "a", "local", twins={"x": NOON + EAST * SECOND}), ClockEvidence(2, "b", "zoned", twins={"x": NOON})])
    assert found[1].sure == "assumed"


def test_twins_that_disagree_say_nothing() -> None:
    one = {"a": NOON, "b": NOON, "c": NOON}
    other = {"a": NOON + HOUR, "b": NOON + 2 * HOUR, "c": NOON + 777 * SECOND}
    assert settle([ClockEvidence(1, "n", "local", twins=other), ClockEvidence(2, "n", "zoned", twins=one)])[1].sure == "assumed"


def test_offsets_travel_from_file_to_file() -> None:
    files = [
        ClockEvidence(1, "n", "zoned", twins={"a": NOON}),
        ClockEvidence(2, "n", "noyear", twins={"a": NOON + EAST * SECOND, "b": NOON + EAST * SECOND}),
        ClockEvidence(3, "n", "local", twins={"b": NOON}, process="77"),
        ClockEvidence(4, "n", "local", process="77"),
    ]
    found = settle(files)
    assert [found[k].seconds for k in (1, 2, 3, 4)] == [0, EAST, 0, 0]
    assert found[4].why == "process"


def test_device_clocks_may_be_off_by_any_amount() -> None:
    host = {f"event {k}": NOON + k * SECOND for k in range(4)}
    device = {key: ts - 1234 * SECOND for key, ts in host.items()}
    found = settle([ClockEvidence(1, "n", "utc", twins=host), ClockEvidence(2, "n", "device", twins=device)])
    assert found[2] == Offset(-1234, "measured", "twin", 4)


def test_a_device_clock_that_was_never_set_is_named() -> None:
    assert settle([ClockEvidence(1, "n", "device", 0, 500 * SECOND)])[1] == Offset(0, "unset", "unset")


def test_host_time_in_the_name_of_a_device_log_gives_the_zone_of_the_process() -> None:
    device = ClockEvidence(1, "n", "device", first=NOON, last=NOON + HOUR, named=NOON + EAST * SECOND + 3 * SECOND, process="1382")
    host = ClockEvidence(2, "n", "local", process="1382")
    found = settle([device, host])
    assert (found[1].seconds, found[2].seconds, found[2].why, found[2].sure) == (0, EAST, "name", "likely")


def test_the_last_write_gives_the_zone_when_nothing_better_does() -> None:
    files = [ClockEvidence(k, "n", "local", last=NOON + EAST * SECOND, mtime=NOON / SECOND + 2) for k in (1, 2)]
    assert settle(files)[1] == Offset(EAST, "likely", "written", 2)
    copied = ClockEvidence(3, "n", "local", last=NOON, mtime=NOON / SECOND + 987)
    assert settle([copied])[3].sure == "assumed"


def test_the_users_zone_is_used_where_nothing_was_measured() -> None:
    files = [ClockEvidence(1, "n", "local"), ClockEvidence(2, "n", "local", zones=(0,)), ClockEvidence(3, "n", "device")]
    found = settle(files, given=EAST)
    assert (found[1], found[2].seconds, found[3].seconds) == (Offset(EAST, "given", "given"), 0, 0)


def test_of_two_unknown_files_eight_hours_apart_the_early_one_is_utc() -> None:
    files = [ClockEvidence(1, "n", "local", twins={"a": NOON + EAST * SECOND}), ClockEvidence(2, "n", "local", twins={"a": NOON})]
    found = settle(files)
    assert (found[1].seconds, found[2].seconds, found[1].sure) == (EAST, 0, "assumed")
    found = settle(files, given=EAST)
    assert (found[1].seconds, found[2].seconds) == (EAST, 0)


def test_nodes_without_a_clue_take_the_zone_of_their_node_or_of_most_nodes() -> None:
    files = [ClockEvidence(1, "a", "local", zones=(EAST,)), ClockEvidence(2, "a", "noyear"), ClockEvidence(3, "b", "local")]
    found = settle(files)
    assert (found[2], found[3]) == (Offset(EAST, "likely", "node", 1), Offset(EAST, "likely", "nodes", 1))


def test_the_order_of_the_evidence_does_not_matter() -> None:
    pick = random.Random(7)
    files = [
        ClockEvidence(
            k,
            f"n{k % 3}",
            pick.choice(["local", "noyear", "device", "zoned"]),
            NOON,
            NOON,
            {f"t{j}": NOON + pick.choice([0, EAST]) * SECOND for j in range(k % 5)},
            process=str(k % 4),
        )
        for k in range(40)
    ]
    first = settle(files)
    pick.shuffle(files)
    assert settle(files) == first
    assert set(first) == {one.file_id for one in files}


def test_only_distinctive_texts_are_twins() -> None:
    assert twin_key("call trace: hcclRet -> 4") == ""
    assert twin_key("---------------------------------------------- 1") == ""
    assert twin_key("  Heartbeat lost! (device=1; old_count=1104; new_count=1104) ").startswith("Heartbeat lost!")
