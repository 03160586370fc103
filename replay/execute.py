"""From a spec to a verdict: inputs made or read, constraints asked, the kernel run or its capture taken, the referee called."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from replay import runner
from replay.errors import NO_TORCH, BackendError, SpecError
from replay.result import Verdict, Words
from replay.spec import Spec, text

if TYPE_CHECKING:
    from torch import Tensor

    from replay.kernels.base import Kernel
    from replay.referee import Suspect
    from replay.tensors import Case, Value

DEVICES = ("npu", "cuda")
RUNS = 3
"""On a device: three runs on the same inputs tell a race, or bad hardware, from software."""
NPU_ENVIRONMENT = {
    "ASCEND_LAUNCH_BLOCKING": "1", "TASK_QUEUE_ENABLE": "0", "ASCEND_GLOBAL_LOG_LEVEL": "3", "ASCEND_SLOG_PRINT_TO_STDOUT": "0",
}  # fmt: skip
"""Launches wait for their end, so that an error belongs to the call that made it."""
CANARY: dict[str, int | float | str | bool] = {"m": 64, "k": 256, "n": 64, "dtype": "float16", "bias": False}
LARGEST = 1 << 33
"""Elements of all inputs that are made up."""


class Session:
    """Replays on one machine, in order: after an exception of the device the next replay on it begins with a canary."""

    def __init__(self) -> None:
        self._doubtful = False
        self._states: dict[str, dict[str, object]] = {}

    def npu(self, python: str = "") -> dict[str, object]:
        """State of torch_npu for that interpreter; asked once."""
        if python not in self._states:
            self._states[python] = runner.probe(python)
        return self._states[python]

    def replay(self, spec: Spec, fall_back: bool = True) -> Verdict:
        """The verdict of a spec. `fall_back`: without an NPU, run PyTorch's own operators on the CPU, which says nothing of an NPU.

        Raises SpecError for a spec that cannot be run, CaptureError for a dump that cannot be read, BackendError for a backend asked for by
        name that does not work here, ReplayError where torch is missing."""
        started = time.monotonic()
        need_torch()
        from replay.kernels import kernel_named

        kernel = kernel_named(spec.kernel)
        case, outputs = self._case(kernel, spec)
        verdict = self.decide(kernel, case, outputs, spec, fall_back)
        verdict.spec = text(spec)
        verdict.seconds = time.monotonic() - started
        return verdict

    def inspect(self, spec: Spec) -> Verdict:
        """What the arguments alone tell: a verdict by inspection, or `unavailable`. Nothing is run."""
        from replay.kernels import kernel_named
        from replay.referee import inspect

        need_torch()
        kernel = kernel_named(spec.kernel)
        case, _ = self._case(kernel, spec)
        verdict = inspect(kernel, case) or _unavailable(kernel, case, "none was asked for")
        verdict.spec = text(spec)
        return verdict

    def decide(self, kernel: Kernel, case: Case, outputs: Mapping[str, Tensor], spec: Spec, fall_back: bool) -> Verdict:
        """The verdict on a checked case, judged by its captured outputs where there are some."""
        from replay.referee import inspect

        suspect = _suspect(spec)
        backend = self._backend(spec, outputs, fall_back)
        if backend == "capture":
            verdict = _judged(kernel, case, outputs, "capture", suspect)
        elif (verdict_ := inspect(kernel, case)) is not None:
            verdict = verdict_
        elif not backend:
            verdict = _unavailable(kernel, case, str(self.npu(spec.python)["message"]))
        else:
            verdict = self._run(kernel, case, spec, backend, suspect)
        if verdict.status in ("unavailable", "not-testable"):
            verdict.command = verdict.command or "dsforensics replay run spec.yaml --backend npu --device 0"
        return verdict

    def _case(self, kernel: Kernel, spec: Spec) -> tuple[Case, dict[str, Tensor]]:
        from replay.tensors import Case

        if spec.inputs:
            from replay.capture.tensor_file import load

            tensors = {name: load(one) for name, one in spec.inputs.items()}
            case = Case(kernel.name, tensors, dict(spec.params))
            outputs = {name: load(one) for name, one in spec.outputs.items()}
        else:
            if spec.outputs:
                raise SpecError("a captured output can only be judged with the captured inputs: give both")
            _not_too_large(spec.sizes)
            case = kernel.make(spec.sizes, spec.seed)
            case, outputs = case.having(None, **spec.params), {}
        case = replace(case, operator=spec.operator, soc=spec.soc)
        return kernel.check(case), outputs

    def _backend(self, spec: Spec, outputs: Mapping[str, Tensor], fall_back: bool) -> str:
        """Where to run; `capture` for no run; empty for nowhere."""
        if spec.backend == "capture" or (spec.backend == "auto" and outputs):
            if not outputs:
                raise SpecError("backend capture judges a captured output: name it with outputs")
            return "capture"
        if spec.backend != "auto":
            return spec.backend
        if spec.code:
            return "cpu"
        if self.npu(spec.python)["state"] == "ok":
            return "npu"
        return "cpu" if fall_back else ""

    def _run(self, kernel: Kernel, case: Case, spec: Spec, backend: str, suspect: Suspect | None) -> Verdict:
        if backend == "npu":
            self._check_npu(spec)
        runs = spec.runs or (RUNS if backend in DEVICES else 1)
        job = {
            "kernel": kernel.name, "operator": spec.operator, "params": case.params, "backend": backend, "code": spec.code, "runs": runs,
            "device": spec.device, "time_limit": spec.time_limit,
        }  # fmt: skip
        more = _environment(spec, backend)
        if backend == "npu" and self._doubtful and not self._canary(spec, more):
            raise BackendError("the device has not answered rightly since its last exception: reset it, or take another one with --device")
        outcome, results = runner.work(job, case.tensors, spec.python, spec.time_limit, more)
        self._doubtful |= outcome.state in ("device", "timeout") and backend == "npu"
        subject = "code" if spec.code and backend == "cpu" else backend
        if outcome.state != "done":
            return _failed(kernel, case, subject, outcome, spec)
        verdict = _judged(kernel, case, results[0], subject, suspect)
        if verdict.status == "confirmed" and not verdict.faults and not verdict.score:
            return verdict
        verdict.runs, verdict.repeatable = runs, all(_same_bits(results[0], other) for other in results[1:]) if runs > 1 else None
        if verdict.repeatable is False:
            _not_repeatable(verdict, [_judged(kernel, case, one, subject, suspect) for one in results[1:]])
        if backend == "cpu" and not spec.code:
            verdict.notes.append(
                Words(
                    "These are PyTorch's own operators on the CPU: they say nothing of an NPU.",
                    "本次运行的是 PyTorch 的 CPU 算子，不能说明 NPU 的情况。",
                )
            )
        known = ", ".join(f"{name} {value}" for name, value in sorted(outcome.versions.items()))
        if known and backend != "cpu":
            verdict.notes.append(Words(f"Run with {known}.", f"运行环境：{known}。"))
        return verdict

    def _check_npu(self, spec: Spec) -> None:
        state = self.npu(spec.python)
        if state["state"] != "ok":
            raise BackendError(f"the backend npu does not work here ({state['state']}): {state['message']}")
        if spec.device is None:
            raise BackendError("name the NPU with --device: a replay takes memory on it, and a suspected kernel can disturb what runs there")

    def _canary(self, spec: Spec, more: Mapping[str, str]) -> bool:
        """Whether a small product on the device is right."""
        from replay.kernels import kernel_named

        kernel = kernel_named("matmul")
        case = kernel.check(kernel.make(CANARY, 7))
        job = {"kernel": "matmul", "operator": "", "params": case.params, "backend": "npu", "code": "", "runs": 1, "device": spec.device}
        outcome, results = runner.work(job, case.tensors, spec.python, 60.0, more)
        self._doubtful = not (outcome.state == "done" and _judged(kernel, case, results[0], "npu", None).status in ("refuted", "not-testable"))
        return not self._doubtful


def need_torch() -> None:
    """Raises ReplayError, saying what to install."""
    from importlib.util import find_spec

    from replay.errors import ReplayError

    if find_spec("torch") is None:
        raise ReplayError(NO_TORCH)


def split(kernel: str, values: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Value]]:
    """Sizes of inputs that are made up, and parameters of the kernel among them."""
    from replay.kernels import kernel_named

    known = {argument.name for argument in kernel_named(kernel).params}
    return dict(values), {name: value for name, value in values.items() if name in known}


def _not_too_large(sizes: Mapping[str, object]) -> None:
    """A number out of a log may be anything: no more is made up than a machine can hold."""
    product = 1
    for name in ("seq_len", "requests", "kv_heads", "head_dim", "heads"):
        value = sizes.get(name, 1)
        product *= max(1, int(value)) if isinstance(value, (int, float)) and value == value and abs(value) < 1e18 else 1
    if product > LARGEST * 64:
        raise SpecError(f"inputs of {product:.2g} elements are too large to be made up; give smaller sizes")


def _suspect(spec: Spec) -> Suspect | None:
    from replay.referee import Suspect

    return None if spec.suspect is None else Suspect(spec.suspect.name, dict(spec.suspect.params))


def _judged(kernel: Kernel, case: Case, outputs: Mapping[str, Tensor], subject: str, suspect: Suspect | None) -> Verdict:
    from replay.referee import judge

    try:
        observed = kernel.observe(case, outputs)
    except SpecError as error:
        return Verdict(kernel.name, "unknown", Words(f"The output cannot be compared: {error}.", f"输出无法比较：{error}。"), subject)
    return judge(kernel, case, observed, subject, suspect)


def _environment(spec: Spec, backend: str) -> dict[str, str]:
    if backend == "npu":
        return {**NPU_ENVIRONMENT, "ASCEND_RT_VISIBLE_DEVICES": str(spec.device or 0)}
    return {"TRITON_INTERPRET": "1"} if backend == "triton-interpreter" else {}


def _same_bits(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    import torch

    def bits(tensor: Tensor) -> Tensor:
        return tensor.contiguous().view(torch.uint8) if tensor.dim() else tensor.reshape(1).view(torch.uint8)

    return one.keys() == other.keys() and all(
        a.shape == other[name].shape and a.dtype == other[name].dtype and torch.equal(bits(a), bits(other[name])) for name, a in one.items()
    )


def _not_repeatable(verdict: Verdict, others: list[Verdict]) -> None:
    """Runs on the same inputs that differ: the worst of them counts."""
    order = ("refuted", "not-testable", "precision", "unknown", "confirmed")
    worst = max([verdict, *others], key=lambda one: order.index(one.status) if one.status in order else -1)
    if worst is not verdict:
        for name in ("status", "reason", "score", "faults", "plot"):
            setattr(verdict, name, getattr(worst, name))
    verdict.notes.append(
        Words(
            "Runs on the same inputs gave different bits: a race, uninitialised memory or bad hardware, not a fault of the arithmetic.",
            "相同输入的多次运行结果逐位不一致：应怀疑竞争、未初始化内存或硬件故障，而非算法错误。",
        )
    )


def _shape_of(kernel: Kernel, case: Case) -> str:
    return " ".join(f"{name}={value}" for name, value in kernel.sizes(case).items())


def _unavailable(kernel: Kernel, case: Case, why: str) -> Verdict:
    from replay.tensors import name_of

    reason = Words(
        f"No captured output, and no NPU here ({why}). Run the spec on the NPU host.",
        f"没有捕获的输出，当前机器也没有可用的 NPU（{why}）。请在 NPU 主机上运行该 spec。",
    )
    main = next(iter(case.tensors.values()))
    return Verdict(kernel.name, "unavailable", reason, "", name_of(main.dtype), _shape_of(kernel, case))


FAILURES = {
    "unavailable": Words("the backend does not work here", "该后端在此不可用"),
    "refused": Words("the operator refuses these arguments", "算子拒绝了这组参数"),
    "device": Words("the device raises an exception on these inputs", "设备在这组输入上抛出异常"),
    "memory": Words("the memory did not suffice", "内存不足"),
    "timeout": Words("the kernel did not end in time", "kernel 未在限定时间内结束"),
    "crash": Words("the worker crashed", "worker 进程崩溃"),
    "rubbish": Words("the worker gave nothing that can be used", "worker 返回的内容无法使用"),
    "error": Words("the kernel failed", "kernel 执行失败"),
}
STATUS_OF = {"unavailable": "unavailable", "memory": "unavailable", "refused": "confirmed", "device": "confirmed"}
"""An operator that refuses the arguments, or a device that fails on them, is what a diagnosis of a failure suspects; all else says nothing
of the kernel's arithmetic."""


