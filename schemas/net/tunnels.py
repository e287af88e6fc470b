"""Headers of tunnels, which carry a frame or an IP packet inside another packet; 802.2 LLC with SNAP is read likewise.

A header ends with ``payload``, undecoded; ``FOLLOWING`` names its layout. The layouts of packets do not contain these,
so that reading plain packets takes no longer.

Sources: RFC 768 (UDP), RFC 7348 §5 (VXLAN), draft-ietf-nvo3-vxlan-gpe-12 §3 (VXLAN-GPE), 3GPP TS 29.281 §5 (GTP-U),
RFC 8926 §3.4 (Geneve), RFC 2784 §2 and RFC 2890 §2 (GRE), RFC 2637 §4.1 (GRE of PPTP), draft-foschiano-erspan-03 §4
(ERSPAN), RFC 3032 §2.1 (MPLS), RFC 7510 (MPLS in UDP), RFC 4385 §3 (control word), RFC 2516 §4 (PPPoE), RFC 1042 (LLC
and SNAP); IANA "Service Name and Transport Protocol Port Number Registry", "PPP DLL Protocol Numbers".
"""

from __future__ import annotations

from wirekit.schemas.net.link import ETHERTYPE, IPV4_TYPE, PPP_IPV4, PPP_PROTOCOLS, TUNNELLED_ETHERNET_TYPE
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    Default,
    If,
    IfThenElse,
    Length,
    Lookahead,
    Struct,
    Symbols,
    rest,
    this,
    uint8,
    uint16,
    uint24,
    uint32,
    unexplained,
)

PORTS = SymbolTable(
    "udp_port",
    {
        2152: ("GTP_U", "user data of mobile networks"),
        4789: "VXLAN",
        4790: "VXLAN_GPE",
        6081: "GENEVE",
        6635: ("MPLS", "MPLS in UDP"),
        8472: ("VXLAN", "the default port of Linux"),
    },
)

UDP = Struct(
    "source_port" / uint16,
    "destination_port" / Symbols(uint16, PORTS),
    "length"
    / Length(uint16, add=6, minimum=8, zero_is_rest=True, clip=True)
    * "bytes of the datagram, header included",
    "checksum" / Default(uint16, 0) * "not verified",
    "payload" / rest(),
    name="UDP",
)

VXLAN = Struct(
    "flags" / Default(uint8, 0x08) * "0x08: the identifier is valid",
    "reserved" / Default(uint24, 0) * "the lower 16 bits may be a group policy",
    "identifier" / Default(uint24, 0) * "of the network, VNI",
    "reserved_2" / Default(uint8, 0),
    "payload" / rest() * "an Ethernet frame",
    name="VXLAN",
)

NEXT_PROTOCOLS = SymbolTable(
    "next_protocol",
    {
        0: ("ETHERNET", "none, as in VXLAN"),
        1: "IPV4",
        2: "IPV6",
        3: "ETHERNET",
        4: ("NSH", "network service header"),
        5: "MPLS",
    },
)

VXLAN_GPE = Struct(
    "flags" / Default(uint8, 0x0C) * "0x08: the identifier is valid, 0x04: the next protocol is",
    "reserved" / Default(uint16, 0),
    "next_protocol" / Default(Symbols(uint8, NEXT_PROTOCOLS), 3),
    "identifier" / Default(uint24, 0) * "of the network, VNI",
    "reserved_2" / Default(uint8, 0),
    "payload" / rest(),
    name="VXLANGPE",
)

G_PDU = 0xFF
FIRST_BYTES = SymbolTable(
    "first_byte",
    dict.fromkeys(range(0x40, 0x50), "IPV4") | dict.fromkeys(range(0x60, 0x70), "IPV6"),
)
EXTENSIONS = 4


def _extension(more: int) -> Struct:
    """An extension header of GTP-U with at most as many more after it."""
    following = ("next" / If(this.next_type != 0, _extension(more - 1)),) if more else ()
    return Struct(
        "length" / uint8 * "32-bit words of the header",
        "content" / Bytes(this.length * 4 - 2),
        "next_type" / Default(uint8, 0) * "0: no other header",
        *following,
        name="GTPExtension",
    )


