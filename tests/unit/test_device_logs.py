"""What a device exports: system log, firmware log, black box."""

from __future__ import annotations

import pytest

from parsers.bbox import BboxParser
from parsers.device_log import DeviceOsParser
from parsers.firmware import FirmwareParser
from parsers.rows import Record

HEAD = "[EVENT] KERNEL(3555,sklogd):2024-04-20-06:16:07.974.300 "


def device_os(line: str) -> Record:
    record = DeviceOsParser().record(line)
    assert record is not None
    assert line[record.message_at :] == record.message
    return record


def firmware(line: str) -> Record:
    record = FirmwareParser().record(line)
    assert record is not None
    assert line[record.message_at :] == record.message
    return record


def test_kernel_text_in_a_device_record_keeps_the_worse_level_and_the_outer_time() -> None:
    seen = device_os(HEAD + "[klogd.c:253][90000.000000] [ascend] [ERROR] [devmm] [fault 67] <aicpu_scheduler:4902,4903> x (dev_id=2)")
    assert (seen.severity, seen.module, seen.function, seen.src_line, seen.process, seen.pid, seen.tid, seen.device) == (
        "ERROR",
        "devmm",
        "fault",
        67,
        "aicpu_scheduler",
        4902,
        4903,
        2,
    )
    assert (seen.ts, seen.clock, seen.grammar) == (1713593767974300, "device", "device-os")
    plain = device_os(HEAD + "[klogd.c:242][583733.716899] {1}[Hardware Error]: event severity: recoverable")
    assert (plain.module, plain.src_file, plain.src_line, plain.message) == (
        "KERNEL",
        "klogd.c",
        242,
        "{1}[Hardware Error]: event severity: recoverable",
    )


@pytest.mark.parametrize(
    "text",
    [
        "[fault_manager] event_id: [0x80e01801], assertion[1], node type[0x70]",
        "[fault_manager] event_id:  [0x80E01801], assertion[0]",
        "Event Process Success. (Event id=0x80e01801; Node Type=0x70)",
        "x event_id=0x80E01801, event_state=9",
        "report alarm success, event id 0x80e01801",
    ],
)
def test_a_chip_event_in_all_its_spellings(text: str) -> None:
    assert device_os("[EVENT] DRV(3555,sklogd):2024-04-20-06:16:07.974.141 " + text).code == "0x80E01801"


def test_slogds_log_about_itself() -> None:
    seen = device_os("(1234)plog_file_mgr.c:17: log control down to level=WARNING, pid=3")
    assert (seen.module, seen.pid, seen.src_file, seen.src_line) == ("SLOG", 1234, "plog_file_mgr.c", 17)


def test_firmware_records_of_the_scheduler_and_of_the_network() -> None:
    seen = firmware(
        "[ERROR] TSCH(-1,null):2023-06-10-13:16:11.404.067 13 (dieid:0,cpuid:0) engine.c:795 set_fail: model_id=0, stream_id=16, fault task_id=43"
    )
    assert (seen.src_file, seen.src_line, seen.function, seen.stream_id, seen.task_id, seen.pid) == ("engine.c", 795, "set_fail", 16, 43, -1)
    seen = firmware("[ERROR] IMP(-2,IMP): 2024-12-04-08:30:48.719.106 91 (device_id:9 die_id:1) [IIC] trans status[0x40]")
    assert (seen.device, seen.module, seen.message, seen.clock) == (9, "IMP", "[IIC] trans status[0x40]", "device")


def test_the_timed_line_of_an_exception_dump_is_a_record_and_the_registers_are_not() -> None:
    line = "<exception_print>TIME:2023-06-10-13:16:11.402.955, device_id=0, stream_id=16, task_id=43, exception_code=0xb4060007, magic=0x1"
    seen = firmware(line)
    assert (seen.device, seen.stream_id, seen.task_id, seen.code, seen.ts) == (0, 16, 43, "0xb4060007", 1686402971402955)
    assert FirmwareParser().record("<exception_print>HWS_REG_AICORE_STATUS=0x7fffdfff") is None


@pytest.mark.parametrize(
    "head, ts, code, device",
    [
        ("[2023-07-13-16:20:44.081811] system exception code [0xB4060007]: ", 1689265244081811, "0xB4060007", None),
        ("system recovery code[0xA8060000]: Device[3], ", None, "0xA8060000", 3),
        ("[2023-02-30-16:20:44.081811] system exception code [0xb4060007]: ", None, "0xB4060007", None),
    ],
)
def test_history_of_both_writers(head: str, ts: int | None, code: str, device: int | None) -> None:
    line = head + "ModuleName [TS], ExceptionReason [TS_EXCEPTION], TimeStamp [20230713162044-070000011]."
    seen = BboxParser().record(line)
    assert seen is not None
    assert (seen.ts, seen.code, seen.device) == (ts, code, device)
    assert line[seen.message_at :] == seen.message


def test_crash_reports_name_signal_process_and_thread() -> None:
    read = BboxParser().record
    crash = [read(line) for line in ("[process]", "crash reason:11", "crash pid:51377", "crash tid:51501", "Thread 1 (51501, VLLM::Worker_TP)")]
    assert all(record is not None for record in crash)
    assert [record.code or record.pid or record.tid for record in crash if record][1:] == ["signal 11", 51377, 51501, 51501]
    assert read("#0 0x0000ffff8c173f55 ffff8c010000-ffff8c1f0000 r-xp 00000000 b3:02 1188 /usr/lib64/libslog.so") is None


def test_chip_map_and_memory_errors_of_the_black_box() -> None:
    text = (
        "phy_id: 3, logic_id: 1, chip_id: 1, die_id: 1, version: V950\nsingle bit record num: 3\n"
        "  0: timestamp[1741054271] pa[0x0000301efe36d3c0] stack_pc_id[3] reg_addr_h[0x77e3] reg_addr_l[0x0a] ecc_count[2]\n"
        "isolated pages: single 3 double 1\n"
    )
    found = BboxParser().extract(text)
    assert [(fact.name, fact.value, fact.device) for fact in found.facts] == [
        ("device.map", "logic 1 = phy 3 = chip 1 die 1", 1),
        ("chip.version", "V950", 1),
    ]
    assert [(one.name, one.value, one.label, one.line_no) for one in found.metrics] == [
        ("npu.hbm.ecc.single_bit", 2.0, "0x0000301efe36d3c0", 3),
        ("npu.hbm.isolated_pages", 3.0, "single_bit", 4),
        ("npu.hbm.isolated_pages", 1.0, "double_bit", 4),
    ]
