"""What is known of the TCP of all flows of a capture, from window to window: a row of columns for each flow.

A connection that has ended stays here for minutes, as segments may come late; most flows of a capture are such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.road.compiled import loop
from wirekit.road.streams import SIDE, STATE, Streams

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_ROOM = 1 << 10
_KINDS = {
    "low": np.int64, "high": np.int64, "client": np.int64, "known": np.bool_, "opened": np.int64, "plain": np.bool_,
    "told": np.bool_, "begun": np.bool_, "count": np.int32,
}  # fmt: skip
_WORDS = len(STATE) + 2 * len(SIDE)


class States:
    """The flows of a capture.

    Attributes:
        size: how many there are.
        low, high: the endpoints of each, the lower one first.
        client: which of them is the client of the latest connection.
        known, opened: whether that has a handshake, and when it began.
        words: its words as ``Streams.state`` has them.
        plain: whether these say all of it. They do not while objects follow it, and when nothing can come to it.
        told: whether others than objects have told of it.
        begun: whether columns follow its conversation, see ``wirekit.road.begun``.
        count: connections so far.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    client: NDArray[Any]
    known: NDArray[Any]
    opened: NDArray[Any]
    words: NDArray[Any]
    plain: NDArray[Any]
    told: NDArray[Any]
    begun: NDArray[Any]
    count: NDArray[Any]

    def __init__(self) -> None:
        self.size = 0
        for name, kind in _KINDS.items():
            setattr(self, name, np.zeros(_FIRST_ROOM, kind))
        self.words = np.zeros((_FIRST_ROOM, _WORDS), np.int64)
        self._table = _empty(_FIRST_ROOM)

    def rows(self, low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
        """The rows of flows by their endpoints; new ones, from ``size`` on, for those that were not there."""
        self._make_room(self.size + low.size)
        rows = np.zeros(low.size, np.int64)
        self.size = loop("number_flows")(low, high, rows, self.low, self.high, self.size, self._table)
        return rows

    def row(self, one: int, other: int) -> int:
        """The row of one flow."""
        low, high = (np.array([each], np.int64) for each in (min(one, other), max(one, other)))
        return int(self.rows(low, high)[0])

    def servers(self, rows: Any) -> Any:
        """The servers of the latest connections of flows."""
        return self.low[rows] + self.high[rows] - self.client[rows]

    def take(self, rows: NDArray[Any], streams: Streams, flows: NDArray[Any]) -> None:
        """Takes note of what a window says of the latest connections of flows, all but the words."""
        self.client[rows] = streams.client[flows]
        self.known[rows], self.opened[rows] = streams.known[flows], streams.opened[flows]

    def idle(self, time_us: int) -> NDArray[Any]:
        """The rows of plain connections that have ended and were idle since before a time."""
        words = self.words[: self.size]
        over = self.plain[: self.size] & (words[:, STATE.index("over")] >= 0)
        return np.flatnonzero(over & (words[:, STATE.index("last")] < time_us))

    def _make_room(self, wanted: int) -> None:
        room = self.low.size
        if wanted <= room:
            return
        room = max(wanted, room + room // 2)
        for name in (*_KINDS, "words"):
            before = getattr(self, name)
            grown = np.zeros((room, *before.shape[1:]), before.dtype)
            grown[: self.size] = before[: self.size]
            setattr(self, name, grown)
        if self._table.size < 2 * room:
            self._table = _empty(room)
            low, high = self.low[: self.size].copy(), self.high[: self.size].copy()
            loop("number_flows")(low, high, np.zeros(self.size, np.int64), self.low, self.high, 0, self._table)


def _empty(room: int) -> NDArray[Any]:
    """The table of ``number_flows`` for so many flows."""
    return np.full(1 << max(2 * room, 2).bit_length(), -1, np.int64)
