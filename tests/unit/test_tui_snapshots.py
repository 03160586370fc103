"""All nine screens as they look: in a small and a large terminal, dark and light, English and Chinese. `pytest --snapshot-update` takes them anew
after a change that is meant; look at the SVG files before you keep them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_textual_snapshot import SVGImageExtension
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from forensics.case import open_case
from tests.unit import tui_case
from tests.unit.test_tui_screens import until
from tui.app import Browser
from tui.keys import PAGES
from tui.screens.devices import DevicesPage
from tui.screens.environment import EnvironmentPage
from tui.screens.graph import GraphPage
from tui.screens.log import LogPage
from tui.screens.page import Page
from tui.screens.rules import RulesPage
from tui.session import Session

LOOKS = {
    "small-light-en": ((80, 24), "light", "en"),
    "large-dark-en": ((160, 50), "dark", "en"),
    "small-dark-zh": ((80, 24), "dark", "zh"),
    "large-light-zh": ((160, 50), "light", "zh"),
}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("incident")
    tui_case.only_demo_rules(folder, patch)
    made = tui_case.made(folder)
    made.close()
    patch.chdir(folder)
    yield Path("demo.case")
    patch.undo()


def at_rest(page: Page) -> bool:
    """Whether all that the screen waits for is there."""
    if isinstance(page, LogPage):
        shown = str(page.query_one("#record-text").render()) if page.filled else ""
        return page.filled and page._histogram is not None and page._anchor[0] == page.lines.landed and "SYSMONITOR(1180" in shown
    if isinstance(page, RulesPage):
        return bool(page._rules) and bool(str(page.query_one("#why-text").render()))
    if isinstance(page, EnvironmentPage):
        return bool(page._facts) and not any(worker.is_running for worker in page.workers if worker.node is page)
    if isinstance(page, GraphPage):
        return bool(page.branches.root.children)
    return not isinstance(page, DevicesPage) or bool(page._devices)


async def shots(case: Path, size: tuple[int, int], theme: str, lang: str) -> dict[str, str]:
    out = {}
    browser = Browser(Session(open_case(case), None, lang), theme)
    browser.session.state.page = "diagnoses"
    async with browser.run_test(size=size) as pilot:
        for name in PAGES:
            out[name] = await shot(browser, pilot, name)
        browser.session.state.log.event_id = None
    return out


async def shot(browser: Browser, pilot: Pilot[None], name: str) -> str:
    await browser.action_page(name)
    await until(pilot, lambda: browser.page is not None and name == browser.page.NAME and at_rest(browser.page))
    await pilot.pause(0.3)
    return browser.export_screenshot(title="dsforensics")


@pytest.mark.parametrize("look", LOOKS)
def test_the_screens_look_as_they_did(case: Path, look: str, snapshot: SnapshotAssertion) -> None:
    (case / "tui.json").unlink(missing_ok=True)
    taken = asyncio.run(shots(case, *LOOKS[look]))
    assert [name for name, svg in taken.items() if svg != snapshot(name=name, extension_class=SVGImageExtension)] == []
