"""Arguments of a captured operator as inputs of a kernel: which argument is what, and how layouts are brought to the kernel's own.

Orders and layouts are those of the documentation of torch_npu, of ATB and of aclnn (see backends.npu for the same the other way round)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from replay.capture.operators_names import normal
from replay.errors import CaptureError
from replay.tensors import Case, Value


@dataclass
class Call:
    """A captured call of an operator."""

    operator: str
    inputs: Sequence[Tensor | Value | None]
    """Positional arguments in order."""
    named: Mapping[str, Tensor | Value | None] = field(default_factory=dict)
    outputs: Sequence[Tensor] = ()
    where: str = ""

    def tensor(self, at: int, *names: str) -> Tensor:
        found = self.optional(at, *names)
        if found is None:
            raise CaptureError(f"{self.where}: {self.operator} lacks its argument {names[0] if names else at}, or it was not captured as a tensor")
        return found

    def optional(self, at: int, *names: str) -> Tensor | None:
        value = self.value(at, *names)
        return value if isinstance(value, Tensor) else None

    def value(self, at: int, *names: str) -> Tensor | Value | None:
        for name in names:
            if name in self.named:
                return self.named[name]
        return self.inputs[at] if 0 <= at < len(self.inputs) else None

    def number(self, default: float, at: int, *names: str) -> float:
        value = self.value(at, *names)
        if isinstance(value, Tensor) and value.numel() == 1:
            return float(value)
        return float(value) if isinstance(value, (int, float)) else default

    def text(self, default: str, at: int, *names: str) -> str:
        value = self.value(at, *names)
        return value if isinstance(value, str) else default


@dataclass
class Captured:
    """A call in the terms of a kernel."""

    case: Case
    outputs: dict[str, Tensor]
    """By the kernel's names; empty where the outputs were not captured."""


def kernel_case(call: Call) -> Captured:
    """Raises CaptureError for an operator that is not known here, or whose arguments are not all there."""
    from dataclasses import replace

    plain = normal(call.operator)
    if plain not in MAPPINGS:
        raise CaptureError(f"{call.where}: {call.operator} is no operator that can be replayed here")
    captured = MAPPINGS[plain](call)
    captured.case = replace(captured.case, operator=_documented(call.operator))
    return captured


def known(operator: str) -> bool:
    return normal(operator) in MAPPINGS


def _documented(operator: str) -> str:
    plain = operator.rpartition(".")[2]
    return plain if plain.lower().startswith(("npu", "_npu", "aclnn")) else {"pagedattention": "_npu_paged_attention"}.get(normal(operator), "")


# ---------------------------------------------------------------- rope


def _spread(table: Tensor, x: Tensor, call: Call) -> Tensor:
    """cos or sin beside every row of x: [.., D] with axes of 1 -> [rows, D]."""
    try:
        return table.expand(*x.shape[:-1], table.shape[-1]).reshape(-1, table.shape[-1])
    except RuntimeError as error:
        raise CaptureError(f"{call.where}: cos {list(table.shape)} does not go with x {list(x.shape)}") from error


def _rotary(call: Call) -> Captured:
    """npu_rotary_mul(x, r1 = cos, r2 = sin, rotary_mode)"""
    x, cos, sin = call.tensor(0, "input", "x"), call.tensor(1, "r1", "cos"), call.tensor(2, "r2", "sin")
    mode = call.text("half", 3, "rotary_mode", "mode")
    tensors = {"x": x.reshape(-1, 1, x.shape[-1]), "cos": _spread(cos, x, call), "sin": _spread(sin, x, call)}
    case = Case("rope", tensors, {"mode": mode, "rotary_dim": cos.shape[-1] if cos.shape[-1] != x.shape[-1] else 0})
    return Captured(case, {"out": call.outputs[0].reshape(-1, 1, x.shape[-1])} if call.outputs else {})


def _apply_rotary(call: Call) -> Captured:
    """npu_apply_rotary_pos_emb(query, key, cos, sin): the query is judged."""
    other = Call("npu_rotary_mul", [call.tensor(0, "query"), call.tensor(2, "cos"), call.tensor(3, "sin")], {}, call.outputs[:1], call.where)
    return _rotary(other)


