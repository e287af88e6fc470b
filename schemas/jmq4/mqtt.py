"""Payloads of the MQTT service's commands, 100 to 103: not in the document, and alike in both dialects.

Sources: JoyQueue command/JoyQueueCommandType.java:81-86, codec/SubscribeCodec.java, SubscribeAckCodec.java,
UnSubscribeCodec.java, GetTopicsCodec.java, GetTopicsAckCodec.java, AuthorizationCodec.java.
"""

from __future__ import annotations

from typing import Any

from wirekit.schemas.jmq4.codes import CLIENT_TYPES, ELECTION_TYPES, SUBSCRIPTION_TYPES, TOPIC_TYPES
from wirekit.schemas.jmq4.types import array, language
from wirekit.wire import Array, Node, Refused, String, Struct, Symbols, int8, int16, int32, this, unnamed


def mqtt(string: String) -> dict[int, Node]:
    """The requests of the MQTT service and the answer to GET_TOPICS."""
    subscription = Struct(
        "topic" / string,
        "app" / string,
        "type" / Symbols(int8, SUBSCRIPTION_TYPES),
        name="Subscription",
        refused=(
            Refused(
                "type",
                unnamed(this.type, SUBSCRIPTION_TYPES),
                "JoyQueue throws an IllegalArgumentException for types other than 1 and 2",
                "Subscription.java, Type.valueOf",
            ),
        ),
    )
    return {
        100: Struct(
            "client_type" / Symbols(int8, CLIENT_TYPES), "subscriptions" / array(subscription), name="Subscribe"
        ),
        101: Struct("subscriptions" / array(subscription), name="Unsubscribe"),
        102: Struct("app" / string, "subscribe_type" / int32, name="GetTopics"),
        -102: Struct("topics" / Array(int32, string), name="GetTopicsAck"),
        103: Struct(
            "app" / string, "token" / string, "language" / language, "client_version" / string, name="Authorization"
        ),
    }


def subscribe_ack(string: String, *extra: Any) -> Struct:
    """The answer to SUBSCRIBE (SubscribeAckCodec.java, Serializer.readTopicConfig and readPartitionGroup)."""
    broker = Struct(
        "id" / int32, "ip" / string, "port" / int32, "data_center" / string, "retry_type" / string, name="GroupBroker"
    )
    group = Struct(
        "topic" / string,
        "leader" / int32,
        "isrs" / Array(int32, int32) * "brokers in sync",
        "learners" / Array(int32, int32) * "JoyQueue ignores them",
        "term" / int32,
        "group" / int32,
        "partitions" / Array(int32, int16),
        "replicas" / Array(int32, int32),
        "elect_type" / Symbols(int32, ELECTION_TYPES),
        "brokers" / Array(int32, broker),
        *extra,
        name="TopicGroup",
    )
    config = Struct(
        "name" / string,
        "partitions" / int16,
        "type" / Symbols(int8, TOPIC_TYPES),
        "priority_partitions" / Array(int32, int16),
        "partition_groups" / Array(int32, group),
        name="TopicConfig",
    )
    return Struct("topic_configs" / array(config), name="SubscribeAck")
