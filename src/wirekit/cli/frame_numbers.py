"""Numbers the frames and connections of a capture that columns read, in the order in which objects recognise them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wirekit.capture.links import Choice, Item, Link
from wirekit.capture.tcp import Settings
from wirekit.cli.filters_columns import Selected
from wirekit.cli.numbered import NOTHING, Numbered
from wirekit.cli.window_frames import WindowFrames
from wirekit.cli.windows import AT_ONCE, CaptureWindows
from wirekit.conversation import SIDES, Frame
from wirekit.pipeline.inputs import Input
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.summary import Summary
from wirekit.road.streams import AT_END
from wirekit.tables.columns import Table

Identity = tuple[str, str, int]
"""A frame: the name of its connection, its side, and its offset."""


@dataclass(slots=True)
class WindowItem:
    """An item that objects have read.

    Attributes:
        arrival: see ``Writer.arrival``.
        time_us: its time, or 0.
        identity: its connection, side and offset.
        is_frame: whether it is a frame.
        messages: the number of messages in it.
        numbered: the item, with its numbers once they are known; without its content if it does not match.
        matches: whether it matches.
        again: whether columns have read the frame before.
    """

    arrival: tuple[int, int]
    time_us: int
    identity: Identity
    is_frame: bool
    messages: int
    numbered: Numbered
    matches: bool = False
    again: bool = False


class NumberedFrames(WindowFrames):
    """The frames of plain connections in a window, with their numbers.

    Attributes:
        fresh: the frames that no earlier window, and no earlier part of the window, has.
        arrivals: see ``Streams.arrivals``; for each of ``fresh``.
        number: for each frame of the index, its number once it is known.
        over: the connections with frames, here or in earlier windows, that end in the window.
    """

    def __init__(self, selected: Selected | None, *arguments: Any) -> None:
        super().__init__(selected, *arguments)
        index, contents, streams = self.index, self.contents, self.streams
        plain = ~contents.odd[index.connection]
        is_carried = np.arange(plain.size) < (index.begins[:-1] + self._carried)[index.connection]
        self.fresh, self._earlier = np.flatnonzero(plain & ~is_carried), np.flatnonzero(plain & is_carried)
        self._is_waiting = plain & ~contents.reported
        pieces = np.searchsorted(streams.ends, index.stop[self.fresh])
        self.arrivals = streams.arrivals(index.connection[self.fresh], streams.ranks[pieces])
        self.number = np.zeros(plain.size, np.int64)
        self.over = np.union1d(np.intersect1d(self.listed, index.connection), self.ended)
        self._requests: dict[int, Frame] = {}

    def with_requests(self, frames: NDArray[np.int64]) -> Iterator[tuple[int, Frame]]:
        """Some frames of the index, each with its place there and its request, without its messages."""
        for place, frame in self.decoded(frames):
            request = int(self.index.request[place])
            if request >= 0:
                frame.request = self._requests.pop(request, None) or self.frame(request)
            elif frame.description.answered and frame.description.role == "request":
                self._requests[place] = frame
                if len(self._requests) > AT_ONCE:
                    self._requests.pop(next(iter(self._requests)))
            yield place, frame

    def places_of(self, identity: Identity) -> list[int]:
        """The places in the index of a frame, one at most."""
        name, side, offset = identity
        index = self.index
        places = np.flatnonzero((index.position == offset) & (index.side == SIDES.index(side)))
        return [place for place in places.tolist() if self.link(int(index.connection[place])).name == name]

    def frame(self, place: int) -> Frame:
        """One frame of the index."""
        return next(self.decoded(np.array([place])))[1]

    def slow(self, least_us: int) -> Iterator[tuple[str, int]]:
        """The ids of calls with at least a latency, and the numbers of their responses."""
        index, times = self.index, self.index.time
        answers = np.flatnonzero((index.request >= 0) & (self.number > 0) & (self.call_of >= 0))
        answers = answers[times[answers] - times[index.request[answers]] >= least_us]
        ids = self._call_ids.take(pa.array(self.call_of[answers])).to_pylist()
        return zip(ids, self.number[answers].tolist(), strict=True)

    @property
    def carried(self) -> list[tuple[int, Identity, bool]]:
        """The frames from earlier windows or parts: place, identity, and whether they continue to wait."""
        waits = self._is_waiting[self._earlier].tolist()
        return [(*each, wait) for each, wait in zip(self._identified(self._earlier), waits, strict=True)]

    @cached_property
    def waiting(self) -> list[tuple[int, Identity]]:
        """The fresh frames that a later window, or a later part of this one, reports."""
        return self._identified(self.fresh[self._is_waiting[self.fresh]])

    def _identified(self, frames: NDArray[np.int64]) -> list[tuple[int, Identity]]:
        index = self.index
        columns = (frames, index.connection[frames], index.side[frames], index.position[frames])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [(place, (self.link(flow).name, SIDES[side], offset)) for place, flow, side, offset in rows]


class FrameNumbers:
    """The numbers of frames and connections.

    Attributes:
        frames: the number of frames so far.
        connections: the number of each open connection, by its name.
    """

    def __init__(self) -> None:
        self.frames = 0
        self.connections: dict[str, int] = {}
        self._count = 0  # of connections
        self._waiting: dict[Identity, int] = {}  # frames with a number that are not reported yet
        self._late: list[WindowItem] = []

    def number(self, parts: list[NumberedFrames], items: list[WindowItem], *, last: bool) -> list[WindowItem]:
        """Numbers the frames of the next window.

        Args:
            parts, items: the frames and other items of the window.
            last: whether nothing follows, not even items.

        Returns:
            The items with numbers. Those that come with the end of a window are left out until the capture ends, or for
            10 minutes: objects report them then.
        """
        latest_us = max((int(part.arrivals[:, 0].max(initial=0)) for part in parts), default=0)
        last = last or latest_us == AT_END or any(each.arrival[0] == AT_END for each in items)
        due_us = latest_us - Settings().idle_us
        waiting = {identity: (part, place) for part in parts for place, identity in part.waiting}
        known = waiting.keys() | self._waiting.keys()
        recalled = [each for each in items if each.is_frame and each.identity in known]
        others = [*self._late, *(each for each in items if not (each.is_frame and each.identity in known))]
        is_due = [last or each.arrival[0] < AT_END or each.time_us < due_us for each in others]
        fresh = list(compress(others, is_due))
        self._late = [each for each, due in zip(others, is_due, strict=True) if not due]
        arrivals = [np.array([each.arrival for each in fresh], np.int64).reshape(-1, 2)]
        arrivals[0][:, 0] = np.minimum(arrivals[0][:, 0], AT_END)
        arrivals += [part.arrivals for part in parts]
        offsets = [np.array(_ascending(fresh), np.int64), *(part.index.position[part.fresh] for part in parts)]
        bounds = np.cumsum([each.size for each in offsets])[:-1]
        # Objects read a packet up to the point from which columns do, so their items come first.
        order = np.lexsort((np.concatenate(offsets), *np.concatenate(arrivals).T[::-1]))
        counts = np.ones(order.size, np.int64)
        counts[: len(fresh)] = [each.is_frame for each in fresh]
        numbers, ranks = np.zeros((2, order.size), np.int64)
        numbers[order], ranks[order] = self.frames + np.cumsum(counts[order]), np.arange(order.size)
        self.frames += int(counts.sum())
        of_items, *of_parts = np.split(numbers, bounds)
        for part, of_part in zip(parts, of_parts, strict=True):
            part.number[part.fresh] = of_part
        for each, number in zip(fresh, of_items.tolist(), strict=True):
            each.numbered = each.numbered._replace(frame=number)
        self._waiting |= {identity: int(part.number[place]) for identity, (part, place) in waiting.items()}
        for part in parts:
            for place, identity, waits in part.carried:
                part.number[place] = self._waiting[identity] if waits else self._waiting.pop(identity)
        for each in recalled:
            each.numbered, each.again = each.numbered._replace(frame=self._waiting.pop(each.identity)), True
        self._number_connections(parts, fresh, *np.split(ranks, bounds))
        for each in (*recalled, *fresh):
            each.numbered = each.numbered._replace(connection=self.connections[each.identity[0]])
        return [*recalled, *fresh]

    def _number_connections(
        self,
        parts: list[NumberedFrames],
        fresh: list[WindowItem],
        of_items: NDArray[np.int64],
        *of_parts: NDArray[np.int64],
    ) -> None:
        """Numbers the connections whose first item is in the window, by the ranks of the items."""
        first_ranks: dict[str, int] = {}
        for part, of_part in zip(parts, of_parts, strict=True):
            flows, first = np.unique(part.index.connection[part.fresh], return_index=True)
            least = np.minimum.reduceat(of_part, first) if first.size else first
            for flow, rank in zip(flows.tolist(), least.tolist(), strict=True):
                name = part.link(flow).name
                first_ranks[name] = min(rank, first_ranks.get(name, rank))
        for each, rank in zip(fresh, of_items.tolist(), strict=True):
            name = each.identity[0]
            first_ranks[name] = min(rank, first_ranks.get(name, rank))
        for name in sorted(first_ranks.keys() - self.connections.keys(), key=first_ranks.__getitem__):
            self._count += 1
            self.connections[name] = self._count

    @property
    def late(self) -> set[str]:
        """The names of connections of which items are left out so far."""
        return {each.identity[0] for each in self._late}


def in_order(parts: list[NumberedFrames], items: list[WindowItem]) -> Iterator[tuple[Link, Item]]:
    """The frames and other items of a window with their connections, in the order of their numbers, each frame once.

    The content of an item is removed from ``items``, because there may be many.
    """
    fresh = [each for each in items if not each.again]
    places = [*(part.fresh for part in parts), np.arange(len(fresh))]
    numbers = [part.number[part.fresh] for part in parts]
    numbers.append(np.array([each.numbered.frame for each in fresh], np.int64))
    others = [np.zeros(part.fresh.size, bool) for part in parts]
    others.append(np.array([not each.is_frame for each in fresh], bool))
    for which, chosen in runs(places, others, numbers):
        if which < len(parts):
            part = parts[which]
            for at, frame in part.with_requests(chosen):
                yield part.link(int(part.index.connection[at])), frame
            continue
        for each in (fresh[at] for at in chosen.tolist()):
            link, item, *_ = each.numbered
            each.numbered = each.numbered._replace(item=None)
            if item is not None:
                yield link, item


def runs(places: list[NDArray[np.int64]], *keys: list[NDArray[Any]]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Sorts places of several sources by keys, the last key first; yields each source with its next places.

    Args:
        places: those of each source.
        keys: each has an array for each source, with an element for each place.
    """
    which = np.repeat(np.arange(len(places)), [each.size for each in places])
    order = np.lexsort([np.concatenate(key) for key in keys])
    which, place = which[order], np.concatenate(places)[order]
    for begin, end in pairwise(np.flatnonzero(np.diff(which, prepend=-1, append=-1)).tolist()):
        yield int(which[begin]), place[begin:end]


