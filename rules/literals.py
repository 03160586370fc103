"""The texts a regex cannot do without: what the scan looks for, so that the regex itself is asked only about lines that hold them.

    >>> [sorted(texts) for texts in required(r"(?P<op>aclnn\\w+) failed.*(?:shape|dim) (\\d+)")]
    [['aclnn'], [' failed'], ['dim ', 'shape ']]

Each set is a choice: a line that matches holds at least one text of every set, in this order and beside each other. An empty list
means that nothing can be promised.
"""

from __future__ import annotations

import bisect
import collections
import functools
import gzip
import hashlib
import itertools
import pathlib
import re
from typing import Any

try:  # the parser of the standard library's regexes; only its name has changed
    from re import _constants as ops  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as ops
    import sre_parse as parser

__all__ = ["compact", "folds", "frequency", "often", "ops", "parser", "rarest", "rarity", "required"]

CHOICES = 48
"""Texts in one set; a larger choice is not worth looking for."""
LETTERS = 10
"""Characters of a class that are written out."""
OFTEN = 24
"""Lines of the background from which on a text is no help: logs are full of it."""
SELDOM = 6
"""Lines of the background for which a short choice of texts is preferred to a long one that is met less."""
REPEATS = 24
"""Times a text that repeats is written out."""
SHORTEST = 3
"""Bytes of a text worth looking for."""

AFFIX = 7
"""Characters by which texts are alike, at their beginning or end."""
GRAM = 4
"""Characters at its end by which a text is told from ordinary logs first."""
LINKS = 3
"""Sets of texts looked for in a row."""

Texts = frozenset[str]
Chain = tuple[Texts, ...]
_EMPTY: Texts = frozenset({""})

_NAMED = re.compile(r"(?<!\\)\(\?P<\w+>")

BACKGROUND = pathlib.Path(__file__).parent / "data" / "background.txt.gz"
"""Lines as logs are full of, of every source: how often a text stands here says how often a scan will meet it."""


def required(source: str, ignore_case: bool = False) -> list[Texts]:
    """The sets of texts that every line matching `source` holds one each of; lower case where the regex ignores case."""
    tree, folded = _read(source, ignore_case)
    return [] if tree is None else _sets(tree, folded)


def _read(source: str, ignore_case: bool) -> tuple[Any, bool]:
    """The tree of a regex, None where it cannot be read, and whether its texts are to be lower case."""
    tree = _tree(source, ignore_case)
    if tree is None and "(?i)" in source:  # from there on: ignoring case everywhere promises less, and holds
        tree = _tree(source.replace("(?i)", ""), True)
    return tree, folds(source, ignore_case) or bool(tree and tree.state.flags & re.IGNORECASE)


def _sets(items: Any, folded: bool) -> list[Texts]:
    exact, needed = _sequence(items, folded)
    sets = needed if exact is None else [exact]
    return [texts for texts in dict.fromkeys(sets) if texts and min(map(_size, texts)) >= SHORTEST]


def _size(text: str) -> int:
    return len(text.encode())


def _tree(source: str, ignore_case: bool) -> Any:
    try:
        return parser.parse(_NAMED.sub("(", source), re.IGNORECASE if ignore_case else 0)  # a name may stand twice
    except (re.error, RecursionError, OverflowError):
        return None


def folds(source: str, ignore_case: bool = False) -> bool:
    """Whether the texts of a regex have to be looked for in either case: where it, or a part of it, ignores case."""
    return ignore_case or "(?i" in source


def edition() -> bytes:
    """Changes with the background, and so with what is looked for."""
    return hashlib.sha256(BACKGROUND.read_bytes()).digest()


@functools.cache
def background() -> str:
    """Lines as logs are full of."""
    return gzip.decompress(BACKGROUND.read_bytes()).decode()


@functools.cache
def _folded() -> str:
    return background().lower()


RUN = 6


@functools.cache
def _runs(folded: bool) -> frozenset[str]:
    """All runs of RUN characters in the background: most texts asked about are not there, and this says so at once."""
    text = _folded() if folded else background()
    return frozenset(text[n : n + RUN] for n in range(len(text) - RUN + 1))


