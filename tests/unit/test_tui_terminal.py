"""The real program in a real terminal (tmux): what reaches the terminal, how it starts and ends, hostile lines, a bundle that is triaged first."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit import tui_case

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
ROOT = Path(__file__).parents[2]
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Terminal:
    """One tmux session with one program in it."""

    def __init__(self, folder: Path, width: int, height: int):
        self.socket = str(folder / "tmux")
        self.folder, self.width, self.height = folder, width, height

    def tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True, timeout=30, check=False)
        return done.stdout

    def start(self, *words: str, **env: str) -> None:
        program = " ".join(shlex.quote(word) for word in (sys.executable, "-m", "forensics", *words))
        set_ = " ".join(f"{name}={shlex.quote(value)}" for name, value in ({"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"} | env).items())
        command = f"cd {shlex.quote(str(self.folder))}; {set_} {program}; echo status $?; sleep 60"
        self.tmux("new-session", "-d", "-x", str(self.width), "-y", str(self.height), command)
        self.tmux("set", "-g", "remain-on-exit", "on")

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.tmux("send-keys", key)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def until(self, wanted: str, seconds: float = 120.0) -> str:
        stop = time.monotonic() + seconds
        while wanted not in (shown := self.screen()):
            assert time.monotonic() < stop, f"{wanted!r} did not come; the terminal shows:\n{shown}"
            time.sleep(0.1)
        return shown

    def close(self) -> None:
        self.tmux("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path, 80, 24)
    yield made
    made.close()


def test_a_bundle_is_triaged_shown_searched_and_left(terminal: Terminal, tmp_path: Path) -> None:
    tui_case.bundle(tmp_path)
    terminal.start("tui", "incident", "--lang", "en", XDG_CONFIG_HOME=str(tmp_path / "none"))
    shown = terminal.until("1 Diagnoses")
    assert all(len(line) <= 80 for line in shown.splitlines())
    terminal.until("Coverage, notes", 90)
    assert "343 lines" in terminal.screen()
    assert (tmp_path / "incident.case" / "report.json").exists()
    terminal.press("2")
    terminal.until(" / 343")
    terminal.press("/")
    terminal.until("Search")
    terminal.type("Notify wait")
    terminal.press("Enter")
    terminal.until("3 matches")
    terminal.press("q")
    terminal.until("status 0")
    assert "1 Diagnoses" not in terminal.screen(), "the terminal is left as it was"


def test_hostile_lines_do_nothing_to_the_terminal(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tui_case.only_demo_rules(tmp_path, monkeypatch)
    tui_case.made(tmp_path).close()
    terminal.start("tui", "demo.case", "--lang", "en", "--no-color")
    terminal.until("1 Diagnoses")
    terminal.press("2")
    terminal.until(" / 343")
    terminal.press("/")
    terminal.until("Search")
    terminal.type("right to left")
    terminal.press("Enter")
    terminal.until("1 match")
    shown = terminal.until("red \\u202eright to left\\u202c [red]markup[/red]")
    shown = terminal.until("宽字符")
    assert not FORBIDDEN.search(shown.replace("\n", "").replace("\t", ""))
    terminal.press("Enter", "End")
    terminal.until("\\x1b]52;c;")
    assert "\\x1b[31mred\\x1b[2J \\u202e" in terminal.screen(), "the raw line has its escape sequences spelled out"
    assert terminal.tmux("show-buffer") == "", "nothing was put on the clipboard"
    terminal.press("BTab")
    time.sleep(0.5)
    terminal.press("j", "j", "j", "j", "j")
    terminal.until("xxxxxxxxxxxxxxxxxxxx")
    assert "1 Diagnoses" in terminal.screen().splitlines()[0]
    terminal.press("Enter")
    time.sleep(0.5)
    terminal.press("End")
    terminal.until("cut here")
    terminal.press("q")
    terminal.until("status 0")


@pytest.mark.parametrize(
    ("words", "message"),
    [(["tui", "-"], "keyboard"), (["tui", "nothing-here"], "nothing-here"), (["tui", "empty"], "status 3")],
)
def test_what_cannot_be_opened_is_one_sentence(terminal: Terminal, tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "case.duckdb").write_bytes(b"no database")
    terminal.width = 160
    terminal.start(*words)
    shown = terminal.until(message)
    assert "Traceback" not in shown and "status" in terminal.until("status")


def test_without_a_terminal_it_says_what_to_use() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "forensics", "tui", "x"], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 2 and "dsforensics report" in done.stderr and "Traceback" not in done.stderr
