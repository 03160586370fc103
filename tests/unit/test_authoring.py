"""From a log line to a tested rule: drafts run as they are, lint names what only a person knows, and rules that take each other's lines are named."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from forensics.authoring import app
from forensics.errors import ForensicsError
from rules import author, draft, lint, measure, pack, scan, yaml_text

LINE = "[ERROR] HCCL(2106,python):2026-03-12-14:36:09.101.552 [wait.cc:212]2391 [Wait]rank 3 got no word from 10.2.0.7 in 120 s"
OTHER = "[ERROR] HCCL(77,python3):2027-01-02-04:36:09.101.552 [wait.cc:300]9 [Wait]rank 11 got no word from 192.168.0.1 in 7 s"


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def loaded(folder: Path) -> pack.RuleSet:
    return pack.load([folder], shipped=False)


def test_the_documentation_holds() -> None:
    assert doctest.testmod(draft).failed == 0


def test_a_drafted_rule_runs_and_finds_the_line_of_another_run(tmp_path: Path) -> None:
    run("new", LINE, "-o", str(tmp_path / "mine"))
    rules = loaded(tmp_path / "mine")
    assert [problem.level for problem in rules.problems] == []
    (rule,) = rules.rules
    assert rule.id.startswith("mine.") and rule.layer == "collective" and rule.examples.match == (LINE,)
    found = author.fires(scan.Scanner.load(rules), rules, OTHER)
    assert [finding.rule.id for finding in found.findings] == [rule.id]
    assert found.diagnoses[0].title.en == "[Wait]rank 11 got no word from 192.168.0.1 in 120 s"


def test_lint_names_what_a_draft_still_wants(tmp_path: Path) -> None:
    run("new", LINE, "-o", str(tmp_path / "mine"))
    wants = [problem.message for problem in lint.unfinished(loaded(tmp_path / "mine"))]
    assert ["Chinese" in wants[0], "unknown" in wants[1], "remedy" in wants[2], "near miss" in wants[3]] == [True] * 4
    assert len(wants) == 4


def test_options_fill_a_draft_and_a_second_rule_is_added_behind_the_first(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "hccl.yaml"
    run("new", LINE, "-o", str(file), "--cause", "hccl-peer-exit", "--id", "mine.a", "--title", "it's quiet", "--title-zh", "无响应")
    run("new", "a worker of the pool went away", "-o", str(file), "--id", "mine.b")
    one, two = loaded(tmp_path / "mine").rules
    assert (one.root_cause, one.title.en, one.title.zh, two.id) == ("hccl-peer-exit", "it's quiet", "无响应", "mine.b")
    assert two.match.contains == ("a worker of the pool went away",)  # type: ignore[union-attr]


def test_the_line_of_a_file_is_named_by_its_number(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text(f"first line\n{LINE}\n")
    assert "rank (?P<rank>" in run("new", f"{log}:2")
    with pytest.raises(ForensicsError, match="has 2 lines; there is no line 3"):
        run("new", f"{log}:3")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["new", "12 34 56"], "no words"),
        (["new"], "give the log line"),
        (["new", "--from", "x.case"], "--event"),
        (["new", LINE, "--cause", "bad-luck"], "wants a root cause"),
        (["new", LINE, "--layer", "cellar"], "wants one of"),
        (["new", LINE, "--id", "Not An Id"], "lower-case words"),
        (["new", LINE, "--id", "memory.device.torch-oom"], "there is a rule"),
        (["bench"], "--on"),
    ],
)
def test_wrong_words_are_answered_by_what_would_be_right(words: list[str], said: str) -> None:
    with pytest.raises(ForensicsError, match=said):
        run(*words)


@settings(max_examples=150, deadline=None)
@given(st.text(min_size=1, max_size=60).map(lambda text: text.replace("\ufeff", "")))
def test_a_quoted_text_reads_back_as_it_was(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    (document,) = yaml_text.read(f"a: {draft.quoted(text)}\n".encode(), "x.yaml")
    assert document["a"] == text


TWO = """
- id: t.narrow
  root_cause: hbm-oom
  title: {en: a, zh: 甲}
  layer: runtime
  severity: error
  match: {contains: [pool empty, card]}
  examples: {match: ['pool empty on card 3'], no_match: ['pool empty on disk']}
- id: t.wide
  root_cause: disk-full
  title: {en: b, zh: 乙}
  layer: runtime
  severity: error
  match: {contains: pool empty}
  examples: {match: ['pool empty on disk'], no_match: ['pool full on disk']}
