"""Access of layouts to the registry, so that neither the vocabulary nor an engine imports it.

The registry sets the functions that answer (``answer_by``) when it is imported, which ``import wirekit`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from wirekit.errors import Misuse

if TYPE_CHECKING:
    from wirekit.compiler import ir
    from wirekit.wire.node import Node


class Entry(Protocol):
    """A layout under its key."""

    @property
    def node(self) -> Node:
        """The layout as it is declared."""

    @property
    def layout(self) -> ir.Node:
        """The layout as IR."""

    @property
    def cost(self) -> int:
        """Memory of a value in bytes, without parts that depend on its bytes."""


def _no_registry(query: object) -> Any:
    raise Misuse(f"{query}: no registry was imported; import wirekit first")


_entry: Callable[[str], Entry] = _no_registry
_lowered: Callable[[Node], ir.Node] = _no_registry


def answer_by(entry: Callable[[str], Entry], lowered: Callable[[Node], ir.Node]) -> None:
    """Sets the functions that look up layouts.

    Args:
        entry: returns the layout of a key, or raises ``Misuse``.
        lowered: returns a node as IR.
    """
    global _entry, _lowered  # there is one registry
    _entry, _lowered = entry, lowered


def referred(key: str) -> Entry:
    """The layout of a key.

    Raises:
        Misuse: if there is no such key.

    >>> import wirekit
    >>> referred("kafka.sasl_token").node is wirekit.registry["kafka.sasl_token"].node
    True
    """
    return _entry(key)


def cost_of(node: Node) -> int:
    """Memory of a node's value in bytes, without parts that depend on its bytes."""
    from wirekit.compiler.costs import cost

    return cost(_lowered(node))


def minimum_of(node: Node) -> int:
    """The smallest size in bytes of a value of a node."""
    from wirekit.compiler.ir import minimum

    return minimum(_lowered(node))


def fixed_size_of(node: Node) -> int | None:
    """The size in bytes of all values of a node; None if sizes differ."""
    from wirekit.compiler.ir import fixed_size

    return fixed_size(_lowered(node))
