"""The confusion experiment: faults put into device-like kernels, with parameters that the referee does not know; what does it name?

    python -m tests.bench.replay.confusion             a few cases, some minutes on two cores
    python -m tests.bench.replay.confusion --full      all 18 cases and new random ones, two trials each, both dtypes
    python -m tests.bench.replay.confusion --only rope

Counts, of faults that change the output: named exactly (name, and parameter where it can be told), in a named set of at most three,
unknown, named wrongly, called clean. Of faults that do not: called not-testable. Of sound kernels: called faulty. Of faults outside the
library: called unknown. Ends with status 1 where a line of the promise is broken: exact or in a set 96 %, wrong 0, false alarms 0,
outside unknown 100 %, not testable 100 %."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable

import torch

from replay.kernels import kernel_named
from replay.kernels.base import Kernel
from replay.referee import CLEAN, Suspect, judge
from replay.result import Verdict
from replay.tensors import F64, Case, Value
from tests.bench.replay import devices, devices_more
from tests.bench.replay.devices import Dice, Trial

CASES: dict[str, tuple[str, dict[str, Value]]] = {
    "rope D128 131072": ("rope", {"seq_len": 131072, "tokens": 64, "heads": 8}),
    "rope D64 yarn": ("rope", {"seq_len": 131072, "tokens": 64, "heads": 8, "head_dim": 64, "mode": "interleave", "scaling": "yarn", "factor": 40.0}),
    "rope base 1e6 1M": ("rope", {"seq_len": 1000000, "tokens": 128, "heads": 8, "base": 1e6}),
    "rope 32768": ("rope", {"seq_len": 32768, "tokens": 64, "heads": 8}),
    "rope D192": ("rope", {"seq_len": 131072, "tokens": 64, "heads": 8, "head_dim": 192}),
    "rope 1 token": ("rope", {"seq_len": 131072, "tokens": 1, "heads": 4, "last": True}),
    "paged GQA": ("paged_attention", {"seq_len": 2000, "requests": 4, "heads": 16, "kv_heads": 4}),
    "paged GQA sharp": ("paged_attention", {"seq_len": 2000, "requests": 4, "heads": 16, "kv_heads": 4, "sharpness": 4.0}),
    "paged MHA bs16": ("paged_attention", {"seq_len": 129, "requests": 4, "heads": 4, "kv_heads": 4, "head_dim": 64, "block_size": 16}),
    "paged MLA": ("paged_attention", {"seq_len": 2000, "requests": 4, "heads": 16, "kv_heads": 1, "head_dim": 576, "mla": True}),
    "paged 70001": ("paged_attention", {"seq_len": 70001, "heads": 4, "kv_heads": 1, "sharpness": 3.0}),
    "prefill 300x900": ("prefill_attention", {"seq_len": 900, "tokens": 300}),
    "topk 129280": ("topk", {}),
    "rms 4096": ("rms_norm", {}),
    "rms 7168": ("rms_norm", {"tokens": 24, "columns": 7168}),
    "moe 256e8g": ("moe_gating", {}),
    "moe softmax 128e": ("moe_gating", {"experts": 128, "scoring": "softmax"}),
    "matmul 4096": ("matmul", {}),
}
QUICK = ("rope D128 131072", "rope D64 yarn", "rope 1 token", "paged GQA", "paged MHA bs16", "rms 7168", "moe 256e8g", "matmul 4096")
TRIALS: dict[str, Callable[[Case, Dice], dict[str, Callable[[], Trial]]]] = {
    "rope": devices.rope_trials,
    "paged_attention": devices.paged_trials,
    "prefill_attention": devices_more.prefill_trials,
    "rms_norm": devices_more.rms_trials,
    "moe_gating": devices_more.moe_trials,
    "matmul": devices_more.matmul_trials,
    "topk": devices_more.topk_trials,
}


def random_cases(count: int, seed: int) -> dict[str, tuple[str, dict[str, Value]]]:
    """New cases of RoPE and paged attention, of sizes that nobody chose."""
    dice, out = Dice(seed), {}
    for number in range(count):
        dim = int(dice.one([64, 80, 96, 128, 256]))  # type: ignore[call-overload]
        sizes: dict[str, Value] = {"seq_len": dice.number(66000, 400000), "tokens": dice.number(8, 90), "heads": dice.number(1, 9), "head_dim": dim}
        sizes |= {"base": float(dice.one([1e4, 5e5, 1e6])), "mode": str(dice.one(["half", "interleave"]))}  # type: ignore[arg-type]
        out[f"rope random {number}"] = ("rope", sizes)
        kv = int(dice.one([1, 2, 4]))  # type: ignore[call-overload]
        more: dict[str, Value] = {"seq_len": dice.number(200, 3000), "requests": dice.number(1, 6), "kv_heads": kv, "heads": kv * dice.number(1, 5)}
        more |= {"head_dim": int(dice.one([64, 96, 128])), "block_size": int(dice.one([16, 32, 64, 128]))}  # type: ignore[call-overload]
        out[f"paged random {number}"] = ("paged_attention", more)
    return out


def made(kernel: Kernel, sizes: dict[str, Value], dtype: str, seed: int) -> Case:
    sizes = dict(sizes, dtype=dtype)
    last = sizes.pop("last", False)
    case = kernel.make(sizes, seed)
    if kernel.name == "rope":
        dice = Dice(seed)
        low = 65536 if last else 0
        positions = torch.tensor(sorted(dice.number(low, int(sizes["seq_len"])) for _ in range(len(case["positions"]))))
        case = case.having({"positions": positions})
    if kernel.name == "paged_attention":
        noise = torch.Generator().manual_seed(seed + 1)
        for name in ("key_cache", "value_cache"):
            if name in case.tensors:
                before = torch.randn(case[name].shape, generator=noise).to(case[name].dtype)
                case = case.having({f"previous_{name}": before})
    return kernel.check(case)


def outcome(kernel: Kernel, case: Case, trial: Trial) -> tuple[str, Verdict]:
    verdict = judge(kernel, case, trial.observed, "trial", Suspect(trial.name, {k: v for k, v in trial.params.items() if not isinstance(v, bool)}))
    noise = verdict.noise or 1.0
    effect = kernel.compare(trial.observed.to(F64), kernel.clean(case, 1).to(F64), None if (t := kernel.tolerance(case)) is None else 1 / t) / noise
    names = [fit.name for fit in verdict.faults]
    if verdict.status in ("refuted", "not-testable"):
        if effect > CLEAN * 1.5:
            return "called clean", verdict
        return ("not testable" if verdict.status == "not-testable" else "no effect, called refuted"), verdict
    if verdict.status == "unknown":
        return "unknown", verdict
    if trial.name not in names:
        if verdict.status == "precision" and trial.name in ("accumulation", "table-dtype", "square-dtype"):
            return "set", verdict  # the class is named, though not which
        return "WRONG", verdict
    if len(names) > 1:
        return "set" if len(names) <= 3 else "WRONG", verdict
    fit = verdict.faults[0]
    settled = all(str(fit.params.get(key)) == str(value) for key, value in trial.params.items())
    return ("exact" if settled or not trial.exact_params or verdict.status == "precision" else "set"), verdict


def outside(kernel: Kernel, case: Case, seed: int) -> dict[str, torch.Tensor]:
    """Faults that no model of the library describes."""
    g = torch.Generator().manual_seed(seed)
    clean = kernel.clean(case, 5).to(F64)
    n, many = clean.numel(), clean.shape[0] > 1
    flat = clean.clone().flatten()
    flat[torch.randperm(n, generator=g)[: max(1, n // 50)]] *= -1
    mixed = clean.clone()
    mixed[..., ::7] = mixed[..., ::7].flip(0) if many else mixed[..., ::7].flip(-1)
    return {
        "signs": flat.view_as(clean),
        "rows rolled": clean.roll(1, 0) if many else clean.flip(-1),
        "gain 1.05": clean * 1.05,
        "random": torch.randn(clean.shape, generator=g, dtype=F64) * clean.std(),
        "zeros": torch.zeros_like(clean),
        "columns mixed": mixed,
    }


def run(cases: dict[str, tuple[str, dict[str, Value]]], dtypes: tuple[str, ...], trials: int, say: Callable[[str], None]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for label, (name, sizes) in cases.items():
        kernel = kernel_named(name)
        for dtype in dtypes:
            started, counts = time.monotonic(), Counter[str]()
            for number in range(trials):
                case = made(kernel, sizes, dtype, 1000 + 17 * number)
                for variant in (4, 5, 6, 7):
                    verdict = judge(kernel, case, kernel.clean(case, variant), "clean")
                    if verdict.status not in ("refuted", "not-testable"):
                        counts["FALSE ALARM"] += 1
                        say(f"    false alarm: {verdict.status} {verdict.reason.en}")
                    counts["clean"] += 1
                for fault, make in TRIALS[name](case, Dice(50 + number)).items():
                    trial = make()
                    what, verdict = outcome(kernel, case, trial)
                    counts[what] += 1
                    if what not in ("exact", "not testable"):
                        found = [(fit.name, fit.params) for fit in verdict.faults]
                        say(f"    {fault}: {what}: {trial.name} {trial.params} -> {verdict.status} {verdict.score} {found}")
                for fault, observed in outside(kernel, case, number).items():
                    verdict = judge(kernel, case, observed, "outside")
                    counts["outside"] += 1
                    if verdict.status != "unknown":
                        counts["OUTSIDE NAMED"] += 1
                        say(f"    outside the library, {fault}: {verdict.status} {[(f.name, f.params) for f in verdict.faults]}")
            total += counts
            say(f"{label:<20} {dtype:<9} {dict(counts)}  {time.monotonic() - started:.1f} s")
    return dict(total)


def summary(total: dict[str, int]) -> tuple[list[str], bool]:
    effective = sum(total.get(key, 0) for key in ("exact", "set", "unknown", "WRONG", "called clean"))
    hit = total.get("exact", 0) + total.get("set", 0)
    share = hit / max(1, effective)
    silent = total.get("not testable", 0) + total.get("no effect, called refuted", 0)
    lines = [
        f"faults that change the output   {effective}: exact {total.get('exact', 0)}, in a set {total.get('set', 0)} ({100 * share:.1f} %), "
        f"unknown {total.get('unknown', 0)}, called clean {total.get('called clean', 0)}, wrong {total.get('WRONG', 0)}",
        f"faults that do not              {silent}: not testable {total.get('not testable', 0)}",
        f"sound kernels                   {total.get('clean', 0)}: false alarms {total.get('FALSE ALARM', 0)}",
        f"faults outside the library      {total.get('outside', 0)}: named {total.get('OUTSIDE NAMED', 0)}",
    ]
    bad = total.get("WRONG", 0) + total.get("FALSE ALARM", 0) + total.get("OUTSIDE NAMED", 0) + total.get("no effect, called refuted", 0)
    return lines, share >= 0.96 and bad == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Confusion experiment of the replay's referee.")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--random", type=int, default=-1, help="new random cases of RoPE and of paged attention")
    given = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {name: CASES[name] for name in (CASES if given.full or given.only else QUICK)}
    more = given.random if given.random >= 0 else 6 if given.full else 1
    chosen |= random_cases(more, 77)
    chosen = {name: one for name, one in chosen.items() if given.only in name}
    total = run(chosen, ("float16", "bfloat16"), given.trials or (2 if given.full else 1), print)
    lines, fine = summary(total)
    print("\n".join(lines))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
