"""Columns of layouts that no registered protocol declares, each of which has shown a fault."""

from __future__ import annotations

import gzip
import itertools
import struct
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.agreement import walk
from tests.agreement.law import agree
from tests.own import declared, own
from wirekit.compiler.columns import scan
from wirekit.registry import Layout, Protocol
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Checked,
    Compressed,
    Const,
    Flag,
    If,
    IfMore,
    IfNext,
    IfThenElse,
    Length,
    Limits,
    Node,
    Protobuf,
    RecordsToEnd,
    Ref,
    Repeat,
    Sized,
    String,
    Struct,
    Switch,
    Timestamp,
    context,
    float32,
    int8,
    int16,
    int32,
    int64,
    rest,
    this,
    uint8,
    uint32,
    uint64,
)


@pytest.mark.parametrize(
    ("node", "data"),
    [
        (Array(int8, Bits(uint8, "low" / Bit(4), "high" / Bit(4), order="lsb")), "0112"),
        (Struct("a" / Sized(int8, Const(Flag(uint8), True, fatal=False), null=-1), "b" / int8), "010107"),
        (Struct("a" / Sized(int8, Struct("crc" / Checked(uint32, "crc32", "n"), "n" / Const(int8, 3)), null=-1)), "ff"),
    ],
)
def test_columns_are_built_back_into_the_same_bytes(node: Node, data: str) -> None:
    with own(node) as key:
        agree(key, bytes.fromhex(data), {})
        batch = wirekit.columns(key, bytes.fromhex(data))
        assert wirekit.build_columns(key, batch).hex() == data


def test_bit_fields_alone_are_called_by_their_names() -> None:
    with own(Array(int8, Bits(uint8, "low" / Bit(4), "high" / Bit(4), order="lsb"))) as key:
        batch = wirekit.columns(key, b"\x01\x12")
        assert batch.select(["low", "high"]).to_pylist() == [{"low": 2, "high": 1}]


def test_a_record_of_no_bytes_is_refused() -> None:
    """A null that is there is no other in a column than one that is not; no reader would find the record."""
    with own(Struct("a" / IfMore(Bytes(int8, null=-1)))) as key:
        batch = wirekit.columns(key, b"\xff")
        with pytest.raises(wirekit.Misuse, match="it takes no bytes, so no reader would find it"):
            wirekit.build_columns(key, batch)


@pytest.mark.parametrize(
    ("constant", "data"),
    [
        (Const(uint8, 0, fatal=False), "01026162 07  00 03 05  00 00 05"),
        (Const(Flag(uint8), True, fatal=False), "01026162 07  00 00 05  00 01 05"),
        (IfNext(b"\0", Const(uint8, 0)), "01026162 07  00 00 05  00 05"),
    ],
)
def test_a_constant_has_its_own_column_beside_that_of_an_alternative(constant: Node, data: str) -> None:
    layout = Struct("a" / uint8, "b" / IfThenElse(this.a == 1, Bytes(int8), constant), "c" / uint8)
    with own(layout) as key:
        batch = wirekit.columns(key, bytes.fromhex(data))
        assert wirekit.build_columns(key, batch) == bytes.fromhex(data)
        stale = batch.set_column(batch.schema.get_field_index("b"), "b", pa.array([b"ab", b"ab", None]))
        with pytest.raises(wirekit.Misuse, match="row 1: b: has a value, but the layout has none here"):
            wirekit.build_columns(key, stale)


def test_a_record_that_begins_with_the_bytes_that_end_the_list_is_refused() -> None:
    pair = Struct("a" / uint8, "b" / uint8)
    with own(RecordsToEnd(pair, until=b"\0\0")) as key:
        assert wirekit.columns(key, b"\0\0\0\1").num_rows == 0
        assert wirekit.columns(key, b"\0\1\0\0\0").num_rows == 1
        with pytest.raises(wirekit.Misuse, match="row 0: it begins with the bytes that end the list"):
            wirekit.build_columns(key, pa.RecordBatch.from_pydict({"a": [0], "b": [0]}))
    with own(RecordsToEnd(pair, until=b"\0\0", except_first=True)) as key:
        first = pa.RecordBatch.from_pydict({"a": [0, 0], "b": [0, 1]})
        assert wirekit.build_columns(key, first) == b"\0\0\0\1"
        assert wirekit.columns(key, b"\0\0\0\1").num_rows == 2
        with pytest.raises(wirekit.Misuse, match="row 1: it begins with the bytes that end the list"):
            wirekit.build_columns(key, pa.RecordBatch.from_pydict({"a": [1, 0], "b": [0, 0]}))


def test_a_length_is_known_behind_the_fields_that_it_covers() -> None:
    with own(Struct("n" / Length(int8, "a"), "a" / Bytes(int8), "b" / If(this.n == 3, int8))) as key:
        data = b"\x03\x02ab\x07" + b"\x02\x01a"
        batch = wirekit.columns(key, data)
        assert batch["b"].to_pylist() == [7, None]
        assert wirekit.build_columns(key, batch) == data


