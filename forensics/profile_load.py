"""Rows of profiler files into the tables of a case: numbers cast, units turned into nanoseconds and MB, every row with its place."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forensics import tables
from forensics.errors import CaseError
from forensics.feed import File
from parsers.profile_columns import Column
from parsers.profile_csv import Table
from parsers.profile_json import Operation
from parsers.profile_lanes import TRACE_COLUMNS, Lanes
from parsers.profile_trace import Reader
from rules.case_tables import TABLES

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from parsers.profile_db import Database

MEMORY = "384MB"
"""What the database may keep in memory while a profile is read."""
ROWS = 120_000
"""Rows put in at a time, about a row group."""
SOME = 20_000
_FROM_TIME = {
    "mac_ratio": ("mac_ns", "aic_ns"), "aic_mte2_ratio": ("aic_mte2_ns", "aic_ns"), "vec_ratio": ("vec_ns", "aiv_ns"),
    "aiv_mte2_ratio": ("aiv_mte2_ns", "aiv_ns"),
}  # fmt: skip
"""Ratios that a file without them lets work out: time of the pipe through time of the core."""

JSON_HEADERS: dict[str, dict[str, tuple[str, float]]] = {
    "comms": {
        "start_ns": ("Start Timestamp(us)", 1e3), "elapse_ns": ("Elapse Time(ms)", 1e6), "transit_ns": ("Transit Time(ms)", 1e6),
        "wait_ns": ("Wait Time(ms)", 1e6), "sync_ns": ("Synchronization Time(ms)", 1e6), "idle_ns": ("Idle Time(ms)", 1e6),
        "wait_ratio": ("Wait Time Ratio", 1.0), "sync_ratio": ("Synchronization Time Ratio", 1.0),
    },
    "comm_links": {
        "size_mb": ("Transit Size(MB)", 1.0), "transit_ns": ("Transit Time(ms)", 1e6), "bandwidth_gbs": ("Bandwidth(GB/s)", 1.0),
        "large_ratio": ("Large Packet Ratio", 1.0),
    },
    "comm_packets": {"packet_mb": ("Size Distribution", 1.0), "count": ("Size Distribution count", 1.0)},
    "links": {"size_mb": ("Transit Size(MB)", 1.0), "transit_ns": ("Transit Time(ms)", 1e6), "bandwidth_gbs": ("Bandwidth(GB/s)", 1.0)},
    "trace": {"dur_ns": ("dur", 1e3), "start_ns": ("ts", 1e3), "size_bytes": ("args size(Byte)", 1.0), "name": ("name", 1.0)},
    "clocks": {"mhz": ("args MHz", 1.0), "t_ns": ("ts", 1e3)},
    "api": {"total_ns": ("sum of dur", 1e3), "max_ns": ("dur", 1e3), "count": ("number of events", 1.0)},
}  # fmt: skip
"""How the JSON files call what the tables hold."""


class Loader:
    """Writes into one database in the scratch folder, made when the first row comes.

    The rank of a row is that of its profile, which is only known at the end: until then the number of the profile stands for it, which is most
    often the same (profile_settle sets the others right)."""

    def __init__(self, scratch: Callable[[], Path]) -> None:
        self.scratch = scratch
        self._connection: duckdb.DuckDBPyConnection | None = None
        self.path: Path | None = None
        self._waiting: dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]] = {}

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            import duckdb

            self.path = self.scratch() / "profiles.duckdb"
            self.path.unlink(missing_ok=True)
            self._connection = duckdb.connect(str(self.path), config={"threads": 1, "memory_limit": MEMORY, "preserve_insertion_order": True})
            self._connection.execute(f"SET temp_directory = '{str(self.scratch()).replace(chr(39), chr(39) * 2)}'")
            tables.create(self._connection)
            self._connection.execute("BEGIN")  # one transaction: full row groups go straight into the file instead of through the log
        return self._connection

    def report(self, error: Exception) -> None:
        """Raise CaseError, one sentence, where an error says that the database could not be written."""
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        if not full and type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            return
        folder = str(self.path.parent) if self.path is not None else "the case folder"
        told = str(error).strip().split("\n")[0][:200]
        raise CaseError(
            f"the tables of the profiles cannot be written to {folder!a} ({told}): free some space or give another folder with -o"
        ) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # ------------------------------------------------------------ what describes the files

    def file(self, file: File, profile: int, layout: str, rows: int, bad: int, state: str) -> None:
        columns = ("file_id", "profile_id", "path", "layout", "rows", "bad_rows", "state")
        self._later("profile_files", columns, [(file.file_id, profile, file.path, layout, rows, bad, state)])

    def note(self, file_id: int, profile: int, kind: str, english: str, chinese: str) -> None:
        self._later("profile_notes", ("file_id", "profile_id", "kind", "note", "note_zh"), [(file_id, profile, kind, english, chinese)])

    def headers(self, file_id: int, table: str, headers: Iterable[tuple[str, str, float, int | None]]) -> None:
        rows = [(file_id, table, *one) for one in headers]
        self._later("profile_headers", ("file_id", "table_name", "column_name", "header", "factor", "digits"), rows)

    def _later(self, table: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
        """Rows of small tables wait for `flush`: a bundle may have a hundred thousand files."""
        self._waiting.setdefault(table, (columns, []))[1].extend(rows)

    def flush(self) -> None:
        """Put in what waits."""
        for table, (columns, rows) in self._waiting.items():
            self._put(table, columns, rows)
        self._waiting = {}

    def _json_headers(self, file_id: int, table: str) -> None:
        self.headers(file_id, table, [(name, header, factor, None) for name, (header, factor) in JSON_HEADERS[table].items()])

    # ------------------------------------------------------------ files

    def table(self, file: File, profile: int, table: Table, core: str = "") -> None:
        """A CSV file. `core`: of all rows of a table that has no such column."""
        name = table.layout.name
        table.columns = _needed(table.columns, name)
        self.headers(file.file_id, name, [(c.name, c.header, c.factor, c.digits) for c in table.columns])
        known = {column.name: column for column in table.columns}
        columns = ["file_id", "profile_id", "row_no", "line_no"]
        values = [str(file.file_id), str(profile), "row_no", "line_no"]
        ranked = name == "steps" and "kind" in known and "index" in known
        if not ranked:
            columns.append("rank")
            values.append(str(profile))
        for column, kind in TABLES[name]:
            if column in known:
                columns.append(column)
                values.append(_value(known[column], kind, known))
            elif column in _FROM_TIME and all(part in known for part in _FROM_TIME[column]):
                columns.append(column)
                values.append(_quotient(known, column))
            elif column == "core" and core:
                columns.append(column)
                values.append(f"'{core}'")
            elif column == "source":
                columns.append(column)
                values.append("'file'")
        where = ""
        if ranked:  # of all ranks of a cluster, and of its stages
            where = "WHERE lower(kind) = 'rank'"
            columns.append("rank")
            values.append('TRY_CAST("index" AS INTEGER)')
        query = f"INSERT INTO {name} ({', '.join(columns)}) SELECT {', '.join(values)} FROM chunk {where}"
        for chunk in _gathered(table.batches()):
            self.connection.register("chunk", chunk)
            self.connection.execute(query)
            self.connection.unregister("chunk")

    def trace(self, file: File, profile: int, read: Callable[[int], bytes]) -> tuple[str, int, int]:
        """Events of a trace: how it ended, places that could not be read, events that were only counted."""
        reader, lanes = Reader(read), Lanes()
        for first, events in reader.pieces():
            lanes.take(first, events)
            if len(lanes.trace) >= SOME:
                self._trace_rows(file, profile, lanes)
        self._trace_rows(file, profile, lanes)
        at = (file.file_id, profile)
        self._put("clocks", ("file_id", "profile_id", "row_no", "line_no", "t_ns", "mhz"), [(*at, n, 1, t, mhz) for n, t, mhz in lanes.clocks])
        calls = lanes.api()
        self._put(
            "api",
            ("file_id", "profile_id", "row_no", "line_no", "level", "name", "total_ns", "count", "avg_ns", "min_ns", "max_ns"),
            [(*at, row[0], 1, *row[1:]) for row in calls],
        )
        sums = lanes.overlap
        if "Computing" in sums:
            exposed, whole = sums.get("Communication(Not Overlapped)", 0), sums.get("Communication", 0)
            self._put(
                "steps",
                ("file_id", "profile_id", "row_no", "line_no", "computing_ns", "exposed_ns", "communication_ns", "overlapped_ns", "free_ns",
                 "source"),
                [(*at, lanes.first_overlap, 1, sums["Computing"], exposed, whole, max(0, whole - exposed), sums.get("Free", 0), "trace")],
            )  # fmt: skip
            names = (("computing_ns", "Computing"), ("exposed_ns", "Communication(Not Overlapped)"), ("free_ns", "Free"))
            self.headers(file.file_id, "steps", [(name, f"sum of dur of {event}", 1e3, None) for name, event in names])
        for name in ("trace", "clocks", "api"):
            self._json_headers(file.file_id, name)
        self.file(file, profile, "trace", reader.events, reader.lost, "read" if reader.end == "whole" else reader.end)
        return reader.end, reader.lost, lanes.left_out

    def _trace_rows(self, file: File, profile: int, lanes: Lanes) -> None:
        rows = [(file.file_id, profile, 1, *row) for row in lanes.trace]
        self._put("trace", ("file_id", "profile_id", "line_no", *TRACE_COLUMNS), rows)
        lanes.trace = []

    def communication(self, file: File, profile: int, operations: Iterable[Operation]) -> int:
        """Operations of communication.json."""
        comms: list[tuple[Any, ...]] = []
        links: list[tuple[Any, ...]] = []
        packets: list[tuple[Any, ...]] = []
        count = 0

        def flush() -> None:
            self._put(
                "comms",
                ("file_id", "profile_id", "row_no", "line_no", "step", "kind", "op", "grp", "start_ns", "elapse_ns", "transit_ns", "wait_ns",
                 "sync_ns", "idle_ns", "wait_ratio", "sync_ratio"), comms,
            )  # fmt: skip
            one = ("file_id", "profile_id", "row_no", "line_no", "step", "kind", "op", "grp", "link")
            self._put("comm_links", (*one, "size_mb", "transit_ns", "bandwidth_gbs", "large_ratio"), links)
            self._put("comm_packets", (*one, "packet_mb", "count", "total_ns"), packets)
            for rows in (comms, links, packets):
                rows.clear()

        try:
            for o in operations:
                if o.total:
                    continue
                count += 1
                at = (file.file_id, profile, count, o.line, int(o.step[:18]) if o.step else None, o.kind, o.op, o.group)
                comms.append((*at, o.start_ns, o.elapse_ns, o.transit_ns, o.wait_ns, o.sync_ns, o.idle_ns, o.wait_ratio, o.sync_ratio))
                links += [(*at, *link) for link in o.links]
                packets += [(*at, *packet) for packet in o.packets]
                if len(comms) >= SOME:
                    flush()
        finally:
            flush()
        for name in ("comms", "comm_links", "comm_packets"):
            self._json_headers(file.file_id, name)
        return count

    def matrix(self, file: File, profile: int, rows: Iterable[Sequence[Any]]) -> int:
        """Links of communication_matrix.json."""
        out = []
        for count, row in enumerate(rows, 1):
            step, kind, op, group, line, *rest = row
            out.append((file.file_id, profile, count, line, int(step[:18]) if step else None, kind, op, group, *rest))
        self._put(
            "links",
            ("file_id", "profile_id", "row_no", "line_no", "step", "kind", "op", "grp", "src_rank", "dst_rank", "transport", "size_mb", "transit_ns",
             "bandwidth_gbs"), out,
        )  # fmt: skip
        self._json_headers(file.file_id, "links")
        return len(out)

    def database(self, file: File, profile: int, base: Database) -> int:
        """All tables of a SQLite profile."""
        total, named = 0, set()
        for rows in base.rows():
            columns = ["row_no" if name == "event_no" else name for name in rows.columns]
            known = {name for name, _ in TABLES[rows.table]}
            extra = {"source": "database"} if "source" in known else {}
            values = [(file.file_id, profile, *extra.values(), *row) for row in rows.rows]
            self._put(rows.table, ("file_id", "profile_id", *extra, *columns), values)
            total += len(values)
            if rows.table not in named:
                named.add(rows.table)
                plain = [(name, name.removesuffix("_ns"), 1.0, None) for name, _ in TABLES[rows.table][6:]]
                self.headers(file.file_id, rows.table, [(n, f"{h} (ns)" if n.endswith("_ns") else h, f, d) for n, h, f, d in plain])
        return total

    # ------------------------------------------------------------ parts

    def _put(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Put rows into a table; what does not fit a column's type becomes null."""
        if not rows:
            return
        import pyarrow as pa

        kinds = dict(TABLES[table])
        if "profile_id" in columns and "rank" in kinds and "rank" not in columns:
            at = list(columns).index("profile_id")
            columns, rows = [*columns, "rank"], [(*row, row[at]) for row in rows]
        types = {"INTEGER": pa.int32(), "BIGINT": pa.int64(), "VARCHAR": pa.string(), "DOUBLE": pa.float64()}
        arrays = []
        for name, values in zip(columns, zip(*rows, strict=True), strict=True):
            try:
                arrays.append(pa.array(values, types[kinds[name]]))
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                arrays.append(pa.array([_shown(value) for value in values], pa.string()))
        self.connection.register("chunk", pa.Table.from_arrays(arrays, names=list(columns)))
        listed = ", ".join(f'TRY_CAST("{name}" AS {kinds[name]})' for name in columns)
        names = ", ".join(f'"{name}"' for name in columns)
        self.connection.execute(f"INSERT INTO {table} ({names}) SELECT {listed} FROM chunk")
        self.connection.unregister("chunk")


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.encode("utf-8", "replace").decode()


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together to ROWS rows or more."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, count = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _needed(columns: tuple[Column, ...], table: str) -> tuple[Column, ...]:
    """Those that go into the table, or that a ratio which the file lacks is worked out from."""
    have = {column.name for column in columns}
    wanted = {name for name, _ in TABLES[table]} | ({"kind", "index"} if table == "steps" else set())
    for ratio, parts in _FROM_TIME.items():
        if ratio not in have:
            wanted.update(parts)
    return tuple(column for column in columns if column.name in wanted)


