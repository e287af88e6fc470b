"""Random frames that JoyQueue wrote, damaged ones and odd bodies, and what JoyQueue reads from them."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.engines import same
from tests.jmq4.vectors import differences, load
from wirekit.protocols.jmq4.attributes import parse_attributes, properties_of

FRAMES = load("random.jsonl")
READ = [vector for vector in FRAMES if "payload" in vector["java"]]
THROWN = [vector for vector in FRAMES if "exception" in vector["java"]]
CONSUMED = load("consumed.jsonl")
NOT_VERIFIED = ("snappy with a wrong checksum", "zlib and zeros", "zip and zeros", "no zip")
"""Compressed bodies whose damage JoyQueue does not notice; wirekit gives them as they are, with a bad check."""
DELIVERED, REFUSED, IGNORED = [], [], []
"""Records by what JoyQueue's consumers do: deliver messages, fail, or deliver none of a batch whose flag is 0."""
for each in CONSUMED:
    java = each["java"].get("messages")
    (REFUSED if java is None else DELIVERED if java or each["name"] == "empty batch, flag 0" else IGNORED).append(each)


def as_java(message: Any) -> dict[str, Any]:
    """A message in the form in which JoyQueue's reader holds it."""
    code = message.system_code
    old = code.message_version == 0
    return {
        **{name: message[name] for name in ("partition", "index", "term", "priority", "store_time", "flag", "app")},
        **{name: bool(code[name]) for name in ("compressed", "ordered")},
        "source": int(code.source),
        "batch": bool(code.batch and not code.reserved),
        "compression": int(code.compression) & 3 if old else int(code.compression),
        "client_ip": message.client_ip[: 6 if code.address_type == 1 or old else 16].hex(),
        "send_time": message.send_time,
        "body": (message.body or b"").hex(),
        "business_id": message.business_id,
        "extension": (message.extension or b"").hex(),
        "properties": parse_attributes(message.attributes) if message.attributes else None,
    }


def expected(java: Any, actual: Any) -> Any:
    """What JoyQueue read, with each message replaced by ours if they are equal."""
    if isinstance(java, list):
        assert len(java) == len(actual)
        return [expected(*pair) for pair in zip(java, actual, strict=True)]
    if not isinstance(java, dict):
        return java
    if "client_ip" in java:
        assert java == as_java(actual)
        return {}
    return {name: expected(item, actual[name]) for name, item in java.items()}


@pytest.mark.parametrize("vector", READ, ids=[vector["name"] for vector in READ])
def test_frames_that_joyqueue_reads(vector: dict[str, Any]) -> None:
    data, java = bytes.fromhex(vector["hex"]), vector["java"]
    decoded = same("joyqueue.frame", data, {})
    assert decoded.clean
    value = decoded.value
    header = dict(java["header"])
    assert (value.identity.qos_level, value.identity.direction) == (header.pop("qos"), header.pop("direction"))
    assert {name: value[name] or None for name in header} == {name: item or None for name, item in header.items()}
    assert differences(expected(java["payload"], value.payload), value.payload) == []
    assert wirekit.encode("joyqueue.frame", value) == data
    assert wirekit.encode("joyqueue.frame", wirekit.to_json(value)) == data


@pytest.mark.parametrize("vector", THROWN, ids=[vector["name"] for vector in THROWN])
def test_frames_that_joyqueue_refuses(vector: dict[str, Any]) -> None:
    decoded = same("joyqueue.frame", bytes.fromhex(vector["hex"]), {})
    assert decoded.error is not None or "acceptance" in {c.kind for c in decoded.checks if c.status == "bad"}


def consumed(record: bytes) -> list[dict[str, Any]]:
    """The messages that the dialogue finds in a record."""
    message = wirekit.decode(record, "joyqueue.message").value
    frame = {"version": 4, "identity": {"direction": 1}, "request_id": 1, "type": -30, "send_time": 0, "status": 0}
    payload = {"data": [{"topic": "t", "messages": [message], "code": 0}]}
    data = wirekit.encode("joyqueue.frame", {**frame, "error": None, "payload": payload})
    (event,) = wirekit.Conversation("joyqueue").receive("server", data)
    return [
        {
            "index": each.offset,
            "body": each.value.hex(),
            "business_id": each.key and each.key.decode(),
            "properties": {one["name"]: one["value"] for one in each.facts["properties"]} or None,
        }
        for each in event.messages
    ]


@pytest.mark.parametrize("vector", DELIVERED, ids=[vector["name"] for vector in DELIVERED])
def test_messages_that_joyqueue_delivers(vector: dict[str, Any]) -> None:
    data, java = bytes.fromhex(vector["hex"]), vector["java"]["messages"]
    decoded = same("joyqueue.message_opened", data, {})
    assert wirekit.encode("joyqueue.message_opened", decoded.value) == data
    if vector["name"] in NOT_VERIFIED:
        assert not decoded.clean
        assert [each["body"] for each in consumed(data)] == [decoded.value.body.hex()]
    else:
        names = ("index", "body", "business_id", "properties")
        assert consumed(data) == [{name: each[name] for name in names} for each in java]


@pytest.mark.parametrize("vector", [*REFUSED, *IGNORED], ids=[vector["name"] for vector in [*REFUSED, *IGNORED]])
def test_messages_that_joyqueue_does_not_deliver(vector: dict[str, Any]) -> None:
    decoded = same("joyqueue.message_opened", bytes.fromhex(vector["hex"]), {})
    if "attributes" in vector["name"]:
        content = decoded.value.body
        records = [decoded.value] if isinstance(content, bytes) else content.content.messages
        assert {properties_of(record.attributes) is None for record in records} == {True}
    else:
        assert [check for check in decoded.checks if check.status == "bad"]
