"""Small profiles for tests, as Ascend PyTorch Profiler writes them; invented."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

START = 1764246877000000000
PMU = (
    "aicore_time(us)", "aic_mac_ratio", "aic_scalar_ratio", "aic_mte2_ratio", "aiv_time(us)", "aiv_vec_ratio", "aiv_scalar_ratio",
    "aiv_mte2_ratio",
)  # fmt: skip
KERNEL_HEAD = (
    "Step Id,Device_id,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,Input Shapes,"
    "Input Data Types," + ",".join(PMU)
)
STEP_HEAD = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing"


def us(ns: int) -> str:
    """A moment as the CSV files print it, with the TAB behind it."""
    return f"{ns // 1000}.{ns % 1000:03d}\t"


class Kernel:
    """One row of kernel_details.csv."""

    def __init__(
        self, op: str = "MatMulV3", took: float = 400.0, core: str = "AI_CORE", wait: float = 0.0, blocks: int = 20, dtypes: str = "DT_BF16;DT_BF16",
        pmu: Sequence[float] = (0.9, 0.78, 0.1, 0.8, 0, 0, 0, 0),
    ) -> None:  # fmt: skip
        self.op, self.took, self.core, self.wait, self.blocks, self.dtypes, self.pmu = op, took, core, wait, blocks, dtypes, pmu


VECTOR = (0, 0, 0, 0, 0.9, 0.42, 0.06, 0.71)


def healthy(count: int = 24) -> list[Kernel]:
    """Kernels of a step with nothing wrong."""
    return [Kernel() if n % 2 else Kernel("RmsNorm", 60.0, "AI_VECTOR_CORE", blocks=40, pmu=VECTOR) for n in range(count)]


def kernel_csv(kernels: Sequence[Kernel], steps: int = 2) -> str:
    """kernel_details.csv with these kernels in every step."""
    lines, at, task = [KERNEL_HEAD], START, 1000
    for step in range(13, 13 + steps):
        for k in kernels:
            at += round(k.wait * 1000)
            name = f"aclnn{k.op}_{k.op}AiCpu_{k.op}" if k.core == "AI_CPU" else f"aclnn{k.op}_{k.op}AiCore_{k.op}"
            pmu = ",".join(["N/A"] * len(PMU)) if k.core in ("AI_CPU", "COMMUNICATION") else ",".join(str(one) for one in k.pmu)
            lines.append(
                f'{step},0,{task},2,{name},{k.op},dynamic,{k.core},{us(at)},{k.took:.3f},{k.wait:.3f},{k.blocks},"""4096,4096;4096""",{k.dtypes},{pmu}'
            )
            at, task = at + round(k.took * 1000), task + 1
    return "\r\n".join(lines) + "\r\n"


def step_csv(rows: Sequence[tuple[int, float, float, float]], bubble: float = 0.0, preparing: float = 200.0) -> str:
    """step_trace_time.csv of (step, computing, exposed communication, free) in microseconds."""
    lines = [STEP_HEAD]
    for step, computing, exposed, free in rows:
        stage = computing + exposed + free
        lines.append(f"0,{step},{computing},{exposed},0,{exposed},{free},{stage},{bubble},{preparing}")
    return "\r\n".join(lines) + "\r\n"


def write(folder: Path, rank: int = 0, files: dict[str, str] | None = None, ranks: Sequence[int] = (0,), **variables: str) -> Path:
    """A *_ascend_pt folder; `files`: name -> text, put into ASCEND_PROFILER_OUTPUT."""
    root = folder / f"worker_{20000 + rank}_2025112712000{rank}000_ascend_pt"
    products = root / "ASCEND_PROFILER_OUTPUT"
    products.mkdir(parents=True)
    info = {"config": {"common_config": {"schedule": {"active": 2}}, "experimental_config": {"_profiler_level": "Level1"}}, "rank_id": str(rank)}
    (root / f"profiler_info_{rank}.json").write_text(json.dumps(info | {"cann_version": "8.3.RC1", "torch_npu_version": "2.7.1"}))
    group = {"group": {"group_name": "default_group", "group_rank": rank, "global_ranks": list(ranks)}}
    (root / "profiler_metadata.json").write_text(json.dumps({"ENV_VARIABLES": variables, "parallel_group_info": group}))
    for name, text in (files or {}).items():
        (products / name).write_bytes(text.encode())
    return root


def trace(events: Sequence[dict[str, object]]) -> str:
    """trace_view.json with the names of the usual lanes before the events."""
    lanes = ((1, "Python"), (2, "CANN"), (3, "Ascend Hardware"), (4, "AI Core Freq"), (5, "Communication"), (6, "Overlap Analysis"))
    named = [{"name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}, "ph": "M"} for pid, name in lanes]
    return json.dumps([*named, *events])
