"""Columns of choices, conditions, fallbacks and packets become the bytes that they came from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wirekit
from tests.agreement.law import rebuild
from tests.compiler.test_columns_branches import FIXTURES, PROTOCOL, SHAPES, packets_of, sized
from tests.own import own
from wirekit.compiler.building import source
from wirekit.compiler.columns import scan
from wirekit.errors import Misuse
from wirekit.registry import register
from wirekit.wire import Bytes, Checked, Flag, If, IfMore, Node, Struct, this, uint8, uint16, uint32

ETHERNET = 14  # bytes of its header
WAYS = sized(b"\x00\x07ab!", b"\x01\x01\x08cd", b"\x01\x02xy", b"\x02\x09\x0aef??", b"\x05rest", b"\x00\x07a")


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """The layouts are there for these tests only."""
    register(PROTOCOL)
    yield
    registry = wirekit.registry
    for name in PROTOCOL.layouts:
        del registry._schemas[PROTOCOL.key(name)]
    del registry._protocols[PROTOCOL.name]


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("branchtest.shapes", b"".join(SHAPES[:3] + SHAPES[4:])),
        ("branchtest.boxes", b"\x01\xff\xff\x03\x00\x02\x01\x00\x02\x00\x04\x07\x02ab"),
        ("branchtest.ways", b"".join(WAYS)),
        ("branchtest.closed", b"\x01\x05\x01\x06"),
        ("branchtest.default", b"\x01\x05\x02\x01\x00"),
        ("branchtest.front", b"\x01\x00\x05\x06"),
        ("branchtest.front", b"\x01\x01\x00\x06"),
        ("branchtest.front", b"\x02\x01\x00\x00\x00\x06"),
    ],
)
def test_alternatives_come_back(key: str, data: bytes) -> None:
    batch = wirekit.columns(key, data)
    assert wirekit.build_columns(key, batch) == data
    assert wirekit.build_columns(key, pa.Table.from_batches([batch])) == data


@settings(max_examples=60)
@given(st.lists(st.binary(min_size=2, max_size=20), max_size=8))
def test_any_shapes(bodies: list[bytes]) -> None:
    good = [part for part in sized(*bodies) if not scan("branchtest.shapes", part)[1].num_rows]
    for part in [*good, b"".join(good)]:
        assert rebuild("branchtest.shapes", part) in ("built", "refused")


@given(st.lists(st.binary(max_size=9), max_size=8))
def test_any_ways(bodies: list[bytes]) -> None:
    data = b"".join(sized(*bodies))
    assert rebuild("branchtest.ways", data) == "built"


def test_captured_packets_come_back() -> None:
    """One by one; ``make agreement KEYS=net.pcap`` has whole files."""
    captured = [packet[16:] for path in sorted(FIXTURES.glob("*.pcap")) for packet in packets_of(path)[1]]
    packets = [packet[ETHERNET:] for packet in captured if packet[12:ETHERNET] == b"\x08\x00"]
    assert len(packets) > 100
    for packet in packets:
        assert rebuild("net.ipv4", packet) == "built"


@pytest.mark.parametrize(
    ("key", "columns", "text"),
    [
        ("closed", {"k": [1, 2], "v": [5, 6]}, "row 1: v: no such case; expected one of 1"),
        ("default", {"k": [1, 2], "v": [300, 300]}, r"row 0: v: expected a number in -128\.\.127"),
        ("default", {"k": [1, 2], "v": [5, None]}, "row 1: v: is null"),
        ("boxes", {"kind": [1, 1], "there.n": [1, None], "there.text": [None, "a"]}, r"row 0: there\.text: is null"),
        ("ways", {"of.k": [1, 5], "last.number": [None, 3]}, r"row 0: of\.v\.w: the column is missing"),
        (
            "ways",
            {"of.k": [5, 5], "last.number": [None, 3], "of.ok": [True] * 2},
            r"row 1: last\.number: has a value",
        ),
        ("front", {"v": [1, 2]}, "its first fields select the layout of the records; pass them as the metadata"),
    ],
)
def test_a_value_that_does_not_fit_its_branch_is_misuse(key: str, columns: dict[str, Any], text: str) -> None:
    with pytest.raises(Misuse, match=text):
        wirekit.build_columns(f"branchtest.{key}", pa.RecordBatch.from_pydict(columns))


@pytest.mark.parametrize("front", ["", "{}", "[]", '{"magic": 9, "wide": 0}', '{"magic": 1, "wide": "a"}'])
def test_a_front_that_is_none_is_misuse(front: str) -> None:
    batch = pa.RecordBatch.from_pydict({"v": [1]}).replace_schema_metadata({"wirekit.front": front})
    with pytest.raises(Misuse, match="the metadata wirekit"):
        wirekit.build_columns("branchtest.front", batch)


@pytest.mark.parametrize("link", [0, 1, 12, 101, 113, 147, 228, 276])
def test_packets_of_every_kind_of_link_have_a_program(link: int) -> None:
    front = {"magic_number": 0xA1B2C3D4, "header": {"link": {"type": link}}}
    data = wirekit.encode("net.pcap", {**front, "packets": []})
    assert "end of record" in source("net.pcap", data)


def test_packets_without_a_link_layer_come_back() -> None:
    tcp = {"source_port": 1, "destination_port": 2, "sequence_number": 3, "acknowledgment_number": 4, "payload": "61"}
    packet = wirekit.encode(
        "net.ipv4", {"source": "0a000001", "destination": "0a000002", "fragment": 0, "payload": tcp}
    )
    front = {"magic_number": 0xA1B2C3D4, "header": {"link": {"type": 101}}}
    data = wirekit.encode("net.pcap", {**front, "packets": [{"seconds": 5, "data": packet.hex()}]})
    batch = wirekit.columns("net.pcap", data)
    assert batch["tcp.destination_port"].to_pylist() == [2]
    assert wirekit.build_columns("net.pcap", batch) == data


@pytest.mark.parametrize("algorithm", ["crc32", "xxh32"])
@pytest.mark.parametrize("absent", [IfMore(Bytes(uint16)), If(this.there, Bytes(uint16))], ids=["IfMore", "If"])
def test_the_checksum_of_the_content_of_absent_bytes(algorithm: str, absent: Node) -> None:
    node = Struct("there" / Flag(uint8), "sum" / Checked(uint32, algorithm, "data", content=True), "data" / absent)
    with own(node) as key:
        for value in ({"there": False}, {"there": True, "data": ""}, {"there": True, "data": "0102"}):
            data = wirekit.encode(key, value)
            batch = wirekit.columns(key, data)
            assert batch["sum.ok"].to_pylist() == [True]
            assert wirekit.build_columns(key, batch) == data
