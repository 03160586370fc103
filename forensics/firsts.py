"""First errors, folded: of the processes that begin with the same words one is shown; and the first error of each layer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from forensics.result import FirstError
from rules.model import LAYERS

_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\d+")
_MODULE = re.compile(r"\[(?:ERROR|EVENT|WARNING|INFO|CRITICAL|TRACE)\] ?(?P<module>[A-Z][A-Z0-9_]{1,15})\(")
_MODULES = {
    "driver": ("DRV", "HDC", "DEVMM", "KERNEL"),
    "firmware": ("TS", "TSCH", "IMP", "LP", "TSDUMP"),
    "device": ("CCECPU", "AICPU", "TDT"),
    "runtime": ("RUNTIME", "ASCENDCL"),
    "operator": ("TEFUSION", "TBE", "OP", "CCE", "ASCENDCKERNEL"),
    "collective": ("HCCL", "HCCP", "ROCE", "HIXL"),
    "framework": ("GE", "FE", "FMK", "ME", "MD"),
    "application": ("APP",),
}
_LAYER = {module: layer for layer, modules in _MODULES.items() for module in modules}
"""Module of a plog line -> the layer that speaks."""
_KERNEL = re.compile(
    r"\[ascend\]|\[(?:drv_pcie|devdrv|devmm|hdcdrv|trs_drv|tsdrv|dms_module)\]|Call Trace:|Kernel panic|Out of memory: Kill|kernel: "
)
_PYTHON = re.compile(r"Traceback \(most recent call last\)|^(?:[\w.]{1,120}\.)?[A-Z]\w{1,60}(?:Error|Exception): ")


class Shape(Protocol):
    """What is needed of an error shape (forensics.ingest.ErrorShape has it)."""

    file: str
    line: int
    text: str
    ts: int | None


def layer_of(text: str) -> str:
    """The layer that an error line is from; empty where it does not say."""
    if seen := _MODULE.search(text, 0, 200):
        return _LAYER.get(seen["module"], "")
    if _KERNEL.search(text):
        return "driver"
    return "framework" if _PYTHON.search(text) else ""


def folded(found: Sequence[FirstError]) -> list[FirstError]:
    """The first errors of processes in order, those that look alike as one, which is the earliest."""
    by_shape: dict[str, FirstError] = {}
    for first in found:
        key = _VARIABLE.sub("#", first.text)
        if key in by_shape:
            by_shape[key].alike += 1
        else:
            by_shape[key] = msgspec.structs.replace(first, layer=layer_of(first.text), alike=0)
    return list(by_shape.values())


def by_layer(found: Sequence[FirstError], shapes: Sequence[Shape]) -> list[FirstError]:
    """The first error of each layer that speaks at all, lowest layer first. Shapes stand in for layers that no process begins with."""
    best: dict[str, FirstError] = {}
    candidates = [*found, *(FirstError("", None, "", shape.ts, shape.file, shape.line, shape.text) for shape in shapes if shape.text)]
    for first in candidates:
        layer = layer_of(first.text)
        if layer and (layer not in best or _at(first) < _at(best[layer])):
            best[layer] = msgspec.structs.replace(first, layer=layer)
    return [best[layer] for layer in LAYERS if layer in best]


def _at(first: FirstError) -> tuple[int, str, int]:
    return (first.ts if first.ts is not None else 1 << 62, first.file, first.line)
