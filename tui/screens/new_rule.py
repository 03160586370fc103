"""A rule from a line: its pattern, generalised, with the number of lines it finds as it is edited; saved with the line as its example."""

from __future__ import annotations

import asyncio
import threading

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from forensics.errors import ForensicsError
from forensics.report.figures import number
from forensics.safe_text import safe
from rules.taxonomy import ROOT_CAUSES
from tui import own_pack, queries, raw
from tui.failures import Tells
from tui.queries import FIRST, Line, View
from tui.search import Search
from tui.session import Session

SETTLE = 0.25
PREVIEW = 6


class NewRule(Tells, ModalScreen[None]):
    """Control-S saves; Escape leaves."""

    BINDINGS = [Binding("escape", "dismiss(None)", show=False), Binding("ctrl+s", "save", show=False, priority=True)]
    DEFAULT_CSS = """
    NewRule { align: center middle; background: $background 30%; }
    NewRule > VerticalScroll { width: 96%; max-width: 130; height: auto; max-height: 96%; padding: 0 1; }
    NewRule > VerticalScroll { background: $surface; border: round $primary; }
    NewRule Horizontal { height: 1; }
    NewRule Horizontal Static { width: 17; color: $text-muted; }
    NewRule Input, NewRule Input:focus { border: none; padding: 0; height: 1; background: $panel; width: 1fr; }
    NewRule Input:focus { background: $primary-muted; }
    NewRule .part { height: auto; }
    NewRule #wrong { color: $text-error; height: auto; display: none; }
    NewRule #count { height: auto; color: $text-accent; }
    NewRule #hint { color: $text-muted; height: auto; }
    """

    def __init__(self, session: Session, line: Line):
        super().__init__()
        self.session, self._line = session, line
        self._text = line.message.split("\n", 1)[0]

    def compose(self) -> ComposeResult:
        say = self.session.say
        causes = SuggestFromList(sorted(ROOT_CAUSES), case_sensitive=False)
        with VerticalScroll():
            yield Static(Content.styled(say("rule.title"), "bold"), markup=False, classes="part")
            yield Static(Content(safe(self._text[:600])), markup=False, id="line", classes="part")
            for name in ("pattern", "id", "cause", "title-en", "title-zh"):
                with Horizontal():
                    yield Static(say(f"rule.{name}"), markup=False)
                    yield Input(id=f"rule-{name}", suggester=causes if name == "cause" else None)
            yield Static("", id="cause-name", markup=False, classes="part")
            yield Static("", id="count", markup=False)
            yield Static("", id="preview", markup=False, classes="part")
            yield Static("", id="wrong", markup=False)
            yield Static(say("rule.hint"), id="hint", markup=False)

    async def on_mount(self) -> None:
        store, case, line = self.session.store, self.session.case, self._line
        assert store is not None and case is not None
        record = await store.ask("record", lambda connection: queries.record(connection, line.event_id))
        if record is not None:
            member = next((one for one in self.session.files if one.file_id == line.file_id), None)
            if record.signals:
                self._text = record.signals[0][2]
            elif member is not None and raw.at_hand(case):
                text = await store.run(lambda: raw.read(case, member, record.byte_offset, 1, threading.Event()))
                self._text = text or self._text
        self.query_one("#line", Static).update(Content(safe(self._text[:600])))
        try:
            made = own_pack.propose(self._text)
        except ForensicsError as error:
            self._wrong(str(error))
            return
        for name, value in (("pattern", made.pattern), ("id", made.ident), ("cause", "unknown"), ("title-en", made.title), ("title-zh", "")):
            self.query_one(f"#rule-{name}", Input).value = value
        self.query_one("#rule-pattern", Input).focus()

    def _value(self, name: str) -> str:
        return self.query_one(f"#rule-{name}", Input).value.strip()

    def _wrong(self, text: str) -> None:
        box = self.query_one("#wrong", Static)
        box.update(Content(safe(text)))
        box.display = bool(text)

    @on(Input.Changed, "#rule-pattern")
    def _pattern(self, event: Input.Changed) -> None:
        self.behind("count", self._count, event.value)

    @on(Input.Changed, "#rule-cause")
    def _cause(self, event: Input.Changed) -> None:
        known = ROOT_CAUSES.get(event.value.strip())
        self.query_one("#cause-name", Static).update(Content.assemble((known.of(self.session.lang) if known is not None else "", "dim")))

    async def _count(self, pattern: str) -> None:
        await asyncio.sleep(SETTLE)
        store, lang = self.session.store, self.session.lang
        assert store is not None
        count = self.query_one("#count", Static)
        if not pattern:
            count.update("")
            return
        try:
            search = Search(pattern, View(), self.session.files)
        except ForensicsError as error:
            self._wrong(str(error))
            count.update("")
            return
        self._wrong("")

        def told() -> None:
            key = "rule.found" if search.done else "rule.counting"
            count.update(self.session.say(key, n=number(search.count, lang), share=100 * search.read // max(1, search.total)))

        lines = await store.ask("search", lambda connection: queries.page(connection, search.view, FIRST, PREVIEW))
        self.query_one("#preview", Static).update(Content("\n".join(f"  {safe(one.message.split(chr(10), 1)[0][:300])}"[:118] for one in lines)))
        await search.run(store, told)

    async def action_save(self) -> None:
        store = self.session.store
        assert store is not None
        named = [self._value(name) for name in ("id", "cause", "title-en", "title-zh", "pattern")]
        text = self._text

        def saved() -> str:
            return str(own_pack.save(own_pack.written(text, *named), named[0]))

        try:
            path = await store.run(saved)
        except ForensicsError as error:
            self._wrong(str(error))
            return
        self.app.notify(self.session.say("rule.saved", path=safe(path)), markup=False, timeout=8)
        self.dismiss(None)
