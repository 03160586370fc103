"""Console lines that begin with a date: Python logging in its many layouts, loguru, SGLang, Ray's C++ log, DeepSpeed.

>>> r = dated("2026-05-26 15:15:48,667 - INFO - start /mnt/configmap/hccl_tools.py")
>>> r.severity, r.message, r.clock
('INFO', 'start /mnt/configmap/hccl_tools.py', 'local')
>>> r = dated("2026-01-03 13:01:48.145 | INFO     | cache_engine:73 - number of cache blocks on device: 1316")
>>> r.severity, r.module, r.src_line, r.message
('INFO', 'cache_engine', 73, 'number of cache blocks on device: 1316')
>>> r = bracketed("[2025-11-24 22:27:20,620 E 7435 7440] logging.cc:361:     @ ... and at least 178 more frames")
>>> r.grammar, r.severity, r.pid, r.tid, r.src_file
('ray', 'ERROR', 7435, 7440, 'logging.cc')
>>> r = bracketed("[2025-09-12 10:11:12,123] [WARNING] [engine.py:158:step] [Rank 2] loss scale at minimum")
>>> r.severity, r.src_file, r.function, r.rank, r.message
('WARNING', 'engine.py', 'step', 2, 'loss scale at minimum')
"""

from __future__ import annotations

import re

from parsers import clock
from parsers.mindie import SEVERITY
from parsers.rows import Record

_LETTER = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "C": "FATAL", "F": "FATAL"}
_DATE = re.compile(r"\d{4}[-/]\d\d[-/]\d\d[ T-]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?: ?(?:[+-]\d\d:?\d\d|Z)(?![\w:]))?", re.ASCII)
_WORD = r"DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE|debug|info|warning|warn|error|critical|fatal"
_DASHED = re.compile(
    rf"[ \t]{{1,4}}[-:][ \t]{{1,4}}(?:([\w./:-]{{1,120}})[ \t]{{1,8}}-[ \t]{{1,4}})?(?:(\d{{1,10}})[ \t]-[ \t])?({_WORD})[ \t]{{0,8}}[-:][ \t]{{1,4}}"
    r"(?:([\w./-]{1,160}\.\w{1,4}):(\d{1,7})[ \t]{1,4}-[ \t]{1,4})?",
    re.ASCII,
)
_PIPED = re.compile(
    rf" {{0,2}}\| {{0,2}}({_WORD}|SUCCESS) {{0,8}}\| {{0,2}}"
    r"(?:([\w.<>/-]{1,160})(?::([\w<>.]{1,80}))??(?::(\d{1,7}))? {1,2}(?:-|\|) {1,2})?",
    re.ASCII,
)
_PLAIN = re.compile(
    rf"[ \t]{{0,4}}\[?({_WORD})\]?[ \t:,]{{0,8}}"
    r"(?:\[?([\w./-]{1,160}\.(?:py|cc|cpp|c|go|h|ts)):(\d{1,7})\]?[ \t]{0,2}(?:-{1,2}|:)?[ \t]{0,4})?",
    re.ASCII,
)
_FILE_FIRST = re.compile(r" ([\w./-]{1,160}\.(?:py|cc|cpp|c|go|h)):(\d{1,7})(?:\]|:)? ", re.ASCII)
_SGLANG = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?((?: (?:DP|TP|PP|EP|ATTN_TP|ATTN_CP)\d{1,5}){0,5})\] ", re.ASCII)
_RAY = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ([DIWECF]) (\d{1,10}) (\d{1,10})\] (?:\([\w -]{1,40}\) )?([\w./-]{1,160}):(\d{1,7}): ?", re.ASCII
)
_PART = re.compile(r"(?:DP|TP|PP|EP)\d{1,5}", re.ASCII)
_TOKEN = re.compile(r" ?\[([^\]\[]{1,200})\]")
_SOURCE = re.compile(r"([\w./-]{1,160}?\.\w{1,4})[:-](\d{1,7})(?::([\w<>.]{1,80}))?$", re.ASCII)
_LOGGER = re.compile(r" ([A-Za-z_][\w.]{1,80}): \[([A-Z]{4,8})\] ", re.ASCII)


