"""Extracts the TCP segment of a packet, or the reason why it has none."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from wirekit.capture.files.items import FRAGMENT, Packet, Place, Skipped
from wirekit.capture.files.opening import Capture
from wirekit.capture.tcp import ACK, FIN, PSH, RST, SYN, Segment
from wirekit.decoding import decode
from wirekit.engine import Decoded
from wirekit.errors import Damaged
from wirekit.schemas.net import ip, link, tcp
from wirekit.values import Record, Symbol

# The classes of decoded layers, one per layout.
_TCP = tcp.TCP.record
_IPV4 = ip.IPV4.record
_NETWORK = (_IPV4, ip.IPV6.record)
_KEYS = {number: f"net.{name}" for number, name in link.LINKS.items()}


def segments(
    capture: Capture, file: int = 0, *, start: int | Place = 0, end: int | None = None
) -> Iterator[Segment | Skipped | Damaged]:
    """The TCP segments of a capture, and its other items; ``capture.skipped`` counts packets without a segment.

    Args:
        capture: an open capture.
        file: ordinal of the capture file, for the segments.
        start: as for ``Capture.items``.
        end: as for ``Capture.items``.
    """
    for item in capture.items(start, end):
        dissected = item if isinstance(item, Damaged) else dissect(item, file)
        if isinstance(dissected, Skipped):
            capture.skipped[dissected.reason] += 1
        yield dissected


def dissect(packet: Packet, file: int = 0) -> Segment | Skipped:
    """The TCP segment in a packet, or the reason why there is none.

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
        _endpoint(network.source, layer.source_port),
        _endpoint(network.destination, layer.destination_port),
        layer.sequence_number,
        layer.acknowledgment_number,
        FIN * flags.fin | SYN * flags.syn | RST * flags.rst | PSH * flags.psh | ACK * flags.ack,
        payload,
        end - len(payload),
        file,
        len(payload) + _missing(packet, network, decoded),
    )


def _missing(packet: Packet, network: Record, decoded: Decoded) -> int:
    """Number of payload bytes that the IP lengths announce beyond the captured bytes."""
    if (network.total_length if isinstance(network, _IPV4) else network.payload_length) == 0:
        return max(packet.original_length - len(packet.data), 0)
    if decoded.clean:
        return 0
    checks: list[Any] = decoded.checks
    return sum(check.stored - check.computed for check in checks if check.kind == "length" and check.status == "bad")


def endpoint_text(address: bytes, port: int) -> str:
    """An IPv4 or IPv6 address with its port, in the form that segments use."""
    if len(address) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, address)}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{port}"


_endpoint = lru_cache(maxsize=1 << 16)(endpoint_text)


def _reason(layer: Record) -> str:
    """Why no payload of this layer was decoded."""
    fragment = layer.get("fragment")
    if fragment is not None and (fragment.fragment_offset or fragment.more_fragments):
        return FRAGMENT
    for field in ("type", "protocol", "next_header", "family"):
        value = layer.get(field)
        if isinstance(value, Symbol):
            return value.symbol.lower() if value.symbol else f"{field} 0x{int(value):x}"
    return f"ip version {layer.start.version}"


def _skipped(packet: Packet, reason: str, detail: str = "") -> Skipped:
    return Skipped(packet.number, packet.time_us, packet.offset, len(packet.data), reason, detail)
