"""The report as a person reads it in a terminal: ranked diagnoses with their evidence, then what is not explained, then what was not read."""

from __future__ import annotations

import shlex

from forensics.report.figures import Clock, number
from forensics.report.job_words import FEW_NODES, attempt_rows, began_words, node_heading, node_rows, origins, reasons
from forensics.report.page import Look, Page
from forensics.report.strings import of, say
from forensics.report.words import (
    CHECK_ORDER,
    chain,
    changed_rows,
    checked,
    confirmation,
    counts,
    coverage_words,
    environment,
    lost_members,
    marked,
    named,
    novel_rows,
    of_note,
    place,
    rate_rows,
    reason,
    replayed,
    scope_words,
    slower_rows,
    subject,
    verdict,
    wanting,
)
from forensics.result import FirstError, Triage, Unexplained
from forensics.safe_text import cells
from rules.model import Diagnosis, Evidence

LEVEL_STYLES = {"high": "red", "medium": "yellow", "low": "dim"}
FEW, SOME = 5, 8
"""How many of a list are shown without --verbose."""
REPORT = "report.html"
"""Beside it lies report.json."""
FEW, SOME, NOVEL = 5, 8, 10
"""How many of a list are shown without --verbose; NOVEL: of the lines that a good run does not have."""


def render(triage: Triage, look: Look) -> str:
    """The whole report as text that ends in a line feed."""
    page = Page(look)
    clock = Clock(triage.bundle.zone, triage.bundle.first, triage.bundle.last)
    _head(page, triage, clock)
    _checks(page, triage, clock)
    for diagnosis in named(triage):
        page.blank()
        _diagnosis(page, diagnosis, triage, clock)
    if not named(triage):
        page.blank()
        page.put(say(look.lang, verdict(triage)), "bold")
        _nothing_fits(page, triage, clock)
    _job(page, triage, clock)
    _baseline(page, triage, clock)
    _foot(page, triage)
    return page.text()


def _head(page: Page, triage: Triage, clock: Clock) -> None:
    lang, bundle = page.look.lang, triage.bundle
    seconds = f"{triage.seconds:.1f} s" if triage.seconds else ""
    page.split([(bundle.name, "bold"), ("   ", ""), (" · ".join(counts(bundle, lang)), "")], seconds)
    span = clock.span(bundle.first, bundle.last) or say(lang, "no-times")
    page.put(" · ".join([span, *environment(triage.facts)]), "dim")


CHECK_STYLES = {"fail": "red", "not-checked": "yellow", "pass": "green"}


def _checks(page: Page, triage: Triage, clock: Clock) -> None:
    """The checks before go-live: what failed with its lines, then what was not checked, then what passed."""
    if not triage.checks:
        return
    lang = page.look.lang
    page.blank()
    page.split([(say(lang, "preflight"), "bold")], checked(triage, lang))
    column = max(cells(say(lang, f"check.{status}")) for status in CHECK_ORDER) + 2
    for status in CHECK_ORDER:
        for check in (one for one in triage.checks if one.status == status):
            text = f"{subject(check, lang)}: {check.title.of(lang)}" + (f" · {wanting(check, lang)}" if status == "not-checked" else "")
            page.row(say(lang, f"check.{status}"), text, label_style=CHECK_STYLES[status], indent=2, column=column, hang=2)
            if status != "fail":
                continue
            shown = check.lines if page.look.verbose else check.lines[:FEW]
            for line in shown:
                lead = "  ".join(part for part in (place(line.file, line.line), clock.time(line.ts)) if part)
                page.row(
                    "", "  " + line.text.strip(), lead=lead, lead_style="cyan", indent=2, column=column, hang=2, limit=0 if page.look.verbose else 2
                )
            if len(check.lines) > len(shown):
                page.row("", say(lang, "more-lines", n=len(check.lines) - len(shown)), style="dim", indent=2, column=column)
            for step in of(check.remedy, lang):
                page.row("", step, style="green", indent=2, column=column)


