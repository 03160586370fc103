"""What is only known once all files of a profile were read: ranks, which of two exports counts, and what follows from other tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from forensics import tables
from forensics.origin import of_path
from forensics.result import Member
from rules.case_tables import RANKED, TABLES
from rules.query import Header, Tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from forensics.ingest import Scan
    from forensics.profiles import Profile, Profiles

_RAW = re.compile(r"(?:^|/)(?:FRAMEWORK|PROF_\d{3,}[^/]*)/")
_LAYOUTS = ("kernels", "steps", "op_stats", "api", "operators", "trace", "database", "communication")
"""Layouts that an analysed profile has at least one of."""


def raw(profiles: Profiles, files: Sequence[Member]) -> None:
    """Make profiles of the folders of raw data too, which have no table at all."""
    for member in files:
        if member.kind in ("profile-raw", "binary") and _RAW.search(member.path):
            profiles.profile(member.path)


def settled(profiles: Profiles, found: Scan) -> Tables:
    """Complete the tables; returns what rules ask."""

    connection = profiles.loader.connection
    profiles.loader.flush()
    _one_export(profiles)
    _steps_of_kernels(profiles)
    _ranks(profiles)
    _not_analysed(profiles, found.files)
    profiles.loader.flush()
    rows = [
        (
            p.number, p.path, p.node, p.rank, p.device, p.tool, p.info.level, p.info.aic_metrics, p.info.cann, p.info.torch_npu, p.peers or "all",
            p.chip.aic_num, p.chip.aiv_num, p.chip.rated_mhz,
        )
        for p in profiles.profiles.values()
    ]  # fmt: skip
    names = [name for name, _ in TABLES["profiles"]][:-2]
    profiles.loader._put("profiles", names, rows)
    connection.execute(
        "UPDATE profiles SET has_steps = coalesce((SELECT max(CASE WHEN step IS NOT NULL THEN 1 ELSE 0 END) FROM kernels k "
        "WHERE k.profile_id = profiles.profile_id), 0), analysed = CASE WHEN profile_id IN "
        f"(SELECT profile_id FROM profile_files WHERE layout IN {_LAYOUTS}) THEN 1 ELSE 0 END"
    )
    _times(connection, found)
    tables.insert(connection, "metrics", ((m.ts, m.node, m.device, m.name, m.value, m.unit, m.label, m.file_id, m.line_no) for m in found.metrics))
    tables.insert(connection, "facts", ((f.node, f.device, f.name, f.value, f.file_id, f.line_no) for f in found.facts))
    connection.execute("COMMIT")
    connection.execute("CHECKPOINT")
    return Tables(connection, {member.file_id: member.path for member in found.files}, headers(connection))


def _times(connection: DuckDBPyConnection, found: Scan) -> None:
    """The files of kernels and scrapes tell when the capture was: to the members, and to the bundle as a whole."""
    spans = {
        file_id: (first // 1000, last // 1000)
        for file_id, first, last in connection.execute(
            "SELECT file_id, min(start_ns), max(start_ns + coalesce(dur_ns, 0)) FROM kernels WHERE start_ns > 1e18 GROUP BY file_id"
        ).fetchall()
    }
    for member in found.files:
        if member.file_id in spans and member.first is None:
            member.first, member.last = spans[member.file_id]
            member.clock = "utc"
    times = [ts for member in found.files for ts in (member.first, member.last) if ts is not None]
    times += [row.ts for row in found.metrics if row.ts is not None and row.name.startswith("service.")]
    found.first, found.last = min(times, default=None), max(times, default=None)


def headers(connection: DuckDBPyConnection) -> dict[tuple[int, str, str], Header]:
    """How the file of a row calls a column: (file, table, column) -> header."""

    rows = connection.execute("SELECT file_id, table_name, column_name, header, factor, digits FROM profile_headers").fetchall()
    return {(file, table, column): Header(header, factor, digits) for file, table, column, header, factor, digits in rows}


def _one_export(profiles: Profiles) -> None:
    """Of a table that was exported twice, as text and into a database, or by torch_npu and by msprof, one remains.

    Best is what the profiler of the framework wrote as text (it has the most columns), then msprof's text, then databases, then sums over the trace.
    """
    connection = profiles.loader.connection
    connection.execute(
        "CREATE TEMP TABLE worth AS SELECT file_id, CASE WHEN layout = 'database' THEN CASE WHEN path LIKE '%analysis.db' THEN 3 ELSE 4 END "
        "WHEN layout = 'trace' THEN 5 WHEN path LIKE '%mindstudio_profiler_output/%' OR path LIKE '%/PROF\\_%' ESCAPE '\\' THEN 2 "
        "ELSE 1 END AS place FROM profile_files"
    )
    for table in RANKED:
        if table in ("trace", "clocks"):
            continue
        several = connection.execute(
            f"SELECT profile_id, min(place) FROM (SELECT DISTINCT profile_id, file_id FROM {table}) JOIN worth USING (file_id) "
            "GROUP BY profile_id HAVING min(place) <> max(place)"
        ).fetchall()
        for profile, best in several:
            connection.execute(
                f"DELETE FROM {table} WHERE profile_id = ? AND file_id IN (SELECT file_id FROM worth WHERE place > ?)", [profile, best]
            )
    for table in ("trace", "clocks"):
        both = connection.execute(
            f"SELECT profile_id FROM (SELECT DISTINCT profile_id, file_id FROM {table}) JOIN worth USING (file_id) "
            "GROUP BY profile_id HAVING max(CASE WHEN place = 5 THEN 1 ELSE 0 END) = 1 AND min(place) < 5"
        ).fetchall()
        for (profile,) in both:
            connection.execute(f"DELETE FROM {table} WHERE profile_id = ? AND file_id IN (SELECT file_id FROM worth WHERE place < 5)", [profile])


def _steps_of_kernels(profiles: Profiles) -> None:
    """Where neither a table nor a trace tells of steps, what the kernels of each compute; communication and idle time stay unknown."""
    connection = profiles.loader.connection
    rows = connection.execute(
        "INSERT INTO steps (file_id, row_no, line_no, profile_id, rank, device, step, computing_ns, source) "
        "SELECT min(file_id), min(row_no), arg_min(line_no, row_no), profile_id, any_value(rank), any_value(device), step, sum(dur_ns), 'kernels' "
        "FROM compute WHERE dur_ns IS NOT NULL AND profile_id NOT IN (SELECT profile_id FROM steps) GROUP BY profile_id, step "
        "RETURNING file_id"
    ).fetchall()
    for (file_id,) in dict.fromkeys(rows):
        profiles.loader.headers(file_id, "steps", [("computing_ns", "sum of the durations of the step's kernels (us)", 1e3, 3)])


def _ranks(profiles: Profiles) -> None:
    """The rank of each profile: as it says itself, as a file's name says, as its path says, else a number that is free."""
    ordered = sorted(profiles.profiles.values(), key=lambda one: one.path)
    for one in ordered:
        told = next((n for n in (one.info.rank, one.named, of_path(f"{one.path}/x").rank) if n is not None and n >= 0), None)
        one.rank = told
    taken = {one.rank for one in ordered if one.rank is not None}
    for one in ordered:
        if one.rank is None:
            one.rank = next(n for n in range(len(ordered) + 1) if n not in taken)
            taken.add(one.rank)
    connection = profiles.loader.connection
    for table in RANKED:
        for (number,) in connection.execute(f"SELECT DISTINCT profile_id FROM {table}").fetchall():
            profile: Profile = next(one for one in ordered if one.number == number)
            if profile.rank != number and profile.tool != "cluster":
                connection.execute(f"UPDATE {table} SET rank = ? WHERE profile_id = ?", [profile.rank, number])
            if profile.device is None and table == "kernels":
                row = connection.execute("SELECT min(device) FROM kernels WHERE profile_id = ? AND device IS NOT NULL", [number]).fetchone()
                profile.device = row[0] if row else None


def _not_analysed(profiles: Profiles, files: Sequence[Member]) -> None:
    """Profiles of which only raw data is there."""
    connection = profiles.loader.connection
    done = {number for (number,) in connection.execute(f"SELECT profile_id FROM profile_files WHERE layout IN {_LAYOUTS}").fetchall()}
    for one in profiles.profiles.values():
        if one.number in done:
            continue
        inside = [member for member in files if member.path.startswith(f"{one.path}/") or f"/{one.path}/" in member.path]
        if not any(_RAW.search(member.path) for member in inside):
            continue
        told = next((member for member in inside if "profiler_info" in member.path), inside[0])
        english = f"{one.path} holds raw data only (FRAMEWORK/, PROF_*/) and no analysed tables"
        chinese = f"{one.path} 中只有原始数据（FRAMEWORK/、PROF_*/），没有解析结果"
        profiles.loader.note(told.file_id, one.number, "not-analysed", english, chinese)
