"""Values of the layouts of kafka, written by `wirekit schemas kafka --output pyi`."""

from typing import Any, Generic, TypeVar

from wirekit.types import Fields
from wirekit.values import Symbol

_Content = TypeVar("_Content")

class _Opened(Fields, Generic[_Content]):
    """Compressed data: the bytes and their content."""

    compressed: bytes
    content: _Content

class Request(Fields):
    """a request of any API"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Any

class _Request_body_topic_data_data_record_set_messages_message_attributes(Fields):
    codec: Symbol
    timestamp_type: Symbol
    reserved: int

class MessageSet(Fields):
    """messages of magic 0 and 1 up to the end"""

    messages: list[_MessageSet_messages]
    partial: bytes

class _MessageSet_messages_message(Fields):
    crc: int
    magic: Symbol
    attributes: _Request_body_topic_data_data_record_set_messages_message_attributes
    timestamp: int | None
    key: bytes | None
    value: bytes | _Opened[MessageSet] | None

class _MessageSet_messages(Fields):
    offset: int
    message_size: int
    message: _MessageSet_messages_message

class _Request_body_topic_data_data_record_set(Fields):
    messages: list[_MessageSet_messages]
    partial: bytes

class _Request_body_topic_data_data(Fields):
    partition: int
    record_set: _Request_body_topic_data_data_record_set | None

class _Request_body_topic_data(Fields):
    topic: str
    data: list[_Request_body_topic_data_data]

class _Request_body(Fields):
    acks: int
    timeout: int
    topic_data: list[_Request_body_topic_data]

class _Request_body_topics_partitions(Fields):
    partition: int
    fetch_offset: int
    max_bytes: int

class _Request_body_topics(Fields):
    topic: str
    partitions: list[_Request_body_topics_partitions]

class _Request_body2(Fields):
    replica_id: int
    max_wait_time: int
    min_bytes: int
    topics: list[_Request_body_topics]

class _Request_body3(Fields):
    replica_id: int
    max_wait_time: int
    min_bytes: int
    max_bytes: int
    topics: list[_Request_body_topics]

class _Request_body_topics_partitions2(Fields):
    partition: int
    timestamp: int
    max_num_offsets: int

class _Request_body_topics2(Fields):
    topic: str
    partitions: list[_Request_body_topics_partitions2]

class _Request_body4(Fields):
    replica_id: int
    topics: list[_Request_body_topics2]

class _Request_body_topics_partitions3(Fields):
    partition: int
    timestamp: int

class _Request_body_topics3(Fields):
    topic: str
    partitions: list[_Request_body_topics_partitions3]

class _Request_body5(Fields):
    replica_id: int
    topics: list[_Request_body_topics3]

class _Request_body6(Fields):
    topics: list[str]

class _Request_body7(Fields):
    topics: list[str] | None

class _Request_body_partition_states(Fields):
    topic: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: list[int]
    zk_version: int
    replicas: list[int]

class _Request_body_live_leaders(Fields):
    id: int
    host: str
    port: int

class _Request_body8(Fields):
    controller_id: int
    controller_epoch: int
    partition_states: list[_Request_body_partition_states]
    live_leaders: list[_Request_body_live_leaders]

class _Request_body_partitions(Fields):
    topic: str
    partition: int

class _Request_body9(Fields):
    controller_id: int
    controller_epoch: int
    delete_partitions: bool
    partitions: list[_Request_body_partitions]

class _Request_body10(Fields):
    controller_id: int
    controller_epoch: int
    partition_states: list[_Request_body_partition_states]
    live_brokers: list[_Request_body_live_leaders]

class _Request_body_live_brokers_end_points(Fields):
    port: int
    host: str
    security_protocol_type: Symbol

class _Request_body_live_brokers(Fields):
    id: int
    end_points: list[_Request_body_live_brokers_end_points]

class _Request_body11(Fields):
    controller_id: int
    controller_epoch: int
    partition_states: list[_Request_body_partition_states]
    live_brokers: list[_Request_body_live_brokers]

class _Request_body_live_brokers2(Fields):
    id: int
    end_points: list[_Request_body_live_brokers_end_points]
    rack: str | None

class _Request_body12(Fields):
    controller_id: int
    controller_epoch: int
    partition_states: list[_Request_body_partition_states]
    live_brokers: list[_Request_body_live_brokers2]

class _Request_body_live_brokers_end_points2(Fields):
    port: int
    host: str
    listener_name: str
    security_protocol_type: Symbol

class _Request_body_live_brokers3(Fields):
    id: int
    end_points: list[_Request_body_live_brokers_end_points2]
    rack: str | None

class _Request_body13(Fields):
    controller_id: int
    controller_epoch: int
    partition_states: list[_Request_body_partition_states]
    live_brokers: list[_Request_body_live_brokers3]

class _Request_body14(Fields):
    broker_id: int

class _Request_body_topics_partitions4(Fields):
    partition: int
    offset: int
    metadata: str | None

class _Request_body_topics4(Fields):
    topic: str
    partitions: list[_Request_body_topics_partitions4]

class _Request_body15(Fields):
    group_id: str
    topics: list[_Request_body_topics4]

class _Request_body_topics_partitions5(Fields):
    partition: int
    offset: int
    timestamp: int
    metadata: str | None

class _Request_body_topics5(Fields):
    topic: str
    partitions: list[_Request_body_topics_partitions5]

class _Request_body16(Fields):
    group_id: str
    group_generation_id: int
    member_id: str
    topics: list[_Request_body_topics5]

class _Request_body17(Fields):
    group_id: str
    group_generation_id: int
    member_id: str
    retention_time: int
    topics: list[_Request_body_topics4]

class _Request_body_topics_partitions6(Fields):
    partition: int

class _Request_body_topics6(Fields):
    topic: str
    partitions: list[_Request_body_topics_partitions6]

class _Request_body18(Fields):
    group_id: str
    topics: list[_Request_body_topics6]

class _Request_body19(Fields):
    group_id: str
    topics: list[_Request_body_topics6] | None

class _Request_body20(Fields):
    group_id: str

class _Request_body_group_protocols(Fields):
    protocol_name: str
    protocol_metadata: bytes

class _Request_body21(Fields):
    group_id: str
    session_timeout: int
    member_id: str
    protocol_type: str
    group_protocols: list[_Request_body_group_protocols]

class _Request_body22(Fields):
    group_id: str
    session_timeout: int
    rebalance_timeout: int
    member_id: str
    protocol_type: str
    group_protocols: list[_Request_body_group_protocols]

class _Request_body23(Fields):
    group_id: str
    group_generation_id: int
    member_id: str

class _Request_body24(Fields):
    group_id: str
    member_id: str

class _Request_body_group_assignment(Fields):
    member_id: str
    member_assignment: bytes

class _Request_body25(Fields):
    group_id: str
    generation_id: int
    member_id: str
    group_assignment: list[_Request_body_group_assignment]

class _Request_body26(Fields):
    group_ids: list[str]

class _Request_body27(Fields):
    ...

class _Request_body28(Fields):
    mechanism: str

class _Request_body_create_topic_requests_replica_assignment(Fields):
    partition_id: int
    replicas: list[int]

class _Request_body_create_topic_requests_configs(Fields):
    config_key: str
    config_value: str

class _Request_body_create_topic_requests(Fields):
    topic: str
    num_partitions: int
    replication_factor: int
    replica_assignment: list[_Request_body_create_topic_requests_replica_assignment]
    configs: list[_Request_body_create_topic_requests_configs]

class _Request_body29(Fields):
    create_topic_requests: list[_Request_body_create_topic_requests]
    timeout: int

class _Request_body30(Fields):
    create_topic_requests: list[_Request_body_create_topic_requests]
    timeout: int
    validate_only: bool

class _Request_body31(Fields):
    topics: list[str]
    timeout: int

class Response(Fields):
    """a response; the context api and version selects its body"""

    size: int
    correlation_id: int
    body: Any

class _Response_body_responses_partition_responses(Fields):
    partition: int
    error_code: Symbol
    base_offset: int

class _Response_body_responses(Fields):
    topic: str
    partition_responses: list[_Response_body_responses_partition_responses]

class _Response_body(Fields):
    responses: list[_Response_body_responses]

class _Response_body2(Fields):
    responses: list[_Response_body_responses]
    throttle_time_ms: int

class _Response_body_responses_partition_responses2(Fields):
    partition: int
    error_code: Symbol
    base_offset: int
    log_append_time: int

class _Response_body_responses2(Fields):
    topic: str
    partition_responses: list[_Response_body_responses_partition_responses2]

class _Response_body3(Fields):
    responses: list[_Response_body_responses2]
    throttle_time_ms: int

class _Response_body_responses_partition_responses3(Fields):
    partition: int
    error_code: Symbol
    high_watermark: int
    record_set: _Request_body_topic_data_data_record_set | None

class _Response_body_responses3(Fields):
    topic: str
    partition_responses: list[_Response_body_responses_partition_responses3]

class _Response_body4(Fields):
    responses: list[_Response_body_responses3]

class _Response_body5(Fields):
    throttle_time_ms: int
    responses: list[_Response_body_responses3]

class _Response_body_responses_partition_responses4(Fields):
    partition: int
    error_code: Symbol
    offsets: list[int]

class _Response_body_responses4(Fields):
    topic: str
    partition_responses: list[_Response_body_responses_partition_responses4]

class _Response_body6(Fields):
    responses: list[_Response_body_responses4]

class _Response_body_responses_partition_responses5(Fields):
    partition: int
    error_code: Symbol
    timestamp: int
    offset: int

class _Response_body_responses5(Fields):
    topic: str
    partition_responses: list[_Response_body_responses_partition_responses5]

class _Response_body7(Fields):
    responses: list[_Response_body_responses5]

class _Response_body_brokers(Fields):
    node_id: int
    host: str
    port: int

class _Response_body_topic_metadata_partition_metadata(Fields):
    partition_error_code: Symbol
    partition_id: int
    leader: int
    replicas: list[int]
    isr: list[int]

class _Response_body_topic_metadata(Fields):
    topic_error_code: Symbol
    topic: str
    partition_metadata: list[_Response_body_topic_metadata_partition_metadata]

class _Response_body8(Fields):
    brokers: list[_Response_body_brokers]
    topic_metadata: list[_Response_body_topic_metadata]

class _Response_body_brokers2(Fields):
    node_id: int
    host: str
    port: int
    rack: str | None

class _Response_body_topic_metadata2(Fields):
    topic_error_code: Symbol
    topic: str
    is_internal: bool
    partition_metadata: list[_Response_body_topic_metadata_partition_metadata]

class _Response_body9(Fields):
    brokers: list[_Response_body_brokers2]
    controller_id: int
    topic_metadata: list[_Response_body_topic_metadata2]

class _Response_body10(Fields):
    brokers: list[_Response_body_brokers2]
    cluster_id: str | None
    controller_id: int
    topic_metadata: list[_Response_body_topic_metadata2]

class _Response_body_partitions(Fields):
    topic: str
    partition: int
    error_code: Symbol

class _Response_body11(Fields):
    error_code: Symbol
    partitions: list[_Response_body_partitions]

class _Response_body12(Fields):
    error_code: Symbol

class _Response_body13(Fields):
    error_code: Symbol
    partitions_remaining: list[_Request_body_partitions]

class _Response_body_responses_partition_responses6(Fields):
    partition: int
    error_code: Symbol

class _Response_body_responses6(Fields):
    topic: str
    partition_responses: list[_Response_body_responses_partition_responses6]

class _Response_body14(Fields):
    responses: list[_Response_body_responses6]

class _Response_body_responses_partition_responses7(Fields):
    partition: int
    offset: int
    metadata: str | None
    error_code: Symbol

class _Response_body_responses7(Fields):
    topic: str
    partition_responses: list[_Response_body_responses_partition_responses7]

class _Response_body15(Fields):
    responses: list[_Response_body_responses7]

class _Response_body16(Fields):
    responses: list[_Response_body_responses7]
    error_code: Symbol

class _Response_body17(Fields):
    error_code: Symbol
    coordinator: _Response_body_brokers

class _Response_body_members(Fields):
    member_id: str
    member_metadata: bytes

class _Response_body18(Fields):
    error_code: Symbol
    generation_id: int
    group_protocol: str
    leader_id: str
    member_id: str
    members: list[_Response_body_members]

class _Response_body19(Fields):
    error_code: Symbol
    member_assignment: bytes

class _Response_body_groups_members(Fields):
    member_id: str
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes

class _Response_body_groups(Fields):
    error_code: Symbol
    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: list[_Response_body_groups_members]

class _Response_body20(Fields):
    groups: list[_Response_body_groups]

class _Response_body_groups2(Fields):
    group_id: str
    protocol_type: str

class _Response_body21(Fields):
    error_code: Symbol
    groups: list[_Response_body_groups2]

class _Response_body22(Fields):
    error_code: Symbol
    enabled_mechanisms: list[str]

class _Response_body_api_versions(Fields):
    api_key: Symbol
    min_version: int
    max_version: int

class _Response_body23(Fields):
    error_code: Symbol
    api_versions: list[_Response_body_api_versions]

class _Response_body_topic_errors(Fields):
    topic: str
    error_code: Symbol

class _Response_body24(Fields):
    topic_errors: list[_Response_body_topic_errors]

class _Response_body_topic_errors2(Fields):
    topic: str
    error_code: Symbol
    error_message: str | None

class _Response_body25(Fields):
    topic_errors: list[_Response_body_topic_errors2]

class _Response_body26(Fields):
    topic_error_codes: list[_Response_body_topic_errors]

class RequestHeader(Fields):
    """size, API, version and correlation id of a request"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int

