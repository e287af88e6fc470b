"""Layouts that are variants of others: what does not fit the usual layout, and fits the variant, is taken as that."""

from __future__ import annotations

import json
from typing import Any

import pytest

import wirekit
from tests.kafka.golden import FIXTURES
from wirekit.cli import main
from wirekit.conversation import Conversation
from wirekit.registry import registry, variants

LINES = (FIXTURES / "cases.jsonl").read_text().splitlines()
(CASE,) = [case for case in map(json.loads, LINES) if case["key"].endswith(".untimed")]
ANSWER = bytes.fromhex(CASE["hex"])
SETS = [{"offset": number, "message": {"magic": 1, "key": b"k", "value": b"v" * number}} for number in range(4)]
PRODUCED = [{"topic": "t", "data": [{"partition": 0, "record_set": {"messages": SETS}}]}]
REQUEST = {"correlation_id": 123, "client_id": "kafka-php"}
BODY = {"replica_id": -1, "max_wait_time": 1, "min_bytes": 1, "topics": []}


def frames_of(conversation: Conversation, side: str, data: bytes) -> list[Any]:
    return [event for event in conversation.receive(side, data) if hasattr(event, "schema")]


def test_a_response_that_fits_only_the_variant_decodes_by_it() -> None:
    conversation = wirekit.Conversation("kafka")
    conversation.receive(
        "client", wirekit.encode("kafka.fetch.request.v1", {**REQUEST, "api_version": 1, "body": BODY})
    )
    (frame,) = frames_of(conversation, "server", ANSWER)
    assert (frame.schema, frame.description.api, frame.description.version) == (CASE["key"], "fetch", 1)
    assert frame.decoded.clean
    assert frame.request is not None
    assert [[m.offset, m.value.hex(), m.check] for m in frame.messages] == CASE["messages"]
    assert {m.timestamp for m in frame.messages} == {None}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_produced_sets_too_compressed_or_not(version: int, codec: int) -> None:
    key = f"kafka.produce.request.v{version}.untimed"
    topics: Any = PRODUCED
    if codec:
        wrapper = {"magic": 1, "attributes": {"codec": codec}, "value": {"content": {"messages": SETS}}}
        record_set = {"messages": [{"offset": 3, "message": wrapper}]}
        topics = [{"topic": "t", "data": [{"partition": 0, "record_set": record_set}]}]
    value = {"correlation_id": 1, "client_id": "p", "body": {"acks": 1, "timeout": 1, "topic_data": topics}}
    data = wirekit.encode(key, value)
    (frame,) = frames_of(wirekit.Conversation("kafka"), "client", data)
    assert frame.schema == key
    assert [message.value for message in frame.messages] == [b"v" * number for number in range(4)]


def test_a_frame_that_fits_the_usual_layout_or_none_decodes_by_it() -> None:
    messages = [{"offset": 0, "message": {"magic": 1, "timestamp": 1, "value": b"v"}}]
    topics = [{"topic": "t", "data": [{"partition": 0, "record_set": {"messages": messages}}]}]
    value = {"correlation_id": 1, "client_id": "p", "body": {"acks": 1, "timeout": 1, "topic_data": topics}}
    usual = wirekit.encode("kafka.produce.request.v1", value)
    for data in (usual, usual[:-6] + bytes([255]) * 6):
        (frame,) = frames_of(wirekit.Conversation("kafka"), "client", data)
        assert frame.schema == "kafka.produce.request.v1"


def test_decode_says_which_variant_fits(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["decode", "kafka.fetch.response.v1", "--hex", CASE["hex"]])
    assert f"the bytes decode cleanly as {CASE['key']}" in capfd.readouterr().err


def test_variants_are_of_layouts_that_there_are() -> None:
    for name in registry.protocols():
        for key, others in registry.protocol(name).variants.items():
            assert key in registry
            assert variants(key) == others
    assert variants("kafka.heartbeat.request.v0") == []
