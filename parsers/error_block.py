"""The error block that CANN's error manager prints on consoles: a head with a code, hints, a TraceBack and frames.

>>> block = ErrorBlockParser()
>>> head = block.record("EL0004: [PID: 3132] 2025-10-15-16:32:16.417.528 Failed to allocate memory.")
>>> head.code, head.pid, head.severity, head.message
('EL0004', 3132, 'ERROR', 'Failed to allocate memory.')
>>> block.record("[PID: 379] 2026-05-01-10:59:07.429.194 Device_Absent/Abnormal(EL0001): Device not found or invalid.").module
'Device_Absent/Abnormal'
>>> block.record("        Possible Cause: Available memory is insufficient.") is None  # belongs to the head above
True
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import clock
from parsers.base import Parser
from parsers.rows import Record

SEVERITY = {"E": "ERROR", "W": "WARNING", "I": "INFO"}

_CODE = r"[EWI][0-9A-Z]\d{4}"
_TIME = r"\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{1,3}\.\d{1,3}"
_TITLE = r"[A-Za-z][\w/-]{0,60}(?: [\w/-]{1,40}){0,4}"
# EZ9999[PID: 8146] 2026-03-16-20:13:22.806.034 (EZ9999):  text       inner, since 8.3
# EL0004: [PID: 14004] 2025-11-06-01:17:59.527.855 text                since 8.0.RC3
# EI9999: 2024-10-21-10:42:00.358.410  text                            7.x
# EL9999: Inner Error!   |   E30003: text   |   EL9999  frame[FUNC:..  5.x and 6.x
_HEAD = re.compile(
    rf"(?P<code>{_CODE})(?:"
    rf"\[PID: ?(?P<pid>\d{{1,10}})\] (?P<time>{_TIME}) (?P<title>{_TITLE})?\({_CODE}\): {{0,2}}"
    rf"|: {{1,2}}(?:\[PID: ?(?P<pid2>\d{{1,10}})\] )?(?P<time2>{_TIME}) {{1,2}}"
    r"|: ?|  ?(?=.{0,4000}\[FUNC:))",
    re.ASCII,
)
# [PID: 379] 2026-05-01-10:59:07.429.194 Device_Absent/Abnormal(EL0001): text     titled, since 8.3
_TITLED = re.compile(rf"\[PID: ?(?P<pid>\d{{1,10}})\] (?P<time>{_TIME}) (?P<title>{_TITLE})\((?P<code>{_CODE})\): ?", re.ASCII)
# Resource_Error(EE1023): text                                                    9.x
_BARE = re.compile(rf"(?P<title>{_TITLE})\((?P<code>{_CODE})\): ?", re.ASCII)

_BODY = ("TraceBack (most recent call last)", "EXCEPTION TASK:", "Possible Cause:", "PossibleCause:", "Solution:", "[Error]: ")
_TASK = re.compile(r"DEVICE\[\d{1,4}\] PID\[\d{1,10}\]:", re.ASCII)


def is_code(text: str) -> bool:
    """Whether a text begins with an error code, such as EZ9999 or WE0001."""
    return text[:1] in SEVERITY and text[2:6].isdigit() and text[1:2].isalnum() and len(text) >= 6 and not text[6:7].isalnum()


def head(text: str) -> Record | None:
    """The head of a block, whose text begins at the line's start."""
    first = text[:1]
    if first == "[":
        found = _TITLED.match(text) if text.startswith("[PID:") else None
        if found is None:
            return None
        return _made(text, found, found["code"], found["title"], found["pid"], found["time"])
    if is_code(text):
        found = _HEAD.match(text)
        if found is None:
            return None
        return _made(text, found, found["code"], found["title"] or "", found["pid"] or found["pid2"], found["time"] or found["time2"])
    if first.isalpha() and "): " in text[:320]:
        found = _BARE.match(text)
        if found is not None:
            return _made(text, found, found["code"], found["title"])
    return None


def _made(text: str, found: re.Match[str], code: str, title: str, pid: str | None = None, time: str | None = None) -> Record:
    ts = clock.cann(time) if time else None
    at = found.end()
    return Record(
        text[at:], at, ts, "none" if ts is None else "local", SEVERITY[code[0]], "error-block", title.strip(),
        pid=int(pid) if pid else None, code=code,
    )  # fmt: skip


def continues(text: str) -> bool:
    """Whether a line at column 0 is part of the block above: a frame, a hint, the list of failed tasks."""
    return text.startswith(_BODY) or "[FUNC:" in text or (text.startswith("DEVICE[") and _TASK.match(text) is not None)


class ErrorBlockParser(Parser):
    """Blocks stand inside consoles and application logs, so no file is theirs."""

    kind: ClassVar[str] = "error-block"

    def claims(self, path: str, head: str) -> int:
        return 0

    def record(self, line: str) -> Record | None:
        """The head of a block; everything else continues it."""
        return head(line)
