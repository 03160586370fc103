"""The conclusion: findings, what follows from what, and the ranked roots with their evidence and confidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from rules import causes, confidence, scan
from rules.echoes import echoes, placed
from rules.evaluate import Evaluator, Evidences, order
from rules.model import LAYERS, Began, Diagnosis, Evidence, FactRow, Finding, FirstRow, Hit, MetricRow, Remark, RuleSet, Scope, Text
from rules.origin import begin
from rules.places import device_of
from rules.seats import Attempt

EVIDENCE = 10
"""Lines cited for one diagnosis."""
WAITING = frozenset({"hccl-peer-exit", "hccl-notify-wait-timeout", "hccl-connect-timeout", "slow-rank", "host-process-hang"})
"""Root causes whose lines are told by those who waited: where it was is where the job began to fail."""
AT_THE_ORIGIN, ELSEWHERE = 0.25, 0.9
"""What a finding gains of the rest to certainty at the place where the job began to fail, and what it keeps elsewhere."""
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
) -> Conclusion:
    """Ranked diagnoses of one incident.

    `hits` carry UTC times where known; `counts` are lines per leaf, kept or not; `onset` is the time of the first error line.
    `remarks`, `firsts`: what lines say about a job of many ranks, and the first error of each process; `doubt`: microseconds by which the
    clock of a node may be off, of nodes whose clocks were compared.
    Deterministic: depends on the arguments only, not on their order."""
    evaluator = Evaluator(leaves, Evidences(hits, counts, facts, metrics))
    findings = evaluator.findings(rules)
    findings.sort(key=lambda finding: (order(finding.hits[0]), finding.rule.id))
    graph = causes.edges(findings, doubt)
    attempts, began = begin(remarks, firsts, findings, facts, doubt)
    held = {finding.rule.id for finding in findings}
    fired = {n for n, ref in enumerate(leaves) if rules.rules[ref.rule].id in held or rules.rules[ref.rule].role == "noise"}
    diagnoses = _ranked(findings, graph, onset, attempts, began)
    return Conclusion(findings, graph, diagnoses, evaluator.noise, fired, evaluator.exhausted, attempts, began)


def _ranked(findings: list[Finding], graph: list[causes.Edge], onset: int | None, attempts: list[Attempt], began: list[Began]) -> list[Diagnosis]:
    """Roots by weight; those of one root cause on one node are one diagnosis, with the evidence of all."""
    weights = {n: _at_place(confidence.weigh(findings[n], onset), findings[n], attempts, began) for n in causes.roots(findings, graph)}
    best = sorted(weights, key=lambda n: (-weights[n].value, order(findings[n].hits[0]), findings[n].rule.id))
    groups: dict[tuple[str, str], list[int]] = {}
    for n in best:
        groups.setdefault((findings[n].rule.root_cause, findings[n].scope.node), []).append(n)
    leaders = [members[0] for members in groups.values()][:DIAGNOSES]
    slugs = [findings[n].rule.root_cause for n in leaders]
    own = [weights[n] for n in leaders]
    rivals = [_rivals(place, [findings[n] for n in leaders]) for place in range(len(leaders))]
    sure = [confidence.confidence([own[n] for n in among], among.index(place), [slugs[n] for n in among]) for place, among in enumerate(rivals)]
    places = sorted(range(len(leaders)), key=lambda place: (-sure[place], place))
    out = []
    for rank, place in enumerate(places, 1):
        lead = leaders[place]
        finding, members = findings[lead], groups[(findings[lead].rule.root_cause, findings[lead].scope.node)]
        following = [n for member in members for n in causes.chain(member, findings, graph)]
        following = list(dict.fromkeys(n for n in following if n not in members))
        support = [findings[n] for n in members[1:]]
        out.append(
            Diagnosis(
                rank=rank,
                finding=finding,
                confidence=sure[place],
                level=confidence.level(sure[place]),
                title=filled_title(finding),
                remedy={lang: [filled(text, finding) for text in texts] for lang, texts in finding.rule.remedy.items()},
                evidence=_evidence(finding, support, [findings[n] for n in following]),
                explains=[findings[n].rule.id for n in following],
                supported_by=[other.rule.id for other in support],
                explained_events=finding.occurrences + sum(findings[n].occurrences for n in (*members[1:], *following)),
                why=confidence.why(finding, own[place], len({slugs[n] for n in rivals[place]} - {finding.rule.root_cause})),
                echoes=echoes([findings[n] for n in following], attempts),
                attempt=_attempt_of(finding, attempts) if len(attempts) > 1 else None,
                scope=_scope(finding, attempts, began),
            )
        )
    return out


def _rivals(place: int, leaders: list[Finding]) -> list[int]:
    """The places of those that explain the same thing, itself among them."""
    return [n for n, other in enumerate(leaders) if n == place or causes.contend(leaders[place], other)]


def _attempt_of(finding: Finding, attempts: list[Attempt]) -> int | None:
    """The attempt that the deciding lines are of: by their process, else by their time."""
    for hit in finding.hits[: finding.deciding]:
        for attempt in attempts:
            if hit.pid is not None and any(seat.pid == hit.pid and seat.node == hit.node for seat in attempt.seats):
                return attempt.number
    started = [attempt.number for attempt in attempts if attempt.first is not None and finding.first is not None and attempt.first <= finding.first]
    return started[-1] if started else None


def _scope(finding: Finding, attempts: list[Attempt], began: list[Began]) -> Scope:
    """Where a diagnosis is. Who waited says whom it waited for, not itself; what a card or its driver says is of the process on that card."""
    scope, number = finding.scope, _attempt_of(finding, attempts)
    own = [attempt for attempt in attempts if attempt.number == number] or attempts
    if finding.rule.layer in LAYERS[:4]:
        deciding = finding.hits[: finding.deciding]
        device = next((device for hit in deciding if (device := device_of(hit)) is not None), None)
        near = [one for one in began if one.sure != "low" and one.node == scope.node and one.device is not None]
        if device is None and near and all(hit.node == scope.node for hit in deciding):
            device = near[0].device
        found = placed(Scope(scope.node, device, scope.rank, None), own) if device is not None else scope
        return found if found.pid is not None else Scope(scope.node, device, scope.rank, scope.pid)
    if finding.rule.root_cause in WAITING and finding.rule.layer in ("collective", "framework"):
        for one in began:
            if one.sure != "low" and (one.attempt == number or len(began) == 1):
                return Scope(one.node, one.device, one.rank, one.pid)
    return placed(scope, own)


def _at_place(weight: confidence.Weight, finding: Finding, attempts: list[Attempt], began: list[Began]) -> confidence.Weight:
    """A finding at the place where the job began to fail weighs more than one elsewhere."""
    clear = [one for one in began if one.sure == "high" and (one.rank is not None or one.pid is not None)]
    if finding.rule.role != "cause" or finding.rule.layer in ("collective", "environment") or not clear:
        return weight
    scopes = [Scope(hit.node, device_of(hit), hit.rank, hit.pid) for hit in finding.hits[:32] if hit.leaf >= 0]
    places = [placed(scope, attempts) for scope in scopes]
    known = [place for place in places if place.rank is not None or place.pid is not None]
    if not known:
        return weight
    here = any(
        (one.rank is not None and place.rank == one.rank) or (one.pid is not None and (place.node, place.pid) == (one.node, one.pid))
        for one in clear
        for place in known
    )
    value = weight.value + (1 - weight.value) * AT_THE_ORIGIN if here else weight.value * ELSEWHERE
    return msgspec.structs.replace(weight, value=min(value, 0.97))


def _evidence(finding: Finding, support: list[Finding], following: list[Finding]) -> list[Evidence]:
    """The deciding lines first, then what other rules of the same root cause saw, then occurrences, then the first consequences."""
    picked: dict[tuple[int, int, str], Evidence] = {}

    def cite(hits: Sequence[Hit], role: str) -> None:
        for hit in hits:
            key = (hit.file_id, hit.line_no, hit.text if hit.leaf < 0 else "")
            if key not in picked and len(picked) < EVIDENCE:
                picked[key] = Evidence(hit.file, hit.line_no, hit.text, role, hit.ts, file_id=hit.file_id, byte_offset=hit.byte_offset)

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
