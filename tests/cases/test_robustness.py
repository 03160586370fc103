"""The answer does not depend on what differs from run to run: numbers, times, folders, wording of a release, order, noise, missing files."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from rules import pack
from tests.bench import corpus
from tests.bench.mutations import LOSSY, MUTATIONS, Healthy, healthy_lines
from tests.bench.robustness import Outcome, files_of, robustness

SAMPLE = Path(__file__).parents[2] / "samples" / "two-nodes.tar.gz"
QUIET = Healthy((), ())


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("incidents") / "one"
    folder.mkdir()
    shutil.copy(SAMPLE, folder / "bundle.tar.gz")
    gold = {"root_cause_class": "ecc-hardware-fault", "key_evidence": ["0x80E01801"]}
    folder.joinpath("gold.json").write_text(json.dumps(gold))
    healthy = healthy_lines([(files_of(SAMPLE), ("0x80E01801",))])
    return {outcome.name: outcome for outcome in robustness([folder], corpus.top1, healthy, pack.load(), [*MUTATIONS])}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_sample_keeps_its_answer(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert outcome.tried or name in LOSSY, "the mutation does something to the sample"
    assert outcome.after == outcome.before == outcome.tried


@pytest.mark.parametrize("name", ["pids", "times", "devices", "ranks", "paths", "shuffled"])
def test_a_variant_is_another_text_and_the_same_for_the_same_seed(name: str) -> None:
    files = files_of(SAMPLE)
    one, two = (MUTATIONS[name](files, random.Random(7), QUIET) for _ in range(2))
    assert one == two != files
    assert one is not None and len(one) == len(files)


def test_an_incident_whose_answer_changes_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    shutil.copy(SAMPLE, folder / "bundle.tar.gz")
    folder.joinpath("gold.json").write_text(json.dumps({"root_cause_class": "ecc-hardware-fault"}))
    seen: list[int] = []

    def fickle(incident: corpus.Incident, conclusion: object) -> bool:
        seen.append(1)
        return len(seen) == 1

    (outcome,) = robustness([folder], fickle, QUIET, pack.load(), ["pids"])
    assert outcome.fall == 1.0
    assert [name for name, _ in outcome.lost] == ["odd"]
