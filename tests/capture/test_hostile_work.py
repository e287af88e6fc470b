"""The work that input causes grows as the input does, whatever is in it: four times the bytes, four times the work.

Work is counted, not timed: calls of functions, and the bytes that are given to decoders, matchers and recognition.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from benchmarks import hostile
from benchmarks.hostile import CLIENT, HEADERS, SERVER, request, segment, with_errors
from wirekit import decoding, engine, fitting
from wirekit.capture.follow import follow
from wirekit.capture.tcp import ACK, FIN, RST, SYN, Connection, Connections, Opened
from wirekit.conversation import Conversation, Frame, joined, recognition
from wirekit.protocols.kafka import damaged_sets
from wirekit.registry import Schema

cases = functools.cache(hostile.cases)
SMALL, TIMES = 1 << 12, 4
GROWTH = 1.6
"""Times as much work a byte; it would be 4 if the work were quadratic. What doubles now and then needs some room."""
MOST_CALLS = 10
"""Calls of functions a byte: one takes about 0.2 microseconds, and a megabyte may take 2 seconds."""
MOST_CALLS_WITH_ERRORS = 20
"""The same for frames of as few as 13 bytes that the reference engine decodes, because each has an error."""
MOST_CALLS_OF_A_SYN = 60
"""Calls of functions for a connection of one SYN: 100,000 of them may take 3 seconds."""
LOOKING = {
    function.__code__: name
    for function, name in (
        (decoding.decode, "data"),
        (fitting.value_of, "data"),
        (fitting._begins, "data"),
        (fitting.lead_of, "data"),
        (engine.by_rows, "data"),
        (decoding.frame_size, "data"),
        (recognition.recognise, "client"),
        (joined.recognise_inside, "client"),
    )
}


def work_of(run: Callable[[], object]) -> tuple[int, int]:
    """(calls, bytes looked at)."""
    calls = looked = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls, looked
        calls += event in ("call", "c_call")
        if event == "call" and frame.f_code in LOOKING:
            looked += len(frame.f_locals[LOOKING[frame.f_code]])

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls, looked


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """What is compiled when it is first used is no work of the input."""
    for _ in range(2):
        for work in cases(SMALL).values():
            work()


@pytest.mark.parametrize("name", cases(SMALL))
def test_work_grows_as_the_input_does(name: str) -> None:
    calls, looked = work_of(cases(SMALL)[name])
    more_calls, more_looked = work_of(cases(SMALL * TIMES)[name])
    most = MOST_CALLS_WITH_ERRORS if name in with_errors(SMALL) else MOST_CALLS
    assert more_calls <= most * SMALL * TIMES
    assert more_calls <= GROWTH * TIMES * calls + 2000
    assert more_looked <= GROWTH * TIMES * looked + 64 * 1024


def test_a_connection_of_one_syn_takes_few_calls() -> None:
    name = "capture: connections of one SYN"
    calls, more = (work_of(cases(size)[name])[0] for size in (SMALL, SMALL * TIMES))
    assert more - calls <= MOST_CALLS_OF_A_SYN * (SMALL * TIMES // HEADERS - SMALL // HEADERS)


@pytest.mark.parametrize("name", with_errors(SMALL))
def test_the_reference_engine_decodes_a_frame_with_errors_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, frame = engine.by_reference, Conversation._linked
    keys: list[str] = []
    frames: list[Frame] = []

    def counted_run(schema: Schema, *arguments: Any, **options: Any) -> engine.Decoded:
        keys.append(schema.key)
        return run(schema, *arguments, **options)

    def counted_frame(*arguments: Any) -> Frame:
        frames.append(frame(*arguments))
        return frames[-1]

    for module in (engine, fitting, decoding):
        monkeypatch.setattr(module, "by_reference", counted_run)
    monkeypatch.setattr(Conversation, "_linked", counted_frame)
    with_errors(SMALL)[name]()
    assert frames
    headers = ("kafka.request_header", "kafka.client_header")  # are decoded besides if they are cut
    assert len([key for key in keys if key not in (damaged_sets.SET, *headers)]) <= len(frames)
    assert max(map(keys.count, headers)) <= decoding.PER_SHORT


def test_a_request_that_ends_in_an_error_is_six_objects_to_the_collector() -> None:
    """Frame, decoded value, description, record, error, and the list of messages."""
    count, question = 1000, bytes.fromhex("0000000a0010000000000007000a")
    conversation = Conversation("kafka", started=True)
    conversation.receive("client", 50 * question)
    gc.collect()
    before = len(gc.get_objects())
    conversation.receive("client", count * question)
    gc.collect()
    assert len(gc.get_objects()) - before <= 6 * count + 100


def test_the_fields_of_a_message_that_does_not_decode_are_not_sought_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sought = []
    monkeypatch.setattr(damaged_sets, "fields_end", lambda *arguments: sought.append(arguments))
    with_errors(SMALL)["kafka: sets of a message that does not decode"]()
    assert not sought


def test_a_connection_of_one_syn_is_one_object_to_the_collector() -> None:
    """Python's collector goes through all open connections each time that their number has grown by a quarter."""
    connections = Connections()
    number = 1000
    gc.collect()
    before = len(gc.get_objects())
    for each in range(number):
        connections.feed(segment(1, b"", flags=SYN, source=f"10.1.{each >> 8}.{each & 255}:4000"))
    gc.collect()
    assert len(gc.get_objects()) - before <= 1.1 * number


def test_a_connection_of_one_request_that_has_ended_is_twelve_objects_to_the_collector() -> None:
    """TCP's connection, its directions and their tuple; link and follower; the dialogue with its containers."""
    number = 1000
    clients = [f"10.1.{each >> 8}.{each & 255}:4000" for each in range(number)]
    connections = follow(segment(1, request(), source=client) for client in clients)
    gc.collect()
    before = len(gc.get_objects())
    link = next(link for link, item in connections if item is None)
    gc.collect()
    assert len(gc.get_objects()) - before <= 12.1 * number
    assert link.dialogue is not None
    assert not link.dialogue.requests


@pytest.mark.parametrize("later", [SYN | ACK, ACK, RST, FIN | ACK])
def test_a_syn_before_others_is_followed_as_if_its_directions_were_there(later: int) -> None:
    """Also where the connection has been stored since, or has ended."""
    first = segment(7, b"", flags=SYN)
    answer = segment(90, b"", flags=later, source=SERVER, target=CLIENT)
    later_segments = [
        answer._replace(acknowledgment=8),
        segment(8, b"abc", time_us=5),
        segment(11, b"", flags=FIN | ACK),
    ]
    event_lists = []
    for stored in (False, True):
        for ended in (False, True):
            connection = Connection()
            events = connection.feed(first)
            if ended:
                events += connection.finish()
            if stored:
                connection = Connection.from_state(connection.state())
            event_lists.append(
                [*events, *(event for each in later_segments for event in connection.feed(each)), *connection.finish()]
            )
    assert event_lists[0] == event_lists[2]
    assert event_lists[1] == event_lists[3]
    assert sum(isinstance(event, Opened) for event in event_lists[0]) == 1
