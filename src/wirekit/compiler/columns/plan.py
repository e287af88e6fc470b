"""Decides from the IR which schemas are lists of records, and which fields surround the list.

A record-like schema is, in this order of preference,

- a list of records (``Several``) that extends to the limit or has a count before it;
- a structure with such a list. Only these may precede the list: a length of the rest, the count, constants, and bytes
  up to the limit in place of all others (``IfNext(…, rest())``). Only bytes up to the limit may follow it;
- one record: the buffer contains such records up to its end. A record that takes all bytes, such as a protobuf
  message, is the only one.

``program.read`` decides which nodes a record may contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirekit.compiler import ir
from wirekit.compiler.expressions import Expression, Field, Literal
from wirekit.errors import Misuse, Short
from wirekit.program.unfit import unfit


@dataclass(frozen=True, slots=True)
class Records:
    """A list of records and the fields before it.

    Attributes:
        key: the schema's key.
        element: the layout of one record.
        path: the path of the list in the value, "" for the value itself.
        counted: whether there is a count; otherwise the list extends to the limit.
        stop: whether the list ends before a record that the limit cuts, without an error.
        until: bytes that end the list, or none; ``except_first``: whether the first record may begin with them.
        lead: the fields in front, in order.
        least: the smallest number of bytes of a record, which bounds the count; None without a list.
        tail: whether bytes may follow the list: a record that the limit cuts, or a field.
    """

    key: str
    element: ir.Node
    path: str = ""
    counted: bool = False
    stop: bool = False
    until: bytes = b""
    except_first: bool = False
    lead: tuple[Lead, ...] = ()
    least: int | None = None
    tail: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether a length around the records gives the end of the value."""
        return any(lead.role == "limit" for lead in self.lead)


@dataclass(frozen=True, slots=True)
class Lead:
    """A field before a list.

    Attributes:
        path: its name.
        number: its form; None for ``instead``.
        role: ``limit`` (its value bounds the rest), ``count``, ``constant``, or ``instead`` (bytes in place of all
            records).
        measure: the properties of a limit.
        value: the value of a constant; for ``instead``, the bytes that announce it.
    """

    path: str
    number: ir.Number | None
    role: str
    measure: ir.Measure | None = None
    value: Any = None


