"""Converts integers to the types of their meaning, and back.

Times since the epoch become timestamps: the same 64 bits in another type. Numbers with symbols become dictionary arrays
of the symbols.
"""

from __future__ import annotations

import json

import pyarrow as pa

SYMBOLS = b"wirekit.symbols"
UNIT = b"wirekit.unit"
TIMES = ("timestamp", "int")


def dated_schema(schema: pa.Schema) -> pa.Schema:
    """A schema in which times are timestamps.

    >>> dated_schema(pa.schema([pa.field("time", pa.int64(), metadata={UNIT: b"ms"})])).field("time").type
    TimestampType(timestamp[ms, tz=UTC])
    """
    fields = list(schema)
    for index, field in enumerate(fields):
        if pa.types.is_integer(field.type) and UNIT in (field.metadata or {}):
            fields[index] = field.with_type(pa.timestamp(field.metadata[UNIT].decode(), "UTC"))
    return pa.schema(fields, schema.metadata)


def dated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose times are timestamps. A time of 2^63 or more, without a sign on the wire, is negative there."""
    schema = dated_schema(batch.schema)
    if schema.types == batch.schema.types:
        return batch
    columns = [
        column if column.type == kind else column.view(kind)
        for column, kind in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def counted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose times are integers again: Python has no date for most of them, and none with nanoseconds.

    >>> counted(pa.record_batch({"time": pa.array([5], pa.timestamp("ns", "UTC"))}))["time"].to_pylist()
    [5]
    """
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            batch = batch.set_column(index, field.with_type(pa.int64()), batch.column(index).view(pa.int64()))
    return batch


def with_symbols(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose numbers with names are names: ``dictionary<int32, string>``; a number without one is its digits.

    Where two numbers share a name, only the first has it, so that ``build_columns`` gives the number back.

    >>> import wirekit
    >>> message = {"offset": 5, "message": {"magic": 0, "attributes": 9, "value": "6869"}}
    >>> batch = wirekit.columns("kafka.message_set", wirekit.encode("kafka.message_set", {"messages": [message]}))
    >>> with_symbols(batch)["message.attributes.timestamp_type"].to_pylist()
    ['LogAppendTime']
    """
    for index, field in enumerate(batch.schema):
        if field.metadata is None or SYMBOLS not in field.metadata or not pa.types.is_integer(field.type):
            continue
        names: dict[str, str] = {}
        for number, name in json.loads(field.metadata[SYMBOLS]).items():
            if name not in names.values():
                names[number] = name
        encoded = batch.column(index).dictionary_encode()
        words = [names.get(str(number), str(number)) for number in encoded.dictionary.to_pylist()]
        column = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(words, pa.string()))
        batch = batch.set_column(index, field.with_type(column.type), column)
    return batch
