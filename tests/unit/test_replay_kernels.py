"""Each kernel's mathematics agrees with an independent formulation, and with PyTorch's own operators; a sound kernel is never called faulty."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from replay.backends import native
from replay.errors import SpecError
from replay.kernels import NAMES, kernel_named
from replay.kernels.base import Kernel
from replay.kernels.rope import frequencies, rotate, table
from replay.referee import Suspect, judge
from replay.tensors import Case, Value

SMALL: dict[str, dict[str, Value]] = {
    "rope": {"seq_len": 70000, "tokens": 24, "heads": 3, "head_dim": 32},
    "paged_attention": {"seq_len": 45, "requests": 3, "heads": 4, "kv_heads": 2, "head_dim": 16, "block_size": 16},
    "prefill_attention": {"seq_len": 40, "tokens": 24, "heads": 4, "kv_heads": 2, "head_dim": 16},
    "rms_norm": {"tokens": 12, "columns": 64, "residual": True},
    "matmul": {"m": 5, "k": 70, "n": 32},
    "grouped_matmul": {"tokens": 20, "k": 32, "n": 16, "experts": 4},
    "moe_gating": {"tokens": 10, "experts": 32, "groups": 4, "k": 4},
    "topk": {"tokens": 3, "columns": 500, "k": 7},
    "swiglu": {"tokens": 6, "columns": 32},
    "cache_write": {"tokens": 9, "blocks": 4, "block_size": 8, "head_dim": 16},
}
VARIANTS: list[tuple[str, dict[str, Value]]] = [
    *((name, {}) for name in NAMES),
    ("rope", {"mode": "interleave"}),
    ("rope", {"mode": "interleave-to-half"}),
    ("rope", {"rotary_dim": 16}),
    ("rope", {"scaling": "linear", "factor": 4.0}),
    ("rope", {"scaling": "yarn", "factor": 40.0, "head_dim": 64}),
    ("paged_attention", {"mla": True, "kv_heads": 1, "head_dim": 48, "v_dim": 32}),
    ("prefill_attention", {"mask": "none"}),
    ("prefill_attention", {"mask": "top-left"}),
    ("prefill_attention", {"window": 9}),
    ("moe_gating", {"scoring": "softmax"}),
    ("matmul", {"bias": False}),
]


def made(name: str, more: dict[str, Value], dtype: str = "float16") -> tuple[Kernel, Case]:
    kernel = kernel_named(name)
    return kernel, kernel.check(kernel.make({**SMALL[name], **more, "dtype": dtype}, 11))


def ran(kernel: Kernel, case: Case) -> torch.Tensor:
    got = native.run(kernel.name, {name: tensor.clone() for name, tensor in case.tensors.items()}, dict(case.params))
    return kernel.observe(case, got if isinstance(got, dict) else {"out": got})


@pytest.mark.parametrize(("name", "more"), VARIANTS)
def test_the_reference_agrees_with_an_independent_formulation(name: str, more: dict[str, Value]) -> None:
    kernel, case = made(name, more)
    assert torch.allclose(kernel.reference(case), kernel.again(case), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("name", "more"), VARIANTS)
def test_the_operators_of_pytorch_are_found_sound(name: str, more: dict[str, Value], dtype: str) -> None:
    kernel, case = made(name, more, dtype)
    verdict = judge(kernel, case, ran(kernel, case), "cpu")
    assert verdict.status in ("refuted", "not-testable"), verdict.reason.en
    assert verdict.score is not None
    assert verdict.score < 2


def test_a_rotation_keeps_what_two_positions_have_to_do_with_each_other() -> None:
    """q(m) . k(n) depends on m - n alone, at positions far beyond 65535."""
    _, case = made("rope", {})
    x, y = case["x"][:1].double(), case["x"][1:2].double()
    inv = frequencies(case, "exact").double()
    for mode in ("half", "interleave", "interleave-to-half"):
        products = []
        for by in (0, 65536, 1 << 20):
            a = rotate(x, *table(torch.tensor([17 + by]), inv, dtype=torch.float64), mode, 32)
            b = rotate(y, *table(torch.tensor([5 + by]), inv, dtype=torch.float64), mode, 32)
            products.append((a * b).sum())
        assert torch.allclose(products[0], products[1], atol=1e-8)
        assert torch.allclose(products[0], products[2], atol=1e-7)


@pytest.mark.parametrize("last", [65536, 131072, 1_000_000])
@pytest.mark.parametrize("formula", ["pow", "exp", "exact"])
def test_no_healthy_float32_table_is_called_faulty(last: int, formula: str) -> None:
    kernel, case = made("rope", {"seq_len": last, "tokens": 48, "head_dim": 128, "base": 10000.0}, "bfloat16")
    inv = frequencies(case, formula)
    inv = inv * (1 + 2.0**-23 * torch.tensor([(-1.0) ** n for n in range(len(inv))]))  # the last bit, as another machine rounds it
    out = rotate(case["x"].float(), *(one.float() for one in table(case["positions"], inv)), "half", 128).bfloat16()
    verdict = judge(kernel, case, out, "other formula")
    assert verdict.status in ("refuted", "not-testable"), verdict.reason.en


@pytest.mark.parametrize("name", NAMES)
def test_wrong_shapes_are_named(name: str) -> None:
    kernel, case = made(name, {})
    first = kernel.inputs[0].name
    with pytest.raises(SpecError, match=first if name != "cache_write" else "key"):
        kernel.check(Case(name, {key: one for key, one in case.tensors.items() if key != first}))
    with pytest.raises(SpecError, match="no parameter"):
        kernel.check(case.having(None, nonsense=1))


def test_the_float64_of_the_reference_is_no_excuse_for_the_wrong_shape() -> None:
    kernel, case = made("rope", {})
    verdict = judge(kernel, case, torch.zeros(2, 2, 2), "capture")
    assert verdict.status == "unknown"
    assert "shape" in verdict.reason.en


@pytest.mark.parametrize(("suspect", "length", "status"), [
    (Suspect("position-wrap", {"modulus": 65536}), 65536, "not-testable"),
    (Suspect("position-wrap", {"modulus": 65536}), 65537, "refuted"),
    (Suspect("position-clamp", {"limit": 90000}), 70000, "not-testable"),
    (Suspect("position-clamp", {"limit": 60001}), 70000, "refuted"),
    (Suspect("scaling-missing"), 70000, "not-testable"),
])  # fmt: skip
def test_a_sound_output_refutes_only_what_the_inputs_would_have_shown(suspect: Suspect, length: int, status: str) -> None:
    kernel, case = made("rope", {"seq_len": length, "tokens": 40})
    assert judge(kernel, case, ran(kernel, case), "cpu", suspect).status == status