class ClientHeader(Fields):
    """the same, and the client id"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None

class ResponseHeader(Fields):
    """size and correlation id of a response"""

    size: int
    correlation_id: int

class ClientSoftware(Fields):
    """the bytes after the client id in ApiVersions v3 and later, which newer clients send to any broker"""

    header_tags: int
    name_size: int
    name: str
    version_size: int
    version: str
    tail: bytes

class SaslToken(Fields):
    """a raw token of a SASL mechanism"""

    size: int
    token: bytes

class ProduceRequestV0(Fields):
    """Produce; the specification page also calls it Send; request v0, since 0.8.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body

class ProduceResponseV0(Fields):
    """Produce; the specification page also calls it Send; response v0, since 0.8.0"""

    size: int
    correlation_id: int
    body: _Response_body

class ProduceRequestV1(Fields):
    """Produce; the specification page also calls it Send; request v1, since 0.9.0: throttle_time_ms"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body

class ProduceResponseV1(Fields):
    """Produce; the specification page also calls it Send; response v1, since 0.9.0: throttle_time_ms"""

    size: int
    correlation_id: int
    body: _Response_body2

class ProduceRequestV2(Fields):
    """Produce; the specification page also calls it Send; request v2, since 0.10.0: log_append_time"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body

class ProduceResponseV2(Fields):
    """Produce; the specification page also calls it Send; response v2, since 0.10.0: log_append_time"""

    size: int
    correlation_id: int
    body: _Response_body3

