"""CANN records: every module's way of naming thread and function, codes and ids, damaged and glued records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import plog
from parsers.device_app import DeviceAppParser, device, host_pid
from parsers.plog import PlogParser
from parsers.rows import Record

HEAD = "[ERROR] RUNTIME(413,python3):2025-10-14-06:12:40.118.362 "
TS = 1760422360118362


def read(body: str, head: str = HEAD) -> Record:
    record = PlogParser().record(head + body)
    assert record is not None
    assert (head + body)[record.message_at :] == record.message
    return record


@pytest.mark.parametrize(
    "body, tid, function, message",
    [
        ("[api.cc:7]51438 Func:text", 51438, "Func", "text"),
        ("[api.cc:7]51438 Func: text", 51438, "Func", "text"),
        ("[api.cc:7]58 ~FuncPerfScope:[GEPERFTRACE] text", 58, "~FuncPerfScope", "[GEPERFTRACE] text"),
        ("[api.cc:7]39114 Knowledge bank query fail", 39114, "", "Knowledge bank query fail"),
        ("[api.cc:7]51377 build/x.ts:operator():33: text", 51377, "", "build/x.ts:operator():33: text"),
        ("[api.cc:7][6219][Task][Callback]text", 6219, "", "[Task][Callback]text"),
        ("[api.cc:7] [17514][Wait]text", 17514, "", "[Wait]text"),
        ("[api.cc:7][46964][46973][Wait]text", 46973, "", "[Wait]text"),
        ("[api.cc:7][OpenProcess][tid:947062] text", 947062, "OpenProcess", "text"),
        ("[api.cc:7][tid:3545] channel 3", 3545, "", "channel 3"),
        ("[api.cc:7][NNOP][NnopbaseInit][2978321] errno[361001]", 2978321, "NnopbaseInit", "errno[361001]"),
        ("[api.cc:7][CANNKB][Tid:116147]text", 116147, "CANNKB", "text"),
        ("[api.cc:7]tid:4416,rs_ifnum : text", 4416, "rs_ifnum", "text"),
        ("[api.cc:7] >>> (tid:277) text", 277, "", "text"),
        ("[api.cc:7](tid:277) text", 277, "", "text"),
        ("[api.cc:7]tid:4416,rs_connect(733) : text", 4416, "rs_connect", "text"),
        ("[api.cc:7][hdc] [hdcPcieInit 396] text", None, "hdcPcieInit", "text"),
        ("[api.cc:7][ascend][curpid:13972,13973][drv][devmm][devmm_ioctl_error]text", 13973, "devmm_ioctl_error", "text"),
        ("[api.cc:7]TsdOpen: [TsdClient] text", None, "TsdOpen", "[TsdClient] text"),
        ("[api.cc:7]user=HwHiAiUser action", None, "", "user=HwHiAiUser action"),
        ("[status:init] [api.cc:7][hccl-1-0-2-hccl_world_group][76]text", None, "", "text"),
    ],
)
def test_thread_and_function_of_every_dialect(body: str, tid: int | None, function: str, message: str) -> None:
    seen = read(body)
    assert (seen.tid, seen.function, seen.message, seen.src_file, seen.src_line) == (tid, function, message, "api.cc", 7)
    assert (seen.ts, seen.clock, seen.pid, seen.process, seen.module) == (TS, "local", 413, "python3", "RUNTIME")


def test_a_record_without_file_and_line_is_read() -> None:
    seen = read("[ascend][curpid: 98, 99][drv][devmm][_svm_mem_stats_show 148]DEV_MEM dev0")
    assert (seen.tid, seen.function, seen.src_line, seen.message) == (99, "_svm_mem_stats_show", 148, "DEV_MEM dev0")
    assert read("ReportTimeoutProc: text").function == "ReportTimeoutProc"


def test_rank_of_the_world_group_and_of_a_joining_process_only() -> None:
    assert read("[hcom.cc:1][hccl-12337-0-1688478416-hccl_world_group][76]hcom init").rank == 76
    hccl = "[INFO] HCCL(1,python):2025-10-14-06:12:40.118.362 "
    assert read("[topo.cc:2] [1]SetupAgent rankNum[2], rank[1], server[x]", hccl).rank == 1
    assert read("[sock.cc:2] [1][Wait]wait socket establish timeout, role[0] rank[2] timeout[130]", hccl).rank is None


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Task run failed, device_id=2, stream_id=3, task_id=42014", (2, 3, 42014)),
        ("streamID:[7], taskID[9865], taskType[Notify Wait]", (None, 7, 9865)),
        ("Task {devId: 1 streamId: 149 sqId: 153} taskId :26063", (1, 149, 26063)),
        ("The error from device(chipId:5, dieId:0), serial number is 4", (5, None, None)),
        ("device_id=1, the error from device(chipId:3, dieId:0)", (1, None, None)),
        ("connected p2p timeout. local logicDevid:0, remote physic id:2.", (0, None, None)),
        ("src devicePhyId[0], dst devicePhyId[2], ret[16]", (None, None, None)),
        ("device_id=0 and device_id=1 differ", (None, None, None)),
        ("open device 0 failed", (0, None, None)),
        ("comm error, device[2] ", (2, None, None)),
        ("devId=" + "9" * 400, (None, None, None)),
        ("device_id=-1, device 12% used, device 1.5", (None, None, None)),
        ("subtask_idx=4 mydevice_id=3", (None, None, None)),
    ],
)
def test_device_stream_and_task_only_where_the_message_is_clear(text: str, expected: tuple[int | None, ...]) -> None:
    seen = read("[api.cc:7]1 F:" + text)
    assert (seen.device, seen.stream_id, seen.task_id) == expected


@pytest.mark.parametrize(
    "text, code",
    [
        ("ErrCode=507035, desc=[vector core exception], InnerCode=0x7150031", "507035"),
        ('"[PTA]:"NPU function error: x, error code is 507035"" ', "507035"),
        ("synchronize stream failed, runtime result = 507033.", "507033"),
        ("load model failed, ge result[145003]", "145003"),
        ("Kernel task happen error, retCode=0x31, [vector core exception].", "0x31"),
        ("report error module_type=0, module_name=EE9999", "EE9999"),
        ("ErrorNo: 1343225860(Internal errors) failed", "1343225860"),
        ("errNo[0x0000000005000004] setup topo", "0x0000000005000004"),
        ("TeFusion Op failed to compile, errcode[E90003]", "E90003"),
        ("Alloc failed. ErrorCode=EE1023", "EE1023"),
        ("errno[361001] Check failed", "361001"),
        ("connect fail, errno[111]", ""),
        ("Init failed, return[0x000000000500000b], rankNum[8]", "0x000000000500000b"),
        ("task fail start.notify taskid:3 streamid:2 retcode:507011", "507011"),
        ("report alarm success, event id 0x8c17a005", "0x8C17A005"),
        ("prompt: 'EZ9999 looks like a code'", ""),
        ("opcode=12, status code 3, decode: 7", ""),
        ("ErrCode=5070350000000000000000000000", ""),
        ("ErrCode=５０７０３５", ""),
    ],
)
def test_codes_only_where_a_code_belongs(text: str, code: str) -> None:
    assert read("[api.cc:7]1 F:" + text).code == code


@pytest.mark.parametrize(
    "level, severity",
    [("DEBUG", "DEBUG"), ("TRACE", "EVENT"), ("CRITICAL", "FATAL"), ("16", "EVENT"), ("3", "ERROR"), ("NULL", ""), ("OPLOG", "EVENT")],
)
def test_level_words_and_numbers(level: str, severity: str) -> None:
    assert read("[a.c:1]1 F:x", f"[{level}] GE(1,python3):2024-04-08-02:54:50.103.918 ").severity == severity


@pytest.mark.parametrize(
    "line",
    [
        "[ERROR]  acl set device 0 failed, errorCode = 507033",
        ", task_id=3393, sqe_type=7(notify wait)",
        "[HAPPY] RUNTIME(1,x):2025-10-14-06:12:40.118.362 [a.c:1]1 F:x",
        "[ERROR] GE_ADPT(573,ffff8de02d60,python):2023-05-23-03:52:26.139.729 [a.cc:331] RunGraph] x",
        "[ERROR] ME(573:281473062022496,MainProcess):2023-05-23-03:52:26.135.553 [model.py:1079] x",
        "[ERROR] RUNTIME(1,x) without a time",
        "[ERROR] RUNTIME(",
        "",
    ],
)
def test_other_lines_are_left_to_others(line: str) -> None:
    assert PlogParser().record(line) is None


@pytest.mark.parametrize(
    "stamp",
    [
        "0000-00-00-00:00:00.000.000",
        "2025-02-30-09:50:11.954.001",
        "-2025-09-04--9:50:11.-54.001",
        "99999999-99-99-99:99:99.999999.999999",
        "２０２５-09-04-09:50:11.954.001",
    ],
)
def test_a_record_with_an_impossible_time_is_a_record_without_one(stamp: str) -> None:
    seen = read("[api.cc:7]51438 Func:device_id=3", f"[ERROR] RUNTIME(838,python):{stamp} ")
    assert (seen.ts, seen.clock, seen.pid, seen.tid, seen.device) == (None, "none", 838, 51438, 3)


def test_a_time_without_a_fraction() -> None:
    seen = read("[graph.cpp:52]Start InnerQuantizeGraph.", "[INFO] AMCT(757013,atc.bin):2025-10-14-06:12:40")
    assert (seen.ts, seen.src_file, seen.message) == (TS // 1_000_000 * 1_000_000, "graph.cpp", "Start InnerQuantizeGraph.")


def test_pids_that_are_huge_or_negative() -> None:
    assert read("[a.c:1]1 F:x", "[ERROR] RUNTIME(" + "9" * 30 + ",python):2025-10-14-06:12:40.118.362 ").pid is None
    assert read("[a.c:1]1 F:x", "[ERROR] RUNTIME(-5,python):2025-10-14-06:12:40.118.362 ").pid == -5


def test_empty_and_truncated_process_names() -> None:
    assert read("[a.c:1]1 F:x", "[ERROR] RUNTIME(413,):2025-10-14-06:12:40.118.362 ").process == ""
    assert read("[a.c:1]1 F:x", "[ERROR] RUNTIME(413,VLLM::EngineCor):2025-10-14-06:12:40.118.362 ").process == "VLLM::EngineCor"


def test_glued_records_come_apart() -> None:
    one, two = HEAD + "[a.c:1]1 F:length=4096.", HEAD + "[a.c:2]1 F:y"
    assert plog.split_glued(one + two) == [(0, one), (len(one), two)]
    assert plog.split_glued("tail of a record " + two) == [(0, "tail of a record "), (17, two)]
    assert plog.split_glued(one) == [(0, one)]
    assert plog.split_glued("nothing of the kind") == [(0, "nothing of the kind")]


def test_device_logs_belong_to_the_host_process_in_their_name() -> None:
    path = "process_log/debug/device-11/device-1382_20250806223914702.log"
    assert (host_pid(path), device(path)) == (1382, 11)
    assert host_pid("slog/dev-os-0/debug/device-1/device-1_20241204162140159.log") is None
    seen = DeviceAppParser().record(
        "[ERROR] HCCL(3496,aicpu_scheduler):2025-08-06-22:39:11.764.338 [aicpu.cc:330] [3896]Task {devId: 1 streamId: 149}"
    )
    assert seen is not None
    assert (seen.grammar, seen.clock, seen.tid, seen.device, seen.stream_id) == ("device", "device", 3896, 1, 149)


NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=20)


@given(
    st.sampled_from(["DEBUG", "INFO", "WARNING", "ERROR", "EVENT"]),
    st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=1, max_size=12),
    st.integers(0, 4_194_304),
    st.text("abcdefghijklmnopqrstuvwxyzABC:_-.0123456789", max_size=30),
    st.integers(0, 2_000_000_000_000_000),
    NAMES,
    st.integers(0, 99999),
    st.integers(1, 4_194_304),
    NAMES,
    st.integers(0, 99999),
)
def test_a_printed_record_is_read_back(
    level: str, module: str, pid: int, process: str, ts: int, file: str, line: int, tid: int, function: str, task: int
) -> None:
    from datetime import datetime, timedelta

    when = datetime(1970, 1, 1) + timedelta(microseconds=ts)
    stamp = f"{when:%Y-%m-%d-%H:%M:%S}.{when.microsecond // 1000:03}.{when.microsecond % 1000:03}"
    text = f"[{level}] {module}({pid},{process}):{stamp} [{file}.cc:{line}]{tid} {function}:failed, stream_id=5, task_id={task}"
    seen = PlogParser().record(text)
    assert seen is not None
    assert (seen.severity, seen.module, seen.pid, seen.process, seen.ts) == (level, module, pid, process, ts)
    assert (seen.src_file, seen.src_line, seen.tid, seen.function) == (file + ".cc", line, tid, function)
    assert (seen.stream_id, seen.task_id, seen.message) == (5, task, f"failed, stream_id=5, task_id={task}")
