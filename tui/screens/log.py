"""Screen 2: all lines of all sources, merged by time, with filters, search, a strip of errors over time, and all that is known of a line."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterable

from textual import events, on
from textual.containers import VerticalScroll
from textual.content import Content
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from forensics.errors import ForensicsError
from forensics.report.figures import number
from forensics.safe_text import safe
from tui import details, queries, raw, when
from tui.filters import BAD, Chip, Filter, check_regex, parse
from tui.keys import MOVING, Key, bindings
from tui.queries import FIRST, LAST, Histogram, Line, View
from tui.queries import Key as Place
from tui.screens.dialogs import AskFilter, AskLine, Choose
from tui.screens.page import Page
from tui.search import Search
from tui.widgets.histogram import HistogramStrip
from tui.widgets.log_view import LogView

SETTLE = 0.08
"""Seconds the cursor must stand before what belongs to its line is asked for."""
TALL = 36
PANES = ("record", "context", "none")


class LogPage(Page):
    """The log. What stands below the lines is the record under the cursor, or what other sources say at that time."""

    NAME = "log"
    NEEDS = "lines"
    KEYS = (
        Key("slash", "search", "search", "/"),
        Key("n", "next(False)", "next", "n"),
        Key("N", "next(True)", "previous", "N", bar=False),
        Key("e", "error(False)", "error", "e"),
        Key("E", "error(True)", "error-back", "E", bar=False),
        Key("f", "filter", "filter", "f"),
        Key("t", "jump", "time", "t"),
        Key("c", "context", "context", "c"),
        Key("m", "mark", "mark", "m"),
        Key("r", "rule", "new-rule", "r"),
        Key("F", "unfilter", "unfilter", "F", bar=False),
        Key("M", "note", "note", "M", bar=False),
        Key("apostrophe", "marks", "marks", "'", bar=False),
        Key("d", "details", "details", "d", bar=False),
        Key("y", "copy", "copy", "y", bar=False),
        Key("w", "raw", "raw", "w", bar=False),
        Key("left_square_bracket,right_square_bracket", "", "step", "[ ]", bar=False),
        Key("o", "file", "file", "o", bar=False),
        Key("escape", "stop", "stop", "esc", bar=False),
        Key("tab", "app.focus_next", "other-pane", "⇥", bar=False),
    )
    EXTRA = MOVING
    BINDINGS = [
        *bindings(KEYS),
        *bindings((Key("left_square_bracket", "step(-1)", "step"), Key("right_square_bracket", "step(1)", "step"))),
    ]
    DEFAULT_CSS = """
    LogPage #chips { height: auto; max-height: 3; display: none; padding: 0 1; background: $surface; }
    LogPage #status { height: 1; background: $surface; color: $text-muted; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    LogPage #record { height: 38%; padding: 0 1; border-top: solid $panel; scrollbar-size-vertical: 1; background: $background; }
    LogPage #record:focus { border-top: solid $primary; }
    LogPage #context { height: 38%; border-top: solid $panel; }
    LogPage #context:focus { border-top: solid $primary; }
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
            self.call_after_refresh(self._begin_search, place.search, False)

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
        self.run_worker(self._go(key), group="go", exclusive=True, exit_on_error=False)
        if self._search is not None:
            self._begin_search(self._search.pattern, False)

    async def _go(self, key: Place | None) -> None:
        if key is None:
            key = await self._first_evidence()
        view = self._view()
        await self.lines.show(key, view)
        if self._histogram is None:  # only now: nothing is to stand in the way of the lines
            self.run_worker(self._count_all(view), group="histogram", exclusive=True, exit_on_error=False)

    async def _first_evidence(self) -> Place:
        """The first line cited for the first diagnosis, else the first error, else the first line."""
        session, triage = self.session, self.session.triage
        assert session.store is not None and triage is not None
        for diagnosis in triage.diagnoses[:1]:
            for evidence in diagnosis.evidence:
                key = await session.store.ask("record", lambda c, one=evidence: queries.line_at(c, one.file_id, one.line))  # type: ignore[misc]
                if key is not None:
                    return key
        errors = await session.store.ask("record", lambda c: queries.page(c, _bad(View()), FIRST, 1))
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
        self.run_worker(self._open(key), group="go", exclusive=True, exit_on_error=False)

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

    # ------------------------------------------------------------ the line under the cursor

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
        if self._anchor[0] != self.lines.era and line is not None:
            self.run_worker(self._count_before(line, self.lines.window.offset, self.lines.era), group="before", exclusive=True, exit_on_error=False)
        pane = self.session.state.log.pane
        if pane == "record":
            self.run_worker(self._show_record(line), group="record", exclusive=True, exit_on_error=False)
        elif pane == "context" and line is not None:
            self.query_one("#context", LogView).go(line.key, View(f"file_id <> {line.file_id}"))

    async def _count_before(self, line: Line, offset: int, era: int) -> None:
        assert self.session.store is not None
        view = self.lines.view
        before = await self.session.store.ask("count", lambda connection: queries.count(connection, view, line.key))
        self._anchor = (era, before - offset)
        self._draw_status()

    async def _show_record(self, line: Line | None) -> None:
        pane = self.query_one("#record-text", Static)
        if line is None:
            pane.update("")
            return
        store, case = self.session.store, self.session.case
        assert store is not None and case is not None
        self._stop_raw.set()
        record = await store.ask("record", lambda connection: queries.record(connection, line.event_id))
        if record is None:
            return
        lang = self.session.lang
        texts = (record.message, record.code)
        found = await store.run(lambda: details.readings(" ".join(texts), lang))
        pane.update(details.render(self.session, record, found, None, self._titles))
        self.query_one("#record", VerticalScroll).scroll_home(animate=False)
        if raw.at_hand(case):
            await self._show_raw(record, found)

    async def _show_raw(self, record: queries.Record, found: list[details.Reading]) -> None:
        store, case, line = self.session.store, self.session.case, record.line
        assert store is not None and case is not None
        member = next((one for one in self.session.files if one.file_id == line.file_id), None)
        if member is None:
            return
        stop = self._stop_raw = threading.Event()
        try:
            text = await store.run(lambda: raw.read(case, member, record.byte_offset, line.n_lines, stop))
        except asyncio.CancelledError:
            stop.set()
            raise
        if self.lines.line == line and text is not None:
            self.query_one("#record-text", Static).update(details.render(self.session, record, found, text, self._titles))
        elif text is None and not stop.is_set() and not raw.at_hand(case):
            self.notify(self.say("raw.gone"), severity="warning", markup=False)

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
            if self._anchor[0] == self.lines.era:
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

    # ------------------------------------------------------------ search and errors

    def action_search(self) -> None:
        def given(text: str | None) -> None:
            if text:
                self._begin_search(text, True)
            elif text == "":
                self.action_stop()

        before = self.session.state.log.search
        self.app.push_screen(AskLine(self.say("search.title"), before, self.say("search.hint"), check_regex), given)

    def _begin_search(self, pattern: str, go: bool) -> None:
        assert self.session.store is not None
        try:
            self._search = Search(pattern, self._view(), self.session.files)
        except ForensicsError as error:
            self.notify(safe(str(error)), severity="error", markup=False)
            return
        self.session.state.log.search = pattern
        for view in (self.lines, self.query_one("#context", LogView)):
            view.found = self._search.highlight()
            view.refresh()
        self.run_worker(self._searching(self._search), group="search", exclusive=True, exit_on_error=False)
        if go:
            self.action_next(False, stay=True)

    async def _searching(self, search: Search) -> None:
        assert self.session.store is not None
        await search.run(self.session.store, self._draw_status)

    def action_next(self, back: bool, stay: bool = False) -> None:
        """Go to the next match; `stay`: the line under the cursor counts too."""
        if self._search is None:
            self.action_search()
            return
        self.run_worker(self._to_match(self._search, back, stay), group="match", exclusive=True, exit_on_error=False)

    async def _to_match(self, search: Search, back: bool, stay: bool) -> None:
        assert self.session.store is not None
        key = self.lines.line.key if self.lines.line is not None else FIRST
        if stay:
            key = Place(key.ts, key.event_id - 1)
        found = await search.next(self.session.store, key, back)
        if found is None:
            round_again = await search.next(self.session.store, LAST if back else FIRST, back)
            if round_again is None:
                self.notify(self.say("search.none"), markup=False)
                return
            self.notify(self.say("search.wrapped.back" if back else "search.wrapped"), markup=False, timeout=2)
            found = round_again
        await self._stand(found)

    async def _stand(self, key: Place) -> None:
        """Put the cursor on a line of the view; without reading anything where it is held already."""
        window = self.lines.window
        for at, line in enumerate(window.lines):
            if line.event_id == key.event_id:
                self.lines.action_move(at - window.cursor)
                return
        await self.lines.show(key)

    def action_error(self, back: bool) -> None:
        self.run_worker(self._to_error(back), group="match", exclusive=True, exit_on_error=False)

    async def _to_error(self, back: bool) -> None:
        assert self.session.store is not None
        window = self.lines.window
        ahead = range(window.cursor - 1, -1, -1) if back else range(window.cursor + 1, len(window.lines))
        near = next((at for at in ahead if window.lines[at].severity in BAD), None)
        if near is not None:
            self.lines.action_move(near - window.cursor)
            return
        key = self.lines.line.key if self.lines.line is not None else FIRST
        view = _bad(self.lines.view)
        found = await self.session.store.ask("search", lambda connection: queries.page(connection, view, key, 1, back=back))
        if found:
            await self._stand(found[0].key)
        else:
            self.notify(self.say("error.none.back" if back else "error.none"), markup=False)

    def action_stop(self) -> None:
        """End the search, and take its marks off the lines."""
        self.workers.cancel_group(self, "search")
        self.workers.cancel_group(self, "match")
        self._search = None
        self.session.state.log.search = ""
        for view in (self.lines, self.query_one("#context", LogView)):
            view.found = None
            view.refresh()
        self._draw_status()

    # ------------------------------------------------------------ filters

    def action_filter(self) -> None:
        line = self.lines.line
        mine: list[tuple[str, str]] = []
        if line is not None:
            named = (
                ("pid", line.pid), ("device", line.device), ("node", line.node), ("source", line.source), ("module", line.module),
                ("rank", line.rank), ("file", self.session.path(line.file_id)),
            )  # fmt: skip
            mine = [(str(Chip(name, "=", str(value))), self.say("filter.this")) for name, value in named if value not in (None, "")]
        mine += [("severity>=error", ""), ("severity>=warning", "")]
        asked = AskFilter(self.session, mine, parse)

        def given(text: str | None) -> None:
            if text:
                self._filter = self._filter.plus(parse(text))
                self._filtered(self._here())

        self.app.push_screen(asked, given)
        self.run_worker(self._suggest(asked), group="facets", exclusive=True, exit_on_error=False)

    async def _suggest(self, asked: AskFilter) -> None:
        assert self.session.store is not None
        view = self._view()
        found = await self.session.store.ask("facts", lambda connection: queries.facets(connection, view))
        if asked.is_current:
            lang = self.session.lang
            values = [(str(Chip(field, "=", value)), number(lines, lang)) for field, value, lines in found if "," not in value and value]
            files = [(str(Chip("file", "=", one.path)), number(one.lines, lang)) for one in self.session.files if one.lines][:500]
            asked.suggest(values + files)

    def action_unfilter(self) -> None:
        if self._filter:
            self._filter = Filter()
            self._filtered(self._here())

    def action_drop(self, at: int) -> None:
        """Take one chip off."""
        if 0 <= at < len(self._filter.chips):
            self._filter = self._filter.minus(self._filter.chips[at])
            self._filtered(self._here())

    def action_file(self) -> None:
        """Only the file of this line, in its own order; or all again."""
        line = self.lines.line
        if line is None:
            return
        chip = Chip("file", "=", self.session.path(line.file_id))
        self._filter = self._filter.minus(chip) if chip in self._filter.chips else self._filter.plus([chip])
        self._filtered(line.key)

    def _here(self) -> Place:
        return self.lines.line.key if self.lines.line is not None else self._start() or FIRST

    # ------------------------------------------------------------ moving

    @on(HistogramStrip.Picked)
    def _picked(self, event: HistogramStrip.Picked) -> None:
        self._jumped(event.ts)

    def action_step(self, direction: int) -> None:
        ts = self.query_one(HistogramStrip).step(direction)
        if ts is not None:
            self._jumped(ts)

    def action_jump(self) -> None:
        data, line = self._histogram, self.lines.line
        if data is None:
            self.notify(self.say("no-times"), markup=False)
            return
        here = line.ts if line is not None else None

        def moment(text: str) -> int:
            return when.parse(text, self.session.clock, here, data.first, data.last)

        def given(text: str | None) -> None:
            if text:
                self._jumped(moment(text))

        self.app.push_screen(AskLine(self.say("jump.title"), "", self.say("jump.hint"), moment), given)

    def action_context(self) -> None:
        place = self.session.state.log
        place.pane = "record" if place.pane == "context" else "context"
        self._show_pane()
        self._settled()

    def action_details(self) -> None:
        place = self.session.state.log
        place.pane = "none" if place.pane == "record" else "record"
        self._show_pane()
        self._settled()

    @on(LogView.Chosen, "#lines")
    def _chosen(self) -> None:
        if self.session.state.log.pane != "record":
            self.session.state.log.pane = "record"
            self._show_pane()
            self._settled()
        else:
            self.query_one("#record").focus()

    @on(LogView.Chosen, "#context")
    def _context_chosen(self, event: LogView.Chosen) -> None:
        self.lines.focus()
        self.open(event.line.key)

    # ------------------------------------------------------------ with the line

    def _focused_line(self) -> Line | None:
        context = self.query_one("#context", LogView)
        return context.line if context.has_focus else self.lines.line

    def action_mark(self) -> None:
        line = self._focused_line()
        if line is not None:
            self._marked(line, None)

    def action_note(self) -> None:
        line = self._focused_line()
        if line is None:
            return
        known = self.session.marks.get(line.event_id)

        def given(text: str | None) -> None:
            if text is not None:
                self._marked(line, text)

        self.app.push_screen(AskLine(self.say("note.title"), known.note if known is not None else "", self.say("note.hint")), given)

    def _marked(self, line: Line, note: str | None) -> None:
        try:
            self.session.mark(line, note)
        except ForensicsError as error:
            self.notify(safe(str(error)), severity="error", markup=False)
            return
        for view in (self.lines, self.query_one("#context", LogView)):
            view.marked = self.session.marks
            view.refresh()
        self._settled()

    def action_marks(self) -> None:
        marks = self.session.triage.marks if self.session.triage is not None else []
        shown = [
            Content.assemble(
                (f"{self.session.clock.time(mark.ts) or '—'}  ", "dim"), (f"{safe(mark.note)}  " if mark.note else "", "$text-success"),
                safe(mark.text[:300]), (f"  {safe(mark.file)}:{mark.line}", "$text-primary"),
            )
            for mark in marks
        ]  # fmt: skip

        def given(at: int | None) -> None:
            if at is not None:
                self.open(Place(marks[at].ts, marks[at].event_id))

        self.app.push_screen(Choose(self.say("marks.title"), shown, self.say("marks.none")), given)

    def action_copy(self) -> None:
        line = self._focused_line()
        if line is not None:
            self.browser.copy("  ".join(part for part in (self.session.place(line), self.session.clock.time(line.ts), line.message) if part))

    def action_raw(self) -> None:
        """Read the line from the bundle, however large that is."""
        line = self.lines.line
        if line is not None:
            self.run_worker(self._raw_asked(line), group="record", exclusive=True, exit_on_error=False)

    async def _raw_asked(self, line: Line) -> None:
        assert self.session.store is not None
        record = await self.session.store.ask("record", lambda connection: queries.record(connection, line.event_id))
        if record is not None:
            self.notify(self.say("raw.reading"), markup=False, timeout=3)
            await self._show_raw(record, [])

    def action_rule(self) -> None:
        line = self._focused_line()
        if line is not None:
            self.browser.write_rule(line)

    def on_unmount(self) -> None:
        with contextlib.suppress(AttributeError):
            self._stop_raw.set()


def _bad(view: View) -> View:
    return view.also(f"severity IN ({', '.join(repr(one) for one in BAD)})")
