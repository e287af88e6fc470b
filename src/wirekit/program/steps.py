"""The steps of a read program.

A program reads one record. It works on a position in the buffer and on registers, which are integers of 64 bits named
by their number: constants, limits (positions), sizes, values of fields, flags. Floats and unsigned numbers of 64 bits
are in a register as their bits are. The first registers have a meaning of their own, see ``RANGE`` and the others.

The class of a step is its only description: the types of its fields give the registers that it reads and writes and
the steps inside it, and ``TEXT`` its printed form. Passes, ``show`` and the encoders of ``runtime`` use these.

A step that detects an error ends the record with the number of a reason, unless it is in a ``Try``, or its ``Fault`` is
a cut in a ``Loop`` that tolerates a cut element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, cast, get_args, get_type_hints

from wirekit.checksums import Form
from wirekit.compiler import ir
from wirekit.program.calls import Function
from wirekit.program.columns import Column, Repeated

RANGE, FRAME, ROW, AFTER, EXTRA, FAULT, HANDLING = range(7)
"""Registers: the end of the range, the limit of a frame's length, the row's number, where the next record begins, how
many bytes no field explains; what is wrong with the record, and where that leads."""
FIRST_FREE = 7

In = Annotated[int, "read"]
"""A register that a step reads."""
Out = Annotated[int, "written"]
"""A register that a step always writes to."""
InOut = Annotated[int, "read", "written"]
Unset = Annotated[int, "used"]
"""A register of a step of which the passes need not know."""
MessageNumber = Annotated[int, "message"]
"""The number of a protobuf message of a record."""
Body = Annotated[list["Step"], "steps"]
"""Steps inside of a step."""
S = TypeVar("S", bound="Step")


@dataclass(frozen=True, slots=True)
class Fault:
    """The number of a reason; ``cut`` where the list's own limit comes too early."""

    reason: int
    cut: bool = False


