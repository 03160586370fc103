"""Keys and values of new tokens written into the slots of a paged cache.

Source: vLLM's reshape_and_cache; _npu_reshape_and_cache, npu_scatter_pa_kv_cache.

The output is the cache afterwards, one row a slot, [slots, columns of the keys and of the values]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.base import Argument, Fault, Kernel, Randoms, shaped, size, storage
from replay.result import Words
from replay.tensors import F64, Case, Value


def _flat(case: Case, keys: Tensor, values: Tensor | None) -> Tensor:
    """[blocks, block_size, heads, D] -> [slots, ...]"""
    rows = keys.reshape(-1, keys.shape[-2] * keys.shape[-1])
    return rows if values is None else torch.cat([rows, values.reshape(rows.shape[0], -1)], 1)


def _new(case: Case) -> Tensor:
    """What is to be written, [tokens, columns]."""
    value = case.get("value")
    key = case["key"].flatten(1)
    return key if value is None else torch.cat([key, value.flatten(1)], 1)


def _before(case: Case) -> Tensor:
    return _flat(case, case["key_cache"], case.get("value_cache"))


def written(case: Case, slots: Tensor, new: Tensor) -> Tensor:
    """The cache after these rows went into these slots, later ones over earlier ones; slots outside it, and negative ones, are left out."""
    out = _before(case).to(F64)
    kept = (slots >= 0) & (slots < len(out))
    for slot, row in zip(slots[kept].tolist(), new[kept].to(F64), strict=True):
        out[slot] = row
    return out


class CacheWrite(Kernel):
    name = "cache_write"
    title = Words("Write into the paged KV cache", "KV cache 写入")
    source = "vLLM, reshape_and_cache"
    operators = ("_npu_reshape_and_cache",)
    suspects = (("slot-shift", {}), ("tokens-missing", {}))
    inputs = (
        Argument("key", "[tokens, heads, head_dim]", needed=True), Argument("value", "[tokens, heads, v_dim]"),
        Argument("key_cache", "before, [blocks, block_size, heads, head_dim]", needed=True), Argument("value_cache", "before"),
        Argument("slot_mapping", "slot of each token; negative: not written, [tokens]", needed=True),
    )  # fmt: skip
    params = ()

    def check(self, case: Case) -> Case:
        case = super().check(case)
        key, cache = shaped(case, "key", "tokens heads head_dim"), shaped(case, "key_cache", "blocks block_size heads head_dim")
        if cache.shape[2:] != key.shape[1:] or list(case["slot_mapping"].shape) != [key.shape[0]]:
            found = f"key {list(key.shape)}, key_cache {list(cache.shape)}, slot_mapping {list(case['slot_mapping'].shape)}"
            raise SpecError(f"cache_write: {found} do not go together")
        value, values = case.get("value"), case.get("value_cache")
        if (value is None) != (values is None) or (value is not None and values is not None and values.shape[2:] != value.shape[1:]):
            raise SpecError("cache_write: value and value_cache must both be there and fit, or neither")
        return case

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        tokens, blocks, block = size(sizes, "tokens", 40), size(sizes, "blocks", 16), size(sizes, "block_size", 16, high=4096)
        heads, dim = size(sizes, "heads", 2, high=256), size(sizes, "head_dim", 64, high=1024)
        if tokens > blocks * block:
            raise SpecError(f"cache_write: {tokens} tokens do not fit into {blocks} blocks of {block}")
        dtype, randoms = storage(sizes), Randoms(seed)
        tensors = {
            "key": randoms.normal(tokens, heads, dim).to(dtype), "value": randoms.normal(tokens, heads, dim).to(dtype),
            "key_cache": randoms.normal(blocks, block, heads, dim).to(dtype), "value_cache": randoms.normal(blocks, block, heads, dim).to(dtype),
            "slot_mapping": randoms.order(blocks * block)[:tokens].int(),
        }  # fmt: skip
        return Case(self.name, tensors)

    def reference(self, case: Case) -> Tensor:
        return written(case, case["slot_mapping"].long(), _new(case))

    def again(self, case: Case) -> Tensor:
        """Slot by slot: the last token that goes there, or what was there."""
        owner = {slot: token for token, slot in enumerate(case["slot_mapping"].tolist()) if slot >= 0}
        before, new = _before(case).to(F64), _new(case).to(F64)
        return torch.stack([new[owner[slot]] if slot in owner else before[slot] for slot in range(len(before))])

    def clean(self, case: Case, variant: int) -> Tensor:
        return self.reference(case)

    def observe(self, case: Case, outputs: Mapping[str, Tensor]) -> Tensor:
        if "key_cache" not in outputs or ("value" in case.tensors and "value_cache" not in outputs):
            raise SpecError(f"cache_write: the outputs are to be named key_cache and value_cache; found {', '.join(outputs) or 'none'}")
        values = outputs["value_cache"] if "value" in case.tensors else None
        return _flat(case, outputs["key_cache"], values)

    def places(self, case: Case) -> Tensor:
        return torch.arange(case["key_cache"].shape[0] * case["key_cache"].shape[1])

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        return list(_faults(case))

    def bounds(self, case: Case) -> list[tuple[str, bool, str]]:
        slots, room = case["slot_mapping"].long(), case["key_cache"].shape[0] * case["key_cache"].shape[1]
        used = slots[slots >= 0]
        twice = len(used) - len(used.unique())
        high = int(slots.max()) if len(slots) else -1
        return [
            ("slot_mapping < num_blocks * block_size", high < room, f"largest slot {high}, slots {room}"),
            ("no slot is written twice", twice == 0, f"{twice} slots are written twice"),
        ]

    def facts(self, case: Case) -> dict[str, Value]:
        slots = case["slot_mapping"].long()
        return {
            "slot_max": int(slots.max()), "slot_min": int(slots.min()), "num_blocks": case["key_cache"].shape[0],
            "block_size": case["key_cache"].shape[1], "slots_unique": len(slots.unique()) == len(slots), "ndim": 4,
            "is_contiguous": case["key_cache"].is_contiguous(),
        }  # fmt: skip

    def sizes(self, case: Case) -> dict[str, int]:
        cache = case["key_cache"]
        return {
            "tokens": case["key"].shape[0],
            "blocks": cache.shape[0],
            "block_size": cache.shape[1],
            "heads": cache.shape[2],
            "head_dim": cache.shape[3],
        }


def _faults(case: Case) -> Iterator[Fault]:
    slots, new, tokens = case["slot_mapping"].long(), _new(case), case["key"].shape[0]
    room, block = case["key_cache"].shape[0] * case["key_cache"].shape[1], case["key_cache"].shape[1]

    def into(change: Callable[[Tensor], Tensor]) -> Tensor:
        return written(case, torch.where(slots >= 0, change(slots), slots), new)

    for by in (1, -1, block, -block):
        yield Fault("slot-shift", {"by": by}, lambda by=by: into(lambda s: (s + by) % room))
    for modulus in (1 << 16, 1 << 15, 1 << 8):
        if modulus < room:
            yield Fault("slot-wrap", {"modulus": modulus}, lambda modulus=modulus: into(lambda s: s % modulus))
    if tokens:
        yield Fault("slots-consecutive", {}, lambda: into(lambda s: s[0] + torch.arange(tokens)))
    for count in sorted({*range(1, min(tokens, 33)), tokens % 8, tokens % 16, tokens % 32} - {0, tokens}):
        yield Fault("tokens-missing", {"count": count}, lambda count=count: written(case, slots[:-count], new[:-count]))
    yield Fault("not-written", {}, lambda: _before(case).to(F64))
    width = new.shape[1]
    for columns in (16, 32, 64, 128):
        if columns < width // (2 if "value" in case.tensors else 1):
            yield Fault("columns-missing", {"columns": columns}, lambda columns=columns: _cut(case, slots, columns))
    value = case.get("value")
    if value is not None and value.shape == case["key"].shape:
        swapped = torch.cat([value.flatten(1), case["key"].flatten(1)], 1)
        yield Fault("halves-swapped", {"of": "key and value"}, lambda: written(case, slots, swapped))
    heads = case["key"].shape[1]
    if heads > 1:
        turned = case["key"].transpose(1, 2).reshape(tokens, -1)
        other = turned if value is None else torch.cat([turned, value.transpose(1, 2).reshape(tokens, -1)], 1)
        yield Fault("heads-swapped", {}, lambda: written(case, slots, other))


def _cut(case: Case, slots: Tensor, columns: int) -> Tensor:
    """Only the first columns of each head's keys and values are written."""
    before, new = _before(case).to(F64), _new(case).to(F64)
    out = before.clone()
    dim = case["key"].shape[-1]
    mask = (torch.arange(new.shape[1]) % dim) < columns
    kept = (slots >= 0) & (slots < len(before))
    out[slots[kept]] = torch.where(mask, new[kept], before[slots[kept]])
    return out