class FetchRequestV0(Fields):
    """Fetch; request v0, since 0.8.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body2

class FetchResponseV0(Fields):
    """Fetch; response v0, since 0.8.0"""

    size: int
    correlation_id: int
    body: _Response_body4

class FetchRequestV1(Fields):
    """Fetch; request v1, since 0.9.0: throttle_time_ms"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body2

class FetchResponseV1(Fields):
    """Fetch; response v1, since 0.9.0: throttle_time_ms"""

    size: int
    correlation_id: int
    body: _Response_body5

class FetchRequestV2(Fields):
    """Fetch; request v2, since 0.10.0: messages of magic 1"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body2

class FetchResponseV2(Fields):
    """Fetch; response v2, since 0.10.0: messages of magic 1"""

    size: int
    correlation_id: int
    body: _Response_body5

class FetchRequestV3(Fields):
    """Fetch; request v3, since 0.10.1: max_bytes of the whole response; the order of partitions matters, the first message is sent whole"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body3

class FetchResponseV3(Fields):
    """Fetch; response v3, since 0.10.1: max_bytes of the whole response; the order of partitions matters, the first message is sent whole"""

    size: int
    correlation_id: int
    body: _Response_body5

class ListOffsetsRequestV0(Fields):
    """ListOffsets; Offsets until 0.10.0; request v0, since 0.8.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body4

class ListOffsetsResponseV0(Fields):
    """ListOffsets; Offsets until 0.10.0; response v0, since 0.8.0"""

    size: int
    correlation_id: int
    body: _Response_body6

class ListOffsetsRequestV1(Fields):
    """ListOffsets; Offsets until 0.10.0; request v1, since 0.10.1: one offset by message timestamp instead of many"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body5

