"""Every fixed text of the reports, in both languages, in one table. Names in braces are filled in by `say`."""

from __future__ import annotations

from forensics.report.web.strings import TEXTS
from rules.model import Text

LANGUAGES = ("en", "zh")

TABLE: dict[str, Text] = {
    # the head
    "files": Text("{n} files", "{n} 个文件"),
    "files.1": Text("1 file", "1 个文件"),
    "lines": Text("{n} lines", "{n} 行"),
    "lines.1": Text("1 line", "1 行"),
    "nodes": Text("{n} nodes", "{n} 个节点"),
    "nodes.1": Text("1 node", "1 个节点"),
    "devices": Text("{n} devices", "{n} 张卡"),
    "devices.1": Text("1 device", "1 张卡"),
    "no-times": Text("no times in the logs", "日志中没有时间"),
    # what a diagnosis is about
    "node": Text("{v}", "{v}"),
    "device": Text("device {v}", "device {v}"),
    "rank": Text("rank {v}", "rank {v}"),
    "pid": Text("pid {v}", "pid {v}"),
    "level.high": Text("HIGH", "高"),
    "level.medium": Text("MEDIUM", "中"),
    "level.low": Text("LOW", "低"),
    # labels in front of the parts of a diagnosis
    "why": Text("why", "依据"),
    "for": Text("for", "证据"),
    "against": Text("against", "反证"),
    "context": Text("context", "相关"),
    "follows": Text("follows", "后果"),
    "note": Text("note", "说明"),
    "fix": Text("fix", "处理"),
    "confirm": Text("confirm", "验证"),
    "replay": Text("replay", "重跑"),
    "see": Text("see", "参考"),
    "rule": Text("rule", "规则"),
    "more-lines": Text("… {n} more lines: --verbose shows them", "… 另有 {n} 行，用 --verbose 查看"),
    "more": Text("… {n} more: --verbose shows them", "… 另有 {n} 项，用 --verbose 查看"),
    "explained-lines": Text("explains {n} error lines", "可解释 {n} 行错误日志"),
    "explained-lines.1": Text("explains 1 error line", "可解释 1 行错误日志"),
    # the job: where it began, its nodes and attempts
    "began": Text("Where it began", "故障起点"),
    "ranks": Text("ranks {v}", "各 rank：{v}"),
    "waited": Text("{n} of {total} ranks only waited", "{total} 个 rank 中有 {n} 个只是在等待"),
    "no-logs": Text("no log of it in the bundle", "日志包中没有它的日志"),
    "nodes-heading": Text("Nodes", "节点"),
    "nodes-against": Text("Nodes, clocks against that of {v}", "节点（时钟以 {v} 为准）"),
    "nodes-more": Text("The other {n} nodes: --verbose shows them", "其余 {n} 个节点用 --verbose 查看"),
    "nodes-more.1": Text("The other node: --verbose shows it", "其余 1 个节点用 --verbose 查看"),
    "node-silent": Text("no logs in the bundle, others speak of it", "日志包中没有该节点的日志，仅由其他节点提到"),
    "clock-ahead": Text(
        "clock {apart} ahead (± {within}, by {by}), taken off its times", "时钟偏快 {apart}（误差 ± {within}，依据 {by}），已从其时间中扣除"
    ),
    "clock-behind": Text(
        "clock {apart} behind (± {within}, by {by}), added to its times", "时钟偏慢 {apart}（误差 ± {within}，依据 {by}），已补入其时间"
    ),
    "clock-agrees": Text("clock agrees within {within}", "时钟一致，误差在 {within} 以内"),
    "compared.joins": Text("{n} communicators set up together", "{n} 个共同建立的通信域"),
    "compared.joins.1": Text("1 communicator set up together", "1 个共同建立的通信域"),
    "compared.failures": Text("{n} timeouts waited out together", "{n} 次共同等到的超时"),
    "compared.failures.1": Text("1 timeout waited out together", "1 次共同等到的超时"),
    "attempt": Text("attempt {v}", "第 {v} 次启动"),
    "attempts-heading": Text("Attempts of the job", "任务的各次启动"),
    "attempt-ranks": Text("{n} ranks, logs of {known}", "{n} 个 rank，其中 {known} 个有日志"),
    "attempt-began": Text("began at {where}", "起点为 {where}"),
    "attempt-diagnoses": Text("diagnoses {v}", "对应诊断 {v}"),
    "echo-ranks": Text("{text} (on {n} ranks)", "{text}（{n} 个 rank）"),
    "echo-processes": Text("{text} (in {n} processes)", "{text}（{n} 个进程）"),
    "alike": Text("and {n} more processes alike", "另有 {n} 个进程相同"),
    "alike.1": Text("and 1 more process alike", "另有 1 个进程相同"),
    "first-by-layer": Text("First error of each layer", "各层的首个错误"),
    # when nothing fits
    "unknown": Text("Cause unknown: no rule explains these errors.", "原因未知：没有规则能解释这些错误。"),
    "healthy": Text("Nothing wrong found: no error line, and no rule fired.", "未发现异常：没有错误行，也没有规则命中。"),
    "no-cause": Text(
        "No rule names a cause. The rules explain every error line as a harmless or a secondary one.",
        "没有规则给出原因。所有错误行都已被规则判定为无害或次生现象。",
    ),
    "first-errors": Text("First error of each process", "各进程的首个错误"),
    "shapes": Text("Rarest kinds of unexplained error lines", "未解释错误行中最少见的几类"),
    # the foot
    "explained": Text("Explained {n} of {total} error lines.", "共 {total} 行错误日志，已解释 {n} 行。"),
    "unexplained": Text("Error lines that no rule explains yet: {n} (kinds: {kinds})", "尚无规则能解释的错误行：{n} 行（{kinds} 类）"),
    "codes": Text("Codes seen", "出现的错误码"),
    "generic": Text("says little by itself", "通用码，单凭它不能定位"),
    "facts": Text("Environment", "环境"),
    "marks": Text("Marked lines", "标记的日志行"),
    "notes": Text("Notes on this run", "本次分析的说明"),
    "coverage": Text("Coverage", "覆盖情况"),
    "coverage-lines": Text(
        "{parsed} of {lines} lines were read by a grammar; the others are kept as text.", "共 {lines} 行，按语法解析 {parsed} 行，其余按文本保留。"
    ),
    "unread": Text("Not read, or only in part: {n}", "未读取或仅部分读取：{n} 个"),
    "left-out": Text("Links, devices and the like, left out on purpose: {n}", "链接、设备等，按设计跳过：{n} 个"),
    "unrecognised": Text("Of no known kind: {n} files, kept as text", "类型未识别：{n} 个文件，按文本保留"),
    "unrecognised.1": Text("Of no known kind: 1 file, kept as text", "类型未识别：1 个文件，按文本保留"),
    "binary": Text("Binary, not read as logs: {n} files", "二进制文件，未按日志读取：{n} 个"),
    "binary.1": Text("Binary, not read as logs: 1 file", "二进制文件，未按日志读取：1 个"),
    "status.damaged": Text("damaged", "已损坏"),
    "status.skipped": Text("left out", "已跳过"),
    "collect": Text("Collect next", "建议补充收集"),
    "case": Text("Case", "案例"),
    "report": Text("Report", "报告"),
    "ask": Text("Ask", "查询"),
    # beside a good run
    "baseline": Text("Compared with the good run {name} ({lines} lines)", "与正常运行 {name}（{lines} 行）对比"),
    "novel": Text("Kinds of lines that the good run does not have: {n}", "正常运行中没有的日志：{n} 类"),
    "was": Text("there: {text}", "正常时：{text}"),
    "changed": Text("Versions and settings that differ: {n}", "不同的版本与设置：{n} 项"),
    "more-often": Text("Far more frequent than in the good run", "远比正常运行频繁"),
    "gone": Text("In the good run, but hardly or not at all here", "正常运行中有，而此处几乎没有"),
    "slower": Text("Clearly slower than in the good run, mean times: {n}", "平均耗时明显长于正常运行：{n} 项"),
    "slower-row": Text("{name}: {before} → {after} ({ratio} ×; {more})", "{name}：{before} → {after}（{ratio} 倍；{more}）"),
    "slower.step": Text("mean step", "平均单步"),
    "slower.computing": Text("computing of a mean step", "平均单步计算"),
    "slower-calls": Text("{before} → {after} calls, {share} of the computing time", "调用 {before} → {after} 次，占计算时间 {share}"),
    "slower-steps": Text("{before} → {after} steps", "{before} → {after} 步"),
    "slower-part": Text("{steps}; most of it {part}: {before} → {after}", "{steps}；主要增长在{part}：{before} → {after}"),
    "part.computing": Text("computing", "计算"),
    "part.exposed": Text("communication that nothing overlaps", "未掩盖通信"),
    "part.free": Text("idle time", "空闲"),
    "times": Text("{n} ×", "{n} 倍"),
    "place-row": Text("{place} (row {row})", "{place}（第 {row} 行数据）"),
    "rate": Text("{after} × instead of {expected}", "{after} 次（按正常速率应为 {expected} 次）"),
    "same": Text(
        "Nothing differs from it: no new kind of line, no other version or setting, nothing slower.",
        "未发现差异：没有新的日志类型，版本与设置相同，没有变慢的算子或单步。",
    ),
    "absent": Text("not set", "未设置"),
    # Markdown
    "heading": Text("Triage of {name}", "{name} 的故障分析"),
    "diagnoses": Text("Diagnoses", "诊断"),
    "evidence": Text("Evidence", "证据"),
    "made-by": Text("Made by dsforensics {version} with {packs}.", "由 dsforensics {version} 生成，规则包：{packs}。"),
    "left-for-room": Text(
        "{n} further parts do not fit here; report.html has all of it.", "受篇幅限制，另有 {n} 部分未列出，完整内容见 report.html。"
    ),
    "left-for-room.1": Text(
        "1 further part does not fit here; report.html has all of it.", "受篇幅限制，另有 1 部分未列出，完整内容见 report.html。"
    ),
    "no-packs": Text("no rule packs", "无"),
    "confidence": Text("confidence", "置信度"),
    "unexplained-heading": Text("Error lines without a rule", "没有对应规则的错误行"),
    # checks before go-live
    "preflight": Text("Checks before go-live", "上线前检查"),
    "checked": Text("{passed} passed, {failed} failed, {open} not checked", "通过 {passed} 项，未通过 {failed} 项，未检查 {open} 项"),
    "check.pass": Text("pass", "通过"),
    "check.fail": Text("FAIL", "未通过"),
    "check.not-checked": Text("not checked", "未检查"),
    "check.group": Text("Subject", "类别"),
    "check.name": Text("Check", "检查项"),
    "check.result": Text("Result", "结果"),
    "group.versions": Text("versions", "版本"),
    "group.hbm": Text("memory and cards", "显存与设备"),
    "group.links": Text("links", "链路"),
    "group.environment": Text("environment", "环境"),
    "group.clocks": Text("clocks", "时钟"),
    "wanting": Text("not in the bundle: {names}", "日志包中缺少：{names}"),
    "undecided": Text("too many values to compare", "数据过多，无法比较"),
    # codes asked for by hand
    "code-unknown": Text("No code reads {code}.", "没有找到错误码 {code}。"),
    "code-near": Text("Close to it: {codes}", "相近的错误码：{codes}"),
    "becomes": Text("becomes", "上报为"),
    "made-from": Text("made from", "可能源自"),
    "written": Text("written", "写法"),
    "source": Text("source", "来源"),
    "provenance.official": Text("official", "官方"),
    "provenance.field": Text("field", "现场经验"),
    "provenance.inferred": Text("inferred", "推断"),
    # a rule that is asked why
    "found": Text("found", "已找到"),
    "not-found": Text("not found", "未找到"),
    "optional": Text("not needed", "非必需"),
    "part-lines": Text("lines: {lines}, of them fitting: {admitted}", "匹配 {lines} 行，其中符合条件 {admitted} 行"),
    "where": Text("where", "条件"),
    "where-held": Text("holds", "成立"),
    "where-failed": Text("does not hold", "不成立"),
    "where-open": Text("not asked: a pattern is missing", "未判断：缺少匹配的日志"),
    "follows-from": Text("follows from", "源于"),
    "doubts": Text("doubts", "存疑"),
    "fact-unknown": Text("{name} is not known", "{name} 未知"),
    # progress
    "stage.read": Text("reading", "读取"),
    "stage.rules": Text("applying rules", "应用规则"),
    "stage.index": Text("storing lines", "建立索引"),
    "stage.copy": Text("copying", "写入"),
    "stage.finding": Text("so far", "目前判断"),
    **TEXTS,
}


def say(lang: str, key: str, **values: object) -> str:
    """The text of `key` in `lang`, filled in. With `n` equal to 1 the key's singular is taken where there is one."""
    text = TABLE.get(f"{key}.1") if str(values.get("n")) == "1" else None
    filled = (text or TABLE[key]).of(lang).format(**values)
    return filled.replace("万 行", "万行").replace("亿 行", "亿行").replace("万 个", "万个")


def of(texts: dict[str, list[str]], lang: str) -> list[str]:
    """The list in `lang`, or in the other language where the author gave only that."""
    return texts.get(lang) or next((items for items in texts.values() if items), [])
