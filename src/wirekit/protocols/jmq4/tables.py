"""The tables of JMQ4, for both dialects. The consuming app is the group."""

from __future__ import annotations

from wirekit.schemas.jmq4.message import SYSTEM_CODE
from wirekit.tables import Asked, Except, First, Fixed, Messages, Named, Names, Rows, Tables, Total, Value

FRAME = "frame"
SUCCESS = 0
NONE = -1
"""The number that stands for no partition or no index."""

OF_GROUPS = (
    "ADD_CONSUMER",
    "REMOVE_CONSUMER",
    "FETCH_ASSIGNED_PARTITION",
    "FETCH_TOPIC_MESSAGE",
    "FETCH_PARTITION_MESSAGE",
    "COMMIT_ACK",
    "COMMIT_ACK_INDEX",
    "FETCH_INDEX",
)
APP = Named("app", Fixed("app"), "client")


def _error(path: str) -> dict[str, Value]:
    return {"error_code": Except(path, SUCCESS), "error": Except(path, SUCCESS)}


def _topics(kinds: str | tuple[str, ...], each: str, topic: str = ".topic", **columns: Value) -> Rows:
    """One row per topic."""
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    return Rows("call_topics", FRAME, {"topic": f"{each}{topic}", **columns}, each, kinds)


def _partitions(kinds: str | tuple[str, ...], topics: str, partitions: str, **columns: Value) -> Rows:
    """One row per partition, for lists of partitions inside lists of topics."""
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    each = f"{topics}.{partitions}"
    place = {"topic": f"{topics}.topic", "partition": f"{each}.partition"}
    return Rows("call_topics", FRAME, {**place, **columns}, each, kinds)


ASKED, ANSWERED = "payload.topics[].partitions[]", "payload.data[].partitions[]"
COMMITTED = "payload.topics[].partitions[].data[]"

CALL_TOPICS = (
    _topics(
        ("ADD_CONSUMER", "REMOVE_CONSUMER", "ADD_PRODUCER", "REMOVE_PRODUCER", "FETCH_CLUSTER", "FIND_COORDINATOR"),
        "payload.topics[]",
        "",
    ),
    _topics("ADD_CONSUMER_ACK", "payload.consumer_ids[]"),
    _topics("ADD_PRODUCER_ACK", "payload.producer_ids[]"),
    _topics("FETCH_CLUSTER_ACK", "payload.topics[]", ".topic_code", **_error("payload.topics[].code")),
    _topics("FIND_COORDINATOR_ACK", "payload.coordinators[]", **_error("payload.coordinators[].code")),
    _topics(("FETCH_ASSIGNED_PARTITION", "FETCH_TOPIC_MESSAGE"), "payload.topics[]"),
    _topics("FETCH_ASSIGNED_PARTITION_ACK", "payload.data[]", **_error("payload.data[].code")),
    _topics(
        "FETCH_TOPIC_MESSAGE_ACK",
        "payload.data[]",
        **_error("payload.data[].code"),
        bytes=Total("payload.data[].messages[].length"),
    ),
    _partitions(
        ("FETCH_PARTITION_MESSAGE", "COMMIT_ACK_INDEX"),
        "payload.topics[]",
        "partitions[]",
        log_offset=Except(f"{ASKED}.index", NONE),
    ),
    _partitions(
        "FETCH_PARTITION_MESSAGE_ACK",
        "payload.data[]",
        "partitions[]",
        **_error(f"{ANSWERED}.code"),
        bytes=Total(f"{ANSWERED}.messages[].length"),
    ),
    _partitions("COMMIT_ACK", "payload.topics[]", "partitions[]"),
    _partitions(
        ("COMMIT_ACK_ACK", "COMMIT_ACK_INDEX_ACK"),
        "payload.data[]",
        "partition_data[]",
        **_error("payload.data[].partition_data[].code"),
    ),
    Rows("call_topics", FRAME, {"topic": "payload.topics[].topic", "partition": ASKED}, ASKED, ("FETCH_INDEX",)),
    _partitions(
        "FETCH_INDEX_ACK", "payload.topics[]", "partitions[]", **_error(f"{ASKED}.code"), log_offset=f"{ASKED}.index"
    ),
    _topics("PRODUCE_MESSAGE", "payload.topics[]", bytes=Total("payload.topics[].messages[].length")),
    _topics(
        "PRODUCE_MESSAGE_ACK",
        "payload.data[]",
        **_error("payload.data[].code"),
        partition=Except("payload.data[].result[0].partition", NONE),
        log_offset=Except("payload.data[].result[0].index", NONE),
    ),
    Rows(
        "call_topics",
        FRAME,
        {"topic": "payload.topic"},
        kinds=(
            "PRODUCE_MESSAGE_PREPARE",
            "PRODUCE_MESSAGE_COMMIT",
            "PRODUCE_MESSAGE_ROLLBACK",
            "FETCH_PRODUCE_FEEDBACK",
        ),
    ),
)

