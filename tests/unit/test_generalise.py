"""From a log line to a pattern: what varies goes, what names the fault stays, and the pattern always finds its line."""

from __future__ import annotations

import doctest
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import generalise as module
from rules import looks
from rules.generalise import generalise
from rules.model import Leaf

LINES = (
    "[ERROR] RUNTIME(7321,python):2026-07-13-11:39:20.982.565 [stream.cc:1078]7399 [Sync]Stream 12 of device_id=3 failed, retCode=0x26",
    "[  112.405513] [ascend] [ERROR] [devdrv] [dbl_ecc_notify 88] <kworker/u384:3:71125:71125> HBM ecc error (dev_id=2; page=0x4c1f2000)",
    "2026-03-12T14:36:09.101552Z stderr F (Worker_TP6 pid=2106) ERROR 03-12 14:36:09 [executor.py:671] RuntimeError: sync failed, error code:507035",
    "Mar 12 14:31:07 node-b kernel: [90311.804417] pcieport 0000:80:01.0: AER: Uncorrected (Fatal) error received",
    "[rank3]: OSError: /opt/jobs/2291/lib/libhccl.so.1: cannot open shared object file",
)
ELSEWHERE = {
    "2026": "2027",
    "7321": "99",
    "7399": "1",
    "device_id=3": "device_id=14",
    "Stream 12": "Stream 7",
    "0x4c1f2000": "0x12c0",
    "71125": "4",
    "2106": "55",
    "TP6": "TP0",
    "112.405513": "7.1",
    "0000:80:01.0": "0000:c1:00.1",
    "/opt/jobs/2291": "/srv/a",
}
"""What is different in another run."""


def test_the_documentation_holds() -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("line", LINES)
def test_a_pattern_finds_the_same_message_of_another_run(line: str) -> None:
    other = line
    for old, new in ELSEWHERE.items():
        other = other.replace(old, new)
    assert other != line
    assert re.search(generalise(line).pattern, other)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("aclrtSynchronizeStream returned error code:507035 on stream 4", "507035"),
        ("process exited with exit code 137 after 88 s", "137"),
        ("Event report. (dev_id=2; Event id=0x80e01801; severity=3; assertion=1)", "0x80e01801"),
        ("errcode:(0x800000, 0, 0) errorStr: The DDR address of the MTE instruction is out of range.", "0x800000"),
        ("EZ9999: Inner Error!", "EZ9999"),
        ("/usr/local/Ascend/driver/lib64/libascend_hal.so: undefined symbol: halX", r"libascend_hal\.so"),
    ],
)
def test_codes_and_libraries_stay(line: str, kept: str) -> None:
    assert kept in generalise(line).pattern


def test_values_are_named_after_the_words_before_them() -> None:
    seen = generalise("halMemAlloc failed: device_id=3, size=4096, streamId=[7], shape [1, 32, 4096], from 10.0.0.1:60000")
    assert seen.captures == {"device_id": "3", "size": "4096", "stream_id": "7", "shape": "[1, 32, 4096]", "from_address": "10.0.0.1:60000"}


def test_a_name_that_stands_twice_gets_a_number() -> None:
    assert generalise("size=1 does not fit size=2 of the buffer").captures == {"size": "1", "size_2": "2"}


def test_a_line_without_anything_that_varies_is_a_text() -> None:
    seen = generalise("[ERROR] GE(1,atc):2026-01-01-10:00:00.000.000 [init.cc:5]1 environment variable ASCEND_OPP_PATH is not set.")
    assert seen.text == "environment variable ASCEND_OPP_PATH is not set"


def test_a_long_line_gives_a_pattern_that_ends_at_a_pause() -> None:
    line = "Tiling of the kernel failed because the work space is too small, " * 40
    seen = generalise(line)
    assert len(seen.pattern) < 2 * module.ENOUGH
    assert seen.pattern.endswith(("small", "failed"))


def test_colours_and_heads_go_whatever_their_order() -> None:
    assert module.message_of("\x1b[31m2026-01-01 10:00:00,123 - ERROR - [a.py:3] worker died\x1b[0m") == "worker died"


ALPHABET = st.sampled_from(
    [
        *"ab:=[](){}.*+?^$|\\/,;-_ #%'\"<>0123456789xXfF\t",
        "设备",
        "\x00",
        "\u2028",
        "error",
        "rank",
        " code ",
        "0x",
        "12:00:00",
        "/a/b.so",
        "10.0.0.1",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(ALPHABET, max_size=60).map("".join))
def test_a_pattern_always_finds_its_own_line_and_holds_its_texts(line: str) -> None:
    seen = generalise(line)
    found = re.search(seen.pattern, line)
    assert found is not None
    assert {name: value for name, value in found.groupdict().items() if value} == seen.captures or seen.captures.keys() == found.groupdict().keys()
    assert all(text in line for text in seen.texts)
    if seen.text:
        assert seen.text in line


@settings(max_examples=60, deadline=None)
@given(st.lists(ALPHABET, min_size=4, max_size=40).map(lambda parts: "kernel failed " + "".join(parts)))
def test_a_pattern_is_one_that_a_rule_may_have(line: str) -> None:
    leaf = Leaf(id="m", regex=generalise(line).pattern)
    assert looks.check_regex(leaf) == ""
    assert looks.check_expression(leaf) == ""
