"""Converts columns to nested values of Spark's types, a struct for each record, and back; without pyspark.

``columns`` has a column ``body.topics.name`` for the field ``name`` of each element of the list ``topics``. Here it is
that field: ``struct<body: struct<topics: list<struct<name>>>>``. Names are derived from the columns' paths:

- ``crc.ok``, the verdict on ``crc``, is ``crc_ok`` beside it;
- a column with other columns inside, such as the bytes of an ``OrBytes``, is ``<name>_bytes``;
- ``value:string``, a second column of another type at one path, is ``value_string``;
- a value without a name, such as a number of a plain list, is ``value``.

Three of the scan's own columns stay: ``@gap``, ``@index`` and ``@depth`` become ``_gap``, ``_index`` and ``_depth``. A
struct whose fields are all nullable is null where all of them are.

Spark has no unsigned numbers: they take the next wider type, those of 64 bits ``decimal(20)``. Its timestamps are in
microseconds between the years 1 and 9999: a time outside these years is null, and a time in nanoseconds is an integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.compiler.columns.column_names import checked, leaves
from wirekit.compiler.columns.meanings import TIMES
from wirekit.compiler.columns.programs import Columnar, program, type_of
from wirekit.errors import Misuse
from wirekit.program.columns import Column
from wirekit.program.messages import Tables, chosen, field_column
from wirekit.times import EARLIEST_US, LATEST_US

SCANNED = {"@gap": "_gap", "@depth": "_depth", "@index": "_index"}
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column.

    Attributes:
        path: its name.
        type: the type of a value, without the lists around it.
        nullable: whether a value may be null.
        lists: the paths of the lists around it, outer first; its own path for a list of plain values.
        unit: the unit of a time since the epoch.
    """

    path: str
    type: pa.DataType
    nullable: bool
    lists: tuple[str, ...] = ()
    unit: str | None = None


@dataclass(slots=True)
class Shape:
    """A field of the nested value: a struct or a leaf, in a number of lists.

    Attributes:
        name: the name in its struct.
        lists: the number of lists around it, counted from the struct around it.
        maybe: whether it, or an element of its lists, may be null.
        leaf: its column; None for a struct.
        fields: the fields of a struct.
        type: its Arrow type.
    """

    name: str
    lists: int = 0
    maybe: bool = True
    leaf: Leaf | None = None
    fields: list[Shape] = field(default_factory=list)
    type: pa.DataType = field(default_factory=pa.null)

    def leaves(self) -> Iterator[Leaf]:
        """All columns in the field."""
        if self.leaf is not None:
            yield self.leaf
        for each in self.fields:
            yield from each.leaves()


def constant_key(key: Any) -> None:
    """Refuses a key that is not text, such as a column.

    Raises:
        Misuse: the key is not text.
    """
    if not isinstance(key, str):
        raise Misuse(f"the key of a schema must be text, the same for all rows, not {type(key).__name__}")


def shape(
    key: str,
    *,
    fields: Sequence[str] | None = None,
    context: Mapping[str, Any] | None = None,
    unpack: bool = False,
    times: str = "timestamp",
) -> Shape:
    """The struct of a record of a schema.

    Args:
        key: the key of a schema with columns.
        fields: paths of the requested columns, each with all its inner columns.
        context: the same as for ``wirekit.columns``.
        unpack: whether nested records replace the record that holds them.
        times: ``timestamp``, or ``int`` for the numbers on the wire.

    Raises:
        Misuse: for a schema that has no columns, ``fields`` that it does not have, other ``times``.

    >>> [each.name for each in shape("kafka.message_set", fields=["offset", "message.crc"]).fields]
    ['offset', 'message']
    """
    constant_key(key)
    if times not in TIMES:
        raise Misuse(f"times must be 'timestamp' or 'int', not {times!r}")
    columnar = program(key, context)
    requested = None if fields is None else checked(key, columnar, fields)
    if fields is not None and not fields:
        raise Misuse("fields must name at least one field")
    root = _Branch("")
    for leaf in _leaves(columnar, unpack):
        if chosen(leaf.path, requested):
            root.add(leaf)
    if not root.inside:
        raise Misuse(f"{key} has no column that can be a field of a struct")
    return root.shape(times == "timestamp")


def nested(shape: Shape, batch: pa.RecordBatch) -> pa.Array:
    """The rows of a batch as structs; missing columns are null."""
    names = set(batch.schema.names)
    columns = {leaf.path: batch.column(leaf.path) for leaf in shape.leaves() if leaf.path in names}
    return _array(shape, columns, batch.num_rows)


