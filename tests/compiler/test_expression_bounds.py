"""The range that a program gives to the result of arithmetic holds every result, and is not wider than it has to be."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirekit.compiler.expressions import bounds

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
TIGHT = ("+", "-", "*", ">>", "<<")
numbers = st.integers(-9, 70)
ranges = st.tuples(numbers, st.integers(0, 5)).map(lambda each: (each[0], each[0] + each[1]))


@pytest.mark.parametrize("symbol", OPERATIONS)
@given(one=ranges, other=ranges | numbers.map(lambda number: (number, number)))
def test_a_range_holds_every_result(symbol: str, one: tuple[int, int], other: tuple[int, int]) -> None:
    limits = bounds(symbol, one, other)
    if limits is None:
        return
    pairs = product(range(one[0], one[1] + 1), range(other[0], other[1] + 1))
    results = [OPERATIONS[symbol](a, b) for a, b in pairs]
    assert limits[0] <= min(results)
    assert max(results) <= limits[1]
    if symbol in TIGHT:
        assert limits == (min(results), max(results))


@pytest.mark.parametrize(
    ("symbol", "other"),
    [("//", (0, 0)), ("//", (1, 2)), ("%", (0, 0)), ("%", (-3, -3)), (">>", (-1, 0)), ("<<", (0, 64))],
)
def test_an_operation_that_can_fail_or_has_no_known_end_has_no_range(symbol: str, other: tuple[int, int]) -> None:
    assert bounds(symbol, (0, 9), other) is None
