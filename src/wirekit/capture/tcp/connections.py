"""Turns the segments of a whole capture into events, each address pair separately."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wirekit.capture.tcp.connection import STATE_VERSION, Connection, check_version
from wirekit.capture.tcp.direction import NEVER
from wirekit.capture.tcp.events import CLOCK_STEP_US, DEFAULT, Event, Opened, Segment, Settings
from wirekit.errors import Misuse


class Connections:
    """Follows the segments of a whole capture, in capture order; each event has the number of its connection.

    Connections are numbered from 0 in order of appearance. Those that were idle for ``Settings.idle_us`` are closed
    and dropped, so memory is proportional to the open connections. After the clock was set back, those without further
    segments are closed when they have been idle by the new clock.

    Args:
        settings: times and limits of every connection.
    """

    def __init__(self, settings: Settings = DEFAULT) -> None:
        self._settings = settings
        self._next_number = 0
        self._connections: dict[tuple[str, str], Connection] = {}  # by the addresses as first seen
        self._flows: dict[tuple[str, str], Connection] = {}  # by the addresses either way round
        self._numbers = self._take_number  # one object for all connections
        self._sweep_us = -NEVER
        self._ahead: dict[tuple[str, str], int] = {}  # those with a later time than the last sweep, and this time

    def feed(self, segment: Segment) -> list[tuple[int, Event]]:
        """Takes one segment, and returns (connection number, event) for all events that it completes, in order."""
        swept = self._sweep(segment.time_us) if segment.time_us > self._sweep_us else []
        if segment.time_us < self._sweep_us - self._settings.idle_us - CLOCK_STEP_US:
            self._sweep_us = segment.time_us + self._settings.idle_us
        key = segment[1:3]
        connection = self._flows.get(key)
        if connection is None:
            connection = Connection(self._settings, self._numbers)
            self._connections[key] = self._flows[key] = self._flows[key[::-1]] = connection
        number = connection.number
        events = connection.feed(segment)
        if swept or connection.number != number:
            return swept + _numbered(number, events)
        if len(events) == 1:  # nearly always, and a list made in one go takes half the time
            return [(number, events[0])]
        return [(number, event) for event in events]

    def read(self, segments: Iterable[Segment]) -> Iterator[tuple[int, Event]]:
        """``feed`` for many segments; call ``finish`` afterwards, unless the state is passed on."""
        for segment in segments:
            yield from self.feed(segment)

    def finish(self, time_us: int | None = None) -> list[tuple[int, Event]]:
        """Ends the capture, at ``time_us`` if known: closes every connection, in order of appearance."""
        return list(self.closing(time_us))

    def closing(self, time_us: int | None = None) -> Iterator[tuple[int, Event]]:
        """Like ``finish``, but yields the events one by one."""
        for connection in self._connections.values():
            yield from _numbered(connection.number, connection.finish(time_us))

    def state(self) -> dict[str, Any]:
        """All connections as JSON data for ``from_state``, without the settings."""
        return {
            "version": STATE_VERSION,
            "next_number": self._next_number,
            "sweep_us": self._sweep_us,
            "connections": [connection.state() for connection in self._connections.values()],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], settings: Settings = DEFAULT) -> Connections:
        """Continues from the result of ``state()``.

        Raises:
            Misuse: the state has another version.
        """
        check_version(state)
        connections = cls(settings)
        try:
            connections._next_number = state["next_number"]
            connections._sweep_us = state["sweep_us"]
            parts = state["connections"]
        except KeyError as error:
            raise Misuse(f"the state of a capture lacks {error}; pass what state() returned") from error
        for part in parts:
            connection = Connection.from_state(part, settings, connections._take_number)
            key = connection.addresses
            connections._connections[key] = connections._flows[key] = connections._flows[key[::-1]] = connection
        return connections

    def _take_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _sweep(self, time_us: int) -> list[tuple[int, Event]]:
        """Closes and drops the idle connections."""
        self._sweep_us = time_us + self._settings.idle_us
        events: list[tuple[int, Event]] = []
        earlier, self._ahead = self._ahead, {}
        for key, connection in list(self._connections.items()):
            now_us, last_us = time_us, connection.last_us
            if last_us > time_us + CLOCK_STEP_US:
                self._ahead[key] = last_us
                if earlier.get(key) == last_us:  # nothing since the last sweep, so it is idle for long enough
                    now_us = last_us + self._settings.idle_us + 1
            events += _numbered(connection.number, connection.expire(now_us))
            if connection.is_idle(now_us):
                del self._connections[key], self._flows[key]
                self._flows.pop(key[::-1], None)
                self._ahead.pop(key, None)
        return events


def _numbered(number: int, events: list[Event]) -> list[tuple[int, Event]]:
    """Events with the number of their connection, which changes where another connection opens."""
    pairs: list[tuple[int, Event]] = []
    for event in events:
        if isinstance(event, Opened):
            number = event.connection
        pairs.append((number, event))
    return pairs
