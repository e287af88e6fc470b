"""Values of the layouts of pulsar, written by `wirekit schemas pulsar --output pyi`."""

from typing import Any, Generic, TypeVar

from wirekit.types import Fields
from wirekit.values import Symbol

_Content = TypeVar("_Content")

class _Opened(Fields, Generic[_Content]):
    """Compressed data: the bytes and their content."""

    compressed: bytes
    content: _Content

class Frame(Fields):
    """a command; after SEND and MESSAGE also an entry"""

    total_size: int
    command_size: int
    command: _BaseCommand
    entry: _Frame_entry | None

class _BaseCommand(Fields):
    type: Symbol
    connect: _CommandConnect | None
    connected: _CommandConnected | None
    subscribe: _CommandSubscribe | None
    producer: _CommandProducer | None
    send: _CommandSend | None
    send_receipt: _CommandSendReceipt | None
    send_error: _CommandSendError | None
    message: _CommandMessage | None
    ack: _CommandAck | None
    flow: _CommandFlow | None
    unsubscribe: _CommandUnsubscribe | None
    success: _CommandSuccess | None
    error: _CommandError | None
    close_producer: _CommandCloseProducer | None
    close_consumer: _CommandCloseConsumer | None
    producer_success: _CommandProducerSuccess | None
    ping: _CommandPing | None
    pong: _CommandPong | None
    redeliverUnacknowledgedMessages: _CommandRedeliverUnacknowledgedMessages | None
    partitionMetadata: _CommandPartitionedTopicMetadata | None
    partitionMetadataResponse: _CommandPartitionedTopicMetadataResponse | None
    lookupTopic: _CommandLookupTopic | None
    lookupTopicResponse: _CommandLookupTopicResponse | None
    consumerStats: _CommandConsumerStats | None
    consumerStatsResponse: _CommandConsumerStatsResponse | None
    reachedEndOfTopic: _CommandReachedEndOfTopic | None
    seek: _CommandSeek | None
    getLastMessageId: _CommandGetLastMessageId | None
    getLastMessageIdResponse: _CommandGetLastMessageIdResponse | None
    active_consumer_change: _CommandActiveConsumerChange | None
    getTopicsOfNamespace: _CommandGetTopicsOfNamespace | None
    getTopicsOfNamespaceResponse: _CommandGetTopicsOfNamespaceResponse | None
    getSchema: _CommandGetSchema | None
    getSchemaResponse: _CommandGetSchemaResponse | None
    authChallenge: _CommandAuthChallenge | None
    authResponse: _CommandAuthResponse | None
    ackResponse: _CommandAckResponse | None
    getOrCreateSchema: _CommandGetOrCreateSchema | None
    getOrCreateSchemaResponse: _CommandGetOrCreateSchemaResponse | None
    newTxn: _CommandNewTxn | None
    newTxnResponse: _CommandNewTxnResponse | None
    addPartitionToTxn: _CommandAddPartitionToTxn | None
    addPartitionToTxnResponse: _CommandAddPartitionToTxnResponse | None
    addSubscriptionToTxn: _CommandAddSubscriptionToTxn | None
    addSubscriptionToTxnResponse: _CommandAddSubscriptionToTxnResponse | None
    endTxn: _CommandEndTxn | None
    endTxnResponse: _CommandEndTxnResponse | None
    endTxnOnPartition: _CommandEndTxnOnPartition | None
    endTxnOnPartitionResponse: _CommandEndTxnOnPartitionResponse | None
    endTxnOnSubscription: _CommandEndTxnOnSubscription | None
    endTxnOnSubscriptionResponse: _CommandEndTxnOnSubscriptionResponse | None
    tcClientConnectRequest: _CommandTcClientConnectRequest | None
    tcClientConnectResponse: _CommandTcClientConnectResponse | None
    watchTopicList: _CommandWatchTopicList | None
    watchTopicListSuccess: _CommandWatchTopicListSuccess | None
    watchTopicUpdate: _CommandWatchTopicUpdate | None
    watchTopicListClose: _CommandWatchTopicListClose | None
    topicMigrated: _CommandTopicMigrated | None
    scalableTopicLookup: _CommandScalableTopicLookup | None
    scalableTopicUpdate: _CommandScalableTopicUpdate | None
    scalableTopicClose: _CommandScalableTopicClose | None
    scalableTopicSubscribe: _CommandScalableTopicSubscribe | None
    scalableTopicSubscribeResponse: _CommandScalableTopicSubscribeResponse | None
    scalableTopicAssignmentUpdate: _CommandScalableTopicAssignmentUpdate | None
    watchScalableTopics: _CommandWatchScalableTopics | None
    watchScalableTopicsUpdate: _CommandWatchScalableTopicsUpdate | None
    watchScalableTopicsClose: _CommandWatchScalableTopicsClose | None
    watchTcAssignments: _CommandWatchTcAssignments | None
    watchTcAssignmentsUpdate: _CommandWatchTcAssignmentsUpdate | None
    watchTcAssignmentsClose: _CommandWatchTcAssignmentsClose | None
    scalableTopicUnsubscribe: _CommandScalableTopicUnsubscribe | None

