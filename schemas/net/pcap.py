"""pcap files: a header and packet records, in the byte order of the host that wrote them.

Sources: draft-ietf-opsawg-pcap; libpcap pcap-savefile(5). See NOTES.md for what the magic numbers mean.
"""

from __future__ import annotations

from typing import NamedTuple

from wirekit.schemas.net.link import LINK_TYPES, link_layer
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bit,
    Bits,
    Const,
    Default,
    Integer,
    Length,
    Node,
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

MAXIMUM_SNAP_LENGTH = 262144
"""Bytes; the default of libpcap and Wireshark."""


class Order(NamedTuple):
    """The integers of one byte order."""

    uint16: Integer
    int32: Integer
    uint32: Integer


BIG = Order(uint16, int32, uint32)
LITTLE = Order(uint16le, int32le, uint32le)

# Keyed by the first four bytes, read as a big-endian number.
BIG_MICROSECONDS, BIG_NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
LITTLE_MICROSECONDS, LITTLE_NANOSECONDS = 0xD4C3B2A1, 0x4D3CB2A1
MAGICS = SymbolTable(
    "magic_number",
    {
        BIG_MICROSECONDS: ("BIG_MICROSECONDS", "big-endian, seconds and microseconds"),
        BIG_NANOSECONDS: ("BIG_NANOSECONDS", "big-endian, seconds and nanoseconds"),
        LITTLE_MICROSECONDS: ("LITTLE_MICROSECONDS", "little-endian, seconds and microseconds"),
        LITTLE_NANOSECONDS: ("LITTLE_NANOSECONDS", "little-endian, seconds and nanoseconds"),
    },
)
MAGIC = Symbols(uint32, MAGICS, closed=True)


def _by_magic(big: Node, little: Node) -> Switch:
    return Switch(
        this.magic_number,
        {BIG_MICROSECONDS: big, BIG_NANOSECONDS: big, LITTLE_MICROSECONDS: little, LITTLE_NANOSECONDS: little},
    )


def _header(order: Order) -> Struct:
    return Struct(
        "major_version" / Const(order.uint16, 2),
        "minor_version" / Default(order.uint16, 4),
        "reserved1" / Default(order.int32, 0) * "formerly the offset of the time zone in seconds",
        "reserved2" / Default(order.uint32, 0) * "formerly the accuracy of timestamps",
        "snap_length" / Default(order.uint32, MAXIMUM_SNAP_LENGTH) * "maximum number of bytes stored per packet",
        "link"
        / Bits(
            order.uint32,
            "fcs_length" / Bit(4) * "units of 2 bytes, if fcs_present",
            "reserved" / Bit(1),
            "fcs_present" / Bit(1) * "whether fcs_length is known",
            "reserved3" / Bit(10),
            "type" / Bit(16, LINK_TYPES),
            order="msb",
        ),
        name="PcapHeader",
    )


def _packet(order: Order, data: Node) -> Struct:
    return Struct(
        "seconds" / order.uint32 * "since the epoch, UTC",
        "fraction" / Default(order.uint32, 0) * "of a second: microseconds or nanoseconds, by the file's magic number",
        "captured_length" / Length(order.uint32, of="data", frame=True),
        "original_length" / Length(order.uint32, of="data", bounds=False, exceeds=True) * "bytes on the wire",
        "data" / data,
        name="PcapPacket",
    )


PACKET_BE = _packet(BIG, rest())
PACKET_LE = _packet(LITTLE, rest())

PACKETS_BE = RecordsToEnd(PACKET_BE, short_tail="stop")
PACKETS_LE = RecordsToEnd(PACKET_LE, short_tail="stop")

_HEADER = _by_magic(_header(BIG), _header(LITTLE))
_OPENED = link_layer(this._.header.link.type)

HEADER = Struct("magic_number" / MAGIC, "header" / _HEADER, name="PcapStart")

FILE = Struct(
    "magic_number" / MAGIC,
    "header" / _HEADER,
    "packets" / _by_magic(RecordsToEnd(_packet(BIG, _OPENED)), RecordsToEnd(_packet(LITTLE, _OPENED))),
    name="Pcap",
)
