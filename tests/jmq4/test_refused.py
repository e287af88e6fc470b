"""What JoyQueue's readers throw on: wirekit reads it with a bad check, and does not build it when it is strict."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.engines import same
from tests.jmq4.test_opened_bodies import MESSAGES, message
from wirekit.schemas.jmq4.codes import ERROR_CODES

PARTITIONS: dict[str, Any] = {
    "fetch_partition_message.request": {"partition": 1, "count": 1, "index": 0},
    "fetch_partition_message.response": {"partition": 1, "messages": [], "code": 0},
    "commit_ack.request": {"partition": 1, "data": []},
    "commit_ack.response": {"partition": 1, "code": 0},
    "commit_ack_index.request": {"partition": 1, "index": 0},
    "commit_ack_index.response": {"partition": 1, "code": 0},
    "fetch_index.response": {"partition": 1, "index": 0, "code": 0, "left_index": 0, "right_index": 0},
}
"""A partition of each payload that JoyQueue puts into a table by topic and partition."""


def judged(key: str, value: Any) -> list[str]:
    """The paths of what is refused; strict building refuses the value if there is any, and else builds it."""
    data = wirekit.encode(key, value)
    decoded = same(key, data, {})
    assert wirekit.encode(key, decoded.value) == data
    bad = [check for check in decoded.checks if check.status == "bad"]
    if bad:
        with pytest.raises(wirekit.Wrong) as caught:
            wirekit.encode(key, value, strict=True)
        assert caught.value.path == bad[0].path
    else:
        assert wirekit.encode(key, value, strict=True) == data
    assert all(check.kind != "acceptance" or "JoyQueue throws" in check.note for check in bad)
    return [check.path for check in bad]


@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("topic", ["t", "", None])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_an_empty_topic_with_partitions(name: str, topic: str | None, count: int) -> None:
    """HashBasedTable takes no null, and is asked for each partition."""
    outer = "topics" if name.endswith("request") or name.startswith("fetch_index") else "data"
    inner = "partition_data" if name.startswith("commit") and outer == "data" else "partitions"
    value: dict[str, Any] = {outer: [{"topic": topic, inner: [PARTITIONS[name]] * count}]}
    if name.endswith("request"):
        value["app"] = "a"
    assert judged(f"joyqueue.{name}", value) == ([] if topic or not count else [f"{outer}[0].topic"])


@pytest.mark.parametrize("name", ["commit_ack", "commit_ack_index"])
def test_an_unknown_code_in_the_answers_to_acknowledgements(name: str) -> None:
    """The other answers take it: JoyQueueCode.valueOf gives null, which only the table refuses."""
    for code in [*range(-2, 270), -(2**31), 2**31 - 1]:
        value = {"data": [{"topic": "t", "partition_data": [{"partition": 1, "code": code}]}]}
        expected = [] if code in ERROR_CODES else ["data[0].partition_data[0].code"]
        assert judged(f"joyqueue.{name}.response", value) == expected
    other = {"data": [{"topic": "t", "messages": [], "code": -2}]}
    assert judged("joyqueue.fetch_topic_message.response", other) == []


def test_a_compression_that_there_is_not() -> None:
    """CompressionType.valueOf throws whether the body is compressed or not, but sees two bits in version 0."""
    for number in range(8):
        for version in range(16):
            for compressed in (0, 1):
                value = message(b"body", compressed=compressed, compression=number, message_version=version)
                expected = ["system_code.compression"] if number > 3 and version else []
                assert judged("joyqueue.message", value) == expected


def test_a_subscription_that_is_neither_of_producer_nor_consumer() -> None:
    for name, more in (("subscribe", {"client_type": 0}), ("unsubscribe", {})):
        for kind in range(-128, 128):
            value = {**more, "subscriptions": [{"topic": "t", "app": "a", "type": kind}]}
            expected = [] if kind in (1, 2) else ["subscriptions[0].type"]
            assert judged(f"joyqueue.{name}.request", value) == expected


@pytest.mark.parametrize("compression", [0, 2])
def test_the_flag_of_a_batch_is_the_number_of_its_messages(compression: int) -> None:
    """BatchMessageSerializer.deserialize reads as many: fewer are lost, more throw a BufferUnderflowException."""
    for count in range(1, 4):
        for flag in (*range(5), -1, 32767):
            content = {"messages": (MESSAGES * 2)[:count]}
            code = {"compressed": int(compression > 0), "compression": compression, "batch": 1}
            value = {**message({"content": content}, **code), "flag": flag}
            expected = [] if flag == count else ["body.content.messages"]
            assert judged("joyqueue.message_opened", value) == expected
    outside = message(b"body")
    assert judged("joyqueue.message_opened", {**outside, "flag": 7}) == []
