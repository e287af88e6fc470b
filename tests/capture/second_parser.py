"""A second, simple reader of captures: Ethernet, IPv4 and TCP by fixed offsets, so that nothing is shared with wirekit.

It reads what the captures of ``fixtures/pcap`` hold, and what ``tests.capture.damage`` makes of them.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_ETHERNET = 14  # bytes
_NUMBERS = 1 << 32  # sequence numbers go on from 0 behind the last one
_PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
_PCAPNG, _INTERFACE, _ENHANCED = 0x0A0D0D0A, 1, 6
_RESOLUTION = 9  # option of an interface


class Packet(NamedTuple):
    """A captured packet: time in microseconds since the epoch, bytes on the wire, the bytes that were captured."""

    time_us: int
    length: int
    data: bytes


class Tcp(NamedTuple):
    """What the headers of a packet say; addresses as ``1.2.3.4:5``."""

    source: str
    target: str
    sequence: int
    syn: bool
    payload: bytes


def packets(path: Path) -> list[Packet]:
    """The packets of a little-endian pcap file of microseconds, or of a little-endian pcapng file."""
    data = path.read_bytes()
    (magic,) = struct.unpack_from("<I", data)
    return list(_blocks(data) if magic == _PCAPNG else _records(data))


def write(path: Path, packets: Iterable[Packet]) -> Path:
    """A pcap file with these packets."""
    records = [
        struct.pack("<IIII", *divmod(each.time_us, 1_000_000), len(each.data), each.length) + each.data
        for each in packets
    ]
    path.write_bytes(_PCAP_HEADER + b"".join(records))
    return path


def tcp(packet: Packet) -> Tcp:
    """The segment in a packet that has one."""
    ip = packet.data[_ETHERNET:]
    assert ip[0] == 0x45, "IPv4 without options"
    total = struct.unpack_from(">H", ip, 2)[0]
    segment = ip[20:total]
    source_port, target_port, sequence = struct.unpack_from(">HHI", segment)
    start = segment[12] >> 4 << 2
    source, target = (".".join(map(str, ip[at : at + 4])) for at in (12, 16))
    return Tcp(f"{source}:{source_port}", f"{target}:{target_port}", sequence, bool(segment[13] & 2), segment[start:])


def payloads(packets: Iterable[Packet]) -> Counter[tuple[str, str]]:
    """Payload bytes by (sender, receiver)."""
    sizes: Counter[tuple[str, str]] = Counter()
    for segment in map(tcp, packets):
        sizes[segment.source, segment.target] += len(segment.payload)
    return sizes


class Stream:
    """What one sender sent to one receiver: the first copy of each byte, by sequence number."""

    def __init__(self, segments: Iterable[Tcp]) -> None:
        self._bytes: dict[int, int] = {}
        self._starts: dict[int, None] = {}
        for segment in segments:
            first = segment.sequence + segment.syn
            if segment.payload or segment.syn:
                self._starts[first] = None
            for number, byte in enumerate(segment.payload, first):
                self._bytes.setdefault(number % _NUMBERS, byte)

    def holds(self, pieces: list[tuple[int, bytes]]) -> bool:
        """Whether pieces at stream offsets, of which the first begins a segment, are what was sent."""
        first = pieces[0][0]
        return any(
            all(
                self._bytes.get((start + offset + at) % _NUMBERS) == byte
                for offset, data in pieces
                for at, byte in enumerate(data)
            )
            for start in (each - first for each in self._starts)
        )


def _records(data: bytes) -> Iterator[Packet]:
    at = len(_PCAP_HEADER)
    while at < len(data):
        seconds, microseconds, captured, length = struct.unpack_from("<IIII", data, at)
        yield Packet(seconds * 1_000_000 + microseconds, length, data[at + 16 : at + 16 + captured])
        at += 16 + captured


def _blocks(data: bytes) -> Iterator[Packet]:
    at, exponent = 0, 6
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == _INTERFACE:
            exponent = _exponent(data[at + 16 : at + size - 4])
        elif kind == _ENHANCED:
            _, high, low, captured, length = struct.unpack_from("<IIIII", data, at + 8)
            time_us = ((high << 32) + low) * 1_000_000 // 10**exponent
            yield Packet(time_us, length, data[at + 28 : at + 28 + captured])
        at += size


def _exponent(options: bytes) -> int:
    while options:
        code, size = struct.unpack_from("<HH", options)
        if code == _RESOLUTION:
            return options[4]
        options = options[4 + (size + 3 & ~3) :]
    return 6
