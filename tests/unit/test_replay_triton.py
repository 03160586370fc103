"""A Triton kernel runs without any device under the interpreter of triton-ascend, in a Python of its own, and is judged.

DSFORENSICS_TRITON_PYTHON=/path/to/python   one with triton-ascend, torch, numpy < 2 and pybind11; without it these are left out"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("torch")

from replay.commands import made
from replay.execute import Session

PYTHON = os.environ.get("DSFORENSICS_TRITON_PYTHON", "")
KERNELS = Path(__file__).with_name("replay_triton_rope.py")


@pytest.mark.skipif(not PYTHON, reason="DSFORENSICS_TRITON_PYTHON names no Python with triton-ascend")
@pytest.mark.parametrize(("function", "dim", "status", "faults"), [
    ("right", 80, "refuted", []), ("wrong", 80, "confirmed", ["sin-offset"]), ("wrong", 64, "refuted", []), ("right", 64, "refuted", []),
])  # fmt: skip
def test_a_triton_kernel_is_judged_without_a_device(function: str, dim: int, status: str, faults: list[str]) -> None:
    sizes = {"dtype": "bfloat16", "seq_len": 70000, "tokens": 12, "heads": 2, "head_dim": dim}
    spec = made("rope", sizes, {}, backend="triton-interpreter", code=f"{KERNELS}:{function}", python=PYTHON, time_limit=120.0)
    verdict = Session().replay(spec)
    assert verdict.status == status, verdict.reason.en
    assert [fit.name for fit in verdict.faults] == faults
    assert verdict.subject == "triton-interpreter"


def test_without_triton_it_is_said_what_to_install() -> None:
    verdict = Session().replay(made("rope", {"seq_len": 10}, {}, backend="triton-interpreter"))
    assert verdict.status == "unavailable"
    assert "--code" in verdict.reason.en
    own = Session().replay(made("rope", {"seq_len": 10}, {}, backend="triton-interpreter", code=f"{KERNELS}:right"))
    assert own.status == "unavailable" or own.score is not None
