"""Whether triage finds where a made incident of many nodes began, and what many bundles cost against one with the same bytes:
`python -m tests.bench.bench_cluster [--nodes 16] [--mb 4] [--seeds 6] [--rounds 3]`.

Every combination of fault, of heartbeats or none, and of a culprit whose node's logs are there or missing, for several seeds; then the
time of the bundles one for each node, in turn with that of all in one, in the same run: the ratio is meant to be at most 1.2.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from pathlib import Path

from forensics.options import Options
from forensics.pipeline import run
from forensics.result import Triage
from tests.bench.gen_cluster import Answer, Plan, write

AT_MOST = 1.2
CLOCKS = 2.0
"""Seconds that an estimated clock may be from the true one."""


def triaged(paths: list[Path], folder: str, index: bool = False) -> tuple[Triage, float]:
    """What triage says of the bundles, and the seconds it took."""
    begin = time.perf_counter()
    work = run([str(path) for path in paths], Options(out=f"{folder}/case", force=True, index=index))
    try:
        work.finish()
    finally:
        work.close()
    return work.triage, time.perf_counter() - begin


def faults(found: Triage, answer: Answer, logs: bool) -> list[str]:
    """What is not as the answer says."""
    wrong = []
    began = found.began[-1] if found.began else None
    if began is None:
        return ["nothing said of where it began"]
    if not logs and began.sure == "low" and not began.logs:
        return []  # nobody said more than that it is among those without logs
    if began.node not in (answer.node, answer.server):
        wrong.append(f"node {began.node}, not {answer.node}")
    if began.device != answer.device:
        wrong.append(f"device {began.device}, not {answer.device}")
    if began.rank != answer.rank:
        wrong.append(f"rank {began.rank}, not {answer.rank}")
    if logs and (not found.diagnoses or found.diagnoses[0].finding.rule.root_cause not in answer.slugs):
        wrong.append(f"cause {found.diagnoses[0].finding.rule.root_cause if found.diagnoses else 'none'}, not {answer.slugs}")
    known = {node.name: node.ahead / 1e6 for node in found.nodes if node.ahead is not None and node.name in answer.skews}
    reference = next((node.name for node in found.nodes if node.ahead == 0), "")
    for name, ahead in known.items():
        true = answer.skews[name] - answer.skews.get(reference, 0.0)
        if abs(ahead - true) > CLOCKS:
            wrong.append(f"clock of {name} {ahead:+.1f} s, not {true:+.1f} s")
    if len(known) < len(answer.skews) - len(answer.missing):
        wrong.append(f"only {len(known)} clocks compared")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--mb", type=float, default=4.0, help="MB of each node in the race of many bundles against one")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    right = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for fault, quiet, logs in itertools.product(("ecc", "hang", "killed"), (False, True), (True, False)):
            for seed in range(given.seeds):
                plan = Plan(given.nodes, seed, 0.1, fault, quiet, 3, logs)
                paths, _, answer = write(plan, Path(folder) / f"{fault}-{quiet}-{logs}-{seed}")
                found, _ = triaged(paths, folder)
                wrong = faults(found, answer, logs)
                total, right = total + 1, right + (not wrong)
                if wrong:
                    print(f"{fault} quiet={quiet} culprit's logs={logs} seed={seed}: {'; '.join(wrong)}")
        print(f"right in {right} of {total}")
        paths, whole, _ = write(Plan(given.nodes, 99, given.mb), Path(folder) / "race")
        triaged(paths, folder)  # so that neither pays for what is read or compiled once
        times: list[tuple[float, float]] = [(triaged(paths, folder)[1], triaged([whole], folder)[1]) for _ in range(given.rounds)]
    many, one = (statistics.median(side) for side in zip(*times, strict=True))
    print(f"{len(paths)} bundles {many:.2f} s, one bundle {one:.2f} s: {many / one:.2f} times (meant to be at most {AT_MOST})")


if __name__ == "__main__":
    main()
