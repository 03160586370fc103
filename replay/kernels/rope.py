"""Rotary position embedding: half (NeoX), interleaved (GPT-J), interleaved in and half out (MLA), partial, linear and YaRN scaling.

Source: Su et al., RoFormer (2021); Peng et al., YaRN (2023), in the form of DeepSeek-V3 and vLLM.

The reference follows the model's own float32 table: the captured one, or one rebuilt in float32. An exact table would confirm a fault
that is not there: two healthy float32 formulas differ by 7e-3 at position 131071, more than bfloat16 resolves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.base import Argument, Fault, Kernel, Randoms, Sample, shaped, size, storage
from replay.result import Words
from replay.tensors import F64, UNIT_ROUNDOFF, Case, Value, rounded

F32 = torch.float32
MODES = ("half", "interleave", "interleave-to-half")
MANY_TOKENS, MANY_HEADS = 320, 8


def frequencies(case: Case, formula: str = "pow", base: float | None = None, scaled: bool = True) -> Tensor:
    """Angle of each pair for one position, [rotary_dim / 2], float32: as models compute it. `formula`: pow, exp or exact (float64, then
    rounded): healthy ways that differ in the last bit."""
    dim = rotary_dim(case)
    base = case.number("base") if base is None else base
    kind = F64 if formula == "exact" else F32
    exponent = torch.arange(0, dim, 2, dtype=kind) / dim
    inv = torch.exp(-math.log(base) * exponent) if formula == "exp" else 1.0 / (base**exponent)
    scaling = case.text("scaling", "none") if scaled else "none"
    factor = case.number("factor", 1.0)
    if scaling == "linear":
        inv = inv / factor
    elif scaling == "yarn":
        inv = _yarn(case, inv, dim, base, factor)
    return inv.to(F32)


def _yarn(case: Case, inv: Tensor, dim: int, base: float, factor: float) -> Tensor:
    """High frequencies as they are, low ones divided by the factor, a ramp between."""

    def turning(rotations: float) -> float:
        return dim * math.log(case.number("original_max_position") / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(turning(case.number("beta_fast"))), 0)
    high = min(math.ceil(turning(case.number("beta_slow"))), dim - 1)
    ramp = ((torch.arange(dim // 2, dtype=inv.dtype) - low) / max(high - low, 1e-3)).clamp(0, 1)
    return inv / factor * ramp + inv * (1 - ramp)


def magnitude(case: Case) -> float:
    """Factor on cos and sin: YaRN's attention factor."""
    if case.text("scaling", "none") != "yarn":
        return 1.0
    given = case.number("attention_factor", 0.0)
    factor = case.number("factor", 1.0)
    return given or (1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0)


def table(positions: Tensor, inv: Tensor, scale: float = 1.0, dtype: torch.dtype = F32) -> tuple[Tensor, Tensor]:
    """cos and sin, [T, rotary_dim / 2], float64; positions, frequencies and angles are held in `dtype` on the way."""
    angle = positions.to(dtype)[:, None] * inv.to(dtype)[None, :]
    return torch.cos(angle).to(F64) * scale, torch.sin(angle).to(F64) * scale


def rotary_dim(case: Case) -> int:
    return case.integer("rotary_dim", 0) or case["x"].shape[-1]


def captured(case: Case) -> tuple[Tensor, Tensor] | None:
    """cos and sin of every token from the capture, [T, rotary_dim / 2], float64; None where they have to be rebuilt."""
    half = rotary_dim(case) // 2
    cache = case.get("cos_sin_cache")
    if cache is not None:
        rows = cache.to(F64)[case["positions"].long().clamp(0, cache.shape[0] - 1)]
        return rows[:, :half], rows[:, half : 2 * half]
    cos, sin = case.get("cos"), case.get("sin")
    if cos is None or sin is None:
        return None
    return _halved(cos, case), _halved(sin, case)


def _halved(full: Tensor, case: Case) -> Tensor:
    """[T, rotary_dim] holds every angle twice: side by side in interleaved tables, half a row apart in others."""
    half = rotary_dim(case) // 2
    if full.shape[-1] == half:
        return full.to(F64)
    return (full[:, 0::2] if case.text("mode") == "interleave" else full[:, :half]).to(F64)


