"""TCP segments in any order -> bytes in order, with explicit gaps, and not one byte unaccounted for.

All segments are made here; times are microseconds. The client's first byte has sequence number ``ISN + 1``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirekit.capture.tcp import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    Closed,
    Connection,
    Connections,
    Data,
    Duplicate,
    Event,
    Gap,
    Ignored,
    Opened,
    Segment,
    Settings,
)
from wirekit.capture.tcp.connection import STATE_VERSION
from wirekit.errors import Misuse

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


class TestOrder:
    def test_in_order_data_leaves_at_once_with_its_place_in_the_file(self) -> None:
        connection = established(Connection())
        assert connection.feed(client(7, 0, b"abc")) == [Data("client", b"abc", 0, 7, 70, 0)]
        assert connection.feed(client(8, 3, b"de", flags=ACK | PSH)) == [Data("client", b"de", 3, 8, 80, 0)]

    def test_early_data_waits_for_the_bytes_before_it(self) -> None:
        connection = established(Connection())
        assert connection.feed(client(1, 3, b"def")) == []
        assert connection.feed(client(2, 6, b"gh")) == []
        assert connection.feed(client(3, 0, b"abc")) == [
            Data("client", b"abc", 0, 3, 30, 0),
            Data("client", b"def", 3, 1, 10, 0),
            Data("client", b"gh", 6, 2, 20, 0),
        ]
        assert connection.feed(client(4, 8, b"ij")) == [Data("client", b"ij", 8, 4, 40, 0)]

    def test_directions_are_independent(self) -> None:
        connection = established(Connection())
        events = feed(
            connection,
            client(1, 0, b"ask"),
            server(1, 2, b"swer"),
            client(2, 3, b"more"),
            server(2, 0, b"an", acked=7),
        )
        assert brief(events) == [
            ("client", 0, b"ask"),
            ("client", 3, b"more"),
            ("server", 0, b"an"),
            ("server", 2, b"swer"),
        ]

    @pytest.mark.parametrize("first", [2**32 - 1, 2**32 - 2, 2**32 - 5, 2**31 - 3, 0])
    def test_sequence_numbers_wrap(self, first: int) -> None:
        pieces = [client(1 + i, 2 * i, bytes((i, i)), isn=first) for i in range(6)]
        early = [pieces[0], pieces[3], pieces[2], pieces[1], pieces[5], pieces[4]]
        events = run(*handshake(isn=first), *early, finish=False)
        assert b"".join(data.data for data in of(Data, events)) == bytes((0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5))

    def test_stream_offsets_go_beyond_32_bits(self) -> None:
        connection = established(Connection())
        steps = 5 * 8
        for i in range(steps):  # snap length 1: as if half a GiB a segment
            connection.feed(client(i, i * GIB // 8, b"x", length=GIB // 8))
        (data,) = of(Data, connection.feed(client(steps, steps * GIB // 8, b"y")))
        assert data.stream_offset == 5 * GIB

    def test_data_on_the_syn_counts(self) -> None:
        events = run(client(0, -1, b"hello", flags=SYN), server(1, -1, flags=SYN | ACK, acked=5), client(2, 5, b"!"))
        assert brief(events) == [("client", 0, b"hello"), ("client", 5, b"!")]
        assert len(of(Opened, events)) == 1


class TestWaiting:
    """Bytes of the server wait for the bytes of the client that they acknowledge."""

    def test_a_response_waits_for_a_late_request(self) -> None:
        connection = established(Connection())
        assert connection.feed(server(1 * MS, 0, b"AA", acked=3)) == []
        assert connection.feed(server(2 * MS, 2, b"BB", acked=3)) == []
        assert brief(connection.feed(client(3 * MS, 0, b"abc"))) == [
            ("client", 0, b"abc"), ("server", 0, b"AA"), ("server", 2, b"BB")
        ]  # fmt: skip
        assert connection.settled
        assert brief(connection.feed(server(4 * MS, 4, b"CC", acked=3))) == [("server", 4, b"CC")]

    def test_each_response_waits_for_its_own_request(self) -> None:
        connection = established(Connection())
        feed(
            connection, server(1 * MS, 0, b"AA", acked=3), client(2 * MS, 3, b"def"), server(3 * MS, 2, b"BB", acked=6)
        )
        assert brief(connection.feed(client(4 * MS, 0, b"abc"))) == [
            ("client", 0, b"abc"), ("client", 3, b"def"), ("server", 0, b"AA"), ("server", 2, b"BB")
        ]  # fmt: skip

    def test_a_lost_request_holds_only_its_own_response_for_the_hold_time(self) -> None:
        connection = established(Connection())
        events = feed(
            connection,
            server(1 * MS, 0, b"AA", acked=3),
            client(2 * MS, 3, b"def"),
            server(3 * MS, 2, b"BB", acked=6),
            client(20 * MS, 6),
        )
        assert brief(events) == [
            ("server", 0, b"AA"),
            ("client", 0, 3, "acknowledged, never captured"),
            ("client", 3, b"def"),
            ("server", 2, b"BB"),
        ]

    def test_without_handshake_a_response_waits_for_the_first_request(self) -> None:
        """The server is captured first, and its first byte is certain first."""
        connection = Connection()
        events = feed(
            connection,
            server(0, 0, b"AA", acked=0),
            client(1 * MS, 0, b"abc"),
            server(2 * MS, 2, b"BB", acked=3),
            client(20 * MS, 3),
        )
        assert brief(events) == [("server", 0, b"AA"), ("client", 0, b"abc"), ("server", 2, b"BB")]

    @pytest.mark.parametrize("end", [[], [client(4 * MS, 0, flags=RST)]])
    def test_at_the_end_requests_come_first(self, end: list[Segment]) -> None:
        """Nothing is lost."""
        events = run(server(0, 0), client(1 * MS, 0, b"abc"), server(2 * MS, 0, b"AA", acked=3), *end)
        assert brief(events) == [("client", 0, b"abc"), ("server", 0, b"AA")]

    def test_a_client_that_was_not_captured_delays_nothing(self) -> None:
        connection = Connection()
        feed(connection, server(0, 0, b"AA", acked=3), server(6 * MS, 2, b"BB", acked=3))
        assert brief(connection.feed(server(7 * MS, 4, b"CC", acked=9))) == [("server", 4, b"CC")]

    def test_what_waits_is_in_the_state(self) -> None:
        connection = established(Connection())
        feed(connection, server(1 * MS, 0, b"AA", acked=3))
        again = Connection.from_state(json.loads(json.dumps(connection.state())))
        assert brief(again.feed(client(2 * MS, 0, b"abc"))) == [("client", 0, b"abc"), ("server", 0, b"AA")]

    def test_bytes_over_the_limit_do_not_wait(self) -> None:
        connection = established(Connection(Settings(held_limit=300)))
        events = feed(connection, server(1 * MS, 0, b"AA", acked=3), server(2 * MS, 2, b"BB", acked=3))
        assert brief(events) == [("server", 0, b"AA"), ("server", 2, b"BB")]


class TestDuplicates:
    def test_a_retransmission_is_dropped_and_counted(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 0, b"abc"))
        assert connection.feed(client(2, 0, b"abc")) == [Duplicate("client", 3, 0, 2)]

    def test_a_retransmission_that_brings_more_is_trimmed(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 0, b"abc"))
        assert connection.feed(client(2, 1, b"bcdef")) == [
            Duplicate("client", 2, 0, 2),
            Data("client", b"def", 3, 2, 22, 0),
        ]

    def test_overlaps_on_both_sides_of_held_data_are_trimmed(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 4, b"ef"))
        assert connection.feed(client(2, 2, b"cdefgh")) == [Duplicate("client", 2, 0, 2)]
        assert brief(connection.feed(client(3, 0, b"abc"))) == [
            ("client", 0, b"ab"),
            ("client", 2, b"cd"),
            ("client", 4, b"ef"),
            ("client", 6, b"gh"),
        ]

    def test_the_first_copy_wins_and_a_conflict_is_counted(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 2, b"cd"), client(1, 6, b"gh"))
        assert connection.feed(client(2, 0, b"abXdefgY")) == [
            Duplicate("client", 4, 2, 2),
            Data("client", b"ab", 0, 2, 20, 0),
            Data("client", b"cd", 2, 1, 10, 0),
            Data("client", b"ef", 4, 2, 24, 0),
            Data("client", b"gh", 6, 1, 10, 0),
        ]

    @pytest.mark.parametrize("payload", [b"", b"\0"])
    def test_keepalives_are_no_data(self, payload: bytes) -> None:
        connection = established(Connection())
        feed(connection, client(1, 0, b"abc"))
        assert not of(Data, connection.feed(client(2, 2, payload)))
        assert brief(connection.feed(client(3, 3, b"d"))) == [("client", 3, b"d")]

    def test_garbage_out_of_the_window_is_counted_and_kept_for_quarantine(self) -> None:
        connection = established(Connection())
        assert connection.feed(client(1, GIB + 1, b"x")) == [Ignored("client", b"x", 1, 10, 0, "out of the window")]
        assert connection.feed(client(2, -GIB - 1, b"x")) == [Ignored("client", b"x", 2, 20, 0, "out of the window")]
        assert connection.feed(client(3, -2, b"xyz")) == [
            Ignored("client", b"xy", 3, 30, 0, "before the start"),
            Data("client", b"z", 0, 3, 32, 0),
        ]

    def test_two_segments_out_of_the_window_that_follow_each_other_are_another_connection(self) -> None:
        events = run(*handshake(), client(1, 0, b"a"), client(2, 2 * GIB, b"b"), client(3, 2 * GIB + 1, b"cd"))
        assert of(Ignored, events) == [Ignored("client", b"b", 2, 20, 0, "out of the window")]
        assert of(Closed, events)[0] == Closed("both", "new connection", 2)
        assert of(Opened, events)[1] == Opened(1, CLIENT, SERVER, 3, False)
        assert brief(events)[-1] == ("client", 0, b"cd")


class TestGaps:
    def test_a_lost_segment_is_a_gap_once_acknowledged_and_the_hold_time_is_over(self) -> None:
        connection = established(Connection())
        assert feed(connection, client(1 * MS, 3, b"def"), server(2 * MS, 0, acked=6)) == []
        assert feed(connection, server(7 * MS, 0, acked=6)) == []
        assert feed(connection, server(7 * MS + 1, 0, acked=6)) == [
            Gap("client", 0, 3, 1 * MS, "acknowledged, never captured"),
            Data("client", b"def", 3, 1 * MS, 10 * MS, 0),
        ]

    def test_a_segment_captured_late_but_within_the_hold_time_is_no_gap(self) -> None:
        connection = established(Connection())
        feed(connection, client(1 * MS, 3, b"def"), server(2 * MS, 0, acked=6))
        assert brief(connection.feed(client(7 * MS, 0, b"abc"))) == [("client", 0, b"abc"), ("client", 3, b"def")]

    def test_a_hole_that_is_not_acknowledged_waits(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 3, b"def"), server(2, 0, acked=2))
        assert feed(connection, server(900 * MS, 0, acked=2)) == []
        assert brief(connection.feed(client(950 * MS, 0, b"abc"))) == [("client", 0, b"abc"), ("client", 3, b"def")]

    def test_when_only_one_direction_was_captured_patience_ends(self) -> None:
        settings = Settings(patience_us=20 * MS)
        events = run(client(0, -1, flags=SYN), client(1, 3, b"def"), client(20 * MS + 2, 6, b"g"), settings=settings)
        assert brief(events) == [
            ("client", 0, 3, "never acknowledged, never captured"),
            ("client", 3, b"def"),
            ("client", 6, b"g"),
        ]

    def test_an_uncaptured_direction_has_a_gap_as_long_as_its_acknowledged_bytes(self) -> None:
        events = run(client(1, 0, b"a", acked=100), client(2, 1, b"b", acked=130), client(3, 2, b"c", acked=120))
        assert brief(events)[-1] == ("server", 0, 30, "acknowledged, never captured")
        assert not of(Gap, run(client(1, 0, b"a", acked=100), client(2, 1, b"b", acked=100)))
        assert not of(Gap, run(client(1, 0, b"a", acked=100), client(2, 1, b"b", acked=2 * GIB)))

    def test_a_direction_begins_with_a_gap_for_earlier_acknowledged_bytes(self) -> None:
        asked = [client(1, 0, b"a", acked=100), client(2, 1, b"b", acked=130)]
        assert brief(run(*asked, server(3, 130, b"xy")))[2:] == [
            ("server", 0, 30, "acknowledged, never captured"),
            ("server", 30, b"xy"),
        ]
        assert brief(run(*asked, server(3, 130, b"xy"), server(4, 100, bytes(30))))[2:] == [
            ("server", 0, bytes(30)),
            ("server", 30, b"xy"),
        ]
        for at in (90, 100, 131):
            first = brief(run(*asked, server(3, at, b"xy")))[-1]
            assert first == ("server", 0, b"xy")

    def test_a_late_byte_after_its_gap_is_not_called_a_duplicate(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 0, b"ab"), client(2, 4, b"ef"), server(3, 0, acked=6), server(9 * MS, 0, acked=6))
        assert connection.feed(client(10 * MS, 1, b"bcdef")) == [
            Ignored("client", b"cd", 10 * MS, 100 * MS + 1, 0, "after its gap"),
            Duplicate("client", 3, 0, 10 * MS),
        ]

    def test_late_bytes_have_their_own_place_in_the_file(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 0, b"ab"), client(2, 4, b"ef"), server(3, 0, acked=6), server(9 * MS, 0, acked=6))
        late, _ = connection.feed(client(10 * MS + 1, 0, b"abcdef"))
        assert late == Ignored("client", b"cd", 10 * MS + 1, 100 * MS + 10 + 2, 0, "after its gap")

    def test_one_acknowledgment_gives_up_all_holes_that_it_covers(self) -> None:
        connection = established(Connection())
        feed(connection, *(client(1 + i, 2 * i + 1, b"x") for i in range(100)), server(200, 0, acked=200))
        events = feed(connection, server(6 * MS, 0, acked=200))
        assert len(of(Gap, events)) == len(of(Data, events)) == 100

    def test_constant_loss_never_waits_longer_than_twice_the_hold_time(self) -> None:
        connection = established(Connection())
        worst = 0
        for i in range(3000):  # each second segment is lost, the acknowledgment comes 50 us later
            events = connection.feed(client(1 + i * 100, 20 * i + 10, bytes(10)))
            events += connection.feed(server(51 + i * 100, 0, acked=20 * i + 20))
            worst = max([worst, *(51 + i * 100 - gap.time_us for gap in of(Gap, events))])
        assert 5 * MS < worst <= 10 * MS + 200

    def test_a_loss_that_nothing_follows_is_reported_at_the_end(self) -> None:
        events = run(*handshake(), client(1, 0, b"ab"), server(2, 0, acked=9), server(MINUTE, 0, acked=9))
        assert events[-2:] == [
            Gap("client", 2, 7, MINUTE, "acknowledged, never captured"),
            Closed("both", "end of capture", MINUTE),
        ]

    def test_the_acknowledgment_of_a_lost_fin_is_no_gap(self) -> None:
        assert not of(Gap, run(*handshake(), client(1, 0, b"ab"), server(2, 0, acked=3)))

    def test_bytes_cut_by_the_snap_length_are_a_gap_at_once(self) -> None:
        connection = established(Connection())
        events = feed(connection, client(1, 0, b"abc", length=10), client(2, 10, b"def"))
        assert events == [
            Data("client", b"abc", 0, 1, 10, 0),
            Gap("client", 3, 7, 1, "snap length"),
            Data("client", b"def", 10, 2, 20, 0),
        ]

    def test_a_retransmission_fills_in_cut_bytes_while_they_wait(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 2, b"c", length=6), client(2, 4, b"ef"))
        assert brief(connection.feed(client(3, 0, b"ab"))) == [
            ("client", 0, b"ab"),
            ("client", 2, b"c"),
            ("client", 3, 1, "snap length"),
            ("client", 4, b"ef"),
            ("client", 6, 2, "snap length"),
        ]

    def test_no_byte_within_the_snap_length_is_a_gap_too(self) -> None:
        assert brief(run(*handshake(), client(1, 0, b"", length=5), client(2, 5, b"f"))) == [
            ("client", 0, 5, "snap length"),
            ("client", 5, b"f"),
        ]

    def test_held_bytes_have_a_limit(self) -> None:
        settings = Settings(held_limit=10_000)
        connection = established(Connection(settings))
        assert feed(connection, *(client(i, 1000 * i, bytes(1000)) for i in range(1, 8))) == []
        assert brief(connection.feed(client(9, 9000, bytes(1000)))) == [
            ("client", 0, 1000, "held bytes over the limit"),
            *(("client", 1000 * i, bytes(1000)) for i in range(1, 8)),
        ]

    @pytest.mark.parametrize(("payload", "length"), [(b"x", 1), (b"", 1)])
    def test_held_segments_count_for_the_memory_they_take(self, payload: bytes, length: int) -> None:
        connection = established(Connection(Settings(held_limit=100_000)))
        events = feed(connection, *(client(i, 2 * i, payload, length=length) for i in range(1, 1000)))
        assert len(brief(events)) > 1200


class TestStart:
    def test_without_handshake_the_first_bytes_are_held_and_a_lower_sequence_goes_first(self) -> None:
        connection = Connection()
        assert feed(connection, client(0, 3, b"def"), client(2 * MS, 0, b"abc")) == []
        assert connection.feed(client(5 * MS + 1, 6, b"g")) == [
            Opened(0, CLIENT, SERVER, 0, False),
            Data("client", b"abc", 0, 2 * MS, 20 * MS, 0),
            Data("client", b"def", 3, 0, 0, 0),
            Data("client", b"g", 6, 5 * MS + 1, 50 * MS + 10, 0),
        ]

    def test_after_the_hold_time_a_lower_sequence_has_no_place(self) -> None:
        events = run(client(0, 3, b"def"), client(6 * MS, 1, b"bcd"))
        assert events[1:3] == [
            Data("client", b"def", 0, 0, 0, 0),
            Ignored("client", b"bc", 6 * MS, 60 * MS, 0, "before the start"),
        ]
        assert of(Duplicate, events) == [Duplicate("client", 1, 0, 6 * MS)]

    def test_a_hole_behind_an_unknown_start_is_a_gap(self) -> None:
        events = run(client(0, 0, b"a"), client(1, 5, b"f"), server(2, 0, b"x", acked=6), server(20 * MS, 1, acked=6))
        assert brief(events) == [
            ("client", 0, b"a"),
            ("server", 0, b"x"),
            ("client", 1, 4, "acknowledged, never captured"),
            ("client", 5, b"f"),
        ]

    def test_a_handshake_captured_late_still_sets_the_start(self) -> None:
        events = run(client(0, 2, b"cd"), client(1, -1, flags=SYN), server(2, -1, flags=SYN | ACK), client(3, 0, b"ab"))
        assert events[0] == Opened(0, CLIENT, SERVER, 0, True)
        assert brief(events) == [("client", 0, b"ab"), ("client", 2, b"cd")]

    def test_the_syn_ack_alone_sets_both_starts(self) -> None:
        events = run(server(0, -1, flags=SYN | ACK), client(1, 2, b"c"), client(2, 0, b"ab"), server(3, 0, b"x"))
        assert events[0] == Opened(0, CLIENT, SERVER, 0, True)
        assert brief(events) == [("client", 0, b"ab"), ("client", 2, b"c"), ("server", 0, b"x")]

    def test_without_the_syn_ack_the_first_acknowledgment_sets_the_servers_start(self) -> None:
        connection = Connection()
        feed(connection, client(0, -1, flags=SYN), client(1, 0))
        assert connection.feed(server(2, 2, b"c")) == []
        assert brief(connection.feed(server(3, 0, b"ab"))) == [("server", 0, b"ab"), ("server", 2, b"c")]

    @pytest.mark.parametrize(
        ("first", "second", "ports", "expected"),
        [
            ("1.1.1.1:9092", "2.2.2.2:40000", (), "2.2.2.2:40000"),
            ("2.2.2.2:40000", "1.1.1.1:9092", (), "2.2.2.2:40000"),
            ("[::1]:6650", "[::1]:50000", (), "[::1]:50000"),
            ("1.1.1.1:7000", "2.2.2.2:7000", (), "1.1.1.1:7000"),
            ("1.1.1.1:50088", "2.2.2.2:40000", (50088,), "2.2.2.2:40000"),
        ],
    )
    def test_without_handshake_ports_tell_who_is_the_client(
        self, first: str, second: str, ports: tuple[int, ...], expected: str
    ) -> None:
        events = run(segment(first, 0, 0, b"x", target=second, isn=1), settings=Settings(server_ports=frozenset(ports)))
        assert events[0].client == expected  # type: ignore[union-attr]
        assert of(Data, events)[0].direction == ("client" if first == expected else "server")


class TestAnotherConnection:
    def test_a_retransmitted_syn_is_not_another_connection(self) -> None:
        events = run(client(0, -1, flags=SYN), client(MINUTE // 60, -1, flags=SYN), *handshake(2 * MINUTE // 60))
        assert len(of(Opened, events)) == 1

    def test_a_syn_with_another_number_is_one_and_closes_the_first(self) -> None:
        again = {"isn": 77, "other_isn": 88}
        connection = established(Connection())
        feed(connection, client(1, 0, b"ab"), client(2, 4, b"ef"))
        assert feed(connection, *handshake(9, **again), client(9, 0, b"new", **again)) == [
            Gap("client", 2, 2, 2, "pending at new connection"),
            Data("client", b"ef", 4, 2, 20, 0),
            Closed("both", "new connection", 2),
            Opened(1, CLIENT, SERVER, 9, True),
            Data("client", b"new", 0, 9, 90, 0),
        ]

    def test_after_a_close_it_is_only_opened(self) -> None:
        over = [client(1, 0, flags=FIN | ACK), server(2, 0, flags=FIN | ACK, acked=1)]
        events = run(*handshake(), *over, *handshake(3, isn=77, other_isn=88))
        assert events[1:4] == [
            Closed("client", "fin", 1),
            Closed("server", "fin", 2),
            Opened(1, CLIENT, SERVER, 3, True),
        ]

    def test_the_other_side_may_open_the_next_one(self) -> None:
        events = run(*handshake(), server(MINUTE, -1, flags=SYN, isn=77), server(MINUTE, 0, b"x", isn=77))
        assert of(Opened, events)[1] == Opened(1, SERVER, CLIENT, MINUTE, True)
        assert of(Data, events)[0].direction == "client"

    def test_a_syn_ack_that_answers_an_unseen_syn_opens_the_next_one(self) -> None:
        answer = server(9, -1, flags=SYN | ACK, isn=77, other_isn=88)
        events = run(*handshake(), answer, client(9, 0, b"x", isn=88, other_isn=77))
        assert of(Opened, events)[1] == Opened(1, CLIENT, SERVER, 9, True)
        assert brief(events) == [("client", 0, b"x")]

    def test_a_connection_that_was_under_way_ends_with_a_syn(self) -> None:
        events = run(client(0, 0, b"old"), server(1, 0), *handshake(MINUTE, isn=77, other_isn=88))
        assert [type(event) for event in events] == [Opened, Data, Closed, Opened, Closed]
        assert [event.known_start for event in of(Opened, events)] == [False, True]

    def test_silence_for_too_long_closes(self) -> None:
        events = run(*handshake(), client(1, 0, b"a"), client(10 * MINUTE + 2, 1, b"b"))
        assert events[2:] == [
            Closed("both", "idle", 1),
            Opened(1, CLIENT, SERVER, 10 * MINUTE + 2, False),
            Data("client", b"b", 0, 10 * MINUTE + 2, 100 * MINUTE + 20, 0),
            Closed("both", "end of capture", 10 * MINUTE + 2),
        ]


class TestEnd:
    def test_each_fin_closes_its_direction(self) -> None:
        events = run(
            *handshake(),
            client(1, 0, b"bye", flags=FIN | ACK),
            server(2, 0, b"wait", acked=4),
            server(3, 4, flags=FIN | ACK, acked=4),
            client(4, 4, acked=5),
        )
        assert events[1:] == [
            Data("client", b"bye", 0, 1, 10, 0),
            Closed("client", "fin", 1),
            Data("server", b"wait", 0, 2, 20, 0),
            Closed("server", "fin", 3),
        ]

    def test_a_fin_waits_for_the_hole_before_it(self) -> None:
        connection = established(Connection())
        assert feed(connection, client(1, 3, flags=FIN | ACK)) == []
        assert feed(connection, client(2, 0, b"abc"))[1:] == [Closed("client", "fin", 1)]

    def test_a_hole_before_a_fin_becomes_a_gap(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 3, b"d", flags=FIN | ACK), server(2, 0, acked=5))
        assert feed(connection, server(6 * MS, 0, acked=5)) == [
            Gap("client", 0, 3, 1, "acknowledged, never captured"),
            Data("client", b"d", 3, 1, 10, 0),
            Closed("client", "fin", 1),
        ]

    def test_a_hole_before_a_fin_that_nobody_acknowledged(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 3, flags=FIN | ACK))
        assert connection.feed(server(MINUTE, 0)) == [
            Gap("client", 0, 3, 1, "pending at fin"),
            Closed("client", "fin", 1),
        ]

    def test_bytes_after_a_fin_are_ignored(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 0, b"ab", flags=FIN | ACK))
        assert connection.feed(client(2, 1, b"bcd")) == [
            Duplicate("client", 1, 0, 2),
            Ignored("client", b"cd", 2, 21, 0, "after the end"),
        ]

    def test_ignored_bytes_have_their_own_place_in_the_file(self) -> None:
        """The segment begins in front of the end that a FIN has announced."""
        connection = established(Connection())
        feed(connection, client(1, 2, flags=FIN | ACK))
        events = connection.feed(client(3, 0, b"abcd"))
        assert Ignored("client", b"cd", 3, 32, 0, "after the end") in events
        assert ("client", 0, b"ab") in brief(events)

    def test_a_reset_closes_both_directions_after_the_hold_time(self) -> None:
        connection = established(Connection())
        assert feed(connection, server(1, 2, b"cd"), client(2, 0, flags=RST)) == []
        assert brief(connection.feed(client(5 * MS, 0, b"late"))) == [("client", 0, b"late")]
        assert connection.feed(server(6 * MS, 4, b"after")) == [
            Gap("server", 0, 2, 1, "pending at rst"),
            Data("server", b"cd", 2, 1, 10, 0),
            Closed("both", "rst", 2),
            Ignored("server", b"after", 6 * MS, 60 * MS, 0, "after the end"),
        ]
        assert connection.ended

    def test_a_reset_after_a_fin_closes_the_open_direction(self) -> None:
        events = run(*handshake(), client(1, 0, flags=FIN | ACK), client(2, 1, flags=RST), server(MINUTE, 0))
        assert events[1:] == [Closed("client", "fin", 1), Closed("server", "rst", 2)]

    def test_a_refused_connection(self) -> None:
        refusal = server(1, -1, flags=RST | ACK)._replace(sequence=0)
        assert run(client(0, -1, flags=SYN), refusal)[1:] == [Closed("both", "rst", 1)]

    def test_a_reset_of_another_time_is_not_believed(self) -> None:
        events = run(*handshake(), client(1, 2 * GIB, flags=RST), client(MINUTE, 0, b"on"))
        assert events[1:] == [
            Data("client", b"on", 0, MINUTE, 10 * MINUTE, 0),
            Closed("both", "end of capture", MINUTE),
        ]

    def test_words_in_a_reset_are_ignored(self) -> None:
        events = run(*handshake(), client(1, 0, b"go away", flags=RST))
        assert events[1] == Ignored("client", b"go away", 1, 10, 0, "in a reset")

    def test_long_after_a_reset_data_is_a_connection_whose_start_is_not_known(self) -> None:
        events = run(*handshake(), client(1, 0, flags=RST), client(MINUTE, 0, b"on"), client(2 * MINUTE, 2, b"!"))
        assert of(Opened, events)[1] == Opened(1, CLIENT, SERVER, MINUTE, False)
        assert brief(events) == [("client", 0, b"on"), ("client", 2, b"!")]

    def test_the_end_of_the_capture_releases_held_data(self) -> None:
        assert run(*handshake(), client(1, 3, b"def"))[1:] == [
            Gap("client", 0, 3, 1, "pending at end of capture"),
            Data("client", b"def", 3, 1, 10, 0),
            Closed("both", "end of capture", 1),
        ]

    def test_a_capture_that_goes_on_long_after_the_last_segment_ends_idle(self) -> None:
        connection = established(Connection())
        assert connection.finish(10 * MINUTE + 1) == [Closed("both", "idle", 0)]
        assert connection.finish() == []

    def test_a_connection_without_payload_is_reported_too(self) -> None:
        assert run(server(0, 0), client(1, 0)) == [
            Opened(0, CLIENT, SERVER, 0, False),
            Closed("both", "end of capture", 1),
        ]


class TestClock:
    """The clock is set back by a day while something is pending: the times go on from there."""

    DAY = 24 * 60 * MINUTE

    def established(self) -> Connection:
        connection = Connection()
        feed(connection, *handshake(self.DAY))
        return connection

    def test_bytes_behind_a_hole_keep_waiting(self) -> None:
        connection = self.established()
        feed(connection, client(self.DAY, 3, b"def"), server(self.DAY + MS, 0, acked=6))
        connection = Connection.from_state(json.loads(json.dumps(connection.state())))
        assert feed(connection, server(MS, 0, acked=6)) == []
        events = feed(connection, client(2 * MS, 0, b"abc"), server(3 * MS, 0, b"ok", acked=6))
        assert brief(events) == [("client", 0, b"abc"), ("client", 3, b"def"), ("server", 0, b"ok")]
        assert [event.time_us for event in events if isinstance(event, Data)] == [2 * MS, self.DAY, 3 * MS]

    def test_a_hole_is_a_gap_after_the_hold_time(self) -> None:
        connection = self.established()
        feed(connection, client(self.DAY, 3, b"def"), server(self.DAY + MS, 0, acked=6))
        assert feed(connection, client(0, 6, b"g"), client(5 * MS, 7, b"h")) == []
        assert brief(feed(connection, client(5 * MS + 1, 8, b"i")))[0][2:] == (3, "acknowledged, never captured")

    def test_patience_ends(self) -> None:
        connection, patience = self.established(), Settings().patience_us
        feed(connection, client(self.DAY, 3, b"def"), client(0, 6, b"g"), client(patience, 7, b"h"))
        assert brief(feed(connection, client(patience + 1, 8, b"i")))[0] == (
            "client", 0, 3, "never acknowledged, never captured"
        )  # fmt: skip

    def test_segments_that_are_late_long_after_it_end_no_patience(self) -> None:
        connection = self.established()
        feed(connection, client(0, 0, b"a"), server(MINUTE, 0, acked=1), client(MINUTE + 2 * MS, 3, b"def"))
        feed(connection, server(MINUTE + MS, 0, b"x", acked=1), client(MINUTE + MS, 6, b"g"))
        events = feed(connection, client(MINUTE + MS, 1, b"bc"))
        assert brief(events) == [("client", 1, b"bc"), ("client", 3, b"def"), ("client", 6, b"g")]

    def test_uncertain_first_bytes_are_certain(self) -> None:
        connection = Connection()
        feed(connection, client(self.DAY, 5, b"a"))
        assert brief(feed(connection, client(0, 6, b"b"))) == [("client", 0, b"a"), ("client", 1, b"b")]

    def test_a_response_keeps_waiting_for_its_request(self) -> None:
        connection = self.established()
        assert brief(feed(connection, server(self.DAY, 0, b"ok", acked=3), server(0, 2, b"!", acked=3))) == []
        assert brief(feed(connection, client(MS, 0, b"ask")))[0] == ("client", 0, b"ask")

    def test_a_reset_takes_effect(self) -> None:
        connection = self.established()
        events = feed(connection, client(self.DAY, 0, flags=RST), server(12 * MINUTE, 0, b"a"))
        assert events == [Closed("both", "rst", self.DAY)]

    def test_silence_for_too_long_closes(self) -> None:
        connection = self.established()
        feed(connection, client(self.DAY, 0, b"a"), client(0, 1, b"b"))
        events = feed(connection, client(10 * MINUTE + 1, 2, b"c"))
        assert of(Closed, events) == [Closed("both", "idle", 0)]

    def test_a_connection_that_has_ended_takes_no_late_segments(self) -> None:
        connection = self.established()
        feed(connection, client(self.DAY, 0, flags=FIN | ACK), server(self.DAY, 0, flags=FIN | ACK, acked=1))
        events = feed(connection, client(12 * MINUTE, 70, b"a"), client(12 * MINUTE + 6 * MS, 71, b"b"))
        assert of(Opened, events) == [Opened(1, CLIENT, SERVER, 12 * MINUTE, False)]


class TestMisuse:
    def test_a_segment_of_another_pair(self) -> None:
        with pytest.raises(Misuse, match="does not belong"):
            feed(Connection(), client(0, 0), segment("9.9.9.9:1", 0, 0))

    def test_an_address_without_port(self) -> None:
        with pytest.raises(Misuse, match="has no port"):
            feed(Connection(), segment("localhost", 0, 0))

    def test_a_negative_time(self) -> None:
        with pytest.raises(Misuse, match="hold_us is -1"):
            Settings(hold_us=-1)

    def test_a_state_of_another_version_or_shape(self) -> None:
        with pytest.raises(Misuse, match="version 99"):
            Connection.from_state({"version": 99})
        with pytest.raises(Misuse, match="damaged"):
            Connection.from_state({"version": STATE_VERSION, "number": 0})
        with pytest.raises(Misuse, match="lacks"):
            Connections.from_state({"version": STATE_VERSION})


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


# Random captures. A script is a list of sendings, each of which may be captured late, twice, cut or not at all; the
# other side's acknowledgments tell the truth about what was sent.


@dataclass
class Script:
    """Segments in capture order, and what was really sent."""

    sent: dict[str, bytes] = field(default_factory=dict)
    isns: dict[str, int] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    lossless: bool = True  # everything sent was captured, at most the hold time late


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Both directions of one connection, cut at random with overlaps, out of order, with loss."""
    script = Script()
    known_start = draw(st.booleans())
    isns = script.isns = {
        CLIENT: draw(st.integers(0, 2**32 - 1)),
        SERVER: draw(st.sampled_from([0, 2**31 - 20, 2**32 - 20])),
    }
    keep = draw(st.sampled_from([1.0, 1.0, 0.8, 0.3]))
    snap = draw(st.sampled_from([1 << 16, 1 << 16, 7]))
    step_us = draw(st.sampled_from([10, 1000, 4000]))
    window = draw(st.integers(0, 4))
    random = draw(st.randoms(use_true_random=False))
    planned: list[Segment] = []
    ends = dict.fromkeys(isns, 0)
    for source in isns:
        script.sent[source] = draw(st.binary(max_size=120))
    if known_start:
        planned += handshake(0, isn=isns[CLIENT], other_isn=isns[SERVER])
    fins = {source: draw(st.booleans()) for source in isns}
    while any(ends[source] < len(script.sent[source]) or fins[source] for source in isns):
        source = random.choice([s for s in isns if ends[s] < len(script.sent[s]) or fins[s]])
        other = SERVER if source == CLIENT else CLIENT
        start = max(0, ends[source] - random.choice([0, 0, 0, 5, 20]))
        end = min(len(script.sent[source]), max(ends[source], start + random.randint(1, 15)))
        flags = ACK
        if end == len(script.sent[source]) and fins[source] and random.random() < 0.5:
            flags |= FIN
            fins[source] = False
        ends[source] = max(ends[source], end)
        payload = script.sent[source][start:end]
        numbers: dict[str, Any] = {"isn": isns[source], "other_isn": isns[other]}
        planned.append(
            segment(source, 0, start, payload[:snap], length=len(payload), flags=flags, acked=ends[other], **numbers)
        )
    handshake_length = 3 if known_start else 0
    captured = planned[:handshake_length] + [s for s in planned[handshake_length:] if random.random() < keep]
    in_time = not window or step_us * (2 * window + 1) <= Settings().hold_us
    script.lossless = len(captured) == len(planned) and snap > 15 and known_start and in_time
    order = sorted(range(len(captured)), key=lambda i: i if i < handshake_length else i + random.randint(0, window))
    script.segments = [captured[i]._replace(time_us=n * step_us, offset=n * 1000) for n, i in enumerate(order)]
    return script


