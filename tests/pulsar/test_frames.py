"""Pulsar frames of real clients: decoded without complaint, rebuilt exactly, payloads as the application sent them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wirekit
from wirekit.conversation import Conversation, Message

FRAMES = Path(__file__).parents[2] / "fixtures" / "pulsar" / "frames"
RUNS = sorted(path.name.removesuffix(".frames.jsonl") for path in FRAMES.glob("*.frames.jsonl"))

# What the damaged runs are about: (kind of complaint, where).
COMPLAINTS = {
    "corrupt_batch_count_high": {("count", "entry.payload")},
    "corrupt_checksum": {("crc32c", "entry.checksum")},
    "corrupt_lz4_garbage": {("decompression", "entry.payload")},
    "corrupt_zstd_garbage": {("decompression", "entry.payload")},
    "corrupt_truncated_metadata": {("wrong", "entry.metadata"), ("crc32c", "entry.checksum")},
}
# What the application sent is in the recording, but not readable from the bytes without a key.
UNREADABLE = {"encryption"}


def lines(run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FRAMES / f"{run}.frames.jsonl").read_text().splitlines()]


def complaints(decoded: wirekit.Decoded) -> Iterator[tuple[str, str]]:
    if decoded.error is not None:
        yield decoded.error.kind, decoded.error.path
    for check in decoded.checks:
        if check.status == "bad":
            yield check.kind, check.path


@pytest.mark.parametrize("run", RUNS)
def test_frames_decode_and_rebuild(run: str) -> None:
    reasons = set()
    for line in lines(run):
        data = bytes.fromhex(line["hex"])
        decoded = wirekit.decode(data, "pulsar.frame")
        reasons.update(complaints(decoded))
        if decoded.error is not None:
            continue
        assert decoded.consumed == len(data)
        assert decoded.value.command.type.symbol == line["type"]
        assert wirekit.encode("pulsar.frame", decoded.value) == data
        value = json.loads(json.dumps(wirekit.to_json(decoded.value)))
        assert wirekit.from_json("pulsar.frame", value) == decoded.value
        assert wirekit.encode("pulsar.frame", value) == data
    assert reasons == COMPLAINTS.get(run, set())


def sent_messages(run: str) -> list[Message]:
    conversations: dict[int, Conversation] = {}
    messages = []
    for line in lines(run):
        side = "client" if line["dir"] == "c2s" else "server"
        conversation = conversations.setdefault(line["conn"], Conversation("pulsar"))
        for frame in conversation.receive(side, bytes.fromhex(line["hex"])):
            messages += frame.messages if side == "client" else []
    return messages


@pytest.mark.parametrize("run", [run for run in RUNS if run not in UNREADABLE and run != "corrupt_batch_count_high"])
def test_payloads_equal_those_the_application_sent(run: str, fixtures: Path) -> None:
    expected = json.loads((fixtures / "pulsar" / "expected" / f"{run}.expected.json").read_text())
    messages = sent_messages(run)
    assert [hashlib.sha256(message.value or b"").hexdigest() for message in messages] == [
        sent["payload_sha256"] for sent in expected["sent"]
    ]
    for message, sent in zip(messages, expected["sent"], strict=True):
        key = sent.get("partition_key")
        assert message.key == (key.encode() if key else None) or message.key == b""
        assert message.topic is not None
        assert message.check == "ok"


def test_encrypted_payload_is_opaque_and_its_metadata_is_not() -> None:
    frames = [wirekit.decode(bytes.fromhex(line["hex"]), "pulsar.frame") for line in lines("encryption")]
    entries = [frame.value.entry for frame in frames if frame.value.entry is not None]
    encrypted = [entry for entry in entries if entry.metadata.encryption_keys]
    assert encrypted
    for entry in encrypted:
        assert isinstance(entry.payload, bytes)
        assert entry.metadata.encryption_keys[0].key
    assert {pair.key: pair.value for pair in encrypted[0].metadata.properties} == {"visible": "yes"}


def test_broker_entry_metadata_is_read_before_the_checksum() -> None:
    count = 0
    for line in lines("broker_entry_metadata"):
        decoded = wirekit.decode(bytes.fromhex(line["hex"]), "pulsar.frame")
        if decoded.value.entry is not None and decoded.value.entry.broker_entry_metadata is not None:
            count += 1
            assert decoded.value.entry.broker_entry_metadata.metadata.index is not None
            assert decoded.clean
    assert count


def vectors(kind: str) -> list[dict[str, Any]]:
    path = FRAMES.parent / "golden_frames.json"
    return [vector for vector in json.loads(path.read_text()) if vector["kind"] == kind]


@pytest.mark.parametrize("vector", vectors("entry") + vectors("frame"), ids=lambda vector: vector["id"])
def test_vectors_of_other_clients(vector: dict[str, Any]) -> None:
    key = "pulsar.frame" if vector["kind"] == "frame" else "pulsar.entry"
    data = bytes.fromhex(vector["hex"])
    if "broker_entry_metadata" in vector["expect"]:
        decoded = wirekit.decode(data[6:], "pulsar.broker_entry_metadata")
        expect = vector["expect"]["broker_entry_metadata"]
        assert {name: decoded.value[name] for name in expect} == expect
        return
    decoded = wirekit.decode(data, key)
    assert decoded.clean
    assert wirekit.encode(key, decoded.value) == data
    entry = decoded.value.entry if key == "pulsar.frame" else decoded.value
    expect = vector["expect"]
    assert f"{entry.checksum:08x}" == expect["checksum"]
    assert entry.metadata.producer_name == expect["metadata"]["producer_name"]
    assert entry.metadata.publish_time == expect["metadata"]["publish_time"]
    if "messages" in expect:
        assert [item.payload.decode() for item in entry.payload] == [item["payload"] for item in expect["messages"]]
        assert [item.metadata.sequence_id for item in entry.payload] == [
            item["single"]["sequence_id"] for item in expect["messages"]
        ]
    else:
        assert entry.payload.decode() == expect["payload"]


def test_cut_anywhere_is_short_with_the_fields_before_the_cut() -> None:
    data = next(bytes.fromhex(line["hex"]) for line in lines("batch") if line["type"] == "SEND")
    for size in range(len(data)):
        decoded = wirekit.decode(data[:size], "pulsar.frame")
        assert isinstance(decoded.error, wirekit.Short), size
        assert decoded.error.offset <= size
        if size >= 8:
            assert decoded.value.command_size == 10


def test_fields_out_of_order_and_unknown_ones_survive() -> None:
    command = bytes.fromhex("1a040a017810" + "0803" + "f8ff0101")
    decoded = wirekit.decode(command, "pulsar.command")
    assert decoded.error is not None or wirekit.encode("pulsar.command", decoded.value) == command


def test_google_protobuf_reads_the_same() -> None:
    from wirekit.proto.PulsarApi_pb2 import BaseCommand

    for run in ("consume", "flex_basic", "schema"):
        for line in lines(run):
            decoded = wirekit.decode(bytes.fromhex(line["hex"]), "pulsar.frame")
            begin = 8
            data = bytes.fromhex(line["hex"])[begin : begin + decoded.value.command_size]
            theirs = BaseCommand.FromString(data)
            assert_same(decoded.value.command, theirs)


def assert_same(ours: Any, theirs: Any) -> None:
    for field in theirs.DESCRIPTOR.fields:
        mine, other = ours[field.name], getattr(theirs, field.name)
        if isinstance(mine, list):
            assert len(mine) == len(other)
            pairs = list(zip(mine, other, strict=True))
        elif not theirs.HasField(field.name):
            assert mine is None
            continue
        else:
            pairs = [(mine, other)]
        for one, two in pairs:
            if field.message_type is not None:
                assert_same(one, two)
            else:
                assert one == two


def test_missing_required_field_is_a_failed_check() -> None:
    decoded = wirekit.decode(b"", "pulsar.command")
    assert [(check.kind, check.path, check.status) for check in decoded.checks] == [("required", "type", "bad")]
    with pytest.raises(wirekit.Wrong, match="requires it"):
        wirekit.encode("pulsar.command", {})


def test_a_nested_message_is_decoded_up_to_the_cut() -> None:
    producer = {"topic": "t", "producer_id": 3, "request_id": 4, "producer_name": "name"}
    data = wirekit.encode("pulsar.frame", {"command": {"type": "PRODUCER", "producer": producer}})
    decoded = wirekit.decode(data[:-2], "pulsar.frame")
    assert decoded.error is not None
    assert decoded.error.path == "command.producer.producer_name"
    assert decoded.value.command.producer.request_id == 4
    decoded = wirekit.decode(data[:-6], "pulsar.frame")  # between two fields
    assert decoded.error is not None
    assert (decoded.error.path, decoded.error.reason) == ("command.producer", "needs 13 bytes, 7 available")
    assert decoded.value.command.producer.request_id == 4
