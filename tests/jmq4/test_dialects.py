"""Where the document and the implementation differ on the wire, each has its own layout."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.jmq4.vectors import FRAMES, JUDGED, RELEASE_FRAMES
from wirekit.conversation import recognise
from wirekit.schemas.jmq4 import JMQ4, JOYQUEUE, codes
from wirekit.schemas.jmq4.differences import DIFFERENCES
from wirekit.schemas.jmq4.message import as_integer

LITERAL = [vector for vector in JUDGED if vector["name"].startswith("doc_literal_")]

# Commands and answers whose bytes the document contradicts. The rest differs in nothing but the header version.
CONTRADICTED = (
    "add_connection_",
    "fetch_cluster_response_v2",
    "fetch_cluster_response_v3",
    "fetch_cluster_response_consumer_only_v2",
    "fetch_partition_message_response",
    "commit_ack_response_two_partitions_QUIRK",
    "fetch_index_response_v4",
    "produce_message_client",
    "produce_message_plain",
    "produce_message_null",
    "produce_message_empty",
    "produce_message_attributes",
    "produce_message_zip",
    "produce_message_snappy",
    "produce_message_batch",
    "produce_message_source",
    "produce_message_explicit",
    "produce_message_businessId",
    "produce_message_setText",
    "produce_message_prepare_request",
    "fetch_produce_feedback_request",
)


def of(vectors: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", vectors, ids=[vector["name"] for vector in vectors])


@of(LITERAL)
def test_the_document_read_literally(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    decoded = wirekit.decode(data, "jmq4.frame")
    assert decoded.clean
    assert decoded.consumed == len(data)
    assert wirekit.encode("jmq4.frame", decoded.value) == data
    assert wirekit.encode("jmq4.frame", wirekit.to_json(decoded.value)) == data
    assert not wirekit.decode(data, "joyqueue.frame").clean


@of(FRAMES)
def test_frames_that_contradict_the_document_do_not_decode_by_it(vector: dict[str, Any]) -> None:
    decoded = wirekit.decode(bytes.fromhex(vector["hex"]), "jmq4.frame")
    failed = {check.path for check in decoded.checks if check.status == "bad"}
    fits = decoded.error is None and not decoded.gaps and failed <= {"version"}
    assert fits != vector["name"].startswith(CONTRADICTED)
    assert ("version" in failed) == (vector["header"]["version"] != 2)
    if fits:
        assert wirekit.encode("jmq4.frame", decoded.value).hex() == vector["hex"]


def test_omitted_fields_of_a_frame_and_a_message_get_defaults() -> None:
    record = {"partition": -32768, "send_time": 1, "body": b"hello"}
    topic = {"topic": "t", "timeout": 3000, "qos_level": "RECEIVE", "messages": [record]}
    value = {"version": 4, "request_id": 1, "type": "PRODUCE_MESSAGE", "send_time": 1, "payload": {"topics": [topic]}}
    decoded = wirekit.decode(wirekit.encode("joyqueue.frame", value), "joyqueue.frame")
    assert decoded.clean
    assert decoded.value.identity.direction.symbol == "REQUEST"
    assert decoded.value.identity.qos_level.symbol == "RECEIVE"
    message = decoded.value.payload.topics[0].messages[0]
    assert as_integer(message.system_code) == 0x018C
    assert (message.index, message.term, message.store_time, message.flag) == (0, 0, 0, 0)
    assert (message.business_id, message.attributes, message.extension, message.app) == (None, None, None, None)


@pytest.mark.parametrize("identity", [3, {"direction": 1, "qos_level": 1}, {"direction": "RESPONSE", "qos_level": 1}])
def test_identity_in_each_form(identity: Any) -> None:
    value = {"version": 4, "request_id": 1, "type": "BOOLEAN_ACK", "send_time": 1, "status": 0, "payload": {}}
    data = wirekit.encode("joyqueue.frame", {**value, "identity": identity})
    assert len(data) == 26
    assert data[9] == 3


def test_a_literal_message() -> None:
    (vector,) = (vector for vector in LITERAL if vector["name"] == "doc_literal_produce_message")
    message = wirekit.decode(bytes.fromhex(vector["hex"]), "jmq4.frame").value.payload.topics[0].messages[0]
    assert "magic" not in message
    assert "client_ip" not in message
    assert (message.business_id, message.app, message.body) == ("biz-1", "demo", b"hello")
    assert message.system_code.address_type.symbol == "IPV4"


@pytest.mark.parametrize(("dialect", "compression"), [("joyqueue", 3), ("jmq4", 0)])
def test_system_code_bits(dialect: str, compression: int) -> None:
    names = {"compressed": True, "ordered": True, "source": "MQTT", "compression": "SNAPPY", "address_type": "IPV4"}
    value = {"partition": 0, "system_code": {**names, "message_version": 1, "batch": True}, "send_time": 0, "body": b""}
    data = wirekit.encode(f"{dialect}.message", value)
    start = 20 if dialect == "joyqueue" else 18
    ipv4 = 1 if dialect == "joyqueue" else 0
    expected = 1 | 1 << 1 | 2 << 2 | compression << 4 | ipv4 << 7 | 1 << 8 | 1 << 12
    assert data[start : start + 2].hex() == f"{expected:04x}"


def test_a_source_that_two_bits_can_not_carry_is_refused() -> None:
    value = {"partition": 0, "system_code": {"source": 4}, "send_time": 0, "body": b""}
    with pytest.raises(wirekit.Wrong, match=r"system_code\.source: expected an integer in 0\.\.3"):
        wirekit.encode("joyqueue.message", value)


def test_a_literal_batch() -> None:
    """INT length with itself, SHORT count; businessId is BYTES there (document, BATCH_MESSAGE)."""
    data = bytes.fromhex("0000001f 0001 00000019 05 0007 00000003 6f6e65 00000002 6231 0003 6b3d76")
    decoded = wirekit.decode(data, "jmq4.batch")
    assert decoded.clean
    (message,) = decoded.value.messages
    assert (message.priority, message.flag, message.body) == (5, 7, b"one")
    assert (message.business_id, message.attributes) == (b"b1", "k=v")
    assert wirekit.encode("jmq4.batch", decoded.value) == data


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 127])
def test_the_header_version_chooses_the_layout(version: int) -> None:
    data = wirekit.encode("joyqueue.frame", cluster(version))
    topic, broker = (wirekit.decode(data, "joyqueue.frame").value.payload[name][0] for name in ("topics", "brokers"))
    assert ("permission" in broker) == (version >= 2)
    assert ("params" in topic) == (version >= 4)


@pytest.mark.parametrize("layout", [1, 2, 4])
def test_the_context_overrules_the_header(layout: int) -> None:
    context = {"layout_version": layout}
    data = wirekit.encode("joyqueue.frame", cluster(layout, header=3), context=context)
    decoded = wirekit.decode(data, "joyqueue.frame", context=context)
    assert decoded.clean
    assert decoded.value.version == 3
    assert wirekit.decode(data, "joyqueue.frame").clean == (layout in (2, 3))
    payload = wirekit.encode("joyqueue.fetch_cluster.response", decoded.value.payload, context=context)
    assert data.endswith(payload)
    assert wirekit.decode(payload, "joyqueue.fetch_cluster.response", context=context).value == decoded.value.payload


def cluster(version: int, header: int | None = None) -> dict[str, Any]:
    """A FETCH_CLUSTER answer with the fields of a version."""
    topic: dict[str, Any] = {
        "topic_code": "t",
        "is_exist_producer_policy": False,
        "is_exist_consumer_policy": False,
        "type": "TOPIC",
        "partition_groups": [],
        "code": "SUCCESS",
    }
    broker: dict[str, Any] = {"id": 1, "host": "h", "port": 50088, "nearby": True, "weight": 0}
    if version >= 2:
        broker |= {"sys_code": 0, "permission": {"readable": True}}
    if version >= 4:
        topic["params"] = [{"key": "k", "value": "v"}]
    return {
        "version": version if header is None else header,
        "identity": {"direction": "RESPONSE", "qos_level": "RECEIVE"},
        "request_id": 1,
        "type": "FETCH_CLUSTER_ACK",
        "send_time": 0,
        "status": "SUCCESS",
        "payload": {"topics": [topic], "brokers": [broker]},
    }


def test_old_languages_by_context() -> None:
    (vector,) = (vector for vector in FRAMES if vector["name"] == "add_connection_request_language_CPP")
    data = bytes.fromhex(vector["hex"])
    assert wirekit.decode(data, "joyqueue.frame").value.payload.language.symbol == "CPP"
    old = wirekit.decode(data, "joyqueue.frame", context={"old_languages": True})
    assert old.value.payload.language.symbol == "PYTHON"


def test_release_4_2_7_needs_the_version_of_the_request() -> None:
    (vector,) = (vector for vector in RELEASE_FRAMES if vector["name"].endswith("response_layout_v1"))
    data = bytes.fromhex(vector["hex"])
    assert not wirekit.decode(data, "joyqueue.frame").clean
    assert wirekit.decode(data, "joyqueue.frame", context={"layout_version": 1}).clean


def test_subscribe_answers() -> None:
    """No vector: the layout was read in JoyQueue's SubscribeAckCodec and Serializer.readTopicConfig."""
    group = {
        "topic": "t",
        "leader": 1,
        "isrs": [1],
        "learners": [],
        "term": 2,
        "group": 0,
        "partitions": [0, 1],
        "replicas": [1],
        "elect_type": "RAFT",
        "brokers": [{"id": 1, "ip": "h", "port": 50088, "data_center": None, "retry_type": "DB"}],
        "rec_leader": 1,
    }
    config = {"name": "t", "partitions": 2, "type": "TOPIC", "priority_partitions": [], "partition_groups": [group]}
    key = "joyqueue.subscribe.response"
    data = wirekit.encode(key, {"topic_configs": [config]})
    assert wirekit.decode(data, key).clean
    del group["rec_leader"]
    assert len(wirekit.encode(key, {"topic_configs": [config]}, context={"layout_version": 2})) == len(data) - 4


