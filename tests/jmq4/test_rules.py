"""JMQ4's rules, in both dialects: each has a conversation that keeps it and one that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import wirekit
from tests.rules.conversations import SentFrame, excused, joined_late, names, violations
from wirekit.protocols.jmq4.dialogue import ONE_WAY
from wirekit.protocols.jmq4.rules import RULES
from wirekit.rules import rules_of

HIGHEST = 2**31 - 1
Kind = Callable[..., SentFrame]


class Speaker:
    """Makes the frames of one dialect."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol

    def ask(self, kind: str, number: int, qos: int = 1, **payload: Any) -> SentFrame:
        return SentFrame("client", self._frame(0, kind, number, qos, payload))

    def answer(self, kind: str, number: int, status: int = 0, **payload: Any) -> SentFrame:
        return SentFrame("server", self._frame(1, kind, number, 1, payload, status=status, error=None))

    def _frame(self, direction: int, kind: str, number: int, qos: int, payload: Any, **more: Any) -> bytes:
        value = {
            "version": 2,
            "identity": {"direction": direction, "qos_level": qos},
            "request_id": number,
            "type": kind,
            "send_time": 0,
            "payload": payload,
            **more,
        }
        return wirekit.encode(f"{self.protocol}.frame", value)

    def ok(self, number: int, status: int = 0) -> SentFrame:
        return self.answer("BOOLEAN_ACK", number, status)

    def connect(self, number: int = 1, status: int = 0) -> list[SentFrame]:
        fields: dict[str, Any] = {"app": "a", "token": "t", "version": "1", "ip": "1.1.1.1", "time": 0, "sequence": 0}
        more = {"language": "JAVA"} if self.protocol == "joyqueue" else {}
        texts = dict.fromkeys(("username", "password", "region", "namespace"))
        request = self.ask("ADD_CONNECTION", number, **fields, **texts, **more)
        granted = self.answer("ADD_CONNECTION_ACK", number, connection_id="c", notification=None)
        return [request, granted if not status else self.ok(number, status)]

    def heartbeat(self, number: int) -> list[SentFrame]:
        return [self.ask("HEARTBEAT", number), self.ok(number)]

    def add(self, kind: str, number: int, topic: str = "t", sequence: int = 0, status: int = 0) -> list[SentFrame]:
        request = self.ask(f"ADD_{kind}", number, topics=[topic], app="a", sequence=sequence or number)
        field = f"{kind.lower()}_ids"
        granted = self.answer(f"ADD_{kind}_ACK", number, **{field: [{"topic": topic, f"{kind.lower()}_id": "i"}]})
        return [request, self.ok(number, status) if status else granted]

    def remove(self, kind: str, number: int) -> list[SentFrame]:
        return [self.ask(f"REMOVE_{kind}", number, topics=["t"], app="a"), self.ok(number)]

    def produce(self, number: int, tx_id: str | None = None, topic: str = "t", qos: int = 1) -> SentFrame:
        topics = [{"topic": topic, "tx_id": tx_id, "timeout": 9, "qos_level": 1, "messages": []}]
        return self.ask("PRODUCE_MESSAGE", number, qos, topics=topics, app="a")

    def produced(self, number: int) -> SentFrame:
        return self.answer("PRODUCE_MESSAGE_ACK", number, data=[{"topic": "t", "code": 0, "result": []}])

    def fetch(self, number: int) -> list[SentFrame]:
        topics = [{"topic": "t", "partitions": [{"partition": 0, "count": 1, "index": 0}]}]
        record: dict[str, Any] = {
            "partition": 0,
            "index": 0,
            "system_code": {},
            "send_time": 0,
            "flag": 0,
            "body": b"x",
        }
        partitions = [{"partition": 0, "messages": [record], "code": 0}]
        return [
            self.ask("FETCH_PARTITION_MESSAGE", number, topics=topics, app="a"),
            self.answer("FETCH_PARTITION_MESSAGE_ACK", number, data=[{"topic": "t", "partitions": partitions}]),
        ]

    def commit_ack(self, number: int, partition: int = 0) -> SentFrame:
        data = [{"partition": partition, "index": 0, "type": 0}]
        topics = [{"topic": "t", "partitions": [{"partition": partition, "data": data}]}]
        return self.ask("COMMIT_ACK", number, topics=topics, app="a")

    def prepare(self, number: int, tx_id: str = "x") -> list[SentFrame]:
        more = {"timeout": 9} if self.protocol == "joyqueue" else {}
        request = self.ask(
            "PRODUCE_MESSAGE_PREPARE", number, topic="t", app="a", sequence=1, transaction_id="u", **more
        )
        return [request, self.answer("PRODUCE_MESSAGE_PREPARE_ACK", number, tx_id=tx_id, code=0)]

    def end(self, number: int, how: str = "COMMIT", tx_id: str = "x", code: int = 0) -> list[SentFrame]:
        kind = f"PRODUCE_MESSAGE_{how}"
        return [self.ask(kind, number, topic="t", app="a", tx_id=tx_id), self.answer(f"{kind}_ACK", number, code=code)]


Case = tuple[list[SentFrame], list[list[SentFrame]], list[SentFrame]]


