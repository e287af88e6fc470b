"""Wrong arguments of nodes: refused in the line that declares them, with what to pass instead."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import wirekit
from tests.own import own
from wirekit import Limits, wire
from wirekit.errors import Misuse
from wirekit.values import SymbolTable

NAMES: dict[str, Any] = {**vars(wire), "SymbolTable": SymbolTable}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Array(int8, 5)", "Array: element must be a node such as int8, not 5"),
        ("Array(this.n, int8)", r"Array: count must be an integer such as int32, not this\['n'\]"),
        ("Array(int8, int8, null='')", "Array: null must be a number or None, not ''"),
        ("Repeat('n', int8)", "Repeat: count must be a number or an expression such as this.size, not 'n'"),
        ("Repeat(-1, int8)", "Repeat: count must be at least 0, not -1"),
        ("RecordsToEnd(int8, until=0)", "RecordsToEnd: until must be bytes, not 0"),
        ("RecordsToEnd(int8, short_tail='leave')", "RecordsToEnd: short_tail must be one of error, stop, not 'leave'"),
        ("Sized('n', int8)", "Sized: length must be an integer such as int32, not 'n'"),
        ("Ref(5)", "Ref: key must be text, not 5"),
        ("Lookahead(int8, -1)", "Lookahead: at must be at least 0, not -1"),
        ("If(True, int8)", "If: condition must be an expression such as this.size, not True"),
        ("If(lambda scope: scope.n, int8)", "If: condition must be an expression such as this.size, not <function"),
        ("IfThenElse(this.n, int8, None)", "IfThenElse: otherwise must be a node such as int8, not None"),
        ("IfNext(b'', int8)", "IfNext: magic must have at least one byte"),
        ("Switch('n', {1: int8})", "Switch: on must be .* or a tuple of expressions, not 'n'"),
        ("Switch(this.n, [int8])", r"Switch: cases must be a mapping to a node such as int8, not \[int8\]"),
        ("Switch(this.n, {1: 5})", "Switch: cases must be a mapping to a node such as int8, not {1: 5}"),
        ("Switch(this.n, {})", "Switch: pass at least one case, or default="),
        ("Switch((this.a, this.b), {1: int8})", "Switch: each case must be a tuple of 2 values, .*, not 1"),
        ("Bytes('n')", "Bytes: length must be .*, a number, an expression such as this.size or None, not 'n'"),
        ("Bytes(True)", "Bytes: length must be .*, a number, an expression such as this.size or None, not True"),
        ("Lookahead(int8, 1 << 70)", "Lookahead: at must be at most 2147483647, not 1180591620717411303424"),
        ("Flag(float32)", "a flag must be an integer, not a float32"),
        ("Bits(float32, 'a' / Bit(32), order='lsb')", "a number with bit fields must be an integer, not a float32"),
        ("Symbols(float64, SymbolTable('kind', {1: 'A'}))", "a number with symbols must be an integer, not a float64"),
        (r"SymbolTable('kind', {1: '\ud800'})", r"the names of kind must be printable text, not '\\ud800'"),
        (r"Struct('\xb5s' / int8)", r"Python reads a field '\\xb5s' as '\\u03bcs'; declare it as 'μs'"),
        ("Delimited('-', number=True)", "Delimited: end must not be digits, which the number may have, too, not '-'"),
        ("Delimited('10', number=True)", "Delimited: end must not be digits, which the number may have, too, not '10'"),
        ("Bytes(-1)", "Bytes: length must be at least 0, not -1"),
        ("Bytes(4, null=-1)", "Bytes: null= needs a length prefix, which 4 is not"),
        ("String(int8, encoding=5)", "String: encoding must be text, not 5"),
        ("Custom(4, parse=5, build=len)", "Custom: parse must be a function, not 5"),
        (r"Delimited('\ud800')", "Delimited: end must be text that UTF-8 can express"),
        ("Address('ipx')", "Address: family must be one of ipv4, ipv6, mac, not 'ipx'"),
        ("Padding('n')", "Padding: length must be a number, an expression such as this.size or None, not 'n'"),
        ("Integer('>', 'x')", "Integer: code must be one of b, h, l, q, B, H, L, Q, f, d, not 'x'"),
        ("Integer('b', 'b')", "Integer: endian must be one of <, >, not 'b'"),
        ("Timestamp(String(8))", "Timestamp: number must be an integer such as int32, not <String>"),
        ("Flag(5)", "Flag: inner must be an integer such as int32, not 5"),
        ("Symbols(int8, {1: 'A'})", "Symbols: table must be a SymbolTable, not {1: 'A'}"),
        ("SymbolTable('kind', ['A'])", "SymbolTable: entries of kind must be a mapping from numbers"),
        ("SymbolTable('kind', {'A': 1})", "entries of kind must be number: symbol or .*, not 'A': 1"),
        ("SymbolTable('kind', {1: ('A',)})", r"entries of kind must be number: symbol or .*, not 1: \('A',\)"),
        ("unnamed(this.kind, 'kind')", "unnamed: table must be a SymbolTable, not 'kind'"),
        (
            "Array(3, int8)",
            "Array: count must be an integer such as int32, not 3; Repeat takes a number or an expression",
        ),
        ("Repeat(int8, int8)", "not int8; Array takes the integer before the elements"),
        ("Sized(this.n, int8)", r"not this\['n'\]; a Length before a field bounds it, too"),
        ("Bit(0)", "Bit: width must be at least 1, not 0"),
        ("Bits(uint8, 'a' / Bit(8), order='first')", "Bits: order must be one of lsb, msb, not 'first'"),
        ("Bits(uint8, 'a' / int8, order='lsb')", "write a field of Bits as 'name' / Bit.width., not <Renamed a int8>"),
        ("Bits(uint8, Bit(8), order='lsb')", "write a field of Bits as 'name' / Bit.width., not <Bit>"),
        ("Switch(this.n, {range(3): int8})", r"Switch: a case must be for a number, .* or None, not range\(0, 3\)"),
        ("Switch((this.a, this.b), {(1, int8): int8})", "Switch: a case must be for a number, .* or None, not int8"),
        ("RecordsToEnd(int8, except_first=True)", "RecordsToEnd: except_first needs until="),
        ("Bytes(len(this.n))", r"this\['n'\] has no length yet: write len_ instead of len"),
        ("Length(5)", "Length: inner must be an integer such as int32, not 5"),
        ("Length(int8, 5)", "Length: of must be text, a tuple of 2 texts or None, not 5"),
        ("Length(int8, minimum=-1)", "Length: minimum must be at least 0, not -1"),
        ("Checked(uint32, zip)", "Checked: algorithm must be text, not <class 'zip'>"),
        ("Const(5, 5)", "Const: inner must be a node such as int8, not 5"),
        ("Compressed(int8, this.n, {1: 'zlib'}, rest())", "Compressed: inner must be a byte string .*, not int8"),
        (
            "Compressed(rest(), (this.n,), {1: 'zlib'}, rest())",
            "Compressed: each case must be a tuple of 1 values, .* 1",
        ),
        ("Compressed(rest(), this.n, {(1,): 'zlib'}, rest())", r"Compressed: write a case for .*, not one for \(1,\)"),
        ("Compressed(rest(), this.n, {1: 'zlib'}, rest(), size='n')", "Compressed: size must be .* None, not 'n'"),
        ("Protobuf('m:M', derived={'size': 'body'})", "Protobuf: derived must be a mapping to SizeOf or CountOf or"),
        ("Struct('a' / int8, name='a b')", "must be a Python identifier without a leading _, not 'a b'"),
    ],
)
def test_wrong_arguments_are_refused(text: str, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        eval(text, NAMES)


@pytest.mark.parametrize("options", [{"selector": "nothing"}, {"times": {"seek.nothing": "ms"}}])
def test_fields_that_a_message_lacks_are_refused(options: dict[str, Any]) -> None:
    node = wire.Protobuf("wirekit.proto.PulsarApi_pb2:BaseCommand", **options)
    with pytest.raises(Misuse, match=r"pulsar\.proto\.BaseCommand has no field '(seek\.)?nothing'"), own(node):
        pass


def test_a_node_is_no_sequence() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        list(wire.int8)


@pytest.mark.parametrize(
    "condition",
    [
        "this.a > 1 and this.b < 5",
        "1 < this.a < 5",
        "not this.a",
        "this.a in (1, 2)",
        "1 in this.a",
        "len_(this.a) > 1 or this.b",
        "context.version or this.b",
        "~this.a or -this.b",
    ],
)
def test_conditions_that_python_would_decide_are_refused(condition: str) -> None:
    with pytest.raises(Misuse, match=r"has no truth value: combine conditions with &, \| and ~"):
        eval(condition, NAMES)


def test_a_field_is_not_iterable() -> None:
    with pytest.raises(TypeError):
        list(wire.this.a)


def test_a_layout_can_be_copied() -> None:
    this = wire.this
    length = wire.If((this.size > 1) & ~(this.size == 2), wire.Bytes(this.size - 1))
    layout = wire.Struct("size" / wire.uint8, "a" / length, "b" / wire.Bytes(wire.len_(this.a)))
    with own(copy.deepcopy(layout)) as key:
        assert wirekit.decode(b"\3abcd", key).value == {"size": 3, "a": b"ab", "b": b"cd"}


LARGE = 10**5000
"""An integer of which Python refuses ``repr``."""


@pytest.mark.parametrize(
    "call",
    [
        lambda: list(wirekit.frames("kafka", b"", context=LARGE)),
        lambda: list(wirekit.frames("kafka", b"", limits={1: LARGE})),
        lambda: Limits(frame=-LARGE),
        lambda: wirekit.Conversation(LARGE),
        lambda: wirekit.Conversation("kafka").receive(LARGE, b""),
        lambda: wirekit.Conversation("kafka").gap("client", -LARGE),
        lambda: wirekit.read("x.pcap", LARGE),
        lambda: wirekit.read("x.pcap", columns=LARGE),
        lambda: wirekit.read("x.pcap", columns=[LARGE]),
        lambda: wirekit.read("x.pcap", filter=LARGE),
        lambda: wirekit.read("x.pcap", ports=LARGE),
        lambda: wirekit.read("x.pcap", ports={LARGE: "kafka"}),
    ],
)
def test_a_large_integer_is_refused_with_the_beginning_of_its_digits(call: Any) -> None:
    with pytest.raises(Misuse, match=r"0x31e20801036510f3c591fde5361dc61[0-9a-f]*… \(16610 bits\)") as refused:
        call()
    assert len(str(refused.value)) < 1000
