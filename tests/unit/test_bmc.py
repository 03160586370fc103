"""Events and sensors of the board management and the LCNE switch."""

from __future__ import annotations

import pytest

from parsers.bmc import BmcParser

bmc = BmcParser()


@pytest.mark.parametrize(
    "line, severity, code, clock",
    [
        (
            "Jul 1 2025 18:36:25+08:00 SW %%01DEVM/1/hwPortFail_active(l):CID=0x80fc0101-alarmID=0x00f10509;The port failed.",
            "ERROR",
            "0x00F10509",
            "zoned",
        ),
        ("Aug  1 2025 01:00:01 SW %%01IFNET/4/linkDown_active(l):CID=0x807a0405-alarmID=0x08520003;Down.", "WARNING", "0x08520003", "local"),
        ("Aug  1 2025 00:00:01+08:00 SW %%01IFNET/2/linkDown_clear(l)[7]:CID=0x807a0405-alarmID=0x08520003;Up.", "INFO", "0x08520003", "zoned"),
        ("2025-07-31T18:30:12.123400+08:00 BMC-22R remote: 0x080000E7 Asserted PCIe card abnormality", "ERROR", "0x080000E7", "zoned"),
        ("2025-07-31T18:33:12.123403+08:00 BMC-22R remote: 0x6200000C Deasserted LCNE heartbeat lost", "INFO", "0x6200000C", "zoned"),
        ("1  2026-02-01 10:01:00    Critical    0x090000D7    Active    NPU 1 PCIe link", "ERROR", "0x090000D7", "local"),
        ("2 | 2026-02-01 10:02:00 | Minor | 0x0A0000D7 | Asserted | NPU 2", "WARNING", "0x0A0000D7", "local"),
        ("2  2026-02-01 10:02:00    Critical    0x0A0000D7    Inactive    NPU 2", "INFO", "0x0A0000D7", "local"),
    ],
)
def test_events(line: str, severity: str, code: str, clock: str) -> None:
    record = bmc.record(line)
    assert record is not None
    assert (record.severity, record.code, record.clock, record.grammar) == (severity, code, clock, "bmc")


def test_a_zone_is_taken_off() -> None:
    one = bmc.record("Jul 31 2025 18:36:19+08:00 SW %%01A/1/b(l):x")
    other = bmc.record("Jul 31 2025 10:36:19+00:00 SW %%01A/1/b(l):x")
    assert one is not None and other is not None and one.ts == other.ts


def test_boards_and_sensors() -> None:
    found = bmc.extract(
        "sensor id    sensor name    value    unit    status\n1            NPU1 HBM Temp    61         C        OK         0\n"
        "2   Fan    na    RPM    nc  0\n"
        "Board Product Name      : BC82AMDF\n"
    )
    assert [(one.value, one.unit, one.label) for one in found.metrics] == [(61, "C", "NPU1 HBM Temp")]
    assert [(one.name, one.value) for one in found.facts] == [("board.product", "BC82AMDF")]
