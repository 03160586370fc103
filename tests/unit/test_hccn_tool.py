"""hccn_tool's answers and recordings."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from parsers.hccn_tool import HccnToolParser
from parsers.rows import Document

SAMPLES = Path(__file__).parent.parent / "data" / "formats" / "hccn_tool"
hccn = HccnToolParser()


def sample(name: str) -> Document:
    return hccn.extract((SAMPLES / f"{name}.txt").read_text())


def values(found: Document, name: str) -> list[tuple[float, int | None, str]]:
    return [(one.value, one.device, one.label) for one in found.metrics if one.name == name]


def test_states_and_addresses_belong_to_the_device_of_the_command() -> None:
    found = sample("04")
    facts = {one.name: one.value for one in found.facts}
    assert facts["device.2.ip"] == "192.0.2.12" and "device.4.ip" not in facts
    assert facts["device.0.net_health"] == "Socket failed" and facts["device.0.link"] == "DOWN" and facts["device.0.tls"] == "0"
    assert values(found, "link.status") == [(0, 0, "")] and values(found, "link.speed") == [(200000, 0, "")]


def test_optical_powers_keep_their_lane_and_threshold() -> None:
    found = sample("03")
    assert values(found, "optical.rx_power") == [(1.0189, 3, "0"), (0.0054, 3, "1")]
    assert values(found, "optical.rx_power.low_threshold") == [(0.1445, 3, "")] and values(found, "optical.rx_los") == [(255, 3, "")]
    assert values(found, "optical.host_snr") == []  # "not supported"


def test_link_changes_and_counters() -> None:
    found = sample("02")
    assert values(found, "link.down_count") == [(2, 0, "")] and [value for value, _, _ in values(found, "link.change")] == [1, 0, 1, 0, 1]
    assert values(sample("01"), "hccn.roce_new_pkt_rty_num") == [(206519, 0, "")]
    assert values(sample("08"), "link.ping.loss") == [(33.33, 0, "")]


def test_ports_of_the_950_keep_their_number_and_hex_counters_are_read() -> None:
    found = sample("05")
    assert values(found, "link.status") == [(0.5, 0, ""), (1, 0, "4"), (0, 0, "5"), (0.5, 0, "6")]
    assert values(found, "hccn.st_fec_err_bit_num") == [(0x3868275F, 0, "4")]


def test_recordings_have_times_and_rounded_counters() -> None:
    found = sample("07")
    assert values(found, "hccn.mac_rx_total_oct_num")[0] == (8.07084e13, 3, "") and found.metrics[0].ts == 1667935036_000_000


def test_a_text_without_the_tool_gives_nothing() -> None:
    assert hccn.extract("key: value\nother_num: 7\n") == Document()


@given(st.lists(st.sampled_from(["hccn_tool ", "-i ", "0 ", "-p ", "9999999 ", "\n", "link status: ", "UP", "roce_x_num:", "0x", "9" * 40,
    "[devid ", "] ", "| ", "LINK_UP ", "timestamp,npu_index,a_num\n", "1,2,3", "Rx Power1 : ", "１"]), max_size=40).map("".join))  # fmt: skip
def test_pieces_of_answers_in_any_order_never_raise(text: str) -> None:
    hccn.extract(text)
    for line in text.split("\n"):
        hccn.record(line)
