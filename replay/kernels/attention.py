"""What the attention kernels share: exact attention in float64, and attention as a device computes it.

Source: Vaswani et al. (2017); online softmax after Milakov and Gimelshein (2018), as FlashAttention uses it."""

from __future__ import annotations

import torch
from torch import Tensor

from replay.tensors import F64, rounded

F32 = torch.float32
TILES = (128, 64, 256, 512)


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float, hidden: Tensor | None = None) -> Tensor:
    """q [H, Sq, D], k [H, Sk, D], v [H, Sk, Dv], hidden bool [Sq, Sk] (True: not seen) -> [H, Sq, Dv], float64."""
    logits = torch.matmul(q.to(F64), k.to(F64).transpose(-1, -2)) * scale
    if hidden is not None:
        logits = logits.masked_fill(hidden, float("-inf"))
    weights = torch.exp(logits - logits.amax(-1, keepdim=True))
    return torch.matmul(weights, v.to(F64)) / weights.sum(-1, keepdim=True)


def tiled(
    q: Tensor, k: Tensor, v: Tensor, scale: float, dtype: torch.dtype, tile: int = 128, round_weights: bool = True,
    hidden: Tensor | None = None, accumulate: torch.dtype = F32,
) -> Tensor:  # fmt: skip
    """As a device does it: tile by tile over the keys with a running maximum, float32 inside, the weights rounded to the storage type
    before they meet the values. Shapes as `attention`; the result in `dtype`. `accumulate`: type of the running sums."""
    q = q.to(F32)
    highest = torch.full((q.shape[0], q.shape[1], 1), float("-inf"))
    total = torch.zeros(q.shape[0], q.shape[1], 1)
    out = torch.zeros(q.shape[0], q.shape[1], v.shape[-1])
    for start in range(0, k.shape[1], tile):
        logits = torch.matmul(q, k[:, start : start + tile].to(F32).transpose(-1, -2)) * scale
        if hidden is not None:
            logits = logits.masked_fill(hidden[:, start : start + tile], float("-inf"))
        higher = torch.maximum(highest, logits.amax(-1, keepdim=True))
        finite = torch.where(torch.isinf(higher), 0.0, higher)
        weights, decay = torch.exp(logits - finite), torch.exp(highest - finite)
        total = rounded(total * decay + weights.sum(-1, keepdim=True), accumulate)
        if round_weights:
            weights = rounded(weights, dtype)
        step = rounded(torch.matmul(weights, v[:, start : start + tile].to(F32)), accumulate)
        out = rounded(rounded(out * decay, accumulate) + step, accumulate)
        highest = higher
    return (out / total).to(dtype)
