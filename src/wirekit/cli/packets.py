"""Pasted network packets: removes the headers before the payload, and reports them."""

from __future__ import annotations

from typing import Any, NamedTuple

from wirekit.capture import tcp
from wirekit.capture.endpoints import host_and_port
from wirekit.capture.files import Packet, dissect
from wirekit.capture.follow import BEGAN_BEFORE, follow
from wirekit.capture.links import Choice, Missing
from wirekit.conversation import Frame, Quarantined
from wirekit.decoding import decode, frames
from wirekit.engine import Decoded
from wirekit.errors import plural
from wirekit.schemas.net.link import LINKS

PADDED = 64  # bytes that Ethernet fills up a packet to, with its checksum


class Payload(NamedTuple):
    """A TCP packet.

    Attributes:
        segment: the addresses, the sequence number and the bytes after the TCP header.
        text: a description of the headers before the payload.
    """

    segment: tcp.Segment
    text: str


def payload_of(data: bytes, number: int = 1) -> Payload | None:
    """The payload if the bytes are one TCP packet, beginning with its link layer or with IP; None for others.

    The lengths of IP must cover the bytes, except for Ethernet padding. The checksum of IPv4 must be right, or 0 as
    if the network card computes it. A truncated packet is accepted if its checksum is right.

    Args:
        data: the bytes.
        number: the number of the packet, used as its time.
    """
    for link_type in {name: number for number, name in LINKS.items()}.values():
        decoded = decode(data, f"net.{LINKS[link_type]}")
        if not _fits(decoded):
            continue
        segment = dissect(Packet(number, number * 1000, link_type, data, 0, len(data), number))
        if isinstance(segment, tcp.Segment):
            return Payload(segment, _text(decoded, segment))
    return None


def _fits(decoded: Decoded) -> bool:
    if decoded.error is not None or (decoded.value.trailer and len(decoded.data) > PADDED):
        return False
    checks = {check.kind: check for check in decoded.checks}
    checksum, is_cut = checks.get("internet"), "length" in checks and checks["length"].status == "bad"
    if checksum is None:
        return not is_cut
    return checksum.status == "ok" or (checksum.stored == 0 and not is_cut)


def _text(decoded: Decoded, segment: tcp.Segment) -> str:
    layers, layer = [], decoded.value
    while hasattr(layer, "payload"):
        layers.append(type(layer).__name__)
        layer = layer.payload
    headers = ", ".join(name for name in layers if name != "IP")
    missing = segment.length - len(segment.payload)
    remark = f" ({plural(missing, 'byte')} more are missing)" if missing else ""
    payload = f"{plural(len(segment.payload), 'byte')} of payload from byte {segment.offset} on{remark}"
    return f"from {segment.source} to {segment.target} ({headers}): {payload if segment.length else 'no payload'}"


class Piece(NamedTuple):
    """A frame of a connection, or bytes that are not a frame.

    Attributes:
        number: the number of the packet with its last byte.
        decoded: the frame; None for other bytes.
        text: why the bytes are not decoded, otherwise "".
    """

    number: int
    decoded: Decoded | None
    text: str = ""


def followed(segments: list[tcp.Segment], protocol: str) -> list[Piece]:
    """The frames of the connections of some packets, in the order of the packets.

    Args:
        segments: the segments of results of ``payload_of``.
        protocol: the protocol of the connections; "" to recognise it.
    """
    pieces = _follow(segments, protocol, frozenset())
    if protocol and not all(map(_clean, pieces)):  # the server may have the higher port
        ports = [[host_and_port(end)[1] for end in (each.source, each.target)] for each in segments]
        turned = _follow(segments, protocol, frozenset(map(max, ports)))
        pieces = max(pieces, turned, key=lambda each: sum(map(_clean, each)))
    return pieces


def _clean(piece: Piece) -> bool:
    return piece.decoded is not None and piece.decoded.clean


def _follow(segments: list[tcp.Segment], protocol: str, server_ports: frozenset[int]) -> list[Piece]:
    pieces = []
    for link, item in follow(segments, Choice(protocol), tcp.Settings(server_ports=server_ports)):
        if isinstance(item, Frame):
            pieces.append(Piece(item.time_us or 0, item.decoded, item.wrong or ""))
        elif isinstance(item, Quarantined):
            reason = item.reason.removesuffix(BEGAN_BEFORE)
            text = f"{plural(len(item.data), 'byte')} from {link.addresses(item.side)[0]} not decoded: {reason}"
            pieces.append(Piece(item.time_us or 0, None, text))
        elif isinstance(item, Missing):
            text = f"{plural(item.length, 'byte')} from {link.addresses(item.side)[0]} missing: {item.reason}"
            pieces.append(Piece(item.time_us or 0, None, text))
    return sorted(pieces, key=lambda piece: piece.number)


def joined(segments: list[tcp.Segment], schema: str, context: dict[str, Any]) -> list[Piece]:
    """The bytes of each direction in the order of their sequence numbers, decoded by one schema up to a gap."""
    connections = tcp.Connections()
    runs: list[tuple[tcp.Data, bytearray]] = []  # the last event of a run and all its bytes
    last: dict[tuple[int, str], int] = {}  # the run of a direction
    for number, event in [*connections.read(segments), *connections.finish()]:
        if not isinstance(event, tcp.Data):
            continue
        direction = number, event.direction
        run = last.get(direction, -1)
        if run >= 0 and runs[run][0].stream_offset + len(runs[run][0].data) == event.stream_offset:
            runs[run] = event, runs[run][1] + event.data
        else:
            last[direction] = len(runs)
            runs.append((event, bytearray(event.data)))
    runs.sort(key=lambda run: run[0].time_us)
    return [Piece(event.time_us, each) for event, data in runs for each in frames(schema, bytes(data), context=context)]
