"""`dsforensics replay` as a shell sees it, its specs, and its place in a case and its reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.case import open_case
from forensics.cli import app
from forensics.guard import guarded
from forensics.replay_case import spec_of
from forensics.report import console, data, markdown
from forensics.report.page import Look
from replay import constraints
from replay.capture import aic_info
from replay.errors import ReplayError, SpecError
from replay.plot_text import drawn
from replay.result import Bin, ErrorPlot, FaultFit, Verdict, Words
from replay.show import as_json, rendered
from replay.spec import Spec, parse, text
from rules.model import Replay
from tests.unit import sample_triage as sample
from tests.unit.case_maker import stored
from tests.unit.test_report_data import VALIDATOR, parsed

ROOT = Path(__file__).parents[2]
OWN = Path(__file__).with_name("replay_kernels_own.py")
VERDICT = Verdict(
    "rope",
    "confirmed",
    Words("Positions wrap \x1b[31m.", "位置回绕。"),
    "capture",
    "bfloat16",
    "tokens=4",
    300.0,
    0.002,
    [FaultFit("position-wrap", {"modulus": 65536}, 0.6, Words("positions wrap", "位置回绕"))],
    plot=ErrorPlot("position", [Bin(0, 65535, 10, 0.5, 1.0), Bin(65536, 70000, 10, 500.0, float("inf"))], 2.0, 65536),
)


def program(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", **environment}
    return subprocess.run([sys.executable, "-m", "forensics", *words], capture_output=True, text=True, env=env, timeout=120, stdin=subprocess.DEVNULL)


def test_a_kernel_is_run_judged_and_its_spec_runs_again(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    sizes = ["--seq-len", "66000", "--tokens", "40", "--heads", "1", "--head-dim", "32"]
    spec = tmp_path / "spec.yaml"
    first = program("replay", "kernel", "rope", *sizes, "--code", f"{OWN}:wraps", "--format", "json", "--save", str(spec))
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout)
    assert (found["status"], found["faults"][0]["name"], found["faults"][0]["params"]) == ("confirmed", "position-wrap", {"modulus": 65536})
    again = program("replay", "run", str(spec), "--lang", "zh")
    assert again.returncode == 0, again.stderr
    assert "已证实" in again.stdout


def test_the_sweep_finds_the_length_and_the_position(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from replay import execute
    from replay.commands import made
    from replay.sweeping import rendered as table
    from replay.sweeping import swept
    from tests.unit.replay_kernels_own import wraps

    def here(job: Any, inputs: Any, *_: Any) -> Any:
        """The kernel in this process: a worker for each length takes seconds."""
        return execute.runner.Outcome("done", runs=1), [{"out": wraps(inputs["x"], inputs["positions"], job["params"]["base"])}]

    monkeypatch.setattr(execute.runner, "work", here)
    found = swept(made("rope", {"dtype": "bfloat16", "heads": 1, "head_dim": 16}, {}, code=f"{OWN}:wraps"), "seq_len", 65536, lambda text: None)
    assert [length for length, _ in found.rows] == [65535, 65536, 65537, 131072]
    assert [verdict.status for _, verdict in found.rows] == ["not-testable", "not-testable", "confirmed", "confirmed"]
    assert (found.first_wrong, found.boundary) == (65537, 65536)
    assert "65537" in table(found, "zh")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["replay", "kernel", "warp"], 2, "there is no kernel"),
        (["replay", "kernel", "rope", "--set", "mode"], 2, "NAME=VALUE"),
        (["replay", "kernel", "rope", "--seq-len", "10", "--format", "xml"], 2, "--format"),
        (["replay", "kernel", "rope", "--backend", "tpu"], 2, "backend must be one of"),
        (["replay", "kernel", "rope", "--seq-len", "10", "--backend", "npu"], 3, "npu does not work here"),
        (["replay", "run", "/nonexistent.yaml"], 2, "cannot be read"),
        (["replay", "nosuch.case"], 3, "there is no case"),
        (["replay", "kernel", "rope", "--output", "out=x"], 2, "give both"),
    ],
)
def test_a_wrong_command_is_one_sentence_and_a_status(words: list[str], status: int, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    before = signal.getsignal(signal.SIGTERM)
    got = guarded(lambda: app(words, prog_name="dsforensics"))
    signal.signal(signal.SIGTERM, before)
    out, err = capfd.readouterr()
    assert got == status, err
    assert said in err
    assert "Traceback" not in err
    assert not out


def test_without_torch_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")
    done = program("replay", "kernel", "rope", PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert done.returncode == 3
    assert "pip install 'dsforensics[replay]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; import forensics.replay_command; print([m for m in ('torch', 'numpy', 'duckdb') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_captures_of_a_rule_fill_the_spec_and_anything_else_in_a_log_does_not() -> None:
    params = {
        "seq_len": "{call.n}",
        "block_size": "{call.b}{turned.b}",
        "head_dim": "{call.evil}",
        "suspect": "tail-not-masked",
        "operator": "npu_x",
        "suspect_by": 3,
    }
    diagnosis = sample.diagnosis(replay=Replay("paged_attention", params))
    from rules.model import Group, Leaf

    leaves = Group("any", (Leaf("call", regex="x"), Leaf("turned", regex="y")))
    import msgspec

    rule = msgspec.structs.replace(diagnosis.finding.rule, match=leaves)
    diagnosis.finding.rule = rule
    diagnosis.finding.captures = {"call": {"n": "98304", "b": "48", "evil": "1; rm -rf /"}}
    spec = spec_of(diagnosis)
    assert spec is not None
    assert spec.sizes == {"seq_len": 98304, "block_size": 48}
    assert (spec.operator, spec.suspect and spec.suspect.name, spec.suspect and spec.suspect.params) == ("npu_x", "tail-not-masked", {"by": 3})
    assert spec_of(sample.diagnosis(replay=None)) is None
    assert spec_of(sample.diagnosis(replay=Replay("of the future", {}))) is None


def test_every_rule_that_names_a_kernel_names_one_that_is_there() -> None:
    from replay.faults.words import TITLES
    from replay.kernels import NAMES
    from rules import pack

    offers = [rule for rule in pack.load().rules if rule.replay is not None]
    assert len(offers) > 15
    for rule in offers:
        assert rule.replay is not None
        assert rule.replay.kernel in NAMES, rule.id
        assert rule.replay.params.get("suspect", "pairs") in TITLES, rule.id


def test_a_verdict_is_kept_in_the_case_and_shown_in_every_report(tmp_path: Path) -> None:
    case = stored(tmp_path / "case", {"a.log": b"link timeout\n"})
    case.store_replays({1: VERDICT})
    again = open_case(tmp_path / "case")
    assert again.load_triage().replays[1].status == "confirmed"
    assert again.sql("select diagnosis, kernel, status from replays").rows() == [(1, "rope", "confirmed")]
    assert again.sql("select count(*) from events").rows() == [(1,)]
    again.close()
    triage = sample.triage(replays={1: VERDICT})
    report = parsed(data.encode(data.report(triage)))
    VALIDATOR.validate(report)
    assert report["diagnoses"][0]["replay"]["status"] == "confirmed"
    assert report["diagnoses"][0]["replay"]["detail"]["plot"]["boundary"] == 65536
    for lang, word in (("en", "confirmed"), ("zh", "已证实")):
        look = Look(lang=lang, commands=frozenset({"replay"}))
        for page in (console.render(triage, look), markdown.render(triage, look)):
            assert word in page
            assert "\x1b" not in page
            assert "dsforensics replay logs.case 1" not in page


@pytest.mark.parametrize("status", ["confirmed", "refuted", "not-testable", "precision", "unknown", "unavailable"])
def test_all_verdicts_keep_the_schema(status: Any) -> None:
    verdict = Verdict("rope", status, Words("a", "甲"))
    VALIDATOR.validate(parsed(data.encode(data.report(sample.triage(replays={1: verdict})))))


def test_the_text_of_a_verdict_is_harmless_and_its_json_strict() -> None:
    page = rendered(VERDICT, "en", 100)
    assert "\x1b" not in page
    assert "<- 65536" in page
    assert json.loads(as_json(VERDICT))["plot"]["bins"][1]["worst"] is None
    assert rendered(VERDICT, "zh", 80, ascii_only=True).count("#") > 5


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 100), st.floats(0, 1e9)), min_size=1, max_size=70), st.integers(20, 200))
def test_any_plot_fits_its_lines(rows: list[tuple[int, int, float]], width: int) -> None:
    bins = [Bin(place, place + count, count, error, error) for place, count, error in rows]
    lines = drawn(ErrorPlot("row", bins), width)
    assert 1 <= len(lines) <= 16


# ---------------------------------------------------------------- specs and constraints


def test_a_spec_comes_back_as_it_was() -> None:
    spec = Spec(kernel="rope", sizes={"seq_len": 70000, "dtype": "float16"}, params={"base": 1e6}, operator="npu_rotary_mul")
    assert parse(text(spec).encode()) == spec


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"kernel: rope\nnonsense: 1\n",
        b"kernel: warp\n",
        b"- 1\n",
        b"kernel: [",
        b"\xff\xfe",
        b"kernel: rope\nruns: 900\n",
        b"kernel: rope\ntime_limit: -1\n",
        b"kernel: !!python/object/apply:os.system ['true']\n",
        b"kernel: rope\nreplay: 2\n",
    ],
)
def test_a_spec_that_is_none_is_refused_with_the_reason(document: bytes) -> None:
    with pytest.raises(SpecError, match=r"\w{4}"):
        parse(document)


@settings(max_examples=60)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_spec_or_a_reason(document: bytes) -> None:
    try:
        parse(document)
    except SpecError as error:
        assert str(error)


def test_the_documented_constraints_are_asked_only_where_they_apply() -> None:
    facts: dict[str, Any] = {"block_size": 24, "head_size": 128, "Q_S": 1, "paged": True, "kv_itemsize": 2, "is_mla": False}
    broken = constraints.check("npu_fused_infer_attention_score", facts)
    assert [one.constraint for one in broken] == ["block_size % 16 == 0"]
    assert "24" in broken[0].found
    assert constraints.check("npu_fused_infer_attention_score", {**facts, "block_size": 128}) == []
    assert [one.constraint for one in constraints.check("npu_fused_infer_attention_score", {**facts, "block_size": 64, "is_mla": True})] == [
        "block_size == 16 or block_size == 128"
    ]
    silent = [row for row in constraints.table() if row.violation == "silent"]
    assert len(silent) >= 16
    for row in constraints.table():
        constraints.holds(row.holds, {})
        if row.when:
            constraints.holds(row.when, {})


def test_the_chip_decides_which_constraints_hold() -> None:
    facts: dict[str, Any] = {"KV_S": 70000, "paged": True}
    assert constraints.check("npu_fused_infer_attention_score", facts, "Ascend910B3") == []
    assert [one.constraint for one in constraints.check("npu_fused_infer_attention_score", facts, "Ascend310P3")] == ["KV_S <= 65536"]


@pytest.mark.parametrize("expression", ["__import__('os')", "x.y", "[1]", "lambda: 1", "f(1)", "x if x else 1", "((", "x ** 99"])
def test_a_constraint_holds_no_code(expression: str) -> None:
    with pytest.raises(ReplayError):
        constraints.holds(expression, {"x": 1})


def test_the_arguments_of_a_failed_kernel_tell_what_was_wrong_with_them() -> None:
    info = aic_info.read(
        [
            "[AIC_INFO] input:0;shape:[4,16];format:ND;dtype:DT_FLOAT16;addr:0x1000;size:128 bytes",
            "[AIC_INFO] output:0;shape:[4,16];format:ND;dtype:DT_FLOAT16;addr:0x1040;size:128 bytes",
            "[AIC_INFO] input:1;shape:[];format:FRACTAL_NZ;dtype:DT_FLOAT16;addr:0",
            "[AIC_INFO] args before execute: 0x1000, 0x1040, 0xa5a5a5a500000000, addr:0x12",
            "[AIC_INFO] args(0 to 3) after execute:0x1000, 0x9999, 0xa5a5a5a500000001",
        ]
    )
    said = " ".join(problem.en for problem in info.problems())
    for part in ("overlap", "address 0", "arguments 1 changed"):
        assert part in said
