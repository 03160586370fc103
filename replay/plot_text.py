"""The error by position as lines of text. Needs no torch."""

from __future__ import annotations

import math

from replay.result import Bin, ErrorPlot

LINES = 16


def drawn(plot: ErrorPlot, width: int, ascii_only: bool = False) -> list[str]:
    """The plot as lines of text for a terminal, one bin a line (neighbours joined to at most LINES), bars on a logarithmic axis."""
    rows = _joined(plot.bins, LINES)
    top = max([plot.limit * 10, *(one.error for one in rows)])
    label = max(len(_span(one)) for one in rows)
    room = max(10, width - label - 14)
    full, mark = ("#", "|") if ascii_only else ("█", "│")

    def column(error: float) -> int:
        low = 0.1
        return max(0, min(room, round(room * math.log(max(error, low) / low) / math.log(max(top, 1.0) / low))))

    edge = column(plot.limit)
    lines = []
    for one in rows:
        bar = full * column(one.error)
        bar = bar.ljust(room)
        if bar[edge : edge + 1] == " ":
            bar = bar[:edge] + mark + bar[edge + 1 :]
        note = ""
        if plot.boundary is not None and one.first <= plot.boundary <= one.last:
            note = f" <- {plot.boundary}"
        lines.append(f"{_span(one):>{label}} {bar} {one.error:>9.3g}{note}".rstrip())
    return lines


def _span(one: Bin) -> str:
    return str(one.first) if one.first == one.last else f"{one.first}-{one.last}"


def _joined(bins: list[Bin], most: int) -> list[Bin]:
    if len(bins) <= most:
        return bins
    step = -(-len(bins) // most)
    out = []
    for start in range(0, len(bins), step):
        part = bins[start : start + step]
        rows = sum(one.rows for one in part)
        error = (sum(one.error**2 * one.rows for one in part) / rows) ** 0.5
        out.append(Bin(part[0].first, part[-1].last, rows, error, max(one.worst for one in part)))
    return out
