"""The interpreter is run over the ranges of a level; the arrays that it fills grow as they are filled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns import memory as pool
from wirekit.compiler.columns.plan import Ranges, Records
from wirekit.compiler.columns.programs import Columnar
from wirekit.compiler.columns.protobuf import Tray
from wirekit.errors import Misuse
from wirekit.program.columns import Column, Repeated
from wirekit.program.steps import ROW
from wirekit.runtime import opcodes as op
from wirekit.runtime.words import is_direct
from wirekit.wire.stream import Allowance, Limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

HIGHEST = (1 << 63) - 1
LARGE = (1 << 31) - 1  # bytes from which on 32-bit offsets do not do
WHOLE = 256 << 20  # bytes: up to here each column of byte strings gets room for all of the buffer at once
SPARE = 3  # how many times what is used an array may take
SMALL = 1 << 20  # bytes: what an array of no more holds on to does not matter
ELEMENT_GUESS = 32  # the same of an element of a list
COPIES = 4  # of an array: while it grows, while levels become one batch, while rows are taken out
ROW_GUESS = 64  # bytes a record takes, for a first guess of how many there are


@dataclass(slots=True)
class Level:
    """What was scanned at one depth.

    Attributes:
        buffer: the bytes; from depth 1 on all that was decompressed, one piece after the other.
        ranges: where the records are in it.
        begins: of each range, where it begins in the buffer; offsets count from there.
        parents: of each range, the row that holds it, one depth up.
        rows, errors: how many there are.
        arrays: by name, as they were filled.
        state: what became of each row: 0 a row of the result, 1 opened, 2 an error.
        left: of each opened row, the bytes behind the last good record in it.
        slots: of the columns that were filled.
        trays: what the protobuf messages in the records hold.
    """

    buffer: NDArray[Any]
    ranges: Ranges
    begins: NDArray[Any]
    parents: NDArray[Any]
    rows: int = 0
    errors: int = 0
    arrays: dict[str, Any] = field(default_factory=dict)
    state: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.uint8))
    left: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    roots: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    slots: frozenset[int] = frozenset()
    trays: list[Tray] = field(default_factory=list)

    def ranges_of_rows(self) -> NDArray[Any]:
        """The range of each row."""
        first = self.arrays["first"]
        return np.repeat(np.arange(first.size), np.diff(first, append=self.rows))

    def elements(self, group: Repeated | None) -> int:
        """Of how many rows, or elements of a list, there is something."""
        return self.rows if group is None else int(self.arrays[f"lo{group.number}"][self.elements(group.outer)])

    def used(self, column: Column) -> int:
        """The bytes of a column of byte strings."""
        offsets = self.arrays.get(f"o{column.slot}")
        return 0 if offsets is None else int(offsets[self.elements(column.within)])


def as_array(buffer: Any) -> NDArray[Any]:
    """A buffer as an array that may not be written: one type, whatever was given."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise Misuse(f"columns reads bytes, not {type(buffer).__name__}") from None
    if not view.c_contiguous:
        raise Misuse("columns reads contiguous bytes; copy the others with bytes()")
    data = np.frombuffer(view.cast("B") if view.nbytes else b"", np.uint8)
    data.flags.writeable = False
    return data


class NoRoom(Exception):
    """The arrays of a level would take more memory than there is room for.

    Attributes:
        range: the number of the range at work, or of one in the middle where all were read.
        position: where its next record begins, in the buffer.
    """

    def __init__(self, state: NDArray[Any], level: Level) -> None:
        super().__init__()
        ranges = level.ranges.starts.size
        self.range = int(state[0]) if state[0] < ranges else ranges // 2  # halves: few attempts for many ranges
        self.position = int(state[1] if state[1] >= 0 else level.ranges.starts[self.range])


