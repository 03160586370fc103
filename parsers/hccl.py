"""HCCL on top of plog: who is which rank on which device, and the tables of links that could not be made.

    >>> join("SetupAgent rankNum[2], rank[0], rootInfo identifier[%bond4.29_60008_0_1754394260729515], server[%bond4.24], serverPort[60008]"
    ...      "deviceType[4], logicDevId[11], phydevId[11], deviceIp[192.0.2.2]")
    Join(ranks=2, rank=0, group='%bond4.29_60008_0_1754394260729515', server='%bond4.24', logic_device=11, physical_device=11, device_ip='192.0.2.2')
    >>> links("  |  192.0.2.212(10)   |  16666  |   192.0.2.202(2)   |  2882681339  |  server  | time out |")
    Link(peer='192.0.2.212', peer_rank=10, own='192.0.2.202', own_rank=2, role='server', status='time out')

The join lines are of level INFO and stand in run/plog: a bundle with only debug/ lacks them. A rank is the rank in the group that
`group` names; `hccl_world_group`, or the group with the most ranks of a process, gives the rank in the whole job. The link table is
drawn as one record a row, all of one thread, between `LINK_ERROR_INFO` and a line of underscores; older builds print four columns.
"""

from __future__ import annotations

import re

import msgspec

from parsers import plog
from parsers.rows import Document, Fact


class Join(msgspec.Struct, frozen=True):
    """What a process says about itself when it joins a communicator; None and "" where the line does not say."""

    ranks: int | None = None
    rank: int | None = None
    group: str = ""
    server: str = ""
    logic_device: int | None = None
    physical_device: int | None = None
    device_ip: str = ""


class Link(msgspec.Struct, frozen=True):
    """One row of a LINK_ERROR_INFO table: the connection that this rank waited for."""

    peer: str
    peer_rank: int
    own: str
    own_rank: int
    role: str
    status: str


_JOIN_LINE = re.compile(r"SetupAgent |HcclCommInitRootInfo|hcclCommInitInfo|hcom init by file|RootInfoDetect|HcclCommInitClusterInfo")
_FIELDS = {
    "ranks": re.compile(r"\b(?:rankNum|totalRanks|nRanks|ranks|rankSize)\[([0-9]{1,7})\]"),
    "rank": re.compile(r"\b(?:rank|rankId|userRank)\[([0-9]{1,7})\]"),
    "group": re.compile(r"\b(?:identifier|commId|group)\[([^\]\n]{1,256})\]"),
    "server": re.compile(r"\b(?:server|serverId)\[([^\]\n]{1,128})\]"),
    "logic_device": re.compile(r"\b(?:logicDevId|devLogicId|deviceLogicId|device)\[([0-9]{1,4})\]"),
    "physical_device": re.compile(r"\b(?:phydevId|devPhyId|devicePhyId)\[([0-9]{1,4})\]"),
    "device_ip": re.compile(r"\bdeviceIp\[([^\]\n]{1,64})\]"),
}
_NUMBERS = ("ranks", "rank", "logic_device", "physical_device")
_END = re.compile(r"\s*([0-9A-Fa-f.:%]{1,64})\(([0-9]{1,7})\)\s*")


def join(message: str) -> Join | None:
    """What the message of a join line says; None for any other message."""
    if not _JOIN_LINE.search(message, 0, 200):
        return None
    found = {name: seen[1] for name, pattern in _FIELDS.items() if (seen := pattern.search(message))}
    if "rank" not in found:
        return None
    return msgspec.convert({name: int(value) if name in _NUMBERS else value for name, value in found.items()}, Join)


def links(row: str) -> Link | None:
    """A row of the link table, of either form; None for its other lines."""
    cells = row.split("|", 8)
    if len(cells) not in (6, 8) or cells[0].strip():
        return None
    other, own = _END.fullmatch(cells[1]), _END.fullmatch(cells[len(cells) // 2 - 1 if len(cells) == 8 else 2])
    if other is None or own is None:
        return None
    return Link(other[1], int(other[2]), own[1], int(own[2]), cells[-3].strip(), cells[-2].strip())


def extract(text: str) -> Document:
    """Facts of the HCCL lines of a text: hccl.rank, hccl.ranks, hccl.group, hccl.server, hccl.device_ip, hccl.physical_device of each
    join (its device is the logical one), and hccl.link_error with `own(rank) <- peer(rank) role status` of each broken link."""
    facts: list[Fact] = []
    seen: set[tuple[str, str, int | None]] = set()

    def add(name: str, value: object, line_no: int, device: int | None) -> None:
        if value not in (None, "") and (key := (name, str(value), device)) not in seen:
            seen.add(key)
            facts.append(Fact(name, str(value), line_no, device=device))

    if "rank" not in text:
        return Document()
    for line_no, line in enumerate(text.split("\n"), 1):
        if "HCCL(" not in line:
            continue
        if "ank[" in line and _JOIN_LINE.search(line, 0, 300):
            record = plog.read(line, "local", "plog")
            who = join(record.message) if record else None
            if record is None or who is None:
                continue
            device = who.logic_device
            for name in ("rank", "ranks", "group", "server", "device_ip", "physical_device"):
                add(f"hccl.{name}", getattr(who, name), line_no, device)
        elif ")" in line and line.count("|", 0, 2000) in (5, 7):
            record = plog.read(line, "local", "plog")
            row = links(record.message) if record else None
            if row is not None:
                add("hccl.link_error", f"{row.own}({row.own_rank}) <- {row.peer}({row.peer_rank}) {row.role} {row.status}", line_no, None)
    return Document(facts)
