"""What to collect next: one command for all first, then each source with its own; nothing where nothing is missing."""

from __future__ import annotations

import re

import pytest

from forensics.advice import LIMIT, collect_next
from forensics.collect import parser

EVERYTHING = {"plog", "console", "device-os", "kernel", "npu-smi", "environment", "hccn-tool"}


@pytest.mark.parametrize("kinds", [set(), {"plog"}, EVERYTHING - {"kernel"}])
def test_the_one_command_for_all_comes_before_those_for_single_sources(kinds: set[str]) -> None:
    first, *others = collect_next(kinds, True)
    for text in (first.en, first.zh):
        assert "dsforensics collect -o logs.tar.gz" in text and "dsforensics collect --emit-script > collect.py" in text
    assert 1 <= len(others) <= LIMIT and not any("dsforensics" in note.en + note.zh for note in others)


def test_a_bundle_that_lacks_nothing_gets_no_advice() -> None:
    assert collect_next(EVERYTHING, True) == []
    assert collect_next(EVERYTHING - {"hccn-tool"}, False) == []


def test_the_commands_named_are_ones_that_collect_takes() -> None:
    note = collect_next((), False)[0]
    for text in (note.en, note.zh):
        commands = re.findall(r"(?:dsforensics collect|python3 collect\.py) (-o(?: [-\w.]+)+)", text)
        assert len(commands) == 2
        for command in commands:
            assert parser("collect").parse_args(command.split()).out == "logs.tar.gz"
