"""Why a rule holds on a case, or why not, as a page of text."""

from __future__ import annotations

from forensics.report.figures import Clock, number
from forensics.report.page import Look, Page
from forensics.report.strings import say
from forensics.report.words import place
from rules.explain import Explanation, Part


def render(explanation: Explanation, clock: Clock, look: Look) -> str:
    """The verdict first, then each pattern with what was found for it."""
    page, lang, rule = Page(look), look.lang, explanation.rule
    page.split([(rule.title.of(lang), "bold")], rule.id)
    page.put(explanation.verdict.of(lang), "green" if explanation.fired else "yellow")
    for part in explanation.parts:
        page.blank()
        _part(page, part, clock)
    rows = []
    if rule.where:
        held = {True: "where-held", False: "where-failed", None: "where-open"}[explanation.where]
        rows.append(("where", f"{rule.where} · {say(lang, held)}"))
    if explanation.explained_by:
        rows.append(("follows-from", ", ".join(explanation.explained_by)))
    if explanation.doubts:
        rows.append(("doubts", ", ".join(say(lang, "fact-unknown", name=doubt.removesuffix(" unknown")) for doubt in explanation.doubts)))
    if rows:
        page.blank()
    for key, text in rows:
        page.row(say(lang, key), text, indent=2, column=14 if lang == "en" else 10)
    return page.text()


def _part(page: Page, part: Part, clock: Clock) -> None:
    lang = page.look.lang
    mark, style = ("found", "green") if part.admitted else ("not-found", "red" if part.needed else "dim")
    optional = "" if part.needed else f" · {say(lang, 'optional')}"
    counted = say(lang, "part-lines", lines=number(part.lines, lang), admitted=number(part.admitted, lang)) if part.lines else say(lang, mark)
    page.split([(f"  {part.leaf}  ", style), (part.pattern, "")], counted + optional)
    for evidence in part.evidence:
        lead = "  ".join(text for text in (place(evidence.file, evidence.line), clock.time(evidence.ts)) if text)
        page.row("", "  " + evidence.text.strip(), lead=lead, lead_style="cyan", indent=4, hang=2, limit=0 if page.look.verbose else 2)
