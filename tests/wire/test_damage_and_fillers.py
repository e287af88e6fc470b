"""Nodes for formats that cut, pad and nest: opaque fall-back, padding, original lengths, checksums of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    Checked,
    Default,
    Length,
    Limits,
    Node,
    OrBytes,
    Padding,
    Struct,
    Switch,
    int8,
    int16,
    len_,
    rest,
    this,
    uint8,
    uint16,
    uint32,
)

Layouter = Callable[[Node], str]


@pytest.fixture
def key() -> Iterator[Layouter]:
    """Registers a layout under a key of its own."""
    with ExitStack() as stack:
        yield lambda node: stack.enter_context(own(node))


class TestOrBytes:
    NODE = Struct("size" / Length(int8, of="a"), "a" / OrBytes(Struct("x" / int8, "y" / int16)), "b" / int8)

    def test_that_fit(self, key: Layouter) -> None:
        decoded = wirekit.decode(bytes.fromhex("03 010002 09"), key(self.NODE))
        assert decoded.clean
        assert decoded.value.a == {"x": 1, "y": 2}

    def test_that_do_not_fit(self, key: Layouter) -> None:
        name = key(self.NODE)
        data = bytes.fromhex("02 0100 09")
        decoded = wirekit.decode(data, name, offset=100)
        assert decoded.error is None
        assert (decoded.value.a, decoded.value.b) == (b"\1\0", 9)
        assert [(gap.offset, gap.length, gap.path) for gap in decoded.gaps] == [(101, 2, "a")]
        (check,) = decoded.checks
        assert (check.path, check.kind, check.status, check.offset) == ("a", "layout", "bad", 101)
        assert check.note == "a.y: needs 2 bytes, 1 available"
        assert wirekit.encode(name, decoded.value) == data
        assert wirekit.encode(name, decoded.to_json()["value"]) == data

    def test_checks_and_spans_before_the_damage_are_dropped(self, key: Layouter) -> None:
        inner = Struct("crc" / Checked(uint16, "internet", "a"), "a" / Bytes(2), "rest" / Bytes(4))
        decoded = wirekit.decode(bytes.fromhex("0000 1111 22"), key(Struct("a" / OrBytes(inner))))
        assert [check.kind for check in decoded.checks] == ["layout"]
        assert [(span.path, span.kind) for span in decoded.spans] == [("a", "gap"), ("", "record")]

    def test_asking_for_too_much_stays_an_error(self, key: Layouter) -> None:
        node = Struct("a" / OrBytes(Struct("size" / Length(int8, frame=True), "x" / rest())))
        assert isinstance(wirekit.decode(b"\x05abcde", key(node), limits=Limits(frame=4)).error, wirekit.Limit)

    def test_cut_by_the_data_is_an_error_of_the_enclosing_structure(self, key: Layouter) -> None:
        decoded = wirekit.decode(bytes.fromhex("03 0100"), key(self.NODE))
        assert isinstance(decoded.error, wirekit.Short)
        assert decoded.value.a == b"\1\0"


class TestPadding:
    NODE = Struct("size" / Length(int8, of="a"), "a" / rest(), "fill" / Padding(-this.size % 4), "b" / int8)

    @pytest.mark.parametrize("length", range(6))
    def test_is_computed(self, key: Layouter, length: int) -> None:
        name = key(self.NODE)
        data = wirekit.encode(name, {"a": "61" * length, "b": 9})
        assert data == bytes([length]) + b"a" * length + bytes(-length % 4) + b"\x09"
        assert wirekit.decode(data, name).clean

    def test_that_is_not_zero_is_kept_while_it_fits(self, key: Layouter) -> None:
        name = key(self.NODE)
        data = b"\x01a\1\2\3\x09"
        value = wirekit.decode(data, name).value
        assert wirekit.encode(name, value) == data
        value.a = b"abc"
        assert wirekit.encode(name, value) == b"\x03abc\0\x09"

    def test_cut(self, key: Layouter) -> None:
        assert isinstance(wirekit.decode(b"\x01a\0", key(self.NODE)).error, wirekit.Short)


class TestLengthThatExceeds:
    NODE = Struct(
        "size" / Length(int8, of="a"), "original" / Length(int8, of="a", bounds=False, exceeds=True), "a" / rest()
    )

    @pytest.mark.parametrize(("original", "status"), [(3, "ok"), (9, "ok"), (2, "bad")])
    def test_beside_another(self, key: Layouter, original: int, status: str) -> None:
        name = key(self.NODE)
        data = bytes([3, original]) + b"abc"
        decoded = wirekit.decode(data, name)
        (check,) = decoded.checks
        assert (check.path, check.stored, check.computed, check.status) == ("original", original, 3, status)
        assert wirekit.encode(name, decoded.value) == data

    def test_is_computed(self, key: Layouter) -> None:
        assert wirekit.encode(key(self.NODE), {"a": "616263"}) == b"\x03\x03abc"

    def test_clipped(self, key: Layouter) -> None:
        name = key(Struct("original" / Length(int8, clip=True, exceeds=True), "a" / rest()))
        decoded = wirekit.decode(b"\x09abc", name)
        assert decoded.clean
        assert wirekit.encode(name, decoded.value) == b"\x09abc"


def test_a_length_of_zero_for_the_rest_is_kept(key: Layouter) -> None:
    name = key(Struct("size" / Length(int8, add=1, zero_is_rest=True), "a" / rest()))
    for data in (b"\x00abc", b"\x04abc", b"\x00", b"\x01"):
        assert wirekit.encode(name, wirekit.decode(data, name).value) == data


def test_a_checksum_among_the_fields_that_it_covers_counts_as_zeros(key: Layouter) -> None:
    name = key(Struct("a" / uint16, "sum" / Checked(uint16, "internet", ("a", "b")), "b" / uint16))
    data = wirekit.encode(name, {"a": 0x1234, "b": 0xFFFE})
    assert data.hex() == "1234edccfffe"
    assert wirekit.decode(data, name).clean
    decoded = wirekit.decode(bytes.fromhex("12340001fffe"), name)
    (check,) = decoded.checks
    assert (check.status, check.stored, check.computed) == ("bad", 1, 0xEDCC)


def test_a_choice_by_a_field_that_was_left_out(key: Layouter) -> None:
    bits = Bits(uint8, "kind" / Bit(4), "other" / Bit(4), order="msb")
    node = Struct("head" / Default(bits, 0x10), "a" / Switch(this.head.kind, {0: int8, 1: Bytes(2)}))
    assert wirekit.encode(key(node), {"a": "0102"}) == b"\x10\1\2"


def test_padding_to_a_boundary_is_an_expression() -> None:
    node = Struct("name" / Bytes(uint8), "fill" / Padding(-(1 + len_(this.name)) % 4), "number" / uint32)
    with own(node) as key:
        for size in range(6):
            data = wirekit.encode(key, {"name": b"x" * size, "number": 7})
            assert len(data) == 4 * (size // 4 + 1) + 4
            assert agree(key, data, {}).clean
        assert wirekit.columns(key, data * 2)["number"].to_pylist() == [7, 7]
