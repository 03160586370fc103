"""A capture out of files on disk as a case: dispatches on its kind."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replay.capture import adump, msprobe, tensor_file
from replay.capture.found import Capture
from replay.capture.operators import Call, Captured, kernel_case
from replay.capture.operators_names import kernel_of
from replay.errors import CaptureError
from replay.spec import TensorFile

NUMBER = re.compile(r"(in|out)tensor(\d+)")


def read(capture: Capture, root: str, kernel: str, params: Mapping[str, Any], operator: str = "") -> Captured:
    """The call in the terms of `kernel`. `root`: the capture's file or folder on disk; `params`: what is known from elsewhere, for what the
    dump does not say; `operator`: which one, where the dump does not name it. Raises CaptureError."""
    if capture.kind == "msprobe":
        return _msprobe(root, kernel)
    if capture.kind == "atb":
        return kernel_case(_atb(capture, root))
    return _adump(capture, root, kernel, params, operator)


def _msprobe(root: str, kernel: str) -> Captured:
    """The last call of the kernel that was captured whole: what comes last is nearest to the failure."""
    found = [call for call in msprobe.calls(root) if _fits(kernel_of(call.operator), kernel)]
    if not found:
        raise CaptureError(f"{root!a} holds no call of {kernel}")
    error: CaptureError | None = None
    for call in reversed(found):
        try:
            captured = kernel_case(msprobe.read(call))
        except CaptureError as problem:
            error = error or problem
            continue
        if captured.case.kernel == kernel:
            return captured
    raise error or CaptureError(f"{root!a} holds no call of {kernel}")


def _fits(one: str, kernel: str) -> bool:
    return one == kernel or {one, kernel} == {"paged_attention", "prefill_attention"}


def _atb(capture: Capture, root: str) -> Call:
    """in- and out-tensors of an ATB operation, and its parameters from op_param.json."""
    folder = Path(root)
    sides: dict[str, dict[int, Any]] = {"in": {}, "out": {}}
    for sub, side in (("before", "in"), ("after", "out")):
        for path in sorted((folder / sub).glob(f"{side}tensor*.bin")):
            match = NUMBER.match(path.name)
            if match:
                sides[side][int(match[2])] = tensor_file.load(TensorFile(str(path)))
    if not sides["in"]:
        raise CaptureError(f"{root!a} holds no intensor files under before/")
    params: dict[str, Any] = {}
    for path in (folder / "op_param.json", folder.parent / "op_param.json"):
        if path.is_file():
            try:
                found = json.loads(path.read_bytes()[: 1 << 20])
            except (OSError, ValueError, RecursionError) as error:
                raise CaptureError(f"{str(path)!a} cannot be read as JSON: {' '.join(str(error).split())[:200]}") from error
            params = found if isinstance(found, dict) else {}
            break
    inputs = [sides["in"].get(n) for n in range(max(sides["in"]) + 1)]
    outputs = [sides["out"][n] for n in sorted(sides["out"])]
    return Call(capture.operator, inputs, params, outputs, capture.root)


def _adump(capture: Capture, path: str, kernel: str, params: Mapping[str, Any], operator: str) -> Captured:
    dump = adump.read(path)
    name = capture.operator or operator or dump.op_name or DEFAULT.get(kernel, "")
    if kernel_of(name) != kernel:
        name = DEFAULT.get(kernel, name)
    used = [n for n, one in enumerate(dump.inputs) if one.role in ("", "input", "general")]
    inputs = [dump.tensor(f"input.{n}", str(params.get("dtype", "")) if n == used[0] else "") for n in used]
    outputs = [] if capture.partial or dump.exception else [dump.tensor(f"output.{n}") for n in range(len(dump.outputs))]
    return kernel_case(Call(name, inputs, {**dump.attributes, **params}, outputs, capture.root))


DEFAULT = {
    "rope": "RotaryMul", "paged_attention": "PagedAttention", "rms_norm": "RmsNorm", "swiglu": "SwiGlu", "matmul": "MatMul", "topk": "TopK",
    "cache_write": "ReshapeAndCache",
}  # fmt: skip
"""Operator whose order of inputs is taken where the dump names none."""
