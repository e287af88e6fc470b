"""An error or verdict on a constant shows what the bytes hold as text that any terminal, table and file can take."""

from __future__ import annotations

import pytest

import wirekit
from tests.engines import decode_by_all
from tests.own import own
from wirekit.errors import Misuse
from wirekit.values import SymbolTable
from wirekit.wire import Bytes, Const, If, RecordsToEnd, String, Struct, Symbols, int8, int16, len_, this

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
