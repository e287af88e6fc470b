"""Lengths among the fields of a structure: absent, beside each other, around each other."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.errors import Misuse
from wirekit.wire import (
    Array,
    Bytes,
    Checked,
    Const,
    Default,
    If,
    IfMore,
    Length,
    OrBytes,
    RecordsToEnd,
    Ref,
    Sized,
    String,
    Struct,
    context,
    int8,
    rest,
    this,
    uint8,
    uint16,
    uint32,
    varint32,
)

ABSENT = Struct("n" / IfMore(Length(uint8, "a", minimum=1)), "a" / rest())
SAID = Struct("n" / If(context.sized == 1, Length(uint8, "a")), "a" / rest(), "b" / If(context.sized == 1, int8))


@pytest.mark.parametrize("data", ["", "0141", "024142", "0341", "00"])
def test_a_length_that_is_absent_bounds_nothing(data: str) -> None:
    with own(ABSENT) as key:
        agree(key, bytes.fromhex(data), {}, columns=False)


@pytest.mark.parametrize(
    ("data", "lengths"), [("014101", {"sized": 1}), ("4101", {}), ("", {}), ("0041", {"sized": 1})]
)
def test_a_length_under_a_condition(data: str, lengths: dict[str, int]) -> None:
    with own(SAID) as key:
        assert agree(key, bytes.fromhex(data), lengths, columns=False).clean


@pytest.mark.parametrize(
    ("length", "value", "written"),
    [
        (Length(uint8, minimum=4), {"a": b"ab"}, None),
        (Length(uint8, minimum=4), {"a": b"abc"}, "0403616263"),
        (Length(varint32, minimum=4), {"a": b"ab"}, None),
        (Length(uint8, minimum=4, clip=True), {"a": b"ab"}, None),
        (Length(int8, add=-2, minimum=1), {"a": b"a"}, None),
        (Length(int8, add=-5), {"a": b"abc"}, None),
        (Length(uint8, minimum=4, bounds=False), {"a": b"ab"}, "03026162"),
        (Length(uint8, minimum=4, zero_is_rest=True), {"a": b"ab"}, None),
        (Default(Length(uint8, minimum=4), 0), {"a": b"ab"}, None),
        (If(context.bare != 1, Length(uint8, minimum=4)), {"a": b"ab"}, None),
        (IfMore(Length(uint8, minimum=4)), {"n": 0, "a": b"ab"}, None),
        (Length(uint8, minimum=4), {"n": 3, "a": b"ab", "$keep": ["n"]}, "03026162"),
    ],
)
def test_no_length_is_written_that_is_below_its_minimum(
    length: Length, value: dict[str, object], written: str | None
) -> None:
    """``decode`` would refuse it."""
    with own(Struct("n" / length, "a" / Bytes(uint8))) as key:
        for engine, form in product(("reference", "rows"), (value, wirekit.from_json(key, value))):
            if written is not None:
                assert wirekit.encode(key, form, engine=engine).hex() == written
                continue
            with pytest.raises(wirekit.Wrong, match=r"n: expected a length of at least [0-4], found -?[0-9]$"):
                wirekit.encode(key, form, engine=engine)


@pytest.mark.parametrize(
    ("length", "data", "written"),
    [
        (Length(uint8, minimum=4), b"ab", None),
        (Length(uint8, minimum=4), b"abc", "0403616263"),
        (Length(varint32, minimum=4), b"ab", None),
        (Length(int8, add=-5), b"abc", None),
        (Default(Length(uint8, minimum=4), 0), b"ab", None),
        (Length(uint8, minimum=4, zero_is_rest=True), b"ab", None),
        (Length(uint8, add=-1, minimum=4, zero_is_rest=True), b"", "0000"),
        (If(context.bare != 1, Length(uint8, minimum=4)), b"ab", None),
    ],
)
def test_columns_write_no_length_that_is_below_its_minimum(length: Length, data: bytes, written: str | None) -> None:
    with own(Struct("n" / length, "a" / Bytes(uint8))) as key:
        batch = pa.RecordBatch.from_pydict({"a": [data]})
        if written is not None:
            assert bytes(wirekit.build_columns(key, batch)).hex() == written
            return
        with pytest.raises(Misuse, match=r"row 0: n: it would be less than [04]$"):
            wirekit.build_columns(key, batch)


BEGIN = Struct("n" / Length(uint8, "a"), "m" / Length(uint8, ("a", "b")), "a" / rest(), "b" / rest())
SAME = Struct("n" / Length(uint8, "a"), "m" / Length(uint8, "a"), "a" / int8)
END = Struct("n" / Length(uint8), "m" / Length(uint8, "b"), "a" / int8, "b" / int8)
VERIFIED = Struct("n" / Length(uint8), "m" / Length(uint8, "a", bounds=False), "a" / int8)


@pytest.mark.parametrize(
    ("node", "data", "trailing"),
    [
        (BEGIN, "010361 6262", {}),
        (BEGIN, "030161", None),
        (SAME, "010107", {}),
        (SAME, "030207aabb", {"m": "aa", "n": "bb"}),
        (END, "05020708aabb", {"m": "aa", "n": "bb"}),
        (END, "0401 0708aa", {"n": "aa"}),
        (VERIFIED, "030107aa", {"n": "aa"}),
    ],
)
def test_lengths_that_begin_or_end_together(node: Struct, data: str, trailing: dict[str, str] | None) -> None:
    """The one that ends last, or stands first, is around the other; each keeps what is left over in it."""
    with own(node) as key:
        decoded = agree(key, bytes.fromhex(data), {}, columns=False)
        assert (decoded.error is None) == (trailing is not None)
        leftover = decoded.value.extra.get("trailing", {})
        assert {name: left.hex() for name, left in leftover.items()} == (trailing or {})


def test_a_length_behind_is_verified_before_one_around_it_ends() -> None:
    node = Struct("n" / Length(uint8, clip=True), "a" / int8, "m" / Length(uint8, "a"))
    with own(node) as key:
        checks = agree(key, b"\x05\x07\x01", {}, columns=False).checks
        assert [(check.path, check.status) for check in checks] == [("m", "ok"), ("n", "bad")]


def test_bytes_left_over_in_a_length_are_outside_its_checksum() -> None:
    node = Struct("n" / Length(uint8), "crc" / Checked(uint32, "crc32"), "a" / int8)
    with own(node) as key:
        data = wirekit.encode(key, {"a": 7})
        decoded = agree(key, bytes([data[0] + 1]) + data[1:] + b"x", {}, columns=False)
        assert [check.status for check in decoded.checks] == ["ok"]


def test_a_checksum_of_another_one_is_computed_behind_it() -> None:
    node = Struct("all" / Checked(uint32, "crc32"), "one" / Checked(uint32, "crc32c", "a"), "a" / int8)
    with own(node) as key:
        assert agree(key, wirekit.encode(key, {"a": 7}), {}, columns=False).clean


def test_the_content_of_text_is_covered_without_its_length() -> None:
    node = Struct("crc" / Checked(uint32, "crc32", "a", content=True), "a" / String(uint8, null=0))
    with own(node) as key:
        for text in ("ab", "", None):
            assert agree(key, wirekit.encode(key, {"a": text}), {}, columns=False).clean


def test_a_frame_may_end_with_fields_of_a_fixed_size_behind_its_length() -> None:
    node = Struct(
        "size" / Length(uint8, "data"),
        "data" / Bytes(None),
        "sum" / Checked(uint16, "internet", "data"),
        "end" / Const(uint8, 0xCE),
    )
    with own(node) as key:
        one = wirekit.encode(key, {"data": b"abc"})
        assert [frame.value.data for frame in wirekit.frames(one + one, key)] == [b"abc", b"abc"]
        assert next(frame.consumed for frame in wirekit.frames(one + one[:-1], key)) == len(one)


PART = Sized(uint8, Struct("text" / String(uint8), "number" / uint16), contain=True)
PARTS = Struct("parts" / Array(uint8, PART), "end" / uint8)
GOOD, LONG, CUT = "05026162 0007", "04096162 00", "0402616200"


def test_a_frame_may_have_numbers_between_its_length_and_what_that_covers() -> None:
    node = Struct(
        "captured" / Length(uint16, "data"),
        "original" / Length(uint16, "data", bounds=False, exceeds=True),
        "data" / rest(),
    )
    with own(node) as key:
        data = bytes.fromhex("0002 0010 6161 0001 0001 62")
        assert [(frame.offset, frame.consumed, frame.clean) for frame in wirekit.frames(key, data)] == [
            (0, 6, True),
            (6, 5, True),
        ]


@pytest.mark.parametrize("number", [-5, 0, 3, 8, 10, 12, 100])
def test_a_length_that_readers_ignore_is_not_the_size_of_a_frame(number: int) -> None:
    node = Struct("n" / Length(int8, add=1, bounds=False), "a" / String(uint8), "b" / String(uint8))
    with own(node) as key:
        good = wirekit.encode(key, {"a": "abc", "b": "defg"})
        data = number.to_bytes(1, signed=True) + good[1:] + good
        frames = list(wirekit.frames(key, data))
        assert [(frame.offset, frame.consumed, frame.error) for frame in frames] == [(0, 10, None), (10, 10, None)]
        assert [frame.value.b for frame in frames] == ["defg", "defg"]
        assert [frame.clean for frame in frames] == [number == 10, True]
        with pytest.raises(Misuse, match="a frame of a stream must be a Struct with a Length that bounds all fields"):
            wirekit.registry[key].check_framed()


def test_a_length_of_0_that_means_the_rest_is_not_the_size_of_a_frame() -> None:
    node = Struct("n" / Length(uint8, zero_is_rest=True), "data" / rest())
    with own(node) as key:
        frames = list(wirekit.frames(key, bytes.fromhex("02 6162 00 036364")))
        assert [frame.value.data for frame in frames] == [b"ab", b"\x03cd"]


def test_a_length_that_may_be_absent_is_not_the_size_of_a_frame() -> None:
    node = Struct("flag" / uint8, "n" / If(this.flag == 1, Length(uint8)), "data" / String(uint8))
    with own(node) as key:
        frames = list(wirekit.frames(key, bytes.fromhex("00 0161  01 03 026263  00 0164")))
        assert [frame.value.data for frame in frames] == ["a", "bc", "d"]
        with pytest.raises(Misuse, match="a frame of a stream must be a Struct with a Length"):
            wirekit.registry[key].check_framed()


@pytest.mark.parametrize(
    ("node", "frame", "is_framed"),
    [
        (Struct("n" / Default(Length(uint8), 0), "a" / uint8), "03 07 aabb", True),
        (Struct("n" / Length(uint8, clip=True), "a" / uint8), "03 07 aabb", True),
        (Struct("m" / Length(uint8, "a"), "n" / Length(varint32, "a"), "a" / uint8), "03 01 07 aabb", False),
        (Struct("m" / Length(uint8, "a"), "n" / Length(uint8), "a" / uint8, "b" / uint8), "01 05 07 08 aabbcc", False),
        (Struct("n" / Length(uint8, "a"), "a" / rest(), "m" / Length(uint8), "b" / uint8), "01 07 03 08 aabb", True),
        (
            Struct("m" / Length(uint8, "a"), "x" / uint8, "a" / rest(), "n" / Length(uint8), "b" / rest()),
            "010007 0108",
            True,
        ),
        (Struct("inner" / Struct("n" / Length(uint8), "a" / uint8), "b" / uint8), "02 07 aa 08", False),
    ],
)
def test_a_frame_ends_where_its_value_does(node: Struct, frame: str, is_framed: bool) -> None:
    """Also if bytes are left over in a length."""
    data = bytes.fromhex(frame)
    with own(node) as key:
        whole = wirekit.decode(data, key)
        assert whole.error is None
        assert whole.consumed == len(data)
        assert [each.consumed for each in wirekit.frames(key, data * 3)] == [len(data)] * 3
        assert wirekit.registry[key].is_framed == is_framed


def test_a_frame_may_have_fields_before_its_length_that_the_context_decides() -> None:
    node = Struct("more" / If(context.mode == 1, uint16), "n" / Length(uint8), "data" / rest())
    with own(node) as key:
        for mode, data in ((1, "ffff 02 6162 ffff 01 63"), (2, "02 6162 01 63")):
            frames = list(wirekit.frames(key, bytes.fromhex(data), context={"mode": mode}))
            assert [frame.value.data for frame in frames] == [b"ab", b"c"]


def test_a_length_inside_another_one_is_read_within_its_bytes() -> None:
    node = Struct("outer" / Length(uint8, "inner"), "inner" / Length(uint8, "data"), "data" / rest())
    with own(node) as key:
        data = bytes.fromhex("03 01 ffff 61  01 00  00 0561")
        assert [(frame.consumed, frame.error is None) for frame in wirekit.frames(key, data)][:2] == [
            (5, True),
            (2, True),
        ]
        *_, last = wirekit.frames(key, data)
        assert (last.offset, last.error and last.error.path) == (7, "inner")
        agree(key, data, {})


def test_an_error_that_a_length_contains_hides_nothing_behind_it() -> None:
    with own(PARTS) as key:
        for data, errors in ((GOOD * 3, 0), (GOOD + LONG + GOOD, 1), (LONG + GOOD + CUT, 2), (LONG * 3, 3)):
            decoded = agree(key, bytes.fromhex(f"03{data}2a"), {}, columns=False)
            parts = decoded.value.parts
            assert (len(parts), decoded.value.end, len(decoded.contained)) == (3, 42, errors)
            assert [part.number for part in parts if part.get("number") is not None] == [7] * (3 - errors)
            assert decoded.error is (decoded.contained[0].error if errors else None)
            assert [each.kind for each in decoded.checks] == ["layout"] * max(errors - 1, 0)
            assert len(decoded.gaps) == errors  # what the layout has not read


@pytest.mark.parametrize("data", ["02" + GOOD + "09096162", "02" + GOOD + LONG[:6]])
def test_a_length_beyond_the_bytes_contains_nothing(data: str) -> None:
    with own(PARTS) as key:
        decoded = agree(key, bytes.fromhex(data), {}, columns=False)
        assert isinstance(decoded.error, wirekit.Short)
        assert decoded.value.get("end") is None


def test_bytes_that_may_be_something_else_contain_nothing() -> None:
    with own(Struct("body" / OrBytes(PARTS))) as key:
        data = bytes.fromhex(f"03{GOOD}{LONG}{GOOD}2a")
        decoded = agree(key, data, {}, columns=False)
        assert decoded.error is None
        assert decoded.value.body == data


def test_a_limit_is_not_contained() -> None:
    with own(Struct("part" / Sized(uint8, Ref("kafka.offset_index"), contain=True), "end" / uint8)) as key:
        decoded = wirekit.decode(bytes.fromhex("01002a"), key, limits=wirekit.Limits(depth=0))
        assert isinstance(decoded.error, wirekit.Limit)
        assert not decoded.contained
        assert decoded.value.get("end") is None


CHECKED = ("crc" / Checked(uint32, "crc32c"), "text" / rest())
NOTE = Struct("size" / Length(uint8), *CHECKED)


@pytest.mark.parametrize(
    "node",
    [
        Struct("total" / Length(uint8), "notes" / RecordsToEnd(NOTE)),
        Struct("notes" / Sized(uint8, RecordsToEnd(NOTE))),
        Struct("total" / Length(uint8), "notes" / RecordsToEnd(Sized(uint8, Struct(*CHECKED)))),
    ],
)
@pytest.mark.parametrize("good", [True, False])
def test_a_verdict_needs_no_bytes_behind_a_length_that_fits(node: Struct, good: bool) -> None:
    with own(NOTE) as key:
        note = wirekit.encode(key, {"text": b"hello"})
    last = note if good else note[:-1] + b"0"
    with own(node) as key:
        for missing, verdicts in ((0, 2), (1, 1), (2, 1)):
            data = bytes([3 * len(note)]) + note + last[: len(note) - missing]
            decoded = agree(key, data, {}, columns=False)
            assert decoded.error is not None
            assert [check.status for check in decoded.checks] == ["ok", "ok" if good else "bad"][:verdicts]


@pytest.mark.parametrize(("total", "verdicts"), [(3, ["bad"]), (9, [])])
def test_a_length_that_may_be_clipped_has_no_verdict_if_bytes_are_missing(total: int, verdicts: list[str]) -> None:
    with own(Struct("total" / Length(uint8), "inner" / Struct("n" / Length(uint8, clip=True), "a" / rest()))) as key:
        decoded = agree(key, bytes([total, 5]) + b"ab", {}, columns=False)
        assert [check.status for check in decoded.checks] == verdicts
        assert (decoded.error is None) is bool(verdicts)


def test_a_protobuf_message_that_fits_needs_no_bytes_behind_it() -> None:
    frame = bytes.fromhex("00000010 0000000c 0802 1202 2004 28")  # CONNECT with a version, without its name
    decoded = agree("pulsar.frame", frame[:-1], {}, columns=False)
    assert ("command.connect.client_version", "bad") in [(check.path, check.status) for check in decoded.checks]
    cut = agree("pulsar.frame", frame[:-2], {}, columns=False)
    assert not cut.checks
