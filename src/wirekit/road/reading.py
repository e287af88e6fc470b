"""Reads the frames of plain connections, window by window, by columns and by objects in turn."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wirekit.capture.links import Item, Link
from wirekit.pipeline.flows import Writer
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.rows import Batch
from wirekit.road.assembly import Assembly
from wirekit.road.begun import Begun
from wirekit.road.connections import Connections, resumable
from wirekit.road.contents import read_contents
from wirekit.road.deferred import LongFlow
from wirekit.road.events import SIDES
from wirekit.road.index import Index, index_frames, recognised
from wirekit.road.streams import Streams
from wirekit.road.windows import Window
from wirekit.tables.columns import Table

MOST_PARTS, MOST_SMALL_PARTS = 8, 2
"""How often columns follow connections again in a window after an irregular frame; and how often if the frames before
it are few."""
LEAST_FRAMES, SMALL_PART = 200, 25
"""The fewest frames of such connections for which that pays; and the number below which the frames before the irregular
ones are few."""


class Reader:
    """Reads the connections of one capture.

    Columns read the frames of plain connections. Objects read irregular frames, those after them until the connection
    is at rest, and the connections that columns cannot read.

    Args:
        name: the name of the capture.
        job: the choice of protocols.
        connections: the connections from window to window.
        writer: takes the items that objects read.
        tables: the tables to return, with their requested columns.
        address: returns the text of an endpoint.
        long: stores frames of a flow for other tasks to decode, if the windows have one flow.
        assembly: creates the batches from the frames that columns read.
    """

    def __init__(
        self,
        name: str,
        job: Job,
        connections: Connections,
        writer: Writer,
        tables: Mapping[str, Table],
        address: Callable[[int], str],
        long: LongFlow | None = None,
        assembly: Callable[..., Assembly] = Assembly,
    ) -> None:
        self._name, self._job, self._connections = name, job, connections
        self._writer, self._tables, self._address = writer, tables, address
        self._long, self._assembly = long, assembly

    def items(self, items: Iterable[tuple[Link, Item | None]]) -> Iterator[Batch]:
        """The rows of items that objects read."""
        return self._writer.items(self._name, items if self._long is None else self._long.watched(items))

    def read(self, window: Window, streams: Streams, *, again: bool = False) -> Iterator[Batch]:
        """The tables of the connections in a window; ``again``: as for ``Connections.odd``."""
        connections = self._connections
        by_columns = np.zeros(streams.odd.size, bool)
        if not by_columns.size:
            connections.begun(streams)
        elif not self._job.values:
            begun = yield from self._begun(streams)
            index, begun = self._index(streams, begun)
            if self._long is not None and (yield from self._stored(window, streams, index, begun, self._long)):
                return
            odd = yield from self._by_columns(streams, index, begun)
            yield from self._around_irregular(streams, index, begun, odd)
            by_columns = ~odd
            by_columns[begun.flows] = False
            connections.record_whole(np.flatnonzero(by_columns))
        for flow in np.flatnonzero(~(by_columns | connections.done)).tolist():
            if streams.odd[flow]:
                yield from self.items(connections.odd(window, streams, flow, again=again))
            else:
                yield from self.items(connections.followed(window, streams, flow))

    def _begun(self, streams: Streams) -> Generator[Batch, None, Begun]:
        """Begins connections, and continues those of earlier windows, up to the points from which columns read them."""
        connections, choice = self._connections, self._job.choice
        reaching = ~streams.odd & (~streams.known | streams.resumed | ~streams.final)
        odd = ~(reaching & streams.known & ~streams.resumed)
        protocols = recognised(streams, choice, self._address, odd)
        if not choice.protocol:
            connections.look_ahead(streams, np.flatnonzero(reaching & ~streams.known & ~streams.resumed))
        yield from self.items(connections.begin(streams, np.flatnonzero(reaching), protocols))
        return connections.begun(streams)

    def _index(self, streams: Streams, begun: Begun) -> tuple[Index, Begun]:
        """The frames; connections that end inside a frame are begun as well, or odd."""
        index = index_frames(streams, self._job.choice, self._address, begun)
        is_cut = index.cut & ~index.odd
        is_cut[begun.flows] = False
        fresh = np.flatnonzero(is_cut & resumable(index.protocols))
        index.odd |= is_cut
        index.odd[fresh] = False
        self._connections.begin_fresh(streams, fresh, index.protocols)
        return index, self._connections.begun(streams, begun)

    def _stored(
        self, window: Window, streams: Streams, index: Index, begun: Begun, long: LongFlow
    ) -> Generator[Batch, None, bool]:
        """Whether the frames of a window are stored for another task; objects then read the rest of the window."""
        connections = self._connections
        frames = long.take(self._name, streams, window.packets.origin, index, begun, self._address)
        if frames is None:
            return False
        yield from self.items(connections.skip(streams, frames, begun.flows[:0]))
        if not connections.done[0]:
            yield from self.items(connections.followed(window, streams, 0))
        return True

    def _by_columns(self, streams: Streams, index: Index, begun: Begun) -> Generator[Batch, None, NDArray[np.bool_]]:
        """The tables of the connections that columns can read; returns the others."""
        name, connections = self._name, self._connections
        with read_contents(streams.stream, index, begun) as contents:
            if not contents.odd.all():
                assembly = self._assembly(name, streams, index, contents, self._address, begun, self._tables)
                yield from assembly.batches()
                assembly.count(self._writer.summary.file(name))
                if begun.flows.size:
                    yield from self.items(connections.skip(streams, assembly.followed(), assembly.ended))
            return contents.odd

    def _around_irregular(
        self, streams: Streams, index: Index, begun: Begun, odd: NDArray[np.bool_]
    ) -> Iterator[Batch]:
        """Reads connections by objects to the next points of rest, and by columns up to the next irregular frames."""
        choice, connections = self._job.choice, self._connections
        is_resumable = _irregular(index, odd) & resumable(index.protocols)
        is_resumable[begun.flows] = False
        if _frames(index, is_resumable) >= LEAST_FRAMES:
            connections.begin_fresh(streams, np.flatnonzero(is_resumable), index.protocols)
            begun = connections.begun(streams, begun)
        parts = _regular_parts(index, begun, odd)
        unusual = _unusual_beginnings(streams, index, parts)
        followed = {flow: connections.begin_one(streams, flow, index.protocols[flow]) for flow in unusual}
        parts_left = MOST_PARTS
        while True:
            if parts_left > 0 and parts is not None:
                parts_left -= 1 if parts.frames >= SMALL_PART else MOST_PARTS // MOST_SMALL_PARTS
                with streams.shortened(parts.flows, parts.stops):
                    before = index_frames(streams, choice, self._address, parts.begun, begun_only=True)
                    still_odd = yield from self._by_columns(streams, before, parts.begun)
                for place in np.flatnonzero(~still_odd[parts.flows]).tolist():
                    flow, places, frame = parts.at(place)
                    followed[flow] = connections.pass_by(streams, flow, places, frame)
            for flow in sorted(followed):
                yield from self.items(followed.pop(flow))
            late = connections.begun(streams)
            if not late.flows.size:
                return
            late_index = index_frames(streams, choice, self._address, late, begun_only=True)
            late_odd = yield from self._by_columns(streams, late_index, late)
            parts = _regular_parts(late_index, late, late_odd)


class _Parts(NamedTuple):
    """The parts of begun connections before their first irregular frame.

    Attributes:
        flows: the connections.
        begun: their state at the beginning.
        stops: (connection, side) the end of the frames before the irregular one in ``Streams.stream``.
        sides, ends: the side of the irregular frame, and its end.
        frames: the number of frames before the irregular ones.
    """

    flows: NDArray[Any]
    begun: Begun
    stops: NDArray[Any]
    sides: NDArray[Any]
    ends: NDArray[Any]
    frames: int

    def at(self, place: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
        """The arguments of ``Connections.pass_by`` for one of the connections."""
        client, server = self.stops[place].tolist()
        return int(self.flows[place]), (client, server), (int(self.sides[place]), int(self.ends[place]))


def _irregular(index: Index, odd: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The connections that a frame makes odd."""
    return odd & (index.irregular < index.kind.size)


