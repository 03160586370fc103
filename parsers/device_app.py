"""Log of an application's own processes on the device (aicpu_scheduler, hccp_service): device-<id>/device-<host pid>_<time>.log.

    >>> r = DeviceAppParser().record("[ERROR] CCECPU(2011,aicpu_scheduler):2025-03-02-04:10:55.270.962 [aicpusd_event_process.cpp:402]"
    ...                              "[ProcessHWTSKernelEvent][tid:2012] [AICPU_EVENT] Aicpu engine process failed, result[11004], opName[IndexPut]")
    >>> r.pid, r.tid, r.process, r.function, r.code, r.grammar, r.clock
    (2011, 2012, 'aicpu_scheduler', 'ProcessHWTSKernelEvent', '11004', 'device', 'device')
    >>> host_pid("process_log/debug/device-11/device-1382_20250806223914702.log")
    1382

The host process fetches these lines and writes them beside its plog, so the number in the file name is its own pid, while the pids in
the lines are those of the device OS. The folder names the logical device.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import plog
from parsers.rows import Record

_NAME = re.compile(r"(?:^|/)device-([0-9]{1,4})/device-([0-9]{1,10})_[0-9]{14,17}\.log")


def host_pid(path: str) -> int | None:
    """The pid of the host process that a device log belongs to, from its path; None where the path does not say."""
    seen = _NAME.search(path)
    return int(seen[2]) if seen and "dev-os" not in path else None


def device(path: str) -> int | None:
    """The logical device of a device log, from its folder."""
    seen = _NAME.search(path)
    return int(seen[1]) if seen and "dev-os" not in path else None


class DeviceAppParser(plog.PlogParser):
    kind: ClassVar[str] = "device"

    def record(self, line: str) -> Record | None:
        return plog.read(line, "device", self.kind)
