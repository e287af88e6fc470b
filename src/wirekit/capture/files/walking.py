"""Walks over the records of a capture file, decoding a window of whole records at once. This module has pcap's walk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from wirekit.capture.files.items import SECOND, Interface, Packet, Place
from wirekit.errors import Damaged, WireError
from wirekit.schemas.net import pcap

if TYPE_CHECKING:
    from wirekit.capture.files.opening import Capture

WINDOW = 256 * 1024
"""The number of bytes that are decoded at once; more if one record is longer."""


class Walk:
    """A walk over the records that begin before ``end``; between two packets it is at the record of the first one."""

    def __init__(self, capture: Capture, place: Place, end: int) -> None:
        self.capture = capture
        self.end = end
        self.offset = place.offset
        self.number = place.number  # of the packet that was given last
        self.time_ns = place.time_ns
        self.before_ns = place.time_ns
        self.order = place.order
        self.interfaces = list(place.interfaces)

    @property
    def place(self) -> Place:
        """The record of the last returned packet."""
        return Place(self.offset, self.number - 1, self.before_ns, self.order, tuple(self.interfaces))

    def items(self) -> Iterator[Packet | Damaged]:
        """The packets and the skipped parts; at the end, the capture knows if damage ended the walk."""
        self.capture.damage = None
        try:
            yield from self._items()
        except WireError as error:
            self.capture.ended(self.offset, error)
        else:
            self.capture.ended(self.offset, None)

    @property
    def more(self) -> bool:
        """Whether a requested record begins here."""
        return self.offset < self.end and self.capture.reaches(self.offset)

    def _items(self) -> Iterator[Packet | Damaged]:
        raise NotImplementedError

    def _packet(self, time_ns: int, interface: Interface, data: bytes, offset: int, original: int) -> Packet:
        self.number += 1
        self.before_ns, self.time_ns = self.time_ns, time_ns
        return Packet(time_ns // 1000, time_ns, interface.link_type, data, offset, original, self.number)


def of_record(error: WireError, key: str) -> WireError:
    """The error of one record in a batch, in the form that decoding it alone would give."""
    error.protocol, error.path = key, re.sub(r"^\[\d+\]\.?", "", error.path)
    return error


LEAD = pcap.PACKET_LE.lead("data")


class PcapWalk(Walk):
    def _items(self) -> Iterator[Packet]:
        (interface,) = self.interfaces
        unit = interface.nanoseconds(1)
        list_key, record_key = f"net.pcap.packets.{self.order}", f"net.pcap.packet.{self.order}"
        while self.more:
            records, error = self.capture.window(self.offset, list_key, record_key)
            for record in records:
                if self.offset >= self.end:
                    return
                time_ns = record.seconds * SECOND + record.fraction * unit
                data = record.data
                yield self._packet(time_ns, interface, data, self.offset + LEAD, record.original_length)
                self.offset += LEAD + len(data)
            if error is not None and self.offset < self.end:
                raise error
