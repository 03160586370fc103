"""One call of a kernel as data: its tensors by name and its plain parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import torch
from torch import Tensor

Value: TypeAlias = "int | float | str | bool"

F64 = torch.float64
UNIT_ROUNDOFF = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24, torch.float64: 2.0**-53}
"""Half the distance of 1 and the next number."""
DTYPES = {
    name: getattr(torch, name)
    for name in ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
}  # fmt: skip
SHORT = {"fp16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32", "float": "float32"}


def dtype_named(name: str) -> torch.dtype | None:
    """float16, fp16, torch.float16, DT_FLOAT16, ... -> torch.float16; None for what is no dtype here."""
    plain = name.strip().lower().removeprefix("torch.").removeprefix("dt_")
    plain = {"bf16": "bfloat16", "float": "float32"}.get(plain, SHORT.get(plain, plain))
    return DTYPES.get(plain)


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Through a storage type and back to the type of `x`."""
    return x.to(dtype).to(x.dtype)


@dataclass(frozen=True)
class Case:
    """The inputs of one kernel call."""

    kernel: str
    tensors: dict[str, Tensor]
    params: dict[str, Value] = field(default_factory=dict)
    operator: str = ""
    """The operator of torch_npu that was called, where known."""
    soc: str = ""
    """The chip, such as Ascend910B3, where known."""

    def __getitem__(self, name: str) -> Tensor:
        return self.tensors[name]

    def get(self, name: str) -> Tensor | None:
        return self.tensors.get(name)

    def number(self, name: str, default: float | None = None) -> float:
        value = self.params.get(name, default)
        if not isinstance(value, (int, float)):
            raise KeyError(name)
        return float(value)

    def integer(self, name: str, default: int | None = None) -> int:
        return int(self.number(name, default))

    def text(self, name: str, default: str = "") -> str:
        return str(self.params.get(name, default))

    def flag(self, name: str) -> bool:
        return bool(self.params.get(name, False))

    def having(self, tensors: Mapping[str, Tensor | None] | None = None, **params: Value) -> Case:
        """A copy with some tensors (None: removed) and parameters replaced."""
        kept = {**self.tensors}
        for name, tensor in (tensors or {}).items():
            if tensor is None:
                kept.pop(name, None)
            else:
                kept[name] = tensor
        return replace(self, tensors=kept, params={**self.params, **params})
