"""How far two outputs are apart: one number, fit to compare explanations with each other and with the noise of a healthy kernel.

Root mean square error with each row (last axis) scaled by its own size, so that one faulty row is not diluted by the healthy ones and a
small row counts as much as a large one. Not the cosine (it hides faults: a dropped tail block keeps 0.996), not the largest relative
error (healthy kernels reach 8 where values are close to zero).
"""

from __future__ import annotations

import torch
from torch import Tensor

from replay.tensors import F64

SMALL_ROW = 0.05
"""Rows smaller than this share of the mean row are scaled by it: their own size says nothing."""


def row_errors(observed: Tensor, expected: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean square error of each row, relative to the row. [..., D], [..., D] -> [...], float64.

    An element that is NaN or infinite in one of the two only counts as an error of the size of the row. `weights` [...]: factors on the
    error of a row (1 / tolerance)."""
    bad_observed, bad_expected = ~torch.isfinite(observed), ~torch.isfinite(expected)
    either = bad_observed | bad_expected
    error = torch.where(either, 0.0, observed.to(F64) - expected.to(F64))
    size = torch.where(bad_expected, 0.0, expected.to(F64)).square().mean(-1, keepdim=True).sqrt()
    floor = SMALL_ROW * float(size.mean().clamp(min=1e-30))
    square = (error / size.clamp(min=floor)).square()
    square = square + (bad_observed ^ bad_expected).to(F64)
    rows = square.mean(-1)
    return rows if weights is None else rows * weights.square()


def score(observed: Tensor, expected: Tensor, weights: Tensor | None = None) -> float:
    """Root of the mean of `row_errors`: about 3e-4 for a clean float16 kernel, 2e-3 for bfloat16, 1.4 for an unrelated output."""
    if observed.numel() == 0:
        return 0.0
    return float(row_errors(observed, expected, weights).mean().sqrt())