_HAS_OPTIONS = this.flags.extension_present | this.flags.sequence_present | this.flags.number_present
GTP_U = Struct(
    "flags"
    / Default(
        Bits(
            uint8,
            "version" / Bit(3),
            "is_gtp" / Bit(1) * "0: GTP', for charging",
            "reserved" / Bit(1),
            "extension_present" / Bit(1),
            "sequence_present" / Bit(1),
            "number_present" / Bit(1),
            order="msb",
        ),
        0x30,
    ),
    "message_type" / Default(uint8, G_PDU) * "255: a user's packet",
    "length" / Length(uint16, of=("sequence_number", "payload"), clip=True) * "bytes after the identifier",
    "identifier" / Default(uint32, 0) * "of the tunnel's end, TEID",
    "sequence_number" / If(_HAS_OPTIONS, uint16),
    "n_pdu_number" / If(_HAS_OPTIONS, uint8),
    "next_type" / If(_HAS_OPTIONS, uint8),
    "extension" / If(this.flags.extension_present & ~(this.next_type == 0), _extension(EXTENSIONS - 1)),
    "protocol"
    / If(this.message_type == G_PDU, Lookahead(Symbols(uint8, FIRST_BYTES)))
    * "the first byte of the packet, not consumed",
    "payload" / rest(),
    name="GTPU",
)

GENEVE = Struct(
    "start"
    / Default(
        Bits(
            uint16,
            "version" / Bit(2),
            "options_length" / Bit(6) * "32-bit words of the options",
            "control" / Bit(1),
            "critical_options" / Bit(1),
            "reserved" / Bit(6),
            order="msb",
        ),
        0,
    ),
    "protocol_type" / Default(ETHERTYPE, TUNNELLED_ETHERNET_TYPE),
    "identifier" / Default(uint24, 0) * "of the network, VNI",
    "reserved" / Default(uint8, 0),
    "options" / Default(Bytes(this.start.options_length * 4), b""),
    "payload" / rest(),
    name="Geneve",
)

GRE = Struct(
    "start"
    / Default(
        Bits(
            uint16,
            "checksum_present" / Bit(1),
            "routing_present" / Bit(1) * "of RFC 1701, obsolete",
            "key_present" / Bit(1),
            "sequence_present" / Bit(1),
            "reserved" / Bit(4),
            "acknowledgment_present" / Bit(1) * "in version 1, of PPTP",
            "reserved_2" / Bit(4),
            "version" / Bit(3),
            order="msb",
        ),
        0,
    ),
    "protocol_type" / Default(ETHERTYPE, IPV4_TYPE),
    "checksum" / If(this.start.checksum_present, uint16) * "not verified",
    "reserved" / If(this.start.checksum_present, uint16),
    "key" / If(this.start.key_present & (this.start.version != 1), uint32),
    "payload_length" / If(this.start.key_present & (this.start.version == 1), uint16) * "of PPTP, not verified",
    "call" / If(this.start.key_present & (this.start.version == 1), uint16) * "of PPTP",
    "sequence_number" / If(this.start.sequence_present, uint32),
    "acknowledgment_number" / If(this.start.acknowledgment_present & (this.start.version == 1), uint32),
    "payload" / rest(),
    name="GRE",
)

ERSPAN_START = Bits(
    uint32,
    "version" / Bit(4) * "1 is type II, 2 is type III",
    "vlan" / Bit(12),
    "class_of_service" / Bit(3),
    "encapsulation" / Bit(2) * "in type III, whether the frame is bad, short or oversized",
    "truncated" / Bit(1),
    "session" / Bit(10),
    order="msb",
)

ERSPAN = Struct(
    "start" / Default(ERSPAN_START, 0x10000000),
    "index" / Default(uint32, 0) * "the port in the lower 20 bits",
    "payload" / rest() * "an Ethernet frame",
    name="ERSPAN",
)

