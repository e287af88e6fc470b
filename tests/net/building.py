"""Packets and capture files made by the layouts themselves, in the JSON form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import wirekit

SECONDS = 1_600_000_000
ORDERS = ("be", "le")


def tcp(payload: bytes = b"hello", **fields: Any) -> dict[str, Any]:
    """A segment from port 4000 to port 9092 with PSH and ACK."""
    value = {
        "source_port": 4000,
        "destination_port": 9092,
        "sequence_number": 1000,
        "acknowledgment_number": 2000,
        "flags": 0x18,
        "payload": payload.hex(),
    }
    return value | fields


def ipv4(payload: Any = None, **fields: Any) -> dict[str, Any]:
    """A packet from 10.0.0.1 to 10.0.0.2."""
    value = {
        "fragment": {"dont_fragment": True},
        "source": "0a000001",
        "destination": "0a000002",
        "payload": tcp() if payload is None else payload,
    }
    return value | fields


def ipv6(payload: Any = None, **fields: Any) -> dict[str, Any]:
    """A packet from fe80::1 to fe80::2."""
    value = {
        "source": "fe80" + "00" * 13 + "01",
        "destination": "fe80" + "00" * 13 + "02",
        "payload": tcp() if payload is None else payload,
    }
    return value | fields


def ethernet(payload: Any = None, **fields: Any) -> dict[str, Any]:
    """A frame with an IPv4 packet."""
    return {"payload": ipv4() if payload is None else payload} | fields


def in_ip(protocol: int, header: str, inner: bytes) -> bytes:
    """A frame of Ethernet with an IPv4 packet of that protocol."""
    value = ipv4(header + inner.hex(), protocol=protocol, source="c0a80001", destination="c0a80002")
    return packet("net.ethernet", ethernet(value))


def in_udp(port: int, header: str, inner: bytes) -> bytes:
    """A frame of Ethernet with a UDP datagram to that port."""
    content = bytes.fromhex(header) + inner
    return in_ip(17, f"c350 {port:04x} {len(content) + 8:04x} 0000", content)


def in_frame(ethertype: str, header: str, inner: bytes) -> bytes:
    """A frame of Ethernet with that EtherType."""
    return bytes.fromhex("00" * 12 + ethertype + header) + inner


# The headers are written by hand from the sources in schemas/net/NOTES.md; TShark reads each.
TUNNELS: dict[str, Callable[[bytes], bytes]] = {
    "VXLAN": lambda frame: in_udp(4789, "08000000 00002a00", frame),
    "VXLAN of Linux": lambda frame: in_udp(8472, "08000000 00002a00", frame),
    "VXLAN with a group policy": lambda frame: in_udp(4789, "88000007 00002a00", frame),
    "VXLAN-GPE": lambda frame: in_udp(4790, "0c000003 00002a00", frame),
    "VXLAN-GPE without Ethernet": lambda frame: in_udp(4790, "0c000001 00002a00", frame[14:]),
    "GTP-U": lambda frame: in_udp(2152, f"30ff {len(frame) - 14:04x} 0000002a", frame[14:]),
    "GTP-U with extensions": lambda frame: in_udp(
        2152, f"36ff {len(frame) + 2:04x} 0000002a 0001 00 85 01 1009 85 02 100900000000 00", frame[14:]
    ),
    "Geneve": lambda frame: in_udp(6081, "00006558 00002a00", frame),
    "Geneve with an option": lambda frame: in_udp(6081, "02406558 00002a00 0102 80 01 00000007", frame),
    "Geneve without Ethernet": lambda frame: in_udp(6081, "00000800 00002a00", frame[14:]),
    "GRE": lambda frame: in_ip(47, "0000 0800", frame[14:]),
    "GRE with all fields": lambda frame: in_ip(47, "b000 6558 00000000 0000002a 00000001", frame),
    "GRE of PPTP": lambda frame: in_ip(
        47, f"3081 880b {len(frame) - 10:04x} 0007 00000001 00000000 ff03 0021", frame[14:]
    ),
    "GRE with MPLS": lambda frame: in_ip(47, "0000 8847 00011140", frame[14:]),
    "ERSPAN": lambda frame: in_ip(47, "1000 88be 00000001 10011801 00000000", frame),
    "ERSPAN of type III": lambda frame: in_ip(47, "1000 22eb 00000001 20010001 00000000 0000 0000", frame),
    "ERSPAN with a subheader": lambda frame: in_ip(
        47, "1000 22eb 00000001 20010001 00000000 00000001" + "00" * 8, frame
    ),
    "AH": lambda frame: in_ip(51, "04 04 0000 00000100 00000001" + "aa" * 12, frame[14:]),
    "IP in IP": lambda frame: in_ip(4, "", frame[14:]),
    "IP in IPv6": lambda frame: in_frame("86dd", packet("net.ipv6", ipv6(frame[14:].hex(), next_header=4)).hex(), b""),
    "MPLS": lambda frame: in_frame("8847", "00010040 00011140", frame[14:]),
    "MPLS with a control word": lambda frame: in_frame("8847", "00011140 00000000", frame),
    "MPLS in UDP": lambda frame: in_udp(6635, "00011140", frame[14:]),
    "MPLS in IP": lambda frame: in_ip(137, "00011140", frame[14:]),
    "three tags": lambda frame: in_frame("88a8", "0007 8100 0008 8100 0009 0800", frame[14:]),
    "PPPoE": lambda frame: in_frame("8864", f"11 00 0007 {len(frame) - 12:04x} 0021", frame[14:]),
    "SNAP": lambda frame: in_frame(f"{len(frame) - 6:04x}", "aaaa03 000000 0800", frame[14:]),
    "SNAP in a VLAN": lambda frame: in_frame("8100", f"0007 {len(frame) - 6:04x} aaaa03 000000 0800", frame[14:]),
}
"""Functions that put a frame of Ethernet with an IPv4 packet, or this packet, into a tunnel."""

NETWORKS: dict[str, Callable[[int, bytes], bytes]] = {
    "VLAN": lambda number, frame: in_frame("8100", f"{number:04x} 0800", frame[14:]),
    "QinQ, outer": lambda number, frame: in_frame("88a8", f"{number:04x} 8100 0007 0800", frame[14:]),
    "QinQ, inner": lambda number, frame: in_frame("88a8", f"0007 8100 {number:04x} 0800", frame[14:]),
    "VXLAN": lambda number, frame: in_udp(4789, f"08000000 {number:06x} 00", frame),
    "VLAN in VXLAN": lambda number, frame: in_udp(4789, "08000000 00002a00", NETWORKS["VLAN"](number, frame)),
    "Geneve": lambda number, frame: in_udp(6081, f"00006558 {number:06x} 00", frame),
    "GRE": lambda number, frame: in_ip(47, f"2000 0800 {number:08x}", frame[14:]),
    "ERSPAN": lambda number, frame: in_ip(47, f"1000 88be 00000001 1001 {number:04x} 00000000", frame),
    "ERSPAN of type III": lambda number, frame: in_ip(
        47, f"1000 22eb 00000001 2001 {number:04x} 00000000 0000 0000", frame
    ),
    "MPLS": lambda number, frame: in_frame("8847", f"00010040 {number << 12 | 0x140:08x}", frame[14:]),
    "PPPoE": lambda number, frame: in_frame("8864", f"11 00 {number:04x} {len(frame) - 12:04x} 0021", frame[14:]),
    "IP in IP": lambda number, frame: packet(
        "net.ethernet", ethernet(ipv4(frame[14:].hex(), protocol=4, source=f"c0a8{number:04x}"))
    ),
    "IP in IPv6": lambda number, frame: packet(
        "net.ethernet",
        ethernet(ipv6(frame[14:].hex(), next_header=4, destination=f"{number:032x}"), type="IPV6"),
    ),
}
"""Functions that put a frame of Ethernet with an IPv4 packet, or this packet, into a network of that number."""


def packet(key: str, value: Any) -> bytes:
    """The bytes of a packet."""
    return wirekit.encode(key, value)


def fragments(
    frame: bytes, cuts: Iterable[int], number: int = 7, *, version: int = 4, extensions: int = 0
) -> list[bytes]:
    """A frame of Ethernet with an IPv4 packet without options as frames with its fragments.

    Args:
        frame: the frame.
        cuts: where fragments begin, in units of 8 bytes; without any, the frame stays as it is.
        number: the identification.
        version: 6 for fragments of IPv6, whose addresses end with those of IPv4.
        extensions: the number of extension headers of 8 bytes that fragments of IPv6 contain.
    """
    content, protocol = frame[34 : 14 + int.from_bytes(frame[16:18], "big")], frame[23]
    for _ in range(extensions):
        content, protocol = bytes([protocol]) + bytes(7) + content, 60
    begins = [0, *sorted({8 * cut for cut in cuts if 0 < 8 * cut < len(content)}), len(content)]
    if len(begins) == 2:
        return [frame]
    source, destination = frame[26:30].hex(), frame[30:34].hex()
    frames = []
    for begin, end in pairwise(begins):
        about = {"fragment_offset": begin // 8, "more_fragments": end < len(content)}
        common = {"identification": number, "fragment": about, "payload": content[begin:end].hex()}
        value = ipv4(**common, source=source, destination=destination, protocol=protocol)
        if version == 6:
            ends = {"source": "00" * 12 + source, "destination": "00" * 12 + destination}
            value = ipv6({"next_header": protocol, **common}, next_header=44, **ends)
        frames.append(packet("net.ethernet", ethernet(value, type="IPV4" if version == 4 else "IPV6")))
    return frames


def pcap(*packets: Any, order: str = "le", nanoseconds: bool = False, link_type: int = 1, fraction: int = 250) -> bytes:
    """A pcap file; packets, one a second, are bytes, values of the link layer, or whole records."""
    magic = f"{'BIG' if order == 'be' else 'LITTLE'}_{'NANOSECONDS' if nanoseconds else 'MICROSECONDS'}"
    records = []
    for number, data in enumerate(packets):
        record = {"seconds": SECONDS + number, "fraction": fraction}
        if isinstance(data, dict) and "data" in data:
            record |= data
        else:
            record["data"] = data.hex() if isinstance(data, bytes) else data
        records.append(record)
    value = {"magic_number": magic, "header": {"link": link_type}, "packets": records}
    return wirekit.encode("net.pcap", value)


def option(code: int, value: Any) -> dict[str, Any]:
    """An option of a block; those of text take a str, others hex or a value."""
    return {"code": code, "value": value}


def section_header(order: str, *options: dict[str, Any]) -> bytes:
    """The block that a section begins with."""
    return block(order, "SECTION_HEADER", {"options": [*options, option(0, "")] if options else []})


def interface(order: str, link_type: int = 1, *options: dict[str, Any], snap_length: int = 0) -> bytes:
    """An interface description."""
    body = {"link_type": link_type, "snap_length": snap_length, "options": list(options)}
    return block(order, "INTERFACE_DESCRIPTION", body)


def enhanced(order: str, data: bytes, units: int, **fields: Any) -> bytes:
    """An enhanced packet; its time in the unit of its interface."""
    body = {"timestamp_high": units >> 32, "timestamp_low": units & 0xFFFFFFFF, "data": data.hex()}
    return block(order, "ENHANCED_PACKET", body | fields)


def block(order: str, kind: str | int, body: Any) -> bytes:
    """Any block."""
    return wirekit.encode(f"net.pcapng.block.{order}", {"block_type": kind, "body": body})
