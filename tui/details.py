"""One record with all that is known of it: its fields, its message, what its codes mean, which rules it speaks for, its raw lines."""

from __future__ import annotations

import re
from typing import NamedTuple

from textual.content import Content
from textual.style import Style

from forensics.report.strings import say as report_say
from forensics.safe_text import safe, safe_block
from tui.queries import SHOWN, Record
from tui.session import Session

CODES = 6
LINKS = 4
_IDENT = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")


class Reading(NamedTuple):
    """What a code on the line means, ready to be shown."""

    code: str
    symbol: str
    text: str
    parts: tuple[tuple[str, str], ...]
    """(bit or field, what it says)"""
    suspects: tuple[str, ...]


def readings(message: str, lang: str) -> list[Reading]:
    """Of the codes of a message. Loads the catalogue: not for the event loop."""
    from rules import catalog

    out = []
    for code in catalog.codes_in(message)[:CODES]:
        for meaning in catalog.lookup(code)[:1]:
            words = [meaning.meaning.of(lang)]
            if meaning.generic:
                words.append(report_say(lang, "generic"))
            if meaning.note is not None:
                words.append(meaning.note.of(lang))
            for direction, key in (("up", "becomes"), ("down", "made-from")):
                related = [one.code for one in meaning.related if one.direction == direction][:LINKS]
                if related:
                    words.append(f"{report_say(lang, key)} {', '.join(related)}")
            parts = tuple((part.name, " ".join(word for word in (part.value, part.meaning.of(lang)) if word)) for part in meaning.parts)
            suspects = tuple(dict.fromkeys(part.suspects.of(lang) for part in meaning.parts if part.suspects is not None))
            out.append(Reading(meaning.code, meaning.symbol, " · ".join(words), parts, suspects))
    return out


def rule_link(ident: str) -> Content:
    """The id of a rule that opens it."""
    shown = Content.styled(safe(ident), "$text-primary underline")
    return shown.stylize(Style.from_meta({"@click": f"app.open_rule('{ident}')"})) if _IDENT.fullmatch(ident) else shown


def render(session: Session, record: Record, found: list[Reading], raw: str | None, titles: dict[str, str]) -> Content:
    """The page of a record. `raw`: its lines from the bundle, None while they are not there; `titles`: of the rules that matched on it."""
    say, line = session.say, record.line
    lang = session.lang
    last = line.line_no + line.n_lines - 1
    where = f"{session.path(line.file_id)}:{line.line_no}" + (f"-{last}" if line.n_lines > 1 else "")
    stamp = session.clock.time(line.ts) if line.ts is not None else say("record.untimed")
    out: list[Content | str | tuple[str, str]] = [(safe(where), "$text-primary bold"), f"  {stamp}"]
    out += [(f"  byte {record.byte_offset}", "dim"), "\n"]
    fields = (
        ("severity", line.severity), ("source", line.source), ("node", line.node), ("device", line.device), ("rank", line.rank),
        ("module", line.module), ("process", record.process), ("pid", line.pid), ("tid", record.tid), ("stream", record.stream_id),
        ("task", record.task_id), ("function", record.function), ("code", record.code),
        ("at", f"{record.src_file}:{record.src_line}" if record.src_file else ""),
    )  # fmt: skip
    for name, value in fields:
        if value not in (None, ""):
            out += [(f"{say(f'field.{name}')} ", "dim"), f"{safe(str(value))}  "]
    out.append("\n\n")
    mark = session.marks.get(line.event_id)
    if mark is not None:
        out += [("● ", "$text-success bold"), (safe(mark.note) if mark.note else say("record.marked"), "$text-success"), "\n"]
    out += [safe_block(record.message).replace("\t", "    "), "\n"]
    if line.length > SHOWN:
        out += [(say("record.cut", shown=SHOWN, length=line.length), "$text-warning"), "\n"]
    for reading in found:
        out += ["\n", (safe(reading.code), "bold $text-accent"), f"  {reading.symbol}" if reading.symbol else "", "\n  ", reading.text]
        for name, text in reading.parts:
            out += ["\n    ", (safe(name), "dim"), f"  {safe(text)}"]
        for text in reading.suspects:
            out += ["\n    ", (f"→ {text}", "$text-success")]
        out.append("\n")
    if record.signals:
        out += ["\n", (report_say(lang, "rule") + " ", "dim")]
        for number, (ident, _, _) in enumerate(record.signals):
            title = titles.get(ident, "")
            out += ["\n  " if number else " ", rule_link(ident), f"  {safe(title)}" if title else ""]
        out.append("\n")
    original = raw if raw is not None else next((signal[2] for signal in record.signals), None)
    if original is not None:
        out += ["\n", (say("record.raw") + "\n", "dim"), safe_block(original).replace("\t", "    "), "\n"]
        if len(original) >= SHOWN:
            out += [(say("record.raw.cut"), "$text-warning"), "\n"]
    else:
        out += ["\n", (say("record.raw.ask"), "dim"), "\n"]
    return Content.assemble(*out)
