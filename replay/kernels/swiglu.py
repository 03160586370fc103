"""SwiGLU: the first half of the columns through SiLU, times the second half.

Source: Shazeer, GLU Variants (2020); npu_swiglu."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.base import Argument, Fault, Kernel, Randoms, Sample, shaped, size, storage
from replay.result import Words
from replay.tensors import F64, Case, Value, rounded

F32 = torch.float32
ROWS = 128


class SwiGlu(Kernel):
    name = "swiglu"
    title = Words("SwiGLU activation", "SwiGLU 激活")
    source = "Shazeer, GLU Variants (2020)"
    operators = ("npu_swiglu",)
    suspects = (("halves-swapped", {}),)
    inputs = (Argument("x", "[rows, 2 x columns]", needed=True),)
    params = ()

    def check(self, case: Case) -> Case:
        if "x" in case.tensors and case["x"].dim() > 2:
            case = case.having({"x": case["x"].flatten(0, -2)})
        case = super().check(case)
        if shaped(case, "x", "rows columns").shape[1] % 2:
            raise SpecError(f"swiglu: the columns must be even; found {case['x'].shape[1]}")
        return case

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        rows, columns = size(sizes, "tokens", 64), size(sizes, "columns", 2048)
        return Case(self.name, {"x": Randoms(seed).normal(rows, 2 * columns).to(storage(sizes))})

    def reference(self, case: Case) -> Tensor:
        a, b = case["x"].to(F64).chunk(2, -1)
        return a * torch.sigmoid(a) * b

    def again(self, case: Case) -> Tensor:
        """sigmoid(a) = (1 + tanh(a / 2)) / 2"""
        x = case["x"].to(F64)
        half = x.shape[-1] // 2
        return x[:, :half] * (1 + torch.tanh(x[:, :half] / 2)) / 2 * x[:, half:]

    def clean(self, case: Case, variant: int) -> Tensor:
        a, b = case["x"].to(F32).chunk(2, -1)
        gate = a * torch.sigmoid(a) if variant % 2 else a / (1 + torch.exp(-a))
        if variant % 4 >= 2:
            gate = rounded(gate, case["x"].dtype)  # the gate goes through memory, as in eager code
        return (gate * b).to(case["x"].dtype)

    def places(self, case: Case) -> Tensor:
        return torch.arange(case["x"].shape[0])

    def observe(self, case: Case, outputs: Mapping[str, Tensor]) -> Tensor:
        return super().observe(case, outputs).flatten(0, -2)

    def sample(self, case: Case, errors: Tensor) -> Sample:
        rows = case["x"].shape[0]
        if rows <= ROWS:
            return super().sample(case, errors)
        chosen = torch.cat([torch.linspace(0, rows - 1, ROWS // 2).long(), errors.argsort(descending=True)[: ROWS // 2]]).unique()
        return Sample(case.having({"x": case["x"][chosen]}), lambda out: out[chosen])

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        x = case["x"].to(F64)
        a, b = x.chunk(2, -1)
        even, odd = x[:, 0::2], x[:, 1::2]

        def silu(z: Tensor) -> Tensor:
            return z * torch.sigmoid(z)

        return [
            Fault("halves-swapped", {}, lambda: silu(b) * a),
            Fault("halves-interleaved", {}, lambda: silu(even) * odd),
            Fault("halves-interleaved", {"order": "odd first"}, lambda: silu(odd) * even, prior=0.8),
            Fault("gate", {"function": "sigmoid"}, lambda: torch.sigmoid(a) * b),
            Fault("gate", {"function": "gelu"}, lambda: a * 0.5 * (1 + torch.erf(a / math.sqrt(2))) * b),
            Fault("gate", {"function": "gelu (tanh)"}, lambda: torch.nn.functional.gelu(a, approximate="tanh") * b),
            Fault("gate", {"function": "relu"}, lambda: torch.relu(a) * b),
            Fault("gate", {"function": "identity"}, lambda: a * b),
            Fault("gate", {"function": "silu(1.702 x)"}, lambda: a * torch.sigmoid(1.702 * a) * b),
            Fault("gate-only", {}, lambda: silu(a)),
        ]

    def facts(self, case: Case) -> dict[str, Value]:
        x = case["x"]
        return {"size_dim": x.shape[-1], "is_contiguous": x.is_contiguous(), "numel": x.numel()}

    def sizes(self, case: Case) -> dict[str, int]:
        return {"rows": case["x"].shape[0], "columns": case["x"].shape[1] // 2}
