"""The kernels by operators of PyTorch itself, in the storage type, on cpu or cuda: code that has nothing in common with the references.
Runs in the worker; needs torch alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Tensors = dict[str, Tensor]
Params = dict[str, Any]


def run(kernel: str, tensors: Tensors, params: Params) -> Tensor | Tensors:
    return _KERNELS[kernel](tensors, params)


def _rope(t: Tensors, p: Params) -> Tensor:
    x, mode = t["x"], p.get("mode", "half")
    dim = int(p.get("rotary_dim") or 0) or x.shape[-1]
    cos, sin = cos_sin(t, p, dim)
    cos, sin = cos.to(x.device)[:, None, :], sin.to(x.device)[:, None, :]
    turned, rest = x[..., :dim].float(), x[..., dim:]
    if mode == "half":
        other = torch.cat([-turned[..., dim // 2 :], turned[..., : dim // 2]], -1)
        out = turned * cos.repeat(1, 1, 2) + other * sin.repeat(1, 1, 2)
    else:
        other = torch.stack([-turned[..., 1::2], turned[..., 0::2]], -1).flatten(-2)
        out = turned * cos.repeat_interleave(2, -1) + other * sin.repeat_interleave(2, -1)
        if mode == "interleave-to-half":
            out = torch.cat([out[..., 0::2], out[..., 1::2]], -1)
    return torch.cat([out.to(x.dtype), rest], -1)


def cos_sin(t: Tensors, p: Params, dim: int) -> tuple[Tensor, Tensor]:
    """[T, dim / 2] float32, from the captured table or as vLLM builds it."""
    half = dim // 2
    if "cos_sin_cache" in t:
        rows = t["cos_sin_cache"].float()[t["positions"].long()]
        return rows[:, :half], rows[:, half:dim]
    if "cos" in t:
        cos, sin = t["cos"].float(), t["sin"].float()
        if cos.shape[-1] == half:
            return cos, sin
        return (cos[:, 0::2], sin[:, 0::2]) if p.get("mode") == "interleave" else (cos[:, :half], sin[:, :half])
    base, factor = float(p.get("base", 10000.0)), float(p.get("factor", 1.0))
    inv, scale = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)), 1.0
    if p.get("scaling") == "linear":
        inv = inv / factor
    elif p.get("scaling") == "yarn":
        longest = float(p.get("original_max_position", 4096))
        ends = [
            dim * math.log(longest / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (p.get("beta_fast", 32.0), p.get("beta_slow", 1.0))
        ]
        low, high = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), dim - 1)
        keep = 1 - ((torch.arange(half, dtype=torch.float32) - low) / max(high - low, 1e-3)).clamp(0, 1)
        inv = inv / factor * (1 - keep) + inv * keep
        scale = float(p.get("attention_factor") or 0) or (1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0)
    angle = torch.outer(t["positions"].cpu().float(), inv)
    return angle.cos() * scale, angle.sin() * scale


def _paged_attention(t: Tensors, p: Params) -> Tensor:
    query, keys, values = t["query"], t["key_cache"], t.get("value_cache")
    block, out = keys.shape[1], []
    for request, length in enumerate(t["context_lens"].tolist()):
        blocks = t["block_table"][request, : -(-length // block)].long()
        k = keys[blocks].flatten(0, 1)[:length]
        v = k[..., : int(p["v_dim"])] if values is None else values[blocks].flatten(0, 1)[:length]
        group = query.shape[1] // k.shape[1]
        q = query[request].view(k.shape[1], group, -1)
        one = F.scaled_dot_product_attention(q[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None], scale=float(p["scale"]))
        out.append(one[0].reshape(query.shape[1], -1))
    return torch.stack(out)


def _prefill_attention(t: Tensors, p: Params) -> Tensor:
    q, k, v = t["query"], t["key"], t["value"]
    length, keys = q.shape[0], k.shape[0]
    i, j = torch.arange(length, device=q.device)[:, None], torch.arange(keys, device=q.device)[None, :]
    offset, mode = keys - length, p.get("mask", "bottom-right")
    if "attention_mask" in t:
        seen = ~t["attention_mask"].bool().reshape(-1, t["attention_mask"].shape[-1]).expand(length, keys)
    elif mode == "none":
        seen = j >= 0
    else:
        seen = j <= i + (offset if mode == "bottom-right" else 0)
        if int(p.get("window", 0)):
            seen = seen & (j > i + (offset if mode == "bottom-right" else 0) - int(p["window"]))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    blind = ~seen.any(-1, keepdim=True)
    mask = (seen | blind)[None, None]
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=float(p["scale"]))[0].transpose(0, 1)


def _rms_norm(t: Tensors, p: Params) -> Tensors:
    x = t["x"]
    if "residual" in t:
        x = x + t["residual"]
    return {"out": F.rms_norm(x, (x.shape[-1],), t["gamma"].to(x.dtype), float(p["eps"])), "sum": x}


def _matmul(t: Tensors, p: Params) -> Tensor:
    w = t["weight"].T if p.get("transposed") else t["weight"]
    return t["x"] @ w if "bias" not in t else torch.addmm(t["bias"].to(w.dtype), t["x"], w)


def _grouped_matmul(t: Tensors, p: Params) -> Tensor:
    ends = t["group_list"].long().tolist()
    if p.get("group_list_type", "ends") == "sizes":
        ends = torch.tensor(ends).cumsum(0).tolist()
    out, start = torch.zeros(t["x"].shape[0], t["weight"].shape[-1], dtype=t["x"].dtype, device=t["x"].device), 0
    for group, end in enumerate(ends):
        out[start:end] = t["x"][start:end] @ t["weight"][group]
        start = end
    return out


def _moe_gating(t: Tensors, p: Params) -> Tensors:
    logits, k = t["logits"].float(), int(p["k"])
    scores = logits.softmax(-1) if p["scoring"] == "softmax" else logits.sigmoid()
    choice = scores + t["bias"].float() if "bias" in t else scores
    groups = int(p["groups"])
    if groups > 1:
        grouped = choice.unflatten(-1, (groups, -1))
        rank = grouped.amax(-1) if p["group_score"] == "max" else grouped.topk(2, -1).values.sum(-1)
        kept = torch.zeros_like(rank, dtype=torch.bool).scatter(-1, rank.topk(int(p["top_groups"]), -1).indices, True)
        choice = grouped.masked_fill(~kept[..., None], float("-inf")).flatten(-2)
    index = choice.topk(k, -1).indices
    weights = scores.gather(-1, index)
    if p["renormalise"]:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return {"weights": (weights * float(p["routed_scaling"])).to(t["logits"].dtype), "indices": index.int()}


def _topk(t: Tensors, p: Params) -> Tensors:
    values, indices = torch.topk(t["x"], int(p["k"]), -1)
    return {"values": values, "indices": indices}


def _swiglu(t: Tensors, p: Params) -> Tensor:
    a, b = t["x"].chunk(2, -1)
    return F.silu(a.float()).to(a.dtype) * b if p.get("eager") else (F.silu(a.float()) * b.float()).to(a.dtype)


def _cache_write(t: Tensors, p: Params) -> Tensors:
    keys = t["key_cache"].clone()
    slots = t["slot_mapping"].long()
    kept = slots >= 0
    keys.view(-1, *keys.shape[2:])[slots[kept]] = t["key"][kept]
    if "value" not in t:
        return {"key_cache": keys}
    values = t["value_cache"].clone()
    values.view(-1, *values.shape[2:])[slots[kept]] = t["value"][kept]
    return {"key_cache": keys, "value_cache": values}


_KERNELS: dict[str, Callable[[Tensors, Params], Tensor | Tensors]] = {
    "rope": _rope, "paged_attention": _paged_attention, "prefill_attention": _prefill_attention, "rms_norm": _rms_norm, "matmul": _matmul,
    "grouped_matmul": _grouped_matmul, "moe_gating": _moe_gating, "topk": _topk, "swiglu": _swiglu, "cache_write": _cache_write,
}  # fmt: skip
