"""Capture files in, packets and TCP segments out. What the bytes mean is known to the schemas ``net.*`` only.

A file is mapped, never read as a whole, and walked in windows of whole records, one decode a window. What is cut or
damaged ends the walk: all packets before it are given, and ``Capture.damage`` says where and why. A packet that holds
no TCP segment is a ``Skipped`` with its reason, never an error.
"""

from __future__ import annotations

import gzip
import mmap
import os
import socket
import stat
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from io import BufferedReader
from typing import IO, Any, NamedTuple

from wirekit.capture.tcp import ACK, FIN, PSH, RST, SYN, Segment
from wirekit.engine import decode
from wirekit.errors import Limit, Short, WireError, Wrong
from wirekit.registry import registry
from wirekit.schemas.net import ip, link, pcap, pcapng, tcp
from wirekit.values import Record, Symbol
from wirekit.wire import Limits, Struct, Switch

WINDOW = 256 * 1024
"""Bytes that are decoded at once; more where one record is longer."""

_HEAD = 64  # bytes; enough to recognise a format
_CHUNK = 1024 * 1024  # bytes copied at once
_SECOND = 1_000_000_000  # ns
_GZIP = b"\x1f\x8b"


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
    """What the packets of a file, or of one interface in it, have in common.

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
            time_ns = units * _SECOND >> self.exponent
        elif self.exponent <= 9:
            time_ns = units * 10 ** (9 - self.exponent)
        else:
            time_ns = units // 10 ** (self.exponent - 9)
        return time_ns + self.shift * _SECOND


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


class Capture:
    """An open capture file; a context manager.

    Attributes:
        path: as it was given.
        format: ``pcap`` or ``pcapng``.
        size: bytes of the capture, decompressed.
        first: the place of the first record.
        damage: what ended the last walk before the end of the file, with its absolute offset; None if nothing did.
        walked: absolute offset that the last walk came to: the end, or the record that is cut or damaged.
        skipped: packets that ``segments`` has passed over, by reason.
    """

    def __init__(self, path: str, file: IO[bytes], limits: Limits, unpacking: WireError | None = None) -> None:
        """Use ``open_capture``.

        Args:
            path: what the file is called.
            file: a regular file; it is closed with the capture.
            limits: what a record may announce.
            unpacking: why the file holds only the beginning of what was compressed.
        """
        self.path = path
        self.limits = limits
        self.size = os.fstat(file.fileno()).st_size
        self.damage: WireError | None = None
        self.walked = 0
        self.skipped: Counter[str] = Counter()
        self._unpacking = unpacking
        self._file = file
        self._map: mmap.mmap | None = None
        if self.size:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.format, self.first = self._recognise()

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Capture {self.path}: {self.format}, {self.size} bytes>"

    def close(self) -> None:
        """Lets go of the file; packets taken from it stay valid."""
        if self._map is not None:
            self._map.close()
        self._file.close()

    def read(self, offset: int, size: int) -> bytes:
        """The bytes at an absolute offset, fewer where the file ends."""
        return self._map[offset : offset + size] if self._map is not None else b""

    def _recognise(self) -> tuple[str, Place]:
        head = self.read(0, _HEAD)
        header = decode(head, "net.pcap.header", limits=self.limits)
        if header.error is None:
            magic, fields = header.value.magic_number, header.value.header
            nanoseconds = magic in (pcap.BIG_NANOSECONDS, pcap.LITTLE_NANOSECONDS)
            interface = Interface(int(fields.link.type), fields.snap_length, exponent=9 if nanoseconds else 6)
            order = "be" if magic in (pcap.BIG_MICROSECONDS, pcap.BIG_NANOSECONDS) else "le"
            return "pcap", Place(header.consumed, order=order, interfaces=(interface,))
        section = decode(head, "net.pcapng.start", limits=self.limits)
        if section.error is None and section.value.byte_order is not None:
            return "pcapng", Place(0)
        for error in (header.error, section.error):
            if isinstance(error, Short) or (error is not None and error.offset):
                raise self._unpacking or error  # it is cut, or only its first bytes are right
        raise self._unpacking or Wrong(
            "a pcap or pcapng file", f"{self.path}, which begins with {head[:4].hex(' ')}", offset=0
        )

    def packets(self, start: int | Place = 0, end: int | None = None) -> Iterator[Packet]:
        """The packets whose records begin in [start, end), in the order of the file.

        Any byte offsets split a file into parts that together give each packet once.

        Args:
            start: a place; or an absolute offset, which is walked to from the beginning of the file, because what
                stands before it matters (interfaces, the number of packets).
            end: absolute offset; None for the end of the file.
        """
        place, begin = (start, start.offset) if isinstance(start, Place) else (self.first, start)
        walk = _walk(self, place, self.size if end is None else end)
        for packet in walk.packets():
            if walk.offset >= begin:
                yield packet

    def places(self, every: int) -> Iterator[Place]:
        """Where to split the file: at its first packet, and at the first one in each further ``every`` bytes."""
        due = 0
        walk = _walk(self, self.first, self.size)
        for _ in walk.packets():
            if walk.offset >= due:
                yield walk.place
                due = walk.offset - walk.offset % every + every

    def window(self, offset: int, several: str, single: str) -> tuple[list[Any], WireError | None]:
        """The records from an offset on, at least one unless there is an error, and the error that ended them.

        Args:
            offset: absolute, of a record, before the end of the file.
            several: key of the layout that takes whole records and leaves a cut one alone.
            single: key of the layout of one record, to say what a cut one lacks.
        """
        size = WINDOW
        while True:
            data = self.read(offset, size)
            decoded = decode(data, several, offset=offset, limits=self.limits)
            if decoded.error is not None:
                return (decoded.value or [])[:-1], decoded.error  # the last one is what is left of the damaged one
            if decoded.value:
                return decoded.value, None
            if offset + len(data) == self.size:
                alone = decode(data, single, offset=offset, limits=self.limits)
                return ([], alone.error) if alone.error is not None else ([alone.value], None)
            size *= 4

    def ended(self, offset: int, error: WireError | None) -> None:
        """Notes where a walk ended and why; that the file itself is not all there comes first."""
        self.walked = offset
        self.damage = self._unpacking or error


class _Walk:
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


class _PcapWalk(_Walk):
    def _packets(self) -> Iterator[Packet]:
        (interface,) = self.interfaces
        unit = interface.nanoseconds(1)
        several, single = f"net.pcap.packets.{self.order}", f"net.pcap.packet.{self.order}"
        while self.offset < self.end:
            records, error = self.capture.window(self.offset, several, single)
            for record in records:
                if self.offset >= self.end:
                    return
                time_ns = record.seconds * _SECOND + record.fraction * unit
                data = record.data
                yield self._packet(time_ns, interface, data, self.offset + _PCAP_LEAD, record.original_length)
                self.offset += _PCAP_LEAD + len(data)
            if error is not None and self.offset < self.end:
                raise error


class _PcapngWalk(_Walk):
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
        start = decode(self.capture.read(self.offset, _HEAD), "net.pcapng.start", offset=self.offset)
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


def _walk(capture: Capture, place: Place, end: int) -> _Walk:
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


def is_capture(data: bytes) -> bool:
    """Whether bytes begin as a pcap or pcapng file does, or one in a gzip file; 64 bytes are enough, of gzip 1024."""
    if data.startswith(_GZIP):
        try:
            data = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _HEAD)
        except zlib.error:
            return False
    if decode(data[:_HEAD], "net.pcap.header").error is None:
        return True
    start = decode(data[:_HEAD], "net.pcapng.start")
    return start.error is None and start.value.byte_order is not None


def open_capture(path: str | os.PathLike[str], *, limits: Limits | None = None) -> Capture:
    """Opens a pcap or pcapng file, compressed by gzip or not.

    What is compressed, and what is no regular file (a pipe), is copied to a temporary file first; offsets are those of
    the capture itself, decompressed.

    Args:
        path: the file.
        limits: ``frame`` is the most that a record may announce, ``decompressed`` the most that a copy may grow to,
            both in bytes; by default those of the protocol ``net``.

    Raises:
        Wrong: it is neither; the text names the file.
        Short: it ends within its header.
        Limit: a copy grows beyond its limit.
        OSError: it cannot be read.
    """
    name = os.fspath(path)
    limits = limits or registry.protocol("net").limits
    source = open(name, "rb")  # noqa: SIM115  # closed with the capture
    file: IO[bytes] = source
    try:
        packed = source.peek(2)[:2] == _GZIP
        unpacking = None
        if packed or not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            file, unpacking = _copied(source, packed, limits.decompressed)
        return Capture(name, file, limits, unpacking)
    except BaseException:
        file.close()
        source.close()
        raise


def _copied(source: BufferedReader, packed: bool, limit: int) -> tuple[IO[bytes], WireError | None]:
    """A temporary file with the content, decompressed, and why that is not all there."""
    target = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the capture
    plain: Any = gzip.GzipFile(fileobj=source) if packed else source
    size = 0
    ended: WireError | None = None
    try:
        while chunk := plain.read1(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise Limit("decompressed", limit, size, protocol="net", offset=size)
            target.write(chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        ended = Wrong("a whole gzip file", f"only its beginning ({error})", protocol="net", offset=size)
    except BaseException:
        target.close()
        raise
    source.close()
    target.flush()
    return target, ended


# What the layers look like once decoded; one class per layout.
_TCP = tcp.TCP.record
_NETWORK = (ip.IPV4.record, ip.IPV6.record)
_KEYS = {number: f"net.{name}" for number, name in link.LINKS.items()}


def segments(
    capture: Capture, file: int = 0, *, start: int | Place = 0, end: int | None = None
) -> Iterator[Segment | Skipped]:
    """The TCP segments of a capture, and what else is in it; ``capture.skipped`` counts that.

    Args:
        capture: an open capture.
        file: its ordinal, for the segments.
        start: as for ``Capture.packets``.
        end: as for ``Capture.packets``.
    """
    for packet in capture.packets(start, end):
        found = dissect(packet, file)
        if isinstance(found, Skipped):
            capture.skipped[found.reason] += 1
        yield found


def dissect(packet: Packet, file: int = 0) -> Segment | Skipped:
    """The TCP segment in a packet, or why there is none.

    Args:
        packet: a captured packet.
        file: ordinal of its capture file.
    """
    key = _KEYS.get(packet.link_type)
    if key is None:
        return _skipped(packet, f"link type {packet.link_type}")
    data = packet.data
    decoded = decode(data, key, offset=packet.offset)
    if decoded.error is not None:
        cut = len(data) < packet.original_length
        return _skipped(packet, "cut" if cut else "damaged", str(decoded.error))
    layer = decoded.value
    network = None
    while not isinstance(layer, _TCP):
        if isinstance(layer, _NETWORK):
            network = layer
        inner = layer.payload
        if not isinstance(inner, Record):
            return _skipped(packet, _reason(layer))
        layer = inner
    if network is None:
        return _skipped(packet, "damaged", "TCP without IP")
    payload: bytes = layer.payload
    end = packet.offset + len(data) - len(decoded.value.trailer)
    flags = layer.flags
    return Segment(
        packet.time_us,
        _address(network.source, layer.source_port),
        _address(network.destination, layer.destination_port),
        layer.sequence_number,
        layer.acknowledgment_number,
        FIN * flags.fin | SYN * flags.syn | RST * flags.rst | PSH * flags.psh | ACK * flags.ack,
        payload,
        end - len(payload),
        file,
        len(payload) + _missing(packet, network, decoded.checks),
    )


def _missing(packet: Packet, network: Record, checks: list[Any]) -> int:
    """Bytes of the payload that were on the wire and are not in the capture: what the lengths of IP say beyond it."""
    if network.get("total_length", network.get("payload_length")) == 0:
        return max(packet.original_length - len(packet.data), 0)
    return sum(check.stored - check.computed for check in checks if check.kind == "length" and check.status == "bad")


@lru_cache(maxsize=1 << 16)
def _address(address: bytes, port: int) -> str:
    if len(address) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, address)}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{port}"


def _reason(layer: Record) -> str:
    """Why nothing of this layer's payload was decoded."""
    fragment = layer.get("fragment")
    if fragment is not None and (fragment.fragment_offset or fragment.more_fragments):
        return "fragment"
    for field in ("type", "protocol", "next_header", "family"):
        what = layer.get(field)
        if isinstance(what, Symbol):
            return what.symbol.lower() if what.symbol else f"{field} 0x{int(what):x}"
    return f"ip version {layer.start.version}"


def _skipped(packet: Packet, reason: str, detail: str = "") -> Skipped:
    return Skipped(packet.number, packet.time_us, packet.offset, len(packet.data), reason, detail)
