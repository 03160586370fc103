"""Screen 6: where the time of each step goes, the operators that take it, the longest kernels, and the gaps in which the device waited."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from forensics.report.figures import number
from tui import profile
from tui.colours import cell, ink
from tui.keys import Key, bindings
from tui.profile import Profile, span, stacked
from tui.screens.page import Page
from tui.session import Session
from tui.widgets.grid import Grid

VIEWS = ("operators", "kernels", "gaps")
BAR = 24


class ProfilePage(Page):
    """Shown only where the case holds profiler files."""

    NAME = "profile"
    KEYS = (
        Key("v", "view(1)", "profile-view", "v"),
        Key("tab", "app.focus_next", "other-pane", "⇥"),
        Key("y", "copy", "copy", "y"),
    )
    BINDINGS = bindings(KEYS)
    DEFAULT_CSS = """
    ProfilePage #steps { height: auto; max-height: 40%; }
    ProfilePage #title { height: 1; background: $surface; padding: 0 1; text-style: bold; }
    """

    def __init__(self, session: Session):
        super().__init__(session)
        self._profile: Profile | None = None
        self._at = 0

    def body(self) -> Iterable[Widget]:
        yield Static("", classes="head", markup=False)
        yield Grid(cursor_type="row", id="steps")
        yield Static("", id="title", markup=False)
        yield Grid(cursor_type="row", id="rows")

    def fill(self) -> None:
        self.behind("read", self._read)

    async def _read(self) -> None:
        assert self.session.store is not None
        self._profile = await self.session.store.ask("facts", profile.read)
        found = self._profile
        if found is None:
            self.query_one(".head", Static).update(self.say("profile.none"))
            for name in ("#steps", "#title", "#rows"):
                self.query_one(name).display = False
            return
        self._steps(found)
        self._rows(found)
        self.query_one("#rows").focus()

    def _steps(self, found: Profile) -> None:
        table, app = self.query_one("#steps", Grid), self.app
        table.display = bool(found.steps)
        legend: list[str | tuple[str, str]] = [self.say("profile.legend") + "  "]
        for colour, word in (("$text-success", "computing"), ("$text-warning", "exposed"), ("$text-error", "free")):
            legend += [("█ ", colour), f"{self.say(f'profile.{word}')}  "]
        self.query_one(".head", Static).update(Content.assemble(*legend))
        titles = [cell(app, self.say(f"profile.{name}") if name else "") for name in ("rank", "step", "total", "", "computing", "exposed", "free")]
        rows = []
        for step in found.steps:
            parts = [step.computing, step.exposed, step.free]
            whole = sum(parts) or 1
            bar = Text(no_wrap=True, end="")
            for columns, style in zip(stacked(parts, BAR), ("good", "warning", "bad"), strict=True):
                bar.append("█" * columns, ink(app, style))
            shares = [cell(app, f"{100 * part / whole:.0f} %") for part in parts]
            rank, number_ = ("" if value is None else str(value) for value in (step.rank, step.step))
            rows.append([cell(app, rank), cell(app, number_), cell(app, span(step.total)), bar, *shares])
        table.put(titles, rows)

    def _rows(self, found: Profile) -> None:
        app, lang, view = self.app, self.session.lang, VIEWS[self._at]
        table = self.query_one("#rows", Grid)
        self.query_one("#title", Static).update(self.say(f"profile.{view}"))
        if view == "operators":
            titles = [cell(app, self.say(f"profile.{name}")) for name in ("op_type", "core", "share", "total", "count", "mean", "longest", "bound")]
            rows = [
                [
                    cell(app, one.op_type, "bold", 32), cell(app, one.core), cell(app, f"{100 * one.share:.1f} %", "accent"),
                    cell(app, span(one.total)), cell(app, number(one.count, lang)), cell(app, span(one.mean)),
                    cell(app, span(one.longest)), cell(app, one.bound),
                ]
                for one in found.operators
            ]  # fmt: skip
            table.put(titles, rows)
            return
        titles = [cell(app, self.say(f"profile.{name}")) for name in ("wait", "duration", "name", "rank", "step", "shapes")]
        rows = []
        for kernel in found.slowest if view == "kernels" else found.gaps:
            rank, step = ("" if value is None else str(value) for value in (kernel.rank, kernel.step))
            rows.append([
                cell(app, span(kernel.wait), "bad" if view == "gaps" else ""),
                cell(app, span(kernel.duration), "accent" if view == "kernels" else ""), cell(app, kernel.name, "bold", 40),
                cell(app, rank), cell(app, step), cell(app, kernel.shapes, "", 60),
            ])  # fmt: skip
        table.put(titles, rows)

    def action_view(self, step: int) -> None:
        self._at = (self._at + step) % len(VIEWS)
        if self._profile is not None:
            self._rows(self._profile)

    def _table(self) -> Grid:
        focused = self.focused
        return focused if isinstance(focused, Grid) else self.query_one("#rows", Grid)

    def action_copy(self) -> None:
        table = self._table()
        if table.row_count:
            self.browser.copy(table.row_text)
