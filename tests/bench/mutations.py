"""Variants of an incident that a diagnosis must not depend on: another run, another machine, another release, more noise, fewer files.

A bundle is a mapping from path to text here. Each mutation takes one, a random generator of its own and lines of healthy runs, and gives
another bundle, or None where it does not apply. The same seed gives the same variant.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

Files = dict[str, str]
PLOG = re.compile(r"^\[(?:[A-Z]+|\d+)\] [A-Z0-9_]+\(-?\d*,[^)]*\): ?\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d", re.M)
"""A line of the CANN application log or of the device's log."""


class Healthy(msgspec.Struct, frozen=True):
    """Lines of runs in which nothing is wrong."""

    plog: Sequence[str]
    other: Sequence[str]


Mutation = Callable[[Files, random.Random, Healthy], "Files | None"]


def healthy_lines(bundles: Sequence[tuple[Mapping[str, str], Sequence[str]]]) -> Healthy:
    """Lines without any word of failure, of bundles that need not be healthy themselves; each comes with the texts that decide it."""
    plog: list[str] = []
    other: list[str] = []
    bad = re.compile(
        r"err|fail|warn|fatal|critical|exception|traceback|abort|kill|timeout|timed out|0x|denied|invalid|not |no |lost|oom"
        r"|Running: 0 reqs, Waiting: [1-9]",  # a server that stands still
        re.I,
    )
    info = re.compile(r"\bINFO\b|\bDEBUG\b|\bEVENT\b")
    for files, evidence in bundles:
        for line in (line for text in files.values() for line in text.splitlines()[:400]):
            if 20 < len(line) < 400 and info.search(line) and not bad.search(line) and not any(text in line for text in evidence):
                (plog if PLOG.match(line) else other).append(line)
    return Healthy(sorted(set(plog)), sorted(set(other)))


def everywhere(files: Files, change: Callable[[str], str], names: bool = True) -> Files | None:
    """The change applied to all texts, and to paths; None where nothing changes."""
    out = {change(path) if names else path: change(text) for path, text in files.items()}
    return None if out == files or len(out) < len(files) else out


# ---------------------------------------------------------------- another run


_PIDS = re.compile(
    r"\b[A-Z][A-Z0-9_]{1,15}\((\d{2,7}),|\b[pP][iI][dD][=: ]{1,2}(\d{2,7})\b|(?:plog|device)-(\d{2,7})_"
    r"|\[tid:(\d{2,7})\]|\(tid: ?(\d{2,7})\)|\]\[?(\d{3,7})\]? ?[A-Z\[]"
)


