"""The compiled way to rows and the line-by-line way give the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.columns import CONTINUED, NAMES, NONE, NUMBERS, Columns, Rows

READER = Columns()
READER.read(b"", "plog", compiled=True)  # compiles, where that has not been done
HEAD = "[ERROR] RUNTIME(51377,python3):2025-10-14-06:12:40.118.362 "


def rows(found: Rows) -> list[tuple[object, ...]]:
    return [
        (found.message(k), *(int(found.values[name][k]) for name in NUMBERS), *(found.text(name, k) for name in NAMES)) for k in range(found.rows)
    ]


def both(data: bytes, kind: str = "plog") -> list[tuple[object, ...]]:
    fast, slow = READER.read(data, kind, compiled=True), READER.read(data, kind, compiled=False)
    assert fast.lines == slow.lines
    assert rows(fast) == rows(slow)
    return rows(slow)


PIECES = [
    HEAD, "[INFO] GE(7,):2024-02-29-23:59:59.000.001 ", "[WARNING] HCCL(1,a b):2025-02-29-00:00:00.000.000 ",
    "[16] 3(-1,null): 2025-01-01-00:00:00.1.2 ",
    "[EVENT] DRV(3,x),y):2025-01-01-00:00:00.100.200 ", "[AIC_INFO] args(0): 5", "[ERROR] TDT(1,x):2025-01-01-00:00:60.000.000 ", "[NULL] A(1,b):20",
    "[INFO] GE(7,main):2025-10-14-06:12:40.118.3621 ", "[TRACE]HCCL(7, main):2025-10-14-06:12:40.118.362 ",
    "[EXEC] GE(7,main):2025-10-14-06:12:40.118.362 ",
    "[stars_engine.cc:1534]", "[a:b:12]", "[ascend]", "[curpid: 3, 4][drv][x][f 12]", "[status:ok]", "[hdc] [hdcInit 396]", "[Func][tid:7] ",
    "51438 ", "51438", "12345678901 ", "[6219]", " [6219]", "[1][2]", "(tid:7) ", ">>> (tid: 8)", " (tid:9)x", "[tid:12]", "tid:7,func(12) : ",
    "[hccl-world_group][3]", "ProcLogic:", "ProcLogic: ", "~X:", "a b:", " f:",
    "device_id=3", "device_id=03, ", "dev_id:[4", "devId : 5", "device 6,", "device(7)", "device=8%", "device 9.1", "xdevice_id=1",
    "devid[2]", "device:12a",
    "logicDevId=3 ", "logic_dev_id[4]", "ogicId:5", "phydevId[6]", "chipId:7", "chip_id=7", "devPhyId=8", "dev_PhyId:9", "hy_id=1",
    "phy_id=2", " ev ", "hip",
    "stream_id=12", "streamId:[13", "StreamID[14]", "stream_id 5", "task_id=99999999999", "taskID : 7", "task_id=5", "report_stream_id=6",
    "error code is 507015", "ErrCode=507011", "retCode=0x91", "result=-1", "errNo[0x0000000005000004]", "errorNo: 12", "module_name=EZ9999",
    "event_id: [0x80e01801]", "event_id=12", "Event id=0x1", "mode=1", "code:", "E9999",
    "[DRV][func][12] ", "[Func][Tid:7]", "tid:7,func : ", "12345678901 f:", "ranks[8], rank[3]", "rank[2],totalRanks[", "return[0x91]",
    "errno[12345]", "retcode: 7",
    "RetCode = -12 ", "ret_code[EZ9999]", "rror code is: E19999", "errcode =0x", "rrorCode:0x12345678901234567",
    "errCode [W1A234 ", "error code is :I00001x",
    "retCode=12345678901", "xrror code: 0xag", "Errcode=5", "errCode==3", "error code 5", "Code=1", "ret_Code=4", "rcode: 0x9_",
    "chip_id=1 dev", "phy_dev_id=4 dev", "phyDevId=3",
    "\n", "\r\n", "\n        TraceBack\n", "\n\n", "\t", "\0", "\x1b[31m", "^[[0m", "^M\n", "\\x1b[1m", "\r", "中文", "device_id＝3", "é",
    "\udcff", "x" * 300,
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=24))
def test_compiled_rows_equal_those_of_the_parser(pieces: list[str]) -> None:
    both("".join(pieces).encode("utf-8", "surrogateescape"))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), st.lists(st.sampled_from(PIECES), max_size=6))
def test_compiled_rows_equal_behind_a_good_head(after: list[str], more: list[str]) -> None:
    text = HEAD + "[a.cc:1]2 f:" + "".join(after) + "\n" + HEAD + "".join(more)
    both(text.encode("utf-8", "surrogateescape"), "device")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=12) | st.sampled_from([piece.encode("utf-8", "surrogateescape") for piece in PIECES]), max_size=16))
def test_compiled_rows_equal_on_any_bytes(parts: list[bytes]) -> None:
    both(b"".join(parts))


def test_continuation_lines_belong_to_the_record_above() -> None:
    found = both((HEAD + "[a.cc:1]2 f:one\n  two\n\nthree\n" + HEAD + "[a.cc:1]2 f:next").encode())
    assert [(row[0], row[1], row[2]) for row in found] == [("one\n  two\n\nthree", 1, 4), ("next", 5, 1)]


def test_lines_before_any_record_stand_alone() -> None:
    found = both(b"one\n two\n" + HEAD.encode() + b"x\n")
    assert [(row[0], row[1], row[4]) for row in found[:2]] == [("one", 1, NONE), (" two", 2, NONE)]


def test_an_endless_continuation_is_cut() -> None:
    found = both(HEAD.encode() + b"x\n" + b"more\n" * (CONTINUED + 10))
    assert (found[0][2], len(found)) == (CONTINUED, 12)


def test_bad_utf8_and_controls_are_cleaned_in_messages() -> None:
    found = both(HEAD.encode() + b"a\xff\0b\x1b[31mc\r\n  d\xff\n")
    assert found[0][0] == "a\ufffdbc\n  d\ufffd" or found[0][0] == "aÿbc\n  dÿ"


def test_a_huge_line_keeps_head_and_tail() -> None:
    found = both(HEAD.encode() + b"x" * (3 << 20) + b"end\n")
    message = str(found[0][0])
    assert message.endswith("xend") and " ... " in message and len(message) < 100_000


LINES = [
    "[ 1203.300000] ", "[    1.000001] ", "[12.5] ", "<6>", "Oct 14 14:12:01 ", "Feb 29 00:00:00 ", "Feb 30 00:00:00 ",
    "Sep  4 23:59:59 ", "npu-07 ", "a b ",
    "kernel: ", "systemd[1]: ", "python3: ", "[ascend] ", "[ERROR] ", "[WARN]", "[trs_drv] ", "[drv_pcie] ", "[ trs mbox ]",
    "[trs_mbox_send 188] ", "[f,1] ",
    "[pid 3] ", "<python3:51377> ", "<python3:1:2:3> ", "<kworker/5:1H:39365> ", "<a b>", "audit: type=1 ",
    "devdrv_device_driver 0000:82:00.0: ", "usb 1-1: ",
    "davinci: ", "drv_x: ", "(devid=1; ret=-110)", "dev_id:3 ", "phy_id=2 dev", "hy_dev_id=1", "Event id=0x80e01809",
    "event_id: [0x80e01801]", "text", "  ",
    "(Worker_TP0 pid=1070) ", "(VllmWorker rank=3 pid=9) ", "(EngineCore_DP0 pid=1) ", "(x)", "INFO ", "ERROR ", "CRITICAL ",
    "04-30 23:38:48 ", "13-30 23:38:48 ",
    "02-29 00:00:00 ", "[core.py:932] ", "[/a/b.py:1]", "[a b:1] ", "core.py:12] ",
    "[ERROR] 2026-04-30-23:38:48 (PID:1070, Device:0, RankID:-1) ERR00100 PTA x",
    "EZ9999: Inner Error!", "[PID: 7] x", "[rank3]: x", "Device_Absent(EL0001): y", "A (E", "2026-05-26 15:15:48,667 ",
    "2026-02-30 15:15:48,667 ", "- trainer - ",
    "- trainer.loop - INFO - ", "- 12 - ", "INFO - ", "- ERROR - ", "a.py:12 - ", "Traceback (most recent call last):", "RuntimeError: x",
    "    frame",
    "\n", "\r\n", "\n", "\t", "\x1b[0m", "中", "[", "]", ":", "x" * 130,
]  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(["kernel", "console"]), st.lists(st.sampled_from(LINES), max_size=24))
def test_compiled_lines_equal_those_of_the_parser(kind: str, pieces: list[str]) -> None:
    both("".join(pieces).encode(), kind)


GOOD = [
    "[ 1203.300000] [ascend] [ERROR] [trs_drv] [trs_mbox_send 188] <python3:51377> ", "[    1.000001] audit: ",
    "[    1.000001] [ascend] [devdrv] [f 1] ",
    "Oct 14 14:12:01 npu-07 systemd[1]: ", "Oct 14 14:12:01 npu-07 kernel: [  893.100000] ",
    "(Worker_TP0 pid=1070) INFO 04-30 23:38:48 [core.py:932] ",
    "ERROR 04-30 23:38:48 [a.py:1] ", "2026-05-26 15:15:48,667 - trainer - INFO - ",
    "[ 1203.300000] [ascend] [trs_drv] [INFO] [f 1] <kworker/5:1H:39365> ",
]  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from(["kernel", "console"]),
    st.lists(st.tuples(st.sampled_from(GOOD), st.lists(st.sampled_from(LINES + PIECES), max_size=4)), min_size=1, max_size=8),
)
def test_compiled_lines_equal_behind_good_heads(kind: str, lines: list[tuple[str, list[str]]]) -> None:
    both("\n".join(head + "".join(rest) for head, rest in lines).encode("utf-8", "surrogateescape"), kind)


@pytest.mark.parametrize("kind", ["console", "kernel", "text", "mindie"])
def test_other_kinds_are_read_line_by_line(kind: str) -> None:
    data = b"(Worker_TP0 pid=7) ERROR 09-04 10:00:01 [core.py:708] device_id=3 failed\nTraceback (most recent call last):\n  File x\n"
    found = READER.read(data, kind)
    assert found.lines == 3 and sum(found.values["n_lines"]) == 3


def test_segments_inside_a_block_are_read_alone() -> None:
    line = (HEAD + "[a.cc:1]2 f:one stream_id=4\n").encode()
    block = bytearray(b"\xff" * 5 + line * 2 + b"[ERROR] GE(")
    found = READER.read(block, "plog", 5, 5 + 2 * len(line), compiled=True)
    assert [row[0] for row in rows(found)] == ["one stream_id=4"] * 2
    assert found.values["offset"].tolist() == [0, len(line)]


@pytest.mark.parametrize("kind", ["plog", "console", "kernel", "text"])
def test_a_blank_line_is_a_row_of_no_kind_outside_of_a_record(kind: str) -> None:
    data = b"\n\r\n\n\nfirst\n\n" + HEAD.encode() + b"[a.cc:1]7 Run:said\n\nmore\n\n"
    found = both(data, kind) if kind != "text" else rows(READER.read(data, kind))
    assert all(row[0] for row in found)
    if kind == "plog":
        assert [(row[1], row[2]) for row in found] == [(5, 1), (7, 4)]  # within a record it belongs to that
    assert READER.read(data, kind).lines == 10
