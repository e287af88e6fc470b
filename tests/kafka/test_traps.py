"""What readers of this protocol stumble over, each with a test, with real bytes wherever brokers were seen to do it.

``TRAPS`` names the test of each. What is not named ``real`` rests on Kafka's sources or on reports: no capture of ours
has GSSAPI tokens of 0.9, an OffsetCommit of 0.8.2-beta, a fetch cut within the first 12 bytes of a message, an overflow
stub, or wrappers of mixed magics.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import wirekit
from tests.kafka.golden import DISK, PDUS, Pdu, message, message_set
from wirekit.conversation import Conversation, Frame
from wirekit.protocols.kafka.reading import messages_of, messages_of_set, verdicts

TRAPS = {
    "correlate by id, on the connection": "test_dialogue.TestPairs.test_by_id_not_by_position",
    "responses whose request is missing": "test_captured_conversations.test_stray_responses_have_a_reason",  # real
    "acks=0 has no answer": "test_traps.test_produce_without_acks",  # real
    "ControlledShutdown v0 has no client id": "test_traps.test_controlled_shutdown",  # real
    "ApiVersions is answered in v0": "test_captured_conversations.test_api_versions_is_answered_in_v0",  # real
    "SASL tokens have no header": "test_captured_conversations.test_sasl_tokens",  # real
    "port before host in UpdateMetadata": "test_traps.test_update_metadata",  # real
    "magic decides, not the API's version": "test_traps.test_old_messages_in_new_responses",  # real
    "magics mixed in one set": "test_messages.test_magic_decides_message_by_message",
    "LogAppendTime overrides what is inside": "test_traps.test_log_append_time",  # real
    "LZ4's header checksum by magic": "test_traps.test_lz4_header_checksum",  # real
    "snappy raw and framed": "test_traps.test_snappy_raw_and_framed",  # real
    "offsets in produce requests": "test_traps.test_offsets_of_producers",  # real
    "negative timestamps": "test_traps.test_negative_timestamp",  # real
    "null and empty": "test_traps.test_null_and_empty",  # real
    "null and empty client id": "test_traps.test_empty_client_id",  # real
    "error 13 has two meanings": "test_traps.test_error_13",  # real
    "index entries of leader and follower": "test_traps.test_index_of_leader_and_follower",  # real
    "zeros of preallocation": "test_directories.test_zeros_of_preallocation_are_no_damage",
    "OffsetCommit of 0.8.2-beta": "test_dialogue.TestVersions.test_offset_commit_of_0_8_2_beta",
    "fetch cut anywhere": "test_traps.test_cut_fetches",  # real
    "fetch cut within a header": "test_messages.TestTail.test_cut_anywhere",
    "overflow stub": "test_messages.TestTail.test_overflow_stub_of_later_brokers",
    "a cut is no damage": "test_traps.test_a_cut_is_distinguished_from_damage",
    "nested compression has a limit": "test_messages.test_nesting_has_a_limit",
    "wrong checksums are written when asked for": "test_messages.test_wrong_crc_is_written_when_asked_for",
    "the historically right form is built": "test_traps.test_wrappers_are_built_as_by_old_clients",
    "a connection closed after a request that nobody knows": "test_captured_conversations.test_closed_after_a_request",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_each_trap_has_a_test(trap: str) -> None:
    module, *names = TRAPS[trap].split(".")
    module_or_member: Any = importlib.import_module(f"tests.kafka.{module}")
    for name in names:
        module_or_member = getattr(module_or_member, name)
    assert callable(module_or_member)


def values(api: str, side: str) -> Iterator[tuple[Pdu, Any]]:
    for pdu in PDUS:
        if (pdu.api, pdu.side) == (api, side):
            yield pdu, wirekit.decode(pdu.data, pdu.key).value


def produced() -> Iterator[tuple[Pdu, Any]]:
    """The message sets of captured produce requests."""
    for pdu, value in values("produce", "request"):
        for topic in value.body.topic_data:
            for data in topic.data:
                yield pdu, data.record_set


def fetched() -> Iterator[tuple[Pdu, Any]]:
    for pdu, value in values("fetch", "response"):
        for topic in value.body.responses:
            for data in topic.partition_responses:
                if data.record_set is not None:
                    yield pdu, data.record_set


def bodies(message_set: Any) -> list[Any]:
    return [entry.message for entry in message_set.messages]


def test_produce_without_acks() -> None:
    answered = {(pdu.release, pdu.line) for pdu in PDUS if pdu.side == "response"}
    silent = [pdu for pdu, value in values("produce", "request") if value.body.acks == 0]
    assert len(silent) == 14
    assert not {(pdu.release, pdu.line) for pdu in silent} & answered
    for pdu in silent:
        conversation = Conversation("kafka")
        (event,) = conversation.receive("client", pdu.data)
        assert isinstance(event, Frame)
        assert event.messages
        assert conversation.requests == []


def test_controlled_shutdown() -> None:
    by_version = {pdu.version: value for pdu, value in values("controlled_shutdown", "request")}
    assert "client_id" not in by_version[0]
    assert by_version[0].body.broker_id in (1, 2)
    assert isinstance(by_version[1].client_id, str)


def test_update_metadata() -> None:
    for pdu, value in values("update_metadata", "request"):
        for broker in value.body.live_brokers:
            ends = broker.end_points if pdu.version else [broker]
            assert {end.host for end in ends} == {"127.0.0.1"}
            assert all(29_000 < end.port < 29_400 for end in ends)


def test_old_messages_in_new_responses() -> None:
    """A topic of message.format.version 0.9: Fetch v2 and v3 give its messages of magic 0 as they are."""
    versions = [pdu.version for pdu, each in fetched() if pdu.version >= 2 and {m.magic for m in bodies(each)} == {0}]
    assert set(versions) == {2, 3}


def test_log_append_time() -> None:
    data = (DISK / "0.10.2.2-t-logappend-0.log").read_bytes()
    decoded = wirekit.decode(data, "kafka.log_segment")
    wrappers = [m for m in bodies(decoded.value) if m.attributes.codec]
    assert wrappers
    inside = [m for wrapper in wrappers for m in bodies(wrapper.value.content)]
    assert {int(m.attributes.timestamp_type) for m in inside} == {0}
    stamps = {wrapper.timestamp for wrapper in wrappers}
    assert not stamps & {m.timestamp for m in inside}
    for decoded_message in messages_of(decoded):
        assert decoded_message.timestamp_type == "LogAppendTime"
        assert decoded_message.codec == "none" or decoded_message.timestamp in stamps


def test_lz4_header_checksum() -> None:
    checksums = {0: set(), 1: set()}  # type: dict[int, set[int]]
    for name in ("0.8.2.2-t-lz4-0.log", "0.10.2.2-t-fmt09-0.log", "0.10.2.2-t-logappend-0.log"):
        for body in bodies(wirekit.decode((DISK / name).read_bytes(), "kafka.log_segment").value):
            if body.attributes.codec == 3 and body.value.compressed[4:6] == b"\x60\x40":
                checksums[body.magic].add(body.value.compressed[6])
    assert checksums == {0: {0x1A}, 1: {0x82}}


def test_snappy_raw_and_framed() -> None:
    """Librdkafka sends raw blocks; brokers of 0.10 keep them so, older ones write snappy-java's stream."""
    forms: dict[str, set[bool]] = {"produce": set(), "fetch": set()}
    for pdu, each in [*produced(), *fetched()]:
        for body in bodies(each):
            if body.attributes.codec == 2:
                forms[pdu.api].add(body.value.compressed.startswith(b"\x82SNAPPY\0"))
                assert body.value.content.messages
                assert wirekit.decode(pdu.data, pdu.key).clean or pdu.release == "0.10.2.2"
    assert forms == {"produce": {True, False}, "fetch": {True, False}}


