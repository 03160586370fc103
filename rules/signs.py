"""The signs by which the place is found where a job began to fail: each adds points to the seats it points at (see `rules.origin`)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from rules.model import FactRow, Finding, FirstRow, Hit, Remark, Sign, Text
from rules.places import device_of
from rules.seats import Attempt, Seat, missing_seat, numbers

SLACK = 2_000_000
DEFAULT_EXEC, DEFAULT_CONNECT = 1836, 120
"""Seconds of HCCL_EXEC_TIMEOUT and HCCL_CONNECT_TIMEOUT where they are not set."""
ECHO = re.compile(
    r"HCCL\(|HCCP\(|EI\d{4}|E[IJ]9999|[Nn]otify|[Tt]ime(?:d)?[ _-]?out|TIMEOUT|超时|HCCL (?:function )?error|call hccl api|Watchdog|WorkHCCL"
    r"|SIG(?:TERM|KILL|ABRT)|Connection (?:closed|reset)|107020|507048|507034|507904|ProcessGroup|ChildFailedError|ChildProcess"
    r"|local_rank|exitcode|Sending process|EngineDeadError|EngineCore (?:died|encountered)|died unexpectedly|heartbeat|DistBackendError"
    r"|[Bb]arrier|wait(?:ing|ed)? for (?:compute|remote|peer)|task exception|model stream execute failed|stream sync"
)
"""First errors of a process that only wait for, or repeat, what happened elsewhere."""
LOW = ("hardware", "firmware", "driver", "device", "runtime", "operator")
MOST_ENDS = 64
"""Seats at which chains of waiting may end; where there are more, they tell nothing."""
PLACED = (*LOW, "framework", "application")
"""Layers whose errors are of one process or one card; those of a collective are of all, those of the environment of nobody."""
LATE_SHARE = 0.5
"""Share of the timeout by which a rank must have come later than the rest to count as late."""
SUMMARY = 10
"""Lines of one entry in the summary of a launcher."""
_HARMLESS_EXIT = frozenset({"0", "-15", "143"})
_NOBODY_ALIKE = 0.5
"""Share of the ranks from which an error of their own is no sign: it is the job's, not a rank's."""


class Scores:
    """Points for seats, with reasons."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.points: dict[int, float] = defaultdict(float)
        self.signs: dict[int, list[Sign]] = defaultdict(list)
        self.groups: dict[int, frozenset[int]] = {}
        """Seat -> the seats that the same sign could not tell it from."""

    def add(self, seat: Seat | None, points: float, kind: str, reason: Text, remark: Remark | None = None) -> None:
        if seat is None or points <= 0:
            return
        self.points[seat.number] += points
        place = (remark.file, remark.line_no, remark.file_id) if remark is not None else ("", 0, -1)
        self.signs[seat.number].append(Sign(kind, round(points, 2), reason, *place))


class Own:
    """What of a bundle belongs to one attempt."""

    def __init__(
        self, attempt: Attempt, all_of_them: list[Attempt], remarks: Sequence[Remark], firsts: Sequence[FirstRow], located: list[tuple[Finding, Hit]]
    ) -> None:
        self.attempt, self.all = attempt, all_of_them
        self.by_pid = {(seat.node, seat.pid): seat for seat in attempt.seats if seat.pid is not None}
        self._one_node = len({seat.node for seat in attempt.seats}) <= 1
        self.others = {(seat.node, seat.pid) for one in all_of_them if one is not attempt for seat in one.seats if seat.pid is not None}
        self.remarks = [remark for remark in remarks if self._mine(remark.node, remark.pid, remark.ts)]
        self.firsts = [first for first in firsts if self._mine(first.node, first.pid, first.ts)]
        self.located = [(finding, hit) for finding, hit in located if self._mine(hit.node, hit.pid, hit.ts)]

    def _mine(self, node: str, pid: int | None, ts: int | None) -> bool:
        if pid is not None and (node, pid) in self.by_pid:
            return True
        if pid is not None and (node, pid) in self.others:
            return False
        if len(self.all) == 1 or ts is None:
            return True
        begin, end = self.attempt.first, self.attempt.last
        return (begin is None or ts >= begin - 60_000_000) and (end is None or ts < end)

    def of(self, line: FirstRow | Hit | Remark, rank: int | None = None) -> Seat | None:
        """The seat a line is from. `rank`: the one it states, where that is not in its head."""
        found = self.by_pid.get((line.node, line.pid)) if line.pid is not None else None
        found = found or self.attempt.of_process(line.node, line.pid)
        rank = line.rank if rank is None else rank
        if found is None and rank is not None:
            found = self.attempt.of_rank(rank)
        if found is None and (line.node or self._one_node):
            found = self.attempt.of_device(line.node, device_of(line) if isinstance(line, Hit) else line.device)
        if found is not None and not found.known and line.node == found.node:
            found.known, found.pid = True, found.pid if found.pid is not None else line.pid  # its logs are here, if not those of its start
        return found