class ListOffsetsResponseV1(Fields):
    """ListOffsets; Offsets until 0.10.0; response v1, since 0.10.1: one offset by message timestamp instead of many"""

    size: int
    correlation_id: int
    body: _Response_body7

class MetadataRequestV0(Fields):
    """Metadata; request v0, since 0.8.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body6

class MetadataResponseV0(Fields):
    """Metadata; response v0, since 0.8.0"""

    size: int
    correlation_id: int
    body: _Response_body8

class MetadataRequestV1(Fields):
    """Metadata; request v1, since 0.10.0: null topics: all topics, an empty array: none; rack, controller_id, is_internal"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body7

class MetadataResponseV1(Fields):
    """Metadata; response v1, since 0.10.0: null topics: all topics, an empty array: none; rack, controller_id, is_internal"""

    size: int
    correlation_id: int
    body: _Response_body9

class MetadataRequestV2(Fields):
    """Metadata; request v2, since 0.10.1: cluster_id"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body7

class MetadataResponseV2(Fields):
    """Metadata; response v2, since 0.10.1: cluster_id"""

    size: int
    correlation_id: int
    body: _Response_body10

class LeaderAndIsrRequestV0(Fields):
    """LeaderAndIsr, from the controller to a broker; request v0, since 0.8.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body8