CALLS = (
    Rows(
        "calls",
        FRAME,
        {
            "client": First("payload.app", Asked("payload.app"), APP),
            **_error("status"),
            "error_text": Except("error", ""),
        },
    ),
    Rows(
        "calls",
        FRAME,
        _error("payload.code"),
        kinds=(
            "FETCH_TOPIC_MESSAGE_ACK",
            "PRODUCE_MESSAGE_PREPARE_ACK",
            "PRODUCE_MESSAGE_COMMIT_ACK",
            "PRODUCE_MESSAGE_ROLLBACK_ACK",
            "FETCH_PRODUCE_FEEDBACK_ACK",
        ),
    ),
    Rows("calls", FRAME, {"group_id": "payload.app"}, kinds=OF_GROUPS),
    Rows(
        "connections",
        FRAME,
        {"client": "payload.app", "client_software": "payload.language", "client_version": "payload.version"},
        kinds=("ADD_CONNECTION",),
    ),
)

SUBSCRIBED: dict[str, Value] = {"group_id": "payload.app", "client": "payload.app", "topics": "payload.topics"}
GROUP_EVENTS = (
    Rows("group_events", FRAME, {"event": Fixed("subscribe"), **SUBSCRIBED}, kinds=("ADD_CONSUMER",)),
    Rows(
        "group_events",
        FRAME,
        {"event": Fixed("subscribe"), "member_id": "payload.consumer_ids[0].consumer_id"},
        kinds=("ADD_CONSUMER_ACK",),
    ),
    Rows("group_events", FRAME, {"event": Fixed("unsubscribe"), **SUBSCRIBED}, kinds=("REMOVE_CONSUMER",)),
)

OFFSETS = (
    Rows(
        "offsets",
        FRAME,
        {
            "group_id": "payload.app",
            "topic": "payload.topics[].topic",
            "partition": f"{COMMITTED}.partition",
            "log_offset": f"{COMMITTED}.index",
        },
        COMMITTED,
        ("COMMIT_ACK",),
    ),
    Rows(
        "offsets",
        FRAME,
        {
            "group_id": "payload.app",
            "topic": "payload.topics[].topic",
            "partition": f"{ASKED}.partition",
            "log_offset": f"{ASKED}.index",
        },
        ASKED,
        ("COMMIT_ACK_INDEX",),
    ),
)

MESSAGE_FIELDS = (
    *("partition", "index", "send_time", "business_id", "body", "body_crc", "body_crc.ok", "attributes", "app"),
    *("length", *(f"system_code.{name}" for name, _, _ in SYSTEM_CODE.fields)),
)
"""Fields that ``columns`` reads of each message."""


def _fields(topics: str, messages: str) -> tuple[str, ...]:
    return (f"{topics}.topic", *(f"{topics}.{messages}.{name}" for name in MESSAGE_FIELDS))


TABLES = Tables(
    kinds={FRAME: "type"},
    rows=(*CALLS, *CALL_TOPICS, *GROUP_EVENTS, *OFFSETS),
    names=(Names("app", FRAME, Fixed("app"), {"client": "payload.app"}, kinds=("ADD_CONNECTION",)),),
    messages=(
        Messages(
            FRAME,
            columns={"producer": "payload.app"},
            kinds=("PRODUCE_MESSAGE",),
            payloads=("payload.topics[].messages",),
            fields=_fields("payload.topics[]", "messages[]"),
            batches="wirekit.protocols.jmq4.columns:produced",
        ),
        Messages(
            FRAME,
            columns={"group_id": Asked("payload.app")},
            kinds=("FETCH_TOPIC_MESSAGE_ACK",),
            payloads=("payload.data[].messages",),
            fields=_fields("payload.data[]", "messages[]"),
            batches="wirekit.protocols.jmq4.columns:fetched_by_topic",
        ),
        Messages(
            FRAME,
            columns={"group_id": Asked("payload.app")},
            kinds=("FETCH_PARTITION_MESSAGE_ACK",),
            payloads=("payload.data[].partitions[].messages",),
            fields=_fields("payload.data[]", "partitions[].messages[]"),
            batches="wirekit.protocols.jmq4.columns:fetched_by_partition",
        ),
    ),
)