def test_offsets_of_producers() -> None:
    """They mean nothing, and are not the offsets of a log: messages of a produce request have none."""
    kinds = set()
    for pdu, each in produced():
        for entry in each.messages:
            if entry.message.attributes.codec and len(entry.message.value.content.messages) > 1:
                inside = [one.offset for one in entry.message.value.content.messages]
                kind = "zeros" if not any(inside) else "ascending" if inside == list(range(len(inside))) else "other"
                kinds.add((int(entry.message.magic), "first" if entry.offset == 0 else "last", kind))
        (event,) = Conversation("kafka").receive("client", pdu.data)
        assert isinstance(event, Frame)
        assert {each_message.offset for each_message in event.messages} <= {None}
    assert kinds == {
        (0, "last", "zeros"),  # Java until 0.9
        (0, "last", "ascending"),  # Scala
        (0, "first", "ascending"),  # kafka-python, librdkafka
        (1, "last", "ascending"),  # Java 0.10
        (1, "first", "ascending"),
    }


def test_negative_timestamp() -> None:
    decoded = wirekit.decode((DISK / "0.10.2.2-t-none-0.log").read_bytes(), "kafka.log_segment")
    timestamps = {message.offset: message.timestamp for message in messages_of(decoded)}
    assert timestamps[80] == -5
    assert [body.timestamp for _, each in produced() for body in bodies(each) if (body.timestamp or 0) < -1] == [-5]


