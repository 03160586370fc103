"""Versions that do not sort as text, their ranges, and the tables of what belongs together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import versions
from rules.versions import Version, check, pairings, satisfies

ORDERED = [
    ["6.3.RC2.alpha005", "6.3.RC2", "7.0.0", "8.0.RC1.alpha003", "8.0.RC1.beta1", "8.0.RC1", "8.0.RC2", "8.0.RC3", "8.0.0.alpha001",
     "8.0.0.beta1", "8.0.0", "8.0.1", "8.1.RC1.alpha001", "8.1.RC1.beta1", "8.1.RC1", "8.2.RC1", "8.3.RC2", "8.5.0.alpha002", "8.5.0",
     "8.5.1", "9.0.0-beta.1", "9.0.0-beta.2", "9.0.0", "10.0.0"],
    ["22.0.4", "23.0.rc2", "23.0.rc3", "23.0.0", "23.0.3", "24.1.rc1", "24.1.rc2", "24.1.rc2.2", "24.1.rc3", "24.1.0", "24.1.0.1",
     "25.0.rc1", "25.0.rc1.1", "25.0.0", "25.2.0"],
    ["2.5.1.dev20250218", "2.5.1rc1", "2.5.1", "2.5.1.post1.dev20250528", "2.5.1.post1", "2.5.1.post1+gitabc", "2.5.1.post2", "2.6.0",
     "2.7.1.dev20250724", "2.7.1", "2.10.0"],
    ["0.9.1rc1", "0.9.1rc2", "0.9.1", "0.9.2rc1", "0.10.0rc1", "0.11.0rc0", "0.11.0"],
    ["V100R001C18SPC001B233", "V100R001C22SPC001B231", "V100R001C22SPC002B100", "V100R003C10"],
]  # fmt: skip

WORDS = st.sampled_from([text for chain in ORDERED for text in chain] + ["unknown", "main", "8.0", "8.0.0.0", "v8.0.0", "", "1.x", "7.7.T20.0.B210"])
MADE = st.lists(st.sampled_from(["0", "1", "8", "RC1", "rc2", "alpha003", "post1", "dev2", ".", "-", "+git1", "a", "X"]), max_size=8).map("".join)
ANY = WORDS | MADE | st.text(max_size=20)


@pytest.mark.parametrize("chain", ORDERED, ids=lambda chain: str(chain[0]))
def test_versions_sort_as_they_were_released(chain: list[str]) -> None:
    parsed = [Version.parse(text) for text in chain]
    assert sorted(parsed) == parsed
    assert len(set(parsed)) == len(parsed)


@given(ANY, ANY, ANY)
def test_the_order_is_total(a: str, b: str, c: str) -> None:
    x, y, z = Version.parse(a), Version.parse(b), Version.parse(c)
    assert [x < y, x == y, x > y].count(True) == 1
    assert (x <= y) == (not y < x)
    if x <= y and y <= z:
        assert x <= z
    if x == y:
        assert hash(x) == hash(y)


def test_trailing_zeros_and_a_leading_v_make_no_difference() -> None:
    assert Version.parse("8.0") == Version.parse("8.0.0") == Version.parse("v8.0.0.0")
    assert str(Version.parse(" v8.0 ")) == "v8.0"
    assert Version.parse("8.0.RC1").release == (8, 0) and Version.parse("8.1.RC1").release == (8, 1) and Version.parse("8.1.RC1").prerelease


@pytest.mark.parametrize(
    ("version", "spec", "expected"),
    [
        ("7.0.0", ">=6.3,<8.0", True),
        ("8.0.RC1", ">=6.3,<8.0", False),
        ("8.0.RC1", ">=8.0", True),
        ("8.0.0", ">=6.3,<8.0", False),
        ("6.3.RC2", ">=6.3,<8.0", True),
        ("8.5.0.alpha001", ">=8.5.0", None),
        ("8.5.0.alpha001", "<8.5.0", None),
        ("8.5.0.alpha001", "<=8.5.0", True),
        ("8.1.RC1.beta1", "==8.1.RC1", None),
        ("8.3.RC1", "<=8.3", True),
        ("8.5.2", "8.5.X", True),
        ("8.5.2", "!=8.5.*", False),
        ("25.0.rc1.1", "25.0.X", True),
        ("3.10.14", "==3.10.*", True),
        ("3.1.4", "==3.10.*", False),
        ("2.5.1+cpu", "==2.5.1", True),
        ("2.5.1.post1", "==2.5.1", False),
        ("2.5.1.post1", ">2.5.1", True),
        ("2.7.5", "~=2.7.0", True),
        ("2.8.0", "~=2.7.0", False),
        ("2.8", "~=2.7", True),
        ("7.1.0.11.220", "in [7.0.0,7.1.99]", True),
        ("7.2.0", "in [7.0.0,7.1.99]", False),
        ("8.0", "in {8.0.0,8.1}", True),
        ("0.11.0", "in {0.10,0.11.*}", True),
        ("2.6.0", "==2.1.0|==2.6.0", True),
        ("2.6.0", "==2.1.0 or ==2.6.0", True),
        ("2.9.5", "<=2.9.X", True),
        ("2.10", "<=2.9.X", False),
        ("2.10", ">2.9.X", True),
        ("8.1.RC1", "8.1.RC1", True),
        ("V100R001C22SPC001B231", "V100R001C22*", True),
        ("anything", "any", True),
        ("unknown", ">=8.0", None),
        ("8.0.0", "newest", None),
        ("8.0.0", "V100R001C22", None),
        ("8.0.0", ">=6.3,whatever is right", None),
        ("5.0.0", ">=6.3,whatever is right", False),
    ],
)
def test_ranges(version: str, spec: str, expected: bool | None) -> None:
    assert satisfies(version, spec) is expected


@given(ANY, ANY | st.builds("{}{},{}{}".format, st.sampled_from([">=", "<", "==", "~=", "!="]), ANY, st.sampled_from(["<", ">"]), ANY))
def test_a_range_never_raises(version: str, spec: str) -> None:
    assert satisfies(version, spec) in (True, False, None)


@given(WORDS, WORDS)
def test_below_and_at_least_never_both_hold(version: str, bound: str) -> None:
    if not bound:
        return
    below, at_least = satisfies(version, f"<{bound}"), satisfies(version, f">={bound}")
    assert (below, at_least) in ((True, False), (False, True), (None, None))


# ------------------------------------------------------------ tables

VLLM = {
    "vllm_ascend.version": "0.9.1rc1", "vllm.version": "0.9.1+empty", "torch.version": "2.5.1", "python.version": "3.11.10",
    "torch_npu.version": "2.5.1.post1.dev20250619", "cann.version": "8.1.RC1", "driver.version": "24.1.rc2",
    "firmware.version": "7.2.0.1.231", "pip.numpy": "1.26.4", "soc": "Ascend910B3",
}  # fmt: skip


def test_a_stack_that_belongs_together_has_no_mismatch() -> None:
    assert check(VLLM) == []


@pytest.mark.parametrize(
    ("change", "relation", "wanted"),
    [
        ({"torch.version": "2.7.1", "vllm_ascend.version": ""}, "torch_npu-torch", "torch_npu 2.5.1.post1.dev20250619 needs torch 2.5.1"),
        ({"vllm.version": "0.10.0"}, "vllm_ascend-vllm", "vllm-ascend 0.9.1rc1 needs vllm 0.9.1"),
        ({"python.version": "3.12.3"}, "vllm_ascend-python", "vllm-ascend 0.9.1rc1 needs Python >=3.9,<3.12"),
        ({"firmware.version": "7.8.0.6.201", "driver.version": "24.1.rc3"}, "driver-firmware", "driver (HDK) 24.1.rc3 needs firmware 7.0.0 - 7.5.99"),
        ({"nnal.version": "8.2.RC1"}, "nnal-cann", "NNAL/ATB 8.2.RC1 needs CANN 8.2.RC1"),
    ],
)
def test_a_version_that_breaks_a_requirement_is_named(change: dict[str, str], relation: str, wanted: str) -> None:
    found = {mismatch.relation: mismatch for mismatch in check({**VLLM, **change})}
    mismatch = found[relation]
    assert mismatch.expected.en == wanted and "需要" in mismatch.expected.zh
    assert mismatch.strength == "required" and mismatch.source and mismatch.left.endswith(".version")


def test_a_pair_that_is_only_not_listed_is_no_mismatch() -> None:
    facts = {"torch_npu.version": "2.5.1.post1", "torch.version": "2.5.1", "cann.version": "8.0.0"}
    assert check(facts) == []
    (pair,) = pairings(facts)
    assert pair.relation == "torch_npu-cann" and not pair.listed and "8.2.RC1" in pair.tested


def test_a_pair_known_to_fail_is_named_with_what_it_prints() -> None:
    (mismatch,) = check({"torch_npu.version": "2.7.1", "cann.version": "9.0.0"})
    assert (mismatch.relation, mismatch.strength) == ("torch_npu-cann", "known-bad")
    assert "MsprofSysCycleTime" in mismatch.symptom and "会出问题" in mismatch.expected.zh
    assert [m.relation for m in check({"pip.numpy": "2.1.0", "cann.version": "8.2.RC1"})] == ["numpy-cann"]


def test_cann_and_driver_need_only_one_of_the_two_lists_to_agree() -> None:
    assert check({"cann.version": "8.3.RC1", "driver.version": "24.1.rc2.2"}) == []
    (mismatch,) = check({"cann.version": "8.0.RC1", "driver.version": "25.3.rc1"})
    assert mismatch.relation == "cann-driver" and "V100R001C17" in mismatch.expected.en
    assert [m.strength for m in check({"cann.version": "9.2.0", "driver.version": "25.0.rc1.1"})] == ["known-bad"]


def test_facts_of_pip_lists_are_found_under_their_own_names() -> None:
    found = check({"pip.torch-npu": "2.5.1", "pip.torch": "2.6.0"})
    assert [(m.relation, m.left, m.right) for m in found] == [("torch_npu-torch", "pip.torch-npu", "pip.torch")]
    assert [m.relation for m in check({"pip.triton_ascend": "3.2.0", "python.version": "3.12.1"})] == ["triton_ascend-python"]


@given(st.dictionaries(st.sampled_from([*VLLM, "mindspore.version", "mindie.version", "glibc.version"]), ANY, max_size=6))
def test_no_facts_break_the_check(facts: dict[str, str]) -> None:
    for mismatch in check(facts):
        assert mismatch.expected.en and mismatch.expected.zh and mismatch.source
    pairings(facts)


def test_every_range_of_the_tables_can_be_read() -> None:
    for kind in ("required", "tested", "known-bad"):
        rows: Any = versions._rows(kind)
        assert rows
        for row in rows:
            for spec in (row.left_range, row.right_range):
                assert spec.startswith("same") or satisfies("1.0.0", spec) is not None, row


def test_the_pairs_of_the_tables_agree_with_their_own_requirements() -> None:
    for row in versions._rows("required"):
        if row.left_range.startswith("==") and row.right_range.startswith("==") and not set("|*") & set(row.left_range + row.right_range):
            names = {"vllm_ascend": "vllm_ascend.version", "torch_npu": "torch_npu.version", "mindie": "mindie.version"}
            facts = {names.get(row.left, row.left): row.left_range[2:], names.get(row.right, row.right): row.right_range[2:]}
            assert not [m for m in check(facts) if m.relation == row.relation], row
