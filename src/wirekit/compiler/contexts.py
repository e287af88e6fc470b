"""The context that a layout needs from the caller."""

from __future__ import annotations

from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, LengthOf, Operation


def contexts_of(layout: Any) -> set[str]:
    """The names of the context that a layout asks for, those of layouts it refers to left out."""
    found: set[str] = set()
    for _, node in ir.walk(layout):
        for name in type(node).__slots__:
            value = getattr(node, name)
            for tree in value if isinstance(value, tuple) else (value,):
                found |= _contexts(tree)
    return found


def choices_of(layout: Any) -> list[tuple[tuple[str, ...], list[tuple[Any, ...]]]]:
    """(names of the context, their known values together) of each choice that nothing but context decides.

    Layouts that the layout refers to are left out.
    """
    found = []
    for _, node in ir.walk(layout):
        if isinstance(node, ir.Choice) and all(isinstance(each, Context) for each in node.on):
            names = tuple(each.name for each in node.on if isinstance(each, Context))
            found.append((names, [values for values, _ in node.cases]))
    return found


def _contexts(tree: Any) -> set[str]:
    if isinstance(tree, Context):
        return {tree.name}
    if isinstance(tree, LengthOf):
        return _contexts(tree.of)
    if isinstance(tree, Operation):
        return {name for operand in tree.operands for name in _contexts(operand)}
    return set()
