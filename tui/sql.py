"""Queries of the reader's own: what can be completed, rows as they come, and files of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from forensics.case import check_query
from forensics.errors import CaseError, UsageError

if TYPE_CHECKING:
    import duckdb

PAGE = 200
"""Rows that are fetched at a time."""
EXPORTED = 2_000_000
"""Rows that a file takes at most."""
SHOWN = 500
"""Characters of a value that a table shows."""
KEYWORDS = (
    "select", "from", "where", "group by", "order by", "limit", "having", "join", "left join", "on", "using", "as", "and", "or", "not", "in",
    "between", "like", "ilike", "is null", "is not null", "distinct", "union all", "with", "case when", "then", "else", "end", "desc", "asc",
    "filter (where", "over (", "partition by", "qualify", "describe", "summarize", "exists",
)  # fmt: skip
FUNCTIONS = (
    "count(*)", "count(distinct ", "sum(", "avg(", "min(", "max(", "median(", "quantile_cont(", "any_value(", "arg_min(", "arg_max(", "list(",
    "string_agg(", "regexp_matches(message, '", "regexp_extract(message, '", "contains(message, '", "starts_with(", "date_trunc('minute', ts)",
    "time_bucket(interval '10 seconds', ts)", "epoch_us(ts)", "coalesce(", "lag(", "lead(", "row_number() over (", "length(", "lower(",
)  # fmt: skip
EXAMPLES = (
    "select severity, count(*) n from events group by all order by n desc",
    "select time_bucket(interval '1 minute', ts) at, count(*) n, count(*) filter (severity = 'ERROR') errors from events group by all order by at",
    "select source, module, count(*) n from events where severity in ('ERROR', 'FATAL') group by all order by n desc limit 20",
    "select pid, node, device, min(ts) first, count(*) n from events where severity = 'ERROR' group by all order by first",
    "select regexp_replace(message, '[0-9]+', '<n>', 'g') shape, count(*) n, min(ts) first from events where severity = 'ERROR' "
    "group by all order by n limit 50",
    "select name, node, device, min(value), max(value), unit from metrics group by all order by 1, 2, 3",
    "select rule, count(*) n, min(ts) first from signals group by all order by n desc",
    "select path, kind, lines, status, note from files order by lines desc",
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Schema(msgspec.Struct, frozen=True):
    """What there is to be asked."""

    tables: dict[str, list[str]]

    def words(self) -> list[tuple[str, str]]:
        """(text, what it is) of everything that can be completed: tables first, then columns, keywords, functions."""
        out = [(name, "table") for name in self.tables]
        columns: dict[str, list[str]] = {}
        for table, names in self.tables.items():
            for name in names:
                columns.setdefault(name, []).append(table)
        out += [(name, ", ".join(tables[:3])) for name, tables in columns.items()]
        return out + [(word, "") for word in KEYWORDS] + [(word, "()") for word in FUNCTIONS]


def schema(connection: duckdb.DuckDBPyConnection) -> Schema:
    """Tables and views of the case with their columns, `internals` left out."""
    rows = connection.execute(
        "SELECT DISTINCT table_name, column_name, column_index FROM duckdb_columns() WHERE NOT internal AND table_name <> 'internals' ORDER BY 1, 3"
    ).fetchall()
    tables: dict[str, list[str]] = {}
    for table, column, _ in rows:
        if column not in tables.setdefault(table, []):
            tables[table].append(column)
    order = {"events": 0, "files": 1, "signals": 2, "findings": 3, "diagnoses": 4}
    return Schema(dict(sorted(tables.items(), key=lambda pair: (order.get(pair[0], 9), pair[0]))))


def prefix(text: str) -> str:
    """The word that is being typed, at the end of `text`."""
    found = _WORD.search(text)
    return found.group() if found else ""


def completions(words: Sequence[tuple[str, str]], text: str, most: int = 8) -> list[tuple[str, str]]:
    """What the word at the end of `text` may become. Behind `table.` only columns of that table come."""
    typed = prefix(text).lower()
    dotted = re.search(r"([A-Za-z_][A-Za-z0-9_]*)\.[A-Za-z0-9_]*\Z", text)
    if dotted:
        words = [(word, kind) for word, kind in words if dotted[1].lower() in kind.split(", ")]
    elif not typed:
        return []
    found = [(word, kind) for word, kind in words if word.lower().startswith(typed) and word.lower() != typed]
    found += [(word, kind) for word, kind in words if typed and typed in word.lower() and not word.lower().startswith(typed)]
    return found[:most]


class Rows:
    """The answer to one query, fetched as far as it was looked at."""

    def __init__(self, columns: list[str], rows: list[tuple[object, ...]], done: bool):
        self.columns, self.rows, self.done = columns, rows, done


def begin(connection: duckdb.DuckDBPyConnection, query: str) -> Rows:
    """Run a query, and fetch its first rows. Raises UsageError, duckdb.Error."""
    check_query(connection, query)
    answer = connection.execute(query)
    columns = [name for name, *_ in answer.description or []]
    rows = answer.fetchmany(PAGE)
    return Rows(columns, rows, len(rows) < PAGE)


def more(connection: duckdb.DuckDBPyConnection) -> tuple[list[tuple[object, ...]], bool]:
    """The next rows of the query that was run last on this connection, and whether they are the last."""
    rows = connection.fetchmany(PAGE)
    return rows, len(rows) < PAGE


def export(connection: duckdb.DuckDBPyConnection, query: str, target: str) -> int:
    """Write the answer of a query to a file whose ending says its form: csv, json, parquet. How many rows it has.

    Raises UsageError for another ending, for a file that is there already, and for more than EXPORTED rows; CaseError where it cannot be written."""
    path = Path(target).expanduser()
    form = path.suffix.lower()
    if form not in (".csv", ".json", ".parquet"):
        raise UsageError(f"the name of the file says its form: .csv, .json or .parquet; found {target!r}")
    if path.exists():
        raise UsageError(f"{str(path)!a} is there already: give another name")
    check_query(connection, query)
    bare = query.strip().rstrip(";")
    frame = connection.sql(bare).limit(EXPORTED + 1).pl() if bare.lower().startswith(("select", "with", "from")) else connection.sql(bare).pl()
    if len(frame) > EXPORTED:
        raise UsageError(f"the answer has more than {EXPORTED:,} rows: narrow it down, or read the parts of the case with another program")
    from forensics.report import table

    data = {".csv": table.csv, ".json": table.as_json, ".parquet": table.parquet}[form](frame)
    try:
        with path.open("xb") as file:
            file.write(data)
    except OSError as error:
        raise CaseError(f"{str(path)!a} cannot be written ({error.strerror or error}): give another name") from error
    return len(frame)
