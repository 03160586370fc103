"""What else people look through logs with, timed on the same bundle: the floor of unpacking it, extracting it and ripgrep, lnav."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isal import igzip

LIMIT = 300
"""Seconds any of them may take."""


def cpu() -> float:
    """CPU seconds of this process and of those it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def stage(name: str, spent: dict[str, tuple[float, float]] | None = None) -> Iterator[None]:
    """Print what runs inside, in CPU seconds and seconds; `spent`: keep it there too."""
    used, began = cpu(), time.monotonic()
    yield
    took = cpu() - used, time.monotonic() - began
    if spent is not None:
        spent[name] = took
    print(f"{name:34s} {took[0]:7.2f} CPU s {took[1]:7.2f} s", flush=True)


def literals(count: int = 500) -> list[str]:
    """As many texts as a real set of rules looks for; few of them occur."""
    rng = random.Random(1)
    found = ["link timeout", "aicore exception", "Malloc device memory failed", "model stream execute failed", "engine stopped", "link error"]
    while len(found) < count:
        found.append(f"{rng.choice(('Notify', 'Stream'))}Wait failed {rng.getrandbits(32):x}")
    return found


def floor(bundle: Path) -> None:
    """igzip alone: nothing that reads a .gz can be faster."""
    room = memoryview(bytearray(4 << 20))
    opened: Any = igzip.IGzipFile  # its stubs have no types for it
    with opened(bundle) as file:
        while file.readinto(room):
            pass


def _quiet(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT, check=False)


def run(bundle: Path, spent: dict[str, tuple[float, float]]) -> None:
    """Time all rivals that are installed on a .tar.gz; the others are named."""
    if bundle.name.endswith("gz"):
        with stage("igzip alone", spent):
            floor(bundle)
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        words = folder / "words"
        words.write_text("\n".join(literals()))
        out = folder / "out"
        out.mkdir()
        with stage("tar -x", spent):
            _quiet("tar", "-xf", str(bundle), "-C", str(out))
        for name, command in _rivals(words, out).items():
            if shutil.which(command[0]) is None:
                print(f"{name:34s} not installed")
                continue
            with stage(name, spent):
                _quiet(*command)
    finally:
        shutil.rmtree(folder)


def _rivals(words: Path, out: Path) -> dict[str, tuple[str, ...]]:
    return {
        "rg -F, 500 literals": ("rg", "-a", "-F", "-c", "-f", str(words), str(out)),
        "lnav -n, its own formats": ("lnav", "-n", "-r", "-c", ";SELECT log_level, count(*) FROM all_logs GROUP BY 1", str(out)),
    }


def small(triage: Callable[[Path, Path], list[str]], bundle: Path, tries: int = 3) -> float:
    """Seconds from the start of a process to its end for `bundle`, at best, once everything is warm."""
    best = 1e9
    for _ in range(tries + 1):
        folder = Path(tempfile.mkdtemp(prefix="bench-"))
        began = time.monotonic()
        done = subprocess.run(triage(bundle, folder / "case"), stdout=subprocess.DEVNULL, env=dict(os.environ), check=False)
        best = min(best, time.monotonic() - began)
        shutil.rmtree(folder)
        if done.returncode not in (0, 1):
            raise SystemExit(f"triage of a small bundle ended with status {done.returncode}")
    return best
