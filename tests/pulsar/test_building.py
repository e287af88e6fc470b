"""Frames from values: what follows from other fields is computed, what a peer refuses is refused, presence stays."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit

ENGINES = ("reference", "rows")
METADATA = {"producer_name": "p", "sequence_id": 7, "publish_time": 1}


def send(payload: Any, **metadata: Any) -> dict[str, Any]:
    command = {"type": "SEND", "send": {"producer_id": 0, "sequence_id": 7}}
    return {"command": command, "entry": {"metadata": METADATA | metadata, "payload": payload}}


def batch(*texts: bytes) -> list[dict[str, Any]]:
    return [{"metadata": {"partition_key": "k"}, "payload": text.hex()} for text in texts]


def entry_of(value: Any) -> Any:
    frame = wirekit.decode(wirekit.encode("pulsar.frame", value), "pulsar.frame", strict=True)
    return frame.value.entry


@pytest.mark.parametrize("codec", [None, "NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"])
def test_sizes_and_counts_are_computed(codec: str | None) -> None:
    metadata = {} if codec is None else {"compression": codec}
    payload = batch(b"one", b"", b"three" * 90)
    plain = codec in (None, "NONE")
    entry = entry_of(send(payload if plain else {"content": payload}, **metadata))
    items = entry.payload if plain else entry.payload.content
    assert entry.metadata.num_messages_in_batch == 3
    assert [item.payload for item in items] == [b"one", b"", b"three" * 90]
    assert [item.metadata.payload_size for item in items] == [3, 0, 450]
    assert entry.metadata.uncompressed_size == (None if plain else 3 * 9 + 1 + 453)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("compression", ["NONE", "ZSTD"])
def test_changed_values_change_their_derived_fields(engine: str, compression: str) -> None:
    payload = batch(b"one", b"two")
    value = send(payload if compression == "NONE" else {"content": payload}, compression=compression)
    value["entry"]["metadata"]["uncompressed_size"] = 0
    entry = wirekit.decode(wirekit.encode("pulsar.frame", value), "pulsar.frame", engine=engine).value
    items = entry.entry.payload if compression == "NONE" else entry.entry.payload.content
    items[1].payload = b"twenty"
    items.append(items[0])
    data = wirekit.encode("pulsar.frame", entry, engine=engine)
    again = wirekit.decode(data, "pulsar.frame", strict=True).value.entry
    assert again.metadata.num_messages_in_batch == 3
    assert again.metadata.uncompressed_size == 3 * 9 + 12
    assert entry.entry.metadata.num_messages_in_batch == 2, "the caller's value is left alone"


@pytest.mark.parametrize("engine", ENGINES)
def test_wrong_numbers_are_kept_or_asked_for(engine: str) -> None:
    value = send(batch(b"one"), num_messages_in_batch=5, uncompressed_size=99)
    value["entry"]["metadata"]["$keep"] = ["num_messages_in_batch", "uncompressed_size"]
    data = wirekit.encode("pulsar.frame", value, engine=engine)
    decoded = wirekit.decode(data, "pulsar.frame", engine=engine)
    bad = {(check.kind, check.path, check.stored) for check in decoded.checks if check.status == "bad"}
    assert bad == {("count", "entry.payload", 5), ("length", "entry.metadata.uncompressed_size", 99)}
    assert decoded.value.entry.metadata.extra["keep"] == ["num_messages_in_batch", "uncompressed_size"]
    assert wirekit.encode("pulsar.frame", decoded.value, engine=engine) == data


def test_no_size_beside_compressed_data_stays_none() -> None:
    value = send({"content": "00" * 300}, compression="ZSTD")
    value["entry"]["metadata"]["$keep"] = ["uncompressed_size"]
    data = wirekit.encode("pulsar.frame", value)
    decoded = wirekit.decode(data, "pulsar.frame")
    assert decoded.clean
    assert decoded.value.entry.metadata.uncompressed_size is None
    assert wirekit.encode("pulsar.frame", wirekit.to_json(decoded.value)) == data


def test_a_batch_of_one_is_a_batch_by_presence() -> None:
    data = wirekit.encode("pulsar.frame", send(batch(b"one"), num_messages_in_batch=1))
    alone = wirekit.encode("pulsar.frame", send(b"one".hex()))
    assert isinstance(wirekit.decode(data, "pulsar.frame").value.entry.payload, list)
    assert wirekit.decode(alone, "pulsar.frame").value.entry.payload == b"one"


REFUSED = [
    ({"type": "SEND"}, "send", "because type SEND .6. requires it"),
    ({"type": "PING"}, "ping", "because type PING .18. requires it"),
    ({}, "type", "requires it"),
    ({"type": 99}, "type", "found 99"),
    ({"type": "SEND", "send": {"producer_id": 1}}, "send.sequence_id", "pulsar.proto.CommandSend requires it"),
    ({"type": "ACK", "ack": {"consumer_id": 1, "ack_type": 9}}, "ack.ack_type", "found 9"),
    (
        {"type": "ACK", "ack": {"consumer_id": 1, "ack_type": 0, "message_id": [{"ledgerId": 1}]}},
        "ack.message_id[0].entryId",
        "requires it",
    ),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("command", "path", "text"), REFUSED, ids=lambda value: str(value)[:40])
def test_commands_that_a_peer_refuses_are_refused(command: dict[str, Any], path: str, text: str, engine: str) -> None:
    with pytest.raises(wirekit.Wrong, match=text) as caught:
        wirekit.encode("pulsar.frame", {"command": command}, engine=engine)
    assert caught.value.path == f"command.{path}"


@pytest.mark.parametrize(("command", "path", "text"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_refused_value_is_written_when_kept_and_reported_when_read(
    command: dict[str, Any], path: str, text: str
) -> None:
    value = wirekit.from_json("pulsar.command", command)
    *steps, name = path.replace("[0]", ".[0]").split(".")
    at: Any = value
    for step in steps:
        at = at[0] if step == "[0]" else at[step]
    at.keep(name)
    data = wirekit.encode("pulsar.command", value)
    decoded = wirekit.decode(data, "pulsar.command")
    assert [(check.kind, check.path) for check in decoded.checks if check.status == "bad"] == [("required", path)]
    assert decoded.error is None
    assert wirekit.encode("pulsar.command", wirekit.to_json(decoded.value)) == data


OUT_OF_ORDER = {
    "fields in another order": "180010000a0178",
    "an unknown field": "0a017810001800f8ff0101",
    "an unknown field in front": "f8ff01010a017810001800",
    "a long varint": "0a01781080001800",
    "a packed list": "0a017810001800fa01020003",
    "a field twice": "0a0178100110001800",
}


@pytest.mark.parametrize("text", OUT_OF_ORDER.values(), ids=OUT_OF_ORDER)
def test_unusual_protobuf_comes_out_the_same(text: str) -> None:
    data = bytes.fromhex(text)
    decoded = wirekit.decode(data, "pulsar.message_metadata")
    assert decoded.clean
    assert (decoded.value.producer_name, decoded.value.sequence_id, decoded.value.publish_time) == ("x", 0, 0)
    assert wirekit.encode("pulsar.message_metadata", decoded.value) == data
    assert wirekit.encode("pulsar.message_metadata", wirekit.to_json(decoded.value)) == data
    decoded.value.sequence_id = 5
    assert wirekit.decode(wirekit.encode("pulsar.message_metadata", decoded.value), "pulsar.message_metadata").clean


def test_presence_is_apart_from_defaults() -> None:
    bare = wirekit.encode("pulsar.message_metadata", METADATA)
    default = wirekit.encode("pulsar.message_metadata", METADATA | {"null_value": False, "compression": 0})
    assert bare != default
    for data in (bare, default):
        decoded = wirekit.decode(data, "pulsar.message_metadata").value
        shown = wirekit.to_json(decoded)
        assert ("null_value" in shown) == (data == default)
        assert wirekit.from_json("pulsar.message_metadata", shown) == decoded
        assert wirekit.encode("pulsar.message_metadata", shown) == data


@pytest.mark.parametrize(
    ("marker", "payload"),
    [
        (10, {"snapshot_id": "s", "source_cluster": "c"}),
        (11, {"snapshot_id": "s", "cluster": {"cluster": "c", "message_id": {"ledger_id": 1, "entry_id": 2}}}),
        (12, {"snapshot_id": "s", "local_message_id": {"ledger_id": 1, "entry_id": 2}}),
        (13, {"subscription_name": "s"}),
        (21, ""),
    ],
)
def test_markers_are_opened(marker: int, payload: Any) -> None:
    entry = entry_of(send(payload, marker_type=marker))
    assert wirekit.to_json(entry.payload) == payload


def test_uncompressed_size_is_a_limit_before_it_is_memory() -> None:
    value = send({"content": "00"}, compression="LZ4")
    frame = wirekit.from_json("pulsar.frame", value)
    frame.entry.payload.compressed = b"\xff" * 20
    frame.entry.payload.extra["keep"] = ["compressed"]
    frame.entry.metadata.uncompressed_size = 0xFFFFFFFF
    decoded = wirekit.decode(wirekit.encode("pulsar.frame", frame), "pulsar.frame")
    assert isinstance(decoded.error, wirekit.Limit)
    assert decoded.error.path == "entry.payload"
