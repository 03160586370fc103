"""What single lines say about a job of many ranks: who joined which group, who waits for whom, who was last heard of when.

    >>> remark("[topoinfo_detect.cc:506] [7][HCCL_TRACE][Flat]SetupAgent rankNum[16], rank[9], rootInfo identifier[192.0.2.1%eth0_60000_0_"
    ...        "1750325244673428], server[192.0.2.3%eth0], serverPort[60000]deviceType[2], logicDevId[1], phydevId[1], deviceIp[198.51.100.1]")
    Remark(kind='join', values={'ranks': '16', 'rank': '9', 'group': '192.0.2.1%eth0_60000_0_1750325244673428', 'server': '192.0.2.3', \
'device': '1', 'physical': '1', 'device_ip': '198.51.100.1', 'step': 'entry', 'epoch': '1750325244673428'})
    >>> remark("connected p2p timeout, timeout:130 s. local logicDevid:0, remote physic id:2.").values
    {'timeout': '130', 'device': '0', 'peer_physical': '2'}
    >>> remark("local rank [192.0.2.1/1]: crimer rank [192.0.2.2/2] status[LOST] by informer rank [192.0.2.3/3]").values
    {'server': '192.0.2.2', 'device': '2', 'state': 'lost', 'informer': '192.0.2.3/3'}
    >>> remark('fault_info["Failed to connect agent[1,3,5,7,]"]')
    Remark(kind='absent', values={'ranks': '1,3,5,7'})
    >>> remark("all is well") is None
    True

Kinds: join (a process enters a communicator), listen (an address of a card), limit (a timeout as set), link (a connection that did not
come about), p2p (a card that did not enable access), state (a heartbeat lost, a rank stuck, an RDMA error, as spread through the
cluster), verdict (HCCL's own word on where it began), cqe (RDMA to a peer was given up), task (a task of a collective failed: operator,
group), member (the group and the rank of that task), call (its number within the group), wait (the peer that a task waited for),
absent (ranks that never came), present (ranks that did), watchdog (a framework's timeout, with the number of the call), exit (how a
process ended, as its launcher saw it), first-exit (the launcher's word that the next one is where it began).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from parsers import hccl


class Remark(msgspec.Struct):
    """One such line: texts as printed, numbers in decimal; what the line leaves open is absent."""

    kind: str
    values: dict[str, str]


PATTERN = (
    r"Cluster Exception Location|status ?\[(?:LOST|STUCK|ERROR CQE)\] ?by|cqe err(?:or)? status ?\[|p2p timeout, timeout:"
    r"|(?:Task|FFTS\+) run failed, (?:base|op|opData|groupRank|para) information|Failed to connect agent ?\[|connected rankinfo ?\["
    r"|createLink para:|HCCL_(?:EXEC|CONNECT)_TIMEOUT set by|execTimeOut\[|\]Listen on ip\[|localRank: ?\d+, remoteRank:"
    r"|Notify record from remote rank|collective operation timeout: Work|opData information is tag:"
    r"|exit_?code ?: ?-?\d+[^\n]{0,80}local_rank: ?\d|exitcode {1,4}: -?\d+ \(pid: ?\d|Root Cause \(first observed failure\)"
)
"""What the lines have that `remark` reads, beside the joins and link tables of `parsers.hccl`; each part holds a literal text."""

_ENTRY = re.compile(r"Entry-|SetupAgent |RootInfoDetect")
_EPOCH = re.compile(r"_(\d{16})$")
_IDENTIFIER = re.compile(r"\bidentifier\[([^\]\n]{1,256})\]")
_WORLD = "hccl_world_group"
NOBODY = frozenset({"4294967295", "18446744073709551615", "-1"})
"""Numbers that stand for an unknown rank."""
_PLACE = r"\[(?P<server>[0-9A-Fa-f.:%\w]{2,64})/(?P<device>\d{1,4})\]"
_VERDICT = re.compile(rf"Cluster Exception Location\[IP/ID\]:? ?{_PLACE}.{{0,300}}?ExceptionType:? ?\[(?P<type>[^\]\n]{{1,60}})\]")
_ARRIVED = re.compile(r"Arrival Time:? ?\[(?P<at>[^\]\n]{1,40})\]")
_DISCOVERER = re.compile(r"Discoverer:? ?\[(?P<informer>[^\]\n]{1,80})\]")
_STATE = re.compile(
    rf"rank ?{_PLACE} ?status ?\[(?P<state>LOST|STUCK|ERROR CQE)\] ?by (?:informer )?(?:rank ?)?"
    r"\[(?P<informer>[^\]\n]{1,80})\]"
)
_CQE = re.compile(r"cqe err(?:or)? status ?\[(?P<status>\d{1,4})\]")
_CQE_LOCAL = re.compile(
    r"localInfo\{server\[(?P<own_server>[^\]\n]{1,64})\], ?deviceId\[(?P<own_device>\d{1,4})\], ?"
    r"deviceIp\[(?P<own_ip>[^\]\n]{1,64})\]"
)
_CQE_REMOTE = re.compile(
    r"remoteIP:?\{server\[(?P<server>[^\]\n]{1,64})\], ?deviceId\[(?P<device>\d{1,4})\], ?deviceIp\[(?P<peer>[^\]\n]{1,64})\]"
    r"|(?:remoteIP|\bip):? ?\[(?P<address>[0-9A-Fa-f.:]{2,64})\]"
)
_P2P = re.compile(
    r"p2p timeout, timeout:(?P<timeout>\d{1,6}) ?s\.? ?\W{0,3}local logicDevid:(?P<device>\d{1,4}), "
    r"remote physic id:(?P<peer_physical>\d{1,4})"
)
_TASK = re.compile(r"(?:Task|FFTS\+) run failed, (?:base|op) information is.{0,160}?\btag\[(?P<tag>[^\]\n]{1,256})\]")
_TYPE = re.compile(r"taskType\[(?P<type>[^\]\n]{1,40})\]")
_MEMBER = re.compile(
    r"groupRank information is group:?\[(?P<group>[^\]\n]{1,256})\].{0,200}?rankSize\[(?P<ranks>\d{1,7})\], ?"
    r"rankId\[(?P<rank>\d{1,7})\]"
)
_CALL = re.compile(
    r"opData information is timeStamp:.{0,60}?deviceId\[(?P<device>\d{1,4})\], ?index\[(?P<index>\d{1,12})\], ?"
    r"count\[(?P<count>\d{1,20})\]"
)
_AICPU_CALL = re.compile(
    r"opData information is tag:(?P<tag>[^,\n]{1,256}), group:(?P<group>[^,\n]{1,256}), "
    r"opIndex:(?P<index>\d{1,12}), count:(?P<count>\d{1,20})"
)
_AICPU_WAIT = re.compile(r"type:(?P<type>[A-Z_ ]{2,30}), localRank: ?(?P<rank>\d{1,10}), remoteRank: ?(?P<peer>\d{1,10})")
_REMOTE = re.compile(r"remote rank:? ?\[(?P<peer>-?\d{1,10})\]")
_LINKING = re.compile(
    r"createLink para:rank\[\d+\]-localUserrank\[(?P<rank>\d{1,7})\].{0,80}?dst_rank\[\d+\]-remoteUserrank\[(?P<peer>\d{1,7})\]"
)
_ABSENT = re.compile(r"Failed to connect agent ?\[(?P<ranks>[\d, ]{1,4000})")
_PRESENT = re.compile(r"connected rankinfo ?\[LINE \d+\]: ?(?P<ranks>[\[\]\d, ]{1,8000})")
_LIMIT = re.compile(r"HCCL_(?P<name>EXEC|CONNECT)_TIMEOUT set by [a-z ]{1,40}to \[(?P<seconds>\d{1,6})\]")
_LIMITS = re.compile(r"linkTimeOut\[(?P<connect>\d{1,6})\].{0,20}?execTimeOut\[(?P<exec>\d{1,6})\]")
_LISTEN = re.compile(r"Listen on ip\[(?P<ip>[0-9A-Fa-f.:%]{2,64})\].{0,60}?devPhyId\[(?P<physical>\d{1,4})\], ?devLogicId\[(?P<device>\d{1,4})\]")
_WATCHDOG = re.compile(
    r"[Rr]ank (?P<rank>\d{1,7})\]?.{0,60}?collective operation timeout: Work\w{2,8}"
    r"\(SeqNum=(?P<index>\d{1,12}), OpType=(?P<op>\w{1,40})"
)
_EXIT = re.compile(r"exit_?code ?: ?(?P<code>-?\d{1,5})\W.{0,60}?local_rank: ?(?P<local>\d{1,4})(?:.{0,30}?pid:? ?(?P<pid>\d{1,10}))?")

_EXIT_ROW = re.compile(r"exitcode {1,4}: (?P<code>-?\d{1,5}) \(pid: ?(?P<pid>\d{1,10})\)")
_FIRST_EXIT = re.compile(r"Root Cause \(first observed failure\)")


def remark(message: str) -> Remark | None:
    """What one line says, of the kinds above; None for any other line. `message`: the line, with or without its head."""
    for literal, read in _READERS:
        if literal in message and (found := read(message)) is not None:
            return found
    return _joined(message) or _linked(message)


def _joined(message: str) -> Remark | None:
    who = hccl.join(message) if "ank[" in message else None
    if who is None:
        return None
    group = identifier[1] if (identifier := _IDENTIFIER.search(message)) else who.group
    if not group and _WORLD in message:
        group = _WORLD
    values = {
        "ranks": who.ranks, "rank": who.rank, "group": group, "server": who.server.split("%")[0], "device": who.logic_device,
        "physical": who.physical_device, "device_ip": who.device_ip,
    }  # fmt: skip
    said = {name: str(value) for name, value in values.items() if value not in (None, "", "-1")}
    said["step"] = "entry" if _ENTRY.search(message) else "done"
    if epoch := _EPOCH.search(group):
        said["epoch"] = epoch[1]
    return Remark("join", said)


def _linked(message: str) -> Remark | None:
    row = hccl.links(message[message.find("|") - 1 :] if "|" in message else "")
    if row is None:
        return None
    values = {"own_ip": row.own, "rank": str(row.own_rank), "peer_ip": row.peer, "peer": str(row.peer_rank), "role": row.role, "status": row.status}
    return Remark("link", values)


def _plain(kind: str, pattern: re.Pattern[str]) -> Callable[[str], Remark | None]:
    """A reader of lines on which one pattern says it all."""

    def read(message: str) -> Remark | None:
        found = pattern.search(message)
        values = {name: value for name, value in found.groupdict().items() if value} if found else {}
        if values.get("peer") in NOBODY:
            del values["peer"]
        return Remark(kind, values) if found else None

    return read


def _verdict(message: str) -> Remark | None:
    found = _VERDICT.search(message)
    if found is None:
        return None
    low = found["type"].lower()
    values = {"server": found["server"].split("%")[0], "device": found["device"], "type": found["type"]}
    values["state"] = "cqe" if "cqe" in low else "stuck" if "stuck" in low else "lost" if "lost" in low else "other"
    for pattern, name in ((_ARRIVED, "at"), (_DISCOVERER, "informer")):
        if more := pattern.search(message):
            values[name] = more[1]
    return Remark("verdict", values)


def _state(message: str) -> Remark | None:
    found = _STATE.search(message)
    if found is None:
        return None
    state = {"LOST": "lost", "STUCK": "stuck"}.get(found["state"], "cqe")
    return Remark("state", {"server": found["server"].split("%")[0], "device": found["device"], "state": state, "informer": found["informer"]})


def _cqe(message: str) -> Remark | None:
    status, peer = _CQE.search(message), _CQE_REMOTE.search(message)
    if status is None or peer is None:
        return None
    values = {"status": status[1], "peer_ip": peer["peer"] or peer["address"]}
    if peer["server"]:
        values |= {"server": peer["server"].split("%")[0], "device": peer["device"]}
    if own := _CQE_LOCAL.search(message):
        values |= own.groupdict()
    return Remark("cqe", values)


def _ranks(kind: str, pattern: re.Pattern[str]) -> Callable[[str], Remark | None]:
    def read(message: str) -> Remark | None:
        found = pattern.search(message)
        numbers = [str(int(number)) for number in re.findall(r"\d+", found["ranks"])] if found else []
        return Remark(kind, {"ranks": ",".join(numbers)}) if numbers else None

    return read


def _limit(message: str) -> Remark | None:
    if found := _LIMIT.search(message):
        return Remark("limit", {found["name"].lower(): found["seconds"]})
    found = _LIMITS.search(message)
    return Remark("limit", found.groupdict()) if found else None


_READERS: tuple[tuple[str, Callable[[str], Remark | None]], ...] = (
    ("Cluster Exception Location", _verdict),
    ("] by", _state),
    ("]by", _state),
    ("cqe err", _cqe),
    ("p2p timeout", _plain("p2p", _P2P)),
    ("remote rank", _plain("wait", _REMOTE)),
    ("groupRank information", _plain("member", _MEMBER)),
    ("opData information is time", _plain("call", _CALL)),
    ("opData information is tag", _plain("call", _AICPU_CALL)),
    (" run failed, ", _plain("task", _TASK)),
    ("remoteRank:", _plain("wait", _AICPU_WAIT)),
    ("createLink para", _plain("wait", _LINKING)),
    ("Failed to connect agent", _ranks("absent", _ABSENT)),
    ("connected rankinfo", _ranks("present", _PRESENT)),
    ("imeOut[", _limit),
    ("_TIMEOUT set by", _limit),
    ("Listen on ip", _plain("listen", _LISTEN)),
    ("collective operation timeout", _plain("watchdog", _WATCHDOG)),
    ("local_rank", _plain("exit", _EXIT)),
    ("exitcode ", _plain("exit", _EXIT_ROW)),
    ("Root Cause", _plain("first-exit", _FIRST_EXIT)),
)
