"""What the profiles of a case say beside its diagnoses: steps, operators, ranks, communication, memory, serving, and what was not captured.

    report = build(case)        # of a case that triage has written
    data = as_data(report)      # JSON, schema dsforensics.profile/1

All times are milliseconds, shares lie between 0 and 1.
"""

from __future__ import annotations

from typing import Any

import msgspec

from forensics.case import Case
from forensics.result import Triage

SCHEMA = "dsforensics.profile/1"
OPERATORS = 15
"""Operators listed."""
LINKS = 12
TOLD_FIRST = (
    "cache_usage_perc", "num_requests_waiting", "num_requests_running", "num_preemptions", "p99_ttft", "p99_tpot", "generation_throughput",
    "output_throughput", "mean_ttft", "mean_tpot",
)  # fmt: skip
"""Serving figures that a reader looks for first."""
BOUND = 0.6
"""A pipe that is busy for a smaller share of an operator's time does not limit it (ours)."""

PIPES = {
    "mac_ratio": "Cube", "aic_mte1_ratio": "MTE1", "aic_mte2_ratio": "MTE2", "aic_mte3_ratio": "MTE3", "aic_fixpipe_ratio": "FixPipe",
    "aic_scalar_ratio": "Scalar", "vec_ratio": "Vector", "aiv_mte2_ratio": "MTE2", "aiv_mte3_ratio": "MTE3", "aiv_scalar_ratio": "Scalar",
}  # fmt: skip
"""Counters, and the unit each measures."""


class Capture(msgspec.Struct):
    """One profile."""

    rank: int | None
    path: str
    node: str
    device: int | None
    tool: str
    level: str
    cann: str
    torch_npu: str
    analysed: bool
    steps: int
    """Steps with a number; 0: the capture was made without a schedule."""


class Breakdown(msgspec.Struct):
    """Where the time of a mean step of one rank goes."""

    rank: int | None
    steps: int
    computing: float
    exposed: float | None
    """Communication that no computing overlaps."""
    overlapped: float | None
    free: float | None
    bubble: float | None
    preparing: float | None
    source: str
    """file; trace (summed from its overlap lane); kernels (summed from their durations, communication unknown)."""
    file: str
    row: int | None


class Operator(msgspec.Struct):
    """Kernels of one type on one kind of core."""

    op_type: str
    core: str
    count: int
    total: float
    share: float
    mean: float
    longest: float
    bound: str
    """The unit that limits it; empty: none is busy enough; `not measured`: no counters."""
    busy: float | None
    """Share of the time that unit is busy."""
    file: str
    row: int | None
    """Of the longest one."""
    shapes: str


class Rank(msgspec.Struct):
    """One rank beside its peers (ranks of the same pipeline stage)."""

    rank: int | None
    peers: str
    computing: float
    against: float | None
    """Computing over the median of the peers."""
    exposed: float | None
    free: float | None
    waits: float | None
    """Share of the time of its collectives that it waits in."""


class Link(msgspec.Struct):
    """Traffic over one kind of link."""

    rank: int | None
    link: str
    operations: int
    mb: float
    time: float
    gbs: float | None


class Memory(msgspec.Struct):
    rank: int | None
    component: str
    peak_reserved: float | None
    peak_allocated: float | None
    file: str
    row: int | None


class Figure(msgspec.Struct):
    """A series of a serving engine, or a number of a benchmark."""

    name: str
    first: float
    last: float
    highest: float
    samples: int


class Report(msgspec.Struct):
    triage: Triage
    captures: list[Capture] = []
    breakdown: list[Breakdown] = []
    operators: list[Operator] = []
    ranks: list[Rank] = []
    links: list[Link] = []
    memory: list[Memory] = []
    service: list[Figure] = []
    missing: list[str] = []
    """Keys of what could not be checked (`forensics.report.profile_words.MISSING` says what and why)."""
    damaged: list[tuple[str, str, str]] = []
    """File, what was lost of it in English and in Chinese."""


