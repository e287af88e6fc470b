"""An error or verdict on a constant shows what the bytes hold as text that any terminal, table and file can take."""

from __future__ import annotations

import pytest

from tests.engines import decode_by_all
from tests.own import own
from wirekit.values import SymbolTable
from wirekit.wire import Const, RecordsToEnd, String, Struct, Symbols, int16

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
