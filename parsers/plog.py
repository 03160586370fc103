"""CANN application log: plog-<pid>_<time>.log and every file that holds such records, whatever it is called.

    >>> plog = PlogParser()
    >>> r = plog.record("[ERROR] RUNTIME(51377,VLLM::Worker_TP2):2025-10-14-06:12:40.118.362 [stars_engine.cc:1534]51438 ProcLogicCqReport:"
    ...                 "Task run failed, device_id=2, stream_id=2, task_id=42014, sqe_type=0(ffts), errType=0x1(task exception)")
    >>> r.severity, r.module, r.pid, r.process, r.tid, r.function, r.src_file, r.src_line
    ('ERROR', 'RUNTIME', 51377, 'VLLM::Worker_TP2', 51438, 'ProcLogicCqReport', 'stars_engine.cc', 1534)
    >>> r.ts, r.clock, r.device, r.stream_id, r.task_id
    (1760422360118362, 'local', 2, 2, 42014)
    >>> plog.record(", task_id=3393, sqe_type=7(notify wait)") is None       # the rest of a record above
    True

One grammar serves all modules; behind `[file:line]` each writes thread and function in a way of its own: RUNTIME, GE and ASCENDCL
`51438 Func:`, HCCL `[6219]` or ` [6219]`, TDT and AICPU `[Func][tid:7]`, PROFILING and ATRACE `(tid:7)`, HCCP `tid:7,func(line) :`,
DRV `[hdc] [func line]` or `[ascend][curpid:p,t][drv][sub][func]`. The time is the wall clock of the process, which in a container
is mostly UTC. pid and time are taken from the line, never from the file name.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from parsers import clock
from parsers.base import Parser
from parsers.rows import Document, Record

SEVERITIES = {
    "DEBUG": "DEBUG", "INFO": "INFO", "WARNING": "WARNING", "WARN": "WARNING", "ERROR": "ERROR", "CRITICAL": "FATAL", "FATAL": "FATAL",
    "EVENT": "EVENT", "TRACE": "EVENT", "OPLOG": "EVENT", "NULL": "",
    "0": "DEBUG", "1": "INFO", "2": "WARNING", "3": "ERROR", "4": "", "5": "", "15": "EVENT", "16": "EVENT",
}  # fmt: skip
"""Level words and, in old builds, level numbers."""
_RANK = {"": 0, "DEBUG": 1, "INFO": 2, "EVENT": 3, "WARNING": 4, "ERROR": 5, "FATAL": 6}

_PREFIX = re.compile(r"\[([A-Z]{4,8}|[0-9]{1,2})\] ?([A-Z][A-Z0-9_]*|[0-9]{1,3})\((-?[0-9]{1,30}), ?([^,\n]{0,160})")
_STAMP = re.compile(r" ?([0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,3}\.[0-9]{1,3})?)(?![0-9.])")
_ODD_STAMP = re.compile(r" ?[-\d][^\s\[]{8,64}(?= )")
"""A damaged time: it is not read, but the record is one all the same, and must not vanish into the one above."""
_STATUS = re.compile(r"\[status:\w{1,20}\] ?")
_SITE = re.compile(r"([^\[\]\n:]{1,256}):([0-9]{1,9})")
_BRACKET_TID = re.compile(r" ?\[([0-9]{1,10})\](?:\[([0-9]{1,10})\])?")
_FUNC_TID = re.compile(r"\[(\w{1,200})\]\[[tT]id:([0-9]{1,10})\] ?")
_DRV_NEW = re.compile(r"\[ascend\]\[curpid: ?([0-9]{1,10}), ?([0-9]{1,10})\]\[drv\]\[([\w ]{1,64})\]\[(\w{1,200})(?: ([0-9]{1,9}))?\] ?")
_DRV_OLD = re.compile(r"\[[a-z_]{1,64}\] ?\[(\w{1,200}) ([0-9]{1,9})\] ?")
_NAMED_TID = re.compile(r"\[[A-Z]{2,16}\]\[(\w{1,200})\]\[([0-9]{1,10})\] ?")
_TID_ONLY = re.compile(r"\[tid:([0-9]{1,10})\] ?")
_HCOM = re.compile(r"\[(hccl-[^\]\n]{1,200})\]\[([0-9]{1,9})\]")
_PAREN_TID = re.compile(r" ?(?:>>> )?\(tid: ?([0-9]{1,10})\) ?")
_HCCP = re.compile(r"tid:([0-9]{1,10}),(\w{1,200})(?:\([0-9]{1,9}\))? ?: ?")
_RUNTIME = re.compile(r" ?([0-9]{1,10}) ?(?:([~A-Za-z_]\w{0,200}): ?)?")
_FUNCTION = re.compile(r" ?([~A-Za-z_]\w{0,200}): ?")

_GLUED = re.compile(r"\[(?:ERROR|WARNING|INFO|EVENT|DEBUG|TRACE)\] [A-Z_0-9]{1,32}\(-?[0-9]{1,10},[^)\n]{0,160}\): ?[0-9]{4}-")

_STREAM = re.compile(r"tream_?[iI][dD]\s?(?:[=:]\s?\[?|\[)\s?([0-9]{1,10})(?![0-9])")
_TASK = re.compile(r"task_?[iI][dD]\s?(?:[=:]\s?\[?|\[)\s?([0-9]{1,10})(?![0-9])")
_DEVICE = re.compile(  # a pattern that begins with a plain word is searched for several times faster
    r"dev(?<![A-Za-z_]dev)(?:(?:ice)?_?[iI]d\s?(?:=|: ?\[?|\[)\s?([0-9]{1,5})(?![0-9.])|ice(?: |\s?[=\[(:]\s?)([0-9]{1,5})(?![0-9.%\w]))"
)
_LOGIC = re.compile(r"ogic(?:_?[dD]ev(?:ice)?)?_?[iI]d\s?[=:\[]\s?([0-9]{1,5})(?![0-9])")
_CHIP = re.compile(r"hip_?[iI]d\s?[=:\[]\s?([0-9]{1,5})(?![0-9])")
_PHYSICAL = re.compile(r"hy(?:_?dev)?_?[iI]d\s?[=:\[]\s?([0-9]{1,5})(?![0-9])")
_JOINED = re.compile(r"(?:rankNum|ranks|totalRanks|nRanks)\[[0-9]{1,7}\], ?rank\[([0-9]{1,7})\]|rank\[([0-9]{1,7})\], ?totalRanks\[")
"""A rank that comes with the number of ranks is that of this process; any other may be a peer's."""
_VALUE = r"([EWI][0-9A-Z][0-9]{4}|0x[0-9a-fA-F]{1,16}|-?[0-9]{1,10})(?![0-9A-Za-z])"
_CODE = re.compile(
    r"ode(?:(?<=[Ee]rrCode)|(?<=rrorCode)|(?<=[rR]etCode)|(?<=ret_code)|(?<=rror code)|(?<=errcode)|(?<=retcode))(?: ?= ?| is :? ?|: ?| ?\[)" + _VALUE
)
_RESULT = re.compile(r"result(?: ?= ?|\[)" + _VALUE)
_ERR_NO = re.compile(r"(?:errNo\[|ErrorNo: ?|return\[(?=0x)|errno\[(?=[0-9]{5}))" + _VALUE)
_INNER = re.compile(r"module_name=(E[A-Z0-9]9999)")
_EVENT = re.compile(r"vent[ _][iI]d ?(?:= ?|: {0,2}\[?|\[)? ?0[xX]([0-9a-fA-F]{1,8})(?![0-9a-fA-F])")

