"""The referee: an observed output against the reference and against every fault model, in units of what healthy kernels differ by.

clean        distance from the reference at most CLEAN noise units
confirmed    not clean, and one model (or a few that these inputs cannot tell apart) is within CLEAN units
refuted      clean, and the suspected fault would have shown: its prediction is more than VISIBLE units from the reference
not-testable clean, and it would not have shown
precision    not clean, no model fits, and the error is that of rounding: small, spread over all rows and columns, without direction
unknown      anything else
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec
import torch
from torch import Tensor

from replay import constraints
from replay.faults.words import title
from replay.kernels.base import Fault, Kernel, Sample
from replay.plot import error_plot
from replay.result import FaultFit, Verdict, Words
from replay.score import row_errors
from replay.tensors import F64, UNIT_ROUNDOFF, Case, Value, name_of

CLEAN, VISIBLE, ALIKE = 2.0, 3.0, 1.6
FEW = 3
"""Models that may share a verdict."""
ROUNDING, NARROW_SUMS = 10.0, 60.0
"""Noise units up to which an error can be rounding: of any kind; of running sums in a narrow type, if such sums give that much."""
VARIANTS = (0, 1, 2, 3)
ROW = 10.0
"""Noise units from which a single row is wrong, whatever the mean of all says."""


class Suspect(msgspec.Struct, frozen=True):
    """The fault a diagnosis suspects; of its parameters as many as are known."""

    name: str
    params: dict[str, int | float | str] = {}


def judge(kernel: Kernel, case: Case, observed: Tensor, subject: str, suspect: Suspect | None = None) -> Verdict:
    """The verdict on an observed output, shaped like the reference. `case` has gone through `kernel.check`."""
    started = time.monotonic()
    verdict = _begun(kernel, case, subject)
    broken, remarks = constraints.broken(kernel, case)
    verdict.violations = broken + remarks
    if broken:
        verdict.status, verdict.reason = "confirmed", _by_inspection(broken)
        return verdict
    expected = kernel.reference(case)
    if observed.shape != expected.shape:
        verdict.reason = Words(
            f"The output has the shape {list(observed.shape)}; these inputs give {list(expected.shape)}.",
            f"输出形状为 {list(observed.shape)}，按输入应为 {list(expected.shape)}。",
        )
        return verdict
    observed = observed.to(F64) if observed.is_floating_point() else observed
    weights = kernel.tolerance(case)
    weights = None if weights is None else 1 / weights
    squares = kernel.row_errors(observed, expected, weights)
    part = kernel.sample(case, squares)
    judgement = _Judgement(kernel, case, observed, expected, squares, part)
    verdict.noise = _short(judgement.noise)
    verdict.score = _short(judgement.distance)
    verdict.plot = error_plot(kernel.places(case), squares, judgement.noise, kernel.axis, CLEAN)
    if judgement.clean:
        _settle_clean(verdict, judgement, suspect)
    else:
        _settle_wrong(verdict, judgement, suspect)
    verdict.tried = judgement.tried
    if not part.whole:
        rows = part.pick(squares).numel()
        verdict.notes.append(
            Words(
                f"Fault models were compared on {rows} of {squares.numel()} rows; the reference on all.",
                f"故障模型在 {squares.numel()} 行中的 {rows} 行上比较，参考结果覆盖全部行。",
            )
        )
    verdict.seconds = time.monotonic() - started
    return verdict


def inspect(kernel: Kernel, case: Case, subject: str = "") -> Verdict | None:
    """A verdict without any output: an argument that the kernel does not check is out of bounds, or, where the operator is named, a documented
    constraint of it is broken. None where nothing is."""
    broken, remarks = constraints.broken(kernel, case)
    certain = broken or [one for one in remarks if one.message or one.silent]
    if not certain:
        return None
    verdict = _begun(kernel, case, subject)
    verdict.status, verdict.violations = "confirmed", broken + remarks
    verdict.reason = _by_inspection(broken) if broken else _by_documentation(certain[0])
    return verdict


def _begun(kernel: Kernel, case: Case, subject: str) -> Verdict:
    main = next(iter(case.tensors.values()))
    shape = " ".join(f"{name}={value}" for name, value in kernel.sizes(case).items())
    return Verdict(kernel.name, "unknown", Words("", ""), subject, name_of(main.dtype), shape)


def _by_inspection(broken: list[constraints.Violation]) -> Words:
    first = broken[0]
    return Words(
        f"An argument that {first.operator} does not check is out of bounds: {first.found} breaks {first.constraint}. Nothing had to be run.",
        f"{first.operator} 不校验的参数越界：{first.found}，不满足 {first.constraint}，无需执行即可确认。",
    )


def _by_documentation(one: constraints.Violation) -> Words:
    said = said_zh = ""
    if one.message:
        message = one.message.rstrip(".")
        said, said_zh = f"; it answers: {message}", f"；算子报错：{message}"
    elif one.silent:
        said, said_zh = "; nothing checks it, and wrong results follow without a message", "；设备不校验，会静默产生错误结果"
    return Words(
        f"The arguments break a documented constraint of {one.operator}: {one.constraint} ({one.found}){said}.",
        f"参数违反 {one.operator} 的文档约束：{one.constraint}（{one.found}）{said_zh}。",
    )


class _Judgement:
    """All distances that a verdict rests on."""

    def __init__(self, kernel: Kernel, case: Case, observed: Tensor, expected: Tensor, squares: Tensor, part: Sample) -> None:
        self.kernel, self.whole, self.part = kernel, case, part
        self.case = part.case
        self.observed = part.pick(observed)
        self.expected = expected if part.whole else kernel.reference(part.case)
        weights = kernel.tolerance(part.case)
        self.weights = None if weights is None else 1 / weights
        main = next(iter(case.tensors.values()))
        floor = UNIT_ROUNDOFF.get(kernel.dtype(case, main.dtype), 2.0**-24) / 4
        self.runs = [kernel.clean(part.case, variant).to(F64) for variant in VARIANTS]
        self.noise = max(floor, *(kernel.compare(run, self.expected, self.weights) for run in self.runs))
        self.rms = float(squares.mean().sqrt())
        whole = self.rms / self.noise
        self.near = kernel.compare(self.observed, self.expected, self.weights) / self.noise
        # one wrong row of very many is lost in the mean, and is wrong all the same
        worst = float(squares.max().sqrt()) / self.noise if squares.numel() else 0.0
        usual = max(float(kernel.row_errors(run, self.expected, self.weights).max().sqrt()) for run in self.runs) / self.noise
        self.clean = whole <= CLEAN and worst <= max(ROW, 3 * usual)
        self.distance = whole if self.clean or whole > CLEAN else max(whole, self.near)
        self.tried = 0

    def faults(self) -> list[Fault]:
        return self.kernel.faults(self.case, None if self.clean else self.observed)

    def to_observed(self, fault: Fault) -> float:
        self.tried += 1
        return self.kernel.compare(self.observed, fault.predict(), self.weights) / self.noise

    def to_expected(self, fault: Fault) -> float:
        self.tried += 1
        return self.kernel.compare(fault.predict(), self.expected, self.weights) / self.noise


# ---------------------------------------------------------------- a clean output


def _settle_clean(verdict: Verdict, judgement: _Judgement, suspect: Suspect | None) -> None:
    wanted = [suspect] if suspect is not None else [Suspect(name, params) for name, params in judgement.kernel.suspects]
    faults = judgement.faults()
    shown: list[Words] = []
    hidden: list[Words] = []
    for one in wanted:
        fault = judgement.kernel.suspected(judgement.case, one.name, one.params) or _meant(faults, one)
        visible = fault is not None and judgement.to_expected(fault) > VISIBLE
        words = title(one.name, fault.params if fault is not None else one.params)
        (shown if visible else hidden).append(words)
    units = f"{verdict.score:.2g}"
    if hidden and (suspect is not None or not shown):
        verdict.status = "not-testable"
        verdict.reason = Words(
            f"The output is that of a sound kernel ({units} noise units), but on these inputs so would be this fault: {_list(hidden, 'en')}.",
            f"输出与正确结果一致（{units} 个噪声单位），但在这组输入上以下故障也不会显现：{_list(hidden, 'zh')}。",
        )
        return
    if hidden:
        verdict.notes.append(Words(f"These inputs could not have shown: {_list(hidden, 'en')}.", f"这组输入无法显现：{_list(hidden, 'zh')}。"))
    verdict.status = "refuted"
    verdict.reason = Words(
        f"The output is that of a sound kernel ({units} noise units, up to {CLEAN:g} is clean), on inputs that would have shown this fault: "
        f"{_list(shown, 'en')}.",
        f"输出与正确结果一致（{units} 个噪声单位，不超过 {CLEAN:g} 视为正常），而这组输入足以显现以下故障：{_list(shown, 'zh')}。",
    )


def _meant(faults: list[Fault], suspect: Suspect) -> Fault | None:
    """The model of a suspected fault: of those that fit what is known of its parameters, the likeliest."""
    fitting = [f for f in faults if f.name == suspect.name and all(_same(f.params.get(key), value) for key, value in suspect.params.items())]
    return max(fitting, key=lambda fault: fault.prior, default=None)


def _same(one: Value | None, other: Value) -> bool:
    return one == other or str(one) == str(other)


def _list(words: list[Words], lang: str) -> str:
    return ("；" if lang == "zh" else "; ").join(one.of(lang) for one in words)


# ---------------------------------------------------------------- a wrong output


def _settle_wrong(verdict: Verdict, judgement: _Judgement, suspect: Suspect | None) -> None:
    rows = _nan_rows(judgement)
    faults = judgement.faults() if rows is None else [rows, *judgement.faults()]
    scored = [(judgement.to_observed(fault), fault) for fault in faults if not fault.precision]
    if judgement.near <= NARROW_SUMS and min((score for score, _ in scored), default=CLEAN + 1) > CLEAN:
        scored += [(judgement.to_observed(fault), fault) for fault in faults if fault.precision]  # they cost most, and are small
    fits = _fits(scored)
    if fits and len({fault.name for _, fault in fits}) <= FEW:
        verdict.faults = [FaultFit(f.name, _plain(f.params), _short(score), title(f.name, f.params)) for score, f in fits]
        verdict.status = "confirmed"
        verdict.reason = _confirmed(verdict, suspect)
        return
    if (sums := _rounding(judgement, scored)) is not None:
        verdict.status = "precision"
        verdict.faults = [FaultFit(f.name, _plain(f.params), _short(score), title(f.name, f.params)) for score, f in sums]
        known = " ".join(f"({fit.title.en})" for fit in verdict.faults[:1])
        known_zh = "".join(f"（{fit.title.zh}）" for fit in verdict.faults[:1])
        verdict.reason = Words(
            f"No structural fault fits. The error is {verdict.score:.2g} noise units, without direction and spread over all rows: "
            f"a path of low precision {known}".rstrip()
            + ".",
            f"没有结构性故障与之吻合。误差为 {verdict.score:.2g} 个噪声单位，无方向性且遍布所有行：属低精度计算路径{known_zh}。",
        )
        return
    verdict.status = "unknown"
    verdict.reason = _unknown(verdict, judgement, fits)


def _fits(scored: list[tuple[float, Fault]]) -> list[tuple[float, Fault]]:
    """Models that reproduce the output, best first: of each name the best parameter."""
    ranked = sorted(scored, key=lambda pair: pair[0])
    if not ranked or ranked[0][0] > CLEAN:
        return []
    within = [pair for pair in ranked if pair[0] <= max(ALIKE * ranked[0][0], CLEAN)]
    # what fits equally well is ordered by how likely it is
    within.sort(key=lambda pair: (-pair[1].prior, pair[0]))
    by_name: dict[str, tuple[float, Fault]] = {}
    for pair in within:
        by_name.setdefault(pair[1].name, pair)
    fits = list(by_name.values())
    if len(fits) > FEW:
        likely = max(fault.prior for _, fault in fits)
        fits = [pair for pair in fits if pair[1].prior >= 0.85 * likely]
    return fits


def _nan_rows(judgement: _Judgement) -> Fault | None:
    """Rows that are not finite, the others being right."""
    bad = ~torch.isfinite(judgement.observed).flatten(0, -2).all(-1)
    if not bool(bad.any()) or not judgement.observed.is_floating_point():
        return None
    numbers = bad.nonzero().flatten()
    broken = judgement.expected.clone()
    broken[~torch.isfinite(judgement.observed)] = float("nan")
    return Fault("nan-rows", {"first": int(numbers[0]), "rows": len(numbers)}, lambda: broken, prior=0.9)


def _confirmed(verdict: Verdict, suspect: Suspect | None) -> Words:
    names, names_zh = _list([fit.title for fit in verdict.faults], "en"), _list([fit.title for fit in verdict.faults], "zh")
    head = Words(
        f"The reference is excluded ({verdict.score:.3g} noise units), and the output is what follows if {names}",
        f"已排除正确结果（{verdict.score:.3g} 个噪声单位），输出与以下故障的预测一致：{names_zh}",
    )
    if len(verdict.faults) > 1:
        head = Words(
            f"The reference is excluded ({verdict.score:.3g} noise units), and the output is what follows if one of these holds, which these inputs "
            f"cannot tell apart: {names}",
            f"已排除正确结果（{verdict.score:.3g} 个噪声单位），输出与以下故障之一的预测一致（这组输入无法区分）：{names_zh}",
        )
    if suspect is not None and suspect.name not in {fit.name for fit in verdict.faults}:
        other = title(suspect.name, suspect.params)
        return Words(f"{head.en}; not the suspected fault ({other.en}).", f"{head.zh}；并非所怀疑的故障（{other.zh}）。")
    return Words(f"{head.en} ({verdict.faults[0].score:.2g} noise units).", f"{head.zh}（{verdict.faults[0].score:.2g} 个噪声单位）。")


def _rounding(judgement: _Judgement, scored: list[tuple[float, Fault]]) -> list[tuple[float, Fault]] | None:
    """Whether the error is one of rounding; then the narrow sums that would give about as much of it (maybe none). None where it is not."""
    observed, expected, distance = judgement.observed, judgement.expected, judgement.near
    if not observed.is_floating_point() or distance > NARROW_SUMS or not torch.isfinite(observed).all():
        return None
    size = expected.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-30)
    error, size = (observed - expected) / size, expected / size
    rows = error.flatten(0, -2).square().mean(-1).sqrt()
    total = float(error.square().mean().sqrt())
    if total == 0 or len(rows) == 0:
        return None
    flat, reference = error.flatten(), size.flatten()
    gain = float(flat @ reference / (reference @ reference).clamp(min=1e-30))
    left = float((flat - gain * reference).square().mean().sqrt())
    even = float(rows.median()) > 0.4 * total and float(rows.quantile(0.1)) > 0.15 * total
    columns = error.flatten(0, -2).square().mean(0).sqrt()
    even_columns = observed.shape[-1] < 8 or len(rows) < 4 or float(columns.median()) > 0.4 * total
    tails = float(flat.pow(4).mean()) / total**4
    aimless = abs(float(flat.mean())) < 0.3 * total and left > 0.9 * total
    if not (even and even_columns and tails < 40 and aimless):
        return None
    sums = []
    best: dict[str, tuple[float, Fault]] = {}
    for _, fault in scored:
        if fault.precision:
            much = judgement.to_expected(fault)
            if 0.4 < distance / max(much, 1e-9) < 2.5:
                label = str(fault.params.get("dtype", ""))
                apart = abs(distance / much - 1)
                if label not in best or apart < best[label][0]:
                    best[label] = (apart, fault)
    sums = sorted(best.values(), key=lambda pair: pair[0])
    if distance > ROUNDING and not sums:
        return None
    return [(judgement.to_observed(fault), fault) for _, fault in sums]


def _unknown(verdict: Verdict, judgement: _Judgement, fits: list[tuple[float, Fault]]) -> Words:
    """What is known of an error that no model explains."""
    squares = row_errors(judgement.observed, judgement.expected, judgement.weights).sqrt() / judgement.noise
    wrong = squares > 4
    share = float(wrong.double().mean())
    english, chinese = [], []
    if fits:
        names = [title(fault.name, fault.params) for _, fault in fits]
        english.append(f"more models fit than can be told apart here: {_list(names[:6], 'en')}")
        chinese.append(f"有多个模型吻合而无法区分：{_list(names[:6], 'zh')}")
    english.append(f"{100 * share:.3g} % of the rows are wrong")
    chinese.append(f"{100 * share:.3g}% 的行出错")
    odd = int((~torch.isfinite(judgement.observed)).sum())
    if odd:
        english.append(f"{odd} values are not finite")
        chinese.append(f"{odd} 个值为 NaN 或 Inf")
    places = judgement.kernel.places(judgement.case)
    if bool(wrong.any()) and share < 0.999:
        only = places.expand(wrong.shape)[wrong].unique()
        listed = ", ".join(str(int(place)) for place in only[:6]) + (", ..." if len(only) > 6 else "")
        english.append(f"wrong at {judgement.kernel.axis} {listed}")
        chinese.append(f"出错位置（{judgement.kernel.axis}）：{listed}")
    if verdict.plot is not None and verdict.plot.boundary is not None:
        english.append(f"everything from {verdict.plot.axis} {verdict.plot.boundary} on is wrong")
        chinese.append(f"从 {verdict.plot.axis} {verdict.plot.boundary} 起全部出错")
    return Words(
        f"The output is wrong ({verdict.score:.3g} noise units) and no fault model explains it: {'; '.join(english)}.",
        f"输出错误（{verdict.score:.3g} 个噪声单位），没有故障模型能解释：{'；'.join(chinese)}。",
    )


def _plain(params: Mapping[str, Value]) -> dict[str, int | float | str]:
    return {key: value if isinstance(value, (int, float, str)) else str(value) for key, value in params.items()}


def _short(value: float) -> float:
    return float(f"{value:.4g}")
