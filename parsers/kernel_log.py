"""Kernel and system log of the host: dmesg in all its spellings, /var/log/messages, journalctl, host_kernel.log, vmcore-dmesg.

    >>> kernel = KernelParser()
    >>> r = kernel.record("[ 1203.300000] [ascend] [ERROR] [trs_drv] [trs_mbox_send 188] <python3:51377:51501:64> "
    ...                   "Mbox send fail. (devid=1; ret=-110)")
    >>> r.ts, r.clock, r.severity, r.module, r.function, r.src_line, r.process, r.pid, r.tid, r.device, r.message
    (1203300000, 'boot', 'ERROR', 'trs_drv', 'trs_mbox_send', 188, 'python3', 51377, 51501, 1, 'Mbox send fail. (devid=1; ret=-110)')
    >>> r = kernel.record("Oct 14 14:12:01 npu-07 kernel: [  893.100000] python3: page allocation failure: order:9")
    >>> r.clock, r.node, r.process, r.message
    ('noyear', 'npu-07', 'kernel', 'python3: page allocation failure: order:9')
    >>> kernel.record("[2025-04-16-03:08:13.805199] [ascend] [drv_pcie] [INFO] [devdrv_init_dev_num 2248] <kworker/5:1H:39365> Findout device.").clock
    'utc'
    >>> anchor("Oct 14 14:12:01 npu-07 kernel: [  893.100000] python3: page allocation failure")     # wall, its clock, uptime
    (87919921000000, 'noyear', 893100000)

The Ascend driver prints its errors at kernel level "notice", so the tag in the text decides how bad a line is, not the level before it;
its device numbers are physical. Only the first five driver errors of a second reach dmesg; host_kernel.log, in UTC, keeps them all.
"""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec

from parsers import clock
from parsers.base import Parser
from parsers.plog import device_of, event_code, worse
from parsers.rows import Document, Fact, Record

_PRIORITIES = ("FATAL", "FATAL", "FATAL", "ERROR", "WARNING", "EVENT", "INFO", "DEBUG")
"""Severity of the syslog levels emerg to debug."""
_WORDS = {
    "emerg": "FATAL", "alert": "FATAL", "crit": "FATAL", "critical": "FATAL", "fatal": "FATAL", "err": "ERROR", "error": "ERROR", "warn": "WARNING",
    "warning": "WARNING", "notice": "EVENT", "event": "EVENT", "info": "INFO", "debug": "DEBUG", "dbg": "DEBUG",
}  # fmt: skip

_UP = r"(?:\[ {0,12}([0-9]{1,20}\.[0-9]{1,9})\](?:\[ {0,8}[TC][0-9]{1,8}\])? ?)"
_PRI = re.compile(r"<([0-9]{1,3})>")
_RAW = re.compile(_UP)
_CTIME = re.compile(r"\[([A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4})\] ?")
_HOST_KERNEL = re.compile(r"\[([0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})\] " + _UP + r"?(?=\[ascend\])")
_FACILITY = re.compile(r"(?:kern|user|daemon|syslog|auth|authpriv) {0,8}:(emerg|alert|crit|err|warn|notice|info|debug) {0,8}: ?")
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
_PIPE = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    + _ZONE
    + r")\|(\w{1,12})\|([^|\[\]\n]{1,64})(?:\[([^\]\n]{0,20})\])?[|:] ?"
)
_ISO = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?" + _ZONE + r") ")
_TAG = re.compile(r"(\S{1,128}) ([^\s\[\]:]{1,64})(?:\[([0-9]{1,10})\])?: ?")
_BSD = re.compile(r"((?:[A-Z][a-z]{2}|[0-9]{1,2}月) {1,2}[0-9]{1,2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?) ")
_BSD_TAG = re.compile(r"([^\s:]{1,128}(?: [\w.-]{1,64})?) ([^\s\[\]:]{1,64})(?:\[([0-9]{1,10})\])?: ?")
_KLOGD = re.compile(r"\[klogd\.c:([0-9]{1,6})\]\[ {0,12}([0-9]{1,20}\.[0-9]{1,9})\] ?")

_SEVERITY_TAG = r"(?:\[(ERROR|WARN|INFO|NOTICE|EVENT|DBG|DEBUG)\] ?)?"
_ASCEND = re.compile(
    r"\[ascend\] ?"
    + _SEVERITY_TAG
    + r"\[([\w -]{1,64})\] ?(?:\[[a-z]\w{0,63}\] ?)?"
    + _SEVERITY_TAG
    + r"(?:\[([\w.]{1,200})[ :,]([0-9]{1,9})\] ?)?(?:\[T([0-9]{1,10})\] ?)?"
)
_WHO = re.compile(r"<([^>\n]{1,80}?)(?::([0-9]{1,10}))(?:[:,]([0-9]{1,10}))?(?:[:,]([0-9]{1,10}))?> ?")
_KWORKER = re.compile(r"<(kworker/u?[0-9]{1,5}:[0-9]{1,5}\w{0,4}(?:-[\w-]{1,40})?):([0-9]{1,10})(?:[:,]([0-9]{1,10}))?(?:[:,]([0-9]{1,10}))?> ?")
_USER_MODE = re.compile(
    r"\[([^\[\]\n:]{1,256}):([0-9]{1,9})\]\[ascend\]\[curpid: ?([0-9]{1,10}), ?([0-9]{1,10})\]\[drv\]\[([\w ]{1,64})\]\[(\w{1,200})"
)
_VASCEND = re.compile(r"devdrv_device_driver [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9]: (?:\[(\w{1,64})\] \[(\w{1,200}) ([0-9]{1,9})\] )?")
_BARE = re.compile(r"(ascend|davinci|devmm|hisi_hdc|drv_\w{1,40}): ?")
_MARK = re.compile(r"-- (?:Logs begin|Journal begins|Reboot|Boot |No entries)")


