"""Errors a user sees: each says what was expected, what was found, where, and what to do; each knows its exit status."""

from __future__ import annotations


class ForensicsError(Exception):
    """Base: `str()` is the one sentence shown on standard error."""

    status = 3


class UsageError(ForensicsError):
    """The command line asks for something that cannot be."""

    status = 2


class UnreadableBundle(ForensicsError):
    """Nothing of the bundle could be read."""

    status = 3


class CaseError(ForensicsError):
    """The case folder cannot be used or written."""

    status = 3
