"""Standard output of training and serving: torch_npu, c10, vLLM, Ray, SGLang, llama.cpp, Python logging and tracebacks, of all ranks at once.

>>> console = ConsoleParser()
>>> r = console.record("(Worker_TP0 pid=1070) ERROR 04-30 23:38:48 [multiproc_executor.py:932] [ERROR] 2026-04-30-23:38:48 "
...                    "(PID:1070, Device:0, RankID:-1) ERR00100 PTA call acl api failed")
>>> r.grammar, r.pid, r.process, r.device, r.rank, r.code, r.message
('torch_npu', 1070, 'Worker_TP0', 0, 0, 'ERR00100', 'PTA call acl api failed')
>>> r = console.record("[2025-09-02 15:18:23 TP3] Scheduler hit an exception: Traceback (most recent call last):")
>>> r.grammar, r.rank, r.message[:27]
('sglang', 3, 'Scheduler hit an exception:')
>>> r = console.record("[rank5]:[E1212 12:10:10.142701460 compiler_depend.ts:1675] [Rank 5] HCCL watchdog thread terminated")
>>> r.grammar, r.severity, r.rank, r.src_file, r.clock
('c10', 'ERROR', 5, 'compiler_depend.ts', 'noyear')
>>> console.record('  File "train.py", line 377, in <module>') is None
True

A plain line at column 0 is a record of its own without a time (grammar "text"); frames, hints and indented lines continue the record
above. A prefix that names a process makes every line behind it a record, so that the lines of interleaved ranks are not mixed up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from parsers import clock, cluster, error_block, mindie, mindspore, plog
from parsers.base import Parser
from parsers.console_dates import bracketed, dated
from parsers.prefix import peel
from parsers.rows import Record

_S = mindie.SEVERITY
_LETTER = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}

_TORCH_NPU = re.compile(
    r"\[ERROR\] (\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d(?:\.\d{1,3}\.\d{1,3})?) "
    r"\(PID:(\d{1,10}), Device:(-?\d{1,6}), RankID:(-?\d{1,8})\)\.? (ERR\d{4,5}) ",
    re.ASCII,
)
_TORCH_NPU_LOG = re.compile(r"\[(\d{1,10})\] \[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d):(\d{3})\] ([\w.]{1,80}): \[([A-Z]{4,8})\] \[(\d{1,20})\] ", re.ASCII)
_C10 = re.compile(r"\[([DIWEF])(\d{1,2}?)(\d\d) (\d\d:\d\d:\d\d\.\d{6,9}) ([^\s:\]]{1,200}):(\d{1,7})\] ?", re.ASCII)
_C10_OLD = re.compile(r"\[([DIWEF]) ([^\s:\]]{1,200}):(\d{1,7})\] ?", re.ASCII)
_VLLM = re.compile(
    r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d:\d\d:\d\d(?:\.\d{3})?) "
    r"(?:\[([^\]\s]{1,200}?):(\d{1,7})\]|([\w./]{1,200}\.py):(\d{1,7})\]) ?",
    re.ASCII,
)
_UVICORN = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL):(?:\s{1,10}|([\w.]{1,120}):)", re.ASCII)
_CLOCK_ONLY = re.compile(r"\d\d:\d\d:\d\d(?:[.,]\d{1,6})? \[?([A-Z]{4,8})\]?:?[ \t]{1,8}", re.ASCII)
_EXCEPTION = re.compile(r"((?:[A-Za-z_]\w{0,60}\.){0,6}[A-Z][A-Za-z_]{0,60}(?:Error|Exception|Interrupt|Exit|Warning|ERROR))(?::|\s*$)", re.ASCII)
_WARNED = re.compile(r"(?:/|[A-Za-z]:\\|<)[^\s:]{1,400}:\d{1,7}: ([A-Z][A-Za-z]{1,40}Warning): ", re.ASCII)
_LLAMA = re.compile(
    r"(ggml\w{0,60}|llama\w{0,60}|common_\w{1,60}|clip_\w{1,60}|gguf\w{0,60}|load_\w{1,60}|srv|slot|main|system_info)(?:\s{1,4}\w{1,40})?: ", re.ASCII
)
_LLAMA_TIMED = re.compile(r"\d{1,6}\.\d\d\.\d{3}\.\d{3} ([DIWE]) ", re.ASCII)
_LEVEL_FIRST = re.compile(r"\[([A-Z]{4,8})(?:\|([^\]\n]{1,120}))?\]:? ?", re.ASCII)

_FATAL = ("Fatal Python error:", "terminate called", "Segmentation fault", "Aborted (core dumped)", "*** Aborted", "Bus error", "Killed")
_INNER = ("[ERROR] 2", "[PID:", "[rank", "[W", "[E")


class ConsoleParser(Parser):
    kind: ClassVar[str] = "console"

    def claims(self, path: str, head: str) -> int:
        """Consoles have no name of their own; their lines tell."""
        lines = [text for text in head.split("\n", 60)[:60] if text.strip()]
        if not lines:
            return 0
        strong = weak = 0
        for text in lines:
            found = read(text[:2000])
            if found is None:
                weak += 1
            elif found.grammar in _OWN:
                strong += 1
        if not strong:
            return 5 if path.endswith((".out", "stdout.log", "console.log", "train.log", "serve.log")) else 0
        return min(90, 30 + int(60 * (strong + weak) / len(lines)))

    def record(self, line: str) -> Record | None:
        return read(line)


_OWN = frozenset(
    {"torch_npu", "c10", "vllm", "sglang", "ray", "python", "llama", "error-block", "mindspore", "torch", "uvicorn", "megatron"}
)  # fmt: skip


def read(line: str) -> Record | None:
    """The record a console line begins; None where it continues the one above."""
    if not line or line.isspace():
        return None
    peeled = peel(line)
    if peeled is None:
        return _coded(_head(line))
    found = _head(peeled.rest) if peeled.rest else None
    if found is None:
        if peeled.pid is None and peeled.rank is None and peeled.ts is None and not peeled.process:
            return None
        found = Record(peeled.rest, grammar="python" if peeled.rest[:2] == "  " else "text")
    return _coded(peeled.onto(found))


def _coded(record: Record | None) -> Record | None:
    """With the code that a message names in the words of torch_npu, `error code is 507015`."""
    if record is not None and not record.code and "rror code is " in record.message:
        record.code = plog.error_code(record.message)
    return record


def _head(text: str) -> Record | None:
    first = text[0]
    if first in " \t":
        return _indented(text)
    reader = _READERS.get(first)
    found = reader(text) if reader is not None else None
    if found is not None:
        return found
    if error_block.continues(text) or mindspore.continues(text):
        return None
    if first in ")]},;^~|":
        return None  # the end of something printed over several lines
    return Record(text, grammar="text")


def _indented(text: str) -> Record | None:
    inner = text.lstrip()
    if not inner:
        return None
    if inner.startswith("[ERROR] 2") or (len(text) - len(inner) == 1 and inner.startswith("iteration ")):
        at = len(text) - len(inner)
        found = _torch_npu(inner) if inner[0] == "[" else Record(inner, grammar="megatron")
        if found is not None:
            found.message_at += at
        return found
    return None


def _square(text: str) -> Record | None:
    second = text[1:2]
    if second.isdigit():
        found = _TORCH_NPU_LOG.match(text) if "] [2" in text[:16] else None
        if found is not None:
            return _torch_log(text, found)
        return mindie.line(text) or cluster.line(text) or bracketed(text)
    if second in _LETTER and text[2:3] in " 0123456789":
        return _c10(text)
    if text.startswith("[ERROR] 2") and (own := _torch_npu(text)) is not None:
        return own
    if text.startswith("[PID:"):
        return error_block.head(text)
    if text.startswith("[ASSERT]"):
        return Record(text[8:].lstrip(), 9, severity="ERROR", grammar="error-block", module="ASSERT")
    if text.startswith("[Error]: "):
        return None
    if "(" in text[8:60] and (own := plog.read(text, "local", "plog") or mindspore.line(text)) is not None:
        return own
    found = _LEVEL_FIRST.match(text)
    if found is None or found[1] not in _LEVELS:
        return None
    return _level_first(text, found)


_LEVELS = frozenset(_S) | frozenset(mindspore.SEVERITY) | {"OPLOG", "NULL"}


def _level_first(text: str, found: re.Match[str]) -> Record | None:
    at = found.end()
    severity = _S.get(found[1], mindspore.SEVERITY.get(found[1], ""))
    rest = text[at:]
    if rest[:1].isdigit():
        if (own := cluster.line(text)) is not None:
            return own
        if (own := dated(rest)) is not None:
            own.severity = own.severity or severity
            own.message_at += at
            return own
    ts, kind = clock.iso(found[2]) if found[2] and found[2][0] == "2" else (None, "none")  # [INFO|2025-09-12 10:11:12]
    return Record(rest, at, ts, kind if ts is not None else "none", severity, "python")


def _torch_npu(text: str) -> Record | None:
    found = _TORCH_NPU.match(text)
    if found is None:
        return None
    rank = int(found[4])
    ts = clock.cann(found[1])
    return Record(
        text[found.end() :], found.end(), ts, "local" if ts is not None else "none", "ERROR", "torch_npu", "torch_npu", pid=int(found[2]),
        device=int(found[3]) if found[3][0] != "-" else None, rank=rank if rank >= 0 else None, code=found[5],
    )  # fmt: skip


def _torch_log(text: str, found: re.Match[str]) -> Record:
    ts = clock.second(found[2])
    return Record(
        text[found.end() :], found.end(), None if ts is None else ts + int(found[3]) * 1000, "local" if ts is not None else "none",
        _S.get(found[5], ""), "torch_npu", found[4], pid=int(found[1]), tid=int(found[6]),
    )  # fmt: skip


def _c10(text: str) -> Record | None:
    found = _C10.match(text)
    if found is not None:
        ts = clock.month_day(found[2], found[3], found[4])
        return Record(
            text[found.end() :], found.end(), ts, "noyear" if ts is not None else "none", _LETTER[found[1]], "c10", "c10",
            rank=_rank(text, found.end()), src_file=found[5], src_line=int(found[6]),
        )  # fmt: skip
    found = _C10_OLD.match(text)
    if found is None:
        return None
    return Record(
        text[found.end() :], found.end(), severity=_LETTER[found[1]], grammar="c10", module="c10", src_file=found[2], src_line=int(found[3])
    )


def _rank(text: str, at: int) -> int | None:
    if not text.startswith("[Rank ", at):
        return None
    digits = text[at + 6 : at + 14].split("]", 1)[0]
    return int(digits) if digits.isdigit() and digits.isascii() else None


def _digits(text: str) -> Record | None:
    if text[4:5] in "-/":
        own = mindie.line(text) or dated(text)
        if own is not None:
            return own
    if text[2:3] == ":":
        found = _CLOCK_ONLY.match(text)
        if found is not None and (found[1] in _S or found[1] == "DEBU"):
            return Record(text[found.end() :], found.end(), severity=_S.get(found[1], "DEBUG"), grammar="python")
    found = _LLAMA_TIMED.match(text)
    if found is not None:
        return Record(text[found.end() :], found.end(), severity=_LETTER[found[1]], grammar="llama")
    return None


def _upper(text: str) -> Record | None:
    if text[:2] in ("DE", "IN", "WA", "ER", "CR"):
        found = _VLLM.match(text)
        if found is not None:
            return _vllm(text, found)
        found = _UVICORN.match(text)
        if found is not None:
            own = _EXCEPTION.match(text)
            if own is None:
                return Record(
                    text[found.end() :], found.end(), severity=_S[found[1]], grammar="python" if found[2] else "uvicorn", module=found[2] or ""
                )
    if error_block.is_code(text):
        return error_block.head(text)
    if text[1:5].isdigit() and text[0] in _LETTER:
        return cluster.klog(text)
    return _word(text)


def _vllm(text: str, found: re.Match[str]) -> Record:
    at = found.end()
    ts = clock.month_day(found[2], found[3], found[4])
    record = Record(
        text[at:], at, ts, "noyear" if ts is not None else "none", _S[found[1]], "vllm",
        src_file=found[5] or found[7], src_line=int(found[6] or found[8]),
    )  # fmt: skip
    message = record.message
    if message.startswith(_INNER) or error_block.is_code(message) or (message[:1].isupper() and "_" in message[:40] and "(E" in message[:120]):
        own = _head(message)
        if own is not None and own.grammar != "text":  # what it wraps knows more: the year, the device, the code
            own.message_at += at
            own.src_file, own.src_line = own.src_file or record.src_file, own.src_line or record.src_line
            if own.ts is None or own.clock == "noyear":
                own.ts, own.clock = record.ts, record.clock
            own.severity = record.severity if record.severity == "ERROR" else own.severity
            return own
    return record


def _word(text: str) -> Record | None:
    """A line that begins with a word: exceptions, crashes, llama.cpp, titled error blocks, structured logs."""
    if text.startswith("Traceback (most recent call last)"):
        return Record(text, severity="ERROR", grammar="python", module="Traceback")
    if text.startswith(_FATAL):
        return Record(text, severity="FATAL", grammar="python")
    if text.startswith("time="):
        return cluster.line(text)
    found = _EXCEPTION.match(text)
    if found is not None:
        severity = "WARNING" if found[1].endswith("Warning") else "ERROR"
        at = min(found.end() + 1, len(text))
        return Record(text[at:], at, severity=severity, grammar="python", module=found[1])
    if text.startswith("CANN error:"):
        return Record(text[11:].lstrip(), 12, severity="ERROR", grammar="llama", module="CANN")
    if "): " in text[:320] and (own := error_block.head(text)) is not None:
        return own
    found = _LLAMA.match(text)
    if found is not None:
        return Record(text[found.end() :], found.end(), grammar="llama", module=found[1])
    if text.startswith("Warning: "):
        return Record(text[9:], 9, severity="WARNING", grammar="python")
    return None


def _path(text: str) -> Record | None:
    found = _WARNED.match(text)
    if found is None:
        return None
    return Record(text[found.end() :], found.end(), severity="WARNING", grammar="python", module=found[1])


_READERS: dict[str, Callable[[str], Record | None]] = {
    "[": _square,
    "/": _path,
    "<": _path,
    **dict.fromkeys("0123456789", _digits),
    **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", _upper),
    **dict.fromkeys("abcdefghijklmnopqrstuvwxyz_*", _word),
}
