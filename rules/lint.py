"""What is missing or doubtful in rules that run: told to their authors by `dsforensics rules lint`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rules import scan
from rules.model import Leaf, Problem, Rule, RuleSet

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
GENERIC = re.compile(r"(?:E[A-Z]9999|507899|507033|507048|507035|507015|107002|107020|EI000[26]|E39999)\Z")
"""Codes that point and never decide."""


def unfinished(rules: RuleSet) -> Iterator[Problem]:
    """What a draft still wants: the cause, the other language, what to do, a near miss."""
    for rule in rules.rules:
        for message in _wants(rule):
            yield Problem(rule.file, rule.line, 1, f"{rule.id}: {message}", "warning")


def _wants(rule: Rule) -> Iterator[str]:
    if not _CHINESE.search(rule.title.zh):
        yield "title.zh holds no Chinese; write the title for a Chinese reader"
    if rule.role == "cause":
        if rule.root_cause == "unknown":
            yield "root_cause is still `unknown`; `dsforensics rules causes` lists the causes"
        if not any(rule.remedy.values()):
            yield "there is no remedy; say in both languages what to do, with the exact command"
        elif len(rule.remedy.get("en", ())) != len(rule.remedy.get("zh", ())):
            yield f"remedy has {len(rule.remedy.get('en', ()))} steps in English and {len(rule.remedy.get('zh', ()))} in Chinese"
        if cut := next((step for step in rule.remedy.get("en", ())[1:] if step.startswith(("or ", "and "))), ""):
            yield f"the step {cut[:40]!r} reads like the rest of the one before; a text with commas in a list needs quotes"
    of_line = any(leaf.of_line for leaf in scan.leaves_of(rule.match))
    if of_line and rule.examples.match and not rule.examples.no_match:
        yield "there is no near miss; give a line that looks alike and on which the rule must not fire"
    codes = [code for leaf in scan.leaves_of(rule.match) for code in leaf.codes]
    alone = isinstance(rule.match, Leaf) and bool(codes)
    if alone and rule.role == "cause" and rule.strength in ("decisive", "strong") and all(map(GENERIC.match, codes)):
        yield f"{', '.join(codes)} alone is a consequence of many causes; give the rule the role `symptom`, or ask for a further line"


def overlaps(rules: RuleSet, others: RuleSet) -> Iterator[Problem]:
    """Patterns that a rule of another root cause looks for in exactly the same way: one of the two will take the other's lines."""
    known: dict[tuple[object, ...], list[Rule]] = {}
    own = {rule.id for rule in rules.rules}
    for rule in (*rules.rules, *(rule for rule in others.rules if rule.id not in own)):
        for leaf in scan.leaves_of(rule.match):
            if leaf.of_line:
                known.setdefault(_pattern(leaf), []).append(rule)
    for rule in rules.rules:
        if rule.role != "cause" or not isinstance(rule.match, Leaf) or not rule.match.of_line:
            continue
        for other in known[_pattern(rule.match)]:
            alone = isinstance(other.match, Leaf) and other.role == "cause"
            if alone and other.root_cause != rule.root_cause and not (rule.where or other.where):
                message = f"{rule.id}: looks for exactly what {other.id} ({other.root_cause}) looks for; make one of them ask for more"
                yield Problem(rule.file, rule.line, 1, message, "warning")


def _pattern(leaf: Leaf) -> tuple[object, ...]:
    return leaf.contains, leaf.regex, leaf.codes, leaf.not_contains, leaf.source
