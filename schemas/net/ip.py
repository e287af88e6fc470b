"""IPv4 and IPv6 packets down to TCP. Sources: RFC 791, RFC 8200."""

from __future__ import annotations

from wirekit.schemas.net.tcp import TCP
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Bytes,
    IfThenElse,
    Length,
    Lookahead,
    Node,
    Ref,
    Struct,
    Switch,
    Symbols,
    rest,
    this,
    uint8,
    uint16,
    uint32,
)

PROTOCOLS = SymbolTable(
    "ip_protocol",
    {
        0: ("HOPOPT", "IPv6 hop-by-hop options"),
        1: "ICMP",
        2: "IGMP",
        6: "TCP",
        17: "UDP",
        43: ("ROUTE", "IPv6 routing header"),
        44: ("FRAG", "IPv6 fragment header"),
        58: "ICMPV6",
        59: ("NONXT", "nothing follows"),
        60: ("OPTS", "IPv6 destination options"),
        132: "SCTP",
    },
)

IPV4 = Struct(
    "version_ihl" / Bits(uint8, "version" / Bit(4), "ihl" / Bit(4) * "header length in units of 4 bytes", order="msb"),
    "type_of_service" / uint8,
    "total_length"
    / Length(uint16, add=4, zero_is_rest=True, clip=True)
    * "header and payload; 0 where the network card cuts the segment later",
    "identification" / uint16,
    "fragment"
    / Bits(
        uint16,
        "reserved" / Bit(1),
        "dont_fragment" / Bit(1),
        "more_fragments" / Bit(1),
        "offset" / Bit(13) * "in units of 8 bytes",
        order="msb",
    ),
    "time_to_live" / uint8,
    "protocol" / Symbols(uint8, PROTOCOLS),
    "header_checksum" / uint16 * "not verified",
    "source" / Bytes(4),
    "destination" / Bytes(4),
    "options" / Bytes((this.version_ihl.ihl - 5) * 4),
    "payload"
    / IfThenElse(
        (this.fragment.more_fragments == 1) | (this.fragment.offset > 0),
        rest(),
        Switch(this.protocol, {6: TCP}, default=rest()),
    ),
    name="Ipv4",
)


def _next_header(extension: Node, fragment: Node) -> Switch:
    """What follows an IPv6 header, by its ``next_header``."""
    cases = {6: TCP, 0: extension, 43: extension, 60: extension, 44: fragment}
    return Switch(this.next_header, cases, default=rest())


EXTENSION = Struct(
    "next_header" / Symbols(uint8, PROTOCOLS),
    "header_length" / uint8 * "in units of 8 bytes, without the first 8",
    "data" / Bytes(this.header_length * 8 + 6),
    "payload" / _next_header(Ref("net.ipv6_extension"), Ref("net.ipv6_fragment")),
    name="Ipv6Extension",
)

FRAGMENT = Struct(
    "next_header" / Symbols(uint8, PROTOCOLS),
    "reserved" / uint8,
    "fragment" / Bits(uint16, "offset" / Bit(13), "reserved" / Bit(2), "more_fragments" / Bit(1), order="msb"),
    "identification" / uint32,
    "payload"
    / IfThenElse(
        (this.fragment.more_fragments == 1) | (this.fragment.offset > 0),
        rest(),
        _next_header(Ref("net.ipv6_extension"), Ref("net.ipv6_fragment")),
    ),
    name="Ipv6Fragment",
)

IPV6 = Struct(
    "version_class_flow"
    / Bits(uint32, "version" / Bit(4), "traffic_class" / Bit(8), "flow_label" / Bit(20), order="msb"),
    "payload_length" / Length(uint16, of="payload", zero_is_rest=True, clip=True) * "extension headers included",
    "next_header" / Symbols(uint8, PROTOCOLS),
    "hop_limit" / uint8,
    "source" / Bytes(16),
    "destination" / Bytes(16),
    "payload" / _next_header(EXTENSION, FRAGMENT),
    name="Ipv6",
)

IP = Struct(
    "first_byte" / Lookahead(uint8) * "its upper half is the version",
    "payload" / Switch(this.first_byte >> 4, {4: IPV4, 6: IPV6}),
    "trailer" / rest(),
    name="Ip",
)
