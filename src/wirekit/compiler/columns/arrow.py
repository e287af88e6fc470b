"""Converts the filled arrays to Arrow columns without another copy, and columns of numbers to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.compiler.columns.filled import Place
from wirekit.compiler.columns.programs import Columnar, described, in_lists, type_of
from wirekit.compiler.columns.protobuf import LARGE, bit_buffer, list_array, text_array
from wirekit.compiler.columns.protobuf import arrays as message_arrays
from wirekit.compiler.columns.run import OPENED, REFUSED, ROW, Level
from wirekit.program.columns import Column
from wirekit.program.messages import chosen

_FLAG = pa.bool_()


def numbers(column: pa.Array, missing: int = 0) -> NDArray[Any]:
    """A column's numbers, with another one for null; those of flags are 0 and 1."""
    if pa.types.is_null(column.type):
        return np.full(len(column), missing)
    if column.null_count:
        column = column.fill_null(bool(missing) if pa.types.is_boolean(column.type) else missing)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def integers(column: pa.Array, missing: int = 0) -> NDArray[Any]:
    """A column's numbers as ``numbers`` returns them, but as signed numbers of 64 bits.

    >>> integers(pa.array([1, None], pa.int8())).tolist(), integers(pa.nulls(2), -1).tolist()
    ([1, 0], [-1, -1])
    """
    return numbers(column, missing).astype(np.int64, copy=False)


def merged_levels(columnar: Columnar, levels: list[Level], wrappers: bool) -> pa.RecordBatch:
    """The rows of all levels in one batch, in the order of the input."""
    sizes = {column.slot: sum(level.bytes_used(column) for level in levels) for column in columnar.byte_columns}
    order, positions = _order(levels, wrappers)
    parts = [batch_of(columnar, level, depth, sizes=sizes) for depth, level in enumerate(levels)]
    if wrappers and columnar.program.packing is not None:
        parts = [_wrapped(part, depth, levels, positions) for depth, part in enumerate(parts)]
    return parts[0] if order is None else _rows_in_order(parts, order)


def _rows_in_order(parts: list[pa.RecordBatch], order: NDArray[Any]) -> pa.RecordBatch:
    """The rows of all parts in an order; a slice without a copy if they are consecutive rows of one part."""
    first = 0
    for part in parts:
        last = first + part.num_rows
        if order.size and first <= order[0] and order[-1] < last and bool((np.diff(order) == 1).all()):
            return part.slice(int(order[0]) - first, order.size)
        first = last
    return pa.concat_batches(parts).take(pa.array(order))


def _wrapped(part: pa.RecordBatch, depth: int, levels: list[Level], positions: list[NDArray[Any]]) -> pa.RecordBatch:
    """A level's batch with the two columns about wrappers."""
    level = levels[depth]
    left = level.left if level.left.size else np.full(level.rows, -1, np.int64)
    parents = np.zeros(level.rows, np.int64)
    if depth:
        parents = positions[depth - 1][level.parents[level.ranges_of_rows()]]
    part = part.append_column("@parent", pa.array(parents, mask=np.full(level.rows, depth == 0)))
    return part.append_column("@left", pa.array(left, mask=left < 0))


def _order(levels: list[Level], wrappers: bool) -> tuple[NDArray[Any] | None, list[NDArray[Any]]]:
    """The order of all levels' rows in the result (None: unchanged), and the position of each row, by level."""
    if len(levels) == 1 and not levels[0].state.any():
        return None, []
    included = [(level.state != REFUSED) & ((level.state == ROW) | wrappers) for level in levels]
    extents = [each.astype(np.int64) for each in included]
    for depth in range(len(levels) - 1, 0, -1):
        level = levels[depth]
        before = np.concatenate([[0], np.cumsum(extents[depth])])
        lasts = np.append(level.arrays["first"][1:], level.rows)
        extents[depth - 1][level.parents] += before[lasts] - before[level.arrays["first"]]
    positions: list[NDArray[Any]] = []
    order = np.empty(int(extents[0].sum()), np.int64)
    skipped = 0
    for depth, level in enumerate(levels):
        before = np.cumsum(extents[depth]) - extents[depth]
        if depth:
            ranges = level.ranges_of_rows()
            bases = positions[-1][level.parents] + included[depth - 1][level.parents]
            before = bases[ranges] + before - before[level.arrays["first"][ranges]]
        positions.append(before)
        rows = np.flatnonzero(included[depth])
        order[before[rows]] = skipped + rows
        skipped += level.rows
    return order, positions


