"""What every parser shares: the protocol, and how a line is made readable before a grammar looks at it."""

from __future__ import annotations

import re
from typing import ClassVar

from parsers.rows import Document, Record

ANSI = re.compile(
    r"(?:\x1b|\^\[|\\x1b|\\033|\\u001b)\[[0-9;?]*[ -/]*[@-~]"  # colours and cursor moves, real or spelled out
    r"|\x1b[()][A-Z0-9]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\|\x1b[@-Z\\-_c]"
)


class Parser:
    """One kind of source. Subclasses set `kind` and override `claims` and `record`; some also `extract`."""

    kind: ClassVar[str]
    """Source kind, as rules name it in `source:`."""

    def claims(self, path: str, head: str) -> int:
        """How sure this parser is that a member is its own, 0 (no) to 100.

        `path`: the member's path in the bundle, with / between its parts; a hint only, since files get renamed.
        `head`: the first kilobytes, decoded, of whole lines.
        """
        raise NotImplementedError

    def record(self, line: str) -> Record | None:
        """The record whose first line this is, or None where the line continues the record above it.

        `line` is without its line end and already cleaned (`clean`)."""
        raise NotImplementedError

    def extract(self, text: str) -> Document:
        """Facts and numbers of a whole text (at most a few MB); line numbers count from 1."""
        return Document()


def clean(line: str) -> str:
    """A line as a person would read it: no NULs, no terminal sequences, the last state of a progress bar."""
    if "\0" in line:
        line = line.replace("\0", "")
    if "\x1b" in line or "^[" in line or "\\x1b" in line or "\\033" in line or "\\u001b" in line:
        line = ANSI.sub("", line)
    line = line.rstrip("\r")
    if line.endswith("^M"):
        line = line[:-2]
    if "\r" in line:
        line = line.rsplit("\r", 1)[1]
    return line
