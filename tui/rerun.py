"""The replay of a diagnosis: what would be run, running it beside the browser, and its verdict as the case keeps it.

The verdict is read as plain data, by the names `dsforensics.report/1` gives its parts, so that a case of another version still shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec

from forensics.extension import installed
from forensics.result import Triage
from rules.diagnose import filled
from rules.model import Diagnosis
from tui.live import LINE

START = (
    "import sys; sys.path[:] = [sys.argv.pop(1), *(path for path in sys.path if path not in ('', '.'))]; "
    "from forensics.__main__ import main; main()"
)


class Spec(msgspec.Struct, frozen=True):
    """What a replay would run."""

    rank: int
    """Of the diagnosis."""
    title: str
    kernel: str
    params: dict[str, str]


class Bar(msgspec.Struct, frozen=True):
    """Rows of the output between two places, and how wrong they are, in noise units."""

    first: int
    last: int
    error: float
    worst: float


class Verdict(msgspec.Struct):
    """What came out."""

    status: str
    words: str
    reason: str
    lines: list[str] = []
    axis: str = ""
    bars: list[Bar] = []
    limit: float = 2.0
    boundary: int | None = None


def specs(triage: Triage, lang: str) -> list[Spec]:
    """Of all diagnoses that name a kernel, by rank; parameters with what was captured."""
    out = []
    for diagnosis in triage.diagnoses:
        replay = diagnosis.finding.rule.replay
        if replay is not None:
            params = {name: filled(value, diagnosis.finding) if isinstance(value, str) else str(value) for name, value in replay.params.items()}
            out.append(Spec(diagnosis.rank, diagnosis.title.of(lang), replay.kernel, params))
    return out


def possible() -> bool:
    """Whether this installation can replay."""
    return "replay" in installed() and importlib.util.find_spec("torch") is not None


def verdict(triage: Triage, diagnosis: Diagnosis | int, lang: str) -> Verdict | None:
    """The verdict that the case keeps for a diagnosis; None where none was run."""
    rank = diagnosis if isinstance(diagnosis, int) else diagnosis.rank
    found = getattr(triage, "replays", {}).get(rank)
    if found is None:
        return None
    data: dict[str, Any] = msgspec.to_builtins(found)
    plot = data.get("plot") or {}
    out = Verdict(str(data.get("status", "")), _status(str(data.get("status", "")), lang), _words(data.get("reason"), lang))
    for label in ("subject", "dtype", "shape"):
        if data.get(label):
            out.lines.append(f"{label}: {data[label]}")
    if data.get("score") is not None:
        noise = f" (noise {data['noise']:.3g})" if data.get("noise") else ""
        out.lines.append(f"score: {data['score']:.3g}{noise}")
    for fault in data.get("faults", []):
        values = ", ".join(f"{name}={value}" for name, value in fault.get("params", {}).items())
        out.lines.append(f"→ {_words(fault.get('title'), lang)} ({fault.get('name')}{': ' + values if values else ''}) · {fault.get('score', 0):.3g}")
    for broken in data.get("violations", []):
        out.lines.append(f"✗ {broken.get('operator')}: {broken.get('constraint')} ({broken.get('found')})")
    out.lines += [_words(note, lang) for note in data.get("notes", [])]
    if data.get("command"):
        out.lines.append(f"$ {data['command']}")
    out.axis, out.limit, out.boundary = plot.get("axis", ""), float(plot.get("limit", 2.0)), plot.get("boundary")
    out.bars = [Bar(one["first"], one["last"], float(one["error"]), float(one["worst"])) for one in plot.get("bins", [])]
    return out


def _words(value: Any, lang: str) -> str:
    return str(value.get(lang) or value.get("en") or "") if isinstance(value, dict) else str(value or "")


def _status(status: str, lang: str) -> str:
    if importlib.util.find_spec("replay") is None:
        return status
    try:
        words = importlib.import_module("replay.result").STATUS_WORDS
        return str(words[status].of(lang))
    except (ImportError, AttributeError, KeyError):
        return status


async def run(case: Path, rank: int) -> AsyncGenerator[str, None]:
    """Run `dsforensics replay CASE N` in a process of its own; what it says, line by line. Closing the iterator ends it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, str(Path(__file__).resolve().parent.parent), "replay", str(case), str(rank),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, limit=LINE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        while chunk := await process.stdout.read(4096):
            for line in chunk.decode(errors="replace").replace("\r", "\n").split("\n"):
                if line.strip():
                    yield line.rstrip()
        await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 5)
            except asyncio.TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
