"""Varints and integers of 3, 5, 6 and 7 bytes: their bytes, their bounds, what they may stand in front of."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.compiler.engines import ENCODERS
from wirekit.errors import Limit, Misuse, Short, Wrong
from wirekit.values import SymbolTable
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Checked,
    Const,
    Flag,
    If,
    Integer,
    Length,
    Limits,
    Node,
    RecordsToEnd,
    Sized,
    String,
    Struct,
    Symbols,
    Timestamp,
    Varint,
    float32,
    float32le,
    float64,
    int16,
    int24,
    int24le,
    int40,
    int56le,
    sleb32,
    sleb64,
    this,
    uint24,
    uint32,
    uint48,
    uint56,
    varint32,
    varint64,
    zigzag32,
    zigzag64,
)

KINDS = SymbolTable("kind", {1: "ONE", 300: "MANY"})
AROUND_BYTES = [2**bits + more for bits in (7, 8, 14, 16, 21, 24, 28, 32, 40, 48, 56) for more in (-1, 0)]


@pytest.mark.parametrize(
    ("node", "value", "data"),
    [
        (varint32, 0, "00"),
        (varint32, 127, "7f"),
        (varint32, 128, "8001"),
        (varint32, 2**32 - 1, "ffffffff0f"),
        (varint64, 2**64 - 1, "ffffffffffffffffff01"),
        (Varint(32, groups=4), 268_435_455, "ffffff7f"),  # the most of MQTT 3.1.1, table 2.4
        (zigzag32, -1, "01"),
        (zigzag32, 1, "02"),
        (zigzag32, -(2**31), "ffffffff0f"),
        (zigzag64, 2**63 - 1, "feffffffffffffffff01"),
        (sleb32, 2, "02"),  # these up to 129 from DWARF 5, table 7.8
        (sleb32, -2, "7e"),
        (sleb32, 127, "ff00"),
        (sleb32, -127, "817f"),
        (sleb32, 128, "8001"),
        (sleb32, -129, "ff7e"),
        (sleb64, -123456, "c0bb78"),  # Wikipedia, LEB128
        (sleb32, -(2**31), "8080808078"),
        (sleb64, 2**63 - 1, "ffffffffffffffffff00"),
        (sleb64, -(2**63), "8080808080808080807f"),
        (Varint(32, form="vlq"), 0x80, "8100"),  # these from the Standard MIDI File 1.0, table 1
        (Varint(32, form="vlq"), 0x1FFFFF, "ffff7f"),
        (Varint(32, form="vlq", groups=4), 0x0FFFFFFF, "ffffff7f"),
        (Varint(64, form="vlq"), 2**64 - 1, "81ffffffffffffffff7f"),
        (Varint(64, form="quic"), 37, "25"),  # these from RFC 9000, A.1
        (Varint(64, form="quic"), 15293, "7bbd"),
        (Varint(64, form="quic"), 494_878_333, "9d7f3e7d"),
        (Varint(64, form="quic"), 151_288_809_941_952_652, "c2197c5eff14e88c"),
        (Varint(32, form="ber"), 38, "26"),  # these from X.690, 8.1.3
        (Varint(32, form="ber"), 201, "81c9"),
        (Varint(32, form="ber"), 435, "8201b3"),
        (Varint(64, form="ber"), 2**64 - 1, "88" + "ff" * 8),
        (Varint(64, form="lenenc"), 250, "fa"),  # these from MySQL's page on protocol data types
        (Varint(64, form="lenenc"), 251, "fcfb00"),
        (Varint(64, form="lenenc"), 2**16, "fd000001"),
        (Varint(64, form="lenenc"), 2**24, "fe0000000100000000"),
        (Varint(64, form="lenenc"), 2**64 - 1, "fe" + "ff" * 8),
        (Varint(64, form="compact_size"), 252, "fc"),
        (Varint(64, form="compact_size"), 515, "fd0302"),  # Bitcoin's developer reference, CompactSize
        (Varint(64, form="compact_size"), 2**16, "fe00000100"),
        (Varint(64, form="compact_size"), 2**32, "ff0000000001000000"),
        (int24, -2, "fffffe"),
        (int24le, 0x010203, "030201"),
        (int40, -(2**39), "8000000000"),
        (uint48, 2**48 - 1, "ffffffffffff"),
        (int56le, -1, "ffffffffffffff"),
        (uint56, 1, "00000000000001"),
        (float32, 1.5, "3fc00000"),
        (float32le, -2.0, "000000c0"),
    ],
)
def test_a_number_has_its_bytes_on_every_engine(node: Node, value: Any, data: str) -> None:
    with own(Struct("n" / node)) as key:
        assert agree(key, bytes.fromhex(data), {}).value.n == value
        assert wirekit.encode(key, {"n": value}).hex() == data


@pytest.mark.parametrize(
    ("node", "value"), [(float32, 10**400), (float32, 1e39), (float32le, -1e39), (float64, 10**400)]
)
def test_a_number_beyond_the_floats_is_wrong(node: Node, value: Any) -> None:
    with own(Struct("n" / node)) as key:
        for engine in ENCODERS:
            with pytest.raises(Wrong, match=r"n: expected a number that fits float"):
                wirekit.encode(key, {"n": value}, engine=engine)


def test_columns_refuse_a_number_beyond_the_floats() -> None:
    with own(Struct("n" / float32)) as key:
        numbers = pa.array([1.5, float("inf"), 1e39], pa.float64())
        with pytest.raises(wirekit.Misuse, match=r"row 2: n: 1e\+39 does not fit float"):
            wirekit.build_columns(key, pa.record_batch([numbers], ["n"]))
        assert wirekit.build_columns(key, pa.record_batch([numbers[:2]], ["n"])).hex() == "3fc000007f800000"


@pytest.mark.parametrize(
    ("node", "data", "kind"),
    [
        (varint32, "8080", Short),
        (varint32, "", Short),
        (varint32, "ffffffff10", Wrong),
        (varint32, "808080808000", Wrong),
        (varint64, "ff" * 20, Wrong),
        (Varint(32, groups=4), "8080808001", Wrong),
        (Varint(32, groups=10), "8080808080808080808001", Wrong),
        (sleb32, "8080", Short),
        (sleb32, "8080808008", Wrong),
        (sleb32, "8080808077", Wrong),
        (sleb64, "80808080808080808001", Wrong),
        (sleb64, "ffffffffffffffffff7e", Wrong),
        (Varint(32, form="vlq"), "8080", Short),
        (Varint(32, form="vlq"), "9080808000", Wrong),
        (Varint(64, form="vlq"), "8280808080808080808000", Wrong),
        (Varint(64, form="quic"), "c0000000000000", Short),
        (Varint(32, form="quic"), "c000000100000000", Wrong),
        (Varint(64, form="ber"), "80", Wrong),  # the indefinite length
        (Varint(64, form="ber"), "890000000000000000ff", Wrong),
        (Varint(32, form="ber"), "850100000000", Wrong),
        (Varint(32, form="ber"), "8201", Short),
        (Varint(64, form="lenenc"), "fb", Wrong),  # NULL
        (Varint(64, form="lenenc"), "ff", Wrong),
        (Varint(64, form="lenenc"), "fdffff", Short),
        (Varint(64, form="compact_size"), "ff", Short),
        (Varint(64, form="compact_size"), "", Short),
        (uint24, "0102", Short),
    ],
)
def test_a_varint_is_bounded(node: Node, data: str, kind: type) -> None:
    with own(Struct("n" / node)) as key:
        agree(key, bytes.fromhex(data), {})
        error = wirekit.decode(bytes.fromhex(data), key).error
        assert type(error) is kind
        assert (error.path, error.offset) == ("n", 0)


@pytest.mark.parametrize(
    ("node", "low", "high"),
    [
        (varint32, 0, 2**32 - 1),
        (zigzag32, -(2**31), 2**31 - 1),
        (sleb32, -(2**31), 2**31 - 1),
        (int24, -(2**23), 2**23 - 1),
    ],
)
def test_a_number_out_of_range_is_not_built(node: Node, low: int, high: int) -> None:
    with own(Struct("n" / node)) as key:
        for number in (low - 1, high + 1):
            with pytest.raises(Wrong, match=r"n: expected an integer in"):
                wirekit.encode(key, {"n": number})


EVERYWHERE = Struct(
    "size" / Length(varint32),
    "key" / Bytes(zigzag32, null=-1),
    "text" / String(uint24),
    "kind" / Symbols(varint32, KINDS),
    "list" / Array(zigzag32, varint64, null=-1),
    "inside" / Sized(varint32, Struct("n" / zigzag64)),
    "last" / If(this.kind == 300, int40),
)


def test_a_varint_may_be_a_length_a_count_or_have_names() -> None:
    value = {"key": None, "text": "x" * 200, "kind": 300, "list": [1, 2**40], "inside": {"n": -7}, "last": -1}
    with own(EVERYWHERE) as key:
        data = wirekit.encode(key, value)
        assert data.hex().startswith("dd01" + "01" + "0000c8" + "78")
        assert agree(key, data, {}).clean
        assert wirekit.encode(key, wirekit.from_json(key, value), engine="rows") == data
        batch = wirekit.columns(key, data * 3)
        assert batch["list"].to_pylist() == [[1, 2**40]] * 3
        assert batch["last"].to_pylist() == [-1] * 3
        for end in range(len(data)):
            agree(key, data[:end], {})


def test_more_bytes_than_a_varint_needs_are_kept() -> None:
    data = bytes.fromhex("8b00" + "8600" + "616263" + "000000" + "8100" + "8000" + "8200" + "8200")
    data = bytes([len(data) - 2 | 0x80, 0]) + data[2:]
    with own(EVERYWHERE) as key:
        decoded = agree(key, data, {})
        widths = dict.fromkeys(("size", "key", "kind", "list", "inside"), 2)
        assert (decoded.value.extra["width"], decoded.value.inside.extra["width"]) == (widths, {"n": 2})
        again = wirekit.from_json(key, wirekit.to_json(decoded.value))
        assert wirekit.encode(key, again) == data


def test_lengths_inside_each_other_and_checksums_around_them() -> None:
    node = Struct(
        "whole" / Length(varint32),
        "inner" / Length(varint32, ("a", "b")),
        "a" / Bytes(int16),
        "b" / Bytes(varint32),
        "sum" / Checked(uint24, "internet", ("inner", "b")),
    )
    with own(node) as key:
        for size in (0, 60, 61, 62, 63, 64, 122, 123, 124, 125, 126, 127, 128, 200, 20_000):
            data = wirekit.encode(key, {"a": b"x" * size, "b": b""}, engine="reference")
            assert agree(key, data, {}, columns=size == 200).clean, size


def test_records_behind_varints_are_scanned_to_the_last_whole_one() -> None:
    record = Struct("size" / Length(varint32), "delta" / zigzag64, "value" / Bytes(zigzag32, null=-1))
    with own(RecordsToEnd(record, short_tail="stop")) as key:
        one = bytes.fromhex("03020278")
        for end in range(2 * len(one) + 1):
            assert len(agree(key, (one * 2)[:end], {}).value) == end // len(one)
        assert wirekit.columns(key, one * 5)["delta"].to_pylist() == [1] * 5


def test_a_length_is_held_against_the_limit_of_a_frame() -> None:
    node = Struct("size" / Length(varint32, frame=True), "rest" / Bytes(None))
    with own(node) as key:
        decoded = wirekit.decode(bytes.fromhex("ffffff7f00"), key, limits=Limits(frame=1000))
        assert isinstance(decoded.error, Limit)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Flag(varint32), "a flag must be an integer of fixed size"),
        (lambda: Bits(varint32, "a" / Bit(32), order="lsb"), "must be an integer of fixed size"),
        (lambda: Timestamp(varint64), "a time must be an integer of 64 bits"),
        (lambda: Varint(16), "a varint must have 32 or 64 bits"),
        (lambda: Varint(32, form="utf8"), "form must be one of leb128, vlq, quic, ber"),
        (lambda: Varint(32, form="vlq", signed=True), "the form vlq has no sign"),
        (lambda: Varint(32, form="ber", groups=4), "the form ber has no groups"),
        (lambda: Integer(">", "i", 4), "3, 5, 6 or 7 bytes"),
    ],
)
def test_nodes_that_need_a_fixed_size_refuse_varints(make: Any, text: str) -> None:
    with pytest.raises(Misuse, match=text):
        make()


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Struct("a" / Bytes(2), "n" / Length(varint32, "a")), "n is after the fields it covers"),
        (Struct("n" / Checked(varint32, "crc32"), "a" / Bytes(2)), "the checksum n must be an integer of fixed size"),
        (
            Struct("n" / Checked(uint24, "internet", "a", content=True), "a" / Bytes(varint32)),
            "which has a varint as length",
        ),
    ],
)
def test_a_layout_that_a_varint_makes_no_sense_in_is_refused(node: Node, text: str) -> None:
    with pytest.raises(Misuse, match=text), own(node):
        pass


@pytest.mark.parametrize(
    ("node", "numbers"),
    [
        (Varint(32, groups=4), [0, 127, 128, 268_435_455]),
        (varint64, [0, 2**7, 2**63, 2**64 - 1]),
        (zigzag32, [0, -1, 63, -64, 64, -(2**31), 2**31 - 1]),
        (zigzag64, [2**63 - 1, -(2**63)]),
        (sleb32, [0, 63, -64, 64, -65, -(2**31), 2**31 - 1]),
        (sleb64, [2**63 - 1, -(2**63), -123456]),
        (Varint(64, form="vlq"), [0, *AROUND_BYTES, 2**64 - 1]),
        (Varint(64, form="quic"), [0, 63, 64, 2**14 - 1, 2**14, 2**30 - 1, 2**30, 2**62 - 1]),
        (Varint(64, form="ber"), [0, *AROUND_BYTES, 2**64 - 1]),
        (Varint(64, form="lenenc"), [0, 250, 251, 252, 253, 254, 255, *AROUND_BYTES, 2**64 - 1]),
        (Varint(64, form="compact_size"), [0, 252, 253, 254, 255, *AROUND_BYTES, 2**64 - 1]),
    ],
)
def test_columns_build_a_varint_as_records_do(node: Node, numbers: list[int]) -> None:
    with own(Struct("n" / node)) as key:
        batch = pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.uint64() if min(numbers) == 0 else pa.int64())})
        assert wirekit.build_columns(key, batch) == b"".join(wirekit.encode(key, {"n": number}) for number in numbers)


def test_columns_refuse_a_number_that_the_varint_has_not() -> None:
    with own(Struct("n" / Varint(32, groups=4))) as key:
        batch = pa.RecordBatch.from_pydict({"n": [1, 2**28]})
        with pytest.raises(Misuse, match=r"row 1: n: expected a number in 0\.\.268435455"):
            wirekit.build_columns(key, batch)


@pytest.mark.parametrize(
    ("form", "data", "number"),
    [
        ("vlq", "808005", 5),
        ("quic", "4025", 37),  # RFC 9000, A.1
        ("quic", "8000000000", 0),
        ("ber", "8400000005", 5),
        ("ber", "8107", 7),
        ("lenenc", "fe0700000000000000", 7),
        ("compact_size", "fd0700", 7),
    ],
)
def test_a_number_in_more_bytes_than_it_needs_is_written_as_it_was(form: str, data: str, number: int) -> None:
    with own(Struct("n" / Varint(64, form=form), "rest" / Bytes(None))) as key:
        value = agree(key, bytes.fromhex(data), {}).value
        assert value.n == number
        assert wirekit.encode(key, value).hex() == data
        assert wirekit.columns(key, bytes.fromhex(data))["n"].to_pylist() == [number]


@pytest.mark.parametrize("form", ["vlq", "quic", "ber", "lenenc", "compact_size"])
@pytest.mark.parametrize("size", [0, 63, 64, 127, 128, 250, 251, 255, 256, 16_384, 65_535, 65_536])
def test_lengths_of_every_form_are_written_behind_what_they_cover(form: str, size: int) -> None:
    length = Varint(32, form=form)
    inner = Struct("size" / Length(length, "data"), "data" / Bytes(None), "text" / String(length), "last" / uint24)
    with own(Struct("crc" / Checked(uint32, "crc32", "inside"), "inside" / Sized(length, inner))) as key:
        data = wirekit.encode(key, {"inside": {"data": b"x" * size, "text": "y" * size, "last": 9}})
        assert agree(key, data, {}).clean
        assert wirekit.build_columns(key, wirekit.columns(key, data * 2)) == data * 2


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 129, 16_383, 16_384, 16_385])
def test_fields_behind_a_length_move_by_the_size_of_the_length(size: int) -> None:
    """Lengths inside others, one of which ends where the other does, and a checksum of what both have moved."""
    inner = Struct("size" / Length(varint32, "data"), "data" / Bytes(varint32), "last" / uint24)
    node = Struct(
        "crc" / Checked(uint32, "crc32", ("size", "list")),
        "size" / Length(zigzag32),
        "front" / uint24,
        "inside" / Sized(sleb32, inner),
        "list" / Array(varint32, Sized(varint32, Struct("text" / String(varint32)))),
    )
    texts = [{"text": "é" * (size // 2)}, {"text": ""}, {"text": "x" * size}]
    value = {"front": 7, "inside": {"data": b"x" * size, "last": 9}, "list": texts}
    with own(node) as key:
        data = wirekit.encode(key, value) * 2
        assert wirekit.build_columns(key, wirekit.columns(key, data)) == data


def test_a_null_of_a_varint_length_stays_null() -> None:
    node = Struct("key" / Bytes(zigzag32, null=-1), "list" / Array(zigzag32, uint24, null=-1))
    with own(node) as key:
        data = b"".join(wirekit.encode(key, {"key": value, "list": value and [1]}) for value in (None, b"x" * 64))
        assert wirekit.build_columns(key, wirekit.columns(key, data)) == data


@pytest.mark.parametrize(
    "node",
    [
        Array(varint32, uint24),
        Array(zigzag32, uint24, null=-1),
        Struct("size" / Length(varint32), "list" / RecordsToEnd(uint24)),
        Struct("mark" / Const(varint32, 300), "list" / Array(varint32, uint24)),
    ],
)
def test_a_varint_may_stand_in_front_of_all_records(node: Node) -> None:
    with own(node) as key:
        value: Any = [1, 2, 3] if isinstance(node, Array) else {"list": [1, 2, 3]}
        data = wirekit.encode(key, value)
        for end in range(len(data) + 1):
            agree(key, data[:end], {})
        agree(key, b"\xff" * 9, {})
        agree(key, b"\xac\x02\xff\xff\xff\xff\x7f", {})
        assert wirekit.build_columns(key, wirekit.columns(key, data)) == data
