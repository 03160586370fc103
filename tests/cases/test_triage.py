"""Triage from end to end: the shipped sample and small made-up incidents get the right answer, the same for every number of workers."""

from __future__ import annotations

import copy
import json
import pathlib
import shutil
import tarfile

import jsonschema
import pytest

from forensics.case import open_case
from forensics.errors import CaseError, UnreadableBundle, UsageError
from forensics.options import Options
from forensics.pipeline import explain, run
from forensics.report.data import encode, report
from forensics.result import Triage

ROOT = pathlib.Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "two-nodes.tar.gz"


def render(found: Triage) -> str:
    return encode(report(found)).decode()


def triage(source: pathlib.Path | str, out: pathlib.Path, **options: object) -> Triage:
    work = run([str(source)], Options(out=str(out), **options))  # type: ignore[arg-type]
    work.finish()
    work.close()
    return work.triage


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Triage, pathlib.Path]:
    folder = tmp_path_factory.mktemp("sample") / "case"
    return triage(SAMPLE, folder), folder


def test_the_sample_names_the_card_that_failed_and_not_the_ranks_that_waited(sample: tuple[Triage, pathlib.Path]) -> None:
    found, _ = sample
    best = found.diagnoses[0]
    assert best.finding.rule.root_cause == "ecc-hardware-fault"
    assert best.finding.scope.node == "node-b"
    assert best.level == "high"
    assert any("0x80E01801" in evidence.text for evidence in best.evidence)
    assert best.explains, "the timeouts of the other ranks follow from it"
    assert all(diagnosis.finding.rule.layer != "collective" for diagnosis in found.diagnoses)


def test_console_times_are_brought_to_utc_by_a_line_that_plog_has_too(sample: tuple[Triage, pathlib.Path]) -> None:
    members = {member.path: member for member in sample[0].coverage.members}
    assert members["node-b/console.log"].utc_offset == 8 * 3600
    assert members["node-a/console.log"].utc_offset == 8 * 3600
    assert members["node-b/ascend/log/debug/plog/plog-2106_20260312062003118.log"].utc_offset == 0
    assert sample[0].bundle.zone == "+08:00"


def test_coverage_adds_up_to_the_members_and_lines_of_the_bundle(sample: tuple[Triage, pathlib.Path]) -> None:
    with tarfile.open(SAMPLE) as archive:
        files = {info.name: archive.extractfile(info).read() for info in archive if info.isfile()}  # type: ignore[union-attr]
    found = sample[0]
    assert {member.path: member.bytes for member in found.coverage.members} == {name: len(data) for name, data in files.items()}
    assert found.coverage.lines == sum(data.count(b"\n") for data in files.values()) == found.bundle.lines
    assert found.bundle.unpacked == sum(map(len, files.values()))


def test_every_line_of_the_sample_is_stored_with_its_place(sample: tuple[Triage, pathlib.Path]) -> None:
    found, folder = sample
    case = open_case(folder)
    rows = case.sql("SELECT f.path, e.line_no, e.n_lines, e.byte_offset, e.message FROM events e JOIN files f USING (file_id) ORDER BY ALL").rows()
    with tarfile.open(SAMPLE) as archive:
        texts = {info.name: archive.extractfile(info).read() for info in archive if info.isfile()}  # type: ignore[union-attr]
    covered: dict[str, int] = {}
    for path, line_no, n_lines, offset, message in rows:
        data = texts[path]
        assert data[:offset].count(b"\n") == line_no - 1, "the byte offset is where the line begins"
        assert message.split("\n")[0].strip()[-20:].encode() in data[offset : data.find(b"\n", offset)]
        covered[path] = covered.get(path, 0) + n_lines
    assert sum(covered.values()) == found.bundle.lines


def test_one_and_two_workers_write_the_same_report(tmp_path: pathlib.Path) -> None:
    big = tmp_path / "big"
    big.mkdir()
    line = "[INFO] RUNTIME(838,python):2025-09-04-09:50:11.954.001 [stream.cc:1186]838 GetError:step %d finished, cost 12 us, stream_id=2\n"
    bad = "[ERROR] DRV(838,python):2025-09-04-09:50:12.000.001 [x.cc:1][drv] event_id: [0x80E01801] Node Type=0x70; assertion=1\n"
    for k in range(6):
        text = "".join(line % n for n in range(30000))
        (big / f"plog-{838 + k}_1.log").write_text(text + (bad if k == 3 else ""))
    reports = [render(triage(big, tmp_path / f"case{workers}", workers=workers, index=False)) for workers in (1, 2)]
    assert reports[0] == reports[1]
    assert "ecc-hardware-fault" in reports[0]


def test_the_report_keeps_its_published_schema_and_holds_no_wall_time(sample: tuple[Triage, pathlib.Path]) -> None:
    schema = json.loads((ROOT / "forensics" / "schema" / "report-1.json").read_text())
    found = json.loads(render(sample[0]))
    jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)
    later = copy.copy(sample[0])
    later.seconds += 100
    assert json.loads(render(later)) == found


