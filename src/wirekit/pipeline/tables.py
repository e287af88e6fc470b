"""What the tables hold, column by column; ``docs/tables.md`` says the same and a test compares the two.

Only Arrow types that Spark and DuckDB read as they are: signed integers, no dictionaries, no nanoseconds, no large
types. Nothing here reads or writes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from wirekit.conversation import Message

Row = tuple[Any, ...]

SMALL = pa.int32()
LONG = pa.int64()
TEXT = pa.string()
BYTES = pa.binary()
FLAG = pa.bool_()
MICROS = pa.timestamp("us", tz="UTC")
MILLIS = pa.timestamp("ms", tz="UTC")

EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_999_999


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, Arrow type, and what it holds, with the unit."""

    name: str
    type: pa.DataType
    text: str


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: its name, and that of its directory.
        text: what a row is.
        columns: in order.
        sort: the columns by which the rows inside a file are in order.
    """

    name: str
    text: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...]

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema; every column may be null."""
        return pa.schema([(column.name, column.type) for column in self.columns])


_FILE = Column("file", TEXT, "the capture or stored file, as it was named to the run; the first file of a rotation")
_CONNECTION = Column("connection", TEXT, "`client>server#n`; n counts the connections of these addresses from 0")
_SOURCE = Column("source", TEXT, "address and port that sent it")
_TARGET = Column("target", TEXT, "address and port that it was sent to")
_SIDE = Column("side", TEXT, "`client` or `server`: who sent it")
_PROTOCOL = Column("protocol", TEXT, "`kafka`, `pulsar`, `joyqueue`, `jmq4` or a registered one; empty when not known")
_OFFSET = Column("offset", LONG, "bytes that its sender had sent before it on this connection")
_SCHEMA = Column("schema", TEXT, "the schema key that it was decoded by")

PACKETS = Table(
    "packets",
    "A TCP segment of a capture, or a note on what in a capture is none. What flows are made of, not an output.",
    (
        Column(
            "flow",
            LONG,
            "hash of the two addresses and the number of their capture's first file, the same for both directions",
        ),
        Column("ts_us", LONG, "capture time, microseconds since the epoch; 0 for a note"),
        Column("file_no", LONG, "number of the capture in the run, from 0"),
        Column("offset", LONG, "absolute offset of the payload, or of a note's bytes, in the capture file, bytes"),
        Column("source", TEXT, "sender's address and port; null for a note"),
        Column("target", TEXT, "receiver's address and port; null for a note"),
        Column("sequence", LONG, "raw sequence number, 0 to 2³² - 1"),
        Column("acknowledgment", LONG, "raw acknowledgment number, 0 to 2³² - 1"),
        Column("flags", SMALL, "TCP flag bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16"),
        Column("length", LONG, "bytes of payload on the wire; for a note, bytes of the file that it stands for"),
        Column("payload", BYTES, "the bytes that the capture has; for a note, at most the first MiB of them"),
        Column(
            "note",
            TEXT,
            "null for a segment, else JSON: `kind` (`damaged`, `unreadable`, `packet`, `skipped`), `reason`, "
            "`path`, `error_offset`, `text`, `packets` (how many by reason)",
        ),
    ),
    ("flow", "ts_us", "file_no", "offset"),
)

FRAMES = Table(
    "frames",
    "A frame that was decoded. What could not be decoded is in `quarantine`.",
    (
        _FILE,
        _CONNECTION,
        _SOURCE,
        _TARGET,
        _SIDE,
        Column("time", MICROS, "when its last byte was captured"),
        _PROTOCOL,
        _SCHEMA,
        Column("api", TEXT, "API (Kafka), command type (Pulsar) or command (JMQ4)"),
        Column("version", SMALL, "version of the API or header, null if the protocol has none"),
        Column("correlation_id", LONG, "the protocol's request id; an unsigned one from 2⁶³ up is negative here"),
        Column("role", TEXT, "`request`, `response`, or `event` for what neither asks nor answers"),
        _OFFSET,
        Column("length", LONG, "its bytes"),
        Column("latency_us", LONG, "microseconds between the request and this response, null for others"),
        Column("checks_bad", SMALL, "how many of its checks (checksums, lengths, constants) failed"),
        Column("checks", TEXT, "JSON: a list of `path`, `kind`, `stored`, `computed`, `status`"),
        Column("gaps", TEXT, "JSON: a list of `offset`, `length` of bytes in it that no field explains"),
        Column("value", TEXT, "JSON: its fields, bytes in hex; null when the text would be longer than 512 MiB"),
    ),
    ("time",),
)

