"""All requests and responses of Kafka 0.8.0 to 0.10.2: 21 APIs in 39 versions, by API key.

A version gives only the half that changed; the other is that of the version before. Sizes and headers are added in
``frames``. Names are those of Kafka's own tables, array by array.

Source: Kafka 0.10.2 ``Protocol.java`` and the specification page; keys 4 to 7 before 0.9:
``kafka.api.LeaderAndIsrRequest`` and its neighbours in 0.8.
"""

from __future__ import annotations

from dataclasses import dataclass

from wirekit.errors import Misuse
from wirekit.schemas.kafka.messages import record_set
from wirekit.schemas.kafka.types import (
    API_KEYS,
    api_key,
    array,
    array_of,
    boolean,
    data,
    error_code,
    nullable_array,
    nullable_string,
    per_topic,
    security_protocol,
    string,
)
from wirekit.wire import Struct, int16, int32, int64


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an API as declared.

    Attributes:
        since: the first release whose brokers speak it.
        adds: what the version before did not have.
        request, response: the bodies; None when they are those of the version before.
    """

    since: str
    adds: str = ""
    request: Struct | None = None
    response: Struct | None = None


@dataclass(frozen=True, slots=True)
class Bodies:
    """A version of an API with both bodies."""

    since: str
    adds: str
    request: Struct
    response: Struct


class Api:
    """An API and its versions, from 0 on.

    Attributes:
        key: its number on the wire.
        name: what it is called in schema keys.
        title: what Kafka calls it, and used to.
        versions: their bodies; the index is the version.
    """

    def __init__(self, key: int, *versions: Version) -> None:
        symbol = API_KEYS(key)
        self.key = key
        self.name = symbol.symbol or ""
        self.title = symbol.description
        self.versions: list[Bodies] = []
        request = response = None
        for version in versions:
            request = version.request or request
            response = version.response or response
            if request is None or response is None:
                raise Misuse(f"version 0 of {self.name} needs a request and a response")
            self.versions.append(Bodies(version.since, version.adds, request, response))


THROTTLE = "throttle_time_ms" / int32 * "how long a quota delayed the response"
PARTITION_ERROR = ("partition" / int32, "error_code" / error_code)
MEMBERSHIP = ("group_generation_id" / int32 * "-1: outside group management", "member_id" / string)

# 0 Produce. acks 0 gets no response at all. Versions 0 and 1 should carry messages of magic 0 and version 2 of magic 1,
# but brokers take either in any version.

PRODUCED = (*PARTITION_ERROR, "base_offset" / int64 * "of the first message; -1 on error")

PRODUCE = Api(
    0,
    Version(
        "0.8.0",
        request=Struct(
            "acks" / int16 * "0 none, 1 the leader, -1 all in-sync replicas; 0.8 also takes more than 1",
            "timeout" / int32 * "milliseconds",
            "topic_data" / array(per_topic("data", "partition" / int32, "record_set" / record_set)),
        ),
        response=Struct("responses" / array(per_topic("partition_responses", *PRODUCED))),
    ),
    Version(
        "0.9.0",
        "throttle_time_ms",
        response=Struct("responses" / array(per_topic("partition_responses", *PRODUCED)), THROTTLE),
    ),
    Version(
        "0.10.0",
        "log_append_time",
        response=Struct(
            "responses"
            / array(
                per_topic(
                    "partition_responses",
                    *PRODUCED,
                    "log_append_time" / int64 * "-1 unless the topic has LogAppendTime; called timestamp until 0.10.1",
                )
            ),
            THROTTLE,
        ),
    ),
)

# 1 Fetch. The last message of a record_set may be cut anywhere. Offsets before fetch_offset appear: a compressed set
# comes whole. Up to version 1 the broker converts down to magic 0; version 2 and 3 hold what is stored.

FETCHER = (
    "replica_id" / int32 * "of a follower; -1 a consumer, -2 a debugging consumer",
    "max_wait_time" / int32 * "milliseconds",
    "min_bytes" / int32,
)
FETCHED = "topics" / array(
    per_topic("partitions", "partition" / int32, "fetch_offset" / int64, "max_bytes" / int32 * "of the record_set")
)
FETCHES = "responses" / array(
    per_topic(
        "partition_responses",
        *PARTITION_ERROR,
        "high_watermark" / int64 * "-1 on error",
        "record_set" / record_set,
    )
)

FETCH = Api(
    1,
    Version("0.8.0", request=Struct(*FETCHER, FETCHED), response=Struct(FETCHES)),
    Version("0.9.0", "throttle_time_ms", response=Struct(THROTTLE, FETCHES)),
    Version("0.10.0", "messages of magic 1"),
    Version(
        "0.10.1",
        "max_bytes of the whole response; the order of partitions counts, the first message comes whole",
        request=Struct(*FETCHER, "max_bytes" / int32 * "of the response", FETCHED),
    ),
)

# 2 ListOffsets. timestamp -1 asks for the latest offset, -2 for the earliest.

LIST_OFFSETS = Api(
    2,
    Version(
        "0.8.0",
        request=Struct(
            "replica_id" / int32 * "-1: a consumer",
            "topics"
            / array(per_topic("partitions", "partition" / int32, "timestamp" / int64, "max_num_offsets" / int32)),
        ),
        response=Struct(
            "responses"
            / array(
                per_topic(
                    "partition_responses",
                    *PARTITION_ERROR,
                    "offsets" / array(int64) * "descending, from the bounds of segments",
                )
            )
        ),
    ),
    Version(
        "0.10.1",
        "one offset by message timestamp instead of many",
        request=Struct(
            "replica_id" / int32 * "-1: a consumer",
            "topics" / array(per_topic("partitions", "partition" / int32, "timestamp" / int64)),
        ),
        response=Struct(
            "responses"
            / array(
                per_topic(
                    "partition_responses",
                    *PARTITION_ERROR,
                    "timestamp" / int64 * "-1 when nothing matches",
                    "offset" / int64 * "-1 when nothing matches",
                )
            )
        ),
    ),
)

# 3 Metadata. Error 9 of a partition still comes with valid data.

BROKER = ("node_id" / int32, "host" / string, "port" / int32)
RACKED_BROKER = (*BROKER, "rack" / nullable_string)
PARTITION_METADATA = "partition_metadata" / array_of(
    "partition_error_code" / error_code,
    "partition_id" / int32,
    "leader" / int32 * "-1: none",
    "replicas" / array(int32),
    "isr" / array(int32) * "in-sync replicas",
)
TOPIC_METADATA = "topic_metadata" / array_of(
    "topic_error_code" / error_code,
    "topic" / string,
    "is_internal" / boolean,
    PARTITION_METADATA,
)

METADATA = Api(
    3,
    Version(
        "0.8.0",
        request=Struct("topics" / array(string) * "none: all"),
        response=Struct(
            "brokers" / array_of(*BROKER),
            "topic_metadata" / array_of("topic_error_code" / error_code, "topic" / string, PARTITION_METADATA),
        ),
    ),
    Version(
        "0.10.0",
        "null topics for all, so that an empty array means none; rack, controller_id, is_internal",
        request=Struct("topics" / nullable_array(string) * "null: all"),
        response=Struct("brokers" / array_of(*RACKED_BROKER), "controller_id" / int32, TOPIC_METADATA),
    ),
    Version(
        "0.10.1",
        "cluster_id",
        response=Struct(
            "brokers" / array_of(*RACKED_BROKER),
            "cluster_id" / nullable_string,
            "controller_id" / int32,
            TOPIC_METADATA,
        ),
    ),
)

# 4 to 7: between brokers.

CONTROLLER = ("controller_id" / int32, "controller_epoch" / int32)
PARTITION_STATES = "partition_states" / array_of(
    "topic" / string,
    "partition" / int32,
    "controller_epoch" / int32,
    "leader" / int32 * "-1: none, -2: the topic is being deleted (0.8.1)",
    "leader_epoch" / int32,
    "isr" / array(int32),
    "zk_version" / int32,
    "replicas" / array(int32),
)
PARTITION_ERRORS = "partitions" / array_of("topic" / string, *PARTITION_ERROR)

LEADER_AND_ISR = Api(
    4,
    Version(
        "0.8.0",
        request=Struct(
            *CONTROLLER,
            PARTITION_STATES,
            "live_leaders" / array_of("id" / int32, "host" / string, "port" / int32),
        ),
        response=Struct("error_code" / error_code, PARTITION_ERRORS),
    ),
)

STOP_REPLICA = Api(
    5,
    Version(
        "0.8.0",
        request=Struct(
            *CONTROLLER,
            "delete_partitions" / boolean,
            "partitions" / array_of("topic" / string, "partition" / int32),
        ),
        response=Struct("error_code" / error_code, PARTITION_ERRORS),
    ),
)

END_POINTS = "end_points" / array_of(
    "port" / int32,
    "host" / string,
    "security_protocol_type" / security_protocol,
)
NAMED_END_POINTS = "end_points" / array_of(
    "port" / int32,
    "host" / string,
    "listener_name" / string,
    "security_protocol_type" / security_protocol,
)

UPDATE_METADATA = Api(
    6,
    Version(
        "0.8.0",
        request=Struct(
            *CONTROLLER,
            PARTITION_STATES,
            "live_brokers" / array_of("id" / int32, "host" / string, "port" / int32),
        ),
        response=Struct("error_code" / error_code),
    ),
    Version(
        "0.9.0",
        "several end points a broker, where the port comes before the host",
        request=Struct(*CONTROLLER, PARTITION_STATES, "live_brokers" / array_of("id" / int32, END_POINTS)),
    ),
    Version(
        "0.10.0",
        "rack",
        request=Struct(
            *CONTROLLER,
            PARTITION_STATES,
            "live_brokers" / array_of("id" / int32, END_POINTS, "rack" / nullable_string),
        ),
    ),
    Version(
        "0.10.2",
        "listener_name",
        request=Struct(
            *CONTROLLER,
            PARTITION_STATES,
            "live_brokers" / array_of("id" / int32, NAMED_END_POINTS, "rack" / nullable_string),
        ),
    ),
)

CONTROLLED_SHUTDOWN = Api(
    7,
    Version(
        "0.8.0",
        request=Struct("broker_id" / int32),
        response=Struct(
            "error_code" / error_code,
            "partitions_remaining" / array_of("topic" / string, "partition" / int32),
        ),
    ),
    Version("0.9.0", "client_id in the request header"),
)

# 8 and 9: offsets of groups. Version 0 keeps them in ZooKeeper, later ones in __consumer_offsets.

METADATA_TEXT = "metadata" / nullable_string * "whatever the consumer wants to keep with the offset"
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
                per_topic("partitions", *COMMIT, "timestamp" / int64 * "-1: the broker's time", METADATA_TEXT),
            ),
        ),
    ),
    Version(
        "0.9.0",
        "one retention_time instead of timestamps",
        request=Struct(
            "group_id" / string,
            *MEMBERSHIP,
            "retention_time" / int64 * "milliseconds; -1: as the broker is configured",
            "topics" / array(per_topic("partitions", *COMMIT, METADATA_TEXT)),
        ),
    ),
)

OFFSET_COMMIT_BETA = Struct(
    "group_id" / string,
    "topics" / array(per_topic("partitions", *COMMIT, "timestamp" / int64, METADATA_TEXT)),
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
        "null topics for all of the group; an error_code of the whole",
        request=Struct(
            "group_id" / string,
            "topics" / nullable_array(per_topic("partitions", "partition" / int32)) * "null: all of the group",
        ),
        response=Struct(FETCHED_OFFSETS, "error_code" / error_code),
    ),
)

# 10 to 16: groups.

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
SESSION_TIMEOUT = "session_timeout" / int32 * "milliseconds"

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
            "rebalance_timeout" / int32 * "milliseconds",
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

# 17 to 20: 0.10's additions. After a successful SaslHandshake raw tokens follow, without any header. An ApiVersions
# request of a version that the broker does not know is answered in version 0, with error 35 and no versions.

SASL_HANDSHAKE = Api(
    17,
    Version(
        "0.10.0",
        request=Struct("mechanism" / string),
        response=Struct("error_code" / error_code, "enabled_mechanisms" / array(string)),
    ),
)

API_VERSIONS = Api(
    18,
    Version(
        "0.10.0",
        request=Struct(),
        response=Struct(
            "error_code" / error_code,
            "api_versions" / array_of("api_key" / api_key, "min_version" / int16, "max_version" / int16),
        ),
    ),
)

CREATE_TOPIC_REQUESTS = "create_topic_requests" / array_of(
    "topic" / string,
    "num_partitions" / int32 * "-1 with replica_assignment",
    "replication_factor" / int16 * "-1 with replica_assignment",
    "replica_assignment" / array_of("partition_id" / int32, "replicas" / array(int32)),
    "configs" / array_of("config_key" / string, "config_value" / string),
)

CREATE_TOPICS = Api(
    19,
    Version(
        "0.10.1",
        request=Struct(CREATE_TOPIC_REQUESTS, "timeout" / int32 * "milliseconds"),
        response=Struct("topic_errors" / array_of("topic" / string, "error_code" / error_code)),
    ),
    Version(
        "0.10.2",
        "validate_only, error_message",
        request=Struct(CREATE_TOPIC_REQUESTS, "timeout" / int32 * "milliseconds", "validate_only" / boolean),
        response=Struct(
            "topic_errors" / array_of("topic" / string, "error_code" / error_code, "error_message" / nullable_string)
        ),
    ),
)

DELETE_TOPICS = Api(
    20,
    Version(
        "0.10.1",
        request=Struct("topics" / array(string), "timeout" / int32 * "milliseconds"),
        response=Struct("topic_error_codes" / array_of("topic" / string, "error_code" / error_code)),
    ),
)

APIS = (
    PRODUCE,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    CONTROLLED_SHUTDOWN,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    GROUP_COORDINATOR,
    JOIN_GROUP,
    HEARTBEAT,
    LEAVE_GROUP,
    SYNC_GROUP,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    SASL_HANDSHAKE,
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
)
