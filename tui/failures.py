"""What goes wrong behind the screen is said on it: a query that failed, a file that is gone, or a fault of this program."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

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
    """For screens and widgets: begins work behind the screen, and says where it failed."""

    def behind(self, group: str, work: Callable[..., Coroutine[Any, Any, None]], *given: Any, alone: bool = True) -> None:
        """Run `work(*given)` beside the event loop's other work; `alone`: in the place of what the group is still at."""

        async def working() -> None:
            await work(*given)

        begin: Any = self.run_worker  # type: ignore[attr-defined]
        begin(working, group=group, exclusive=alone, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        worker = event.worker
        if event.state is WorkerState.ERROR and worker.error is not None:
            self.app.notify(sentence(worker.error), severity="error", markup=False, timeout=10)  # type: ignore[attr-defined]
