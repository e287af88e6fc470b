"""Values of the layouts of joyqueue, written by `wirekit schemas joyqueue --output pyi`."""

from typing import Any, Generic, TypeVar

from wirekit.types import Fields
from wirekit.values import Symbol

_Content = TypeVar("_Content")

class _Opened(Fields, Generic[_Content]):
    """Compressed data: the bytes and their content."""

    compressed: bytes
    content: _Content

class Frame(Fields):
    """a request or a response"""

    length: int
    magic: int
    version: int
    identity: _Frame_identity
    request_id: int
    type: Symbol
    send_time: int
    status: Symbol | None
    error: str | None
    payload: Any

class _Frame_identity(Fields):
    direction: Symbol
    qos_level: Symbol
    reserved: int

class _Frame_payload(Fields):
    ...

class _Frame_payload2(Fields):
    topics: list[str | None]
    app: str | None
    sequence: int

class _Frame_payload_consumer_ids(Fields):
    topic: str | None
    consumer_id: str | None

class _Frame_payload3(Fields):
    consumer_ids: list[_Frame_payload_consumer_ids]

class _Frame_payload4(Fields):
    topics: list[str | None]
    app: str | None

class _Frame_payload_producer_ids(Fields):
    topic: str | None
    producer_id: str | None

class _Frame_payload5(Fields):
    producer_ids: list[_Frame_payload_producer_ids]

class _Frame_payload6(Fields):
    point: float

class _Frame_payload_coordinators(Fields):
    topic: str | None
    id: int
    host: str | None
    port: int | None
    data_center: str | None
    is_nearby: bool | None
    weight: int | None
    code: Symbol

class _Frame_payload7(Fields):
    coordinators: list[_Frame_payload_coordinators]

class _Frame_payload_topics(Fields):
    topic: str | None
    session_timeout: int
    is_nearby: bool

class _Frame_payload8(Fields):
    topics: list[_Frame_payload_topics]
    app: str | None

class _Frame_payload_data(Fields):
    topic: str | None
    partitions: list[int]
    code: Symbol

class _Frame_payload9(Fields):
    data: list[_Frame_payload_data]

class _Frame_payload_topics2(Fields):
    topic: str | None
    count: int

class _Frame_payload10(Fields):
    topics: list[_Frame_payload_topics2]
    app: str | None
    ack_timeout: int
    long_poll_timeout: int

class _Frame_payload_topics_partitions(Fields):
    partition: int
    count: int
    index: int

class _Frame_payload_topics3(Fields):
    topic: str | None
    partitions: list[_Frame_payload_topics_partitions]

class _Frame_payload11(Fields):
    topics: list[_Frame_payload_topics3]
    app: str | None

class _Frame_payload_topics_partitions_data(Fields):
    partition: int
    index: int
    type: Symbol

class _Frame_payload_topics_partitions2(Fields):
    partition: int
    data: list[_Frame_payload_topics_partitions_data]

class _Frame_payload_topics4(Fields):
    topic: str | None
    partitions: list[_Frame_payload_topics_partitions2]

class _Frame_payload12(Fields):
    topics: list[_Frame_payload_topics4]
    app: str | None

class _Frame_payload_topics_partitions3(Fields):
    partition: int
    index: int

class _Frame_payload_topics5(Fields):
    topic: str | None
    partitions: list[_Frame_payload_topics_partitions3]

class _Frame_payload13(Fields):
    topics: list[_Frame_payload_topics5]
    app: str | None

class _Frame_payload_data_partition_data(Fields):
    partition: int
    code: Symbol

class _Frame_payload_data2(Fields):
    topic: str | None
    partition_data: list[_Frame_payload_data_partition_data]

class _Frame_payload14(Fields):
    count: int
    data: list[_Frame_payload_data2]

class _Frame_payload_topics6(Fields):
    topic: str | None
    partitions: list[int]

class _Frame_payload15(Fields):
    topics: list[_Frame_payload_topics6]
    app: str | None

class _Frame_payload_data_result(Fields):
    partition: int
    index: int
    start_time: int

class _Frame_payload_data3(Fields):
    topic: str | None
    code: Symbol
    result: list[_Frame_payload_data_result]

class _Frame_payload16(Fields):
    data: list[_Frame_payload_data3]

class _Frame_payload17(Fields):
    tx_id: str | None
    code: Symbol

class _Frame_payload18(Fields):
    topic: str | None
    app: str | None
    tx_id: str | None

class _Frame_payload19(Fields):
    code: Symbol

class _Frame_payload_data4(Fields):
    topic: str | None
    tx_id: str | None
    transaction_id: str | None