def _failed(kernel: Kernel, case: Case, subject: str, outcome: runner.Outcome, spec: Spec) -> Verdict:
    from replay import constraints
    from replay.tensors import name_of

    words = FAILURES.get(outcome.state, FAILURES["error"])
    status = STATUS_OF.get(outcome.state, "unknown") if subject in DEVICES or outcome.state in ("unavailable", "memory") else "unknown"
    said = outcome.message[:600] or "-"
    main = next(iter(case.tensors.values()))
    verdict = Verdict(
        kernel.name, status, Words(f"{words.en[0].upper()}{words.en[1:]}: {said}.", f"{words.zh}：{said}。"), subject, name_of(main.dtype),  # type: ignore[arg-type]
        _shape_of(kernel, case), runs=outcome.runs,
    )  # fmt: skip
    verdict.violations = constraints.check(spec.operator, kernel.facts(case), spec.soc) if spec.operator else []
    if outcome.stuck:
        verdict.notes.append(Words("The worker hangs in the driver and is still there.", "worker 卡在驱动中，进程仍存在。"))
    if "setup failed" in said:
        verdict.notes.append(Words("The reason is in $ASCEND_PROCESS_LOG_PATH/atb.", "具体原因见 $ASCEND_PROCESS_LOG_PATH/atb 下的日志。"))
    return verdict


def saved(spec: Spec, path: Path) -> None:
    """Writes the spec. Raises SpecError."""
    try:
        path.write_text(text(spec), encoding="utf-8")
    except OSError as error:
        raise SpecError(f"the spec cannot be written to {str(path)!a}: {error.strerror or error}") from error


def with_backend(spec: Spec, **changes: object) -> Spec:
    """A copy with what was given on the command line. Raises SpecError."""
    try:
        return msgspec.structs.replace(spec, **{name: value for name, value in changes.items() if value not in (None, "")})
    except (ValueError, TypeError) as error:
        raise SpecError(str(error)) from error
