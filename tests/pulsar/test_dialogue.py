"""A Pulsar connection: what answers what, how long it took, and how large frames may be after the handshake."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import wirekit
from tests.pulsar.commands import (
    batch,
    c,
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
from tests.rules.conversations import SentFrame
from wirekit.capture.links import Link
from wirekit.conversation import Conversation, Frame, Quarantined
from wirekit.errors import Limit
from wirekit.pipeline.calls import Calls
from wirekit.protocols.pulsar.dialogue import LARGEST_FRAME_LIMIT
from wirekit.schemas.pulsar import FRAME_PADDING, MAX_MESSAGE_SIZE

NO_REQUEST = 2**64 - 1


def hear(commands: Iterable[SentFrame], conversation: Conversation | None = None) -> list[Frame]:
    """The frames; each comes a millisecond after the one before."""
    conversation = conversation or Conversation("pulsar")
    frames = []
    for number, each in enumerate(commands):
        for item in conversation.receive(each.side, each.data, time_us=1_000 * number):
            assert isinstance(item, Frame)
            frames.append(item)
    return frames


def paired(commands: list[SentFrame]) -> dict[int, int]:
    """{number of an answer: number of its request}."""
    frames = hear(commands)
    return {n: frames.index(each.request) for n, each in enumerate(frames) if each.request is not None}


CHUNKS = [send(5, is_chunk=True), send(5, is_chunk=True), receipt(5), send(5, is_chunk=True), receipt(5), receipt(5)]
NOT_READY = s("PRODUCER_SUCCESS", request_id=10, producer_name="p", producer_ready=False)
FAILED = s("ERROR", request_id=10, error="UnknownError", message="")
PAIRS = {
    "handshake": (connect(), {1: 0}),
    "a refused handshake": ([connect()[0], s("ERROR", request_id=NO_REQUEST, error=3, message="no")], {1: 0}),
    "a challenge by the broker": (
        [*connect(), s("AUTH_CHALLENGE", challenge={}), c("AUTH_RESPONSE", response={})],
        {1: 0, 3: 2},
    ),
    "pings of both sides": ([c("PING"), s("PING"), s("PONG"), c("PONG")], {2: 0, 3: 1}),
    "sends, answered in any order": (
        [send(0), send(1), send(0, producer=2), receipt(1), receipt(0, producer=2), receipt(0)],
        {3: 1, 4: 2, 5: 0},
    ),
    "a send that failed": ([send(0), s("SEND_ERROR", producer_id=1, sequence_id=0, error=9, message="")], {1: 0}),
    "chunks, which share a sequence id": (CHUNKS, {2: 0, 4: 1, 5: 3}),
    "a lookup with the number of another request": (
        [producer()[0], lookup(10)[0], lookup(10)[1], producer()[1]],
        {2: 1, 3: 0},
    ),
    "a lookup that failed": ([lookup(10)[0], FAILED], {1: 0}),
    "a request that failed while a lookup waits": ([lookup(10)[0], producer()[0], FAILED, lookup(10)[1]], {2: 1, 3: 0}),
    "partitions": (
        [
            c("PARTITIONED_METADATA", topic="t", request_id=1),
            s("PARTITIONED_METADATA_RESPONSE", request_id=1, response="Success", partitions=3),
        ],
        {1: 0},
    ),
    "a producer that waits to be the only one": ([producer()[0], NOT_READY, producer()[1]], {1: 0, 2: 0}),
    "replicated messages and a marker (4.0.7)": (
        [
            replicated(0, "298:0"),
            replicated(0, "298:2", marker_type=10),
            replicated(0, "298:3"),
            sent_from(298, 0),
            receipt(0),
            sent_from(298, 3),
        ],
        {3: 0, 4: 1, 5: 2},
    ),
    "replicated messages to a broker before 4.0": (
        [replicated(0, "298:0"), replicated(0, "298:1"), replicated(7, "298:2"), receipt(0), receipt(0), receipt(7)],
        {3: 0, 4: 1, 5: 2},
    ),
    "a property that is no position": (
        [replicated(3, "298"), replicated(4, "1:x"), receipt(4), receipt(3)],
        {2: 1, 3: 0},
    ),
    "a batch that failed": (
        [
            send(0, batch(5), highest_sequence_id=4),
            send(5),
            s("SEND_ERROR", producer_id=1, sequence_id=4, error=2, message=""),
        ],
        {2: 0},
    ),
    "a broker that closes a producer": (
        [c("GET_SCHEMA", topic="t", request_id=0), s("CLOSE_PRODUCER", producer_id=1, request_id=0)],
        {},
    ),
    "a scalable consumer that unsubscribes (5.0.1)": (
        [c("SCALABLE_TOPIC_UNSUBSCRIBE", request_id=3, consumer_id=1), s("SUCCESS", request_id=3)],
        {1: 0},
    ),
    "an answer to nothing": ([*consumer(), s("SUCCESS", request_id=21)], {1: 0}),
}


def test_a_response_that_a_client_sends_is_no_request() -> None:
    *_, frame = hear([*connect(), c("LOOKUP_RESPONSE", request_id=1)])
    assert (frame.description.api, frame.description.role) == ("LOOKUP_RESPONSE", "event")


@pytest.mark.parametrize("name", PAIRS)
def test_each_command_is_paired_with_its_response(name: str) -> None:
    commands, expected = PAIRS[name]
    assert paired(commands) == expected


def test_an_answer_knows_how_long_it_took() -> None:
    frames = hear([c("PING"), send(0), send(1), receipt(0), receipt(1), s("PONG")])
    assert [frame.latency_us for frame in frames] == [None, None, None, 2_000, 2_000, 5_000]


def sized(total: int) -> SentFrame:
    """A SEND of so many bytes, the four of its size not counted."""
    empty = send(0, entry(b""))
    return send(0, entry(b"x" * (total - len(empty.data) + 4)))


DEFAULT = MAX_MESSAGE_SIZE + FRAME_PADDING - 4


@pytest.mark.parametrize("agreed", [1_000, 100_000])
def test_a_frame_larger_than_agreed_has_an_error_and_the_next_decodes(agreed: int) -> None:
    largest = agreed + FRAME_PADDING - 4
    *_, fits, too_large, after = hear([*connect(max_message_size=agreed), sized(largest), sized(largest + 1), send(1)])
    assert fits.decoded.clean
    assert isinstance(too_large.decoded.error, Limit)
    assert (too_large.decoded.error.allowed, too_large.decoded.error.actual) == (largest, largest + 1)
    assert after.decoded.clean


def test_an_agreement_below_the_limit_of_the_caller_holds() -> None:
    conversation = Conversation("pulsar", limits=wirekit.Limits(frame=DEFAULT))
    largest = 1_000 + FRAME_PADDING - 4
    *_, too_large = hear([*connect(max_message_size=1_000), sized(largest + 1)], conversation)
    assert isinstance(too_large.decoded.error, Limit)
    assert too_large.decoded.error.allowed == largest


def test_a_broker_that_allows_more_than_usual() -> None:
    *_, large = hear([*connect(max_message_size=2 * MAX_MESSAGE_SIZE), sized(DEFAULT + 1)])
    assert large.decoded.clean


@pytest.mark.parametrize(("limits", "agreed"), [(None, MAX_MESSAGE_SIZE), (wirekit.Limits(frame=DEFAULT), 2**25)])
def test_a_frame_larger_than_anything_allowed_is_none(limits: wirekit.Limits | None, agreed: int) -> None:
    """A limit that the caller gave is never raised."""
    conversation = Conversation("pulsar", limits=limits)
    hear(connect(max_message_size=agreed), conversation)
    conversation.receive("client", sized(DEFAULT + 1).data[:64])
    (rejected,) = conversation.close("client")
    assert isinstance(rejected, Quarantined)
    assert "exceeds the limit" in rejected.reason


@pytest.mark.parametrize(
    ("size", "limit"), [(2**31 - 1, LARGEST_FRAME_LIMIT + FRAME_PADDING - 4), (0, None), (-5, None)]
)
def test_a_size_that_makes_no_sense(size: int, limit: int | None) -> None:
    conversation = Conversation("pulsar")
    hear(connect(max_message_size=size), conversation)
    assert conversation.dialogue.frame_limit == limit


def test_permits_are_not_known_after_missing_bytes() -> None:
    conversation = Conversation("pulsar")
    hear([*connect(), *consumer(), flow(9), message(1)], conversation)
    assert [each["permits"] for each in conversation.dialogue.summary()["consumers"]] == [8]
    conversation.gap("client", 10)
    assert [each["permits"] for each in conversation.dialogue.summary()["consumers"]] == [None]


@pytest.mark.parametrize(
    ("suffix", "partition"),
    [
        ("7", 7),
        ("2147483647", 2147483647),
        ("2147483648", None),
        ("9" * 5_000, None),
        ("٣", None),
        ("", None),
        ("-1", None),
    ],
)
def test_the_partition_in_a_name_is_a_number_of_32_bits(suffix: str, partition: int | None) -> None:
    """Python refuses 5,000 digits; a name may be text of any client."""
    topic = f"persistent://public/default/t-partition-{suffix}"
    frames = hear([*connect(), *producer(topic=topic), send(0)])
    assert [(message.topic, message.partition) for message in frames[-1].messages] == [(topic, partition)]


def test_tables_read_the_partition_in_a_name_as_messages_do() -> None:
    """A name may end with a line feed."""
    frames = hear([*connect(), *producer(topic="t-partition-7\n"), send(0)])
    calls = Calls("capture", Link("c:1>s:2#0", "c:1", "s:2", 0, True))
    rows = [row for frame in frames for table, row, _ in calls.frame(frame)[1] if table in ("call_topics", "messages")]
    assert {row["topic"] for row in rows} == {"t-partition-7\n"}
    assert {row.get("partition") for row in rows} == {frames[-1].messages[0].partition} == {None}
