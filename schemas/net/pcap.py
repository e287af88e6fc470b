"""The pcap file format, microseconds and nanoseconds, both byte orders. Source: draft-ietf-opsawg-pcap."""

from __future__ import annotations

from wirekit.values import SymbolTable
from wirekit.wire import (
    Integer,
    Length,
    RecordsToEnd,
    Struct,
    Switch,
    Symbols,
    int32,
    int32le,
    rest,
    this,
    uint16,
    uint16le,
    uint32,
    uint32le,
)

BIG_MICRO, BIG_NANO = 0xA1B2C3D4, 0xA1B23C4D
LITTLE_MICRO, LITTLE_NANO = 0xD4C3B2A1, 0x4D3CB2A1

MAGICS = SymbolTable(
    "pcap_magic",
    {
        BIG_MICRO: ("BIG_MICRO", "big-endian, microseconds"),
        BIG_NANO: ("BIG_NANO", "big-endian, nanoseconds"),
        LITTLE_MICRO: ("LITTLE_MICRO", "little-endian, microseconds"),
        LITTLE_NANO: ("LITTLE_NANO", "little-endian, nanoseconds"),
    },
)

LINK_TYPES = SymbolTable(
    "link_type",
    {
        0: ("NULL", "BSD loopback"),
        1: "ETHERNET",
        12: ("RAW_BSD", "raw IP"),
        14: ("RAW_OPENBSD", "raw IP"),
        101: ("RAW", "raw IP"),
        108: ("LOOP", "OpenBSD loopback"),
        113: ("LINUX_SLL", "Linux cooked capture"),
        228: ("IPV4", "raw IPv4"),
        229: ("IPV6", "raw IPv6"),
        276: ("LINUX_SLL2", "Linux cooked capture, version 2"),
    },
)


def _header(unsigned16: Integer, signed32: Integer, unsigned32: Integer) -> list[object]:
    return [
        "version_major" / unsigned16,
        "version_minor" / unsigned16,
        "thiszone" / signed32,
        "sigfigs" / unsigned32,
        "snaplen" / unsigned32 * "largest captured_length",
        "network" / Symbols(unsigned32, LINK_TYPES),
    ]


def _packet(unsigned32: Integer) -> Struct:
    return Struct(
        "ts_sec" / unsigned32,
        "ts_fraction" / unsigned32 * "microseconds or nanoseconds, by the file's magic number",
        "captured_length" / Length(unsigned32, of="data"),
        "original_length" / unsigned32,
        "data" / rest(),
        name="Packet",
    )


PACKET_BIG, PACKET_LITTLE = _packet(uint32), _packet(uint32le)

_BIG, _LITTLE = (uint16, int32, uint32), (uint16le, int32le, uint32le)


def _by_magic(big: Struct, little: Struct) -> Switch:
    return Switch(this.magic, {BIG_MICRO: big, BIG_NANO: big, LITTLE_MICRO: little, LITTLE_NANO: little})


HEADER = Struct(
    "magic" / Symbols(uint32, MAGICS, closed=True),
    "header" / _by_magic(Struct(*_header(*_BIG), name="Header"), Struct(*_header(*_LITTLE), name="Header")),
    name="PcapHeader",
)

PCAP = Struct(
    "magic" / Symbols(uint32, MAGICS, closed=True),
    "file"
    / _by_magic(
        Struct(*_header(*_BIG), "packets" / RecordsToEnd(PACKET_BIG), name="File"),
        Struct(*_header(*_LITTLE), "packets" / RecordsToEnd(PACKET_LITTLE), name="File"),
    ),
    name="Pcap",
)
