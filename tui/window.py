"""The stretch of lines that a log view holds: a few thousand around the cursor, read on at both ends, forgotten at the far one."""

from __future__ import annotations

from tui.queries import Line

CHUNK = 300
"""Lines that are read at a time."""
AHEAD = 200
"""Lines that are held beyond the cursor, so that a page is there before it is asked for."""
HELD = 3000


class Window:
    """Lines without gaps, the cursor among them, and the first line that is shown."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.cursor = 0
        self.top = 0
        self.at_start = self.at_end = False
        """Whether there is nothing before, or behind, what is held."""
        self.base = 0
        """Where the first held line lies, counted from that on which the cursor was put last."""

    @property
    def offset(self) -> int:
        """How many lines the cursor is behind that on which it was put by `reset`."""
        return self.base + self.cursor

    def reset(self, before: list[Line], after: list[Line], at_start: bool, at_end: bool) -> None:
        """Hold these; the cursor goes to the first of `after`, or to the last line there is."""
        self.lines = before + after
        self.cursor = max(0, min(len(before), len(self.lines) - 1))
        self.top = self.cursor
        self.base = -self.cursor
        self.at_start, self.at_end = at_start, at_end

    @property
    def line(self) -> Line | None:
        """That under the cursor."""
        return self.lines[self.cursor] if self.lines else None

    def wants_more(self, back: bool) -> bool:
        """Whether the cursor, or what is shown, comes near the end of what is held."""
        if not self.lines or (self.at_start if back else self.at_end):
            return False
        return self.top < AHEAD if back else len(self.lines) - self.cursor - 1 < AHEAD

    def put_after(self, lines: list[Line], at_end: bool) -> None:
        self.lines += lines
        self.at_end = at_end
        spare = min(len(self.lines) - HELD, self.top - AHEAD)
        if spare > 0:
            del self.lines[:spare]
            self.top -= spare
            self.cursor -= spare
            self.base += spare
            self.at_start = False

    def put_before(self, lines: list[Line], at_start: bool) -> None:
        self.lines = lines + self.lines
        self.top += len(lines)
        self.cursor += len(lines)
        self.base -= len(lines)
        self.at_start = at_start
        spare = len(self.lines) - max(HELD, self.cursor + AHEAD)
        if spare > 0:
            del self.lines[len(self.lines) - spare :]
            self.at_end = False

    def move(self, delta: int, height: int) -> int:
        """Move the cursor; what of the way was left for want of lines."""
        wanted = self.cursor + delta
        self.cursor = max(0, min(wanted, len(self.lines) - 1))
        self.show_cursor(height)
        return wanted - self.cursor

    def turn(self, pages: int, height: int) -> int:
        """Move view and cursor by whole pages, as a pager does; what of the way was left for want of lines."""
        step = pages * max(1, height - 1)
        self.top = max(0, min(self.top + step, max(0, len(self.lines) - height)))
        return self.move(step, height)

    def scroll(self, delta: int, height: int) -> None:
        """Move the view; the cursor stays where it is, or at its edge."""
        self.top = max(0, min(self.top + delta, max(0, len(self.lines) - height)))
        self.cursor = max(self.top, min(self.cursor, self.top + height - 1, max(0, len(self.lines) - 1)))

    def show_cursor(self, height: int) -> None:
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + height:
            self.top = self.cursor - height + 1
        self.top = max(0, min(self.top, max(0, len(self.lines) - height)))

    def centre(self, height: int) -> None:
        self.top = max(0, min(self.cursor - height // 3, max(0, len(self.lines) - height)))
