"""Layouts of capture files and of the network headers inside them."""

from __future__ import annotations

from wirekit.registry import Layout, Protocol
from wirekit.schemas.net import ip, link, pcap, pcapng, preamble, tcp, tunnels
from wirekit.wire import Limits

LARGEST_BLOCK = 16 * 1024 * 1024
"""Bytes that a packet record or a block may announce; libpcap's own maximum, unless the link type needs more."""

LARGEST_UNPACKED = 16 * 1024 * 1024 * 1024
"""Bytes of disk that a compressed capture may grow to."""

PCAP_DRAFT = "draft-ietf-opsawg-pcap"
PCAPNG_DRAFT = "draft-ietf-opsawg-pcapng"
LINK_DRAFT = "draft-ietf-opsawg-pcaplinktype"
ERSPAN_DRAFT = "draft-foschiano-erspan-03"
PROXY = "PROXY protocol, HAProxy"

PROTOCOL = Protocol(
    name="net",
    title="Capture files (pcap, pcapng), network headers down to TCP, headers before streams",
    layouts={
        "pcap": Layout(pcap.FILE, "a pcap file with decoded packets", PCAP_DRAFT),
        "pcap.header": Layout(pcap.HEADER, "the header of a pcap file", f"{PCAP_DRAFT}, File Header"),
        "pcap.packet.be": Layout(
            pcap.PACKET_BE, "a packet record of a big-endian file", f"{PCAP_DRAFT}, Packet Record"
        ),
        "pcap.packet.le": Layout(
            pcap.PACKET_LE, "a packet record of a little-endian file", f"{PCAP_DRAFT}, Packet Record"
        ),
        "pcap.packets.be": Layout(
            pcap.PACKETS_BE, "whole packet records, big-endian; an incomplete last one is not read"
        ),
        "pcap.packets.le": Layout(
            pcap.PACKETS_LE, "whole packet records, little-endian; an incomplete last one is not read"
        ),
        "pcapng": Layout(
            pcapng.FILE, "a pcapng file; the context link_type selects the layout of its packets", PCAPNG_DRAFT
        ),
        "pcapng.start": Layout(
            pcapng.START, "the start of a block, which shows the byte order of a section", PCAPNG_DRAFT
        ),
        "pcapng.block.be": Layout(pcapng.BLOCK_BE, "a block of a big-endian section", PCAPNG_DRAFT),
        "pcapng.block.le": Layout(pcapng.BLOCK_LE, "a block of a little-endian section", PCAPNG_DRAFT),
        "pcapng.envelope.be": Layout(
            pcapng.ENVELOPE_BE, "a block of a known type, not decoded, for the search after damage; big-endian"
        ),
        "pcapng.envelope.le": Layout(
            pcapng.ENVELOPE_LE, "a block of a known type, not decoded, for the search after damage; little-endian"
        ),
        "pcapng.blocks.be": Layout(
            pcapng.BLOCKS_BE, "whole blocks of one big-endian section; an incomplete last one is not read"
        ),
        "pcapng.blocks.le": Layout(
            pcapng.BLOCKS_LE, "whole blocks of one little-endian section; an incomplete last one is not read"
        ),
        "packet": Layout(
            link.PACKET, "a packet as stored in a file; the context link_type selects its layout", LINK_DRAFT
        ),
        "ethernet": Layout(link.ETHERNET, "Ethernet, VLAN tags included", "IEEE 802.3, IEEE 802.1Q"),
        "linux_cooked": Layout(link.LINUX_COOKED, "Linux cooked capture", f"{LINK_DRAFT}, LINKTYPE_LINUX_SLL"),
        "linux_cooked2": Layout(link.LINUX_COOKED2, "the same, version 2", f"{LINK_DRAFT}, LINKTYPE_LINUX_SLL2"),
        "loopback": Layout(link.LOOPBACK, "BSD and OpenBSD loopback", f"{LINK_DRAFT}, LINKTYPE_NULL, LINKTYPE_LOOP"),
        "ppp": Layout(link.PPP, "PPP, in HDLC framing or not", f"{LINK_DRAFT}, LINKTYPE_PPP, LINKTYPE_PPP_HDLC"),
        "ip": Layout(ip.IP, "raw IPv4 or IPv6, by its first byte", f"{LINK_DRAFT}, LINKTYPE_RAW"),
        "ipv4": Layout(ip.IPV4, "IPv4 down to TCP", "RFC 791"),
        "ipv6": Layout(ip.IPV6, "IPv6 with extension headers, down to TCP", "RFC 8200"),
        "ipv6_extension": Layout(ip.EXTENSION, "an extension header after that of a fragment", "RFC 8200 §4"),
        "authentication_header": Layout(ip.AUTHENTICATION, "the IP authentication header", "RFC 4302 §2"),
        "tcp": Layout(tcp.TCP, "a TCP segment", "RFC 9293"),
        "udp": Layout(tunnels.UDP, "a UDP datagram, such as that of a tunnel", "RFC 768"),
        "vxlan": Layout(tunnels.VXLAN, "VXLAN, a tunnel of Ethernet frames in UDP", "RFC 7348 §5"),
        "vxlan_gpe": Layout(tunnels.VXLAN_GPE, "VXLAN that names its content", "draft-ietf-nvo3-vxlan-gpe-12 §3"),
        "gtp_u": Layout(tunnels.GTP_U, "GTP-U, a tunnel of mobile networks in UDP", "3GPP TS 29.281 §5"),
        "geneve": Layout(tunnels.GENEVE, "Geneve, a tunnel in UDP", "RFC 8926 §3.4"),
        "gre": Layout(tunnels.GRE, "GRE, a tunnel in IP", "RFC 2784 §2, RFC 2890 §2, RFC 2637 §4.1"),
        "erspan": Layout(tunnels.ERSPAN, "a mirrored frame in GRE, type II", f"{ERSPAN_DRAFT}, 4.2"),
        "erspan_3": Layout(tunnels.ERSPAN_3, "the same, type III", f"{ERSPAN_DRAFT}, 4.3"),
        "mpls": Layout(tunnels.MPLS, "MPLS labels before an IP packet or a control word", "RFC 3032 §2.1"),
        "pppoe": Layout(tunnels.PPPOE, "a packet of a PPPoE session", "RFC 2516 §4"),
        "llc": Layout(tunnels.LLC, "802.2 LLC, with SNAP", "RFC 1042"),
        "proxy_v1": Layout(preamble.PROXY_V1, "a proxy's header before a stream", f"{PROXY}, 2.1"),
        "proxy_v2": Layout(preamble.PROXY_V2, "the same, binary", f"{PROXY}, 2.2"),
        "tls_record": Layout(preamble.TLS_RECORD, "a TLS record with undecoded content", "RFC 8446 §5.1"),
    },
    limits=Limits(frame=LARGEST_BLOCK, decompressed=LARGEST_UNPACKED),
)
