"""The progress line: says bytes, rate and time left, fits its line, and leaves nothing behind."""

from __future__ import annotations

import io

import pytest

from forensics import progress as module
from forensics.options import Progress
from forensics.progress import ProgressLine
from forensics.safe_text import cells


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "60")
    return now


def drawn(stream: io.StringIO) -> list[str]:
    return [piece.removesuffix("\x1b[K") for piece in stream.getvalue().split("\r")]


def test_bytes_rate_and_time_left_are_shown(clock: list[float]) -> None:
    stream = io.StringIO()
    line = ProgressLine("en", stream)
    line(Progress("read", 0, 4_000_000))
    clock[0] += 2
    line(Progress("read", 1_000_000, 4_000_000))
    assert drawn(stream)[-1] == "reading   25 %  1 MB / 4 MB  500 kB/s  00:06"


def test_it_is_drawn_now_and_then_only_and_fits_its_line(clock: list[float]) -> None:
    stream = io.StringIO()
    line = ProgressLine("zh", stream)
    for step in range(1000):
        clock[0] += 0.001
        line(Progress("index", step, 1000, what="plog/\x1b[31m日志" * 9))
    pieces = drawn(stream)
    assert 8 <= len(pieces) <= 12
    assert all(cells(piece) < 60 and "\x1b" not in piece for piece in pieces)


def test_it_is_wiped_once(clock: list[float]) -> None:
    stream = io.StringIO()
    with ProgressLine("en", stream) as line:
        line(Progress("read", 5, 0))
        line.clear()
    assert stream.getvalue().endswith("\r\x1b[K")
    assert stream.getvalue().count("\x1b[K") == 2


def test_a_stream_that_breaks_does_not_stop_the_work(clock: list[float]) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    ProgressLine("en", Broken())(Progress("read", 5, 10))


def test_the_first_sure_diagnosis_is_told_before_the_end() -> None:
    from rules.model import Text

    stream = io.StringIO()
    line = ProgressLine("zh", stream)
    line(Progress("read", 1, 10))
    line(Progress("read", 1, 10, finding=Text("A card was lost", "掉卡\x1b[31m")))
    shown = stream.getvalue()
    assert "目前判断  掉卡" in shown and shown.endswith("\n")
    assert "\x1b[31m" not in shown
