"""The steps of a write program, beside those that it shares with read programs (see ``program.steps``).

A write program writes the record of one row of columns. Its position is in the bytes that are written; whoever runs it
makes room and runs the record again when a step has none. A register that holds an index says which value of a column
is meant: that of a row, or of an element of a list. ``GIVEN`` columns are those that a batch has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wirekit.checksums import Form
from wirekit.compiler import ir
from wirekit.program.columns import Column
from wirekit.program.steps import Body, Fault, Step

CHOOSING = 1
"""Register: whether only the content of a field is asked for; ``ROW`` and ``EXTRA`` are those of read programs."""


class WriteStep(Step):
    """A step that only write programs have."""

    __slots__ = ()

    def shown(self, name: Callable[[int | None], str]) -> str:
        """The step in words; ``name`` gives the name of a register."""
        raise NotImplementedError


def _kind(number: ir.Number) -> str:
    kind = "float" if number.real else "int" if number.signed else "uint"
    return f"{kind}{8 * number.size}{' little' if number.little else ''}"


def _path(column: Column) -> str:
    return column.path or "(value)"


@dataclass(slots=True)
class Take(WriteStep):
    """Takes the number of a column, looks whether it fits, and writes it if ``number`` says how.

    Attributes:
        index: register for which value of the column.
        default: register with what stands for a column that is not given, or None.
        absent, null: faults for a column that is not given and has no default, and for a null.
        low, high, wrong: what the number must lie between, and the fault for another one; None where any will do.
    """

    column: Column
    index: int
    to: int
    default: int | None
    absent: Fault
    null: Fault
    low: int = 0
    high: int = 0
    wrong: Fault | None = None
    number: ir.Number | None = None

    def reads(self) -> Iterator[int]:
        yield self.index
        if self.default is not None:
            yield self.default

    def writes(self) -> Iterator[int]:
        yield self.to

    def shown(self, name: Callable[[int | None], str]) -> str:
        bounds = f" in {self.low}..{self.high}" if self.wrong is not None else ""
        default = f", by default {name(self.default)}" if self.default is not None else ""
        how = f" as {_kind(self.number)}" if self.number is not None else ""
        return f"take {name(self.to)} = {_path(self.column)}{bounds}{default}{how}"


@dataclass(slots=True)
class Look(WriteStep):
    """The value that a column has, 0 for none, and whether there is one."""

    PURE = True

    column: Column
    index: int
    to: int
    there: int

    def reads(self) -> Iterator[int]:
        yield self.index

    def writes(self) -> Iterator[int]:
        yield self.to
        yield self.there

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"look {name(self.to)}, {name(self.there)} = {_path(self.column)}"


@dataclass(slots=True)
class AnyOf(WriteStep):
    """Whether one of some columns has a value; with ``given``, whether one of them is given at all."""

    PURE = True

    to: int
    columns: list[Column]
    index: int
    given: bool = False

    def reads(self) -> Iterator[int]:
        yield self.index

    def writes(self) -> Iterator[int]:
        yield self.to

    def shown(self, name: Callable[[int | None], str]) -> str:
        paths = ", ".join(_path(column) for column in self.columns)
        return f"look {name(self.to)} = {'given' if self.given else 'any of'} {paths}"


@dataclass(slots=True)
class Was(WriteStep):
    """Replaces a number by the one that was read, where a verdict says that it was wrong."""

    to: int
    verdict: Column
    column: Column
    index: int
    low: int = 0
    high: int = 0
    wrong: Fault | None = None

    def reads(self) -> Iterator[int]:
        yield self.to
        yield self.index

    def writes(self) -> Iterator[int]:
        yield self.to

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"let {name(self.to)} = {_path(self.column)} if not {_path(self.verdict)}"


@dataclass(slots=True)
class Bytes(WriteStep):
    """Takes the bytes of a column, and writes them if ``copy``; their length first, if ``number`` says how.

    Attributes:
        start, length: registers for where they are in the column's data.
        absent, null: faults for a column that is not given, and for a null; None where that is no bytes.
        outside: the fault for offsets that point outside of the data.
        verdict, lost: a verdict, and the fault where it says that the bytes are not known any more.
        nothing: the length that stands for null, or None.
        most, over: the greatest length, and the fault for a greater one.
    """

    column: Column
    index: int
    start: int
    length: int
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

    def reads(self) -> Iterator[int]:
        yield self.index

    def writes(self) -> Iterator[int]:
        yield self.start
        yield self.length

    def shown(self, name: Callable[[int | None], str]) -> str:
        prefix = f", length {_kind(self.number)}" if self.number is not None else ""
        null = f", {self.nothing} is null" if self.nothing is not None else ""
        what = "copy" if self.copy else "find"
        return f"{what} {name(self.start)}, {name(self.length)} = {_path(self.column)}{prefix}{null}"


@dataclass(slots=True)
class CopyBytes(WriteStep):
    """Writes bytes that were taken."""

    column: Column
    start: int
    length: int

    def reads(self) -> Iterator[int]:
        yield self.start
        yield self.length

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"copy {name(self.start)}, {name(self.length)} of {_path(self.column)}"


@dataclass(slots=True)
class OneLine(WriteStep):
    """Refuses bytes of a column that hold a delimiter, a part of it at their end, or if ``lines`` another line."""

    column: Column
    start: int
    length: int
    end: bytes
    lines: bool
    fault: Fault

    def reads(self) -> Iterator[int]:
        yield self.start
        yield self.length

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"fail if {name(self.start)}, {name(self.length)} of {_path(self.column)} have {self.end!r}"


@dataclass(slots=True)
class Text(WriteStep):
    """Writes these bytes."""

    value: bytes

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"store {self.value!r}"


@dataclass(slots=True)
class Digits(WriteStep):
    """Writes an integer in decimal."""

    source: int

    def reads(self) -> Iterator[int]:
        yield self.source

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"store {name(self.source)} in decimal"


@dataclass(slots=True)
class Store(WriteStep):
    """Writes a number that fits: at the position, or ``at`` where room was left for it."""

    number: ir.Number
    source: int
    at: int | None = None

    def reads(self) -> Iterator[int]:
        yield self.source
        if self.at is not None:
            yield self.at

    def shown(self, name: Callable[[int | None], str]) -> str:
        what = f"{_kind(self.number)} {name(self.source)}"
        return f"store {what}" if self.at is None else f"patch {name(self.at)} = {what}"


@dataclass(slots=True)
class Join(WriteStep):
    """Writes bit fields as one number: (register, shift) of each."""

    number: ir.Number
    parts: list[tuple[int, int]]

    def reads(self) -> Iterator[int]:
        yield from (register for register, _ in self.parts)

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"store {_kind(self.number)} {' | '.join(f'{name(part)} << {shift}' for part, shift in self.parts)}"


@dataclass(slots=True)
class Reserve(WriteStep):
    """Writes zeros: room for a number, or so many bytes that only fill up."""

    size: int

    def reads(self) -> Iterator[int]:
        yield self.size

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"reserve {name(self.size)}"


@dataclass(slots=True)
class Sum(WriteStep):
    """The checksum of the bytes between two positions."""

    PURE = True

    to: int
    algorithm: str
    form: Form
    start: int
    end: int

    def reads(self) -> Iterator[int]:
        yield self.start
        yield self.end

    def writes(self) -> Iterator[int]:
        yield self.to

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"let {name(self.to)} = {self.algorithm} {name(self.start)} to {name(self.end)}"


@dataclass(slots=True)
class Begins(WriteStep):
    """Whether what was written from a position on begins with these bytes."""

    PURE = True

    to: int
    start: int
    value: bytes

    def reads(self) -> Iterator[int]:
        yield self.start

    def writes(self) -> Iterator[int]:
        yield self.to

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"look {name(self.to)} = {self.value!r} at {name(self.start)}"


@dataclass(slots=True)
class Elements(WriteStep):
    """Where the elements of a list begin and end, and whether there is a list.

    Attributes:
        column: of the list itself.
        absent, null: faults for a list that is not given, and for a null; None where that has no elements.
    """

    column: Column
    index: int
    at: int
    end: int
    there: int
    absent: Fault | None
    null: Fault | None

    def reads(self) -> Iterator[int]:
        yield self.index

    def writes(self) -> Iterator[int]:
        yield self.at
        yield self.end
        yield self.there

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"look {name(self.at)} to {name(self.end)}, {name(self.there)} = elements of {_path(self.column)}"


@dataclass(slots=True)
class Each(WriteStep):
    """For each element of a list: ``at`` is its index."""

    at: int
    end: int
    body: Body

    def reads(self) -> Iterator[int]:
        yield self.at
        yield self.end

    def bodies(self) -> Iterator[Body]:
        yield self.body

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"each {name(self.at)} to {name(self.end)}:"


@dataclass(slots=True)
class Unread(WriteStep):
    """Refuses a value that nothing has read: in the record, or in the element of a list.

    Attributes:
        group: the number of the list, -1 for the record.
        stamps: registers with the index of the value of a column that was read last.
    """

    group: int
    stamps: list[int]

    def reads(self) -> Iterator[int]:
        yield from self.stamps

    def shown(self, name: Callable[[int | None], str]) -> str:
        return "fail if a value was not read"


@dataclass(slots=True)
class Note(WriteStep):
    """Records a fact of a row: fills a column of the run itself."""

    column: Column
    source: int

    def reads(self) -> Iterator[int]:
        yield self.source

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"note {name(self.source)} -> {_path(self.column)}"


@dataclass(slots=True)
class Finish(WriteStep):
    """Ends the record."""

    def shown(self, name: Callable[[int | None], str]) -> str:
        return "end"


@dataclass(slots=True)
class Message(WriteStep):
    """Writes a message by the table of its fields."""

    message: int

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"write message {self.message}"


@dataclass(slots=True)
class Tell(WriteStep):
    """A field of a message follows from others: if ``known``, it has this number where it is there, or ``always``."""

    message: int
    slot: int
    known: int
    always: int
    value: int

    def reads(self) -> Iterator[int]:
        yield self.known
        yield self.always
        yield self.value

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"let field {self.slot} of message {self.message} = {name(self.value)} if {name(self.known)}"


@dataclass(slots=True)
class Ask(WriteStep):
    """Something of a message: ``value``, ``there`` or ``count`` of a field, ``stored`` (in its column), ``filled``."""

    PURE = True

    to: int
    message: int
    slot: int
    aspect: str

    def writes(self) -> Iterator[int]:
        yield self.to

    def shown(self, name: Callable[[int | None], str]) -> str:
        return f"pick {name(self.to)} = {self.aspect} of field {self.slot} of message {self.message}"


ASPECTS = ("value", "there", "count", "stored", "filled")
