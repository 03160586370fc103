"""What the browser costs on a large case: `python -m tests.bench.bench_tui FOLDER [--rows N]` (the case is made where FOLDER does not exist).

The program runs as it does for a person, without a terminal: first screen, pages forward one after another from several places, the end
of the log, a search, and what the process holds in memory at most. Figures are wall time, beside what they are meant to be; with the CPU
time of all threads, which says more on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from forensics.case import open_case
from tests.bench import gen_case
from tui.app import Browser
from tui.queries import FIRST, Key
from tui.screens.log import LogPage
from tui.session import Session
from tui.widgets.log_view import LogView

PAGES = 60
"""Pages turned at each place."""
PLACES = (0.0, 0.25, 0.5, 0.75)


async def until(done: Callable[[], bool], limit: float = 60.0) -> None:
    stop = time.perf_counter() + limit
    while not done():
        if time.perf_counter() > stop:
            raise TimeoutError("the browser did not come to rest")
        await asyncio.sleep(0.001)


def drawn(view: LogView) -> None:
    for y in range(view.size.height):
        view.render_line(y)


async def measure(folder: Path) -> list[tuple[str, str, str]]:
    began, spent = time.perf_counter(), time.process_time()
    session = Session(open_case(folder), None, "en")
    session.state.page = "log"
    browser = Browser(session, "dark")
    out = []
    async with browser.run_test(size=(160, 50)) as pilot:
        await until(lambda: isinstance(browser.page, LogPage) and browser.page.filled and bool(browser.page.lines.window.lines))
        page = browser.page
        assert isinstance(page, LogPage)
        view = page.lines
        drawn(view)
        out.append(("first screen", f"{time.perf_counter() - began:.2f} s ({time.process_time() - spent:.2f} CPU s)", "1 s"))
        await until(lambda: page._histogram is not None)
        histogram = page._histogram
        assert histogram is not None
        out.append(("histogram of all lines", f"{time.perf_counter() - began:.2f} s after the start", ""))
        turns = []
        spent = time.process_time()
        for place in PLACES:
            await view.show(Key(histogram.time(place), 0) if place else FIRST)
            for _ in range(PAGES):
                began = time.perf_counter()
                wanted = view.window.base + view.window.cursor + view.size.height - 1
                view.action_turn(1)
                await until(lambda wanted=wanted: view.window.base + view.window.cursor >= wanted)  # type: ignore[misc]
                drawn(view)
                turns.append(time.perf_counter() - began)
                await asyncio.sleep(0.03)  # a key that is held down
        turns.sort()
        each = (time.process_time() - spent) / len(turns)
        out.append(("next page, median", f"{statistics.median(turns) * 1000:.1f} ms ({each * 1000:.0f} CPU ms)", "50 ms"))
        out.append(("next page, 95 of 100", f"{turns[len(turns) * 95 // 100] * 1000:.1f} ms", ""))
        jumps = []
        for k in range(20):
            began = time.perf_counter()
            await view.show(Key(histogram.time((k * 37 % 100) / 100), 0))
            drawn(view)
            jumps.append(time.perf_counter() - began)
        out.append(("jump to a time, median", f"{statistics.median(jumps) * 1000:.0f} ms", ""))
        ends, cost = [], 0.0
        for _ in range(5):
            await view.show(FIRST)
            era, began, spent = view.era, time.perf_counter(), time.process_time()
            view.action_end(1)
            await until(lambda era=era: view.era > era and not view.busy and view.window.at_end)  # type: ignore[misc]
            drawn(view)
            ends.append(time.perf_counter() - began)
            cost += (time.process_time() - spent) / 5
        out.append(("end of the log, median", f"{statistics.median(ends) * 1000:.0f} ms ({cost * 1000:.0f} CPU ms)", "200 ms"))
        began = time.perf_counter()
        page.begin_search("notify wait.*7", True)
        await until(lambda: page._search is not None and page._search.done)
        assert page._search is not None
        out.append(("search of all lines", f"{time.perf_counter() - began:.2f} s, {page._search.count:,} matches", ""))
        await pilot.pause()
    out.append(("memory at most", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB", "400 MB"))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    given = parser.parse_args()
    if not given.folder.exists():
        gen_case.write(given.folder, given.rows)
        print(f"made {given.folder}; run this again, so that what made it does not count")
        return
    for name, value, wanted in asyncio.run(measure(given.folder)):
        print(f"{name:28s} {value:38s}" + (f"wanted: {wanted}" if wanted else ""))


if __name__ == "__main__":
    main()
