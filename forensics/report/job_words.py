"""Where an incident began, its nodes and its attempts, in the words of the terminal and of Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.report.figures import Clock, span
from forensics.report.strings import say
from forensics.report.words import place, scope_words
from forensics.result import NodeSeen, Triage
from rules.model import Began, Scope
from rules.seats import numbers

FEW_NODES = 8


def origins(triage: Triage) -> list[Began]:
    """Those worth a place in the report: of one attempt, or of many the first and the last; faint ones only where nothing else is known."""
    found = [one for one in triage.began if one.sure != "low"] or triage.began
    return found if len(found) < 3 else [found[0], found[-1]]


def began_words(began: Began, several: bool, lang: str) -> str:
    """`attempt 2 · node-07 · device 3 · rank 59 · pid 4211 · 127 of 128 ranks only waited`."""
    parts = [say(lang, "attempt", v=began.attempt)] if several else []
    if where := scope_words(Scope(began.node, began.device, began.rank, began.pid), lang):
        parts.append(where)
    if began.ranks:
        parts.append(say(lang, "ranks", v=numbers(began.ranks)))
    if began.waiting:
        parts.append(say(lang, "waited", n=began.waiting, total=began.size))
    if not began.logs:
        parts.append(say(lang, "no-logs"))
    return " · ".join(parts)


def reasons(began: Began, lang: str) -> list[tuple[str, str]]:
    """The signs, strongest first, each with its line where it has one: (reason, place)."""
    return [(sign.reason.of(lang), place(sign.file, sign.line) if sign.file else "") for sign in began.signs]


def node_rows(triage: Triage, verbose: bool, lang: str) -> list[tuple[str, str]]:
    """(name, what is to be said of it) of the nodes with something to say: all of them where `verbose`."""
    rows = []
    for node in triage.nodes:
        told = verbose or node.taken_off or not node.logs
        if told:
            rows.append((node.name, node_words(node, lang)))
    return rows


def node_words(node: NodeSeen, lang: str) -> str:
    parts = [] if node.logs else [say(lang, "node-silent")]
    if node.ahead is not None and node.within is not None:
        if node.taken_off:
            key = "clock-ahead" if node.ahead > 0 else "clock-behind"
            by = say(lang, f"compared.{node.compared_by}", n=node.moments)
            parts.append(say(lang, key, apart=span(abs(node.ahead), lang), within=span(node.within, lang), by=by))
        else:
            parts.append(say(lang, "clock-agrees", within=span(max(abs(node.ahead), node.within), lang)))
    if node.ranks:
        parts.append(say(lang, "ranks", v=numbers(node.ranks)))
    if other := [word for word in (*node.addresses, *node.hosts, *node.places) if word != node.name]:
        parts.append(", ".join(dict.fromkeys(other)))
    return " · ".join(parts)


def attempt_rows(triage: Triage, clock: Clock, lang: str) -> list[tuple[str, str]]:
    """(number, what is to be said of it), where there are several attempts."""
    if len(triage.attempts) < 2:
        return []
    rows = []
    for attempt in triage.attempts:
        parts = [say(lang, "attempt-ranks", n=attempt.ranks or attempt.logs_of, known=attempt.logs_of)]
        if attempt.began is not None and attempt.began.sure != "low":
            where = scope_words(Scope(attempt.began.node, attempt.began.device, attempt.began.rank), lang)
            where = where or (say(lang, "ranks", v=numbers(attempt.began.ranks)) if attempt.began.ranks else "")
            parts += [say(lang, "attempt-began", where=where)] if where else []
        of_it = [str(diagnosis.rank) for diagnosis in triage.diagnoses if diagnosis.attempt == attempt.number]
        parts += [say(lang, "attempt-diagnoses", v=", ".join(of_it))] if of_it else []
        rows.append((f"{attempt.number}  {clock.time(attempt.first)}".rstrip(), " · ".join(parts)))
    return rows


def node_heading(nodes: Sequence[NodeSeen], lang: str) -> str:
    """With the node that the clocks of the others are compared with, where they are."""
    reference = next((node.name for node in nodes if node.ahead == 0), "")
    return say(lang, "nodes-against", v=reference) if reference else say(lang, "nodes-heading")
