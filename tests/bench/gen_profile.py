"""Makes a profile of any size, as Ascend PyTorch Profiler writes it: kernel_details.csv, trace_view.json and the small tables beside them.

    python -m tests.bench.gen_profile OUT --kernels 1000000 --trace-mb 500

Made up: a transformer's kernels over and over, with one operator that falls back to the AI CPU, so that there is something to find.
"""

from __future__ import annotations

import argparse
import pathlib

START = 1764246877000000000
"""Nanoseconds since 1970."""
HEAD = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,"
    "Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,"
    "aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,"
    "aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,"
    "aiv_vec_time(us),aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,"
    "aiv_icache_miss_rate,cube_utilization(%)"
)
KINDS = (
    ("aclnnRmsNorm_RmsNormAiCore_RmsNorm", "RmsNorm", "AI_VECTOR_CORE", 20.4, 40, "4096,4096;4096"),
    ("aclnnMatmul_MatMulV3AiCore_MatMulV3", "MatMulV3", "AI_CORE", 157.6, 20, "4096,4096;4096,12288"),
    ("aclnnRotaryMul_RotaryMulAiCore_RotaryMul", "RotaryMul", "AI_VECTOR_CORE", 34.1, 40, "4096,32,128;4096,1,128"),
    ("aclnnFlashAttentionScore_FlashAttentionScoreAiCore", "FlashAttentionScore", "MIX_AIC", 845.1, 20, "1,4096,4096;1,4096,4096"),
    ("aclnnSwiGlu_SwiGluAiCore_SwiGlu", "SwiGlu", "AI_VECTOR_CORE", 90.0, 40, "4096,22016"),
    ("aclnnMatmul_MatMulV3AiCore_MatMulV3", "MatMulV3", "AI_CORE", 456.5, 20, "4096,11008;11008,4096"),
    ("aclnnAdd_AddAiCore_Add", "Add", "AI_VECTOR_CORE", 16.0, 40, "4096,4096;4096,4096"),
)
FALLBACK = ("aclnnIndex_IndexAiCpu_Index", "Index", "AI_CPU", 1850.0, 1, "4096,4096;4096")
LANES = ((20000, "Python"), (20480224, "CANN"), (20480416, "Ascend Hardware"), (20480448, "AI Core Freq"), (20480736, "Overlap Analysis"))
STEP = 2600
"""Kernels of a step."""


