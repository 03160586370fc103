"""Blocks are cut where the bytes say, hold whole small members, and lose nothing."""

from __future__ import annotations

from forensics import feed
from forensics.feed import BLOCK, LINE_HEAD, SEGMENTS, Feed, Task, new_block
from tests.unit.members import Texts, plog


def fed(files: dict[str, bytes], piece: int = 1 << 20) -> tuple[Feed, list[Task], dict[int, bytes]]:
    """All tasks, and the text of each file put together again from its segments."""
    blocks = [new_block()]
    reader = Feed(Texts(files, piece).members(), blocks, lambda: 0, lambda view: bytes(view).count(b"\n"))
    tasks, texts = [], {}
    for task in reader.tasks():
        tasks.append(task)
        for segment in task.segments:
            texts[segment.file_id] = texts.get(segment.file_id, b"") + bytes(blocks[0][segment.start : segment.end])
    return reader, tasks, texts


def test_small_members_share_a_block() -> None:
    files = {f"plog/plog-{k}_1.log": plog(f"line {k}").encode() for k in range(50)}
    reader, tasks, texts = fed(files, piece=7)
    assert len(tasks) == 1 and [file.kind for file in reader.files] == ["plog"] * 50
    assert list(texts.values()) == list(files.values())


def test_very_many_members_take_several_blocks() -> None:
    _, tasks, texts = fed({f"{k}.txt": b"x\n" for k in range(SEGMENTS + 5)})
    assert [len(task.segments) for task in tasks] == [SEGMENTS, 5] and len(texts) == SEGMENTS + 5


def test_a_large_member_is_cut_before_a_record_and_nothing_is_lost() -> None:
    one = plog("x" * 900, level="ERROR") + "  continued\n    and more\n"
    data = (one * (3 * BLOCK // len(one))).encode()
    _, tasks, texts = fed({"plog-1.log": data})
    assert texts[0] == data
    assert len(tasks) == 4  # three full ones, and what their cuts left over
    at = 0
    for task in tasks:
        segment = task.segments[0]
        assert segment.base == at and data[at : at + 9] == b"[ERROR] R"
        assert segment.line == data[:at].count(b"\n")
        at += segment.end - segment.start
    assert [task.segments[0].first for task in tasks] == [True, False, False, False]
    assert [task.segments[0].last for task in tasks] == [False, False, False, True]


def test_a_member_of_exactly_one_block_is_whole() -> None:
    data = b"a" * 99 + b"\n"
    data = data * (BLOCK // 100) + b"b" * (BLOCK % 100)
    reader, _, texts = fed({"x.txt": data})
    assert texts[0] == data and reader.files[0].bytes == len(data)


def test_a_line_longer_than_a_block_keeps_its_head_and_tail() -> None:
    data = plog("first").encode() + b"y" * (2 * BLOCK + 17) + b"end\n" + plog("after").encode()
    reader, tasks, texts = fed({"plog-1.log": data})
    assert reader.files[0].bytes == len(data) and reader.files[0].cut_lines == 1
    lines = texts[0].split(b"\n")
    assert lines[1].startswith(b"yyy") and lines[1].endswith(b"yend") and len(lines[1]) < 2 * LINE_HEAD
    last = tasks[-1].segments[-1]
    assert data[last.base :].startswith(plog("after").encode()[:20])


def test_a_line_without_end_is_not_endless() -> None:
    reader, _, texts = fed({"x.txt": b"z" * (3 * BLOCK)})
    assert reader.files[0].bytes == 3 * BLOCK and len(texts[0]) < BLOCK


def test_wide_encodings_arrive_as_utf8_with_their_own_offsets() -> None:
    text = "".join(plog(f"设备心跳丢失 {k}") for k in range(60000))
    for coding, mark in (("utf-16-le", b"\xff\xfe"), ("gb18030", b"")):
        data = mark + text.encode(coding)
        reader, tasks, texts = fed({"plog-1.log": data})
        assert texts[0].decode() == text and reader.files[0].encoding == coding and reader.files[0].bytes == len(data)
        for task in tasks:
            begin = task.segments[0].base
            assert data[begin : begin + 40].decode(coding).startswith("[INFO] RUNTIME")


def test_a_byte_order_mark_is_no_text() -> None:
    _, tasks, texts = fed({"a.txt": b"\xef\xbb\xbfhello\n"})
    assert texts[0] == b"hello\n" and tasks[0].segments[0].base == 3


def test_binary_members_are_counted_and_left_out() -> None:
    reader, tasks, _ = fed({"core": b"\x7fELF\x02\x01\x01" + bytes(200_000), "a.txt": b"x\n"})
    assert reader.files[0].kind == "binary" and reader.files[0].bytes == 200_007
    assert [segment.file_id for segment in tasks[0].segments] == [1]


def test_empty_members_are_kept_in_the_list() -> None:
    reader, tasks, _ = fed({"empty.log": b"", "b.txt": b""})
    assert [file.bytes for file in reader.files] == [0, 0] and tasks == []


def test_a_block_has_room_for_its_description() -> None:
    import msgspec

    _, tasks, _ = fed({f"{k}.txt": b"x\n" for k in range(SEGMENTS)})
    assert len(msgspec.msgpack.encode(tasks[0])) < feed.ROOM // 4
