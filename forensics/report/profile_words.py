"""The words of the profile report, in both languages."""

from __future__ import annotations

MISSING: dict[str, tuple[str, str]] = {
    "profile": (
        "No profile is in the bundle, so steps, operators, ranks and memory were not looked at. Capture some steps with torch_npu.profiler "
        "(Level1, aic_metrics=PipeUtilization, profile_memory=True, a schedule) and add the *_ascend_pt folders after their analysis.",
        "数据包中没有性能数据，未检查单步、算子、rank 和显存。请用 torch_npu.profiler 采集若干步（Level1、aic_metrics=PipeUtilization、"
        "profile_memory=True、设置 schedule），解析后附上 *_ascend_pt 目录。",
    ),
    "steps": (
        "Step breakdown: no step_trace_time.csv, and no overlap lane in a trace.",
        "单步拆解：没有 step_trace_time.csv，trace 中也没有 Overlap 泳道。",
    ),
    "kernels": ("Operators: no kernel_details.csv or op_summary_*.csv.", "算子：没有 kernel_details.csv 或 op_summary_*.csv。"),
    "pmu": (
        "What limits the operators: the capture has no counters (Level1 or above, aic_metrics=PipeUtilization).",
        "算子瓶颈单元：未采集 PMU（需 Level1 及以上，aic_metrics=PipeUtilization）。",
    ),
    "api": (
        "Calls of the host (synchronising, compiling, allocating): no api_statistic.csv (Level1 or above) and no CANN lane in a trace.",
        "Host 侧接口（同步、编译、内存申请）：没有 api_statistic.csv（需 Level1 及以上），trace 中也没有 CANN 泳道。",
    ),
    "operators": (
        "Loading of data, SyncBatchNorm: no operator_details.csv (ProfilerActivity.CPU).",
        "数据加载、SyncBatchNorm：没有 operator_details.csv（需 ProfilerActivity.CPU）。",
    ),
    "memory": ("Memory over time: no memory_record.csv (profile_memory=True).", "显存趋势：没有 memory_record.csv（需 profile_memory=True）。"),
    "allocations": (
        "Memory that is never released: no operator_memory.csv (profile_memory=True).",
        "未释放的显存：没有 operator_memory.csv（需 profile_memory=True）。",
    ),
    "l2_cache": ("Hit rate of L2: no l2_cache.csv (l2_cache=True).", "L2 命中率：没有 l2_cache.csv（需 l2_cache=True）。"),
    "trace": (
        "Pauses of garbage collection, copies, waits of streams, alignment: no event of them in a trace_view.json.",
        "GC 停顿、拷贝、流间等待、对齐：trace_view.json 中没有相关事件。",
    ),
    "clocks": ("Clock of the AI Core: no frequency in a trace or database.", "AI Core 频率：trace 或数据库中没有频率数据。"),
    "step-ids": (
        "Single steps: the kernels carry no step ids (captured without schedule and step()), so they were taken together.",
        "逐步分析：算子没有 Step Id（采集时未设置 schedule 和 step()），已合并统计。",
    ),
    "ranks": ("Ranks compared, slow links: the profile of one rank only.", "rank 对比、慢链路：仅有一个 rank 的数据。"),
    "comms": (
        "Collectives (waiting, sizes, retransmission): no communication.json (Level1 or above, more than one rank).",
        "集合通信（等待、包大小、重传）：没有 communication.json（需 Level1 及以上、多 rank）。",
    ),
    "links": ("Single links: no communication_matrix.json.", "单条链路：没有 communication_matrix.json。"),
    "service": (
        "Serving (KV cache, queue, first token): no /metrics scrape and no benchmark result.",
        "服务指标（KV cache、排队、首 token）：没有 /metrics 抓取或压测结果。",
    ),
    "raw": ("A profile holds raw data only: analyse it first.", "存在未解析的原始性能数据：请先解析。"),
}

TEXTS: dict[str, tuple[str, str]] = {
    "captures": ("Captures", "采集"),
    "step": ("A mean step", "平均单步"),
    "operators": ("Slowest operators", "耗时算子"),
    "ranks": ("Ranks", "rank 对比"),
    "links": ("Communication", "通信"),
    "memory": ("Peak memory", "显存峰值"),
    "service": ("Serving", "服务指标"),
    "not-checked": ("Not checked", "未检查"),
    "damaged": ("Read in part", "部分读取"),
    "findings": ("Findings", "结论"),
    "none": ("Nothing found that explains a loss of performance.", "未发现可解释性能问题的原因。"),
    "rank": ("rank", "rank"),
    "computing": ("computing", "计算"),
    "exposed": ("exposed comm.", "未掩盖通信"),
    "free": ("free", "空闲"),
    "bubble": ("bubble", "气泡"),
    "preparing": ("preparing", "准备"),
    "type": ("operator", "算子"),
    "core": ("core", "核"),
    "count": ("count", "次数"),
    "total": ("total ms", "总 ms"),
    "share": ("share", "占比"),
    "longest": ("longest ms", "最长 ms"),
    "bound": ("limited by", "瓶颈单元"),
    "where": ("longest at", "最长处"),
    "row": ("row {row}", "第 {row} 行"),
    "not measured": ("not measured", "未采集"),
    "no-bound": ("none", "无"),
    "against": ("against median", "与中位数之比"),
    "waits": ("waits", "等待占比"),
    "link": ("link", "链路"),
    "size": ("MB", "MB"),
    "time": ("ms", "ms"),
    "component": ("component", "组件"),
    "reserved": ("reserved MB", "预留 MB"),
    "allocated": ("allocated MB", "占用 MB"),
    "series": ("series", "指标"),
    "first": ("first", "首值"),
    "last": ("last", "末值"),
    "highest": ("highest", "最高"),
    "steps": ("{n} steps", "{n} 步"),
    "no-steps": ("no step ids", "无 Step Id"),
    "raw": ("raw data, not analysed", "原始数据，未解析"),
    "from-trace": ("Summed from the overlap lane of the trace: the whole capture as one step.", "由 trace 的 Overlap 泳道汇总：整个采集视为一步。"),
    "from-kernels": (
        "Summed from the kernels: computing only; communication and idle time are not known.",
        "由算子耗时汇总：仅含计算，通信与空闲时间未知。",
    ),
    "more": ("… {n} more: --verbose shows them", "… 另有 {n} 项：--verbose 可显示"),
}


def say(lang: str, key: str, **values: object) -> str:
    text = TEXTS[key][1 if lang == "zh" else 0]
    return text.format(**values) if values else text


def missing(key: str, lang: str) -> str:
    return MISSING[key][1 if lang == "zh" else 0]
