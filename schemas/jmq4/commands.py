"""The payload of every command, by type: the implementation's, and the document's where it says something else.

Sources: document, 通用相关 to 生产相关; JoyQueue network/codec/*Codec.java (named at each). Where the document is
silent or contradicts itself, both dialects have the implementation's layout. Field names are the document's.

The layout of three answers depends on the header version that the request asked for. Releases 4.1.0 to 4.2.7 write
their own version into the header of the answer, so ``context.layout_version`` overrides it (1 or more; not given: the
header's version is taken).
"""

from __future__ import annotations

from typing import Any

from wirekit.schemas.jmq4.codes import (
    ERROR_CODES,
    QOS_LEVELS,
    RETRY_TYPES,
    TOPIC_TYPES,
    TRANSACTION_STATUS,
)
from wirekit.schemas.jmq4.message import DOCUMENTED_MESSAGE
from wirekit.schemas.jmq4.mqtt import mqtt, subscribe_ack
from wirekit.schemas.jmq4.types import array, boolean, language, string1, string2
from wirekit.wire import (
    Bit,
    Bits,
    Default,
    Duration,
    If,
    IfThenElse,
    Integer,
    Node,
    RecordsToEnd,
    Refused,
    String,
    Struct,
    Symbols,
    Timestamp,
    context,
    float64,
    int8,
    int16,
    int32,
    int64,
    len_,
    this,
    uint32,
    unnamed,
)

EMPTY = Struct(name="Empty")

code = Symbols(int32, ERROR_CODES)
topics = array(string2)


def no_topic(partitions: Any, source: str) -> Refused:
    """The empty topic before a list of partitions: JoyQueue puts both into a table without null keys."""
    when = ~this.topic & (len_(partitions) > 0)
    return Refused("topic", when, "JoyQueue throws a NullPointerException for an empty topic with partitions", source)


# General commands (通用相关)


def add_connection(string: String, *extra: Any) -> Struct:
    """ADD_CONNECTION (AddConnectionRequestCodec.java:41-72)."""
    return Struct(
        "username" / string * "reserved",
        "password" / string * "reserved",
        "app" / string,
        "token" / string,
        "region" / string,
        "namespace" / string,
        *extra,
        "version" / string * "of the client, any text",
        "ip" / string * "of the client",
        "time" / Timestamp(int64) * "of connecting, milliseconds since the epoch",
        "sequence" / int64 * "number of the client's connection; JoyQueue counts from 1",
        name="AddConnection",
    )


def add_connection_ack(string: String) -> Struct:
    """The answer to ADD_CONNECTION (AddConnectionResponseCodec.java:37-44)."""
    return Struct("connection_id" / string, "notification" / string2 * "text for people", name="AddConnectionAck")


FETCH_HEALTH_ACK = Struct("point" / float64 * "score; JoyQueue always sends 0.0", name="FetchHealthAck")


# Metadata (元数据相关)

TOPICS_OF_APP = Struct("topics" / topics, "app" / string2, name="TopicsOfApp")

PRODUCER_POLICY = Struct(
    "is_nearby" / boolean,
    "is_single" / boolean * "whether one thread sends",
    "is_archive" / boolean,
    "weight" / array(Struct("broker_id" / string2, "weight" / int16, name="Weight")),
    "black_list" / array(string2) * "addresses that may not produce",
    "timeout" / Duration(int32) * "milliseconds",
    name="ProducerPolicy",
)

CONSUMER_POLICY = Struct(
    "is_nearby" / boolean,
    "is_paused" / boolean,
    "is_archive" / boolean,
    "is_retry" / boolean,
    "is_seq" / boolean * "messages are consumed in sequence",
    "ack_timeout" / Duration(int32) * "milliseconds",
    "batch_size" / int16,
    "concurrent_consume" / Default(boolean, False) * "JoyQueue writes 0 and ignores it",
    "concurrent_prefetch_size" / int32,
    "delay" / int32,
    "black_list" / array(string2) * "addresses that may not consume",
    "err_times" / int32 * "failures before a message goes to the retry queue",
    "max_partition_num" / int32 * "partitions that one connection may hold",
    "read_retry_probability" / int32 * "percentage of reads from the retry queue",
    name="ConsumerPolicy",
)

