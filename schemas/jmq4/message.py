"""The message record, the body of a batch, and the parts inside them.

Sources: document, MESSAGE and BATCH_MESSAGE; JoyQueue serializer/Serializer.java:56-73, 118-234, 266-318 and
serializer/BatchMessageSerializer.java:66-133. A record looks the same in PRODUCE_MESSAGE, in the FETCH answers, and in
the broker's store.

The length of a record is verified and not relied on, because JoyQueue's reader ignores it. A message body stays as it
is on the wire; ``opened_body`` makes one that is decompressed and split, for the layouts whose names end in
``_opened``. ``dialogue`` does the same to all that it follows.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from wirekit.schemas.jmq4.codes import (
    ADDRESS_TYPES,
    COMPRESSIONS,
    DOCUMENTED_ADDRESS_TYPES,
    DOCUMENTED_COMPRESSIONS,
    SOURCES,
)
from wirekit.schemas.jmq4.types import array, nullable_bytes, string1, string2
from wirekit.values import SymbolTable
from wirekit.wire import (
    Address,
    Bit,
    Bits,
    Bytes,
    Checked,
    Compressed,
    Const,
    Default,
    IfThenElse,
    Length,
    Node,
    RecordsToEnd,
    Refused,
    String,
    Struct,
    Timestamp,
    int8,
    int16,
    int32,
    int64,
    rest,
    this,
    uint16,
    uint16le,
)

MESSAGE_MAGIC = 0x1234
JOYQUEUE_SOURCE = 3
SNAPPY = 3
"""The highest number of a compression."""


def system_code(compressions: SymbolTable, addresses: SymbolTable) -> Bits:
    """The 16 bits of systemCode; the document counts them from the least significant one."""
    return Bits(
        uint16,
        "compressed" / Bit(1) * "whether the body is compressed",
        "ordered" / Bit(1) * "whether the message is sequential",
        "source" / Bit(2, SOURCES),
        "compression" / Bit(3, compressions) * "in a message of version 0 only the lower two bits count",
        "address_type" / Bit(1, addresses) * "in a message of version 0 always IPv4",
        "message_version" / Bit(4) * "1",
        "batch" / Bit(1) * "whether the body is a batch; JoyQueue's reader then requires that the reserved bits are 0",
        "reserved" / Bit(3),
        order="lsb",
    )


SYSTEM_CODE = system_code(COMPRESSIONS, ADDRESS_TYPES)
DOCUMENTED_SYSTEM_CODE = system_code(DOCUMENTED_COMPRESSIONS, DOCUMENTED_ADDRESS_TYPES)

PLACE = (
    "length" / Length(int32, add=4, bounds=False) * "bytes of the whole record, this field included",
    "partition" / int16 * "negative: the broker chooses; 32767: the retry partition",
    "index" / Default(int64, 0) * "0 from clients, set by the store",
    "term" / Default(int32, 0) * "term of the leader; 0 from clients, set by the store",
)


def content(short: String, body: Node) -> tuple[Any, ...]:
    """The fields from sendTime on.

    Args:
        short: the type of businessId and app.
        body: the body's.
    """
    return (
        "send_time" / Timestamp(int64) * "milliseconds since the epoch",
        "store_time" / Default(int32, 0) * "milliseconds from send_time to the time of storing; 0 from clients",
        "body_crc" / Checked(int64, "crc32", covers="body", content=True) * "CRC-32 of the body as stored here",
        "flag" / Default(int16, 0) * "of a batch: the number of messages; JoyQueue reads that many",
        "body" / body * "compressed according to system_code; of a batch: its messages",
        "business_id" / short,
        "attributes" / string2 * "Java properties text: key=value, separated by newlines",
        "extension" / nullable_bytes,
        "app" / short,
    )


ADDRESS = (
    "port" / Default(uint16le, 0) * "little-endian, unlike all other fields",
    "address" / Address("ipv4") * "IPv4",
)
CLIENT_ADDRESS = Struct(*ADDRESS, name="ClientAddress", doc="Port and IPv4 address (JoyQueue IpUtil.java:349-378).")
CLIENT_BYTES = Default(Bytes(16), bytes(16))
CLIENT_IP = IfThenElse(
    (this.system_code.address_type == 1) | (this.system_code.message_version == 0),
    Default(
        Struct(*ADDRESS, "unused" / Default(Bytes(10), bytes(10)) * "zeros", name="ClientIp"),
        {"port": 0, "address": bytes(4)},
    ),
    CLIENT_BYTES,
)
"""Port and address if system_code says IPv4, which messages of version 0 always are; else 16 bytes: an IPv6 address, or
the text of an MQTT client."""


IS_COMPRESSION = (this.system_code.compression > 0) & (
    (this.system_code.compression != SNAPPY + 1) | (this.system_code.message_version != 0)
)
"""Whether the number names a compression. Of messages of version 0, two of its bits count, so that 4 is none."""


def is_batch(of_source: Any) -> Any:
    """An expression for messages whose body is a batch; for ``of_source`` see ``opened_body``."""
    return (this.system_code.batch == 1) & (this.system_code.reserved == 0) & of_source


OF_JOYQUEUE = this.system_code.source == JOYQUEUE_SOURCE


def message(short: String, body: Node = nullable_bytes, client_ip: Node = CLIENT_BYTES) -> Struct:
    """The record as JoyQueue writes it, with strings of one-byte length, body and client address of the given types."""
    return Struct(
        *PLACE,
        "magic"
        / Const(uint16, MESSAGE_MAGIC, fatal=False, hexadecimal=True)
        * "not in the document; ignored by JoyQueue's reader",
        "system_code" / Default(SYSTEM_CODE, {"source": 3, "address_type": 1, "message_version": 1}),
        "priority" / Default(int8, 0),
        "client_ip" / client_ip * "not in the document; the broker sets it to the client's address",
        *content(short, body),
        name="Message",
        refused=(
            Refused(
                "system_code.compression",
                (this.system_code.compression > SNAPPY) & (this.system_code.message_version != 0),
                "JoyQueue throws an UnsupportedOperationException for 4 to 7, whether the body is compressed or not",
                "Serializer.java:287-292, Message.java:521-529",
            ),
            Refused(
                "body",
                ~this.body & (this.system_code.compressed == 1) & IS_COMPRESSION,
                "JoyQueue's consumers throw a NullPointerException for an empty body that is to be decompressed",
                "BrokerMessageConverter.java:102-120, Compressors.java, decompress",
            ),
            Refused(
                "flag",
                ~this.body & (this.flag != 0) & is_batch(OF_JOYQUEUE),
                "JoyQueue's consumers throw an exception for an empty batch whose flag is not 0",
                "BatchMessageSerializer.java:92-133",
            ),
        ),
    )


def documented_message(body: Node = nullable_bytes) -> Struct:
    """The record as the document has it."""
    return Struct(
        *PLACE,
        "system_code" / Default(DOCUMENTED_SYSTEM_CODE, {"source": 3, "message_version": 1}),
        "priority" / Default(int8, 0),
        *content(string2, body),
        name="Message",
    )


MESSAGE = message(string1)
DOCUMENTED_MESSAGE = documented_message()


def batched(business_id: String | Bytes) -> Struct:
    """A message inside a batch."""
    return Struct(
        "length" / Length(int32, add=4, bounds=False) * "bytes of the message, this field included",
        "priority" / Default(int8, 0),
        "flag" / Default(int16, 0),
        "body" / nullable_bytes,
        "business_id" / business_id,
        "attributes" / string2,
        name="BatchedMessage",
    )


BATCHED = batched(string1)
BATCH = Struct("messages" / RecordsToEnd(BATCHED), name="Batch")
BATCH_OF_MESSAGE = Struct("messages" / RecordsToEnd(BATCHED, count=this._.flag), name="Batch")
"""A batch inside its message, whose flag is the number of messages that JoyQueue reads."""

DOCUMENTED_BATCH = Struct(
    "length" / Length(int32, add=4) * "bytes of the batch; counted with this field, as every length here",
    "messages" / array(batched(nullable_bytes)),
    name="Batch",
)


FRAMINGS = {"ZIP": "zip", "ZLIB": "zlib", "SNAPPY": "snappy-framed"}
"""The framing of each compression."""


def opened_body(compressions: SymbolTable, batch: Node, of_source: Any) -> Compressed:
    """A body that is opened: decompressed if system_code says so, and split if it is a batch.

    Args:
        compressions: what the numbers in system_code mean.
        batch: the layout of a batch.
        of_source: an expression for the sources whose batches have that layout.
    """
    code = this.system_code
    framings: dict[Any, str] = {}
    for number, old in product(range(8), (0, 1)):
        symbol = compressions(number & 3 if old else number).symbol
        framings[0, number, 1, old] = "none"
        if symbol == "NONE":
            framings[1, number, 1, old] = "none"
        elif symbol is not None:
            framings |= {(1, number, of_batch, old): FRAMINGS[symbol] for of_batch in (0, 1)}
    return Compressed(
        nullable_bytes,
        (code.compressed, code.compression, code.batch, code.message_version == 0),
        framings,
        IfThenElse(is_batch(of_source), batch, rest()),
    )


OPENED = opened_body(COMPRESSIONS, BATCH_OF_MESSAGE, OF_JOYQUEUE)
OPENED_MESSAGE = message(string1, OPENED, CLIENT_IP)
DOCUMENTED_OPENED_MESSAGE = documented_message(opened_body(DOCUMENTED_COMPRESSIONS, DOCUMENTED_BATCH, True))


def as_integer(code: Any) -> int:
    """The 16 bits of a decoded systemCode of either dialect as one number."""
    return sum(int(code[name]) << shift for name, _, shift in SYSTEM_CODE.fields)
