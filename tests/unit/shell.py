"""Runs the command line over the fake pipeline, as a shell would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, str(Path(__file__).with_name("fake_dsforensics.py"))]


def environment(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "HOME": "/nonexistent", "TERM": "dumb"} | more


def dsforensics(*words: str, stdout: int | None = None, **env: str) -> subprocess.CompletedProcess[bytes]:
    out = subprocess.PIPE if stdout is None else stdout
    return subprocess.run([*PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, env=environment(**env), timeout=60)
