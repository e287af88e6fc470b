"""Numbers that count time are timestamps in columns, and the same bits everywhere else."""

from __future__ import annotations

import datetime
import struct
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from wirekit.compiler.columns import scan
from wirekit.compiler.lower import lower
from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol, register
from wirekit.wire import Protobuf, RecordsToEnd, Timestamp, int32, int64, uint64le

MS = pa.timestamp("ms", "UTC")
SETS = "kafka.message_set"
TIME = "message.timestamp"
NOW = 1_480_000_000_000
EXTREMES = (NOW, -1, 0, None, (1 << 63) - 1, -(1 << 63))


def message_set(times: Any = EXTREMES) -> bytes:
    """A message of magic 1 for each time, one of magic 0 for None."""
    messages = [{"magic": 0} if time is None else {"magic": 1, "timestamp": time} for time in times]
    return wirekit.encode(SETS, {"messages": [{"offset": 1, "message": {**each, "value": None}} for each in messages]})


def pulsar_frame(event_time: int) -> bytes:
    metadata = {"producer_name": "p", "sequence_id": 7, "publish_time": NOW, "num_messages_in_batch": 1}
    messages = [{"metadata": {"payload_size": 1, "event_time": event_time}, "payload": b"v"}]
    send = {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 7}}
    return wirekit.encode("pulsar.frame", {"command": send, "entry": {"metadata": metadata, "payload": messages}})


def jmq4_message() -> bytes:
    value = {"send_time": NOW, "body": b"b", "business_id": "", "app": "a", "attributes": None, "partition": 0}
    return wirekit.encode("jmq4.message", value)


@pytest.mark.parametrize(
    ("key", "data", "times"),
    [
        (SETS, message_set([NOW]), {TIME}),
        ("kafka.time_index", struct.pack(">qi", NOW, 6), {"timestamp"}),
        ("jmq4.message", jmq4_message(), {"send_time"}),
        (
            "pulsar.frame",
            pulsar_frame(NOW),
            {
                "entry.metadata.publish_time",
                "entry.metadata.event_time",
                "entry.metadata.deliver_at_time",
                "entry.payload.metadata.event_time",
                "entry.broker_entry_metadata.metadata.broker_timestamp",
            },
        ),
    ],
)
def test_fields_that_are_times(key: str, data: bytes, times: set[str]) -> None:
    batch, numbers = wirekit.columns(key, data), wirekit.columns(key, data, times="int")
    assert {field.name for field in batch.schema if field.type == MS} == times
    assert not any(pa.types.is_temporal(field.type) for field in numbers.schema)
    assert numbers.equals(scan(key, data)[0])
    then = datetime.datetime.fromtimestamp(NOW // 1000, datetime.UTC)
    assert any(batch[name][0].as_py() == then for name in times)
    for name in batch.schema.names:
        assert batch[name].view(numbers[name].type).equals(numbers[name]) if name in times else True
    with pytest.raises(Misuse, match="times must be 'timestamp' or 'int', not 'text'"):
        wirekit.columns(key, data, times="text")


@pytest.mark.parametrize("repeated", [1, 200_000])  # one small block, and large arrays
def test_every_value_comes_back(repeated: int) -> None:
    data = message_set() * repeated
    batch = wirekit.columns(SETS, data)
    assert batch.schema.field(TIME).type == MS
    assert wirekit.build_columns(SETS, batch) == data
    assert wirekit.build_columns(SETS, wirekit.columns(SETS, data, times="int")) == data
    assert [row.message_timestamp for row in wirekit.rows(batch.slice(0, len(EXTREMES)))] == list(EXTREMES)
    assert [row[0] for row in wirekit.rows(pa.Table.from_batches([batch.slice(0, 2)]), [TIME])] == [NOW, -1]


def test_no_timestamp_is_not_the_same_as_no_field() -> None:
    batch = wirekit.columns(SETS, message_set([-1, None]))
    before = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000, datetime.UTC)
    assert batch[TIME].to_pylist() == [before, None]


def test_a_time_without_sign_keeps_its_bits() -> None:
    batch = wirekit.columns("pulsar.frame", pulsar_frame((1 << 64) - 1))
    assert batch["entry.payload.metadata.event_time"].view(pa.uint64()).to_pylist() == [(1 << 64) - 1]


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("ms", "Asia/Shanghai"), pa.int64(), MS])
def test_any_unit_and_zone_is_built_from(kind: pa.DataType, codec: str) -> None:
    batch = wirekit.columns(SETS, message_set([NOW, NOW + 1]))
    at = batch.schema.get_field_index(TIME)
    cast = batch.set_column(at, TIME, batch.column(at).cast(kind))
    assert wirekit.build_columns(SETS, cast, codec=codec) == wirekit.build_columns(SETS, batch, codec=codec)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.timestamp("us", "UTC"), r"row 1: message\.timestamp: 1500 us does not fit timestamp\[ms"),
        (pa.timestamp("ms"), r"message\.timestamp is timestamp\[ms\], without a time zone"),
        (pa.date64(), r"message\.timestamp is date64.*give it as timestamp\[ms, tz=UTC\] or int64"),
    ],
)
def test_times_that_do_not_fit(kind: pa.DataType, text: str) -> None:
    batch = wirekit.columns(SETS, message_set([1, 2]))
    at = batch.schema.get_field_index(TIME)
    with pytest.raises(Misuse, match=text):
        wirekit.build_columns(SETS, batch.set_column(at, TIME, pa.array([0, 1500], pa.int64()).cast(kind)))


def test_only_integers_of_64_bits_are_times() -> None:
    assert lower(Timestamp(uint64le, unit="ns")).unit == "ns"
    for number, unit in ((int32, "ms"), (int64, "minutes")):
        with pytest.raises(Misuse, match="a time must be an integer of 64 bits"):
            Timestamp(number, unit=unit)
    wrong = Protobuf("wirekit.proto.PulsarApi_pb2:MessageMetadata", times={"producer_name": "ms"})
    protocol = Protocol("timestest", "For this test", {"metadata": Layout(RecordsToEnd(wrong))})
    register(protocol)
    try:
        with pytest.raises(Misuse, match="producer_name is declared as a time, but is not a 64-bit integer"):
            wirekit.columns("timestest.metadata", b"")
    finally:
        del wirekit.registry._schemas["timestest.metadata"]
        del wirekit.registry._protocols["timestest"]