class _Frame_payload20(Fields):
    data: list[_Frame_payload_data4]
    code: Symbol

class _Frame_payload_subscriptions(Fields):
    topic: str | None
    app: str | None
    type: Symbol

class _Frame_payload21(Fields):
    client_type: Symbol
    subscriptions: list[_Frame_payload_subscriptions]

class _Frame_payload22(Fields):
    subscriptions: list[_Frame_payload_subscriptions]

class _Frame_payload23(Fields):
    app: str | None
    subscribe_type: int

class _Frame_payload24(Fields):
    topics: list[str | None]

class _Frame_payload25(Fields):
    app: str | None
    token: str | None
    language: Symbol
    client_version: str | None

class _Frame_payload26(Fields):
    username: str | None
    password: str | None
    app: str | None
    token: str | None
    region: str | None
    namespace: str | None
    language: Symbol
    version: str | None
    ip: str | None
    time: int
    sequence: int

class _Frame_payload27(Fields):
    connection_id: str | None
    notification: str | None

class _Frame_payload_data_messages_system_code(Fields):
    compressed: bool
    ordered: bool
    source: Symbol
    compression: Symbol
    address_type: Symbol
    message_version: int
    batch: bool
    reserved: int

class _Frame_payload_data_messages(Fields):
    length: int
    partition: int
    index: int
    term: int
    magic: int
    system_code: _Frame_payload_data_messages_system_code
    priority: int
    client_ip: bytes
    send_time: int
    store_time: int
    body_crc: int
    flag: int
    body: bytes | None
    business_id: str | None
    attributes: str | None
    extension: bytes | None
    app: str | None

class _Frame_payload_data5(Fields):
    topic: str | None
    messages: list[_Frame_payload_data_messages]
    code: Symbol

class _Frame_payload28(Fields):
    data: list[_Frame_payload_data5]

class _Frame_payload_data_partitions(Fields):
    partition: int
    messages: list[_Frame_payload_data_messages]
    code: Symbol

class _Frame_payload_data6(Fields):
    topic: str | None
    partitions: list[_Frame_payload_data_partitions]

class _Frame_payload29(Fields):
    data: list[_Frame_payload_data6]

class _Frame_payload_topics7(Fields):
    topic: str | None
    tx_id: str | None
    timeout: int
    qos_level: Symbol
    messages: list[_Frame_payload_data_messages]

class _Frame_payload30(Fields):
    topics: list[_Frame_payload_topics7]
    app: str | None

class _Frame_payload31(Fields):
    topic: str | None
    app: str | None
    sequence: int
    transaction_id: str | None
    timeout: int

class _Frame_payload32(Fields):
    app: str | None
    topic: str | None
    status: Symbol
    long_poll_timeout: int

class _Frame_payload_topics_producer_policy_weight(Fields):
    broker_id: str | None
    weight: int

class _Frame_payload_topics_producer_policy(Fields):
    is_nearby: bool
    is_single: bool
    is_archive: bool
    weight: list[_Frame_payload_topics_producer_policy_weight]
    black_list: list[str | None]
    timeout: int

class _Frame_payload_topics_consumer_policy(Fields):
    is_nearby: bool
    is_paused: bool
    is_archive: bool
    is_retry: bool
    is_seq: bool
    ack_timeout: int
    batch_size: int
    concurrent_consume: bool
    concurrent_prefetch_size: int
    delay: int
    black_list: list[str | None]
    err_times: int
    max_partition_num: int
    read_retry_probability: int

class _Frame_payload_topics_partition_groups(Fields):
    id: int
    leader: int
    partitions: list[int]

class _Frame_payload_topics_params(Fields):
    key: str | None
    value: str | None

class _Frame_payload_topics8(Fields):
    topic_code: str | None
    is_exist_producer_policy: bool
    producer_policy: _Frame_payload_topics_producer_policy | None
    is_exist_consumer_policy: bool
    consumer_policy: _Frame_payload_topics_consumer_policy | None
    type: Symbol
    partition_groups: list[_Frame_payload_topics_partition_groups]
    code: Symbol
    params: list[_Frame_payload_topics_params]

class _Frame_payload_brokers_permission(Fields):
    readable: bool
    writable: bool
    reserved: int

class _Frame_payload_brokers(Fields):
    id: int
    host: str | None
    port: int
    data_center: str | None
    nearby: bool
    weight: int
    sys_code: int
    permission: _Frame_payload_brokers_permission

class _Frame_payload33(Fields):
    topics: list[_Frame_payload_topics8]
    brokers: list[_Frame_payload_brokers]

