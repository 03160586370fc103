"""Dumps as msprobe, CANN and ATB write them, made by hand for the tests."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import torch
from torch import Tensor

ADUMP_TYPES = {torch.float32: 1, torch.float16: 2, torch.int32: 7, torch.int64: 8, torch.bfloat16: 27}
ATB_TYPES = {torch.float32: 0, torch.float16: 1, torch.int32: 3, torch.int64: 9, torch.bfloat16: 27}


def raw(tensor: Tensor) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def adump(inputs: list[Tensor], outputs: list[Tensor], typed: bool = True, op: str = "", message: str = "", cut: int = 0) -> bytes:
    """A CANN dump: `typed` False leaves the data types undefined, as exception dumps of single operators do."""

    def described(tensor: Tensor, output: bool) -> bytes:
        shape = b"".join(field(1, dim) for dim in tensor.shape)
        kind = ADUMP_TYPES[tensor.dtype] if typed else 0
        size = len(raw(tensor))
        if output:
            return field(1, kind) + field(2, 2) + field(3, shape) + field(6, size)
        return field(1, kind) + field(2, 2) + field(3, shape) + field(5, size) + field(11, 2)

    header = field(1, b"2.0") + field(2, 1756948323)
    header += b"".join(field(3, described(one, True)) for one in outputs) + b"".join(field(4, described(one, False)) for one in inputs)
    header += field(6, op.encode()) + (field(9, message.encode()) if message else b"")
    body = b"".join(raw(one) for one in (*inputs, *outputs))
    return struct.pack("<Q", len(header)) + header + body[: len(body) - cut]


def atb(tensor: Tensor) -> bytes:
    dims = ",".join(str(dim) for dim in tensor.shape)
    head = f"$Version=1.0\n$Object.Count=1\n$Object.Length={len(raw(tensor))}\nformat=2\ndtype={ATB_TYPES[tensor.dtype]}\ndims={dims}\n"
    return head.encode() + b"$Object.data=0\n$End=1\n" + raw(tensor)


def msprobe(
    folder: Path, name: str, args: list[Tensor | int | float | str], kwargs: dict[str, object], outputs: list[Tensor], whole: bool = True
) -> None:
    """A dump of one call; `whole` False leaves dump.json out, as after a crash."""
    data = folder / "dump_tensor_data"
    data.mkdir(parents=True, exist_ok=True)

    def entry(value: object, file: str) -> dict[str, object]:
        if isinstance(value, Tensor):
            torch.save(value, data / file)
            return {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape), "Max": 1.0, "Min": 0.0, "data_name": file}
        return {"type": type(value).__name__, "value": value}

    call = {
        "input_args": [entry(one, f"{name}.input.{n}.pt") for n, one in enumerate(args)],
        "input_kwargs": {key: entry(one, f"{name}.input.{key}.pt") for key, one in kwargs.items()},
        "output": [entry(one, f"{name}.output.{n}.pt") for n, one in enumerate(outputs)],
    }
    if whole:
        described = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": str(data), "data": {name: call}}
        (folder / "dump.json").write_text(json.dumps(described))
