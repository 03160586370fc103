"""The k largest of each row and their indices.

Source: definition; aclnnTopk. The order of equal values is not promised: any index of an equal value is right, once.

The output is [rows, 2, k], float64: values and indices. Indices count as right or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.base import Argument, Fault, Kernel, Randoms, shaped, size, storage
from replay.result import Words
from replay.score import row_errors
from replay.tensors import F64, Case, Value, name_of


def _chosen(x: Tensor, k: int, largest: bool = True) -> Tensor:
    return torch.argsort(x, dim=-1, descending=largest, stable=True)[:, :k]


def packed(values: Tensor, indices: Tensor) -> Tensor:
    return torch.stack([values.to(F64), indices.to(F64)], 1)


class TopK(Kernel):
    name = "topk"
    title = Words("TopK", "TopK")
    source = "definition"
    operators = ("npu_top_k_top_p",)
    suspects = (("index-wrap", {}),)
    inputs = (Argument("x", "[rows, columns]", needed=True),)
    params = (Argument("k", "how many", 50),)

    def check(self, case: Case) -> Case:
        if "x" in case.tensors and case["x"].dim() > 2:
            case = case.having({"x": case["x"].flatten(0, -2)})
        case = super().check(case)
        columns = shaped(case, "x", "rows columns").shape[1]
        if not 1 <= case.integer("k") <= columns:
            raise SpecError(f"topk: k must be 1 to {columns}; found {case.integer('k')}")
        return case

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        rows, columns = size(sizes, "tokens", 4), size(sizes, "columns", 129280)
        x = (3 * Randoms(seed).normal(rows, columns)).to(storage(sizes))
        return Case(self.name, {"x": x}, {"k": size(sizes, "k", min(50, columns))})

    def reference(self, case: Case) -> Tensor:
        index = _chosen(case["x"], case.integer("k"))
        return packed(case["x"].gather(1, index), index)

    def again(self, case: Case) -> Tensor:
        """Row by row with Python's own sort."""
        rows = []
        for row in case["x"].tolist():
            order = sorted(range(len(row)), key=lambda n: (-row[n], n))[: case.integer("k")]
            rows.append([[row[n] for n in order], [float(n) for n in order]])
        return torch.tensor(rows, dtype=F64)

    def clean(self, case: Case, variant: int) -> Tensor:
        return self.reference(case)

    def observe(self, case: Case, outputs: Mapping[str, Tensor]) -> Tensor:
        """Where equal values could be ordered either way, the index of the reference stands for any that is right."""
        if "values" not in outputs or "indices" not in outputs:
            raise SpecError(f"topk: the outputs are to be named values and indices; found {', '.join(outputs) or 'none'}")
        values, indices, x = outputs["values"].flatten(0, -2), outputs["indices"].long().flatten(0, -2), case["x"]
        if values.shape != indices.shape or values.shape != (x.shape[0], case.integer("k")):
            raise SpecError(
                f"topk: values {list(values.shape)} and indices {list(indices.shape)} are expected to be [{x.shape[0]}, {case.integer('k')}]"
            )
        true = _chosen(x, case.integer("k"))
        inside = (indices >= 0) & (indices < x.shape[1])
        equal = inside & (x.gather(1, indices.clamp(0, x.shape[1] - 1)) == x.gather(1, true))
        ordered = indices.sort(-1)
        again = torch.zeros_like(equal).scatter(1, ordered.indices[:, 1:], ordered.values[:, 1:] == ordered.values[:, :-1])
        return packed(values, torch.where(equal & ~again, true, indices))

    def row_errors(self, observed: Tensor, expected: Tensor, weights: Tensor | None) -> Tensor:
        """Of values the relative error, of indices the share that is wrong. [rows, 2]"""
        values = row_errors(observed[:, 0], expected[:, 0])
        return torch.stack([values, (observed[:, 1] != expected[:, 1]).to(F64).mean(-1)], 1)

    def compare(self, observed: Tensor, expected: Tensor, weights: Tensor | None) -> float:
        return float(self.row_errors(observed, expected, weights).mean().sqrt())

    def places(self, case: Case) -> Tensor:
        return torch.arange(case["x"].shape[0])[:, None].expand(-1, 2)

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        return list(_faults(case, observed))

    def facts(self, case: Case) -> dict[str, Value]:
        return {"k": case.integer("k"), "vocab": case["x"].shape[1], "dtype": name_of(case["x"].dtype)}

    def sizes(self, case: Case) -> dict[str, int]:
        return {"rows": case["x"].shape[0], "columns": case["x"].shape[1], "k": case.integer("k")}


