"""Where the document and JoyQueue disagree, and how both dialects resolve open points, each with its source.

``wirekit schemas KEY`` shows the differences of a layout. Sources are below JoyQueue's network module, at ``a88914c5``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wirekit.registry import Layout, Note


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        part: ``header``, ``message``, ``batch``, or the key of a payload.
        field: the field or property of it.
        document: the statement of the document.
        code: the behaviour of JoyQueue.
        source: the place in JoyQueue's source.
        both: whether both dialects follow JoyQueue, because the document is silent or contradicts itself.
    """

    part: str
    field: str
    document: str
    code: str
    source: str
    both: bool = False

    @property
    def text(self) -> str:
        """The difference as one sentence."""
        does = "both dialects" if self.both else "JoyQueue"
        return f"{self.field}: the document: {self.document}; {does}: {self.code}"


DIFFERENCES = (
    Difference("header", "version", "always 2", "1 to 4 (4.2.x writes 3)", "JoyQueueHeader.java:34-39"),
    Difference(
        "header",
        "qos_level",
        "0 ACK_FLUSH, 1 ACK_RECEIVE, 2 ACK_NO, 3 ACK_WRITE",
        "0 ONE_WAY (nobody answers), 1 RECEIVE, 2 PERSISTENCE (flushed), 3 REPLICATION (0 and 2 swap "
        "their meaning; these names stand in both dialects)",
        "QosLevel.java:33-37",
    ),
    Difference(
        "header",
        "qos_level",
        "3, ACK_WRITE, is answered when the message is flushed to disk",
        "2 is answered then; 3 is answered when the message is replicated",
        "QosLevel.java:33-37",
    ),
    Difference(
        "header",
        "qos_level",
        "two bits for four values",
        "a fifth value, ALL (4), which becomes ONE_WAY (0) in two bits",
        "JoyQueueHeaderCodec.java:75",
    ),
    Difference("message", "magic", "no such field", "0x1234", "Serializer.java:153-226"),
    Difference("message", "client_ip", "no such field", "16 bytes", "Serializer.java:153-226"),
    Difference("message", "business_id, app", "STRING", "strings with a one-byte length", "Serializer.java:153-226"),
    Difference(
        "message",
        "system_code.compression",
        "0 snappy, 1 zip, 2 zlib",
        "0 none, 1 zip, 2 zlib, 3 snappy",
        "Message.java:521-529",
    ),
    Difference(
        "message", "system_code.address_type", "0 IPv4, 1 IPv6", "1 IPv4, 0 anything else", "Serializer.java:177-179"
    ),
    Difference(
        "batch",
        "length, count",
        "INT total length, ARRAY of messages",
        "neither field",
        "BatchMessageSerializer.java:72-89",
    ),
    Difference("batch", "business_id", "BYTES", "a string with a one-byte length", "BatchMessageSerializer.java:72-89"),
    Difference(
        "add_connection.request",
        "strings",
        "STRING",
        "a one-byte length, all nine",
        "AddConnectionRequestCodec.java:41-52",
    ),
    Difference(
        "add_connection.request",
        "language",
        "no such field",
        "BYTE after namespace",
        "AddConnectionRequestCodec.java:61-72",
    ),
    Difference(
        "add_connection.request",
        "app, token, version, ip",
        "not nullable, unlike username, password, region and namespace",
        "any string may be null, which is a length of 0 like the empty one",
        "Serializer.java:850-867, 988-1027",
    ),
    Difference(
        "add_connection.response",
        "connection_id",
        "STRING",
        "a one-byte length",
        "AddConnectionResponseCodec.java:37-44",
    ),
    Difference("fetch_cluster.response", "topic type", "INT", "BYTE", "FetchClusterResponseCodec.java:128"),
    Difference("fetch_cluster.response", "partition id", "INT", "SHORT", "FetchClusterResponseCodec.java:146"),
    Difference(
        "fetch_cluster.response",
        "concurrent consume",
        "a BOOLEAN with a meaning",
        "always 0, ignored by readers",
        "FetchClusterResponseCodec.java:111, 244",
    ),
    Difference(
        "fetch_cluster.response",
        "end of a broker",
        "weight",
        "since version 2 INT sys_code, INT permission",
        "FetchClusterResponseCodec.java:178-181",
    ),
    Difference(
        "fetch_cluster.response",
        "end of a topic",
        "code",
        "since version 4 ARRAY of params",
        "FetchClusterResponseCodec.java:154-165",
    ),
    Difference(
        "fetch_topic_message.response",
        "code",
        "no such field",
        "INT for each topic",
        "FetchTopicMessageResponseCodec.java:54-74",
    ),
    Difference(
        "commit_ack.response",
        "count",
        "of topics",
        "of (topic, partition) pairs (its own reader fails where a topic has several)",
        "CommitAckResponseCodec.java:60",
    ),
    Difference(
        "fetch_index.response",
        "left_index, right_index",
        "no such fields",
        "LONG, LONG after code, since version 3",
        "FetchIndexResponseCodec.java:54-57",
    ),
    Difference(
        "produce_message_prepare.request",
        "timeout",
        "no such field",
        "INT",
        "ProduceMessagePrepareRequestCodec.java:41-51",
    ),
    Difference(
        "fetch_produce_feedback.request",
        "count, long_poll_timeout",
        "INT, LONG",
        "INT long_poll_timeout only",
        "FetchProduceFeedbackRequestCodec.java:40-50",
    ),
    Difference(
        "header",
        "length",
        "bytes of the whole payload, these four included",
        "the whole frame, header and these four included",
        "DefaultEncoder.java:56, 84-86",
        both=True,
    ),
    Difference(
        "header",
        "identity, system_code",
        "bits are counted from an unspecified end",
        "from the least significant one",
        "JoyQueueHeaderCodec.java:53-54, 75",
        both=True,
    ),
    Difference(
        "header",
        "type",
        "no command that has only a status",
        "-128, BOOLEAN_ACK, without content",
        "BooleanAck.java:43-80",
        both=True,
    ),
    Difference(
        "header", "type", "-5 REMOVE_PRODUCER_ACK", "-5 ADD_PRODUCER_ACK", "JoyQueueCommandType.java:38", both=True
    ),
    Difference(
        "header",
        "type",
        "-21 FETCH_ASSIGNED_PARTITION, like 21",
        "-21 FETCH_ASSIGNED_PARTITION_ACK",
        "JoyQueueCommandType.java:52",
        both=True,
    ),
    Difference(
        "header",
        "type",
        "34 FETCH_ACK_INDEX and -34, without a layout",
        "only the names are known, and any payload is a gap; JoyQueue has no codec for them and closes the connection",
        "JoyQueueCommandType.java:63-64",
        both=True,
    ),
    Difference(
        "message",
        "system_code.source",
        "five values in two bits",
        "two bits; 4 is refused when building",
        "Serializer.java:169-182",
        both=True,
    ),
    Difference(
        "message",
        "body_crc",
        "does not specify the covered bytes",
        "CRC-32 of the body as it is sent",
        "Message.java:296-301",
        both=True,
    ),
    Difference(
        "batch",
        "length",
        "does not specify the counted bytes",
        "itself too, like every length here",
        "no code has one",
        both=True,
    ),
    Difference(
        "produce_message.request",
        "qos_level",
        "0 ACK_FLUSH, 1 ACK_RECEIVE, 2 ACK_NO, 3 ACK_WRITE",
        "those of the header, and 4 ALL, in a whole byte; any other number reads as 3 REPLICATION",
        "QosLevel.java:33-62",
        both=True,
    ),
    Difference(
        "produce_message.request",
        "tx_id, timeout",
        "no types",
        "STRING, INT",
        "ProduceMessageRequestCodec.java:82-83",
        both=True,
    ),
    Difference(
        "fetch_cluster.response",
        "policies",
        "no types for presence flags and black lists",
        "BOOLEAN, ARRAY of STRING",
        "FetchClusterResponseCodec.java:80, 94, 262-279",
        both=True,
    ),
    Difference(
        "commit_ack_index.request",
        "payload",
        "no layout",
        "that of JoyQueue 4.2.7",
        "CommitIndexRequestCodec.java",
        both=True,
    ),
    Difference(
        "commit_ack_index.response",
        "payload",
        "no layout",
        "that of JoyQueue 4.2.7",
        "CommitIndexResponseCodec.java:44",
        both=True,
    ),
)

PARTS = {
    "message_opened": ("message", "batch"),
    "produce_message.request": ("produce_message.request", "message"),
    "fetch_topic_message.response": ("fetch_topic_message.response", "message"),
    "fetch_partition_message.response": ("fetch_partition_message.response", "message"),
}
"""Further parts that a layout contains."""


def noted(layouts: Mapping[str, Layout]) -> dict[str, Layout]:
    """The layouts with their notes; a frame has all notes except those of a batch, which is inside a body."""
    return {name: Layout(x.node, x.description, x.source, tuple(_notes(name))) for name, x in layouts.items()}


def _notes(name: str) -> list[Note]:
    frame = name.startswith("frame")
    parts = {x.part for x in DIFFERENCES} - {"batch"} if frame else set(PARTS.get(name, (name,)))
    if name == "frame_opened":
        parts.add("batch")
    return [
        Note(f"{x.part}: {x.text}" if frame and x.part != "header" else x.text, x.source)
        for x in DIFFERENCES
        if x.part in parts
    ]
