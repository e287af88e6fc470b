"""The rows of open conversations, from window to window, and the frames that they carry."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wirekit.capture.follow import Follower
from wirekit.conversation import Skipped
from wirekit.registry import registry
from wirekit.road.begun import CARRIED, conversations
from wirekit.road.states import States
from wirekit.tables.columns import FATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirekit.road.begun import Followed

NO_FRAMES = np.zeros(0, CARRIED)


class Conversations:
    """The conversations that columns follow, by row of ``States``; ``States.begun`` marks these rows.

    Attributes:
        rows: the ``CONVERSATION`` rows, ordered by connection.

    Args:
        states: the TCP state of all flows.
    """

    def __init__(self, states: States) -> None:
        self._states = states
        self.rows, self._carried = conversations([]), NO_FRAMES
        self._connections = self.rows["connection"]
        self._added: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._unpacked: list[int] = []

    def carried_bytes(self) -> int:
        """The bytes of all carried frames."""
        return sum(map(len, self._carried["data"].tolist()))

    def add(self, rows: NDArray[Any], carried: NDArray[Any] = NO_FRAMES) -> None:
        """Adds ``CONVERSATION`` rows and their ``CARRIED`` frames; ``compact`` makes them visible."""
        self._added.append((rows, carried))

    def compact(self) -> None:
        """Includes the added conversations, and drops those that objects follow or that have ended."""
        begun = self._states.begun
        remaining = (each[begun[each["connection"]]] for each in (self.rows, self._carried))
        rows, self._carried = (np.concatenate(each) for each in zip(remaining, *self._added, strict=True))
        self._added = []
        self.rows = rows[np.argsort(rows["connection"])]
        self._connections = self.rows["connection"].copy()
        begun[self._connections] = True

    def of_flows(self, rows: NDArray[Any], flows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The conversations of some rows and their carried frames, with the numbers of flows for the rows."""
        conversations = self.rows[np.searchsorted(self._connections, rows)]
        conversations["connection"] = flows
        flow_of = np.full(self._states.size, -1, np.int64)
        flow_of[rows] = flows
        carried = self._carried[flow_of[self._carried["connection"]] >= 0]
        carried["connection"] = flow_of[carried["connection"]]
        return conversations, carried[np.argsort(carried["connection"], kind="stable")]

    def take(self, row: int) -> tuple[Any, list[tuple[Any, ...]]]:
        """Removes a conversation; gives it and its carried frames."""
        self._states.begun[row] = False
        return self.rows[self._place(row)], self._carried[self._carried["connection"] == row].tolist()

    def note(self, frames: Followed, row_of: NDArray[Any]) -> None:
        """Adds frames that are in the tables to the counts and facts; those that wait are carried.

        Args:
            frames: by flow.
            row_of: the row of each flow.
        """
        stored, rows = self.rows, row_of[frames.flows]
        at = np.searchsorted(self._connections, rows)
        stored["calls"][at] += frames.calls
        stored["errors"][at] += frames.errors
        stored["skipped"][at] += frames.sizes
        called, facts = stored["called"], stored["facts"]
        for place, calls, columns in zip(at.tolist(), frames.called.tolist(), frames.facts.tolist(), strict=True):
            if not calls <= called[place]:
                called[place] = called[place] | calls if called[place] else calls
            if columns and not facts[place]:
                facts[place] = columns
            elif columns and not columns.keys() <= facts[place].keys():
                facts[place] = {**columns, **facts[place]}
        for flow, names in frames.names.items():
            place = self._place(row_of[flow])
            before = stored["names"][place] or {}
            stored["names"][place] = {
                name: {**before.get(name, {}), **names.get(name, {})} for name in {**before, **names}
            }
        for flow, most in frames.most.items():
            place = self._place(row_of[flow])
            stored["stated"][place], stored["most"][place] = most, _agreed(stored["protocol"][place], most)
        begun = self._states.begun
        begun[rows] = False
        waiting = frames.waiting.copy()
        waiting["connection"] = row_of[waiting["connection"]]
        self._carried = np.append(self._carried[begun[self._carried["connection"]]], waiting)
        begun[rows] = True

    def count_duplicates(self, rows: NDArray[Any], sizes: NDArray[Any]) -> None:
        """Counts bytes that were captured again, by side."""
        at = np.searchsorted(self._connections, rows)
        for fate in ("captured", "duplicate"):
            self.rows["sizes"][at, :, list(FATES).index(fate)] += sizes

    def pack_later(self, row: int) -> None:
        """Has ``pack`` make bytes of the follower of a conversation."""
        self._unpacked.append(row)

    def pack(self) -> None:
        """Makes bytes of the followers of conversations that columns continue."""
        self.compact()
        followers = self.rows["follower"]
        for row in self._unpacked:
            place = self._place(row)
            if self._states.begun[row] and not self.rows["waits"][place]:
                follower = followers[place]
                if isinstance(follower, Follower):
                    followers[place] = pickle.dumps(follower.state(), pickle.HIGHEST_PROTOCOL)
        self._unpacked = []

    def _place(self, row: int) -> int:
        return int(np.searchsorted(self._connections, row))


@lru_cache(1 << 10)
def _agreed(protocol: str, most: int) -> int:
    """Bytes that a frame may have where frames state so many, 0 if that says nothing."""
    dialogue = registry.protocol(protocol).follow()
    dialogue.skipped(Skipped([], most=most))
    return dialogue.frame_limit or 0