class _Entry(msgspec.Struct):
    """One line of `journalctl -o json`."""

    MESSAGE: str | list[int] | None = None
    PRIORITY: str = ""
    SYSLOG_IDENTIFIER: str = ""
    realtime: str = msgspec.field(default="", name="__REALTIME_TIMESTAMP")
    source_time: str = msgspec.field(default="", name="_SOURCE_REALTIME_TIMESTAMP")
    monotonic: str = msgspec.field(default="", name="__MONOTONIC_TIMESTAMP")
    host: str = msgspec.field(default="", name="_HOSTNAME")
    pid: str = msgspec.field(default="", name="_PID")


_journal = msgspec.json.Decoder(_Entry)


def ascend(body: str, at: int, record: Record) -> None:
    """Read what follows a kernel prefix into `record`: `body[at:]` is the Ascend driver's text, or anybody's."""
    text = body[at:]
    if text[:8] == "[ascend]" and (seen := _ASCEND.match(text)):
        one, record.module, two, function, line, thread = seen.groups()
        record.severity = worse(_WORDS.get((one or two or "").lower(), ""), record.severity)
        if line:
            record.function, record.src_line = function, int(line)
        if thread:
            record.tid = int(thread)
        end = seen.end()
        if text[end : end + 1] == "<" and (who := (_KWORKER if text.startswith("<kworker", end) else _WHO).match(text, end)):
            record.process = who[1]
            record.pid = int(who[2])
            record.tid = int(who[3]) if who[3] else record.tid
            end = who.end()
    elif text[:8] == "devdrv_d" and (seen := _VASCEND.match(text)):
        record.module = seen[1] or "devdrv_device_driver"
        record.function = seen[2] or ""
        record.src_line = int(seen[3]) if seen[3] else None
        end = seen.end()
    elif text[:1] == "[" and (seen := _USER_MODE.match(text)):
        record.src_file, record.src_line, record.module, record.function = seen[1], int(seen[2]), seen[5], seen[6]
        record.pid, record.tid = int(seen[3]), int(seen[4])
        end = text.find("]", seen.end()) + 1
    elif seen := _BARE.match(text):
        record.module = seen[1]
        end = seen.end()
    else:
        record.message, record.message_at = text, at
        return
    record.message, record.message_at = text[end:], at + end
    if record.device is None and ("dev" in record.message or "hy" in record.message):
        record.device = device_of(record.message)
    if not record.code and "vent" in record.message:
        record.code = event_code(record.message)


def klogd(line: str, at: int, record: Record) -> bool:
    """Kernel text inside a device-os record: `[klogd.c:253][<uptime>] text`; False where `line[at:]` is something else."""
    seen = _KLOGD.match(line, at)
    if seen is None:
        return False
    record.src_file, outer = "klogd.c", int(seen[1])
    ascend(line, seen.end(), record)
    if record.src_line is None:
        record.src_line = outer
    return True


