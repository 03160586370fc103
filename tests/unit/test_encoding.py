"""Encodings: told apart from the first kilobytes, mixed ones read line by line, binaries kept away from the parsers."""

from __future__ import annotations

import codecs
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import encoding

LOG = "[ERROR] HCCL(1,python):2025-10-14-06:12:40.118.362 [x.cc:1]1 F:设备心跳丢失，错误：中文日志\n" * 3


@pytest.mark.parametrize(
    "coding, name",
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("gbk", "gb18030"),
        ("gb18030", "gb18030"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-16", "utf-16-le"),
        ("ascii", "utf-8"),
    ],
)
def test_every_encoding_is_recognised_with_and_without_a_mark(coding: str, name: str) -> None:
    data = LOG.encode(coding, "ignore")
    assert encoding.detect(data) == name
    assert not encoding.is_binary(data)
    assert encoding.decode_all(data, name) == LOG.encode(coding, "ignore").decode(coding)


def test_four_byte_characters_of_gb18030() -> None:
    assert encoding.detect("\U00020000\u9fa6 设备 second plane and rare\n".encode("gb18030")) == "gb18030"


def test_latin1_words_are_not_taken_for_chinese() -> None:
    assert encoding.detect("Ger\xe4tefehler caf\xe9 \xa0\n".encode("latin-1")) == "latin-1"
    assert encoding.detect("Ger\xe4tefehler der Stra\xdfenbahn\n".encode("latin-1")) == "latin-1"  # each pair would be a character of GB18030


def test_mixed_lines_are_each_read_in_their_own_encoding() -> None:
    lines = ["设备".encode(), "设备".encode("gbk"), "caf\xe9".encode("latin-1"), b"plain"]
    assert encoding.detect(b"\n".join(lines)) == "utf-8"
    assert encoding.decode_all(b"\n".join(lines), "utf-8") == "设备\n设备\ncafé\nplain"


def test_a_utf8_line_in_a_gb18030_file_is_read_as_utf8() -> None:
    assert encoding.decode("设备心跳".encode(), "gb18030") == "设备心跳"
    assert encoding.decode("设备心跳".encode("gbk"), "gb18030") == "设备心跳"


def test_damaged_utf8_is_not_taken_for_latin1() -> None:
    assert encoding.detect(b"plain\n\xc0\xaf \xed\xa0\x80 \x80\xbf \xe8\xae \xff\xfe\n") == "utf-8"


def test_a_character_cut_at_the_end_of_the_head_does_not_change_the_encoding() -> None:
    data = LOG.encode()
    assert {encoding.detect(data[:cut]) for cut in range(80, 140)} == {"utf-8"}
    wide = LOG.encode("gbk")
    assert {encoding.detect(wide[:cut]) for cut in range(80, 120)} == {"gb18030"}


def test_gaps_of_nuls_do_not_make_a_log_binary() -> None:
    assert not encoding.is_binary(b"\0" * 70000 + LOG.encode())
    assert not encoding.is_binary(LOG.encode() + b"\0" * 70000)
    assert not encoding.is_binary(b"\0" * 16384)
    assert encoding.detect(b"\0" * 70000 + LOG.encode()) == "utf-8"


@pytest.mark.parametrize(
    "head",
    [
        b"\x7fELF\x02\x01\x01" + b"\0" * 60,
        b"SQLite format 3\0",
        b"PK\x03\x04abc",
        b"\x1f\x8b\x08\0",
        b"\x80\x04\x95\x00",
        b"\x93NUMPY\x01\0",
        bytes(range(256)) * 40,
        b"\x01\x00\x00\x00\x02\x00\x00\x00\xff\x10\x00\x00" * 300,
    ],
)
def test_binaries_are_recognised(head: bytes) -> None:
    assert encoding.is_binary(head)


def test_random_bytes_are_binary() -> None:
    assert all(encoding.is_binary(os.urandom(8192)) for _ in range(20))


def test_terminal_sequences_are_text() -> None:
    assert not encoding.is_binary(("\x1b[31mred\x1b[0m \x07\x08\n" + "x" * 40).encode())


@given(st.binary(max_size=400), st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "gb18030", "latin-1"]))
def test_any_bytes_are_read_in_any_encoding(data: bytes, name: str) -> None:
    encoding.decode(data, name)
    encoding.decode_all(data, name)
    encoding.detect(data)
    encoding.is_binary(data)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\ufeff"), max_size=200))
def test_what_is_utf8_is_read_as_it_was_written(text: str) -> None:
    assert encoding.decode(text.encode(), "utf-8") == text
    assert encoding.decode(codecs.BOM_UTF8 + text.encode(), "utf-8-sig") == text