class _Frame_payload_topics9(Fields):
    topic_code: str | None
    is_exist_producer_policy: bool
    producer_policy: _Frame_payload_topics_producer_policy | None
    is_exist_consumer_policy: bool
    consumer_policy: _Frame_payload_topics_consumer_policy | None
    type: Symbol
    partition_groups: list[_Frame_payload_topics_partition_groups]
    code: Symbol

class _Frame_payload34(Fields):
    topics: list[_Frame_payload_topics9]
    brokers: list[_Frame_payload_brokers]

class _Frame_payload_brokers2(Fields):
    id: int
    host: str | None
    port: int
    data_center: str | None
    nearby: bool
    weight: int

class _Frame_payload35(Fields):
    topics: list[_Frame_payload_topics9]
    brokers: list[_Frame_payload_brokers2]

class _Frame_payload_topics_partitions4(Fields):
    partition: int
    index: int
    code: Symbol
    left_index: int
    right_index: int

class _Frame_payload_topics10(Fields):
    topic: str | None
    partitions: list[_Frame_payload_topics_partitions4]

class _Frame_payload36(Fields):
    topics: list[_Frame_payload_topics10]

class _Frame_payload_topics_partitions5(Fields):
    partition: int
    index: int
    code: Symbol

class _Frame_payload_topics11(Fields):
    topic: str | None
    partitions: list[_Frame_payload_topics_partitions5]

class _Frame_payload37(Fields):
    topics: list[_Frame_payload_topics11]

class _Frame_payload_topic_configs_partition_groups_brokers(Fields):
    id: int
    ip: str | None
    port: int
    data_center: str | None
    retry_type: str | None

class _Frame_payload_topic_configs_partition_groups(Fields):
    topic: str | None
    leader: int
    isrs: list[int]
    learners: list[int]
    term: int
    group: int
    partitions: list[int]
    replicas: list[int]
    elect_type: Symbol
    brokers: list[_Frame_payload_topic_configs_partition_groups_brokers]
    rec_leader: int

class _Frame_payload_topic_configs(Fields):
    name: str | None
    partitions: int
    type: Symbol
    priority_partitions: list[int]
    partition_groups: list[_Frame_payload_topic_configs_partition_groups]

class _Frame_payload38(Fields):
    topic_configs: list[_Frame_payload_topic_configs]

class _Frame_payload_topic_configs_partition_groups2(Fields):
    topic: str | None
    leader: int
    isrs: list[int]
    learners: list[int]
    term: int
    group: int
    partitions: list[int]
    replicas: list[int]
    elect_type: Symbol
    brokers: list[_Frame_payload_topic_configs_partition_groups_brokers]

class _Frame_payload_topic_configs2(Fields):
    name: str | None
    partitions: int
    type: Symbol
    priority_partitions: list[int]
    partition_groups: list[_Frame_payload_topic_configs_partition_groups2]

class _Frame_payload39(Fields):
    topic_configs: list[_Frame_payload_topic_configs2]

class FrameOpened(Fields):
    """a frame, bodies decompressed and batches split"""

    length: int
    magic: int
    version: int
    identity: _Frame_identity
    request_id: int
    type: Symbol
    send_time: int
    status: Symbol | None
    error: str | None
    payload: Any

class _FrameOpened_payload_data_messages_client_ip(Fields):
    port: int
    address: bytes
    unused: bytes

class _FrameOpened_payload_data_messages_body_messages(Fields):
    length: int
    priority: int
    flag: int
    body: bytes | None
    business_id: str | None
    attributes: str | None

class _FrameOpened_payload_data_messages_body(Fields):
    messages: list[_FrameOpened_payload_data_messages_body_messages]

class _FrameOpened_payload_data_messages(Fields):
    length: int
    partition: int
    index: int
    term: int
    magic: int
    system_code: _Frame_payload_data_messages_system_code
    priority: int
    client_ip: _FrameOpened_payload_data_messages_client_ip | bytes
    send_time: int
    store_time: int
    body_crc: int
    flag: int
    body: bytes | _Opened[_FrameOpened_payload_data_messages_body | bytes] | None
    business_id: str | None
    attributes: str | None
    extension: bytes | None
    app: str | None

class _FrameOpened_payload_data(Fields):
    topic: str | None
    messages: list[_FrameOpened_payload_data_messages]
    code: Symbol

class _FrameOpened_payload(Fields):
    data: list[_FrameOpened_payload_data]

class _FrameOpened_payload_data_partitions(Fields):
    partition: int
    messages: list[_FrameOpened_payload_data_messages]
    code: Symbol

class _FrameOpened_payload_data2(Fields):
    topic: str | None
    partitions: list[_FrameOpened_payload_data_partitions]