class LeaderAndIsrResponseV0(Fields):
    """LeaderAndIsr, from the controller to a broker; response v0, since 0.8.0"""

    size: int
    correlation_id: int
    body: _Response_body11

class StopReplicaRequestV0(Fields):
    """StopReplica, from the controller to a broker; request v0, since 0.8.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body9

class StopReplicaResponseV0(Fields):
    """StopReplica, from the controller to a broker; response v0, since 0.8.0"""

    size: int
    correlation_id: int
    body: _Response_body11

class UpdateMetadataRequestV0(Fields):
    """UpdateMetadata, from the controller to a broker; request v0, since 0.8.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body10

class UpdateMetadataResponseV0(Fields):
    """UpdateMetadata, from the controller to a broker; response v0, since 0.8.0"""

    size: int
    correlation_id: int
    body: _Response_body12

class UpdateMetadataRequestV1(Fields):
    """UpdateMetadata, from the controller to a broker; request v1, since 0.9.0: several end points per broker, with the port before the host"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body11

class UpdateMetadataResponseV1(Fields):
    """UpdateMetadata, from the controller to a broker; response v1, since 0.9.0: several end points per broker, with the port before the host"""

    size: int
    correlation_id: int
    body: _Response_body12

class UpdateMetadataRequestV2(Fields):
    """UpdateMetadata, from the controller to a broker; request v2, since 0.10.0: rack"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body12

class UpdateMetadataResponseV2(Fields):
    """UpdateMetadata, from the controller to a broker; response v2, since 0.10.0: rack"""

    size: int
    correlation_id: int
    body: _Response_body12

class UpdateMetadataRequestV3(Fields):
    """UpdateMetadata, from the controller to a broker; request v3, since 0.10.2: listener_name"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body13

class UpdateMetadataResponseV3(Fields):
    """UpdateMetadata, from the controller to a broker; response v3, since 0.10.2: listener_name"""

    size: int
    correlation_id: int
    body: _Response_body12

class ControlledShutdownRequestV0(Fields):
    """ControlledShutdown, from a broker to the controller; request v0, since 0.8.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    body: _Request_body14

class ControlledShutdownResponseV0(Fields):
    """ControlledShutdown, from a broker to the controller; response v0, since 0.8.0"""

    size: int
    correlation_id: int
    body: _Response_body13

class ControlledShutdownRequestV1(Fields):
    """ControlledShutdown, from a broker to the controller; request v1, since 0.9.0: client_id in the request header"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body14

class ControlledShutdownResponseV1(Fields):
    """ControlledShutdown, from a broker to the controller; response v1, since 0.9.0: client_id in the request header"""

    size: int
    correlation_id: int
    body: _Response_body13

class OffsetCommitRequestV0(Fields):
    """OffsetCommit; request v0, since 0.8.1"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body15

