"""Captures of a few packets, as bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.net.building import (
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    option,
    packet,
    pcap,
    section_header,
)
from wirekit.capture.files import (
    Packet,
    open_capture,
)
from wirekit.errors import WireError

FRAME = packet("net.ethernet", ethernet())
RAW = packet("net.ipv4", ipv4())
Write = Callable[[bytes], Path]


def read(path: Path) -> tuple[list[Packet], WireError | None]:
    with open_capture(path) as capture:
        return list(capture.packets()), capture.damage


def whole(order: str, kind: str) -> tuple[bytes, list[int]]:
    """A capture of three packets, and where its records end."""
    if kind == "pcap":
        packets = [FRAME, b"abc", FRAME]
        ends = [24]
        for data in packets:
            ends.append(ends[-1] + 16 + len(data))
        return pcap(*packets, order=order), ends
    parts = [
        section_header(order, option(2, "x")),
        interface(order),
        enhanced(order, FRAME, 1),
        block(order, "SIMPLE_PACKET", {"data": "616263"}),
        enhanced(order, FRAME, 2, options=[option(1, "seen"), option(0, "")]),
        block(order, "INTERFACE_STATISTICS", {"timestamp_high": 0, "timestamp_low": 0}),
    ]
    ends = [sum(map(len, parts[:number])) for number in range(len(parts) + 1)]
    return b"".join(parts), ends