def _number(column: Column) -> str:
    """A cell as a number in the unit of the table."""
    value = f'TRY_CAST("{column.name}" AS DOUBLE)'
    return value if column.factor == 1.0 else f"{value} * {column.factor!r}"


def _value(column: Column, kind: str, known: dict[str, Column]) -> str:
    """SQL that turns the text of a cell into the column's value."""
    name = f'"{column.name}"'
    if column.kind == "moment":
        digits = {1.0: 0, 1e3: 3, 1e6: 6, 1e9: 9}.get(column.factor, 3)
        exact = f"TRY(CAST(TRY_CAST({name} AS DECIMAL(28,{digits})) * {round(column.factor)} AS BIGINT))"
        if column.factor != 1e3:
            return exact
        # microseconds since 1970 have 16 digits: in two halves, which is four times as fast as a decimal of 28
        part = f"TRY_CAST(round(TRY_CAST('0' || substr({name}, 17, 4) AS DOUBLE) * 1000) AS BIGINT)"
        return f"CASE WHEN strpos({name}, '.') = 17 THEN TRY_CAST(substr({name}, 1, 16) AS BIGINT) * 1000 + {part} ELSE {exact} END"
    if column.kind == "span":
        return f"TRY_CAST(round({_number(column)}) AS BIGINT)"
    if column.kind == "ratio":
        ratio = _number(column)
        if column.factor == 1.0:
            ratio = f"(CASE WHEN {ratio} > 1.5 THEN {ratio} / 100 ELSE {ratio} END)"
        return ratio
    if column.kind in ("mb", "float"):
        return _number(column)
    if column.name == "step":
        return f"coalesce(TRY_CAST({name} AS BIGINT), TRY_CAST(regexp_extract({name}, '\\d+$') AS BIGINT))"
    if column.kind == "int":
        return f"TRY_CAST({name} AS {kind})"
    text = f"replace({name}, '\"', '')" if column.kind == "shape" else name
    return f"nullif(nullif({text}, 'N/A'), '')"


def _quotient(known: dict[str, Column], column: str) -> str:
    """SQL for a ratio from two times; empty where the file lacks them."""
    parts = _FROM_TIME.get(column)
    if parts is None or not all(part in known for part in parts):
        return ""
    pipe, core = (_number(known[part]) for part in parts)
    return f"({pipe}) / nullif({core}, 0)"
