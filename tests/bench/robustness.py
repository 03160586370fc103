"""How far diagnoses hold on variants of incidents: `python -m tests.bench.robustness CORPUS [--sample N] [--only NAME...] [--seed S]`.

Every incident of a corpus (see `corpus.py`) is changed in ways that leave its cause what it is (`mutations.py`), and diagnosed again. For
each mutation: on how many incidents it applies, how many of them are right before and after, and which are lost. The score can be another
one than whether the first diagnosis is right: `robustness(folder, score)` takes any function of an incident and its conclusion.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from forensics import ingest
from forensics.bundle import Bundle
from rules import pack
from rules.diagnose import Conclusion
from rules.model import RuleSet
from rules.scan import Scanner
from tests.bench import corpus
from tests.bench.mutations import LOSSY, MUTATIONS, Files, Healthy, healthy_lines

Score = Callable[[corpus.Incident, Conclusion], bool]
MEANT = 0.05
"""Share of incidents that a mutation may cost."""


class Outcome(msgspec.Struct):
    """What one mutation cost."""

    name: str
    tried: int = 0
    before: int = 0
    after: int = 0
    lost: list[tuple[str, str]] = []
    """Incidents that are right before and not after, and what is said of them instead."""

    @property
    def fall(self) -> float:
        return (self.before - self.after) / self.tried if self.tried else 0.0


def files_of(bundle: Path) -> Files:
    """All members of a bundle as text."""
    opened, files = Bundle(str(bundle)), {}
    block = memoryview(bytearray(1 << 20))
    try:
        for member in opened.members():
            data = bytearray()
            while count := member.readinto(block):
                data += block[:count]
            files[member.path] = data.decode("utf-8", "surrogateescape")
    finally:
        opened.close()
    return files


def written(files: Files, folder: Path) -> Path:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogateescape"))
    return folder


def robustness(
    folders: Sequence[Path], score: Score, healthy: Healthy, rules: RuleSet, names: Sequence[str] = tuple(MUTATIONS), seed: int = 1
) -> Iterator[Outcome]:
    """The cost of each mutation over the incidents in `folders`."""
    scanner = Scanner.load(rules, ingest.EXTRA)
    originals = []
    for folder in folders:
        right, evidence = corpus.gold_of(folder)
        incident = corpus.scanned(corpus.bundle_of(folder), scanner, folder.name, right, evidence)
        originals.append((incident, score(incident, corpus.concluded(incident, rules, scanner)), files_of(corpus.bundle_of(folder))))
    for name in names:
        outcome = Outcome(name)
        for incident, held, files in originals:
            variant = MUTATIONS[name](files, random.Random(f"{seed} {name} {incident.name}"), healthy)
            if variant is None or (name in LOSSY and not _decided(incident, variant)):
                continue
            with tempfile.TemporaryDirectory() as scratch:
                changed = corpus.scanned(written(variant, Path(scratch)), scanner, incident.name, incident.right, incident.evidence)
            conclusion = corpus.concluded(changed, rules, scanner)
            holds = score(changed, conclusion)
            outcome.tried += 1
            outcome.before += held
            outcome.after += holds
            if held and not holds:
                first = next(iter(corpus.named(conclusion)), None)
                outcome.lost.append((incident.name, first.finding.rule.id if first else "nothing"))
        yield outcome


def _decided(incident: corpus.Incident, files: Files) -> bool:
    """Whether all lines that decide an incident are left."""
    return bool(incident.evidence) and all(any(text in one for one in files.values()) for text in incident.evidence)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--sample", type=int, help="at most so many incidents, spread over the corpus")
    parser.add_argument("--only", nargs="*", choices=list(MUTATIONS), default=list(MUTATIONS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-v", "--verbose", action="store_true", help="name the incidents that are lost")
    options = parser.parse_args()
    chosen = [folder for folder in corpus.folders(options.corpus, options.sample) if "healthy" not in corpus.gold_of(folder)[0]]
    every = corpus.folders(options.corpus)
    healthy = healthy_lines([(files_of(corpus.bundle_of(folder)), corpus.gold_of(folder)[1]) for folder in every])
    worst = 0.0
    for outcome in robustness(chosen, corpus.top1, healthy, pack.load(), options.only, options.seed):
        worst = max(worst, outcome.fall)
        mark = "" if outcome.fall <= MEANT else "  more than meant"
        print(
            f"{outcome.name:<16} {outcome.tried:>4} incidents: {outcome.before:>4} right before, {outcome.after:>4} after, {-outcome.fall:+.1%}{mark}"
        )
        if options.verbose:
            for incident, said in outcome.lost:
                print(f"    {incident}: {said}")
    print(f"worst fall {worst:.1%}, meant at most {MEANT:.0%}")


if __name__ == "__main__":
    main()
