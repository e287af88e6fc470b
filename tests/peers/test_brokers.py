"""The scripted brokers say nothing that a client has to refuse."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

import wirekit
from tests.peers.brokers import TOPIC, VALUE, kafka_answer, pulsar_answer
from wirekit.conversation import Frame
from wirekit.rules import check
from wirekit.schemas.kafka.apis import APIS
from wirekit.strategies import Exchange

PORT = 9092
FETCHED = {"partition": 0, "fetch_offset": 0, "max_bytes": 1 << 20}
MESSAGES = {
    "messages": [{"offset": 0, "message": {"magic": 0, "attributes": {"codec": 0}, "key": None, "value": VALUE}}]
}
KAFKA: dict[str, dict[str, Any]] = {
    "api_versions": {},
    "metadata": {"topics": [TOPIC]},
    "produce": {
        "acks": 1,
        "timeout": 1,
        "topic_data": [{"topic": TOPIC, "data": [{"partition": 0, "record_set": MESSAGES}]}],
    },
    "list_offsets": {
        "replica_id": -1,
        "topics": [{"topic": TOPIC, "partitions": [{"partition": 0, "timestamp": -2, "max_num_offsets": 1}]}],
    },
    "fetch": {
        "replica_id": -1,
        "max_wait_time": 1,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "topics": [{"topic": TOPIC, "partitions": [FETCHED]}],
    },
}
CALLS = [(api.name, version) for api in APIS if api.name in KAFKA for version in range(len(api.versions))]


def sound(exchange: Exchange) -> None:
    assert all(isinstance(item, Frame) and item.decoded.clean and item.reason is None for item in exchange.items)
    assert check(exchange.protocol.name, exchange.items) == []


@pytest.mark.parametrize(("api", "version"), CALLS)
def test_kafka(api: str, version: int) -> None:
    exchange, key = Exchange("kafka", Random(0)), f"kafka.{api}.request.v{version}"
    value = {"correlation_id": 7, "client_id": "c", "body": copy.deepcopy(KAFKA[api])}
    if key != "kafka.fetch.request.v3":
        value["body"].pop("max_bytes", None)
    if key == "kafka.list_offsets.request.v1":
        del value["body"]["topics"][0]["partitions"][0]["max_num_offsets"]
    (frame,) = exchange.hear("client", wirekit.encode(key, value))
    assert isinstance(frame, Frame)
    assert kafka_answer(exchange, frame, PORT) is not None
    assert exchange.frames[-1].request is frame
    sound(exchange)


def test_kafka_refuses_a_newer_version_of_api_versions() -> None:
    exchange = Exchange("kafka", Random(0))
    (frame,) = exchange.hear("client", bytes.fromhex("0000000b 0012 0003 00000001 0001 63".replace(" ", "")))
    assert isinstance(frame, Frame)
    assert kafka_answer(exchange, frame, PORT) is not None
    answer = exchange.frames[-1]
    assert answer.request is frame
    assert (answer.value.body.error_code, answer.reason) == (35, None)


def test_pulsar() -> None:
    exchange = Exchange("pulsar", Random(0))
    commands: list[tuple[str, str, dict[str, Any]]] = [
        ("CONNECT", "connect", {"client_version": "c", "protocol_version": 19}),
        ("PARTITIONED_METADATA", "partitionMetadata", {"topic": TOPIC, "request_id": 1}),
        ("LOOKUP", "lookupTopic", {"topic": TOPIC, "request_id": 2}),
        ("PRODUCER", "producer", {"topic": TOPIC, "producer_id": 0, "request_id": 3}),
        (
            "SUBSCRIBE",
            "subscribe",
            {"topic": TOPIC, "subscription": "s", "subType": 0, "consumer_id": 0, "request_id": 4},
        ),
        ("FLOW", "flow", {"consumer_id": 0, "messagePermits": 10}),
        ("CLOSE_CONSUMER", "close_consumer", {"consumer_id": 0, "request_id": 5}),
        ("PING", "ping", {}),
    ]
    for kind, field, values in commands:
        (frame,) = exchange.hear("client", wirekit.encode("pulsar.frame", {"command": {"type": kind, field: values}}))
        assert isinstance(frame, Frame)
        assert pulsar_answer(exchange, frame, PORT) is not None
    apis = [turn.api for turn in exchange.turns if turn.side == "server"]
    assert apis[-3:] == ["MESSAGE", "SUCCESS", "PONG"]
    sound(exchange)
