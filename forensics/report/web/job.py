"""A job of several ranks on the page: where it began to fail, its nodes and its attempts."""

from __future__ import annotations

from forensics.report.figures import Clock
from forensics.report.job_words import attempt_rows, began_words, node_heading, node_rows, origins, reasons
from forensics.report.strings import LANGUAGES
from forensics.report.web.markup import Html, both, el, join, t, worded
from forensics.result import Triage
from forensics.safe_text import clip, safe
from rules.model import Began, Text

NODES = 128
"""Rows of the table that the page carries."""
PLACE = 200


def section(triage: Triage, clock: Clock) -> Html:
    """Empty where nothing tells of a job of several ranks or nodes."""
    found = origins(triage)
    parts = [_began(one, len(triage.attempts) > 1) for one in found]
    if len(triage.nodes) > 1:
        parts.append(_rows(Text(*(node_heading(triage.nodes, lang) for lang in LANGUAGES)), [node_rows(triage, True, lang) for lang in LANGUAGES]))
    if len(triage.attempts) > 1:
        parts.append(_rows(worded("attempts-heading"), [attempt_rows(triage, clock, lang) for lang in LANGUAGES]))
    if not parts:
        return Html("")
    heading = t("began") if found else t("page.job-word")
    return el("section", el("div", el("h2", heading), cls="head"), el("div", parts, cls="stack"), id="job", cls="card pad")


def _began(began: Began, several: bool) -> Html:
    words = Text(*(began_words(began, several, lang) for lang in LANGUAGES))
    head = el("div", el("span", t(f"level.{began.sure}"), cls=f"badge {began.sure}"), el("b", both(words)), cls="tags")
    english, chinese = (reasons(began, lang) for lang in LANGUAGES)
    signs = [
        el("li", both(Text(en, zh)), el("span", " ", clip(safe(where), PLACE), cls="soft small mono") if where else None)
        for (en, where), (zh, _) in zip(english, chinese, strict=True)
    ]
    return join((head, el("ul", signs, cls="list") if signs else None))


def _rows(title: Text, rows: list[list[tuple[str, str]]]) -> Html:
    """A table of (name, what is to be said of it), the words in both languages."""
    lines = [
        el("tr", el("th", clip(safe(name), 80), scope="row", cls="name"), el("td", both(Text(en, zh)), cls="wrap"))
        for (name, en), (_, zh) in list(zip(*rows, strict=True))[:NODES]
    ]
    more = el("p", t("page.not-shown", n=len(rows[0]) - NODES), cls="soft small") if len(rows[0]) > NODES else None
    body = el("div", el("table", el("tbody", lines)), cls="scroll", tabindex=0)
    return el("div", el("h3", both(title)), body, more, cls="part stack")
