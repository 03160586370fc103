"""The tables of a case: their columns, in one place, and how rows get into them. Part of the public interface (README).

Times are TIMESTAMP in UTC. An event's id is its member's number and the line it begins on, in one number, so that it does not depend
on how many processes wrote it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rules import case_tables

if TYPE_CHECKING:
    import duckdb

LINE_BITS = 40
"""event_id = file_id << LINE_BITS | line_no"""
CHUNK = 50_000
"""Rows that are put in at a time."""
MANY = 3000
"""Rows from which Arrow is worth its import."""
_LISTED = {"TIMESTAMP": "BIGINT"}

Columns = tuple[tuple[str, str], ...]

EVENTS: Columns = (
    ("file_id", "INTEGER"), ("line_no", "BIGINT"), ("n_lines", "INTEGER"), ("byte_offset", "BIGINT"), ("ts", "TIMESTAMP"), ("node", "VARCHAR"),
    ("device", "INTEGER"), ("rank", "INTEGER"), ("source", "VARCHAR"), ("severity", "VARCHAR"), ("module", "VARCHAR"), ("pid", "BIGINT"),
    ("tid", "BIGINT"), ("stream_id", "BIGINT"), ("task_id", "BIGINT"), ("function", "VARCHAR"), ("src_file", "VARCHAR"),
    ("src_line", "INTEGER"), ("code", "VARCHAR"), ("message", "VARCHAR"), ("process", "VARCHAR"),
)  # fmt: skip
"""As stored in the Parquet parts; the view `events` puts event_id before them."""

TABLES: dict[str, Columns] = {
    "bundle": (
        ("name", "VARCHAR"), ("sha256", "VARCHAR"), ("bytes", "BIGINT"), ("unpacked", "BIGINT"), ("files", "BIGINT"), ("lines", "BIGINT"),
        ("first", "TIMESTAMP"), ("last", "TIMESTAMP"), ("zone", "VARCHAR"), ("version", "VARCHAR"),
    ),
    "files": (
        ("file_id", "INTEGER"), ("path", "VARCHAR"), ("node", "VARCHAR"), ("device", "INTEGER"), ("kind", "VARCHAR"), ("parser", "VARCHAR"),
        ("bytes", "BIGINT"), ("lines", "BIGINT"), ("lines_parsed", "BIGINT"), ("encoding", "VARCHAR"), ("clock", "VARCHAR"),
        ("utc_offset", "INTEGER"), ("first", "TIMESTAMP"), ("last", "TIMESTAMP"), ("status", "VARCHAR"), ("note", "VARCHAR"),
    ),
    "metrics": (
        ("ts", "TIMESTAMP"), ("node", "VARCHAR"), ("device", "INTEGER"), ("name", "VARCHAR"), ("value", "DOUBLE"), ("unit", "VARCHAR"),
        ("label", "VARCHAR"), ("file_id", "INTEGER"), ("line_no", "BIGINT"),
    ),
    "facts": (
        ("node", "VARCHAR"), ("device", "INTEGER"), ("name", "VARCHAR"), ("value", "VARCHAR"), ("file_id", "INTEGER"), ("line_no", "BIGINT"),
    ),
    "signals": (
        ("rule", "VARCHAR"), ("pattern", "VARCHAR"), ("event_id", "BIGINT"), ("file_id", "INTEGER"), ("line_no", "BIGINT"),
        ("byte_offset", "BIGINT"), ("ts", "TIMESTAMP"), ("node", "VARCHAR"), ("device", "INTEGER"), ("rank", "INTEGER"), ("pid", "BIGINT"),
        ("source", "VARCHAR"), ("severity", "VARCHAR"), ("captures", "VARCHAR"), ("text", "VARCHAR"),
    ),
    "findings": (
        ("finding_id", "INTEGER"), ("rule", "VARCHAR"), ("root_cause", "VARCHAR"), ("layer", "VARCHAR"), ("severity", "VARCHAR"),
        ("role", "VARCHAR"), ("title", "VARCHAR"), ("title_zh", "VARCHAR"), ("node", "VARCHAR"), ("device", "INTEGER"), ("rank", "INTEGER"),
        ("pid", "BIGINT"), ("first", "TIMESTAMP"), ("last", "TIMESTAMP"), ("occurrences", "BIGINT"), ("captures", "VARCHAR"),
    ),
    "edges": (("cause", "INTEGER"), ("effect", "INTEGER"), ("reason", "VARCHAR")),
    "diagnoses": (
        ("rank", "INTEGER"), ("finding_id", "INTEGER"), ("rule", "VARCHAR"), ("root_cause", "VARCHAR"), ("confidence", "DOUBLE"),
        ("level", "VARCHAR"), ("title", "VARCHAR"), ("title_zh", "VARCHAR"), ("action", "VARCHAR"), ("why", "VARCHAR"), ("why_zh", "VARCHAR"),
        ("explained_events", "BIGINT"),
    ),
    "evidence": (
        ("diagnosis", "INTEGER"), ("role", "VARCHAR"), ("file_id", "INTEGER"), ("file", "VARCHAR"), ("line_no", "BIGINT"), ("ts", "TIMESTAMP"),
        ("pattern", "VARCHAR"), ("text", "VARCHAR"),
    ),
    "nodes": (
        ("name", "VARCHAR"), ("known_by", "VARCHAR"), ("logs", "BOOLEAN"), ("addresses", "VARCHAR"), ("places", "VARCHAR"), ("ranks", "VARCHAR"),
        ("first_error", "TIMESTAMP"), ("clock_ahead", "DOUBLE"), ("clock_within", "DOUBLE"), ("compared_by", "VARCHAR"),
        ("taken_off", "BOOLEAN"),
    ),
    "attempts": (
        ("number", "INTEGER"), ("ranks", "INTEGER"), ("logs_of", "INTEGER"), ("missing", "VARCHAR"), ("first", "TIMESTAMP"),
        ("began_node", "VARCHAR"), ("began_device", "INTEGER"), ("began_rank", "INTEGER"), ("began_pid", "BIGINT"), ("sure", "VARCHAR"),
        ("reasons", "VARCHAR"),
    ),
    "replays": (("diagnosis", "INTEGER"), ("kernel", "VARCHAR"), ("status", "VARCHAR"), ("detail", "VARCHAR")),
    "internals": (("name", "VARCHAR"), ("data", "BLOB")),
    **case_tables.TABLES,
}  # fmt: skip
"""`internals` holds what the program itself reads again (msgpack); not part of the interface."""


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """All tables, empty, and a view of no events."""
    for name, columns in TABLES.items():
        listed = ", ".join(f'"{column}" {kind}' for column, kind in columns)
        connection.execute(f"CREATE TABLE {name} ({listed})")
    for name, query in case_tables.VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
    view(connection, [])


def view(connection: duckdb.DuckDBPyConnection, parts: Sequence[str], temporary: bool = False) -> None:
    """Make `events` a view of these Parquet parts, named relative to the case folder; `temporary`: in this connection only."""
    if parts:
        names = ", ".join("'" + part.replace("'", "''") + "'" for part in parts)
        source = f"read_parquet([{names}])"
    else:
        source = "(SELECT " + ", ".join(f'CAST(NULL AS {kind}) AS "{column}"' for column, kind in EVENTS) + " WHERE false)"
    columns = ", ".join(f'"{column}"' for column, _ in EVENTS)
    connection.execute(
        f"CREATE OR REPLACE {'TEMP ' if temporary else ''}VIEW events AS "
        f"SELECT CAST(file_id AS BIGINT) << {LINE_BITS} | line_no AS event_id, {columns} FROM {source}"
    )


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Sequence[object]]) -> None:
    """Put all rows into a table, CHUNK at a time. Times are given in microseconds."""
    left = iter(rows)
    while chunk := list(itertools.islice(left, CHUNK)):
        columns = [list(column) for column in zip(*chunk, strict=True)]
        if len(chunk) < MANY:
            parts = [_value(f"unnest(${number}::{_LISTED.get(kind, kind)}[])", kind) for number, (_, kind) in enumerate(TABLES[table], 1)]
            connection.execute(f"INSERT INTO {table} SELECT {', '.join(parts)}", columns)
        else:
            _insert_arrow(connection, table, columns)


def keep(connection: duckdb.DuckDBPyConnection, name: str, data: bytes) -> None:
    """Put one row into `internals`."""
    connection.execute("INSERT INTO internals VALUES (?, ?)", [name, data])


def _insert_arrow(connection: duckdb.DuckDBPyConnection, table: str, columns: list[list[object]]) -> None:
    """The same by way of Arrow, which costs its import and then a tenth of the time."""
    import pyarrow as pa

    kinds = {
        "INTEGER": pa.int32(), "BIGINT": pa.int64(), "TIMESTAMP": pa.int64(), "VARCHAR": pa.string(), "DOUBLE": pa.float64(), "BLOB": pa.binary(),
        "BOOLEAN": pa.bool_(),
    }  # fmt: skip
    arrays = [pa.array(column, kinds[kind]) for column, (_, kind) in zip(columns, TABLES[table], strict=True)]
    parts = [_value(f'"{name}"', kind) for name, kind in TABLES[table]]
    connection.register("chunk", pa.Table.from_arrays(arrays, names=[name for name, _ in TABLES[table]]))
    connection.execute(f"INSERT INTO {table} SELECT {', '.join(parts)} FROM chunk")
    connection.unregister("chunk")


def _value(source: str, kind: str) -> str:
    return f"make_timestamp({source})" if kind == "TIMESTAMP" else source
