"""Layouts of Kafka 0.8.0 to 0.10.2: messages, requests, responses, group metadata and files on disk.

Keys under ``kafka.``:

``request``, ``response``             any frame; a response needs context ``api`` and ``version``
``<api>.request.v<N>``, ``<api>.response.v<N>``    the frame of one API version, size and header included
``offset_commit.request.v0.beta``     what 0.8.2-beta sent as v0
``message_set.untimed``, ``produce.request.v<N>.untimed``, ``fetch.response.v<N>.untimed``
                                      magic 1 before the layout of magic 0, which 0.9 reads
``request_header``, ``response_header``    the fixed fields at the head of a frame
``client_header``                          those of a request, and the client id
``client_software``                   the rest of an ApiVersions request of v3 and later
``sasl_token``                        a raw token between SaslHandshake and the first request after it
``message_set``, ``message``          magic 0 and 1
``log_segment``, ``offset_index``, ``time_index``    files of a partition's directory
``offset_checkpoint``, ``meta_properties``    files of a broker's data directory
``consumer_offsets``                  key and value of a message in __consumer_offsets, each with its length
``consumer_offsets.key``, ``.value``, ``.offset_value``, ``.group_value``
                                      the same alone; ``.value`` needs context ``key_version``
``consumer_subscription``, ``consumer_assignment``    what consumers keep in JoinGroup and SyncGroup

``wirekit.protocols.kafka`` follows connections and reads messages; its modules are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from wirekit.registry import Layout, Note, Protocol
from wirekit.schemas.kafka import disk, embedded, frames, messages
from wirekit.schemas.kafka.apis import APIS
from wirekit.schemas.kafka.client_apis import FETCH, PRODUCE, UNTIMED_FETCHED, UNTIMED_PRODUCED
from wirekit.schemas.kafka.group_apis import OFFSET_COMMIT, OFFSET_COMMIT_BETA
from wirekit.wire import Limits

PAGE = "specification page"
TABLES = "Kafka 0.10.2 Protocol.java"
GROUPS = "Kafka 0.10.2 and 2.3 GroupMetadataManager.scala"
CONSUMER = "Kafka 0.10.2 ConsumerProtocol.java"

UNTIMED = (
    Note(
        "magic 1 without a timestamp: kafka-php's clients wrote it; 0.8 and 0.9 do not check the magic and read it",
        "Kafka 0.9.0.1 Message.scala; weiboad/kafka-php tests/Protocol/FetchTest.php",
    ),
)
NOTES = {
    "api_versions.request.v0": (
        Note("librdkafka 0.9 to 1.3 writes an empty array after the header: a gap of four bytes", "rdkafka_request.c"),
    ),
}


def _api_layouts() -> Iterator[tuple[str, Layout]]:
    for api in APIS:
        for number, version in enumerate(api.versions):
            history = f"since {version.since}" + (f": {version.adds}" if version.adds else "")
            for kind, node in (
                ("request", partial(frames.request, api, number, version.request)),
                ("response", partial(frames.response, version.response)),
            ):
                name = f"{api.name}.{kind}.v{number}"
                yield name, Layout(node, f"{api.title}; {kind} v{number}, {history}", TABLES, NOTES.get(name, ()))


def _untimed_layouts() -> Iterator[tuple[str, Layout]]:
    """Sets with magic 1 before the layout of magic 0, and the frames that may contain them."""
    nodes: dict[str, Any] = {"message_set": messages.UNTIMED_MESSAGE_SET}
    for number in (0, 1):
        nodes[f"produce.request.v{number}"] = partial(frames.request, PRODUCE, number, UNTIMED_PRODUCED)
        nodes[f"fetch.response.v{number}"] = partial(frames.response, UNTIMED_FETCHED[number])
    for name, node in nodes.items():
        text = f"{name} whose messages have magic 1 and the layout of magic 0"
        yield f"{name}.untimed", Layout(node, text, "Kafka 0.9.0.1 Message.scala", variant_of=name, notes=UNTIMED)


def _of_messages() -> Iterator[str]:
    """The layouts with message sets, in which messages are searched after a wrong size, and segments."""
    yield from ("request", "response", "message_set", "log_segment")
    for api, kind in ((PRODUCE, "request"), (FETCH, "response")):
        yield from (f"{api.name}.{kind}.v{number}" for number in range(len(api.versions)))


PROTOCOL = Protocol(
    name="kafka",
    title="Kafka 0.8.0 to 0.10.2",
    layouts={
        "request": Layout(frames.REQUEST, "a request of any API", PAGE),
        "response": Layout(frames.RESPONSE, "a response; the context api and version selects its body", PAGE),
        "request_header": Layout(frames.REQUEST_HEADER, "size, API, version and correlation id of a request", PAGE),
        "client_header": Layout(frames.CLIENT_HEADER, "the same, and the client id", PAGE),
        "response_header": Layout(frames.RESPONSE_HEADER, "size and correlation id of a response", PAGE),
        "client_software": Layout(
            frames.CLIENT_SOFTWARE,
            "the bytes after the client id in ApiVersions v3 and later, which newer clients send to any broker",
            "Kafka 2.4 ApiVersionsRequest.json",
        ),
        "sasl_token": Layout(
            frames.SASL_TOKEN, "a raw token of a SASL mechanism", "Kafka 0.10.2 SaslServerAuthenticator.java"
        ),
        **dict(_api_layouts()),
        "offset_commit.request.v0.beta": Layout(
            partial(frames.request, OFFSET_COMMIT, 0, OFFSET_COMMIT_BETA),
            "OffsetCommit; request v0 as 0.8.2-beta alone has it: with a timestamp",
            "Kafka 0.8.2-beta OffsetCommitRequest.scala",
            variant_of="offset_commit.request.v0",
        ),
        **dict(_untimed_layouts()),
        "message_set": Layout(
            messages.MESSAGE_SET, "messages of magic 0 and 1 up to the end", "Kafka 0.10.2 MemoryRecords.java"
        ),
        "message": Layout(messages.MESSAGE, "one message, without offset and size", "Kafka 0.10.2 Record.java"),
        "log_entry": Layout(
            messages.ENTRY,
            "a message with its offset, as in message sets and segments",
            "Kafka 0.10.2 MessageSet.scala",
        ),
        "log_segment": Layout(disk.LOG_SEGMENT, "a .log file", "Kafka 0.10.2 FileMessageSet.scala"),
        "offset_index": Layout(disk.OFFSET_INDEX, "a .index file", "Kafka 0.10.2 OffsetIndex.scala"),
        "time_index": Layout(disk.TIME_INDEX, "a .timeindex file, since 0.10.1", "Kafka 0.10.2 TimeIndex.scala"),
        "offset_checkpoint": Layout(
            disk.OFFSET_CHECKPOINT,
            "a recovery-point-, replication- or cleaner-offset-checkpoint file",
            "Kafka 0.10.2 OffsetCheckpoint.scala",
        ),
        "meta_properties": Layout(
            disk.PROPERTIES, "a meta.properties file, since 0.8.2", "Kafka 0.10.2 BrokerMetadataCheckpoint.scala"
        ),
        "consumer_offsets": Layout(
            embedded.CONSUMER_OFFSETS, "key and value of a message in __consumer_offsets, with their lengths", GROUPS
        ),
        "consumer_offsets.key": Layout(embedded.KEY, "the key of a message in __consumer_offsets", GROUPS),
        "consumer_offsets.value": Layout(
            embedded.VALUE,
            "the value of a message in __consumer_offsets; the context key_version selects its layout",
            GROUPS,
        ),
        "consumer_offsets.offset_value": Layout(embedded.OFFSET_VALUE, "a committed offset", GROUPS),
        "consumer_offsets.group_value": Layout(embedded.GROUP_VALUE, "the metadata of a group", GROUPS),
        "consumer_subscription": Layout(
            embedded.CONSUMER_SUBSCRIPTION, "the subscription that a consumer sends when it joins a group", CONSUMER
        ),
        "consumer_assignment": Layout(
            embedded.CONSUMER_ASSIGNMENT, "the partitions that the leader of a group assigns to a member", CONSUMER
        ),
    },
    client="request",
    server="response",
    recognised_by=("request", "offset_commit.request.v0.beta"),
    limits=Limits(frame=100 * 1024 * 1024),
    ports=(9092,),
    stored={"log_segment": "wirekit.protocols.kafka.segment_file:pieces_of_file"},
    stored_columns={"log_segment": "wirekit.protocols.kafka.columns:pieces_of_file"},
    stored_walks={"log_segment": "wirekit.protocols.kafka.columns:walk"},
    stored_names={
        "log_segment": r"\d{20}\.log",
        "offset_index": r"\d{20}\.index",
        "time_index": r"\d{20}\.timeindex",
        "offset_checkpoint": r"(recovery-point|replication|cleaner)-offset-checkpoint",
        "meta_properties": r"meta\.properties",
    },
    stored_topics={"log_segment": "wirekit.protocols.kafka.segment_file:topic_of_file"},
    examined=dict.fromkeys(_of_messages(), "wirekit.protocols.kafka.dialogue:examine"),
    directory="wirekit.protocols.kafka.data_directory:check",
    built=dict.fromkeys(("message_set", "log_segment"), "wirekit.protocols.kafka.columns_build:build"),
    dialogue="wirekit.protocols.kafka.dialogue:KafkaDialogue",
    tables="wirekit.protocols.kafka.tables:TABLES",
    pairing="wirekit.protocols.kafka.pairing:PAIRING",
    rules="wirekit.protocols.kafka.rules:RULES",
)
