"""The knowledge base of an ascend-fd runs as a pack: keywords in their order, edges as causal edges, what cannot run named."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from forensics.authoring import app
from rules import ascend_fd, author, pack, query, scan, written
from rules.diagnose import Conclusion
from rules.model import RuleSet, leaves_of

BASE = {
    "knowledge-repository": {
        "AISW_CANN_DRV_LINK_1": {
            "attribute": {
                "component": "CANN",
                "cause_en": "Port of the card is down",
                "cause_zh": "卡侧网口断链",
                "description_en": "Port {} went down.",
                "description_zh": "网口 {} 断链。",
                "suggestion_en": ["1. Check the cable:", "  hccn_tool -i 0 -link -g", "2. Call support."],
                "suggestion_zh": ["1. 检查线缆；", "2. 联系工程师；"],
            },
            "rule": [{"dst_code": "RING_2"}, {"dst_code": "made_at_run_time"}, {"dst_code": "RING_2", "expression": "src.a == dst.a"}],
            "source_file": "CANN_Plog",
            "regex": {"in": [["port(0)", "is down", "[link]"], ["optical power lost"]]},
        },
        "RING_2": {
            "attribute.cause_en": "Ring broken",
            "attribute.cause_zh": "环断开",
            "source_file": "TrainLog | CANN_Plog",
            "regex.in": ["collective ring", "was broken by a peer"],
        },
        "41002": {"attribute": {"cause_zh": "自定义故障"}, "source_file": "MyOwnLog", "regex": {"in": ["the flux capacitor is empty again"]}},
        "made_at_run_time": {"attribute": {}, "source_file": "", "regex": {}},
        "SHORT_3": {"source_file": "TrainLog", "regex": {"in": ["of", "a"]}},
        "odd": 7,
    },
    "blacklist": {"1": ["harmless", "probe failed"]},
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "ascend_fd" / "configuration" / "kg-config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(BASE, indent=4, ensure_ascii=False), encoding="utf-8")
    return path


def concluded(rules: RuleSet, text: str) -> Conclusion:
    return author.fires(scan.Scanner.load(rules), rules, text)


def ids(rules: RuleSet, text: str) -> list[str]:
    return [finding.rule.id for finding in concluded(rules, text).findings]


def test_the_documentation_holds() -> None:
    assert doctest.testmod(ascend_fd).failed == 0


def test_keywords_hold_in_their_order_and_one_list_suffices(base: Path) -> None:
    rules = pack.load([base], shipped=False)
    assert ids(rules, "HCCP: port(0) now is down [link]") == ["ascend-fd.aisw_cann_drv_link_1"]
    assert ids(rules, "HCCP: [link] is down: port(0)") == []
    assert ids(rules, "optical power lost") == ["ascend-fd.aisw_cann_drv_link_1"]


def test_keywords_of_a_training_may_stand_on_lines_that_follow_each_other(base: Path) -> None:
    rules = pack.load([base], shipped=False)
    assert ids(rules, "collective ring of 8\nstep 4\nwas broken by a peer") == ["ascend-fd.ring_2"]
    assert ids(rules, "collective ring of 8\n" + "step\n" * 30 + "was broken by a peer") == []
    assert ids(rules, "was broken by a peer\ncollective ring of 8") == []


def test_edges_become_causal_edges(base: Path) -> None:
    rules = pack.load([base], shipped=False)
    found = concluded(rules, "optical power lost\ncollective ring was broken by a peer")
    assert [diagnosis.finding.rule.id for diagnosis in found.diagnoses] == ["ascend-fd.aisw_cann_drv_link_1"]
    assert found.diagnoses[0].explains == ["ascend-fd.ring_2"]


def test_texts_and_steps_are_kept_in_both_languages(base: Path) -> None:
    rule = pack.load([base], shipped=False).rules[0]
    assert (rule.title.en, rule.title.zh) == ("Port of the card is down", "卡侧网口断链")
    assert rule.remedy == {"en": ("Check the cable: hccn_tool -i 0 -link -g", "Call support."), "zh": ("检查线缆", "联系工程师")}
    assert rule.note is not None and rule.note.en == "Port … went down."
    assert (rule.provenance, rule.references[0].id) == ("official", "AISW_CANN_DRV_LINK_1")


def test_an_entry_of_a_user_becomes_a_cause_of_its_own_name(base: Path) -> None:
    rule = next(rule for rule in pack.load([base], shipped=False).rules if rule.id == "ascend-fd.41002")
    assert (rule.root_cause, rule.title.en, rule.match.source) == ("ascend-fd-41002", "自定义故障", ())  # type: ignore[union-attr]


def test_known_entries_have_our_reading() -> None:
    entry = {"attribute": {"cause_en": "x"}, "regex": {"in": ["some keywords that are as long as a message"]}}
    names = {"AISW_CANN_HCCL_029": entry, "AISW_PyTorch_Model_05": entry}
    rules, _ = ascend_fd.convert(json.dumps({"knowledge-repository": names}).encode(), "kg-config.json")
    assert [(rule.root_cause, rule.role) for rule in rules] == [("rdma-retransmission", "cause"), ("unknown", "symptom")]


def test_the_blacklist_takes_lines_out_of_the_evidence(base: Path) -> None:
    rules = pack.load([base], shipped=False)
    assert concluded(rules, "harmless: probe failed").noise
    assert ids(rules, "harmless probe failed; optical power lost") == []


def test_what_is_left_out_is_counted_with_its_reason_and_its_line(base: Path) -> None:
    rules, problems = ascend_fd.convert(base.read_bytes(), "kg-config.json")
    assert len(rules) == 4
    said = {problem.message.split(":")[0]: problem for problem in problems}
    assert set(said) == {"AISW_CANN_DRV_LINK_1", "made_at_run_time", "SHORT_3", "odd"}
    lines = base.read_text(encoding="utf-8").splitlines()
    assert '"SHORT_3"' in lines[said["SHORT_3"].line - 1]
    (problem,) = pack.load([base], shipped=False).problems
    assert "4 entries or edges are left out" in problem.message


@pytest.mark.parametrize("text", ["", "[1]", '{"knowledge-repository": 3}', "{", "\udcff", "[" * 100_000])
def test_another_file_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kg-config.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    loaded = pack.load([path], shipped=False)
    assert loaded.rules == () and len(loaded.problems) == 1


def test_it_is_found_by_its_folder_and_by_the_installed_command(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ascend_fd.find(str(tmp_path)) == base
    assert ascend_fd.find(str(tmp_path / "nowhere")) is None
    home = tmp_path / "venv"
    home.joinpath("bin").mkdir(parents=True)
    place = home / "lib" / "python3.9" / "site-packages" / "ascend_fd" / "configuration" / "kg-config.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(base.read_bytes())
    command = home / "bin" / "ascend-fd"
    command.write_text(f"#!{home}/bin/python3\nraise SystemExit('never run')\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert ascend_fd.find() == place
    assert len(pack.load(["ascend-fd"], shipped=False).rules) == 4


def test_the_command_says_what_runs_and_writes_a_pack_on_demand(base: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["import-fd", str(base), "-o", str(tmp_path / "own")])
    assert result.exit_code == 0, result.output
    assert "4 rules (3 causes, 0 consequences, 1 harmless), 1 edges" in result.stdout
    assert "are too short" in result.stdout
    again = pack.load([tmp_path / "own"], shipped=False)
    assert {rule.id for rule in again.rules} == {rule.id for rule in pack.load([base], shipped=False).rules}
    assert CliRunner().invoke(app, ["import-fd", str(base), "-o", str(tmp_path / "own")]).exit_code == 3, "an existing pack is not overwritten"
    assert CliRunner().invoke(app, ["import-fd", str(tmp_path / "nowhere")]).exit_code == 1


def test_rules_written_as_yaml_read_back_the_same(tmp_path: Path) -> None:
    rules = pack.load().rules
    own = [rule for rule in rules if not any(query.parameters(leaf.sql) for leaf in leaves_of(rule.match))]  # options are in a pack's own header
    shipped = [rule for number, rule in enumerate(own) if rule.metrics or rule.replay or rule.applies_to or number % 4 == 0]
    written.write_pack(tmp_path / "all", "all", shipped)
    again = {rule.id: rule for rule in pack.load([tmp_path / "all"], shipped=False).rules}
    for rule in shipped:
        place = {"pack": "", "file": "", "line": 0}
        assert msgspec.structs.replace(again[rule.id], **place) == msgspec.structs.replace(rule, **place)
