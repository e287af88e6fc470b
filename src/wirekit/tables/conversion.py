"""Conversion of values to the types of columns, with the rules of ``records`` and ``Rows``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.tables.columns import BIGINT, BINARY, BOOLEAN, INT, MICROS, MILLIS, TEXT, arrow_type
from wirekit.tables.scopes import Unfit, Values
from wirekit.times import EARLIEST_US, LATEST_US
from wirekit.values import whole_number

NUMBERS = (INT, BIGINT, MILLIS, MICROS)
_HALF = 1 << 63
_FEW = 32  # values that are converted one by one; of more, each distinct one


def fitted(values: Values, kind: str) -> pa.Array:
    """Values converted to a column's type.

    Raises:
        Unfit: the values have a type that columns do not convert.
    """
    array, type_ = values.array, arrow_type(kind)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), type_)
    if array.type == type_:
        return array
    if kind == TEXT:
        return _text(array, values.symbols)
    if kind in NUMBERS:
        return _number(array, kind)
    if kind == BOOLEAN and pa.types.is_integer(array.type):
        return pc.not_equal(array, 0)
    if kind == BINARY and pa.types.is_string(array.type):
        return array.cast(type_)
    if pa.types.is_list(type_) and pa.types.is_list(array.type):
        return array.cast(type_)
    if kind == "list<string>":
        texts = _text(array, values.symbols)
        valid = np.asarray(texts.is_valid())
        offsets = np.concatenate([[0], np.cumsum(valid)]).astype(np.int32)
        begins = pa.array(offsets, mask=np.append(~valid, False))
        return pa.ListArray.from_arrays(begins, texts.drop_null())
    raise Unfit(f"{array.type} as {kind}")


def _text(array: pa.Array, symbols: Mapping[int, str]) -> pa.Array:
    if pa.types.is_large_string(array.type):
        return array.cast(pa.string())
    if pa.types.is_string(array.type):
        return array
    if pa.types.is_boolean(array.type) or not (pa.types.is_integer(array.type) or pa.types.is_binary(array.type)):
        raise Unfit(f"{array.type} as text")
    if len(array) <= _FEW:
        return pa.array([_as_text(each, symbols) for each in array.to_pylist()], pa.string())
    coded = array.dictionary_encode()
    texts = [_as_text(each, symbols) for each in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _as_text(value: Any, symbols: Mapping[int, str]) -> str | None:
    if value is None:
        return None
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else symbols.get(value) or str(value)


def _number(array: pa.Array, kind: str) -> pa.Array:
    type_ = arrow_type(kind)
    if pa.types.is_string(array.type):
        coded = array.dictionary_encode()
        numbers = [_as_number(each) for each in coded.dictionary.to_pylist()]
        array = pa.array(numbers, pa.int64()).take(coded.indices)
    elif pa.types.is_boolean(array.type):
        array = array.cast(pa.int64())
    elif not pa.types.is_integer(array.type):
        raise Unfit(f"{array.type} as {kind}")
    if kind in (MILLIS, MICROS):
        unit = 1000 if kind == MILLIS else 1
        array = _between(array, EARLIEST_US // unit, LATEST_US // unit)
    elif kind == INT:
        array = _between(array, -(1 << 31), (1 << 31) - 1)
    elif array.type == pa.uint64():
        return array.view(pa.int64())
    return array.cast(pa.int64()).cast(type_)


def _between(array: pa.Array, low: int, high: int) -> pa.Array:
    """Numbers within a range; null for others."""
    if array.type.bit_width < 64 and array.type.bit_width < high.bit_length() + pa.types.is_signed_integer(array.type):
        return array
    present = np.asarray(array.drop_null() if array.null_count else array)
    if not present.size or (low <= int(present.min()) and int(present.max()) <= high):
        return array
    beyond = pc.greater(array, pa.scalar(high, array.type))
    if pa.types.is_signed_integer(array.type):
        beyond = pc.or_(beyond, pc.less(array, pa.scalar(low, array.type)))
    return pc.if_else(beyond, pa.scalar(None, array.type), array)


def _as_number(text: str | None) -> int | None:
    number = None if text is None else whole_number(text)
    return number - 2 * _HALF if number is not None and number >= _HALF else number