def _ascending(items: list[WindowItem]) -> list[int]:
    """The offset of each item, or of an earlier one that comes with the same packet if that is larger."""
    largest: dict[tuple[int, int], int] = {}
    offsets = []
    for each in items:
        largest[each.arrival] = max(each.identity[2], largest.get(each.arrival, 0))
        offsets.append(largest[each.arrival])
    return offsets


class StopReading(Exception):
    """Ends the reading of a capture, because the rest of it is not needed."""


class NumberedWindows(CaptureWindows):
    """Numbers the frames of a capture, window by window.

    Args:
        files, choice, shown, summary: as for ``CaptureWindows``.
        selected: selects the frames.
    """

    def __init__(
        self,
        files: tuple[Input, ...],
        choice: Choice,
        selected: Selected,
        shown: dict[str, Table] | None = None,
        summary: Summary | None = None,
    ) -> None:
        super().__init__(files, choice, shown, summary)
        self.numbers = FrameNumbers()
        self._selected = selected
        self._parts: list[NumberedFrames] = []
        self._items: list[WindowItem] = []
        self._ended: list[Link] = []

    def take(self, link: Link, item: Item | None) -> None:
        """Handles an item that objects read and that matches (None for the end of a connection), before ``window``."""

    @abstractmethod
    def window(self, parts: list[NumberedFrames], items: list[WindowItem]) -> None:
        """Handles a window whose frames have numbers."""

    def connection(self, link: Link) -> int:
        """The number of a connection."""
        return self.numbers.connections[link.name]

    def assembly(self, *arguments: Any) -> NumberedFrames:
        """The frames of a window that columns have read."""
        part = NumberedFrames(self._selected, *arguments)
        self._parts.append(part)
        return part

    def over(self, link: Link) -> None:
        """Handles the end of a connection with frames, after all of its items."""

    def item(self, name: str, link: Link, item: Item | None) -> Iterator[Batch]:
        """Adds an item that objects read."""
        each = self.noted(name, link, item)
        self._selected.decide(each.numbered, lambda matches: self._decided(each, matches=matches))
        return super().item(name, link, item)

    def noted(self, name: str, link: Link, item: Item | None) -> WindowItem:
        """Adds an item to those of the window, or to the ends of connections."""
        described = self._selected.described(self, name, link, item)
        if item is None:
            self._ended.append(link)
            return WindowItem(self.arrival, 0, (link.name, "", 0), False, 0, described)
        messages = len(item.messages) if isinstance(item, Frame) else 0
        identity = link.name, item.side, item.offset
        each = WindowItem(self.arrival, item.time_us or 0, identity, isinstance(item, Frame), messages, described)
        self._items.append(each)
        return each

    def _decided(self, each: WindowItem, *, matches: bool) -> None:
        each.matches = matches
        if matches:
            self.take(each.numbered.link, each.numbered.item)
        else:
            each.numbered = each.numbered._replace(item=None, facts=NOTHING)

    def end(self, size: int = 0) -> None:
        """Handles the window that was read; ``size`` is the number of bytes read so far."""
        self._selected.settle()
        parts, items, ended = self._parts, self._items, self._ended
        self._parts, self._items = [], []
        self.window(parts, self.numbers.number(parts, items, last=not size))
        ended += [part.link(flow) for part in parts for flow in part.over.tolist()]
        late = self.numbers.late
        self._ended = [link for link in ended if link.name in late]
        for link in ended:
            if link.name not in late:
                self.numbers.connections.pop(link.name, None)
                self.over(link)