@pytest.mark.parametrize(
    ("node", "data"),
    [
        (Struct("nothing" / IfNext(b"\0\0", rest()), "items" / RecordsToEnd(int16)), "000000"),
        (Array(int8, int16, null=-1), "ff"),
    ],
)
def test_a_list_that_other_bytes_replace_has_no_records(node: Node, data: str) -> None:
    with own(node) as key:
        batch, errors = scan(key, bytes.fromhex(data))
    assert (batch.num_rows, errors.num_rows) == (0, 0)
    assert int(batch.schema.metadata[b"wirekit.consumed"]) == len(data) // 2


def test_elements_that_hold_nothing_are_counted() -> None:
    with own(Array(int8, Array(int16, If(context.name == "x", Struct())))) as key:
        assert wirekit.columns(key, bytes.fromhex("0200010000")).num_rows == 2


@pytest.mark.parametrize("times", ["timestamp", "int"])
def test_a_batch_without_columns_has_its_rows(times: str) -> None:
    with own(Array(int8, Struct("a" / int8, "time" / Timestamp(int64)))) as key:
        batch = wirekit.columns(key, bytes([2]) + bytes(18), fields=[], times=times)
        assert (batch.num_rows, batch.num_columns) == (2, 0)


def test_a_limit_inside_a_record_that_is_cut_is_placed_in_the_data_that_it_counts_in() -> None:
    with declared(Protocol("nest", "A test's own", {"main": Layout(RecordsToEnd(HOLDER))})):
        plain, inside = record(b"a"), record(gzip.compress(record(b"x")), codec=1)
        data = plain + record(gzip.compress(plain + inside), codec=1, more=5)
        _, errors = walk.compare("nest.main", data, Limits(depth=1))
        (error,) = errors.to_pylist()
        assert (error["path"], error["at"], error["at_depth"]) == ("data.content[1].data", len(plain + inside), 1)


def test_a_length_behind_that_is_not_there_has_no_verdict() -> None:
    with own(Struct("a" / Bytes(int8), "n" / IfMore(Length(int8, "a")))) as key:
        verdicts = [
            wirekit.columns(key, bytes.fromhex(data))["n.ok"].to_pylist() for data in ("0141", "014102", "014103")
        ]
        assert verdicts == [[None], [True], [False]]


HOLDER = Struct(
    "size" / Length(int32), "codec" / int8, "data" / Compressed(Bytes(int32), this.codec, {1: "gzip"}, Ref("nest.main"))
)


ALTERNATIVES = (
    (int8, 5),
    (String(int8), "text"),
    (Bytes(int8, null=-1), None),
    (Array(int8, int16), [1, 2]),
    (Array(int8, Bytes(int8)), [b"a", b"b"]),
    (Array(int8, Struct("a" / int8, "b" / Array(int8, int8))), [{"a": 1, "b": [2]}]),
)


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(ALTERNATIVES, 2)))
def test_alternatives_are_lists_or_not_in_any_order(first: tuple[Node, Any], second: tuple[Node, Any]) -> None:
    with own(Struct("kind" / int8, "body" / Switch(this.kind, {1: first[0], 2: second[0]}))) as key:
        values = [{"kind": 1, "body": first[1]}, {"kind": 2, "body": second[1]}, {"kind": 1, "body": first[1]}]
        data = b"".join(wirekit.encode(key, value) for value in values)
        _, errors = walk.compare(key, data)
        assert errors.num_rows == 0
        assert wirekit.build_columns(key, wirekit.columns(key, data)) == data


def record(data: bytes, *, codec: int = 0, more: int = 0) -> bytes:
    """One record; ``more`` is what its length tells of and is not there."""
    body = struct.pack(">bi", codec, len(data)) + data
    return struct.pack(">i", len(body) + more) + body


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (
            Struct("n" / uint32, "l" / Repeat(this.n, Struct("a" / If(this._.n > 3, int8)))),
            "a field outside the record",
        ),
        (Struct("v" / Bytes(this._.n)), "a field outside the record"),
        (
            Struct(
                "b" / Sized(int8, Protobuf("wirekit.proto.PulsarApi_pb2:MessageIdData")), "v" / Bytes(this.b.nosuch)
            ),
            "a field that columns do not have",
        ),
        (Struct("a" / Const(uint64, 2**64 - 1)), "of an unsigned number of 64 bits"),
        (Struct("a" / Bytes(uint64)), "its length is an unsigned number of 64 bits; declare a signed one"),
        (Struct("a" / Const(float32, 1.5)), "of a float"),
        (Struct("a" / Const(Bits(uint8, "x" / Bit(8), order="lsb"), 1)), "of bit fields"),
    ],
)
def test_a_refusal_names_the_reason(node: Node, why: str) -> None:
    with own(node) as key, pytest.raises(wirekit.Misuse, match=rf"has no columns: .*\({why}\)"):
        wirekit.columns(key, b"")
