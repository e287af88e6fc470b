"""The steps of a write program, in addition to those that it shares with read programs (see ``program.steps``).

A write program writes one row of columns as a record. Its position is in the output. If a step has no space, its caller
enlarges the output and runs the record again. A register with an index selects a value of a column: that of a row, or
of an element of a list. A ``given`` column is a column of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from wirekit.compiler import ir
from wirekit.program.columns import Column
from wirekit.program.steps import Body, Fault, In, InOut, Maybe, Out, Step

CHOOSING = 1
"""Register: whether only the content of a field is asked for; ``ROW`` and ``EXTRA`` are those of read programs."""


class Take(Step):
    """Takes a number from a column, checks its range, and writes it if ``number`` says how.

    Attributes:
        index: register with the index of the value in the column.
        default: register with the default for a missing column, or None.
        absent, null: faults for a missing column without a default, and for a null.
        low, high, wrong: the range of the number, and the fault for a number outside; None if any number is valid.
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


class Look(Step):
    """Gets the value of a column, 0 for none, and whether there is one."""

    PURE = True
    TEXT = "look {to}, {present} = {column}"

    column: Column
    index: In
    to: Out
    present: Out


class AnyOf(Step):
    """Whether one of several columns has a value; with ``in_batch``, whether one of them is in the batch."""

    PURE = True
    TEXT = "look {to} = [{in_batch?}given][{in_batch!}any of] {columns}"

    to: Out
    index: In
    in_batch: bool
    columns: list[Column]


class Was(Step):
    """Replaces a number by the one that was read, if a verdict says that it was wrong."""

    TEXT = "let {to} = {column} if not {verdict}"

    to: InOut
    verdict: Column
    column: Column
    index: In
    low: int = 0
    high: int = 0
    wrong: Fault | None = None


class Bytes(Step):
    """Takes the bytes of a column, and writes them if ``copy``; before them their length, if ``number`` says how.

    Attributes:
        start, length: registers for their place in the column's data.
        absent, null: faults for a missing column, and for a null; None if that means no bytes.
        outside: the fault for offsets outside the data.
        verdict, lost: a verdict, and the fault if it says that the original bytes are lost.
        nothing: the length that means null, or None.
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
    nothing: Maybe = None
    most: int = 0
    over: Fault | None = None
    copy: bool = True


class CopyBytes(Step):
    """Writes bytes that an earlier step took."""

    TEXT = "copy {start}, {length} of {column}"

    column: Column
    start: In
    length: In


class OneLine(Step):
    """Refuses bytes of a column that contain a delimiter, end in a part of it, or with ``lines`` have another line."""

    TEXT = "fail if {start}, {length} of {column} have {end}"

    column: Column
    start: In
    length: In
    fault: Fault
    lines: bool
    end: bytes


class Text(Step):
    """Writes constant bytes."""

    TEXT = "store {value}"

    value: bytes


class Digits(Step):
    """Writes an integer in decimal."""

    TEXT = "store {source} in decimal"

    source: In


class Store(Step):
    """Writes a number without a range check: at the position, or ``at`` reserved space."""

    TEXT = "[{at!}store][patch {at} =] {number} {source}"

    number: ir.Number
    source: In
    at: In | None = None


class Insert(Step):
    """Writes a varint into one reserved byte; if it needs more, the bytes after it are moved.

    Attributes:
        marks: registers with positions that must move with the bytes.
    """

    TEXT = "insert {at} = {number} {source}"

    number: ir.Number
    source: In
    at: In
    marks: list[int]


class Join(Step):
    """Writes bit fields as one number: (register, shift) of each."""

    number: ir.Number
    parts: list[tuple[int, int]]

    def reads(self) -> Iterator[int]:
        yield from (register for register, _ in self.parts)


class Reserve(Step):
    """Writes zeros: space for a number, or padding."""

    TEXT = "reserve {size}"

    size: In


class Elements(Step):
    """Gets the range of the elements of a list, and whether there is a list.

    Attributes:
        column: the column of the list itself.
        absent, null: faults for a missing list, and for a null; None if a null has no elements.
    """

    TEXT = "look {at} to {end}, {present} = elements of {column}"

    column: Column
    index: In
    at: Out
    end: Out
    present: Out
    absent: Fault | None
    null: Fault | None


class Each(Step):
    """Runs steps for each element of a list; ``at`` is its index."""

    TEXT = "each {at} to {end}:"

    at: In
    end: In
    body: Body


class Unread(Step):
    """Refuses a value that no step has read: in the record, or in the element of a list.

    Attributes:
        columns: (column, register with the index of its last value that was read, fault) of columns to check.
    """

    TEXT = "fail if a value was not read"

    index: In
    columns: list[tuple[Column, int, Fault]] = field(default_factory=list)

    def reads(self) -> Iterator[int]:
        yield self.index
        yield from (stamp for _, stamp, _ in self.columns)


class Note(Step):
    """Records a fact of a row in a column of the run itself."""

    TEXT = "note {source} -> {column}"

    column: Column
    source: In


class End(Step):
    """Ends the record."""

    TEXT = "end"
