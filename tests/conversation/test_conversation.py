"""Bytes of both directions in, frames out: three outcomes, whole, byte by byte, damaged, joined in the middle."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path

import pytest

import wirekit
from tests.own import declared
from wirekit import NEED_DATA, Conversation
from wirekit.conversation import Description, Dialogue, Frame, Quarantined, recognise
from wirekit.conversation.dialogue import BYTE, CALL, FEW
from wirekit.registry import Layout, Protocol, registry
from wirekit.wire import Bytes, Const, Length, Node, Struct, uint8, uint16


def pulsar_bytes(fixtures: Path, run: str) -> list[tuple[str, bytes]]:
    """(side, frame) of a recorded run."""
    lines = (fixtures / "pulsar" / "frames" / f"{run}.frames.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    sides = {"c2s": "client", "s2c": "server"}
    return [(sides[record["dir"]], bytes.fromhex(record["hex"])) for record in records if record["conn"] == 1]


@pytest.fixture
def run(fixtures: Path) -> list[tuple[str, bytes]]:
    return pulsar_bytes(fixtures, "consume")


@pytest.mark.parametrize("view", [lambda data: data[::-1][::-1], lambda data: data.cast("B", (2, len(data) // 2))])
def test_a_view_of_any_shape_is_received(view: Callable[[memoryview], memoryview]) -> None:
    data = wirekit.encode("kafka.request", wirekit.example("kafka.request"))
    data += data
    frames = Conversation("kafka").receive("client", view(memoryview(data)))
    assert [frame.data for frame in frames] == [data[: len(data) // 2]] * 2


def test_whole_frames(run: list[tuple[str, bytes]]) -> None:
    conversation = Conversation("pulsar")
    for side, data in run:
        (frame,) = conversation.receive(side, data)
        assert isinstance(frame, Frame)
        assert frame.data == data
        assert frame.decoded.clean


def test_byte_by_byte_is_the_same(run: list[tuple[str, bytes]]) -> None:
    whole, piecewise = Conversation("pulsar"), Conversation("pulsar")
    for side, data in run[:12]:
        (expected,) = whole.receive(side, data)
        for index in range(len(data) - 1):
            assert piecewise.receive(side, data[index : index + 1]) == [NEED_DATA]
        (frame,) = piecewise.receive(side, data[-1:])
        assert (frame.value, frame.offset, frame.description) == (expected.value, expected.offset, expected.description)


def test_many_frames_at_once_and_a_begun_one(run: list[tuple[str, bytes]]) -> None:
    client = [data for side, data in run if side == "client"]
    events = Conversation("pulsar").receive("client", b"".join(client) + client[0][:3])
    assert [event.data for event in events[:-1]] == client
    assert events[-1] is NEED_DATA


FIXED = Struct("magic" / Const(Bytes(2), b"FX"), "header" / Struct("n" / uint16), "text" / Bytes(3))
TRAILED = Struct("text" / Bytes(3), "size" / Length(uint8, "text"), "n" / uint16)


@pytest.mark.parametrize("layout", [FIXED, TRAILED])
def test_frames_of_a_fixed_size(layout: Node) -> None:
    with declared(Protocol("sized", "A test's own", {"x": Layout(layout)}, "x", "x", ("x",))):
        value = {"header": {"n": 1}, "n": 2, "text": b"abc"}
        data = wirekit.encode("sized.x", {name: value[name] for name, _ in layout.parts() if name in value})
        conversation, events = Conversation("sized"), []
        for byte in 2 * data:
            events += conversation.receive("client", bytes([byte]))
        frames = [event for event in events if isinstance(event, Frame)]
        assert [(frame.offset, frame.data) for frame in frames] == [(0, data), (len(data), data)]
        assert [frame.offset for frame in wirekit.frames("sized", 2 * data)] == [0, len(data)]
        assert recognise(2 * data, b"", names=("sized",)).protocol == "sized"


def test_responses_are_paired_with_their_requests(run: list[tuple[str, bytes]]) -> None:
    conversation = Conversation("pulsar")
    time = 0
    paired = {}
    for side, data in run:
        time += 1000
        for frame in conversation.receive(side, data, time_us=time):
            if frame.request is not None:
                paired[frame.description.api] = frame.request.description.api
                assert frame.latency_us > 0
    assert paired["CONNECTED"] == "CONNECT"
    assert paired["SEND_RECEIPT"] == "SEND"
    assert paired["PRODUCER_SUCCESS"] == "PRODUCER"


def test_a_response_without_an_api_has_that_of_its_request() -> None:
    class Described(Dialogue):
        def describe(self, side: str, decoded: wirekit.Decoded) -> Description:
            number = decoded.value["number"]
            if side == "client":
                return Description("ask", 3, number, "request")
            return Description(None if number else "own", None, number, "response")

    frame = Struct("size" / Length(uint8), "number" / uint8)
    with declared(Protocol("asked", "", {"frame": Layout(frame)}, "frame", "frame", dialogue=lambda: Described)):
        conversation = Conversation("asked")
        conversation.receive("client", b"\1\0\1\1")
        answers = conversation.receive("server", b"\1\0\1\1\1\2")
        described = [(frame.description.api, frame.description.version) for frame in answers]
        assert described == [("own", None), ("ask", 3), (None, None)]


def test_rubbish_is_quarantined_and_framing_resumes(run: list[tuple[str, bytes]]) -> None:
    client = [data for side, data in run if side == "client"]
    conversation = Conversation("pulsar")
    conversation.receive("client", client[0])
    events = conversation.receive("client", b"\xff\xff\xff\xffrubbish" + client[1] + client[2])
    assert isinstance(events[0], Quarantined)
    assert events[0].data == b"\xff\xff\xff\xffrubbish"
    assert events[0].offset == len(client[0])
    assert [event.data for event in events[1:]] == client[1:3]


def test_need_data_is_the_same_object_after_copying() -> None:
    events = Conversation("pulsar").receive("client", b"\0")
    assert pickle.loads(pickle.dumps(events))[-1] is copy.deepcopy(events)[-1] is NEED_DATA


def test_a_missing_range_costs_the_frame_it_cuts(run: list[tuple[str, bytes]]) -> None:
    client = [data for side, data in run if side == "client"]
    conversation = Conversation("pulsar")
    first, second, third = client[:3]
    assert conversation.receive("client", first + second[:7])[-1] is NEED_DATA
    (cut,) = conversation.gap("client", 5)
    assert isinstance(cut, Quarantined)
    assert cut.data == second[:7]
    events = conversation.receive("client", second[12:] + third)
    assert b"".join(event.data for event in events) == second[12:] + third
    assert events[-1].data == third


def test_joined_in_the_middle_of_a_frame(run: list[tuple[str, bytes]]) -> None:
    client = [data for side, data in run if side == "client"]
    conversation = Conversation("pulsar", started=False)
    events = conversation.receive("client", client[0][9:] + client[1] + client[2])
    assert events[0].data == client[0][9:]
    assert [event.data for event in events[1:]] == client[1:3]


def test_a_dialogue_is_told_first_that_it_was_joined_in_the_middle(
    run: list[tuple[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    class Listening(Dialogue):
        def lost(self) -> None:
            calls.append("lost")

        def observe(self, frame: Frame) -> None:
            calls.append("observe")

    monkeypatch.setattr(type(registry.protocol("pulsar")), "follow", partialmethod(Listening))
    client = [data for side, data in run if side == "client"]
    Conversation("pulsar").receive("client", client[0])
    assert calls == ["observe"]
    calls.clear()
    Conversation("pulsar", started=False).receive("client", client[0])
    assert calls == ["lost", "observe"]


def test_a_frame_that_is_too_short_to_name_its_command_is_quarantined_at_the_end(run: list[tuple[str, bytes]]) -> None:
    conversation = Conversation("pulsar")
    conversation.receive("client", run[0][1][:9])
    reason = "the connection or the capture ended inside a frame"
    assert conversation.close() == [Quarantined("client", 0, run[0][1][:9], None, reason)]


def test_side_is_client_or_server() -> None:
    with pytest.raises(wirekit.Misuse, match="'client' or 'server'"):
        Conversation("pulsar").receive("broker", b"")


def test_protocol_is_recognised_from_the_bytes(run: list[tuple[str, bytes]]) -> None:
    client = b"".join(data for side, data in run if side == "client")
    server = b"".join(data for side, data in run if side == "server")
    assert recognise(client, server).protocol == "pulsar"
    assert not recognise(client, server).swapped
    assert recognise(server, client).swapped
    request = wirekit.encode(
        "kafka.metadata.request.v0", {"correlation_id": 1, "client_id": "x", "body": {"topics": []}}
    )
    assert recognise(request, b"").protocol == "kafka"
    assert recognise(b"", request).swapped
    assert not recognise(b"GET / HTTP/1.1\r\n\r\n", b"").protocol
    assert recognise(b"GET / HTTP/1.1\r\n\r\n", b"").certain
    assert not recognise(request[:6], b"").certain


def metadata(number: int, client_id: str = "x") -> bytes:
    value = {"correlation_id": number, "client_id": client_id, "body": {"topics": []}}
    return wirekit.encode("kafka.metadata.request.v0", value)


def test_a_frame_beyond_the_limit_is_the_only_one_that_is_lost() -> None:
    """Also the first of a connection: the search for the next frame begins behind its first byte."""
    large = metadata(1, "x" * 200)
    events = Conversation("kafka", limits=wirekit.Limits(frame=100)).receive("client", large + metadata(2))
    assert [type(event) for event in events] == [Quarantined, Frame]
    assert [event.data for event in events] == [large, metadata(2)]


def test_bytes_that_make_no_sense_are_held_up_to_a_bound_however_many_come_at_once() -> None:
    conversation = Conversation("kafka")
    rubbish = bytes(5 << 20)
    given_up = conversation.receive("client", rubbish)[:-1]
    remaining = conversation.close("client")
    assert sum(len(event.data) for event in remaining) <= 1 << 20
    assert b"".join(event.data for event in (*given_up, *remaining)) == rubbish


def test_a_frame_with_an_error_says_how_many_of_its_bytes_were_decoded() -> None:
    damaged = metadata(1)[:-4] + bytes.fromhex("00000001 fff0 61626364")  # a topic of -16 bytes
    damaged = (len(damaged) - 4).to_bytes(4, "big") + damaged[4:]
    (frame,) = Conversation("kafka").receive("client", damaged)
    assert frame.decoded.error is not None
    assert frame.decoded.consumed == wirekit.decode(damaged, "kafka.metadata.request.v0").consumed < len(damaged)


def test_a_frame_of_an_unknown_api_is_not_wrong_and_an_answer_to_nobody_is() -> None:
    unknown = bytes.fromhex("0000000b 00b1 0000 00000001 0001 63".replace(" ", ""))
    conversation = Conversation("kafka")
    (request,) = conversation.receive("client", unknown)
    assert (request.reason, request.wrong) == ("api key 177 is not known", None)
    (answer,) = conversation.receive("server", bytes.fromhex("0000000400000009"))
    assert answer.wrong == answer.reason == "no request has correlation id 9"


def test_an_attempt_costs_the_same_for_few_bytes_and_more_for_each_further_one() -> None:
    def cost(size: int) -> int:
        dialogue = registry.protocol("pulsar").follow()
        dialogue.fits_unverified(bytes(size), "pulsar.frame", size + 1)
        return dialogue.effort

    assert cost(1) == cost(FEW) == CALL
    assert [cost(FEW + more) - CALL for more in (1, 10, 1000)] == [BYTE, 10 * BYTE, 1000 * BYTE]
