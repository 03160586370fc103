"""Prefixes that a transport puts before a log line: container runtimes, platforms, grep, vLLM and Ray processes, rank labels.

They come stacked, and each may know something the line itself does not say: the process, the rank, an exact time.

>>> seen = peel("2025-10-14T06:12:40.118331Z stderr F (Worker_TP2 pid=51377) frame 0")
>>> seen.rest, seen.pid, seen.rank, seen.process, seen.clock
('frame 0', 51377, 2, 'Worker_TP2', 'zoned')
>>> peel("[rank3]: RuntimeError: NPU out of memory").rank
3
>>> peel("an ordinary line") is None
True
"""

from __future__ import annotations

import re

import msgspec

from parsers import clock
from parsers.base import clean
from parsers.rows import Record

ROUNDS = 6
"""Prefixes that may lie on top of each other."""


class Peeled(msgspec.Struct, gc=False):
    """What was taken off, and what is left."""

    rest: str
    at: int = 0
    """Index in the line at which `rest` begins; 0 where `rest` had to be decoded (docker json)."""
    ts: int | None = None
    """Of the outermost prefix that has a time: one clock for all lines of the file."""
    clock: str = "none"
    pid: int | None = None
    rank: int | None = None
    process: str = ""

    def onto(self, record: Record) -> Record:
        """The record of `rest`, completed by what the prefixes know."""
        if self.ts is not None:
            record.ts, record.clock = self.ts, self.clock
        if record.pid is None:
            record.pid = self.pid
        if record.rank is None:
            record.rank = self.rank
        if self.process:
            record.process = self.process
        record.message_at = record.message_at + self.at if self.at else 0
        return record


class _Json(msgspec.Struct):
    log: str = ""
    time: str = ""


_JSON = msgspec.json.Decoder(_Json)
_CRI = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:[+-]\d\d:\d\d)?)Z? (?:stdout|stderr) [FP] ?", re.ASCII)
_PLATFORM = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3})\]\[([\w.-]{1,253})\] ", re.ASCII)
# kubectl logs --timestamps, docker logs -t: only before what a program of ours prints, for syslog looks the same
_STAMPED = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}Z) (?=[(\[]|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[ :]|Traceback|E[A-Z]\d{4})", re.ASCII
)
_COMPOSE = re.compile(r"[A-Za-z][\w.-]{0,80} {1,12}\| ", re.ASCII)
_POD = re.compile(r"\[pod/[\w./-]{1,300}\] ", re.ASCII)
_RANK = re.compile(r"\[(?:rank|Rank |default|worker)(\d{1,6})\]:? ?", re.ASCII)
_SRUN = re.compile(r" {0,4}(\d{1,5}): ?(?=\[|Traceback|[A-Za-z]{1,40}Error)", re.ASCII)
_GREP = re.compile(r"/?[\w.@/+-]{1,400}?\.(?:log|txt|out)(?:\.\d{1,3})?[:-]\d{1,9}[:-]", re.ASCII)
_PROCESS = re.compile(r"\((?:([A-Za-z_][\w.:]{0,80})(?![\w=]))?(?: rank=(\d{1,6}))?(?: ?pid=(\d{1,10}))?(?:, ip=[\w.:]{1,45})?\)(?: |$)", re.ASCII)
_ROLE = re.compile(r"_(DP|PP|TP|EP|DCP|PCP|SP)(\d{1,6})", re.ASCII)


def rank_of(process: str) -> int | None:
    """World rank a vLLM process name stands for: its expert rank, or its tensor rank where nothing else splits the ranks."""
    if not process.startswith(("Worker_", "VLLM::Worker_")):
        return None
    parts = dict(_ROLE.findall(process[:120]))
    if "EP" in parts:
        return int(parts["EP"])
    if "TP" in parts and not ("DP" in parts or "PP" in parts):
        return int(parts["TP"])
    return None


def peel(line: str) -> Peeled | None:
    """Take off all known prefixes; None where there is none."""
    seen = Peeled(line)
    at, decoded = 0, False
    for _ in range(ROUNDS):
        end = _one(line, at, seen)
        if end < 0:  # decoded: a new text
            if decoded:
                break
            line, at, decoded = seen.rest, 0, True
            continue
        if end == at:
            break
        at = end
    if not at and not decoded:
        return None
    seen.rest, seen.at = line[at:], 0 if decoded else at
    return seen


def _one(line: str, at: int, seen: Peeled) -> int:
    """Index behind the prefix at `at`; `at` where there is none; -1 where `seen.rest` holds the decoded text."""
    first = line[at : at + 1]
    if first == "(":
        return _process(line, at, seen)
    if first == "[":
        return _bracket(line, at, seen)
    if first == "{":
        return _docker(line, seen) if at == 0 and '"log":' in line else at
    if first.isdigit() and line[at + 10 : at + 11] == "T":
        found = _CRI.match(line, at) or _STAMPED.match(line, at)
        if found is None:
            return at
        _time(seen, found[1], utc=True)
        return found.end()
    if first.isdigit() or (first == " " and at == 0):
        found = _SRUN.match(line, at)
        if found is not None:
            seen.rank = int(found[1])
            return found.end()
    if at == 0 and first.isascii() and (first.isalnum() or first in "/._"):
        return _labelled(line)
    return at


def _labelled(line: str) -> int:
    """Index behind what docker compose (`service-1  | `) or grep (`path.log:123:`) put before a line."""
    if " | " in line[:90]:
        found = _COMPOSE.match(line)
        return found.end() if found else 0
    head = line[:420]
    if ".log" not in head and ".txt" not in head and ".out" not in head:
        return 0
    found = _GREP.match(head)
    return found.end() if found else 0


def _process(line: str, at: int, seen: Peeled) -> int:
    found = _PROCESS.match(line, at)
    if found is None or ("pid=" not in found[0] and "ip=" not in found[0]):
        return at
    name, rank, pid = found[1], found[2], found[3]
    seen.process = name or ""
    if pid:
        seen.pid = int(pid)
    seen.rank = int(rank) if rank else rank_of(seen.process)
    return found.end()


def _bracket(line: str, at: int, seen: Peeled) -> int:
    second = line[at + 1 : at + 2]
    if second.isdigit():
        found = _PLATFORM.match(line, at)
        if found is None or found[2] in _LEVELS or found[2].isdigit():
            return at
        _time(seen, found[1], utc=False)
        return found.end()
    if second in ("r", "d", "w") or line.startswith("[Rank ", at):
        found = _RANK.match(line, at)
        # "[Rank 5] HCCL watchdog" is the program's own text; only the labels of a launcher are taken off
        if found is None or (second == "R" and ":" not in found[0]):
            return at
        seen.rank = int(found[1])
        return found.end()
    if line.startswith("[RAW SERVER] ", at):
        return at + 13
    if line.startswith("[pod/", at):
        found = _POD.match(line, at)
        return found.end() if found else at
    return at


_LEVELS = frozenset({"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL", "TRACE"})


def _time(seen: Peeled, text: str, utc: bool) -> None:
    """Keep the first time; container runtimes print UTC where they print no zone."""
    if seen.ts is None:
        seen.ts, seen.clock = clock.iso(text)
        if seen.ts is None:
            seen.clock = "none"
        elif utc:
            seen.clock = "zoned"


def _docker(line: str, seen: Peeled) -> int:
    try:
        entry = _JSON.decode(line)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return 0
    if not entry.log and '"log":""' not in line:
        return 0
    if len(entry.time) < 64:
        _time(seen, entry.time, utc=True)
    seen.rest = clean(entry.log.rstrip("\r\n"))
    return -1
