"""The line that shows how far a triage is: on standard error, on a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO

from forensics.options import Progress
from forensics.report.figures import size
from forensics.report.strings import say
from forensics.safe_text import cells, clip, safe
from forensics.terminal import ascii_only, width

REFRESH = 0.1
"""Seconds between two drawings."""


class ProgressLine:
    """One line, drawn over and over, with bytes, rate and time left; wiped before anything else is printed.

    Written by hand: no thread draws it, so the workers can be forked at any time, and the cursor is never hidden,
    so a killed run leaves the terminal as it was.
    """

    def __init__(self, lang: str, stream: TextIO | None = None):
        self._stream = stream or sys.stderr
        self._lang = lang
        self._ascii = ascii_only(self._stream)
        self._stage = ""
        self._begun = self._drawn = 0.0
        self._shown = False

    def __call__(self, progress: Progress) -> None:
        if progress.finding is not None:
            self.clear()
            self._write(clip(f"{say(self._lang, 'stage.finding')}  {safe(progress.finding.of(self._lang))}", width() - 1) + "\n")
            return
        now = time.monotonic()
        if progress.stage != self._stage:
            self._stage, self._begun, self._drawn = progress.stage, now, 0.0
        if now - self._drawn < REFRESH:
            return
        self._drawn = now
        self._write("\r" + self._line(progress, now - self._begun) + "\x1b[K")
        self._shown = True

    def _line(self, progress: Progress, seconds: float) -> str:
        rate = progress.done / seconds if seconds > 0.2 else 0.0
        parts = [say(self._lang, f"stage.{progress.stage}")]
        if progress.total:
            parts += [f"{min(100, 100 * progress.done // progress.total):3d} %", f"{size(progress.done)} / {size(progress.total)}"]
        else:
            parts.append(size(progress.done))
        if rate:
            parts.append(f"{size(rate)}/s")
            if progress.total > progress.done:
                parts.append(_clock((progress.total - progress.done) / rate))
        room = width() - 1
        line = clip("  ".join(parts), room)
        if progress.what and room - cells(line) > 12:
            line += "  " + clip(safe(progress.what), room - cells(line) - 2)
        return line.replace("…", "~") if self._ascii else line

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._shown = False

    def clear(self) -> None:
        """Wipes the line; the next report draws it again."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"
