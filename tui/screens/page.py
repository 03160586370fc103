"""What all nine screens have in common: the bars above and below, and that they are drawn anew when the case or the language changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from tui.failures import Tells
from tui.items import Item, Target
from tui.keys import Key
from tui.session import Session
from tui.widgets.bars import KeyBar, PageBar, WorkBar

if TYPE_CHECKING:
    from tui.app import Browser


class Page(Tells, Screen[None]):
    """A screen. `body` makes its widgets, `fill` puts the case into them."""

    NAME: ClassVar[str] = ""
    KEYS: ClassVar[Sequence[Key]] = ()
    NEEDS: ClassVar[str] = "triage"
    """triage: shown as soon as there are diagnoses; lines: not before the lines are stored."""
    DEFAULT_CSS = """
    Page { background: $background; }
    Page > #body { height: 1fr; width: 1fr; }
    Page .waiting { padding: 1 2; color: $text-muted; height: 1fr; }
    Page .head { height: auto; color: $text-muted; padding: 0 1; }
    Page DataTable { height: 1fr; background: $background; scrollbar-size: 1 1; }
    Page DataTable > .datatable--cursor { background: $block-cursor-blurred-background; color: $foreground; text-style: none; }
    Page DataTable:focus > .datatable--cursor { background: $primary-muted; color: $foreground; text-style: none; }
    Page DataTable > .datatable--header { background: $surface; text-style: bold; }
    Page DataTable > .datatable--fixed { background: $background; color: $foreground; }
    """

    def __init__(self, session: Session):
        super().__init__()
        self.session = session
        self._drawn = (session.version, session.lang)
        self._whole = False
        """Whether `body` was drawn, not what stands there until the case is far enough."""
        self._drawing = asyncio.Lock()

    @property
    def browser(self) -> Browser:
        return self.app  # type: ignore[return-value]

    def say(self, key: str, _or: str = "", **values: object) -> str:
        return self.session.say(key, _or, **values)

    # ------------------------------------------------------------ drawing

    @property
    def ready(self) -> bool:
        return self.session.indexed if self.NEEDS == "lines" else self.session.triage is not None

    def compose(self) -> ComposeResult:
        self._drawn = (self.session.version, self.session.lang)
        yield PageBar(self.session, self.NAME)
        yield WorkBar(self.session)
        with Vertical(id="body"):
            self._whole = self.ready
            if self._whole:
                yield from self.body()
            else:
                yield Static(self.waiting(), classes="waiting", markup=False)
        yield KeyBar(self.session, self.KEYS)

    def waiting(self) -> Content:
        """What stands there until the case is far enough."""
        key = "waiting.lines" if self.session.triage is not None else "waiting.triage"
        if self.session.order is None or self.session.failure:
            key = "waiting.never"
        text = Content(self.say(key))
        if self.session.early and self.session.triage is None:
            text += Content.assemble("\n\n", (self.say("work.early"), "bold"), f"  {self.session.early}")
        return text

    def body(self) -> Iterable[Widget]:
        raise NotImplementedError

    def fill(self) -> None:
        """Put the case into the widgets of `body`."""

    def on_mount(self) -> None:
        if self._whole:
            self.fill()

    def on_screen_resume(self) -> None:
        if self._drawn != (self.session.version, self.session.lang):
            self.behind("renew", self.renew)
        self.tell_work()

    async def renew(self) -> None:
        """Draw everything anew, for another state of the case or another language."""
        async with self._drawing:
            await self.recompose()
            if self._whole:
                self.fill()

    def fill_again(self) -> None:
        """After a change of colours: what Rich has drawn is drawn once more."""
        self.behind("renew", self.renew)

    def tell_work(self) -> None:
        for bar in self.query(WorkBar):
            bar.update_work()
        if not self._whole:
            for text in self.query(".waiting").results(Static):
                text.update(self.waiting())

    # ------------------------------------------------------------ going elsewhere

    def follow(self, target: Target) -> None:
        """Go where an item leads."""
        if target.kind == "line":
            self.browser.open_line(target.name, target.line)
        elif target.kind == "rule":
            self.browser.open_rule(target.name)
        elif target.kind == "page":
            self.browser.go(target.name)

    def copy(self, item: Item | None) -> None:
        if item is not None and item.text:
            self.browser.copy(item.text)
