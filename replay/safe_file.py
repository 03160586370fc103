"""safetensors files, read and written with torch alone, so that the worker runs in any Python that has torch. Nothing is ever unpickled.

Layout: length of the header as a 64-bit little-endian number, the header as JSON (name -> dtype, shape, offsets), the bytes of the tensors."""

from __future__ import annotations

import json
import os
import struct
from math import prod

import torch

KINDS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32,
    "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}
HEADER = 16 << 20


def save(tensors: dict[str, torch.Tensor], path: str) -> None:
    """Writes the file whole, then puts it in place."""
    header, offset, kept = {}, 0, []
    for name, tensor in tensors.items():
        plain = tensor.detach().to("cpu").contiguous()
        if plain.dtype not in NAMES:
            raise ValueError(f"{name}: {plain.dtype} cannot be stored")
        size = plain.numel() * plain.element_size()
        header[name] = {"dtype": NAMES[plain.dtype], "shape": list(plain.shape), "data_offsets": [offset, offset + size]}
        offset += size
        kept.append(plain)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{path}.part", "wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for plain in kept:
            if plain.numel():
                stream.write(memoryview(plain.reshape(-1).view(torch.uint8).numpy()))
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(f"{path}.part", path)


def load(path: str, largest: int = 1 << 36) -> dict[str, torch.Tensor]:
    """All tensors of a file. Raises ValueError, with the reason, for what is none or is cut."""
    total = os.path.getsize(path)
    if total > largest:
        raise ValueError(f"{total} bytes are more than {largest}")
    with open(path, "rb") as stream:
        head = stream.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 2 <= length <= min(HEADER, total - 8):
            raise ValueError("no safetensors file: it does not begin with the length of a header")
        try:
            header = json.loads(stream.read(length))
        except (ValueError, RecursionError) as error:
            raise ValueError("no safetensors file: its header is no JSON") from error
        if not isinstance(header, dict):
            raise ValueError("no safetensors file: its header is no mapping")
        start = 8 + length
        return {str(name): _tensor(stream.fileno(), str(name), one, start, total) for name, one in header.items() if name != "__metadata__"}


def _tensor(handle: int, name: str, entry: object, start: int, total: int) -> torch.Tensor:
    try:
        kind, shape, (first, last) = KINDS[entry["dtype"]], entry["shape"], entry["data_offsets"]  # type: ignore[index]
        numbers = [*shape, first, last]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"tensor {name!a}: its entry is incomplete, or of a type that is not known") from error
    if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 48 for n in numbers):
        raise ValueError(f"tensor {name!a}: its shape or place is no list of whole numbers")
    size = prod(shape) * torch.empty(0, dtype=kind).element_size()
    if last - first != size or start + last > total:
        raise ValueError(f"tensor {name!a}: {size} bytes are expected, the file holds {max(0, min(last, total - start) - first)}")
    if not size:
        return torch.empty(shape, dtype=kind)
    data = bytearray(size)
    view = memoryview(data)
    done = 0
    while done < size:
        step = os.preadv(handle, [view[done:]], start + first + done)
        if not step:
            raise ValueError(f"tensor {name!a}: the file ends in it")
        done += step
    return torch.frombuffer(data, dtype=torch.uint8).view(kind).reshape(shape)
