"""A symbol or a flag counts as its number, in sizes and counts as anywhere; a constant symbol is shown as one."""

from __future__ import annotations

import functools

import pytest

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.compiler.engines import ENCODERS
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    Const,
    Flag,
    If,
    Node,
    Padding,
    Repeat,
    Sized,
    String,
    Struct,
    Switch,
    Symbols,
    int8,
    this,
    uint8,
)

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


FLAGS = Bits(uint8, "kind" / Bit(4, KIND), "get" / Bit(4), order="lsb")
BODIES = {1: int8, 2: String(int8)}


@pytest.mark.parametrize("engine", ENCODERS)
@pytest.mark.parametrize(
    ("node", "data", "holder"),
    [
        (Struct("kind" / Symbols(int8, KIND), "body" / Switch(this.kind, BODIES)), "0105", ""),
        (Struct("kind" / Symbols(int8, KIND), "body" / If(this.kind == 2, String(int8))), "01", ""),
        (Struct("flags" / FLAGS, "body" / Switch(this.flags.kind, BODIES)), "0105", "flags"),
        (Struct("head" / Struct("flags" / FLAGS), "body" / Switch(this.head.flags.kind, BODIES)), "0105", "head.flags"),
        (Struct("head" / Sized(int8, Struct("kind" / Symbols(int8, KIND))), "body" / Switch(this.head.kind, BODIES)),
         "010105", "head"),
    ],
)  # fmt: skip
def test_a_name_that_is_set_in_a_record_is_a_symbol(engine: str, node: Node, data: str, holder: str) -> None:
    with own(node) as key:
        encoded = []
        for kind in ("TWO", 2):
            value = wirekit.decode(bytes.fromhex(data), key).value
            functools.reduce(getattr, holder.split(".") if holder else [], value).kind = kind
            value.body = "abc"
            encoded.append(wirekit.encode(key, value, engine=engine))
            value.body = None
            with pytest.raises(wirekit.Wrong):
                wirekit.encode(key, value, engine=engine)
        assert encoded[0] == encoded[1]
        assert wirekit.decode(encoded[0], key).value.body == "abc"