_prefixes: dict[str, tuple[str, str, int | None, str] | Literal[False]] = {}
"""What stands before `):`, as (severity, module, pid, process), False for anything else: a process writes the same few all its life."""
_sites: dict[str, tuple[str, int] | Literal[False]] = {}
"""What stands in the brackets behind the time, as (file, line)."""


def worse(one: str, other: str) -> str:
    """The graver of two severities."""
    return one if _RANK.get(one, 0) >= _RANK.get(other, 0) else other


def event_code(text: str) -> str:
    """`0x80E01809` of a text that names a chip event in any of its spellings; empty where it names none."""
    seen = _EVENT.search(text)
    return f"0x{seen[1].upper():0>8}" if seen else ""


def error_code(text: str) -> str:
    """The code of a text that stands where a code belongs: a chip event, or behind ErrCode=, `error code is`, retCode=, result =, errNo[ ...

    Empty where there is none; of several the first of the kind that comes first in this list."""
    if "vent" in text and (event := event_code(text)):
        return event
    if "ode" in text and (seen := _CODE.search(text)):
        return seen[1]
    if "result" in text and (seen := _RESULT.search(text)):
        return seen[1]
    if ("rrN" in text or "rrorN" in text or "return[0x" in text or "errno[" in text) and (seen := _ERR_NO.search(text)):
        return seen[1]
    if "E9999" in text or "Z9999" in text:
        return seen[1] if (seen := _INNER.search(text)) else ""
    return ""


