"""Columns of protobuf messages and of the records inside of records are what the rows engine decodes."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wirekit
from tests.agreement import walk
from wirekit import strategies
from wirekit.compiler.columns import program, scan
from wirekit.compiler.columns.scanning import LIBRARIES
from wirekit.compression import compress
from wirekit.errors import WireError
from wirekit.registry import Layout, Protocol, register
from wirekit.values import Record
from wirekit.wire import Compressed, Length, RecordsToEnd, Struct, Switch, rest, this, uint8, uint16

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pulsar"
FRAMES = sorted((FIXTURES / "frames").glob("*.frames.jsonl"))
KEY = "pulsar.frame"
# NUMBA_BOUNDSCHECK=1 compiles other code, and slow code.
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK") == "1"


def frames_of(path: Path) -> list[bytes]:
    return [bytes.fromhex(json.loads(line)["hex"]) for line in path.read_text().splitlines()]


def at(value: Any, path: list[str]) -> Any:
    """The value at a path; of a list, that of each element."""
    for index, name in enumerate(path):
        if isinstance(value, list):
            return [at(item, path[index:]) for item in value]
        value = value.get(name) if isinstance(value, Record) else None
    return value


def rows_of(key: str, data: bytes) -> tuple[list[dict[str, Any]], Any]:
    """What the columns of one frame must say: (values by path, of a row each)."""
    decoded = wirekit.decode(data, key)
    if decoded.error is not None:
        raise decoded.error
    frame = decoded.value
    payload = at(frame, ["entry", "payload"])
    content = payload.content if isinstance(payload, Record) and "compressed" in payload else payload
    if isinstance(content, Record):  # columns have a marker's bytes
        place = next(span for span in decoded.spans if span.path == "entry.payload")
        content = data[place.start : place.end]
    items = content if isinstance(content, list) and content else [None]
    return [{"frame": frame, "content": content, "item": item} for item in items], decoded


def expected(row: dict[str, Any], path: str) -> Any:
    if path == "entry.payload":
        return None if isinstance(row["content"], list) else row["content"]
    if path.startswith("entry.payload."):
        return None if row["item"] is None else at(row["item"], path.split(".")[2:])
    return at(row["frame"], path.split("."))


def same(cell_value: Any, want: Any) -> bool:
    if isinstance(want, str):
        want = want.encode(errors="surrogateescape").decode(errors="replace")
    if isinstance(want, list) and isinstance(cell_value, list):
        return len(cell_value) == len(want) and all(
            same(one, other) for one, other in zip(cell_value, want, strict=True)
        )
    return bool(cell_value == want)


def compare(key: str, parts: list[bytes]) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Columns of all parts against each part decoded by itself; those that do not decode must be errors."""
    batch, errors = walk.compare(key, b"".join(parts))
    listed = {name: batch[name].to_pylist() for name in batch.schema.names}
    row = position = 0
    failed = {
        offset
        for offset, depth in zip(errors["offset"].to_pylist(), errors["depth"].to_pylist(), strict=True)
        if not depth
    }
    inside = set(errors["wrapper"].to_pylist())
    for part in parts:
        try:
            rows, decoded = rows_of(key, part)
        except WireError:
            assert position in failed, position
            position += len(part)
            continue
        bad = {check.path for check in decoded.checks if check.status == "bad"}
        if position not in inside:
            for want in rows:
                assert listed["@offset"][row] == position
                for name, values in listed.items():
                    if name.startswith("@"):
                        continue
                    if name.endswith(".ok"):
                        of = name.removesuffix(".ok")
                        assert (values[row] is False) == any(
                            path == of
                            or (of.endswith(("command", "metadata")) and path.startswith(f"{of}."))
                            or (of == "entry.payload" and re.match(rf"{of}\.(?!content\[)", path))
                            for path in bad
                            if want["item"] is None or not of.startswith("entry.payload.")
                        ), (name, bad)
                        continue
                    assert same(values[row], expected(want, name)), (name, values[row], expected(want, name))
                row += 1
        else:
            while row < batch.num_rows and listed["@offset"][row] == position:
                row += 1
        position += len(part)
    assert row == batch.num_rows
    return batch, errors


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.name.partition(".")[0])
def test_columns_of_real_frames_are_their_values(path: Path) -> None:
    batch, _ = compare(KEY, frames_of(path))
    assert batch.num_rows > 0


def test_frames_of_all_captures_at_once() -> None:
    parts = [frame for path in FRAMES for frame in frames_of(path)]
    batch, errors = compare(KEY, parts)
    assert batch.num_rows > len(parts)
    assert "command.subscribe.topic" in batch.schema.names
    assert batch.schema.metadata[b"wirekit.errors"] == str(errors.num_rows).encode()


