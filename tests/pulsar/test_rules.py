"""Pulsar's rules: each has a conversation that keeps it and one that breaks it."""

from __future__ import annotations

import pytest

from tests.pulsar.commands import (
    ack,
    batch,
    c,
    closed,
    connect,
    consumer,
    entry,
    flow,
    lookup,
    message,
    producer,
    receipt,
    replicated,
    s,
    send,
    sent_from,
)
from tests.rules.conversations import SentFrame, excused, joined_late, names, violations
from wirekit import rules
from wirekit.protocols.pulsar.rules import PONG_WITHIN_US, RULES
from wirekit.rules import rules_of

SECOND = 1_000_000
NO_REQUEST = 2**64 - 1
CLOSED_BY_BROKER = s("CLOSE_PRODUCER", producer_id=1, request_id=NO_REQUEST)
MOVED = s("CLOSE_PRODUCER", producer_id=1, request_id=NO_REQUEST, assignedBrokerServiceUrl="pulsar://b2:6650")
CONSUMER_CLOSED_BY_BROKER = s("CLOSE_CONSUMER", consumer_id=1, request_id=NO_REQUEST)
SUBSCRIBE_REFUSED = [consumer()[0], s("ERROR", request_id=20, error="ConsumerBusy", message="no")]
PRODUCER_REFUSED = [producer()[0], s("ERROR", request_id=10, error="ProducerBusy", message="no")]
WAITING = s("PRODUCER_SUCCESS", request_id=10, producer_name="p", producer_ready=False)
IN_A_WHILE = PONG_WITHIN_US + 5 * SECOND
CONNECTED = [c("CONNECT", client_version="c", protocol_version=20, at=0), connect()[1]]
BROKER_ENTRY = {"broker_entry_metadata": {"metadata": {"index": 1}}}

