"""The bytes of a record as they stand in the bundle, read from there again; the case keeps its message only."""

from __future__ import annotations

import os
import threading

from forensics.case import Case
from forensics.errors import ForensicsError
from forensics.result import Member

SOON = 48 << 20
"""Bytes of a bundle up to which a raw line is fetched unasked."""
LONGEST = 64 << 10
STEP = 1 << 20


def at_hand(case: Case) -> bool:
    """Whether reading from the bundle costs next to nothing."""
    sources = case.plan().sources
    return all(os.path.isfile(source) and os.path.getsize(source) <= SOON or os.path.isdir(source) for source in sources)


def read(case: Case, member: Member, byte_offset: int, n_lines: int, stop: threading.Event) -> str | None:
    """The lines of a record; None where the bundle is not there any more or `stop` was set. Reads the bundle up to there."""
    from forensics.bundle import Bundle
    from forensics.several import Several

    sources = case.plan().sources
    if any(source == "-" or not os.path.exists(source) for source in sources):
        return None
    try:
        bundles = [Bundle(source, None, None, case.folder) for source in sources]
    except ForensicsError:
        return None
    bundle = bundles[0] if len(bundles) == 1 else Several(bundles)
    try:
        for one in bundle.members():
            if stop.is_set():
                return None
            if one.path != member.path:
                continue
            view = memoryview(bytearray(STEP))
            left, kept = byte_offset, bytearray()
            while not stop.is_set():
                got = one.readinto(view)
                if got == 0:
                    break
                if left >= got:
                    left -= got
                    continue
                kept += view[left:got]
                left = 0
                if len(kept) >= LONGEST or kept.count(b"\n") >= n_lines * 4 + 4:
                    break
            text = bytes(kept[:LONGEST]).decode(member.encoding or "utf-8", "backslashreplace")
            return "\n".join(text.splitlines()[:n_lines]) if text else None
        return None
    except (ForensicsError, OSError, LookupError):
        return None
    finally:
        bundle.close()
