"""Collects rows in record batches of bounded size; a value that a column cannot hold is converted, never an error.

Hostile bytes can contain any value: text with lone surrogates, ids of 64 unsigned bits, a partition of forty digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from wirekit.errors import Misuse
from wirekit.tables.columns import Table
from wirekit.times import DAY_US, EARLIEST_US, LATEST_US

BATCH_BYTES = 16 << 20
BATCH_ROWS = 4096
"""The number of rows of a table that wait for their batch; until then, a row of 30 values takes 2 to 3 KB."""
Batch = tuple[str, pa.RecordBatch]
"""The name of a table, and rows of it."""
_ROW_COST = 128  # bytes that the fixed columns of a row take, about


class Rows:
    """Collects the rows of one table.

    Args:
        schema: the schema of the table.
        batch_bytes, batch_rows: size of a full batch; a single row may be larger.
    """

    def __init__(self, schema: pa.Schema, *, batch_bytes: int = BATCH_BYTES, batch_rows: int = BATCH_ROWS) -> None:
        self.schema = schema
        self._batch_bytes = batch_bytes
        self._batch_rows = batch_rows
        self._names = schema.names
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, row: Mapping[str, Any] | tuple[Any, ...], size: int = 0) -> pa.RecordBatch | None:
        """Adds a row whose long values have ``size`` bytes; returns a batch when one is full.

        Columns that the mapping lacks are null. Keys that are not a column of the table are ignored.
        """
        self._rows.append(row if isinstance(row, tuple) else tuple(map(row.get, self._names)))
        self._bytes += size + _ROW_COST
        if self._bytes >= self._batch_bytes or len(self._rows) >= self._batch_rows:
            return self.flush()
        return None

    def flush(self) -> pa.RecordBatch | None:
        """The remaining rows, None if there are none."""
        if not self._rows:
            return None
        columns = zip(*self._rows, strict=True)
        arrays = [self._array(values, field) for values, field in zip(columns, self.schema, strict=True)]
        self._rows, self._bytes = [], 0
        return pa.record_batch(arrays, schema=self.schema)

    @staticmethod
    def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
        try:
            return array(values, field.type)
        except pa.ArrowTypeError as error:  # of a user's own dialogue
            raise Misuse(f"the column {field.name} of a table has values of type {field.type}: {error}") from error


class TableRows:
    """Collects the rows of several tables; those of other tables are dropped.

    Args:
        tables: the tables by name, with the columns to collect.
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._rows = {name: Rows(table.schema) for name, table in tables.items()}
        self._full: list[Batch] = []

    def __contains__(self, table: str) -> bool:
        return table in self._rows

    def add(self, table: str, row: Mapping[str, Any], size: int = 0) -> None:
        """Adds a row, as to ``Rows``."""
        rows = self._rows.get(table)
        batch = None if rows is None else rows.add(row, size)
        if batch is not None:
            self._full.append((table, batch))

    def full(self) -> list[Batch]:
        """The batches that are full, each once."""
        full, self._full = self._full, []
        return full

    def flush(self, *tables: str) -> Iterator[Batch]:
        """The rows that are in no full batch; by default of all tables."""
        for name in tables or self._rows:
            batch = self._rows[name].flush()
            if batch is not None:
                yield name, batch


def array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Values as an array of a column's type; times outside the years 1 to 9999 are null."""
    unit = next((unit for name, unit in _UNITS.items() if type_ == name), None)
    if unit is not None:
        low, high = EARLIEST_US // unit, LATEST_US // unit
        values = [value if value is not None and low <= value <= high else None for value in values]
    try:
        return pa.array(values, type_)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return pa.array([_fitting(value, type_) for value in values], type_)


_UNITS = {pa.timestamp("us", "UTC"): 1, pa.timestamp("ms", "UTC"): 1000, pa.date32(): DAY_US}
"""{type: microseconds of its unit}."""


def _fitting(value: Any, type_: pa.DataType) -> Any:
    """A value that the column can hold: bad text escaped, unsigned 64-bit numbers as signed, other numbers null."""
    if isinstance(value, list):
        return [_fitting(item, type_.value_type) for item in value]
    if isinstance(value, dict):
        return {field.name: _fitting(value.get(field.name), field.type) for field in type_}
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if not isinstance(value, int):
        return value
    half = 1 << (type_.bit_width - 1)
    if -half <= value < half:
        return value
    return value - 2 * half if type_.bit_width == 64 and half <= value < 2 * half else None
