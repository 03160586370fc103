"""Captures in a bundle, by the names of its files, and which of them belong to the task that failed. Needs no torch.

The number of a task in dump names and IDEDD lines is `flip_num << 16 | task_id` of the runtime's lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from replay.capture.operators_names import kernel_of

EXCEPTION = re.compile(r"exception_info\.(?P<stream>\d+)\.(?P<task>\d+)\.(?P<time>\d+)\Z")
NAMED = re.compile(r"(?P<type>[A-Za-z]\w*)\.(?P<op>[\w.\-]+?)\.(?P<task>\d+)\.(?:(?P<stream>\d+)\.)?(?P<time>\d{10,17})\Z")
ATB = re.compile(
    r"(?P<root>.*?/(?P<device>\d+)_(?P<pid>\d+)/(?P<round>\d+)/(?P<number>\d+)_(?P<op>\w+?))/(?:before|after)/(?P<side>in|out)tensor(?P<n>\d+)\w*\.bin\Z"
)
PROBE = re.compile(r"(?P<root>.*?(?:^|/))(?:dump\.json|dump_tensor_data/.+)\Z")
PLACE = re.compile(r"(?:^|/)(?:rank|device)[_-]?(?P<rank>\d+)(?:/|\Z)")
DATA_DUMP = re.compile(r"(?:^|/)data-dump/(?P<device>\d+)/")
FAILED = re.compile(r"(?:\bstream_id\s*[=:]\s*(?P<stream>\d+).{0,120}?)?\btask_id\s*[=:]\s*(?P<task>\d+)\s*,\s*flip_num\s*[=:]\s*(?P<flip>\d+)")
IDEDD = re.compile(r"\bstreamId\s*[=:]\s*(?P<stream>\d+)\s*,\s*taskId\s*[=:]\s*(?P<whole>\d+)")
DEVICE = re.compile(r"\bdevice_?id\s*[=:]\s*(?P<device>\d+)", re.IGNORECASE)
KERNEL = re.compile(r"\b(?:fault kernel_name|kernel_?name|node_type|op_?type)\s*[=:]\s*(?P<name>[A-Za-z_]\w+)", re.IGNORECASE)
FLIP = 16


class Task(msgspec.Struct, frozen=True):
    """A task that failed, as the logs name it."""

    number: int
    """flip_num << 16 | task_id"""
    stream: int | None = None
    device: int | None = None
    kernel: str = ""
    """Name of the kernel or operator, as printed."""


class Capture(msgspec.Struct):
    """A dump in the bundle."""

    kind: str
    """adump, msprobe, atb."""
    root: str
    """The file of an adump; the folder of the others."""
    files: list[str]
    operator: str = ""
    """As far as names tell; of msprobe the dump tells."""
    task: int | None = None
    stream: int | None = None
    device: int | None = None
    rank: int | None = None
    pid: int | None = None
    time: int = 0
    partial: bool = False
    """An exception dump: its outputs are what the core had written when it died."""


def failed_tasks(lines: Iterable[str]) -> list[Task]:
    """Tasks that lines of the runtime ([DFX_INFO], [AIC_INFO]) and of IDEDD name as failed, each once, in order."""
    found: dict[tuple[int, int | None], Task] = {}
    for line in lines:
        device, kernel = DEVICE.search(line), KERNEL.search(line)
        of = int(device["device"]) if device else None
        name = kernel["name"] if kernel else ""
        for match in FAILED.finditer(line):
            number = int(match["flip"]) << FLIP | int(match["task"])
            stream = int(match["stream"]) if match["stream"] else None
            _noted(found, Task(number, stream, of, name))
        for match in IDEDD.finditer(line):
            _noted(found, Task(int(match["whole"]), int(match["stream"]), of, name))
    return list(found.values())


def _noted(found: dict[tuple[int, int | None], Task], task: Task) -> None:
    key = (task.number, task.stream)
    have = found.get(key)
    if have is None:
        found[key] = task
    elif not have.kernel or have.device is None:
        found[key] = Task(task.number, task.stream, have.device if have.device is not None else task.device, have.kernel or task.kernel)


def captures(paths: Sequence[str]) -> list[Capture]:
    """Dumps among the members of a bundle."""
    grouped: dict[tuple[str, str], Capture] = {}
    for path in paths:
        name = path.rpartition("/")[2]
        if match := ATB.match(path):
            capture = Capture(
                "atb",
                match["root"],
                [],
                match["op"],
                device=int(match["device"]),
                pid=int(match["pid"]),
                time=int(match["round"]) << 20 | int(match["number"]),
            )
        elif match := EXCEPTION.match(name):
            capture = Capture("adump", path, [], "", int(match["task"]), int(match["stream"]), time=int(match["time"]), partial=True)
        elif (match := NAMED.match(name)) and kernel_of(match["type"]):
            stream = int(match["stream"]) if match["stream"] else None
            capture = Capture("adump", path, [], match["type"], int(match["task"]), stream, time=int(match["time"]), partial=stream is None)
        elif match := PROBE.match(path):
            capture = Capture("msprobe", match["root"].rstrip("/"), [])
        else:
            continue
        if capture.kind != "atb":
            if place := PLACE.search(path):
                capture.rank = int(place["rank"])
            if place := DATA_DUMP.search(path):
                capture.device = int(place["device"])
        grouped.setdefault((capture.kind, capture.root), capture).files.append(path)
    for capture in list(grouped.values()):
        if capture.kind == "atb":
            capture.files += [path for path in paths if path.startswith(f"{capture.root}/") and path.endswith("op_param.json")]
    return sorted(grouped.values(), key=lambda one: (one.kind, one.root))


def joined(
    found: Iterable[Capture], tasks: Iterable[Task], kernel: str, device: int | None = None, rank: int | None = None, pid: int | None = None
) -> list[Capture]:
    """Captures of a kernel that belong to a diagnosis, best first: those of a failed task; then those of the same process, device or rank.

    One that contradicts what is known of the place is left out."""
    numbers = {(task.number, task.stream) for task in tasks}
    plain = {task.number for task in tasks}
    out = []
    for one in found:
        if one.operator and kernel_of(one.operator) not in ("", kernel):
            continue
        if any(a is not None and b is not None and a != b for a, b in ((one.device, device), (one.pid, pid))):
            continue
        if one.rank is not None and one.rank not in {rank, device} - {None} and (rank is not None or device is not None):
            continue
        hit = one.task is not None and one.task in plain and (one.stream is None or (one.task, one.stream) in numbers or (one.task, None) in numbers)
        if one.task is not None and plain and not hit:
            continue
        out.append((not hit, one.partial, -one.time, one))
    return [one for *_, one in sorted(out, key=lambda entry: entry[:3])]
