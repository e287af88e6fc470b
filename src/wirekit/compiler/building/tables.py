"""The columns of a protobuf message as the table that ``runtime.write_messages`` writes messages by.

A table begins with the place of each slot's entry, or -1; then come the entries, the entry of a message before those of
its fields. Only fields that the batch has, required fields, and fields that other parts of the record need have an
entry, so a message type of hundreds of fields costs only as much as the fields in use.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from wirekit.compiler.building.inputs import taken
from wirekit.compiler.building.places import Elements, Rows
from wirekit.compiler.building.unfolding import unfolded
from wirekit.compiler.columns.memory import address
from wirekit.program.columns import Column
from wirekit.program.messages import DTYPES, Place, is_leaf
from wirekit.program.write import Built
from wirekit.runtime import write_opcodes as op
from wirekit.wire.protobuf import BYTES, VARINT, Field, Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROOM = 4  # bytes of a tag and a number that is small, for a first guess

_FAULTS = {
    op.ABSENT: "is missing, but the message requires it",
    op.NO_ELEMENT: "has a null in a list; a message has no null elements",
    op.OUTSIDE: "its offsets point outside of its data",
}


def wrong(built: Built, code: int) -> tuple[str, str]:
    """(path, text) of how a message cannot be written, as a number above 0."""
    slot, how = divmod(code, op.FAULTS)
    place = built.tables.places[slot]
    if how == op.UNEVEN:
        return place.path, f"has another length than the other columns of {built.tables.places[place.owner].path}"
    return place.path, _FAULTS[how]


@dataclass(slots=True)
class Table:
    """A message's columns for the interpreter.

    Attributes:
        memory: the table.
        arrays: what it has the addresses of.
        total: bytes that the message takes in all rows, as a first guess.
    """

    memory: NDArray[Any]
    arrays: list[NDArray[Any]] = field(default_factory=list)
    total: int = 0


def column_of(place: Place) -> Column:
    """The column of a field, or of its elements."""
    each = place.field
    assert each is not None
    kind = {"string": "text", "bytes": "bytes", "bool": "flag", "message": "flag"}.get(each.kind, "number")
    dtype = "uint8" if kind == "flag" else DTYPES.get(each.kind, "")
    return Column(place.path, kind, dtype, True, each.table, 0, place.unit)


def table(key: str, built: Built, batch: pa.RecordBatch, first: Rows) -> Table:
    """The table for a batch.

    Raises:
        Misuse: for a column of another type, or a value that does not fit.
    """
    maker = _Maker(key, built, batch, first)
    root = maker.root
    maker.message(0, built.message, 0)
    places = np.full(root, -1, np.int64)
    for number, entry in enumerate(maker.entries):
        places[entry[op.SLOT]] = root + op.WIDTH * number
    memory = np.concatenate([places, np.array(maker.entries, np.int64).ravel()])
    return Table(memory, maker.arrays, maker.total)


class _Maker:
    """Makes the entries of a table, one after the other."""

    def __init__(self, key: str, built: Built, batch: pa.RecordBatch, first: Rows) -> None:
        self.key, self.built, self.batch, self.first = key, built, batch, first
        self.places = built.tables.places
        self.root = len(self.places)  # where the entry of the message itself stands
        slots = built.tables.slots
        self.given = {slots[name]: at for at, name in enumerate(batch.schema.names) if name in slots}
        self.wanted = sorted({*self.given, *built.derived})
        self.entries: list[list[int]] = []
        self.arrays: list[NDArray[Any]] = []
        self.numbers: dict[int, NDArray[Any]] = {}
        self.total = 0

    def message(self, slot: int, message: Message, flags: int, outer: int = 0) -> None:
        """Adds the entry of a message, and those of what is in it; ``outer`` is the one around it."""
        place, here = self.places[slot], self._at()
        entry = self._entry(slot, op.KIND_MESSAGE, flags, outer)
        end = place.end if place.field is not None else len(self.places)
        inner = slot + 1
        fields: dict[str, int] = {}
        selected: set[int] = set()
        while inner < end:
            each, behind = self.places[inner].field, self.places[inner].end
            assert each is not None
            used = bisect_left(self.wanted, inner) < bisect_left(self.wanted, behind)
            if used or each.required or each.number in selected:
                fields[each.name] = self._at()
                self._field(inner, each, here)
                if each.name == message.selector:
                    selected = set(np.unique(self.numbers.get(inner, np.zeros(0, np.uint64))).tolist())
            inner = behind
        if message.selector in fields:
            entry[op.SELECTOR] = fields[message.selector]
        entry[op.END] = self._at()

    def _field(self, slot: int, each: Field, outer: int) -> None:
        place = self.places[slot]
        flags = (
            op.REPEATED * each.repeated | op.REQUIRED * each.required | op.LISTED * (each.repeated or place.owner >= 0)
        )
        if each.message is not None and not is_leaf(place, slot):
            self.message(slot, each.message, flags, outer)
            return
        kind = (
            op.KIND_EMPTY if each.message is not None else op.KIND_VARINT if each.wire_type == VARINT else op.KIND_BYTES
        )
        if each.fixed:
            kind = op.KIND_32 if each.fixed[1] in "fIi" else op.KIND_64
        entry = self._entry(slot, kind, flags, outer)
        entry[op.END] = self._at()
        if slot in self.given:
            self._column(entry, place, each, self.batch.column(self.given[slot]))

    def _at(self) -> int:
        """Where the next entry stands."""
        return self.root + op.WIDTH * len(self.entries)

    def _entry(self, slot: int, kind: int, flags: int, outer: int) -> list[int]:
        each = self.places[slot].field
        entry = [0] * op.WIDTH
        entry[op.PARENT] = outer
        entry[op.SLOT], entry[op.KIND], entry[op.FLAGS], entry[op.SELECTOR] = slot, kind, flags, -1
        if each is not None:
            entry[op.TAG] = each.number << 3 | each.wire_type
        self.entries.append(entry)
        return entry

    def _column(self, entry: list[int], place: Place, each: Field, array: pa.Array) -> None:
        rows, lists, first = len(array), None, self.first
        if each.repeated or place.owner >= 0:
            lists, array = unfolded(self.key, place.path, array)
            first = Elements(first, lists.offsets)
        found = taken(self.key, column_of(place), array, first)
        entry[op.FIELD_GIVEN] = found.given
        if each.wire_type == BYTES and each.message is None:
            entry[op.FIELD_VALUES], entry[op.FIELD_DATA] = self._kept(found.values, found.data)
            entry[op.FIELD_DATA_SIZE], entry[op.FIELD_COUNT] = found.data.size, found.values.size - 1
        else:
            values = self.numbers[entry[op.SLOT]] = _raw(each, found.values)
            (entry[op.FIELD_VALUES],) = self._kept(values)
            entry[op.FIELD_COUNT] = values.size
        (entry[op.FIELD_VALID],) = self._kept(found.valid)
        self.total += found.total + ROOM * (max(entry[op.FIELD_COUNT], 0) + rows)
        if lists is not None:
            entry[op.ROWS] = rows
            (entry[op.LISTS],) = self._kept(lists.offsets)
            if lists.valid.size:
                (entry[op.LIST_VALID],) = self._kept(lists.valid)

    def _kept(self, *arrays: NDArray[Any]) -> tuple[int, ...]:
        """The addresses of arrays."""
        self.arrays += arrays
        return tuple(address(each) for each in arrays)


def _raw(each: Field, values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as they are written, in 64 bits: what a varint stands for, or the bytes of one of fixed size."""
    if values.dtype.kind == "f":
        return values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    if values.dtype.kind == "u":
        return (values != 0 if each.kind == "bool" else values).astype(np.uint64)
    signed = values.astype(np.int64)
    if each.kind in ("sint32", "sint64"):
        signed = (signed << 1) ^ (signed >> 63)
    return signed.view(np.uint64)
