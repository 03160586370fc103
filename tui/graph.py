"""The causal graph of a case as a forest: each finding once, below the latest of its causes; roots by rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from rules.model import Text

if TYPE_CHECKING:
    import duckdb


class Place(msgspec.Struct, frozen=True):
    """Where a finding was seen: the first line of one process or rank."""

    node: str
    device: int | None
    rank: int | None
    pid: int | None
    first: int | None
    lines: int
    file_id: int
    line_no: int


class Found(msgspec.Struct):
    """A finding, and what follows from it."""

    number: int
    rule: str
    title: Text
    layer: str
    role: str
    first: int | None
    occurrences: int
    rank: int | None = None
    """Of the diagnosis it became."""
    places: list[Place] = []
    effects: list[Found] = []
    also: list[str] = []
    """Rules of further causes, which stand elsewhere in the forest."""


def read(connection: duckdb.DuckDBPyConnection) -> tuple[list[Found], list[tuple[int, int, str]]]:
    """All findings but noise, and the edges (cause, effect, reason) between them."""
    findings = [
        Found(number, rule, Text(en, zh), layer, role, first, lines, rank)
        for number, rule, en, zh, layer, role, first, lines, rank in connection.execute(
            "SELECT f.finding_id, f.rule, coalesce(d.title, f.title), coalesce(d.title_zh, f.title_zh), f.layer, f.role, epoch_us(f.first), "
            "f.occurrences, d.rank FROM findings f LEFT JOIN diagnoses d USING (finding_id) WHERE f.role <> 'noise' ORDER BY f.finding_id"
        ).fetchall()
    ]
    of_rule = {found.rule: found for found in findings}
    rows = connection.execute(
        "SELECT rule, coalesce(node, ''), device, rank, pid, epoch_us(min(ts)), count(DISTINCT event_id), arg_min(file_id, (ts, event_id)), "
        "arg_min(line_no, (ts, event_id)) FROM signals GROUP BY ALL ORDER BY 6, 2, 3, 4, 5"
    ).fetchall()
    for rule, *place in rows:
        if rule in of_rule:
            of_rule[rule].places.append(Place(*place))
    return findings, connection.execute("SELECT cause, effect, reason FROM edges").fetchall()


def forest(findings: Sequence[Found], edges: Sequence[tuple[int, int, str]]) -> list[Found]:
    """The roots, each with its effects below it."""
    known = {found.number: found for found in findings}
    causes: dict[int, list[tuple[int, str]]] = {found.number: [] for found in findings}
    for cause, effect, reason in edges:
        if cause in known and effect in known and cause != effect:
            causes[effect].append((cause, reason))
    depth: dict[int, int] = {}

    def deep(number: int, above: frozenset[int]) -> int:
        if number not in depth:
            depth[number] = max((deep(cause, above | {number}) + 1 for cause, _ in causes[number] if cause not in above | {number}), default=0)
        return depth[number]

    def late(number: int) -> tuple[int, int, int]:
        found = known[number]
        return (deep(number, frozenset()), found.first or 0, -number)

    parents: dict[int, int] = {}
    for effect, some in ((number, some) for number, some in causes.items() if some):
        stated = [cause for cause, reason in some if reason == "rule"]
        parents[effect] = max(stated or [cause for cause, _ in some], key=late)
    roots = []
    for found in findings:
        parent = parents.get(found.number)
        if parent is None:
            roots.append(found)
            continue
        known[parent].effects.append(found)
        over = set()
        at: int | None = parent
        while at is not None and at not in over:
            over.add(at)
            at = parents.get(at)
        found.also = [known[cause].rule for cause, _ in causes[found.number] if cause not in over]
    for found in findings:
        found.effects.sort(key=lambda one: (one.first is None, one.first or 0, one.number))
    return sorted(roots, key=lambda one: (one.rank is None, one.rank or 0, one.first is None, one.first or 0, one.number))


def spans(numbers: Sequence[int]) -> str:
    """`0-5, 7` for 0 1 2 3 4 5 7."""
    out: list[str] = []
    for number in sorted(set(numbers)):
        if out and number == int(out[-1].rpartition("-")[2]) + 1:
            out[-1] = f"{out[-1].partition('-')[0]}-{number}"
        else:
            out.append(str(number))
    return ", ".join(out)
