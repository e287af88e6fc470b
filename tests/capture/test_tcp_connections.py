"""Segments of many connections of TCP at once."""

from __future__ import annotations

import pytest

from tests.capture.tcp_segments import CLIENT, MINUTE, SERVER, client, segment, server
from wirekit.capture.tcp import (
    ACK,
    SYN,
    Closed,
    Connection,
    Connections,
    Data,
    Event,
    Opened,
)


class TestManyConnections:
    def test_numbers_follow_the_first_appearance(self) -> None:
        other = "10.0.0.3:41000"
        connections = Connections()
        events = list(
            connections.read(
                [
                    client(0, -1, flags=SYN),
                    segment(other, 1, -1, flags=SYN, target=SERVER, isn=9),
                    server(2, -1, flags=SYN | ACK),
                    client(3, 0, b"a"),
                    segment(other, 4, 0, b"b", target=SERVER, isn=9),
                    segment(other, 5, -1, flags=SYN, target=SERVER, isn=10),
                    segment(other, 6, 0, b"c", target=SERVER, isn=10),
                ]
            )
        )
        assert [(number, event) for number, event in events if isinstance(event, Opened)] == [
            (0, Opened(0, CLIENT, SERVER, 0, True)),
            (1, Opened(1, other, SERVER, 1, True)),
            (2, Opened(2, other, SERVER, 5, True)),
        ]
        assert [(number, event.data) for number, event in events if isinstance(event, Data)] == [
            (0, b"a"),
            (1, b"b"),
            (2, b"c"),
        ]
        assert [(n, e.reason) for n, e in events if isinstance(e, Closed)] == [(1, "new connection")]
        assert [(n, e) for n, e in connections.finish()] == [
            (0, Closed("both", "end of capture", 3)),
            (2, Closed("both", "end of capture", 6)),
        ]

    def test_idle_connections_are_closed_and_forgotten(self) -> None:
        connections = Connections()
        for i in range(100):
            connections.feed(segment(f"10.0.0.1:{40000 + i}", i, -1, flags=SYN, target=SERVER, isn=i))
        events = connections.feed(client(30 * MINUTE, 0, b"x"))
        assert len([event for _, event in events if isinstance(event, Closed) and event.reason == "idle"]) == 100
        assert len(connections.state()["connections"]) == 1

    def test_connections_from_before_the_clock_was_set_back_are_forgotten(self) -> None:
        """Ten minutes of the new clock after the first look for idle ones; one that goes on stays."""
        connections, year = Connections(), 365 * 24 * 60 * MINUTE
        for i in range(100):
            connections.feed(segment(f"10.0.0.9:{40000 + i}", year + i, -1, flags=SYN, target=SERVER, isn=i))
        connections.feed(client(year, 0, b"a"))
        events = [
            event for minute in range(41) for event in connections.feed(client(minute * MINUTE, 1 + minute, b"b"))
        ]
        assert [event.reason for _, event in events if isinstance(event, Closed)] == ["idle"] * 100
        assert len(connections.state()["connections"]) == 1
        assert {number for number, event in events if isinstance(event, Data)} == {100}

    def test_idle_connections_are_looked_for_once_in_the_time_and_not_at_each_segment(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked: list[int] = []

        def expire(_: Connection, time_us: int) -> list[Event]:
            looked.append(time_us)
            return []

        monkeypatch.setattr(Connection, "expire", expire)
        connections = Connections()
        for i in range(50):
            connections.feed(segment(f"10.0.0.1:{40000 + i}", i, -1, flags=SYN, target=SERVER, isn=i))
        for i in range(200):
            connections.feed(client(5 * MINUTE + i, i, b"x"))
        assert len(looked) <= 2 * 51