def _interleave(call: Call) -> Captured:
    captured = _rotary(
        Call("npu_rotary_mul", list(call.inputs[:3]), {k: v for k, v in call.named.items() if k != "rotary_mode"}, call.outputs, call.where)
    )
    captured.case = captured.case.having(None, mode="interleave-to-half")
    return captured


def _rope_cache(call: Call) -> Captured:
    """_npu_rotary_embedding(positions, query!, key!, head_size, cos_sin_cache, is_neox_style)"""
    query, size = call.tensor(1, "query"), int(call.number(0, 3, "head_size"))
    if not size:
        raise CaptureError(f"{call.where}: head_size was not captured")
    positions, cache = call.tensor(0, "positions").flatten(), call.tensor(4, "cos_sin_cache")
    neox = call.value(5, "is_neox_style")
    tensors = {"x": query.reshape(len(positions), -1, size), "positions": positions, "cos_sin_cache": cache}
    params: dict[str, Value] = {"mode": "half" if neox is None or bool(neox) else "interleave"}
    if cache.shape[-1] != size:
        params["rotary_dim"] = cache.shape[-1]
    return Captured(Case("rope", tensors, params), {"out": call.outputs[0].reshape(len(positions), -1, size)} if call.outputs else {})


def _atb_rope(call: Call) -> Captured:
    """ATB RopeOperation(q [T, N * D], k, cos [T, D], sin, seqLen); rotaryCoeff 2 pairs halves, the width of a head pairs neighbours."""
    query, cos, sin = call.tensor(0), call.tensor(2), call.tensor(3)
    width = cos.shape[-1]
    coeff = int(call.number(2, -1, "rotaryCoeff"))
    tokens = query.shape[0]
    x = query.reshape(tokens, -1, width)
    tensors = {"x": x, "cos": cos.reshape(tokens, width), "sin": sin.reshape(tokens, width)}
    case = Case("rope", tensors, {"mode": "half" if coeff == 2 else "interleave"})
    return Captured(case, {"out": call.outputs[0].reshape(x.shape)} if call.outputs else {})


# ---------------------------------------------------------------- attention


def _paged(call: Call) -> Captured:
    """_npu_paged_attention(query, key_cache, value_cache, num_kv_heads, num_heads, scale_value, block_table, context_lens, out!)"""
    query, keys, values = call.tensor(0, "query"), call.tensor(1, "key_cache"), call.tensor(2, "value_cache")
    table, lengths = call.tensor(6, "block_table"), call.tensor(7, "context_lens")
    scale = call.number(0.0, 5, "scale_value")
    return _paged_case(query, keys, values, table, lengths, scale, call)


def _atb_paged(call: Call) -> Captured:
    """ATB PagedAttentionOperation(query, keyCache, valueCache, blockTables, contextLens, ...); headNum, kvHeadNum, qkScale in op_param.json."""
    if len(call.inputs) > 6:
        return _paged(call)
    if not all(isinstance(one, Tensor) for one in call.inputs[:5]):
        return _paged(call)
    query, keys, values, table, lengths = (call.tensor(n) for n in range(5))
    heads = int(call.number(query.shape[-2], -1, "headNum"))
    query = query if query.dim() == 3 else query.reshape(query.shape[0], heads, -1)
    return _paged_case(query, keys, values, table, lengths, call.number(0.0, -1, "qkScale"), call)


def _paged_case(query: Tensor, keys: Tensor, values: Tensor | None, table: Tensor, lengths: Tensor, scale: float, call: Call) -> Captured:
    tensors = {"query": query, "key_cache": keys, "block_table": table.int(), "context_lens": lengths.flatten().int()}
    params: dict[str, Value] = {"scale": scale} if scale else {}
    if values is not None and values.numel():
        tensors["value_cache"] = values
        width = values.shape[-1]
    else:
        width = call.outputs[0].shape[-1] if call.outputs else 512
        params["v_dim"] = width
    out = {"out": call.outputs[0].reshape(query.shape[0], query.shape[1], width)} if call.outputs else {}
    return Captured(Case("paged_attention", tensors, params), out)


