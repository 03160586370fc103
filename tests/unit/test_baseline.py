"""An incident beside a good run: what is new comes first, what was there before counts for less."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from forensics import baseline, ingest, pipeline, shapes
from forensics.bundle import Bundle
from forensics.case import open_case
from forensics.errors import UsageError
from forensics.options import Options
from forensics.report import console, data, markdown
from forensics.report.page import Look
from forensics.result import Baseline, Triage
from rules import confidence, pack, scan
from rules.model import Finding, Hit, Leaf, Rule, Scope, Text
from tests.unit.members import plog
from tests.unit.shell import ROOT
from tests.unit.twins import FAULTS, pair


def triaged(bundle: Path, good: Path, folder: Path, **options: object) -> Triage:
    given = Options(out=str(folder / "x.case"), index=False, baseline=str(good), force=True, **options)  # type: ignore[arg-type]
    work = pipeline.run([str(bundle)], given, None)
    work.close()
    return work.triage


def differences(bundle: Path, good: Path, folder: Path, **options: object) -> Baseline:
    found = triaged(bundle, good, folder, **options).baseline
    assert found is not None
    return found


def test_the_deciding_line_is_among_the_first_ten_novel_shapes(tmp_path: Path) -> None:
    places = {}
    rules = pack.load()
    scanner = scan.Scanner.load(rules, ingest.EXTRA)
    for number, fault in enumerate(FAULTS):
        good, bad, _ = pair(number, tmp_path / str(number))
        with Bundle(good) as well, Bundle(bad) as ill, ill.reopen() as again:
            found = baseline.compare(baseline.read(well, rules, scanner, 1), ingest.scan(ill, scanner, 1), shapes.count(again, 1))
        places[fault.name] = next((k for k, row in enumerate(found.novel) if fault.mark in row.text), 999)
        assert found.novel_total >= 14
    assert sum(place < 10 for place in places.values()) >= 9, places


def test_a_value_that_was_constant_is_shown_with_what_it_was(tmp_path: Path) -> None:
    good, bad, _ = pair(next(k for k, fault in enumerate(FAULTS) if fault.name == "optical"), tmp_path)
    changed = [(row.text, row.was, row.count) for row in differences(bad, good, tmp_path).novel if row.was]
    assert changed == [("Rx Los Flag : 0xff", "Rx Los Flag : 0x0", 1)]


def test_two_good_runs_of_one_job_do_not_differ(tmp_path: Path) -> None:
    one, _, _ = pair(0, tmp_path / "a")
    other, _, _ = pair(1, tmp_path / "b")
    found = differences(one, other, tmp_path)
    assert not found.novel and not found.changed and not found.more and not found.gone


def test_changed_settings_are_named_and_fleeting_ones_are_not(tmp_path: Path) -> None:
    good, bad, _ = pair(next(k for k, fault in enumerate(FAULTS) if fault.name == "config"), tmp_path)
    (bad / "versions.txt").write_text((bad / "versions.txt").read_text().replace("8.3.RC1", "8.2.RC1"))
    (bad / "env.txt").write_text((bad / "env.txt").read_text() + "VLLM_USE_V1=1\n")
    found = differences(bad, good, tmp_path)
    assert [(one.name, one.before, one.after) for one in found.changed] == [
        ("cann.version", ["8.3.RC1"], ["8.2.RC1"]),
        ("env.HCCL_BUFFSIZE", ["800"], ["200"]),
        ("env.VLLM_USE_V1", [], ["1"]),
    ]
    assert found.changed[0].file == "versions.txt" and found.changed[0].line == 5


def lines(text: str, count: int, seconds: int) -> str:
    return "".join(plog(f"{text} {k}", k * seconds // max(1, count)) for k in range(count))


def test_rates_are_held_against_the_length_of_the_runs(tmp_path: Path) -> None:
    (tmp_path / "good.log").write_text(lines("beacon is there", 300, 600) + lines("retry the send", 10, 600) + lines("heartbeat fine", 600, 600))
    (tmp_path / "bad.log").write_text(lines("beacon is there", 3, 1200) + lines("retry the send", 400, 1200) + lines("heartbeat fine", 1200, 1200))
    found = differences(tmp_path / "bad.log", tmp_path / "good.log", tmp_path)
    assert [("retry" in one.text, one.before, one.after, round(one.expected)) for one in found.more] == [(True, 10, 400, 20)]
    assert [("beacon" in one.text, one.before, one.after, one.file) for one in found.gone] == [(True, 300, 3, "good.log")]
    assert not found.novel


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    text = "".join(plog(f"{chr(103 + k % 20)}{chr(103 + k // 20 % 20)}{chr(103 + k // 400 % 20)} stands", k % 3000) for k in range(8000))
    (tmp_path / "bad.log").write_text(text * 20)
    counted = []
    for workers in (1, 2):
        with Bundle(tmp_path / "bad.log") as bundle:
            counted.append(shapes.count(bundle, workers))
    assert counted[0] == counted[1] and len(counted[0].shapes) == 8000
    assert all(shape.count == 20 and shape.line <= 8000 for shape in counted[0].shapes.values())


def test_shapes_do_not_hang_on_numbers_colours_and_lists() -> None:
    one, two, three, four = shapes.skeletons(
        b"[ERROR] HCCL(88,python3):2026-03-12-14:31:07.803.514 [a.cc:1] rank 3 of [0, 1, 2] lost at 0x7f3ac0\n"
        b"\x1b[31m[ERROR] HCCL(91,python3):2026-03-13-01:00:00.000.001 [a.cc:1] rank 12 of [0] lost at 0x1b\x1b[0m\n"
        b"rank 3 found\nLoading: 10%|\xe2\x96\x88\xe2\x96\x89   | 1/10"
    )
    assert one == two != three and four == shapes.skeletons(b"Loading:  3%|   | 0/10")[0]


def test_the_first_line_of_a_shape_is_told_over_blocks_and_members(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("hello world\n" * 900_000 + "zoo is open\n")
    (tmp_path / "b.log").write_text("zoo is open\nzoo is open 2\n")
    with Bundle(tmp_path) as bundle:
        counted = shapes.count(bundle, 1)
    found = {shape.text: (shape.count, counted.files[shape.file_id], shape.line) for shape in counted.shapes.values()}
    assert found == {"hello world": (900_000, "a.log", 1), "zoo is open": (3, "a.log", 900_001)} and counted.lines == 900_003


def finding(ident: str) -> Finding:
    rule = Rule(ident, "x", Text("a", "b"), "operator", "error", Leaf(id="a", contains=("x",)))
    return Finding(rule, [Hit(0, 0, "a", 1, 0, "x", {})], 1, Scope(), None, None, 1, {})


def test_what_holds_in_the_good_run_counts_for_less_and_what_is_new_for_a_little_more() -> None:
    plain, old, new = (confidence.weigh(finding("r.a"), None, before) for before in (None, frozenset({"r.a"}), frozenset({"r.b"})))
    assert old.value < 0.7 * plain.value and plain.value < new.value < plain.value + 0.1
    assert "good run" not in confidence.why(finding("r.a"), plain, 0, 0.5).en
    assert "the good run has it too" in confidence.why(finding("r.a"), old, 0, 0.5).en
    assert "正常运行" in confidence.why(finding("r.a"), new, 0, 0.5).zh


def test_the_section_stands_in_every_form_and_in_the_case(tmp_path: Path) -> None:
    good, bad, fault = pair(0, tmp_path)
    triage = triaged(bad, good, tmp_path)
    report = json.loads(data.encode(data.report(triage)))
    jsonschema.validate(report, json.loads((ROOT / "forensics/schema/report-1.json").read_text()), jsonschema.Draft202012Validator)
    assert any(fault.mark in row["text"] for row in report["baseline"]["novel"][:10])
    for lang, word in (("en", "Compared with the good run"), ("zh", "与正常运行")):
        how = Look(lang=lang, width=100, colour=False, ascii=False, verbose=False, commands=frozenset())
        for text in (console.render(triage, how), markdown.render(triage, how)):
            assert word in text and fault.mark in text
    kept = open_case(str(tmp_path / "x.case")).load_triage()
    assert kept.baseline == triage.baseline
    assert pipeline.explain(open_case(str(tmp_path / "x.case")), triage.diagnoses[0].finding.rule.id)


def test_a_good_run_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    for wrong in ("-", str(tmp_path / "nothing")):
        with pytest.raises(UsageError):
            pipeline.run([str(tmp_path / "a.log")], Options(out=str(tmp_path / "x.case"), baseline=wrong), None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log"]
