"""The npu backend: every operator gets the arguments its documentation asks for, and the states of an installation are told apart.

A stand-in torch_npu records the calls, and computes what the operator would: so a wrong layout shows as a wrong result too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from torch import Tensor

from replay.backends import native, npu
from replay.backends.call import Unavailable
from replay.backends.probe import told
from replay.kernels import kernel_named
from replay.tensors import Value
from tests.unit.test_replay_kernels import SMALL

PROBE = Path(npu.__file__).with_name("probe.py")


def spread(half: str, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotation as npu_rotary_mul is documented: x * cos + rotated(x) * sin, tables as wide as a head."""
    x, cos, sin = x.float(), cos.float(), sin.float()
    dim = x.shape[-1]
    partner = (
        torch.cat([-x[..., dim // 2 :], x[..., : dim // 2]], -1) if half == "half" else torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    )
    return x * cos + partner * sin


class Recorder:
    """torch_npu, as far as the operators go."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            self.calls.append((name, args, named))
            return getattr(Operators, name)(*args, **named)

        return call


class Operators:
    """What each operator gives, in the argument order of its documentation."""

    @staticmethod
    def npu_rotary_mul(input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half") -> Tensor:
        assert input.dim() == r1.dim() == 4
        assert r1.dtype is r2.dtype is input.dtype
        return spread(rotary_mode, input, r1, r2).to(input.dtype)

    @staticmethod
    def npu_apply_rotary_pos_emb(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: str = "BSND", rotary_mode: str = "half") -> Any:
        assert layout == "BSND"
        assert cos.shape[2] == 1
        assert query.shape[:2] == key.shape[:2] == cos.shape[:2]
        query.copy_(spread("half", query, cos, sin))
        return query, key

    @staticmethod
    def npu_interleave_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        assert x.shape[-1] == 64
        assert cos.shape[1] == 1
        assert cos.shape[2] == x.shape[2]
        return spread("half", torch.cat([x[..., 0::2], x[..., 1::2]], -1), cos, sin).to(x.dtype)

    @staticmethod
    def _npu_rotary_embedding(positions: Tensor, query: Tensor, key: Tensor, head_size: int, cos_sin_cache: Tensor, is_neox_style: bool) -> None:
        assert positions.dtype is torch.int64
        rows = cos_sin_cache[positions].float()
        half = rows.shape[-1] // 2
        cos, sin = rows[:, None, :half], rows[:, None, half:]
        x = query.view(len(positions), -1, head_size)
        wide = [one.repeat(1, 1, 2) if is_neox_style else one.repeat_interleave(2, -1) for one in (cos, sin)]
        x.copy_(spread("half" if is_neox_style else "interleave", x, *wide))

    @staticmethod
    def _npu_paged_attention(
        *,
        query: Tensor,
        key_cache: Tensor,
        value_cache: Tensor,
        num_kv_heads: int,
        num_heads: int,
        scale_value: float,
        block_table: Tensor,
        context_lens: Tensor,
        out: Tensor,
        workspace: Tensor | None = None,
    ) -> None:
        assert block_table.dtype is context_lens.dtype is torch.int32
        assert (num_heads, num_kv_heads) == (query.shape[1], key_cache.shape[2])
        tensors = {"query": query, "key_cache": key_cache, "value_cache": value_cache, "block_table": block_table, "context_lens": context_lens}
        out.copy_(native.run("paged_attention", tensors, {"scale": scale_value}))  # type: ignore[arg-type]

    @staticmethod
    def _npu_paged_attention_mla(
        *,
        query: Tensor,
        key_cache: Tensor,
        num_kv_heads: int,
        num_heads: int,
        scale_value: float,
        block_table: Tensor,
        context_lens: Tensor,
        mla_vheadsize: int,
        out: Tensor,
    ) -> None:
        tensors = {"query": query, "key_cache": key_cache, "block_table": block_table, "context_lens": context_lens}
        out.copy_(native.run("paged_attention", tensors, {"scale": scale_value, "v_dim": mla_vheadsize}))  # type: ignore[arg-type]

    @staticmethod
    def npu_fused_infer_attention_score(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        num_heads: int = 1,
        scale: float = 1.0,
        input_layout: str = "BSH",
        num_key_value_heads: int = 0,
        atten_mask: Tensor | None = None,
        actual_seq_lengths: Any = None,
        actual_seq_lengths_kv: Any = None,
        block_table: Tensor | None = None,
        sparse_mode: int = 0,
        inner_precise: int = 0,
        block_size: int = 0,
    ) -> Any:
        if block_table is not None:
            assert input_layout == "BSND"
            caches = [one.view(one.shape[0], block_size, num_key_value_heads, -1) for one in (key, value)]
            tensors = {"query": query[:, 0], "key_cache": caches[0], "value_cache": caches[1], "block_table": block_table}
            tensors["context_lens"] = torch.tensor(actual_seq_lengths_kv)
            out: Any = native.run("paged_attention", tensors, {"scale": scale})
            return out[:, None], torch.zeros(1)
        assert input_layout == "BNSD"
        return Operators._prompt(query, key, value, scale, atten_mask, sparse_mode), torch.zeros(1)

    @staticmethod
    def _prompt(query: Tensor, key: Tensor, value: Tensor, scale: float, mask: Tensor | None, sparse: int) -> Tensor:
        tensors = {"query": query[0].transpose(0, 1), "key": key[0].transpose(0, 1), "value": value[0].transpose(0, 1)}
        params: dict[str, Any] = {"scale": scale, "mask": {2: "top-left", 3: "bottom-right"}.get(sparse, "none")}
        if sparse in (2, 3):
            assert mask is not None
            assert list(mask.shape) == [2048, 2048]
            assert bool(mask[0, 1]) and not bool(mask[1, 0])
        elif mask is not None:
            tensors["attention_mask"], params["mask"] = mask, "given"
        out: Any = native.run("prefill_attention", tensors, params)
        return out.transpose(0, 1)[None]  # type: ignore[no-any-return]

    @staticmethod
    def npu_incre_flash_attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        actual_seq_lengths: Any,
        block_table: Tensor,
        num_heads: int,
        num_key_value_heads: int,
        scale_value: float,
        input_layout: str,
        block_size: int,
        inner_precise: int = 1,
    ) -> Tensor:
        assert input_layout == "BSH"
        caches = [one.view(one.shape[0], block_size, num_key_value_heads, -1) for one in (key, value)]
        tensors = {"query": query[:, 0].view(len(query), num_heads, -1), "key_cache": caches[0], "value_cache": caches[1], "block_table": block_table}
        tensors["context_lens"] = torch.tensor(actual_seq_lengths)
        out: Any = native.run("paged_attention", tensors, {"scale": scale_value})
        return out.flatten(1)[:, None]  # type: ignore[no-any-return]

    @staticmethod
    def npu_fusion_attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        head_num: int,
        input_layout: str,
        *,
        atten_mask: Tensor | None = None,
        scale: float = 1.0,
        sparse_mode: int = 0,
    ) -> Any:
        assert (input_layout, head_num) == ("BNSD", query.shape[1])
        return (Operators._prompt(query, key, value, scale, atten_mask, sparse_mode), *[torch.zeros(1)] * 6)

    @staticmethod
    def npu_rms_norm(self: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Any:
        out: Any = native.run("rms_norm", {"x": self, "gamma": gamma}, {"eps": epsilon})
        return out["out"], torch.zeros(1)

    @staticmethod
    def npu_add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Any:
        out: Any = native.run("rms_norm", {"x": x1, "residual": x2, "gamma": gamma}, {"eps": epsilon})
        return out["out"], torch.zeros(1), out["sum"]

    @staticmethod
    def npu_grouped_matmul(
        x: list[Tensor], weight: list[Tensor], *, group_list: Tensor, split_item: int = 0, group_type: int = -1, group_list_type: int = 0
    ) -> Any:
        assert (len(x), len(weight), split_item, group_type) == (1, 1, 3, 0)
        kind = "sizes" if group_list_type == 1 else "ends"
        return [native.run("grouped_matmul", {"x": x[0], "weight": weight[0], "group_list": group_list}, {"group_list_type": kind})]

    @staticmethod
    def npu_moe_gating_top_k(
        x: Tensor,
        k: int,
        *,
        bias: Tensor | None = None,
        k_group: int = 1,
        group_count: int = 1,
        group_select_mode: int = 0,
        renorm: int = 0,
        norm_type: int = 0,
        out_flag: bool = False,
        routed_scaling_factor: float = 1.0,
        eps: float = 1e-20,
    ) -> Any:
        assert renorm == 0
        params = {
            "k": k,
            "groups": group_count,
            "top_groups": k_group,
            "group_score": ("max", "top2sum")[group_select_mode],
            "scoring": ("softmax", "sigmoid")[norm_type],
            "renormalise": norm_type == 1,
            "routed_scaling": routed_scaling_factor,
        }
        out: Any = native.run("moe_gating", {"logits": x} | ({} if bias is None else {"bias": bias}), params)
        return out["weights"], out["indices"], torch.zeros(1)

    @staticmethod
    def npu_moe_gating_top_k_softmax(x: Tensor, finished: Tensor | None, k: int) -> Any:
        params = {"k": k, "groups": 1, "top_groups": 1, "group_score": "max", "scoring": "softmax", "renormalise": False, "routed_scaling": 1.0}
        out: Any = native.run("moe_gating", {"logits": x}, params)
        return out["weights"], out["indices"], torch.zeros(1)

    @staticmethod
    def npu_swiglu(self: Tensor, dim: int = -1) -> Any:
        return native.run("swiglu", {"x": self}, {})

    @staticmethod
    def _npu_reshape_and_cache(key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_indices: Tensor) -> None:
        assert slot_indices.dtype is torch.int32
        out: Any = native.run(
            "cache_write", {"key": key, "value": value, "key_cache": key_cache, "value_cache": value_cache, "slot_mapping": slot_indices}, {}
        )
        key_cache.copy_(out["key_cache"])
        value_cache.copy_(out["value_cache"])


SPECIAL: dict[tuple[str, str], dict[str, Value]] = {
    ("rope", "npu_interleave_rope"): {"mode": "interleave-to-half", "head_dim": 64},
    ("paged_attention", "_npu_paged_attention_mla"): {"mla": True, "kv_heads": 1, "head_dim": 48, "v_dim": 32},
    ("moe_gating", "npu_moe_gating_top_k_softmax"): {"scoring": "softmax", "groups": 1},
    ("rms_norm", "npu_rms_norm"): {"residual": False},
}
MORE: list[tuple[str, str, dict[str, Value]]] = [
    ("rope", "npu_rotary_mul", {"mode": "interleave"}),
    ("rope", "npu_rotary_mul", {"rotary_dim": 16}),
    ("rope", "_npu_rotary_embedding", {"mode": "interleave"}),
    ("prefill_attention", "npu_fused_infer_attention_score", {"mask": "top-left"}),
    ("prefill_attention", "npu_fused_infer_attention_score", {"mask": "none"}),
    ("prefill_attention", "npu_fused_infer_attention_score", {"window": 7}),
]
EVERY = [(kernel, operator, SPECIAL.get((kernel, operator), {})) for kernel, table in npu.OPERATORS.items() for operator in table] + MORE


@pytest.mark.parametrize(("name", "operator", "more"), EVERY)
def test_an_operator_gets_what_it_asks_for_and_gives_the_right_result(
    name: str, operator: str, more: dict[str, Value], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "torch_npu", recorder)
    kernel = kernel_named(name)
    small = {**SMALL[name], **more, "dtype": "float32"}
    if name == "rope":
        small["seq_len"] = 300
    case = kernel.check(kernel.make(small, 3))
    got = npu.run(name, operator, {key: one.clone() for key, one in case.tensors.items()}, dict(case.params))
    observed = kernel.observe(case, got if isinstance(got, dict) else {"out": got})
    assert torch.allclose(observed.double(), kernel.reference(case), rtol=1e-3, atol=1e-4)
    if operator not in ("matmul", "topk"):
        assert recorder.calls[0][0] == operator


def test_the_scale_is_never_left_to_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """npu_fused_infer_attention_score takes 1.0 where none is given, and nobody says so."""
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "torch_npu", recorder)
    kernel = kernel_named("paged_attention")
    case = kernel.check(kernel.make({**SMALL["paged_attention"], "dtype": "float32"}, 3))
    npu.run("paged_attention", "npu_fused_infer_attention_score", dict(case.tensors), dict(case.params))
    [(_, _, named)] = recorder.calls
    assert named["scale"] == pytest.approx(16**-0.5)


def test_an_operator_that_is_not_mapped_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_npu", Recorder())
    with pytest.raises(Unavailable, match="npu_rotary_mul"):
        npu.run("rope", "npu_dream", {}, {})


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("libhccl.so: cannot open shared object file: No such file or directory", "no-cann"),
        ("libascend_hal.so: cannot open shared object file: No such file or directory", "no-driver"),
        ("libatb.so: cannot open shared object file: No such file or directory", "no-nnal"),
        ("/x/libtorch_npu.so: undefined symbol: aclAppLog", "bad-match"),
        ("Two accelerators cannot be used at the same time in PyTorch: npu and cuda. ERR00007", "bad-match"),
    ],
)
def test_the_first_missing_library_tells_the_state(text: str, state: str) -> None:
    found = told(text, "2.7.1", "2.6.0")
    assert found["state"] == state
    assert found["message"]


FAKES = {
    "no-cann": 'raise ImportError("libhccl.so: cannot open shared object file: No such file or directory")',
    "no-driver": 'raise ImportError("libascend_hal.so: cannot open shared object file: No such file or directory")',
    "no-device": "class npu:\n    is_available = staticmethod(lambda: False)\n",
    "ok": "class npu:\n    is_available = staticmethod(lambda: True)\n    device_count = staticmethod(lambda: 8)\n"
    "    get_device_name = staticmethod(lambda: 'Ascend910B3')\n",
}


@pytest.mark.parametrize("state", FAKES)
def test_the_probe_tells_the_states_apart_in_a_child(tmp_path: Path, state: str) -> None:
    (tmp_path / "torch.py").write_text("__version__ = '2.7.1'\n")
    (tmp_path / "torch_npu.py").write_text(FAKES[state])
    done = subprocess.run([sys.executable, str(PROBE)], capture_output=True, env={"PYTHONPATH": str(tmp_path)}, timeout=60, check=True)
    assert json.loads(done.stdout)["state"] == state
