"""A case of a bundle in memory, without rules to speak of."""

from __future__ import annotations

from pathlib import Path

from forensics import index
from forensics.case import Case, Identity, Plan, begin
from forensics.ingest import EXTRA, Scan, scan
from forensics.result import BundleInfo, Coverage, Triage
from rules.model import Leaf, Rule, RuleSet, Text
from rules.scan import Scanner
from tests.unit.members import Texts

SCANNER = Scanner.load(
    RuleSet((), (Rule("test.timeout", "x", Text("a", "b"), "runtime", "error", Leaf("timeout", contains=("link timeout",))),)), EXTRA
)
NAMES = [("test.timeout", "timeout")]


def triage_of(found: Scan, name: str = "b.tar") -> Triage:
    info = BundleInfo(name, "d1", 10, found.unpacked, len(found.files), found.lines, [], 0, found.first, found.last, "+00:00")
    coverage = Coverage(found.lines, 0, found.error_lines, 0, found.files)
    return Triage("1.0", [], info, [], [], found.first_errors, [], [], coverage, [], [])


def stored(folder: Path, files: dict[str, bytes], workers: int = 1, bundle: str = "d1", indexed: bool = True) -> Case:
    """A finished case in `folder`."""
    found = scan(Texts(files), SCANNER, workers)
    case = begin(folder)
    case.store(Plan(Identity(bundle, "r1", "1.0"), ["b.tar"]), triage_of(found), found, NAMES)
    if indexed:
        assert index.build(case, Texts(files), found.clocks, workers) == []
    return case
