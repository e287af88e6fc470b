"""Finds, by columns, the frames with values that peers refuse; in records, such a value has a bad check."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Field, LengthOf, Literal, Operation, fields_of
from wirekit.compiler.generated import by_key
from wirekit.registry import registry
from wirekit.tables.paths import ALL, Step, parse
from wirekit.tables.scopes import Frames, Scope, Unfit

Refusals = tuple[tuple[str, Expression], ...]
"""(path of a structure, condition over its fields that is true of refused values)."""

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_JOINED: dict[str, Callable[[Any, Any], Any]] = {"&": operator.and_, "|": operator.or_}


@by_key
def refusals_of(key: str) -> Refusals:
    """The refused values that the structures of a schema declare."""
    return tuple(dict.fromkeys(_within(registry[key].layout, "")))


def _within(node: ir.Node, path: str) -> Iterator[tuple[str, Expression]]:
    if isinstance(node, ir.Structure):
        for tree in node.refusals:
            yield path, tree
        for member in node.members:
            yield from _within(member.node, f"{path}.{member.name}".lstrip("."))
    elif isinstance(node, ir.Several):
        yield from _within(node.element, f"{path}[]")
    elif not isinstance(node, ir.Packed):
        for _, inner in ir.parts(node):
            yield from _within(inner, path)


@by_key
def paths_of_refusals(key: str) -> tuple[str, ...]:
    """The paths that the conditions of a schema's refused values read."""
    fields = ((path, each) for path, tree in refusals_of(key) for each in fields_of(tree))
    return tuple(dict.fromkeys(f"{path}.{'.'.join(each.names)}".lstrip(".") for path, each in fields))


def refused(refusals: Refusals, frames: Frames) -> NDArray[Any]:
    """Whether a frame contains a refused value, for each frame.

    Raises:
        Unfit: an expression cannot be evaluated over columns.
    """
    marks = np.zeros(frames.batch.num_rows, bool)
    of_lists: dict[tuple[Step, ...], _Rows] = {}
    for path, tree in refusals:
        steps = parse(path) if path else ()
        each = steps[: len(steps) - steps[::-1].index(ALL)] if ALL in steps else ()
        rows = of_lists.get(each)
        if rows is None:
            rows = of_lists[each] = _Rows(Scope(frames, each))
        if rows.scope.size:
            marks[rows.scope.rows[rows.truth(tree, path)]] = True
    return marks


class _Rows:
    """Evaluates expressions for frames, or for the elements of a list in them.

    Args:
        scope: their rows.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._known: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}

    def truth(self, tree: Expression, path: str) -> NDArray[Any]:
        """Whether an expression is true as in Python, for each row; an absent value is false.

        Args:
            tree: the expression.
            path: the path of the structure with its fields.
        """
        match tree:
            case Operation(symbol="not ", operands=(inner,)):
                return ~self.truth(inner, path)
            case Operation(symbol=symbol, operands=(one, other)) if symbol in _JOINED:
                truth: NDArray[Any] = _JOINED[symbol](self.truth(one, path), self.truth(other, path))
                return truth
            case Operation(symbol=symbol, operands=(one, Literal(value=int(value)))) if symbol in _COMPARED:
                numbers, present = self._numbers(one, path)
                truth = _COMPARED[symbol](numbers, value) & present
                return truth
            case Field():
                array = self.scope.path(_path(tree, path)).array
                if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
                    return np.asarray(pc.fill_null(pc.greater(pc.binary_length(array), 0), False))
                numbers, present = self._numbers(tree, path)
                return (numbers != 0) & present
        raise Unfit(f"{tree}: columns cannot evaluate this refusal")

    def _numbers(self, tree: Expression, path: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Numbers, and a mask of those that are present."""
        match tree:
            case LengthOf(of=Field() as field):
                return self.scope.lengths(_path(field, path)), np.ones(self.scope.size, bool)
            case Field():
                place = _path(tree, path)
                if place not in self._known:
                    self._known[place] = self._of_field(tree, place)
                return self._known[place]
        raise Unfit(f"{tree}: columns cannot evaluate this refusal")

    def _of_field(self, field: Field, place: str) -> tuple[NDArray[Any], NDArray[Any]]:
        array = self.scope.path(place).array
        if pa.types.is_null(array.type):
            return np.zeros(self.scope.size, np.int64), np.zeros(self.scope.size, bool)
        if pa.types.is_integer(array.type) or pa.types.is_boolean(array.type):
            integers = array.cast(pa.int64()) if array.type != pa.uint64() else array.view(pa.int64())
            return np.asarray(integers.fill_null(0)), np.asarray(array.is_valid())
        raise Unfit(f"{field}: columns cannot evaluate this refusal")


def _path(field: Field, path: str) -> str:
    if field.up:
        raise Unfit(f"{field}: leads out of its structure")
    return f"{path}.{'.'.join(field.names)}".lstrip(".")
