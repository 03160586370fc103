"""The small closed language of `where:` and of metric tests: arithmetic, comparison, and, or, not, in, and a few functions.

Parsed with Python's own grammar, then walked node by node; everything not named here is refused when the rule is loaded.
An operand that is unknown (a fact nobody stated, a capture that is absent) makes a comparison false, never an error.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rules.versions import Version

LENGTH, DEPTH, NODES = 2000, 40, 400
BIG = 1e18
"""Numbers beyond this have no meaning in a log; a result outside it is unknown."""

Value = Any


class ExpressionError(Exception):
    """The expression cannot be used; the message says what is wrong; `column` is where, from 1."""

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.column = column


class Lookup(Protocol):
    """Where names come from when an expression is evaluated."""

    def capture(self, leaf: str, name: str) -> str | None: ...
    def fact(self, name: str) -> str | None: ...
    def metric(self, name: str, how: str) -> float | None: ...
    def count(self, leaf: str) -> int: ...


def _number(value: Value) -> Value:
    """Text that is a number as a number, so that captures can be compared with numbers."""
    if isinstance(value, str):
        text = value.strip()
        if text.endswith("%"):
            text = text[:-1]
        try:
            if len(text) > 40:
                return value
            if text[:2].lower() == "0x":
                return int(text, 16)
            return int(text)
        except ValueError:
            try:
                return float(text)
            except ValueError:
                return value
    return value


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def apply(left: Value, right: Value) -> Value:
        left, right = _number(left), _number(right)
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            return None
        try:
            result = function(left, right)
        except (ZeroDivisionError, OverflowError, ValueError):
            return None
        return result if abs(result) < BIG else None

    return apply


_BINARY: dict[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: _arithmetic(operator.add),
    ast.Sub: _arithmetic(operator.sub),
    ast.Mult: _arithmetic(operator.mul),
    ast.Div: _arithmetic(operator.truediv),
    ast.FloorDiv: _arithmetic(operator.floordiv),
    ast.Mod: _arithmetic(operator.mod),
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _compared(kind: type[ast.cmpop], left: Value, right: Value) -> bool:
    if left is None or right is None:
        return False
    if isinstance(kind, type) and kind in (ast.In, ast.NotIn):
        try:
            inside = str(left) in [str(item) for item in right] if isinstance(right, (list, tuple)) else str(left) in str(right)
        except TypeError:
            return False
        return inside is (kind is ast.In)
    if not isinstance(left, Version) and not isinstance(right, Version):
        left, right = _number(left), _number(right)
        if isinstance(left, str) != isinstance(right, str):
            if kind is ast.Eq:
                return False
            return kind is ast.NotEq
    try:
        return bool(_COMPARE[kind](left, right))
    except TypeError:
        return False


def _version(value: Value) -> Value:
    return None if value is None else Version.parse(str(value))


def _fold(function: Callable[..., Any]) -> Callable[..., Value]:
    def apply(*values: Value) -> Value:
        flat = [_number(v) for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]
        flat = [v for v in flat if isinstance(v, (int, float))]
        return function(flat) if flat else None

    return apply


def _as_number(value: Value) -> Value:
    number = _number(value)
    return number if isinstance(number, (int, float)) else None


def _split(text: str, by: str) -> list[str]:
    """The parts of a printed list or shape: "[4, 128, 7168]" -> 4, 128, 7168."""
    return [part.strip() for part in text[:2000].strip("[](){} ").split(by or ",") if part.strip()]


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "min": _fold(min),
    "max": _fold(max),
    "sum": _fold(sum),
    "abs": lambda value: abs(number) if (number := _as_number(value)) is not None else None,
    "int": lambda value: int(number) if (number := _as_number(value)) is not None else None,
    "number": _as_number,
    "len": lambda value: None if value is None else len(value) if isinstance(value, (list, tuple, str)) else None,
    "any": lambda value: any(_truth(v) for v in value) if isinstance(value, (list, tuple)) else _truth(value),
    "all": lambda value: all(_truth(v) for v in value) if isinstance(value, (list, tuple)) else _truth(value),
    "lower": lambda value: None if value is None else str(value).lower(),
    "version": _version,
    "known": lambda value: value is not None,
    "split": lambda value, by=",": None if value is None else _split(str(value), str(by)),
}
_LOOKUPS = {"fact": 1, "metric": 2, "count": 1}
"""Functions that ask the bundle: fact("cann.version"), metric("npu.hbm.usage", "max"), count(leaf)."""


def _truth(value: Value) -> bool:
    return bool(_number(value)) if value is not None else False


class Expression:
    """A checked expression. Raises ExpressionError when made from a text that is none."""

    def __init__(self, text: str, leaves: Mapping[str, frozenset[str]] | None = None, names: frozenset[str] = frozenset()) -> None:
        """`leaves`: the captures of each leaf, for checking names (None: any); `names`: plain names that are allowed besides."""
        if not text.strip():
            raise ExpressionError("the expression is empty")
        if len(text) > LENGTH:
            raise ExpressionError(f"the expression has {len(text)} characters, at most {LENGTH} are allowed")
        try:
            tree = ast.parse(" ".join(text.split("\n")).strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            column = getattr(error, "offset", None) or 1
            raise ExpressionError(f"the expression cannot be read: {getattr(error, 'msg', None) or type(error).__name__}", column) from None
        self.text, self._leaves, self._names, self._nodes = text, leaves, names, 0
        self._tree = tree.body
        self._check(tree.body, 0)

    def _refuse(self, node: ast.AST, message: str) -> ExpressionError:
        return ExpressionError(message, getattr(node, "col_offset", 0) + 1)

    def _check(self, node: ast.AST, depth: int) -> None:
        self._nodes += 1
        if depth > DEPTH or self._nodes > NODES:
            raise self._refuse(node, f"the expression is too large; at most {NODES} parts, {DEPTH} deep")
        if isinstance(node, ast.Constant):
            if not isinstance(node.value, (int, float, str, bool)) or (isinstance(node.value, (int, float)) and abs(node.value) > BIG):
                raise self._refuse(node, "only texts, true, false and numbers up to 1e18 can stand here")
            return
        if isinstance(node, ast.Name):
            if node.id not in self._names and node.id not in ("true", "false"):
                raise self._refuse(node, f"the name {node.id!r} is unknown here; captures are written leaf.capture")
            return
        if isinstance(node, ast.Attribute):
            self._check_capture(node)
            return
        if isinstance(node, ast.Call):
            self._check_call(node, depth)
            return
        if isinstance(node, ast.BinOp):
            self._check_arithmetic(node)
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, (ast.Not, ast.USub, ast.UAdd)):
            raise self._refuse(node, "only not, - and + can stand before a value")
        if isinstance(node, ast.Compare) and not all(type(op) in _COMPARE or isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            raise self._refuse(node, "of comparisons there are == != < <= > >= in and not in")
        if not isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.List, ast.Tuple)):
            raise self._refuse(node, f"{type(node).__name__} is not part of the rule language")
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)):
                self._check(child, depth + 1)

    def _check_arithmetic(self, node: ast.BinOp) -> None:
        if type(node.op) not in _BINARY:
            raise self._refuse(node, "of arithmetic there are + - * / // and %")
        if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)):
            raise self._refuse(node, "arithmetic takes numbers, not texts")
        if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)) and isinstance(node.right, ast.Constant) and node.right.value == 0:
            raise self._refuse(node, "this divides by zero")

    def _check_capture(self, node: ast.Attribute) -> None:
        if not isinstance(node.value, ast.Name) or node.attr.startswith("_"):
            raise self._refuse(node, "only leaf.capture can be written with a dot")
        if self._leaves is not None:
            if node.value.id not in self._leaves:
                raise self._refuse(node, f"there is no leaf with the id {node.value.id!r} in this rule")
            if node.attr not in self._leaves[node.value.id]:
                raise self._refuse(node, f"the leaf {node.value.id!r} captures no {node.attr!r}")

    def _check_call(self, node: ast.Call, depth: int) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if (name not in _FUNCTIONS and name not in _LOOKUPS) or node.keywords:
            known = ", ".join(sorted({**_FUNCTIONS, **dict.fromkeys(_LOOKUPS)}))
            raise self._refuse(node, f"there is no such function; known are {known}")
        if name in _LOOKUPS:
            if len(node.args) != _LOOKUPS[name]:
                raise self._refuse(node, f"{name} takes {_LOOKUPS[name]} value{'s' if _LOOKUPS[name] > 1 else ''}")
            if name == "count":
                if not isinstance(node.args[0], ast.Name) or (self._leaves is not None and node.args[0].id not in self._leaves):
                    raise self._refuse(node, "count takes the id of a leaf of this rule")
                return
            if not all(isinstance(arg, ast.Constant) and isinstance(arg.value, str) for arg in node.args):
                raise self._refuse(node, f"{name} takes names in quotes")
        if not node.args:
            raise self._refuse(node, f"{name} needs a value")
        for arg in node.args:
            self._check(arg, depth + 1)

    # ------------------------------------------------------------ evaluation

    def value(self, lookup: Lookup | None = None, names: Mapping[str, Value] | None = None) -> Value:
        """What the expression comes to; None where it cannot be known."""
        return self._value(self._tree, lookup, names or {})

    def holds(self, lookup: Lookup | None = None, names: Mapping[str, Value] | None = None) -> bool:
        return _truth(self.value(lookup, names))

    def _value(self, node: ast.AST, lookup: Lookup | None, names: Mapping[str, Value]) -> Value:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return {"true": True, "false": False}.get(node.id, names.get(node.id))
        if isinstance(node, ast.Attribute):
            assert isinstance(node.value, ast.Name)
            return lookup.capture(node.value.id, node.attr) if lookup else None
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._value(item, lookup, names) for item in node.elts]
        if isinstance(node, ast.BoolOp):
            if isinstance(node.op, ast.And):
                return all(_truth(self._value(item, lookup, names)) for item in node.values)
            return any(_truth(self._value(item, lookup, names)) for item in node.values)
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, lookup, names)
            if isinstance(node.op, ast.Not):
                return not _truth(value)
            number = _as_number(value)
            return None if number is None else -number if isinstance(node.op, ast.USub) else number
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left, lookup, names), self._value(node.right, lookup, names)
            return _BINARY[type(node.op)](left, right)
        if isinstance(node, ast.Compare):
            left = self._value(node.left, lookup, names)
            for op, side in zip(node.ops, node.comparators, strict=True):
                right = self._value(side, lookup, names)
                if not _compared(type(op), left, right):
                    return False
                left = right
            return True
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return self._call(node, node.func.id, lookup, names)

    def _call(self, node: ast.Call, name: str, lookup: Lookup | None, names: Mapping[str, Value]) -> Value:
        if name == "count":
            assert isinstance(node.args[0], ast.Name)
            return lookup.count(node.args[0].id) if lookup else None
        values = [self._value(arg, lookup, names) for arg in node.args]
        if name == "fact":
            return lookup.fact(values[0]) if lookup else None
        if name == "metric":
            return lookup.metric(values[0], values[1]) if lookup else None
        try:
            return _FUNCTIONS[name](*values)
        except (TypeError, ValueError, OverflowError):
            return None
