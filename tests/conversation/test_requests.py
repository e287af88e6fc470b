"""The requests of a connection that wait: their order, whichever way one takes the place of another."""

from __future__ import annotations

import pickle
import tracemalloc

import pytest

import wirekit
from wirekit.conversation import requests as limits
from wirekit.conversation.events import Description, Frame
from wirekit.conversation.requests import LEAST_UNHEARD_US, MOST_UNHEARD, Requests

DATA = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 1, "client_id": None, "body": {}})


def request(offset: int, number: int | None) -> Frame:
    description = Description(correlation_id=number, role="request")
    return Frame("kafka", "client", offset, DATA, None, wirekit.decode(DATA, "kafka.request"), description)


@pytest.mark.parametrize("number", [7, 8, None])
def test_a_request_in_the_place_of_another_is_the_youngest(number: int | None) -> None:
    requests = Requests()
    for offset, pair in enumerate(("a", "b", "c")):
        requests[pair] = request(offset, 7)
    requests["a"] = request(3, number)
    assert [frame.offset for frame in requests.values()] == [1, 2, 3]
    same = requests.with_number(7, 9)
    assert [frame.offset for _, frame in same] == ([1, 2, 3] if number == 7 else [1, 2])
    assert requests.with_number(number, 9)[-1][1].offset == 3
    assert requests.pop("a").offset == 3
    assert [pair for pair, _ in requests.with_number(7, 9)] == ["b", "c"]


def exchange(number: int) -> tuple[bytes, bytes]:
    frame = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": number, "client_id": "c", "body": {}})
    body = {"error_code": 0, "groups": []}
    return frame, wirekit.encode("kafka.list_groups.response.v0", {"correlation_id": number, "body": body})


@pytest.mark.parametrize("in_time", [False, True])
def test_no_request_waits_if_only_one_side_was_captured(in_time: bool) -> None:
    """Only if the order of the bytes is that of their times: a caller may give all bytes of one side first."""
    conversation = wirekit.Conversation("kafka", in_time=in_time)
    calls = [exchange(number) for number in range(MOST_UNHEARD + 10)]
    for request_frame, _ in calls[:-1]:
        conversation.receive("client", request_frame, time_us=1)
    assert len(conversation.requests) == len(calls) - 1
    conversation.receive("client", calls[-1][0], time_us=2 + LEAST_UNHEARD_US)
    assert len(conversation.requests) == (0 if in_time else len(calls))
    (frame,) = conversation.receive("server", calls[7][1])
    assert isinstance(frame, Frame)
    assert (frame.request is None) is in_time
    later, answer = exchange(1 << 20)
    conversation.receive("client", later)
    (frame,) = conversation.receive("server", answer)
    assert isinstance(frame, Frame)
    assert frame.request is not None


def test_the_state_says_that_no_request_waits() -> None:
    conversation = wirekit.Conversation("kafka", in_time=True)
    for number in range(MOST_UNHEARD + 1):
        conversation.receive("client", exchange(number)[0], time_us=number * LEAST_UNHEARD_US)
    restored = wirekit.Conversation("kafka", in_time=True)
    restored.restore(conversation.state())
    restored.receive("client", exchange(MOST_UNHEARD + 1)[0])
    assert not restored.requests


def test_the_bytes_of_waiting_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_WAITING_BYTES", 5 * len(DATA))
    requests = Requests()
    for number in range(9):
        requests.add(number, request(number, number), heard=True)
    assert (list(requests), requests.size) == ([4, 5, 6, 7, 8], 5 * len(DATA))
    monkeypatch.setattr(limits, "MOST_WAITING_BYTES", 0)
    requests.add(9, request(9, 9), heard=True)
    assert list(requests) == [9]


def test_a_single_request_waits_for_the_first_bytes_of_the_other_side_whatever_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MOST_UNHEARD_BYTES", len(DATA) - 1)
    conversation = wirekit.Conversation("kafka", in_time=True)
    request_frame, response_frame = exchange(1)
    conversation.receive("client", request_frame)
    (frame,) = conversation.receive("server", response_frame)
    assert isinstance(frame, Frame)
    assert frame.request is not None


