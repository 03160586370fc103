"""Lines that look alike are judged once: in a storm of errors most lines differ in their numbers only.

A class is known by the expressions that the matcher reported on a line, and the line with all digits made equal: whatever depends on
digits is for the matcher to tell (`looks.telling`).
"""

from __future__ import annotations

import re
from collections.abc import Hashable

import msgspec

LONGEST = 4096
"""Bytes up to which what a line looks like is kept as it is."""
MOST = 20_000
"""Classes after which a process forgets them, between two blocks."""
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_HEX = re.compile(rb"0x[0-9a-fA-F]+")
PROCESS_WITHIN, PROCESS_LONG = 26, 100
"""Bytes from the begin of a line, and from there on, within which a bracket tells the process."""


class LineClass:
    """What is known of lines that look alike."""

    __slots__ = ("marked", "matched", "wanted")

    def __init__(self, matched: tuple[int, ...], marks: frozenset[int]) -> None:
        self.matched = matched
        self.marked = not marks.isdisjoint(matched)
        self.wanted = tuple(target for target in matched if target not in marks)
        """Of which lines are kept."""


class Alike(msgspec.Struct, gc=False):
    """Lines of one block and process that look alike and on which the same expressions report."""

    key: Hashable
    """Of their class; other processes' lines may have the same."""
    reported: bytes
    """Numbers of the expressions, ascending, as an array of 32-bit integers."""
    count: int
    lines: list[tuple[int, int, int]]
    """The first of them: line index, start, stop."""
    last: tuple[int, int, int]


def look_of(line: bytes) -> bytes:
    """The line with its digits made equal, as long as it was, since a regex may count characters."""
    alike = line.translate(_DIGITS)
    return _HEX.sub(_zeros, alike) if b"0x" in alike else alike


def process_of(line: bytes) -> bytes:
    """What a line says near its begin of the process that printed it, such as `(838,python3)`; empty if nothing."""
    at = line.find(b"(", 0, PROCESS_WITHIN)
    return line[at : line.find(b")", at, at + PROCESS_LONG) + 1 or at + PROCESS_LONG] if at >= 0 else b""


def _zeros(match: re.Match[bytes]) -> bytes:
    return b"0x" + b"0" * (match.end() - match.start() - 2)
