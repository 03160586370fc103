"""From a scan and its conclusion to the one model of a triage (forensics.result.Triage)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics import firsts, job, overview
from forensics.advice import collect_next
from forensics.ingest import Scan
from forensics.result import BundleInfo, CodeSeen, Coverage, FactSeen, Note, Triage, Unexplained
from rules import catalog
from rules.diagnose import Conclusion, filled_title
from rules.model import FactRow, RuleSet
from rules.scan import LeafRef

UNEXPLAINED = 200
"""Shapes of unexplained error lines that the report lists; the rest is in their sum."""
CODES = 60
FIRST_ERRORS = 64
_VERSIONS = re.compile(
    r"(?:cann|driver|firmware|torch|torch_npu|vllm|vllm_ascend|mindspore|mindie|python|transformers|triton|triton_ascend|nnal|atb|toolkit)\.version"
    r"|soc|device\.count|os\.\w+|container\.image|env\.\w+|arg\.\w+"
)
_SHOWN = re.compile(r"env\.(?:ASCEND|HCCL|ACL|PYTORCH_NPU|TORCH|VLLM|TASK_QUEUE|NPU|LD_LIBRARY|OMP|MINDIE|MS_|RANK|WORLD|MASTER|CPU_AFFINITY|GE_)")


def summarise(
    version: str, rules: RuleSet, leaves: Sequence[LeafRef], bundle: BundleInfo, scan: Scan, found: Conclusion, notes: Sequence[Note] = ()
) -> Triage:
    """The report's model. Depends on its arguments alone."""
    explained, unexplained = _errors(scan, found)
    kinds = {member.kind for member in scan.files if member.lines}
    best = found.diagnoses[0] if found.diagnoses else None
    wanting = best is None or best.level != "high"
    collective = any(finding.rule.layer == "collective" for finding in found.findings)
    nodes, attempts = job.nodes(scan, found), job.attempts(found)
    titles = {finding.rule.id: filled_title(finding) for finding in found.findings}
    return Triage(
        version=version,
        packs=list(rules.packs),
        bundle=bundle,
        diagnoses=found.diagnoses,
        unexplained=unexplained[:UNEXPLAINED],
        first_errors=firsts.folded(scan.first_errors)[:FIRST_ERRORS],
        codes=_codes(scan, found),
        facts=facts_of(scan.facts),
        coverage=Coverage(scan.lines, sum(member.lines_parsed for member in scan.files), scan.error_lines, explained, scan.files),
        notes=[*notes, *scan.notes, *_remarks(rules, leaves, scan, found, len(unexplained))],
        collect_next=[*job.wanted(nodes, attempts), *(collect_next(kinds, collective) if wanting else [])],
        titles={ident: titles[ident] for diagnosis in found.diagnoses for ident in diagnosis.explains if ident in titles},
        nodes=nodes,
        attempts=attempts,
        first_by_layer=firsts.by_layer(scan.first_errors, scan.errors),
        graph=overview.graph(found),
        timeline=overview.timeline(scan, found.diagnoses),
        devices=overview.devices(scan, found),
        conflicts=overview.conflicts(scan.facts),
    )


def _errors(scan: Scan, found: Conclusion) -> tuple[int, list[Unexplained]]:
    """Error lines that a rule explains, and the shapes of those that none does: rarest first, as the odd one out tells most."""
    explained, rest = 0, []
    for shape in scan.errors:
        if any(leaf in found.fired for leaf in shape.leaves) or (shape.file_id, shape.line) in found.noise:
            explained += shape.count
        else:
            rest.append(shape)
    merged: dict[str, Unexplained] = {}
    for shape in rest:
        if known := merged.get(shape.shape):
            known.count += shape.count
        else:
            merged[shape.shape] = Unexplained(shape.shape, shape.count, shape.file, shape.line, shape.text, shape.ts)
    return explained, sorted(merged.values(), key=lambda one: (one.count, one.ts if one.ts is not None else 1 << 62, one.file, one.line))


