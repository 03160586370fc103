"""Screen 9: all rules, what became of each on this case, and why; a new rule begins here too."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from rich.text import Text
from textual import on
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import DataTable, Static

from forensics.report import explanation
from forensics.report.page import Look
from forensics.safe_text import safe
from rules.model import Rule
from rules.scan import leaves_of
from tui.colours import cell
from tui.items import Target
from tui.keys import Key, bindings
from tui.screens.dialogs import AskLine
from tui.screens.page import Page
from tui.session import Session
from tui.widgets.grid import Grid

WIDE = 120
SETTLE = 0.12
STATES = ("root", "symptom", "supports", "noise", "quiet")
"""What can become of a rule: a diagnosis, a consequence, a support of another one, a harmless line, nothing."""
_FIELD = re.compile(r"\{[a-z][a-z0-9_]*\.[A-Za-z0-9_]+\}")
"""What a title captures, where nothing was captured."""
_MARKS = {"root": ("●", "bad bold"), "symptom": ("↳", "warning"), "supports": ("+", "good"), "noise": ("~", "dim"), "quiet": (" ", "dim")}


class RulesPage(Page):
    """The rules that fired come first; Enter opens the first line a rule was found on."""

    NAME = "rules"
    KEYS = (
        Key("slash", "narrow", "narrow", "/"),
        Key("x", "fired", "fired", "x"),
        Key("enter", "", "open", "⏎"),
        Key("tab", "app.focus_next", "other-pane", "⇥"),
        Key("y", "copy", "copy", "y"),
    )
    BINDINGS = bindings(KEYS)
    DEFAULT_CSS = """
    RulesPage #both { layout: vertical; height: 1fr; }
    RulesPage #rules { height: 1fr; }
    RulesPage #why { height: 50%; border-top: solid $panel; padding: 0 1; scrollbar-size-vertical: 1; }
    RulesPage #why:focus { border-top: solid $primary; }
    RulesPage.-wide #both { layout: horizontal; }
    RulesPage.-wide #why { height: 1fr; width: 45%; border-top: none; border-left: solid $panel; }
    """

    def __init__(self, session: Session):
        super().__init__(session)
        self._rules: list[tuple[str, Rule]] = []
        self._shown: list[Rule] = []
        self._lines: dict[str, tuple[int, int]] = {}
        """Rule -> (file, line) of its first hit."""
        self._fired_only = False

    def body(self) -> Iterable[Widget]:
        yield Static(self.say("rules.loading"), classes="head", markup=False)
        yield Container(Grid(cursor_type="row", id="rules"), VerticalScroll(Static("", id="why-text", markup=False), id="why"), id="both")

    def fill(self) -> None:
        self.set_class(self.app.size.width >= WIDE, "-wide")
        self.behind("read", self._read)

    async def _read(self) -> None:
        session = self.session
        assert session.store is not None and session.reasons is not None
        rules = await session.store.run(session.reasons.rules)
        rows = await session.store.ask(
            "facts",
            lambda connection: connection.execute(
                "SELECT f.rule, f.role, d.rank, (SELECT count(*) FROM edges e WHERE e.effect = f.finding_id) FROM findings f "
                "LEFT JOIN diagnoses d USING (finding_id)"
            ).fetchall(),
        )
        state = {rule: _became(role, rank, above) for rule, role, rank, above in rows}
        first = await session.store.ask(
            "facts",
            lambda connection: connection.execute(
                "SELECT rule, arg_min(file_id, (ts, event_id)), arg_min(line_no, (ts, event_id)) FROM signals GROUP BY rule"
            ).fetchall(),
        )
        self._lines = {rule: (file_id, line_no) for rule, file_id, line_no in first}
        order = {name: at for at, name in enumerate(STATES)}
        self._rules = sorted(((state.get(rule.id, "quiet"), rule) for rule in rules), key=lambda pair: (order[pair[0]], pair[1].id))
        self._table(session.state.rule)
        self.query_one(Grid).focus()

    def _table(self, ident: str = "") -> None:
        table, lang = self.query_one(Grid), self.session.lang
        heads = [cell(self.app, ""), *(cell(self.app, self.say(f"rules.{name}")) for name in ("id", "title"))]
        rows = []
        words = self.session.state.rules_filter.lower().split()
        self._shown = []
        width = self.app.size.width
        wide = width >= WIDE
        room = max(24, (width * 55 // 100 if wide else width) - (40 if wide else 32) - 9)
        titles = self.session.triage.titles if self.session.triage is not None else {}
        for state, rule in self._rules:
            if self._fired_only and state == "quiet" or not _holds(rule, words):
                continue
            mark, style = _MARKS[state]
            self._shown.append(rule)
            rows.append([
                cell(self.app, mark, style), cell(self.app, rule.id, "" if state != "quiet" else "dim", 40 if wide else 32),
                cell(self.app, _FIELD.sub("…", titles.get(rule.id, rule.title).of(lang)), "bold" if state == "root" else "", room),
            ])  # fmt: skip
        fired = sum(state != "quiet" for state, _ in self._rules)
        narrowed = f" · /{safe(self.session.state.rules_filter)}" if words else ""
        self.query_one(".head", Static).update(self.say("rules.head", shown=len(self._shown), n=len(self._rules), fired=fired) + narrowed)
        at = next((number for number, rule in enumerate(self._shown) if rule.id == ident), 0)
        table.put(heads, rows, at)
        if self._shown:
            self._stood()
        else:
            self.query_one("#why-text", Static).update("")

    def select(self, ident: str) -> None:
        """Put the cursor on a rule, as soon as they are there."""
        self.session.state.rule = ident
        if self._rules:
            self._fired_only = False
            self._table(ident)

    @property
    def rule(self) -> Rule | None:
        at = self.query_one(Grid).cursor_row
        return self._shown[at] if 0 <= at < len(self._shown) else None

    @on(DataTable.RowHighlighted)
    def _stood(self) -> None:
        rule = self.rule
        if rule is not None:
            self.session.state.rule = rule.id
            self.behind("why", self._explain, rule)

    async def _explain(self, rule: Rule) -> None:
        await asyncio.sleep(SETTLE)
        session = self.session
        assert session.store is not None and session.reasons is not None
        reasons = session.reasons
        box = self.query_one("#why", VerticalScroll)
        look = Look(lang=session.lang, width=max(40, box.size.width - 3), colour=True)
        clock = session.clock
        text = await session.store.run(lambda: explanation.render(reasons.of(rule.id), clock, look))
        remedy = rule.remedy.get(session.lang) or rule.remedy.get("en") or ()
        steps = "".join(f"\n  {safe(step)}" for step in remedy)
        place = f"{safe(rule.file)}:{rule.line}" if rule.file else ""
        shown = Content.from_rich_text(Text.from_ansi(text.rstrip()))
        shown += Content.assemble("\n\n", (self.say("rules.remedy"), "bold"), (steps, "$text-success")) if steps else Content()
        about = f"{rule.root_cause} · {session.say(f'layer.{rule.layer}')}"
        shown += Content.assemble("\n\n", (self.say("rules.root-cause") + "  ", "dim"), about)
        shown += Content.assemble("\n", (f"{safe(rule.pack)}  {place}", "dim"))
        self.query_one("#why-text", Static).update(shown)
        box.scroll_home(animate=False)

    @on(DataTable.RowSelected)
    def _opened(self) -> None:
        rule = self.rule
        if rule is None:
            return
        if rule.id not in self._lines:
            self.notify(self.say("rules.no-line"), markup=False)
            return
        file_id, line_no = self._lines[rule.id]
        self.follow(Target("line", self.session.path(file_id), line_no))

    def action_narrow(self) -> None:
        def given(text: str | None) -> None:
            if text is not None:
                self.session.state.rules_filter = text
                self._table(self.session.state.rule)

        self.app.push_screen(AskLine(self.say("narrow.title"), self.session.state.rules_filter), given)

    def action_fired(self) -> None:
        self._fired_only = not self._fired_only
        self._table(self.session.state.rule)

    def action_copy(self) -> None:
        if self.rule is not None:
            self.browser.copy(self.rule.id)



def _became(role: str, rank: int | None, above: int) -> str:
    """One of STATES, of a rule that fired. `above`: how many findings it follows from."""
    if rank is not None:
        return "root"
    return "noise" if role == "noise" else "symptom" if above else "supports"


def _holds(rule: Rule, words: list[str]) -> bool:
    if not words:
        return True
    patterns = " ".join(word for leaf in leaves_of(rule.match) for word in (*leaf.contains, leaf.regex, *leaf.codes, leaf.fact, leaf.metric))
    hay = f"{rule.id} {rule.root_cause} {rule.title.en} {rule.title.zh} {rule.layer} {patterns}".lower()
    return all(word in hay for word in words)
