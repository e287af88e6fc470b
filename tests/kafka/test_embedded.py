"""Group metadata: what ``__consumer_offsets`` holds, and what consumers put into JoinGroup and SyncGroup."""

from __future__ import annotations

from collections import Counter

import pytest

import wirekit
from tests.kafka.golden import DISK, PDUS, Pdu
from wirekit.conversation import Message
from wirekit.protocols.kafka.reading import messages_of
from wirekit.tables import records as tables
from wirekit.tables.records import Row

SEEN = {
    "0.8.2.2": {(0, 0)},
    "0.9.0.1": {(1, 1), (2, 0)},
    "0.10.2.2": {(1, 1), (2, 1)},
}
"""(version of the key, version of the value) that each release writes."""


def records(release: str) -> list[Message]:
    decoded = wirekit.decode((DISK / f"{release}-__consumer_offsets-0.log").read_bytes(), "kafka.log_segment")
    return list(messages_of(decoded, topic="__consumer_offsets", partition=0))


def prefixed(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("release", SEEN)
def test_consumer_offsets(release: str) -> None:
    versions: Counter[tuple[int, int]] = Counter()
    for record in records(release):
        assert record.key is not None
        key = wirekit.decode(record.key, "kafka.consumer_offsets.key")
        assert key.clean
        assert key.consumed == len(record.key)
        both = prefixed(record.key) + prefixed(record.value)
        decoded = wirekit.decode(both, "kafka.consumer_offsets")
        assert decoded.clean
        assert decoded.value.key == key.value
        assert wirekit.encode("kafka.consumer_offsets", decoded.value) == both
        assert wirekit.encode("kafka.consumer_offsets", wirekit.to_json(decoded.value)) == both
        if record.value is None:
            assert decoded.value.value is None
            continue
        name = "group_value" if key.value.version == 2 else "offset_value"
        assert wirekit.decode(record.value, f"kafka.consumer_offsets.{name}").value == decoded.value.value
        context = {"key_version": key.value.version}
        assert (
            wirekit.decode(record.value, "kafka.consumer_offsets.value", context=context).value == decoded.value.value
        )
        versions[int(key.value.version), int(decoded.value.value.version)] += 1
    assert set(versions) == SEEN[release]


def test_committed_offset() -> None:
    first = records("0.8.2.2")[0]
    assert first.key is not None
    assert wirekit.decode(first.key, "kafka.consumer_offsets.key").value == {
        "version": 0,
        "group": "oldgroup",
        "topic": "t-none",
        "partition": 0,
    }
    assert first.value is not None
    value = wirekit.decode(first.value, "kafka.consumer_offsets.offset_value").value
    assert (value.offset, value.metadata, value.commit_timestamp, value.expire_timestamp) == (51, "", None, None)
    assert value.timestamp > 1_700_000_000_000


def test_members_of_a_group_hold_subscription_and_assignment() -> None:
    group = next(record for record in records("0.10.2.2") if record.key is not None and record.key[:2] == b"\0\2")
    assert group.value is not None
    value = wirekit.decode(group.value, "kafka.consumer_offsets.group_value").value
    (member,) = value.members
    assert (value.protocol_type, value.protocol, value.leader) == ("consumer", "range", member.member_id)
    assert member.rebalance_timeout == 300_000
    assert member.session_timeout == 10_000
    subscription = wirekit.decode(member.subscription, "kafka.consumer_subscription")
    assert subscription.value == {"version": 0, "topics": ["t-gzip"], "user_data": b"", "tail": None}
    assignment = wirekit.decode(member.assignment, "kafka.consumer_assignment")
    assert assignment.value.topic_partitions == [{"topic": "t-gzip", "partitions": [0]}]
    assert subscription.clean
    assert assignment.clean


def test_key_of_a_later_version_is_kept() -> None:
    """0.10.2 knows 0, 1 and 2."""
    data = prefixed(b"\0\3later") + prefixed(b"value")
    decoded = wirekit.decode(data, "kafka.consumer_offsets")
    assert decoded.error is None
    assert [gap.length for gap in decoded.gaps] == [5, 5]
    assert wirekit.encode("kafka.consumer_offsets", decoded.value) == data


GROUP, POSITION = (
    wirekit.encode("kafka.consumer_offsets.key", key)
    for key in ({"version": 2, "group": "g"}, {"version": 1, "group": "g", "topic": "t", "partition": 3})
)


def rows(key: bytes, value: bytes | None) -> list[Row]:
    found = tables.records("kafka").embedded("__consumer_offsets", key, value)
    return [{"table": table, **row} for table, each, _ in found for row in each]


def test_a_group_without_members_has_a_row() -> None:
    """Brokers from 0.10.1 store one when the last member leaves, and when a client commits without a group."""
    for protocol_type in ("consumer", ""):
        state = {"protocol_type": protocol_type, "generation": 5, "protocol": None, "leader": None, "members": []}
        value = wirekit.encode("kafka.consumer_offsets.group_value", {"version": 1, **state})
        row = {"table": "group_events", "event": "stored", "group_id": "g", "generation": 5}
        assert rows(GROUP, value) == [row]


def test_a_record_that_does_not_decode_has_a_row_with_what_was_decoded() -> None:
    value = next(record.value for record in records("0.10.2.2") if record.key is not None and record.key[:2] == b"\0\2")
    assert value is not None
    (whole,), (cut,), (early,) = rows(GROUP, value), rows(GROUP, value[:-1]), rows(GROUP, value[:20])
    assert "error" not in whole
    error = cut.pop("error")
    assert cut == {name: each for name, each in whole.items() if name != "assignment"}
    assert error.startswith("kafka.consumer_offsets.group_value: members[0].assignment: needs ")
    assert {"event", "group_id", "generation"} < early.keys() < whole.keys() | {"error"}
    key = {"table": "offsets", "group_id": "g", "topic": "t", "partition": 3}
    short = "kafka.consumer_offsets.offset_value: offset: needs 8 bytes, 2 available, at byte 2 (0x2)"
    assert rows(POSITION, b"\0\1ab") == [key | {"error": short}]
    (part,) = rows(POSITION[:-1], None)
    assert (part["group_id"], part["topic"], "error" in part) == ("g", "t", True)


BY_KAFKA = {
    ("offset_value", 2): "0002 00000000000004d2 0004 6e6f7465 00000174876e8000",
    ("offset_value", 3): "0003 00000000000004d2 00000007 0004 6e6f7465 00000174876e8000",
    ("offset_value", 4): "0004 00000000000004d2 00000007 05 6e6f7465 00000174876e8000 00",
    ("group_value", 2): (
        "0002 0008 636f6e73756d6572 00000005 0005 72616e6765 0003 6d2d31 00000174876e8000 00000001 0003 6d2d31"
        " 0001 63 0009 2f31302e302e302e31 000493e0 00002710"
        " 0000000d 0000 00000001 0001 74 ffffffff 00000015 0000 00000001 0001 74 00000001 00000003 ffffffff"
    ),
    ("group_value", 3): (
        "0003 0008 636f6e73756d6572 00000005 0005 72616e6765 0003 6d2d31 00000174876e8000 00000001 0003 6d2d31"
        " 0001 69 0001 63 0009 2f31302e302e302e31 000493e0 00002710"
        " 0000000d 0000 00000001 0001 74 ffffffff 00000015 0000 00000001 0001 74 00000001 00000003 ffffffff"
    ),
    ("group_value", 4): (
        "0004 09 636f6e73756d6572 00000005 06 72616e6765 04 6d2d31 00000174876e8000 02 04 6d2d31"
        " 02 69 02 63 0a 2f31302e302e302e31 000493e0 00002710"
        " 0e 0000 00000001 0001 74 ffffffff 16 0000 00000001 0001 74 00000001 00000003 ffffffff 00 00"
    ),
}
"""Values that the classes OffsetCommitValue and GroupMetadataValue of Kafka 3.7.2 wrote, by layout and version."""


@pytest.mark.parametrize(("name", "version"), BY_KAFKA)
def test_values_of_later_brokers(name: str, version: int) -> None:
    data = bytes.fromhex(BY_KAFKA[name, version])
    decoded = wirekit.decode(data, f"kafka.consumer_offsets.{name}")
    assert (decoded.error, decoded.consumed) == (None, len(data))
    assert [gap.offset for gap in decoded.gaps] == ([2] if version == 4 else [])
    assert wirekit.encode(decoded.schema, decoded.value) == data
    (row,) = rows(POSITION if name == "offset_value" else GROUP, data)
    place = {"group_id": "g"} | ({"topic": "t", "partition": 3} if name == "offset_value" else {"event": "stored"})
    assert place.items() <= row.items()
    if version == 4:
        assert row.keys() - place.keys() == {"table", "error"}
        assert row["error"] == f"{decoded.schema}: {len(data) - 2} bytes not decoded, at byte 2 (0x2)"
    elif name == "offset_value":
        assert decoded.value.leader_epoch == (7 if version == 3 else None)
        assert (row["log_offset"], row["metadata"], row["commit_time"]) == (1234, "note", 1_600_000_000_000)
    else:
        assert decoded.value.current_state_timestamp == 1_600_000_000_000
        assert decoded.value.members[0].group_instance_id == ("i" if version == 3 else None)
        assert (row["generation"], row["member_id"], row["client"], row["topics"]) == (5, "m-1", "c", ["t"])
        assert row["assignment"] == [{"topic": "t", "partition": 3}]


def test_a_group_whose_protocol_type_does_not_decode_has_a_row() -> None:
    (row,) = rows(GROUP, bytes.fromhex("0001 0008 636f"))
    assert (row["event"], row["group_id"]) == ("stored", "g")
    assert row["error"].startswith("kafka.consumer_offsets.group_value: protocol_type: needs 8 bytes, 2 available")


JOINING = [pdu for pdu in PDUS if pdu.api == "join_group"]
SYNCING = [pdu for pdu in PDUS if pdu.api == "sync_group"]


def exact(data: bytes, key: str) -> wirekit.Record:
    decoded = wirekit.decode(data, key)
    assert decoded.clean
    assert decoded.consumed == len(data)
    assert wirekit.encode(key, decoded.value) == data
    value: wirekit.Record = decoded.value
    return value


@pytest.mark.parametrize("pdu", JOINING, ids=str)
def test_join_group_holds_subscriptions(pdu: Pdu) -> None:
    """Requests that were composed by hand have empty ones."""
    body = wirekit.decode(pdu.data, pdu.key).value.body
    if pdu.side == "request":
        assert body.protocol_type == "consumer"
        embedded = [protocol.protocol_metadata for protocol in body.group_protocols]
    else:
        embedded = [member.member_metadata for member in body.members]
    for data in filter(None, embedded):
        assert exact(data, "kafka.consumer_subscription").version == 0


@pytest.mark.parametrize("pdu", SYNCING, ids=str)
def test_sync_group_holds_assignments(pdu: Pdu) -> None:
    body = wirekit.decode(pdu.data, pdu.key).value.body
    if pdu.side == "request":
        embedded = [member.member_assignment for member in body.group_assignment]
    else:
        embedded = [body.member_assignment] if body.member_assignment else []
    for data in embedded:
        assert exact(data, "kafka.consumer_assignment").version == 0


def test_later_subscription_has_a_tail() -> None:
    """Version 1 adds owned partitions; readers take what they know."""
    data = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000000")
    decoded = wirekit.decode(data, "kafka.consumer_subscription")
    assert decoded.error is None
    assert (decoded.value.topics, decoded.value.user_data, decoded.value.tail) == (["t"], None, bytes(4))
    assert wirekit.encode("kafka.consumer_subscription", decoded.value) == data
