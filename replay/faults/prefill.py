"""How attention over a prompt goes wrong: masks missing, inverted, shifted, aligned to the other corner or ignored beyond some key, windows,
keys left out, and the faults of arithmetic that all attention shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from replay.faults.paged import SCALES, SHIFTS
from replay.kernels.attention import tiled
from replay.kernels.base import Fault
from replay.kernels.prefill_attention import hidden
from replay.tensors import F64, Case, name_of

EDGES = tuple(sorted({128 * n for n in range(1, 17)} | {1 << bits for bits in range(6, 17)}))
WINDOWS = tuple(1 << bits for bits in range(5, 15))


def grid(case: Case, observed: Tensor | None) -> list[Fault]:
    shared = _Logits(case)
    return [*_masks(case, shared), *_keys(case, shared), *_arithmetic(case, shared)]


class _Logits:
    """Logits of every head against all keys, computed once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.kind = torch.float32 if case["query"].element_size() == 2 else F64
        self.group = case["query"].shape[1] // case["key"].shape[1]
        self.q, self.k, self.v = (case[name].to(self.kind).transpose(0, 1) for name in ("query", "key", "value"))
        self._logits: Tensor | None = None

    def head_of(self, modulo: bool) -> Tensor:
        heads = torch.arange(len(self.q))
        return heads % len(self.k) if modulo else heads // self.group

    def logits(self, columns: int | None = None, modulo: bool = False) -> Tensor:
        """[heads, S, Sk]"""
        if columns is not None or modulo:
            return self.q[..., :columns] @ self.k[self.head_of(modulo)][..., :columns].transpose(-1, -2)
        if self._logits is None:
            self._logits = self.q @ self.k[self.head_of(False)].transpose(-1, -2)
        return self._logits

    def attend(self, mask: Tensor, scale: float | None = None, columns: int | None = None, modulo: bool = False) -> Tensor:
        """[S, heads, v_dim], float64"""
        logits = self.logits(columns, modulo) * (self.case.number("scale") if scale is None else scale)
        weights = torch.softmax(logits.masked_fill(mask, float("-inf")), -1)
        return (weights @ self.v[self.head_of(modulo)]).transpose(0, 1).to(F64)


def _masks(case: Case, shared: _Logits) -> Iterator[Fault]:
    true, keys = hidden(case), torch.arange(case["key"].shape[0])

    def masked(name: str, params: dict[str, int | float | str | bool], mask: Callable[[], Tensor], prior: float = 1.0) -> Iterator[Fault]:
        wrong = mask()
        wrong = wrong & ~wrong.all(-1, keepdim=True)
        if not torch.equal(wrong, true):
            yield Fault(name, params, lambda: shared.attend(wrong), prior=prior)

    kind = case.text("mask")
    yield from masked("mask-missing", {}, lambda: torch.zeros_like(true))
    yield from masked("mask-inverted", {}, lambda: ~true)
    if kind in ("bottom-right", "top-left"):
        other = "top-left" if kind == "bottom-right" else "bottom-right"
        yield from masked(f"mask-{other}", {}, lambda: hidden(case, other))
        for by in SHIFTS:
            yield from masked("mask-shift", {"by": by}, lambda by=by: hidden(case, shift=by), 0.9 if abs(by) == 1 else 0.8)
        for tokens in WINDOWS:
            yield from masked("mask-window", {"tokens": tokens}, lambda tokens=tokens: hidden(case, window=tokens), 0.8)
    else:
        yield from masked("causal-added", {}, lambda: true | hidden(case, "bottom-right"), 0.8)
    for key in EDGES:
        if key < len(keys):
            yield from masked("mask-ignored-past", {"key": key}, lambda key=key: true & (keys < key), 0.9 if key == 512 else 0.8)


def _keys(case: Case, shared: _Logits) -> Iterator[Fault]:
    true, keys = hidden(case), torch.arange(case["key"].shape[0])
    for limit in (*EDGES, *(len(keys) - by for by in (1, 2, 8, 16))):
        if 0 < limit < len(keys):
            mask = true | (keys >= limit)
            mask = mask & ~mask.all(-1, keepdim=True)
            yield Fault("keys-clamp", {"limit": limit}, lambda mask=mask: shared.attend(mask), prior=0.7)


def _arithmetic(case: Case, shared: _Logits) -> Iterator[Fault]:
    true, scale = hidden(case), case.number("scale")
    yield Fault("scale-missing", {}, lambda: shared.attend(true, 1.0))
    yield Fault("uniform-average", {}, lambda: shared.attend(true, 0.0))
    yield Fault("uniform-average", {"mask": "none"}, lambda: shared.attend(torch.zeros_like(true), 0.0), prior=0.9)
    for value in SCALES:
        if abs(value / scale - 1) > 1e-3:
            yield Fault("scale", {"value": round(value, 9)}, lambda value=value: shared.attend(true, value), prior=0.8)
    for columns in range(16, case["query"].shape[-1], 16):
        yield Fault("head-dim-cut", {"columns": columns}, lambda columns=columns: shared.attend(true, columns=columns), prior=0.9)
    if 1 < len(shared.k) < len(shared.q):
        yield Fault("heads-modulo", {}, lambda: shared.attend(true, modulo=True))
    for dtype in (torch.float16, torch.bfloat16):
        for tile in (64, 128, 256):
            yield Fault("accumulation", {"dtype": name_of(dtype), "tile": tile}, lambda d=dtype, t=tile: _accumulated(case, d, t), precision=True)


def _accumulated(case: Case, accumulate: torch.dtype, tile: int) -> Tensor:
    group = case["query"].shape[1] // case["key"].shape[1]
    k, v = (case[name].transpose(0, 1).repeat_interleave(group, 0) for name in ("key", "value"))
    q, dtype = case["query"].transpose(0, 1), case["query"].dtype
    return tiled(q, k, v, case.number("scale"), dtype, tile, True, hidden(case), accumulate).transpose(0, 1).to(F64)