BROKER = (
    "id" / int32,
    "host" / string2,
    "port" / int32,
    "data_center" / string2,
    "nearby" / boolean,
    "weight" / int32,
)

PERMISSIONS = (
    "sys_code" / int32,
    "permission"
    / Bits(uint32, "readable" / Bit(1), "writable" / Bit(1), "reserved" / Bit(30), order="lsb")
    * "permitted uses of the broker",
)

PARAMS = ("params" / array(Struct("key" / string2, "value" / string2, name="Param")),)


def fetch_cluster_ack(
    topic_type: Integer, partition: Integer, params: tuple[Any, ...] = (), permissions: tuple[Any, ...] = ()
) -> Struct:
    """The answer to FETCH_CLUSTER (FetchClusterResponseCodec.java:80-181, 262-310).

    Args:
        topic_type: BYTE as implemented, INT in the document.
        partition: the id of a partition: SHORT as implemented, INT in the document.
        params: what a topic ends with since header version 4.
        permissions: what a broker ends with since header version 2.
    """
    group = Struct(
        "id" / int32,
        "leader" / int32 * "id of a broker in the list of brokers",
        "partitions" / array(partition),
        name="PartitionGroup",
    )
    topic = Struct(
        "topic_code" / string2,
        "is_exist_producer_policy" / boolean * "whether the app may produce to the topic",
        "producer_policy" / If(this.is_exist_producer_policy, PRODUCER_POLICY),
        "is_exist_consumer_policy" / boolean * "whether the app may consume the topic",
        "consumer_policy" / If(this.is_exist_consumer_policy, CONSUMER_POLICY),
        "type" / Symbols(topic_type, TOPIC_TYPES),
        "partition_groups" / array(group),
        "code" / code,
        *params,
        name="Topic",
    )
    broker = Struct(*BROKER, *permissions, name="Broker")
    return Struct("topics" / array(topic), "brokers" / array(broker), name="FetchClusterAck")


FETCH_CLUSTER_ACK_V1 = fetch_cluster_ack(int8, int16)
FETCH_CLUSTER_ACK_V2 = fetch_cluster_ack(int8, int16, permissions=PERMISSIONS)
FETCH_CLUSTER_ACK_V4 = fetch_cluster_ack(int8, int16, PARAMS, PERMISSIONS)
DOCUMENTED_FETCH_CLUSTER_ACK = fetch_cluster_ack(int32, int32)


# Coordinators (协调者相关)

FIND_COORDINATOR_ACK = Struct(
    "coordinators"
    / array(
        Struct(
            "topic" / string2,
            "id" / int32 * "of the broker; -1: no coordinator, and only the code follows",
            "host" / If(this.id != -1, string2),
            "port" / If(this.id != -1, int32),
            "data_center" / If(this.id != -1, string2),
            "is_nearby" / If(this.id != -1, boolean),
            "weight" / If(this.id != -1, int32),
            "code" / code,
            name="Coordinator",
        )
    ),
    name="FindCoordinatorAck",
    doc="The same in every header version: no permissions here.",
)

FETCH_ASSIGNED_PARTITION = Struct(
    "topics"
    / array(
        Struct(
            "topic" / string2,
            "session_timeout" / Duration(int32) * "milliseconds until the assignment ends",
            "is_nearby" / boolean,
            name="Assignment",
        )
    ),
    "app" / string2,
    name="FetchAssignedPartition",
)

FETCH_ASSIGNED_PARTITION_ACK = Struct(
    "data" / array(Struct("topic" / string2, "partitions" / array(int16), "code" / code, name="Assigned")),
    name="FetchAssignedPartitionAck",
)


# Consuming (消费相关)

TOPICS_AND_SEQUENCE = Struct(
    "topics" / topics, "app" / string2, "sequence" / int64 * "increases", name="TopicsAndSequence"
)

ADD_CONSUMER_ACK = Struct(
    "consumer_ids" / array(Struct("topic" / string2, "consumer_id" / string2, name="ConsumerId")),
    name="AddConsumerAck",
)

FETCH_TOPIC_MESSAGE = Struct(
    "topics" / array(Struct("topic" / string2, "count" / int16 * "messages at most", name="Fetch")),
    "app" / string2,
    "ack_timeout" / Duration(int32) * "milliseconds",
    "long_poll_timeout" / Duration(int32) * "milliseconds",
    name="FetchTopicMessage",
)


