"""Lists inside a record are lists in columns, and what the reference engine decodes, whatever the bytes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.walk import compare
from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns import scan
from wirekit.registry import Layout, Protocol, register
from wirekit.wire import (
    Array,
    Bytes,
    Checked,
    Const,
    If,
    IfThenElse,
    Length,
    OrBytes,
    RecordsToEnd,
    Repeat,
    Sized,
    String,
    Struct,
    Switch,
    int8,
    int16,
    int32,
    rest,
    this,
    uint8,
    uint16,
    uint32,
)

FEW = os.environ.get("WIREKIT_TEST_FEW") == "1"
EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
CASES = 100 if FEW else 1000 if EXHAUSTIVE else 300

PAIR = Struct("a" / int8, "b" / Bytes(int8), name="Pair")
TOPIC = Struct(
    "name" / String(int16, null=-1),
    "numbers" / Array(int8, int16, null=-1),
    "pairs" / Array(int16, PAIR, null=-1),
    "deep" / Array(int8, Array(int8, Array(int8, uint8))),
    name="Topic",
)
NESTED = Struct("id" / int32, "topics" / Array(int32, TOPIC), "tail" / uint8, name="Nested")

OPTION = Struct(
    "code" / uint8,
    "size" / Length(uint8, of="value"),
    "value"
    / Switch(this.code, {1: String(None), 2: uint16, 3: OrBytes(Struct("x" / uint8, "y" / uint8))}, default=rest()),
    "more" / If(this.code > 3, uint8),
    name="Option",
)
OTHER = Struct("code" / uint8, "text" / String(uint8), "extra" / uint32, name="Other")
SHAPE = Struct(
    "size" / Length(uint8, minimum=1),
    "kind" / uint8,
    "body"
    / Switch(
        this.kind,
        {
            1: Struct("items" / RecordsToEnd(OPTION), name="Options"),
            2: Struct("items" / RecordsToEnd(OTHER, short_tail="stop"), "left" / rest(), name="Others"),
            3: Struct("items" / Array(uint8, uint16), name="Numbers"),
            4: OrBytes(Struct("n" / uint8, "items" / Repeat(this.n, PAIR), "end" / Const(uint8, 0x55), name="Pairs")),
        },
        default=rest(),
    ),
    name="Shape",
)
SUMMED = Struct(
    "parts"
    / Array(
        uint8,
        Struct(
            "crc" / Checked(uint32, "crc32c", "data"),
            "data" / Bytes(uint8),
            "inside" / Sized(uint8, Struct("n" / uint8, name="In"), null=0),
            name="Part",
        ),
    ),
    "until" / Sized(uint8, RecordsToEnd(Struct("v" / uint16, name="U"), until=b"\xff")),
    "nothing" / Array(uint8, Struct("maybe" / If(this._._.flag == 1, uint8), name="N")),
    name="Summed",
)
FLAGGED = Struct("flag" / uint8, "of" / IfThenElse(this.flag < 2, SUMMED, uint8), name="Flagged")

PROTOCOL = Protocol(
    "liststest",
    "For the tests of lists in columns",
    {
        "nested": Layout(NESTED),
        "shapes": Layout(RecordsToEnd(SHAPE)),
        "flagged": Layout(FLAGGED),
        "lists": Layout(RecordsToEnd(Struct("inner" / Array(uint8, Struct("number" / int16)), name="One"))),
    },
)


@pytest.fixture(scope="module", autouse=True)
def registered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The layouts above, and kernels of their own, are there for these tests only."""
    register(PROTOCOL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(columns_cache.VARIABLE, str(tmp_path_factory.mktemp("kernels")))
        yield
    registry = wirekit.registry
    for name in PROTOCOL.layouts:
        del registry._schemas[PROTOCOL.key(name)]
    del registry._protocols[PROTOCOL.name]


def nested() -> bytes:
    topics: list[dict[str, Any]] = [
        {
            "name": "x",
            "numbers": [1, 2, 3],
            "pairs": [{"a": 1, "b": b"ab"}, {"a": 2, "b": b""}],
            "deep": [[[1, 2], []]],
        },
        {"name": None, "numbers": None, "pairs": None, "deep": []},
        {"name": "grün", "numbers": [], "pairs": [], "deep": [[], [[3]], []]},
    ]
    values = [topics, [], topics[1:], topics[:1]]
    return b"".join(
        wirekit.encode("liststest.nested", {"id": number, "topics": each, "tail": 7})
        for number, each in enumerate(values)
    )


def shapes() -> bytes:
    bodies = [
        b"\x01\x01\x02hi\x02\x02\x01\x00\x03\x02ab\x03\x01z\x09\x01q\x05",
        b"\x02\x07\x02ok\x00\x00\x00\x09\x08\x01x\x00\x00",
        b"\x03\x02\x00\x01\x00\x02",
        b"\x04\x02\x01\x01a\x02\x00\x55",
        b"\x04\x02\x01\x01a\x02\x00\x56",
        b"\x04\x7f\x01",
        b"\x01",
        b"\x09anything",
        b"\x01\x04\x00",
    ]
    return b"".join(bytes([len(body)]) + body for body in bodies)


def flagged() -> bytes:
    part = {"crc": 0, "data": b"abc", "inside": {"n": 4}}
    value = {"parts": [part, {"data": b"", "inside": None}], "until": [{"v": 1}, {"v": 2}], "nothing": [{"maybe": 3}]}
    other = value | {"parts": [], "nothing": []}
    values = [{"flag": 1, "of": value}, {"flag": 5, "of": 6}, {"flag": 0, "of": other}]
    return b"".join(wirekit.encode("liststest.flagged", each) for each in values)


SAMPLES = {"liststest.nested": nested, "liststest.shapes": shapes, "liststest.flagged": flagged}


def test_lists_nest_as_they_stand() -> None:
    batch, errors = compare("liststest.nested", nested())
    assert errors.num_rows == 0
    assert batch["topics.name"].to_pylist() == [["x", None, "grün"], [], [None, "grün"], ["x"]]
    assert batch["topics.pairs.b"].to_pylist()[0] == [[b"ab", b""], None, []]
    assert batch["topics.deep"].to_pylist()[0] == [[[[1, 2], []]], [], [[], [[3]], []]]
    assert batch.schema.field("topics.numbers").type == pa.list_(
        pa.field("item", pa.list_(pa.field("item", pa.int16(), False)))
    )


def test_alternatives_share_the_list_at_their_path() -> None:
    batch, errors = compare("liststest.shapes", shapes())
    assert errors["kind"].to_pylist() == ["short"]
    assert batch["body.items.code"].to_pylist()[:3] == [[1, 2, 3, 3, 9], [7], [None, None]]
    assert batch["body.items.value:uint16"].to_pylist()[0] == [None, 256, None, None, None]
    assert batch["body.items.text"].to_pylist()[:2] == [[None] * 5, ["ok"]]
    assert batch["body.items"].to_pylist()[2] == [1, 2]
    assert batch["body.items.a"].to_pylist()[3:6] == [[1, 2], None, None]
    assert batch["body"].to_pylist()[4:6] == [b"\x02\x01\x01a\x02\x00\x56", b"\x7f\x01"]
    assert batch["body.left"].to_pylist()[1] == b"\x08\x01x\x00\x00"


@pytest.mark.parametrize("key", SAMPLES)
def test_cut_at_every_length(key: str) -> None:
    data = SAMPLES[key]()
    for size in range(len(data)):
        compare(key, data[:size])


@pytest.mark.parametrize("key", SAMPLES)
def test_mutated_bytes(key: str) -> None:
    data, chance = SAMPLES[key](), random.Random(17)
    numbers = [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\x80\0\0\0",
        b"\0\0\0\0",
        b"\0\0\xff\xff",
        b"\0\0\0\x0e",
        b"\x7f",
        b"\2",
    ]
    for _ in range(CASES):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(damaged))
            if chance.random() < 0.4:
                number = chance.choice(numbers)
                damaged[place : place + len(number)] = number
            elif chance.random() < 0.6:
                damaged[place] = chance.randrange(256)
            else:
                del damaged[place : place + chance.randrange(1, 9)]
        compare(key, bytes(damaged))


