"""The requests of a connection that wait for their response."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, MutableMapping
from itertools import islice
from typing import Any

from wirekit.conversation.events import Frame

MOST_WAITING = 1 << 16
MOST_WAITING_BYTES = 64 << 20
"""Limits on the waiting requests: their number, and their bytes; the oldest are dropped. Clients have some thousands at
most."""
MOST_UNHEARD = 256
MOST_UNHEARD_BYTES = 8 << 20
LEAST_UNHEARD_US = 100_000
"""Limits before the other side has sent anything: of the number, the bytes, and the time since the oldest. If the time
and one of the others are exceeded, the capture probably holds one direction only."""
MOST_DECODED_BYTES = 1 << 20
MOST_UNHEARD_DECODED_BYTES = 1 << 16
"""If the waiting requests have more bytes than that, each of them stays decoded only until the next request. The second
limit applies before the other side has sent anything."""


class Requests(MutableMapping[Hashable, "Frame"]):
    """Requests by the key that pairs them with their response, oldest first; every operation takes constant time.

    Attributes:
        size: the bytes of all of them.
        one_sided: whether no request waits, because only one side was captured; see ``MOST_UNHEARD``.
    """

    def __init__(self) -> None:
        self.size = 0
        self.one_sided = False
        self._frames: OrderedDict[Hashable, Frame] = OrderedDict()
        # By correlation id: the key that pairs the request, or an OrderedDict of keys if several requests have the id.
        self._numbered: dict[int | None, Any] = {}

    def __getitem__(self, pair: Hashable) -> Frame:
        return self._frames[pair]

    def __contains__(self, pair: object) -> bool:
        return pair in self._frames

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def __setitem__(self, pair: Hashable, frame: Frame) -> None:
        frames, numbered, number = self._frames, self._numbered, frame.description.correlation_id
        waiting = frames.get(pair)
        if waiting is not None:
            if waiting.description.correlation_id == number:
                self.size += len(frame.data) - len(waiting.data)
                frames[pair] = frame
                frames.move_to_end(pair)
                if isinstance(numbered[number], OrderedDict):
                    numbered[number].move_to_end(pair)
                return
            del self[pair]
        frames[pair] = frame
        self.size += len(frame.data)
        if number not in numbered:
            numbered[number] = pair
            return
        same = numbered[number]
        if not isinstance(same, OrderedDict):
            same = numbered[number] = OrderedDict({same: None})
        same[pair] = None

    def add(self, pair: Hashable, frame: Frame, *, heard: bool) -> None:
        """Adds a request and drops the oldest beyond a limit; keeps none if only one side was captured.

        If many bytes wait, the last request before this one does not stay decoded.

        Args:
            pair, frame: the request.
            heard: whether the other side has sent anything so far.
        """
        self.one_sided &= not heard
        if self.one_sided:
            return
        if self.size > (MOST_DECODED_BYTES if heard else MOST_UNHEARD_DECODED_BYTES):
            next(reversed(self._frames.values())).release()
        self[pair] = frame
        exceeded = not heard and (len(self) > MOST_UNHEARD or self.size > MOST_UNHEARD_BYTES)
        if exceeded and (frame.time_us or 0) - (next(iter(self.values())).time_us or 0) > LEAST_UNHEARD_US:
            self.clear()
            self.one_sided = True
        while len(self) > MOST_WAITING or (self.size > MOST_WAITING_BYTES and len(self) > 1):
            del self[next(iter(self))]

    def __delitem__(self, pair: Hashable) -> None:
        frame = self._frames.pop(pair)
        self.size -= len(frame.data)
        number = frame.description.correlation_id
        same = self._numbered[number]
        if isinstance(same, OrderedDict):
            del same[pair]
        if not isinstance(same, OrderedDict) or not same:
            del self._numbered[number]

    @property
    def newest(self) -> Frame | None:
        """The request that was added last, None if none waits."""
        return next(reversed(self._frames.values()), None)

    def clear(self) -> None:
        """Removes all requests."""
        self.size = 0
        self._frames.clear()
        self._numbered.clear()

    def with_number(self, number: int | None, most: int) -> list[tuple[Hashable, Frame]]:
        """(pair, request) of the oldest requests that have a correlation id, up to a maximum number of them."""
        if number not in self._numbered:
            return []
        same = self._numbered[number]
        pairs = islice(same, most) if isinstance(same, OrderedDict) else (same,)
        return [(pair, self._frames[pair]) for pair in pairs]

    def forget_before(self, offset: int) -> list[Frame]:
        """Removes and returns the oldest requests, up to the first one at or after an offset."""
        forgotten: list[Frame] = []
        while self._frames:
            pair, frame = next(iter(self._frames.items()))
            if frame.offset >= offset:
                break
            del self[pair]
            forgotten.append(frame)
        return forgotten
