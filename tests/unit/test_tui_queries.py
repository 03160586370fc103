"""Pages of lines by key, counts, histogram and slices, against a plain sort of the same lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.case import Case
from forensics.errors import UsageError
from forensics.report.figures import Clock
from replay.result import Verdict
from tests.unit import tui_case
from tests.unit.case_maker import stored
from tui import profile, queries, rerun, sql, when
from tui.filters import Chip, Filter, parse
from tui.graph import Found, forest, spans
from tui.profile import stacked
from tui.queries import FIRST, LAST, Key, Line, View
from tui.window import HELD, Window


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    files = {name: text.encode() for name, text in tui_case.files().items()}
    made = stored(tmp_path_factory.mktemp("case"), files)
    yield made
    made.close()


@pytest.fixture(scope="module")
def everything(case: Case) -> list[Line]:
    """All lines in the order they are shown."""
    rows = case.reader().execute(f"SELECT {queries._COLUMNS} FROM events").fetchall()
    return sorted((Line(*row) for row in rows), key=lambda line: line.key.order)


def test_pages_forward_and_back_are_the_sorted_lines_without_a_gap(case: Case, everything: list[Line]) -> None:
    connection = case.reader()
    for back in (False, True):
        key, seen = (LAST, FIRST)[not back], []
        while lines := queries.page(connection, View(), key, 37, back=back):
            seen = lines + seen if back else seen + lines
            key = lines[0 if back else -1].key
        assert seen == everything
    assert any(line.ts is None for line in everything) and any(line.ts is not None for line in everything)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_around_a_key_stand_exactly_its_neighbours(case: Case, everything: list[Line], data: st.DataObject) -> None:
    line = data.draw(st.sampled_from(everything))
    shift = data.draw(st.sampled_from([-1, 0, 1]))
    count = data.draw(st.integers(1, 400))
    key = Key(line.ts, line.event_id + shift)
    text = data.draw(st.sampled_from(["", "severity>=error", "pid=2103", "source=plog,vllm", "-source=plog"]))
    view = View.of(Filter(tuple(parse(text))), case.load_triage().coverage.members)
    connection = case.connection()
    wanted = {row[0] for row in connection.execute(f"SELECT event_id FROM events WHERE {view.where}", list(view.values)).fetchall()}
    shown = [one for one in everything if one.event_id in wanted]
    before, after = queries.around(connection, view, key, count)
    assert before == [one for one in shown if one.key.order < key.order][-count:]
    assert after == [one for one in shown if one.key.order >= key.order][:count]
    assert queries.count(connection, view, key) == len([one for one in shown if one.key.order < key.order])


def test_one_file_is_shown_in_the_order_of_its_lines(case: Case) -> None:
    files = case.load_triage().coverage.members
    view = View.of(Filter(tuple(parse("file=console.log"))), files)
    lines = queries.page(case.reader(), view, FIRST, 100)
    assert view.by_file and [line.line_no for line in lines] == sorted(line.line_no for line in lines)
    assert {line.ts is None for line in lines} == {True, False}, "lines without a time stand where they were written"
    before, after = queries.around(case.reader(), view, lines[3].key, 2)
    assert (before, after) == (lines[1:3], lines[3:5])


def test_the_histogram_counts_every_line_once(case: Case, everything: list[Line]) -> None:
    data = queries.histogram(case.reader(), View(), 40)
    assert data is not None and data.lines == len(everything)
    assert sum(data.bad) == sum(line.severity in ("ERROR", "FATAL") and line.ts is not None for line in everything)
    assert data.untimed == sum(line.ts is None for line in everything)


@pytest.mark.parametrize("size", [1, 3, 50, 10_000])
def test_slices_hold_every_line_once(case: Case, size: int) -> None:
    pieces = queries.slices(case.load_triage().coverage.members, size)
    found = [key for piece in pieces for key in queries.found_in(case.reader(), View(), piece)]
    assert len(found) == len(set(found)) == queries.count(case.reader(), View())


def test_long_messages_come_cut_into_a_list_and_whole_into_a_record(case: Case) -> None:
    line = next(one for one in queries.page(case.reader(), View(), FIRST, 1000) if one.length > tui_case.LONG // 2)
    assert len(line.message) == queries.MESSAGE
    record = queries.record(case.reader(), line.event_id)
    assert record is not None and len(record.message) == queries.SHOWN and record.line == line


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("severity>=warning", [Chip("severity", ">=", "warning")]),
        ("-source=plog pid=7,8", [Chip("source", "=", "plog", True), Chip("pid", "=", "7,8")]),
        ("'message~a b'", [Chip("message", "~", "a b")]),
        ("Timeout", [Chip("message", "~", "Timeout")]),
        ("level=error dev=-", [Chip("severity", "=", "error"), Chip("device", "=", "-")]),
        ("a.b", [Chip("message", "~", "(?i)a\\.b")]),
    ],
)
def test_filters_read_as_they_are_typed(text: str, chips: list[Chip]) -> None:
    assert parse(text) == chips
    assert [one for chip in chips for one in parse(str(chip))] == chips, "and are typed as they read"


@pytest.mark.parametrize("text", ["severity=loud", "pid=x", "colour=red", "message~(", "pid~7", "'open", "source>=plog", "node=", "rank=1,x"])
def test_filters_that_make_no_sense_say_so(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)


@given(st.text(max_size=40))
def test_no_text_breaks_the_filter(text: str) -> None:
    try:
        chips = parse(text)
    except UsageError:
        return
    where, values = Filter(tuple(chips)).where([])
    assert where.count("?") >= len(values) > -1


def test_filters_of_one_field_widen_and_of_several_narrow(case: Case) -> None:
    files = case.load_triage().coverage.members

    def count(text: str) -> int:
        return queries.count(case.reader(), View.of(Filter(tuple(parse(text))), files))

    total = count("")
    assert count("source=plog") + count("-source=plog") == total
    assert count("pid=2100 pid=2101") == count("pid=2100") + count("pid=2101") == count("pid=2100,2101")
    assert count("pid=2100 severity=ERROR") < count("pid=2100")
    assert count("file=*plog-2100*") == count("file=plog-2100")
    assert count("node=-") + count("-node=-") == total
    assert count("file=no-such-file") == 0


CLOCK = Clock("+08:00", 0, when.DAY * 3)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("50%", when.DAY // 2 * 3), ("+5m", when.DAY + 300_000_000), ("- 1.5 h", when.DAY - 5_400_000_000), ("+2", when.DAY + 2_000_000),
        ("08:00:01.5", when.DAY + 1_500_000), ("07:59", when.DAY - 60_000_000), ("1970-01-02 08:00", when.DAY), ("1970-01-02T00:00Z", when.DAY),
    ],
)  # fmt: skip
def test_moments_are_found_as_they_are_typed(text: str, wanted: int) -> None:
    assert when.parse(text, CLOCK, when.DAY, 0, when.DAY * 3) == wanted


@given(st.text(max_size=20))
def test_no_text_breaks_the_reading_of_moments(text: str) -> None:
    try:
        assert isinstance(when.parse(text, CLOCK, None, 0, when.DAY), int)
    except UsageError:
        pass


def line(number: int) -> Line:
    return Line(number, number, "", None, None, "plog", "INFO", "", None, 1, 1, "x")


def walk(total: int) -> Callable[[Window, int], None]:
    """Reads on as the view does, from `total` lines numbered from 0."""

    def read_on(window: Window, height: int) -> None:
        for back in (False, True):
            while window.wants_more(back):
                edge = window.lines[0 if back else -1].event_id
                some = range(max(0, edge - 300), edge) if back else range(edge + 1, min(total, edge + 301))
                lines = [line(k) for k in some]
                if back:
                    window.put_before(lines, len(lines) < 300)
                else:
                    window.put_after(lines, len(lines) < 300)

    return read_on


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 20_000), st.lists(st.tuples(st.sampled_from(["move", "turn", "scroll"]), st.integers(-150, 150)), max_size=60), st.data())
def test_the_window_never_has_a_gap_and_never_grows_beyond_its_bound(total: int, steps: list[tuple[str, int]], data: st.DataObject) -> None:
    window, read_on, height = Window(), walk(total), 30
    start = data.draw(st.integers(0, total - 1))
    before, after = range(max(0, start - 300), start), range(start, min(total, start + 300))
    window.reset([line(k) for k in before], [line(k) for k in after], len(before) < 300, len(after) < 300)
    for name, by in steps:
        getattr(window, name)(by if name != "turn" else max(-5, min(5, by)), height)
        read_on(window, height)
        numbers = [one.event_id for one in window.lines]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert 0 <= window.cursor < len(numbers) and window.top <= window.cursor < window.top + height
        assert len(numbers) <= HELD + 900
        assert start + window.offset == numbers[window.cursor], "the place of the cursor is known without counting"
        assert window.at_start <= (numbers[0] == 0) and window.at_end <= (numbers[-1] == total - 1)


def test_the_forest_shows_each_finding_once_below_its_latest_cause() -> None:
    from rules.model import Text

    found = [Found(k, f"r{k}", Text(f"r{k}", ""), "runtime", "cause", k, 1, rank) for k, rank in ((0, 1), (1, None), (2, None), (3, 2))]
    roots = forest(found, [(0, 1, "rule"), (0, 2, "rule"), (1, 2, "rule"), (3, 2, "symptom")])
    assert [root.rule for root in roots] == ["r0", "r3"]
    assert [one.rule for one in roots[0].effects] == ["r1"] and [one.rule for one in roots[0].effects[0].effects] == ["r2"]
    assert found[2].also == ["r3"]
    assert spans([7, 0, 1, 2, 9, 10]) == "0-2, 7, 9-10"


def test_completion_offers_tables_columns_and_words(case: Case) -> None:
    words = sql.schema(case.reader()).words()
    assert ("events", "table") in words and all(word != "internals" for word, _ in words)
    assert sql.completions(words, "select sev")[0][0] == "severity"
    assert sql.completions(words, "select * from eve")[0][0] == "events"
    assert all("files" in kind for _, kind in sql.completions(words, "select files."))
    assert sql.completions(words, "select 1 + ") == []


def test_rows_come_page_by_page_and_only_reading_is_allowed(case: Case, tmp_path: Path) -> None:
    connection = case.reader()
    rows = sql.begin(connection, "select event_id from events order by 1")
    assert len(rows.rows) == sql.PAGE and not rows.done
    more, done = sql.more(connection)
    assert done and rows.rows[-1] < more[0]
    for query in ("drop table files", "copy files to 'x'", "select 1; select 2", "attach 'x'"):
        with pytest.raises(UsageError):
            sql.begin(connection, query)
    for name in ("a.csv", "a.json", "a.parquet"):
        assert sql.export(connection, "select path from files", str(tmp_path / name)) == len(case.load_triage().coverage.members)
        assert (tmp_path / name).stat().st_size
    for name in ("a.csv", "a.txt"):
        with pytest.raises(UsageError):
            sql.export(connection, "select 1", str(tmp_path / name))
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.json", "a.parquet"]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=5), st.integers(5, 60))
def test_stacked_bars_fill_their_width(parts: list[int], width: int) -> None:
    columns = stacked(parts, width)
    assert sum(columns) == (width if sum(parts) else 0)
    assert all(column > 0 for part, column in zip(parts, columns, strict=True) if part)


def test_the_profile_is_read_from_whatever_columns_there_are() -> None:
    import duckdb

    connection = duckdb.connect()
    assert profile.read(connection) is None
    connection.execute(
        "CREATE TABLE steps (rank INTEGER, step BIGINT, computing_ns BIGINT, exposed_ns BIGINT, free_ns BIGINT, stage_ns BIGINT);"
        "CREATE TABLE kernels (rank INTEGER, step BIGINT, name VARCHAR, op_type VARCHAR, core VARCHAR, start_ns BIGINT, dur_ns BIGINT, wait_ns BIGINT"
        ", in_shapes VARCHAR, mac_ratio DOUBLE, aic_mte2_ratio DOUBLE)"
    )
    assert profile.read(connection) is None, "tables without rows are no profile"
    connection.execute(
        "INSERT INTO steps VALUES (0, 1, 60, 30, 10, 100), (1, 1, 50, 25, 25, NULL);"
        "INSERT INTO kernels VALUES (0, 1, 'MatMul_1', 'MatMulV3', 'AI_CORE', 0, 3000, 0, '16,16', 0.2, 0.9),"
        " (0, 1, 'MatMul_2', 'MatMulV3', 'AI_CORE', 5000, 1000, 2000, '16,16', 0.2, 0.9),"
        " (0, 1, 'Add_3', 'Add', 'AI_VECTOR_CORE', 9000, 1000, 0, '', NULL, NULL)"
    )
    found = profile.read(connection)
    assert found is not None and [step.total for step in found.steps] == [100, 100]
    first = found.operators[0]
    assert (first.op_type, first.count, first.total, first.share) == ("MatMulV3", 2, 4000, 0.8) and first.bound == "MTE2 (GM→) 90 %"
    assert found.operators[1].bound == "" and found.slowest[0].name == "MatMul_1" and [gap.name for gap in found.gaps] == ["MatMul_2"]
    assert [profile.span(value) for value in (5, 1500, 2_500_000, 3e9)] == ["5 ns", "1.5 us", "2.5 ms", "3 s"]


def test_a_verdict_is_shown_with_its_faults_and_its_plot() -> None:
    verdict = {
        "kernel": "rope", "status": "confirmed", "reason": {"en": "Wrong from 65536 on.", "zh": "从 65536 起出错。"},
        "dtype": "bfloat16", "score": 41.5,
        "faults": [{"name": "position-wrap", "params": {"modulus": 65536}, "score": 0.9, "title": {"en": "wraps", "zh": "回绕"}}],
        "plot": {
            "axis": "position", "bins": [{"first": 0, "last": 9, "rows": 10, "error": 0.5, "worst": 1.0}], "limit": 2.0, "boundary": 65536,
        },
    }  # fmt: skip
    shown = rerun.verdict(SimpleNamespace(replays={2: msgspec.convert(verdict, Verdict)}), 2, "zh")  # type: ignore[arg-type]
    assert shown is not None and shown.status == "confirmed" and shown.reason == "从 65536 起出错。"
    assert any("position-wrap: modulus=65536" in text and "回绕" in text for text in shown.lines)
    assert shown.boundary == 65536 and shown.bars[0].error == 0.5
    assert rerun.verdict(SimpleNamespace(replays={}), 2, "en") is None  # type: ignore[arg-type]
