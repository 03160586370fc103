"""The profiles of an incident beside those of a good run: what takes clearly longer is listed with its row, what does not is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import jsonschema
import pytest

from forensics import pipeline, slower
from forensics.case import open_case
from forensics.options import Options
from forensics.report import console, data, markdown
from forensics.report.figures import duration
from forensics.report.page import Look
from forensics.report.web import page as web
from forensics.result import Baseline, Slower, Triage
from rules.case_tables import TABLES, VIEWS
from tests.unit.profile_maker import Kernel, kernel_csv, step_csv, write
from tests.unit.shell import ROOT

STAT_HEAD = "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"


def stat_csv(rows: Sequence[tuple[str, str, int, float]]) -> str:
    """op_statistic.csv of (type, core, count, mean in microseconds)."""
    whole = sum(count * mean for _, _, count, mean in rows)
    return "\n".join([STAT_HEAD, *(f"0,{op},{core},{n},{n * us},{us},{us},{us},{100 * n * us / whole:.3f}" for op, core, n, us in rows)]) + "\n"


def step(matmul: float = 400.0, norm: float = 60.0, core: str = "AI_VECTOR_CORE", cast: float = 2.0) -> list[Kernel]:
    """Kernels of a step; Cast is so small that it never counts."""
    kernels = [Kernel(took=matmul), Kernel("RmsNorm", norm, core), Kernel("Cast", cast, "AI_VECTOR_CORE")]
    return kernels * 8 + [Kernel("hcom_allReduce_", 900.0 if matmul > 400 else 90.0, "COMMUNICATION")]


def triaged(good: Path, bad: Path, folder: Path) -> Triage:
    work = pipeline.run([str(bad)], Options(out=str(folder / "x.case"), index=False, baseline=str(good), force=True), None)
    work.close()
    return work.triage


def differences(good: Path, bad: Path, folder: Path) -> Baseline:
    found = triaged(good, bad, folder).baseline
    assert found is not None
    return found


def named(found: Baseline) -> list[tuple[str, str, int | None]]:
    return [(one.kind, one.name, one.rank) for one in found.slower]


def test_a_slower_operator_is_listed_with_what_it_took_and_its_longest_row(tmp_path: Path) -> None:
    write(tmp_path / "good", files={"kernel_details.csv": kernel_csv(step())})
    kernels = step(norm=150.0, cast=3.0)
    kernels[10] = Kernel("RmsNorm", 310.0, "AI_VECTOR_CORE")  # the longest one: row 11 of the table, line 12 of the file
    write(tmp_path / "bad", files={"kernel_details.csv": kernel_csv(kernels)})
    found = differences(tmp_path / "good", tmp_path / "bad", tmp_path)
    assert named(found) == [("operator", "RmsNorm", 0)] and found.slower_total == 1
    (row,) = found.slower
    assert row.file.endswith("kernel_details.csv") and row.before == 0.06 and row.after == pytest.approx((14 * 0.15 + 2 * 0.31) / 16)
    assert (row.before_count, row.after_count) == (16, 16) and 0.2 < (row.share or 0) < 0.4
    assert (row.row, row.line) == (11, 12)


def test_the_table_of_sums_is_used_where_there_is_one_and_an_operator_that_moved_to_another_core_is_the_same(tmp_path: Path) -> None:
    write(tmp_path / "good", files={"op_statistic.csv": stat_csv([("MatMulV3", "AI_CORE", 100, 400.0), ("Index", "AI_VECTOR_CORE", 20, 30.0)])})
    sums = stat_csv([("MatMulV3", "AI_CORE", 100, 410.0), ("Index", "AI_CPU", 24, 2100.0)])
    write(tmp_path / "bad", files={"op_statistic.csv": sums, "kernel_details.csv": kernel_csv(step(matmul=4000.0))})
    (row,) = differences(tmp_path / "good", tmp_path / "bad", tmp_path).slower
    assert (row.name, row.core_before, row.core, row.before_count, row.after_count) == ("Index", "AI_VECTOR_CORE", "AI_CPU", 20, 24)
    assert (row.before, row.after) == (0.03, 2.1) and row.file.endswith("op_statistic.csv") and (row.row, row.line) == (2, 3)


def test_a_slower_step_says_what_of_it_has_grown(tmp_path: Path) -> None:
    good = step_csv([(13, 9000.0, 500.0, 500.0), (14, 9200.0, 500.0, 300.0)])
    write(tmp_path / "good", files={"step_trace_time.csv": good})
    write(tmp_path / "bad", files={"step_trace_time.csv": step_csv([(13, 9000.0, 500.0, 500.0), (14, 9200.0, 14300.0, 500.0)])})
    (row,) = differences(tmp_path / "good", tmp_path / "bad", tmp_path).slower
    assert (row.kind, row.rank, row.before, row.after, row.before_count, row.after_count) == ("step", 0, 10.0, 17.0, 2, 2)
    assert (row.part, row.part_before, row.part_after) == ("exposed", 0.5, 7.4) and (row.row, row.line) == (2, 3)


def test_two_good_runs_differ_in_nothing_and_logs_without_profiles_are_not_compared(tmp_path: Path) -> None:
    for name, factor in (("good", 1.0), ("other", 1.25)):
        files = {"kernel_details.csv": kernel_csv(step(400 * factor, 60 * factor)), "step_trace_time.csv": step_csv([(13, 9000 * factor, 5, 5)])}
        write(tmp_path / name, files=files)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train.log").write_text("step 1\n")
    for one, other in (("good", "other"), ("logs", "good"), ("good", "logs")):
        found = differences(tmp_path / one, tmp_path / other, tmp_path)
        assert found.slower == [] and found.slower_total == 0


def timed(steps: dict[int | None, tuple[float, ...]], **operators: dict[int | None, float]) -> slower.Timed:
    """Runs in milliseconds a step, and a kernel."""
    return slower.Timed(
        {name: {rank: slower.Mean(10, ms * 1e7, "AI_CORE", f"{rank}.csv", 1, 2) for rank, ms in ranks.items()} for name, ranks in operators.items()},
        {
            rank: slower.Step(5, {name: ms * 1e6 for name, ms in zip(slower.PARTS, spans, strict=False)}, f"{rank}.csv", 1, 2)
            for rank, spans in steps.items()
        },
    )


def test_an_operator_that_is_slow_on_one_rank_names_it_and_one_that_is_slow_on_most_is_one_row() -> None:
    good = timed({}, A={0: 1.0, 1: 1.0, 2: 1.0}, B={0: 1.0, 1: 1.0, 2: 1.0})
    found = slower.compare(good, timed({}, A={0: 1.0, 1: 2.0, 2: 1.0}, B={0: 2.0, 1: 2.5, 2: 1.1}))
    assert [(one.name, one.rank) for one in found] == [("B", None), ("A", 1)]
    assert found[0].before == 1.0 and found[0].after == pytest.approx(5.6 / 3, abs=1e-6) and found[0].file == "1.csv"


def test_ranks_are_compared_with_themselves_and_the_worst_step_comes_first() -> None:
    good = timed({0: (90.0, 5.0, 5.0), 1: (10.0, 85.0, 5.0)}, A={0: 1.0})
    here = timed({0: (130.0, 5.0, 5.0), 1: (10.0, 285.0, 5.0), 7: (900.0, 1.0, 1.0)}, A={0: 2.0})
    found = [(one.kind, one.rank, one.part) for one in slower.compare(good, here)]
    assert found == [("step", 1, "exposed"), ("operator", 0, ""), ("step", 0, "computing")]


def test_where_one_run_tells_only_what_it_computes_that_alone_is_compared() -> None:
    (row,) = slower.compare(timed({0: (100.0,)}), timed({3: (150.0, 500.0, 500.0)}))
    assert (row.kind, row.rank, row.before, row.after, row.part) == ("computing", 3, 100.0, 150.0, "")


@pytest.mark.parametrize(("here", "listed"), [(1.29, False), (1.31, True)])
def test_the_thresholds_are_kept(here: float, listed: bool) -> None:
    rest: dict[int | None, float] = {0: 50.0}
    assert bool(slower.compare(timed({}, A={0: 1.0}, Rest=rest), timed({}, A={0: here}, Rest=rest))) is listed
    rest = {0: 500.0}
    assert slower.compare(timed({}, A={0: 1.0}, Rest=rest), timed({}, A={0: here}, Rest=rest)) == []


def _empty() -> duckdb.DuckDBPyConnection:
    """The tables of profiles, without a row."""
    base = duckdb.connect()
    for name, columns in TABLES.items():
        base.execute(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in columns)})")
    for name, query in VIEWS.items():
        base.execute(f"CREATE VIEW {name} AS {query}")
    return base


def test_a_whole_capture_is_no_step() -> None:
    base = _empty()
    base.execute("INSERT INTO steps (rank, step, computing_ns, source) VALUES (0, NULL, 100, 'file'), (1, 3, 100, 'trace'), (2, 3, 100, 'kernels')")
    assert list(slower.timed(base, {}).steps) == [2]


def test_numbers_beyond_all_measure_are_no_error() -> None:
    base = _empty()
    huge = 2**63 - 1
    base.execute(f"INSERT INTO steps (rank, step, computing_ns, exposed_ns, free_ns) VALUES (0, 1, {huge}, {huge}, {huge})")
    base.execute(f"INSERT INTO op_stats (profile_id, rank, op_type, count, avg_ns) VALUES (0, 0, 'A', {huge}, {huge}), (0, 0, 'B', 0, 5)")
    base.execute(f"INSERT INTO kernels (profile_id, rank, name, dur_ns) VALUES (1, 1, 'C', {huge}), (1, 1, 'C', {-huge}), (1, 1, 'C', {huge})")
    found = slower.timed(base, {})
    assert sorted(found.operators) == ["A", "C"] and slower.compare(found, found) == []


def test_it_stands_in_every_form_in_both_languages_and_in_the_case(tmp_path: Path) -> None:
    for name, factor in (("good", 1.0), ("bad", 2.0)):
        steps = step_csv([(13, 9000.0, 500.0 * factor, 500.0), (14, 9000.0, 9500.0 * factor, 500.0)])
        write(tmp_path / name, files={"kernel_details.csv": kernel_csv(step(norm=60.0 * factor)), "step_trace_time.csv": steps})
    triage = triaged(tmp_path / "good", tmp_path / "bad", tmp_path)
    assert triage.baseline is not None and named(triage.baseline) == [("step", "", 0), ("operator", "RmsNorm", 0)]
    report = json.loads(data.encode(data.report(triage)))
    jsonschema.validate(report, json.loads((ROOT / "forensics/schema/report-1.json").read_text()), jsonschema.Draft202012Validator)
    step_, operator = report["baseline"]["slower"]
    assert (operator["before_ms"], operator["after_ms"], operator["row"], operator["line"]) == (0.06, 0.12, 2, 3)
    assert step_["part"] == {"name": "exposed", "before_ms": 5.0, "after_ms": 10.0}
    for lang, title, rank in (
        ("en", "Clearly slower than in the good run, mean times: 2", "mean step"),
        ("zh", "平均耗时明显长于正常运行：2 项", "平均单步"),
    ):
        how = Look(lang=lang, width=200, colour=False, ascii=False, verbose=False, commands=frozenset())
        for text in (console.render(triage, how), markdown.render(triage, how), web.render(triage, how)):
            for words in (title, rank, "60.0 µs", "120 µs", "RmsNorm (AI_VECTOR_CORE)", "kernel_details.csv:3"):
                assert words in text, words
    assert open_case(str(tmp_path / "x.case")).load_triage().baseline == triage.baseline


def test_names_from_a_profile_cannot_act_in_a_terminal_or_a_page(tmp_path: Path) -> None:
    triage = triaged(write(tmp_path / "good"), write(tmp_path / "bad"), tmp_path)
    assert triage.baseline is not None
    evil = "\x1b[31m<script>alert(1)</script>`|"
    triage.baseline.slower = [Slower("operator", evil, 0, 1.0, 2.0, 1, 1, evil, 3, 4, 0.5, evil, evil)]
    how = Look(lang="en", width=100, colour=False, ascii=False, verbose=False, commands=frozenset())
    for render in (console.render, markdown.render, web.render):
        assert "\x1b" not in render(triage, how)
    assert "<script>alert" not in web.render(triage, how)


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0.00042, "0.42 µs"), (0.06, "60.0 µs"), (0.9994, "999 µs"), (0.9996, "1.00 ms"), (17.0, "17.0 ms"), (999.6, "1.00 s"), (90000, "90.0 s")],
)
def test_durations_have_three_digits_and_a_fitting_unit(ms: float, said: str) -> None:
    assert duration(ms) == said
