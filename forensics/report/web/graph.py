"""The causal graph of a diagnosis as a drawing: causes on the left, what follows from them to the right."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from forensics.report.figures import Clock
from forensics.report.page import wrap
from forensics.report.strings import LANGUAGES
from forensics.report.web.markup import Html, both, el, join, t, worded
from forensics.report.words import chain
from forensics.result import Graph, Step, Triage
from forensics.safe_text import clip, safe
from rules.model import Diagnosis, Text

ALL, WIDE, GAP, SPACE, EDGE = 1060, 340, 48, 14, 12
"""Width of the drawing, at most of a box, between two columns, between two boxes of a column, around all; in pixels."""
CELL, ROWS, LINE = 7.2, 3, 16
"""Width of a letter, lines of a title, and the height of a line."""
COLUMNS, BOXES, TOGETHER = 4, 16, 3
"""What is further away, or further down, is in the list below the drawing; so many consequences of one step, from which nothing
follows, share a box."""
SHARED = 10
"""Steps that a shared box names."""


class Sizes(msgspec.Struct, frozen=True):
    """What depends on the number of columns: the width of a box, and the columns of text that it takes."""

    width: int
    cells: int

    @classmethod
    def of(cls, columns: int) -> Sizes:
        width = min(WIDE, (ALL - 2 * EDGE - (columns - 1) * GAP) // columns)
        return cls(width, int((width - 24) / CELL))

    def left(self, column: int) -> int:
        return EDGE + column * (self.width + GAP)


class Box(msgspec.Struct):
    """A step with its place, or several that share it."""

    step: Step | None
    column: int
    title: Text
    shared: list[Step] = []
    height: int = 0
    y: int = 0


def draw(diagnosis: Diagnosis, graph: Graph, clock: Clock) -> Html:
    """The drawing with its legend; empty where nothing follows."""
    boxes, edges, rest = _laid_out(diagnosis, graph)
    if len(boxes) < 2:
        return Html("")
    columns: list[list[Box]] = [[] for _ in range(max(box.column for box in boxes) + 1)]
    sizes = Sizes.of(len(columns))
    for box in boxes:
        box.height = _height(box, sizes.cells)
        columns[box.column].append(box)
    tall = max(sum(box.height + SPACE for box in column) - SPACE for column in columns)
    for column in columns:
        y = EDGE
        for box in column:
            box.y = y
            y += box.height + SPACE
    width, height = sizes.left(len(columns)) - GAP + EDGE, tall + 2 * EDGE
    label = worded("page.chain-alt", title=diagnosis.title, n=len(diagnosis.explains))
    ident = f"arrow-{diagnosis.rank}"
    arrow = el(
        "marker", el("path", d="M0 0L7 3.5L0 7z", cls="arrow"), id=ident, viewBox="0 0 7 7", refX=6.5, refY=3.5, markerWidth=7, markerHeight=7,
        orient="auto",
    )  # fmt: skip
    drawing = el(
        "svg", el("title", f"{label.en} / {label.zh}"), el("defs", arrow),
        [_edge(boxes[a], boxes[b], stated, ident, sizes) for a, b, stated in edges],
        [_box(box, clock, sizes) for box in boxes], viewBox=f"0 0 {width} {height}", width=width,
        height=height, role="img", cls="wide" if width > 760 else None,
    )  # fmt: skip
    kinds = {stated for _, _, stated in edges}
    legend = [
        el("span", el("svg", el("line", x1=0, y1=4, x2=30, y2=4, cls="edge" if stated else "edge inferred"), aria_hidden="true"), t(key))
        for stated, key in ((True, "page.stated"), (False, "page.inferred"))
        if stated in kinds
    ]
    if rest:
        legend.append(el("span", t("page.chain-more", n=rest)))
    return join((el("div", drawing, cls="draw", tabindex=0, role="group", aria_label=f"{label.en} / {label.zh}"), el("div", legend, cls="legend")))


def _laid_out(diagnosis: Diagnosis, graph: Graph) -> tuple[list[Box], list[tuple[int, int, bool]], int]:
    """Boxes, edges between them (cause, effect, stated) and how many steps are left out."""
    number = {step.rule: n for n, step in enumerate(graph.steps)}
    root = number.get(diagnosis.finding.rule.id)
    if root is None:
        return [], [], 0
    below: dict[int, dict[int, bool]] = {}
    for link in graph.links:
        below.setdefault(link.cause, {})[link.effect] = link.stated
    for rule in diagnosis.supported_by:  # other views of the same cause: what follows from them follows from it
        if rule in number and number[rule] != root:
            below.setdefault(root, {}).update({effect: stated for effect, stated in below.pop(number[rule], {}).items() if effect != root})
    columns = _columns(root, below)
    shared = _shared(columns, below)
    inside = {n for group in shared.values() for n in group}
    near = sorted((n for n in columns if columns[n] < COLUMNS and n not in inside), key=lambda n: (columns[n], n))
    kept = _ordered(near[:BOXES], columns, below)
    place = {n: at for at, n in enumerate(kept)}
    boxes = [Box(graph.steps[n], columns[n], diagnosis.title if n == root else graph.steps[n].title) for n in kept]
    edges = [(place[a], place[b], stated) for a in kept for b, stated in sorted(below.get(a, {}).items()) if b in place]
    drawn = len(kept)
    for cause, group in shared.items():
        if cause in place and columns[cause] + 1 < COLUMNS:
            title = worded("page.chain-shared", n=len(group))
            boxes.append(Box(None, columns[cause] + 1, title, [graph.steps[n] for n in group]))
            edges.append((place[cause], len(boxes) - 1, any(below[cause][n] for n in group)))
            drawn += len(group)
    return boxes, edges, len(columns) - drawn


def _shared(columns: dict[int, int], below: dict[int, dict[int, bool]]) -> dict[int, list[int]]:
    """Step -> its consequences from which nothing follows and that nothing else causes, where they are many."""
    causes: dict[int, int] = {}
    for at in columns:
        for effect in below.get(at, ()):
            causes[effect] = causes.get(effect, 0) + 1
    out = {at: [n for n in sorted(below.get(at, ())) if not below.get(n) and causes[n] == 1] for at in columns}
    return {at: group for at, group in out.items() if len(group) > TOGETHER}


def _columns(root: int, below: dict[int, dict[int, bool]]) -> dict[int, int]:
    """Step -> the most links it is away from the root (they close no circle)."""
    out = {root: 0}
    waiting = [root]
    while waiting:
        at = waiting.pop(0)
        for effect in below.get(at, ()):
            if out.get(effect, -1) < out[at] + 1:
                out[effect] = out[at] + 1
                waiting.append(effect)
    return out


def _ordered(kept: Sequence[int], columns: dict[int, int], below: dict[int, dict[int, bool]]) -> list[int]:
    """By column, and in it near the causes, so that few edges cross."""
    out: list[int] = []
    height: dict[int, float] = {}
    for column in sorted({columns[n] for n in kept}):
        here = [n for n in kept if columns[n] == column]
        causes = {n: [height[a] for a in out if n in below.get(a, ())] for n in here}
        here.sort(key=lambda n: (sum(causes[n]) / len(causes[n]) if causes[n] else 0.0, n))
        height.update({n: float(at) for at, n in enumerate(here)})
        out += here
    return out


def _height(box: Box, cells: int) -> int:
    if box.shared:
        return 36 + sum(_item_height(step, cells) for step in box.shared[:SHARED]) + (20 if len(box.shared) > SHARED else 0)
    return 49 + LINE * max(len(_title(box.title.of(lang), ROWS, cells)) for lang in LANGUAGES)


def _item_height(step: Step, cells: int) -> int:
    return 8 + LINE * max(len(_title(step.title.of(lang), 2, cells)) for lang in LANGUAGES)


def _title(words: str, most: int, cells: int) -> list[str]:
    rows = wrap(safe(words), cells)
    return rows if len(rows) <= most else [*rows[: most - 1], clip(rows[most - 1].rstrip() + " …", cells)]


def _box(box: Box, clock: Clock, sizes: Sizes) -> Html:
    x, step = sizes.left(box.column), box.step
    root = box.column == 0
    parts = [el("rect", x=x, y=box.y, width=sizes.width, height=box.height, rx=8, cls="box root" if root else "box")]
    parts += _shared_lines(box, x, sizes) if step is None else _lines(box, step, x, root, clock, sizes)
    return el("g", parts)


def _lines(box: Box, step: Step, x: int, root: bool, clock: Clock, sizes: Sizes) -> list[Html]:
    parts = []
    layer = worded(f"page.layer.{step.layer}")
    for lang in LANGUAGES:
        words = layer.of(lang) if not root else f"{worded('page.cause').of(lang)} · {layer.of(lang)}"
        parts.append(el("text", words, x=x + 12, y=box.y + 20, cls="root-word" if root else "dim", lang=lang))
        rows = [el("text", row, x=x + 12, y=box.y + 37 + n * LINE) for n, row in enumerate(_title(box.title.of(lang), ROWS, sizes.cells))]
        parts.append(el("g", el("title", box.title.of(lang)), rows, lang=lang))
        scope = " · ".join(part for part in (step.scope.node, "" if step.scope.device is None else f"device {step.scope.device}") if part)
        about = (clock.time(step.first).split(" ")[-1], worded("page.lines", n=step.occurrences).of(lang), scope)
        words = clip(safe(" · ".join(part for part in about if part)), sizes.cells + 6)
        parts.append(el("text", words, x=x + 12, y=box.y + box.height - 10, cls="dim", lang=lang))
    return parts


def _shared_lines(box: Box, x: int, sizes: Sizes) -> list[Html]:
    parts = [_small(box.title, x + 12, box.y + 20)]
    y = box.y + 40
    for step in box.shared[:SHARED]:
        parts.append(el("line", x1=x + 12, x2=x + sizes.width - 12, y1=y - 14, y2=y - 14, cls="grid"))
        for lang in LANGUAGES:
            rows = [el("text", row, x=x + 12, y=y + n * LINE + 2) for n, row in enumerate(_title(step.title.of(lang), 2, sizes.cells))]
            parts.append(el("g", el("title", step.title.of(lang)), rows, lang=lang))
        y += _item_height(step, sizes.cells)
    if len(box.shared) > SHARED:
        parts.append(_small(worded("page.chain-more", n=len(box.shared) - SHARED), x + 12, y + 2))
    return parts


def _small(words: Text, x: int, y: int) -> Html:
    """A small line in both languages."""
    return join(el("text", words.of(lang), x=x, y=y, cls="dim", lang=lang) for lang in LANGUAGES)


def _edge(cause: Box, effect: Box, stated: bool, arrow: str, sizes: Sizes) -> Html:
    x1, y1 = sizes.left(cause.column) + sizes.width, cause.y + cause.height / 2
    x2, y2 = sizes.left(effect.column), min(max(y1, effect.y + 14), effect.y + effect.height - 14)
    bend = max(GAP * 0.6, (x2 - x1) * 0.4)
    path = f"M{x1:g} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2 - 1:g} {y2:g}"
    return el("path", d=path, cls="edge" if stated else "edge inferred", marker_end=f"url(#{arrow})")


def listed(diagnosis: Diagnosis, triage: Triage) -> Html:
    """The same as a list, for those who do not see the drawing, and in full."""
    items = [el("li", both(Text(en, zh))) for en, zh in zip(*(chain(diagnosis, triage, lang) for lang in LANGUAGES), strict=True)]
    if not items:
        return Html("")
    return el("details", el("summary", t("page.chain-list", n=len(items))), el("ol", items, cls="chain"), cls="fold")
