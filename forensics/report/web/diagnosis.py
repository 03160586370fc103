"""Diagnoses on the page: the most probable cause in full, the others folded."""

from __future__ import annotations

from forensics.report.figures import Clock
from forensics.report.page import Look
from forensics.report.strings import LANGUAGES, of
from forensics.report.web import graph, replay
from forensics.report.web.gauge import bar
from forensics.report.web.markup import Html, both, el, join, t, ticked
from forensics.report.words import confirmation, named, place, verdict
from forensics.result import FirstError, Triage
from forensics.safe_text import clip, safe
from rules.model import Diagnosis, Evidence

OPEN_LINES = 6
"""Evidence lines of a role that are not folded."""
SAID = 1200
"""Characters of a log line that are shown."""


def section(triage: Triage, clock: Clock, look: Look) -> Html:
    """All diagnoses that name a cause, or the sentence that none does with what else is known."""
    found = named(triage)
    if not found:
        return _nothing(triage, clock)
    first, *others = found
    parts = [
        el(
            "section",
            el("div", _top(first, triage, clock), cls="top"),
            el("div", _body(first, triage, clock, look), cls="body"),
            id=f"d{first.rank}", cls=f"card diagnosis {first.level}",
        )
    ]  # fmt: skip
    if others:
        folded = [
            el(
                "details",
                el("summary", _level(one), el("h3", f"{one.rank}. ", both(one.title)), el("span", _where(one), cls="tags")),
                el("div", _body(one, triage, clock, look), cls="body"),
                id=f"d{one.rank}", cls=f"card diagnosis {one.level}",
            )
            for one in others
        ]  # fmt: skip
        parts.append(el("section", el("div", el("h2", t("page.others")), cls="head"), el("div", folded, cls="stack"), id="others"))
    return join(parts)


def _level(diagnosis: Diagnosis) -> Html:
    confidence = f"{diagnosis.confidence:.2f}"
    return el("span", t(f"level.{diagnosis.level}"), f" {confidence}", cls=f"badge {diagnosis.level}")


def _top(diagnosis: Diagnosis, triage: Triage, clock: Clock) -> Html:
    rule = diagnosis.finding.rule
    meter = el(
        "span", bar(diagnosis.confidence, diagnosis.level), t("page.confidence", n=f"{diagnosis.confidence:.2f}"), cls="meter",
    )  # fmt: skip
    first = diagnosis.finding.first
    when = t("page.first-seen", time=clock.time(first)) if first is not None else t("page.no-time")
    return join(
        (
            el("div", el("span", t(f"level.{diagnosis.level}"), cls=f"badge {diagnosis.level}"), meter, cls="tags"),
            el("h2", f"{diagnosis.rank}. ", both(diagnosis.title)),
            el("div", _where(diagnosis), el("span", t(f"page.layer.{rule.layer}"), cls="tag"), el("span", when, cls="tag"), cls="tags"),
            el("p", t("page.why", why=diagnosis.why), cls="soft") if diagnosis.why.en else None,
        )
    )


def _where(diagnosis: Diagnosis) -> Html:
    scope = diagnosis.place
    known = (("node", scope.node or None), ("device", scope.device), ("rank", scope.rank), ("pid", scope.pid))
    return join(el("span", t(key, v=str(value)), cls="tag strong") for key, value in known if value is not None)


