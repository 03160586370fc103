"""Documented constraints of the operators, asked of the arguments of a call before anything runs.

17 of them are checked by nobody: wrong results or a memory fault follow without a message, so this check is the diagnosis. The table
(data/constraints.tsv) says for each where it stands, on which chips, and what is printed where it is checked."""

from __future__ import annotations

import ast
import csv
import math
import operator
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from replay.errors import SpecError
from replay.result import Violation

if TYPE_CHECKING:
    from replay.kernels.base import Kernel
    from replay.tensors import Case, Value

__all__ = ["Constraint", "Violation", "broken", "check", "holds", "table"]

CHIPS = {"910b": "A2", "a2": "A2", "910_93": "A3", "910c": "A3", "a3": "A3", "310p": "310P", "950": "950", "910": "910"}
"""Part of a chip's name -> as the table calls it."""


class Constraint(msgspec.Struct, frozen=True):
    operator: str
    parameter: str
    when: str
    """Expression; the constraint is asked where it is true. Empty: always."""
    holds: str
    """Expression over the facts of a call; true where all is well."""
    soc: tuple[str, ...]
    versions: str
    source: str
    message: str
    violation: str
    """raises, silent, hang or unknown: what comes of breaking it."""


@cache
def table() -> tuple[Constraint, ...]:
    text = files("replay").joinpath("data/constraints.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return tuple(
        Constraint(
            r["operator"], r["parameter"], r["when"], r["holds"],
            tuple(part.strip().split()[0] for part in r["soc"].split(",")), r["versions"], r["source"],
            r["message"], r["violation"],
        )
        for r in rows
    )  # fmt: skip


def chip(name: str) -> str:
    """Ascend910B3 -> A2; empty for one that is not known."""
    plain = name.lower().replace("ascend", "")
    return next((short for part, short in CHIPS.items() if part in plain), "")


def check(name: str, facts: Mapping[str, Value], soc: str = "") -> list[Violation]:
    """Constraints of an operator that these facts break. One whose facts are not all known is not asked; without a chip, those that hold on
    every one of A2 and A3."""
    on = chip(soc) if soc else ""
    out = []
    for row in table():
        applies = on in row.soc if on else {"A2", "A3"} & set(row.soc)
        if row.operator != name or not applies or (row.when and holds(row.when, facts)[0] is not True):
            continue
        fine, used = holds(row.holds, facts)
        if fine is False:
            found = ", ".join(f"{key}={_shown(facts[key])}" for key in used)
            out.append(Violation(row.operator, row.holds, row.violation == "silent", found, f"{row.source} ({row.versions})", row.message))
    return out


def broken(kernel: Kernel, case: Case) -> tuple[list[Violation], list[Violation]]:
    """Arguments out of bounds that the operator does not check; further documented constraints that the call breaks."""
    name = case.operator or (kernel.operators[0] if kernel.operators else kernel.name)
    bounds = [Violation(name, must, True, found, "bounds of the call") for must, fine, found in kernel.bounds(case) if not fine]
    remarks = check(case.operator, kernel.facts(case), case.soc) if case.operator else []
    return bounds, remarks


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------- expressions

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Mod: operator.mod,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


class _Unknown(Exception):
    """A fact that the call does not tell."""


def holds(expression: str, facts: Mapping[str, Value]) -> tuple[bool | None, list[str]]:
    """Whether a constraint holds (None: a fact it needs is not known), and the facts it used. Raises SpecError for what is no constraint."""
    used: list[str] = []
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise SpecError(f"constraint {expression!a}: {error}") from error
    try:
        return bool(_value(tree, facts, used)), list(dict.fromkeys(used))
    except (_Unknown, ZeroDivisionError, TypeError):
        return None, used


def _value(node: ast.expr, facts: Mapping[str, Value], used: list[str]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in facts:
            raise _Unknown(node.id)
        used.append(node.id)
        return facts[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, facts, used), _value(node.right, facts, used))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        value = _value(node.operand, facts, used)
        return not value if isinstance(node.op, ast.Not) else -value
    if isinstance(node, ast.BoolOp):
        return _either(node, facts, used)
    if isinstance(node, ast.Compare):
        left = _value(node.left, facts, used)
        for kind, right_node in zip(node.ops, node.comparators, strict=True):
            right = _value(right_node, facts, used)
            if not _OPERATORS[type(kind)](left, right):
                return False
            left = right
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ceil32" and len(node.args) == 1:
        return math.ceil(_value(node.args[0], facts, used) / 32) * 32
    raise SpecError(f"a constraint may not hold {type(node).__name__}")


def _either(node: ast.BoolOp, facts: Mapping[str, Value], used: list[str]) -> bool:
    """and, or: decided by what is known, where that is enough."""
    decides = isinstance(node.op, ast.Or)
    unknown = False
    for part in node.values:
        try:
            if bool(_value(part, facts, used)) == decides:
                return decides
        except _Unknown:
            unknown = True
    if unknown:
        raise _Unknown
    return not decides
