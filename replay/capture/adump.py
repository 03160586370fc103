"""Dumps of CANN (adump, aclDump): exception dumps, overflow dumps and data dumps of operators.

    u64 little-endian length | protobuf DumpData | bytes of the inputs, the outputs, the buffers, the workspaces, each exactly `size`

Written from the public layout of the message (toolkit.dump.DumpData); needs no protobuf and no CANN. Exception dumps of single operators
write no data type and often no shape: the type is then told from the bytes. Outputs of an exception dump are what the core had written
when it died: they are marked and never scored."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

import msgspec

from replay.errors import CaptureError

if TYPE_CHECKING:
    from torch import Tensor

TYPES = {
    0: "", 1: "float32", 2: "float16", 3: "int8", 4: "uint8", 6: "int16", 7: "int32", 8: "int64", 9: "uint32", 10: "uint64", 11: "bool",
    12: "float64", 27: "bfloat16",
}  # fmt: skip
"""Numbers of toolkit.dump.OutputDataType; empty: undefined."""
ROLES = {1: "general", 2: "input", 3: "output", 4: "workspace", 5: "ascendc-log", 6: "mc2", 7: "tiling", 10: "overflow", 12: "shape"}
HEADER = 64 << 20
ENOUGH = 1 << 16
"""Bytes that the type is told from."""


class DumpTensor(msgspec.Struct):
    """One tensor of a dump."""

    dtype: str
    """Empty where the dump does not say it."""
    shape: list[int]
    size: int
    offset: int
    """Where its bytes begin in the file."""
    format: int = 2
    role: str = ""
    address: int = 0
    missing: int = 0
    """Bytes that the file no longer holds."""


class Dump(msgspec.Struct):
    path: str
    version: str = ""
    time: int = 0
    op_name: str = ""
    attributes: dict[str, str] = {}
    message: str = ""
    """Text of the crash, [AIC_INFO] lines and all, where a newer CANN put it into the dump."""
    inputs: list[DumpTensor] = []
    outputs: list[DumpTensor] = []
    problems: list[str] = []
    exception: bool = False
    """Its outputs are partial."""

    def tensor(self, name: str, dtype: str = "") -> Tensor:
        """`input.0`, `output.1`; `dtype` where the dump does not say it (told from the bytes where neither does). Raises CaptureError."""
        group, _, number = name.partition(".")
        listed = {"input": self.inputs, "output": self.outputs}.get(group)
        if listed is None or not number.isdecimal() or int(number) >= len(listed):
            raise CaptureError(f"{self.path!a} has {len(self.inputs)} inputs and {len(self.outputs)} outputs; {name!a} is none of them")
        return self._tensor(listed[int(number)], name, dtype)

    def _tensor(self, one: DumpTensor, name: str, dtype: str) -> Tensor:
        import torch

        from replay.tensors import dtype_named

        if one.missing:
            raise CaptureError(f"{self.path!a}: {name} lacks {one.missing} of {one.size} bytes: the file is cut")
        if one.format == 29:
            raise CaptureError(f"{self.path!a}: {name} is in the format FRACTAL_NZ, which is not converted here; dump it as ND")
        with open(self.path, "rb") as stream:
            stream.seek(one.offset)
            data = bytearray(stream.read(one.size))
        wanted = one.dtype or dtype or guessed(bytes(data[:ENOUGH]), one)
        kind = dtype_named(wanted) if wanted else None
        if kind is None:
            raise CaptureError(f"{self.path!a}: the data type of {name} is not in the dump and cannot be told from {one.size} bytes: give it")
        item = torch.empty(0, dtype=kind).element_size()
        flat = torch.frombuffer(data, dtype=torch.uint8)[: one.size // item * item].view(kind) if data else torch.empty(0, dtype=kind)
        count = prod(one.shape)
        if not one.shape:
            return flat
        if flat.numel() < count:
            raise CaptureError(f"{self.path!a}: {name} has {one.size} bytes; {wanted} {one.shape} needs {count * item}")
        return flat[:count].reshape(one.shape)


def read(path: str) -> Dump:
    """The description of a dump; bytes are read when a tensor is asked for. Raises CaptureError."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(8)
            total = stream.seek(0, 2)
            length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
            if not 0 < length <= min(total - 8, HEADER):
                raise CaptureError(f"{path!a} is no CANN dump: its header is said to have {length} bytes, the file has {total}")
            stream.seek(8)
            header = stream.read(length)
    except OSError as error:
        raise CaptureError(f"the dump {path!a} cannot be read: {error.strerror or error}") from error
    try:
        return described(path, header, total)
    except ValueError as error:
        raise CaptureError(f"{path!a} is no CANN dump: its header does not decode ({error})") from error


