"""The part of report.json that reports draw: graph, timeline, cards, versions that do not fit, checks before go-live."""

from __future__ import annotations

from typing import Any

from forensics.report.figures import iso
from forensics.result import CheckResult, Graph, Timeline, Triage
from rules.model import Evidence, Scope, Text


def drawn(triage: Triage) -> dict[str, Any]:
    """As plain JSON values; described by schema/report-1.json."""
    return {
        "graph": _graph(triage.graph),
        "timeline": _timeline(triage.timeline),
        "devices": [
            {
                "node": one.node or None,
                "device": one.device,
                "soc": one.soc,
                "health": one.health,
                "findings": one.findings,
                "diagnoses": list(one.ranks),
                "readings": {name: {"last": r.last, "highest": r.most, "unit": r.unit} for name, r in sorted(one.readings.items())},
            }
            for one in triage.devices
        ],
        "conflicts": [
            {
                "node": one.node or None,
                "left": one.left,
                "left_version": one.left_version,
                "right": one.right,
                "right_version": one.right_version,
                "expected": _both(one.expected),
            }
            for one in triage.conflicts
        ],
        "checks": [_check(one) for one in triage.checks],
    }


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        "steps": [
            {
                "rule": step.rule,
                "title": _both(step.title),
                "layer": step.layer,
                "scope": _scope(step.scope),
                "first_seen": iso(step.first),
                "lines": step.occurrences,
            }
            for step in graph.steps
        ],
        "links": [{"cause": one.cause, "effect": one.effect, "stated": one.stated} for one in graph.links],
    }


def _timeline(line: Timeline) -> dict[str, Any]:
    return {
        "windows": [{"start": iso(one.start), "step_us": one.step, "bins": one.bins} for one in line.windows],
        "lanes": [
            {
                "node": lane.node or None,
                "source": lane.source,
                "first": iso(lane.first),
                "last": iso(lane.last),
                "lines": lane.lines,
                "error_lines": lane.errors,
                "bars": [[[at, count] for at, count in sorted(bars.items())] for bars in lane.bars],
            }
            for lane in line.lanes
        ],
    }


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        "rule": check.rule,
        "title": _both(check.title),
        "status": check.status,
        "severity": check.severity,
        "evidence": [_evidence(line) for line in check.lines],
        "wanting": list(check.wanting),
        "note": None if check.note is None else _both(check.note),
        "remedy": {lang: list(check.remedy.get(lang, ())) for lang in ("en", "zh")},
    }


def _both(text: Text) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}


def _scope(scope: Scope) -> dict[str, Any]:
    return {"node": scope.node or None, "device": scope.device, "rank": scope.rank, "pid": scope.pid}


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {"file": evidence.file, "line": evidence.line, "time": iso(evidence.ts), "text": evidence.text, "role": evidence.role}
