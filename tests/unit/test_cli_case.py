"""The commands over a case, and those that need none: their forms, their languages, and text that stays harmless."""

from __future__ import annotations

import json
import re

import pytest

from tests.unit.shell import dsforensics


def test_csv_marks_what_a_spreadsheet_would_run() -> None:
    query = "select '=1+1' as a, '-x' as b, -5 as c, null as d, 'it''s, \"x\"' as e, chr(27) || '[31m' as f"
    done = dsforensics("sql", "any.case", query, "--format", "csv")
    assert done.stdout == b'a,b,c,d,e,f\n\'=1+1,\'-x,-5,,"it\'s, ""x""",\\x1b[31m\n'


def test_sql_as_json_is_strict() -> None:
    query = "select 'nan'::double as a, timestamp '2025-09-04 01:02:03' as b, [1, 2] as c, 'x'::blob as d, {'k': 1} as e"
    done = dsforensics("sql", "any.case", query, "--format", "json")
    assert json.loads(done.stdout, parse_constant=pytest.fail) == [{"a": None, "b": "2025-09-04T01:02:03", "c": [1, 2], "d": "78", "e": {"k": 1}}]


def test_sql_as_a_table_lines_up_and_is_harmless() -> None:
    done = dsforensics("sql", "any.case", "select '心跳' as word, 7 as n, chr(27) || '[2J' as x union all select 'ab', 10, 'y' order by n")
    assert done.stdout.decode("utf-8") == "word   n  x\n----  --  -------\n心跳   7  \\x1b[2J\nab    10  y\n"


def test_sql_as_parquet_is_parquet() -> None:
    done = dsforensics("sql", "any.case", "select 1 as a", "--format", "parquet")
    assert done.stdout[:4] == done.stdout[-4:] == b"PAR1"


def test_a_wrong_query_is_wrong_usage() -> None:
    done = dsforensics("sql", "any.case", "selec 1")
    assert done.returncode == 2
    assert b"The query failed" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_case_gives_its_report_again_in_any_form() -> None:
    assert dsforensics("report", "any.case", "--format", "json").stdout == dsforensics("triage", "sound", "--format", "json").stdout
    assert dsforensics("report", "any.case", "--format", "markdown", "--lang", "zh").stdout.decode("utf-8").startswith("# `logs.tar.gz` 的故障分析")


def test_a_rule_says_why_it_holds_in_both_languages() -> None:
    done = dsforensics("explain", "any.case", "1")
    assert done.stdout.decode("utf-8") == EXPLAINED
    chinese = dsforensics("explain", "any.case", "1", "--lang", "zh").stdout.decode("utf-8")
    assert "规则成立" in chinese and "soc 未知" in chinese
    assert not re.search("lines|holds|doubts|follows|needed", chinese)
    assert dsforensics("explain", "any.case", "nine").returncode == 2


def test_completion_is_offered_for_the_usual_shells() -> None:
    done = dsforensics("--show-completion", "bash")
    assert done.returncode == 0
    assert b"_DSFORENSICS_COMPLETE=complete_bash" in done.stdout


def test_doctor_says_what_is_there_and_what_for() -> None:
    done = dsforensics("doctor")
    assert done.returncode == 0
    assert re.search(rb"ok +duckdb +[0-9.]+ +holds the case", done.stdout)


def test_every_kind_of_log_is_listed_and_shows_its_sample() -> None:
    listed = dsforensics("parsers").stdout.decode("utf-8")
    assert re.search("^plog +CANN application log", listed, re.M)
    assert "RUNTIME(" in dsforensics("parsers", "plog").stdout.decode("utf-8")
    wrong = dsforensics("parsers", "\x1b[2J")
    assert wrong.returncode == 2
    assert b"No parser reads the kind" in wrong.stderr


EXPLAINED = """\
Paged attention read outside its KV block
operators.paged-attention.out-of-block
It holds, and is diagnosis 1.

  a  contains 'x'                                  lines: 31, of them fitting: 2
    console.log:512  09:12:03.000  error code:507035 \\x1b[2J

  b  code 507035                                          not found · not needed

  where         a.m % 16 != 0 · holds
  follows from  other.rule
  doubts        soc is not known
"""
