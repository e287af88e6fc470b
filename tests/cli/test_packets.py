"""Packets pasted whole are decoded from their payload on, and said to be packets; nothing else is."""

from __future__ import annotations

import json
from itertools import pairwise
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
def test_the_payload_is_decoded_and_the_headers_are_named(front: str) -> None:
    key, value, offset = PACKETS[front]
    result = CliRunner().invoke(group, ["decode", "--hex", packet(key, value).hex(), "--output", "json"])
    line = json.loads(result.stdout)
    assert (line["schema"], line["error"], line["length"]) == ("kafka.request", None, len(FRAME))
    assert f"({front}, TCP)" in result.stderr
    assert f"{len(FRAME)} bytes of payload from byte {offset} on" in result.stderr


def test_a_layout_of_packets_gets_the_packet() -> None:
    key, value, _ = PACKETS["Ethernet, IPv4"]
    result = CliRunner().invoke(group, ["decode", key, "--hex", packet(key, value).hex(), "--output", "json"])
    assert json.loads(result.stdout)["value"]["payload"]["payload"]["payload"] == FRAME.hex()


def test_ethernet_padding_is_no_payload_and_a_cut_packet_has_a_note() -> None:
    short = packet("net.ethernet", ethernet(ipv4(tcp(b"hi"))))
    padded = payload_of(short + bytes(60 - len(short)))
    assert padded is not None
    assert padded.segment.payload == b"hi"
    whole = packet("net.ethernet", ethernet(ipv4(tcp(FRAME))))
    cut = payload_of(whole[:-3])
    assert cut is not None
    assert (cut.segment.payload, cut.text.endswith("(3 bytes more are missing)")) == (FRAME[:-3], True)


@given(st.data(), st.binary(max_size=30))
def test_no_frame_is_recognised_as_a_packet(data: st.DataObject, noise: bytes) -> None:
    key = data.draw(st.sampled_from([f"{name}.{part}" for name, part in FRAMES]))
    assert payload_of(encode(key, example(key)) + noise) is None


FRAMES = [("kafka", "request"), ("kafka", "produce.request.v2"), ("pulsar", "frame"), ("joyqueue", "frame")]


@given(st.integers(14, 33), st.integers(1, 255))
def test_a_damaged_header_is_no_packet(at: int, change: int) -> None:
    whole = bytearray(packet("net.ethernet", ethernet(ipv4(tcp(FRAME)))))
    whole[at] ^= change
    assert payload_of(bytes(whole)) is None or whole[24:26] == b"\0\0"


# Several packets in one paste

REQUEST = encode("kafka.metadata.request.v0", {"correlation_id": 7, "client_id": "c", "body": {"topics": ["t"]}})
RESPONSE = encode("kafka.metadata.response.v0", {"correlation_id": 7, "body": {"brokers": [], "topic_metadata": []}})


def dump(data: bytes) -> str:
    """The bytes as ``tcpdump -XX`` prints a packet, with its title."""
    lines = [data[at : at + 16].hex(" ", -2) for at in range(0, len(data), 16)]
    return "12:00 IP a > b: Flags [P.]\n" + "".join(f"\t0x{16 * n:04x}:  {line}\n" for n, line in enumerate(lines))


def sent(payload: bytes, sequence: int = 1000, *, answer: bool = False) -> bytes:
    """A packet from the client, or the server's answer."""
    segment = tcp(payload, sequence_number=sequence)
    if not answer:
        return packet("net.ethernet", ethernet(ipv4(segment)))
    acknowledged = sequence + len(REQUEST)
    segment |= {"source_port": 9092, "destination_port": 4000, "sequence_number": 2000}
    segment |= {"acknowledgment_number": acknowledged}
    return packet("net.ethernet", ethernet(ipv4(segment, source="0a000002", destination="0a000001")))


def decoded(*packets: bytes, options: tuple[str, ...] = ()) -> tuple[list[dict[str, Any]], str, int]:
    """The lines, the messages and the exit status for packets in one paste."""
    text = "".join(map(dump, packets))
    result = CliRunner().invoke(group, ["decode", "--hex", text, "--output", "json", *options], standalone_mode=False)
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr, result.return_value


def test_an_answer_is_decoded_by_the_request_in_the_packet_before_it() -> None:
    lines, messages, status = decoded(sent(REQUEST), sent(b"", 1000 + len(REQUEST)), sent(RESPONSE, answer=True))
    assert [line["schema"] for line in lines] == ["kafka.metadata.request.v0", "kafka.metadata.response.v0"]
    assert [line["error"] for line in lines] == [None, None]
    assert status == 0
    assert f"packet 1, from 10.0.0.1:4000 to 10.0.0.2:9092 (Ethernet, IPv4, TCP): {len(REQUEST)} bytes" in messages
    assert "packet 2, from 10.0.0.1:4000 to 10.0.0.2:9092 (Ethernet, IPv4, TCP): no payload" in messages


@pytest.mark.parametrize("schema", [(), ("kafka",), ("kafka.metadata.request.v0",)])
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1), (0, 1, 1, 2)])
def test_a_frame_is_joined_by_sequence_numbers(schema: tuple[str, ...], order: tuple[int, ...]) -> None:
    cuts = [0, 5, 11, len(REQUEST)]
    parts = [sent(REQUEST[begin:end], 1000 + begin) for begin, end in pairwise(cuts)]
    lines, _, status = decoded(*(parts[number] for number in order), options=schema)
    assert [(line["error"], line["value"]["body"]["topics"]) for line in lines] == [(None, ["t"])]
    assert status == 0


@pytest.mark.parametrize("schema", ["kafka", "kafka.metadata.request.v0"])
def test_bytes_that_no_packet_holds_are_never_joined_over(schema: str) -> None:
    lost = sent(REQUEST[8:], 1000 + len(REQUEST) + 8)
    lines, messages, status = decoded(sent(REQUEST), lost, sent(REQUEST, 1000 + 2 * len(REQUEST)), options=(schema,))
    clean = [line for line in lines if line["error"] is None and line["length"] == len(REQUEST)]
    assert len(clean) == (2 if schema == "kafka" else 1)
    assert status == 1
    assert ("8 bytes from 10.0.0.1:4000 missing" in messages) is (schema == "kafka")


def test_the_reason_of_bytes_of_no_protocol_names_no_option_of_captures() -> None:
    lines, messages, status = decoded(sent(b"abcdefghij"), sent(b"klmno", 1010))
    assert (lines, status) == ([], 1)
    assert "10 bytes from 10.0.0.1:4000 not decoded: no known protocol fits\n" in messages


def test_packets_of_another_protocol_than_the_given_one_are_recognised() -> None:
    parts = sent(REQUEST[:9]), sent(RESPONSE, answer=True), sent(REQUEST[9:], 1009)
    lines, messages, status = decoded(*parts, options=("pulsar",))
    assert (lines, status) == ([], 1)
    assert messages.endswith("wirekit: the first frame decodes cleanly as kafka; pass kafka instead of pulsar\n")


def test_other_packets_are_skipped_and_named() -> None:
    arp = packet("net.ethernet", {"type": "ARP", "payload": "00" * 46})
    lines, messages, status = decoded(arp, sent(REQUEST))
    assert len(lines) == 1
    assert status == 0
    assert "packet 1 is not a TCP packet and was skipped" in messages


def test_dumps_of_frames_are_decoded_one_after_the_other() -> None:
    lines, messages, status = decoded(REQUEST, FRAME)
    assert [line["schema"] for line in lines] == ["kafka.request", "kafka.request"]
    assert f"dump 2 of 2: {len(FRAME)} bytes" in messages
    assert status == 0
