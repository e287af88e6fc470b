"""The columns engine gives what the reference engine gives, record by record, and loses no neighbour of a bad one."""

from __future__ import annotations

import json
import os
import random
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.walk import compare
from tests.fuzz.test_any_bytes import FIXTURES, samples
from wirekit import compiler
from wirekit.compiler import cache as columns_cache
from wirekit.compiler.columns import program, scan, source, warm
from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol, register
from wirekit.values import Record, SymbolTable
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Checked,
    Const,
    Default,
    Flag,
    If,
    IfMore,
    IfNext,
    Length,
    RecordsToEnd,
    String,
    Struct,
    Symbols,
    context,
    float64,
    int8,
    int16,
    int16le,
    int32,
    int64,
    len_,
    this,
    uint8,
    uint16,
    uint32le,
    uint64,
)

# NUMBA_BOUNDSCHECK=1 compiles other code, in a process of its own, which runs this file: with few cases when a test
# below has started it, with all by ``make test-boundscheck``.
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
FEW = os.environ.get("WIREKIT_TEST_FEW") == "1"
EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "exhaustive"
CASES = 150 if FEW else 1500 if EXHAUSTIVE else 400

COLOURS = SymbolTable("colour", {1: ("RED", "red"), 2: ("GREEN", "green"), 7: ("BLUE", "blue")})

READING = Struct(
    "kind" / Symbols(int16le, COLOURS),
    "size" / Length(uint16, add=2, minimum=4),
    "body"
    / Struct(
        "flags" / Bits(uint8, "extra" / Bit(1), "colour" / Bit(3, COLOURS), "more" / Bit(4), order="msb"),
        "valid" / Flag(int8),
        "large" / uint64,
        "value" / float64,
        "note" / If(this.flags.extra == 1, String(int8, null=-1)),
        "place" / If(this.flags.more > 3, Struct("x" / int32, "y" / Default(uint32le, 7), "name" / Bytes(uint8))),
        "blob" / Bytes(this.flags.more * 2),
        "same" / Const(uint8, 0x55, fatal=False),
        "twice" / Bytes(len_(this.blob) + 1),
        "end" / IfMore(int8),
        name="Body",
    ),
    name="Reading",
)
SUMMED = Struct(
    "head" / Const(uint8, 0xAB),
    "crc" / Checked(int64, "crc32c", covers="data", content=True),
    "sum" / Checked(uint16, "internet", covers=("head", "data")),
    "data" / Bytes(int16, null=0),
    "length_again" / Length(int16, of=("head", "data")),
    name="Summed",
)
MARKED = Struct("mark" / Const(Bytes(int8), b"ab", fatal=False), "more" / IfNext(b"\x07", int8), name="Marked")
COUNTED = Struct("size" / Length(int32, frame=True), "entries" / Array(int16, SUMMED), name="Counted")

PROTOCOL = Protocol(
    "columnstest",
    "For the tests of columns",
    {
        "readings": Layout(RecordsToEnd(READING, short_tail="stop")),
        "strict": Layout(Struct("readings" / RecordsToEnd(READING))),
        "summed": Layout(SUMMED),
        "marked": Layout(RecordsToEnd(MARKED)),
        "counted": Layout(COUNTED),
        "nested": Layout(RecordsToEnd(Struct("inner" / Struct("list" / Array(int8, int8))))),
        "overflow": Layout(RecordsToEnd(Struct("k" / int64, "v" / Bytes(this.k + 1)))),
        "empty": Layout(RecordsToEnd(Struct("nothing" / Bytes(0)))),
        "counted_empty": Layout(Array(int8, Struct("nothing" / Bytes(0)))),
        "context": Layout(RecordsToEnd(Struct("v" / If(context.version > 1, int8)))),
    },
)


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """The layouts above are there for these tests only."""
    registry = wirekit.registry
    register(PROTOCOL)
    yield
    for name in PROTOCOL.layouts:
        del registry._schemas[PROTOCOL.key(name)]
    del registry._protocols[PROTOCOL.name]


# Samples.