class OffsetCommitResponseV0(Fields):
    """OffsetCommit; response v0, since 0.8.1"""

    size: int
    correlation_id: int
    body: _Response_body14

class OffsetCommitRequestV1(Fields):
    """OffsetCommit; request v1, since 0.8.2: generation and member (consumer_id in 0.8.2), timestamp"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body16

class OffsetCommitResponseV1(Fields):
    """OffsetCommit; response v1, since 0.8.2: generation and member (consumer_id in 0.8.2), timestamp"""

    size: int
    correlation_id: int
    body: _Response_body14

class OffsetCommitRequestV2(Fields):
    """OffsetCommit; request v2, since 0.9.0: one retention_time instead of timestamps"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body17

class OffsetCommitResponseV2(Fields):
    """OffsetCommit; response v2, since 0.9.0: one retention_time instead of timestamps"""

    size: int
    correlation_id: int
    body: _Response_body14

class OffsetFetchRequestV0(Fields):
    """OffsetFetch; request v0, since 0.8.1"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body18

class OffsetFetchResponseV0(Fields):
    """OffsetFetch; response v0, since 0.8.1"""

    size: int
    correlation_id: int
    body: _Response_body15

class OffsetFetchRequestV1(Fields):
    """OffsetFetch; request v1, since 0.8.2: reads __consumer_offsets instead of ZooKeeper"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body18

class OffsetFetchResponseV1(Fields):
    """OffsetFetch; response v1, since 0.8.2: reads __consumer_offsets instead of ZooKeeper"""

    size: int
    correlation_id: int
    body: _Response_body15

class OffsetFetchRequestV2(Fields):
    """OffsetFetch; request v2, since 0.10.2: null topics: all topics of the group; an error_code for the whole response"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body19

class OffsetFetchResponseV2(Fields):
    """OffsetFetch; response v2, since 0.10.2: null topics: all topics of the group; an error_code for the whole response"""

    size: int
    correlation_id: int
    body: _Response_body16

class GroupCoordinatorRequestV0(Fields):
    """GroupCoordinator; ConsumerMetadata in 0.8.2, FindCoordinator from 0.11; request v0, since 0.8.2"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body20

class GroupCoordinatorResponseV0(Fields):
    """GroupCoordinator; ConsumerMetadata in 0.8.2, FindCoordinator from 0.11; response v0, since 0.8.2"""

    size: int
    correlation_id: int
    body: _Response_body17

class JoinGroupRequestV0(Fields):
    """JoinGroup; request v0, since 0.9.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body21

class JoinGroupResponseV0(Fields):
    """JoinGroup; response v0, since 0.9.0"""

    size: int
    correlation_id: int
    body: _Response_body18

class JoinGroupRequestV1(Fields):
    """JoinGroup; request v1, since 0.10.1: rebalance_timeout"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body22

class JoinGroupResponseV1(Fields):
    """JoinGroup; response v1, since 0.10.1: rebalance_timeout"""

    size: int
    correlation_id: int
    body: _Response_body18

class HeartbeatRequestV0(Fields):
    """Heartbeat; request v0, since 0.9.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body23

class HeartbeatResponseV0(Fields):
    """Heartbeat; response v0, since 0.9.0"""

    size: int
    correlation_id: int
    body: _Response_body12

class LeaveGroupRequestV0(Fields):
    """LeaveGroup; request v0, since 0.9.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body24

class LeaveGroupResponseV0(Fields):
    """LeaveGroup; response v0, since 0.9.0"""

    size: int
    correlation_id: int
    body: _Response_body12

class SyncGroupRequestV0(Fields):
    """SyncGroup; request v0, since 0.9.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body25

class SyncGroupResponseV0(Fields):
    """SyncGroup; response v0, since 0.9.0"""

    size: int
    correlation_id: int
    body: _Response_body19

class DescribeGroupsRequestV0(Fields):
    """DescribeGroups; request v0, since 0.9.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body26

class DescribeGroupsResponseV0(Fields):
    """DescribeGroups; response v0, since 0.9.0"""

    size: int
    correlation_id: int
    body: _Response_body20

