"""MindSpore: its own records, which look like CANN's but carry three fields in the parentheses, and its framed sections.

>>> mindspore = MindsporeParser()
>>> r = mindspore.record("[ERROR] GE_ADPT(573,ffff8de02d60,python):2023-05-23-03:52:26.139.729 "
...                      "[mindspore/ccsrc/transform/graph_ir/graph_runner.cc:331] RunGraph] Call GE RunGraph Failed, ret is: 1343225857")
>>> r.severity, r.module, r.pid, r.process, r.function, r.src_line, r.message
('ERROR', 'GE_ADPT', 573, 'python', 'RunGraph', 331, 'Call GE RunGraph Failed, ret is: 1343225857')
>>> r.tid == 0xffff8de02d60
True
>>> mindspore.record("[WARNING] ME(573:281473062022496,MainProcess):2023-05-23-03:52:26.135.553 [mindspore/train/model.py:1079] text").tid
281473062022496
>>> mindspore.record("- Ascend Error Message:") is None
True

MindSpore writes to the console, so its files are consoles; the grammar of its lines is "mindspore".
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import clock
from parsers.base import Parser
from parsers.rows import Record

SEVERITY = {
    "DEBUG": "DEBUG", "INFO": "INFO", "WARNING": "WARNING", "ERROR": "ERROR", "CRITICAL": "FATAL", "EXCEPTION": "ERROR",
}  # fmt: skip

_HEAD = re.compile(
    r"\[([A-Z]{4,9})\] ([A-Z][A-Z0-9_]{0,40})\((\d{1,10})(?:,([0-9a-f]{1,16}),([^)]{0,120})|:(\d{1,20}),([^)]{0,120}))\): ?"
    r"(\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{1,3}\.\d{1,3}) \[([^\]\n]{1,300}):(\d{1,7})\] ?(?:([A-Za-z_~]\w{0,120})\] )?",
    re.ASCII,
)
_SECTION = ("- ", "# In file ", "# Corresponding ", "The function call stack", "In file ", "(Please search ", "(For ", "(Output ")


def line(text: str) -> Record | None:
    """A MindSpore record; None for any other line."""
    if text[:1] != "[":
        return None
    found = _HEAD.match(text)
    if found is None or found[1] not in SEVERITY:
        return None
    tid = int(found[4], 16) if found[4] else int(found[6]) if found[6] else None
    at = found.end()
    ts = clock.cann(found[8])
    return Record(
        text[at:], at, ts, "local" if ts is not None else "none", SEVERITY[found[1]], "mindspore", found[2], found[5] or found[7] or "",
        pid=int(found[3]), tid=tid, function=found[11] or "", src_file=found[9], src_line=int(found[10]),
    )  # fmt: skip


def continues(text: str) -> bool:
    """Whether a line is part of MindSpore's framed sections: their rules, titles and stacks."""
    return text.startswith(_SECTION) or (text.startswith("-----") and not text.strip("-"))


class MindsporeParser(Parser):
    kind: ClassVar[str] = "mindspore"

    def claims(self, path: str, head: str) -> int:
        return 0

    def record(self, text: str) -> Record | None:
        return line(text)
