"""In the worker: the kernels as operators of torch_npu. The only place where torch_npu is ever imported. Needs torch alone besides.

Argument orders, layouts and defaults are those of the operators' documentation; what is given by name there is given by name here."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from replay.backends.call import Unavailable

Tensors = dict[str, Tensor]
Params = dict[str, Any]


def opened(job: dict[str, Any]) -> tuple[str, Callable[[], None]]:
    """The device, and what waits for it. Raises Unavailable, with the state that was found."""
    from replay.backends.probe import state

    found: dict[str, Any] = state()  # type: ignore[no-untyped-call]
    if found["state"] != "ok":
        raise Unavailable(found["message"])
    import torch_npu

    torch_npu.npu.set_device(0)  # ASCEND_RT_VISIBLE_DEVICES, set for the worker, chooses the chip
    limit = job.get("time_limit")
    if limit and hasattr(torch_npu.npu, "set_op_timeout_ms"):
        torch_npu.npu.set_op_timeout_ms(int(float(limit) * 1000))
    if hasattr(torch_npu.npu, "set_compile_mode"):
        torch_npu.npu.set_compile_mode(jit_compile=False)
    return "npu:0", torch_npu.npu.synchronize


def versions() -> dict[str, str]:
    import torch_npu

    found = {"torch_npu": str(getattr(torch_npu, "__version__", "?"))}
    for name, ask in (("device", "get_device_name"),):
        try:
            found[name] = str(getattr(torch_npu.npu, ask)())
        except Exception:  # only a label
            found[name] = "?"
    try:
        from torch_npu.utils.collect_env import get_cann_version

        found["cann"] = str(get_cann_version())
    except Exception:  # only a label
        found["cann"] = os.environ.get("ASCEND_HOME_PATH", "?")
    return found


def run(kernel: str, operator: str, tensors: Tensors, params: Params) -> Tensor | Tensors:
    """Calls the operator (empty: the first one of the kernel) and gives its outputs by name."""
    table = OPERATORS.get(kernel, {})
    name = operator or next(iter(table), "")
    if name not in table:
        raise Unavailable(f"{kernel} is not mapped to an operator {name!a}; there are {', '.join(table) or 'none'}")
    import torch_npu

    return table[name](torch_npu, tensors, params)


# ---------------------------------------------------------------- rope


def _table(t: Tensors, p: Params, dim: int) -> tuple[Tensor, Tensor]:
    """cos and sin of each token as [T, dim / 2], float32."""
    from replay.backends.native import cos_sin

    cos, sin = cos_sin(t, p, dim)
    return cos.to(t["x"].device), sin.to(t["x"].device)


def _wide(half: Tensor, mode: str) -> Tensor:
    """Each angle twice, as the operators want it: half a row apart, or side by side."""
    return torch.cat([half, half], -1) if mode == "half" else half.repeat_interleave(2, -1)


def _rotary_dim(t: Tensors, p: Params) -> int:
    return int(p.get("rotary_dim") or 0) or int(t["x"].shape[-1])


def rotary_mul(npu: Any, t: Tensors, p: Params) -> Tensor:
    """npu_rotary_mul(x, cos, sin, rotary_mode): x [B, S, N, D] with cos, sin [1, S, 1, D] (BSND)."""
    mode = p.get("mode", "half")
    if mode not in ("half", "interleave"):
        raise Unavailable(f"npu_rotary_mul has no mode {mode!a}; use npu_interleave_rope")
    dim = _rotary_dim(t, p)
    turned, rest = t["x"][..., :dim], t["x"][..., dim:]
    cos, sin = (_wide(one, mode).to(turned.dtype)[None, :, None, :] for one in _table(t, p, dim))
    out = npu.npu_rotary_mul(turned.contiguous()[None], cos, sin, rotary_mode=mode)[0]
    return torch.cat([out, rest], -1)


def apply_rotary_pos_emb(npu: Any, t: Tensors, p: Params) -> Tensor:
    """npu_apply_rotary_pos_emb(query, key, cos, sin, layout, rotary_mode): in place, BSND, cos [B, S, 1, D]."""
    dim = _rotary_dim(t, p)
    turned, rest = t["x"][..., :dim].contiguous()[None], t["x"][..., dim:]
    cos, sin = (_wide(one, "half").to(turned.dtype)[None, :, None, :].contiguous() for one in _table(t, p, dim))
    query, _ = npu.npu_apply_rotary_pos_emb(turned, turned[:, :, :1].clone(), cos, sin, layout="BSND", rotary_mode="half")
    return torch.cat([query[0], rest], -1)


def interleave_rope(npu: Any, t: Tensors, p: Params) -> Tensor:
    """npu_interleave_rope(x, cos, sin): x [B, N, S, 64], cos [B, 1, S, 64]; the output is laid out as halves."""
    cos, sin = (_wide(one, "half").to(t["x"].dtype)[None, None] for one in _table(t, p, 64))
    out: Tensor = npu.npu_interleave_rope(t["x"].transpose(0, 1).contiguous()[None], cos, sin)
    return out[0].transpose(0, 1)


def rotary_embedding(npu: Any, t: Tensors, p: Params) -> Tensor:
    """_npu_rotary_embedding(positions, query!, key!, head_size, cos_sin_cache, is_neox_style), ATB: query [T, N * D], in place."""
    dim, mode = _rotary_dim(t, p), p.get("mode", "half")
    cache = t.get("cos_sin_cache")
    if cache is None:
        every = {"x": t["x"], "positions": torch.arange(int(t["positions"].max()) + 1)}
        cache = torch.cat(_table(every, p, dim), -1).to(t["x"].dtype)
    query = t["x"].flatten(1).contiguous()
    key = t["x"][:, :1].flatten(1).contiguous()
    npu._npu_rotary_embedding(t["positions"].long(), query, key, t["x"].shape[-1], cache, mode == "half")
    return query.view_as(t["x"])


# ---------------------------------------------------------------- attention


def paged_attention(npu: Any, t: Tensors, p: Params) -> Tensor:
    """_npu_paged_attention(query, key_cache, value_cache, num_kv_heads, num_heads, scale_value, block_table, context_lens, out!), ATB."""
    if "value_cache" not in t:
        return paged_attention_mla(npu, t, p)
    query, keys = t["query"].contiguous(), t["key_cache"]
    out = torch.empty(query.shape[0], query.shape[1], t["value_cache"].shape[-1], dtype=query.dtype, device=query.device)
    npu._npu_paged_attention(
        query=query, key_cache=keys, value_cache=t["value_cache"], num_kv_heads=keys.shape[2], num_heads=query.shape[1],
        scale_value=float(p["scale"]), block_table=t["block_table"].int(), context_lens=t["context_lens"].int().cpu(), out=out,
    )  # fmt: skip
    return out


def paged_attention_mla(npu: Any, t: Tensors, p: Params) -> Tensor:
    """_npu_paged_attention_mla(..., mla_vheadsize, out!): key_cache [blocks, block_size, 1, 576]."""
    query, keys = t["query"].contiguous(), t["key_cache"]
    out = torch.empty(query.shape[0], query.shape[1], int(p["v_dim"]), dtype=query.dtype, device=query.device)
    npu._npu_paged_attention_mla(
        query=query, key_cache=keys, num_kv_heads=keys.shape[2], num_heads=query.shape[1], scale_value=float(p["scale"]),
        block_table=t["block_table"].int(), context_lens=t["context_lens"].int().cpu(), mla_vheadsize=int(p["v_dim"]), out=out,
    )  # fmt: skip
    return out


def fused_infer_paged(npu: Any, t: Tensors, p: Params) -> Tensor:
    """npu_fused_infer_attention_score over a paged cache: BSND query [B, 1, N, D], cache [blocks, block_size, KVN * D]; the scale, which is 1
    by default, is always given."""
    query, keys = t["query"], t["key_cache"]
    if "value_cache" not in t:
        raise Unavailable("npu_fused_infer_attention_score takes MLA with query_rope and key_rope apart; use _npu_paged_attention_mla")
    out, _ = npu.npu_fused_infer_attention_score(
        query[:, None].contiguous(), keys.flatten(2), t["value_cache"].flatten(2), actual_seq_lengths_kv=t["context_lens"].tolist(),
        block_table=t["block_table"].int(), num_heads=query.shape[1], num_key_value_heads=keys.shape[2], scale=float(p["scale"]),
        input_layout="BSND", block_size=keys.shape[1], sparse_mode=0, inner_precise=0,
    )  # fmt: skip
    return out[:, 0]


def incre_flash(npu: Any, t: Tensors, p: Params) -> Tensor:
    """npu_incre_flash_attention: BSH query [B, 1, N * D]; actual_seq_lengths are those of the keys."""
    query, keys = t["query"], t["key_cache"]
    out: Tensor = npu.npu_incre_flash_attention(
        query.flatten(1)[:, None].contiguous(), keys.flatten(2), t["value_cache"].flatten(2), actual_seq_lengths=t["context_lens"].tolist(),
        block_table=t["block_table"].int(), num_heads=query.shape[1], num_key_value_heads=keys.shape[2], scale_value=float(p["scale"]),
        input_layout="BSH", block_size=keys.shape[1], inner_precise=1,
    )  # fmt: skip
    return out[:, 0].reshape(query.shape[0], query.shape[1], -1)


def _mask(t: Tensors, p: Params) -> tuple[Tensor | None, int]:
    """The mask (1 is hidden) and the sparse_mode that goes with it."""
    kind = p.get("mask", "bottom-right")
    device, length, keys = t["query"].device, t["query"].shape[0], t["key"].shape[0]
    if kind == "given":
        return t["attention_mask"].bool().reshape(-1, keys).expand(length, keys).contiguous()[None, None], 0
    if kind == "none":
        return None, 0
    if int(p.get("window", 0)):
        i, j = torch.arange(length, device=device)[:, None], torch.arange(keys, device=device)[None, :]
        last = i + (keys - length if kind == "bottom-right" else 0)
        return ((j > last) | (j <= last - int(p["window"])))[None, None], 0
    # modes 2 and 3 take one fixed triangle of 2048 x 2048, whatever the sequence
    triangle = torch.triu(torch.ones(2048, 2048, dtype=torch.bool, device=device), 1)
    return triangle, 3 if kind == "bottom-right" else 2


def fused_infer_prompt(npu: Any, t: Tensors, p: Params) -> Tensor:
    """npu_fused_infer_attention_score over a prompt: BNSD [1, N, S, D]."""
    q, k, v = (t[name].transpose(0, 1)[None].contiguous() for name in ("query", "key", "value"))
    mask, sparse = _mask(t, p)
    out, _ = npu.npu_fused_infer_attention_score(
        q, k, v, atten_mask=mask, actual_seq_lengths=[q.shape[2]], actual_seq_lengths_kv=[k.shape[2]], num_heads=q.shape[1],
        num_key_value_heads=k.shape[1], scale=float(p["scale"]), input_layout="BNSD", sparse_mode=sparse, inner_precise=0,
    )  # fmt: skip
    return out[0].transpose(0, 1)


def fusion_attention(npu: Any, t: Tensors, p: Params) -> Tensor:
    """npu_fusion_attention(query, key, value, head_num, input_layout): BNSD; the first of seven outputs."""
    q, k, v = (t[name].transpose(0, 1)[None].contiguous() for name in ("query", "key", "value"))
    mask, sparse = _mask(t, p)
    out = npu.npu_fusion_attention(q, k, v, q.shape[1], "BNSD", atten_mask=mask, scale=float(p["scale"]), sparse_mode=sparse)[0]
    return out[0].transpose(0, 1)


# ---------------------------------------------------------------- norm, products, routing


def rms_norm(npu: Any, t: Tensors, p: Params) -> Tensors:
    """npu_rms_norm -> (y, rstd); with a residual npu_add_rms_norm -> (y, rstd, x): y first, the sum third."""
    if "residual" in t:
        y, _, total = npu.npu_add_rms_norm(t["x"], t["residual"], t["gamma"], epsilon=float(p["eps"]))
        return {"out": y, "sum": total}
    return {"out": npu.npu_rms_norm(t["x"], t["gamma"], epsilon=float(p["eps"]))[0]}


def matmul(npu: Any, t: Tensors, p: Params) -> Tensor:
    weight = t["weight"].T if p.get("transposed") else t["weight"]
    return torch.matmul(t["x"], weight) if "bias" not in t else torch.addmm(t["bias"], t["x"], weight)


def grouped_matmul(npu: Any, t: Tensors, p: Params) -> Tensor:
    """npu_grouped_matmul(x[], weight[], group_list, split_item, group_type, group_list_type): one tensor in, one out, split along M."""
    kind = 1 if p.get("group_list_type") == "sizes" else 0
    out: Tensor = npu.npu_grouped_matmul(
        [t["x"]], [t["weight"]], group_list=t["group_list"].long(), split_item=3, group_type=0, group_list_type=kind
    )[0]  # fmt: skip
    return out


def moe_gating(npu: Any, t: Tensors, p: Params) -> Tensors:
    """npu_moe_gating_top_k(x, k, bias, k_group, group_count, group_select_mode, renorm, norm_type, routed_scaling_factor, eps)."""
    softmax = p["scoring"] == "softmax"
    if softmax and p["renormalise"]:
        raise Unavailable("npu_moe_gating_top_k does not renormalise softmax scores")
    weights, indices, _ = npu.npu_moe_gating_top_k(
        t["logits"], k=int(p["k"]), bias=t.get("bias"), k_group=int(p["top_groups"]), group_count=int(p["groups"]),
        group_select_mode=1 if p["group_score"] == "top2sum" else 0, renorm=0, norm_type=0 if softmax else 1, out_flag=False,
        routed_scaling_factor=float(p["routed_scaling"]), eps=1e-20,
    )  # fmt: skip
    return {"weights": weights, "indices": indices}


def moe_gating_softmax(npu: Any, t: Tensors, p: Params) -> Tensors:
    """npu_moe_gating_top_k_softmax(x, finished, k) -> (weights, expert_idx, row_idx)."""
    weights, indices, _ = npu.npu_moe_gating_top_k_softmax(t["logits"], finished=None, k=int(p["k"]))
    return {"weights": weights, "indices": indices}


def topk(npu: Any, t: Tensors, p: Params) -> Tensors:
    values, indices = torch.topk(t["x"], int(p["k"]), -1)
    return {"values": values, "indices": indices}


def swiglu(npu: Any, t: Tensors, p: Params) -> Tensor:
    out: Tensor = npu.npu_swiglu(t["x"], dim=-1)
    return out


def reshape_and_cache(npu: Any, t: Tensors, p: Params) -> Tensors:
    """_npu_reshape_and_cache(key, value, key_cache!, value_cache!, slot_indices), ATB; without values the form for one cache."""
    keys, slots = t["key_cache"].clone(), t["slot_mapping"].int()
    if "value" not in t:
        npu._npu_reshape_and_cache_siso(t["key"].contiguous(), keys, slots)
        return {"key_cache": keys}
    values = t["value_cache"].clone()
    npu._npu_reshape_and_cache(t["key"].contiguous(), t["value"].contiguous(), keys, values, slots)
    return {"key_cache": keys, "value_cache": values}


OPERATORS: dict[str, dict[str, Callable[[Any, Tensors, Params], Tensor | Tensors]]] = {
    "rope": {
        "npu_rotary_mul": rotary_mul, "npu_apply_rotary_pos_emb": apply_rotary_pos_emb, "npu_interleave_rope": interleave_rope,
        "_npu_rotary_embedding": rotary_embedding,
    },
    "paged_attention": {
        "_npu_paged_attention": paged_attention, "_npu_paged_attention_mla": paged_attention_mla,
        "npu_fused_infer_attention_score": fused_infer_paged, "npu_incre_flash_attention": incre_flash,
    },
    "prefill_attention": {"npu_fused_infer_attention_score": fused_infer_prompt, "npu_fusion_attention": fusion_attention},
    "rms_norm": {"npu_rms_norm": rms_norm, "npu_add_rms_norm": rms_norm},
    "matmul": {"matmul": matmul},
    "grouped_matmul": {"npu_grouped_matmul": grouped_matmul},
    "moe_gating": {"npu_moe_gating_top_k": moe_gating, "npu_moe_gating_top_k_softmax": moe_gating_softmax},
    "topk": {"topk": topk},
    "swiglu": {"npu_swiglu": swiglu},
    "cache_write": {"_npu_reshape_and_cache": reshape_and_cache},
}  # fmt: skip
"""Kernel -> operator -> how it is called; the first one is taken where none is named."""