ERSPAN_3 = Struct(
    "start" / Default(ERSPAN_START, 0x20000000),
    "timestamp" / Default(uint32, 0),
    "security_group" / Default(uint16, 0),
    "flags"
    / Default(
        Bits(
            uint16,
            "protocol_data" / Bit(1),
            "frame_type" / Bit(5),
            "hardware" / Bit(6),
            "direction" / Bit(1),
            "granularity" / Bit(2),
            "platform_present" / Bit(1),
            order="msb",
        ),
        0,
    ),
    "platform" / If(this.flags.platform_present, Bytes(8)),
    "payload" / rest() * "an Ethernet frame",
    name="ERSPAN3",
)

LABELS = 8

CONTENT = SymbolTable(
    "mpls_content", {0: ("ETHERNET", "a control word before an Ethernet frame"), 4: "IPV4", 6: "IPV6"}
)
LABELLED = Struct(
    "start"
    / Lookahead(Bits(uint8, "version" / Bit(4, CONTENT), "other" / Bit(4), order="msb"))
    * "the first byte, not consumed",
    "control_word" / If(this.start.version == 0, uint32),
    "payload" / rest(),
    name="Labelled",
)


def _label(more: int) -> Struct:
    """A label with at most as many more after it, for bytes of an attacker nest without bound."""
    return Struct(
        "entry"
        / Bits(
            uint32,
            "label" / Bit(20),
            "traffic_class" / Bit(3),
            "bottom_of_stack" / Bit(1),
            "time_to_live" / Bit(8),
            order="msb",
        ),
        "payload" / IfThenElse(this.entry.bottom_of_stack, LABELLED, _label(more - 1) if more else unexplained()),
        name="MPLS",
    )


MPLS = _label(LABELS - 1)

PPPOE = Struct(
    "start" / Default(Bits(uint8, "version" / Bit(4), "type" / Bit(4), order="msb"), 0x11),
    "code" / Default(uint8, 0),
    "session" / Default(uint16, 0),
    "length"
    / Length(uint16, of=("protocol", "payload"), minimum=2, clip=True)
    * "bytes of the PPP packet, its protocol included",
    "protocol" / Default(Symbols(uint16, PPP_PROTOCOLS), PPP_IPV4),
    "payload" / rest(),
    "trailer" / rest() * "padding and frame check sequence",
    name="PPPoE",
)

SNAP = 0xAA

LLC = Struct(
    "destination_service" / Default(uint8, SNAP) * "0xaa: SNAP; 0x42: spanning tree; 0xfe: OSI",
    "source_service" / Default(uint8, SNAP),
    "control" / Default(uint8, 3) * "3: unnumbered information; the second byte of other frames is payload",
    "organization" / If(this.destination_service == SNAP, uint24),
    "type" / If((this.destination_service == SNAP) & (this.organization == 0), ETHERTYPE),
    "payload" / rest(),
    name="LLC",
)

FOLLOWING = {
    "AH": "authentication_header",
    "ERSPAN": "erspan",
    "ERSPAN_3": "erspan_3",
    "ETHERNET": "ethernet",
    "GENEVE": "geneve",
    "GRE": "gre",
    "GTP_U": "gtp_u",
    "IPV4": "ip",
    "IPV6": "ip",
    "LLC": "llc",
    "MPLS": "mpls",
    "MPLS_MULTICAST": "mpls",
    "PPP": "ppp",
    "PPPOE_SESSION": "pppoe",
    "UDP": "udp",
    "VXLAN": "vxlan",
    "VXLAN_GPE": "vxlan_gpe",
}
"""The layout of an undecoded payload, by the symbol of the field that selects it: an EtherType, a protocol, a port."""

FRAMES = {"erspan", "erspan_3", "vxlan"}
"""Layouts without such a field, because their payload always is an Ethernet frame."""

IDENTIFYING = {
    "VLAN": ("tag.identifier",),
    "IPv4": ("source", "destination"),
    "IPv6": ("source", "destination"),
    "VXLAN": ("identifier",),
    "VXLANGPE": ("identifier",),
    "Geneve": ("identifier",),
    "GTPU": ("identifier",),
    "GRE": ("key", "call"),
    "ERSPAN": ("start.session",),
    "ERSPAN3": ("start.session",),
    "MPLS": ("entry.label",),
    "PPPoE": ("session",),
}
"""By the name of a struct: the fields that identify a network, in which addresses are unique.

Other fields, such as a priority or the source port of a tunnel, may differ between the fragments of a datagram.
"""