@functools.cache
def frequency(text: str, folded: bool = False) -> int:
    """How often a text stands in ordinary logs, as a number of times in the background."""
    text = text.lower() if folded else text
    if len(text) >= RUN and (text[:RUN] not in _runs(folded) or text[-RUN:] not in _runs(folded)):
        return 0
    return (_folded() if folded else background()).count(text)


def rarity(text: str) -> tuple[int, int]:
    """Orders texts, the seldom one last: by frequency, then by length."""
    return -frequency(text), len(text)


def compact(texts: Texts, folded: bool) -> tuple[Texts, bool]:
    """The same choice in fewer texts, and whether they ignore case: spellings in two cases become one, and of texts that begin or end
    alike only that is looked for where logs do not hold it."""
    lower = frozenset(text.lower() for text in texts)
    if not folded and len(lower) < len(texts):
        texts, folded = lower, True
    texts = _alike(_alike(_shortest(texts), folded), folded, backwards=True)
    return _shortest(texts), folded


def _shortest(texts: Texts) -> Texts:
    """Without those that hold another of them."""
    return frozenset(text for text in texts if not any(other != text and other in text for other in texts))


def _alike(texts: Texts, folded: bool, backwards: bool = False) -> Texts:
    step = -1 if backwards else 1
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(text[::step][:AFFIX], []).append(text)
    out: set[str] = set()
    for group in groups.values():
        shared = _beginning([text[::step] for text in group])[::step]
        out.update(group if len(shared) < AFFIX or frequency(shared, folded) else [shared])
    return frozenset(out)


def _beginning(texts: list[str]) -> str:
    """What all of them begin with."""
    low, high = min(texts), max(texts)
    return low[: next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))]


def cut(text: str, folded: bool = False) -> str:
    """A text up to where it is the least like ordinary logs. A scan knows a text by its last characters, so that one that ends like
    everything else (` failed`) is compared at every such place."""
    grams = _grams()
    end = min(range(len(text), AFFIX - 1, -1), key=lambda end: (grams[text[end - GRAM : end].lower()], -end), default=len(text))
    return text[:end] if frequency(text[:end], folded) <= frequency(text, folded) else text


@functools.cache
def _grams() -> collections.Counter[str]:
    hay = _folded()
    return collections.Counter(hay[at : at + GRAM] for at in range(len(hay)))


def often(texts: Texts, folded: bool = False) -> int:
    """How often a scan meets any of the texts."""
    return sum(frequency(text, folded) for text in texts)


@functools.cache
def _line_ends() -> list[int]:
    return [match.start() for match in re.finditer("\n", background())]


@functools.cache
def _where(text: str, folded: bool) -> frozenset[int]:
    """The lines of the background that hold a text."""
    if not frequency(text, folded):
        return frozenset()
    hay, text = (_folded(), text.lower()) if folded else (background(), text)
    ends, found, at = _line_ends(), set(), hay.find(text)
    while at >= 0:
        line = bisect.bisect_left(ends, at)
        found.add(line)
        at = hay.find(text, ends[line]) if line < len(ends) else -1
    return frozenset(found)


def lines() -> int:
    """Lines of the background."""
    return len(_line_ends())


def lines_of(chain: Chain, folded: bool = False) -> int:
    """Lines of the background that hold a text of each set: how often a scan for the chain has to look closer."""
    return len(frozenset.intersection(*(frozenset().union(*(_where(text, folded) for text in texts)) for texts in chain)))


def chain(sets: list[Texts], folded: bool = False) -> Chain:
    """What to look for: the rarest set, or, where logs hold it all the same, up to `LINKS` of them in their order. Of those that are
    seldom met the one whose texts are, each for itself: a frequent text costs even where it leads to nothing."""
    best = rarest(sets, folded)
    if len(sets) == 1 or often(best, folded) <= SELDOM:
        return (best,)
    choices = [some for links in range(1, LINKS + 1) for some in itertools.combinations(sets, links)]
    return min(choices, key=lambda some: (max(SELDOM, lines_of(some, folded)), sum(often(texts, folded) for texts in some), len(some)))


