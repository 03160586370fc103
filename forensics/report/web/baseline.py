"""What differs from a good run, on the page."""

from __future__ import annotations

from collections.abc import Callable

from forensics.report.figures import Clock, duration
from forensics.report.strings import LANGUAGES, say
from forensics.report.web.diagnosis import log_line
from forensics.report.web.markup import Html, both, el, join, t, worded
from forensics.report.web.tables import table
from forensics.report.words import place, slower_more, slower_name, slower_place
from forensics.result import ChangedFact, ChangedRate, Slower, Triage
from forensics.safe_text import clip, safe
from rules.model import Text

OPEN, MOST = 10, 100
"""Lines that are not folded, and that the page carries."""
VALUES, VALUE = 4, 240


def section(triage: Triage, clock: Clock) -> Html:
    """Empty where no good run was given."""
    baseline = triage.baseline
    if baseline is None:
        return Html("")
    parts: list[Html] = []
    if baseline.novel:
        lines = []
        for one in baseline.novel[:MOST]:
            was = join((" · ", t("was", text=one.was))) if one.was else None
            lines.append(log_line(place(one.file, one.line), clock.time(one.ts), one.text, "for", join((f"{one.count} ×", was))))
        parts.append(_log(worded("novel", n=baseline.novel_total), lines))
    if baseline.changed:
        rows = [_changed(one) for one in baseline.changed[:MOST]]
        head = [(t("page.name"), False), (t("page.before"), False), (t("page.after"), False), (t("page.where"), False)]
        parts.append(el("div", el("h3", t("changed", n=len(baseline.changed))), table(head, rows), cls="part stack"))
    if baseline.slower:
        rows = [_slower(one) for one in baseline.slower[:MOST]]
        head = [(t("page.name"), False), (t("page.before"), True), (t("page.after"), True), (t("page.extent"), False), (t("page.where"), False)]
        parts.append(el("div", el("h3", t("slower", n=baseline.slower_total)), table(head, rows), cls="part stack"))
    for key, rates in (("more-often", baseline.more), ("gone", baseline.gone)):
        if rates:
            parts.append(_log(worded(key), [_rate(one) for one in rates[:MOST]]))
    if not parts:
        parts.append(el("p", t("same")))
    title = worded("baseline", name=baseline.name, lines=baseline.lines)
    return el("section", el("div", el("h2", both(title)), cls="head"), el("div", parts, cls="stack"), id="baseline", cls="card pad")


def _log(title: Text, lines: list[Html]) -> Html:
    shown, more = lines[:OPEN], lines[OPEN:]
    folded = el("details", el("summary", t("page.more-evidence", n=len(more))), el("ul", more, cls="log-part"), cls="fold in-log") if more else None
    return el("div", el("h3", both(title)), el("div", el("ul", shown, cls="log-part"), folded, cls="log"), cls="part stack")


def _changed(one: ChangedFact) -> Html:
    def values(found: list[str]) -> Html:
        if not found:
            return el("span", t("absent"), cls="soft")
        return join(el("div", el("code", clip(safe(value), VALUE))) for value in [*found[:VALUES], *(["…"] if len(found) > VALUES else [])])

    return el(
        "tr", el("th", el("code", one.name), scope="row"), el("td", values(one.before), cls="wrap"), el("td", values(one.after), cls="wrap"),
        el("td", clip(safe(place(one.file, one.line)), 160), cls="soft small place"), cls="differs",
    )  # fmt: skip


def _slower(one: Slower) -> Html:
    def words(of: Callable[[Slower, str], str]) -> Html:
        return both(Text(*(clip(safe(of(one, lang)), VALUE) for lang in LANGUAGES)))

    name = el("code", clip(safe(slower_name(one, "en")), VALUE)) if one.kind == "operator" else words(slower_name)
    rank = None if one.rank is None else el("div", f"rank {one.rank}", cls="soft small")
    ratio = el("span", join((" (", t("times", n=f"{one.after / one.before:.2f}"), ")")), cls="soft small")
    return el(
        "tr", el("th", name, rank, scope="row"), el("td", duration(one.before), cls="number"), el("td", duration(one.after), ratio, cls="number"),
        el("td", words(slower_more), cls="wrap"), el("td", words(slower_place), cls="soft small place"), cls="differs",
    )  # fmt: skip


def _rate(one: ChangedRate) -> Html:
    words = Text(*(say(lang, "rate", after=one.after, expected=f"{one.expected:g}") for lang in LANGUAGES))
    return log_line(place(one.file, one.line), "", one.text, "", both(words))
