"""Message sets of magic 0 (0.8.0) and magic 1 (0.10.0): what topics hold, on the wire and on disk.

A message set has no count and no length of its own. Each message says its magic, and nothing else does: responses of
any version may hold both, one after the other. A compressed set is the value of one message, its wrapper.

Offsets. In a log, a wrapper has the offset of its last inner message. Inner offsets of magic 0 are absolute, those of
magic 1 count from some base: absolute = wrapper - last inner + inner. Producers write what they like: Java until 0.9
inner zeros, Java 0.10 and Scala inner 0..n-1 and wrapper n-1, kafka-python and librdkafka inner 0..n-1 and wrapper 0.
``wirekit.protocols.kafka.reading`` applies the rules.

Source: specification page, "Messages sets"; Kafka 0.10.2 ``Record.java``, ``MemoryRecords.java``,
``KafkaLZ4BlockOutputStream.java``; 0.8.2 ``Message.scala``, ``ByteBufferMessageSet.scala``.
"""

from __future__ import annotations

from typing import Any

from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    Checked,
    Compressed,
    If,
    Length,
    RecordsToEnd,
    Ref,
    Sized,
    Struct,
    Symbols,
    Timestamp,
    int8,
    int32,
    int64,
    rest,
    this,
    uint8,
    uint32,
    unexplained,
)

MAGICS = SymbolTable("magic", {0: ("V0", "0.8.0 to 0.9"), 1: ("V1", "0.10.0 on: with a timestamp")})

CODECS = SymbolTable(
    "compression_codec",
    {
        0: ("NONE", "not compressed"),
        1: ("GZIP", "RFC 1952, one member"),
        2: ("SNAPPY", "snappy-java's stream, or one raw block (librdkafka)"),
        3: ("LZ4", "since 0.8.2: LZ4 frame, whose header checksum is wrong in messages of magic 0"),
    },
)

TIMESTAMP_TYPES = SymbolTable(
    "timestamp_type",
    {
        0: ("CreateTime", "set by the producer"),
        1: ("LogAppendTime", "set by the broker; that of a wrapper applies to all its inner messages"),
    },
)

COMPRESSIONS = {
    (0, 1): "gzip",
    (1, 1): "gzip",
    (0, 2): "kafka-snappy",
    (1, 2): "kafka-snappy",
    (0, 3): "kafka-lz4-v0",
    (1, 3): "kafka-lz4",
}

ATTRIBUTES = Bits(
    uint8,
    "codec" / Bit(3, CODECS) * "of the value; 0.8.0 and 0.8.1 read only two bits",
    "timestamp_type" / Bit(1, TIMESTAMP_TYPES) * "without meaning in magic 0",
    "reserved" / Bit(4),
    order="lsb",
)


CUT = rest() * "a last message that a fetch's max_bytes cut, or the overflow stub of later brokers"
UNREAD = unexplained() * "empty in a valid set: brokers drop an incomplete message"
"""After the messages of a produce request, whose last message is never cut (Kafka 0.10.2 ``Log.scala``,
``trimInvalidBytes``)."""


def _message(message_set: str, *timestamp: Any) -> Struct:
    """A message, with a time or without; a compressed value holds a set of such messages."""
    return Struct(
        "crc" / Checked(uint32, "crc32"),
        "magic" / Symbols(int8, MAGICS, closed=True),
        "attributes" / ATTRIBUTES,
        *timestamp,
        "key" / Bytes(int32, null=-1) * "null in a wrapper",
        "value"
        / Compressed(
            Bytes(int32, null=-1),
            (this.magic, this.attributes.codec),
            COMPRESSIONS,
            Ref(message_set),
            streamed=True,
        ),
        name="Message",
        doc="one message of magic 0 or 1; a compressed value opens as a message set",
    )


def _entry(message: Struct) -> Struct:
    return Struct(
        "offset" / int64,
        "message_size" / Length(int32, minimum=14),
        "message" / message,
        name="Entry",
        doc="a message with its offset, as in message sets and segments",
    )


def _message_set(entry: Struct, partial: Any = CUT) -> Struct:
    return Struct(
        "messages" / RecordsToEnd(entry, short_tail="stop"),
        "partial" / partial,
        name="MessageSet",
        doc="messages up to the end of the enclosing length",
    )


MESSAGE = _message(
    "kafka.message_set",
    "timestamp" / If(this.magic >= 1, Timestamp(int64)) * "milliseconds since the epoch; -1: none",
)
ENTRY = _entry(MESSAGE)
MESSAGE_SET = _message_set(ENTRY)
record_set = Sized(int32, MESSAGE_SET, null=-1, contain=True)
produced_set = Sized(int32, _message_set(ENTRY, UNREAD), null=-1, contain=True)

UNTIMED_ENTRY = _entry(_message("kafka.message_set.untimed"))
UNTIMED_MESSAGE_SET = _message_set(UNTIMED_ENTRY)
untimed_record_set = Sized(int32, UNTIMED_MESSAGE_SET, null=-1, contain=True)
"""Messages with magic 1 and the layout of magic 0. Brokers of 0.8 and 0.9 do not check the magic: they accept such
messages, store them, and send them to consumers."""
untimed_produced_set = Sized(int32, _message_set(UNTIMED_ENTRY, UNREAD), null=-1, contain=True)
