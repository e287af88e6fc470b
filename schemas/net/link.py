"""Link layers: what a captured packet begins with, by the link type that the capture file announces.

Each is a struct that ends with ``payload`` and ``trailer``: an IP packet knows its own length, and what the link adds
after it (padding to the least frame size, a frame check sequence) is not part of it.

Sources: IEEE 802.3, IEEE 802.1Q; the registry of link types and its descriptions (draft-ietf-opsawg-pcaplinktype,
LINKTYPE_NULL, LINKTYPE_ETHERNET, LINKTYPE_PPP, LINKTYPE_PPP_HDLC, LINKTYPE_RAW, LINKTYPE_LOOP, LINKTYPE_LINUX_SLL,
LINKTYPE_LINUX_SLL2, LINKTYPE_IPV4, LINKTYPE_IPV6); RFC 1661 §2 and RFC 1662 §3.1 (PPP); IANA "IEEE 802
Numbers", "PPP DLL Protocol Numbers".
"""

from __future__ import annotations

from typing import Any

from wirekit.schemas.net.ip import IP, IPV4, IPV6
from wirekit.values import SymbolTable
from wirekit.wire import (
    Address,
    Bit,
    Bits,
    Bytes,
    Const,
    Default,
    If,
    Lookahead,
    Node,
    OrBytes,
    Struct,
    Switch,
    Symbols,
    context,
    rest,
    this,
    uint8,
    uint16,
    uint32,
    unexplained,
)

LENGTHS = range(0x0600)
"""Values in the place of an EtherType that are lengths; 802.2 LLC follows them."""
COOKED_LLC_TYPE = 0x0004
IPV4_TYPE = 0x0800
ARP_TYPE = 0x0806
TUNNELLED_ETHERNET_TYPE = 0x6558
VLAN_TYPE = 0x8100
IPV6_TYPE = 0x86DD
SERVICE_VLAN_TYPE = 0x88A8
OLD_SERVICE_VLAN_TYPES = (0x9100, 0x9200)

ETHERTYPES = SymbolTable(
    "ethertype",
    {
        COOKED_LLC_TYPE: ("LLC", "802.2, in a Linux cooked capture"),
        IPV4_TYPE: "IPV4",
        ARP_TYPE: "ARP",
        0x0842: ("WAKE_ON_LAN", "magic packet"),
        0x8035: "RARP",
        0x22EB: ("ERSPAN_3", "mirrored frame, type III"),
        TUNNELLED_ETHERNET_TYPE: ("ETHERNET", "Ethernet frame in a tunnel"),
        VLAN_TYPE: ("VLAN", "802.1Q tag"),
        IPV6_TYPE: "IPV6",
        0x8808: ("FLOW_CONTROL", "Ethernet flow control"),
        0x8809: ("SLOW", "slow protocols, LACP"),
        0x880B: ("PPP", "PPP, in GRE of PPTP"),
        0x8847: "MPLS",
        0x8848: ("MPLS_MULTICAST", "MPLS, upstream-assigned label"),
        0x8863: "PPPOE_DISCOVERY",
        0x8864: "PPPOE_SESSION",
        0x888E: ("EAPOL", "802.1X"),
        SERVICE_VLAN_TYPE: ("SERVICE_VLAN", "802.1ad tag"),
        0x88BE: ("ERSPAN", "mirrored frame, type I or II"),
        0x88CC: "LLDP",
        0x88F7: "PTP",
        0x9100: ("QINQ", "outer tag before 802.1ad"),
        0x9200: ("QINQ_2", "outer tag before 802.1ad"),
    },
)
ETHERTYPE = Symbols(uint16, ETHERTYPES)


def _payload(ethertype: Any, tags: int) -> Node:
    """What follows an EtherType, with at most that many VLAN tags before it."""
    cases: dict[int, Node] = {IPV4_TYPE: IPV4, IPV6_TYPE: IPV6}
    if tags:
        vlan = Struct(
            "tag" / Bits(uint16, "priority" / Bit(3), "drop_eligible" / Bit(1), "identifier" / Bit(12), order="msb"),
            "type" / Default(ETHERTYPE, IPV4_TYPE),
            "payload" / _payload(this.type, tags - 1),
            name="VLAN",
        )
        cases |= dict.fromkeys((VLAN_TYPE, SERVICE_VLAN_TYPE, *OLD_SERVICE_VLAN_TYPES), vlan)
    return Switch(ethertype, cases, default=unexplained())


TAGS = 3

ETHERNET = Struct(
    "destination" / Default(Address("mac"), bytes(6)),
    "source" / Default(Address("mac"), bytes(6)),
    "type" / Default(ETHERTYPE, IPV4_TYPE) * "below 0x0600 a length, and the rest is 802.2 LLC",
    "payload" / _payload(this.type, TAGS),
    "trailer" / rest() * "padding and frame check sequence",
    name="Ethernet",
)

PACKET_TYPES = SymbolTable(
    "packet_type",
    {
        0: ("TO_US", "sent to this host"),
        1: ("BROADCAST", "sent to all"),
        2: ("MULTICAST", "sent to a group"),
        3: ("TO_OTHERS", "sent to another host by another host"),
        4: ("FROM_US", "sent by this host"),
    },
)

