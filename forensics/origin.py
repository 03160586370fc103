"""Where a member comes from, told by its path: node, device, rank, process, and the time its name states.

>>> of_path("cluster.tar.gz/node-3.tar.gz/log/debug/plog/plog-838_20250904095011954.log")
Origin(node='node-3', device=None, rank=None, pid=838, named=1756979411954000)
>>> of_path("slog/dev-os-0/debug/device-5/device-5_20250904095011954.log").device
5
>>> of_path("log/debug/device-2/device-1382_20250904095011954.log")[1:4]
(2, None, 1382)
>>> of_path("modelarts-job-1-proc-rank-6-device-6.txt")[1:3]
(6, 6)
"""

from __future__ import annotations

import re
from typing import NamedTuple

from parsers.clock import stamp14


class Origin(NamedTuple):
    node: str = ""
    device: int | None = None
    rank: int | None = None
    pid: int | None = None
    named: int | None = None
    """Microseconds since 1970, in the time zone of the host."""


_PACKED = re.compile(r"\.(?:tar|tgz|tbz2?|txz|zip|gz|bz2|xz|zst|7z|case)(?=$|\.)", re.IGNORECASE)
_CAPTURE = re.compile(r"_\d{1,10}_\d{14,17}_ascend_(?:pt|ms)\Z")
_NODE = re.compile(r"(?:node|worker|server|master|slave|host|pod|npu|machine|ecs|bms)[-_.]?[a-z0-9][\w.-]*|(?:\d{1,3}[.-]){3}\d{1,3}", re.IGNORECASE)
_NOT_NODE = re.compile(
    r"host-\d|hostlogs?|host_|node_?check|(?:node|server|worker|host|npu|pod)[-_.]?(?:s|logs?|info|d|exporter|smi\w*)(?:[-_.].*)?$", re.IGNORECASE
)
_LETTERED = re.compile(r"(?:node|worker|server|master|slave|host|pod|machine)[-_.][a-z]", re.IGNORECASE)
_DEVICE_FOLDER = re.compile(r"(?:^|/)device-(\d{1,3})/")
_DEVICE_NAME = re.compile(r"(?:^|[/_.-])(?:device|npu|card|davinci)[-_]?(\d{1,3})(?=[_./-]|$)", re.IGNORECASE)
_RANK = re.compile(r"(?:^|[/_.-])rank[-_]?(\d{1,6})(?=[_./-]|$)", re.IGNORECASE)
_PID = re.compile(r"(?:^|/)(?:plog|device|mindie-\w+|trace_\d+)[-_](\d{1,10})_(\d{12,17})")
_STAMP = re.compile(r"_(\d{17}|\d{14})(?=[_.]|$)")


def of_path(path: str) -> Origin:
    """What the path of a member says; what it leaves open is None (the node: empty)."""
    folders, _, name = path.rpartition("/")
    node = ""
    for part in folders.split("/") if folders else ():
        plain = _CAPTURE.sub("", _PACKED.split(part, maxsplit=1)[0])
        if _NODE.fullmatch(plain) and not _NOT_NODE.match(plain) and (any(map(str.isdigit, plain)) or _LETTERED.fullmatch(plain)):
            node = plain
    pid = named = None
    device_folder = _DEVICE_FOLDER.search(path)
    process = _PID.search(path)
    if process:
        named = stamp14(process[2])
        # device-5_<time>.log in device-5 of an exported slog names the device, elsewhere the host's process
        if not (name.startswith("device-") and ("dev-os" in path or "hisi_logs" in path or not device_folder)):
            pid = int(process[1])
    elif stamp := _STAMP.search(name):
        named = stamp14(stamp[1])
    device = int(device_folder[1]) if device_folder else None
    if device is None and pid is None and (found := _DEVICE_NAME.search(path)) and not name.startswith("device-os"):
        device = int(found[1])
    rank = _RANK.search(path)
    return Origin(node, device, int(rank[1]) if rank else None, pid, named)