def _lengths(value: Tensor | Value | None) -> Tensor | None:
    if isinstance(value, Tensor):
        return value.flatten().int()
    return torch.tensor(value, dtype=torch.int32) if isinstance(value, (list, tuple)) else None


def _fused(call: Call) -> Captured:
    """npu_fused_infer_attention_score(query, key, value, *, atten_mask, actual_seq_lengths, actual_seq_lengths_kv, block_table, num_heads, scale,
    input_layout, num_key_value_heads, sparse_mode, block_size)"""
    query, keys, values = call.tensor(0, "query"), call.tensor(1, "key"), call.tensor(2, "value")
    layout, heads = call.text("BSH", -1, "input_layout"), int(call.number(1, -1, "num_heads", "num_query_heads"))
    kv_heads = int(call.number(0, -1, "num_key_value_heads")) or heads
    scale = call.number(1.0, -1, "scale", "softmax_scale")  # the operator's own default, which is rarely meant
    table = call.optional(-1, "block_table")
    if table is not None:
        lengths = _lengths(call.value(-1, "actual_seq_lengths_kv", "actual_seq_kvlen"))
        if lengths is None:
            raise CaptureError(f"{call.where}: actual_seq_lengths_kv was not captured")
        q = {"BSH": lambda: query.reshape(query.shape[0], heads, -1), "BNSD": lambda: query[:, :, 0], "BSND": lambda: query[:, 0]}.get(
            layout, lambda: query
        )()
        if query.numel() != q.numel():
            raise CaptureError(f"{call.where}: paged attention over more than one query token of a request is not replayed here")
        if keys.dim() == 3:
            keys, values = (one.reshape(one.shape[0], one.shape[1], kv_heads, -1) for one in (keys, values))
        elif layout == "BNSD":
            keys, values = keys.transpose(1, 2), values.transpose(1, 2)
        return _paged_case(q, keys, values, table, lengths, scale, call)
    return _prompt(call, query, keys, values, layout, heads, kv_heads, scale)


def _prompt(call: Call, query: Tensor, keys: Tensor, values: Tensor, layout: str, heads: int, kv_heads: int, scale: float) -> Captured:
    """One sequence of a prompt in any layout -> [S, N, D]."""

    def plain(x: Tensor, count: int) -> Tensor:
        if layout == "TND":
            return x
        if x.shape[0] != 1:
            raise CaptureError(f"{call.where}: {x.shape[0]} prompts in one call are not replayed here")
        if layout == "BSH":
            return x[0].reshape(x.shape[1], count, -1)
        return x[0] if layout == "BSND" else x[0].transpose(0, 1)

    tensors = {"query": plain(query, heads), "key": plain(keys, kv_heads), "value": plain(values, kv_heads)}
    mode, mask = int(call.number(0, -1, "sparse_mode")), call.optional(-1, "atten_mask")
    params: dict[str, Value] = {"scale": scale, "mask": {2: "top-left", 3: "bottom-right"}.get(mode, "none" if mask is None else "given")}
    if params["mask"] == "given" and mask is not None:
        tensors["attention_mask"] = mask.reshape(-1, mask.shape[-1]).bool()
    out = {"out": plain(call.outputs[0], heads)} if call.outputs else {}
    return Captured(Case("prefill_attention", tensors, params), out)


# ---------------------------------------------------------------- the others


def _rms_norm(call: Call) -> Captured:
    x, gamma = call.tensor(0, "self", "x"), call.tensor(1, "gamma")
    case = Case("rms_norm", {"x": x.flatten(0, -2), "gamma": gamma}, {"eps": call.number(1e-6, 2, "epsilon")})
    return Captured(case, {"out": call.outputs[0]} if call.outputs else {})