class ListGroupsRequestV0(Fields):
    """ListGroups; request v0, since 0.9.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body27

class ListGroupsResponseV0(Fields):
    """ListGroups; response v0, since 0.9.0"""

    size: int
    correlation_id: int
    body: _Response_body21

class SaslHandshakeRequestV0(Fields):
    """SaslHandshake; request v0, since 0.10.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body28

class SaslHandshakeResponseV0(Fields):
    """SaslHandshake; response v0, since 0.10.0"""

    size: int
    correlation_id: int
    body: _Response_body22

class ApiVersionsRequestV0(Fields):
    """ApiVersions; request v0, since 0.10.0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body27

class ApiVersionsResponseV0(Fields):
    """ApiVersions; response v0, since 0.10.0"""

    size: int
    correlation_id: int
    body: _Response_body23

class CreateTopicsRequestV0(Fields):
    """CreateTopics; request v0, since 0.10.1"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body29

class CreateTopicsResponseV0(Fields):
    """CreateTopics; response v0, since 0.10.1"""

    size: int
    correlation_id: int
    body: _Response_body24

class CreateTopicsRequestV1(Fields):
    """CreateTopics; request v1, since 0.10.2: validate_only, error_message"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body30

class CreateTopicsResponseV1(Fields):
    """CreateTopics; response v1, since 0.10.2: validate_only, error_message"""

    size: int
    correlation_id: int
    body: _Response_body25

class DeleteTopicsRequestV0(Fields):
    """DeleteTopics; request v0, since 0.10.1"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _Request_body31

class DeleteTopicsResponseV0(Fields):
    """DeleteTopics; response v0, since 0.10.1"""

    size: int
    correlation_id: int
    body: _Response_body26

class OffsetCommitRequestV0Beta(Fields):
    """OffsetCommit; request v0 as 0.8.2-beta alone has it: with a timestamp"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _OffsetCommitRequestV0Beta_body

class _OffsetCommitRequestV0Beta_body(Fields):
    group_id: str
    topics: list[_Request_body_topics5]

class MessageSetUntimed(Fields):
    """message_set whose messages have magic 1 and the layout of magic 0"""

    messages: list[_MessageSetUntimed_messages]
    partial: bytes

class _MessageSetUntimed_messages_message(Fields):
    crc: int
    magic: Symbol
    attributes: _Request_body_topic_data_data_record_set_messages_message_attributes
    key: bytes | None
    value: bytes | _Opened[MessageSetUntimed] | None

class _MessageSetUntimed_messages(Fields):
    offset: int
    message_size: int
    message: _MessageSetUntimed_messages_message

class ProduceRequestV0Untimed(Fields):
    """produce.request.v0 whose messages have magic 1 and the layout of magic 0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _ProduceRequestV0Untimed_body

class _ProduceRequestV0Untimed_body_topic_data_data_record_set(Fields):
    messages: list[_MessageSetUntimed_messages]
    partial: bytes

class _ProduceRequestV0Untimed_body_topic_data_data(Fields):
    partition: int
    record_set: _ProduceRequestV0Untimed_body_topic_data_data_record_set | None

class _ProduceRequestV0Untimed_body_topic_data(Fields):
    topic: str
    data: list[_ProduceRequestV0Untimed_body_topic_data_data]

class _ProduceRequestV0Untimed_body(Fields):
    acks: int
    timeout: int
    topic_data: list[_ProduceRequestV0Untimed_body_topic_data]

class FetchResponseV0Untimed(Fields):
    """fetch.response.v0 whose messages have magic 1 and the layout of magic 0"""

    size: int
    correlation_id: int
    body: _FetchResponseV0Untimed_body

class _FetchResponseV0Untimed_body_responses_partition_responses(Fields):
    partition: int
    error_code: Symbol
    high_watermark: int
    record_set: _ProduceRequestV0Untimed_body_topic_data_data_record_set | None

class _FetchResponseV0Untimed_body_responses(Fields):
    topic: str
    partition_responses: list[_FetchResponseV0Untimed_body_responses_partition_responses]

class _FetchResponseV0Untimed_body(Fields):
    responses: list[_FetchResponseV0Untimed_body_responses]

class ProduceRequestV1Untimed(Fields):
    """produce.request.v1 whose messages have magic 1 and the layout of magic 0"""

    size: int
    api_key: Symbol
    api_version: int
    correlation_id: int
    client_id: str | None
    body: _ProduceRequestV0Untimed_body