def fetch_topic_message_ack(record: Struct, *extra: Any) -> Struct:
    """The answer to FETCH_TOPIC_MESSAGE (FetchTopicMessageResponseCodec.java:54, 74)."""
    fetched = Struct("topic" / string2, "messages" / array(record), *extra, name="Fetched")
    return Struct("data" / array(fetched), name="FetchTopicMessageAck")


FETCH_PARTITION_MESSAGE = Struct(
    "topics"
    / array(
        Struct(
            "topic" / string2,
            "partitions"
            / array(
                Struct(
                    "partition" / int16,
                    "count" / int32 * "messages at most",
                    "index" / int64 * "of the first message; -1: the acknowledged one",
                    name="FetchPartition",
                )
            ),
            name="Fetch",
            refused=(no_topic(this.partitions, "FetchPartitionMessageRequestCodec.java"),),
        )
    ),
    "app" / string2,
    name="FetchPartitionMessage",
)


def fetch_partition_message_ack(record: Struct) -> Struct:
    """The answer to FETCH_PARTITION_MESSAGE (FetchPartitionMessageResponseCodec.java)."""
    partition = Struct("partition" / int16, "messages" / array(record), "code" / code, name="FetchedPartition")
    fetched = Struct(
        "topic" / string2,
        "partitions" / array(partition),
        name="Fetched",
        refused=(no_topic(this.partitions, "FetchPartitionMessageResponseCodec.java"),),
    )
    return Struct("data" / array(fetched), name="FetchPartitionMessageAck")


COMMIT_ACK = Struct(
    "topics"
    / array(
        Struct(
            "topic" / string2,
            "partitions"
            / array(
                Struct(
                    "partition" / int16,
                    "data"
                    / array(
                        Struct(
                            "partition" / int16,
                            "index" / int64,
                            "type" / Symbols(int8, RETRY_TYPES) * "a message with any type but NONE is retried",
                            name="Ack",
                        )
                    ),
                    name="AckPartition",
                )
            ),
            name="AckTopic",
            refused=(no_topic(this.partitions, "CommitAckRequestCodec.java"),),
        )
    ),
    "app" / string2,
    name="CommitAck",
)

COMMIT_ACK_CODECS = "CommitAckResponseCodec.java, CommitIndexResponseCodec.java"
COMMITTED_PARTITION = Struct(
    "partition" / int16,
    "code" / code,
    name="CommittedPartition",
    refused=(
        Refused(
            "code",
            unnamed(this.code, ERROR_CODES),
            "JoyQueue throws a NullPointerException for an unknown code here",
            COMMIT_ACK_CODECS,
        ),
    ),
)
COMMITTED_TOPIC = Struct(
    "topic" / string2,
    "partition_data" / array(COMMITTED_PARTITION),
    name="CommittedTopic",
    refused=(no_topic(this.partition_data, COMMIT_ACK_CODECS),),
)

COMMIT_ACK_ACK = Struct(
    "count"
    / Default(int16, len_(this.data))
    * "JoyQueue writes the number of (topic, partition) pairs, which its own reader takes for the number of topics",
    "data" / RecordsToEnd(COMMITTED_TOPIC, count=this.count),
    name="CommitAckAck",
    doc="Topics are read to the end of the payload (CommitAckResponseCodec.java:60, CommitIndexResponseCodec.java:44). "
    "When one has several partitions the count is too large, which is a bad check. A count that is left out of a value "
    "to build is the number of topics, which every reader understands.",
)

DOCUMENTED_COMMIT_ACK_ACK = Struct("data" / array(COMMITTED_TOPIC), name="CommitAckAck")

COMMIT_ACK_INDEX = Struct(
    "topics"
    / array(
        Struct(
            "topic" / string2,
            "partitions"
            / array(
                Struct(
                    "partition" / int16,
                    "index" / int64 * "-1: the largest, -2: the smallest",
                    name="IndexPartition",
                )
            ),
            name="IndexTopic",
            refused=(no_topic(this.partitions, "CommitIndexRequestCodec.java"),),
        )
    ),
    "app" / string2,
    name="CommitAckIndex",
    doc="Since JoyQueue 4.2.7 (CommitIndexRequestCodec.java); the document names the command and gives no layout.",
)

