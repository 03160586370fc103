"""Profiler output: Ascend PyTorch Profiler, msprof, and what a serving benchmark leaves. Recognised here, read as tables.

>>> profile = ProfileParser()
>>> profile.claims("PROF_000001/op_summary_1.csv", "Device_id,Op Name,OP Type,Task ID,Task Type,Task Start Time(us),Task Duration(us)\\n0,MatMul")
95
>>> profile.claims("x.txt", '[{"ph":"X","name":"MatMul","pid":1,"ts":"1725000000.5","dur":3.5}') > 80
True
>>> profile.claims("c.json", '{"step13": {"collective": {"hcom_allReduce__1": {"Communication Time Info": {') > 80
True
>>> profile.record("0,MatMul,MatMul,1,AI_CORE,1.0,2.0") is None
True

Readers: `profile_csv` (tables), `profile_json` (small files), `profile_trace` (events), `profile_db` (SQLite). What else lies in the folders of
a profiler is its raw data: of the kind profile-raw, kept as text where it is text.
"""

from __future__ import annotations

import re
from typing import ClassVar

from parsers import profile_csv, profile_json
from parsers.base import Parser
from parsers.profile_db import MAGIC
from parsers.rows import Record

TABLES = frozenset({"profile", "profile-db", "metrics"})
"""Kinds that are read as tables, not as lines."""

_TRACE = re.compile(
    r'\s*(?:\{\s*(?:"[^"]{1,60}"\s*:\s*(?:"[^"]*"|[-\d.eE]+|true|false|null)\s*,\s*)*"traceEvents"'
    r'|\[\s*\{\s*"(?:ph|name|pid|tid|ts|args|cat|dur|id|bp)"\s*:)'
)
_PLACE = re.compile(r"(?:^|/)(?:PROF_\d{3,}\w*|ASCEND_PROFILER_OUTPUT|mindstudio_profiler_output|[\w.-]+_ascend_(?:pt|ms))/")


class ProfileParser(Parser):
    kind: ClassVar[str] = "profile"

    def claims(self, path: str, head: str) -> int:
        return 95 if shape(head) in ("table", "json") else 90 if shape(head) == "trace" else 0

    def record(self, line: str) -> Record | None:
        return None


class RawProfileParser(Parser):
    kind: ClassVar[str] = "profile-raw"

    def claims(self, path: str, head: str) -> int:
        return 40 if _PLACE.search(path) else 0

    def record(self, line: str) -> Record | None:
        return None


class ProfileDatabaseParser(Parser):
    """Databases are told by their first bytes (`is_database`), not by text."""

    kind: ClassVar[str] = "profile-db"

    def claims(self, path: str, head: str) -> int:
        return 0

    def record(self, line: str) -> Record | None:
        return None


def is_database(path: str, head: bytes) -> bool:
    """Whether a member is a database a profiler may have written."""
    return head.startswith(MAGIC) and re.search(r"(?:ascend_\w+_profiler|msprof|analysis|profiler|cluster)[\w.-]*\.db\Z", path) is not None


def shape(head: str) -> str:
    """table, trace or json; empty: nothing of a profiler."""
    if profile_csv.header(head) is not None:
        return "table"
    if _TRACE.match(head.lstrip("\ufeff")) and '"ph"' in head[:16384]:
        return "trace"
    return "json" if profile_json.kind(head) else ""
