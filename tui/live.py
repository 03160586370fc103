"""The browser's side of `tui.work`: starts it, hears what it says, ends it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec

from tui.work import Done, Failed, Order, Step

LINE = 1 << 20
START = (
    "import sys; sys.path[:] = [sys.argv[1], *(path for path in sys.path if path not in ('', '.'))]; "
    "from forensics.guard import guarded; from tui.work import main; sys.exit(guarded(main))"
)
"""Not `-m`, which would import from the working folder first, and that may be a bundle."""


async def steps(order: Order) -> AsyncGenerator[Step, None]:
    """What the process says, as it says it; always ends with Done or Failed. Closing the iterator ends the process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, str(Path(__file__).resolve().parent.parent),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=LINE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    errors = asyncio.create_task(process.stderr.read())
    ended = False
    try:
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.close()
        async for line in process.stdout:
            step = msgspec.json.decode(line, type=Step)
            ended = isinstance(step, (Done, Failed))
            yield step
        status = await process.wait()
        if not ended:
            said = (await errors).decode(errors="replace").strip().splitlines()
            yield Failed(said[-1] if said else f"the triage ended with status {status}: run `dsforensics triage` to see why")
    finally:
        await end(process)
        errors.cancel()


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process that still runs: it has five seconds to leave by itself."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), 5)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