def produce(number: int) -> tuple[bytes, bytes]:
    entries = [{"offset": at, "message": {"magic": 0, "key": None, "value": b"v" * 20}} for at in range(100)]
    data = [{"partition": 3, "record_set": {"messages": entries}}]
    body = {"acks": 1, "timeout": 9, "topic_data": [{"topic": "t", "data": data}]}
    request_frame = wirekit.encode(
        "kafka.produce.request.v0", {"correlation_id": number, "client_id": "c", "body": body}
    )
    partitions = [{"partition": 3, "error_code": 0, "base_offset": number}]
    answer = {"correlation_id": number, "body": {"responses": [{"topic": "t", "partition_responses": partitions}]}}
    return request_frame, wirekit.encode("kafka.produce.response.v0", answer)


@pytest.mark.parametrize("in_time", [False, True])
def test_waiting_requests_take_the_memory_of_their_bytes_and_are_decoded_again(
    in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_UNHEARD_DECODED_BYTES" if in_time else "MOST_DECODED_BYTES", 10_000)
    wirekit.Conversation("kafka", in_time=in_time).receive("client", produce(0)[0])  # imports and compiles
    conversation = wirekit.Conversation("kafka", in_time=in_time)
    calls = [produce(number) for number in range(50)]
    values = [wirekit.decode(each, "kafka.produce.request.v0").value for each, _ in calls]
    tracemalloc.start()
    try:
        for request_frame, _ in calls:
            (frame,) = conversation.receive("client", request_frame, time_us=1)
            assert isinstance(frame, Frame)
            frame.messages = []  # as the pipeline does
        del frame
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 2 * sum(len(request_frame) for request_frame, _ in calls)
    assert pickle.loads(pickle.dumps(conversation.requests[0])).value == values[0]
    for value, (_, response_frame) in zip(values, calls, strict=True):
        (frame,) = conversation.receive("server", response_frame)
        assert isinstance(frame, Frame)
        assert frame.request is not None
        assert (frame.request.value, frame.request.decoded.clean) == (value, True)


def test_a_state_neither_decodes_waiting_requests_nor_keeps_them_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_UNHEARD_DECODED_BYTES", 0)
    calls = [produce(number) for number in range(50)]
    conversation = wirekit.Conversation("kafka", in_time=True)
    for request_frame, _ in calls:
        (frame,) = conversation.receive("client", request_frame, time_us=1)
        assert isinstance(frame, Frame)
        frame.messages = []
    with monkeypatch.context() as without:
        without.setattr("wirekit.conversation.events.decode_bytes", None)
        state = conversation.state()
        assert {frame.schema for frame in conversation.requests} == {"kafka.produce.request.v0"}
    continued = wirekit.Conversation("kafka", in_time=True)
    tracemalloc.start()
    try:
        continued.restore(state)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 2 * sum(len(request_frame) for request_frame, _ in calls)
    assert [frame.value for frame in continued.requests] == [frame.value for frame in conversation.requests]


def lookup(number: int) -> tuple[bytes, bytes]:
    asked = {"request_id": number, "topic": "persistent://public/default/t"}
    broker = {"request_id": number, "response": "Connect", "brokerServiceUrl": "pulsar://b:6650"}
    commands = (
        {"type": "LOOKUP", "lookupTopic": asked},
        {"type": "LOOKUP_RESPONSE", "lookupTopicResponse": broker},
    )
    request_frame, response_frame = (wirekit.encode("pulsar.frame", {"command": each}) for each in commands)
    return request_frame, response_frame


def test_calls_beside_a_request_that_waits_do_not_decode_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_DECODED_BYTES", 0)
    conversation = wirekit.Conversation("pulsar", started=False)
    (first,) = conversation.receive("client", lookup(0)[0])
    with monkeypatch.context() as without:
        without.setattr("wirekit.conversation.events.decode_bytes", None)
        for number in range(1, 4):
            for side, data in zip(("client", "server"), lookup(number), strict=True):
                conversation.receive(side, data)
    assert conversation.requests == [first]
    assert isinstance(first, Frame)
    assert first.value == wirekit.decode(lookup(0)[0], "pulsar.frame").value


def test_a_request_with_a_failed_check_stays_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_UNHEARD_DECODED_BYTES", 0)
    conversation = wirekit.Conversation("kafka", in_time=True)
    data = bytearray(produce(1)[0])
    data[-1] ^= 1
    (damaged,) = conversation.receive("client", bytes(data))
    conversation.receive("client", produce(2)[0])
    assert isinstance(damaged, Frame)
    assert [check.status for check in damaged.decoded.checks if check.kind == "crc32"] == ["ok"] * 99 + ["bad"]
    with pytest.raises(AttributeError, match="'Frame' object has no attribute 'answer'"):
        getattr(damaged, "answer")  # noqa: B009
