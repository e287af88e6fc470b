"""Bytes of many records for the columns engine, and layouts of one's own."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import wirekit
from tests.fuzz.test_any_bytes import FIXTURES, samples
from wirekit.registry import Layout, Protocol
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


def entries(data: bytes) -> list[int]:
    """Where the messages of a set begin, and its end."""
    places, position = [], 0
    while position < len(data):
        places.append(position)
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return [*places, position]
