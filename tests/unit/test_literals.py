"""What a scan looks for stands on every line that the pattern matches, and hardly on any other."""

from __future__ import annotations

import pathlib
import re

import hyperscan
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from rules import commands, cost, literals, looks, pack, scan, sieve
from rules.model import Leaf

PATTERNS = [
    r"(?P<op>aclnn\w+) failed.*(?:shape|dim) (\d+)",
    r"(?i)block_?dim ?[=:] ?(?P<n>\d+)\)?.{0,20}(?:exceeds|must be in|out of range)",
    r"errcode:? ?\((?:0x800000|95)|, error code = 0x(?:8|80|200)(?:,|\.|$)",
    r"Function AscendcCompiler at line \d+|(?i)ascendc[_ ]?compiler.{0,30}(?:failed|non-zero)",
    r"(?i)folded (?P<n>\d+) Where nodes?|(?P<n>\d+) Where nodes? folded",
    r"E(?:50[0-5]\d\d|700[01]\d|9000[123])(?:'|:)",
    r"(?:output|text)\W{1,6}.{0,9}!{24}",
    r"(?:慢卡|慢节点|slow ?rank).{0,9}\d",
    r"kv[ _]?cache(?: ?[:=(]|[ _](?:size|pool)).{0,9}\d+ ?(?:GB|MB)",
    r"size(?:=|: )\d+(?:, ){2,5}of (?:a|b)+c",
]
CHARACTERS = st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("慢卡节点")


def in_order(chain: literals.Chain | list[literals.Texts], line: str) -> bool:
    """Whether the line holds one text of every set, each behind the one before."""
    places = {0}
    for texts in chain:
        places = {at + len(text) for start in places for text in texts if (at := line.find(text, start)) >= 0}
    return bool(places)


@st.composite
def matching(draw: st.DrawFn) -> tuple[str, str]:
    """A pattern and a line that it matches."""
    source = draw(st.sampled_from(PATTERNS))
    plain = re.sub(r"\(\?P<\w+>", "(", source)
    flags = re.IGNORECASE if plain.startswith("(?i)") else 0
    if "(?i)" in plain[1:]:  # one alternative in either case
        plain = re.sub(r"\|\(\?i\)(.*)", r"|(?i:\1)", plain)
    return source, draw(st.from_regex(re.compile(plain, flags), alphabet=CHARACTERS))


@settings(max_examples=400, deadline=None)
@given(matching())
def test_a_matching_line_holds_a_text_of_every_required_set_in_their_order(given: tuple[str, str]) -> None:
    source, line = given
    sets = literals.required(source)
    line = line.lower() if literals.folds(source) else line
    assert all(any(text in line for text in texts) for texts in sets)
    assert in_order(sets, line)


@settings(max_examples=400, deadline=None)
@given(matching())
def test_a_matching_line_is_reported_by_what_the_scan_looks_for(given: tuple[str, str]) -> None:
    source, line = given
    folded = line.lower() if literals.folds(source) else line
    assert any(in_order(chain, folded) for chain in literals.chains(source))
    expressions = looks.expressions_of(Leaf(id="m", regex=source))
    assert any(re.search(one.source, line.encode(), re.IGNORECASE if one.flags & hyperscan.HS_FLAG_CASELESS else 0) for one in expressions)
    for one in expressions:  # what the sieve may hold back, the matcher would not have reported
        if one.texts and re.search(one.source, line.encode(), re.IGNORECASE if one.flags & hyperscan.HS_FLAG_CASELESS else 0):
            assert any(sieve.folded(text.encode()) in sieve.folded(line.encode()) for text in one.texts)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["alloc", "malloc", "loc fail", "failed", "size", "[INFO]", "memory"]), min_size=1, max_size=4))
def test_words_of_one_line_are_found_in_any_order_and_where_they_share_letters(words: list[str]) -> None:
    line = "alloc failed size memory [INFO] malloc loc fail"
    for text in (line, " ".join(reversed(line.split(" ")))):
        if all(word in text for word in words):
            expressions = looks.expressions_of(Leaf(id="m", contains=tuple(words)))
            assert any(re.search(one.source, text.encode()) for one in expressions)


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_single_word_is_looked_for_whole_as_its_hits_are_not_confirmed(ignore_case: bool) -> None:
    (one,) = looks.expressions_of(Leaf(id="m", contains=("the subscribe way is closed",), ignore_case=ignore_case))
    assert re.search(one.source, b"the subscribe way is closed")
    assert not re.search(one.source, b"the subscribe way is open")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_of_these_tests_promises_something(pattern: str) -> None:
    assert literals.required(pattern) or literals.chains(pattern)


