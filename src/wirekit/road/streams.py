"""Groups segments to flows, and joins the bytes of both sides of each flow that is one plain connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wirekit.capture.tcp import ClosedReason, Settings
from wirekit.road.compiled import loop
from wirekit.road.packets import PORT_BITS, Packets, numbered_flows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from wirekit.road.tails import Tail

STATE = ("last", "reset", "over", "sender")
SIDE = ("begun", "start", "following", "size", "acked", "unseen", "heard", "ended", "floor")
"""The words of a flow's state are those of ``STATE``, then these of its client and of its server: time of the last
packet, of a reset or -1, of the end or -1, the side that sent first; whether a side's first byte is certain, its
handshake's sequence number or -1, that of the next byte, bytes so far, bytes acknowledged beyond them, what was
acknowledged of a side that was not captured, time of its FIN or -1, the byte in front of which not all are known."""
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
        final: of each flow, whether it has ended.
        resumed: of each flow, whether it began in an earlier window.
        offsets: (flow, side) bytes of earlier windows.
        state: of each flow, the words that the next window goes on from.
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
    final: NDArray[Any]
    resumed: NDArray[Any]
    offsets: NDArray[Any]
    state: NDArray[Any]


class Resumable(Protocol):
    """The flows of earlier windows."""

    def resume(self, streams: Streams) -> None:
        """Fills in ``odd``, ``resumed``, and of what is resumed ``client``, ``known``, ``opened``, ``state``."""

    def carried_bytes(self) -> int:
        """How many bytes of frames of earlier windows may come behind those of the window."""

    def tails(self, odd: NDArray[np.bool_], sizes: NDArray[np.int64]) -> Sequence[Tail]:
        """Bytes of earlier windows that go in front of what comes, ``sizes`` by (flow, side), of flows not ``odd``."""


def put_together(
    packets: Packets, settings: Settings, *, clock: int = 0, last: bool = True, earlier: Resumable | None = None
) -> Streams:
    """The flows of a window.

    Args:
        packets: its TCP segments.
        settings: how long to wait, as for objects.
        clock, last: as of ``wirekit.road.windows.Window``; by default the window is the whole capture.
        earlier: the flows of earlier windows.
    """
    count = packets.time.size
    numbers, flows, _ = numbered_flows(packets)
    rows = np.arange(count)
    if (np.diff(packets.time) < 0).any():
        rows = np.argsort(packets.time, kind="stable")
    begins, order = np.zeros(flows + 1, np.int64), np.zeros(count, np.int64)
    loop("group_rows")(rows, numbers, begins, order)
    first = order[begins[:-1]]
    client = _likely_clients(packets.source[first], packets.target[first], settings.server_ports)
    opened, closed, reason = (np.zeros(flows, np.int64) for _ in range(3))
    odd, known, final, resumed = (np.zeros(flows, bool) for _ in range(4))
    sizes, duplicates, counts, released = (np.zeros((flows, 2), np.int64) for _ in range(4))
    ended = np.full((flows, 2, 2), -1, np.int64)
    none, sides = np.zeros(0, np.int64), np.zeros((flows, 2), np.int64)
    state = np.zeros((flows, len(STATE) + 2 * len(SIDE)), np.int64)
    server = packets.source[first] + packets.target[first] - client
    streams = Streams(
        order, begins, odd, client, server, known, opened, closed, reason, none, sides, sides, duplicates, sides, none,
        none, none, ended, final, resumed, sides, state,
    )  # fmt: skip
    if earlier is not None:
        earlier.resume(streams)
    streams.offsets = offsets_in(state)
    kept, skipped = np.zeros(count, np.int64), np.zeros(count, np.int64)
    headers = (packets.time, packets.source, packets.sequence, packets.acknowledgment, packets.flags)
    loop("follow_streams")(
        order, begins, *headers, packets.length, packets.size, settings.idle_us, settings.hold_us, clock, last, resumed,
        state, odd, client, known, opened, closed, reason, final, sizes, duplicates, counts, released, ended, kept,
        skipped,
    )  # fmt: skip
    streams.server = packets.source[first] + packets.target[first] - client
    sizes[odd] = counts[odd] = 0
    tails = () if earlier is None else earlier.tails(odd, sizes)
    before = np.zeros((flows, 2), np.int64)
    for tail in tails:
        before[tail.flow, tail.side] = len(tail.data)
    sizes += before
    streams.offsets -= before
    streams.starts, streams.pieces = _begins(sizes), _begins(counts)
    streams.stops = streams.starts + sizes
    streams.stream = with_room(int(sizes.sum()), 0 if earlier is None else earlier.carried_bytes())
    streams.ends, streams.times, streams.ranks = (np.zeros(int(counts.sum()), np.int64) for _ in range(3))
    loop("copy_streams")(
        np.frombuffer(packets.data, np.uint8), order, begins, packets.time, packets.source, packets.begin, odd, client,
        released, streams.starts + before, streams.pieces, kept, skipped, streams.stream, streams.ends, streams.times,
        streams.ranks,
    )  # fmt: skip
    for tail in tails:
        place = streams.starts[tail.flow, tail.side]
        streams.stream[place : place + len(tail.data)] = np.frombuffer(tail.data, np.uint8)
    return streams


def silent_streams(
    client: NDArray[Any], server: NDArray[Any], known: NDArray[Any], opened: NDArray[Any], state: NDArray[Any]
) -> Streams:
    """Flows without packets in a window, with which the capture ends.

    Args:
        client, server, known, opened, state: as in ``Streams``, of plain connections that are open.
    """
    count, none = client.size, np.zeros(0, np.int64)
    zeros, sides = np.zeros(count, np.int64), np.zeros((count, 2), np.int64)
    no, yes = np.zeros(count, bool), np.ones(count, bool)
    ended = np.full((count, 2, 2), -1, np.int64)
    return Streams(
        none, np.zeros(count + 1, np.int64), no, client, server, known, opened, state[:, STATE.index("last")], zeros,
        np.zeros(0, np.uint8), sides, sides, sides, sides, none, none, none, ended, yes, yes, offsets_in(state), state,
    )  # fmt: skip


def with_room(size: int, room: int) -> NDArray[Any]:
    """Zeros, behind which ``extended`` puts up to ``room`` bytes without a copy of those in front."""
    return np.zeros(size + room, np.uint8)[:size]


def extended(stream: NDArray[Any], data: bytes) -> NDArray[Any]:
    """The bytes of ``with_room``, with others behind them."""
    size, added = stream.size + len(data), np.frombuffer(data, np.uint8)
    if stream.base is None or stream.base.size < size:
        return np.append(stream, added)
    whole: NDArray[Any] = stream.base[:size]
    whole[stream.size :] = added
    return whole


def offsets_in(state: NDArray[Any]) -> NDArray[Any]:
    """(flow, side) bytes so far, as states say it."""
    return state[:, [word(side, "size") for side in range(2)]]


def word(side: int, name: str) -> int:
    """The place of a side's word in the state of a flow."""
    return len(STATE) + side * len(SIDE) + SIDE.index(name)


def _likely_clients(source: NDArray[Any], target: NDArray[Any], server_ports: frozenset[int]) -> NDArray[Any]:
    """Which endpoint is the client where no handshake tells, from the first packet of each flow; as objects guess."""
    ports = [ends & (1 << PORT_BITS) - 1 for ends in (source, target)]
    known = [np.isin(each, list(server_ports)) for each in ports]
    from_server = np.where(known[0] != known[1], known[0], ports[0] < ports[1])
    return np.where(from_server, target, source)


def _begins(sizes: NDArray[Any]) -> NDArray[Any]:
    """Where each begins when all stand one after the other."""
    return (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
