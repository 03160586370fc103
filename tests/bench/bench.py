"""What triage of a bundle costs, stage by stage, in CPU seconds: `python -m tests.bench.bench BUNDLE [--workers N] [--rules packs|made]`.

CPU seconds of all processes, since wall time says little on a busy machine; beside them the cost of only unpacking the bundle, which
nothing can beat. `made` are 500 literals and regexes of which about ten are hit; `packs` the packs that are installed. Memory is the
proportional set size of all processes together, at its highest.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forensics import ingest
from forensics.bundle import Bundle
from forensics.case import Identity, Plan, begin
from forensics.result import BundleInfo, Coverage, Triage
from rules import pack
from rules.model import Leaf, Rule, RuleSet, Text
from rules.scan import Scanner


def cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class Memory(threading.Thread):
    """Watches this process and its children."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0

    def run(self) -> None:
        me = os.getpid()
        while True:
            total = 0
            try:
                children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
            except OSError:
                return
            for pid in (me, *children):
                try:
                    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                except OSError:
                    continue
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            self.most = max(self.most, total)
            time.sleep(0.3)


def made() -> RuleSet:
    """500 rules, as many literals as a real set has; a few of them hit on what gen_bundle writes."""
    rng = random.Random(1)
    words = ["link timeout", "aicore exception", "Malloc device memory failed", "model stream execute failed", "engine stopped", "link error"]
    leaves = [Leaf("a", contains=(word,)) for word in words]
    leaves += [Leaf("a", contains=(f"{rng.choice(('Notify', 'Stream'))}Wait failed {rng.getrandbits(32):x}",)) for _ in range(390)]
    leaves += [Leaf("a", regex=rf"retCode=0x{k:x}[0-9]+, \[(?P<what>[a-z ]+)\]") for k in range(100)]
    leaves += [Leaf("a", regex=r"error code is (?P<code>50\d{4}), device=(?P<device>\d+)")]
    return RuleSet((), tuple(Rule(f"made.r{k}", "x", Text("a", "b"), "runtime", "error", leaf) for k, leaf in enumerate(leaves)))


@contextmanager
def stage(name: str) -> Iterator[None]:
    used, began = cpu(), time.monotonic()
    yield
    print(f"{name:24s} {cpu() - used:7.2f} CPU s {time.monotonic() - began:7.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--rules", choices=("packs", "made"), default="packs")
    given = parser.parse_args()
    memory = Memory()
    memory.start()
    scratch = memoryview(bytearray(4 << 20))
    with stage("unpack only"):
        for member in Bundle(given.bundle).members():
            while member.readinto(scratch):
                pass
    with stage("load rules"):
        rules = made() if given.rules == "made" else pack.load(())
        scanner = Scanner.load(rules, ingest.EXTRA)
    first: list[float] = []
    began = time.monotonic()
    bundle = Bundle(given.bundle)
    with stage("scan"):
        found = ingest.scan(bundle, scanner, given.workers, on_hits=lambda _: first.append(time.monotonic() - began))
    print(f"{'':24s} {found.lines} lines, {found.unpacked / 1e6:.0f} MB, {len(found.hits)} hits of {sum(found.counts.values())}, "
          f"first after {first[0] if first else 0:.2f} s, {memory.most // 1024} MB")  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        case = begin(folder / "case")
        names = [(rules.rules[ref.rule].id, ref.leaf.id) for ref in scanner.leaves]
        info = BundleInfo(bundle.name, bundle.sha256, bundle.size, found.unpacked, len(found.files), found.lines, [], 0, None, None, "+00:00")
        triage = Triage("0", [], info, [], [], found.first_errors, [], [], Coverage(found.lines, 0, 0, 0, found.files), [], [])
        with stage("store"):
            case.store(Plan(Identity(bundle.sha256, "", ""), [str(given.bundle)]), triage, found, names)
        with stage("index"):
            from forensics import index

            index.build(case, bundle.reopen(), found.clocks, given.workers)
        size = sum(path.stat().st_size for path in (folder / "case").rglob("*") if path.is_file())
        print(f"{'':24s} {size / 1e6:.0f} MB on disk, {memory.most // 1024} MB of memory")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