@cache
def message_sets() -> list[bytes]:
    """The message sets in the golden produce requests and fetch responses."""
    sets = []
    for key, frames in samples().items():
        if not key.startswith(("kafka.produce.request", "kafka.fetch.response")):
            continue
        for frame in frames:
            value = wirekit.decode(frame, key).value
            sets += [wirekit.encode("kafka.message_set", each) for each in sets_in(value) if each["messages"]]
    return sets


def sets_in(value: Any) -> Iterator[Record]:
    if isinstance(value, Record):
        if "messages" in value and "partial" in value:
            yield value
            return
        for _, inner in value.items():
            yield from sets_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from sets_in(inner)


def message(number: int, magic: int, value: Any, codec: int = 0, **other: Any) -> dict[str, Any]:
    fields = {"magic": magic, "attributes": {"codec": codec}, "value": value, **other}
    if magic:
        fields.setdefault("timestamp", 1_480_000_000_000 + number % 1000)
    return {"offset": number, "message": fields}


@cache
def mixed() -> bytes:
    """Both magics, null and empty keys and values, each codec, a set in a set in a set."""
    plain = [message(n, n % 2, (b"", None, b"v" * n)[n % 3], key=(None, b"", b"key")[n % 3]) for n in range(12)]
    entries: list[dict[str, Any]] = [*plain]
    for number, (magic, codec) in enumerate([(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]):
        inside = {"messages": [message(n, magic, bytes([n]) * 20) for n in range(number + 1)]}
        entries.append(message(100 + number, magic, {"content": inside}, codec))
        entries.append(message(200 + number, magic, b"between"))
    deep: dict[str, Any] = {"messages": [message(1, 1, b"deepest"), message(2, 1, b"too")]}
    for codec in (1, 2, 3):
        deep = {"messages": [message(7, 1, b"before"), message(8, 1, {"content": deep}, codec), message(9, 1, None)]}
    entries += [*deep["messages"], message(300, 0, b"last")]
    return wirekit.encode("kafka.message_set", {"messages": entries})


def readings(count: int, seed: int = 1) -> bytes:
    chance = random.Random(seed)
    values = []
    for _ in range(count):
        extra, more = chance.random() < 0.5, chance.randrange(16)
        values.append(
            {
                "kind": chance.choice([1, 2, 7, -3]),
                "body": {
                    "flags": {"extra": extra, "colour": chance.randrange(8), "more": more},
                    "valid": chance.random() < 0.5,
                    "large": chance.getrandbits(64),
                    "value": chance.choice([0.0, -1.5, float("inf"), 1e300]),
                    "note": chance.choice([None, "", "grün", "x" * 50]) if extra else None,
                    "place": {"x": -5, "y": 2**32 - 1, "name": b"n" * chance.randrange(5)} if more > 3 else None,
                    "blob": chance.randbytes(2 * more),
                    "twice": chance.randbytes(2 * more + 1),
                    "end": chance.choice([None, -1]),
                },
            }
        )
    return wirekit.encode("columnstest.readings", values)


def summed(count: int) -> bytes:
    data = [random.Random(n).randbytes(n % 70) for n in range(count)]
    return b"".join(wirekit.encode("columnstest.summed", {"data": each or None}) for each in data)


@cache
def joyqueue_messages() -> bytes:
    messages = []
    for number in range(8):
        value = {
            "send_time": number,
            "body": b"body" * number,
            "business_id": "b" * number,
            "app": "app",
            "client_ip": bytes(16),
        }
        value |= {"attributes": "a=b" if number % 2 else None, "extension": None, "flag": number, "partition": -1}
        messages.append(wirekit.encode("joyqueue.message", value))
    return b"".join(messages)


@cache
def joyqueue_batch() -> bytes:
    values = [{"body": b"x" * n, "business_id": "é" * n, "attributes": None} for n in range(6)]
    return wirekit.encode("joyqueue.batch", {"messages": values})


@cache
def packets() -> bytes:
    return (FIXTURES / "pcap" / "jmq4-consume.pcap").read_bytes()[24:]


def files(suffix: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((FIXTURES / "kafka" / "disk").glob(f"*{suffix}"))]


def pulsar_frames() -> bytes:
    """Frames with and without entries, one of them a batch."""
    send = {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 2, "num_messages": 1}}
    metadata = {"producer_name": "ä", "sequence_id": 7, "publish_time": 1_700_000_000_000, "partition_key": "key"}
    properties = [{"key": "a", "value": "b"}, {"key": "c", "value": ""}]
    several = [{"metadata": {"properties": properties}, "payload": b"one"}, {"metadata": {}, "payload": b""}]
    frames: list[dict[str, Any]] = [
        {"command": send, "entry": {"metadata": metadata, "payload": bytes(range(100))}},
        {"command": {"type": "PING", "ping": {}}},
        {
            "command": send,
            "entry": {
                "broker_entry_metadata": {"metadata": {"index": 5}},
                "metadata": metadata | {"num_messages_in_batch": 2},
                "payload": several,
            },
        },
        {"command": {"type": "CONNECT", "connect": {"client_version": "x", "protocol_version": 19}}},
    ]
    return b"".join(wirekit.encode("pulsar.frame", frame) for frame in frames)


