"""Learns from incidents with known answers how sure a diagnosis may be: `python -m tests.bench.calibrate CORPUS... [--write]`.

Every incident is diagnosed twice: with all rules, and once more without the rules of its own root cause. The first is what the tool says
where its packs know the cause, the second what it says, and how firmly, where they do not. A new incident may be of either kind; `--unseen`
is the share of the second. The table is fitted on the mixture (logistic regression, whose terms may count in one direction only), and
judged on classes of root causes that it was not fitted on: their incidents, of both kinds, are left out class by class.

`--write` replaces `rules/data/calibration.tsv`. Run it after rules, or what ranks them, have changed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from forensics import ingest
from rules import calibration, pack
from rules.confidence import SYMPTOM
from rules.scan import Scanner
from tests.bench import corpus

UNSEEN = 0.2
"""Of new incidents, one in five has a cause that no rule knows, or knows by other words: when packs first met public reports they had not
been written from, a quarter to a third of the answers was wrong; since then they have grown by those."""
TERMS = (*calibration.BASES, *calibration.SIGNS)
PRIOR = np.array([0.0] * len(calibration.BASES) + [0.8, 0.8, -0.8, -0.4, -0.4, -1.0])
"""Log-odds that experience gives a term before anything is measured, in the order of TERMS."""
RIDGE = np.array([0.05] * len(calibration.BASES) + [0.5] * len(calibration.SIGNS))
"""Pull towards PRIOR: a term that was seen a few times only keeps about that."""
TABLE = Path(calibration.__file__).parent / "data" / "calibration.tsv"
Floats = NDArray[np.float64]


class Row(msgspec.Struct):
    """A first diagnosis: what the table sees of it, and whether it was right."""

    group: str
    """Class of root causes, left out together."""
    unseen: bool
    healthy: bool
    features: dict[str, float]
    right: bool


def rows_of(folders: list[Path]) -> tuple[list[Row], Counter[str]]:
    """First diagnoses of all incidents, with and without the rules of their own cause; and how many had none at all."""
    rules = pack.load()
    scanner = Scanner.load(rules, ingest.EXTRA)
    rows: list[Row] = []
    silent: Counter[str] = Counter()
    for folder in folders:
        for incident in corpus.incidents(folder, scanner):
            for unseen in (False, True) if not incident.healthy else (False,):
                known = corpus.without(rules, incident.right) if unseen else rules
                found = corpus.named(corpus.concluded(incident, known, scanner))
                if not found:
                    silent["unseen" if unseen else "healthy" if incident.healthy else "seen"] += 1
                    continue
                right = found[0].finding.rule.root_cause in incident.right
                rows.append(Row(min(incident.right), unseen, incident.healthy, found[0].features, right))
    return rows, silent


def fitted(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Log-odds of the terms by Newton's method; a term that would count the wrong way is left out."""
    signs = np.array([0] * len(calibration.BASES) + list(calibration.SIGNS.values()))
    free = np.ones(len(TERMS), bool)
    out = np.zeros(len(TERMS))
    while True:
        out[~free] = 0
        for _ in range(100):
            sure = 1 / (1 + np.exp(-x @ out))
            slope = x.T @ (weights * (sure - y)) + RIDGE * (out - PRIOR)
            bend = (x * (weights * sure * (1 - sure))[:, None]).T @ x + np.diag(RIDGE)
            step = np.zeros(len(TERMS))
            step[free] = np.linalg.solve(bend[np.ix_(free, free)], slope[free])
            out -= step
            if np.abs(step).max() < 1e-10:
                break
        wrong = free & (signs * out < 0)
        if not wrong.any():
            return out
        free &= ~wrong


def chances(x: Floats, terms: Floats) -> Floats:
    """What the table would say, as `calibration.chance` does."""
    most = np.where(x[:, TERMS.index("symptom")] > 0, SYMPTOM, calibration.CERTAIN)
    return np.clip(1 / (1 + np.exp(-x @ terms)), 0.01, most)


def weighted_error(sure: Floats, y: Floats, weights: Floats) -> float:
    """Expected calibration error over ten bins."""
    bins = np.minimum((sure * 10).astype(int), 9)
    return float(sum(abs((weights * (sure - y))[bins == n].sum()) for n in range(10)) / weights.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+", type=Path)
    parser.add_argument("--unseen", type=float, default=UNSEEN, help="share of incidents whose cause no rule knows")
    parser.add_argument("--write", action="store_true", help="replace the table of the packs")
    options = parser.parse_args()
    rows, silent = rows_of(options.corpus)
    x = np.array([[row.features.get(name, 0.0) for name in TERMS] for row in rows])
    y = np.array([row.right for row in rows], np.float64)
    unseen, healthy = np.array([row.unseen for row in rows]), np.array([row.healthy for row in rows])
    seen = ~unseen & ~healthy
    weights = np.where(unseen, options.unseen / (1 - options.unseen), 1.0)
    terms = fitted(x, y, weights)
    groups = np.array([row.group for row in rows])
    crossed = np.zeros(len(rows))
    for group in sorted(set(groups)):
        out = groups == group
        crossed[out] = chances(x[out], fitted(x[~out], y[~out], weights[~out]))
    for what, mask, kind in (("with all rules", seen, "seen"), ("cause unknown", unseen, "unseen"), ("healthy", healthy, "healthy")):
        said = f"right {y[mask].mean():6.1%}, mean confidence {crossed[mask].mean():.2f}, surest {crossed[mask].max():.2f}" if mask.any() else ""
        print(f"{what:<15} {mask.sum():>4} diagnoses, {silent[kind]:>3} silent; {said}")
    for name, value in zip(TERMS, terms, strict=True):
        print(f"  {name:<10} {value:+.2f}   in {int((x[:, TERMS.index(name)] > 0).sum())} diagnoses")
    sick, own = ~healthy, chances(x, terms)
    print(f"calibration error, classes left out: {weighted_error(crossed[sick], y[sick], weights[sick]):.3f} of the mixture")
    print(f"calibration error, classes left out: {weighted_error(crossed[seen], y[seen], weights[seen]):.3f} with all rules")
    print(f"calibration error of the table itself: {weighted_error(own[seen], y[seen], weights[seen]):.3f} with all rules")
    if options.write:
        _write(terms, f"{seen.sum()} incidents with all rules, {unseen.sum()} without those of their cause at a share of {options.unseen:g}")


def _write(terms: Floats, learnt: str) -> None:
    head = "# term, log-odds: how much it says for or against a diagnosis being right (rules/calibration.py)\n"
    rows = "".join(f"{name}\t{value:.3f}\n" for name, value in zip(TERMS, terms, strict=True))
    TABLE.write_text(f"{head}# made by tests.bench.calibrate from {learnt}\n{rows}", encoding="utf-8")
    print(f"written: {TABLE}")


if __name__ == "__main__":
    main()