CASES: dict[str, tuple[list[SentFrame], list[list[SentFrame]], list[SentFrame]]] = {
    "command_before_connect": ([], [producer()[:1], [c("PING")]], [*connect(), c("PING"), s("PONG")]),
    "command_before_connected": (
        connect()[:1],
        [producer()[:1], [s("PING")]],
        [s("AUTH_CHALLENGE", challenge={}), c("AUTH_RESPONSE", response={}), *connect()[1:], *producer()],
    ),
    "lookup_before_handshake": (
        connect()[:1],
        [lookup()[:1], [c("PARTITIONED_METADATA", topic="t", request_id=1)]],
        [*connect()[1:], *lookup()],
    ),
    "connect_twice": (connect(), [connect()], lookup()),
    "command_above_version": (
        connect(16, 11),
        [
            [c("GET_LAST_MESSAGE_ID", consumer_id=1, request_id=3)],
            [s("ACK_RESPONSE", consumer_id=1)],
        ],
        [*lookup(), s("ACTIVE_CONSUMER_CHANGE", consumer_id=1, is_active=True)],
    ),
    "broker_entry_metadata_unasked": (
        [*connect(17), *consumer(), flow(5)],
        [[message(1, {**BROKER_ENTRY, **entry()})]],
        [message(1)],
    ),
    "ping_unanswered": (
        [*CONNECTED, c("PING", at=SECOND)],
        [
            [s("PING", at=2 * SECOND), c("PONG", at=IN_A_WHILE)],
            [c("PING", at=40 * SECOND), s("PING", at=IN_A_WHILE)],
        ],
        [s("PONG", at=2 * SECOND), c("PING", at=40 * SECOND), s("PONG", at=41 * SECOND), s("PING", at=IN_A_WHILE)],
    ),
    "pong_without_ping": (connect(), [[c("PONG")], [s("PONG")]], [s("PING"), c("PONG"), c("PING"), s("PONG")]),
    "send_without_producer": (
        [*connect(), *producer()],
        [
            [send(0, producer=2)],
            [*producer(2, 11)[:1], s("ERROR", request_id=11, error=1, message=""), send(0, None, 2)],
        ],
        [send(0)],
    ),
    "send_before_producer_success": (
        connect(),
        [[producer()[0], send(0)], [producer()[0], WAITING, send(0)]],
        [producer()[0], WAITING, producer()[1], send(0)],
    ),
    "send_after_close": (
        [*connect(), *producer()],
        [[closed()[0], send(0)], [*closed(), send(0)]],
        [CLOSED_BY_BROKER, send(0)],
    ),
    "producer_recreated_without_close": (
        [*connect(), *producer()],
        [producer(1, 11), [producer(2, 11)[0], producer(2, 12)[0]]],
        [closed()[0], *producer(1, 11), CLOSED_BY_BROKER, *producer(1, 12), *producer(2, 13)],
    ),
    "recreated_without_lookup": (
        [*connect(), *lookup(), *producer(), *consumer()],
        [[CLOSED_BY_BROKER, *producer(1, 11)], [CONSUMER_CLOSED_BY_BROKER, *consumer(1, 21)]],
        [CLOSED_BY_BROKER, *lookup(31), *producer(1, 11), MOVED, *producer(1, 12)],
    ),
    "close_of_unknown_producer": (
        [*connect(), *PRODUCER_REFUSED],
        [[c("CLOSE_PRODUCER", producer_id=2, request_id=3)]],
        closed(),
    ),
    "sequence_id_goes_back": (
        [*connect(), *producer(), send(0), send(4)],
        [[send(3)], [send(4)]],
        [
            send(5, is_chunk=True),
            send(5, is_chunk=True),
            send(6),
            replicated(2, "7:0"),
            *closed(),
            *producer(1, 11),
            send(0),
        ],
    ),
    "send_too_large": (
        [*connect(max_message_size=100), *producer()],
        [[send(0, entry(b"x" * 101))]],
        [send(0, entry(b"x" * 100))],
    ),
    "frame_too_large": (
        [*connect(max_message_size=100), *producer()],
        [[send(0, entry(b"x" * 11_000))], [s("ERROR", request_id=NO_REQUEST, error=1, message="x" * 11_000)]],
        [s("CLOSE_PRODUCER", producer_id=1, request_id=NO_REQUEST)],
    ),
    "batch_count_differs": (
        [*connect(), *producer()],
        [[send(0, batch(2), num_messages=3)], [send(0, num_messages=2)], [send(0, batch(2))]],
        [send(0, batch(2), num_messages=2), send(2)],
    ),
    "receipt_without_send": (
        [*connect(), *producer(), send(0), receipt(0)],
        [[receipt(0)], [receipt(1)], [s("SEND_ERROR", producer_id=2, sequence_id=0, error=1, message="")]],
        [
            *(send(1, is_chunk=True), send(1, is_chunk=True), receipt(1), receipt(1)),
            *(replicated(0, "7:0"), replicated(0, "7:1", marker_type=10), sent_from(7, 0), receipt(0)),
        ],
    ),
    "message_without_consumer": (
        [*connect(), *consumer(), flow(9), flow(9, 2)],
        [[message(1, consumer=2)]],
        [c("CLOSE_CONSUMER", consumer_id=1, request_id=9), s("SUCCESS", request_id=9), message(1)],
    ),
    "message_after_close": (
        [*connect(), *consumer(), flow(9)],
        [[c("CLOSE_CONSUMER", consumer_id=1, request_id=9), s("SUCCESS", request_id=9), message(1)]],
        [c("CLOSE_CONSUMER", consumer_id=1, request_id=9), message(1), s("SUCCESS", request_id=9)],
    ),
    "message_without_permits": (
        [*connect(), *consumer(), flow(2)],
        [[message(1), message(2), message(3)], [CONSUMER_CLOSED_BY_BROKER, *consumer(1, 21), message(1)]],
        [message(1), message(2), flow(1), message(3)],
    ),
    "batch_beyond_permits": (
        [*connect(), *consumer(), flow(2)],
        [[message(1, batch(2)), message(2)]],
        [message(1), message(2, batch(2)), flow(2), message(3)],
    ),
    "flow_without_consumer": (
        [*connect(), *SUBSCRIBE_REFUSED],
        [[flow(1)], [flow(1, consumer=2)]],
        [*consumer(1, 21), flow(1)],
    ),
    "flow_before_subscribed": ([*connect(), consumer()[0]], [[flow(1)]], [consumer()[1], flow(1)]),
    "consumer_not_subscribed": (
        [*connect(), *consumer()],
        [[c("SEEK", consumer_id=2, request_id=3)]],
        [c("UNSUBSCRIBE", consumer_id=1, request_id=3), s("SUCCESS", request_id=3), ack()],
    ),
    "consumer_used_after_close": (
        [*connect(), *consumer()],
        [
            [c("UNSUBSCRIBE", consumer_id=1, request_id=3), s("SUCCESS", request_id=3), ack()],
            [c("CLOSE_CONSUMER", consumer_id=1, request_id=3), s("SUCCESS", request_id=3), flow(1)],
        ],
        [c("UNSUBSCRIBE", consumer_id=1, request_id=3), ack()],
    ),
    "subscribed_twice": (
        [*connect(), *consumer()],
        [consumer(1, 21)],
        [c("CLOSE_CONSUMER", consumer_id=1, request_id=9), *consumer(1, 21), s("SUCCESS", request_id=9)],
    ),
    "ack_of_undelivered": (
        [*connect(), *consumer(), flow(9), message(1), message(2)],
        [[ack(1, 3)], [ack(0)]],
        [ack(1, 2), ack(2), ack(0, kind="Cumulative")],
    ),
    "request_id_in_use": (
        connect(),
        [[*producer()[:1], consumer(1, 10)[0]]],
        [producer()[0], lookup(10)[0], producer()[1], lookup(10)[1], *consumer(1, 10)],
    ),
    "answer_without_request": (
        [*connect(), *producer()],
        [[s("SUCCESS", request_id=9)], [s("ERROR", request_id=11, error=1, message="")]],
        [s("ERROR", request_id=NO_REQUEST, error=1, message=""), CLOSED_BY_BROKER],
    ),
    "answered_twice": (
        [*connect(), *producer(), *lookup(12), c("LOOKUP", topic="t", request_id=13)],
        [[s("SUCCESS", request_id=10)], [s("ERROR", request_id=10, error=1, message="")], [lookup(12)[1]]],
        [*consumer(1, 13), lookup(13)[1], *producer(2, 10)],
    ),
    "answer_of_other_type": (
        [*connect(), producer()[0]],
        [[s("SUCCESS", request_id=10)]],
        [s("ERROR", request_id=10, error=1, message="")],
    ),
}


