"""Pulsar frames: simple and payload commands, entries, batches.

Source: binary protocol specification, "Framing" and "Batched messages"; apache/pulsar Commands.java for the order of
the optional parts, PulsarDecoder.java for which commands carry a payload.
"""

from __future__ import annotations

from wirekit.wire import (
    Bytes,
    Checked,
    Compressed,
    Const,
    CountOf,
    Default,
    Encrypted,
    If,
    IfMore,
    IfNext,
    IfThenElse,
    Length,
    OrBytes,
    Protobuf,
    RecordsToEnd,
    SizeOf,
    Struct,
    Switch,
    len_,
    rest,
    this,
    uint16,
    uint32,
)

CHECKSUM_MAGIC = 0x0E01
BROKER_ENTRY_MAGIC = 0x0E02

SEND = 6
MESSAGE = 9

CODECS = {1: "lz4-block", 2: "zlib", 3: "zstd", 4: "snappy"}

API, MARKERS = "wirekit.proto.PulsarApi_pb2", "wirekit.proto.PulsarMarkers_pb2"

# A type's number is the field number of its sub-message, which PulsarDecoder.java requires.
COMMAND = Protobuf(f"{API}:BaseCommand", selector="type", times={"seek.message_publish_time": "ms"})
MESSAGE_METADATA = Protobuf(
    f"{API}:MessageMetadata",
    derived={"num_messages_in_batch": CountOf("payload"), "uncompressed_size": SizeOf("payload")},
    times={"publish_time": "ms", "event_time": "ms", "deliver_at_time": "ms"},
)
SINGLE_METADATA = Protobuf(
    f"{API}:SingleMessageMetadata", derived={"payload_size": SizeOf("payload")}, times={"event_time": "ms"}
)
BROKER_METADATA = Protobuf(f"{API}:BrokerEntryMetadata", times={"broker_timestamp": "ms"})

BATCHED_MESSAGE = Struct(
    "metadata_size" / Length(uint32, of="metadata"),
    "metadata" / SINGLE_METADATA,
    "payload" / Bytes(this.metadata.payload_size),
    name="BatchedMessage",
)

BATCH = Struct("messages" / RecordsToEnd(BATCHED_MESSAGE), name="Batch")

# Presence of num_messages_in_batch makes a batch, even when it says 1 (Commands.java, client-cpp Commands.cc).
# Of a compacted batch only some messages may be left, and the number is that of before (PIP-429).
CONTENT = Switch(
    this.metadata.num_messages_in_batch,
    {None: rest()},
    default=IfThenElse(
        len_(this.metadata.compacted_batch_indexes) > 0,
        RecordsToEnd(BATCHED_MESSAGE),
        RecordsToEnd(BATCHED_MESSAGE, count=this.metadata.num_messages_in_batch),
    ),
)

WHOLE = Switch(
    this.metadata.compression,
    {None: CONTENT, 0: CONTENT},
    default=Compressed(rest(), this.metadata.compression, CODECS, CONTENT, size=this.metadata.uncompressed_size),
)

# A chunk is a piece of a compressed message, and cipher text hides both batch and compression.
PLAIN = Switch(this.metadata.num_chunks_from_msg, {None: WHOLE, 0: WHOLE, 1: WHOLE}, default=rest(part=True))

# Brokers write markers themselves: never compressed, encrypted or batched (Markers.java). Those of transactions are
# empty.
MARKER = {
    10: Protobuf(f"{MARKERS}:ReplicatedSubscriptionsSnapshotRequest"),
    11: Protobuf(f"{MARKERS}:ReplicatedSubscriptionsSnapshotResponse"),
    12: Protobuf(f"{MARKERS}:ReplicatedSubscriptionsSnapshot"),
    13: Protobuf(f"{MARKERS}:ReplicatedSubscriptionsUpdate"),
}

PAYLOAD = Switch(
    this.metadata.marker_type,
    {number: OrBytes(marker) for number, marker in MARKER.items()},
    default=IfThenElse(len_(this.metadata.encryption_keys) > 0, Encrypted(PLAIN, about=this.metadata), PLAIN),
)

ENTRY = Struct(
    "broker_entry_metadata"
    / IfNext(
        BROKER_ENTRY_MAGIC.to_bytes(2, "big"),
        Struct(
            "magic_number" / Const(uint16, BROKER_ENTRY_MAGIC, hexadecimal=True),
            "metadata_size" / Length(uint32, of="metadata"),
            "metadata" / BROKER_METADATA,
            name="BrokerEntry",
        ),
    )
    * "added by the broker when it stores the entry; its index is that of the last message of a batch",
    "magic_number"
    / Default(
        IfNext(CHECKSUM_MAGIC.to_bytes(2, "big"), Const(uint16, CHECKSUM_MAGIC, hexadecimal=True)), CHECKSUM_MAGIC
    )
    * "0x0e01 when a checksum follows; brokers of protocol version < 6 get none",
    "checksum"
    / If(this.magic_number == CHECKSUM_MAGIC, Checked(uint32, "crc32c", ("metadata_size", "payload")))
    * "CRC-32C of metadata size, metadata and payload",
    "metadata_size" / Length(uint32, of="metadata"),
    "metadata" / MESSAGE_METADATA,
    "payload" / PAYLOAD,
    name="Entry",
)

FRAME = Struct(
    "total_size" / Length(uint32, frame=True, minimum=4) * "bytes after this field",
    "command_size" / Length(uint32, of="command"),
    "command" / COMMAND,
    "entry" / If((this.command.type == SEND) | (this.command.type == MESSAGE), IfMore(ENTRY)),
    name="Frame",
)
