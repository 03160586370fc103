"""Facts of the environment, side by side for all nodes, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from rules.model import Finding, Text
from rules.scan import leaves_of
from rules.versions import check

if TYPE_CHECKING:
    import duckdb

GROUPS = ("version", "soc", "env", "arg", "os", "limit", "pip", "device", "ranktable", "hccl")
"""Beginnings of names in the order they are shown; others come behind, in the order of the alphabet."""


class Value(msgspec.Struct, frozen=True):
    """What one node says."""

    text: str
    file_id: int
    line_no: int


class Trouble(msgspec.Struct, frozen=True):
    """Why a fact is marked."""

    text: Text
    rule: str = ""


class Fact(msgspec.Struct):
    """One name, with the value of each node."""

    name: str
    device: int | None
    values: dict[str, list[Value]] = {}
    troubles: list[Trouble] = []

    @property
    def differs(self) -> bool:
        """Whether the nodes do not agree, where they are meant to."""
        said = {tuple(sorted({value.text for value in values})) for values in self.values.values()}
        return len(said) > 1 and self.device is None and not self.name.startswith(("host.", "hccl.", "ranktable.", "pci."))

    @property
    def group(self) -> str:
        if self.name.endswith(".version"):
            return "version"
        return self.name.partition(".")[0]


def read(connection: duckdb.DuckDBPyConnection) -> list[Fact]:
    """All facts, the most telling first."""
    found: dict[tuple[str, int | None], Fact] = {}
    for node, device, name, value, file_id, line_no in connection.execute(
        "SELECT coalesce(node, ''), device, name, value, file_id, line_no FROM facts ORDER BY file_id, line_no"
    ).fetchall():
        fact = found.setdefault((name, device), Fact(name, device, {}, []))
        values = fact.values.setdefault(node, [])
        if all(known.text != value for known in values):
            values.append(Value(value, file_id, line_no))
    order = {group: at for at, group in enumerate(GROUPS)}
    return sorted(found.values(), key=lambda fact: (order.get(fact.group, len(GROUPS)), fact.group, fact.name, fact.device or 0))


def judge(facts: Sequence[Fact], findings: Iterable[Finding]) -> None:
    """Mark what contradicts each other, what rules that hold object to, and where nodes differ."""
    by_name: dict[str, list[Fact]] = {}
    for fact in facts:
        by_name.setdefault(fact.name, []).append(fact)

    def blame(name: str, trouble: Trouble) -> None:
        for fact in by_name.get(name, ()):
            if trouble not in fact.troubles:
                fact.troubles.append(trouble)

    for finding in findings:
        rule = finding.rule
        if rule.role == "noise":
            continue
        for leaf in leaves_of(rule.match):
            captures = finding.captures.get(leaf.id)
            if captures is None:
                continue
            if leaf.mismatch:
                for side in ("left", "right"):
                    for name in (captures.get(side, ""), f"{captures.get(side, '')}.version"):
                        blame(name, Trouble(rule.title, rule.id))
            elif leaf.fact:
                named = [fact.name for fact in facts if any(v.text == captures.get("value") for values in fact.values.values() for v in values)]
                for name in named:
                    if _fits(name, leaf.fact):
                        blame(name, Trouble(rule.title, rule.id))
    nodes = sorted({node for fact in facts for node in fact.values})
    for node in nodes:
        said = {fact.name: fact.values[node][0].text for fact in facts if node in fact.values}
        said |= {fact.name: fact.values[""][0].text for fact in facts if "" in fact.values and fact.name not in said}
        for wrong in check(said):
            left, right = f"{_short(wrong.left)} {wrong.left_version}", f"{_short(wrong.right)} {wrong.right_version}"
            text = Text(f"{left} and {right} do not belong together: {wrong.expected.en}", f"{left} 与 {right} 不配套：{wrong.expected.zh}")
            for name in (wrong.left, wrong.right):
                blame(name, Trouble(text))


def _fits(name: str, pattern: str) -> bool:
    import fnmatch

    return fnmatch.fnmatchcase(name, pattern)


def _short(name: str) -> str:
    return name.removesuffix(".version")
