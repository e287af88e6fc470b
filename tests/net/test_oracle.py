"""dpkt reads the same files and headers in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpkt
import pytest

import wirekit
from tests.net.building import SECONDS, ethernet, interface, ipv4, ipv6, packet, pcap, section_header, tcp
from tests.net.building import enhanced as enhanced_packet
from wirekit.capture.files import Packet, dissect, open_capture
from wirekit.capture.tcp import Segment

CAPTURES = sorted((Path(__file__).parents[2] / "fixtures" / "pcap").glob("*.pcap*"))


def read(path: Path) -> list[tuple[Any, bytes]]:
    """The times in seconds and the packets, as dpkt finds them."""
    with path.open("rb") as file:
        return list(dpkt.pcap.UniversalReader(file))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_real_captures(path: Path) -> None:
    with open_capture(path) as capture:
        ours = list(capture.packets())
        assert capture.damage is None
    theirs = read(path)
    assert [packet.data for packet in ours] == [data for _, data in theirs]
    assert [packet.time_us / 1e6 for packet in ours] == pytest.approx([float(time) for time, _ in theirs], abs=2e-6)
    for each in ours:
        same_segment(each, dpkt.ethernet.Ethernet(each.data))


def same_segment(mine: Packet, frame: Any) -> None:
    segment = dissect(mine)
    assert isinstance(segment, Segment)
    network = frame.data
    text = dpkt.utils.inet_to_str
    shown = "[{}]:{}" if network.v == 6 else "{}:{}"
    assert segment.source == shown.format(text(network.src), network.data.sport)
    assert segment.target == shown.format(text(network.dst), network.data.dport)
    assert segment.sequence == network.data.seq
    assert segment.acknowledgment == network.data.ack
    assert segment.flags == network.data.flags & 0x1F
    assert segment.payload == network.data.data
    start = segment.offset - mine.offset
    assert mine.data[start : start + len(segment.payload)] == segment.payload


@pytest.mark.parametrize("order", ["be", "le"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_that_we_build(tmp_path: Path, order: str, nanoseconds: bool) -> None:
    data = packet("net.ethernet", ethernet())
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(data, data, order=order, nanoseconds=nanoseconds))
    packets = read(path)
    assert [each for _, each in packets] == [data, data]
    assert float(packets[1][0]) == pytest.approx(SECONDS + 1 + 250 / (1e9 if nanoseconds else 1e6), abs=1e-6)


@pytest.mark.parametrize("order", ["be", "le"])
def test_pcapng_that_we_build(tmp_path: Path, order: str) -> None:
    data = packet("net.ethernet", ethernet())
    path = tmp_path / "a.pcapng"
    blocks = [section_header(order), interface(order), enhanced_packet(order, data, SECONDS * 1_000_000)]
    path.write_bytes(b"".join(blocks))
    ((time, packet_data),) = read(path)
    assert (float(time), packet_data) == (SECONDS, data)


def test_headers_that_we_build() -> None:
    frame = dpkt.ethernet.Ethernet(packet("net.ethernet", ethernet(ipv4(tcp(b"abc", window=7)), trailer="000000")))
    network = frame.data
    assert network.sum == dpkt.dpkt.in_cksum(bytes(network)[:10] + b"\0\0" + bytes(network)[12:20])
    assert (network.len, network.p, network.data.win, network.data.data) == (43, 6, 7, b"abc")


def test_ipv6_extension_headers_that_we_build() -> None:
    extended = {"next_header": "TCP", "content": "000000000000", "payload": tcp(b"abc")}
    data = packet("net.ipv6", ipv6(extended, next_header="IPV6_OPTS"))
    network = dpkt.ip6.IP6(data)
    assert (network.plen, network.nxt, network.p) == (8 + 20 + 3, 60, 6)
    assert network.data.data == b"abc"


def test_a_vlan_that_we_build() -> None:
    tagged = {"tag": {"priority": 5, "identifier": 42}, "payload": ipv4()}
    frame = dpkt.ethernet.Ethernet(packet("net.ethernet", ethernet(tagged, type="VLAN")))
    assert (frame.vlan_tags[0].id, frame.vlan_tags[0].pri) == (42, 5)
    assert frame.data.data.data == b"hello"


def test_cooked_and_loopback_that_we_build() -> None:
    sll = dpkt.sll.SLL(packet("net.linux_cooked", {"packet_type": "FROM_US", "payload": ipv4()}))
    assert (sll.type, sll.data.data.data) == (4, b"hello")
    sll2 = dpkt.sll2.SLL2(packet("net.linux_cooked2", {"interface_index": 3, "payload": ipv4()}))
    assert (sll2.intindex, sll2.data.data.data) == (3, b"hello")
    loopback = dpkt.loopback.Loopback(packet("net.loopback", {"family": "INET_SWAPPED", "payload": ipv4()}))
    assert loopback.data.data.data == b"hello"


def test_decoding_agrees_on_every_cut_of_a_frame() -> None:
    data = packet("net.ethernet", ethernet())
    for length in range(54, len(data)):
        layer = wirekit.decode(data[:length], "net.ethernet").value.payload.payload
        assert layer.payload == dpkt.ethernet.Ethernet(data[:length]).data.data.data
