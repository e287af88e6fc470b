"""Hints for displaying fields, from the layout: hexadecimal numbers, times, addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from wirekit.errors import Wrong
from wirekit.wire.blobs import Address
from wirekit.wire.composite import Array, RecordsToEnd, Ref, Repeat, Struct
from wirekit.wire.compressed import Compressed
from wirekit.wire.derived import Checked, Const
from wirekit.wire.encrypted import Encrypted
from wirekit.wire.message import Protobuf
from wirekit.wire.node import Node
from wirekit.wire.numbers import Duration, Integer
from wirekit.wire.stream import Scope


class Display(NamedTuple):
    """The display of a field.

    Attributes:
        digits: the number of hexadecimal digits; 0 if the number is shown in decimal.
        unit: ``s``, ``ms``, ``us`` or ``ns`` for a time since the epoch; else "".
        duration: ``s``, ``ms``, ``us`` or ``ns`` for a span of time; else "".
        family: ``ipv4``, ``ipv6`` or ``mac`` for an address; else "".
    """

    digits: int = 0
    unit: str = ""
    duration: str = ""
    family: str = ""


PLAIN = Display()


class _MessageField(NamedTuple):
    """A field of a protobuf message, by its path."""

    message: Protobuf
    path: str


_Origin = Node | _MessageField
Nodes = tuple[_Origin, ...]
"""The nodes that a value may have come from: more than one if no scope decides a choice."""

_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")
_LISTS = (Array, Repeat, RecordsToEnd)
_SUM_DIGITS = 8


class DisplayHints:
    """Hints about the fields of a layout's values, step by step along a path.

    >>> import wirekit
    >>> hints = DisplayHints(wirekit.registry["joyqueue.frame"].node)
    >>> hints.display(hints.inside(hints.root, "magic")).digits
    8
    """

    def __init__(self, root: Node) -> None:
        self.root: Nodes = (root,)

    def inside(self, nodes: Nodes, name: str, scope: Scope | None = None) -> Nodes:
        """The nodes of a field; a name that is an index in brackets selects an element.

        Args:
            scope: the fields around ``nodes``, which decide choices.
        """
        name = "[]" if name.startswith("[") else name
        return tuple(dict.fromkeys(part for node in nodes for part in _members_named(node, name, scope)))

    def at(self, path: str) -> Display:
        """The display of the field at a path from the root, such as ``messages[0].crc``."""
        nodes = self.root
        for name in _STEP.findall(path):
            nodes = self.inside(nodes, name)
        return self.display(nodes)

    def display(self, nodes: Nodes, scope: Scope | None = None) -> Display:
        """The display of the values that these nodes read; ``scope`` as for ``inside``."""
        return max((_display(node, scope) for node in nodes), default=PLAIN)


def _parts(node: Node, scope: Scope | None, around: frozenset[str]) -> list[Node]:
    """The nodes inside a node; of a choice that a scope decides, the selected one.

    Args:
        around: the keys of references around the node without a field between, which can refer to themselves.
    """
    if isinstance(node, Ref):
        return [] if node.key in around else [node.target]
    with suppress(Wrong):  # the value was not decoded as far as the fields that decide
        chosen = node if scope is None else node.settled(scope)
        if chosen is not node:
            return [chosen]
    return [part for _, part in node.parts()]


def _members_named(
    node: _Origin, name: str, scope: Scope | None, around: frozenset[str] = frozenset()
) -> Iterator[_Origin]:
    if isinstance(node, (Protobuf, _MessageField)):
        message, path = node if isinstance(node, _MessageField) else (node, "")
        yield _MessageField(message, path if name == "[]" else f"{path}.{name}".removeprefix("."))
    elif isinstance(node, Struct):
        yield from (part for own, part in node.members if own == name)
    elif isinstance(node, _LISTS):
        if name == "[]":
            yield node.element
    elif isinstance(node, (Compressed, Encrypted)):
        if name == "content":
            yield node.content
    else:
        for part in _parts(node, scope, around):
            yield from _members_named(part, name, scope, _referred(node, around))


def _referred(node: Node, around: frozenset[str]) -> frozenset[str]:
    return around | {node.key} if isinstance(node, Ref) else around


def _display(node: _Origin, scope: Scope | None, around: frozenset[str] = frozenset()) -> Display:
    if isinstance(node, _MessageField):
        return Display(unit=node.message.times.get(node.path, ""))
    if isinstance(node, Address):
        return Display(family=node.family)
    if isinstance(node, Duration):
        return Display(duration=node.counts)
    if isinstance(node, Integer):
        return Display(unit=node.unit or "")
    if isinstance(node, (Const, Checked)) and isinstance(node.inner, Integer):
        if isinstance(node, Checked):
            return Display(min(2 * node.inner.length, _SUM_DIGITS))
        return Display(2 * node.inner.length if node.hexadecimal else 0)
    if isinstance(node, (Struct, Protobuf, *_LISTS)):
        return PLAIN
    inner = _referred(node, around)
    return max((_display(part, scope, inner) for part in _parts(node, scope, around)), default=PLAIN)