@dataclass(frozen=True, slots=True)
class Start:
    """Where the records of a buffer begin and end.

    Attributes:
        start, end: the range of the records.
        count: the number of records, or -1 for all up to the limit.
        wrong: (path, kind, offset, length, reason) of an error before them, or None. If a length or a
            count exceeds the data, the records in the data are read all the same.
    """

    start: int
    end: int
    count: int
    wrong: tuple[str, str, int, int, str] | None = None


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ``Start`` of each range, as arrays for the interpreter; ``wrong`` by number of the range."""

    starts: NDArray[Any]
    ends: NDArray[Any]
    counts: NDArray[Any]
    wrong: dict[int, tuple[str, str, int, int, str]] = field(default_factory=dict)

    @staticmethod
    def of(places: Sequence[Start]) -> Ranges:
        """The ``Ranges`` with the starts of single ranges."""
        table = np.array([(each.start, each.end, each.count) for each in places], np.int64).reshape(-1, 3)
        wrong = {number: each.wrong for number, each in enumerate(places) if each.wrong is not None}
        starts, ends, counts = table.T.copy()
        return Ranges(starts, ends, counts, wrong)


def records(key: str, layout: ir.Node) -> Records:
    """The list of records of a layout.

    Raises:
        Misuse: the layout is not a list of records; the text names the node that prevents it, and its path.

    >>> from wirekit.registry import registry
    >>> records("kafka.message_set", registry["kafka.message_set"].layout).path
    'messages'
    """
    if isinstance(layout, ir.Several):
        return of_list(key, layout, "", [])
    if isinstance(layout, ir.Structure):
        with suppress(Misuse):  # the schema has more than the list
            for at, member in enumerate(layout.members):
                if isinstance(member.node, ir.Several):
                    return _of_structure(key, layout, at, member.node)
    return Records(key, layout)


def of_list(key: str, several: ir.Several, path: str, lead: list[Lead]) -> Records:
    if several.announced is not None:
        raise unfit(key, path, several, "another field has its number of elements")
    counted = several.count is not None
    if isinstance(several.count, ir.Number):
        lead.append(Lead(path, several.count, "count", value=several.null))
    elif counted and not (isinstance(several.count, Field) and any(each.role == "count" for each in lead)):
        raise unfit(key, path, several, f"its count is {several.count}")
    ends = several.stop, several.until, several.except_first
    return Records(key, several.element, path, counted, *ends, tuple(lead), several.least, tail=several.stop)


def _of_structure(key: str, layout: ir.Structure, at: int, several: ir.Several) -> Records:
    if layout.sums:
        raise unfit(key, layout.members[layout.sums[0].at].name, "a checksum around the list")
    lead = list(_leads(key, layout, at, several.count))
    for member in layout.members[at + 1 :]:
        rest = member.node
        if not (isinstance(rest, ir.Blob) and rest.length is None and rest.coding is None):
            raise unfit(key, member.name, rest, "after the records")
    listed = of_list(key, several, layout.members[at].name, lead)
    return replace(listed, tail=listed.tail or at + 1 < len(layout.members))


def _leads(key: str, layout: ir.Structure, at: int, counter: ir.Number | Expression | None) -> Iterator[Lead]:
    measures = {measure.at: measure for measure in layout.measures}
    for index, member in enumerate(layout.members[:at]):
        match member.node:
            case ir.WhenNext(magic=magic, node=ir.Blob(length=None, coding=None)) if magic:
                yield Lead(member.name, None, "instead", value=magic)
            case ir.Number(real=False) as number if index in measures:
                measure = measures[index]
                usual = measure.bounds and not (measure.zero_is_rest or measure.clip)
                if not usual or measure.first != index + 1 or measure.last != len(layout.members) - 1:
                    raise unfit(key, member.name, "a length that covers only a part")
                yield Lead(member.name, number, "limit", measure)
            case ir.Number(real=False) as number if counter == Field(0, (member.name,)):
                yield Lead(member.name, number, "count")
            case ir.Constant(node=ir.Number(real=False) as number, value=Literal(value=int(value)), fatal=True):
                yield Lead(member.name, number, "constant", value=value)
            case other:
                raise unfit(key, member.name, other, "before the records, and would be lost")


def start(plan: Records, buffer: memoryview, begin: int, end: int, frame: int) -> Start:
    """Reads the fields before the records in ``buffer[begin:end]``; the reference engine explains errors.

    Args:
        frame: the largest length in bytes that a frame may announce.
    """
    position, limit, count = begin, end, -1
    cut: tuple[str, str, int, int, str] | None = None
    for lead in plan.lead:
        refused = Start(position, position, 0, (lead.path, "wrong", position, end - position, ""))
        if lead.number is None:
            if bytes(buffer[position : min(position + len(lead.value), limit)]) == lead.value:
                return Start(limit, limit, 0)
            continue
        value, position = lead.number.read(buffer, position, limit)
        if position < 0:
            return refused
        if lead.role == "constant":
            if value != lead.value:
                return refused
        elif lead.role == "count":
            if value < 0 and lead.value is not None and value <= lead.value:
                return Start(limit, limit, 0)
            if value < 0:
                return refused
            count = value
        elif lead.measure is not None:
            measure = lead.measure
            if value < measure.least or (measure.frame and value > frame):
                return refused
            size, remaining = value - measure.add, limit - position
            if size > remaining:
                cut = cut or (lead.path, "short", position, remaining, Short(size, remaining).reason)
            limit = min(position + size, limit)
    needed, remaining = count * max(plan.least or 0, 1), limit - position
    if needed <= remaining:
        return Start(position, limit, count, cut)
    return Start(position, limit, -1, (plan.path, "short", position, remaining, Short(needed, remaining).reason))