class KernelParser(Parser):
    kind: ClassVar[str] = "kernel"

    def claims(self, path: str, head: str) -> int:
        lines = own = 0
        for line in head.split("\n", 80)[:80]:
            if not line.strip():
                continue
            lines += 1
            record = _read(line)
            if record is None or (record.clock == "local" and not record.module and not record.node and record.grammar == "iso"):
                continue
            own += 1
        if not own:
            return 0
        name = path.rsplit("/", 1)[-1].lower()
        known = any(word in name for word in ("dmesg", "messages", "syslog", "kern", "journal", "sysmonitor"))
        return min(98, 25 + 65 * own // lines + 8 * known)

    def record(self, line: str) -> Record | None:
        record = _read(line)
        if record is not None:
            record.grammar = "kernel"
        return record

    def extract(self, text: str) -> Document:
        """The kernel's version, from its first line of a boot."""
        at = text.find("Linux version ")
        if at < 0:
            return Document()
        version = text[at + 14 : at + 214].split(maxsplit=1)
        return Document([Fact("os.kernel", version[0], text.count("\n", 0, at) + 1)]) if version else Document()


def _read(line: str) -> Record | None:
    first = line[:1]
    severity = ""
    at = 0
    if first == "<" and (seen := _PRI.match(line)):
        severity, at = _PRIORITIES[int(seen[1]) & 7], seen.end()
        first = line[at : at + 1]
    elif first in ("k", "u", "d") and (seen := _FACILITY.match(line)):
        severity, at = _WORDS[seen[1]], seen.end()
        first = line[at : at + 1]
    if first == "[":
        return _bracketed(line, at, severity)
    if "0" <= first <= "9":
        return _dated(line, at, severity)
    if "A" <= first <= "Z":
        return _syslog(line, at, severity)
    if first == "{" and '"MESSAGE"' in line:
        return _json(line)
    if first == "d" and _VASCEND.match(line):
        record = Record("", severity=severity)
        ascend(line, 0, record)
        return record
    if first == "-" and _MARK.match(line):
        return Record(line)
    return None


def _bracketed(line: str, at: int, severity: str) -> Record | None:
    record = Record("", severity=severity)
    if seen := _RAW.match(line, at):
        record.ts = clock.uptime(seen[1])
        record.clock = "boot" if record.ts is not None else "none"
    elif seen := _HOST_KERNEL.match(line, at):
        record.ts = clock.cann(seen[1])
        record.clock = "utc" if record.ts is not None else "none"
    elif seen := _CTIME.match(line, at):
        record.ts = clock.ctime(seen[1])
        record.clock = "local" if record.ts is not None else "none"
    elif line.startswith("[ascend]", at) and _ASCEND.match(line, at):
        ascend(line, at, record)
        return record
    else:
        return None
    ascend(line, seen.end(), record)
    return record


def _dated(line: str, at: int, severity: str) -> Record | None:
    if seen := _PIPE.match(line, at):
        ts, name = clock.iso(seen[1])
        record = Record("", ts=ts, clock=name, severity=worse(severity, _WORDS.get(seen[2].lower(), "")), process=seen[3])
        record.pid = int(seen[4]) if seen[4] and seen[4].isdecimal() and seen[4].isascii() and len(seen[4]) < 11 else None
        _body(line, seen.end(), record)
        return record
    seen = _ISO.match(line, at)
    if seen is None:
        return _syslog(line, at, severity) if line.find("月", at, at + 3) > 0 else None
    ts, name = clock.iso(seen[1])
    record = Record("", ts=ts, clock=name, severity=severity, grammar="iso")
    if tag := _TAG.match(line, seen.end()):
        record.node, record.process, pid = tag.groups()
        record.pid = int(pid) if pid else None
        _body(line, tag.end(), record)
        return record
    body = line[seen.end() : seen.end() + 9]
    if body[:1] == "[" or severity or body.startswith("devdrv_d"):  # dmesg --time-format iso
        _body(line, seen.end(), record)
        return record if record.module or severity or record.clock == "zoned" else None
    return None


def _syslog(line: str, at: int, severity: str) -> Record | None:
    seen = _BSD.match(line, at)
    if seen is None:
        return None
    tag = _BSD_TAG.match(line, seen.end())
    if tag is None:
        return None
    ts = clock.bsd(seen[1])
    record = Record("", ts=ts, clock="noyear" if ts is not None else "none", severity=severity, node=tag[1], process=tag[2])
    record.pid = int(tag[3]) if tag[3] else None
    _body(line, tag.end(), record)
    return record


def _body(line: str, at: int, record: Record) -> None:
    if seen := _RAW.match(line, at):
        at = seen.end()
    ascend(line, at, record)


def _json(line: str) -> Record | None:
    try:
        entry = _journal.decode(line)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    text = bytes(k & 255 for k in entry.MESSAGE).decode("utf-8", "replace") if isinstance(entry.MESSAGE, list) else entry.MESSAGE or ""
    ts = _micros(entry.source_time or entry.realtime)
    record = Record("", ts=ts, clock="zoned" if ts is not None else "none", process=entry.SYSLOG_IDENTIFIER, node=entry.host)
    record.severity = _PRIORITIES[int(entry.PRIORITY)] if entry.PRIORITY in ("0", "1", "2", "3", "4", "5", "6", "7") else ""
    record.pid = _micros(entry.pid)
    ascend(text, 0, record)
    record.message_at = 0  # the message stands in the line in JSON's spelling
    return record


def _micros(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else None


def anchor(line: str) -> tuple[int, str, int] | None:
    """(wall time, its clock, uptime), both in microseconds, of a line that prints both: what places boot-relative times on the wall."""
    if '"__MONOTONIC_TIMESTAMP"' in line:
        try:
            entry = _journal.decode(line)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return None
        wall, up = _micros(entry.realtime), _micros(entry.monotonic)
        return (wall, "zoned", up) if wall is not None and up is not None else None
    record = _read(line)
    if record is None or record.ts is None or record.clock == "boot":
        return None
    for seen in _RAW.finditer(line, 12, 320):
        up = clock.uptime(seen[1])
        return (record.ts, record.clock, up) if up is not None else None
    return None
