"""Protobuf messages as columns: tables of their fields for ``kernels.protobuf``, and its results as Arrow arrays.

Each field has a slot, including the fields of nested messages, so a slot stands for a path. The values of a record are
written to arrays with one element per slot; a field gets a column when it occurs first. So a message of hundreds of
fields costs only as much as the fields that occur. Elements of lists are written one after the other, with their slot
and row, and are sorted by these at the end.

Columns: a field by its path; a list of numbers or strings as a list; a list of messages as one list per field, all of
the same length, null where an element lacks the field. Lists inside lists, and messages inside messages of their own
type, have no columns; the metadata ``wirekit.left_out`` names them. A nested message that never occurs in the buffer
has no columns unless they are requested. ``<path>.ok`` is the verdict on the whole message: required fields are
present, enum numbers have symbols, and text is UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns import memory as pool
from wirekit.compiler.columns.programs import type_of
from wirekit.program.columns import field_metadata
from wirekit.program.messages import SLOT_WIDTH, VALUES, Place, Tables, chosen, field_column, is_leaf, memory, slot_at
from wirekit.wire.protobuf import BYTES, Field

COLUMNS = 8  # fields for which memory is allocated at first
TEMPLATES = 128  # choices of fields that are kept
LARGE = (1 << 31) - 1  # the most bytes for 32-bit offsets
_WORD = np.dtype(np.uint64)

# Copies the strings of a column. Each type of offsets has a module of its own, because ``kernels.protobuf`` is compiled
# without knowing the type. The function is called ``scan``, as in every generated module.
_GATHER = """\
# offsets: {}
import numpy as np
from numba import njit

from wirekit.compiler.kernels.reads import copy


@njit(nogil=True, cache=True)
def scan(b, starts, lengths, present, offsets, data):
    at = np.int64(0)
    for i in range(present.size):
        if present[i]:
            size = np.int64(lengths[i])
            copy(data, at, b, np.int64(starts[i]), size)
            at += size
        offsets[i + 1] = at
