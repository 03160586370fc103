"""Second pass over a bundle: every record of every member, as rows in Parquet parts beside the case's database.

    build(case, bundle.reopen(), scan.clocks)

Each process writes one part, a row group for each block. Rows are the same for every number of processes; only the part they lie in
may differ. Heavy imports happen here and not before: by now the report is out.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forensics import transcode
from forensics.case import Case
from forensics.clocks import UNTRUE, FileClock
from forensics.errors import CaseError
from forensics.feed import Block, Segment, Source, Task, cut
from forensics.origin import of_path
from forensics.pool import Failed, Pool
from forensics.result import Member, Note
from forensics.tables import EVENTS
from parsers import columns, registry
from parsers.clock import DAY, SECOND
from parsers.columns import NONE, Columns, Ints, Rows

COMPILED_FROM = 12 << 20
"""Bytes of text from which the compiled parser is worth its import, and from which it is worth its compilation, once per installation."""
COMPILE_FROM = 150 << 20

ROWS = 100_000
"""Rows that are written at once, from which a row group is made."""
PIECE = 256 << 10
PART = 4_000_000
"""Rows from which a process begins a further part: a writer remembers where each page of a part lies until that is closed."""
SHORT = 16
"""Bytes of a line below which a segment is read in pieces of PIECE."""
BLANK = b"\n" * 1000
_TEXT = re.compile(rb"[^\n]")

_ARROW = {
    "INTEGER": pa.int32(), "BIGINT": pa.int64(), "TIMESTAMP": pa.timestamp("us"), "VARCHAR": pa.dictionary(pa.int32(), pa.string()),
}  # fmt: skip
_ALWAYS = ("file_id", "line_no", "n_lines", "byte_offset", "message")
"""Columns that are never null."""
SCHEMA = pa.schema([pa.field(name, pa.string_view() if name == "message" else _ARROW[kind], name not in _ALWAYS) for name, kind in EVENTS])
_DELTA = ("line_no", "byte_offset", "ts", "task_id")
_RANGES = ("file_id", "line_no", "ts", "node", "device", "pid")
"""Columns by whose least and greatest value a reader may pass over a row group; all others have much the same in each."""
_FROM = {"byte_offset": "offset"}
"""Columns that `parsers.columns` calls otherwise."""


class Input(Protocol):
    def members(self) -> Iterator[Source]: ...


class Origin(msgspec.Struct, frozen=True):
    """What the first pass knows of a file, for the rows of the second."""

    node: str
    device: int | None
    rank: int | None
    pid: int | None
    clock: FileClock


class Origins:
    """Those of all files, each made when it is asked for: there may be a million. Files are numbered from 0."""

    def __init__(self, files: Sequence[Member], clocks: Mapping[int, FileClock]):
        self._files, self._clocks = files, clocks

    def get(self, file_id: int) -> Origin | None:
        if file_id >= len(self._files):
            return None
        seen = of_path(self._files[file_id].path)
        return Origin(self._files[file_id].node, seen.device, seen.rank, seen.pid, self._clocks.get(file_id, FileClock()))

    def judged(self, file_id: int, path: str) -> tuple[str, str] | None:
        """Kind and encoding (see `feed.Known`)."""
        if file_id >= len(self._files) or self._files[file_id].path != path or not self._files[file_id].kind:
            return None
        return self._files[file_id].kind, self._files[file_id].encoding


def build(
    case: Case,
    bundle: Input,
    clocks: Mapping[int, FileClock],
    workers: int | None = None,
    on_progress: Callable[[int, str], None] | None = None,
    agrees: Callable[[], bool] = lambda: True,
    files: Sequence[Member] | None = None,
) -> list[Note]:
    """Write the lines of a bundle, opened again, into its case. `clocks`, `files`: what the first pass found (None: the files as the case
    has them); `on_progress` gets the rows so far and the member at hand. The lines are taken over if `agrees` says so at the end.

    Returns remarks on what was left out. CaseError where the case cannot be written, or where `agrees` says no."""
    files = case.load_triage().coverage.members if files is None else files
    origins = Origins(files, clocks)
    text = sum(member.bytes for member in files if member.status not in ("binary", "skipped"))
    compiled = text >= COMPILE_FROM or (text >= COMPILED_FROM and _is_compiled())
    folder = case.new_parts()
    pool: Pool[int] = Pool(
        bundle.members(), lambda number: IndexWork(folder, number, origins, compiled), workers, _warm if compiled else None, _line_ends,
        origins.judged,
    )  # fmt: skip
    if compiled and pool.count == 1:
        _warm()
    rows, notes = 0, []
    for task, result in pool.results():
        if isinstance(result, Failed):
            if result.fatal:
                pool.close()
                raise CaseError(_unwritten(case, result.reason))
            notes.append(_lost(task, result.reason, pool))
            continue
        rows += result
        if on_progress is not None:
            on_progress(rows, pool.feed.files[-1].path if pool.feed.files else "")
    names = []
    for left in pool.finished:
        if isinstance(left, Failed):
            raise CaseError(_unwritten(case, left.reason))
        names += left if isinstance(left, list) else []
    if not agrees():
        case.clear()
        raise CaseError("the bundle has changed since the case was made: run triage again")
    case.put_parts(names)
    return notes


def _unwritten(case: Case, reason: str) -> str:
    return f"the lines of the case cannot be written to {str(case.folder)!a} ({reason}): free some space, or use --no-index"


def _lost(task: Task, reason: str, pool: Pool[int]) -> Note:
    paths = sorted({pool.feed.files[segment.file_id].path for segment in task.segments})
    shown = ", ".join(paths[:3]) + (f" (+{len(paths) - 3})" if len(paths) > 3 else "")
    return Note(f"lines of {shown} are not in the case: {reason}", f"{shown} 的部分日志行未写入案例：{reason}")


def _line_ends(view: memoryview) -> int:
    return columns.line_ends(np.frombuffer(view, np.uint8))


def _warm() -> None:
    """Compile, or load what is compiled, before forking."""
    import parsers.compiled  # noqa: F401


def _is_compiled() -> bool:
    """Whether this installation has compiled the parser before."""
    spec = importlib.util.find_spec("parsers.kernel_lines")
    if spec is None or spec.origin is None:
        return False
    folder = Path(spec.origin).parent / "__pycache__"
    return any(folder.glob("kernel_lines.read_lines-*.nbi"))


class _Stamps:
    """Printed times of one file, in UTC."""

    def __init__(self, clock: FileClock):
        self.clock = clock
        self.one = clock.utc

    def many(self, ts: Ints, clock: str) -> Ints:
        if clock == "boot":
            return np.full(len(ts), NONE) if self.clock.boot is None else np.where(ts == NONE, NONE, ts + self.clock.boot - self.clock.shift)
        offset = (self.clock.offset or 0) * SECOND + self.clock.shift
        if clock == "noyear":
            dated = self._dated(ts)
            return np.where(dated == NONE, NONE, dated - offset)
        return np.where((ts == NONE) | (ts < UNTRUE), NONE, ts - offset)

    def _dated(self, ts: Ints) -> Ints:
        """`FileClock.dated` of many stamps: most fall into one year and the same side of its 29 February."""
        out = np.full(len(ts), NONE)
        days = ts // DAY
        for day in np.unique(days[ts != NONE]).tolist():
            chosen = (days == day) & (ts != NONE)
            moved = self.clock.dated(day * DAY)
            edge = self.clock.last is not None and abs(abs(day * DAY - self.clock.last) - 183 * DAY) <= DAY
            if edge:  # where the year changes within the day
                out[chosen] = [NONE if (one := self.clock.dated(at)) is None else one for at in ts[chosen].tolist()]
            elif moved is not None:
                out[chosen] = ts[chosen] + (moved - day * DAY)
        return out


def pieces(block: Block, segment: Segment) -> Iterator[Segment]:
    """A segment whose lines are very short in parts of at most PIECE bytes, without the long runs of blank lines between them: what a
    block of nothing but line ends costs is bounded by this. Any other segment as it is."""
    size = segment.end - segment.start
    if size <= PIECE or _line_ends(memoryview(block)[segment.start : segment.end]) * SHORT < size:
        yield segment
        return
    record = registry.parser(segment.kind).record
    at, line, base = segment.start, segment.line, segment.base
    while True:
        text = _TEXT.search(block, at, segment.end)
        if text is None:
            return
        begin = text.start()
        line, base, at = line + begin - at, base + transcode.raw_size(memoryview(block)[at:begin], segment.encoding), begin
        stop = min(at + PIECE, segment.end)
        blank = block.find(BLANK, at, min(stop + len(BLANK), segment.end))
        if blank >= 0:
            stop = blank + 1
        elif stop < segment.end:
            stop = cut(block, at, stop, record)
            if stop == at:  # a line longer than that
                end = block.find(b"\n", at, segment.end)
                stop = end + 1 if end >= 0 else segment.end
        yield msgspec.structs.replace(segment, start=at, end=stop, base=base, line=line)
        view = memoryview(block)[at:stop]
        line, base, at = line + _line_ends(view), base + transcode.raw_size(view, segment.encoding), stop


class IndexWork:
    """The work of one process (see `pool.Work`)."""

    def __init__(self, folder: Path, number: int, origins: Origins, compiled: bool):
        pa.set_memory_pool(pa.system_memory_pool())  # what is freed goes back: the pool of Arrow would keep the most there ever was
        self.path = folder / f"events-{number}.parquet"
        self.origins, self.compiled = origins, compiled
        self.columns = Columns()
        self.writer: pq.ParquetWriter | None = None
        self.written, self.parts = 0, 0

    def work(self, task: Task, block: Block) -> int:
        """Write the rows of a block; how many there were."""
        self.columns.trim()
        batch, rows = Batch(block), 0
        for segment in task.segments:
            compiled = self.compiled and segment.kind in columns.COMPILED_KINDS and segment.end - segment.start > 4096
            origin = self.origins.get(segment.file_id)
            stamp = _Stamps(origin.clock) if origin is not None else columns.AS_PRINTED
            for piece in pieces(block, segment):
                batch.add(piece, self.columns.read(block, piece.kind, piece.start, piece.end, stamp, compiled), origin, self.columns.texts)
                if batch.rows >= ROWS:
                    rows += self._write(batch)
                    batch = Batch(block)
        return rows + self._write(batch)

    def _write(self, batch: Batch) -> int:
        if batch.rows:
            if self.writer is not None and self.written >= PART:
                self.writer.close()
                self.writer, self.written, self.parts = None, 0, self.parts + 1
            if self.writer is None:
                self.writer = _writer(self._part(self.parts))
            self.writer.write_table(batch.table(), row_group_size=1 << 20)
            self.written += batch.rows
        return batch.rows

    def finish(self) -> list[str]:
        """The names of the parts."""
        if self.writer is None:
            return []
        self.writer.close()
        return [self._part(number).name for number in range(self.parts + 1)]

    def _part(self, number: int) -> Path:
        return self.path.with_stem(f"{self.path.stem}-{number}") if number else self.path


def _writer(path: Path) -> pq.ParquetWriter:
    """Small pages with an index of them: a reader who wants a few lines of a row group reads a few pages. Writing costs the same."""
    return pq.ParquetWriter(
        path, SCHEMA, compression="zstd", compression_level=1, use_dictionary=[name for name in SCHEMA.names if name not in (*_DELTA, "message")],
        column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"), write_statistics=list(_RANGES),
        store_schema=False, write_batch_size=1 << 12, data_page_size=128 << 10, write_page_index=True,
    )  # fmt: skip


class Batch:
    """Rows of several segments of one block, on their way to an Arrow table."""

    def __init__(self, block: Block):
        self.block = block
        self.rows = 0
        self.numbers: dict[str, list[Ints]] = {name: [] for name in ("file_id", *columns.NUMBERS)}
        self.names: dict[str, list[Ints]] = {name: [] for name in columns.NAMES}
        self.start: list[Ints] = []
        self.length: list[Ints] = []
        self.aside: list[Any] = []
        self.side = bytearray()
        self.texts: list[str] = [""]

    def add(self, segment: Segment, rows: Rows, origin: Origin | None, texts: columns.Texts) -> None:
        self.rows += rows.rows
        self.texts = rows.texts
        values = rows.values
        values["line_no"] = values["line_no"] + segment.line
        values["offset"] = self._offsets(segment, values["offset"])
        if origin is not None:
            for name, known in (("device", origin.device), ("rank", origin.rank), ("pid", origin.pid)):
                if known is not None:
                    values[name] = np.where(values[name] == NONE, known, values[name])
            if origin.node:
                rows.names["node"] = np.full(rows.rows, texts.number(origin.node))
        self.numbers["file_id"].append(np.full(rows.rows, segment.file_id))
        for name in columns.NUMBERS:
            self.numbers[name].append(values[name])
        for name in columns.NAMES:
            self.names[name].append(rows.names[name])
        self.start.append(rows.start + len(self.side) * rows.aside)
        self.length.append(rows.length)
        self.aside.append(rows.aside)
        self.side += rows.side

    def _offsets(self, segment: Segment, offsets: Ints) -> Ints:
        """Offsets in the segment as offsets in the member."""
        if segment.encoding not in transcode.WIDE:
            return offsets + segment.base
        view = memoryview(self.block)[segment.start : segment.end]
        out, at, size = [], 0, segment.base
        for offset in offsets.tolist():
            size += transcode.raw_size(view[at:offset], segment.encoding)
            at = offset
            out.append(size)
        return np.array(out, np.int64)

    def table(self) -> pa.Table:
        arrays = []
        for name, kind in EVENTS:
            if name == "message":
                arrays.append(self._messages())
            elif kind == "VARCHAR":
                arrays.append(self._texts(_joined(self.names[name])))
            else:
                arrays.append(_numbers(_joined(self.numbers[_FROM.get(name, name)]), _ARROW[kind]))
        return pa.Table.from_arrays(arrays, schema=SCHEMA)

    def _texts(self, numbers: Ints) -> pa.DictionaryArray:
        """A column of texts with only those in its dictionary that it has; empty texts are null."""
        used = np.zeros(len(self.texts), np.bool_)
        used[numbers] = True
        used[0] = False
        indices = np.cumsum(used, dtype=np.int32) - 1
        missing = numbers == 0
        held = pa.array(indices[numbers], pa.int32(), mask=missing if missing.any() else None)
        return pa.DictionaryArray.from_arrays(held, pa.array([self.texts[k] for k in np.flatnonzero(used)], pa.string()))

    def _messages(self) -> pa.Array:
        """Messages where they lie, in the block or beside it: Arrow views, nothing is copied."""
        start, length, aside = _joined(self.start), _joined(self.length), _joined(self.aside)
        views = np.zeros((self.rows, 4), np.uint32)
        views[:, 0] = length
        views[:, 2], views[:, 3] = aside, start
        octets = views.view(np.uint8)
        for where, data in ((~aside, np.frombuffer(self.block, np.uint8)), (aside, np.frombuffer(self.side, np.uint8))):
            long = np.flatnonzero(where & (length > 12))
            if len(long):
                views[long, 1] = np.ndarray(len(data) - 3, "<u4", data, strides=(1,))[start[long]]  # the first four bytes of each
            short = np.flatnonzero(where & (length <= 12))  # these stand in the view itself
            octets[short, 4:16] = 0
            for k in range(12):
                short = short[length[short] > k]
                octets[short, 4 + k] = data[start[short] + k]
        buffers = [None, pa.py_buffer(views), pa.py_buffer(self.block), pa.py_buffer(bytes(self.side))]
        return pa.Array.from_buffers(pa.string_view(), self.rows, buffers)


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _numbers(values: Ints, kind: pa.DataType) -> pa.Array:
    missing = values == NONE
    if kind == pa.int32():
        missing |= (values < -(1 << 31)) | (values >= 1 << 31)
    count = int(np.count_nonzero(missing))
    if count == len(values):
        return pa.nulls(count, kind)
    plain = values.astype(np.int32) if kind == pa.int32() else values
    array = pa.array(plain, mask=missing if count else None)
    return array.view(kind) if kind == pa.timestamp("us") else array
