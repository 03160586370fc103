"""Screen 1: the ranked diagnoses, and of the selected one its reasons, evidence, remedy and consequences."""

from __future__ import annotations

from collections.abc import Iterable

from textual import events, on
from textual.containers import Container
from textual.content import Content
from textual.widget import Widget
from textual.widgets import OptionList, Static

from forensics.report.words import counts, environment
from forensics.safe_text import safe
from tui.items import NOWHERE, Item, Section, sections
from tui.keys import Key, bindings
from tui.screens.page import Page
from tui.widgets.item_list import ItemList

WIDE = 120
"""Columns from which list and details stand side by side."""


class DiagnosesPage(Page):
    """Enter on evidence opens the log there, on a rule the rule."""

    NAME = "diagnoses"
    KEYS = (
        Key("enter", "", "open", "⏎"),
        Key("tab", "app.focus_next", "other-pane", "⇥"),
        Key("y", "copy", "copy", "y"),
    )
    BINDINGS = bindings(KEYS)
    DEFAULT_CSS = """
    DiagnosesPage #both { layout: vertical; height: 1fr; }
    DiagnosesPage #list { height: auto; max-height: 40%; border-bottom: solid $panel; }
    DiagnosesPage.-wide #both { layout: horizontal; }
    DiagnosesPage.-wide #list { width: 2fr; height: 1fr; max-height: 100%; border-bottom: none; border-right: solid $panel; }
    DiagnosesPage.-wide #items { width: 3fr; }
    """

    def body(self) -> Iterable[Widget]:
        yield Static(self._head(), classes="head", markup=False)
        yield Container(ItemList(id="list"), ItemList(id="items"), id="both")

    def _head(self) -> Content:
        triage = self.session.triage
        assert triage is not None
        bundle = triage.bundle
        span = self.session.clock.span(bundle.first, bundle.last)
        parts = [span, *environment(triage.facts)]
        head = Content.assemble((safe(bundle.name), "bold $foreground"), "   " + " · ".join(counts(bundle, self.session.lang)))
        return head + "\n" + " · ".join(safe(part) for part in parts if part)

    def fill(self) -> None:
        self.set_class(self.app.size.width >= WIDE, "-wide")
        self._sections: list[Section] = sections(self.session, self._width("items"), self._width("list"))
        titles = [Item(section.title, NOWHERE, section.title.plain) for section in self._sections]
        self.query_one("#list", ItemList).put(titles, self.session.state.diagnosis)
        self._show(self.session.state.diagnosis)
        self.query_one("#list", ItemList).focus()

    def _width(self, pane: str) -> int:
        """Columns of a pane for text: without its padding, bar and border."""
        width = self.app.size.width
        if width < WIDE:
            return width - 3
        return width * (3 if pane == "items" else 2) // 5 - 4

    def _show(self, number: int) -> None:
        if self._sections:
            number = max(0, min(number, len(self._sections) - 1))
            self.query_one("#items", ItemList).put(self._sections[number].items)

    @on(OptionList.OptionHighlighted, "#list")
    def _selected(self, event: OptionList.OptionHighlighted) -> None:
        self.session.state.diagnosis = event.option_index
        self._show(event.option_index)

    @on(OptionList.OptionSelected, "#list")
    def _entered(self) -> None:
        self.query_one("#items", ItemList).focus()

    @on(OptionList.OptionSelected, "#items")
    def _followed(self, event: OptionList.OptionSelected) -> None:
        item = self.query_one("#items", ItemList).item
        if item is not None:
            self.follow(item.target)

    def on_resize(self, event: events.Resize) -> None:
        if self.ready and self.query("#list"):
            self.fill()

    def action_copy(self) -> None:
        focused = self.focused
        self.copy(focused.item if isinstance(focused, ItemList) else None)
