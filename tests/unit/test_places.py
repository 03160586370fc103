"""A diagnosis is placed where its lines say, and those who only waited give way to the one they waited for."""

from __future__ import annotations

import pytest

from rules.confidence import weigh
from rules.model import Began, Finding, Hit, Leaf, Rule, Scope, Text
from rules.places import at_place, device_of, scope_of
from rules.seats import Attempt, Seat

SEATS = Attempt(1, 8, [Seat(n, n, "n1", "10.0.0.1", n, n, pid=100 + n) for n in range(8)], 0)
BEGAN = Began(1, "n1", 5, 5, 105, [], True, "high", [], 7, 8, 0)


def finding(layer: str, root: str = "x", **head: object) -> Finding:
    hit = Hit(0, 0, "a", 1, 0, str(head.pop("text", "x")), {}, ts=1, severity="ERROR", **{"node": "n1"} | head)  # type: ignore[arg-type]
    rule = Rule("t.a", root, Text("t", "t"), layer, "error", Leaf("a", contains=("x",)))
    return Finding(rule, [hit], 1, Scope(hit.node, hit.device, hit.rank, hit.pid), 1, 1, 1, {})


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("Event report. (dev_id=2; Event id=0x80e01801)", 2),
        ("device_id[3], stream_id[4]", 3),
        ("The error from device(chipId:6, dieId:0)", 6),
        ("devPhyId: 1 and devPhyId: 1", 1),
        ("devid=1 talks to devid=2", None),
        ("dev_id=4294967295", None),
        ("(dev_id=99)", None),
        ("nothing", None),
    ],
)
def test_a_line_names_its_card_in_many_spellings(text: str, device: int | None) -> None:
    assert device_of(Hit(0, 0, "a", 1, 0, text, {})) == device
    assert device_of(Hit(0, 0, "a", 1, 0, text, {}, device=7)) == 7, "the head knows better"


def test_what_a_driver_says_of_a_card_is_of_the_process_on_that_card() -> None:
    kernel = finding("hardware", text="Event report. (dev_id=2; x)", pid=71125)
    assert scope_of(kernel, [SEATS], []) == Scope("n1", 2, 2, 102)
    assert scope_of(finding("hardware", pid=71125), [SEATS], [BEGAN]) == Scope("n1", 5, 5, 105), "a daemon that names no card"
    assert scope_of(finding("hardware", pid=71125), [SEATS], []) == Scope("n1", None, None, 71125)


def test_who_waited_gives_way_to_whom_it_waited_for() -> None:
    waiter = finding("collective", "hccl-peer-exit", pid=101, rank=1)
    assert scope_of(waiter, [SEATS], [BEGAN]) == Scope("n1", 5, 5, 105)
    assert scope_of(waiter, [SEATS], []).rank == 1
    assert scope_of(finding("operator", "aicore-oob-access", pid=101), [SEATS], [BEGAN]) == Scope("n1", 1, 1, 101)


def test_a_finding_where_it_began_weighs_more_than_one_elsewhere() -> None:
    here, elsewhere = finding("operator", pid=105), finding("operator", pid=101)
    plain = weigh(here, None)
    assert at_place(plain, here, [SEATS], [BEGAN]).value > plain.value > at_place(plain, elsewhere, [SEATS], [BEGAN]).value
    assert at_place(plain, here, [SEATS], []) == plain
    for other in (finding("environment", pid=101), finding("collective", pid=101), finding("operator", node="", text="no place")):
        assert at_place(plain, other, [SEATS], [BEGAN]) == plain
