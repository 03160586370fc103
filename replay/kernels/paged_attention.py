"""Paged attention in decode: one query token for each request, keys and values in blocks that a block table lists; grouped heads (GQA),
and MLA, where the values are the first columns of the same latent cache.

Source: Kwon et al., PagedAttention (2023); DeepSeek-V2 (2024) for MLA."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.attention import TILES, attention, tiled
from replay.kernels.base import Argument, Fault, Kernel, Randoms, Sample, shaped, size, storage
from replay.result import Words
from replay.tensors import Case, Value

F32 = torch.float32
WORK = 800_000
"""Query heads x cached tokens of a part that the grid of fault models takes."""


def value_columns(case: Case) -> int:
    cache = case.get("value_cache")
    return case.integer("v_dim") if cache is None else cache.shape[-1]


def blocks_of(case: Case, request: int) -> Tensor:
    """Physical blocks of a request in order, int64."""
    count = -(-int(case["context_lens"][request]) // case["key_cache"].shape[1])
    return case["block_table"][request, :count].long()


def gathered(cache: Tensor, blocks: Tensor, length: int) -> Tensor:
    """[blocks, block_size, heads, D] -> [length, heads, D]."""
    return cache[blocks.clamp(0, cache.shape[0] - 1)].flatten(0, 1)[:length]


class PagedAttention(Kernel):
    name = "paged_attention"
    title = Words("Paged attention, decode", "PagedAttention（解码）")
    source = "Kwon et al., PagedAttention (2023); DeepSeek-V2 (2024)"
    operators = ("_npu_paged_attention", "npu_fused_infer_attention_score", "npu_incre_flash_attention")
    suspects = (("table-shift", {}), ("tail-not-masked", {}))
    axis = "request"
    inputs = (
        Argument("query", "one token of each request, [requests, heads, head_dim]", needed=True),
        Argument("key_cache", "[blocks, block_size, kv_heads, head_dim]", needed=True),
        Argument("value_cache", "[blocks, block_size, kv_heads, v_dim]; without it the values are the first v_dim columns of the keys (MLA)"),
        Argument("block_table", "physical block of each logical block, [requests, most blocks]", needed=True),
        Argument("context_lens", "tokens of each request in the cache, [requests]", needed=True),
        Argument("previous_key_cache", "the cache at an earlier step, to tell stale blocks"),
        Argument("previous_value_cache", "likewise"),
    )
    params = (
        Argument("scale", "factor on the logits; 0: 1 / sqrt(head_dim)", 0.0),
        Argument("v_dim", "columns of the values, of MLA", 512),
    )

    def check(self, case: Case) -> Case:
        case = super().check(case)
        query, keys = shaped(case, "query", "requests heads head_dim"), shaped(case, "key_cache", "blocks block_size kv_heads head_dim")
        if query.shape[-1] != keys.shape[-1]:
            raise SpecError(f"paged_attention: head_dim of the query is {query.shape[-1]}, that of the cache {keys.shape[-1]}")
        if keys.shape[2] == 0 or query.shape[1] % keys.shape[2]:
            raise SpecError(f"paged_attention: {query.shape[1]} heads do not divide by {keys.shape[2]} kv_heads")
        values = case.get("value_cache")
        if values is not None and (values.dim() != 4 or values.shape[:3] != keys.shape[:3]):
            raise SpecError(f"paged_attention: value_cache must be [{', '.join(map(str, keys.shape[:3]))}, v_dim]; found {list(values.shape)}")
        if values is None and not 0 < case.integer("v_dim") <= keys.shape[-1]:
            raise SpecError(f"paged_attention: without a value_cache, v_dim must be 1 to {keys.shape[-1]}; found {case.integer('v_dim')}")
        tables, lengths = shaped(case, "block_table", "requests blocks"), shaped(case, "context_lens", "requests")
        if not query.shape[0] == tables.shape[0] == lengths.shape[0]:
            found = f"{query.shape[0]}, {tables.shape[0]} and {lengths.shape[0]}"
            raise SpecError(f"paged_attention: query, block_table and context_lens are of {found} requests")
        if int(lengths.min()) < 1:
            raise SpecError(f"paged_attention: a request has {int(lengths.min())} tokens; each must have at least one")
        if -(-int(lengths.max()) // keys.shape[1]) > tables.shape[1]:
            raise SpecError(
                f"paged_attention: {int(lengths.max())} tokens need {-(-int(lengths.max()) // keys.shape[1])} blocks; "
                f"the block table has {tables.shape[1]} columns"
            )
        return case if case.number("scale") else case.having(None, scale=query.shape[-1] ** -0.5)

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        """`requests` of up to seq_len tokens; their blocks lie scattered among some spare ones."""
        length, requests = size(sizes, "seq_len", 4096), size(sizes, "requests", 1, high=4096)
        heads, kv_heads = size(sizes, "heads", 8, high=256), size(sizes, "kv_heads", 2, high=256)
        dim, block, mla = size(sizes, "head_dim", 128, high=1024), size(sizes, "block_size", 128, high=4096), bool(sizes.get("mla", False))
        v_dim = size(sizes, "v_dim", 512 if mla else dim, high=1024)
        dtype, randoms = storage(sizes), Randoms(seed)
        # the longest first; the others end inside a block wherever that is possible
        lengths = torch.tensor([max(1, length * (requests - n) // requests - (n > 0) * (n % block)) for n in range(requests)])
        counts = (lengths + block - 1) // block
        blocks = int(counts.sum()) + 4
        order = randoms.order(blocks)
        tables = torch.zeros(requests, int(counts.max()), dtype=torch.int32)
        start = 0
        for request, count in enumerate(counts.tolist()):
            tables[request, :count] = order[start : start + count].int()
            start += count
        tensors = {
            "query": (randoms.normal(requests, heads, dim) * float(sizes.get("sharpness", 1.0))).to(dtype),
            "key_cache": randoms.normal(blocks, block, kv_heads, dim).to(dtype),
            "block_table": tables,
            "context_lens": lengths.int(),
        }
        if not mla:
            tensors["value_cache"] = randoms.normal(blocks, block, kv_heads, v_dim).to(dtype)
        given = {"scale": sizes["scale"]} if "scale" in sizes else {}
        return Case(self.name, tensors, {"v_dim": v_dim, **given})

    def reference(self, case: Case) -> Tensor:
        query, group = case["query"], case["query"].shape[1] // case["key_cache"].shape[2]
        out = []
        for request, length in enumerate(case["context_lens"].tolist()):
            k, v = self._read(case, request, length)
            # the heads of a group see the same keys: they are as good as several query tokens of one head
            q = query[request].view(k.shape[1], group, -1)
            heads = [attention(q[h : h + 1], k[:, h].unsqueeze(0), v[:, h].unsqueeze(0), case.number("scale"))[0] for h in range(k.shape[1])]
            out.append(torch.cat(heads))
        return torch.stack(out)

    def again(self, case: Case) -> Tensor:
        """Token by token: each one's physical slot worked out alone, one dot product and one exponential at a time."""
        query, keys = case["query"].double(), case["key_cache"].double()
        block, group = keys.shape[1], query.shape[1] // keys.shape[2]
        stored = case.get("value_cache")
        values = keys[..., : case.integer("v_dim")] if stored is None else stored.double()
        out = torch.zeros(query.shape[0], query.shape[1], values.shape[-1], dtype=torch.float64)
        for request, length in enumerate(case["context_lens"].tolist()):
            for head in range(query.shape[1]):
                total = 0.0
                for token in range(length):
                    place = int(case["block_table"][request, token // block])
                    logit = torch.dot(query[request, head], keys[place, token % block, head // group]) * case.number("scale")
                    weight = float(torch.exp(logit))
                    total += weight
                    out[request, head] += weight * values[place, token % block, head // group]
                out[request, head] /= total
        return out

    def clean(self, case: Case, variant: int) -> Tensor:
        query, group = case["query"], case["query"].shape[1] // case["key_cache"].shape[2]
        out = []
        for request, length in enumerate(case["context_lens"].tolist()):
            k, v = self._read(case, request, length)
            q = query[request].view(k.shape[1], group, -1)
            one = tiled(q, k.transpose(0, 1), v.transpose(0, 1), case.number("scale"), query.dtype, TILES[variant % 4], variant % 3 != 0)
            out.append(one.reshape(query.shape[1], -1))
        return torch.stack(out)

    def _read(self, case: Case, request: int, length: int) -> tuple[Tensor, Tensor]:
        blocks = blocks_of(case, request)
        k = gathered(case["key_cache"], blocks, length)
        values = case.get("value_cache")
        return k, k[..., : case.integer("v_dim")] if values is None else gathered(values, blocks, length)

    def places(self, case: Case) -> Tensor:
        return torch.arange(case["query"].shape[0])[:, None].expand(-1, case["query"].shape[1])

    def sample(self, case: Case, errors: Tensor) -> Sample:
        """The worst and the best requests, and of each the worst kv head and the best, so far as the grid can take them."""
        lengths, heads, kv_heads = case["context_lens"], case["query"].shape[1], case["key_cache"].shape[2]
        group = heads // kv_heads
        if int(lengths.sum()) * heads <= WORK and case["key_cache"].numel() <= 1 << 26:
            return super().sample(case, errors)
        order = errors.mean(-1).argsort()
        requests = _ends(order, lengths, WORK // group)
        by_head = errors[requests].unflatten(-1, (kv_heads, group)).mean((0, 2)).argsort()
        few = max(1, min(kv_heads, WORK // max(1, int(lengths[requests].sum()) * group)))
        chosen = sorted({int(by_head[-1]), *([int(by_head[0])] if few > 1 else []), *(int(h) for h in by_head[: few - 1])})
        rows = torch.tensor([head * group + member for head in chosen for member in range(group)])
        used = torch.cat([blocks_of(case, request) for request in requests.tolist()])
        kept = torch.cat([used + step for step in range(-4, 5)]).clamp(0, case["key_cache"].shape[0] - 1).unique()
        if len(kept) * 4 > case["key_cache"].shape[0] * 3:
            kept = torch.arange(case["key_cache"].shape[0])  # nearly all of them: then neighbours are the true ones as well
        numbers = torch.zeros(case["key_cache"].shape[0], dtype=torch.int32)
        numbers[kept] = torch.arange(len(kept), dtype=torch.int32)
        table = case["block_table"][requests].long().clamp(0, len(numbers) - 1)
        parts: dict[str, Tensor | None] = {
            "query": case["query"][requests][:, rows], "block_table": numbers[table], "context_lens": lengths[requests],
        }  # fmt: skip
        for name in ("key_cache", "value_cache", "previous_key_cache", "previous_value_cache"):
            if name in case.tensors:
                parts[name] = case[name][kept][:, :, chosen]
        return Sample(case.having(parts), lambda out: out[requests][:, rows])

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        from replay.faults import paged

        return paged.grid(case, observed)

    def suspected(self, case: Case, name: str, params: Mapping[str, Value]) -> Fault | None:
        from replay.faults import paged

        return paged.suspected(case, name, params)

    def facts(self, case: Case) -> dict[str, Value]:
        keys, query, lengths = case["key_cache"], case["query"], case["context_lens"]
        used = torch.cat([blocks_of(case, request) for request in range(query.shape[0])])
        return {
            "head_size": query.shape[-1], "head_size_v": value_columns(case), "D": query.shape[-1], "headDim": query.shape[-1],
            "block_size": keys.shape[1], "num_blocks": keys.shape[0], "kv_heads": keys.shape[2], "heads": query.shape[1], "KV_N": keys.shape[2],
            "Q_N": query.shape[1], "Q_S": 1, "B": query.shape[0], "batch": query.shape[0], "num_heads": query.shape[1],
            "num_kv_heads": keys.shape[2], "num_key_value_heads": keys.shape[2], "KV_S": int(lengths.max()), "S": int(lengths.max()),
            "N": query.shape[1], "kv_itemsize": keys.element_size(), "itemsize": query.element_size(), "cache_last_dim": keys.shape[-1],
            "block_table_min": int(used.min()), "block_table_max": int(used.max()), "actual_seq_kv_min": int(lengths.min()),
            "actual_seq_kv_max": int(lengths.max()), "max_blocks_per_seq": case["block_table"].shape[1], "has_actual_seq_lengths_kv": True,
            "paged": True, "is_mla": case.get("value_cache") is None, "scale": case.number("scale"), "sparse_mode": 0,
        }  # fmt: skip

    def bounds(self, case: Case) -> list[tuple[str, bool, str]]:
        facts = self.facts(case)
        low, high, blocks = facts["block_table_min"], facts["block_table_max"], facts["num_blocks"]
        return [("0 <= block_table < num_blocks", int(low) >= 0 and int(high) < int(blocks), f"block_table {low} to {high}, num_blocks {blocks}")]

    def sizes(self, case: Case) -> dict[str, int]:
        keys = case["key_cache"]
        return {
            "requests": case["query"].shape[0], "heads": case["query"].shape[1], "kv_heads": keys.shape[2], "head_dim": keys.shape[-1],
            "block_size": keys.shape[1], "blocks": keys.shape[0], "longest": int(case["context_lens"].max()),
        }  # fmt: skip


def _ends(order: Tensor, lengths: Tensor, budget: int) -> Tensor:
    """From both ends of an order, as many as fit into the budget of tokens; at least one, the last."""
    picked, room = [int(order[-1])], budget - int(lengths[order[-1]])
    middle = [int(n) for pair in zip(order[:-1].tolist(), reversed(order[:-1].tolist()), strict=True) for n in pair]
    for one in dict.fromkeys(middle):
        if int(lengths[one]) <= room and len(picked) < 16:
            picked.append(one)
            room -= int(lengths[one])
    return torch.tensor(sorted(picked))
