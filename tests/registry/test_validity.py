"""What a layout can never mean is refused when it is registered, and the text says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import construct
import pyarrow as pa
import pytest

import wirekit
from tests.own import declared, own
from wirekit.conversation import recognise
from wirekit.errors import Misuse
from wirekit.exports import export
from wirekit.registry import Beginning, Layout, Protocol, Registry
from wirekit.rules import RuleSet
from wirekit.values import SymbolTable
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Checked,
    Compressed,
    Const,
    Default,
    Delimited,
    Flag,
    If,
    IfMore,
    Length,
    Lookahead,
    Node,
    OrBytes,
    RecordsToEnd,
    Ref,
    Refused,
    Repeat,
    Sized,
    String,
    Struct,
    Switch,
    Symbols,
    context,
    float32,
    float64,
    int8,
    int16,
    len_,
    rest,
    this,
    uint8,
    uint16,
    uint32,
    varint32,
)

KIND = SymbolTable("kind", {1: "ONE"})
BITS = Bits(uint8, "codec" / Bit(2), "rest" / Bit(6), order="lsb")
FLAGS = Bits(uint8, "codec" / Bit(3), "rest" / Bit(5), order="lsb")
CROSSING = Struct(
    "a" / Length(int8, ("c", "d")), "b" / Length(int8, ("d", "e")), "c" / int8, "d" / rest(), "e" / rest()
)


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (Struct("a" / int8, "n" / Length(int8)), "the length n covers nothing: no field is after it"),
        (
            Struct("n" / Length(int8, ("b", "a")), "a" / int8, "b" / int8),
            "the length n covers nothing: b is after",
        ),
        (Struct("n" / Length(int16, ("n", "a")), "a" / int8), "the length n covers itself; .* add=2"),
        (Struct("a" / int8, "n" / Length(int16, "a", zero_is_rest=True)), "the length n bounds nothing"),
        (Struct("n" / Length(int16, zero_is_rest=True, bounds=False), "a" / int8), "the length n bounds nothing"),
        (CROSSING, "the lengths a and b cross"),
        (Struct("a" / int8, "crc" / Checked(uint32, "crc32")), "the checksum crc covers nothing"),
        (Struct("a" / Checked(uint32, "crc32", "b"), "b" / Checked(uint32, "crc32", "a")), "a and b cover each other"),
        (Struct("crc" / Checked(uint16, "crc32"), "a" / int8), "the checksum crc has 16 bits"),
        (Struct("crc" / Checked(float64, "crc32"), "a" / int8), "the checksum crc must be an integer"),
        (
            Struct("crc" / Checked(uint32, "crc32", "a", content=True), "a" / int8),
            "content of a, which is not a byte string",
        ),
        (
            Struct("n" / Length(int16), "a" / rest(), "b" / uint32),
            "a takes all bytes up to the limit and leaves none for b",
        ),
        (
            Struct("n" / int8, "a" / Switch(this.n, {}, rest()), "b" / IfMore(int8), "c" / int8),
            "a takes all .* leaves none for c",
        ),
        (
            Struct("a" / Bytes(this.n), "n" / int8),
            "a reads 'n', which Record does not have before it; declare it first",
        ),
        (Struct("a" / Bytes(this.a)), "a reads 'a', which Record does not have before it"),
        (Struct("a" / Struct("b" / Bytes(this._.n)), "n" / int8), "a reads 'n', which Record does not have before it"),
        (Struct("a" / Struct("x" / rest()), "b" / int8), "a takes all bytes up to the limit and leaves none for b"),
        (Struct("a" / RecordsToEnd(int16), "b" / int8), "a takes all bytes up to the limit and leaves none for b"),
        (
            Struct("a" / String(encoding="latin-1"), "b" / int8),
            "a takes all bytes up to the limit and leaves none for b",
        ),
        (Struct("a" / Bytes(uint8, null=-1)), "a: a length that means null must be 0, or negative in a signed integer"),
        (Struct("a" / Sized(int8, int8, null=3)), "a: a length that means null must be 0, or negative"),
        (Struct("a" / Array(int8, int8, null=0)), "a: a count of 0 is an empty list"),
        (Struct("a" / Delimited("")), "a: a delimiter must have at least one byte"),
        (Struct("a" / Lookahead(Bytes(int8))), "a: Lookahead needs a node of fixed size"),
        (Struct("a" / OrBytes(String(int8))), "a: OrBytes needs a layout whose value is never a string, .* text"),
        (Struct("a" / OrBytes(Switch(context.kind, {1: int8, 2: Bytes(2)}))), "a: OrBytes .* may be bytes"),
        (Struct("n" / int8, "a" / Bytes(1 << this.n)), "shift by a number from 0 to 64"),
        (Struct("a" / Const(Symbols(uint8, KIND), "ONE")), "a: the value is always 'ONE'; pass the number 1"),
        (Struct("a" / Const(float32, 0.1)), "a: the value is always 0.1, which does not fit"),
        (Struct("a" / Length(float32), "b" / rest()), "the length a must be an integer"),
        (
            Struct("a" / Struct("x" / int8), "b" / Bytes(len_(this.a))),
            "b reads the length of a, which is neither bytes",
        ),
        (Struct("a" / uint8, "b" / If(len_(this.a) > 1, int8)), "b reads the length of a, which is neither bytes"),
        (
            Struct("a" / Symbols(uint8, KIND), "b" / Struct("c" / If(this._.a == "ONE", int8))),
            "b compares a, whose value is a number, with text; compare it with the number of a symbol",
        ),
        (
            Struct("a" / Symbols(uint8, KIND), "b" / Switch(this.a, {"ONE": int8}, int16)),
            "b compares a, .* of a symbol",
        ),
        (
            Struct("a" / uint8, "b" / Switch(this.a, {300: int8}, int16)),
            r"b compares a, which is in 0\.\.255, with 300; use a number in this range, or another integer",
        ),
        (
            Struct("a" / Symbols(uint8, KIND), "b" / Struct("c" / Switch((this._.a, context.d), {(-1, 0): int8}))),
            r"b compares a, which is in 0\.\.255, with -1;",
        ),
        (
            Struct("a" / Struct("b" / BITS), "c" / Switch(this.a.b.codec, {4: int8}, int16)),
            r"c compares a\.b\.codec, which is in 0\.\.3, with 4;",
        ),
        (Struct("a" / Default(Flag(int8), True), "b" / If(this.a == 2, int8)), r"b compares a, .* 0\.\.1, with 2;"),
        (Struct("a" / int8, "b" / Compressed(rest(), this.a, {128: "gzip"}, rest())), r"b compares a, .*, with 128;"),
        (
            Struct("a" / Symbols(uint8, KIND, closed=True), "b" / Switch(this.a, {2: int8}, int16)),
            "b compares a with 2, which kind does not name",
        ),
        (
            Struct("a" / int8, refused=(Refused("a", this.a == 128, "peers close", "Kind.java"),)),
            r"refused= compares a, which is in -128\.\.127, with 128;",
        ),
        (Struct("a" / String(int8), "b" / If(this.a != b"x", int8)), "b compares a, whose value is text, with bytes$"),
        (
            Struct("a" / int8, refused=(Refused("a", this.a == "x", "peers close", "Kind.java"),)),
            "refused= compares a, whose value is a number, with text$",
        ),
        (
            Struct("a" / uint8, "b" / Switch(this.a, {300: int8}, rest())),
            "b compares a, which is in 0..255, with 300; ",
        ),
        (Struct("a" / varint32, "b" / Struct("c" / Switch(this._.a, {-1: int8}))), "b compares a, .* with -1; use"),
        (
            Struct("a" / uint8, "b" / int8, "c" / Switch((this.a, this.b), {(0, 128): int8})),
            "c compares b, .* -128..127",
        ),
        (Struct("a" / FLAGS, "b" / Switch(this.a.codec, {8: int8}, rest())), "b compares a.codec, .* 0..7, with 8"),
        (Struct("a" / Struct("x" / uint16), "b" / If((this.a.x >> 12) == 16, int8)), "b compares .* 0..15, with 16"),
        (Struct("a" / Flag(int8), "b" / Switch(this.a, {True: int8, 2: int16})), "b compares a, .* 0..1, with 2"),
        (Struct("a" / uint8, "b" / Compressed(rest(), this.a, {256: "gzip"}, rest())), "b compares a, .* with 256"),
        (
            Struct("a" / Symbols(uint8, KIND, closed=True), "b" / Switch(this.a, {2: int8}, rest())),
            "b compares a with 2, which kind does not name",
        ),
        (
            Struct("a" / String(4), "b" / Switch(this.a, {"abcde": int8})),
            "b compares a, which has 4 bytes, with 'abcde', ",
        ),
        (
            Struct("a" / Bytes(2), "b" / If(this.a == b"x", int8)),
            "b compares a, which has 2 bytes, with b'x', .* has 1",
        ),
        (
            Struct("a" / FLAGS, "b" / If(this.a.last, int8)),
            "b reads 'last', which is not a field of a; it has codec, rest",
        ),
        (
            Struct("a" / Sized(int8, Struct("n" / int8)), "b" / Struct("c" / Bytes(this._.a.size))),
            "b reads 'size', which is not a field of a; it has n",
        ),
        (Struct("a" / int8, "b" / Bytes(len_(this.a.n))), "b reads 'n', which is not a field of a; it has no fields"),
        (
            Struct("a" / FLAGS, refused=(Refused("a", this.a.kind == 1, "peers close", "Kind.java"),)),
            "refused= reads 'kind', which is not a field of a",
        ),
        (
            Struct("a" / FLAGS, "b" / Switch(this.a, {1: int8})),
            "b compares a, whose value is bit fields, with a number",
        ),
        (
            Struct("a" / Struct("n" / int8), "b" / If(this.a == 1, int8)),
            "b compares a, whose value is a structure, with",
        ),
        (Struct("a" / FLAGS, "b" / If((this.a & 1) == 1, int8)), "b computes with a, whose value is bit fields"),
        (Struct("a" / String(2), "b" / If(this.a + 1 > 2, int8)), "b computes with a, whose value is text"),
        (Struct("a" / Lookahead(uint8), "b" / If(this.a == 300, int8)), "b compares a, .* 0..255, with 300"),
        (
            Struct("a" / Bytes(int8), "b" / If(len_(this.a) == -1, int8)),
            r"b compares len\(a\), .* 0\.\..*, with -1",
        ),
        (Struct("a" / String(int8), "b" / Bytes(this.a)), "b takes its size or count from a, which is not an integer"),
        (Struct("a" / float32, "b" / Struct("c" / Repeat(this._.a + 1, int8))), "b takes its size or count from a"),
        (Struct("a" / Const(uint8, 256)), "a: the value is always 256, which does not fit"),
        (Struct("a" / Const(Bytes(2), b"abc")), "a: the value is always b'abc', which does not fit"),
        (
            Struct("a" / Const(Symbols(uint8, KIND, closed=True), 2)),
            "a: the value is always 2, which kind does not name",
        ),
        (Struct("a" / Default(String(int8), b"a")), "a: the value is by default b'a', which does not fit"),
        (Struct("a" / uint8, "b" / Compressed(rest(), this.a, {1: "lzma"}, rest())), "b: no codec 'lzma'"),
        (Struct("a" / uint8, "b" / Compressed(rest(), this.a, {1: "lz4-block"}, rest())), "b: lz4-block .* size="),
        (Struct("a" / Array(int8, Length(int8)), "b" / int8), r"a\[\]: a length must be a field of a struct"),
        (Struct("a" / Sized(int8, Checked(uint32, "crc32")), "b" / int8), "a: a checksum must be a field of a struct"),
        (
            Struct("a" / Symbols(uint8, SymbolTable("wide", {300: "A", -1: "B"}), closed=True)),
            r"a: no symbol of wide is in 0\.\.255, and other values are refused; use other numbers",
        ),
        (
            Struct("a" / Symbols(int8, SymbolTable("wide", {1: "A", 128: "B"}), closed=True)),
            r"a: wide names B \(128\), which is not in -128\.\.127; leave it out, or use another integer",
        ),
        (
            Struct("a" / Symbols(uint8, SymbolTable("wide", {300: "A"}))),
            r"a: no symbol of wide is in 0\.\.255; use other numbers, or another integer",
        ),
        (
            Struct("a" / Bits(uint8, "b" / Bit(2, SymbolTable("wide", {4: "A"})), "c" / Bit(6), order="lsb")),
            r"a: b: no symbol of wide is in 0\.\.3; use other numbers",
        ),
        (
            Struct("a" / uint8, "b" / Switch(this.a & 3, {"x": int8}, int16)),
            r"b compares \(a & 3\), whose value is a number, with text",
        ),
        (
            Struct("a" / String(3), "b" / Switch(this.a, {"\ud800": int8}, int16)),
            r"b compares a with '\\ud800', which has a character that no text has",
        ),
        (
            Struct("a" / String(uint8), "b" / If(this.a == "x" * 256, int8)),
            "b compares a with 'x+', which has 256 bytes; its length is at most 255",
        ),
        (
            Struct("a" / Delimited(": "), "b" / Switch(this.a, {"x: y": int8}, int16)),
            r"b compares a with 'x: y', which contains ': ', where the text ends",
        ),
        (
            Struct("a" / Delimited(";"), "b" / Switch(this.a, {"x\ny": int8}, int16)),
            r"b compares a with 'x\\ny', which contains '\\n', where the text ends",
        ),
        (
            Struct("a" / String(8, encoding="ascii", pad="\0"), "b" / Switch(this.a, {"x\0": int8}, int16)),
            r"b compares a with 'x\\x00', which no value in ascii is; leave out the padding",
        ),
        (
            Struct("a" / String(uint8, encoding="ascii"), "b" / Switch(this.a, {"ä": int8}, int16)),
            "b compares a with 'ä', which no value in ascii is; .* and characters that it lacks",
        ),
        (Struct("a" / Bit(8)), "a: a Bit must be a field of Bits"),
        (Length(int8), "the layout: a length must be a field of a struct"),
        (Struct("a" / Ref("x")), "the layout refers to x; a key begins with the name of the protocol: odd.x"),
        (Struct("a" / int8, "b" / If(this.a > 0, Ref("odd.nosuch"))), "the layout refers to odd.nosuch, which"),
        (Struct("a" / Ref("odd.nosuch")), "the layout refers to odd.nosuch, which the protocol odd does not declare"),
        (Struct("a" / Ref("odd.x")), "every value contains another value without end: odd.x"),
    ],
)
def test_a_contradictory_layout_is_refused(node: Node, problem: str) -> None:
    with pytest.raises(wirekit.Misuse, match=problem):
        Registry().register(Protocol("odd", "a test", {"x": Layout(node)}))


def test_a_constant_that_a_field_may_equal_is_accepted() -> None:
    node = Struct(
        "a" / Symbols(uint8, KIND),
        "b" / Switch(this.a, {2: int8, 255: int16}, rest()),
        "c" / If((this.a * 2 == 510) | (this.a >= 0), Struct("d" / Switch(this._.a - 1, {-1: int8}, rest()))),
    )
    Registry().register(Protocol("odd", "a test", {"x": Layout(node)}))


@pytest.mark.parametrize(
    "node",
    [
        Struct("a" / String(uint8, encoding="ascii"), "b" / If(this.a == "\ufffd", int8)),
        Struct("a" / String(uint8), "b" / If(this.a == "\udc80" * 255, int8)),
        Struct("a" / Delimited("\0", lines=False), "b" / If(this.a == "x\n", int8)),
        Struct("a" / Symbols(uint8, SymbolTable("of two fields", {1: "A", 300: "B"}))),
        Struct(
            "a" / Bits(uint8, "b" / Bit(2, SymbolTable("of two fields", {3: "A", 4: "B"})), "c" / Bit(6), order="lsb")
        ),
        Struct("a" / Symbols(uint8, SymbolTable("without names", {}))),
    ],
)
def test_a_text_or_symbol_that_a_field_may_be_is_accepted(node: Node) -> None:
    """Bytes that do not decode are U+FFFD; a table may belong to several fields."""
    Registry().register(Protocol("even", "a test", {"x": Layout(node)}))


def test_a_record_has_each_name_once() -> None:
    with pytest.raises(wirekit.Misuse, match="two fields are called 'a'"):
        Struct("a" / int8, "a" / int8)


@pytest.mark.parametrize("name", ["", "_a", "a.b", "a-b", "1", "$keep"])
def test_a_name_is_one_for_python(name: str) -> None:
    with pytest.raises(wirekit.Misuse, match="a field name must be a Python identifier"):
        Struct(name / int8)


def test_lengths_may_lie_in_each_other_or_be_verified_only() -> None:
    inner = Struct("a" / Length(int8), "b" / Length(int8), "c" / int8)
    crossing = Struct(
        "a" / Length(int8, ("c", "d")), "b" / Length(int8, ("d", "e"), bounds=False), "c" / int8, "d" / int8, "e" / int8
    )
    for node in (inner, crossing):
        with own(node) as key:
            assert wirekit.registry[key]


def test_a_field_stands_behind_one_that_a_length_bounds() -> None:
    trailer = Struct(
        "size" / Length(uint16, "body", add=4), "body" / rest(), "crc" / Checked(uint32, "crc32", ("size", "body"))
    )
    with own(trailer) as key:
        data = wirekit.encode(key, {"body": b"abc"})
        assert data[:5] == b"\x00\x07abc"
        assert wirekit.decode(data, key).clean


def test_a_layout_that_may_end_may_contain_itself() -> None:
    protocol = Protocol("tree", "a test", {"x": Layout(Struct("a" / IfMore(Ref("tree.x"))))})
    assert Registry().register(protocol)


def test_a_field_that_reads_the_length_around_it_is_compared_when_it_is_known() -> None:
    """Bytes tell the number; of a value it is known when all that it covers is written."""
    with own(Struct("n" / Length(int8), "a" / Bytes(this.n - 1), "b" / rest())) as key:
        decoded = wirekit.decode(b"\x03abc", key)
        assert (decoded.error, decoded.value.a, decoded.value.b) == (None, b"ab", b"c")
        assert wirekit.encode(key, decoded.value) == b"\x03abc"
        with pytest.raises(wirekit.Wrong, match="expected 3 bytes, found 2 bytes"):
            wirekit.encode(key, {"a": b"ab", "b": b"cd"})


def test_a_default_is_rounded() -> None:
    with own(Struct("a" / Default(float32, 0.1))) as key:
        assert wirekit.decode(wirekit.encode(key, {}), key).value.a == pytest.approx(0.1)


def test_a_length_may_be_read_behind_the_fields_that_it_covers() -> None:
    with own(Struct("n" / Length(int8, "a"), "a" / Bytes(2), "b" / Bytes(this.n))) as key:
        assert wirekit.encode(key, {"a": b"ab", "b": b"cd"}) == b"\x02abcd"


UNFRAMED = [
    int8,
    Struct(),
    Struct("a" / Sized(int8, int8)),
    Struct("header" / Struct("n" / int8), "a" / Bytes(this.header.n)),
    Struct("verb" / Delimited(" "), "n" / Delimited("\n", number=True), "a" / Bytes(this.n)),
    Struct("n" / Length(int8, "a"), "a" / rest(), "b" / Delimited(" ")),
    Struct("a" / Delimited(" "), "n" / Length(int8, "a")),
]


@pytest.mark.parametrize("node", UNFRAMED)
@pytest.mark.parametrize("side", ["client", "server"])
def test_a_stream_whose_frames_tell_no_size_is_not_recognised(node: Node, side: str) -> None:
    layouts = {"x": Layout(node), "y": Layout(Struct("a" / int8))}
    streams = {"client": "y", "server": "y", side: "x"}
    protocol: Any = Protocol("odd", "a test", layouts, recognised_by=("x",), **streams)
    with declared(protocol):
        assert "odd" not in [each.name for each in wirekit.registry.with_stream()]
        assert recognise(b"\1\2", b"\1").protocol == ""
        with pytest.raises(wirekit.Misuse, match=r"odd\.x: a frame of a stream must be a Struct with a Length"):
            wirekit.Conversation("odd").receive(side, b"\1\2\3")


ONE = {"x": Layout(int8)}
RULES = RuleSet(lambda frame: [], (), ())


@pytest.mark.parametrize(
    ("name", "layouts", "options", "problem"),
    [
        ("a.b", ONE, {}, "'a.b' cannot be the name of a protocol; use letters, digits, _ and -"),
        ("p", {}, {}, "p: declare at least one layout"),
        ("p", {"x": int8}, {}, "p: layouts must be a mapping to Layout(node), not {'x': int8}"),
        (
            "p",
            {"x y": Layout(int8)},
            {},
            "'x y' cannot be the name of a layout; use words of letters, digits and _, joined by dots",
        ),
        ("p", {"x": Layout(construct.Int8ub)}, {}, "p.x: a layout of type construct.FormatField cannot be compiled"),
        ("p", {"x": Layout(int8, variant_of="y")}, {}, "variant_of names 'y', which is not a layout; choose from x"),
        (
            "p",
            {"x": Layout("a" / int8)},
            {},
            "a layout of type construct.Renamed cannot be compiled; put the field in a S",
        ),
        ("p", ONE, {"client": "y"}, "client names 'y', which is not a layout; choose from x"),
        ("p", ONE, {"recognised_by": ("y",)}, "recognised_by names 'y', which is not a layout"),
        ("p", ONE, {"recognised_by": "x"}, "recognised_by must be a tuple of texts, not 'x'"),
        ("p", ONE, {"stored": {"y": "a:b"}}, "stored names 'y', which is not a layout; choose from x"),
        ("p", ONE, {"stored_names": {"x": "("}}, "stored_names['x'] is not a regular expression: "),
        ("p", ONE, {"built": {"x": "a.b"}}, "built['x'] must have the form module:name, not 'a.b'"),
        ("p", ONE, {"dialogue": "Dialogue"}, "dialogue must have the form module:name"),
        ("p", ONE, {"pairing": "a:b"}, "p: a pairing needs a dialogue, which pairs the frames of all connections"),
        ("p", ONE, {"dialogue": 5}, "dialogue must be text or a function, not 5"),
        ("p", ONE, {"rules": RULES}, "the protocol p: rules must have the form module:name, not a RuleSet"),
        ("p", ONE, {"tables": "nosuch:TABLES"}, "nosuch:TABLES: No module named 'nosuch'"),
        ("p", ONE, {"ports": 9092}, "ports must be a tuple of numbers, not 9092"),
        ("p", ONE, {"ports": (70000,)}, "p: a port must be in 1..65535, not 70000"),
        ("p", ONE, {"limits": 5}, "limits must be a Limits, not 5"),
        (
            "p",
            ONE,
            {"beginnings": (Beginning("a hello", ()),)},
            "p: the beginning 'a hello' must have starts of at least",
        ),
        ("p", ONE, {"beginnings": (Beginning("a hello", (b"",)),)}, "must have starts of at least one byte"),
        (
            "p",
            ONE,
            {"beginnings": (Beginning("a hello", (b"a",), "x", 1),)},
            "p: the beginning 'a hello' names 'x', which is not a key; choose from p.x",
        ),
        (
            "p",
            ONE,
            {"beginnings": (Beginning("a hello", (b"ab",), "p.x", 1),)},
            "must have the size of the longest header in longest, not 1",
        ),
        ("p", ONE, {"beginnings": (b"a",)}, "beginnings must be a tuple of Beginning objects, not (b'a',)"),
    ],
)
def test_a_protocol_that_cannot_work_is_refused(
    name: str, layouts: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(wirekit.Misuse, match=re.escape(problem)):
        Registry().register(Protocol(name, "", layouts, **options))


def test_register_takes_protocols_alone() -> None:
    with pytest.raises(wirekit.Misuse, match=r"register takes a wirekit\.Protocol, not 'p'"):
        Registry().register("p")  # type: ignore[arg-type]


def test_a_dialogue_is_a_subclass_of_dialogue() -> None:
    protocol: Any = Protocol("p", "", ONE, client="x", dialogue=lambda: int)  # type: ignore[arg-type, return-value]
    with pytest.raises(wirekit.Misuse, match=r"p: dialogue must give a subclass of .*Dialogue, not <class 'int'>"):
        protocol.follow()


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: wirekit.decode(b"", "kafka.request", limits=5), "decode: limits must be a Limits or None, not 5"),
        (lambda: wirekit.decode(b"", "kafka.request", context=5), "decode: context must be a mapping or None, not 5"),
        (lambda: wirekit.decode(b"", "kafka.request", offset="1"), "decode: offset must be a number, not '1'"),
        (lambda: wirekit.decode(b"", "kafka.request", offset=-1), "decode: offset must be at least 0 and"),
        (lambda: wirekit.decode(b"", "kafka.request", offset=1 << 63), "decode: offset must be at least 0 and"),
        (lambda: wirekit.decode(b"", "kafka.request", decrypt=5), "decode: decrypt must be a function or None, not 5"),
        (lambda: wirekit.frames("kafka", b"", limits=5), "frames: limits must be a Limits or None, not 5"),
        (lambda: wirekit.frames("kafka", b"", context=5), "frames: context must be a mapping or None, not 5"),
        (lambda: wirekit.from_json("kafka.request", {}, context=5), "from_json: context must be a mapping or None"),
        (lambda: wirekit.example("kafka.request", context=5), "example: context must be a mapping or None, not 5"),
        (lambda: wirekit.columns("kafka.request", b"", limits=5), "columns: limits must be a Limits or None, not 5"),
        (lambda: wirekit.columns("kafka.request", b"", context=5), "columns: context must be a mapping or None, not 5"),
        (
            lambda: wirekit.build_columns("kafka.offset_index", pa.RecordBatch.from_pydict({}), context=5),
            "kafka.offset_index: context must be a mapping or None, not 5",
        ),
        (lambda: wirekit.rows(pa.RecordBatch.from_pydict({}), "a"), "fields must be a list of columns, not 'a'"),
        (lambda: wirekit.read("x", 5), "no table 5 can be read"),
        (lambda: wirekit.read("x", ["calls"]), "no table ['calls'] can be read"),
        (lambda: wirekit.read("x", protocol=5), "the name of a protocol must be text, not 5"),
        (lambda: export("kafka", "c"), "export: keys must be a list of keys, not 'kafka'"),
        (lambda: wirekit.columns("kafka.request", b"", fields=[None]), "fields must be a list of paths, not [None]"),
        (lambda: wirekit.Conversation("kafka").receive("client", "00"), "receive: data must be bytes, not str"),
        (
            lambda: wirekit.encode("kafka.request", {}, context=[1]),
            "encode: context must be a mapping or None, not [1]",
        ),
        (lambda: wirekit.Conversation(5), "Conversation: protocol must be text, not 5"),
        (lambda: wirekit.Limits(frame=-1), "Limits: frame must be at least 0, not -1"),
        (lambda: wirekit.Limits(depth="8"), "Limits: depth must be a number, not '8'"),
        (lambda: wirekit.Conversation("kafka").gap("client", -5), "gap: length must be a number of at least 0, not -5"),
        (
            lambda: wirekit.Conversation("kafka").gap("client", 1.5),
            "gap: length must be a number of at least 0, not 1.5",
        ),
        (lambda: wirekit.Conversation("kafka").receive(["client"], b""), "side must be 'client' or 'server', not ['cl"),
        (lambda: wirekit.Limits(frame=float("nan")), "Limits: frame must be a whole number or math.inf, not nan"),
        (lambda: wirekit.Limits(ratio=float("nan")), "Limits: ratio must be a whole number or math.inf, not nan"),
        (lambda: wirekit.Limits(decompressed=1.5), "Limits: decompressed must be a whole number or math.inf, not 1.5"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused(call: Callable[[], object], problem: str) -> None:
    with pytest.raises(wirekit.Misuse, match=re.escape(problem)):
        call()


def test_names_may_come_from_a_generator(fixtures: Path) -> None:
    data = bytes.fromhex("0000000500000010")
    batch = wirekit.columns("kafka.offset_index", data, fields=(name for name in ["position"]))
    assert batch.schema.names == ["position"]
    assert list(wirekit.rows(batch, (name for name in ["position"]))) == [(16,)]
    calls = wirekit.read(fixtures / "pcap" / "pulsar-batch.pcap", columns=(name for name in ["api"]))
    assert calls.schema.names == ["api"]


def test_the_arguments_of_encode_in_the_wrong_order() -> None:
    for function in (wirekit.encode, wirekit.from_json, wirekit.build_columns, wirekit.columns):
        with pytest.raises(wirekit.Misuse, match="the key, the first argument, must be a str, not dict"):
            function({"correlation_id": 1}, "kafka.request")  # type: ignore[arg-type]


def test_a_case_for_several_values_of_one_expression_is_refused() -> None:
    with pytest.raises(Misuse, match=r"write a case for each value, not one for \(1, 2\): one expression"):
        Struct("kind" / int8, "body" / Switch(this.kind, {(1, 2): int8}))


def test_a_list_that_leaves_bytes_may_have_fields_after_it() -> None:
    for options in ({"short_tail": "stop"}, {"until": b"\xff"}):
        with own(Struct("a" / RecordsToEnd(int16, **options), "b" / int8)) as key:
            assert wirekit.decode(b"\0\1\xff", key).value == {"a": [1], "b": -1}


def test_nodes_nested_deeper_than_the_stack_are_refused() -> None:
    node: Any = uint8
    for depth in range(1, 1_000):
        node = Struct("a" / node)
        if depth in (300, 999):
            protocol = Protocol("deep", "A test's own", {"main": Layout(node)})
            with pytest.raises(Misuse, match=r"deep\.main: the nodes are nested deeper than Python's stack"):
                Registry().register(protocol)
