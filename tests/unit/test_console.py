"""Console lines of all the programs that write there, read one by one."""

from __future__ import annotations

import pytest

from parsers.console import ConsoleParser, read
from parsers.rows import Record


def one(line: str) -> Record:
    record = read(line)
    assert record is not None, line
    return record


@pytest.mark.parametrize(
    "line, code, device, rank, ts_digits",
    [
        ("[ERROR] 2025-10-15-16:32:16 (PID:3132, Device:0, RankID:-1) ERR00100 PTA call acl api failed", "ERR00100", 0, None, 0),
        ("[ERROR] 2023-11-02-09:10:11.07.003 (PID:88, Device:0, RankID:-1). ERR0001 PTA invalid parameter", "ERR0001", 0, None, 7003),
        ("    [ERROR] 2025-12-23-07:23:11 (PID:6444, Device:-1, RankID:12) ERR99999 UNKNOWN applicaiton exception", "ERR99999", None, 12, 0),
    ],
)
def test_torch_npu_heads_of_all_builds(line: str, code: str, device: int | None, rank: int | None, ts_digits: int) -> None:
    record = one(line)
    assert (record.grammar, record.severity, record.code, record.device, record.rank) == ("torch_npu", "ERROR", code, device, rank)
    assert record.ts is not None and record.ts % 1_000_000 == ts_digits
    assert line[record.message_at :] == record.message


@pytest.mark.parametrize(
    "line, month_day, severity, source",
    [
        ("[W917 04:55:17.268722899 compiler_depend.ts:510] Warning: NPU warning", (9, 17), "WARNING", "compiler_depend.ts"),
        ("[E1212 12:10:10.142701460 compiler_depend.ts:1675] [Rank 5] HCCL watchdog", (12, 12), "ERROR", "compiler_depend.ts"),
        ("[W305 07:15:41.644239000 NPUStream.cpp:62] text", (3, 5), "WARNING", "NPUStream.cpp"),
    ],
)
def test_c10_dates_have_no_padding(line: str, month_day: tuple[int, int], severity: str, source: str) -> None:
    from parsers import clock

    record = one(line)
    assert record.ts is not None and record.clock == "noyear"
    assert record.ts // clock.DAY == (clock.month_day(f"{month_day[0]:02}", f"{month_day[1]:02}", "00:00:00") or 0) // clock.DAY
    assert (record.severity, record.src_file) == (severity, source)


def test_old_c10_lines_have_no_time() -> None:
    record = one("[W compiler_depend.ts:133] Warning: Non finite check and unscale on NPU device! (function operator())")
    assert (record.ts, record.severity, record.src_line) == (None, "WARNING", 133)


@pytest.mark.parametrize(
    "line, severity, source, number",
    [
        ("INFO 03-05 07:15:02 __init__.py:30] Available plugins", "INFO", "__init__.py", 30),
        ("(APIServer pid=101) INFO 12-05 07:50:12 [api_server.py:1839] vLLM API server version 0.11.0", "INFO", "api_server.py", 1839),
        ("CRITICAL 12-05 07:50:12 [core.py:1] text", "FATAL", "core.py", 1),
    ],
)
def test_vllm_lines_with_and_without_brackets_and_process(line: str, severity: str, source: str, number: int) -> None:
    record = one(line)
    assert (record.grammar, record.severity, record.src_file, record.src_line) == ("vllm", severity, source, number)


def test_what_a_vllm_line_wraps_is_read_by_its_own_grammar() -> None:
    record = one(
        "(Worker_TP0 pid=1070) ERROR 04-30 23:38:48 [m.py:932] [PID: 1070] 2026-04-30-23:38:48.100.001 Device_Absent/Abnormal(EL0001): Gone."
    )
    assert (record.grammar, record.code, record.pid, record.clock, record.process) == ("error-block", "EL0001", 1070, "local", "Worker_TP0")
    record = one("(EngineCore_DP0 pid=626) ERROR 12-05 07:51:00 [core.py:708] E90000: [PID: 626] 2025-12-05-07:51:00.101.118 Compile operator failed")
    assert (record.code, record.message) == ("E90000", "Compile operator failed")


def test_user_text_that_looks_like_a_code_is_no_code() -> None:
    record = one("INFO 08-28 02:33:28 [logger.py:41] Received request chatcmpl-0: prompt: 'EZ9999 looks like a code")
    assert (record.grammar, record.code) == ("vllm", "")


@pytest.mark.parametrize(
    "line, rank, process, severity, message",
    [
        ("[2025-09-02 15:18:23 TP0] Prefill batch. #new-seq: 1", 0, "TP0", "", "Prefill batch. #new-seq: 1"),
        ("[2025-09-02 15:18:23 DP1 TP5 EP5] KV Cache is allocated", 5, "DP1_TP5_EP5", "", "KV Cache is allocated"),
        ("[2025-09-02 15:18:23 TP1 PP1] Load weight end.", None, "TP1_PP1", "", "Load weight end."),
        ("[2025-09-02 15:18:23] INFO:     Started server process [42]", None, "", "INFO", "Started server process [42]"),
        ("[2025-09-02 15:18:23] server_args=ServerArgs(model_path='/m')", None, "", "", "server_args=ServerArgs(model_path='/m')"),
    ],
)
def test_sglang_lines(line: str, rank: int | None, process: str, severity: str, message: str) -> None:
    record = one(line)
    assert (record.rank, record.process, record.severity, record.message) == (rank, process, severity, message)
    assert record.clock == "local" and line[record.message_at :] == message


