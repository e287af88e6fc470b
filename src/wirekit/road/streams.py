"""Segments to flows, and of each flow that is one plain connection the bytes of both sides put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.capture.tcp import ClosedReason, Settings
from wirekit.road.compiled import loop
from wirekit.road.packets import PORT_BITS, Packets, numbered_flows

if TYPE_CHECKING:
    from numpy.typing import NDArray

REASONS: tuple[ClosedReason, ...] = ("end of capture", "fin", "rst")


@dataclass(slots=True)
class Streams:
    """The flows of a capture: all segments between two endpoints.

    Attributes:
        order, begins: the rows of ``Packets``, by flow and time; flow ``n`` has ``order[begins[n]:begins[n + 1]]``.
        odd: of each flow, whether it is anything but one connection with all its bytes in order. Of an odd flow,
            nothing of what follows counts.
        client, server: of each flow, its endpoints.
        known: of each flow, whether it has a handshake.
        opened, closed, reason: times in microseconds since the epoch, and the place in ``REASONS``.
        stream: the bytes of all sides, one after the other.
        starts, stops: (flow, side) where a side's bytes lie in it; side 0 is the client's.
        duplicates: (flow, side) bytes that came again.
        pieces: (flow, side) the first of a side's pieces: what a packet had that was new.
        ends, times, ranks: of each piece, where it ends in ``stream``, its time, and a number that orders all pieces
            and ends of a flow as objects give them.
        ended: (flow, side) rank and time of the side's FIN, or -1.
    """

    order: NDArray[Any]
    begins: NDArray[Any]
    odd: NDArray[Any]
    client: NDArray[Any]
    server: NDArray[Any]
    known: NDArray[Any]
    opened: NDArray[Any]
    closed: NDArray[Any]
    reason: NDArray[Any]
    stream: NDArray[Any]
    starts: NDArray[Any]
    stops: NDArray[Any]
    duplicates: NDArray[Any]
    pieces: NDArray[Any]
    ends: NDArray[Any]
    times: NDArray[Any]
    ranks: NDArray[Any]
    ended: NDArray[Any]


def put_together(data: Any, packets: Packets, settings: Settings) -> Streams:
    """The flows of a capture.

    Args:
        data: the capture, which the packets were read from.
        packets: its TCP segments.
        settings: how long to wait, as for objects.
    """
    count = packets.time.size
    numbers, flows, _ = numbered_flows(packets)
    rows = np.arange(count)
    if (np.diff(packets.time) < 0).any():
        rows = np.argsort(packets.time, kind="stable")
    begins, order = np.zeros(flows + 1, np.int64), np.zeros(count, np.int64)
    loop("group_rows")(rows, numbers, begins, order)
    odd, known = np.zeros(flows, bool), np.zeros(flows, bool)
    first = order[begins[:-1]]
    client = _likely_clients(packets.source[first], packets.target[first], settings.server_ports)
    opened, closed, reason = (np.zeros(flows, np.int64) for _ in range(3))
    sizes, duplicates, counts, released = (np.zeros((flows, 2), np.int64) for _ in range(4))
    ended = np.full((flows, 2, 2), -1, np.int64)
    kept, skipped = np.zeros(count, np.int64), np.zeros(count, np.int64)
    headers = (packets.time, packets.source, packets.sequence, packets.acknowledgment, packets.flags)
    loop("follow_streams")(
        order, begins, *headers, packets.length, packets.size, settings.idle_us, settings.hold_us, odd, client, known,
        opened, closed, reason, sizes, duplicates, counts, released, ended, kept, skipped,
    )  # fmt: skip
    sizes[odd] = counts[odd] = 0
    starts, pieces = _begins(sizes), _begins(counts)
    stream = np.zeros(int(sizes.sum()), np.uint8)
    ends, times, ranks = (np.zeros(int(counts.sum()), np.int64) for _ in range(3))
    loop("copy_streams")(
        np.frombuffer(data, np.uint8), order, begins, packets.time, packets.source, packets.begin, odd, client,
        released, starts, pieces, kept, skipped, stream, ends, times, ranks,
    )  # fmt: skip
    server = packets.source[first] + packets.target[first] - client
    return Streams(
        order, begins, odd, client, server, known, opened, closed, reason, stream, starts, starts + sizes, duplicates,
        pieces, ends, times, ranks, ended,
    )  # fmt: skip


def _likely_clients(source: NDArray[Any], target: NDArray[Any], server_ports: frozenset[int]) -> NDArray[Any]:
    """Which endpoint is the client where no handshake tells, from the first packet of each flow; as objects guess."""
    ports = [ends & (1 << PORT_BITS) - 1 for ends in (source, target)]
    known = [np.isin(each, list(server_ports)) for each in ports]
    from_server = np.where(known[0] != known[1], known[0], ports[0] < ports[1])
    return np.where(from_server, target, source)


def _begins(sizes: NDArray[Any]) -> NDArray[Any]:
    """Where each begins when all stand one after the other."""
    return (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
