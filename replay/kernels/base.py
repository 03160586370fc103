"""What every kernel offers to the referee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.result import Words
from replay.score import row_errors, score
from replay.tensors import Case, Value, dtype_named


@dataclass(frozen=True)
class Fault:
    """One way a kernel can go wrong, with its parameter settled, and what it would give on these inputs."""

    name: str
    params: dict[str, Value]
    predict: Callable[[], Tensor]
    """float64, shaped like the reference."""
    precision: bool = False
    """Only the rounding differs: its size is predicted, its bits are not."""
    prior: float = 1.0
    """How likely among faults that these inputs cannot tell apart; larger is more likely."""


@dataclass(frozen=True)
class Argument:
    """An input tensor or a parameter, as `replay list` and the messages name it."""

    name: str
    meaning: str
    default: Value | None = None
    needed: bool = False


@dataclass(frozen=True)
class Sample:
    """A part of a case that is small enough for the grid of fault models, and what of the output belongs to it."""

    case: Case
    pick: Callable[[Tensor], Tensor]
    """Whole output -> the part's output."""
    whole: bool = False


class Kernel:
    """Mathematics of a kernel in float64, a healthy device's way of computing it, and what its places are.

    Outputs are one tensor [..., D] whose rows (all axes but the last) are scored one by one."""

    name: ClassVar[str]
    title: ClassVar[Words]
    source: ClassVar[str]
    """Where the mathematics is from."""
    inputs: ClassVar[tuple[Argument, ...]]
    params: ClassVar[tuple[Argument, ...]]
    operators: ClassVar[tuple[str, ...]] = ()
    """Operators of torch_npu that compute it, as the table of constraints names them."""
    suspects: ClassVar[tuple[tuple[str, dict[str, int | float | str]], ...]] = ()
    """Faults that a replay without a suspect of its own must have been able to show before it says refuted."""
    axis: ClassVar[str] = "row"

    def check(self, case: Case) -> Case:
        """The case with its defaults filled in. Raises SpecError with what was expected and found."""
        for argument in self.inputs:
            if argument.needed and argument.name not in case.tensors:
                have = ", ".join(case.tensors) or "none"
                raise SpecError(f"{self.name} needs the tensor {argument.name} ({argument.meaning}); the capture has {have}")
        known = {argument.name for argument in self.params}
        for name in case.params:
            if name not in known:
                raise SpecError(f"{self.name} has no parameter {name!a}; it has {', '.join(sorted(known))}")
        defaults = {a.name: a.default for a in self.params if a.default is not None and a.name not in case.params}
        return case.having(None, **defaults)

    def reference(self, case: Case) -> Tensor:
        """The exact result, float64."""
        raise NotImplementedError

    def again(self, case: Case) -> Tensor:
        """The same by an independent formulation, float64: what the reference is checked with."""
        raise NotImplementedError

    def clean(self, case: Case, variant: int) -> Tensor:
        """As a healthy device computes it: storage type in and out, float32 inside, tiled; `variant` chooses the tiling."""
        raise NotImplementedError

    def observe(self, case: Case, outputs: Mapping[str, Tensor]) -> Tensor:
        """The kernel's outputs by name as one tensor that compares with `reference`. Raises SpecError where they do not fit."""
        if "out" not in outputs:
            raise SpecError(f"{self.name}: the output is to be named `out`; found {', '.join(outputs) or 'none'}")
        return outputs["out"]

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        """Inputs made up for the sizes given. Raises SpecError."""
        raise NotImplementedError

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        """Fault models to compare with `observed`, unknown parameters on a grid or found out of it."""
        raise NotImplementedError

    def suspected(self, case: Case, name: str, params: Mapping[str, Value]) -> Fault | None:
        """The model of a suspected fault at the parameter that is suspected, where that need not be on the grid; None: only the grid has it."""
        return None

    def places(self, case: Case) -> Tensor:
        """Place on `axis` of each row of the output, int64, shaped like the rows."""
        raise NotImplementedError

    def tolerance(self, case: Case) -> Tensor | None:
        """Factor by which a healthy kernel may be worse than usual in each row; None where nowhere."""
        return None

    def sample(self, case: Case, errors: Tensor) -> Sample:
        """A part for the grid, worst rows included; the whole where that is small. `errors`: of each row of the output."""
        return Sample(case, lambda out: out, True)

    def facts(self, case: Case) -> dict[str, Value]:
        """Values of the names that constraints use."""
        return {}

    def sizes(self, case: Case) -> dict[str, int]:
        """What a reader wants to know of the shape."""
        return {}

    def dtype(self, case: Case, main: torch.dtype) -> torch.dtype:
        """Storage type of the output, whose rounding is the least noise there can be."""
        return main

    def row_errors(self, observed: Tensor, expected: Tensor, weights: Tensor | None) -> Tensor:
        """Square error of each row."""
        return row_errors(observed, expected, weights)

    def compare(self, observed: Tensor, expected: Tensor, weights: Tensor | None) -> float:
        """Distance of two outputs."""
        return score(observed, expected, weights)

    def bounds(self, case: Case) -> list[tuple[str, bool, str]]:
        """Of arguments that the operator does not check: what must hold, whether it does, and the values found."""
        return []


@dataclass
class Randoms:
    """Reproducible random tensors."""

    seed: int
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = torch.Generator().manual_seed(self.seed)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator, dtype=torch.float32)

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=self.generator)

    def order(self, n: int) -> Tensor:
        return torch.randperm(n, generator=self.generator)


def size(sizes: Mapping[str, Value], name: str, default: int, low: int = 1, high: int = 1 << 24) -> int:
    """A whole number of `sizes` within its range. Raises SpecError."""
    value = sizes.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value) or not low <= value <= high:
        raise SpecError(f"{name} must be a whole number from {low} to {high}; found {value!a}")
    return int(value)


def storage(sizes: Mapping[str, Value]) -> torch.dtype:
    dtype = dtype_named(str(sizes.get("dtype", "bfloat16")))
    if dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise SpecError(f"dtype must be float16, bfloat16 or float32; found {str(sizes.get('dtype'))!a}")
    return dtype


def shaped(case: Case, name: str, dims: str) -> Tensor:
    """The tensor of that name if it has as many axes as `dims` (words) names. Raises SpecError."""
    tensor = case[name]
    if tensor.dim() != len(dims.split()):
        raise SpecError(f"{case.kernel}: {name} must be [{', '.join(dims.split())}]; found the shape {list(tensor.shape)}")
    return tensor
