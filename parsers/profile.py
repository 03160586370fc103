"""Profiler output (msprof, Ascend PyTorch Profiler): recognised, so that it is named in the report and not taken for a log.

>>> profile = ProfileParser()
>>> profile.claims("PROF_000001/op_summary_1.csv", "Device_id,Op Name,OP Type,Task ID,Task Type,Task Start Time(us),Task Duration(us)\\n0,MatMul")
95
>>> profile.claims("x.txt", '[{"ph":"X","name":"MatMul","pid":1,"ts":"1725000000.5","dur":3.5}') > 80
True
>>> profile.record("0,MatMul,MatMul,1,AI_CORE,1.0,2.0") is None
True
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers.base import Parser
from parsers.rows import Record

_COLUMNS = (
    "Task Duration(us)", "Task Start Time(us)", "Accelerator Core", "OP Type", "Op Name", "Input Shapes", "Total Time(us)", "Avg Time(us)",
    "Time(us)", "Step,Computing", "Allocation Time(us)", "Total Allocated(MB)", "Iteration ID", "API Name", "Ratio(%)", "Allocated Memory",
)  # fmt: skip
_TRACE = re.compile(r'\s*(?:\{\s*"traceEvents"|\[\s*\{\s*"(?:ph|name|pid|tid|ts|args|cat)"\s*:)')
_PLACE = re.compile(r"(?:^|/)(?:PROF_\d|ASCEND_PROFILER_OUTPUT|mindstudio_profiler_output|[\w.-]+_ascend_(?:pt|ms)/)")


class ProfileParser(Parser):
    kind: ClassVar[str] = "profile"

    def claims(self, path: str, head: str) -> int:
        first = head.lstrip("\ufeff\n")[:4000].split("\n", 1)[0]
        if first.count(",") >= 2 and sum(word in first for word in _COLUMNS) >= 2:
            return 95
        if _TRACE.match(head) and '"ph"' in head[:4000]:
            return 90
        return 60 if _PLACE.search(path) else 0

    def record(self, line: str) -> Record | None:
        return None
