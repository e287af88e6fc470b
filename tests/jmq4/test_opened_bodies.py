"""Message bodies opened on request: the keys that end in ``_opened``."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import pytest

import wirekit
from tests.engines import same
from tests.jmq4.vectors import FRAMES, PARTS
from wirekit.compression import decompress

KEY = "joyqueue.message_opened"
ZLIB = 2
MESSAGES = [
    {"priority": 0, "flag": 0, "body": b"one", "business_id": "a", "attributes": None},
    {"priority": 4, "flag": 0, "body": b"two" * 99, "business_id": None, "attributes": "k=v"},
]
RECORDS = [part for part in PARTS if part["kind"].startswith("message")]
READABLE = [vector for vector in FRAMES if not vector["name"].endswith("_QUIRK")]


def message(body: Any, **code: Any) -> dict[str, Any]:
    """A message with a body."""
    system_code = {"source": 3, "address_type": 1, "message_version": 1, **code}
    return {
        "partition": 0,
        "magic": 0x1234,
        "system_code": system_code,
        "send_time": 1,
        "flag": len(MESSAGES) if code.get("batch") else 0,
        "body": body,
        "business_id": None,
        "attributes": None,
        "extension": None,
        "app": "app",
    }


@pytest.mark.parametrize("vector", READABLE, ids=lambda vector: vector["name"])
def test_frames_keep_their_bytes(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    decoded = same("joyqueue.frame_opened", data, {})
    assert wirekit.encode("joyqueue.frame_opened", decoded.value) == data
    assert wirekit.encode("joyqueue.frame_opened", wirekit.to_json(decoded.value)) == data


@pytest.mark.parametrize("part", RECORDS, ids=lambda part: part["name"])
def test_records_keep_their_bytes(part: dict[str, Any]) -> None:
    data = bytes.fromhex(part["hex"])
    assert wirekit.encode(KEY, wirekit.decode(data, KEY).value) == data


@pytest.mark.parametrize(
    ("number", "codec"), [(1, "zip"), (2, "zlib"), (3, "snappy-framed")], ids=["zip", "zlib", "snappy"]
)
@pytest.mark.parametrize("batch", [0, 1], ids=["single", "batch"])
def test_bodies_are_decompressed_and_compressed_again(number: int, codec: str, batch: int) -> None:
    content: Any = {"messages": MESSAGES} if batch else b"a body that is longer than nothing" * 9
    data = wirekit.encode(KEY, message({"content": content}, compressed=1, compression=number, batch=batch))
    decoded = wirekit.decode(data, KEY)
    assert decoded.clean
    body = decoded.value.body
    if batch:
        assert [item.body for item in body.content.messages] == [b"one", b"two" * 99]
    else:
        assert body.content == content
    assert decoded.value.body_crc == zlib.crc32(body.compressed)
    assert wirekit.encode(KEY, decoded.value) == data
    plain = wirekit.encode("joyqueue.batch", body.content) if batch else content
    assert decompress(codec, body.compressed) == plain

    if batch:
        body.content.messages[0].body = b"changed"
    else:
        body.content = b"changed"
    changed = wirekit.decode(wirekit.encode(KEY, decoded.value), KEY)
    assert changed.clean
    assert b"changed" in (changed.value.body.content.messages[0].body if batch else changed.value.body.content)


def test_a_batch_that_is_not_compressed_is_split() -> None:
    data = wirekit.encode(KEY, message({"content": {"messages": MESSAGES}}, batch=1))
    decoded = wirekit.decode(data, KEY)
    assert decoded.clean
    assert len(decoded.value.body.content.messages) == 2
    assert decoded.value.body_crc == zlib.crc32(decoded.value.body.compressed)


@pytest.mark.parametrize(
    ("code", "is_split"),
    [
        ({"batch": 1, "reserved": 1}, False),
        ({"batch": 1, "source": 1}, False),
        ({"batch": 1}, True),
    ],
    ids=["reserved bits", "of Kafka", "of JoyQueue"],
)
def test_only_batches_of_joyqueue_are_split(code: dict[str, int], is_split: bool) -> None:
    body = wirekit.encode("joyqueue.batch", {"messages": MESSAGES})
    data = wirekit.encode("joyqueue.message", message(body, **code))
    decoded = wirekit.decode(data, KEY)
    assert decoded.clean
    assert isinstance(decoded.value.body.content, bytes) is not is_split


def test_messages_of_version_0_have_two_bits_of_compression() -> None:
    body = zlib.compress(b"text" * 9)
    data = wirekit.encode("joyqueue.message", message(body, compressed=1, compression=4 + ZLIB, message_version=0))
    assert wirekit.decode(data, KEY).value.body.content == b"text" * 9
    data = wirekit.encode("joyqueue.message", message(body, compressed=1, compression=4 + ZLIB))
    assert wirekit.decode(data, KEY).value.body == body


def test_a_body_that_does_not_decompress_stays_as_it_is() -> None:
    data = wirekit.encode("joyqueue.message", message(b"no zlib", compressed=1, compression=ZLIB))
    decoded = same(KEY, data, {})
    assert decoded.error is None
    assert decoded.value.body == b"no zlib"
    assert [check.kind for check in decoded.checks if check.status == "bad"] == ["decompression"]
    assert wirekit.encode(KEY, decoded.value) == data


def test_the_documented_dialect_has_its_own_numbers_and_batches() -> None:
    key = "jmq4.message_opened"
    value = message({"content": {"messages": MESSAGES}}, compressed=1, compression=0, batch=1)
    del value["magic"]
    documented = [{**item, "business_id": (item["business_id"] or "").encode() or None} for item in MESSAGES]
    value["body"] = {"content": {"messages": documented}}
    decoded = wirekit.decode(wirekit.encode(key, value), key)
    assert decoded.clean
    assert decoded.value.body.compressed.startswith(b"\xff\x06\x00\x00sNaPpY")
    assert len(decoded.value.body.content.messages) == 2


@pytest.mark.parametrize(
    ("code", "is_read"),
    [({}, True), ({"address_type": 0}, False), ({"address_type": 0, "message_version": 0}, True)],
    ids=["IPv4", "anything else", "version 0"],
)
def test_the_address_of_the_client(code: dict[str, int], is_read: bool) -> None:
    raw = (50088).to_bytes(2, "little") + bytes([10, 0, 0, 7]) + bytes(10)
    data = wirekit.encode("joyqueue.message", {**message(b"body", **code), "client_ip": raw})
    address = wirekit.decode(data, KEY).value.client_ip
    assert (address == raw) is not is_read
    if is_read:
        assert (address.port, address.address) == (50088, bytes([10, 0, 0, 7]))
    assert wirekit.encode(KEY, wirekit.decode(data, KEY).value) == data


@pytest.mark.parametrize("protocol", ["joyqueue", "jmq4"])
def test_layouts_and_messages_split_the_same_batches(protocol: str) -> None:
    """Whatever system_code says, a body is opened by the layout if and only if the dialogue opens it."""
    bits = {"compressed": (0, 1), "compression": range(8), "batch": (0, 1), "source": (1, 3)}
    bits |= {"message_version": (0, 1), "reserved": (0, 1)}
    body = wirekit.encode("joyqueue.batch", {"messages": MESSAGES})
    if protocol == "jmq4":
        body = wirekit.encode(
            "jmq4.batch", {"messages": [{**each, "business_id": each["business_id"] and b"a"} for each in MESSAGES]}
        )
    for number, values in enumerate(itertools.product(*bits.values())):
        code = dict(zip(bits, values, strict=True))
        value = message(body, **code)
        if protocol == "jmq4":
            del value["magic"]
        topic = {"topic": "t", "tx_id": None, "timeout": 1, "qos_level": 1, "messages": [value]}
        frame = {"version": 2, "request_id": number, "type": 50, "send_time": 0}
        data = wirekit.encode(f"{protocol}.frame", {**frame, "payload": {"topics": [topic], "app": "a"}})
        opened_body = wirekit.decode(data, f"{protocol}.frame_opened").value.payload.topics[0].messages[0].body
        conversation = wirekit.Conversation(protocol)
        messages = [each.value for event in conversation.receive("client", data) for each in event.messages]
        inside = opened_body if isinstance(opened_body, bytes) else opened_body.content
        expected = [inside] if isinstance(inside, bytes) else [each.body for each in inside.messages]
        assert messages == expected, code


def test_a_batch_compressed_by_nothing_is_split() -> None:
    body = wirekit.encode("joyqueue.batch", {"messages": MESSAGES})
    data = wirekit.encode("joyqueue.message", message(body, compressed=1, batch=1))
    opened_body = wirekit.decode(data, KEY).value.body
    assert [each.body for each in opened_body.content.messages] == [each["body"] for each in MESSAGES]
