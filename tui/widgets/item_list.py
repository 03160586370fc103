"""A list of items of several lines each; the cursor stands on one."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.items import Item


class ItemList(OptionList):
    """Items that lead somewhere; `item` is that under the cursor."""

    DEFAULT_CSS = """
    ItemList, ItemList:focus { border: none; padding: 0; background: $background; height: 1fr; scrollbar-size-vertical: 1; }
    ItemList > .option-list--option { padding: 0 1; }
    ItemList > .option-list--option-highlighted { background: $block-cursor-blurred-background; color: $foreground; text-style: none; }
    ItemList:focus > .option-list--option-highlighted { background: $primary-muted; color: $foreground; text-style: none; }
    """
    BINDINGS = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("g", "first", show=False),
        Binding("G", "last", show=False),
        Binding("space,ctrl+d", "page_down", show=False),
        Binding("b,ctrl+u", "page_up", show=False),
    ]

    def __init__(self, **known: str | None):
        super().__init__(id=known.get("id"), markup=False)
        self.items: list[Item] = []

    def put(self, items: Sequence[Item], at: int = 0) -> None:
        self.items = list(items)
        self.clear_options()
        self.add_options([Option(item.content) for item in self.items])
        if self.items:
            self.highlighted = max(0, min(at, len(self.items) - 1))

    @property
    def item(self) -> Item | None:
        return self.items[self.highlighted] if self.highlighted is not None and self.highlighted < len(self.items) else None
