"""Operators and steps of an incident's profiles beside those of a good run: mean durations, and which of them are clearly longer.

    there = slower.timed(connection_of_the_good_run, files)
    rows = slower.compare(there, slower.timed(connection_of_this_one, files))

An operator type is known by its name alone, whatever core it ran on: one that has gone from the AI Core to the AI CPU is the same operator, slower.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from forensics.result import Slower
from rules.case_tables import COMMUNICATION

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RATIO = 1.3
"""A mean duration that is so many times that of the good run is clearly slower (ours: below it lie the differences of two runs of one job whose
inputs are not the same)."""
SHARE = 0.01
"""An operator type that takes less of the computing time than this is not worth a line, however slow it has become (ours)."""
PARTS = ("computing", "exposed", "free")
"""What a step consists of: computing, communication that no computing overlaps, idle time."""

_CORES = ", ".join(f"'{core}'" for core in COMMUNICATION)
_OPERATORS = f"""
WITH stats AS (
    SELECT profile_id, rank, op_type, core, count AS n, coalesce(total_ns::DOUBLE, avg_ns::DOUBLE * count) AS ns, file_id, row_no, line_no
    FROM op_stats
    WHERE op_type IS NOT NULL AND count > 0 AND coalesce(total_ns::DOUBLE, avg_ns::DOUBLE * count) IS NOT NULL
    AND (core IS NULL OR core NOT IN ({_CORES})) AND op_type NOT ILIKE 'hcom\\_%' ESCAPE '\\'
), listed AS (
    SELECT rank, op_type, core, n, ns, file_id, row_no, line_no FROM stats
    UNION ALL
    SELECT rank, coalesce(op_type, name), core, 1, dur_ns, file_id, row_no, line_no FROM compute
    WHERE dur_ns IS NOT NULL AND coalesce(op_type, name) IS NOT NULL AND profile_id NOT IN (SELECT profile_id FROM stats)
)
SELECT op_type, rank, sum(n), sum(ns), any_value(worst.core), any_value(worst.file_id), any_value(worst.row_no), any_value(worst.line_no)
FROM (SELECT *, first_value({{'core': core, 'file_id': file_id, 'row_no': row_no, 'line_no': line_no}})
      OVER (PARTITION BY op_type, rank ORDER BY ns DESC, file_id, row_no) AS worst FROM listed)
GROUP BY op_type, rank ORDER BY op_type, rank
"""
"""By type and rank, from the table of sums where a profile has one, else from its kernels; the row is the longest one."""
_STEPS = """
WITH whole AS (
    SELECT *, computing_ns::DOUBLE + coalesce(exposed_ns, 0) + coalesce(free_ns, 0) AS ns FROM steps
    WHERE step IS NOT NULL AND source IS DISTINCT FROM 'trace' AND computing_ns IS NOT NULL
), longest AS (
    SELECT rank, file_id, row_no, line_no FROM whole QUALIFY row_number() OVER (PARTITION BY rank ORDER BY ns DESC, file_id, row_no) = 1
)
SELECT rank, count(*), avg(computing_ns), CASE WHEN count(exposed_ns) = count(*) THEN avg(exposed_ns) END,
    CASE WHEN count(free_ns) = count(*) THEN avg(free_ns) END, any_value(l.file_id), any_value(l.row_no), any_value(l.line_no)
