"""Heads of CANN's error blocks in every release's dialect."""

from __future__ import annotations

import pytest

from parsers.error_block import ErrorBlockParser, continues, is_code


@pytest.mark.parametrize(
    "line, code, pid, has_time, title, message",
    [
        ("E30003: The number of processes exceeds the limit.", "E30003", None, False, "", "The number of processes exceeds the limit."),
        ("EL9999: Inner Error!", "EL9999", None, False, "", "Inner Error!"),
        ("EL9999  [drv api] failed.[FUNC:F][FILE:npu_driver.cc][LINE:3205]", "EL9999", None, False, "",
         "[drv api] failed.[FUNC:F][FILE:npu_driver.cc][LINE:3205]"),
        ("EI9999: 2024-10-21-10:42:00.358.410  The error from device", "EI9999", None, True, "", "The error from device"),
        ("EL0004: [PID: 14004] 2025-11-06-01:17:59.527.855 Failed to allocate memory.", "EL0004", 14004, True, "", "Failed to allocate memory."),
        ("EZ9999[PID: 8146] 2026-03-16-20:13:22.806.034 (EZ9999):  The error", "EZ9999", 8146, True, "", "The error"),
        ("EZ9999[PID: 7321] 2026-07-13-11:39:21.002.118 Inner_Error(EZ9999):  Kernel", "EZ9999", 7321, True, "Inner_Error", "Kernel"),
        ("[PID: 379] 2026-05-01-10:59:07.429.194 Device_Absent/Abnormal(EL0001): Gone.", "EL0001", 379, True, "Device_Absent/Abnormal", "Gone."),
        ("Resource_Error(EE1023): Alloc Stream resource failed.", "EE1023", None, False, "Resource_Error", "Alloc Stream resource failed."),
        ("[PID: 7321] 2026-07-13-11:39:21.100.001 Not_Supported(WE0001): no", "WE0001", 7321, True, "Not_Supported", "no"),
    ],
)  # fmt: skip
def test_heads_of_all_dialects(line: str, code: str, pid: int | None, has_time: bool, title: str, message: str) -> None:
    record = ErrorBlockParser().record(line)
    assert record is not None
    assert (record.code, record.pid, record.ts is not None, record.module, record.message) == (code, pid, has_time, title, message)
    assert record.severity == ("WARNING" if code[0] == "W" else "ERROR")
    assert line[record.message_at :] == message


@pytest.mark.parametrize(
    "line", ["EZ9999 is a code", "E12345678: x", "E1234: x", "XE9999: x", "(EE1023): x", "text (EE1023): x y", "[PID: x] EE1023"]
)
def test_a_code_in_the_middle_of_a_text_is_no_head(line: str) -> None:
    assert ErrorBlockParser().record(line) is None


def test_only_six_characters_make_a_code() -> None:
    assert is_code("EZ9999") and is_code("WE0001: x") and not is_code("EZ99999") and not is_code("EZ999") and not is_code("")


def test_frames_and_hints_at_column_0_continue_the_block() -> None:
    assert continues("TraceBack (most recent call last):") and continues("open device 7 failed.[FUNC:R][FILE:l.cpp][LINE:161]")
    assert not continues("Traceback (most recent call last):")