def pids(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Other process and thread numbers, the same ones everywhere."""
    known = sorted({next(filter(None, groups)) for text in (*files, *files.values()) for groups in _PIDS.findall(text)})
    fresh = draw.sample(range(10_000, 4_000_000), len(known))
    names = {old: str(new) for old, new in zip(known, fresh, strict=True) if len(old) >= 3}
    if not names:
        return None
    number = re.compile(
        r"(?<![\w.])(?:" + "|".join(sorted(names, key=len, reverse=True)) + r")(?![\w.%])|(?<=[-_])(?:" + "|".join(names) + r")(?=[_.])"
    )
    return everywhere(files, lambda text: number.sub(lambda match: names[match[0]], text))


_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_TIMES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d"), "%Y-%m-%d-%H:%M:%S"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "%Y-%m-%d %H:%M:%S"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "%Y-%m-%dT%H:%M:%S"),
    (re.compile(r"\b\d{4}/\d\d/\d\d \d\d:\d\d:\d\d"), "%Y/%m/%d %H:%M:%S"),
    (re.compile(r"(?<=_)20\d{12}(?=\d{3}\D)"), "%Y%m%d%H%M%S"),
    (re.compile(r"(?<=(?:NFO|ING|ROR|BUG) )\d\d-\d\d \d\d:\d\d:\d\d"), "%m-%d %H:%M:%S"),
    (re.compile(rf"\b(?:{_MONTHS}) [ \d]\d \d\d:\d\d:\d\d \d{{4}}"), "%b %d %H:%M:%S %Y"),
    (re.compile(rf"^(?:{_MONTHS}) [ \d]\d \d\d:\d\d:\d\d", re.M), "%b %d %H:%M:%S"),
)
_BOOT = re.compile(r"^(\[ {0,6})(\d{1,7})(\.\d{6}\])", re.M)


def times(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Everything some weeks, hours and seconds later; kernels up for longer."""
    by = timedelta(days=draw.randrange(1, 80), hours=draw.randrange(24), seconds=draw.randrange(3600))

    def moved(form: str) -> Callable[[re.Match[str]], str]:
        def move(match: re.Match[str]) -> str:
            try:
                then = datetime.strptime(match[0] if "%Y" in form else f"2025 {match[0]}", form if "%Y" in form else f"%Y {form}")
            except ValueError:
                return match[0]
            return (then + by).strftime(form)

        return move

    def change(text: str) -> str:
        for pattern, form in _TIMES:
            text = pattern.sub(moved(form), text)
        return _BOOT.sub(lambda match: f"{match[1]}{int(match[2]) + int(by.total_seconds()) % 500_000}{match[3]}", text)

    return everywhere(files, change)


_DEVICE = re.compile(
    r"(?P<head>\b(?:[dD]evice[ _-]?(?:[iI]d)?|dev_?[iI]d|deviceId|devId|phy_?[iI]d|logic_?[iI]d|Device|NPU|npu|davinci)(?:[ =:]{0,3}|\[)"
    r"|\[devid |hccn_tool -i )(?P<n>\d{1,2})\b(?![.:]\d)"
)
_RANK = re.compile(
    r"(?P<head>\b(?:[rR]ank[ _]?(?:[iI][dD])?|RankID|rankId|Worker_TP|TP|local_rank|rank_id)(?:[ =:]{0,3}|\[|-)|\[rank)(?P<n>\d{1,3})\b(?![.:]\d)"
)


def _renumbered(files: Files, pattern: re.Pattern[str], draw: random.Random, least: int) -> Files | None:
    seen = sorted({int(match["n"]) for text in (*files, *files.values()) for match in pattern.finditer(text)})
    if not seen:
        return None
    most = max(*seen, least - 1) if len(seen) > 1 else max(seen[0], least - 1)
    fresh = list(range(most + 1))
    draw.shuffle(fresh)
    return everywhere(files, lambda text: pattern.sub(lambda match: f"{match['head']}{fresh[int(match['n'])]}", text))


def devices(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """The cards in another order."""
    return _renumbered(files, _DEVICE, draw, 8)


def ranks(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """The ranks in another order."""
    return _renumbered(files, _RANK, draw, 2)


_PATHS = (
    (re.compile(r"/home/[\w.-]+/"), "/data/team/{0}/"),
    (re.compile(r"/root/"), "/home/{0}/"),
    (re.compile(r"/(?:vllm-)?workspace/"), "/opt/{0}/src/"),
    (re.compile(r"/usr/local/python3[\d.]*/"), "/opt/conda/envs/{0}/"),
    (re.compile(r"/usr/local/Ascend/ascend-toolkit/[\w.-]+/"), "/usr/local/Ascend/ascend-toolkit/8.2.RC1/"),
    (re.compile(r"/(?:models?|weights|mnt/\w+|data/models)/"), "/share/{0}/models/"),
)


def paths(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Other folders for users, environments and models, and the logs one folder deeper."""
    word = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6))

    def change(text: str) -> str:
        for pattern, form in _PATHS:
            text = pattern.sub(form.format(word), text)
        return text

    return {f"collected/{word}/{path}": change(text) for path, text in files.items()}


# ---------------------------------------------------------------- another release


_DIALECTS: tuple[tuple[str, str], ...] = (
    # what the runtime, torch_npu and the frameworks print of one fact, one release and the next
    (r"error code:(\d{6})\b", r"error code is \1"),
    (r"error code is (\d{6})\b", r"error code:\1"),
    (r"ErrCode=(\d{6})\b", r"errorCode=\1"),
    (r"retCode=0x(\w+)", r"retCode=0x\1 "),
    (r"execute failed, reason=\[([^\]]+)\]", r"execution failed, reason=\1"),
    (r"Kernel task happen error, retCode=0x26, \[aicore exception\]", "AI Core kernel task execution failed, retCode=0x26"),
    (r"Kernel task happen error, retCode=0x31, \[vector core exception\]", "Vector Core kernel execution failed, retCode=0x31"),
    (r"Aicore kernel execute failed", "AI Core kernel execution failed"),
    (r"AI Core kernel execution failed", "Aicore kernel execute failed"),
    (r"The error from device\((chipId:\d+, dieId:\d+)\), serial number is (\d+), there is an? (\w+) error exception, core id is (\d+)",
     r"An error occurs on the device(\1), the serial number is \2, the error is \3 error, core id is \4"),
    (r"The error from device\((chipId:\d+, dieId:\d+)\), serial number is (\d+), there is an (aivec|aicore) error,",
     r"The error from device(\1), serial number is \2, there is an exception of \3 error,"),
    (r"The DDR address of the MTE instruction is out of range", "The GM address accessed by the MTE instruction is out of range"),
    (r"event_id: \[(0x\w{8})\]", r"event_id:  [\1]"),
    (r"Event id=(0x\w{8})", r"event_id=\1"),
    (r"cqe err status\[", "cqe error status["),
    (r"^(E[A-Z0-9]\d{4}): (?!\[PID)(?=[A-Z])", r"\1: [PID: 4471] "),
    (r"^(E[A-Z0-9]\d{4}): \[PID: \d+\] \d{4}-\d\d-\d\d-[\d:.]+ ", r"\1: "),
    (r"\[FUNC:\w+\]\[FILE:[\w.]+\]\[LINE:\d+\]", ""),
    (r"\[(\w+\.(?:cc|cpp|h|c)):\d+\]", r"[\1:1234]"),
    (r"\]\[(\d{3,7})\](?=\[)", r"] [\1]"),
    (r"^(\[ERROR\] RUNTIME\([^)]*\):\S+ \[[^\]]+\] ?\d+ ?\w+:)(?!\[)", r"\1[RUN][DEFAULT]"),
    (r"^(\[[A-Z]+\] [A-Z]+\(\d+),[^)]*\):", r"\1,):"),
    (r"^(\[[A-Z]+\] (?:RUNTIME|GE|ASCENDCL)\([^)]*\):\S+ \[[^\]]+\]) ?(\d+) ", r"\1\2 "),
    (r"is invalid\. ?Reason: ?", "is invalid. Reason: "),
    (r"fault kernel_name=(\w+)", r"fault kernel_name=\1_mix_aic"),
    (r"(?<=ErrCode=)(\d{6}), desc=\[([^\]]*)\], InnerCode=0x(\w+)", r"\1, desc=[\2], InnerCode=0x\3, "),
    (r"\(function operator\(\)\)", "(function copy_d2d)"),
    (r"\bhcclRet -> (\d+)", r"hcclRet->\1"),
    (r"\bret\[(\d+)\]", r"ret [\1]"),
    (r"davinic_kernel_task\.cc", "davinci_kernel_task.cc"),
    (r"device_error_proc\.cc", "device_error_core_proc.cc"),
    # process labels and heads of vLLM and torch
    (r"^\((Worker_?\w*|EngineCore\w*|APIServer) pid=(\d+)\) ", r"(\1 pid=\2) (\1 pid=\2) "),
    (r"^(INFO|WARNING|ERROR) (\d\d-\d\d \d\d:\d\d:\d\d) \[([\w.]+):(\d+)\]", r"\1 \2 [\3:\4]"),
    (r"^\[rank(\d+)\]: ", r"[rank\1]:"),
    (r"^((?:\w+\.)*\w*(?:Error|Exception)): ", r"[rank0]: \1: "),
    (r"^torch\.OutOfMemoryError: ", "RuntimeError: "),
    (r"(?<=\w): {2,}", ": "),
)  # fmt: skip
_COMPILED = tuple((re.compile(old, re.M), new) for old, new in _DIALECTS)
_ACL = re.compile(r"(?<=error code is )(507\d{3}|107\d{3}|207\d{3})\b|(?<=error code:)(507\d{3}|107\d{3}|207\d{3})\b")


def dialect(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """The same messages as other releases of CANN, torch_npu and vLLM word them."""

    def change(text: str) -> str:
        for pattern, new in _COMPILED:
            if draw.random() < 0.7:
                text = pattern.sub(new, text)
        return text

    return everywhere(files, change, names=False)


def spelling(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Runtime codes as hexadecimal numbers, as some layers print them; hexadecimal event codes in the other case."""

    def change(text: str) -> str:
        text = _ACL.sub(lambda match: hex(int(match[0])), text)
        return re.sub(r"\b0x(?=[89a-bA-B][0-9a-fA-F]{7}\b)([0-9a-fA-F]{8})", lambda match: "0x" + match[1].swapcase(), text)

    return everywhere(files, change, names=False)


# ---------------------------------------------------------------- noise


_SECOND = re.compile(r"\d{4}-\d\d-\d\d[-T ]\d\d:\d\d:\d\d|\d\d-\d\d \d\d:\d\d:\d\d|^\[ *\d+(?=\.\d)")


def shuffled(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Records of one second in another order, as several processes write them; the lines of a record stay together."""

    def change(text: str) -> str:
        records: list[tuple[str, list[str]]] = []
        for line in text.splitlines():
            found = _SECOND.search(line[:120])
            if found or not records:
                records.append((found[0] if found else "", [line]))
            else:
                records[-1][1].append(line)
        out: list[str] = []
        at = 0
        while at < len(records):
            end = at
            while end < len(records) and records[end][0] == records[at][0]:
                end += 1
            same = records[at:end]
            if records[at][0]:
                draw.shuffle(same)
            out += [line for _, lines in same for line in lines]
            at = end
        return "\n".join(out) + "\n"

    return everywhere(files, change, names=False)


def noise(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Lines of other, healthy runs between the records: as many as there are."""
    out = {}
    for path, text in files.items():
        lines = text.splitlines()
        pool = healthy.plog if PLOG.search(text) else healthy.other
        if not pool or not any(_SECOND.search(line[:120]) for line in lines):
            out[path] = text
            continue
        mixed: list[str] = []
        for line in lines:
            if _SECOND.search(line[:120]) and draw.random() < 0.8:
                mixed.append(draw.choice(pool))
            mixed.append(line)
        out[path] = "\n".join(mixed) + "\n"
    return None if out == files else out


def flood(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """5 MB of INFO records before and behind the largest log."""
    path = max((path for path in files if PLOG.search(files[path])), default="", key=lambda path: len(files[path]))
    path = path or max(files, key=lambda path: len(files[path]))
    pool = healthy.plog if PLOG.search(files[path]) else healthy.other
    if not pool:
        return None
    lines, size = [], 0
    while size < 2_500_000:
        lines.append(draw.choice(pool))
        size += len(lines[-1]) + 1
    block = "\n".join(lines) + "\n"
    return files | {path: block + files[path] + ("" if files[path].endswith("\n") else "\n") + block}


def container(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """What a process printed as a container runtime keeps it: a time, the stream and a flag before each line."""

    def change(text: str) -> str:
        if PLOG.search(text) or not re.search(r"INFO|ERROR|WARNING|Traceback", text):
            return text
        start = datetime(2025, 10, 14, 6, 12, 40)
        lines = enumerate(text.splitlines())
        return "".join(f"{(start + timedelta(milliseconds=40 * n)).isoformat(timespec='microseconds')}123Z stderr F {line}\n" for n, line in lines)

    return everywhere(files, change, names=False)


# ---------------------------------------------------------------- fewer files


def without_console(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Only the logs of CANN, the devices and the kernel: what is left when nobody kept the console."""
    kept = {path: text for path, text in files.items() if PLOG.search(text) or re.search(r"\[ascend\]|kernel: ", text)}
    return kept if any(PLOG.search(text) for text in kept.values()) and len(kept) < len(files) else None


def without_plog(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Only what the console and commands printed."""
    kept = {path: text for path, text in files.items() if not PLOG.search(text)}
    return kept if kept and len(kept) < len(files) else None


def together(files: Files, draw: random.Random, healthy: Healthy) -> Files | None:
    """Another run on another machine with another release, and noise."""
    for one in (pids, times, devices, ranks, paths, dialect, shuffled, noise):
        files = one(files, draw, healthy) or files
    return files


MUTATIONS: dict[str, Mutation] = {
    one.__name__: one
    for one in (
        pids, times, devices, ranks, paths, dialect, spelling, shuffled, noise, flood, container, without_console, without_plog, together,
    )
}  # fmt: skip
LOSSY = frozenset({"without_console", "without_plog"})
"""Mutations that may take away what decides: only fair where deciding lines are left."""
