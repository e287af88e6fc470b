"""Converts ``this`` expressions, by which a layout computes values from earlier fields, to explicit trees.

construct's expression objects are traversed, not printed and parsed. Only names, numbers, lengths, comparisons, and
arithmetic whose result is as small as its operands are accepted, because every engine computes these in the same way.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from construct.expr import BinExpr, FuncPath, Path, UniExpr

from wirekit.errors import Misuse

BINARY: dict[Callable[..., Any], str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.rshift: ">>",
    operator.lshift: "<<",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
UNARY: dict[Callable[..., Any], str] = {operator.neg: "-", operator.pos: "+", operator.not_: "not "}
FUNCTIONS = {(symbol, count): each for count, some in ((1, UNARY), (2, BINARY)) for each, symbol in some.items()}
"""The functions of operators by (symbol, number of operands)."""
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
SHIFTS = ("<<", ">>")
LARGEST_SHIFT = 64
"""The largest shift in bits; a field as shift count would allow numbers of any size."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a string or None."""

    value: Any

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Field:
    """An earlier field: ``names`` in the struct that is ``up`` levels outside the current one."""

    up: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "^" * self.up + ".".join(self.names)


@dataclass(frozen=True, slots=True)
class Context:
    """A value of the context from the caller; None if it is missing."""

    name: str

    def __str__(self) -> str:
        return f"context.{self.name}"


@dataclass(frozen=True, slots=True)
class LengthOf:
    """The number of bytes or elements of a field."""

    of: Expression

    def __str__(self) -> str:
        return f"len({self.of})"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of Python and its one or two operands."""

    symbol: str
    operands: tuple[Expression, ...]

    def __str__(self) -> str:
        if len(self.operands) == 1:
            return f"{self.symbol}{self.operands[0]}"
        return f"({self.operands[0]} {self.symbol} {self.operands[1]})"


Expression = Literal | Field | Context | LengthOf | Operation


def expression(source: Any) -> Expression:
    """The tree of a constant or of a ``this`` expression.

    Raises:
        Misuse: a lambda, an operator that is not accepted, or a shift by a field.

    >>> from construct import len_, this
    >>> print(expression((this._.size - 4) // 2 > len_(this.name)))
    (((^size - 4) // 2) > len(name))
    """
    if isinstance(source, BinExpr):
        if source.op not in BINARY:
            raise Misuse(f"the operator of {source!r} cannot be compiled; use {' '.join(BINARY.values())}")
        if BINARY[source.op] in SHIFTS and not (isinstance(source.rhs, int) and 0 <= source.rhs <= LARGEST_SHIFT):
            raise Misuse(f"{source!r} cannot be compiled; shift by a number from 0 to {LARGEST_SHIFT}")
        return Operation(BINARY[source.op], (expression(source.lhs), expression(source.rhs)))
    if isinstance(source, UniExpr):
        if source.op not in UNARY:
            raise Misuse(f"the operator of {source!r} cannot be compiled; use {' '.join(UNARY.values())}")
        return Operation(UNARY[source.op], (expression(source.operand),))
    if isinstance(source, FuncPath):
        function, operand = vars(source)["_FuncPath__func"], vars(source)["_FuncPath__operand"]
        if function is not len or operand is None:
            raise Misuse(f"{source!r} cannot be compiled; len_ is the only function")
        return LengthOf(expression(operand))
    if isinstance(source, Path):
        return _path(source)
    if source is None or isinstance(source, (int, str, bytes)) or (isinstance(source, float) and isfinite(source)):
        return Literal(source)
    raise Misuse(f"{source!r} cannot be compiled; write a constant or a `this` expression")


def _path(source: Path) -> Expression:
    names: list[str] = []
    at: Any = source
    while vars(at)["_Path__parent"] is not None:
        names.append(vars(at)["_Path__field"])
        at = vars(at)["_Path__parent"]
    names.reverse()
    up = 0
    while names and names[0] == "_":
        up += 1
        names.pop(0)
    if names and names[0] == "_params":
        if len(names) != 2:  # _params and one name
            raise Misuse(f"{source!r} cannot be compiled; context has no nested names")
        return Context(names[1])
    if not names or any(not isinstance(name, str) for name in names):
        raise Misuse(f"{source!r} cannot be compiled; it names no field")
    return Field(up, tuple(names))


def operands_of(tree: Expression) -> Iterator[Expression]:
    """An expression and all expressions in it."""
    yield tree
    if isinstance(tree, LengthOf):
        yield from operands_of(tree.of)
    elif isinstance(tree, Operation):
        for operand in tree.operands:
            yield from operands_of(operand)


def fields_of(tree: Expression) -> list[Field]:
    """All fields that an expression reads."""
    return [each for each in operands_of(tree) if isinstance(each, Field)]


def bounds(symbol: str, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    """The range of a result of arithmetic; None if the operation can fail or its bounds are unknown."""
    ends: list[int] = []
    match symbol:
        case "+":
            ends = [one[0] + other[0], one[1] + other[1]]
        case "-":
            ends = [one[0] - other[1], one[1] - other[0]]
        case "*":
            ends = [a * b for a in one for b in other]
        case "//" if other[0] == other[1] != 0:
            ends = [a // other[0] for a in one]
        case "%" if other[0] == other[1] > 0:
            ends = [0, other[0] - 1]
        case "&" if one[0] >= 0 and other[0] >= 0:
            ends = [0, min(one[1], other[1])]
        case "&" if one[0] >= 0 or other[0] >= 0:
            ends = [0, other[1] if other[0] >= 0 else one[1]]
        case "|" | "^" if one[0] >= 0 and other[0] >= 0:
            ends = [0, (1 << max(one[1], other[1]).bit_length()) - 1]
        case ">>" if 0 <= other[0] <= other[1] < 64:
            ends = [a >> b for a in one for b in other]
        case "<<" if other[0] == other[1] and 0 <= other[0] < 64:
            ends = [a << other[0] for a in one]
    return (min(ends), max(ends)) if ends else None
