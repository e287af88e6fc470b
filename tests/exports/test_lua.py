"""The dissectors that `wirekit schemas --output lua` writes show real captures in tshark as wirekit decodes them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import wirekit
from tests.capture.second_parser import Packet, write
from tests.own import own
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.tcp import Segment
from wirekit.conversation import Frame
from wirekit.exports import export
from wirekit.values import SymbolTable
from wirekit.wire import (
    Array,
    Bit,
    Bits,
    Bytes,
    Const,
    Delimited,
    Flag,
    If,
    Length,
    Node,
    OrBytes,
    RecordsToEnd,
    Sized,
    String,
    Struct,
    Switch,
    Symbols,
    int8,
    int16,
    int32,
    int48,
    int56,
    int56le,
    int64,
    len_,
    this,
    uint8,
    uint16,
    uint64,
    zigzag64,
)

CAPTURES = Path(__file__).parents[2] / "fixtures" / "pcap"
TSHARK = shutil.which("tshark")
LEAVES = ("number", "text", "bytes", "bit", "count", "length", "gap", "filler")
MOST = 15  # frames of one direction: what follows repeats them
ZSTD = bytes.fromhex("28b52ffd")  # is shown compressed, as the export says

Shown = list[tuple[str, Any]]
"""(path without indexes, value) of the fields of a frame, in their order."""

pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")
CASES = [
    ("kafka", "kafka-0.8.2.2-2-produce.pcapng", (29301, 29302)),
    ("kafka", "kafka-0.9.0.1-2-produce.pcapng", (29101, 29102)),
    ("kafka", "kafka-0.10.2.2-4-clients.pcapng", (29201, 29202, 29211)),
    ("pulsar", "pulsar-broker_entry_metadata.pcap", ()),
    ("pulsar", "pulsar-comp_zlib.pcap", ()),
    ("pulsar", "pulsar-comp_lz4.pcap", ()),
    ("joyqueue", "jmq4-produce.pcap", ()),
    ("joyqueue", "jmq4-consume.pcap", ()),
    ("joyqueue", "jmq4-versions.pcap", ()),
]


@pytest.fixture(scope="module")
def dissectors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """{protocol: file of its dissector}."""
    folder = tmp_path_factory.mktemp("lua")
    files = {}
    for protocol in ("kafka", "pulsar", "joyqueue"):
        files[protocol] = folder / f"{protocol}.lua"
        files[protocol].write_text(export([protocol], "lua").text, encoding="utf-8")
    return files


@pytest.mark.parametrize(("protocol", "name", "ports"), CASES, ids=[name for _, name, _ in CASES])
def test_tshark_shows_the_values_that_wirekit_decodes(
    protocol: str, name: str, ports: tuple[int, ...], dissectors: dict[str, Path]
) -> None:
    shown = dissected(CAPTURES / name, dissectors[protocol], protocol, ports)
    compared = 0
    for sides, frames in decoded(CAPTURES / name).items():
        assert len(shown[sides]) == len(frames), sides
        for frame, fields in zip(frames[:MOST], shown[sides], strict=False):
            if frame.schema.startswith("kafka.sasl_") or (frame.request is not None and frame.request.reason):
                continue  # what only the dialogue knows, as the export says
            compared += compare(frame.decoded, fields)
    assert compared > 100


def compare(decoded: wirekit.Decoded, fields: Shown) -> int:
    """How many values are the same."""
    expected = list(values(decoded))
    for (path, value), (shown_path, shown) in zip(expected, fields, strict=False):
        assert shown_path == path, decoded
        assert value is None or value == as_shown(value, *shown), (decoded, path)
    assert len(fields) == len(expected), (decoded, fields[len(expected) :])
    return len(expected)


def decoded(path: Path) -> dict[tuple[str, str], list[Frame]]:
    """{(sender, receiver): its whole frames in the order of the stream}."""
    by_sides: dict[tuple[str, str], list[Frame]] = defaultdict(list)
    with open_capture(str(path)) as capture:
        for link, item in follow(each for each in segments(capture) if isinstance(each, Segment)):
            if isinstance(item, Frame) and not item.announced:
                by_sides[link.addresses(item.side)].append(item)
    return {sides: sorted(frames, key=lambda frame: frame.offset) for sides, frames in by_sides.items()}


def values(decoded: wirekit.Decoded) -> Iterator[tuple[str, Any]]:
    """The leaves of a value; of numbers that stand in front of a field, those of protobuf left out."""
    spans = decoded.spans
    tags = {span.path.removesuffix(".$tag") for span in spans if span.path.endswith(".$tag")}
    numbers = {span.path for span in spans if span.kind in ("length", "count")}
    for span in spans:
        if span.kind not in LEAVES or re.search(r"\$(tag|unknown|trailing)", span.path):
            continue
        path = re.sub(r"\[\d+\]", "", span.path)
        if span.path in numbers:
            if span.path.removesuffix(".$length") in tags:
                continue
            yield path.replace("$", "_"), None
            continue
        value = decoded.value
        for part in re.findall(r"[^.\[\]]+", span.path):
            if part == "content" and value.compressed.startswith(ZSTD):
                break
            value = value[int(part)] if part.isdigit() else getattr(value, part)
        else:
            yield path, plain(value)


def plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="surrogateescape").hex()
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, float) else int(value)


def dissected(path: Path, dissector: Path, protocol: str, ports: tuple[int, ...]) -> dict[tuple[str, str], list[Shown]]:
    """The same, as tshark shows it."""
    chosen = [option for port in ports for option in ("-d", f"tcp.port=={port},wirekit_{protocol}")]
    show = f"-Y wirekit_{protocol} -T pdml -J".split()
    command = [
        str(TSHARK),
        "-r",
        str(path),
        "-X",
        f"lua_script:{dissector}",
        *chosen,
        *show,
        f"ip tcp wirekit_{protocol}",
    ]
    output = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert b"Error" not in output.stderr, output.stderr
    groups = groups_of(dissector)
    by_sides: dict[tuple[str, str], list[Shown]] = defaultdict(list)
    for packet in ElementTree.fromstring(output.stdout).iter("packet"):
        attributes = {field.get("name"): field.get("show") for field in packet.iter("field")}
        sides = [f"{attributes[f'ip.{end}']}:{attributes[f'tcp.{end}port']}" for end in ("src", "dst")]
        for proto in packet.iter("proto"):
            if proto.get("name") == f"wirekit_{protocol}":
                by_sides[sides[0], sides[1]].append(list(fields_of(proto, f"wirekit_{protocol}.", groups)))
    return by_sides


def groups_of(dissector: Path) -> set[str]:
    """The fields that only hold others."""
    return set(re.findall(r'ProtoField\.none\("([^"]*)"', dissector.read_text(encoding="utf-8")))


def fields_of(proto: ElementTree.Element, prefix: str, groups: set[str]) -> Iterator[tuple[str, Any]]:
    """The fields of a frame that have a value, without those that the dissector computes."""
    for field in proto.iter("field"):
        name = field.get("name") or ""
        path = re.sub("__[a-z0-9]+$", "", name.removeprefix(prefix).partition(".")[2])
        if not name.startswith(prefix) or not path or name in groups or path.endswith("._ok"):
            continue
        if path.endswith(("._length", "._count")):
            yield path, None
            continue
        yield path, (field.get("value") or "", field.get("show") or "")


def as_shown(value: Any, raw: str, show: str) -> Any:
    """What tshark shows, as the kind of value that wirekit has there."""
    if isinstance(value, str):
        return raw
    if isinstance(value, float):
        return float(show)
    return {"True": 1, "False": 0}.get(show) if show in ("True", "False") else int(show, 0)


@pytest.mark.parametrize("layout", [RecordsToEnd, lambda item: Array(int16, Sized(int16, item))])
def test_names_that_the_dissector_itself_has_are_left_to_it(layout: Callable[[Node], Node], tmp_path: Path) -> None:
    """tshark refuses a field with the name of the protocol, or of another type than a field of that name."""
    item = Struct("api" / int16, "problem" / int8, "latency_ms" / int8, "value" / int8)
    with own(layout(item)) as key:
        (tmp_path / "list.lua").write_text(export([key], "lua").text)
    name, script = key.replace(".", "_"), f"lua_script:{tmp_path / 'list.lua'}"
    command = [str(TSHARK), "-r", str(CAPTURES / "jmq4-document.pcap"), "-X", script, "-Y", f"wirekit_{name}.api == 1"]
    completed = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert b"Error" not in completed.stderr, completed.stderr


OWN: dict[str, tuple[Node, str]] = {
    "a list with nulls": (Struct("names" / Array(int8, String(int8, null=-1)), "end" / int8), "03 ff 01 61 ff 02"),
    "a list of elements that take no bytes": (
        Struct("kind" / int8, "n" / Array(int8, If(this.kind == 1, int8)), "end" / int8),
        "00 01 02",
    ),
    "a signed number of 7 bytes": (Struct("low" / int56, "high" / int56le), "7fffffffffffff fffffffffffff7"),
    "numbers in zigzag": (Struct("high" / zigzag64, "low" / zigzag64), "feffffffffffffffff01 ffffffffffffffffff01"),
    "bits of 8 bytes": (
        Struct("bits" / Bits(uint64, "high" / Bit(31), "middle" / Bit(30), "low" / Bit(3), order="msb")),
        "fffffffe80000007",
    ),
    "bits of more than 53": (
        Struct(
            "a" / Bits(uint64, "high" / Bit(40), "low" / Bit(24), order="msb"),
            "b" / Bits(uint64, "high" / Bit(60), "low" / Bit(4), order="lsb"),
        ),
        "00000100000002ff fedcba9876543215",
    ),
    "the length of a text in characters": (
        Struct(
            "text" / String(int8),
            "four" / Bytes(len_(this.text)),
            "line" / Delimited("\n"),
            "four_more" / Bytes(len_(this.line)),
            "inside" / Struct("null" / String(int8, null=-1), "ascii" / String(int8, encoding="ascii")),
            "two" / Bytes(len_(this.inside.ascii)),
            "bytes" / Bytes(int8),
            "as_many" / Bytes(len_(this.bytes)),
        ),
        "0a 61c3a4e282acf09f9880 01020304 e180c3a4ff0a 05060708 ff 026162 0a0b 02c3a4 0c0d",
    ),
    "a flag that selects": (
        Struct(
            "flag" / Flag(int8), "value" / Switch(this.flag, {False: int16, True: int32}), "more" / Bytes(this.flag + 1)
        ),
        "00 0007 61",
    ),
    "a length that may exceed what is there": (
        Struct("size" / Length(uint16, "end", exceeds=True, bounds=False), "end" / int8),
        "ff05 01",
    ),
    "a length that readers ignore": (Struct("size" / Length(int8, bounds=False), "text" / String(int8)), "7f 0161"),
    "bits of a number of 8 bytes that select": (
        Struct(
            "flags" / uint64,
            "a" / If((this.flags & 1 << 40) != 0, int8),
            "b" / If((this.flags & 1) != 0, int8),
            "low" / int64,
            "c" / If((this.low & -1) == -2, int8),
        ),
        "0000010000000000 05 fffffffffffffffe 06",
    ),
    "two lengths that end in different places": (
        Struct("m" / Length(uint8, "a"), "n" / Length(uint8), "a" / uint8, "b" / uint8),
        "01 05 07 08 aabbcc",
    ),
    "bytes that could stand in place of a number": (Struct("number" / OrBytes(int16), "end" / int8), "0001 02"),
}


def test_values_of_other_layouts(tmp_path: Path) -> None:
    """Each in a segment to a port of its own."""
    with ExitStack() as stack:
        keys = [stack.enter_context(own(layout)) for layout, _ in OWN.values()]
        names = [f"wirekit_{key.replace('.', '_')}" for key in keys]
        packets, options, expected = [], [], {}
        for port, (key, name, (_, text)) in enumerate(zip(keys, names, OWN.values(), strict=True), 7000):
            data = bytes.fromhex(text)
            script = tmp_path / f"{name}.lua"
            script.write_text(export([key], "lua").text)
            packets.append(segment(port, data))
            options += ["-X", f"lua_script:{script}", "-d", f"tcp.port=={port},{name}"]
            expected[name] = wirekit.decode(data, key)
        command = [str(TSHARK), "-r", str(write(tmp_path / "own.pcap", packets)), "-T", "pdml", *options]
        output = subprocess.run(command, capture_output=True, check=True, timeout=60)
        assert b"Error" not in output.stderr, output.stderr
        shown = {each.get("name"): each for each in ElementTree.fromstring(output.stdout).iter("proto")}
        for name, decoded in expected.items():
            fields = fields_of(shown[name], name, groups_of(tmp_path / f"{name}.lua"))
            assert compare(decoded, list(fields)) > 0


def segment(port: int, data: bytes) -> Packet:
    """A packet whose payload is sent to a port."""
    tcp = {"source_port": 1, "destination_port": port, "sequence_number": 1, "payload": data.hex()}
    ip = {"total_length": 40 + len(data), "source": "00000001", "destination": "00000002", "payload": tcp}
    packet = bytes(12) + b"\x08\0" + wirekit.encode("net.ipv4", ip)
    return Packet(port, len(packet), packet)


def shown_by(layout: Node, data: str, folder: Path) -> list[str]:
    """The lines that tshark shows of a value, and what is missing."""
    with own(layout) as key:
        exported = export([key], "lua")
    script, name = folder / "own.lua", f"wirekit_{key.replace('.', '_')}"
    script.write_text(exported.text)
    capture = write(folder / "own.pcap", [segment(7000, bytes.fromhex(data))])
    command = [
        str(TSHARK),
        "-r",
        str(capture),
        "-X",
        f"lua_script:{script}",
        "-d",
        f"tcp.port==7000,{name}",
        "-O",
        name,
    ]
    lines = subprocess.run(command, capture_output=True, check=True, timeout=60, encoding="utf-8").stdout.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("wirekit "))
    return [*map(str.strip, lines[start + 1 :]), *(each.reason for each in exported.missing)]


def test_names_of_numbers_with_8_bytes_are_shown(tmp_path: Path) -> None:
    kinds = SymbolTable("Kind", {-2: "TWO", 1 << 40: "BIG", (1 << 62) + 1: "HUGE"})
    layout = Struct(*(name / Symbols(int64, kinds) for name in "abc"), "d" / Symbols(int48, kinds))
    shown = shown_by(layout, "fffffffffffffffe 0000010000000000 4000000000000001 fffffffffffe", tmp_path)
    assert shown[:2] == ["a: TWO (-2)", f"b: BIG ({1 << 40})"]
    assert shown[3] == "d: TWO (-2)"
    assert "names of values of more than 53 bits are not shown" in shown


def test_texts_are_shown_as_utf_8(tmp_path: Path) -> None:
    layout = Struct("topic" / String(int8), "line" / Delimited("\n"))
    assert shown_by(layout, "06 e8aea2e58d95 c3a40a", tmp_path)[1:3] == ["topic: 订单", "line: ä"]


def test_constructs_that_a_dissector_lacks_are_listed_in_it() -> None:
    written = export(["pulsar"], "lua")
    assert "data compressed by zstd is shown compressed" in {each.reason for each in written.missing}
    assert all(f"-- - {each.reason}" in written.text for each in written.missing)


def test_messages_show_no_number_that_is_not_exact(tmp_path: Path) -> None:
    """A number of Lua has 53 bits, and 14 digits as text; the tree shows the field."""
    kinds = SymbolTable("Kind", {1: "ONE"})
    layout = Struct("a" / Symbols(int64, kinds, closed=True))
    for data, shown in (("000fffffffffffff", "4503599627370495"), ("7ffffffffffffffd", "2^53 or more")):
        lines = shown_by(layout, data, tmp_path)
        assert lines[0] == f"a: Unknown ({int(data, 16)})"
        assert lines[2] == f"[{shown} is not a value that is known at byte 8]"
    other = shown_by(Struct("a" / Const(int64, (1 << 60) + 1)), "1000000000000000", tmp_path)
    assert "numbers of more than 53 bits are compared by their first 53 bits" in other
