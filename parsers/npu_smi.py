"""npu-smi: the `info` table of every generation, `-t` queries, `-m` maps, HBM bank tables, watch, top, dmon and the CSV recordings.

>>> table = '''
... +------------------------------------------------------------------------------------------------+
... | npu-smi 24.1.rc3                 Version: 24.1.rc3                                             |
... +---------------------------+---------------+----------------------------------------------------+
... | NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
... | Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
... +===========================+===============+====================================================+
... | 4     910B3               | Warning       | NA          42                0    / 0             |
... | 0                         | 0000:81:00.0  | 31          0    / 0          61204/ 65536         |
... +===========================+===============+====================================================+'''
>>> found = NpuSmiParser().extract(table)
>>> [(f.name, f.value, f.line_no) for f in found.facts][:5]
[('driver.version', '24.1.rc3', 3), ('device.4.health', 'Warning', 8), ('soc', 'Ascend910B3', 8), ('device.4.bus_id', '0000:81:00.0', 9), \
('device.count', '1', 6)]
>>> [(m.name, m.value) for m in found.metrics if m.device == 4]
[('npu.temperature', 42.0), ('npu.aicore.usage', 31.0), ('npu.hbm.used', 61204.0), ('npu.hbm.total', 65536.0), ('npu.hbm.usage', 93.39)]

A device is numbered as the node numbers it: by Phy-ID where the table has one, by Device on 310P, else by NPU id. Widths are
ignored, header words decide. Numbers that are missing (NA, -) give no metric. What npu-smi prints instead of a table (dcmi module
initialize failed ...) stays an ordinary line.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import npu_smi_query
from parsers.base import Parser
from parsers.gather import Gather, number, soc_name
from parsers.rows import Document, Record

MARKERS = ("npu-smi", "HBM-Usage", "HBM Bank", "bank0", "NPU ID", "Hugepages-Usage", "time,dev_id,", "NpuID(Idx)", "HBM Capacity", "Bus-Id")
"""A text without any of these holds nothing for `extract`."""

_ASKED = re.compile(r"npu-smi (?:info|top|dmon|set)", re.ASCII)
_BANNER = re.compile(r"\s*\|? ?npu-smi\s+(\S{1,40})\s+Version:\s*(\S{1,40})", re.ASCII)
_BORDER = re.compile(r"\s*[+|][-=+|]{10,}\s*$", re.ASCII)
_BUS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$", re.ASCII)
_VALUE = re.compile(r"NA|N/A|/|-?\d{1,18}(?:\.\d{1,9})?|-", re.ASCII)
_COMMAND = re.compile(r"(?:.{0,120}[#$>] ?)?(?:/[\w./-]{1,120}/)?npu-smi(?: |$)", re.ASCII)
_KEY = re.compile(r"\s{0,16}[A-Za-z][\w /()%.,-]{0,60}?\s{0,40}: ?", re.ASCII)
HEALTH = frozenset({"OK", "Warning", "Alarm", "Critical", "UNKNOWN", "Unknown", "Offline", "Fault", "Abnormal", "NA"})


class NpuSmiParser(Parser):
    kind: ClassVar[str] = "npu-smi"

    def claims(self, path: str, head: str) -> int:
        sure = 0
        if "| npu-smi " in head or ("NPU " in head and "Bus-Id" in head):
            sure = 92
        elif head.startswith("time,dev_id,") or "NpuID(Idx)" in head:
            sure = 90
        elif _ASKED.search(head) or ("NPU ID" in head and " : " in head):
            sure = 80
        elif "npu-smi" in path.rsplit("/", 1)[-1] or "npu_smi" in path.rsplit("/", 1)[-1]:
            sure = 60
        if sure and ("hccn_tool " in head or "version.info" in head):
            sure -= 15  # a collection of many commands: what else it holds may weigh more
        if "] " in head and sum(head.count(mark) for mark in ("[ERROR] ", "[INFO] ", " - INFO - ", " INFO ")) > 3:
            return sure // 3  # a table pasted into a log
        return sure

    def record(self, line: str) -> Record | None:
        """Rows of tables and keys with values are records of grammar "npu-smi"; anything else is text."""
        first = line[:1]
        if not first or line.isspace():
            return None
        if first in "+|" or first == "\t" or first == " ":
            if _BORDER.match(line) or first in "+|":
                return Record(line, grammar="npu-smi")
            if _KEY.match(line) or line.split(None, 1)[0].isdigit() or "Chip ID" in line:
                return Record(line, grammar="npu-smi")
            return None
        if first.isdigit() or _COMMAND.match(line) or _KEY.match(line) or line.startswith(("NpuID", "time,dev_id", "NPU", "Legend", "# npu")):
            return Record(line, grammar="npu-smi")
        return Record(line, grammar="text")

    def extract(self, text: str) -> Document:
        if not any(mark in text for mark in MARKERS):
            return Document()
        gather = Gather()
        lines = text.split("\n")
        devices: dict[tuple[int, int], int] = {}
        table = _Table(gather, devices)
        for at, line in enumerate(lines, 1):
            if "|" in line[:8] or "+" in line[:8]:
                table.line(line, at)
            elif table.rows and not line.strip():
                table.close()
        table.close()
        npu_smi_query.extract(lines, gather, devices)
        return gather.document


class _Table:
    """The table of `npu-smi info`: two rows a chip, then the processes."""

    def __init__(self, gather: Gather, devices: dict[tuple[int, int], int]) -> None:
        self.gather, self.devices = gather, devices
        self.started = 0
        self.rows = 0
        self._reset()

    def _reset(self) -> None:
        self.body = self.processes = self.phy = self.device = self.own_column = self.hbm = False
        self.util = "npu.aicore.usage"
        self.pending: tuple[int, str, str, int, list[float | None]] | None = None

    def close(self) -> None:
        """The end of a table: how many devices it showed."""
        if self.rows:
            self.gather.fact("device.count", str(self.rows), self.started)
        self.rows = 0
        self._reset()

    def line(self, line: str, at: int) -> None:
        banner = _BANNER.match(line)
        if banner is not None:
            self.close()
            if banner[2][0].isdigit():
                self.gather.fact("driver.version", banner[2].rstrip("|"), at)
            return
        if _BORDER.match(line):
            if "=" not in line:
                self.pending = None
            return
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "Health" in line and "Temp" in line:
            self.close()
            self.own_column = len(cells) >= 4
        elif "Bus-Id" in line and "Memory-Usage" in line:
            self.body, self.processes, self.started = True, False, at
            self.phy = "Phy-ID" in line
            self.device = "Device" in cells[0]
            self.hbm = "HBM-Usage" in line
            self.util = "npu.usage" if "NPU Util" in line else "npu.aicore.usage"
        elif "Process id" in line:
            self.processes, self.body, self.pending = True, False, None
        elif self.processes:
            self._process(cells, at)
        elif self.body and len(cells) >= 3:
            self._chip(cells, at)

    def _chip(self, cells: list[str], at: int) -> None:
        if self.own_column and len(cells) >= 4:
            cells = [f"{cells[0]} {cells[1]}".strip(), *cells[2:]]
        left, middle, right = cells[0].split(), cells[1], cells[2]
        values = [number(token) for token in _VALUE.findall(right)[:24] if token != "/"]
        if self.pending is None:
            if len(left) >= 2 and left[0].isdigit() and left[0].isascii() and len(left[0]) < 6:
                self.pending = (int(left[0]), " ".join(left[1:]), middle, at, values)
            return
        npu, name, health, first, above = self.pending
        self.pending = None
        ids = [int(token) for token in left[:2] if token.isdigit() and token.isascii() and len(token) < 6]
        chip = ids[0] if ids else 0
        device = ids[1] if len(ids) > 1 and (self.phy or self.device) else npu
        self.devices[npu, chip] = device
        self.rows += 1
        gather = self.gather
        gather.fact(f"device.{device}.health", health, first, device)
        if soc := soc_name(name, a3=self.phy):
            gather.fact("soc", soc, first)
        if _BUS.match(middle):
            gather.fact(f"device.{device}.bus_id", middle, at, device)
        gather.metric("npu.power", _at(above, 0), "W", first, device)
        gather.metric("npu.temperature", _at(above, 1), "C", first, device)
        gather.metric(self.util, _at(values, 0), "%", at, device)
        if _at(values, 2):
            _usage(gather, "npu.memory", values, 1, at, device)
        if self.hbm:
            _usage(gather, "npu.hbm", values, 3, at, device)

    def _process(self, cells: list[str], at: int) -> None:
        if len(cells) < 4:
            return
        ids = [int(token) for token in cells[0].split()[:2] if token.isdigit() and token.isascii() and len(token) < 6]
        memory = number(cells[3])
        if not ids or memory is None:
            return
        device = self.devices.get((ids[0], ids[1] if len(ids) > 1 else 0), ids[0])
        label = f"{cells[1]} {cells[2]}".strip()[:80]
        self.gather.metric("npu.process.memory", memory, "MB", at, device, label)


def _at(values: list[float | None], index: int) -> float | None:
    return values[index] if index < len(values) else None


def _usage(gather: Gather, name: str, values: list[float | None], index: int, at: int, device: int) -> None:
    used, total = _at(values, index), _at(values, index + 1)
    gather.metric(f"{name}.used", used, "MB", at, device)
    gather.metric(f"{name}.total", total, "MB", at, device)
    if used is not None and total:
        gather.metric(f"{name}.usage", round(used / total * 100, 2), "%", at, device)