def device_of(text: str) -> int | None:
    """The device a message is about: of the process (device_id, devId, device[2]) before that of the chip (chipId, devPhyId).

    None where the message names none, or several of the kind that decides.
    """
    found: set[str] = set()
    if "dev" in text:
        found = {one or other for one, other in _DEVICE.findall(text)}
    if not found and "ogic" in text:
        found = set(_LOGIC.findall(text))
    if not found and "hip" in text:
        found = set(_CHIP.findall(text))
    if not found and "hy" in text:
        found = set(_PHYSICAL.findall(text))
    return int(found.pop()) if len(found) == 1 else None


def stream_and_task(text: str) -> tuple[int | None, int | None]:
    """The first stream_id and task_id of a message, in any spelling."""
    stream = _STREAM.search(text) if "tream" in text else None
    task = _TASK.search(text) if "task" in text else None
    return int(stream[1]) if stream else None, int(task[1]) if task else None


def rank_of(text: str) -> int | None:
    """The rank of the process itself, from an HCCL message that tells it together with the number of ranks."""
    seen = _JOINED.search(text) if "ank[" in text else None
    return int(seen[1] or seen[2]) if seen else None


def split_glued(line: str) -> list[tuple[int, str]]:
    """Records that stand on one line because a line end was lost, as (index in the line, record); mostly just the line itself."""
    if line.find("): ", 1) < 0 and line.find("):2", 1) < 0:
        return [(0, line)]
    cuts = [seen.start() for seen in _GLUED.finditer(line)]
    if len(cuts) < 2 and (not cuts or cuts[0] == 0):
        return [(0, line)]
    if cuts[0]:
        cuts.insert(0, 0)
    return [(a, line[a:b]) for a, b in zip(cuts, [*cuts[1:], len(line)], strict=True)]


def head_of(text: str) -> tuple[str, str, int | None, str] | Literal[False]:
    """What stands before `):`, as (severity, module, pid, process); False for what begins no record."""
    seen = _PREFIX.fullmatch(text)
    parts: tuple[str, str, int | None, str] | Literal[False] = False
    if seen and (severity := SEVERITIES.get(seen[1])) is not None:
        parts = severity, seen[2], int(seen[3]) if len(seen[3]) <= 11 else None, seen[4]
    if len(_prefixes) > 20_000:
        _prefixes.clear()
    _prefixes[text] = parts
    return parts


def _site(text: str) -> tuple[str, int] | Literal[False]:
    seen = _SITE.fullmatch(text)
    parts: tuple[str, int] | Literal[False] = (seen[1], int(seen[2])) if seen else False
    if len(_sites) > 20_000:
        _sites.clear()
    _sites[text] = parts
    return parts