def _frames(index: Index, which: NDArray[np.bool_]) -> int:
    """The number of frames of some connections."""
    return int((index.begins[1:] - index.begins[:-1])[which].sum())


def _regular_parts(index: Index, begun: Begun, odd: NDArray[np.bool_]) -> _Parts | None:
    """The parts of odd begun connections that columns may read; None if they are too small."""
    carried = np.bincount(begun.carried["connection"], minlength=odd.size)
    own, end = index.begins[:-1] + carried, index.irregular
    chosen, frames = np.zeros(odd.size, bool), np.arange(index.kind.size)
    chosen[begun.flows] = True
    chosen &= _irregular(index, odd) & (own <= end)
    if _frames(index, chosen) < LEAST_FRAMES:
        return None
    flows, connection = np.flatnonzero(chosen), index.connection
    stops = np.zeros((odd.size, len(SIDES)), np.int64)
    stops[begun.flows] = begun.places
    read = np.flatnonzero(chosen[connection] & (own[connection] <= frames) & (frames < end[connection]))
    np.maximum.at(stops, (connection[read], index.side[read]), index.stop[read])
    return _Parts(flows, begun.up_to(flows), stops[flows], index.side[end[flows]], index.stop[end[flows]], read.size)


def _unusual_beginnings(streams: Streams, index: Index, parts: _Parts | None) -> list[int]:
    """Connections with an undeclared frame, such as a SASL token, that columns may follow after it."""
    plain = index.odd & ~streams.odd & streams.known & ~streams.resumed
    if parts is not None:
        plain[parts.flows] = False
    return np.flatnonzero(plain & resumable(index.protocols)).tolist()
