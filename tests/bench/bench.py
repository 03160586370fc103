"""What triage of a bundle costs, beside what else there is: `python -m tests.bench.bench BUNDLE.tar.gz [--workers N] [--rules packs|made]`.

Every figure is printed stage by stage and once more, at the end, beside what it is meant to be. CPU seconds are those of all processes,
since wall time says little on a busy machine; what the floor (igzip alone) costs in the same run says how busy it was. `made` are 500
literals and regexes of which about ten are hit; `packs` the packs that are installed. Memory is the proportional set size of all
processes together.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from forensics import ingest
from forensics.bundle import Bundle
from forensics.case import Identity, Plan, begin
from forensics.pool import cores
from forensics.result import BundleInfo, Coverage, Triage
from rules import pack
from rules.diagnose import diagnose
from rules.model import Leaf, Rule, RuleSet, Text
from rules.scan import Scanner
from tests.bench import gen_bundle, rivals
from tests.bench.rivals import stage


class Memory(threading.Thread):
    """Watches this process and its children."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        """kB, the highest so far."""

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
    leaves = [Leaf("a", contains=(text,)) for text in rivals.literals(396)]
    leaves += [Leaf("a", regex=rf"retCode=0x{k:x}[0-9]+, \[(?P<what>[a-z ]+)\]") for k in range(100)]
    leaves += [Leaf("a", regex=r"error code is (?P<code>50\d{4}), device=(?P<device>\d+)")]
    return RuleSet((), tuple(Rule(f"made.r{k}", "x", Text("a", "b"), "runtime", "error", leaf) for k, leaf in enumerate(leaves)))


def triage_command(bundle: Path, case: Path) -> list[str]:
    return [sys.executable, "-m", "forensics", "triage", str(bundle), "-o", str(case)]


def unpack(bundle: Path) -> None:
    scratch = memoryview(bytearray(4 << 20))
    for member in Bundle(bundle).members():
        while member.readinto(scratch):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--rules", choices=("packs", "made"), default="packs")
    given = parser.parse_args()
    memory = Memory()
    memory.start()
    spent: dict[str, tuple[float, float]] = {}
    with stage("unpack only", spent):
        unpack(given.bundle)
    with stage("load rules", spent):
        rules = made() if given.rules == "made" else pack.load(())
        scanner = Scanner.load(rules, ingest.EXTRA)
    if given.workers > 1:
        with stage("scan, one worker", spent):
            ingest.scan(Bundle(given.bundle), scanner, 1)
    first: list[float] = []
    began = time.monotonic()
    bundle = Bundle(given.bundle)
    with stage(f"scan, {given.workers} workers", spent):
        found = ingest.scan(bundle, scanner, given.workers, on_hits=lambda _: first.append(time.monotonic() - began))
    with stage("diagnose", spent):
        onset = min((error.ts for error in found.first_errors if error.ts is not None), default=None)
        diagnose(rules, scanner.leaves, found.hits, found.counts, found.facts, found.metrics, onset)
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        case = begin(folder / "case")
        names = [(rules.rules[ref.rule].id, ref.leaf.id) for ref in scanner.leaves]
        info = BundleInfo(bundle.name, bundle.sha256, bundle.size, found.unpacked, len(found.files), found.lines, [], 0, None, None, "+00:00")
        triage = Triage("0", [], info, [], [], found.first_errors, [], [], Coverage(found.lines, 0, 0, 0, found.files), [], [])
        with stage("store", spent):
            case.store(Plan(Identity(bundle.sha256, "", ""), [str(given.bundle)]), triage, found, names)
        with stage("index", spent):
            from forensics import index

            index.build(case, bundle.reopen(), found.clocks, given.workers)
        stored = sum(path.stat().st_size for path in (folder / "case").rglob("*") if path.is_file())
        most = memory.most
        tiny = folder / "small.tar.gz"
        gen_bundle.write(tiny, 0.05, 4, 7)
        seconds = rivals.small(triage_command, tiny)
    finally:
        shutil.rmtree(folder)
    rivals.run(given.bundle, spent)
    lines = f"{found.lines} lines, {found.unpacked / 1e6:.0f} MB unpacked, {len(found.hits)} of {sum(found.counts.values())} hits kept"
    print(f"\n{given.bundle.name}: {lines}, {stored / 1e6:.0f} MB stored")
    report(spent, given.workers, first[0] if first else 0.0, most, seconds)


def report(spent: dict[str, tuple[float, float]], workers: int, first: float, most: int, small: float) -> None:
    """The figures, beside what they should be for a bundle of 1 GB."""
    scanned, scanning = spent[f"scan, {workers} workers"]
    diagnosis = spent["load rules"][0] + scanned + spent["diagnose"][0]
    rows = [
        ("diagnosis", f"{diagnosis:.1f} CPU s", "5 for 1 GB"),
        ("full case", f"{diagnosis + spent['store'][0] + spent['index'][0]:.1f} CPU s", "10 for 1 GB"),
        ("first finding", f"{first:.2f} s after the rules are loaded", "1"),
        ("memory", f"{most // 1024} MB", "600, whatever the size"),
        ("a bundle of 50 KB", f"{small:.2f} s from start to end", "1"),
    ]
    if workers > 1:
        rows.append((f"{workers} workers", f"{spent['scan, one worker'][1] / scanning:.2f} times as fast as one", "1.6 for two"))
    if "igzip alone" in spent:
        rows.append(("diagnosis to floor", f"{diagnosis / spent['igzip alone'][0]:.1f} times igzip alone", "about 4"))
    if "rg -F, 500 literals" in spent:
        found = spent["tar -x"][0] + spent["rg -F, 500 literals"][0]
        rows.append(("diagnosis to tar and rg", f"{diagnosis / found:.2f} times {found:.1f} CPU s", "less than once"))
    for name, value, wanted in rows:
        print(f"{name:28s} {value:38s} wanted: {wanted}")


if __name__ == "__main__":
    main()
