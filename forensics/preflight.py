"""The checks before go-live (`--profile preflight`), asked of a scanned bundle."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.ingest import Scan
from forensics.result import CheckResult, Member
from rules import checks
from rules.model import Evidence, Hit, MetricRow, RuleSet
from rules.scan import LeafRef

QUARTER = 900
"""Zones differ by multiples of a quarter of an hour; what is left of an offset is how far a clock goes wrong."""
CARDS = frozenset({"device", "device-os", "firmware", "bbox"})
"""Kinds of files that the clock of a card dates."""


def results(rules: RuleSet, leaves: Sequence[LeafRef], scan: Scan) -> list[CheckResult]:
    """All checks, in the order they are written."""
    kinds = {member.kind for member in scan.files if member.lines}
    found = checks.run(rules, leaves, scan.hits, scan.counts, scan.facts, [*scan.metrics, *_skews(scan.files)], kinds)
    return [
        CheckResult(
            one.rule.id, one.rule.title, one.status, one.rule.severity,
            [_evidence(hit) for hit in one.hits],
            one.wanting, {lang: list(texts) for lang, texts in one.rule.remedy.items()}, one.rule.note,
        )
        for one in found
    ]  # fmt: skip


def _evidence(hit: Hit) -> Evidence:
    """A number names its card; a line does so itself."""
    text = hit.text if hit.device is None or not hit.text.startswith(hit.captures.get("name", "\0")) else f"device {hit.device}: {hit.text}"
    return Evidence(hit.file, hit.line_no, text, "for", hit.ts, file_id=hit.file_id, byte_offset=hit.byte_offset)


def _skews(files: Sequence[Member]) -> list[MetricRow]:
    """How many seconds the clock of each card is ahead of UTC, zones apart, where other clocks of the bundle tell."""
    out = []
    for member in files:
        if member.kind in CARDS and member.utc_offset is not None:
            skew = member.utc_offset - QUARTER * round(member.utc_offset / QUARTER)
            text = f"clock.skew = {skew:g} s"
            out.append(MetricRow("clock.skew", float(skew), "s", member.node, member.device, None, "", member.file_id, member.path, 0, text))
    return out
