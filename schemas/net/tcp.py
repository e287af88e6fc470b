"""TCP segments. Source: RFC 9293, section 3.1."""

from __future__ import annotations

from wirekit.values import SymbolTable
from wirekit.wire import Bit, Bits, Bytes, Struct, rest, this, uint16, uint32

FLAGS = SymbolTable(
    "tcp_flags",
    {
        0x002: "SYN",
        0x012: "SYN ACK",
        0x010: "ACK",
        0x018: "PSH ACK",
        0x011: "FIN ACK",
        0x019: "FIN PSH ACK",
        0x004: "RST",
        0x014: "RST ACK",
    },
)

TCP = Struct(
    "source_port" / uint16,
    "destination_port" / uint16,
    "sequence_number" / uint32,
    "acknowledgment_number" / uint32,
    "control"
    / Bits(
        uint16,
        "data_offset" / Bit(4) * "header length in units of 4 bytes",
        "reserved" / Bit(3),
        "flags" / Bit(9, FLAGS) * "FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, NS 256",
        order="msb",
    ),
    "window" / uint16,
    "checksum" / uint16 * "not verified: network cards fill it in after the capture",
    "urgent_pointer" / uint16,
    "options" / Bytes((this.control.data_offset - 5) * 4),
    "payload" / rest(),
    name="Tcp",
)
