"""The steps of a read program.

A program reads one record. It works on a position in the buffer and on registers, which are integers of 64 bits named
by their number: constants, limits (positions), sizes, values of fields, flags. Floats and unsigned numbers of 64 bits
are in a register as their bits are. The first registers have a meaning of their own, see ``RANGE`` and the others.

A step that finds something wrong ends the record with the number of a reason, unless it stands in a ``Try``, or its
``Fault`` is a cut in a ``Loop`` that leaves a cut element alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from wirekit.checksums import Form
from wirekit.compiler import ir
from wirekit.program.columns import Column, Repeated

RANGE, FRAME, ROW, AFTER, EXTRA, FAULT, HANDLING = range(7)
"""Registers: the end of the range, the limit of a frame's length, the row's number, where the next record begins, how
many bytes no field explains; what is wrong with the record, and where that leads."""
FIRST_FREE = 7

Body = list["Step"]


@dataclass(frozen=True, slots=True)
class Fault:
    """The number of a reason; ``cut`` where the list's own limit comes too early."""

    reason: int
    cut: bool = False


@dataclass(slots=True)
class Step:
    """One step.

    Attributes:
        PURE: whether it does nothing but write to registers: without a reader of them it is not needed.
    """

    PURE: ClassVar[bool] = False

    def reads(self) -> Iterator[int]:
        """Registers that the step itself reads."""
        return iter(())

    def writes(self) -> Iterator[int]:
        """Registers that it always writes to."""
        return iter(())

    def bodies(self) -> Iterator[Body]:
        """Steps inside."""
        return iter(())


@dataclass(slots=True)
class Need(Step):
    """So many bytes are left before a limit."""

    size: int
    limit: int
    fault: Fault

    def reads(self) -> Iterator[int]:
        yield self.limit


@dataclass(slots=True)
class Load(Step):
    """Reads a number, moves on, and adds it to a column if there is one."""

    number: ir.Number
    to: int
    column: Column | None = None

    def writes(self) -> Iterator[int]:
        yield self.to


@dataclass(slots=True)
class Varint(Step):
    """Reads a varint before a limit, moves on, and adds it to a column if there is one.

    Attributes:
        short, wrong: faults for one that the limit cuts, and for one of too many bytes or bits.
    """

    number: ir.Number
    to: int
    limit: int
    short: Fault
    wrong: Fault
    column: Column | None = None

    def reads(self) -> Iterator[int]:
        yield self.limit

    def writes(self) -> Iterator[int]:
        yield self.to


@dataclass(slots=True)
class Run(Step):
    """Numbers one after the other, compared with the limit once."""

    need: Need | None
    loads: list[Load]

    def reads(self) -> Iterator[int]:
        if self.need is not None:
            yield self.need.limit

    def writes(self) -> Iterator[int]:
        yield from (load.to for load in self.loads)


@dataclass(slots=True)
class Split(Step):
    """Takes bit fields out of a number: (shift, mask, register, column) of each."""

    source: int
    parts: list[tuple[int, int, int, Column | None]]

    def reads(self) -> Iterator[int]:
        yield self.source

    def writes(self) -> Iterator[int]:
        yield from (to for _, _, to, _ in self.parts)


@dataclass(slots=True)
class Let(Step):
    """Computes: an operator of Python, ``min``, ``and``, ``or``, or ``=`` for a copy, and its operands."""

    PURE: ClassVar[bool] = True

    to: int
    symbol: str
    left: int
    right: int = 0

    def reads(self) -> Iterator[int]:
        yield self.left
        yield self.right

    def writes(self) -> Iterator[int]:
        yield self.to


@dataclass(slots=True)
class Clear(Step):
    """Sets registers to 0, or to what is given: those that a condition may leave unset."""

    values: dict[int, int]


@dataclass(slots=True)
class Mark(Step):
    """Notes the position."""

    PURE: ClassVar[bool] = True

    to: int

    def writes(self) -> Iterator[int]:
        yield self.to


@dataclass(slots=True)
class Seek(Step):
    """Goes to a position that was noted, or ``by`` bytes on from there."""

    at: int
    by: int = 0

    def reads(self) -> Iterator[int]:
        yield self.at


@dataclass(slots=True)
class Test(Step):
    """Branches on a comparison."""

    symbol: str
    left: int
    right: int
    then: Body
    otherwise: Body = field(default_factory=list)

    def reads(self) -> Iterator[int]:
        yield self.left
        yield self.right

    def bodies(self) -> Iterator[Body]:
        yield self.then
        yield self.otherwise


