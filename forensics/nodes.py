"""Which machine each file of a bundle is from, told by what the files say, and by where they lie only where they say nothing.

A bundle of several, a folder named after a node, and folders side by side of which each is of another machine are "places": they hold
files of one machine. A place has the name of its host (from syslog heads and HOSTNAME), where it has one that no other machine shares; else the name
its path gives it; else the address of the server that its processes state when they join a job; else the name of the bundle.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable

import msgspec

_NAMELESS = frozenset(
    {"", "localhost", "localhost.localdomain", "host", "hostname", "(none)", "kernel", "linux", "none", "unknown", "server", "node"}
)
_CONTAINER = re.compile(r"[0-9a-f]{12}(?:[0-9a-f]{52})?")
_ENDING = re.compile(r"(?:\.(?:tar|tgz|tbz2?|txz|zip|gz|bz2|xz|zst|log))+(?= \(\d+\)$|$)", re.IGNORECASE)


class Trace(msgspec.Struct):
    """What one file tells of its machine."""

    file_id: int
    root: str
    """The bundle it is from, where there are several."""
    path_node: str
    """What its path says; empty where it says nothing."""
    path: str = ""
    hosts: set[str] = msgspec.field(default_factory=set)
    """Names that syslog puts before its lines."""
    servers: set[str] = msgspec.field(default_factory=set)
    """Addresses that its processes state as their own."""
    stated: set[str] = msgspec.field(default_factory=set)
    """Values of HOSTNAME and the like, which in a container are the container's."""
    pid: int | None = None


Place = tuple[str, str, str]
"""Bundle, node by the path, and folder; empty where it is not told apart by that."""


class Machine(msgspec.Struct):
    """One machine and by what it is known."""

    name: str
    why: str
    """host, path, server, bundle: what the name was taken from."""
    hosts: set[str] = msgspec.field(default_factory=set)
    servers: set[str] = msgspec.field(default_factory=set)
    places: set[str] = msgspec.field(default_factory=set)
    """Bundles or folders its files lie in."""
    files: int = 0


def name_files(traces: Iterable[Trace]) -> tuple[dict[int, str], list[Machine]]:
    """File id -> machine, of files whose machine is known, and the machines in order of their names. Depends on the traces alone."""
    places = _places(list(traces))
    hosts = {key: _hosts(found) for key, found in places.items()}
    servers = {key: {server for trace in found for server in trace.servers} for key, found in places.items()}
    claimed = _claimed(places, hosts, servers)
    names: dict[int, str] = {}
    machines: dict[str, Machine] = {}

    def put(key: Place, found: list[Trace], name: str, why: str) -> None:
        machine = machines.setdefault(name, Machine(name, why))
        machine.hosts |= _hosts(found)
        machine.servers |= {server for trace in found for server in trace.servers}
        machine.places |= {part for part in key if part}
        machine.files += len(found)
        names.update((trace.file_id, name) for trace in found)

    for key, found in sorted(places.items()):
        root, path_node, _ = key
        host = next(iter(hosts[key])) if len(hosts[key]) == 1 else ""
        if host and claimed[host]:
            put(key, found, host, "host")
        elif path_node:
            put(key, found, path_node, "path")
        elif len(servers[key]) == 1 and not hosts[key]:
            put(key, found, next(iter(servers[key])), "server")
        elif len(servers[key]) > 1:  # logs of several machines in one folder: each process says where it ran
            for server, own in _by_server(found).items():
                put(key, own, server, "server")
        elif root and not hosts[key]:
            put(key, found, _ENDING.sub("", root), "bundle")
    return names, sorted(machines.values(), key=lambda machine: machine.name)


def _places(traces: list[Trace]) -> dict[Place, list[Trace]]:
    """Files by the place they lie in."""
    out: dict[Place, list[Trace]] = {}
    loose = []
    for trace in traces:
        if trace.root or trace.path_node:
            out.setdefault((trace.root, trace.path_node, ""), []).append(trace)
        else:
            loose.append(trace)
    common = os.path.commonpath([trace.path for trace in loose]) if loose else ""
    depth = len(common.split("/")) if common else 0
    parts: dict[str, list[Trace]] = {}
    for trace in loose:
        folders = trace.path.split("/")[:-1]
        parts.setdefault(folders[depth] if len(folders) > depth else "", []).append(trace)
    known = [_identity(part) for folder, part in parts.items() if folder]
    told = [identity for identity in known if identity]
    if len(told) > 1 and len(set(told)) == len(told) and all(len(identity) == 1 for identity in told):
        for folder, part in parts.items():
            out.setdefault(("", "", folder), []).extend(part)
    elif loose:
        out[("", "", "")] = loose
    return out


def _identity(part: list[Trace]) -> frozenset[str]:
    """The hosts of a folder's files, or the servers where they name no host."""
    return frozenset(_hosts(part)) or frozenset(server for trace in part for server in trace.servers)


def _hosts(part: list[Trace]) -> set[str]:
    """The names of hosts in a place: those of syslog, or else those that are stated, unless they are numbers of containers."""
    found = {host for trace in part for host in trace.hosts if host.lower() not in _NAMELESS}
    return found or {host for trace in part for host in trace.stated if host.lower() not in _NAMELESS and not _CONTAINER.fullmatch(host)}


def _claimed(places: dict[Place, list[Trace]], hosts: dict[Place, set[str]], servers: dict[Place, set[str]]) -> dict[str, bool]:
    """Host -> whether it names one machine: places that share it must not differ in what their paths or their processes say."""
    out = {}
    for host in {host for found in hosts.values() for host in found}:
        sharing = [key for key in places if host in hosts[key]]
        paths = {path for _, path, _ in sharing if path}
        addresses = [servers[key] for key in sharing if servers[key]]
        same = all(one & other for one in addresses for other in addresses)
        out[host] = len(paths) <= 1 and same
    return out


def _by_server(found: list[Trace]) -> dict[str, list[Trace]]:
    """Files by the one server they state, others by that of their process."""
    by_pid: dict[int, Counter[str]] = {}
    for trace in found:
        if len(trace.servers) == 1 and trace.pid is not None:
            by_pid.setdefault(trace.pid, Counter())[next(iter(trace.servers))] += 1
    out: dict[str, list[Trace]] = {}
    for trace in found:
        servers = trace.servers or (set(by_pid.get(trace.pid, ())) if trace.pid is not None else set())
        if len(servers) == 1:
            out.setdefault(next(iter(servers)), []).append(trace)
    return dict(sorted(out.items()))
