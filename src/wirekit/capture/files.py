"""Capture files to packets, packets to TCP segments, all by the layouts of ``wirekit.schemas.net``.

A capture is mapped, never read whole. Where a record does not decode, reading ends, the reason stands in
``Capture.damage`` with the absolute byte, and everything before it has been given. A packet that holds no TCP segment
is counted in ``Capture.skipped`` by reason.
"""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import IO, Any, NamedTuple

from wirekit.capture.tcp import Segment
from wirekit.engine import Decoded, decode
from wirekit.errors import Short, WireError, Wrong
from wirekit.values import Record

SLICE = 4096
LARGEST_PACKET = 16 * 1024 * 1024
HEAD = 12
GZIP = b"\x1f\x8b"

LINKS = {
    0: "net.loopback",
    1: "net.ethernet",
    12: "net.ip",
    14: "net.ip",
    101: "net.ip",
    108: "net.loopback",
    113: "net.linux_cooked",
    228: "net.ip",
    229: "net.ip",
    276: "net.linux_cooked2",
}
NANOSECONDS = 1_000_000_000
MICROSECOND_EXPONENT = 6
POWER_OF_TWO = 0x80


class Packet(NamedTuple):
    """One packet of a capture.

    Attributes:
        number: from 0, in file order.
        time_ns: capture time, nanoseconds since the epoch.
        link_type: the pcap link type of its interface.
        data: the captured bytes, link layer first.
        offset: absolute offset of ``data`` in the file.
        original_length: bytes on the wire.
    """

    number: int
    time_ns: int
    link_type: int
    data: bytes
    offset: int
    original_length: int


class _Interface(NamedTuple):
    link_type: int
    units: int
    shift_ns: int
    snap_length: int


def is_capture(head: bytes) -> bool:
    """Whether a file that begins with these bytes (at least 12) is a pcap or pcapng file."""
    return _format(head) is not None


def _format(head: bytes) -> str | None:
    if decode(head, "net.pcapng.section_head").error is None:
        return "pcapng"
    header = decode(head, "net.pcap.header")
    return "pcap" if header.value.get("magic") is not None else None


def open_capture(path: str) -> Capture:
    """Opens a pcap or pcapng file.

    Raises:
        Wrong: the file is neither; Short: it ends inside its header. Both name the byte.
        OSError: the file cannot be opened.
    """
    return Capture(path)


