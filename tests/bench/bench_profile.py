"""What a large profile costs: a trace and a million kernels, and beside it msprof-analyze on a tenth of them.

    python -m tests.bench.bench_profile                                   # ours: 500 MB and 1 M rows, then a tenth
    python -m tests.bench.bench_profile --rival /tmp/rival/bin/msprof-analyze

CPU seconds are user and system time of the process and its children; memory is the peak of the largest of them. Compare ratios of one run:
seconds of a busy machine say little.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

from tests.bench import gen_profile

LIMIT_CPU, LIMIT_MEMORY = 15.0, 1e9
"""What the large one may take."""


def measured(command: list[str], log: pathlib.Path) -> tuple[float, float, float, int]:
    """CPU seconds, wall seconds, peak bytes, exit status."""
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        with log.open("wb") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        os.execvp(command[0], command)
    _, status, used = os.wait4(pid, 0)
    return used.ru_utime + used.ru_stime, time.monotonic() - begin, used.ru_maxrss * 1024.0, os.waitstatus_to_exitcode(status)


def line(name: str, result: tuple[float, float, float, int]) -> None:
    cpu, wall, memory, status = result
    print(f"{name:<44} {cpu:7.1f} CPU s  {wall:7.1f} s  {memory / 1e6:7.0f} MB  exit {status}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--trace-mb", type=float, default=500)
    parser.add_argument("--rival", help="msprof-analyze, installed in an environment of its own")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-profile-"))
    try:
        own = [sys.executable, "-m", "forensics", "profile"]
        for name, part in (("whole", 1.0), ("tenth", 0.1)):
            gen_profile.make(folder / name, round(options.kernels * part), round(options.trace_mb * 1e6 * part))
        whole = measured([*own, str(folder / "whole"), "-o", str(folder / "whole.case")], folder / "whole.log")
        line(f"dsforensics, {options.trace_mb:g} MB, {options.kernels:,} kernels", whole)
        tenth = measured([*own, str(folder / "tenth"), "-o", str(folder / "tenth.case")], folder / "tenth.log")
        line("dsforensics, a tenth", tenth)
        if options.rival:
            profile = next((folder / "tenth").iterdir())
            rival = measured([options.rival, "advisor", "all", "-d", str(profile), "-o", str(folder / "rival")], folder / "rival.log")
            line("msprof-analyze advisor all, a tenth", rival)
            print(f"ratio on the tenth: {rival[0] / tenth[0]:.1f} times the CPU, {rival[2] / tenth[2]:.1f} times the memory")
        within = whole[0] <= LIMIT_CPU and whole[2] <= LIMIT_MEMORY and whole[3] == 0
        print("within" if within else "over", f"{LIMIT_CPU:g} CPU s and {LIMIT_MEMORY / 1e9:g} GB")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
