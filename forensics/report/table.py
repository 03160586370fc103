"""The answer to a SQL query as a table, CSV, JSON or Parquet."""

from __future__ import annotations

import csv as csv_format
import io
import json
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from forensics.report.data import encode, strict
from forensics.safe_text import cells, clip, safe, spreadsheet

if TYPE_CHECKING:
    import polars

NARROWEST = 8
"""Columns are not cut below this width."""


def csv(frame: polars.DataFrame) -> bytes:
    """CSV in UTF-8 with a head line; text that a spreadsheet would run as a formula is marked, control characters are spelled out."""
    out = io.StringIO()
    writer = csv_format.writer(out, lineterminator="\n")
    writer.writerow([spreadsheet(name) for name in frame.columns])
    for row in frame.iter_rows():
        writer.writerow([spreadsheet(value) if isinstance(value, str) else _plain(value) for value in row])
    return out.getvalue().encode("utf-8")


def as_json(frame: polars.DataFrame) -> bytes:
    """A list of objects, one for each row."""
    return encode([dict(zip(frame.columns, row, strict=True)) for row in frame.iter_rows()])


def parquet(frame: polars.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out, compression="zstd")
    return out.getvalue()


def table(frame: polars.DataFrame, width: int | None) -> str:
    """Aligned columns under a head; cut to `width` columns where given (a terminal), never otherwise."""
    names = [safe(name) for name in frame.columns]
    body = [[safe(_plain(value)) for value in row] for row in frame.iter_rows()]
    right = [dtype.is_numeric() for dtype in frame.dtypes]
    sizes = [max([cells(name), *(cells(row[at]) for row in body)]) for at, name in enumerate(names)]
    if width is not None:
        _shrink(sizes, width)
    lines = [_line(names, sizes, right), "  ".join("-" * size for size in sizes), *(_line(row, sizes, right) for row in body)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _shrink(sizes: list[int], width: int) -> None:
    """Takes the surplus from the widest columns."""
    while sum(sizes) + 2 * (len(sizes) - 1) > width and max(sizes) > NARROWEST:
        widest = sizes.index(max(sizes))
        others = max([NARROWEST, *(size for at, size in enumerate(sizes) if at != widest)])
        surplus = sum(sizes) + 2 * (len(sizes) - 1) - width
        sizes[widest] = max(NARROWEST, sizes[widest] - surplus, min(others, sizes[widest] - 1))


def _line(values: Sequence[str], sizes: list[int], right: list[bool]) -> str:
    out = []
    for value, size, numeric in zip(values, sizes, right, strict=True):
        text = clip(value, size)
        gap = " " * (size - cells(text))
        out.append(gap + text if numeric else text + gap)
    return "  ".join(out)


def _plain(value: Any) -> str:
    """One value as text: empty for null, ISO for times, JSON for lists and structures."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, (bytes, list, tuple, dict)):
        plain = strict(value)
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return str(value) if not isinstance(value, timedelta) else f"{value.total_seconds():g} s"
