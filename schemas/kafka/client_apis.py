"""Produce, Fetch, ListOffsets, Metadata: what every producer and consumer speaks (API keys 0 to 3).

Source: Kafka 0.10.2 ``Protocol.java`` and the specification page.
"""

from __future__ import annotations

from typing import Any

from wirekit.schemas.kafka.api import BROKER, PARTITION_ERROR, Api, Version
from wirekit.schemas.kafka.messages import produced_set, record_set, untimed_produced_set, untimed_record_set
from wirekit.schemas.kafka.types import (
    array,
    array_of,
    boolean,
    error_code,
    nullable_array,
    nullable_string,
    per_topic,
    string,
)
from wirekit.wire import Duration, Node, Struct, Timestamp, int16, int32, int64

THROTTLE = "throttle_time_ms" / Duration(int32) * "how long a quota delayed the response"

# 0 Produce. acks 0 gets no response at all. Versions 0 and 1 should carry messages of magic 0 and version 2 of magic 1,
# but brokers take either in any version.

PRODUCED = (*PARTITION_ERROR, "base_offset" / int64 * "of the first message; -1 on error")


def _produced(record_set: Node) -> Struct:
    return Struct(
        "acks" / int16 * "0 none, 1 the leader, -1 all in-sync replicas; 0.8 also accepts more than 1",
        "timeout" / Duration(int32) * "milliseconds",
        "topic_data" / array(per_topic("data", "partition" / int32, "record_set" / record_set)),
    )


PRODUCE = Api(
    0,
    Version(
        "0.8.0",
        request=_produced(produced_set),
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
                    "log_append_time"
                    / Timestamp(int64)
                    * "-1 unless the topic has LogAppendTime; called timestamp until 0.10.1",
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
    "max_wait_time" / Duration(int32) * "milliseconds",
    "min_bytes" / int32,
)
FETCHED = "topics" / array(
    per_topic("partitions", "partition" / int32, "fetch_offset" / int64, "max_bytes" / int32 * "of the record_set")
)


def _fetches(record_set: Node) -> Any:
    return "responses" / array(
        per_topic(
            "partition_responses",
            *PARTITION_ERROR,
            "high_watermark" / int64 * "-1 on error",
            "record_set" / record_set,
        )
    )


FETCHES = _fetches(record_set)

FETCH = Api(
    1,
    Version("0.8.0", request=Struct(*FETCHER, FETCHED), response=Struct(FETCHES)),
    Version("0.9.0", "throttle_time_ms", response=Struct(THROTTLE, FETCHES)),
    Version("0.10.0", "messages of magic 1"),
    Version(
        "0.10.1",
        "max_bytes of the whole response; the order of partitions matters, the first message is sent whole",
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
            / array(
                per_topic("partitions", "partition" / int32, "timestamp" / Timestamp(int64), "max_num_offsets" / int32)
            ),
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
            "topics" / array(per_topic("partitions", "partition" / int32, "timestamp" / Timestamp(int64))),
        ),
        response=Struct(
            "responses"
            / array(
                per_topic(
                    "partition_responses",
                    *PARTITION_ERROR,
                    "timestamp" / Timestamp(int64) * "-1 if no message matches",
                    "offset" / int64 * "-1 if no message matches",
                )
            )
        ),
    ),
)

# 3 Metadata. Error 9 of a partition still comes with valid data.

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
        "null topics: all topics, an empty array: none; rack, controller_id, is_internal",
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

UNTIMED_PRODUCED = _produced(untimed_produced_set)
UNTIMED_FETCHED = (Struct(_fetches(untimed_record_set)), Struct(THROTTLE, _fetches(untimed_record_set)))
"""Of version 0 and 1."""
