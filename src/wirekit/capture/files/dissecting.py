"""Extracts the TCP segment of a packet, or the reason why it has none."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any

from wirekit.capture.files.fragments import Fragments, Identity
from wirekit.capture.files.items import FRAGMENT, LINK_TYPE, Packet, Place, Skipped
from wirekit.capture.files.opening import Capture
from wirekit.capture.tcp import ACK, FIN, PSH, RST, SYN, Segment
from wirekit.decoding import decode
from wirekit.engine import Decoded
from wirekit.errors import Damaged, WireError
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
_FRAGMENTED = {symbol.lower(): f"net.{name}" for symbol, name in ip.FRAGMENTED.items()}
_INSIDE = {*_FRAGMENTED.values()}  # layouts of the content of IP packets
_FOLLOWING = {symbol: f"net.{name}" for symbol, name in tunnels.FOLLOWING.items()}
_IDENTIFYING = {name: attrgetter(*fields) for name, fields in tunnels.IDENTIFYING.items()}
_SELECTORS = ("type", "protocol", "next_header", "family", "destination_port", "protocol_type", "next_protocol")


def segments(
    capture: Capture,
    file: int = 0,
    *,
    start: int | Place = 0,
    end: int | None = None,
    fragments: Fragments | None = None,
) -> Iterator[Segment | Skipped | Damaged]:
    """The TCP segments of a capture, and its other items; ``capture.skipped`` counts packets without a segment.

    Args:
        capture: an open capture.
        file: ordinal of the capture file, for the segments.
        start: as for ``Capture.items``.
        end: as for ``Capture.items``.
        fragments: those of the packets before ``start``, or of earlier files; receives those at the end.
    """
    ends = fragments is None
    fragments = Fragments() if fragments is None else fragments
    for item in capture.items(start, end):
        dissected = item if isinstance(item, Damaged) else dissect(item, file, fragments)
        if isinstance(dissected, Skipped):
            capture.skipped[dissected.reason] += 1
        if dissected is not None:
            yield dissected
        if fragments.lost:
            yield from count_lost(capture, fragments.take_lost())
    if ends:
        yield from count_lost(capture, fragments.end())


def count_lost(capture: Capture, lost: list[Skipped]) -> list[Skipped]:
    """The packets with fragments of datagrams that were given up, after counting them in ``capture.skipped``."""
    capture.skipped.update(each.reason for each in lost)
    return lost


def dissect(packet: Packet, file: int = 0, fragments: Fragments | None = None) -> Segment | Skipped | None:
    """The TCP segment in a packet, in the innermost tunnel if there are some, or the reason why there is none.

    Args:
        packet: a captured packet.
        file: ordinal of its capture file.
        fragments: takes the fragments of IP datagrams; by default they have no segment.

    Returns:
        None for a packet that ``fragments`` has taken; the segment of a datagram comes with its last fragment.
    """
    key = _KEYS.get(packet.link_type)
    if key is None:
        return _skipped(packet, f"{LINK_TYPE} {packet.link_type}")
    data, offset, reason, detail = packet.data, packet.offset, "", ""
    network: Record | None = None
    layouts: list[Record] = []  # that were decoded
    earlier: list[Skipped] = []  # the packets before this one with fragments of its datagram
    place: int | None = None  # of the fragment in this packet, if it makes its datagram whole
    for _ in range(MOST_LAYERS):
        decoded, padded = decode(data, key, offset=offset), packet
        if decoded.error is not None:
            missing = packet.original_length - len(packet.data)
            if missing > 0 or key in _PACKETS or key in _INSIDE:
                reason, detail = "cut" if missing > 0 else "damaged", str(decoded.error)
            if missing <= 0 or not _ends_in_options(decoded.value, decoded.error):
                break  # such as a datagram that is not a tunnel
            options = bytes(min(missing, tcp.MOST_OPTIONS))
            decoded, padded = decode(data + options, key, offset=offset), packet._replace(data=packet.data + options)
            if decoded.error is not None:
                break
        layer = decoded.value
        layouts.append(layer)
        end = offset + decoded.consumed - len(layer.get("trailer", b""))
        if key not in _INSIDE:
            network = None
        while not isinstance(layer, _TCP):
            if isinstance(layer, _NETWORK):
                network = layer
            inner = layer.payload
            if not isinstance(inner, Record):
                break
            layer = inner
        else:
            if network is None:
                reason, detail = "damaged", "TCP without IP"
                break
            segment = _segment(padded, file, decoded, network, layer, end)
            if padded is not packet:
                return segment._replace(payload=b"", offset=offset + len(data))
            return segment if place is None else segment._replace(offset=place)
        reason, following = _following(layer, key)
        fragment = layer.get("fragment")
        if fragment is not None and (fragment.fragment_offset or fragment.more_fragments):
            following = _FRAGMENTED.get(reason, following)
            reason, skipped = FRAGMENT, _skipped(packet, FRAGMENT)
            if following is None or fragments is None or network is None or _missing(packet, network, decoded):
                break
            protocol = int(layer.protocol if layer is network else layer.next_header)
            identity = Identity(_networks(layouts), protocol, layer.identification)
            begin, more = fragment.fragment_offset * ip.FRAGMENT_UNIT, bool(fragment.more_fragments)
            datagram = fragments.add(identity, begin, inner, [*earlier, skipped], more=more)
            if datagram is None:
                return None
            place = end - len(inner) if place is None else place
            data, key, offset = datagram[0], following, place
            earlier = datagram[1]
            continue
        if following is None:
            break
        data, key, offset = inner, following, end - len(inner)
    if fragments is not None:
        fragments.lost += earlier
    return _skipped(packet, reason, detail)


def _ends_in_options(layer: Any, error: WireError) -> bool:
    """Whether a packet was decoded up to the options of TCP."""
    while isinstance(layer, Record) and not isinstance(layer, _TCP):
        layer = layer.get("payload")
    return isinstance(layer, _TCP) and error.path.rpartition(".")[2] == "options"


def _segment(packet: Packet, file: int, decoded: Decoded, network: Record, layer: Record, end: int) -> Segment:
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


def _networks(layouts: list[Record]) -> tuple[Any, ...]:
    """The names and the identifying fields of the layers of a packet."""
    identity: list[Any] = []
    for layout in layouts:
        layer: Any = layout
        while isinstance(layer, Record):
            name = type(layer).__name__
            if name in _IDENTIFYING:
                identity += name, _IDENTIFYING[name](layer)
            layer = layer.get("payload")
    return tuple(identity)


def endpoint_text(address: bytes, port: int) -> str:
    """An IPv4 or IPv6 address with its port, in the form that segments use."""
    if len(address) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, address)}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{port}"


_endpoint = lru_cache(maxsize=1 << 16)(endpoint_text)


def _following(layer: Record, key: str) -> tuple[str, str | None]:
    """Why no payload of the last layer of a layout was decoded, and the layout that decodes it, if there is one."""
    for field in _SELECTORS:
        value = layer.get(field)
        if isinstance(value, Symbol):
            break
    else:
        field, value = "version", layer.get("start", layer).get("version")
    if isinstance(value, Symbol) and value.symbol:
        return value.symbol.lower(), _FOLLOWING.get(value.symbol)
    if field == "type" and value in link.LENGTHS:
        return "llc", _FOLLOWING["LLC"]
    if key not in _PACKETS:
        name = key.removeprefix("net.")
        return name, "net.ethernet" if name in tunnels.FRAMES else None
    return f"ip version {value}" if field == "version" else f"{field} 0x{int(value):x}", None


def _skipped(packet: Packet, reason: str, detail: str = "") -> Skipped:
    return Skipped(packet.number, packet.time_us, packet.offset, len(packet.data), reason, detail)
