"""Whole capture files of real hosts: every byte explained, and built again as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wirekit

CAPTURES = sorted((Path(__file__).parents[2] / "fixtures" / "pcap").glob("*.pcap*"))
PLAIN = [path for path in CAPTURES if path.suffix == ".pcap"]
NEXT_GENERATION = [path for path in CAPTURES if path.suffix == ".pcapng"]


def file_name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", PLAIN, ids=file_name)
def test_pcap(path: Path) -> None:
    data = path.read_bytes()
    decoded = wirekit.decode(data, "net.pcap")
    assert decoded.clean
    assert decoded.consumed == len(data)
    assert all(packet.data.payload.payload.source_port for packet in decoded.value.packets)
    assert wirekit.encode("net.pcap", decoded.value) == data


@pytest.mark.parametrize("path", NEXT_GENERATION, ids=file_name)
def test_pcapng(path: Path) -> None:
    data = path.read_bytes()
    decoded = wirekit.decode(data, "net.pcapng")
    assert decoded.clean
    assert decoded.consumed == len(data)
    (section,) = decoded.value.sections
    kinds = [block.block_type.symbol for block in section.blocks]
    assert kinds[:2] == ["SECTION_HEADER", "INTERFACE_DESCRIPTION"]
    assert kinds[-1] == "INTERFACE_STATISTICS"
    assert wirekit.encode("net.pcapng", decoded.value) == data


@pytest.mark.parametrize("path", [PLAIN[-1], NEXT_GENERATION[0]], ids=file_name)
def test_through_json(path: Path) -> None:
    data = path.read_bytes()
    key = f"net.{path.suffix[1:]}"
    line = json.loads(json.dumps(wirekit.decode(data, key).to_json()))
    assert wirekit.encode(key, line["value"]) == data


def test_packets_of_a_pcapng_file_are_decoded_when_context_gives_the_link_type() -> None:
    data = NEXT_GENERATION[0].read_bytes()
    context = {"link_type": 1}
    decoded = wirekit.decode(data, "net.pcapng", context=context)
    assert decoded.clean
    packets = [block.body for block in decoded.value.sections[0].blocks if block.block_type == 6]
    assert {packet.data.payload.payload.destination_port for packet in packets} >= {29201}
    assert wirekit.encode("net.pcapng", decoded.value, context=context) == data


def test_interface_options_are_decoded() -> None:
    section = wirekit.decode(NEXT_GENERATION[0].read_bytes(), "net.pcapng").value.sections[0]
    assert section.byte_order.symbol == "LITTLE_ENDIAN"
    options = {option.code.symbol: option.value for option in section.blocks[1].body.options}
    assert options["if_name"] == "lo"
    assert options["if_tsresol"] == {"binary": False, "exponent": 9}
    assert options["opt_endofopt"] == b""