def both_sides(events: list[Event]) -> dict[str, list[Event]]:
    sides: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if not isinstance(event, Opened | Closed):
            sides[event.direction].append(event)
    return sides


def check_account(segments: list[Segment], events: list[Event]) -> None:
    """Every captured byte is in one event, at the place in the file that the event says."""
    total = sum(len(event.data) for event in events if isinstance(event, Data | Ignored))
    total += sum(event.length for event in events if isinstance(event, Duplicate))
    assert total == sum(len(s.payload) for s in segments)
    for event in events:
        if isinstance(event, Data | Ignored):
            (origin,) = [s for s in segments if s.offset <= event.offset < s.offset + 1000]
            begin = event.offset - origin.offset
            assert origin.payload[begin : begin + len(event.data)] == event.data
            assert origin.time_us == event.time_us


def check_tiling(events: list[Event]) -> None:
    """Within a connection, Data and Gap of a direction follow each other without overlap."""
    position: dict[str, int] = defaultdict(int)
    closed: set[str] = set()
    for event in events:
        match event:
            case Opened():
                position.clear()
                closed.clear()
            case Closed():
                now = {"client", "server"} if event.direction == "both" else {event.direction}
                assert not closed & now
                closed |= now
            case Data() | Gap():
                assert event.direction not in closed
                assert event.stream_offset == position[event.direction]
                size = len(event.data) if isinstance(event, Data) else event.length
                assert size > 0
                position[event.direction] += size
            case _:
                pass
    assert closed == {"client", "server"}