MESSAGES = Table(
    "messages",
    "An application message out of a frame or a stored file; compressed sets and batches are opened.",
    (
        _FILE,
        Column("connection", TEXT, "as in `frames`; null in a stored file"),
        Column("time", MICROS, "when the frame's last byte was captured, null in a stored file"),
        Column("side", TEXT, "`client` or `server`: who sent it; null in a stored file"),
        _PROTOCOL,
        Column("topic", TEXT, "topic, null where the capture does not tell it"),
        Column("partition", SMALL, "partition, null where there is none"),
        Column("offset", LONG, "absolute offset or index in the log, null where nobody knows it yet"),
        Column("message_id", TEXT, "`ledger:entry:batch_index` (Pulsar), null where there is none"),
        Column("timestamp", MILLIS, "the message's own time, null when it has none or one outside the years 1 to 9999"),
        Column("timestamp_ms", LONG, "the same as stored: milliseconds since the epoch"),
        Column("timestamp_type", TEXT, "`CreateTime`, `LogAppendTime`, `PublishTime`, or null"),
        Column("key", BYTES, "key; null is not empty"),
        Column("value", BYTES, "value; null is not empty"),
        Column("attributes", LONG, "the protocol's attribute bits, or null"),
        Column("codec", TEXT, "what it was compressed by: `none`, `gzip`, `snappy`, `lz4`, `zlib`, `zip`, `zstd`"),
        Column("crc", LONG, "the checksum as stored, or null"),
        Column("check", TEXT, "the verdict on it: `ok`, `bad` or `absent`"),
        Column("schema", TEXT, "the schema key of the frame or file that it came in"),
    ),
    ("topic", "time"),
)

QUARANTINE = Table(
    "quarantine",
    "Bytes that nobody could decode, in parts of at most 1 MiB: of a connection, or of a damaged file.",
    (
        _FILE,
        Column("connection", TEXT, "as in `frames`; null when the file itself is damaged"),
        _SOURCE,
        _TARGET,
        _SIDE,
        Column("time", MICROS, "when the last of them was captured"),
        _PROTOCOL,
        Column("schema", TEXT, "the schema key that did not fit, null when no frame begins here"),
        Column("offset", LONG, "bytes before this part: in the direction, or in the file when that is damaged"),
        Column("length", LONG, "bytes that the row stands for"),
        Column("reason", TEXT, "why, in words"),
        Column("path", TEXT, "the field where decoding failed, empty when it did not get that far"),
        Column("error_offset", LONG, "the byte where it failed, counted as `offset` is"),
        Column("part", SMALL, "which part of the piece, from 0"),
        Column("raw", BYTES, "the bytes; at most the first MiB of a damaged file; null with `--no-raw`"),
    ),
    ("time",),
)

GAPS = Table(
    "gaps",
    "A range of a direction that the capture does not have.",
    (
        _FILE,
        _CONNECTION,
        _SOURCE,
        _TARGET,
        _SIDE,
        Column("time", MICROS, "when the loss showed"),
        _PROTOCOL,
        Column("offset", LONG, "bytes of the direction before it"),
        Column("length", LONG, "bytes missing"),
        Column("reason", TEXT, "why they are missing"),
    ),
    ("time",),
)

SIDES = ("client", "server")
FATES = {
    "captured": "payload bytes of this side that are in the capture; the next four add up to them",
    "frames": "of these, in decoded frames",
    "quarantined": "of these, in `quarantine`",
    "duplicate": "of these, there already: retransmitted or captured twice",
    "ignored": "of these, without a place in the stream, by the rules of TCP",
    "missing": "bytes that were sent and are not in the capture",
}

CONNECTIONS = Table(
    "connections",
    "A TCP connection, with what became of every byte.",
    (
        _FILE,
        _CONNECTION,
        Column("client", TEXT, "client's address and port"),
        Column("server", TEXT, "server's address and port"),
        Column("opened", MICROS, "capture time of its first segment"),
        Column("closed", MICROS, "capture time of its end, or of its last segment"),
        Column("reason", TEXT, "what ended it: `fin`, `rst`, `idle`, `new connection`, `end of capture`"),
        _PROTOCOL,
        Column("known_start", FLAG, "whether its handshake was captured"),
        *(Column(f"{side}_{fate}", LONG, text) for side in SIDES for fate, text in FATES.items()),
    ),
    ("opened",),
)

OUTPUTS = {table.name: table for table in (FRAMES, MESSAGES, QUARANTINE, GAPS, CONNECTIONS)}
TABLES = {PACKETS.name: PACKETS, **OUTPUTS}


def in_years(time_us: int | None) -> int | None:
    """A time in microseconds since the epoch, or None outside the years 1 to 9999, which readers cannot show."""
    return time_us if time_us is not None and EARLIEST_US <= time_us <= LATEST_US else None


def message_row(message: Message, file: str, connection: str | None, time_us: int | None, side: str | None) -> Row:
    """A row of the table ``messages``; the last three are null for what is not from a connection."""
    offset, timestamp = message.offset, message.timestamp
    dated = timestamp is not None and in_years(timestamp * 1000) is not None
    return (
        file,
        connection,
        in_years(time_us),
        side,
        message.protocol,
        message.topic,
        message.partition,
        offset if isinstance(offset, int) else None,
        offset if isinstance(offset, str) else None,
        timestamp if dated else None,
        timestamp,
        message.timestamp_type,
        message.key,
        message.value,
        message.attributes,
        message.codec,
        message.crc,
        message.check,
        message.schema,
    )
