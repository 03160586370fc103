"""Starts workers and waits for them: one kernel, one process, one time limit. A hang or a crash of a worker is a result. Needs no torch
until inputs are written."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
GRACE = 5.0
"""Seconds between asking a worker to end and ending it."""
LOG = 1 << 16
"""Bytes of a worker's own output that are kept, from its end."""


class Outcome(msgspec.Struct):
    """What became of a worker."""

    state: str
    """done, unavailable, refused (the operator does not take the arguments), device (the device raised an exception), memory, timeout, crash,
    rubbish, error."""
    message: str = ""
    runs: int = 0
    versions: dict[str, str] = {}
    seconds: float = 0.0
    log: str = ""
    stuck: bool = False
    """The process could not be ended: it hangs in the driver."""


def work(
    job: Mapping[str, Any], inputs: Mapping[str, Tensor], python: str = "", time_limit: float = 120.0, environment: Mapping[str, str] | None = None
) -> tuple[Outcome, list[dict[str, Tensor]]]:
    """Runs a job in a worker; its outcome, and the outputs of each run."""
    from replay import safe_file

    with _folder() as folder:
        safe_file.save(dict(inputs), str(folder / "inputs.safetensors"))
        (folder / "job.json").write_text(json.dumps({**job, "root": str(ROOT)}), encoding="utf-8")
        outcome = _waited([python or sys.executable, str(ROOT / "replay" / "worker.py"), str(folder)], folder, time_limit, environment)
        if outcome.state != "done" and not (folder / "result.json").is_file():
            return outcome, []
        told = _result(folder)
        if told is None:
            return Outcome("rubbish", "the worker ended without a result that can be read", log=outcome.log), []
        told.log, told.stuck = outcome.log, outcome.stuck
        outputs = []
        for number in range(told.runs):
            try:
                outputs.append(safe_file.load(str(folder / f"output-{number}.safetensors")))
            except (OSError, ValueError) as error:
                return Outcome("rubbish", f"output {number} of the worker cannot be read: {error}", log=told.log), []
        if told.state == "done" and not outputs:
            return Outcome("rubbish", "the worker gave no output", log=told.log), []
        return told, outputs


def probe(python: str = "", time_limit: float = 60.0) -> dict[str, Any]:
    """State of torch_npu as a child of that interpreter finds it (see backends.probe): a dict with at least state and message."""
    command = [python or sys.executable, str(ROOT / "replay" / "backends" / "probe.py")]
    with _folder() as folder:
        outcome = _waited(command, folder, time_limit, None)
        lines = [line for line in outcome.log.splitlines() if line.startswith("{")]
        with contextlib.suppress(ValueError):
            found = json.loads(lines[-1]) if lines else None
            if isinstance(found, dict) and isinstance(found.get("state"), str):
                return {str(key): value for key, value in found.items()}
    if outcome.state == "timeout":
        return {"state": "no-device", "message": f"torch_npu did not answer within {time_limit:g} s"}
    return {"state": "bad-match", "message": outcome.message or "the probe gave no answer"}


def _result(folder: Path) -> Outcome | None:
    try:
        data = (folder / "result.json").read_bytes()[: 1 << 20]
        told = msgspec.json.decode(data, type=Outcome)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return told if 0 <= told.runs <= 100 else None


def _waited(command: Sequence[str], folder: Path, limit: float, more: Mapping[str, str] | None) -> Outcome:
    """Runs a command in a session of its own and waits; ends it with everything it started when time is up, or when this program is ended."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONDONTWRITEBYTECODE": "1", **(more or {})}
    environment.pop("PYTHONPATH", None)
    started = time.monotonic()
    with open(folder / "log", "w+b") as log:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env=environment, cwd=folder
            )
        except OSError as error:
            return Outcome("unavailable", f"{command[0]!a} cannot be run: {error.strerror or error}")
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            stuck = not _ended(process)
            text = f"no result within {limit:g} s; the process was ended"
            if stuck:
                text = f"no result within {limit:g} s, and the process {process.pid} cannot be ended: it hangs in the driver"
            return Outcome("timeout", text, seconds=time.monotonic() - started, log=_tail(log), stuck=stuck)
        except BaseException:
            _ended(process)
            raise
        _sweep_up(process)
        seconds, tail = time.monotonic() - started, _tail(log)
    if code == 0:
        return Outcome("done", seconds=seconds, log=tail)
    if code == -signal.SIGKILL:
        return Outcome("memory", "the worker was killed, as the system does when memory runs out", seconds=seconds, log=tail)
    if code < 0:
        return Outcome("crash", f"the worker crashed: {_signal(-code)}", seconds=seconds, log=tail)
    last = next((line for line in reversed(tail.splitlines()) if line.strip()), "")
    return Outcome("crash", f"the worker ended with status {code}: {last[:300]}", seconds=seconds, log=tail)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Ends a process and all of its session: asked first, then made to. Whether it is gone."""
    for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            _sweep_up(process)
            return True
    return False


def _sweep_up(process: subprocess.Popen[bytes]) -> None:
    """Ends what a finished worker may have left running."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(log: Any) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - LOG))
    return str(log.read().decode("utf-8", "replace"))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="dsforensics-replay-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
