"""What a report draws: the causal graph, the timeline and the state of the cards, worked out of a scan and its conclusion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from forensics.ingest import Scan
from forensics.result import Conflict, Device, Graph, Lane, Link, Reading, Step, Timeline, Window
from rules import versions
from rules.diagnose import Conclusion, filled_title
from rules.model import Diagnosis, FactRow

STEPS = 160
"""Findings of the causal graph."""
LANES = 48
BINS = 120
"""Of a window."""
WIDTHS = (10, 60, 600, 3600, 6 * 3600, 86_400, 7 * 86_400)
"""Seconds a window around the cause may be wide."""
BEFORE = 0.2
"""Share of that window that lies before the cause."""
ENOUGH = 0.6
"""Share of the error lines it has to show."""
SMALLER = 3
"""So many times shorter than the whole, or it is not worth having."""
DEVICES = 4096
READINGS = (
    "npu.temperature", "npu.power", "npu.aicore.usage", "npu.usage", "npu.hbm.used", "npu.hbm.total", "npu.hbm.usage", "npu.hbm.bank.usage",
    "npu.memory.used", "npu.memory.total", "npu.memory.usage", "link.status",
)  # fmt: skip
_HEALTH = re.compile(r"device\.(\d{1,6})\.health")
_FINE = ("ok", "na", "n/a", "unknown", "")
SECOND = 1_000_000


# ---------------------------------------------------------------- the causal graph


def graph(found: Conclusion) -> Graph:
    """The diagnoses' findings and all that follows from them, with the links that are not implied by others."""
    number = {finding.rule.id: n for n, finding in enumerate(found.findings)}
    wanted = [ident for d in found.diagnoses for ident in (d.finding.rule.id, *d.supported_by, *d.explains)]
    chosen = list(dict.fromkeys(number[ident] for ident in wanted if ident in number))[:STEPS]
    place = {n: at for at, n in enumerate(chosen)}
    steps = [
        Step(one.rule.id, filled_title(one), one.rule.layer, one.scope, one.first, one.occurrences) for one in (found.findings[n] for n in chosen)
    ]
    links = {(place[edge.cause], place[edge.effect]): edge.reason == "rule" for edge in found.edges if edge.cause in place and edge.effect in place}
    return Graph(steps, [Link(cause, effect, stated) for (cause, effect), stated in sorted(_reduced(links).items())])


def _reduced(links: dict[tuple[int, int], bool]) -> dict[tuple[int, int], bool]:
    """Without the links that a longer way implies (the links close no circle)."""
    below: dict[int, list[int]] = {}
    for cause, effect in sorted(links):
        below.setdefault(cause, []).append(effect)
    reach: dict[int, frozenset[int]] = {}

    def reached(start: int) -> frozenset[int]:
        waiting = [start]
        while waiting:  # no recursion: a chain may be long
            at = waiting[-1]
            missing = [effect for effect in below.get(at, ()) if effect not in reach]
            if missing:
                waiting += missing
                continue
            reach[at] = frozenset(below.get(at, ())).union(*(reach[effect] for effect in below.get(at, ())))
            waiting.pop()
        return reach[start]

    for cause in below:
        reached(cause)
    return {
        (cause, effect): stated
        for (cause, effect), stated in links.items()
        if not any(effect in reach[other] for other in below[cause] if other != effect)
    }


# ---------------------------------------------------------------- the timeline


