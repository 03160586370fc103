"""SQL in rules: queries over the tables that profiles fill, read only, with a limit on time and on rows.

A query names its evidence by what it selects. `file_id`, `row_no`, `line_no`, `rank`, `device` and `start_ns` (or `t_ns`) place a row; a column
of a case table, such as `dur_ns`, is shown under the header and in the unit of the file it was read from; anything else is a capture like those
of a pattern. `$name` stands for an option of the rule's pack.

>>> import duckdb
>>> base = duckdb.connect()
>>> _ = base.execute("CREATE TABLE kernels AS SELECT 3 AS file_id, 27 AS row_no, 28 AS line_no, 'Index' AS op_type, 2030000 AS dur_ns")
>>> tables = Tables(base, {3: "kernel_details.csv"}, {(3, "kernels", "dur_ns"): Header("Duration(us)", 1e3, 3)})
>>> [row] = tables.ask("SELECT file_id, row_no, line_no, op_type, dur_ns FROM kernels WHERE dur_ns > $least_us * 1000", {"least_us": 20.0}).rows
>>> row.text
'row 27: Duration(us) = 2030.000; op_type = Index'
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

import msgspec

ROWS = 200
"""Rows of one query that are looked at."""
SECONDS = 20.0
"""After so long a query is given up."""
CELL = 300
PLACES = frozenset({"file_id", "row_no", "line_no", "rank", "device", "node", "start_ns", "t_ns", "table_name", "place"})
"""Columns that say where a row comes from; not shown as evidence."""

_PARAMETER = re.compile(r"(?<![\w$'])\$([a-z][a-z0-9_]*)")
_TABLE = re.compile(r"\b(?:from|join)\s+([a-z_][a-z0-9_]*)", re.IGNORECASE)
_COMMENT = re.compile(r"--|/\*|;")
_START = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
_FORBIDDEN = re.compile(
    r"\b(?:attach|copy|create|insert|update|delete|drop|alter|install|load|pragma|set|call|export|import|checkpoint|read_\w+|\w+_scan|glob|getenv"
    r"|sniff_csv|query|query_table)\b\s*(?=\(|\s|$)",
    re.IGNORECASE,
)


class Header(msgspec.Struct, frozen=True):
    """How a file calls a column, and what its numbers were multiplied by."""

    text: str
    factor: float = 1.0
    digits: int | None = None


class Row(msgspec.Struct):
    """One row of an answer, as evidence."""

    file_id: int
    file: str
    line_no: int
    row_no: int | None
    text: str
    captures: dict[str, str]
    ts: int | None = None
    """Microseconds since 1970."""
    rank: int | None = None
    device: int | None = None
    node: str = ""


class Answer(msgspec.Struct):
    rows: list[Row]
    problem: str = ""
    """Why there is no answer; empty: there is."""


def parameters(query: str) -> set[str]:
    """Options that a query names."""
    return set(_PARAMETER.findall(query))


def problem(query: str) -> str:
    """What is wrong with the text of a query; empty: nothing that can be seen without tables."""
    if len(query) > 8000:
        return "the query is longer than 8000 characters"
    if not _START.match(query):
        return "a query is one SELECT (or WITH ... SELECT)"
    plain = re.sub(r"'(?:[^']|'')*'", "''", query)
    if _COMMENT.search(plain):
        return "a query holds no comments and no `;`"
    if (found := _FORBIDDEN.search(plain)) is not None:
        return f"`{found[0].strip()}` is not allowed in a query: it can only read the tables of the case"
    if not _TABLE.search(plain):
        return "the query reads no table of the case"
    return ""


class Tables:
    """The tables of a case, as rules may ask them. Every query is answered once."""

    def __init__(
        self, connection: Any, files: Mapping[int, str], headers: Mapping[tuple[int, str, str], Header], nodes: Mapping[int, str] | None = None
    ) -> None:
        """`connection`: of DuckDB; `files`: number -> path; `headers`: (file, table, column) -> how the file calls it; `nodes`: profile ->
        node."""
        self._connection, self._files, self._headers = connection, files, headers
        self._answers: dict[str, Answer] = {}
        self._locked = False

    def ask(self, query: str, options: Mapping[str, Any]) -> Answer:
        """The rows of a query."""
        names = parameters(query)
        missing = sorted(names - set(options))
        if missing:
            return Answer([], f"the pack has no option {missing[0]!r}")
        values = {name: options[name] for name in sorted(names)}
        key = f"{query}\0{values!r}"
        if key not in self._answers:
            self._answers[key] = self._asked(query, values)
        return self._answers[key]

    def _asked(self, query: str, values: Mapping[str, Any]) -> Answer:
        if wrong := problem(query):
            return Answer([], wrong)
        connection = self._connection
        if not self._locked:
            self._locked = True
            if connection.execute("SELECT current_setting('enable_external_access')").fetchone()[0]:
                connection.execute("SET enable_external_access = false")
        timer = threading.Timer(SECONDS, connection.interrupt)
        timer.start()
        try:
            cursor = connection.execute(f"SELECT * FROM ({query}) LIMIT {ROWS}", dict(values) or None)
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
                raise
            late = "interrupt" in type(error).__name__.lower()
            return Answer([], f"it took longer than {SECONDS:g} s" if late else str(error).strip().split("\n")[0][:300])
        finally:
            timer.cancel()
        return Answer([self._row(query, dict(zip(names, row, strict=True))) for row in rows])

    def _row(self, query: str, cells: dict[str, Any]) -> Row:
        file_id = _int(cells.get("file_id"))
        file_id = -1 if file_id is None else file_id
        moment = _int(cells.get("start_ns") if cells.get("start_ns") is not None else cells.get("t_ns"))
        told = str(cells["table_name"]) if cells.get("table_name") else ""
        sources = [told] if told else [name.lower() for name in _TABLE.findall(query)]
        numbers: list[str] = []
        rest: list[str] = []
        captured: dict[str, str] = {}
        for name, value in cells.items():
            if value is not None:
                captured[name] = (repr(value) if name == "value" and isinstance(value, float) else _plain(value))[:CELL]
            if name in PLACES or value is None:
                continue
            header = next((h for table in sources if (h := self._headers.get((file_id, _BASE.get(table, table), name))) is not None), None)
            if header is not None and isinstance(value, (int, float)):
                captured[name] = _shown(value, header)
                numbers.append(f"{header.text} = {captured[name]}")
            else:
                rest.append(f"{header.text if header is not None else name} = {captured[name]}")
        row_no = _int(cells.get("row_no"))
        where = [] if row_no is None else [f"row {row_no}"]
        if cells.get("place"):
            where = [str(cells["place"])[:CELL]]
        text = "; ".join([*numbers, *rest])
        line = _int(cells.get("line_no"))
        return Row(
            file_id, self._files.get(file_id, ""), line if line is not None and line > 0 else 1, row_no, f"{where[0]}: {text}" if where else text,
            captured, None if moment is None else moment // 1000, _int(cells.get("rank")), _int(cells.get("device")), str(cells.get("node") or ""),
        )  # fmt: skip


_SECTION = re.compile(r"(?P<table>[a-z_0-9]+): *(?P<columns>[a-z_0-9]+(?: *, *[a-z_0-9]+)*) *\Z")
_TIMES = re.compile(r"(\d{1,4}) x (.*)\Z")


def example(text: str) -> Tables | None:
    """Tables as an example of a rule writes them: `table: column, column`, then one line a row, up to an empty line; `30 x ` before a row
    repeats it. Columns that are not named are null, but for those that place a row. None where the text holds no table.

    >>> tables = example("steps: rank, step, computing_ns\\n0, 13, 100\\n1, 13, 200")
    >>> len(tables.ask("SELECT * FROM steps JOIN profiles USING (profile_id)", {}).rows)
    2
    """
    import duckdb

    from rules.case_tables import EXTRA, TABLES, VIEWS

    known = TABLES | EXTRA
    found: dict[str, list[dict[str, str]]] = {}
    table = ""
    columns: list[str] = []
    for line in text.split("\n"):
        if (section := _SECTION.match(line.strip())) is not None and section["table"] in known:
            table, columns = section["table"], [name.strip() for name in section["columns"].split(",")]
            found.setdefault(table, [])
        elif not line.strip():
            table = ""
        elif table:
            times = _TIMES.match(line.strip())
            cells = [cell.strip() for cell in (times[2] if times else line).split(",")]
            found[table] += [dict(zip(columns, cells, strict=False))] * (int(times[1]) if times else 1)
    if not found:
        return None
    ranks = sorted({row.get("rank", "0") for name, rows in found.items() if name not in EXTRA for row in rows})
    found.setdefault("profiles", [{"profile_id": rank, "rank": rank, "peers": "all", "path": "capture"} for rank in ranks or ["0"]])
    base = duckdb.connect(config={"threads": 1})
    for name, kinds in known.items():
        listed = ", ".join(f"{column} {kind}" for column, kind in kinds)
        base.execute(f"CREATE TABLE {name} ({listed})")
    for name, query in VIEWS.items():
        base.execute(f"CREATE VIEW {name} AS {query}")
    for name, rows in found.items():
        types = dict(known[name])
        for number, row in enumerate(rows, 1):
            place = {"file_id": "0", "row_no": str(number), "line_no": str(number + 1), "profile_id": row.get("rank", "0"), "rank": "0"}
            given = {column: value for column, value in (place | row).items() if column in types and value != ""}
            base.execute(f"INSERT INTO {name} ({', '.join(given)}) VALUES ({', '.join('?' * len(given))})", list(given.values()))
    return Tables(base, {number: f"example-{number}" for number in range(100)}, {})


_BASE = {"compute": "kernels"}
"""Views and the tables whose columns they show."""


def _shown(value: float, header: Header) -> str:
    """A number in the unit and with the decimals of the file."""
    number = value / header.factor if header.factor != 1.0 else value
    if header.digits is not None:
        return f"{number:.{header.digits}f}"
    return repr(round(number, 9) if header.factor != 1.0 else number)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e15 else repr(value)
    return str(value)


def _int(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
