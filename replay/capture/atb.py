"""Tensors of the ATB dump (msprobe, ATB_SAVE_TENSOR): a header of text lines, then the raw bytes.

    $Version=1.0
    $Object.Count=1
    $Object.Length=...
    format=2
    dtype=1
    dims=4,16,128
    $Object.data=...
    $End=1
    <bytes>

The numbers of the types are those of aclDataType, which differ from those of CANN dumps: 1 is float16 here."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from replay.errors import CaptureError

if TYPE_CHECKING:
    from torch import Tensor

TYPES = {
    0: "float32", 1: "float16", 2: "int8", 3: "int32", 4: "uint8", 6: "int16", 9: "int64", 11: "float64", 12: "bool", 27: "bfloat16",
}  # fmt: skip
HEADER = 1 << 16
END = b"$End=1\n"


def read(path: str) -> Tensor:
    """Raises CaptureError."""
    import torch

    from replay.tensors import DTYPES

    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError as error:
        raise CaptureError(f"the dump {path!a} cannot be read: {error.strerror or error}") from error
    end = data[:HEADER].find(END)
    if end < 0:
        raise CaptureError(f"{path!a}: an ATB dump has a line $End=1 before its data; found none in the first {HEADER} bytes")
    fields = dict(line.split("=", 1) for line in data[:end].decode("utf-8", "replace").splitlines() if "=" in line)
    try:
        number, dims = int(fields["dtype"]), [int(part) for part in fields["dims"].split(",") if part.strip()]
    except (KeyError, ValueError) as error:
        raise CaptureError(f"{path!a}: the header of the ATB dump lacks dtype or dims, or they are no numbers") from error
    if number not in TYPES or any(dim < 0 or dim > 1 << 40 for dim in dims):
        raise CaptureError(f"{path!a}: data type {number} with dims {dims} is not known here; known are {', '.join(map(str, TYPES))}")
    dtype = DTYPES[TYPES[number]]
    needed, body = prod(dims) * torch.empty(0, dtype=dtype).element_size(), bytearray(data[end + len(END) :])
    if len(body) < needed:
        raise CaptureError(f"{path!a}: {TYPES[number]} {dims} needs {needed} bytes; {len(body)} are there: the file is cut")
    if not needed:
        return torch.empty(dims, dtype=dtype)
    return torch.frombuffer(body, dtype=torch.uint8)[:needed].view(dtype).reshape(dims)
