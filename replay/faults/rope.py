"""How RoPE goes wrong: positions wrapped, clamped, shifted or held in a narrow type, tables of low precision or of another model, pairs
taken the other way, columns left out.

Wrapped, clamped and shifted positions need no grid: the position that the kernel really used is read back from the output, row by row
(`effective_positions`), and the simplest map from the true positions to those is the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from replay.kernels import rope
from replay.kernels.base import Fault
from replay.tensors import F64, Case

NARROW = (torch.float16, torch.bfloat16)
BASES = (
    500.0, 1e3, 5e3, 1e4, 2e4, 2.5e4, 3e4, 4e4, 5e4, 8e4, 1e5, 1.5e5, 1.6e5, 2e5, 2.5e5, 3e5, 4e5, 5e5, 6e5, 8e5, 1e6, 1.5e6, 2e6, 2.5e6, 3e6,
    4e6, 5e6, 6e6, 8e6, 1e7, 1.5e7, 2e7, 2.5e7, 5e7, 1e8, 5e8, 1e9,
)  # fmt: skip
"""Bases of published models, and their neighbours."""
FACTORS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0, 10.0, 16.0, 32.0, 40.0, 64.0)
READ_ROWS = 40
"""Rows whose effective position is read back."""
CHUNK = 1 << 15
GOOD = 0.99
"""Agreement of all pairs from which a position counts as read; 1 is perfect."""


def grid(case: Case, observed: Tensor | None) -> list[Fault]:
    """All fault models for a case, those with positions read out of `observed` first."""
    return list(_all(case, observed))


def _all(case: Case, observed: Tensor | None) -> Iterator[Fault]:
    if case.get("positions") is not None:
        yield from _positions(case, observed)
        yield from _tables(case)
    yield from _pairs(case)


def _turned(case: Case, cos_sin: Callable[[], tuple[Tensor, Tensor]], mode: str | None = None, dim: int | None = None) -> Callable[[], Tensor]:
    def predict() -> Tensor:
        cos, sin = cos_sin()
        width = rope.rotary_dim(case) if dim is None else dim
        return rope.rotate(case["x"].to(F64), cos[:, : width // 2], sin[:, : width // 2], mode or case.text("mode"), width)

    return predict


# ---------------------------------------------------------------- positions


KEYS = {"position-wrap": "modulus", "position-wrap-signed": "modulus", "position-clamp": "limit", "position-shift": "by"}
"""Faults of positions, and the name of their parameter."""


def moved(case: Case, name: str, value: int) -> Fault | None:
    """A fault of positions at one value of its parameter; None where it changes nothing."""
    true = case["positions"].long()
    if name == "position-wrap":
        positions = true % value
    elif name == "position-wrap-signed":
        positions = (true + value // 2) % value - value // 2
    elif name == "position-clamp":
        positions = true.clamp(max=value)
    else:
        positions = true + value
    if torch.equal(positions, true):
        return None
    # what wraps at 2^16 or 2^15, or is off by one, is seen in the field; of equal fits it stands first
    usual = value in (65536, 65535, 32768, 32767, 1, -1)
    return Fault(name, {KEYS[name]: value}, _turned(case, lambda: rope.at(case, positions)), prior=1.0 if usual else 0.5)


def _positions(case: Case, observed: Tensor | None) -> Iterator[Fault]:
    true = case["positions"].long()
    for name, value in dict.fromkeys([*_read_back(case, observed), *_usual(case)]):
        if (fault := moved(case, name, value)) is not None:
            yield fault
    for dtype in NARROW:
        low = true.to(dtype).to(F64)
        label = str(dtype).removeprefix("torch.")
        yield Fault("position-dtype", {"dtype": label}, _turned(case, lambda low=low: rope.at(case, low)), prior=0.9)
    for factor in FACTORS:
        scaled = true.to(F64) / factor
        turned = _turned(case, lambda scaled=scaled: rope.table(scaled, rope.frequencies(case), rope.magnitude(case)))
        yield Fault("position-scale", {"factor": factor}, turned, prior=0.4)


def _usual(case: Case) -> Iterator[tuple[str, int]]:
    """What to try where nothing can be read back: the faults that are known from the field, at their usual values."""
    limit = case.integer("max_position", 0)
    original = case.integer("original_max_position", 0)
    for bits in (16, 15, *range(8, 15), *range(17, 22)):
        yield "position-wrap", 2**bits
        yield "position-wrap-signed", 2**bits
        yield "position-clamp", 2**bits - 1
    for value in (limit, original):
        if value > 1:
            yield "position-clamp", value - 1
            yield "position-wrap", value
    for by in (1, -1, 2, -2, 3, -3, 4, -4):
        yield "position-shift", by


def _read_back(case: Case, observed: Tensor | None) -> Iterator[tuple[str, int]]:
    """Maps from true to effective positions that hold in every row that could be read."""
    if observed is None:
        return
    true, used = effective_positions(case, observed)
    wrong = true != used
    if len(true) < 3 or not bool(wrong.any()):
        return
    difference = (used - true)[wrong]
    if bool((difference == difference[0]).all()) and len(difference) >= 3 and bool(wrong.all()):
        yield "position-shift", int(difference[0])
    if bool((used[wrong] == used[wrong][0]).all()) and bool((true[wrong] > used[wrong]).all()):
        yield "position-clamp", int(used[wrong][0])
    if len(difference):
        step = math.gcd(*[int(value) for value in difference.tolist()])
        whole = [step * k for k in range(1, 1 + max(1, int(true.max()) // max(step, 1)))] if step else []
        for modulus in [m for m in whole[:64] if bool((true % m == used).all())][:2]:
            yield "position-wrap", modulus
        for modulus in [m for m in whole[:64] if bool(((true + m // 2) % m - m // 2 == used).all())][:2]:
            yield "position-wrap-signed", modulus


def effective_positions(case: Case, observed: Tensor) -> tuple[Tensor, Tensor]:
    """True and effective positions of rows whose rotation can be read: each pair of columns was turned by an angle, and only one position
    turns all pairs by these angles. int64 [n], [n]; rows where nothing fits well are left out."""
    dim, mode = rope.rotary_dim(case), case.text("mode")
    positions = case["positions"].long()
    rows = _spread(case, observed)
    if not len(rows):
        return rows, rows
    before, after = _complex(case["x"][rows].to(F64), dim, mode, False), _complex(observed[rows].to(F64), dim, mode, True)
    turn = (after * before.conj()).sum(1)
    weight = before.abs().square().sum(1).clamp(min=1e-300)
    turn = (turn / weight).to(torch.complex64)  # [n, pairs]: e^(i angle) times the magnitude
    turn = turn / turn.abs().clamp(min=1e-6)
    inv = rope.frequencies(case)
    top = int(positions.max()) + 16
    best, where = torch.full((len(rows),), -2.0), torch.zeros(len(rows), dtype=torch.int64)
    # a device that reads past its table gives no position: so no search beyond what the case holds; below zero only where nothing else fits
    for start in (*range(0, top, CHUNK), *range(-min(top, 1 << 19), 0, CHUNK)):
        if start < 0 and bool((best > GOOD).all()):
            break
        tried = torch.arange(start, min(start + CHUNK, top))
        angle = tried.to(torch.float32)[:, None] * inv
        fit = (turn.real @ torch.cos(angle).T + turn.imag @ torch.sin(angle).T) / inv.numel()
        value, index = fit.max(1)
        better = value > best
        best = torch.where(better, value, best)
        where = torch.where(better, tried[index], where)
    good = best > GOOD
    return positions[rows][good], where[good]


def _spread(case: Case, observed: Tensor) -> Tensor:
    """Rows to read: finite ones, spread over all positions, each position once."""
    finite = torch.isfinite(observed).all(-1).all(-1)
    rows = torch.arange(len(finite))[finite]
    order = rows[case["positions"][rows].argsort()]
    if len(order) <= READ_ROWS:
        return order
    return order[torch.linspace(0, len(order) - 1, READ_ROWS).long()]


def _complex(x: Tensor, dim: int, mode: str, output: bool) -> Tensor:
    """[n, H, D] -> [n, H, dim / 2]: each rotated pair as one complex number."""
    if mode == "half" or (output and mode == "interleave-to-half"):
        return torch.complex(x[..., : dim // 2], x[..., dim // 2 : dim])
    return torch.complex(x[..., 0:dim:2], x[..., 1:dim:2])


# ---------------------------------------------------------------- tables


def _tables(case: Case) -> Iterator[Fault]:
    true, inv, scale = case["positions"], rope.frequencies(case), rope.magnitude(case)
    for dtype in NARROW:
        label = str(dtype).removeprefix("torch.")
        yield Fault("angle-dtype", {"dtype": label}, _turned(case, lambda d=dtype: rope.table(true, inv, scale, d)), prior=0.8)
        low = inv.to(dtype).to(torch.float32)
        yield Fault("frequency-dtype", {"dtype": label}, _turned(case, lambda low=low: rope.table(true, low, scale)))
        yield Fault("table-dtype", {"dtype": label}, _turned(case, lambda d=dtype: _narrowed(case, d)))
    for base in BASES:
        if not math.isclose(base, case.number("base"), rel_tol=1e-6):
            other = rope.frequencies(case, base=base)
            yield Fault("other-base", {"base": base}, _turned(case, lambda other=other: rope.table(true, other, scale)), prior=0.7)
    if case.text("scaling") != "none":
        plain = rope.frequencies(case, scaled=False)
        yield Fault("scaling-missing", {}, _turned(case, lambda: rope.table(true, plain)))
        if scale != 1.0:
            yield Fault("magnitude-missing", {}, _turned(case, lambda: rope.table(true, inv)))
            yield Fault("scaling-missing", {"magnitude": "kept"}, _turned(case, lambda: rope.table(true, plain, scale)))
    for width in _padded(case):
        yield Fault("sin-offset", {"column": width}, _turned(case, lambda width=width: _sin_from(case, width)))
    yield Fault("sin-negated", {}, _turned(case, lambda: _swapped(case, 1.0)))


def _narrowed(case: Case, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    cos, sin = rope.true_table(case)
    return cos.to(dtype).to(F64), sin.to(dtype).to(F64)


def _swapped(case: Case, sign: float) -> tuple[Tensor, Tensor]:
    cos, sin = rope.true_table(case)
    return cos, -sign * sin


def _padded(case: Case) -> list[int]:
    """Columns of a table row [cos | sin] at which a kernel may look for the sines: half of a width rounded up, as the tile it loads is."""
    half = rope.rotary_dim(case) // 2
    ends = {1 << (half - 1).bit_length(), -(-half // 16) * 16, -(-half // 32) * 32, -(-half // 64) * 64, case["x"].shape[-1] // 2}
    return sorted(end for end in ends if half < end < 4 * half)


def _sin_from(case: Case, column: int) -> tuple[Tensor, Tensor]:
    """The sines read from `column` of a row that holds cosines and sines, running on into the next row."""
    half = rope.rotary_dim(case) // 2
    cos, sin = rope.true_table(case)
    nexts = rope.at(case, case["positions"].long() + 1)
    row = torch.cat([cos, sin, *nexts], -1)
    return cos, row[:, column : column + half]


# ---------------------------------------------------------------- pairs and columns


def _pairs(case: Case) -> Iterator[Fault]:
    dim, mode = rope.rotary_dim(case), case.text("mode")
    for other in rope.MODES:
        if other != mode:
            yield Fault("pairs", {"mode": other}, _turned(case, lambda: rope.true_table(case), other))
    cos = case.get("cos")
    if cos is not None and cos.shape[-1] == dim:
        for other in ("half", "interleave"):
            if other != mode:
                yield Fault("pairs", {"mode": other, "table": "as given"}, lambda other=other: _by_column(case, other), prior=0.9)
    for columns in sorted({*range(16, dim, 16), *range(8, dim, 8)}):
        yield Fault("columns-cut", {"rotated": columns}, _turned(case, lambda: rope.true_table(case), None, columns), prior=0.9)
    if dim != case["x"].shape[-1]:
        yield Fault("rotary-dim-ignored", {}, lambda: _whole_width(case))
    yield Fault("half-not-written", {"half": "second"}, lambda: _unwritten(case, dim // 2, dim))
    yield Fault("half-not-written", {"half": "first"}, lambda: _unwritten(case, 0, dim // 2))
    yield Fault("not-rotated", {}, lambda: case["x"].to(F64))


def _by_column(case: Case, mode: str) -> Tensor:
    """Every column times the cosine at its own column, plus its partner times the sine there: pairs taken the other way, the table not."""
    dim = rope.rotary_dim(case)
    x, cos, sin = case["x"].to(F64), case["cos"].to(F64)[:, None, :], case["sin"].to(F64)[:, None, :]
    turned, rest = x[..., :dim], x[..., dim:]
    if mode == "interleave":
        partner = torch.stack([-turned[..., 1::2], turned[..., 0::2]], -1).flatten(-2)
    else:
        partner = torch.cat([-turned[..., dim // 2 :], turned[..., : dim // 2]], -1)
    return torch.cat([turned * cos + partner * sin, rest], -1)


def _unwritten(case: Case, first: int, last: int) -> Tensor:
    cos, sin = rope.true_table(case)
    out = rope.rotate(case["x"].to(F64), cos, sin, case.text("mode"), rope.rotary_dim(case))
    out[..., first:last] = case["x"][..., first:last].to(F64)
    return out


def _whole_width(case: Case) -> Tensor:
    """All columns rotated although only some should be."""
    width = case["x"].shape[-1]
    wide = case.having({"cos": None, "sin": None, "cos_sin_cache": None}, rotary_dim=width)
    if wide.get("positions") is None:
        return case["x"].to(F64)
    return rope.rotate(case["x"].to(F64), *rope.true_table(wide), case.text("mode"), width)