@pytest.mark.parametrize("key", SAMPLES)
def test_random_bytes(key: str) -> None:
    chance = random.Random(23)
    for _ in range(CASES // 2):
        compare(key, bytes(chance.choice(b"\0\0\0\1\2\3\4\x07\xff\x55") for _ in range(chance.randrange(60))))


def test_arrays_grow_as_they_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    from wirekit.compiler.columns import run as columns_run

    lists = [[{"number": n} for n in range(count % 200)] for count in range(900)]
    data = wirekit.encode("liststest.lists", [{"inner": each} for each in lists])
    lists_batch = scan("liststest.lists", data)[0]
    assert lists_batch["inner.number"].to_pylist() == [[each["number"] for each in inner] for inner in lists]
    more = nested() * 50
    nested_batch = scan("liststest.nested", more)[0]
    monkeypatch.setattr(columns_run, "ELEMENT_GUESS", 1 << 40)
    monkeypatch.setattr(columns_run, "ROW_GUESS", 1 << 40)
    monkeypatch.setattr(columns_run, "WHOLE", 0)
    assert scan("liststest.lists", data)[0].equals(lists_batch)
    assert scan("liststest.nested", more)[0].equals(nested_batch)


def test_memory_does_not_grow_with_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as arrow

    sizes: list[int] = []
    allocate = arrow.allocate_buffer
    monkeypatch.setattr(arrow, "allocate_buffer", lambda size: sizes.append(size) or allocate(size))
    lies = b"\0\0\0\1\x7f\xff\xff\xff" + bytes(12)
    _, errors = scan("liststest.nested", lies)
    assert errors["kind"].to_pylist() == ["short"]
    _, errors = scan("liststest.flagged", b"\1\0\0\xff" + bytes(20))
    assert errors["kind"].to_pylist() == ["short"]
    assert max(sizes) < 1 << 16


def test_a_record_with_other_fields_beside_its_list_is_a_row() -> None:
    key = "kafka.metadata.response.v1"
    brokers = [{"node_id": node, "host": f"host{node}", "port": 9092} for node in (1, 2)]
    partitions = [{"partition_error_code": 0, "partition_id": 0, "leader": 1, "replicas": [1, 2], "isr": [1]}]
    topics = [{"topic_error_code": 0, "topic": "t", "is_internal": False, "partition_metadata": partitions}]
    bodies = [
        {"brokers": brokers, "controller_id": 1, "topic_metadata": topics},
        {"brokers": [], "controller_id": 2, "topic_metadata": []},
    ]
    frames = [wirekit.encode(key, {"correlation_id": number, "body": body}) for number, body in enumerate(bodies)]
    batch, errors = compare(key, b"".join(frames))
    assert errors.num_rows == 0
    assert batch["body.brokers.host"].to_pylist() == [["host1", "host2"], []]
    assert batch["body.topic_metadata.partition_metadata.replicas"].to_pylist() == [[[[1, 2]]], []]
    assert batch["body.controller_id"].to_pylist() == [1, 2]
    cut, errors = compare(key, frames[0] + frames[0][:30] + frames[1])
    assert (cut.num_rows, errors["kind"].to_pylist()) == (1, ["short"])


def test_compressed_contents_in_a_list_are_listed_as_left_out() -> None:
    key = "kafka.produce.request.v0"
    inner = {"messages": [{"offset": 0, "message": {"magic": 0, "value": "76"}}]}
    packed = {
        "messages": [{"offset": 1, "message": {"magic": 0, "attributes": {"codec": 1}, "value": {"content": inner}}}]
    }
    topics = [{"topic": "t", "data": [{"partition": 3, "record_set": packed}, {"partition": 4, "record_set": inner}]}]
    frame = wirekit.encode(key, {"correlation_id": 1, "body": {"acks": 1, "timeout": 5, "topic_data": topics}})
    batch, _ = compare(key, frame)
    name = "body.topic_data.data.record_set.messages.message.value"
    (((wrapper,), plain),) = batch[name].to_pylist()[0]
    assert (wrapper[:2], plain) == (b"\x1f\x8b", [b"v"])
    assert batch.schema.metadata[b"wirekit.left_out"].decode() == f'["{name}.content"]'
