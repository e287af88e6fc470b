"""Error codes of Kafka 0.8.0 to 0.10.2.

Names and texts are those of 0.10.2 (``org.apache.kafka.common.protocol.Errors``); older names are from 0.8's
``kafka.common.ErrorMapping``. "Retriable" is what the Java client makes of the code. Code 45 is 0.11's.
"""

from __future__ import annotations

from wirekit.values import SymbolTable

ERROR_CODES = SymbolTable(
    "error_code",
    {
        -1: ("UNKNOWN", "The server experienced an unexpected error when processing the request."),
        0: ("NONE", "No error."),
        1: ("OFFSET_OUT_OF_RANGE", "The requested offset is not within the range of offsets maintained by the server."),
        2: (
            "CORRUPT_MESSAGE",
            "This message has failed its CRC checksum, exceeds the valid size, or is otherwise corrupt. "
            "Retriable. InvalidMessage in 0.8.",
        ),
        3: ("UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition. Retriable."),
        4: ("INVALID_FETCH_SIZE", "The requested fetch size is invalid. InvalidFetchSize in 0.8."),
        5: (
            "LEADER_NOT_AVAILABLE",
            "There is no leader for this topic-partition as we are in the middle of a leadership election. Retriable.",
        ),
        6: ("NOT_LEADER_FOR_PARTITION", "This server is not the leader for that topic-partition. Retriable."),
        7: ("REQUEST_TIMED_OUT", "The request timed out. Retriable."),
        8: ("BROKER_NOT_AVAILABLE", "The broker is not available. Since 0.8."),
        9: ("REPLICA_NOT_AVAILABLE", "The replica is not available for the requested topic-partition. Since 0.8."),
        10: (
            "MESSAGE_TOO_LARGE",
            "The request included a message larger than the max message size the server will accept. "
            "MessageSizeTooLarge in 0.8.",
        ),
        11: ("STALE_CONTROLLER_EPOCH", "The controller moved to another broker. Since 0.8."),
        12: ("OFFSET_METADATA_TOO_LARGE", "The metadata field of the offset request was too large. Since 0.8.1."),
        13: (
            "NETWORK_EXCEPTION",
            "The server disconnected before a response was received. Retriable. Never sent by a broker: from "
            "brokers of 0.8.1 to 0.9 the code is StaleLeaderEpoch, in LeaderAndIsr responses.",
        ),
        14: (
            "GROUP_LOAD_IN_PROGRESS",
            "The coordinator is loading and hence can't process requests for this group. Retriable. "
            "OffsetsLoadInProgress in 0.8.2.",
        ),
        15: (
            "GROUP_COORDINATOR_NOT_AVAILABLE",
            "The group coordinator is not available. Retriable. ConsumerCoordinatorNotAvailable in 0.8.2.",
        ),
        16: (
            "NOT_COORDINATOR_FOR_GROUP",
            "This is not the correct coordinator for this group. Retriable. NotCoordinatorForConsumer in 0.8.2.",
        ),
        17: (
            "INVALID_TOPIC_EXCEPTION",
            "The request attempted to perform an operation on an invalid topic. InvalidTopic in 0.8.2.",
        ),
        18: (
            "RECORD_LIST_TOO_LARGE",
            "The request included message batch larger than the configured segment size on the server. "
            "MessageSetSizeTooLarge in 0.8.2.",
        ),
        19: (
            "NOT_ENOUGH_REPLICAS",
            "Messages are rejected since there are fewer in-sync replicas than required. Retriable. Since 0.8.2.",
        ),
        20: (
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
            "Messages are written to the log, but to fewer in-sync replicas than required. Retriable. Since 0.8.2.",
        ),
        21: ("INVALID_REQUIRED_ACKS", "Produce request specified an invalid value for required acks. Since 0.9.0."),
        22: ("ILLEGAL_GENERATION", "Specified group generation id is not valid. Since 0.9.0."),
        23: (
            "INCONSISTENT_GROUP_PROTOCOL",
            "The group member's supported protocols are incompatible with those of existing members. Since 0.9.0.",
        ),
        24: ("INVALID_GROUP_ID", "The configured groupId is invalid. Since 0.9.0."),
        25: ("UNKNOWN_MEMBER_ID", "The coordinator is not aware of this member. Since 0.9.0."),
        26: (
            "INVALID_SESSION_TIMEOUT",
            "The session timeout is not within the range allowed by the broker (as configured by "
            "group.min.session.timeout.ms and group.max.session.timeout.ms). Since 0.9.0.",
        ),
        27: ("REBALANCE_IN_PROGRESS", "The group is rebalancing, so a rejoin is needed. Since 0.9.0."),
        28: ("INVALID_COMMIT_OFFSET_SIZE", "The committing offset data size is not valid. Since 0.9.0."),
        29: (
            "TOPIC_AUTHORIZATION_FAILED",
            "Not authorized to access topics: [Topic authorization failed.]. Since 0.9.0.",
        ),
        30: ("GROUP_AUTHORIZATION_FAILED", "Not authorized to access group: Group authorization failed. Since 0.9.0."),
        31: ("CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed. Since 0.9.0."),
        32: ("INVALID_TIMESTAMP", "The timestamp of the message is out of acceptable range. Since 0.10.0."),
        33: ("UNSUPPORTED_SASL_MECHANISM", "The broker does not support the requested SASL mechanism. Since 0.10.0."),
        34: ("ILLEGAL_SASL_STATE", "Request is not valid given the current SASL state. Since 0.10.0."),
        35: ("UNSUPPORTED_VERSION", "The version of API is not supported. Since 0.10.0."),
        36: ("TOPIC_ALREADY_EXISTS", "Topic with this name already exists. Since 0.10.1."),
        37: ("INVALID_PARTITIONS", "Number of partitions is invalid. Since 0.10.1."),
        38: ("INVALID_REPLICATION_FACTOR", "Replication-factor is invalid. Since 0.10.1."),
        39: ("INVALID_REPLICA_ASSIGNMENT", "Replica assignment is invalid. Since 0.10.1."),
        40: ("INVALID_CONFIG", "Configuration is invalid. Since 0.10.1."),
        41: ("NOT_CONTROLLER", "This is not the correct controller for this cluster. Retriable. Since 0.10.1."),
        42: (
            "INVALID_REQUEST",
            "This most likely occurs because of a request being malformed by the client library or the message "
            "was sent to an incompatible broker. See the broker logs for more details. Since 0.10.1.",
        ),
        43: (
            "UNSUPPORTED_FOR_MESSAGE_FORMAT",
            "The message format version on the broker does not support the request. Since 0.10.1.",
        ),
        44: ("POLICY_VIOLATION", "Request parameters do not satisfy the configured policy. Since 0.10.2."),
    },
)
