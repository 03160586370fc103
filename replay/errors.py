"""Errors of a replay: each says what was expected, what was found, and what to do."""

from __future__ import annotations


class ReplayError(Exception):
    """Base: `str()` is the one sentence a user sees. `status` is the exit status of the command line."""

    status = 3


class SpecError(ReplayError):
    """A spec or a command line that asks for something that cannot be."""

    status = 2


class CaptureError(ReplayError):
    """A dump that cannot be read, or may not be (it would have to be unpickled)."""


class BackendError(ReplayError):
    """A backend that does not work here; says why and what to install or set."""


NO_TORCH = "replay needs PyTorch, which is not installed: `pip install 'dsforensics[replay]'`, or name a Python that has it with --python"
