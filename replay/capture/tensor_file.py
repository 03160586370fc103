"""One tensor out of a file of any of the known kinds, told apart by their first bytes, never by their names."""

from __future__ import annotations

import os
from math import prod
from typing import TYPE_CHECKING

from replay.errors import CaptureError
from replay.spec import TensorFile

if TYPE_CHECKING:
    from torch import Tensor

LARGEST = 1 << 36
"""Bytes of a dump."""


def kind(path: str) -> str:
    """pt, npy, atb, adump, safetensors, core or raw. Raises CaptureError where the file cannot be read."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(4096)
        size = os.path.getsize(path)
    except OSError as error:
        raise CaptureError(f"the dump {path!a} cannot be read: {error.strerror or error}") from error
    return kind_of(head, size)


def kind_of(head: bytes, size: int) -> str:
    """The same from the first bytes and the size of a file."""
    if head.startswith(b"PK\x03\x04") or head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04"):
        return "pt"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head.startswith(b"$Version="):
        return "atb"
    if head.startswith(b"\x7fELF"):
        return "core"
    length = int.from_bytes(head[:8], "little")
    if 2 <= length <= size - 8 and head[8:9] == b"{":
        return "safetensors"
    # a CANN dump: the length of its header, then field 1 of DumpData, its version "1.0" or "2.0"
    if 4 <= length <= size - 8 and head[8:10] == b"\x0a\x03" and head[11:12] == b".":
        return "adump"
    return "raw"


def load(source: TensorFile) -> Tensor:
    """Raises CaptureError: unreadable, of no known kind, refused, or not holding what was asked for."""
    path = source.file
    what = kind(path)
    if what == "core":
        raise CaptureError(f"{path!a} is an ELF core (aic_err_detail_dump): open it with msDebug; it holds no tensors that can be read here")
    if what == "pt":
        tensor = _pt(path)
    elif what == "npy":
        tensor = _npy(path)
    elif what == "atb":
        from replay.capture import atb

        tensor = atb.read(path)
    elif what == "adump":
        from replay.capture import adump

        tensor = adump.read(path).tensor(source.name or "input.0", source.dtype)
    elif what == "safetensors":
        tensor = _safetensors(path, source.name)
    else:
        tensor = _raw(path, source)
    return _reshaped(tensor, source)


def _reshaped(tensor: Tensor, source: TensorFile) -> Tensor:
    if source.shape is None or list(tensor.shape) == source.shape:
        return tensor
    if prod(source.shape) != tensor.numel():
        raise CaptureError(f"{source.file!a} holds {tensor.numel()} values; the shape {source.shape} needs {prod(source.shape)}")
    return tensor.reshape(source.shape)


def _pt(path: str) -> Tensor:
    """A tensor of torch.save, without running anything that is in the file."""
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        first = " ".join(str(error).split())[:300]
        if "weights_only" in first or "Unsupported" in first or "GLOBAL" in first:
            reason = (
                "it holds more than plain tensors, and reading that would run code out of the file; save single tensors with torch.save(t.cpu(), ...)"
            )
        else:
            reason = first
        raise CaptureError(f"{path!a} is refused: {reason}") from error
    if isinstance(found, (list, tuple)) and len(found) == 1:
        found = found[0]
    if not isinstance(found, torch.Tensor):
        raise CaptureError(f"{path!a} holds a {type(found).__name__}, not one tensor: save the tensor alone")
    return found.detach()


def _npy(path: str) -> Tensor:
    import numpy
    import torch

    try:
        return torch.from_numpy(numpy.load(path, allow_pickle=False))
    except (ValueError, TypeError, OSError, EOFError) as error:
        raise CaptureError(f"{path!a} is no array that can be read: {' '.join(str(error).split())[:200]}") from error


def _safetensors(path: str, name: str) -> Tensor:
    from replay import safe_file

    try:
        tensors = safe_file.load(path)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path!a}: {error}") from error
    if not name and len(tensors) == 1:
        return next(iter(tensors.values()))
    if name not in tensors:
        raise CaptureError(f"{path!a} has no tensor {name!a}; it has {', '.join(list(tensors)[:20]) or 'none'}")
    return tensors[name]


def _raw(path: str, source: TensorFile) -> Tensor:
    import torch

    from replay.tensors import dtype_named

    dtype = dtype_named(source.dtype) if source.dtype else None
    if dtype is None or source.shape is None:
        raise CaptureError(f"{path!a} is of no known kind (.pt, .npy, .safetensors, CANN or ATB dump); of raw bytes give dtype and shape")
    size = os.path.getsize(path)
    if size > LARGEST:
        raise CaptureError(f"{path!a} has {size} bytes; more than {LARGEST} are not read")
    with open(path, "rb") as stream:
        data = bytearray(stream.read())
    needed = prod(source.shape) * torch.empty(0, dtype=dtype).element_size()
    if len(data) < needed:
        raise CaptureError(f"{path!a} has {len(data)} bytes; {source.dtype} {source.shape} needs {needed}: the file is cut")
    return torch.frombuffer(data, dtype=torch.uint8)[:needed].view(dtype).reshape(source.shape)