@given(scripts())
def test_captured_bytes_come_out_at_their_position(script: Script) -> None:
    events = run(*script.segments)
    if not script.segments:
        return
    check_account(script.segments, events)
    check_tiling(events)
    assert [type(event) for event in events].count(Opened) == 1
    sides = both_sides(events)
    opening = events[0]
    assert isinstance(opening, Opened)
    for address, role in ((opening.client, "client"), (opening.server, "server")):
        sent = script.sent[address]
        data = of(Data, sides[role])
        if not data:
            continue
        # Without handshake stream offset 0 is the lowest byte captured in time, so only the distances are known.
        bases = [0] if opening.known_start else range(len(sent))
        assert any(
            all(sent[base + d.stream_offset :][: len(d.data)] == d.data for d in data)
            and all(base + g.stream_offset + g.length <= len(sent) + 1 for g in of(Gap, sides[role]))
            for base in bases
        )
        if script.lossless:
            assert b"".join(d.data for d in data) == sent
            assert not of(Gap, sides[role])
        assert all(not d.conflicting for d in of(Duplicate, sides[role]))


@given(scripts())
def test_a_gap_holds_no_byte_that_came_in_time(script: Script) -> None:
    """After a handshake, what was captured is in Data, or it is said that it came after its gap."""
    events = run(*script.segments)
    opening = events[0] if events else None
    if not isinstance(opening, Opened) or not opening.known_start:
        return
    captured: dict[str, set[int]] = defaultdict(set)
    delivered: dict[str, set[int]] = defaultdict(set)
    for each in script.segments:
        start = (each.sequence - script.isns[each.source] - 1) % 2**32
        captured[each.source] |= set(range(start, start + len(each.payload)))
    for event in events:
        if isinstance(event, Data):
            source = opening.client if event.direction == "client" else opening.server
            delivered[source] |= set(range(event.stream_offset, event.stream_offset + len(event.data)))
        elif isinstance(event, Ignored):
            assert event.reason == "after its gap"
            (origin,) = [s for s in script.segments if s.offset <= event.offset < s.offset + 1000]
            start = (origin.sequence - script.isns[origin.source] - 1 + event.offset - origin.offset) % 2**32
            delivered[origin.source] |= set(range(start, start + len(event.data)))
    assert {source: places for source, places in delivered.items() if places} == {
        source: places for source, places in captured.items() if places
    }


