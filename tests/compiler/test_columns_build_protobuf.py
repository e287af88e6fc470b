"""Protobuf messages are built from columns as ``encode`` builds them: fields by number, in the shortest form."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import wirekit
from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol, register
from wirekit.wire import Length, Protobuf, RecordsToEnd, Struct, uint32

BATCH, KINDS = "pulsar.batch", "buildproto.kinds"
INTEGERS = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "sint32": (-(1 << 31), (1 << 31) - 1),
    "sfixed32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "fixed32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "sint64": (-(1 << 63), (1 << 63) - 1),
    "sfixed64": (-(1 << 63), (1 << 63) - 1),
    "uint64": (0, (1 << 64) - 1),
    "fixed64": (0, (1 << 64) - 1),
}
TYPES = [*INTEGERS, "bool", "float", "double", "string", "bytes"]
LISTED = ["sint32", "string"]  # each takes seconds to compile


def every_kind() -> Any:
    """A message with a field of each type, one by one, in lists, and in a list of messages."""
    file = descriptor_pb2.FileDescriptorProto(name="buildproto.proto", package="buildproto", syntax="proto2")
    plain, whole = file.message_type.add(name="Plain"), file.message_type.add(name="Whole")
    for number, kind in enumerate(TYPES, 1):
        options = {"type": getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{kind.upper()}")}
        whole.field.add(name=kind, number=3 * number, label=1, **options)
        if kind in LISTED:
            plain.field.add(name=kind, number=number, label=1, **options)
            whole.field.add(name=f"{kind}s", number=200 * number, label=3, **options)
    whole.field.add(name="parts", number=7, label=3, type=11, type_name=".buildproto.Plain")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("buildproto.Whole")).DESCRIPTOR


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """The layout is there for these tests only."""
    record = Struct("size" / Length(uint32, of="message"), "message" / Protobuf(every_kind()))
    protocol = Protocol("buildproto", "For these tests", {"kinds": Layout(RecordsToEnd(record))})
    register(protocol)
    yield
    del wirekit.registry._schemas[KINDS]
    del wirekit.registry._protocols[protocol.name]


def value_of(kind: str, chance: random.Random) -> Any:
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        return chance.choice([low, high, 0, 1, 127, 128, chance.randint(low, high)])
    choices = {"bool": [True, False], "float": [0.0, -1.5, float("inf")], "double": [0.0, 1e300, -0.1]}
    return chance.choice(choices.get(kind, ["", "é" * 90, "x"] if kind == "string" else [b"", b"\xff" * 200]))


def record(chance: random.Random) -> dict[str, Any]:
    def some(kinds: list[str]) -> dict[str, Any]:
        return {kind: value_of(kind, chance) for kind in kinds if chance.random() < 0.5}

    lists = {f"{kind}s": [value_of(kind, chance) for _ in range(chance.choice([0, 0, 1, 3]))] for kind in LISTED}
    return {"message": {**some(TYPES), **lists, "parts": [some(LISTED) for _ in range(chance.choice([0, 1, 4]))]}}


def message(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    some: dict[str, Any] = {
        "properties": [{"key": "k" * n, "value": "é" * 70} for n in range(number % 3)],
        "partition_key": "p" * (number % 5),
        "event_time": chance.getrandbits(64),
        "sequence_id": number,
        "ordering_key": chance.randbytes(number % 7),
        "null_value": chance.random() < 0.5,
    }
    metadata = {name: value for name, value in some.items() if chance.random() < 0.6}
    return {"metadata": metadata | {"payload_size": number % 300}, "payload": chance.randbytes(number % 300)}


@pytest.mark.parametrize("count", [0, 1, 2, 400])
def test_batches_come_back(count: int) -> None:
    data = wirekit.encode(BATCH, {"messages": [message(number) for number in range(count)]})
    batch = wirekit.columns(BATCH, data)
    assert wirekit.build_columns(BATCH, batch) == data
    assert wirekit.build_columns(BATCH, wirekit.columns(BATCH, data, times="int", enums="dictionary")) == data
    part = batch.slice(count // 2)
    assert wirekit.build_columns(BATCH, part) == data[part["@offset"][0].as_py() if part.num_rows else len(data) :]


@pytest.mark.parametrize("seed", range(20))
def test_every_type_comes_back(seed: int) -> None:
    chance = random.Random(seed)
    data = wirekit.encode(KINDS, [record(chance) for _ in range(30)])
    assert wirekit.build_columns(KINDS, wirekit.columns(KINDS, data)) == data


def test_other_orders_and_long_varints_are_built_in_the_usual_form() -> None:
    usual = bytes.fromhex("12016b1801")  # partition_key, payload_size
    for odd in ("180112016b", "12016b188100", "12017812016b1801"):
        metadata = bytes.fromhex(odd)
        batch = wirekit.columns(BATCH, len(metadata).to_bytes(4, "big") + metadata + b"v")
        assert wirekit.build_columns(BATCH, batch) == len(usual).to_bytes(4, "big") + usual + b"v"


def test_columns_of_ones_own() -> None:
    columns = {"metadata.payload_size": [1, 2], "payload": ["a", "bc"], "metadata.properties.key": [["x"], None]}
    columns["metadata.properties.value"] = pa.array([["y"], []], pa.large_list(pa.large_string()))
    properties = [{"key": "x", "value": "y"}]
    expected = [
        {"metadata": {"payload_size": 1, "properties": properties}, "payload": b"a"},
        {"metadata": {"payload_size": 2}, "payload": b"bc"},
    ]
    built = wirekit.build_columns(BATCH, pa.RecordBatch.from_pydict(columns))
    assert built == wirekit.encode(BATCH, {"messages": expected})


@pytest.mark.parametrize("sizes", [None, [1, 2], [7, None]])
def test_the_payload_size_is_computed(sizes: list[int | None] | None) -> None:
    columns: dict[str, Any] = {"metadata.partition_key": ["k", None], "payload": ["a", "bcd"]}
    batch = pa.RecordBatch.from_pydict(columns if sizes is None else columns | {"metadata.payload_size": sizes})
    expected = [{"metadata": {"partition_key": "k"}, "payload": b"a"}, {"metadata": {}, "payload": b"bcd"}]
    assert wirekit.build_columns(BATCH, batch) == wirekit.encode(BATCH, {"messages": expected})


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"metadata.properties.key": [[], ["x"]]}, "row 1: metadata.properties.value: is missing"),
        (
            {"metadata.properties.key": [[], ["x"]], "metadata.properties.value": [["y"], ["z"]]},
            "row 0: metadata.properties.value: differs in length from the other columns of metadata.properties",
        ),
        ({"metadata.properties.key": ["a", "b"]}, "metadata.properties.key is string; give it as a list"),
        ({"metadata.partition_key": [b"a", b"\xff"]}, "row 1: metadata.partition_key: .* does not fit string"),
        ({"metadata.ok": [True, False]}, "row 1: metadata: it was not complete"),
        ({"metadata.nothing": [1, 2]}, "has no column 'metadata.nothing'"),
    ],
)
def test_a_value_that_does_not_fit_the_message_is_misuse(columns: dict[str, Any], text: str) -> None:
    whole = {"metadata.payload_size": [1, 1], "payload": [b"a", b"b"]} | columns
    with pytest.raises(Misuse, match=text):
        wirekit.build_columns(BATCH, pa.RecordBatch.from_pydict(whole))
