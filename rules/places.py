"""Where a finding is: the card that its lines speak of, the process on that card, the attempt of the job; and what that adds to its weight."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rules.confidence import Weight
from rules.model import LAYERS, Began, Finding, Hit, Scope
from rules.seats import Attempt

WAITING = frozenset({"hccl-peer-exit", "hccl-notify-wait-timeout", "hccl-connect-timeout", "slow-rank", "host-process-hang"})
"""Root causes whose lines are told by those who waited: where it was is where the job began to fail."""
AT_THE_ORIGIN, ELSEWHERE = 0.25, 0.9
"""What a finding gains of the rest to certainty at the place where the job began to fail, and what it keeps elsewhere."""

_DEVICE = re.compile(r"(?i)\b(?:dev(?:ice)?_?(?:logic_?|phy_?)?id|phy_?id|udevid|chip_?id)(?: ?[=:] ?|\[|\()(\d{1,3})\b")
MOST = 64
"""Cards of one machine."""


def device_of(hit: Hit) -> int | None:
    """The device of the line's head, or the one number its text calls that."""
    if hit.device is not None:
        return hit.device
    found = {int(number) for number in _DEVICE.findall(hit.text[:1000])}
    return found.pop() if len(found) == 1 and max(found) < MOST else None


def placed(scope: Scope, attempts: Sequence[Attempt]) -> Scope:
    """A scope with what the job's joins tell of its process or its card."""
    for attempt in attempts:
        seat = attempt.of_process(scope.node, scope.pid) if scope.pid is not None else None
        if seat is None and scope.device is not None and (scope.node or len({one.node for one in attempt.seats}) == 1):
            seat = attempt.of_device(scope.node, scope.device)
        if seat is None and scope.rank is not None and len(attempts) == 1:
            seat = attempt.of_rank(scope.rank)
        if seat is not None:
            device = scope.device if scope.device is not None else seat.physical if seat.physical is not None else seat.device
            return Scope(
                scope.node or seat.node or seat.server,
                device,
                scope.rank if scope.rank is not None else seat.rank,
                scope.pid if scope.pid is not None else seat.pid,
            )
    return scope


def attempt_of(finding: Finding, attempts: Sequence[Attempt]) -> int | None:
    """The attempt that the deciding lines are of: by their process, else by their time."""
    for hit in finding.hits[: finding.deciding]:
        for attempt in attempts:
            if hit.pid is not None and any(seat.pid == hit.pid and seat.node == hit.node for seat in attempt.seats):
                return attempt.number
    started = [attempt.number for attempt in attempts if attempt.first is not None and finding.first is not None and attempt.first <= finding.first]
    return started[-1] if started else None


def scope_of(finding: Finding, attempts: Sequence[Attempt], began: Sequence[Began]) -> Scope:
    """Where a diagnosis is. Who waited says whom it waited for, not itself; what a card or its driver says is of the process on that card."""
    scope, number = finding.scope, attempt_of(finding, attempts)
    own = [attempt for attempt in attempts if attempt.number == number] or attempts
    if finding.rule.layer in LAYERS[:4]:
        deciding = finding.hits[: finding.deciding]
        device = next((device for hit in deciding if (device := device_of(hit)) is not None), None)
        near = [one for one in began if one.sure != "low" and one.node == scope.node and one.device is not None]
        if device is None and near and all(hit.node == scope.node for hit in deciding):
            device = near[0].device
        found = placed(Scope(scope.node, device, scope.rank, scope.pid if device is None else None), own)
        return found if found.pid is not None else Scope(scope.node, device, scope.rank, scope.pid)
    if finding.rule.root_cause in WAITING and finding.rule.layer in ("collective", "framework"):
        for one in began:
            if one.sure != "low" and (one.attempt == number or len(began) == 1):
                return Scope(one.node, one.device, one.rank, one.pid)
    found = placed(scope, own)
    if found.device is None and finding.rule.layer not in ("collective", "environment"):
        device = next((device for hit in finding.hits[: finding.deciding] if (device := device_of(hit)) is not None), None)
        return msgspec.structs.replace(found, device=device)
    return found


def at_place(weight: Weight, finding: Finding, attempts: Sequence[Attempt], began: Sequence[Began]) -> Weight:
    """A finding at the place where the job began to fail weighs more than one elsewhere."""
    clear = [one for one in began if one.sure == "high" and (one.rank is not None or one.pid is not None)]
    if finding.rule.role != "cause" or finding.rule.layer in ("collective", "environment") or not clear:
        return weight
    scopes = [Scope(hit.node, device_of(hit), hit.rank, hit.pid) for hit in finding.hits[:32] if hit.leaf >= 0]
    places = [placed(scope, attempts) for scope in scopes]
    known = [place for place in places if place.rank is not None or place.pid is not None]
    if not known:
        return weight
    here = any(
        (one.rank is not None and place.rank == one.rank) or (one.pid is not None and (place.node, place.pid) == (one.node, one.pid))
        for one in clear
        for place in known
    )
    value = weight.value + (1 - weight.value) * AT_THE_ORIGIN if here else weight.value * ELSEWHERE
    return msgspec.structs.replace(weight, value=min(value, 0.97))