@given(scripts(), st.data())
def test_a_state_carried_over_changes_nothing(script: Script, data: st.DataObject) -> None:
    settings = Settings(held_limit=data.draw(st.sampled_from([1 << 20, 2000])))
    expected = run(*script.segments, settings=settings)
    stops = data.draw(st.sets(st.integers(0, len(script.segments)), max_size=4))
    connection = Connection(settings)
    events: list[Event] = []
    for i, each in enumerate(script.segments):
        if i in stops:
            connection = Connection.from_state(json.loads(json.dumps(connection.state())), settings)
        events += connection.feed(each)
    assert events + connection.finish() == expected


hostile = st.builds(
    Segment,
    time_us=st.one_of(st.integers(0, 40), st.sampled_from([6 * MS, MINUTE, 11 * MINUTE, 12 * MINUTE, 25 * MINUTE])),
    source=st.sampled_from([CLIENT, SERVER]),
    target=st.just(""),
    sequence=st.one_of(st.integers(0, 12), st.sampled_from([2**32 - 1, 2**32 - 4, 2**30 + 5, 2**31, 2**31 + 3])),
    acknowledgment=st.one_of(st.integers(0, 20), st.sampled_from([2**32 - 1, 2**31])),
    flags=st.one_of(st.sampled_from([ACK, ACK, ACK, 0, SYN, FIN | ACK, RST]), st.integers(0, 31)),
    payload=st.binary(max_size=4),
    offset=st.just(0),
    file=st.just(0),
    length=st.integers(0, 6),
)


