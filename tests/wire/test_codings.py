"""Text in other encodings, text that is filled up, and values of a user's own functions."""

from __future__ import annotations

import ipaddress
import json
import struct
from typing import Any

import pyarrow as pa
import pytest

import wirekit
from tests.agreement.law import agree
from tests.own import own
from wirekit.compiler.engines import DECODERS
from wirekit.errors import Misuse, Wrong
from wirekit.value_text import value_text
from wirekit.wire import Array, Bytes, Const, Custom, Delimited, Length, String, Struct, int16, uint8, uint16


@pytest.mark.parametrize(
    ("node", "value", "data"),
    [
        (String(int16, encoding="ascii"), "ab", "00026162"),
        (String(uint8, encoding="latin-1"), "ä", "01e4"),
        (String(uint8, encoding="utf-16-le"), "a😀", "0661003dd800de"),
        (String(uint8, encoding="utf-16-be"), "aé", "04006100e9"),
        (String(4, pad="\0"), "ab", "61620000"),
        (String(4, encoding="latin-1", pad=" "), "", "20202020"),
        (String(4, pad="\0"), "abcd", "61626364"),
        (String(4, pad="\0"), "a\0b", "61006200"),
        (String(8, encoding="utf-16-le", pad="\0"), "ab", "6100620000000000"),
        (String(int16, encoding="utf-16-le", null=-1), None, "ffff"),
        (String(encoding="latin-1"), "été", "e974e9"),
    ],
)
def test_a_text_has_its_bytes_on_every_engine(node: String, value: str | None, data: str) -> None:
    with own(Struct("size" / Length(uint16), "text" / node)) as key:
        whole = (len(data) // 2).to_bytes(2, "big") + bytes.fromhex(data)
        assert wirekit.encode(key, {"text": value}) == whole
        decoded = agree(key, whole, {})
        assert decoded.clean
        assert decoded.value.text == value
        batch = wirekit.columns(key, whole * 2)
        assert batch["text"].to_pylist() == [value] * 2
        assert wirekit.build_columns(key, batch) == whole * 2


def test_a_text_that_may_be_null_may_be_left_out() -> None:
    with own(Struct("text" / String(int16, encoding="utf-16-le", null=-1))) as key:
        assert wirekit.encode(key, {}) == b"\xff\xff"


def test_a_constant_text_in_another_encoding_has_its_own_bytes() -> None:
    with own(Struct("text" / Const(String(4, encoding="utf-16-le"), "ab"))) as key:
        assert agree(key, "ab".encode("utf-16-le"), {}).value.text == "ab"
        with pytest.raises(Misuse, match="text is a constant"):
            wirekit.columns(key, b"")


@pytest.mark.parametrize(
    ("encoding", "data", "shown"),
    [
        ("ascii", "61e4", "a\ufffd"),
        ("utf-16-le", "610062", "a\ufffd"),
        ("utf-16-le", "00d86100", "\ufffda"),
        ("utf-16-be", "dc00", "\ufffd"),
    ],
)
def test_bytes_that_are_no_text_are_a_bad_check_and_round_trip(encoding: str, data: str, shown: str) -> None:
    with own(Struct("text" / String(uint8, encoding=encoding), "behind" / uint8)) as key:
        whole = bytes([len(data) // 2]) + bytes.fromhex(data) + b"\x07"
        decoded = agree(key, whole, {})
        assert [(check.path, check.kind, check.status) for check in decoded.checks] == [("text", encoding, "bad")]
        assert (decoded.value.text, decoded.value.behind) == (shown, 7)
        again = wirekit.from_json(key, wirekit.to_json(decoded.value))
        assert wirekit.encode(key, again) == whole
        batch = wirekit.columns(key, whole)
        assert (batch["text"].to_pylist(), batch["text.ok"].to_pylist()) == ([shown], [False])


@pytest.mark.parametrize(
    ("node", "value", "text"),
    [
        (String(uint8, encoding="ascii"), "ä", "ascii has no 'ä'"),
        (String(uint8, encoding="latin-1"), "€", "latin-1 has no '€'"),
        (String(2, pad="\0"), "abc", "expected 2 bytes, found 3 bytes"),
    ],
)
def test_a_text_that_does_not_fit_is_not_built(node: String, value: str, text: str) -> None:
    with own(Struct("text" / node)) as key, pytest.raises(Wrong, match=text):
        wirekit.encode(key, {"text": value})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: String(2, encoding="utf-7"), "encoding must be one of utf-8, ascii"),
        (lambda: String(uint8, pad=" "), "must have a fixed size"),
        (lambda: String(3, encoding="utf-16-le", pad=" "), "in whole characters"),
        (lambda: String(3, pad="ä"), "one ASCII character"),
    ],
)
def test_a_text_that_makes_no_sense_is_refused(make: Any, text: str) -> None:
    with pytest.raises(Misuse, match=text):
        make()