SAMPLES = {
    "kafka.message_set": mixed,
    "pulsar.frame": pulsar_frames,
    "columnstest.readings": lambda: readings(12),
    "columnstest.strict": lambda: readings(5, 3),
    "columnstest.summed": lambda: summed(9),
    "columnstest.marked": lambda: b"\x02ab\x02ab\x07\x02ac\x07\x03abc\x01a\x00\x02ab",
    "kafka.time_index": lambda: struct.pack(">qi", 5, 6) * 4 + bytes(24),
    "net.pcap.packets.le": lambda: packets()[:1500],
    "joyqueue.batch": joyqueue_batch,
    "joyqueue.message": joyqueue_messages,
}
if FEW:  # compiling takes longest
    SAMPLES = {key: SAMPLES[key] for key in ("kafka.message_set", "columnstest.readings", "columnstest.summed")}


# Whole, good data.


def test_message_sets_that_real_brokers_sent() -> None:
    assert len(message_sets()) > 20
    depths = set()
    for data in message_sets():
        batch, errors = compare("kafka.message_set", data)
        assert errors.num_rows == 0
        depths |= set(batch["@depth"].to_pylist())
    assert depths == {0, 1}


@pytest.mark.parametrize(
    ("suffix", "key"), [(".log", "log_segment"), (".index", "offset_index"), (".timeindex", "time_index")]
)
def test_files_that_real_brokers_wrote(suffix: str, key: str) -> None:
    rows = 0
    for data in files(suffix):
        batch, errors = compare(f"kafka.{key}", data)
        assert errors.num_rows == 0
        rows += batch.num_rows
    assert rows > 10


@pytest.mark.parametrize("key", SAMPLES)
def test_whole_samples(key: str) -> None:
    data = SAMPLES[key]()
    batch, errors = compare(key, data)
    assert batch.num_rows > 3
    assert errors.num_rows == 0


def test_packets_of_a_capture() -> None:
    batch, errors = compare("net.pcap.packets.le", packets())
    assert errors.num_rows == 0
    file = wirekit.decode((FIXTURES / "pcap" / "jmq4-consume.pcap").read_bytes(), "net.pcap").value
    assert batch["original_length"].to_pylist() == [packet.original_length for packet in file.packets]
    assert batch["original_length.ok"].to_pylist() == [True] * batch.num_rows


def test_a_list_that_is_counted_and_bounded() -> None:
    entries = [{"data": b"x" * n or None} for n in range(4)]
    data = wirekit.encode("columnstest.counted", {"entries": entries})
    batch, errors = scan("columnstest.counted", data + b"behind")
    assert batch["data"].to_pylist() == [None, b"x", b"xx", b"xxx"]
    assert (
        batch["sum.ok"].to_pylist() == batch["crc.ok"].to_pylist() == batch["length_again.ok"].to_pylist() == [True] * 4
    )
    assert batch["@offset"].to_pylist()[0] == 6
    assert errors.num_rows == 0
    for cut in range(len(data)):
        batch, errors = scan("columnstest.counted", data[:cut])
        assert errors.num_rows > 0
    lots = data[:4] + b"\x7f\xff" + data[6:]
    batch, errors = scan("columnstest.counted", lots)
    assert (batch.num_rows, errors["kind"].to_pylist()) == (0, ["short"])
    batch, errors = scan("columnstest.counted", b"\x7f\xff\xff\xff" + data[4:])
    assert errors["kind"].to_pylist() == ["limit"]