def in_capture_order(segments: list[Segment], *, set_back: bool = False) -> list[Segment]:
    return [
        s._replace(
            target=SERVER if s.source == CLIENT else CLIENT, offset=i * 1000, length=max(s.length, len(s.payload))
        )
        for i, s in enumerate(segments if set_back else sorted(segments, key=lambda s: s.time_us))
    ]


@given(st.lists(hostile, max_size=40), st.sampled_from([1 << 20, 600, 0]), st.sampled_from([0, 5000]), st.booleans())
def test_any_segments_at_all_are_accounted_for(
    segments: list[Segment],
    limit: int,
    hold_us: int,
    set_back: bool,
) -> None:
    segments = in_capture_order(segments, set_back=set_back)
    events = run(*segments, settings=Settings(held_limit=limit, hold_us=hold_us))
    check_account(segments, events)
    if segments:
        check_tiling(events)
    opened_events = of(Opened, events)
    assert [event.connection for event in opened_events] == list(range(len(opened_events)))


@given(st.lists(st.tuples(hostile, st.integers(0, 2)), max_size=40), st.integers(0, 40))
def test_a_whole_capture_gives_the_events_of_each_pair_alone(mixed: list[tuple[Segment, int]], stop: int) -> None:
    """... also when the state of the whole capture is carried over, and idle connections are forgotten."""
    hosts = [(f"10.0.0.{i}:4000{i}", f"10.0.1.{i}:9092") for i in range(3)]
    segments = []
    for i, (each, pair) in enumerate(sorted(mixed, key=lambda item: item[0].time_us)):
        source, target = hosts[pair] if each.source == CLIENT else hosts[pair][::-1]
        length = max(each.length, len(each.payload))
        segments.append(each._replace(source=source, target=target, offset=i * 1000, length=length))
    end_us = 40 * MINUTE

    connections = Connections()
    together: list[tuple[int, Event]] = []
    for i, each in enumerate(segments):
        if i == stop:
            connections = Connections.from_state(json.loads(json.dumps(connections.state())))
        together += connections.feed(each)
    together += connections.finish(end_us)

    alone: list[list[Event]] = []
    for addresses in hosts:
        connection = Connection()
        part = [e for each in segments if each.source in addresses for e in connection.feed(each)]
        part += connection.finish(end_us)
        for event in part:
            if isinstance(event, Opened):
                alone.append([])
            alone[-1].append(event)
    numbers = sorted({number for number, _ in together})
    assert numbers == list(range(len(alone)))
    apart = [[event for n, event in together if n == number] for number in numbers]
    for number, events in enumerate(apart):
        assert isinstance(events[0], Opened)
        assert events[0].connection == number
    unnumbered = [[events[0]._replace(connection=0), *events[1:]] for events in apart]  # type: ignore[call-arg]
    expected = [[events[0]._replace(connection=0), *events[1:]] for events in alone]  # type: ignore[call-arg]
    assert sorted(unnumbered, key=repr) == sorted(expected, key=repr)
