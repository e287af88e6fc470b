"""Integers of every width, varints among them, in every form that can say them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wirekit
from tests.own import declared, own
from wirekit.exports import export
from wirekit.registry import Layout, Protocol
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    Checked,
    Const,
    Delimited,
    Length,
    Padding,
    RecordsToEnd,
    String,
    Struct,
    Switch,
    Symbols,
    Varint,
    int8,
    int16,
    int24,
    int32,
    int48,
    int56le,
    rest,
    sleb64,
    this,
    uint8,
    uint16,
    uint24le,
    uint32,
    uint40,
    uint64le,
    varint32,
    zigzag64,
)

NUMBERS = {
    "a": int24,
    "b": uint24le,
    "c": uint40,
    "d": int48,
    "e": int56le,
    "f": varint32,
    "g": zigzag64,
    "h": uint64le,
    "i": sleb64,
    "j": Varint(64, form="vlq"),
    "k": Varint(64, form="quic"),
    "l": Varint(32, form="ber"),
    "m": Varint(64, form="lenenc"),
    "n": Varint(64, form="compact_size"),
}
VALUE = {
    "a": -2,
    "b": 0x123456,
    "c": 0x123456789A,
    "d": -(1 << 40),
    "e": -3,
    "f": 300,
    "g": -(1 << 60),
    "h": (1 << 64) - 1,
    "i": -(1 << 40),
    "j": (1 << 63) + 5,
    "k": 151_288_809_941_952_652,
    "l": 435,
    "m": (1 << 40) + 3,
    "n": (1 << 64) - 1,
}
SIZES = {"ask": int16, "answer": int32}


@pytest.fixture
def key() -> Iterator[str]:
    """A layout of numbers, registered for the test."""
    layout = wirekit.Layout(Struct(*(name / node for name, node in NUMBERS.items())))
    wirekit.register(wirekit.Protocol("odd", "Numbers", {"numbers": layout}))
    yield "odd.numbers"
    wirekit.registry.unregister("odd")


def dissected(key: str, value: dict[str, Any], folder: Path) -> list[str]:
    """The fields of a value as the dissector of its layout shows them."""
    data = wirekit.encode(key, value)
    assert wirekit.to_json(wirekit.decode(data, key).value) == value
    return fields(key, data, list(value), folder)


def fields(key: str, data: bytes, names: list[str], folder: Path) -> list[str]:
    """The fields of a segment's data as the dissector of a layout shows them; commas separate those of two frames."""
    tcp = struct.pack(">HHIIBBHHH", 1, 7000, 0, 0, 0x50, 0x18, 1024, 0, 0) + data
    packet = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, 0x7F000001, 0x7F000001) + tcp
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    (folder / "one.pcap").write_bytes(header + struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)
    (folder / "odd.lua").write_text(export([key], "lua").text)
    prefix = f"wirekit_{key.replace('.', '_')}"
    command = f"tshark -r one.pcap -X lua_script:odd.lua -d tcp.port==7000,{prefix} -T fields"
    options = [part for name in names for part in ("-e", f"{prefix}.{name}")]
    run = subprocess.run(
        [*command.split(), *options], cwd=folder, capture_output=True, check=True, text=True, timeout=60
    )
    return run.stdout.split()


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_dissector_shows_them(key: str, tmp_path: Path) -> None:
    assert [int(number) for number in dissected(key, VALUE, tmp_path)] == list(VALUE.values())


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_dissector_shows_text_up_to_a_delimiter(tmp_path: Path) -> None:
    node = Struct("name" / Delimited("\0", lines=False), "line" / Delimited("\r\n"), "n" / int8)
    with own(node) as key:
        assert dissected(key, {"name": "ab", "line": "cd", "n": 7}, tmp_path) == ["ab", "cd", "7"]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_dissector_ends_a_list_before_given_bytes(tmp_path: Path) -> None:
    for items, except_first in (([0, 5], True), ([], False)):
        ended = RecordsToEnd(int8, until=b"\0", except_first=except_first)
        with own(Struct("items" / ended, "end" / int8, "n" / int16)) as key:
            shown = dissected(key, {"items": items, "end": 0, "n": 258}, tmp_path)
            assert shown[-2:] == ["0", "258"]


FRAMES = {
    "behind a constant, symbols and bits, as in Modbus": Struct(
        "id" / uint16,
        "protocol" / Const(uint16, 0),
        "kind" / Symbols(uint8, SymbolTable("kind", {1: "ONE"})),
        "flags" / Bits(uint8, "low" / Bit(4), "high" / Bit(4), order="lsb"),
        "size" / Length(uint16, frame=True),
        "data" / rest(),
    ),
    "before a checksum that it does not cover, not marked as a frame's": Struct(
        "id" / int8,
        "size" / Length(uint16, of="data", add=2),
        "crc" / Checked(uint32, "crc32", "data"),
        "data" / rest(),
        "end" / Bytes(2),
    ),
    "of 3 bytes": Struct("size" / Length(int24, "data"), "id" / int8, "data" / rest()),
}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("case", FRAMES)
def test_a_dissector_finds_frames_by_a_length_at_a_fixed_place(case: str, tmp_path: Path) -> None:
    with own(FRAMES[case]) as key:
        more_fields = {"kind": 1, "flags": {}} if "Modbus" in case else {"end": b"zz"} if "checksum" in case else {}
        data = b"".join(wirekit.encode(key, {"id": number, "data": b"a" * number, **more_fields}) for number in (1, 2))
        assert fields(key, data, ["id", "data"], tmp_path) == ["1,2", "61,6161"]
        assert [each.reason for each in export([key], "lua").missing] == []


COMMAND = Struct(
    "command" / String(6, encoding="ascii", pad="\0"),
    "name" / String(uint8, encoding="utf-16-le"),
    "body" / Switch(this.command, {"ping": int16}, default=int8),
)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_dissector_chooses_by_padded_text(tmp_path: Path) -> None:
    with own(COMMAND) as key:
        assert dissected(key, {"command": "ping", "name": "", "body": 258}, tmp_path)[::2] == ["ping", "258"]


def test_kaitai_struct_says_that_it_has_no_padding_to_a_multiple() -> None:
    with own(Struct("name" / String(int8), "padding" / Padding(to=4))) as key:
        (missing,) = (each for each in export([key], "ksy").missing if each.path.endswith("padding"))
    assert missing.reason == "padding to a multiple of bytes: the bytes to the end are one field"


def test_kaitai_struct_reads_text_in_its_encoding() -> None:
    with own(COMMAND) as key:
        text = export([key], "ksy").text
    assert 'size: "6"\n    type: "str"\n    encoding: "ASCII"\n    pad-right: 0\n' in text
    assert 'size: "len_name"\n    type: "str"\n    encoding: "UTF-16LE"\n' in text


def test_a_dissector_of_sides_with_different_frame_lengths_lists_them() -> None:
    sides = {name: Layout(Struct("size" / Length(kind, frame=True), "n" / int8)) for name, kind in SIZES.items()}
    with declared(Protocol("sided", "A test's own", sides, client="ask", server="answer")):
        reasons = [each.reason for each in export(["sided"], "lua").missing]
    assert "the two sides have different frame lengths: a segment is read as one frame" in reasons


def test_forms_that_cannot_say_them_list_them(key: str) -> None:
    first = export([key], "ksy").missing[0]
    assert first.reason == "an integer of 3 bytes: the bytes to the end are one field"
    assert "uint8_t a[3]; /* offset 0 */" in export([key], "c").text
    assert [each.path for each in export([key], "c").missing] == ["odd.numbers.f"]
