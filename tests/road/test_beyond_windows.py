"""Connections that reach beyond a window, whose state goes from window to window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")

from tests.capture.second_parser import packets, write
from tests.pulsar.commands import connect, consumer, entry, lookup, message, producer, receipt, s, send
from tests.road.kafka_connections import list_groups, open_conversations
from tests.road.law import CAPTURES, assert_same, by_columns
from tests.road.test_pairing import capture
from tests.rules.conversations import SentFrame
from wirekit.proto import PulsarApi_pb2 as api
from wirekit.road.connections import MOST_CARRIED, Connections
from wirekit.road.streams import Streams


def test_connections_that_reach_beyond_a_window_go_by_columns_from_their_beginning(
    tmp_path: Path, received: list[bytes]
) -> None:
    calls = [piece for number in range(20) for piece in list_groups(number)]
    path = capture(tmp_path / "open.pcap", *calls)
    for each in (path, capture(tmp_path / "waiting.pcap", *calls[:-1])):
        assert_same(each, windows=(1, 300, 1000, 1 << 26))
    received.clear()
    by_columns(path, window=1000)
    assert calls[0][1] not in received
    assert len(received) < len(calls) // 4


def test_connections_with_a_request_that_waits_always_go_by_columns(tmp_path: Path, received: list[bytes]) -> None:
    requests, answered = zip(*(list_groups(number) for number in range(24)), strict=True)
    pairs = [piece for pair in zip(requests[1:], answered, strict=False) for piece in pair]
    path = capture(tmp_path / "waiting.pcap", requests[0], *pairs)
    late = capture(
        tmp_path / "late.pcap", requests[0], *pairs[:20], requests[20], answered[20], *answered[10:12], *pairs[40:]
    )
    for each in (path, late):
        assert_same(each, windows=(1, 1000, 2500))
    for window in (1, 300, 2500):  # also where all that comes in a window waits
        received.clear()
        by_columns(path, window=window)
        assert not received


def test_frames_that_windows_cut_go_by_columns(tmp_path: Path, received: list[bytes]) -> None:
    """Objects get the first frame of a side, if its first piece is not all of it, and no other."""
    calls = [list_groups(number) for number in range(12)]
    cut = [(side, piece) for call in calls for side, data in call for piece in (data[:7], data[7:])]
    path = capture(tmp_path / "cut.pcap", *cut)
    assert_same(path, windows=(1, 150, 400))
    for window in (1, 150, 400):
        received.clear()
        by_columns(path, window=window)
        assert b"".join(received) in b"".join(piece for _, piece in cut[:4])


def test_conversations_are_forgotten_when_they_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their connections are not, for ten seconds: bytes that come late are counted."""
    followers: list[object] = []
    keep = Connections.keep

    def keep_and_note(self: Connections, streams: Streams, flows: Any) -> None:
        keep(self, streams, flows)
        followers.extend(self._objects.flows[row].follower for row in self._objects.ending)

    monkeypatch.setattr(Connections, "keep", keep_and_note)
    path = next(each for each in CAPTURES if each.stem == "kafka-0.10.2.2-4-clients")
    by_columns(path, window=path.stat().st_size // 20)
    assert followers
    assert not any(followers)


@pytest.mark.parametrize("name", ["kafka-0.10.2.2-4-clients", "pulsar-consume"])
@pytest.mark.parametrize("begin", [0, 40])
def test_nothing_of_a_usual_open_connection_is_an_object(
    name: str, begin: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where objects have followed the first frames, what they know is kept as bytes."""
    whole = packets(next(each for each in CAPTURES if each.stem == name))
    path = write(tmp_path / "open.pcap", whole[begin:])
    rows, followers, objects = [0], set[type](), list[object]()
    keep = Connections.keep

    def keep_and_note(self: Connections, streams: Streams, flows: Any) -> None:
        keep(self, streams, flows)
        open_rows = open_conversations(self)
        usual = open_rows[~open_rows["waits"]]  # objects tell the end of the others
        rows.append(len(usual))
        followers.update(map(type, usual["follower"].tolist()))
        objects.extend(
            each for each in self._objects.flows.values() if each.follower is not None and each.follower.quiet
        )

    monkeypatch.setattr(Connections, "keep", keep_and_note)
    by_columns(path, window=path.stat().st_size // 20)
    assert sum(rows) >= 10
    assert followers <= {bytes, type(None)}
    assert not objects


def test_connections_that_only_the_capture_ends_go_by_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, received: list[bytes]
) -> None:
    """Although the last window has no packets of them, and a request waits."""
    calls = [piece for number in range(12) for piece in list_groups(number)]
    kafka = packets(next(each for each in CAPTURES if each.stem == "kafka-0.10.2.2-4-clients"))
    waiting = packets(capture(tmp_path / "waiting.pcap", *calls[:-1]))
    path = write(tmp_path / "open.pcap", [*waiting, *kafka])
    silent: list[int] = []
    whole = Connections.silent

    def ended(self: Connections) -> Streams:
        streams = whole(self)
        silent.append(streams.odd.size)
        return streams

    monkeypatch.setattr(Connections, "silent", ended)
    assert_same(path, windows=(1000, path.stat().st_size // 20))
    assert any(silent)
    received.clear()
    by_columns(path, window=1000)
    assert calls[-2][1] not in received


def test_many_requests_that_wait_are_left_to_objects(tmp_path: Path, received: list[bytes]) -> None:
    requests, answered = zip(*(list_groups(number) for number in range(MOST_CARRIED + 20)), strict=True)
    path = capture(tmp_path / "many.pcap", requests[0], answered[0], *requests[1:], *answered[1:])
    assert_same(path, windows=(6000, 7000))
    received.clear()
    by_columns(path, window=7000)
    assert requests[1][1] in received


READY, READY_AGAIN = (
    s("PRODUCER_SUCCESS", request_id=number, producer_name="p", producer_ready=True) for number in (10, 11)
)
BEGINNING = [*connect(max_message_size=200), producer(topic="orders")[0], READY, *consumer(topic="news")]
SENT = [each for number in range(8) for each in (send(number), receipt(number), message(number))]
LARGE = [send(20, entry(b"x" * 12_000)), receipt(20)]


@pytest.mark.parametrize(
    "frames",
    [
        [*BEGINNING, *SENT],
        [*BEGINNING, *SENT, *producer(2, 11, "more"), send(1, producer=2), receipt(1, producer=2), *SENT],
        [*BEGINNING, *SENT, *producer(1, 11, "other"), *consumer(1, 21, "other"), *SENT],
        [*BEGINNING, *SENT, *LARGE, *SENT],
        [*BEGINNING, *SENT, *connect(max_message_size=20_000), *SENT, *LARGE],
        [*BEGINNING, lookup()[0], *SENT, lookup()[1], *SENT],
        [*BEGINNING, send(50), *SENT, *producer(1, 11, "other"), *SENT, receipt(50)],
        [*BEGINNING, *SENT, producer(1, 11, "other")[0], *SENT, READY_AGAIN, *SENT],
        [*BEGINNING, *SENT, send(0, entry(b"a", uuid="u", num_chunks_from_msg=2, chunk_id=0)), receipt(0), *SENT],
    ],
    ids=[
        "one producer",
        "two",
        "a topic that changes",
        "a frame too large",
        "another agreement",
        "a lookup that waits",
        "a send that waits",
        "a producer that waits",
        "chunks",
    ],
)
def test_names_and_agreements_of_pulsar_go_on_in_the_next_window(frames: list[Any], tmp_path: Path) -> None:
    path = capture(tmp_path / "pulsar.pcap", *((int(each.side == "server"), each.data) for each in frames))
    assert_same(path, windows=(700, 2000))


def test_connections_of_pulsar_go_by_columns_in_each_window(tmp_path: Path, received: list[bytes]) -> None:
    pieces = [(int(each.side == "server"), each.data) for each in [*BEGINNING, *SENT]]
    path = capture(tmp_path / "pulsar.pcap", *pieces)
    by_columns(path, window=1000)
    assert pieces[0][1] not in received
    assert len(received) < len(pieces) // 3


LARGE_NUMBER = 1 << 63
PUSHED = message(9, consumer=LARGE_NUMBER)
OF_PRODUCER = [send(1, producer=LARGE_NUMBER), receipt(1, producer=LARGE_NUMBER)]


@pytest.mark.parametrize(
    "frames",
    [
        [*producer(LARGE_NUMBER, 11), *SENT, *OF_PRODUCER],
        [*consumer(LARGE_NUMBER, 21, "large"), *SENT, *producer(LARGE_NUMBER, 11), *OF_PRODUCER, PUSHED],
    ],
    ids=["a producer, which is left to objects", "a consumer before it, which columns read"],
)
def test_names_of_large_numbers_go_on_in_the_next_window(frames: list[Any], tmp_path: Path) -> None:
    frames = [*BEGINNING, *frames]
    path = capture(tmp_path / "pulsar.pcap", *((int(each.side == "server"), each.data) for each in frames))
    assert_same(path, windows=(700, 2000))


def without(frame: SentFrame, name: str, field: str) -> SentFrame:
    """A frame whose command lacks a field."""
    size = int.from_bytes(frame.data[4:8], "big")
    command, behind = api.BaseCommand.FromString(frame.data[8 : 8 + size]), frame.data[8 + size :]
    getattr(command, name).ClearField(field)
    data = command.SerializePartialToString()
    return frame._replace(
        data=b"".join(n.to_bytes(4, "big") for n in (4 + len(data + behind), len(data))) + data + behind
    )


@pytest.mark.parametrize(
    ("frames", "topics"),
    [
        ([without(producer(1, 11)[0], "producer", "topic"), *SENT], {"orders", "news"}),
        ([without(consumer(1, 21)[0], "subscribe", "topic"), *SENT], {"orders", "news"}),
        (
            [without(producer(1, 11, "no")[0], "producer", "producer_id"), without(send(9), "send", "producer_id")],
            {None},
        ),
    ],
    ids=["no topic", "no topic of a consumer", "no number"],
)
def test_a_command_without_a_required_field_declares_no_topic(
    frames: list[SentFrame], topics: set[str | None], tmp_path: Path
) -> None:
    frames = [*BEGINNING, *frames]
    path = capture(tmp_path / "pulsar.pcap", *((int(each.side == "server"), each.data) for each in frames))
    rows = assert_same(path, windows=(700, 1 << 26))["messages"]
    assert {
        topic for topic in (None, "no", "orders", "news") if any(f"'topic': {topic!r}" in row for row in rows)
    } == topics


def test_names_of_frames_that_are_left_to_objects_are_not_known_before_them(tmp_path: Path) -> None:
    """A chunk is left to objects, which then read the connection from its first frame on; columns read another."""
    chunk = message(9, entry(b"a", uuid="u", num_chunks_from_msg=2, chunk_id=0))
    frames = [*connect(), message(1), *consumer(topic="later"), message(2), chunk, *SENT]
    pulsar = packets(capture(tmp_path / "pulsar.pcap", *((int(each.side == "server"), each.data) for each in frames)))
    kafka = packets(capture(tmp_path / "kafka.pcap", *(each for number in range(5) for each in list_groups(number))))
    port, other_port = ((40000 + number).to_bytes(2, "big") for number in (0, 1))
    kafka = [each._replace(data=each.data.replace(port, other_port)) for each in kafka]
    path = write(tmp_path / "both.pcap", sorted([*pulsar, *kafka], key=lambda each: each.time_us))
    rows = assert_same(path, windows=(1500, 3000))
    assert sum("'topic': None" in row for row in rows["messages"]) > 0
