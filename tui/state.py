"""Where the reader was: kept beside the case, so that leaving and coming back leads to the same place."""

from __future__ import annotations

import contextlib
import os
from hashlib import sha256
from pathlib import Path

import msgspec

from tui.filters import Chip

FILE = "tui.json"
MOST = 1 << 20


class LogPlace(msgspec.Struct):
    ts: int | None = None
    event_id: int | None = None
    """None: never looked at; the log then opens at the first evidence."""
    chips: list[Chip] = []
    search: str = ""
    pane: str = "record"
    """record, context or none: what stands below the lines."""
    shift: int = 0


class State(msgspec.Struct):
    page: str = "diagnoses"
    lang: str = ""
    theme: str = ""
    diagnosis: int = 0
    log: LogPlace = msgspec.field(default_factory=LogPlace)
    query: str = ""
    queries: list[str] = []
    """Queries that were run, the latest last."""
    rule: str = ""
    rules_filter: str = ""
    device: int = 0
    series: str = ""


def load(case: Path) -> State:
    """The state kept for a case; a fresh one where there is none, or none that can be read."""
    for path in (case / FILE, _elsewhere(case)):
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            if path.stat().st_size <= MOST:
                return msgspec.json.decode(path.read_bytes(), type=State)
    return State()


def save(case: Path, state: State) -> None:
    """Keep the state beside the case, or among the user's own files where the case cannot be written. Never raises: it is no data."""
    data = msgspec.json.encode(state)
    for path in (case / FILE, _elsewhere(case)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(".new")
            fresh.write_bytes(data)
            os.replace(fresh, path)
            return
        except OSError:
            continue


def _elsewhere(case: Path) -> Path:
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "dsforensics" / f"{sha256(str(case.resolve()).encode()).hexdigest()[:16]}.json"
