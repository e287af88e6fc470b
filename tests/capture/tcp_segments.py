"""Segments of a connection, made for tests, and the events that the connection gives for them.

Times are microseconds. The client's first byte has sequence number ``ISN + 1``.
"""

from __future__ import annotations

from typing import Any

from wirekit.capture.tcp import (
    ACK,
    SYN,
    Connection,
    Data,
    Event,
    Gap,
    Segment,
    Settings,
)

CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.2:9092"
ISN, SERVER_ISN = 1000, 5000
MS = 1000
MINUTE = 60_000_000
GIB = 1 << 30


def segment(
    source: str,
    time_us: int,
    at: int,
    payload: bytes = b"",
    *,
    flags: int = ACK,
    acked: int = 0,
    length: int | None = None,
    isn: int | None = None,
    other_isn: int | None = None,
    target: str | None = None,
) -> Segment:
    """A segment at stream offset ``at`` (-1 is the SYN's own number), acknowledging ``acked`` bytes."""
    sequence = (ISN if source == CLIENT else SERVER_ISN) if isn is None else isn
    acknowledgment = (SERVER_ISN if source == CLIENT else ISN) if other_isn is None else other_isn
    return Segment(
        time_us=time_us,
        source=source,
        target=target or (SERVER if source == CLIENT else CLIENT),
        sequence=(sequence + 1 + at) % 2**32,
        acknowledgment=(acknowledgment + 1 + acked) % 2**32 if flags & ACK else 0,
        flags=flags,
        payload=payload,
        offset=10 * time_us,
        file=0,
        length=len(payload) if length is None else length,
    )


def client(time_us: int, at: int, payload: bytes = b"", **more: Any) -> Segment:
    return segment(CLIENT, time_us, at, payload, **more)


def server(time_us: int, at: int, payload: bytes = b"", **more: Any) -> Segment:
    return segment(SERVER, time_us, at, payload, **more)


def handshake(time_us: int = 0, **more: Any) -> list[Segment]:
    answer: dict[str, Any] = {"isn": more.get("other_isn"), "other_isn": more.get("isn")}
    return [
        client(time_us, -1, flags=SYN, **more),
        server(time_us, -1, flags=SYN | ACK, **answer),
        client(time_us, 0, **more),
    ]


def feed(connection: Connection, *segments: Segment) -> list[Event]:
    return [event for each in segments for event in connection.feed(each)]


def run(*segments: Segment, settings: Settings | None = None, finish: bool = True) -> list[Event]:
    connection = Connection(settings or Settings())
    return feed(connection, *segments) + (connection.finish() if finish else [])


def established(connection: Connection) -> Connection:
    """After a handshake at time 0."""
    feed(connection, *handshake())
    return connection


def brief(events: list[Event]) -> list[tuple[Any, ...]]:
    """Data and Gap without times and places."""
    briefs: list[tuple[Any, ...]] = []
    for event in events:
        if isinstance(event, Data):
            briefs.append((event.direction, event.stream_offset, event.data))
        elif isinstance(event, Gap):
            briefs.append((event.direction, event.stream_offset, event.length, event.reason))
    return briefs


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]
