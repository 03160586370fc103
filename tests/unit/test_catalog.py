"""The catalogue of codes: readings, spellings, patterns, and what it finds in log lines."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import hyperscan
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from rules import catalog
from rules.codes import FAMILIES, index
from rules.model import LAYERS


def codes(text: str, context: str = "") -> list[str]:
    return [meaning.code for meaning in catalog.lookup(text, context)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("507001", "507001"),
        ("0x7bc79", "507001"),
        ("0x7BC79", "507001"),
        ("ACL_ERROR_RT_TS_ERROR", "507001"),
        ("acl_error_rt_ts_error", "507001"),
        ("ErrCode=507001", "507001"),
        ("error code is 507015", "507015"),
        ("error code = 507015", "507015"),
        ("EZ9999", "EZ9999"),
        ("ez9999", "EZ9999"),
        ("ERR00100", "ERR00100"),
        ("0x80E01801", "0x80E01801"),
        ("80e01801", "0x80E01801"),
        ("event_id=0x80E01801", "0x80E01801"),
        ("2162169857", "0x80E01801"),
        ("-2132797439", "0x80E01801"),
        ("system exception code [0xA8028802]", "0xA8028802"),
        ("retCode=0x26", "retCode=0x26"),
        ("ret[4]", "hcclRet=4"),
        ("hcclRet -> 4", "hcclRet=4"),
        ("errNo[0x0000000005000004]", "hcclRet=4"),
        ("errNo[0x0000000005010010]", "hcclRet=16"),
        ("drvRetCode=17", "drvRetCode=17"),
        ("-12", "errno=12"),
        ("ENOMEM", "errno=12"),
        ("driver -12", "errno=12"),
        ("-8008", "-8008"),
        ("4294959288", "-8008"),
        ("0x7150026", "0x7150026"),
        ("aicpu_errcode=21008", "aicpu_errcode=21008"),
        ("errcode:(0x2000000000000, 0, 0)", "errcode:(0x2000000000000, 0, 0)"),
        ("error code = 0x800000", "error code = 0x800000"),
        ("error code = 95", "error code = 95"),
        ("MIE04E020000", "MIE04E020000"),
        ("0x0D000003", "0x0D000003"),
        ("020000002", "020000002"),
    ],
)
def test_a_code_is_found_in_any_spelling(text: str, code: str) -> None:
    assert codes(text)[0] == code


def test_a_bare_number_gives_all_its_readings_and_a_context_only_its_own() -> None:
    families = {meaning.family for meaning in catalog.lookup("4")}
    assert {"ts", "hccl", "driver", "errno"} <= families
    assert [meaning.family for meaning in catalog.lookup("4", context="hccl")] == ["hccl"]
    assert [meaning.family for meaning in catalog.lookup("17", context="driver")] == ["driver", "errno"]
    assert codes("0x26", context="ts") == ["retCode=0x26"]


def test_an_unknown_code_has_no_reading_and_near_ones_are_offered() -> None:
    assert catalog.lookup("999999") == []
    assert catalog.lookup("no code here") == []
    assert catalog.lookup("") == []
    assert catalog.nearest("ACL_ERROR_RT_AICORE_EXEPTION")[0] == "ACL_ERROR_RT_AICORE_EXCEPTION"
    assert "507015" in catalog.nearest("5070155")
    assert catalog.nearest("EZ999")[0] == "EZ9999"


def test_both_readings_of_507001_are_told() -> None:
    (meaning,) = catalog.lookup("507001")
    assert "task scheduler" in meaning.meaning.en
    assert "入参" in meaning.meaning.zh
    assert meaning.note is not None and "not initialised" in meaning.note.en and "未初始化" in meaning.note.zh
    assert meaning.generic and meaning.source.endswith("rt_error_codes.h")


def test_names_that_no_header_has_lead_to_the_codes_that_are_meant() -> None:
    (meaning,) = catalog.lookup("ACL_ERROR_RT_INVALID_VALUE")
    assert meaning.code == "107000" and meaning.note is not None and "No header" in meaning.note.en
    assert codes("5001") == ["500001", "507001", "EE5001"]


def test_the_chain_from_the_task_scheduler_to_acl_is_shown_from_both_ends() -> None:
    low = catalog.lookup("retCode=0x26")[0]
    assert [(step.code, step.direction) for step in low.related] == [("0x7150026", "up"), ("507015", "up")]
    middle = catalog.lookup("0x7150026")[0]
    assert {(step.code, step.direction) for step in middle.related} == {("507015", "up"), ("retCode=0x26", "down")}
    assert ("retCode=0x26", "down") in [(step.code, step.direction) for step in catalog.lookup("507015")[0].related]


def test_a_message_code_without_entry_still_names_its_component() -> None:
    (meaning,) = catalog.lookup("EI0099")
    assert meaning.family == "cann-prefix" and meaning.generic and "HCCL" in meaning.meaning.en
    assert catalog.lookup("EQ0001") == []


def test_a_mindie_code_without_entry_is_read_from_its_fields() -> None:
    (meaning,) = catalog.lookup("MIE03E10FF08")
    assert meaning.meaning.en == "MindIE MS controller: timed out"
    assert [part.name for part in meaning.parts] == ["component", "level", "part", "kind"]


def test_a_core_record_is_taken_apart_with_first_suspects() -> None:
    (meaning,) = catalog.lookup("errcode:(0x800000, 0x4000, 0)")
    assert [part.kind for part in meaning.parts] == ["oob_gm", "oob_scalar_addr"]
    assert meaning.parts[0].suspects is not None and "shape" in meaning.parts[0].suspects.zh
    (nothing,) = catalog.lookup("errcode:(0, 0, 0)")
    assert nothing.generic and "trap" in nothing.meaning.en


def test_an_event_is_taken_apart() -> None:
    (meaning,) = catalog.lookup("0x80E01801")
    assert {part.name: part.value for part in meaning.parts} == {
        "side": "2", "node": "0x70", "sensor": "0xc", "state": "0x1", "severity": "3", "cluster handling": "RestartBusiness",
        "fault class": "Hardware",
    }  # fmt: skip
    assert meaning.layer == "hardware" and not meaning.generic


def test_every_row_is_complete_in_both_languages() -> None:
    for code, row in index().rows.items():
        assert row.en.strip() and row.zh.strip() and row.source and row.family in FAMILIES and row.layer in LAYERS, code
        assert not row.symbol.endswith(" "), code
    for codes_meant, _ in index().aliases.values():
        assert all(code in index().rows for code in codes_meant)
    assert set(index().notes) - set(index().rows) <= {"0x81AFAA03", "0x81AFAA04"}


def test_every_canonical_code_finds_itself_again() -> None:
    for code, row in index().rows.items():
        found = {(meaning.family, meaning.code) for meaning in catalog.lookup(code)}
        assert (row.family, code) in found, code
        assert catalog.spellings(code), code


# ------------------------------------------------------------ patterns


def hits(code: str, line: str) -> bool:
    found = regex.search(catalog.code_pattern(code), line) is not None
    assert (re.search(catalog.code_pattern(code), line) is not None) == found
    return found


@pytest.mark.parametrize(
    "line",
    [
        "507001",
        "rtStreamSynchronize failed, ErrCode=507001, desc=[ts error]",
        "error code is 507001",
        "error code is 507001.",
        "error code:507001,",
        "ret=507001",
        "ret = 507001",
        "retCode: 507001",
        "failed [507001]",
        "failed(507001)",
        "错误码507001",
        "错误码：507001，请检查",
        "ret:0x7BC79",
        "errorCode = 0x7bc79",
        "ACL_ERROR_RT_TS_ERROR",
        "aclrtSynchronizeDevice execute failed 507001",
        "  507001 ",
    ],
)
def test_the_pattern_of_a_number_matches_every_spelling(line: str) -> None:
    assert hits("507001", line)
    assert hits("0x7bc79", line)
    assert hits("ACL_ERROR_RT_TS_ERROR", line)


@pytest.mark.parametrize(
    "line",
    [
        "15070011",
        "0507001",
        "2025-09-04 09:50:11.507001 INFO start",
        "pid=507001",
        "[PID: 507001] 2025-09-04",
        "tid:507001",
        "[ERROR] RUNTIME(507001,python):2025-09-04-09:50:11.954.123",
        "[task.cc:12]507001 ReportErrorInfo",
        "plog-507001_20250904.log",
        "0x1507001",
        "address 0x507001",
        "1,507001",
        "507001.25 ms",
        "ACL_ERROR_RT_TS_ERRORS",
        "0x7bc790",
        "0x17bc79",
    ],
)
def test_the_pattern_of_a_number_leaves_other_numbers_alone(line: str) -> None:
    assert not hits("507001", line)


def test_patterns_of_small_numbers_want_their_field() -> None:
    assert hits("retCode=0x26", "Kernel task happen error, retCode=0x26, [aicore exception]")
    assert not hits("retCode=0x26", "Kernel task happen error, retCode=0x261")
    assert not hits("retCode=0x26", "address 0x26")
    assert hits("hcclRet=4", "[GetRes]call trace: hcclRet -> 4")
    assert hits("hcclRet=4", "[ERROR] HCCL(148,python):2024 [a.cc:1]return ret[4]") and hits("hcclRet=4", "errNo[0x0000000005030004]")
    assert not hits("hcclRet=4", "bind failed, ret[4]")
    assert not hits("hcclRet=4", "hcclRet -> 44") and not hits("hcclRet=4", "rank[4]")
    assert hits("drvRetCode=17", "[drv api] ioctl failed, drvRetCode=17!") and not hits("drvRetCode=17", "ret=17")
    assert hits("errno=12", "devmm alloc failed, ret=-12") and hits("errno=12", "errno: 12") and not hits("errno=12", "ret=12")


def test_patterns_of_events_and_core_words_match_their_forms() -> None:
    for line in ("event_id=0x80E01801", "codes [80e01801]", "fault 2162169857", "id -2132797439"):
        assert hits("0x80E01801", line)
    assert not hits("0x80E01801", "0x80E018011")
    assert hits("error code = 0x800000", "an aicore error, error code = 0x800000, pc start")
    assert hits("error code = 0x800000", "errcode:(0x800000, 0, 0)")
    assert not hits("error code = 0x800000", "errcode:(0x800000, 0x4000, 0)")
    assert hits("errcode:(0x800000, 0x4000, 0)", "The extend info: errcode:(0x800000, 0x4000, 0) errorStr")
    assert hits("error code = 95", "error code = 95,") and not hits("error code = 95", "error code = 951")


def test_an_unknown_code_is_matched_as_a_whole_word() -> None:
    assert hits("XYZ123", "code XYZ123!") and not hits("XYZ123", "XYZ1234")
    assert hits("a+b", "x a+b y")


def test_every_pattern_is_taken_by_the_linear_time_engine() -> None:
    every = [*list(index().rows)[::7], "507001", "0x80E01801", "0xB4060007", "error code = 0x10", "errcode:(0, 0x800, 0)", "EZ1234", "?.*("]
    patterns = [catalog.code_pattern(code).encode() for code in every]
    assert not any(mark in pattern for pattern in patterns for mark in (b"(?=", b"(?!", b"(?<", b"\\1", b"(?P"))
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=patterns, ids=list(range(len(patterns))), elements=len(patterns), flags=[hyperscan.HS_FLAG_MULTILINE] * len(patterns)
    )


def test_every_spelling_that_stands_in_a_field_is_matched_by_the_pattern() -> None:
    for code in list(index().rows)[::5]:
        for spelling in catalog.spellings(code):
            row = index().rows[code]
            if row.family in ("errno", "cqe", "sdma", "ts", "driver", "aicpu") and "=" not in spelling and ":" not in spelling:
                continue  # a bare small number or a name such as EIO
            assert hits(code, f"HCCL(1,x) it failed, code {spelling} here"), (code, spelling)


# ------------------------------------------------------------ log lines


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Stream synchronize failed, stream_id=3, ErrCode=507015, desc=[aicore exception], InnerCode=0x7150026", ["507015", "0x7150026"]),
        ("[drv][devmm] halMemAlloc failed drv_ret_code=6", ["drvRetCode=6"]),
        ("RuntimeError: ACL stream synchronize failed, error code:507035", ["507035"]),
        ("The extend info: errcode:(0x800000, 0x4000, 0) errorStr: The DDR address", ["errcode:(0x800000, 0x4000, 0)"]),
        ("there is an aicore error, error code = 0x10, pc start: 0x1", ["error code = 0x10"]),
        ("call trace: hcclRet -> 4", ["hcclRet=4"]),
        ("HCCL errNo[0x0000000005000004] return ret[4]", ["hcclRet=4"]),
        ("EZ9999: Inner Error!", ["EZ9999"]),
        ("error code is 507001.", ["507001"]),
        ("EZ9999[PID: 123] 2025-09-04 (EZ9999): text", ["EZ9999"]),
        ("[ERROR] 2025-09-04-10:00:00 (PID:1, Device:0, RankID:-1) ERR00100 PTA call acl api failed", ["ERR00100"]),
        ("Fault RAS occurs in the system: [event_id:0x80E18400]", ["0x80E18400"]),
        ("system exception code [0xB4060007]: ModuleName [TS]", ["0xB4060007"]),
        ("devdrv probe failed ret=-12", ["errno=12"]),
        ("retCode: -8008", ["-8008"]),
        ("aicpu_errcode=21008, error code is 0x7BC83", ["aicpu_errcode=21008", "507011"]),
        ("Kernel task happen error, retCode=0x26, [aicore exception].", ["retCode=0x26"]),
        ("[MIE04E020204] [endpoint] The request input does not pass the verification", ["MIE04E020204"]),
        ("raised ACL_ERROR_RT_AICORE_EXCEPTION", ["507015"]),
    ],
)
def test_codes_are_found_where_lines_carry_them(line: str, expected: list[str]) -> None:
    assert catalog.codes_in(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "2025-09-04 09:50:11.507001 INFO pid=507001 nothing",
        "[ERROR] RUNTIME(507001,python):2025-09-04-09:50:11.954.123 [a.cc:1]507001 fine",
        "loss 507.015 step 4",
        "ret=0",
        "return code 0",
        "model-E10001-v2 E1000",
        "sha 80e01801aa",
        "engine process exit, code=-9",
        "[ERROR] CCECPU(3544,aicpu_scheduler):2025-01-01 [a.cpp:3][BindHostPid] Bind pid sign failed, ret[3]",
    ],
)
def test_numbers_that_are_no_codes_are_left_alone(line: str) -> None:
    assert catalog.codes_in(line) == []


def test_the_codes_of_a_line_can_be_looked_up() -> None:
    line = "Stream synchronize failed, ErrCode=507015, desc=[aicore exception], InnerCode=0x7150026"
    assert codes(line) == ["507015", "0x7150026"]


@given(st.text(max_size=300) | st.text(alphabet="0123456789abcdefxEZI=:[](), -ret", max_size=120))
def test_no_text_breaks_the_catalogue(text: str) -> None:
    for code in catalog.codes_in(text):
        assert catalog.lookup(code)
    catalog.lookup(text)
    assert catalog.spellings(text)
    re.compile(catalog.code_pattern(text))


@given(st.integers(0, 1 << 40))
def test_a_number_reads_the_same_in_every_base(value: int) -> None:
    decimal = {meaning.code for meaning in catalog.lookup(str(value)) if meaning.family not in ("event", "bbox", "bmc")}
    upper = {meaning.code for meaning in catalog.lookup(f"0x{value:X}") if meaning.family not in ("event", "bbox", "bmc")}
    assert decimal <= upper | set(codes(f"{value:08X}")) | {"500001", "507001", "EE5001"}


def test_importing_the_catalogue_costs_next_to_nothing() -> None:
    program = (
        "import sys, msgspec, rules.model, time; a = time.perf_counter(); import rules.catalog as c; b = time.perf_counter();"
        "assert 'rules.codes' not in sys.modules; c.lookup('507001'); d = time.perf_counter(); print((b - a) * 1e3, (d - b) * 1e3)"
    )
    best_import, best_lookup = 1e9, 1e9
    for _ in range(3):
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
        best_import, best_lookup = min(best_import, float(out[0])), min(best_lookup, float(out[1]))
    assert best_import < 15 and best_lookup < 180, "three times the aim, for a busy machine"


def test_finding_codes_is_quick() -> None:
    lines = [f"[ERROR] RUNTIME({n},python):2025-09-04-09:50:11.954.{n:03d} [a.cc:1]{n} Stream failed, stream_id={n}, plain text" for n in range(400)]
    catalog.codes_in("warm up ErrCode=507015")
    begin = time.perf_counter()
    for line in lines:
        catalog.codes_in(line)
    assert (time.perf_counter() - begin) / len(lines) < 100e-6
