"""Log of the device's firmware (task scheduler, low power, network), in debug/device-<id>/ of an msnpureport export.

    >>> firmware = FirmwareParser()
    >>> r = firmware.record("[ERROR] TSCH(-1,null):2023-06-10-13:16:11.403.438 12 (dieid:0,cpuid:0) hwts_plat.c:2026 "
    ...                     "int_process_hwts_timeout_exception: RTS_HWTS: hwts timeout exception, slot_id=15, stream_id=16")
    >>> r.module, r.function, r.src_file, r.stream_id, r.clock, r.message
    ('TSCH', 'int_process_hwts_timeout_exception', 'hwts_plat.c', 16, 'device', 'RTS_HWTS: hwts timeout exception, slot_id=15, stream_id=16')
    >>> firmware.record("[EVENT] IMP(-2,IMP): 2024-12-04-08:27:31.758.802 75 (device_id:1 die_id:0) [IMP] present 1, mac_link 0").device
    1
    >>> firmware.record("<exception_print>HWS_REG_AICORE_STATUS=0x7fffdfff") is None      # belongs to the record above
    True

The clock is the device's, in practice UTC, while file and folder names carry the local time of the host.
The pids in `create_ringbuffer: pid=` are those of the host, the only trace of a host process in here.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import clock, plog
from parsers.base import Parser
from parsers.rows import Record

_SEQUENCE = re.compile(r"[0-9]{1,12} \((?:dieid:[0-9]{1,3},cpuid:[0-9]{1,3}|device_id:([0-9]{1,4}) die_id:[0-9]{1,3})\) ")
_SITE = re.compile(r"([\w./-]{1,128}\.[ch]):([0-9]{1,9}) (\w{1,200}): ?")
_DUMP = re.compile(r"<exception_print>TIME:([0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9:]{8}\.[0-9]{1,3}\.[0-9]{1,3}), ")
_CODE = re.compile(r"(?:exception_code|excep_id|error_code|errcode)\s?[=:]\s?(0x[0-9a-fA-F]{1,16})")


class FirmwareParser(Parser):
    kind: ClassVar[str] = "firmware"

    def claims(self, path: str, head: str) -> int:
        return plog.shares(path, head).get(self.kind, 0)

    def record(self, line: str) -> Record | None:
        if line.startswith("<exception_print>TIME:"):
            return _dump(line)
        record = plog.read(line, "device", self.kind)
        if record is None:
            return None
        # the sequence number looks like a thread of RUNTIME only behind [file:line], which firmware does not print there
        at = record.message_at
        if seen := _SEQUENCE.match(line, at):
            at = seen.end()
            record.device = int(seen[1]) if seen[1] else record.device
            if site := _SITE.match(line, at):
                record.src_file, record.src_line, record.function = site[1], int(site[2]), site[3]
                at = site.end()
            record.message, record.message_at = line[at:], at
            if "code" in record.message and not record.code and (code := _CODE.search(record.message)):
                record.code = code[1]
        return record


def _dump(line: str) -> Record | None:
    """The one line of an exception dump that has a time and says whose exception it is."""
    seen = _DUMP.match(line)
    if seen is None:
        return None
    text = line[seen.end() :]
    ts = clock.cann(seen[1])
    stream, task = plog.stream_and_task(text)
    code = _CODE.search(text)
    return Record(
        text, seen.end(), ts, "device" if ts is not None else "none", "ERROR", "firmware", "TSCH", device=plog.device_of(text), stream_id=stream,
        task_id=task, code=code[1] if code else "",
    )  # fmt: skip
