"""A corpus of incidents with known answers, scanned once and then diagnosed as often as wanted, with all rules or without some.

A corpus is a folder of folders, each with `bundle` (a folder or an archive) and `gold.json`:
`root_cause_class` (a slug, or `healthy`), `also_accept` (further slugs that are as right) and `key_evidence` (texts that decide it).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from forensics import ingest
from forensics.bundle import Bundle
from rules.diagnose import Conclusion, diagnose
from rules.model import Diagnosis, FactRow, Hit, Leaf, MetricRow, RuleSet
from rules.scan import Scanner

NAMES = ("bundle", "bundle.tar.gz", "bundle.tar")


class Incident(msgspec.Struct):
    """One bundle with its right answer, and what the scan saw in it."""

    name: str
    right: frozenset[str]
    """Root causes that are right; of a healthy bundle just `healthy`."""
    evidence: tuple[str, ...]
    hits: list[Hit]
    counts: dict[int, int]
    facts: Sequence[FactRow]
    metrics: Sequence[MetricRow]
    onset: int | None

    @property
    def healthy(self) -> bool:
        return "healthy" in self.right


def folders(corpus: Path, sample: int | None = None) -> list[Path]:
    """The incidents of a corpus; `sample`: at most so many, spread evenly over it."""
    found = sorted(path.parent for path in corpus.glob("*/gold.json"))
    if sample is None or sample >= len(found):
        return found
    return [found[n * len(found) // sample] for n in range(sample)]


def bundle_of(folder: Path) -> Path:
    return next((folder / name for name in NAMES if (folder / name).exists()), folder)


def gold_of(folder: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    return frozenset({gold["root_cause_class"], *gold.get("also_accept", [])}), tuple(gold.get("key_evidence", []))


def incidents(corpus: Path, scanner: Scanner, sample: int | None = None) -> Iterator[Incident]:
    """Every bundle of a corpus, scanned."""
    for folder in folders(corpus, sample):
        right, evidence = gold_of(folder)
        yield scanned(bundle_of(folder), scanner, folder.name, right, evidence)


def scanned(bundle: Path, scanner: Scanner, name: str, right: frozenset[str], evidence: tuple[str, ...] = ()) -> Incident:
    """What a scan of one bundle sees."""
    opened = Bundle(str(bundle))
    try:
        found = ingest.scan(opened, scanner, workers=1)
    finally:
        opened.close()
    onset = min((first.ts for first in found.first_errors if first.ts is not None), default=None)
    return Incident(name, right, evidence, found.hits, found.counts, found.facts, found.metrics, onset)


def concluded(incident: Incident, rules: RuleSet, scanner: Scanner) -> Conclusion:
    return diagnose(rules, scanner.leaves, incident.hits, incident.counts, incident.facts, incident.metrics, incident.onset)


def without(rules: RuleSet, causes: frozenset[str]) -> RuleSet:
    """The rules with those of some root causes made blind; numbers of rules stay what they were, so the same scan serves."""
    blind = Leaf("blind", contains=("\0",))
    kept = tuple(
        msgspec.structs.replace(rule, match=blind, metrics=()) if rule.root_cause in causes and rule.role == "cause" else rule for rule in rules.rules
    )
    return RuleSet(rules.packs, kept, rules.problems)


def named(conclusion: Conclusion) -> list[Diagnosis]:
    """The diagnoses that name a cause, as a score counts them."""
    return [diagnosis for diagnosis in conclusion.diagnoses if diagnosis.finding.rule.root_cause != "unknown"]


def top1(incident: Incident, conclusion: Conclusion) -> bool:
    """Whether the first diagnosis is right; of a healthy bundle, whether there is no alarm."""
    found = named(conclusion)
    if incident.healthy:
        return not any(diagnosis.level in ("medium", "high") for diagnosis in found)
    return bool(found) and found[0].finding.rule.root_cause in incident.right


def calibration_error(rows: Sequence[tuple[float, bool]]) -> float:
    """Expected calibration error over ten bins of (confidence, right)."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for sure, right in rows:
        bins.setdefault(min(int(sure * 10), 9), []).append((sure, right))
    gaps = (abs(sum(sure for sure, _ in members) - sum(right for _, right in members)) for members in bins.values())
    return sum(gaps) / len(rows) if rows else 0.0
