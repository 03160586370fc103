"""A page of text for a terminal: wrapped to its width, wide characters counted as two columns, coloured only where wanted."""

from __future__ import annotations

import re

import msgspec

from forensics.safe_text import cells, clip, safe

STYLES = {"bold": "1", "dim": "2", "red": "1;31", "yellow": "33", "green": "32", "cyan": "36", "magenta": "35"}
_WIDE = "\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff"
_CLOSERS = "，。；：！？、）》」』】”’…"
_OPENERS = "（《「『【“‘"
_UNIT = re.compile(f"[ ]+|[{_OPENERS}]*(?:[{_WIDE}]|[^ {_WIDE}{_OPENERS}{_CLOSERS}]+)[{_CLOSERS}]*|[{_OPENERS}{_CLOSERS}]+")
_ASCII = str.maketrans({"→": "->", "·": "|", "…": "...", "×": "x", "─": "-"})


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """How a report is to look. The defaults are those of a pipe."""

    lang: str = "en"
    width: int = 80
    colour: bool = False
    ascii: bool = False
    """The stream takes no arrows and dots: plain signs instead."""
    verbose: bool = False
    commands: frozenset[str] = frozenset()
    """Commands that are installed, so that the report names no others."""


def wrap(text: str, width: int) -> list[str]:
    """`text`, one line and safe, as lines of at most `width` columns; Chinese breaks between characters, but not before a comma."""
    lines, line, used = [], "", 0
    for unit in _UNIT.findall(text):
        size = cells(unit)
        if used + size > width and line:
            lines.append(line.rstrip())
            line, used = "", 0
            if unit.isspace():
                continue
        while size > width:
            piece = clip(unit, width, "")
            if not piece:
                break
            lines.append(piece)
            unit = unit[len(piece) :]
            size = cells(unit)
        line, used = line + unit, used + size
    if line.rstrip():
        lines.append(line.rstrip())
    return lines or [""]


class Page:
    """Collects lines; every text that comes in is made safe here, so that nothing else has to think of it."""

    def __init__(self, look: Look):
        self.look = look
        self.width = max(40, look.width)
        self._lines: list[str] = []

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if style and self.look.colour and text else text

    def blank(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def put(self, text: str, style: str = "", indent: int = 0, hang: int = 0, limit: int = 0) -> None:
        """One paragraph; `hang`: further indent of its second and later lines; `limit`: at most so many lines (0: all)."""
        self.row("", text, style=style, indent=indent, column=0, hang=hang, limit=limit)

    def row(
        self, label: str, text: str, *, lead: str = "", style: str = "", lead_style: str = "", label_style: str = "dim",
        indent: int = 0, column: int = 0, hang: int = 0, limit: int = 0,
    ) -> None:  # fmt: skip
        """A label in a column `column` wide and a paragraph beside it that begins with `lead`, which has a style of its own."""
        lead, label = safe(lead), safe(label)
        room = max(16, self.width - indent - column - hang)
        first, *rest = wrap(lead + safe(text), room + hang) if not hang else _hung(lead + safe(text), room, hang)
        if limit and 1 + len(rest) > limit:
            rest = rest[: limit - 1]
            last = rest[-1] if rest else first
            cut = clip(last, room - 1, "") + "…"
            first, rest = (first, [*rest[:-1], cut]) if rest else (cut, rest)
        front = " " * indent + self.paint(label, label_style) + " " * max(0, column - cells(label))
        if lead and first.startswith(lead):
            self._lines.append(front + self.paint(lead, lead_style) + self.paint(first[len(lead) :], style))
        else:
            self._lines.append(front + self.paint(first, style))
        self._lines += [" " * (indent + column + hang) + self.paint(line, style) for line in rest]

    def split(self, left: list[tuple[str, str]], right: str, indent: int = 0) -> None:
        """Styled pieces on the left and `right` at the right margin; below, wrapped, where the line has no room for both."""
        pieces = [(safe(text), style) for text, style in left]
        right = safe(right)
        used = indent + sum(cells(text) for text, _ in pieces)
        if used + 2 + cells(right) <= self.width:
            line = " " * indent + "".join(self.paint(text, style) for text, style in pieces)
            self._lines.append((line + " " * (self.width - used - cells(right)) + self.paint(right, "dim")).rstrip(" ") if right else line)
            return
        head, (text, style) = pieces[:-1], pieces[-1]
        begin = indent + sum(cells(t) for t, _ in head)
        first, *rest = wrap(text, max(16, self.width - begin))
        self._lines.append(" " * indent + "".join(self.paint(t, s) for t, s in head) + self.paint(first, style))
        self._lines += [" " * begin + self.paint(line, style) for line in rest]
        if right:
            self.put(right, "dim", indent=begin if begin < self.width // 2 else indent)

    def text(self) -> str:
        page = "\n".join(self._lines).rstrip("\n") + "\n"
        return page.translate(_ASCII) if self.look.ascii else page


def _hung(text: str, room: int, hang: int) -> list[str]:
    """Wrapped so that the first line is `hang` columns longer than the others."""
    first = wrap(text, room + hang)[0]
    rest = text[len(first) :].lstrip()
    return [first, *(wrap(rest, room) if rest else [])]
