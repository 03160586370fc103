"""How paged attention goes wrong: block tables shifted, rolled or of another request, block sizes taken for others, tails not masked or
dropped, contexts cut or wrapped, stale or missing blocks, layouts swapped, heads grouped the other way, wrong scales, columns left out.

A context of another length and a block with other content are read back from the output with sums over single blocks, which make every
length and every replacement cheap to try."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from replay.faults.slots import Slots
from replay.kernels.attention import tiled
from replay.kernels.base import Fault
from replay.kernels.paged_attention import blocks_of, gathered, value_columns
from replay.score import row_errors
from replay.tensors import F64, Case, Value, name_of

SCALES = tuple(d**-0.5 for d in (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 512, 576)) + tuple(2.0**-e for e in (1, 2, 3, 4, 5, 6, 7))
BLOCK_SIZES = (8, 16, 32, 64, 128, 256, 512)
SHIFTS = (*range(-8, 0), *range(1, 9))
REPLACEMENTS = 1 << 16
"""Logical blocks x physical blocks up to which every replacement is compared on all heads; beyond, one head decides which are."""


def grid(case: Case, observed: Tensor | None) -> list[Fault]:
    slots = Slots(case)
    found = [] if observed is None else list(_read_back(case, slots, observed))
    return [*found, *_tables(case, slots), *_lengths(case, slots), *_arithmetic(case, slots), *_layouts(case, slots)]


def _all(case: Case, slots: Slots, choose: Callable[[int], Tensor], **how: bool | int | None) -> Callable[[], Tensor]:
    """Every request attends over the slots that `choose` gives for it."""
    scale = case.number("scale")

    def predict() -> Tensor:
        return torch.stack([slots.attend(request, choose(request), scale, **how) for request in range(len(case["query"]))])  # type: ignore[arg-type]

    return predict


# ---------------------------------------------------------------- block tables


def _tables(case: Case, slots: Slots) -> Iterator[Fault]:
    requests, size = case["query"].shape[0], slots.blocks * slots.block

    for by in SHIFTS:
        if by % slots.blocks:
            yield Fault(
                "table-shift",
                {"by": by},
                _all(case, slots, lambda r, by=by: (slots.true(r) + by * slots.block) % size),
                prior=1.0 if abs(by) == 1 else 0.8,
            )
    for by in (-1, 1, -2, 2):
        yield Fault("table-roll", {"by": by}, _all(case, slots, lambda r, by=by: _rolled(case, slots, r, by)), prior=0.9 if by == -1 else 0.7)
    for by in range(1, min(requests, 5)):
        yield Fault("table-row", {"by": by}, _all(case, slots, lambda r, by=by: slots.true(r, row=(r + by) % requests)), prior=0.8)
    if requests > 2:
        yield Fault("table-row", {"by": "reversed"}, _all(case, slots, lambda r: slots.true(r, row=requests - 1 - r)), prior=0.8)
    for modulus in (256, 65536):
        if slots.blocks > modulus:
            wrapped = lambda r, modulus=modulus: slots.true(r) % (modulus * slots.block)  # noqa: E731
            yield Fault("table-wrap", {"modulus": modulus}, _all(case, slots, wrapped))
    for block in BLOCK_SIZES:
        if block != slots.block:
            yield Fault("block-size", {"tokens": block}, _all(case, slots, lambda r, block=block: slots.true(r, block=block)), prior=0.9)


def _rolled(case: Case, slots: Slots, request: int, by: int) -> Tensor:
    """The logical blocks of a request moved round by some."""
    tokens = torch.arange(int(case["context_lens"][request]))
    blocks = blocks_of(case, request).roll(by)
    return (blocks[tokens // slots.block] * slots.block + tokens % slots.block).clamp(0, slots.zero - 1)


# ---------------------------------------------------------------- lengths


def wanted_lengths(case: Case, name: str, value: int) -> Tensor:
    """Context lengths as a fault of them has them."""
    lengths, block = case["context_lens"].long(), case["key_cache"].shape[1]
    if name == "tail-not-masked":
        wanted = (lengths + block - 1) // block * block
    elif name == "tail-dropped":
        wanted = lengths // block * block
    elif name == "context-shift":
        wanted = lengths + value
    elif name == "context-clamp":
        wanted = lengths.clamp(max=value)
    else:
        wanted = torch.where(lengths >= value, lengths % value, lengths)
    return wanted.clamp(min=1, max=case["block_table"].shape[1] * block)


KEYS = {"context-shift": "by", "context-clamp": "limit", "context-wrap": "modulus"}
"""Faults of the context length, and the name of their parameter."""


def shortened(case: Case, slots: Slots, name: str, value: int = 0, prior: float = 1.0) -> Fault | None:
    """A fault of the context length at one value of its parameter; None where it changes nothing."""
    wanted = wanted_lengths(case, name, value)
    if torch.equal(wanted, case["context_lens"].long()):
        return None
    params: dict[str, Value] = {KEYS[name]: value} if name in KEYS else {}
    return Fault(name, params, _all(case, slots, lambda r: slots.true(r, length=int(wanted[r]))), prior=prior)


def _lengths(case: Case, slots: Slots) -> Iterator[Fault]:
    lengths, block = case["context_lens"].long(), slots.block
    tried = [("tail-not-masked", 0, 1.0), ("tail-dropped", 0, 1.0)]
    tried += [("context-shift", by, 1.0 if by == -1 else 0.8) for by in SHIFTS]
    limits = sorted({block, *(1 << bits for bits in range(6, 21)), *((1 << bits) - 1 for bits in range(15, 18))})
    tried += [("context-clamp", limit, 0.9 if limit in (block, 65535, 65536) else 0.7) for limit in limits]
    tried += [("context-wrap", modulus, 1.0) for modulus in (65536, 32768)]
    for name, value, prior in tried:
        if (fault := shortened(case, slots, name, value, prior)) is not None:
            yield fault
    for size in (128, 256, 512, 1024, 2048, 4096, 8192):
        if size < int(lengths.max()):
            yield Fault("window", {"tokens": size}, _all(case, slots, lambda r, size=size: slots.true(r)[-size:]), prior=0.7)


# ---------------------------------------------------------------- read back from the output


def _read_back(case: Case, slots: Slots, observed: Tensor) -> Iterator[Fault]:
    """Lengths and replaced blocks that the output itself tells."""
    scale = case.number("scale")
    exact = torch.stack([slots.attend(r, slots.true(r), scale) for r in range(len(case["query"]))])
    errors = row_errors(observed, exact).mean(-1).sqrt()
    noise = torch.finfo(case["query"].dtype).eps
    wrong = [r for r in range(len(exact)) if float(errors[r]) > 2 * noise]
    if not wrong or not bool(torch.isfinite(observed[wrong]).all()):
        return
    lengths = {}
    replaced: dict[int, tuple[str, int, int]] = {}
    for request in wrong[:8]:
        sums = slots.partials(request, scale)
        length, fit = _length(case, slots, request, observed[request], sums)
        if fit < 2 * noise:
            lengths[request] = length
            continue
        if (found := _replaced(case, slots, request, observed[request], sums, 2 * noise)) is not None:
            replaced[request] = found
    if lengths and len(lengths) == len(wrong[:8]):
        yield from _length_models(case, slots, lengths)
    if replaced and len(replaced) == len(wrong[:8]):
        kinds = {kind for kind, _, _ in replaced.values()}
        if kinds <= {*ALIKE}:
            kinds = {*ALIKE}
        elif len(kinds) > 1:
            return
        for kind in sorted(kinds):
            yield _replacement(case, slots, kind, {request: (kind, *where) for request, (_, *where) in replaced.items()})


ALIKE = ("block-missing", "block-unwritten")
"""Where a few tokens carry the weight, a block read as zeros and one left out give the same output: both are tried, whichever fits better."""


def _length_models(case: Case, slots: Slots, found: dict[int, int]) -> Iterator[Fault]:
    true = case["context_lens"].long()
    # where few tokens carry the weight, requests can differ by tokens that hardly count: each length is tried on all
    for limit in sorted(set(found.values()), reverse=True)[:4]:
        if (fault := shortened(case, slots, "context-clamp", limit, 0.7)) is not None:
            yield fault
    # a shift ends at the first token and at the end of the table, so that not all requests need show the same
    for by in sorted({n - int(true[r]) for r, n in found.items()}, key=abs, reverse=True)[:3]:
        if (fault := shortened(case, slots, "context-shift", by, 0.6)) is not None:
            yield fault


def _length(case: Case, slots: Slots, request: int, observed: Tensor, sums: tuple[Tensor, Tensor]) -> tuple[int, float]:
    """The length of context that fits best, and its error: first by whole blocks, then token by token around the best block."""
    blocks = case["block_table"][request].long().clamp(0, slots.blocks - 1)
    total, out = sums[0][:, blocks].cumsum(1), sums[1][:, blocks].cumsum(1)
    error = _fits(out / total[..., None].clamp(min=1e-300), observed)
    near = int(error.argmin())
    best = ((near + 1) * slots.block, float(error[near]))
    scale = case.number("scale")
    logits = slots.logits(request).to(F64) * scale
    highest = logits[:, : slots.zero].amax(-1, keepdim=True)
    of = slots.kv_head_of()
    for number in {near, near + 1} & set(range(len(blocks))):
        place = int(blocks[number]) * slots.block + torch.arange(slots.block)
        weights = torch.exp(logits[:, place] - highest)
        values = torch.stack([slots.values(int(of[head]))[place] for head in range(slots.heads)]).to(F64)
        before_total = total[:, number - 1] if number else torch.zeros(slots.heads, dtype=F64)
        before_out = out[:, number - 1] if number else torch.zeros(slots.heads, slots.v_dim, dtype=F64)
        running = before_out[:, None] + (weights[..., None] * values).cumsum(1)
        error = _fits(running / (before_total[:, None] + weights.cumsum(1))[..., None].clamp(min=1e-300), observed)
        if float(error.min()) < best[1]:
            best = (number * slots.block + int(error.argmin()) + 1, float(error.min()))
    return best


def _fits(candidates: Tensor, observed: Tensor) -> Tensor:
    """Relative rms distance of each candidate, [heads, n, D] against [heads, D] -> [n]."""
    size = observed.to(F64).square().mean(-1).clamp(min=1e-30)
    return ((candidates - observed.to(F64)[:, None]).square().mean(-1) / size[:, None]).mean(0).sqrt()


def _replaced(case: Case, slots: Slots, request: int, observed: Tensor, sums: tuple[Tensor, Tensor], limit: float) -> tuple[str, int, int] | None:
    """Kind, logical block, and physical block (of the replacement, counted on through the earlier cache) that explain a request."""
    blocks, length = blocks_of(case, request).clamp(0, slots.blocks - 1), int(case["context_lens"][request])
    tail = length - (len(blocks) - 1) * slots.block
    ends = slots.partials(request, case.number("scale"), tail)
    head_total, head_out = sums[0][:, blocks[:-1]], sums[1][:, blocks[:-1]]
    total = head_total.sum(1) + ends[0][:, blocks[-1]]
    out = head_out.sum(1) + ends[1][:, blocks[-1]]
    zeros = torch.exp(-slots.logits(request)[:, : slots.zero].to(F64).amax(-1) * case.number("scale"))  # weight of a token whose key is zero
    everything = torch.arange(sums[0].shape[1])
    heads = slice(0, slots.heads if len(blocks) * len(everything) <= REPLACEMENTS else 1)

    def tried(number: int, others: Tensor, some: slice) -> Tensor:
        """Errors with a logical block replaced by each of `others`, by zeros, and by nothing."""
        last = number == len(blocks) - 1
        mine, tokens = (ends, tail) if last else (sums, slots.block)
        rest_total, rest_out = (total - mine[0][:, blocks[number]])[some], (out - mine[1][:, blocks[number]])[some]
        totals = [rest_total[:, None] + mine[0][some][:, others], (rest_total + zeros[some] * tokens)[:, None], rest_total[:, None]]
        outs = [rest_out[:, None] + mine[1][some][:, others], rest_out[:, None], rest_out[:, None]]
        errors = _fits(torch.cat(outs, 1) / torch.cat(totals, 1)[..., None].clamp(min=1e-300), observed[some])
        errors[: len(others)][others == blocks[number]] = float("inf")
        return errors if len(blocks) > 1 else errors[:-1]

    best: tuple[float, int, int] = (float("inf"), 0, 0)
    for number in range(len(blocks)):
        errors = tried(number, everything, heads)
        if float(errors.min()) < best[0]:
            best = (float(errors.min()), number, int(errors.argmin()))
    _, number, at = best
    if float(tried(number, everything, slice(None))[at]) > limit:
        return None
    if at >= len(everything):
        return ("block-unwritten" if at == len(everything) else "block-missing"), number, 0
    return ("block-stale" if at == int(blocks[number]) + slots.blocks else "block-replaced"), number, at


def suspected(case: Case, name: str, params: Mapping[str, Value]) -> Fault | None:
    """A fault of lengths, tables or single blocks at the parameters that are suspected; None for what is not one of these."""
    slots = Slots(case)
    value = params.get(KEYS.get(name, ""))
    if name in KEYS and isinstance(value, int):
        return shortened(case, slots, name, value)
    request, block = params.get("request"), params.get("block")
    if (
        name not in ("block-stale", "block-missing", "block-unwritten", "block-replaced")
        or not isinstance(request, int)
        or not isinstance(block, int)
    ):
        return None
    if not 0 <= request < len(case["query"]) or not 0 <= block < len(blocks_of(case, request)):
        return None
    physical = int(blocks_of(case, request)[block])
    if name == "block-stale":
        if not slots.previous:
            return None
        physical += slots.blocks
    elif name == "block-replaced":
        by = params.get("by")
        if not isinstance(by, int) or not 0 <= by < slots.blocks:
            return None
        physical = by
    return _replacement(case, slots, name, {request: (name, block, physical)})


def _replacement(case: Case, slots: Slots, kind: str, found: dict[int, tuple[str, int, int]]) -> Fault:
    def chosen(request: int) -> Tensor:
        true = slots.true(request)
        if request not in found:
            return true
        _, number, physical = found[request]
        first, last = number * slots.block, min((number + 1) * slots.block, len(true))
        if kind == "block-missing":
            return torch.cat([true[:first], true[last:]])
        if kind == "block-unwritten":
            true[first:last] = slots.zero
        else:
            true[first:last] = physical * slots.block + torch.arange(last - first)
        return true

    request, (_, number, physical) = next(iter(found.items()))
    params: dict[str, Value] = {"request": request, "block": number}
    if kind == "block-replaced":
        params["by"] = physical
    if len(found) > 1:
        params["requests"] = len(found)
    return Fault(kind, params, _all(case, slots, chosen))


# ---------------------------------------------------------------- arithmetic


def _arithmetic(case: Case, slots: Slots) -> Iterator[Fault]:
    dim, true = case["query"].shape[-1], case.number("scale")

    def with_scale(value: float) -> Callable[[], Tensor]:
        return lambda: torch.stack([slots.attend(r, slots.true(r), value) for r in range(len(case["query"]))])

    yield Fault("scale-missing", {}, with_scale(1.0))
    yield Fault("uniform-average", {}, with_scale(0.0))
    for scale in SCALES:
        if abs(scale / true - 1) > 1e-3:
            yield Fault("scale", {"value": round(scale, 9)}, with_scale(scale), prior=0.8)
    for columns in range(16, dim, 16):
        for cut in (True, False) if not slots.latent else (False,):
            params: dict[str, Value] = {"columns": columns} if slots.latent else {"columns": columns, "values": "cut" if cut else "whole"}
            cut_all = _all(case, slots, lambda r: slots.true(r), columns=columns, cut_values=cut)
            yield Fault("head-dim-cut", params, cut_all, prior=0.9)
    if 1 < slots.kv_heads < slots.heads:
        yield Fault("heads-modulo", {}, _all(case, slots, lambda r: slots.true(r), modulo=True))
    for dtype in (torch.float16, torch.bfloat16):
        for tile in (64, 128, 256, 512):
            yield Fault("accumulation", {"dtype": name_of(dtype), "tile": tile}, lambda d=dtype, t=tile: _accumulated(case, d, t), precision=True)


def _accumulated(case: Case, accumulate: torch.dtype, tile: int) -> Tensor:
    """Running sums kept in a narrow type."""
    group = case["query"].shape[1] // case["key_cache"].shape[2]
    out = []
    for request, length in enumerate(case["context_lens"].tolist()):
        blocks, values = blocks_of(case, request), case.get("value_cache")
        k = gathered(case["key_cache"], blocks, length)
        v = k[..., : value_columns(case)] if values is None else gathered(values, blocks, length)
        q = case["query"][request].view(k.shape[1], group, -1)
        dtype = case["query"].dtype
        one = tiled(q, k.transpose(0, 1), v.transpose(0, 1), case.number("scale"), dtype, tile, True, accumulate=accumulate)
        out.append(one.reshape(case["query"].shape[1], -1))
    return torch.stack(out).to(F64)


# ---------------------------------------------------------------- layouts


def _layouts(case: Case, slots: Slots) -> Iterator[Fault]:
    keys, values = case["key_cache"], case.get("value_cache")
    if keys.shape[2] > 1 and keys.shape[1] > 1:

        def predict() -> Tensor:
            other = Slots(case, _as_bnsd(keys), None if values is None else _as_bnsd(values))
            return torch.stack([other.attend(r, other.true(r), case.number("scale")) for r in range(len(case["query"]))])

        yield Fault("cache-layout", {"read as": "blocks, kv_heads, block_size"}, predict)


def _as_bnsd(cache: Tensor) -> Tensor:
    """The memory of [blocks, block_size, heads, D] read as [blocks, heads, block_size, D]."""
    return cache.contiguous().reshape(cache.shape[0], cache.shape[2], cache.shape[1], cache.shape[3]).transpose(1, 2)
