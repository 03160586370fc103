"""How far the clocks of several machines are apart, told by moments that all of them lived through together.

A communicator stands for all its ranks at the same moment, give or take a second: the lines by which its members say so are stamps of
one event by many clocks. Where a machine has none of these, the failures that all ranks wait out together stand in, which is rougher.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median, median_low

import msgspec

from forensics.clocks import FileClock
from parsers.clock import SECOND
from rules.model import Remark

HALF_HOUR = 1800
ODD_ZONES = frozenset({-7, -5, 7, 9, 11, 13, 19, 21})
"""Half hours that are zones of some country without being whole hours."""
NEAR_ZONE = 840
"""Seconds by which a clock that is off, and a late start, may keep the time of a join from a whole zone."""
ROUNDS = 12
FLOOR = SECOND // 2
"""Members of a communicator log its birth within this time of each other, at best."""
SINGLE = 3 * SECOND
"""The same where there is only one such moment to go by."""
ROUGH = 30 * SECOND
"""Failures that are waited out together come within this time of each other."""
GENERIC = ("hccl_world_group", "group_name_")
"""Names that every attempt of every job gives its groups."""


class Skew(msgspec.Struct, frozen=True):
    """The clock of one machine against that of the machine in the middle."""

    node: str
    ahead: int
    """Microseconds by which its printed times are later than those of the reference."""
    within: int
    """Microseconds of doubt."""
    moments: int
    """How many common moments it rests on."""
    why: str
    """joins: births of communicators; failures: timeouts waited out together; none: nothing to go by."""

    @property
    def shift(self) -> int:
        """What to subtract from its times: nothing where the difference may be none."""
        return self.ahead if abs(self.ahead) > max(SECOND, 2 * self.within) else 0


def between(remarks: Iterable[Remark], nodes: Sequence[str]) -> dict[str, Skew]:
    """The skew of every node. Empty for less than two nodes, or where nothing compares them."""
    if len(nodes) < 2:
        return {}
    joins, failures = _moments(remarks)
    linked = _largest({key: stamps for key, stamps in joins.items() if len(stamps) > 1})
    why = "joins"
    if not linked:
        linked, why = _largest({key: stamps for key, stamps in failures.items() if len(stamps) > 2}), "failures"
        if not linked:
            return {}
    ahead, at = _solve(linked)
    out = {}
    for node in sorted(ahead):
        apart = [abs(stamps[node] - ahead[node] - at[key]) for key, stamps in linked.items() if node in stamps]
        floor = ROUGH if why == "failures" else FLOOR if len(apart) > 1 else SINGLE
        out[node] = Skew(node, round(ahead[node]), max(floor, round(2 * median(apart))), len(apart), why)
    for node in nodes:
        if node and node not in out:
            out[node] = _by_failures(node, failures, ahead) if why == "joins" else Skew(node, 0, 0, 0, "none")
    middle = median_low(sorted(skew.ahead for skew in out.values() if skew.why != "none"))
    return {node: msgspec.structs.replace(skew, ahead=skew.ahead - middle if skew.why != "none" else 0) for node, skew in out.items()}


Stamps = dict[str, int]
"""Node -> its time of one moment."""


def _moments(remarks: Iterable[Remark]) -> tuple[dict[str, Stamps], dict[str, Stamps]]:
    """Births of communicators and common failures, each by a key that names one moment. Of several processes of a node the last counts
    for a birth, which is complete only then, and the first for a failure."""
    joins: dict[str, Stamps] = defaultdict(dict)
    failures: dict[str, Stamps] = defaultdict(dict)
    for remark in remarks:
        if remark.ts is None or not remark.node:
            continue
        if remark.kind == "join":
            group = remark.values.get("group", "")
            if group and not group.startswith(GENERIC):
                stamps = joins[f"{group} {remark.values['step']}"]
                stamps[remark.node] = max(stamps.get(remark.node, remark.ts), remark.ts)
        elif remark.kind == "task" and (tag := remark.values.get("tag", "")):
            stamps = failures[tag]
            stamps[remark.node] = min(stamps.get(remark.node, remark.ts), remark.ts)
    return joins, failures


def _largest(moments: dict[str, Stamps]) -> dict[str, Stamps]:
    """The moments that hang together over shared nodes, of the largest such set."""
    above: dict[str, str] = {}

    def top(node: str) -> str:
        while above.setdefault(node, node) != node:
            above[node] = above[above[node]]
            node = above[node]
        return node

    for stamps in moments.values():
        first, *others = sorted(stamps)
        for other in others:
            above[top(other)] = top(first)
    sizes: dict[str, int] = defaultdict(int)
    for node in sorted(above):
        sizes[top(node)] += 1
    if not sizes:
        return {}
    best = max(sizes, key=lambda node: (sizes[node], node))
    return {key: stamps for key, stamps in sorted(moments.items()) if top(next(iter(sorted(stamps)))) == best}


def _solve(moments: dict[str, Stamps]) -> tuple[dict[str, float], dict[str, float]]:
    """What every clock is ahead and when every moment was, so that each stamp is about the sum of both: by medians in turn, which a
    few late stamps do not sway."""
    ahead: dict[str, float] = {node: 0.0 for stamps in moments.values() for node in stamps}
    at: dict[str, float] = {}
    for _ in range(ROUNDS):
        at = {key: median([stamp - ahead[node] for node, stamp in stamps.items()]) for key, stamps in moments.items()}
        apart: dict[str, list[float]] = defaultdict(list)
        for key, stamps in moments.items():
            for node, stamp in stamps.items():
                apart[node].append(stamp - at[key])
        fresh = {node: median(found) for node, found in apart.items()}
        if all(abs(fresh[node] - ahead[node]) < 1000 for node in fresh):
            break
        ahead = fresh
    return ahead, at


def _by_failures(node: str, failures: dict[str, Stamps], ahead: dict[str, float]) -> Skew:
    """Of a node without births: its failures against those of the nodes whose clocks are known."""
    apart = []
    for stamps in failures.values():
        known = [stamp - ahead[other] for other, stamp in stamps.items() if other in ahead]
        if node in stamps and len(known) > 1:
            apart.append(stamps[node] - median(known))
    return Skew(node, round(median(apart)), ROUGH, len(apart), "failures") if apart else Skew(node, 0, 0, 0, "none")


def zones(remarks: Iterable[tuple[Remark, str]]) -> dict[int, int]:
    """File -> seconds east of UTC, of files whose process joined a group that is named after the moment at which it was made. `remarks`
    with printed times and the clocks that printed them."""
    out: dict[int, int] = {}
    for remark, clock in remarks:
        if remark.kind != "join" or clock != "local" or remark.ts is None or "epoch" not in remark.values:
            continue
        apart = (remark.ts - int(remark.values["epoch"])) // SECOND
        near = round(apart / HALF_HOUR) * HALF_HOUR
        if near % 3600 and near // HALF_HOUR not in ODD_ZONES:
            continue
        if abs(apart - near) <= NEAR_ZONE and -12 * 3600 <= near <= 14 * 3600:
            out.setdefault(remark.file_id, near)
    return out


def take_off(skews: Mapping[str, Skew], clocks: dict[int, FileClock], nodes: Mapping[int, str]) -> dict[str, int]:
    """Have the clocks of all files (`nodes`: file -> node) take off what their node is ahead; node -> microseconds, of nodes that are."""
    shifts = {node: skew.shift for node, skew in skews.items() if skew.shift}
    moved: dict[tuple[FileClock, int], FileClock] = {}  # there may be a million files, and few different clocks
    for file_id, node in nodes.items() if shifts else ():
        if shift := shifts.get(node):
            clock = clocks[file_id]
            clocks[file_id] = moved.setdefault((clock, shift), msgspec.structs.replace(clock, shift=shift))
    return shifts
