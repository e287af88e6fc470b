"""The tables of Kafka's frames and of ``__consumer_offsets``."""

from __future__ import annotations

from wirekit.protocols.kafka.reading import ENTRY_HEAD
from wirekit.schemas.kafka.admin_apis import API_VERSIONS
from wirekit.tables import (
    Asked,
    Elements,
    Embedded,
    Except,
    First,
    Fixed,
    Inside,
    Messages,
    Rows,
    Tables,
    Total,
    Value,
)
from wirekit.wire import this

NONE = 0
"""The error code of success."""
UNKNOWN = -1
"""The number that stands for no offset or no time."""
GROUPS = "__consumer_offsets"
NAMES_LIBRARY = 3
"""The first version of ApiVersions in which a client names its library."""


def _error(path: str) -> dict[str, Value]:
    return {"error_code": Except(path, NONE), "error": Except(path, NONE)}


SET_FIELDS = (
    "offset",
    "message_size",
    *(f"message.{name}" for name in ("crc", "magic", "timestamp", "key", "value")),
    *(f"message.attributes.{name}" for name in ("codec", "timestamp_type", "reserved")),
)
"""Fields that ``columns`` reads of each message in a set."""


def fields_of_set(place: str) -> tuple[str, ...]:
    """The fields of the messages in partitions at a path."""
    return tuple(f"{place}.record_set.messages[].{name}" for name in SET_FIELDS)


def _topics(layout: str, topics: str, **columns: Value) -> Rows:
    """One row per topic."""
    return Rows("call_topics", layout, {"topic": f"{topics}.topic", **columns}, topics)


def _partitions(layout: str, topics: str, partitions: str, **columns: Value) -> Rows:
    """One row per partition, for lists of partitions inside lists of topics."""
    each = f"{topics}.{partitions}"
    inside = {name: f"{each}.{value}" if isinstance(value, str) else value for name, value in columns.items()}
    return Rows("call_topics", layout, {"topic": f"{topics}.topic", "partition": f"{each}.partition", **inside}, each)


def _bytes(record_set: str) -> Total:
    return Total(f"{record_set}.messages[].message_size", ENTRY_HEAD)


PRODUCED, PRODUCED_ANSWER = "body.topic_data[].data[]", "body.responses[].partition_responses[]"
ANSWERS = ("body.responses[]", "partition_responses[]")
FAILED = _error(f"{PRODUCED_ANSWER}.error_code")

CALLS = (
    Rows("calls", ("*.request.v*", "request"), {"client": "client_id"}),
    Rows("calls", "produce.request.v*", {"acks": "body.acks"}),
    Rows("calls", ("fetch.request.v*", "list_offsets.request.v*"), {"is_replica": this.body.replica_id >= 0}),
    Rows("calls", ("offset_*.request.v*", "*group*.request.v*", "heartbeat.request.v*"), {"group_id": "body.group_id"}),
    Rows("calls", "*.response.v*", {"throttle_ms": "body.throttle_time_ms", **_error("body.error_code")}),
    Rows("calls", "create_topics.response.v*", {"error_text": "body.topic_errors[0].error_message"}),
    Rows("connections", ("*.request.v*", "request"), {"client": "client_id"}),
    Rows(
        "connections",
        "request",
        {
            "client_software": Inside("body", "client_software", "name"),
            "client_version": Inside("body", "client_software", "version"),
        },
        when=(this.api_key == API_VERSIONS.key) & (this.api_version >= NAMES_LIBRARY),
    ),
)

CALL_TOPICS = (
    _partitions("produce.request.v*", "body.topic_data[]", "data[]", bytes=_bytes(f"{PRODUCED}.record_set")),
    _partitions(
        "produce.response.v*", *ANSWERS, **FAILED, log_offset=Except(f"{PRODUCED_ANSWER}.base_offset", UNKNOWN)
    ),
    _partitions("fetch.request.v*", "body.topics[]", "partitions[]", log_offset="fetch_offset"),
    _partitions(
        "fetch.response.v*",
        *ANSWERS,
        **FAILED,
        high_watermark=Except(f"{PRODUCED_ANSWER}.high_watermark", UNKNOWN),
        bytes=_bytes(f"{PRODUCED_ANSWER}.record_set"),
    ),
    _partitions("list_offsets.request.v*", "body.topics[]", "partitions[]"),
    _partitions(
        "list_offsets.response.v*",
        *ANSWERS,
        **FAILED,
        log_offset=First(Except(f"{PRODUCED_ANSWER}.offset", UNKNOWN), f"{PRODUCED_ANSWER}.offsets[0]"),
    ),
    Rows("call_topics", "metadata.request.v*", {"topic": "body.topics[]"}, "body.topics[]"),
    _topics("metadata.response.v*", "body.topic_metadata[]", **_error("body.topic_metadata[].topic_error_code")),
    *(
        Rows("call_topics", layout, {"topic": f"{each}.topic", "partition": f"{each}.partition", **columns}, each)
        for layout, each, columns in (
            ("leader_and_isr.request.v*", "body.partition_states[]", {}),
            ("leader_and_isr.response.v*", "body.partitions[]", _error("body.partitions[].error_code")),
            ("stop_replica.request.v*", "body.partitions[]", {}),
            ("stop_replica.response.v*", "body.partitions[]", _error("body.partitions[].error_code")),
            ("update_metadata.request.v*", "body.partition_states[]", {}),
            ("controlled_shutdown.response.v*", "body.partitions_remaining[]", {}),
        )
    ),
    _partitions("offset_commit.request.v*", "body.topics[]", "partitions[]", log_offset="offset"),
    _partitions("offset_commit.response.v*", *ANSWERS, **FAILED),
    _partitions("offset_fetch.request.v*", "body.topics[]", "partitions[]"),
    _partitions(
        "offset_fetch.response.v*", *ANSWERS, **FAILED, log_offset=Except(f"{PRODUCED_ANSWER}.offset", UNKNOWN)
    ),
    _topics("create_topics.request.v*", "body.create_topic_requests[]"),
    _topics("create_topics.response.v*", "body.topic_errors[]", **_error("body.topic_errors[].error_code")),
    Rows("call_topics", "delete_topics.request.v*", {"topic": "body.topics[]"}, "body.topics[]"),
    _topics("delete_topics.response.v*", "body.topic_error_codes[]", **_error("body.topic_error_codes[].error_code")),
)


