"""Black box of a device: hisi_logs/device-<id>/history.log, the dump folders beside it, stackcore and atrace files.

    >>> bbox = BboxParser()
    >>> r = bbox.record("[2023-08-01-09:12:10.100200] system exception code [0x68020002]: ModuleName [DRIVER], "
    ...                 "ExceptionReason [DEVICE_HBL_EXCEPTION], TimeStamp [20230801091209-988120111].")
    >>> r.module, r.code, r.severity, r.clock
    ('DRIVER', '0x68020002', 'ERROR', 'local')
    >>> r = bbox.record("devid: 2, module: 1 2021-10-05 15:07:08 651408 devid: 2 device manager current status: working.")
    >>> r.device, r.clock, r.message
    (2, 'device', 'device manager current status: working.')
    >>> bbox.record("crash tid:51501").tid, bbox.record("#00 0x00000d6144582878 0x00002af3f31e1a4a /usr/lib64/libruntime.so")
    (51501, None)

history.log and folder names carry the local time of the host, the texts in the folders that of the device (mostly UTC), kernel texts
only the time since boot. Stack frames and register dumps belong to the line above them.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import clock
from parsers.base import Parser
from parsers.kernel_log import ascend
from parsers.plog import device_of, stream_and_task
from parsers.rows import Document, Fact, Metric, Record

_HISTORY = re.compile(
    r"(?:\[([0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})\] )?system (exception|recovery) code ?\[(0x[0-9A-Fa-f]{1,8})\]: "
    r"(?:Device ?\[([0-9]{1,4})\], )?ModuleName ?\[([^\]\n]{0,64})\], ExceptionReason ?\[([^\]\n]{0,64})\], TimeStamp ?\[([0-9]{14}-[0-9]{9})\]"
)
_DRIVER = re.compile(
    r"devid: ?([0-9]{1,4}), module: ?[0-9]{1,4} ([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}) ([0-9]{1,6}) (?:devid: ?[0-9]{1,4} )?"
)
_UPTIME = re.compile(r"\[ {0,12}([0-9]{1,20}\.[0-9]{6})\] ?")
_ATRACE_TIME = re.compile(r"\[?([0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\.[0-9]{3})\]? (?:tid\[([0-9]{1,10})\] )?")
_CRASH = re.compile(r"crash (reason|pid|tid): ?([0-9]{1,10})")
_THREAD = re.compile(r"Thread [0-9]{1,6} \(([0-9]{1,10}), ([^)\n]{1,64})\)")
_SECTION = re.compile(
    r"\[(?:stack|process|maps|system memory|process status|process limits|hbm mntn info|ddr mntn info|end(?: of [a-z ]{1,40})?)\]$"
    r"|(?:driver|Device|ts|os|bbox) info:$"
)
_CODE = re.compile(r"excep(?:tion)?_id: ?(0x[0-9a-fA-F]{1,8})")
_ECC = re.compile(r"timestamp\[([0-9]{9,11})\] pa\[(0x[0-9a-fA-F]{1,16})\][^\n]{0,200}?ecc_count\[([0-9]{1,9})\]")
_ISOLATED = re.compile(r"isolated pages: single ([0-9]{1,9}) double ([0-9]{1,9})")
_CHIP = re.compile(r"phy_id: ([0-9]{1,4}), logic_id: ([0-9]{1,4}), chip_id: ([0-9]{1,4}), die_id: ([0-9]{1,4})(?:, version: (\w{1,32}))?")
_FOLDER = re.compile(
    r"(?:^|/)(?:hisi_logs|bbox|stackcore|atrace|mntn)(?:/|$)|(?:^|/)(?:stackcore|coretrace)\.|stackcore_tracer_|schedule_tracer_"
    r"|(?:^|/)history\.log"
)
_MORE = re.compile(r"#[0-9]{1,4} +0x[0-9a-f]{8,16} (?:0x)?[0-9a-f]{8,16}[- ]|stars_reg\[|phy_id: [0-9]{1,4}, logic_id: ")
"""Lines that belong to the record above them and stand in no other kind of file."""


class BboxParser(Parser):
    kind: ClassVar[str] = "bbox"

    def claims(self, path: str, head: str) -> int:
        lines = own = up = 0
        for line in head.split("\n", 60)[:60]:
            if not line.strip():
                continue
            lines += 1
            if _UPTIME.match(line):
                up += 1
            elif self.record(line) is not None or _MORE.match(line) or _ECC.search(line, 0, 400):
                own += 1
        folder = _FOLDER.search(path) is not None
        if folder and lines and (own or up == lines):
            return max(50, min(99, 60 + 40 * (own + up) // lines))
        return min(94, 30 + 65 * own // lines) if own else 0

    def record(self, line: str) -> Record | None:
        first = line[:1]
        if first == "[":
            if seen := _HISTORY.match(line):
                return _history(line, seen)
            if seen := _UPTIME.match(line):
                record = Record("", ts=clock.uptime(seen[1]), clock="boot")
                record.clock = "boot" if record.ts is not None else "none"
                ascend(line, seen.end(), record)
                record.grammar = self.kind
                return record
        elif first == "s" and (seen := _HISTORY.match(line)):
            return _history(line, seen)
        elif first == "d" and (seen := _DRIVER.match(line)):
            base = clock.second(seen[2])
            ts = None if base is None else base + int(seen[3])
            return Record(line[seen.end() :], seen.end(), ts, "device" if ts is not None else "none", grammar=self.kind, device=int(seen[1]))
        elif first == "c" and (seen := _CRASH.match(line)):
            number = int(seen[2])
            record = Record(line, severity="FATAL", grammar=self.kind)
            if seen[1] == "reason":
                record.code = f"signal {number}"
            elif seen[1] == "pid":
                record.pid = number
            else:
                record.tid = number
            return record
        elif first == "T" and (seen := _THREAD.match(line)):
            return Record(line, grammar=self.kind, process=seen[2], tid=int(seen[1]))
        if (first == "[" or first == "2") and (seen := _ATRACE_TIME.match(line)):
            ts = clock.cann(seen[1])
            text = line[seen.end() :]
            stream, task = stream_and_task(text)
            return Record(
                text, seen.end(), ts, "local" if ts is not None else "none", grammar=self.kind, tid=int(seen[2]) if seen[2] else None,
                device=device_of(text), stream_id=stream, task_id=task,
            )  # fmt: skip
        if len(line) < 64 and _SECTION.match(line):
            return Record(line, grammar=self.kind)
        if line.startswith(("excep_id", "device_id = ", "device_id=")):
            seen = _CODE.match(line)
            return Record(line, grammar=self.kind, severity="ERROR", code=seen[1] if seen else "", device=device_of(line))
        return None

    def extract(self, text: str) -> Document:
        """The chips of device_info.txt as facts device.map and chip.version; the memory errors of mntn/hbm.txt as metrics."""
        out = Document()
        if "logic_id: " not in text and "ecc_count[" not in text and "isolated pages: " not in text:
            return out
        bits = ""
        for line_no, line in enumerate(text.split("\n"), 1):
            if seen := _CHIP.search(line, 0, 400):
                out.facts.append(Fact("device.map", f"logic {seen[2]} = phy {seen[1]} = chip {seen[3]} die {seen[4]}", line_no, device=int(seen[2])))
                if seen[5]:
                    out.facts.append(Fact("chip.version", seen[5], line_no, device=int(seen[2])))
            elif seen := _ECC.search(line, 0, 400):
                ts = int(seen[1]) * clock.SECOND
                out.metrics.append(Metric(f"npu.hbm.ecc.{bits or 'bit'}", float(seen[3]), "", line_no, ts=ts, label=seen[2]))
            elif line.startswith(("single bit record", "multi bit record")):
                bits = "single_bit" if line[0] == "s" else "multi_bit"
            elif seen := _ISOLATED.search(line, 0, 400):
                for label, value in (("single_bit", seen[1]), ("double_bit", seen[2])):
                    out.metrics.append(Metric("npu.hbm.isolated_pages", float(value), "", line_no, label=label))
        return out


def _history(line: str, seen: re.Match[str]) -> Record:
    stamp, what, code, device, module, _reason, _folder = seen.groups()
    at = len(stamp) + 3 if stamp else 0
    ts = clock.cann(stamp) if stamp else None
    return Record(
        line[at:], at, ts, "local" if ts is not None else "none", "ERROR" if what == "exception" else "INFO", "bbox", module,
        device=int(device) if device else None, code="0x" + code[2:].upper().rjust(8, "0"),
    )  # fmt: skip