@pytest.mark.parametrize("key", SAMPLES)
def test_nothing_gives_no_rows(key: str) -> None:
    batch, errors = scan(key, b"")
    assert (batch.num_rows, errors.num_rows) == (0, 0)


def test_any_contiguous_buffer_will_do() -> None:
    data = mixed()
    want = wirekit.columns("kafka.message_set", data)
    for given in (bytearray(data), memoryview(data), pa.py_buffer(data)):
        assert wirekit.columns("kafka.message_set", given).equals(want)
    with pytest.raises(Misuse, match="contiguous"):
        wirekit.columns("kafka.message_set", memoryview(data)[::2])
    with pytest.raises(Misuse, match="not str"):
        wirekit.columns("kafka.message_set", "text")


def test_arrays_grow_as_they_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    from wirekit.compiler.columns import run as columns_run

    entry = wirekit.encode("kafka.message_set", {"messages": [message(1, 0, b"v")]})
    bad = entry[:16] + b"\x09" + entry[17:]
    data = (entry * 3 + bad) * 2000
    want, wrong = scan("kafka.message_set", data)
    assert (want.num_rows, wrong.num_rows) == (6000, 2000)
    monkeypatch.setattr(columns_run, "ROW_GUESS", 1 << 40)
    monkeypatch.setattr(columns_run, "WHOLE", 0)
    got, errors = scan("kafka.message_set", data)
    assert got.equals(want)
    assert errors.equals(wrong)


def test_names_of_values_stand_in_the_metadata() -> None:
    field = wirekit.columns("kafka.message_set", b"").schema.field("message.attributes.codec")
    assert field.type == pa.int32()
    assert json.loads(field.metadata[b"wirekit.symbols"])["2"] == "SNAPPY"


# Damage.


def entries(data: bytes) -> list[int]:
    """Where the messages of a set begin, and its end."""
    places, position = [], 0
    while position < len(data):
        places.append(position)
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return [*places, position]


def test_a_bad_crc_is_a_verdict() -> None:
    data = bytearray(wirekit.encode("kafka.message_set", {"messages": [message(n, 1, b"value") for n in range(3)]}))
    data[entries(data)[1] + 36] ^= 1
    batch, errors = compare("kafka.message_set", bytes(data))
    assert batch["message.crc.ok"].to_pylist() == [True, False, True]
    assert errors.num_rows == 0


def test_a_damaged_record_loses_no_neighbour() -> None:
    data = mixed()
    whole = wirekit.columns("kafka.message_set", data)
    for start, end in zip(entries(data), entries(data)[1:], strict=False):
        damaged = bytearray(data)
        damaged[start + 16] = 9  # no such magic
        batch, errors = compare("kafka.message_set", bytes(damaged))
        assert errors.to_pylist()[0] == {
            "offset": start,
            "length": end - start,
            "kind": "wrong",
            "path": "message.magic",
            "at": start + 16,
            "reason": "expected magic: V0 (0), V1 (1), found 9",
            "depth": 0,
            "wrapper": None,
            "at_depth": 0,
        }
        mine = [
            (whole["@depth"][i].as_py(), whole["@wrapper"][i].as_py(), whole["@offset"][i].as_py())
            for i in range(whole.num_rows)
        ]
        left = [index for index, (depth, wrapper, offset) in enumerate(mine) if (wrapper if depth else offset) != start]
        assert batch.num_rows == len(left)
        assert batch["message.value"].to_pylist() == whole["message.value"].take(pa.array(left)).to_pylist()