def test_a_text_ends_with_a_zero() -> None:
    with own(Struct("a" / Delimited("\0", lines=False), "b" / Delimited("\0"), "c" / uint8)) as key:
        data = "two\nlines ä\0\0\7".encode()
        assert agree(key, data, {}).value.a == "two\nlines ä"
        assert wirekit.encode(key, {"a": "two\nlines ä", "b": "", "c": 7}) == data
        assert wirekit.build_columns(key, wirekit.columns(key, data * 2)) == data * 2
        for wrong in (data[:5], b"a\0b\nc\0\7", b"\xff\0\0\7"):
            agree(key, wrong, {})
        with pytest.raises(Wrong, match="a: expected text without"):
            wirekit.encode(key, {"a": "x\0", "b": "", "c": 7})


def address(data: bytes) -> str:
    return str(ipaddress.ip_address(data))


def packed(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


ADDRESS = Custom(uint8, parse=address, build=packed, name="address", examples=(b"\x0a\0\0\1", bytes(16)))


def test_functions_of_ones_own_work_on_every_engine() -> None:
    with own(Struct("all" / Array(uint8, ADDRESS), "one" / Custom(4, parse=address, build=packed))) as key:
        value = {"all": ["10.0.0.1", "::1"], "one": "127.0.0.1"}
        data = wirekit.encode(key, value)
        assert data.hex() == "02" + "040a000001" + "10" + "00" * 15 + "01" + "7f000001"
        assert wirekit.encode(key, wirekit.from_json(key, value), engine="rows") == data
        decoded = agree(key, data, {})
        assert decoded.clean
        assert wirekit.to_json(decoded.value) == value
        batch = wirekit.columns(key, data)
        assert batch["one"].to_pylist() == [b"\x7f\0\0\1"]
        assert batch["all.ok"].to_pylist() == [[True, True]]
        assert wirekit.build_columns(key, batch) == data


def nonsense(data: bytes) -> Any:
    return {0: object(), 1: None, 2: {"a": [b"bytes"]}, 3: {1: 2}}[len(data)]


def twice(data: bytes) -> int:
    return data[0] + data[1]


def broken(value: Any) -> Any:
    return "no bytes"


@pytest.mark.parametrize(
    ("node", "data", "note"),
    [
        (ADDRESS, "03010203", "ValueError: "),
        (Custom(uint8, parse=twice, build=bytes), "01ff", "IndexError: "),
        *((Custom(uint8, parse=nonsense, build=bytes), f"0{size}" + "00" * size, "it returned") for size in range(4)),
        (Custom(uint8, parse=bytes.hex, build=broken), "0107", "it returned a str instead of bytes"),
    ],
)
def test_a_function_that_fails_is_a_bad_check_with_its_path(node: Custom, data: str, note: str) -> None:
    """A function sees its own bytes alone: one that reads past them fails on its own, and not on its neighbours."""
    with own(Struct("value" / node, "behind" / uint8)) as key:
        whole = bytes.fromhex(data) + b"\x09"
        decoded = agree(key, whole, {})
        (check,) = decoded.checks
        assert (check.path, check.status) == ("value", "bad")
        assert check.note.startswith(note)
        assert (decoded.value.value, decoded.value.behind) == (data[2:], 9)
        batch = wirekit.columns(key, whole)
        assert batch["value.ok"].to_pylist() == [False]
        assert wirekit.build_columns(key, batch) == whole


def test_bytes_that_would_be_built_in_another_way_are_kept() -> None:
    with own(Struct("value" / Custom(uint8, parse=len, build=bytes))) as key:
        decoded = agree(key, b"\x02\x00\x07", {})
        assert decoded.value.value == 2
        assert wirekit.to_json(decoded.value) == {"value": 2, "$raw": {"value": "0007"}}
        assert wirekit.encode(key, wirekit.from_json(key, wirekit.to_json(decoded.value))) == b"\x02\x00\x07"
        assert wirekit.encode(key, {"value": 2}) == b"\x02\x00\x00"


def half(data: bytes) -> list[float]:
    return [struct.unpack(">e", data)[0]]


def packed_half(value: list[float]) -> bytes:
    return struct.pack(">e", value[0])


@pytest.mark.parametrize("data", ["7c00", "fc00", "7e00", "7e01", "fe00"])
@pytest.mark.parametrize("engine", DECODERS)
def test_the_json_form_of_a_value_with_a_nan_or_an_infinity_loads(data: str, engine: str) -> None:
    with own(Struct("value" / Custom(2, parse=half, build=packed_half))) as key:
        decoded = wirekit.decode(bytes.fromhex(data), key, engine=engine)
        form = json.loads(json.dumps(wirekit.to_json(decoded.value), allow_nan=False))
        assert decoded.clean
        assert form["$raw"] == {"value": data}
        for value in (decoded.value, form, wirekit.from_json(key, form)):
            assert wirekit.encode(key, value) == decoded.data
        assert wirekit.encode(key, form | {"value": [1.0]}) == b"\x3c\x00"


@pytest.mark.parametrize("size", [1700, 2000])
def test_a_long_value_has_a_json_form(size: int) -> None:
    number = Custom(uint16, parse=int.from_bytes, build=lambda value: value.to_bytes(size), name="long")
    with own(Struct("number" / number, "text" / String(size, encoding="ascii"))) as key:
        data = size.to_bytes(2) + b"\xff" * 2 * size
        decoded = agree(key, data, {})
        bad = [check.path for check in decoded.checks if check.status == "bad"]
        assert bad == ["number", "text"][size == 1700 :]
        form = json.loads(json.dumps(wirekit.to_json(decoded.value)))
        assert wirekit.encode(key, form) == data
        decoded.show()
        assert repr(decoded.value)


def test_a_value_that_cannot_be_built_is_wrong_with_its_path() -> None:
    with (
        own(Struct("inner" / Struct("value" / ADDRESS))) as key,
        pytest.raises(Wrong, match=r"inner\.value: .*address"),
    ):
        wirekit.encode(key, {"inner": {"value": "no address"}})


def test_columns_refuse_a_text_that_the_encoding_has_not() -> None:
    with own(Struct("text" / String(uint8, encoding="latin-1"))) as key:
        batch = pa.RecordBatch.from_pydict({"text": ["ä", "€"]})
        with pytest.raises(Misuse, match=r"row 1: text: latin-1 has no '€'"):
            wirekit.build_columns(key, batch)


def test_columns_refuse_a_text_whose_bytes_are_lost() -> None:
    with own(Struct("text" / String(uint8, encoding="utf-16-le"))) as key:
        batch = wirekit.columns(key, bytes.fromhex("03610062"))
        with pytest.raises(Misuse, match="row 0: text: was not utf-16-le, so its bytes are lost"):
            wirekit.build_columns(key, batch)


def test_bytes_alone_have_no_coding() -> None:
    assert Bytes(2).coding is String(2).coding is None


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Endless(Exception):
    def __str__(self) -> str:
        return "x" * 1_000_000


@pytest.mark.parametrize("error", [Unreadable, Endless])
def test_an_exception_of_any_text_is_a_bad_check(error: type[Exception]) -> None:
    def parse(data: bytes) -> Any:
        raise error

    with own(Struct("a" / Custom(1, parse=parse, build=bytes.fromhex), "b" / uint8)) as key:
        decoded = agree(key, b"\1\2", {}, used=False)
        assert decoded.value.b == 2
        (check,) = decoded.checks
        assert check.note.startswith(f"{error.__name__}: ")
        assert len(check.note) < 1000


def test_a_check_has_a_name_that_is_escaped_in_json() -> None:
    node = Custom(1, parse=bytes.decode, build=str.encode, name='my "own"\n')
    with own(Struct("a" / node)) as key:
        decoded = agree(key, b"\xff", {}, used=False)
        assert json.loads(value_text(decoded.checks))[0]["kind"] == 'my "own"\n'