def timeline(scan: Scan, diagnoses: Sequence[Diagnosis]) -> Timeline:
    """Error lines over time, a lane for each node and source."""
    lanes: dict[tuple[str, str], Lane] = {}
    of_file: dict[int, tuple[str, str]] = {}
    for member in scan.files:
        if member.status in ("skipped", "binary") or not member.lines:
            continue
        key = of_file[member.file_id] = member.node, member.kind or "text"
        lane = lanes.get(key)
        if lane is None:
            lane = lanes[key] = Lane(*key, None, None, 0, 0, [])
        lane.lines += member.lines
        lane.errors += scan.errors_of.get(member.file_id, 0)
        if member.first is not None:
            lane.first = member.first if lane.first is None else min(lane.first, member.first)
        if member.last is not None:
            lane.last = member.last if lane.last is None else max(lane.last, member.last)
    moments = [(ts, count, of_file[file_id]) for file_id, ts, count in scan.moments if file_id in of_file]
    roots = [d.finding.first for d in diagnoses if d.finding.first is not None]
    windows = _windows([(ts, count) for ts, count, _ in moments], roots)
    for lane in lanes.values():
        lane.bars = [{} for _ in windows]
    for ts, count, key in moments:
        for window, bars in zip(windows, lanes[key].bars, strict=True):
            if 0 <= (at := (ts - window.start) // window.step) < window.bins:
                bars[at] = bars.get(at, 0) + count
    shown = sorted((lane for lane in lanes.values() if lane.errors or lane.first is not None), key=lambda one: (-one.errors, one.node, one.source))
    kept = sorted(shown[:LANES], key=lambda one: (one.node, one.first if one.first is not None else 1 << 62, one.source))
    return Timeline(windows, kept, max(0, len(shown) - LANES)) if windows else Timeline()


def _windows(moments: list[tuple[int, int]], roots: list[int]) -> list[Window]:
    """The whole time in which errors were printed and, where that is much longer than the incident, the time around the cause."""
    times = [ts for ts, _ in moments] + roots
    if not times:
        return []
    begin, end = min(times), max(times)
    out = [_window(begin, end)]
    total = sum(count for _, count in moments)
    centre = roots[0] if roots else min(ts for ts, _ in moments)
    for seconds in WIDTHS:
        width = seconds * SECOND
        if width * SMALLER > end - begin:
            break
        start = max(begin, centre - round(width * BEFORE))
        if sum(count for ts, count in moments if start <= ts < start + width) >= ENOUGH * total:
            out.append(_window(start, start + width))
            break
    return out


def _window(begin: int, end: int) -> Window:
    """`begin` to `end` and a little around, so that nothing sticks to the edge."""
    margin = max(SECOND // 10, (end - begin) // 50)
    step = max(1000, -(-(end - begin + 2 * margin) // BINS))
    return Window(begin - margin, step, BINS)


# ---------------------------------------------------------------- cards and versions


def devices(scan: Scan, found: Conclusion) -> list[Device]:
    """The cards that numbers, health or findings are known of, by node and number."""
    out: dict[tuple[str, int], Device] = {}
    socs = {row.node: row.value for row in reversed(scan.facts) if row.name == "soc"}

    def device(node: str, number: int) -> Device | None:
        if number < 0 or ((node, number) not in out and len(out) >= DEVICES):
            return None
        return out.setdefault((node, number), Device(node, number, socs.get(node, socs.get("", "")), "", {}, 0, []))

    for row in scan.facts:
        if (health := _HEALTH.fullmatch(row.name)) and (one := device(row.node, int(health[1]))) is not None:
            if not one.health or (one.health.lower() in _FINE and row.value.lower() not in _FINE):
                one.health = row.value[:40]
    for metric in scan.metrics:
        if metric.device is None or metric.name not in READINGS or (one := device(metric.node, metric.device)) is None:
            continue
        have = one.readings.get(metric.name)
        most = metric.value if have is None else max(have.most, metric.value)
        one.readings[metric.name] = Reading(metric.value, most, metric.unit)
    for finding in found.findings:
        for node, number in sorted({(hit.node, hit.device) for hit in finding.hits if hit.device is not None}):
            if (one := device(node, number)) is not None:
                one.findings += 1
    for diagnosis in found.diagnoses:
        scope = diagnosis.place
        if scope.device is not None and (one := device(scope.node, scope.device)) is not None:
            one.ranks.append(diagnosis.rank)
    return [out[key] for key in sorted(out)]


def conflicts(facts: Iterable[FactRow]) -> list[Conflict]:
    """Versions of one node that do not belong together."""
    nodes: dict[str, dict[str, str]] = {}
    for row in facts:
        nodes.setdefault(row.node, {}).setdefault(row.name, row.value)
    return [
        Conflict(node, one.left, one.left_version, one.right, one.right_version, one.expected)
        for node, values in sorted(nodes.items())
        for one in versions.check(values)
    ]
