"""Which kernel an operator computes, by its name alone. Needs no torch."""

from __future__ import annotations

KERNELS = {
    "rotary": "rope", "applyrotaryposemb": "rope", "interleaverope": "rope", "ropecache": "rope", "atbrope": "rope",
    "pagedattention": "paged_attention", "fusedinferattentionscore": "paged_attention", "rmsnorm": "rms_norm", "addrmsnorm": "rms_norm",
    "swiglu": "swiglu", "matmul": "matmul", "topk": "topk", "moegatingtopk": "moe_gating", "moegatingtopksoftmax": "moe_gating",
    "reshapeandcache": "cache_write",
}  # fmt: skip
"""Operator in its one spelling -> kernel."""
ALIASES = {
    "rotarymul": "rotary", "rotarypositionembedding": "rotary", "rotarypositionembeddingv2": "rotary", "rope": "atbrope",
    "rotaryembedding": "ropecache",
    "fusedinferattentionscorev2": "fusedinferattentionscore", "fusedinferattentionscorev3": "fusedinferattentionscore", "matmulv2": "matmul",
    "matmulv3": "matmul", "linear": "matmul", "mm": "matmul", "moegatingtopkv2": "moegatingtopk", "scatterpakvcache": "reshapeandcache",
}  # fmt: skip


def normal(operator: str) -> str:
    """torch_npu.npu_rotary_mul, aclnnRotaryPositionEmbedding, PagedAttentionOperation, RotaryMul -> one spelling."""
    plain = operator.rpartition(".")[2].lower().replace("_", "")
    for prefix in ("torchnpu", "aclnn", "npu"):
        plain = plain.removeprefix(prefix)
    plain = plain.removesuffix("operation")
    return ALIASES.get(plain, plain)


def kernel_of(operator: str) -> str:
    """Empty for an operator that is not known."""
    return KERNELS.get(normal(operator), "")
