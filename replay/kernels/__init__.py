"""One file a kernel: the mathematics in plain PyTorch, float64, with its source, and an independent formulation that checks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replay.errors import SpecError

if TYPE_CHECKING:
    from replay.kernels.base import Kernel

MODULES = {
    "rope": "Rope",
    "paged_attention": "PagedAttention",
    "prefill_attention": "PrefillAttention",
    "rms_norm": "RmsNorm",
    "matmul": "MatMul",
    "grouped_matmul": "GroupedMatMul",
    "moe_gating": "MoeGating",
    "topk": "TopK",
    "swiglu": "SwiGlu",
    "cache_write": "CacheWrite",
}
"""Kernel, which is the module too, and its class."""
NAMES = tuple(MODULES)


def kernel_named(name: str) -> Kernel:
    """Raises SpecError for a name that is none."""
    from importlib import import_module

    if name not in MODULES:
        raise SpecError(f"there is no kernel {name!a}; there are {', '.join(NAMES)}")
    kernel: Kernel = getattr(import_module(f"replay.kernels.{name}"), MODULES[name])()
    return kernel
