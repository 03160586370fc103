"""What is done with one block in the first pass: match all patterns, and read the heads of those records only that something matched.

Line numbers count from 0 in the segment here, byte offsets from its begin; the main process, which sees the segments in order,
turns them into those of the member. Printed times stay as printed, with their clock.
"""

from __future__ import annotations

import mmap
import re
import string
from collections.abc import Sequence

import msgspec

from forensics import transcode
from forensics.feed import Block, Segment, Task
from forensics.moments import sampled
from parsers import collective, hccl, kernel_log, registry
from parsers.base import clean
from parsers.encoding import decode
from parsers.environment import FACT_PATTERNS
from parsers.rows import Fact, Metric, Record
from parsers.settle import twin_key
from rules.model import Hit
from rules.scan import ExtraPattern, LineHit, Marked, Scanner

BACK = 50
"""Lines above a hit that are searched for the head of its record."""
TEXT = 2000
"""Characters kept of a line."""
LINE_HEAD, LINE_TAIL = 64 << 10, 4 << 10
PIECE = 512 << 10
SHAPES = 2000
"""Different shapes of error lines kept of one segment; the rest count as one."""
SHOWN = 50_000
"""Shapes whose text a process remembers to have given."""
FIRSTS = 256
"""Processes of one segment whose first error is kept."""
DATED = 100
"""Of those, how many have the time of their first line read."""
PER_FILE = 200
"""Hits of one leaf kept of one file."""
FEW = 4
"""Those kept of each further file once there are enough of a leaf (see `ScanWork`)."""
TWINS = 24
"""Texts of one segment by which its clock may be compared with other files'."""
NOTED = 5000
"""Remarks on the job kept of one segment."""
ENDS = 20
"""Lines that are tried at either end of a segment for a time."""
WHOLE_TEXT = 4 << 20
SOME_TEXT = 128 << 10
"""Bytes of environment texts, and of the begin of other texts, that facts and numbers are looked for in."""
TABLES = frozenset({"environment", "npu-smi", "hccn-tool", "bbox"})
LOGS = frozenset({"plog", "device", "device-os", "firmware", "kernel", "mindie", "cluster", "bmc"})
"""Kinds whose facts the patterns find."""

_ERROR = (
    r"\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|^(?:[\w.]{1,120}\.)?[A-Z]\w{1,60}(?:Error|Exception): "
    r"|^E[0-9A-Z]\d{4}[:\[]|Segmentation fault|core dumped|terminate called|Call Trace:|Kernel panic|Out of memory: Kill"
)
_ERROR_TEXTS = (
    "ERROR", "CRITICAL", "FATAL", "Traceback (most recent", "Exception: ", "Segmentation fault", "core dumped", "terminate called", "Call Trace:",
    "Kernel panic", "Out of memory: Kill", *(f"\nE{first}{number:02d}" for first in string.digits + string.ascii_uppercase for number in range(100)),
)  # fmt: skip
_JOIN = (
    r"HCCL\([^\n]*(?:SetupAgent |HcclCommInitRootInfo|hcclCommInitInfo|hcom init by file|RootInfoDetect|HcclCommInitClusterInfo)"
    r"|HCCL\([^\n]*\|[^|\n]*\|[^|\n]*\|[^|\n]*\|[^|\n]*\|"
    rf"|{collective.PATTERN}"
)
_JOIN_TEXTS = (
    "SetupAgent ", "HcclCommInitRootInfo", "hcclCommInitInfo", "hcom init by file", "RootInfDetect", "HcclCommInitClusterInfo", "  |", "|  ",
)  # fmt: skip
EXTRA: tuple[ExtraPattern, ...] = (
    ExtraPattern("error", _ERROR, texts=_ERROR_TEXTS),
    ExtraPattern("hccl", _JOIN, capture=True, texts=_JOIN_TEXTS),
    *(ExtraPattern(name, pattern, capture=True) for name, pattern in FACT_PATTERNS),
)
"""What the scanner has to look for besides the rules: error lines, ranks, facts."""
ERROR_MARK, JOIN_MARK = -1, -2

