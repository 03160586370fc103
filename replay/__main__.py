"""`python -m replay`: the replay without the rest of the program."""

from __future__ import annotations

from replay.commands import app

app(prog_name="python -m replay")
