"""What a replay concludes: plain typed data, read by the reports, the TUI and the case. Needs no torch.

verdict.status            one of STATUSES
verdict.reason.of("zh")   one sentence: what was measured, and what follows from it
verdict.plot              the error by position, to be drawn: see ErrorPlot
"""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["confirmed", "refuted", "not-testable", "precision", "unknown", "unavailable"]
STATUSES: tuple[Status, ...] = ("confirmed", "refuted", "not-testable", "precision", "unknown", "unavailable")


class Words(msgspec.Struct, frozen=True):
    """One text in both languages."""

    en: str
    zh: str

    def of(self, lang: str) -> str:
        return self.zh if lang == "zh" else self.en


class Bin(msgspec.Struct, frozen=True):
    """Some neighbouring places on the axis of an ErrorPlot that hold at least one row of the output."""

    first: int
    last: int
    """Places, both inclusive."""
    rows: int
    error: float
    """Root mean square error of these rows, in noise units (1 = the noise of a clean kernel of this dtype and shape)."""
    worst: float
    """The largest error of one row, in noise units."""


class ErrorPlot(msgspec.Struct, frozen=True):
    """Where the error lies. Draw `bins` in order over a logarithmic axis of `error`; a line at `limit`; a mark at `boundary`.

    Errors are finite: what is NaN in one of the outputs only counts as an error of the size of the row itself."""

    axis: Literal["position", "token", "request", "row", "column"]
    """What the places are: positions of RoPE, tokens of a sequence, requests of a batch, rows of the output, columns of its last axis."""
    bins: list[Bin]
    limit: float = 2.0
    """Noise units up to which a kernel counts as clean."""
    boundary: int | None = None
    """First place from which on everything is wrong while everything before is clean; None where there is no such place."""


class FaultFit(msgspec.Struct, frozen=True):
    """A fault model that reproduces the observed output."""

    name: str
    """Stable, such as position-wrap."""
    params: dict[str, int | float | str]
    """What was found out of it, such as {"modulus": 65536}."""
    score: float
    """Distance of its prediction from the observed output, in noise units."""
    title: Words


class Violation(msgspec.Struct, frozen=True):
    """A documented constraint of an operator that the arguments break."""

    operator: str
    constraint: str
    silent: bool
    """The device checks it nowhere: wrong results or a memory fault follow without a message."""
    found: str
    """The values that break it, such as block_table_max=99, num_blocks=64."""
    source: str
    message: str = ""
    """What the operator prints where it checks."""


class Verdict(msgspec.Struct):
    """The outcome of one replay. Never says more than was measured."""

    kernel: str
    status: Status
    reason: Words
    subject: str = ""
    """Whose output was judged: capture, npu, cuda, cpu, triton-interpreter, code; empty where none was."""
    dtype: str = ""
    shape: str = ""
    """Sizes that matter, such as `tokens=64 heads=8 head_dim=128`."""
    score: float | None = None
    """Distance of the observed output from the reference, in noise units."""
    noise: float | None = None
    """One noise unit: relative rms error of clean kernels on the same inputs."""
    faults: list[FaultFit] = []
    """Best first; one, or a small set that these inputs cannot tell apart."""
    violations: list[Violation] = []
    plot: ErrorPlot | None = None
    notes: list[Words] = []
    tried: int = 0
    """Fault models compared, counting each value of an unknown parameter."""
    runs: int = 0
    """How often the subject ran on the same inputs; 0 for a capture."""
    repeatable: bool | None = None
    """Whether all runs gave the same bits."""
    command: str = ""
    """What to run, and where, to settle what could not be settled here."""
    spec: str = ""
    """The replay as a YAML document for `dsforensics replay run`."""
    seconds: float = 0.0
    """Wall time; no part of any report that must not change from run to run."""


STATUS_WORDS: dict[str, Words] = {
    "not-run": Words("not run", "未执行"),
    "confirmed": Words("confirmed", "已证实"),
    "refuted": Words("refuted", "已排除"),
    "not-testable": Words("not testable on these inputs", "输入不足以检验"),
    "precision": Words("low precision, no structural fault", "仅为精度损失，非结构性错误"),
    "unknown": Words("wrong, of no known kind", "结果错误，原因不明"),
    "unavailable": Words("not possible here", "当前环境无法执行"),
}
"""What stands beside a diagnosis for each status, and for a replay that was not run."""
