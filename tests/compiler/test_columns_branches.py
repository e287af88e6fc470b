"""Columns of choices, conditions, fallbacks and packets are what the reference engine decodes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wirekit
from tests.agreement import walk
from tests.own import own
from wirekit.compiler.columns import program, scan
from wirekit.compiler.columns.programs import led_program
from wirekit.compiler.columns.run import as_array
from wirekit.errors import Misuse
from wirekit.registry import Layout, Protocol, register
from wirekit.values import Record
from wirekit.wire import (
    Bytes,
    Checked,
    Const,
    Default,
    If,
    IfNext,
    IfThenElse,
    Length,
    Lookahead,
    OrBytes,
    RecordsToEnd,
    Sized,
    String,
    Struct,
    Switch,
    int8,
    int16,
    int64,
    rest,
    this,
    uint8,
    uint16,
    uint32,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pcap"

POINT = Struct("x" / int8, "y" / int16, name="Point")
SHAPE = Struct(
    "size" / Length(uint8, minimum=2),
    "kind" / Lookahead(uint8),
    "again" / uint8,
    "value"
    / Switch(
        this.kind,
        {1: int8, 2: Struct("a" / uint8, "b" / Bytes(uint8), name="Pair"), 3: String(uint8), 4: int64, 5: POINT},
        default=rest(),
    ),
    "more" / IfNext(b"\x0e\x01", Const(uint16, 0x0E01)),
    "sum" / If(this.more == 0x0E01, Checked(uint32, "crc32c", "tail")),
    "maybe" / IfThenElse(this.again == 2, OrBytes(Struct("n" / uint8, "m" / Bytes(this.n), name="Fit")), rest()),
    "tail" / rest(),
    name="Shape",
)
INNER = Struct("n" / uint8, "text" / String(uint8), name="Inner")
BOX = Struct("kind" / uint8, "there" / Sized(int16, INNER, null=-1), name="Box")
CLIPPED = Struct(
    "length" / Length(uint8, of="data", zero_is_rest=True, clip=True, minimum=2),
    "data" / Bytes(this.length - this.length),
    "end" / rest(),
    name="Clipped",
)
LAST = Struct("number" / uint8, "data" / Bytes(2), name="Last")
WAY = Struct("w" / uint8, "inner" / Switch(this.w, {1: LAST}, default=rest()), name="Way")
WAYS = Struct(
    "k" / uint8,
    "v" / Switch(this.k, {0: LAST, 1: WAY, 2: Struct("z" / uint8, "inner" / LAST, name="Other")}, default=rest()),
    "trailer" / rest(),
    name="Ways",
)
FRONT = Struct(
    "magic" / uint8,
    "wide" / uint8,
    "items"
    / Switch(
        this.magic,
        {
            1: RecordsToEnd(Struct("v" / Switch(this._.wide, {1: int16}, default=int8))),
            2: RecordsToEnd(Struct("w" / uint32)),
        },
    ),
    name="Front",
)

PROTOCOL = Protocol(
    "branchtest",
    "For the tests of columns",
    {
        "shapes": Layout(RecordsToEnd(SHAPE)),
        "boxes": Layout(RecordsToEnd(BOX)),
        "clipped": Layout(RecordsToEnd(Struct("size" / Length(uint8), "of" / CLIPPED))),
        "ways": Layout(RecordsToEnd(Struct("size" / Length(uint8), "of" / OrBytes(WAYS)))),
        "front": Layout(FRONT),
        "closed": Layout(RecordsToEnd(Struct("k" / uint8, "v" / Switch(this.k, {1: int8})))),
        "default": Layout(
            RecordsToEnd(Struct("k" / uint8, "v" / Default(Switch(this.k, {1: int8}, default=int16), 0)))
        ),
    },
)


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """The layouts above are there for these tests only."""
    register(PROTOCOL)
    yield
    registry = wirekit.registry
    for name in PROTOCOL.layouts:
        del registry._schemas[PROTOCOL.key(name)]
    del registry._protocols[PROTOCOL.name]


def flat(value: Any, path: str, shared: set[str], fields: dict[str, Any]) -> None:
    """The fields of a record by the names of their columns."""
    if isinstance(value, Record):
        name = type(value).__name__.lower()
        for each, inner in value.items():
            prefix = name if name in shared else path
            flat(inner, f"{prefix}.{each}" if prefix else each, shared, fields)
    else:
        fields[path] = value


def compare(key: str, parts_: list[bytes], records: list[Any], shared: set[str]) -> pa.RecordBatch:
    """Columns against records; None stands for one that does not decode."""
    batch, errors = walk.compare(key, b"".join(parts_))
    assert errors.num_rows == records.count(None)
    good = [record for record in records if record is not None]
    assert batch.num_rows == len(good)
    for row, record in zip(batch.to_pylist(), good, strict=True):
        want: dict[str, Any] = {}
        flat(record, "", shared, want)
        want = {name: value for name, value in want.items() if value is not None}
        cells = {name: value for name, value in row.items() if value is not None and not name.endswith(".ok")}
        cells = {name.partition(":")[0]: value for name, value in cells.items() if not name.startswith("@")}
        assert {name: shown(value) for name, value in cells.items()} == {
            name: shown(value) for name, value in want.items()
        }
    return batch


def shown(value: Any) -> Any:
    return value.encode(errors="surrogateescape").decode(errors="replace") if isinstance(value, str) else value


def one_by_one(key: str, data: bytes) -> list[Any]:
    """Each record of a list by itself, None where it does not decode."""
    element = wirekit.decode(data, key)
    return [None] if element.error is not None else list(element.value)


def sized(*bodies: bytes) -> list[bytes]:
    return [bytes([len(body)]) + body for body in bodies]


SHAPES = sized(
    b"\x01\x05",
    b"\x02\x07\x02ab\x02xy",
    b"\x02\x07\x02ab\x09xy",
    b"\x03\x03gr\xc3",
    b"\x04" + bytes(8) + b"tail",
    b"\x05\x01\x00\x02\x0e\x01\x00\x00\x00\x00",
    b"\x09anything",
    b"\x01\x05\x0e\x01\xc0\xff\xee\x00",
)


def test_alternatives_are_nullable_columns() -> None:
    batch = compare("branchtest.shapes", SHAPES, [one_by_one("branchtest.shapes", part)[0] for part in SHAPES], set())
    assert batch["value"].to_pylist()[0] == 5
    assert {"value", "value:text", "value:bytes", "value.a", "value.x"} <= set(batch.schema.names)
    assert batch["maybe.ok"].to_pylist()[:3] == [None, True, False]
    assert batch["sum.ok"].to_pylist()[5:] == [True, None, False]


@settings(max_examples=30)
@given(st.lists(st.binary(min_size=2, max_size=20), max_size=8))
def test_any_shapes(bodies: list[bytes]) -> None:
    data = sized(*bodies)
    records = [one_by_one("branchtest.shapes", part)[0] for part in data]
    compare("branchtest.shapes", data, records, set())


def test_a_length_in_front_that_may_be_null() -> None:
    data = [b"\x01\xff\xff", b"\x02\x00\x05\x07\x02ab!", b"\x03\x00\x02\x01\x00"]
    batch = compare("branchtest.boxes", data, [one_by_one("branchtest.boxes", part)[0] for part in data], set())
    assert batch["there.n"].to_pylist() == [None, 7, 1]
    assert batch["@gap"].to_pylist() == [0, 1, 0]


def test_a_length_that_is_cut_or_means_the_rest() -> None:
    data = sized(b"\x00abc", b"\x02ab", b"\x09ab", b"\x03abcde")
    batch = compare("branchtest.clipped", data, [one_by_one("branchtest.clipped", part)[0] for part in data], set())
    assert batch["of.length.ok"].to_pylist() == [True, True, False, True]
    _, errors = walk.compare("branchtest.clipped", b"\x02\x01a")
    assert errors["kind"].to_pylist() == ["wrong"]


def test_a_structure_reached_by_several_ways_has_one_set_of_columns() -> None:
    data = sized(b"\x00\x07ab!", b"\x01\x01\x08cd", b"\x01\x02xy", b"\x02\x09\x0aef??", b"\x05rest", b"\x00\x07a")
    records = [one_by_one("branchtest.ways", part)[0] for part in data]
    batch = compare("branchtest.ways", data, records, {"last"})
    assert batch["last.number"].to_pylist() == [7, 8, None, 10, None, None]
    assert batch["last.data"].to_pylist() == [b"ab", b"cd", None, b"ef", None, None]
    assert batch["of.trailer"].to_pylist() == [b"!", b"", b"", b"??", b"", None]
    assert batch["of"].to_pylist() == [*[None] * 5, b"\x00\x07a"]


def test_the_header_selects_the_layout() -> None:
    narrow, errors = scan("branchtest.front", b"\x01\x00\x05\x06")
    assert (narrow["v"].to_pylist(), errors.num_rows) == ([5, 6], 0)
    assert json.loads(narrow.schema.metadata[b"wirekit.front"]) == {"magic": 1, "wide": 0}
    assert scan("branchtest.front", b"\x01\x01\x00\x06")[0]["v"].to_pylist() == [6]
    assert scan("branchtest.front", b"\x02\x01\x00\x00\x00\x06")[0]["w"].to_pylist() == [6]
    for data, kind, path in ((b"\x01", "short", "wide"), (b"\x07\x00\x05", "wrong", "items")):
        batch, errors = walk.compare("branchtest.front", data)
        assert (batch.num_rows, errors["kind"].to_pylist(), errors["path"].to_pylist()) == (0, [kind], [path])


def test_no_case_is_wrong() -> None:
    batch, errors = walk.compare("branchtest.closed", b"\x01\x05\x02\x05")
    assert (batch["v"].to_pylist(), errors["kind"].to_pylist()) == ([5], ["wrong"])


def test_expressions_read_the_fields_of_a_choice_without_cases() -> None:
    record = Struct("x" / uint8, "a" / Switch(this.x, {}, default=Struct("n" / uint8)), "data" / Bytes(this.a.n))
    with own(Struct("records" / RecordsToEnd(record))) as key:
        data = bytes.fromhex("01 03 616263 02 00 03 01 64")
        batch = wirekit.columns(key, data)
        assert batch.select(["x", "a.n", "data"]).to_pylist() == [
            {"x": 1, "a.n": 3, "data": b"abc"}, {"x": 2, "a.n": 0, "data": b""}, {"x": 3, "a.n": 1, "data": b"d"},
        ]  # fmt: skip
        assert wirekit.build_columns(key, batch) == data


def test_numbers_of_alternatives_share_a_column_that_is_wide_enough() -> None:
    batch = wirekit.columns("branchtest.default", b"\x01\x05\x02\x01\x00")
    assert (batch["v"].type, batch["v"].to_pylist()) == (pa.int16(), [5, 256])


def packets_of(path: Path) -> tuple[bytes, list[bytes], list[Any]]:
    data = path.read_bytes()
    records = list(wirekit.decode(data, "net.pcap").value.packets)
    cut, position = [], 24
    for record in records:
        cut.append(data[position : position + 16 + record.captured_length])
        position += len(cut[-1])
    return data[:24], cut, records


def test_packets_of_captures_down_to_tcp() -> None:
    shared = {"ipv4", "ipv6", "tcp"}
    for path in sorted(FIXTURES.glob("*.pcap")):
        head, cut, records = packets_of(path)
        batch = compare("net.pcap", [head, *cut], records, shared)
        assert batch["tcp.destination_port"].null_count < batch.num_rows
        damaged = []
        chance = random.Random(3)
        for part in cut:
            changed = bytearray(part)
            for _ in range(chance.randrange(3)):
                changed[chance.randrange(16, len(part))] = chance.randrange(256)
            damaged.append(bytes(changed))
        packets = wirekit.decode(head + b"".join(damaged), "net.pcap").value.packets
        batch = compare("net.pcap", [head, *damaged], list(packets), shared)
        assert batch.num_rows == len(cut)


def test_a_kernel_needs_the_fields_of_the_header() -> None:
    with pytest.raises(Misuse, match="the fields before its records select their layout"):
        program("net.pcap")


def test_there_are_as_many_programs_as_cases_whatever_bytes_say() -> None:
    limits = wirekit.registry["net.pcap"].limits
    programs = set()
    for number in (1, 147, 9999, 54321):
        front = {"magic_number": 0xA1B2C3D4, "header": {"link": {"type": number}}}
        file = wirekit.encode("net.pcap", {**front, "packets": [{"seconds": 1, "data": "00"}]})
        programs.add(id(led_program("net.pcap", as_array(file), limits)[0]))
    assert len(programs) == 2


def test_the_verdict_on_a_record_as_a_whole_is_called_ok() -> None:
    with own(OrBytes(Struct("a" / uint16))) as key:
        batch = wirekit.columns(key, b"\x01")
        assert batch["ok"].to_pylist() == [False]
        assert batch[""].to_pylist() == [b"\x01"]
        batch = pa.RecordBatch.from_arrays(batch.columns[:3], batch.schema.names[:3])
        assert wirekit.build_columns(key, batch) == b"\x01"
