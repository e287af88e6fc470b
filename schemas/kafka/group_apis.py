"""Offsets and consumer groups (API keys 8 to 16).

Source: Kafka 0.10.2 ``Protocol.java`` and the specification page; OffsetCommit of 0.8.2-beta:
``kafka.api.OffsetCommitRequest``.
"""

from __future__ import annotations

from wirekit.schemas.kafka.api import BROKER, PARTITION_ERROR, Api, Version
from wirekit.schemas.kafka.types import (
    array,
    array_of,
    data,
    error_code,
    nullable_array,
    nullable_string,
    per_topic,
    string,
)
from wirekit.wire import Duration, Struct, Timestamp, int32, int64

MEMBERSHIP = ("group_generation_id" / int32 * "-1: outside group management", "member_id" / string)

# 8 OffsetCommit, 9 OffsetFetch. Version 0 keeps offsets in ZooKeeper, later ones in __consumer_offsets.

METADATA_TEXT = "metadata" / nullable_string * "any text that the consumer stores with the offset"
COMMIT = ("partition" / int32, "offset" / int64)

OFFSET_COMMIT = Api(
    8,
    Version(
        "0.8.1",
        request=Struct("group_id" / string, "topics" / array(per_topic("partitions", *COMMIT, METADATA_TEXT))),
        response=Struct("responses" / array(per_topic("partition_responses", *PARTITION_ERROR))),
    ),
    Version(
        "0.8.2",
        "generation and member (consumer_id in 0.8.2), timestamp",
        request=Struct(
            "group_id" / string,
            *MEMBERSHIP,
            "topics"
            / array(
                per_topic(
                    "partitions", *COMMIT, "timestamp" / Timestamp(int64) * "-1: the broker's time", METADATA_TEXT
                ),
            ),
        ),
    ),
    Version(
        "0.9.0",
        "one retention_time instead of timestamps",
        request=Struct(
            "group_id" / string,
            *MEMBERSHIP,
            "retention_time" / Duration(int64) * "milliseconds; -1: the broker's setting",
            "topics" / array(per_topic("partitions", *COMMIT, METADATA_TEXT)),
        ),
    ),
)

OFFSET_COMMIT_BETA = Struct(
    "group_id" / string,
    "topics" / array(per_topic("partitions", *COMMIT, "timestamp" / Timestamp(int64), METADATA_TEXT)),
    doc="OffsetCommit v0 as 0.8.2-beta alone has it: with a timestamp",
)

FETCHED_OFFSETS = "responses" / array(
    per_topic(
        "partition_responses",
        *COMMIT,
        METADATA_TEXT,
        "error_code" / error_code,
    )
)

OFFSET_FETCH = Api(
    9,
    Version(
        "0.8.1",
        request=Struct("group_id" / string, "topics" / array(per_topic("partitions", "partition" / int32))),
        response=Struct(FETCHED_OFFSETS),
    ),
    Version("0.8.2", "reads __consumer_offsets instead of ZooKeeper"),
    Version(
        "0.10.2",
        "null topics: all topics of the group; an error_code for the whole response",
        request=Struct(
            "group_id" / string,
            "topics" / nullable_array(per_topic("partitions", "partition" / int32)) * "null: all of the group",
        ),
        response=Struct(FETCHED_OFFSETS, "error_code" / error_code),
    ),
)

GROUP_COORDINATOR = Api(
    10,
    Version(
        "0.8.2",
        request=Struct("group_id" / string),
        response=Struct(
            "error_code" / error_code,
            "coordinator" / Struct(*BROKER) * '-1, "" and -1 on error',
        ),
    ),
)

JOINED_MEMBER = ("member_id" / string * "empty on the first join", "protocol_type" / string * "consumer, connect, ...")
GROUP_PROTOCOLS = "group_protocols" / array_of(
    "protocol_name" / string,
    "protocol_metadata" / data * "kafka.consumer_subscription, if protocol_type is consumer",
)
SESSION_TIMEOUT = "session_timeout" / Duration(int32) * "milliseconds"

JOIN_GROUP = Api(
    11,
    Version(
        "0.9.0",
        request=Struct("group_id" / string, SESSION_TIMEOUT, *JOINED_MEMBER, GROUP_PROTOCOLS),
        response=Struct(
            "error_code" / error_code,
            "generation_id" / int32,
            "group_protocol" / string,
            "leader_id" / string,
            "member_id" / string,
            "members" / array_of("member_id" / string, "member_metadata" / data) * "filled for the leader only",
        ),
    ),
    Version(
        "0.10.1",
        "rebalance_timeout",
        request=Struct(
            "group_id" / string,
            SESSION_TIMEOUT,
            "rebalance_timeout" / Duration(int32) * "milliseconds",
            *JOINED_MEMBER,
            GROUP_PROTOCOLS,
        ),
    ),
)

HEARTBEAT = Api(
    12,
    Version(
        "0.9.0",
        request=Struct("group_id" / string, *MEMBERSHIP),
        response=Struct("error_code" / error_code),
    ),
)

LEAVE_GROUP = Api(
    13,
    Version(
        "0.9.0",
        request=Struct("group_id" / string, "member_id" / string),
        response=Struct("error_code" / error_code),
    ),
)

SYNC_GROUP = Api(
    14,
    Version(
        "0.9.0",
        request=Struct(
            "group_id" / string,
            "generation_id" / int32,
            "member_id" / string,
            "group_assignment"
            / array_of(
                "member_id" / string,
                "member_assignment" / data * "kafka.consumer_assignment, for protocol type consumer",
            )
            * "from the leader only",
        ),
        response=Struct("error_code" / error_code, "member_assignment" / data),
    ),
)

DESCRIBE_GROUPS = Api(
    15,
    Version(
        "0.9.0",
        request=Struct("group_ids" / array(string)),
        response=Struct(
            "groups"
            / array_of(
                "error_code" / error_code,
                "group_id" / string,
                "state" / string * "Dead, Stable, AwaitingSync, PreparingRebalance, Empty (0.10.1)",
                "protocol_type" / string,
                "protocol" / string,
                "members"
                / array_of(
                    "member_id" / string,
                    "client_id" / string,
                    "client_host" / string,
                    "member_metadata" / data,
                    "member_assignment" / data,
                ),
            )
        ),
    ),
)

LIST_GROUPS = Api(
    16,
    Version(
        "0.9.0",
        request=Struct(),
        response=Struct(
            "error_code" / error_code,
            "groups" / array_of("group_id" / string, "protocol_type" / string),
        ),
    ),
)