@dataclass(slots=True)
class Switch(Step):
    """Branches on the values of registers; a value of None is that of a field that is not there.

    Attributes:
        on: (value, whether it is there; None for always).
        cases: rows of values, and what to do for any of them.
    """

    on: list[tuple[int, int | None]]
    cases: list[tuple[list[tuple[int | None, ...]], Body]]
    otherwise: Body

    def reads(self) -> Iterator[int]:
        for value, present in self.on:
            yield value
            if present is not None:
                yield present

    def bodies(self) -> Iterator[Body]:
        yield from (body for _, body in self.cases)
        yield self.otherwise


@dataclass(slots=True)
class Refuse(Step):
    """Ends the record if a comparison holds."""

    symbol: str
    left: int
    right: int
    fault: Fault

    def reads(self) -> Iterator[int]:
        yield self.left
        yield self.right


@dataclass(slots=True)
class OneOf(Step):
    """Ends the record unless a number lies in one of some ranges."""

    source: int
    ranges: list[tuple[int, int]]
    fault: Fault

    def reads(self) -> Iterator[int]:
        yield self.source


@dataclass(slots=True)
class Fit(Step):
    """Ends the record unless so many elements of ``least`` bytes fit before a limit."""

    count: int
    least: int
    limit: int
    fault: Fault

    def reads(self) -> Iterator[int]:
        yield self.count
        yield self.limit


@dataclass(slots=True)
class Bound(Step):
    """A length begins to bound what follows.

    Attributes:
        limit: register for where that ends.
        outer: the limit around it.
        size: register of the length; ``less`` of it do not count.
        fault: for a length that goes beyond the limit around it; None where it is cut to that.
        rest: whether 0 means all that is left.
        record: whether the record ends there.
    """

    limit: int
    outer: int
    size: int
    less: int
    fault: Fault | None
    rest: bool
    record: bool

    def reads(self) -> Iterator[int]:
        yield self.outer
        yield self.size

    def writes(self) -> Iterator[int]:
        yield self.limit


@dataclass(slots=True)
class Close(Step):
    """Ends a bounded part: bytes left before its limit are a gap. ``unless`` is a length that may be 0 for none."""

    limit: int
    unless: int | None = None

    def reads(self) -> Iterator[int]:
        yield self.limit
        if self.unless is not None:
            yield self.unless


@dataclass(slots=True)
class Prefixed(Step):
    """Bytes with their length in front.

    Attributes:
        need, negative, short: faults; ``negative`` is None for a length that can't be or may be below 0.
        null: the length that means null, or None.
        present: register for whether they are there, or None.
    """

    number: ir.Number
    limit: int
    null: int | None
    need: Fault
    negative: Fault | None
    short: Fault
    start: int
    length: int
    present: int | None
    column: Column | None = None

    def reads(self) -> Iterator[int]:
        yield self.limit

    def writes(self) -> Iterator[int]:
        yield self.start
        yield self.length
        if self.present is not None:
            yield self.present


@dataclass(slots=True)
class Slice(Step):
    """Notes where bytes begin, and passes them: a number of them, or all up to a limit (which gives the number)."""

    start: int
    length: int
    limit: int | None

    def reads(self) -> Iterator[int]:
        yield self.length if self.limit is None else self.limit

    def writes(self) -> Iterator[int]:
        yield self.start
        if self.limit is not None:
            yield self.length


@dataclass(slots=True)
class Find(Step):
    """Text up to a delimiter, which is passed; an integer if it is ``decimal``.

    Attributes:
        short, line, wrong: faults for no delimiter, one in another line (None if it may be), and what is no integer.
        value: register for the integer.
    """

    end: bytes
    decimal: bool
    limit: int
    start: int
    length: int
    value: int
    short: Fault
    line: Fault | None
    wrong: Fault

    def reads(self) -> Iterator[int]:
        yield self.limit

    def writes(self) -> Iterator[int]:
        yield self.start
        yield self.length
        yield self.value


@dataclass(slots=True)
class Peek(Step):
    """Whether these bytes are next."""

    PURE: ClassVar[bool] = True

    to: int
    magic: bytes
    limit: int

    def reads(self) -> Iterator[int]:
        yield self.limit

    def writes(self) -> Iterator[int]:
        yield self.to


