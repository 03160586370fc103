"""Every screen and every key of the browser, pressed as a person would, on a made-up incident."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, OptionList, Static

from forensics import marks
from forensics.case import open_case
from tests.unit import tui_case
from tui import state
from tui.app import Browser
from tui.keys import EVERYWHERE, PAGES
from tui.screens.devices import DevicesPage
from tui.screens.dialogs import AskFilter, AskLine, Choose, Help
from tui.screens.environment import EnvironmentPage
from tui.screens.graph import GraphPage
from tui.screens.log import LogPage
from tui.screens.page import Page
from tui.screens.replay import ReplayPage
from tui.screens.rules import RulesPage
from tui.screens.sql import Editor, SqlPage
from tui.session import Session
from tui.widgets.histogram import HistogramStrip
from tui.widgets.item_list import ItemList

Story = Callable[[Browser, Pilot[None]], Awaitable[None]]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("incident")
    tui_case.only_demo_rules(folder, patch)
    case = tui_case.made(folder)
    case.close()
    yield case.folder
    patch.undo()


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "demo.case"))


@asynccontextmanager
async def opened(folder: Path, size: tuple[int, int] = (100, 34), lang: str = "en") -> AsyncIterator[tuple[Browser, Pilot[None]]]:
    browser = Browser(Session(open_case(folder), None, lang), "dark")
    async with browser.run_test(size=size) as pilot:
        await pilot.pause()
        yield browser, pilot


def told(story: Story) -> Callable[[Path], None]:
    """Runs a story in the browser; it fails where anything went wrong behind the screen."""

    def test(folder: Path) -> None:
        async def run() -> None:
            async with opened(folder) as (browser, pilot):
                await story(browser, pilot)
                assert not [note.message for note in browser._notifications if note.severity == "error"]

        asyncio.run(run())

    test.__name__ = story.__name__
    test.__doc__ = story.__doc__
    return test


async def until(pilot: Pilot[None], done: Callable[[], object], seconds: float = 10.0) -> None:
    for _ in range(int(seconds / 0.02)):
        if done():
            return
        await pilot.pause(0.02)
    raise AssertionError("it did not come to that in time")


async def to(browser: Browser, pilot: Pilot[None], key: str) -> Page:
    await pilot.press(key)
    await until(pilot, lambda: browser.page is not None and PAGES[int(key) - 1] == browser.page.NAME)
    assert browser.page is not None
    return browser.page


async def log(browser: Browser, pilot: Pilot[None]) -> LogPage:
    page = await to(browser, pilot, "2")
    assert isinstance(page, LogPage)
    await until(pilot, lambda: page.lines.line is not None and page._histogram is not None)
    return page


def text(page: Page, selector: str) -> str:
    return str(page.query_one(selector, Static).render())


# ---------------------------------------------------------------- from screen to screen


@told
async def test_digits_open_the_nine_screens(browser: Browser, pilot: Pilot[None]) -> None:
    for digit, name in enumerate(PAGES, 1):
        if name == "replay":  # the editor of the screen before takes digits as text
            await pilot.press("escape")
        assert name == (await to(browser, pilot, str(digit))).NAME


@told
async def test_the_bars_can_be_clicked(browser: Browser, pilot: Pilot[None]) -> None:
    await pilot.click("#pages", offset=(16, 0))
    await until(pilot, lambda: browser.page is not None and browser.page.NAME == "log")
    page = browser.page
    assert isinstance(page, LogPage)
    await until(pilot, lambda: page.filled and page.lines.line is not None)
    await pilot.click("#keys", offset=(2, 0))
    assert isinstance(browser.screen, AskLine)


@told
async def test_help_names_every_key_of_every_screen(browser: Browser, pilot: Pilot[None]) -> None:
    for digit in "123456789":
        if browser.page is not None and browser.page.NAME == "sql":
            await pilot.press("escape")
        page = await to(browser, pilot, digit)
        if page.NAME == "sql":
            await pilot.press("escape")
            await pilot.pause()
        await pilot.press("question_mark")
        assert isinstance(browser.screen, Help)
        shown = str(browser.screen.query_one(Static).render())
        for key in (*page.KEYS, *EVERYWHERE):
            assert key.label in shown
            assert not shown.count("key."), "every key has its words"
        await pilot.press("escape")


@told
async def test_language_and_colours_change_at_once_and_are_kept(browser: Browser, pilot: Pilot[None]) -> None:
    await pilot.press("L")
    await until(pilot, lambda: "诊断" in str(browser.screen.query_one("#pages", Static).render()))
    assert "不可纠正错误" in str([item.text for item in browser.screen.query_one("#list", ItemList).items])
    await pilot.press("T")
    await pilot.pause()
    assert browser.theme == "textual-light"
    await pilot.press("q")
    await until(pilot, lambda: not browser.is_running or browser._exit)


def test_leaving_and_opening_again_leads_to_the_same_place(folder: Path) -> None:
    async def first() -> int:
        async with opened(folder) as (browser, pilot):
            page = await log(browser, pilot)
            await pilot.press("G", "up", "up", "up")
            await until(pilot, lambda: page.lines.line is not None and page.lines.window.at_end)
            await pilot.press("c", "L")
            await pilot.pause(0.2)
            assert page.lines.line is not None
            return page.lines.line.event_id

    async def second() -> tuple[int, str, str, str]:
        kept = state.load(folder)
        browser = Browser(Session(open_case(folder), None, kept.lang or "en"))
        async with browser.run_test(size=(100, 34)) as pilot:
            await until(pilot, lambda: isinstance(browser.page, LogPage) and browser.page.filled and browser.page.lines.line is not None)
            page = browser.page
            assert isinstance(page, LogPage) and page.lines.line is not None
            return page.lines.line.event_id, page.NAME, browser.session.lang, browser.session.state.log.pane

    at = asyncio.run(first())
    assert asyncio.run(second()) == (at, "log", "zh", "context")


@told
async def test_the_palette_finds_screens_and_actions(browser: Browser, pilot: Pilot[None]) -> None:
    await pilot.press("ctrl+p")
    await pilot.pause(0.3)
    await pilot.press(*"graph")
    await pilot.pause(0.5)
    await pilot.press("enter")
    await until(pilot, lambda: browser.page is not None and browser.page.NAME == "graph")


# ---------------------------------------------------------------- 1: diagnoses


@told
async def test_evidence_opens_the_log_at_its_line(browser: Browser, pilot: Pilot[None]) -> None:
    page = browser.page
    assert page is not None
    items = page.query_one("#items", ItemList)
    at = next(number for number, item in enumerate(items.items) if item.target.kind == "line")
    await pilot.press("enter")
    items.highlighted = at
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(browser.page, LogPage) and browser.page.filled and browser.page.lines.line is not None)
    found = browser.page
    assert isinstance(found, LogPage) and found.lines.line is not None
    target = items.items[at].target
    assert (browser.session.path(found.lines.line.file_id), found.lines.line.line_no) == (target.name, target.line)


@told
async def test_a_rule_among_the_items_opens_the_rules(browser: Browser, pilot: Pilot[None]) -> None:
    page = browser.page
    assert page is not None
    items = page.query_one("#items", ItemList)
    await pilot.press("tab")
    items.highlighted = next(number for number, item in enumerate(items.items) if item.target.kind == "rule")
    name = items.items[items.highlighted].target.name
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(browser.page, RulesPage) and browser.page.rule is not None and browser.page.rule.id == name)


@told
async def test_all_that_the_report_says_stands_in_the_list(browser: Browser, pilot: Pilot[None]) -> None:
    page = browser.page
    assert page is not None
    listed = page.query_one("#list", ItemList)
    seen = []
    for _ in listed.items:
        seen.append(" ".join(item.text for item in page.query_one("#items", ItemList).items))
        await pilot.press("j")
        await pilot.pause()
    titles = " ".join(item.text for item in listed.items)
    assert "uncorrectable" in titles and "70001" in titles
    assert any("RmsNorm_8e1f" in one for one in seen), "what follows from it"
    assert any("Take this card out" in one for one in seen) and any("507035" in one for one in seen)
    await pilot.press("y")
    assert browser.clipboard


# ---------------------------------------------------------------- 2: log


@told
async def test_keys_of_pagers_move_through_the_log(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    view = page.lines

    async def place() -> int:
        await pilot.pause(0.05)
        assert view.line is not None
        return view.line.event_id

    await pilot.press("g")
    await until(pilot, lambda: view.window.at_start and view.window.cursor == 0)
    for there, back in (("j", "k"), ("down", "up"), ("space", "b"), ("pagedown", "pageup"), ("ctrl+d", "ctrl+u")):
        before = await place()
        await pilot.press(there)
        assert await place() != before, there
        await pilot.press(back)
        assert await place() == before, back
    await pilot.press("g")
    await until(pilot, lambda: view.window.at_start and view.window.cursor == 0)
    assert view.line is not None and view.line.ts is None
    await pilot.press("G")
    await until(pilot, lambda: view.window.at_end and view.window.cursor == len(view.window.lines) - 1)
    await pilot.press("l")
    assert view.shift > 0
    await pilot.press("h")
    assert view.shift == 0
    assert page._histogram is not None
    last = f"{page._histogram.lines:,} / {page._histogram.lines:,}"
    await until(pilot, lambda: text(page, "#status").startswith(last))


@told
async def test_holding_a_key_reads_on_without_a_gap(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    await pilot.press("g")
    await until(pilot, lambda: page.lines.window.at_start and page.lines.window.cursor == 0)
    for _ in range(60):
        page.lines.action_turn(1)
    await until(pilot, lambda: page.lines.window.at_end and page.lines.line == page.lines.window.lines[-1])
    keys = [one.key.order for one in page.lines.window.lines]
    assert keys == sorted(set(keys)) and page._histogram is not None and len(keys) == page._histogram.lines


@told
async def test_search_counts_highlights_and_goes_round(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    await pilot.press("slash")
    assert isinstance(browser.screen, AskLine)
    await pilot.press(*"(", "enter")
    assert isinstance(browser.screen, AskLine), "a regex that is none is not taken"
    browser.screen.query_one(Input).value = "notify WAIT".replace("WAIT", "wait timeout").replace("n", "N", 1)
    await pilot.press("enter")
    await until(pilot, lambda: page._search is not None and page._search.done)
    assert page._search is not None and page._search.count == 3
    seen = []
    for _ in range(4):
        await pilot.pause(0.1)
        assert page.lines.line is not None
        seen.append(page.lines.line.event_id)
        assert "Notify wait timeout" in page.lines.line.message
        await pilot.press("n")
    assert len(set(seen)) == 3 and seen[3] == seen[0], "after the last match comes the first"
    await pilot.press("N")
    await until(pilot, lambda: "3 matches" in text(page, "#status"))
    assert page.lines.found is not None
    await pilot.press("escape")
    assert page._search is None and page.lines.found is None


@told
async def test_errors_are_one_key_away(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    await pilot.press("g")
    await until(pilot, lambda: page.lines.window.at_start and page.lines.window.cursor == 0)
    seen = []
    for _ in range(3):
        await pilot.press("e")
        await pilot.pause(0.1)
        assert page.lines.line is not None and page.lines.line.severity == "ERROR"
        seen.append(page.lines.line.event_id)
    assert len(set(seen)) == 3
    await pilot.press("E")
    await pilot.pause(0.1)
    assert page.lines.line.event_id == seen[1]


@told
async def test_filters_become_chips_that_can_be_taken_off(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    await pilot.press("f")
    assert isinstance(browser.screen, AskFilter)
    asked = browser.screen
    await until(pilot, lambda: any(name == "severity=ERROR" for name, _ in asked._all))
    await pilot.press(*"severity=lou", "enter")
    assert browser.screen is asked, "what makes no sense is not taken"
    asked.query_one(Input).value = ""
    await pilot.press(*"severity=E")
    await pilot.press("tab")
    assert asked.query_one(Input).value == "severity=ERROR"
    await pilot.press("enter")
    await until(pilot, lambda: page.lines.window.lines and all(one.severity == "ERROR" for one in page.lines.window.lines))
    assert "severity=ERROR" in text(page, "#chips")
    await pilot.press("f", *"pid=2103", "enter")
    await until(pilot, lambda: page.lines.window.lines and all(one.pid == 2103 for one in page.lines.window.lines))
    await pilot.pause(0.1)
    await pilot.click("#chips", offset=(3, 0))
    await until(pilot, lambda: len(page._filter.chips) == 1)
    await pilot.press("F")
    await until(pilot, lambda: not page._filter and len(page.lines.window.lines) > 100)
    await pilot.press("o")
    await until(pilot, lambda: page.lines.view.by_file)
    await pilot.press("o")
    await until(pilot, lambda: not page.lines.view.by_file)


@told
async def test_a_time_and_the_strip_lead_through_the_log(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    await pilot.press("t", *"nonsense", "enter")
    assert isinstance(browser.screen, AskLine)
    browser.screen.query_one(Input).value = "14:36:00"
    await pilot.press("enter")
    await until(pilot, lambda: page.lines.line is not None and "Notify" in page.lines.line.message)
    strip = page.query_one(HistogramStrip)
    await pilot.click("#strip", offset=(1, 0))
    data = page._histogram
    assert data is not None
    await until(pilot, lambda: page.lines.line is not None and page.lines.line.ts is not None and data.place(page.lines.line.ts) < 0.1)
    here = strip.here
    await pilot.press("right_square_bracket", "right_square_bracket")
    await until(pilot, lambda: strip.here is not None and here is not None and strip.here > here)
    await pilot.press("left_square_bracket")
    await pilot.click("#lines", offset=(99, 15))


@told
async def test_context_shows_what_other_files_say_and_leads_there(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    await pilot.press("c")
    context = page.query_one("#context")
    from tui.widgets.log_view import LogView

    assert isinstance(context, LogView)
    await until(pilot, lambda: context.line is not None and context.display)
    assert page.lines.line is not None
    own = page.lines.line.file_id
    assert all(one.file_id != own for one in context.window.lines)
    await pilot.press("tab", "down")
    await pilot.pause(0.2)
    wanted = context.line
    await pilot.press("enter")
    await until(pilot, lambda: page.lines.line is not None and wanted is not None and page.lines.line.event_id == wanted.event_id)
    await pilot.press("d")
    assert page.query_one("#record").display
    await pilot.press("d")
    assert not page.query_one("#record").display and not context.display
    await pilot.press("enter")
    assert page.query_one("#record").display


@told
async def test_the_record_tells_codes_rules_and_the_raw_line(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    await pilot.press("slash", *"error code = 0x", "enter")
    await until(pilot, lambda: "0x800000" in text(page, "#record-text"))
    await until(pilot, lambda: "[ERROR] RUNTIME(" in text(page, "#record-text"))  # the raw line is fetched behind the rest
    shown = text(page, "#record-text")
    assert "MTE" in shown, "the bits of the core's error word are read"
    assert "[ERROR] RUNTIME(2103,python3):2026-03-12-14:31:07.904.338" in shown, "the raw line comes from the bundle"
    await pilot.press("w")
    await pilot.pause(0.2)
    await pilot.press("slash", *"kernel_name", "enter")
    await until(pilot, lambda: "demo.kernel.failed" in text(page, "#record-text"))
    await browser.run_action("app.open_rule('demo.kernel.failed')")
    await until(pilot, lambda: isinstance(browser.page, RulesPage) and browser.page.rule is not None and browser.page.rule.id == "demo.kernel.failed")


def test_marks_and_notes_go_into_the_report(folder: Path) -> None:
    async def run() -> None:
        async with opened(folder) as (browser, pilot):
            page = await log(browser, pilot)
            await pilot.press("m", "j", "M")
            assert isinstance(browser.screen, AskLine)
            await pilot.press(*"look here", "enter")
            await pilot.press("j", "m", "m")
            await pilot.pause(0.1)
            assert len(browser.session.marks) == 2
            await pilot.press("apostrophe")
            assert isinstance(browser.screen, Choose)
            await pilot.press(*"look", "enter")
            await pilot.pause(0.1)
            assert page.lines.line is not None and browser.session.marks[page.lines.line.event_id].note == "look here"
            await until(pilot, lambda: "look here" in text(page, "#record-text"))
            await pilot.press("y")
            assert browser.session.place(page.lines.line) in browser.clipboard

    asyncio.run(run())
    from forensics.report import console, data, markdown
    from forensics.report.page import Look

    triage = open_case(folder).load_triage()
    assert [mark.note for mark in triage.marks if mark.note] == ["look here"]
    for shown in (console.render(triage, Look(width=100)), markdown.render(triage, Look())):
        assert "look here" in shown and "Marked lines" in shown
    assert [mark["note"] for mark in data.report(triage)["marks"]].count("look here") == 1
    marks.save(folder, [])
    assert "marks" not in data.report(open_case(folder).load_triage())


# ---------------------------------------------------------------- 3 to 9


@told
async def test_the_graph_leads_from_the_root_to_the_ranks(browser: Browser, pilot: Pilot[None]) -> None:
    page = await to(browser, pilot, "3")
    assert isinstance(page, GraphPage)
    await until(pilot, lambda: page.branches.root.children)
    root = page.branches.root.children[0]
    assert "uncorrectable" in str(root.label)
    labels = [str(node.label) for node in page.branches._tree_nodes.values()]
    assert any("3 devices: 0-2" in label for label in labels), "ranks that fail alike are one branch"
    await pilot.press("j", "k", "plus", "minus", "space", "space", "y")
    assert "uncorrectable" in browser.clipboard
    await pilot.press("w")
    await until(pilot, lambda: isinstance(browser.page, RulesPage) and browser.page.rule is not None)
    await to(browser, pilot, "3")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(browser.page, LogPage) and browser.page.lines.line is not None)


@told
async def test_devices_show_their_numbers_over_time(browser: Browser, pilot: Pilot[None]) -> None:
    page = await to(browser, pilot, "4")
    assert isinstance(page, DevicesPage)
    table = page.query_one(DataTable)
    await until(pilot, lambda: table.row_count)
    row = [str(value) for value in table.get_row_at(0)]
    assert any(len(set(value) & set("▁▂▃▄▅▆▇█")) > 2 for value in row), "a number with many readings is a sparkline"
    before = browser.session.state.series
    await pilot.press("v")
    assert browser.session.state.series != before
    await pilot.press("V", "p", "p", "j", "k", "y")
    assert browser.session.state.series == before and browser.clipboard
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(browser.page, LogPage) and browser.page.filled and browser.page._filter)
    found = browser.page
    assert isinstance(found, LogPage)
    await until(pilot, lambda: found.lines.window.lines)
    assert {one.device for one in found.lines.window.lines} == {0}


@told
async def test_the_environment_marks_where_nodes_differ(browser: Browser, pilot: Pilot[None]) -> None:
    page = await to(browser, pilot, "5")
    assert isinstance(page, EnvironmentPage)
    await until(pilot, lambda: page._facts)
    differ = [fact.name for fact in page._facts if fact.differs]
    assert differ == ["env.HCCL_CONNECT_TIMEOUT"]
    await pilot.press("x")
    assert [fact.name for fact in page._shown] == differ
    assert "600" in text(page, "#trouble")
    await pilot.press("x", "slash", *"EXEC", "enter")
    assert [fact.name for fact in page._shown] == ["env.HCCL_EXEC_TIMEOUT"]
    await pilot.press("y", "j", "k", "w")
    assert "300" in browser.clipboard
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(browser.page, LogPage) and browser.page.filled and browser.page.lines.line is not None)
    found = browser.page
    assert isinstance(found, LogPage) and found.lines.line is not None and "HCCL_EXEC_TIMEOUT" in found.lines.line.message


@told
async def test_without_profiler_files_the_profile_says_so(browser: Browser, pilot: Pilot[None]) -> None:
    page = await to(browser, pilot, "6")
    await until(pilot, lambda: "no profiler files" in text(page, ".head"))
    await pilot.press("v", "j", "k", "y")


@told
async def test_sql_completes_runs_and_leads_to_the_line(browser: Browser, pilot: Pilot[None]) -> None:
    page = await to(browser, pilot, "7")
    assert isinstance(page, SqlPage)
    await until(pilot, lambda: page._words)
    editor = page.query_one(Editor)
    editor.text = ""
    await pilot.press(*"select event_id, mess")
    await until(pilot, lambda: page.query_one("#offers", OptionList).display)
    await pilot.press("tab")
    assert editor.text == "select event_id, message"
    await pilot.press(*" from eve", "tab", *" where severity = 'ERROR' order by ts")
    await pilot.press("ctrl+r")
    table = page.query_one(DataTable)
    await until(pilot, lambda: table.row_count == 8)
    await pilot.press("j", "k", "right", "y")
    assert browser.clipboard
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(browser.page, LogPage) and browser.page.filled and browser.page.lines.line is not None)


def test_sql_says_what_is_wrong_and_writes_files(folder: Path, tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(folder) as (browser, pilot):
            page = await to(browser, pilot, "7")
            assert isinstance(page, SqlPage)
            for query, word in (("select nothing from events", "nothing"), ("drop table files", "SELECT")):
                page.query_one(Editor).text = query
                await pilot.press("ctrl+r")
                await until(pilot, lambda word=word: word in text(page, "#told"))  # type: ignore[misc]
            page.query_one(Editor).text = "select path, lines from files"
            await pilot.press("ctrl+r")
            await until(pilot, lambda: "9 rows" in text(page, "#told"))
            await pilot.press("i", "ctrl+s")
            assert isinstance(browser.screen, AskLine)
            browser.screen.query_one(Input).value = str(tmp_path / "rows.csv")
            await pilot.press("enter")
            await until(pilot, (tmp_path / "rows.csv").exists)
            await pilot.press("ctrl+up")
            assert page.query_one(Editor).text.startswith("select path")
            await pilot.press("ctrl+down", "ctrl+o")
            assert isinstance(browser.screen, Choose)
            await pilot.press(*"metrics", "enter")
            assert "metrics" in page.query_one(Editor).text
            page.query_one(Editor).text = "select sev"
            page.query_one(Editor).move_cursor((0, 10))
            await pilot.pause()
            await pilot.press("ctrl+n")

    asyncio.run(run())
    assert (tmp_path / "rows.csv").read_text().startswith("path,lines\n")


@told
async def test_the_replay_shows_what_would_be_run(browser: Browser, pilot: Pilot[None]) -> None:
    page = await to(browser, pilot, "8")
    assert isinstance(page, ReplayPage) and page.spec is not None
    await until(pilot, lambda: "seq_len=70001" in text(page, "#said"))
    assert "dsforensics replay" in text(page, "#said")
    await pilot.press("j", "k", "y")
    assert browser.clipboard.startswith("dsforensics replay ") and browser.clipboard.endswith(f" {page.spec.rank}")


@told
async def test_rules_say_why_they_fired_or_not(browser: Browser, pilot: Pilot[None]) -> None:
    page = await to(browser, pilot, "9")
    assert isinstance(page, RulesPage)
    await until(pilot, lambda: page._rules)
    assert [rule.id for rule in page._shown][-1] == "demo.quiet"
    await until(pilot, lambda: "diagnosis 1" in text(page, "#why-text"))
    await pilot.press("x")
    assert "demo.quiet" not in [rule.id for rule in page._shown]
    await pilot.press("x", "slash", *"nothing kind", "enter")
    await until(pilot, lambda: "does not hold" in text(page, "#why-text"))
    await pilot.press("enter", "y", "j", "k")
    assert browser.clipboard == "demo.quiet"
    await pilot.press("slash")
    browser.screen.query_one(Input).value = ""
    await pilot.press("enter", "g")
    table = page.query_one(DataTable)
    table.move_cursor(row=0)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(browser.page, LogPage) and browser.page.filled and browser.page.lines.line is not None)


@told
async def test_a_broken_query_behind_the_screen_is_said_on_it(browser: Browser, pilot: Pilot[None]) -> None:
    page = await log(browser, pilot)
    from tui.queries import FIRST, View

    page.lines.go(FIRST, View("no_such_column = 1"))
    await until(pilot, lambda: [note for note in browser._notifications if "no_such_column" in note.message])
    browser.clear_notifications()
