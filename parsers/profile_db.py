"""Profiles as SQLite databases: ascend_pytorch_profiler_<rank>.db, msprof_<time>.db, analysis.db. Read only, tables that are there.

>>> import sqlite3, tempfile, os
>>> folder = tempfile.TemporaryDirectory()
>>> path = os.path.join(folder.name, "analysis.db")
>>> with sqlite3.connect(path) as made:
...     _ = made.execute("CREATE TABLE StepTraceTime (step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, free NUMERIC)")
...     _ = made.execute("INSERT INTO StepTraceTime VALUES ('13', 8603.25, 0, 12.5)")
>>> made.close()
>>> with Database(path) as base:
...     [(rows.table, rows.columns[:3], rows.rows[0][:3]) for rows in base.rows()]
[('steps', ('step', 'computing_ns', 'exposed_ns'), ('13', 8603250, 0))]

Times are nanoseconds, sizes bytes, strings numbers into STRING_IDS; names of columns changed over the releases (blockDim, blockNum). MindStudio
Insight writes into the databases it opens: tables and columns that are not known are left alone.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import msgspec

BATCH = 20_000
SECONDS = 120.0
"""After so long a database is given up."""
MB = 1 << 20
MAGIC = b"SQLite format 3\x00"

_PMU = {
    "mac_ratio": ("aic_mac_ratio", "mac_ratio", "aic_cube_ratio"),
    "aic_scalar_ratio": ("aic_scalar_ratio", "scalar_ratio"),
    "aic_mte1_ratio": ("aic_mte1_ratio", "mte1_ratio"),
    "aic_mte2_ratio": ("aic_mte2_ratio", "mte2_ratio"),
    "aic_fixpipe_ratio": ("aic_fixpipe_ratio", "fixpipe_ratio"),
    "vec_ratio": ("aiv_vec_ratio", "vec_ratio"),
    "aiv_scalar_ratio": ("aiv_scalar_ratio",),
    "aiv_mte2_ratio": ("aiv_mte2_ratio",),
    "aiv_mte3_ratio": ("aiv_mte3_ratio",),
}
_KERNEL_TEXTS = (
    ("name", "name"), ("opType", "op_type"), ("opState", "op_state"), ("taskType", "core"), ("hf32Eligible", "hf32"),
    ("inputShapes", "in_shapes"), ("inputDataTypes", "in_dtypes"), ("inputFormats", "in_formats"), ("outputShapes", "out_shapes"),
    ("outputDataTypes", "out_dtypes"), ("outputFormats", "out_formats"),
)  # fmt: skip


class Rows(msgspec.Struct):
    """Some rows of a case table."""

    table: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Database:
    """A database file, opened without touching it. Raises ValueError where it cannot be read."""

    def __init__(self, path: str) -> None:
        try:
            self._db = sqlite3.connect(f"file:{_quoted(path)}?mode=ro&immutable=1", uri=True)
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._db.execute("PRAGMA cell_size_check = ON")
            self._db.execute("PRAGMA cache_size = -65536")
            self._db.execute("PRAGMA temp_store = MEMORY")
            stop = time.monotonic() + SECONDS
            self._db.set_progress_handler(lambda: time.monotonic() > stop, 200_000)
            self._tables = {name: self._columns(name) for (name,) in self._db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")}  # fmt: skip
        except sqlite3.Error as error:
            raise ValueError(str(error)) from error
        self._named: str | None = None
        self.rank: int | None = None
        self.device: int | None = None
        self.soc = ""
        self.host = ""
        self.variables: list[tuple[str, str]] = []
        """Environment variables of the process."""
        self.problems: list[str] = []
        """Tables that could not be read, and why."""

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._db.close()

    def _columns(self, table: str) -> dict[str, str]:
        """Columns by their names in lower case, without underscores."""
        if not re.fullmatch(r"\w{1,100}", table):
            return {}
        return {str(row[1]).lower().replace("_", ""): str(row[1]) for row in self._db.execute(f'PRAGMA table_info("{table}")')}

    def _has(self, table: str, *columns: str) -> bool:
        return table in self._tables and all(column.lower() in self._tables[table] for column in columns)

    def _column(self, table: str, *names: str) -> str:
        """The first of these columns that the table has, quoted; NULL where it has none."""
        for name in names:
            if (own := self._tables.get(table, {}).get(name.lower().replace("_", ""))) is not None:
                return f'"{table}"."{own}"'
        return "NULL"

    def _text(self, column: str) -> str:
        """A column that points into STRING_IDS, as text."""
        if column == "NULL" or not self._has("STRING_IDS", "id", "value"):
            return column
        return f"(SELECT value FROM {self._strings()} WHERE id = {column})"

    def _strings(self) -> str:
        """The table of strings; where it was written without its key, a copy that has one."""
        if self._named is None:
            keyed = any(row[1] == "id" and row[5] for row in self._db.execute("PRAGMA table_info(STRING_IDS)"))
            self._named = "STRING_IDS" if keyed else "keyed_strings"
            if not keyed:
                self._db.execute("CREATE TEMP TABLE keyed_strings (id INTEGER PRIMARY KEY, value TEXT)")
                self._db.execute("INSERT OR IGNORE INTO keyed_strings SELECT CAST(id AS INTEGER), value FROM STRING_IDS")
        return self._named

    # ------------------------------------------------------------ all of it

    def rows(self) -> Iterator[Rows]:
        """Everything that is known, table by table."""
        parts = (
            self._about, self._kernels, self._communication, self._api, self._memory, self._allocations, self._clocks, self._trace,
            self._steps, self._comm_times, self._comm_links, self._comm_matrix,
        )  # fmt: skip
        for part in parts:
            try:
                yield from part()
            except (sqlite3.Error, ValueError, TypeError, OverflowError, UnicodeDecodeError) as error:
                self.problems.append(f"{part.__name__.strip('_')}: {str(error)[:120]}")

    def _about(self) -> Iterator[Rows]:
        if self._has("RANK_DEVICE_MAP", "rankid", "deviceid"):
            row = self._db.execute("SELECT rankId, deviceId FROM RANK_DEVICE_MAP LIMIT 1").fetchone()
            if row:
                self.rank, self.device = _whole(row[0]), _whole(row[1])
        if self._has("NPU_INFO", "name"):
            row = self._db.execute("SELECT name FROM NPU_INFO LIMIT 1").fetchone()
            self.soc = str(row[0])[:60] if row and row[0] else ""
        if self._has("HOST_INFO", "hostname"):
            row = self._db.execute("SELECT hostName FROM HOST_INFO LIMIT 1").fetchone()
            self.host = str(row[0])[:60] if row and row[0] else ""
        if self._has("META_DATA", "name", "value"):
            row = self._db.execute("SELECT value FROM META_DATA WHERE name = 'ENV_VARIABLES'").fetchone()
            with contextlib.suppress(ValueError):
                found = json.loads(row[0]) if row and isinstance(row[0], str) else {}
                self.variables = [(str(k)[:100], str(v)[:2000]) for k, v in found.items() if v not in ("", None)] if isinstance(found, dict) else []
        yield from ()

    def _fetched(self, table: str, columns: Sequence[str], query: str) -> Iterator[Rows]:
        cursor = self._db.execute(query)
        while rows := cursor.fetchmany(BATCH):
            yield Rows(table, tuple(columns), rows)

    def _kernels(self) -> Iterator[Rows]:
        if not (self._has("COMPUTE_TASK_INFO", "globaltaskid") and self._has("TASK", "globaltaskid", "startns", "endns")):
            return
        info = "COMPUTE_TASK_INFO"
        texts = [(self._text(self._column(info, own)), name) for own, name in _KERNEL_TEXTS]
        pmu, joined = self._pmu()
        columns = [
            "row_no", "start_ns", "dur_ns", "device", "stream_id", "task_id", "model_id", "block_num", "mix_block_num",
            *(name for _, name in texts), *pmu, "step", "wait_ns",
        ]  # fmt: skip
        query = (
            f"SELECT TASK.rowid, TASK.startNs, TASK.endNs - TASK.startNs, {self._column('TASK', 'deviceId')}, {self._column('TASK', 'streamId')}, "
            f"{self._column('TASK', 'taskId')}, {self._column('TASK', 'modelId')}, {self._column(info, 'blockNum', 'blockDim', 'block_dim')}, "
            f"{self._column(info, 'mixBlockNum', 'mixBlockDim', 'mix_block_dim')}, {', '.join(text for text, _ in texts)}"
            f"{''.join(f', pmu.{name}' for name in pmu)} FROM {info} JOIN TASK ON TASK.globalTaskId = {info}.globalTaskId {joined} "
            "ORDER BY TASK.startNs, TASK.rowid"
        )
        steps = self._windows()
        at = 0
        ends: dict[tuple[Any, Any], int] = {}
        for batch in self._fetched("kernels", columns, query):
            out = []
            for row in batch.rows:
                start, span, stream = row[1], row[2], (row[3], row[4])
                while at < len(steps) and start >= steps[at][2]:
                    at += 1
                step = str(steps[at][0]) if at < len(steps) and start >= steps[at][1] else None
                wait = max(0, start - ends[stream]) if stream in ends else 0
                ends[stream] = max(ends.get(stream, 0), start + span)
                out.append((*row, step, wait))
            batch.rows = out
            yield batch

    def _windows(self) -> list[tuple[int, int, int]]:
        if not self._has("STEP_TIME", "id", "startns", "endns"):
            return []
        rows = self._db.execute("SELECT id, startNs, endNs FROM STEP_TIME ORDER BY startNs LIMIT 100000").fetchall()
        return [(int(a), int(b), int(c)) for a, b, c in rows if b is not None and c is not None]

    def _pmu(self) -> tuple[list[str], str]:
        """Counters of the kernels, one row a kernel, and how to join them."""
        if not (self._has("TASK_PMU_INFO", "globaltaskid", "name", "value") and self._has("STRING_IDS", "id", "value")):
            return [], ""
        ids = {str(value): number for number, value in self._db.execute("SELECT id, value FROM STRING_IDS WHERE value LIKE '%\\_ratio' ESCAPE '\\'")}
        picked = {name: next((ids[own] for own in owns if own in ids), None) for name, owns in _PMU.items()}
        present = {name: number for name, number in picked.items() if isinstance(number, int)}
        if not present:
            return [], ""
        sums = ", ".join(f"max(CASE WHEN name = {number} THEN value END) AS {name}" for name, number in present.items())
        wanted = ", ".join(str(number) for number in present.values())
        table = f"(SELECT globalTaskId, {sums} FROM TASK_PMU_INFO WHERE name IN ({wanted}) GROUP BY globalTaskId)"
        return list(present), f"LEFT JOIN {table} AS pmu ON pmu.globalTaskId = COMPUTE_TASK_INFO.globalTaskId"

    def _communication(self) -> Iterator[Rows]:
        table = "COMMUNICATION_OP"
        if not self._has(table, "opname", "startns", "endns"):
            return
        steps = self._windows()
        name, group = self._text(self._column(table, "opName")), self._text(self._column(table, "groupName"))
        columns = ("row_no", "op", "grp", "start_ns", "elapse_ns", "kind", "step")
        query = f"SELECT {table}.rowid, {name}, {group}, startNs, endNs - startNs FROM {table} ORDER BY startNs"
        for batch in self._fetched("comms", columns, query):
            kinds = ["p2p" if re.search(r"send|receive", str(row[1]), re.IGNORECASE) else "collective" for row in batch.rows]
            batch.rows = [(*row, kind, _in(steps, row[3])) for row, kind in zip(batch.rows, kinds, strict=True)]
            yield batch

    def _api(self) -> Iterator[Rows]:
        if not self._has("CANN_API", "startns", "endns", "name"):
            return
        levels = "NULL"
        if self._has("ENUM_API_TYPE", "id", "name"):
            levels = "(SELECT name FROM ENUM_API_TYPE WHERE id = CANN_API.type)"
        query = (
            f"SELECT min(rowid), {levels}, {self._text('CANN_API.name')}, sum(endNs - startNs), count(*), avg(endNs - startNs), "
            "min(endNs - startNs), max(endNs - startNs) FROM CANN_API GROUP BY type, name"
        )
        columns = ("row_no", "level", "name", "total_ns", "count", "avg_ns", "min_ns", "max_ns")
        for batch in self._fetched("api", columns, query):
            batch.rows = [(*row[:5], round(row[5] or 0), *row[6:]) for row in batch.rows]
            yield batch

    def _memory(self) -> Iterator[Rows]:
        if self._has("MEMORY_RECORD", "component", "timestamp"):
            table = "MEMORY_RECORD"
            sizes = [f"{self._column(table, name)} / {MB}.0" for name in ("totalAllocated", "totalReserved", "totalActive")]
            query = (
                f"SELECT rowid, {self._column(table, 'deviceId')}, {self._text(self._column(table, 'component'))}, timestamp, {', '.join(sizes)} "
                f"FROM {table}"
            )
            yield from self._fetched("memory", ("row_no", "device", "component", "t_ns", "allocated_mb", "reserved_mb", "active_mb"), query)

    def _allocations(self) -> Iterator[Rows]:
        table = "OP_MEMORY"
        if not self._has(table, "name", "size"):
            return
        query = (
            f"SELECT rowid, {self._text(self._column(table, 'name'))}, size / {MB}.0, {self._column(table, 'allocationTime')}, "
            f"{self._column(table, 'releaseTime')}, {self._column(table, 'duration')} FROM {table}"
        )
        yield from self._fetched("allocations", ("row_no", "name", "size_mb", "alloc_ns", "release_ns", "dur_ns"), query)

    def _clocks(self) -> Iterator[Rows]:
        if self._has("AICORE_FREQ", "timestampns", "freq"):
            query = f"SELECT rowid, {self._column('AICORE_FREQ', 'deviceId')}, timestampNs, freq FROM AICORE_FREQ"
            yield from self._fetched("clocks", ("event_no", "device", "t_ns", "mhz"), query)

    def _trace(self) -> Iterator[Rows]:
        columns = ("event_no", "lane", "name", "category", "start_ns", "dur_ns", "size_bytes", "transport", "link", "src_rank", "dst_rank")
        if self._has("TASK", "startns", "endns", "tasktype"):
            kind = self._text("TASK.taskType")
            size, joined = "NULL", ""
            if self._has("MEMCPY_INFO", "globaltaskid", "size") and self._has("TASK", "globaltaskid"):
                size, joined = "max(MEMCPY_INFO.size)", "LEFT JOIN MEMCPY_INFO ON MEMCPY_INFO.globalTaskId = TASK.globalTaskId"
            query = (
                f"SELECT TASK.rowid, 'Ascend Hardware', {kind} AS kind, NULL, startNs, endNs - startNs, {size}, NULL, NULL, NULL, NULL "
                f"FROM TASK {joined} WHERE upper(kind) LIKE 'MEMCPY%' OR upper(kind) LIKE 'EVENT%WAIT%' GROUP BY TASK.rowid LIMIT 300000"
            )
            yield from self._fetched("trace", columns, query)
        if self._has("GC_RECORD", "startns", "endns"):
            query = "SELECT rowid, 'Python GC', 'GC', 'GC', startNs, endNs - startNs, NULL, NULL, NULL, NULL, NULL FROM GC_RECORD LIMIT 100000"
            yield from self._fetched("trace", columns, query)
        table = "COMMUNICATION_TASK_INFO"
        if self._has(table, "globaltaskid", "size") and self._has("TASK", "globaltaskid", "startns", "endns"):
            texts = [self._text(self._column(table, name)) for name in ("name", "transportType", "linkType")]
            for enum, at in (("ENUM_HCCL_TRANSPORT_TYPE", 1), ("ENUM_HCCL_LINK_TYPE", 2)):
                if self._has(enum, "id", "name"):
                    own = self._column(table, ("transportType", "linkType")[at - 1])
                    texts[at] = f"(SELECT name FROM {enum} WHERE id = {own})"
            query = (
                f"SELECT TASK.rowid, 'Communication', {texts[0]}, NULL, TASK.startNs, TASK.endNs - TASK.startNs, {table}.size, {texts[1]}, "
                f"{texts[2]}, {self._column(table, 'srcRank')}, {self._column(table, 'dstRank')} FROM {table} "
                f"JOIN TASK ON TASK.globalTaskId = {table}.globalTaskId WHERE {table}.size > 0 LIMIT 300000"
            )
            yield from self._fetched("trace", columns, query)

    # ------------------------------------------------------------ analysis.db

    def _steps(self) -> Iterator[Rows]:
        table = "StepTraceTime"
        if not self._has(table, "computing"):
            return
        names = {
            "computing_ns": ("computing",), "exposed_ns": ("communication_not_overlapped",), "overlapped_ns": ("overlapped",),
            "communication_ns": ("communication",), "free_ns": ("free",), "stage_ns": ("stage",), "bubble_ns": ("bubble",),
            "exposed_no_receive_ns": ("communication_not_overlapped_and_exclude_receive",), "preparing_ns": ("preparing",),
        }  # fmt: skip
        spans = [f"CAST(round({self._column(table, *own)} * 1000) AS INTEGER)" for own in names.values()]
        query = f"SELECT {self._column(table, 'step')}, {', '.join(spans)}, rowid, {self._column(table, 'deviceId')} FROM {table}"
        yield from self._fetched("steps", ("step", *names, "row_no", "device"), query)

    def _comm_times(self) -> Iterator[Rows]:
        table = "CommAnalyzerTime"
        if not self._has(table, "hcclopname"):
            return
        spans = [f"CAST(round({self._column(table, name)} * 1000000) AS INTEGER)" for name in (
            "elapse_time", "elapsed_time", "transit_time", "wait_time", "synchronization_time", "idle_time")]  # fmt: skip
        query = (
            f"SELECT rowid, {self._column(table, 'step')}, {self._column(table, 'type')}, {self._column(table, 'hccl_op_name')}, "
            f"{self._column(table, 'group_name')}, CAST({self._column(table, 'start_timestamp')} * 1000 AS INTEGER), "
            f"coalesce({spans[0]}, {spans[1]}), {', '.join(spans[2:])} FROM {table} "
            f"WHERE {self._column(table, 'hccl_op_name')} NOT LIKE 'Total Op Info%'"
        )
        yield from self._fetched(
            "comms", ("row_no", "step", "kind", "op", "grp", "start_ns", "elapse_ns", "transit_ns", "wait_ns", "sync_ns", "idle_ns"), query
        )

    def _comm_links(self) -> Iterator[Rows]:
        table = "CommAnalyzerBandwidth"
        if not self._has(table, "hcclopname", "transporttype"):
            return
        where = f"WHERE {self._column(table, 'hccl_op_name')} NOT LIKE 'Total Op Info%'"
        one = ", ".join(self._column(table, name) for name in ("step", "type", "hccl_op_name", "group_name", "transport_type"))
        size, span = self._column(table, "transit_size"), f"CAST(round({self._column(table, 'transit_time')} * 1000000) AS INTEGER)"
        rate, share = self._column(table, "bandwidth"), self._column(table, "large_packet_ratio")
        query = f"SELECT min(rowid), {one}, max({size}), max({span}), max({rate}), max({share}) FROM {table} {where} GROUP BY {one}"
        columns = ("row_no", "step", "kind", "op", "grp", "link", "size_mb", "transit_ns", "bandwidth_gbs", "large_ratio")
        yield from self._fetched("comm_links", columns, query)
        packet = f"{self._column(table, 'package_size')}, {self._column(table, 'count')}, {self._column(table, 'total_duration')} * 1000000"
        if "NULL" not in packet:
            query = f"SELECT rowid, {one}, {packet} FROM {table} {where} AND {self._column(table, 'count')} > 0"
            yield from self._fetched("comm_packets", ("row_no", "step", "kind", "op", "grp", "link", "packet_mb", "count", "total_ns"), query)

    def _comm_matrix(self) -> Iterator[Rows]:
        table = "CommAnalyzerMatrix"
        if not self._has(table, "srcrank", "dstrank"):
            return
        query = (
            f"SELECT rowid, {self._column(table, 'step')}, {self._column(table, 'type')}, {self._column(table, 'op_name', 'hccl_op_name')}, "
            f"{self._column(table, 'hccl_op_name')} || '@' || {self._column(table, 'group_name')}, "
            f"CAST({self._column(table, 'src_rank')} AS INTEGER), CAST({self._column(table, 'dst_rank')} AS INTEGER), "
            f"{self._column(table, 'transport_type')}, {self._column(table, 'transit_size')}, "
            f"CAST(round({self._column(table, 'transit_time')} * 1000000) AS INTEGER), {self._column(table, 'bandwidth')} FROM {table}"
        )
        columns = ("row_no", "step", "kind", "op", "grp", "src_rank", "dst_rank", "transport", "size_mb", "transit_ns", "bandwidth_gbs")
        yield from self._fetched("links", columns, query)


def _in(windows: Sequence[tuple[int, int, int]], moment: int) -> str | None:
    return next((str(step) for step, start, end in windows if start <= moment < end), None)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**31 else None


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
