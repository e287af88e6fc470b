"""The tables and their columns. A test compares ``docs/tables.md`` with this module.

Types are readable by Spark, DuckDB, Polars and pandas without conversion: signed integers, no dictionaries, no
nanoseconds, no large types. No name needs quoting in SQL. Column names and types are known without pyarrow, so that a
protocol's declaration can be checked anywhere; ``Table.schema`` needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
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
    """A column: its name, its type (one of the names above), and its meaning, with the unit."""

    name: str
    type: str
    text: str


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: the name of the table and of its directory.
        text: a description of a row.
        columns: in order.
        sort: the columns by which the rows inside a file are in order; an id decides between equal ones.
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

    def only(self, columns: Iterable[str]) -> Table:
        """The table reduced to some columns."""
        requested = frozenset(columns)
        return replace(self, columns=tuple(each for each in self.columns if each.name in requested))

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema; every column may be null."""
        import pyarrow as pa

        return pa.schema([(column.name, arrow_type(column.type)) for column in self.columns])


@functools.cache
def arrow_type(name: str) -> pa.DataType:
    """The Arrow type for the name of a column type.

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


_FILE = Column(
    "file", TEXT, "the capture or stored file, under the name given to the run; the first file of a rotation"
)
_PROTOCOL = Column(
    "protocol", TEXT, "`kafka`, `pulsar`, `joyqueue`, `jmq4` or a registered protocol; empty when unknown"
)
_CONNECTION = Column("connection_id", TEXT, "the connection, in `connections`")
_CALL = Column("call_id", TEXT, "the call, in `calls`; null for stored files")
_SIDE = Column("side", TEXT, "the sender: `client` or `server`")


def _error(whose: str) -> tuple[Column, Column]:
    """The columns of an error; the text says whose error it is if the row itself has none."""
    return (
        Column("error_code", INT, f"the error's number{whose}; null without an error"),
        Column("error", TEXT, f"the error's name, or its number if it has no name{whose}; null without an error"),
    )


_ERROR_OF_CALL = _error("; if the call itself has none, that of its first topic with an error")
_ERROR_OF_TOPIC = _error("; if the topic itself has none, that of the call")
_ERROR_OF_EVENT = _error("; if the event itself has none, that of the call")
_ERROR_OF_OFFSET = _error("; that of its topic or partition in the call, else that of the call")
_GROUP = Column("group_id", TEXT, "consumer group (Kafka), subscription (Pulsar) or consuming app (JMQ4)")
_POSITION = Column("position", BIGINT, "byte offset of its entry in the stored file; null for captures")


def _date(of: str) -> Column:
    return Column("date", DATE, f"UTC day of {of}")


_AT_TIME = (_FILE, _date("`time`"), _PROTOCOL)


def _addresses() -> tuple[Column, ...]:
    return (
        Column("client_address", TEXT, "the client's IP address"),
        Column("client_port", INT, "the client's port"),
        Column("server_address", TEXT, "the server's IP address"),
        Column("server_port", INT, "the server's port"),
    )


def _checked_names(columns: Iterable[Column], names: str) -> frozenset[str]:
    requested = frozenset(names.split())
    unknown = requested - {column.name for column in columns}
    if unknown:
        raise AssertionError(f"no column {sorted(unknown)}")
    return requested


_CALLS = (
    Column("call_id", TEXT, "the `frame_id` of its request, or of its only frame"),
    _CONNECTION,
    _FILE,
    _date("its first frame"),
    _PROTOCOL,
    Column("api", TEXT, "API (Kafka), command type (Pulsar) or command (JMQ4)"),
    Column("version", INT, "version of the API or header; null if the protocol has none"),
    Column(
        "outcome",
        TEXT,
        "`answered`; `unanswered`: no response was captured; `one_way`: a request that expects none; `unasked`: "
        "a response whose request was not captured; `repeated`: a further response to an answered request, such as "
        "the second PRODUCER_SUCCESS of a Pulsar producer that waited for exclusive access; `event`: a frame that is "
        "neither request nor response",
    ),
    Column("client", TEXT, "the client's name: client id (Kafka), producer or consumer (Pulsar), app (JMQ4)"),
    *_addresses(),
    Column("is_replica", BOOLEAN, "whether the request comes from a broker as a follower (Kafka); null if unknown"),
    Column("request_time", MICROS, "when the last byte of the request, or of the event, was captured"),
    Column("response_time", MICROS, "when the last byte of the response was captured"),
    Column("latency_us", BIGINT, "microseconds from `request_time` to `response_time`"),
    Column("request_bytes", BIGINT, "bytes of the request, or of the event"),
    Column("response_bytes", BIGINT, "bytes of the response"),
    Column("correlation_id", BIGINT, "the protocol's request id; an unsigned id of 2⁶³ or more is negative here"),
    *_ERROR_OF_CALL,
    Column("error_text", TEXT, "the server's error message"),
    Column("throttle_ms", BIGINT, "milliseconds by which a quota delayed the response"),
    Column(
        "acks", INT, "acknowledgments that the producer requires: 0 none, 1 the leader, -1 all in-sync replicas (Kafka)"
    ),
    Column("topic", TEXT, "the topic, if the call refers to exactly one"),
    _GROUP,
    Column("topics", INT, "number of topics that the call refers to"),
    Column("messages", INT, "number of application messages in the call, those in batches included"),
)
CALLS = Table(
    "calls",
    "A request with its response, or a single frame.",
    _CALLS,
    ("request_time", "response_time", "call_id"),
    _checked_names(_CALLS, "client is_replica error_code error error_text throttle_ms acks topic group_id"),
)

_CALL_TOPICS = (
    Column("call_id", TEXT, "the call, in `calls`"),
    _FILE,
    _date("the call's first frame"),
    _PROTOCOL,
    Column("topic", TEXT, "topic"),
    Column("partition", INT, "partition; null if the call refers to a whole topic"),
    *_ERROR_OF_TOPIC,
    Column(
        "log_offset", BIGINT, "offset requested, or given by the response: first one fetched, stored, listed, committed"
    ),
    Column("high_watermark", BIGINT, "offset after the last message that consumers may read"),
    Column("messages", INT, "number of its application messages in the call; null for calls without messages"),
    Column("bytes", BIGINT, "size of its message set or messages on the wire, in bytes"),
)
CALL_TOPICS = Table(
    "call_topics",
    "A topic, or a partition of one, that a call refers to.",
    _CALL_TOPICS,
    ("topic", "partition", "call_id"),
    _checked_names(_CALL_TOPICS, "topic partition error_code error log_offset high_watermark bytes"),
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
    Column("topic", TEXT, "topic; null if unknown"),
    Column("partition", INT, "partition; null if there is none"),
    Column("log_offset", BIGINT, "absolute offset or index in the log; null if not assigned yet"),
    Column("message_id", TEXT, "`ledger:entry:batch_index` (Pulsar); null if there is none"),
    Column("timestamp", MILLIS, "the message's own time; null if it has none or one outside the years 1 to 9999"),
    Column("timestamp_ms", BIGINT, "the same as stored: milliseconds since the epoch"),
    Column("timestamp_type", TEXT, "`CreateTime`, `LogAppendTime`, `PublishTime`, or null"),
    Column("event_time", MILLIS, "the application's own time (Pulsar); null as for `timestamp`"),
    Column("event_time_ms", BIGINT, "the same as stored: milliseconds since the epoch"),
    Column("key", BINARY, "key; null and empty differ"),
    Column("value", BINARY, "value; null and empty differ"),
    Column("properties", PROPERTIES, "properties set by the producer; null if the protocol has none"),
    Column("attributes", BIGINT, "the protocol's attribute bits, or null"),
    Column("codec", TEXT, "compression codec: `none`, `gzip`, `snappy`, `lz4`, `zlib`, `zip`, `zstd`"),
    Column("encrypted", BOOLEAN, "whether `value` is cipher text; null if the protocol has no encryption"),
    Column("encryption_keys", TEXTS, "names of the keys that encrypt `value`; null if it is not encrypted"),
    Column(
        "batch",
        BIGINT,
        "the compressed set or batch that contains it: its number in the frame, from 0, or its byte offset "
        "in a stored file; null outside a batch",
    ),
    Column("batch_index", INT, "its index in the batch, from 0"),
    Column("wire_bytes", BIGINT, "size of the message after decompression, with its own header, in bytes"),
    Column("crc", BIGINT, "the checksum as stored, or null"),
    Column(
        "crc_status", TEXT, "the verdict on `crc`: `ok`, `bad` or `absent` (no checksum, or bytes under it are missing)"
    ),
    Column("producer", TEXT, "name of the producer; null if unknown"),
    Column("sequence_id", BIGINT, "the producer's sequence number (Pulsar)"),
    Column("group_id", TEXT, "the group, subscription or app that received it; null if unknown"),
    Column("redeliveries", INT, "number of earlier deliveries (Pulsar)"),
    Column(
        "acknowledged",
        BOOLEAN,
        "whether it was acknowledged before and delivered again only as part of its batch (Pulsar)",
    ),
    Column("schema", TEXT, "the schema key of its frame or file"),
)
MESSAGES = Table(
    "messages",
    "An application message from a frame or a stored file; compressed sets and batches are unpacked. "
    "A message with missing bytes has no row.",
    _MESSAGES,
    ("topic", "time", "call_id"),
    _checked_names(
        _MESSAGES,
        "topic partition log_offset message_id timestamp_ms timestamp_type event_time event_time_ms key value "
        "properties attributes codec wire_bytes crc producer sequence_id group_id redeliveries",
    ),
)

_GROUP_EVENTS = (
    _CALL,
    *_AT_TIME,
    _POSITION,
    Column("time", MICROS, "when the call's first frame was captured; for stored files, the time of the message"),
    Column(
        "event",
        TEXT,
        "`join`, `sync`, `leave`, `heartbeat failed`, `subscribe`, `unsubscribe`, `close`, `seek`, `active`, "
        "`inactive`, `end of topic`, `stored` (a member as `__consumer_offsets` has it; without `member_id`, a group "
        "without members), `deleted` (a group that a null value deleted there)",
    ),
    _GROUP,
    Column("member_id", TEXT, "the server's id or name of the member or consumer"),
    Column("client", TEXT, "the client's name"),
    Column("client_host", TEXT, "the client's host as seen by the broker; stored members only"),
    Column("generation", INT, "generation of the group (Kafka)"),
    Column("topics", TEXTS, "topics subscribed to"),
    Column("assignment", PARTITIONS, "partitions assigned to the member"),
    *_ERROR_OF_EVENT,
)
GROUP_EVENTS = Table(
    "group_events",
    "An event in the life of a consumer group or subscription, or of one of its members.",
    _GROUP_EVENTS,
    ("group_id", "time", "call_id"),
    _checked_names(
        _GROUP_EVENTS, "event group_id member_id client client_host generation topics assignment error_code error"
    ),
    ("event", "group_id"),
)

_OFFSETS = (
    _CALL,
    *_AT_TIME,
    _POSITION,
    Column("time", MICROS, "when it was captured; for stored positions, `commit_time` or the time of the message"),
    Column(
        "source",
        TEXT,
        "`request` if a client committed it; otherwise the `direction` of the message of `__consumer_offsets`",
    ),
    _GROUP,
    Column("topic", TEXT, "topic"),
    Column("partition", INT, "partition"),
    Column("log_offset", BIGINT, "the position: the next offset to read (Kafka), the acknowledged index (JMQ4)"),
    Column(
        "message_id",
        TEXT,
        "`ledger:entry` of the acknowledged message, or of the batch that contains it (Pulsar); an acknowledgment in a "
        "transaction takes effect when the transaction is committed",
    ),
    Column("cumulative", BOOLEAN, "whether all earlier messages are acknowledged too (Pulsar); null elsewhere"),
    Column("metadata", TEXT, "metadata stored by the consumer"),
    Column("commit_time", MILLIS, "commit time stated by the protocol"),
    Column("expire_time", MILLIS, "when the position expires"),
    Column("deleted", BOOLEAN, "whether a null value deleted the stored position; null for a request"),
    *_ERROR_OF_OFFSET,
)
OFFSETS = Table(
    "offsets",
    "A position that a group committed, from a request or from `__consumer_offsets`.",
    _OFFSETS,
    ("group_id", "topic", "time", "call_id"),
    _checked_names(
        _OFFSETS, "group_id topic partition log_offset message_id cumulative metadata commit_time expire_time"
    ),
)

SIDES = ("client", "server")
FATES = {
    "captured": "payload bytes of this side in the capture; the next four columns add up to this one",
    "frames": "of these, in decoded frames",
    "quarantined": "of these, in `quarantine`",
    "duplicate": "of these, duplicates: retransmitted or captured twice",
    "ignored": "of these, outside the stream by the rules of TCP",
    "missing": "bytes sent but missing from the capture",
}

_CONNECTIONS = (
    Column("connection_id", TEXT, "20 hexadecimal digits: hash of file, both addresses and `ordinal`"),
    _FILE,
    _date("`opened`"),
    _PROTOCOL,
    *_addresses(),
    Column("ordinal", INT, "number of the connection among those with the same addresses in the file, from 0"),
    Column("opened", MICROS, "capture time of its first segment"),
    Column("closed", MICROS, "capture time of its end, or of its last segment"),
    Column("reason", TEXT, "cause of its end: `fin`, `rst`, `idle`, `new connection`, `end of capture`"),
    Column("known_start", BOOLEAN, "whether its handshake was captured"),
    Column("client", TEXT, "the client's name, as first stated"),
    Column("client_software", TEXT, "the client's library or language, if the protocol transmits it"),
    Column("client_version", TEXT, "version of the client's software"),
    Column("server_software", TEXT, "the server's software and version, if the protocol transmits them"),
    Column("protocol_version", INT, "the version of the protocol that the client speaks (Pulsar)"),
    Column("calls", BIGINT, "rows of `calls`"),
    Column("errors", BIGINT, "calls with an error"),
    *(Column(f"{side}_{fate}", BIGINT, text) for side in SIDES for fate, text in FATES.items()),
)
CONNECTIONS = Table(
    "connections",
    "A TCP connection, with an account of every byte.",
    _CONNECTIONS,
    ("opened", "connection_id"),
    _checked_names(_CONNECTIONS, "client client_software client_version server_software protocol_version"),
)

FRAMES = Table(
    "frames",
    "A decoded frame. Bytes that could not be decoded are in `quarantine`.",
    (
        Column("frame_id", TEXT, "`connection_id`, `c` or `s` for the side, and `position`, joined by `-`"),
        Column("call_id", TEXT, "its call, in `calls`"),
        _CONNECTION,
        *_AT_TIME,
        _SIDE,
        Column("time", MICROS, "when its last byte was captured"),
        Column("schema", TEXT, "the schema key that decoded it"),
        Column("api", TEXT, "as in `calls`"),
        Column("version", INT, "as in `calls`"),
        Column("correlation_id", BIGINT, "as in `calls`"),
        Column("role", TEXT, "`request`, `response`, or `event` for a frame that is neither"),
        Column("position", BIGINT, "bytes sent before it in this direction of the connection"),
        Column("length", BIGINT, "size of the frame in bytes"),
        Column("checks_bad", INT, "number of failed checks (checksums, lengths, constants)"),
        Column("checks", CHECKS, "the failed checks: field, kind, stored value and computed value"),
        Column("gaps", RANGES, "bytes of the frame that no field explains; positions count as in `position`"),
        Column(
            "value", TEXT, "JSON of its fields without messages; null without `--values`, or if longer than 512 MiB"
        ),
    ),
    ("time", "connection_id"),
)

QUARANTINE = Table(
    "quarantine",
    "Bytes of a connection or of a damaged file that could not be decoded, in parts of at most 1 MiB.",
    (
        Column("connection_id", TEXT, "the connection, in `connections`; null if the file itself is damaged"),
        *_AT_TIME,
        *_addresses(),
        _SIDE,
        Column("time", MICROS, "when the last of the bytes was captured"),
        Column("schema", TEXT, "the schema key that does not fit; null if no frame begins here"),
        Column("position", BIGINT, "bytes before this part in the direction, or in the damaged file"),
        Column("length", BIGINT, "size of this part in bytes"),
        Column("reason", TEXT, "the reason, as text"),
        Column("path", TEXT, "the field where decoding failed; empty if it failed before the first field"),
        Column("error_position", BIGINT, "the byte where decoding failed, counted as in `position`"),
        Column("part", INT, "number of the part, from 0"),
        Column("raw", BINARY, "the bytes; at most the first MiB of a damaged file; null with `--no-raw`"),
    ),
    ("time", "connection_id"),
)

GAPS = Table(
    "gaps",
    "A range of a direction that is missing from the capture.",
    (
        _CONNECTION,
        *_AT_TIME,
        *_addresses(),
        _SIDE,
        Column("time", MICROS, "when the loss became visible"),
        Column("position", BIGINT, "bytes before it in the direction"),
        Column("length", BIGINT, "number of missing bytes"),
        Column("reason", TEXT, "why the bytes are missing"),
    ),
    ("time", "connection_id"),
)

_RUN = Column("run_id", TEXT, "the bundle: hash of its inputs and of how they were read")
RUNS = Table(
    "runs",
    "A bundle that a run of the pipeline committed.",
    (
        _RUN,
        Column("wirekit", TEXT, "version of wirekit"),
        Column("engine", TEXT, "`serial`, `processes` or `spark`"),
        Column("finished", MICROS, "when all rows were written"),
        Column("protocol", TEXT, "the protocol given by `--protocol`; empty if it was detected"),
        Column("ports", PORTS, "protocols given by port (`--port`)"),
        Column("raw", BOOLEAN, "whether `quarantine` has the raw bytes"),
        Column("frame_values", BOOLEAN, "whether `frames` has values"),
    ),
    ("finished",),
)
INPUTS = Table(
    "inputs",
    "A file that a bundle holds.",
    (
        _RUN,
        Column("file", TEXT, "the file, under the name given to the run"),
        Column(
            "capture",
            TEXT,
            "the first file of its rotation, which is `file` in other tables; `file` itself without a rotation",
        ),
        Column("kind", TEXT, "`capture`, or the schema key of a stored file"),
        Column("size", BIGINT, "size in bytes when the run began"),
        Column("modified", MICROS, "last modification before the run"),
        Column("sha256", TEXT, "hash of its bytes; null if it could not be read, and for an object of an object store"),
        Column("changed", BOOLEAN, "whether it changed while the run read it, or was deleted"),
        Column(
            "segments",
            BIGINT,
            "TCP segments of the capture; null, like the columns below, for later files of a rotation",
        ),
        Column("first_time", MICROS, "capture time of the first segment"),
        Column("last_time", MICROS, "capture time of the last segment"),
        Column("skipped", COUNTS, "packets without a TCP segment, by reason"),
        Column("damaged", TEXT, "where and why reading stopped; null if it was read to the end"),
        Column("unreadable", TEXT, "why it could not be read at all; null if it could"),
    ),
    ("file",),
)

PACKETS = Table(
    "packets",
    "A TCP segment of a capture, or a note on a part of it that is not TCP. "
    "Input of the pipeline's streams, not an output.",
    (
        Column(
            "flow",
            BIGINT,
            "hash of the two addresses and the number of their capture's first file, the same for both directions",
        ),
        Column(
            "ts_us", BIGINT, "capture time, microseconds since the epoch; 0 for a note, -2⁶² if the capture has no time"
        ),
        Column("file_no", BIGINT, "number of the capture in the run, from 0"),
        Column("position", BIGINT, "byte offset of the payload, or of the note's bytes, in the capture"),
        Column("source", TEXT, "sender's address and port; null for a note"),
        Column("target", TEXT, "receiver's address and port; null for a note"),
        Column("sequence", BIGINT, "raw sequence number, 0 to 2³² - 1"),
        Column("acknowledgment", BIGINT, "raw acknowledgment number, 0 to 2³² - 1"),
        Column("flags", INT, "TCP flag bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16"),
        Column("length", BIGINT, "bytes of payload on the wire; for a note, bytes of the file that it refers to"),
        Column("payload", BINARY, "the bytes in the capture; for a note, at most the first MiB of them"),
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
