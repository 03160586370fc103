"""Whatever a member is written in, it reads as UTF-8 lines."""

from __future__ import annotations

import json

import pytest

from forensics.transcode import Lines, docker_line, form, raw_size
from tests.unit.members import Text


def read(data: bytes, encoding: str, piece: int, head: int) -> bytes:
    member = Text("x", data, None, piece)
    first = bytearray(min(head, len(data)))
    view, at = memoryview(first), 0
    while at < len(first):
        at += member.readinto(view[at:])
    lines = Lines(member, bytes(first), encoding)
    out, buffer = b"", memoryview(bytearray(5))
    while count := lines.readinto(buffer):
        out += bytes(buffer[:count])
    assert lines.bytes_read == len(data)
    return out


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "gb18030", "latin-1"])
def test_text_survives_any_cut(encoding: str, piece: int) -> None:
    text = "caf\xe9 \n" if encoding == "latin-1" else "设备𠀀心跳\n丢失 abc\r\n"
    assert read(text.encode(encoding), encoding, piece, 5).decode() == text


def test_bad_bytes_are_replaced_and_lines_kept() -> None:
    assert read(b"\xff\xff\n\x81", "gb18030", 2, 0).decode().count("\n") == 1


def test_lone_carriage_returns_become_line_ends() -> None:
    assert form("utf-8", b"one\rtwo\rthree") == "cr" and form("utf-8", b"one\rtwo\r\nthree") == "utf-8"
    assert read(b"one\rtwo\r", "cr", 4, 2) == b"one\ntwo\n"


def test_docker_json_becomes_lines_with_time_and_stream() -> None:
    lines = [{"log": "[ERROR] one\r\n", "stream": "stderr", "time": "2025-09-04T01:02:03.5Z"}, {"log": "half", "time": "2025-09-04T01:02:04Z"}]
    data = "\n".join(map(json.dumps, lines)).encode() + b"\n\nnot json\n{"
    assert form("utf-8", data) == "docker-json"
    expected = b"2025-09-04T01:02:03.5Z stderr F [ERROR] one\n2025-09-04T01:02:04Z stdout P half\n\nnot json\n{"
    for piece in (1, 7, 4096):
        assert read(data, "docker-json", piece, 9) == expected
    assert docker_line(b'{"log":5}') == b'{"log":5}'


def test_sizes_are_those_of_the_member() -> None:
    assert raw_size("设a".encode(), "utf-16-le") == 4 and raw_size("设a".encode(), "gb18030") == 3 and raw_size(b"ab", "utf-8") == 2