def chains(source: str, ignore_case: bool = False) -> list[Chain]:
    """Chains of which every line that matches holds one: of the whole regex, or, where it is cheaper, one of each of its alternatives.
    Empty where nothing can be promised."""
    tree, folded = _read(source, ignore_case)
    whole = _chain_of(tree, folded)
    if whole is not None and len(whole) == 1 and lines_of(whole, folded) <= SELDOM:
        return [whole]
    parts = [_chain_of(items, folded) for items in _alternatives(list(tree or []))]
    each = [part for part in dict.fromkeys(parts) if part is not None]
    if None in parts or not each:
        return [] if whole is None else [whole]
    if whole is not None:
        few = sum(len(texts) for part in each for texts in part) <= CHOICES or lines_of(whole, folded) > OFTEN
        if not few or _price(whole, folded) <= max(_price(part, folded) for part in each):
            return [whole]
    return each


def _price(some: Chain, folded: bool) -> int:
    return max(SELDOM, lines_of(some, folded))


def _chain_of(items: Any, folded: bool) -> Chain | None:
    sets = _sets(items, folded) if items is not None else []
    return chain(sets, folded) if sets else None


def _alternatives(items: list[Any]) -> list[list[Any]]:
    """A sequence written out once for every alternative in it, as long as these are few."""
    ready: list[list[Any]] = []
    queue = [items]
    while queue:
        items = queue.pop(0)
        split = next(((n, branches) for n, item in enumerate(items) if len(branches := _branches_of(item)) > 1), None)
        if split is None or len(ready) + len(queue) + len(split[1]) > CHOICES:
            ready.append(items)
        else:
            queue += [[*items[: split[0]], *branch, *items[split[0] + 1 :]] for branch in split[1]]
    return ready


def _branches_of(item: Any) -> list[list[Any]]:
    """The alternatives of a branch that are more than a choice of texts."""
    op, value = item
    if op is ops.SUBPATTERN and len(value[3]) == 1:
        return _branches_of(value[3][0])
    if op is ops.BRANCH and _branches(value[1], False)[0] is None:
        return [list(branch) for branch in value[1]]
    return []


def met(some: list[Chain], folded: bool = False) -> int:
    """Lines of the background on which a scan for any of the chains has to look closer, those of two counted twice."""
    return sum(lines_of(one, folded) for one in some)


def apart(one: str, other: str) -> bool:
    """Whether two texts on one line cannot share characters, so that one of them comes first."""
    shorter = min(len(one), len(other))
    return one not in other and other not in one and not any(one[-n:] == other[:n] or other[-n:] == one[:n] for n in range(1, shorter))


def rarest(sets: list[Texts], folded: bool = False) -> Texts:
    """The set to look for: the one that a scan meets the least often."""
    return max(sets, key=lambda texts: (-often(texts, folded), min(8, *map(len, texts)), -len(texts), min(map(len, texts)), sorted(texts)))


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
        letters = _letters(value)
        return (frozenset(c.lower() if folded else c for c in letters), []) if letters else (None, [])
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
        if low >= 1 and exact is not None:
            if low > 1 and len(exact) == 1:
                text = next(iter(exact)) * min(low, REPEATS)
                return (frozenset({text}), []) if low == high and low <= REPEATS else (None, [frozenset({text})])
            return (exact, []) if low == high == 1 else (None, [exact])
        if low >= 1:
            return None, more
        return None, []
    if op is getattr(ops, "ATOMIC_GROUP", None):
        return _sequence(value, folded)
    return None, []


def _letters(value: Any) -> set[str]:
    """The characters of a class, where these are few."""
    letters: set[str] = set()
    for kind, one in value:
        low, high = (one, one) if kind is ops.LITERAL else one if kind is ops.RANGE else (0, LETTERS)
        if high - low >= LETTERS:
            return set()
        letters.update(map(chr, range(low, high + 1)))
    return letters if len(letters) <= LETTERS else set()


def _branches(branches: Any, folded: bool) -> tuple[Texts | None, list[Texts]]:
    read = [_sequence(branch, folded) for branch in branches]
    if all(exact is not None for exact, _ in read):
        union = frozenset().union(*(exact for exact, _ in read if exact is not None))
        return (union, []) if len(union) <= CHOICES else (None, [])
    chosen: list[Texts] = []
    for exact, needed in read:
        sets = [texts for texts in ([exact] if exact is not None else needed) if texts and min(map(_size, texts)) >= SHORTEST]
        if not sets:
            return None, []
        chosen.append(rarest(sets, folded))
    union = frozenset().union(*chosen)
    return None, [union] if len(union) <= CHOICES else []