def _diagnosis(page: Page, diagnosis: Diagnosis, triage: Triage, clock: Clock) -> None:
    look, rule = page.look, diagnosis.finding.rule
    lang = look.lang
    level = say(lang, f"level.{diagnosis.level}")
    page.split(
        [
            (f"{diagnosis.rank}  ", "bold"),
            (f"{level} {diagnosis.confidence:.2f}  ", LEVEL_STYLES.get(diagnosis.level, "")),
            (diagnosis.title.of(lang), "bold"),
        ],
        scope_words(diagnosis.place, lang),
    )
    rows = _Rows(page)
    if follows := chain(diagnosis, triage, lang):
        shown_links = follows if look.verbose else follows[:FEW]
        text = " → ".join(shown_links) + (" → …" if len(follows) > len(shown_links) else "")
        if diagnosis.explained_events:
            text += f" · {say(lang, 'explained-lines', n=number(diagnosis.explained_events, lang))}"
        rows.add(say(lang, "follows"), text)
    for role in ("for", "against", "context"):
        lines = [e for e in diagnosis.evidence if e.role == role]
        shown = lines if look.verbose else lines[: FEW if role == "for" else 2]
        for number_, evidence in enumerate(shown):
            rows.evidence(say(lang, role) if number_ == 0 else "", evidence, clock)
        if len(lines) > len(shown):
            rows.add("", say(lang, "more-lines", n=len(lines) - len(shown)), style="dim")
    rows.add(say(lang, "why"), diagnosis.why.of(lang))
    if rule.note is not None:
        rows.add(say(lang, "note"), rule.note.of(lang))
    for number_, step in enumerate(of(diagnosis.remedy, lang)):
        rows.add(say(lang, "fix") if number_ == 0 else "", step, style="green")
    rows.add(say(lang, "replay"), replayed(diagnosis, triage, lang), style="bold")
    rows.add(say(lang, "confirm"), confirmation(diagnosis, triage, look))
    if look.verbose:
        rows.add(say(lang, "rule"), f"{rule.id} · {say(lang, f'provenance.{rule.provenance}')}")
        for number_, reference in enumerate(rule.references):
            rows.add(say(lang, "see") if number_ == 0 else "", " · ".join(part for part in (reference.title, reference.id) if part))


class _Rows:
    """The labelled rows below a diagnosis."""

    def __init__(self, page: Page):
        self.page = page
        self.column = 9 if page.look.lang == "en" else 6

    def add(self, label: str, text: str, style: str = "") -> None:
        if text:
            self.page.row(label, text, style=style, indent=3, column=self.column)

    def evidence(self, label: str, evidence: Evidence, clock: Clock) -> None:
        lead = "  ".join(part for part in (place(evidence.file, evidence.line), clock.time(evidence.ts)) if part)
        self.page.row(
            label, "  " + evidence.text.strip(), lead=lead, lead_style="cyan", indent=3, column=self.column, hang=2,
            limit=0 if self.page.look.verbose else 3,
        )  # fmt: skip


def _job(page: Page, triage: Triage, clock: Clock) -> None:
    """Where it began, and what is to be said of the nodes and the attempts."""
    look = page.look
    lang = look.lang
    if found := origins(triage):
        page.blank()
        page.put(say(lang, "began"), "bold")
    for began in found:
        level = say(lang, f"level.{began.sure}")
        page.split([(f"   {level}  ", LEVEL_STYLES.get(began.sure, "")), (began_words(began, len(triage.attempts) > 1, lang), "bold")], "")
        for sign, where in reasons(began, lang):
            page.row("", sign + (f"  {where}" if where else ""), indent=9, column=0)
    rows = node_rows(triage, look.verbose, lang)
    if rows or (look.verbose and len(triage.nodes) > 1):
        _listed(page, node_heading(triage.nodes, lang), rows, FEW_NODES)
        if not look.verbose and len(rows) < len(triage.nodes):
            page.put(say(lang, "nodes-more", n=len(triage.nodes) - len(rows)), "dim", indent=2)
    _listed(page, say(lang, "attempts-heading"), attempt_rows(triage, clock, lang), SOME)


def _listed(page: Page, title: str, rows: list[tuple[str, str]], few: int) -> None:
    """A titled list of (lead, text); the first `few` of it unless all are asked for."""
    if not rows:
        return
    page.blank()
    page.put(title, "bold")
    shown = rows if page.look.verbose else rows[:few]
    for lead, text in shown:
        page.row("", ("  " if lead and text else "") + text, lead=lead, lead_style="cyan", indent=2, hang=2, limit=0 if page.look.verbose else 3)
    if len(rows) > len(shown):
        page.put(say(page.look.lang, "more", n=len(rows) - len(shown)), "dim", indent=2)


