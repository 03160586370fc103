"""Faulty devices of the other kernels (see devices.py)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from replay.tensors import Case, Value
from tests.bench.replay.devices import F32, Dice, Trial, flash, nan_from

Trials = dict[str, Callable[[], Trial]]


def trial(name: str, observed: Tensor, exact: bool = True, **params: Value) -> Trial:
    return Trial(name, params, observed, exact)


def prefill_trials(case: Case, dice: Dice) -> Trials:
    q, k, v = (case[name].transpose(0, 1) for name in ("query", "key", "value"))
    group = len(q) // len(k)
    of = torch.arange(len(q)) // group
    rows, keys = q.shape[1], k.shape[1]
    i, j = torch.arange(rows)[:, None], torch.arange(keys)[None, :]
    off, tile = keys - rows, int(dice.one([96, 160]))  # type: ignore[call-overload]
    causal = j > i + off
    window, edge, by = int(dice.one([64, 128, 256])), int(dice.one([256, 384, 512])), int(dice.one([-5, -3, 2, 4]))  # type: ignore[call-overload]

    def seen(mask: Tensor, scale: float | None = None, heads: Tensor = of, sums: torch.dtype = F32) -> Tensor:
        mask = mask & ~mask.all(-1, keepdim=True)
        out = flash(q, k[heads], v[heads], case.number("scale") if scale is None else scale, case["query"].dtype, tile, mask, sums)
        return out.transpose(0, 1)

    return {
        "top left": lambda: trial("mask-top-left", seen(j > i)),
        "no mask": lambda: trial("mask-missing", seen(j < 0)),
        "leaks one": lambda: trial("mask-shift", seen(j > i + off + 1), by=1),
        "hides self": lambda: trial("mask-shift", seen(j > i + off - 1), by=-1),
        "shifted": lambda: trial("mask-shift", seen(j > i + off + by), by=by),
        "ignored past": lambda: trial("mask-ignored-past", seen(causal & (j < edge)), key=edge),
        "window": lambda: trial("mask-window", seen(causal | (j <= i + off - window)), tokens=window),
        "inverted": lambda: trial("mask-inverted", seen(~causal)),
        "no scale": lambda: trial("scale-missing", seen(causal, 1.0)),
        "average": lambda: trial("uniform-average", seen(causal, 0.0), False),
        "modulo": lambda: trial("heads-modulo", seen(causal, heads=torch.arange(len(q)) % len(k))),
        "bf16 sums": lambda: trial("accumulation", seen(causal, sums=torch.bfloat16), dtype="bfloat16"),
    }


def rms_trials(case: Case, dice: Dice) -> Trials:
    x, gamma, dtype, eps = case["x"].float(), case["gamma"].float(), case["x"].dtype, case.number("eps")
    columns, cut, other = x.shape[1], int(dice.one([16, 32, 64])), float(dice.one([1e-5, 3e-5, 1e-4, 2e-6]))  # type: ignore[call-overload,arg-type]

    def normed(x: Tensor = x, mean: Tensor | None = None, eps: float = eps, gamma: Tensor = gamma) -> Tensor:
        mean = x.square().view(len(x), 4, -1).sum(-1).sum(-1, keepdim=True) / columns if mean is None else mean
        return (x * torch.rsqrt(mean + eps) * gamma).to(dtype)

    def squares(low: torch.dtype) -> Tensor:
        narrow = x.to(low)
        mean = (narrow * narrow).float().mean(-1, keepdim=True).to(low).float()
        return normed(mean=(mean + float(torch.tensor(eps).to(low))).to(low).float(), eps=0.0)

    def tail() -> Tensor:
        mean = x[:, :-cut].square().sum(-1, keepdim=True) / columns
        y = x * torch.rsqrt(mean + eps)
        y[:, -cut:] = x[:, -cut:]
        return (y * gamma).to(dtype)

    return {
        "no eps": lambda: trial("eps-missing", normed(eps=0.0)),
        "eps": lambda: trial("eps", normed(eps=other), False),
        "fp16 squares": lambda: trial("square-dtype", squares(torch.float16), dtype="float16"),
        "bf16 squares": lambda: trial("square-dtype", squares(torch.bfloat16), dtype="bfloat16"),
        "tail": lambda: trial("tail-not-normalised", tail(), columns=cut),
        "no gamma": lambda: trial("gamma-missing", normed(gamma=torch.ones_like(gamma))),
        "gamma + 1": lambda: trial("gamma-plus-one", normed(gamma=gamma + 1)),
        "mean": lambda: trial("mean-subtracted", normed(x - x.mean(-1, keepdim=True))),
        "nan row": lambda: trial("nan-rows", nan_from(normed(), len(x) - 3), False),
    }


def moe_trials(case: Case, dice: Dice) -> Trials:
    from replay.kernels.moe_gating import weights_of

    dtype, fewer = case["logits"].dtype, dice.number(1, case.integer("k"))

    def by(tensors: dict[str, Tensor | None] | None = None, **changes: Value) -> Tensor:
        return weights_of(case.having(tensors, **changes), F32).to(dtype)

    def biased() -> Tensor:
        true = weights_of(case)
        s = torch.sigmoid(case["logits"].float()) + case["bias"].float()
        w = torch.where(true > 0, s, 0.0)
        return (w / w.sum(-1, keepdim=True) * case.number("routed_scaling")).to(dtype)

    sigmoid, other = case.text("scoring") == "sigmoid", {"sigmoid": "softmax", "softmax": "sigmoid"}[case.text("scoring")]
    out: Trials = {
        "scoring": lambda: trial("scoring", by(scoring=other)),
        "renormalised": lambda: trial(
            "not-renormalised" if case.flag("renormalise") else "renormalised", by(renormalise=not case.flag("renormalise"))
        ),
        "fewer": lambda: trial("fewer-experts", by(k=fewer), k=fewer),
        "scaling": lambda: trial("scaling-factor", by(routed_scaling=1.0), value=1.0),
        "shift": lambda: trial("index-shift", weights_of(case, F32).roll(1, -1).to(dtype), by=1),
    }
    if sigmoid:
        out |= {
            "groups": lambda: trial("groups-ignored", by(groups=1), False), "group score": lambda: trial("group-score", by(group_score="max")),
            "no bias": lambda: trial("bias-ignored", by({"bias": None})), "bias": lambda: trial("bias-in-weights", biased()),
        }  # fmt: skip
    return out


def matmul_trials(case: Case, dice: Dice) -> Trials:
    x, w, bias, dtype = case["x"].float(), case["weight"].float(), case["bias"].float(), case["x"].dtype
    k, cut = x.shape[1], 8 * dice.number(1, 100)
    tile = int(dice.one([48, 96]))  # type: ignore[call-overload]

    def product(x: Tensor = x, w: Tensor = w, sums: torch.dtype = F32) -> Tensor:
        out = torch.zeros(x.shape[0], w.shape[1])
        for at in range(0, x.shape[1], tile):
            out = (out + (x[:, at : at + tile] @ w[at : at + tile]).to(sums).float()).to(sums).float()
        return out

    nz = w.reshape(w.shape[1] // 16, k, 16).permute(1, 0, 2).reshape(k, -1)
    return {
        "k - 16": lambda: trial("k-cut", (product(x[:, :-16], w[:-16]) + bias).to(dtype), columns=16),
        "k - n": lambda: trial("k-cut", (product(x[:, :-cut], w[:-cut]) + bias).to(dtype), columns=cut),
        "no bias": lambda: trial("bias-missing", product().to(dtype)),
        "bias twice": lambda: trial("bias-twice", (product() + 2 * bias).to(dtype)),
        "nz": lambda: trial("weight-nz", (product(w=nz) + bias).to(dtype)),
        "bf16 sums": lambda: trial("accumulation", (product(sums=torch.bfloat16) + bias).to(dtype), dtype="bfloat16"),
        "fp16 sums": lambda: trial("accumulation", (product(sums=torch.float16) + bias).to(dtype), dtype="float16"),
    }


def topk_trials(case: Case, dice: Dice) -> Trials:
    x, k = case["x"], case.integer("k")
    columns, end = x.shape[1], dice.number(x.shape[1] // 3, x.shape[1] * 9 // 10)

    def best(part: Tensor, largest: bool = True) -> tuple[Tensor, Tensor]:
        found = torch.topk(part.float(), k, largest=largest)  # not stable: ties as they come
        return part.gather(1, found.indices), found.indices

    def pack(values: Tensor, indices: Tensor) -> Tensor:
        from replay.kernels import kernel_named

        return kernel_named("topk").observe(case, {"values": values, "indices": indices})

    values, indices = best(x)

    def narrow(dtype: torch.dtype) -> Tensor:
        return torch.nan_to_num(indices.float().to(dtype).float(), posinf=65504.0).long()

    return {
        "wrap": lambda: trial("index-wrap", pack(values, indices & 0xFFFF), modulus=65536),
        "fp16": lambda: trial("index-dtype", pack(values, narrow(torch.float16)), dtype="float16"),
        "bf16": lambda: trial("index-dtype", pack(values, narrow(torch.bfloat16)), dtype="bfloat16"),
        "range 65536": lambda: trial("range-cut", pack(*best(x[:, :65536])), False, columns=65536),
        "range": lambda: trial("range-cut", pack(*best(x[:, :end])), False),
        "last 16": lambda: trial("range-cut", pack(*best(x[:, : columns - 16])), False, columns=columns - 16),
        "smallest": lambda: trial("smallest", pack(*best(x, False))),
        "off by one": lambda: trial("index-shift", pack(values, indices + 1), by=1),
    }
