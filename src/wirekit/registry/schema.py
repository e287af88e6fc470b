"""Schemas: layouts under their keys, with what follows from a layout alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from wirekit.errors import Misuse
from wirekit.registry.declarations import Note, Protocol
from wirekit.wire.composite import Struct
from wirekit.wire.node import Node
from wirekit.wire.references import referred
from wirekit.wire.stream import Limits

if TYPE_CHECKING:
    from wirekit.compiler import ir


@dataclass(frozen=True)
class Schema:
    """A layout under its key.

    Attributes:
        key: ``<protocol>.<name>…``, for example ``kafka.fetch.response.v2``.
        declared: the layout, or a function that returns it.
        protocol: the protocol's name.
        description: one line for ``wirekit schemas``.
        source: the specification of the layout.
        limits: the default limits.
        notes: notes for readers, each with its source.
    """

    key: str
    declared: Node | Callable[[], Node] = field(repr=False)
    protocol: str
    description: str
    source: str
    limits: Limits
    notes: tuple[Note, ...] = ()

    @cached_property
    def node(self) -> Node:
        """The layout as it is declared."""
        return self.declared if isinstance(self.declared, Node) else self.declared()

    @cached_property
    def layout(self) -> ir.Node:
        """The layout as IR, which all compiled engines are generated from.

        Raises:
            Misuse: the compiler does not support the layout.
        """
        from wirekit.compiler.lower import lower

        try:
            return lower(self.node)
        except Misuse as error:
            raise Misuse(f"{self.key}: {error}") from None

    @cached_property
    def cost(self) -> int:
        """Memory of a value in bytes, except for parts that depend on its bytes (see ``wirekit.compiler.costs``)."""
        from wirekit.compiler.costs import cost

        return cost(self.layout)

    @cached_property
    def fixed_size(self) -> int | None:
        """The size in bytes of all values; None if sizes differ."""
        from wirekit.compiler.ir import fixed_size

        return fixed_size(self.layout)

    @cached_property
    def is_framed(self) -> bool:
        """Whether the size of a value is known from its beginning.

        It is for a ``Struct`` of fixed size, or with a ``Length`` that bounds all fields after it, except for those of
        fixed size.
        """
        return isinstance(self.node, Struct) and bool(self.node.sized_by or self.fixed_size)

    def check_framed(self) -> None:
        """Refuses a layout whose values are not frames of a stream.

        Raises:
            Misuse: if ``is_framed`` is false.
        """
        if not self.is_framed:
            raise Misuse(
                f"{self.key}: a frame of a stream must be a Struct with a Length that bounds all fields after it, or "
                f"have a fixed size; for other layouts, omit client and server and call wirekit.frames({self.key!r}, …)"
            )

    def check(self, beside: Mapping[str, Schema] | None = None) -> None:
        """Refuses an invalid layout.

        Args:
            beside: the schemas of the protocol by key, while they are not registered yet.

        Raises:
            Misuse: if the compiler does not know a node, a field or layout that it names does not exist, or no bytes
                fit the layout, or its nodes are nested deeper than Python's stack.
        """
        from wirekit.compiler.references import check_references
        from wirekit.compiler.validity import check_validity

        def resolve(key: str) -> ir.Node | None:
            if "." not in key:
                text = "a key begins with the name of the protocol"
                raise Misuse(f"the layout refers to {key}; {text}: {self.protocol}.{key}")
            if not key.startswith(f"{self.protocol}."):
                return None  # it may be registered later
            if beside is not None and key not in beside:
                raise Misuse(f"the layout refers to {key}, which the protocol {self.protocol} does not declare")
            return (referred(key) if beside is None else beside[key]).layout

        try:
            layout = self.layout
            try:
                check_references(layout)
                check_validity(layout, resolve)
            except Misuse as error:
                raise Misuse(f"{self.key}: {error}") from None
        except RecursionError:
            raise Misuse(f"{self.key}: the nodes are nested deeper than Python's stack") from None


def schemas_of(protocol: Protocol) -> dict[str, Schema]:
    """The schemas of the layouts of a protocol by key, in the order of their declaration."""
    name, limits = protocol.name, protocol.limits
    schemas = (
        Schema(protocol.key(key), each.node, name, each.description, each.source, limits, each.notes)
        for key, each in protocol.layouts.items()
    )
    return {schema.key: schema for schema in schemas}
