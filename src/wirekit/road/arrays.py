"""Columns of tables as arrays: their codes, times and days."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.tables.columns import Table, arrow_type
from wirekit.times import DAY_US, EARLIEST_US, LATEST_US

Columns = dict[str, Any]
"""Columns by name: arrays, or functions that make them when they are requested."""


_TIME, _DAY = pa.timestamp("us", "UTC"), pa.date32()


def codes_of(column: pa.Array) -> tuple[NDArray[Any], int]:
    """A number for each value, the same for equal values and for nulls; and the upper bound of these numbers."""
    coded = column.dictionary_encode()
    missing, indices = len(coded.dictionary), coded.indices
    indices = indices.fill_null(missing) if indices.null_count else indices
    return np.asarray(indices).astype(np.int64), missing + 1


def how_many(keys: NDArray[Any], among: NDArray[Any]) -> NDArray[Any]:
    """For each key, how often it occurs in ``among``."""
    distinct, counts = np.unique(among, return_counts=True)
    if not distinct.size:
        return np.zeros(keys.size, np.int64)
    place = np.minimum(np.searchsorted(distinct, keys), distinct.size - 1)
    return np.where(distinct[place] == keys, counts[place], 0)


def joined(columns: list[pa.Array | None], sizes: list[int], kind: pa.DataType) -> pa.Array:
    """Concatenates pieces of a column; a missing piece is null."""
    arrays = [
        pa.nulls(size, kind) if column is None else column if column.type == kind else column.cast(kind)
        for column, size in zip(columns, sizes, strict=True)
    ]
    return pa.concat_arrays(arrays) if arrays else pa.nulls(0, kind)


def times(time: NDArray[Any], missing: NDArray[Any] | None = None) -> pa.Array:
    """Microseconds as timestamps; times that readers cannot represent are null."""
    out_of_range = (time < EARLIEST_US) | (time > LATEST_US)
    mask = out_of_range if missing is None else out_of_range | missing
    return pa.array(time, mask=mask).view(_TIME)


def days(time: NDArray[Any]) -> pa.Array:
    """UTC days of times in microseconds."""
    day = time // DAY_US
    out_of_range = (day < EARLIEST_US // DAY_US) | (day > LATEST_US // DAY_US)
    return pa.array(np.where(out_of_range, 0, day).astype(np.int32), mask=out_of_range).view(_DAY)


def small(numbers: NDArray[Any], missing: NDArray[Any]) -> pa.Array:
    """Numbers as a column of 32 bits; null for numbers that do not fit."""
    out_of_range = missing | (numbers < -(1 << 31)) | (numbers >= 1 << 31)
    return pa.array(np.where(out_of_range, 0, numbers).astype(np.int32), mask=out_of_range)


def batch_of(table: Table, count: int, columns: Columns) -> pa.RecordBatch:
    """Rows of a table from some of its columns; the others are null."""
    arrays = []
    nothing: dict[str, pa.Array] = {}
    for name, kind in table.types.items():
        column = columns.get(name)
        if callable(column):
            column = column()
        if column is None:
            if kind not in nothing:
                nothing[kind] = pa.nulls(count, arrow_type(kind))
            column = nothing[kind]
        elif column.type != arrow_type(kind):
            column = column.cast(arrow_type(kind))
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
