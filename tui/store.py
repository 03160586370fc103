"""The way from the event loop to the case: queries run in threads, each kind on a connection of its own, and stop when they are not wanted
any more."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal, TypeVar

from forensics.case import Case

if TYPE_CHECKING:
    import duckdb

Answer = TypeVar("Answer")
Lane = Literal["page", "near", "record", "search", "count", "facts", "sql"]
MEMORY = "200MB"
"""What one query may take: the browser is to stay small beside the job that is being looked at."""
THREADS = 4
IMPATIENCE = 0.02
"""Seconds between two attempts to stop a query: it may only just be about to start."""


class _Lane:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.connection: duckdb.DuckDBPyConnection | None = None


def _seen(future: asyncio.Future[Answer]) -> None:
    """Of a query that nobody waits for any more, how it ended is of no interest."""
    if not future.cancelled():
        future.exception()


class Store:
    """The readers of one case. `ask` is for coroutines: when one is cancelled, its query is interrupted."""

    def __init__(self, case: Case):
        self.case = case
        case.memory = MEMORY
        case.threads = min(THREADS, len(os.sched_getaffinity(0)))
        self._lanes: dict[Lane, _Lane] = {}
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="query")

    async def ask(self, lane: Lane, question: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        """The answer of `question(connection)`, run in a thread. Raises what it raises (duckdb.Error)."""
        own = self._lanes.setdefault(lane, _Lane())
        async with own.lock:
            future = self._threads.submit(self._answer, own, question)
            waiting = asyncio.wrap_future(future)
            waiting.add_done_callback(_seen)
            try:
                return await asyncio.shield(waiting)
            except asyncio.CancelledError:
                while not future.done():
                    if own.connection is not None:
                        own.connection.interrupt()
                    await asyncio.wait([waiting], timeout=IMPATIENCE)
                raise

    def _answer(self, lane: _Lane, question: Callable[[duckdb.DuckDBPyConnection], Answer]) -> Answer:
        with self._opening:
            if lane.connection is None:
                lane.connection = self.case.reader()
        return question(lane.connection)

    def run(self, work: Callable[[], Answer]) -> asyncio.Future[Answer]:
        """Work that is no query, in a thread."""
        return asyncio.wrap_future(self._threads.submit(work))

    def close(self) -> None:
        for lane in self._lanes.values():
            if lane.connection is not None:
                lane.connection.interrupt()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for lane in self._lanes.values():
            if lane.connection is not None:
                lane.connection.close()
        self.case.close()
