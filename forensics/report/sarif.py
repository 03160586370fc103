"""The report as SARIF 2.1.0, which code-scanning views and many gates of builds read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from forensics.report.page import Look
from forensics.report.strings import of, say
from forensics.report.words import chain, lost_members, place, reason, scope_words, subject, wanting
from forensics.result import CheckResult, Triage
from forensics.safe_text import safe, spoken
from rules.model import Diagnosis, Evidence, Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "BUNDLE"
LEVELS = {"high": "error", "medium": "warning", "low": "note"}
LANGUAGES = {"en": "en-US", "zh": "zh-CN"}


def report(triage: Triage, look: Look) -> dict[str, Any]:
    """The log as plain JSON values: one run, a result for each diagnosis and each check."""
    lang = look.lang
    described: dict[str, dict[str, Any]] = {}
    results = [_checked(check, described, lang) for check in triage.checks] + [_diagnosed(one, described, triage, lang) for one in triage.diagnoses]
    place_of = {ident: number for number, ident in enumerate(described)}
    for result in results:
        result["ruleIndex"] = place_of[result["ruleId"]]
    lost = [
        {
            "level": "warning",
            "message": {"text": _said(f"{member.path}: {reason(member, lang)}")},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(member.path)}}],
        }
        for member in lost_members(triage)
    ]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "dsforensics",
                        "version": triage.version,
                        "rules": list(described.values()),
                        "properties": {"packs": [f"{pack.name} {pack.version}" for pack in triage.packs]},
                    }
                },
                "language": LANGUAGES[lang],
                "columnKind": "unicodeCodePoints",
                "automationDetails": {"id": f"dsforensics/{'preflight' if triage.checks else 'triage'}/"},
                "originalUriBaseIds": {BASE: {"description": {"text": safe(triage.bundle.name)}}},
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": lost}],
                "results": results,
                "properties": {"bundle": {"name": safe(triage.bundle.name), "sha256": triage.bundle.sha256, "nodes": sorted(triage.bundle.nodes)}},
            }
        ],
    }


def _said(text: str) -> str:
    """One line of a message, in which `[words](address)` is no link."""
    return safe(text).replace("](", "] (")


def _artifact(path: str) -> dict[str, Any]:
    """A member of the bundle as a relative address that leads nowhere else."""
    parts = [quote(safe(part), safe="") for part in path.split("/") if part not in ("", ".")]
    return {"uri": "/".join("%2E%2E" if part == ".." else part for part in parts) or "-", "uriBaseId": BASE}


def _location(line: Evidence, words: str = "") -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(line.file)}
    if line.line > 0:
        physical["region"] = {"startLine": line.line, "snippet": {"text": safe(line.text)}}
    return {"physicalLocation": physical} | ({"message": {"text": _said(words)}} if words else {})


def _once(locations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each place once, as the format asks."""
    return list({repr(one): one for one in locations}.values())


def _rule(
    ident: str, title: str, remedy: list[str], level: str, tags: list[str], described: dict[str, dict[str, Any]], rule: Rule | None = None
) -> None:
    if ident in described:
        return
    told: dict[str, Any] = {
        "id": ident,
        "shortDescription": {"text": _said(title)},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": tags},
    }
    if remedy:
        told["help"] = {"text": "\n".join(map(_said, remedy)), "markdown": "\n".join(f"- {spoken(step)}" for step in remedy)}
    if rule is not None and rule.note is not None:
        told["fullDescription"] = {"text": _said(rule.note.en)}
    described[ident] = told


def _print(*parts: object) -> dict[str, str]:
    """What stays the same from one run to the next, so that a result is known again."""
    return {"ruleAndScope/v1": hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()}


def _diagnosed(diagnosis: Diagnosis, described: dict[str, dict[str, Any]], triage: Triage, lang: str) -> dict[str, Any]:
    finding = diagnosis.finding
    rule, scope = finding.rule, diagnosis.place
    level = LEVELS[diagnosis.level]
    _rule(rule.id, diagnosis.title.of(lang), of(diagnosis.remedy, lang), level, [rule.layer, rule.root_cause, rule.action], described, rule)
    where = scope_words(scope, lang)
    sentences = [diagnosis.title.of(lang) + (f" ({where})" if where else ""), f"{say(lang, 'why')}: {diagnosis.why.of(lang)}"]
    follows = chain(diagnosis, triage, lang)
    if follows:
        sentences.append(f"{say(lang, 'follows')}: {' → '.join(follows)}")
    own = [line for line in diagnosis.evidence if line.role == "for"]
    result: dict[str, Any] = {
        "ruleId": rule.id,
        "kind": "fail",
        "level": level,
        "rank": round(100 * min(1.0, max(0.0, diagnosis.confidence)), 2),
        "message": {"text": "\n".join(map(_said, sentences))},
        "locations": [_location(line) for line in own[:1]],
        "relatedLocations": _once(
            _location(line, f"{say(lang, line.role)}: {place(line.file, line.line)}")
            for line in [*own[1:], *(other for other in diagnosis.evidence if other.role != "for")]
        ),
        "partialFingerprints": _print(rule.id, scope.node, scope.device),
        "properties": {
            "confidence": round(diagnosis.confidence, 4),
            "confidenceLevel": diagnosis.level,
            "rootCause": rule.root_cause,
            "scope": {"node": scope.node or None, "device": scope.device, "rank": scope.rank, "pid": scope.pid},
        },
    }
    if scope.node:
        result["locations"] = result["locations"] or [{}]
        result["locations"][0]["logicalLocations"] = [{"name": safe(scope.node), "kind": "node"}]
    return result


def _checked(check: CheckResult, described: dict[str, dict[str, Any]], lang: str) -> dict[str, Any]:
    level = LEVELS[check.level]
    _rule(check.rule, check.title.of(lang), of(check.remedy, lang), level, ["preflight", subject(check, lang)], described)
    words = {
        "pass": f"{say(lang, 'check.pass')}: {check.title.of(lang)}",
        "fail": f"{say(lang, 'check.fail')}: {check.title.of(lang)}",
        "not-checked": f"{say(lang, 'check.not-checked')}: {check.title.of(lang)} · {wanting(check, lang)}",
    }[check.status]
    return {
        "ruleId": check.rule,
        "kind": {"pass": "pass", "fail": "fail", "not-checked": "open"}[check.status],
        "level": level if check.status == "fail" else "none",
        "message": {"text": _said(words)},
        "locations": [_location(line) for line in check.lines[:1]],
        "relatedLocations": _once(_location(line, place(line.file, line.line)) for line in check.lines[1:]),
        "partialFingerprints": _print(check.rule),
    }
