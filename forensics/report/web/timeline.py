"""The timeline as a drawing: a lane for each node and source, bars of error lines, a flag where a diagnosis begins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from forensics.report.figures import EPOCH, Clock, number, offset_of, zone_name
from forensics.report.strings import LANGUAGES
from forensics.report.web.markup import Html, el, t, worded
from forensics.result import Lane, Timeline, Triage, Window
from forensics.safe_text import clip, safe
from rules.model import Diagnosis

LEFT, PLOT, RIGHT = 196, 830, 58
"""Widths of the names, of the plot and of the totals."""
TOP, ROW, BELOW = 26, 26, 26
SECOND = 1_000_000
TICKS = (
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * 60 * SECOND for n in (1, 2, 5, 10, 15, 30)), *(n * 3600 * SECOND for n in (1, 2, 3, 6, 12)),
    *(n * 86_400 * SECOND for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)),
)  # fmt: skip
FLAGS = 3


def section(triage: Triage, clock: Clock) -> Html:
    """The drawings of all windows with the choice between them; empty where no error line has a time."""
    line = triage.timeline
    if not line.windows or not line.lanes:
        return Html("")
    whole, *near = line.windows
    parts: list[Html] = []
    if near:
        parts += [
            el("input", type="radio", name="window", id="near", cls="switch", checked=True),
            el("input", type="radio", name="window", id="whole", cls="switch"),
            el("div", el("label", t("page.window.near"), for_="near"), el("label", t("page.window.whole"), for_="whole"), cls="choice", role="group"),
            el("div", _drawn(near[0], 1, line, triage, clock), cls="draw near", tabindex=0),
        ]
    parts.append(el("div", _drawn(whole, 0, line, triage, clock), cls="draw whole" if near else "draw only", tabindex=0))
    if line.left_out:
        parts.append(el("p", t("page.lane-more", n=line.left_out), cls="soft small"))
    head = el("div", el("h2", t("page.timeline")), el("span", zone_name(clock.zone), cls="soft small"), cls="head")
    return el("section", head, el("p", t("page.timeline-lead"), cls="lead"), parts, id="timeline", cls="card pad timeline")


def _drawn(window: Window, which: int, line: Timeline, triage: Triage, clock: Clock) -> Html:
    height = TOP + len(line.lanes) * ROW + BELOW
    most = max((count for lane in line.lanes for count in lane.bars[which].values()), default=1)
    label = worded("page.lane-alt", n=len(line.lanes))
    named = any(lane.node for lane in line.lanes)
    width = LEFT + PLOT + RIGHT
    parts = [
        *(el("rect", x=0, y=TOP + n * ROW, width=width, height=ROW, cls="lane") for n in range(0, len(line.lanes), 2)),
        *_grid(window, height, clock),
        *(_lane(lane, n, which, window, most, clock, named) for n, lane in enumerate(line.lanes)),
        *_flags(triage.diagnoses, window, height, clock),
    ]
    return el(
        "svg", el("title", f"{label.en} / {label.zh}"), parts, viewBox=f"0 0 {width} {height}", width=width, height=height, role="img", cls="wide"
    )


def _x(window: Window, ts: int) -> float:
    share = (ts - window.start) / (window.step * window.bins)
    return LEFT + PLOT * min(1.0, max(0.0, share))


def _inside(window: Window, ts: int) -> bool:
    return 0 <= ts - window.start <= window.step * window.bins


def _grid(window: Window, height: int, clock: Clock) -> list[Html]:
    """Lines and labels at round times of the report's zone."""
    length = window.step * window.bins
    step = next((tick for tick in TICKS if length / tick <= 7), TICKS[-1])
    shift = offset_of(clock.zone) * SECOND
    first = -(-(window.start + shift) // step) * step - shift
    out = []
    for ts in range(first, window.start + length, step):
        x = _x(window, ts)
        out.append(el("line", x1=x, y1=TOP, x2=x, y2=height - BELOW + 4, cls="grid"))
        out.append(el("text", _tick(ts + shift, step), x=x, y=height - 8, text_anchor="middle", cls="dim"))
    return out


def _tick(local: int, step: int) -> str:
    try:
        when = EPOCH + timedelta(microseconds=local)
    except OverflowError:
        return ""
    if step >= 86_400 * SECOND:
        return when.strftime("%Y-%m-%d")
    if step >= 3600 * SECOND:
        return when.strftime("%m-%d %H:%M")
    if step >= 60 * SECOND:
        return when.strftime("%H:%M")
    return when.strftime("%H:%M:%S") + (f".{when.microsecond // 1000:03d}" if step < SECOND else "")


def _lane(lane: Lane, place: int, which: int, window: Window, most: int, clock: Clock, named: bool) -> Html:
    top = TOP + place * ROW
    middle = top + ROW - 5
    if named:
        node = clip(safe(lane.node), 19) if lane.node else t("page.no-node", "tspan")
        parts = [el("text", el("title", lane.node), node, x=10, y=top + 17)]
        parts.append(el("text", lane.source, x=LEFT - 10, y=top + 17, text_anchor="end", cls="dim"))
    else:
        parts = [el("text", lane.source, x=10, y=top + 17)]
    if lane.first is not None and lane.last is not None and lane.last >= window.start and lane.first <= window.start + window.step * window.bins:
        parts.append(
            el("line", x1=_x(window, lane.first), y1=middle, x2=max(_x(window, lane.last), _x(window, lane.first) + 2), y2=middle, cls="life")
        )
    wide = PLOT / window.bins
    for at, count in sorted(lane.bars[which].items()):
        tall = max(3.0, (ROW - 7) * (count / most) ** 0.5)
        words = worded("page.bar", time=clock.time(window.start + at * window.step), n=count)
        parts.append(
            el(
                "rect",
                el("title", f"{words.en} / {words.zh}"),
                x=LEFT + at * wide,
                y=middle - tall,
                width=max(2.5, wide - 0.6),
                height=tall,
                cls="err",
            )
        )
    undated = max(0, lane.errors - sum(lane.bars[0].values()))
    words = worded("page.undated", n=undated)
    if undated and undated == lane.errors:
        parts += [el("text", words.of(lang), x=LEFT + PLOT / 2, y=top + 17, text_anchor="middle", cls="dim", lang=lang) for lang in LANGUAGES]
    hint = el("title", f"{words.en} / {words.zh}") if undated else None
    total = number(lane.errors, "en") if lane.errors else "·"
    parts.append(el("text", hint, total, x=LEFT + PLOT + RIGHT - 10, y=top + 17, text_anchor="end", cls=None if lane.errors else "dim"))
    return el("g", parts)


def _flags(diagnoses: Sequence[Diagnosis], window: Window, height: int, clock: Clock) -> list[Html]:
    out, taken = [], list[float]()
    for diagnosis in diagnoses[:FLAGS]:
        first = diagnosis.finding.first
        if first is None or not _inside(window, first):
            continue
        x = _x(window, first)
        shift = 0
        while any(abs(x + shift - other) < 18 for other in taken):
            shift += 18
        taken.append(x + shift)
        words = f"{diagnosis.rank}. {diagnosis.title.en} / {diagnosis.title.zh} · {clock.time(first)}"
        out.append(
            el(
                "g", el("title", words), el("line", x1=x, y1=20, x2=x, y2=height - BELOW + 4, cls="flag-line"),
                el("rect", x=x + shift - 8, y=3, width=16, height=17, rx=4, cls="flag"),
                el("text", str(diagnosis.rank), x=x + shift, y=15.5, text_anchor="middle", cls="flag-word"),
            )
        )  # fmt: skip
    return out