class _CommandConnect(Fields):
    client_version: str
    auth_method: Symbol | None
    auth_data: bytes | None
    protocol_version: int | None
    auth_method_name: str | None
    proxy_to_broker_url: str | None
    original_principal: str | None
    original_auth_data: str | None
    original_auth_method: str | None
    feature_flags: _FeatureFlags | None
    proxy_version: str | None

class _FeatureFlags(Fields):
    supports_auth_refresh: bool | None
    supports_broker_entry_metadata: bool | None
    supports_partial_producer: bool | None
    supports_topic_watchers: bool | None
    supports_get_partitioned_metadata_without_auto_creation: bool | None
    supports_repl_dedup_by_lid_and_eid: bool | None
    supports_topic_watcher_reconcile: bool | None
    supports_scalable_topics: bool | None
    supports_tc_metadata_discovery: bool | None

class _CommandConnected(Fields):
    server_version: str
    protocol_version: int | None
    max_message_size: int | None
    feature_flags: _FeatureFlags | None

class _CommandSubscribe(Fields):
    topic: str
    subscription: str
    subType: Symbol
    consumer_id: int
    request_id: int
    consumer_name: str | None
    priority_level: int | None
    durable: bool | None
    start_message_id: _MessageIdData | None
    metadata: list[_KeyValue]
    read_compacted: bool | None
    schema: _Schema | None
    initialPosition: Symbol | None
    replicate_subscription_state: bool | None
    force_topic_creation: bool | None
    start_message_rollback_duration_sec: int | None
    keySharedMeta: _KeySharedMeta | None
    subscription_properties: list[_KeyValue]
    consumer_epoch: int | None

class _MessageIdData(Fields):
    ledgerId: int
    entryId: int
    partition: int | None
    batch_index: int | None
    ack_set: list[int]
    batch_size: int | None
    first_chunk_message_id: _MessageIdData | None

class _KeyValue(Fields):
    key: str
    value: str

class _Schema(Fields):
    name: str
    schema_data: bytes
    type: Symbol
    properties: list[_KeyValue]

class _KeySharedMeta(Fields):
    keySharedMode: Symbol
    hashRanges: list[_IntRange]
    allowOutOfOrderDelivery: bool | None
    entryBucketDispatch: bool | None

class _IntRange(Fields):
    start: int
    end: int

class _CommandProducer(Fields):
    topic: str
    producer_id: int
    request_id: int
    producer_name: str | None
    encrypted: bool | None
    metadata: list[_KeyValue]
    schema: _Schema | None
    epoch: int | None
    user_provided_producer_name: bool | None
    producer_access_mode: Symbol | None
    topic_epoch: int | None
    txn_enabled: bool | None
    initial_subscription_name: str | None

