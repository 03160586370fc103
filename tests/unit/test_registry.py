"""The registry: what becomes of members that are renamed, wrapped, damaged or nobody's; and texts pasted into other files."""

from __future__ import annotations

import doctest
import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import registry

PLOG = "[ERROR] RUNTIME(51377,python3):2025-10-14-06:12:40.118.362 [stars_engine.cc:1534]51438 ProcLogicCqReport:Task run failed, device_id=2\n"
VLLM = "(EngineCore_DP0 pid=626) ERROR 12-05 07:51:00 [core.py:708] EngineCore failed to start.\n"
TABLE = """+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc3                 Version: 24.1.rc3                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 4     910B3               | Warning       | NA          42                0    / 0             |
| 0                         | 0000:81:00.0  | 31          0    / 0          61204/ 65536         |
+===========================+===============+====================================================+
"""


def kind(path: str, text: str | bytes) -> str:
    return registry.classify(path, text.encode() if isinstance(text, str) else text).kind


def test_the_kinds_are_all_different_and_each_has_its_parser() -> None:
    kinds = [one.kind for one in registry.PARSERS]
    assert len(set(kinds)) == len(kinds)
    assert all(registry.parser(name).kind == name for name in kinds)
    assert registry.classify("x", b"\x7fELF\x02").parser is None


def test_content_wins_over_a_misleading_name() -> None:
    assert kind("npu-smi_info.txt", PLOG * 5) == "plog"
    assert kind("plog-1_20251014061240118.log", VLLM * 5) == "console"
    assert kind("dmesg", TABLE) == "npu-smi"
    assert kind("plog/plog-7_20251014061240118.log", "[ 1203.300000] [ascend] [ERROR] [trs_drv] [send 188] <p:1> x\n" * 5) == "kernel"


@pytest.mark.parametrize("wrap", ["2025-10-14T06:12:40.118331000Z stdout F ", "[2026-09-09 23:58:37.427][sv-infer-0-1] ", "/var/log/a.log:17:"])
def test_transport_prefixes_do_not_hide_what_is_behind_them(wrap: str) -> None:
    assert kind("x.txt", "".join(wrap + line for line in (PLOG, PLOG, PLOG))) == "plog"
    assert kind("x.txt", "".join(wrap + line for line in (VLLM, VLLM, VLLM))) == "console"


def test_docker_json_is_read_through() -> None:
    assert (
        kind("abc-json.log", ('{"log":' + repr(VLLM[:-1]).replace("'", '"') + ',"stream":"stderr","time":"2025-12-05T07:51:00.1Z"}\n') * 3)
        == "console"
    )


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be", "utf-16", "gb18030", "utf-8-sig"])
def test_logs_in_any_encoding_are_recognised(coding: str) -> None:
    assert kind("x.txt", (PLOG * 3 + PLOG.replace("Task", "设备")).encode(coding)) == "plog"


def test_line_ends_of_all_kinds() -> None:
    assert kind("x.txt", PLOG.replace("\n", "\r\n") * 5) == "plog"
    assert kind("x.txt", PLOG.replace("\n", "\r") * 5) == "plog"
    assert kind("x.txt", b"\0" * 5000 + (PLOG * 5).encode()) == "plog"


def test_what_nobody_claims_is_text() -> None:
    assert kind("notes.md", "Dear colleague,\nthe machine hangs.\n") == "text"
    assert kind("empty.log", b"") == "text"
    assert kind("gap.log", b"\0" * 9000) == "text"


def test_profiles_are_recognised() -> None:
    assert kind("a.csv", "Device_id,Op Name,OP Type,Task ID,Task Duration(us)\n0,MatMul,MatMul,1,2.0\n") == "profile"
    assert kind("trace_view.json", '[{"ph":"X","name":"MatMul","pid":1,"tid":2,"ts":"1725000000.5","dur":3.5}]') == "profile"


def test_tables_pasted_into_any_file_give_their_numbers() -> None:
    found = registry.extract("some text\n" + PLOG + TABLE, "console")
    assert any(metric.name == "npu.hbm.used" and metric.value == 61204.0 for metric in found.metrics)
    names = [(fact.name, fact.value, fact.line_no, fact.device) for fact in found.facts]
    assert len(names) == len(set(names))


@given(st.binary(max_size=600), st.text(max_size=40))
def test_any_bytes_under_any_name_are_classified(data: bytes, path: str) -> None:
    found = registry.classify(path, data)
    assert found.kind == "binary" or registry.parser(found.kind) is found.parser


@pytest.mark.parametrize(
    "module",
    [
        "bbox",
        "bmc",
        "clock",
        "cluster",
        "console",
        "device_app",
        "device_log",
        "encoding",
        "environment",
        "error_block",
        "firmware",
        "hccl",
        "hccn_tool",
        "kernel_log",
        "mindie",
        "mindspore",
        "npu_smi",
        "plog",
        "prefix",
        "profile",
        "registry",
        "settle",
        "text",
    ],
)
def test_the_sample_in_each_docstring_is_true(module: str) -> None:
    loaded = importlib.import_module(f"parsers.{module}")
    outcome = doctest.testmod(loaded)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_members_that_differ_in_numbers_only_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    registry._known.clear()
    asked: list[str] = []
    judge = registry._classified
    monkeypatch.setattr(registry, "_classified", lambda path, head: asked.append(path) or judge(path, head))
    kinds = {kind(f"plog/plog-{k}_20251014061240118.log", PLOG.replace("51377", str(50000 + k))) for k in range(300)}
    assert kinds == {"plog"} and len(asked) <= 3
    assert kind("plog/plog-7_20251014061240118.log", VLLM) == "console"
    for k in range(registry.SHAPES + 10):
        kind("x", "".join(chr(97 + int(digit)) for digit in str(k)))
    assert len(registry._known) <= registry.SHAPES


def test_a_report_of_our_own_is_no_log() -> None:
    assert kind("old.case/report.json", '{\n  "schema": "dsforensics.report/1",\n  "x": ' + PLOG) == "binary"