def run(
    made: Columnar,
    plan: Records,
    level: Level,
    limits: Limits,
    fields: tuple[str, ...] | None = None,
    allowance: Allowance | None = None,
    *,
    verdicts: bool = False,
) -> None:
    """Scans the ranges of a level.

    Args:
        fields: prefixes of the columns that are filled, or None for all.
        allowance: how much memory there is room for; what the arrays take is taken from it.
        verdicts: whether all verdicts are filled, too.

    Raises:
        NoRoom: they need more.
    """
    words = made.words(fields, verdicts)
    total = int((level.ranges.ends - level.ranges.starts).sum())
    rows = min(total // made.least + 1, total // ROW_GUESS + 1024)
    many = len(words.entries) > EAGER
    room = 0 if many else total if total <= WHOLE else total // max(sum(_is_bytes(each) for each in words.entries), 1)
    elements = min(total // ELEMENT_GUESS + 64, total)
    wide = total > LARGE
    indexes = {id(each): made.program.indexes[each.number] for each in made.program.lists}
    arrays = [
        Filled(each, wide, ROW if each_outer(each) is None else indexes[id(each_outer(each))]) for each in words.entries
    ]
    for entry in arrays:
        entry.direct = is_direct(entry.entry)
        if not (many and entry.entry.sparse):
            entry.grow(rows if entry.outer is None else elements, room)
    level.trays = [Tray(table, rows, fields) for table in made.program.messages]
    messages = op.COLUMNS + op.WIDTH_OF_COLUMN * len(arrays)
    table = np.zeros(messages + op.WIDTH_OF_MESSAGE * len(level.trays), np.int64)
    until = np.frombuffer(plan.until, np.uint8) if plan.until else np.zeros(0, np.uint8)
    ranges = level.ranges
    places = {name: np.zeros(ranges.starts.size, np.int64) for name in ("first", "failed", "stopped", "good")}
    errors = [np.empty(16, np.int64) for _ in _ERROR_ARRAYS]
    table[op.DATA], table[op.SIZE] = _address(level.buffer), level.buffer.size
    table[op.UNTIL], table[op.UNTIL_SIZE] = _address(until), until.size
    for at, array in zip(range(op.STARTS, op.RANGES), (ranges.starts, ranges.ends, ranges.counts), strict=True):
        table[at] = _address(array)
    table[op.RANGES] = ranges.starts.size
    for at, array in zip(range(op.FIRST, op.ERROR_AT), places.values(), strict=True):
        table[at] = _address(array)
    table[op.LARGE], table[op.COLUMN_COUNT], table[op.MESSAGES] = wide, len(arrays), messages
    made.described(table, words.entries)
    for number, entry in enumerate(arrays):
        entry.describe(table, op.COLUMNS + op.WIDTH_OF_COLUMN * number, indexes)
    state = np.array([0, -1, 0, 0, 0, min(limits.frame, HIGHEST), int(plan.stop)], np.int64)
    scan, registers, code = columns_cache.interpreter(), words.registers.copy(), words.code.copy()
    where, which = words.places
    while True:
        for at, array in zip(range(op.ERROR_AT, op.ERROR_ROOM), errors, strict=True):
            table[at] = _address(array)
        table[op.ERROR_ROOM] = errors[0].size
        for number, entry in enumerate(arrays):
            entry.place(table, op.COLUMNS + op.WIDTH_OF_COLUMN * number)
        table[op.ROW_ROOM] = min(entry.room for entry in arrays if entry.direct)
        code[where] = [_address(arrays[number].values) for number in which]
        for number, tray in enumerate(level.trays):
            tray.grow(rows)
            at = messages + op.WIDTH_OF_MESSAGE * number
            table[at : at + op.WIDTH_OF_MESSAGE] = tray.described()
        full = scan(code, registers, table, state)
        level.rows, level.errors = int(state[3]), int(state[4])
        counts = [level.rows if entry.outer is None else int(registers[entry.index]) for entry in arrays]
        ends = [int(table[op.COLUMNS + op.WIDTH_OF_COLUMN * number + op.NEXT]) for number in range(len(arrays))]
        used = sum(entry.used(count, end) for entry, count, end in zip(arrays, counts, ends, strict=True))
        used += 8 * 4 * level.errors
        used = COPIES * (used + sum(tray.taken(level.rows) for tray in level.trays))
        left = HIGHEST if allowance is None else allowance.room - used
        if left < 0 and (full or level.roots.size):  # of the buffer itself, what is there already may stay
            raise NoRoom(state, level)
        if not full:
            break
        if level.errors >= errors[0].size:
            errors = [_larger(array, level.errors, 4 * level.errors) for array in errors]
        more = left // (COPIES * max(sum(entry.width for entry in arrays if entry.room), 1)) + 1024
        rows = min(2 * rows + 1024, rows + more) if level.rows >= rows else rows
        for number, entry in enumerate(arrays):
            guess = rows if entry.outer is None else min(elements, 2 * elements + more)
            entry.enlarge(table, op.COLUMNS + op.WIDTH_OF_COLUMN * number, guess, more)
    level.slots = frozenset(each.slot for each in words.entries if isinstance(each, Column))
    level.arrays = {**places, **dict(zip(_ERROR_ARRAYS, errors, strict=True))}
    for number in sorted(range(len(arrays)), key=lambda at: not isinstance(arrays[at].entry, Repeated)):
        entry = arrays[number]
        count = level.elements(entry.outer)
        level.arrays.update(entry.finished(table, op.COLUMNS + op.WIDTH_OF_COLUMN * number, count))
    level.state = np.zeros(level.rows, np.uint8)
    if allowance is not None:
        allowance.room -= used


def each_outer(entry: Column | Repeated) -> Repeated | None:
    """The list that a column, or a list, is in."""
    return entry.outer if isinstance(entry, Repeated) else entry.within


def _is_bytes(entry: Column | Repeated) -> bool:
    return isinstance(entry, Column) and entry.is_bytes


class Filled:
    """The arrays of a column or list, as they are filled.

    Args:
        entry: the column, or the list.
        wide: whether offsets have 64 bits.
        index: register of the number of its rows.
    """

    def __init__(self, entry: Column | Repeated, wide: bool, index: int) -> None:
        self.entry, self.index = entry, index
        self.outer = each_outer(entry)
        self.is_list, self.is_bytes = isinstance(entry, Repeated), _is_bytes(entry)
        self.has_offsets = self.is_list or self.is_bytes
        kind = (_LONG if wide else _SHORT) if self.has_offsets else np.dtype(entry.dtype)  # type: ignore[union-attr]
        self.dtype: np.dtype[Any] = kind
        self.room = 0
        self.width = self.dtype.itemsize + int(entry.nullable)
        self.values = self.valid = self.data = _NOTHING
        self.direct = False

    def grow(self, room: int, size: int) -> None:
        """Makes room for so many rows, and bytes."""
        extra = int(self.has_offsets) + -(-op.SPARE // self.dtype.itemsize)
        values = pool.array(room + extra, self.dtype)
        values[: self.values.size] = self.values
        if self.has_offsets and not self.room:
            values[0] = 0
        self.values = values
        if self.entry.nullable:
            valid = pool.array(room, _BYTE)
            valid[: self.valid.size] = self.valid
            self.valid = valid
        self.room = room
        if self.is_bytes and size > self.data.size:
            self.more(size)

    def more(self, size: int) -> None:
        """Makes room for so many bytes."""
        data = pool.array(size, _BYTE)
        data[: self.data.size] = self.data
        self.data = data

    def describe(self, table: NDArray[Any], at: int, indexes: dict[int, int]) -> None:
        """What stays in the table."""
        table[at + op.NEXT] = 0 if self.entry.sparse else -1
        table[at + op.VALUE_WIDTH] = self.dtype.itemsize
        table[at + op.INDEX] = self.index
        table[at + op.KIND] = op.LISTS if self.is_list else op.STRINGS if self.is_bytes else op.NUMBERS
        table[at + op.ELEMENTS] = indexes[id(self.entry)] if self.is_list else 0

    def place(self, table: NDArray[Any], at: int) -> None:
        """Where the arrays are now."""
        table[at + op.VALUES] = _address(self.values) if self.room else 0
        table[at + op.VALID] = _address(self.valid) if self.entry.nullable and self.room else 0
        table[at + op.ROOM] = self.room
        table[at + op.BYTES], table[at + op.BYTES_ROOM] = _address(self.data), self.data.size

    def used(self, count: int, end: int) -> int:
        """Bytes of the arrays that are filled when there are so many rows, the last ones maybe with nothing yet."""
        rows = min(count if end < 0 else min(count, end), self.room)
        return rows * self.width + (int(self.values[rows]) if self.is_bytes and self.room else 0)

    def enlarge(self, table: NDArray[Any], at: int, guess: int, more: int) -> None:
        """Makes as much room as was wanted; that for rows grows to a guess, twice its size, or so many more."""
        wanted, size = int(table[at + op.WANTED]), int(table[at + op.BYTES_WANTED])
        if wanted > self.room or (self.direct and guess > self.room):
            self.grow(max(wanted, min(2 * self.room, self.room + more), guess), 0)
        if size > self.data.size:
            self.more(max(size, 2 * self.data.size + 4096))
        table[at + op.WANTED] = table[at + op.BYTES_WANTED] = 0

    def finished(self, table: NDArray[Any], at: int, count: int) -> dict[str, Any]:
        """The arrays by name, with as many elements as there are rows; no array of a column that is null throughout."""
        used = int(table[at + op.NEXT])
        if used == 0 and count and not self.is_list:
            return {}
        if count > self.room:
            self.grow(count, 0)
        if 0 <= used < count:
            self.valid[used:count] = 0
            self.values[used + self.has_offsets : count + self.has_offsets] = (
                self.values[used] if self.has_offsets else 0
            )
        elif count == 0 and self.has_offsets and not self.room:
            self.grow(0, 0)
        return dict(self.named(count))

    def named(self, count: int) -> Iterator[tuple[str, NDArray[Any]]]:
        """(name, array)."""
        values = _fitted(self.values, count + self.has_offsets)
        if isinstance(self.entry, Repeated):
            yield f"lo{self.entry.number}", values
            if self.entry.nullable:
                yield f"lv{self.entry.number}", _fitted(self.valid, count)
            return
        name = self.entry.slot
        if name < 0:
            yield self.entry.path, values
            return
        yield f"{'o' if self.is_bytes else 'c'}{name}", values
        if self.entry.nullable:
            yield f"v{name}", _fitted(self.valid, count)
        if self.is_bytes:
            yield f"d{name}", _fitted(self.data, int(values[count]))


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


EAGER = 96  # columns up to which all get room at once
_SHORT, _LONG, _BYTE = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)
_NOTHING: NDArray[Any] = np.zeros(0, np.uint8)
_ERROR_ARRAYS = ("error_at", "error_offset", "error_length", "error_reason")


def _larger(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    grown = np.empty(size, array.dtype)
    grown[:used] = array[:used]
    return grown


def _fitted(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The part of an array that is used; copied where it is so small that it would hold on to much memory."""
    part = array[:size]
    if SPARE * part.nbytes < array.nbytes and array.nbytes > SMALL:
        fitted = pool.array(size, array.dtype)
        fitted[:] = part
        return fitted
    return part
