"""Long names that many rows repeat: the rows are much longer than the capture, but never in memory at once."""

from __future__ import annotations

from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("numba")

import wirekit
from tests.kafka.golden import message
from tests.pulsar.commands import connect, entry, producer, receipt, send
from tests.road.law import assert_same
from tests.road.test_pairing import capture
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import captured_batches
from wirekit.pipeline.summary import Summary
from wirekit.road import contents
from wirekit.road.tables import captured
from wirekit.tables import scopes
from wirekit.tables.columns import FROM_INPUTS

LARGEST = 40 << 20
"""Bytes of the largest batch; a batch of rows from objects is full with 16 MiB."""


def offsets(topic: int, partitions: int) -> list[tuple[int, bytes]]:
    """A Kafka request for the offsets of a topic with a name of some bytes."""
    topics = [{"topic": "t" * topic, "partitions": [{"partition": number} for number in range(partitions)]}]
    body = {"group_id": "g", "topics": topics}
    return [(0, wirekit.encode("kafka.offset_fetch.request.v0", {"correlation_id": 1, "client_id": "c", "body": body}))]


def produced(
    topic: int, messages: int, *, value: bytes = b"", wrapped: bool = False, number: int = 1
) -> list[tuple[int, bytes]]:
    """A Kafka request with messages for a topic with a name of some bytes."""
    stored = [message(value, offset=each) for each in range(messages)]
    record_set = {"messages": [message(stored, offset=messages - 1, codec="GZIP")] if wrapped else stored}
    topics = [{"topic": "t" * topic, "data": [{"partition": 0, "record_set": record_set}]}]
    body = {"acks": 1, "timeout": 1, "topic_data": topics}
    request = {"correlation_id": number, "client_id": "c", "body": body}
    return [(0, wirekit.encode("kafka.produce.request.v0", request))]


def sent(topic: int, entries: int, name: int = 1, messages: int = 1) -> list[tuple[int, bytes]]:
    """Pulsar's entries with some messages each, of a producer with a name of some bytes."""
    batch = [{"metadata": {"payload_size": 1}, "payload": b"x"}] * messages
    content = entry(batch, num_messages_in_batch=messages, producer_name="p" * name)
    pairs = chain.from_iterable((send(number, content), receipt(number)) for number in range(entries))
    commands = [*connect(), *producer(topic="t" * topic), *pairs]
    return [(0 if each.side == "client" else 1, each.data) for each in commands]


def in_packets(pieces: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    return [(side, data[at : at + 60_000]) for side, data in pieces for at in range(0, len(data), 60_000)]


TALKS = {
    "topic of partitions": offsets(30_000, 6_000),
    "topic of messages": [each for number in range(7) for each in produced(30_000, 900, number=number)],
    "topic of messages in a wrapper": produced(30_000, 6_000, wrapped=True),
    "topic of a producer": sent(100_000, 1_800),
    "producer of messages": sent(1, 1, 100_000, 1_800),
}


@pytest.mark.parametrize("name", TALKS)
def test_rows_of_long_names_come_piece_by_piece(tmp_path: Path, name: str) -> None:
    path = capture(tmp_path / "long.pcap", *in_packets(TALKS[name]))
    for road in ("columns", "objects"):
        job = Job(find_inputs([path]), road=road)
        largest = total = 0
        batches = captured(job.inputs, job, Summary(), FROM_INPUTS) if road == "columns" else None
        for _, batch in batches or captured_batches(job.inputs, job, Summary()):
            largest, total = max(largest, batch.nbytes, pa.total_allocated_bytes()), total + batch.nbytes
        assert total > 150 << 20
        assert largest < LARGEST


@pytest.mark.parametrize(
    "pieces",
    [offsets(10, 3), produced(10, 3), produced(10, 3, wrapped=True), sent(10, 3), sent(1, 1, 10, 3)],
    ids=TALKS,
)
def test_objects_read_what_repeats_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: list[tuple[int, bytes]]
) -> None:
    path = capture(tmp_path / "short.pcap", *pieces)
    monkeypatch.setattr(scopes, "SHORT", 0)
    monkeypatch.setattr(contents, "Repeats", partial(scopes.Repeats, 0))
    assert_same(path)