def _codes(scan: Scan, found: Conclusion) -> list[CodeSeen]:
    """Codes on error lines and on the lines of findings, with the number of lines and the first place."""
    seen: dict[str, tuple[int, str, int]] = {}
    places: set[tuple[str, int]] = set()

    def count(text: str, file: str, line: int, number: int) -> None:
        for code in catalog.codes_in(text):
            have = seen.get(code)
            seen[code] = (have[0] + number, have[1], have[2]) if have else (number, file, line)

    for shape in scan.errors:
        places.add((shape.file, shape.line))
        count(shape.text, shape.file, shape.line, shape.count)
    for finding in found.findings:
        for hit in finding.hits[: finding.deciding + 20]:
            if hit.leaf >= 0 and (hit.file, hit.line_no) not in places:
                places.add((hit.file, hit.line_no))
                count(hit.text, hit.file, hit.line_no, 1)
    out = []
    for code, (number, file, line) in seen.items():
        if meanings := catalog.lookup(code):
            first = meanings[0]
            out.append(CodeSeen(code, first.symbol, first.meaning.en, first.meaning.zh, number, first.generic, file, line))
    return sorted(out, key=lambda one: (one.generic, -one.count, one.code))[:CODES]


def facts_of(rows: Sequence[FactRow]) -> list[FactSeen]:
    """Versions, chips and settings that a reader wants to see; each statement once for each node."""
    seen: dict[tuple[str, str, str], FactSeen] = {}
    for row in rows:
        if not _VERSIONS.fullmatch(row.name) or (row.name.startswith("env.") and not _SHOWN.match(row.name)):
            continue
        seen.setdefault((row.name, row.value, row.node), FactSeen(row.name, row.value[:300], row.node, row.file, row.line_no))
    return sorted(seen.values(), key=lambda fact: (fact.name.startswith(("env.", "arg.")), fact.name, fact.node, fact.value))[:300]


def _remarks(rules: RuleSet, leaves: Sequence[LeafRef], scan: Scan, found: Conclusion, shapes: int) -> list[Note]:
    notes = []
    for problem in rules.problems[:20]:
        notes.append(Note(f"Rule pack: {problem}", f"规则包：{problem}"))
    if len(rules.problems) > 20:
        more = len(rules.problems) - 20
        english = f"Rule pack: {more} further problems; see `dsforensics rules lint`."
        notes.append(Note(english, f"规则包：另有 {more} 个问题，见 `dsforensics rules lint`。"))
    for leaf in sorted(scan.cut):
        name = rules.rules[leaves[leaf].rule].id if 0 <= leaf < len(leaves) else str(leaf)
        english = f"A pattern of {name} took too long on a line and was left out from there on."
        notes.append(Note(english, f"规则 {name} 的一个模式匹配超时，此后不再使用。"))
    for name in found.exhausted:
        notes.append(Note(f"{name} was given up: too many lines fit its patterns.", f"规则 {name} 匹配的日志过多，已放弃判断。"))
    if found.noise:
        file_id, line = min(found.noise)
        place = f"{next((member.path for member in scan.files if member.file_id == file_id), '')}:{line}"
        count = len(found.noise)
        english = f"Known to be harmless and left out of the evidence: {count} {'line' if count == 1 else 'lines'}, the first at {place}."
        notes.append(Note(english, f"已知无害、未作为证据的日志：{count} 行，首行位于 {place}。"))
    for name, wrong in sorted(found.failed.items())[:20]:
        notes.append(Note(f"The query of {name} failed: {wrong}.", f"规则 {name} 的查询失败：{wrong}。"))
    if shapes > UNEXPLAINED:
        more = shapes - UNEXPLAINED
        notes.append(Note(f"{more} further shapes of unexplained error lines are not listed.", f"另有 {more} 类未解释的错误日志未列出。"))
    return notes