_PLOG_SITE = re.compile(rb"\[[A-Z]+\] ?([A-Z0-9_]+)\((-?\d+, ?[^)\n]*)\): ?[-0-9:. ]+(\[[^\]\n]*:\d+\])?")
_PROCESS = re.compile(rb"\(([\w.:]{1,80}(?: rank=\d+)? pid=\d+)")
_VARIABLE = re.compile(rb"0x[0-9a-fA-F]+|\d+")
_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|P[^\x1b\n]*(?:\x1b\\)?|[@-Z\\-_c])?")


Name = tuple[tuple[int, ...], bytes]
"""Of a shape: the leaves that matched, and what the lines have in common."""


class Found(msgspec.Struct):
    """A rule's line: `hit` with printed time, and the clock that printed it."""

    hit: Hit
    clock: str
    above: int = 0
    """Lines between the head of the record and the line."""


class Shape(msgspec.Struct):
    """A group of error lines that look alike, by the leaves that matched on them."""

    leaves: tuple[int, ...]
    key: bytes
    count: int
    line: int
    text: str
    """Of its first line; empty, with no time, where an earlier segment showed it."""
    ts: int | None
    clock: str


class First(msgspec.Struct):
    """The first error line of a process in this segment."""

    key: bytes
    node: str
    pid: int | None
    process: str
    ts: int | None
    clock: str
    line: int
    text: str


class Noted(msgspec.Struct):
    """What a line says about the job: a remark of `parsers.collective`, with the head of its record and its printed time."""

    remark: collective.Remark
    line: int
    text: str
    record: Record


class Seen(msgspec.Struct):
    """What one segment showed."""

    segment: Segment
    lines: int
    open_end: bool
    """Whether its last line has no line end."""
    found: list[Found]
    counts: dict[int, int]
    """Rule leaf -> lines it matched on, kept or not."""
    errors: int
    shapes: list[Shape]
    firsts: list[First]
    facts: list[tuple[Fact, str]]
    """With the text of its line."""
    metrics: list[Metric]
    clock: str
    """Clock of most records that were read."""
    first: int | None
    last: int | None
    first_clock: str
    pid: int | None
    """Of the first records hit that tell one."""
    twins: dict[str, int]
    anchors: list[tuple[int, str, int]]
    cut: list[int]
    """Leaves whose regex ran into its time limit."""
    moments: list[tuple[int, str, int]] = []
    """(printed time, its clock, error lines it stands for), of a sample of the error lines."""
    noted: list[Noted] = []
    host: str = ""
    """The machine that its first or last line with a host name is from."""


class ScanWork:
    """The work of one process (see `pool.Work`).

    Only what can matter is worked out. `full` is memory that all processes share, a byte for each leaf: the one that puts results
    together, in the order of the blocks, sets it once it keeps no more than FEW further hits of a file. That only ever becomes
    true, and of blocks before the one at hand, so it does not change what is kept when a process comes to see it."""

    def __init__(self, scanner: Scanner, full: bytearray | mmap.mmap | None = None):
        self.scanner = scanner
        self.full = bytearray(len(scanner.leaves)) if full is None else full
        self.shown: set[Name] = set()
        """Shapes whose text and time were given before."""
        self._file = -1
        self._sent: dict[int, int] = {}

    def work(self, task: Task, block: Block) -> list[Seen]:
        return [_Segment(self, segment, block).seen() for segment in task.segments]

    def finish(self) -> None:
        return None

    def sent(self, file_id: int) -> dict[int, int]:
        """Hits of each leaf that this process has given of a file so far."""
        if file_id != self._file:
            self._file, self._sent = file_id, {}
        return self._sent


def _unclean(block: Block, start: int, end: int) -> bool:
    """Whether there are NULs or terminal sequences; a piece at a time, so that the second search finds it in the processor's cache."""
    find = block.find
    for at in range(start, end, PIECE):
        stop = min(at + PIECE, end)
        if find(b"\0", at, stop) >= 0 or find(b"\x1b", at, stop) >= 0:
            return True
    return False


