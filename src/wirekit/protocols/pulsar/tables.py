"""The tables of Pulsar. Subscriptions are groups; producers and consumers name clients."""

from __future__ import annotations

from wirekit.tables import (
    Asked,
    Except,
    Extract,
    First,
    Fixed,
    Messages,
    Named,
    Names,
    Present,
    Rows,
    Tables,
    Text,
    Value,
)
from wirekit.wire import this

FRAME = "frame"
PARTITION = r"-partition-(\d+)\Z"
VERSION = r"v?(\d[\w.+-]*)$"

FAILURES = {
    "ERROR": ("error", "error", "message"),
    "SEND_ERROR": ("send_error", "error", "message"),
    "PARTITIONED_METADATA_RESPONSE": ("partitionMetadataResponse", "error", "message"),
    "LOOKUP_RESPONSE": ("lookupTopicResponse", "error", "message"),
    "CONSUMER_STATS_RESPONSE": ("consumerStatsResponse", "error_code", "error_message"),
    "GET_SCHEMA_RESPONSE": ("getSchemaResponse", "error_code", "error_message"),
    "GET_OR_CREATE_SCHEMA_RESPONSE": ("getOrCreateSchemaResponse", "error_code", "error_message"),
    "ACK_RESPONSE": ("ackResponse", "error", "message"),
    "NEW_TXN_RESPONSE": ("newTxnResponse", "error", "message"),
    "ADD_PARTITION_TO_TXN_RESPONSE": ("addPartitionToTxnResponse", "error", "message"),
    "ADD_SUBSCRIPTION_TO_TXN_RESPONSE": ("addSubscriptionToTxnResponse", "error", "message"),
    "END_TXN_RESPONSE": ("endTxnResponse", "error", "message"),
    "END_TXN_ON_PARTITION_RESPONSE": ("endTxnOnPartitionResponse", "error", "message"),
    "END_TXN_ON_SUBSCRIPTION_RESPONSE": ("endTxnOnSubscriptionResponse", "error", "message"),
    "TC_CLIENT_CONNECT_RESPONSE": ("tcClientConnectResponse", "error", "message"),
    "SCALABLE_TOPIC_SUBSCRIBE_RESPONSE": ("scalableTopicSubscribeResponse", "error", "message"),
}
"""{type: (its field, in it the field of the error, and that of its text)} of the commands that may report an error."""

OF_PRODUCERS = {"SEND": "send", "SEND_RECEIPT": "send_receipt", "SEND_ERROR": "send_error"}
"""{type: field} of the commands that name a producer by its id."""
CLOSE_PRODUCER = {"CLOSE_PRODUCER": "close_producer"}
OF_CONSUMERS = {
    "MESSAGE": "message",
    "ACK": "ack",
    "ACK_RESPONSE": "ackResponse",
    "FLOW": "flow",
    "UNSUBSCRIBE": "unsubscribe",
    "CLOSE_CONSUMER": "close_consumer",
    "REDELIVER_UNACKNOWLEDGED_MESSAGES": "redeliverUnacknowledgedMessages",
    "CONSUMER_STATS": "consumerStats",
    "REACHED_END_OF_TOPIC": "reachedEndOfTopic",
    "SEEK": "seek",
    "GET_LAST_MESSAGE_ID": "getLastMessageId",
    "ACTIVE_CONSUMER_CHANGE": "active_consumer_change",
}
"""{type: field} of the commands that name a consumer by its id."""
OF_TOPICS = {
    "PRODUCER": "producer",
    "SUBSCRIBE": "subscribe",
    "LOOKUP": "lookupTopic",
    "PARTITIONED_METADATA": "partitionMetadata",
    "GET_SCHEMA": "getSchema",
    "GET_OR_CREATE_SCHEMA": "getOrCreateSchema",
    "END_TXN_ON_PARTITION": "endTxnOnPartition",
    "SCALABLE_TOPIC_LOOKUP": "scalableTopicLookup",
    "SCALABLE_TOPIC_SUBSCRIBE": "scalableTopicSubscribe",
}
"""{type: field} of the commands that contain the topic's name."""
TOPIC_LISTS = (
    ("ADD_PARTITION_TO_TXN", "command.addPartitionToTxn.partitions[]", ""),
    ("ADD_SUBSCRIPTION_TO_TXN", "command.addSubscriptionToTxn.subscription[]", ".topic"),
    ("WATCH_TOPIC_UPDATE", "command.watchTopicUpdate.new_topics[]", ""),
    ("WATCH_TOPIC_UPDATE", "command.watchTopicUpdate.deleted_topics[]", ""),
)
"""(type, a list, its elements' field with the name of a topic) of the commands that name several topics."""
MIGRATED = "command.topicMigrated"
ENDED_SUBSCRIPTION = "command.endTxnOnSubscription.subscription"