def test_the_tables_are_whole() -> None:
    documented = [symbol for symbol in codes.ERROR_CODES if symbol.description.endswith(")")]
    assert (len(codes.ERROR_CODES), len(documented)) == (97, 53)
    assert len(codes.COMMANDS) == 40 + 7


@pytest.mark.parametrize("protocol", [JOYQUEUE, JMQ4], ids=["joyqueue", "jmq4"])
def test_every_command_has_a_key(protocol: wirekit.Protocol) -> None:
    for symbol in codes.COMMANDS:
        if symbol in (-128, 34, -34):
            continue
        direction = "request" if symbol > 0 else "response"
        assert f"{codes.COMMANDS(abs(symbol)).symbol}.{direction}".lower() in protocol.layouts


@pytest.mark.parametrize("protocol", [JOYQUEUE, JMQ4], ids=["joyqueue", "jmq4"])
def test_a_frame_shows_every_disagreement_and_a_payload_its_own(protocol: wirekit.Protocol) -> None:
    shown = {name: [note.text for note in layout.notes] for name, layout in protocol.layouts.items()}
    of_frames = [difference for difference in DIFFERENCES if difference.part != "batch"]
    assert len(shown["frame"]) == len(of_frames)
    assert len(shown["frame_opened"]) == len(DIFFERENCES)
    for difference in DIFFERENCES:
        assert difference.source
        assert any(difference.text in text for text in shown["frame_opened"])
        assert difference.part in shown
        assert difference.text in shown[difference.part]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("joyqueue.frame", {"version": 4, "type": 7}, "jmq4 does not fit (version: constant 4 instead of 2)"),
        ("joyqueue.frame", {"version": 2, "type": 7}, "jmq4 fits the first frame equally well"),
        (
            "jmq4.frame",
            {"version": 2, "type": 51, "payload": {"topic": "t", "app": "a", "sequence": 1, "transaction_id": "x"}},
            "joyqueue does not fit (payload.timeout: needs 4 bytes, 0 available)",
        ),
    ],
    ids=["version 4", "version 2", "prepare as documented"],
)
def test_the_guess_says_why_not_the_other_dialect(key: str, value: dict[str, Any], reason: str) -> None:
    data = wirekit.encode(key, {"request_id": 1, "send_time": 0, "payload": {}, **value})
    recognised = recognise(data, b"")
    assert recognised.protocol == key.split(".", maxsplit=1)[0]
    assert recognised.reason == f"1 frame decodes cleanly as {recognised.protocol}; {reason}"


