"""The scanner finds on every line what the rules' own words find, wherever the chunk ends and however large it is."""

from __future__ import annotations

import pathlib
import time

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import looks, pack, scan

RULES = r"""
- id: t.literal
  root_cause: unknown
  title: {en: a, zh: a}
  layer: operator
  severity: error
  match: {contains: "heartbeat lost"}
- id: t.both
  root_cause: unknown
  title: {en: a, zh: a}
  layer: operator
  severity: error
  match: {contains: [alloc, failed], not_contains: harmless}
- id: t.regex
  root_cause: unknown
  title: {en: a, zh: a}
  layer: operator
  severity: error
  match: {regex: 'size=(?P<size>\d+) of \[(?P<shape>[^\]]*)\]'}
- id: t.folded
  root_cause: unknown
  title: {en: a, zh: a}
  layer: operator
  severity: error
  match: {contains: "Out Of MEMORY", ignore_case: true}
- id: t.chinese
  root_cause: unknown
  title: {en: a, zh: a}
  layer: operator
  severity: error
  match: {contains: "内存不足"}
- id: t.code
  root_cause: unknown
  title: {en: a, zh: a}
  layer: operator
  severity: error
  match: {code: 507001}
"""
NAMES = ["t.literal", "t.both", "t.regex", "t.folded", "t.chinese", "t.code"]


@pytest.fixture(scope="module")
def scanner(tmp_path_factory: pytest.TempPathFactory) -> scan.Scanner:
    folder = tmp_path_factory.mktemp("pack")
    folder.joinpath("r.yaml").write_text(RULES)
    rules = pack.load([folder], shipped=False)
    assert rules.problems == ()
    return scan.Scanner.load(rules, [scan.ExtraPattern("error", r"^\[ERROR\]"), scan.ExtraPattern("cann", r"cann=(?P<value>\S+)", capture=True)])


def found(scanner: scan.Scanner, text: str) -> list[tuple[str, int, dict[str, str]]]:
    data = text.encode()
    names = {n: NAMES[ref.rule] for n, ref in enumerate(scanner.leaves)} | {-1 - k: pattern.name for k, pattern in enumerate(scanner.extra)}
    return [(names[hit.leaf], hit.line, hit.captures) for hit in scanner.scan(data, len(data), keep=1000).hits]


def test_each_kind_of_pattern_is_found_on_its_line(scanner: scan.Scanner) -> None:
    text = (
        "x\nNPU heartbeat lost\nalloc of 5 failed\nalloc failed, harmless\nsize=4096 of [2,3]\nout of memory\n内存不足\nErrCode=507001,\ncann=8.1\n"
    )
    assert found(scanner, text) == [
        ("t.literal", 1, {}),
        ("t.both", 2, {}),
        ("t.regex", 4, {"size": "4096", "shape": "2,3"}),
        ("t.folded", 5, {}),
        ("t.chinese", 6, {}),
        ("t.code", 7, {}),
        ("cann", 8, {"value": "8.1"}),
    ]


def test_a_pattern_never_spans_two_lines(scanner: scan.Scanner) -> None:
    assert found(scanner, "alloc\nfailed\nsize=1 of [2\n,3]\n") == []


def test_a_code_is_found_in_all_spellings_and_not_inside_longer_numbers(scanner: scan.Scanner) -> None:
    text = "error code is 507001\nret=0x7bc79\nret=0X7BC79\nACL_ERROR_RT_TS_ERROR\n15070010\n5070011\n"
    assert [(name, line) for name, line, _ in found(scanner, text)] == [("t.code", n) for n in range(4)]


def test_the_last_line_needs_no_line_end(scanner: scan.Scanner) -> None:
    assert [hit[:2] for hit in found(scanner, "a\nheartbeat lost")] == [("t.literal", 1)]


def test_error_lines_are_counted_with_what_matched_on_them(scanner: scan.Scanner) -> None:
    data = b"[ERROR] heartbeat lost\n[ERROR] other\nfine\n"
    chunk = scanner.scan(data, len(data))
    assert [(one.line, one.matched) for one in chunk.marked] == [(0, (-1, 0)), (1, (-1,))]
    assert chunk.lines == 3


def test_a_line_that_holds_several_of_the_texts_of_one_leaf_counts_once(tmp_path: pathlib.Path) -> None:
    rule = RULES.split("- id: t.both")[0].replace('{contains: "heartbeat lost"}', "{regex: '(?:scale collapsed|rank diverged|loss exploded)'}")
    tmp_path.joinpath("r.yaml").write_text(rule)
    scanner = scan.Scanner.load(pack.load([tmp_path], shipped=False))
    data = b"scale collapsed, rank diverged, loss exploded\nloss exploded\n"
    found = scanner.scan(data, len(data))
    assert found.counts == {0: 2}
    assert [hit.line for hit in found.hits] == [0, 1]


def test_a_storm_keeps_the_first_lines_and_counts_all(scanner: scan.Scanner) -> None:
    data = b"alloc failed here\n" * 5000
    chunk = scanner.scan(data, len(data), keep=8)
    leaf = next(n for n, ref in enumerate(scanner.leaves) if NAMES[ref.rule] == "t.both")
    assert [hit.line for hit in chunk.hits] == list(range(8))
    assert chunk.counts[leaf] == 5000