def build(case: Case) -> Report:
    """The report of a case. Raises CaseError for a case of an older version."""
    connection = case.connection()

    def rows(query: str) -> list[tuple[Any, ...]]:
        return list(connection.execute(query).fetchall())

    report = Report(case.load_triage())
    report.captures = [
        Capture(row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], bool(row[8]), row[9] or 0)
        for row in rows(
            "SELECT rank, path, node, device, tool, level, cann, torch_npu, analysed, (SELECT count(DISTINCT step) FROM kernels k "
            "WHERE k.profile_id = p.profile_id) FROM profiles p ORDER BY rank, path"
        )
    ]
    report.breakdown = [
        Breakdown(*row)
        for row in rows(
            "SELECT s.rank, count(*), avg(computing_ns) / 1e6, avg(exposed_ns) / 1e6, avg(overlapped_ns) / 1e6, avg(free_ns) / 1e6, "
            "avg(bubble_ns) / 1e6, avg(preparing_ns) / 1e6, any_value(source), any_value(f.path), min(row_no) "
            "FROM steps s LEFT JOIN files f USING (file_id) GROUP BY s.profile_id, s.rank ORDER BY s.rank, s.profile_id"
        )
    ]
    report.operators = _operators(rows)
    report.ranks = [
        Rank(*row)
        for row in rows(
            "WITH s AS (SELECT s.profile_id, any_value(s.rank) AS rank, any_value(p.peers) AS peers, avg(computing_ns) / 1e6 AS computing, "
            "avg(exposed_ns) / 1e6 AS exposed, avg(coalesce(free_ns, 0) + coalesce(preparing_ns, 0)) / 1e6 AS free "
            "FROM steps s JOIN profiles p USING (profile_id) GROUP BY s.profile_id), "
            "w AS (SELECT profile_id, sum(wait_ns) / nullif(sum(elapse_ns), 0) AS waits FROM comms WHERE kind = 'collective' GROUP BY profile_id) "
            "SELECT rank, peers, computing, computing / nullif(median(computing) OVER (PARTITION BY peers), 0), exposed, free, waits "
            "FROM s LEFT JOIN w USING (profile_id) ORDER BY rank, profile_id"
        )
    ]
    report.links = [
        Link(*row)
        for row in rows(
            "SELECT rank, link, count(*), sum(size_mb), sum(transit_ns) / 1e6, sum(size_mb) / nullif(sum(transit_ns) / 1e6, 0) "
            f"FROM comm_links GROUP BY rank, link ORDER BY sum(transit_ns) DESC, rank, link LIMIT {LINKS}"
        )
    ]
    report.memory = [
        Memory(*row)
        for row in rows(
            "SELECT m.rank, component, max(reserved_mb), max(allocated_mb), any_value(f.path), arg_max(row_no, reserved_mb) FROM memory m "
            "LEFT JOIN files f USING (file_id) WHERE component IN ('APP', 'PTA', 'PTA+GE', 'GE', 'WORKSPACE') "
            "GROUP BY m.rank, m.profile_id, component HAVING max(coalesce(reserved_mb, 0)) > 0 ORDER BY m.rank, max(reserved_mb) DESC, component"
        )
    ]
    report.service = [
        Figure(*row)
        for row in rows(
            "SELECT name, arg_min(value, moment), arg_max(value, moment), max(value), count(*) FROM "
            "(SELECT *, coalesce(epoch_us(ts), 0) * 1000 + file_id AS moment FROM metrics "
            "WHERE name LIKE 'service.%' OR name LIKE 'bench.%') GROUP BY name ORDER BY name"
        )
    ]
    report.service.sort(key=lambda one: (next((n for n, word in enumerate(TOLD_FIRST) if word in one.name), len(TOLD_FIRST)), one.name))
    report.damaged = [
        (str(path), str(english), str(chinese))
        for path, english, chinese in rows(
            "SELECT f.path, n.note, n.note_zh FROM profile_notes n LEFT JOIN files f USING (file_id) "
            "WHERE n.kind <> 'not-analysed' ORDER BY f.path, n.note"
        )
    ]
    report.missing = _missing(rows, report)
    return report


