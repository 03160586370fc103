"""Screen 7: queries over the case, completed as they are typed; rows come as they are looked at, and go to a file."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.text import Text
from textual import events, on
from textual.binding import Binding
from textual.content import Content
from textual.widget import Widget
from textual.widgets import DataTable, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from forensics.errors import ForensicsError
from forensics.safe_text import safe
from tui import sql
from tui.colours import cell
from tui.keys import Key, bindings
from tui.screens.dialogs import AskLine, Choose
from tui.screens.page import Page
from tui.session import Session
from tui.sql import Rows
from tui.widgets.grid import Grid

WIDTH = 60
"""Columns of the terminal that one value takes at most; the one under the cursor is shown in full below."""


class Editor(TextArea):
    """The query. Tab takes the completion that is offered."""

    BINDINGS = [
        Binding("ctrl+r,f5,ctrl+j,ctrl+enter", "screen.run", show=False),
        Binding("ctrl+s", "screen.export", show=False),
        Binding("ctrl+o", "screen.examples", show=False),
        Binding("escape", "screen.leave", show=False),
        Binding("ctrl+up", "screen.history(-1)", show=False),
        Binding("ctrl+down", "screen.history(1)", show=False),
        Binding("ctrl+n", "screen.choose(1)", show=False),
    ]

    async def _on_key(self, event: events.Key) -> None:
        page = self.screen
        if event.key == "tab" and isinstance(page, SqlPage) and page.take_completion():
            event.prevent_default()
            event.stop()
            return
        await super()._on_key(event)


class SqlPage(Page):
    """Enter on a row that names a line opens it in the log."""

    NAME = "sql"
    KEYS = (
        Key("ctrl+r,f5", "run", "run", "^r"),
        Key("tab", "", "complete", "⇥"),
        Key("ctrl+o", "examples", "examples", "^o"),
        Key("ctrl+s", "export", "export", "^s"),
        Key("escape", "leave", "results", "esc"),
        Key("i", "edit", "edit", "i", bar=False),
        Key("ctrl+up,ctrl+down", "", "history", "^↑ ^↓", bar=False),
        Key("ctrl+n", "choose(1)", "next-completion", "^n", bar=False),
        Key("enter", "", "open", "⏎", bar=False),
        Key("y", "copy", "copy", "y", bar=False),
    )
    BINDINGS = bindings(KEYS)
    DEFAULT_CSS = """
    SqlPage Editor, SqlPage Editor:focus { height: 30%; min-height: 4; border: none; border-bottom: solid $panel; padding: 0 1; }
    SqlPage Editor:focus { border-bottom: solid $primary; }
    SqlPage #offers, SqlPage #offers:focus { height: auto; max-height: 6; border: none; padding: 0 1; background: $surface; display: none; }
    SqlPage #told { height: auto; max-height: 4; padding: 0 1; background: $surface; color: $text-muted; }
    SqlPage #told.-wrong { color: $text-error; }
    SqlPage #value { height: auto; max-height: 5; padding: 0 1; border-top: solid $panel; display: none; }
    """

    def __init__(self, session: Session):
        super().__init__(session)
        self._words: list[tuple[str, str]] = []
        self._offered: list[str] = []
        self._rows: Rows | None = None
        self._asked = ""
        self._fetching = False
        self._back = 0

    def body(self) -> Iterable[Widget]:
        yield Editor(self.session.state.query or sql.EXAMPLES[0], id="query", tab_behavior="indent", show_line_numbers=False)
        yield OptionList(id="offers", markup=False)
        yield Static(self.say("sql.hint"), id="told", markup=False)
        yield Grid(cursor_type="cell", id="rows")
        yield Static("", id="value", markup=False)

    def fill(self) -> None:
        self.behind("schema", self._read_schema)
        editor = self.query_one(Editor)
        editor.cursor_blink = False
        editor.focus()
        editor.move_cursor(editor.document.end)

    async def _read_schema(self) -> None:
        assert self.session.store is not None
        self._words = (await self.session.store.ask("facts", sql.schema)).words()

    # ------------------------------------------------------------ completing

    @on(TextArea.Changed, "#query")
    def _typed(self) -> None:
        self.session.state.query = self.query_one(Editor).text
        self._offer()

    @on(TextArea.SelectionChanged, "#query")
    def _moved(self) -> None:
        self._offer()

    def _before(self) -> str:
        editor = self.query_one(Editor)
        line, column = editor.cursor_location
        return editor.document.get_line(line)[:column]

    def _offer(self) -> None:
        found = sql.completions(self._words, self._before())
        self._offered = [word for word, _ in found]
        offers = self.query_one("#offers", OptionList)
        offers.clear_options()
        offers.add_options([Option(Content.assemble(word, (f"  {kind}", "dim"))) for word, kind in found])
        offers.display = bool(found) and self.query_one(Editor).has_focus
        offers.highlighted = 0 if found else None

    def take_completion(self) -> bool:
        """Put the offered word in; False where none is offered."""
        offers = self.query_one("#offers", OptionList)
        if not offers.display or offers.highlighted is None or not self._offered:
            return False
        editor = self.query_one(Editor)
        line, column = editor.cursor_location
        typed = sql.prefix(self._before())
        editor.replace(self._offered[offers.highlighted], (line, column - len(typed)), (line, column))
        offers.display = False
        return True

    @on(OptionList.OptionSelected, "#offers")
    def _picked(self) -> None:
        self.take_completion()
        self.query_one(Editor).focus()

    def action_choose(self, step: int) -> None:
        offers = self.query_one("#offers", OptionList)
        if offers.display and self._offered:
            offers.highlighted = ((offers.highlighted or 0) + step) % len(self._offered)

    # ------------------------------------------------------------ running

    def action_run(self) -> None:
        query = self.query_one(Editor).text.strip()
        if query:
            self.behind("sql", self._run, query)

    async def _run(self, query: str) -> None:
        assert self.session.store is not None
        self._tell(self.say("sql.running"))
        self.query_one("#offers").display = False
        started = time.monotonic()
        try:
            self._rows = await self.session.store.ask("sql", lambda connection: sql.begin(connection, query))
        except Exception as error:
            if not isinstance(error, ForensicsError) and type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
                raise
            self._tell(str(error).strip(), wrong=True)
            return
        self._asked = query
        history = self.session.state.queries
        self.session.state.queries = [*(one for one in history if one != query), query][-50:]
        self._back = 0
        self._show(time.monotonic() - started)

    def _show(self, seconds: float) -> None:
        rows = self._rows
        assert rows is not None
        table = self.query_one(Grid)
        table.put([cell(self.app, name) for name in rows.columns], self._cells(rows.rows))
        self._count(seconds)
        table.focus()

    def _cells(self, rows: list[tuple[object, ...]]) -> list[list[Text]]:
        return [[cell(self.app, _plain(value), "" if value is not None else "dim", WIDTH) for value in row] for row in rows]

    def _count(self, seconds: float | None = None) -> None:
        rows = self._rows
        assert rows is not None
        more = "" if rows.done else "+"
        text = self.say("sql.rows", n=f"{len(rows.rows):,}{more}")
        self._tell(text + (f" · {seconds:.2f} s" if seconds is not None else "") + ("" if rows.done else f" · {self.say('sql.more')}"))

    @on(DataTable.CellHighlighted)
    def _stood(self, event: DataTable.CellHighlighted) -> None:
        rows = self._rows
        if rows is None or not 0 <= event.coordinate.row < len(rows.rows):
            return
        value = rows.rows[event.coordinate.row][event.coordinate.column]
        text = _plain(value)
        box = self.query_one("#value", Static)
        box.display = len(text) > WIDTH
        box.update(Content(safe(text[:2000])))
        if not rows.done and not self._fetching and event.coordinate.row > len(rows.rows) - 50:
            self._fetching = True
            self.behind("sql-more", self._more, rows, alone=False)

    async def _more(self, rows: Rows) -> None:
        assert self.session.store is not None
        try:
            some, done = await self.session.store.ask("sql", sql.more)
        finally:
            self._fetching = False
        if rows is self._rows:
            rows.rows += some
            rows.done = done
            self.query_one(Grid).add_rows(self._cells(some))
            self._count()

    def _tell(self, text: str, wrong: bool = False) -> None:
        told = self.query_one("#told", Static)
        told.set_class(wrong, "-wrong")
        told.update(Content("\n".join(safe(line) for line in text.splitlines()[:6])))

    # ------------------------------------------------------------ around it

    def action_leave(self) -> None:
        """From the editor to the rows, stopping a query that is running."""
        self.workers.cancel_group(self, "sql")
        self.query_one("#offers").display = False
        self.query_one(Grid).focus()

    def action_edit(self) -> None:
        self.query_one(Editor).focus()

    def action_history(self, step: int) -> None:
        history = self.session.state.queries
        if history:
            self._back = max(-len(history), min(0, self._back + step))
            if self._back < 0:
                self._put(history[self._back])

    def _put(self, query: str) -> None:
        editor = self.query_one(Editor)
        editor.text = query
        editor.move_cursor(editor.document.end)
        editor.focus()

    def action_examples(self) -> None:
        queries = [*sql.EXAMPLES, *reversed([one for one in self.session.state.queries if one not in sql.EXAMPLES])]

        def given(at: int | None) -> None:
            if at is not None:
                self._put(queries[at])

        self.app.push_screen(Choose(self.say("sql.examples"), [Content(safe(one)) for one in queries]), given)

    def action_export(self) -> None:
        query = self._asked or self.query_one(Editor).text.strip()

        def given(target: str | None) -> None:
            if target:
                self.behind("export", self._export, query, target)

        self.app.push_screen(AskLine(self.say("export.title"), "rows.csv", self.say("export.hint")), given)

    async def _export(self, query: str, target: str) -> None:
        assert self.session.store is not None
        try:
            count = await self.session.store.ask("facts", lambda connection: sql.export(connection, query, target))
        except Exception as error:
            if not isinstance(error, ForensicsError) and type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb", "polars"):
                raise
            self._tell(str(error).strip(), wrong=True)
            return
        self.notify(self.say("export.done", n=f"{count:,}", file=safe(target)), markup=False)

    @on(DataTable.CellSelected)
    def _opened(self, event: DataTable.CellSelected) -> None:
        """A row with an event_id, or with a file and a line, is a place in the log."""
        rows = self._rows
        if rows is None:
            return
        row = dict(zip(rows.columns, rows.rows[event.coordinate.row], strict=True))
        if isinstance(row.get("event_id"), int):
            self._go(int(row["event_id"]) >> 40, int(row["event_id"]) & ((1 << 40) - 1))  # type: ignore[call-overload]
        elif isinstance(row.get("file_id"), int) and isinstance(row.get("line_no"), int):
            self._go(int(row["file_id"]), int(row["line_no"]))  # type: ignore[call-overload]

    def _go(self, file_id: int, line_no: int) -> None:
        self.browser.open_line(self.session.path(file_id), line_no)

    def action_copy(self) -> None:
        table, rows = self.query_one(Grid), self._rows
        if rows is not None and table.row_count:
            self.browser.copy(_plain(rows.rows[table.cursor_row][table.cursor_column]))



def _plain(value: object) -> str:
    if value is None:
        return "—"
    return value.isoformat(" ") if hasattr(value, "isoformat") else str(value)