class Capture:
    """A capture file; a context manager that closes it.

    Attributes:
        path: the file.
        format: ``pcap`` or ``pcapng``.
        damage: why reading ended before the end of the file, or None.
        skipped: packets that hold no TCP segment, by reason.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.damage: WireError | None = None
        self.skipped: Counter[str] = Counter()
        self._file: IO[bytes] = open(path, "rb")  # noqa: SIM115  # closed by close()
        self._data: mmap.mmap | bytes = b""
        try:
            self._file.seek(0, 2)
            self.size = self._file.tell()
            if self.size:
                self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self.format = self._recognised()
        except BaseException:
            self.close()
            raise

    def _recognised(self) -> str:
        head = bytes(self._data[:HEAD])
        if head[: len(GZIP)] == GZIP:
            raise Wrong("a pcap or pcapng file", "gzip data; decompress it first", protocol="net", offset=0)
        found = _format(head)
        if found is None:
            if len(head) < HEAD:
                raise Short(HEAD, len(head), protocol="net", path="header", offset=0)
            raise Wrong("the magic number of a pcap or pcapng file", head[:4].hex(), protocol="net", offset=0)
        return found

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        if isinstance(self._data, mmap.mmap):
            self._data.close()
        self._data = b""
        self._file.close()

    def packets(self) -> Iterator[Packet]:
        """The packets in file order; ends early, with ``damage`` set, where a record does not decode."""
        return self._pcap() if self.format == "pcap" else self._pcapng()

    def _record(self, key: str, position: int) -> Decoded:
        """Decodes a record, taking as many bytes as it says it has."""
        size = SLICE
        while True:
            data = bytes(self._data[position : position + size])
            decoded = decode(data, key, offset=position)
            cut = isinstance(decoded.error, Short) and size < LARGEST_PACKET and position + size < self.size
            if not cut:
                return decoded
            size = min(16 * size, LARGEST_PACKET)

    def _pcap(self) -> Iterator[Packet]:
        header = decode(bytes(self._data[:SLICE]), "net.pcap.header")
        if header.error is not None:
            self.damage = header.error
            return
        order, resolution = header.value.magic.symbol.split("_")
        key = f"net.pcap.packet.{order.lower()}"
        unit = 1 if resolution == "NANO" else 1000
        link_type = int(header.value.header.network)
        position, number = header.consumed, 0
        while position < self.size:
            decoded = self._record(key, position)
            if decoded.error is not None:
                self.damage = decoded.error
                return
            value = decoded.value
            time_ns = value.ts_sec * NANOSECONDS + value.ts_fraction * unit
            offset = position + decoded.consumed - len(value.data)
            yield Packet(number, time_ns, link_type, value.data, offset, value.original_length)
            position += decoded.consumed
            number += 1

    def _pcapng(self) -> Iterator[Packet]:
        position = number = 0
        key = ""
        interfaces: list[_Interface] = []
        while position < self.size:
            head = decode(bytes(self._data[position : position + HEAD]), "net.pcapng.section_head", offset=position)
            if head.error is None:
                key = f"net.pcapng.block.{head.value.byte_order.symbol.lower()}"
                interfaces = []
            decoded = self._record(key, position)
            if decoded.error is not None:
                self.damage = decoded.error
                return
            kind, body = decoded.value.block_type.symbol, decoded.value.body
            if kind == "INTERFACE_DESCRIPTION":
                interfaces.append(_interface(body, key))
            elif kind in ("ENHANCED_PACKET", "SIMPLE_PACKET"):
                which = body.get("interface_id", 0)
                if which >= len(interfaces):
                    wrong = {"protocol": key, "path": "body.interface_id", "offset": position}
                    self.damage = Wrong(f"one of {len(interfaces)} interfaces", which, **wrong)
                    return
                yield _packet(number, body, interfaces[which], position, decoded)
                number += 1
            position += decoded.consumed

    def __repr__(self) -> str:
        return f"<Capture {self.path}: {self.format}, {self.size} bytes>"


def _interface(body: Record, key: str) -> _Interface:
    units, shift = 10**MICROSECOND_EXPONENT, 0
    for option in body.options:
        if option.code.symbol == "IF_TSRESOL" and option.value:
            exponent = option.value[0]
            units = 2 ** (exponent - POWER_OF_TWO) if exponent >= POWER_OF_TWO else 10**exponent
        elif option.code.symbol == "IF_TSOFFSET":
            offset = decode(option.value, key.replace("block", "timestamp_offset"))
            if offset.error is None:
                shift = offset.value.seconds * NANOSECONDS
    return _Interface(int(body.link_type), units, shift, body.snap_length)


def _packet(number: int, body: Record, interface: _Interface, position: int, decoded: Decoded) -> Packet:
    data = body.data
    if "timestamp_high" in body:
        ticks = body.timestamp_high << 32 | body.timestamp_low
        time_ns = ticks * NANOSECONDS // interface.units + interface.shift_ns
    else:
        time_ns = 0
        data = data[: min(body.original_length, interface.snap_length or body.original_length)]
    span = next(span for span in decoded.spans if span.path == "body.data")
    return Packet(number, time_ns, interface.link_type, data, span.start, body.original_length)


def segments(capture: Capture, file: int = 0) -> Iterator[Segment]:
    """The TCP segments of a capture in file order.

    Args:
        capture: an open capture; packets without a TCP segment are counted in its ``skipped``.
        file: the ordinal that the segments carry.
    """
    for packet in capture.packets():
        found = _segment(packet, file)
        if isinstance(found, Segment):
            yield found
        else:
            capture.skipped[found] += 1


def _segment(packet: Packet, file: int) -> Segment | str:
    """The TCP segment in a packet, or why there is none."""
    key = LINKS.get(packet.link_type)
    if key is None:
        return f"link type {packet.link_type}"
    decoded = decode(packet.data, key)
    addresses, tcp = _descend(decoded.value)
    if addresses is None:
        kind = decoded.value.get("ether_type") if decoded.value is not None else None
        return (kind.symbol or f"ether type 0x{kind:04x}").lower() if kind is not None else "not IP"
    if tcp is None or decoded.error is not None:
        return "damaged or cut inside a header" if decoded.error is not None else _other(decoded.value)
    payload = tcp.payload
    missing = sum(check.stored - check.computed for check in decoded.checks if check.kind == "length")
    end = len(packet.data) - len(decoded.value.trailer)
    return Segment(
        packet.time_ns // 1000,
        _address(addresses.source, tcp.source_port),
        _address(addresses.destination, tcp.destination_port),
        tcp.sequence_number,
        tcp.acknowledgment_number,
        int(tcp.control.flags),
        payload,
        packet.offset + end - len(payload),
        file,
        len(payload) + missing,
    )


def _descend(value: Any) -> tuple[Record | None, Record | None]:
    """The IP header and the TCP segment in a decoded packet."""
    addresses = None
    while isinstance(value, Record):
        if "source_port" in value:
            return addresses, value
        if "source" in value:
            addresses = value
        value = value.get("payload")
    return addresses, None


def _other(value: Any) -> str:
    """What an IP packet holds instead of TCP."""
    name = "unknown"
    while isinstance(value, Record):
        fragment = value.get("fragment")
        if fragment is not None and (fragment.more_fragments or fragment.offset):
            return "ip fragment"
        kind = value.get("protocol", value.get("next_header"))
        if kind is not None:
            name = (kind.symbol or f"ip protocol {int(kind)}").lower()
        value = value.get("payload")
    return name


@lru_cache(maxsize=65536)
def _address(address: bytes, port: int) -> str:
    text = str(ip_address(address))
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"
