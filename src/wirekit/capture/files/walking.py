"""Walks over the records of a capture file: a window of whole records is decoded at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wirekit.capture.files.items import SECOND, Interface, Packet, Place
from wirekit.engine import decode
from wirekit.errors import WireError, Wrong
from wirekit.schemas.net import pcap, pcapng
from wirekit.values import Record
from wirekit.wire import Struct, Switch

if TYPE_CHECKING:
    from wirekit.capture.files.opening import Capture

HEAD = 64  # bytes; enough to recognise a format


class Walk:
    """A walk over the records that begin before ``end``; between two packets it is at the record of the first one."""

    def __init__(self, capture: Capture, place: Place, end: int) -> None:
        self.capture = capture
        self.end = min(end, capture.size)
        self.offset = place.offset
        self.number = place.number  # of the packet that was given last
        self.time_ns = place.time_ns
        self.before_ns = place.time_ns
        self.order = place.order
        self.interfaces = list(place.interfaces)

    @property
    def place(self) -> Place:
        """The record of the packet that was given last."""
        return Place(self.offset, self.number - 1, self.before_ns, self.order, tuple(self.interfaces))

    def packets(self) -> Iterator[Packet]:
        """The packets; at the end the capture knows whether damage ended them."""
        self.capture.damage = None
        try:
            yield from self._packets()
        except WireError as error:
            self.capture.ended(self.offset, error)
        else:
            self.capture.ended(self.offset, None)

    def _packets(self) -> Iterator[Packet]:
        raise NotImplementedError

    def _packet(self, time_ns: int, interface: Interface, data: bytes, offset: int, original: int) -> Packet:
        self.number += 1
        self.before_ns, self.time_ns = self.time_ns, time_ns
        return Packet(time_ns // 1000, time_ns, interface.link_type, data, offset, original, self.number)


class _PcapWalk(Walk):
    def _packets(self) -> Iterator[Packet]:
        (interface,) = self.interfaces
        unit = interface.nanoseconds(1)
        several, single = f"net.pcap.packets.{self.order}", f"net.pcap.packet.{self.order}"
        while self.offset < self.end:
            records, error = self.capture.window(self.offset, several, single)
            for record in records:
                if self.offset >= self.end:
                    return
                time_ns = record.seconds * SECOND + record.fraction * unit
                data = record.data
                yield self._packet(time_ns, interface, data, self.offset + _PCAP_LEAD, record.original_length)
                self.offset += _PCAP_LEAD + len(data)
            if error is not None and self.offset < self.end:
                raise error


class _PcapngWalk(Walk):
    def _packets(self) -> Iterator[Packet]:
        while self.offset < self.end:
            self._section()
            several, single = f"net.pcapng.blocks.{self.order}", f"net.pcapng.block.{self.order}"
            records, error = self.capture.window(self.offset, several, single)
            for block in records:
                if self.offset >= self.end:
                    return
                self._agree(block)
                kind = block.block_type
                if kind in (pcapng.ENHANCED_PACKET, pcapng.PACKET):
                    yield self._full(block.body, _DATA_LEADS[kind])
                elif kind == pcapng.SIMPLE_PACKET:
                    yield self._simple(block.body, _DATA_LEADS[kind])
                elif kind == pcapng.INTERFACE_DESCRIPTION:
                    self.interfaces.append(_interface(block.body))
                self.offset += block.block_total_length
            if error is not None and self.offset < self.end:
                raise error

    def _section(self) -> None:
        """Learns the byte order when a section begins here."""
        start = decode(self.capture.read(self.offset, HEAD), "net.pcapng.start", offset=self.offset)
        if start.error is not None:
            raise start.error
        if start.value.byte_order is not None:
            self.order = "be" if start.value.byte_order == pcapng.BIG_ENDIAN else "le"
            self.interfaces = []

    def _agree(self, block: Record) -> None:
        size, again = block.block_total_length, block.block_total_length_again
        if size != again:
            where = {"protocol": "net.pcapng", "path": "block_total_length_again", "offset": self.offset + size - 4}
            raise Wrong(size, again, **where)

    def _described(self, number: int) -> Interface:
        if number < len(self.interfaces):
            return self.interfaces[number]
        where = {"protocol": "net.pcapng", "path": "interface_id", "offset": self.offset}
        raise Wrong(f"one of {len(self.interfaces)} interfaces described before", number, **where)

    def _full(self, body: Record, lead: int) -> Packet:
        interface = self._described(body.interface_id)
        time_ns = interface.nanoseconds(body.timestamp_high << 32 | body.timestamp_low)
        return self._packet(time_ns, interface, body.data, self.offset + lead, body.original_length)

    def _simple(self, body: Record, lead: int) -> Packet:
        interface = self._described(0)
        length = body.original_length
        data = body.data[: interface.snap_length] if interface.snap_length else body.data
        return self._packet(self.time_ns, interface, data, self.offset + lead, length)


def walk(capture: Capture, place: Place, end: int) -> Walk:
    return (_PcapWalk if capture.format == "pcap" else _PcapngWalk)(capture, place, end)


def _interface(body: Record) -> Interface:
    """What an interface description says; an option whose value does not fit is as good as none."""
    options = {int(option.code): option.value for option in reversed(body.options)}
    interface = Interface(int(body.link_type), body.snap_length, name=options.get(pcapng.IF_NAME, ""))
    resolution, shift = options.get(pcapng.IF_TSRESOL), options.get(pcapng.IF_TSOFFSET)
    if isinstance(resolution, Record):
        interface = interface._replace(binary=resolution.binary, exponent=resolution.exponent)
    if isinstance(shift, int):
        interface = interface._replace(shift=shift)
    return interface


def _lead(struct: Struct, field: str) -> int:
    """Bytes of the fields before one, which all have a fixed size."""
    names = [name for name, _ in struct.members]
    return sum(node.minimum() for _, node in struct.members[: names.index(field)])


def _data_leads() -> dict[int, int]:
    """Bytes of a block before its packet's data, by type of block."""
    body = dict(pcapng.BLOCK_LE.members)["body"]
    assert isinstance(body, Switch)
    lead = _lead(pcapng.BLOCK_LE, "body")
    return {
        kind: lead + _lead(node, "data")
        for kind, node in body.cases.items()
        if isinstance(node, Struct) and "data" in dict(node.members)
    }


_PCAP_LEAD = _lead(pcap.PACKET_LE, "data")
_DATA_LEADS = _data_leads()