class _FrameOpened_payload2(Fields):
    data: list[_FrameOpened_payload_data2]

class _FrameOpened_payload_topics(Fields):
    topic: str | None
    tx_id: str | None
    timeout: int
    qos_level: Symbol
    messages: list[_FrameOpened_payload_data_messages]

class _FrameOpened_payload3(Fields):
    topics: list[_FrameOpened_payload_topics]
    app: str | None

class Header(Fields):
    """the header of a frame"""

    length: int
    magic: int
    version: int
    identity: _Frame_identity
    request_id: int
    type: Symbol
    send_time: int
    status: Symbol | None
    error: str | None

class Message(Fields):
    """a message, as sent and as stored"""

    length: int
    partition: int
    index: int
    term: int
    magic: int
    system_code: _Frame_payload_data_messages_system_code
    priority: int
    client_ip: bytes
    send_time: int
    store_time: int
    body_crc: int
    flag: int
    body: bytes | None
    business_id: str | None
    attributes: str | None
    extension: bytes | None
    app: str | None

class MessageOpened(Fields):
    """a message, bodies decompressed and batches split"""

    length: int
    partition: int
    index: int
    term: int
    magic: int
    system_code: _Frame_payload_data_messages_system_code
    priority: int
    client_ip: _FrameOpened_payload_data_messages_client_ip | bytes
    send_time: int
    store_time: int
    body_crc: int
    flag: int
    body: bytes | _Opened[_FrameOpened_payload_data_messages_body | bytes] | None
    business_id: str | None
    attributes: str | None
    extension: bytes | None
    app: str | None

class Batch(Fields):
    """the messages in the body of a batch"""

    messages: list[_FrameOpened_payload_data_messages_body_messages]

class ClientAddress(Fields):
    """port and address: the start of client_ip for IPv4"""

    port: int
    address: bytes

class FrameUnsigned(Fields):
    """repairs frames with strings of 128 to 255 bytes after a one-byte length, which peers misread"""

    length: int
    magic: int
    version: int
    identity: _Frame_identity
    request_id: int
    type: Symbol
    send_time: int
    status: Symbol | None
    error: str | None
    payload: Any

class AddConnectionRequest(Fields):
    """payload of ADD_CONNECTION (1)"""

    username: str | None
    password: str | None
    app: str | None
    token: str | None
    region: str | None
    namespace: str | None
    language: Symbol
    version: str | None
    ip: str | None
    time: int
    sequence: int

class AddConnectionResponse(Fields):
    """payload of ADD_CONNECTION_ACK (-1)"""

    connection_id: str | None
    notification: str | None

class RemoveConnectionRequest(Fields):
    """payload of REMOVE_CONNECTION (2)"""

    ...

class AddConsumerRequest(Fields):
    """payload of ADD_CONSUMER (3)"""

    topics: list[str | None]
    app: str | None
    sequence: int

class AddConsumerResponse(Fields):
    """payload of ADD_CONSUMER_ACK (-3)"""

    consumer_ids: list[_Frame_payload_consumer_ids]

class RemoveConsumerRequest(Fields):
    """payload of REMOVE_CONSUMER (4)"""

    topics: list[str | None]
    app: str | None

class AddProducerRequest(Fields):
    """payload of ADD_PRODUCER (5)"""

    topics: list[str | None]
    app: str | None
    sequence: int

class AddProducerResponse(Fields):
    """payload of ADD_PRODUCER_ACK (-5)"""

    producer_ids: list[_Frame_payload_producer_ids]

class RemoveProducerRequest(Fields):
    """payload of REMOVE_PRODUCER (6)"""

    topics: list[str | None]
    app: str | None

class HeartbeatRequest(Fields):
    """payload of HEARTBEAT (7)"""

    ...

class FetchHealthRequest(Fields):
    """payload of FETCH_HEALTH (8)"""

    ...

class FetchHealthResponse(Fields):
    """payload of FETCH_HEALTH_ACK (-8)"""

    point: float

class FetchClusterRequest(Fields):
    """payload of FETCH_CLUSTER (10)"""

    topics: list[str | None]
    app: str | None

FetchClusterResponse = _Frame_payload33 | _Frame_payload34 | _Frame_payload35

class FindCoordinatorRequest(Fields):
    """payload of FIND_COORDINATOR (20)"""

    topics: list[str | None]
    app: str | None

class FindCoordinatorResponse(Fields):
    """payload of FIND_COORDINATOR_ACK (-20)"""

    coordinators: list[_Frame_payload_coordinators]

class FetchAssignedPartitionRequest(Fields):
    """payload of FETCH_ASSIGNED_PARTITION (21)"""

    topics: list[_Frame_payload_topics]
    app: str | None

