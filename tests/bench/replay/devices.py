"""Faulty devices: each kernel computed as a device would, in tiles that the referee never uses, with a fault put in by hand.

Written apart from replay/faults, so that the referee is asked about faults as they come, not about its own predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from replay.tensors import Case, Value

F32 = torch.float32


@dataclass
class Trial:
    """What a faulty device gave."""

    name: str
    params: dict[str, Value]
    observed: Tensor
    exact_params: bool = True
    """Whether the parameter can be told from the output at all."""


class Dice:
    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def number(self, low: int, high: int) -> int:
        """low <= n < high"""
        return int(torch.randint(low, max(high, low + 1), (1,), generator=self.generator))

    def one(self, options: list) -> object:  # type: ignore[type-arg]
        return options[self.number(0, len(options))]


# ---------------------------------------------------------------- rope


def rope(
    case: Case,
    positions: Tensor | None = None,
    *,
    mode: str = "",
    base: float = 0.0,
    scaled: bool = True,
    sized: bool = True,
    angle: torch.dtype = F32,
    inverse: torch.dtype = F32,
    tabled: torch.dtype | None = None,
    columns: int = 0,
    sin_from: int = 0,
) -> Tensor:
    x, dtype = case["x"], case["x"].dtype
    dim, mode = case.integer("rotary_dim", 0) or x.shape[-1], mode or case.text("mode")
    positions = case["positions"] if positions is None else positions
    base = base or case.number("base")
    inv = torch.tensor([base ** (-2 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
    size = 1.0
    if case.text("scaling") == "yarn":
        factor, longest = case.number("factor"), case.number("original_max_position")
        ends = [dim * math.log(longest / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32.0, 1.0)]
        low, high = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), dim - 1)
        ramp = torch.tensor([min(1.0, max(0.0, (i - low) / max(high - low, 1e-3))) for i in range(dim // 2)])
        if scaled:
            inv = inv / factor * ramp + inv * (1 - ramp)
            size = 0.1 * math.log(factor) + 1.0 if sized else 1.0
    inv = inv.to(F32).to(inverse).to(F32)

    def made(where: Tensor) -> tuple[Tensor, Tensor]:
        turned = where.to(angle)[:, None] * inv.to(angle)
        c, s = turned.cos().to(F32) * size, turned.sin().to(F32) * size
        return (c, s) if tabled is None else (c.to(tabled).to(F32), s.to(tabled).to(F32))

    cos, sin = made(positions)
    if sin_from:
        after = made(positions + 1)
        sin = torch.cat([cos, sin, *after], -1)[:, sin_from : sin_from + dim // 2]
    width = columns or dim
    cos, sin, h = cos[:, None, : width // 2], sin[:, None, : width // 2], x.float()
    if mode == "half":
        a, b = h[..., : width // 2], h[..., width // 2 : width]
    else:
        a, b = h[..., 0:width:2], h[..., 1:width:2]
    first, second = a * cos - b * sin, b * cos + a * sin
    out = torch.stack([first, second], -1).flatten(-2) if mode == "interleave" else torch.cat([first, second], -1)
    return torch.cat([out, h[..., width:]], -1).to(dtype)


def rope_trials(case: Case, dice: Dice) -> dict[str, Callable[[], Trial]]:
    pos, dim = case["positions"], case.integer("rotary_dim", 0) or case["x"].shape[-1]
    top = int(pos.max())
    tokens = len(pos)

    def trial(name: str, observed: Tensor, exact: bool = True, **params: Value) -> Trial:
        return Trial(name, params, observed, exact)

    wrap, limit, by = dice.number(top // 3 + 2, top), dice.number(top // 3 + 1, top), dice.number(1, 300)
    cut = dice.number(1, dim // 8) * 8
    other = dice.one([b for b in (5e3, 2e4, 5e4, 1e5, 2.5e5, 5e5, 1e6, 2e6, 5e6, 1e7) if b != case.number("base")])
    many = tokens > 4
    out: dict[str, Callable[[], Trial]] = {
        "wrap 2^16": lambda: trial("position-wrap", rope(case, pos & 0xFFFF), modulus=65536),
        "wrap signed": lambda: trial("position-wrap-signed", rope(case, ((pos + 32768) & 0xFFFF) - 32768), modulus=65536),
        "clamp 65535": lambda: trial("position-clamp", rope(case, pos.clamp(max=65535)), modulus_free(tokens), limit=65535),
        "off by one": lambda: trial("position-shift", rope(case, pos + 1), by=1),
        "bf16 positions": lambda: trial("position-dtype", rope(case, pos.to(torch.bfloat16).float()), dtype="bfloat16"),
        "fp16 positions": lambda: trial("position-dtype", rope(case, pos.to(torch.float16).float()), dtype="float16"),
        "fp16 angles": lambda: trial("angle-dtype", rope(case, angle=torch.float16), dtype="float16"),
        "fp16 frequencies": lambda: trial("frequency-dtype", rope(case, inverse=torch.float16), dtype="float16"),
        "bf16 frequencies": lambda: trial("frequency-dtype", rope(case, inverse=torch.bfloat16), dtype="bfloat16"),
        "fp16 table": lambda: trial("table-dtype", rope(case, tabled=torch.float16), dtype="float16"),
        "bf16 table": lambda: trial("table-dtype", rope(case, tabled=torch.bfloat16), dtype="bfloat16"),
        "pairs": lambda: trial("pairs", rope(case, mode="interleave" if case.text("mode") == "half" else "half")),
        "other base": lambda: trial("other-base", rope(case, base=float(other)), base=float(other)),  # type: ignore[arg-type]
        "no scaling": lambda: trial("scaling-missing", rope(case, scaled=False)),
        "no magnitude": lambda: trial("magnitude-missing", rope(case, sized=False)),
        "columns cut": lambda: trial("columns-cut", rope(case, columns=cut), rotated=cut),
        "half unwritten": lambda: trial("half-not-written", unwritten(case, rope(case), dim), half="second"),
        "nan rows": lambda: trial("nan-rows", nan_from(rope(case), tokens - min(5, max(1, tokens // 3))), False),
    }
    if dim & (dim - 1):
        out["sin offset"] = lambda: trial(
            "sin-offset", rope(case, sin_from=(1 << (dim - 1).bit_length()) // 2), column=(1 << (dim - 1).bit_length()) // 2
        )
    if many:
        out["wrap any"] = lambda: trial("position-wrap", rope(case, pos % wrap), wrapped_enough(pos, wrap), modulus=wrap)
        out["clamp any"] = lambda: trial("position-clamp", rope(case, pos.clamp(max=limit)), limit=limit)
        out["shift any"] = lambda: trial("position-shift", rope(case, pos + by), by=by)
    return out


def modulus_free(tokens: int) -> bool:
    return tokens > 1


def wrapped_enough(pos: Tensor, modulus: int) -> bool:
    return int((pos >= modulus).sum()) > 1


def unwritten(case: Case, out: Tensor, dim: int) -> Tensor:
    out = out.clone()
    out[..., dim // 2 : dim] = case["x"][..., dim // 2 : dim]
    return out


def nan_from(out: Tensor, row: int) -> Tensor:
    out = out.clone()
    out[row:] = float("nan")
    return out


# ---------------------------------------------------------------- attention


def flash(
    q: Tensor, k: Tensor, v: Tensor, scale: float, dtype: torch.dtype, tile: int, hidden: Tensor | None = None, sums: torch.dtype = F32
) -> Tensor:
    """q [H, S, D], k, v [H, n, D]: online softmax, weights in the storage type, sums kept in `sums`."""
    q, k, v = q.float(), k.float(), v.float()
    m, total = torch.full((*q.shape[:2], 1), -1e30), torch.zeros(*q.shape[:2], 1)
    out = torch.zeros(*q.shape[:2], v.shape[-1])
    for at in range(0, k.shape[1], tile):
        s = q @ k[:, at : at + tile].transpose(1, 2) * scale
        if hidden is not None:
            s = s.masked_fill(hidden[:, at : at + tile], -1e30)
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p, a = torch.exp(s - new), torch.exp(m - new)
        if hidden is not None:
            p = p.masked_fill(hidden[:, at : at + tile], 0.0)
        total = (total * a + p.sum(-1, keepdim=True)).to(sums).float()
        out = ((out * a).to(sums).float() + (p.to(dtype).float() @ v[:, at : at + tile]).to(sums).float()).to(sums).float()
        m = new
    return (out / total).to(dtype)


def paged(
    case: Case,
    tile: int,
    *,
    slots: Callable[[int], Tensor] | None = None,
    keys: Tensor | None = None,
    values: Tensor | None = None,
    scale: float | None = None,
    columns: int = 0,
    modulo: bool = False,
    sums: torch.dtype = F32,
    zero: tuple[int, int] | None = None,
) -> Tensor:
    query = case["query"]
    keys, stored = case["key_cache"] if keys is None else keys, case.get("value_cache") if values is None else values
    flat_k = keys.flatten(0, 1)
    flat_v = flat_k[..., : case.integer("v_dim")] if stored is None else stored.flatten(0, 1)
    heads, kv_heads = query.shape[1], keys.shape[2]
    of = torch.arange(heads) % kv_heads if modulo else torch.arange(heads) // (heads // kv_heads)
    out = []
    for request in range(len(query)):
        own = true_slots(case, request) if slots is None else slots(request)
        k, v = flat_k[own].transpose(0, 1)[of], flat_v[own].transpose(0, 1)[of]
        if zero is not None and zero[0] == request:
            block = keys.shape[1]
            k, v = k.clone(), v.clone()
            k[:, zero[1] * block : (zero[1] + 1) * block] = 0
            v[:, zero[1] * block : (zero[1] + 1) * block] = 0
        q = query[request][:, None]
        if columns:
            q, k = q[..., :columns], k[..., :columns]
        one = flash(q, k, v, case.number("scale") if scale is None else scale, query.dtype, tile, None, sums)[:, 0]
        if columns and stored is not None:
            one[:, columns:] = 0
        out.append(one)
    return torch.stack(out)


def true_slots(case: Case, request: int, length: int | None = None, row: int | None = None, block: int | None = None) -> Tensor:
    size = case["key_cache"].shape[1]
    block = block or size
    tokens = torch.arange(int(case["context_lens"][request]) if length is None else length)
    table = case["block_table"][request if row is None else row].long()
    return (table[(tokens // block).clamp(max=len(table) - 1)] * block + tokens % block).clamp(0, case["key_cache"].shape[0] * size - 1)


def paged_trials(case: Case, dice: Dice) -> dict[str, Callable[[], Trial]]:
    lengths, block, requests = case["context_lens"].long(), case["key_cache"].shape[1], len(case["query"])
    blocks, dim, kv_heads = case["key_cache"].shape[0], case["query"].shape[-1], case["key_cache"].shape[2]
    size, tile = blocks * block, int(dice.one([96, 160, 320]))  # type: ignore[call-overload]
    by, shift = int(dice.one([-5, -3, -2, 2, 3, 4, 6])), int(dice.one([-11, -7, -4, -2, 2, 5, 9]))  # type: ignore[call-overload]
    longest = int(lengths.max())
    limit = dice.number(2, longest)
    victim = dice.number(0, requests)
    count = -(-int(lengths[victim]) // block)
    hurt = dice.number(0, count)
    own = case["block_table"][victim].long()
    other = int(dice.one([n for n in range(blocks) if n != int(own[hurt])]))  # type: ignore[call-overload]
    columns = dice.number(1, dim // 16) * 16
    scale = float(dice.one([d**-0.5 for d in (64, 96, 192, 256, 576) if d != dim]))  # type: ignore[arg-type]
    wide = int(dice.one([b for b in (16, 32, 64, 128, 256) if b != block]))  # type: ignore[call-overload]
    rolled = {r: case["block_table"][r, : -(-int(lengths[r]) // block)].long().roll(-1) for r in range(requests)}

    def trial(name: str, observed: Tensor, exact: bool = True, **params: Value) -> Trial:
        return Trial(name, params, observed, exact)

    def of_lengths(wanted: Tensor) -> Tensor:
        wanted = wanted.clamp(min=1, max=case["block_table"].shape[1] * block)
        return paged(case, tile, slots=lambda r: true_slots(case, r, int(wanted[r])))

    def without(r: int) -> Tensor:
        slots = true_slots(case, r)
        return slots if r != victim else torch.cat([slots[: hurt * block], slots[(hurt + 1) * block :]])

    def replaced(r: int) -> Tensor:
        slots = true_slots(case, r).clone()
        if r == victim:
            part = slots[hurt * block : (hurt + 1) * block]
            slots[hurt * block : (hurt + 1) * block] = other * block + torch.arange(len(part))
        return slots

    def stale() -> Tensor:
        at = int(own[hurt])
        keys = case["key_cache"].clone()
        keys[at] = case["previous_key_cache"][at]
        values = case.get("value_cache")
        if values is not None:
            values = values.clone()
            values[at] = case["previous_value_cache"][at]
        return paged(case, tile, keys=keys, values=values)

    def turned(cache: Tensor) -> Tensor:
        return cache.reshape(cache.shape[0], cache.shape[2], cache.shape[1], cache.shape[3]).transpose(1, 2)

    values = case.get("value_cache")
    whole = count > 1
    out: dict[str, Callable[[], Trial]] = {
        "table + 1": lambda: trial("table-shift", paged(case, tile, slots=lambda r: (true_slots(case, r) + block) % size), by=1),
        "table - 1": lambda: trial("table-shift", paged(case, tile, slots=lambda r: (true_slots(case, r) - block) % size), by=-1),
        "table + n": lambda: trial("table-shift", paged(case, tile, slots=lambda r: (true_slots(case, r) + by * block) % size), by=by),
        "table rolled": lambda: trial(
            "table-roll",
            paged(case, tile, slots=lambda r: rolled[r][torch.arange(int(lengths[r])) // block] * block + torch.arange(int(lengths[r])) % block),
            by=-1,
        ),
        "rows reversed": lambda: trial("table-row", paged(case, tile, slots=lambda r: true_slots(case, r, row=requests - 1 - r)), False),
        "block size": lambda: trial("block-size", paged(case, tile, slots=lambda r: true_slots(case, r, block=wide)), tokens=wide),
        "tail seen": lambda: trial("tail-not-masked", of_lengths((lengths + block - 1) // block * block)),
        "tail dropped": lambda: trial("tail-dropped", of_lengths(lengths // block * block)),
        "last token": lambda: trial("context-shift", of_lengths(lengths - 1), by=-1),
        "length off": lambda: trial("context-shift", of_lengths(lengths + shift), False),
        "cut anywhere": lambda: trial("context-clamp", of_lengths(lengths.clamp(max=limit)), limit=limit),
        "first block": lambda: trial("context-clamp", of_lengths(lengths.clamp(max=block)), False),
        "cut 65536": lambda: trial("context-clamp", of_lengths(lengths.clamp(max=65536)), limit=65536),
        "wrap 65536": lambda: trial("context-wrap", of_lengths(torch.where(lengths > 65535, lengths & 0xFFFF, lengths)), modulus=65536),
        "stale": lambda: trial("block-stale", stale(), request=victim, block=hurt),
        "missing": lambda: trial(
            "block-missing" if whole else "context-clamp",
            paged(case, tile, slots=without) if whole else of_lengths(lengths),
            request=victim,
            block=hurt,
        ),
        "replaced": lambda: trial("block-replaced", paged(case, tile, slots=replaced), request=victim, block=hurt, by=other),
        "unwritten": lambda: trial("block-unwritten", paged(case, tile, zero=(victim, hurt)), request=victim, block=hurt),
        "layout": lambda: trial("cache-layout", paged(case, tile, keys=turned(case["key_cache"]), values=None if values is None else turned(values))),
        "columns": lambda: trial("head-dim-cut", paged(case, tile, columns=columns), columns=columns),
        "no scale": lambda: trial("scale-missing", paged(case, tile, scale=1.0)),
        "scale": lambda: trial("scale", paged(case, tile, scale=scale), value=round(scale, 9)),
        "modulo": lambda: trial("heads-modulo", paged(case, tile, modulo=True)) if kv_heads else None,  # type: ignore[dict-item,return-value]
        "average": lambda: trial("uniform-average", paged(case, tile, scale=0.0)),
        "bf16 sums": lambda: trial("accumulation", paged(case, tile, sums=torch.bfloat16), dtype="bfloat16"),
        "fp16 sums": lambda: trial("accumulation", paged(case, tile, sums=torch.float16), dtype="float16"),
        "nan row": lambda: trial("nan-rows", nan_from(paged(case, tile), requests - 1), False),
    }
    if requests == 1:
        del out["nan row"]  # everything is NaN: nothing is left to compare
    return out
