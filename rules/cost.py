"""Patterns that make a scan slow: told to the author of a pack, not to those who use it.

    >>> print(costly(Leaf(id="m", regex=r"(?P<n>\\d+) ms|took (?P<s>\\d+) s")).split(":")[0])
    a part of this regex has no fixed text to look for

A line that holds the texts of a pattern (`literals`) is compared with the pattern, which costs about 2 microseconds; a regex without such
texts is searched for in every byte. Both are fine as long as they are seldom.
"""

from __future__ import annotations

import re

from rules import literals
from rules.looks import chains_of
from rules.model import Leaf, Problem, RuleSet, leaves_of

SHOWN = 3
"""Texts named in a warning."""


def costly_leaves(rules: RuleSet) -> list[Problem]:
    """A warning for each pattern of a rule set that ordinary logs meet too often, or that has no text to be looked for."""
    return [
        Problem(rule.file, rule.line, 1, f"{rule.id}: {leaf.id}: {message}", "warning")
        for rule in rules.rules
        for leaf in leaves_of(rule.match)
        if leaf.of_line and (message := costly(leaf))
    ]


def costly(leaf: Leaf) -> str:
    """What makes a pattern slow and what to do about it, or an empty text."""
    chains, folded = chains_of(leaf)
    if not chains and _anchored(leaf):
        return ""  # looked for at the begins of lines only, as rows of a table are
    if not chains:
        return (
            "a part of this regex has no fixed text to look for: it is searched for in every byte of a log; let each alternative hold "
            f"a text of {literals.SHORTEST} bytes or more that the line always has, or move the alternative that has none into a pattern of its own"
        )
    met = literals.met(chains, folded)
    if met <= literals.OFTEN:
        return ""
    worst = max(chains, key=lambda chain: literals.lines_of(chain, folded))
    texts = " ... ".join(_some(texts, folded) for texts in worst)
    return (
        f"ordinary logs are full of what it looks for, {texts}: {met} of {literals.lines()} sample lines; "
        "name a rarer text that the line always holds, or ask for a fact (env.*, arg.*) instead of a line"
    )


def _anchored(leaf: Leaf) -> bool:
    """Whether all of a regex stands at the begin of a line."""
    try:
        tree = literals.parser.parse(leaf.regex)
    except (re.error, RecursionError, OverflowError):
        return False
    return len(tree) > 1 and tree[0] == (literals.ops.AT, literals.ops.AT_BEGINNING)


def _some(texts: literals.Texts, folded: bool) -> str:
    """The most frequent of a choice of texts."""
    first = sorted(texts, key=lambda text: (-literals.frequency(text, folded), text))
    return " or ".join(map(repr, first[:SHOWN])) + (" or the like" if len(first) > SHOWN else "")