def described(path: str, header: bytes, total: int) -> Dump:
    """A dump from its header. Raises ValueError for what is no protobuf."""
    dump = Dump(path)
    for field, value in _fields(header):
        if isinstance(value, int):
            if field == 2:
                dump.time = value
        elif field == 1:
            dump.version = value.decode("utf-8", "replace")
        elif field == 3:
            dump.outputs.append(_described(value, True))
        elif field == 4:
            dump.inputs.append(_described(value, False))
        elif field == 6:
            dump.op_name = value.decode("utf-8", "replace")
        elif field == 7:
            pair = {number: part.decode("utf-8", "replace") for number, part in _fields(value) if isinstance(part, bytes)}
            dump.attributes[pair.get(1, "")] = pair.get(2, "")
        elif field == 9:
            dump.message = value.decode("utf-8", "replace")
    offset = 8 + len(header)
    for one in (*dump.inputs, *dump.outputs):
        one.offset = offset
        one.missing = max(0, min(one.size, offset + one.size - total))
        if one.missing:
            dump.problems.append(f"{one.missing} bytes of a tensor are missing: the file is cut")
        offset += one.size
    name = path.rpartition("/")[2]
    dump.exception = name.startswith("exception_info.") or ".custom." in name or bool(dump.message) or "exception" in dump.message.lower()
    return dump


def _described(data: bytes, output: bool) -> DumpTensor:
    """Field numbers differ between outputs and inputs."""
    size_at, original_at, address_at = (6, 7, 9) if output else (5, 6, 8)
    numbers: dict[int, int] = {}
    shape: list[int] = []
    for field, value in _fields(data):
        if isinstance(value, int):
            numbers[field] = value
        elif field == 3 or (field == original_at and not shape):
            shape = _shape(value) or shape
    kind = TYPES.get(numbers.get(1, 0), f"type {numbers.get(1, 0)}")
    role = "" if output else ROLES.get(numbers.get(11, 0), "")
    size = numbers.get(size_at, 0)
    if size > 1 << 50 or len(shape) > 32 or any(dim > 1 << 40 for dim in shape):
        raise ValueError("a size that no tensor has")
    return DumpTensor(kind, shape, size, 0, numbers.get(2, 2), role, numbers.get(address_at, 0))


def _shape(data: bytes) -> list[int]:
    dims: list[int] = []
    for field, value in _fields(data):
        if field != 1:
            continue
        if isinstance(value, int):
            dims.append(value)
        else:
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                dims.append(number)
    return dims


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number breaks off")
        byte = data[at]
        result |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return result, at


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protobuf message in order. Raises ValueError."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            number, at = _varint(data, at)
            yield field, number
        elif wire in (1, 2, 5):
            length = {1: 8, 5: 4}.get(wire, 0)
            if wire == 2:
                length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("a field breaks off")
            yield field, data[at : at + length]
            at += length
        else:
            raise ValueError(f"wire type {wire}")


def guessed(data: bytes, one: DumpTensor) -> str:
    """The type of a tensor of which only size and shape are known; empty where it cannot be told.

    Activations span about 8 octaves (between their 1st and 99th percentile) in the right type; bits of bfloat16 read as float16 span about
    one, those of float16 read as bfloat16 about 60. Small whole numbers are int32 or int64."""
    import torch

    count = prod(one.shape) if one.shape else 0
    item = one.size // count if count and one.size % count == 0 else 0
    whole = len(data) // 8 * 8
    if whole:
        words = torch.frombuffer(bytearray(data[:whole]), dtype=torch.int64)
        if item in (0, 8) and bool(((words >= -1) & (words < 1 << 31)).all()):
            return "int64"
        halves = words.view(torch.int32)
        if item in (0, 4) and bool(((halves >= -1) & (halves < 1 << 28)).all()):
            return "int32"
    if item == 4:
        return "float32"
    if item == 1:
        return "int8"
    if item not in (0, 2):
        return ""
    best = []
    for name, kind in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        values = torch.frombuffer(bytearray(data[: len(data) // 2 * 2]), dtype=kind).float()
        finite = torch.isfinite(values)
        sizes = values[finite & (values != 0)].abs()
        if len(sizes) < 8:
            continue
        octaves = sizes.log2()
        span = float(octaves.quantile(0.99) - octaves.quantile(0.01))
        best.append((abs(span - 8) + 40 * (1 - float(finite.float().mean())), name))
    return min(best)[1] if best else ""
