"""Packs: what is sound runs, what is not is named with file, line and what would be right."""

from __future__ import annotations

import os
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import author, pack, yaml_text
from rules.model import RuleSet

SOUND = """
- id: test.sound
  root_cause: op-shape-constraint
  title: {en: "m is {dims.m}", zh: "m 为 {dims.m}"}
  layer: operator
  severity: error
  match:
    all:
      - {id: fail, contains: matmulfail}
      - {id: dims, regex: 'matmulfail m=(?P<m>\\d+) k=(?P<k>\\d+)'}
  where: "dims.m % 16 != 0 or dims.k % 16 != 0"
  remedy: {en: [Pad m and k.], zh: [将 m 和 k 补齐。]}
  examples: {match: ["matmulfail m=17 k=48"], no_match: ["matmulfail m=16 k=48"]}
"""


def load(folder: pathlib.Path, **files: str | bytes) -> RuleSet:
    folder.joinpath("pack.yaml").write_text("name: test\nversion: 1.0.0\n")
    folder.joinpath("sound.yaml").write_text(SOUND)
    for name, text in files.items():
        path = folder / f"{name}.yaml"
        path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)
    return pack.load([folder], shipped=False)


def changed(**fields: str) -> str:
    """The sound rule under another id, with some fields replaced."""
    lines = SOUND.replace("test.sound", "test.bad").splitlines()
    for key, value in fields.items():
        kept, skipping = [], False
        for line in lines:
            indent = len(line) - len(line.lstrip())
            skipping = line.startswith(f"  {key}:") or (skipping and indent > 2)
            kept += [] if skipping else [line]
        lines = [*kept, f"  {key}: {value}"]
    return "\n".join(lines) + "\n"


def test_a_sound_pack_loads_without_a_word(tmp_path: pathlib.Path) -> None:
    rules = load(tmp_path)
    assert [rule.id for rule in rules.rules] == ["test.sound"]
    assert rules.problems == ()
    assert (rules.packs[0].name, rules.packs[0].version, rules.packs[0].rules) == ("test", "1.0.0", 1)
    assert rules.rules[0].line == 2


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"id: [unclosed\n  x: {y\n\t- z\n", "not valid YAML"),
        (SOUND, "is taken by"),
        (changed(title="5"), "both languages"),
        (changed(layer="sky"), "must be one of hardware"),
        (changed(match="{contains: ''}"), "match everything"),
        (changed(match="{regex: '', id: dims}", where='"true"'), "match everything"),
        (changed(match="{regex: '(unclosed[a-', id: dims}", where='"true"'), "cannot be read"),
        (changed(match="{regex: '((a{1,1000}){1,1000}){1,1000}', id: dims}", where='"true"'), "linear time"),
        (changed(match=r"{regex: '(x+x+)+\1y(?<=z{1,9}q)', id: dims}", where='"true"'), "linear time"),
        (changed(match="{regex: 'abc(?!d)', id: dims}", where='"true"'), "look-around"),
        (changed(match="{contains: abc, regex: abc}"), "exactly one of"),
        (changed(match="{all: [{contains: abc, near: {of: nobody}}]}"), "names 'nobody'"),
        (changed(where='"nowhere.m > 1"'), "no leaf with the id 'nowhere'"),
        (changed(where='" "'), "the expression is empty"),
        (changed(colour="red"), "there is no field 'colour'"),
        (changed(remedy="{en: [only English]}"), "both languages"),
        (changed(root_cause="op-shap-constraint"), "did you mean 'op-shape-constraint'"),
        (changed(examples="7"), "examples"),
        (SOUND.replace("test.sound", "../../etc/x"), "lower-case words"),
        ("a: &a [x, *a]\n", "anchors"),
        ("- !!python/object/apply:os.system ['true']\n", "tags"),
        (b"x: " + b"[" * 20000 + b"]" * 20000, "nest"),
        ("a: 1\na: 2\n", "second time"),
        (SOUND.replace("test.sound", "test.gbk").replace("m 为", "长度").encode("gbk"), "not UTF-8"),
        ("42\n", "a rule is a mapping"),
    ],
)
def test_a_bad_file_is_named_with_its_line_and_the_sound_rule_still_runs(tmp_path: pathlib.Path, bad: str | bytes, said: str) -> None:
    rules = load(tmp_path, wrong=bad)
    assert "test.sound" in [rule.id for rule in rules.rules]
    problems = [problem for problem in rules.problems if "wrong.yaml" in problem.file]
    assert any(said in problem.message for problem in problems), problems
    assert all(problem.line >= 1 and problem.column >= 1 for problem in problems)


def test_all_problems_of_a_rule_are_collected(tmp_path: pathlib.Path) -> None:
    rules = load(tmp_path, wrong=changed(layer="sky", severity="loud", title="5"))
    assert len([problem for problem in rules.problems if problem.level == "error"]) == 3


def test_links_and_pipes_in_a_pack_are_not_opened(tmp_path: pathlib.Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "pack"
    folder.mkdir()
    folder.joinpath("link.yaml").symlink_to(secret)
    os.mkfifo(folder / "pipe.yaml")
    rules = load(folder)
    assert [rule.id for rule in rules.rules] == ["test.sound"]
    assert {problem.file for problem in rules.problems} == {"pack/link.yaml", "pack/pipe.yaml"}


def test_three_forms_of_a_file_with_several_rules_are_read(tmp_path: pathlib.Path) -> None:
    one = SOUND.replace("- id", "  id").replace("test.sound", "test.{}")
    load(tmp_path, documents=f"---\n{one.replace('{}', 'a')}\n---\n{one.replace('{}', 'b')}", key="rules:\n" + SOUND.replace("test.sound", "test.c"))
    assert {rule.id for rule in pack.load([tmp_path], shipped=False).rules} == {"test.sound", "test.a", "test.b", "test.c"}


@given(st.text(max_size=200))
def test_any_text_is_read_as_yaml_or_refused_with_a_place(text: str) -> None:
    try:
        yaml_text.read(text.encode("utf-8", "surrogatepass"), "x.yaml")
    except yaml_text.YamlProblem as error:
        assert error.problem.line >= 1


def test_every_shipped_rule_loads_without_a_problem() -> None:
    rules = pack.load()
    assert [str(problem) for problem in rules.problems] == []
    assert len(rules.rules) >= 120


def test_lint_names_edges_that_lead_nowhere_and_fields_that_nothing_captures(tmp_path: pathlib.Path) -> None:
    bad = changed(
        title="{en: '{dims.m} {dims.__class__}', zh: '{dims.m}'}",
        explains="[{rule: test.bad}, {rule: no.such.rule}, {rule: test.sound}]",
        replay="{kernel: matmul, params: {m: 1000000000000000000}}",
    )
    rules = load(tmp_path, wrong=bad)
    said = " ".join(problem.message for problem in [*author.loose_edges(rules, rules), *author.loose_texts(rules)])
    for part in ("explains 'no.such.rule'", "explains itself", "{dims.__class__} is no capture", "no kernel is that large"):
        assert part in said
    sound = pack.load([tmp_path / "sound.yaml"], shipped=False)
    assert [*author.loose_edges(sound, sound), *author.loose_texts(sound)] == []
