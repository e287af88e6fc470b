"""Padding to a multiple of bytes from the start of its struct, on every engine."""

from __future__ import annotations

import pytest

import wirekit
from tests.agreement.law import agree, rebuild
from tests.own import own
from wirekit.errors import Misuse
from wirekit.wire import (
    Array,
    Bytes,
    Checked,
    If,
    Length,
    Node,
    Padding,
    Sized,
    String,
    Struct,
    rest,
    this,
    uint8,
    uint16,
    uint32,
    varint32,
)
from wirekit.wire.describe import type_of

RECORD = Struct(
    "name" / String(uint8),
    "padding" / Padding(to=4),
    "size" / uint32,
    "kind" / uint8,
    "optional" / If(this.kind == 1, Padding(to=8)),
    "parts" / Array(uint8, Struct("data" / Bytes(varint32), "padding" / Padding(to=2))),
    "end" / Padding(to=16),
)


def value(number: int) -> dict[str, object]:
    parts = [{"data": b"d" * size} for size in range(number)]
    return {"name": "abcde"[:number], "size": number, "kind": number & 1, "parts": parts}


def test_padding_ends_at_a_multiple_counted_from_the_begin_of_its_struct() -> None:
    with own(RECORD) as key:
        built = [wirekit.encode(key, value(number)) for number in range(6)]
        assert [len(data) % 16 for data in built] == [0] * 6
        assert built[2].hex(" ", 4) == "02616200 00000002 00020000 01710000".replace("71", "64")
        for data in built:
            assert wirekit.encode(key, wirekit.decode(data, key).value, engine="reference") == data
            for cut in range(len(data) + 1):
                agree(key, data[:cut], {})
        several = b"".join(built)
        assert rebuild(key, several) == "built"
        batch = wirekit.columns(key, several)
        assert batch["padding"].to_pylist() == [bytes(-(1 + number) % 4) for number in range(6)]
        assert batch["optional"].to_pylist() == [None, bytes(7), None, bytes(7), None, bytes(3)]
        assert batch["parts.padding"].to_pylist()[3] == [b"\0", b"", b"\0"]
        without = batch.drop_columns(["padding", "optional", "parts.padding", "end"])
        assert wirekit.build_columns(key, without) == several


def test_bytes_other_than_zeros_are_kept() -> None:
    with own(RECORD) as key:
        data = bytearray(wirekit.encode(key, value(2)))
        data[3] = 7
        assert agree(key, bytes(data), {}).value.padding == b"\x07"
        assert rebuild(key, bytes(data)) == "built"


@pytest.mark.parametrize("size", [0, 1, 3, 127, 128, 20000])
def test_padding_behind_what_a_varint_measures(size: int) -> None:
    layout = Struct(
        "size" / Length(varint32, "data"),
        "data" / rest(),
        "padding" / Padding(to=4),
        "sum" / Checked(uint16, "crc-16/modbus", ("size", "padding")),
    )
    with own(Sized(varint32, layout)) as key:
        data = wirekit.encode(key, {"data": bytes(size)})
        assert agree(key, data, {}).clean
        assert rebuild(key, data) == "built"


def test_the_type_names_the_multiple() -> None:
    assert type_of(RECORD.members[1][1]) == "padding to a multiple of 4"


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (Padding(to=4), "the layout: padding to a multiple must be a field of a struct"),
        (Struct("a" / Array(uint8, Padding(to=4))), "a: padding to a multiple must be a field of a struct"),
        (Struct("a" / Sized(uint8, Padding(to=4))), "a: padding to a multiple must be a field of a struct"),
        (
            Struct("size" / Length(varint32, ("data", "end")), "data" / Bytes(uint8), "end" / Padding(to=4)),
            "end: its size follows from that of size, a varint that is known later; use a fixed size",
        ),
        (Struct("data" / Bytes(this._position)), "data reads '_position', which is not a field"),
    ],
)
def test_padding_to_a_multiple_without_a_place_of_its_own_is_refused(layout: Node, text: str) -> None:
    with pytest.raises(Misuse, match=text), own(layout):
        pass


@pytest.mark.parametrize("arguments", [{}, {"to": 0}, {"length": 3, "to": 4}])
def test_padding_takes_a_size_or_a_multiple(arguments: dict[str, int]) -> None:
    with pytest.raises(Misuse, match="Padding takes a length, or to="):
        Padding(**arguments)
