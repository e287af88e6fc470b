"""The context that a layout needs from the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, operands_of
from wirekit.values import shown

MOST_VALUES = 12
"""The most values of a context in a hint."""


def contexts_of(layout: Any) -> set[str]:
    """The names of the context that a layout uses, without those of layouts to which it refers."""
    nodes = [node for _, node in ir.walk(layout)]
    trees = [tree for node in nodes for _, tree in ir.expressions(node)]
    trees += [tree for node in nodes if isinstance(node, ir.Structure) for tree in node.refusals]
    return {each.name for tree in trees for each in operands_of(tree) if isinstance(each, Context)}


def choices_of(layout: Any) -> list[tuple[tuple[str, ...], list[tuple[Any, ...]]]]:
    """(names of the context, combinations of their known values) of each choice that only context decides.

    Without the choices of layouts to which the layout refers.
    """
    choices = []
    for _, node in ir.walk(layout):
        if isinstance(node, ir.Choice) and all(isinstance(each, Context) for each in node.on):
            names = tuple(each.name for each in node.on if isinstance(each, Context))
            choices.append((names, [values for values, _ in node.cases]))
    return choices


def undecided(layout: Any, context: Mapping[str, Any], path: str) -> str:
    """The reason why the context does not decide the choice around a field, and the values that would; else "".

    Args:
        layout: the whole layout.
        context: the context from the caller.
        path: the field, with array indexes.
    """
    field = re.sub(r"\[\d+\]", "", path)
    for place, node in ir.walk(layout):
        if not isinstance(node, ir.Choice) or not (field == place or field.startswith(f"{place}.")):
            continue
        names = [each.name for each in node.on if isinstance(each, Context)]
        cases = [values for values, _ in node.cases] if len(names) == len(node.on) else []
        for at, name in enumerate(names if cases else ()):
            known = {case[at] for case in cases}  # None is the value of missing context
            values = sorted(known - {None}, key=lambda value: (isinstance(value, str), value))
            listed = ", ".join(map(str, values[:MOST_VALUES])) + (", …" if len(values) > MOST_VALUES else "")
            if name not in context and None not in known:
                return f"the context {name} was not given; it may be {listed}"
            cases = [case for case in cases if case[at] == context.get(name)]
            if not cases:
                return f"the context {name} is {shown(context[name])}; it may be {listed}"
    return ""