def _producer(field: str, column: str) -> Named:
    return Named("producer", f"command.{field}.producer_id", column)


def _consumer(field: str, column: str) -> Named:
    return Named("consumer", f"command.{field}.consumer_id", column)


def _topic_rows(kind: str, topic: Value, **columns: Value) -> tuple[Rows, Rows]:
    """A command that refers to one topic."""
    return (
        Rows("calls", FRAME, {"topic": topic, **columns}, kinds=(kind,)),
        Rows("call_topics", FRAME, {"topic": topic, "partition": Extract(topic, PARTITION)}, kinds=(kind,)),
    )


def _topic_list(kind: str, each: str, field: str) -> Rows:
    """A command that refers to the topics of a list."""
    topic = f"{each}{field}"
    return Rows("call_topics", FRAME, {"topic": topic, "partition": Extract(topic, PARTITION)}, each, (kind,))


def _migrated(kind: int, resource: str, *more: str) -> tuple[Rows, Rows]:
    """TOPIC_MIGRATED, which names a producer or a consumer by its id."""
    topic, *others = (Named(resource, f"{MIGRATED}.resource_id", column) for column in ("topic", "client", *more))
    when = this.command.topicMigrated.resource_type == kind
    columns = dict(zip(("client", *more), others, strict=True))
    return (
        Rows("calls", FRAME, {"topic": topic, **columns}, kinds=("TOPIC_MIGRATED",), when=when),
        Rows(
            "call_topics",
            FRAME,
            {"topic": topic, "partition": Extract(topic, PARTITION)},
            kinds=("TOPIC_MIGRATED",),
            when=when,
        ),
    )


CALLS = (
    Rows(
        "calls",
        FRAME,
        {
            "error_code": First(*(f"command.{field}.{code}" for field, code, _ in FAILURES.values())),
            "error": First(*(f"command.{field}.{code}" for field, code, _ in FAILURES.values())),
            "error_text": First(*(f"command.{field}.{text}" for field, _, text in FAILURES.values())),
        },
        kinds=tuple(FAILURES),
    ),
    *(
        row
        for kind, field in (OF_PRODUCERS | CLOSE_PRODUCER).items()
        for row in _topic_rows(kind, _producer(field, "topic"), client=_producer(field, "client"))
    ),
    *(
        row
        for kind, field in OF_CONSUMERS.items()
        for row in _topic_rows(
            kind, _consumer(field, "topic"), client=_consumer(field, "client"), group_id=_consumer(field, "group_id")
        )
    ),
    *(row for kind, field in OF_TOPICS.items() for row in _topic_rows(kind, f"command.{field}.topic")),
    *_topic_rows("PRODUCER_SUCCESS", Asked("command.producer.topic")),
    *(_topic_list(*place) for place in TOPIC_LISTS),
    *_migrated(0, "producer"),
    *_migrated(1, "consumer", "group_id"),
    *_topic_rows(
        "END_TXN_ON_SUBSCRIPTION",
        f"{ENDED_SUBSCRIPTION}.topic",
        group_id=f"{ENDED_SUBSCRIPTION}.subscription",
    ),
    Rows(
        "calls",
        FRAME,
        {"group_id": "command.addSubscriptionToTxn.subscription[0].subscription"},
        kinds=("ADD_SUBSCRIPTION_TO_TXN",),
    ),
    Rows("calls", FRAME, {"client": "command.producer.producer_name"}, kinds=("PRODUCER",)),
    Rows("calls", FRAME, {"client": "command.producer_success.producer_name"}, kinds=("PRODUCER_SUCCESS",)),
    Rows(
        "calls",
        FRAME,
        {"client": "command.subscribe.consumer_name", "group_id": "command.subscribe.subscription"},
        kinds=("SUBSCRIBE",),
    ),
)

CONNECTIONS = (
    Rows(
        "connections",
        FRAME,
        {
            "client_software": "command.connect.client_version",
            "client_version": Extract("command.connect.client_version", VERSION),
            "protocol_version": "command.connect.protocol_version",
        },
        kinds=("CONNECT",),
    ),
    Rows("connections", FRAME, {"server_software": "command.connected.server_version"}, kinds=("CONNECTED",)),
    Rows("connections", FRAME, {"client": "command.producer.producer_name"}, kinds=("PRODUCER",)),
    Rows("connections", FRAME, {"client": "command.producer_success.producer_name"}, kinds=("PRODUCER_SUCCESS",)),
    Rows("connections", FRAME, {"client": "command.subscribe.consumer_name"}, kinds=("SUBSCRIBE",)),
)


def _event(kind: str, event: str, when: Value = None) -> Rows:
    field = OF_CONSUMERS[kind]
    return Rows(
        "group_events",
        FRAME,
        {
            "event": Fixed(event),
            "group_id": _consumer(field, "group_id"),
            "member_id": f"command.{field}.consumer_id",
            "client": _consumer(field, "client"),
            "topics": _consumer(field, "topic"),
        },
        kinds=(kind,),
        when=when,
    )


