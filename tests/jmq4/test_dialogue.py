"""Connections: which answer belongs to which request, and the application messages."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

import wirekit
from tests.jmq4.vectors import FRAMES, PARTS, RELEASE_FRAMES
from wirekit.compression import compress
from wirekit.conversation import Frame, Message, recognise


def golden(name: str) -> bytes:
    (vector,) = (vector for vector in [*FRAMES, *RELEASE_FRAMES] if vector["name"] == name)
    return bytes.fromhex(vector["hex"])


def hear(conversation: wirekit.Conversation, side: str, data: bytes, time_us: int | None = None) -> Frame:
    (event,) = conversation.receive(side, data, time_us=time_us)
    assert isinstance(event, Frame)
    return event


def messages(data: bytes, side: str = "client", protocol: str = "joyqueue") -> list[Message]:
    return hear(wirekit.Conversation(protocol), side, data).messages


def test_requests_and_answers_are_paired_by_request_id() -> None:
    conversation = wirekit.Conversation("joyqueue")
    request = hear(conversation, "client", golden("add_consumer_request"), 1_000)
    answer = hear(conversation, "server", golden("add_consumer_response"), 3_500)
    description = request.description
    assert (description.api, description.version, description.correlation_id, description.role) == (
        "ADD_CONSUMER",
        4,
        501,
        "request",
    )
    description = answer.description
    assert (description.api, description.version, description.correlation_id, description.role) == (
        "ADD_CONSUMER_ACK",
        4,
        501,
        "response",
    )
    assert answer.request is request
    assert answer.latency_us == 2_500
    assert conversation.requests == []


def test_the_summary_says_which_topics_an_app_used_by_which_command() -> None:
    conversation = wirekit.Conversation("joyqueue")
    hear(conversation, "client", golden("add_consumer_request"))
    hear(conversation, "client", golden("heartbeat_request_v1"))
    used = {"app": "demo", "command": "ADD_CONSUMER", "topics": ["topic1", "topic2"]}
    assert conversation.dialogue.summary() == {"apps": [used]}


def test_a_boolean_ack_answers_any_command() -> None:
    conversation = wirekit.Conversation("joyqueue")
    request = hear(conversation, "client", golden("heartbeat_request_v1"))
    answer = hear(conversation, "server", golden("boolean_ack_success"))
    assert answer.description.api == "BOOLEAN_ACK"
    assert answer.request is request


def test_a_one_way_request_waits_for_nothing() -> None:
    conversation = wirekit.Conversation("joyqueue")
    request = hear(conversation, "client", golden("heartbeat_request_qos_ALL"))
    assert request.value.identity.qos_level.symbol == "ONE_WAY"
    assert conversation.requests == []


@pytest.mark.parametrize("layout", [1, 2, 3])
def test_the_request_says_which_layout_the_answer_has(layout: int) -> None:
    """Releases 4.1.0 to 4.2.7 write their own version into the header of every answer."""
    answer = golden(f"v4.2.7_fetch_cluster_response_layout_v{layout}")
    request = wirekit.decode(golden("fetch_cluster_request"), "joyqueue.frame").value
    request.version = layout
    request.request_id = wirekit.decode(answer, "joyqueue.header").value.request_id
    conversation = wirekit.Conversation("joyqueue")
    hear(conversation, "client", wirekit.encode("joyqueue.frame", request))
    heard = hear(conversation, "server", answer)
    assert heard.decoded.clean
    assert heard.description.version == 3
    assert ("permission" in heard.value.payload.brokers[0]) == (layout >= 2)


def test_frames_byte_by_byte() -> None:
    conversation = wirekit.Conversation("joyqueue")
    data = golden("produce_message_plain") + golden("heartbeat_request_v4")
    events = [event for byte in data for event in conversation.receive("client", bytes([byte]))]
    frames = [event for event in events if isinstance(event, Frame)]
    assert [frame.description.api for frame in frames] == ["PRODUCE_MESSAGE", "HEARTBEAT"]
    assert b"".join(frame.data for frame in frames) == data


def test_a_produced_message() -> None:
    (message,) = messages(golden("produce_message_plain"))
    assert message.to_json() == {
        "protocol": "joyqueue",
        "topic": "topic1",
        "partition": 0,
        "offset": None,
        "timestamp": 1564390929123,
        "timestamp_type": "CreateTime",
        "key": b"biz-1".hex(),
        "value": b"hello".hex(),
        "attributes": 0x018C,
        "codec": "none",
        "crc": zlib.crc32(b"hello"),
        "check": "ok",
        "schema": "joyqueue.frame",
    }


def test_a_fetched_message_has_its_index() -> None:
    (message,) = messages(golden("fetch_partition_message_response"), "server")
    assert (message.topic, message.partition, message.offset, message.value) == ("topic1", 0, 7, b"hello")


def test_messages_of_a_topic_answer() -> None:
    records = [wirekit.decode(bytes.fromhex(part["hex"]), "joyqueue.message").value for part in PARTS[:2]]
    answer = {
        "version": 4,
        "identity": {"direction": "RESPONSE", "qos_level": "RECEIVE"},
        "request_id": 1,
        "type": "FETCH_TOPIC_MESSAGE_ACK",
        "send_time": 0,
        "status": "SUCCESS",
        "payload": {
            "data": [{"topic": "t", "messages": [], "code": 0}, {"topic": "u", "messages": records, "code": 0}]
        },
    }
    heard = messages(wirekit.encode("joyqueue.frame", answer), "server")
    assert [(message.topic, message.value, message.check) for message in heard] == [
        ("u", b"hello", "ok"),
        ("u", b"one", "ok"),
        ("u", "第二".encode(), "ok"),
    ]


def test_a_produced_message_has_no_partition_if_the_broker_chooses_it() -> None:
    request = wirekit.decode(golden("produce_message_plain"), "joyqueue.frame").value
    for number, expected in ((-32768, None), (-1, None), (0, 0), (32767, 32767)):
        request.payload.topics[0].messages[0].partition = number
        (message,) = messages(wirekit.encode("joyqueue.frame", request))
        assert (message.partition, message.offset) == (expected, None)


@pytest.mark.parametrize(("name", "codec"), [("produce_message_batch", "none"), ("produce_message_batch_zlib", "zlib")])
def test_batches_are_split(name: str, codec: str) -> None:
    heard = messages(golden(name))
    assert [(message.facts["batch_index"], message.key, message.value) for message in heard] == [
        (0, b"b1", b"one"),
        (1, None, "第二".encode()),
    ]
    assert {(message.codec, message.check, message.partition) for message in heard} == {(codec, "ok", 0)}


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("produce_message_zip", "zip"),
        ("produce_message_snappy", "snappy"),
        ("produce_message_snappy_incompressible", "snappy"),
    ],
)
def test_compressed_bodies_are_opened(name: str, codec: str) -> None:
    (message,) = messages(golden(name))
    assert message.codec == codec
    assert message.check == "ok"
    if "incompressible" not in name:
        assert message.value is not None
        assert message.value.startswith(b"the quick brown fox jumps over the lazy dog. ")


def test_messages_of_the_client_converter() -> None:
    expected = [b"hello", b"the quick brown fox jumps over the lazy dog. " * 8, "第三条".encode()]
    for name in ("batch", "nobatch"):
        heard = messages(golden(f"produce_message_client_converter_{name}_snappy"))
        assert [message.value for message in heard] == expected
        assert [message.key for message in heard] == [b"biz", None, None]


def test_a_body_without_checksum_is_given_with_a_bad_check() -> None:
    (message,) = messages(golden("produce_message_setText_zip_crc0"))
    assert (message.crc, message.check, message.codec) == (0, "bad", "zip")


def changed(data: bytes, system_code: dict[str, Any], body: bytes | None = None) -> bytes:
    """A frame with another systemCode, and another body, in its first message."""
    value = wirekit.decode(data, "joyqueue.frame").value
    message = value.payload.topics[0].messages[0]
    for name, bits in system_code.items():
        message.system_code[name] = bits
    if body is not None:
        message.body = body
    return wirekit.encode("joyqueue.frame", value)


@pytest.mark.parametrize(
    ("system_code", "codec"),
    [({"compressed": True, "compression": 2}, "zlib"), ({"compressed": True, "compression": 5}, "5")],
)
def test_a_body_that_does_not_open_is_given_as_it_is(system_code: dict[str, Any], codec: str) -> None:
    (message,) = messages(changed(golden("produce_message_plain"), system_code))
    assert (message.codec, message.value) == (codec, b"hello")


def test_the_compression_of_version_0_has_two_bits() -> None:
    body = compress("zlib", b"old")
    code = {"compressed": True, "compression": 2 | 4, "message_version": 0}
    (message,) = messages(changed(golden("produce_message_plain"), code, body))
    assert (message.codec, message.value) == ("zlib", b"old")


def test_the_bodies_of_a_frame_are_bounded_together() -> None:
    body = compress("zlib", bytes(900))
    frame = changed(golden("produce_message_plain"), {"compressed": True, "compression": 2}, body)
    value = wirekit.decode(frame, "joyqueue.frame").value
    value.payload.topics[0].messages *= 5
    conversation = wirekit.Conversation("joyqueue", limits=wirekit.Limits(decompressed=2_000, total_ratio=1))
    heard = hear(conversation, "client", wirekit.encode("joyqueue.frame", value)).messages
    assert [message.value for message in heard] == [bytes(900)] * 2 + [body] * 3


@pytest.mark.parametrize("code", [{"source": 1}, {"reserved": 1}])
def test_a_message_that_joyqueue_does_not_read_as_a_batch_is_not_split(code: dict[str, Any]) -> None:
    (message,) = messages(changed(golden("produce_message_batch"), code))
    assert message.value == bytes.fromhex(PARTS[1]["fields"]["body_hex"])


def test_damaged_batches_are_given_whole() -> None:
    body = bytes.fromhex("00000013 00 0000 000000ff")
    (message,) = messages(changed(golden("produce_message_batch"), {}, body))
    assert message.value == body


def test_an_empty_body_is_empty_and_not_null() -> None:
    (message,) = messages(golden("produce_message_empty_body"))
    assert message.value == b""


def test_messages_of_the_documented_dialect() -> None:
    batch = wirekit.encode("jmq4.batch", {"messages": [{"body": b"one", "business_id": b"k"}, {"body": b"two"}]})
    record = {
        "partition": 3,
        "index": 5,
        "system_code": {"compressed": True, "compression": "SNAPPY", "batch": True, "message_version": 1},
        "send_time": 9,
        "flag": 2,
        "body": compress("snappy-framed", batch),
    }
    request = {
        "identity": {"qos_level": "RECEIVE"},
        "request_id": 1,
        "type": "PRODUCE_MESSAGE",
        "send_time": 9,
        "payload": {"topics": [{"topic": "t", "timeout": 1, "qos_level": 1, "messages": [record]}]},
    }
    heard = messages(wirekit.encode("jmq4.frame", request), protocol="jmq4")
    assert [(message.offset, message.key, message.value, message.codec) for message in heard] == [
        (None, b"k", b"one", "snappy"),
        (None, None, b"two", "snappy"),
    ]


def test_a_connection_is_recognised_as_the_spoken_dialect() -> None:
    client = golden("heartbeat_request_v4") + golden("produce_message_plain")
    assert recognise(client, b"", names=("joyqueue", "jmq4")).protocol == "joyqueue"
    assert recognise(golden("heartbeat_request_v4"), b"", names=("joyqueue", "jmq4")).protocol == "joyqueue"


def test_lost_bytes_are_quarantined_and_framing_goes_on() -> None:
    conversation = wirekit.Conversation("joyqueue")
    first, second = golden("produce_message_batch"), golden("heartbeat_request_v4")
    conversation.receive("client", first[:50])
    conversation.gap("client", 10)
    events = conversation.receive("client", first[60:] + second)
    assert [type(event).__name__ for event in events] == ["Quarantined", "Frame"]
    assert events[1].data == second
