"""A rule from a line of the log: generalised, counted while it is edited, saved to the reader's own pack with the line as its example."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.widgets import Input, Static

from forensics.errors import UsageError
from rules import pack
from tests.unit import tui_case
from tests.unit.test_tui_screens import log, opened, until
from tui import own_pack
from tui.screens.new_rule import NewRule

pytest.importorskip("rules.draft")
LINE = "[ERROR] RUNTIME(2100,python3):2026-03-12-14:36:09.210.034 [file.cc:61]2100 Notify wait timeout, device_id=0, stream_id=23, retCode=0x95."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    patch = pytest.MonkeyPatch()
    made = tmp_path_factory.mktemp("incident")
    tui_case.only_demo_rules(made, patch)
    case = tui_case.made(made)
    case.close()
    patch.undo()
    yield case.folder


def test_a_rule_is_written_from_a_line_with_a_live_count(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    async def run() -> None:
        async with opened(Path(shutil.copytree(folder, tmp_path / "demo.case"))) as (browser, pilot):
            await log(browser, pilot)
            await pilot.press("slash", *"Notify wait", "enter")
            await pilot.pause(0.3)
            await pilot.press("r")
            await until(pilot, lambda: isinstance(browser.screen, NewRule))
            dialog = browser.screen

            def told(name: str) -> str:
                return str(dialog.query_one(f"#{name}", Static).render())

            await until(pilot, lambda: "3 messages" in told("count"))
            pattern = dialog.query_one("#rule-pattern", Input)
            assert "Notify wait timeout" in pattern.value and "2100" not in pattern.value
            pattern.value = "this stands nowhere"
            await until(pilot, lambda: "0 messages" in told("count"))
            pattern.value = "("
            await until(pilot, lambda: "regex" in told("wrong"))
            pattern.value = "Notify wait timeout, device_id=\\d+"
            await until(pilot, lambda: "3 messages" in told("count"))
            for name, value in (("id", "Bad Id"), ("cause", "hccl-notify-wait-timeout"), ("title-en", "A wait ended"), ("title-zh", "等待超时")):
                dialog.query_one(f"#rule-{name}", Input).value = value
            await pilot.press("ctrl+s")
            await until(pilot, lambda: "the id wants" in told("wrong"))
            dialog.query_one("#rule-id", Input).value = "own.wait-ended"
            await pilot.press("ctrl+s")
            await until(pilot, lambda: browser.screen is not dialog)

    asyncio.run(run())
    loaded = pack.load([tmp_path / "dsforensics" / "packs" / "own"], shipped=False)
    (rule,) = loaded.rules
    assert rule.id == "own.wait-ended" and rule.title.zh == "等待超时" and rule.root_cause == "hccl-notify-wait-timeout"
    assert "Notify wait timeout" in rule.examples.match[0] and rule.examples.match[0].startswith("[ERROR] RUNTIME(")


def test_what_is_wrong_with_a_rule_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for ident, cause, pattern in (
        ("one", "unknown", "Notify"), ("own.a", "no-such-cause", "Notify"), ("own.a", "unknown", "(?<=x)y("),
        ("own.a", "unknown", "this fits nowhere"),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            own_pack.save(own_pack.written(LINE, ident, cause, "A", "甲", pattern), ident)
    with pytest.raises(UsageError):
        own_pack.propose("12 34 56")
    assert not (tmp_path / "dsforensics").exists()
    assert own_pack.save(own_pack.written(LINE, "own.a", "unknown", "A", "甲", "Notify wait"), "own.a").is_file()
    with pytest.raises(UsageError, match="already"):
        own_pack.save(own_pack.written(LINE, "own.a", "unknown", "A", "甲", "Notify wait"), "own.a")
