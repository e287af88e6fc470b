"""An error or verdict on a constant shows what the bytes hold as text that any terminal, table and file can take."""

from __future__ import annotations

import json
import struct

import pytest

import wirekit
from tests.agreement.law import agree
from tests.engines import decode_by_all
from tests.own import own
from wirekit.errors import Misuse
from wirekit.exports import export
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bytes,
    Const,
    If,
    RecordsToEnd,
    String,
    Struct,
    Symbols,
    float32,
    int8,
    int16,
    len_,
    this,
    uint8,
)

AB = Const(String(int16), "ab")


def test_text_that_is_no_utf8_is_escaped_in_the_error() -> None:
    with own(AB) as key:
        decoded = decode_by_all(bytes.fromhex("00046162ffff"), key)
    assert "expected 'ab', found 'ab\\udcff\\udcff'" in str(decoded.error)


def test_the_error_of_a_long_text_is_short() -> None:
    with own(AB) as key:
        decoded = decode_by_all(b"\x7f\xff" + b"a" * 0x7FFF, key)
    assert len(str(decoded.error)) < 200


def test_symbols_are_named_in_the_error() -> None:
    codec = Const(Symbols(int16, SymbolTable("codec", {0: "NONE", 1: "GZIP"})), 1)
    with own(Struct("codec" / codec)) as key:
        errors = [str(decode_by_all(data, key).error) for data in (b"\0\0", b"\0\7")]
    assert "expected GZIP (1), found NONE (0)" in errors[0]
    assert "expected GZIP (1), found 7" in errors[1]


def test_columns_report_such_a_constant() -> None:
    columns = pytest.importorskip("wirekit.compiler.columns")
    with own(Struct("a" / RecordsToEnd(Struct("b" / AB)))) as key:
        _, errors = columns.scan(key, bytes.fromhex("00046162ffff"))
    assert "found 'ab\\udcff\\udcff'" in errors["reason"][0].as_py()


@pytest.mark.parametrize("engine", ["reference", "rows"])
def test_another_value_is_read_by_no_expression(engine: str) -> None:
    """The constant is written in its place, so expressions read the constant."""
    with own(Struct("mark" / Const(Bytes(int8), b"ab"), "of" / Bytes(len_(this.mark)))) as key:
        for mark in ("6162", "616200", b"abc"):
            assert wirekit.encode(key, {"mark": mark, "of": b"xy"}, engine=engine) == b"\2abxy"
    with own(Struct("k" / int8, "two" / If(this.k, Const(int8, 2)), "of" / If(this.two == 2, int8))) as key:
        assert wirekit.encode(key, {"k": 1, "two": 3, "of": 1}, engine=engine) == b"\1\2\1"


@pytest.mark.parametrize("engine", ["reference", "rows"])
def test_the_json_form_of_a_constant_is_checked(engine: str) -> None:
    with own(Const(Symbols(int16, SymbolTable("codec", {0: "NONE", 1: "GZIP"})), 1)) as key:
        with pytest.raises(Misuse, match="1 is GZIP, not 'NONE'"):
            wirekit.encode(key, {"value": 1, "symbol": "NONE"}, engine=engine)
        assert wirekit.encode(key, {"value": 1, "symbol": "GZIP"}, engine=engine) == b"\0\1"


@pytest.mark.parametrize("zero", [0.0, -0.0, 0])
def test_a_zero_with_another_sign_is_another_constant(zero: float) -> None:
    """They are equal, but not the same bytes, which the constant would replace."""
    data = struct.pack(">fB", zero, 7)
    other = bytes([data[0] ^ 0x80]) + data[1:]
    with own(Struct("a" / Const(float32, zero), "b" / uint8)) as key:
        assert agree(key, data, {}).error is None
        assert agree(key, other, {}).error.path == "a"
    with own(Struct("a" / Const(float32, zero, fatal=False), "b" / uint8)) as key:
        decoded = agree(key, other, {}, used=False)
        assert [check.status for check in decoded.checks] == ["bad"]
        assert wirekit.encode(key, json.loads(json.dumps(wirekit.to_json(decoded.value)))) == other


def test_a_constant_may_be_bytes_that_are_no_text() -> None:
    with own(Struct("a" / Const(String(1), "\udcff"), "b" / uint8)) as key:
        assert agree(key, b"\xff\7", {}).error is None
        assert '"\\255"' in export([key], "lua").text
    with (
        pytest.raises(Misuse, match=r"the value is always '\\ud800', which does not fit the field"),
        own(Struct("a" / Const(String(3), "\ud800"))),
    ):
        pass
