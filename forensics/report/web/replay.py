"""The verdict of a replay: what was measured, and where along the output the error lies."""

from __future__ import annotations

import math

from forensics.report.web.markup import Html, both, el, join, t, worded
from replay.result import STATUS_WORDS, ErrorPlot, Verdict
from rules.model import Text

LEFT, PLOT, RIGHT, TOP, HEIGHT, BELOW = 64, 960, 20, 22, 150, 40
LOOKS = {"confirmed": "bad", "refuted": "good", "precision": "warn", "unknown": "warn"}
TICKS = 6


def section(verdict: Verdict) -> Html:
    """As a part of the body of a diagnosis."""
    words = STATUS_WORDS.get(verdict.status)
    status = both(Text(words.en, words.zh)) if words is not None else Html("")
    head = el("div", el("h3", t("page.replay")), el("span", status, cls=f"badge {LOOKS.get(verdict.status, 'plain')}"), cls="head")
    about = [verdict.kernel, verdict.subject, verdict.dtype, verdict.shape]
    parts: list[Html | None] = [
        head,
        el("p", both(Text(verdict.reason.en, verdict.reason.zh))),
        el("p", el("code", " · ".join(part for part in about if part)), _scores(verdict), cls="soft small"),
    ]
    if verdict.faults:
        fits = [el("li", both(Text(fit.title.en, fit.title.zh)), " ", el("code", _params(fit.params, fit.name))) for fit in verdict.faults]
        parts.append(el("div", el("h4", t("page.faults"), cls="small soft"), el("ul", fits, cls="list")))
    if verdict.violations:
        broken = [
            el(
                "li",
                el("code", one.operator),
                f": {one.constraint}; ",
                el("code", one.found),
                el("b", " · ", t("page.silent")) if one.silent else None,
            )
            for one in verdict.violations
        ]
        parts.append(el("div", el("h4", t("page.violations"), cls="small soft"), el("ul", broken, cls="list")))
    if verdict.plot is not None and verdict.plot.bins:
        parts.append(plot(verdict.plot))
    parts += [el("p", both(Text(note.en, note.zh)), cls="note") for note in verdict.notes]
    if verdict.command:
        parts.append(el("code", verdict.command, cls="command"))
    return el("div", el("div", parts, cls="stack"), cls="part")


def _scores(verdict: Verdict) -> Html | None:
    if verdict.score is None or not math.isfinite(verdict.score):
        return None
    return join((" · ", t("page.score", score=f"{verdict.score:.3g}")))


def _params(params: dict[str, int | float | str], name: str) -> str:
    return name + (f"({', '.join(f'{key}={value}' for key, value in params.items())})" if params else "")


def plot(shown: ErrorPlot) -> Html:
    """Error over place, the error on a logarithmic scale, with the limit up to which a kernel counts as clean."""
    places = [one for one in shown.bins if math.isfinite(one.error)]
    if not places:
        return Html("")
    first, last = places[0].first, max(one.last for one in places) + 1
    low, high = _decades([one.error for one in places], shown.limit)

    def x(place: float) -> float:
        return LEFT + PLOT * (place - first) / max(1, last - first)

    def y(error: float) -> float:
        share = (math.log10(max(error, 10.0**low)) - low) / (high - low)
        return TOP + HEIGHT * (1 - min(1.0, max(0.0, share)))

    parts: list[Html] = []
    for decade in range(low, high + 1):
        parts.append(el("line", x1=LEFT, x2=LEFT + PLOT, y1=y(10.0**decade), y2=y(10.0**decade), cls="grid"))
        parts.append(el("text", f"{10.0**decade:g}", x=LEFT - 8, y=y(10.0**decade) + 4, text_anchor="end", cls="dim"))
    for one in places:
        words = worded("page.plot-bin", first=one.first, last=one.last, error=f"{one.error:.3g}", worst=f"{one.worst:.3g}")
        tall = max(1.5, TOP + HEIGHT - y(one.error))
        wide = max(1.0, x(one.last + 1) - x(one.first))
        look = "wrong" if one.error > shown.limit else "fill"
        name = el("title", f"{words.en} / {words.zh}")
        parts.append(el("rect", name, x=x(one.first), y=TOP + HEIGHT - tall, width=wide, height=tall, cls=look))
    parts.append(el("line", x1=LEFT, x2=LEFT + PLOT, y1=y(shown.limit), y2=y(shown.limit), cls="limit"))
    if shown.boundary is not None and first <= shown.boundary <= last:
        at = x(shown.boundary)
        parts.append(el("line", x1=at, x2=at, y1=TOP - 8, y2=TOP + HEIGHT, cls="flag-line"))
        left = at > LEFT + PLOT - 80
        parts.append(el("text", str(shown.boundary), x=at + (-5 if left else 5), y=TOP - 6, text_anchor="end" if left else "start"))
    step = _round_step(last - first)
    for place in range(-(-first // step) * step, last, step):
        parts.append(el("text", str(place), x=x(place), y=TOP + HEIGHT + 16, text_anchor="middle", cls="dim"))
    parts.append(_both_lines(f"page.axis.{shown.axis}", LEFT + PLOT / 2, TOP + HEIGHT + 34, "middle"))
    label = worded("page.plot-alt")
    width, height = LEFT + PLOT + RIGHT, TOP + HEIGHT + BELOW
    drawing = el(
        "svg", el("title", f"{label.en} / {label.zh}"), parts, viewBox=f"0 0 {width} {height}", width=width, height=height, role="img", cls="wide"
    )
    sample = el("svg", el("line", x1=0, y1=4, x2=30, y2=4, cls="limit"), aria_hidden="true")
    legend = el("div", el("span", sample, t("page.plot-limit")), cls="legend")
    return join((el("div", drawing, cls="draw", tabindex=0, role="group", aria_label=f"{label.en} / {label.zh}"), legend))


def _round_step(length: int) -> int:
    """A step of 1, 2 or 5 times a power of ten that cuts `length` into at most TICKS."""
    power = 1
    while power * 10 * TICKS < length:
        power *= 10
    return next((power * n for n in (1, 2, 5) if power * n * TICKS >= length), power * 10)


def _decades(errors: list[float], limit: float) -> tuple[int, int]:
    """Powers of ten that hold all errors and the limit."""
    positive = [error for error in (*errors, limit) if error > 0 and math.isfinite(error)] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    return max(low, high - 9), max(high, low + 1)


def _both_lines(key: str, x: float, y: float, anchor: str) -> Html:
    words = worded(key)
    return join(el("text", words.of(lang), x=x, y=y, text_anchor=anchor, cls="dim", lang=lang) for lang in ("en", "zh"))
