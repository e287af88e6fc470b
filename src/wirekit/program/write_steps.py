"""The steps of a write program, beside those that it shares with read programs (see ``program.steps``).

A write program writes one row of columns as a record. Its position is in the output. If a step has no space, its caller
enlarges the output and runs the record again. A register with an index selects a value of a column: that of a row, or
of an element of a list. ``GIVEN`` columns are the columns of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wirekit.checksums import Form
from wirekit.compiler import ir
from wirekit.program.columns import Column
from wirekit.program.steps import Body, Fault, In, InOut, Out, Step

CHOOSING = 1
"""Register: whether only the content of a field is asked for; ``ROW`` and ``EXTRA`` are those of read programs."""


@dataclass(slots=True)
class Take(Step):
    """Takes the number of a column, looks whether it fits, and writes it if ``number`` says how.

    Attributes:
        index: register for which value of the column.
        default: register with what stands for a column that is not given, or None.
        absent, null: faults for a column that is not given and has no default, and for a null.
        low, high, wrong: what the number must lie between, and the fault for another one; None where any will do.
    """

    TEXT = "take {to} = {column}[{wrong?} in {low}..{high}][, by default {default}][ as {number}]"

    column: Column
    index: In
    to: Out
    default: In | None
    absent: Fault
    null: Fault
    low: int = 0
    high: int = 0
    wrong: Fault | None = None
    number: ir.Number | None = None


@dataclass(slots=True)
class Look(Step):
    """The value that a column has, 0 for none, and whether there is one."""

    PURE = True
    TEXT = "look {to}, {there} = {column}"

    column: Column
    index: In
    to: Out
    there: Out


@dataclass(slots=True)
class AnyOf(Step):
    """Whether one of some columns has a value; with ``given``, whether one of them is given at all."""

    PURE = True
    TEXT = "look {to} = [{given?}given][{given!}any of] {columns}"

    to: Out
    columns: list[Column]
    index: In
    given: bool = False


@dataclass(slots=True)
class Was(Step):
    """Replaces a number by the one that was read, where a verdict says that it was wrong."""

    TEXT = "let {to} = {column} if not {verdict}"

    to: InOut
    verdict: Column
    column: Column
    index: In
    low: int = 0
    high: int = 0
    wrong: Fault | None = None


@dataclass(slots=True)
class Bytes(Step):
    """Takes the bytes of a column, and writes them if ``copy``; their length first, if ``number`` says how.

    Attributes:
        start, length: registers for where they are in the column's data.
        absent, null: faults for a column that is not given, and for a null; None where that is no bytes.
        outside: the fault for offsets that point outside of the data.
        verdict, lost: a verdict, and the fault where it says that the bytes are not known any more.
        nothing: the length that stands for null, or None.
        most, over: the greatest length, and the fault for a greater one.
    """

    TEXT = "[{copy?}copy][{copy!}find] {start}, {length} = {column}[, length {number}][, {nothing} is null]"

    column: Column
    index: In
    start: Out
    length: Out
    absent: Fault | None
    null: Fault | None
    outside: Fault
    verdict: Column | None = None
    lost: Fault | None = None
    number: ir.Number | None = None
    nothing: int | None = None
    most: int = 0
    over: Fault | None = None
    copy: bool = True


@dataclass(slots=True)
class CopyBytes(Step):
    """Writes bytes that were taken."""

    TEXT = "copy {start}, {length} of {column}"

    column: Column
    start: In
    length: In


@dataclass(slots=True)
class OneLine(Step):
    """Refuses bytes of a column that hold a delimiter, a part of it at their end, or if ``lines`` another line."""

    TEXT = "fail if {start}, {length} of {column} have {end}"

    column: Column
    start: In
    length: In
    end: bytes
    lines: bool
    fault: Fault


@dataclass(slots=True)
class Text(Step):
    """Writes these bytes."""

    TEXT = "store {value}"

    value: bytes


@dataclass(slots=True)
class Digits(Step):
    """Writes an integer in decimal."""

    TEXT = "store {source} in decimal"

    source: In


@dataclass(slots=True)
class Store(Step):
    """Writes a number that fits: at the position, or ``at`` where room was left for it."""

    TEXT = "[{at!}store][patch {at} =] {number} {source}"

    number: ir.Number
    source: In
    at: In | None = None


@dataclass(slots=True)
class Insert(Step):
    """Writes a varint where one byte was left for it; what stands behind it moves on by those that it takes beyond.

    Attributes:
        marks: registers with positions, which move along.
    """

    TEXT = "insert {at} = {number} {source}"

    number: ir.Number
    source: In
    at: In
    marks: list[int]


@dataclass(slots=True)
class Join(Step):
    """Writes bit fields as one number: (register, shift) of each."""

    number: ir.Number
    parts: list[tuple[int, int]]

    def reads(self) -> Iterator[int]:
        yield from (register for register, _ in self.parts)


@dataclass(slots=True)
class Reserve(Step):
    """Writes zeros: room for a number, or so many bytes that only fill up."""

    TEXT = "reserve {size}"

    size: In


@dataclass(slots=True)
class Sum(Step):
    """The checksum of the bytes between two positions."""

    PURE = True
    TEXT = "let {to} = {algorithm} {start} to {end}"

    to: Out
    algorithm: str
    form: Form
    start: In
    end: In


@dataclass(slots=True)
class Begins(Step):
    """Whether what was written from a position on begins with these bytes."""

    PURE = True
    TEXT = "look {to} = {value} at {start}"

    to: Out
    start: In
    value: bytes


@dataclass(slots=True)
class Elements(Step):
    """Where the elements of a list begin and end, and whether there is a list.

    Attributes:
        column: of the list itself.
        absent, null: faults for a list that is not given, and for a null; None where that has no elements.
    """

    TEXT = "look {at} to {end}, {there} = elements of {column}"

    column: Column
    index: In
    at: Out
    end: Out
    there: Out
    absent: Fault | None
    null: Fault | None


@dataclass(slots=True)
class Each(Step):
    """For each element of a list: ``at`` is its index."""

    TEXT = "each {at} to {end}:"

    at: In
    end: In
    body: Body


@dataclass(slots=True)
class Unread(Step):
    """Refuses a value that nothing has read: in the record, or in the element of a list.

    Attributes:
        group: the number of the list, -1 for the record.
        stamps: registers with the index of the value of a column that was read last.
    """

    TEXT = "fail if a value was not read"

    group: int
    stamps: list[int]

    def reads(self) -> Iterator[int]:
        yield from self.stamps


@dataclass(slots=True)
class Note(Step):
    """Records a fact of a row: fills a column of the run itself."""

    TEXT = "note {source} -> {column}"

    column: Column
    source: In


@dataclass(slots=True)
class Finish(Step):
    """Ends the record."""

    TEXT = "end"


@dataclass(slots=True)
class Message(Step):
    """Writes a message by the table of its fields."""

    TEXT = "write message {message}"

    message: int


@dataclass(slots=True)
class Tell(Step):
    """A field of a message follows from others: if ``known``, it has this number where it is there, or ``always``."""

    TEXT = "let field {slot} of message {message} = {value} if {known}"

    message: int
    slot: int
    known: In
    always: In
    value: In


@dataclass(slots=True)
class Ask(Step):
    """Something of a message: ``value``, ``there`` or ``count`` of a field, ``stored`` (in its column), ``filled``."""

    PURE = True
    TEXT = "pick {to} = {aspect} of field {slot} of message {message}"

    to: Out
    message: int
    slot: int
    aspect: str
