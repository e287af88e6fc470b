"""Bytes on which engines once differed, or on which the law itself once judged them wrong."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.law import agree, rebuild
from tests.own import own
from tests.trace.tiling import check_tiling
from wirekit.compiler.columns import scan
from wirekit.errors import Misuse, WireError
from wirekit.wire import (
    Array,
    Bytes,
    Checked,
    Compressed,
    Const,
    Custom,
    Delimited,
    Encrypted,
    Flag,
    If,
    IfMore,
    IfNext,
    IfThenElse,
    Length,
    Lookahead,
    Node,
    OrBytes,
    Padding,
    Protobuf,
    RecordsToEnd,
    Repeat,
    Sized,
    String,
    Struct,
    Switch,
    Timestamp,
    Varint,
    context,
    int8,
    int16,
    int24le,
    int32,
    int40,
    int64,
    len_,
    rest,
    this,
    uint8,
    uint16,
    uint24,
    uint32,
    uint64,
    varint32,
)

LAYOUTS: dict[str, tuple[Node, str]] = {
    "a codec that is computed from a field which may be absent": (
        RecordsToEnd(
            Struct("d" / IfNext(b"\xca", uint8), "c" / Compressed(Bytes(int8), this.d & 3, {1: "gzip"}, rest()))
        ),
        "ca 01 61 00 01 62",
    ),
    "a count in a list that may be cut, of elements that context makes longer": (
        RecordsToEnd(
            Repeat(1, Switch(context.mode, {None: Struct("n" / Length(int40, "a"), "a" / int32), 1: int64})),
            short_tail="stop",
        ),
        "00 00 00 00 00 00 7c 07",
    ),
    "the length of bytes that may be null, in a condition": (
        RecordsToEnd(Struct("s" / Bytes(int8, null=-1), "c" / If(len_(this.s) == 0, int8))),
        "00 07 01 61 ff 07",
    ),
    "the length of bytes that may be null, as a size": (
        RecordsToEnd(Struct("s" / Bytes(int8, null=0), "c" / Bytes(len_(this.s)))),
        "01 61 62 00 07",
    ),
    "bytes that are null, in a condition": (
        RecordsToEnd(Struct("s" / Bytes(int8, null=-1), "c" / If(this.s != None, int8))),  # noqa: E711
        "ff 00 07 01 61 08",
    ),
    "text that is null, in a condition": (
        RecordsToEnd(Struct("s" / String(int8, null=-1), "c" / If(this.s == None, int8))),  # noqa: E711
        "ff 07 00 01 61",
    ),
    "a list that is null, in a condition and by its length": (
        RecordsToEnd(
            Struct(
                "s" / Array(int8, int8, null=-1),
                "c" / If(this.s == None, int8),  # noqa: E711
                "d" / If(this.c == None, Bytes(len_(this.s))),  # noqa: E711
            )
        ),
        "ff 07 00 01 61 62",
    ),
    "a structure that is absent, in a condition": (
        RecordsToEnd(
            Struct("n" / int8, "s" / If(this.n > 0, Struct("a" / int8)), "c" / If(this.s == None, int8))  # noqa: E711
        ),
        "00 07 01 02 00 08",
    ),
    "bytes in place of a field that is absent, and in a condition": (
        RecordsToEnd(
            Struct(
                "n" / int8,
                "s" / OrBytes(If(this.n > 0, Struct("a" / int8))),
                "c" / If(this.s == None, int8),  # noqa: E711
            )
        ),
        "00 07 01 02 00 08 01",
    ),
    "bytes in place of a number that is null": (
        RecordsToEnd(Struct("s" / OrBytes(Sized(int8, int8, null=-1)))),
        "ff 01 05 07",
    ),
    "one of several fields, which is absent, in a condition": (
        RecordsToEnd(
            Struct(
                "n" / int8,
                "s" / IfThenElse(this.n > 1, OrBytes(If(this.n == 2, int16)), If(this.n == 0, int32)),
                "c" / If(this.s == None, int8),  # noqa: E711
            )
        ),
        "00 00000001 01 07 02 0003 03 08 02 01",
    ),
    "a list of such fields": (
        RecordsToEnd(
            Array(
                int8,
                Struct(
                    "n" / int8,
                    "s" / IfThenElse(this.n > 1, int16, If(this.n == 0, int32)),
                    "c" / If(this.s == None, int8),  # noqa: E711
                ),
            )
        ),
        "03 00 00000001 01 07 02 0003  02 01 08 00 00000001",
    ),
    "text of two bytes per character that is null, in a condition": (
        RecordsToEnd(
            Struct("s" / String(int8, null=-1, encoding="utf-16-le"), "c" / If(this.s == None, int8))  # noqa: E711
        ),
        "ff 07 02 6100 00",
    ),
    "a list that takes no bytes, and is there because bytes follow": (
        Struct("l" / IfMore(Repeat(3, Lookahead(uint24, at=1)))),
        "00 010203",
    ),
    "a structure inside a length that is null, in a condition": (
        RecordsToEnd(
            Struct("s" / Sized(int8, Struct("a" / int8), null=-1), "c" / If(this.s == None, int8))  # noqa: E711
        ),
        "ff 05 01 02",
    ),
    "a flag of an unusual number, in a length that may mean null": (
        RecordsToEnd(Struct("s" / Sized(int16, Flag(uint24), null=-1))),
        "0003 0000ff 0003 000001 ffff fffe",
    ),
    "the greatest number in decimal of 64 bits, and the next one": (
        RecordsToEnd(Struct("n" / Delimited(" ", number=True))),
        b"9223372036854775807 -9223372036854775808 9223372036854775808 ".hex(),
    ),
    "a count in front of elements that context makes longer": (
        Struct("n" / int8, "items" / Repeat(this.n, Switch(context.mode, {None: int64, 1: int8}))),
        "02 01 01 01 01 01 01 01 01 01 01 01 01",
    ),
    "a list where a value of a user's own functions could stand": (
        Struct(
            "n" / int8,
            "items" / Switch(this.n, {0: Custom(1, parse=zlib.crc32, build=len), 1: Repeat(1, Struct("x" / int8))}),
        ),
        "01 05",
    ),
    "a list where text could stand": (
        Struct("n" / int8, "items" / Switch(this.n, {0: String(int8), 1: Repeat(1, Struct("x" / int8))})),
        "01 05",
    ),
    "a length that covers more than its list and must be at least 4": (
        Struct("n" / Length(int32, "items", minimum=4, frame=True), "items" / Array(int16, String(int16))),
        "00 00 00 04 00 00 ff ff",
    ),
    "a number at the path of a list and of a wider number": (
        Struct("n" / int16, "items" / Switch(this.n, {0: Array(int8, int8), 1: int64}, default=uint16)),
        "10 04 00 01",
    ),
    "a wrong length behind one that has bytes left over": (
        Struct(
            "head" / Const(String(int8), "ab"),
            "d" / Length(int32, "c", clip=True, exceeds=True, frame=True),
            "c" / Length(int16, ("head", "d"), add=4, minimum=2, clip=True, exceeds=True),
        ),
        "02 61 62  00 61 ae a0  00 3c  00 02 0b 00",
    ),
    "a list that context selects, with an element that is cut": (
        Struct("items" / IfThenElse(context.mode, rest(), Array(int16, Bytes(int16)))),
        "00 01 00 01",
    ),
    "a list that context selects as the whole layout, with an element that is cut": (
        IfThenElse(context.mode, uint8, Array(int16, Bytes(int16))),
        "00 02 00 01 61 00 01",
    ),
    "lists of records where bytes could stand": (
        Array(int8, OrBytes(RecordsToEnd(Struct("n" / uint16), short_tail="stop"))),
        "01 00 01 00",
    ),
    "a wrong digest in a list, in front of others": (
        Repeat(16, Struct("digest" / Checked(Bytes(16), "md5", "n"), "n" / uint8)),
        "55" * 16 + "00" + "93b885adfe0da089cdf634904fd59f71 00" * 15,
    ),
    "a length of at least 4 in front of a number that was written in more bytes than it needs": (
        Struct("size" / Length(int16, minimum=4), "n" / Varint(32)),
        "00 05 81 80 80 80 00",
    ),
    "padding behind a number that was written in more bytes than it needs": (
        RecordsToEnd(Struct("kind" / int32, "number" / Varint(32, groups=4), "end" / Padding(to=8))),
        "01 02 03 04 a4 00 00 00",
    ),
    "a constant that follows from a number in front of it": (
        Struct("size" / uint8, "more" / uint8, "same" / Const(uint8, this.size)),
        "03 21 03",
    ),
    "bytes in place of a number that the end of a list cuts": (
        RecordsToEnd(Struct("kind" / uint8, "number" / OrBytes(uint16)), short_tail="stop"),
        "01 00 02 03",
    ),
    "a list of records or a number, with a count announced": (
        Struct(
            "n" / uint8,
            "items"
            / Switch(this.n, {1: RecordsToEnd(Struct("a" / uint8), short_tail="stop", count=this.n)}, default=uint16),
        ),
        "01 05",
    ),
    "a flag of 256 that is read ahead, and written as 1": (
        Struct("ahead" / Lookahead(Flag(uint8), at=1), "flag" / Flag(uint16), "end" / Lookahead(uint8), "last" / uint8),
        "01 00 00",
    ),
    "a list that the next record in its usual form belongs to": (
        Struct("flag" / Flag(uint8), "items" / RecordsToEnd(Struct("data" / Bytes(uint8)), short_tail="stop")),
        "00 02 00",
    ),
    "a list inside of a record, of elements that take no bytes": (
        Struct("items" / IfMore(RecordsToEnd(If(context.mode == 1, uint8)))),
        "01",
    ),
    "a list that context selects, with a count below 0": (
        Struct("items" / IfThenElse(context.mode, uint8, Array(int8, uint8))),
        "97",
    ),
    "an error behind a length that is not there": (
        Struct("a" / uint8, "size" / IfMore(Length(uint8)), "b" / uint16),
        "01",
    ),
    "a length that is there in some records": (
        Struct("k" / uint8, "size" / If(this.k == 1, Length(uint8, minimum=1)), "b" / uint16),
        "00 00 05  01 02 00 06  01 03 00 06 07  00 00 07",
    ),
    "a length beyond the end, of no byte where one is the least": (
        Struct("size" / Length(uint8, minimum=1, clip=True), "data" / rest()),
        "05",
    ),
    "bytes that do not fit, as the whole record": (
        OrBytes(Struct("sum" / Checked(uint32, "adler32"), "data" / uint8)),
        "00 00 00",
    ),
    "a list of no elements where bytes could stand": (
        Struct("size" / Length(uint8), "items" / OrBytes(RecordsToEnd(Struct("a" / uint8)))),
        "00",
    ),
    "bytes of a user's own, or plain ones, at one path": (
        Struct(
            "kind" / uint8,
            "data" / Switch(this.kind, {0: Custom(uint8, parse=bytes.hex, build=bytes.fromhex)}, default=Bytes(uint8)),
        ),
        "00 01 05  01 01 06",
    ),
    "times or numbers at one path": (
        Struct("kind" / uint8, "at" / Switch(this.kind, {0: Timestamp(int64)}, default=int64)),
        "00 0000000000000001  01 0000000000000002",
    ),
    "text of three encodings at one path": (
        Struct(
            "kind" / uint8,
            "data"
            / Switch(
                this.kind,
                {0: String(uint8, encoding="ascii"), 1: String(uint8, encoding="latin-1")},
                default=String(uint8),
            ),
        ),
        "00 01 41  01 01 e4  02 02 c3a4",
    ),
    "a structure of nothing where bytes could stand, which may be null": (
        Struct("outer" / Sized(int8, Sized(int8, OrBytes(Struct()), null=-1), null=0)),
        "01 00  00",
    ),
    "a list of lists of nothing, or of numbers": (
        Struct(
            "kind" / uint8,
            "items"
            / IfThenElse(this.kind, Repeat(1, Array(int8, IfNext(b"\x01", Struct("a" / uint8)))), Array(int8, uint8)),
        ),
        "01 01 00  00 01 05",
    ),
    "a field that is there, and null, as the whole layout": (IfMore(If(context.mode, uint8)), "04"),
    "flags of 7 that are only read ahead": (Repeat(2, Lookahead(Flag(uint8))), "07"),
    "a length of 0 that means the rest, where one of at least 2 is the least": (
        Struct("size" / Length(uint8, minimum=2, zero_is_rest=True), "data" / rest()),
        "00",
    ),
    "a length that counts less than what it covers": (
        RecordsToEnd(Struct("size" / Length(int8, "data", add=-2), "data" / rest())),
        "00 61 62  01 61 62 63  ff 61",
    ),
    "a length of two bytes inside another one": (
        Struct("outer" / Length(uint16), "inner" / Length(Varint(32)), "data" / rest()),
        "00 ca  c8 01" + "61" * 200,
    ),
    "an error within two lengths that end with the record": (
        Struct("outer" / Length(uint8, ("a", "b")), "inner" / Length(uint8, "b"), "a" / uint8, "b" / uint32),
        "06 03 00 00 00 00 00 00 06 04 00 00 00 00 01 00",
    ),
    "lengths that begin at one member, the inner one before the outer one": (
        Struct("inner" / Length(uint8, "a"), "outer" / Length(uint8, ("a", "b")), "a" / rest(), "b" / rest()),
        "7f 01 aa  01 02 bb cc",
    ),
    "the bytes that end a list, in front of all records": (
        RecordsToEnd(Struct(), until=b"\0\0"),
        "00 00 12",
    ),
    "a null whose usual form begins with the bytes that end the list": (
        RecordsToEnd(String(int24le, null=0), short_tail="stop", until=b"\0\0"),
        "01 bc 8f 65 a4",
    ),
    "a null inside of a field that is there if there are more bytes": (
        Struct("number" / IfMore(IfNext(b"\x0e\1", uint16)), "more" / uint16),
        "0e 02",
    ),
    "a count that only the bytes of a cut element allow": (
        RecordsToEnd(
            Struct("items" / Array(uint8, If(context.mode, Repeat(8, uint8))), "size" / Length(uint8, "items")),
            short_tail="stop",
        ),
        "01 00 08",
    ),
    "an unusual flag that is read ahead, in no record": (
        Array(uint8, Array(uint8, Lookahead(Flag(uint8)))),
        "04 01 02 00 00",
    ),
    "a verdict on a list, and those on the elements of an alternative": (
        Struct(
            "n" / uint8,
            "list"
            / IfThenElse(
                this.n == 1,
                RecordsToEnd(Array(uint8, String(uint8))),
                RecordsToEnd(Struct("a" / uint8), count=this.n),
            ),
        ),
        "00",
    ),
    "a number behind the record, read ahead": (
        RecordsToEnd(
            Struct("kind" / IfNext(b"\xca", uint8), "ahead" / Lookahead(uint16, at=2), "n" / varint32),
            short_tail="stop",
        ),
        "01 81 00 02 03 04",
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_engines_agree(name: str) -> None:
    layout, data = LAYOUTS[name]
    with own(layout) as key:
        agree(key, bytes.fromhex(data), {})


PAIR = Struct("a" / uint8, "b" / uint16)


@pytest.mark.parametrize(
    ("layout", "data", "rows", "errors"),
    [
        (Array(uint8, PAIR), "03 010203 040506 07", [(1, 515), (4, 1286)], ["b", ""]),
        (Array(uint8, Sized(uint8, PAIR)), "03 020000 03010203 03040506", [(1, 515), (4, 1286)], ["b"]),
        (RecordsToEnd(Sized(int16, PAIR, null=-1)), "0002 0000 0003 010203", [(1, 515)], ["b"]),
        (Sized(int16, PAIR, null=-1), "0002 0000 0003 010203", [(1, 515)], ["b"]),
        (Array(uint8, Sized(uint8, PAIR, contain=True)), "03 020000 03010203 00", [(1, 515)], ["b", "a"]),
        (Array(uint8, Sized(uint8, PAIR, contain=True)), "02 00", [], ["a", ""]),
        (
            Struct("n" / uint8, "l" / Repeat(this.n, Sized(int16, PAIR, contain=True, null=-1))),
            "02 05 00",
            [],
            ["a", "l"],
        ),
    ],
)
def test_records_beside_a_damaged_one_are_rows(
    layout: Node, data: str, rows: list[tuple[int, int]], errors: list[str]
) -> None:
    """Its own length gives the start of the next one; a count that does not fit leaves the records that are there."""
    with own(layout) as key:
        agree(key, bytes.fromhex(data), {})
        batch, wrong = scan(key, bytes.fromhex(data))
    assert [*zip(batch["a"].to_pylist(), batch["b"].to_pylist(), strict=True)] == rows
    assert wrong["path"].to_pylist() == errors


@pytest.mark.parametrize("around", [lambda node: Array(uint8, node), RecordsToEnd])
@pytest.mark.parametrize("contain", [False, True])
@pytest.mark.parametrize("behind", [False, True])
def test_engines_agree_on_damaged_records_of_a_length_of_their_own(
    around: Callable[[Node], Node], contain: bool, behind: bool
) -> None:
    listed, random = around(Sized(uint8, PAIR, contain=contain)), Random(f"{contain} {behind}")
    with own(Struct("l" / listed, "behind" / If(this.l, uint8)) if behind else listed) as key:
        for _ in range(200):
            lengths = (random.choice((0, 1, 2, 3, 4, 5, 255)) for _ in range(random.randrange(10)))
            agree(key, bytes([random.randrange(4), *lengths]), {})


LAST = {
    "the last field": Struct("k" / uint8, "s" / Sized(uint8, PAIR, contain=True)),
    "or null": Struct("k" / uint8, "s" / Sized(int8, PAIR, contain=True, null=-1)),
    "if present": Struct("k" / uint8, "s" / If(this.k > 0, Sized(uint8, PAIR, contain=True))),
    "after a length": Struct("n" / Length(uint8, "k"), "k" / rest(), "s" / Sized(uint8, PAIR, contain=True)),
    "in a length": Struct("n" / Length(uint8), "s" / Sized(uint8, PAIR, contain=True)),
    "or bytes": Struct("k" / uint8, "s" / OrBytes(Sized(uint8, PAIR, contain=True))),
    "in a choice": Struct("k" / uint8, "s" / IfThenElse(this.k > 2, Sized(uint8, PAIR, contain=True), PAIR)),
    "after a structure": Struct(
        "k" / uint8, "s" / IfThenElse(this.k > 2, Struct("a" / PAIR), Sized(uint8, Struct("b" / PAIR), contain=True))
    ),
    "not the last field": Struct("s" / Sized(uint8, PAIR, contain=True), "k" / uint8),
    "in a structure": Struct("k" / uint8, "s" / Struct("s" / Sized(uint8, PAIR, contain=True))),
}


@pytest.mark.parametrize("name", LAST)
def test_engines_agree_on_damaged_records_that_end_with_a_length_of_their_own(name: str) -> None:
    random = Random(name)
    with own(Struct("l" / RecordsToEnd(LAST[name]))) as key:
        for _ in range(300):
            numbers = (random.choice((0, 1, 2, 3, 4, 5, 255)) for _ in range(random.randrange(14)))
            agree(key, bytes(numbers), {})


def test_a_field_with_a_length_of_its_own_ends_the_record() -> None:
    with own(RecordsToEnd(LAST["the last field"])) as key:
        batch, errors = scan(key, bytes.fromhex("01020000 0203040506"))
    assert (batch["k"].to_pylist(), batch["s.b"].to_pylist()) == ([2], [0x0506])
    assert (errors["path"].to_pylist(), errors["length"].to_pylist()) == (["s.b"], [4])


def test_behind_an_error_the_outer_length_tells_where_the_next_record_begins() -> None:
    layout, data = LAYOUTS["an error within two lengths that end with the record"]
    with own(layout) as key:
        batch, errors = scan(key, bytes.fromhex(data))
    assert errors["path"].to_pylist() == ["b"]
    assert batch["@offset"].to_pylist() == [8]


def test_the_hint_on_context_knows_a_case_for_none() -> None:
    with own(Struct("a" / Switch(context.mode, {1: uint8, None: uint16}))) as key:
        with pytest.raises(WireError) as wide:
            wirekit.encode(key, {"a": 1 << 16})
        assert not wide.value.hint
        with pytest.raises(WireError) as unknown:
            wirekit.encode(key, {"a": 1}, context={"mode": 7})
        assert unknown.value.hint == "the context mode is 7; it may be 1"


def test_the_length_of_a_text_is_in_characters_which_columns_do_not_know() -> None:
    with own(Struct("text" / String(uint8), "data" / Bytes(len_(this.text)))) as key:
        decoded = agree(key, bytes.fromhex("02 c3a4 05"), {})
        assert decoded.value.data == bytes([5])
        with pytest.raises(Misuse, match=r"len\(text\)"):
            scan(key, b"")


@pytest.mark.parametrize(
    ("length", "data"),
    [
        (Length(uint8, clip=True), "00 03 01 61"),
        (Length(uint8, zero_is_rest=True), "00 00 02 61"),
        (If(this.kind == 1, Length(uint8)), "00 02 61"),
    ],
)
def test_a_length_that_may_bound_nothing_has_no_columns_where_a_cut_element_is_left(length: Node, data: str) -> None:
    element = Struct("kind" / uint8, "size" / length, "text" / String(uint8))
    items = RecordsToEnd(element, short_tail="stop")
    whole = bytes.fromhex(data) + b"a"
    for layout, before, cut in (
        (items, b"", whole[:-2]),
        (Struct("first" / uint8, "items" / items), b"\1", whole[:-2]),
        (Struct("items" / Sized(uint8, items), "end" / uint8), bytes([len(whole) - 2]), whole[:-2] + b"\1"),
    ):
        with own(layout) as key:
            assert agree(key, before + cut, {}, used=False).error is None
            with pytest.raises(Misuse, match="a length that may bound nothing"):
                scan(key, before + cut)
    with own(RecordsToEnd(element)) as key:
        agree(key, whole, {})


def build_refused(key: str, value: Any, path: str, batch: dict[str, list[Any]] | None = None) -> None:
    """A value, and the columns of it, is refused by all engines."""
    for engine in ("reference", "rows"):
        for form in (value, wirekit.from_json(key, value)):
            with pytest.raises(WireError) as error:
                wirekit.encode(key, form, engine=engine)
            assert error.value.path == path
    if batch is not None:
        with pytest.raises(Misuse, match="elements"):
            wirekit.build_columns(key, pa.RecordBatch.from_pydict(batch))


def test_a_list_of_a_computed_count_has_as_many_elements() -> None:
    with own(Struct("n" / int8, "l" / Repeat(this.n, int8), "t" / int8)) as key:
        build_refused(key, {"n": 2, "l": [1], "t": 1}, "l", {"n": [2], "l": [[1]], "t": [1]})
        build_refused(key, {"n": 0, "l": [1], "t": 1}, "l", {"n": [0], "l": [[1]], "t": [1]})
        build_refused(key, {"n": -1, "l": [], "t": 1}, "l")
    with own(Struct("n" / int8, "of" / Struct("l" / Repeat(2, Struct("a" / int8, "b" / Bytes(this._._.n)))))) as key:
        build_refused(key, {"n": 1, "of": {"l": [{"a": 1, "b": "00"}]}}, "of.l")


@pytest.mark.parametrize(
    ("node", "data"), [(Repeat(this.size // 2, uint16), "04 0001 0002"), (Bytes(this.size), "02 6162")]
)
def test_a_count_may_follow_from_a_length_around_the_list(node: Node, data: str) -> None:
    with own(Struct("size" / Length(uint8, "l"), "l" / node)) as key:
        decoded = agree(key, bytes.fromhex(data), {})
        for engine in ("reference", "rows"):
            assert wirekit.encode(key, {"l": decoded.value.l}, engine=engine) == bytes.fromhex(data)
    with own(Struct("size" / Length(uint8, "l"), "l" / Repeat(this.size, uint16))) as key:
        build_refused(key, {"l": [1]}, "l")


@pytest.mark.parametrize("kind", [Bytes, lambda size: Repeat(size, int8)])
def test_a_size_is_compared_with_a_length_that_is_computed(kind: Callable[[Any], Node]) -> None:
    """While the field is written, the length is 0: an empty field would fit, and a length less 2 would be negative."""
    with own(Struct("size" / Length(uint8, ("l", "m")), "l" / kind(this.size), "m" / Bytes(1))) as key:
        build_refused(key, {"l": [], "m": "05"} if kind is not Bytes else {"l": "", "m": "05"}, "l")
    with own(Struct("size" / Length(uint8, "l", add=2), "l" / kind(this.size - 2))) as key:
        decoded = agree(key, bytes.fromhex("04 6162"), {})
        for engine in ("reference", "rows"):
            assert wirekit.encode(key, {"l": decoded.value.l}, engine=engine) == bytes.fromhex("04 6162")


MAYBE_EMPTY = Struct("n" / int8, "l" / Array(int8, Struct("x" / If(this._.n > 3, int8))), "t" / String(int8))


@pytest.mark.parametrize(
    ("node", "value", "path", "batch"),
    [
        (MAYBE_EMPTY, {"n": 1, "l": [{}, {}], "t": ""}, "l", {"n": [1], "l.x": [[None, None]], "t": [""]}),
        (
            Struct("m" / Sized(Varint(32), MAYBE_EMPTY), "more" / Bytes(2)),
            {"m": {"n": 1, "l": [{}, {}], "t": ""}, "more": "0000"},
            "m.l",
            {"m.n": [1], "m.l.x": [[None, None]], "m.t": [""], "more": [b"12"]},
        ),
        (
            Struct("size" / Length(Varint(32), "m"), "m" / MAYBE_EMPTY, "more" / Bytes(2)),
            {"m": {"n": 1, "l": [{}, {}], "t": ""}, "more": "0000"},
            "m.l",
            {"m.n": [1], "m.l.x": [[None, None]], "m.t": [""], "more": [b"12"]},
        ),
        (
            Struct("m" / Compressed(Bytes(int8), 1, {1: "zlib"}, MAYBE_EMPTY)),
            {"m": {"content": {"n": 1, "l": [{}, {}], "t": ""}}},
            "m.content.l",
            None,
        ),
    ],
)
def test_elements_without_bytes_are_built_only_if_their_count_is_read(
    node: Node, value: Any, path: str, batch: dict[str, list[Any]] | None
) -> None:
    """A count is bounded by the bytes left, before an element is read."""
    with own(node) as key:
        build_refused(key, value, path, batch)
        inside = value
        for name in path.split(".")[:-1]:
            inside = inside[name]
        inside["t"] = "a"
        data = wirekit.encode(key, value, engine="reference")
        assert wirekit.encode(key, value, engine="rows") == data
        assert agree(key, data, {}).error is None
        if batch is not None:
            batch[path.removesuffix("l") + "t"] = ["a"]
            assert wirekit.build_columns(key, pa.RecordBatch.from_pydict(batch))[:-2] == data[:-2]


@pytest.mark.parametrize(
    ("node", "value", "column"),
    [
        (Sized(Varint(32), Bytes(129)), "00" * 129, "m"),
        (Struct("size" / Length(Varint(32), "b"), "b" / Bytes(129)), {"b": "00" * 129}, "m.b"),
    ],
)
def test_a_length_that_grows_moves_no_list_before_it(node: Node, value: Any, column: str) -> None:
    """The list may have 131 elements: the bytes after its count are a length of two bytes, and 129 others."""
    with own(Struct("n" / int8, "l" / Array(int16, Struct("x" / If(this._.n > 3, int8))), "m" / node)) as key:
        data = wirekit.encode(key, {"n": 1, "l": [{}] * 131, "m": value})
        batch = {"n": [1], "l.x": pa.array([[None] * 131], pa.list_(pa.int8())), column: [bytes(129)]}
        assert wirekit.build_columns(key, pa.RecordBatch.from_pydict(batch)) == data
        batch["l.x"] = pa.array([[None] * 132], pa.list_(pa.int8()))
        with pytest.raises(Misuse, match="more elements"):
            wirekit.build_columns(key, pa.RecordBatch.from_pydict(batch))


def test_a_mapping_inside_a_record_is_no_json_form() -> None:
    with own(Struct("m" / Compressed(Bytes(int8), 1, {1: "zlib"}, Struct("b" / Bytes(2))))) as key:
        compressed = wirekit.from_json(key, {"m": {"content": {"b": "0000"}}}).m
        compressed.content = {"b": "0000"}
        build_refused(key, {"m": compressed}, "m.content.b")


def test_records_without_bytes_are_not_built() -> None:
    with own(Array(int8, Struct("x" / IfMore(int8)))) as key:
        build_refused(key, [{}, {}], "")
        with pytest.raises(Misuse, match="2 records take 0 bytes"):
            wirekit.build_columns(key, pa.RecordBatch.from_pydict({"x": pa.array([None, None], pa.int8())}))


@pytest.mark.parametrize("node", [Padding(this.size), Bytes(this.size)])
def test_a_computed_size_asks_for_so_many_zeros_at_most(node: Node) -> None:
    with own(Struct("size" / uint64, "data" / node)) as key:
        for size in ((1 << 28) + 1, 1 << 63):
            for engine in ("reference", "rows"):
                with pytest.raises(WireError, match="at most 268435456 zeros"):
                    wirekit.encode(key, {"size": size}, engine=engine)
    with own(Array(uint8, Struct("size" / uint64, "data" / node))) as key:
        for engine in ("reference", "rows"):
            with pytest.raises(WireError, match="at most 268435456 zeros, found 268435457"):
                wirekit.encode(key, [{"size": 1 << 27}, {"size": 1}, {"size": 1 << 27}], engine=engine)
    with (
        own(Struct("size" / uint32, "data" / node)) as key,
        pytest.raises(Misuse, match="row 0: data: it would be more"),
    ):
        wirekit.build_columns(key, pa.RecordBatch.from_pydict({"size": [1 << 31]}))


def test_a_null_that_is_left_out_may_be_read_from_the_next_record() -> None:
    with own(Struct("a" / int8, "b" / IfMore(String(int8, null=0)))) as key:
        agree(key, bytes.fromhex("01 ff 02 ff"), {})


def test_the_bytes_that_end_a_list_are_compared_within_its_limit() -> None:
    with own(Struct("items" / Sized(uint8, RecordsToEnd(uint8, until=b"\1\2")), "tail" / rest())) as key:
        decoded = agree(key, bytes.fromhex("02 05 01 02 03"), {})
        assert (decoded.value["items"], decoded.value.tail) == ([5, 1], b"\2\3")


@pytest.mark.parametrize("around", [lambda node: node, lambda node: Sized(uint8, node)])
@pytest.mark.parametrize("element", [uint8, Struct("n" / uint8, "text" / String(uint8))])
def test_a_list_that_ends_at_given_bytes_may_be_empty(around: Callable[[Node], Node], element: Node) -> None:
    """The root of the domain names is a name without labels, and only an exception may begin with the end."""
    for except_first in (False, True):
        body = Struct("items" / RecordsToEnd(element, until=b"\0", except_first=except_first), "end" / rest())
        with own(Struct("n" / uint8, "body" / around(body))) as key:
            data = bytes([7, *([] if around(body) is body else [4]), 0, 0, 0, 5])
            decoded = agree(key, data, {})
            first = [0] if element is uint8 else [{"n": 0, "text": ""}]
            assert decoded.value.body["items"] == (first if except_first else [])
            assert rebuild(key, data) == "built"
            assert wirekit.encode(key, decoded.value) == data


def test_the_verdict_of_decompression_is_none_of_the_text_that_may_stand_there_instead() -> None:
    content = Compressed(Bytes(uint8), 1, {1: "zlib"}, RecordsToEnd(uint8))
    item = Struct("kind" / uint8, "body" / Switch(this.kind, {0: content, 1: String(uint8)}))
    with own(Struct("first" / uint8, "items" / Array(uint8, item))) as key:
        decoded = agree(key, bytes.fromhex("00 02 00 02 789c 01 01 61"), {})
        assert [check.kind for check in decoded.checks if check.status == "bad"] == ["decompression"]


CUT_IN_A_LENGTH = Struct("size" / Length(uint8, "a"), "a" / Struct("b" / Const(uint8, 1), "c" / uint8), "d" / rest())


def test_the_gap_behind_an_error_in_compressed_content_reaches_to_the_end_of_the_content() -> None:
    data = zlib.compress(bytes.fromhex("02 02 00 aabbcc"))
    with own(Struct("body" / Compressed(Bytes(uint8), 1, {1: "zlib"}, CUT_IN_A_LENGTH))) as key:
        decoded = agree(key, bytes([len(data)]) + data, {})
        check_tiling(decoded)
        assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(2, 4)]


def test_the_gap_behind_an_error_in_decrypted_content_reaches_to_the_end_of_the_content() -> None:
    plain = bytes.fromhex("02 02 00 aabbcc")
    with own(Struct("n" / uint8, "body" / Encrypted(CUT_IN_A_LENGTH, this.n))) as key:
        decoded = wirekit.decode(b"\1cipher", key, decrypt=lambda *_: plain)
        check_tiling(decoded)
        assert [(gap.offset, gap.length) for gap in decoded.gaps] == [(2, 4)]


@pytest.mark.parametrize("tail", ["18", "18 da", "0a 05 61"])
def test_a_list_may_end_before_a_message_that_its_end_cuts(tail: str) -> None:
    element = Struct("kind" / uint8, "message" / Protobuf("wirekit.proto.PulsarApi_pb2:SingleMessageMetadata"))
    with own(RecordsToEnd(element, short_tail="stop")) as key:
        decoded = agree(key, bytes.fromhex("01") + bytes.fromhex(tail), {}, used=False)
        assert (decoded.value, decoded.consumed) == ([], 0)


@pytest.mark.parametrize("data", ["05 00 01020304", "04 01 07 01 09", "02 02 08"])
def test_a_list_may_be_an_alternative_to_a_record_that_has_a_list(data: str) -> None:
    pairs = RecordsToEnd(Struct("a" / uint8, "b" / uint8))
    record = Struct("c" / uint8, "items" / Array(uint8, Struct("d" / uint8)))
    with own(
        Struct("size" / Length(uint8), "kind" / uint8, "body" / Switch(this.kind, {0: pairs, 1: record}, uint8))
    ) as key:
        assert agree(key, bytes.fromhex(data), {}).clean


def test_text_whose_verdict_is_that_of_an_alternative() -> None:
    """The column of the verdict is not the one after that of the text."""
    message = Protobuf("wirekit.proto.PulsarApi_pb2:SingleMessageMetadata")
    for other in (message, Const(uint8, 3, fatal=False), String(uint8)):
        node = Struct("kind" / uint8, "a" / Switch(this.kind, {1: other}, default=Delimited(" ")), "b" / rest())
        with own(node) as key:
            for text in (b"ab ", b"\xff\xfe "):
                agree(key, b"\x02" + text, {})


def test_texts_in_lists_and_text_outside_of_them_have_verdicts_of_their_own() -> None:
    """The column of verdicts in lists has none on a text outside of them, nor in fewer of them."""
    texts = Array(uint8, String(uint8))
    for alternatives in ({1: texts, 2: String(uint8)}, {1: Array(uint8, texts), 2: texts}):
        with own(Struct("kind" / uint8, "a" / Switch(this.kind, alternatives))) as key:
            for data in ("01 02 0161 01ff", "01 01 02 0161 01ff", "01 00", "02 01 ff", "02 01 01 ff", "02 00"):
                agree(key, bytes.fromhex(data), {})