def read(line: str, clock_name: str, grammar: str) -> Record | None:
    """A record in the CANN envelope, for the parsers that share it: `clock_name` and `grammar` go into the record."""
    if line[:1] != "[":
        return None
    at = line.find("):", 0, 240)
    if at < 0:
        return None
    key = line[:at]
    head = _prefixes.get(key)
    if head is None:
        head = head_of(key)
    if head is False:
        return None
    at += 2
    ts = clock.cann(line[at : at + 27])
    if ts is not None and line[at + 27 : at + 28] == " ":
        at += 28
    elif seen := _STAMP.match(line, at):
        ts, at = clock.cann(seen[1]), seen.end() + (line[seen.end() : seen.end() + 1] == " ")
    elif seen := _ODD_STAMP.match(line, at):
        ts, at = None, seen.end() + 1
    else:
        return None
    if line.startswith("[status:", at) and (seen := _STATUS.match(line, at)):
        at = seen.end()
    src_file, src_line = "", None
    function = ""
    tid: int | None = None
    rank: int | None = None
    if line[at : at + 1] == "[":
        end = line.find("]", at, at + 270)
        key = line[at + 1 : end]
        if end > 0:
            site = _sites.get(key)
            if site is None:
                site = _site(key)
            if site:
                src_file, src_line = site
                at = end + 1
    # thread and function, in the dialect of the module
    first = line[at : at + 1]
    if first == " ":
        first = line[at + 1 : at + 2]
    if "0" <= first <= "9":
        if src_line is not None:
            # `51438 Func:`, spelled out because most lines have it
            end = line.find(" ", at + 1, at + 12)
            colon = line.find(":", end, end + 80) if end > 0 else -1
            if colon > 0 and line[end + 1 : colon].isidentifier() and line[at:end].isdecimal():
                tid, function = int(line[at:end]), line[end + 1 : colon]
                at = colon + 1
                if line[at : at + 1] == " ":
                    at += 1
            elif seen := _RUNTIME.match(line, at):
                tid, function, at = int(seen[1]), seen[2] or "", seen.end()
    elif first == "[":
        if seen := _BRACKET_TID.match(line, at):
            tid, at = int(seen[2] or seen[1]), seen.end()
        elif seen := _FUNC_TID.match(line, at):
            function, tid, at = seen[1], int(seen[2]), seen.end()
        elif seen := _DRV_NEW.match(line, at):
            tid, function, at = int(seen[2]), seen[4], seen.end()
            if src_line is None and seen[5]:
                src_line = int(seen[5])
        elif seen := _DRV_OLD.match(line, at):
            function, at = seen[1], seen.end()
        elif seen := _NAMED_TID.match(line, at):
            function, tid, at = seen[1], int(seen[2]), seen.end()
        elif seen := _TID_ONLY.match(line, at):
            tid, at = int(seen[1]), seen.end()
        elif seen := _HCOM.match(line, at):
            at = seen.end()
            if "world_group" in seen[1]:
                rank = int(seen[2])
    elif first == "(" or first == ">":
        if seen := _PAREN_TID.match(line, at):
            tid, at = int(seen[1]), seen.end()
    elif seen := _HCCP.match(line, at) if first == "t" else None:
        tid, function, at = int(seen[1]), seen[2], seen.end()
    elif seen := _FUNCTION.match(line, at):
        function, at = seen[1], seen.end()
    message = line[at:]
    device = device_of(message) if "ev" in message or "hip" in message else None  # dev, device, logicDev; chip
    stream, task = stream_and_task(message)
    severity, module, pid, process = head
    if rank is None and module == "HCCL":
        rank = rank_of(message)
    return Record(
        message, at, ts, clock_name if ts is not None else "none", severity, grammar, module, process, "", pid, tid, device, rank, stream, task,
        function, src_file, src_line, error_code(message),
    )  # fmt: skip


