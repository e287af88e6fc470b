"""TCP segments in any order -> bytes in order, with explicit gaps, and not one byte unaccounted for.

All segments are made here; times are microseconds. The client's first byte has sequence number ``ISN + 1``.
"""

from __future__ import annotations

import json

import pytest

from tests.capture.tcp_segments import (
    CLIENT,
    GIB,
    MINUTE,
    MS,
    SERVER,
    brief,
    client,
    established,
    feed,
    handshake,
    of,
    run,
    segment,
    server,
)
from wirekit.capture.tcp import (
    ACK,
    PSH,
    RST,
    SYN,
    Closed,
    Connection,
    Connections,
    Data,
    Duplicate,
    Gap,
    Ignored,
    Opened,
    Segment,
    Settings,
)
from wirekit.capture.tcp.connection import STATE_VERSION
from wirekit.errors import Misuse


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

    def test_waiting_bytes_are_in_the_state(self) -> None:
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
        assert connection.feed(client(2, 0, b"abc")) == [Duplicate("client", 3, 2)]

    def test_a_retransmission_that_brings_more_is_trimmed(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 0, b"abc"))
        assert connection.feed(client(2, 1, b"bcdef")) == [
            Duplicate("client", 2, 2),
            Data("client", b"def", 3, 2, 22, 0),
        ]

    def test_overlaps_on_both_sides_of_held_data_are_trimmed(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 4, b"ef"))
        assert connection.feed(client(2, 2, b"cdefgh")) == [Duplicate("client", 2, 2)]
        assert brief(connection.feed(client(3, 0, b"abc"))) == [
            ("client", 0, b"ab"),
            ("client", 2, b"cd"),
            ("client", 4, b"ef"),
            ("client", 6, b"gh"),
        ]

    def test_the_first_copy_wins(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 2, b"cd"), client(1, 6, b"gh"))
        assert connection.feed(client(2, 0, b"abXdefgY")) == [
            Duplicate("client", 4, 2),
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
        requests = [client(1, 0, b"a", acked=100), client(2, 1, b"b", acked=130)]
        assert brief(run(*requests, server(3, 130, b"xy")))[2:] == [
            ("server", 0, 30, "acknowledged, never captured"),
            ("server", 30, b"xy"),
        ]
        assert brief(run(*requests, server(3, 130, b"xy"), server(4, 100, bytes(30))))[2:] == [
            ("server", 0, bytes(30)),
            ("server", 30, b"xy"),
        ]
        for at in (90, 100, 131):
            first = brief(run(*requests, server(3, at, b"xy")))[-1]
            assert first == ("server", 0, b"xy")

    def test_a_late_byte_after_its_gap_is_not_called_a_duplicate(self) -> None:
        connection = established(Connection())
        feed(connection, client(1, 0, b"ab"), client(2, 4, b"ef"), server(3, 0, acked=6), server(9 * MS, 0, acked=6))
        assert connection.feed(client(10 * MS, 1, b"bcdef")) == [
            Ignored("client", b"cd", 10 * MS, 100 * MS + 1, 0, "after its gap"),
            Duplicate("client", 3, 10 * MS),
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
