"""When a connection of TCP begins and ends, and what a clock that is set changes."""

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
    FIN,
    RST,
    SYN,
    Closed,
    Connection,
    Data,
    Duplicate,
    Gap,
    Ignored,
    Opened,
    Settings,
)


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
        assert of(Duplicate, events) == [Duplicate("client", 1, 6 * MS)]

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
            Duplicate("client", 1, 2),
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
