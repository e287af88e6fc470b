"""A packet pasted whole is decoded from its payload on, and said to be one; nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.net.building import ethernet, ipv4, ipv6, packet, tcp
from wirekit import encode, example
from wirekit.cli import group
from wirekit.cli.packets import payload_of

FRAME = encode("kafka.request", example("kafka.request"))
PACKETS: dict[str, tuple[str, Any, int]] = {
    "Ethernet, IPv4": ("net.ethernet", ethernet(ipv4(tcp(FRAME))), 54),
    "Ethernet, VLAN, IPv4": (
        "net.ethernet",
        {"type": "VLAN", "payload": {"tag": {"identifier": 7}, "payload": ipv4(tcp(FRAME))}},
        58,
    ),
    "Ethernet, IPv6": ("net.ethernet", ethernet(ipv6(tcp(FRAME)), type="IPV6"), 74),
    "IPv4": ("net.ipv4", ipv4(tcp(FRAME)), 40),
    "LinuxCooked, IPv4": ("net.linux_cooked", {"payload": ipv4(tcp(FRAME))}, 56),
}


@pytest.mark.parametrize("front", PACKETS)
def test_the_payload_is_decoded_and_the_headers_said(front: str) -> None:
    key, value, offset = PACKETS[front]
    result = CliRunner().invoke(group, ["decode", "--hex", packet(key, value).hex(), "--output", "json"])
    line = json.loads(result.stdout)
    assert (line["schema"], line["error"], line["length"]) == ("kafka.request", None, len(FRAME))
    assert f"({front}, TCP)" in result.stderr
    assert f"the {len(FRAME)} bytes of its payload, from byte {offset} on" in result.stderr


def test_a_layout_of_packets_gets_the_packet() -> None:
    key, value, _ = PACKETS["Ethernet, IPv4"]
    result = CliRunner().invoke(group, ["decode", key, "--hex", packet(key, value).hex(), "--output", "json"])
    assert json.loads(result.stdout)["value"]["payload"]["payload"]["payload"] == FRAME.hex()


def test_what_ethernet_fills_up_is_no_payload_and_a_cut_packet_says_so() -> None:
    short = packet("net.ethernet", ethernet(ipv4(tcp(b"hi"))))
    padded = payload_of(short + bytes(60 - len(short)))
    assert padded is not None
    assert padded.data == b"hi"
    whole = packet("net.ethernet", ethernet(ipv4(tcp(FRAME))))
    cut = payload_of(whole[:-3])
    assert cut is not None
    assert (cut.data, cut.text.endswith("(3 bytes more are missing)")) == (FRAME[:-3], True)


@given(st.data(), st.binary(max_size=30))
def test_no_frame_is_taken_for_a_packet(data: st.DataObject, noise: bytes) -> None:
    key = data.draw(st.sampled_from([f"{name}.{part}" for name, part in FRAMES]))
    assert payload_of(encode(key, example(key)) + noise) is None


FRAMES = [("kafka", "request"), ("kafka", "produce.request.v2"), ("pulsar", "frame"), ("joyqueue", "frame")]


@given(st.integers(14, 33), st.integers(1, 255))
def test_a_damaged_header_is_no_packet(at: int, change: int) -> None:
    whole = bytearray(packet("net.ethernet", ethernet(ipv4(tcp(FRAME)))))
    whole[at] ^= change
    assert payload_of(bytes(whole)) is None or whole[24:26] == b"\0\0"
