"""What stands below a diagnosis, as items that can be stood on: a line opens in the log, a rule among the rules, anything can be copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from textual.content import Content

from forensics.report.figures import number
from forensics.report.job_words import attempt_rows, began_words, node_heading, node_rows, origins
from forensics.report.page import wrap
from forensics.report.strings import of as in_language
from forensics.report.strings import say as report_say
from forensics.report.words import (
    chain,
    changed_rows,
    coverage_words,
    lost_members,
    named,
    novel_rows,
    of_note,
    place,
    rate_rows,
    reason,
    scope_words,
    verdict,
)
from forensics.result import Baseline, Triage
from forensics.safe_text import cells, safe
from rules.model import Diagnosis
from tui.session import Session

EVIDENCE_LINES = 4
"""Lines that one piece of evidence takes at most; the log has all of it."""
LEVELS = {"high": "$text-error bold", "medium": "$text-warning bold", "low": "dim bold"}


class Target(NamedTuple):
    """Where an item leads."""

    kind: str
    """line, rule, page, none."""
    name: str = ""
    """A file, a rule, a page."""
    line: int = 0


class Item(NamedTuple):
    content: Content
    target: Target
    text: str
    """What is copied."""


NOWHERE = Target("none")


class Section(NamedTuple):
    """An entry of the list on the left, or above."""

    title: Content
    items: list[Item]


def row(label: str, text: str, width: int, column: int, style: str = "", lead: str = "", limit: int = 0) -> Content:
    """A label, and beside it a paragraph that begins with `lead`; wrapped to `width`."""
    room = max(16, width - column)
    out: list[Content | str | tuple[str, str]] = [(label, "dim"), " " * max(1, column - cells(label))]
    lines = wrap(safe(text), room) if text else []
    if lead:
        lead = safe(lead)
        if lines and cells(lead) + 2 + cells(lines[0]) <= room and len(lines) == 1:
            lines = [f"  {lines[0]}"]
            out.append((lead, "$text-primary"))
        else:
            head = wrap(lead, room)
            for at, part in enumerate(head):
                out += [(part, "$text-primary"), "\n" + " " * column if at < len(head) - 1 or lines else ""]
    if limit and len(lines) > limit:
        lines = [*lines[: limit - 1], lines[limit - 1][: room - 1] + "…"]
    for at, part in enumerate(lines):
        out += ["\n" + " " * column if at else "", (part, style)]
    return Content.assemble(*out)


def sections(session: Session, width: int, list_width: int) -> list[Section]:
    """Everything of a triage: the diagnoses by rank, then what no rule explains, codes, marks, notes."""
    triage = session.triage
    assert triage is not None
    lang = session.lang
    out = [Section(_title(session, d, list_width), list(_diagnosis(session, triage, d, width))) for d in named(triage)]
    if not out:
        out.append(Section(Content.styled(report_say(lang, verdict(triage)), "bold"), list(_first_errors(session, triage, width))))
    if triage.began or len(triage.nodes) > 1:
        out.append(Section(_plain(report_say(lang, "began")), list(_origin(session, triage, width))))
    if triage.baseline is not None:
        title = report_say(lang, "baseline", name=safe(triage.baseline.name), lines=number(triage.baseline.lines, lang))
        out.append(Section(_plain(title), list(_baseline(session, triage.baseline, width))))
    if triage.unexplained:
        total = sum(shape.count for shape in triage.unexplained)
        title = report_say(lang, "unexplained", n=number(total, lang), kinds=len(triage.unexplained))
        out.append(Section(_plain(title), list(_shapes(triage, width))))
    if triage.codes:
        out.append(Section(_plain(f"{report_say(lang, 'codes')}: {len(triage.codes)}"), list(_codes(session, triage, width))))
    if triage.marks:
        out.append(Section(_plain(f"{report_say(lang, 'marks')}: {len(triage.marks)}"), list(_marks(session, triage, width))))
    out.append(Section(_plain(session.say("section.notes")), list(_notes(session, triage, width))))
    return out


def _plain(title: str) -> Content:
    return Content(title)


def _title(session: Session, diagnosis: Diagnosis, width: int) -> Content:
    lang = session.lang
    level = report_say(lang, f"level.{diagnosis.level}")
    head = f"{diagnosis.rank}  "
    grade = f"{level} {diagnosis.confidence:.2f}  "
    column = cells(head + grade)
    lines = wrap(safe(diagnosis.title.of(lang)), max(16, width - column))
    text = ("\n" + " " * column).join(lines)
    scope = scope_words(diagnosis.place, lang)
    when = session.clock.time(diagnosis.finding.first)
    foot = " · ".join(part for part in (safe(scope), when) if part)
    parts: list[str | tuple[str, str]] = [(head, "bold"), (grade, LEVELS.get(diagnosis.level, "")), (text, "bold")]
    if foot:
        parts += ["\n" + " " * column, (foot, "dim")]
    return Content.assemble(*parts)


def _diagnosis(session: Session, triage: Triage, diagnosis: Diagnosis, width: int) -> Iterator[Item]:
    lang, rule = session.lang, diagnosis.finding.rule
    column = 10 if lang == "en" else 6

    def put(key: str, text: str, style: str = "", lead: str = "", target: Target = NOWHERE, limit: int = 0) -> Item:
        label = report_say(lang, key) if key else ""
        return Item(row(label, text, width, column, style, lead, limit), target, "  ".join(part for part in (lead, text) if part))

    yield put("why", diagnosis.why.of(lang))
    for role in ("for", "against", "context"):
        lines = [evidence for evidence in diagnosis.evidence if evidence.role == role]
        for at, evidence in enumerate(lines):
            lead = "  ".join(part for part in (place(evidence.file, evidence.line), session.clock.time(evidence.ts)) if part)
            yield put(role if at == 0 else "", evidence.text.strip(), "", lead, Target("line", evidence.file, evidence.line), EVIDENCE_LINES)
    for at, step in enumerate(in_language(diagnosis.remedy, lang)):
        yield put("fix" if at == 0 else "", step, "$text-success")
    titles = chain(diagnosis, triage, lang)
    for at, (ident, title) in enumerate(zip(diagnosis.explains, titles, strict=True)):
        yield put("follows" if at == 0 else "", title, "", "→", Target("rule", ident))
    if diagnosis.explained_events:
        yield put("", report_say(lang, "explained-lines", n=number(diagnosis.explained_events, lang)), "dim")
    if rule.replay is not None:
        yield put("confirm", session.say("replay.go"), "$text-accent", target=Target("page", "replay"))
    if rule.note is not None:
        yield put("note", rule.note.of(lang))
    yield put("rule", f"{rule.id} · {report_say(lang, f'provenance.{rule.provenance}')}", target=Target("rule", rule.id))
    for ident in diagnosis.supported_by:
        yield put("", ident, target=Target("rule", ident))
    for at, reference in enumerate(rule.references):
        yield put("see" if at == 0 else "", " · ".join(part for part in (reference.title, reference.id) if part))


def _origin(session: Session, triage: Triage, width: int) -> Iterator[Item]:
    """Where each attempt began to fail and by what signs, then the nodes and the attempts."""
    lang = session.lang
    for began in origins(triage):
        words = began_words(began, len(triage.attempts) > 1, lang)
        yield Item(row("", words, width, 2, "bold", report_say(lang, f"level.{began.sure}")), NOWHERE, words)
        for sign in began.signs:
            at = place(sign.file, sign.line) if sign.file else ""
            target = Target("line", sign.file, sign.line) if sign.file and sign.line else NOWHERE
            yield Item(row("", sign.reason.of(lang), width, 4, "", at), target, f"{sign.reason.of(lang)}  {at}".rstrip())
    for title, rows in (
        (node_heading(triage.nodes, lang), node_rows(triage, True, lang) if len(triage.nodes) > 1 else []),
        (report_say(lang, "attempts-heading"), attempt_rows(triage, session.clock, lang)),
    ):
        if rows:
            yield Item(row("", title, width, 2, "bold"), NOWHERE, title)
        for name, text in rows:
            yield Item(row("", text, width, 4, "", name), NOWHERE, f"{name}  {text}")


def _baseline(session: Session, baseline: Baseline, width: int) -> Iterator[Item]:
    lang = session.lang
    rows = novel_rows(baseline, session.clock, lang)
    for shape, (lead, text) in zip(baseline.novel, rows, strict=True):
        yield Item(row("", text.strip(), width, 2, "", lead, EVIDENCE_LINES), Target("line", shape.file, shape.line), f"{lead}  {text}")
    for title, more in (
        (report_say(lang, "changed", n=len(baseline.changed)), changed_rows(baseline, lang)),
        (report_say(lang, "more-often"), rate_rows(baseline.more, lang)),
        (report_say(lang, "gone"), rate_rows(baseline.gone, lang)),
    ):
        if more:
            yield Item(row("", title, width, 2, "bold"), NOWHERE, title)
        for lead, text in more:
            yield Item(row("", text.strip(), width, 4, "", lead, EVIDENCE_LINES), NOWHERE, f"{lead}  {text}")
    if not (rows or baseline.changed or baseline.more or baseline.gone):
        yield Item(row("", report_say(lang, "same"), width, 2), NOWHERE, "")


def _first_errors(session: Session, triage: Triage, width: int) -> Iterator[Item]:
    for first in triage.first_errors:
        who = " ".join(part for part in (first.node, first.process, "" if first.pid is None else f"pid {first.pid}") if part)
        lead = "  ".join(part for part in (place(first.file, first.line), session.clock.time(first.ts), who) if part)
        yield Item(row("", first.text.strip(), width, 2, "", lead, EVIDENCE_LINES), Target("line", first.file, first.line), first.text)
    if not triage.first_errors:
        yield Item(Content.styled(session.say("nothing"), "dim"), NOWHERE, "")


def _shapes(triage: Triage, width: int) -> Iterator[Item]:
    for shape in triage.unexplained:
        text = (shape.text or shape.shape).strip()
        lead = f"{shape.count} ×  {place(shape.file, shape.line)}"
        yield Item(row("", text, width, 2, "", lead, EVIDENCE_LINES), Target("line", shape.file, shape.line), text)


def _codes(session: Session, triage: Triage, width: int) -> Iterator[Item]:
    lang = session.lang
    for code in triage.codes:
        meaning = code.meaning_zh if lang == "zh" else code.meaning_en
        words = " · ".join(part for part in (code.symbol, meaning, report_say(lang, "generic") if code.generic else "") if part)
        target = Target("line", code.file, code.line) if code.file else NOWHERE
        yield Item(row("", words, width, 2, "", f"{code.code} × {code.count}"), target, f"{code.code} {words}")


def _marks(session: Session, triage: Triage, width: int) -> Iterator[Item]:
    for mark in triage.marks:
        lead = "  ".join(part for part in (place(mark.file, mark.line), session.clock.time(mark.ts)) if part)
        content = row("", mark.text, width, 2, "", lead, EVIDENCE_LINES)
        if mark.note:
            content += Content("\n") + row("", mark.note, width, 4, "$text-success")
        yield Item(content, Target("line", mark.file, mark.line), f"{lead}  {mark.text}  {mark.note}".rstrip())


def _notes(session: Session, triage: Triage, width: int) -> Iterator[Item]:
    lang = session.lang
    column = 2

    def put(text: str, style: str = "", target: Target = NOWHERE) -> Item:
        return Item(row("", text, width, column, style), target, text)

    coverage = triage.coverage
    if coverage.error_lines:
        yield put(report_say(lang, "explained", n=number(coverage.error_lines_explained, lang), total=number(coverage.error_lines, lang)))
    for sentence in coverage_words(triage, lang):
        yield put(sentence)
    for member in lost_members(triage):
        yield Item(row("", reason(member, lang), width, column, "$text-warning", member.path), NOWHERE, member.path)
    for title, notes in (("collect", triage.collect_next), ("notes", triage.notes)):
        for at, note in enumerate(notes):
            if at == 0:
                yield put(report_say(lang, title), "bold")
            yield put(of_note(note, lang))
