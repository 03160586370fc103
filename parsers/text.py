"""Any text that no other parser claims: its lines are kept and stay searchable, with a time where one leads the line.

>>> text = TextParser()
>>> r = text.record("2025-09-04 09:50:11,954 worker 3 failed to start")
>>> r.ts, r.clock, r.message
(1756979411954000, 'local', 'worker 3 failed to start')
>>> text.record("loading model").message, text.record("    at frame 3") is None        # an indented line continues the one above
('loading model', True)
>>> text.record("[ERROR] RUNTIME(7,main):2025-10-14-06:12:40.118.362 [api.cc:1]7 rtMalloc:out of memory").grammar
'plog'
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import clock, plog
from parsers.base import Parser
from parsers.rows import Record

_TIME = re.compile(
    r"(\[)?([0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[-T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,:][0-9]{1,9})?(?: ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?)"
    r"(?![0-9])(?(1)\]) ?"
)
_LEVEL = re.compile(r"(?:[-|: ]{0,3})\[?(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b\]?(?: ?[-:|])? ?", re.IGNORECASE)


class TextParser(Parser):
    kind: ClassVar[str] = "text"

    def claims(self, path: str, head: str) -> int:
        return 1

    def record(self, line: str) -> Record | None:
        first = line[:1]
        if first == "" or first == " " or first == "\t":
            return None
        if first == "[" and (record := plog.read(line, "local", "plog")):
            return record
        ts, name, at = None, "none", 0
        if seen := _TIME.match(line):
            ts, name = clock.iso(seen[2])
            if ts is None:
                name = "none"
            at = seen.end()
        severity = ""
        if seen := _LEVEL.match(line, at):
            severity, at = plog.SEVERITIES.get(seen[1].upper(), ""), seen.end()
        return Record(line[at:], at, ts, name, severity, self.kind)
