"""Profiler CSV files as batches of cells: any size, in constant memory, columns found by header.

>>> import io
>>> text = b"Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\\r\\n13,aclnnAdd,Add,AI_VECTOR_CORE,1764246877000200.500\\t,9.000\\r\\n"
>>> table = open_table(io.BytesIO(text).read, text)
>>> table.layout.name
'kernels'
>>> [batch.to_pylist() for batch in table.batches()]
[[{'step': '13', 'name': 'aclnnAdd', 'op_type': 'Add', 'core': 'AI_VECTOR_CORE', 'start_ns': '1764246877000200.500\\t', 'dur_ns': '9.000', \
'row_no': 1, 'line_no': 2}]]

Cells stay as printed (times end in a TAB, numbers may be N/A, shapes are quoted twice): what they mean is the column's `kind`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from parsers.profile_columns import Column, Layout, Match, match

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

BLOCK = 4 << 20
"""Bytes parsed at a time; no row may be longer."""
LONGEST_HEADER = 16 << 10
MOST_COLUMNS = 400

Read = Callable[[int], bytes]
"""Gives up to so many bytes; empty at the end."""


def header(head: str) -> tuple[Match, str] | None:
    """The layout of a text that begins with a header line, and its delimiter; None where it is no profiler table."""
    first = head.lstrip("\ufeff").lstrip("\r\n").split("\n", 1)[0].rstrip("\r")
    if not 3 <= len(first) <= LONGEST_HEADER:
        return None
    delimiter = max(",;\t", key=first.count)
    if not 2 <= first.count(delimiter) < MOST_COLUMNS:
        return None
    try:
        names = next(csv.reader([first], delimiter=delimiter))
    except (csv.Error, StopIteration):
        return None
    found = match(names)
    return None if found is None else (found, delimiter)


class Table:
    """One table being read; `batches` once, then `rows`, `bad` and `problem` are known."""

    def __init__(self, read: Read, found: Match, delimiter: str, skip: int, width: int) -> None:
        self.layout: Layout = found.layout
        self.columns: tuple[Column, ...] = found.columns
        self.rows = 0
        self.bad_rows = 0
        """Rows with a wrong number of cells, left out."""
        self.problem = ""
        """Why reading ended early; empty: it did not."""
        self._read, self._delimiter, self._skip, self._width = read, delimiter, skip, width
        self._left_out: list[int] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Texts of the known columns, `row_no` (data row, from 1) and `line_no` (the row's first line in the file, from 1)."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        stream = _Stream(self._read)
        wanted = [f"c{column.index}" for column in self.columns]
        try:
            reader = arrow.open_csv(
                pa.PythonFile(stream, mode="r"),
                read_options=arrow.ReadOptions(
                    use_threads=False, block_size=BLOCK, column_names=[f"c{n}" for n in range(self._width)], skip_rows=self._skip
                ),
                parse_options=arrow.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=self.layout.multiline, invalid_row_handler=self._invalid
                ),
                convert_options=arrow.ConvertOptions(
                    column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted, strings_can_be_null=False
                ),
            )
            for batch in reader:
                if batch.num_rows:
                    yield self._numbered(batch)
        except pa.ArrowInvalid as error:
            text = str(error).split("\n", 1)[0]
            if "Empty CSV" not in text and "no more" not in text.lower():
                self.problem = text[:200]

    def _invalid(self, row: Any) -> str:
        self.bad_rows += 1
        if row.number is not None:
            self._left_out.append(row.number - self._skip)
        return "skip"

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the places of its rows; rows that were left out keep their numbers."""
        import numpy as np
        import pyarrow as pa

        first, left_out = self.rows + 1, []
        last = self.rows + batch.num_rows
        while self._left_out and self._left_out[0] <= last:
            left_out.append(self._left_out.pop(0))
            last += 1
        numbers = np.arange(first, last + 1, dtype=np.int64)
        if left_out:
            numbers = np.setdiff1d(numbers, left_out)[: batch.num_rows]
        self.rows = last
        arrays = [batch.column(n) for n in range(len(self.columns))]
        lines = numbers + self._skip
        if self.layout.multiline:
            lines = lines + self._breaks(arrays)
        names = [column.name for column in self.columns]
        return pa.RecordBatch.from_arrays([*arrays, pa.array(numbers), pa.array(lines)], names=[*names, "row_no", "line_no"])


    def _breaks(self, arrays: list[pa.Array]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Line ends inside the cells of all rows before each row."""
        import numpy as np
        import pyarrow.compute as pc

        inside = np.zeros(len(arrays[0]), dtype=np.int64)
        for column, array in zip(self.columns, arrays, strict=True):
            if column.kind in ("text", "shape"):
                inside += pc.count_substring(array, "\n").to_numpy(zero_copy_only=False)
        before = np.concatenate(([0], np.cumsum(inside))) + self._inside
        self._inside = int(before[-1])
        return before[:-1]

    _inside = 0


class _Stream(io.RawIOBase):
    """What Arrow reads from: valid UTF-8 whatever the file holds."""

    def __init__(self, read: Read) -> None:
        self._source = read
        self._left = self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """`size` bytes, less only at the end: Arrow takes each answer for a block."""
        size = size if size > 0 else BLOCK
        while len(self._ready) < size and not self._ended:
            piece = self._source(size)
            self._ended = not piece
            if self._left or not piece.isascii():
                piece = self._valid(self._left + piece, self._ended)
            self._ready = self._ready + piece if self._ready else piece
        out, self._ready = self._ready[:size], self._ready[size:]
        return out

    def _valid(self, data: bytes, last: bool) -> bytes:
        """UTF-8 with what is none replaced; a character cut by the end of a piece waits for the next one."""
        try:
            data.decode("utf-8")
            self._left = b""
            return data
        except UnicodeDecodeError as error:
            if not last and error.end == len(data) and len(data) - error.start < 4 and len(data) > 4:
                self._left = data[error.start :]
                return data[: error.start]
            self._left = b""
            return data.decode("utf-8", "replace").encode("utf-8")


def open_table(read: Read, head: bytes) -> Table | None:
    """The table whose bytes `read` gives, from its very first; `head`: its first kilobytes. None where it is no profiler table."""
    found = header(head.decode("utf-8", "replace"))
    if found is None:
        return None
    text = head.lstrip(b"\xef\xbb\xbf")
    blank = len(text) - len(text.lstrip(b"\r\n"))
    first = text.lstrip(b"\r\n").split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    width = len(next(csv.reader([first], delimiter=found[1])))
    return Table(read, found[0], found[1], 1 + text[:blank].count(b"\n"), width)
