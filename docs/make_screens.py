"""Takes the screenshots of the browser in this folder from the sample: `python docs/make_screens.py`, from the root of the source tree."""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path

import forensics
from forensics.case import open_case
from tui.app import Browser
from tui.session import Session

HERE = Path(__file__).parent / "screens"
SHOTS = (
    ("diagnoses", "en", "dark", (120, 36), ["1"]),
    ("log", "en", "dark", (120, 36), ["2"]),
    ("log-search", "en", "dark", (120, 36), ["2", "slash", *"error code", "enter", "c"]),
    ("log-zh", "zh", "light", (100, 30), ["2"]),
    ("graph", "en", "dark", (120, 26), ["3"]),
    ("devices", "en", "dark", (120, 20), ["4"]),
    ("environment", "en", "dark", (120, 30), ["5"]),
    ("sql", "en", "dark", (120, 24), ["7", "ctrl+r"]),
    ("rules", "en", "dark", (130, 36), ["9"]),
)


async def take(folder: Path, name: str, lang: str, theme: str, size: tuple[int, int], keys: list[str]) -> None:
    browser = Browser(Session(open_case(folder), None, lang), theme)
    browser.session.state.page = "diagnoses"
    async with browser.run_test(size=size) as pilot:
        await pilot.pause(1)
        for key in keys:
            await pilot.press("space" if key == " " else key)
            await pilot.pause(0.05 if len(key) == 1 and key.isalpha() else 1)
        await pilot.pause(4)
        browser.clear_notifications()
        await pilot.pause(0.5)
        # the fonts of the reader's own machine: nothing is fetched from elsewhere
        svg = re.sub(r"@font-face \{.*?\}\s*", "", browser.export_screenshot(title="dsforensics"), flags=re.DOTALL)
        (HERE / f"{name}.svg").write_text(re.sub(r"terminal-\d+-", f"{name}-", svg), "utf-8")


def main() -> None:
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        case = forensics.triage("samples/two-nodes.tar.gz", out=f"{scratch}/two-nodes.case")
        case.close()
        for shot in SHOTS:
            (case.folder / "tui.json").unlink(missing_ok=True)
            asyncio.run(take(case.folder, *shot))


if __name__ == "__main__":
    main()
