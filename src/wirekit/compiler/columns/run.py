"""Runs the interpreter over the ranges of a level; the arrays that it fills grow on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.columns.filled import EAGER, Filled, Place, ScanProgram
from wirekit.compiler.columns.memory import Pool, address
from wirekit.compiler.columns.plan import Ranges, Records
from wirekit.compiler.columns.programs import Columnar
from wirekit.compiler.columns.protobuf import LARGE, Tray
from wirekit.errors import Misuse
from wirekit.program.calls import Calls
from wirekit.program.columns import Column, Repeated
from wirekit.program.values import HIGHEST
from wirekit.runtime import opcodes as op
from wirekit.wire.stream import Allowance, Limits

WHOLE = 256 << 20  # for a buffer of up to this many bytes, each column of byte strings gets memory for all of it
ROW_GUESS = 64  # bytes of a record, for the first estimate of their number
ELEMENT_GUESS = 32  # bytes of an element of a list, for the first estimate of their number
COPIES = 6  # arrays that may exist for one: while it grows, while levels become one batch, while rows are removed
ROW, OPENED, REFUSED, UNTIL_DAMAGE = range(4)  # the states of rows of a level
STEP = 1024  # rows that are scanned before memory is measured again, even if little is left


@dataclass(slots=True)
class Level:
    """The result of a scan at one depth.

    Attributes:
        buffer: the bytes; from depth 1 on, all decompressed data, concatenated.
        ranges: the ranges of records in the buffer.
        begins: the start of each range in the buffer; offsets count from there.
        rows, errors: the numbers of rows and of errors.
        arrays: the filled arrays by name.
        state: for each row: ``ROW`` of the result, ``OPENED`` or ``UNTIL_DAMAGE`` if its records are the rows instead,
            ``REFUSED`` for an error.
        left: for each opened row, the bytes after the last good record in it.
        parents, roots: from depth 1 on, for each range, the row one depth up that contains it, and the offset of the
            outermost record that does.
        places: the types of the filled columns, and the names of their arrays.
        measured: the slots of columns that store only lengths.
        trays: the fields of the protobuf messages in the records.
    """

    buffer: NDArray[Any]
    ranges: Ranges
    begins: NDArray[Any]
    rows: int = 0
    errors: int = 0
    arrays: dict[str, Any] = field(default_factory=dict)
    state: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.uint8))
    left: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    parents: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    roots: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    places: list[Place] = field(default_factory=list)
    measured: frozenset[int] = frozenset()
    trays: list[Tray] = field(default_factory=list)

    @classmethod
    def of(cls, data: Any, sizes: NDArray[Any], parents: NDArray[Any]) -> Level:
        """The level of the records in byte strings, with one string per row.

        Args:
            data: the byte strings, one after the other.
            sizes: their sizes.
            parents: as for the class.
        """
        ends = np.cumsum(sizes)
        begins = ends - sizes
        ranges = Ranges(begins, ends, np.full(begins.size, -1, np.int64))
        return cls(as_array(data), ranges, begins, parents=parents)

    def ranges_of_rows(self) -> NDArray[Any]:
        """The range of each row."""
        first = self.arrays["first"]
        return np.repeat(np.arange(first.size), np.diff(first, append=self.rows))

    def elements(self, group: Repeated | None) -> int:
        """The number of rows, or elements of a list."""
        if group is None:
            return self.rows
        offsets = self.arrays.get(f"lo{group.number}")
        return 0 if offsets is None else int(offsets[self.elements(group.within)])

    def lacks(self, place: Place) -> bool:
        """Whether a column is null in every row."""
        if place.outer is None:
            return place.values not in self.arrays
        return f"lo{place.lists[-1].number}" not in self.arrays

    def bytes_used(self, column: Column) -> int:
        """The bytes of a column of byte strings."""
        offsets = self.arrays.get(f"o{column.slot}")
        return 0 if offsets is None else int(offsets[self.elements(column.within)])


def as_array(buffer: Any) -> NDArray[Any]:
    """A buffer of any type as a read-only array of bytes."""
    try:
        view = memoryview(buffer)
    except (TypeError, ValueError):  # such as an array of dates
        raise Misuse(f"columns reads bytes, not {type(buffer).__name__}") from None
    if view.format == "O":
        raise Misuse("columns reads bytes, not an array of objects; join byte strings with b''.join")
    if not view.c_contiguous:
        raise Misuse("columns reads contiguous bytes; copy the buffer with bytes()")
    data = np.frombuffer(view.cast("B") if view.nbytes else b"", np.uint8)
    data.flags.writeable = False
    return data


def byte_strings(column: pa.Array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The bytes of a binary column, the start and end of each string in them, and which strings are not null.

    Raises:
        Misuse: the column is not binary.
    """
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise Misuse(f"columns decode bytes, not {column.type}; cast it to binary")
    _, offsets, data = column.buffers()
    dtype = np.dtype(np.int64 if pa.types.is_large_binary(column.type) else np.int32)
    size = dtype.itemsize * (column.offset + len(column) + 1)
    places = np.zeros(1, dtype) if offsets is None else np.frombuffer(offsets[:size], dtype)[column.offset :]
    places = places.astype(np.int64)
    valid = np.asarray(column.is_valid())
    return as_array(data if data is not None else b""), places[:-1].copy(), places[1:].copy(), valid


