"""HCCL: join lines of all builds, both forms of the link table, and the facts made of them."""

from __future__ import annotations

import pytest

from parsers import hccl
from parsers.plog import PlogParser

HEAD = "[INFO] HCCL(1382,python3.8):2025-08-05-19:46:01.415.130 "


@pytest.mark.parametrize(
    "message, rank, ranks, device",
    [
        ("[HCCL_TRACE]SetupAgent rankNum[2], rank[0], rootInfo identifier[x], server[y], logicDevId[11], phydevId[11]", 0, 2, 11),
        ("Entry-HcclCommInitRootInfo:ranks[2048], rank[5], rootinfo: host ip[192.0.2.1] identifier[x], deviceLogicId[3]", 5, 2048, 3),
        ("hcclCommInitInfo:commId[c-hccl_world_group], rank[1], totalRanks[2], serverId[s],logicDevId[7], identifier[g]", 1, 2, 7),
        ("hcom init by file success,take time [2]us, rankTablePath[/r], rankNum[128], rank[76],server[192.0.2.1], device[4]", 76, 128, 4),
        ("[RootInfoDetect] rank[3], deviceLogicId[3], devPhyId[3], nRanks[64]", 3, 64, 3),
    ],
)
def test_join_lines_of_all_builds(message: str, rank: int, ranks: int, device: int) -> None:
    seen = hccl.join(message)
    assert seen is not None
    assert (seen.rank, seen.ranks, seen.logic_device) == (rank, ranks, device)


def test_other_lines_are_no_joins() -> None:
    assert hccl.join("wait socket establish timeout, role[0] rank[2] timeout[130]") is None
    assert hccl.join("HcclCommInitRootInfo success") is None


def test_both_forms_of_the_link_table() -> None:
    new = hccl.links("   |  192.0.2.212(10)   |  16666  |   192.0.2.202(2)   |  2882681339  |  server  | time out |")
    old = hccl.links("   |  192.0.2.11(1)   |   192.0.2.21(0)   |  server  | no connect |   ")
    assert new == hccl.Link("192.0.2.212", 10, "192.0.2.202", 2, "server", "time out")
    assert old == hccl.Link("192.0.2.11", 1, "192.0.2.21", 0, "server", "no connect")
    for row in ("   |  dest_ip(rank_id)  |  src_ip(rank_id)   |   Role   |   Status   |   ", "   |-----|-----|-----|----|", "", "| a | b |"):
        assert hccl.links(row) is None


def test_facts_carry_line_and_device_and_are_not_repeated() -> None:
    join = HEAD + "[t.cc:1] [1382]SetupAgent rankNum[2], rank[1], identifier[g], server[s], logicDevId[6], phydevId[7], deviceIp[192.0.2.2]"
    row = HEAD + "[t.cc:1] [1382]   |  192.0.2.11(1)   |   192.0.2.21(0)   |  server  | no connect |   "
    found = PlogParser().extract("\n".join(["x", join, join, row]))
    assert [(fact.name, fact.value, fact.line_no, fact.device) for fact in found.facts] == [
        ("hccl.rank", "1", 2, 6),
        ("hccl.ranks", "2", 2, 6),
        ("hccl.group", "g", 2, 6),
        ("hccl.server", "s", 2, 6),
        ("hccl.device_ip", "192.0.2.2", 2, 6),
        ("hccl.physical_device", "7", 2, 6),
        ("hccl.link_error", "192.0.2.21(0) <- 192.0.2.11(1) server no connect", 4, None),
    ]
