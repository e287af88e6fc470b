"""The steps of a read program.

A program reads one record. It works on a position in the buffer and on registers, which are 64-bit integers named
by their number: constants, limits (positions), sizes, values of fields, flags. Floats and unsigned 64-bit numbers are
stored as their bits. The first registers have fixed meanings, see ``RANGE`` and the others.

The class of a step is its only description: the types of its fields give the registers that it reads and writes and
the steps inside it, their order gives its words, and ``TEXT`` its printed form. Passes, ``show`` and the encoders of
``runtime`` use these.

A step that detects an error ends the record with the number of a reason, unless it is in a ``Try``, or its ``Fault``
is ``cut`` in a ``Loop`` that tolerates an incomplete element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import is_
from typing import Annotated, Any, ClassVar, Self, cast, dataclass_transform, get_args, get_type_hints

from wirekit.checksums import Form
from wirekit.compiler import ir
from wirekit.program.calls import Function
from wirekit.program.columns import Column, Repeated

RANGE, FRAME, ROW, AFTER, EXTRA, FAULT, HANDLING = range(7)
"""Registers: the end of the range, the limit of a frame's length, the row's number, where the next record begins, the
number of unexplained bytes; the fault of the record, and the place of its handler."""
FIRST_FREE = 7

In = Annotated[int, "read"]
"""A register that a step reads."""
Out = Annotated[int, "written"]
"""A register that a step always writes to."""
InOut = Annotated[int, "read", "written"]
Unset = Annotated[int, "used"]
"""A register of a step that the passes ignore."""
MessageNumber = Annotated[int, "message"]
"""The number of a protobuf message of a record."""
Body = Annotated[list["Step"], "steps"]
"""Steps inside of a step."""
Maybe = Annotated[int | None, "optional"]
"""A number that may be missing; as any other number may stand there, it has two words."""
Name = Annotated[str, "shown"]
"""A name for the printed form; it has no word."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The number of a reason; ``cut`` if the limit of the list itself ends the bytes."""

    reason: int
    cut: bool = False


