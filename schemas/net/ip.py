"""IPv4 and IPv6, down to TCP; other protocols and pieces of fragmented packets stay as they are.

A length that exceeds the captured bytes (snap length) is a bad check, and the captured bytes are decoded. In a
packet that the sending host left to its network card to segment, the length is 0: the packet extends to the end.

Sources: RFC 791 §3.1 (IPv4), RFC 8200 §3 and §4 (IPv6), RFC 4302 §2 (authentication header), IANA "Assigned Internet
Protocol Numbers".
"""

from __future__ import annotations

from wirekit.schemas.net.tcp import TCP
from wirekit.values import SymbolTable
from wirekit.wire import (
    Address,
    Bit,
    Bits,
    Bytes,
    Checked,
    Default,
    IfThenElse,
    Length,
    Lookahead,
    Node,
    Struct,
    Switch,
    Symbols,
    rest,
    this,
    uint8,
    uint16,
    uint32,
    unexplained,
)

HOP_BY_HOP = 0
TCP_NUMBER = 6
ROUTING = 43
FRAGMENT = 44
DESTINATION = 60
FRAGMENT_UNIT = 8
"""Bytes of a unit of ``fragment_offset``; all fragments of a datagram but the last one are whole units."""

PROTOCOLS = SymbolTable(
    "protocol",
    {
        HOP_BY_HOP: ("HOPOPT", "IPv6 hop-by-hop options"),
        1: "ICMP",
        2: "IGMP",
        4: ("IPV4", "IPv4 in IP"),
        TCP_NUMBER: "TCP",
        17: "UDP",
        41: ("IPV6", "IPv6 in IP"),
        ROUTING: ("IPV6_ROUTE", "IPv6 routing header"),
        FRAGMENT: ("IPV6_FRAG", "IPv6 fragment header"),
        47: "GRE",
        50: ("ESP", "encapsulating security payload"),
        51: ("AH", "authentication header"),
        58: "ICMPV6",
        59: ("IPV6_NONXT", "nothing follows"),
        DESTINATION: ("IPV6_OPTS", "IPv6 destination options"),
        89: "OSPF",
        132: "SCTP",
        137: ("MPLS", "MPLS in IP"),
    },
)
PROTOCOL = Symbols(uint8, PROTOCOLS)

IPV4 = Struct(
    "start"
    / Default(
        Bits(uint8, "version" / Bit(4), "header_length" / Bit(4) * "32-bit words of the header", order="msb"), 0x45
    ),
    "type_of_service" / Default(uint8, 0) * "DSCP in the upper 6 bits, ECN in the lower 2",
    "total_length"
    / Length(uint16, add=4, minimum=20, zero_is_rest=True, clip=True)
    * "bytes of the packet, header included",
    "identification" / Default(uint16, 0),
    "fragment"
    / Bits(
        uint16,
        "reserved" / Bit(1),
        "dont_fragment" / Bit(1),
        "more_fragments" / Bit(1),
        "fragment_offset" / Bit(13) * f"units of {FRAGMENT_UNIT} bytes",
        order="msb",
    ),
    "time_to_live" / Default(uint8, 64),
    "protocol" / Default(PROTOCOL, TCP_NUMBER),
    "header_checksum" / Checked(uint16, "internet", ("start", "options")),
    "source" / Address("ipv4"),
    "destination" / Address("ipv4"),
    "options" / Bytes(this.start.header_length * 4 - 20),
    "payload"
    / IfThenElse(
        (this.fragment.fragment_offset > 0) | this.fragment.more_fragments,
        rest(),
        Switch(this.protocol, {TCP_NUMBER: TCP}, default=unexplained()),
    ),
    name="IPv4",
)


HEADERS = 4
"""Extension headers that are read, at most."""


def _extension(more: int, *, fragment: bool) -> Struct:
    return Struct(
        "next_header" / Default(PROTOCOL, TCP_NUMBER),
        "header_extension_length" / Default(uint8, 0) * "units of 8 bytes, the first 8 not counted",
        "content" / Bytes(this.header_extension_length * 8 + 6),
        "payload" / _after(more, fragment=fragment),
        name="IPv6Extension",
    )


def _after(headers: int, *, fragment: bool = True) -> Node:
    """The layout after a next_header: TCP, or a header with up to ``headers`` more after it; one may be a fragment's.

    The number of headers is bounded, because bytes that nest without bound are an attack, not a packet.
    """
    cases: dict[int, Node] = {TCP_NUMBER: TCP}
    if headers:
        extension = _extension(headers - 1, fragment=fragment)
        cases |= {HOP_BY_HOP: extension, ROUTING: extension, DESTINATION: extension}
        if fragment:
            cases[FRAGMENT] = Struct(
                "next_header" / Default(PROTOCOL, TCP_NUMBER),
                "reserved" / Default(uint8, 0),
                "fragment"
                / Bits(
                    uint16,
                    "fragment_offset" / Bit(13) * f"units of {FRAGMENT_UNIT} bytes",
                    "reserved" / Bit(2),
                    "more_fragments" / Bit(1),
                    order="msb",
                ),
                "identification" / Default(uint32, 0),
                "payload"
                / IfThenElse(
                    (this.fragment.fragment_offset > 0) | this.fragment.more_fragments,
                    rest(),
                    _after(headers - 1, fragment=False),
                ),
                name="IPv6Fragment",
            )
    return Switch(this.next_header, cases, default=unexplained())


IPV6 = Struct(
    "start"
    / Default(
        Bits(uint32, "version" / Bit(4), "traffic_class" / Bit(8), "flow_label" / Bit(20), order="msb"), 0x60000000
    ),
    "payload_length"
    / Length(uint16, of="payload", zero_is_rest=True, clip=True)
    * "bytes after the fixed header, extension headers included",
    "next_header" / Default(PROTOCOL, TCP_NUMBER),
    "hop_limit" / Default(uint8, 64),
    "source" / Address("ipv6"),
    "destination" / Address("ipv6"),
    "payload" / _after(HEADERS),
    name="IPv6",
)

EXTENSION = _extension(HEADERS - 2, fragment=False)
AUTHENTICATION = Struct(
    "next_header" / Default(PROTOCOL, TCP_NUMBER),
    "payload_length" / Default(uint8, 4) * "32-bit words of this header, the first 2 not counted",
    "reserved" / Default(uint16, 0),
    "security_parameters_index" / Default(uint32, 0),
    "sequence_number" / Default(uint32, 0),
    "integrity_check_value" / Bytes(this.payload_length * 4 - 4) * "not verified",
    "payload" / _after(HEADERS - 2, fragment=False),
    name="AuthenticationHeader",
)
FRAGMENTED = {
    "TCP": "tcp",
    "AH": "authentication_header",
    **dict.fromkeys(("HOPOPT", "IPV6_ROUTE", "IPV6_OPTS"), "ipv6_extension"),
}
"""The layout of a reassembled payload, by the symbol of its protocol; ``tunnels.FOLLOWING`` has those of tunnels."""

IP = Struct(
    "start"
    / Lookahead(Bits(uint8, "version" / Bit(4), "other" / Bit(4), order="msb"))
    * "the first byte of the packet, not consumed",
    "payload" / Switch(this.start.version, {4: IPV4, 6: IPV6}, default=unexplained()),
    "trailer" / rest() * "bytes that the link added after the packet",
    name="IP",
)
