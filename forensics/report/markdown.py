"""The report as Markdown, fit to be pasted into an issue: every text of the bundle stands in code, where nothing is markup, a link or a mention.

What answers the question stands open, the rest is folded; the whole is never longer than an issue may be."""

from __future__ import annotations

from forensics.report.figures import Clock, number
from forensics.report.job_words import attempt_rows, began_words, node_heading, node_rows, origins, reasons
from forensics.report.page import Look
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
from forensics.result import FirstError, Triage
from forensics.safe_text import code_block, code_span, prose, spoken, summary
from rules.model import Diagnosis

LINES, ROWS = 12, 20
"""How many evidence lines of a diagnosis, and rows of a list, are shown without --verbose."""
MOST = 60_000
"""Characters; GitHub takes 65,536 in an issue, other trackers more."""


def render(triage: Triage, look: Look) -> str:
    """The whole report as GitHub-flavoured Markdown that ends in a line feed."""
    lang, bundle = look.lang, triage.bundle
    clock = Clock(bundle.zone, bundle.first, bundle.last)
    span = clock.span(bundle.first, bundle.last) or say(lang, "no-times")
    parts = [
        f"# {say(lang, 'heading', name=code_span(bundle.name))}",
        "\n".join(f"- {line}" for line in (" · ".join(counts(bundle, lang)), span, *map(code_span, environment(triage.facts)))),
    ]
    parts += _checks(triage, look, clock)
    if found := named(triage):
        parts.append(f"## {say(lang, 'diagnoses')}")
        parts += _diagnosis(found[0], triage, look, clock)
        for diagnosis in found[1:]:
            parts.append(_folded(*_diagnosis(diagnosis, triage, look, clock)))
    else:
        parts.append(f"**{say(lang, verdict(triage))}**")
        parts += _block(say(lang, "first-errors"), [_first(f, clock, lang) for f in triage.first_errors], look)
        layers = [f"{f.layer}  {_first(f, clock, lang)}" for f in triage.first_by_layer]
        parts += _block(say(lang, "first-by-layer"), layers, look)
    parts += _job(triage, look, clock)
    parts += _baseline(triage, look, clock)
    parts += _foot(triage, look)
    return "\n\n".join(_fitted(parts, lang)) + "\n"


def _fitted(parts: list[str], lang: str) -> list[str]:
    """As many parts as an issue has room for, and how many are left out; the last one, that says what made the report, stays."""
    *body, last = parts
    room = MOST - len(last) - 200
    shown: list[str] = []
    for part in body:
        if len(part) + 2 <= room:
            shown.append(part)
            room -= len(part) + 2
    missing = len(body) - len(shown)
    return [*shown, *([say(lang, "left-for-room", n=missing)] if missing else []), last]


def _folded(heading: str, *parts: str) -> str:
    """One block that opens on a click; `heading` is a Markdown heading, of which the words are the summary."""
    return "\n\n".join((f"<details>\n<summary>{summary(heading)}</summary>", *parts, "</details>"))


def _checks(triage: Triage, look: Look, clock: Clock) -> list[str]:
    """The checks before go-live as a table, with the lines of those that failed."""
    if not triage.checks:
        return []
    lang = look.lang
    head = [say(lang, key) for key in ("check.result", "check.group", "check.name")]
    rows = [" | ".join(head), " | ".join("---" for _ in head)]
    blocks = []
    for status in CHECK_ORDER:
        for check in (one for one in triage.checks if one.status == status):
            about = prose(check.title.of(lang)) + (f" · {spoken(wanting(check, lang))}" if status == "not-checked" else "")
            rows.append(" | ".join((say(lang, f"check.{status}"), prose(subject(check, lang)), about)))
            if status == "fail":
                lines = [
                    f"{place(e.file, e.line)}  {clock.time(e.ts)}  {e.text.strip()}"
                    for e in check.lines[: len(check.lines) if look.verbose else LINES]
                ]
                blocks += [f"**{say(lang, 'check.fail')}** {prose(check.title.of(lang))}", code_block(lines)]
                blocks += ["\n".join(f"- {spoken(step)}" for step in of(check.remedy, lang))] if of(check.remedy, lang) else []
    return [f"## {say(lang, 'preflight')}", checked(triage, lang), *blocks, "\n".join(f"| {row} |" for row in rows)]


def _diagnosis(diagnosis: Diagnosis, triage: Triage, look: Look, clock: Clock) -> list[str]:
    lang, rule = look.lang, diagnosis.finding.rule
    level = f"{say(lang, f'level.{diagnosis.level}')} {diagnosis.confidence:.2f}"
    parts = [f"### {diagnosis.rank}. {prose(diagnosis.title.of(lang))} ({level})"]
    facts = [code_span(rule.id)]
    if scope := scope_words(diagnosis.place, lang):
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
        parts.append(f"**{say(lang, 'note')}** {spoken(rule.note.of(lang))}")
    if steps := of(diagnosis.remedy, lang):
        parts += [f"**{say(lang, 'fix')}**", "\n".join(f"- {spoken(step)}" for step in steps)]
    if outcome := replayed(diagnosis, triage, lang):
        parts.append(f"**{say(lang, 'replay')}** {prose(outcome)}")
    if command := confirmation(diagnosis, triage, look):
        parts.append(f"**{say(lang, 'confirm')}** {code_span(command)}")
    if rule.references:
        titles = "; ".join(" · ".join(prose(part) for part in (r.title, r.id) if part) for r in rule.references)
        parts.append(f"**{say(lang, 'see')}** {titles}")
    return parts