def own_word(own: Own, scores: Scores) -> None:
    """Cluster Exception Location, and, where nobody prints that, the first heartbeat, stuck or RDMA event that was spread."""
    attempt = own.attempt
    words = [remark for remark in own.remarks if remark.kind == "verdict"]
    count: Counter[int] = Counter()
    shown: dict[int, Remark] = {}
    seats: dict[tuple[str, str], Seat | None] = {}
    for remark in words:
        place = remark.values.get("server", ""), remark.values["device"]
        seat = seats[place] = seats[place] if place in seats else _placed(own, remark)
        if seat is not None:
            count[seat.number] += 1
            shown.setdefault(seat.number, remark)
    for number, times in count.items():
        state = shown[number].values["type"]
        reason = Text(
            f"HCCL itself names it: Cluster Exception Location, {state} ({times} of {len(words)} reports)",
            f"HCCL 自身给出的故障位置（Cluster Exception Location）：{state}（{len(words)} 条上报中的 {times} 条）",
        )
        scores.add(attempt.seats[number], 3 * times / len(words) + 0.5 * (times > 1), "hccl", reason, shown[number])
    states = [remark for remark in own.remarks if remark.kind == "state"]
    states.sort(key=lambda remark: (remark.ts or 1 << 62, remark.file_id, remark.line_no))
    if words or not states:
        return
    placed = next(((seat, remark) for remark in states if (seat := _placed(own, remark)) is not None), None)
    if placed is None:
        return
    first, remark = placed
    state = {"lost": "LOST", "stuck": "STUCK"}.get(remark.values["state"], "ERROR CQE")
    reason = Text(f"the first event the heartbeats spread is {state} of this rank", f"集群心跳最早扩散的异常事件是该 rank 的 {state}")
    scores.add(first, 2, "heartbeat", reason, remark)


def _placed(own: Own, remark: Remark) -> Seat | None:
    """The seat that an `IP/ID` names, which may be one that nobody has logs of."""
    server, device = remark.values.get("server", ""), int(remark.values["device"])
    attempt = own.attempt
    found = attempt.of_device("", device, server) or attempt.of_address(server)
    if found is None and server and all(seat.server != server for seat in attempt.seats):
        found = missing_seat(attempt, server, device)
        if found is None:
            found = Seat(len(attempt.seats), None, server, server, device, device, known=False)
            attempt.seats.append(found)
    return found


def never_joined(own: Own, scores: Scores) -> None:
    remarks = [remark for remark in own.remarks if remark.kind == "absent"]
    absent = {int(rank) for remark in remarks for rank in remark.values["ranks"].split(",")}
    if not absent:
        remarks = [remark for remark in own.remarks if remark.kind == "present"]
        present = {int(rank) for remark in remarks for rank in remark.values["ranks"].split(",")}
        absent = set(range(own.attempt.ranks)) - present if present else set()
    if not absent or len(absent) > 64:
        return
    own.attempt.ranks = max(own.attempt.ranks, max(absent) + 1)
    shown = numbers(sorted(absent))
    reason = Text(f"never reached the root of the group (ranks that did not: {shown})", f"始终未连接到通信域的 root（未连接的 rank：{shown}）")
    for rank in sorted(absent):
        seat = own.attempt.of_rank(rank)
        if seat is None:
            seat = Seat(len(own.attempt.seats), rank, known=False)
            own.attempt.seats.append(seat)
        scores.add(seat, 2.5 / len(absent) ** 0.25, "absent", reason, remarks[0])
        scores.groups[seat.number] = frozenset(absent)


