"""The report as Markdown, fit to be pasted into an issue: every text of the bundle stands in code, where nothing is markup, a link or a mention."""

from __future__ import annotations

from forensics.report.figures import Clock, number
from forensics.report.page import Look
from forensics.report.strings import of, say
from forensics.report.words import (
    chain,
    confirmation,
    counts,
    coverage_words,
    environment,
    lost_members,
    named,
    of_note,
    place,
    reason,
    replayed,
    scope_words,
    verdict,
)
from forensics.result import Triage
from forensics.safe_text import code_block, code_span, prose
from rules.model import Diagnosis

LINES, ROWS = 12, 20
"""How many evidence lines of a diagnosis, and rows of a list, are shown without --verbose."""


def render(triage: Triage, look: Look) -> str:
    """The whole report as GitHub-flavoured Markdown that ends in a line feed."""
    lang, bundle = look.lang, triage.bundle
    clock = Clock(bundle.zone, bundle.first, bundle.last)
    span = clock.span(bundle.first, bundle.last) or say(lang, "no-times")
    parts = [
        f"# {say(lang, 'heading', name=code_span(bundle.name))}",
        "\n".join(f"- {line}" for line in (" · ".join(counts(bundle, lang)), span, *map(code_span, environment(triage.facts)))),
    ]
    if found := named(triage):
        parts.append(f"## {say(lang, 'diagnoses')}")
        for diagnosis in found:
            parts += _diagnosis(diagnosis, triage, look, clock)
    else:
        parts.append(f"**{say(lang, verdict(triage))}**")
        firsts = [f"{place(f.file, f.line)}  {clock.time(f.ts)}  {f.text.strip()}" for f in triage.first_errors]
        parts += _block(say(lang, "first-errors"), firsts, look)
    parts += _foot(triage, look)
    return "\n\n".join(parts) + "\n"


def _diagnosis(diagnosis: Diagnosis, triage: Triage, look: Look, clock: Clock) -> list[str]:
    lang, rule = look.lang, diagnosis.finding.rule
    level = f"{say(lang, f'level.{diagnosis.level}')} {diagnosis.confidence:.2f}"
    parts = [f"### {diagnosis.rank}. {prose(diagnosis.title.of(lang))} ({level})"]
    facts = [code_span(rule.id)]
    if scope := scope_words(diagnosis.finding.scope, lang):
        facts.append(code_span(scope))
    parts.append(" · ".join(facts))
    if follows := chain(diagnosis, triage, lang):
        text = f"**{say(lang, 'follows')}** {' → '.join(map(prose, follows))}"
        if diagnosis.explained_events:
            text += f" · {say(lang, 'explained-lines', n=number(diagnosis.explained_events, lang))}"
        parts.append(text)
    if why := diagnosis.why.of(lang):
        parts.append(f"**{say(lang, 'why')}** {prose(why)}")
    for role in ("for", "against", "context"):
        lines = [e for e in diagnosis.evidence if e.role == role]
        shown = lines if look.verbose else lines[:LINES]
        if shown:
            body = [f"{place(e.file, e.line)}  {clock.time(e.ts)}  {e.text.strip()}" for e in shown]
            body += [say(lang, "more-lines", n=len(lines) - len(shown))] if len(lines) > len(shown) else []
            parts += [f"**{say(lang, role)}**", code_block(body)]
    if rule.note is not None:
        parts.append(f"**{say(lang, 'note')}** {prose(rule.note.of(lang))}")
    if steps := of(diagnosis.remedy, lang):
        parts += [f"**{say(lang, 'fix')}**", "\n".join(f"- {prose(step)}" for step in steps)]
    if outcome := replayed(diagnosis, triage, lang):
        parts.append(f"**{say(lang, 'replay')}** {prose(outcome)}")
    if command := confirmation(diagnosis, triage, look):
        parts.append(f"**{say(lang, 'confirm')}** {code_span(command)}")
    if rule.references:
        titles = "; ".join(" · ".join(prose(part) for part in (r.title, r.id) if part) for r in rule.references)
        parts.append(f"**{say(lang, 'see')}** {titles}")
    return parts


def _block(title: str, lines: list[str], look: Look) -> list[str]:
    if not lines:
        return []
    shown = lines if look.verbose else lines[:ROWS]
    rest = [say(look.lang, "more", n=len(lines) - len(shown))] if len(lines) > len(shown) else []
    return [f"## {title}", code_block(shown + rest)]


def _list(title: str, rows: list[str], look: Look) -> list[str]:
    if not rows:
        return []
    shown = rows if look.verbose else rows[:ROWS]
    rest = [say(look.lang, "more", n=len(rows) - len(shown))] if len(rows) > len(shown) else []
    return [f"## {title}", "\n".join(f"- {row}" for row in shown + rest)]


def _foot(triage: Triage, look: Look) -> list[str]:
    lang, coverage = look.lang, triage.coverage
    shapes = [f"{u.count} ×  {place(u.file, u.line)}  {(u.text or u.shape).strip()}" for u in triage.unexplained]
    parts = _block(say(lang, "unexplained-heading"), shapes, look)
    codes = []
    for code in triage.codes:
        meaning = code.meaning_zh if lang == "zh" else code.meaning_en
        generic = f" · {say(lang, 'generic')}" if code.generic else ""
        codes.append(f"{code_span(' '.join(filter(None, (code.code, code.symbol))))} × {code.count}: {prose(meaning)}{generic}")
    parts += _list(say(lang, "codes"), codes, look)
    parts += _list(say(lang, "facts"), [f"{code_span(f'{f.name} = {f.value}')} {code_span(place(f.file, f.line))}" for f in triage.facts], look)
    parts += _list(say(lang, "collect"), [code_span(of_note(note, lang)) for note in triage.collect_next], look)
    parts += _list(say(lang, "notes"), [code_span(of_note(note, lang)) for note in triage.notes], look)
    rows = coverage_words(triage, lang)
    if coverage.error_lines:
        rows.append(say(lang, "explained", n=number(coverage.error_lines_explained, lang), total=number(coverage.error_lines, lang)))
    rows += [f"{code_span(member.path)}: {code_span(reason(member, lang))}" for member in lost_members(triage)]
    parts += _list(say(lang, "coverage"), rows, look)
    packs = ", ".join(code_span(f"{pack.name} {pack.version}") for pack in triage.packs) or say(lang, "no-packs")
    parts.append(say(lang, "made-by", version=triage.version, packs=packs))
    return parts
