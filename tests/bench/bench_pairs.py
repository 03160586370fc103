"""Whether two unrelated incidents in one bundle are both found: `python -m tests.bench.bench_pairs CORPUS [--pairs 60] [--seed 5]`.

CORPUS holds one folder an incident, with bundle/ and gold.json (root_cause_class, also_accept). Two are put side by side in one bundle, and
both causes looked for among the first diagnoses.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from pathlib import Path

from forensics.options import Options
from forensics.pipeline import run
from forensics.result import Triage


def right(folder: Path) -> set[str]:
    """The root causes that are right for an incident."""
    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    return {gold["root_cause_class"], *gold.get("also_accept", [])}


def triaged(one: Path, other: Path, scratch: Path) -> Triage:
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = Path(name)
        for side, incident in (("one", one), ("other", other)):
            (folder / "logs" / side).parent.mkdir(exist_ok=True)
            for path in sorted(path for path in (incident / "bundle").rglob("*") if path.is_file()):
                target = folder / "logs" / side / path.relative_to(incident / "bundle")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
        work = run([str(folder / "logs")], Options(out=str(folder / "case"), index=False))
        work.close()
        return work.triage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    incidents = sorted(path.parent for path in given.corpus.glob("*/gold.json"))
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        while counts["pairs"] < given.pairs:
            one, other = rng.sample(incidents, 2)
            if right(one) & right(other) or "healthy" in right(one) | right(other):
                continue
            counts["pairs"] += 1
            found = triaged(one, other, Path(scratch))
            causes = [d.finding.rule.root_cause for d in found.diagnoses]
            places = [next((n for n, cause in enumerate(causes) if cause in right(side)), 99) for side in (one, other)]
            counts["both among the first two"] += max(places) < 2
            counts["both among the first three"] += max(places) < 3
            counts["both at medium or above"] += max(places) < 99 and all(found.diagnoses[n].level != "low" for n in places)
            if max(places) >= 3:
                print(f"{one.name} + {other.name}: {causes[:4]}")
    print(", ".join(f"{name} {count}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