def _assignment(path: str) -> Inside:
    each = "topic_partitions[].partitions[]"
    return Inside(path, "consumer_assignment", Elements(each, {"topic": "topic_partitions[].topic", "partition": each}))


JOIN: dict[str, Value] = {
    "event": Fixed("join"),
    "group_id": "body.group_id",
    "member_id": Except("body.member_id", ""),
    "client": "client_id",
}
SUBSCRIPTION = Inside("body.group_protocols[0].protocol_metadata", "consumer_subscription", "topics")
MEMBER: dict[str, Value] = {"group_id": "body.group_id", "member_id": "body.member_id", "client": "client_id"}

GROUP_EVENTS = (
    Rows(
        "group_events",
        "join_group.request.v*",
        {**JOIN, "topics": SUBSCRIPTION},
        when=this.body.protocol_type == "consumer",
    ),
    Rows("group_events", "join_group.request.v*", JOIN, when=this.body.protocol_type != "consumer"),
    Rows(
        "group_events",
        "join_group.response.v*",
        {
            "event": Fixed("join"),
            "member_id": Except("body.member_id", ""),
            "generation": Except("body.generation_id", UNKNOWN),
            **_error("body.error_code"),
        },
    ),
    Rows(
        "group_events",
        "sync_group.request.v*",
        {**MEMBER, "event": Fixed("sync"), "generation": "body.generation_id"},
    ),
    Rows(
        "group_events",
        "sync_group.response.v*",
        {"event": Fixed("sync"), "assignment": _assignment("body.member_assignment"), **_error("body.error_code")},
    ),
    Rows("group_events", "leave_group.request.v*", {**MEMBER, "event": Fixed("leave")}),
    Rows(
        "group_events",
        "heartbeat.response.v*",
        {
            **{name: Asked(path) for name, path in MEMBER.items()},
            "event": Fixed("heartbeat failed"),
            "generation": Asked("body.group_generation_id"),
            **_error("body.error_code"),
        },
        when=this.body.error_code != NONE,
    ),
)

COMMITTED = "body.topics[].partitions[]"
OFFSETS = (
    Rows(
        "offsets",
        "offset_commit.request.v*",
        {
            "group_id": "body.group_id",
            "topic": "body.topics[].topic",
            "partition": f"{COMMITTED}.partition",
            "log_offset": f"{COMMITTED}.offset",
            "metadata": f"{COMMITTED}.metadata",
            "commit_time": Except(f"{COMMITTED}.timestamp", UNKNOWN),
        },
        COMMITTED,
    ),
)

STORED_MEMBER: dict[str, Value] = {
    "event": Fixed("stored"),
    "group_id": "key.group",
    "generation": "value.generation",
    "member_id": "value.members[].member_id",
    "client": "value.members[].client_id",
    "client_host": "value.members[].client_host",
}
STORED_TOPICS: dict[str, Value] = {
    "topics": Inside("value.members[].subscription", "consumer_subscription", "topics"),
    "assignment": _assignment("value.members[].assignment"),
}
KEY, GROUP_VALUE = "consumer_offsets.key", "consumer_offsets.group_value"
IS_GROUP = this.key.version == 2

TABLES = Tables(
    rows=(*CALLS, *CALL_TOPICS, *GROUP_EVENTS, *OFFSETS),
    messages=(
        Messages(
            "produce.request.v*",
            payloads=(f"{PRODUCED}.record_set",),
            fields=fields_of_set(PRODUCED),
            batches="wirekit.protocols.kafka.columns:produced",
        ),
        Messages(
            "fetch.response.v*",
            payloads=(f"{PRODUCED_ANSWER}.record_set",),
            fields=(*fields_of_set(PRODUCED_ANSWER), f"{PRODUCED_ANSWER}.record_set.partial"),
            batches="wirekit.protocols.kafka.columns:fetched",
        ),
    ),
    embedded=(
        Embedded(
            "offsets",
            GROUPS,
            KEY,
            "consumer_offsets.offset_value",
            {
                "group_id": "key.group",
                "topic": "key.topic",
                "partition": "key.partition",
                "log_offset": "value.offset",
                "metadata": "value.metadata",
                "commit_time": First("value.commit_timestamp", "value.timestamp"),
                "expire_time": Except("value.expire_timestamp", UNKNOWN),
            },
            when=this.key.version <= 1,
        ),
        Embedded(
            "group_events",
            GROUPS,
            KEY,
            GROUP_VALUE,
            {**STORED_MEMBER, **STORED_TOPICS},
            "value.members[]",
            IS_GROUP & (this.value.protocol_type == "consumer"),
        ),
        Embedded(
            "group_events",
            GROUPS,
            KEY,
            GROUP_VALUE,
            STORED_MEMBER,
            "value.members[]",
            First(IS_GROUP & (this.value.protocol_type != "consumer"), IS_GROUP & (this.value.version >= 0)),
        ),
        Embedded(
            "group_events",
            GROUPS,
            KEY,
            "",
            {"event": Fixed("deleted"), "group_id": "key.group"},
            when=IS_GROUP,
        ),
    ),
)
