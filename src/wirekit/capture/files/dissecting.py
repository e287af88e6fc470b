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
from wirekit.schemas.net import ip, link, tcp, tunnels
from wirekit.values import Record, Symbol

MOST_LAYERS = 13
"""Layouts of a packet that are read: a frame, and the UDP and VXLAN headers and the frames of four tunnels in it."""

# The classes of decoded layers, one per layout.
_TCP = tcp.TCP.record
_IPV4 = ip.IPV4.record
_NETWORK = (_IPV4, ip.IPV6.record)
_KEYS = {number: f"net.{name}" for number, name in link.LINKS.items()}
_PACKETS = {*_KEYS.values()}
_FOLLOWING = {symbol: f"net.{name}" for symbol, name in tunnels.FOLLOWING.items()}
_SELECTORS = ("type", "protocol", "next_header", "family", "destination_port", "protocol_type")


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
    """The TCP segment in a packet, in the innermost tunnel if there are some, or the reason why there is none.

    Args:
        packet: a captured packet.
        file: ordinal of its capture file.
    """
    key = _KEYS.get(packet.link_type)
    if key is None:
        return _skipped(packet, f"link type {packet.link_type}")
    data, offset, reason = packet.data, packet.offset, ""
    for _ in range(MOST_LAYERS):
        decoded = decode(data, key, offset=offset)
        if decoded.error is not None:
            cut = len(packet.data) < packet.original_length
            if not cut and key not in _PACKETS:
                break  # such as a datagram that is no tunnel
            return _skipped(packet, "cut" if cut else "damaged", str(decoded.error))
        layer = decoded.value
        end = offset + decoded.consumed - len(layer.get("trailer", b""))
        network = None
        while not isinstance(layer, _TCP):
            if isinstance(layer, _NETWORK):
                network = layer
            inner = layer.payload
            if not isinstance(inner, Record):
                break
            layer = inner
        else:
            return _segment(packet, file, decoded, network, layer, end)
        reason, following = _following(layer, key)
        if following is None:
            break
        data, key, offset = inner, following, end - len(inner)
    return _skipped(packet, reason)


def _segment(
    packet: Packet, file: int, decoded: Decoded, network: Record | None, layer: Record, end: int
) -> Segment | Skipped:
    if network is None:
        return _skipped(packet, "damaged", "TCP without IP")
    payload: bytes = layer.payload
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


def _following(layer: Record, key: str) -> tuple[str, str | None]:
    """Why no payload of the last layer of a layout was decoded, and the layout that decodes it, if there is one."""
    fragment = layer.get("fragment")
    if fragment is not None and (fragment.fragment_offset or fragment.more_fragments):
        return FRAGMENT, None
    for field in _SELECTORS:
        value = layer.get(field)
        if isinstance(value, Symbol):
            break
    else:
        field, value = "version", layer.get("start", layer).get("version")
    if isinstance(value, Symbol) and value.symbol:
        return value.symbol.lower(), _FOLLOWING.get(value.symbol)
    if key not in _PACKETS:
        name = key.removeprefix("net.")
        return name, "net.ethernet" if name in tunnels.FRAMES else None
    return f"ip version {value}" if field == "version" else f"{field} 0x{int(value):x}", None


def _skipped(packet: Packet, reason: str, detail: str = "") -> Skipped:
    return Skipped(packet.number, packet.time_us, packet.offset, len(packet.data), reason, detail)
