"""The language of `where:` says what it promises, refuses everything else, and never raises on a value."""

from __future__ import annotations

import contextlib
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.expression import Expression, ExpressionError


class Bundle:
    """A bundle of a few captures and facts."""

    captures: ClassVar[dict[tuple[str, str], str]] = {
        ("dims", "m"): "17",
        ("dims", "k"): "48",
        ("dims", "shape"): "[4, 128, 7168]",
        ("dims", "hex"): "0x10",
        ("bank", "value"): "91.5",
    }
    facts: ClassVar[dict[str, str]] = {"cann.version": "8.1.RC1", "env.HCCL_BUFFSIZE": "50"}

    def capture(self, leaf: str, name: str) -> str | None:
        return self.captures.get((leaf, name))

    def fact(self, name: str) -> str | None:
        return self.facts.get(name)

    def metric(self, name: str, how: str) -> float | None:
        return 96.0 if (name, how) == ("npu.hbm.usage", "max") else None

    def count(self, leaf: str) -> int:
        return 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dims.m % 16 != 0 or dims.k % 16 != 0", True),
        ("dims.k % 16 == 0 and not dims.m % 16 == 0", True),
        ("dims.hex == 16", True),
        ("max(split(dims.shape)) == 7168", True),
        ("len(split(dims.shape)) == 3", True),
        ("bank.value > 85", True),
        ("fact('env.HCCL_BUFFSIZE') < 200", True),
        ("version(fact('cann.version')) < version('8.2.RC1')", True),
        ("metric('npu.hbm.usage', 'max') >= 95", True),
        ("count(dims) >= 3", True),
        ("dims.m in [16, 17]", True),
        ("'128' in dims.shape", True),
        ("known(fact('nothing'))", False),
        ("fact('nothing') == 5", False),
        ("fact('nothing') != 5", False),
        ("dims.m / (dims.m - 17) > 1 or dims.m % (dims.m - 17) == 1", False),
        ("dims.shape * 10000000000 == 'b'", False),
        ("9999999999999 * 9999999999999 > 1", False),
        ("dims.m < dims.nothing", False),
        ("1 < dims.m < 20", True),
    ],
)
def test_an_expression_comes_to_its_value(text: str, value: bool) -> None:
    assert Expression(text).holds(Bundle()) is value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "dims.m.__class__.__mro__[1].__subclasses__()",
        "__import__('os').system('true') == 0",
        "9**9**9**9 > 1",
        "[x for x in range(10**12)]",
        "(lambda: 1)()",
        "(" * 20000 + "1" + ")" * 20000,
        "not " * 20000 + "1",
        "not " * 300 + "1",
        "nowhere > 1",
        "'a' * 10000000000 == 'b'",
        "dims.m / 0 > 1",
        "dims.m % 0 == 1",
        "open('x')",
        "dims.m if 1 else 2",
        "f'{dims.m}'",
        "fact(dims.m)",
        "b'x' == 1",
        "1e999 > 1",
        "dims._x == 1",
        "x := 1",
    ],
)
def test_what_is_not_of_the_language_is_refused_when_the_rule_is_loaded(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text)


def test_a_name_that_no_pattern_captures_is_refused_with_its_column() -> None:
    with pytest.raises(ExpressionError, match="captures no 'q'") as caught:
        Expression("dims.m > 1 and dims.q > 1", {"dims": frozenset({"m"})})
    assert caught.value.column == 16


@given(st.text(max_size=60))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        Expression(text).holds(Bundle())


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "==", "!=", ">=", "in", "and", "or"]))
def test_captures_of_any_text_never_raise(left: str, right: str, operator: str) -> None:
    class Any(Bundle):
        captures: ClassVar[dict[tuple[str, str], str]] = {("a", "x"): left, ("b", "y"): right}

    Expression(f"a.x {operator} b.y").holds(Any())