def dated(text: str) -> Record | None:
    """A line that begins with a date and a time; None for any other."""
    found = _DATE.match(text)
    if found is None:
        return None
    at = found.end()
    ts, kind = clock.iso(found[0])
    record = Record("", at, ts, kind if ts is not None else "none", grammar="python")
    ahead = text[at : at + 400]
    if seen := _DASHED.match(ahead):
        record.module, record.severity = seen[1] or "", SEVERITY.get(seen[3].upper(), "")
        record.pid = int(seen[2]) if seen[2] else None
        record.src_file, record.src_line = seen[4] or "", int(seen[5]) if seen[5] else None
    elif "|" in ahead[:4] and (seen := _PIPED.match(ahead)):
        record.severity = SEVERITY.get(seen[1], "INFO")
        record.module, record.function = seen[2] or "", seen[3] or ""
        record.src_line = int(seen[4]) if seen[4] else None
    elif seen := _PLAIN.match(ahead):
        record.severity = SEVERITY.get(seen[1].upper(), "")
        record.src_file, record.src_line = seen[2] or "", int(seen[3]) if seen[3] else None
    elif seen := _FILE_FIRST.match(ahead):
        record.src_file, record.src_line = seen[1], int(seen[2])
    elif ahead[:2].lstrip().startswith("["):
        at += _tokens(text, at, record)
        record.message, record.message_at = text[at:], at
        return record
    else:
        at += len(ahead) - len(ahead.lstrip())
        record.message, record.message_at = text[at:], at
        return record
    at += seen.end()
    record.message, record.message_at = text[at:], at
    return record


def bracketed(text: str) -> Record | None:
    """A line that begins with a date in square brackets; None for any other."""
    if seen := _SGLANG.match(text):
        # a bare date in brackets is SGLang's main process, or a script that prints dates so; levels may follow
        record = _in_brackets(text, seen, "sglang" if seen[1] else "python")
        parts = _PART.findall(seen[1])
        record.process = "_".join(parts)
        record.rank = _rank(parts)
        return record
    if seen := _RAY.match(text):
        ts = clock.iso(seen[1])[0]
        return Record(
            text[seen.end() :], seen.end(), ts, "local" if ts is not None else "none", _LETTER[seen[2]], "ray",
            pid=int(seen[3]), tid=int(seen[4]), src_file=seen[5], src_line=int(seen[6]),
        )  # fmt: skip
    date = _DATE.match(text, 1)
    if date is None or text[date.end() : date.end() + 1] != "]":
        return None
    ts, kind = clock.iso(date[0])
    record = Record("", 0, ts, kind if ts is not None else "none", grammar="python")
    at = date.end() + 1
    if seen := _LOGGER.match(text, at):
        record.module, record.severity = seen[1], SEVERITY.get(seen[2], "")
        at = seen.end()
    else:
        at += _tokens(text, at, record)
    record.message, record.message_at = text[at:], at
    return record


def _in_brackets(text: str, seen: re.Match[str], grammar: str) -> Record:
    ts = clock.second(text[1:20])
    if ts is not None and text[20] == ".":
        ts += clock.fraction(text[21:24])
    record = Record("", 0, ts, "local" if ts is not None else "none", grammar=grammar)
    at = seen.end()
    at += _tokens(text, at - 1, record) - 1 if text[at : at + 1] == "[" else 0
    if plain := _PLAIN.match(text[at : at + 400]):
        record.severity = record.severity or SEVERITY.get(plain[1].upper(), "")
        at += plain.end() if plain[1].isupper() else 0
    record.message, record.message_at = text[at:], at
    return record


def _rank(parts: list[str]) -> int | None:
    """SGLang's tensor rank is the world rank unless pipeline stages split it."""
    ranks = {part[:2]: int(part[2:]) for part in parts}
    return None if "PP" in ranks else ranks.get("TP")


def _tokens(text: str, start: int, record: Record) -> int:
    """Read `[LEVEL] [file:line] [pid] [logger]` in any order; returns how many characters they take."""
    at = start
    for _ in range(6):
        seen = _TOKEN.match(text, at)
        if seen is None:
            break
        token = seen[1]
        if token.upper() in SEVERITY and not record.severity:
            record.severity = SEVERITY[token.upper()]
        elif token.isdigit() and token.isascii() and len(token) <= 18:
            if record.pid is None:
                record.pid = int(token)
            elif record.tid is None:
                record.tid = int(token)
            else:
                break
        elif source := _SOURCE.match(token):
            record.src_file, record.src_line, record.function = source[1], int(source[2]), source[3] or ""
        elif token.lower().startswith("rank ") and token[5:].isdigit() and token.isascii() and len(token) < 14:
            record.rank = int(token[5:])
        elif not record.module and token.isascii() and token.replace("_", "").replace(".", "").isalnum():
            record.module = token
        else:
            break
        at = seen.end()
    tail = text[at : at + 8]
    for lead in (" : ", " - ", ": ", " "):
        if tail.startswith(lead):
            return at - start + len(lead)
    return at - start
