"""Applies the caller's context to a layout: choices that the context decides are resolved before code is generated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.contexts import contexts_of, names_of
from wirekit.compiler.expressions import Context, Expression, LengthOf, Literal, Operation
from wirekit.compiler.values import Unknown, evaluate
from wirekit.errors import LARGEST_PRINTED
from wirekit.program.unfit import unfit
from wirekit.values import quoted


def context_text(key: str, context: Mapping[str, Any]) -> str:
    """The context that the layout of a schema uses, as a text that identifies it; "" if it uses none.

    >>> context_text("kafka.response", {"api": "fetch", "version": 2, "more": 1})
    "api='fetch' version=2"
    """
    return " ".join(f"{name}={_text(context.get(name))}" for name in names_of(key))


def settled(key: str, layout: ir.Node, context: Mapping[str, Any]) -> ir.Node:
    """A layout with the context as constants, None for missing values. Nodes without context remain the same.

    Raises:
        Misuse: a choice has no such case, or an expression cannot be computed.
    """
    return _Settling(key, context).node(layout, "") if contexts_of(layout) else layout


class _Settling:
    def __init__(self, key: str, context: Mapping[str, Any]) -> None:
        self.key = key
        self.context = context
        self.settled_by_node: dict[int, tuple[ir.Node, ir.Node]] = {}

    def node(self, node: ir.Node, path: str) -> ir.Node:
        if id(node) not in self.settled_by_node:  # with the node itself, so that its id is not reused
            self.settled_by_node[id(node)] = node, self.settled(node, path)
        return self.settled_by_node[id(node)][1]

    def settled(self, node: ir.Node, path: str) -> ir.Node:
        match node:
            case ir.Choice(on=on) if (values := self.values(on, path)) is not None:
                chosen = node.case(values) or node.otherwise
                if chosen is None:
                    names, shown = " and ".join(map(str, on)), ", ".join(map(quoted, values))
                    raise unfit(self.key, path, node, f"the context {names} selects it, and no case is for {shown}")
                return self.node(chosen, path)
            case ir.Either(condition=condition) if (value := self.values((condition,), path)) is not None:
                return self.node(node.then if value[0] else node.otherwise, path)
            case ir.When(condition=condition) if (value := self.values((condition,), path)) is not None and value[0]:
                return self.node(node.node, path)

        def inside(role: str, inner: ir.Node) -> ir.Node:
            return self.node(inner, ir.inner_path(path, role) if isinstance(node, ir.Structure) else path)

        return ir.mapped(node, inside, lambda tree: self.tree(tree, path))

    def values(self, trees: tuple[Expression, ...], path: str) -> tuple[Any, ...] | None:
        """The values of expressions that depend only on context; None for others."""
        results = [self.tree(tree, path) for tree in trees]
        if all(isinstance(tree, Literal) for tree in results) and any(
            tree != other for tree, other in zip(results, trees, strict=True)
        ):
            return tuple(_plain(tree.value) for tree in results if isinstance(tree, Literal))
        return None

    def tree(self, tree: Expression, path: str) -> Expression:
        match tree:
            case Context(name=name):
                return Literal(_plain(self.context.get(name)))
            case LengthOf(of=inner):
                operand = self.tree(inner, path)
                return tree if operand is inner else LengthOf(operand)
            case Operation(symbol=symbol, operands=operands):
                operation = Operation(symbol, tuple(self.tree(each, path) for each in operands))
                if operation == tree or not all(isinstance(each, Literal) for each in operation.operands):
                    return tree if operation == tree else operation
                try:
                    return Literal(evaluate(operation, lambda *_: None, {}))
                except Unknown:
                    raise unfit(self.key, path, f"an expression, {tree}, that columns cannot compute") from None
        return tree


def _text(value: Any) -> str:
    """A value as text; Python refuses the decimal digits of large integers."""
    plain = _plain(value)
    return hex(plain) if isinstance(plain, int) and plain.bit_length() > LARGEST_PRINTED else repr(plain)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, int) else value
