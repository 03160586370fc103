"""Readers of profiler files: what is printed is what comes out, whatever the release calls it, and no file is too broken to say so."""

from __future__ import annotations

import io
import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers import metrics_text, profile_columns, profile_csv, profile_json
from parsers.profile import shape
from parsers.profile_db import Database
from parsers.profile_lanes import Lanes
from parsers.profile_trace import Event, Reader, nanoseconds
from parsers.registry import classify


def rows(text: bytes) -> tuple[profile_csv.Table, list[dict[str, object]]]:
    table = profile_csv.open_table(io.BytesIO(text).read, text[:16384])
    assert table is not None
    return table, [row for batch in table.batches() for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("header", "layout"),
    [
        ("Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)", "kernels"),
        ("Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Block Num", "kernels"),
        ("Device_id,Step,Computing,Communication(Not Overlapped),Free", "steps"),
        ("OP Type,Core Type,Count,Total Time(us),Ratio(%)", "op_stats"),
        ("Level,API Name,Time(us),Count", "api"),
        ("Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB)", "memory"),
        ("Name,Size(KB),Allocation Time(us),Release Time(us)", "allocations"),
        ("Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us)", "operators"),
        ("Stream Id,Task Id,Hit Rate,Victim Rate", "l2_cache"),
        ("Timestamp(us),Node,Compute_time(ms),Dispatch_time(ms)", "aicpu"),
    ],
)
def test_a_table_is_known_by_its_header(header: str, layout: str) -> None:
    found = profile_csv.header(header + "\n")
    assert found is not None and found[0].layout.name == layout


@pytest.mark.parametrize("header", ["time,level,message", "a,b,c", "npu,power,temp", ""])
def test_other_tables_are_nobodys(header: str) -> None:
    assert profile_csv.header(header + "\n1,2,3\n") is None


def test_units_come_from_the_header() -> None:
    found = profile_columns.match(["Op Name", "OP Type", "Task Type", "Task Start Time(us)", "Task Duration(ms)", "aic_mac_ratio(%)"])
    assert found is not None
    assert (found.column("dur_ns").factor, found.column("start_ns").factor, found.column("mac_ratio").factor) == (1e6, 1e3, 0.01)


def test_rows_keep_their_numbers_when_one_between_is_broken() -> None:
    text = b"Name,Type,Accelerator Core,Start Time(us),Duration(us)\r\na,A,AI_CORE,1,2\r\nbroken,row\r\nb,B,AI_CORE,1,2\r\n"
    table, found = rows(text)
    assert [(row["name"], row["row_no"], row["line_no"]) for row in found] == [("a", 1, 2), ("b", 3, 4)]
    assert (table.bad_rows, table.rows, table.problem) == (1, 3, "")


def test_lines_inside_cells_are_counted() -> None:
    text = b'Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us)\na,"1;\n2",,1,2\nb,,"f\ng\nh",1,2\nc,,,1,2\n'
    _, found = rows(text)
    assert [(row["row_no"], row["line_no"]) for row in found] == [(1, 2), (2, 4), (3, 7)]


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    _, found = rows(b"Name,Type,Accelerator Core,Start Time(us),Duration(us)\n\xff\xfe,A,AI_CORE,1,2\n")
    assert found[0]["name"] == "��"


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_no_bytes_make_the_table_reader_fail(noise: bytes) -> None:
    text = b"Name,Type,Accelerator Core,Start Time(us),Duration(us)\n" + noise
    table, found = rows(text)
    assert len(found) <= table.rows


EVENT = {"ph": "X", "name": "aten::add }, {", "pid": 1, "tid": 1, "ts": "1764246877000200.125", "dur": 1.5, "args": {"list": [{"a": 1}, {"b": 2}]}}


@pytest.mark.parametrize("form", ["array", "object"])
def test_a_trace_is_read_to_its_end(form: str) -> None:
    text = json.dumps([EVENT] * 50 if form == "array" else {"schemaVersion": 1, "traceEvents": [EVENT] * 50})
    reader = Reader(io.BytesIO(text.encode()).read)
    assert sum(len(events) for _, events in reader.pieces()) == 50
    assert (reader.end, reader.lost) == ("whole", 0)


@given(st.integers(2, 6000))
@settings(max_examples=60, deadline=None)
def test_of_a_trace_that_was_cut_every_whole_event_is_read(at: int) -> None:
    whole = json.dumps([EVENT] * 40).encode()
    text = whole[: min(at, len(whole) - 1)]
    reader = Reader(io.BytesIO(text).read)
    count = sum(len(events) for _, events in reader.pieces())
    one = len(json.dumps(EVENT)) + 2
    assert reader.end == "cut"
    assert count == max(0, len(text) + 1) // one


