"""Standard output and standard error as they are found: terminal or pipe, wide or narrow, UTF-8 or ASCII, open, full or closed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TextIO

from forensics.errors import ForensicsError
from forensics.safe_text import safe

MAX_WIDTH = 160
"""Text wider than this is hard to read."""


class OutputError(ForensicsError):
    """Standard output takes nothing, such as on a full disk."""

    status = 3


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def colour(wanted: bool = True, stream: TextIO | None = None) -> bool:
    """Whether to colour: --no-color, then NO_COLOR, then FORCE_COLOR, then whether the stream is a terminal that can."""
    if not wanted or os.environ.get("NO_COLOR"):
        return False
    if force := os.environ.get("FORCE_COLOR"):
        return force not in ("0", "false")
    return is_terminal(stream or sys.stdout) and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns to write for: of the terminal (or COLUMNS), 80 where there is none."""
    return max(40, min(MAX_WIDTH, shutil.get_terminal_size((80, 24)).columns))


def ascii_only(stream: TextIO | None = None) -> bool:
    """Whether the stream's encoding lacks the arrows and dots of the reports."""
    try:
        "→·…×".encode(getattr(stream or sys.stdout, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return True
    return False


def default_language() -> str:
    """zh where the locale is Chinese, en elsewhere."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


class Output:
    """Writes results to standard output. A reader that goes away ends the output quietly; a disk that is full is an OutputError."""

    def __init__(self) -> None:
        self.gone = False

    def text(self, text: str) -> None:
        """Text for people: in the encoding of the stream, what that lacks spelled out."""
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self.data(text.encode(encoding, "backslashreplace"))

    def data(self, data: bytes) -> None:
        """Bytes as they are: JSON, CSV, Markdown and Parquet have an encoding of their own."""
        if self.gone:
            return
        if sys.stdout is None:
            raise OutputError("The result could not be written: standard output is closed. Open it, or send it to a file.")
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self.gone = True
            silence(sys.stdout)
        except OSError as error:
            silence(sys.stdout)
            raise OutputError(
                f"The result could not be written to standard output: {error.strerror or error}. Make room, or send it elsewhere."
            ) from error


def complain(text: str) -> None:
    """One message on standard error, harmless on a terminal; given up where nobody can read it."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(safe(text) + "\n")  # its error handler is backslashreplace
        sys.stderr.flush()
    except (OSError, ValueError):
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Points a broken stream at nowhere, so that Python's own flush at exit has nothing to complain about."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