@pytest.mark.parametrize("pattern", [r"\d+ m", r"took|\d", r"^\|\s*\d+\s*\|", "(unclosed"])
def test_a_regex_that_needs_no_text_promises_none(pattern: str) -> None:
    assert literals.required(pattern) == []
    assert literals.chains(pattern) == []


def test_a_frequent_text_is_looked_for_together_with_another() -> None:
    chains = literals.chains(r"block_dim=(\d+).{0,20}(?:exceeds|larger than)")
    assert not any("block_dim=" in texts for chain in chains if len(chain) == 1 for texts in chain)
    assert literals.met(chains) <= literals.SELDOM < literals.frequency("block_dim=")


def test_alternatives_of_frequent_texts_are_looked_for_each_by_its_own_chain() -> None:
    chains = literals.chains(r"size=\d+ .{0,20}format=\d|block_dim=\d+ .{0,20}graph_id=\d")
    assert {tuple(text for texts in chain for text in texts) for chain in chains} == {("size=", "format="), ("block_dim=", "graph_id=")}


def test_texts_that_begin_or_end_alike_are_looked_for_once() -> None:
    assert literals.compact(frozenset({"qwxyzuvw one", "qwxyzuvw two"}), False) == (frozenset({"qwxyzuvw "}), False)
    assert literals.compact(frozenset({"ab=zq770011", "cd=zq770011"}), False) == (frozenset({"=zq770011"}), False)


# ---------------------------------------------------------------- what it costs


def test_no_shipped_pattern_is_costly() -> None:
    found = [(rule.id, leaf.id, cost.costly(leaf)) for rule in pack.load().rules for leaf in scan.leaves_of(rule.match) if leaf.of_line]
    assert {(rule, leaf): why for rule, leaf, why in found if why} == {}


def test_a_row_of_a_table_needs_no_text_as_it_is_looked_for_at_the_begin_of_lines_only() -> None:
    assert cost.costly(Leaf(id="m", regex=r"^\|\s*\d+\s+\d+\s*\|")) == ""
    assert "no fixed text" in cost.costly(Leaf(id="m", regex=r"^\d+|\d+ ms"))


RULE = """
- id: test.slow
  root_cause: op-compile-failure
  title: {en: a, zh: 甲}
  layer: operator
  severity: error
  match: {id: m, %s}
  remedy: {en: [look], zh: [查看]}
  examples: {match: ["%s"], no_match: ["x"]}
"""


@pytest.mark.parametrize(
    ("match", "example", "said"),
    [
        ('contains: "[INFO]"', "[INFO] y", "'[INFO]'"),
        ("regex: 'size=(?P<n>[0-9]+)'", "size=4", "'size='"),
        ("regex: 'poisoned tile|[0-9]+ ?ms'", "4 ms", "no fixed text"),
    ],
)
def test_lint_names_a_costly_pattern_and_what_to_do_but_loading_does_not(match: str, example: str, said: str, tmp_path: pathlib.Path) -> None:
    tmp_path.joinpath("pack.yaml").write_text("name: test\nversion: 1.0.0\n")
    tmp_path.joinpath("slow.yaml").write_text(RULE % (match, example))
    assert pack.load([tmp_path], shipped=False).problems == ()
    result = CliRunner().invoke(commands.app, ["lint", str(tmp_path)])
    assert result.exit_code == 0
    (warning,) = [line for line in result.output.splitlines() if line.startswith("warning: ")]
    assert re.search(r"slow\.yaml:2:1: test\.slow: m: ", warning)
    assert said in warning
    assert ("name a rarer text" in warning) or ("let each alternative hold a text" in warning)
    assert "1 rules can run, 0 errors, 1 warnings." in result.output


def test_lint_is_silent_on_a_pattern_with_a_rare_text(tmp_path: pathlib.Path) -> None:
    tmp_path.joinpath("pack.yaml").write_text("name: test\nversion: 1.0.0\n")
    tmp_path.joinpath("fast.yaml").write_text(RULE % ("regex: 'size=(?P<n>[0-9]+) of a poisoned tile'", "size=4 of a poisoned tile"))
    assert "warning" not in CliRunner().invoke(commands.app, ["lint", str(tmp_path)]).output.replace("0 warnings", "")
