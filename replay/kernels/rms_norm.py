"""Root mean square normalisation, with or without a residual added before it.

Source: Zhang and Sennrich (2019); npu_rms_norm, npu_add_rms_norm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.base import Argument, Fault, Kernel, Randoms, Sample, shaped, size, storage
from replay.result import Words
from replay.tensors import F64, Case, Value, name_of, rounded

F32 = torch.float32
ROWS = 96


def _summed(case: Case, kind: torch.dtype = F64) -> Tensor:
    residual = case.get("residual")
    x = case["x"].to(kind)
    return x if residual is None else x + residual.to(kind)


class RmsNorm(Kernel):
    name = "rms_norm"
    title = Words("RMSNorm, with or without residual", "RMSNorm（可带残差）")
    source = "Zhang and Sennrich (2019)"
    operators = ("npu_rms_norm", "npu_add_rms_norm")
    suspects = (("eps-missing", {}), ("gamma-missing", {}))
    inputs = (
        Argument("x", "[rows, columns]", needed=True), Argument("gamma", "[columns]", needed=True),
        Argument("residual", "added to x first, [rows, columns]"),
    )  # fmt: skip
    params = (Argument("eps", "added to the mean of the squares", 1e-6),)

    def check(self, case: Case) -> Case:
        if "x" in case.tensors and case["x"].dim() > 2:
            flat: dict[str, Tensor | None] = {name: case[name].flatten(0, -2) for name in ("x", "residual") if name in case.tensors}
            case = case.having(flat)
        case = super().check(case)
        x, gamma = shaped(case, "x", "rows columns"), shaped(case, "gamma", "columns")
        if gamma.shape[0] != x.shape[1]:
            raise SpecError(f"rms_norm: gamma must have {x.shape[1]} values; found {gamma.shape[0]}")
        residual = case.get("residual")
        if residual is not None and residual.shape != x.shape:
            raise SpecError(f"rms_norm: residual must be {list(x.shape)}; found {list(residual.shape)}")
        return case

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        """Rows of sizes from 1e-4 to 10: the small ones show eps, the large ones overflow."""
        rows, columns = size(sizes, "tokens", 64), size(sizes, "columns", 4096)
        dtype, randoms = storage(sizes), Randoms(seed)
        spread = 10 ** torch.linspace(-4, 1, rows)[:, None] * float(sizes.get("magnitude", 1.0))
        tensors = {"x": (randoms.normal(rows, columns) * spread).to(dtype), "gamma": (1 + 0.1 * randoms.normal(columns)).to(dtype)}
        if sizes.get("residual"):
            tensors["residual"] = (randoms.normal(rows, columns) * spread).to(dtype)
        return Case(self.name, tensors, {"eps": sizes["eps"]} if "eps" in sizes else {})

    def reference(self, case: Case) -> Tensor:
        x = _summed(case)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + case.number("eps")) * case["gamma"].to(F64)

    def again(self, case: Case) -> Tensor:
        """As a vector of length 1 times the root of its number of columns, eps put into the length."""
        x = _summed(case)
        length = (torch.linalg.vector_norm(x, dim=-1, keepdim=True) ** 2 + case.number("eps") * x.shape[-1]).sqrt()
        return x / length * x.shape[-1] ** 0.5 * case["gamma"].to(F64)

    def clean(self, case: Case, variant: int) -> Tensor:
        x, dtype = _summed(case, F32), case["x"].dtype
        if variant % 4 == 3 and case.get("residual") is not None:
            x = rounded(x, dtype)  # the sum goes through memory
        if variant % 2 and x.shape[-1] % 16 == 0:
            mean = x.square().unflatten(-1, (-1, 16)).sum(-2).sum(-1, keepdim=True) / x.shape[-1]
        else:
            mean = x.square().mean(-1, keepdim=True)
        y = x * torch.rsqrt(mean + case.number("eps"))
        if variant % 4 == 2:
            y = rounded(y, dtype)  # normalised values go through the storage type before gamma, as in eager code
        return (y * case["gamma"].to(F32)).to(dtype)

    def places(self, case: Case) -> Tensor:
        return torch.arange(case["x"].shape[0])

    def sample(self, case: Case, errors: Tensor) -> Sample:
        rows = case["x"].shape[0]
        if rows <= ROWS:
            return super().sample(case, errors)
        small = _summed(case).square().mean(-1).argsort()[: ROWS // 4]
        worst = errors.argsort(descending=True)[: ROWS // 4]
        chosen = torch.cat([torch.linspace(0, rows - 1, ROWS // 2).long(), small, worst]).unique()
        parts: dict[str, Tensor | None] = {name: case[name][chosen] for name in ("x", "residual") if name in case.tensors}
        return Sample(case.having(parts), lambda out: out[chosen])

    def observe(self, case: Case, outputs: Mapping[str, Tensor]) -> Tensor:
        return super().observe(case, outputs).flatten(0, -2)

    def facts(self, case: Case) -> dict[str, Value]:
        x, gamma = case["x"], case["gamma"]
        finite = bool(torch.isfinite(x).all())
        return {
            "D": x.shape[-1], "itemsize": x.element_size(), "dtype": name_of(x.dtype), "x_dtype": name_of(x.dtype),
            "gamma_dtype": name_of(gamma.dtype),
            "gamma_defined": True, "has_inf": bool(torch.isinf(x).any()) if not finite else False, "has_nan": bool(torch.isnan(x).any()),
        }  # fmt: skip

    def sizes(self, case: Case) -> dict[str, int]:
        return {"rows": case["x"].shape[0], "columns": case["x"].shape[1]}

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        return list(_faults(case, observed))


def _normed(x: Tensor, mean: Tensor, eps: float, gamma: Tensor) -> Tensor:
    return x * torch.rsqrt(mean + eps) * gamma


def _faults(case: Case, observed: Tensor | None) -> Iterator[Fault]:
    x, gamma, eps, columns = _summed(case), case["gamma"].to(F64), case.number("eps"), case["x"].shape[1]
    mean = x.square().mean(-1, keepdim=True)
    yield Fault("eps-missing", {}, lambda: _normed(x, mean, 0.0, gamma))
    for value in dict.fromkeys([*_eps_read_back(x, mean, gamma, observed), 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12]):
        if abs(value / eps - 1) > 0.02:
            yield Fault("eps", {"value": value}, lambda value=value: _normed(x, mean, value, gamma), prior=0.9)
    for dtype in (torch.float16, torch.bfloat16):
        yield Fault("square-dtype", {"dtype": name_of(dtype)}, lambda dtype=dtype: _narrow_squares(x, eps, gamma, dtype))
    for cut in (8, 16, 32, 64, 128, 256):
        if cut < columns:
            yield Fault("tail-not-normalised", {"columns": cut}, lambda cut=cut: _untouched_tail(x, eps, gamma, cut))
            first = x[:, :-cut].square().sum(-1, keepdim=True) / columns
            yield Fault("mean-over", {"columns": columns - cut}, lambda first=first: _normed(x, first, eps, gamma), prior=0.8)
    for divisor in {1 << (columns - 1).bit_length(), -(-columns // 64) * 64, columns // 2, columns - 1, columns * 2} - {columns}:
        wrong = x.square().sum(-1, keepdim=True) / max(1, divisor)
        yield Fault("mean-divisor", {"columns": divisor}, lambda wrong=wrong: _normed(x, wrong, eps, gamma), prior=0.8)
    yield Fault("gamma-missing", {}, lambda: _normed(x, mean, eps, torch.ones_like(gamma)))
    yield Fault("gamma-plus-one", {}, lambda: _normed(x, mean, eps, gamma + 1))
    centred = x - x.mean(-1, keepdim=True)
    yield Fault("mean-subtracted", {}, lambda: _normed(centred, centred.square().mean(-1, keepdim=True), eps, gamma))
    if case.get("residual") is not None:
        alone = case["x"].to(F64)
        yield Fault("residual-missing", {}, lambda: _normed(alone, alone.square().mean(-1, keepdim=True), eps, gamma))
        twice = x + case["residual"].to(F64)
        yield Fault("residual-added", {"times": 2}, lambda: _normed(twice, twice.square().mean(-1, keepdim=True), eps, gamma))


def _eps_read_back(x: Tensor, mean: Tensor, gamma: Tensor, observed: Tensor | None) -> list[float]:
    """eps from rows small enough to show it: y = x gamma / sqrt(mean + eps)."""
    if observed is None:
        return []
    plain = x * gamma
    ratio = (observed * plain).sum(-1) / plain.square().sum(-1).clamp(min=1e-300)  # 1 / sqrt(mean + eps)
    found = 1 / ratio.square().clamp(min=1e-300) - mean[:, 0]
    # of the smallest rows, where eps outweighs the mean and rounding matters least
    order = mean[:, 0].argsort()[: max(3, len(mean) // 10)]
    value = float(found[order].median())
    return [float(f"{value:.1e}"), float(f"{value:.2e}")] if 1e-13 < value < 1 and torch.isfinite(found[order]).all() else []


def _narrow_squares(x: Tensor, eps: float, gamma: Tensor, dtype: torch.dtype) -> Tensor:
    narrow = x.to(dtype)
    mean = (narrow * narrow).to(F32).mean(-1, keepdim=True).to(dtype).to(F64)
    return _normed(x, (mean + float(torch.tensor(eps).to(dtype))).to(dtype).to(F64), 0.0, gamma)


def _untouched_tail(x: Tensor, eps: float, gamma: Tensor, cut: int) -> Tensor:
    mean = x[:, :-cut].square().sum(-1, keepdim=True) / x.shape[-1]
    y = x * torch.rsqrt(mean + eps)
    y[:, -cut:] = x[:, -cut:]
    return y * gamma