class _CommandSend(Fields):
    producer_id: int
    sequence_id: int
    num_messages: int | None
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    highest_sequence_id: int | None
    is_chunk: bool | None
    marker: bool | None
    message_id: _MessageIdData | None

class _CommandSendReceipt(Fields):
    producer_id: int
    sequence_id: int
    message_id: _MessageIdData | None
    highest_sequence_id: int | None

class _CommandSendError(Fields):
    producer_id: int
    sequence_id: int
    error: Symbol
    message: str

class _CommandMessage(Fields):
    consumer_id: int
    message_id: _MessageIdData
    redelivery_count: int | None
    ack_set: list[int]
    consumer_epoch: int | None

class _CommandAck(Fields):
    consumer_id: int
    ack_type: Symbol
    message_id: list[_MessageIdData]
    validation_error: Symbol | None
    properties: list[_KeyLongValue]
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    request_id: int | None

class _KeyLongValue(Fields):
    key: str
    value: int

class _CommandFlow(Fields):
    consumer_id: int
    messagePermits: int

class _CommandUnsubscribe(Fields):
    consumer_id: int
    request_id: int
    force: bool | None

class _CommandSuccess(Fields):
    request_id: int
    schema: _Schema | None

class _CommandError(Fields):
    request_id: int
    error: Symbol
    message: str

class _CommandCloseProducer(Fields):
    producer_id: int
    request_id: int
    assignedBrokerServiceUrl: str | None
    assignedBrokerServiceUrlTls: str | None

class _CommandCloseConsumer(Fields):
    consumer_id: int
    request_id: int
    assignedBrokerServiceUrl: str | None
    assignedBrokerServiceUrlTls: str | None

class _CommandProducerSuccess(Fields):
    request_id: int
    producer_name: str
    last_sequence_id: int | None
    schema_version: bytes | None
    topic_epoch: int | None
    producer_ready: bool | None

class _CommandPing(Fields):
    ...

class _CommandPong(Fields):
    ...

class _CommandRedeliverUnacknowledgedMessages(Fields):
    consumer_id: int
    message_ids: list[_MessageIdData]
    consumer_epoch: int | None

class _CommandPartitionedTopicMetadata(Fields):
    topic: str
    request_id: int
    original_principal: str | None
    original_auth_data: str | None
    original_auth_method: str | None
    metadata_auto_creation_enabled: bool | None

class _CommandPartitionedTopicMetadataResponse(Fields):
    partitions: int | None
    request_id: int
    response: Symbol | None
    error: Symbol | None
    message: str | None

class _CommandLookupTopic(Fields):
    topic: str
    request_id: int
    authoritative: bool | None
    original_principal: str | None
    original_auth_data: str | None
    original_auth_method: str | None
    advertised_listener_name: str | None
    properties: list[_KeyValue]

class _CommandLookupTopicResponse(Fields):
    brokerServiceUrl: str | None
    brokerServiceUrlTls: str | None
    response: Symbol | None
    request_id: int
    authoritative: bool | None
    error: Symbol | None
    message: str | None
    proxy_through_service_url: bool | None

class _CommandConsumerStats(Fields):
    request_id: int
    consumer_id: int

class _CommandConsumerStatsResponse(Fields):
    request_id: int
    error_code: Symbol | None
    error_message: str | None
    msgRateOut: float | None
    msgThroughputOut: float | None
    msgRateRedeliver: float | None
    consumerName: str | None
    availablePermits: int | None
    unackedMessages: int | None
    blockedConsumerOnUnackedMsgs: bool | None
    address: str | None
    connectedSince: str | None
    type: str | None
    msgRateExpired: float | None
    msgBacklog: int | None
    messageAckRate: float | None

class _CommandReachedEndOfTopic(Fields):
    consumer_id: int

