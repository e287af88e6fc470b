"""Connections whose capture begins in the middle: where their protocol can be recognised, and where columns may begin.

Objects try to recognise the protocol of such a connection with each new piece of bytes. Recognition needs whole frames,
so this module searches the first bytes for frames, for all connections of a window at once. It also finds the
connections whose server first answers a request from before the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.capture.follow import FIRST_ATTEMPTS, Follower
from wirekit.compiler.columns.ranges import CLEAN, REFUSED, scan_ranges
from wirekit.compiler.heading import heading
from wirekit.conversation import Conversation
from wirekit.conversation.joined import sought_frames
from wirekit.conversation.pairing import pairing_of
from wirekit.conversation.recognition import FRAMES_TO_RECOGNISE
from wirekit.decoding import header
from wirekit.registry import registry
from wirekit.road.compiled import loop
from wirekit.road.events import SIDES
from wirekit.road.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirekit.compiler.heading import Heading

PIECES = 16
"""The maximum number of pieces of a connection that are searched."""
BYTES = 1024
"""The maximum number of bytes of a side that are searched."""
MOST_INSIDE = 4
"""The maximum number of possible frames inside a response that are examined; so few never use up a search's budget."""


class Attempt(NamedTuple):
    """An attempt that may recognise a connection.

    Attributes:
        number: the number of pieces before the one with which it is made.
        sizes: the bytes of client and server that are available to it.
        ahead: the number of bytes that the server sends before the client does; -1 if these are not all available.
        cut: the number of these bytes that arrive before the last of their pieces.
        names: the protocols whose first frame may be among these bytes.
    """

    number: int
    sizes: list[int]
    ahead: int
    cut: int
    names: tuple[str, ...]


def first_attempts(streams: Streams, flows: NDArray[Any], after: NDArray[Any] | None = None) -> dict[int, Attempt]:
    """The first attempt that may recognise each connection.

    Args:
        streams: the connections of a window.
        flows: connections without a handshake that no earlier window has packets of.
        after: for each connection, the number of an attempt that failed; then the next one is searched for.

    Returns:
        The attempts by connection. A connection is missing if no frame that begins with the first byte of a side is
        complete within the search, or if another frame is complete before.
    """
    failed = np.full(flows.size, -1) if after is None else after
    carries = (streams.starts[flows] < streams.stops[flows]).any(axis=1)
    flows, failed = flows[carries], failed[carries]
    if not flows.size:
        return {}
    sizes, times = _attempts(streams, flows)
    last = np.where(times, np.arange(PIECES), -1).max(axis=1)
    reach = np.where(last[:, None] >= 0, sizes[np.arange(flows.size), last], 0)
    content, begins, ends = _copied(streams, streams.starts[flows].ravel(), reach.ravel())
    data = content.tobytes()
    first = np.full(flows.size, PIECES)
    inside = []
    for sought in sought_frames():
        if sought.heading.number is None:
            return {}
        places, until = _places(sought.heading, content, data, ends)
        number = np.searchsorted(ends, places, side="right")
        flow, at = number // 2, places - begins[number]
        is_whole = times[flow] & (sizes[flow, :, number % 2] >= (until - begins[number])[:, None])
        attempt = np.where(is_whole.any(axis=1), is_whole.argmax(axis=1), PIECES)
        attempt[attempt <= failed[flow]] = PIECES
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
    attempted = np.flatnonzero(first < PIECES)
    available = sizes[attempted, first[attempted]]
    asks = (sizes[attempted, :, 0] > 0).argmax(axis=1)
    ahead, cut = (np.where(asks >= back, sizes[attempted, asks - back, 1], 0) for back in (1, 2))
    ahead[available[:, 0] == 0] = -1
    begins = begins.reshape(-1, 2)[attempted]
    names = _protocols(content, data, begins.ravel(), (begins + available).ravel())
    columns = (each.tolist() for each in (first[attempted], available, ahead, cut))
    return dict(zip(flows[attempted].tolist(), map(Attempt, *columns, names), strict=True))


