"""An incident in which every part of the page has something to show, for the tests of the page."""

from __future__ import annotations

from forensics.result import (
    AttemptSeen,
    CheckResult,
    Conflict,
    Device,
    FactSeen,
    Graph,
    Lane,
    Link,
    NodeSeen,
    Reading,
    Step,
    Timeline,
    Triage,
    Unexplained,
    Window,
)
from replay.result import Bin, ErrorPlot, FaultFit, Verdict, Violation, Words
from rules.model import Began, Evidence, Scope, Sign, Text
from tests.unit import sample_triage as sample

T0 = sample.T0
ROOT = "operators.paged-attention.out-of-block"


def step(rule: str, title: str = "", layer: str = "runtime", node: str = "node0") -> Step:
    return Step(rule, Text(title or f"What {rule} says", f"{rule} 的说明"), layer, Scope(node, 6), T0, 3)


def full(word: str = "plain", **changes: object) -> Triage:
    """`word` stands in every text that comes from a bundle."""
    graph = Graph(
        [
            step(ROOT, f"Paged attention {word}", "operator", word),
            step("cann-runtime.acl.507035", word),
            step("hccl.notify-timeout", word, "collective"),
        ],
        [Link(0, 1, True), Link(1, 2, False)],
    )
    lanes = [
        Lane(word, "plog", T0, T0 + 2_000_000_000, 9000, 31, [{3: 30, 110: 1}, {20: 30}]),
        Lane("node1", word, None, None, 12, 0, [{}, {}]),
    ]
    devices = [
        Device(
            word,
            0,
            "Ascend910B3",
            "OK",
            {
                "npu.temperature": Reading(41, 60, "C"),
                "npu.hbm.used": Reading(61_000, 61_000, "MB"),
                "npu.hbm.total": Reading(65_536, 65_536, "MB"),
                "link.status": Reading(1, 1, ""),
            },
            0,
            [],
        ),
        Device(
            word,
            6,
            word,
            word,
            {"npu.power": Reading(300.5, 300.5, "W"), "npu.hbm.usage": Reading(97, 97, "%"), "link.status": Reading(0, 0, "")},
            4,
            [1],
        ),
    ]
    verdict = Verdict(
        "paged_attention",
        "confirmed",
        Words(f"The output {word} is wrong from 65536 on.", "输出自 65536 起错误。"),
        "capture",
        "float16",
        word,
        31.5,
        1e-3,
        [FaultFit("position-wrap", {"modulus": 65536}, 0.9, Words("Positions wrap", "位置回绕"))],
        [Violation("IncreFlashAttention", word, True, word, "manual")],
        ErrorPlot("position", [Bin(0, 1023, 1024, 0.9, 1.4), Bin(1024, 65535, 64512, 1.0, 1.5), Bin(65536, 70000, 4465, 900.0, 2000.0)], 2.0, 65536),
        [Words(word, "说明")],
        command=word,
    )
    remedy = {"en": ["Set the level to `3`."], "zh": ["将级别设为 `3`。"]}
    checks = [
        CheckResult("preflight.links.ports-up", Text("Every port is up", "网口均正常"), "fail", "error", [Evidence(word, 3, word)], [], remedy),
        CheckResult(
            "preflight.environment.disk",
            Text("There is room", "空间充足"),
            "not-checked",
            "warning",
            [],
            ["disk.usage"],
            {},
            Text("Collect `df`.", "收集 `df`。"),
        ),
        CheckResult("site.own", Text("Ours", "自有"), "pass", "info", [], [], {}),
    ]
    signs = [Sign("hccl", 3.0, Text(f"Names {word}", f"指向 {word}"), word, 9)]
    began = Began(1, word, 6, 2, 838, [], True, "high", signs, 3, 4, T0)
    values: dict[str, object] = {
        "graph": graph,
        "timeline": Timeline([Window(T0, 20_000_000, 120), Window(T0 + 10_000_000, 500_000, 120)], lanes, 2),
        "devices": devices,
        "conflicts": [Conflict(word, "torch_npu.version", word, "torch.version", "2.5.1", Text(f"needs {word}", f"需要 {word}"))],
        "checks": checks,
        "replays": {1: verdict},
        "nodes": [
            NodeSeen(word, "host", True, [word], ["10.0.0.1"], [], 3, [0, 1, 2], T0, 3_000_000, 100_000, 4, "joins", True),
            NodeSeen("node1", "peers", False, [], [], [], 0, [3], None),
        ],
        "attempts": [
            AttemptSeen(1, 4, 3, [3], T0, began),
            AttemptSeen(2, 4, 3, [3], T0 + 9_000_000, None),
        ],
        "diagnoses": [
            sample.diagnosis(evidence=[Evidence(word, 7, word, role, T0) for role in ("for", "against", "context") for _ in range(8)]),
            sample.diagnosis(2, 0.41, "medium", replay=None, note=None),
        ],
        "facts": [
            FactSeen("cann.version", word, "node0", word, 2),
            FactSeen("cann.version", "8.1.RC1", "node1", "version.info", 2),
            FactSeen("env.HCCL_BUFFSIZE", word, "node0", "env.txt", 2),
        ],
        "unexplained": [Unexplained(word, count, word, 7, word) for count in range(1, 20)],
    }
    return sample.triage(**(values | changes))
