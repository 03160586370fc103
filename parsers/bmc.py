"""Board management: SEL and remote log of the BMC, sensors and board data, and the LCNE switch's log.

>>> bmc = BmcParser()
>>> r = bmc.record("Jul 31 2025 18:36:19+08:00 L1SW_22R_99_30 %%01DEVM/1/hwPortFail_active(l):CID=0x80fc0101-alarmID=0x00f10509;"
...                "The port failed partially. (EntPhysicalName=400GHL1/1/2:0)")
>>> r.severity, r.module, r.function, r.node, r.code, r.clock
('ERROR', 'DEVM', 'hwPortFail_active', 'L1SW_22R_99_30', '0x00F10509', 'zoned')
>>> r = bmc.record("1           2026-02-01 10:01:00    Critical    0x090000D7          Active    NPU 1 PCIe link bandwidth reduced")
>>> r.severity, r.code, r.message
('ERROR', '0x090000D7', 'Active NPU 1 PCIe link bandwidth reduced')
>>> r = bmc.record("2025-07-31T18:33:12.123403+08:00 BMC-22R remote: 0x6200000C Deasserted LCNE heartbeat lost")
>>> r.severity, r.code, r.node, r.message
('INFO', '0x6200000C', 'BMC-22R', 'Deasserted LCNE heartbeat lost')
>>> [(m.name, m.value, m.label) for m in bmc.extract('''sensor id    sensor name    value    unit    status
... 1            NPU1 HBM Temp    61         C        OK         0''').metrics]
[('bmc.sensor', 61.0, 'NPU1 HBM Temp')]
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import clock
from parsers.base import Parser
from parsers.gather import Gather, number
from parsers.rows import Document, Record

MARKERS = ("sensor name", "Board Product Name", "Board Mfg Date")
"""A text without any of these holds nothing for `extract`."""

_LCNE = re.compile(
    r"([A-Z][a-z]{2} {1,2}\d{1,2} \d{4} \d\d:\d\d:\d\d)([+-]\d\d:\d\d)? (\S{1,80}) %%\d\d(\w{1,40})/(\d)/(\w{1,80})\((\w)\)(?:\[\d{1,10}\])?:",
    re.ASCII,
)
_ALARM = re.compile(r"alarmID=(0x[0-9A-Fa-f]{1,8})", re.ASCII)
_SEL = re.compile(
    r"(\d{1,10})[ |]{1,20}(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ |]{1,20}(Informational|Normal|Minor|Major|Critical|Warning)[ |]{1,20}"
    r"(?:0x)?([0-9A-Fa-f]{4,8})[ |]{1,20}(Asserted|Deasserted|Active|Inactive)[ |]{1,20}",
    re.ASCII,
)
_REMOTE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[+-]\d\d:?\d\d|Z)?) (\S{1,80}) (\S{1,40}): (?:0x)?([0-9A-Fa-f]{8}) (?=Asserted|Deasserted)",
    re.ASCII,
)
_SENSOR = re.compile(r"(\d{1,6})\s{2,}(\S(?:.{0,60}?\S)?)\s{2,}(\S{1,20})\s{1,20}(\S{1,20})\s{1,20}(\S{1,20})(?:\s|$)", re.ASCII)
_FRU = re.compile(r"[A-Z][A-Za-z ]{2,40}\s{0,20}: ?", re.ASCII)
_SEVERITY = {"Critical": "ERROR", "Major": "ERROR", "Minor": "WARNING", "Warning": "WARNING", "Normal": "INFO", "Informational": "INFO"}
_UP = frozenset({"Asserted", "Active"})
_BOARD = {"Board Product Name": "board.product", "Product Name": "board.server"}


class BmcParser(Parser):
    kind: ClassVar[str] = "bmc"

    def claims(self, path: str, head: str) -> int:
        lines = [text for text in head.split("\n", 40)[:40] if text.strip()]
        if not lines:
            return 0
        if "sensor name" in lines[0] or "Board Mfg Date" in head or ("Event Code" in lines[0] and "Severity" in lines[0]):
            return 88
        hits = sum((found := self.record(text[:600])) is not None and bool(found.code) for text in lines)
        return min(94, 94 * hits // len(lines) + 10) if hits else 0

    def record(self, line: str) -> Record | None:
        if not line or line[0] in " \t":
            return None
        if "%%" in line[:160] and (seen := _LCNE.match(line)):
            return _switch(line, seen)
        if line[0].isdigit():
            if seen := _SEL.match(line):
                return _event(line, seen.end(), clock.iso(seen[2]), _SEVERITY[seen[3]], seen[4], seen[5], "")
            if seen := _REMOTE.match(line):
                at = seen.end()
                state = line[at:].split(" ", 1)[0]
                record = _event(line, at, clock.iso(seen[1]), "ERROR", seen[4], state, seen[2])
                record.message, record.message_at = line[at:], at
                return record
            if _SENSOR.match(line):
                return Record(line, grammar="bmc")
        if line.startswith(("ID ", "sensor id")) or (":" in line[:60] and _FRU.match(line)) or line[:8] == "BarCode=":
            return Record(line, grammar="bmc")
        return Record(line, grammar="text")

    def extract(self, text: str) -> Document:
        if not any(mark in text for mark in MARKERS):
            return Document()
        gather = Gather()
        sensors = False
        for at, line in enumerate(text.split("\n"), 1):
            if line.startswith("sensor id"):
                sensors = True
            elif sensors and (seen := _SENSOR.match(line)):
                value = number(seen[3])
                gather.metric("bmc.sensor", value, seen[4], at, None, seen[2])
            elif ":" in line[:60]:
                key, _, value_text = line.partition(":")
                if key.strip() in _BOARD:
                    gather.fact(_BOARD[key.strip()], value_text, at)
        return gather.document


def _switch(line: str, seen: re.Match[str]) -> Record:
    ts = clock.ctime(" ".join(_with_year_last(seen[1])))
    kind = "local"
    if ts is not None and seen[2]:
        ts, kind = ts - clock.zone_seconds(seen[2]) * clock.SECOND, "zoned"
    level = int(seen[5])
    cleared = seen[6].endswith(("_clear", "_resume"))
    alarm = _ALARM.search(line[seen.end() : seen.end() + 120])
    return Record(
        line[seen.end() :], seen.end(), ts, kind if ts is not None else "none",
        "INFO" if cleared or level > 4 else "ERROR" if level <= 3 else "WARNING", "bmc", seen[4], node=seen[3], function=seen[6],
        code=f"0x{alarm[1][2:].upper().zfill(8)}" if alarm else "",
    )  # fmt: skip


def _with_year_last(text: str) -> list[str]:
    """`Jul 31 2025 18:36:19` in ctime's order."""
    month, day, year, time = text.split()
    return [month, day, time, year]


def _event(line: str, at: int, when: tuple[int | None, str], severity: str, code: str, state: str, node: str) -> Record:
    ts, kind = when
    return Record(
        f"{state} {line[at:]}", 0, ts, kind if ts is not None else "none", severity if state in _UP else "INFO", "bmc", node=node,
        code=f"0x{code.upper()}",
    )  # fmt: skip
