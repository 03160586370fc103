"""What the profiler tables of a case say: where the time of a step goes, which operators take it, where the device waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import duckdb

MOST = 500
"""Rows of each table that are shown."""


class Step(msgspec.Struct, frozen=True):
    """A step of one rank; nanoseconds."""

    rank: int | None
    step: int | None
    total: int
    computing: int
    exposed: int
    """Communication that nothing hides."""
    free: int


class Operator(msgspec.Struct, frozen=True):
    """All kernels of one type on one kind of core, of all ranks."""

    op_type: str
    core: str
    count: int
    total: int
    mean: float
    longest: int
    share: float
    bound: str
    """The unit that is busiest, with its share of the time; empty where it was not measured."""


class Kernel(msgspec.Struct, frozen=True):
    """One run of a kernel."""

    rank: int | None
    step: int | None
    name: str
    op_type: str
    duration: int
    wait: int
    shapes: str
    start: int | None


class Profile(msgspec.Struct):
    steps: list[Step]
    operators: list[Operator]
    slowest: list[Kernel]
    gaps: list[Kernel]
    """Kernels before which the device waited longest."""


_RATIOS = {
    "cube": "mac_ratio", "vector": "vec_ratio", "MTE2 (GM→)": "aic_mte2_ratio", "MTE2 (GM→) aiv": "aiv_mte2_ratio", "MTE1": "aic_mte1_ratio",
    "MTE3 (→GM)": "aic_mte3_ratio", "MTE3 (→GM) aiv": "aiv_mte3_ratio", "fixpipe": "aic_fixpipe_ratio", "scalar": "aic_scalar_ratio",
    "scalar aiv": "aiv_scalar_ratio",
}  # fmt: skip


def tables(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """Table -> columns, of the profiler tables that the case has, empty ones included."""
    rows = connection.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE table_name IN ('kernels', 'steps', 'compute')").fetchall()
    found: dict[str, set[str]] = {}
    for table, column in rows:
        found.setdefault(table, set()).add(column)
    return found


def read(connection: duckdb.DuckDBPyConnection) -> Profile | None:
    """None where the case has no profile."""
    there = tables(connection)
    if "kernels" not in there or not connection.execute("SELECT count(*) FROM kernels").fetchall()[0][0]:
        if "steps" not in there or not connection.execute("SELECT count(*) FROM steps").fetchall()[0][0]:
            return None
    steps = _steps(connection) if "steps" in there else []
    kernels = "compute" if "compute" in there else "kernels"
    ratios = {label: name for label, name in _RATIOS.items() if name in there.get("kernels", set())}
    return Profile(steps, _operators(connection, kernels, ratios), _kernels(connection, kernels, "dur_ns"), _kernels(connection, kernels, "wait_ns"))


def _steps(connection: duckdb.DuckDBPyConnection) -> list[Step]:
    rows = connection.execute(
        "SELECT rank, step, coalesce(stage_ns, computing_ns + exposed_ns + free_ns), coalesce(computing_ns, 0), coalesce(exposed_ns, 0), "
        f"coalesce(free_ns, 0) FROM steps ORDER BY rank, step LIMIT {MOST}"
    ).fetchall()
    return [Step(rank, step, total or computing + exposed + free, computing, exposed, free) for rank, step, total, computing, exposed, free in rows]


def _operators(connection: duckdb.DuckDBPyConnection, kernels: str, ratios: dict[str, str]) -> list[Operator]:
    means = "".join(f", sum({name} * dur_ns) / nullif(sum(dur_ns) FILTER ({name} IS NOT NULL), 0)" for name in ratios.values())
    rows = connection.execute(
        f"SELECT coalesce(op_type, name), coalesce(core, ''), count(*), sum(dur_ns), avg(dur_ns), max(dur_ns), "
        f"sum(dur_ns) / nullif(sum(sum(dur_ns)) OVER (), 0){means} FROM {kernels} GROUP BY 1, 2 ORDER BY 4 DESC, 1 LIMIT {MOST}"
    ).fetchall()
    out = []
    for op_type, core, count, total, mean, longest, share, *measured in rows:
        known = [(value, label) for label, value in zip(ratios, measured, strict=True) if value is not None]
        top = max(known, default=None)
        bound = f"{top[1]} {100 * top[0]:.0f} %" if top is not None and top[0] > 0 else ""
        out.append(Operator(op_type or "", core, count, int(total or 0), float(mean or 0), int(longest or 0), float(share or 0), bound))
    return out


def _kernels(connection: duckdb.DuckDBPyConnection, kernels: str, by: str) -> list[Kernel]:
    rows = connection.execute(
        "SELECT rank, step, coalesce(name, ''), coalesce(op_type, ''), coalesce(dur_ns, 0), coalesce(wait_ns, 0), coalesce(in_shapes, ''), start_ns "
        f"FROM {kernels} WHERE {by} > 0 ORDER BY {by} DESC, start_ns LIMIT 100"
    ).fetchall()
    return [Kernel(*row) for row in rows]


def span(nanoseconds: float) -> str:
    """`1.23 ms`"""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}" if nanoseconds < 1000 * size else f"{nanoseconds / size:,.0f} {unit}"
    return f"{nanoseconds:.0f} ns"


def stacked(parts: list[int], width: int) -> list[int]:
    """Shares of `width` columns, that add up to it; none of what is there is left without a column."""
    total = sum(parts)
    if total <= 0 or width <= 0:
        return [0] * len(parts)
    out = [max(1 if part else 0, round(part / total * width)) for part in parts]
    while sum(out) > width:
        out[out.index(max(out))] -= 1
    while sum(out) < width:
        out[out.index(max(out))] += 1
    return out
