"""Captures and what is in them down to TCP: pcap, pcapng, link layers, IP, TCP."""

from __future__ import annotations

from wirekit.registry import Layout, Protocol
from wirekit.schemas.net import ip, link, pcap, pcapng, tcp
from wirekit.wire import Limits

PROTOCOL = Protocol(
    name="net",
    title="Capture files, link layers, IP, TCP",
    layouts={
        "pcap": Layout(pcap.PCAP, "a whole pcap file", "draft-ietf-opsawg-pcap"),
        "pcap.header": Layout(pcap.HEADER, "the head of a pcap file", "draft-ietf-opsawg-pcap"),
        "pcap.packet.big": Layout(pcap.PACKET_BIG, "a packet of a big-endian pcap file", "draft-ietf-opsawg-pcap"),
        "pcap.packet.little": Layout(
            pcap.PACKET_LITTLE, "a packet of a little-endian pcap file", "draft-ietf-opsawg-pcap"
        ),
        "pcapng": Layout(pcapng.PCAPNG, "a whole pcapng file", "draft-ietf-opsawg-pcapng"),
        "pcapng.section_head": Layout(
            pcapng.SECTION_HEAD, "the first 12 bytes of a section", "draft-ietf-opsawg-pcapng"
        ),
        "pcapng.block.big": Layout(pcapng.BLOCK_BIG, "a big-endian block", "draft-ietf-opsawg-pcapng"),
        "pcapng.block.little": Layout(pcapng.BLOCK_LITTLE, "a little-endian block", "draft-ietf-opsawg-pcapng"),
        "pcapng.timestamp_offset.big": Layout(
            pcapng.TIMESTAMP_OFFSET_BIG, "the value of option if_tsoffset", "draft-ietf-opsawg-pcapng"
        ),
        "pcapng.timestamp_offset.little": Layout(
            pcapng.TIMESTAMP_OFFSET_LITTLE, "the value of option if_tsoffset", "draft-ietf-opsawg-pcapng"
        ),
        "ethernet": Layout(link.ETHERNET, "an Ethernet frame without its checksum", "IEEE 802.3"),
        "vlan": Layout(link.VLAN, "what follows a VLAN ether type", "IEEE 802.1Q"),
        "linux_cooked": Layout(link.LINUX_COOKED, "a Linux cooked packet", "LINKTYPE_LINUX_SLL"),
        "linux_cooked2": Layout(link.LINUX_COOKED_2, "a Linux cooked packet, version 2", "LINKTYPE_LINUX_SLL2"),
        "loopback": Layout(link.LOOPBACK, "a BSD or OpenBSD loopback packet", "LINKTYPE_NULL, LINKTYPE_LOOP"),
        "ip": Layout(ip.IP, "an IPv4 or IPv6 packet", "RFC 791, RFC 8200"),
        "ipv4": Layout(ip.IPV4, "an IPv4 packet", "RFC 791"),
        "ipv6": Layout(ip.IPV6, "an IPv6 packet", "RFC 8200"),
        "ipv6_extension": Layout(
            ip.EXTENSION, "hop-by-hop, routing or destination options and what follows", "RFC 8200, section 4"
        ),
        "ipv6_fragment": Layout(ip.FRAGMENT, "a fragment header and what follows", "RFC 8200, section 4.5"),
        "tcp": Layout(tcp.TCP, "a TCP segment", "RFC 9293"),
    },
    limits=Limits(frame=2**32),
)
