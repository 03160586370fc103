"""A search over all lines: piece by piece behind the screen, with a count that grows, then every match at hand in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import regex

from forensics.result import Member
from tui import queries
from tui.filters import check_regex
from tui.queries import FIRST, LAST, Key, Slice, View
from tui.store import Store

if TYPE_CHECKING:
    import duckdb
    import numpy

KEPT = 2_000_000
"""Matches that are remembered; of more, the next one is asked for again each time, which is quick where there are so many."""
_UNTIMED = -(1 << 62)


class Search:
    """`pattern` in the messages of a view. Regexes are those of RE2: linear in time, whatever is typed. Raises UsageError for others."""

    def __init__(self, pattern: str, view: View, files: Sequence[Member]):
        check_regex(pattern)
        self.pattern = pattern
        self.view = view.also("regexp_matches(message, ?)", pattern)
        self.pieces = queries.slices(files)
        self.total = sum(piece.lines for piece in self.pieces)
        self.read = 0
        """Lines that were searched."""
        self.count = 0
        self.done = False
        self._found: list[tuple[numpy.ndarray, numpy.ndarray]] = []
        self._times: numpy.ndarray | None = None
        self._ids: numpy.ndarray | None = None

    def highlight(self) -> regex.Pattern[str] | None:
        """The pattern for what is on the screen; None where Python's reading of it differs so much that it is none."""
        try:
            return regex.compile(self.pattern)
        except regex.error:
            return None

    async def run(self, store: Store, changed: Callable[[], None]) -> None:
        """Search everything; `changed` after each piece."""
        for piece in self.pieces:
            times, ids = await store.ask("search", lambda connection, piece=piece: self._in(connection, piece))  # type: ignore[misc]
            self.count += len(ids)
            self.read += piece.lines
            if len(ids) and self.count <= KEPT:
                self._found.append((times, ids))
            changed()
        if self.count <= KEPT:
            await store.run(self._settle)
        self._found = []
        self.done = True
        changed()

    def _in(self, connection: duckdb.DuckDBPyConnection, piece: Slice) -> tuple[numpy.ndarray, numpy.ndarray]:
        rows = connection.execute(
            f"SELECT coalesce(epoch_us(ts), {_UNTIMED}) AS at, event_id FROM events WHERE {piece.where} AND {self.view.where}", list(self.view.values)
        ).fetchnumpy()
        return rows["at"], rows["event_id"]

    def _settle(self) -> None:
        import numpy as np

        times = np.concatenate([pair[0] for pair in self._found]) if self._found else np.zeros(0, np.int64)
        ids = np.concatenate([pair[1] for pair in self._found]) if self._found else np.zeros(0, np.int64)
        order = np.lexsort((ids, times)) if not self.view.by_file else np.argsort(ids)
        self._times, self._ids = np.asarray(times)[order], np.asarray(ids)[order]

    async def next(self, store: Store, key: Key, back: bool) -> Key | None:
        """The first match behind a key, or before it; None where there is none."""
        if self._ids is not None and self._times is not None:
            at = self._place(key, back)
            if not 0 <= at < len(self._ids):
                return None
            ts = int(self._times[at])
            return Key(None if ts == _UNTIMED else ts, int(self._ids[at]))
        lines = await store.ask("search", lambda connection: queries.page(connection, self.view, key, 1, back=back))
        return lines[0].key if lines else None

    def number(self, key: Key) -> int | None:
        """The how manieth match a line is, from 1; None where it is none, or where that is not known."""
        if self._ids is None or key in (FIRST, LAST):
            return None
        at = self._place(key, True) + 1
        return at + 1 if at < len(self._ids) and int(self._ids[at]) == key.event_id else None

    def _place(self, key: Key, back: bool) -> int:
        """Index of the last match before a key, or of the first one behind it."""
        import numpy as np

        assert self._ids is not None and self._times is not None
        if self.view.by_file:
            side = np.searchsorted(self._ids, min(key.event_id, (1 << 63) - 1), "left" if back else "right")
            return int(side) - (1 if back else 0)
        ts = _UNTIMED if key.ts is None else key.ts
        low, high = np.searchsorted(self._times, ts, "left"), np.searchsorted(self._times, ts, "right")
        at = int(low) + int(np.searchsorted(self._ids[low:high], min(key.event_id, (1 << 63) - 1), "left" if back else "right"))
        return at - 1 if back else at