@pytest.mark.parametrize(
    "line, severity, module, message",
    [
        ("2026-05-26 15:15:48,667 - INFO - start", "INFO", "", "start"),
        ("2026-05-26 15:15:48,667 - my.logger - ERROR - failed", "ERROR", "my.logger", "failed"),
        ("2026-01-03 13:01:44.081 | WARNING  | launcher:36 - text", "WARNING", "launcher", "text"),
        ("2026-01-03 13:01:44.081 | ERROR    | app.core:run:36 - text", "ERROR", "app.core", "text"),
        ("2025-11-24 22:20:01,123\tINFO worker.py:1786 -- Started a local Ray instance.", "INFO", "", "Started a local Ray instance."),
        ("2025-09-04 09:50:11 [ERROR] worker 3 failed", "ERROR", "", "worker 3 failed"),
        ("[2025-09-04 09:50:11,123] torch.distributed.run: [WARNING] master_addr", "WARNING", "torch.distributed.run", "master_addr"),
        ("[2025-09-04 09:50:11,123][my.logger][INFO] - text", "INFO", "my.logger", "text"),
        ("07:03:23 WARN Parameter not set", "WARNING", "", "Parameter not set"),
        ("[INFO] tbe compile pool size 8", "INFO", "", "tbe compile pool size 8"),
        ("[INFO|trainer.py:2134] 2025-04-29 18:46:11,004 >> ***** Running training *****", "INFO", "", ">> ***** Running training *****"),
        ("WARNING:root:Warning: Failed to register", "WARNING", "root", "Warning: Failed to register"),
        ("INFO:     203.0.113.9:41022 - \"POST /v1/x HTTP/1.1\" 500", "INFO", "", "203.0.113.9:41022 - \"POST /v1/x HTTP/1.1\" 500"),
        ("E1212 12:10:10.654000 281473 torch/distributed/elastic/m.py:101] failed (exitcode: -9)", "ERROR", "", "failed (exitcode: -9)"),
    ],
)  # fmt: skip
def test_python_logging_in_its_layouts(line: str, severity: str, module: str, message: str) -> None:
    record = one(line)
    assert (record.severity, record.module, record.message) == (severity, module, message)
    assert line[record.message_at :] == message


@pytest.mark.parametrize(
    "line, severity, module",
    [
        ("Traceback (most recent call last):", "ERROR", "Traceback"),
        ("RuntimeError: NPU out of memory.", "ERROR", "RuntimeError"),
        ("torch.OutOfMemoryError: map:x", "ERROR", "torch.OutOfMemoryError"),
        ("KeyboardInterrupt", "ERROR", "KeyboardInterrupt"),
        ("/opt/x.py:7: UserWarning: careful", "WARNING", "UserWarning"),
        ("terminate called after throwing an instance of 'std::runtime_error'", "FATAL", ""),
        ("Fatal Python error: Segmentation fault", "FATAL", ""),
        ("CANN error: EZ9999: Inner Error!", "ERROR", "CANN"),
        ("ggml_cann_mul_mat: unsupported type", "", "ggml_cann_mul_mat"),
    ],
)
def test_crashes_and_exceptions_carry_a_severity(line: str, severity: str, module: str) -> None:
    record = one(line)
    assert (record.severity, record.module) == (severity, module)


@pytest.mark.parametrize(
    "line",
    ['  File "train.py", line 377, in <module>', "    train_net()", "", "   ", "[Error]: Failed to start the device.",
     "TraceBack (most recent call last):",
     "rtMemQueue execute failed[FUNC:F][FILE:e.cc][LINE:49]", "        Possible Cause: x", "DEVICE[0] PID[3132]: ", "EXCEPTION TASK:",
     " (function f)",
     "----------------------------------------------------", "- Ascend Error Message:"],
)  # fmt: skip
def test_bodies_of_tracebacks_and_blocks_continue_the_record_above(line: str) -> None:
    assert read(line) is None


def test_plog_and_mindspore_lines_in_a_console_keep_their_grammar() -> None:
    assert one("[ERROR] RUNTIME(413,):2025-11-18-09:33:13.666.323 [runtime.cc:5632]58 GetVisibleDevices:text").grammar == "plog"
    assert one("[ERROR] ME(801:281473062022496,MainProcess):2024-06-01-10:00:00.100.200 [a/_api.py:312] text").grammar == "mindspore"


def test_a_plain_line_is_a_record_without_time() -> None:
    record = one("Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to 1")
    assert (record.grammar, record.ts, record.clock, record.severity) == ("text", None, "none", "")


def test_impossible_times_are_no_times() -> None:
    for line in (
        "2025-02-30 10:00:00,000 - INFO - x",
        "[2025-13-01 10:00:00 TP0] x",
        "INFO 13-45 99:99:99 [a.py:1] x",
        "[W9999 12:10:10.142701460 a.ts:1] x",
    ):
        record = one(line)
        assert (record.ts, record.clock) == (None, "none"), line


def test_a_console_claims_what_is_its_own_and_not_what_is_a_table() -> None:
    parser = ConsoleParser()
    log = '(EngineCore_DP0 pid=626) ERROR 12-05 07:51:00 [core.py:708] EngineCore failed to start.\nTraceback (most recent call last):\n  File "x"\n'
    assert parser.claims("renamed.bin", log) >= 80
    assert parser.claims("a.txt", "+-----+\n| npu-smi 24.1 |\n") == 0