"""


class Tray:
    """The arrays of one message type for one scan: tables, the values of the current record, the columns.

    Args:
        tables: the tables of the message type.
        rows: the number of records for which memory is allocated.
        fields: prefixes of the paths to return, or None for all.
    """

    def __init__(self, tables: Tables, rows: int, fields: tuple[str, ...] | None) -> None:
        self.tables = tables
        self.fields = fields
        count = len(tables.places)
        if fields not in tables.templates:
            if len(tables.templates) >= TEMPLATES:
                tables.templates.clear()
            tables.templates[fields] = self._template()
        memory, self.slots = tables.templates[fields]
        self.memory = memory.copy()
        self.items: NDArray[Any] = np.empty((1024, 5), np.int64)
        columns = min(COLUMNS, count)
        self.dense = pool.table(2 * columns, rows, _WORD)
        self.present: NDArray[Any] = np.zeros((columns, self.dense.shape[1]), np.uint8)

    def _template(self) -> tuple[NDArray[Any], list[int]]:
        """The initial tables of a scan, and the slots of the columns to return."""
        places, where = self.tables.places, [-1] * len(self.tables.places)
        slots = [slot for slot, place in enumerate(places) if chosen(place.path, self.fields)]
        if self.fields is not None:
            needed = set(slots)
            for slot, place in enumerate(places):
                if needed.isdisjoint(range(slot, place.end)):
                    where[slot] = -2
        return memory(self.tables, where), [slot for slot in slots if is_leaf(places[slot], slot)]

    def described(self) -> list[int]:
        """The entries of the message in the table of a scan (see ``runtime.opcodes``)."""
        arrays = (self.memory, self.items, self.dense, self.present)
        tray, items, dense, present = map(pool.address, arrays)
        return [tray, self.memory.size, items, self.items.shape[0], dense, present, *self.dense.shape]

    @property
    def where(self) -> NDArray[Any]:
        """The number of the column of each slot; negative for none."""
        return self.memory.view(np.int64)[VALUES + 3 : slot_at(len(self.tables.places)) : SLOT_WIDTH]

    @property
    def width(self) -> int:
        """Bytes of the arrays that a record fills, without the elements of its lists."""
        return self.dense.itemsize * int(self.memory[5]) + int(self.memory[5]) // 2

    @property
    def room(self) -> int:
        """Bytes of the arrays for a record after ``grow``."""
        return (2 * self.dense.itemsize + 1) * self._columns()

    def _columns(self) -> int:
        """The number of fields that need arrays."""
        count = self.present.shape[0]
        return count if int(self.memory[5]) + 2 <= self.dense.shape[0] else min(2 * count, len(self.tables.places))

    def bytes_used(self, rows: int) -> int:
        """Bytes of the arrays that a number of records fills."""
        return self.items.itemsize * 5 * int(self.memory[1]) + self.width * rows

    def grow(self, rows: int, filled: int) -> None:
        """Allocates memory for rows, and enlarges the arrays that a scan has filled up.

        Only what the scan has written, for ``filled`` rows, is copied: memory that is never written costs nothing.
        """
        kept_items, used, columns = (int(self.memory[at]) for at in (1, 2, 5))
        if 2 * used > self.items.shape[0]:
            items, self.items = self.items, np.empty((4 * self.items.shape[0], 5), np.int64)
            self.items[:kept_items] = items[:kept_items]
        count = self._columns()
        if count > self.present.shape[0] or (rows > self.present.shape[1] and filled >= self.present.shape[1]):
            dense, self.dense = self.dense, pool.table(2 * count, rows, _WORD)
            self.dense[:columns, :filled] = dense[:columns, :filled]
            present, self.present = self.present, np.zeros((count, self.dense.shape[1]), np.uint8)
            self.present[: columns // 2, :filled] = present[: columns // 2, :filled]


def arrays(tray: Tray, buffer: NDArray[Any], rows: int, good: bool) -> Iterator[tuple[pa.Field, pa.Array]]:
    """The columns of a message: the requested ones, or those of the nested messages that occur in any row.

    Args:
        good: whether the verdict on the message is good in every row, so that all its text is UTF-8.
    """
    where: list[int] = tray.where.tolist()
    dense, present, items = tray.dense, tray.present, _Items(tray, rows, good)
    zeros = pa.py_buffer(np.zeros(rows + 1, np.int64))  # of all columns that are null in every row
    for slot in tray.slots:
        place = tray.tables.places[slot]
        around = place.owner if place.owner >= 0 else place.message
        if tray.fields is None and around and where[around] < 0:  # the message around is in no row
            continue
        each, row = place.field, where[slot]
        assert each is not None
        if place.owner >= 0 or each.repeated:
            yield items.column(slot, place, buffer)
            continue
        if row < 0:
            field = _field_of(place)
            buffers = [zeros] * (3 if each.wire_type == BYTES else 2)
            yield field, pa.Array.from_buffers(field.type, rows, buffers, rows)
            continue
        there = present[row >> 1, :rows]
        yield _field_of(place), _array(each, dense[row, :rows], dense[row + 1, :rows], there, buffer, good)


@cache
def _field_of(place: Place) -> pa.Field:
    column = field_column(place)
    return pa.field(column.path, type_of(column), True, field_metadata(column.table, column.unit))


def _array(
    each: Field, values: NDArray[Any], lengths: NDArray[Any], present: NDArray[Any], buffer: NDArray[Any], good: bool
) -> pa.Array:
    """An Arrow array of the values in a tray: numbers of 64 bits, or the places of strings in the buffer."""
    count = len(present)
    valid = None if present.all() else bit_buffer(present)
    if each.wire_type == BYTES:
        return _strings(each, values, lengths, present, buffer, valid, good)
    if each.kind == "bool":
        bits = bit_buffer(np.where(present, values, 0).astype(np.uint8))
        return pa.Array.from_buffers(pa.bool_(), count, [valid, bits])
    dtype = np.dtype(each.dtype)
    numbers = values.astype(np.uint32).view(dtype) if dtype.itemsize == 4 else np.ascontiguousarray(values).view(dtype)
    return pa.Array.from_buffers(pa.from_numpy_dtype(dtype), count, [valid, pa.py_buffer(numbers)])


def _strings(
    each: Field,
    starts: NDArray[Any],
    lengths: NDArray[Any],
    present: NDArray[Any],
    buffer: NDArray[Any],
    valid: pa.Buffer | None,
    good: bool,
) -> pa.Array:
    starts, lengths = np.ascontiguousarray(starts), np.ascontiguousarray(lengths)
    present = np.ascontiguousarray(present)
    size = int((lengths if valid is None else lengths[present.astype(bool)]).sum())
    large = size > LARGE
    gather = columns_cache.function(_GATHER.format("int64" if large else "int32"))
    offsets = pool.array(len(present) + 1, np.dtype(np.int64 if large else np.int32))
    offsets[0] = 0
    data = pool.array(size, np.dtype(np.uint8))
    gather(buffer, starts, lengths, present, offsets, data)
    kind = pa.large_binary() if large else pa.binary()
    array = pa.Array.from_buffers(kind, len(present), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
    return text_array(array, good) if each.kind == "string" else array


def bit_buffer(flags: NDArray[Any]) -> pa.Buffer:
    """Flags, one byte each, as bits."""
    return pa.py_buffer(np.packbits(flags, None, "little"))


def text_array(array: pa.Array, good: bool) -> pa.Array:
    """Byte strings as text: all are valid if ``good``; otherwise bytes that are not UTF-8 are replaced."""
    kind = pa.large_string() if pa.types.is_large_binary(array.type) else pa.string()
    if good:
        return pa.Array.from_buffers(kind, len(array), array.buffers())
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        shown = [None if value is None else value.decode(errors="replace") for value in array.to_pylist()]
        return pa.array(shown, kind)


def list_array(elements: pa.Array, offsets: NDArray[Any], valid: pa.Buffer | None, *, nullable: bool) -> pa.Array:
    """Lists of elements, which may be null if ``nullable``; ``valid`` has the bits of lists that are not null."""
    large = len(elements) > LARGE
    kind = (pa.large_list if large else pa.list_)(pa.field("item", elements.type, nullable))
    buffer = pa.py_buffer(offsets.astype(np.int64 if large else np.int32, copy=False))
    return pa.Array.from_buffers(kind, len(offsets) - 1, [valid, buffer], -1, 0, [elements])


class _Items:
    """The elements of all lists, sorted by the list's slot."""

    def __init__(self, tray: Tray, rows: int, good: bool) -> None:
        self.tray, self.rows, self.good = tray, rows, good
        items = tray.items[: int(tray.memory[1])]
        order = np.argsort(items[:, 0], kind="stable")
        self.items = items[order]
        self.slots = self.items[:, 0]

    def offsets(self, slot: int) -> NDArray[Any]:
        """The place of the first element of each row's list among the elements of all rows."""
        row = int(self.tray.where[slot])
        offsets = np.zeros(self.rows + 1, np.int64)
        if row >= 0:
            present = self.tray.present[row >> 1, : self.rows].astype(bool)
            np.cumsum(np.where(present, self.tray.dense[row, : self.rows], 0), out=offsets[1:])
        return offsets

    def column(self, slot: int, place: Place, buffer: NDArray[Any]) -> tuple[pa.Field, pa.Array]:
        """A list column; null if the message that contains the list is absent."""
        each = place.field
        assert each is not None
        owner = place.owner if place.owner >= 0 else slot
        offsets = self.offsets(owner)
        count = int(offsets[-1])
        values, lengths = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        present = np.zeros(count, np.uint8)
        first, last = np.searchsorted(self.slots, (slot_at(slot), slot_at(slot + 1)))
        items = self.items[first:last]
        at = offsets[items[:, 1]] + items[:, 2]
        values[at], lengths[at], present[at] = items[:, 3].view(np.uint64), items[:, 4].view(np.uint64), 1
        if each.message is not None:  # a message without fields
            inner = pa.array(np.ones(count, bool))
        else:
            inner = _array(each, values, lengths, present, buffer, self.good)
        row = int(self.tray.where[self.tray.tables.places[owner].message])
        present = self.tray.present[row >> 1, : self.rows] if row >= 0 else np.zeros(self.rows, np.uint8)
        valid = None if present.all() else bit_buffer(present)
        listed = list_array(inner, offsets, valid, nullable=place.owner >= 0)
        return _field_of(place).with_type(listed.type), listed