RENAMED = {-5: "REMOVE_PRODUCER_ACK", -21: "FETCH_ASSIGNED_PARTITION"}
"""Names in the document's table of commands that are not ours."""


@pytest.mark.parametrize("key", ["joyqueue.frame", "jmq4.frame"])
def test_commands_with_another_name_or_without_a_layout_are_noted(key: str) -> None:
    notes = " ".join(note.text for note in wirekit.registry[key].notes)
    for code, name in RENAMED.items():
        assert codes.COMMANDS(code).symbol != name
        assert f"{code} {name}" in notes
    payloads = dict(wirekit.registry[key].node.members)["payload"]
    without = [int(code) for code in codes.COMMANDS if int(code) not in payloads.cases]
    assert without == [34, -34]
    assert all(str(code) in notes for code in without)


@pytest.mark.parametrize("key", ["joyqueue.add_connection.request", "jmq4.add_connection.request"])
def test_any_string_may_be_null_whatever_the_document_says(key: str) -> None:
    texts = ("username", "password", "app", "token", "region", "namespace", "version", "ip")
    value = {**dict.fromkeys(texts, "x"), "time": 1, "sequence": 1}
    value |= {"language": "JAVA"} if key.startswith("joyqueue") else {}
    for name in texts:
        assert wirekit.decode(wirekit.encode(key, {**value, name: None}, strict=True), key).value[name] is None
    assert any("nullable" in note.text for note in wirekit.registry[key].notes)