FROM whole LEFT JOIN longest l USING (rank) GROUP BY rank ORDER BY rank
"""
"""By rank. Steps without a number, and the sums over a trace, are a whole capture and no step."""


class Mean(msgspec.Struct):
    """Kernels of one type, of one rank or of several together."""

    count: int
    total: float
    """Nanoseconds."""
    core: str
    file: str
    row: int | None
    line: int

    @property
    def mean(self) -> float:
        return self.total / self.count


class Step(msgspec.Struct):
    """A mean step of one rank; spans in nanoseconds."""

    count: int
    parts: dict[str, float]
    """By PARTS; what is not known is not there."""
    file: str
    row: int | None
    line: int


class Timed(msgspec.Struct):
    """What the profiles of one run took."""

    operators: dict[str, dict[int | None, Mean]]
    """Type -> rank."""
    steps: dict[int | None, Step]


def timed(connection: DuckDBPyConnection, files: Mapping[int, str]) -> Timed:
    """Read the tables of profiles (rules.case_tables); `files`: number -> path."""
    operators: dict[str, dict[int | None, Mean]] = defaultdict(dict)
    for op_type, rank, count, total, core, file_id, row, line in connection.execute(_OPERATORS).fetchall():
        operators[op_type][rank] = Mean(int(count), float(total), core or "", files.get(file_id, ""), row, max(line or 0, 0))
    steps = {}
    for rank, count, *spans, file_id, row, line in connection.execute(_STEPS).fetchall():
        parts = {name: float(span) for name, span in zip(PARTS, spans, strict=True) if span is not None}
        steps[rank] = Step(count, parts, files.get(file_id, ""), row, max(line or 0, 0))
    return Timed(dict(operators), steps)


def compare(good: Timed, here: Timed) -> list[Slower]:
    """What is clearly slower: first the rank whose step lost most, then operator types by the time they lose, then the other ranks."""
    steps = sorted(_steps(good.steps, here.steps), key=lambda one: (one.before - one.after, -1 if one.rank is None else one.rank))
    operators = sorted(_operators(good, here), key=lambda one: (-_lost(one), one.name, -1 if one.rank is None else one.rank))
    return [*steps[:1], *operators, *steps[1:]]


def _lost(one: Slower) -> float:
    return (one.after - one.before) * one.after_count


# ---------------------------------------------------------------- steps


def _steps(good: Mapping[int | None, Step], here: Mapping[int | None, Step]) -> list[Slower]:
    """Rank by rank; where either run has one rank only, that is compared whatever its number."""
    out = []
    for rank, after in here.items():
        before = good.get(rank)
        if before is None and len(good) == len(here) == 1:
            (before,) = good.values()
        if before is None:
            continue
        whole = len(before.parts) == len(after.parts) == len(PARTS)
        names = PARTS if whole else PARTS[:1]
        old, new = (sum(step.parts[name] for name in names) for step in (before, after))
        if old <= 0 or new < RATIO * old:
            continue
        row = Slower("step" if whole else "computing", "", rank, _ms(old), _ms(new), before.count, after.count, after.file, after.row, after.line)
        if whole:
            row.part = max(PARTS, key=lambda name: after.parts[name] - before.parts[name])
            row.part_before, row.part_after = _ms(before.parts[row.part]), _ms(after.parts[row.part])
        out.append(row)
    return out


# ---------------------------------------------------------------- operators


def _operators(good: Timed, here: Timed) -> list[Slower]:
    """Of each type one row where most ranks are slower, else one for each rank that is."""
    computing: dict[int | None, float] = defaultdict(float)
    for ranks in here.operators.values():
        for rank, mean in ranks.items():
            computing[rank] += mean.total
    out = []
    for name, after in here.operators.items():
        before = good.operators.get(name)
        if before is None:
            continue
        pooled = _together(list(before.values()))
        rows = [row for rank, mean in after.items() if (row := _row(name, rank, before.get(rank, pooled), mean, computing[rank])) is not None]
        if 2 * len(rows) > len(after) > 1:
            whole = _row(name, None, pooled, _together(list(after.values())), sum(computing.values()))
            rows = [whole] if whole is not None else rows
        out += rows
    return out


def _together(means: Sequence[Mean]) -> Mean:
    worst = max(means, key=lambda one: one.mean)
    return Mean(sum(one.count for one in means), sum(one.total for one in means), worst.core, worst.file, worst.row, worst.line)


def _row(name: str, rank: int | None, before: Mean, after: Mean, computing: float) -> Slower | None:
    """None where it is not clearly slower. `computing`: nanoseconds of all kernels."""
    share = after.total / computing if computing > 0 else 0.0
    if before.total <= 0 or after.mean < RATIO * before.mean or share < SHARE:
        return None
    return Slower(
        "operator", name, rank, _ms(before.mean), _ms(after.mean), before.count, after.count, after.file, after.row, after.line, round(share, 4),
        before.core, after.core,
    )  # fmt: skip


def _ms(ns: float) -> float:
    return round(ns / 1e6, 6)
