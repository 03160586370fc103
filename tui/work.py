"""Triage of a bundle in a process of its own, told of line by line as JSON; the `Order` comes on standard input.

The pipeline forks, and a program with threads and a terminal must not: so the browser never runs it itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from forensics.errors import ForensicsError
from forensics.options import Options, Progress


class Order(msgspec.Struct, frozen=True):
    """What is to be done: triage `sources`, or store the lines of `case`."""

    sources: list[str]
    options: Options = Options()
    case: str = ""


class Going(msgspec.Struct, frozen=True, tag="going"):
    """How far it is."""

    stage: str
    done: int
    total: int
    lines: int
    what: str


class Early(msgspec.Struct, frozen=True, tag="early"):
    """Title of a diagnosis that stands before the bundle is read to its end."""

    en: str
    zh: str


class Diagnosed(msgspec.Struct, frozen=True, tag="diagnosed"):
    """The case can be opened; its lines are still being stored."""

    case: str


class Done(msgspec.Struct, frozen=True, tag="done"):
    case: str
    notes: list[tuple[str, str]]
    """(English, Chinese)"""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    reason: str


Step = Going | Early | Diagnosed | Done | Failed


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    try:
        notes = _stored(order) if order.case else _triaged(order)
    except ForensicsError as error:
        _say(Failed(str(error)))
        raise
    _say(notes)


def _triaged(order: Order) -> Done:
    from forensics.pipeline import run
    from forensics.report.data import write

    work = run(order.sources, order.options, _tell)
    try:
        write(work.triage, Path(work.triage.case))
        _say(Diagnosed(work.triage.case))
        return Done(work.triage.case, [(note.en, note.zh) for note in work.finish()])
    finally:
        work.close()


def _stored(order: Order) -> Done:
    from forensics.case import open_case

    open_case(order.case).ensure_index()
    return Done(order.case, [])


def _tell(progress: Progress) -> None:
    if progress.finding is not None:
        _say(Early(progress.finding.en, progress.finding.zh))
    else:
        _say(Going(progress.stage, progress.done, progress.total, progress.lines, progress.what))


def _say(step: Step) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(step) + b"\n")
    sys.stdout.buffer.flush()