@dataclass(slots=True)
class Same(Step):
    """Whether bytes are these."""

    PURE: ClassVar[bool] = True

    to: int
    start: int
    length: int
    value: bytes

    def reads(self) -> Iterator[int]:
        yield self.start
        yield self.length

    def writes(self) -> Iterator[int]:
        yield self.to


@dataclass(slots=True)
class Gap(Step):
    """So many bytes are explained by no field."""

    size: int

    def reads(self) -> Iterator[int]:
        yield self.size


@dataclass(slots=True)
class Emit(Step):
    """Adds a value to a column, or null where ``present`` is 0."""

    column: Column
    value: int
    present: int | None = None

    def reads(self) -> Iterator[int]:
        yield self.value
        if self.present is not None:
            yield self.present


@dataclass(slots=True)
class Copy(Step):
    """Adds bytes to a column, or null."""

    column: Column
    start: int
    length: int
    present: int | None = None

    def reads(self) -> Iterator[int]:
        yield self.start
        yield self.length
        if self.present is not None:
            yield self.present


@dataclass(slots=True)
class IsText(Step):
    """Whether bytes are text in an encoding."""

    PURE: ClassVar[bool] = True

    to: int
    start: int
    length: int
    encoding: str = "utf-8"

    def reads(self) -> Iterator[int]:
        yield self.start
        yield self.length

    def writes(self) -> Iterator[int]:
        yield self.to


@dataclass(slots=True)
class Checksum(Step):
    """Whether a checksum of the bytes between two positions is the one stored.

    Attributes:
        hole: position of two bytes that count as zeros, or None.
        mask: of the bits that are stored.
    """

    PURE: ClassVar[bool] = True

    to: int
    algorithm: str
    form: Form
    start: int
    end: int
    hole: int | None
    stored: int
    mask: int

    def reads(self) -> Iterator[int]:
        yield self.start
        yield self.end
        yield self.stored
        if self.hole is not None:
            yield self.hole

    def writes(self) -> Iterator[int]:
        yield self.to


@dataclass(slots=True)
class Loop(Step):
    """A list: its elements, and its entry in the arrays of the list.

    Attributes:
        group: the list.
        index: register with the number of elements that all records have so far.
        turn: register with the number of those of this list.
        count: register with how many there should be, or None for as many as fit before the limit.
        present: register for whether there is a list, or None for always.
        until: bytes that end it, or none.
        empty: fault for an element without bytes, or None.
        start, gap: registers, for a list that leaves a cut element alone; else None.
        undo: lists and columns of which a cut element takes back what it added.
    """

    group: Repeated
    index: int
    turn: int
    count: int | None
    limit: int
    present: int | None
    until: bytes
    empty: Fault | None
    start: int
    gap: int | None
    undo: list[Repeated | Column]
    body: Body

    def reads(self) -> Iterator[int]:
        yield self.limit
        yield self.index
        if self.count is not None:
            yield self.count
        if self.present is not None:
            yield self.present

    def bodies(self) -> Iterator[Body]:
        yield self.body

    def writes(self) -> Iterator[int]:
        yield self.turn


@dataclass(slots=True)
class Try(Step):
    """Something, or something else from the same position where it does not fit, unless for a limit.

    Attributes:
        start, gap: registers for what is to be restored.
        undo: lists and columns that get back what they were.
    """

    start: int
    gap: int
    undo: list[Repeated | Column]
    body: Body
    otherwise: Body

    def bodies(self) -> Iterator[Body]:
        yield self.body
        yield self.otherwise


@dataclass(slots=True)
class Walk(Step):
    """Reads a protobuf message up to a limit by the tables of its type; bytes without a column are a gap.

    Attributes:
        message: number of the tables.
        there: register that becomes 1.
        good: register for whether the message is as its type wants it.
        first: the reasons before those of the message.
    """

    message: int
    limit: int
    there: int
    good: int
    first: int

    def reads(self) -> Iterator[int]:
        yield self.limit

    def writes(self) -> Iterator[int]:
        yield self.there
        yield self.good


@dataclass(slots=True)
class Pick(Step):
    """A field of a message that was walked, and whether it is there; of a list the number of elements."""

    PURE: ClassVar[bool] = True

    message: int
    slot: int
    to: int
    present: int

    def writes(self) -> Iterator[int]:
        yield self.to
        yield self.present


@dataclass(slots=True)
class Keep(Step):
    """Adds messages to their columns, now that the record is good: (number, whether it is there)."""

    messages: list[tuple[int, int]]

    def reads(self) -> Iterator[int]:
        yield from (there for _, there in self.messages)
