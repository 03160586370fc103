"""MindIE: mindie-<module>_<pid>_<time>.log, the ATB library log, and the motor's Python log.

>>> mindie = MindieParser()
>>> r = mindie.record("[2025-06-30 20:36:04.907+08:00] [8771] [8776] [server] [ERROR] [model_backend.cpp:201] : "
...                   "[MIE04E121107] [model_backend] GRPC security authentication failed")
>>> r.severity, r.code, r.module, r.pid, r.tid, r.src_file, r.src_line, r.clock, r.message
('ERROR', 'MIE04E121107', 'server', 8771, 8776, 'model_backend.cpp', 201, 'zoned', 'GRPC security authentication failed')
>>> mindie.record("[2025-10-10 13:38:41.194644] [fatal] [90832] [block_mem_allocation_solver.cpp:63] memory pool corrupt").grammar
'atb'
>>> mindie.record("2026-05-26 15:16:23  [ERROR][node_manager][daemon.py:203][proc:MainProcess]  engine process exit, code=-9").module
'node_manager'

Optional fields vanish with the verbosity; a zone is printed as +08:00, +0800 or not at all, even within one file.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import clock
from parsers.base import Parser
from parsers.rows import Record

SEVERITY = {
    "TRACE": "DEBUG", "DEBUG": "DEBUG", "INFO": "INFO", "EVENT": "EVENT", "WARN": "WARNING", "WARNING": "WARNING", "ERROR": "ERROR",
    "CRITICAL": "FATAL", "FATAL": "FATAL",
}  # fmt: skip

_TIME = r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3,6}(?: ?[+-]\d\d:?\d\d(?: DST)?)?)\] "
_SOURCE = r"\[([\w./-]{1,200}?)[:-](\d{1,7})\] ?"
_LOG = re.compile(
    _TIME + r"(?:\[(\d{1,10})\] \[(\d{1,20})\] \[([\w-]{1,60})\] (?:\[\d{1,10}\] )?)?"
    r"(?:\[([A-Za-z]{4,8})\] )?(?:" + _SOURCE + r")?: +(?:\[?(MIE[0-9A-F]{6,9})\]? ?)?(?:\[([^\]]{1,80})\] ?)?",
    re.ASCII,
)
_ATB = re.compile(_TIME + r"\[(trace|debug|info|warn|warning|error|fatal)\] \[(\d{1,20})\] " + _SOURCE, re.ASCII)
_MOTOR = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)  \[([A-Z]{4,8})\]\[([\w.]{1,80})\]\[([\w.]{1,120}):(\d{1,7})\]\[proc:([^\]]{1,80})\] +", re.ASCII
)


def line(text: str) -> Record | None:
    """A line in one of MindIE's three forms; None for any other."""
    if text.startswith("[2"):
        found = _ATB.match(text)
        if found is not None:
            return _made(text, found.end(), found[1], found[2].upper(), "atb", tid=found[3], source=(found[4], found[5]))
        found = _LOG.match(text)
        if found is None:
            return None
        record = _made(text, found.end(), found[1], found[5] or "", "mindie", found[4] or found[9] or "", found[2], found[3], (found[6], found[7]))
        record.code = found[8] or ""
        return record
    if text[:1].isdigit() and text[19:22] == "  [":
        found = _MOTOR.match(text)
        if found is None:
            return None
        record = _made(text, found.end(), found[1], found[2], "mindie", found[3], source=(found[4], found[5]))
        record.process = found[6]
        return record
    return None


def _made(
    text: str, at: int, time: str, level: str, grammar: str, module: str = "", pid: str | None = None, tid: str | None = None,
    source: tuple[str | None, str | None] = (None, None),
) -> Record:  # fmt: skip
    ts, kind = clock.iso(time.removesuffix(" DST"))
    return Record(
        text[at:], at, ts, kind if ts is not None else "none", SEVERITY.get(level.upper(), ""), grammar, module,
        pid=int(pid) if pid else None, tid=int(tid) if tid else None, src_file=source[0] or "", src_line=int(source[1]) if source[1] else None,
    )  # fmt: skip


class MindieParser(Parser):
    kind: ClassVar[str] = "mindie"

    def claims(self, path: str, head: str) -> int:
        lines = [text for text in head.split("\n", 60)[:60] if text.strip()]
        if not lines:
            return 0
        hits = sum(line(text[:1000]) is not None for text in lines)
        # a console with a few MindIE lines stays a console: vLLM's and torch's lines are more than continuations there
        share = hits / len(lines)
        named = path.rsplit("/", 1)[-1].startswith("mindie-")
        return min(95, int(90 * share) + (20 if named and hits else 0))

    def record(self, text: str) -> Record | None:
        found = line(text)
        if found is not None:
            return found
        from parsers.console import read  # which reads MindIE's lines too; its files hold CANN, torch and Python lines

        return read(text)