def _fields_of(kind: type[Any], use: str) -> tuple[str, ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple(name for name, hint in hints.items() if any(use in _uses(each) for each in (hint, *get_args(hint))))


def _uses(hint: object) -> tuple[str, ...]:
    return getattr(hint, "__metadata__", ())


fields_of = cast("Callable[[type[Any], str], tuple[str, ...]]", cache(_fields_of))
"""The names of a step's fields of one use, as their types tell."""


def identical(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether two lists have the same elements, not only equal ones."""
    return len(one) == len(other) and all(map(is_, one, other))


@dataclass_transform(field_specifiers=(field,))
@dataclass
class Step:
    """One step; each kind is a dataclass.

    Attributes:
        PURE: whether it only writes registers, so that it can be removed if nothing reads them.
        TEXT: the pattern of its printed form, see ``program.show``.
    """

    PURE: ClassVar[bool] = False
    TEXT: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        dataclass(cls)

    def reads(self) -> Iterable[int]:
        """The registers that the step itself reads."""
        return self._registers("read")

    def writes(self) -> Iterable[int]:
        """The registers that the step always writes."""
        return self._registers("written")

    def _registers(self, use: str) -> list[int]:
        return [register for name in fields_of(type(self), use) if (register := getattr(self, name)) is not None]

    def bodies(self) -> Iterable[Body]:
        """The lists of steps inside the step."""
        names = fields_of(type(self), "steps")
        return [getattr(self, name) for name in names] if names else ()

    def with_bodies(self, work: Callable[[Body], Body]) -> Self:
        """The step with its inner lists of steps replaced by the results of a function, or itself if none differs."""
        names = fields_of(type(self), "steps")
        if not names:
            return self
        bodies = [getattr(self, name) for name in names]
        worked = [work(body) for body in bodies]
        return self if identical(worked, bodies) else replace(self, **dict(zip(names, worked, strict=True)))


class Need(Step):
    """Requires a number of bytes before a limit."""

    TEXT = "need {size} before {limit} else {fault}"

    size: int
    limit: In
    fault: Fault


class Load(Step):
    """Reads a number, moves past it, and appends it to a column if there is one."""

    TEXT = "load {to} = {number}[ -> {column}]"

    number: ir.Number
    to: Out
    column: Column | None = None


class Skip(Step):
    """Moves past a number of bytes."""

    TEXT = "skip {size}"

    size: int


class Varint(Step):
    """Reads a varint before a limit, moves past it, and appends it to a column if there is one.

    Attributes:
        short, wrong: faults for a varint that the limit cuts, and for one with too many bytes or bits.
    """

    TEXT = "load {to} = {number} before {limit}[ -> {column}] else {short}"

    number: ir.Number
    to: Out
    limit: In
    short: Fault
    wrong: Fault
    column: Column | None = None


class Split(Step):
    """Extracts bit fields from a number: (shift, mask, register, column) of each."""

    source: In
    parts: list[tuple[int, int, int, Column | None]]

    def writes(self) -> Iterator[int]:
        yield from (to for _, _, to, _ in self.parts)


class Let(Step):
    """Computes with an operator of Python, ``min``, ``and``, ``or``, or ``=`` for a copy, and its operands."""

    PURE = True
    TEXT = "let {to} = {left} {symbol} {right}"

    to: Out
    symbol: str
    left: In
    right: In = 0


class Clear(Step):
    """Sets registers that a condition may leave unset, to 0 or to given values."""

    values: dict[int, int]


class Mark(Step):
    """Stores the position in a register."""

    PURE = True
    TEXT = "mark {to}"

    to: Out


class Seek(Step):
    """Moves to a stored position, or to ``by`` bytes after it."""

    TEXT = "seek {at}[{by?} + {by}]"

    at: In
    by: int = 0


class Test(Step):
    """Branches on a comparison."""

    TEXT = "if {left} {symbol} {right}:"

    symbol: str
    left: In
    right: In
    then: Body
    otherwise: Body = field(default_factory=list)


class Switch(Step):
    """Branches on the values of registers; the value None means that a field is absent.

    Attributes:
        on: (value, register for its presence; None if it is always present).
        cases: rows of values, and the steps for any of the rows.
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

    def with_bodies(self, work: Callable[[Body], Body]) -> Self:
        bodies = [body for _, body in self.cases]
        worked, otherwise = [work(body) for body in bodies], work(self.otherwise)
        if otherwise is self.otherwise and identical(worked, bodies):
            return self
        cases = [(rows, each) for (rows, _), each in zip(self.cases, worked, strict=True)]
        return replace(self, cases=cases, otherwise=otherwise)


class Refuse(Step):
    """Ends the record if a comparison holds."""

    TEXT = "fail if {left} {symbol} {right}: {fault}"

    symbol: str
    left: In
    right: In
    fault: Fault


class OneOf(Step):
    """Ends the record unless a number is in one of several ranges."""

    TEXT = "one of {source}: {ranges} else {fault}"

    source: In
    fault: Fault
    ranges: list[tuple[int, int]]


class Fit(Step):
    """Ends the record unless a number of elements of ``least`` bytes fits before a limit."""

    TEXT = "fit {count} * {least} before {limit} else {fault}"

    count: In
    least: int
    limit: In
    fault: Fault


class Bound(Step):
    """Begins a limit that a length sets.

    Attributes:
        limit: register for the new limit.
        outer: the enclosing limit.
        size: register of the length; ``less`` is subtracted from it.
        fault: for a length beyond the enclosing limit; None if the length is reduced to that limit.
        zero_is_rest: whether 0 means all remaining bytes.
        record: whether the record ends at the limit.
    """

    TEXT = (
        "push {limit} = here + {size}[{less?} - {less}] before {outer}[{zero_is_rest?}, 0 is the rest]"
        "[{record?}, ends the record][{fault!}, clipped][ else {fault}]"
    )

    limit: Out
    outer: In
    size: In
    less: int
    fault: Fault | None
    zero_is_rest: bool
    record: bool


class Close(Step):
    """Ends a limit: bytes left before it are a gap. ``unless`` is a length whose value 0 means that no limit began."""

    TEXT = "pop {limit}[ if {unless}]"

    limit: In
    unless: In | None = None


class Prefixed(Step):
    """Reads bytes after a length prefix.

    Attributes:
        need, negative, short: faults; ``negative`` is None for a length that cannot be negative, or may be.
        null: the length that means null, or None.
        present: register for whether they are present, or None.
    """

    TEXT = "slice {start}, {length} before {limit}: length {number}[, {null} is null][ -> {column}] else {short}"

    number: ir.Number
    limit: In
    null: Maybe
    need: Fault
    negative: Fault | None
    short: Fault
    start: Out
    length: Out
    present: Out | None
    column: Column | None = None


class Slice(Step):
    """Stores the start of bytes and skips them: a number of bytes, or all up to a limit (which sets the number)."""

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


class Find(Step):
    """Reads text up to and with a delimiter; an integer if it is ``decimal``.

    Attributes:
        short, line, wrong: faults for a missing delimiter, one in another line (None if allowed), a wrong integer.
        value: register for the integer.
    """

    TEXT = "find {end}: [{decimal?}decimal {value}][{decimal!}text] {start}, {length} else {short}"

    decimal: bool
    limit: In
    start: Out
    length: Out
    value: Out
    short: Fault
    line: Fault | None
    wrong: Fault
    end: bytes


class Begins(Step):
    """Whether the bytes between two positions begin with these."""

    PURE = True
    TEXT = "verify {to} = {start} to {end} begins with {value}"

    to: Out
    start: In
    end: In
    value: bytes


class Emit(Step):
    """Appends a value to a column, or null if ``present`` is 0."""

    TEXT = "emit {value}[ if {present}] -> {column}"

    column: Column
    value: In
    present: In | None = None


class Copy(Step):
    """Appends bytes to a column, or null."""

    TEXT = "copy {start}, {length}[ if {present}] -> {column}"

    column: Column
    start: In
    length: In
    present: In | None = None


class IsText(Step):
    """Whether bytes are valid text in an encoding."""

    PURE = True
    TEXT = "verify {to} = {encoding} {start}, {length}"

    to: Out
    start: In
    length: In
    encoding: str = "utf-8"


class Sum(Step):
    """Computes the checksum of the bytes between two positions, or whether it is a stored one.

    Attributes:
        hole: position of two bytes that count as zeros, or None.
        stored: register of the stored checksum, or None.
    """

    PURE = True
    TEXT = "let {to} = {algorithm} {start} to {end}[ is {stored}]"

    to: Out
    algorithm: Name
    start: In
    end: In
    hole: In | None
    stored: In | None
    form: Form


class Call(Step):
    """Calls a Python function with the bytes between two positions, and the position of their checksum."""

    PURE = True
    TEXT = "call {to} = {function} {start} to {end}, {at}"

    to: Out
    function: Function
    start: In
    end: In
    at: In


class Loop(Step):
    """Reads a list: its elements, and its entry in the arrays of the list.

    Attributes:
        group: the list.
        index: register with the number of elements in all records so far.
        turn: register with the number of elements in this list so far.
        count: register with the required number of elements, or None for as many as fit before the limit.
        present: register for whether the list is present, or None if it always is.
        until: bytes that end the list, or none; ``except_first``: whether the first element may begin with them.
        empty: fault for an element without bytes, or None.
        start, gap: registers, for a list that does not read an incomplete last element; otherwise None.
        undo: lists and columns from which the values of an incomplete element are removed.
    """

    TEXT = (
        "loop {group}[ if {present}]: [{count} times][{count!}before {limit}][{until?}, until {until}]"
        "[{except_first?} except first]"
        "[{gap?}, a cut one is left]"
    )

    group: Repeated
    index: In
    turn: Out
    count: In | None
    limit: In
    present: In | None
    until: bytes
    except_first: bool
    empty: Fault | None
    start: Unset
    gap: Unset | None
    undo: list[Repeated | Column]
    body: Body


class Try(Step):
    """Runs steps, and others from the same position if these fail, except for an exceeded limit.

    Attributes:
        start, gap: registers with the state to restore.
        undo: lists and columns to restore.
    """

    TEXT = "try:"

    start: Unset
    gap: Unset
    undo: list[Repeated | Column]
    body: Body
    otherwise: Body


class Walk(Step):
    """Reads a protobuf message up to a limit by the tables of its type; bytes without a column are a gap.

    Attributes:
        message: number of the message's tables.
        present: register that is set to 1.
        good: register for whether the message has all required fields and valid text.
        first: number of the reasons before those of the message.
        cut: whether the limit is that of a list that ends before an incomplete record.
    """

    TEXT = "walk message {message} before {limit}: {good}"

    message: MessageNumber
    limit: In
    present: Out
    good: Out
    first: int
    cut: bool


class Pick(Step):
    """Gets a field of a message that was read, and whether it is present; of a list, the number of elements."""

    PURE = True
    TEXT = "pick {to}, {present} = field {slot} of {message}"

    message: MessageNumber
    slot: int
    to: Out
    present: Out


class Keep(Step):
    """Appends messages to their columns, after the record was found good: (number, register for their presence)."""

    messages: list[tuple[int, int]]

    def reads(self) -> Iterator[int]:
        yield from (present for _, present in self.messages)