def _add_rms_norm(call: Call) -> Captured:
    """-> (y, rstd, x): y first, the sum third"""
    x, residual, gamma = call.tensor(0, "x1"), call.tensor(1, "x2"), call.tensor(2, "gamma")
    tensors = {"x": x.flatten(0, -2), "residual": residual.flatten(0, -2), "gamma": gamma}
    return Captured(Case("rms_norm", tensors, {"eps": call.number(1e-6, 3, "epsilon")}), {"out": call.outputs[0]} if call.outputs else {})


def _swiglu(call: Call) -> Captured:
    return Captured(Case("swiglu", {"x": call.tensor(0, "self", "x").flatten(0, -2)}), {"out": call.outputs[0]} if call.outputs else {})


def _matmul(call: Call) -> Captured:
    x, weight = call.tensor(0, "input", "self"), call.tensor(1, "weight", "mat2", "other")
    linear = "linear" in call.operator.lower()
    tensors = {"x": x.flatten(0, -2), "weight": weight}
    bias = call.optional(2, "bias") if linear else None
    if bias is not None:
        tensors["bias"] = bias
    return Captured(Case("matmul", tensors, {"transposed": linear}), {"out": call.outputs[0]} if call.outputs else {})


def _topk(call: Call) -> Captured:
    k = int(call.number(0, 1, "k"))
    case = Case("topk", {"x": call.tensor(0, "input", "self").flatten(0, -2)}, {"k": k or (call.outputs[0].shape[-1] if call.outputs else 1)})
    return Captured(case, {"values": call.outputs[0], "indices": call.outputs[1]} if len(call.outputs) > 1 else {})


def _moe_gating(call: Call) -> Captured:
    """npu_moe_gating_top_k(x, k, *, bias, k_group, group_count, group_select_mode, renorm, norm_type, routed_scaling_factor)"""
    softmax_only = "softmax" in call.operator.lower()
    tensors = {"logits": call.tensor(0, "x")}
    bias = call.optional(-1, "bias")
    if bias is not None:
        tensors["bias"] = bias
    sigmoid = not softmax_only and int(call.number(0, -1, "norm_type")) == 1
    params: dict[str, Value] = {
        "k": int(call.number(0, 2 if softmax_only else 1, "k")) or call.outputs[0].shape[-1], "scoring": "sigmoid" if sigmoid else "softmax",
        "groups": int(call.number(1, -1, "group_count")), "top_groups": int(call.number(1, -1, "k_group")),
        "group_score": "top2sum" if int(call.number(0, -1, "group_select_mode")) == 1 else "max", "renormalise": sigmoid,
        "routed_scaling": call.number(1.0, -1, "routed_scaling_factor"),
    }  # fmt: skip
    return Captured(Case("moe_gating", tensors, params), {"weights": call.outputs[0], "indices": call.outputs[1]} if len(call.outputs) > 1 else {})


def _cache_write(call: Call) -> Captured:
    """_npu_reshape_and_cache(key, value, key_cache!, value_cache!, slot_indices); what was written shows in the next call only."""
    names = {
        "key": call.tensor(0, "key"),
        "value": call.tensor(1, "value"),
        "key_cache": call.tensor(2, "key_cache"),
        "value_cache": call.tensor(3, "value_cache"),
    }
    names["slot_mapping"] = call.tensor(4, "slot_indices", "slot_mapping").int()
    out = {"key_cache": call.outputs[0], "value_cache": call.outputs[1]} if len(call.outputs) > 1 else {}
    return Captured(Case("cache_write", names), out)


MAPPINGS: dict[str, Callable[[Call], Captured]] = {
    "rotary": _rotary, "applyrotaryposemb": _apply_rotary, "interleaverope": _interleave, "ropecache": _rope_cache, "atbrope": _atb_rope,
    "pagedattention": _atb_paged, "fusedinferattentionscore": _fused, "rmsnorm": _rms_norm, "addrmsnorm": _add_rms_norm, "swiglu": _swiglu,
    "matmul": _matmul, "topk": _topk, "moegatingtopk": _moe_gating, "moegatingtopksoftmax": _moe_gating, "reshapeandcache": _cache_write,
}  # fmt: skip