def single(index: int, **metadata: Any) -> dict[str, Any]:
    metadata = {"producer_name": "p", "sequence_id": index, "publish_time": 1_700_000_000_000 + index, **metadata}
    return {
        "command": {"type": "SEND", "send": {"producer_id": 1, "sequence_id": index}},
        "entry": {"metadata": metadata, "payload": b"v" * (index % 50)},
    }


def batched(count: int, **metadata: Any) -> dict[str, Any]:
    items = [{"metadata": {"payload_size": n, "partition_key": f"k{n}"}, "payload": b"x" * n} for n in range(count)]
    frame = single(7, num_messages_in_batch=count, **metadata)
    frame["entry"]["payload"] = {"content": items} if "compression" in metadata else items
    return frame


def encoded(*values: dict[str, Any]) -> list[bytes]:
    return [wirekit.encode(KEY, value) for value in values]


def test_a_row_is_an_application_message() -> None:
    parts = encoded(single(1), batched(3), batched(2, compression=2), batched(1, compression=3), single(2))
    batch, errors = compare(KEY, parts)
    assert errors.num_rows == 0
    assert batch["@index"].to_pylist() == [None, 0, 1, 2, 0, 1, 0, None]
    assert batch["entry.payload.metadata.partition_key"].to_pylist()[1:4] == ["k0", "k1", "k2"]
    assert batch["entry.payload.ok"].to_pylist() == [None, *[True] * 6, None]
    assert batch["entry.metadata.compression"].to_pylist()[1:6] == [None, None, None, 2, 2]


def test_a_batch_of_none_keeps_its_row() -> None:
    batch, errors = compare(KEY, encoded(batched(0), single(1)))
    assert (batch.num_rows, errors.num_rows) == (2, 0)


def test_batches_without_their_frames() -> None:
    items = [{"metadata": {"payload_size": n}, "payload": b"x" * n} for n in range(4)]
    data = wirekit.encode("pulsar.batch", {"messages": items})
    batch = wirekit.columns("pulsar.batch", data)
    assert batch["payload"].to_pylist() == [b"x" * n for n in range(4)]
    assert batch["metadata.payload_size"].to_pylist() == list(range(4))


def test_entries_one_after_the_other_have_no_end() -> None:
    value = wirekit.decode(encoded(single(1))[0], KEY).value
    entry = wirekit.encode("pulsar.entry", value.entry)
    assert wirekit.columns("pulsar.entry", entry)["metadata.sequence_id"].to_pylist() == [1]


def test_a_payload_that_does_not_decompress_stays_and_is_an_error() -> None:
    good, bad = encoded(batched(3, compression=2), batched(3, compression=2))
    at_payload = bad.rindex(b"\x78\x9c") if b"\x78\x9c" in bad else len(bad) - 8
    bad = bad[:at_payload] + bytes(len(bad) - at_payload)
    batch, errors = scan(KEY, good + bad + good)
    assert batch["entry.payload.ok"].to_pylist() == [*[True] * 3, False, *[True] * 3]
    assert batch["entry.checksum.ok"].to_pylist()[3] is False
    assert batch["entry.payload"].to_pylist()[3] == bad[at_payload:]
    assert errors["kind"].to_pylist() == ["decompression"]
    assert errors["offset"].to_pylist() == [len(good)]


def test_decompression_is_bounded() -> None:
    parts = encoded(single(0), single(1, compression=2, uncompressed_size=1 << 20))
    value = single(1, compression=2, uncompressed_size=1 << 20)
    value["entry"]["payload"] = {"content": bytes(1 << 20)}
    parts[1] = wirekit.encode(KEY, value)
    batch, errors = scan(KEY, b"".join(parts), limits=wirekit.Limits(decompressed=1000))
    assert batch.num_rows == 1
    assert errors["kind"].to_pylist() == ["limit"]


@pytest.mark.parametrize(
    "long",
    [{"producer_name": "p" * 10_000}, {"replicate_to": ["p" * 100] * 100}],
    ids=["text", "list"],
)
def test_fields_that_each_message_repeats_are_bounded(long: dict[str, Any]) -> None:
    frame, other, last = encoded(batched(1000, **long), batched(3, **long), single(1))
    batch, errors = scan(
        KEY, frame + other + last, limits=wirekit.Limits(memory=LIBRARIES + 20_000_000, memory_ratio=0)
    )
    assert errors.num_rows == 0
    assert batch.num_rows == 1004
    batch, errors = scan(KEY, frame + other + last, limits=wirekit.Limits(memory=LIBRARIES + 9_000_000, memory_ratio=0))
    assert batch["@index"].to_pylist() == [0, 1, 2, None]
    assert [errors[name].to_pylist() for name in ("kind", "path", "offset")] == [["limit"], ["entry.payload"], [0]]


