"""State shared by all parts that draw a value: choices, requirements, and the position in the bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression
from wirekit.compiler.values import Names, Unknown, evaluate, evaluated, look_up
from wirekit.errors import WirekitError
from wirekit.registry import registry
from wirekit.strategies.choices import Choices, Rejected
from wirekit.strategies.layout import Layout
from wirekit.strategies.packing import pack, unpack
from wirekit.values import SymbolTable
from wirekit.wire.stream import Scope, Writer

PIECES = 400
"""The number of fields of a value after which lists stay empty and options are left out."""


@dataclass(slots=True)
class Want:
    """Required bytes at a position of the value: they were read ahead, or mark the end of earlier data."""

    start: int
    data: bytes
    must: bool

    @property
    def end(self) -> int:
        return self.start + len(self.data)


@dataclass(frozen=True, slots=True)
class Wish:
    """Options for drawn values.

    Attributes:
        depth: the maximum depth of recursion.
        clean: whether to avoid values that decode with a gap or a bad check.
        aim: the names of the requested branches.
        leading: ids of the nodes with a requested branch, and of the nodes that lead to them.
        dive: the minimum depth of recursion.
        fields: the values that the caller gives, by the end of a field's path.
    """

    depth: int
    clean: bool = False
    aim: frozenset[str] = frozenset()
    leading: frozenset[int] = frozenset()
    dive: int = 0
    fields: Mapping[Names, Any] = field(default_factory=dict)


class Drawing:
    """State of drawing a value: the options, the position, and the values drawn so far."""

    def __init__(self, layout: Layout, choices: Choices, context: Mapping[str, Any], wish: Wish) -> None:
        self.layout = layout
        self.choices = choices
        self.context = context
        self.deepest = wish.depth
        self.clean = wish.clean
        self.aim = wish.aim
        self.leading = wish.leading
        self.dive = wish.dive
        self.caller_fields = wish.fields
        self.path: list[str] = []
        self.depth = 0
        self.depth_reached = 0
        self.compression_depth = 0
        self.pieces = PIECES
        self.messages = 0
        self.taken_branches: set[str] = set()
        # The position: bytes since some origin, the bytes required further on, and whether the limit has been reached.
        self.at: int | None = 0
        self.wants: list[Want] = []
        self.full = False
        self.tail: tuple[ir.Several, list[Any], Scope] | None = None

    @abstractmethod
    def make(self, node: ir.Node, scope: Scope, forced: dict[Names, Any]) -> Any:
        """Draws a value for a node; see ``Maker.make``."""

    # Small choices

    def upto(self, most: int) -> int:
        return self.choices.upto(most) if most else 0

    def chance(self, odds: int) -> bool:
        """True one time out of ``odds``; shrinks to False."""
        return self.upto(odds - 1) == odds - 1

    def one_of(self, items: list[Any]) -> Any:
        return items[self.upto(len(items) - 1)]

    def take(self, node: ir.Node, branch: str) -> None:
        self.taken_branches.add(f"{self.layout.names[id(node)]}={branch}")

    def aims(self, node: ir.Node, branch: str) -> bool:
        """Whether to choose a branch of a node because it is requested: then True half of the time."""
        return bool(self.aim) and f"{self.layout.names[id(node)]}={branch}" in self.aim and self.upto(1) == 0

    def leads(self, node: ir.Node | None) -> bool:
        """Whether a branch of a node, or of a part of it, is requested."""
        return id(node) in self.leading

    def _null(self, node: ir.Node, odds: int) -> bool:
        """Whether a nullable node is null: one time out of ``odds``, unless a part of it is requested."""
        return self.aims(node, "null") or (self.upto(odds - 1) == 0 and not self.leads(node))

    @property
    def shallow(self) -> bool:
        """Whether no further recursion is allowed."""
        return not self.diving and (self.depth >= self.deepest or self.pieces <= 0)

    @property
    def diving(self) -> bool:
        """Whether the value needs more recursion; only the first recursive path must provide it."""
        return self.depth < self.dive and self.depth_reached < self.dive

    def _caller_values(self, members: Iterable[tuple[str, SymbolTable | None]]) -> dict[str, Any]:
        """Values that the caller passed for members of a record, by the end of their path; names become numbers."""
        values = {}
        for name, table in members:
            path = (*self.path, name)
            for end, source in self.caller_fields.items():
                if path[-len(end) :] == end:
                    value = self.choices.from_caller(source)
                    values[name] = int(table[value]) if table is not None and isinstance(value, str) else value
        return values

    # Position

    def advance(self, size: int | None) -> None:
        if self.at is None:
            return
        if size is None:
            if self.wants:
                self.wants = []
            self.at = None
            return
        self.at += size
        if self.wants:
            self.wants = [want for want in self.wants if want.end > (self.at or 0)]

    def want(self, data: bytes, ahead: int = 0, *, must: bool) -> None:
        if self.at is None:
            self.at = 0
        self.wants.append(Want(self.at + ahead, data, must))

    def overlaid(self, data: bytes, ahead: int = 0) -> bytes:
        """The bytes to place here, with required bytes put over them."""
        if not self.wants or self.at is None:
            return data
        at = self.at + ahead
        result = bytearray(data)
        for want in self.wants:
            for index, byte in enumerate(want.data):
                if 0 <= want.start + index - at < len(result):
                    result[want.start + index - at] = byte
        return bytes(result)

    def number(self, node: ir.Node, value: Any) -> Any:
        """A number, replaced by a required one if necessary; moves the position.

        Raises:
            Rejected: a varint would have to be replaced.
        """
        size = ir.fixed_size(node)
        if size is None:  # a varint cannot be replaced in its place, because its size may differ
            data = pack(node, value)
            if data is not None and self.overlaid(data) != data:
                raise Rejected
            size = None if data is None else len(data)
        elif self.wants:
            data = pack(node, value)
            if data is not None:
                value = unpack(node, self.overlaid(data))
        self.advance(size)
        return value

    def _value(self, expression: Expression, scope: Scope) -> Any:
        return evaluate(expression, partial(look_up, scope), self.context)

    def _values(self, trees: tuple[Expression, ...], scope: Scope) -> tuple[Any, ...] | None:
        """The values of expressions; None if one of them is not known."""
        return evaluated(trees, partial(look_up, scope), self.context)

    def _decided(self, condition: Expression, scope: Scope) -> bool:
        try:
            return bool(self._value(condition, scope))
        except Unknown:
            return self.upto(1) == 1

    def _apart(self, node: ir.Node, scope: Scope) -> Any:
        """Draws a value that is not part of the result: position and limit are restored."""
        saved = self.at, self.wants, self.full, self.tail, self.dive
        self.at, self.wants, self.full, self.tail, self.dive = 0, [], False, None, 0
        value = self.make(node, scope, {})
        self.at, self.wants, self.full, self.tail, self.dive = saved
        return value

    def _written(self, node: ir.Node, value: Any, scope: Scope) -> bytes:
        """The bytes of a value of a node inside the layout."""
        source = self.layout.sources[id(node)]
        writer = Writer(self.layout.key, registry[self.layout.key].limits)
        try:
            source._build(source.load(value, scope), writer, scope, "")
        except WirekitError:
            raise Rejected from None
        return bytes(writer.buffer)
