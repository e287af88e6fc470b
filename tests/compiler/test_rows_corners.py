"""Corners of the generated code of rows: byte orders that change, signed bit fields, numbers in place of symbols."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.agreement.law import agree
from tests.agreement.walk import compare
from tests.own import own
from wirekit.values import SymbolTable
from wirekit.wire import Bit, Bits, Bytes, Flag, Length, Struct, Symbols, int8, int16, uint8, uint16, uint16le, uint32

KINDS = SymbolTable("kind", {1: "PUT", 2: "GET"})


def test_numbers_of_both_byte_orders_may_stand_side_by_side() -> None:
    with own(Struct("a" / uint16, "b" / uint16le, "c" / uint32, "d" / uint8)) as key:
        value = agree(key, bytes(range(1, 10)), {}).value
        assert (value.a, value.b, value.c, value.d) == (0x0102, 0x0403, 0x05060708, 9)


@pytest.mark.parametrize(("byte", "low", "high"), [(0xF0, 0, 15), (0x8F, 15, 8), (0x7F, 15, 7)])
def test_the_bits_of_a_signed_number_are_those_of_its_byte(byte: int, low: int, high: int) -> None:
    with own(Struct("flags" / Bits(int8, "low" / Bit(4), "high" / Bit(4), order="lsb"))) as key:
        flags = agree(key, bytes([byte]), {}).value.flags
        assert (flags.low, flags.high) == (low, high)


@pytest.mark.parametrize("engine", ["reference", "rows"])
def test_a_number_stands_for_its_bit_fields(engine: str) -> None:
    with own(Struct("flags" / Bits(uint8, "low" / Bit(4), "high" / Bit(4), order="lsb"))) as key:
        for number in (0, 0x5A, 0xFF):
            assert wirekit.encode(key, {"flags": number}, engine=engine) == bytes([number])


@pytest.mark.parametrize("engine", ["reference", "rows"])
@pytest.mark.parametrize("value", [2, "GET", {"value": 2, "symbol": "GET"}, {"value": 2}])
def test_a_symbol_may_be_given_in_each_form(engine: str, value: Any) -> None:
    with own(Struct("kind" / Symbols(int16, KINDS))) as key:
        assert wirekit.encode(key, {"kind": value}, engine=engine) == b"\0\2"


@pytest.mark.parametrize("engine", ["reference", "rows"])
def test_a_plain_number_may_be_given_as_a_symbol(engine: str) -> None:
    """A field that has lost its table of symbols still takes the JSON form of the time when it had one."""
    with own(Struct("kind" / int16, "on" / Flag(int8))) as key:
        assert wirekit.encode(key, {"kind": {"value": 2, "symbol": "GET"}, "on": {"value": 1}}, engine=engine) == (
            b"\0\2\1"
        )


def test_a_protobuf_field_that_stands_elsewhere_is_written_where_it_stood() -> None:
    """Repeated properties behind a field of a higher number."""
    data = bytes.fromhex("0a0170 1001 1801 4000 22060a0161120162")
    value = agree("pulsar.message_metadata", data, {}).value
    assert wirekit.encode("pulsar.message_metadata", value) == data
    assert wirekit.encode("pulsar.message_metadata", wirekit.to_json(value)) == data


def test_a_length_behind_what_it_covers_has_a_least_number_too() -> None:
    with own(Struct("a" / uint8, "size" / Length(uint8, "a", minimum=5))) as key:
        assert "at least 5" in str(agree(key, bytes([2, 1]), {}).error)


@pytest.mark.parametrize("data", ["0203 0109 0807", "0304 0109 0008 07", "0204 0109 0800 07", "0403 0109 0807 0101"])
def test_lengths_may_be_declared_from_inside_out(data: str) -> None:
    """Of two that begin to bound at the same field, the one that ends last is around the other."""
    inner, outer = Length(uint8, "a"), Length(uint8, ("a", "b"))
    with own(Struct("inner" / inner, "outer" / outer, "a" / Bytes(uint8), "b" / uint8, "c" / uint8)) as key:
        agree(key, bytes.fromhex(data), {})
        compare(key, bytes.fromhex(data))


def test_a_wrong_checksum_in_a_list_is_reported_by_generated_code() -> None:
    messages = [{"offset": number, "message": {"magic": 0, "value": b"v"}} for number in range(3)]
    data = bytearray(wirekit.encode("kafka.message_set", {"messages": messages}))
    data[-1] ^= 1
    decoded = wirekit.decode(bytes(data), "kafka.message_set", engine="rows")
    assert decoded.engine == "rows"
    assert [check.status for check in decoded.checks] == ["ok", "ok", "bad"]