def test_few_records_fit_the_smallest_memory() -> None:
    """The libraries alone may exceed the limit; a scan that needs no more arrays is complete all the same."""
    data = bytes.fromhex("0000000500000010") * 1000
    limits = wirekit.Limits(memory=1, memory_ratio=0)
    assert wirekit.columns("kafka.offset_index", data, limits=limits).num_rows == 1000


def test_records_beyond_the_memory_limit_are_warned_of(fixtures: Path) -> None:
    lines = (fixtures / "pulsar" / "frames" / "nobatch.frames.jsonl").read_text().splitlines()
    frames = [bytes.fromhex(each["hex"]) for each in map(json.loads, lines) if each["dir"] == "s2c"]
    data = b"".join(frames) * (2_000_000 // len(b"".join(frames)))
    whole = len(data) // len(b"".join(frames)) * len(frames)
    with pytest.warns(RuntimeWarning, match=r"columns: [\d,]+ bytes of pulsar\.frame exceed a limit .* \(memory\)"):
        batch = wirekit.columns(KEY, data)
    assert 0 < batch.num_rows < whole
    assert wirekit.columns(KEY, data, fields=["command.type"]).num_rows == whole
    assert wirekit.columns(KEY, data, limits=wirekit.Limits(memory=1 << 30)).num_rows == whole


@pytest.mark.parametrize("codec", [None, 2, 3], ids=["plain", "zlib", "zstd"])
def test_damage_in_a_batch(codec: int | None) -> None:
    """In a batch as it stands it is damage of the frame; in a compressed one it costs what is behind it in there."""
    chance = random.Random(11)
    depths = set()
    for _ in range(10 if CHECKED else 60):
        frame = batched(4)
        items = bytearray(wirekit.encode("pulsar.batch", {"messages": frame["entry"]["payload"]}))
        items[chance.randrange(len(items))] = chance.randrange(256)
        if codec is None:
            (data,) = encoded(frame)
            data = data[: len(data) - len(items)] + items
        else:
            frame["entry"]["metadata"] |= {"compression": codec, "uncompressed_size": len(items)}
            frame["entry"]["payload"] = {"compressed": compress({2: "zlib", 3: "zstd"}[codec], bytes(items))}
            (data,) = encoded(frame)
        good = encoded(single(1))[0]
        batch, errors = walk.compare(KEY, good + data + good)
        assert {0, len(good) + len(data)} <= set(batch["@offset"].to_pylist())
        depths |= set(errors["depth"].to_pylist())
    assert depths == {0 if codec is None else 1}


HELD = Struct("size" / Length(uint8, minimum=1, frame=True), "data" / rest(), name="Held")
HOLDER = Struct(
    "size" / Length(uint16),
    "codec" / uint8,
    "items"
    / Switch(
        this.codec,
        {0: RecordsToEnd(HELD), 2: rest()},
        default=Compressed(rest(), this.codec, {1: "zlib"}, RecordsToEnd(HELD)),
    ),
    name="Holder",
)


@pytest.fixture
def holders() -> Iterator[str]:
    """A layout of records that hold others, in which a limit can be passed."""
    protocol = Protocol("heldtest", "For the tests of columns", {"holders": Layout(RecordsToEnd(HOLDER))})
    register(protocol)
    yield "heldtest.holders"
    del wirekit.registry._schemas["heldtest.holders"]
    del wirekit.registry._protocols["heldtest"]


def test_a_limit_exceeded_inside_a_record_is_an_error_with_its_path(holders: str) -> None:
    parts = []
    for items in (b"\x01a\x02bc", b"\x01a\x09bcdefghij\x01k", b"\x01a\x03b", b"\x00\x09bcdefghij"):
        for codec in (0, 1):
            payload = b"\x01" + compress("zlib", items) if codec else b"\x00" + items
            parts.append(len(payload).to_bytes(2, "big") + payload)
    batch, errors = walk.compare(holders, b"".join(parts), wirekit.Limits(frame=8))
    assert [error["path"] for error in errors.to_pylist() if error["kind"] == "limit"] == [
        "items[1].size",
        "items.content[1].size",
    ]
    assert batch["@offset"].to_pylist()[:4] == [0, 0, len(parts[0]), len(parts[0])]


def test_fields_that_are_asked_for_are_there_and_no_others() -> None:
    data = b"".join(encoded(single(1)))
    fields = ("command.send", "command.ack.message_id.ledgerId", "entry.metadata.properties.key", "@offset")
    batch = wirekit.columns(KEY, data, fields=fields)
    names = batch.schema.names
    assert {"command.send.producer_id", "command.ack.message_id.ledgerId", "entry.metadata.properties.key"} < set(names)
    assert all(any(name == each or name.startswith(f"{each}.") for each in fields) for name in names)
    assert batch["entry.metadata.properties.key"].to_pylist() == [[]]
    assert batch["command.ack.message_id.ledgerId"].to_pylist() == [None]
    assert wirekit.columns(KEY, data)["command.send.producer_id"].equals(batch["command.send.producer_id"])


def test_messages_that_do_not_occur_have_no_columns() -> None:
    names = wirekit.columns(KEY, b"".join(encoded(single(1)))).schema.names
    assert "command.send.sequence_id" in names
    assert not any(name.startswith("command.subscribe") for name in names)


def test_fields_without_a_column_are_listed() -> None:
    paths = wirekit.columns(KEY, b"").schema.metadata[b"wirekit.left_out"]
    left_out = json.loads(paths)
    assert "command.send.message_id.first_chunk_message_id" in left_out
    assert all(program(KEY).program.messages[0].slots.get(path) is None for path in left_out)


def test_the_name_of_a_protocol_stands_for_its_frames() -> None:
    data = b"".join(encoded(single(1), single(2)))
    assert wirekit.columns("pulsar", data).equals(wirekit.columns(KEY, data))


# A message read by hand: the rules that real frames do not show. Field 1 is the type, 6 is SEND, 6.1 the producer.


def framed(command: bytes) -> bytes:
    body = len(command).to_bytes(4, "big") + command
    return len(body).to_bytes(4, "big") + body


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


ODD = {
    "the last one wins": b"\x08\x02\x08\x12",
    "no field at all": b"",
    "a varint longer than needed": b"\x08\x92\x80\x80\x00",
    "a value of an enum that has no name": b"\x08\xff\x01",
    "a negative enum": b"\x08" + b"\xff" * 9 + b"\x01",
    "an unknown field": b"\x08\x12\xf8\x7f\x05",
    "unknown fixed fields": b"\x08\x12\xf9\x7f" + bytes(8) + b"\xfd\x7f" + bytes(4),
    "another wire type": b"\x0a\x01x\x08\x12",
    "a group": b"\x08\x12\x0b\x0c",
    "a field number of 0": b"\x08\x12\x00\x00",
    "the largest field number": b"\x08\x12\xf8\xff\xff\xff\x0f\x05",
    "a field number of 30 bits": b"\x08\x12\x80\x80\x80\x80\x10\x05",
    "a field number of 61 bits": b"\x08\x12\xf8" + b"\xff" * 8 + b"\x01\x05",
    "a wire type of 7": b"\x08\x12\xff\x7f",
    "a varint without an end": b"\x08\xff",
    "a varint of 11 bytes": b"\x08" + b"\xff" * 10 + b"\x01",
    "a string beyond the message": b"\x08\x12\x12\x7f\x0a",
    "a message inside that is cut": b"\x08\x12" + field(6, b"\x08"),
    "a required field inside is missing": b"\x08\x12" + field(6, b"\x08\x01"),
    "a message inside comes again": b"\x08\x12" + field(6, b"\x08\x01\x10\x02\x18\x03") + field(6, b"\x08\x05"),
    "text that is no UTF-8": b"\x08\x12" + field(2, field(1, b"a\xff\xfeb") + b"\x10\x01"),
    "a list, then the message again": b"\x08\x12"
    + field(7, field(3, b"\x28\x07\x28\x08"))
    + field(7, field(3, b"\x28\x09")),
    "a packed list": b"\x08\x12" + field(7, field(3, field(5, b"\x07\x81\x01\xff\x7f") + b"\x28\x03")),
    "a packed list that is cut": b"\x08\x12" + field(7, field(3, field(5, b"\x07\x81"))),
    "a message inside of its own type": b"\x08\x12" + field(7, field(3, field(7, b"\x08\x01\x10\x02"))),
    "one that is cut": b"\x08\x12" + field(7, field(3, field(7, b"\x08"))),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_messages(name: str) -> None:
    plain = framed(b"\x08\x12")
    compare(KEY, [plain, framed(ODD[name]), plain])


def test_messages_inside_of_messages_are_bounded() -> None:
    inner = b""
    for _ in range(120):
        size = len(inner)
        inner = b"\x3a" + (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + inner
    size = len(inner)
    length = bytes([size & 127 | 128, size >> 7])
    ack = b"\x1a" + length + inner
    size = len(ack)
    command = b"\x08\x12\x3a" + bytes([size & 127 | 128, size >> 7]) + ack
    batch, errors = scan(KEY, framed(command) + framed(b"\x08\x12"))
    assert errors["kind"].to_pylist() == ["limit"]
    assert batch.num_rows == 1


def test_many_lists_make_the_arrays_grow() -> None:
    parts = []
    for count in range(120):
        properties = [{"key": f"k{n}", "value": "v" * n} for n in range(count)]
        parts += encoded(single(count, properties=properties, replicate_to=["a"] * (count % 7)))
    compare(KEY, parts)


@settings(max_examples=5 if CHECKED else settings().max_examples)
@given(st.lists(strategies.frames(KEY), min_size=1, max_size=5))
def test_any_frames(parts: list[bytes]) -> None:
    compare(KEY, parts)


def test_damage_never_costs_a_neighbour() -> None:
    chance = random.Random(5)
    whole = [frame for path in FRAMES for frame in frames_of(path) if len(frame) < 400]
    for _ in range(10 if CHECKED else 150):
        parts = [bytearray(part) for part in chance.sample(whole, 12)]
        for part in chance.sample(parts, 6):
            for _ in range(chance.randrange(1, 4)):
                part[chance.randrange(8, len(part))] = chance.randrange(256)  # sizes in front stay
        compare(KEY, [bytes(part) for part in parts])


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    batch, errors = scan(KEY, data)
    batch.validate(full=True)
    errors.validate(full=True)


def test_a_message_alone_is_one_record() -> None:
    data = wirekit.encode("pulsar.command", SEND)
    batch = wirekit.columns("pulsar.command", data, fields=["type", "send", "ok"])
    assert batch.to_pylist()[0] | {"type": 6, "send.sequence_id": 7, "ok": True} == batch.to_pylist()[0]
    assert wirekit.columns("pulsar.command", b"").num_rows == 0


METADATA = {"producer_name": "p", "sequence_id": 7, "publish_time": 1}
SEND = {"type": "SEND", "send": {"producer_id": 0, "sequence_id": 7}}
ONE = {"metadata": {}, "payload": "6f6e65"}


def sent(payload: Any, **metadata: Any) -> dict[str, Any]:
    return {"command": SEND, "entry": {"metadata": METADATA | metadata, "payload": payload}}


UNUSUAL: dict[str, tuple[dict[str, Any], str]] = {
    "a type without its message": ({"command": {"type": "PING", "$keep": ["ping"]}}, "command.ok"),
    "a type without a name": ({"command": {"type": 99, "$keep": ["type"]}}, "command.ok"),
    "a required number without a name": (
        {"command": {"type": "ACK", "ack": {"consumer_id": 1, "ack_type": 9, "$keep": ["ack_type"]}}},
        "command.ok",
    ),
    "a wrong size beside plain data": (
        sent("6f6e65", uncompressed_size=9, **{"$keep": ["uncompressed_size"]}),
        "entry.metadata.ok",
    ),
    "a marker that is none": (sent("ff", marker_type=10), "entry.payload.ok"),
    "a marker with text that is not UTF-8": (sent({"snapshot_id": "\udcff"}, marker_type=10), "entry.payload.ok"),
    "a marker without a required field": (sent({"$keep": ["snapshot_id"]}, marker_type=10), "entry.payload.ok"),
    "a marker": (sent({"snapshot_id": "s"}, marker_type=10), ""),
    "a chunk": (sent("6f6e65", num_chunks_from_msg=2, uncompressed_size=9), ""),
    "cipher text": (sent("6f6e65", encryption_keys=[{"key": "k", "value": "00"}], uncompressed_size=9), ""),
    "a compacted batch": (
        sent([ONE], compacted_batch_indexes=[3], num_messages_in_batch=5, **{"$keep": ["num_messages_in_batch"]}),
        "",
    ),
}


@pytest.mark.parametrize(("value", "failed"), UNUSUAL.values(), ids=UNUSUAL)
def test_verdicts_are_those_of_rows(value: dict[str, Any], failed: str) -> None:
    data = wirekit.encode(KEY, value)
    batch, _ = compare(KEY, [data, wirekit.encode(KEY, sent("00")), data])
    bad = {name for name in batch.schema.names if name.endswith("ok") and batch[name].to_pylist()[0] is False}
    assert bad == ({failed} if failed else set())
