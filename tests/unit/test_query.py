"""SQL in rules: what a query may do, what it may not, and how its rows read as evidence."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import pytest

from rules import author, pack, query
from rules.query import Header, Tables

TABLES = """kernels: name, op_type, core, dur_ns
aclnnIndex, Index, AI_CPU, 2030000
3 x aclnnAdd, Add, AI_VECTOR_CORE, 50000"""


def tables() -> Tables:
    found = query.example(TABLES)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE kernels", "SELECT 1", "SELECT * FROM kernels; DELETE FROM kernels", "SELECT * FROM kernels -- all", "COPY kernels TO 'x'",
        "SELECT * FROM read_csv('/etc/passwd') JOIN kernels ON true", "WITH x AS (SELECT 1) INSERT INTO kernels SELECT * FROM x",
        "SELECT getenv('HOME') FROM kernels", "ATTACH 'x'", "SELECT * FROM kernels /* c */", "SELECT " + "1," * 5000 + "1 FROM kernels",
    ],
)  # fmt: skip
def test_what_is_no_plain_select_is_refused(text: str) -> None:
    assert query.problem(text)
    assert tables().ask(text, {}).problem


def test_words_in_texts_are_no_commands() -> None:
    assert query.problem("SELECT * FROM kernels WHERE name = 'drop; -- table'") == ""


def test_a_query_reaches_no_file(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    answer = tables().ask(f"SELECT * FROM kernels, '{tmp_path / 'x.csv'}'", {})
    assert answer.problem and not answer.rows


def test_rows_are_limited_and_say_where_they_stand() -> None:
    found = tables().ask("SELECT k.file_id, k.row_no, k.line_no, k.name FROM kernels k, range(1000)", {})
    assert len(found.rows) == query.ROWS
    assert (found.rows[0].file, found.rows[0].row_no, found.rows[0].line_no) == ("example-0", 1, 2)


def test_a_query_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "SECONDS", 0.2)
    begin = time.monotonic()
    found = tables().ask("SELECT sum(a.range * b.range % 7) AS n FROM kernels, range(100000) a, range(1000000) b", {})
    assert "longer" in found.problem and time.monotonic() - begin < 10


def test_numbers_are_shown_as_their_file_prints_them() -> None:
    base = duckdb.connect()
    base.execute("CREATE TABLE steps AS SELECT 4 AS file_id, 2 AS row_no, 3 AS line_no, 16426500 AS bubble_ns, 0.97 AS share, 13 AS step")
    asked = Tables(base, {4: "step_trace_time.csv"}, {(4, "steps", "bubble_ns"): Header("Bubble", 1e3), (4, "steps", "step"): Header("Step")})
    [row] = asked.ask("SELECT * FROM steps", {}).rows
    assert row.text == "row 2: Bubble = 16426.5; Step = 13; share = 0.97"
    assert row.captures["bubble_ns"] == "16426.5"


PACK = """name: mine
version: 1.0.0
options:
  least_us: {value: 20, unit: us, source: ours}
"""
RULE = """- id: mine.slow
  root_cause: few-cores-used
  title: {en: 'slow {op.name}', zh: '慢 {op.name}'}
  layer: operator
  severity: warning
  match:
    all:
      - {id: op, sql: 'SELECT file_id, row_no, line_no, name, dur_ns FROM kernels WHERE dur_ns > $least_us * 1000 ORDER BY dur_ns DESC'}
      - {id: said, contains: is slow today}
  remedy: {en: [wait], zh: [等待]}
  examples:
    match:
      - |
        kernels: name, dur_ns
        aclnnIndex, 30000

        the card is slow today
    no_match:
      - |
        kernels: name, dur_ns
        aclnnIndex, 30000
"""


def _pack(folder: Path, rule: str = RULE, header: str = PACK) -> Path:
    (folder / "pack.yaml").write_text(header)
    (folder / "rules.yaml").write_text(rule)
    return folder


def test_a_rule_joins_a_row_and_a_line(tmp_path: Path) -> None:
    rules = pack.load([_pack(tmp_path)], shipped=False)
    assert rules.problems == () and rules.packs[0].options[0].value == 20.0
    assert list(author.trials(rules)) == []


def test_an_option_can_be_set_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    rules = pack.load([_pack(tmp_path)], shipped=False)
    changed = pack.set_options(rules, {"mine.least_us": "40"})
    assert [trial.message for trial in author.trials(changed)] == ["does not fire on its example"]
    with pytest.raises(ValueError, match=r"did you mean 'mine\.least_us'"):
        pack.set_options(rules, {"mine.least": "40"})
    with pytest.raises(ValueError, match="is a number"):
        pack.set_options(rules, {"mine.least_us": "many"})


@pytest.mark.parametrize(
    ("rule", "header", "said"),
    [
        (RULE.replace("$least_us", "$most_us"), PACK, "names $most_us, which is no option"),
        (RULE.replace("SELECT file_id", "DROP TABLE x, file_id"), PACK, "one SELECT"),
        (RULE, PACK.replace("{value: 20, unit: us, source: ours}", "[20]"), "needs a lower-case name and {value"),
        (RULE, PACK.replace(", source: ours", ""), "does not say where its value is from"),
    ],
)
def test_mistakes_are_located(tmp_path: Path, rule: str, header: str, said: str) -> None:
    problems = pack.load([_pack(tmp_path, rule, header)], shipped=False).problems
    assert any(said in str(problem) and problem.line >= 1 for problem in problems)


def test_a_query_that_fails_is_told_and_the_other_rules_run(tmp_path: Path) -> None:
    rules = pack.load([_pack(tmp_path, RULE.replace("dur_ns > ", "no_such > "))], shipped=False)
    messages = [trial.message for trial in author.trials(rules)]
    assert len(messages) == 1 and "no_such" in messages[0]


def test_without_profiles_no_query_is_asked(tmp_path: Path) -> None:
    from rules import scan
    from rules.diagnose import diagnose

    rules = pack.load([_pack(tmp_path)], shipped=False)
    scanner = scan.Scanner.load(rules)
    assert diagnose(rules, scanner.leaves, *author.hits_of(scanner, "the card is slow today")).findings == []


def test_every_threshold_of_the_shipped_pack_says_where_it_is_from() -> None:
    rules = pack.load()
    own = next(one for one in rules.packs if one.name == "profile")
    assert [option.name for option in own.options if not option.source or not option.unit] == []
    used = {name for rule in rules.rules for leaf in scan_leaves(rule) for name in query.parameters(leaf.sql)}
    assert {option.name for option in own.options} == used


def scan_leaves(rule):  # type: ignore[no-untyped-def]
    from rules import scan

    return scan.leaves_of(rule.match)
