"""What each rule costs on a piece of a log: how many lines its patterns are compared with, and how long that takes.

A scan looks for texts first, for all rules at once; that part hardly depends on how many rules there are. What a rule costs by itself are
the lines that hold its texts: each is compared with its pattern.
"""

from __future__ import annotations

import bisect
import itertools
import time

import msgspec

from rules import literals, looks, scan
from rules.judge import Judge, TooLong
from rules.model import Leaf, RuleSet

REPEAT = 3
"""Times a rule's lines are compared; the fastest counts."""


class Cost(msgspec.Struct):
    """What one rule costs."""

    rule: str
    asked: int = 0
    """Lines that hold the texts of one of its patterns."""
    found: int = 0
    """Of these, lines that a pattern matches."""
    seconds: float = 0.0
    """CPU time to compare these lines with its patterns."""


def measure(rules: RuleSet, text: bytes) -> tuple[list[Cost], float]:
    """The cost of each rule on a text, the dearest first, and the CPU seconds of one pass with all of them."""
    scanner = scan.Scanner.load(rules)
    started = time.process_time()
    scanner.scan(text, len(text))
    total = time.process_time() - started
    costs = {rule.id: Cost(rule.id) for rule in rules.rules}
    leaves = [(rule.id, leaf) for rule in rules.rules for leaf in scan.leaves_of(rule.match) if leaf.of_line]
    for (ident, leaf), lines in zip(leaves, _asked([leaf for _, leaf in leaves], text), strict=True):
        cost = costs[ident]
        found, seconds = _compared(leaf, lines)
        cost.asked += len(lines)
        cost.found += found
        cost.seconds += seconds
    return sorted(costs.values(), key=lambda cost: (-cost.seconds, -cost.asked, cost.rule)), total


def _asked(leaves: list[Leaf], text: bytes) -> list[list[str]]:
    """For each pattern the lines that hold what is looked for on its behalf."""
    wanted: dict[looks.Expression, list[int]] = {}
    for number, leaf in enumerate(leaves):
        for expression in looks.telling(leaf):
            wanted.setdefault(expression, []).append(number)
    expressions = list(wanted)
    if not expressions:
        return [[] for _ in leaves]
    database = looks.database(expressions)
    ends = list(itertools.accumulate(len(line) + 1 for line in text.split(b"\n")))
    met: list[set[int]] = [set() for _ in leaves]

    def report(ident: int, start: int, end: int, flags: int, context: object) -> None:
        line = bisect.bisect_left(ends, end)
        for number in wanted[expressions[ident]]:
            met[number].add(line)

    database.scan(text, match_event_handler=report)
    starts = [0, *ends]
    return [[scan.line_text(text, starts[line], min(ends[line] - 1, len(text))) for line in sorted(lines)] for lines in met]


def _compared(leaf: Leaf, lines: list[str]) -> tuple[int, float]:
    """Lines that a pattern matches, and the CPU seconds to find out."""
    source = "" if leaf.contains else looks.source_of(leaf)
    needs = [] if leaf.contains else [tuple(sorted(texts)) for texts in literals.required(source, leaf.ignore_case)]
    judge = Judge(source, leaf.ignore_case, leaf.contains, leaf.not_contains, needs)
    best, found = float("inf"), 0
    for _ in range(REPEAT if lines else 0):
        started, found = time.process_time(), 0
        try:
            for line in lines:
                found += judge.captures(line) is not None
        except TooLong:
            return found, time.process_time() - started
        best = min(best, time.process_time() - started)
    return found, best if lines else 0.0
