"""Screen 2: all lines of all sources, merged by time, with filters, search, a strip of errors over time, and all that is known of a line.

Here are its keys, the search, the filters and the ways to move; the lines themselves in `log_lines`, the one under the cursor in `log_record`.
"""

from __future__ import annotations

from textual import on

from forensics.errors import ForensicsError
from forensics.report.figures import number
from forensics.safe_text import safe
from tui import queries, when
from tui.filters import BAD, Chip, Filter, check_regex, parse
from tui.keys import MOVING, Key, bindings
from tui.queries import FIRST, LAST
from tui.queries import Key as Place
from tui.screens.dialogs import AskFilter, AskLine
from tui.screens.log_lines import bad_lines
from tui.screens.log_record import LogRecord
from tui.search import Search
from tui.widgets.histogram import HistogramStrip
from tui.widgets.log_view import LogView


class LogPage(LogRecord):
    """The log. What stands below the lines is the record under the cursor, or what other sources say at that time."""

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
    # ------------------------------------------------------------ search and errors

    def action_search(self) -> None:
        def given(text: str | None) -> None:
            if text:
                self.begin_search(text, True)
            elif text == "":
                self.action_stop()

        before = self.session.state.log.search
        self.app.push_screen(AskLine(self.say("search.title"), before, self.say("search.hint"), check_regex), given)

    def begin_search(self, pattern: str, go: bool) -> None:
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
        self.behind("search", self._searching, self._search)
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
        self.behind("match", self._to_match, self._search, back, stay)

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
        self.behind("match", self._to_error, back)

    async def _to_error(self, back: bool) -> None:
        assert self.session.store is not None
        window = self.lines.window
        ahead = range(window.cursor - 1, -1, -1) if back else range(window.cursor + 1, len(window.lines))
        near = next((at for at in ahead if window.lines[at].severity in BAD), None)
        if near is not None:
            self.lines.action_move(near - window.cursor)
            return
        key = self.lines.line.key if self.lines.line is not None else FIRST
        view = bad_lines(self.lines.view)
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
        self.behind("facets", self._suggest, asked)

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
