"""Every node of the vocabulary: what it reads, what it writes, how it fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import wirekit
from tests.own import own
from wirekit.registry import Layout, Protocol, registry
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
    Flag,
    If,
    IfMore,
    IfNext,
    IfThenElse,
    Length,
    Lookahead,
    Node,
    RecordsToEnd,
    Ref,
    Repeat,
    Sized,
    String,
    Struct,
    Switch,
    Symbols,
    context,
    int8,
    int16,
    int16le,
    int32,
    int64,
    len_,
    rest,
    this,
    uint8,
    uint16,
    uint32,
    varint32,
)
from wirekit.wire.describe import describe, type_of

COLOURS = SymbolTable("colour", {0: "RED", 2: ("BLUE", "like the sky")})
Layouter = Callable[[Node], str]


@pytest.fixture
def key() -> Iterator[Layouter]:
    """Registers a layout under a key of its own."""
    with ExitStack() as stack:
        yield lambda node: stack.enter_context(own(node))


def both_ways(key: str, data: str, value: Any) -> wirekit.Decoded:
    """The bytes decode to the value without complaint, and the value encodes to the bytes, JSON form included."""
    raw = bytes.fromhex(data)
    decoded = wirekit.decode(raw, key)
    assert decoded.error is None
    assert wirekit.to_json(decoded.value) == value
    assert decoded.consumed == len(raw)
    assert wirekit.encode(key, decoded.value) == raw
    assert wirekit.encode(key, value) == raw
    assert wirekit.from_json(key, value) == decoded.value
    return decoded


def fails(key: str, data: str, kind: type[wirekit.WireError], path: str, offset: int) -> wirekit.Decoded:
    """Decoding ends with that error at that place."""
    decoded = wirekit.decode(bytes.fromhex(data), key)
    assert isinstance(decoded.error, kind), decoded
    assert (decoded.error.path, decoded.error.offset) == (path, offset)
    assert decoded.error.protocol == key
    return decoded


@pytest.mark.parametrize(
    ("node", "data", "value"),
    [
        (int8, "ff", -1),
        (uint8, "ff", 255),
        (int16, "fffe", -2),
        (int16le, "feff", -2),
        (uint32, "fffffffe", 2**32 - 2),
        (int64, "8000000000000000", -(2**63)),
        (Flag(int8), "01", True),
        (Symbols(int8, COLOURS), "02", {"value": 2, "symbol": "BLUE"}),
        (Symbols(int8, COLOURS), "07", {"value": 7, "symbol": None}),
        (String(int16), "0003c3a962", "éb"),
        (String(int16, null=-1), "ffff", None),
        (String(int8, null=0), "00", None),
        (Bytes(int32), "0000000200ff", "00ff"),
        (Bytes(2), "00ff", "00ff"),
        (Bytes(), "00ff01", "00ff01"),
        (Array(int16, int8), "00020102", [1, 2]),
        (Array(int32, int8, null=-1), "ffffffff", None),
        (RecordsToEnd(int16), "00010002", [1, 2]),
        (Sized(int16, RecordsToEnd(int8)), "00020102", [1, 2]),
        (Const(uint16, 0xCAFE), "cafe", 0xCAFE),
    ],
    ids=repr,
)
def test_scalars_and_lists(key: Layouter, node: Node, data: str, value: Any) -> None:
    both_ways(key(Struct("a" / node)), data, {"a": value})


def test_symbol_knows_its_description(key: Layouter) -> None:
    value = wirekit.decode(b"\x02", key(Struct("a" / Symbols(int8, COLOURS)))).value.a
    assert (value, value.symbol, value.description) == (2, "BLUE", "like the sky")


def test_symbol_by_name_can_be_encoded(key: Layouter) -> None:
    assert wirekit.encode(key(Struct("a" / Symbols(int8, COLOURS))), {"a": "BLUE"}) == b"\x02"


def test_closed_symbols_refuse_others(key: Layouter) -> None:
    node = Struct("z" / int8, "a" / Symbols(int8, COLOURS, closed=True))
    fails(key(node), "0001", wirekit.Wrong, "a", 1)


def test_unusual_flag_and_null_are_kept(key: Layouter) -> None:
    node = Struct("f" / Flag(int8), "s" / String(int16, null=0), "t" / String(int16, null=-1))
    decoded = wirekit.decode(bytes.fromhex("07fffffffe"), key(node))
    assert (decoded.value.f, decoded.value.s, decoded.value.t) == (True, None, None)
    assert wirekit.to_json(decoded.value)["$raw"] == {"f": 7, "s": -1, "t": -2}
    both_ways(key(node), "07fffffffe", wirekit.to_json(decoded.value))


def test_text_that_is_not_utf8_survives(key: Layouter) -> None:
    name = key(Struct("a" / String(int8)))
    decoded = wirekit.decode(b"\x03a\xff\xfe", name)
    assert decoded.checks[0].kind == "utf-8"
    assert decoded.checks[0].status == "bad"
    assert wirekit.encode(name, decoded.value) == b"\x03a\xff\xfe"


@pytest.mark.parametrize(
    ("order", "value"), [("lsb", {"low": 5, "on": True, "rest": 10}), ("msb", {"low": 5, "on": False, "rest": 13})]
)
def test_bits_from_either_end(key: Layouter, order: str, value: dict[str, Any]) -> None:
    node = Struct("b" / Bits(uint8, "low" / Bit(3), "on" / Bit(1), "rest" / Bit(4), order=order))
    data = 0b1010_1101
    both_ways(key(node), f"{data:02x}", {"b": value})


def test_bits_must_fill_the_integer() -> None:
    with pytest.raises(wirekit.Misuse, match="fill the 8 bits"):
        Bits(uint8, "low" / Bit(3), order="lsb")


def test_bits_have_spans_of_bits(key: Layouter) -> None:
    node = Struct("b" / Bits(uint16, "low" / Bit(3), "high" / Bit(13), order="lsb"))
    spans = {span.path: span for span in wirekit.decode(b"\0\0", key(node)).spans}
    assert (spans["b.high"].bit_start, spans["b.high"].bit_length) == (3, 13)


class TestLength:
    NODE = Struct("size" / Length(int32), "a" / int8, "b" / rest())

    def test_is_computed(self, key: Layouter) -> None:
        assert wirekit.encode(key(self.NODE), {"a": 1, "b": "0203", "size": 99}).hex() == "00000003010203"

    def test_is_written_as_it_stands_when_kept(self, key: Layouter) -> None:
        value = {"a": 1, "b": "0203", "size": 99, "$keep": ["size"]}
        assert wirekit.encode(key(self.NODE), value).hex() == "00000063010203"

    def test_a_length_bounds_the_fields_inside(self, key: Layouter) -> None:
        node = Struct("size" / Length(int8), "text" / Bytes(int8))
        decoded = fails(key(Struct("f" / node, "more" / rest())), "0205aaaaaaaa", wirekit.Short, "f.text", 2)
        assert (decoded.error.needed, decoded.error.available) == (5, 1)

    def test_beyond_the_data_is_short_after_all_that_is_there(self, key: Layouter) -> None:
        decoded = fails(key(self.NODE), "00000009010203", wirekit.Short, "size", 4)
        assert (decoded.error.needed, decoded.error.available) == (9, 3)
        assert decoded.value == {"size": 9, "a": 1, "b": b"\x02\x03"}

    def test_negative_is_wrong(self, key: Layouter) -> None:
        fails(key(self.NODE), "ffffffff0102", wirekit.Wrong, "size", 0)

    def test_over_the_frame_limit(self, key: Layouter) -> None:
        node = Struct("size" / Length(int32, frame=True), "b" / rest())
        decoded = wirekit.decode(bytes.fromhex("7fffffff00"), key(node))
        assert isinstance(decoded.error, wirekit.Limit)
        assert decoded.error.limit == "frame"

    def test_inclusive_with_a_minimum(self, key: Layouter) -> None:
        node = Struct("size" / Length(int32, add=4, minimum=5), "a" / int8)
        both_ways(key(node), "0000000509", {"size": 5, "a": 9})
        fails(key(node), "0000000409", wirekit.Wrong, "size", 0)

    def test_leftover_is_a_gap_that_is_kept(self, key: Layouter) -> None:
        node = Struct("size" / Length(int8), "a" / int8)
        decoded = wirekit.decode(bytes.fromhex("03010203"), key(node))
        assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(2, 2)]
        both_ways(key(node), "03010203", {"size": 3, "a": 1, "$trailing": {"size": "0203"}})

    def test_of_named_fields(self, key: Layouter) -> None:
        node = Struct("size" / Length(int8, of=("a", "b")), "x" / int8, "a" / int8, "b" / rest(), "c" / int8)
        both_ways(key(node), "020911127f", {"size": 2, "x": 9, "a": 0x11, "b": "12", "c": 0x7F})

    def test_of_fields_before_it_is_a_check(self, key: Layouter) -> None:
        node = Struct("a" / Bytes(2), "size" / Length(int8, of="a"))
        assert wirekit.decode(b"aa\x02", key(node)).checks[0].status == "ok"
        decoded = wirekit.decode(b"aa\x05", key(node))
        assert (decoded.checks[0].stored, decoded.checks[0].computed) == (5, 2)
        assert wirekit.encode(key(node), decoded.value) == b"aa\x05"

    def test_clipped_by_the_data(self, key: Layouter) -> None:
        node = Struct("size" / Length(int8, clip=True), "a" / rest())
        decoded = wirekit.decode(b"\x05abc", key(node))
        assert decoded.error is None
        assert [check.status for check in decoded.checks] == ["bad"]
        assert wirekit.encode(key(node), decoded.value) == b"\x05abc"


class TestChecked:
    NODE = Struct("crc" / Checked(uint32, "crc32"), "a" / int8, "b" / rest())

    def test_verdict(self, key: Layouter) -> None:
        data = wirekit.encode(key(self.NODE), {"a": 1, "b": "02"})
        (check,) = wirekit.decode(data, key(self.NODE)).checks
        assert (check.path, check.kind, check.status, check.offset) == ("crc", "crc32", "ok", 0)
        assert check.stored == check.computed

    def test_bad_one_is_marked_and_kept(self, key: Layouter) -> None:
        data = bytes.fromhex("deadbeef0102")
        decoded = wirekit.decode(data, key(self.NODE))
        assert decoded.error is None
        assert decoded.checks[0].stored == 0xDEADBEEF
        assert decoded.checks[0].status == "bad"
        assert wirekit.encode(key(self.NODE), decoded.value) == data

    def test_strict_raises_it(self, key: Layouter) -> None:
        with pytest.raises(wirekit.Wrong, match="crc"):
            wirekit.decode(bytes.fromhex("deadbeef0102"), key(self.NODE), strict=True)

    def test_changed_value_gets_a_new_one(self, key: Layouter) -> None:
        name = key(self.NODE)
        value = wirekit.decode(wirekit.encode(name, {"a": 1, "b": "02"}), name).value
        value.a = 7
        assert wirekit.decode(wirekit.encode(name, value), name).checks[0].status == "ok"

    def test_absent_under_a_condition(self, key: Layouter) -> None:
        node = Struct("v" / int8, "crc" / If(this.v == 1, Checked(uint32, "crc32")), "b" / rest())
        assert wirekit.decode(b"\x00ab", key(node)).checks[0].status == "absent"
        assert wirekit.encode(key(node), {"v": 1, "b": "6162"}).hex() == "019e83486d6162"

    def test_of_content_without_its_length(self, key: Layouter) -> None:
        node = Struct("crc" / Checked(int64, "crc32", "b", content=True), "b" / Bytes(int32))
        assert wirekit.encode(key(node), {"b": "6162"}).hex() == "000000009e83486d000000026162"


def test_constant_that_may_differ_is_a_check(key: Layouter) -> None:
    node = Struct("magic" / Const(uint16, 0x1234, fatal=False), "a" / int8)
    decoded = wirekit.decode(bytes.fromhex("000001"), key(node))
    assert (decoded.checks[0].kind, decoded.checks[0].status) == ("constant", "bad")
    assert wirekit.encode(key(node), decoded.value).hex() == "000001"
    assert wirekit.encode(key(node), {"a": 1}).hex() == "123401"


def test_constant_that_must_not_differ(key: Layouter) -> None:
    decoded = fails(key(Struct("magic" / Const(uint16, 0x1234))), "0000", wirekit.Wrong, "magic", 0)
    assert "0x1234" in str(decoded.error)


def test_conditions_and_choices(key: Layouter) -> None:
    node = Struct(
        "v" / int8,
        "only" / If(this.v == 1, int8),
        "either" / IfThenElse(this.v > 1, int16, int8),
        "switched" / Switch(this.v, {0: int8, 2: Bytes(1)}, default=Struct()),
        "n" / int8,
        "list" / Repeat(this.n, int8),
        "pad" / Bytes(-len_(this.list) % 2),
    )
    both_ways(
        key(node), "000305010400", {"v": 0, "only": None, "either": 3, "switched": 5, "n": 1, "list": [4], "pad": "00"}
    )
    assert wirekit.decode(bytes.fromhex("0109030000"), key(node)).value.only == 9


def test_switch_without_a_case_lists_the_cases(key: Layouter) -> None:
    node = Struct("v" / int8, "x" / Switch(this.v, {1: int8, 2: int16}))
    decoded = fails(key(node), "0300", wirekit.Wrong, "x", 1)
    assert "1, 2" in str(decoded.error)


def test_switch_by_context(key: Layouter) -> None:
    name = key(Struct("x" / Switch(context.version, {1: int8, 2: int16}, default=rest())))
    assert wirekit.decode(b"\0\1", name, context={"version": 2}).value.x == 1
    assert wirekit.decode(b"\0\1", name).value.x == b"\0\1"


def test_fields_that_the_bytes_announce(key: Layouter) -> None:
    node = Struct("magic" / IfNext(b"\x0e\x01", Const(uint16, 0x0E01)), "a" / int8, "more" / IfMore(int8))
    both_ways(key(node), "0e010502", {"magic": 0x0E01, "a": 5, "more": 2})
    both_ways(key(node), "05", {"magic": None, "a": 5, "more": None})


def test_lookahead_consumes_nothing(key: Layouter) -> None:
    node = Struct("kind" / Lookahead(uint8, at=1), "a" / int8, "b" / int8)
    both_ways(key(node), "0102", {"kind": 2, "a": 1, "b": 2})


def test_default_may_be_left_out(key: Layouter) -> None:
    assert wirekit.encode(key(Struct("a" / Default(int8, 7))), {}) == b"\x07"


class TestRecordsToEnd:
    ENTRY = Struct("size" / Length(int8), "a" / Bytes(int8))

    def test_cut_tail_is_left_to_the_next_field(self, key: Layouter) -> None:
        node = Struct("list" / RecordsToEnd(self.ENTRY, short_tail="stop"), "tail" / rest())
        for tail in ("09", "0908aa"):
            decoded = wirekit.decode(bytes.fromhex("0201aa" + tail), key(node))
            assert decoded.error is None
            assert len(decoded.value.list) == 1
            assert decoded.value.tail.hex() == tail

    def test_damage_inside_a_whole_record_is_an_error(self, key: Layouter) -> None:
        node = Struct("list" / RecordsToEnd(self.ENTRY, short_tail="stop"), "tail" / rest())
        decoded = fails(key(node), "0201aa0208aa", wirekit.Short, "list[1].a", 5)
        assert len(decoded.value.list) == 2

    def test_cut_tail_is_an_error_by_default(self, key: Layouter) -> None:
        fails(key(Struct("list" / RecordsToEnd(self.ENTRY))), "0201aa09", wirekit.Short, "list[1].a", 4)


def test_a_count_beyond_the_data_is_short_at_the_first_element(key: Layouter) -> None:
    decoded = fails(key(Struct("a" / Array(int32, int64))), "7fffffff00", wirekit.Short, "a", 4)
    assert decoded.error.needed == 8 * 0x7FFFFFFF
    assert decoded.value.a == []


PAIR = Struct("b" / uint8, "c" / uint16)


@pytest.mark.parametrize(
    ("element", "data", "value"),
    [
        (uint16, "00010002 00", [1, 2]),
        (PAIR, "010002 030004", [{"b": 1, "c": 2}, {"b": 3, "c": 4}]),
        (PAIR, "010002 0300", [{"b": 1, "c": 2}, {"b": 3}]),
        (Array(uint8, uint16), "00 0100 01 ff0002 00", [[], [1], [2]]),
        (Struct("b" / Const(uint8, 7), "c" / uint8), "0708 0908", [{"b": 7, "c": 8}, {}]),
        (Struct("b" / If(this._.n == 1, uint8)), "0102", [{"b": None}] * 2),
    ],
)
def test_the_elements_before_the_end_are_there(element: Node, data: str, value: Any, key: Layouter) -> None:
    decoded = fails(key(Struct("n" / uint8, "a" / Repeat(this.n, element))), f"ff {data}", wirekit.Short, "a", 1)
    assert decoded.error.available == len(bytes.fromhex(data))
    assert decoded.error.needed >= 0xFF
    assert wirekit.to_json(decoded.value.a) == value


def test_an_element_that_is_wrong_does_not_hide_that_they_do_not_fit(key: Layouter) -> None:
    layout = Struct("a" / Array(uint8, Struct("b" / String(int8), "c" / uint8)))
    decoded = fails(key(layout), "ff 016101 fe 01", wirekit.Short, "a", 1)
    assert wirekit.to_json(decoded.value) == {"a": [{"b": "a", "c": 1}, {}]}


def test_a_cut_tail_with_a_list_is_left(key: Layouter) -> None:
    entry = Struct("b" / uint8, "a" / Array(uint8, uint16))
    node = Struct("list" / RecordsToEnd(entry, short_tail="stop"), "tail" / rest())
    decoded = wirekit.decode(bytes.fromhex("01 01 0002 02 02 0001"), key(node))
    assert wirekit.to_json(decoded.value) == {"list": [{"b": 1, "a": [2]}], "tail": "02020001"}


def test_the_elements_before_the_end_do_not_exceed_the_memory(key: Layouter) -> None:
    layout = key(Struct("a" / Array(int32, Struct("b" / uint8))))
    decoded = wirekit.decode(
        b"\x7f" + bytes(3) + bytes(10_000), layout, limits=wirekit.Limits(memory=0), engine="reference"
    )
    assert isinstance(decoded.error, wirekit.Short)
    assert 0 < len(decoded.value.a) < 10_000


def test_negative_count_is_wrong(key: Layouter) -> None:
    fails(key(Struct("a" / Array(int32, int64))), "ffffffff", wirekit.Wrong, "a", 0)


class TestCompressed:
    def node(self, key: Layouter) -> str:
        inner = Struct("list" / RecordsToEnd(int8))
        return key(
            Struct(
                "codec" / int8, "value" / Compressed(Bytes(int32, null=-1), this.codec, {1: "gzip"}, inner), "z" / int8
            )
        )

    def test_opened_and_closed(self, key: Layouter) -> None:
        name = self.node(key)
        data = wirekit.encode(name, {"codec": 1, "value": {"content": {"list": [1, 2]}}, "z": 3})
        decoded = wirekit.decode(data, name)
        assert decoded.value.value.content.list == [1, 2]
        assert decoded.sources == [(b"\x01\x02", "value.content")]
        assert wirekit.encode(name, decoded.value) == data

    def test_bytes_that_another_compressor_wrote_stay(self, key: Layouter) -> None:
        import gzip

        name = self.node(key)
        inner = gzip.compress(b"\x01\x02", compresslevel=1, mtime=12345)
        data = b"\x01" + len(inner).to_bytes(4, "big") + inner + b"\x03"
        value = wirekit.decode(data, name).value
        assert wirekit.encode(name, value) == data
        value.value.content.list.append(9)
        again = wirekit.decode(wirekit.encode(name, value), name)
        assert again.value.value.content.list == [1, 2, 9]

    def test_no_codec_is_plain_bytes(self, key: Layouter) -> None:
        assert wirekit.decode(bytes.fromhex("00000000016103"), self.node(key)).value.value == b"a"

    def test_damage_is_a_check_and_the_next_field_is_read(self, key: Layouter) -> None:
        name = self.node(key)
        data = bytes.fromhex("0100000003aabbcc07")
        decoded = wirekit.decode(data, name)
        assert decoded.error is None
        assert (decoded.value.value, decoded.value.z) == (b"\xaa\xbb\xcc", 7)
        assert [(check.kind, check.status) for check in decoded.checks] == [("decompression", "bad")]
        assert wirekit.encode(name, decoded.value) == data

    def test_nesting_is_limited(self, key: Layouter) -> None:
        name = f"nest{abs(hash(key))}"
        layer = Struct("codec" / int8, "value" / Compressed(Bytes(int32), this.codec, {1: "gzip"}, Ref(f"{name}.x")))
        registry.register(Protocol(name, "a test", {"x": Layout(layer)}))
        value: Any = {"codec": 0, "value": ""}
        for _ in range(12):
            value = {"codec": 1, "value": {"content": value}}
        decoded = wirekit.decode(wirekit.encode(f"{name}.x", value), f"{name}.x")
        assert isinstance(decoded.error, wirekit.Limit)
        assert (decoded.error.limit, decoded.error.actual) == ("depth", decoded.error.allowed + 1)


@pytest.mark.parametrize("engine", ["reference", "rows"])
@pytest.mark.parametrize("element", [uint16, Struct("n" / uint16, "text" / Bytes(uint8))])
def test_no_element_begins_with_the_bytes_that_end_its_list(key: Layouter, engine: str, element: Node) -> None:
    """``decode`` would end the list there."""
    for except_first in (False, True):
        layout = key(Struct("items" / RecordsToEnd(element, until=b"\1\2", except_first=except_first), "tail" / rest()))
        numbers = (0x102, 0x101, 0x102)[not except_first :]
        items = [number if element is uint16 else {"n": number, "text": b"\1\2"} for number in numbers]
        data = wirekit.encode(layout, {"items": items[:-1], "tail": b"\1\2"}, engine=engine)
        assert wirekit.to_json(wirekit.decode(data, layout).value)["tail"] == "0102"
        reason = rf"items\[{len(items) - 1}\]: expected a record, found the bytes 0102, which end the list"
        with pytest.raises(wirekit.Wrong, match=reason):
            wirekit.encode(layout, {"items": items}, engine=engine)


PAIRS, FIXED = Struct("n" / uint16, "text" / Bytes(uint8)), Struct("n" / uint16)


@pytest.mark.parametrize("engine", ["reference", "rows"])
@pytest.mark.parametrize(
    ("items", "values", "tail", "problem"),
    [
        (RecordsToEnd(uint8, until=b"\1\2"), [5, 1, 2, 7], b"", r"items\[1\]: .* found the bytes 0102, which end"),
        (RecordsToEnd(uint8, until=b"\1\2"), [5, 1], b"\2", r"items\[1\]: .* found the bytes 0102, which end"),
        (RecordsToEnd(uint8, until=b"\1\2"), [5, 1], b"\1\2", ""),
        (RecordsToEnd(uint8, until=b"\1\2", except_first=True), [1, 2], b"", ""),
        (
            RecordsToEnd(uint16, until=b"\1\2"),
            [5],
            b"\1\3",
            r"items: .* that do not begin with 0102 as one, found 0103",
        ),
        (RecordsToEnd(PAIRS, until=b"\1\2"), [], b"\1", "items: expected another element, .* found 01"),
        (
            RecordsToEnd(PAIRS, until=b"\1\2", except_first=True),
            [],
            b"\1\2",
            r"items: .* after the list as one, .* 0102",
        ),
        (RecordsToEnd(FIXED, until=b"\1\2", short_tail="stop"), [], b"\0\3", r"items: .* found 0003"),
        (RecordsToEnd(FIXED, until=b"\1\2", short_tail="stop"), [], b"\5", ""),
        (RecordsToEnd(FIXED, until=b"\1\2", short_tail="stop"), [], b"\1\2\3", ""),
    ],
)
def test_a_list_that_would_be_read_otherwise_is_not_built(
    key: Layouter, engine: str, items: Node, values: list[Any], tail: bytes, problem: str
) -> None:
    """A reader ends the list inside it, or continues it with the bytes after it."""
    body = Struct("items" / items, "tail" / rest())
    for size in (None, uint8, varint32):
        layout = key(body if size is None else Struct("body" / Sized(size, body), "after" / rest()))
        value: Any = {"items": values, "tail": tail}
        value = value if size is None else {"body": value, "after": b"\7\7"}
        if problem:
            with pytest.raises(wirekit.Wrong, match=problem):
                wirekit.encode(layout, value, engine=engine)
            continue
        decoded = wirekit.decode(wirekit.encode(layout, value, engine=engine), layout)
        read = decoded.value if size is None else decoded.value.body
        assert (wirekit.to_json(read["items"]), read.tail) == (values, tail)


def test_the_bytes_that_end_a_list_are_described() -> None:
    assert type_of(RecordsToEnd(int8)) == "int8 until the end"
    assert type_of(RecordsToEnd(int8, until=b"\1\2")) == "int8 until the end or the bytes 0102"


@pytest.mark.parametrize("engine", ["reference", "rows"])
def test_no_element_of_a_list_to_the_end_is_empty(key: Layouter, engine: str) -> None:
    layout = key(Struct("kind" / uint8, "items" / RecordsToEnd(Struct("n" / If(this._.kind == 1, uint8)))))
    assert wirekit.encode(layout, {"kind": 1, "items": [{"n": 2}]}, engine=engine) == b"\1\2"
    with pytest.raises(wirekit.Wrong, match=r"items\[0\]: expected a record of at least one byte, found an empty one"):
        wirekit.encode(layout, {"kind": 0, "items": [{"n": None}]}, engine=engine)


def test_missing_field_is_named(key: Layouter) -> None:
    with pytest.raises(wirekit.Wrong, match=r"a\.b: expected a value, found nothing"):
        wirekit.encode(key(Struct("a" / Struct("b" / int8))), {"a": {}})


def test_unknown_field_is_refused(key: Layouter) -> None:
    with pytest.raises(wirekit.Misuse, match="no field 'c'; the fields are b"):
        wirekit.encode(key(Struct("b" / int8)), {"b": 1, "c": 2})
    with pytest.raises(wirekit.Misuse, match="no field 1; the fields are b"):
        wirekit.encode(key(Struct("b" / int8)), {"b": 1, 1: 2})
    with pytest.raises(wirekit.Misuse, match="BaseCommand has no field 1; it has type"):
        wirekit.encode("pulsar.command", {"type": "PING", 1: 2})


def test_value_that_does_not_fit_is_named(key: Layouter) -> None:
    with pytest.raises(wirekit.Wrong, match=r"a\[1\]: expected an integer in -128..127, found 300"):
        wirekit.encode(key(Struct("a" / Array(int16, int8))), {"a": [1, 300]})


def test_offsets_are_absolute(key: Layouter) -> None:
    decoded = wirekit.decode(b"\0", key(Struct("a" / int16)), offset=1000)
    assert decoded.error.offset == 1000
    assert str(decoded.error).endswith("a: needs 2 bytes, 1 available, at byte 1000 (0x3e8)")


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (If(context.version > 1, int8), r"expected a value for \(context\.version > 1\), found none"),
        (Switch(context.version, {1: int8}), "expected one of 1, found None"),
        (
            Switch(context.version, dict.fromkeys(range(30), int8)),
            r"expected one of 0, .*, 11, … \(30 in all\), found None",
        ),
        (Switch((this.kind, context.version), {(1, 1): int8}), r"expected one of \(1, 1\), found \(1, None\)"),
        (Bytes(context.version), "expected a length or count of at least 0, found None"),
        (Repeat(context.version - 1, int8), r"expected a value for \(context\.version - 1\), found none"),
    ],
)
def test_context_that_was_not_given_is_named(key: Layouter, node: Node, reason: str) -> None:
    layout = key(Struct("kind" / int8, "a" / node))
    for engine in ("reference", "rows"):
        error = wirekit.decode(b"\1\2", layout, engine=engine).error
        assert re.search(rf"a: {reason} \(the context version was not given\), at byte 1", str(error))


def test_a_layout_names_the_symbols_that_select_a_case() -> None:
    kind = Symbols(int8, SymbolTable("kind", {1: "ONE", 2: "TWO", 3: "THREE"}))
    cases = {1: Bytes(1), 3: int8, 9: int8}
    node = Struct("kind" / kind, "inner" / If(this.kind > 0, Switch(this.kind, cases, int16)))
    lines = [(line.name, line.note) for line in describe(node)]
    assert lines[2:] == [("1:", "ONE"), ("3, 9:", "THREE"), ("default:", "")]