def cases(x: Speaker) -> dict[str, Case]:
    """{rule: (how it begins, ways to break it, a way to keep it)}."""
    transaction = [*x.connect(), *x.add("PRODUCER", 2), *x.prepare(3)]
    return {
        "first_command_not_add_connection": (
            [],
            [x.heartbeat(1), x.add("PRODUCER", 1)],
            [*x.connect(), *x.heartbeat(2)],
        ),
        "command_after_refused_connection": (
            x.connect(1, status=2),
            [x.heartbeat(2)],
            [*x.connect(2), *x.heartbeat(3)],
        ),
        "add_connection_twice": (x.connect(), [x.connect(2)], x.heartbeat(2)),
        "command_after_remove_connection": (
            x.connect(),
            [[x.ask("REMOVE_CONNECTION", 2), *x.heartbeat(3)]],
            [*x.heartbeat(2), x.ask("REMOVE_CONNECTION", 3)],
        ),
        "request_id_not_rising": (
            x.connect(5),
            [x.heartbeat(4), x.heartbeat(5)],
            [*x.heartbeat(9), *x.heartbeat(HIGHEST), *x.heartbeat(-HIGHEST - 1), *x.heartbeat(-5)],
        ),
        "answer_without_request": (x.connect(), [[x.ok(1)], [x.ok(2)]], x.heartbeat(2)),
        "one_way_answered": (
            [*x.connect(), *x.add("PRODUCER", 2)],
            [[x.produce(3, qos=ONE_WAY), x.produced(3)]],
            [x.produce(3, qos=ONE_WAY), x.produce(4), x.produced(4)],
        ),
        "answer_of_other_type": (
            [*x.connect(), *x.add("PRODUCER", 2)],
            [[x.produce(3), x.answer("FETCH_HEALTH_ACK", 3, point=1.0)]],
            [x.produce(3), x.produced(3), x.produce(4), x.ok(4)],
        ),
        "produce_without_add_producer": (
            [*x.connect(), *x.add("PRODUCER", 2), x.add("PRODUCER", 3, "r", status=1)[0], x.ok(3, 1)],
            [[x.produce(4, topic="u")], [x.produce(4, topic="r")], [*x.remove("PRODUCER", 4), x.produce(5)]],
            [x.produce(4), x.produced(4), *x.prepare(5)],
        ),
        "consume_without_add_consumer": (
            x.connect(),
            [x.fetch(2), [*x.add("CONSUMER", 2), *x.remove("CONSUMER", 3), x.fetch(4)[0]]],
            [*x.add("CONSUMER", 2), *x.fetch(3)],
        ),
        "removed_without_added": (
            x.connect(),
            [x.remove("PRODUCER", 2), x.remove("CONSUMER", 2)],
            [*x.add("CONSUMER", 2), *x.remove("CONSUMER", 3)],
        ),
        "sequence_not_rising": (
            [*x.connect(), *x.add("CONSUMER", 2, sequence=7)],
            [x.add("CONSUMER", 3, "u", sequence=7)],
            [*x.add("CONSUMER", 3, "u", sequence=8), *x.add("PRODUCER", 4, sequence=1)],
        ),
        "ack_without_fetch": (
            [*x.connect(), *x.add("CONSUMER", 2), *x.fetch(3)],
            [[x.commit_ack(4, partition=1)]],
            [x.commit_ack(4)],
        ),
        "transaction_not_prepared": (
            transaction,
            [[x.produce(4, "y")], x.end(4, tx_id="y"), x.end(4, "ROLLBACK", "y")],
            [x.produce(4, "x"), *x.end(5)],
        ),
        "transaction_over": (
            [*transaction, *x.end(4)],
            [x.end(5, "ROLLBACK"), [x.produce(5, "x")]],
            [*x.prepare(5, "z"), *x.end(6, tx_id="z", code=1), *x.end(7, tx_id="z")],
        ),
    }


DIALECTS = {protocol: cases(Speaker(protocol)) for protocol in ("joyqueue", "jmq4")}
NAMES = list(DIALECTS["jmq4"])


@pytest.mark.parametrize("protocol", DIALECTS)
def test_every_rule_has_a_case(protocol: str) -> None:
    assert rules_of(protocol) is RULES
    assert set(NAMES) == {rule.name for rule in RULES.rules}


@pytest.mark.parametrize("protocol", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_that_keeps_it(protocol: str, name: str) -> None:
    before, _, sound = DIALECTS[protocol][name]
    assert name not in names(violations(protocol, [*before, *sound]))
    joined_late(protocol, [*before, *sound])


@pytest.mark.parametrize("protocol", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
def test_conversations_that_break_it(protocol: str, name: str) -> None:
    before, ways, _ = DIALECTS[protocol][name]
    for broken in ways:
        heard = [*before, *broken]
        assert name in names(violations(protocol, heard))
        joined_late(protocol, heard)


@pytest.mark.parametrize("protocol", DIALECTS)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "answer_of_other_type"])
def test_missing_bytes_excuse_later_frames(protocol: str, name: str) -> None:
    before, ways, _ = DIALECTS[protocol][name]
    excused(protocol, [*before, *ways[0]], name)


def test_a_wrong_first_command_is_reported_once() -> None:
    x = Speaker("jmq4")
    assert names(violations("jmq4", [*x.heartbeat(1), *x.heartbeat(2)])) == ["first_command_not_add_connection"]


@pytest.mark.parametrize("protocol", DIALECTS)
@pytest.mark.parametrize("set_up", range(4))
def test_a_command_numbered_before_the_connection_is_no_error(protocol: str, set_up: int) -> None:
    """JoyQueue's client numbers a command, finds the connection lost, and sets up another before it sends it."""
    x = Speaker(protocol)
    commands = [x.add("PRODUCER", 3), x.add("CONSUMER", 4), x.heartbeat(5)]
    before = [each for command in commands[:set_up] for each in command]
    frames = [*x.connect(2), *before, x.ask("FETCH_CLUSTER", 1, topics=["t"], app="a")]
    broken = violations(protocol, frames)
    assert [(each.rule.name, each.rule.severity) for each in broken] == [("request_id_not_rising", "warning")]
