"""`dsforensics tui CASE|BUNDLE`, found by the command line through its entry points."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal, Optional

import typer

Language = Literal["en", "zh"]
Theme = Literal["dark", "light"]


def tui(
    what: Annotated[list[str], typer.Argument(metavar="CASE|BUNDLE...", help="Case folder, or bundles, which are triaged first.")],
    out: Annotated[Optional[str], typer.Option("--out", "-o", metavar="DIR", help="Case folder for a bundle. Default: ./<bundle name>.case")] = None,  # noqa: UP045
    pack: Annotated[Optional[list[str]], typer.Option("--pack", metavar="DIR", help="Folder of a further rule pack. Can be repeated.")] = None,  # noqa: UP045
    tz: Annotated[Optional[str], typer.Option(metavar="ZONE", help="Zone of clocks that do not say theirs, such as +08:00.")] = None,  # noqa: UP045
    force: Annotated[bool, typer.Option("--force", help="Replace a case folder of another bundle.")] = False,
    lang: Annotated[Optional[Language], typer.Option("--lang", help="Language; by default that of the last time, or of the locale.")] = None,  # noqa: UP045
    theme: Annotated[Optional[Theme], typer.Option("--theme", help="Colours; by default those of the last time, dark the first time.")] = None,  # noqa: UP045
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours, as with NO_COLOR=1.")] = False,
) -> None:
    """Browse a case in the terminal."""
    from pathlib import Path

    from forensics import options as ask
    from forensics.bundle import Bundle
    from forensics.case import DATABASE, open_case
    from forensics.errors import UsageError
    from forensics.terminal import default_language, is_terminal
    from tui.work import Order

    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UsageError("tui wants a terminal for its input and output; `dsforensics report CASE` writes to a pipe or a file.")
    if "-" in what:
        raise UsageError("tui cannot read a bundle from standard input, which is the keyboard: give a file or a folder.")
    if os.environ.get("TERM") in ("dumb", "unknown"):
        raise UsageError("this terminal cannot place a cursor (TERM is dumb): use `dsforensics report`, or another terminal.")
    if no_color:
        os.environ["NO_COLOR"] = "1"
    case, order = None, None
    path = Path(what[0])
    if len(what) == 1 and (path.name == DATABASE or (path / DATABASE).is_file()):
        case = open_case(path)
        if not case.plan().indexed:
            order = Order([], case=str(case.folder))
    else:
        for source in what:
            Bundle(source).close()
        for folder in pack or ():
            if not Path(folder).is_dir():
                raise UsageError(f"--pack wants the folder of a rule pack; {folder} is none.")
        order = Order(list(what), ask.Options(out=out, packs=tuple(pack or ()), tz=tz if tz and ask.zone(tz) else None, force=force))
    from tui import state
    from tui.app import Browser
    from tui.session import Session

    kept = state.load(case.folder) if case is not None else state.State()
    session = Session(case, order, lang or kept.lang or default_language())
    Browser(session, theme or "").run()
    if session.failure and session.triage is None:
        from forensics.errors import UnreadableBundle

        raise UnreadableBundle(session.failure)