class _CommandSeek(Fields):
    consumer_id: int
    request_id: int
    message_id: _MessageIdData | None
    message_publish_time: int | None

class _CommandGetLastMessageId(Fields):
    consumer_id: int
    request_id: int

class _CommandGetLastMessageIdResponse(Fields):
    last_message_id: _MessageIdData
    request_id: int
    consumer_mark_delete_position: _MessageIdData | None

class _CommandActiveConsumerChange(Fields):
    consumer_id: int
    is_active: bool | None

class _CommandGetTopicsOfNamespace(Fields):
    request_id: int
    namespace: str
    mode: Symbol | None
    topics_pattern: str | None
    topics_hash: str | None
    properties: list[_KeyValue]

class _CommandGetTopicsOfNamespaceResponse(Fields):
    request_id: int
    topics: list[str]
    filtered: bool | None
    topics_hash: str | None
    changed: bool | None

class _CommandGetSchema(Fields):
    request_id: int
    topic: str
    schema_version: bytes | None

class _CommandGetSchemaResponse(Fields):
    request_id: int
    error_code: Symbol | None
    error_message: str | None
    schema: _Schema | None
    schema_version: bytes | None

class _CommandAuthChallenge(Fields):
    server_version: str | None
    challenge: _AuthData | None
    protocol_version: int | None

class _AuthData(Fields):
    auth_method_name: str | None
    auth_data: bytes | None

class _CommandAuthResponse(Fields):
    client_version: str | None
    response: _AuthData | None
    protocol_version: int | None

class _CommandAckResponse(Fields):
    consumer_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    error: Symbol | None
    message: str | None
    request_id: int | None

class _CommandGetOrCreateSchema(Fields):
    request_id: int
    topic: str
    schema: _Schema
    producerName: str | None

class _CommandGetOrCreateSchemaResponse(Fields):
    request_id: int
    error_code: Symbol | None
    error_message: str | None
    schema_version: bytes | None

class _CommandNewTxn(Fields):
    request_id: int
    txn_ttl_millis: int | None
    tc_id: int | None
    scalable: bool | None

