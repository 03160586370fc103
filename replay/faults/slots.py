"""Attention over any choice of cache slots, so that each fault of a block table or a context length is only another list of slots.

The logits of a request against every slot are computed once; a fault picks among them. Slots are those of the cache, then those of the
earlier cache where there is one, then one of zeros (a block that was never written)."""

from __future__ import annotations

import torch
from torch import Tensor

from replay.kernels.paged_attention import value_columns
from replay.tensors import F64, Case


class Slots:
    """The cache of a case as one long list of slots."""

    def __init__(self, case: Case, keys: Tensor | None = None, values: Tensor | None = None) -> None:
        self.case = case
        stored, stored_values = case["key_cache"] if keys is None else keys, case.get("value_cache") if values is None else values
        self.blocks, self.block = stored.shape[0], stored.shape[1]
        self.kv_heads, self.heads = stored.shape[2], case["query"].shape[1]
        self.group = self.heads // self.kv_heads
        self.v_dim = value_columns(case)
        before, before_values = case.get("previous_key_cache"), case.get("previous_value_cache")
        self.previous = before is not None and before.shape == stored.shape and (stored_values is None) == (before_values is None)
        # half precision is exact in float32, whose own error is a thousandth of its noise; wider storage needs float64
        self.kind = torch.float32 if case["query"].element_size() == 2 else F64
        self._keys = self._flat(stored, before if self.previous else None)
        self._values = None if stored_values is None else self._flat(stored_values, before_values if self.previous else None)
        self.count = self._keys.shape[1]
        self.zero = self.count - 1
        self._logits: dict[tuple[int, int | None, bool], Tensor] = {}

    def _flat(self, cache: Tensor, before: Tensor | None) -> Tensor:
        """[kv_heads, slots, D]"""
        parts = [cache.flatten(0, 1)] + ([] if before is None else [before.flatten(0, 1)])
        flat = torch.cat([*parts, torch.zeros(1, *cache.shape[2:], dtype=cache.dtype)])
        return flat.transpose(0, 1).to(self.kind).contiguous()

    def values(self, kv_head: int) -> Tensor:
        """[slots, v_dim]"""
        return self._keys[kv_head][:, : self.v_dim] if self._values is None else self._values[kv_head]

    @property
    def latent(self) -> bool:
        """MLA: the values are a part of the keys."""
        return self._values is None

    def kv_head_of(self, modulo: bool = False) -> Tensor:
        """KV head of each query head, int64 [heads]."""
        heads = torch.arange(self.heads)
        return heads % self.kv_heads if modulo else heads // self.group

    def logits(self, request: int, columns: int | None = None, modulo: bool = False) -> Tensor:
        """Dot products of a request's heads with all slots, [heads, slots]; only the first `columns` columns."""
        key = (request, columns, modulo)
        if key not in self._logits:
            query = self.case["query"][request].to(self.kind)
            out = torch.empty(self.heads, self.count, dtype=self.kind)
            of = self.kv_head_of(modulo)
            for head in range(self.kv_heads):
                mine = (of == head).nonzero().flatten()
                if len(mine):
                    out[mine] = query[mine][:, :columns] @ self._keys[head][:, :columns].T
            if columns is not None or modulo:
                return out
            self._logits[key] = out
        return self._logits[key]

    def true(self, request: int, length: int | None = None, block: int | None = None, row: int | None = None) -> Tensor:
        """Slots of the first `length` tokens of a request, with the table of request `row`, read as blocks of `block` tokens. int64"""
        tokens = torch.arange(int(self.case["context_lens"][request]) if length is None else length)
        block = self.block if block is None else block
        table = self.case["block_table"][request if row is None else row].long()
        slots = table[(tokens // block).clamp(max=len(table) - 1)] * block + tokens % block
        return slots.clamp(0, self.blocks * self.block - 1)

    def attend(self, request: int, slots: Tensor, scale: float, columns: int | None = None, cut_values: bool = False, modulo: bool = False) -> Tensor:
        """Attention of one request over these slots, [heads, v_dim], float64."""
        logits = self.logits(request, columns, modulo)[:, slots] * scale
        weights = torch.exp(logits - logits.amax(-1, keepdim=True))
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.empty(self.heads, self.v_dim, dtype=F64)
        of = self.kv_head_of(modulo)
        few = len(slots) * 2 < self.count
        for head in range(self.kv_heads):
            mine = (of == head).nonzero().flatten()
            if not len(mine):
                continue
            if few:
                out[mine] = (weights[mine] @ self.values(head)[slots]).to(F64)
            else:  # adding the weights up by slot is cheaper than copying most of the values
                spread = torch.zeros(len(mine), self.count, dtype=self.kind).index_add_(1, slots, weights[mine])
                out[mine] = (spread @ self.values(head)).to(F64)
        if columns is not None and cut_values:
            out[:, columns:] = 0
        return out

    def partials(self, request: int, scale: float, length: int | None = None) -> tuple[Tensor, Tensor]:
        """Sums over the first `length` tokens of every block: of the weights [heads, blocks], of weighted values [heads, blocks, v_dim].
        One maximum is taken out of all, so that they add up. float64"""
        logits = self.logits(request)[:, : self.zero].to(F64) * scale
        weights = torch.exp(logits - logits.amax(-1, keepdim=True)).unflatten(-1, (-1, self.block))
        if length is not None:
            weights = weights.clone()
            weights[..., length:] = 0
        out = torch.empty(*weights.shape[:2], self.v_dim, dtype=F64)
        of = self.kv_head_of()
        for head in range(self.kv_heads):
            mine = (of == head).nonzero().flatten()
            values = self.values(head)[: self.zero].to(F64).unflatten(0, (-1, self.block))
            out[mine] = torch.einsum("hbt,btd->hbd", weights[mine], values)
        return weights.sum(-1), out