def waited(remark: Remark) -> bool:
    """Whether it says that its process waited for another; a copy that failed did not."""
    return remark.kind in ("task", "wait", "link", "p2p", "watchdog") and ("type" not in remark.values or "WAIT" in remark.values["type"].upper())


def waits(own: Own) -> list[Seat]:
    """Seats that say they waited for somebody."""
    found: dict[int, Seat] = {}
    for remark in own.remarks:
        if waited(remark) and (seat := _waiter(own, remark)) is not None:
            found.setdefault(seat.number, seat)
    return list(found.values())


def _waiter(own: Own, remark: Remark) -> Seat | None:
    rank = int(remark.values["rank"]) if remark.kind in ("link", "watchdog") and "rank" in remark.values else None
    return own.of(remark, rank)


def graph(own: Own, scores: Scores, waiting: set[int]) -> None:
    """Whom everybody ends up waiting for: the seat at the end of the arrows that waits for nobody itself."""
    arrows: dict[int, set[int]] = defaultdict(set)
    shown: dict[int, Remark] = {}
    tags = _tags(own)
    for remark in own.remarks:
        if remark.kind not in ("wait", "link", "p2p") or not waited(remark):
            continue
        one, other = _waiter(own, remark), _awaited(own, remark, tags)
        if one is not None and other is not None and one is not other:
            arrows[one.number].add(other.number)
            shown.setdefault(other.number, remark)
    if not arrows:
        return
    back: dict[int, set[int]] = defaultdict(set)
    for start, others in arrows.items():
        for end in others:
            back[end].add(start)
    ends = {end: len(_reached(end, back)) for end in sorted(back) if end not in arrows and end not in waiting}
    if len(ends) > MOST_ENDS:
        return
    unseen = all(not own.attempt.seats[end].known for end in ends)
    for end, times in ends.items():
        seat = own.attempt.seats[end]
        reason = Text(
            f"{times} of the {len(arrows)} ranks that say whom they wait for wait for it in the end, and it waits for nobody",
            f"在报出等待对象的 {len(arrows)} 个 rank 中，有 {times} 个最终都在等待它，而它自身不等待任何 rank",
        )
        if len(arrows) == 1:
            reason = Text("the one rank that says whom it waits for waits for it", "唯一报出等待对象的 rank 等待的就是它")
        # chains that end at several ranks without logs do not tell which of these began it, however long they are
        points = 2.5 * times / len(arrows) if len(ends) == 1 or not unseen else 2.5 / len(ends) ** 0.5
        scores.add(seat, points, "waits", reason, shown.get(end))


def _reached(start: int, arrows: Mapping[int, set[int]]) -> set[int]:
    """Whoever arrows lead to, directly or through others."""
    seen: set[int] = set()
    todo = [start]
    while todo:
        for other in arrows.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def _tags(own: Own) -> dict[tuple[str, int | None], str]:
    """Process -> the tag of the task of it that failed last."""
    return {(remark.node, remark.pid): remark.values["tag"] for remark in own.remarks if remark.kind == "task"}


def _awaited(own: Own, remark: Remark, tags: Mapping[tuple[str, int | None], str]) -> Seat | None:
    values, attempt = remark.values, own.attempt
    if remark.kind == "p2p":
        return attempt.of_device(remark.node, int(values["peer_physical"]))
    if "peer" not in values:
        return None
    peer = int(values["peer"])
    if remark.kind == "link":
        waiter = _waiter(own, remark)
        return attempt.of_address(values["peer_ip"], waiter.server if waiter else "") or attempt.of_rank(peer)
    waiter, tag = _waiter(own, remark), tags.get((remark.node, remark.pid), "")
    group = next((group for group in (waiter.groups if waiter else ()) if tag and group in tag), "")
    if group and (found := attempt.of_group(group, peer)) is not None:
        return found
    # a number within a smaller group says nothing without that group
    return attempt.of_rank(peer) if not group or (waiter is not None and waiter.groups[group] == waiter.rank) else None


