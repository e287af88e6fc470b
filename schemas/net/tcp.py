"""TCP segments.

Source: RFC 9293 §3.1; the AE bit: RFC 9768. The checksum covers a pseudo-header of the IP layer too, so it is a plain
field here; captures of a sending host hold it unfinished anyway.
"""

from __future__ import annotations

from wirekit.wire import Bit, Bits, Bytes, Default, Struct, rest, this, uint8, uint16, uint32

OFFSET = Bits(
    uint8,
    "data_offset" / Bit(4) * "32-bit words of the header",
    "reserved" / Bit(3),
    "ae" / Bit(1) * "accurate ECN; formerly NS",
    order="msb",
)

FLAGS = Bits(
    uint8,
    "cwr" / Bit(1),
    "ece" / Bit(1),
    "urg" / Bit(1),
    "ack" / Bit(1),
    "psh" / Bit(1),
    "rst" / Bit(1),
    "syn" / Bit(1),
    "fin" / Bit(1),
    order="msb",
)

MOST_OPTIONS = 15 * 4 - 20
"""The maximum size of the options in bytes."""

TCP = Struct(
    "source_port" / uint16,
    "destination_port" / uint16,
    "sequence_number" / uint32,
    "acknowledgment_number" / Default(uint32, 0),
    "offset" / Default(OFFSET, 0x50),
    "flags" / FLAGS,
    "window" / Default(uint16, 0xFFFF),
    "checksum" / Default(uint16, 0) * "not verified",
    "urgent_pointer" / Default(uint16, 0),
    "options" / Bytes(this.offset.data_offset * 4 - 20),
    "payload" / rest(),
    name="TCP",
)
