"""Kafka's rules: each has a conversation that keeps it and one that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

import wirekit
from tests.kafka.golden import message
from tests.rules.conversations import SentFrame, excused, joined_late, names, violations
from wirekit.conversation import Conversation, Frame
from wirekit.protocols.kafka.rules import RULES
from wirekit.rules import Checker, Facts, rules_of

NOT_LEADER, ILLEGAL_GENERATION, UNSUPPORTED_MECHANISM, ILLEGAL_SASL_STATE = 6, 22, 33, 34


def q(api: str, version: int, number: int, **body: Any) -> SentFrame:
    value = {"correlation_id": number, "client_id": "c", "body": body}
    return SentFrame("client", wirekit.encode(f"kafka.{api}.request.v{version}", value))


def a(api: str, version: int, number: int, **body: Any) -> SentFrame:
    return SentFrame(
        "server", wirekit.encode(f"kafka.{api}.response.v{version}", {"correlation_id": number, "body": body})
    )


def listed(number: int) -> list[SentFrame]:
    return [q("list_groups", 0, number), a("list_groups", 0, number, error_code=0, groups=[])]


def produce(number: int, partition: int = 0, acks: int = 1) -> SentFrame:
    data = [{"partition": partition, "record_set": {"messages": [message(b"x", magic=0)]}}]
    return q("produce", 0, number, acks=acks, timeout=9, topic_data=[{"topic": "t", "data": data}])


def produced(number: int, error: int = 0, partition: int = 0) -> SentFrame:
    answer = {"partition": partition, "error_code": error, "base_offset": 0}
    return a("produce", 0, number, responses=[{"topic": "t", "partition_responses": [answer]}])


def fetch(number: int, version: int = 1, replica: int = -1, max_bytes: int = 1000) -> SentFrame:
    topics = [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0, "max_bytes": max_bytes}]}]
    limit = {"max_bytes": max_bytes} if version > 2 else {}
    return q("fetch", version, number, replica_id=replica, max_wait_time=1, min_bytes=1, **limit, topics=topics)


def fetched(
    number: int, error: int = 0, version: int = 1, magic: int = 0, partition: int = 0, codec: str = "NONE"
) -> SentFrame:
    each = message(b"x" * 40, offset=0, magic=magic)
    records = {"messages": [each if codec == "NONE" else message([each], codec=codec)]}
    answer = {"partition": partition, "error_code": error, "high_watermark": 1, "record_set": records}
    responses = [{"topic": "t", "partition_responses": [answer]}]
    return a("fetch", version, number, throttle_time_ms=0, responses=responses)


def metadata(number: int, answered: str = "t") -> list[SentFrame]:
    topics = [{"topic_error_code": 0, "topic": answered, "partition_metadata": []}]
    return [q("metadata", 0, number, topics=["t"]), a("metadata", 0, number, brokers=[], topic_metadata=topics)]


def join(number: int, generation: int = 3) -> list[SentFrame]:
    fields = {
        "group_id": "g",
        "session_timeout": 9,
        "member_id": "m",
        "protocol_type": "consumer",
        "group_protocols": [],
    }
    answer = {"generation_id": generation, "group_protocol": "", "leader_id": "m", "member_id": "m", "members": []}
    return [q("join_group", 0, number, **fields), a("join_group", 0, number, error_code=0, **answer)]


def heartbeat(number: int, generation: int = 3, error: int = 0) -> list[SentFrame]:
    request = q("heartbeat", 0, number, group_id="g", group_generation_id=generation, member_id="m")
    return [request, a("heartbeat", 0, number, error_code=error)]


def leave(number: int) -> list[SentFrame]:
    return [q("leave_group", 0, number, group_id="g", member_id="m"), a("leave_group", 0, number, error_code=0)]


def handshake(number: int, error: int) -> list[SentFrame]:
    request = q("sasl_handshake", 0, number, mechanism="PLAIN")
    return [request, a("sasl_handshake", 0, number, error_code=error, enabled_mechanisms=[])]


def versions(number: int) -> list[SentFrame]:
    offered = [{"api_key": 1, "min_version": 1, "max_version": 1}, {"api_key": 18, "min_version": 0, "max_version": 0}]
    return [q("api_versions", 0, number), a("api_versions", 0, number, error_code=0, api_versions=offered)]


CASES: dict[str, tuple[list[SentFrame], list[list[SentFrame]], list[SentFrame]]] = {
    "response_out_of_order": (
        [*listed(1), listed(2)[0], *heartbeat(3)[:1]],
        [heartbeat(3)[1:], [heartbeat(3)[1], listed(2)[1], *listed(4)]],
        [listed(2)[1], heartbeat(3)[1]],
    ),
    "response_without_request": (listed(1), [[listed(1)[1]], [listed(2)[1]]], listed(2)),
    "acks_0_answered": ([*listed(1), produce(2, acks=0)], [[produced(2)]], [*listed(3), produce(2), produced(2)]),
    "correlation_id_in_use": (
        listed(1),
        [[listed(2)[0], listed(2)[0]]],
        [*listed(2), *listed(2), produce(3, acks=0), *listed(3)],
    ),
    "produce_after_not_leader": (
        [*listed(1), produce(2), produced(2, NOT_LEADER)],
        [[produce(3)]],
        [produce(3, partition=1), produced(3, NOT_LEADER, partition=1), *metadata(4), produce(5)],
    ),
    "fetch_after_not_leader": (
        [*listed(1), fetch(2), fetched(2, NOT_LEADER)],
        [[fetch(3)]],
        [fetch(3, replica=2), fetched(3), *metadata(4), fetch(5)],
    ),
    "request_after_refused_handshake": (
        handshake(1, ILLEGAL_SASL_STATE),
        [[*handshake(2, UNSUPPORTED_MECHANISM), *listed(3)]],
        [*listed(3), *handshake(4, 0)],
    ),
    "version_not_offered": (
        versions(1),
        [[fetch(2, version=2)], [fetch(2, version=0)]],
        [fetch(2), fetched(2), q("heartbeat", 0, 3, group_id="g", group_generation_id=1, member_id="m")],
    ),
    "stale_generation": (
        [*listed(1), *join(2, 3), *heartbeat(4), *join(5, 4)],
        [
            heartbeat(6),
            [
                q(
                    "offset_commit",
                    2,
                    6,
                    group_id="g",
                    group_generation_id=3,
                    member_id="m",
                    retention_time=-1,
                    topics=[],
                )
            ],
        ],
        heartbeat(6, 4),
    ),
    "heartbeat_after_expulsion": (
        [*listed(1), *join(2), *heartbeat(3, 3, ILLEGAL_GENERATION)],
        [heartbeat(4)],
        [*join(4, 4), *heartbeat(5, 4)],
    ),
    "member_after_leaving": ([*listed(1), *join(2), *leave(3)], [heartbeat(4)], [*join(4, 4), *heartbeat(5, 4)]),
    "answer_of_other_partition": (
        listed(1),
        [[produce(2), produced(2, partition=1)], [fetch(3), fetched(3, partition=1)]],
        [produce(2), produced(2), fetch(3), fetched(3)],
    ),
    "answer_of_other_topic": (listed(1), [metadata(2, "u")], metadata(2)),
    "fetch_above_max_bytes": (
        listed(1),
        [[fetch(2, 2, max_bytes=30), fetched(2, version=2)]],
        [fetch(2, 2), fetched(2, version=2), fetch(3, 3, max_bytes=30), fetched(3, version=3)],
    ),
    "old_fetch_above_max_bytes": (listed(1), [[fetch(2, max_bytes=30), fetched(2)]], [fetch(2), fetched(2)]),
    "magic_above_version": (
        listed(1),
        [[fetch(2), fetched(2, magic=1)], [fetch(2), fetched(2, magic=1, codec="GZIP")]],
        [fetch(2), fetched(2, codec="GZIP"), fetch(3, 2), fetched(3, 0, 2, magic=1)],
    ),
}


def test_every_rule_has_a_case() -> None:
    assert rules_of("kafka") is RULES
    assert set(CASES) == {rule.name for rule in RULES.rules}


@pytest.mark.parametrize("name", CASES)
def test_a_conversation_that_keeps_it(name: str) -> None:
    before, _, sound = CASES[name]
    assert names(violations("kafka", [*before, *sound])) == []
    joined_late("kafka", [*before, *sound])


@pytest.mark.parametrize(("name", "number"), [(name, n) for name, case in CASES.items() for n in range(len(case[1]))])
def test_a_conversation_that_breaks_it(name: str, number: int) -> None:
    before, broken, _ = CASES[name]
    heard = [*before, *broken[number]]
    assert names(violations("kafka", heard)) == [name]
    joined_late("kafka", heard)


STATELESS = {
    "answer_of_other_partition",
    "answer_of_other_topic",
    "fetch_above_max_bytes",
    "magic_above_version",
    "old_fetch_above_max_bytes",
}


@pytest.mark.parametrize("name", sorted(CASES.keys() - STATELESS))
def test_missing_bytes_excuse_later_frames(name: str) -> None:
    before, broken, _ = CASES[name]
    excused("kafka", [*before, *broken[0]], name)


def test_metadata_over_another_connection_of_the_client_counts() -> None:
    def checker() -> Checker:
        return Checker(RULES, shared=shared)

    def hear(checker: Checker, *frames: SentFrame) -> None:
        conversation = Conversation("kafka")
        for each in frames:
            for frame in conversation.receive(each.side, each.data):
                assert isinstance(frame, Frame)
                checker.take(frame)

    shared = Facts(RULES.initial, started=False)
    retried = [produce(1), produced(1, NOT_LEADER)]
    first, second = checker(), checker()
    hear(first, *retried)
    hear(second, *metadata(1))
    hear(first, produce(2))
    assert first.close() == []


def test_a_set_that_the_broker_converted_is_no_error() -> None:
    """A broker of 0.10.2.2 answered a Fetch of version 1 and 100,000 bytes with 171,654 bytes of 920 messages."""
    [violation] = violations("kafka", [*listed(1), fetch(2, max_bytes=30), fetched(2)])
    assert violation.rule.severity == "warning"


def test_a_broker_that_ignores_api_versions_answers_in_order() -> None:
    """A broker of 0.9.0.1 knows no ApiVersions, nor versions of 0.10; kafka-node 5.0.0 waits, and sends Metadata."""
    ignored = versions(1)[0]
    assert names(violations("kafka", [ignored, *metadata(2), *listed(3)])) == []
    assert names(violations("kafka", [fetch(1, version=2), *metadata(2), *listed(3)])) == []
    answering = [*versions(1), q("api_versions", 0, 2), *metadata(3)]
    assert names(violations("kafka", answering)) == ["response_out_of_order"]


def test_the_versions_that_a_broker_offers_are_named() -> None:
    [violation] = violations("kafka", [*versions(1), fetch(2, version=0)])
    assert violation.found == "offered fetch: 1 to 1"


@pytest.mark.parametrize("size", [6, 8, 10, 12, 14, 15])
def test_a_cut_api_versions_response_still_offers_its_versions(size: int) -> None:
    request, answered = versions(1)
    cut = SentFrame("server", size.to_bytes(4, "big") + answered.data[4 : 4 + size])
    newer = q("heartbeat", 0, 2, group_id="g", group_generation_id=1, member_id="m")
    assert names(violations("kafka", [request, cut, newer])) == []
