"""Commands that others bring: found through the entry-point group `dsforensics.commands`, loaded only when one is run.

So no import runs up from here to the TUI, the replay or the rule author's tools, `--help` loads none of them, and any package can add a
command. An entry point names a Typer application (a group of commands) or a function (one command).
"""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from forensics.errors import ForensicsError

GROUP = "dsforensics.commands"
SUMMARIES = {
    "rules": "Read, check and write rules.",
    "tui": "Browse a case in the terminal.",
    "replay": "Run a suspected kernel again and compare it with its reference.",
}
"""What --help says of our own; of others it says who brings them."""


class CommandError(ForensicsError):
    """A command of another package does not load."""

    status = 3


@cache
def found() -> dict[str, EntryPoint]:
    """Name -> entry point of every command whose module is there, by name."""
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return {point.name: point for point in points if _present(point.module)}


def _present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def load(point: EntryPoint) -> Any:
    """The command an entry point names. Raises CommandError."""
    try:
        target = point.load()
    except Exception as error:
        raise CommandError(
            f"The command {point.name} does not load from {point.value}: {type(error).__name__}: {error}. `dsforensics doctor` shows what is missing."
        ) from error
    if not isinstance(target, typer.Typer):
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        app.command(point.name)(target)
        target = app
    command = typer.main.get_command(target)
    command.name = point.name
    return command


class Later(TyperCommand):
    """Stands for a command until it is run."""

    def __init__(self, point: EntryPoint):
        by = f" ({point.dist.name})" if point.dist is not None and point.name not in SUMMARIES else ""
        super().__init__(point.name, help=SUMMARIES.get(point.name, f"Added by another package{by}."), rich_markup_mode=None)
        self._point = point

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return load(self._point).make_context(info_name, args, parent=parent, **extra)


class Commands(TyperGroup):
    """Our own commands in the order they are written, then those found."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.commands, *(name for name in found() if name not in self.commands)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = self.commands.get(cmd_name)
        if own is not None:
            return own
        point = found().get(cmd_name)
        return None if point is None else Later(point)


def installed() -> frozenset[str]:
    """Names of the commands of others, so that a report names only what can be run."""
    return frozenset(found())
