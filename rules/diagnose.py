"""The conclusion: findings, what follows from what, and the ranked roots with their evidence and confidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from rules import calibration, causes, confidence, scan
from rules.echoes import echoes
from rules.evaluate import Evaluator, Evidences, order
from rules.model import Began, Diagnosis, Evidence, FactRow, Finding, FirstRow, Hit, MetricRow, Remark, RuleSet, Text
from rules.origin import begin
from rules.places import at_place, attempt_of, scope_of
from rules.query import Tables
from rules.seats import Attempt

EVIDENCE = 10
"""Lines cited for one diagnosis."""
DIAGNOSES = 12
"""Roots shown; further ones are consequences of a storm, not knowledge."""


class Conclusion(msgspec.Struct):
    findings: list[Finding]
    edges: list[causes.Edge]
    diagnoses: list[Diagnosis]
    noise: set[tuple[int, int]]
    """Lines (file, line) known to be harmless."""
    fired: set[int]
    """Leaves of rules that hold, noise included: an error line with one of them is explained."""
    exhausted: list[str]
    """Rules that were given up for want of steps."""
    attempts: list[Attempt] = []
    """Starts of the job, as far as the bundle knows them."""
    began: list[Began] = []
    """Where each of them began to fail."""
    failed: dict[str, str] = {}
    """Rules whose query failed, and why."""


def diagnose(
    rules: RuleSet,
    leaves: Sequence[scan.LeafRef],
    hits: list[Hit],
    counts: Mapping[int, int],
    facts: Sequence[FactRow] = (),
    metrics: Sequence[MetricRow] = (),
    onset: int | None = None,
    remarks: Sequence[Remark] = (),
    firsts: Sequence[FirstRow] = (),
    doubt: Mapping[str, int] | None = None,
    before: frozenset[str] | None = None,
    tables: Tables | None = None,
) -> Conclusion:
    """Ranked diagnoses of one incident.

    `hits` carry UTC times where known; `counts` are lines per leaf, kept or not; `onset` is the time of the first error line.
    `remarks`, `firsts`: what lines say about a job of many ranks, and the first error of each process; `doubt`: microseconds by which the
    clock of a node may be off, of nodes whose clocks were compared; `before`: rules that hold in a good run too, where there is one to
    compare with; `tables`: what profiles hold.
    Deterministic: depends on the arguments only, not on their order."""
    evaluator = Evaluator(leaves, Evidences(hits, counts, facts, metrics, tables, options_of(rules)))
    findings = evaluator.findings(rules)
    findings.sort(key=lambda finding: (order(finding.hits[0]), finding.rule.id))
    graph = causes.edges(findings, doubt)
    attempts, began = begin(remarks, firsts, findings, facts, doubt)
    held = {finding.rule.id for finding in findings}
    fired = {n for n, ref in enumerate(leaves) if rules.rules[ref.rule].id in held or rules.rules[ref.rule].role == "noise"}
    onsets = {n: causes.onset_of(findings[n], firsts, onset) for n in causes.roots(findings, graph)}
    diagnoses = _ranked(findings, graph, onsets, attempts, began, before)
    return Conclusion(findings, graph, diagnoses, evaluator.noise, fired, evaluator.exhausted, attempts, began, evaluator.failed)


def options_of(rules: RuleSet) -> dict[str, dict[str, float | str]]:
    """Pack -> option -> value."""
    return {pack.name: {option.name: option.value for option in pack.options} for pack in rules.packs if pack.options}


def _ranked(
    findings: list[Finding], graph: list[causes.Edge], onsets: Mapping[int, int | None], attempts: list[Attempt], began: list[Began],
    before: frozenset[str] | None,
) -> list[Diagnosis]:  # fmt: skip
    """Roots by weight; those of one root cause on one node are one diagnosis, with the evidence of all. `onsets`: of each root, when the
    errors began that it is of."""
    weights = {n: at_place(confidence.weigh(findings[n], onset, before), findings[n], attempts, began) for n, onset in onsets.items()}
    best = sorted(weights, key=lambda n: (-weights[n].value, order(findings[n].hits[0]), findings[n].rule.id))
    groups: dict[tuple[str, str], list[int]] = {}
    for n in best:
        groups.setdefault(_group(findings[n], groups), []).append(n)
    leaders = [members[0] for members in groups.values()][:DIAGNOSES]
    slugs = [findings[n].rule.root_cause for n in leaders]
    own = [weights[n] for n in leaders]
    rivals = [_rivals(place, [findings[n] for n in leaders]) for place in range(len(leaders))]
    sure = [confidence.confidence([own[n] for n in among], among.index(place), [slugs[n] for n in among]) for place, among in enumerate(rivals)]
    places = sorted(range(len(leaders)), key=lambda place: (-sure[place], place))
    out: list[Diagnosis] = []
    for rank, place in enumerate(places, 1):
        lead = leaders[place]
        finding, members = findings[lead], next(group for group in groups.values() if group[0] == lead)
        following = [n for member in members for n in causes.chain(member, findings, graph)]
        following = list(dict.fromkeys(n for n in following if n not in members))
        support = [findings[n] for n in members[1:]]
        contest = max((own[n].value for n in rivals[place] if slugs[n] != slugs[place]), default=0.0) / own[place].value
        features = calibration.features(finding, own[place], len(support), contest)
        chance = min(calibration.chance(features), out[-1].confidence if out else 1.0)
        out.append(
            Diagnosis(
                rank=rank,
                finding=finding,
                confidence=chance,
                level=confidence.level(chance),
                title=filled_title(finding),
                remedy={lang: [filled(text, finding) for text in texts] for lang, texts in finding.rule.remedy.items()},
                evidence=_evidence(finding, support, [findings[n] for n in following]),
                explains=[findings[n].rule.id for n in following],
                supported_by=[other.rule.id for other in support],
                explained_events=finding.occurrences + sum(findings[n].occurrences for n in (*members[1:], *following)),
                why=confidence.why(finding, own[place], len({slugs[n] for n in rivals[place]} - {finding.rule.root_cause}), chance),
                echoes=echoes([findings[n] for n in following], attempts),
                attempt=attempt_of(finding, attempts) if len(attempts) > 1 else None,
                scope=scope_of(finding, attempts, began),
                features=features,
            )
        )
    return out


def _rivals(place: int, leaders: list[Finding]) -> list[int]:
    """The places of those that explain the same thing, itself among them."""
    return [n for n, other in enumerate(leaders) if n == place or causes.contend(leaders[place], other)]


def _group(finding: Finding, groups: Mapping[tuple[str, str], object]) -> tuple[str, str]:
    """Cause and node that findings are put together by; one that knows no node (a number, a row of a profile) joins those that do."""
    cause, node = finding.rule.root_cause, finding.scope.node
    if node:
        return (cause, "") if (cause, "") in groups else (cause, node)
    return next((known for known in groups if known[0] == cause), (cause, ""))


def _evidence(finding: Finding, support: list[Finding], following: list[Finding]) -> list[Evidence]:
    """The deciding lines first, then what other rules of the same root cause saw, then occurrences, then the first consequences."""
    picked: dict[tuple[int, int, str], Evidence] = {}

    def cite(hits: Sequence[Hit], role: str) -> None:
        for hit in hits:
            key = (hit.file_id, hit.line_no, hit.text if hit.leaf < 0 else "")
            if key not in picked and len(picked) < EVIDENCE:
                picked[key] = Evidence(hit.file, hit.line_no, hit.text, role, hit.ts, file_id=hit.file_id, byte_offset=hit.byte_offset, row=hit.row)

    cite(finding.hits[: finding.deciding], "for")
    for other in support:
        cite(other.hits[: other.deciding], "for")
    cite(finding.hits[finding.deciding : finding.deciding + 2], "for")
    for other in following[:3]:
        cite(other.hits[:1], "context")
    return list(picked.values())


def filled_title(finding: Finding) -> Text:
    """The rule's title with what was captured."""
    return Text(filled(finding.rule.title.en, finding), filled(finding.rule.title.zh, finding))


_FIELD = re.compile(r"\{(?P<leaf>[a-z][a-z0-9_]*)\.(?P<name>[A-Za-z][A-Za-z0-9_]*)\}")


def filled(text: str, finding: Finding) -> str:
    """A text with {leaf.capture} replaced by what was captured; anything else in braces stays as it is."""

    def value(match: re.Match[str]) -> str:
        if match["leaf"] not in own:
            return match[0]
        return finding.captures.get(match["leaf"], {}).get(match["name"], "…")[:120]

    own = {leaf.id for leaf in scan.leaves_of(finding.rule.match)}

    return _FIELD.sub(value, text)
