"""What groups keep in byte fields of requests and in the topic ``__consumer_offsets``.

Readers take a subscription or assignment of a version that they don't know as the last one they do, with a tail.
They refuse such a value of ``__consumer_offsets``. Brokers from 2.1 on write versions 2 and 3 of these, also in
messages of magic 1 if ``log.message.format.version`` is 0.10.

Source: Kafka 0.10.2 ``ConsumerProtocol.java``, ``GroupMetadataManager.scala``; 0.8.2 ``OffsetManager.scala``; 2.3
``GroupMetadataManager.scala`` for versions 2 and 3.
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

LAST_VERSION = 3
"""The last version of both values that Kafka declares without compact fields; 4 has them."""
KNOWN = this.version <= LAST_VERSION
TAIL = If(this.version > LAST_VERSION, unexplained())

OFFSET_VALUE = Struct(
    "version" / int16 * "0 (0.8.2), 1 (0.9), 2 or 3 (2.1)",
    "offset" / If(KNOWN, int64),
    "leader_epoch" / If(this.version == LAST_VERSION, int32) * "of the last message before the offset; -1: unknown",
    "metadata" / If(KNOWN, string),
    "timestamp" / If(this.version == 0, Timestamp(int64)),
    "commit_timestamp" / If((this.version >= 1) & KNOWN, Timestamp(int64)),
    "expire_timestamp" / If(this.version == 1, Timestamp(int64)) * "commit time plus retention",
    "tail" / TAIL * "all of a later version",
    name="OffsetValue",
    doc="a committed offset; timestamps in milliseconds",
)

GROUP_VALUE = Struct(
    "version" / int16 * "0 (0.9, 0.10.0), 1 (0.10.1), 2 (2.1) or 3 (2.3)",
    "protocol_type" / If(KNOWN, string) * "consumer, connect, ...",
    "generation" / If(KNOWN, int32),
    "protocol" / If(KNOWN, nullable_string) * "the assignor that the group selected",
    "leader" / If(KNOWN, nullable_string) * "a member_id",
    "current_state_timestamp" / If((this.version >= 2) & KNOWN, Timestamp(int64)) * "-1: unknown",
    "members"
    / If(
        KNOWN,
        array_of(
            "member_id" / string,
            "group_instance_id" / If(this._.version == LAST_VERSION, nullable_string) * "of a static member",
            "client_id" / string,
            "client_host" / string,
            "rebalance_timeout" / If(this._.version >= 1, Duration(int32)) * "milliseconds",
            "session_timeout" / Duration(int32) * "milliseconds",
            "subscription" / data * "kafka.consumer_subscription, if protocol_type is consumer",
            "assignment" / data * "kafka.consumer_assignment, if protocol_type is consumer",
        ),
    ),
    "tail" / TAIL * "all of a later version",
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
