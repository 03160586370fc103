"""A table whose columns are as wide as what stands in them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.binding import Binding
from textual.widgets import DataTable

Row = Sequence[Text]


class Grid(DataTable[Text]):
    """Widths are worked out here, at once: those of DataTable follow later, and not when a table is filled twice in a row."""

    BINDINGS = [Binding("j", "cursor_down", show=False), Binding("k", "cursor_up", show=False)]

    def put(self, titles: Row, rows: Sequence[Row], row: int = 0) -> None:
        """Show these rows in the place of those before, the cursor on `row`."""
        self.clear(columns=True)
        for at, title in enumerate(titles):
            self.add_column(title, width=max([title.cell_len, *(one[at].cell_len for one in rows)]))
        self.add_rows(rows)
        if rows:
            self.move_cursor(row=max(0, min(row, len(rows) - 1)))

    @property
    def row_text(self) -> str:
        """The row under the cursor, as it is copied."""
        return "  ".join(str(value) for value in self.get_row_at(self.cursor_row)) if self.row_count else ""
