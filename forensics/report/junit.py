"""The report as JUnit XML, for the gate of a build or a deployment: a diagnosis, or a check before go-live, is a test case."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from forensics.report.figures import Clock
from forensics.report.page import Look
from forensics.report.strings import of, say
from forensics.report.words import chain, coverage_words, environment, lost_members, place, reason, scope_words, subject, verdict, wanting
from forensics.result import CheckResult, Triage
from forensics.safe_text import safe
from rules.model import Diagnosis, Evidence

LEVELS = ("low", "medium", "high")
LINES = 20
"""Evidence lines of one test case without --verbose."""
_NO_XML = re.compile("[\ufffe\uffff]")
"""What XML 1.0 cannot carry and `safe` leaves."""


def render(triage: Triage, look: Look, fail_on: str) -> bytes:
    """The XML, in UTF-8. A diagnosis or a failed check at level `fail_on` or above is a failure, what could not be read an error."""
    root = ET.Element("testsuites", name="dsforensics")
    clock = Clock(triage.bundle.zone, triage.bundle.first, triage.bundle.last)
    if triage.checks:
        suite = _suite(root, say(look.lang, "preflight"), triage, look)
        for check in triage.checks:
            _check(suite, check, clock, look, fail_on)
    suite = _suite(root, say(look.lang, "diagnoses"), triage, look)
    for diagnosis in triage.diagnoses:
        _diagnosis(suite, diagnosis, triage, clock, look, fail_on)
    if not triage.diagnoses:
        case = _case(suite, "dsforensics.diagnosis", say(look.lang, verdict(triage)))
        ET.SubElement(case, "system-out").text = _text(f"{place(f.file, f.line)}  {clock.time(f.ts)}  {f.text}" for f in triage.first_errors)
    _coverage(suite, triage, look)
    for suite in (*root, root):
        cases = list(suite.iter("testcase"))
        for name, tag in (("tests", None), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(len(cases) if tag is None else sum(case.find(tag) is not None for case in cases)))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _clean(text: str) -> str:
    """One line that XML can carry and that no terminal obeys."""
    return _NO_XML.sub("\\\\ufffe", safe(text))


def _text(lines: Iterable[str]) -> str:
    return "\n".join(_clean(line) for line in lines)


def _suite(root: ET.Element, name: str, triage: Triage, look: Look) -> ET.Element:
    suite = ET.SubElement(root, "testsuite", name=_clean(f"{name}: {triage.bundle.name}"))
    properties = ET.SubElement(suite, "properties")
    values = [
        ("dsforensics.version", triage.version),
        ("bundle.sha256", triage.bundle.sha256),
        ("environment", " · ".join(environment(triage.facts))),
    ]
    for key, value in (*values, *(("node", node) for node in triage.bundle.nodes)):
        ET.SubElement(properties, "property", name=key, value=_clean(value))
    return suite


def _case(suite: ET.Element, classname: str, name: str, line: Evidence | None = None) -> ET.Element:
    case = ET.SubElement(suite, "testcase", classname=_clean(classname), name=_clean(name), time="0")
    if line is not None:
        case.set("file", _clean(line.file))
        case.set("line", str(line.line))
    return case


def _at(line: Evidence, clock: Clock) -> str:
    return "  ".join(part for part in (place(line.file, line.line), clock.time(line.ts), line.text.strip()) if part)


def _shown(lines: list[Evidence], clock: Clock, look: Look) -> list[str]:
    shown = lines if look.verbose else lines[:LINES]
    return [_at(line, clock) for line in shown] + ([say(look.lang, "more-lines", n=len(lines) - len(shown))] if len(lines) > len(shown) else [])


def _check(suite: ET.Element, check: CheckResult, clock: Clock, look: Look, fail_on: str) -> None:
    lang = look.lang
    case = _case(suite, check.rule.rpartition(".")[0], f"{subject(check, lang)}: {check.title.of(lang)}", check.lines[0] if check.lines else None)
    if check.status == "not-checked":
        ET.SubElement(case, "skipped", message=_clean(wanting(check, lang)))
    elif check.status == "fail":
        body = _text([*_shown(check.lines, clock, look), *of(check.remedy, lang)])
        if LEVELS.index(check.level) >= LEVELS.index(fail_on):
            first = check.lines[0].text.strip() if check.lines else check.title.of(lang)
            ET.SubElement(case, "failure", type=check.severity, message=_clean(first)).text = body
        else:
            ET.SubElement(case, "system-out").text = body


def _diagnosis(suite: ET.Element, diagnosis: Diagnosis, triage: Triage, clock: Clock, look: Look, fail_on: str) -> None:
    lang, rule = look.lang, diagnosis.finding.rule
    where = scope_words(diagnosis.place, lang)
    case = _case(suite, rule.id, f"{diagnosis.rank}. {diagnosis.title.of(lang)}", diagnosis.evidence[0] if diagnosis.evidence else None)
    lines = [f"{say(lang, 'why')}: {diagnosis.why.of(lang)}", *_shown(diagnosis.evidence, clock, look)]
    lines += [f"{say(lang, 'follows')}: {title}" for title in chain(diagnosis, triage, lang)]
    lines += [f"{say(lang, 'fix')}: {step}" for step in of(diagnosis.remedy, lang)]
    message = " · ".join(
        part for part in (f"{say(lang, f'level.{diagnosis.level}')} {diagnosis.confidence:.2f}", diagnosis.title.of(lang), where) if part
    )
    if LEVELS.index(diagnosis.level) >= LEVELS.index(fail_on):
        ET.SubElement(case, "failure", type=rule.root_cause, message=_clean(message)).text = _text(lines)
    else:
        ET.SubElement(case, "system-out").text = _text([message, *lines])


def _coverage(suite: ET.Element, triage: Triage, look: Look) -> None:
    """Whether the bundle was read to its end."""
    lost = lost_members(triage)
    case = _case(suite, "dsforensics.coverage", say(look.lang, "coverage"))
    if lost:
        body = _text(f"{member.path}: {reason(member, look.lang)}" for member in lost)
        ET.SubElement(case, "error", type="unread", message=_clean(say(look.lang, "unread", n=len(lost)))).text = body
    ET.SubElement(case, "system-out").text = _text(coverage_words(triage, look.lang))
