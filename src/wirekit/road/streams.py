"""Groups segments into flows, and concatenates the bytes of each side of the flows that are one plain connection."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wirekit.capture.tcp import ClosedReason, Settings
from wirekit.pipeline.clock_steps import set_back
from wirekit.road.compiled import loop
from wirekit.road.packets import PORT_BITS, RANKS, Packets, numbered_flows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wirekit.road.tails import Tail

STATE = ("last", "reset", "over", "sender")
SIDE = ("begun", "start", "following", "size", "acked", "unseen", "heard", "ended", "floor")
"""The words of a flow's state: those of ``STATE``, then those of ``SIDE`` for the client, then for the server.

- ``last``, ``reset``, ``over``: time of the last packet, of a reset or -1, of the end or -1.
- ``sender``: the side that sent first.
- ``begun``: whether the side's first byte is certain; ``start``: the sequence number of its handshake or -1.
- ``following``: the sequence number of the next byte; ``size``: bytes so far.
- ``acked``: bytes that are acknowledged beyond ``size``; ``unseen``, ``heard``: the acknowledged sequence number, and
  the bytes, of a side that was not captured.
- ``ended``: time of the side's FIN or -1; ``floor``: the offset before which bytes may be missing.
"""
AT_END = 1 << 62
"""The time of ``arrival`` for events that come with the end of the capture."""
LEAST = 4
"""The fewest packets for which a connection changes the road within a window."""
REASONS: tuple[ClosedReason, ...] = ("end of capture", "fin", "rst")


@dataclass(slots=True)
class Streams:
    """The flows of a capture: all segments between two endpoints.

    Attributes:
        order, begins: the rows of ``Packets``, by flow and time; flow ``n`` has ``order[begins[n]:begins[n + 1]]``.
        odd: for each flow, whether it is anything but one connection with all its bytes, which may arrive in any order.
            The attributes below are meaningless for an odd flow.
        reached: for each flow, the place in ``order`` after the packets that have been read. Of a flow that is not odd
            these are all packets, or those before the first irregular one.
        client, server: the endpoints of each flow.
        known: for each flow, whether it has a handshake.
        opened, closed, reason: times in microseconds since the epoch, and the place in ``REASONS``.
        stream: the bytes of all sides, one side after the other.
        starts, stops: (flow, side) the range of a side in ``stream``; side 0 is the client.
        duplicates: (flow, side) the number of retransmitted bytes.
        pieces: (flow, side) the number of the side's first piece. A piece is the new bytes of one packet.
        ends, times, ranks: for each piece, its end in ``stream``, its time, and a number that orders all pieces and
            ends of a flow as the objects road does.
        sources: the start of each piece in ``Packets.data``.
        before: (flow, side) the number of bytes of earlier windows before the first piece.
        ended: (flow, side) rank and time of the side's FIN, or -1.
        final: for each flow, whether it has ended.
        resumed: for each flow, whether it began in an earlier window.
        offsets: (flow, side) bytes in earlier windows.
        state: for each flow, the words from which the next window continues.
        packets: those of the window; None if there are none.
        arranged: for each place in ``order``, the row of the packet with which objects see the one that is there after
            ``put_in_order``: this packet, or the one that fills the hole before it.
        rows: for each flow, a number by which flows are ordered in all windows.
        recognised: for each flow, the rank at which objects recognise its protocol, and see all events before.
    """

    order: NDArray[Any]
    begins: NDArray[Any]
    odd: NDArray[Any]
    reached: NDArray[Any]
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
    sources: NDArray[Any]
    before: NDArray[Any]
    ended: NDArray[Any]
    final: NDArray[Any]
    resumed: NDArray[Any]
    offsets: NDArray[Any]
    state: NDArray[Any]
    packets: Packets | None = None
    arranged: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    recognised: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))

    def arrival(self, flow: int, rank: int) -> tuple[int, int]:
        """(time, place in the capture) of an event, in whose order objects see them; see ``Packets.arrival``.

        The end of the capture has the time ``AT_END``, and for each flow its row as place.
        """
        if self.packets is not None:
            rank = max(rank, int(self.recognised[flow]))
        at = rank // RANKS
        if self.packets is None or at >= self.begins[flow + 1]:
            return AT_END, int(self.rows[flow]) * RANKS + rank % RANKS
        time_us, place = self.packets.arrival(int(self.arranged[at]))
        return time_us, place + rank % RANKS

    def arrivals(self, flows: NDArray[Any], ranks: NDArray[Any]) -> NDArray[Any]:
        """``arrival`` for many events, given their flows and ranks: a row of two numbers for each."""
        if self.packets is None:
            return np.zeros((0, 2), np.int64)
        ranks = np.maximum(ranks, self.recognised[flows])
        at, end = ranks // RANKS, self.begins[flows + 1]
        times, places = self.packets.arrivals(self.arranged[np.minimum(at, end - 1)])
        at_end = at >= end
        times, places = np.where(at_end, AT_END, times), np.where(at_end, self.rows[flows] * RANKS, places)
        return np.stack([times, places + ranks % RANKS], -1)

    @contextmanager
    def shortened(self, flows: NDArray[Any], stops: NDArray[Any]) -> Iterator[None]:
        """Lets some flows end at earlier places, (flow, side), as if the window ended there."""
        before = self.stops[flows], self.final[flows], self.ended[flows]
        self.stops[flows], self.final[flows], self.ended[flows] = stops, False, -1
        yield
        self.stops[flows], self.final[flows], self.ended[flows] = before


class Resumable(Protocol):
    """The flows of earlier windows."""

    def resume(self, streams: Streams) -> None:
        """Fills in ``rows``, ``odd`` and ``resumed``.

        Also ``client``, ``known``, ``opened`` and ``state`` of resumed flows.
        """

    def carried_bytes(self) -> int:
        """The number of bytes of earlier windows that may be appended to the stream."""

    def tails(self, odd: NDArray[np.bool_], sizes: NDArray[np.int64]) -> Sequence[Tail]:
        """Removes and returns the bytes of earlier windows that come before the bytes of flows that are not odd.

        Args:
            odd: for each flow, whether it is odd.
            sizes: (flow, side) bytes in the window.
        """


def put_together(
    packets: Packets,
    settings: Settings,
    *,
    clock: int = 0,
    last: bool = True,
    earlier: Resumable | None = None,
    stretch: NDArray[Any] | None = None,
    partly: bool = False,
) -> Streams:
    """The flows of a window.

    Args:
        packets: its TCP segments.
        settings: the timeouts, the same as for objects.
        clock, last: attributes of ``wirekit.road.windows.Window``; by default the window is the whole capture.
        earlier: the flows of earlier windows.
        stretch: an attribute of ``wirekit.road.windows.Window``.
        partly: whether to read the packets before an irregular one, if there are ``LEAST``; else the flow is odd.
    """
    count = packets.time.size
    numbers, flows, _ = numbered_flows(packets)
    rows = np.arange(count)
    if (np.diff(packets.time) < 0).any():
        rows = np.lexsort((packets.time, np.cumsum(set_back(packets.time)) if stretch is None else stretch))
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
    reached = begins[1:].copy()
    streams = Streams(
        order, begins, odd, reached, client, server, known, opened, closed, reason, none, sides, sides, duplicates,
        sides, none, none, none, none, sides, ended, final, resumed, sides, state,
    )  # fmt: skip
    if earlier is not None:
        earlier.resume(streams)
    streams.offsets = offsets_in(state)
    odd |= packets.source[first] == packets.target[first]  # the addresses do not tell its sides apart
    fresh, skipped = np.zeros(count, np.int64), np.zeros(count, np.int64)
    arranged, moved = order.copy(), np.zeros(count, bool)
    headers = (packets.time, packets.source, packets.sequence, packets.acknowledgment, packets.flags)
    ignored = odd.copy()

    def follow(odd: NDArray[np.bool_]) -> None:
        loop("follow_streams")(
            arranged, moved, begins, *headers, packets.length, packets.size, settings.idle_us, settings.hold_us,
            settings.patience_us, settings.held_limit, clock, last, resumed, reached, state, odd, client, known, opened,
            closed, reason, final, sizes, duplicates, counts, released, ended, fresh, skipped,
        )  # fmt: skip

    follow(odd)
    cut = odd & ~ignored & (reached - begins[:-1] >= LEAST) & partly
    if cut.any():
        still_odd = ~cut
        follow(still_odd)
        ending = final | (ended[:, :, 0] >= 0).any(axis=1) | (state[:, STATE.index("reset")] >= 0)
        odd[cut] = (still_odd | ending)[cut]
    reached[odd] = begins[:-1][odd]
    streams.server = packets.source[first] + packets.target[first] - client
    sizes[odd] = counts[odd] = 0
    tails = () if earlier is None else earlier.tails(odd, sizes)
    before = streams.before = np.zeros((flows, 2), np.int64)
    for tail in tails:
        before[tail.flow, tail.side] = len(tail.data)
    sizes += before
    streams.offsets -= before
    streams.starts, streams.pieces = _begins(sizes), _begins(counts)
    streams.stops = streams.starts + sizes
    streams.stream = with_room(int(sizes.sum()), 0 if earlier is None else earlier.carried_bytes())
    streams.ends, streams.times, streams.ranks, streams.sources = np.zeros((4, int(counts.sum())), np.int64)
    loop("copy_streams")(
        np.frombuffer(packets.data, np.uint8), arranged, begins, reached, packets.time, packets.source, packets.begin,
        odd, client, released, streams.starts + before, streams.pieces, fresh, skipped, streams.stream, streams.ends,
        streams.times, streams.ranks, streams.sources,
    )  # fmt: skip
    streams.packets, streams.arranged, streams.recognised = packets, arranged, np.zeros(flows, np.int64)
    if moved.any():
        streams.arranged = arranged[np.maximum.accumulate(np.where(moved, 0, np.arange(count)))]
    for tail in tails:
        place = streams.starts[tail.flow, tail.side]
        streams.stream[place : place + len(tail.data)] = np.frombuffer(tail.data, np.uint8)
    return streams


def silent_streams(
    client: NDArray[Any], server: NDArray[Any], known: NDArray[Any], opened: NDArray[Any], state: NDArray[Any]
) -> Streams:
    """Flows that are open at the end of the capture and have no packets in the last window.

    Args:
        client, server, known, opened, state: attributes of ``Streams`` for these flows.
    """
    count, none = client.size, np.zeros(0, np.int64)
    zeros, sides = np.zeros(count, np.int64), np.zeros((count, 2), np.int64)
    no, yes = np.zeros(count, bool), np.ones(count, bool)
    ended = np.full((count, 2, 2), -1, np.int64)
    return Streams(
        none, np.zeros(count + 1, np.int64), no, zeros, client, server, known, opened, state[:, STATE.index("last")],
        zeros, np.zeros(0, np.uint8), sides, sides, sides, sides, none, none, none, none, sides, ended, yes, yes,
        offsets_in(state), state,
    )  # fmt: skip


def with_room(size: int, room: int) -> NDArray[Any]:
    """An array of zeros, to which ``extended`` appends up to ``room`` bytes without a copy."""
    return np.zeros(size + room, np.uint8)[:size]


def extended(stream: NDArray[Any], data: bytes) -> NDArray[Any]:
    """An array of ``with_room`` with more bytes appended."""
    size, added = stream.size + len(data), np.frombuffer(data, np.uint8)
    if stream.base is None or stream.base.size < size:
        return np.append(stream, added)
    extended_data: NDArray[Any] = stream.base[:size]
    extended_data[stream.size :] = added
    return extended_data


def offsets_in(state: NDArray[Any]) -> NDArray[Any]:
    """(flow, side) bytes so far, from the states of flows."""
    return state[:, [word(side, "size") for side in range(2)]]


def word(side: int, name: str) -> int:
    """The place of a side's word in the state of a flow."""
    return len(STATE) + side * len(SIDE) + SIDE.index(name)


def _likely_clients(source: NDArray[Any], target: NDArray[Any], server_ports: frozenset[int]) -> NDArray[Any]:
    """The endpoint that is the client if there is no handshake: guessed from the first packet, as objects do."""
    ports = [ends & (1 << PORT_BITS) - 1 for ends in (source, target)]
    is_server_port = [np.isin(each, list(server_ports)) for each in ports]
    from_server = np.where(is_server_port[0] != is_server_port[1], is_server_port[0], ports[0] < ports[1])
    return np.where(from_server, target, source)


def _begins(sizes: NDArray[Any]) -> NDArray[Any]:
    """The start of each range if the ranges follow each other."""
    return (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
