"""Whether redacted bundles are diagnosed like their originals, and how fast they are made.

usage: python -m tests.bench.redact_check CORPUS [--speed MEGABYTES]

CORPUS holds one folder an incident, with the logs in bundle/ or bundle.tar.gz. For each, the original and its redacted copy are triaged;
the same are: the root causes and levels of all diagnoses, and the first one's rule. --speed redacts a made log of that size instead.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from forensics.options import Options
from forensics.pipeline import run
from forensics.redact import copy, protected
from forensics.result import Triage
from rules import pack

KEY = b"0" * 32


def concluded(source: str, folder: Path) -> Triage:
    work = run([source], Options(out=str(folder), index=False, workers=1, force=True), None)
    try:
        return work.triage
    finally:
        work.close()


def gist(triage: Triage) -> tuple[str, list[tuple[str, str]]]:
    found = [(d.finding.rule.root_cause, d.level) for d in triage.diagnoses]
    return (triage.diagnoses[0].finding.rule.id if triage.diagnoses else "", found)


def compare(corpus: Path) -> int:
    words = protected.words(pack.load())
    same = first = total = 0
    folders = sorted(path for path in corpus.iterdir() if path.is_dir())
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            source = next((folder / name for name in ("bundle", "bundle.tar.gz", "bundle.tar") if (folder / name).exists()), folder)
            target = Path(scratch) / "copy.tar.zst"
            copy.copy(str(source), target, KEY, protected=words, force=True)
            before, after = gist(concluded(str(source), Path(scratch) / "a.case")), gist(concluded(str(target), Path(scratch) / "b.case"))
            total += 1
            same += before == after
            first += before[1][:1] == after[1][:1]
            if before != after:
                print(f"{folder.name}\n   was {before}\n   is  {after}", flush=True)
    print(f"{total} bundles: all diagnoses the same in {same} ({same / total:.1%}), the first in {first} ({first / total:.1%})")
    return 0 if first >= 0.98 * total else 1


def speed(megabytes: int) -> int:
    lines = [
        f"[INFO] RUNTIME({800 + k % 8},python3):2026-03-12-14:{k // 3600 % 60:02d}:{k // 60 % 60:02d}.{k % 1000:03d}.{k * 7 % 1000:03d} "
        f"[engine.cc:{k % 900}]{k} Submit:task {k} stream {k % 64} done, cost {k % 977} us\n"
        if k % 20
        else f"[ERROR] HCCL({800 + k % 8},python3):2026-03-12-14:31:07.803.514 [rank.cc:12][88]server[10.1.{k % 8}.{k % 250}] device[{k % 8}] lost\n"
        for k in range(200_000)
    ]
    block = "".join(lines).encode()
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "made.log"
        with open(source, "wb") as stream:
            for _ in range(max(1, (megabytes << 20) // len(block))):
                stream.write(block)
        size = source.stat().st_size
        begin = time.process_time()
        copy.copy(str(source), Path(scratch) / "copy.tar.zst", KEY)
        spent = time.process_time() - begin
        begin = time.process_time()
        source.read_bytes().count(b"10.1.")
        base = time.process_time() - begin
    print(f"{size / 1e6:.0f} MB in {spent:.1f} CPU s: {size / 1e6 / spent:.0f} MB a CPU second; reading and counting one text takes {base:.2f}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?")
    parser.add_argument("--speed", type=int, metavar="MEGABYTES")
    given = parser.parse_args()
    if given.speed:
        return speed(given.speed)
    if given.corpus is None:
        parser.error("a CORPUS, or --speed")
    return compare(given.corpus)


if __name__ == "__main__":
    sys.exit(main())
