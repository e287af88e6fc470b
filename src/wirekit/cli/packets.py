"""A network packet that was pasted whole: what stands in front of its payload is taken off, and said."""

from __future__ import annotations

from typing import NamedTuple

from wirekit.capture.files import Packet, dissect
from wirekit.capture.tcp import Segment
from wirekit.cli.common import plural
from wirekit.engine import Decoded, decode
from wirekit.schemas.net.link import LINKS

PADDED = 64  # bytes that Ethernet fills up a packet to, with its checksum


class Payload(NamedTuple):
    """What a packet carries.

    Attributes:
        data: the bytes behind the TCP header.
        text: what was in front of them, for readers.
    """

    data: bytes
    text: str


def payload_of(data: bytes) -> Payload | None:
    """The payload if the bytes are one TCP packet, beginning with its link layer or with IP; None for others.

    The lengths of IP must cover the bytes, but for what Ethernet fills up, and the checksum of IPv4 be right, or 0 as
    where the network card computes it. A packet of which the end is missing counts if its checksum is right.
    """
    for link_type in {name: number for number, name in LINKS.items()}.values():
        decoded = decode(data, f"net.{LINKS[link_type]}")
        if not _fits(decoded):
            continue
        segment = dissect(Packet(0, 0, link_type, data, 0, len(data), 1))
        if isinstance(segment, Segment):
            return Payload(segment.payload, _text(decoded, segment))
    return None


def _fits(decoded: Decoded) -> bool:
    if decoded.error is not None or (decoded.value.trailer and len(decoded.data) > PADDED):
        return False
    checks = {check.kind: check for check in decoded.checks}
    checksum, cut = checks.get("internet"), "length" in checks and checks["length"].status == "bad"
    if checksum is None:
        return not cut
    return checksum.status == "ok" or (checksum.stored == 0 and not cut)


def _text(decoded: Decoded, segment: Segment) -> str:
    layers, layer = [], decoded.value
    while hasattr(layer, "payload"):
        layers.append(type(layer).__name__)
        layer = layer.payload
    front = ", ".join(name for name in layers if name != "IP")
    missing = segment.length - len(segment.payload)
    cut = f" ({plural(missing, 'byte')} more are missing)" if missing else ""
    return (
        f"the input is a packet from {segment.source} to {segment.target} ({front}); decoded are the "
        f"{plural(len(segment.payload), 'byte')} of its payload, from byte {segment.offset} on{cut}"
    )
