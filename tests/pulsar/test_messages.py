"""Application messages out of entries: batches, chunks, compaction, keys, cipher text, what was acknowledged before."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest

import wirekit
from tests.pulsar.commands import connect, consumer, message
from wirekit.conversation import Conversation, Frame, Message
from wirekit.protocols.pulsar.ack_set import ack_set, acknowledged, is_unacknowledged, unacknowledged

METADATA = {"producer_name": "p", "sequence_id": 7, "publish_time": 1000}


def heard(*entries: dict[str, Any], decrypt: Any = None, **fields: Any) -> list[Message]:
    """The messages that a consumer gets in MESSAGE frames with these entries."""
    conversation = Conversation("pulsar", decrypt=decrypt)
    subscribe = {"topic": "t", "subscription": "s", "subType": 0, "consumer_id": 3, "request_id": 1}
    request = {"command": {"type": "SUBSCRIBE", "subscribe": subscribe}}
    conversation.receive("client", wirekit.encode("pulsar.frame", request))
    messages = []
    for number, entry in enumerate(entries):
        command = {"consumer_id": 3, "message_id": {"ledgerId": 5, "entryId": number}, **fields}
        value = {"command": {"type": "MESSAGE", "message": command}, "entry": entry}
        for frame in conversation.receive("server", wirekit.encode("pulsar.frame", value)):
            assert isinstance(frame, Frame)
            messages += frame.messages
    return messages


def entry(payload: Any, **metadata: Any) -> dict[str, Any]:
    return {"metadata": METADATA | metadata, "payload": payload}


def item(text: bytes, **metadata: Any) -> dict[str, Any]:
    return {"metadata": metadata, "payload": text.hex()}


@pytest.mark.parametrize(("number", "partition"), [(0, 0), (7, 7), (-1, None)])
def test_the_partition_is_that_of_the_message_id(number: int, partition: int | None) -> None:
    (message,) = heard(entry("61"), message_id={"ledgerId": 5, "entryId": 1, "partition": number})
    assert message.partition == partition


def test_messages_of_a_batch_carry_all_their_metadata() -> None:
    first = item(b"one", partition_key="k", event_time=5, properties=[{"key": "a", "value": "b"}], sequence_id=7)
    broker = {"metadata": {"index": 41, "broker_timestamp": 9}}
    messages = heard({"broker_entry_metadata": broker, **entry([first, item(b"two", sequence_id=8)])})
    assert [message.to_json() for message in messages] == [
        {
            "protocol": "pulsar",
            "topic": "t",
            "partition": None,
            "offset": "5:0:0",
            "timestamp": 1000,
            "timestamp_type": "PublishTime",
            "key": b"k".hex(),
            "value": b"one".hex(),
            "attributes": None,
            "codec": "none",
            "crc": messages[0].crc,
            "check": "ok",
            "schema": "pulsar.frame",
            "properties": {"a": "b"},
            "event_time": 5,
            "producer": "p",
            "sequence_id": 7,
            "broker_index": 40,
            "encrypted": None,
        },
        messages[1].to_json(),
    ]
    assert (messages[1].offset, messages[1].details["broker_index"]) == ("5:0:1", 41)


def test_tombstones_and_keys_in_base64() -> None:
    key = base64.b64encode(b"\xff\x00").decode()
    (message,) = heard(entry("", null_value=True, partition_key=key, partition_key_b64_encoded=True))
    assert (message.key, message.value, message.offset) == (b"\xff\x00", None, "5:0:-1")


def test_messages_removed_by_compaction_are_left_out() -> None:
    gone = item(b"", compacted_out=True)
    assert [message.offset for message in heard(entry([item(b"one"), gone, item(b"two")]))] == ["5:0:0", "5:0:2"]
    left = entry([item(b"one"), item(b"four")], num_messages_in_batch=5, compacted_batch_indexes=[0, 3])
    left["metadata"]["$keep"] = ["num_messages_in_batch"]
    assert [message.offset for message in heard(left)] == ["5:0:0", "5:0:3"]
    data = wirekit.encode("pulsar.entry", left)
    assert wirekit.decode(data, "pulsar.entry").clean
    assert wirekit.encode("pulsar.entry", wirekit.decode(data, "pulsar.entry").value) == data


def test_markers_are_no_messages() -> None:
    assert not heard(entry({"snapshot_id": "s"}, marker_type=10), entry("", marker_type=21))


@pytest.mark.parametrize("compression", [0, 3])
def test_chunks_are_one_message(compression: int) -> None:
    from wirekit.compression import compress

    plain = b"a long message " * 50
    data = compress("zstd", plain) if compression else plain
    pieces = [data[start : start + 30] for start in range(0, len(data), 30)]
    metadata = {"uuid": "p-7", "num_chunks_from_msg": len(pieces), "total_chunk_msg_size": len(data)}
    metadata |= {"compression": compression, "uncompressed_size": len(plain)}
    entries = [entry(piece.hex(), chunk_id=number, **metadata) for number, piece in enumerate(pieces)]
    (message,) = heard(*entries)
    assert (message.value, message.offset, message.check) == (plain, f"5:{len(pieces) - 1}:-1", "ok")
    assert not heard(*entries[1:])


@pytest.mark.parametrize("codec", [{"compression": 3, "uncompressed_size": 9}, {"compression": 1}])
def test_chunks_that_do_not_decompress_stay_as_they_are(codec: dict[str, int]) -> None:
    metadata = {"uuid": "p-7", "num_chunks_from_msg": 2, **codec}
    (message,) = heard(*(entry("00ff", chunk_id=number, **metadata) for number in range(2)))
    assert (message.value, message.check) == (b"\x00\xff\x00\xff", "bad")


def pieces_of(texts: list[str]) -> list[dict[str, Any]]:
    metadata = {"uuid": "p-7", "num_chunks_from_msg": len(texts)}
    return [entry(text.encode().hex(), chunk_id=number, **metadata) for number, text in enumerate(texts)]


def test_a_first_chunk_begins_the_message_anew() -> None:
    chunks = pieces_of(["one ", "two ", "three"])
    assert [each.value for each in heard(*chunks[:2], *chunks)] == [b"one two three"]
    assert not heard(chunks[0], chunks[2], chunks[1], chunks[2])


def test_a_chunk_that_is_sent_again_is_ignored() -> None:
    chunks = pieces_of(["one ", "two ", "three"])
    assert [each.value for each in heard(*chunks[:2], chunks[1], *chunks[1:])] == [b"one two three"]


def test_chunks_that_several_consumers_of_a_connection_get_in_turn() -> None:
    conversation = Conversation("pulsar")
    for each_command in [*connect(), *consumer(1, 20), *consumer(2, 21)]:
        conversation.receive(each_command.side, each_command.data)
    frames = [message(0, chunk, number) for chunk in pieces_of(["one ", "two"]) for number in (1, 2)]
    events = [each for each_command in frames for each in conversation.receive(each_command.side, each_command.data)]
    assert [each.value for frame in events if isinstance(frame, Frame) for each in frame.messages] == [b"one two"] * 2


def test_a_message_is_bad_if_one_of_its_chunks_is() -> None:
    chunks = pieces_of(["one ", "two ", "three"])
    chunks[1] |= {"checksum": 1, "$keep": ["checksum"]}
    (message,) = heard(*chunks)
    assert (message.value, message.check) == (b"one two three", "bad")
    assert [each.check for each in heard(*chunks[:2], *pieces_of(["a", "b"]))] == ["ok"]


def test_a_payload_of_which_bytes_are_missing_is_no_message() -> None:
    conversation = Conversation("pulsar")
    whole = [message(0, chunk) for chunk in (entry(b"alone".hex()), *pieces_of(["one ", "two ", "three"]))]
    for each_command in [*connect(), *consumer()]:
        conversation.receive(each_command.side, each_command.data)
    messages = []
    for number, each_command in enumerate(whole):
        missing = 2 if number in (0, 2) else 0
        events = conversation.receive(each_command.side, each_command.data[: len(each_command.data) - missing])
        events += conversation.gap(each_command.side, missing) if missing else []
        for frame in events:
            if isinstance(frame, Frame):
                assert not [check for check in frame.decoded.checks if check.status == "bad"]
                messages += frame.messages
    assert not messages


def sealed(plain: bytes, **metadata: Any) -> dict[str, Any]:
    keys = [{"key": "k1", "value": "00"}]
    cipher = bytes(byte ^ 0x55 for byte in plain)
    return entry(cipher.hex(), encryption_keys=keys, encryption_param="00" * 12, **metadata)


def decrypted(cipher: bytes, metadata: Any) -> bytes | None:
    return bytes(byte ^ 0x55 for byte in cipher) if metadata.encryption_keys[0].key == "k1" else None


def test_cipher_text_is_marked_and_its_metadata_is_readable() -> None:
    value = sealed(b"hidden", num_messages_in_batch=3, properties=[{"key": "seen", "value": "yes"}])
    data = wirekit.encode("pulsar.entry", value)
    decoded = wirekit.decode(data, "pulsar.entry")
    assert decoded.clean
    assert [(check.kind, check.path, check.status) for check in decoded.checks] == [
        ("decryption", "payload", "absent"),
        ("crc32c", "checksum", "ok"),
    ]
    (message,) = heard(value)
    assert (message.details["encrypted"], message.details["properties"]) == (["k1"], {"seen": "yes"})
    assert message.value == decoded.value.payload


def test_a_key_of_the_caller_opens_it() -> None:
    batch = wirekit.encode("pulsar.batch", {"messages": [item(b"one"), item(b"two")]})
    value = sealed(batch, num_messages_in_batch=2)
    data = wirekit.encode("pulsar.entry", value)
    decoded = wirekit.decode(data, "pulsar.entry", decrypt=decrypted)
    assert decoded.clean
    assert [each.payload for each in decoded.value.payload.content] == [b"one", b"two"]
    assert {check.kind: check.status for check in decoded.checks} == {"decryption": "ok", "count": "ok", "crc32c": "ok"}
    assert wirekit.encode("pulsar.entry", decoded.value) == data
    assert wirekit.encode("pulsar.entry", wirekit.to_json(decoded.value)) == data
    assert any(span.path == "payload.content[1].payload" for span in decoded.spans)
    assert [message.value for message in heard(value, decrypt=decrypted)] == [b"one", b"two"]
    assert heard(value, decrypt=decrypted)[0].details["encrypted"] is None


def test_decrypted_content_counts_as_a_level_of_nesting() -> None:
    data = wirekit.encode("pulsar.entry", sealed(b"hidden"))
    assert wirekit.decode(data, "pulsar.entry", decrypt=decrypted, limits=wirekit.Limits(depth=1)).clean
    error = wirekit.decode(data, "pulsar.entry", decrypt=decrypted, limits=wirekit.Limits(depth=0)).error
    assert isinstance(error, wirekit.Limit)
    assert (error.limit, error.allowed, error.actual) == ("depth", 0, 1)


def test_without_the_key_or_with_a_wrong_one() -> None:
    data = wirekit.encode("pulsar.entry", sealed(b"hidden", num_messages_in_batch=1))
    assert isinstance(wirekit.decode(data, "pulsar.entry", decrypt=lambda *_: None).value.payload, bytes)
    wrong = wirekit.decode(data, "pulsar.entry", decrypt=lambda *_: b"\xff\xff\xff\xff")
    assert wrong.error is None
    assert ("decryption", "payload") in [(check.kind, check.path) for check in wrong.checks if check.status == "bad"]
    assert wirekit.encode("pulsar.entry", wrong.value) == data
    with pytest.raises(wirekit.Wrong, match="expected the cipher text"):
        wirekit.encode("pulsar.entry", {**sealed(b"x"), "payload": {"content": "00"}})


ACK_SETS = [
    ([-2, 63], 70, [0]),
    ([0x7FFFFFFFFFFFFFFE, 63], 70, [0, 63]),
    ([0x7FFFFFFFFFFFFFFE, 62], 70, [0, 63, 64]),
    ([0x7FFFFFFFFFFFFFFE, 30], 70, [0, 63, 64, 69]),
    ([0, 60], 70, list(range(66))),
    ([], 3, [0, 1, 2]),
]


@pytest.mark.parametrize(("words", "size", "indexes"), ACK_SETS)
def test_ack_sets_are_index_lists_and_back(words: list[int], size: int, indexes: list[int]) -> None:
    assert acknowledged(words, size) == indexes
    assert ack_set(unacknowledged(words)) == words
    for each in (words, [word % (1 << 64) for word in words]):
        assert unacknowledged(each) == unacknowledged(words)
        assert [index for index in range(size) if not is_unacknowledged(each, index)] == indexes


def test_messages_acknowledged_before_are_marked() -> None:
    messages = heard(entry([item(b"one"), item(b"two"), item(b"three")]), ack_set=[0b101])
    assert [message.details["acknowledged"] for message in messages] == [False, True, False]


def test_the_time_of_a_batch_with_a_large_ack_set_is_linear() -> None:
    begin = time.process_time()
    messages = heard(entry([item(b"x")] * 4000), ack_set=[-1] * 4000)
    assert not any(message.details["acknowledged"] for message in messages)
    assert time.process_time() - begin < 10  # 70 s if each message goes through all words


def test_an_empty_zlib_payload_is_what_java_clients_make_of_an_empty_message() -> None:
    data = wirekit.encode(
        "pulsar.frame",
        {
            "command": {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 7}},
            "entry": entry("", compression="ZLIB", uncompressed_size=0),
        },
    )
    decoded = wirekit.decode(data, "pulsar.frame")
    assert decoded.clean
    assert (decoded.value.entry.payload.content, decoded.value.entry.payload.compressed) == (b"", b"")
    assert wirekit.encode("pulsar.frame", decoded.value) == data
    stream = wirekit.encode(
        "pulsar.frame",
        {
            "command": {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 7}},
            "entry": entry({"content": ""}, compression="ZLIB"),
        },
    )
    decoded = wirekit.decode(stream, "pulsar.frame")
    assert decoded.clean
    assert (decoded.value.entry.payload.content, len(decoded.value.entry.payload.compressed)) == (b"", 8)
