"""Layouts that a test declares for itself, and that nobody finds in the registry afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from wirekit.registry import Layout, Protocol, registry
from wirekit.wire import Node

_numbers = itertools.count()


@contextmanager
def declared(protocol: Protocol) -> Iterator[Protocol]:
    """Registers a protocol, of a name that no other one has had, for as long as the block lasts."""
    registry.register(protocol)
    try:
        yield protocol
    finally:
        registry.unregister(protocol.name)


@contextmanager
def own(node: Node, **others: Node) -> Iterator[str]:
    """The key of a layout; others are declared beside it."""
    layouts = {"main": Layout(node), **{name: Layout(other) for name, other in others.items()}}
    with declared(Protocol(f"own{next(_numbers)}", "A test's own", layouts)) as protocol:
        yield protocol.key("main")
