"""Routing of a mixture of experts: scores, limited groups, the k best experts and their weights.

Source: DeepSeek-V3 (2024); npu_moe_gating_top_k, npu_moe_gating_top_k_softmax. Weights never contain the selection bias.

The output is laid out as [tokens, experts], zero where an expert is not chosen: the order of chosen experts does not matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from replay.errors import SpecError
from replay.kernels.base import Argument, Fault, Kernel, Randoms, Sample, shaped, size, storage
from replay.result import Words
from replay.tensors import F64, Case, Value, name_of

F32 = torch.float32
TIE = 4e-6
"""Selection scores that differ by less may be ordered either way: a device computes them in float32."""
ROWS = 512


def scores_of(case: Case, kind: torch.dtype = F64) -> Tensor:
    logits = case["logits"].to(kind)
    return torch.softmax(logits, -1) if case.text("scoring") == "softmax" else torch.sigmoid(logits)


def selection(case: Case, scores: Tensor) -> Tensor:
    """What experts are ranked by: scores with the bias, minus infinity outside the best groups."""
    bias = case.get("bias")
    ranked = scores if bias is None else scores + bias.to(scores.dtype)
    groups, top = case.integer("groups"), case.integer("top_groups")
    if groups <= 1:
        return ranked
    grouped = ranked.unflatten(-1, (groups, -1))
    kept = _best(_group_scores(case, grouped), top)
    mask = torch.zeros(kept.shape[0], groups, dtype=torch.bool).scatter(-1, kept, True)
    return grouped.masked_fill(~mask[..., None], float("-inf")).flatten(-2)


def _group_scores(case: Case, grouped: Tensor) -> Tensor:
    return grouped.amax(-1) if case.text("group_score") == "max" else grouped.topk(2, -1).values.sum(-1)


def _best(x: Tensor, k: int) -> Tensor:
    """Indices of the k largest, the lowest index first among equals."""
    return torch.argsort(x, dim=-1, descending=True, stable=True)[..., :k]


def weights_of(case: Case, kind: torch.dtype = F64) -> Tensor:
    """[tokens, experts]"""
    scores = scores_of(case, kind)
    chosen = _best(selection(case, scores), case.integer("k"))
    return _laid_out(case, scores, chosen)


def _laid_out(case: Case, scores: Tensor, chosen: Tensor) -> Tensor:
    weights = scores.gather(-1, chosen)
    if case.flag("renormalise"):
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return torch.zeros_like(scores).scatter(-1, chosen, weights * case.number("routed_scaling"))


class MoeGating(Kernel):
    name = "moe_gating"
    title = Words("Routing of a mixture of experts", "MoE 门控路由")
    source = "DeepSeek-V3 (2024)"
    operators = ("npu_moe_gating_top_k", "npu_moe_gating_top_k_softmax")
    suspects = (("fewer-experts", {}),)
    inputs = (Argument("logits", "[tokens, experts]", needed=True), Argument("bias", "added to the scores for the choice alone, [experts]"))
    params = (
        Argument("k", "experts of each token", 8), Argument("scoring", "softmax or sigmoid", "softmax"),
        Argument("groups", "groups of experts", 1), Argument("top_groups", "groups that may be chosen from", 1),
        Argument("group_score", "max, or top2sum", "max"), Argument("renormalise", "weights add up to one", False),
        Argument("routed_scaling", "factor on the weights", 1.0),
    )  # fmt: skip

    def check(self, case: Case) -> Case:
        case = super().check(case)
        experts, k, groups, top = (
            shaped(case, "logits", "tokens experts").shape[1],
            case.integer("k"),
            case.integer("groups"),
            case.integer("top_groups"),
        )
        if case.text("scoring") not in ("softmax", "sigmoid") or case.text("group_score") not in ("max", "top2sum"):
            raise SpecError("moe_gating: scoring must be softmax or sigmoid, group_score max or top2sum")
        if groups < 1 or experts % groups or not 1 <= top <= groups or not 1 <= k <= experts // groups * top:
            raise SpecError(f"moe_gating: {k} of {experts} experts in {top} of {groups} groups cannot be chosen")
        bias = case.get("bias")
        if bias is not None and bias.numel() != experts:
            raise SpecError(f"moe_gating: the bias must have {experts} values; found {bias.numel()}")
        return case

    def make(self, sizes: Mapping[str, Value], seed: int) -> Case:
        """As DeepSeek-V3 routes (256 experts, 8 groups, sigmoid, bias) unless said otherwise."""
        tokens, experts = size(sizes, "tokens", 128), size(sizes, "experts", 256, high=1 << 15)
        scoring = str(sizes.get("scoring", "sigmoid"))
        groups = size(sizes, "groups", 8 if scoring == "sigmoid" and experts % 8 == 0 else 1)
        dtype, randoms, deep = storage(sizes), Randoms(seed), scoring == "sigmoid"
        tensors = {"logits": randoms.normal(tokens, experts).to(dtype)}
        if deep:
            tensors["bias"] = (0.1 * randoms.normal(experts)).to(dtype)
        params: dict[str, Value] = {
            "k": size(sizes, "k", min(8, experts)), "scoring": scoring, "groups": groups,
            "top_groups": size(sizes, "top_groups", max(1, groups // 2)),
            "group_score": str(sizes.get("group_score", "top2sum" if deep else "max")), "renormalise": bool(sizes.get("renormalise", deep)),
            "routed_scaling": float(sizes.get("routed_scaling", 2.5 if deep else 1.0)),
        }  # fmt: skip
        return Case(self.name, tensors, params)

    def reference(self, case: Case) -> Tensor:
        return weights_of(case)

    def again(self, case: Case) -> Tensor:
        """Token by token with lists, as one would do it by hand."""
        import math

        bias = case.get("bias")
        plus = [0.0] * case["logits"].shape[1] if bias is None else bias.double().tolist()
        out = torch.zeros(case["logits"].shape, dtype=F64)
        count, groups = case.integer("k"), case.integer("groups")
        for token, logits in enumerate(case["logits"].double().tolist()):
            top = max(logits)
            total = sum(math.exp(z - top) for z in logits)
            own = [math.exp(z - top) / total if case.text("scoring") == "softmax" else 1 / (1 + math.exp(-z)) for z in logits]
            ranked = [a + b for a, b in zip(own, plus, strict=True)]
            size_ = len(own) // groups
            heads = 1 if case.text("group_score") == "max" else 2
            value = {g: sum(sorted(ranked[g * size_ : (g + 1) * size_])[-heads:]) for g in range(groups)}
            kept = sorted(value, key=lambda g: -value[g])[: case.integer("top_groups")] if groups > 1 else [0]
            pool = [e for g in kept for e in range(g * size_, (g + 1) * size_)] if groups > 1 else range(len(own))
            chosen = sorted(pool, key=lambda e: (-ranked[e], e))[:count]
            share = sum(own[e] for e in chosen) if case.flag("renormalise") else 1.0
            for expert in chosen:
                out[token, expert] = own[expert] / share * case.number("routed_scaling")
        return out

    def clean(self, case: Case, variant: int) -> Tensor:
        """Scores in float32; weights in the storage type. The choice is that of the reference: rows where rounding could change it do not
        count (`tolerance`)."""
        scores = scores_of(case, F32)
        chosen = _best(selection(case, scores_of(case)), case.integer("k"))
        if variant % 2:
            scores = scores.to(case["logits"].dtype).to(F32)
        return _laid_out(case, scores, chosen).to(case["logits"].dtype)

    def observe(self, case: Case, outputs: Mapping[str, Tensor]) -> Tensor:
        if "weights" not in outputs or "indices" not in outputs:
            raise SpecError(f"moe_gating: the outputs are to be named weights and indices; found {', '.join(outputs) or 'none'}")
        weights, indices, experts = outputs["weights"].to(F64), outputs["indices"].long(), case["logits"].shape[1]
        if weights.shape != indices.shape or weights.dim() != 2 or weights.shape[0] != case["logits"].shape[0]:
            raise SpecError(
                f"moe_gating: weights {list(weights.shape)} and indices {list(indices.shape)} do not go with {list(case['logits'].shape)}"
            )
        wild = (indices < 0) | (indices >= experts)
        out = torch.zeros(weights.shape[0], experts, dtype=F64).scatter_add(-1, indices.clamp(0, experts - 1), weights)
        out[wild.any(-1)] = float("nan")  # an expert that does not exist makes the row worthless
        return out

    def tolerance(self, case: Case) -> Tensor | None:
        """Rows in which the last expert or group chosen and the first not chosen are as good as equal do not count."""
        scores = scores_of(case)
        ranked = selection(case, scores).sort(-1, descending=True).values
        k, groups = case.integer("k"), case.integer("groups")
        even = ranked[:, k - 1] - ranked[:, k] < TIE if k < ranked.shape[1] else torch.zeros(len(ranked), dtype=torch.bool)
        if groups > 1:
            bias = case.get("bias")
            plain = scores if bias is None else scores + bias.to(F64)
            best = _group_scores(case, plain.unflatten(-1, (groups, -1))).sort(-1, descending=True).values
            top = case.integer("top_groups")
            if top < groups:
                even = even | (best[:, top - 1] - best[:, top] < TIE)
        return torch.where(even, 1e9, 1.0).to(F64)

    def places(self, case: Case) -> Tensor:
        return torch.arange(case["logits"].shape[0])

    def sample(self, case: Case, errors: Tensor) -> Sample:
        rows = case["logits"].shape[0]
        if rows <= ROWS:
            return super().sample(case, errors)
        chosen = torch.cat([torch.linspace(0, rows - 1, ROWS // 2).long(), errors.argsort(descending=True)[: ROWS // 2]]).unique()
        return Sample(case.having({"logits": case["logits"][chosen]}), lambda out: out[chosen])

    def faults(self, case: Case, observed: Tensor | None) -> list[Fault]:
        return list(_faults(case))

    def bounds(self, case: Case) -> list[tuple[str, bool, str]]:
        return []

    def facts(self, case: Case) -> dict[str, Value]:
        experts, bias = case["logits"].shape[1], case.get("bias")
        return {
            "expert_count": experts, "experts": experts, "group_count": case.integer("groups"), "k": case.integer("k"),
            "k_group": case.integer("top_groups"), "renorm": 0, "x_dtype": name_of(case["logits"].dtype),
            "bias_dtype": name_of((case["logits"] if bias is None else bias).dtype),
        }  # fmt: skip

    def sizes(self, case: Case) -> dict[str, int]:
        return {"tokens": case["logits"].shape[0], "experts": case["logits"].shape[1], "k": case.integer("k"), "groups": case.integer("groups")}


def _faults(case: Case) -> Iterator[Fault]:
    groups, k, factor = case.integer("groups"), case.integer("k"), case.number("routed_scaling")

    def changed(name: str, params: dict[str, Value], tensors: dict[str, Tensor | None] | None = None, **values: Value) -> Fault:
        return Fault(name, params, lambda: weights_of(case.having(tensors, **values)))

    if groups > 1:
        yield changed("groups-ignored", {}, groups=1)
        other = "max" if case.text("group_score") == "top2sum" else "top2sum"
        yield changed("group-score", {"by": other}, group_score=other)
        for top in range(1, groups):
            if top != case.integer("top_groups"):
                yield changed("groups-ignored", {"top_groups": top}, top_groups=top)
    if case.get("bias") is not None:
        yield changed("bias-ignored", {}, {"bias": None})
        yield Fault("bias-in-weights", {}, lambda: _biased(case))
    other = "softmax" if case.text("scoring") == "sigmoid" else "sigmoid"
    yield changed("scoring", {"function": other}, scoring=other)
    yield changed("not-renormalised" if case.flag("renormalise") else "renormalised", {}, renormalise=not case.flag("renormalise"))
    for value in (1.0, 2.5, 1.8, 2.446, 16.0, factor**2):
        if abs(value / factor - 1) > 1e-6:
            yield changed("scaling-factor", {"value": value}, routed_scaling=value)
    for fewer in range(1, k):
        yield changed("fewer-experts", {"k": fewer}, k=fewer)
        if case.flag("renormalise"):
            yield Fault("fewer-experts", {"k": fewer, "weights": "of all"}, lambda fewer=fewer: _cut(case, fewer), prior=0.9)
    experts = case["logits"].shape[1]
    for by in (1, -1):
        yield Fault("index-shift", {"by": by}, lambda by=by: weights_of(case).roll(by, -1))
    for modulus in (64, 128, 256):
        if modulus < experts:
            yield Fault("index-wrap", {"modulus": modulus}, lambda modulus=modulus: _wrapped(case, modulus))


def _biased(case: Case) -> Tensor:
    bias = case["bias"].to(F64)
    scores = scores_of(case)
    return _laid_out(case, scores + bias, _best(selection(case, scores), case.integer("k")))


def _cut(case: Case, fewer: int) -> Tensor:
    """The weights of the first few, made to add up together with those left out."""
    scores = scores_of(case)
    chosen = _best(selection(case, scores), case.integer("k"))
    whole = scores.gather(-1, chosen)
    whole = whole / whole.sum(-1, keepdim=True) * case.number("routed_scaling")
    return torch.zeros_like(scores).scatter(-1, chosen[:, :fewer], whole[:, :fewer])


def _wrapped(case: Case, modulus: int) -> Tensor:
    true = weights_of(case)
    index = torch.arange(true.shape[-1]) % modulus
    return torch.zeros_like(true).index_add_(-1, index, true)
