"""The tables, column by column; ``docs/tables.md`` says the same and a test compares the two.

Types are those that Spark, DuckDB, Polars and pandas read as they are: signed integers, no dictionaries, no
nanoseconds, no large types. No name needs quoting in SQL. Column names and types are known without pyarrow, so that a
protocol's declaration can be checked anywhere; ``Table.schema`` needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

INT = "int"
BIGINT = "bigint"
TEXT = "string"
BINARY = "binary"
BOOLEAN = "boolean"
DATE = "date"
MICROS = "timestamp (µs, UTC)"
MILLIS = "timestamp (ms, UTC)"
TEXTS = "list<string>"
PROPERTIES = "list<struct<name string, value string>>"
PARTITIONS = "list<struct<topic string, partition int>>"
CHECKS = "list<struct<path string, kind string, stored string, computed string>>"
RANGES = "list<struct<position bigint, length bigint>>"
PORTS = "list<struct<port int, protocol string>>"
COUNTS = "list<struct<reason string, packets bigint>>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type (one of the names above), and what it holds, with the unit."""

    name: str
    type: str
    text: str


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: its name, and that of its directory.
        text: what a row is.
        columns: in order.
        sort: the columns by which the rows inside a file are in order.
        declared: the columns that a protocol's declaration may fill; the pipeline fills the others.
        keys: the declared columns by which a row of a request and one of its response are the same row.
    """

    name: str
    text: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...]
    declared: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @functools.cached_property
    def types(self) -> dict[str, str]:
        """{column: type}."""
        return {column.name: column.type for column in self.columns}

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema; every column may be null."""
        import pyarrow as pa

        return pa.schema([(column.name, arrow_type(column.type)) for column in self.columns])


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type that a column's type stands for.

    >>> arrow_type("list<struct<name string, value string>>")
    ListType(list<item: struct<name: string, value: string>>)
    """
    import pyarrow as pa

    if name.startswith("list<"):
        return pa.list_(arrow_type(name[len("list<") : -1]))
    if name.startswith("struct<"):
        fields = (field.split(" ") for field in name[len("struct<") : -1].split(", "))
        return pa.struct([(field, arrow_type(kind)) for field, kind in fields])
    types: dict[str, Any] = {
        INT: pa.int32(),
        BIGINT: pa.int64(),
        TEXT: pa.string(),
        BINARY: pa.binary(),
        BOOLEAN: pa.bool_(),
        DATE: pa.date32(),
        MICROS: pa.timestamp("us", tz="UTC"),
        MILLIS: pa.timestamp("ms", tz="UTC"),
    }
    return types[name]


_FILE = Column("file", TEXT, "the capture or stored file, as it was named to the run; the first file of a rotation")
_PROTOCOL = Column("protocol", TEXT, "`kafka`, `pulsar`, `joyqueue`, `jmq4` or a registered one; empty when not known")
_CONNECTION = Column("connection_id", TEXT, "the connection, in `connections`")
_CALL = Column("call_id", TEXT, "the call, in `calls`; null for what comes from a stored file")
_SIDE = Column("side", TEXT, "`client` or `server`: who sent it")
_ERROR = (
    Column("error_code", INT, "the error's number, null when there was none"),
    Column("error", TEXT, "the error's name, its number where it has none; null when there was none"),
)
_POSITION = Column("position", BIGINT, "byte of the stored file at which its entry begins; null for what was captured")


def _date(of: str) -> Column:
    return Column("date", DATE, f"UTC day of {of}")


def _addresses() -> tuple[Column, ...]:
    return (
        Column("client_address", TEXT, "the client's IP address"),
        Column("client_port", INT, "the client's port"),
        Column("server_address", TEXT, "the server's IP address"),
        Column("server_port", INT, "the server's port"),
    )


def _named(columns: Iterable[Column], names: str) -> frozenset[str]:
    wanted = frozenset(names.split())
    unknown = wanted - {column.name for column in columns}
    if unknown:
        raise AssertionError(f"no column {sorted(unknown)}")
    return wanted


_CALLS = (
    Column("call_id", TEXT, "the `frame_id` of its request, or of its only frame"),
    _CONNECTION,
    _FILE,
    _date("its first frame"),
    _PROTOCOL,
    Column("api", TEXT, "API (Kafka), command type (Pulsar) or command (JMQ4)"),
    Column("version", INT, "version of the API or header, null if the protocol has none"),
    Column(
        "outcome",
        TEXT,
        "`answered`; `unanswered`: no answer was captured; `one_way`: a request that asks for none; `unasked`: an "
        "answer whose request was not captured; `event`: a frame that neither asks nor answers",
    ),
    Column(
        "client", TEXT, "what the client calls itself: client id (Kafka), producer or consumer (Pulsar), app (JMQ4)"
    ),
    *_addresses(),
    Column("is_replica", BOOLEAN, "whether a broker asks as a follower (Kafka); null where the request does not say"),
    Column("request_time", MICROS, "when the last byte of the request, or of the event, was captured"),
    Column("response_time", MICROS, "when the last byte of the answer was captured"),
    Column("latency_us", BIGINT, "microseconds between the two"),
    Column("request_bytes", BIGINT, "bytes of the request, or of the event"),
    Column("response_bytes", BIGINT, "bytes of the answer"),
    Column("correlation_id", BIGINT, "the protocol's request id; an unsigned one from 2⁶³ up is negative here"),
    *_ERROR,
    Column("error_text", TEXT, "what the server says about it in words"),
    Column("throttle_ms", BIGINT, "milliseconds that a quota delayed the answer"),
    Column("acks", INT, "acknowledgments that a producer asks for: 0 none, 1 the leader, -1 all (Kafka)"),
    Column("topic", TEXT, "the topic, where the call is about one"),
    Column("group_id", TEXT, "consumer group (Kafka), subscription (Pulsar) or consuming app (JMQ4)"),
    Column("topics", INT, "how many topics it is about"),
    Column("messages", INT, "how many application messages it carried, those in batches counted"),
)
CALLS = Table(
    "calls",
    "A request with its answer, or a frame that has neither.",
    _CALLS,
    ("request_time", "response_time"),
    _named(_CALLS, "client is_replica error_code error error_text throttle_ms acks topic group_id"),
)

_CALL_TOPICS = (
    Column("call_id", TEXT, "the call, in `calls`"),
    _FILE,
    _date("the call's first frame"),
    _PROTOCOL,
    Column("topic", TEXT, "topic"),
    Column("partition", INT, "partition, null where the call is about a whole topic"),
    *_ERROR,
    Column(
        "log_offset", BIGINT, "offset asked for, or given by the answer: first one fetched, stored, listed, committed"
    ),
    Column("high_watermark", BIGINT, "offset behind the last message that consumers may read"),
    Column("messages", INT, "how many application messages of it the call carried; null for calls that carry none"),
    Column("bytes", BIGINT, "bytes of its message set or messages on the wire"),
)
CALL_TOPICS = Table(
    "call_topics",
    "A topic, or a partition of one, that a call is about.",
    _CALL_TOPICS,
    ("topic", "partition"),
    _named(_CALL_TOPICS, "topic partition error_code error log_offset high_watermark bytes"),
    ("topic", "partition"),
)

_MESSAGES = (
    _CALL,
    _CONNECTION,
    _FILE,
    _date("its capture; of a stored message, of its own time"),
    _PROTOCOL,
    _POSITION,
    Column("time", MICROS, "when the frame's last byte was captured; null in a stored file"),
    Column(
        "direction",
        TEXT,
        "`produced` by a client, `fetched` by a consumer, `replicated` to a follower, `pushed` by a broker, `stored` "
        "in a file",
    ),
    Column("topic", TEXT, "topic, null where the capture does not tell it"),
    Column("partition", INT, "partition, null where there is none"),
    Column("log_offset", BIGINT, "absolute offset or index in the log, null where nobody knows it yet"),
    Column("message_id", TEXT, "`ledger:entry:batch_index` (Pulsar), null where there is none"),
    Column("timestamp", MILLIS, "the message's own time, null when it has none or one outside the years 1 to 9999"),
    Column("timestamp_ms", BIGINT, "the same as stored: milliseconds since the epoch"),
    Column("timestamp_type", TEXT, "`CreateTime`, `LogAppendTime`, `PublishTime`, or null"),
    Column("event_time", MILLIS, "the application's own time (Pulsar)"),
    Column("key", BINARY, "key; null is not empty"),
    Column("value", BINARY, "value; null is not empty"),
    Column("properties", PROPERTIES, "what the producer says of it by name; null where there is no such thing"),
    Column("attributes", BIGINT, "the protocol's attribute bits, or null"),
    Column("codec", TEXT, "what it was compressed by: `none`, `gzip`, `snappy`, `lz4`, `zlib`, `zip`, `zstd`"),
    Column("encrypted", BOOLEAN, "whether `value` is cipher text; null where the protocol has no encryption"),
    Column(
        "batch",
        BIGINT,
        "the compressed set or batch that it came in: its number in the frame, from 0, or its byte in a stored file; "
        "null for a message that stands alone",
    ),
    Column("batch_index", INT, "its place in that, from 0"),
    Column("wire_bytes", BIGINT, "its bytes where it stands, decompressed, with its own header"),
    Column("crc", BIGINT, "the checksum as stored, or null"),
    Column("crc_status", TEXT, "the verdict on it: `ok`, `bad` or `absent`"),
    Column("producer", TEXT, "who produced it, where the message or its connection tells"),
    Column("sequence_id", BIGINT, "the producer's own number for it (Pulsar)"),
    Column("group_id", TEXT, "the group, subscription or app that it was delivered to, where the connection tells"),
    Column("redeliveries", INT, "how often it was delivered before (Pulsar)"),
    Column("acknowledged", BOOLEAN, "whether it was acknowledged before, and came with its batch only (Pulsar)"),
    Column("schema", TEXT, "the schema key of the frame or file that it came in"),
)
MESSAGES = Table(
    "messages",
    "An application message out of a frame or a stored file; compressed sets and batches are opened.",
    _MESSAGES,
    ("topic", "time"),
    _named(
        _MESSAGES,
        "topic partition log_offset message_id timestamp_ms timestamp_type event_time key value properties attributes "
        "codec wire_bytes crc producer sequence_id group_id redeliveries",
    ),
)

_GROUP_EVENTS = (
    _CALL,
    _FILE,
    _date("`time`"),
    _PROTOCOL,
    _POSITION,
    Column("time", MICROS, "when the call's first frame was captured; of a stored one, the time of its message"),
    Column(
        "event",
        TEXT,
        "`join`, `sync`, `leave`, `heartbeat failed`, `subscribe`, `unsubscribe`, `close`, `seek`, `active`, "
        "`inactive`, `end of topic`, `stored` (a member as `__consumer_offsets` has it)",
    ),
    Column("group_id", TEXT, "consumer group (Kafka), subscription (Pulsar) or consuming app (JMQ4)"),
    Column("member_id", TEXT, "the member or consumer, as the server numbers or names it"),
    Column("client", TEXT, "what the client calls itself"),
    Column("client_host", TEXT, "the client's host, as the broker saw it; of stored members only"),
    Column("generation", INT, "generation of the group (Kafka)"),
    Column("topics", TEXTS, "topics subscribed to"),
    Column("assignment", PARTITIONS, "partitions that the member was given"),
    *_ERROR,
)
GROUP_EVENTS = Table(
    "group_events",
    "Something that a member of a consumer group or subscription did, or that was done to it.",
    _GROUP_EVENTS,
    ("group_id", "time"),
    _named(
        _GROUP_EVENTS,
        "event group_id member_id client client_host generation topics assignment error_code error",
    ),
    ("event", "group_id"),
)

_OFFSETS = (
    _CALL,
    _FILE,
    _date("`time`"),
    _PROTOCOL,
    _POSITION,
    Column("time", MICROS, "when it was captured; of a stored one, `commit_time` or the time of its message"),
    Column(
        "source", TEXT, "`request`: a client committed it; else the `direction` of the message of `__consumer_offsets`"
    ),
    Column("group_id", TEXT, "consumer group (Kafka), subscription (Pulsar) or consuming app (JMQ4)"),
    Column("topic", TEXT, "topic"),
    Column("partition", INT, "partition"),
    Column("log_offset", BIGINT, "the position: the next offset to read (Kafka), the index acknowledged (JMQ4)"),
    Column("message_id", TEXT, "`ledger:entry` of the message acknowledged (Pulsar)"),
    Column("cumulative", BOOLEAN, "whether all before it is acknowledged as well (Pulsar); null elsewhere"),
    Column("metadata", TEXT, "what the consumer keeps with it"),
    Column("commit_time", MILLIS, "when it was committed, as the protocol says"),
    Column("expire_time", MILLIS, "when it is to be forgotten"),
    Column("deleted", BOOLEAN, "whether a stored position was deleted, by a null value; null for a request"),
    *_ERROR,
)
OFFSETS = Table(
    "offsets",
    "A position that a group committed: by a call, or as stored in `__consumer_offsets`.",
    _OFFSETS,
    ("group_id", "topic", "time"),
    _named(
        _OFFSETS,
        "group_id topic partition log_offset message_id cumulative metadata commit_time expire_time",
    ),
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

_CONNECTIONS = (
    Column("connection_id", TEXT, "20 hexadecimal digits: hash of file, both addresses and `ordinal`"),
    _FILE,
    _date("`opened`"),
    _PROTOCOL,
    *_addresses(),
    Column("ordinal", INT, "number of the connection among those of these addresses in the file, from 0"),
    Column("opened", MICROS, "capture time of its first segment"),
    Column("closed", MICROS, "capture time of its end, or of its last segment"),
    Column("reason", TEXT, "what ended it: `fin`, `rst`, `idle`, `new connection`, `end of capture`"),
    Column("known_start", BOOLEAN, "whether its handshake was captured"),
    Column("client", TEXT, "what the client calls itself, the first time it says so"),
    Column("client_software", TEXT, "the client's library or language, where the protocol tells"),
    Column("client_version", TEXT, "its version"),
    Column("server_software", TEXT, "the server's software and version, where the protocol tells"),
    Column("protocol_version", INT, "the version of the protocol that the client speaks (Pulsar)"),
    Column("calls", BIGINT, "rows of `calls`"),
    Column("errors", BIGINT, "those of them with an error"),
    *(Column(f"{side}_{fate}", BIGINT, text) for side in SIDES for fate, text in FATES.items()),
)
CONNECTIONS = Table(
    "connections",
    "A TCP connection, with what became of every byte.",
    _CONNECTIONS,
    ("opened",),
    _named(_CONNECTIONS, "client client_software client_version server_software protocol_version"),
)

FRAMES = Table(
    "frames",
    "A frame that was decoded. What could not be decoded is in `quarantine`.",
    (
        Column("frame_id", TEXT, "`connection_id`, `c` or `s` for the side, and `position`, with `-` between"),
        Column("call_id", TEXT, "the call that it belongs to, in `calls`"),
        _CONNECTION,
        _FILE,
        _date("`time`"),
        _PROTOCOL,
        _SIDE,
        Column("time", MICROS, "when its last byte was captured"),
        Column("schema", TEXT, "the schema key that it was decoded by"),
        Column("api", TEXT, "as in `calls`"),
        Column("version", INT, "as in `calls`"),
        Column("correlation_id", BIGINT, "as in `calls`"),
        Column("role", TEXT, "`request`, `response`, or `event` for what neither asks nor answers"),
        Column("position", BIGINT, "bytes that its sender had sent before it on this connection"),
        Column("length", BIGINT, "its bytes"),
        Column("checks_bad", INT, "how many of its checks (checksums, lengths, constants) failed"),
        Column("checks", CHECKS, "those that failed: the field, the kind, what is stored and what it should be"),
        Column("gaps", RANGES, "bytes in it that no field explains, counted as `position` is"),
        Column(
            "value", TEXT, "JSON: its fields but for messages; null without `--values`, or when longer than 512 MiB"
        ),
    ),
    ("time",),
)

QUARANTINE = Table(
    "quarantine",
    "Bytes that nobody could decode, in parts of at most 1 MiB: of a connection, or of a damaged file.",
    (
        Column("connection_id", TEXT, "the connection, in `connections`; null when the file itself is damaged"),
        _FILE,
        _date("`time`"),
        _PROTOCOL,
        *_addresses(),
        _SIDE,
        Column("time", MICROS, "when the last of them was captured"),
        Column("schema", TEXT, "the schema key that did not fit, null when no frame begins here"),
        Column("position", BIGINT, "bytes before this part: in the direction, or in the file when that is damaged"),
        Column("length", BIGINT, "bytes that the row stands for"),
        Column("reason", TEXT, "why, in words"),
        Column("path", TEXT, "the field where decoding failed, empty when it did not get that far"),
        Column("error_position", BIGINT, "the byte where it failed, counted as `position` is"),
        Column("part", INT, "which part of the piece, from 0"),
        Column("raw", BINARY, "the bytes; at most the first MiB of a damaged file; null with `--no-raw`"),
    ),
    ("time",),
)

GAPS = Table(
    "gaps",
    "A range of a direction that the capture does not have.",
    (
        _CONNECTION,
        _FILE,
        _date("`time`"),
        _PROTOCOL,
        *_addresses(),
        _SIDE,
        Column("time", MICROS, "when the loss showed"),
        Column("position", BIGINT, "bytes of the direction before it"),
        Column("length", BIGINT, "bytes missing"),
        Column("reason", TEXT, "why they are missing"),
    ),
    ("time",),
)

_RUN = Column("run_id", TEXT, "the bundle: hash of its inputs and of how they were read")
RUNS = Table(
    "runs",
    "A bundle that a run of the pipeline committed.",
    (
        _RUN,
        Column("wirekit", TEXT, "version of wirekit"),
        Column("engine", TEXT, "`serial` or `spark`"),
        Column("finished", MICROS, "when all rows were written"),
        Column("protocol", TEXT, "the protocol that all connections were said to have; empty when it was found"),
        Column("ports", PORTS, "protocols that were given by port"),
        Column("raw", BOOLEAN, "whether `quarantine` has the bytes themselves"),
        Column("frame_values", BOOLEAN, "whether `frames` has values"),
    ),
    ("finished",),
)
INPUTS = Table(
    "inputs",
    "A file that a bundle holds.",
    (
        _RUN,
        Column("file", TEXT, "the file, as it was named to the run"),
        Column("capture", TEXT, "the first file of its rotation, which is `file` in other tables; itself without one"),
        Column("kind", TEXT, "`capture`, or the schema key of a stored file"),
        Column("size", BIGINT, "bytes when the run began"),
        Column("modified", MICROS, "when it was last changed before"),
        Column("sha256", TEXT, "hash of its bytes, null if it could not be read, and of an object of an object store"),
        Column("changed", BOOLEAN, "whether it was changed while it was read"),
        Column("segments", BIGINT, "TCP segments of the capture; null, as what follows, for later files of a rotation"),
        Column("first_time", MICROS, "capture time of the first of them"),
        Column("last_time", MICROS, "capture time of the last"),
        Column("skipped", COUNTS, "packets that hold no TCP segment, by reason"),
        Column("damaged", TEXT, "where and why it could not be read further, null if it could"),
        Column("unreadable", TEXT, "why it could not be read at all, null if it could"),
    ),
    ("file",),
)

PACKETS = Table(
    "packets",
    "A TCP segment of a capture, or a note on what in a capture is none. What flows are made of, not an output.",
    (
        Column(
            "flow",
            BIGINT,
            "hash of the two addresses and the number of their capture's first file, the same for both directions",
        ),
        Column("ts_us", BIGINT, "capture time, microseconds since the epoch; 0 for a note"),
        Column("file_no", BIGINT, "number of the capture in the run, from 0"),
        Column("position", BIGINT, "byte of the capture at which the payload, or a note's bytes, begin"),
        Column("source", TEXT, "sender's address and port; null for a note"),
        Column("target", TEXT, "receiver's address and port; null for a note"),
        Column("sequence", BIGINT, "raw sequence number, 0 to 2³² - 1"),
        Column("acknowledgment", BIGINT, "raw acknowledgment number, 0 to 2³² - 1"),
        Column("flags", INT, "TCP flag bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16"),
        Column("length", BIGINT, "bytes of payload on the wire; for a note, bytes of the file that it stands for"),
        Column("payload", BINARY, "the bytes that the capture has; for a note, at most the first MiB of them"),
        Column(
            "note",
            TEXT,
            "null for a segment, else JSON: `kind` (`damaged`, `unreadable`, `packet`, `skipped`), `reason`, "
            "`path`, `error_offset`, `text`, `packets` (how many by reason)",
        ),
    ),
    ("flow", "ts_us", "file_no", "position"),
)

DECLARED = {table.name: table for table in (CALLS, CALL_TOPICS, MESSAGES, GROUP_EVENTS, OFFSETS, CONNECTIONS)}
"""The tables that a protocol's declaration may fill."""

FROM_INPUTS = {table.name: table for table in (*DECLARED.values(), FRAMES, QUARANTINE, GAPS)}
"""The tables that captures and stored files give."""

OUTPUTS = {**FROM_INPUTS, **{table.name: table for table in (RUNS, INPUTS)}}
TABLES = {PACKETS.name: PACKETS, **OUTPUTS}
