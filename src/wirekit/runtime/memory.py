"""Reads numbers and fills columns for the interpreter: nopython functions over the table of a scan.

Code, registers and table are addresses, because numba counts references to arrays. With NUMBA_BOUNDSCHECK=1 they are
arrays, and each index is compared with their size. ``opcodes`` defines their contents.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types

from wirekit.compiler.kernels.arrays import (
    address,
    inlined,
    inner,
    int32_on,
    int64_on,
    intrinsic,
    loader,
    settings,
    storer,
    uint8_on,
)
from wirekit.compiler.kernels.reads import copy
from wirekit.runtime import opcodes as op

LITTLE: Final = sys.byteorder == "little"


@intrinsic
def _called(typing: Any, function: Any, which: Any, data: Any, start: Any, end: Any, at: Any) -> Any:
    """Calls the C function at an address, see ``program.calls``."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)] * 5)
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int64(*[types.int64] * 6), lower


@inner
def _same(array: Any) -> Any:
    return array


@inner
def _element(array: Any, index: Any) -> Any:
    return array[np.uint64(index)]


@inner
def _set_element(array: Any, index: Any, value: Any) -> None:
    array[np.uint64(index)] = value


# ``handle`` converts an array to the form that the interpreter gets; ``word`` reads code; ``get`` and ``put`` access
# registers and the table.
if settings.BOUNDSCHECK:
    handle, word, get, put = _same, _element, _element, _set_element
else:
    handle, word, get, put = (
        address,
        loader(types.uint64, 64, 8, False),
        loader(types.int64, 64, 8, False),
        storer(64, 8),
    )


@inner
def call(code: Any, reg: Any, function: Any, data: Any, pc: Any) -> Any:
    """Calls a Python function with bytes; returns the next place."""
    to, which = word(code, pc + np.uint64(1)), np.int64(word(code, pc + np.uint64(2)))
    start, end = get(reg, word(code, pc + np.uint64(3))), get(reg, word(code, pc + np.uint64(4)))
    put(reg, to, _called(function, which, data, start, end, get(reg, word(code, pc + np.uint64(5)))))
    return pc + np.uint64(6)


put_value = storer(64, 1)
"""Writes a value of up to 8 bytes at an address plus an offset; see ``DIRECT``."""
put_8, put_16, put_32, put_64 = (storer(bits, 1) for bits in (8, 16, 32, 64))
DIRECT: Final = not settings.BOUNDSCHECK and LITTLE
"""Whether values may be written 8 bytes at a time, without a check of the size of their array."""
_first_is_least, _first_is_most = loader(types.uint64, 64, 1, not LITTLE), loader(types.uint64, 64, 1, LITTLE)


@inlined
def _load_fast(data: Any, size: Any, base: Any, p: Any, big: Any) -> Any:
    return _first_is_most(base, p) if big else _first_is_least(base, p)


@inner
def _load_checked(data: Any, size: Any, base: Any, p: Any, big: Any) -> Any:
    b, value = uint8_on(data, size), np.uint64(0)
    for index in range(min(size - p, 8)):
        value |= np.uint64(b[p + index]) << np.uint64(56 - 8 * index if big else 8 * index)
    return value


# The 8 bytes at ``base + p``. ``base`` is the buffer or, where less than 8 bytes may be left, a copy of its end with
# zeros after it.
load_8: Any = _load_checked if settings.BOUNDSCHECK else _load_fast


@inlined
def number(data: Any, size: Any, tail: Any, p: Any, how: Any) -> Any:
    """A number of up to 8 bytes in the buffer, extended to 64 bits."""
    shift, big = how & np.uint64(op.BIG - 1), how & np.uint64(op.BIG) != np.uint64(0)
    value = load_8(data, size, tail if p + 8 > size else data, p, big)
    if not big:
        value <<= shift
    if how & np.uint64(op.SIGNED) != np.uint64(0):
        return np.int64(value) >> np.int64(shift)
    return np.int64(value >> shift)


@inlined
def _put_fast(base: Any, size: Any, at: Any, value: Any, width: Any) -> None:
    put_value(base, at, value)


@inner
def _put_bytes(base: Any, size: Any, at: Any, value: Any, width: Any) -> None:
    array = uint8_on(base, size)
    for index in range(width):
        place = index if LITTLE else width - 1 - index
        array[at + place] = np.uint8((np.uint64(value) >> np.uint64(8 * index)) & np.uint64(0xFF))


# Writes ``width`` bytes of a value at ``at`` of an array of ``size`` bytes. The fast version writes 8 bytes; those
# after the value are overwritten later, or never read. It requires that the least significant byte comes first.
_put_value: Any = _put_fast if DIRECT else _put_bytes


def _reader(view: Any, load: Any) -> Any:
    """A function that reads an element of an array: (address, size, index)."""

    @inlined
    def fast(base: Any, size: Any, at: Any) -> Any:
        return load(base, at)

    @inner
    def checked(base: Any, size: Any, at: Any) -> Any:
        return np.int64(view(base, size)[np.uint64(at)])

    return checked if settings.BOUNDSCHECK else fast


def _writer(view: Any, kind: Any, store: Any) -> Any:
    """A function that writes an element of an array: (address, size, index, value)."""

    @inlined
    def fast(base: Any, size: Any, at: Any, value: Any) -> None:
        store(base, at, value)

    @inner
    def checked(base: Any, size: Any, at: Any, value: Any) -> None:
        view(base, size)[np.uint64(at)] = kind(value)

    return checked if settings.BOUNDSCHECK else fast


