"""A worker that hangs, crashes, runs out of memory or writes rubbish is a result, within the time limit, and the program goes on."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from hypothesis import given, settings
from hypothesis import strategies as st

from replay import runner, safe_file
from replay.commands import made
from replay.errors import BackendError, SpecError
from replay.execute import Session
from replay.result import Verdict

OWN = Path(__file__).with_name("replay_kernels_own.py")


def verdict_of(function: str, limit: float = 60.0, runs: int = 0, **sizes: int) -> Verdict:
    given_sizes = {"dtype": "bfloat16", "seq_len": 66000, "tokens": 32, "heads": 1, "head_dim": 32, **sizes}
    return Session().replay(made("rope", given_sizes, {}, code=f"{OWN}:{function}", time_limit=limit, runs=runs))


@pytest.mark.parametrize(
    ("function", "status", "said"),
    [
        ("right", "refuted", "sound kernel"),
        ("wraps", "confirmed", "modulo 65536"),
        ("crashes", "unknown", "SIGABRT"),
        ("leaves", "unknown", "status 7"),
        ("eats", "unavailable", "memory did not suffice"),
        ("raises", "unknown", "no such tiling"),
        ("rubbish", "unknown", "shape"),
        ("nothing", "unknown", "must give a tensor"),
        ("garbage_file", "unknown", "nothing that can be used"),
        ("no_such_function", "unavailable", "has no function"),
    ],
)
def test_what_a_worker_does_becomes_a_verdict(function: str, status: str, said: str) -> None:
    verdict = verdict_of(function)
    assert verdict.status == status, verdict.reason.en
    assert said in verdict.reason.en
    assert verdict.reason.zh


def test_a_worker_that_hangs_is_ended_in_time() -> None:
    started = time.monotonic()
    verdict = verdict_of("hangs", limit=6.0)
    assert verdict.status == "unknown"
    assert "within 6 s" in verdict.reason.en
    assert time.monotonic() - started < 40


def test_runs_that_differ_point_to_a_race() -> None:
    verdict = verdict_of("unsteady", runs=3)
    assert verdict.repeatable is False
    assert any("race" in note.en for note in verdict.notes)


def test_a_worker_that_the_system_kills_for_memory(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    outcome, outputs = runner.work({"kernel": "rope"}, {"x": torch.zeros(1)}, str(program))
    assert (outcome.state, outputs) == ("memory", [])


def test_an_interpreter_that_is_none_is_said(tmp_path: Path) -> None:
    outcome, _ = runner.work({"kernel": "rope"}, {"x": torch.zeros(1)}, str(tmp_path / "nopython"))
    assert outcome.state == "unavailable"
    assert "nopython" in outcome.message


def test_an_npu_must_be_named_and_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match="absent"):
        Session().replay(made("rope", {"seq_len": 10}, {}, backend="npu"))
    monkeypatch.setattr(runner, "probe", lambda python="": {"state": "ok", "message": "1 x Ascend910B3"})
    with pytest.raises(BackendError, match="--device"):
        Session().replay(made("rope", {"seq_len": 10}, {}, backend="npu"))


def test_absurd_sizes_out_of_a_log_are_refused() -> None:
    for sizes in ({"seq_len": 10**15}, {"seq_len": 1 << 22, "heads": 200, "head_dim": 1000, "requests": 4000}, {"heads": 0}, {"head_dim": "many"}):
        with pytest.raises(SpecError):
            Session().replay(made("paged_attention", sizes, {}))  # type: ignore[arg-type]


TENSORS = st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool])


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=8), st.tuples(TENSORS, st.lists(st.integers(0, 4), max_size=3)), max_size=4))
def test_tensors_come_back_as_they_were_and_others_read_the_file_too(
    tmp_path_factory: pytest.TempPathFactory, wanted: dict[str, tuple[torch.dtype, list[int]]]
) -> None:
    tensors = {name: torch.randint(0, 2, shape).to(dtype) for name, (dtype, shape) in wanted.items() if name != "__metadata__"}
    path = str(tmp_path_factory.mktemp("st") / "x.safetensors")
    safe_file.save(tensors, path)
    got = safe_file.load(path)
    assert got.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert got[name].dtype is tensor.dtype
        assert torch.equal(got[name], tensor)
    try:
        from safetensors.torch import load_file
    except ImportError:
        return
    if tensors:
        assert all(torch.equal(one, tensors[name]) for name, one in load_file(path).items())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_file_or_a_reason(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("st") / "x"
    for head in (b"", len(data).to_bytes(8, "little")):
        path.write_bytes(head + data)
        try:
            safe_file.load(str(path))
        except ValueError as error:
            assert str(error)


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    verdict_of("leaves")
    assert os.listdir(tmp_path) == []