class _Groups:
    """Error lines of a segment by their shapes."""

    def __init__(self) -> None:
        self.shapes: dict[Name, Shape] = {}
        self.begun: list[tuple[Shape, int, int]] = []
        """With the bytes of the first line of each."""
        self.firsts: dict[bytes, First] = {}

    def add(self, name: Name, line: int, start: int, end: int, count: int) -> None:
        """Count lines to their shape, or to that of all further ones where there are too many."""
        shape = self.shapes.get(name)
        if shape is None and len(self.shapes) >= SHAPES:
            name = name[0], b""
            shape = self.shapes.get(name)
        if shape is not None:
            shape.count += count
        elif len(self.shapes) < 2 * SHAPES:
            shape = self.shapes[name] = Shape(name[0], name[1], count, line, "", None, "none")
            self.begun.append((shape, start, end))


class _Segment:
    def __init__(self, of: ScanWork, segment: Segment, block: Block):
        self.of, self.scanner, self.segment = of, of.scanner, segment
        self.record_of = registry.parser(segment.kind).record
        self.heads: dict[int, tuple[Record | None, int]] = {}
        """By the begin of a line: the record it belongs to, and how many lines above that begins."""
        self.clocks: dict[str, int] = {}
        self.raw = memoryview(block)[segment.start : segment.end]
        # what is matched: buffer[base:limit]; `data` is the same as a view
        self.buffer: Block | bytes = block
        self.base, self.limit = segment.start, segment.end
        self.breaks: list[int] | None = None
        if _unclean(block, self.base, self.limit):
            raw = bytes(self.raw)
            self.breaks = [match.start() for match in re.finditer(b"\n", raw)]
            self.buffer = _ANSI.sub(b"", raw.replace(b"\0", b""))
            self.base, self.limit = 0, len(self.buffer)
        self.data = memoryview(self.buffer)[self.base : self.limit]

    def seen(self) -> Seen:
        found = self.scanner.scan(self.data, len(self.data))
        seen = Seen(
            self.segment,
            found.lines,
            len(self.raw) > 0 and self.raw[-1] != 10,
            [],
            {},
            0,
            [],
            [],
            [],
            [],
            "none",
            None,
            None,
            "none",
            None,
            {},
            [],
            sorted(found.cut),
        )
        whole = self.segment.first and self.segment.last
        tables = self.segment.kind in TABLES or (self.segment.kind not in LOGS and self.segment.first)
        sent, here, full = self.of.sent(self.segment.file_id), dict[int, int](), self.of.full
        for line in found.hits:
            if line.leaf >= 0:
                count = here[line.leaf] = here.get(line.leaf, 0) + 1
                if count <= FEW:
                    seen.found.append(self._found(line))
                    self._counted(self.heads[line.start][0], seen)
                elif not full[line.leaf] and sent.get(line.leaf, 0) + count <= PER_FILE:
                    seen.found.append(self._found(line))
            elif line.leaf == JOIN_MARK:
                self._join(line.line, line.start, line.end, seen)
            elif not (whole and tables and len(self.raw) <= SOME_TEXT):
                self._fact(line.leaf, line.line, line.start, line.end, line.captures, seen)
        for leaf, count in here.items():
            sent[leaf] = sent.get(leaf, 0) + count
        seen.counts = {leaf: count for leaf, count in found.counts.items() if leaf >= 0}
        seen.errors = sum(one.count for one in found.marked)
        self._errors(found.marked, seen)
        seen.moments = sampled(found.marked, len(self.raw), self._head)
        self._ends(seen)
        if tables and len(self.raw):
            self._tables(seen)
        seen.clock = max(self.clocks, key=lambda name: (self.clocks[name], name), default="none")
        return seen

    # ------------------------------------------------------------ lines and their heads

    def _text(self, start: int, end: int) -> str:
        start, end = start + self.base, end + self.base
        if end - start > LINE_HEAD + LINE_TAIL:
            raw = self.buffer[start : start + LINE_HEAD] + b" ... " + self.buffer[end - LINE_TAIL : end]
        else:
            raw = self.buffer[start:end]
        return clean(raw.decode("ascii") if raw.isascii() else decode(raw, "utf-8"))

    def _head(self, start: int, end: int) -> tuple[Record | None, str, int]:
        """The record that the line at `start` belongs to, searched upwards; the line; and how many lines above the record begins."""
        text = self._text(start, end)
        known = self.heads.get(start)
        if known is not None:
            return known[0], text, known[1]
        record = self.record_of(text[:LINE_HEAD])
        at, above = start, 0
        while record is None and at > 0 and above < BACK:
            stop = at - 1
            at, above = self._line_start(stop), above + 1
            if at in self.heads:
                record, more = self.heads[at]
                above += more
                break
            record = self.record_of(self._text(at, stop)[:LINE_HEAD])
        else:
            if record is not None and above:
                self.heads[at] = record, 0
        if record is None:
            above = 0
        self.heads[start] = record, above
        return record, text, above

    def _line_start(self, stop: int) -> int:
        """Begin of the line that ends at `stop`."""
        at = self.buffer.rfind(b"\n", self.base, self.base + stop)
        return at + 1 - self.base if at >= 0 else 0

    def _line_stop(self, at: int) -> int:
        """End of the line that begins at `at`."""
        stop = self.buffer.find(b"\n", self.base + at, self.limit)
        return stop - self.base if stop >= 0 else self.limit - self.base

    def _offset(self, line: int, start: int) -> int:
        """Where a line begins in the member, in bytes from the segment's begin."""
        if self.breaks is not None:
            start = self.breaks[line - 1] + 1 if line else 0
        if self.segment.encoding in transcode.WIDE:
            return transcode.raw_size(self.raw[:start], self.segment.encoding)
        return start

    def _counted(self, record: Record | None, seen: Seen) -> None:
        """Have a record speak for the clock and the process of its file."""
        if record is not None and record.ts is not None:
            self.clocks[record.clock] = self.clocks.get(record.clock, 0) + 1
        if record is not None and seen.pid is None:
            seen.pid = record.pid

    def _found(self, line: LineHit) -> Found:
        record, text, above = self._head(line.start, line.end)
        kind = self.segment.kind
        hit = Hit(line.leaf, self.segment.file_id, "", line.line, self._offset(line.line, line.start), text[:TEXT], line.captures, kind)
        if record is None:
            return Found(hit, "none")
        hit.grammar, hit.ts, hit.severity = record.grammar, record.ts, record.severity
        hit.module, hit.process, hit.node = record.module, record.process, record.node
        hit.pid, hit.tid, hit.device, hit.rank = record.pid, record.tid, record.device, record.rank
        return Found(hit, record.clock, above)

    def _twin(self, record: Record, seen: Seen) -> None:
        if record.ts is not None and len(seen.twins) < TWINS and (key := twin_key(record.message)):
            seen.twins[key] = record.ts if seen.twins.get(key, record.ts) == record.ts else -1

    # ------------------------------------------------------------ errors

    def _errors(self, marked: Sequence[Marked], seen: Seen) -> None:
        """Group error lines by call site, or by their text but for its numbers, and find the first of each process."""
        groups = _Groups()
        data = self.data
        for one in marked:
            line, start, end = one.line, one.start, one.end
            site = _PLOG_SITE.match(data, start, end)
            if site is not None and site[3] is not None:
                key, process = site[1] + site[3], site[2]
            else:
                raw = bytes(data[start : min(end, start + 200)])
                who = _PROCESS.match(raw) if raw[:1] == b"(" else None
                key, process = _VARIABLE.sub(b"#", raw), site[2] if site is not None else who[1] if who else b""
            groups.add((tuple(leaf for leaf in one.matched if leaf >= 0), key), line, start, end, one.count)
            if process not in groups.firsts and len(groups.firsts) < FIRSTS:
                record, text, _ = self._head(start, end)
                self._counted(record, seen)
                if record is None:
                    groups.firsts[process] = First(process, "", None, "", None, "none", line, text[:TEXT])
                else:
                    groups.firsts[process] = First(
                        process, record.node, record.pid, record.process, record.ts, record.clock, line, text[:TEXT]
                    )  # fmt: skip
        for number, (shape, start, end) in enumerate(groups.begun):
            self._show(shape, start, end, number < DATED)
            if number < DATED and shape.count == 1 and len(seen.twins) < TWINS:
                record, _, _ = self._head(start, end)
                self._counted(record, seen)
                if record is not None:
                    self._twin(record, seen)
        seen.shapes, seen.firsts = list(groups.shapes.values()), list(groups.firsts.values())

    def _show(self, shape: Shape, start: int, end: int, dated: bool) -> None:
        """Give a shape its text and time, unless this process did before."""
        name = shape.leaves, shape.key
        if name in self.of.shown:
            return
        if len(self.of.shown) < SHOWN:
            self.of.shown.add(name)
        if dated:
            record, text, _ = self._head(start, end)
            if record is not None:
                shape.ts, shape.clock = record.ts, record.clock
        else:
            text = self._text(start, end)
        shape.text = text[:TEXT]

    # ------------------------------------------------------------ facts

    def _fact(self, leaf: int, line: int, start: int, end: int, captures: dict[str, str], seen: Seen) -> None:
        value = captures.get("value", "").strip()
        if value:
            record, text, _ = self._head(start, end)
            fact = Fact(self.scanner.extra[-1 - leaf].name, value, line, record.node if record else "", record.device if record else None)
            seen.facts.append((fact, text[:TEXT]))

    def _join(self, line: int, start: int, end: int, seen: Seen) -> None:
        text = self._text(start, end)
        for fact in hccl.extract(text).facts:
            seen.facts.append((msgspec.structs.replace(fact, line_no=line), text[:TEXT]))
        if len(seen.noted) < NOTED and (remark := collective.remark(text)) is not None:
            seen.noted.append(Noted(remark, line, text[:TEXT], self._head(start, end)[0] or Record("")))

    def _tables(self, seen: Seen) -> None:
        limit = WHOLE_TEXT if self.segment.kind in TABLES else SOME_TEXT
        raw = bytes(self.raw[:limit])
        if len(self.raw) > limit:
            raw = raw[: raw.rfind(b"\n") + 1]
        lines = [clean(line.decode("ascii") if line.isascii() else decode(line, "utf-8")) for line in raw.split(b"\n")]
        document = registry.extract("\n".join(lines), self.segment.kind)
        for fact in document.facts:
            at = max(fact.line_no - 1, 0)
            seen.facts.append((msgspec.structs.replace(fact, line_no=at), lines[at][:TEXT] if at < len(lines) else ""))
        seen.metrics = [msgspec.structs.replace(metric, line_no=max(metric.line_no - 1, 0)) for metric in document.metrics]

    # ------------------------------------------------------------ times

    def _ends(self, seen: Seen) -> None:
        """The first and the last time of the segment, and lines that print wall time and uptime together."""
        size = len(self.data)
        at = 0
        for _ in range(ENDS):
            if at >= size:
                break
            stop = self._line_stop(at)
            record = self._timed(at, stop, seen)
            if record is not None:
                seen.first, seen.first_clock = record.ts, record.clock
                break
            at = stop + 1
        stop = size - 1 if size and self.data[size - 1] == 10 else size
        for _ in range(ENDS):
            if stop <= 0:
                break
            at = self._line_start(stop)
            record = self._timed(at, stop, seen)
            if record is not None and (seen.first is None or record.clock == seen.first_clock):
                seen.last = record.ts
                break
            stop = at - 1

    def _timed(self, start: int, stop: int, seen: Seen) -> Record | None:
        text = self._text(start, stop)[:LINE_HEAD]
        if self.segment.kind == "kernel" and (anchor := kernel_log.anchor(text)) is not None:
            seen.anchors.append(anchor)
        record = self.record_of(text)
        if record is None or record.ts is None:
            return None
        seen.host = seen.host or record.node
        self.clocks[record.clock] = self.clocks.get(record.clock, 0) + 1
        return record