def _body(diagnosis: Diagnosis, triage: Triage, clock: Clock, look: Look) -> Html:
    rule = diagnosis.finding.rule
    parts: list[Html] = []
    if any(diagnosis.remedy.values()):
        lists = [_steps(of(diagnosis.remedy, lang), lang) for lang in LANGUAGES]
        parts.append(el("div", el("h3", t("page.do"), " · ", t(f"page.action.{rule.action}")), lists, cls="do"))
    if command := confirmation(diagnosis, triage, look):
        parts.append(el("div", el("h3", t("confirm")), el("code", command, cls="command"), cls="part"))
    if rule.note is not None:
        parts.append(el("p", both(rule.note), cls="note"))
    if diagnosis.explains:
        drawn = graph.draw(diagnosis, triage.graph, clock)
        lines = t("explained-lines", n=diagnosis.explained_events) if diagnosis.explained_events else ""
        heading = el("div", el("h3", t("page.chain")), el("span", lines, cls="soft small"), cls="head")
        parts.append(el("div", heading, drawn, graph.listed(diagnosis, triage), cls="part"))
    if diagnosis.evidence:
        parts.append(el("div", el("h3", t("page.evidence")), _evidence(diagnosis.evidence, clock), cls="part"))
    if (settled := triage.replays.get(diagnosis.rank)) is not None:
        parts.append(replay.section(settled))
    about = [el("span", t("rule"), " ", el("code", rule.id)), el("span", t(f"provenance.{rule.provenance}"))]
    if diagnosis.supported_by:
        about.append(
            el("span", t("page.supported"), " ", [join((", " if n else "", el("code", one))) for n, one in enumerate(diagnosis.supported_by)])
        )
    about += [el("span", " · ".join(part for part in (r.title, r.id) if part)) for r in rule.references]
    parts.append(el("div", about, cls="foot-line"))
    return join(parts)


def _steps(steps: list[str], lang: str) -> Html:
    return el("ol", [el("li", ticked(step)) for step in steps], lang=lang, cls="one" if len(steps) == 1 else None)


def _evidence(evidence: list[Evidence], clock: Clock) -> Html:
    parts: list[Html] = []
    for role in ("for", "against", "context"):
        lines = [one for one in evidence if one.role == role]
        if not lines:
            continue
        parts.append(el("h4", t(f"page.role.{role}"), cls="role"))
        parts.append(el("ul", [_line(one, role, clock) for one in lines[:OPEN_LINES]], cls="log-part"))
        if more := lines[OPEN_LINES:]:
            folded = el("ul", [_line(one, role, clock) for one in more], cls="log-part")
            parts.append(el("details", el("summary", t("page.more-evidence", n=len(more))), folded, cls="fold in-log"))
    return el("div", parts, cls="log")


def _line(evidence: Evidence, role: str, clock: Clock) -> Html:
    return log_line(place(evidence.file, evidence.line), clock.time(evidence.ts), evidence.text, role)


def log_line(where: str, when: str, said: str, cls: str = "", who: str = "") -> Html:
    """A line of a log with its place, as an item of a list."""
    head = [el("span", clip(safe(where), 300), cls="file mono"), el("span", when, cls="mono") if when else None, el("span", who) if who else None]
    return el("li", el("div", head, cls="at"), el("div", clip(safe(said.strip()), SAID), cls="said"), cls=cls or None)


def _nothing(triage: Triage, clock: Clock) -> Html:
    """No rule names a cause: says so, and shows the first error of each process."""
    kind = verdict(triage)
    parts: list[Html] = [el("div", el("p", el("b", t(kind))), cls="alert good" if kind == "healthy" else "alert")]
    if triage.first_errors:
        parts.append(_firsts("first-errors", [_first(first, clock) for first in triage.first_errors]))
    if triage.first_by_layer:
        parts.append(_firsts("first-by-layer", [_first(first, clock) for first in triage.first_by_layer]))
    return el("section", parts, id="d1", cls="stack")


def _firsts(title: str, rows: list[Html]) -> Html:
    shown, more = rows[: 2 * OPEN_LINES], rows[2 * OPEN_LINES :]
    folded = el("details", el("summary", t("page.more-evidence", n=len(more))), el("ul", more, cls="log-part"), cls="fold in-log") if more else None
    return el("div", el("h2", t(title), cls="role"), el("ul", shown, cls="log-part"), folded, cls="log")


def _first(first: FirstError, clock: Clock) -> Html:
    pid = "" if first.pid is None else f"pid {first.pid}"
    who = " ".join(part for part in (first.node, first.process, pid, first.layer) if part)
    alike = join((" · ", t("alike", n=first.alike))) if first.alike else None
    return log_line(place(first.file, first.line), clock.time(first.ts), first.text, "for", join((who, alike)))
