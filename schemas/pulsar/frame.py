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
    Default,
    If,
    IfMore,
    IfNext,
    IfThenElse,
    Length,
    Protobuf,
    RecordsToEnd,
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

API = "wirekit.proto.PulsarApi_pb2"
COMMAND = Protobuf(f"{API}:BaseCommand", times={"seek.message_publish_time": "ms"})
MESSAGE_METADATA = Protobuf(
    f"{API}:MessageMetadata", times={"publish_time": "ms", "event_time": "ms", "deliver_at_time": "ms"}
)
SINGLE_METADATA = Protobuf(f"{API}:SingleMessageMetadata", times={"event_time": "ms"})
BROKER_METADATA = Protobuf(f"{API}:BrokerEntryMetadata", times={"broker_timestamp": "ms"})

BATCHED_MESSAGE = Struct(
    "metadata_size" / Length(uint32, of="metadata"),
    "metadata" / SINGLE_METADATA,
    "payload" / Bytes(this.metadata.payload_size),
    name="BatchedMessage",
)

BATCH = Struct("messages" / RecordsToEnd(BATCHED_MESSAGE), name="Batch")

# Presence of num_messages_in_batch makes a batch, even when it says 1 (Commands.java, client-cpp Commands.cc).
CONTENT = Switch(
    this.metadata.num_messages_in_batch,
    {None: rest()},
    default=RecordsToEnd(BATCHED_MESSAGE, count=this.metadata.num_messages_in_batch),
)

WHOLE = Switch(
    this.metadata.compression,
    {None: CONTENT, 0: CONTENT},
    default=Compressed(rest(), this.metadata.compression, CODECS, CONTENT, size=this.metadata.uncompressed_size),
)

# A chunk is a piece of a compressed message, and cipher text hides both batch and compression.
PAYLOAD = IfThenElse(
    len_(this.metadata.encryption_keys) > 0,
    rest(),
    Switch(this.metadata.num_chunks_from_msg, {None: WHOLE, 0: WHOLE, 1: WHOLE}, default=rest()),
)

ENTRY = Struct(
    "broker_entry_metadata"
    / IfNext(
        BROKER_ENTRY_MAGIC.to_bytes(2, "big"),
        Struct(
            "magic_number" / Const(uint16, BROKER_ENTRY_MAGIC),
            "metadata_size" / Length(uint32, of="metadata"),
            "metadata" / BROKER_METADATA,
            name="BrokerEntry",
        ),
    )
    * "added by the broker when it stores the entry; its index is that of the last message of a batch",
    "magic_number"
    / Default(IfNext(CHECKSUM_MAGIC.to_bytes(2, "big"), Const(uint16, CHECKSUM_MAGIC)), CHECKSUM_MAGIC)
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
