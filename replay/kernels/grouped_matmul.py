"""Grouped matrix product: rows in groups, each group with the weight of its expert.

Source: npu_grouped_matmul, group_list_type 0 (running ends) and 1 (sizes)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.base import Argument, Fault, Kernel, Randoms, shaped, size, storage
from replay.result import Words
from replay.tensors import F64, Case, Value, name_of, rounded

F32 = torch.float32


def ends_of(case: Case) -> list[int]:
    """Row at which each group ends."""
    listed = case["group_list"].long()
    return [int(n) for n in (listed.cumsum(0) if case.text("group_list_type") == "sizes" else listed)]


def experts_of(ends: list[int], rows: int) -> Tensor:
    """Expert of each row; -1 for a row of no group. int64 [rows]"""
    out, start = torch.full((rows,), -1), 0
    for expert, end in enumerate(ends):
        out[start : max(start, min(end, rows))] = expert
        start = max(start, min(end, rows))
    return out


def _product(x: Tensor, weight: Tensor, experts: Tensor, kind: torch.dtype = F64) -> Tensor:
    out = torch.zeros(x.shape[0], weight.shape[-1], dtype=kind)
    for expert in experts.unique().tolist():
        if expert >= 0:
            mine = experts == expert
            out[mine] = x[mine].to(kind) @ weight[expert].to(kind)
    return out


class GroupedMatMul(Kernel):
    name = "grouped_matmul"
    title = Words("Grouped matrix product of experts", "分组矩阵乘 GroupedMatMul")
    source = "npu_grouped_matmul"
    operators = ("npu_grouped_matmul",)
    suspects = (("group-shift", {}),)
    inputs = (
        Argument("x", "[rows, K], the rows of a group together", needed=True), Argument("weight", "[experts, K, N]", needed=True),
        Argument("group_list", "[experts]", needed=True),
    )  # fmt: skip
    params = (Argument("group_list_type", "ends (0) or sizes (1)", "ends"),)

    def check(self, case: Case) -> Case:
        case = super().check(case)
        x, weight = shaped(case, "x", "rows K"), shaped(case, "weight", "experts K N")
        groups = shaped(case, "group_list", "experts")
        if case.text("group_list_type") not in ("ends", "sizes"):
            raise SpecError(f"grouped_matmul: group_list_type must be ends or sizes; found {case.text('group_list_type')!a}")
        if x.shape[1] != weight.shape[1] or len(groups) != weight.shape[0]:
            raise SpecError(f"grouped_matmul: x {list(x.shape)}, weight {list(weight.shape)} and {len(groups)} groups do not go together")
        return case

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        rows, k, n = size(sizes, "tokens", 96), size(sizes, "k", 512), size(sizes, "n", 128)
        experts, dtype, randoms = size(sizes, "experts", 8, high=1024), storage(sizes), Randoms(seed)
        cuts = randoms.integers(0, rows + 1, experts - 1).sort().values
        ends = torch.cat([cuts, torch.tensor([rows])])
        tensors = {
            "x": randoms.normal(rows, k).to(dtype), "weight": (randoms.normal(experts, k, n) / k**0.5).to(dtype), "group_list": ends,
        }  # fmt: skip
        return Case(self.name, tensors)

    def reference(self, case: Case) -> Tensor:
        return _product(case["x"], case["weight"], experts_of(ends_of(case), case["x"].shape[0]))

    def again(self, case: Case) -> Tensor:
        """All products with all experts, and of each row the one that counts, chosen by a matrix of ones and zeros."""
        experts = experts_of(ends_of(case), case["x"].shape[0])
        chosen = torch.nn.functional.one_hot(experts.clamp(min=0), case["weight"].shape[0]).to(F64) * (experts >= 0)[:, None]
        return torch.einsum("mk,ekn,me->mn", case["x"].to(F64), case["weight"].to(F64), chosen)

    def clean(self, case: Case, variant: int) -> Tensor:
        dtype, k = case["x"].dtype, case["x"].shape[1]
        experts, tile = experts_of(ends_of(case), case["x"].shape[0]), (k, max(1, k // 2), max(1, k // 4))[variant % 3]
        parts = [_product(case["x"][:, at : at + tile], case["weight"][:, at : at + tile], experts, F32) for at in range(0, k, tile)]
        return torch.stack(parts).sum(0).to(dtype)

    def places(self, case: Case) -> Tensor:
        return torch.arange(case["x"].shape[0])

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        return list(_faults(case))

    def bounds(self, case: Case) -> list[tuple[str, bool, str]]:
        ends, rows = ends_of(case), case["x"].shape[0]
        grows = all(a <= b for a, b in zip([0, *ends], ends, strict=False))
        return [("group_list grows and ends with the number of rows", grows and ends[-1] == rows, f"group_list ends at {ends[-1]}, rows {rows}")]

    def facts(self, case: Case) -> dict[str, Value]:
        ends = ends_of(case)
        return {
            "x_last": case["x"].shape[1], "weight_last": case["weight"].shape[2], "groups": len(ends), "M": case["x"].shape[0],
            "N": case["weight"].shape[2], "group_list_last": ends[-1], "dtype": name_of(case["x"].dtype),
            "group_list_nondecreasing": all(a <= b for a, b in zip([0, *ends], ends, strict=False)),
        }  # fmt: skip

    def sizes(self, case: Case) -> dict[str, int]:
        return {"rows": case["x"].shape[0], "k": case["x"].shape[1], "n": case["weight"].shape[2], "experts": case["weight"].shape[0]}


def _faults(case: Case) -> Iterator[Fault]:
    x, weight, rows = case["x"], case["weight"], case["x"].shape[0]
    ends, count = ends_of(case), case["weight"].shape[0]
    experts = experts_of(ends, rows)

    def by(other: Tensor) -> Tensor:
        return _product(x, weight, other)

    for shift in (1, -1, 2, -2):
        if shift % count:
            moved = torch.where(experts >= 0, (experts + shift) % count, experts)
            yield Fault("group-shift", {"by": shift}, lambda moved=moved: by(moved))
    listed = [int(n) for n in case["group_list"]]
    if case.text("group_list_type") == "ends":
        yield Fault("group-list-sizes", {}, lambda: by(experts_of([sum(listed[: n + 1]) for n in range(count)], rows)))
    else:
        yield Fault("group-list-ends", {}, lambda: by(experts_of(listed, rows)))
    yield Fault("group-first", {}, lambda: by(torch.zeros_like(experts)))
    last = torch.where(experts == int(experts.max()), -1, experts)
    yield Fault("group-last-missing", {}, lambda: by(last))
    for cut in (8, 16, 32, 64, 128):
        if cut < x.shape[1]:
            yield Fault("k-cut", {"columns": cut}, lambda cut=cut: _product(x[:, :-cut], weight[:, :-cut], experts))
    for dtype in (torch.float16, torch.bfloat16):
        for tile in (32, 64, 128):
            yield Fault(
                "accumulation", {"dtype": name_of(dtype), "tile": tile}, lambda d=dtype, t=tile: _narrow(x, weight, experts, d, t), precision=True
            )


def _narrow(x: Tensor, weight: Tensor, experts: Tensor, accumulate: torch.dtype, tile: int) -> Tensor:
    out = torch.zeros(x.shape[0], weight.shape[-1])
    for start in range(0, x.shape[1], tile):
        step = _product(x[:, start : start + tile], weight[:, start : start + tile], experts, F32)
        out = rounded(out + rounded(step, accumulate), accumulate)
    return out.to(F64)