class FetchAssignedPartitionResponse(Fields):
    """payload of FETCH_ASSIGNED_PARTITION_ACK (-21)"""

    data: list[_Frame_payload_data]

class FetchTopicMessageRequest(Fields):
    """payload of FETCH_TOPIC_MESSAGE (30)"""

    topics: list[_Frame_payload_topics2]
    app: str | None
    ack_timeout: int
    long_poll_timeout: int

class FetchTopicMessageResponse(Fields):
    """payload of FETCH_TOPIC_MESSAGE_ACK (-30)"""

    data: list[_Frame_payload_data5]

class FetchPartitionMessageRequest(Fields):
    """payload of FETCH_PARTITION_MESSAGE (31)"""

    topics: list[_Frame_payload_topics3]
    app: str | None

class FetchPartitionMessageResponse(Fields):
    """payload of FETCH_PARTITION_MESSAGE_ACK (-31)"""

    data: list[_Frame_payload_data6]

class CommitAckRequest(Fields):
    """payload of COMMIT_ACK (32)"""

    topics: list[_Frame_payload_topics4]
    app: str | None

class CommitAckResponse(Fields):
    """payload of COMMIT_ACK_ACK (-32)"""

    count: int
    data: list[_Frame_payload_data2]

class CommitAckIndexRequest(Fields):
    """payload of COMMIT_ACK_INDEX (33)"""

    topics: list[_Frame_payload_topics5]
    app: str | None

class CommitAckIndexResponse(Fields):
    """payload of COMMIT_ACK_INDEX_ACK (-33)"""

    count: int
    data: list[_Frame_payload_data2]

class FetchIndexRequest(Fields):
    """payload of FETCH_INDEX (35)"""

    topics: list[_Frame_payload_topics6]
    app: str | None

FetchIndexResponse = _Frame_payload36 | _Frame_payload37

class ProduceMessageRequest(Fields):
    """payload of PRODUCE_MESSAGE (50)"""

    topics: list[_Frame_payload_topics7]
    app: str | None

class ProduceMessageResponse(Fields):
    """payload of PRODUCE_MESSAGE_ACK (-50)"""

    data: list[_Frame_payload_data3]

class ProduceMessagePrepareRequest(Fields):
    """payload of PRODUCE_MESSAGE_PREPARE (51)"""

    topic: str | None
    app: str | None
    sequence: int
    transaction_id: str | None
    timeout: int

class ProduceMessagePrepareResponse(Fields):
    """payload of PRODUCE_MESSAGE_PREPARE_ACK (-51)"""

    tx_id: str | None
    code: Symbol

class ProduceMessageCommitRequest(Fields):
    """payload of PRODUCE_MESSAGE_COMMIT (52)"""

    topic: str | None
    app: str | None
    tx_id: str | None

class ProduceMessageCommitResponse(Fields):
    """payload of PRODUCE_MESSAGE_COMMIT_ACK (-52)"""

    code: Symbol

class ProduceMessageRollbackRequest(Fields):
    """payload of PRODUCE_MESSAGE_ROLLBACK (53)"""

    topic: str | None
    app: str | None
    tx_id: str | None

class ProduceMessageRollbackResponse(Fields):
    """payload of PRODUCE_MESSAGE_ROLLBACK_ACK (-53)"""

    code: Symbol

class FetchProduceFeedbackRequest(Fields):
    """payload of FETCH_PRODUCE_FEEDBACK (54)"""

    app: str | None
    topic: str | None
    status: Symbol
    long_poll_timeout: int

class FetchProduceFeedbackResponse(Fields):
    """payload of FETCH_PRODUCE_FEEDBACK_ACK (-54)"""

    data: list[_Frame_payload_data4]
    code: Symbol

class SubscribeRequest(Fields):
    """payload of SUBSCRIBE (100)"""

    client_type: Symbol
    subscriptions: list[_Frame_payload_subscriptions]

SubscribeResponse = _Frame_payload38 | _Frame_payload39

class UnsubscribeRequest(Fields):
    """payload of UNSUBSCRIBE (101)"""

    subscriptions: list[_Frame_payload_subscriptions]

class GetTopicsRequest(Fields):
    """payload of GET_TOPICS (102)"""

    app: str | None
    subscribe_type: int

class GetTopicsResponse(Fields):
    """payload of GET_TOPICS_ACK (-102)"""

    topics: list[str | None]

class AuthorizationRequest(Fields):
    """payload of AUTHORIZATION (103)"""

    app: str | None
    token: str | None
    language: Symbol
    client_version: str | None