def test_a_folder_with_spaces_and_chinese_names_is_read_like_any_other(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "故障 日志 2025"
    folder.mkdir()
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(folder / "节点 日志", filter="data")
    found = triage(folder, tmp_path / "案例 一")
    assert found.diagnoses[0].finding.rule.root_cause == "ecc-hardware-fault"
    assert found.diagnoses[0].evidence[0].file.startswith("节点 日志/")


def test_the_same_bundle_reuses_its_case_and_another_one_is_refused_unless_forced(tmp_path: pathlib.Path) -> None:
    first = triage(SAMPLE, tmp_path / "case")
    stamp = (tmp_path / "case" / "case.duckdb").stat().st_mtime_ns
    assert render(triage(SAMPLE, tmp_path / "case")) == render(first)
    assert (tmp_path / "case" / "case.duckdb").stat().st_mtime_ns == stamp
    other = tmp_path / "other.log"
    other.write_text("nothing of interest\n")
    with pytest.raises(UsageError, match="another bundle"):
        triage(other, tmp_path / "case")
    assert triage(other, tmp_path / "case", force=True).diagnoses == []


def test_where_no_folder_is_named_two_bundles_of_one_name_get_a_folder_each(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "logs.txt").write_text(f"line of {name}\n")
    cases = []
    for name in ("a", "b", "a"):
        work = run([str(tmp_path / name / "logs.txt")], Options(index=False))
        work.close()
        cases.append(work.triage.case)
    assert cases[0] == cases[2] != cases[1]
    assert cases[0] == "logs.txt.case"


def test_a_bundle_of_nothing_useful_gets_no_diagnosis_and_says_what_to_collect(tmp_path: pathlib.Path) -> None:
    (tmp_path / "notes.txt").write_text("buy milk\n")
    found = triage(tmp_path / "notes.txt", tmp_path / "case")
    assert found.diagnoses == []
    assert any("plog" in note.en for note in found.collect_next)
    assert any("plog" in note.zh for note in found.collect_next)


def test_what_cannot_be_read_is_said_in_one_sentence(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError):
        triage(tmp_path / "nowhere.tar", tmp_path / "case")
    (tmp_path / "empty.log").write_bytes(b"")
    with pytest.raises(UnreadableBundle):
        triage(tmp_path / "empty.log", tmp_path / "case")
    assert not (tmp_path / "case").exists(), "nothing is left behind"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CaseError):
        triage(SAMPLE, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_several_bundles_are_one_incident(tmp_path: pathlib.Path) -> None:
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(tmp_path, filter="data")
    work = run([str(tmp_path / "node-a"), str(tmp_path / "node-b")], Options(out=str(tmp_path / "case")))
    work.finish()
    work.close()
    found = work.triage
    assert found.bundle.nodes == ["node-a", "node-b"]
    assert found.diagnoses[0].finding.scope.node == "node-b"


def test_a_rule_explains_why_it_holds_and_why_not(sample: tuple[Triage, pathlib.Path]) -> None:
    case = open_case(sample[1])
    first = explain(case, "1")
    assert first.fired and first.rank == 1
    other = explain(case, "memory.device.torch-oom")
    assert not other.fired and other.verdict.en.startswith("It does not hold")
    with pytest.raises(UsageError):
        explain(case, "no.such.rule")
    with pytest.raises(UsageError):
        explain(case, "99")


def test_lines_outside_the_asked_time_are_no_evidence(tmp_path: pathlib.Path) -> None:
    from datetime import datetime, timezone

    late = triage(SAMPLE, tmp_path / "late", since=datetime(2026, 3, 12, 7, 0, tzinfo=timezone.utc), index=False)
    assert all(evidence.ts is None or evidence.ts >= 1_773_298_800_000_000 for diagnosis in late.diagnoses for evidence in diagnosis.evidence)


def test_the_lines_of_a_case_without_index_are_stored_at_the_first_question(tmp_path: pathlib.Path) -> None:
    moved = tmp_path / "logs.tar.gz"
    shutil.copy(SAMPLE, moved)
    triage(moved, tmp_path / "case", index=False)
    case = open_case(tmp_path / "case")
    case.ensure_index()
    assert case.sql("SELECT count(*) FROM events").item() > 400
    triage(moved, tmp_path / "case2", index=False)
    moved.write_bytes(moved.read_bytes()[:-9])
    with pytest.raises(CaseError):
        open_case(tmp_path / "case2").ensure_index()


def test_the_python_interface_triages_and_asks(tmp_path: pathlib.Path) -> None:
    import forensics

    case = forensics.triage(SAMPLE, out=str(tmp_path / "case"))
    assert case.diagnoses[0].finding.rule.root_cause == "ecc-hardware-fault"
    frame = case.sql("SELECT count(*) AS n FROM events WHERE severity = 'ERROR'")
    assert frame["n"][0] > 20
