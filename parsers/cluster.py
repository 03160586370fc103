"""Cluster components: device plugin, noded, npu-exporter, volcano and kubelet (klog), MindIO TTP, containerd and docker (logfmt).

>>> cluster = ClusterParser()
>>> r = cluster.record("[ERROR]    2024/01/10 03:40:00.000001 60      common/common.go:200    init devmanager failed, err: dcmi init failed")
>>> r.severity, r.src_file, r.src_line, r.tid, r.message
('ERROR', 'common/common.go', 200, 60, 'init devmanager failed, err: dcmi init failed')
>>> cluster.record("[2026-04-28 07:58:52.152022][ERROR]     157     dcmi/dcmi.go:1468    get npu link stat failed").message
'get npu link stat failed'
>>> r = cluster.record("E0111 03:29:15.700190       1 queue_controller.go:258]    Failed to create pod for Job")
>>> r.severity, r.clock, r.message
('ERROR', 'noyear', 'Failed to create pod for Job')
>>> cluster.record('time="2024-07-19T10:17:55+08:00" level=warning msg="analyzer is \\\\"late\\\\"" file="a.go:410"').message
'analyzer is "late"'
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import clock
from parsers.base import Parser
from parsers.mindie import SEVERITY
from parsers.prefix import peel
from parsers.rows import Record

_LETTER = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}
_OLD = re.compile(r"\[([A-Z]{4,8})\] +(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6}) (\d{1,10}) +([\w./-]{1,200}\.go):(\d{1,7}) +", re.ASCII)
_NEW = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})\]\[([A-Z]{4,8})\] +(\d{1,10}) +([\w./-]{1,200}\.go):(\d{1,7}) +", re.ASCII)
_KLOG = re.compile(r"([IWEF])(\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d{3,6}) +(\d{1,20}) ([\w./-]{1,200}):(\d{1,7})\] *", re.ASCII)
_TTP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]\[(\d{1,10})\]\[([A-Z]{4,8})\](?:\[(\w{1,80}):(\d{1,7})\])? ?", re.ASCII)
_LOGFMT = re.compile(r'time="?([^" ]{19,40})"? level=(\w{4,8}) msg=', re.ASCII)
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,80} ([\w.-]{1,60})(?:\[(\d{1,10})\])?: ", re.ASCII)
_DAEMONS = frozenset({"kubelet", "dockerd", "containerd", "docker", "kube-proxy", "crio"})


def line(text: str) -> Record | None:
    """A line of one of these components; None for any other."""
    first = text[:1]
    if first == "[":
        return _go(text) if text[1:2] != "2" or "][" in text[:40] else None
    if first in _LETTER and text[1:5].isdigit():
        return klog(text)
    if first == "t" and text.startswith("time="):
        return _logfmt(text)
    if first.isupper() and text[3:4] == " ":
        return _daemon(text)
    return None


def klog(text: str) -> Record | None:
    """`E0111 03:29:15.700190  1 file.go:258] text`, which Go components and torchrun print."""
    found = _KLOG.match(text)
    if found is None:
        return None
    ts = clock.month_day(found[2], found[3], found[4])
    return Record(
        text[found.end() :], found.end(), ts, "noyear" if ts is not None else "none", _LETTER[found[1]],
        "python" if found[6].endswith(".py") else "cluster", tid=int(found[5]), src_file=found[6], src_line=int(found[7]),
    )  # fmt: skip


def _go(text: str) -> Record | None:
    found = _OLD.match(text)
    if found is not None:
        return _made(text, found.end(), found[2], found[1], found[3], found[4], found[5])
    found = _NEW.match(text)
    if found is not None:
        return _made(text, found.end(), found[1], found[2], found[3], found[4], found[5])
    found = _TTP.match(text)
    if found is None:
        return None
    record = _made(text, found.end(), found[1], found[3], None, found[4] or "", found[5])
    record.pid = int(found[2])
    return record


def _made(text: str, at: int, time: str, level: str, tid: str | None, file: str, number: str | None) -> Record:
    ts, kind = clock.iso(time)
    return Record(
        text[at:], at, ts, kind if ts is not None else "none", SEVERITY.get(level, ""), "cluster", tid=int(tid) if tid else None,
        src_file=file, src_line=int(number) if number else None,
    )  # fmt: skip


def _logfmt(text: str) -> Record | None:
    found = _LOGFMT.match(text)
    if found is None:
        return None
    at = found.end()
    quoted = text[at : at + 1] == '"'
    at += quoted
    end = at
    while quoted and (end := text.find('"', end)) > 0 and text[end - 1] == "\\":
        end += 1
    message = (text[at:end] if end > 0 else text[at:]).replace('\\"', '"') if quoted else text[at:]
    ts, kind = clock.iso(found[1])
    return Record(message, at, ts, kind if ts is not None else "none", SEVERITY.get(found[2].upper(), ""), "cluster")


def _daemon(text: str) -> Record | None:
    """A daemon's line behind a syslog head: the severity and the source are inside."""
    found = _SYSLOG.match(text)
    if found is None or found[1] not in _DAEMONS:
        return None
    at = found.end()
    inner = text[at:]
    record = line(inner) if inner[:1] in _LETTER or inner.startswith("time=") else None
    if record is None:
        ts = clock.bsd(text[:15])
        record = Record(inner, 0, ts, "noyear" if ts is not None else "none", grammar="cluster")
    record.message_at += at
    record.module, record.pid = found[1], int(found[2]) if found[2] else None
    return record


class ClusterParser(Parser):
    kind: ClassVar[str] = "cluster"

    def claims(self, path: str, head: str) -> int:
        lines = [text for text in head.split("\n", 60)[:60] if text.strip()]
        if not lines:
            return 0
        hits = sum((found := self.record(text[:1000])) is not None and found.grammar == "cluster" for text in lines)
        return min(94, int(94 * hits / len(lines)) + 8) if hits else 0

    def record(self, text: str) -> Record | None:
        if not text or text[0] in " \t":
            return None
        found = line(text)
        if found is not None:
            return found
        peeled = peel(text)
        if peeled is not None and peeled.rest:
            return peeled.onto(line(peeled.rest) or Record(peeled.rest, grammar="text"))
        if text.startswith(("[ERROR] 2", "[2")):  # a job's own output between the platform's lines
            from parsers.console import read

            return read(text)
        return Record(text, grammar="text")
