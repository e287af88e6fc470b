"""Kafka's record batches of magic 2 as an example declares them, against what kafka-python writes and reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

import wirekit
from examples.kafka_records import PROTOCOL
from tests.agreement.law import agree
from tests.own import declared

KEY = "kafka_records.batch"
RECORDS: list[tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (0, 1_700_000_000_000, b"k", b"v" * 300, []),
    (1, 1_699_999_999_000, None, b"", [("a", b"1"), ("ä", None)]),
    (2, 1_700_000_100_000, b"", None, [("trace", b"\x00" * 70)]),
]


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    with declared(PROTOCOL):
        yield


def batch(codec: int = 0, producer: int = -1) -> bytes:
    """A batch as kafka-python writes it."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        batch_size=99_999,
    )
    for offset, timestamp, key, value, headers in RECORDS:
        builder.append(offset, timestamp, key, value, headers)
    return bytes(builder.build())


def values(data: bytes) -> list[Any]:
    """What kafka-python reads."""
    record_batch = DefaultRecordBatch(data)
    assert record_batch.validate_crc()
    return [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in record_batch]


def test_a_batch_has_the_records_that_kafka_python_wrote() -> None:
    data = batch(producer=2**40)
    decoded = agree(KEY, data, {})
    assert decoded.clean
    value = decoded.value
    assert (value.producer_id, value.last_offset_delta, value.records_count) == (2**40, 2, 3)
    records = [
        (
            value.base_offset + record.offset_delta,
            value.base_timestamp + record.timestamp_delta,
            record.key,
            record.value,
            [(header.key, header.value) for header in record.headers],
        )
        for record in value.records
    ]
    assert records == RECORDS == values(data)


@pytest.mark.parametrize("codec", [1, 3])
def test_a_compressed_batch_is_opened(codec: int) -> None:
    decoded = agree(KEY, batch(codec), {})
    assert [record.value for record in decoded.value.records.content] == [record[3] for record in RECORDS]


def test_kafka_python_reads_the_built_batch() -> None:
    decoded = wirekit.decode(batch(), KEY)
    value = wirekit.to_json(decoded.value)
    value["records"][0]["value"] = "00" * 20_000
    del value["crc"], value["batch_length"], value["records"][0]["length"]
    data = wirekit.encode(KEY, wirekit.from_json(KEY, value))
    assert values(data)[0][3] == bytes(20_000)
    assert values(data)[1:] == RECORDS[1:]


def test_a_damaged_record_is_seen_by_its_checksum() -> None:
    data = bytearray(batch())
    data[80] ^= 1
    decoded = agree(KEY, bytes(data), {})
    assert [check.kind for check in decoded.checks if check.status == "bad"] == ["crc32c"]


def test_columns_have_a_row_a_record_compressed_or_not() -> None:
    table = wirekit.columns("kafka_records.batches", batch() + batch(1) + batch()[:-1])
    assert table["base_timestamp"].null_count == 0
    assert table["crc.ok"].to_pylist() == [True] * 6
    assert table["records.offset_delta"].to_pylist() == [0, 1, 2] * 2
    assert table["records.headers.key"].to_pylist()[:3] == [[], ["a", "ä"], ["trace"]]


@pytest.mark.parametrize("codec", [0, 1, 3])
def test_kafka_python_reads_what_columns_build(codec: int) -> None:
    data = batch(codec)
    built = wirekit.build_columns(KEY, wirekit.columns(KEY, data))
    assert values(built) == RECORDS
    assert codec or built == data
