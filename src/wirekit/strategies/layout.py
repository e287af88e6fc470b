"""A schema's IR, with facts about its nodes and those of the schemas that it refers to."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.generated import by_key
from wirekit.compiler.values import expressions_of, read_by
from wirekit.registry import registry
from wirekit.strategies.nodes import branch_names, kinds_of
from wirekit.strategies.plan import Plan
from wirekit.wire import derived
from wirekit.wire.protobuf import Message


class Layout:
    """A schema's IR, with facts about its nodes and those of the schemas that it refers to.

    Attributes:
        key: the schema's key.
        root: the schema's IR.
        nodes: all nodes of the schema, and of those that it refers to.
        names: {id of a node: its first path}, for the names of branches.
        sources: {id of a node: the wire node that it was lowered from}, which can build single elements.
        recursive: whether the schema refers to itself, directly or not.
        closed: ids of the nodes inside constants and lookaheads.
        lookahead_ends: ids of conditions that are true only if bytes follow the value, which a value cannot express.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.root = registry[key].layout
        self.names: dict[int, str] = {}
        self.sources: dict[int, Any] = {}
        self.nodes: list[ir.Node] = []
        self._escapes: dict[int, int] = {}
        self._refers: dict[int, bool] = {}
        self._inside: dict[int, int] = {}
        self._plans: dict[int, Plan] = {}
        self._symbols: dict[int, list[int]] = {}
        self._offering: dict[str, frozenset[int]] = {}
        self.lookahead_ends: set[int] = set()
        edges: dict[str, set[str]] = {}
        waiting = [key]
        while waiting:
            at = waiting.pop()
            if at in edges:
                continue
            edges[at] = self._add(at, "" if at == key else f"{at}:")
            waiting += edges[at]
        self.recursive = any(at in _reached(edges, at) for at in edges)
        self.closed = closed_in(self.nodes)
        if isinstance(self.root, ir.Structure):
            last = self.root.members[-1].node if self.root.members else None
            if isinstance(last, ir.When) and isinstance(last.node, ir.Ahead):
                self.lookahead_ends.add(id(last))

    def _add(self, key: str, prefix: str) -> set[str]:
        schema = registry[key]
        referred = set()
        for path, inner in ir.walk(schema.layout):
            self.names.setdefault(id(inner), f"{prefix}{path}")
            self.nodes.append(inner)
            if isinstance(inner, ir.Reference):
                referred.add(inner.key)
        _pair(schema.layout, schema.node, self.sources)
        return referred

    @cached_property
    def field_names(self) -> set[str]:
        """Names of all fields that are not computed, including bit fields and those of protobuf messages."""
        names: set[str] = set()
        messages: list[Message] = []
        for node in self.nodes:
            if isinstance(node, ir.Structure):
                computed = node.computed
                names |= {member.name for index, member in enumerate(node.members) if index not in computed}
            elif isinstance(node, ir.BitFields):
                names |= {field.name for field in node.fields}
            elif isinstance(node, ir.Protobuf):
                messages.append(Message.by_full_name[node.message])
        visited: set[int] = set()
        while messages:
            message = messages.pop()
            if id(message) not in visited:
                visited.add(id(message))
                names |= set(message.by_name)
                messages += [each.message for each in message.fields.values() if each.message is not None]
        return names

    def refers(self, node: ir.Node) -> bool:
        """Whether a node can contain another schema."""
        refers = self._refers.get(id(node))
        if refers is None:
            refers = any(isinstance(inner, ir.Reference) for _, inner in ir.walk(node))
            self._refers[id(node)] = refers
        return refers

    def inside(self, node: ir.Node) -> int:
        """The number of branches in a node, including those of schemas that it refers to."""
        if id(node) not in self._inside:
            self._inside[id(node)] = 0  # for a schema inside itself
            count = 0
            for _, inner in ir.walk(node):
                if isinstance(inner, ir.Choice | ir.Packed):
                    count += len(inner.cases if isinstance(inner, ir.Choice) else inner.codecs)
                elif isinstance(inner, ir.Reference):
                    count += self.inside(registry[inner.key].layout)
            self._inside[id(node)] = count
        return self._inside[id(node)]

    def symbols(self, node: ir.Named) -> list[int]:
        """The named values that fit into the number."""
        if id(node) not in self._symbols:
            low, high = node.number.low, node.number.high
            self._symbols[id(node)] = [int(symbol) for symbol in node.table if low <= symbol <= high]
        return self._symbols[id(node)]

    def leading(self, aim: frozenset[str]) -> frozenset[int]:
        """Ids of the nodes with one of these branches, and of the nodes that lead to them."""
        return self._leading(at for name in aim for at in self._having.get(name, ()))

    @cached_property
    def _having(self) -> dict[str, list[int]]:
        """The ids of the nodes with each branch, by its name."""
        having: dict[str, list[int]] = {}
        for node in self.nodes:
            for branch in branch_names(node):
                having.setdefault(f"{self.names[id(node)]}={branch}", []).append(id(node))
        return having

    @cached_property
    def _insides(self) -> list[tuple[int, set[int]]]:
        """The id of each node, the last one first, with the ids of the nodes directly inside."""

        def inside(node: ir.Node) -> list[ir.Node]:
            return [registry[node.key].layout] if isinstance(node, ir.Reference) else [n for _, n in ir.parts(node)]

        return [(id(node), set(map(id, inside(node)))) for node in reversed(self.nodes)]

    def offering(self, kind: str) -> frozenset[int]:
        """Ids of the nodes that allow a kind of damage, and of the nodes that lead to them."""
        if kind not in self._offering:
            own = (id(node) for node in self.nodes if id(node) not in self.closed and kind in kinds_of(node))
            self._offering[kind] = self._leading(own)
        return self._offering[kind]

    def _leading(self, own: Iterable[int]) -> frozenset[int]:
        leading = set(own)
        grown = bool(leading)
        while grown:
            before = len(leading)
            leading.update(at for at, inner in self._insides if not inner.isdisjoint(leading))
            grown = len(leading) > before
        return frozenset(leading)

    def escapes(self, node: ir.Node) -> int:
        """The number of structures by which a node's expressions reach out of it; -1 if they read nothing."""
        escapes = self._escapes.get(id(node))
        if escapes is None:
            own = [up for tree in expressions_of(node) for up, _ in read_by(tree)]
            less = 1 if isinstance(node, ir.Structure) else 0
            escapes = max([-1, *own, *(self.escapes(inner) - less for _, inner in ir.parts(node))])
            self._escapes[id(node)] = escapes
        return escapes

    def plan(self, node: ir.Structure) -> Plan:
        """The plan of a structure, computed once."""
        if id(node) not in self._plans:
            self._plans[id(node)] = Plan(self, node)
        return self._plans[id(node)]


