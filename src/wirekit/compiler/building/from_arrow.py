"""Converts Arrow columns to the plain arrays that write programs read: types, offsets, validity, symbols to numbers.

Slices, and columns of 64 bits, are read in place; only arrays that have to change are copied.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.codings import Coding, CodingError
from wirekit.compiler.building.places import Rows, place
from wirekit.errors import Misuse
from wirekit.program.columns import Column
from wirekit.values import SymbolTable

NOTHING = np.zeros(0, np.uint8)
NAMED = 10  # names that an error lists
DIGITS = 20  # of the largest number of 64 bits, and of the smallest with its sign


@dataclass(frozen=True, slots=True)
class Input:
    """A column for the interpreter.

    Attributes:
        values: numbers as in registers, floats as their bits; for byte strings and lists, the offsets.
        valid: one byte per value, 0 for null; empty if there are no nulls.
        data: the bytes of byte strings.
        total: the number of bytes of ``data`` that are used.
    """

    values: NDArray[Any]
    valid: NDArray[Any]
    data: NDArray[Any] = field(default_factory=lambda: NOTHING)
    total: int = 0


ABSENT = Input(NOTHING, NOTHING)
"""A column that the batch does not have."""


def input_of(key: str, column: Column, array: pa.Array, first: Rows = 0) -> Input:
    """The arrays of a column.

    Args:
        first: the number of its first row, or those of all rows, for errors.

    Raises:
        Misuse: the column has a wrong type, or a value does not fit; the text has the row.
    """
    sound(key, column.path, array)
    if isinstance(array.type, pa.DictionaryType):
        array = array.dictionary_decode()
    valid = validity(array) if array.null_count else NOTHING
    if column.kind in ("bytes", "text"):
        offsets, data, total = _strings(key, column, array, first)
        return Input(offsets, valid, data, total)
    values = _flags(key, column, array) if column.kind == "flag" else _numbers(key, column, array, first)
    words = values.view(f"u{values.itemsize}") if values.dtype.kind == "f" else values
    return Input(words.astype(np.int64, copy=False), valid)


def sound(key: str, path: str, array: pa.Array) -> None:
    """Checks that the buffers of an array are as large as its length and offsets require, as pyarrow does not.

    Raises:
        Misuse: a buffer is too small.
    """
    try:
        array.validate(full=isinstance(array.type, pa.DictionaryType))
    except pa.ArrowInvalid as error:
        raise Misuse(f"{key}: the offsets of the column {path} point outside its data: {error}") from None


def validity(array: pa.Array) -> NDArray[Any]:
    """Whether each value is not null, one byte per value."""
    return np.asarray(array.is_valid()).view(np.uint8)


def elements(buffer: pa.Buffer | None, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """The first elements of a buffer; its size need not be a multiple of the element size."""
    return np.frombuffer(buffer or b"", np.uint8)[: count * dtype.itemsize].view(dtype)


def _strings(key: str, column: Column, array: pa.Array, first: Rows) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Offsets, data, and the number of bytes of data that are used."""
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array) + 1, np.int64), NOTHING, 0
    narrow = pa.types.is_binary(kind) or pa.types.is_string(kind)
    wide = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    other = pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_string_view(kind)
    if not (narrow or wide or other):
        raise Misuse(f"{key}: the column {column.path} is {kind}; give it as binary or string")
    if other:
        array, narrow = array.cast(pa.large_binary()), False
    if column.kind == "text" and not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        array = _cast(key, column, array, pa.string() if narrow else pa.large_string(), first)
    if column.kind == "text" and column.coding is not None:
        array, narrow = _encoded(key, column, column.coding, array, first), False
    _, ends_buffer, data_buffer = array.buffers()
    ends = elements(ends_buffer, np.dtype(np.int32 if narrow else np.int64), array.offset + len(array) + 1)
    offsets = ends[array.offset :]
    data = NOTHING if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    total = int(offsets[-1]) - int(offsets[0])
    if total < 0 or total > data.size or bool((offsets[1:] < offsets[:-1]).any()):
        raise Misuse(f"{key}: the offsets of the column {column.path} point outside its data")
    return offsets.astype(np.int64, copy=False), data, total


def _encoded(key: str, column: Column, coding: Coding, array: pa.Array, first: Rows) -> pa.Array:
    """Text as bytes in another encoding."""
    encoded: list[bytes | None] = []
    for row, value in enumerate(array.to_pylist()):
        try:
            encoded.append(None if value is None else coding.encode(value))
        except CodingError as error:
            read = "; if it was read so, its bytes are lost" if "\ufffd" in (value or "") else ""
            raise Misuse(f"{key}: {place(first, row, column.path)}: {error}{read}") from None
    return pa.array(encoded, pa.large_binary())


