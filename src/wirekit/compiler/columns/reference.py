"""Decodes a single record by the reference engine, which alone supplies errors and verdicts on compressed data.

The interpreter only detects bad records. The reference engine decodes each bad record again in place, within the same
limits, and raises the error. This takes about as long as ``wirekit.decode`` of the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from wirekit.compiler.columns.plan import Records
from wirekit.compiler.lower import lower
from wirekit.engine import Params
from wirekit.errors import WireError
from wirekit.registry import registry
from wirekit.values import Check
from wirekit.wire.composite import Array, RecordsToEnd, Repeat, Struct
from wirekit.wire.node import Node
from wirekit.wire.stream import Allowance, Reader, Scope, Session, forget_origin

LISTS = (RecordsToEnd, Array, Repeat)


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference engine on the records of a list.

    Attributes:
        key: the schema's key.
        node: the layout of one record.
        scope: the fields around it, for its expressions.
        stop: whether a record that the end of the list cuts is not an error.
        allowance: the limits, and how many bytes may still be decompressed.
    """

    key: str
    node: Node
    scope: Scope
    stop: bool
    allowance: Allowance

    def read(
        self, data: Any, begin: int, end: int, *, origin: int = 0, depth: int = 0
    ) -> tuple[WireError | None, list[Check]]:
        """The error of the record at ``begin``, and its verdicts.

        Args:
            data: the buffer that the record is in.
            begin: the position of the record in the buffer.
            end: the end of its list.
            origin: added to all offsets.
            depth: how many times the buffer was decompressed.
        """
        session = Session(self.key, self.allowance.limits, contain=True)
        for name in Allowance.__slots__:  # the allowance that is left, which decoding does not reduce
            setattr(session.allowance, name, getattr(self.allowance, name))
        reader = Reader(session, data, begin, end, origin=origin, depth=depth)
        reader.nested = depth
        reader.leave = 0 if self.stop else -1
        error: WireError | None = None
        try:
            self.node._parse(reader, self.scope, "")
        except WireError as raised:
            forget_origin(raised)
            error = raised
        return session.contained[0].error if session.contained else error, session.checks


def of_records(plan: Records, allowance: Allowance, context: Mapping[str, Any] | None = None) -> Reference:
    """The reference engine for the records of a schema, with context from the caller."""
    node, scope = registry[plan.key].node, Scope.root(Params(context or {}))
    if plan.path:
        assert isinstance(node, Struct)
        node, scope = dict(node.members)[plan.path], scope.inner()
    if plan.least is not None:
        several = node.settled(scope)
        assert isinstance(several, LISTS)
        node = several.element
    return Reference(plan.key, node, scope, plan.stop, allowance)


def of_nested(plan: Records, allowance: Allowance) -> Reference:
    """The reference engine for records in a field of other records."""
    node = next(each.element for each in _lists(registry[plan.key].node) if lower(each.element) == plan.element)
    return Reference(plan.key, node, Scope.root(Params()), plan.stop, allowance)


def _lists(root: Any) -> Iterator[Any]:
    visited: set[int] = set()
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, LISTS):
            yield node
        nodes += [inner for _, inner in node.parts()]


def of_schema(reference: Reference) -> Reference:
    """The reference engine for the whole schema, with the fields around its records."""
    return replace(reference, node=registry[reference.key].node, scope=Scope.root(Params()), stop=False)