def flat(shape: Shape, structs: pa.Array) -> dict[str, pa.Array]:
    """The columns of structs, by path, without columns of missing fields.

    Raises:
        Misuse: the structs have a field that the shape does not have, or a field of another kind.
    """
    columns: dict[str, pa.Array] = {}
    _columns(shape, structs, columns, "")
    return columns


@dataclass(slots=True)
class _Branch:
    """A part of a path, while the tree is built."""

    path: str
    inside: dict[str, _Branch] = field(default_factory=dict)
    leaves: list[Leaf] = field(default_factory=list)

    def add(self, leaf: Leaf) -> None:
        """Adds a column at its path."""
        at = self
        parts = leaf.path.split(".") if leaf.path and leaf.path not in SCANNED else [leaf.path]
        for part in parts[:-1] if len(parts) > 1 and _is_verdict(leaf) else parts:
            path = f"{at.path}.{part}" if at.path else part
            at = at.inside.setdefault(part, _Branch(path))
        at.leaves.append(leaf)

    def shape(self, dated: bool, name: str = "", outer: int = 0) -> Shape:
        """The struct of the fields of this branch."""
        struct = Shape(name)
        for part, branch in self.inside.items():
            struct.fields += branch._fields(part, dated, outer)
        names = [each.name for each in struct.fields]
        for at, each in enumerate(struct.fields):
            while names.index(each.name) < at:
                each.name = names[at] = f"{each.name}_"
        struct.maybe = all(each.maybe for each in struct.fields)
        struct.type = pa.struct([pa.field(each.name, each.type) for each in struct.fields])
        return struct

    def _fields(self, part: str, dated: bool, outer: int) -> Iterator[Shape]:
        """The column, verdict or struct that one part of a path refers to."""
        name = SCANNED.get(part) or part.replace(":", "_") or "value"
        for leaf in self.leaves:
            called = f"{name}_ok" if leaf.path != self.path else f"{name}_bytes" if self.inside else name
            kind, lists = _type(leaf, dated), len(leaf.lists) - outer
            yield Shape(called, lists, leaf.nullable, leaf, type=_listed(kind, lists))
        if self.inside:
            around = next(_leaves_inside(self)).lists
            lists = sum(self.path == each or self.path.startswith(f"{each}.") for each in around) - outer
            struct = self.shape(dated, name, outer + lists)
            struct.lists, struct.type = lists, _listed(struct.type, lists)
            yield struct


def _leaves_inside(branch: _Branch) -> Iterator[Leaf]:
    for inner in branch.inside.values():
        yield from inner.leaves
        yield from _leaves_inside(inner)


def _listed(kind: pa.DataType, lists: int) -> pa.DataType:
    """A type inside a number of lists."""
    for _ in range(lists):
        kind = pa.list_(kind)
    return kind


def _is_verdict(leaf: Leaf) -> bool:
    return leaf.type == pa.bool_() and leaf.path.rpartition(".")[2] == "ok"


def _leaves(columnar: Columnar, unpack: bool) -> Iterator[Leaf]:
    """The columns in their order: the columns of a message precede those after it."""
    read = columnar.program
    messages: dict[int, list[Tables]] = {}
    for table in read.messages:
        messages.setdefault(table.at, []).append(table)
    for column in read.columns:
        for table in messages.pop(column.slot, []):
            yield from _places(table)
        holds = unpack and read.contents is not None and column.slot == read.contents.column
        yield _column(column, holds)
        if unpack and read.packing is not None and column.slot == read.packing.column:
            yield Leaf(f"{column.path}.ok", pa.bool_(), True)
        if holds:
            yield Leaf(f"{column.path}.ok", pa.bool_(), True)
            if columnar.contents is not None:
                for leaf in _leaves(columnar.contents, False):
                    if leaf.path not in SCANNED:
                        lists = tuple(f"{column.path}.{each}" for each in leaf.lists)
                        yield Leaf(f"{column.path}.{leaf.path}", leaf.type, True, lists, leaf.unit)
    for tables in messages.values():
        for table in tables:
            yield from _places(table)
    if read.gaps:
        yield Leaf("@gap", pa.int64(), False)
    if unpack and read.packing is not None:
        yield Leaf("@depth", pa.int32(), False)
    if unpack and columnar.contents is not None:
        yield Leaf("@index", pa.int32(), True)


