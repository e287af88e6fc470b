"""The items of a capture file: packets, notes on packets without TCP, and places to continue from."""

from __future__ import annotations

from typing import NamedTuple

SECOND = 1_000_000_000
"""The nanoseconds of a second."""
NO_TIME_US = -(1 << 62)
"""The time of packets before the first time in a file; tables and displays have no time as early as this."""


class Packet(NamedTuple):
    """One captured packet.

    Attributes:
        time_us: capture time, microseconds since the epoch; ``NO_TIME_US`` if neither the packet nor one before it has
            a time.
        time_ns: the same in nanoseconds.
        link_type: the link layer of ``data``, a number of the registry of link types.
        data: the captured bytes.
        offset: absolute offset of ``data`` in the file.
        original_length: bytes on the wire.
        number: 1 for the first packet of the file, as Wireshark counts.
    """

    time_us: int
    time_ns: int
    link_type: int
    data: bytes
    offset: int
    original_length: int
    number: int


FRAGMENT = "fragment"
"""The reason of a packet with a part of an IP datagram."""
LINK_TYPE = "link type"
"""The reason, before its number, of a packet of a link type that is not supported."""


class Skipped(NamedTuple):
    """A packet without a TCP segment.

    Attributes:
        number: its number in the file, from 1.
        time_us: capture time, microseconds since the epoch.
        offset: absolute offset of its data in the file.
        length: bytes captured.
        reason: ``udp``, ``arp``, ``fragment``, ``cut``, ``damaged``, ``link type 147``, …
        detail: the error of a truncated or damaged packet, and its place; otherwise empty.
    """

    number: int
    time_us: int
    offset: int
    length: int
    reason: str
    detail: str = ""

    @property
    def problem(self) -> str:
        """Why the headers of a truncated or damaged packet do not decode; otherwise empty."""
        return f"{self.reason} packet: {self.detail}" if self.detail else ""


class Interface(NamedTuple):
    """Common facts of the packets of a file, or of one interface in it.

    Attributes:
        link_type: the link layer of the packets.
        snap_length: maximum number of captured bytes per packet, 0 for no limit.
        binary: whether the unit of time is a power of 2; otherwise of 10.
        exponent: the unit is the base to the power of minus this number, in seconds.
        shift: seconds to add to each time.
        name: the name of the interface, if the file has it.
    """

    link_type: int
    snap_length: int = 0
    binary: bool = False
    exponent: int = 6
    shift: int = 0
    name: str = ""

    def nanoseconds(self, units: int) -> int:
        """Converts a time in units to nanoseconds since the epoch."""
        if self.binary:
            time_ns = units * SECOND >> self.exponent
        elif self.exponent <= 9:
            time_ns = units * 10 ** (9 - self.exponent)
        else:
            time_ns = units // 10 ** (self.exponent - 9)
        return time_ns + self.shift * SECOND


class Place(NamedTuple):
    """The start of a record, with the facts needed to read on from there. Plain values, which can be sent to workers.

    Attributes:
        offset: absolute offset of the record.
        number: number of packets before it.
        time_ns: time of the last packet before it, used for a packet without a time of its own.
        order: byte order of the records, ``be`` or ``le``; empty before the first section of a pcapng file.
        interfaces: the interfaces described before it, in the order of their numbers.
    """

    offset: int
    number: int = 0
    time_ns: int = 1000 * NO_TIME_US
    order: str = ""
    interfaces: tuple[Interface, ...] = ()