class _CommandNewTxnResponse(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    error: Symbol | None
    message: str | None

class _CommandAddPartitionToTxn(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    partitions: list[str]
    scalable: bool | None

class _CommandAddPartitionToTxnResponse(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    error: Symbol | None
    message: str | None

class _CommandAddSubscriptionToTxn(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    subscription: list[_Subscription]
    scalable: bool | None

class _Subscription(Fields):
    topic: str
    subscription: str

class _CommandAddSubscriptionToTxnResponse(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    error: Symbol | None
    message: str | None

class _CommandEndTxn(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    txn_action: Symbol | None
    scalable: bool | None

class _CommandEndTxnResponse(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    error: Symbol | None
    message: str | None

class _CommandEndTxnOnPartition(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    topic: str | None
    txn_action: Symbol | None
    txnid_least_bits_of_low_watermark: int | None

class _CommandEndTxnOnPartitionResponse(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    error: Symbol | None
    message: str | None

class _CommandEndTxnOnSubscription(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    subscription: _Subscription | None
    txn_action: Symbol | None
    txnid_least_bits_of_low_watermark: int | None

class _CommandEndTxnOnSubscriptionResponse(Fields):
    request_id: int
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    error: Symbol | None
    message: str | None

class _CommandTcClientConnectRequest(Fields):
    request_id: int
    tc_id: int
    scalable: bool | None

class _CommandTcClientConnectResponse(Fields):
    request_id: int
    error: Symbol | None
    message: str | None

class _CommandWatchTopicList(Fields):
    request_id: int
    watcher_id: int
    namespace: str
    topics_pattern: str
    topics_hash: str | None

class _CommandWatchTopicListSuccess(Fields):
    request_id: int
    watcher_id: int
    topic: list[str]
    topics_hash: str

class _CommandWatchTopicUpdate(Fields):
    watcher_id: int
    new_topics: list[str]
    deleted_topics: list[str]
    topics_hash: str

class _CommandWatchTopicListClose(Fields):
    request_id: int
    watcher_id: int

class _CommandTopicMigrated(Fields):
    resource_id: int
    resource_type: Symbol
    brokerServiceUrl: str | None
    brokerServiceUrlTls: str | None

class _CommandScalableTopicLookup(Fields):
    session_id: int
    topic: str
    create_if_missing: bool | None

class _CommandScalableTopicUpdate(Fields):
    session_id: int
    dag: _ScalableTopicDAG | None
    error: Symbol | None
    message: str | None
    resolved_topic_name: str | None

class _ScalableTopicDAG(Fields):
    epoch: int
    segments: list[_SegmentInfoProto]
    segment_brokers: list[_SegmentBrokerAddress]
    controller_broker_url: str | None
    controller_broker_url_tls: str | None

class _SegmentInfoProto(Fields):
    segment_id: int
    hash_start: int
    hash_end: int
    state: Symbol
    parent_ids: list[int]
    child_ids: list[int]
    created_at_epoch: int
    sealed_at_epoch: int | None
    created_at_ms: int
    sealed_at_ms: int | None
    legacy_topic_name: str | None
    entry_bucket_splits: list[int]

class _SegmentBrokerAddress(Fields):
    segment_id: int
    broker_url: str
    broker_url_tls: str | None

class _CommandScalableTopicClose(Fields):
    session_id: int

class _CommandScalableTopicSubscribe(Fields):
    request_id: int
    topic: str
    subscription: str
    consumer_name: str
    consumer_id: int
    consumer_type: Symbol

class _CommandScalableTopicSubscribeResponse(Fields):
    request_id: int
    error: Symbol | None
    message: str | None
    assignment: _ScalableConsumerAssignment | None

class _ScalableConsumerAssignment(Fields):
    layout_epoch: int
    segments: list[_ScalableAssignedSegment]

class _ScalableAssignedSegment(Fields):
    segment_id: int
    hash_start: int
    hash_end: int
    segment_topic: str
    bucket_ranges: list[_IntRange]

class _CommandScalableTopicAssignmentUpdate(Fields):
    consumer_id: int
    assignment: _ScalableConsumerAssignment

class _CommandWatchScalableTopics(Fields):
    watch_id: int
    namespace: str
    property_filters: list[_KeyValue]
    current_hash: str | None

class _CommandWatchScalableTopicsUpdate(Fields):
    watch_id: int
    snapshot: _ScalableTopicsSnapshot | None
    diff: _ScalableTopicsDiff | None
    error: Symbol | None
    message: str | None

class _ScalableTopicsSnapshot(Fields):
    topics: list[str]

class _ScalableTopicsDiff(Fields):
    added: list[str]
    removed: list[str]

class _CommandWatchScalableTopicsClose(Fields):
    watch_id: int

class _CommandWatchTcAssignments(Fields):
    watch_id: int

class _CommandWatchTcAssignmentsUpdate(Fields):
    watch_id: int
    snapshot: _TcAssignmentsSnapshot | None
    error: Symbol | None
    message: str | None

class _TcAssignmentsSnapshot(Fields):
    parallelism: int
    assignments: list[_TcAssignment]

class _TcAssignment(Fields):
    tc_id: int
    broker_service_url: str | None
    broker_service_url_tls: str | None

class _CommandWatchTcAssignmentsClose(Fields):
    watch_id: int

class _CommandScalableTopicUnsubscribe(Fields):
    request_id: int
    consumer_id: int

class _BrokerEntryMetadata(Fields):
    broker_timestamp: int | None
    index: int | None

class _Frame_entry_broker_entry_metadata(Fields):
    magic_number: int
    metadata_size: int
    metadata: _BrokerEntryMetadata

class _MessageMetadata(Fields):
    producer_name: str
    sequence_id: int
    publish_time: int
    properties: list[_KeyValue]
    replicated_from: str | None
    partition_key: str | None
    replicate_to: list[str]
    compression: Symbol | None
    uncompressed_size: int | None
    num_messages_in_batch: int | None
    event_time: int | None
    encryption_keys: list[_EncryptionKeys]
    encryption_algo: str | None
    encryption_param: bytes | None
    schema_version: bytes | None
    partition_key_b64_encoded: bool | None
    ordering_key: bytes | None
    deliver_at_time: int | None
    marker_type: int | None
    txnid_least_bits: int | None
    txnid_most_bits: int | None
    highest_sequence_id: int | None
    null_value: bool | None
    uuid: str | None
    num_chunks_from_msg: int | None
    total_chunk_msg_size: int | None
    chunk_id: int | None
    null_partition_key: bool | None
    compacted_batch_indexes: list[int]
    schema_id: bytes | None
    entry_hash_min: int | None
    entry_hash_max: int | None

class _EncryptionKeys(Fields):
    key: str
    value: bytes
    metadata: list[_KeyValue]

class _ReplicatedSubscriptionsSnapshotRequest(Fields):
    snapshot_id: str
    source_cluster: str | None

class _ReplicatedSubscriptionsSnapshotResponse(Fields):
    snapshot_id: str
    cluster: _ClusterMessageId | None

class _ClusterMessageId(Fields):
    cluster: str
    message_id: _MarkersMessageIdData

class _MarkersMessageIdData(Fields):
    ledger_id: int
    entry_id: int

class _ReplicatedSubscriptionsSnapshot(Fields):
    snapshot_id: str
    local_message_id: _MarkersMessageIdData | None
    clusters: list[_ClusterMessageId]

class _ReplicatedSubscriptionsUpdate(Fields):
    subscription_name: str
    clusters: list[_ClusterMessageId]

class _SingleMessageMetadata(Fields):
    properties: list[_KeyValue]
    partition_key: str | None
    payload_size: int
    compacted_out: bool | None
    event_time: int | None
    partition_key_b64_encoded: bool | None
    ordering_key: bytes | None
    sequence_id: int | None
    null_value: bool | None
    null_partition_key: bool | None

class _Frame_entry_payload(Fields):
    metadata_size: int
    metadata: _SingleMessageMetadata
    payload: bytes

class _Frame_entry(Fields):
    broker_entry_metadata: _Frame_entry_broker_entry_metadata | None
    magic_number: int | None
    checksum: int | None
    metadata_size: int
    metadata: _MessageMetadata
    payload: _ReplicatedSubscriptionsSnapshotRequest | bytes | _ReplicatedSubscriptionsSnapshotResponse | _ReplicatedSubscriptionsSnapshot | _ReplicatedSubscriptionsUpdate | list[_Frame_entry_payload] | _Opened[bytes | list[_Frame_entry_payload]]

class Entry(Fields):
    """an entry as a broker stores it: checksum, metadata, payload"""

    broker_entry_metadata: _Frame_entry_broker_entry_metadata | None
    magic_number: int | None
    checksum: int | None
    metadata_size: int
    metadata: _MessageMetadata
    payload: _ReplicatedSubscriptionsSnapshotRequest | bytes | _ReplicatedSubscriptionsSnapshotResponse | _ReplicatedSubscriptionsSnapshot | _ReplicatedSubscriptionsUpdate | list[_Frame_entry_payload] | _Opened[bytes | list[_Frame_entry_payload]]

class Batch(Fields):
    """the messages of a batch, decompressed"""

    messages: list[_Frame_entry_payload]

Command = _BaseCommand

MessageMetadata = _MessageMetadata

SingleMessageMetadata = _SingleMessageMetadata

BrokerEntryMetadata = _BrokerEntryMetadata