def own_errors(
    own: Own, scores: Scores, waiting: set[int], gave_up: int | None, limits: dict[str, int], doubt: Mapping[str, int]
) -> set[int]:
    """Seats that failed by themselves: the earliest, the more so if the others gave up as much later as their timeout is set to."""
    found: dict[int, tuple[int | None, int, str, Remark]] = {}

    def see(seat: Seat | None, ts: int | None, low: int, what: str, place: Remark) -> None:
        if seat is not None and (seat.number not in found or _earlier((ts, -low), found[seat.number][:2])):
            found[seat.number] = ts, -low, what, place

    for finding, hit in own.located:
        low = 2 if finding.rule.layer in ("hardware", "firmware", "driver", "device") else 1 if finding.rule.layer in LOW else 0
        place = Remark("line", {}, hit.file_id, hit.file, hit.line_no, hit.text)
        see(own.of(hit), hit.ts, low, finding.rule.id, place)
    for first in own.firsts:
        if not ECHO.search(first.text):
            place = Remark("line", {}, -1, first.file, first.line_no, first.text)
            see(own.of(first), first.ts, 0, "", place)
    for number, (ts, low, _, _) in list(found.items()):
        slack = SLACK + doubt.get(own.attempt.seats[number].node, 0)
        if ts is not None and gave_up is not None and (ts > gave_up + slack or (ts >= gave_up - slack and not low)):
            del found[number]  # once the others gave up it is a consequence, or the same waiting in other words
    known = sum(seat.known for seat in own.attempt.seats)
    if not found or len(found) > max(1, known * _NOBODY_ALIKE):
        return set(found)
    timed = sorted((one[0], one[1], number) for number, one in found.items() if one[0] is not None)
    for number, (ts, low, _, place) in found.items():
        seat, points = own.attempt.seats[number], 1.5 if waiting - {number} else 0.8
        slack = SLACK + doubt.get(seat.node, 0)
        reason = Text("it has an error of its own, while the others only wait", "它有自身的错误，而其他 rank 只是在等待")
        if ts is not None and timed and ts <= timed[0][0] + slack and gave_up is not None and ts < gave_up - slack:
            points += 1.0
            later = round((gave_up - ts) / 1e6)
            reason = Text(
                f"its own error is the first of all ranks; the others gave up {_span(later)} later",
                f"它自身的错误早于所有 rank；其他 rank 在其后 {_span(later, 'zh')}才超时退出",
            )
            for name, seconds in (("exec", limits["exec"]), ("connect", limits["connect"])):
                if abs(later - seconds) <= max(45, 0.08 * seconds):
                    points += 0.7
                    limit = f"HCCL_{name.upper()}_TIMEOUT"
                    reason = Text(f"{reason.en}, which is {limit} ({seconds} s)", f"{reason.zh}，与 {limit}（{seconds} 秒）相符")
                    break
        elif ts is not None and timed and ts > timed[0][0] + slack:
            points -= 0.7
        scores.add(seat, points + 0.4 * -low, "error", reason, place)
    return set(found)


def _earlier(one: tuple[int | None, int], other: tuple[int | None, int]) -> bool:
    """Whether one is the better word on when a rank failed: earlier, or, of the same moment, from a lower layer."""
    left, right = one[0] if one[0] is not None else 1 << 62, other[0] if other[0] is not None else 1 << 62
    return one[1] < other[1] if abs(left - right) <= SLACK else left < right


def _span(seconds: int, lang: str = "en") -> str:
    minutes, rest = divmod(seconds, 60)
    if lang == "zh":
        return f"{minutes} 分 {rest} 秒" if minutes else f"{rest} 秒"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def gave_up(own: Own, waits: Sequence[Seat]) -> int | None:
    """When the ranks that waited began to give up: the second of them, as a single stamp may be wrong."""
    first: dict[int, int] = {}
    for remark in own.remarks:
        if waited(remark) and remark.ts is not None and (seat := _waiter(own, remark)) is not None:
            first[seat.number] = min(first.get(seat.number, remark.ts), remark.ts)
    times = sorted(first.values())
    return times[min(1, len(times) - 1)] if times else None


