"""The reader's own pack of rules, in the folder that every triage looks into: a rule is checked there, then written beside the others."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from forensics.errors import CaseError, UsageError
from rules import looks, pack, scan
from rules.author import fires
from rules.model import Leaf
from rules.taxonomy import ROOT_CAUSES

PACK = "own"
IDENT = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)+")
_HEAD = "name: own\nversion: 1.0.0\nmaintainers: []\nlicence: proprietary\nrequires: {}\n"


class Proposal(msgspec.Struct, frozen=True):
    """What a line suggests for a rule."""

    ident: str
    pattern: str
    title: str
    text: str
    """The rule as YAML."""
    matcher: str
    """The line of `text` that holds the pattern."""


def possible() -> bool:
    return importlib.util.find_spec("rules.draft") is not None


def propose(line: str, ident: str = "", root_cause: str = "unknown", title: str = "", title_zh: str = "") -> Proposal:
    """A rule for a line, what varies in it generalised. Raises UsageError for a line without words."""
    if not possible():
        raise UsageError("this installation cannot draft rules: install dsforensics anew")
    drafting: Any = importlib.import_module("rules.draft")
    try:
        made = drafting.draft(line, ident=ident, root_cause=root_cause, title=title, title_zh=title_zh)
    except ValueError as error:
        raise UsageError(str(error)) from error
    matcher = next((row for row in made.text.splitlines() if re.match(r"\s+(?:contains|regex): ", row)), "")
    found = re.search(r"en: '((?:[^']|'')*)'", made.text)
    return Proposal(made.ident, made.seen.pattern, found[1].replace("''", "'") if found else "", made.text, matcher)


def written(line: str, ident: str, root_cause: str, title: str, title_zh: str, pattern: str) -> str:
    """The rule as YAML, with the pattern as it was edited. Raises UsageError where something is missing or wrong."""
    if not IDENT.fullmatch(ident):
        raise UsageError(f"the id wants two words or more, joined by dots, in small letters, such as field.link-down; found {ident!r}")
    if root_cause not in ROOT_CAUSES:
        raise UsageError(f"there is no root cause {root_cause!r}: take one of the list that opens as you type")
    if wrong := looks.check_regex(Leaf("line", regex=pattern)):
        raise UsageError(f"the pattern cannot be used in a rule: {wrong}")
    made = propose(line, ident, root_cause, title, title_zh)
    if pattern == made.pattern:
        return made.text
    drafting: Any = importlib.import_module("rules.draft")
    return made.text.replace(made.matcher, f"    regex: {drafting.quoted(pattern)}", 1)


def folder() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(base, "dsforensics", "packs", PACK)


def save(text: str, ident: str) -> Path:
    """Check a rule against all packs and write it into the own pack; the file. Raises UsageError for a rule that is wrong, CaseError where it
    cannot be written."""
    home = folder()
    target = home / f"{ident}.yaml"
    if target.exists():
        raise UsageError(f"there is a rule {ident} already, in {str(target)!a}: give this one another id")
    with tempfile.TemporaryDirectory() as scratch:
        trial = Path(scratch, PACK)
        trial.mkdir()
        (trial / "pack.yaml").write_text(_HEAD, "utf-8")
        (trial / "rule.yaml").write_text(text, "utf-8")
        own = pack.load([trial], shipped=False)
        broken = [problem for problem in own.problems if problem.level == "error"]
        if broken or not own.rules:
            raise UsageError(f"the rule is not right yet: {broken[0].message if broken else 'it holds nothing'}")
        if any(rule.id == ident for rule in pack.load([]).rules):
            raise UsageError(f"the id {ident} is taken by another rule: give this one its own")
        scanner = scan.Scanner.load(own)
        for rule in own.rules:
            for example in rule.examples.match:
                if not fires(scanner, own, example).findings:
                    raise UsageError("the rule does not find the line it was made from: look at its pattern")
    try:
        home.mkdir(parents=True, exist_ok=True)
        head = home / "pack.yaml"
        if not head.exists():
            head.write_text(_HEAD, "utf-8")
        target.write_text(text, "utf-8")
    except OSError as error:
        raise CaseError(f"the rule cannot be written to {str(target)!a} ({error.strerror or error})") from error
    return target
