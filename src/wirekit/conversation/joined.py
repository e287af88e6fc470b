"""Recognises the protocol of a connection whose first bytes are not a whole frame, as of one joined in the middle."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wirekit.compiler.generated import by_key
from wirekit.conversation.dialogue import CALL, LARGEST_HEAD, LARGEST_PROBE, LARGEST_SEARCHED, LEAST_BEGUN
from wirekit.conversation.events import SIDES
from wirekit.conversation.recognition import (
    LEAST_EVIDENCE,
    Recognised,
    after_header,
    frame_fits,
    knows_body,
    layouts_fit,
    recognise,
    server_proves,
)
from wirekit.decoding import decode, frame_size
from wirekit.errors import WireError
from wirekit.fitting import begins
from wirekit.registry import Protocol, registry

if TYPE_CHECKING:
    from wirekit.compiler.heading import Heading

RECOGNISE_WITHIN = 64 * 1024
"""The most bytes by which the protocol of a connection is recognised; as many of each side are searched for frames."""
LEAST_INSIDE = 9
"""The size of the smallest frame that is searched for, bytes."""
MOST_SHORT = 4096
"""The number of short frames whose fit to a protocol is cached."""
CREDIT_INSIDE = 2
FIRST_CREDIT_INSIDE = 1024


def recognise_inside(
    client: bytes, server: bytes, *, settled: bool = False, names: tuple[str, ...] = ()
) -> Recognised | None:
    """The protocol of a connection that was joined in the middle of a frame; None if no frame is found in the bytes.

    The first ``RECOGNISE_WITHIN`` bytes of each direction are searched for frames of each protocol; the search may cost
    ``CREDIT_INSIDE`` for each of these bytes. If no whole frame is found and the bytes are ``settled``, a frame that
    begins in them suffices.
    """
    from wirekit.compiler.heading import heading

    begun = None
    for protocol in registry.with_stream():
        if names and protocol.name not in names:
            continue
        begin, dialogue = heading(protocol.stream("client"), protocol.limits.frame), protocol.follow()
        for side, data in zip(SIDES, (client, server), strict=True):
            head = data[:RECOGNISE_WITHIN]
            credit = FIRST_CREDIT_INSIDE + CREDIT_INSIDE * len(head)
            for match in begin.pattern.finditer(head, 0 if settled else 1):
                if credit < 0:
                    break
                start = match.start()
                credit -= CALL
                size = begin.frame_size(head, start) or _size(head[start : start + LARGEST_HEAD], protocol)
                is_cut = size > len(head) - start
                if size > LARGEST_SEARCHED or size < LEAST_INSIDE or (is_cut and not (settled and begun is None)):
                    continue
                credit -= CALL
                if not dialogue.plausible("client", head[start : start + min(size, LARGEST_HEAD)], size):
                    continue
                if is_cut:
                    credit -= LARGEST_PROBE
                    sender = _sender(protocol, side, head[start : start + LARGEST_PROBE], size)
                    begun = _begun(protocol, swapped=sender != side) if sender else None
                    continue
                credit -= size
                if any(frame_fits(protocol, "client", head[start : start + size], False)):
                    behind = data[start:]
                    return recognise(*((behind, b"") if side == "client" else (b"", behind)), names=(protocol.name,))
    return begun


def recognise_begun(client: bytes, server: bytes) -> Recognised | None:
    """The protocol of a connection with a handshake by a first frame that is not whole; None if no protocol fits."""
    for side, data in zip(SIDES, map(after_header, (client, server)), strict=True):
        for sought in sought_frames() if len(data) >= LEAST_BEGUN else ():
            protocol, size = sought.protocol, sought.begun(data)
            if size > len(data) and _sender(protocol, side, data[:LARGEST_PROBE], size, side) == side:
                return _begun(protocol, swapped=False)
    return None


def recognise_piece(side: str, data: bytes) -> Recognised | None:
    """The protocol of a connection by a frame at the start of a piece of its bytes; None if none fits.

    It is for connections whose first bytes are not whole or fit no protocol, such as those of a proxy. The frame must
    be one that only one side sends.
    """
    for sought in sought_frames():
        protocol, size = sought.protocol, sought.begun(data)
        if LEAST_EVIDENCE <= size <= len(data) or LEAST_BEGUN <= len(data) < size:
            frame = data[: size if size <= len(data) else LARGEST_PROBE]
            sender = _sender(protocol, side, frame, size)
            if sender:
                return _begun(protocol, swapped=sender != side)
    return None


def _begun(protocol: Protocol, *, swapped: bool) -> Recognised:
    return Recognised(protocol.name, swapped, True, f"1 frame begins as {protocol.name}")


def _sender(protocol: Protocol, side: str, frame: bytes, size: int, unknown: str = "") -> str:
    """Which side sends a frame of ``size`` bytes, judging by its first bytes; "" if it is none of the protocol.

    Args:
        protocol, frame, size: the protocol, and the frame or its first bytes.
        side: the direction of the bytes.
        unknown: the result for a frame that either side may send, with a known body or identified by its header.
    """
    for proof in map(protocol.key, protocol.recognised_by):
        if begins(frame, proof, size):
            dialogue = protocol.follow()
            sender = dialogue.sender(decode(frame, proof))
            is_known = knows_body(protocol, side, frame) or dialogue.headed(side, frame, side_known=True)
            return sender or (unknown if is_known else "")
    return ""


def recognise_joined(client: bytes, server: bytes, *, settled: bool, names: tuple[str, ...] = ()) -> Recognised:
    """``recognise`` for a connection that was joined in the middle, possibly of a frame.

    A response may read like a request. Unless ``settled``, bytes of one side alone do not show that client and server
    are exchanged, nor that they begin inside a frame.
    """
    recognised = recognise(client, server, names=names, rivals=False, settled=settled)
    heard = settled or (client and server)
    if recognised.protocol:
        return recognised if heard or not recognised.swapped else replace(recognised, protocol="", certain=False)
    return (recognise_inside(client, server, settled=settled, names=names) if heard else None) or recognised


class Prospects:
    """Decides when to try to recognise a connection that was joined in the middle, as its bytes arrive piece by piece.

    Recognition needs whole frames. Each place where a frame may begin is stored; the frame is examined once, when it is
    whole. It must be at the start of a side's bytes, or fit a protocol. If there are more places than
    ``recognise_inside`` would examine, every attempt is made.
    """

    __slots__ = ("_always", "_searched")

    def __init__(self) -> None:
        self._searched: dict[str, _Searched] = {}
        self._always = False

    def grown(self, heads: Mapping[str, bytearray]) -> bool:
        """Whether to try recognition on the first bytes of both sides, which may have grown since the last call."""
        worth = False
        for side, data in heads.items():
            if not data or self._always:
                continue
            searched = self._searched.get(side)
            if searched is None:
                searched = self._searched[side] = _Searched(sought_frames())
            if len(data) > searched.size:
                worth |= self._search(searched, data)
        return worth or self._always

    def _search(self, searched: _Searched, data: bytearray) -> bool:
        """Continues the search in the bytes of a side."""
        sought, begun, places, costs = searched.sought, searched.begun, searched.places, searched.costs
        searched.size = size = len(data)
        for number, each in enumerate(sought):
            begin = each.heading
            for match in begin.pattern.finditer(data, places[number]):
                start = match.start()
                length = begin.frame_size(data, start)
                if length is None:
                    self._always = True
                    return True
                costs[number] += CALL
                heapq.heappush(begun, (start + length, length, number))
            if size >= begin.size + places[number]:
                places[number] = size - begin.size + 1
        worth = False
        while begun and begun[0][0] <= size:
            end, length, number = heapq.heappop(begun)
            costs[number] += CALL + length
            worth = worth or end == length or sought[number].fits(bytes(data[end - length : end]))
        self._always = max(costs) > FIRST_CREDIT_INSIDE + CREDIT_INSIDE * min(size, RECOGNISE_WITHIN)
        return worth


class _Searched:
    """The progress of the search in the bytes of a side.

    Attributes:
        sought: the kinds of frames to search for.
        places, costs: for each of them, where the search continues, and its cost so far.
        begun: a heap of (end, size, number in ``sought``) for frames that may have begun.
        size: number of bytes at the last call.
    """

    __slots__ = ("begun", "costs", "places", "size", "sought")

    def __init__(self, sought: list[Sought]) -> None:
        self.sought = sought
        self.places = [0] * len(sought)
        self.costs = [0] * len(sought)
        self.begun: list[tuple[int, int, int]] = []
        self.size = 0


@dataclass(frozen=True, slots=True)
class Sought:
    """Searches for frames of a layout by which a protocol is recognised; ``short`` caches whether short frames fit."""

    protocol: Protocol
    heading: Heading
    short: dict[bytes, bool]

    def begun(self, data: bytes) -> int:
        """The size of the frame that may begin with the first byte of some bytes; 0 if none does."""
        begin = self.heading
        if not begin.pattern.match(data):
            return 0
        return begin.frame_size(data, 0) or _size(data[:LARGEST_HEAD], self.protocol)

    def fits(self, frame: bytes) -> bool:
        """Whether a frame may identify the protocol of a stream, for either sender.

        Short ones are often the same in many connections, such as zeros.
        """
        if len(frame) > LARGEST_HEAD:
            return self._fits(frame)
        is_fitting = self.short.get(frame)
        if is_fitting is None:
            if len(self.short) >= MOST_SHORT:
                self.short.clear()
            is_fitting = self.short[frame] = self._fits(frame)
        return is_fitting

    def _fits(self, frame: bytes) -> bool:
        is_fitting = not self.heading.overruns(frame) and layouts_fit(self.protocol, frame)[1]
        dialogue = self.protocol.follow()
        return any(
            (is_fitting and dialogue.schema(side, frame)[2] is None) or dialogue.headed(side, frame, side_known=False)
            for side in (SIDES if server_proves(self.protocol) else SIDES[:1])
        )


@by_key
def _short_frames(key: str) -> dict[bytes, bool]:
    """The cache of short frames of a layout: whether each identifies its protocol."""
    return {}


def sought_frames() -> list[Sought]:
    """The kinds of frames by which protocols are recognised.

    A capture may have 100,000 connections, so the list is kept while the registry has the same protocols.
    """
    from wirekit.compiler.heading import heading

    protocols = registry.with_stream()
    if _sought_of.get("protocols") is not protocols:
        _sought_of["protocols"] = protocols
        _sought_of["frames"] = [
            Sought(protocol, heading(key, protocol.limits.frame), _short_frames(key))
            for protocol in protocols
            for key in dict.fromkeys(map(protocol.stream, SIDES if server_proves(protocol) else SIDES[:1]))
        ]
    frames: list[Sought] = _sought_of["frames"]
    return frames


_sought_of: dict[str, Any] = {}


def _size(head: bytes, protocol: Protocol) -> int:
    """Size of a frame according to its own length; 0 if the length is invalid."""
    try:
        return frame_size(head, protocol.stream("client"), limits=protocol.limits) or 0
    except WireError:
        return 0
