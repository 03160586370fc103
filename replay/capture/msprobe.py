"""Dumps of msprobe (mindstudio-probe): dump.json beside dump_tensor_data/*.pt or *.npy.

    {"task": "tensor", "data": {"NPU.npu_rotary_mul.3.forward": {"input_args": [{"type": "torch.Tensor", "dtype": ..., "shape": ...,
      "data_name": "NPU.npu_rotary_mul.3.forward.input.0.pt"}, {"type": "int", "value": 3}], "input_kwargs": {...}, "output": [...]}}}

dump.json is complete only once the dump has been stopped: after a crash there are .pt files without an entry, and the calls are put
together from their names. `task: statistics` keeps no values, which a replay needs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from replay.capture.operators import Call, known
from replay.capture.tensor_file import load
from replay.errors import CaptureError
from replay.spec import TensorFile

LARGEST = 1 << 28
FILE = re.compile(r"(?P<call>.+\.\d+\.(?:forward|backward))\.(?P<side>input|output|kwargs)\.(?P<name>[\w.]+?)\.(?:pt|npy)\Z")


class ProbedCall(msgspec.Struct):
    """One call in a dump: what is known without reading a tensor."""

    name: str
    """NPU.npu_rotary_mul.3.forward"""
    operator: str
    number: int
    folder: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    output: list[Any] = []


def calls(folder: str) -> list[ProbedCall]:
    """Calls of operators that can be replayed, in order, from a folder with dump.json or dump_tensor_data. Raises CaptureError."""
    root = Path(folder)
    data = root if root.name == "dump_tensor_data" else root / "dump_tensor_data"
    listed = _from_json(root / "dump.json", data)
    seen = {call.name for call in listed}
    listed += [call for call in _from_names(data) if call.name not in seen]
    return sorted((call for call in listed if known(call.operator)), key=lambda call: (call.number, call.name))


def _from_json(path: Path, data: Path) -> list[ProbedCall]:
    if not path.is_file():
        return []
    try:
        if path.stat().st_size > LARGEST:
            raise CaptureError(f"{str(path)!a} is larger than {LARGEST} bytes")
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CaptureError(f"{str(path)!a} cannot be read as JSON: {' '.join(str(error).split())[:200]}") from error
    entries = found.get("data") if isinstance(found, dict) else None
    if not isinstance(entries, dict):
        raise CaptureError(f"{str(path)!a} is no dump of msprobe: it has no mapping `data`")
    out = []
    for name, entry in entries.items():
        parts = str(name).split(".")
        if len(parts) < 4 or parts[-1] != "forward" or not parts[-2].isdecimal() or not isinstance(entry, dict):
            continue
        args, kwargs, output = entry.get("input_args"), entry.get("input_kwargs"), entry.get("output")
        out.append(
            ProbedCall(
                str(name), parts[-3], int(parts[-2]), str(data), args if isinstance(args, list) else [], kwargs if isinstance(kwargs, dict) else {},
                output if isinstance(output, list) else [],
            )
        )  # fmt: skip
    return out


def _from_names(data: Path) -> list[ProbedCall]:
    """Calls that only their files tell of."""
    found: dict[str, ProbedCall] = {}
    for path in sorted(data.glob("*")) if data.is_dir() else ():
        match = FILE.match(path.name)
        if match is None or not match["call"].endswith("forward"):
            continue
        parts = match["call"].split(".")
        if len(parts) < 4 or not parts[-2].isdecimal():
            continue
        call = found.setdefault(match["call"], ProbedCall(match["call"], parts[-3], int(parts[-2]), str(data)))
        entry = {"type": "torch.Tensor", "data_name": path.name}
        if match["side"] == "kwargs":
            call.kwargs[match["name"]] = entry
            continue
        side = call.args if match["side"] == "input" else call.output
        if match["name"].isdecimal() and int(match["name"]) < 64:
            side += [None] * (int(match["name"]) + 1 - len(side))
            side[int(match["name"])] = entry
        elif match["side"] == "input":
            call.kwargs[match["name"]] = entry
    return list(found.values())


def read(call: ProbedCall) -> Call:
    """The tensors of a call. Raises CaptureError."""
    outputs = [one for one in (_value(entry, call) for entry in _flat(call.output)) if one is not None]
    tensors = [one for one in outputs if hasattr(one, "shape")]
    return Call(call.operator, [_value(entry, call) for entry in call.args], {k: _value(v, call) for k, v in call.kwargs.items()}, tensors, call.name)


def _flat(entries: list[Any]) -> list[Any]:
    return [inner for one in entries for inner in (one if isinstance(one, list) else [one])]


def _value(entry: Any, call: ProbedCall) -> Any:
    if isinstance(entry, list):
        return [_value(one, call) for one in entry]
    if not isinstance(entry, dict):
        return entry if isinstance(entry, (int, float, str, bool)) else None
    name = entry.get("data_name")
    if isinstance(name, str):
        if "/" in name or name.startswith("."):
            raise CaptureError(f"{call.name}: the file name {name!a} leaves the dump")
        shape = entry.get("shape")
        whole = isinstance(shape, list) and all(isinstance(dim, int) and dim >= 0 for dim in shape)
        tensor = load(TensorFile(str(Path(call.folder) / name), shape=shape if whole else None))
        return _retyped(tensor, str(entry.get("dtype", "")))
    if "value" in entry:
        value = entry["value"]
        return value if isinstance(value, (int, float, str, bool, list)) else None
    return None


def _retyped(tensor: Any, name: str) -> Any:
    """.npy has no bfloat16: it comes as float32, which the entry tells."""
    import torch

    from replay.tensors import dtype_named

    dtype = dtype_named(name) if name else None
    return tensor.to(dtype) if dtype is torch.bfloat16 and tensor.dtype is torch.float32 else tensor
