"""Frames of which bytes are missing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.conftest import FIXTURES
from tests.kafka.golden import message, message_set
from tests.kafka.sets import call
from tests.rules.conversations import captured
from wirekit import engine
from wirekit.conversation import ENDED_INSIDE, NEED_DATA, Conversation, Event, Frame, Quarantined
from wirekit.conversation.dialogue import LARGEST_SEARCHED

TOPICS = [f"topic-{number}" for number in range(20)]
PIECE = 32


def metadata(number: int) -> bytes:
    value = {"correlation_id": number, "client_id": "c", "body": {"topics": TOPICS}}
    return wirekit.encode("kafka.metadata.request.v0", value)


def answer(number: int) -> bytes:
    topics = [{"topic_error_code": 0, "topic": name, "partition_metadata": []} for name in TOPICS]
    value = {"correlation_id": number, "body": {"brokers": [], "topic_metadata": topics}}
    return wirekit.encode("kafka.metadata.response.v0", value)


def lose(conversation: Conversation, side: str, data: bytes, begin: int, end: int) -> list[Event]:
    """The events of some bytes, of which a range is missing."""
    events = conversation.receive(side, data[:begin], time_us=1)
    events += conversation.gap(side, end - begin)
    return [each for each in [*events, *conversation.receive(side, data[end:], time_us=2)] if each is not NEED_DATA]


@pytest.mark.parametrize("missing", [0, 1, 40])
def test_a_frame_is_decoded_up_to_its_missing_bytes(missing: int) -> None:
    conversation, first, second = Conversation("kafka"), metadata(1), metadata(2)
    frame, *others = lose(conversation, "client", first + second, 100, len(first) - missing)
    assert isinstance(frame, Frame)
    assert (frame.description.api, frame.description.correlation_id) == ("metadata", 1)
    assert (frame.offset, frame.data, frame.size) == (0, first[:100], len(first))
    assert frame.value.body.topics == TOPICS[: len(frame.value.body.topics)] != []
    assert frame.reason == "cut by missing bytes (not captured)"
    assert str(frame.decoded.error).endswith(f"; {frame.reason}, 100 of {len(first)} bytes were captured")
    after = [Quarantined("client", len(first) - missing, first[-missing:], 2, "after missing bytes (not captured)")]
    assert others[:-1] == (after if missing else [])
    assert isinstance(others[-1], Frame)
    assert (others[-1].data, others[-1].size) == (second, len(second))


def test_generated_code_does_not_read_missing_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives up on such frames, and the reference engine would read each once more."""
    read: list[bytes] = []
    conversation, real = Conversation("kafka"), engine.by_rows

    def counted(schema: Any, data: bytes, *others: Any, **options: Any) -> Any:
        read.append(data)
        return real(schema, data, *others, **options)

    for number in range(20):
        conversation.receive("client", metadata(number))
    monkeypatch.setattr(engine, "by_rows", counted)
    (frame,) = lose(conversation, "client", metadata(20), 60, len(metadata(20)))
    assert isinstance(frame, Frame)
    assert frame.data not in read
    conversation.receive("client", metadata(21))
    assert metadata(21) in read


def test_a_response_answers_a_request_that_is_cut() -> None:
    conversation = Conversation("kafka")
    (request,) = lose(conversation, "client", metadata(7), 60, len(metadata(7)))
    (response,) = conversation.receive("server", answer(7), time_us=5)
    assert isinstance(response, Frame)
    assert response.request is request
    assert response.latency_us == 4


def test_a_response_that_is_cut_answers_its_request() -> None:
    conversation = Conversation("kafka")
    (request, *_) = conversation.receive("client", metadata(7), time_us=0)
    (response,) = lose(conversation, "server", answer(7), 60, len(answer(7)))
    assert isinstance(response, Frame)
    assert response.request is request
    assert response.description.api == "metadata"


def test_a_frame_that_never_ends_is_decoded_up_to_the_end() -> None:
    conversation, data = Conversation("kafka"), metadata(2)
    assert conversation.receive("client", metadata(1) + data[:100], time_us=1)[1:] == [NEED_DATA]
    (frame,) = conversation.close("client")
    assert isinstance(frame, Frame)
    assert (frame.offset, frame.data, frame.size, frame.time_us) == (len(data), data[:100], len(data), 1)
    assert frame.value.body.topics == TOPICS[: len(frame.value.body.topics)] != []
    assert frame.reason == ENDED_INSIDE
    assert str(frame.decoded.error).endswith(f"; {ENDED_INSIDE}, 100 of {len(data)} bytes were captured")
    assert conversation.close() == []
    (response,) = conversation.receive("server", answer(2))
    assert isinstance(response, Frame)
    assert response.request is frame


