"""One incident as the pipeline would give it, made by hand, for the tests of the reports and of the command line."""

from __future__ import annotations

from forensics.result import AttemptSeen, BundleInfo, CodeSeen, Coverage, FactSeen, FirstError, Member, NodeSeen, Note, Triage, Unexplained
from rules.model import Began, Diagnosis, Echo, Evidence, Finding, Leaf, Pack, Reference, Replay, Rule, Scope, Sign, Text

T0 = 1_756_948_323_000_000
"""2025-09-04 01:12:03 UTC."""


def rule(ident: str = "operators.paged-attention.out-of-block", **changes: object) -> Rule:
    values: dict[str, object] = {
        "id": ident,
        "root_cause": "aicore-oob-access",
        "title": Text("Paged attention read outside its KV block", "Paged attention 读越出 KV 块"),
        "layer": "operator",
        "severity": "error",
        "match": Leaf(id="a", contains=("x",)),
        "action": "fix-config",
        "references": (Reference("Block table layout", "doc-1"),),
        "note": Text("The vendor reads this code as a scheduler error.", "厂商文档将该错误码解释为调度错误。"),
        "replay": Replay("paged_attention", {"block_size": 16}),
    }
    return Rule(**(values | changes))  # type: ignore[arg-type]


def diagnosis(rank: int = 1, confidence: float = 0.93, level: str = "high", evidence: list[Evidence] | None = None, **changes: object) -> Diagnosis:
    of = rule(**changes)  # type: ignore[arg-type]
    return Diagnosis(
        rank=rank,
        finding=Finding(of, [], 0, Scope("node0", 6, 6, 838), T0 + 2_288_954_001, T0 + 2_289_000_000, 2, {}),
        confidence=confidence,
        level=level,
        title=of.title,
        remedy={"en": ["Set --block-size 128.", "Restart the server."], "zh": ["将 --block-size 设为 128。", "重启服务。"]},
        evidence=evidence
        if evidence is not None
        else [
            Evidence("plog/plog-838_20250904.log", 8121, "[ERROR] RUNTIME(838,python): address out of range", "for", T0 + 2_288_954_001),
            Evidence("console.log", 512, "ACL stream synchronize failed, error code:507035", "for", T0 + 2_289_024_000),
            Evidence("messages", 90, "no ECC event on device 6", "against", None),
            Evidence("serve.log", 41, "--block-size 16", "context", T0),
        ],
        explains=["cann-runtime.acl.507035", "hccl.notify-timeout"],
        supported_by=["aicore.oob.gm-mte"],
        explained_events=399,
        why=Text("Two lines of the same process name the block.", "同一进程的两行日志指明了该块。"),
    )


def member(path: str, status: str = "read", note: str = "", note_zh: str = "", file_id: int = 0) -> Member:
    return Member(file_id, path, "node0", None, "plog", "plog", 1000, 10, 10, "utf-8", "local", 28800, T0, T0, status, note, note_zh)


def triage(**changes: object) -> Triage:
    values: dict[str, object] = {
        "version": "0.1.0",
        "packs": [Pack("hccl", "1.0.0", 40), Pack("cann-runtime", "1.0.0", 112)],
        "bundle": BundleInfo(
            "logs.tar.gz", "0" * 64, 130_000_000, 1_020_000_000, 214, 7_100_000, ["node0", "node1"], 16, T0, T0 + 2_291_000_000, "+08:00"
        ),
        "diagnoses": [diagnosis()],
        "unexplained": [Unexplained("Socket <n> closed by <ip>", 19, "console.log", 77, "Socket 4 closed by 10.0.0.1", T0)],
        "first_errors": [FirstError("node0", 838, "python", T0, "console.log", 77, "Socket 4 closed by 10.0.0.1")],
        "codes": [
            CodeSeen("507035", "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION", "vector core exception", "Vector Core 异常", 31, True, "console.log", 512)
        ],
        "facts": [FactSeen("cann.version", "8.1.RC1", "node0", "version.info", 2), FactSeen("driver.version", "24.1.rc2", "", "version.info", 1)],
        "coverage": Coverage(7_100_000, 7_000_000, 431, 412, [member("plog/plog-838_20250904.log"), member("odd.txt", "unrecognised", file_id=1)]),
        "notes": [Note("The clock of device 6 runs 3 s ahead.", "device 6 的时钟快 3 秒。")],
        "collect_next": [Note("Collect the plog of rank 3.", "请补充收集 rank 3 的 plog。")],
        "titles": {
            "cann-runtime.acl.507035": Text("Vector core exception", "Vector Core 异常"),
            "hccl.notify-timeout": Text("HCCL notify timeout on 7 ranks", "7 个 rank 上 HCCL notify 超时"),
        },
        "case": "logs.case",
        "seconds": 11.8,
    }
    return Triage(**(values | changes))  # type: ignore[arg-type]


def damaged(**changes: object) -> Triage:
    """The same bundle with a member that breaks off, and no rule that fits."""
    lost = member("node1.tar.gz/plog/b.log", "damaged", "the archive ends in the middle of this member", "归档在该成员中间截断", 2)
    coverage = Coverage(100, 90, 12, 0, [member("plog/plog-838_20250904.log"), lost])
    return triage(**({"diagnoses": [], "coverage": coverage} | changes))


SILENT = Text("it says nothing", "它没有任何日志")


def job(text: str = "node3", reason: Text = SILENT, **changes: object) -> Triage:
    """The same bundle as part of a job of 16 ranks on three nodes, one of them without logs, in its second attempt."""
    signs = [Sign("silence", 2.0, reason), Sign("waits", 2.5, reason, text, 45, 3)]
    began = Began(2, text, 6, 14, 838, [], True, "high", signs, 13, 16, T0, {"exec": 600, "connect": 120})
    faint = Began(1, "", None, None, None, [1, 2, 3, 9], False, "low", signs[:1], 0, 16, T0)
    nodes = [
        NodeSeen("node0", "path", True, [], ["10.0.0.1"], ["node0"], 12, list(range(8)), T0, 0, 500_000, 9, "joins"),
        NodeSeen(text, "host", True, [text], ["10.0.0.2"], [text], 12, [8, 14], T0 + 5, 252_300_000, 500_000, 1, "joins", True),
        NodeSeen("10.0.0.3", "peers", False, [], ["10.0.0.3"], [], 0, [9], None),
        NodeSeen("node2", "path", True, [], [], [], 1, [], None, -95_000_000, 30_000_000, 4, "failures", True),
    ]
    attempts = [AttemptSeen(1, 16, 15, [9], T0, faint), AttemptSeen(2, 16, 15, [9], T0 + 60_000_000, began)]
    echoes = [Echo("cann-runtime.acl.507035", 40, 2, 0, 1, T0), Echo("hccl.notify-timeout", 900, 13, 13, 2, T0)]
    shown = diagnosis()
    shown.echoes, shown.attempt, shown.scope = echoes, 2, Scope(text, 6, 14, 838)
    layers = [FirstError("", None, "", T0, "dmesg", 3, "[ascend] [ERROR] pcie link", "driver")]
    return triage(**({"diagnoses": [shown], "nodes": nodes, "attempts": attempts, "first_by_layer": layers} | changes))
