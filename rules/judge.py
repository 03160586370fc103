"""Whether a line is what a leaf looks for, and what it captures there: the texts it needs first, then its regex, under a time limit.

A regex that cannot run away on a line of ordinary length is run by the standard library, which is several times faster; any other by
`regex`, which stops at the limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import regex

from rules.literals import ops, parser

CAPTURE = 400
"""Characters kept of a capture."""
SECONDS = 0.25
"""Time limit of one regex on one line."""
SHORT = 4096
"""Characters up to which a plain regex is run without a limit."""


class TooLong(Exception):
    """The regex ran into its time limit."""


class Judge:
    """Judges lines for one leaf, or for one extra pattern."""

    __slots__ = ("_choices", "_flags", "_folds", "_plain", "_refused", "_slow", "_source", "_texts")

    def __init__(
        self, source: str, ignore_case: bool = False, texts: Sequence[str] = (), refused: Sequence[str] = (), needs: Sequence[Sequence[str]] = ()
    ) -> None:
        """`source`: a regex, or empty; `texts`: what must all stand on the line; `refused`: what must not; `needs`: sets of texts of each of
        which one must stand there (lower case where the regex ignores case)."""
        self._source, self._refused = source, tuple(refused)
        self._texts = (*texts, *(choice[0] for choice in needs if len(choice) == 1))
        self._choices = tuple(tuple(choice) for choice in needs if len(choice) > 1)
        self._folds = ignore_case or "(?i" in source
        self._flags = regex.I if ignore_case else 0
        self._plain: re.Pattern[str] | None = None
        self._slow: regex.Pattern[str] | None = None

    def captures(self, text: str) -> dict[str, str] | None:
        """The captures on this line, empty where the leaf has none; None where the line is none of its own. Raises TooLong."""
        folded = text.lower() if self._folds else text
        for one in self._texts:
            if one not in folded:
                return None
        for choice in self._choices:
            for one in choice:
                if one in folded:
                    break
            else:
                return None
        for one in self._refused:
            if one in folded:
                return None
        if not self._source:
            return {}
        match = self._search(text)
        if match is None:
            return None
        return {name: value[:CAPTURE] for name, value in match.groupdict().items() if value is not None}

    def _search(self, text: str) -> Any:
        if self._plain is None and self._slow is None:
            self._compile()
        if self._plain is not None and len(text) <= SHORT:
            return self._plain.search(text)
        if self._slow is None:
            self._slow = regex.compile(self._source, self._flags)
        try:
            return self._slow.search(text, timeout=SECONDS)
        except TimeoutError:
            raise TooLong from None

    def _compile(self) -> None:
        if tame(self._source):
            self._plain = re.compile(self._source, re.IGNORECASE if self._flags else 0)
        else:
            self._slow = regex.compile(self._source, self._flags)


def tame(source: str) -> bool:
    """Whether the standard library can run a regex on a short line without limit: nothing is repeated inside a repeat, few repeats are open."""
    try:
        tree = parser.parse(source)
    except (re.error, RecursionError, OverflowError):
        return False
    return _open_repeats(tree, False) <= 6


def _open_repeats(items: Any, inside: bool) -> int:
    """Open repeats that can follow each other on one line; many where one stands inside another."""
    total = 0
    for op, value in items:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            low, high, inner = value
            wide = high > 8
            if wide and inside:
                return 1000
            total += (wide and high != low) + _open_repeats(inner, inside or wide)
        elif op is ops.SUBPATTERN:
            total += _open_repeats(value[3], inside)
        elif op is ops.BRANCH:
            counts = [_open_repeats(branch, inside) for branch in value[1]]
            if inside and len(counts) > 1:
                return 1000
            total += max(counts)
        elif op not in (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN, ops.AT):
            return 1000
    return total