def closed_in(nodes: Iterable[ir.Node]) -> frozenset[int]:
    """Ids of the nodes, among these, that are inside constants and lookaheads."""
    inert = [node.node for node in nodes if isinstance(node, ir.Constant | ir.Ahead)]
    return frozenset(id(inner) for node in inert for _, inner in ir.walk(node))


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    names: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        at = waiting.pop()
        if at not in names:
            names.add(at)
            waiting += edges[at]
    return names


@by_key
def layout_of(key: str) -> Layout:
    return Layout(key)


def _pair(lowered: ir.Node, source: Any, sources: dict[int, Any]) -> None:
    """Walks over a layout and its IR side by side."""
    while isinstance(source, derived.Length | derived.Checked):
        source = source.inner
    if id(lowered) in sources:
        return
    sources[id(lowered)] = source
    pairs: list[tuple[ir.Node, Any]] = []
    match lowered:
        case ir.Structure(members=members):
            pairs = [(member.node, node) for member, (_, node) in zip(members, source.members, strict=True)]
        case ir.Choice(cases=cases, otherwise=otherwise):
            pairs = [(case, node) for (_, case), node in zip(cases, source.cases.values(), strict=True)]
            if otherwise is not None:
                pairs.append((otherwise, source.otherwise))
        case ir.Either(then=then, otherwise=other):
            pairs = [(then, source.then), (other, source.otherwise)]
        case ir.Several(element=element):
            pairs = [(element, source.element)]
        case ir.Packed(blob=blob, node=content):
            pairs = [(blob, source.inner), (content, source.content)]
        case _:
            inner = getattr(lowered, "node", None)
            if inner is not None:
                pairs = [(inner, source.inner)]
    for inner, node in pairs:
        _pair(inner, node, sources)
