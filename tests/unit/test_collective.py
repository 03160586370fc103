"""Lines about a job of many ranks are read in every spelling, and nothing else is taken for one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.collective import PATTERN, remark

GROUP = "192.0.2.1%eth0_60000_0_1750325244673428"
HEAD = "[ERROR] HCCL(7,python3):2025-06-19-09:09:19.687.505 [x.cc:778] [17514]"
LINES = [
    (
        "[INFO] HCCL(7,p):2025-10-24-11:16:52.724.374 [op_base.cc:1292] [7]Entry-HcclCommInitRootInfoInner:ranks[4], rank[2], rootinfo: host ip"
        f"[192.0.2.1] port[60000] nicDeploy[1] identifier[{GROUP}], deviceLogicId[2]",
        "join",
        {"ranks": "4", "rank": "2", "group": GROUP, "device": "2", "step": "entry", "epoch": "1750325244673428"},
    ),
    (
        "[TRACE] HCCL(9,python):2023-07-04-21:46:57.092.353 [status:init] [hcom.cc:194][hccl-9-0-1688478416-hccl_world_group][76]hcom init by file "
        "success,take time [248118]us, rankTablePath[/r.json], rankNum[128], rank[76],server[192.0.2.141], device[4]",
        "join",
        {"ranks": "128", "rank": "76", "group": "hccl_world_group", "server": "192.0.2.141", "device": "4", "step": "done"},
    ),
    (f"{HEAD}   |  192.0.2.212(10)   |  16666  |   192.0.2.202(2)   |  1  |  server  | time out |", "link", {"peer": "10", "rank": "2"}),
    (f"{HEAD}[Wait][P2PConnected]connected p2p timeout, timeout:130 s. local logicDevid:0, remote physic id:2.", "p2p", {"peer_physical": "2"}),
    (
        "[INFO] HCCL(989,python):2024-08-01-15:02:25.741.106 [heartbeat.cc:536][3851][HCCL_TRACE]rank [192.0.2.9/2]: rank [192.0.2.57/0] "
        "status[LOST] by rank [192.0.2.57/6]",
        "state",
        {"server": "192.0.2.57", "device": "0", "state": "lost", "informer": "192.0.2.57/6"},
    ),
    (
        f"{HEAD}[HeartbeatAbnormal]local rank [192.0.2.1/1]: crimer rank [192.0.2.2/2] status[ERROR CQE] by informer rank [192.0.2.3/3]",
        "state",
        {"server": "192.0.2.2", "device": "2", "state": "cqe", "informer": "192.0.2.3/3"},
    ),
    (
        f"{HEAD}[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[192.0.2.7/1], Arrival Time:[Thu Oct 23 21:03:19 2025], "
        "ExceptionType:[Stuck Occurred], Possible Reason:1.Host process is stuck",
        "verdict",
        {"server": "192.0.2.7", "device": "1", "state": "stuck", "type": "Stuck Occurred", "at": "Thu Oct 23 21:03:19 2025"},
    ),
    (f"{HEAD}[Heartbeat]cqe err status[12], time:[2023-07-04 22:15:59.099518], ip:[192.0.2.102]", "cqe", {"status": "12", "peer_ip": "192.0.2.102"}),
    (
        f"{HEAD}[Heartbeat]cqe error status[12], time:[t], localInfo{{server[192.0.2.1],deviceId[4],deviceIp[198.51.100.4]}}, "
        "remoteIP{server[192.0.2.2],deviceId[5],deviceIp[198.51.100.5]}",
        "cqe",
        {"peer_ip": "198.51.100.5", "server": "192.0.2.2", "device": "5", "own_ip": "198.51.100.4"},
    ),
    (f"{HEAD}[TaskExecStage][Timeout][Host]Task run failed, base information is streamID:[2], taskID[21], tag[AllReduce_{GROUP}], AlgType.", "task",
     {"tag": f"AllReduce_{GROUP}"}),
    (f"{HEAD}Task run failed, groupRank information is group:[{GROUP}], user define information[], rankSize[4], rankId[2].", "member",
     {"group": GROUP, "ranks": "4", "rank": "2"}),
    (f"{HEAD}Task run failed, opData information is timeStamp:[2025-10-24-11:16:55.490.253], deviceId[2], index[21], count[256], src[0x1].", "call",
     {"device": "2", "index": "21", "count": "256"}),
    (f"{HEAD}Task run failed, para information is notify id:[0x12], stage:[ffffffff], remote rank:[6].", "wait", {"peer": "6"}),
    ("has not received the Notify record from remote rank: [unknown]. base information: [streamID:[1]], task information: [remote rank:[3]]", "wait",
     {"peer": "3"}),
    ("[ERROR] HCCL(5375,aicpu):2025-08-06-23:09:01.834.048 [a.cc:3083] [5792]base information is type:NOTIFY WAIT, localRank:1, remoteRank:0", "wait",
     {"type": "NOTIFY WAIT", "rank": "1", "peer": "0"}),
    ('TopoDetect ERROR occur !!! fault_type[1], fault_info["Failed to connect agent[1,3,5,7,]"]', "absent", {"ranks": "1,3,5,7"}),
    (f"{HEAD}connected rankinfo[LINE 0]: [0000000000000000],[0000000000000002],[0000000000000004];", "present", {"ranks": "0,2,4"}),
    (f"{HEAD}HCCL_EXEC_TIMEOUT set by environment to [600]s", "limit", {"exec": "600"}),
    (f"{HEAD}[HCCL_ENV]Env config linkTimeOut[120]s execTimeOut[1836]s rdmaTimeOut[20]", "limit", {"connect": "120", "exec": "1836"}),
    (f"{HEAD}[Start][Vnic]Listen on ip[192.0.2.197], port[16666] sucess, devPhyId[2], devLogicId[3], isAutoPort[0]", "listen",
     {"ip": "192.0.2.197", "physical": "2", "device": "3"}),
    ("[rank3]:[E806 23:09:42] [Rank 3] Watchdog caught collective operation timeout: WorkHCCL(SeqNum=54, OpType=ALLREDUCE, Timeout(ms)=1800000)",
     "watchdog", {"rank": "3", "index": "54", "op": "ALLREDUCE"}),
    ("ERROR:torch.distributed.elastic:failed (exitcode: -9) local_rank: 3 (pid: 927000) of binary: /usr/bin/python", "exit",
     {"code": "-9", "local": "3", "pid": "927000"}),
    ("  exitcode  : 1 (pid: 48213)", "exit", {"code": "1", "pid": "48213"}),
    ("Root Cause (first observed failure):", "first-exit", {}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "values"), LINES)
def test_a_line_says_who_and_whom(line: str, kind: str, values: dict[str, str]) -> None:
    found = remark(line)
    assert found is not None and found.kind == kind
    assert {name: found.values.get(name) for name in values} == values
    if kind not in ("join", "link"):
        assert re.search(PATTERN, line), "the scan must look for it"


def test_a_rank_that_nobody_knows_is_no_peer() -> None:
    found = remark("type:NOTIFY WAIT, localRank:1, remoteRank:4294967295, taskId:26064")
    assert found is not None and "peer" not in found.values


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[INFO] HCCL(9001,python3):2026-01-01-00:00:01.000.687 [a.cc:1] [9001]chip version V950",
        "the remote rank said nothing",
        "by [rank] by",
        "| a | b | c |",
    ],
)
def test_other_lines_say_nothing(line: str) -> None:
    assert remark(line) is None


BEGUN = st.sampled_from([line for line, _, _ in LINES]).flatmap(lambda line: st.integers(0, len(line)).map(lambda n: line[:n]))


@given(st.text(max_size=400) | BEGUN)
def test_no_text_breaks_it(line: str) -> None:
    found = remark(line)
    assert found is None or all(isinstance(value, str) for value in found.values.values())
