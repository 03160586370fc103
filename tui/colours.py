"""Colours of the theme for the widgets that are drawn by Rich (tables and trees): no text here is ever markup."""

from __future__ import annotations

from rich.text import Text
from textual.app import App

from forensics.safe_text import safe

NAMES = {
    "bad": "text-error", "warning": "text-warning", "good": "text-success", "accent": "text-accent", "link": "text-primary", "plain": "foreground",
}  # fmt: skip
LEVELS = {"high": "bad", "medium": "warning", "low": "dim"}


def ink(app: App[object], name: str) -> str:
    """A Rich style for a name of NAMES, `dim`, `bold`, or several."""
    out = []
    for one in name.split():
        value = app.theme_variables.get(NAMES.get(one, ""), "")
        out.append(value if value.startswith("#") else one if one in ("dim", "bold", "italic", "reverse") else "")
    return " ".join(part for part in out if part)


def cell(app: App[object], text: object, style: str = "", width: int | None = None) -> Text:
    """A text of a bundle as a cell: harmless, on one line, cut to `width` columns."""
    shown = Text(safe(str(text)), ink(app, style) if style else "", no_wrap=True, overflow="ellipsis", end="")
    if width is not None:
        shown.truncate(width, overflow="ellipsis")
    return shown
