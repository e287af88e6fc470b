"""Captures for benchmarks: many connections of real conversations, and one of bulk; Ethernet, IPv4, classic pcap.

Files are read and written here without wirekit, so that it shares no mistakes with what it is measured by.
"""

from __future__ import annotations

import heapq
import random
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "pcap"
START_US = 1_700_000_000_000_000
ETHERNET = 14  # bytes
MESSAGES_A_SET = 100
CONNECTIONS = 16
_PCAPNG, _INTERFACE, _ENHANCED = 0x0A0D0D0A, 1, 6
_RESOLUTION = 9  # option of an interface
_IPV4 = b"\x08\x00"

Timed = tuple[int, bytes]
"""Time in microseconds, and a packet."""


def small_packets(path: Path, size: int) -> int:
    """Writes about ``size`` bytes of copies of the conversations in ``fixtures/pcap``; gives how many packets.

    Each copy has addresses of its own and its connections' client ids as they were: Kafka's and Pulsar's requests are
    the same bytes in all copies.
    """
    runs = []
    for each in sorted([*FIXTURES.glob("kafka*"), *FIXTURES.glob("pulsar*")]):
        packets = [(time, data) for time, data in _packets(each.read_bytes()) if data[12:ETHERNET] == _IPV4]
        runs.append([(time - packets[0][0], data) for time, data in packets])
    once = sum(len(data) + 16 for run in runs for _, data in run)

    def copy(run: list[Timed], number: int, place: int) -> Iterator[Timed]:
        address = bytes([10, place, number >> 8 & 255, number & 255])
        for time, data in run:
            behind = ETHERNET + (data[ETHERNET] & 15) * 4
            header = _summed(data[ETHERNET : ETHERNET + 12] + 2 * address + data[ETHERNET + 20 : behind])
            yield START_US + number * 20_000 + time, data[:ETHERNET] + header + data[behind:]

    copies = (copy(run, number, place) for number in range(max(1, size // once)) for place, run in enumerate(runs))
    return _write(path, heapq.merge(*copies))


def bulk(path: Path, size: int, connections: int = CONNECTIONS) -> int:
    """Writes about ``size`` bytes of Fetch v2 and Produce v2 with sets of 100 messages; gives how many packets.

    Every second connection produces; a single one fetches.
    """
    return _write(path, _bulk(size, connections))


def _packets(data: bytes) -> Iterator[Timed]:
    """The packets of a little-endian pcap file of microseconds, or of a little-endian pcapng file."""
    if struct.unpack_from("<I", data)[0] != _PCAPNG:
        at = 24
        while at < len(data):
            seconds, micros, size, _ = struct.unpack_from("<IIII", data, at)
            yield seconds * 1_000_000 + micros, data[at + 16 : at + 16 + size]
            at += 16 + size
        return
    at, unit = 0, 1e-6
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == _INTERFACE:
            unit = 10.0 ** -dict(_options(data[at + 16 : at + size - 4])).get(_RESOLUTION, b"\x06")[0]
        elif kind == _ENHANCED:
            high, low, captured = struct.unpack_from("<III", data, at + 12)
            yield int((high << 32 | low) * unit * 1e6), data[at + 28 : at + 28 + captured]
        at += size


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        code, size = struct.unpack_from("<HH", data, at)
        yield code, data[at + 4 : at + 4 + size]
        at += 4 + (size + 3 & ~3)


def _summed(header: bytes) -> bytes:
    """An IPv4 header with its checksum."""
    header = header[:10] + b"\0\0" + header[12:]
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack(">H", ~total & 0xFFFF) + header[12:]


def _write(path: Path, packets: Iterable[Timed]) -> int:
    count = 0
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for time, data in packets:
            file.write(struct.pack("<IIII", *divmod(time, 1_000_000), len(data), len(data)) + data)
            count += 1
    return count


def _segment(number: int, side: int, sequence: int, acknowledgment: int, flags: int, payload: bytes) -> bytes:
    """A packet of a connection; side 0 is the client's."""
    ends = [(bytes([10, 0, 0, number + 1]), 40000 + number), (bytes([10, 1, 0, 1]), 9092)]
    (source, source_port), (target, target_port) = ends if side == 0 else ends[::-1]
    ip = _summed(struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0, source, target))
    numbers = (sequence & 0xFFFFFFFF, acknowledgment & 0xFFFFFFFF)
    tcp = struct.pack(">HHIIBBHHH", source_port, target_port, *numbers, 0x50, flags, 65535, 0, 0)
    return bytes(12) + _IPV4 + ip + tcp + payload


def _set(source: random.Random, body: bytes, offset: int) -> bytes:
    entries = []
    for number in range(offset, offset + MESSAGES_A_SET):
        size = 150 + source.randrange(100)
        at = source.randrange(len(body) - size)
        key = b"key-%04d" % (number - offset)
        head = struct.pack(">bbqi", 1, 0, START_US // 1000 + number, len(key)) + key
        head += struct.pack(">i", size) + body[at : at + size]
        message = struct.pack(">I", zlib.crc32(head)) + head
        entries.append(struct.pack(">qi", number, len(message)) + message)
    return b"".join(entries)


def _bulk(size: int, connections: int) -> Iterator[Timed]:
    source = random.Random(7)
    body = source.randbytes(1 << 16)
    time, written = START_US, 0
    states = []  # sequence numbers of both sides, correlation id, offset
    for number in range(connections):
        states.append([[1000, 5000], 1, 0])
        for side, sequence, acknowledgment, flags in ((0, 999, 0, 2), (1, 4999, 1000, 18), (0, 1000, 5000, 16)):
            yield time, _segment(number, side, sequence, acknowledgment, flags, b"")
            time += 5
    while written < size:
        number = source.randrange(connections)
        numbers, identity, offset = states[number]
        entries, topic = _set(source, body, offset), b"orders-%d" % (number & 7)
        name, partition = struct.pack(">ih", 1, len(topic)) + topic, struct.pack(">ii", 1, number & 3)
        if number & 1:
            request = struct.pack(">hhih", 0, 2, identity, 8) + b"producer" + struct.pack(">hi", 1, 30000)
            request += name + partition + struct.pack(">i", len(entries)) + entries
            answer = struct.pack(">i", identity) + name + partition + struct.pack(">hqqi", 0, offset, -1, 0)
        else:
            request = struct.pack(">hhih", 1, 2, identity, 8) + b"consumer" + struct.pack(">iii", -1, 500, 1)
            request += name + partition + struct.pack(">qi", offset, 1 << 20)
            answer = struct.pack(">ii", identity, 0) + name + partition
            answer += struct.pack(">hqi", 0, offset + MESSAGES_A_SET, len(entries)) + entries
        for side, frame in enumerate((request, answer)):
            data = struct.pack(">i", len(frame)) + frame
            for at in range(0, len(data), 1448):
                piece = data[at : at + 1448]
                packet = _segment(number, side, numbers[side], numbers[1 - side], 24, piece)
                yield time, packet
                time += 3
                written += len(packet) + 16
                numbers[side] += len(piece)
        states[number] = [numbers, identity + 1, offset + MESSAGES_A_SET]
