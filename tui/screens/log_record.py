"""The line under the cursor on the log screen: its record below, its raw text, its mark and note."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from forensics.errors import ForensicsError
from forensics.safe_text import safe
from tui import details, queries, raw
from tui.queries import Key as Place
from tui.queries import Line
from tui.screens.dialogs import AskLine, Choose
from tui.screens.log_lines import LogLines
from tui.widgets.log_view import LogView


class LogRecord(LogLines):
    """What is shown of one line, and done with it."""

    async def show_record(self, line: Line | None) -> None:
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
            self.behind("record", self._raw_asked, line)

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