def test_null_and_empty() -> None:
    lengths: dict[str, set[Any]] = {"key": set(), "value": set()}
    for pdu, each in produced():
        decoded = wirekit.decode(pdu.data, pdu.key)
        for decoded_message in messages_of_set(each, verdicts(decoded.checks)):
            lengths["key"].add(decoded_message.key if not decoded_message.key else "some")
            lengths["value"].add(decoded_message.value if not decoded_message.value else "some")
    assert lengths == {"key": {None, b"", "some"}, "value": {None, b"", "some"}}


def test_empty_client_id() -> None:
    """Consumers of Scala have one; it is not null, and is written as it was."""
    empty = [(p, wirekit.decode(p.data, p.key).value) for p in PDUS if p.side == "request"]
    empty = [(pdu, value) for pdu, value in empty if value.get("client_id") == ""]
    assert len(empty) == 13
    for pdu, value in empty:
        assert wirekit.encode(pdu.key, value) == pdu.data
        value.client_id = None
        assert wirekit.encode(pdu.key, value) != pdu.data


def test_error_13() -> None:
    codes = [
        partition.error_code
        for pdu, value in values("leader_and_isr", "response")
        if pdu.release in ("0.8.2.2", "0.9.0.1")
        for partition in value.body.partitions
    ]
    (described,) = {code.description for code in codes if code == 13}
    assert "StaleLeaderEpoch" in described


def test_index_of_leader_and_follower() -> None:
    """The same bytes of log on two brokers of 0.10.2.2, whose indexes name another offset for each set."""
    name = "0.10.2.2-t-snappy-0"
    log = wirekit.decode((DISK / f"{name}.log").read_bytes(), "kafka.log_segment", engine="reference").value
    places = {}
    position = 0
    for entry in log.messages:
        places[position] = entry
        position += len(message_set_of(entry))
    leader, follower = (
        wirekit.decode(path.read_bytes(), "kafka.offset_index").value.entries
        for path in (DISK / f"{name}.index", DISK / "follower" / f"{name}.index")
    )
    assert [one.position for one in leader] == [one.position for one in follower]
    assert [one.relative_offset for one in leader] == [40, 58]
    assert [one.relative_offset for one in follower] == [50, 73]
    for first, last in zip(leader, follower, strict=True):
        entry = places[first.position]
        count = len(entry.message.value.content.messages)
        assert (entry.offset - count + 1, entry.offset) == (first.relative_offset, last.relative_offset)


def message_set_of(entry: Any) -> bytes:
    return wirekit.encode("kafka.message_set", {"messages": [entry]})


def test_cut_fetches() -> None:
    cut = [(pdu, each) for pdu, each in fetched() if each.partial]
    assert len(cut) == 10
    for pdu, each in cut:
        decoded = wirekit.decode(pdu.data, pdu.key)
        assert decoded.error is None
        assert not decoded.gaps
        size = int.from_bytes(each.partial[8:12], "big")
        assert size > len(each.partial) - 12


@pytest.mark.parametrize("end", [1, 5, 11, 12, 20])
def test_a_cut_is_distinguished_from_damage(end: int) -> None:
    """What max_bytes cuts is ``partial`` without a complaint; a length that no message has is an error."""
    one = message_set(message(b"hello"))
    decoded = wirekit.decode(one + one[:end], "kafka.message_set")
    assert decoded.clean
    assert decoded.value.partial == one[:end]
    damaged = one + one[:8] + (3).to_bytes(4, "big") + one[12:]
    assert wirekit.decode(damaged, "kafka.message_set").error is not None


@pytest.mark.parametrize(
    ("codec", "magic"), [(codec, magic) for codec in ("GZIP", "SNAPPY", "LZ4") for magic in (0, 1)]
)
def test_wrappers_are_built_as_by_old_clients(codec: str, magic: int) -> None:
    """LZ4 of magic 0 with the wrong header checksum, snappy framed; but ``compressed`` is written as it is given."""
    inner = [message(b"x", offset=0, magic=magic)]
    data = message_set(message(inner, magic=magic, codec=codec))
    value = wirekit.decode(data, "kafka.message_set").value
    body = value.messages[0].message
    if codec == "LZ4":
        assert body.value.compressed[6] == (0x82 if magic else 0x1A)
    if codec == "SNAPPY":
        assert body.value.compressed.startswith(b"\x82SNAPPY\0")
    other = bytes([*body.value.compressed[:-1], body.value.compressed[-1] ^ 1])
    entry = message(b"", magic=magic, codec=codec)
    entry["message"]["value"] = {"compressed": other.hex()}
    written = wirekit.decode(message_set(entry), "kafka.message_set").value.messages[0].message.value
    assert (written if isinstance(written, bytes) else written.compressed) == other