def _column(column: Column, holds: bool) -> Leaf:
    lists = tuple(group.path for group in reversed(column.lists))
    return Leaf(column.path, type_of(column), column.nullable or holds, lists, column.unit)


def _places(table: Tables) -> Iterator[Leaf]:
    for place in leaves(table):
        each = place.field
        assert each is not None
        lists = (table.places[place.owner].path,) if place.owner >= 0 else (place.path,) if each.repeated else ()
        yield Leaf(place.path, type_of(field_column(place)), True, lists, place.unit)


def _type(leaf: Leaf, dated: bool) -> pa.DataType:
    return pa.timestamp("us", "UTC") if dated and leaf.unit in _PER_SECOND else _SIGNED.get(leaf.type, leaf.type)


def _array(shape: Shape, columns: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """The values of a field in a number of rows, from the columns inside it."""
    inside = {leaf.path: columns[leaf.path] for leaf in shape.leaves() if leaf.path in columns}
    if not inside:
        return pa.nulls(rows, shape.type)
    if not shape.lists:
        if shape.leaf is not None:
            return _fitted(inside[shape.leaf.path], shape)
        children = [_array(each, inside, rows) for each in shape.fields]
        mask = None
        if shape.maybe and shape.name:
            there = children[0].is_valid()
            for child in children[1:]:
                there = pc.or_(there, child.is_valid())
            mask = pc.invert(there)
        return pa.StructArray.from_arrays(children, fields=list(shape.type), mask=mask)
    return _in_lists(shape, inside)


def _in_lists(shape: Shape, columns: Mapping[str, pa.Array]) -> pa.Array:
    """The lists of a field, taken from one of its columns: the lists of all of them have the same lengths."""
    lists = next(iter(columns.values()))
    inner = Shape(shape.name, shape.lists - 1, shape.maybe, shape.leaf, shape.fields, shape.type.value_type)
    values = _array(inner, {path: each.flatten() for path, each in columns.items()}, len(lists.flatten()))
    return _relisted(lists, values)


def _relisted(lists: pa.Array, values: pa.Array) -> pa.Array:
    """Other values in the same lists; ``values`` are those of ``lists.flatten()``."""
    sizes = np.asarray(lists.value_lengths().fill_null(0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, values, mask=lists.is_null() if lists.null_count else None)


def _fitted(array: pa.Array, shape: Shape) -> pa.Array:
    """A column's values as the field's type."""
    leaf = shape.leaf
    assert leaf is not None
    if pa.types.is_timestamp(shape.type) and leaf.unit is not None:
        second = _PER_SECOND[leaf.unit]
        scale = 1_000_000 // second
        array = array.cast(pa.int64(), safe=False)
        low, high = EARLIEST_US // scale, LATEST_US // scale
        in_range = pc.and_(pc.greater_equal(array, low), pc.less_equal(array, high))
        if pc.all(in_range).as_py() is False:
            array = pc.if_else(in_range, array, None)
        return array.cast(pa.timestamp(leaf.unit, "UTC")).cast(shape.type)
    return array if array.type == shape.type else array.cast(shape.type)


def _columns(shape: Shape, array: pa.Array, columns: dict[str, pa.Array], path: str) -> None:
    """Adds the columns inside a field."""
    if pa.types.is_null(array.type):  # a null literal of SQL, which has no type
        array = pa.nulls(len(array), shape.type)
    if shape.lists:
        if not pa.types.is_list(array.type) and not pa.types.is_large_list(array.type):
            raise Misuse(f"{path or 'the value'} is {array.type}, not a list")
        inner = Shape(shape.name, shape.lists - 1, shape.maybe, shape.leaf, shape.fields, shape.type.value_type)
        inside: dict[str, pa.Array] = {}
        _columns(inner, array.flatten(), inside, f"{path}[]")
        columns |= {name: _relisted(array, values) for name, values in inside.items()}
    elif shape.leaf is not None:
        if pa.types.is_decimal(array.type):
            array = array.cast(shape.leaf.type)
        columns[shape.leaf.path] = array
    else:
        if not pa.types.is_struct(array.type):
            raise Misuse(f"{path or 'the value'} is {array.type}, not a struct")
        fields = {each.name: each for each in shape.fields}
        for member, values in zip(array.type, array.flatten(), strict=True):
            inner_path = f"{path}.{member.name}" if path else member.name
            if member.name not in fields:
                raise Misuse(f"no field {inner_path}; choose from {', '.join(fields)}")
            _columns(fields[member.name], values, columns, inner_path)
