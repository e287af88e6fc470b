"""The context that a layout needs from the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from wirekit.compiler import ir
from wirekit.compiler.expressions import Context, operands_of
from wirekit.compiler.generated import by_key
from wirekit.errors import Misuse
from wirekit.registry import registry
from wirekit.values import shown
from wirekit.wire.arguments import refuse_unless_fit

MOST_VALUES = 12
"""The most values of a context in a hint."""


def contexts_of(layout: Any) -> set[str]:
    """The names of the context that a layout uses, without those of layouts to which it refers."""
    nodes = [node for _, node in ir.walk(layout)]
    trees = [tree for node in nodes for _, tree in ir.expressions(node)]
    trees += [tree for node in nodes if isinstance(node, ir.Structure) for tree in node.refusals]
    return {each.name for tree in trees for each in operands_of(tree) if isinstance(each, Context)}


@by_key
def names_of(key: str) -> list[str]:
    """The names of the context that the layout of a schema uses, in order."""
    return sorted(contexts_of(registry[key].layout))


class Decided(NamedTuple):
    """A choice that only context decides.

    Attributes:
        place: its path.
        names: the names of the context.
        cases: the combinations of their known values.
        default: whether it has a default.
    """

    place: str
    names: tuple[str, ...]
    cases: list[tuple[Any, ...]]
    default: bool


@by_key
def choices_of(key: str) -> list[Decided]:
    """The choices in the layout of a schema that only context decides, without those of layouts to which it refers."""
    choices = []
    for place, node in ir.walk(registry[key].layout):
        if isinstance(node, ir.Choice) and all(isinstance(each, Context) for each in node.on):
            names = tuple(each.name for each in node.on if isinstance(each, Context))
            choices.append(Decided(place, names, [values for values, _ in node.cases], node.otherwise is not None))
    return choices


def checked(name: str, context: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The context from the caller.

    Args:
        name: a schema key, or the name of a protocol for the layouts of its streams.
        context: the context.

    Raises:
        Misuse: the layout does not use one of the names; the text lists those that it uses.
    """
    if context is not None:
        refuse_unless_fit(name, "context", context, Mapping | None)
    if context:
        accepted_names = set().union(*map(names_of, _keys(name)))
        unknown = sorted(map(str, context.keys() - accepted_names))
        if unknown:
            accepted = f"it takes {', '.join(sorted(accepted_names))}" if accepted_names else "it takes none"
            raise Misuse(f"{name} takes no context {', '.join(unknown)}; {accepted}")
    return context or {}


def check_context(name: str, context: Mapping[str, Any]) -> None:
    """Refuses context that a layout does not use, or has no case for; lists the context that it uses.

    A choice without a default is not checked: the value is wrong if it has the choice.

    Args:
        name, context: as for ``checked``.

    Raises:
        Misuse: the context has another name, or another value of a choice.
    """
    checked(name, context)
    for key in _keys(name):
        for each in choices_of(key):
            if each.default and tuple(map(context.get, each.names)) not in each.cases:
                _check_choice(key, each.names, each.cases, context)


def _keys(name: str) -> set[str]:
    """The schemas that a key, or the name of a protocol, stands for."""
    return {name} if "." in name else {registry.protocol(name).stream(side) for side in ("client", "server")}


def _check_choice(key: str, names: tuple[str, ...], cases: list[tuple[Any, ...]], context: Mapping[str, Any]) -> None:
    """Refuses values without a case of a choice, and lists the cases: ``it may be 0 to 3``."""
    preceding: list[str] = []
    for at, name in enumerate(names):
        value = context.get(name)
        if value is None:
            continue
        case_values = {case[at] for case in cases} - {None}
        if value not in list(case_values):
            owner = f"{key} with {', '.join(preceding)}" if preceding else key
            listed = _listed(sorted(case_values, key=lambda value: (isinstance(value, str), value)))
            raise Misuse(f"{owner} has no {name} {shown(value)}; it may be {listed}")
        cases = [case for case in cases if case[at] == value]
        preceding.append(f"{name} {value}")


def _listed(values: list[Any]) -> str:
    """Values in words; whole numbers without a hole as their range."""
    if len(values) > 1 and values == list(range(len(values))):
        return f"{values[0]} to {values[-1]}"
    return ", ".join(map(str, values))


def undecided(key: str, context: Mapping[str, Any], path: str) -> str:
    """The reason why the context does not decide the choice around a field, and the values that would; else "".

    Args:
        key: of the schema.
        context: the context from the caller.
        path: the field, with array indexes.
    """
    field = re.sub(r"\[\d+\]", "", path)
    for place, names, known_cases, _ in choices_of(key):
        if not (field == place or field.startswith(f"{place}.")):
            continue
        cases = known_cases
        for at, name in enumerate(names if cases else ()):
            case_values = {case[at] for case in cases}  # None is the value of missing context
            values = sorted(case_values - {None}, key=lambda value: (isinstance(value, str), value))
            listed = ", ".join(map(str, values[:MOST_VALUES])) + (", …" if len(values) > MOST_VALUES else "")
            if name not in context and None not in case_values:
                return f"the context {name} was not given; it may be {listed}"
            cases = [case for case in cases if case[at] == context.get(name)]
            if not cases:
                return f"the context {name} is {shown(context[name])}; it may be {listed}"
    return ""
