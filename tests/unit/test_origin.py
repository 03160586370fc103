"""Where a job began to fail is told by what its ranks say of each other, by who says nothing, and by nothing that only follows."""

from __future__ import annotations

from collections.abc import Sequence

from parsers.collective import remark
from rules.model import Began, Finding, FirstRow, Hit, Leaf, Remark, Rule, Scope, Text
from rules.origin import begin

SECOND = 1_000_000
GROUP = "10.0.0.1%eth0_60000_0_1750325244673428"
WIDTH = 8


def said(text: str, rank: int, at: float, node: str = "", pid: int | None = None) -> Remark:
    """A line of the process of a rank, as the scan would give it."""
    found = remark(text)
    assert found is not None, text
    node, pid = node or f"n{rank // WIDTH}", pid if pid is not None else 100 + rank
    return Remark(found.kind, found.values, rank, f"plog-{pid}.log", 1, text, round(at * SECOND), node, "python3", pid, 1)


def joins(ranks: Sequence[int], size: int, group: str = GROUP, at: float = 10, pid: int = 100) -> list[Remark]:
    return [
        said(
            f"HCCL(1,p): SetupAgent rankNum[{size}], rank[{rank}], rootInfo identifier[{group}], server[10.0.0.{rank // WIDTH + 1}%eth0], "
            f"logicDevId[{rank % WIDTH}], phydevId[{rank % WIDTH}], deviceIp[192.168.{rank // WIDTH}.{rank % WIDTH}]",
            rank, at, pid=pid + rank,
        )
        for rank in ranks
    ]  # fmt: skip


def timeout(rank: int, at: float, tag: str = f"AllReduce_{GROUP}", pid: int = 100) -> Remark:
    return said(f"Task run failed, base information is streamID:[2], taskID[21], taskType[Notify Wait], tag[{tag}].", rank, at, pid=pid + rank)


def wait(rank: int, peer: int, at: float = 700) -> Remark:
    return said(f"Task run failed, para information is notify id:[0x1], stage:[f], remote rank:[{peer}].", rank, at)


def limit(seconds: int) -> Remark:
    return said(f"HCCL_EXEC_TIMEOUT set by environment to [{seconds}]s", 0, 5)


def finding(rank: int, at: float, layer: str = "device", text: str = "hbm ecc", pid: int | None = 0) -> Finding:
    rule = Rule("t.own", "ecc-hardware-fault", Text("t", "t"), layer, "error", Leaf("a", contains=("x",)), strength="strong")
    own = None if pid is None else 100 + rank
    hit = Hit(0, 90, "messages", 7, 0, text, {}, ts=round(at * SECOND), node=f"n{rank // WIDTH}", pid=own, device=rank % WIDTH)
    return Finding(rule, [hit], 1, Scope(hit.node, hit.device, None, hit.pid), hit.ts, hit.ts, 1, {})


def one(remarks: Sequence[Remark], firsts: Sequence[FirstRow] = (), findings: Sequence[Finding] = ()) -> Began:
    found = begin(remarks, firsts, findings)[1]
    assert len(found) == 1
    return found[0]


def kinds(began: Began) -> list[str]:
    return [sign.kind for sign in began.signs]


def test_the_rank_that_everybody_waits_for_and_that_says_nothing_began_it() -> None:
    found = one(joins(range(8), 8) + [wait(rank, 5 if rank == 4 else (rank + 1) % 8) for rank in range(8) if rank != 5])
    assert (found.node, found.device, found.rank, found.pid) == ("n0", 5, 5, 105)
    assert found.sure == "high" and {"waits", "silence"} <= set(kinds(found)) and found.waiting == 7


