"""A job on several nodes, one bundle for each, clocks minutes apart, one node's logs missing: where it began is found."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from forensics.case import open_case
from forensics.options import Options
from forensics.pipeline import explain, run
from forensics.report.data import encode, report
from forensics.result import Triage
from tests.bench.bench_cluster import faults
from tests.bench.gen_cluster import Answer, Plan, write

SMALL = 0.02


def triage(paths: list[Path], out: Path, index: bool = False, workers: int = 1) -> Triage:
    work = run([str(path) for path in paths], Options(out=str(out), index=index, workers=workers))
    work.finish()
    work.close()
    return work.triage


@pytest.fixture(scope="module")
def ecc(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path, Answer, Triage, Path]:
    folder = tmp_path_factory.mktemp("ecc")
    paths, whole, answer = write(Plan(4, 5, SMALL, missing=1), folder)
    case = folder / "case"
    return paths, whole, answer, triage(paths, case, index=True), case


def test_node_device_and_rank_are_named_and_clocks_told_apart(ecc: tuple[list[Path], Path, Answer, Triage, Path]) -> None:
    _, _, answer, found, _ = ecc
    assert faults(found, answer, True) == []
    [began] = found.began
    assert began.sure == "high" and began.pid == answer.pid and began.waiting == 23
    best = found.diagnoses[0]
    assert (best.place.node, best.place.device, best.place.rank) == (answer.node, answer.device, answer.rank)
    assert best.echoes and max(echo.ranks for echo in best.echoes) == 23, "what 23 ranks repeat is one line"
    assert any("24-31" in note.en or "ranks" in note.en for note in found.collect_next), "the missing node is asked for"


def test_all_lines_of_all_nodes_are_one_timeline(ecc: tuple[list[Path], Path, Answer, Triage, Path]) -> None:
    _, _, answer, _found, folder = ecc
    frame = open_case(folder).sql(
        "SELECT node, max(ts) AS at FROM events WHERE message LIKE '%Task run failed, base%' GROUP BY node ORDER BY node"
    )
    times: list[datetime] = frame["at"].to_list()
    assert len(times) == 3 and (max(times) - min(times)).total_seconds() < 12, "though clocks are minutes apart"
    nodes = open_case(folder).sql("SELECT name, clock_ahead, taken_off FROM nodes WHERE logs ORDER BY name").rows()
    assert {name for name, _, _ in nodes} == set(answer.skews) - set(answer.missing)
    assert max(ahead for _, ahead, _ in nodes) - min(ahead for _, ahead, _ in nodes) > 12
    assert open_case(folder).sql("SELECT began_node, began_rank FROM attempts").rows() == [(answer.node, answer.rank)]


def test_one_bundle_with_all_nodes_says_the_same(ecc: tuple[list[Path], Path, Answer, Triage, Path], tmp_path: Path) -> None:
    _, whole, answer, several, _ = ecc
    found = triage([whole], tmp_path / "case")
    assert faults(found, answer, True) == []
    assert [(d.finding.rule.id, d.confidence, d.place) for d in found.diagnoses] == [
        (d.finding.rule.id, d.confidence, d.place) for d in several.diagnoses
    ]


def test_the_answer_is_the_same_for_every_number_of_workers(ecc: tuple[list[Path], Path, Answer, Triage, Path], tmp_path: Path) -> None:
    paths, _, _, found, _ = ecc
    assert encode(report(triage(paths, tmp_path / "two", workers=2))) == encode(report(found))


def test_a_case_explains_itself_with_what_it_kept_of_the_job(ecc: tuple[list[Path], Path, Answer, Triage, Path]) -> None:
    _, _, _, found, folder = ecc
    assert explain(open_case(folder), "1").rule.id == found.diagnoses[0].finding.rule.id


@pytest.mark.parametrize(("fault", "quiet", "logs"), [("hang", True, True), ("killed", False, True), ("ecc", False, False)])
def test_other_deaths_are_placed_too(tmp_path: Path, fault: str, quiet: bool, logs: bool) -> None:
    paths, _, answer = write(Plan(4, 7, SMALL, fault, quiet, 1, logs), tmp_path)
    assert faults(triage(paths, tmp_path / "case"), answer, logs) == []


def test_restarts_are_told_apart(tmp_path: Path) -> None:
    paths, _, answer = write(Plan(2, 3, SMALL, "ecc", False, 0, True, 3), tmp_path)
    found = triage(paths, tmp_path / "case")
    assert [(attempt.number, attempt.logs_of) for attempt in found.attempts] == [(1, 16), (2, 16), (3, 16)]
    assert faults(found, answer, True) == [] and found.began[-1].attempt == 3 and found.diagnoses[0].attempt == 3
