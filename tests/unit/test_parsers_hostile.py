"""Every parser against text that was made to hurt: nothing raises, nothing takes long, nothing is read that is not there."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import plog, prefix, registry
from parsers.base import Parser, clean

TRAPS = {
    "digits": "1" * 50000,
    "letters": "a" * 50000 + "!",
    "brackets": "[" * 50000,
    "blanks": " " * 50000 + "x",
    "equals": "=" * 50000,
    "dates": "2025-09-04-09:50:" * 3000,
    "parentheses": "(1," * 20000,
    "dots": "a." * 25000,
    "slashes": "/" * 50000,
    "quotes": "\"'" * 25000,
    "hex": "0x" * 25000,
    "codes": "error code is " * 5000,
    "heads": "[ERROR] RUNTIME(" * 3000,
    "closed heads": "[ERROR] RUNTIME(1,x):" * 2500,
    "colons": "1:2:" * 12000,
    "shapes": "shape" * 10000 + "[",
    "dashes": "-" * 50000,
    "pairs": "ab" * 25000 + ":",
    "tabs": "\t" * 50000 + "\\",
    "devices": "device " * 8000,
    "device ids": "device_id=1, " * 4000,
    "bars": "|" * 50000,
    "pluses": "+-" * 25000,
    "angles": "<a:1" * 12000,
    "uptimes": "[ 1.000000]" * 5000,
    "prefixes": "(Worker_TP0 pid=1) " * 3000,
    "ranks": "[rank0]: " * 6000,
    "json": '{"log": ' * 6000,
    "journal": '{"MESSAGE": ' * 5000,
    "columns": "a : b " * 9000,
    "words": "word " * 10000,
    "underscores": "_" * 50000 + "(",
    "chinese": "设备" * 25000,
    "events": "event id [" * 5000,
    "results": "result [" * 6000,
    "streams": "stream_id " * 5000,
}
HEADS = (
    "",
    "[ERROR] RUNTIME(7,main):2025-10-14-06:12:40.118.362 [api.cc:1]7 rtMalloc:",
    "[EVENT] KERNEL(3,sklogd):2024-04-20-06:16:07.974.300 [klogd.c:253][90000.000000] [ascend] ",
    "[ERROR] TSCH(-1,null):2023-06-10-13:16:11.404.067 13 (dieid:0,cpuid:0) ",
    "Oct 14 14:12:01 npu-07 kernel: [  893.100000] [ascend] [ERROR] [",
    "(Worker_TP0 pid=1070) ERROR 04-30 23:38:48 [f.py:932] ",
    "[2024-11-05 12:00:00.000000] [11] [1] [MS] [1] [ERROR] : ",
    "\t",
    "| ",
)
LIMIT = 0.25


def quickest(parser: Parser, line: str) -> float:
    """Seconds of the fastest of a few tries: the machine may be busy."""
    best = 1e9
    for _ in range(5):
        start = time.process_time()
        parser.record(line)
        best = min(best, time.process_time() - start)
        if best < LIMIT:
            break
    return best


@pytest.mark.parametrize("parser", registry.PARSERS, ids=lambda one: one.kind)
def test_no_line_of_50000_characters_takes_long(parser: Parser) -> None:
    slow = [
        (name, head[:20], round(took, 3))
        for name, trap in TRAPS.items()
        for head in HEADS
        if (took := quickest(parser, (head + trap)[:65536])) >= LIMIT
    ]
    assert slow == []


def test_peeling_splitting_and_claiming_hostile_lines_is_quick() -> None:
    for name, trap in TRAPS.items():
        for work in (prefix.peel, plog.split_glued, clean, lambda line: registry.classify("x.txt", line.encode())):
            best = 1e9
            for _ in range(5):
                start = time.process_time()
                work(trap)
                best = min(best, time.process_time() - start)
            assert best < 2, (name, work)


FRAGMENTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "[ERROR] ",
            "RUNTIME(1,",
            "x):",
            "2025-10-14-06:12:40.118.362",
            " [a.cc:1]",
            "7 F:",
            "device_id=",
            "9" * 25,
            "[ascend] ",
            "[drv] [f 1] ",
            "<a:1:2> ",
            "Oct 14 14:12:01 ",
            "n kernel: ",
            "[ 1.000000] ",
            '{"log":"',
            "| ",
            "EZ9999: ",
            "[PID: 7] ",
            "(Worker_TP0 pid=7) ",
            "ERROR 04-30 23:38:48 ",
            "[rank3]: ",
            "crash pid:",
            "system exception code [0x1]: ",
            "\x1b[31m",
            "\0",
            "２０２５",
            "\ud800",
            "event id 0x80e01809",
            "stream_id=",
            "[klogd.c:1]",
        ]
    ),
)


@given(st.lists(FRAGMENTS, max_size=12).map("".join))
def test_no_text_makes_a_parser_raise_and_every_record_can_be_stored(text: str) -> None:
    line = clean(text)
    for parser in registry.PARSERS:
        record = parser.record(line)
        if record is None:
            continue
        assert record.severity in ("", "DEBUG", "INFO", "EVENT", "WARNING", "ERROR", "FATAL")
        assert record.clock in ("none", "local", "utc", "zoned", "device", "noyear", "boot")
        assert (record.ts is None) == (record.clock == "none")
        assert 0 <= record.message_at <= len(line)
        for name in ("ts", "pid", "tid", "device", "rank", "stream_id", "task_id", "src_line"):
            value = getattr(record, name)
            assert value is None or -(2**63) <= value < 2**63, name
        msgspec.structs.asdict(record)


@given(st.lists(FRAGMENTS, max_size=12).map("\n".join))
def test_no_text_makes_an_extractor_or_a_claim_raise(text: str) -> None:
    registry.extract(text, "text")
    for parser in registry.PARSERS:
        assert 0 <= parser.claims("a/b.log", text) <= 100