def _nothing_fits(page: Page, triage: Triage, clock: Clock) -> None:
    lang = page.look.lang
    _listed(page, say(lang, "first-errors"), [_first(first, clock, lang) for first in triage.first_errors], SOME)
    layers = [(f"{first.layer}  {lead}", text) for first in triage.first_by_layer for lead, text in (_first(first, clock, lang),)]
    _listed(page, say(lang, "first-by-layer"), layers, SOME)
    rarest = sorted(triage.unexplained, key=lambda shape: (shape.count, shape.file, shape.line))
    _listed(page, say(lang, "shapes"), [_shape(shape) for shape in rarest], FEW)


def _first(first: FirstError, clock: Clock, lang: str) -> tuple[str, str]:
    who = " ".join(part for part in (first.node, first.process, "" if first.pid is None else f"pid {first.pid}") if part)
    more = say(lang, "alike", n=first.alike) if first.alike else ""
    return "  ".join(part for part in (place(first.file, first.line), clock.time(first.ts), who, more) if part), first.text.strip()


def _shape(shape: Unexplained) -> tuple[str, str]:
    return f"{shape.count} ×  {place(shape.file, shape.line)}", (shape.text or shape.shape).strip()


def _baseline(page: Page, triage: Triage, clock: Clock) -> None:
    """What differs from the good run."""
    lang, baseline = page.look.lang, triage.baseline
    if baseline is None:
        return
    page.blank()
    page.put(say(lang, "baseline", name=baseline.name, lines=number(baseline.lines, lang)), "bold")
    if not (baseline.novel or baseline.changed or baseline.more or baseline.gone or baseline.slower):
        page.put(say(lang, "same"), indent=2)
    _listed(page, say(lang, "novel", n=number(baseline.novel_total, lang)), novel_rows(baseline, clock, lang), NOVEL)
    _listed(page, say(lang, "changed", n=len(baseline.changed)), changed_rows(baseline, lang), SOME)
    _listed(page, say(lang, "slower", n=baseline.slower_total), slower_rows(baseline, lang), SOME)
    _listed(page, say(lang, "more-often"), rate_rows(baseline.more, lang), FEW)
    _listed(page, say(lang, "gone"), rate_rows(baseline.gone, lang), FEW)


def _foot(page: Page, triage: Triage) -> None:
    lang, coverage = page.look.lang, triage.coverage
    if coverage.error_lines:
        page.blank()
        page.put(say(lang, "explained", n=number(coverage.error_lines_explained, lang), total=number(coverage.error_lines, lang)))
    if triage.unexplained and named(triage):
        total = sum(shape.count for shape in triage.unexplained)
        title = say(lang, "unexplained", n=number(total, lang), kinds=len(triage.unexplained))
        _listed(page, title, [_shape(shape) for shape in triage.unexplained], FEW)
    codes = []
    for code in triage.codes:
        meaning = code.meaning_zh if lang == "zh" else code.meaning_en
        words = [part for part in (code.symbol, meaning, say(lang, "generic") if code.generic else "") if part]
        codes.append((f"{code.code} × {code.count}", " · ".join(words)))
    _listed(page, say(lang, "codes"), codes, SOME)
    _listed(page, say(lang, "marks"), [marked(mark) for mark in triage.marks], len(triage.marks))
    if page.look.verbose:
        _listed(page, say(lang, "facts"), [(f"{fact.name} = {fact.value}", place(fact.file, fact.line)) for fact in triage.facts], SOME)
    _listed(page, say(lang, "collect"), [("", of_note(note, lang)) for note in triage.collect_next], SOME)
    _listed(page, say(lang, "notes"), [("", of_note(note, lang)) for note in triage.notes], FEW)
    _coverage(page, triage)
    if triage.case:
        page.blank()
        case = shlex.quote(triage.case)
        page.row(say(lang, "case"), triage.case, column=8)
        page.row(say(lang, "report"), f"{triage.case.rstrip('/')}/{REPORT}", column=8)
        page.row(say(lang, "ask"), f'dsforensics sql {case} "select * from events limit 10"', column=8)


def _coverage(page: Page, triage: Triage) -> None:
    lang = page.look.lang
    lost = lost_members(triage)
    _listed(page, say(lang, "unread", n=len(lost)), [(member.path, reason(member, lang)) for member in lost], FEW)
    page.blank()
    for sentence in coverage_words(triage, lang):
        page.put(sentence, "dim")
