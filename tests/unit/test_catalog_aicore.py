"""Error words of AI Core records, read bit by bit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import aicore

V100 = [bit.index for bit in aicore.all_bits()]
DAVID = [bit.index for bit in aicore.all_bits(david=True)]


@given(st.sets(st.integers(0, 176)))
def test_words_come_back_from_their_bits(wanted: set[int]) -> None:
    words = aicore.encode(wanted)
    assert all(0 <= word < 1 << 64 for word in words)
    found, strange = aicore.indices(words)
    assert set(found) == wanted and not strange


@given(st.tuples(*[st.integers(0, (1 << 64) - 1)] * 3))
def test_no_set_bit_is_lost(words: tuple[int, int, int]) -> None:
    found, strange = aicore.indices(words)
    assert len(found) + len(strange) == sum(word.bit_count() for word in words)
    error = aicore.of_words(words)
    assert len(error.bits) + len(error.unknown) == sum(word.bit_count() for word in words)


@given(st.sets(st.sampled_from(V100), min_size=1, max_size=5))
def test_a_printed_record_is_read_back(wanted: set[int]) -> None:
    words = aicore.encode(wanted)
    error = aicore.decode(f"The extend info: errcode:({', '.join(f'{w:#x}' if w else '0' for w in words)}) errorStr: x")
    assert error is not None and {bit.index for bit in error.bits} == wanted and not error.david
    again = aicore.decode(error.code)
    assert again == error


@given(st.lists(st.sampled_from(DAVID), min_size=1, max_size=5, unique=True))
def test_the_numbers_of_the_950_are_read_back(wanted: list[int]) -> None:
    error = aicore.of_numbers(wanted)
    assert [bit.index for bit in error.bits] == wanted and error.david
    if any(wanted):
        assert aicore.decode(error.code) == error


@pytest.mark.parametrize(
    ("text", "symbols", "kinds"),
    [
        ("error code = 0x800000", ["MTE_BIU_RDWR_RESP"], ("oob_gm",)),
        ("error code = 95", ["MTE_BIU_RDWR_RESP"], ("oob_gm",)),
        ("errcode:(0, 0x800, 0)", ["VEC_INSTR_ADDR_MISALIGN"], ("align",)),
        ("errcode:(0x2000000000000, 0, 0)", ["VEC_DATA_EXCP_CCU"], ("oob_ub",)),
        ("error code = 0x4000000000000000", ["VEC_UB_WRAP_AROUND"], ("oob_ub",)),
    ],
)
def test_the_words_seen_most_in_the_field_are_understood(text: str, symbols: list[str], kinds: tuple[str, ...]) -> None:
    error = aicore.decode(text)
    assert error is not None and error.kinds == kinds
    assert [bit.symbol for bit in error.bits] == symbols


@pytest.mark.parametrize("text", ["error code = 0", "errcode:(0, 0, 0)", "errcode:(0x0, 0x0, 0x0)"])
def test_no_bit_means_timeout_or_trap(text: str) -> None:
    error = aicore.decode(text)
    assert error is not None and not error.bits and "timed out" in error.verdict.en and "507014" in error.suspects.zh


def test_the_triple_of_a_record_counts_for_more_than_its_first_line() -> None:
    error = aicore.decode("an aicore error, error code = 0, pc. The extend info: errcode:(0, 0x800, 0) errorStr: UB")
    assert error is not None and error.kinds == ("align",)


def test_a_bit_that_no_table_has_is_named() -> None:
    error = aicore.of_words([0, 0, 1 << 20])
    assert error.unknown == ("w2 bit 20",) and "w2 bit 20" in error.verdict.en


@pytest.mark.parametrize("text", ["", "errcode:(a b)", "errcode:()", "error code is 507015", "errcode:(1, 2, 0x3, 4)", "errcode:(x, 0, 0)"])
def test_other_text_is_no_record(text: str) -> None:
    assert aicore.decode(text) is None


@given(st.text(max_size=120), st.text(alphabet="0123456789abcdefx, ()", max_size=60))
def test_no_text_breaks_the_reader(text: str, inside: str) -> None:
    aicore.decode(text)
    aicore.decode(f"errcode:({inside})")
    aicore.decode(f"error code = {inside}")


def test_every_bit_has_a_class_and_both_languages() -> None:
    for bit in (*aicore.all_bits(), *aicore.all_bits(david=True)):
        assert bit.kind in aicore.CLASSES and bit.meaning.en and bit.meaning.zh and bit.place, bit
    assert len(V100) == 176 and len(DAVID) == 187


def test_positions_outside_the_map_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 176"):
        aicore.position(177)
