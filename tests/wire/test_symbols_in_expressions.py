"""A symbol or a flag counts as its number, in sizes and counts as anywhere; a constant symbol is shown as one."""

from __future__ import annotations

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.values import SymbolTable
from wirekit.wire import Bytes, Const, Flag, Padding, Repeat, Struct, Symbols, int8, this, uint8

KIND = SymbolTable("kind", {1: "ONE", 2: "TWO"})


def test_generated_code_takes_symbols_and_flags_as_sizes() -> None:
    fields = "a" / Bytes(this.n), "b" / Padding(this.n), "c" / Repeat(this.f, int8)
    with own(Struct("n" / Symbols(uint8, KIND), "f" / Flag(uint8), *fields)) as key:
        assert agree(key, b"\2\1ab\0\0\7", {}, columns=False).engine == "rows"


def test_the_verdict_on_a_constant_has_both_symbols() -> None:
    with own(Struct("a" / Const(Symbols(uint8, KIND), 1, fatal=False))) as key:
        (check,) = agree(key, b"\2", {}, columns=False).checks
        assert check.to_json()["computed"] == {"value": 1, "symbol": "ONE"}
        assert wirekit.decode(b"\1", key).clean


def test_constants_that_are_no_numbers_are_verified_where_they_begin() -> None:
    with own(Struct("a" / int8, "b" / Const(Bytes(2), b"ab", fatal=False))) as key:
        assert [check.offset for check in agree(key, b"\0ab", {}, columns=False).checks] == [1001]
