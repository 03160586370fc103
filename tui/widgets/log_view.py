"""Lines of a case under one another, as many as fit; only those around the cursor are in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection

import regex
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from forensics.report.figures import Clock
from forensics.safe_text import cells, safe
from tui import queries
from tui.failures import Tells
from tui.queries import FIRST, LAST, Key, Line, View
from tui.store import Lane, Store
from tui.window import CHUNK, Window

WIDE = 110
"""Columns from which all fields of a line are shown."""
PATIENCE = 0.05
"""Seconds a regex may take on one shown line."""
_LETTER = {"DEBUG": "D", "INFO": "I", "EVENT": "V", "WARNING": "W", "ERROR": "E", "FATAL": "F"}
SOURCES = {"device-os": "dev-os", "environment": "env", "error-block": "errblk", "device": "device", "torch_npu": "torchnpu"}
"""Names of sources that are too long for their column."""


class LogView(Tells, Widget, can_focus=True):
    """Shows a `View` of the lines; the cursor is a line."""

    DEFAULT_CSS = """
    LogView { height: 1fr; width: 1fr; background: $background; }
    LogView > .log--time { text-style: dim; }
    LogView > .log--who { color: $text-accent; }
    LogView > .log--debug { text-style: dim; }
    LogView > .log--plain { color: $foreground; }
    LogView > .log--warning { color: $text-warning; }
    LogView > .log--bad { color: $text-error; }
    LogView > .log--mark { color: $text-success; text-style: bold; }
    LogView > .log--cursor { background: $block-cursor-blurred-background; text-style: bold; }
    LogView:focus > .log--cursor { background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold; }
    LogView > .log--found { background: $warning; color: black; text-style: bold underline; }
    LogView > .log--bar { color: $scrollbar; }
    LogView > .log--thumb { color: $primary; }
    """
    COMPONENT_CLASSES = {
        "log--time", "log--who", "log--debug", "log--plain", "log--warning", "log--bad", "log--mark", "log--cursor", "log--found", "log--bar",
        "log--thumb",
    }  # fmt: skip
    BINDINGS = [
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown,space,ctrl+f", "turn(1)", show=False),
        Binding("pageup,b,ctrl+b", "turn(-1)", show=False),
        Binding("ctrl+d", "half(1)", show=False),
        Binding("ctrl+u", "half(-1)", show=False),
        Binding("home,g", "end(-1)", show=False),
        Binding("end,G", "end(1)", show=False),
        Binding("right,l", "shift(16)", show=False),
        Binding("left,h", "shift(-16)", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another line, or on none."""

        def __init__(self, view: LogView, line: Line | None):
            super().__init__()
            self.view, self.line = view, line

        @property
        def control(self) -> LogView:
            return self.view

    class Chosen(Message):
        """Enter, or a double click, on a line."""

        def __init__(self, view: LogView, line: Line):
            super().__init__()
            self.view, self.line = view, line

        @property
        def control(self) -> LogView:
            return self.view

    def __init__(self, store: Store, clock: Clock, lane: Lane = "page", nodes: int = 1, **known: str | None):
        super().__init__(id=known.get("id"))
        self.store, self.clock, self.lane, self.nodes = store, clock, lane, nodes
        self.view = View()
        self.window = Window()
        self.shift = 0
        self.found: regex.Pattern[str] | None = None
        """What is highlighted."""
        self.marked: Collection[int] = ()
        """Event ids."""
        self.place: Callable[[Line], float] | None = None
        """Where among all lines one lies, 0 to 1; without it no bar is drawn."""
        self.goto_place: Callable[[float], None] | None = None
        """What a click on the bar does."""
        self._wish = 0
        """Lines the cursor still wants to go, once they are read."""
        self._reading = {True: False, False: False}
        self.era = 0
        """Counts jumps: what was asked for before one is not wanted after it."""
        self.landed = 0
        """The jump that the lines held now come from."""
        self.empty = ""
        """What stands there when there are no lines."""
        self.busy = False
        self._styles: dict[str, Style] = {}

    # ------------------------------------------------------------ going somewhere

    async def show(self, key: Key, view: View | None = None) -> None:
        """Show the lines around a key, with the cursor on it, or on the next line of the view."""
        self.era += 1
        era = self.era
        if view is not None:
            self.view = view
        self._wish = 0
        self._reading = {True: False, False: False}
        height = max(8, self.size.height)
        chosen = self.view
        self.busy = True

        try:
            before, after = await self.store.ask(self.lane, lambda connection: queries.around(connection, chosen, key, CHUNK))
        finally:
            self.busy = False
        if era != self.era:
            return
        self.landed = era
        self.window.reset(before, after, len(before) < CHUNK, len(after) < CHUNK)
        self.window.centre(height)
        self._changed()

    def go(self, key: Key, view: View | None = None) -> None:
        """As `show`, in the background."""
        self.behind(f"show-{self.lane}", self.show, key, view)

    def _changed(self) -> None:
        self.refresh()
        self.post_message(self.Moved(self, self.window.line))
        self._read_on()

    def _read_on(self) -> None:
        for back in (False, True):
            if not self._reading[back] and (self.window.wants_more(back) or (self._wish < 0 if back else self._wish > 0)):
                if self.window.lines and not (self.window.at_start if back else self.window.at_end):
                    self._reading[back] = True
                    self.behind(f"more-{self.lane}", self._more, back, self.era, alone=False)

    async def _more(self, back: bool, era: int) -> None:
        key = self.window.lines[0 if back else -1].key
        chosen = self.view
        try:
            lines = await self.store.ask(self.lane, lambda connection: queries.page(connection, chosen, key, CHUNK, back=back))
        except BaseException:
            if era == self.era:
                self._reading[back] = False
            raise
        if era != self.era:
            return
        self._reading[back] = False
        if back:
            self.window.put_before(lines, len(lines) < CHUNK)
        else:
            self.window.put_after(lines, len(lines) < CHUNK)
        if self._wish and (self._wish < 0) == back:
            wish, self._wish = self._wish, 0
            self._left(self.window.move(wish, self.size.height))
        self._changed()

    def _left(self, rest: int) -> None:
        if rest and self.window.lines and not (self.window.at_start if rest < 0 else self.window.at_end):
            self._wish = max(-5 * CHUNK, min(5 * CHUNK, self._wish + rest))

    @property
    def line(self) -> Line | None:
        return self.window.line

    # ------------------------------------------------------------ keys and mouse

    def action_move(self, delta: int) -> None:
        self._left(self.window.move(delta, self.size.height))
        self._changed()

    def action_turn(self, pages: int) -> None:
        self._left(self.window.turn(pages, self.size.height))
        self._changed()

    def action_half(self, sign: int) -> None:
        self.action_move(sign * max(1, self.size.height // 2))

    def action_end(self, sign: int) -> None:
        if sign < 0:
            self.go(FIRST)
        else:
            self.go(LAST)

    def action_shift(self, delta: int) -> None:
        self.shift = max(0, min(self.shift + delta, queries.MESSAGE))
        self.refresh()

    def action_choose(self) -> None:
        if self.line is not None:
            self.post_message(self.Chosen(self, self.line))

    def on_click(self, event: events.Click) -> None:
        self.focus()
        if self.place is not None and event.x == self.size.width - 1:
            if self.goto_place is not None:
                self.goto_place(event.y / max(1, self.size.height - 1))
            return
        at = self.window.top + event.y
        if 0 <= at < len(self.window.lines):
            self.window.cursor = at
            self._changed()
            if event.chain > 1:
                self.action_choose()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.window.scroll(3, self.size.height)
        self._changed()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.window.scroll(-3, self.size.height)
        self._changed()

    def on_resize(self) -> None:
        self.window.show_cursor(max(1, self.size.height))

    # ------------------------------------------------------------ drawing

    def notify_style_update(self) -> None:
        self._styles.clear()
        super().notify_style_update()

    def _style(self, name: str) -> Style:
        if name not in self._styles:
            self._styles[name] = self.get_component_rich_style(f"log--{name}", partial=True)
        return self._styles[name]

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        at = self.window.top + y
        lines = self.window.lines
        if at >= len(lines):
            text = self.empty if not lines and y == 0 and not self.busy else ""
            return Strip([Segment(f" {text}", base)]).adjust_cell_length(width, base)
        line = lines[at]
        room = width - 1 if self.place is not None else width
        strip = self._strip(line, room, base).adjust_cell_length(room, base)
        if at == self.window.cursor:
            strip = Strip(Segment.apply_style(strip, post_style=self.get_component_rich_style("log--cursor")), room)
        if self.place is not None:
            strip = Strip([*strip, self._bar(y, base)], width)
        return strip

    def _bar(self, y: int, base: Style) -> Segment:
        assert self.place is not None
        height = max(1, self.size.height - 1)
        line = self.window.lines[min(self.window.cursor, len(self.window.lines) - 1)]
        here = round(self.place(line) * height)
        return Segment("█", base + self._style("thumb")) if y == here else Segment("│", base + self._style("bar"))

    def _strip(self, line: Line, width: int, base: Style) -> Strip:
        loud = {"WARNING": "warning", "ERROR": "bad", "FATAL": "bad", "DEBUG": "debug"}.get(line.severity, "plain")
        time, who, plain = base + self._style("time"), base + self._style("who"), base + self._style(loud)
        parts = [Segment("●" if line.event_id in self.marked else " ", base + self._style("mark"))]
        stamp = self.clock.time(line.ts) if line.ts is not None else ""
        if self.clock.dated:
            parts.append(Segment(f"{stamp[5:]:<18} ", time))
        else:
            parts.append(Segment(f"{stamp:<12} ", time))
        parts.append(Segment(f"{_LETTER.get(line.severity, ' ')} ", plain))
        device = f"d{line.device}" if line.device is not None else ""
        source = fitted(SOURCES.get(line.source, line.source), 8)
        if width >= WIDE:
            if self.nodes > 1:
                parts.append(Segment(f"{fitted(line.node, 10)} ", who))
            pid = "" if line.pid is None else str(line.pid)
            parts.append(Segment(f"{device:<4}{source} {fitted(line.module, 10)} {pid:>7} ", who))
        else:
            if self.nodes > 1:
                parts.append(Segment(f"{fitted(line.node, 6)} ", who))
            parts.append(Segment(f"{device:<4}{source} ", who))
        used = sum(segment.cell_length for segment in parts)
        parts += self._message(line, max(0, width - used), plain)
        return Strip(parts)

    def _message(self, line: Line, room: int, style: Style) -> list[Segment]:
        first = line.message.split("\n", 1)[0]
        text = safe(first[: self.shift + 2 * room + 200])
        more = f" +{line.n_lines - 1}" if line.n_lines > 1 else ""
        pieces = self._highlighted(text, style)
        strip = Strip(pieces)
        if more and self.shift == 0:
            strip = strip.crop(0, max(0, room - cells(more)))
            return [*strip, Segment(more, style + self._style("time"))]
        return list(strip.crop(self.shift, self.shift + room))

    def _highlighted(self, text: str, style: Style) -> list[Segment]:
        if self.found is None:
            return [Segment(text, style)]
        out, at = [], 0
        try:
            for match in self.found.finditer(text, timeout=PATIENCE):
                if match.end() > match.start():
                    out += [Segment(text[at : match.start()], style), Segment(match.group(), style + self._style("found"))]
                    at = match.end()
        except TimeoutError:
            pass
        return [*out, Segment(text[at:], style)]


def fitted(text: str, width: int) -> str:
    """A name in a column of its own: safe, cut or filled to `width`."""
    text = safe(text)
    size = cells(text)
    if size <= width:
        return text + " " * (width - size)
    while cells(text) > width - 1:
        text = text[:-1]
    return text + "…" + " " * (width - 1 - cells(text))
