"""The arrays that a scan fills for columns and lists: their types, initial sizes, and growth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirekit.compiler import cache
from wirekit.compiler.columns.memory import Pool
from wirekit.program.columns import Column, Repeated
from wirekit.program.maker import Program
from wirekit.program.steps import ROW, Body
from wirekit.program.values import HIGHEST
from wirekit.runtime import opcodes as op
from wirekit.runtime.kernel import kernel_text
from wirekit.runtime.words import is_direct, place_of
from wirekit.runtime.words import words as encoded

EAGER = 32  # if there are at most this many columns, each gets memory before the scan
SPARE = 3  # an array may have this many times the memory that it uses
SMALL = 1 << 20  # bytes; smaller arrays are never copied
_SHORT, _LONG, _BYTE = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)
_NOTHING: NDArray[Any] = np.zeros(0, np.uint8)


class Place:
    """The types and sizes of the arrays of a column or list, before it is filled.

    Attributes:
        entry: the column, or the list.
        at: the place of its entry in the table of a scan.
        index: the register with the number of its rows.
        dtype: the type of its values, or offsets.
        has_offsets: whether it is a list, or has byte strings.
        extra: the elements of the array of values beyond the number of rows.
        width: the bytes of a row, without those of a byte string.
        direct: whether the program contains the address of its values.
        eager: whether it gets memory before the first value is written.
        slot: the slot of a column; -1 for a list.
        values, valid, data: the names of its arrays, "" for an array that it does not have.
    """

    def __init__(self, entry: Column | Repeated, number: int, wide: bool, many: bool) -> None:
        self.entry, self.at = entry, place_of(number)
        self.is_list = isinstance(entry, Repeated)
        self.is_bytes = isinstance(entry, Column) and entry.is_bytes
        self.has_offsets = self.is_list or self.is_bytes
        self.outer, self.lists = entry.within, entry.lists if isinstance(entry, Column) else []
        if isinstance(entry, Repeated):
            self.slot, kind = -1, ""
            self.values, valid = f"lo{entry.number}", f"lv{entry.number}"
        else:
            self.slot, kind = entry.slot, entry.dtype
            self.values, valid = f"{'o' if self.is_bytes else 'c'}{entry.slot}", f"v{entry.slot}"
            if entry.slot < 0:
                self.values, valid = entry.path, ""
        self.valid, self.data = valid if entry.nullable else "", f"d{self.slot}" if self.is_bytes else ""
        self.index = ROW if self.outer is None else self.outer.index
        self.dtype = np.dtype(kind) if not self.has_offsets else _LONG if wide else _SHORT
        self.extra = int(self.has_offsets) + -(-op.SPARE // self.dtype.itemsize)
        self.width = self.dtype.itemsize + int(entry.nullable)
        self.direct, self.eager = is_direct(entry), not (many and entry.sparse)


class ScanProgram:
    """An encoded program with the data for a scan that do not depend on the buffer.

    Args:
        program: the program.
        body: its steps for a choice of columns.
        entries: the columns that they fill, and all lists.
        wide: whether offsets have 64 bits.

    Attributes:
        places: the types and sizes of each entry, by number.
        lists_first: the same, lists before columns.
        columns: those of the columns that are not columns of the scan itself.
        table: the table of a scan without addresses.
        messages: the place of the first protobuf message in the table.
        addresses: (words, places in the table): each word takes the number at its place in the table.
        rooms: the places in the table with the numbers of rows for which there is memory.
    """

    def __init__(self, program: Program, body: Body, entries: list[Column | Repeated], wide: bool) -> None:
        self._steps = program, body, entries
        self._scan: Callable[..., Any] | None = None
        self.words = words = encoded(program, body, entries)
        many = len(entries) > EAGER
        self.places = [Place(each, at, wide, many) for at, each in enumerate(entries)]
        self.lists_first = sorted(self.places, key=lambda each: not each.is_list)
        self.byte_columns = sum(each.is_bytes for each in self.places)
        self.messages = place_of(len(self.places))
        self.table: NDArray[Any] = np.zeros(self.messages + op.WIDTH_OF_MESSAGE * len(program.messages), np.int64)
        self.table[op.LARGE], self.table[op.COLUMN_COUNT] = wide, len(self.places)
        self.table[op.MESSAGES] = self.messages
        for each in self.places:
            at = each.at
            self.table[at + op.NEXT] = 0 if each.entry.sparse else -1
            self.table[at + op.VALUE_WIDTH] = each.dtype.itemsize
            self.table[at + op.INDEX] = each.index
            self.table[at + op.KIND] = op.LISTS if each.is_list else op.STRINGS if each.is_bytes else op.NUMBERS
            self.table[at + op.ELEMENTS] = each.entry.index if isinstance(each.entry, Repeated) else 0
        first = len(entries) - len(program.hidden)
        place_by_name = {name: place_of(first + at) for at, name in enumerate(program.hidden)}
        self.table[op.OFFSET], self.table[op.LENGTH] = place_by_name["offset"], place_by_name["length"]
        self.table[op.GAPS] = place_by_name.get("gap", -1)
        self.table[op.MAY_BE_EMPTY], self.table[op.LAST_REASON] = program.may_be_empty, len(program.reasons)
        where, which = words.places
        self.addresses = where, place_of(0) + op.WIDTH_OF_COLUMN * which + op.VALUES
        self.rooms = np.array([each.at + op.ROOM for each in self.places if each.direct])
        self.columns = [each for each in self.places if each.slot >= 0]

    @property
    def kernel(self) -> str | None:
        """The text of a kernel for the same steps; None if there is none."""
        return kernel_text(*self._steps)

    def scan(self) -> Callable[..., Any]:
        """The function that scans: a specialised kernel if one is compiled, otherwise the interpreter."""
        if self._scan is None:
            kernel = self.kernel if cache.has_kernels() else None
            has_kernel = kernel is not None and cache.is_compiled(kernel, cache.KERNEL)
            self._scan = cache.function(kernel, kind=cache.KERNEL) if has_kernel and kernel else cache.interpreter()
        return self._scan

    def choose(self, scan: Callable[..., Any] | None) -> None:
        """Sets the function that scans; None for the default."""
        self._scan = scan


class Filled:
    """The arrays of a column or list while they are filled.

    Args:
        place: the types and sizes.
        pool: the memory.
        measured: whether only the lengths of byte strings are stored.
    """

    def __init__(self, place: Place, pool: Pool, measured: bool = False) -> None:
        self.place, self.pool, self.measured = place, pool, measured
        self.room = 0
        self.values = self.valid = self.data = _NOTHING
        self.values_at = self.valid_at = self.data_at = 0

    def grow(self, room: int, size: int) -> None:
        """Allocates memory for a number of rows and bytes."""
        place = self.place
        values, self.values_at = self.pool.array(room + place.extra, place.dtype)
        if self.room:
            values[: self.values.size] = self.values
        elif place.has_offsets:
            values[0] = 0
        self.values = values
        if place.entry.nullable:
            valid, self.valid_at = self.pool.array(room, _BYTE)
            if self.room:
                valid[: self.valid.size] = self.valid
            self.valid = valid
        self.room = room
        if place.is_bytes and not self.measured and size > self.data.size:
            self.more(size)

    def more(self, size: int) -> None:
        """Allocates memory for a number of bytes."""
        data, self.data_at = self.pool.array(size, _BYTE)
        if self.data.size:
            data[: self.data.size] = self.data
        self.data = data

    def describe(self, table: NDArray[Any]) -> None:
        """Writes the addresses of the arrays to the table."""
        at = self.place.at
        table[at + op.VALUES : at + op.ROOM + 1] = self.values_at, self.valid_at, table[at + op.NEXT], self.room
        if self.place.is_bytes:
            table[at + op.BYTES : at + op.BYTES_ROOM + 1] = self.data_at, HIGHEST if self.measured else self.data.size

    def bytes_used(self, count: int, end: int) -> int:
        """The size in bytes of the finished arrays for a number of rows; the last row may not be set yet."""
        rows = min(count if end < 0 else min(count, end), self.room)
        elements = count if end or self.place.is_list else 0
        return elements * self.place.width + (int(self.values[rows]) if self.data.size and self.room else 0)

    def enlarge(self, table: NDArray[Any], guess: int, more: int) -> None:
        """Allocates the requested memory; memory for rows grows to an estimate, to twice its size, or by a step."""
        at = self.place.at
        rows, size = int(table[at + op.ROWS_NEEDED]), int(table[at + op.BYTES_NEEDED])
        if rows > self.room or (self.place.direct and guess > self.room):
            self.grow(max(rows, min(2 * self.room, self.room + more), guess), 0)
        if size > self.data.size:
            self.more(max(size, 2 * self.data.size + 4096))
        table[at + op.ROWS_NEEDED] = table[at + op.BYTES_NEEDED] = 0

    def finish(self, arrays: dict[str, NDArray[Any]], used: int, count: int) -> None:
        """Adds the arrays with one element per row, by name; none for a column that is null in all rows.

        Args:
            arrays: receives them.
            used: the number of rows up to the last that sets it; negative if every row sets it.
            count: the number of rows.
        """
        place = self.place
        if used == 0 and count and not place.is_list:
            return
        if count > self.room or (count == 0 and place.has_offsets and not self.room):
            self.grow(count, 0)
        if 0 <= used < count:
            self.valid[used:count] = 0
            self.values[used + place.has_offsets : count + place.has_offsets] = (
                self.values[used] if place.has_offsets else 0
            )
        values = arrays[place.values] = self._fitted(self.values, count + place.has_offsets)
        if place.valid:
            arrays[place.valid] = self._fitted(self.valid, count)
        if place.data:
            arrays[place.data] = self._fitted(self.data, int(values[count]))

    def _fitted(self, array: NDArray[Any], size: int) -> NDArray[Any]:
        """The used part of an array; a copy if a view would keep much more memory."""
        part = array[:size]
        if array.nbytes > SMALL and SPARE * part.nbytes < array.nbytes:
            fitted, _ = self.pool.array(size, array.dtype)
            fitted[:] = part
            return fitted
        return part
