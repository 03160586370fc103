"""Matrix product, with or without a bias.

Source: definition; aclnnMatmul, aclnnAddmm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.base import Argument, Fault, Kernel, Randoms, Sample, shaped, size, storage
from replay.result import Words
from replay.tensors import F64, Case, Value, name_of, rounded

F32 = torch.float32
ROWS, COLUMNS = 16, 256
CHUNK = 8
"""Columns of K in which it is looked for where a sum ends."""


def weight_of(case: Case) -> Tensor:
    """[K, N]"""
    return case["weight"].T if case.flag("transposed") else case["weight"]


class MatMul(Kernel):
    name = "matmul"
    title = Words("Matrix product", "矩阵乘 MatMul")
    source = "definition"
    operators = ("aclnnMatmul",)
    suspects = (("k-cut", {}),)
    inputs = (Argument("x", "[M, K]", needed=True), Argument("weight", "[K, N]", needed=True), Argument("bias", "[N]"))
    params = (Argument("transposed", "the weight is [N, K]", False),)

    def check(self, case: Case) -> Case:
        if "x" in case.tensors and case["x"].dim() > 2:
            case = case.having({"x": case["x"].flatten(0, -2)})
        case = super().check(case)
        x, _ = shaped(case, "x", "M K"), shaped(case, "weight", "K N")
        weight = weight_of(case)
        if x.shape[1] != weight.shape[0]:
            raise SpecError(f"matmul: x is {list(x.shape)}, the weight {list(weight.shape)}: the inner sizes differ")
        bias = case.get("bias")
        if bias is not None and bias.numel() != weight.shape[1]:
            raise SpecError(f"matmul: the bias must have {weight.shape[1]} values; found {bias.numel()}")
        return case

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        m, k, n = size(sizes, "m", 16), size(sizes, "k", 4096), size(sizes, "n", 256)
        dtype, randoms = storage(sizes), Randoms(seed)
        tensors = {"x": randoms.normal(m, k).to(dtype), "weight": (randoms.normal(k, n) / k**0.5).to(dtype)}
        if sizes.get("bias", True):
            tensors["bias"] = randoms.normal(n).to(dtype)
        return Case(self.name, tensors)

    def reference(self, case: Case) -> Tensor:
        out = case["x"].to(F64) @ weight_of(case).to(F64)
        bias = case.get("bias")
        return out if bias is None else out + bias.to(F64).flatten()

    def again(self, case: Case) -> Tensor:
        """As a sum of outer products, one for each column of K."""
        x, weight = case["x"].to(F64), weight_of(case).to(F64)
        out = torch.zeros(x.shape[0], weight.shape[1], dtype=F64)
        for k in range(x.shape[1]):
            out += x[:, k, None] * weight[k]
        bias = case.get("bias")
        return out if bias is None else out + bias.to(F64).flatten()

    def clean(self, case: Case, variant: int) -> Tensor:
        x, weight, dtype = case["x"], weight_of(case), case["x"].dtype
        tile = (256, 512, 1024)[variant % 3]
        out = torch.zeros(x.shape[0], weight.shape[1])
        for start in range(0, x.shape[1], tile):
            out += x[:, start : start + tile].to(F32) @ weight[start : start + tile].to(F32)
        bias = case.get("bias")
        if bias is not None:
            out = (rounded(out, dtype) if variant % 4 == 3 else out) + bias.to(F32).flatten()
        return out.to(dtype)

    def places(self, case: Case) -> Tensor:
        return torch.arange(case["x"].shape[0])

    def observe(self, case: Case, outputs: Mapping[str, Tensor]) -> Tensor:
        return super().observe(case, outputs).flatten(0, -2)

    def sample(self, case: Case, errors: Tensor) -> Sample:
        weight = weight_of(case)
        rows, columns = case["x"].shape[0], weight.shape[1]
        if rows <= ROWS and columns <= COLUMNS:
            return super().sample(case, errors)
        half = ROWS // 2
        chosen = torch.cat([torch.linspace(0, rows - 1, min(half, rows)).long(), errors.argsort(descending=True)[:half]]).unique()
        some = torch.linspace(0, columns - 1, min(columns, COLUMNS)).long()
        parts: dict[str, Tensor | None] = {"x": case["x"][chosen], "weight": weight[:, some]}
        bias = case.get("bias")
        if bias is not None:
            parts["bias"] = bias.flatten()[some]
        return Sample(case.having(parts, transposed=False, sampled=columns), lambda out: out[chosen][:, some])

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        return list(_faults(case, observed, self.reference(case)))

    def facts(self, case: Case) -> dict[str, Value]:
        weight = weight_of(case)
        return {"M": case["x"].shape[0], "K": weight.shape[0], "N": weight.shape[1], "dtype": name_of(case["x"].dtype)}

    def sizes(self, case: Case) -> dict[str, int]:
        weight = weight_of(case)
        return {"m": case["x"].shape[0], "k": weight.shape[0], "n": weight.shape[1]}


def _faults(case: Case, observed: Tensor | None, expected: Tensor) -> Iterator[Fault]:
    x, weight, bias = case["x"].to(F64), weight_of(case).to(F64), case.get("bias")
    columns = x.shape[1]

    def without(cut: int) -> Tensor:
        return expected - x[:, columns - cut :] @ weight[columns - cut :]

    for cut in dict.fromkeys(
        [
            *_end_read_back(x, weight, expected, observed),
            *(8 * 2**n for n in range(10)),
            columns - 65535,
            columns - 65536,
            columns % 64,
            columns % 256,
        ]
    ):
        if 0 < cut < columns:
            yield Fault("k-cut", {"columns": cut}, lambda cut=cut: without(cut), prior=1.0 if cut % 16 == 0 else 0.9)
    if bias is not None:
        plain = expected - bias.to(F64).flatten()
        yield Fault("bias-missing", {}, lambda: plain)
        yield Fault("bias-twice", {}, lambda: expected + bias.to(F64).flatten())
    if weight.shape[1] % 16 == 0 and "sampled" not in case.params:
        nz = weight.reshape(weight.shape[1] // 16, columns, 16).permute(1, 0, 2).reshape(columns, -1)
        yield Fault("weight-nz", {}, lambda: expected + x @ (nz - weight))
        other = weight.reshape(weight.shape[1], columns).T
        yield Fault("weight-transposed", {}, lambda: expected + x @ (other - weight))
    for dtype in (torch.float16, torch.bfloat16):
        for tile in (16, 32, 64, 128, 256):
            yield Fault("accumulation", {"dtype": name_of(dtype), "tile": tile}, lambda d=dtype, t=tile: _narrow(case, d, t), precision=True)


def _end_read_back(x: Tensor, weight: Tensor, expected: Tensor, observed: Tensor | None) -> list[int]:
    """How many columns of K are missing at the end, from running sums in steps of CHUNK."""
    if observed is None or x.shape[1] < 2 * CHUNK or not torch.isfinite(observed).all():
        return []
    columns = x.shape[1]
    best, at, missing = float("inf"), 0, torch.zeros_like(expected)
    for cut in range(CHUNK, columns, CHUNK):
        missing = missing + x[:, columns - cut : columns - cut + CHUNK] @ weight[columns - cut : columns - cut + CHUNK]
        error = float((expected - missing - observed).square().mean())
        if error < best:
            best, at = error, cut
    return [at]


def _narrow(case: Case, accumulate: torch.dtype, tile: int) -> Tensor:
    """Running sums kept in a narrow type."""
    x, weight = case["x"], weight_of(case)
    out = torch.zeros(x.shape[0], weight.shape[1])
    for start in range(0, x.shape[1], tile):
        step = rounded(x[:, start : start + tile].to(F32) @ weight[start : start + tile].to(F32), accumulate)
        out = rounded(out + step, accumulate)
    bias = case.get("bias")
    out = out.to(F64)
    return out if bias is None else out + bias.to(F64).flatten()
