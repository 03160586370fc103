"""The lines of the log screen: which are shown, where the reader stands among them, and what tells of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from textual import events, on
from textual.containers import VerticalScroll
from textual.content import Content
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from forensics.report.figures import number
from forensics.safe_text import safe
from tui import queries
from tui.filters import BAD, Filter
from tui.queries import FIRST, LAST, Histogram, Line, View
from tui.queries import Key as Place
from tui.screens.page import Page
from tui.search import Search
from tui.widgets.histogram import HistogramStrip
from tui.widgets.log_view import LogView

SETTLE = 0.08
"""Seconds the cursor must stand before what belongs to its line is asked for."""
TALL = 36
PANES = ("record", "context", "none")


class LogLines(Page):
    """Lines, strip and status; what may be asked and done is in the classes below it."""

    NAME = "log"
    NEEDS = "lines"
    DEFAULT_CSS = """
    LogLines #chips { height: auto; max-height: 3; display: none; padding: 0 1; background: $surface; }
    LogLines #status { height: 1; background: $surface; color: $text-muted; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    LogLines #record { height: 38%; padding: 0 1; border-top: solid $panel; scrollbar-size-vertical: 1; background: $background; }
    LogLines #record:focus { border-top: solid $primary; }
    LogLines #context { height: 38%; border-top: solid $panel; }
    LogLines #context:focus { border-top: solid $primary; }
    """

    def body(self) -> Iterable[Widget]:
        assert self.session.store is not None
        nodes = len(self.session.triage.bundle.nodes) if self.session.triage is not None else 1
        yield Static("", id="chips", markup=False)
        yield HistogramStrip(id="strip")
        yield LogView(self.session.store, self.session.clock, "page", nodes, id="lines")
        yield Static("", id="status", markup=False)
        yield VerticalScroll(Static("", markup=False, id="record-text"), id="record")
        yield LogView(self.session.store, self.session.clock, "near", nodes, id="context")

    def fill(self) -> None:
        place = self.session.state.log
        self._filter = Filter(tuple(place.chips))
        self._search: Search | None = None
        self._histogram: Histogram | None = None
        self._anchor = (-1, 0)
        """(which jump it belongs to, how many lines of the view stand before the line on which that put the cursor)"""
        self._settling: Timer | None = None
        self._stop_raw = threading.Event()
        self._titles = {ident: title.of(self.session.lang) for ident, title in self.session.triage.titles.items()} if self.session.triage else {}
        strip = self.query_one(HistogramStrip)
        strip.set_class(self.app.size.height >= TALL, "-tall")
        strip.words = self.say("counting")
        for view in (self.lines, self.query_one("#context", LogView)):
            view.marked = self.session.marks
            view.empty = self.say("log.empty")
        self.lines.place = self._share
        self.lines.goto_place = self._goto_share
        self.lines.shift = place.shift
        self._show_pane()
        self._filtered(self._start())
        self.lines.focus()
        if place.search:
            self.call_after_refresh(self.begin_search, place.search, False)

    @property
    def lines(self) -> LogView:
        return self.query_one("#lines", LogView)

    @property
    def filled(self) -> bool:
        return bool(self.query("#lines"))

    def _start(self) -> Place | None:
        """Where to open: where the reader was, else None: at the first evidence, found in the background."""
        place = self.session.state.log
        return Place(place.ts, place.event_id) if place.event_id is not None else None

    # ------------------------------------------------------------ what is shown

    def _view(self) -> View:
        return View.of(self._filter, self.session.files)

    def _filtered(self, key: Place | None) -> None:
        """Show the lines of the filter around a key, and count them."""
        self.session.state.log.chips = list(self._filter.chips)
        self._draw_chips()
        self._histogram = self.session.histogram if not self._filter else None
        self.query_one(HistogramStrip).put(self._histogram)
        self.behind("go", self._go, key)
        if self._search is not None:
            self.begin_search(self._search.pattern, False)

    async def _go(self, key: Place | None) -> None:
        if key is None:
            key = await self._first_evidence()
        view = self._view()
        await self.lines.show(key, view)
        if self._histogram is None:  # only now: nothing is to stand in the way of the lines
            self.behind("histogram", self._count_all, view)

    async def _first_evidence(self) -> Place:
        """The first line cited for the first diagnosis, else the first error, else the first line."""
        session, triage = self.session, self.session.triage
        assert session.store is not None and triage is not None
        for diagnosis in triage.diagnoses[:1]:
            for evidence in diagnosis.evidence:
                key = await session.store.ask("record", lambda c, one=evidence: queries.line_at(c, one.file_id, one.line))  # type: ignore[misc]
                if key is not None:
                    return key
        errors = await session.store.ask("record", lambda c: queries.page(c, bad_lines(View()), FIRST, 1))
        return errors[0].key if errors else FIRST

    async def _count_all(self, view: View) -> None:
        assert self.session.store is not None
        found = await self.session.store.ask("count", lambda connection: queries.histogram(connection, view))
        strip = self.query_one(HistogramStrip)
        self._histogram = found
        if found is None:
            strip.words = self.say("no-times")
        elif not self._filter:
            self.session.histogram = found
        strip.put(found)
        self._draw_status()
        self.lines.refresh()

    def open(self, key: Place) -> None:
        """Show a line, whatever the filter: where it hides the line, it is taken off, and that is said."""
        if not self.filled:
            self.session.state.log.ts, self.session.state.log.event_id = key
            return
        self.behind("go", self._open, key)

    async def _open(self, key: Place) -> None:
        assert self.session.store is not None
        view = self._view()
        if view.where != "true" and not await self.session.store.ask("record", lambda connection: queries.matches(connection, view, key)):
            self.notify(self.say("filter.removed"), markup=False)
            self._filter = Filter()
            self._filtered(key)
            return
        await self.lines.show(key, view)

    def _share(self, line: Line) -> float:
        """Where among all lines one lies, for the bar."""
        data = self._histogram
        if self.lines.view.by_file:
            member = next((one for one in self.session.files if one.file_id == line.file_id), None)
            return line.line_no / max(1, member.lines) if member is not None else 0.0
        if data is None:
            return 0.0
        if line.ts is None:
            return 0.0
        steps = len(data.total)
        at = min(steps - 1, int(data.place(line.ts) * steps))
        return (data.untimed + sum(data.total[:at]) + data.total[at] / 2) / max(1, data.lines)

    def _goto_share(self, share: float) -> None:
        data = self._histogram
        if share <= 0.0 or data is None:
            self.lines.go(FIRST)
        elif share >= 1.0:
            self.lines.go(LAST)
        else:
            wanted, seen = share * data.lines, data.untimed
            for at, lines in enumerate(data.total):
                seen += lines
                if seen >= wanted:
                    self._jumped(data.time(at / len(data.total)))
                    return

    def _jumped(self, ts: int) -> None:
        self.lines.go(Place(ts, 0))

    @on(LogView.Moved, "#lines")
    def _moved(self, event: LogView.Moved) -> None:
        place = self.session.state.log
        if event.line is not None:
            place.ts, place.event_id = event.line.ts, event.line.event_id
            self.query_one(HistogramStrip).stand(event.line.ts)
        place.shift = self.lines.shift
        self._draw_status()
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE, self._settled)

    def _settled(self) -> None:
        line = self.lines.line
        if self._anchor[0] != self.lines.landed and line is not None:
            self.behind("before", self._count_before, line, self.lines.window.offset, self.lines.landed)
        pane = self.session.state.log.pane
        if pane == "record":
            self.behind("record", self.show_record, line)
        elif pane == "context" and line is not None:
            self.query_one("#context", LogView).go(line.key, View(f"file_id <> {line.file_id}"))

    async def show_record(self, line: Line | None) -> None:
        """Put what is known of a line into the pane below."""
        raise NotImplementedError

    def begin_search(self, pattern: str, go: bool) -> None:
        """Search all lines; `go`: and go to the first match."""
        raise NotImplementedError

    async def _count_before(self, line: Line, offset: int, era: int) -> None:
        assert self.session.store is not None
        view = self.lines.view
        before = await self.session.store.ask("count", lambda connection: queries.count(connection, view, line.key))
        self._anchor = (era, before - offset)
        self._draw_status()

    # ------------------------------------------------------------ drawing

    def _draw_chips(self) -> None:
        bar = self.query_one("#chips", Static)
        parts = Content()
        for at, chip in enumerate(self._filter.chips):
            item = Content.assemble((f" {safe(str(chip))} × ", "reverse"))
            parts += item.stylize(Style.from_meta({"@click": f"screen.drop({at})"})) + " "
        bar.update(parts)
        bar.display = bool(self._filter)

    def _draw_status(self) -> None:
        line, lang = self.lines.line, self.session.lang
        parts: list[str] = []
        if line is not None:
            total = self._histogram.lines if self._histogram is not None else None
            if self._anchor[0] == self.lines.landed:
                at = self._anchor[1] + self.lines.window.offset + 1
                parts.append(f"{at:,}" + (f" / {number(total, lang)}" if total is not None else ""))
            elif total is not None:
                parts.append(self.say("lines", n=number(total, lang)))
        if (search := self._search) is not None:
            count = number(search.count, lang)
            if search.done:
                own = search.number(line.key) if line is not None else None
                found = self.say("search.at", at=f"{own:,}", n=count) if own is not None else self.say("search.found", n=count)
            else:
                found = self.say("search.going", n=count, share=100 * search.read // max(1, search.total))
            parts.append(f"/{safe(search.pattern)}: {found}")
        if line is not None:
            parts.append(self.session.place(line))
        self.query_one("#status", Static).update(Content("  ·  ".join(parts)))

    def _show_pane(self) -> None:
        pane = self.session.state.log.pane
        self.query_one("#record").display = pane == "record"
        self.query_one("#context").display = pane == "context"

    def on_resize(self, event: events.Resize) -> None:
        if self.filled:
            self.query_one(HistogramStrip).set_class(self.app.size.height >= TALL, "-tall")


def bad_lines(view: View) -> View:
    """The errors among the lines of a view."""
    return view.also(f"severity IN ({', '.join(repr(one) for one in BAD)})")
