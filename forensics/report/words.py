"""Pieces of a report that are worded alike in the terminal and in Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from forensics.report.figures import number, size
from forensics.report.page import Look
from forensics.report.strings import say
from forensics.result import BundleInfo, FactSeen, Member, Note, Triage
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
    """What follows from a diagnosis, in causal order: titles where the triage knows them, rule ids otherwise."""
    titles = triage.titles
    return [titles[rule].of(lang) if rule in titles else rule for rule in diagnosis.explains]


def confirmation(diagnosis: Diagnosis, triage: Triage, look: Look) -> str:
    """The command that would settle a diagnosis by a rerun of its kernel; empty where there is none."""
    if "replay" not in look.commands or diagnosis.finding.rule.replay is None or not triage.case:
        return ""
    if (verdict_ := triage.replays.get(diagnosis.rank)) is not None and verdict_.status != "unavailable":
        return ""
    return f"dsforensics replay {shlex.quote(triage.case)} {diagnosis.rank}"


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


def of_note(note: Note, lang: str) -> str:
    return note.zh if lang == "zh" else note.en
