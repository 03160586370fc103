"""What the screens ask of a case, as SQL: pages of lines by key, never by number, so that they cost the same wherever they lie.

Lines are shown in one order: first those without a time, by file and line, then all others by time. A key is the place of a line in
that order; a page is the lines before or behind a key. Only the columns of the order are read to find a page, and then all others of its
few lines. Each function takes a connection and runs in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forensics.result import Member
from forensics.tables import LINE_BITS
from tui.filters import BAD, Filter

if TYPE_CHECKING:
    import duckdb

MESSAGE = 4000
"""Characters of a message that a list of lines holds; the record itself has all of it."""
_LINE = (1 << LINE_BITS) - 1


class Key(NamedTuple):
    """The place of a line."""

    ts: int | None
    """UTC microseconds; None: a line without a time."""
    event_id: int

    @property
    def order(self) -> tuple[bool, int, int]:
        """To compare keys with."""
        return (self.ts is not None, self.ts or 0, self.event_id)


FIRST = Key(None, -1)
"""Before all lines."""
LAST = Key(1 << 62, 1 << 62)
"""Behind all lines."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One log record, as a list shows it."""

    event_id: int
    ts: int | None
    node: str
    device: int | None
    rank: int | None
    source: str
    severity: str
    module: str
    pid: int | None
    n_lines: int
    length: int
    """Characters of the whole message."""
    message: str

    @property
    def key(self) -> Key:
        return Key(self.ts, self.event_id)

    @property
    def file_id(self) -> int:
        return self.event_id >> LINE_BITS

    @property
    def line_no(self) -> int:
        return self.event_id & _LINE


class View(msgspec.Struct, frozen=True):
    """Which lines, and in which order."""

    where: str = "true"
    values: tuple[object, ...] = ()
    by_file: bool = False
    """In the order of the one file they lie in."""

    @classmethod
    def of(cls, chosen: Filter, files: Sequence[Member]) -> View:
        where, values = chosen.where(files)
        return cls(where, tuple(values), chosen.one_file(files) is not None)

    def also(self, where: str, *values: object) -> View:
        return View(f"{self.where} AND ({where})", (*self.values, *values), self.by_file)


def moment(us: int) -> str:
    """A time as SQL."""
    return f"make_timestamp({max(-(1 << 55), min(us, 1 << 57))})"


def page(connection: duckdb.DuckDBPyConnection, view: View, key: Key, count: int, back: bool = False, inclusive: bool = False) -> list[Line]:
    """Up to `count` lines behind (`back`: before) a key, in the order of the view. `inclusive`: with the line of the key itself."""
    lines: list[Line] = []
    for span in _spans(view, key, back, inclusive):
        lines += _some(connection, view, span, count - len(lines), back)
        if len(lines) >= count:
            break
    return lines[::-1] if back else lines


def around(connection: duckdb.DuckDBPyConnection, view: View, key: Key, count: int) -> tuple[list[Line], list[Line]]:
    """(lines before a key, the key's line and those behind it), up to `count` of each."""
    if view.by_file or key.ts is None or key in (FIRST, LAST):
        before = page(connection, view, key, count, back=True) if key != FIRST else []
        return before, page(connection, view, key, count, inclusive=True) if key != LAST else []
    (behind,) = _spans(view, key, False, True)
    ahead, untimed = _spans(view, key, True, False)
    above, below = _keys(connection, view, ahead, count, True), _keys(connection, view, behind, count, False)
    times = [ts for _, ts in (*above, *below) if ts is not None]
    if not times:
        return page(connection, view, key, count, back=True), []
    where = f"{view.where} AND ts >= {moment(min(times))} AND ts <= {moment(max(times))}"
    wanted = {row[0] for row in (*above, *below)}
    ends = sorted(wanted)
    if len(set(times)) * 4 < len(times):  # many lines in one instant, perhaps far more than are wanted
        where += f" AND event_id IN ({', '.join(map(str, ends))})"
    rows = connection.execute(f"SELECT {_COLUMNS} FROM (SELECT {_RAW} FROM events WHERE {where})", list(view.values)).fetchall()
    lines = sorted((Line(*row) for row in rows if row[0] in wanted), key=lambda line: line.key.order)
    before = [line for line in lines if line.key.order < key.order]
    if len(above) < count:
        before = _some(connection, view, untimed, count - len(above), True)[::-1] + before
    return before, [line for line in lines if line.key.order >= key.order]


class _Span(NamedTuple):
    """A part of the order with one sort key."""

    where: str
    timed: bool


