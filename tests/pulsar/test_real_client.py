"""The C++ client talks to a broker made of wirekit: each side understands every byte of the other.

Needs ``pulsar-client`` (the C++ client's Python binding), and is skipped without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

import wirekit
from tests.pulsar.broker import LEDGER, Broker

pulsar = pytest.importorskip("pulsar")

TIMEOUT_MS = 5_000
CODECS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")
TEXTS = [f"message {index} ".encode() * 20 for index in range(6)]
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(max_message_size=64 * 1024) as started:
        yield started


@pytest.fixture
def client(broker: Broker) -> Iterator[Any]:
    client = pulsar.Client(
        broker.url, operation_timeout_seconds=5, connection_timeout_ms=3_000, logger=pulsar.FileLogger(*_quiet())
    )
    yield client
    client.close()


def _quiet() -> tuple[Any, str]:
    return pulsar.LoggerLevel.Error, os.devnull


def produce(client: Any, topic: str, texts: list[bytes], **settings: Any) -> None:
    producer = client.create_producer(topic, send_timeout_millis=TIMEOUT_MS, **settings)
    failed: list[Any] = []

    def check(result: Any, _: Any) -> None:
        if result != pulsar.Result.Ok:
            failed.append(result)

    for index, text in enumerate(texts):
        options = {
            "properties": {"index": str(index)},
            "partition_key": f"key {index}",
            "event_timestamp": 1000 + index,
        }
        producer.send_async(text, check, **options)
    producer.flush()
    producer.close()
    assert not failed


def consume(client: Any, topic: str, number: int) -> list[Any]:
    consumer = client.subscribe(topic, "test", initial_position=pulsar.InitialPosition.Earliest)
    received = []
    for _ in range(number):
        received.append(consumer.receive(timeout_millis=TIMEOUT_MS))
        consumer.acknowledge(received[-1])
    consumer.close()
    return received


def assert_understood(broker: Broker) -> None:
    """Every frame of both directions decodes cleanly and is rebuilt exactly, on both engines."""
    assert broker.frames
    assert not [each for connection in broker.connections for each in connection.quarantined]
    for frame in broker.frames:
        assert frame.decoded.clean, frame.decoded.error or frame.decoded.checks
        for engine in ("reference", "rows"):
            decoded = wirekit.decode(frame.data, "pulsar.frame", engine=engine)
            assert decoded.clean
            assert wirekit.encode("pulsar.frame", decoded.value, engine=engine) == frame.data


@pytest.mark.parametrize("batched", [False, True], ids=["alone", "batched"])
@pytest.mark.parametrize("codec", CODECS)
def test_messages_of_each_codec(broker: Broker, client: Any, codec: str, batched: bool) -> None:
    topic = f"persistent://public/default/{codec.lower()}-{batched}"
    settings: dict[str, Any] = {"compression_type": getattr(pulsar.CompressionType, codec)}
    if batched:
        settings |= {"batching_enabled": True, "batching_max_publish_delay_ms": 100}
    else:
        settings |= {"batching_enabled": False}
    produce(client, topic, TEXTS, **settings)
    received = consume(client, topic, len(TEXTS))

    assert [message.data() for message in received] == TEXTS
    assert [message.properties() for message in received] == [{"index": str(index)} for index in range(len(TEXTS))]
    assert [message.partition_key() for message in received] == [f"key {index}" for index in range(len(TEXTS))]
    assert_understood(broker)
    sent = [message for frame in broker.frames if frame.side == "client" for message in frame.messages]
    assert [message.value for message in sent] == TEXTS
    assert [message.key for message in sent] == [f"key {index}".encode() for index in range(len(TEXTS))]
    assert {message.topic for message in sent} == {topic}
    assert {message.codec for message in sent} == {codec.lower()}
    stored = broker.entries[topic]
    assert all((entry.metadata.num_messages_in_batch is not None) == batched for entry in stored)
    assert (len(stored) < len(TEXTS)) == batched
    assert {entry for _, entry in broker.acknowledged} == set(range(len(stored)))
    assert {ledger for ledger, _ in broker.acknowledged} == {LEDGER}


@pytest.mark.parametrize("codec", ["NONE", "ZSTD"])
def test_a_message_in_chunks(broker: Broker, client: Any, codec: str) -> None:
    topic = f"persistent://public/default/chunks-{codec.lower()}"
    text = os.urandom(200_000)
    compression = getattr(pulsar.CompressionType, codec)
    produce(client, topic, [text], chunking_enabled=True, batching_enabled=False, compression_type=compression)
    received = consume(client, topic, 1)

    assert [message.data() for message in received] == [text]
    assert len(broker.entries[topic]) > 3
    assert_understood(broker)
    for side in ("client", "server"):
        whole = [message for frame in broker.frames if frame.side == side for message in frame.messages]
        assert [message.value for message in whole] == [text]


def test_a_changed_entry_reaches_the_application(broker: Broker, client: Any) -> None:
    """What the broker rewrites, with every size, count and checksum rebuilt, the client accepts."""
    topic = "persistent://public/default/rewritten"
    zstd = pulsar.CompressionType.ZSTD
    produce(client, topic, TEXTS, compression_type=zstd, batching_enabled=True, batching_max_publish_delay_ms=100)
    (entry,) = broker.entries[topic]
    items = entry.payload.content
    items[0].payload = b"rewritten"
    del items[3:]
    received = consume(client, topic, 3)

    assert [message.data() for message in received] == [b"rewritten", *TEXTS[1:3]]
    assert entry.metadata.num_messages_in_batch == len(TEXTS), "the value is as the client sent it"