def at(case: Case, positions: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin as the kernel would have them had it seen these positions instead: from the captured cache, else rebuilt."""
    cache = case.get("cos_sin_cache")
    if cache is not None:
        return captured(case.having({"positions": positions.long()})) or _rebuilt(case, positions)
    return _rebuilt(case, positions)


def _rebuilt(case: Case, positions: Tensor) -> tuple[Tensor, Tensor]:
    return table(positions, frequencies(case), magnitude(case))


def true_table(case: Case) -> tuple[Tensor, Tensor]:
    return captured(case) or _rebuilt(case, case["positions"])


def rotate(x: Tensor, cos: Tensor, sin: Tensor, mode: str, dim: int) -> Tensor:
    """x [T, H, D]; cos, sin [T, dim / 2]; columns from `dim` on pass through. In the type of `x`."""
    turned, rest = x[..., :dim], x[..., dim:]
    c, s = cos[:, None, :].to(x.dtype), sin[:, None, :].to(x.dtype)
    if mode == "half":
        a, b = turned[..., : dim // 2], turned[..., dim // 2 :]
    else:
        a, b = turned[..., 0::2], turned[..., 1::2]
    first, second = a * c - b * s, b * c + a * s
    if mode == "interleave":
        out = torch.stack([first, second], -1).flatten(-2)
    else:
        out = torch.cat([first, second], -1)
    return torch.cat([out, rest], -1)


class Rope(Kernel):
    name = "rope"
    title = Words("Rotary position embedding", "旋转位置编码 RoPE")
    source = "Su et al., RoFormer (2021); Peng et al., YaRN (2023)"
    operators = ("npu_rotary_mul", "npu_apply_rotary_pos_emb", "npu_interleave_rope", "_npu_rotary_embedding")
    suspects = (("position-wrap", {"modulus": 65536}), ("position-clamp", {"limit": 65535}))
    axis = "position"
    inputs = (
        Argument("x", "queries or keys, [tokens, heads, head_dim]", needed=True),
        Argument("positions", "position of each token, [tokens]"),
        Argument("cos", "cosines of each token, [tokens, rotary_dim or half of it]"),
        Argument("sin", "sines of each token, likewise"),
        Argument("cos_sin_cache", "table by position, [positions, rotary_dim]: cosines, then sines"),
    )
    params = (
        Argument("mode", "half, interleave, or interleave-to-half (MLA)", "half"),
        Argument("rotary_dim", "columns that are rotated; 0: all", 0),
        Argument("base", "base of the frequencies (rope_theta)", 10000.0),
        Argument("scaling", "none, linear or yarn", "none"),
        Argument("factor", "factor of the scaling", 1.0),
        Argument("original_max_position", "context the model was first trained for, of YaRN", 4096),
        Argument("beta_fast", "of YaRN", 32.0),
        Argument("beta_slow", "of YaRN", 1.0),
        Argument("attention_factor", "factor on cos and sin, of YaRN; 0: 0.1 ln(factor) + 1", 0.0),
        Argument("max_position", "longest position the service allows; 0: unknown", 0),
    )

    def check(self, case: Case) -> Case:
        case = super().check(case)
        x = shaped(case, "x", "tokens heads head_dim")
        tokens, dim = x.shape[0], rotary_dim(case)
        if case.text("mode") not in MODES:
            raise SpecError(f"rope: mode must be one of {', '.join(MODES)}; found {case.text('mode')!a}")
        if dim % 2 or not 2 <= dim <= x.shape[-1]:
            raise SpecError(f"rope: rotary_dim must be even and at most head_dim {x.shape[-1]}; found {dim}")
        if case.text("scaling") not in ("none", "linear", "yarn"):
            raise SpecError(f"rope: scaling must be none, linear or yarn; found {case.text('scaling')!a}")
        if case.number("base") <= 1 or case.number("factor") <= 0:
            raise SpecError("rope: base must be above 1 and factor above 0")
        cos = case.get("cos")
        if (cos is None) != (case.get("sin") is None):
            raise SpecError("rope needs both cos and sin, or neither")
        if cos is not None and (cos.shape != case["sin"].shape or list(cos.shape) not in ([tokens, dim], [tokens, dim // 2])):
            raise SpecError(f"rope: cos and sin must be [{tokens}, {dim}] or [{tokens}, {dim // 2}]; found {list(cos.shape)}")
        if case.get("positions") is None:
            if cos is None:
                raise SpecError("rope needs positions, or cos and sin of each token")
            return case
        if list(case["positions"].shape) != [tokens]:
            raise SpecError(f"rope: positions must be [{tokens}]; found {list(case['positions'].shape)}")
        return case

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        """All positions up to seq_len, or `tokens` of them spread over it."""
        length = size(sizes, "seq_len", 131072)
        tokens = size(sizes, "tokens", length, high=1 << 22)
        heads, dim = size(sizes, "heads", 1, high=256), size(sizes, "head_dim", 128, 2, 1024)
        dtype, randoms = storage(sizes), Randoms(seed)
        positions = torch.linspace(0, length - 1, min(tokens, length)).round().long()
        x = randoms.normal(positions.shape[0], heads, dim).to(dtype)
        names = {argument.name for argument in self.params}
        return Case(self.name, {"x": x, "positions": positions}, {k: v for k, v in sizes.items() if k in names})

    def reference(self, case: Case) -> Tensor:
        return rotate(case["x"].to(F64), *true_table(case), case.text("mode"), rotary_dim(case))

    def again(self, case: Case) -> Tensor:
        """Each pair as a complex number, multiplied by one of the right angle and size."""
        dim, mode = rotary_dim(case), case.text("mode")
        cos, sin = true_table(case)
        x = case["x"].to(F64)
        pairs = x[..., :dim].unflatten(-1, (2, dim // 2)).transpose(-1, -2) if mode == "half" else x[..., :dim].unflatten(-1, (dim // 2, 2))
        turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * torch.complex(cos, sin)[:, None, :])
        out = turned.flatten(-2) if mode == "interleave" else turned.transpose(-1, -2).flatten(-2)
        return torch.cat([out, x[..., dim:]], -1)

    def clean(self, case: Case, variant: int) -> Tensor:
        """The table in float32 or in the model's type, by one of three formulas; products rounded one by one or fused."""
        dtype = case["x"].dtype
        formula = ("pow", "exp", "exact")[variant % 3]
        cos, sin = captured(case) or table(case["positions"], frequencies(case, formula), magnitude(case))
        if variant % 2 == 0:
            cos, sin = rounded(cos, dtype), rounded(sin, dtype)
        mode, dim = case.text("mode"), rotary_dim(case)
        if variant % 4 == 3:  # as eager code does it: each product and the sum go through the storage type
            return rotate(case["x"], cos.to(dtype), sin.to(dtype), mode, dim)
        return rotate(case["x"].to(F32), cos, sin, mode, dim).to(dtype)

    def places(self, case: Case) -> Tensor:
        positions = case.get("positions")
        places = torch.arange(case["x"].shape[0]) if positions is None else positions.long()
        return places[:, None].expand(-1, case["x"].shape[1])

    def tolerance(self, case: Case) -> Tensor | None:
        """A rebuilt float32 table differs from the model's by up to position x 2^-23 in each angle (a last bit of the frequency, and the
        rounding of the product), weighed by its frequency."""
        if case.get("positions") is None or captured(case) is not None:
            return None
        spread = 1.5 * 2.0**-23 * float(frequencies(case).to(F64).square().mean().sqrt())
        noise = UNIT_ROUNDOFF[case["x"].dtype] / math.sqrt(3)
        factor = (1 + (case["positions"].to(F64).abs() * spread / noise).square()).sqrt()
        return factor[:, None].expand(-1, case["x"].shape[1])

    def sample(self, case: Case, errors: Tensor) -> Sample:
        """Tokens spread over all positions, with those beside powers of two, where positions wrap."""
        tokens, heads = case["x"].shape[0], min(case["x"].shape[1], MANY_HEADS)
        if tokens <= MANY_TOKENS and heads == case["x"].shape[1]:
            return super().sample(case, errors)
        positions = self.places(case)[:, 0]
        order = positions.argsort()
        picked = [torch.linspace(0, tokens - 1, min(tokens, MANY_TOKENS * 3 // 4)).long()]
        edges = torch.tensor([2**bits + step for bits in range(8, 25) for step in (-1, 0)])
        found = torch.searchsorted(positions[order].contiguous(), edges).clamp(max=tokens - 1)
        worst = errors.mean(-1).argsort(descending=True)[: MANY_TOKENS // 8]
        chosen = torch.cat([order[torch.cat([*picked, found])], worst]).unique()
        parts: dict[str, Tensor | None] = {"x": case["x"][chosen, :heads]}
        parts |= {name: case[name][chosen] for name in ("positions", "cos", "sin") if name in case.tensors}
        return Sample(case.having(parts), lambda out: out[chosen, :heads])

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        from replay.faults import rope

        return rope.grid(case, observed)

    def suspected(self, case: Case, name: str, params: Mapping[str, Value]) -> Fault | None:
        from replay.faults import rope

        value = params.get(rope.KEYS.get(name, ""))
        if case.get("positions") is None or not isinstance(value, int) or (value < 1 and name != "position-shift"):
            return None
        return rope.moved(case, name, value)

    def facts(self, case: Case) -> dict[str, Value]:
        x, dim = case["x"], rotary_dim(case)
        facts: dict[str, Value] = {
            "D": x.shape[-1], "N": x.shape[1], "B": 1, "S": x.shape[0], "rotary_dim": dim, "rope_dim": dim, "head_size": x.shape[-1],
            "itemsize": x.element_size(), "num_tokens": x.shape[0], "rotary_mode": case.text("mode"), "is_neox": case.text("mode") == "half",
        }  # fmt: skip
        positions, cache = case.get("positions"), case.get("cos_sin_cache")
        if positions is not None and positions.numel():
            facts |= {"max_position": int(positions.max()), "min_position": int(positions.min())}
        if cache is not None:
            facts["cos_sin_rows"] = cache.shape[0]
        if case.get("cos") is not None:
            facts |= {"max_abs_cos": float(case["cos"].abs().max()), "max_abs_sin": float(case["sin"].abs().max())}
        return facts

    def bounds(self, case: Case) -> list[tuple[str, bool, str]]:
        facts = self.facts(case)
        if "cos_sin_rows" not in facts or "max_position" not in facts:
            return []
        low, high, rows = facts["min_position"], facts["max_position"], facts["cos_sin_rows"]
        fine = int(low) >= 0 and int(high) < int(rows)
        return [("0 <= positions < rows of the table", fine, f"positions {low} to {high}, rows {rows}")]

    def sizes(self, case: Case) -> dict[str, int]:
        places = self.places(case)
        last = {"last_position": int(places.max())} if places.numel() else {}
        return {"tokens": case["x"].shape[0], "heads": case["x"].shape[1], "head_dim": case["x"].shape[-1], "rotary_dim": rotary_dim(case)} | last