def test_events_in_small_pieces_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parsers.profile_trace.PIECE", 700)
    text = json.dumps([EVENT | {"tid": n} for n in range(300)]).encode()
    reader = Reader(io.BytesIO(text).read)
    found = [(first, event.tid) for first, events in reader.pieces() for event in events]
    assert [tid for _, tid in found] == list(range(300))
    assert reader.events == 300 and reader.end == "whole"


def test_damage_in_the_middle_costs_what_is_damaged() -> None:
    good = json.dumps([EVENT | {"name": "aten::add", "args": {}}] * 20)
    text = good[:1000] + '"\0{{{' + good[1006:]
    reader = Reader(io.BytesIO(text.encode()).read)
    assert sum(len(events) for _, events in reader.pieces()) >= 18
    assert reader.end == "damaged" and reader.lost


@given(st.binary(max_size=400))
@settings(max_examples=80, deadline=None)
def test_no_bytes_make_the_trace_reader_fail(noise: bytes) -> None:
    reader = Reader(io.BytesIO(b"[" + noise).read)
    lanes = Lanes()
    for first, events in reader.pieces():
        lanes.take(first, events)
    assert reader.end in ("whole", "cut", "damaged")


def test_moments_are_exact_to_the_nanosecond() -> None:
    assert nanoseconds("1764246877074017.123") == 1764246877074017123
    assert nanoseconds("1764246877074017") == 1764246877074017000
    assert nanoseconds("17.5") == 17500
    assert nanoseconds("soon") is None


def test_lanes_are_known_without_metadata_too() -> None:
    packed = (20000 << 10) | (14 << 5)
    lanes = Lanes()
    lanes.take(0, [Event("X", "MEMCPY_ASYNC", (20000 << 10) | (13 << 5), ts="5.000", dur=2.0), Event("X", "Free", packed + (9 << 5), dur=3.0)])
    assert [(row[1], row[3], row[6]) for row in lanes.trace] == [("Ascend Hardware", "MEMCPY_ASYNC", 2000)]
    assert lanes.overlap == {"Free": 3000}