def test_a_large_chunk_gives_what_small_ones_give(scanner: scan.Scanner) -> None:
    lines = [f"line {n} " + ("heartbeat lost" if n % 997 == 0 else "size=7 of [1]" if n % 1009 == 0 else "x" * 40) for n in range(40000)]
    text = "\n".join(lines) + "\n"
    assert len(text) > 1 << 20
    large, small = found(scanner, text), []
    for start in range(0, len(lines), 1000):
        part = "\n".join(lines[start : start + 1000]) + "\n"
        small += [(name, line + start, captures) for name, line, captures in found(scanner, part)]
    assert large == small


def sharp(folder: pathlib.Path) -> scan.Scanner:
    """A scanner with its sieve."""
    folder.joinpath("r.yaml").write_text(RULES)
    scanner = scan.Scanner.load(
        pack.load([folder], shipped=False),
        [
            scan.ExtraPattern("error", r"^\[ERROR\]|^E\d{4}:", texts=("[ERROR]", *(f"\nE{n}" for n in range(10)))),
            scan.ExtraPattern("cann", r"cann=(?P<value>\S+)", capture=True),
        ],
    )
    scanner.sharpen()
    return scanner


def test_the_sieve_holds_no_line_back_that_the_matcher_reports(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = sharp(tmp_path)
    some = [
        "heartbeat lost",
        "alloc 5 failed",
        "size=3 of [1]",
        "OUT OF memory",
        "内存不足",
        "ret=507001 x",
        "E1234: x",
        "[ERROR] y",
        "cann=8",
        "E12",
        "",
    ]
    lines = [some[n % 97] if n % 97 < len(some) else f"plain line {n} " + "lorem " * (n % 7) for n in range(9000)]
    for text in ("\n".join(lines), "\n".join(lines) + "\n", "\n".join([*lines, "alloc failed"]), "E1234: x\n" + "\n".join(lines)):
        data = text.encode()
        blunt = scanner.scan(data, len(data), keep=1000)
        assert len(blunt.hits) > 500
        monkeypatch.setattr(scan, "_SMALL", 1)
        assert scanner.scan(data, len(data), keep=1000) == blunt
        monkeypatch.undo()


def test_lines_that_differ_in_their_digits_alone_are_told_apart_where_digits_matter(scanner: scan.Scanner) -> None:
    assert [(name, line) for name, line, _ in found(scanner, "ret=507001 x\nret=507002 x\nret=507001 x\nret=807001 x\n")] == [
        ("t.code", 0),
        ("t.code", 2),
    ]


def test_numbers_named_by_a_regex_only_are_not_mixed_up(tmp_path: pathlib.Path) -> None:
    rule = RULES.split("- id: t.both")[0].replace('{contains: "heartbeat lost"}', "{regex: 'core error (?:4|17|2[0-5])\\b', not_contains: 'x9'}")
    tmp_path.joinpath("r.yaml").write_text(rule)
    scanner = scan.Scanner.load(pack.load([tmp_path], shipped=False))
    data = b"".join(b"core error %02d\n" % n for n in (4, 14, 17, 18, 19, 20, 25, 26)) + b"core error 4 x9\ncore error 4 x8\ncore error 5 x8\n"
    assert [hit.line for hit in scanner.scan(data, len(data)).hits] == [2, 5, 6, 9]


def test_a_regex_that_runs_away_is_cut_short_and_named(tmp_path: pathlib.Path) -> None:
    rule = RULES.split("- id: t.both")[0].replace('{contains: "heartbeat lost"}', "{regex: 'run(a+)+(a|aa)+!b'}")
    tmp_path.joinpath("r.yaml").write_text(rule)
    scanner = scan.Scanner.load(pack.load([tmp_path], shipped=False))
    text = "run" + "a" * 40000 + "!b" + "a" * 5
    begin = time.monotonic()
    chunk = scanner.scan(("run" + "a" * 40000 + "\n" + text + "\n").encode(), len(text) + 40004)
    assert time.monotonic() - begin < 5
    assert chunk.cut == set() or chunk.cut == {0}


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(["alloc", "failed", "heartbeat lost", "size=1", " of [x]", "harmless", "\n", "507001", "OUT of memory", "é", "内存不足"]),
        max_size=40,
    )
)
def test_every_line_is_judged_as_by_the_words_alone(scanner: scan.Scanner, parts: list[str]) -> None:
    text = " ".join(parts)
    expected = set()
    for number, line in enumerate(text.split("\n")):
        if "heartbeat lost" in line:
            expected.add(("t.literal", number))
        if "alloc" in line and "failed" in line and "harmless" not in line:
            expected.add(("t.both", number))
        if regex.search(r"size=(\d+) of \[([^\]]*)\]", line):
            expected.add(("t.regex", number))
        if "out of memory" in line.lower():
            expected.add(("t.folded", number))
        if "内存不足" in line:
            expected.add(("t.chinese", number))
        if "507001" in line.split():
            expected.add(("t.code", number))
    assert {(name, line) for name, line, _ in found(scanner, text)} == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (r"size=(?P<n>\d+)", r"size=(\d)"),
        (r"free .*", "free "),
        (r"free [^,]{1,20}", r"free [^,]"),
        (r"a.{0,80}b[0-9]{6}c\d{2}d", r"a.*b[0-9]+c\d{2}d"),
        (r"a\+", r"a\+"),
        (r"(?:xy)+", r"(?:xy)+"),
        (r"code (?P<c>[0-9a-f]+)?", r"code ([0-9a-f]+)?"),
    ],
)
def test_a_repeat_at_the_end_is_relaxed_for_the_scan(given: str, expected: str) -> None:
    assert looks.relaxed(given) == expected