def test_hccls_own_word_names_it_even_where_its_logs_are_missing() -> None:
    word = (
        "[HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[10.0.0.3/2], Arrival Time:[Thu Oct 23 17:25:58 2025], Discoverer:[10.0.0.1/2], "
        "ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited"
    )
    seen = [rank for rank in range(32) if rank // WIDTH != 2]
    found = one(joins(seen, 32) + [said(word, rank, 700) for rank in seen] + [timeout(rank, 700) for rank in seen])
    assert (found.node, found.device, found.rank, found.logs) == ("10.0.0.3", 2, 18, False)
    assert kinds(found)[0] == "hccl"


def test_the_server_of_missing_ranks_is_placed_by_the_order_of_addresses() -> None:
    word = "Cluster Exception Location[IP/ID]:[10.0.0.4/1], ExceptionType:[Stuck Occurred], Possible Reason:1.Host process is stuck"
    seen = [rank for rank in range(48) if rank // WIDTH not in (1, 3, 4)]
    found = one(joins(seen, 48) + [said(word, rank, 700) for rank in seen])
    assert (found.node, found.device, found.rank) == ("10.0.0.4", 1, 25)


def test_an_error_of_its_own_that_much_before_the_others_as_their_timeout_is_set_to() -> None:
    others = [timeout(rank, 1000 + 600 + rank / 10) for rank in range(8) if rank != 3]
    found = one([*joins(range(8), 8), limit(600), *others], findings=[finding(3, 1000, pid=None)])
    assert (found.rank, found.pid) == (3, 103)
    error = next(sign for sign in found.signs if sign.kind == "error")
    assert "HCCL_EXEC_TIMEOUT (600 s)" in error.reason.en and "HCCL_EXEC_TIMEOUT（600 秒）" in error.reason.zh
    off = one([*joins(range(8), 8), limit(1800), *others], findings=[finding(3, 1000)])
    assert all("HCCL_EXEC_TIMEOUT" not in sign.reason.en for sign in off.signs), "it is no reason where it does not fit"


def test_an_error_after_the_others_gave_up_is_a_consequence() -> None:
    remarks = joins(range(8), 8) + [timeout(rank, 1600) for rank in range(8)]
    assert begin(remarks, (), [finding(3, 1700)])[1] == []
    assert one(remarks, findings=[finding(3, 1000)]).rank == 3


def test_a_doubtful_clock_leaves_open_which_error_was_first() -> None:
    remarks = joins(range(16), 16) + [timeout(rank, 1600) for rank in range(16) if rank not in (3, 11)]
    errors = [finding(3, 1000, "operator"), finding(11, 960, "operator")]
    sharp, vague = begin(remarks, (), errors)[1][0], begin(remarks, (), errors, (), {"n0": 60 * SECOND, "n1": 60 * SECOND})[1][0]
    assert sharp.rank == 11 and vague.rank is None and vague.ranks == [3, 11]


def test_an_error_that_most_ranks_have_is_the_jobs_and_not_a_ranks() -> None:
    firsts = [FirstRow(f"n{rank // WIDTH}", 100 + rank, rank * SECOND, "c.log", 1, "ValueError: bad configuration") for rank in range(8)]
    assert begin(joins(range(8), 8), firsts, ())[1] == []


def test_first_errors_that_only_repeat_what_happened_elsewhere_are_none_of_ones_own() -> None:
    echoes = ("EI0002: The wait execution of the Notify register times out", "error code is 507048", "SIGTERM received", "get socket timeout")
    firsts = [FirstRow("n0", 100 + rank, (600 + rank) * SECOND, "c.log", 1, echoes[rank % 4]) for rank in range(7)]
    found = one(joins(range(8), 8), [*firsts, FirstRow("n0", 107, 20 * SECOND, "c.log", 9, "IndexError: list index out of range")])
    assert found.rank == 7 and "error" in kinds(found)


def test_ranks_that_never_joined_are_told_together() -> None:
    told = said('TopoDetect ERROR occur !!! fault_type[1], fault_info["Failed to connect agent[1,3,5,7,]"]', 4, 130)
    found = one([*joins([0, 2, 4, 6], 8), told])
    assert found.ranks == [1, 3, 5, 7] and found.rank is None and found.node == "n0"
    listed = said("connected rankinfo[LINE 0]: [0000000000000000],[0000000000000001],[0000000000000002];", 0, 130)
    assert one([*joins([0, 1, 2], 4), listed]).rank == 3


def test_who_gave_up_long_after_the_others_had_come_that_much_later() -> None:
    remarks = [*joins(range(8), 8), limit(300)] + [timeout(rank, 1044 if rank == 6 else 700 + rank / 10) for rank in range(8)]
    found = one(remarks)
    assert found.rank == 6 and kinds(found) == ["late"] and "5 min 44 s" in found.signs[0].reason.en and "300" in found.signs[0].reason.zh
    assert begin(remarks, (), (), (), {"n0": 150 * SECOND})[1] == [], "not where clocks may be off by as much"
    assert begin([*joins(range(8), 8)] + [timeout(rank, 700 + 20 * rank) for rank in range(8)], (), ())[1] == []


def test_who_lags_behind_the_number_of_the_others_calls() -> None:
    def call(rank: int, index: int) -> Remark:
        text = f"opData information is timeStamp:[2025-10-24-11:16:55.490.253], deviceId[{rank}], index[{index}], count[256], src[0x1]."
        return said(text, rank, 700)

    found = one(joins(range(8), 8) + [timeout(rank, 700) for rank in range(8)] + [call(rank, 118 if rank == 6 else 119) for rank in range(8)])
    assert found.rank == 6 and kinds(found) == ["call"] and "118" in found.signs[0].reason.en


def test_who_runs_another_operator_than_the_rest() -> None:
    found = one(joins(range(8), 8) + [timeout(rank, 700, f"{'AllGather' if rank == 2 else 'AllReduce'}_{GROUP}") for rank in range(8)])
    assert found.rank == 2 and "AllGather" in found.signs[0].reason.en


def test_broken_rdma_connections_meet_at_the_bad_card() -> None:
    def cqe(rank: int, peer: int) -> Remark:
        return said(f"[Heartbeat]cqe err status[12], time:[t], ip:[192.168.{peer // WIDTH}.{peer % WIDTH}]", rank, 500)

    found = one([*joins(range(32), 32), cqe(1, 9), cqe(17, 9), cqe(25, 9), cqe(9, 1)])
    assert found.rank == 9 and kinds(found) == ["rdma"]
    assert begin([*joins(range(32), 32), cqe(1, 9), cqe(17, 25)], (), ())[1] == [], "two that share nothing do not meet"


def test_the_launchers_word_on_who_died_counts_but_not_whom_it_ended_itself() -> None:
    died = said("failed (exitcode: -9) local_rank: 3 (pid: 103) of binary: /usr/bin/python", 0, 60)
    ended = said("failed (exitcode: -15) local_rank: 4 (pid: 104) of binary: /usr/bin/python", 0, 61)
    remarks = joins(range(8), 8) + [timeout(rank, 700) for rank in range(8)]
    found = one([*remarks, died, ended])
    assert found.rank == 3 and kinds(found) == ["exit"]
    assert begin([*remarks, ended], (), ())[1] == []


def test_of_the_launchers_summary_only_the_first_failure_counts() -> None:
    rows = ["  exitcode  : 1 (pid: 101)", "  exitcode  : 1 (pid: 102)", "Root Cause (first observed failure):", "  exitcode  : 1 (pid: 106)"]
    summary = [said(row, 0, 60, pid=99) for row in rows]
    for number, row in enumerate(summary):
        row.line_no = 100 + 4 * number
    assert one(joins(range(8), 8) + [timeout(rank, 700) for rank in range(8)] + summary).rank == 6


def test_restarts_are_attempts_each_with_its_own_answer() -> None:
    second = "10.0.0.1%eth0_60000_0_1750325999000000"
    first_try = joins(range(8), 8) + [timeout(rank, 700) for rank in range(8) if rank != 2]
    again = joins(range(8), 8, second, 1000, 300) + [timeout(rank, 1700, f"AllReduce_{second}", 300) for rank in range(8) if rank != 6]
    attempts, found = begin(first_try + again, (), ())
    assert [(attempt.number, attempt.ranks, len(attempt.seats)) for attempt in attempts] == [(1, 8, 8), (2, 8, 8)]
    assert [(began.attempt, began.rank, began.pid) for began in found] == [(1, 2, 102), (2, 6, 306)]


def test_ranks_without_logs_all_alike_name_none_of_them() -> None:
    seen = [rank for rank in range(32) if rank // WIDTH not in (1, 2)]
    found = begin(joins(seen, 32) + [timeout(rank, 700) for rank in seen], (), ())[1]
    assert not found or (found[0].sure == "low" and found[0].rank is None and found[0].logs is False)


def test_one_process_alone_has_no_origin() -> None:
    assert begin(joins([0], 1), (), [finding(0, 5)])[1] == []
    assert begin((), (), ()) == ([], [])


def test_the_order_of_the_lines_changes_nothing() -> None:
    remarks = joins(range(16), 16) + [wait(rank, (rank + 1) % 16) for rank in range(16) if rank != 12] + [limit(600)]
    assert begin(remarks, (), [finding(12, 90)])[1] == begin(remarks[::-1], (), [finding(12, 90)])[1]
