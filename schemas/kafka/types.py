"""The types that Kafka's layouts are made of: strings, bytes, arrays, and integers whose values have names.

Everything is big-endian. A string has an int16 length, bytes and arrays an int32; -1 is null, which is allowed only
where the ``nullable`` type stands.

Source: specification page, "Protocol Primitive Types"; Kafka 0.10.2 ``Type.java`` and ``ArrayOf.java``.
"""

from __future__ import annotations

import re
from typing import Any

from wirekit.schemas.kafka.errors import ERROR_CODES
from wirekit.values import SymbolTable
from wirekit.wire import Array, Bytes, Flag, Node, String, Struct, Symbols, int8, int16, int32

_LATER_APIS = """
    DeleteRecords InitProducerId OffsetForLeaderEpoch AddPartitionsToTxn AddOffsetsToTxn EndTxn WriteTxnMarkers
    TxnOffsetCommit DescribeAcls CreateAcls DeleteAcls DescribeConfigs AlterConfigs AlterReplicaLogDirs
    DescribeLogDirs SaslAuthenticate CreatePartitions CreateDelegationToken RenewDelegationToken
    ExpireDelegationToken DescribeDelegationToken DeleteGroups ElectLeaders IncrementalAlterConfigs
    AlterPartitionReassignments ListPartitionReassignments OffsetDelete DescribeClientQuotas AlterClientQuotas
    DescribeUserScramCredentials AlterUserScramCredentials Vote BeginQuorumEpoch EndQuorumEpoch DescribeQuorum
    AlterPartition UpdateFeatures Envelope FetchSnapshot DescribeCluster DescribeProducers BrokerRegistration
    BrokerHeartbeat UnregisterBroker DescribeTransactions ListTransactions AllocateProducerIds
    ConsumerGroupHeartbeat ConsumerGroupDescribe ControllerRegistration GetTelemetrySubscriptions PushTelemetry
    AssignReplicasToDirs ListConfigResources DescribeTopicPartitions ShareGroupHeartbeat ShareGroupDescribe
    ShareFetch ShareAcknowledge AddRaftVoter RemoveRaftVoter UpdateRaftVoter InitializeShareGroupState
    ReadShareGroupState WriteShareGroupState DeleteShareGroupState ReadShareGroupStateSummary
    StreamsGroupHeartbeat StreamsGroupDescribe DescribeShareGroupOffsets AlterShareGroupOffsets
    DeleteShareGroupOffsets
"""
LATER_APIS = _LATER_APIS.split()
"""The APIs of Kafka 0.11 and later, from key 21 on; their bodies have no layout (``ApiKey`` of kafka-python 3.0.12)."""

API_KEYS = SymbolTable(
    "api_key",
    {
        0: ("produce", "Produce; the specification page also calls it Send"),
        1: ("fetch", "Fetch"),
        2: ("list_offsets", "ListOffsets; Offsets until 0.10.0"),
        3: ("metadata", "Metadata"),
        4: ("leader_and_isr", "LeaderAndIsr, from the controller to a broker"),
        5: ("stop_replica", "StopReplica, from the controller to a broker"),
        6: ("update_metadata", "UpdateMetadata, from the controller to a broker"),
        7: ("controlled_shutdown", "ControlledShutdown, from a broker to the controller"),
        8: ("offset_commit", "OffsetCommit"),
        9: ("offset_fetch", "OffsetFetch"),
        10: ("group_coordinator", "GroupCoordinator; ConsumerMetadata in 0.8.2, FindCoordinator from 0.11"),
        11: ("join_group", "JoinGroup"),
        12: ("heartbeat", "Heartbeat"),
        13: ("leave_group", "LeaveGroup"),
        14: ("sync_group", "SyncGroup"),
        15: ("describe_groups", "DescribeGroups"),
        16: ("list_groups", "ListGroups"),
        17: ("sasl_handshake", "SaslHandshake"),
        18: ("api_versions", "ApiVersions"),
        19: ("create_topics", "CreateTopics"),
        20: ("delete_topics", "DeleteTopics"),
        **{
            key: (re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower(), f"{name}; after 0.10, its body has no layout")
            for key, name in enumerate(LATER_APIS, 21)
        },
    },
)

SECURITY_PROTOCOLS = SymbolTable("security_protocol", {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"})

string = String(int16)
nullable_string = String(int16, null=-1)
data = Bytes(int32)
nullable_data = Bytes(int32, null=-1)
boolean = Flag(int8)
api_key = Symbols(int16, API_KEYS)
error_code = Symbols(int16, ERROR_CODES)
security_protocol = Symbols(int16, SECURITY_PROTOCOLS)


def array(element: Node) -> Array:
    """A count and that many elements."""
    return Array(int32, element)


def array_of(*fields: Any) -> Array:
    """A count and that many structures of these fields."""
    return Array(int32, Struct(*fields))


def nullable_array(element: Node) -> Array:
    """An array that may be null."""
    return Array(int32, element, null=-1)


def per_topic(partitions: Any, *fields: Any) -> Struct:
    """A topic with an array ``partitions`` of these fields, as in most requests and responses."""
    return Struct("topic" / string, partitions / array_of(*fields))
