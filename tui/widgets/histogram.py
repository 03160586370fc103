"""A strip of bars: how many lines, and how many errors among them, over the time of the case."""

from __future__ import annotations

import math

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.queries import Histogram

BARS = " ▁▂▃▄▅▆▇█"


class HistogramStrip(Widget):
    """Errors are drawn where there are any, all lines elsewhere; the column where the reader is stands out. A click jumps there."""

    DEFAULT_CSS = """
    HistogramStrip { height: 1; width: 1fr; background: $surface; }
    HistogramStrip.-tall { height: 3; }
    HistogramStrip > .strip--line { text-style: dim; }
    HistogramStrip > .strip--warning { color: $text-warning; }
    HistogramStrip > .strip--bad { color: $text-error; }
    HistogramStrip > .strip--here { background: $primary; color: $foreground; }
    """
    COMPONENT_CLASSES = {"strip--line", "strip--warning", "strip--bad", "strip--here"}

    class Picked(Message):
        """A moment (UTC microseconds) was clicked."""

        def __init__(self, ts: int):
            super().__init__()
            self.ts = ts

    def __init__(self, **known: str | None):
        super().__init__(id=known.get("id"))
        self.data: Histogram | None = None
        self.here: int | None = None
        self.words = ""
        """What stands there while there is nothing to draw."""

    def put(self, data: Histogram | None) -> None:
        self.data = data
        self.refresh()

    def stand(self, ts: int | None) -> None:
        """Say where the reader is."""
        if ts != self.here:
            self.here = ts
            self.refresh()

    def bars(self, width: int) -> list[tuple[float, str]]:
        """Of each column the height, 0 to 1, and what it shows: bad, warning or line. Heights are logarithmic: one error is seen."""
        data = self.data
        if data is None or width < 1:
            return []
        steps = len(data.total)
        sums = []
        for column in range(width):
            some = slice(column * steps // width, max(column * steps // width + 1, (column + 1) * steps // width))
            sums.append((sum(data.bad[some]), sum(data.warnings[some]), sum(data.total[some])))
        most = [max(1, *(one[k] for one in sums)) for k in range(3)] if sums else [1, 1, 1]
        out = []
        for bad, warned, total in sums:
            kind, value, top = ("bad", bad, most[0]) if bad else ("warning", warned, most[1]) if warned else ("line", total, most[2])
            height = math.log1p(value) / math.log1p(top) if value else 0.0
            out.append((height if kind == "bad" else height * (0.6 if kind == "warning" else 0.35), kind))
        return out

    def render_line(self, y: int) -> Strip:
        width, height, base = self.size.width, self.size.height, self.rich_style
        bars = self.bars(width)
        if not bars:
            return Strip([Segment(f" {self.words}" if y == 0 else "", base)]).adjust_cell_length(width, base)
        here = -1 if self.here is None or self.data is None else min(width - 1, int(self.data.place(self.here) * width))
        segments = []
        for column, (share, kind) in enumerate(bars):
            eighths = max(1, round(share * height * 8)) if share > 0 else 0
            level = min(8, max(0, eighths - (height - 1 - y) * 8))
            style = base + self.get_component_rich_style(f"strip--{kind}", partial=True)
            if column == here:
                style += self.get_component_rich_style("strip--here", partial=True)
            segments.append(Segment(BARS[level], style))
        return Strip(segments, width)

    def on_click(self, event: events.Click) -> None:
        if self.data is not None:
            self.post_message(self.Picked(self.data.time((event.x + 0.5) / max(1, self.size.width))))

    def step(self, direction: int) -> int | None:
        """The moment one column further on, or back."""
        if self.data is None:
            return None
        width = max(1, self.size.width)
        at = 0 if self.here is None else int(self.data.place(self.here) * width)
        return self.data.time(max(0, min(width - 1, at + direction)) / width)