COMMUNICATION = {
    "step13": {
        "collective": {
            "hcom_allReduce__1@7": {
                "Communication Time Info": {"Start Timestamp(us)": 5.0, "Elapse Time(ms)": 9.3, "Wait Time(ms)": 1.5},
                "Communication Bandwidth Info": {
                    "RDMA": {
                        "Transit Size(MB)": 0.0655,
                        "Transit Time(ms)": 0.04,
                        "Bandwidth(GB/s)": 1.6,
                        "Size Distribution": {"0.0655": [24, 0.04]},
                    },
                    "SDMA": {"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, "Size Distribution": {}},
                },
            },
            "Total Op Info": {"Communication Time Info": {}, "Communication Bandwidth Info": {}},
        }
    }
}


def test_communication_names_links_packets_and_lines() -> None:
    one, total = profile_json.communication(json.dumps(COMMUNICATION, indent=1).encode())
    assert (one.step, one.kind, one.op, one.group, one.line) == ("13", "collective", "hcom_allReduce__1", "7", 4)
    assert (one.start_ns, one.elapse_ns, one.wait_ns, one.transit_ns) == (5000, 9_300_000, 1_500_000, None)
    assert [link[0] for link in one.links] == ["RDMA"] and one.packets == [("RDMA", 0.0655, 24.0, 40000.0)]
    assert total.total


@pytest.mark.parametrize("text", [b"", b"{", b"[1, 2]", b'{"step13": 7}', b'{"a": {"b": {"c": []}}}', b"\xff" * 9, b"[" * 5000])
def test_odd_json_is_refused_or_empty(text: bytes) -> None:
    for read in (profile_json.communication, profile_json.matrix):
        try:
            found = list(read(text))
        except ValueError:
            continue
        assert all(not getattr(one, "links", []) for one in found)
    for one in (profile_json.info, profile_json.metadata, profile_json.device_info, profile_json.bench):
        try:
            one(text)  # type: ignore[operator]
        except ValueError:
            continue


def test_pipeline_stages_are_peers() -> None:
    group = {"g": {"group_name": "pp", "group_rank": 1, "global_ranks": [0, 1]}}
    assert profile_json.metadata(json.dumps({"parallel_group_info": group}).encode()).peers == "stage 1"
    assert profile_json.metadata(json.dumps({"distributed_args": {"pp": 2, "world_size": 8, "rank": 5}}).encode()).peers == "stage 1"


SCRAPE = """# HELP vllm:num_requests_waiting Requests
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 3.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5"} 3.0
python_gc_objects_total{generation="0"} 9.0
vllm:time_to_first_token_seconds_sum{engine="0"} 41.7
vllm:odd{engine="0"} NaN
"""


def test_scrapes_keep_sums_and_leave_buckets_out() -> None:
    found = list(metrics_text.samples(SCRAPE.split("\n"), 7))
    assert [(row.name, row.value, row.line_no, row.ts) for row in found] == [
        ("service.num_requests_waiting", 3.0, 3, 7),
        ("service.time_to_first_token_seconds_sum", 41.7, 6, 7),
    ]


def test_scrapes_one_behind_the_other_take_their_time_from_the_line_between() -> None:
    text = "1764246900\nnum_requests_waiting 1\n1764246960\nnum_requests_waiting 2"
    assert [row.ts for row in metrics_text.samples(text.split("\n"), None)] == [1764246900000000, 1764246960000000]


def test_the_time_of_a_scrape_is_in_its_name() -> None:
    assert metrics_text.scraped("m/metrics_1764246900.prom") == 1764246900000000
    assert metrics_text.scraped("m/metrics-20251127-123500.txt") == 1764246900000000
    assert metrics_text.scraped("m/metrics.txt") is None


@pytest.mark.parametrize("name", ["kind", "encoding"])
def test_kinds_of_profiler_files(name: str) -> None:
    assert classify("metrics.txt", SCRAPE.encode()).kind == "metrics"
    assert classify("x/ascend_pytorch_profiler_0.db", b"SQLite format 3\0" + bytes(100)).kind == "profile-db"
    assert classify("x/cookies.db", b"SQLite format 3\0" + bytes(100)).kind == "binary"
    assert shape(json.dumps(COMMUNICATION)) == "json"
    assert classify("PROF_000001_20251127_AB/host/start_info", b"{}\n").kind == "profile-raw"


def _database(path: Path, columns: str = "blockDim") -> None:
    with sqlite3.connect(path) as made:
        made.executescript(
            f"""
            CREATE TABLE STRING_IDS (id INTEGER, value TEXT);
            INSERT INTO STRING_IDS VALUES (1, 'AI_CORE'), (2, 'aclnnMatmul'), (3, 'MatMulV3'), (4, 'aic_mac_ratio'), (5, 'EVENT_WAIT');
            CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, globalTaskId INTEGER, taskType INTEGER,
                streamId INTEGER, taskId INTEGER);
            INSERT INTO TASK VALUES (1000, 3000, 0, 1, 1, 2, 10), (3500, 4000, 0, 2, 1, 2, 11), (4000, 9000, 0, 3, 5, 2, 12);
            CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER, {columns} INTEGER, taskType INTEGER, opType INTEGER);
            INSERT INTO COMPUTE_TASK_INFO VALUES (2, 1, 20, 1, 3), (2, 2, 4, 1, 3);
            CREATE TABLE TASK_PMU_INFO (globalTaskId INTEGER, name INTEGER, value NUMERIC);
            INSERT INTO TASK_PMU_INFO VALUES (1, 4, 0.78), (2, 4, 0.19);
            CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
            INSERT INTO STEP_TIME VALUES (7, 0, 3200), (8, 3200, 9000);
            """
        )
    made.close()


@pytest.mark.parametrize("columns", ["blockDim", "blockNum", "block_dim"])
def test_kernels_of_a_database_have_steps_counters_and_waits(tmp_path: Path, columns: str) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    _database(path, columns)
    with Database(str(path)) as base:
        found = {rows.table: [dict(zip(rows.columns, row, strict=True)) for row in rows.rows] for rows in base.rows()}
        assert base.problems == []
    first, second = found["kernels"]
    assert (first["op_type"], first["core"], first["dur_ns"], first["mac_ratio"]) == ("MatMulV3", "AI_CORE", 2000, 0.78)
    assert (first["step"], first["block_num"]) == ("7", 20)
    assert (second["wait_ns"], second["step"]) == (500, "8")
    assert [(row["name"], row["dur_ns"]) for row in found["trace"]] == [("EVENT_WAIT", 5000)]


def test_a_database_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "msprof_1.db"
    _database(path)
    before = path.read_bytes()
    with Database(str(path)) as base:
        list(base.rows())
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["msprof_1.db"]


def test_a_broken_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "analysis.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 40)
    with pytest.raises(ValueError), Database(str(path)) as base:
        list(base.rows())