def _protocols(content: NDArray[Any], data: bytes, begins: NDArray[Any], ends: NDArray[Any]) -> list[tuple[str, ...]]:
    """The protocols whose heading fits one of the first frames of a side of each connection.

    Args:
        content, data: the bytes of all sides, as an array and as bytes.
        begins, ends: the bounds of the two sides of each connection.
    """
    fits: dict[str, NDArray[np.bool_]] = {}
    for sought in sought_frames():
        begin = sought.heading
        assert begin.number is not None
        fit = fits.setdefault(sought.protocol.name, np.zeros(begins.size // 2, bool))
        numbers, sides, starts = _numbers(begin, content), np.arange(begins.size), begins
        for _ in range(FRAMES_TO_RECOGNISE):
            there = ends[sides] - starts >= begin.length + begin.number.size
            sides, starts = sides[there], starts[there]
            number = numbers[starts].astype(np.int64)
            stops = starts + number + begin.after
            is_fitting = (number >= begin.low) & (number <= begin.most) & (starts < stops) & (stops <= ends[sides])
            sides, starts, stops = sides[is_fitting], starts[is_fitting], stops[is_fitting]
            bounds = zip(starts.tolist(), stops.tolist(), strict=True)
            matching = np.array([begin.fits(data[start:stop]) for start, stop in bounds], bool)
            fit[sides[matching] // 2] = True
            sides, starts = sides[~matching], stops[~matching]
    rows = zip(*(each.tolist() for each in fits.values()), strict=True)
    return [tuple(name for name, each in zip(fits, row, strict=True) if each) for row in rows]


def usual_beginnings(
    streams: Streams, flows: NDArray[Any], attempts: list[Attempt], conversation: Conversation
) -> NDArray[np.bool_]:
    """Whether columns may follow connections of a protocol from the client's first frame on.

    They may if the server sends nothing before it, or one response whose request was before the capture, and if the
    next piece of each side begins with a whole frame.

    Args:
        streams, flows: connections of a window.
        attempts: an attempt of each.
        conversation: a conversation of the protocol that was joined in the middle.
    """
    if not conversation.quiet:
        return np.zeros(flows.size, bool)
    ahead = np.array([each.ahead for each in attempts], np.int64)
    usual, answers = ahead == 0, np.flatnonzero(ahead > 0)
    if answers.size:
        answered = [attempts[place] for place in answers.tolist()]
        usual[answers] = _unasked(streams, flows[answers], answered, conversation.protocol.name)
    for place in np.flatnonzero(usual).tolist():
        sides = SIDES[:1] if ahead[place] else SIDES
        usual[place] = begins_whole(streams, int(flows[place]), sides, conversation)
    return usual


def begins_whole(streams: Streams, flow: int, sides: Iterable[str], reader: Conversation | Follower) -> bool:
    """Whether the first piece of each of some sides of a connection, if it has one, begins with a whole frame."""
    for side in sides:
        number = SIDES.index(side)
        start, stop = int(streams.starts[flow, number]), int(streams.stops[flow, number])
        if start < stop:
            stop = int(streams.ends[streams.pieces[flow, number]])
            if not reader.begins_whole(side, streams.stream[start:stop].tobytes()):
                return False
    return True


def _unasked(streams: Streams, flows: NDArray[Any], attempts: list[Attempt], protocol: str) -> NDArray[np.bool_]:
    """Whether the server sends exactly one response that ``unasked`` declares before the client sends anything.

    The search of objects must find it at the first byte, although it is tried again with each piece: nothing inside the
    response that may be a frame, and is complete before the last piece, may be such a response.
    """
    usual, pairing, declared = np.zeros(flows.size, bool), pairing_of(protocol), registry.protocol(protocol)
    if pairing is None or pairing.server.unasked is None:
        return usual
    layouts, text = pairing.server.unasked.layouts, pairing.server.unasked.text
    sizes, cut_sizes = np.array([(each.ahead, each.cut) for each in attempts], np.int64).T
    content, begins, ends = _copied(streams, streams.starts[flows, 1], sizes)
    places, until = _places(heading(declared.stream("server"), declared.limits.frame), content, content.tobytes(), ends)
    owner = np.searchsorted(ends, places, side="right")
    is_whole = (places == begins[owner]) & (until == ends[owner])
    inside = (places > begins[owner]) & (until <= begins[owner] + cut_sizes[owner])
    examined = np.flatnonzero(is_whole | inside)
    is_whole, inside, owner = is_whole[examined], inside[examined], owner[examined]
    fits, clean = np.zeros(examined.size, bool), np.zeros(examined.size, bool)
    for layout in layouts:
        bounds = places[examined], until[examined]
        batch, states = scan_ranges(declared.key(layout), content, *bounds, fields=[text, "@gap"])
        rows = np.flatnonzero(states < REFUSED)
        fits[rows] = True
        texts = batch.column(text)
        with_texts = np.flatnonzero(np.asarray(pc.list_value_length(texts)))
        first = (np.asarray(texts.offsets) - texts.offsets[0].as_py())[with_texts]
        with_texts = with_texts[np.asarray(pc.binary_length(texts.flatten()))[first] > 0]
        good = states[rows] == CLEAN
        if "@gap" in batch.schema.names:
            good &= np.asarray(batch.column("@gap")) == 0
        clean[rows[with_texts[good[with_texts]]]] = True
    usual[owner[is_whole & clean]] = True
    usual[owner[inside & fits]] = False
    return usual & (np.bincount(owner[inside], minlength=flows.size) <= MOST_INSIDE)


def _copied(
    streams: Streams, starts: NDArray[Any], sizes: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The bytes of ranges of ``Streams.stream``, one after the other, and the start and end of each among them."""
    content, ends = np.zeros(int(sizes.sum()), np.uint8), np.cumsum(sizes)
    loop("copy_ranges")(streams.stream, starts, sizes, content)
    return content, ends - sizes, ends


def _numbers(heading: Heading, content: NDArray[Any]) -> NDArray[Any]:
    """The length that a frame would state if it began at each position of some bytes."""
    assert heading.number is not None
    count = max(content.size - heading.length - heading.number.size + 1, 0)
    kind = f"{heading.number.format[0]}u{heading.number.size}"
    return np.ndarray((count,), kind, content.data, heading.length, (1,))


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
        of_side = np.take_along_axis(reached[:, side], order % PIECES, axis=1)
        sizes[:, :, side] = np.maximum.accumulate(np.where(order // PIECES == side, of_side, 0), axis=1)
    ends = np.where(streams.ended[flows, :, 0] < 0, latest, streams.ended[flows, :, 0]).min(axis=1)
    ranks = np.take_along_axis(ranks, order, axis=1)
    looked_at = (ranks < ends[:, None]) & (sizes <= BYTES).all(axis=2)
    times = np.zeros(looked_at.shape, bool)
    next_count, next_size = np.zeros(flows.size, np.int64), np.zeros(flows.size, np.int64)
    for place in range(PIECES):
        size = sizes[:, place].sum(axis=1)
        again = (place + 1 <= FIRST_ATTEMPTS) | (place + 1 >= next_count) | (size >= next_size)
        times[:, place] = again & looked_at[:, place]
        next_count[again], next_size[again] = 2 * (place + 1), 2 * size[again]
    return sizes, times


def _places(
    heading: Heading, content: NDArray[Any], data: bytes, ends: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Start and end of possible whole frames in the bytes of several sides.

    Args:
        heading: the heading of the frames.
        content, data: the bytes of all sides, as an array and as bytes.
        ends: the end of each side's bytes.
    """
    number = _numbers(heading, content).astype(np.int64)
    size = number + heading.after
    rows = np.flatnonzero((number >= heading.low) & (number <= heading.most) & (size >= max(heading.least, 1)))
    rows = rows[rows + size[rows] <= ends[np.searchsorted(ends, rows, side="right")]]
    matching = [place for place in rows.tolist() if heading.pattern.match(data, place)]
    places = np.array(matching, np.int64)
    return places, places + size[places]
