"""The report as data: `dsforensics.report/1`, described by schema/report-1.json.

The same triage gives the same bytes: no wall time, no path of this machine, lists in a fixed order, texts in both languages.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from forensics.errors import CaseError
from forensics.marks import Mark
from forensics.report.drawn import drawn
from forensics.report.figures import iso
from forensics.result import Baseline, ChangedRate, FirstError, NodeSeen, Slower, Triage
from forensics.safe_text import json_quiet, safe, whole
from replay.result import Verdict
from rules.model import Began, Diagnosis, Evidence, Text

SCHEMA = "dsforensics.report/1"
FILE = "report.json"


def report(triage: Triage) -> dict[str, Any]:
    """The report as plain JSON values."""
    bundle, coverage = triage.bundle, triage.coverage
    return {
        "schema": SCHEMA,
        "tool": {
            "version": triage.version,
            "packs": [{"name": p.name, "version": p.version, "rules": p.rules} for p in sorted(triage.packs, key=lambda p: (p.name, p.version))],
        },
        "bundle": {
            "name": bundle.name,
            "sha256": bundle.sha256,
            "bytes": bundle.bytes,
            "files": bundle.files,
            "lines": bundle.lines,
            "nodes": sorted(bundle.nodes),
            "first": iso(bundle.first),
            "last": iso(bundle.last),
        },
        "diagnoses": [_diagnosis(d, triage.replays.get(d.rank)) for d in triage.diagnoses],
        "unexplained": [
            {"shape": u.shape, "count": u.count, "file": u.file, "line": u.line}
            for u in sorted(triage.unexplained, key=lambda u: (-u.count, u.shape, u.file, u.line))
        ],
        "codes": [
            {"code": c.code, "symbol": c.symbol, "meaning": {"en": c.meaning_en, "zh": c.meaning_zh}, "count": c.count, "generic": c.generic}
            for c in sorted(triage.codes, key=lambda c: (-c.count, c.code, c.symbol))
        ],
        "facts": [
            {"name": f.name, "value": f.value, "node": f.node or None, "file": f.file, "line": f.line}
            for f in sorted(triage.facts, key=lambda f: (f.name, f.node, f.value, f.file, f.line))
        ],
        "coverage": {
            "lines": coverage.lines,
            "lines_parsed": coverage.lines_parsed,
            "error_lines": coverage.error_lines,
            "error_lines_explained": coverage.error_lines_explained,
            "members_unrecognised": sorted(m.path for m in coverage.members if m.status in ("unrecognised", "binary")),
            "members_damaged": [
                {"file": m.path, "reason": m.note or m.status}
                for m in sorted(coverage.members, key=lambda m: (m.path, m.file_id))
                if m.status in ("damaged", "skipped")
            ],
        },
        "notes": [note.en for note in triage.notes],
        "nodes": [_node(node) for node in triage.nodes],
        "attempts": [
            {
                "number": a.number, "ranks": a.ranks, "logs_of": a.logs_of, "missing": a.missing, "first": iso(a.first),
                "began": None if a.began is None else _began(a.began),
            }
            for a in triage.attempts
        ],
        "first_errors": [_first(first) for first in triage.first_errors],
        "first_by_layer": [_first(first) for first in triage.first_by_layer],
        "collect_next": [{"en": note.en, "zh": note.zh} for note in triage.collect_next],
        **drawn(triage),
        **({} if triage.baseline is None else {"baseline": _baseline(triage.baseline)}),
        **({"marks": [_mark(mark) for mark in triage.marks]} if triage.marks else {}),
    }  # fmt: skip


def _baseline(baseline: Baseline) -> dict[str, Any]:
    def rates(found: list[ChangedRate]) -> list[dict[str, Any]]:
        return [
            {"text": r.text, "before": r.before, "after": r.after, "expected": r.expected, "file": r.file, "line": r.line} for r in found
        ]  # fmt: skip

    return {
        "name": baseline.name,
        "sha256": baseline.sha256,
        "files": baseline.files,
        "lines": baseline.lines,
        "novel": [
            {
                "text": n.text,
                "count": n.count,
                "file": n.file,
                "line": n.line,
                "time": iso(n.ts),
                "node": n.node or None,
                "device": n.device,
                "was": n.was or None,
            }
            for n in baseline.novel
        ],
        "novel_total": baseline.novel_total,
        "changed": [{"name": c.name, "before": c.before, "after": c.after, "file": c.file, "line": c.line} for c in baseline.changed],
        "more": rates(baseline.more),
        "gone": rates(baseline.gone),
        "slower": [_slower(one) for one in baseline.slower],
        "slower_total": baseline.slower_total,
    }


def _slower(one: Slower) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "name": one.name or None,
        "rank": one.rank,
        "before_ms": one.before,
        "after_ms": one.after,
        "before_count": one.before_count,
        "after_count": one.after_count,
        "share": one.share,
        "core_before": one.core_before or None,
        "core": one.core or None,
        "part": {"name": one.part, "before_ms": one.part_before, "after_ms": one.part_after} if one.part else None,
        "file": one.file,
        "row": one.row,
        "line": one.line,
    }


def _mark(mark: Mark) -> dict[str, Any]:
    return {"file": mark.file, "line": mark.line, "time": iso(mark.ts), "text": mark.text, "note": mark.note}


def _node(node: NodeSeen) -> dict[str, Any]:
    return {
        "name": node.name,
        "known_by": node.known_by,
        "logs": node.logs,
        "hosts": node.hosts,
        "addresses": node.addresses,
        "places": node.places,
        "files": node.files,
        "ranks": node.ranks,
        "first_error": iso(node.first_error),
        "clock": {
            "ahead_seconds": _seconds(node.ahead),
            "within_seconds": _seconds(node.within),
            "moments": node.moments,
            "compared_by": node.compared_by,
            "taken_off": node.taken_off,
        },
    }


def _seconds(us: int | None) -> float | None:
    return None if us is None else round(us / 1e6, 3)


def _began(began: Began) -> dict[str, Any]:
    return {
        "node": began.node or None,
        "device": began.device,
        "rank": began.rank,
        "pid": began.pid,
        "ranks": began.ranks,
        "logs": began.logs,
        "sure": began.sure,
        "waiting": began.waiting,
        "limits": {"exec": began.limits.get("exec"), "connect": began.limits.get("connect")},
        "signs": [
            {"kind": s.kind, "points": s.points, "reason": _both(s.reason), "file": s.file or None, "line": s.line} for s in began.signs
        ],
    }


def _first(first: FirstError) -> dict[str, Any]:
    return {
        "node": first.node or None,
        "process": first.process or None,
        "pid": first.pid,
        "layer": first.layer or None,
        "time": iso(first.ts),
        "file": first.file,
        "line": first.line,
        "text": first.text,
        "alike": first.alike,
    }


def _diagnosis(diagnosis: Diagnosis, verdict: Verdict | None) -> dict[str, Any]:
    finding = diagnosis.finding
    rule, scope = finding.rule, diagnosis.place
    confidence = diagnosis.confidence if math.isfinite(diagnosis.confidence) else 0.0
    return {
        "rank": diagnosis.rank,
        "rule": rule.id,
        "root_cause": rule.root_cause,
        "title": _both(diagnosis.title),
        "confidence": round(min(1.0, max(0.0, confidence)), 4),
        "level": diagnosis.level,
        "severity": rule.severity,
        "layer": rule.layer,
        "action": rule.action,
        "provenance": rule.provenance,
        "scope": {"node": scope.node or None, "device": scope.device, "rank": scope.rank, "pid": scope.pid},
        "first_seen": iso(finding.first),
        "evidence": [_evidence(e) for e in diagnosis.evidence],
        "explains": list(diagnosis.explains),
        "supported_by": list(diagnosis.supported_by),
        "attempt": diagnosis.attempt,
        "echoes": [
            {"rule": e.rule, "lines": e.lines, "processes": e.processes, "ranks": e.ranks, "nodes": e.nodes, "first_seen": iso(e.first)}
            for e in diagnosis.echoes
        ],
        "explained_events": diagnosis.explained_events,
        "remedy": {lang: list(diagnosis.remedy.get(lang, ())) for lang in ("en", "zh")},
        "references": [{"title": r.title, "id": r.id} for r in rule.references],
        "replay": _replay(diagnosis, verdict),
    }


def _replay(diagnosis: Diagnosis, verdict: Verdict | None) -> dict[str, Any] | None:
    """The verdict with its numbers; `not-run` where a rerun could settle the diagnosis and none was made."""
    if verdict is not None:
        detail = msgspec.to_builtins(verdict)
        for name in ("kernel", "status", "seconds"):
            del detail[name]
        return {"kernel": verdict.kernel, "status": verdict.status, "detail": detail}
    suspect = diagnosis.finding.rule.replay
    return None if suspect is None else {"kernel": suspect.kernel, "status": "not-run", "detail": {}}


def _both(text: Text) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {"file": evidence.file, "line": evidence.line, "time": iso(evidence.ts), "text": evidence.text, "role": evidence.role}


def strict(value: Any) -> Any:
    """`value` as JSON can carry it: lone surrogates spelled out, NaN and infinities as null, times as ISO texts, bytes in hexadecimal."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {whole(str(key)): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    return value.isoformat() if hasattr(value, "isoformat") else whole(str(value))


def encode(value: Any) -> bytes:
    """Strict JSON in UTF-8 that is harmless on a terminal too; ends in a line feed."""
    text = json.dumps(strict(value), ensure_ascii=False, allow_nan=False, indent=2)
    return (json_quiet(text) + "\n").encode("utf-8")


def write(triage: Triage, folder: Path) -> Path:
    """Writes report.json into the case folder, whole or not at all. Raises CaseError."""
    return put(folder / FILE, encode(report(triage)))


def put(target: Path, content: bytes) -> Path:
    """Writes a report into the case folder, whole or not at all. Raises CaseError."""
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".report-", dir=target.parent)
        with open(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise CaseError(
            f"The report could not be written to {safe(str(target))}: {error.strerror or error}. Choose another folder with -o, or make room."
        ) from error
    return target
