"""The values that expressions can read from a record, and the bounds of their results."""

from __future__ import annotations

from dataclasses import dataclass, field

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Field
from wirekit.program.columns import Column
from wirekit.program.facts import is_wide
from wirekit.program.unfit import unfit

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
LONGEST = 1 << 40  # bytes of a byte string, more than any buffer has


@dataclass(frozen=True, slots=True)
class Picked:
    """A fact of a field of a message that was read: ``value``, ``present`` or, for a list, ``count``."""

    message: int
    slot: int
    aspect: str


Place = int | Picked | Column
"""A register, or a fact for which a register is filled when an expression needs it; a column: whether it has a value in
a row that is built."""


@dataclass(frozen=True, slots=True)
class Value:
    """The value that expressions read for a field.

    Attributes:
        place: for an integer, its place.
        low, high: its bounds.
        length: for a byte string or a list, the place of its length.
        inside: for a structure or bit fields, the values in it, by name.
        unfit: why expressions cannot read it, or "".
        present: the conditions for its presence; empty if it is always present.
    """

    place: Place = 0
    low: int = 0
    high: int = 0
    length: Place | None = None
    inside: dict[str, Value] | None = None
    unfit: str = ""
    present: tuple[Place, ...] = ()


def value_of(number: ir.Number, register: int) -> Value:
    """The value that expressions read for a number."""
    if number.real or is_wide(number):
        return Value(register, unfit="a float" if number.real else "an unsigned number of 64 bits")
    return Value(register, number.low, number.high)


@dataclass(slots=True)
class Scope:
    """A structure whose fields expressions can read, and its enclosing structure."""

    fields: dict[str, Value]
    outer: Scope | None

    def value(self, key: str, tree: Expression, path: str) -> Value:
        """The value of a field name.

        Raises:
            Misuse: there is no such field, or it is not read before.
        """
        if not isinstance(tree, Field):
            raise unfit(key, path, f"an expression, {tree}, that columns cannot compute")
        at: Scope | None = self
        for _ in range(tree.up):
            at = at.outer if at is not None else None
        value = at.fields.get(tree.names[0]) if at is not None else None
        for name in tree.names[1:]:
            value = value.inside.get(name) if value is not None and value.inside is not None else None
        if value is None:
            why = "the record has it later"
            if at is None or at.outer is None:
                why = "a field outside the record"
            elif tree.names[0] in at.fields:
                why = "a field that columns do not have"
            raise unfit(key, path, f"an expression over {tree}", why)
        return value


@dataclass(slots=True)
class OpenStructure:
    """A structure that is being read or written.

    Attributes:
        scope: takes the values of its members.
        begins, ends: registers with the start and end of the members in ``marked``.
    """

    node: ir.Structure
    path: str
    scope: Scope
    marked: set[int]
    begins: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def name(self, at: int) -> str:
        """The path of a member."""
        return ir.inner_path(self.path, self.node.members[at].name)

    def value(self, at: int) -> Value:
        """The value of a member."""
        return self.scope.fields[self.node.members[at].name]