def _spans(view: View, key: Key, back: bool, inclusive: bool) -> list[_Span]:
    sign = ("<" if back else ">") + ("=" if inclusive else "")
    ident = min(key.event_id, (1 << 63) - 1)
    if view.by_file:
        return [_Span(f"event_id {sign} {ident} AND {_file_side(ident, back)}", False)]
    untimed = _Span("ts IS NULL", False)
    timed = _Span("ts IS NOT NULL", True)
    if key.ts is None:
        here = _Span(f"ts IS NULL AND event_id {sign} {ident} AND {_file_side(ident, back)}", False)
        return [here] if back else [here, timed]
    edge = moment(key.ts)
    wide, strict = ("<=", "<") if back else (">=", ">")
    here = _Span(f"ts {wide} {edge} AND (ts {strict} {edge} OR event_id {sign} {ident})", True)
    return [here, untimed] if back else [here]


def _file_side(ident: int, back: bool) -> str:
    """The same bound on file_id, by which row groups are passed over."""
    return f"file_id <= {max(0, ident) >> LINE_BITS}" if back else f"file_id >= {max(0, ident) >> LINE_BITS}"


_COLUMNS = (
    "event_id, epoch_us(ts), coalesce(node, ''), device, rank, coalesce(source, ''), coalesce(severity, ''), coalesce(module, ''), pid, n_lines, "
    f"length(message), left(message, {MESSAGE})"
)
_RAW = "event_id, ts, node, device, rank, source, severity, module, pid, n_lines, message"


def _order(span: _Span, back: bool) -> str:
    order = " DESC" if back else ""
    return f"ts{order}, event_id{order}" if span.timed else f"event_id{order}"


def _keys(connection: duckdb.DuckDBPyConnection, view: View, span: _Span, count: int, back: bool) -> list[tuple[int, int | None]]:
    """(event_id, time) of the first lines of a span: only the columns of the order are read."""
    where = f"{view.where} AND {span.where}"
    query = f"SELECT event_id, epoch_us(ts) FROM events WHERE {where} ORDER BY {_order(span, back)} LIMIT {count}"
    return connection.execute(query, list(view.values)).fetchall()


def _some(connection: duckdb.DuckDBPyConnection, view: View, span: _Span, count: int, back: bool) -> list[Line]:
    by, where = _order(span, back), f"{view.where} AND {span.where}"
    keys = _keys(connection, view, span, count, back)
    if not keys:
        return []
    times = [ts for _, ts in keys if ts is not None]
    if span.timed and times:
        near = f"ts >= {moment(min(times))} AND ts <= {moment(max(times))}"
    else:
        ends = sorted((keys[0][0], keys[-1][0]))
        near = f"file_id >= {ends[0] >> LINE_BITS} AND file_id <= {ends[1] >> LINE_BITS}"
        if ends[0] >> LINE_BITS == ends[1] >> LINE_BITS:
            near += f" AND line_no >= {ends[0] & _LINE} AND line_no <= {ends[1] & _LINE}"
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM (SELECT {_RAW} FROM events WHERE {where} AND {near} ORDER BY {by} LIMIT {count})", list(view.values)
    ).fetchall()
    return [Line(*row) for row in rows]


def line_at(connection: duckdb.DuckDBPyConnection, file_id: int, line_no: int) -> Key | None:
    """The key of the record that holds a line of a file."""
    row = connection.execute(
        f"SELECT event_id, epoch_us(ts) FROM events WHERE file_id = {file_id} AND line_no <= {line_no} ORDER BY line_no DESC LIMIT 1"
    ).fetchone()
    return None if row is None else Key(row[1], row[0])


def matches(connection: duckdb.DuckDBPyConnection, view: View, key: Key) -> bool:
    """Whether the view shows a line."""
    near = f"file_id = {key.event_id >> LINE_BITS} AND line_no = {key.event_id & _LINE}"
    row = connection.execute(f"SELECT 1 FROM events WHERE {near} AND {view.where}", list(view.values)).fetchone()
    return row is not None


def count(connection: duckdb.DuckDBPyConnection, view: View, before: Key | None = None) -> int:
    """How many lines a view has, or has before a key."""
    total = 0
    for span in _spans(view, before, True, False) if before is not None else [_Span("true", True)]:
        row = connection.execute(f"SELECT count(*) FROM events WHERE {view.where} AND {span.where}", list(view.values)).fetchone()
        total += row[0] if row else 0
    return total


class Histogram(msgspec.Struct, frozen=True):
    """Lines over time, in equal steps from `first` to `last` (UTC microseconds)."""

    first: int
    last: int
    total: list[int]
    bad: list[int]
    """Of them, errors."""
    warnings: list[int]
    untimed: int

    @property
    def lines(self) -> int:
        return sum(self.total) + self.untimed

    def place(self, ts: int) -> float:
        """Where a time lies: 0 at the first line, 1 at the last."""
        return min(1.0, max(0.0, (ts - self.first) / max(1, self.last - self.first)))

    def time(self, place: float) -> int:
        return round(self.first + place * (self.last - self.first))


