"""pcapng files: sections of blocks; the header of each section states its byte order.

The link type of a packet and the unit of its time are in the block that describes its interface, which a layout cannot
look up. So packets are bytes here, unless the caller passes ``context={"link_type": 1}``.

Source: draft-ietf-opsawg-pcapng, sections 3 and 4, appendix A.
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
    If,
    IfMore,
    Integer,
    Length,
    Lookahead,
    Node,
    OrBytes,
    Padding,
    RecordsToEnd,
    String,
    Struct,
    Switch,
    Symbols,
    context,
    int64,
    int64le,
    rest,
    this,
    uint8,
    uint16,
    uint16le,
    uint32,
    uint32le,
    uint64,
    uint64le,
    unexplained,
)


class Order(NamedTuple):
    """The integers of one byte order."""

    uint16: Integer
    uint32: Integer
    int64: Integer
    uint64: Integer


BIG = Order(uint16, uint32, int64, uint64)
LITTLE = Order(uint16le, uint32le, int64le, uint64le)

SECTION_HEADER = 0x0A0D0D0A
INTERFACE_DESCRIPTION = 1
PACKET = 2
SIMPLE_PACKET = 3
NAME_RESOLUTION = 4
INTERFACE_STATISTICS = 5
ENHANCED_PACKET = 6

BLOCK_TYPES = SymbolTable(
    "block_type",
    {
        SECTION_HEADER: ("SECTION_HEADER", "the same in both byte orders"),
        INTERFACE_DESCRIPTION: "INTERFACE_DESCRIPTION",
        PACKET: ("PACKET", "obsolete"),
        SIMPLE_PACKET: "SIMPLE_PACKET",
        NAME_RESOLUTION: "NAME_RESOLUTION",
        INTERFACE_STATISTICS: "INTERFACE_STATISTICS",
        ENHANCED_PACKET: "ENHANCED_PACKET",
        9: "SYSTEMD_JOURNAL_EXPORT",
        10: "DECRYPTION_SECRETS",
        0xBAD: ("CUSTOM", "may be copied"),
        0x40000BAD: ("CUSTOM_NOT_COPIED", "may not be copied"),
    },
)

BYTE_ORDER_MAGIC = 0x1A2B3C4D
BIG_ENDIAN, LITTLE_ENDIAN = 0x1A2B3C4D, 0x4D3C2B1A
BYTE_ORDERS = SymbolTable("byte_order", {BIG_ENDIAN: "BIG_ENDIAN", LITTLE_ENDIAN: "LITTLE_ENDIAN"})
BYTE_ORDER = Symbols(uint32, BYTE_ORDERS, closed=True)

END_OF_OPTIONS = 0
COMMENT = 1
IF_NAME = 2
IF_DESCRIPTION = 3
IF_TSRESOL = 9
IF_TSOFFSET = 14

COMMON_OPTIONS = {END_OF_OPTIONS: ("opt_endofopt", ""), COMMENT: ("opt_comment", "")}
SECTION_OPTIONS = SymbolTable(
    "option", {**COMMON_OPTIONS, 2: ("shb_hardware", ""), 3: ("shb_os", ""), 4: ("shb_userappl", "")}
)
INTERFACE_OPTIONS = SymbolTable(
    "option",
    {
        **COMMON_OPTIONS,
        IF_NAME: ("if_name", ""),
        IF_DESCRIPTION: ("if_description", ""),
        4: ("if_IPv4addr", ""),
        5: ("if_IPv6addr", ""),
        6: ("if_MACaddr", ""),
        7: ("if_EUIaddr", ""),
        8: ("if_speed", ""),
        IF_TSRESOL: ("if_tsresol", "unit of the packets' time, by default microseconds"),
        10: ("if_tzone", ""),
        11: ("if_filter", ""),
        12: ("if_os", ""),
        13: ("if_fcslen", ""),
        IF_TSOFFSET: ("if_tsoffset", "seconds to add to the packets' time"),
        15: ("if_hardware", ""),
    },
)
PACKET_OPTIONS = SymbolTable(
    "option",
    {**COMMON_OPTIONS, 2: ("epb_flags", ""), 3: ("epb_hash", ""), 4: ("epb_dropcount", ""), 5: ("epb_packetid", "")},
)
STATISTICS_OPTIONS = SymbolTable(
    "option",
    {
        **COMMON_OPTIONS,
        2: ("isb_starttime", ""),
        3: ("isb_endtime", ""),
        4: ("isb_ifrecv", ""),
        5: ("isb_ifdrop", ""),
        6: ("isb_filteraccept", ""),
        7: ("isb_osdrop", ""),
        8: ("isb_usrdeliv", ""),
    },
)

RESOLUTION = Bits(
    uint8,
    "binary" / Bit(1) * "whether the base of the unit is 2; otherwise 10",
    "exponent" / Bit(7) * "the unit is the base to the power of minus this number, in seconds",
    order="msb",
)


def _options(order: Order, table: SymbolTable, values: dict[int, Node] | None = None) -> Node:
    option = Struct(
        "code" / Default(Symbols(order.uint16, table), END_OF_OPTIONS),
        "length" / Length(order.uint16, of="value"),
        "value" / Switch(this.code, {COMMENT: String(None), **(values or {})}, default=rest()),
        "padding" / Padding(-this.length % 4),
        name="Option",
    )
    return RecordsToEnd(option)


def _section_header(order: Order) -> Struct:
    text = dict.fromkeys((2, 3, 4), String(None))
    return Struct(
        "byte_order_magic" / Const(order.uint32, BYTE_ORDER_MAGIC, hexadecimal=True),
        "major_version" / Const(order.uint16, 1),
        "minor_version" / Default(order.uint16, 0),
        "section_length" / Default(order.int64, -1) * "bytes of the blocks after this one; -1: not known",
        "options" / _options(order, SECTION_OPTIONS, text),
        name="SectionHeader",
    )


def _interface(order: Order) -> Struct:
    values: dict[int, Node] = {
        IF_NAME: String(None),
        IF_DESCRIPTION: String(None),
        IF_TSRESOL: OrBytes(RESOLUTION),
        12: String(None),
        IF_TSOFFSET: OrBytes(order.int64),
        15: String(None),
    }
    return Struct(
        "link_type" / Symbols(order.uint16, LINK_TYPES),
        "reserved" / Default(order.uint16, 0),
        "snap_length" / Default(order.uint32, 0) * "maximum number of bytes stored per packet; 0: no limit",
        "options" / _options(order, INTERFACE_OPTIONS, values),
        name="InterfaceDescription",
    )


def _packet_fields(order: Order, data: Node) -> tuple[object, ...]:
    return (
        "timestamp_high" / Default(order.uint32, 0) * "upper half of the time, in the interface's unit",
        "timestamp_low" / Default(order.uint32, 0) * "lower half",
        "captured_length" / Length(order.uint32, of="data"),
        "original_length" / Length(order.uint32, of="data", bounds=False, exceeds=True) * "bytes on the wire",
        "data" / data,
        "padding" / Padding(-this.captured_length % 4),
        "options" / _options(order, PACKET_OPTIONS),
    )


def _block(order: Order, data: Node) -> Struct:
    bodies: dict[int, Node] = {
        SECTION_HEADER: _section_header(order),
        INTERFACE_DESCRIPTION: _interface(order),
        PACKET: Struct(
            "interface_id" / Default(order.uint16, 0),
            "drops_count" / Default(order.uint16, 0xFFFF) * "packets lost before this one; 0xffff: not known",
            *_packet_fields(order, data),
            name="Packet",
        ),
        SIMPLE_PACKET: Struct(
            "original_length" / Length(order.uint32, of="data", clip=True, exceeds=True) * "bytes on the wire",
            "data" / data * "at most the snap length of the section's first interface; it may then include padding",
            "padding" / Default(IfMore(Padding(-this.original_length % 4)), b""),
            name="SimplePacket",
        ),
        INTERFACE_STATISTICS: Struct(
            "interface_id" / Default(order.uint32, 0),
            "timestamp_high" / order.uint32,
            "timestamp_low" / order.uint32,
            "options" / _options(order, STATISTICS_OPTIONS, dict.fromkeys(range(4, 9), OrBytes(order.uint64))),
            name="InterfaceStatistics",
        ),
        ENHANCED_PACKET: Struct(
            "interface_id" / Default(order.uint32, 0) * "counted from 0 in the section",
            *_packet_fields(order, data),
            name="EnhancedPacket",
        ),
    }
    return Struct(
        "block_type" / Symbols(order.uint32, BLOCK_TYPES),
        "block_total_length" / Length(order.uint32, of="body", add=12, frame=True),
        "body" / Switch(this.block_type, bodies, default=unexplained()),
        "block_total_length_again" / Length(order.uint32, of=("block_type", "body"), add=4),
        name="Block",
    )


def _envelope(order: Order) -> Struct:
    return Struct(
        "block_type" / Symbols(order.uint32, BLOCK_TYPES, closed=True),
        "block_total_length" / Length(order.uint32, of="body", add=12, frame=True),
        "body" / rest(),
        "block_total_length_again" / Length(order.uint32, of=("block_type", "body"), add=4),
        name="Envelope",
    )


ENVELOPE_BE = _envelope(BIG)
ENVELOPE_LE = _envelope(LITTLE)

BLOCK_BE = _block(BIG, rest())
BLOCK_LE = _block(LITTLE, rest())

SECTION_START = SECTION_HEADER.to_bytes(4, "big")

BLOCKS_BE = RecordsToEnd(BLOCK_BE, short_tail="stop", until=SECTION_START, except_first=True)
BLOCKS_LE = RecordsToEnd(BLOCK_LE, short_tail="stop", until=SECTION_START, except_first=True)

START = Struct(
    "block_type" / uint32,
    "byte_order"
    / If(this.block_type == SECTION_HEADER, Lookahead(BYTE_ORDER, at=4))
    * "of the section that begins here, not consumed",
    name="BlockStart",
)

_OPENED = link_layer(context.link_type)

SECTION = Struct(
    "byte_order" / Lookahead(BYTE_ORDER, at=8) * "of the section header, not consumed",
    "blocks"
    / Switch(
        this.byte_order,
        {
            BIG_ENDIAN: RecordsToEnd(_block(BIG, _OPENED), until=SECTION_START, except_first=True),
            LITTLE_ENDIAN: RecordsToEnd(_block(LITTLE, _OPENED), until=SECTION_START, except_first=True),
        },
    ),
    name="Section",
)

FILE = Struct("sections" / RecordsToEnd(SECTION), name="Pcapng")
