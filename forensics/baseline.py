"""An incident beside a good run: lines of shapes that the good run does not have, other versions and settings, other rates,
and, where both hold profiles, operators and steps that have become slower.

It needs no rule, so it shows something where no rule fits; and what the rules found counts for less where they find it in the good run too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from forensics import ingest, shapes, slower, summary
from forensics.bundle import Bundle
from forensics.clocks import FileClock
from forensics.origin import of_path
from forensics.profiles import Profiles
from forensics.result import Baseline, ChangedFact, ChangedRate, FactSeen, NovelShape
from rules.diagnose import diagnose
from rules.model import RuleSet
from rules.scan import Scanner

NOVEL = 100
"""Novel shapes that the report lists."""
GROUP = 2
"""Lines of one file that are listed before other files have their turn."""
CHANGED = 100
RATES = 20
SLOWER = 100
"""Operators and steps that the report lists."""
TIMES = 5.0
"""A rate that is so many times what it was in the good run has changed."""
SOME = 20
"""Lines from which a shape has a rate."""
SHORTEST = 60_000_000
"""Microseconds that both runs must last for rates by time; else they are by lines."""

_ERROR = re.compile(ingest.EXTRA[0].regex)
_ALARM = re.compile(
    r"fail|error|abort|refus|\blost\b|time[d-]? ?out|\bdown\b|den(?:y|ied)|unable|cannot|can't|exception|corrupt|mismatch|unexpected|invalid|killed"
    r"|\boom\b|fault|not found|missing|illegal|panic|\bhang|hung|stuck|degrad|exceed|insufficient|overflow|unavailable|unreachable|disconnect|isolat"
    r"|alarm|critical|downgraded|retry|retries|inconsistent|overheat|throttl|异常|失败|超时|错误|故障|告警|不一致|丢失|断开",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"\s*(?:\([\w.:]{1,80}(?: rank=\d+)? pid=\d+[^)]*\) )?(?:[A-Z]+ [\d-]+ [\d:.,]+ \[[^\]]*\] )?"
    r"(?:File \"|Traceback \(most|TraceBack \(most|at 0x|#\d+ |\^+|\s{4,})"
)
"""Lines inside a trace: what they belong to says more."""
_FLEETING = re.compile(
    r"env\.(?:HOSTNAME|PWD|OLDPWD|RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|RANK_ID|DEVICE_ID|GROUP_RANK|NODE_RANK|VC_\w+|MA_\w+|KUBERNETES_\w+"
    r"|SLURM_\w+|.*_ID|.*_PORT)|device\.count|arg\.(?:port|host|seed|master_\w+|node_rank)"
)
"""Settings that differ from run to run and tell nothing."""


class Good:
    """What is known of the good run."""

    def __init__(self, bundle: Bundle, scan: ingest.Scan, counted: shapes.Counted, held: frozenset[str], timed: slower.Timed | None = None):
        self.name, self.sha256, self.held = bundle.name, bundle.sha256, held
        self.lines, self.files = scan.lines, sum(member.status != "skipped" for member in scan.files)
        self.span = _span(scan)
        self.facts = summary.facts_of(scan.facts)
        self.counted = counted
        self.timed = timed
        """What its profiles took; None without profiles."""


def read(
    bundle: Bundle, rules: RuleSet, scanner: Scanner, workers: int | None = None, zone: int | None = None, scratch: Callable[[], Path] | None = None
) -> Good:
    """Scan the bundle of the good run; its profiles too, where there is a folder for their tables. Raises ForensicsError where it cannot be
    read."""
    profiles = Profiles(scratch) if scratch is not None else None
    try:
        scan = ingest.scan(bundle, scanner, workers, zone, divert=None if profiles is None else profiles.take)
        tables = None if profiles is None else profiles.finish(scan)
        onset = min((first.ts for first in scan.first_errors if first.ts is not None), default=None)
        found = diagnose(rules, scanner.leaves, scan.hits, scan.counts, scan.facts, scan.metrics, onset, tables=tables)
        timed = None if profiles is None or tables is None else times_of(profiles, scan)
    finally:
        if profiles is not None:
            profiles.close()
    with bundle.reopen() as again:
        counted = shapes.count(again, workers)
    return Good(bundle, scan, counted, frozenset(finding.rule.id for finding in found.findings), timed)


def times_of(profiles: Profiles, scan: ingest.Scan) -> slower.Timed:
    """What the operators and steps of a run took, by its profiles, which are finished and not closed."""
    return slower.timed(profiles.loader.connection, {member.file_id: member.path for member in scan.files})


def compare(good: Good, scan: ingest.Scan, counted: shapes.Counted, timed: slower.Timed | None = None) -> Baseline:
    """What differs in the incident; `scan`, `counted` and `timed` (None: no profiles) are of its bundle."""
    novel = [shape for key, shape in counted.shapes.items() if key not in good.counted.shapes and shape.text]
    constant = _constants(good.counted, counted)
    novel += [shape for shape, _ in constant]
    was = {id(shape): before for shape, before in constant}
    times = {id(shape): _utc(shape, scan.clocks) for shape in novel}
    rows = _ranked(novel, times)
    up, gone = _rates(good, scan, counted)
    slow = slower.compare(good.timed, timed) if good.timed is not None and timed is not None else []
    return Baseline(
        name=good.name, sha256=good.sha256, files=good.files, lines=good.lines,
        novel=[_row(shape, counted, times[id(shape)], was.get(id(shape), "")) for shape in rows[:NOVEL]], novel_total=len(novel),
        changed=_changes(good.facts, summary.facts_of(scan.facts))[:CHANGED], more=up[:RATES], gone=gone[:RATES],
        slower=slow[:SLOWER], slower_total=len(slow),
    )  # fmt: skip


def _utc(shape: shapes.Shape, clocks: Mapping[int, FileClock]) -> int | None:
    shapes.dated(shape)
    clock = clocks.get(shape.file_id)
    return None if clock is None else clock.utc(shape.ts, shape.clock)


def _weight(shape: shapes.Shape) -> int:
    """3 errors, 2 warnings and what sounds like one, 1 the rest; 0 lines inside a trace."""
    if _FRAME.match(shape.text):
        return 0
    if shape.severity in ("ERROR", "FATAL", "CRITICAL") or _ERROR.search(shape.text):
        return 3
    return 2 if shape.severity == "WARNING" or _ALARM.search(shape.text) else 1


def _ranked(novel: Sequence[shapes.Shape], times: Mapping[int, int | None]) -> list[shapes.Shape]:
    """Most telling first: errors before warnings before the rest, and of each the earliest. A warning that comes before all errors is as
    telling as they are, and a line without a time may be as early as any. A file that fails at length does not crowd out the others: GROUP
    lines of each file come before the next GROUP of any."""
    weights = {id(shape): _weight(shape) for shape in novel}
    known = [ts for shape in novel if (ts := times[id(shape)]) is not None and weights[id(shape)] == 3]
    onset = min(known, default=0)
    for shape in novel:
        ts = times[id(shape)]
        if weights[id(shape)] == 2 and (ts is None or ts <= onset):
            weights[id(shape)] = 3

    def order(shape: shapes.Shape) -> tuple[int, int, int, int]:
        ts = times[id(shape)]
        return (-weights[id(shape)], ts if ts is not None else onset, shape.file_id, shape.line)

    ordered = sorted(novel, key=order)
    turn: dict[tuple[int, int], int] = {}
    rows = []
    for place, shape in enumerate(ordered):
        of = (shape.file_id, weights[id(shape)])
        turn[of] = turn.get(of, 0) + 1
        rows.append((-weights[id(shape)], (turn[of] - 1) // GROUP, place, shape))
    return [shape for _, _, _, shape in sorted(rows, key=lambda row: row[:3])]


def _constants(good: shapes.Counted, counted: shapes.Counted) -> list[tuple[shapes.Shape, str]]:
    """Lines of tables that were always the same in the good run, several times over, and are not here; with what they were."""
    out = []
    for key, rows in counted.values.items():
        before = good.values.get(key, {})
        if len(before) != 1 or len(rows) > shapes.VALUES:
            continue
        ((text, known),) = before.items()
        if known.count >= 2:
            out += [
                (shapes.Shape(row.count, row.file_id, row.line, line, severity="WARNING"), text) for line, row in rows.items() if line != text
            ]  # fmt: skip
    return out


def _row(shape: shapes.Shape, counted: shapes.Counted, ts: int | None, was: str) -> NovelShape:
    path = counted.files[shape.file_id]
    origin = of_path(path)
    device = shape.device if shape.device is not None else origin.device
    return NovelShape(shape.text.strip(), shape.count, path, shape.line, ts, shape.severity, origin.node or shape.node, device, was)


# ---------------------------------------------------------------- versions and settings


def _changes(before: Sequence[FactSeen], after: Sequence[FactSeen]) -> list[ChangedFact]:
    """Versions and settings that differ. What only one run tells of is no difference, unless the other tells of its kind."""
    old, new = _by_name(before), _by_name(after)
    kinds = {name.partition(".")[0] for name in old} & {name.partition(".")[0] for name in new} & {"env", "arg"}
    out = []
    for name in sorted(old.keys() | new.keys()):
        left, right = old.get(name, {}), new.get(name, {})
        if left.keys() == right.keys() or _FLEETING.fullmatch(name):
            continue
        if (not left or not right) and name.partition(".")[0] not in kinds:
            continue
        place = next(iter(right.values()), None)
        out.append(ChangedFact(name, list(left), list(right), place.file if place else "", place.line if place else 0))
    return sorted(out, key=lambda one: (not one.name.endswith(".version"), not (one.before and one.after), one.name))


def _by_name(facts: Sequence[FactSeen]) -> dict[str, dict[str, FactSeen]]:
    """Name -> value -> its first place."""
    found: dict[str, dict[str, FactSeen]] = {}
    for fact in facts:
        found.setdefault(fact.name, {}).setdefault(fact.value, fact)
    return {name: dict(sorted(values.items())) for name, values in found.items()}


# ---------------------------------------------------------------- rates


def _rates(good: Good, scan: ingest.Scan, counted: shapes.Counted) -> tuple[list[ChangedRate], list[ChangedRate]]:
    """Shapes that both runs have, but one far more often; and those that are gone. By time where both runs last long enough, else by lines."""
    here, there = _span(scan), good.span
    by_time = here >= SHORTEST and there >= SHORTEST
    scale = here / there if by_time else counted.lines / max(1, good.counted.lines)
    up: list[tuple[float, ChangedRate]] = []
    gone: list[tuple[float, ChangedRate]] = []
    for key, before in good.counted.shapes.items():
        after = counted.shapes.get(key)
        expected = before.count * scale
        if after is not None and after.text and after.count >= SOME and after.count >= TIMES * max(expected, 1.0):
            _utc(after, scan.clocks)
            row = ChangedRate(after.text.strip(), before.count, after.count, round(expected, 1), counted.files[after.file_id], after.line)
            up.append(((_weight(after) >= 2) * 1e6 + after.count / max(expected, 1.0), row))
        elif before.text and before.count >= SOME and expected >= SOME and (after is None or after.count * TIMES <= expected):
            left = after.count if after is not None else 0
            row = ChangedRate(before.text.strip(), before.count, left, round(expected, 1), good.counted.files[before.file_id], before.line)
            gone.append((expected / (1.0 + row.after), row))
    return _most(up), _most(gone)


def _most(rows: list[tuple[float, ChangedRate]]) -> list[ChangedRate]:
    return [row for _, row in sorted(rows, key=lambda one: (-one[0], one[1].file, one[1].line))]


def _span(scan: ingest.Scan) -> int:
    """Microseconds from the first to the last time of a run's logs."""
    return 0 if scan.first is None or scan.last is None else scan.last - scan.first