def make(out: pathlib.Path, kernels: int, trace_bytes: int) -> None:
    """A whole *_ascend_pt folder below `out`."""
    root = out / "node0_20000_20251127120000000_ascend_pt"
    products = root / "ASCEND_PROFILER_OUTPUT"
    products.mkdir(parents=True, exist_ok=True)
    (root / "profiler_info_0.json").write_text(
        '{"config": {"common_config": {"schedule": {"active": 2}}, "experimental_config": {"_profiler_level": "Level1"}}, "rank_id": "0", '
        '"cann_version": "8.3.RC1", "torch_npu_version": "2.7.1"}'
    )
    end = _kernels(products / "kernel_details.csv", kernels)
    _trace(products / "trace_view.json", trace_bytes)
    steps = max(1, kernels // STEP)
    span = (end - START) / steps / 1000
    with (products / "step_trace_time.csv").open("w") as stream:
        stream.write("Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing\n")
        stream.writelines(f"0,{n},{span:.2f},0,0,0,0,{span:.2f},0,200.0\n" for n in range(steps))


def _kernels(path: pathlib.Path, count: int) -> int:
    at = START
    with path.open("w", buffering=1 << 20) as stream:
        stream.write(HEAD + "\n")
        for n in range(count):
            name, kind, core, us, blocks, shapes = FALLBACK if n % 50 == 0 else KINDS[n % 7]
            wait = n % 5 * 250
            at += wait
            took = us + n % 97 * us / 1000
            cube = core in ("AI_CORE", "MIX_AIC")
            part, ticks = f"{took * 0.7:.3f}", round(took * 1600)
            aic = f"{part},{ticks},{part},0.78,{part},0.1,{part},0.5,{part},0.8,{part},0.01,0.002"
            aiv = f"{part},{ticks},{part},0.42,{part},0.06,{part},0.71,{part},0.3,0.002"
            none = ",".join(["0.0"] * 13) if not cube else ",".join(["0.0"] * 11)
            pmu = f"{aic},{none},96.5" if cube else f"{none},{aiv},0"
            if core == "AI_CPU":
                pmu = ",".join(["N/A"] * 25)
            start = f"{at // 1000}.{at % 1000:03d}"
            stream.write(
                f'{n // STEP},0,4294967295,{1000 + n % 60000},2,{name},{kind},dynamic,{core},{start}\t,{took:.3f},{wait / 1000:.3f},{blocks},0,NO,'
                f'"""{shapes}""",DT_BF16;DT_BF16,ND;ND,"""4096,4096""",DT_BF16,ND,N/A,{pmu}\n'
            )
            at += round(took * 1000)
    return at


def _trace(path: pathlib.Path, size: int) -> None:
    meta = [
        f'{{"name": "process_name", "pid": {pid}, "tid": 0, "args": {{"name": "{name}"}}, "ph": "M"}}'
        for pid, name in LANES
    ]
    written = 0
    with path.open("w", buffering=1 << 20) as stream:
        written += stream.write("[" + ", ".join(meta))
        n = 0
        while written < size:
            ts = START // 1000 + n * 160
            name, kind, core, us, _, _ = KINDS[n % 7]
            group = (
                f', {{"ph": "X", "name": "aten::{kind.lower()}", "pid": 20000, "tid": 20000, "ts": "{ts}.000", "dur": 14.0, "cat": "cpu_op", '
                f'"args": {{"Sequence number": {n}, "Fwd thread id": 0, "Input Dims": "4096,4096", "Input type": "c10::BFloat16"}}}}'
                f', {{"ph": "X", "name": "Dequeue@aclnn{kind}", "pid": 20000, "tid": 20001, "ts": "{ts}.500", "dur": 10.8, "cat": "dequeue", '
                f'"args": {{"correlation_id": {n}}}}}'
                f', {{"ph": "X", "name": "AscendCL@aclnn{kind}", "pid": 20480224, "tid": 20001, "ts": "{ts + 2}.000", "dur": 7.2, "args": '
                f'{{"Thread Id": 20001, "Mode": "ACL_OP", "level": "acl", "id": "aclnn{kind}", "item_id": "0", "connection_id": {n}}}}}'
                f', {{"ph": "X", "name": "{name}", "pid": 20480416, "tid": 2, "ts": "{ts + 9}.250", "dur": {us}, "args": {{"Model Id": 4294967295, '
                f'"Task Type": "{core}", "Physic Stream Id": 2, "Task Id": {n % 60000}, "Batch Id": 0, "Subtask Id": 4294967295, '
                f'"connection_id": {n}}}}}'
                f', {{"ph": "s", "bp": "e", "name": "torch_to_npu", "id": {START + n}, "pid": 20000, "tid": 20000, "ts": "{ts}.000", '
                f'"cat": "async_npu"}}'
                f', {{"name": "HostToDevice{n}", "ph": "f", "id": "{n}", "ts": "{ts + 9}.250", "cat": "HostToDevice", "pid": 20480416, "tid": 2, '
                f'"bp": "e"}}'
            )
            if n % 100 == 0:
                group += f', {{"name": "AI Core Freq", "ts": "{ts}.000", "pid": 20480448, "tid": 0, "args": {{"MHz": 1800}}, "ph": "C"}}'
            written += stream.write(group)
            n += 1
        stream.write("]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--trace-mb", type=float, default=500)
    options = parser.parse_args()
    make(options.out, options.kernels, round(options.trace_mb * 1e6))


if __name__ == "__main__":
    main()