GROUP_EVENTS = (
    Rows(
        "group_events",
        FRAME,
        {
            "event": Fixed("subscribe"),
            "group_id": "command.subscribe.subscription",
            "member_id": "command.subscribe.consumer_id",
            "client": "command.subscribe.consumer_name",
            "topics": "command.subscribe.topic",
        },
        kinds=("SUBSCRIBE",),
    ),
    _event("UNSUBSCRIBE", "unsubscribe"),
    _event("CLOSE_CONSUMER", "close"),
    _event("SEEK", "seek"),
    _event("REACHED_END_OF_TOPIC", "end of topic"),
    _event("ACTIVE_CONSUMER_CHANGE", "active", this.command.active_consumer_change.is_active == 1),
    _event("ACTIVE_CONSUMER_CHANGE", "inactive", this.command.active_consumer_change.is_active == 0),
)

ACKNOWLEDGED = "command.ack.message_id[]"
OFFSETS = (
    Rows(
        "offsets",
        FRAME,
        {
            "group_id": _consumer("ack", "group_id"),
            "topic": _consumer("ack", "topic"),
            "partition": Extract(_consumer("ack", "topic"), PARTITION),
            "message_id": Text(":", f"{ACKNOWLEDGED}.ledgerId", f"{ACKNOWLEDGED}.entryId"),
            "cumulative": this.command.ack.ack_type == 1,
        },
        ACKNOWLEDGED,
        kinds=("ACK",),
    ),
)

NO_PARTITION = -1
SINGLE = (
    "partition_key", "partition_key_b64_encoded", "null_partition_key", "null_value", "event_time", "sequence_id",
    "properties.key", "properties.value",
)  # fmt: skip
"""Fields that ``columns`` reads of the metadata of a message: that of its entry, or that in a batch."""
ENTRY_FIELDS = (
    "entry.broker_entry_metadata.metadata.index",
    "entry.checksum",
    "entry.checksum.ok",
    "entry.metadata_size",
    "entry.payload",
    *(f"entry.metadata.{name}" for name in SINGLE),
    *(
        f"entry.metadata.{name}"
        for name in (
            "producer_name", "publish_time", "marker_type", "num_chunks_from_msg", "num_messages_in_batch",
            "compression", "uncompressed_size", "compacted_batch_indexes", "encryption_keys.key",
        )
    ),
)  # fmt: skip

MESSAGE_ID = tuple(f"command.message.message_id.{name}" for name in ("ledgerId", "entryId", "partition"))

DETAILS: dict[str, str | Present] = {
    "properties": "properties",
    "event_time": "event_time_ms",
    "producer": "producer",
    "sequence_id": "sequence_id",
    "broker_index": "log_offset",
    "encrypted": "encryption_keys",
    "acknowledged": Present("acknowledged"),
}

TABLES = Tables(
    kinds={FRAME: "command.type"},
    details=DETAILS,
    rows=(*CALLS, *CONNECTIONS, *GROUP_EVENTS, *OFFSETS),
    names=(
        Names(
            "producer",
            FRAME,
            "command.producer.producer_id",
            {"topic": "command.producer.topic", "client": "command.producer.producer_name"},
            kinds=("PRODUCER",),
        ),
        Names(
            "producer",
            FRAME,
            Asked("command.producer.producer_id"),
            {"client": "command.producer_success.producer_name"},
            kinds=("PRODUCER_SUCCESS",),
        ),
        Names(
            "consumer",
            FRAME,
            "command.subscribe.consumer_id",
            {
                "topic": "command.subscribe.topic",
                "group_id": "command.subscribe.subscription",
                "client": "command.subscribe.consumer_name",
            },
            kinds=("SUBSCRIBE",),
        ),
    ),
    messages=(
        Messages(
            FRAME,
            columns={
                "topic": _producer("send", "topic"),
                "partition": Extract(_producer("send", "topic"), PARTITION),
            },
            kinds=("SEND",),
            payloads=("entry.payload",),
            fields=ENTRY_FIELDS,
            batches="wirekit.protocols.pulsar.columns:sent",
        ),
        Messages(
            FRAME,
            columns={
                "topic": _consumer("message", "topic"),
                "partition": First(
                    Except("command.message.message_id.partition", NO_PARTITION),
                    Extract(_consumer("message", "topic"), PARTITION),
                ),
                "group_id": _consumer("message", "group_id"),
                "redeliveries": "command.message.redelivery_count",
            },
            kinds=("MESSAGE",),
            payloads=("entry.payload",),
            fields=(*ENTRY_FIELDS, *MESSAGE_ID, "command.message.ack_set"),
            batches="wirekit.protocols.pulsar.columns:delivered",
        ),
    ),
)