def _first(first: FirstError, clock: Clock, lang: str) -> str:
    more = say(lang, "alike", n=first.alike) if first.alike else ""
    return "  ".join(part for part in (place(first.file, first.line), clock.time(first.ts), more, first.text.strip()) if part)


def _job(triage: Triage, look: Look, clock: Clock) -> list[str]:
    """Where it began, the nodes and the attempts."""
    lang = look.lang
    parts: list[str] = []
    if found := origins(triage):
        parts.append(f"## {say(lang, 'began')}")
    for began in found:
        where = began_words(began, len(triage.attempts) > 1, lang)
        parts.append(f"**{say(lang, f'level.{began.sure}')}** {code_span(where)}")
        parts.append("\n".join(f"- {prose(reason)}{f' {code_span(line)}' if line else ''}" for reason, line in reasons(began, lang)))
    if len(triage.nodes) > 1:
        parts += _list(node_heading(triage.nodes, lang), [f"{code_span(name)} {prose(text)}" for name, text in node_rows(triage, True, lang)], look)
    attempts = [f"{code_span(number)} {prose(text)}" for number, text in attempt_rows(triage, clock, lang)]
    return parts + _list(say(lang, "attempts-heading"), attempts, look)


def _baseline(triage: Triage, look: Look, clock: Clock) -> list[str]:
    lang, baseline = look.lang, triage.baseline
    if baseline is None:
        return []
    parts = [f"## {say(lang, 'baseline', name=code_span(baseline.name), lines=number(baseline.lines, lang))}"]
    if not (baseline.novel or baseline.changed or baseline.more or baseline.gone or baseline.slower):
        parts.append(say(lang, "same"))
    sections = (
        (say(lang, "novel", n=number(baseline.novel_total, lang)), novel_rows(baseline, clock, lang)),
        (say(lang, "changed", n=len(baseline.changed)), changed_rows(baseline, lang)),
        (say(lang, "slower", n=baseline.slower_total), slower_rows(baseline, lang)),
        (say(lang, "more-often"), rate_rows(baseline.more, lang)),
        (say(lang, "gone"), rate_rows(baseline.gone, lang)),
    )
    for title, rows in sections:
        for heading, *body in [_block(title, [f"{lead}  {text}".rstrip() for lead, text in rows], look)] if rows else []:
            parts += [f"#{heading}", *body]
    return parts


def _block(title: str, lines: list[str], look: Look, fold: bool = False) -> list[str]:
    if not lines:
        return []
    shown = lines if look.verbose else lines[:ROWS]
    rest = [say(look.lang, "more", n=len(lines) - len(shown))] if len(lines) > len(shown) else []
    parts = [f"## {title}", code_block(shown + rest)]
    return [_folded(*parts)] if fold else parts


def _list(title: str, rows: list[str], look: Look, fold: bool = False) -> list[str]:
    if not rows:
        return []
    shown = rows if look.verbose else rows[:ROWS]
    rest = [say(look.lang, "more", n=len(rows) - len(shown))] if len(rows) > len(shown) else []
    parts = [f"## {title}", "\n".join(f"- {row}" for row in shown + rest)]
    return [_folded(*parts)] if fold else parts


def _foot(triage: Triage, look: Look) -> list[str]:
    lang, coverage = look.lang, triage.coverage
    shapes = [f"{u.count} ×  {place(u.file, u.line)}  {(u.text or u.shape).strip()}" for u in triage.unexplained]
    parts = _block(say(lang, "unexplained-heading"), shapes, look, fold=bool(named(triage)))
    codes = []
    for code in triage.codes:
        meaning = code.meaning_zh if lang == "zh" else code.meaning_en
        generic = f" · {say(lang, 'generic')}" if code.generic else ""
        codes.append(f"{code_span(' '.join(filter(None, (code.code, code.symbol))))} × {code.count}: {prose(meaning)}{generic}")
    parts += _list(say(lang, "codes"), codes, look, fold=True)
    parts += _list(
        say(lang, "page.conflicts"),
        [prose(one.expected.of(lang)) + (f" · {code_span(one.node)}" if one.node else "") for one in triage.conflicts],
        look,
    )
    facts = [f"{code_span(f'{f.name} = {f.value}')} {code_span(place(f.file, f.line))}" for f in triage.facts]
    parts += _list(say(lang, "facts"), facts, look, fold=True)
    parts += _list(say(lang, "codes"), codes, look)
    if triage.marks:
        parts.append(f"## {say(lang, 'marks')}")
        parts.append(code_block(["  ".join(marked(mark)) for mark in triage.marks]))
    parts += _list(say(lang, "facts"), [f"{code_span(f'{f.name} = {f.value}')} {code_span(place(f.file, f.line))}" for f in triage.facts], look)
    parts += _list(say(lang, "collect"), [code_span(of_note(note, lang)) for note in triage.collect_next], look)
    parts += _list(say(lang, "notes"), [code_span(of_note(note, lang)) for note in triage.notes], look, fold=True)
    rows = coverage_words(triage, lang)
    if coverage.error_lines:
        rows.append(say(lang, "explained", n=number(coverage.error_lines_explained, lang), total=number(coverage.error_lines, lang)))
    rows += [f"{code_span(member.path)}: {code_span(reason(member, lang))}" for member in lost_members(triage)]
    parts += _list(say(lang, "coverage"), rows, look, fold=not lost_members(triage))
    packs = ", ".join(code_span(f"{pack.name} {pack.version}") for pack in triage.packs) or say(lang, "no-packs")
    parts.append(say(lang, "made-by", version=triage.version, packs=packs))
    return parts
