"""Screen 5: versions, variables, arguments, limits of all nodes side by side; what does not fit is marked, with the rule that says so."""

from __future__ import annotations

from collections.abc import Iterable

from textual import on
from textual.content import Content
from textual.widget import Widget
from textual.widgets import DataTable, Static

from forensics.safe_text import safe
from tui.colours import cell
from tui.details import rule_link
from tui.environment import Fact, judge, read
from tui.items import Target
from tui.keys import Key, bindings
from tui.screens.dialogs import AskLine
from tui.screens.page import Page
from tui.session import Session
from tui.widgets.grid import Grid


class EnvironmentPage(Page):
    """Enter opens the line a fact was read from."""

    NAME = "environment"
    KEYS = (
        Key("enter", "", "open", "⏎"),
        Key("slash", "narrow", "narrow", "/"),
        Key("x", "troubles", "troubles", "x"),
        Key("w", "why", "why", "w"),
        Key("y", "copy", "copy", "y"),
    )
    BINDINGS = bindings(KEYS)
    DEFAULT_CSS = """
    EnvironmentPage #trouble { height: auto; max-height: 8; min-height: 2; border-top: solid $panel; padding: 0 1; }
    """

    def __init__(self, session: Session):
        super().__init__(session)
        self._facts: list[Fact] = []
        self._shown: list[Fact] = []
        self._named: list[str] = []
        self._words = ""
        self._wrong_only = False

    def body(self) -> Iterable[Widget]:
        yield Static("", classes="head", markup=False)
        yield Grid(cursor_type="row", id="facts")
        yield Static("", id="trouble", markup=False)

    def fill(self) -> None:
        self.behind("read", self._read)

    async def _read(self) -> None:
        session = self.session
        assert session.store is not None and session.reasons is not None
        facts = await session.store.ask("facts", read)
        self._facts = facts
        self._named = sorted({node for fact in facts for node in fact.values})
        self._table()
        self.query_one(Grid).focus()
        if not facts:
            return
        reasons = session.reasons

        def judged() -> None:
            judge(facts, reasons.conclusion().findings)

        await session.store.run(judged)
        self._table()

    def _table(self) -> None:
        table = self.query_one(Grid)
        at = table.cursor_row
        head = self.query_one(".head", Static)
        if not self._facts:
            head.update(self.say("environment.none"))
            return
        nodes = [cell(self.app, node or self.say("environment.bundle")) for node in self._named]
        titles = [cell(self.app, ""), cell(self.app, self.say("environment.name")), *nodes]
        rows = []
        words = self._words.lower().split()
        self._shown = [fact for fact in self._facts if self._wanted(fact, words)]
        width = max(12, (self.app.size.width - 38) // max(1, len(self._named)))
        for fact in self._shown:
            mark = cell(self.app, "✗", "bad bold") if fact.troubles else cell(self.app, "≠", "warning bold") if fact.differs else cell(self.app, "")
            name = fact.name if fact.device is None or f".{fact.device}." in fact.name else f"{fact.name} [{fact.device}]"
            style = "bad" if fact.troubles else "warning" if fact.differs else ""
            values = [cell(self.app, " / ".join(one.text for one in fact.values.get(node, ())), style, width) for node in self._named]
            rows.append([mark, cell(self.app, name, "bold" if fact.troubles else "", 32), *values])
        wrong = sum(bool(fact.troubles) for fact in self._facts)
        differ = sum(fact.differs for fact in self._facts)
        note = f" · /{safe(self._words)}" if self._words else ""
        head.update(self.say("environment.head", n=len(self._shown), wrong=wrong, differ=differ) + note)
        table.put(titles, rows, at)
        self._tell()

    def _wanted(self, fact: Fact, words: list[str]) -> bool:
        if self._wrong_only and not fact.troubles and not fact.differs:
            return False
        hay = " ".join([fact.name, *(one.text for values in fact.values.values() for one in values)]).lower()
        return all(word in hay for word in words)

    @property
    def fact(self) -> Fact | None:
        at = self.query_one(Grid).cursor_row
        return self._shown[at] if 0 <= at < len(self._shown) else None

    def _tell(self) -> None:
        fact = self.fact
        text = Content()
        if fact is not None:
            for trouble in fact.troubles:
                text += Content.assemble((("✗ "), "$text-error bold"), safe(trouble.text.of(self.session.lang)))
                text += Content("  ") + rule_link(trouble.rule) + "\n" if trouble.rule else Content("\n")
            if fact.differs and not fact.troubles:
                text += Content.assemble(("≠ ", "$text-warning bold"), self.say("environment.differs"), "\n")
            for node, values in fact.values.items():
                for one in values:
                    place = f"{safe(self.session.path(one.file_id))}:{one.line_no}"
                    text += Content.assemble((f"{safe(node)} " if node else "", "dim"), safe(one.text), (f"  {place}", "$text-primary"), "\n")
        self.query_one("#trouble", Static).update(text[:-1] if text.plain.endswith("\n") else text)

    @on(DataTable.RowHighlighted)
    def _stood(self) -> None:
        self._tell()

    @on(DataTable.RowSelected)
    def _chosen(self) -> None:
        if self.fact is not None:
            one = next((value for values in self.fact.values.values() for value in values), None)
            if one is not None:
                self.follow(Target("line", self.session.path(one.file_id), one.line_no))

    def action_narrow(self) -> None:
        def given(text: str | None) -> None:
            if text is not None:
                self._words = text
                self._table()

        self.app.push_screen(AskLine(self.say("narrow.title"), self._words), given)

    def action_troubles(self) -> None:
        self._wrong_only = not self._wrong_only
        self._table()

    def action_why(self) -> None:
        rules = [trouble.rule for trouble in self.fact.troubles if trouble.rule] if self.fact is not None else []
        if rules:
            self.follow(Target("rule", rules[0]))

    def action_copy(self) -> None:
        if self.fact is not None:
            values = [f"{node} {one.text}".strip() for node, some in self.fact.values.items() for one in some]
            self.browser.copy(f"{self.fact.name}: {'; '.join(values)}")