FETCH_INDEX = Struct(
    "topics" / array(Struct("topic" / string2, "partitions" / array(int16), name="IndexTopic")),
    "app" / string2,
    name="FetchIndex",
)

BOUNDS = (
    "left_index" / int64 * "smallest index in the partition",
    "right_index" / int64 * "largest index in the partition",
)


def fetch_index_ack(*extra: Any) -> Struct:
    """The answer to FETCH_INDEX (FetchIndexResponseCodec.java:54-57, 81-84)."""
    partition = Struct("partition" / int16, "index" / int64, "code" / code, *extra, name="FetchedIndex")
    topic = Struct(
        "topic" / string2,
        "partitions" / array(partition),
        name="FetchedIndexTopic",
        refused=(no_topic(this.partitions, "FetchIndexResponseCodec.java"),),
    )
    return Struct("topics" / array(topic), name="FetchIndexAck")


FETCH_INDEX_ACK_V1 = fetch_index_ack()
FETCH_INDEX_ACK_V3 = fetch_index_ack(*BOUNDS)


# Producing (生产相关)

ADD_PRODUCER_ACK = Struct(
    "producer_ids" / array(Struct("topic" / string2, "producer_id" / string2, name="ProducerId")),
    name="AddProducerAck",
)


def produce_message(record: Struct) -> Struct:
    """PRODUCE_MESSAGE (ProduceMessageRequestCodec.java:82-83)."""
    topic = Struct(
        "topic" / string2,
        "tx_id" / string2 * "of a transaction; the document gives no type",
        "timeout" / Duration(int32) * "milliseconds; the document gives no type",
        "qos_level" / Symbols(int8, QOS_LEVELS) * "JoyQueue reads an unknown value as REPLICATION",
        "messages" / array(record),
        name="Produce",
    )
    return Struct("topics" / array(topic), "app" / string2, name="ProduceMessage")


PRODUCE_MESSAGE_ACK = Struct(
    "data"
    / array(
        Struct(
            "topic" / string2,
            "code" / code,
            "result"
            / array(
                Struct(
                    "partition" / int16,
                    "index" / int64,
                    "start_time" / Timestamp(int64) * "milliseconds since the epoch",
                    name="Stored",
                )
            )
            * "one for each message, one for a whole batch; after a failure all fields are -1",
            name="Produced",
        )
    ),
    name="ProduceMessageAck",
)


def produce_message_prepare(*extra: Any) -> Struct:
    """PRODUCE_MESSAGE_PREPARE (ProduceMessagePrepareRequestCodec.java:41-51)."""
    return Struct(
        "topic" / string2,
        "app" / string2,
        "sequence" / int64 * "number of the client's transaction",
        "transaction_id" / string2 * "chosen by the user, for FETCH_PRODUCE_FEEDBACK",
        *extra,
        name="ProduceMessagePrepare",
    )


PRODUCE_MESSAGE_PREPARE_ACK = Struct("tx_id" / string2, "code" / code, name="ProduceMessagePrepareAck")

END_OF_TRANSACTION = Struct("topic" / string2, "app" / string2, "tx_id" / string2, name="EndOfTransaction")

CODE = Struct("code" / code, name="Code")


def fetch_produce_feedback(*timeout: Any) -> Struct:
    """FETCH_PRODUCE_FEEDBACK (FetchProduceFeedbackRequestCodec.java:40-50)."""
    return Struct(
        "app" / string2,
        "topic" / string2,
        "status" / Symbols(int8, TRANSACTION_STATUS),
        *timeout,
        name="FetchProduceFeedback",
    )


FETCH_PRODUCE_FEEDBACK_ACK = Struct(
    "data" / array(Struct("topic" / string2, "tx_id" / string2, "transaction_id" / string2, name="OpenTransaction")),
    "code" / code,
    name="FetchProduceFeedbackAck",
)


# The tables: what a command type means in each dialect.

