"""All APIs of Kafka 0.8.0 to 0.10.2, by key: 21 of them in 39 versions. Names are those of Kafka's own tables."""

from __future__ import annotations

from wirekit.schemas.kafka.admin_apis import API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, SASL_HANDSHAKE
from wirekit.schemas.kafka.broker_apis import CONTROLLED_SHUTDOWN, LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from wirekit.schemas.kafka.client_apis import FETCH, LIST_OFFSETS, METADATA, PRODUCE
from wirekit.schemas.kafka.group_apis import (
    DESCRIBE_GROUPS,
    GROUP_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
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
