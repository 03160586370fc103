"""From a log line to the first text of a rule: what varies generalised, the line kept as its first example.

    >>> made = draft("[ERROR] HCCL(7,python):2026-03-12-14:36:09.101.552 [wait.cc:212]91 [Wait]rank 3 got no answer in 120 s")
    >>> made.ident
    'field.wait-rank-got-answer'
    >>> "regex: '\\\\[Wait\\\\]rank (?P<rank>\\\\d+) got no answer in \\\\d+ s'" in made.text
    True

A draft runs as it is. What only a person knows (the cause, the remedy, the other language) is marked by `lint` until it is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rules.generalise import Generalised, generalise

TITLE = 90
"""Characters of a line taken as a title."""
EXAMPLE = 2000
"""Characters of a line kept as an example."""
_LAYERS = (
    (r"\[ascend\]|\bDRV\(|\bdevdrv|kernel: ", "driver"),
    (r"\bHCC[LP]\(|hccl|HCCL", "collective"),
    (r"\b(?:OP|TBE|TEFUSION|FE|CCE)\(|aclnn|tiling", "operator"),
    (r"\b(?:GE|RUNTIME|ASCENDCL|TDT|HDC)\(|ACL_ERROR|rtStream|aclrt", "runtime"),
    (r"\bTSCH\(|\bLPFW\(|\bIMP\(", "firmware"),
    (r"torch|vllm|mindspore|Traceback|\w+Error: |\w+Exception: ", "framework"),
)
"""What a line holds, and the layer it speaks of then."""
_LEVELS = ((r"\bFATAL\b|\bCRITICAL\b|panic|Segmentation fault", "fatal"), (r"\bWARN(?:ING)?\b|\bwarning\b", "warning"))


class Draft(msgspec.Struct, frozen=True):
    """The text of a new rule."""

    ident: str
    text: str
    """YAML of one rule, an item of a list."""
    seen: Generalised


def draft(
    line: str,
    ident: str = "",
    root_cause: str = "unknown",
    layer: str = "",
    title: str = "",
    title_zh: str = "",
    prefix: str = "field",
    head: str = "",
) -> Draft:
    """The rule for a line. `ident`: its id, by default made of `prefix` and the words of the line; `head`: what is known of the line besides
    its text, in the words of a record's head. Raises ValueError for a line without words."""
    seen = generalise(line)
    if not seen.texts or not re.search(r"[^\W\d_]{3}", " ".join(seen.texts)):
        raise ValueError("the line has no words that could be looked for; take one that says what went wrong")
    name = ident or f"{prefix}.{words_of(seen)}"
    said = title or _title(seen)
    pattern = f"contains: {quoted(seen.text)}" if seen.text else f"regex: {quoted(seen.pattern)}"
    kept = line.strip("\r\n")[:EXAMPLE]
    text = f"""\
- id: {name}
  root_cause: {root_cause}        # the cause, not the symptom: `dsforensics rules causes` lists them
  title:
    en: {quoted(said)}
    zh: {quoted(title_zh or said)}
  layer: {layer or _first(_LAYERS, f"{head} {line}", "application")}
  severity: {_first(_LEVELS, f"{head} {line}", "error")}
  provenance: field
  strength: moderate        # decisive: the text names the cause; strong: hardly anything else prints it; moderate; weak
  match:
    id: line
    {pattern}
  action: investigate
  remedy:
    en: []
    zh: []
  examples:
    match:
      - {quoted(kept)}
    no_match: []        # lines that look alike and mean something else
"""
    return Draft(name, text, seen)


def words_of(seen: Generalised) -> str:
    """Two to four words of a line, joined by dashes."""
    words = [word.lower() for word in re.findall(r"[A-Za-z][a-z]{2,15}|[A-Z]{3,12}(?![a-z])", " ".join(seen.texts))]
    telling = [word for word in dict.fromkeys(words) if word not in _EMPTY]
    return "-".join(telling[:4] or words[:2] or ["line"])


_EMPTY = frozenset(
    ("the", "and", "not", "for", "with", "from", "has", "have", "was", "are", "this", "that", "error", "failed", "fail", "when", "please", "check")
)  # fmt: skip


def _title(seen: Generalised) -> str:
    """The message with its captures in braces, cut at a word."""
    out, at = "", 0
    for name, value in seen.captures.items():
        place = seen.message.find(value, at)
        if place < 0:
            break
        out += seen.message[at:place] + f"{{line.{name}}}"
        at = place + len(value)
    out += seen.message[at:]
    out = " ".join("".join(char if char.isprintable() else " " for char in out).split())
    if len(out) <= TITLE:
        return out
    cut = out[:TITLE].rsplit(" ", 1)[0]
    return cut[: cut.rfind("{")] if cut.count("{") > cut.count("}") else cut


def _first(choices: Sequence[tuple[str, str]], line: str, otherwise: str) -> str:
    return next((name for pattern, name in choices if re.search(pattern, line)), otherwise)


def quoted(text: str) -> str:
    """A text as a YAML scalar that reads back as it is: in single quotes where all of it can be printed, else in double ones."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    number = ord(char)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
