"""The bar of screens at the top, the line that tells of work going on, and the bar of keys at the bottom."""

from __future__ import annotations

import time
from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.widgets import Static

from forensics.report.figures import number, size
from forensics.safe_text import cells, clip, safe
from tui.keys import EVERYWHERE, PAGES, Key
from tui.session import Session

FULL = 100
"""Columns from which the screens have their full names."""


class _Bar(Static):
    """Pieces of text side by side, each of which can be clicked."""

    def __init__(self, session: Session, ident: str):
        super().__init__(id=ident, markup=False)
        self.session = session
        self._actions: list[tuple[int, str]] = []
        """(column behind a piece, what a click on it does)"""

    def joined(self, pieces: Sequence[tuple[Content, str]]) -> Content:
        self._actions = []
        bar = Content()
        for piece, action in pieces:
            bar += piece
            self._actions.append((bar.cell_length, action))
        return bar

    async def on_click(self, event: events.Click) -> None:
        action = next((action for end, action in self._actions if event.x < end), "")
        if action:
            await self.run_action(action)


class PageBar(_Bar):
    """The nine screens; the one that is open stands out."""

    DEFAULT_CSS = """
    PageBar { height: 1; background: $panel; color: $foreground; text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self, session: Session, page: str):
        super().__init__(session, "pages")
        self.page = page

    def render(self) -> Content:
        wide = self.size.width >= FULL
        pieces = []
        for digit, name in enumerate(PAGES, 1):
            word = self.session.say(f"page.{name}" if wide else f"page.{name}.short")
            label = f" {digit} {word} " if wide else f"{digit} {word}"
            piece = Content.assemble((label, "bold reverse" if name == self.page else ""), "" if wide else " ")
            pieces.append((piece, f"app.page('{name}')"))
        bar = self.joined(pieces)
        room = self.size.width - bar.cell_length - 2
        if room > 12:
            name = clip(self.session.name, room)
            bar += Content.assemble((" " * (room - cells(name)) + " " + name, "dim"))
        return bar


class KeyBar(_Bar):
    """The keys of the screen, as many as fit."""

    DEFAULT_CSS = """
    KeyBar { height: 1; background: $panel; color: $foreground; text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self, session: Session, keys: Sequence[Key]):
        super().__init__(session, "keys")
        self.keys = [key for key in keys if key.bar]

    def render(self) -> Content:
        fixed = [self._item(key) for key in EVERYWHERE if key.bar]
        room = self.size.width - sum(item.cell_length for item, _ in fixed)
        pieces: list[tuple[Content, str]] = []
        for key in self.keys:
            piece, action = self._item(key)
            room -= piece.cell_length
            if room < 0:
                break
            pieces.append((piece, action))
        return self.joined([*pieces, *fixed])

    def _item(self, key: Key) -> tuple[Content, str]:
        action = key.action if not key.action or key.action.startswith("app.") else f"screen.{key.action}"
        return Content.assemble((f" {key.label}", "bold $text-accent"), f" {self.session.say(f'key.{key.word}')}"), action


class WorkBar(Static):
    """How far the triage is, with bytes, rate and time left; not there when nothing is going on."""

    DEFAULT_CSS = """
    WorkBar { height: 1; background: $primary-muted; color: $foreground; text-wrap: nowrap; text-overflow: clip; display: none; }
    WorkBar.-going { display: block; }
    WorkBar.-failed { display: block; background: $error-muted; height: auto; max-height: 3; text-wrap: wrap; }
    """

    def __init__(self, session: Session):
        super().__init__(id="work")
        self.session = session
        self._stage, self._begun = "", 0.0

    def on_mount(self) -> None:
        self.update_work()

    def update_work(self) -> None:
        session = self.session
        self.set_class(bool(session.failure), "-failed")
        self.set_class(session.order is not None and not session.failure, "-going")
        self.refresh(layout=True)

    def render(self) -> Content:
        session, going = self.session, self.session.going
        if session.failure:
            return Content.assemble((f" {session.say('work.failed')} ", "bold"), safe(session.failure))
        if going is None:
            return Content(f" {session.say('work.starting')}")
        if going.stage != self._stage:
            self._stage, self._begun = going.stage, time.monotonic()
        parts = [session.say(f"work.{going.stage}")]
        if going.total:
            share = min(100, 100 * going.done // going.total)
            filled = round(share / 100 * 20)
            parts += ["━" * filled + "╌" * (20 - filled), f"{share} %", f"{size(going.done)} / {size(going.total)}"]
            seconds = time.monotonic() - self._begun
            if seconds > 1 and going.done:
                rate = going.done / seconds
                parts.append(f"{size(rate)}/s")
                parts.append(session.say("work.left", n=max(0, round((going.total - going.done) / rate))))
        if going.lines:
            parts.append(session.say("lines", n=number(going.lines, session.lang)))
        text = "  ".join(parts)
        room = self.size.width - cells(text) - 4
        return Content(f" {text}  {clip(safe(going.what), room) if room > 12 else ''}")
