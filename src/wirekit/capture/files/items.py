"""The items of a capture file: packets, notes on packets without TCP, and places to continue from."""

from __future__ import annotations

from typing import NamedTuple

SECOND = 1_000_000_000
"""Nanoseconds."""


class Packet(NamedTuple):
    """One captured packet.

    Attributes:
        time_us: capture time, microseconds since the epoch.
        time_ns: the same in nanoseconds.
        link_type: what ``data`` begins with, a number of the registry of link types.
        data: the bytes that were captured.
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


class Skipped(NamedTuple):
    """A packet that holds no TCP segment.

    Attributes:
        number: its number in the file, from 1.
        time_us: capture time, microseconds since the epoch.
        offset: absolute offset of its data in the file.
        length: bytes captured.
        reason: ``udp``, ``arp``, ``fragment``, ``cut``, ``damaged``, ``link type 147``, …
        detail: what does not fit a cut or damaged packet, and where; else empty.
    """

    number: int
    time_us: int
    offset: int
    length: int
    reason: str
    detail: str = ""


class Interface(NamedTuple):
    """The common facts of the packets of a file, or of one interface in it.

    Attributes:
        link_type: what they begin with.
        snap_length: bytes kept of each at most, 0 for no limit.
        binary: whether their unit of time is a power of 2, else of 10.
        exponent: the unit is that base to the power of minus this, in seconds.
        shift: seconds to add to their time.
        name: of the interface, if the file tells it.
    """

    link_type: int
    snap_length: int = 0
    binary: bool = False
    exponent: int = 6
    shift: int = 0
    name: str = ""

    def nanoseconds(self, units: int) -> int:
        """The time of so many units, nanoseconds since the epoch."""
        if self.binary:
            time_ns = units * SECOND >> self.exponent
        elif self.exponent <= 9:
            time_ns = units * 10 ** (9 - self.exponent)
        else:
            time_ns = units // 10 ** (self.exponent - 9)
        return time_ns + self.shift * SECOND


class Place(NamedTuple):
    """A record boundary and all that reading on from there needs. Plain values: it travels to workers.

    Attributes:
        offset: absolute offset of the record.
        number: packets before it.
        time_ns: of the last packet before it; a packet without a time of its own takes that.
        order: byte order of the records, ``be`` or ``le``; empty before the first section of a pcapng file.
        interfaces: those described before it, in the order of their numbers.
    """

    offset: int
    number: int = 0
    time_ns: int = 0
    order: str = ""
    interfaces: tuple[Interface, ...] = ()
