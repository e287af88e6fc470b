"""Applies the caller's context to a layout: choices that it decides are resolved before code is generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.contexts import contexts_of
from wirekit.compiler.expressions import BINARY, UNARY, Context, Expression, LengthOf, Literal, Operation
from wirekit.errors import Misuse
from wirekit.program.unfit import unfit

_BINARY = {symbol: function for function, symbol in BINARY.items()}
_UNARY = {symbol: function for function, symbol in UNARY.items()}


def said(layout: ir.Node, context: Mapping[str, Any]) -> str:
    """The context that a layout asks for, as text that tells it from others; "" for one that asks for none.

    >>> from wirekit.registry import registry
    >>> said(registry["kafka.response"].layout, {"api": "fetch", "version": 2, "more": 1})
    "api='fetch' version=2"
    """
    return " ".join(f"{name}={_plain(context.get(name))!r}" for name in sorted(contexts_of(layout)))


def settled(key: str, layout: ir.Node, context: Mapping[str, Any]) -> ir.Node:
    """A layout in which context is constants; what is not said is None. Parts that ask for none stay the same nodes.

    Raises:
        Misuse: when no case of a choice is meant, or an expression cannot be computed.
    """
    return _Settling(key, context).node(layout, "") if contexts_of(layout) else layout


def checked(key: str, layout: ir.Node, context: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The context that a caller gives.

    Raises:
        Misuse: for names that the layout does not ask for.
    """
    asked = sorted(contexts_of(layout))
    unknown = sorted(set(context or {}) - set(asked))
    if unknown:
        taken = f"it takes {', '.join(asked)}" if asked else "it takes none"
        raise Misuse(f"{key} takes no context {', '.join(unknown)}; {taken}")
    return context or {}


class _Settling:
    def __init__(self, key: str, context: Mapping[str, Any]) -> None:
        self.key = key
        self.context = context
        self.known: dict[int, tuple[ir.Node, ir.Node]] = {}

    def node(self, node: ir.Node, path: str) -> ir.Node:
        if id(node) not in self.known:  # with the node itself, so that its id is not used again
            self.known[id(node)] = node, self.made(node, path)
        return self.known[id(node)][1]

    def made(self, node: ir.Node, path: str) -> ir.Node:
        match node:
            case ir.Choice(on=on) if (values := self.values(on, path)) is not None:
                for case, inner in node.cases:
                    if case == values:
                        return self.node(inner, path)
                if node.otherwise is None:
                    names = " and ".join(map(str, on))
                    raise unfit(
                        self.key, path, node, f"the context {names} selects it, and no case is for {_shown(values)}"
                    )
                return self.node(node.otherwise, path)
            case ir.Either(condition=condition) if (value := self.values((condition,), path)) is not None:
                return self.node(node.then if value[0] else node.otherwise, path)
            case ir.When(condition=condition) if (value := self.values((condition,), path)) is not None and value[0]:
                return self.node(node.node, path)
            case ir.Structure(members=members):
                inside = tuple(
                    replace(each, node=self.node(each.node, f"{path}.{each.name}" if path else each.name))
                    for each in members
                )
                same = all(one.node is other.node for one, other in zip(inside, members, strict=True))
                return node if same else replace(node, members=inside)
            case ir.Choice():
                cases = tuple((case, self.node(inner, path)) for case, inner in node.cases)
                otherwise = None if node.otherwise is None else self.node(node.otherwise, path)
                on = tuple(self.tree(tree, path) for tree in node.on)
                same = otherwise is node.otherwise and on == node.on
                same &= all(one[1] is other[1] for one, other in zip(cases, node.cases, strict=True))
                return node if same else replace(node, on=on, cases=cases, otherwise=otherwise)
        changed: dict[str, Any] = {}
        for name in (each.name for each in fields(node)):
            value = getattr(node, name)
            made = value
            if isinstance(value, Expression):
                made = self.tree(value, path)
            elif isinstance(value, ir.Node):
                made = self.node(value, path)
            elif isinstance(value, tuple) and value and all(isinstance(each, Expression) for each in value):
                made = tuple(self.tree(each, path) for each in value)
            if made is not value and made != value:
                changed[name] = made
        return replace(node, **changed) if changed else node

    def values(self, trees: tuple[Expression, ...], path: str) -> tuple[Any, ...] | None:
        """The values of expressions that depend only on context; None for others."""
        found = [self.tree(tree, path) for tree in trees]
        if all(isinstance(tree, Literal) for tree in found) and any(
            tree != other for tree, other in zip(found, trees, strict=True)
        ):
            return tuple(_plain(tree.value) for tree in found if isinstance(tree, Literal))
        return None

    def tree(self, tree: Expression, path: str) -> Expression:
        match tree:
            case Context(name=name):
                return Literal(_plain(self.context.get(name)))
            case LengthOf(of=inner):
                return replace(tree, of=self.tree(inner, path))
            case Operation(symbol=symbol, operands=operands):
                made = tuple(self.tree(each, path) for each in operands)
                if made == operands:
                    return tree
                literals = [each.value for each in made if isinstance(each, Literal)]
                if len(literals) < len(made):
                    return replace(tree, operands=made)
                function = (_UNARY if len(made) == 1 else _BINARY)[symbol]
                try:
                    return Literal(function(*literals))
                except (TypeError, ValueError, ArithmeticError):
                    raise unfit(self.key, path, f"an expression, {tree}, that columns cannot compute") from None
        return tree


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, int) else value


def _shown(values: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, values))
