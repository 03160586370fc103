"""Kernel and system logs: every prefix, the driver's text in every spelling, and what becomes of odd times."""

from __future__ import annotations

import json

import pytest

from parsers.kernel_log import KernelParser, anchor
from parsers.rows import Record

BODY = "[ascend] [ERROR] [trs_drv] [trs_mbox_send 188] <python3:51377:51501:64> Mbox send fail. (devid=1; tsid=0; ret=-110)"


def read(line: str) -> Record:
    record = KernelParser().record(line)
    assert record is not None
    assert record.grammar == "kernel"
    return record


@pytest.mark.parametrize(
    "prefix, clock, node",
    [
        ("[ 1203.300000] ", "boot", ""),
        ("<3>[ 1203.300000] ", "boot", ""),
        ("[ 1203.300000][ T501] ", "boot", ""),
        ("[ 1203.300000][    C3] ", "boot", ""),
        ("[Tue Oct 14 14:12:00 2025] ", "local", ""),
        ("[2025-10-14-06:12:00.118331] ", "utc", ""),
        ("[2025-10-14-06:12:00.118331] [ 1203.300000] ", "utc", ""),
        ("kern  :notice: 2025-10-14T14:12:00,000000+08:00 ", "zoned", ""),
        ("2025-10-14T14:12:00,000000+08:00 ", "zoned", ""),
        ("2025-10-14T14:12:00.919651+08:00 npu-07 kernel: ", "zoned", "npu-07"),
        ("2025-10-14 14:12:00 npu-07 kernel: [ 1203.300000] ", "local", "npu-07"),
        ("2025-10-14T14:12:00.857705+08:00|notice|kernel[-]|[1203.300000] ", "zoned", ""),
        ("Oct 14 14:12:00 npu-07 kernel: ", "noyear", "npu-07"),
        ("10月 14 14:12:00 npu-07 kernel: ", "noyear", "npu-07"),
        ("Oct 14 14:12:00.000101 npu-07 kernel: [ 1203.300000] ", "noyear", "npu-07"),
        ("<5>Oct  4 14:12:00 RACK08 DC-01 kernel: ", "noyear", "RACK08 DC-01"),
    ],
)
def test_the_drivers_record_behind_every_prefix(prefix: str, clock: str, node: str) -> None:
    line = prefix + BODY
    seen = read(line)
    assert (seen.clock, seen.node, seen.severity, seen.module, seen.function, seen.src_line) == (
        clock,
        node,
        "ERROR",
        "trs_drv",
        "trs_mbox_send",
        188,
    )
    assert (seen.process, seen.pid, seen.tid, seen.device) == ("python3", 51377, 51501, 1)
    assert seen.message == line[seen.message_at :] == "Mbox send fail. (devid=1; tsid=0; ret=-110)"
    assert seen.ts is not None


@pytest.mark.parametrize(
    "body, severity, module, function, process, pid, tid",
    [
        ("[ascend] [devdrv] [ERROR] [get_devinfo 1050] <npu-smi:11519,11520> x", "ERROR", "devdrv", "get_devinfo", "npu-smi", 11519, 11520),
        ("[ascend] [devmm] [proc_set 662] <main:42394> x", "", "devmm", "proc_set", "main", 42394, None),
        ("[ascend] [drv_pcie] [NOTICE] [load 601] <systemd-udevd:4853:4853> x", "EVENT", "drv_pcie", "load", "systemd-udevd", 4853, 4853),
        ("[ascend][ERROR][mod][func 12]<comm:77>x", "ERROR", "mod", "func", "comm", 77, None),
        ("[ascend][DVPP_CMDLIST][mod] [func:12] [T901] x", "", "DVPP_CMDLIST", "func", "", None, 901),
        ("[ascend] [ERROR] [pcie] [dma 228] <kworker/32:0:29177:29178> x", "ERROR", "pcie", "dma", "kworker/32:0", 29177, 29178),
        ("[ascend] [ERROR] [soft] [beat 318] <kworker/5:1H:39365> x", "ERROR", "soft", "beat", "kworker/5:1H", 39365, None),
        (
            "[ascend] [ERROR] [soft] [beat 318] <kworker/u16:3-events_unbound:39365:1> x",
            "ERROR",
            "soft",
            "beat",
            "kworker/u16:3-events_unbound",
            39365,
            1,
        ),
        ("[ascend] [ERROR] [hdc] [send 1404] <VLLM::EngineCor:51300> x", "ERROR", "hdc", "send", "VLLM::EngineCor", 51300, None),
        ("[ascend] [drv_devmm] process exit, devid=0", "", "drv_devmm", "", "", None, None),
        ("devdrv_device_driver 0000:82:00.0: [vascend_drv] [init 971] x", "", "vascend_drv", "init", "", None, None),
        ("ascend: device 0 init failed, ret=-12", "", "ascend", "", "", None, None),
    ],
)
def test_spellings_of_the_drivers_text(body: str, severity: str, module: str, function: str, process: str, pid: int | None, tid: int | None) -> None:
    seen = read("[   19.553100] " + body)
    assert (seen.severity, seen.module, seen.function, seen.process, seen.pid, seen.tid) == (severity, module, function, process, pid, tid)