class NoRoom(Exception):
    """The arrays of a level would exceed the available memory.

    Attributes:
        range: the number of the range that was being read, or of the middle one if all were read.
        position: the position of its next record in the buffer.
        rows: the number of rows before it.
    """

    def __init__(self, state: NDArray[Any], level: Level) -> None:
        super().__init__()
        ranges = level.ranges.starts.size
        self.range = int(state[0]) if state[0] < ranges else ranges // 2  # halves: few attempts
        self.rows = level.rows
        self.position = int(state[1] if state[1] >= 0 else level.ranges.starts[self.range])


def run(
    columnar: Columnar,
    plan: Records,
    level: Level,
    limits: Limits,
    fields: tuple[str, ...] | None = None,
    allowance: Allowance | None = None,
    *,
    verdicts: bool = False,
    measured: frozenset[int] = frozenset(),
    counted: int | None = None,
) -> None:
    """Scans the ranges of a level.

    Args:
        fields: prefixes of the columns that are filled, or None for all.
        allowance: the available memory; the memory of the arrays is subtracted from it.
        verdicts: whether to fill all verdicts as well.
        measured: slots of columns of byte strings of which only the lengths are stored.
        counted: the number of rows, if an earlier scan has counted them.

    Raises:
        NoRoom: the arrays need more memory.
    """
    ranges, program = level.ranges, columnar.program
    total = int((ranges.ends - ranges.starts).sum())
    wide = total > LARGE
    scan_program = columnar.scan_program(fields, verdicts, wide)
    rows = min(total // columnar.least + 1, total // ROW_GUESS + 1024)
    if counted is not None:
        rows = counted
    elif ranges.counts.size and ranges.counts.min() >= 0:
        rows = min(rows, int(ranges.counts.sum()))
    many = len(scan_program.places) > EAGER
    room = 0 if many else total if total <= WHOLE else total // max(scan_program.byte_columns, 1)
    elements = min(total // ELEMENT_GUESS + 64, total)
    pool = Pool()
    filled: dict[int, Filled] = {}
    for place in scan_program.places:
        if place.eager:
            filled[place.at] = entry = Filled(place, pool, place.slot in measured)
            entry.grow(rows if place.outer is None else elements, room)
    level.trays = [Tray(tables, rows, fields) for tables in program.messages]
    table = scan_program.table.copy()
    size = level.buffer.size
    last, tail = level.buffer[-op.LONGEST_RUN - 8 :], np.zeros(op.LONGEST_RUN + 16, np.uint8)
    tail[: last.size] = last
    table[op.TAIL] = address(tail) - (size - last.size)
    until = np.frombuffer(plan.until, np.uint8) if plan.until else _NONE
    places = np.zeros((len(_RANGE_ARRAYS), ranges.starts.size), np.int64)
    errors = np.empty((len(_ERROR_ARRAYS), 16), np.int64)
    calls = Calls(scan_program.words.functions)
    table[op.DATA : op.ERROR_AT] = [
        *(address(level.buffer), size, calls.address, address(until), until.size),
        *(address(ranges.starts), address(ranges.ends), address(ranges.counts), ranges.starts.size),
        *_addresses(places),
    ]
    state = np.array([0, -1, 0, 0, 0, min(limits.frame, HIGHEST), plan.stop, plan.except_first], np.int64)
    scan, registers, code = scan_program.scan(), scan_program.words.registers.copy(), scan_program.words.code.copy()
    where, which = scan_program.addresses
    remaining = HIGHEST if allowance is None else allowance.room
    while True:
        table[op.ERROR_AT : op.ERROR_ROOM] = _addresses(errors)
        table[op.ERROR_ROOM] = errors.shape[1]
        for entry in filled.values():
            entry.describe(table)
        code[where] = table[which]
        affordable = HIGHEST
        if allowance is not None:
            width = sum(entry.place.width for entry in filled.values()) + sum(tray.room for tray in level.trays)
            affordable = level.rows + max(remaining, 0) // (COPIES * max(width, 1)) + STEP
        for number, tray in enumerate(level.trays):
            tray.grow(min(rows, affordable), level.rows)
            at = scan_program.messages + op.WIDTH_OF_MESSAGE * number
            table[at : at + op.WIDTH_OF_MESSAGE] = tray.described()
        table[op.ROW_ROOM] = min(int(table[scan_program.rooms].min()), affordable)
        full = scan(code, registers, table, state)
        calls.raise_error()
        level.rows, level.errors = int(state[3]), int(state[4])
        used = 0 if allowance is None else COPIES * _bytes_used(filled, level, registers, table)
        remaining = HIGHEST if allowance is None else allowance.room - used
        if remaining < 0 and (full or level.roots.size):  # the arrays of a complete scan of the buffer itself may stay
            raise NoRoom(state, level)
        if not full:
            break
        if level.errors >= errors.shape[1]:
            smaller, errors = errors, np.empty((len(_ERROR_ARRAYS), 4 * level.errors), np.int64)
            errors[:, : level.errors] = smaller[:, : level.errors]
        width = sum(entry.place.width for entry in filled.values()) + sum(tray.width for tray in level.trays)
        more = remaining // (COPIES * max(width, 1)) + STEP
        rows = min(2 * rows + 1024, rows + more) if level.rows >= rows else rows
        for place in scan_program.places:
            if place.at not in filled and table[place.at + op.ROWS_NEEDED]:
                filled[place.at] = Filled(place, pool, place.slot in measured)
        for entry in filled.values():
            guess = min(rows, level.rows + more) if entry.place.outer is None else min(elements, more)
            entry.enlarge(table, guess, more)
    level.places, level.measured = scan_program.columns, measured
    level.arrays = dict(zip((*_RANGE_ARRAYS, *_ERROR_ARRAYS), (*places, *errors), strict=True))
    _finish(scan_program, filled, level, table, pool)
    level.state = np.zeros(level.rows, np.uint8)
    if allowance is not None:
        allowance.room -= used


def _bytes_used(filled: dict[int, Filled], level: Level, registers: NDArray[Any], table: NDArray[Any]) -> int:
    """The bytes of the arrays that a scan has filled."""
    used = 8 * len(_ERROR_ARRAYS) * level.errors + sum(tray.bytes_used(level.rows) for tray in level.trays)
    for at, entry in filled.items():
        count = level.rows if entry.place.outer is None else int(registers[entry.place.index])
        used += entry.bytes_used(count, int(table[at + op.NEXT]))
    return used


def _finish(program: ScanProgram, filled: dict[int, Filled], level: Level, table: NDArray[Any], pool: Pool) -> None:
    """The arrays of a level, lists first. A list without elements has no array, nor do the columns in it."""
    for place in program.lists_first:
        entry = filled.get(place.at)
        if entry is None:
            if not place.is_list or place.outer is None or f"lo{place.outer.number}" not in level.arrays:
                continue
            entry = Filled(place, pool)
        count = level.rows if place.outer is None else level.elements(place.outer)
        entry.finish(level.arrays, int(table[place.at + op.NEXT]), count)


def _addresses(table: NDArray[Any]) -> list[int]:
    """The addresses of the rows of a table."""
    begin, step = address(table), table.strides[0]
    return [begin + step * row for row in range(len(table))]


_NONE: NDArray[Any] = np.zeros(0, np.uint8)
_RANGE_ARRAYS = ("first", "failed", "stopped", "good")
_ERROR_ARRAYS = ("error_at", "error_offset", "error_length", "error_reason")
