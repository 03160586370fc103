"""The error by position: rows of an output gathered into bins along the axis of a kernel, and the place where it starts to be wrong."""

from __future__ import annotations

import torch
from torch import Tensor

from replay.result import Bin, ErrorPlot

BINS = 64
ROW_LIMIT = 4.0
"""Noise units up to which one row counts as clean; a single row strays further than the mean of all."""


def error_plot(places: Tensor, squares: Tensor, noise: float, axis: str, limit: float) -> ErrorPlot | None:
    """`places` int64 and `squares` (mean square error of each row, see `score.row_errors`), of one shape; None for an empty output.

    Bins hold equally many places where the places are spread evenly, and never divide a place."""
    places, squares = places.flatten(), squares.flatten()
    if not len(places):
        return None
    order = places.argsort(stable=True)
    places, units = places[order], squares[order] / noise**2
    values, counts = places.unique_consecutive(return_counts=True)
    groups = torch.tensor_split(torch.arange(len(values)), min(BINS, len(values)))
    ends = counts.cumsum(0)
    bins, start = [], 0
    for group in groups:
        end = int(ends[group[-1]])
        part = units[start:end]
        error, worst = float(part.mean().sqrt()), float(part.max().sqrt())
        bins.append(Bin(int(values[group[0]]), int(values[group[-1]]), end - start, _short(error), _short(worst)))
        start = end
    kind = axis if axis in ("position", "token", "request", "row", "column") else "row"
    return ErrorPlot(kind, bins, limit, boundary(values, counts, units))  # type: ignore[arg-type]


def boundary(values: Tensor, counts: Tensor, units: Tensor) -> int | None:
    """First place from which on every place is wrong, while every place before is clean. None where there is no such place, or no clean one.

    `units`: square errors in noise units, ordered by place; `counts`: rows of each place."""
    number = torch.repeat_interleave(torch.arange(len(values)), counts)
    mean = torch.zeros(len(values), dtype=units.dtype).index_add_(0, number, units) / counts
    wrong = mean > ROW_LIMIT**2
    if not bool(wrong.any()) or bool(wrong.all()):
        return None
    first = int(wrong.nonzero()[0])
    # past the boundary a row may be right by chance, as where a wrapped position comes back to its own; a few do not matter
    return int(values[first]) if float(wrong[first:].double().mean()) > 0.98 else None


def _short(value: float) -> float:
    return float(f"{value:.4g}")