def test_the_worse_of_tag_and_level_counts() -> None:
    assert read("kern  :notice: 2025-10-14T14:12:00,000000+08:00 " + BODY).severity == "ERROR"
    assert read("<2>[    1.000000] " + BODY).severity == "FATAL"
    assert read("2020-12-31T00:39:25.857705+08:00|warning|kernel[-]|[1.886150] RAS: x").severity == "WARNING"


def test_journal_json_with_text_and_with_bytes() -> None:
    entry = {"__REALTIME_TIMESTAMP": "1760422360118331", "__MONOTONIC_TIMESTAMP": "893211000000", "_HOSTNAME": "n", "PRIORITY": "5"}
    seen = read(json.dumps(entry | {"SYSLOG_IDENTIFIER": "kernel", "MESSAGE": BODY}))
    assert (seen.ts, seen.clock, seen.node, seen.severity, seen.device) == (1760422360118331, "zoned", "n", "ERROR", 1)
    assert read(json.dumps(entry | {"MESSAGE": list("设备 x".encode())})).message == "设备 x"
    assert anchor(json.dumps(entry | {"MESSAGE": "x"})) == (1760422360118331, "zoned", 893211000000)
    for broken in ('{"MESSAGE": 5}', '{"MESSAGE":', '{"MESSAGE": {"a": ' * 3000):
        assert KernelParser().record(broken) is None


def test_lines_that_print_wall_and_uptime_anchor_the_boot() -> None:
    assert anchor("[2026-02-11-22:59:59.660182] [644491.621576] " + BODY) == (1770850799660182, "utc", 644491621576)
    assert anchor("[644491.621576] " + BODY) is None
    assert anchor("Oct 14 14:12:01 n kernel: " + BODY) is None
    assert anchor("nothing") is None


@pytest.mark.parametrize("line", ["[99999999999999999999.000000] a", "[Tue Feb 30 14:12:00 2025] a", "Feb 30 00:00:00 node0 kernel: y"])
def test_impossible_times_leave_a_record_without_one(line: str) -> None:
    seen = read(line)
    assert (seen.ts, seen.clock) == (None, "none")


@pytest.mark.parametrize("line", ["[-5.000000] b", "[nan] c", "Traceback (most recent call last):", "", "{}", "[ERROR] x", "Dec 31 x"])
def test_other_lines_are_left_to_others(line: str) -> None:
    assert KernelParser().record(line) is None


def test_boot_marks_are_records() -> None:
    assert read("-- Reboot --").message == "-- Reboot --"


def test_kernel_version_is_a_fact() -> None:
    found = KernelParser().extract("[    0.000000] Booting Linux\n[    0.000000] Linux version 5.10.0-60.aarch64 (gcc)\n")
    assert [(fact.name, fact.value, fact.line_no) for fact in found.facts] == [("os.kernel", "5.10.0-60.aarch64", 2)]