_CLAIM = re.compile(
    r"^(?:\[(?:[A-Z]{4,8}|[0-9]{1,2})\] ?([A-Z][A-Z0-9_]*|[0-9]{1,3})\((-?[0-9]{1,30}), ?([^,\n]{0,160}?)\): ?[0-9]{4}"
    r"|(\[?[0-9]{4}[-/][0-9]{2}[-/]|\[?(?:INFO|WARNING|WARN|ERROR|DEBUG)\]?[ :]|Traceback \(|[EWI][0-9A-Z][0-9]{4}[:\[ ]|\[Error\]|[$#] \w"
    r"|\w{0,40}(?:Error|Exception): |\(\w{1,60} pid=|\[rank[0-9]|\[[DIWEF][0-9]{3,4} |root@)|\S)",
    re.M,
)
"""A record; the head of somebody else's record; any other line, such as the rest of a record that was wrapped."""
_NAME = re.compile(r"(?:^|/)(?:plog|device)-[^/]*$")
_CONSOLE_NAME = re.compile(r"console|stdout|nohup|\.out$|(?:^|/)(?:train|serve|server|run|worker|rank)(?:[-_.0-9][-_.\w]*)?\.(?:log|txt)$")
UNSURE = 45
"""Claim on a file that holds records but is not made of them: a console into which they were printed."""
_DEVICE_PROCESSES = ("aicpu", "hccp", "cust_aicpu", "queue_schedule", "qs_", "udf", "minpu")
_DEVICE_DAEMONS = ("sklogd", "slogd", "tsdaemon", "dmp_daemon", "sys_monitor", "sysmonitor", "procmgr", "iam", "adda", "log-daemon", "bbox")
_DEVICE_APP_PATH = re.compile(r"(?:^|/)device-\d{1,4}/device-\d{1,10}_\d{14,17}|(?:^|/)(?:device-app|aos-core-app)-\d+")
_DEVICE_OS_PATH = re.compile(r"(?:^|/)(?:device-os|event)_\d{14,17}|(?:^|/)dev(?:ice)?-os-\d+/")


def shares(path: str, head: str) -> dict[str, int]:
    """How surely a member is plog, device, device-os or firmware (0 to 100 each), from the envelopes at its head.

    The four share one grammar: firmware writes pid -1, the device OS and the device applications are known by their processes.
    """
    lines = device = daemons = firmware = other = foreign = 0
    for seen in _CLAIM.finditer(head):
        lines += 1
        module, pid, process, stranger = seen.groups()
        if module is None:
            foreign += stranger is not None
            continue
        if pid.startswith("-") and module in ("TSCH", "LP", "LPM", "IMP", "TSDUMP", "IMU", "TS", "HSM", "ISP", "MCU", "TSFW"):
            firmware += 1
        elif process.startswith(_DEVICE_DAEMONS) or module == "SYSMONITOR":
            daemons += 1
        elif process.startswith(_DEVICE_PROCESSES):
            device += 1
        else:
            other += 1
        if lines >= 80:
            break
    records = device + daemons + firmware + other
    if not records:
        return {}
    share = records / lines
    base = 40 + int(58 * share) if share >= 0.1 else 20
    if not _NAME.search(path) and (foreign or _CONSOLE_NAME.search(path)):
        base = min(base, UNSURE)
    split = {"device": device, "device-os": daemons, "firmware": firmware, "plog": other}
    if _DEVICE_APP_PATH.search(path) and "dev-os" not in path:
        split["device"] += records // 4
    elif _DEVICE_OS_PATH.search(path):
        split["device-os"] += records // 4
    top = max(split.values())
    return {kind: base if count == top else base * count // (2 * top) for kind, count in split.items() if count}


class PlogParser(Parser):
    kind: ClassVar[str] = "plog"

    def claims(self, path: str, head: str) -> int:
        return shares(path, head).get(self.kind, 0)

    def record(self, line: str) -> Record | None:
        return read(line, "local", "plog")

    def extract(self, text: str) -> Document:
        from parsers.hccl import extract  # it builds on this module

        return extract(text)