LINUX_COOKED = Struct(
    "packet_type" / Default(Symbols(uint16, PACKET_TYPES), 0),
    "arphrd_type" / Default(uint16, 1) * "Linux's ARPHRD_ value of the device; 772 is loopback",
    "address_length" / Default(uint16, 6) * "number of valid bytes of the address",
    "address" / Default(Bytes(8), bytes(8)) * "of the sender",
    "protocol" / Default(ETHERTYPE, IPV4_TYPE),
    "payload" / _payload(this.protocol, TAGS),
    "trailer" / rest(),
    name="LinuxCooked",
)

LINUX_COOKED2 = Struct(
    "protocol" / Default(ETHERTYPE, IPV4_TYPE),
    "reserved" / Default(uint16, 0),
    "interface_index" / Default(uint32, 0),
    "arphrd_type" / Default(uint16, 1) * "Linux's ARPHRD_ value of the device; 772 is loopback",
    "packet_type" / Default(Symbols(uint8, PACKET_TYPES), 0),
    "address_length" / Default(uint8, 6) * "number of valid bytes of the address",
    "address" / Default(Bytes(8), bytes(8)) * "of the sender",
    "payload" / _payload(this.protocol, TAGS),
    "trailer" / rest(),
    name="LinuxCooked2",
)


def _swapped(number: int) -> int:
    return int.from_bytes(number.to_bytes(4, "little"), "big")


INET = 2
INET6 = {24: "NetBSD and OpenBSD", 28: "FreeBSD", 30: "macOS"}

FAMILIES = SymbolTable(
    "family",
    {
        INET: "INET",
        _swapped(INET): ("INET_SWAPPED", "INET of a little-endian host"),
        **{family: ("INET6", system) for family, system in INET6.items()},
        **{_swapped(family): ("INET6_SWAPPED", f"{system}, little-endian") for family, system in INET6.items()},
    },
)

# LINKTYPE_NULL has the family in the byte order of the capturing host, which need not be that of the file;
# LINKTYPE_LOOP always in network byte order. No family is another one swapped, so one layout does for both.
LOOPBACK = Struct(
    "family" / Symbols(uint32, FAMILIES),
    "payload"
    / Switch(
        this.family,
        {
            INET: IPV4,
            _swapped(INET): IPV4,
            **dict.fromkeys(INET6, IPV6),
            **dict.fromkeys(map(_swapped, INET6), IPV6),
        },
        default=unexplained(),
    ),
    "trailer" / rest(),
    name="Loopback",
)

PPP_IPV4, PPP_IPV6 = 0x0021, 0x0057
PPP_PROTOCOLS = SymbolTable(
    "ppp_protocol",
    {
        PPP_IPV4: "IPV4",
        PPP_IPV6: "IPV6",
        0x0281: "MPLS",
        0x8021: ("IPCP", "control of IPv4"),
        0x8057: ("IPV6CP", "control of IPv6"),
        0xC021: ("LCP", "link control"),
        0xC023: ("PAP", "password authentication"),
        0xC223: ("CHAP", "challenge authentication"),
    },
)

HDLC_FRAMING = 0xFF03

PPP = Struct(
    "start" / Lookahead(uint16) * "the first bytes, not consumed",
    "framing" / If(this.start == HDLC_FRAMING, Const(uint16, HDLC_FRAMING)) * "address and control of HDLC framing",
    "protocol" / Default(Symbols(uint16, PPP_PROTOCOLS), PPP_IPV4),
    "payload" / Switch(this.protocol, {PPP_IPV4: IPV4, PPP_IPV6: IPV6}, default=unexplained()),
    "trailer" / rest(),
    name="PPP",
)

LINK_TYPES = SymbolTable(
    "link_type",
    {
        0: ("NULL", "BSD loopback"),
        1: ("ETHERNET", "IEEE 802.3"),
        8: ("SLIP", "SLIP"),
        9: ("PPP", "PPP"),
        12: ("DLT_RAW", "raw IP; files should not use this number, but some do"),
        14: ("DLT_RAW_OPENBSD", "raw IP, as OpenBSD writes it"),
        50: ("PPP_HDLC", "PPP in HDLC framing"),
        101: ("RAW", "raw IP"),
        105: ("IEEE802_11", "wireless LAN"),
        108: ("LOOP", "OpenBSD loopback"),
        113: ("LINUX_SLL", "Linux cooked capture"),
        127: ("IEEE802_11_RADIOTAP", "wireless LAN with radiotap header"),
        228: ("IPV4", "raw IPv4"),
        229: ("IPV6", "raw IPv6"),
        249: ("USBPCAP", "USB"),
        276: ("LINUX_SLL2", "Linux cooked capture, version 2"),
    },
)

LINKS = {
    0: "loopback",
    1: "ethernet",
    9: "ppp",
    12: "ip",
    14: "ip",
    50: "ppp",
    101: "ip",
    108: "loopback",
    113: "linux_cooked",
    228: "ip",
    229: "ip",
    276: "linux_cooked2",
}
"""The layout of each link type that is known down to TCP, under its name in the registry."""

LAYOUTS = {
    "ethernet": ETHERNET,
    "linux_cooked": LINUX_COOKED,
    "linux_cooked2": LINUX_COOKED2,
    "loopback": LOOPBACK,
    "ip": IP,
    "ppp": PPP,
}


def link_layer(link_type: Any) -> Node:
    """A packet in a file: decoded if its link type is known and the bytes fit, otherwise plain bytes."""
    cases = {number: LAYOUTS[name] for number, name in LINKS.items()}
    return OrBytes(Switch(link_type, cases, default=rest()))


PACKET = Struct("data" / link_layer(context.link_type), name="CapturedPacket")
