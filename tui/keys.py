"""The screens, and the keys of each: one table from which bindings, the bar at the bottom and the help are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.binding import Binding, BindingType

PAGES = ("diagnoses", "log", "graph", "devices", "environment", "profile", "sql", "replay", "rules")
"""In the order of their keys, 1 to 9."""


class Key(NamedTuple):
    """A key, what it does, and the word for it (`key.<word>`)."""

    keys: str
    """As Textual names them, several by commas."""
    action: str
    word: str
    shown: str = ""
    """As the bar shows it."""
    bar: bool = True
    """Whether it stands in the bar; all stand in the help."""

    @property
    def label(self) -> str:
        return self.shown or self.keys.split(",")[0]


EVERYWHERE = (
    Key("question_mark,f1", "app.help", "help", "?"),
    Key("ctrl+p", "app.command_palette", "palette", "^p", bar=False),
    Key("1", "app.page('diagnoses')", "pages", "1-9", bar=False),
    Key("L", "app.language", "language", "L", bar=False),
    Key("T", "app.theme", "theme", "T", bar=False),
    Key("q,ctrl+q", "app.leave", "quit", "q"),
)
MOVING = (
    Key("j,k", "", "move.line", "j k ↑ ↓", bar=False),
    Key("space,b", "", "move.page", "space b PgDn PgUp", bar=False),
    Key("ctrl+d,ctrl+u", "", "move.half", "^d ^u", bar=False),
    Key("g,G", "", "move.end", "g G", bar=False),
    Key("h,l", "", "move.side", "h l ← →", bar=False),
)
"""Of the log; the widget binds them itself."""


def bindings(keys: Sequence[Key]) -> list[BindingType]:
    return [Binding(key.keys, key.action, show=False) for key in keys if key.action]
