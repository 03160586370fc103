"""The texts a regex cannot do without: what the scan looks for, so that the regex itself is asked only about lines that hold them.

    >>> [sorted(texts) for texts in required(r"(?P<op>aclnn\\w+) failed.*(?:shape|dim) (\\d+)")]
    [['aclnn'], [' failed'], ['dim ', 'shape ']]

Each set is a choice: a line that matches holds at least one text of every set, in this order and beside each other. An empty list
means that nothing can be promised.
"""

from __future__ import annotations

import functools
import gzip
import os
import pathlib
import re
from typing import Any

try:  # the parser of the standard library's regexes; only its name has changed
    from re import _constants as ops  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as ops
    import sre_parse as parser

CHOICES = 48
"""Texts in one set; a larger choice is not worth looking for."""
SHORTEST = 3
"""Characters of a text worth looking for."""

Texts = frozenset[str]
_EMPTY: Texts = frozenset({""})

BACKGROUND = pathlib.Path(__file__).parent / "data" / "background.txt.gz"
"""Lines as logs are full of, of every source: how often a text stands here says how often a scan will meet it."""


def required(source: str, ignore_case: bool = False) -> list[Texts]:
    """The sets of texts that every line matching `source` holds one each of; lower case where the regex ignores case."""
    try:
        tree = parser.parse(source, re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError):
        return []
    folded = bool(tree.state.flags & re.IGNORECASE) or "(?i" in source
    exact, needed = _sequence(tree, folded)
    sets = needed if exact is None else [exact]
    return [texts for texts in dict.fromkeys(sets) if texts and min(map(len, texts)) >= SHORTEST]


def folds(source: str, ignore_case: bool = False) -> bool:
    """Whether the texts of a regex have to be looked for in either case: where it, or a part of it, ignores case."""
    return ignore_case or "(?i" in source


@functools.cache
def _background() -> str:
    return gzip.decompress(BACKGROUND.read_bytes()).decode()


@functools.cache
def _folded() -> str:
    return _background().lower()


@functools.cache
def frequency(text: str, folded: bool = False) -> int:
    """How often a text stands in ordinary logs, as a number of times in the background."""
    return _folded().count(text.lower()) if folded else _background().count(text)


def rarity(text: str) -> tuple[int, int]:
    """Orders texts, the seldom one last: by frequency, then by length."""
    return -frequency(text), len(text)


def compact(texts: Texts, folded: bool) -> tuple[Texts, bool]:
    """The same choice in fewer texts, and whether they ignore case: spellings in two cases become one, and a text that contains another
    of them goes, as does the end in which they differ where what they begin with is rare enough."""
    lower = frozenset(text.lower() for text in texts)
    if not folded and len(lower) < len(texts):
        texts, folded = lower, True
    texts = frozenset(text for text in texts if not any(other != text and other in text for other in texts))
    if len(texts) > 1:
        for shared in (os.path.commonprefix(sorted(texts)), os.path.commonprefix([text[::-1] for text in sorted(texts)])[::-1]):
            if good(frozenset({shared}), folded):
                return frozenset({shared}), folded
    return texts, folded


def good(texts: Texts, folded: bool = False) -> bool:
    """Whether a scan may look for these alone: none stands in ordinary logs, and each is a phrase or a long word."""
    return all(len(text) >= (10 if " " in text.strip() else 14) and not frequency(text, folded) for text in texts)


def often(texts: Texts, folded: bool = False) -> int:
    """How often a scan meets any of the texts."""
    return sum(frequency(text, folded) for text in texts)


def rarest(sets: list[Texts], folded: bool = False) -> Texts:
    """The set to look for: the one that a scan meets the least often."""
    return max(sets, key=lambda texts: (-often(texts, folded), min(map(len, texts)), -len(texts), sorted(texts)))


def _sequence(items: Any, folded: bool) -> tuple[Texts | None, list[Texts]]:
    """(all texts the items can match, or None where that is no short list; the sets of texts they need)."""
    run, needed, whole = _EMPTY, [], True

    def flush() -> None:
        nonlocal run
        if run != _EMPTY:
            needed.append(run)
        run = _EMPTY

    for op, value in items:
        exact, more = _item(op, value, folded)
        if exact is not None and len(run) * len(exact) <= CHOICES:
            run = frozenset(a + b for a in run for b in exact)
            continue
        whole = False
        flush()
        if exact is not None:
            run = exact
        else:
            needed += more
    if whole:
        return run, []
    flush()
    return None, needed


def _item(op: Any, value: Any, folded: bool) -> tuple[Texts | None, list[Texts]]:
    if op is ops.LITERAL:
        return frozenset({chr(value).lower() if folded else chr(value)}), []
    if op is ops.IN:
        letters = [chr(one) for kind, one in value if kind is ops.LITERAL]
        if len(letters) == len(value) and len(letters) <= 4:
            return frozenset(c.lower() if folded else c for c in letters), []
        return None, []
    if op is ops.AT:
        return _EMPTY, []
    if op is ops.SUBPATTERN:
        return _sequence(value[3], folded)
    if op is ops.BRANCH:
        return _branches(value[1], folded)
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT) or op is getattr(ops, "POSSESSIVE_REPEAT", None):
        low, high, inner = value
        exact, more = _sequence(inner, folded)
        if (low, high) == (0, 1) and exact is not None and len(exact) < CHOICES:
            return exact | _EMPTY, []
        if low >= 1:
            return None, [exact] if exact is not None else more
        return None, []
    if op is getattr(ops, "ATOMIC_GROUP", None):
        return _sequence(value, folded)
    return None, []


def _branches(branches: Any, folded: bool) -> tuple[Texts | None, list[Texts]]:
    read = [_sequence(branch, folded) for branch in branches]
    if all(exact is not None for exact, _ in read):
        union = frozenset().union(*(exact for exact, _ in read if exact is not None))
        return (union, []) if len(union) <= CHOICES else (None, [])
    chosen: list[Texts] = []
    for exact, needed in read:
        sets = [texts for texts in ([exact] if exact is not None else needed) if texts and min(map(len, texts)) >= SHORTEST]
        if not sets:
            return None, []
        chosen.append(rarest(sets, folded))
    union = frozenset().union(*chosen)
    return None, [union] if len(union) <= CHOICES else []
