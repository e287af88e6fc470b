"""``$raw``, ``$width`` and names that are no fields, in a value to encode: applied, or refused with their place."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.own import own
from wirekit.compiler.engines import ENCODERS
from wirekit.compression import compress
from wirekit.wire import (
    Array,
    Bytes,
    Checked,
    Compressed,
    Flag,
    Length,
    Lookahead,
    OrBytes,
    Protobuf,
    RecordsToEnd,
    Sized,
    String,
    Struct,
    float32,
    int8,
    int16,
    uint8,
    varint32,
)
from wirekit.wire.node import Node

ALL = Struct(
    "flag" / Flag(int8),
    "text" / String(int16, null=-1),
    "latin" / String(uint8, encoding="latin-1"),
    "list" / Array(int8, Flag(int8), null=-1),
    "nan" / float32,
    "n" / varint32,
    "plain" / int8,
)
VALUE = {"flag": True, "text": None, "latin": "a", "list": [True, False], "nan": "nan", "n": 1, "plain": 1}
CUT = compress("gzip", b"\3\7")
"""A list of three flags, of which one is there, in an unusual form."""
ONE_FORM = "which does not exist here, or has only one form; leave it out of"


@pytest.mark.parametrize("engine", ENCODERS)
@pytest.mark.parametrize(
    ("extra", "path", "text"),
    [
        ({"$raw": {"plain": 1}}, "", f"$raw names 'plain', {ONE_FORM} $raw"),
        ({"$raw": {"list[2]": 7}}, "", f"$raw names 'list[2]', {ONE_FORM} $raw"),
        ({"$raw": {"flag.a": 7}}, "", f"$raw names 'flag.a', {ONE_FORM} $raw"),
        ({"$width": {"plain": 2}}, "", f"$width names 'plain', {ONE_FORM} $width"),
        ({"$width": {"n": 6}}, "n", "expected a size of 1 to 5 bytes in $width, found 6"),
        ({"$width": {"n": 0}}, "n", "expected a size of 1 to 5 bytes in $width, found 0"),
        ({"$raw": {"flag": 0}}, "flag", "expected an integer other than 0 in $raw, found 0"),
        ({"$raw": {"flag": "07"}}, "flag", r"expected an integer other than 0 in $raw, found b'\x07'"),
        ({"$raw": {"text": 5}}, "text", "expected an integer of at most -1 in $raw, found 5"),
        ({"$raw": {"text": "61"}}, "text", "expected an integer of at most -1 in $raw, found b'a'"),
        ({"$raw": {"list": 5}}, "list", "expected an integer of at most -1 in $raw, found 5"),
        ({"$raw": {"latin": 97}}, "latin", "expected bytes in hex in $raw, found 97"),
        ({"$raw": {"nan": 0x7F800000}}, "nan", "expected the bytes of a NaN, as an integer, in $raw, found 2139095040"),
        ({"$raw": {"nan": 1 << 32}}, "nan", "expected the bytes of a NaN, as an integer, in $raw, found 4294967296"),
        ({"$bytes": "00"}, "", "$bytes does not apply to this record; leave it out (the entries here are $keep, "),
    ],
)
def test_an_entry_without_effect_is_refused(extra: dict[str, Any], path: str, text: str, engine: str) -> None:
    with own(ALL) as key, pytest.raises(wirekit.WirekitError) as caught:
        wirekit.encode(key, VALUE | extra, engine=engine)
    assert str(caught.value).startswith(f"{key}: {path}{': ' if path else ''}{text}")


@pytest.mark.parametrize("engine", ENCODERS)
@pytest.mark.parametrize(
    ("extra", "data"),
    [
        ({"$raw": {"flag": 7}}, "07ffff 0161 02 0100 7fc00000 01 01"),
        ({"$raw": {"text": -2}}, "01fffe 0161 02 0100 7fc00000 01 01"),
        ({"$raw": {"list[0]": 9}}, "01ffff 0161 02 0900 7fc00000 01 01"),
        ({"$raw": {"nan": 0x7FC00001}}, "01ffff 0161 02 0100 7fc00001 01 01"),
        ({"$width": {"n": 3}}, "01ffff 0161 02 0100 7fc00000 818000 01"),
        ({"$raw": {"list": -3, "list[1]": 4, "text": -2}, "text": ""}, "010000 0161 02 0100 7fc00000 01 01"),
    ],
    ids=["flag", "null", "element", "nan", "width", "changed since"],
)
def test_other_entries_are_applied_if_the_value_is_still_the_same(
    extra: dict[str, Any], data: str, engine: str
) -> None:
    with own(ALL) as key:
        assert wirekit.encode(key, VALUE | extra, engine=engine) == bytes.fromhex(data)


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (
            Struct("bits" / Sized(int8, Protobuf("google.protobuf.duration_pb2:Duration"))),
            {"bits": {"$raw": {"nanos": 1}}},
        ),
        (
            Struct("c" / Compressed(Bytes(int8), 1, {1: "gzip"}, Flag(int8))),
            {"c": {"content": 1, "$raw": {"content": 1}}},
        ),
    ],
    ids=["protobuf", "compressed"],
)
def test_a_record_without_such_fields_has_no_such_entries(node: Node, value: dict[str, Any]) -> None:
    with own(node) as key, pytest.raises(wirekit.Misuse, match=r"\$raw does not apply to this record; leave it out"):
        wirekit.encode(key, value)


@pytest.mark.parametrize("engine", ENCODERS)
@pytest.mark.parametrize(
    ("fields", "path", "text"),
    [
        (
            {"attributes": {"codecs": "GZIP"}},
            "attributes",
            "no field 'codecs'; the fields are codec, timestamp_type, res",
        ),
        ({"attributes": {"$raw": {"codec": 1}}}, "attributes", "$raw does not apply to this record; leave it out"),
        ({"value": {"contents": {}}}, "value", "no field 'contents'; the fields are compressed, content"),
    ],
)
def test_bit_fields_and_compressed_data_have_no_other_fields(
    fields: dict[str, Any], path: str, text: str, engine: str
) -> None:
    value = {"magic": 0, "attributes": {"codec": "GZIP"}, "key": None, "value": None} | fields
    with pytest.raises(wirekit.Misuse) as caught:
        wirekit.encode("kafka.message", value, engine=engine)
    assert str(caught.value).startswith(f"kafka.message: {path}: {text}")


@pytest.mark.parametrize(
    ("node", "data"),
    [
        (Struct("ahead" / Lookahead(Flag(int8)), "flag" / Flag(int8)), "07"),
        (Struct("any" / OrBytes(Array(int8, Flag(int8)))), "03 07 08"),
        (
            Struct("list" / RecordsToEnd(Array(int8, Flag(int8)), short_tail="stop"), "tail" / Bytes()),
            "01 07 03 08 09",
        ),
        (
            Struct("c" / Compressed(Bytes(int16), 1, {1: "gzip"}, Array(int8, Flag(int8)))),
            len(CUT).to_bytes(2, "big").hex() + CUT.hex(),
        ),
    ],
    ids=["ahead", "bytes", "tail", "compressed"],
)
def test_bytes_with_fields_that_are_not_in_the_value_round_trip(node: Node, data: str) -> None:
    """Decoding stores entries for fields that encoding does not write one by one."""
    with own(node) as key:
        decoded = wirekit.decode(bytes.fromhex(data), key)
        assert "$raw" in wirekit.to_json(decoded.value)
        for value in (decoded.value, wirekit.to_json(decoded.value)):
            assert wirekit.encode(key, value) == bytes.fromhex(data)


@pytest.mark.parametrize("engine", ENCODERS)
def test_a_number_that_is_read_ahead_has_no_entry_because_it_is_not_written(engine: str) -> None:
    with own(Struct("nan" / Lookahead(float32), "tail" / Bytes())) as key:
        assert wirekit.to_json(wirekit.decode(b"\x7f\xc0\0\1", key).value) == {"nan": "nan", "tail": "7fc00001"}
    with own(Struct("ahead" / Lookahead(Flag(int8)), "flag" / Flag(int8))) as key:
        assert wirekit.to_json(wirekit.decode(b"\7", key).value) == {"ahead": True, "flag": True, "$raw": {"flag": 7}}
        with pytest.raises(wirekit.Misuse, match=r"\$raw names 'ahead', which does not exist here"):
            wirekit.encode(key, {"ahead": True, "flag": True, "$raw": {"ahead": 7}}, engine=engine)


@pytest.mark.parametrize("engine", ENCODERS)
@pytest.mark.parametrize(
    "value",
    [
        {"b": {"x": 1}, "e": 4, "$trailing": {"b": "0203"}},
        {"b": {"x": 1}, "e": 4, "$trailing": {"e": "0203"}},
        {"b": {"x": 1, "$trailing": {"x": "0203"}}, "e": 4},
    ],
)
def test_bytes_left_over_in_what_is_no_length_are_refused(engine: str, value: Any) -> None:
    with own(Struct("l" / Length(uint8, "b"), "b" / Struct("x" / uint8), "e" / uint8)) as key:
        with pytest.raises(wirekit.Misuse, match="which is not a length that bounds bytes here"):
            wirekit.encode(key, value, engine=engine)
        decoded = wirekit.decode(bytes.fromhex("0301020304"), key)
        assert wirekit.encode(key, wirekit.to_json(decoded.value), engine=engine).hex() == "0301020304"


@pytest.mark.parametrize("engine", ENCODERS)
def test_a_length_or_checksum_that_is_kept_is_not_null(engine: str) -> None:
    """It was written as 0."""
    with own(Struct("size" / Length(uint8, "b"), "sum" / Checked(Bytes(16), "md5", "b"), "b" / Bytes())) as key:
        for name in ("size", "sum"):
            with pytest.raises(wirekit.Wrong, match=rf"{name}: expected a value, because \$keep names it, found null"):
                wirekit.encode(key, {"b": "01", name: None, "$keep": [name]}, engine=engine)
        assert wirekit.encode(key, {"b": "01", "size": None}, engine=engine)[0] == 1
