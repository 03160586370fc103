"""What goes wrong behind the screen is said on it: a query that failed, a file that is gone, or a fault of this program."""

from __future__ import annotations

from textual.worker import Worker, WorkerState

from forensics.errors import ForensicsError
from forensics.safe_text import safe


def sentence(error: BaseException) -> str:
    """One line for a person."""
    first = safe((str(error).strip().splitlines() or [""])[0][:300])
    if isinstance(error, ForensicsError) or type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        return first
    return f"{type(error).__name__}: {first}"


class Tells:
    """For screens and widgets: says what became of their workers."""

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        worker = event.worker
        if event.state is WorkerState.ERROR and worker.error is not None:
            self.app.notify(sentence(worker.error), severity="error", markup=False, timeout=10)  # type: ignore[attr-defined]
