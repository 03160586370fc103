"""What transports put before a line is taken off, in any stack, and what it knows is kept."""

from __future__ import annotations

import pytest

from parsers import clock
from parsers.console import read
from parsers.prefix import peel, rank_of


def at(text: str) -> int:
    found = clock.iso(text)[0]
    assert found is not None
    return found


def test_a_stack_of_five_prefixes_is_taken_off_and_its_outermost_time_kept() -> None:
    line = (
        "node1/pod.log:17:2025-10-14T06:12:40.118331000Z stderr F [2025-10-14 14:12:40.100][sv-infer-0-1] "
        "(Worker_DP2_TP0_DCP0_EP16 pid=1315) [rank3]: what was said"
    )
    seen = peel(line)
    assert seen is not None
    assert (seen.rest, seen.pid, seen.rank, seen.process) == ("what was said", 1315, 3, "Worker_DP2_TP0_DCP0_EP16")
    assert (seen.ts, seen.clock) == (at("2025-10-14T06:12:40.118331Z"), "zoned")
    assert line[seen.at :] == seen.rest


def test_docker_json_is_decoded_with_its_escapes_and_its_time() -> None:
    seen = peel('{"log":"\\u001b[1;36m(APIServer pid=101)\\u001b[0;0m INFO:     Shutting down\\n","stream":"stderr","time":"2025-12-05T07:51:01.3Z"}')
    assert seen is not None
    assert (seen.rest, seen.pid, seen.clock, seen.at) == ("INFO:     Shutting down", 101, "zoned", 0)
    assert seen.ts == at("2025-12-05T07:51:01.300Z")


@pytest.mark.parametrize("line", ['{"log": "cut in its mid', '{"log": 7}', '{"log": {"a": 1}}', '{"a": 1}', "{" * 5000, '{"log":' * 3000])
def test_json_that_is_no_docker_line_stays_as_it_is(line: str) -> None:
    assert peel(line) is None


@pytest.mark.parametrize(
    "line",
    ["(no process here) text", "[ERROR] RUNTIME(7,x): text", "2025-10-14T06:12:40.118331Z host kernel: text", "[Rank 5] HCCL watchdog", "",
     "[2025-10-14 14:12:40,100][7][ERROR] text", "[2025-10-14 14:12:40,100][ERROR] text", "see file.log: it has 3 lines"],
)  # fmt: skip
def test_what_only_looks_like_a_prefix_is_left_alone(line: str) -> None:
    assert peel(line) is None


@pytest.mark.parametrize(
    "process, rank",
    [
        ("Worker_TP3", 3),
        ("Worker_DP2_TP0_DCP0_EP16", 16),
        ("Worker_DP1_TP0", None),
        ("Worker_PP1_TP0", None),
        ("EngineCore_DP0", None),
        ("APIServer", None),
    ],
)
def test_a_vllm_process_name_gives_its_world_rank_only_where_it_is_certain(process: str, rank: int | None) -> None:
    assert rank_of(process) == rank


def test_the_rank_a_process_names_itself_wins() -> None:
    seen = peel("(VllmWorker rank=3 pid=20491) text")
    assert seen is not None and (seen.rank, seen.pid) == (3, 20491)


def test_every_line_behind_a_process_prefix_is_a_record_of_that_process() -> None:
    record = read("(EngineCore pid=118)         rtGetDeviceCount execution failed[FUNC:FuncErrorReason][FILE:e.cc][LINE:65]")
    assert record is not None and (record.pid, record.process, record.ts) == (118, "EngineCore", None)
    assert record.message.strip().startswith("rtGetDeviceCount")


def test_message_at_points_at_the_message_behind_all_prefixes() -> None:
    line = "[2026-09-09 23:58:37.427][sv-infer-0-1] (Worker_TP1 pid=1316) ERROR 09-09 15:58:37 [a.py:987] WorkerProc hit an exception."
    record = read(line)
    assert record is not None and line[record.message_at :] == record.message == "WorkerProc hit an exception."
    assert (record.ts, record.clock) == (at("2026-09-09 23:58:37.427"), "local")
