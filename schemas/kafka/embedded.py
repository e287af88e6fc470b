"""What groups keep in byte fields of requests and in the topic ``__consumer_offsets``.

Readers take a version that they don't know as the last one they do, with a tail.

Source: Kafka 0.10.2 ``ConsumerProtocol.java``, ``GroupMetadataManager.scala``; 0.8.2 ``OffsetManager.scala``.
"""

from __future__ import annotations

from wirekit.schemas.kafka.types import array, array_of, data, nullable_data, nullable_string, string
from wirekit.wire import (
    Duration,
    If,
    IfMore,
    Sized,
    Struct,
    Switch,
    Timestamp,
    context,
    int16,
    int32,
    int64,
    this,
    unexplained,
)

CONSUMER_SUBSCRIPTION = Struct(
    "version" / int16,
    "topics" / array(string),
    "user_data" / nullable_data * "of the assignor",
    "tail" / IfMore(unexplained()) * "fields that later versions add",
    name="Subscription",
    doc="protocol_metadata of JoinGroup and subscription of a group's members, for protocol type consumer",
)

CONSUMER_ASSIGNMENT = Struct(
    "version" / int16,
    "topic_partitions" / array_of("topic" / string, "partitions" / array(int32)),
    "user_data" / nullable_data * "of the assignor",
    "tail" / IfMore(unexplained()) * "fields that later versions add",
    name="Assignment",
    doc="member_assignment of SyncGroup and assignment of a group's members, for protocol type consumer",
)

KEY = Struct(
    "version" / int16 * "0 (0.8.2) and 1 (0.9): an offset; 2 (0.9): a group",
    "group" / If(this.version <= 2, string),
    "topic" / If(this.version <= 1, string),
    "partition" / If(this.version <= 1, int32),
    name="OffsetsKey",
    doc="the key of a message in __consumer_offsets",
)

OFFSET_VALUE = Struct(
    "version" / int16 * "0 (0.8.2) or 1 (0.9)",
    "offset" / If(this.version <= 1, int64),
    "metadata" / If(this.version <= 1, string),
    "timestamp" / If(this.version == 0, Timestamp(int64)),
    "commit_timestamp" / If(this.version == 1, Timestamp(int64)),
    "expire_timestamp" / If(this.version == 1, Timestamp(int64)) * "commit time plus retention",
    name="OffsetValue",
    doc="a committed offset; timestamps in milliseconds",
)

GROUP_VALUE = Struct(
    "version" / int16 * "0 (0.9, 0.10.0) or 1 (0.10.1)",
    "protocol_type" / If(this.version <= 1, string) * "consumer, connect, ...",
    "generation" / If(this.version <= 1, int32),
    "protocol" / If(this.version <= 1, nullable_string) * "the assignor that the group selected",
    "leader" / If(this.version <= 1, nullable_string) * "a member_id",
    "members"
    / If(
        this.version <= 1,
        array_of(
            "member_id" / string,
            "client_id" / string,
            "client_host" / string,
            "rebalance_timeout" / If(this._.version == 1, Duration(int32)) * "milliseconds",
            "session_timeout" / Duration(int32) * "milliseconds",
            "subscription" / data * "kafka.consumer_subscription, if protocol_type is consumer",
            "assignment" / data * "kafka.consumer_assignment, if protocol_type is consumer",
        ),
    ),
    name="GroupValue",
    doc="the metadata of a group",
)

VALUES = {0: OFFSET_VALUE, 1: OFFSET_VALUE, 2: GROUP_VALUE}

VALUE = Switch(context.key_version, VALUES, default=unexplained())

CONSUMER_OFFSETS = Struct(
    "key" / Sized(int32, KEY),
    "value" / Sized(int32, Switch(this.key.version, VALUES, default=unexplained()), null=-1) * "null deletes the key",
    name="OffsetsRecord",
    doc="key and value of a message in __consumer_offsets, with their lengths: the last fields of the message",
)
