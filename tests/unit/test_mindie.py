"""MindIE's lines with all, some and none of their optional fields; MindSpore's records."""

from __future__ import annotations

import pytest

from parsers.mindie import MindieParser
from parsers.mindspore import MindsporeParser


@pytest.mark.parametrize(
    "line, clock, severity, code, module, message",
    [
        ("[2024-11-05 12:00:00.000000] [11] [1] [MS] [1] [ERROR] : [MIE03E400000] [HttpServer] timeout",
         "local", "ERROR", "MIE03E400000", "MS", "timeout"),
        ("[2025-06-30 20:36:02.906+08:00] [8771] [8775] [server] [ERROR] [e.cpp:230] : MIE1AE66666B[llm_backend] failed",
         "zoned", "ERROR", "MIE1AE66666B",
         "server", "failed"),
        ("[2025-11-18 09:33:11,638] [42] [281471064600800] [llmmodels] [INFO] [model_runner.py-108] : text",
         "local", "INFO", "", "llmmodels", "text"),
        ("[2024-12-30 07:23:21.034+00:00] : [MIE03E400005] [HttpServer] ", "zoned", "", "MIE03E400005", "HttpServer", ""),
        ("[2025-11-18 23:02:07.144+0800] [77] [92] [ms] [CRITICAL] [http.cpp:12] : dead", "zoned", "FATAL", "", "ms", "dead"),
    ],
)  # fmt: skip
def test_log_lines(line: str, clock: str, severity: str, code: str, module: str, message: str) -> None:
    record = MindieParser().record(line)
    assert record is not None
    assert (record.clock, record.severity, record.code, record.module, record.message) == (clock, severity, code, module, message)
    assert record.grammar == "mindie" and line[record.message_at :] == message


def test_zones_are_taken_off() -> None:
    mindie = MindieParser()
    same = [
        mindie.record(f"[2025-11-18 {hour}:00:07.144{zone}] [77] [92] [ms] [INFO] [http.cpp:12] : x")
        for hour, zone in (("23", "+0800"), ("23", "+08:00"), ("15", "+00:00"), ("10", "-05:00"))
    ]
    assert len({record.ts for record in same if record is not None}) == 1


def test_other_lines_in_a_mindie_file_are_read_as_a_console_would() -> None:
    mindie = MindieParser()
    record = mindie.record("[ERROR] RUNTIME(42,mindie_llm_backend_connector):2025-11-18-09:33:13.666.323 [runtime.cc:5632]58 F:text")
    assert record is not None and record.grammar == "plog"
    assert mindie.record('  File "/usr/local/x.py", line 33, in initialize') is None


def test_mindspore_records_are_no_plog_records() -> None:
    mindspore = MindsporeParser()
    record = mindspore.record("[CRITICAL] DEVICE(573,ffff8de02d60,python):2023-05-23-03:52:26.137.891 [a/b.cc:1180] LoadTask] load task failed")
    assert record is not None and (record.severity, record.function, record.message) == ("FATAL", "LoadTask", "load task failed")
    assert mindspore.record("[ERROR] RUNTIME(7,python):2023-05-23-03:52:26.137.891 [a.cc:1]7 F: x") is None
    assert mindspore.record("[ODD] ME(573,ffff8de02d60,python):2023-05-23-03:52:26.143.026 [x.cc:1] f] x") is None