def histogram(connection: duckdb.DuckDBPyConnection, view: View, steps: int = 960) -> Histogram | None:
    """None where no line has a time."""
    ends = connection.execute(
        f"SELECT epoch_us(min(ts)), epoch_us(max(ts)), count(*) - count(ts) FROM events WHERE {view.where}", list(view.values)
    ).fetchone()
    if ends is None or ends[0] is None:
        return None
    first, last, untimed = ends
    step = max(1, -(-(last - first + 1) // steps))
    bad = ", ".join(repr(one) for one in BAD)
    rows = connection.execute(
        f"SELECT (epoch_us(ts) - {first}) // {step}, count(*), count(*) FILTER (severity IN ({bad})), count(*) FILTER (severity = 'WARNING') "
        f"FROM events WHERE {view.where} AND ts IS NOT NULL GROUP BY ALL",
        list(view.values),
    ).fetchall()
    made = Histogram(first, first + step * steps, [0] * steps, [0] * steps, [0] * steps, untimed)
    for at, total, wrong, warned in rows:
        made.total[at], made.bad[at], made.warnings[at] = total, wrong, warned
    return made


FACETS = ("severity", "source", "module", "node", "device", "rank", "pid", "process")


def facets(connection: duckdb.DuckDBPyConnection, view: View, most: int = 40) -> list[tuple[str, str, int]]:
    """(field, value, lines) of every field's most frequent values."""
    out: list[tuple[str, str, int]] = []
    for field in FACETS:
        rows = connection.execute(
            f"SELECT CAST({field} AS VARCHAR), count(*) FROM events WHERE {view.where} AND {field} IS NOT NULL "
            f"GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {most}",
            list(view.values),
        ).fetchall()
        out += [(field, value, lines) for value, lines in rows]
    return out


class Slice(msgspec.Struct, frozen=True):
    """A piece of the lines that lies together in the parts: what is searched in one go."""

    where: str
    lines: int


def slices(files: Sequence[Member], size: int = 400_000) -> list[Slice]:
    """All lines in pieces of about `size`: neighbouring small files together, large ones cut."""
    out: list[Slice] = []
    first, held = -1, 0
    last = -1
    for member in files:
        if member.lines > size:
            if held:
                out.append(Slice(f"file_id BETWEEN {first} AND {last}", held))
                first, held = -1, 0
            for start in range(0, member.lines + 1, size):
                lines = min(size, member.lines - start)
                out.append(Slice(f"file_id = {member.file_id} AND line_no >= {start} AND line_no < {start + size}", lines))
            continue
        first = member.file_id if first < 0 else first
        last, held = member.file_id, held + member.lines
        if held >= size:
            out.append(Slice(f"file_id BETWEEN {first} AND {last}", held))
            first, held = -1, 0
    if first >= 0:
        out.append(Slice(f"file_id BETWEEN {first} AND {last}", held))
    return out


def found_in(connection: duckdb.DuckDBPyConnection, view: View, piece: Slice) -> list[Key]:
    """Keys of the lines of a view that lie in a slice."""
    rows = connection.execute(f"SELECT epoch_us(ts), event_id FROM events WHERE {piece.where} AND {view.where}", list(view.values)).fetchall()
    return [Key(*row) for row in rows]


class Record(msgspec.Struct, frozen=True):
    """All that the case knows of a record."""

    line: Line
    byte_offset: int
    tid: int | None
    stream_id: int | None
    task_id: int | None
    function: str
    src_file: str
    src_line: int | None
    code: str
    process: str
    message: str
    """Up to SHOWN characters."""
    signals: tuple[tuple[str, str, str], ...] = ()
    """(rule, pattern, raw line) of the rules that matched on it."""


SHOWN = 64_000


def record(connection: duckdb.DuckDBPyConnection, event_id: int) -> Record | None:
    near = f"file_id = {event_id >> LINE_BITS} AND line_no = {event_id & _LINE}"
    row = connection.execute(
        f"SELECT {_COLUMNS}, byte_offset, tid, stream_id, task_id, coalesce(function, ''), coalesce(src_file, ''), src_line, coalesce(code, ''), "
        f"coalesce(process, ''), left(message, {SHOWN}) FROM events WHERE {near}"
    ).fetchone()
    if row is None:
        return None
    hits = connection.execute(
        "SELECT rule, any_value(pattern), any_value(text) FROM signals WHERE event_id = ? GROUP BY rule ORDER BY rule LIMIT 20", [event_id]
    ).fetchall()
    width = len(Line.__struct_fields__)
    return msgspec.structs.replace(Record(Line(*row[:width]), *row[width:]), signals=tuple(hits))
