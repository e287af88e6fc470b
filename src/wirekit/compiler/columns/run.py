"""A kernel is run over the ranges of a level; the arrays that it fills grow as they are filled."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns import memory as pool
from wirekit.compiler.columns.kernel import FULL_LIST, SCALARS, STATE, Column, Kernel, Repeated, by_arrays
from wirekit.compiler.columns.plan import Ranges, Records
from wirekit.compiler.columns.programs import Program
from wirekit.compiler.columns.protobuf import Tray
from wirekit.errors import Misuse
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
        rows, errors: how many the kernel found.
        arrays: by name, as the kernel filled them.
        state: what became of each row: 0 a row of the result, 1 opened, 2 an error.
        left: of each opened row, the bytes behind the last good record in it.
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
        return int(self.arrays[f"o{column.slot}"][self.elements(column.within)])


def as_array(buffer: Any) -> NDArray[Any]:
    """A buffer as an array that may not be written: one type for the kernels, whatever was given."""
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
    made: Program,
    plan: Records,
    level: Level,
    limits: Limits,
    fields: tuple[str, ...] | None = None,
    allowance: Allowance | None = None,
) -> None:
    """Has the kernel scan the ranges of a level, and its arrays grow as they are filled.

    Args:
        allowance: how much memory there is room for; what the arrays take is taken from it.

    Raises:
        NoRoom: they need more.
    """
    total = int((level.ranges.ends - level.ranges.starts).sum())
    ranges = level.ranges.starts.size
    bound = total // made.least + 1
    rows = min(bound, total // ROW_GUESS + 1024)
    byte_columns = sum(column.kind in ("bytes", "text") for column in made.kernel.columns)
    room = total if total <= WHOLE else total // max(byte_columns, 1)
    arrays = level.arrays
    arrays["b"] = level.buffer
    arrays["state"] = np.array([0, -1, 0, 0, 0], np.int64)  # see columns.kernel
    arrays["until"] = np.frombuffer(plan.until, np.uint8) if plan.until else np.zeros(0, np.uint8)
    arrays["until"].flags.writeable = False
    arrays.update(starts=level.ranges.starts, ends=level.ranges.ends, counts=level.ranges.counts)
    for name in ("first", "failed", "stopped", "good"):
        arrays[name] = np.zeros(ranges, np.int64)
    for name in _ERROR_ARRAYS:
        arrays[name] = np.empty(16, np.int64)
    kinds = made.types
    wide = total > LARGE
    inside = made.elements
    if not wide:
        kinds, inside = _shortened(kinds), tuple(map(_shortened, inside))
    for name, dtype in kinds.items():
        arrays[name] = pool.array(rows + _extra(name), dtype)
    if inside:
        arrays["room"] = np.full(len(inside), min(total // ELEMENT_GUESS + 64, total), np.int64)
        for size, each in zip(arrays["room"], inside, strict=True):
            arrays.update({name: pool.array(size + _extra(name), dtype) for name, dtype in each.items()})
        for group in made.kernel.lists:
            arrays[f"lo{group.number}"][0] = 0
    for column in made.kernel.columns:
        if column.kind in ("bytes", "text"):
            arrays[f"d{column.slot}"] = pool.array(room, _BYTE)
            arrays[f"o{column.slot}"][0] = 0
    level.trays = [Tray(table, rows, fields) for table in made.kernel.messages]
    name = "scan" if by_arrays(made.kernel) else "scan_table"
    compiled = columns_cache.function(made.kernel.source, "int64" if wide else "int32", name)
    scalars = (min(limits.frame, HIGHEST), int(plan.stop))
    while True:
        for number, tray in enumerate(level.trays):
            tray.grow(rows)
            arrays.update({f"{name}{number}": array for name, array in tray.given().items()})
        full = _called(made.kernel, compiled, arrays, scalars)
        level.rows, level.errors = int(arrays["state"][3]), int(arrays["state"][4])
        taken = COPIES * _taken(made, level, inside)
        room = HIGHEST if allowance is None else allowance.room - taken
        if room < 0 and (full or level.roots.size):  # of the buffer itself, what is there already may stay
            raise NoRoom(arrays["state"], level)
        if not full:
            break
        if full == 2:  # byte strings
            for column in made.kernel.columns:
                if column.kind in ("bytes", "text"):
                    used = level.used(column)
                    size = min(2 * arrays[f"d{column.slot}"].size + 4096, total)
                    arrays[f"d{column.slot}"] = _larger(arrays[f"d{column.slot}"], used, size)
            continue
        if full >= FULL_LIST:
            number = full - FULL_LIST
            used, size = level.elements(made.kernel.lists[number]), 2 * int(arrays["room"][number]) + 1024
            size = min(size, _fitting(int(arrays["room"][number]), room, inside[number]))
            arrays["room"][number] = size
            for name in inside[number]:
                arrays[name] = _larger(arrays[name], used, size, _extra(name))
            continue
        if level.rows >= rows:
            rows = min(2 * rows + 1024, _fitting(rows, room, kinds))
            for name in kinds:
                arrays[name] = _larger(arrays[name], level.rows, rows, _extra(name))
        if level.errors >= arrays["error_at"].size:
            for name in _ERROR_ARRAYS:
                arrays[name] = _larger(arrays[name], level.errors, 4 * level.errors)
    for name in kinds:
        arrays[name] = _fitted(arrays[name], level.rows + _extra(name))
    for group, names in zip(made.kernel.lists, inside, strict=True):
        for name in names:
            arrays[name] = _fitted(arrays[name], level.elements(group) + _extra(name))
    for column in made.kernel.columns:
        if column.kind in ("bytes", "text"):
            arrays[f"d{column.slot}"] = _fitted(arrays[f"d{column.slot}"], level.used(column))
    level.state = np.zeros(level.rows, np.uint8)
    if allowance is not None:
        allowance.room -= taken


def _taken(made: Program, level: Level, inside: tuple[dict[str, np.dtype[Any]], ...]) -> int:
    """Bytes of the arrays of a level that are filled."""
    found = level.rows * sum(dtype.itemsize for dtype in made.types.values()) + 8 * 4 * level.errors
    for group, types in zip(made.kernel.lists, inside, strict=True):
        found += level.elements(group) * sum(dtype.itemsize for dtype in types.values())
    found += sum(level.used(column) for column in made.kernel.columns if column.kind in ("bytes", "text"))
    return found + sum(tray.taken(level.rows) for tray in level.trays)


def _fitting(size: int, room: int, types: dict[str, np.dtype[Any]]) -> int:
    """To how many elements arrays may grow at the most, a few more than there is room for."""
    return size + 1024 + room // (COPIES * max(sum(dtype.itemsize for dtype in types.values()), 1))


def _shortened(types: dict[str, np.dtype[Any]]) -> dict[str, np.dtype[Any]]:
    """The types of arrays where offsets of 32 bits do."""
    return {name: _SHORT if _extra(name) else dtype for name, dtype in types.items()}


def _called(made: Kernel, compiled: Any, arrays: dict[str, NDArray[Any]], scalars: tuple[int, int]) -> int:
    """Calls a kernel; gives what it gives."""
    if by_arrays(made):
        given = dict(zip(("frame", "stop"), map(np.int64, scalars), strict=True)) | arrays
        return int(compiled(*(given[name] for name in made.arguments)))
    named = (arrays[name] for name in made.arguments if name not in SCALARS)
    table = np.array([(each.__array_interface__["data"][0], each.size) for each in named], np.int64).ravel()
    state = np.zeros(STATE, np.int64)
    state[:5], state[5:7] = arrays["state"], scalars
    full = compiled(table, state)
    arrays["state"][:] = state[:5]
    return int(full)


_SHORT = np.dtype(np.int32)
_BYTE = np.dtype(np.uint8)
_ERROR_ARRAYS = ("error_at", "error_offset", "error_length", "error_reason")


@cache
def _extra(name: str) -> int:
    """How many elements more than rows an array has: offsets have the end of the last row, too."""
    return int(name.startswith("lo") or (name[0] == "o" and name[1:].isdigit()))


def _larger(array: NDArray[Any], used: int, size: int, extra: int = 0) -> NDArray[Any]:
    grown = pool.array(size + extra, array.dtype)
    grown[: used + extra] = array[: used + extra]
    return grown


def _fitted(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The part of an array that is used; copied where it is so small that it would hold on to much memory."""
    part = array[:size]
    if SPARE * part.nbytes < array.nbytes and array.nbytes > SMALL:
        fitted = pool.array(size, array.dtype)
        fitted[:] = part
        return fitted
    return part