"""


def test_a_rule_that_claims_the_example_of_another_cause_is_named(tmp_path: Path) -> None:
    tmp_path.joinpath("r.yaml").write_text(TWO)
    rules = loaded(tmp_path)
    (theft,) = author.thefts(rules)
    assert (theft.rule, "t.wide (disk-full) claims its example" in theft.message) == ("t.narrow", True)
    wide = [rule for rule in rules.rules if rule.id == "t.wide"]
    assert [theft.rule for theft in author.thefts(rules, wide)] == ["t.narrow"], "also where only the thief is asked about"


def test_an_edge_settles_whose_line_it_is(tmp_path: Path) -> None:
    tmp_path.joinpath("r.yaml").write_text(TWO.replace("  match: {contains: [pool", "  explains: [{rule: t.wide}]\n  match: {contains: [pool"))
    assert list(author.thefts(loaded(tmp_path))) == []


def test_the_same_pattern_for_two_causes_is_a_warning(tmp_path: Path) -> None:
    tmp_path.joinpath("r.yaml").write_text(TWO.replace("{contains: [pool empty, card]}", "{contains: pool empty}"))
    rules = loaded(tmp_path)
    assert {problem.message.split(":")[0] for problem in lint.overlaps(rules, rules)} == {"t.narrow", "t.wide"}


def test_a_consequence_alone_may_not_be_sure(tmp_path: Path) -> None:
    text = TWO.replace("{contains: pool empty}", "{code: EZ9999}").replace(
        "  severity: error\n  match: {code", "  severity: error\n  strength: strong\n  match: {code"
    )
    tmp_path.joinpath("r.yaml").write_text(text)
    assert any("EZ9999 alone is a consequence" in problem.message for problem in lint.unfinished(loaded(tmp_path)))


def test_shipped_rules_leave_nothing_unfinished() -> None:
    shipped = pack.load()
    assert [str(problem) for problem in (*lint.unfinished(shipped), *lint.overlaps(shipped, shipped))] == []


def test_what_a_rule_costs_counts_its_lines(tmp_path: Path) -> None:
    tmp_path.joinpath("r.yaml").write_text(TWO)
    text = b"pool empty on card 3\nnothing\npool empty on disk\npool full\n" * 50
    costs, total = measure.measure(loaded(tmp_path), text)
    assert {cost.rule: (cost.asked, cost.found) for cost in costs} == {"t.narrow": (100, 50), "t.wide": (100, 100)}
    assert total >= 0


def test_bench_names_the_rules_of_a_bundle(tmp_path: Path) -> None:
    tmp_path.joinpath("r.yaml").write_text(TWO)
    log = tmp_path / "a.log"
    log.write_text("pool empty on disk\n" * 20)
    out = run("bench", str(tmp_path), "--on", str(log))
    assert "t.wide" in out and "2 rules on 20 lines" in out


def test_causes_are_listed_with_the_number_of_their_rules() -> None:
    assert "hbm-bank-fault" in run("causes", "hbm", "bank")
    assert "不可纠正" in run("causes", "ecc", "--lang", "zh")
    assert CliRunner().invoke(app, ["causes", "unheard-of"]).exit_code == 1


def test_list_takes_a_pack_a_layer_or_a_cause() -> None:
    assert all(" hbm-oom " in line for line in run("list", "--of", "hbm-oom").splitlines())
    assert all(line.startswith("hccl.") for line in run("list", "--of", "hccl").splitlines())


GUIDE = Path(__file__).parents[2] / "docs" / "writing-rules.md"


def test_the_rule_of_the_guide_is_what_the_guide_says_of_it(tmp_path: Path) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    finished = text[text.index("The finished rule:\n\n") + len("The finished rule:\n\n") : text.index("- **strength** is")]
    tmp_path.joinpath("draft.yaml").write_text("\n".join(line[4:] for line in finished.rstrip().splitlines()) + "\n", encoding="utf-8")
    rules = loaded(tmp_path)
    assert [rule.id for rule in rules.rules] == ["mypack.hbm.page"] and rules.problems == ()
    assert [*lint.unfinished(rules), *author.trials(rules), *author.loose_edges(rules, pack.load())] == []
    drafted = draft.draft(rules.rules[0].examples.match[0], head="[ERROR] [ascend]").text
    assert all(line.strip() in text for line in drafted.splitlines() if "regex:" in line or "en: 'HBM" in line or "layer:" in line)


STATED = """
- id: t.fact
  root_cause: hccl-buffsize-too-small
  title: {en: a, zh: 甲}
  layer: collective
  severity: error
  match: {all: [{id: size, fact: env.HCCL_BUFFSIZE}, {id: full, contains: window too small}, {id: use, metric: npu.hbm.usage}]}
  where: "size.value < 200 and use.value > 90"
  examples:
    match: ["window too small\\n#fact env.HCCL_BUFFSIZE = 50\\n#metric npu.hbm.usage = 97 device=3"]
    no_match: ["window too small\\n#fact env.HCCL_BUFFSIZE = 400\\n#metric npu.hbm.usage = 97", "window too small"]
"""


def test_examples_may_state_facts_and_numbers(tmp_path: Path) -> None:
    tmp_path.joinpath("r.yaml").write_text(STATED)
    rules = loaded(tmp_path)
    assert rules.problems == () and list(author.trials(rules)) == []
    tmp_path.joinpath("r.yaml").write_text(STATED.replace("= 50", "= 500"))
    assert [trial.message for trial in author.trials(loaded(tmp_path))] == ["does not fire on its example"]


@pytest.mark.parametrize(
    ("match", "said"),
    [
        ("{contains: abc, optional: true}", "at least one must be there"),
        ("{all: [{contains: abc}, {contains: def, optional: maybe}]}", "true or false"),
        ("{all: [{id: a, contains: abc}, {contains: def, near: {of: a, side: left}}]}", "before or after"),
    ],
)
def test_what_an_optional_pattern_or_a_side_may_be_is_said(tmp_path: Path, match: str, said: str) -> None:
    tmp_path.joinpath("r.yaml").write_text(TWO.replace("{contains: pool empty}", match))
    assert any(said in problem.message for problem in loaded(tmp_path).problems)
