"""Connections whose capture begins in the middle: finds the bytes with which each protocol can first be recognised.

Objects try to recognise the protocol of such a connection with each new piece of bytes. Recognition needs whole frames,
so this module searches the first bytes for frames, for all connections of a window at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.capture.follow import ATTEMPTS_PER_SEGMENT
from wirekit.conversation.recognition import sought_frames
from wirekit.decoding import header
from wirekit.road.compiled import loop
from wirekit.road.streams import Streams

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirekit.compiler.heading import Heading

PIECES = 16
"""Pieces of a connection that are searched."""
BYTES = 1024
"""Bytes of a side that are searched."""

Sizes = tuple[int, int]
"""Bytes of client and server."""


def first_attempts(streams: Streams, flows: NDArray[Any]) -> dict[int, Sizes]:
    """The first attempt that may recognise each connection.

    Args:
        streams: the connections of a window.
        flows: connections without a handshake that no earlier window has packets of.

    Returns:
        By connection, the bytes of client and server that are available to that attempt. A connection is missing if no
        frame that begins with the first byte of a side is complete within the search, or if another frame is complete
        before.
    """
    flows = flows[(streams.starts[flows] < streams.stops[flows]).any(axis=1)]
    if not flows.size:
        return {}
    sizes, times = _attempts(streams, flows)
    last = np.where(times, np.arange(PIECES), -1).max(axis=1)
    reach = np.where(last[:, None] >= 0, sizes[np.arange(flows.size), last], 0)
    starts = streams.starts[flows]
    content = np.zeros(int(reach.sum()), np.uint8)
    loop("copy_ranges")(streams.stream, starts.ravel(), reach.ravel(), content)
    data, ends = content.tobytes(), np.cumsum(reach.ravel())
    begins = ends - reach.ravel()
    first = np.full(flows.size, PIECES)
    inside = []
    for sought in sought_frames():
        if sought.heading.number is None:
            return {}
        places, until = _places(sought.heading, content, data, ends)
        number = np.searchsorted(ends, places, side="right")
        flow, at = number // 2, places - begins[number]
        whole = times[flow] & (sizes[flow, :, number % 2] >= (until - begins[number])[:, None])
        attempt = np.where(whole.any(axis=1), whole.argmax(axis=1), PIECES)
        np.minimum.at(first, flow[at == 0], attempt[at == 0])
        inside.append((sought, flow, attempt, places, until))
    headed = np.array([header(bytes([byte])) is not None for byte in range(256)])
    heads = np.flatnonzero(reach.ravel() > 0)
    first[heads[headed[content[begins[heads]]]] // 2] = PIECES
    for sought, flow, attempt, places, until in inside:
        before = np.flatnonzero(attempt < first[flow])
        for which, place, end in zip(*(each[before].tolist() for each in (flow, places, until)), strict=True):
            if sought.fits(data[place:end]):
                first[which] = PIECES
    found = np.flatnonzero(first < PIECES)
    told = sizes[found, first[found]].tolist()
    return {flow: (client, server) for flow, (client, server) in zip(flows[found].tolist(), told, strict=True)}


def _attempts(streams: Streams, flows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(flow, piece, side) bytes that are available with each piece; (flow, piece) whether recognition is tried then."""
    latest = np.iinfo(np.int64).max
    counts = np.diff(streams.pieces.ravel(), append=streams.ends.size).reshape(-1, 2)[flows]
    numbers = np.arange(PIECES)
    there = numbers < counts[:, :, None]
    pieces = np.where(there, streams.pieces[flows][:, :, None] + numbers, 0)
    ranks = np.where(there, streams.ranks[pieces], latest).reshape(flows.size, -1)
    reached = np.where(there, streams.ends[pieces] - streams.starts[flows][:, :, None], 0)
    order = np.argsort(ranks, axis=1, kind="stable")[:, :PIECES]
    sizes = np.zeros((flows.size, PIECES, 2), np.int64)
    for side in range(2):
        mine = np.take_along_axis(reached[:, side], order % PIECES, axis=1)
        sizes[:, :, side] = np.maximum.accumulate(np.where(order // PIECES == side, mine, 0), axis=1)
    ends = np.where(streams.ended[flows, :, 0] < 0, latest, streams.ended[flows, :, 0]).min(axis=1)
    ranks = np.take_along_axis(ranks, order, axis=1)
    looked_at = (ranks < ends[:, None]) & (sizes <= BYTES).all(axis=2)
    times = np.zeros(looked_at.shape, bool)
    next_count, next_size = np.zeros(flows.size, np.int64), np.zeros(flows.size, np.int64)
    for place in range(PIECES):
        size = sizes[:, place].sum(axis=1)
        again = (place + 1 <= ATTEMPTS_PER_SEGMENT) | (place + 1 >= next_count) | (size >= next_size)
        times[:, place] = again & looked_at[:, place]
        next_count[again], next_size[again] = 2 * (place + 1), 2 * size[again]
    return sizes, times


def _places(
    heading: Heading, content: NDArray[Any], data: bytes, ends: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Begin and end of possible whole frames in the bytes of several sides.

    Args:
        heading: the heading of the frames.
        content, data: the bytes of all sides, as an array and as bytes.
        ends: the end of each side's bytes.
    """
    assert heading.number is not None
    count = max(content.size - heading.length - heading.number.size + 1, 0)
    kind = f"{heading.number.format[0]}u{heading.number.size}"
    number = np.ndarray((count,), kind, content.data, heading.length, (1,)).astype(np.int64)
    size = number + heading.after
    rows = np.flatnonzero((number >= heading.low) & (number <= heading.most) & (size >= max(heading.least, 1)))
    rows = rows[rows + size[rows] <= ends[np.searchsorted(ends, rows, side="right")]]
    matching = [place for place in rows.tolist() if heading.pattern.match(data, place)]
    places = np.array(matching, np.int64)
    return places, places + size[places]
