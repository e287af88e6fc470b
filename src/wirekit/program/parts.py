"""Structures that a record reaches by several paths, but at most once: read once, after all of these paths.

Network headers are an example: TCP is the same after IPv4 and IPv6. With a copy on each path, a program would grow with
the number of paths. So the program only stores the start of such a structure where a path reaches it, and reads it
after all steps that may reach it. This is correct if only bytes up to the limit follow the structure, and its
expressions read nothing outside it. Its columns begin with its own name, in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass

from wirekit.compiler import ir
from wirekit.program.facts import takes_all


@dataclass(frozen=True, slots=True)
class Part:
    """A structure that is read or written once.

    Attributes:
        order: parts that contain paths to others come first.
    """

    node: ir.Structure
    name: str
    order: int


def parts(root: ir.Node) -> dict[int, Part]:
    """The structures of a record that are read or written once, by the node's id."""
    search = _Search()
    search.visit(root, 0, tail=True, tight=False)
    order: dict[int, ir.Structure] = {}
    search.sorted(root, order)
    chosen = [
        node
        for node in reversed(order.values())
        if len(search.outer.get(id(node), ())) > 1 and id(node) not in search.unfit and not ir.reads_outside(node)
    ]
    names: dict[str, int] = {}
    by_id = {}
    for number, node in enumerate(chosen):
        name = node.name.lower()
        names[name] = names.get(name, 0) + 1
        shown = name if names[name] == 1 else f"{name}_{names[name]}"
        by_id[id(node)] = Part(node, shown, number)
    return by_id


class _Search:
    """Finds which structures lead to which others, and which of them may be followed by other fields."""

    def __init__(self) -> None:
        self.outer: dict[int, set[int]] = {}
        self.unfit: set[int] = set()
        self._visited: set[tuple[int, int, bool, bool]] = set()

    def visit(self, node: ir.Node, outer: int, *, tail: bool, tight: bool) -> None:
        if (id(node), outer, tail, tight) in self._visited:
            return
        self._visited.add((id(node), outer, tail, tight))
        match node:
            case ir.Structure():
                self.outer.setdefault(id(node), set()).add(outer)
                if not tail or (tight and not takes_all(node)) or not node.name:
                    self.unfit.add(id(node))
                for at, member in enumerate(node.members):
                    bounded = any(each.bounds and each.first <= at <= each.last for each in node.measures)
                    summed = any(each.first <= at <= each.last for each in node.sums)
                    summed |= any(not each.bounds and each.first <= at <= each.last for each in node.measures)
                    last = all(_is_rest(later.node) for later in node.members[at + 1 :])
                    inside = tail and last and not summed
                    self.visit(member.node, id(node), tail=inside, tight=tight or bounded)
            case ir.Fallback(node=inner):
                self.visit(inner, outer, tail=True, tight=False)
            case ir.Alternatives() | ir.Conditional() | ir.Optional():
                for _, inner in ir.parts(node):
                    self.visit(inner, outer, tail=tail, tight=tight)
            case _:
                for _, inner in ir.parts(node):
                    self.visit(inner, outer, tail=False, tight=tight)

    def sorted(self, node: ir.Node, order: dict[int, ir.Structure]) -> None:
        """Adds structures after the structures inside them."""
        if id(node) in order:
            return
        for _, inner in ir.parts(node):
            self.sorted(inner, order)
        if isinstance(node, ir.Structure):
            order[id(node)] = node


def _is_rest(node: ir.Node) -> bool:
    return isinstance(node, ir.Blob) and node.length is None and not node.text and node.coding is None