def _fields_of(kind: type[Any], use: str) -> tuple[str, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(name for name, hint in hints.items() if any(use in _uses(each) for each in (hint, *get_args(hint))))


def _uses(hint: object) -> tuple[str, ...]:
    return getattr(hint, "__metadata__", ())


fields_of = cast("Callable[[type[Any], str], tuple[str, ...]]", cache(_fields_of))
"""The names of a step's fields of one use, as their types tell."""


@dataclass(slots=True)
class Step:
    """One step.

    Attributes:
        PURE: whether it does nothing but write to registers: without a reader of them it is not needed.
        TEXT: the step in words, see ``program.show``.
    """

    PURE: ClassVar[bool] = False
    TEXT: ClassVar[str] = ""

    def reads(self) -> Iterable[int]:
        """Registers that the step itself reads."""
        names = fields_of(type(self), "read")
        return [register for name in names if (register := getattr(self, name)) is not None]

    def writes(self) -> Iterable[int]:
        """Registers that it always writes to."""
        names = fields_of(type(self), "written")
        return [register for name in names if (register := getattr(self, name)) is not None]

    def bodies(self) -> Iterable[Body]:
        """Steps inside."""
        names = fields_of(type(self), "steps")
        return [getattr(self, name) for name in names] if names else ()

    def with_bodies(self: S, work: Callable[[Body], Body]) -> S:
        """The step with what a function makes of the steps inside."""
        names = fields_of(type(self), "steps")
        return replace(self, **{name: work(getattr(self, name)) for name in names}) if names else self


@dataclass(slots=True)
class Need(Step):
    """So many bytes are left before a limit."""

    TEXT = "need {size} before {limit} else {fault}"

    size: int
    limit: In
    fault: Fault


@dataclass(slots=True)
class Load(Step):
    """Reads a number, moves on, and adds it to a column if there is one."""

    TEXT = "load {to} = {number}[ -> {column}]"

    number: ir.Number
    to: Out
    column: Column | None = None


@dataclass(slots=True)
class Varint(Step):
    """Reads a varint before a limit, moves on, and adds it to a column if there is one.

    Attributes:
        short, wrong: faults for one that the limit cuts, and for one of too many bytes or bits.
    """

    TEXT = "load {to} = {number} before {limit}[ -> {column}] else {short}"

    number: ir.Number
    to: Out
    limit: In
    short: Fault
    wrong: Fault
    column: Column | None = None


@dataclass(slots=True)
class Split(Step):
    """Takes bit fields out of a number: (shift, mask, register, column) of each."""

    source: In
    parts: list[tuple[int, int, int, Column | None]]

    def writes(self) -> Iterator[int]:
        yield from (to for _, _, to, _ in self.parts)


@dataclass(slots=True)
class Let(Step):
    """Computes: an operator of Python, ``min``, ``and``, ``or``, or ``=`` for a copy, and its operands."""

    PURE = True
    TEXT = "let {to} = {left} {symbol} {right}"

    to: Out
    symbol: str
    left: In
    right: In = 0


@dataclass(slots=True)
class Clear(Step):
    """Sets registers to 0, or to what is given: those that a condition may leave unset."""

    values: dict[int, int]


@dataclass(slots=True)
class Mark(Step):
    """Notes the position."""

    PURE = True
    TEXT = "mark {to}"

    to: Out


@dataclass(slots=True)
class Seek(Step):
    """Goes to a position that was noted, or ``by`` bytes on from there."""

    TEXT = "seek {at}[{by?} + {by}]"

    at: In
    by: int = 0


@dataclass(slots=True)
class Test(Step):
    """Branches on a comparison."""

    TEXT = "if {left} {symbol} {right}:"

    symbol: str
    left: In
    right: In
    then: Body
    otherwise: Body = field(default_factory=list)


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

    def with_bodies(self, work: Callable[[Body], Body]) -> Switch:
        cases = [(rows, work(body)) for rows, body in self.cases]
        return Switch(self.on, cases, work(self.otherwise))


@dataclass(slots=True)
class Refuse(Step):
    """Ends the record if a comparison holds."""

    TEXT = "fail if {left} {symbol} {right}: {fault}"

    symbol: str
    left: In
    right: In
    fault: Fault


@dataclass(slots=True)
class OneOf(Step):
    """Ends the record unless a number lies in one of some ranges."""

    TEXT = "one of {source}: {ranges} else {fault}"

    source: In
    ranges: list[tuple[int, int]]
    fault: Fault


@dataclass(slots=True)
class Fit(Step):
    """Ends the record unless so many elements of ``least`` bytes fit before a limit."""

    TEXT = "fit {count} * {least} before {limit} else {fault}"

    count: In
    least: int
    limit: In
    fault: Fault


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

    TEXT = (
        "push {limit} = here + {size}[{less?} - {less}] before {outer}[{rest?}, 0 is the rest]"
        "[{record?}, ends the record][{fault!}, clipped][ else {fault}]"
    )

    limit: Out
    outer: In
    size: In
    less: int
    fault: Fault | None
    rest: bool
    record: bool


@dataclass(slots=True)
class Close(Step):
    """Ends a bounded part: bytes left before its limit are a gap. ``unless`` is a length that may be 0 for none."""

    TEXT = "pop {limit}[ if {unless}]"

    limit: In
    unless: In | None = None


@dataclass(slots=True)
class Prefixed(Step):
    """Bytes with their length in front.

    Attributes:
        need, negative, short: faults; ``negative`` is None for a length that can't be or may be below 0.
        null: the length that means null, or None.
        present: register for whether they are there, or None.
    """

    TEXT = "slice {start}, {length} before {limit}: length {number}[, {null} is null][ -> {column}] else {short}"

    number: ir.Number
    limit: In
    null: int | None
    need: Fault
    negative: Fault | None
    short: Fault
    start: Out
    length: Out
    present: Out | None
    column: Column | None = None


@dataclass(slots=True)
class Slice(Step):
    """Notes where bytes begin, and passes them: a number of them, or all up to a limit (which gives the number)."""

    TEXT = "slice {start}[{limit!}: length {length}][, {length}: up to {limit}]"

    start: Out
    length: Unset
    limit: In | None

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

    TEXT = "find {end}: [{decimal?}decimal {value}][{decimal!}text] {start}, {length} else {short}"

    end: bytes
    decimal: bool
    limit: In
    start: Out
    length: Out
    value: Out
    short: Fault
    line: Fault | None
    wrong: Fault


@dataclass(slots=True)
class Peek(Step):
    """Whether these bytes are next."""

    PURE = True
    TEXT = "peek {to} = {magic}"

    to: Out
    magic: bytes
    limit: In


@dataclass(slots=True)
class Same(Step):
    """Whether bytes are these."""

    PURE = True
    TEXT = "verify {to} = bytes {start}, {length} are {value}"

    to: Out
    start: In
    length: In
    value: bytes


@dataclass(slots=True)
class Gap(Step):
    """So many bytes are explained by no field."""

    TEXT = "gap {size}"

    size: In


@dataclass(slots=True)
class Emit(Step):
    """Adds a value to a column, or null where ``present`` is 0."""

    TEXT = "emit {value}[ if {present}] -> {column}"

    column: Column
    value: In
    present: In | None = None


@dataclass(slots=True)
class Copy(Step):
    """Adds bytes to a column, or null."""

    TEXT = "copy {start}, {length}[ if {present}] -> {column}"

    column: Column
    start: In
    length: In
    present: In | None = None


@dataclass(slots=True)
class IsText(Step):
    """Whether bytes are text in an encoding."""

    PURE = True
    TEXT = "verify {to} = {encoding} {start}, {length}"

    to: Out
    start: In
    length: In
    encoding: str = "utf-8"


@dataclass(slots=True)
class Checksum(Step):
    """Whether a checksum of the bytes between two positions is the one stored.

    Attributes:
        hole: position of two bytes that count as zeros, or None.
        mask: of the bits that are stored.
    """

    PURE = True
    TEXT = "verify {to} = {algorithm} {start} to {end} is {stored}"

    to: Out
    algorithm: str
    form: Form
    start: In
    end: In
    hole: In | None
    stored: In
    mask: int


@dataclass(slots=True)
class Call(Step):
    """Has a Python function look at the bytes between two positions, and at their checksum at another one."""

    PURE = True
    TEXT = "call {to} = {function} {start} to {end}, {at}"

    to: Out
    function: Function
    start: In
    end: In
    at: In


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

    TEXT = (
        "loop {group}[ if {present}]: [{count} times][{count!}before {limit}][{until?}, until {until}]"
        "[{gap?}, a cut one is left]"
    )

    group: Repeated
    index: In
    turn: Out
    count: In | None
    limit: In
    present: In | None
    until: bytes
    empty: Fault | None
    start: Unset
    gap: Unset | None
    undo: list[Repeated | Column]
    body: Body


@dataclass(slots=True)
class Try(Step):
    """Something, or something else from the same position where it does not fit, unless for a limit.

    Attributes:
        start, gap: registers for what is to be restored.
        undo: lists and columns that get back what they were.
    """

    TEXT = "try:"

    start: Unset
    gap: Unset
    undo: list[Repeated | Column]
    body: Body
    otherwise: Body


@dataclass(slots=True)
class Walk(Step):
    """Reads a protobuf message up to a limit by the tables of its type; bytes without a column are a gap.

    Attributes:
        message: number of the tables.
        there: register that becomes 1.
        good: register for whether the message is as its type wants it.
        first: the reasons before those of the message.
    """

    TEXT = "walk message {message} before {limit}: {good}"

    message: MessageNumber
    limit: In
    there: Out
    good: Out
    first: int


@dataclass(slots=True)
class Pick(Step):
    """A field of a message that was walked, and whether it is there; of a list the number of elements."""

    PURE = True
    TEXT = "pick {to}, {present} = field {slot} of {message}"

    message: MessageNumber
    slot: int
    to: Out
    present: Out


@dataclass(slots=True)
class Keep(Step):
    """Adds messages to their columns, now that the record is good: (number, whether it is there)."""

    messages: list[tuple[int, int]]

    def reads(self) -> Iterator[int]:
        yield from (there for _, there in self.messages)