def _operators(rows: Any) -> list[Operator]:
    weighted = ", ".join(f"sum({name} * dur_ns) / nullif(sum(dur_ns) FILTER ({name} IS NOT NULL), 0)" for name in PIPES)
    found = rows(
        "WITH whole AS (SELECT sum(dur_ns) AS ns FROM compute) SELECT coalesce(op_type, name), coalesce(core, ''), count(*), sum(dur_ns) / 1e6, "
        "sum(dur_ns) / nullif(any_value(whole.ns), 0), avg(dur_ns) / 1e6, max(dur_ns) / 1e6, any_value(f.path), arg_max(row_no, dur_ns), "
        f"arg_max(in_shapes, dur_ns), {weighted} FROM compute LEFT JOIN files f USING (file_id), whole WHERE dur_ns IS NOT NULL "
        f"GROUP BY coalesce(op_type, name), coalesce(core, '') ORDER BY sum(dur_ns) DESC, 1, 2 LIMIT {OPERATORS}"
    )
    out = []
    for row in found:
        op_type, core, count, total, share, mean, longest, path, at, shapes, *ratios = row
        measured = [(ratio, unit) for ratio, unit in zip(ratios, PIPES.values(), strict=True) if ratio is not None]
        busy, unit = max(measured, default=(None, "not measured"))
        if core in ("AI_CPU", "AICPU", "HOST_CPU"):
            busy, unit = None, core
        elif busy is not None and busy < BOUND:
            unit = ""
        out.append(Operator(op_type, core, count, total, share or 0.0, mean, longest, unit, busy, path or "", at, shapes or ""))
    return out


def _missing(rows: Any, report: Report) -> list[str]:
    """What was not captured, and so not checked; of a case without any profile nothing is listed one by one."""
    if not report.captures:
        return ["profile"] if report.service else ["profile", "service"]
    out = []
    for table in ("steps", "kernels", "api", "operators", "memory", "allocations", "l2_cache", "trace", "clocks"):
        if not rows(f"SELECT 1 FROM {table} LIMIT 1"):
            out.append(table)
    if "kernels" not in out and not rows(f"SELECT 1 FROM kernels WHERE {' OR '.join(f'{name} > 0' for name in PIPES)} LIMIT 1"):
        out.append("pmu")
    if "kernels" not in out and not any(capture.steps for capture in report.captures):
        out.append("step-ids")
    if len({capture.rank for capture in report.captures}) < 2:
        out.append("ranks")
    else:
        out += [table for table in ("comms", "links") if not rows(f"SELECT 1 FROM {table} LIMIT 1")]
    if not report.service:
        out.append("service")
    if any(not capture.analysed for capture in report.captures):
        out.append("raw")
    return out


def as_data(report: Report) -> dict[str, Any]:
    """The report as JSON can carry it."""
    from forensics.report import data
    from forensics.report.profile_words import missing

    whole = data.report(report.triage)
    parts = ("captures", "breakdown", "operators", "ranks", "links", "memory", "service")
    plain = {name: msgspec.to_builtins(getattr(report, name)) for name in parts}
    return {
        "schema": SCHEMA,
        "tool": whole["tool"],
        "bundle": whole["bundle"],
        **plain,
        "diagnoses": whole["diagnoses"],
        "not_checked": [{"key": key, "text": {"en": missing(key, "en"), "zh": missing(key, "zh")}} for key in report.missing],
        "damaged": [{"file": path, "text": {"en": english, "zh": chinese}} for path, english, chinese in report.damaged],
    }