@pytest.mark.parametrize("key", SAMPLES)
def test_cut_at_every_length(key: str) -> None:
    data = SAMPLES[key]()
    for size in range(0, len(data), max(1, len(data) // 250)):
        compare(key, data[:size])


NUMBERS = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"\0\0\xff\xff", b"\0\0\0\x0e"]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A part of some bytes, of which a few are others, or gone."""
    damaged = bytearray(data[: chance.randrange(1, min(len(data), 900) + 1)])
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(damaged))
        if chance.random() < 0.4:
            damaged[place : place + 4] = chance.choice(NUMBERS)
        elif chance.random() < 0.5:
            damaged[place] = chance.randrange(256)
        else:
            del damaged[place : place + chance.randrange(1, 9)]
        if not damaged:
            break
    return bytes(damaged)


@pytest.mark.parametrize("key", SAMPLES)
def test_mutated_bytes(key: str) -> None:
    data, chance = SAMPLES[key](), random.Random(17)
    for _ in range(CASES):
        compare(key, mutated(data, chance))


def as_bits(column: pa.Array) -> pa.Array:
    """A column in which nothing differs from itself, as a float may that is no number."""
    return column.view(pa.int64()) if column.type == pa.float64() else column


@pytest.mark.parametrize("key", ["kafka.message_set", "pulsar.frame", "columnstest.readings", "columnstest.marked"])
def test_a_kernel_gives_the_rows_of_the_interpreter(key: str, kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in the bytes. Kernels are kept apart, so that all other tests are of the interpreter."""
    monkeypatch.setenv(columns_cache.VARIABLE, str(kernels / "own"))
    monkeypatch.setattr(columns_cache, "_modules", {})
    data, chance = SAMPLES[key](), random.Random(29)
    inputs = [data, data * 50, b"", *(mutated(data, chance) for _ in range(CASES // 5))]
    ready = program(key).ready(None, verdicts=False, wide=False)
    interpreted = [scan(key, each) for each in inputs]
    try:
        assert warm(key)
        assert ready.scan() is not columns_cache.interpreter()
        for each, (batch, errors) in zip(inputs, interpreted, strict=True):
            again, wrong = scan(key, each)
            assert again.schema.equals(batch.schema, check_metadata=True)
            pairs = zip(again.columns, batch.columns, strict=True)
            assert all(as_bits(column).equals(as_bits(other)) for column, other in pairs)
            assert wrong.equals(errors)
    finally:
        ready.choose(columns_cache.interpreter())


@pytest.mark.parametrize("key", SAMPLES)
def test_random_bytes(key: str) -> None:
    chance = random.Random(23)
    for _ in range(CASES // 2):
        size = chance.randrange(120)
        data = (
            chance.randbytes(size)
            if chance.random() < 0.5
            else bytes(chance.choice(b"\0\0\0\1\2\xff\x0e") for _ in range(size))
        )
        compare(key, data)


@pytest.mark.skipif(FEW, reason="compiling takes longest")
def test_records_of_no_bytes_do_not_go_on_forever() -> None:
    batch, errors = scan("columnstest.empty", b"abc")
    assert batch.num_rows == 0
    assert errors.to_pylist()[0]["reason"] == "expected a record of at least one byte, found an empty one"
    assert (errors["offset"].to_pylist(), errors["length"].to_pylist()) == ([0], [3])


@pytest.mark.skipif(FEW, reason="compiling takes longest")
def test_records_of_no_bytes_can_be_counted() -> None:
    assert [compare("columnstest.counted_empty", data)[0].num_rows for data in (b"\x02abc", b"\x04abc", b"\xff")] == [
        2,
        0,
        0,
    ]


# Compressed records.


def test_a_value_that_does_not_decompress_stays_as_it_is() -> None:
    data = wirekit.encode("kafka.message_set", {"messages": [message(0, 1, b"no gzip", 1), message(1, 1, b"plain")]})
    batch, errors = compare("kafka.message_set", data)
    assert batch["message.value"].to_pylist() == [b"no gzip", b"plain"]
    assert batch["message.value.ok"].to_pylist() == [False, None]
    assert [errors[name].to_pylist() for name in ("offset", "kind", "path")] == [
        [0],
        ["decompression"],
        ["message.value"],
    ]


def test_a_message_beyond_a_limit_is_an_error_and_its_neighbours_are_rows() -> None:
    bomb = {"messages": [message(0, 1, bytes(200_000))]}
    messages = [message(0, 1, b"a"), message(1, 1, {"content": bomb}, 1), message(2, 1, b"b")]
    data = wirekit.encode("kafka.message_set", {"messages": messages})
    batch, errors = compare("kafka.message_set", data, wirekit.Limits(decompressed=1000))
    assert batch["message.value"].to_pylist() == [b"a", b"b"]
    assert errors["kind"].to_pylist() == ["limit"]
    assert errors["offset"].to_pylist() == [entries(data)[1]]


def test_a_limit_that_is_passed_inside_is_an_error_of_the_record_around_it() -> None:
    rows = []
    for depth in range(4):
        batch, errors = compare("kafka.message_set", mixed(), wirekit.Limits(depth=depth))
        rows.append(batch.num_rows)
        if depth == 2:
            (error,) = errors.to_pylist()
    assert rows[0] < rows[1] == rows[2] < rows[3]
    assert b"deepest" in batch["message.value"].to_pylist()
    assert error["path"] == "message.value.content.messages[1].message.value.content.messages[1].message.value"
    assert (error["depth"], error["wrapper"], error["at_depth"]) == (0, None, 2)


def test_all_that_is_compressed_is_bounded_together() -> None:
    inside = {"messages": [message(0, 1, bytes(300))]}
    plain = [message(number, 1, b"plain") for number in range(3)]
    packed = [message(number, 1, {"content": inside}, 1) for number in range(6)]
    data = wirekit.encode("kafka.message_set", {"messages": [*plain, *packed, *plain]})
    batch, errors = compare("kafka.message_set", data, wirekit.Limits(decompressed=400, total_ratio=1))
    assert 0 < errors.num_rows < 6
    assert set(errors["path"].to_pylist()) == {"message.value"}
    assert batch.num_rows == 12 - errors.num_rows


def test_damage_comes_before_a_limit_behind_it() -> None:
    bomb: dict[str, Any] = {"messages": [message(0, 1, bytes(2000))]}
    inner = [message(0, 1, b"x"), message(1, 1, {"content": bomb}, 1), message(2, 1, b"y"), message(3, 1, b"z")]
    for broken in range(4):
        middle = bytearray(wirekit.encode("kafka.message_set", {"messages": inner}))
        middle[entries(middle)[broken] + 16] = 9
        outer = [message(1, 1, b"first"), message(2, 1, gzipped(middle), 1), message(3, 1, b"last")]
        data = wirekit.encode("kafka.message_set", {"messages": outer})
        _, errors = compare("kafka.message_set", data, wirekit.Limits(decompressed=1000))
        kinds = list(zip(errors["kind"].to_pylist(), errors["depth"].to_pylist(), strict=True))
        assert kinds == {0: [("wrong", 1), ("limit", 1)], 1: [("wrong", 1)]}.get(broken, [("limit", 0)])


def test_an_error_inside_a_wrapper_names_the_wrapper() -> None:
    inner = bytearray(wirekit.encode("kafka.message_set", {"messages": [message(n, 1, b"value") for n in range(3)]}))
    inner[entries(inner)[1] + 16] = 9
    packed = wirekit.encode("kafka.message_set", {"messages": [message(5, 1, b"x"), message(6, 1, gzipped(inner), 1)]})
    batch, errors = compare("kafka.message_set", packed)
    assert batch["offset"].to_pylist() == [5, 0, 2]
    wrapper = entries(packed)[1]
    assert batch["@wrapper"].to_pylist() == [None, wrapper, wrapper]
    assert errors["offset"].to_pylist() == [entries(inner)[1]]
    assert errors["wrapper"].to_pylist() == [wrapper]


def test_any_damage_inside_wrappers() -> None:
    chance = random.Random(5)
    whole = wirekit.encode("kafka.message_set", {"messages": [message(n, n % 2, b"v" * n) for n in range(4)]})
    for _ in range(CASES // 5):
        messages = [message(1, 1, b"before")]
        for magic in (0, 1):
            inner = bytearray(whole[: chance.randrange(1, len(whole) + 1)])
            inner[chance.randrange(len(inner))] = chance.randrange(256)
            messages += [message(2, magic, gzipped(inner), 1), message(3, magic, b"between")]
        inner = bytearray(wirekit.encode("kafka.message_set", {"messages": messages}))
        inner[chance.randrange(len(inner))] ^= 1 << chance.randrange(8)
        outer = [message(1, 0, b"first"), message(2, 0, gzipped(inner), 1), message(3, 1, b"last")]
        limits = chance.choice([None, wirekit.Limits(depth=1), wirekit.Limits(decompressed=80)])
        compare("kafka.message_set", wirekit.encode("kafka.message_set", {"messages": outer}), limits)


def gzipped(data: bytes) -> bytes:
    from wirekit.compression import compress

    return compress("gzip", bytes(data))


def test_wrappers_can_be_kept() -> None:
    data = mixed()
    without = wirekit.columns("kafka.message_set", data, times="int")
    batch, _ = scan("kafka.message_set", data, wrappers=True)
    wrappers = batch.filter(pa.compute.is_valid(batch["@left"]))
    assert wrappers.num_rows == 6 + 3
    assert wrappers["@left"].to_pylist() == [0] * 9
    messages = batch.filter(pa.compute.is_null(batch["@left"]))
    assert messages.select(without.schema.names).equals(without)
    for index in range(batch.num_rows):
        parent = batch["@parent"][index].as_py()
        assert (parent is None) == (batch["@depth"][index].as_py() == 0)
        if parent is not None:
            assert parent < index
            assert batch["@left"][parent].as_py() == 0
            assert batch["@depth"][parent].as_py() == batch["@depth"][index].as_py() - 1


# Kafka's rules for offsets and times, applied to columns.


def messages_by_reading(key: str, data: bytes) -> list[Any]:
    from wirekit.protocols.kafka.reading import messages_of

    names = ("offset", "timestamp", "timestamp_type", "key", "value", "attributes", "codec", "crc", "check")
    decoded = wirekit.decode(data, key, engine="reference")
    return [{name: getattr(each, name) for name in names} for each in messages_of(decoded)]


def messages_by_columns(key: str, data: bytes) -> list[Any]:
    from wirekit.protocols.kafka.columns import messages

    batch, _ = messages(data, key)
    batch.validate(full=True)
    plain = batch.set_column(1, "timestamp", batch["timestamp"].view(pa.int64()))
    return plain.to_pylist()


def log_append(number: int) -> bytes:
    """A wrapper whose time is the broker's, around one whose time is not, around messages of both magics."""
    inside: dict[str, Any] = {"messages": [message(n, n % 2, b"x") for n in range(4)]}
    middle = message(3, 1, {"content": inside}, 2)
    outer = message(number, 1, {"content": {"messages": [message(0, 1, None), middle, message(4, 0, b"z")]}}, 3)
    outer["message"]["attributes"]["timestamp_type"] = 1
    return wirekit.encode("kafka.message_set", {"messages": [outer, message(number + 1, 1, b"", timestamp=-1)]})


@pytest.mark.skipif(FEW, reason="reads no bytes")
def test_messages_as_reading_gives_them() -> None:
    for data in [*message_sets(), mixed(), log_append(90), log_append(1), log_append(2**63 - 2), b""]:
        assert messages_by_columns("kafka.message_set", data) == messages_by_reading("kafka.message_set", data)
    for data in files(".log"):
        assert messages_by_columns("kafka.log_segment", data) == messages_by_reading("kafka.log_segment", data)


def test_offsets_in_a_cut_wrapper_are_not_known() -> None:
    inner = wirekit.encode("kafka.message_set", {"messages": [message(n, 1, b"v") for n in range(2)]})
    data = wirekit.encode("kafka.message_set", {"messages": [message(9, 1, gzipped(inner[:-1]), 1)]})
    assert [each["offset"] for each in messages_by_columns("kafka.message_set", data)] == [None]
    assert messages_by_columns("kafka.message_set", data) == messages_by_reading("kafka.message_set", data)


# What has no columns, and the code.


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("columnstest.overflow", r"can exceed 64 bits"),
        ("columnstest.context", r"context\.version"),
    ],
)
def test_other_schemas_are_misuse(key: str, named: str) -> None:
    with pytest.raises(Misuse, match=named):
        wirekit.columns(key, b"")


def test_the_page_names_the_schemas_that_give_no_columns() -> None:
    refused = {}
    for key in wirekit.registry:
        try:
            program(key)
        except Misuse as error:
            refused[key] = str(error)
    assert "has several programs" in refused.pop("net.pcap")
    assert all(f"{key} has no columns: " in said for key, said in refused.items())
    page = (Path(__file__).parents[2] / "docs" / "columns.md").read_text(encoding="utf-8")
    section = page.partition("## What has no columns\n")[2].partition("\n## ")[0]
    named = {name for name in re.findall(r"`([\w.]+)`", section) if name in wirekit.registry}
    assert named == {key for key in refused if not key.startswith("columnstest.")}


def test_no_protocol_is_known_to_the_engine() -> None:
    modules = sorted(Path(str(compiler.__file__)).parent.rglob("*.py"))
    assert len(modules) > 40
    for module in modules:
        assert "wirekit.schemas" not in module.read_text(), module


def test_explain_prints_the_program_that_front_or_context_selects() -> None:
    from click.testing import CliRunner

    from wirekit.cli.explain import command

    asked = ["--engine", "columns"]
    led = CliRunner().invoke(command, ["net.pcap", *asked, "--front", str(FIXTURES / "pcap" / "jmq4-consume.pcap")])
    assert "emit r" in led.output
    assert "tcp.source_port: uint16?" in led.output
    printed = CliRunner().invoke(command, ["net.packet", *asked, "--context", "link_type=1"]).output
    assert printed == source("net.packet", context={"link_type": 1}) != source("net.packet", context={"link_type": 101})
    with pytest.raises(Misuse, match="--front"):
        source("net.pcap")
    front = ["--front", str(FIXTURES / "pcap" / "jmq4-consume.pcap")]
    building = CliRunner().invoke(command, ["net.pcap", "--engine", "build-columns", *front]).output
    assert "take r7 = seconds as uint32 little\n" in building


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["kafka.response", "--engine", "columns", "--context", "api=fech"], "kafka.response has no api 'fech'"),
        (["kafka.response", "--context", "api=fetch"], "--context applies to the columns engines"),
        (["net.pcap", "--front", __file__], "--front applies to the columns engines"),
    ],
)
def test_explain_refuses_options_without_effect(arguments: list[str], words: str) -> None:
    from click.testing import CliRunner

    from wirekit.cli.explain import command

    refused = CliRunner().invoke(command, arguments)
    assert (refused.exit_code, words in refused.output) == (2, True)


def test_explain_prints_the_program() -> None:
    from click.testing import CliRunner

    from wirekit.cli.explain import command

    printed = CliRunner().invoke(command, ["kafka.offset_index", "--engine", "columns"]).output
    assert printed == source("kafka.offset_index")
    assert printed.startswith("need 8 before end else cut or short relative_offset\n")


@pytest.mark.skipif(CHECKED, reason="this is the run with bounds checks")
@pytest.mark.skipif("WIREKIT_LONG" not in os.environ, reason="takes a minute: make test-long")
def test_with_bounds_checked() -> None:
    """All that reads bytes, once more with every index compared with its array."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            __file__,
            str(Path(__file__).with_name("test_columns_lists.py")),
            "-k",
            "samples or grow or mutated or random or length",
        ],
        check=False,
        env=os.environ | {"NUMBA_BOUNDSCHECK": "1", "WIREKIT_TEST_FEW": "1"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=290,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stdout
