"""Kafka's record batches of magic 2, since 0.11: varints, deltas, headers, CRC-32C. NOTES.md has the sources.

The layouts that come with wirekit are those of Kafka up to 0.10, whose messages have magic 0 and 1.
"""

from __future__ import annotations

from wirekit.registry import Layout, Protocol
from wirekit.values import SymbolTable
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Checked,
    Compressed,
    Const,
    IfThenElse,
    Length,
    RecordsToEnd,
    String,
    Struct,
    Timestamp,
    int8,
    int16,
    int32,
    int64,
    rest,
    this,
    uint32,
    zigzag32,
    zigzag64,
)

CODECS = SymbolTable("codec", {0: "NONE", 1: "GZIP", 2: "SNAPPY", 3: "LZ4", 4: "ZSTD"})
TIMESTAMPS = SymbolTable("timestamp_type", {0: "CREATE_TIME", 1: "LOG_APPEND_TIME"})
OPENED = {1: "gzip", 2: "kafka-snappy", 3: "lz4-frame", 4: "zstd"}

HEADER = Struct("key" / String(zigzag32), "value" / Bytes(zigzag32, null=-1), name="Header")
RECORD = Struct(
    "length" / Length(zigzag32),
    "attributes" / int8 * "not used",
    "timestamp_delta" / zigzag64 * "to base_timestamp of the batch",
    "offset_delta" / zigzag32 * "to base_offset of the batch",
    "key" / Bytes(zigzag32, null=-1),
    "value" / Bytes(zigzag32, null=-1),
    "headers" / Array(zigzag32, HEADER),
    name="Record",
)
RECORDS = RecordsToEnd(RECORD, count=this.records_count)
BATCH = Struct(
    "base_offset" / int64,
    "batch_length" / Length(int32, frame=True),
    "partition_leader_epoch" / int32 * "set by the broker, and outside of the checksum for that",
    "magic" / Const(int8, 2),
    "crc" / Checked(uint32, "crc32c"),
    "attributes"
    / Bits(
        int16,
        "codec" / Bit(3, CODECS),
        "timestamp_type" / Bit(1, TIMESTAMPS),
        "is_transactional" / Bit(1),
        "is_control" / Bit(1),
        "has_delete_horizon" / Bit(1),
        "unused" / Bit(9),
        order="lsb",
    ),
    "last_offset_delta" / int32,
    "base_timestamp" / Timestamp(int64),
    "max_timestamp" / Timestamp(int64),
    "producer_id" / int64 * "-1 without idempotence",
    "producer_epoch" / int16,
    "base_sequence" / int32,
    "records_count" / int32,
    "records"
    / IfThenElse(
        this.attributes.codec == 0,
        RECORDS,
        Compressed(rest(), this.attributes.codec, OPENED, RecordsToEnd(RECORD)),
    ),
    name="RecordBatch",
    doc="a batch of records",
)

PROTOCOL = Protocol(
    "kafka_records",
    "Kafka's record batches of magic 2",
    {
        "batch": Layout(BATCH, "a batch", "specification page, 5.3.1 Record Batch"),
        "batches": Layout(RecordsToEnd(BATCH, short_tail="stop"), "batches one after the other, as fetched or stored"),
        "record": Layout(RECORD, "a record", "specification page, 5.3.2 Record"),
    },
)
