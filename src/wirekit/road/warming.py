"""Compiles in advance what the columns road uses, by reading a small capture that exercises every kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase

from wirekit.capture.tcp import ACK, FIN, SYN
from wirekit.encoding import encode
from wirekit.errors import WirekitError
from wirekit.examples import example
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.summary import Summary
from wirekit.registry import Protocol, registry
from wirekit.road.tables import captured
from wirekit.tables.columns import FROM_INPUTS

_FLAGS = {"syn": SYN, "ack": ACK, "fin": FIN}
_PORT, _FIRST_PORT, _START, _STEP = 9092, 40_000, 1_600_000_000, 1000
_MAGIC, _ETHERNET = 0xA1B2C3D4, 1


def warm() -> None:
    """Compiles the code that large captures use, unless it is compiled on this machine already."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(sample())
        file.flush()
        job = Job(find_inputs([file.name]), road="columns")
        for _ in captured(job.inputs, job, Summary(), FROM_INPUTS) or ():
            pass


def sample() -> bytes:
    """A pcap file with connections of one frame each, of each protocol that declares its pairing."""
    frames = [frame for each in registry.with_stream() if each.pairing for frame in _frames(each)]
    packets = [
        {"seconds": _START, "fraction": number * _STEP, "data": data}
        for number, data in enumerate(packet for place, frame in enumerate(frames) for packet in _packets(place, frame))
    ]
    header = {"link": {"type": _ETHERNET}, "snap_length": 1 << 16}
    return encode("net.pcap", {"magic_number": _MAGIC, "header": header, "packets": packets})


def _frames(protocol: Protocol) -> Iterator[bytes]:
    """A small value of the layouts that a client's frames and messages come in."""
    patterns: list[str] = []
    for each in protocol.declared.messages:
        patterns += [each.layouts] if isinstance(each.layouts, str) else each.layouts
    for layout in protocol.layouts:
        own = protocol.key(layout) == protocol.stream("client")
        if own or any(fnmatchcase(layout, pattern) for pattern in patterns):
            with suppress(WirekitError):  # some layouts have no small value
                yield encode(protocol.key(layout), example(protocol.key(layout)))


def _packets(place: int, frame: bytes) -> Iterator[bytes]:
    """A connection in which the client sends one frame."""
    port, end = _FIRST_PORT + place, 1 + len(frame)
    yield _packet(port, _PORT, 0, 0, SYN)
    yield _packet(_PORT, port, 0, 1, SYN | ACK)
    yield _packet(port, _PORT, 1, 1, ACK, frame)
    yield _packet(port, _PORT, end, 1, ACK | FIN)
    yield _packet(_PORT, port, 1, end + 1, ACK | FIN)


def _packet(source: int, target: int, sequence: int, acknowledgment: int, flags: int, payload: bytes = b"") -> bytes:
    segment = {
        "source_port": source,
        "destination_port": target,
        "sequence_number": sequence,
        "acknowledgment_number": acknowledgment,
        "flags": {name: bool(flags & bit) for name, bit in _FLAGS.items()},
        "payload": payload,
    }
    client, server = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    ends = (server, client) if source == _PORT else (client, server)
    ip = {"source": ends[0], "destination": ends[1], "protocol": 6, "payload": segment}
    return encode("net.ethernet", {"type": 0x0800, "payload": ip})
