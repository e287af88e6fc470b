"""The TCP state of all flows of a capture between windows: a row of columns for each flow.

The TCP state of a connection stays for a while after its end, because segments may arrive late. Later, segments with a
SYN or payload begin another connection, and the others are ignored. So all such flows share one state, except for the
time of the last packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wirekit.capture.tcp.connection import STATE_VERSION
from wirekit.capture.tcp.direction import NEVER, NOTHING
from wirekit.road.compiled import loop
from wirekit.road.streams import SIDE, STATE, Streams, word
from wirekit.tables.columns import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping


_FIRST_ROOM = 1 << 10
_GROWTH = 8  # full arrays grow by one part in ``_GROWTH``
_KINDS = {
    "low": np.int64, "high": np.int64, "client": np.int64, "known": np.bool_, "opened": np.int64, "plain": np.bool_,
    "reported": np.bool_, "begun": np.bool_, "count": np.int32, "slot": np.int64, "last": np.int64,
    "conversation": np.int32,
}  # fmt: skip
_WORDS = len(STATE) + 2 * len(SIDE)
_LAST, _RESET, _OVER = (STATE.index(each) for each in ("last", "reset", "over"))
_SHARED = 1
"""The slot of the flows whose connection ended too long ago for late segments."""


class States:
    """The flows of a capture.

    Attributes:
        size: the number of flows.
        low, high: the endpoints of each, the lower one first.
        client: the endpoint that is the client of the latest connection.
        known, opened: whether the latest connection has a handshake, and when it began.
        plain: whether ``words_of`` gives its whole state: False while objects follow it.
        reported: whether columns have reported it.
        begun: whether columns follow its conversation, see ``wirekit.road.begun``.
        count: the number of connections so far.
        slot: the place of the flow's words among those of all flows, plus 1; 0 if it has none.
        last: the time of the last packet, if the flow has the shared words.
        conversation: the place of its row in ``wirekit.road.conversations``, if it is begun.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    client: NDArray[Any]
    known: NDArray[Any]
    opened: NDArray[Any]
    plain: NDArray[Any]
    reported: NDArray[Any]
    begun: NDArray[Any]
    count: NDArray[Any]
    slot: NDArray[Any]
    last: NDArray[Any]
    conversation: NDArray[Any]

    def __init__(self) -> None:
        self.size = 0
        for name, kind in _KINDS.items():
            setattr(self, name, np.zeros(_FIRST_ROOM, kind))
        self._words = np.zeros((_FIRST_ROOM, _WORDS), np.int64)
        self._words[_SHARED - 1, [word(side, name) for side in range(2) for name in ("start", "unseen")]] = -1
        self._words[_SHARED - 1, _RESET] = -1
        self._free = np.arange(_FIRST_ROOM, _SHARED, -1)  # slots, the next one last
        self._table = _empty(_FIRST_ROOM)

    def rows(self, low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
        """The rows of flows by their endpoints; flows without a row get a new one, from ``size`` on."""
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
        return self.low[rows] ^ self.high[rows] ^ self.client[rows]

    def take(self, rows: NDArray[Any], streams: Streams, flows: NDArray[Any]) -> None:
        """Stores client, handshake and opening time of the latest connections of flows in a window."""
        self.client[rows] = streams.client[flows]
        self.known[rows], self.opened[rows] = streams.known[flows], streams.opened[flows]

    def words_of(self, rows: Any) -> NDArray[Any]:
        """The TCP state of plain flows, in the form of ``Streams.state``."""
        slots = self.slot[rows]
        words: NDArray[Any] = self._words.take(slots - 1, axis=0)
        words[..., _LAST] = np.where(slots == _SHARED, self.last[rows], words[..., _LAST])
        return words

    def put_words(self, rows: NDArray[Any], words: Any) -> None:
        """Stores the TCP state of flows, which are plain from now on."""
        fresh = rows[self.slot[rows] <= _SHARED]
        lacking = fresh.size - self._free.size
        if lacking > 0:
            room = len(self._words)
            grown = np.zeros((room + max(lacking, room // _GROWTH), _WORDS), np.int64)
            grown[:room] = self._words
            self._free = np.concatenate([np.arange(len(grown), room, -1), self._free])
            self._words = grown
        remaining = self._free.size - fresh.size
        self.slot[fresh], self._free = self._free[remaining:], self._free[:remaining]
        self._words[self.slot[rows] - 1], self.plain[rows] = words, True

    def ended_before(self, time_us: int) -> NDArray[Any]:
        """The rows of plain connections that ended before a time, without those that are forgotten already."""
        rows = np.flatnonzero((self.slot[: self.size] > _SHARED) & self.plain[: self.size])
        ended = self._words[self.slot[rows] - 1, _OVER]
        return rows[(ended >= 0) & (ended < time_us) & (self.count[rows] > 0) & ~self.begun[rows]]

    def forget(self, rows: NDArray[Any]) -> None:
        """Forgets the state of plain flows whose connections ended too long ago for late segments."""
        self.last[rows], self.known[rows] = self._words[self.slot[rows] - 1, _LAST], False
        self._free = np.append(self._free, self.slot[rows])
        self.slot[rows] = _SHARED

    def state(self, row: int, addresses: list[str], gaps: tuple[Any, Any], hold_us: int) -> dict[str, Any]:
        """The state of a plain connection, in the form of ``Connection.state``.

        Args:
            row: the flow.
            addresses: the addresses of client and server.
            gaps: for each side, the gaps that ``Connection`` remembers.
            hold_us: how long a connection stays open after a reset.
        """
        words = self.words_of(row).tolist()
        last, reset, over, sender = words[: len(STATE)]
        directions = []
        for number, role in enumerate(SIDES):
            begun, start, following, size, acked, unseen, heard, ended, _ = words[
                word(number, "begun") : word(number + 1, "begun")
            ]
            closed = ended >= 0
            directions.append({
                "role": role, "raw": following if begun else -1, "next": size, "start": start, "settle_us": None,
                "held": [], "cost": 0, "cuts": [], "seen": size, "gaps": gaps[number],
                "acked": acked or NOTHING, "unseen": unseen, "unseen_size": heard, "mark": 0, "mark_us": 0,
                "fin": size if closed else -1, "fin_us": max(ended, 0), "closed": closed, "stray": [-1, 0],
                "slow": closed or not begun, "deadline": NEVER,
            })  # fmt: skip
        closing = reset + hold_us if reset >= 0 else NEVER
        return {
            "version": STATE_VERSION, "number": 0, "addresses": addresses[::-1] if sender else addresses,
            "known": bool(self.known[row]), "announced": bool(self.count[row]),
            "opened_us": int(self.opened[row]), "last_us": last,
            "closing_us": closing, "ended_us": over if over >= 0 else None, "deadline": closing,
            "directions": directions[::-1] if sender else directions,
        }  # fmt: skip

    def put(self, row: int, state: Mapping[str, Any], ends: list[int]) -> tuple[Any, Any] | None:
        """Stores the state of a connection that has nothing pending.

        Args:
            row: the flow.
            state: the state, in the form of ``Connection.state``.
            ends: the endpoints of its addresses.

        Returns:
            The gaps of client and server, which a row cannot store; None, and nothing is stored, if a row cannot
            represent the state for another reason.
        """
        first, second = state["directions"]
        client, server = (first, second) if first["role"] == "client" else (second, first)
        both = client["raw"] >= 0 and server["raw"] >= 0
        if (state["known"] and not both) or state["last_us"] < 0:
            return None
        ended = -1 if state["ended_us"] is None else state["ended_us"]
        words = [state["last_us"], -1, ended, int(first is server)]
        for side in (client, server):
            closed = side["closed"] or ended >= 0
            words += [
                side["raw"] >= 0, side["start"], max(side["raw"], 0), side["next"], max(side["acked"], 0),
                side["unseen"], side["unseen_size"], max(side["fin_us"], 0) if closed else -1,
                max((end for _, end in side["gaps"]), default=0),
            ]  # fmt: skip
        self.client[row] = ends[0 if first is client else 1]
        self.known[row], self.opened[row] = state["known"], state["opened_us"]
        self.put_words(np.array([row]), words)
        return client["gaps"], server["gaps"]

    def _make_room(self, needed: int) -> None:
        room = self.low.size
        if needed <= room:
            return
        room = max(needed, room + room // _GROWTH)
        for name in _KINDS:
            before = getattr(self, name)
            grown = np.zeros(room, before.dtype)
            grown[: self.size] = before[: self.size]
            setattr(self, name, grown)
        if self._table.size < 2 * room:
            self._table = _empty(room)
            low, high = self.low[: self.size].copy(), self.high[: self.size].copy()
            loop("number_flows")(low, high, np.zeros(self.size, np.int64), self.low, self.high, 0, self._table)


def _empty(room: int) -> NDArray[Any]:
    """An empty hash table of ``number_flows``, for a number of flows."""
    return np.full(1 << max(2 * room, 2).bit_length(), -1, np.int64)
