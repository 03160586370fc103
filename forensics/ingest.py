"""First pass over a bundle: every line of every member is matched against all patterns, spread over the processors.

    found = scan(bundle, Scanner.load(rules, EXTRA), on_hits=show)

Bytes go through once, at about the speed they unpack; of a line nothing is read unless a pattern matched on it. The result is the
same for every number of workers.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from forensics.archive.ledger import Lost
from forensics.clocks import FileClock, Told, settled
from forensics.feed import Divert, File, Source, Task
from forensics.moments import Moments
from forensics.nodes import Machine, Trace, name_files
from forensics.origin import Origin, of_path
from forensics.pool import Failed, Pool
from forensics.result import FirstError, Member, Note
from forensics.scan_worker import EXTRA, FEW, PER_FILE, First, Found, ScanWork, Seen
from forensics.skew import Skew, between, take_off, zones
from parsers.profile import TABLES
from rules.model import FactRow, Hit, MetricRow, Remark
from rules.scan import Scanner

__all__ = ["EXTRA", "ErrorShape", "Scan", "scan"]

LARGE = 8 << 20
"""Bytes of a bundle, as given, from which the compiled sieve of the scanner pays."""
PER_LEAF = 600
"""Hits of one leaf kept of all files; beyond, only the first FEW of each further file."""
MOST = 60_000
"""Hits kept of all leaves and files; beyond, LATE of each leaf, and FEW of a file. Bounds the memory, however many files and rules."""
LATE = 100
FIRSTS = 5_000
"""Processes whose first error is kept; where there are more, those that erred earliest."""
SHAPES = 20_000
"""Different shapes of error lines kept; the rest are counted together."""
TWINS = 400
"""Texts of one file kept to compare clocks by."""
ALL_TWINS = 100_000
"""The same of all files together."""
REMARKS = 200_000
"""Remarks on the job kept of all files; each says something that its process has not said before."""
FACTS = 100_000
METRICS = 1_000_000


class Input(Protocol):
    """What is read of a bundle (forensics.bundle.Bundle has it)."""

    @property
    def size(self) -> int: ...
    @property
    def lost(self) -> list[Lost]: ...
    def members(self) -> Iterator[Source]: ...


class ErrorShape(msgspec.Struct):
    """Error lines that look alike: `leaves` are those of the rules that matched on them, none for lines nothing matched on."""

    leaves: tuple[int, ...]
    shape: str
    count: int
    file_id: int
    file: str
    line: int
    text: str
    ts: int | None = None


class Scan(msgspec.Struct):
    """All that the first pass knows. Times are UTC, line numbers count from 1 in the member."""

    hits: list[Hit]
    """In order of file and line."""
    inside: dict[tuple[int, int], int]
    """(file, line) of hits on a later line of a record -> the line on which that begins."""
    counts: dict[int, int]
    """Leaf -> lines it matched on, kept or not."""
    files: list[Member]
    """Members in the order they were read, then what was lost without being read."""
    facts: list[FactRow]
    metrics: list[MetricRow]
    errors: list[ErrorShape]
    error_lines: int
    first_errors: list[FirstError]
    """One for each process, in order of time."""
    lines: int
    unpacked: int
    first: int | None
    last: int | None
    clocks: dict[int, FileClock]
    cut: set[int]
    """Leaves whose regex ran into its time limit somewhere."""
    notes: list[Note]
    remarks: list[Remark] = []
    """What lines say about the job, in order of file and line."""
    machines: list[Machine] = []
    skews: dict[str, Skew] = {}
    """Of each node whose clock was compared with others."""
    moments: list[tuple[int, int, int]] = []
    """(file, UTC, error lines it stands for): when error lines were printed."""
    errors_of: dict[int, int] = {}
    """File -> its error lines."""


def scan(
    bundle: Input,
    scanner: Scanner,
    workers: int | None = None,
    zone: int | None = None,
    on_hits: Callable[[Sequence[Hit]], None] | None = None,
    on_progress: Callable[[int, str], None] | None = None,
    divert: Divert | None = None,
) -> Scan:
    """Scan all members. `on_hits` gets hits block by block, with printed times, long before the end; `on_progress` the number of
    lines so far and the member at hand. `zone`: seconds east of UTC of wall clocks that do not say theirs, None: found out.
    `divert` reads profiles (see `feed.Feed`)."""
    full = mmap.mmap(-1, max(1, len(scanner.leaves)))
    if bundle.size >= LARGE:
        scanner.sharpen()
    pool: Pool[list[Seen]] = Pool(bundle.members(), lambda _: ScanWork(scanner, full), workers, _numpy, divert=divert)
    merge = _Merge(pool.feed.files, full, getattr(bundle, "roots", ()))
    for task, result in pool.results():
        if isinstance(result, Failed):
            merge.failed(task, result.reason)
            continue
        fresh = merge.add(result)
        if on_hits is not None and fresh:
            on_hits(fresh)
        if on_progress is not None:
            on_progress(merge.lines, pool.feed.files[-1].path if pool.feed.files else "")
    return merge.result(bundle.lost, zone)


def _numpy() -> None:
    """Imported once, before forking: large blocks are searched for line ends with it."""
    import numpy  # noqa: F401


class _State(msgspec.Struct, gc=False):
    """What is known of one file so far; of a million files this lies in memory for each."""

    file: File
    told: Told
    device: int | None
    pid: int | None
    root: str = ""
    """The bundle it is from, where there are several."""
    hosts: set[str] | None = None
    lines: int = 0
    open_end: bool = False
    failed: str = ""


class _Merge:
    """Puts together what the segments showed; they come in order."""

    def __init__(self, files: list[File], full: mmap.mmap, roots: Sequence[str] = ()):
        self.files, self.full = files, full
        self.roots = sorted(roots, key=len, reverse=True)
        self.states: list[_State] = []
        self.found: list[Found] = []
        self.totals: dict[int, int] = {}
        self.counts: dict[int, int] = {}
        self.errors: dict[tuple[tuple[int, ...], bytes], tuple[ErrorShape, str]] = {}
        self.error_lines = 0
        self.firsts: dict[tuple[int, bytes], tuple[First, int, int]] = {}
        self.facts: list[FactRow] = []
        self.metrics: list[tuple[MetricRow, str]] = []
        self.known: set[tuple[str, str, str, int | None]] = set()
        self.remarks: list[tuple[Remark, str]] = []
        self.said: set[tuple[object, ...]] = set()
        self.cut: set[int] = set()
        self.lines = 0
        self.twins = 0
        self.notes: list[Note] = []
        self.moments = Moments()
        # of the file at hand
        self.at = -1
        self.origin = Origin()
        self.kept: dict[int, int] = {}
        self.clocks: dict[str, int] = {}

    def _state(self, file_id: int) -> _State:
        while len(self.states) <= file_id:
            file = self.files[len(self.states)]
            origin = of_path(file.path)
            told = Told(file.file_id, origin.node, "none", named=origin.named, mtime=file.mtime)
            root = next((root for root in self.roots if file.path.startswith(f"{root}/")), "")
            self.states.append(_State(file, told, origin.device, origin.pid, root))
        return self.states[file_id]

    def _turn(self, file_id: int) -> _State:
        """The state of the file whose segments come now."""
        state = self._state(file_id)
        if file_id != self.at:
            self._leave()
            self.at, self.origin = file_id, of_path(state.file.path)
        return state

    def _leave(self) -> None:
        """All segments of the file at hand were seen."""
        if self.at >= 0 and self.clocks and (told := self.states[self.at].told).clock == "none":
            told.clock = max((count, name) for name, count in self.clocks.items())[1]
        self.kept, self.clocks = {}, {}

    def failed(self, task: Task, reason: str) -> None:
        for segment in task.segments:
            self._state(segment.file_id).failed = reason

    def add(self, seen: list[Seen]) -> list[Hit]:
        """Take in one block; returns the hits that were kept of it."""
        fresh = []
        for one in seen:
            state = self._turn(one.segment.file_id)
            for found in one.found:
                hit = found.hit
                self._place(hit, state, one)
                if self._keeps(hit):
                    self.found.append(found)
                    fresh.append(hit)
            for leaf, count in one.counts.items():
                self.counts[leaf] = self.counts.get(leaf, 0) + count
            self._errors(one, state)
            self.moments.add(state.file.file_id, one.errors, one.moments)
            self._facts(one, state)
            self._remarks(one, state)
            self._clock(one, state)
            self.cut.update(one.cut)
            state.lines += one.lines
            state.open_end = one.open_end
            self.lines += one.lines
        return fresh

    def _place(self, hit: Hit, state: _State, seen: Seen) -> None:
        """Numbers of the member instead of those of the segment, and what its path knows."""
        origin = self.origin
        hit.file = state.file.path
        hit.line_no += state.lines + 1
        hit.byte_offset += seen.segment.base
        hit.node = origin.node or hit.node
        own = state.file.kind == "device" and origin.pid is not None  # lines of a card's helpers number processes and cards in their own way
        if own:
            hit.pid = origin.pid
        if hit.device is None or (own and origin.device is not None):
            hit.device = origin.device
        if hit.rank is None:
            hit.rank = origin.rank
        if hit.pid is None:
            hit.pid = origin.pid

    def _keeps(self, hit: Hit) -> bool:
        total = self.totals.get(hit.leaf, 0)
        full = len(self.found) >= MOST
        if full and total >= LATE:
            return False
        kept = self.kept.get(hit.leaf, 0)
        if kept >= (PER_FILE if total < PER_LEAF and not full else FEW):
            return False
        self.kept[hit.leaf] = kept + 1
        self.totals[hit.leaf] = total + 1
        if total + 1 == PER_LEAF:
            self.full[hit.leaf] = 1
        return True

    def _errors(self, seen: Seen, state: _State) -> None:
        self.error_lines += seen.errors
        for shape in seen.shapes:
            key = shape.leaves, shape.key
            known = self.errors.get(key)
            if known is None and len(self.errors) >= SHAPES:
                key = shape.leaves, b""
                known = self.errors.get(key)
            if known is not None:
                known[0].count += shape.count
                continue
            name = shape.key.decode("utf-8", "replace")
            row = ErrorShape(shape.leaves, name, shape.count, state.file.file_id, state.file.path, state.lines + shape.line + 1, shape.text, shape.ts)
            self.errors[key] = row, shape.clock
        for first in seen.firsts:
            self.firsts.setdefault((state.file.file_id, first.key), (first, state.file.file_id, state.lines + first.line + 1))
        if len(self.firsts) > 2 * FIRSTS:
            earliest = sorted(self.firsts.items(), key=lambda item: item[1][0].ts if item[1][0].ts is not None else 1 << 62)
            self.firsts = dict(earliest[:FIRSTS])

    def _facts(self, seen: Seen, state: _State) -> None:
        origin = self.origin
        for fact, text in seen.facts:
            node = origin.node or fact.node
            key = (fact.name, fact.value, f"{state.root}/{node}", fact.device)
            if key in self.known or len(self.known) >= FACTS:
                continue
            self.known.add(key)
            line = state.lines + fact.line_no + 1
            self.facts.append(FactRow(fact.name, fact.value, node, fact.device, state.file.file_id, state.file.path, line, text))
        for metric in seen.metrics[: max(0, METRICS - len(self.metrics))]:
            device = metric.device if metric.device is not None else origin.device
            line = state.lines + metric.line_no + 1
            row = MetricRow(
                metric.name, metric.value, metric.unit, origin.node or metric.node, device, metric.ts, metric.label, state.file.file_id,
                state.file.path, line,
            )  # fmt: skip
            self.metrics.append((row, "local"))

    def _remarks(self, seen: Seen, state: _State) -> None:
        for one in seen.noted:
            head, remark = one.record, one.remark
            own = state.file.kind == "device" and self.origin.pid is not None
            pid = head.pid if head.pid is not None and not own else self.origin.pid
            key = (state.file.file_id, pid, remark.kind, *remark.values.items())
            if key in self.said or len(self.said) >= REMARKS:
                continue
            self.said.add(key)
            device = head.device if head.device is not None and not own else self.origin.device
            rank = head.rank if head.rank is not None else self.origin.rank
            row = Remark(
                remark.kind, remark.values, state.file.file_id, state.file.path, state.lines + one.line + 1, one.text, head.ts,
                self.origin.node or head.node, head.process, pid, head.tid, device, rank,
            )  # fmt: skip
            self.remarks.append((row, head.clock if head.ts is not None else "none"))

    def _clock(self, seen: Seen, state: _State) -> None:
        told = state.told
        if seen.host and state.file.kind != "bmc" and len(state.hosts or ()) < 8:  # a board's controller has a name of its own
            state.hosts = {*(state.hosts or ()), seen.host}
        if seen.clock != "none":
            self.clocks[seen.clock] = self.clocks.get(seen.clock, 0) + 1
        if seen.first is not None and told.first is None:
            told.first, told.clock = seen.first, seen.first_clock
        if seen.last is not None and seen.first_clock == told.clock:
            told.last = seen.last
        for key, ts in seen.twins.items():
            if told.twins is None:
                told.twins = {}
            if key in told.twins:
                if told.twins[key] != ts:
                    told.twins[key] = -1
            elif len(told.twins) < TWINS and self.twins < ALL_TWINS:
                told.twins[key] = ts
                self.twins += 1
        if seen.anchors:
            told.anchors = [*(told.anchors or ()), *seen.anchors][:200]
        if state.pid is None:
            state.pid = seen.pid

    # ------------------------------------------------------------ the end

    def result(self, lost: Sequence[Lost], zone: int | None) -> Scan:
        for file in self.files:
            self._state(file.file_id)
        self._leave()
        machines = self._name()
        stated = zones(self.remarks)
        told = []
        for state in self.states:
            one = state.told
            one.zones = (stated[one.file_id],) if one.file_id in stated else ()
            if one.twins:
                one.twins = {key: ts for key, ts in one.twins.items() if ts >= 0}
            if state.pid is not None and state.file.kind in ("plog", "device"):
                one.process = str(state.pid)
            told.append(one)
        clocks = settled(told, zone)
        skews = self._compare(clocks)
        for found in self.found:
            found.hit.ts = clocks[found.hit.file_id].utc(found.hit.ts, found.clock)
        shapes = []
        for row, clock in self.errors.values():
            row.ts = clocks[row.file_id].utc(row.ts, clock)
            shapes.append(row)
        metrics = [msgspec.structs.replace(row, ts=clocks[row.file_id].utc(row.ts, clock)) for row, clock in self.metrics]
        members = self._members(clocks, lost)
        times = [ts for member in members for ts in (member.first, member.last) if ts is not None]
        return Scan(
            [found.hit for found in self.found],
            {(found.hit.file_id, found.hit.line_no): found.hit.line_no - found.above for found in self.found if found.above},
            self.counts, members, self.facts, metrics, shapes, self.error_lines, self._first_errors(clocks),
            sum(member.lines for member in members), sum(member.bytes for member in members), min(times, default=None), max(times, default=None),
            clocks, self.cut, self.notes, [remark for remark, _ in self.remarks], machines, skews,
            self.moments.dated(clocks), self.moments.errors_of,
        )  # fmt: skip

    def _name(self) -> list[Machine]:
        """Give every file, and what was found in it, the machine it is from."""
        servers: dict[int, set[str]] = {}
        for remark, _ in self.remarks:
            if remark.kind == "join" and (server := remark.values.get("server")):
                servers.setdefault(remark.file_id, set()).add(server)
        hosts: dict[int, set[str]] = {}
        for fact in self.facts:
            if fact.name in ("env.HOSTNAME", "os.hostname"):
                hosts.setdefault(fact.file_id, set()).add(fact.value)
        traces = [
            Trace(
                state.told.file_id, state.root, state.told.node, state.file.path, state.hosts or set(),
                servers.get(state.told.file_id, set()), hosts.get(state.told.file_id, set()), state.pid,
            )
            for state in self.states
        ]  # fmt: skip
        names, machines = name_files(traces)
        if any(names.get(state.told.file_id, "") != state.told.node for state in self.states):
            for state in self.states:
                state.told.node = names.get(state.told.file_id, state.told.node)
            for found in self.found:
                found.hit.node = names.get(found.hit.file_id) or found.hit.node
            for remark, _ in self.remarks:
                remark.node = names.get(remark.file_id) or remark.node
            self.facts = [msgspec.structs.replace(row, node=names.get(row.file_id) or row.node) for row in self.facts]
            self.metrics = [(msgspec.structs.replace(row, node=names.get(row.file_id) or row.node), clock) for row, clock in self.metrics]
        return machines

    def _compare(self, clocks: dict[int, FileClock]) -> dict[str, Skew]:
        """Bring remarks to UTC, see by them how far the clocks of the nodes are apart, and have all clocks take that off."""
        for remark, clock in self.remarks:
            remark.ts = clocks[remark.file_id].utc(remark.ts, clock)
        nodes = {state.told.file_id: state.told.node for state in self.states if state.told.node}
        skews = between((remark for remark, _ in self.remarks), sorted(set(nodes.values())))
        shifts = take_off(skews, clocks, nodes)
        for remark, _ in self.remarks:
            if remark.ts is not None:
                remark.ts -= shifts.get(nodes.get(remark.file_id, ""), 0)
        return skews

    def _first_errors(self, clocks: dict[int, FileClock]) -> list[FirstError]:
        best: dict[tuple[str, int | None, str, int], tuple[tuple[int, int, int], FirstError]] = {}
        for first, file_id, line in self.firsts.values():
            state = self.states[file_id]
            ts = clocks[file_id].utc(first.ts, first.clock)
            node = state.told.node or first.node
            pid = first.pid if first.pid is not None else of_path(state.file.path).pid
            found = FirstError(node, pid, first.process, ts, state.file.path, line, first.text)
            key = (node, pid, first.process, -1 if pid is not None else file_id)
            order = (ts if ts is not None else 1 << 62, file_id, line)
            if key not in best or order < best[key][0]:
                best[key] = order, found
        return [found for _, found in sorted(best.values(), key=lambda item: item[0])]

    def _members(self, clocks: dict[int, FileClock], lost: Sequence[Lost]) -> list[Member]:
        members: list[Member] = []
        by_path: dict[str, Member] = {}
        for state in self.states:
            file, told, clock = state.file, state.told, clocks[state.file.file_id]
            lines = file.lines if file.kind in TABLES else state.lines + state.open_end
            binary = file.kind == "binary"
            known = not binary and file.kind != "text"
            status = "binary" if binary else "read" if known or not lines else "unrecognised"
            row = Member(
                file.file_id, file.path, told.node, state.device, file.kind, file.kind if known else "", file.bytes, lines,
                lines if known else 0, "" if binary else file.encoding, told.clock, clock.offset, clock.utc(told.first, told.clock),
                clock.utc(told.last if told.last is not None else told.first, told.clock), status, partial=False,
            )  # fmt: skip
            if file.cut_lines:
                row.note = f"{file.cut_lines} lines were too long to be kept whole: their begin and end were"
                row.note_zh = f"{file.cut_lines} 行过长，仅保留了开头和结尾"
            if state.failed:
                row.status, row.partial = "damaged", True
                row.note, row.note_zh = f"a part could not be scanned: {state.failed}", f"部分内容未能扫描：{state.failed}"
            members.append(row)
            by_path[file.path] = row
        for loss in lost:
            member = by_path.get(loss.path)
            if member is None:
                by_path[loss.path] = Member(
                    len(members), loss.path, of_path(loss.path).node, None, "", "", 0, 0, 0, "", "none", None, None, None, loss.status, loss.note,
                    loss.note_zh, loss.partial,
                )  # fmt: skip
                members.append(by_path[loss.path])
                continue
            if loss.partial or member.status == "read":
                member.status, member.partial = loss.status, member.partial or loss.partial
            member.note = f"{member.note}; {loss.note}" if member.note else loss.note
            member.note_zh = f"{member.note_zh}；{loss.note_zh}" if member.note_zh else loss.note_zh
        return members