def _faults(case: Case, observed: Tensor | None) -> Iterator[Fault]:
    x, k = case["x"], case.integer("k")
    columns = x.shape[1]
    true = _chosen(x, k)
    values = x.gather(1, true)

    def moved(change: Callable[[Tensor], Tensor]) -> Tensor:
        return packed(values, _with_ties(x, values, true, change, observed))

    for modulus in (1 << 16, 1 << 15, 1 << 8, 1 << 17, 1 << 14, 1 << 13):
        if modulus < columns:
            yield Fault("index-wrap", {"modulus": modulus}, lambda modulus=modulus: moved(lambda i: i % modulus))
    if columns > 1 << 15:
        yield Fault("index-wrap", {"modulus": 65536, "signed": "yes"}, lambda: moved(lambda i: (i + 32768) % 65536 - 32768), prior=0.8)
    for dtype in (torch.float16, torch.bfloat16):
        yield Fault("index-dtype", {"dtype": name_of(dtype)}, lambda dtype=dtype: moved(lambda i: _narrow(i, dtype, columns)))
    for by in (1, -1):
        yield Fault("index-shift", {"by": by}, lambda by=by: moved(lambda i: i + by))
    for end in dict.fromkeys(
        [*_end_read_back(observed, columns), *(1 << b for b in range(8, 20)), 65535, columns - columns % 4096, columns - 16, columns - 1]
    ):
        if k <= end < columns:
            yield Fault("range-cut", {"columns": end}, lambda end=end: _of(x[:, :end], k, observed), prior=1.0 if end in (65535, 65536) else 0.8)
    yield Fault("smallest", {}, lambda: _of(x, k, observed, False))
    yield Fault("not-sorted", {}, lambda: _any_order(values, true, observed))


def _of(x: Tensor, k: int, observed: Tensor | None, largest: bool = True) -> Tensor:
    """The k largest or smallest; of equal values the index that was observed."""
    index = _chosen(x, k, largest)
    values = x.gather(1, index)
    if observed is not None:
        seen = observed[:, 1].long()
        inside = (seen >= 0) & (seen < x.shape[1])
        index = torch.where(inside & (x.gather(1, seen.clamp(0, x.shape[1] - 1)) == values), seen, index)
    return packed(values, index)


def _narrow(index: Tensor, dtype: torch.dtype, columns: int) -> Tensor:
    return torch.nan_to_num(index.to(torch.float32).to(dtype).to(torch.float32), posinf=65504.0).long()


def _with_ties(x: Tensor, values: Tensor, true: Tensor, change: Callable[[Tensor], Tensor], observed: Tensor | None) -> Tensor:
    """The changed index of each place; where equal values leave a choice, the one that was observed, if it is a change of any of them."""
    out = change(true)
    if observed is None:
        return out
    seen = observed[:, 1].long()
    for row, place in (out != seen).nonzero().tolist():
        equals, index = (x[row] == values[row, place]).nonzero().flatten(), seen[row, place]
        turned = change(equals)
        # an equal that the change leaves alone stands in `observed` as the index of the reference
        untouched = bool((equals == index).any()) and bool((turned == equals).any())
        if len(equals) > 1 and (untouched or bool((turned == index).any())):
            out[row, place] = index
    return out


def _end_read_back(observed: Tensor | None, columns: int) -> list[int]:
    """The search ended soon after the largest index that was found."""
    if observed is None:
        return []
    last = int(observed[:, 1].max()) + 1
    return [min(columns - 1, -(-last // step) * step) for step in (1, 16, 64, 128, 1024, 4096)] if 0 < last < columns else []


def _any_order(values: Tensor, true: Tensor, observed: Tensor | None) -> Tensor:
    """The right values in the order that was observed; in the order of their indices where nothing was."""
    if observed is not None:
        order, seen = true.sort(-1), observed[:, 1].long()
        place = torch.searchsorted(order.values, seen).clamp(max=true.shape[1] - 1)
        if bool((order.values.gather(1, place) == seen).all()):
            index = order.indices.gather(1, place)
            return packed(values.gather(1, index), true.gather(1, index))
    order = true.sort(-1)
    return packed(values.gather(1, order.indices), order.values)
