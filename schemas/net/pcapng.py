"""The pcapng file format: sections of blocks, each section in its own byte order. Source: draft-ietf-opsawg-pcapng."""

from __future__ import annotations

from wirekit.schemas.net.pcap import LINK_TYPES
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bytes,
    Const,
    Integer,
    Length,
    Lookahead,
    Node,
    RecordsToEnd,
    Struct,
    Switch,
    Symbols,
    int64,
    int64le,
    len_,
    rest,
    this,
    uint16,
    uint16le,
    uint32,
    uint32le,
)

SECTION_HEADER, INTERFACE, SIMPLE_PACKET, ENHANCED_PACKET = 0x0A0D0D0A, 1, 3, 6
SECTION_START = SECTION_HEADER.to_bytes(4, "big")
BYTE_ORDER_MAGIC = 0x1A2B3C4D

BYTE_ORDERS = SymbolTable("byte_order", {BYTE_ORDER_MAGIC: "BIG", 0x4D3C2B1A: "LITTLE"})

BLOCK_TYPES = SymbolTable(
    "block_type",
    {
        SECTION_HEADER: "SECTION_HEADER",
        INTERFACE: "INTERFACE_DESCRIPTION",
        SIMPLE_PACKET: "SIMPLE_PACKET",
        4: "NAME_RESOLUTION",
        5: "INTERFACE_STATISTICS",
        ENHANCED_PACKET: "ENHANCED_PACKET",
        10: "DECRYPTION_SECRETS",
    },
)

OPTIONS = SymbolTable(
    "interface_option",
    {
        0: "ENDOFOPT",
        1: "COMMENT",
        2: "IF_NAME",
        9: ("IF_TSRESOL", "power of 10, or of 2 with the top bit set; 6 if absent"),
        14: ("IF_TSOFFSET", "seconds to add to every timestamp"),
    },
)


def _options(code: Node, unsigned16: Integer) -> RecordsToEnd:
    option = Struct(
        "code" / code,
        "length" / Length(unsigned16, of="value"),
        "value" / rest(),
        "padding" / Bytes(-len_(this.value) % 4),
        name="Option",
    )
    return RecordsToEnd(option, short_tail="stop")


def _block(unsigned16: Integer, unsigned32: Integer, signed64: Integer) -> Struct:
    """A block in one byte order."""
    section_header = Struct(
        "byte_order_magic" / Const(unsigned32, BYTE_ORDER_MAGIC),
        "version_major" / unsigned16,
        "version_minor" / unsigned16,
        "section_length" / signed64 * "-1 when not known",
        "options" / _options(unsigned16, unsigned16),
        "rest" / rest(),
        name="SectionHeader",
    )
    interface = Struct(
        "link_type" / Symbols(unsigned16, LINK_TYPES),
        "reserved" / unsigned16,
        "snap_length" / unsigned32,
        "options" / _options(Symbols(unsigned16, OPTIONS), unsigned16),
        "rest" / rest(),
        name="InterfaceDescription",
    )
    enhanced = Struct(
        "interface_id" / unsigned32,
        "timestamp_high" / unsigned32,
        "timestamp_low" / unsigned32,
        "captured_length" / Length(unsigned32, of="data"),
        "original_length" / unsigned32,
        "data" / rest(),
        "padding" / Bytes(-len_(this.data) % 4),
        "options" / rest(),
        name="EnhancedPacket",
    )
    simple = Struct(
        "original_length" / unsigned32,
        "data" / rest() * "cut at the interface's snap length, and padded to 4 bytes",
        name="SimplePacket",
    )
    bodies = {
        SECTION_HEADER: section_header,
        INTERFACE: interface,
        SIMPLE_PACKET: simple,
        ENHANCED_PACKET: enhanced,
    }
    return Struct(
        "block_type" / Symbols(unsigned32, BLOCK_TYPES),
        "block_total_length" / Length(unsigned32, of="body", add=12) * "the whole block",
        "body" / Switch(this.block_type, bodies, default=rest()),
        "block_total_length_again" / Length(unsigned32, of=("block_type", "body"), add=4),
        name="Block",
    )


BLOCK_BIG = _block(uint16, uint32, int64)
BLOCK_LITTLE = _block(uint16le, uint32le, int64le)

TIMESTAMP_OFFSET_BIG = Struct("seconds" / int64, name="TimestampOffset")
TIMESTAMP_OFFSET_LITTLE = Struct("seconds" / int64le, name="TimestampOffset")

SECTION_HEAD = Struct(
    "block_type" / Const(uint32, SECTION_HEADER),
    "block_total_length" / Bytes(4) * "in the byte order that follows",
    "byte_order" / Symbols(uint32, BYTE_ORDERS, closed=True),
    name="SectionHead",
)

SECTION = Struct(
    "byte_order" / Symbols(Lookahead(uint32, at=8), BYTE_ORDERS, closed=True),
    "blocks"
    / Switch(
        this.byte_order,
        {
            BYTE_ORDER_MAGIC: RecordsToEnd(BLOCK_BIG, until=SECTION_START),
            0x4D3C2B1A: RecordsToEnd(BLOCK_LITTLE, until=SECTION_START),
        },
    ),
    name="Section",
)

PCAPNG = Struct("sections" / RecordsToEnd(SECTION), name="Pcapng")
