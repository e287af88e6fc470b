"""Evaluates the expressions of a layout, and lists the fields that they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import FUNCTIONS, Context, Expression, Field, LengthOf, Literal, Operation

Names = tuple[str, ...]
"""The path of a field in a structure; ``LENGTH`` as the last name means its length."""


LENGTH = "#"


Look = Callable[[int, Names], Any]


class Unknown(Exception):
    """An expression reads a field that is not known yet."""


def evaluate(tree: Expression, look: Look, context: Mapping[str, Any]) -> Any:
    """The value of an expression; ``look`` returns the values of fields.

    Raises:
        Unknown: a field is not known, or its value has the wrong type.
    """
    try:
        match tree:
            case Literal(value=value):
                return value
            case Context(name=name):
                return context.get(name)
            case Field(up=up, names=names):
                return look(up, names)
            case LengthOf(of=Field(up=up, names=names)):
                return look(up, (*names, LENGTH))
            case LengthOf(of=inner):
                return len(evaluate(inner, look, context))
            case Operation(symbol=symbol, operands=operands):
                values = [evaluate(each, look, context) for each in operands]
                return FUNCTIONS[symbol, len(values)](*values)
    except (TypeError, ZeroDivisionError, KeyError, AttributeError):
        raise Unknown from None
    raise Unknown


def evaluated(trees: Iterable[Expression], look: Look, context: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The values of expressions; None if one of them is not known."""
    try:
        return tuple(evaluate(tree, look, context) for tree in trees)
    except Unknown:
        return None


def look_up(scope: Any, up: int, names: Names) -> Any:
    """A field in a scope; None for an absent one."""
    at = scope
    for _ in range(up):
        at = at["_"]
    for index, name in enumerate(names):
        if name == LENGTH:
            return len(at) if at is not None else 0
        if index == 0:
            if name not in at:
                raise Unknown
            at = at[name]
        else:
            at = at.get(name)
    return at


def read_by(tree: Expression) -> Iterator[tuple[int, Names]]:
    """The fields that an expression reads; for ``len_`` of a field, its length."""
    if isinstance(tree, Field):
        yield tree.up, tree.names
    elif isinstance(tree, LengthOf) and isinstance(tree.of, Field):
        yield tree.of.up, (*tree.of.names, LENGTH)
    elif isinstance(tree, LengthOf):
        yield from read_by(tree.of)
    elif isinstance(tree, Operation):
        for operand in tree.operands:
            yield from read_by(operand)


def expressions_of(node: ir.Node) -> list[Expression]:
    """The node's own expressions that decide its bytes."""
    if isinstance(node, ir.Blob) and node.filler:
        return []
    return [tree for role, tree in ir.expressions(node) if role not in ("value", "default", "size")]
