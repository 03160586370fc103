"""The replay of a diagnosis: what would be run, running it beside the browser, and its verdict as the case keeps it."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec

from forensics.extension import installed
from forensics.result import Triage
from replay.result import STATUS_WORDS, Bin
from rules.diagnose import filled
from tui.live import LINE, end

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


class Verdict(msgspec.Struct):
    """What came out, in the words of one language."""

    status: str
    words: str
    reason: str
    lines: list[str] = []
    axis: str = ""
    bars: list[Bin] = []
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


def verdict(triage: Triage, rank: int, lang: str) -> Verdict | None:
    """The verdict that the case keeps for a diagnosis; None where none was run."""
    found = triage.replays.get(rank)
    if found is None:
        return None
    lines = [f"{label}: {text}" for label, text in (("subject", found.subject), ("dtype", found.dtype), ("shape", found.shape)) if text]
    if found.score is not None:
        lines.append(f"score: {found.score:.3g}" + (f" (noise {found.noise:.3g})" if found.noise else ""))
    for fault in found.faults:
        values = ", ".join(f"{name}={value}" for name, value in fault.params.items())
        lines.append(f"→ {fault.title.of(lang)} ({fault.name}{': ' + values if values else ''}) · {fault.score:.3g}")
    lines += [f"✗ {broken.operator}: {broken.constraint} ({broken.found})" for broken in found.violations]
    lines += [note.of(lang) for note in found.notes]
    if found.command:
        lines.append(f"$ {found.command}")
    out = Verdict(found.status, STATUS_WORDS[found.status].of(lang), found.reason.of(lang), lines)
    if found.plot is not None:
        out.axis, out.bars, out.limit, out.boundary = found.plot.axis, found.plot.bins, found.plot.limit, found.plot.boundary
    return out


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
        await end(process)