def test_every_rule_has_a_case() -> None:
    assert rules_of("pulsar") is RULES
    assert set(CASES) == {rule.name for rule in RULES.rules}


@pytest.mark.parametrize("name", CASES)
def test_a_conversation_that_keeps_it(name: str) -> None:
    before, _, valid = CASES[name]
    assert name not in names(violations("pulsar", [*before, *valid]))
    joined_late("pulsar", [*before, *valid])


@pytest.mark.parametrize(("name", "number"), [(name, n) for name, case in CASES.items() for n in range(len(case[1]))])
def test_a_conversation_that_breaks_it(name: str, number: int) -> None:
    before, broken, _ = CASES[name]
    heard = [*before, *broken[number]]
    assert name in names(violations("pulsar", heard))
    joined_late("pulsar", heard)


STATELESS = {"batch_count_differs", "answer_of_other_type"}


@pytest.mark.parametrize("name", sorted(CASES.keys() - STATELESS))
def test_missing_bytes_excuse_later_frames(name: str) -> None:
    before, broken, _ = CASES[name]
    excused("pulsar", [*before, *broken[0]], name)


def test_a_violation_says_where_and_what() -> None:
    (violation,) = violations("pulsar", [*connect(), *producer(), *closed(), send(0)])
    offset = sum(len(each.data) for each in [*connect(), *producer(), *closed()] if each.side == "client")
    assert (violation.side, violation.api, violation.frame, violation.offset) == ("client", "SEND", 7, offset)
    assert violation.found == "producer 1: closed"


def test_a_response_without_request_is_noticed_after_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest answered requests are forgotten, but not that no request waits."""
    monkeypatch.setattr(rules, "MOST_FACTS", 3)
    answered = [frame for number in range(20, 30) for frame in lookup(number)]
    frames = [*connect(), *answered, s("ERROR", request_id=99, error=1, message=""), lookup(29)[1]]
    assert names(violations("pulsar", frames)) == ["answer_without_request", "answered_twice"]
