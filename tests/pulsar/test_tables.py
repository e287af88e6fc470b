"""Topics, subscriptions and errors of commands, in the tables ``calls`` and ``call_topics``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.helpers import follow_rows, stream
from tests.pulsar.commands import c, connect, consumer, producer, s
from tests.rules.conversations import SentFrame

TXN = {"request_id": 9, "txnid_least_bits": 1, "txnid_most_bits": 2}
SUBSCRIPTION = {"topic": "t-partition-3", "subscription": "sub"}
FAILED = {"request_id": 9, "error": "TransactionConflict", "message": "in use"}
WHOLE, PART = ("t", None), ("t-partition-3", 3)

NAMED: dict[str, tuple[list[SentFrame], set[tuple[str, int | None]], str | None]] = {
    "the partitions of a transaction": (
        [c("ADD_PARTITION_TO_TXN", partitions=["t", "t-partition-3"], **TXN)],
        {WHOLE, PART},
        None,
    ),
    "the subscriptions of a transaction": (
        [c("ADD_SUBSCRIPTION_TO_TXN", subscription=[SUBSCRIPTION], **TXN)],
        {PART},
        "sub",
    ),
    "the end of a transaction on a topic": ([c("END_TXN_ON_PARTITION", topic="t-partition-3", **TXN)], {PART}, None),
    "the end of a transaction on a subscription": (
        [c("END_TXN_ON_SUBSCRIPTION", subscription=SUBSCRIPTION, **TXN)],
        {PART},
        "sub",
    ),
    "topics that appear and disappear": (
        [s("WATCH_TOPIC_UPDATE", watcher_id=1, new_topics=["t"], deleted_topics=["t-partition-3"], topics_hash="h")],
        {WHOLE, PART},
        None,
    ),
    "the topic of a producer that moves": (
        [*producer(), s("TOPIC_MIGRATED", resource_id=1, resource_type="Producer")],
        {WHOLE},
        None,
    ),
    "the topic of a consumer that moves": (
        [*consumer(), s("TOPIC_MIGRATED", resource_id=1, resource_type="Consumer")],
        {WHOLE},
        "s",
    ),
    "a scalable topic": ([c("SCALABLE_TOPIC_LOOKUP", session_id=1, topic="t")], {WHOLE}, None),
}


def tables(frames: list[SentFrame]) -> dict[str, list[dict[str, Any]]]:
    """The tables of a connection whose client sends all its frames first."""
    sides = {"client": b"", "server": b""}
    for frame in [*connect(), *frames]:
        sides[frame.side] += frame.data
    rows, _ = follow_rows(stream(sides["client"], sides["server"]))
    assert not rows["quarantine"]
    return rows


@pytest.mark.parametrize("name", NAMED)
def test_a_command_names_its_topics(name: str) -> None:
    frames, topics, group = NAMED[name]
    rows = tables(frames)
    usual = ("CONNECT", "PRODUCER", "SUBSCRIBE")
    (call,) = (row for row in rows["calls"] if row["api"] not in usual)
    mine = [row for row in rows["call_topics"] if row["call_id"] == call["call_id"]]
    assert {(row["topic"], row["partition"]) for row in mine} == topics
    assert (call["topics"], call["group_id"]) == (len(topics), group)


@pytest.mark.parametrize(
    "request_api",
    ["NEW_TXN", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN", "END_TXN_ON_PARTITION",
     "END_TXN_ON_SUBSCRIPTION"],
)  # fmt: skip
def test_a_refused_step_of_a_transaction_has_its_error(request_api: str) -> None:
    call = tables([c(request_api, request_id=9), s(f"{request_api}_RESPONSE", **FAILED)])["calls"][-1]
    assert (call["api"], call["outcome"]) == (request_api, "answered")
    assert (call["error"], call["error_text"]) == ("TransactionConflict", "in use")


def test_a_producer_that_waits_is_answered_again() -> None:
    request, granted = producer()
    waits = s("PRODUCER_SUCCESS", request_id=10, producer_name="p", producer_ready=False)
    rows = tables([request, waits, granted])
    assert [(call["api"], call["outcome"], call["topic"]) for call in rows["calls"][1:]] == [
        ("PRODUCER", "answered", "t"),
        ("PRODUCER_SUCCESS", "repeated", "t"),
    ]
    assert [row["topic"] for row in rows["call_topics"]] == ["t", "t"]
