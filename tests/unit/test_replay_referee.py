"""The referee names a fault with its parameter, says so when several fit, and never more than it measured."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from replay.kernels import kernel_named
from replay.referee import Suspect, judge
from replay.result import STATUSES, Verdict
from replay.tensors import Case, Value
from tests.bench.replay import confusion, devices, devices_more
from tests.bench.replay.devices import Dice


def rope(**more: Value) -> Case:
    kernel = kernel_named("rope")
    return kernel.check(kernel.make({"seq_len": 131072, "tokens": 48, "heads": 2, "head_dim": 64, "dtype": "bfloat16", **more}, 2))


def verdict_of(case: Case, observed: torch.Tensor, suspect: Suspect | None = None) -> Verdict:
    return judge(kernel_named(case.kernel), case, observed, "capture", suspect)


def paged(**more: Value) -> Case:
    kernel = kernel_named("paged_attention")
    sizes = {"seq_len": 150, "requests": 3, "heads": 4, "kv_heads": 2, "head_dim": 32, "block_size": 16, "dtype": "float16", **more}
    return kernel.check(kernel.make(sizes, 3))


@pytest.mark.parametrize(("change", "name", "params"), [
    (lambda p: p & 0xFFFF, "position-wrap", {"modulus": 65536}),
    (lambda p: p % 77777, "position-wrap", {"modulus": 77777}),
    (lambda p: p.clamp(max=54321), "position-clamp", {"limit": 54321}),
    (lambda p: p + 1234, "position-shift", {"by": 1234}),
    (lambda p: p - 1, "position-shift", {"by": -1}),
])  # fmt: skip
def test_the_position_a_kernel_really_used_is_read_out_of_its_output(change: object, name: str, params: dict[str, int]) -> None:
    case = rope()
    verdict = verdict_of(case, devices.rope(case, change(case["positions"])))  # type: ignore[operator]
    assert verdict.status == "confirmed"
    assert [(fit.name, fit.params) for fit in verdict.faults] == [(name, params)]


def test_the_plot_shows_where_it_begins() -> None:
    kernel = kernel_named("rope")
    case = kernel.check(kernel.make({"seq_len": 80000, "tokens": 4001, "heads": 1, "head_dim": 16, "dtype": "bfloat16"}, 2))
    verdict = verdict_of(case, devices.rope(case, case["positions"] & 0xFFFF))
    assert verdict.plot is not None
    assert verdict.plot.axis == "position"
    first = int(case["positions"][case["positions"] >= 65536][0])
    assert verdict.plot.boundary == first
    assert sum(one.rows for one in verdict.plot.bins) == 4001
    assert verdict.plot.bins[0].error < 2 < verdict.plot.bins[-1].worst


def test_one_wrong_row_of_very_many_is_wrong() -> None:
    kernel = kernel_named("rope")
    case = kernel.check(kernel.make({"seq_len": 65537, "tokens": 65537, "heads": 1, "head_dim": 16, "dtype": "bfloat16"}, 2))
    verdict = verdict_of(case, devices.rope(case, case["positions"] & 0xFFFF))
    assert (verdict.status, verdict.faults[0].name) == ("confirmed", "position-wrap")


@pytest.mark.parametrize(("length", "name"), [(37, "context-clamp"), (100, "context-clamp"), (149, "context-clamp")])
def test_any_length_of_context_is_read_out_of_the_output(length: int, name: str) -> None:
    case = paged(requests=2, seq_len=400)
    observed = devices.paged(case, 96, slots=lambda r: devices.true_slots(case, r, min(length, int(case["context_lens"][r]))))
    verdict = verdict_of(case, observed)
    assert (verdict.faults[0].name, verdict.faults[0].params) == (name, {"limit": length})


def test_a_stale_block_is_named_with_its_request_where_the_earlier_cache_is_known_and_is_unknown_where_not() -> None:
    case = paged()
    before = torch.randn(case["key_cache"].shape).half()
    keys, values = case["key_cache"].clone(), case["value_cache"].clone()
    at = int(case["block_table"][1, 2])
    keys[at], values[at] = before[at], before[at]
    observed = devices.paged(case, 96, keys=keys, values=values)
    known = case.having({"previous_key_cache": before, "previous_value_cache": before})
    verdict = verdict_of(known, observed)
    assert [(fit.name, fit.params) for fit in verdict.faults] == [("block-stale", {"request": 1, "block": 2})]
    blind = verdict_of(case, observed)
    assert blind.status == "unknown"
    assert "wrong at request 1" in blind.reason.en


def test_inputs_that_cannot_tell_faults_apart_give_a_named_set() -> None:
    case = rope(tokens=1)
    case = case.having({"positions": torch.tensor([70000])})
    verdict = verdict_of(case, devices.rope(case, case["positions"].half().float()))
    assert {fit.name for fit in verdict.faults} >= {"position-dtype", "angle-dtype"}
    assert len(verdict.faults) <= 3
    assert "cannot tell apart" in verdict.reason.en


def test_a_fault_that_was_not_suspected_is_said_to_be_another() -> None:
    case = rope()
    verdict = verdict_of(case, devices.rope(case, case["positions"] + 1), Suspect("position-wrap"))
    assert verdict.status == "confirmed"
    assert "not the suspected fault" in verdict.reason.en
    assert "并非" in verdict.reason.zh


@pytest.mark.parametrize("name", ["rope", "paged_attention", "matmul"])
def test_faults_outside_the_library_are_never_named(name: str) -> None:
    sizes: dict[str, dict[str, Value]] = {
        "rope": {"seq_len": 131072, "tokens": 12, "heads": 2, "head_dim": 32},
        "paged_attention": {"seq_len": 60, "requests": 3, "heads": 4, "kv_heads": 2, "head_dim": 32, "block_size": 16},
        "matmul": {"m": 8, "k": 256, "n": 64},
    }
    kernel = kernel_named(name)
    case = confusion.made(kernel, sizes[name], "bfloat16", 5)
    for fault, observed in confusion.outside(kernel, case, 3).items():
        verdict = judge(kernel, case, observed, "capture")
        assert verdict.status == "unknown", (fault, verdict.status, verdict.faults)


def test_narrow_sums_are_low_precision_and_no_structural_fault() -> None:
    kernel = kernel_named("matmul")
    case = kernel.check(kernel.make({"m": 8, "k": 1024, "n": 64, "dtype": "bfloat16"}, 4))
    trial = devices_more.matmul_trials(case, Dice(3))["bf16 sums"]()
    verdict = judge(kernel, case, trial.observed, "capture")
    assert verdict.status == "precision", verdict.reason.en
    assert verdict.faults[0].params["dtype"] == "bfloat16"


def test_a_block_table_beyond_the_cache_is_confirmed_without_running_anything() -> None:
    case = paged()
    table = case["block_table"].clone()
    table[0, 1] = 4000
    verdict = verdict_of(case.having({"block_table": table}), torch.zeros(3, 4, 32))
    assert verdict.status == "confirmed"
    assert verdict.violations[0].silent
    assert "4000" in verdict.reason.en


def test_the_small_confusion_experiment_keeps_its_promise() -> None:
    kept: dict[str, tuple[str, dict[str, Value]]] = {
        "rope small": ("rope", {"seq_len": 131072, "tokens": 8, "heads": 2, "head_dim": 32}),
        "moe small": ("moe_gating", {"tokens": 16, "experts": 32, "groups": 4, "k": 4}),
    }
    lines, fine = confusion.summary(confusion.run(kept, ("float16",), 1, lambda text: None))
    assert fine, lines


def test_every_verdict_has_words_in_both_languages() -> None:
    from replay.faults.words import TITLES
    from replay.result import STATUS_WORDS

    assert set(STATUS_WORDS) == {*STATUSES, "not-run"}
    for words in (*TITLES.values(), *STATUS_WORDS.values()):
        assert words.en.strip()
        assert any("\u4e00" <= char <= "\u9fff" for char in words.zh)


def test_every_model_of_every_kernel_has_a_title() -> None:
    from replay.faults.words import TITLES
    from replay.kernels import NAMES
    from tests.unit.test_replay_kernels import SMALL

    for name in NAMES:
        kernel = kernel_named(name)
        case = kernel.check(kernel.make({**SMALL[name], "dtype": "float16"}, 1))
        names = {fault.name for fault in kernel.faults(case, None)}
        assert names <= set(TITLES), names - set(TITLES)
        assert {suspect for suspect, _ in kernel.suspects} <= set(TITLES)
