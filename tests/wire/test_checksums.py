"""The catalogue of checksums: right by its own check values, in fields of every engine, and one of one's own."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.law import agree, rebuild
from tests.own import own
from wirekit import checksums
from wirekit.checksums import Checksum, checksum, crc, names, register
from wirekit.crc import CATALOGUE, CHECKED, Crc
from wirekit.errors import Misuse
from wirekit.wire import (
    Array,
    Bytes,
    Checked,
    Const,
    If,
    Length,
    Node,
    RecordsToEnd,
    Repeat,
    Struct,
    int32,
    int64,
    this,
    uint8,
    uint16le,
    uint24,
    uint40,
    varint32,
)


def _parity(data: bytes | bytearray | memoryview) -> int:
    parity = 0
    for byte in bytes(data):
        parity ^= byte
    return parity


register(Checksum("parity of a test", 8, _parity, "all bytes combined by exclusive or"))
FIELDS: dict[int, Node] = {1: uint8, 2: uint16le, 3: uint24, 4: int32, 5: uint40, 8: int64}


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_crc_has_the_check_value_of_the_catalogue(name: str) -> None:
    assert checksum(name)(CHECKED) == CATALOGUE[name][1]


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("adler32", b"Wikipedia", 0x11E60398),
        ("fletcher16", b"abcde", 0xC8F0),
        ("fletcher16", b"abcdefgh", 0x0627),
        ("fletcher32", b"abcde", 0xF04FC729),
        ("fletcher32", b"abcdefgh", 0xEBE19591),
        ("xxh32", b"", 0x02CC5D05),
        ("xxh64", b"", 0xEF46DB3751D8E999),
        ("md5", b"", 0xD41D8CD98F00B204E9800998ECF8427E),
    ],
)
def test_a_sum_has_the_value_that_its_source_says(name: str, data: bytes, value: int) -> None:
    assert checksum(name)(data) == value


def test_a_crc_of_any_width() -> None:
    """CRC-82/DARC, of the catalogue too, is wider than the register."""
    wide = Crc(82, 0x0308C0111011401440411, 0, True, True)
    assert wide(CHECKED) == 0x09EA83F625023801FD612


@pytest.mark.parametrize(
    "name",
    ["crc-3/gsm", "crc-12/dect", "crc-16/modbus", "crc-24/openpgp", "crc-40/gsm", "crc-64/we", "crc-64/xz", "adler32"]
    + ["fletcher16", "fletcher32"],
)
def test_a_checksum_is_computed_and_verified_by_every_engine(name: str) -> None:
    field = FIELDS[-(-checksum(name).bits // 8)]
    with own(
        Struct("size" / Length(varint32, "data"), "data" / Bytes(None), "sum" / Checked(field, name, "data"))
    ) as key:
        built = [wirekit.encode(key, {"data": (bytes(range(256)) * 2)[:size]}) for size in (0, 1, 2, 9, 200, 300)]
        for data in built:
            assert agree(key, data, {}).clean
        damaged = bytearray(b"".join(built))
        damaged[-40] ^= 4
        assert agree(key, bytes(damaged[-len(built[-1]) :]), {}).checks[-1].status == "bad"
        assert wirekit.columns(key, bytes(damaged))["sum.ok"].to_pylist() == [True] * 5 + [False]


@pytest.mark.parametrize(("name", "size"), [("md5", 16), ("sha1", 20), ("sha256", 32), ("crc32", 4)])
def test_a_digest_is_a_field_of_bytes(name: str, size: int) -> None:
    with own(Struct("sum" / Checked(Bytes(size), name), "data" / Bytes(None))) as key:
        data = wirekit.encode(key, {"data": b"abc"})
        assert wirekit.encode(key, wirekit.from_json(key, {"data": "616263"}), engine="rows") == data
        expected = zlib.crc32(b"abc").to_bytes(4, "big") if name == "crc32" else hashlib.new(name, b"abc").digest()
        decoded = agree(key, data, {})
        assert decoded.value.sum == expected
        assert [check.status for check in decoded.checks] == ["ok"]
        wrong = agree(key, bytes(size) + b"abc", {})
        assert wrong.checks[0].computed == expected
        assert wrong.value.extra == {"keep": ["sum"]}


WITHOUT_CODE = [
    (int64, "xxh64"),
    (Bytes(16), "md5"),
    (Bytes(4), "crc32"),
    (uint40, "xxh32"),
    (uint8, "parity of a test"),
]
"""Checksums that the interpreters have no code for: they call the function."""


@pytest.mark.parametrize(("field", "name"), WITHOUT_CODE, ids=[name for _, name in WITHOUT_CODE])
@pytest.mark.parametrize("covers", ["data", ("sum", "data")])
def test_columns_verify_and_compute_by_any_function(field: Node, name: str, covers: str | tuple[str, str]) -> None:
    part = Struct("sum" / If(this._.kind != 1, Checked(field, name, covers)), "data" / Bytes(uint8))
    with own(Struct("kind" / uint8, "first" / part, "parts" / Array(uint8, part))) as key:
        values = [
            {"kind": kind, "first": {"data": b"ab"}, "parts": [{"data": b""}, {"data": b"d" * 99}]} for kind in (0, 1)
        ]
        data = b"".join(wirekit.encode(key, value) for value in values)
        damaged = bytearray(data)
        damaged[1] ^= 1
        damaged[data.index(b"ddd")] ^= 4
        for each in (data, bytes(damaged)):
            agree(key, each, {})
            assert rebuild(key, each) == "built"
        batch = wirekit.columns(key, bytes(damaged))
        assert batch["first.sum.ok"].to_pylist() == [False, None]
        assert batch["parts.sum.ok"].to_pylist() == [[True, False], [None, None]]
        alone = batch.drop_columns([each for each in batch.schema.names if each.endswith((".sum", ".ok"))])
        assert wirekit.columns(key, wirekit.build_columns(key, alone))["parts.sum.ok"].to_pylist()[0] == [True, True]


def test_columns_raise_the_error_of_a_checksum_function() -> None:
    register(Checksum("none of a test", 8, lambda data: data[7], ""))
    with own(Struct("sum" / Checked(uint8, "none of a test"), "data" / Bytes(uint8))) as key:
        with pytest.raises(Misuse, match="none of a test must take any bytes, but raised IndexError"):
            wirekit.decode(bytes(2), key)
        with pytest.raises(Misuse, match="none of a test must take any bytes, but raised IndexError"):
            wirekit.columns(key, bytes(2))
        with pytest.raises(Misuse, match="none of a test must take any bytes, but raised IndexError"):
            wirekit.build_columns(key, pa.RecordBatch.from_pydict({"data": [b""]}))
        assert wirekit.columns(key, bytes(2), fields=["data"])["data"].to_pylist() == [b""]


@pytest.mark.parametrize("value", [b"1234", 1 << 32, -1, None])
def test_a_function_that_returns_no_checksum_is_refused(value: Any) -> None:
    with pytest.raises(Misuse, match="the function of odd must return an unsigned integer of 32 bits, not"):
        register(Checksum("odd", 32, lambda data: value, ""))
    with pytest.raises(Misuse, match=r"register takes a wirekit\.checksums\.Checksum"):
        register(value)


def test_a_checksum_beyond_its_bits_is_refused() -> None:
    register(Checksum("wide of a test", 8, lambda data: len(data) << 4, ""))
    with own(Struct("sum" / Checked(uint8, "wide of a test"), "data" / Bytes(15))) as key:
        assert agree(key, b"\xf0" + bytes(15), {}).clean
        assert wirekit.build_columns(key, pa.RecordBatch.from_pydict({"data": [bytes(15)]}))[:1] == b"\xf0"
    beyond, batch = Struct("sum" / Checked(uint8, "wide of a test"), "data" / Bytes(16)), {"data": [bytes(16)]}
    with own(beyond) as key, pytest.raises(Misuse, match="must return an unsigned integer of 8 bits, not 256"):
        wirekit.build_columns(key, pa.RecordBatch.from_pydict(batch))


def test_a_checksum_of_ones_own_is_known_once_it_is_registered() -> None:
    register(crc("crc-16 of a test", Crc(16, 0x1021, 0xABCD)))
    layout = Struct("data" / Bytes(3), "sum" / Checked(uint8, "parity of a test", "data"))
    with own(layout) as key:
        assert wirekit.encode(key, {"data": b"\x01\x02\x04"})[-1] == 7
        assert agree(key, b"\x01\x02\x04\x07", {}).clean
    with own(Struct("data" / Bytes(3), "sum" / Checked(uint16le, "crc-16 of a test", "data"))) as key:
        assert wirekit.columns(key, wirekit.encode(key, {"data": b"abc"}))["sum.ok"].to_pylist() == [True]
    with pytest.raises(Misuse, match="already exists"):
        register(Checksum("crc-8/smbus", 8, _parity, ""))


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Struct("sum" / Checked(uint8, "crc-16/modbus"), "data" / Bytes(1)), "has 8 bits"),
        (Struct("sum" / Checked(Bytes(31), "sha256"), "data" / Bytes(1)), r"for sha256 Bytes\(32\)"),
        (Struct("sum" / Checked(int32, "crc-32/mpeg2"), "data" / Bytes(1)), "among them crc-32/mpeg-2"),
    ],
)
def test_a_checksum_that_does_not_fit_is_refused(node: Node, text: str) -> None:
    with pytest.raises(Misuse, match=text), own(node):
        pass


def test_all_are_listed() -> None:
    assert {"crc32", "sha256", "crc-32/iso-hdlc"} <= set(names())


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda data: None, "must return an unsigned integer of 8 bits, not None"),
        (lambda data: 256, "must return an unsigned integer of 8 bits, not 256"),
        (lambda data: -1, "must return an unsigned integer of 8 bits, not -1"),
        (lambda data: True, "must return an unsigned integer of 8 bits, not True"),
        (lambda data: 1 // (data[0] - 5), "must take any bytes, but raised ZeroDivisionError"),
    ],
)
def test_a_function_that_fails_for_some_bytes_is_named(
    function: Callable[[Any], Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "_CHECKSUMS", dict(checksums._CHECKSUMS))
    register(Checksum("fails for 5", 8, lambda data: function(data) if data == b"\5" else 0, "a test's own"))
    with own(RecordsToEnd(Struct("sum" / Checked(uint8, "fails for 5", "n"), "n" / uint8))) as key:
        for engine in ("reference", "rows"):
            with pytest.raises(Misuse, match=f"the function of fails for 5 {why}"):
                wirekit.decode(b"\0\1\0\5", key, engine=engine)
            with pytest.raises(Misuse, match=f"the function of fails for 5 {why}"):
                wirekit.encode(key, [{"n": 5}], engine=engine)
        with pytest.raises(Misuse, match=f"the function of fails for 5 {why}"):
            wirekit.columns(key, b"\0\1\0\5")


def _summed(*covered: Any) -> Struct:
    names = [field.name for field in covered]
    return Struct("sum" / Checked(uint8, "parity of a test", (names[0], names[-1])), *covered)


def _sized(node: Node) -> Struct:
    return Struct("size" / Length(uint8), "inner" / node)


ONE = Const(uint8, 1)
ITEM = Struct("n" / uint8, "one" / ONE)
ITEMS = b"\3\1\4\0"  # the second item is wrong


@pytest.mark.parametrize(
    ("layout", "data", "status"),
    [
        (_sized(_summed("items" / RecordsToEnd(ITEM))), b"\5\6" + ITEMS, "ok"),
        (_sized(_summed("items" / RecordsToEnd(ITEM))), b"\5\7" + ITEMS, "bad"),
        (_sized(_summed("one" / ONE, "items" / RecordsToEnd(ITEM))), b"\6\6\0" + ITEMS, "ok"),
        (_summed("size" / Length(uint8), "items" / Repeat(2, ITEM)), b"\2\4" + ITEMS, "ok"),
        (_summed("size" / Length(uint8), "items" / Repeat(2, ITEM)), b"\2\5" + ITEMS, None),  # cut
        (_summed("items" / RecordsToEnd(ITEM)), b"\6" + ITEMS, None),  # maybe cut
        (_sized(_summed("items" / Repeat(2, ITEM))), b"\5\6" + ITEMS, None),  # bytes may follow
    ],
)
def test_a_checksum_is_verified_despite_an_error_if_it_is_certain_where_its_bytes_end(
    layout: Struct, data: bytes, status: str | None
) -> None:
    with own(layout) as key:
        decoded = agree(key, data, {})
        assert decoded.error is not None
        assert [check.status for check in decoded.checks] == ([status] if status else [])


@pytest.mark.parametrize(
    ("name", "bits", "why"),
    [
        (3, 8, "the name of a checksum must be printable text, not 3"),
        ("a\nb", 8, "the name of a checksum must be printable text"),
        ("none", 0, "the bits of none must be a number of at least 1, not 0"),
        ("none", -8, "the bits of none must be a number of at least 1, not -8"),
    ],
)
def test_a_checksum_without_a_name_or_width_is_refused(name: Any, bits: int, why: str) -> None:
    with pytest.raises(Misuse, match=why):
        register(Checksum(name, bits, lambda data: 0, "a test's own"))