def batch_of(
    columnar: Columnar,
    level: Level,
    depth: int = 1,
    fields: tuple[str, ...] | None = None,
    *,
    metadata: bool = False,
    sizes: dict[int, int] | None = None,
) -> pa.RecordBatch:
    """The requested columns of one level.

    Args:
        fields: prefixes of the columns, or None for all.
        metadata: whether the batch has ``described`` as metadata.
        sizes: the bytes of each column of byte strings in all levels that are joined; by default in this level.
    """
    if sizes is None:
        sizes = {each.slot: level.bytes_used(each) for each in columnar.byte_columns}
    code, rows, filled = columnar.program, level.rows, level.arrays
    arrays: dict[str, pa.Array] = {}
    nothing: dict[pa.DataType, pa.Array] = {}
    for place in level.places:
        column = place.entry
        assert isinstance(column, Column)
        if level.lacks(place):
            of_lengths = column.slot in level.measured
            kind = in_lists(column, pa.int64())[0] if of_lengths else columnar.fields[column.path].type
            if kind not in nothing:
                nothing[kind] = pa.nulls(rows, kind)
            arrays[column.path] = nothing[kind]
        else:
            arrays[column.path] = _array(place, level, sizes)
    offset = filled["offset"] - level.begins[level.ranges_of_rows()] if depth else filled["offset"]
    extents = {"@offset": offset, "@length": filled["length"]} | ({"@gap": filled["gap"]} if code.gaps else {})
    arrays |= {name: _numbers(extents[name], pa.int64()) for name in extents if chosen(name, fields)}
    if code.packing is not None:
        codec, path = filled["codec"], code.columns[code.packing.column].path
        good = pa.array(level.state == OPENED, mask=codec == 0) if codec.any() else pa.nulls(rows, pa.bool_())
        depths = np.full(rows, depth, np.int32) if depth else np.zeros(rows, np.int32)
        roots = _numbers(level.roots[level.ranges_of_rows()], pa.int64()) if depth else pa.nulls(rows, pa.int64())
        arrays |= {f"{path}.ok": good, "@depth": _numbers(depths, pa.int32()), "@wrapper": roots}
    large = any(size > LARGE for size in sizes.values())
    if not (level.trays or large):
        schema = _schema_of(columnar, tuple(arrays), fields, level.measured, metadata)
        return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
    tray_by_path = {code.columns[tray.tables.at].path: tray for tray in level.trays}
    columns: list[tuple[pa.Field, pa.Array]] = []
    for field in columnar.schema:
        if (tray := tray_by_path.get(field.name)) is not None:
            slot = tray.tables.at
            columns += message_arrays(tray, level.buffer, rows, _all_good(slot, code.columns[slot].nullable, level))
        if (array := arrays.get(field.name)) is not None:
            columns.append((field.with_type(array.type) if large or level.measured else field, array))
    columns = [(field, array) for field, array in columns if chosen(field.name, fields)]
    schema = pa.schema([field for field, _ in columns], described(columnar.plan.key, columnar) if metadata else None)
    return pa.RecordBatch.from_arrays([array for _, array in columns], schema=schema)


@lru_cache(1 << 10)
def _schema_of(
    columnar: Columnar, names: tuple[str, ...], fields: tuple[str, ...] | None, measured: frozenset[int], metadata: bool
) -> pa.Schema:
    """The schema of the requested ones of some columns without messages."""
    columns = [columnar.program.columns[slot] for slot in measured]
    lengths = {each.path: in_lists(each, pa.int64())[0] for each in columns}
    requested = [each for each in columnar.schema if each.name in names and chosen(each.name, fields)]
    requested = [each.with_type(lengths[each.name]) if each.name in lengths else each for each in requested]
    return pa.schema(requested, described(columnar.plan.key, columnar) if metadata else None)


def _all_good(slot: int, nullable: bool, level: Level) -> bool:
    """Whether a verdict is true or null in all rows."""
    if f"c{slot}" not in level.arrays:
        return True
    good = level.arrays[f"c{slot}"]
    return bool(good.all()) or (nullable and bool((good >= level.arrays[f"v{slot}"]).all()))


def _numbers(values: NDArray[Any], kind: pa.DataType, valid: pa.Buffer | None = None) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(values)])


def _array(place: Place, level: Level, sizes: dict[int, int]) -> pa.Array:
    """An Arrow array of the filled memory."""
    array, nullable = _values(place, level, sizes), place.entry.nullable
    for group in place.lists:
        offsets = level.arrays[f"lo{group.number}"][: level.elements(group.within) + 1]
        valid = bit_buffer(level.arrays[f"lv{group.number}"][: len(offsets) - 1]) if group.nullable else None
        array = list_array(array, offsets, valid, nullable=nullable)
        nullable = group.nullable
    return array


def _values(place: Place, level: Level, sizes: dict[int, int]) -> pa.Array:
    """The values of a column, one per row or element."""
    rows = level.rows if place.outer is None else level.elements(place.outer)
    column = place.entry
    assert isinstance(column, Column)
    arrays, values = level.arrays, level.arrays.get(place.values)
    if values is None:
        return pa.nulls(rows, type_of(column))
    valid = bit_buffer(arrays[place.valid]) if place.valid else None
    if column.kind == "number":
        return _numbers(values, type_of(column), valid)
    if column.kind == "flag":
        return pa.Array.from_buffers(_FLAG, rows, [valid, bit_buffer(values)])
    if column.slot in level.measured:
        return _numbers(np.diff(values).astype(np.int64), pa.int64(), valid)
    offsets, data = values, arrays[place.data]
    large = sizes[column.slot] > LARGE
    kind = pa.large_binary() if large else pa.binary()
    content = data[: int(offsets[rows])]
    buffers = [valid, pa.py_buffer(offsets.astype(np.int64 if large else np.int32, copy=False)), pa.py_buffer(content)]
    array = pa.Array.from_buffers(kind, rows, buffers)
    return _text(array, level, column) if column.kind == "text" else array


def _text(array: pa.Array, level: Level, column: Column) -> pa.Array:
    """Bytes as text; bytes that are not valid are replaced, and the verdict is false."""
    if column.coding is None:
        return text_array(array, _all_good(column.verdict, column.nullable, level))
    coded: Sequence[bytes | None] = array.to_pylist()
    kind = pa.large_string() if pa.types.is_large_binary(array.type) else pa.string()
    return pa.array([None if value is None else column.coding.damaged(value) for value in coded], kind)
