"""The search for the next frame in bytes that make no sense: nothing is missed, however the bytes arrive."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.fuzz.test_any_bytes import samples
from tests.kafka.golden import PDUS
from tests.kafka.sets import FIRST, call
from tests.own import declared
from wirekit import Conversation
from wirekit.compiler.heading import _expression, heading
from wirekit.compiler.ir import Number
from wirekit.conversation import Frame, following
from wirekit.decoding import frame_size
from wirekit.engine import decode_bytes
from wirekit.errors import WireError
from wirekit.fitting import begins
from wirekit.registry import Layout, Protocol, Schema
from wirekit.wire import Bytes, Const, Length, Struct, uint16, varint32

LIMITS = wirekit.Limits()
STREAMS = ("kafka.request", "kafka.response", "pulsar.frame", "jmq4.frame")
PING = bytes.fromhex("00000009000000050812920100")


@given(st.sampled_from([1, 2, 4]), st.booleans(), st.data())
def test_a_range_is_matched_exactly(size: int, little: bool, data: st.DataObject) -> None:
    numbers = st.integers(0, (1 << 8 * size) - 1)
    low, high = sorted((data.draw(numbers), data.draw(numbers)))
    pattern = re.compile(_expression(Number("L", size, False, False, little), [(low, high)]), re.DOTALL)
    near = [low - 1, low, low + 1, (low + high) // 2, high - 1, high, high + 1, data.draw(numbers)]
    for number in near:
        if 0 <= number < 1 << 8 * size:
            match = pattern.fullmatch(number.to_bytes(size, "little" if little else "big"))
            assert bool(match) == (low <= number <= high), number


@pytest.mark.parametrize("key", STREAMS)
def test_every_frame_that_decodes_cleanly_has_the_heading(key: str) -> None:
    begin = heading(key, LIMITS.frame)
    tried = 0
    for data in samples()[key]:
        if wirekit.decode(data, key, context={"api": "fetch", "version": 0}, engine="reference").error is None:
            tried += 1
            assert begin.pattern.match(data)
            assert begin.frame_size(data, 0) in (None, frame_size(data, key, limits=LIMITS))
    assert tried


def test_a_prefix_of_a_clean_value_is_not_refused() -> None:
    keyed = [(pdu.key, pdu.data) for pdu in PDUS if len(pdu.data) < 4000]
    for key in ("pulsar.frame", "joyqueue.frame", "jmq4.frame"):
        keyed += [(key, data) for data in samples()[key]]
    tried = 0
    for key, data in keyed:
        decoded = wirekit.decode(data, key, engine="reference")
        clean = decoded.clean and decoded.consumed == len(data)
        assert begins(data, key, len(data)) == clean
        if clean:
            tried += 1
            assert all(begins(data[:length], key, len(data)) for length in (*range(64), len(data) // 2))
    assert tried > 100


@pytest.mark.parametrize("key", STREAMS)
@given(data=st.binary(min_size=23, max_size=40))
def test_where_the_heading_matches_the_length_is_sensible(key: str, data: bytes) -> None:
    begin, raised = heading(key, LIMITS.frame), None
    try:
        size = frame_size(data, key, limits=LIMITS)
    except WireError as error:
        raised = error
        assert not begin.pattern.match(data)
    refusal = begin.refusal(data)
    assert (type(refusal), refusal and refusal.reason) == (type(raised), raised and raised.reason)
    assert (refusal and refusal.path) == (raised and raised.path)
    if raised is not None:
        return
    if begin.pattern.match(data):
        assert begin.frame_size(data, 0) in (None, size)


@given(
    rubbish=st.binary(max_size=60) | st.lists(st.sampled_from([b"\0", b"\x09", b"\0\0\0\x20", PING[:7]])).map(b"".join),
    cuts=st.lists(st.integers(1, 30), max_size=12),
)
def test_pieces_give_the_frames_that_the_whole_gives(rubbish: bytes, cuts: list[int]) -> None:
    data = rubbish + PING + PING
    expected = frames_in(Conversation("pulsar", started=False), [data])
    pieces, remaining = [], data
    for cut in cuts:
        pieces.append(remaining[:cut])
        remaining = remaining[cut:]
    assert frames_in(Conversation("pulsar", started=False), [*pieces, remaining])[-1:] == expected[-1:]
    assert b"".join(expected).endswith(PING)


def frames_in(conversation: Conversation, pieces: list[bytes], side: str = "client") -> list[bytes]:
    events = [event for piece in pieces for event in conversation.receive(side, piece)]
    return [event.data for event in events if isinstance(event, wirekit.conversation.Frame)]


def test_a_state_that_was_pickled_goes_on_alike() -> None:
    """What may be a frame in one direction is nothing to the other."""
    original = Conversation("kafka", started=False)
    copy = Conversation("kafka", started=False)
    copy.restore(pickle.loads(pickle.dumps(original.state())))
    request = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 7, "client_id": "me", "body": {}})
    body = {"error_code": 0, "groups": []}
    response = wirekit.encode("kafka.list_groups.response.v0", {"correlation_id": 7, "body": body})
    for data, side in (
        (request[:20], "client"),
        (request[20:], "client"),
        (response[:9], "server"),
        (response[9:], "server"),
    ):
        assert frames_in(copy, [data], side) == frames_in(original, [data], side)
    assert copy.state() == original.state()


def test_a_possible_longer_frame_does_not_hide_a_whole_one() -> None:
    conversation = Conversation("pulsar", started=False)
    begun = bytes.fromhex("00000040 00000020 0812")
    assert conversation.receive("client", begun) == [wirekit.NEED_DATA]
    quarantined, frame = conversation.receive("client", PING)
    assert (quarantined.data, frame.data) == (begun, PING)


def test_a_frame_that_the_search_sees_in_part_decodes_when_it_is_whole() -> None:
    conversation = Conversation("pulsar", started=False)
    assert conversation.receive("client", b"rubbish" + PING[:9]) == [wirekit.NEED_DATA]
    quarantined, frame = conversation.receive("client", PING[9:])
    assert (quarantined.data, frame.data) == (b"rubbish", PING)


def test_a_frame_behind_rubbish_that_came_byte_by_byte_is_found_at_once() -> None:
    """Bytes that were searched are not searched again, which would use up what the search may cost."""
    conversation = Conversation("pulsar", started=False)
    for _ in range(3000):
        assert conversation.receive("client", b"\xff") == [wirekit.NEED_DATA]
    quarantined, frame = conversation.receive("client", PING)
    assert (len(quarantined.data), frame.data) == (3000, PING)


def test_short_frames_between_whole_ones_count_as_the_bytes_of_these_allow() -> None:
    short = bytes.fromhex("0000000100")
    whole = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 7, "client_id": "c", "body": {}})
    frames = frames_in(Conversation("kafka"), [(short * 63 + whole) * 100])
    assert frames.count(short) < 100
    assert frames.count(whole) > 10
    few = frames_in(Conversation("kafka"), [(short + whole * 5) * 100])
    assert len(few) == 600


def test_a_frame_is_too_short_for_what_its_message_requires() -> None:
    no_command = bytes.fromhex("0000000400000000")
    frames = frames_in(Conversation("pulsar"), [no_command * 100 + PING, b"\xff" * 1000])
    assert frames == [no_command] * 64 + [PING]


def test_64_frames_in_a_row_may_be_too_short_for_their_header_and_no_more() -> None:
    short = bytes.fromhex("0000000100")
    assert len(frames_in(Conversation("kafka"), [short * 64])) == 64
    assert len(frames_in(Conversation("kafka"), [short * 100])) == 64


def test_a_frame_whose_length_is_a_varint_is_found_behind_rubbish() -> None:
    """Its length is read where the frame begins."""
    layout = Struct("magic" / Const(uint16, 0xABCD), "size" / Length(varint32, "text"), "text" / Bytes(None))
    with declared(Protocol("ofvarints", "A test's own", {"frame": Layout(layout)}, "frame", "frame")) as protocol:
        frame = wirekit.encode("ofvarints.frame", {"text": b"x" * 200})
        for rubbish in (3, 70, 200):
            conversation = Conversation(protocol.name, started=False)
            events = conversation.receive("client", bytes(rubbish) + frame)
            assert [event.data for event in events] == [bytes(rubbish), frame]


def test_a_frame_that_the_search_decoded_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    request = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 7, "client_id": "me", "body": {}})
    for protocol, data in (("kafka", request), ("pulsar", PING)):
        expected = Conversation(protocol).receive("client", data)[0].decoded
        decoded: list[bytes] = []

        def counted(schema: Schema, data: bytes, *args: Any, decoded: list[bytes] = decoded) -> wirekit.Decoded:
            decoded.append(data)
            return decode_bytes(schema, data, *args)

        monkeypatch.setattr(following, "decode_bytes", counted)
        junk = b"\xff" * 3
        frames = [
            each
            for each in Conversation(protocol).receive("client", data + (junk + data) * 9)
            if isinstance(each, Frame)
        ]
        assert len(frames) == 10
        assert len(decoded) == 1
        for number, frame in enumerate(frames):
            at = number * (len(data) + len(junk))
            assert (frame.offset, frame.decoded.offset, frame.decoded.data) == (at, at, data)
            assert (frame.value, frame.decoded.checks) == (expected.value, expected.checks)
        assert len({id(frame.value) for frame in frames}) == 10


def test_a_frame_with_messages_that_the_search_decoded_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"magic": 0, "key": None, "value": b"a"}
    data = {"partition": 0, "record_set": {"messages": [{"offset": 0, "message": message}]}}
    body = {"acks": 1, "timeout": 1, "topic_data": [{"topic": "t", "data": [data]}]}
    frame = wirekit.encode("kafka.produce.request.v0", {"correlation_id": 7, "client_id": "me", "body": body})
    monkeypatch.setattr(following, "decode_bytes", None)
    (_, event) = Conversation("kafka", started=False).receive("client", b"\xff" * 3 + frame)
    assert (event.offset, event.data, event.decoded.clean) == (3, frame, True)


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("size", [10, 2000])
def test_damage_in_messages_does_not_hide_their_frame(codec: int, size: int) -> None:
    message = {"crc": 1, "magic": 0, "attributes": codec, "key": None, "value": "aa" * size, "$keep": ["crc"]}
    data = {"partition": 0, "record_set": {"messages": [{"offset": 0, "message": message}], "partial": ""}}
    body = {"acks": 1, "timeout": 1, "topic_data": [{"topic": "t", "data": [data]}]}
    frame = wirekit.encode("kafka.produce.request.v0", {"correlation_id": 7, "client_id": "me", "body": body})
    assert not wirekit.decode(frame, "kafka.produce.request.v0").clean
    events = Conversation("kafka", started=False).receive("client", b"\xff" * 5 + frame)
    assert [(each.offset, each.data) for each in events if isinstance(each, Frame)] == [(5, frame)]


def test_a_possible_frame_with_invalid_text_does_not_use_up_the_budget() -> None:
    (_, request), (_, response) = call("server", FIRST)
    long = {"topic": "x" * 4000, "partition_responses": []}
    other = wirekit.encode("kafka.fetch.response.v0", {"correlation_id": 7, "body": {"responses": [long]}})
    conversation = Conversation("kafka", started=False)
    conversation.receive("server", other[:-1].replace(b"x", b"\xff") + b"\x05")  # more partitions than there are
    conversation.receive("client", request)
    frames = [event for event in conversation.receive("server", response) if isinstance(event, Frame)]
    assert [frame.data for frame in frames] == [response]
