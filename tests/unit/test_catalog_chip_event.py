"""Chip events and black-box exceptions, read from their bits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import chip_event
from rules.chip_event import decode, encode, encode_exception


@given(st.integers(0, 2047), st.integers(0, 255), st.integers(0, 511), st.sampled_from((1, 2)))
def test_an_event_id_comes_back_from_its_fields(node: int, sensor: int, state: int, side: int) -> None:
    ident = encode(node, sensor, state, side)
    event = decode(ident)
    assert (event.node_type, event.sensor_type, event.state, event.blackbox) == (node, sensor, state, False)
    assert event.id == ident and event.code == f"0x{ident:08X}"
    assert event.meaning.en and event.meaning.zh


@given(st.integers(0, 255), st.integers(0, 31), st.integers(0, 4095), st.sampled_from((1, 2)), st.sampled_from((1, 2)), st.integers(0, 4))
def test_an_exception_id_comes_back_from_its_fields(module: int, submodule: int, function: int, side: int, kind: int, level: int) -> None:
    event = decode(encode_exception(module, submodule, function, side=side, kind=kind, level=level))
    assert (event.node_type, event.sensor_type, event.state, event.blackbox) == (module, submodule, function, True)
    assert event.level == level and event.severity is None


@given(st.integers(-(1 << 31), (1 << 32) - 1))
def test_any_32_bits_are_read(ident: int) -> None:
    event = decode(ident)
    assert event.id == ident & 0xFFFFFFFF
    assert event.node_text.en and event.text.en and event.text.zh


def test_a_listed_event_has_its_words() -> None:
    event = decode(0x80E01801)
    assert (event.node, event.severity, event.handling, event.layer) == ("HBM", 3, "RestartBusiness", "hardware")
    assert "ECC" in event.text.zh and event.known
    lost = decode(0x40F84E00)
    assert lost.side.en == "host" and "heartbeat" in lost.text.en


def test_an_event_nobody_listed_is_still_named_by_node_and_state() -> None:
    ident = encode(0x70, 0x27, 0x1)
    assert not chip_event.listed(ident)
    assert decode(ident).meaning.en == "HBM: heartbeat lost (second monitor)"


def test_exceptions_written_by_the_host_are_known() -> None:
    event = decode(0x68020002)
    assert event.blackbox and event.node == "DRIVER" and event.side.en == "host" and "heartbeat" in event.text.en
    assert chip_event.LEVELS[event.level or 0].en == "emergency"


def test_an_exception_without_description_says_so() -> None:
    event = decode(0xB4060007)
    assert event.node == "TS" and not event.known and "no public description" in event.text.en and event.handling == "RestartBusiness"


@pytest.mark.parametrize("ident", [1 << 32, -(1 << 31) - 1])
def test_more_than_32_bits_are_refused(ident: int) -> None:
    with pytest.raises(ValueError, match="32 bits"):
        decode(ident)


def test_fields_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="node type must fit 11 bits, found 2048"):
        encode(2048, 0, 0)
    with pytest.raises(ValueError, match="function code"):
        encode_exception(1, 1, 4096)


def test_every_listed_id_is_plausible_and_addresses_are_not() -> None:
    assert all(chip_event.plausible(ident) for ident in chip_event._events())
    assert len(chip_event._events()) > 800
    assert not chip_event.plausible(0x12345678) and not chip_event.plausible(0xFFFFFFFF) and not chip_event.plausible(1 << 33)