read_8 = _reader(uint8_on, loader(types.int64, 8, 1, False))
_read_32, read_64 = _reader(int32_on, loader(types.int64, 32, 4, False)), _reader(int64_on, get)
_write_8 = _writer(uint8_on, np.uint8, storer(8, 1))
_write_32, _write_64 = _writer(int32_on, np.int32, storer(32, 4)), _writer(int64_on, np.int64, put)


@inlined
def offset(t: Any, c: Any, row: Any) -> Any:
    """The start of the bytes, or elements, of a row."""
    base, size = get(t, c + op.VALUES), get(t, c + op.ROOM) + 1
    return read_64(base, size, row) if get(t, op.LARGE) else _read_32(base, size, row)


@inlined
def _put_offset(t: Any, c: Any, row: Any, value: Any) -> None:
    base, size = get(t, c + op.VALUES), get(t, c + op.ROOM) + 1
    if get(t, op.LARGE):
        _write_64(base, size, row, value)
    else:
        _write_32(base, size, row, value)


@inner
def _pad(t: Any, c: Any, row: Any) -> None:
    """Sets the rows of a column before a row to null."""
    first, room = get(t, c + op.NEXT), get(t, c + op.ROOM)
    for at in range(first, row):
        _write_8(get(t, c + op.VALID), room, at, np.int64(0))
    if get(t, c + op.KIND) == op.NUMBERS:
        width = get(t, c + op.VALUE_WIDTH)
        for at in range(first, row):
            _put_value(get(t, c + op.VALUES), room * width + op.SPARE, at * width, np.int64(0), width)
    else:
        end = offset(t, c, first)
        for at in range(first, row):
            _put_offset(t, c, at + 1, end)


@inner
def _want(t: Any, c: Any, row: Any, size: Any) -> None:
    """Stores that a column needs memory for a row, or for a number of bytes."""
    put(t, op.FULL, np.int64(1))
    if row >= get(t, c + op.ROOM):
        put(t, c + op.ROWS_NEEDED, max(get(t, c + op.ROWS_NEEDED), row + 1))
    put(t, c + op.BYTES_NEEDED, max(get(t, c + op.BYTES_NEEDED), size))


@inlined
def _begin(t: Any, c: Any, row: Any, present: Any) -> bool:
    """Sets whether a row of a column has a value; returns False if memory for the row is missing."""
    if row >= get(t, c + op.ROOM):
        _want(t, c, row, np.int64(0))
        return False
    valid = get(t, c + op.VALID)
    if valid != 0:
        first = get(t, c + op.NEXT)
        if first >= 0:
            if first < row:
                _pad(t, c, row)
            put(t, c + op.NEXT, row + 1)
        _write_8(valid, get(t, c + op.ROOM), row, present)
    return True


@inner
def emit_number(t: Any, reg: Any, column: Any, value: Any, present: Any) -> None:
    """Adds a number to a column."""
    c = np.int64(column)
    add_number(t, c, get(reg, get(t, c + op.INDEX)), value, present)


@inlined
def add_number(t: Any, c: Any, row: Any, value: Any, present: Any) -> None:
    """Adds a number to a column as the value of a row."""
    if _begin(t, c, row, present):
        width = get(t, c + op.VALUE_WIDTH)
        _put_value(get(t, c + op.VALUES), get(t, c + op.ROOM) * width + op.SPARE, row * width, value, width)


@inner
def emit_bytes(t: Any, reg: Any, column: Any, start: Any, length: Any, present: Any) -> None:
    """Adds bytes of the buffer to a column."""
    c = np.int64(column)
    add_bytes(t, c, get(reg, get(t, c + op.INDEX)), start, length, present)


@inlined
def add_bytes(t: Any, c: Any, row: Any, start: Any, length: Any, present: Any) -> None:
    """Adds bytes of the buffer to a column as the value of a row."""
    if not _begin(t, c, row, present):
        return
    at, room = offset(t, c, row), get(t, c + op.BYTES_ROOM)
    if length > room - at:
        _want(t, c, row, at + length)
        length = np.int64(0)
    _put_offset(t, c, row + 1, at + length)
    if length > 0 and get(t, c + op.BYTES) != 0:  # some columns store only lengths
        target, source = uint8_on(get(t, c + op.BYTES), room), uint8_on(get(t, op.DATA), get(t, op.SIZE))
        copy(target, at, source, start, length)


@inner
def emit_list(t: Any, reg: Any, column: Any, present: Any) -> None:
    """Adds a row to a list: the end of its elements."""
    c = np.int64(column)
    row = get(reg, get(t, c + op.INDEX))
    if _begin(t, c, row, present):
        _put_offset(t, c, row + 1, get(reg, get(t, c + op.ELEMENTS)))


@inner
def undo(t: Any, reg: Any, column: Any) -> None:
    """Removes the current row, and rows after it, from a column."""
    c = np.int64(column)
    row = min(get(reg, get(t, c + op.INDEX)), get(t, c + op.ROOM))
    first = get(t, c + op.NEXT)
    if first > row:
        put(t, c + op.NEXT, row)
    if get(t, c + op.KIND) == op.LISTS:
        at = row if first < 0 else min(first, row)
        put(reg, get(t, c + op.ELEMENTS), offset(t, c, at) if get(t, c + op.VALUES) != 0 else np.int64(0))


@inner
def undo_record(t: Any, reg: Any) -> None:
    """Removes the current record from all columns."""
    for lists in (True, False):
        for entry in range(get(t, op.COLUMN_COUNT)):
            c = op.COLUMNS + op.WIDTH_OF_COLUMN * entry
            if (get(t, c + op.KIND) == op.LISTS) == lists:
                undo(t, reg, c)