def limits(own: Own, facts: Sequence[FactRow]) -> dict[str, int]:
    """The timeouts as set: most ranks' word, then the environment's, then the defaults."""
    out = {"exec": DEFAULT_EXEC, "connect": DEFAULT_CONNECT}
    for name in out:
        said = Counter(int(remark.values[name]) for remark in own.remarks if remark.kind == "limit" and name in remark.values)
        said = said or Counter(int(row.value) for row in facts if row.name == f"env.HCCL_{name.upper()}_TIMEOUT" and row.value.isdigit())
        if said:
            out[name] = max(said, key=lambda seconds: (said[seconds], seconds))
    return out


def lateness(own: Own, scores: Scores, limits: dict[str, int], doubt: Mapping[str, int]) -> None:
    """Who gave up long after the rest on the same call: it had come to it that much later, as all wait equally long."""
    by_tag: dict[str, dict[int, tuple[int, Remark]]] = defaultdict(dict)
    for remark in own.remarks:
        if remark.kind == "task" and waited(remark) and remark.ts is not None and (seat := _waiter(own, remark)) is not None:
            said = by_tag[remark.values["tag"]]
            if seat.number not in said or remark.ts < said[seat.number][0]:
                said[seat.number] = remark.ts, remark
    for said in by_tag.values():
        times = sorted(ts for ts, _ in said.values())
        usual = times[(len(times) - 1) // 2]
        for number, (ts, remark) in said.items():
            seat, late = own.attempt.seats[number], ts - usual
            alike = sum(other >= ts - SLACK for other in times)
            if late <= limits["exec"] * LATE_SHARE * 1e6 + 2 * doubt.get(seat.node, 0) or alike > max(1, len(times) // 4):
                continue
            seconds = round(late / 1e6)
            reason = Text(
                f"it gave up {_span(seconds)} after the others, so it came to the call that much later (HCCL_EXEC_TIMEOUT is {limits['exec']} s)",
                f"它比其他 rank 晚 {_span(seconds, 'zh')}超时，即晚同样的时间才进入该通信算子（HCCL_EXEC_TIMEOUT 为 {limits['exec']} 秒）",
            )
            scores.add(seat, 2.0, "late", reason, remark)


def silence(own: Own, scores: Scores, waiting: set[int], early: set[int]) -> None:
    """Who reported nothing while the rest timed out; ranks nobody has logs of count too, but little."""
    seats = own.attempt.seats
    known = [seat for seat in seats if seat.known]
    quiet = [seat for seat in known if seat.number not in waiting]
    if len(waiting) < 2 or len(waiting) < len(known) / 2:
        return
    if quiet and len(quiet) <= max(1, len(known) // 4):
        for seat in quiet:
            reason = Text(
                f"it reported no timeout, while {len(waiting)} of the {len(known)} ranks with logs did",
                f"有日志的 {len(known)} 个 rank 中 {len(waiting)} 个上报了超时，而它没有",
            )
            scores.add(seat, (1.5 if seat.number in early else 2.0) / len(quiet) ** 0.5, "silence", reason)
            scores.groups.setdefault(seat.number, frozenset(one.rank for one in quiet if one.rank is not None))
    missing = [seat for seat in seats if not seat.known and seat.rank is not None]
    for seat in missing if not quiet else ():
        reason = Text(
            "all ranks with logs timed out, and the bundle has no log of it", "有日志的 rank 全部超时，而日志包中没有它的日志"
        )
        scores.add(seat, 1.2 / len(missing) ** 0.5, "missing", reason)
        scores.groups.setdefault(seat.number, frozenset(one.rank for one in missing if one.rank is not None))


def other_call(own: Own, scores: Scores) -> None:
    """Who was at another call of the group than the rest: a lower number has lagged, another operator has gone astray."""

    def compare(kind: str, name: str, words: Callable[[str, str], Text]) -> None:
        by_group: dict[str, dict[int, tuple[str, Remark]]] = defaultdict(dict)
        for remark in own.remarks:
            if remark.kind == kind and name in remark.values and (seat := _waiter(own, remark)) is not None:
                by_group[_group_of(own, remark, seat, tags)][seat.number] = remark.values[name], remark
        for said in by_group.values():
            counts = Counter(value for value, _ in said.values())
            usual, times = counts.most_common(1)[0]
            odd = [number for number, (value, _) in said.items() if value != usual]
            if len(said) < 3 or len(odd) > len(said) / 3 or times <= len(said) / 2:
                continue
            for number in odd:
                value, remark = said[number]
                lags = value.isdigit() and usual.isdigit() and int(value) < int(usual)
                points = (2.0 if lags or not value.isdigit() else 1.0) / len(odd) ** 0.5
                scores.add(own.attempt.seats[number], points, "call", words(value, usual), remark)

    tags = _tags(own)
    at = "it was at call {0} of the group while the others were at {1}"
    compare("call", "index", lambda value, usual: Text(at.format(value, usual), f"它停在通信域的第 {value} 次调用，其他 rank 在第 {usual} 次"))
    compare("watchdog", "index", lambda value, usual: Text(at.format(value, usual), f"它停在第 {value} 次集合通信，其他 rank 在第 {usual} 次"))
    for remark in own.remarks:
        if remark.kind == "task":
            remark.values.setdefault("op", remark.values["tag"].split("_")[0])
    ran = "it ran {0} while the others ran {1}"
    compare("task", "op", lambda value, usual: Text(ran.format(value, usual), f"它执行的是 {value}，其他 rank 执行的是 {usual}"))


def _group_of(own: Own, remark: Remark, seat: Seat, tags: Mapping[tuple[str, int | None], str]) -> str:
    """The group that a call was made in, as far as its process names it."""
    if group := remark.values.get("group"):
        return group
    tag = remark.values.get("tag") or tags.get((remark.node, remark.pid), "")
    return next((group for group in seat.groups if group in tag), tag.partition("_")[2])


def rdma(own: Own, scores: Scores) -> None:
    """Broken RDMA connections: the card at which most of them meet."""
    touching: dict[int, set[tuple[int, int]]] = defaultdict(set)
    shown: dict[int, Remark] = {}
    arrows: set[tuple[int, int]] = set()
    for remark in own.remarks:
        if remark.kind != "cqe":
            continue
        one = own.of(remark)
        other = own.attempt.of_address(remark.values["peer_ip"])
        if other is None and "server" in remark.values:
            other = own.attempt.of_device("", int(remark.values["device"]), remark.values["server"])
        if one is None or other is None or one is other:
            continue
        arrow = (min(one.number, other.number), max(one.number, other.number))
        arrows.add(arrow)
        for seat in (one, other):
            touching[seat.number].add(arrow)
            shown.setdefault(seat.number, remark)
    for number, own_arrows in touching.items():
        if len(arrows) > 1 and len(own_arrows) > 1 and len(own_arrows) >= 0.6 * len(arrows):
            reason = Text(
                f"{len(own_arrows)} of the {len(arrows)} RDMA connections that were given up meet at its card",
                f"{len(arrows)} 条重传超次的 RDMA 连接中有 {len(own_arrows)} 条汇聚于它的卡",
            )
            scores.add(own.attempt.seats[number], 2 * len(own_arrows) / len(arrows), "rdma", reason, shown[number])


def launcher(own: Own, scores: Scores) -> None:
    """Whom the launcher saw die, of those that were not ended by it; only whom it names as the first, where it does that."""
    named = {(remark.file_id, remark.line_no) for remark in own.remarks if remark.kind == "first-exit"}
    seen: set[int] = set()
    for remark in own.remarks:
        if remark.kind != "exit" or remark.values["code"] in _HARMLESS_EXIT:
            continue
        first = any((remark.file_id, remark.line_no - back) in named for back in range(1, SUMMARY))
        if named and not first:
            continue
        pid, local = remark.values.get("pid"), remark.values.get("local")
        seat = own.attempt.of_process(remark.node, int(pid) if pid else None)
        if seat is None and local is not None:
            seat = own.attempt.of_device(remark.node, int(local))
        if seat is not None and seat.number not in seen:
            seen.add(seat.number)
            code = remark.values["code"]
            reason = Text(f"its launcher saw its process end with code {code}", f"启动器记录其进程退出码为 {code}")
            if first:
                reason = Text(f"its launcher names it as the first that failed, with code {code}", f"启动器指明它是最先失败的进程，退出码为 {code}")
            scores.add(seat, (2.0 if first else 1.5) / len(seen), "exit", reason, remark)
