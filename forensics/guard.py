"""What stands between the commands and the shell: every way a command can end becomes one exit status and at most one sentence."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from forensics.errors import ForensicsError
from forensics.terminal import complain, silence

DEBUG = "DSFORENSICS_DEBUG"
FAILED, INTERRUPTED, TERMINATED = 3, 130, 143


class Terminated(BaseException):
    """SIGTERM: raised in the main thread so that workers are ended and files closed on the way out."""


def guarded(command: Callable[[], object]) -> int:
    """Runs `command`, which ends with SystemExit or returns; gives the exit status."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        command()
        status = 0
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else 0 if leave.code is None else FAILED
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Terminated:
        status = TERMINATED
    except BrokenPipeError:
        status = 0
    except ForensicsError as error:
        _explain(error, str(error))
        status = error.status
    except MemoryError as error:
        _explain(error, "The memory did not suffice. Give fewer --workers, or triage a part of the bundle.")
        status = FAILED
    except OSError as error:
        _explain(error, f"The system refused: {error}. Mend that, and run the command again; {DEBUG}=1 shows where it happened.")
        status = FAILED
    except BaseException as error:  # a panic of an extension module is no Exception
        first = (str(error).strip().splitlines() or [""])[0][:300]
        _explain(
            error, f"dsforensics failed where it should not: {type(error).__name__}: {first}. Run it with {DEBUG}=1 for the trace, and report it."
        )
        status = FAILED
    return _flushed(status)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the way out is not to be interrupted
    raise Terminated


def _explain(error: BaseException, text: str) -> None:
    if os.environ.get(DEBUG):
        import traceback

        traceback.print_exception(error)
    complain(f"dsforensics: {text}" if not text.startswith("dsforensics") else text)


def _flushed(status: int) -> int:
    """Flushes what Python would flush at exit, where its failure would show as a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            silence(stream)
        except (OSError, ValueError):
            silence(stream)
            status = status or FAILED
    return status