class FetchResponseV1Untimed(Fields):
    """fetch.response.v1 whose messages have magic 1 and the layout of magic 0"""

    size: int
    correlation_id: int
    body: _FetchResponseV1Untimed_body

class _FetchResponseV1Untimed_body(Fields):
    throttle_time_ms: int
    responses: list[_FetchResponseV0Untimed_body_responses]

class Message(Fields):
    """one message, without offset and size"""

    crc: int
    magic: Symbol
    attributes: _Request_body_topic_data_data_record_set_messages_message_attributes
    timestamp: int | None
    key: bytes | None
    value: bytes | _Opened[MessageSet] | None

class LogEntry(Fields):
    """a message with its offset, as in message sets and segments"""

    offset: int
    message_size: int
    message: _MessageSet_messages_message

class LogSegment(Fields):
    """a .log file"""

    preallocated: bytes | None
    messages: list[_MessageSet_messages]
    tail: bytes

class OffsetIndex(Fields):
    """a .index file"""

    entries: list[_OffsetIndex_entries]
    tail: bytes

class _OffsetIndex_entries(Fields):
    relative_offset: int
    position: int

class TimeIndex(Fields):
    """a .timeindex file, since 0.10.1"""

    entries: list[_TimeIndex_entries]
    tail: bytes

class _TimeIndex_entries(Fields):
    timestamp: int
    relative_offset: int

class OffsetCheckpoint(Fields):
    """a recovery-point-, replication- or cleaner-offset-checkpoint file"""

    version: int
    count: int
    entries: list[_OffsetCheckpoint_entries]
    tail: bytes

class _OffsetCheckpoint_entries(Fields):
    topic: str
    partition: int
    offset: int

class MetaProperties(Fields):
    """a meta.properties file, since 0.8.2"""

    lines: list[_MetaProperties_lines]

class _MetaProperties_lines(Fields):
    comment: str | None
    name: str | None
    value: str | None

class ConsumerOffsets(Fields):
    """key and value of a message in __consumer_offsets, with their lengths"""

    key: _ConsumerOffsets_key
    value: _ConsumerOffsets_value | _ConsumerOffsets_value2 | bytes | None

class _ConsumerOffsets_key(Fields):
    version: int
    group: str | None
    topic: str | None
    partition: int | None

class _ConsumerOffsets_value(Fields):
    version: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    timestamp: int | None
    commit_timestamp: int | None
    expire_timestamp: int | None
    tail: bytes | None

class _ConsumerOffsets_value_members(Fields):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int | None
    session_timeout: int
    subscription: bytes
    assignment: bytes

class _ConsumerOffsets_value2(Fields):
    version: int
    protocol_type: str | None
    generation: int | None
    protocol: str | None
    leader: str | None
    current_state_timestamp: int | None
    members: list[_ConsumerOffsets_value_members] | None
    tail: bytes | None

class ConsumerOffsetsKey(Fields):
    """the key of a message in __consumer_offsets"""

    version: int
    group: str | None
    topic: str | None
    partition: int | None

ConsumerOffsetsValue = _ConsumerOffsets_value | _ConsumerOffsets_value2 | bytes

class ConsumerOffsetsOffsetValue(Fields):
    """a committed offset"""

    version: int
    offset: int | None
    leader_epoch: int | None
    metadata: str | None
    timestamp: int | None
    commit_timestamp: int | None
    expire_timestamp: int | None
    tail: bytes | None

class ConsumerOffsetsGroupValue(Fields):
    """the metadata of a group"""

    version: int
    protocol_type: str | None
    generation: int | None
    protocol: str | None
    leader: str | None
    current_state_timestamp: int | None
    members: list[_ConsumerOffsets_value_members] | None
    tail: bytes | None

class ConsumerSubscription(Fields):
    """the subscription that a consumer sends when it joins a group"""

    version: int
    topics: list[str]
    user_data: bytes | None
    tail: bytes | None

class ConsumerAssignment(Fields):
    """the partitions that the leader of a group assigns to a member"""

    version: int
    topic_partitions: list[_ConsumerAssignment_topic_partitions]
    user_data: bytes | None
    tail: bytes | None

class _ConsumerAssignment_topic_partitions(Fields):
    topic: str
    partitions: list[int]
