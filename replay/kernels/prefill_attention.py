"""Attention over a whole prompt (or a chunk of one), with causal, windowed or given masks; grouped heads.

Source: Vaswani et al. (2017); masks as in sparse_mode 0, 2, 3 and 4 of npu_fused_infer_attention_score."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.attention import TILES, attention, tiled
from replay.kernels.base import Argument, Fault, Kernel, Randoms, Sample, shaped, size, storage
from replay.result import Words
from replay.tensors import Case, Value

MASKS = ("bottom-right", "top-left", "none")
WORK = 3_000_000
"""Query rows x keys x heads of the part that the grid takes."""


def rows_of(case: Case) -> Tensor:
    """Number of each query token within its chunk, int64 [S]."""
    given = case.get("query_rows")
    return torch.arange(case["query"].shape[0]) if given is None else given.long()


def offset(case: Case) -> int:
    """How far the diagonal of a mask aligned to the bottom right lies beyond that of one aligned to the top left."""
    return int(case["key"].shape[0]) - (case.integer("query_length", 0) or case["query"].shape[0])


def hidden(case: Case, mask: str | None = None, shift: int = 0, window: int | None = None) -> Tensor:
    """Keys that a query token may not see, bool [S, Sk]; rows that would see nothing see everything, as kernels do it."""
    i, j = rows_of(case)[:, None], torch.arange(case["key"].shape[0])[None, :]
    mask = case.text("mask") if mask is None else mask
    given = case.get("attention_mask")
    if mask == "given" and given is not None:
        plane = given.bool().reshape(-1, given.shape[-1])
        out = plane.expand(len(i), -1) if plane.shape[0] == 1 else plane[rows_of(case)]
    elif mask == "none":
        out = (j < 0).expand(len(i), -1)
    else:
        last = i + shift + (offset(case) if mask == "bottom-right" else 0)
        window = case.integer("window", 0) if window is None else window
        out = (j > last) | (j <= last - window) if window else j > last
    return out & ~out.all(-1, keepdim=True)


class PrefillAttention(Kernel):
    name = "prefill_attention"
    title = Words("Attention over a prompt, with masks", "Prefill 注意力（带掩码）")
    source = "Vaswani et al. (2017); sparse_mode of npu_fused_infer_attention_score"
    operators = ("npu_fused_infer_attention_score", "npu_fusion_attention")
    suspects = (("mask-missing", {}), ("mask-shift", {}))
    axis = "token"
    inputs = (
        Argument("query", "[tokens, heads, head_dim]", needed=True),
        Argument("key", "[keys, kv_heads, head_dim]", needed=True),
        Argument("value", "[keys, kv_heads, v_dim]", needed=True),
        Argument("attention_mask", "true where a key is hidden, [tokens or 1, keys], leading axes of 1 allowed"),
        Argument("query_rows", "number of each query token within the prompt, where some are left out, [tokens]"),
    )
    params = (
        Argument("mask", "bottom-right (sparse_mode 3), top-left (2), none, given", "bottom-right"),
        Argument("window", "keys that a token sees at most; 0: all", 0),
        Argument("scale", "factor on the logits; 0: 1 / sqrt(head_dim)", 0.0),
        Argument("query_length", "tokens of the prompt, where some are left out; 0: those given", 0),
    )

    def check(self, case: Case) -> Case:
        if "mask" not in case.params and "attention_mask" in case.tensors:
            case = case.having(None, mask="given")
        case = super().check(case)
        q, k, v = (
            shaped(case, "query", "tokens heads head_dim"),
            shaped(case, "key", "keys kv_heads head_dim"),
            shaped(case, "value", "keys kv_heads v_dim"),
        )
        if q.shape[-1] != k.shape[-1] or k.shape[:2] != v.shape[:2] or q.shape[1] % max(1, k.shape[1]):
            raise SpecError(f"prefill_attention: query {list(q.shape)}, key {list(k.shape)} and value {list(v.shape)} do not go together")
        if case.text("mask") not in (*MASKS, "given"):
            raise SpecError(f"prefill_attention: mask must be one of {', '.join(MASKS)}, given; found {case.text('mask')!a}")
        mask = case.get("attention_mask")
        if case.text("mask") == "given" and (mask is None or mask.shape[-1] != k.shape[0] or mask.numel() // k.shape[0] not in (1, q.shape[0])):
            found = "none" if mask is None else str(list(mask.shape))
            raise SpecError(f"prefill_attention: attention_mask must be [{q.shape[0]}, {k.shape[0]}] or [1, {k.shape[0]}]; found {found}")
        return case if case.number("scale") else case.having(None, scale=q.shape[-1] ** -0.5)

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        keys = size(sizes, "seq_len", 1024)
        tokens, heads, kv_heads = size(sizes, "tokens", min(keys, 256)), size(sizes, "heads", 8, high=256), size(sizes, "kv_heads", 2, high=256)
        dim, dtype, randoms = size(sizes, "head_dim", 128, high=1024), storage(sizes), Randoms(seed)
        tensors = {
            "query": randoms.normal(tokens, heads, dim).to(dtype), "key": randoms.normal(keys, kv_heads, dim).to(dtype),
            "value": randoms.normal(keys, kv_heads, dim).to(dtype),
        }  # fmt: skip
        return Case(self.name, tensors, {k: v for k, v in sizes.items() if k in ("mask", "window", "scale")})

    def _heads(self, case: Case) -> tuple[Tensor, Tensor, Tensor]:
        group = case["query"].shape[1] // case["key"].shape[1]
        q, k, v = case["query"].transpose(0, 1), case["key"].transpose(0, 1), case["value"].transpose(0, 1)
        return q, k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)

    def reference(self, case: Case) -> Tensor:
        q, k, v = self._heads(case)
        mask = hidden(case)
        return torch.stack([attention(q[h : h + 1], k[h : h + 1], v[h : h + 1], case.number("scale"), mask)[0] for h in range(len(q))], 1)

    def again(self, case: Case) -> Tensor:
        """Row by row over the keys that a token sees, and no others."""
        q, k, v = (x.double() for x in self._heads(case))
        mask, out = hidden(case), torch.zeros(case["query"].shape[0], q.shape[0], v.shape[-1], dtype=torch.float64)
        for row in range(len(out)):
            seen = (~mask[row]).nonzero().flatten()
            for head in range(q.shape[0]):
                weights = torch.softmax(k[head, seen] @ q[head, row] * case.number("scale"), 0)
                out[row, head] = weights @ v[head, seen]
        return out

    def clean(self, case: Case, variant: int) -> Tensor:
        q, k, v = self._heads(case)
        return tiled(q, k, v, case.number("scale"), case["query"].dtype, TILES[variant % 4], variant % 3 != 0, hidden(case)).transpose(0, 1)

    def places(self, case: Case) -> Tensor:
        return rows_of(case)[:, None].expand(-1, case["query"].shape[1])

    def sample(self, case: Case, errors: Tensor) -> Sample:
        tokens, heads, keys, kv_heads = case["query"].shape[0], case["query"].shape[1], case["key"].shape[0], case["key"].shape[1]
        if tokens * heads * keys <= WORK:
            return super().sample(case, errors)
        group, few = heads // kv_heads, max(1, min(kv_heads, WORK // max(1, keys * (heads // kv_heads) * 16)))
        by_head = errors.unflatten(-1, (kv_heads, group)).mean((0, 2)).argsort(descending=True)
        chosen = sorted(int(head) for head in by_head[:few])
        columns = torch.tensor([head * group + member for head in chosen for member in range(group)])
        count = max(8, min(tokens, WORK // max(1, keys * len(columns))))
        worst = errors.mean(-1).argsort(descending=True)[: count // 4]
        rows = torch.cat([torch.linspace(0, tokens - 1, count - len(worst)).long(), worst]).unique()
        parts: dict[str, Tensor | None] = {
            "query": case["query"][rows][:, columns], "key": case["key"][:, chosen], "value": case["value"][:, chosen],
            "query_rows": rows_of(case)[rows],
        }  # fmt: skip
        length = case.integer("query_length", 0) or tokens
        return Sample(case.having(parts, query_length=length), lambda out: out[rows][:, columns])

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        from replay.faults import prefill

        return prefill.grid(case, observed)

    def facts(self, case: Case) -> dict[str, Value]:
        q, k, v, mask = case["query"], case["key"], case["value"], case.get("attention_mask")
        return {
            "D": q.shape[-1], "Dq": q.shape[-1], "Dk": k.shape[-1], "Dv": v.shape[-1], "QD": q.shape[-1], "VD": v.shape[-1], "headDim": q.shape[-1],
            "Q_N": q.shape[1], "Nq": q.shape[1], "N": q.shape[1], "KV_N": k.shape[1], "num_heads": q.shape[1], "num_key_value_heads": k.shape[1],
            "num_kv_heads": k.shape[1], "Q_S": q.shape[0], "KV_S": k.shape[0], "S": k.shape[0], "B": 1, "T": q.shape[0], "itemsize": q.element_size(),
            "has_mask": case.text("mask") != "none", "paged": False, "is_mla": False, "scale": case.number("scale"), "kv_itemsize": k.element_size(),
            "sparse_mode": {"top-left": 2, "bottom-right": 3}.get(case.text("mask"), 0),
            "mask_rows": 0 if mask is None else mask.numel() // k.shape[0],
        }  # fmt: skip

    def sizes(self, case: Case) -> dict[str, int]:
        q, k = case["query"], case["key"]
        return {"tokens": q.shape[0], "keys": k.shape[0], "heads": q.shape[1], "kv_heads": k.shape[1], "head_dim": q.shape[-1]}
