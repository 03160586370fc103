"""`dsforensics` and `python -m forensics`: the guard stands before anything heavy is imported, so that an interrupt is met there too."""

from __future__ import annotations

import sys

from forensics.guard import guarded


def main() -> None:
    """Entry point of the command."""
    sys.exit(guarded(_command))


def _command() -> None:
    from forensics.cli import app

    app(prog_name="dsforensics")


if __name__ == "__main__":
    main()
