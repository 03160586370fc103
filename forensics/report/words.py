"""Pieces of a report that are worded alike in the terminal and in Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from forensics.marks import Mark
from forensics.report.figures import Clock, duration, number, size
from forensics.report.page import Look
from forensics.report.strings import TABLE, say
from forensics.result import Baseline, BundleInfo, ChangedRate, CheckResult, FactSeen, Member, Note, Slower, Triage
from replay.result import STATUS_WORDS
from rules.model import Diagnosis, Scope

HEAD_FACTS = {
    "cann.version": "CANN",
    "torch_npu.version": "torch_npu",
    "mindspore.version": "MindSpore",
    "vllm.version": "vLLM",
    "driver.version": "driver",
    "soc": "",
}
"""Facts worth a place in the head, and the name in front of each."""


def named(triage: Triage) -> list[Diagnosis]:
    """The diagnoses that name a cause."""
    return [d for d in triage.diagnoses if d.finding.rule.root_cause != "unknown"]


def verdict(triage: Triage) -> str:
    """Key of the sentence that stands where no diagnosis does."""
    if triage.coverage.error_lines > triage.coverage.error_lines_explained or triage.diagnoses:
        return "unknown"
    return "no-cause" if triage.coverage.error_lines else "healthy"


def counts(bundle: BundleInfo, lang: str) -> list[str]:
    """`214 files`, `1.02 GB`, ...: the size of a bundle in words."""
    parts = [
        say(lang, "files", n=number(bundle.files, lang)),
        size(bundle.unpacked or bundle.bytes),
        say(lang, "lines", n=number(bundle.lines, lang)),
    ]
    parts += [say(lang, "nodes", n=len(bundle.nodes))] if bundle.nodes else []
    return parts + ([say(lang, "devices", n=bundle.devices)] if bundle.devices else [])


def environment(facts: Iterable[FactSeen]) -> list[str]:
    """The versions that matter most, each once; different values of one name side by side."""
    seen: dict[str, list[str]] = {}
    for fact in facts:
        values = seen.setdefault(fact.name, [])
        if fact.value not in values:
            values.append(fact.value)
    return [f"{label} {' / '.join(seen[name][:3])}".strip() for name, label in HEAD_FACTS.items() if name in seen]


def scope_words(scope: Scope, lang: str) -> str:
    """`node0 · device 6 · rank 6 · pid 838`, as far as known."""
    known = (("node", scope.node or None), ("device", scope.device), ("rank", scope.rank), ("pid", scope.pid))
    return " · ".join(say(lang, key, v=value) for key, value in known if value is not None)


def place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file


def chain(diagnosis: Diagnosis, triage: Triage, lang: str) -> list[str]:
    """What follows from a diagnosis, in causal order: titles where the triage knows them, rule ids otherwise; what many ranks repeat is
    told once, with their number."""
    titles, echoes = triage.titles, {echo.rule: echo for echo in diagnosis.echoes}
    out = []
    for rule in diagnosis.explains:
        text, echo = titles[rule].of(lang) if rule in titles else rule, echoes.get(rule)
        if echo is not None and echo.ranks > 1:
            text = say(lang, "echo-ranks", text=text, n=echo.ranks)
        elif echo is not None and echo.processes > 1:
            text = say(lang, "echo-processes", text=text, n=echo.processes)
        out.append(text)
    return out


def confirmation(diagnosis: Diagnosis, triage: Triage, look: Look) -> str:
    """The command that would settle a diagnosis by a rerun of its kernel; empty where there is none."""
    if "replay" not in look.commands or diagnosis.finding.rule.replay is None or not triage.case:
        return ""
    if (verdict_ := triage.replays.get(diagnosis.rank)) is not None and verdict_.status != "unavailable":
        return ""
    return f"dsforensics replay {shlex.quote(triage.case)} {diagnosis.rank}"


def novel_rows(baseline: Baseline, clock: Clock, lang: str) -> list[tuple[str, str]]:
    """(count, place and time; text) of the lines that the good run does not have."""
    rows = []
    for shape in baseline.novel:
        lead = "  ".join(part for part in (f"{shape.count} ×", place(shape.file, shape.line), clock.time(shape.ts)) if part)
        rows.append((lead, f"{shape.text}  ({say(lang, 'was', text=shape.was)})" if shape.was else shape.text))
    return rows


def changed_rows(baseline: Baseline, lang: str) -> list[tuple[str, str]]:
    """(name = before → after; place) of versions and settings that differ."""

    def values(found: list[str]) -> str:
        return " / ".join(found[:4]) + (" / …" if len(found) > 4 else "") if found else say(lang, "absent")

    return [(f"{one.name}: {values(one.before)} → {values(one.after)}", place(one.file, one.line)) for one in baseline.changed]


def rate_rows(rates: list[ChangedRate], lang: str) -> list[tuple[str, str]]:
    """(frequency and place; text) of lines that are far more or far less frequent."""
    return [(f"{say(lang, 'rate', after=one.after, expected=f'{one.expected:g}')}  {place(one.file, one.line)}", one.text) for one in rates]


def slower_name(one: Slower, lang: str) -> str:
    """What is slower: an operator type with its core (or cores, where it has moved), or a step."""
    if one.kind != "operator":
        return say(lang, f"slower.{one.kind}")
    cores = f"{one.core_before} → {one.core}" if one.core_before and one.core and one.core_before != one.core else one.core
    return f"{one.name} ({cores})" if cores else one.name


def slower_more(one: Slower, lang: str) -> str:
    """How often it ran, and how much it is of the whole."""
    if one.kind == "operator":
        return say(lang, "slower-calls", before=one.before_count, after=one.after_count, share=f"{one.share or 0.0:.1%}")
    steps = say(lang, "slower-steps", before=one.before_count, after=one.after_count)
    if not one.part:
        return steps
    part = say(lang, f"part.{one.part}")
    return say(lang, "slower-part", steps=steps, part=part, before=duration(one.part_before), after=duration(one.part_after))


def slower_place(one: Slower, lang: str) -> str:
    """File and row; of a table without text lines, such as a database, the row alone."""
    where = place(one.file, one.line) if one.line else one.file
    return where if one.row is None else say(lang, "place-row", place=where, row=one.row)


def slower_rows(baseline: Baseline, lang: str) -> list[tuple[str, str]]:
    """(place and rank; what, before → after, how often) of operators and steps that take longer."""
    rows = []
    for one in baseline.slower:
        lead = "  ".join(part for part in (slower_place(one, lang), "" if one.rank is None else f"rank {one.rank}") if part)
        values = {"before": duration(one.before), "after": duration(one.after), "ratio": f"{one.after / one.before:.2f}"}
        rows.append((lead, say(lang, "slower-row", name=slower_name(one, lang), more=slower_more(one, lang), **values)))
    return rows


def replayed(diagnosis: Diagnosis, triage: Triage, lang: str) -> str:
    """The verdict of the replay of a diagnosis, and what it rests on; empty where none was run."""
    found = triage.replays.get(diagnosis.rank)
    if found is None:
        return ""
    return f"{STATUS_WORDS[found.status].of(lang)} · {found.kernel} · {found.reason.of(lang)}"


def lost_members(triage: Triage) -> list[Member]:
    """Members that were not read, or not to their end."""
    return [m for m in triage.coverage.members if m.lost]


def coverage_words(triage: Triage, lang: str) -> list[str]:
    """What was read, and what of it is no log, in sentences."""
    coverage = triage.coverage
    sentences = [say(lang, "coverage-lines", parsed=number(coverage.lines_parsed, lang), lines=number(coverage.lines, lang))]
    counted = (
        ("unrecognised", sum(m.status == "unrecognised" for m in coverage.members)),
        ("binary", sum(m.status == "binary" for m in coverage.members)),
        ("left-out", sum(m.status == "skipped" and not m.lost for m in coverage.members)),
    )
    return sentences + [say(lang, key, n=number(count, lang)) for key, count in counted if count]


def reason(member: Member, lang: str) -> str:
    """Why a member was not read, or not to its end."""
    return (member.note_zh if lang == "zh" else member.note) or say(lang, f"status.{member.status}")


def marked(mark: Mark) -> tuple[str, str]:
    """(place, text with its note) of a line that a person marked."""
    return place(mark.file, mark.line), " — ".join(part for part in (mark.text.strip(), mark.note.strip()) if part)


def of_note(note: Note, lang: str) -> str:
    return note.zh if lang == "zh" else note.en


CHECK_ORDER = ("fail", "not-checked", "pass")


def checked(triage: Triage, lang: str) -> str:
    """How many checks passed, failed, and were not made."""
    count = [sum(one.status == status for one in triage.checks) for status in CHECK_ORDER]
    return say(lang, "checked", failed=count[0], open=count[1], passed=count[2])


def subject(check: CheckResult, lang: str) -> str:
    """What a check is about: the second word of its id, in the language of the report where it is one of ours."""
    parts = check.rule.split(".")
    word = parts[1] if len(parts) > 2 else parts[0]
    return say(lang, f"group.{word}") if f"group.{word}" in TABLE else word


def wanting(check: CheckResult, lang: str) -> str:
    """Why a check was not made."""
    if not check.wanting:
        return say(lang, "undecided")
    return check.note.of(lang) if check.note is not None else say(lang, "wanting", names=", ".join(check.wanting))
