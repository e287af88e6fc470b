"""Converts integers that count time since the epoch to Arrow timestamps and back: the same 64 bits in another type."""

from __future__ import annotations

import pyarrow as pa

UNIT = b"wirekit.unit"
TIMES = ("timestamp", "int")


def dated_schema(schema: pa.Schema) -> pa.Schema:
    """A schema in which times are timestamps.

    >>> dated_schema(pa.schema([pa.field("time", pa.int64(), metadata={UNIT: b"ms"})])).field("time").type
    TimestampType(timestamp[ms, tz=UTC])
    """
    for index, field in enumerate(schema):
        if field.metadata is not None and UNIT in field.metadata and pa.types.is_integer(field.type):
            kind = pa.timestamp(field.metadata[UNIT].decode(), "UTC")
            schema = schema.set(index, field.with_type(kind))
    return schema


def dated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose times are timestamps. A time of 2^63 or more, without a sign on the wire, is negative there."""
    for index, field in enumerate(dated_schema(batch.schema)):
        if field.type != batch.schema.types[index]:
            batch = batch.set_column(index, field, batch.column(index).view(field.type))
    return batch


def counted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose times are integers again: Python has no date for most of them, and none with nanoseconds.

    >>> counted(pa.record_batch({"time": pa.array([5], pa.timestamp("ns", "UTC"))}))["time"].to_pylist()
    [5]
    """
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            batch = batch.set_column(index, field.with_type(pa.int64()), batch.column(index).view(pa.int64()))
    return batch
