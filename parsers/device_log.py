"""Log of the device's own system (device-os_<time>.log, event_<time>.log), as msnpureport exports it.

    >>> device_os = DeviceOsParser()
    >>> r = device_os.record("[EVENT] KERNEL(6843,sklogd):2023-06-10-13:16:14.099.605 [klogd.c:253][583734.126899] [ascend] [ERROR] [dms_module] "
    ...                      "[dms_sensor_event_process 673] <kworker/3:1:120:120> Event Process Success. (Event id=0x80e01809; Node Type=0x70)")
    >>> r.severity, r.module, r.function, r.process, r.code, r.clock          # the worse of the two levels
    ('ERROR', 'dms_module', 'dms_sensor_event_process', 'kworker/3:1', '0x80E01809', 'device')
    >>> device_os.record("[EVENT] DRV(3555,sklogd):2024-04-20-06:16:07.974.141 [fault_manager] event_id: [0x80e01801], assertion[1], "
    ...                  "node type[0x70], node id[0], severity[1], alarm serial number[1200]").code
    '0x80E01801'

The envelope is plog's; kernel text stands in it with its own level and uptime. The clock is the device's, in practice UTC, and 1970
until it is set. One device OS serves several devices: `dev-os-0` is not device 0.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import plog
from parsers.base import Parser
from parsers.kernel_log import klogd
from parsers.rows import Record

_INNER = re.compile(r"\[(ERROR|WARN|WARNING|CRITICAL|FATAL)\]")
_SLOGD = re.compile(r"(?:\[(\w{4,8})\] ?)?([0-9:. -]{19,26})?\(?([0-9]{1,10})\)?([\w./-]{1,128}\.c):([0-9]{1,9}): ")


class DeviceOsParser(Parser):
    kind: ClassVar[str] = "device-os"

    def claims(self, path: str, head: str) -> int:
        return plog.shares(path, head).get(self.kind, 0)

    def record(self, line: str) -> Record | None:
        record = plog.read(line, "device", self.kind)
        if record is None:
            return _self_log(line)
        if record.module == "KERNEL" and record.src_file == "klogd.c":
            record.src_file, record.src_line = "", None
            klogd(line, line.index("[klogd.c:"), record)
        elif "[" in record.message and (inner := _INNER.search(record.message, 0, 120)):
            record.severity = plog.worse(record.severity, plog.SEVERITIES.get(inner[1], ""))
        return record


def _self_log(line: str) -> Record | None:
    """slogd's log about itself: `(pid)file.c:line: text`, with or without level and time."""
    seen = _SLOGD.match(line) if ".c:" in line[:240] else None
    if seen is None:
        return None
    severity = plog.SEVERITIES.get(seen[1] or "", "")
    record = Record(line[seen.end() :], seen.end(), severity=severity, grammar="device-os", module="SLOG", pid=int(seen[3]))
    record.src_file, record.src_line = seen[4], int(seen[5])
    return record
