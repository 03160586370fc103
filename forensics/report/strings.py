"""Every fixed text of the reports, in both languages, in one table. Names in braces are filled in by `say`."""

from __future__ import annotations

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
    # Markdown
    "heading": Text("Triage of {name}", "{name} 的故障分析"),
    "diagnoses": Text("Diagnoses", "诊断"),
    "evidence": Text("Evidence", "证据"),
    "made-by": Text("Made by dsforensics {version} with {packs}.", "由 dsforensics {version} 生成，规则包：{packs}。"),
    "no-packs": Text("no rule packs", "无"),
    "confidence": Text("confidence", "置信度"),
    "unexplained-heading": Text("Error lines without a rule", "没有对应规则的错误行"),
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
    "stage.finding": Text("so far", "目前判断"),
}


def say(lang: str, key: str, **values: object) -> str:
    """The text of `key` in `lang`, filled in. With `n` equal to 1 the key's singular is taken where there is one."""
    text = TABLE.get(f"{key}.1") if str(values.get("n")) == "1" else None
    filled = (text or TABLE[key]).of(lang).format(**values)
    return filled.replace("万 行", "万行").replace("亿 行", "亿行").replace("万 个", "万个")


def of(texts: dict[str, list[str]], lang: str) -> list[str]:
    """The list in `lang`, or in the other language where the author gave only that."""
    return texts.get(lang) or next((items for items in texts.values() if items), [])
