"""Chip names as tools print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import socs


@pytest.mark.parametrize(
    ("text", "name", "generation", "exact"),
    [
        ("910B3", "Ascend910B3", "910B/A2", True),
        ("Ascend910B3", "Ascend910B3", "910B/A2", True),
        (" Ascend 910B4-1 ", "Ascend910B4-1", "910B/A2", True),
        ("910_9391", "Ascend910_9391", "910_93/A3", True),
        ("Ascend910_9391", "Ascend910_9391", "910_93/A3", True),
        ("9391", "Ascend910_9391", "910_93/A3", True),
        ("957c", "Ascend950PR_957c", "950/A5", True),
        ("310P3", "Ascend310P3", "310P", True),
        ("19e5:d802", "Ascend910B", "910B/A2", False),
        ("0xD803", "Ascend910_93", "910_93/A3", False),
        ("Ascend910", "Ascend910_93", "910_93/A3", False),
        ("910ProB", "Ascend910ProB", "910", True),
        ("910B", "Ascend910B", "910", True),
        ("910b", "Ascend910B", "910B/A2", False),
        ("A2G3", "Ascend910B", "910B/A2", False),
        ("dav-c310", "Ascend950", "950/A5", False),
    ],
)
def test_names_are_brought_to_one_form(text: str, name: str, generation: str, exact: bool) -> None:
    soc = socs.find(text)
    assert soc is not None and (soc.name, soc.generation, soc.exact) == (name, generation, exact)


def test_patterns_match_chips_and_leave_open_what_a_series_does_not_tell() -> None:
    assert socs.matches("910B3", "Ascend910B*") is True
    assert socs.matches("910b", "Ascend910B*") is True
    assert socs.matches("Ascend910_9391", "Ascend910B*") is False
    assert socs.matches("19e5:d802", "Ascend910B3") is None
    assert socs.matches("310P3", "310P*") is True
    assert socs.matches("Atlas", "Ascend910B*") is None


def test_the_first_generation_is_not_taken_for_the_a2_series() -> None:
    assert socs.matches("910B", "Ascend910B*") is False
    assert socs.matches("910B", "910B") is True


def test_a_chip_knows_its_sizes() -> None:
    soc = socs.find("910B3")
    assert soc is not None and (soc.arch, soc.memory_gib, soc.ub_bytes, soc.bf16) == ("2201", 64.0, 196608, True)


@given(st.text(max_size=30))
def test_no_text_breaks_the_search(text: str) -> None:
    socs.find(text)
    socs.matches(text, text)