def test_bytes_that_come_after_the_end_are_a_frame() -> None:
    conversation = Conversation("kafka")
    conversation.receive("client", metadata(1)[:100])
    conversation.close("client")
    (frame,) = conversation.receive("client", metadata(2))
    assert isinstance(frame, Frame)


@pytest.mark.parametrize("name", ["kafka-0.10.2.2-4-clients.pcapng", "pulsar-batch.pcap", "jmq4-odd.pcap"])
def test_a_frame_at_the_end_is_that_before_missing_bytes(name: str) -> None:
    for link, turns in captured(FIXTURES / "pcap" / name):
        for number, (side, data, _) in enumerate(turns):
            cut, ended = Conversation(link.protocol), Conversation(link.protocol)
            for conversation in (cut, ended):
                for each in turns[:number]:
                    conversation.receive(each.side, each.data)
                conversation.receive(side, data[: len(data) * 3 // 4])
            (missing,), (last,) = cut.gap(side, 1 << 20), ended.close(side)
            assert type(missing) is type(last)
            if isinstance(missing, Frame) and isinstance(last, Frame):
                assert (missing.value, missing.messages, missing.size) == (last.value, last.messages, last.size)
                assert (missing.request is None) == (last.request is None)
                assert missing.description == last.description


def test_frames_of_an_undeclared_version() -> None:
    conversation = Conversation("kafka")
    request = bytes.fromhex("00000040 0000 0009 00000007 0001 63 00") + bytes(49)
    response = bytes.fromhex("00000020 00000007 00") + bytes(27)
    (question,) = lose(conversation, "client", request, 30, len(request))
    (answered,) = lose(conversation, "server", response, 10, len(response))
    assert isinstance(question, Frame)
    assert isinstance(answered, Frame)
    assert (question.description.api, question.description.version) == ("produce", 9)
    assert (answered.request, answered.size) == (question, len(response))


def test_the_messages_in_front_of_the_missing_bytes_are_decoded() -> None:
    frames = dict(call("client", message_set(*[message(b"v" * 50)] * 4)))
    (frame,) = lose(
        Conversation("kafka"), "client", frames["client"], len(frames["client"]) - 10, len(frames["client"])
    )
    assert isinstance(frame, Frame)
    assert [each.value for each in frame.messages] == [b"v" * 50] * 3


def test_a_frame_with_several_gaps() -> None:
    conversation, data = Conversation("kafka"), metadata(1)
    events = lose(conversation, "client", data[:150], 80, 120)
    events += lose(conversation, "client", data[150:] + metadata(2), 10, 20)
    assert [(type(each), each.offset, len(each.data)) for each in events] == [
        (Frame, 0, 80),
        (Quarantined, 120, 40),
        (Quarantined, 170, len(data) - 170),
        (Frame, len(data), len(metadata(2))),
    ]


def test_a_gap_beyond_the_end_of_a_frame() -> None:
    conversation, frames = Conversation("kafka"), [metadata(number) for number in range(3)]
    cut, piece, whole = lose(conversation, "client", b"".join(frames), 100, len(frames[0]) + 50)
    assert isinstance(cut, Frame)
    assert isinstance(piece, Quarantined)
    assert piece.data == frames[1][50:]
    assert isinstance(whole, Frame)
    assert whole.data == frames[2]


def test_a_frame_that_is_found_by_its_first_bytes_behind_a_gap() -> None:
    """As with a snap length: each piece is cut, and the next one begins with a frame."""
    conversation, frames = Conversation("kafka"), [metadata(number) for number in range(3)]
    conversation.gap("client", 33)
    events = [each for data in frames for each in lose(conversation, "client", data, PIECE, len(data))]
    assert [(each.description.correlation_id, each.size) for each in events if isinstance(each, Frame)] == [
        (number, len(data)) for number, data in enumerate(frames)
    ]


def test_a_frame_behind_more_bytes_than_are_kept() -> None:
    conversation = Conversation("kafka")
    conversation.gap("client", 33)
    conversation.receive("client", metadata(1)[:PIECE])
    for _ in range(3):
        conversation.receive("client", b"\xff" * LARGEST_SEARCHED)
    frame = lose(conversation, "client", metadata(2), PIECE, len(metadata(2)))[-1]
    assert isinstance(frame, Frame)
    assert (frame.data, frame.size) == (metadata(2)[:PIECE], len(metadata(2)))


@pytest.mark.parametrize("name", ["kafka-0.10.2.2-4-clients.pcapng", "pulsar-batch.pcap", "jmq4-odd.pcap"])
@pytest.mark.parametrize("known", [True, False], ids=["in sync", "lost"])
def test_frames_that_are_cut_at_each_byte(name: str, known: bool) -> None:
    frames: dict[str, tuple[str, str, bytes]] = {}
    for link, turns in captured(FIXTURES / "pcap" / name):
        for side, data, _ in turns:
            about = Conversation(link.protocol).preview(side, data).description
            frames.setdefault(f"{side} {about.api} {about.version}", (link.protocol, side, data))
    assert len(frames) > 7
    for protocol, side, data in frames.values():
        for end in range(1, min(len(data), 300)):
            for begun in (data[:end], data[: end - 1] + b"\xff", data[:4] + b"\xff" * (end - 4)):
                conversation = Conversation(protocol)
                if not known:
                    conversation.gap(side, 1)
                pieces = lose(conversation, side, begun, len(begun), len(data) + 1)
                assert b"".join(each.data for each in pieces) == begun


@pytest.mark.parametrize(
    "name", ["kafka-0.8.2.2-2-produce.pcapng", "pulsar-comp_zlib.pcap", "pulsar-nobatch.pcap", "jmq4-odd.pcap"]
)
def test_no_check_fails_for_bytes_that_are_missing(name: str) -> None:
    frames: dict[tuple[str, str], bytes] = {}
    for link, turns in captured(FIXTURES / "pcap" / name):
        for side, data, _ in turns:
            decoded = Conversation(link.protocol).preview(side, data)
            frames.setdefault((decoded.schema, decoded.description.api or ""), data)
    for (schema, _), data in frames.items():
        bad = {(check.path, check.kind) for check in wirekit.decode(data, schema).checks if check.status == "bad"}
        for end in range(8, len(data), 1 + len(data) // 100):
            cut = wirekit.decode(data[:end], schema)
            assert cut.error is not None
            assert {(check.path, check.kind) for check in cut.checks if check.status == "bad"} <= bad, end


def test_bytes_that_do_not_begin_a_frame_are_not_its_first_ones() -> None:
    conversation = Conversation("kafka")
    conversation.gap("client", 33)
    for data in (bytes(PIECE), b"\0\0\1\0" + bytes(PIECE), b"\0\0\1\0\0\3\0\0\0\0\0\0\1\0" + bytes(PIECE)):
        events = lose(conversation, "client", data, len(data), 1000)
        assert all(isinstance(each, Quarantined) for each in events)


def test_a_frame_that_is_too_short_to_name_its_api_is_quarantined() -> None:
    (piece,) = lose(Conversation("kafka"), "client", metadata(1)[:6], 5, 100)[:1]
    assert isinstance(piece, Quarantined)


def test_the_rest_of_a_large_frame_does_not_wait_in_memory() -> None:
    conversation = Conversation("kafka")
    data = dict(call("client", message_set(message(bytes(5 * LARGEST_SEARCHED)))))["client"]
    events = lose(conversation, "client", data[:200], 100, 150)
    for at in range(200, len(data), 1 << 16):
        events += conversation.receive("client", data[at : at + (1 << 16)])
        assert sum(len(each["buffer"]) for each in conversation.state()["directions"].values()) <= LARGEST_SEARCHED
    pieces = [each for each in events if isinstance(each, Quarantined)]
    assert b"".join(each.data for each in pieces) == data[150:]
    assert len(pieces) <= 6
    assert not isinstance(events[-1], Frame)
    assert conversation.receive("client", metadata(3))[0].data == metadata(3)


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=20, unique=True).map(sorted), st.integers(0, 1 << 20))
def test_every_byte_is_in_one_event_and_a_state_continues_anywhere(cuts: list[int], lost: int) -> None:
    data = b"".join(metadata(number) for number in range(10))
    conversation = Conversation("kafka")
    events: list[Event] = []
    resumed: list[Event] = []
    size = 0
    for number, (begin, end) in enumerate(pairwise([0, *cuts, len(data)])):
        other = Conversation("kafka")
        other.restore(conversation.state())
        for each, events_of in ((conversation, events), (other, resumed)):
            missing = lost >> number & 1
            events_of.extend(each.gap("client", end - begin) if missing else each.receive("client", data[begin:end]))
        assert conversation.state() == other.state()
        size += 0 if missing else end - begin
    events += conversation.close("client")
    resumed += other.close("client")
    uninterrupted, again = (
        [each for each in each_events if each is not NEED_DATA] for each_events in (events, resumed)
    )
    assert [(type(each), each.offset, each.data) for each in uninterrupted] == [
        (type(each), each.offset, each.data) for each in again
    ]
    assert sum(len(each.data) for each in uninterrupted) == size
    assert all(each.data == data[each.offset : each.offset + len(each.data)] for each in uninterrupted)
    assert all(each.offset % len(metadata(0)) == 0 for each in uninterrupted if isinstance(each, Frame))