def _flags(key: str, column: Column, array: pa.Array) -> NDArray[Any]:
    if pa.types.is_integer(array.type) or pa.types.is_null(array.type):
        array = array.cast(pa.bool_())
    if not pa.types.is_boolean(array.type):
        raise Misuse(f"{key}: the column {column.path} is {array.type}; give it as bool")
    return np.asarray(array.fill_null(False)).view(np.uint8)


def _numbers(key: str, column: Column, array: pa.Array, first: Rows) -> NDArray[Any]:
    kind, dtype = array.type, np.dtype(column.dtype)
    if column.table is not None and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        array = _numbered(key, column, column.table, array, first)
        kind = array.type
    if column.unit is not None and pa.types.is_timestamp(kind):
        array = _counted(key, column, array, first)
        kind = array.type
    fits = pa.types.is_integer(kind) or pa.types.is_null(kind) or pa.types.is_boolean(kind)
    if not fits and not (dtype.kind == "f" and pa.types.is_floating(kind)):
        expected = "names or integers" if column.table is not None else str(dtype)
        expected = expected if column.unit is None else f"timestamp[{column.unit}, tz=UTC] or {expected}"
        raise Misuse(f"{key}: the column {column.path} is {kind}; give it as {expected}")
    expected_type = pa.from_numpy_dtype(dtype)
    if kind != expected_type:
        array = _cast(key, column, array, expected_type, first)
    return elements(array.buffers()[1], dtype, array.offset + len(array))[array.offset :]


def _counted(key: str, column: Column, array: pa.Array, first: Rows) -> pa.Array:
    """Times as the integers on the wire."""
    if array.type.tz is None:
        raise Misuse(f"{key}: the column {column.path} is {array.type}, without a time zone; give it with UTC")
    if array.type.unit != column.unit:
        array = _cast(key, column, array, pa.timestamp(column.unit, array.type.tz), first)
    return array.view(pa.from_numpy_dtype(np.dtype(column.dtype)))


def _cast(key: str, column: Column, array: pa.Array, kind: pa.DataType, first: Rows) -> pa.Array:
    cast = _fitted(array, kind)
    if cast is None:
        row = next(row for row in range(len(array)) if _fitted(array[row : row + 1], kind) is None)
        is_time = pa.types.is_timestamp(array.type)  # for which Python may have no date
        shown = f"{array.view(pa.int64())[row]} {array.type.unit}" if is_time else str(array[row])
        raise Misuse(f"{key}: {place(first, row, column.path)}: {shown} does not fit {kind}")
    return cast


def _fitted(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The values as another type; None if one does not fit."""
    try:
        cast = array.cast(kind)
    except pa.ArrowInvalid:
        return None
    is_narrowed = pa.types.is_float64(array.type) and pa.types.is_float32(kind)
    return None if is_narrowed and pc.is_inf(cast) != pc.is_inf(array) else cast


def _numbered(key: str, column: Column, table: SymbolTable, array: pa.Array, first: Rows) -> pa.Array:
    """The numbers of names, the first number of a name that several share; other text may be a number in digits."""
    number_by_name: dict[str, int] = {}
    for symbol in table:
        number_by_name.setdefault(symbol.symbol or "", int(symbol))
    kind = pa.from_numpy_dtype(np.dtype(column.dtype))
    bounds = np.iinfo(column.dtype)
    numbers: list[int] = []
    encoded = array.dictionary_encode()
    for name in encoded.dictionary.to_pylist():
        is_number = name.removeprefix("-").isdecimal()
        number = number_by_name.get(name, int(name) if is_number and len(name) <= DIGITS else None)
        if number is None or not bounds.min <= number <= bounds.max:
            text = f"{name[:DIGITS]} does not fit {kind}"
            if not is_number and name not in number_by_name:
                near = (
                    difflib.get_close_matches(name.upper(), number_by_name)
                    if len(number_by_name) > NAMED
                    else number_by_name
                )
                text = (
                    f"{name!r} is not a name of {table.name}: {', '.join(near or [*list(number_by_name)[:NAMED], '…'])}"
                )
            raise Misuse(f"{key}: {place(first, pc.index(array, name).as_py(), column.path)}: {text}")
        numbers.append(number)
    return pa.array(numbers, kind).take(encoded.indices)
