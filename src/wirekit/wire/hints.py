"""How the fields of a value are best shown: the layout says which numbers a reader knows in hexadecimal."""

from __future__ import annotations

from collections.abc import Iterator

from wirekit.wire.composite import Array, RecordsToEnd, Ref, Repeat, Struct
from wirekit.wire.compressed import Compressed
from wirekit.wire.derived import Checked, Const
from wirekit.wire.encrypted import Encrypted
from wirekit.wire.node import Node
from wirekit.wire.numbers import Integer

Nodes = tuple[Node, ...]
"""The nodes that a value may have come from: a layout with choices does not tell which one it was."""

_LISTS = (Array, Repeat, RecordsToEnd)
_SUM_DIGITS = 8


class Hints:
    """What a layout says about the fields of its values, step by step down a path.

    >>> import wirekit
    >>> hints = Hints(wirekit.registry["joyqueue.frame"].node)
    >>> hints.digits(hints.inside(hints.root, "magic")), hints.digits(hints.inside(hints.root, "version"))
    (8, 0)
    """

    def __init__(self, root: Node) -> None:
        self.root: Nodes = (root,)
        self._inside: dict[tuple[Nodes, str], Nodes] = {}
        self._digits: dict[Nodes, int] = {}

    def inside(self, nodes: Nodes, name: str) -> Nodes:
        """The nodes of a field, or of an element where the name is an index in brackets."""
        key = nodes, "[]" if name.startswith("[") else name
        if key not in self._inside:
            self._inside[key] = tuple(dict.fromkeys(part for node in nodes for part in _named(node, key[1])))
        return self._inside[key]

    def digits(self, nodes: Nodes) -> int:
        """How many hexadecimal digits the number has that these nodes read; 0 where it is shown in decimal."""
        if nodes not in self._digits:
            self._digits[nodes] = max(map(_digits, nodes), default=0)
        return self._digits[nodes]


def _named(node: Node, name: str) -> Iterator[Node]:
    if isinstance(node, Struct):
        yield from (part for own, part in node.members if own == name)
    elif isinstance(node, _LISTS):
        if name == "[]":
            yield node.element
    elif isinstance(node, (Compressed, Encrypted)):
        if name == "content":
            yield node.content
    elif isinstance(node, Ref):
        yield from _named(node.target, name)
    else:
        for _, part in node.parts():
            yield from _named(part, name)


def _digits(node: Node) -> int:
    if isinstance(node, (Const, Checked)) and isinstance(node.inner, Integer):
        if isinstance(node, Checked):
            return min(2 * node.inner.length, _SUM_DIGITS)
        return 2 * node.inner.length if node.hexadecimal else 0
    if isinstance(node, (Struct, *_LISTS)):
        return 0
    return max((_digits(part) for _, part in node.parts()), default=0)
