"""Lines that a person marked while looking at a case, with what they noted; beside the case as `marks.json`, and part of its reports."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from forensics.errors import CaseError

FILE = "marks.json"
MOST = 16 << 20
"""Bytes of the file that are read."""


class Mark(msgspec.Struct, frozen=True):
    """A marked line."""

    event_id: int
    file: str
    line: int
    ts: int | None
    """UTC microseconds."""
    text: str
    note: str = ""


def load(folder: Path) -> list[Mark]:
    """The marks of a case, by time; none where there is no file. Raises CaseError."""
    path = folder / FILE
    try:
        if path.stat().st_size > MOST:
            raise CaseError(f"{str(path)!a} is larger than {MOST >> 20} MB, which no list of marks is: move it away")
        return msgspec.json.decode(path.read_bytes(), type=list[Mark])
    except FileNotFoundError:
        return []
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        raise CaseError(f"the marks in {str(path)!a} cannot be read ({error}): mend the file, or move it away") from error


def save(folder: Path, marks: list[Mark]) -> None:
    """Put the marks in place of those before. Raises CaseError."""
    path = folder / FILE
    fresh = folder / (FILE + ".new")
    try:
        if not marks:
            path.unlink(missing_ok=True)
            return
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(in_order(marks)), indent=1) + b"\n")
        os.replace(fresh, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise CaseError(f"the marks cannot be written to {str(path)!a} ({error.strerror or error}): make the case folder writable") from error


def in_order(marks: list[Mark]) -> list[Mark]:
    return sorted(marks, key=lambda mark: (mark.ts is not None, mark.ts or 0, mark.event_id))
