"""The rows of open conversations, from window to window, and the frames that they carry."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirekit.capture.follow import Follower
from wirekit.conversation import Skipped
from wirekit.registry import registry
from wirekit.road.begun import CARRIED, Followed, conversations
from wirekit.road.states import States
from wirekit.tables.columns import FATES

NO_FRAMES = np.zeros(0, CARRIED)
_FIRST_ROOM = 1 << 10
_FREE = -1


class Conversations:
    """The conversations that columns follow; ``States.begun`` marks their rows of ``States``.

    Args:
        states: the TCP state of all flows; ``States.conversation`` has the places of their conversations.
    """

    def __init__(self, states: States) -> None:
        self._states = states
        self._rows = conversations(np.full(_FIRST_ROOM, _FREE))
        self._carry(NO_FRAMES)
        self._connections = self._rows["connection"].copy()  # of each place, or _FREE
        self._added: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._unpacked: list[int] = []
        self._overdue: dict[int, list[tuple[Any, ...]]] = {}  # ``CARRIED`` rows by row

    def _carry(self, carried: NDArray[Any]) -> None:
        """Stores all carried frames, by connection; those of a connection stay in order."""
        self._carried = carried[np.argsort(carried["connection"], kind="stable")]
        self._carriers = self._carried["connection"].copy()

    def carried_bytes(self) -> int:
        """The bytes of all carried frames and overdue requests."""
        overdue = [data for requests in self._overdue.values() for *_, data in requests]
        return sum(map(len, self._carried["data"].tolist())) + sum(map(len, overdue))

    def add(
        self, rows: NDArray[Any], carried: NDArray[Any] = NO_FRAMES, overdue: Sequence[tuple[Any, ...]] = ()
    ) -> None:
        """Adds ``CONVERSATION`` rows and their ``CARRIED`` frames; ``compact`` makes them visible.

        Args:
            rows, carried: the conversations and their frames.
            overdue: ``Begun.overdue`` of one conversation.
        """
        self._added.append((rows, carried))
        if overdue:
            self._overdue[overdue[0][0]] = list(overdue)

    def compact(self) -> None:
        """Includes the added conversations, and drops those that objects follow or that have ended."""
        begun, connections = self._states.begun, self._connections
        over = np.flatnonzero((connections != _FREE) & ~begun[connections])
        if not (over.size or self._added):
            return
        self._rows[over], connections[over] = conversations([_FREE]), _FREE
        carried = self._carried[begun[self._carriers]]
        rows, carried = (np.concatenate(each) for each in zip((conversations([]), carried), *self._added, strict=True))
        self._carry(carried)
        self._added = []
        places = self._free_places(rows.size)
        self._rows[places] = rows
        self._connections[places] = rows["connection"]
        self._states.conversation[rows["connection"]] = places
        begun[rows["connection"]] = True

    def _free_places(self, count: int) -> NDArray[Any]:
        places = np.flatnonzero(self._connections == _FREE)
        if places.size < count:
            more = conversations(np.full(max(count, self._rows.size // 2), _FREE))
            self._rows = np.concatenate([self._rows, more])
            self._connections = np.concatenate([self._connections, more["connection"]])
            places = np.flatnonzero(self._connections == _FREE)
        return places[:count]

    def of_flows(self, rows: NDArray[Any], flows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The conversations of some rows, their carried frames and overdue requests, with numbers of flows for rows."""
        conversations = self._rows[self._states.conversation[rows]]
        conversations["connection"] = flows
        flow_of = np.full(self._states.size, -1, np.int64)
        flow_of[rows] = flows
        carried = self._carried[flow_of[self._carriers] >= 0]
        overdue = np.array(
            [each for row, requests in self._overdue.items() if flow_of[row] >= 0 for each in requests], CARRIED
        )
        for frames in (carried, overdue):
            frames["connection"] = flow_of[frames["connection"]]
        return conversations, carried[np.argsort(carried["connection"], kind="stable")], overdue

    def take(self, row: int) -> tuple[Any, list[tuple[Any, ...]]]:
        """Removes a conversation; gives it and its carried frames."""
        self._states.begun[row] = False
        self._overdue.pop(row, None)
        begin, end = np.searchsorted(self._carriers, [row, row + 1])
        return self._rows[self._states.conversation[row]], self._carried[begin:end].tolist()

    def note(self, frames: Followed, row_of: NDArray[Any]) -> None:
        """Adds frames that are in the tables to the counts and facts; those that wait are carried.

        Args:
            frames: by flow.
            row_of: the row of each flow.
        """
        stored, rows, place_of = self._rows, row_of[frames.flows], self._states.conversation
        at = place_of[rows]
        stored["calls"][at] += frames.calls
        stored["errors"][at] += frames.errors
        stored["skipped"][at] += frames.sizes
        stored["one_sided"][at] = frames.one_sided
        called, facts = stored["called"], stored["facts"]
        for place, calls, columns in zip(at.tolist(), frames.called.tolist(), frames.facts.tolist(), strict=True):
            if not calls <= called[place]:
                called[place] = called[place] | calls if called[place] else calls
            if columns and not facts[place]:
                facts[place] = columns
            elif columns and not columns.keys() <= facts[place].keys():
                facts[place] = {**columns, **facts[place]}
        for flow, names in frames.names.items():
            place = place_of[row_of[flow]]
            before = stored["names"][place] or {}
            stored["names"][place] = {
                name: {**before.get(name, {}), **names.get(name, {})} for name in {**before, **names}
            }
        for flow, most in frames.most.items():
            place = place_of[row_of[flow]]
            stored["stated"][place], stored["most"][place] = most, _agreed(stored["protocol"][place], most)
        begun = self._states.begun
        begun[rows] = False
        waiting = frames.waiting.copy()
        waiting["connection"] = row_of[waiting["connection"]]
        self._carry(np.append(self._carried[begun[self._carriers]], waiting))
        begun[rows] = True

    def count_duplicates(self, rows: NDArray[Any], sizes: NDArray[Any]) -> None:
        """Counts bytes that were captured again, by side."""
        at = self._states.conversation[rows]
        for fate in ("captured", "duplicate"):
            self._rows["sizes"][at, :, list(FATES).index(fate)] += sizes

    def pack_later(self, row: int) -> None:
        """Has ``pack`` make bytes of the follower of a conversation."""
        self._unpacked.append(row)

    def pack(self) -> None:
        """Makes bytes of the followers of conversations that columns continue."""
        self.compact()
        followers, waits = self._rows["follower"], self._rows["waits"]
        for row in self._unpacked:
            place = self._states.conversation[row]
            if self._states.begun[row] and not waits[place]:
                follower = followers[place]
                if isinstance(follower, Follower):
                    followers[place] = pickle.dumps(follower.state(), pickle.HIGHEST_PROTOCOL)
        self._unpacked = []


@lru_cache(1 << 10)
def _agreed(protocol: str, most: int) -> int:
    """The largest size of a frame if frames state a number of bytes; 0 if that implies no limit."""
    dialogue = registry.protocol(protocol).follow()
    dialogue.skipped(Skipped([], most=most))
    return dialogue.frame_limit or 0
