"""`dsforensics profile`: where the time goes, what limits the operators, who is slow, and what was not captured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from forensics.cli import app
from forensics.report import profile_words
from tests.unit import profile_maker as make
from tests.unit.profile_maker import Kernel


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case of two ranks, one of them with a fallback."""
    folder = tmp_path_factory.mktemp("profile")
    for rank in (0, 1):
        odd = [Kernel("NonZero", 1900.0, "AI_CPU", dtypes="DOUBLE")] if rank else []
        comm = [Kernel("allReduce", 700.0, "COMMUNICATION")]
        steps = make.step_csv([(13, 5600.0 + 1900 * rank, 1900.0 - 1900 * rank, 0.0), (14, 5600.0 + 1900 * rank, 1900.0 - 1900 * rank, 0.0)])
        files = {"kernel_details.csv": make.kernel_csv([*make.healthy(), *odd, *comm]), "step_trace_time.csv": steps}
        make.write(folder / "bundle", rank, files, (0, 1))
    done = CliRunner().invoke(app, ["profile", str(folder / "bundle"), "-o", str(folder / "x.case"), "--format", "json"])
    assert done.exit_code == 0, done.output
    (folder / "report.json").write_text(done.stdout)
    return folder


def test_the_data_say_where_the_time_goes(case: Path) -> None:
    found = json.loads((case / "report.json").read_text())
    assert found["schema"] == "dsforensics.profile/1"
    steps = [(one["rank"], one["computing"], one["exposed"], one["source"]) for one in found["breakdown"]]
    assert steps == [(0, 5.6, 1.9, "file"), (1, 7.5, 0.0, "file")]
    matmul = found["operators"][0]
    assert (matmul["op_type"], matmul["bound"], matmul["count"], matmul["row"]) == ("MatMulV3", "MTE2", 48, 2)
    fallback = next(one for one in found["operators"] if one["op_type"] == "NonZero")
    assert (fallback["bound"], fallback["total"], fallback["row"]) == ("AI_CPU", 3.8, 25)
    assert "allReduce" not in [one["op_type"] for one in found["operators"]]
    assert [round(one["against"], 3) for one in found["ranks"]] == [0.855, 1.145]
    assert found["diagnoses"][0]["root_cause"] == "host-fallback-operator"
    assert {"api", "memory", "l2_cache", "comms"} <= {one["key"] for one in found["not_checked"]}
    assert "ranks" not in {one["key"] for one in found["not_checked"]}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_of_a_case_speaks_both_languages(case: Path, lang: str) -> None:
    done = CliRunner().invoke(app, ["profile", str(case / "x.case"), "--lang", lang], env={"COLUMNS": "160"})
    assert done.exit_code == 0
    for key in ("step", "operators", "ranks", "not-checked"):
        assert profile_words.say(lang, key) in done.stdout
    assert "kernel_details.csv" in done.stdout and "\x1b" not in done.stdout


def test_every_line_fits_the_page(case: Path) -> None:
    from forensics.safe_text import cells

    done = CliRunner().invoke(app, ["profile", str(case / "x.case")], env={"COLUMNS": "80"})
    assert [line for line in done.stdout.split("\n") if cells(line) > 80] == []


def test_what_was_not_captured_is_worded_for_every_key(case: Path) -> None:
    for english, chinese in profile_words.MISSING.values():
        assert english and any(ord(c) > 0x2E80 for c in chinese)


def test_logs_alone_say_that_there_is_no_profile(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "console.log").write_text("2025-11-27 12:34:36,100 - INFO - all is well\n")
    done = CliRunner().invoke(app, ["profile", str(tmp_path / "bundle"), "-o", str(tmp_path / "c")])
    assert done.exit_code == 0 and "No profile is in the bundle" in " ".join(done.stdout.split())


def test_names_from_a_profile_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    table = make.kernel_csv([Kernel("Mat\x1b[31mMul", 400.0), *make.healthy()])
    make.write(tmp_path / "bundle", files={"kernel_details.csv": table})
    done = CliRunner().invoke(app, ["profile", str(tmp_path / "bundle"), "-o", str(tmp_path / "c"), "--verbose"])
    assert done.exit_code == 0 and "\x1b" not in done.stdout and "\\x1b" in done.stdout


def test_without_a_step_table_the_overlap_lane_is_summed(tmp_path: Path) -> None:
    sums = (("Computing", 400.0), ("Free", 600.0))
    lane = [{"ph": "X", "name": name, "pid": 6, "tid": 0, "ts": "1764246877000200.000", "dur": dur} for name, dur in sums]
    make.write(tmp_path / "bundle", files={"kernel_details.csv": make.kernel_csv(make.healthy()), "trace_view.json": make.trace(lane)})
    done = CliRunner().invoke(app, ["profile", str(tmp_path / "bundle"), "-o", str(tmp_path / "c"), "--format", "json"])
    [step] = json.loads(done.stdout)["breakdown"]
    assert (step["computing"], step["free"], step["source"]) == (0.4, 0.6, "trace")


def test_a_wrong_option_is_one_sentence(tmp_path: Path) -> None:
    make.write(tmp_path / "bundle", files={})
    done = CliRunner().invoke(app, ["profile", str(tmp_path / "bundle"), "-o", str(tmp_path / "c"), "--set", "profile.aicpu=3"])
    assert "did you mean 'profile.aicpu_us'" in str(done.exception)
