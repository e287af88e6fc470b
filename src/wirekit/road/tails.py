"""Frames that the end of a window cuts: carries their first bytes to the next window."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wirekit.capture.tcp import Data
from wirekit.road.events import SIDES

if TYPE_CHECKING:
    from wirekit.road.streams import Streams

MOST_TAIL = 1 << 20
"""The maximum number of bytes of a cut frame that are carried."""


class Tail(NamedTuple):
    """Carried bytes before the bytes of a side of a flow in this window."""

    flow: int
    side: int
    data: bytes


class Tails:
    """The first bytes of cut frames, by row of ``States`` and side."""

    def __init__(self) -> None:
        self._tails: dict[int, dict[int, Data]] = {}

    def __contains__(self, row: int) -> bool:
        return row in self._tails

    @property
    def rows(self) -> list[int]:
        """The rows of flows with a cut frame."""
        return list(self._tails)

    def pop(self, row: int) -> list[Data]:
        """Removes the cut frames of a flow; returns them in the order of time."""
        return sorted(self._tails.pop(row, {}).values(), key=lambda each: each.time_us)

    def keep(self, streams: Streams, flow: int, row: int, places: list[int]) -> tuple[int, int]:
        """Carries the bytes of a flow after some places, one for each side; returns the places after these bytes."""
        offsets = streams.offsets[flow] + places - streams.starts[flow]
        for side, place in enumerate(places):
            stop = int(streams.stops[flow, side])
            if streams.final[flow] or not offsets.all() or streams.ended[flow, side, 0] >= 0:
                continue
            if place < stop <= place + MOST_TAIL:
                last = int(streams.times[np.searchsorted(streams.ends, stop)])
                tail = Data(SIDES[side], streams.stream[place:stop].tobytes(), int(offsets[side]), last, 0, 0)
                self._tails.setdefault(row, {})[side] = tail
                places[side] = stop
        return places[0], places[1]

    def take(self, odd: NDArray[np.bool_], sizes: NDArray[np.int64], rows: NDArray[np.int64], size: int) -> list[Tail]:
        """Removes the cut frames that a window continues; returns them, so that they precede the window's bytes.

        Args:
            odd: flows of the window that objects follow.
            sizes: (flow, side) bytes in the window.
            rows: the row of each flow.
            size: the number of rows.
        """
        stored_rows = np.fromiter(self._tails, np.int64, len(self._tails))
        flow_of = np.full(size, -1, np.int64)
        flow_of[rows] = np.arange(rows.size)
        tails: list[Tail] = []
        for row, flow in zip(stored_rows.tolist(), flow_of[stored_rows].tolist(), strict=True):
            for side in list(self._tails[row]) if flow >= 0 and not odd[flow] else ():
                if sizes[flow, side]:
                    tails.append(Tail(flow, side, self._tails[row].pop(side).data))
        self._tails = {row: each for row, each in self._tails.items() if each}
        return tails