SHARED: dict[int, Node] = {
    2: EMPTY,
    3: TOPICS_AND_SEQUENCE,
    -3: ADD_CONSUMER_ACK,
    4: TOPICS_OF_APP,
    5: TOPICS_AND_SEQUENCE,
    -5: ADD_PRODUCER_ACK,
    6: TOPICS_OF_APP,
    7: EMPTY,
    8: EMPTY,
    -8: FETCH_HEALTH_ACK,
    10: TOPICS_OF_APP,
    20: TOPICS_OF_APP,
    -20: FIND_COORDINATOR_ACK,
    21: FETCH_ASSIGNED_PARTITION,
    -21: FETCH_ASSIGNED_PARTITION_ACK,
    30: FETCH_TOPIC_MESSAGE,
    31: FETCH_PARTITION_MESSAGE,
    32: COMMIT_ACK,
    33: COMMIT_ACK_INDEX,
    -33: COMMIT_ACK_ACK,
    35: FETCH_INDEX,
    -50: PRODUCE_MESSAGE_ACK,
    -51: PRODUCE_MESSAGE_PREPARE_ACK,
    52: END_OF_TRANSACTION,
    -52: CODE,
    53: END_OF_TRANSACTION,
    -53: CODE,
    -54: FETCH_PRODUCE_FEEDBACK_ACK,
    -128: EMPTY,
}


def implemented(string: String, record: Struct) -> dict[int, Node]:
    """The payloads as JoyQueue writes them, except those of ``versioned``.

    Args:
        string: the type of strings with a one-byte length.
        record: the layout of a message.
    """
    return {
        **SHARED,
        **mqtt(string),
        1: add_connection(string, "language" / language),
        -1: add_connection_ack(string),
        -30: fetch_topic_message_ack(record, "code" / code),
        -31: fetch_partition_message_ack(record),
        -32: COMMIT_ACK_ACK,
        50: produce_message(record),
        51: produce_message_prepare("timeout" / Duration(int32) * "milliseconds"),
        54: fetch_produce_feedback("long_poll_timeout" / Duration(int32) * "milliseconds"),
    }


def documented(record: Struct = DOCUMENTED_MESSAGE) -> dict[int, Node]:
    """The payloads as the document has them, and as implemented where it has none.

    Args:
        record: the layout of a message.
    """
    return {
        **SHARED,
        **mqtt(string1),
        1: add_connection(string2),
        -1: add_connection_ack(string2),
        -10: DOCUMENTED_FETCH_CLUSTER_ACK,
        -30: fetch_topic_message_ack(record),
        -31: fetch_partition_message_ack(record),
        -32: DOCUMENTED_COMMIT_ACK_ACK,
        -35: FETCH_INDEX_ACK_V1,
        50: produce_message(record),
        51: produce_message_prepare(),
        54: fetch_produce_feedback("count" / int32, "long_poll_timeout" / Duration(int64) * "milliseconds"),
        -100: subscribe_ack(string1),
    }


def versioned(string: String, version: Any) -> dict[int, Node]:
    """The answers whose layout depends on the header version; versions that are to come read as the newest known.

    Args:
        string: the type of strings with a one-byte length.
        version: an expression for the header version.
    """
    cluster = IfThenElse(
        version >= 4, FETCH_CLUSTER_ACK_V4, IfThenElse(version >= 2, FETCH_CLUSTER_ACK_V2, FETCH_CLUSTER_ACK_V1)
    )
    subscribed = IfThenElse(version >= 3, subscribe_ack(string, "rec_leader" / int32), subscribe_ack(string))
    return {
        -10: cluster,
        -35: IfThenElse(version >= 3, FETCH_INDEX_ACK_V3, FETCH_INDEX_ACK_V1),
        -100: subscribed,
    }


NEWEST: dict[int, Node] = {
    -10: FETCH_CLUSTER_ACK_V4,
    -35: FETCH_INDEX_ACK_V3,
    -100: subscribe_ack(string1, "rec_leader" / int32),
}
VERSIONED = frozenset(NEWEST)


def by_version(string: String, otherwise: dict[int, Node]) -> dict[int, Node]:
    """``versioned`` by ``context.layout_version`` if that is given, and other layouts if not."""
    layouts = versioned(string, context.layout_version)
    return {kind: IfThenElse(context.layout_version, layouts[kind], otherwise[kind]) for kind in layouts}
