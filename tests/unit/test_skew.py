"""The clocks of nodes are compared by what they lived through together, and only then."""

from __future__ import annotations

from forensics.clocks import FileClock
from forensics.skew import SECOND, Skew, between, take_off, zones
from rules.model import Remark

HOUR = 3600 * SECOND


def join(node: str, at: float, group: str, step: str = "done", file_id: int = 0) -> Remark:
    epoch = group.rpartition("_")[2]
    values = {"rank": "0", "group": group, "step": step} | ({"epoch": epoch} if len(epoch) == 16 else {})
    return Remark("join", values, file_id, ts=round(at * SECOND), node=node)


def test_communicators_that_stand_for_all_at_once_show_how_far_clocks_are_apart() -> None:
    true = {"a": 0.0, "b": 240.0, "c": -180.5, "d": 1.0}
    remarks = [
        join(node, 1000 * k + ahead + (k * 7 + n) % 5 / 50, f"g{k}_1750325244673{k:03d}")
        for k in range(5)
        for n, (node, ahead) in enumerate(true.items())
    ]
    found = between(remarks, sorted(true))
    base = found["a"].ahead
    for node, ahead in true.items():
        assert abs(found[node].ahead - base - ahead * SECOND) < 0.2 * SECOND
        assert found[node].moments == 5 and found[node].why == "joins" and found[node].within >= SECOND // 2
    assert found["b"].shift and found["c"].shift and not found["a"].shift, "what may be nothing is not taken off"


def test_a_rank_that_came_late_does_not_sway_the_others() -> None:
    remarks = [join(node, 100 * k + (50 if node == "c" and k == 1 else 0), f"g{k}") for k in range(5) for node in "abc"]
    assert all(skew.shift == 0 for skew in between(remarks, ["a", "b", "c"]).values())


def test_one_moment_alone_is_rougher_than_many() -> None:
    one = between([join("a", 0, "g"), join("b", 90, "g")], ["a", "b"])
    assert one["a"].within > SECOND and {abs(skew.ahead) for skew in one.values()} == {0, 90 * SECOND}


def test_names_that_every_attempt_gives_its_groups_are_no_moments() -> None:
    for group in ("hccl_world_group", "group_name_3", ""):
        assert between([join("a", 0, group), join("b", 900, group)], ["a", "b"]) == {}


def test_a_node_without_joins_is_placed_by_timeouts_waited_out_together() -> None:
    task = [Remark("task", {"tag": "AllReduce_g"}, ts=at * SECOND, node=node) for node, at in (("a", 600), ("b", 601), ("c", 840), ("d", 602))]
    found = between([join(node, 5, "g") for node in "abd"] + task, ["a", "b", "c", "d", "e"])
    assert found["c"].why == "failures" and abs(found["c"].ahead - 239 * SECOND) < 2 * SECOND and found["c"].within >= 30 * SECOND
    assert found["e"].why == "none" and found["e"].shift == 0


def test_one_node_or_nothing_in_common_compares_nothing() -> None:
    assert between([join("a", 0, "g")], ["a"]) == {}
    assert between([join("a", 0, "g"), join("b", 0, "h")], ["a", "b"]) == {}


def test_a_group_named_after_its_birth_tells_the_zone_of_the_clock() -> None:
    born = 1_750_325_244_673_428
    for hours, late in ((0, 2), (8, 90), (5.5, 240)):
        remark = join("a", (born + late * SECOND) / SECOND + hours * 3600, f"192.0.2.1%eth0_60000_0_{born}", file_id=3)
        assert zones([(remark, "local")]) == {3: hours * 3600}
        assert zones([(remark, "utc")]) == {}
    assert zones([(join("a", (born + 16 * 60 * SECOND) / SECOND, f"x_{born}"), "local")]) == {}, "a quarter of an hour is neither"


def test_times_of_a_node_that_is_ahead_are_moved_back_and_others_stay() -> None:
    clocks = {0: FileClock(offset=0), 1: FileClock(offset=8 * 3600)}
    skews = {"a": Skew("a", 240 * SECOND, SECOND, 4, "joins"), "b": Skew("b", SECOND // 2, SECOND, 4, "joins")}
    assert take_off(skews, clocks, {0: "b", 1: "a"}) == {"a": 240 * SECOND}
    noon = 1_750_325_244 * SECOND
    assert clocks[0].utc(noon, "local") == noon
    assert clocks[1].utc(noon, "local") == noon - 8 * HOUR - 240 * SECOND
    assert clocks[1].utc(noon, "zoned") == noon - 240 * SECOND, "a clock that prints its zone is off as much"
