"""Captures to frames: counts that an independent decoder found, nothing lost, the protocol found from the bytes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from wirekit.capture import follow as follow_module
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.links import Choice, Item, Link, Missing
from wirekit.capture.tcp import ACK, PSH, SYN, Segment
from wirekit.conversation import Frame, Quarantined
from wirekit.encoding import encode

CAPTURES = sorted(path.name for path in (Path(__file__).parents[2] / "fixtures" / "pcap").glob("*.pcap*"))

# Requests by (api, version), counted by a decoder that shares no code with this one.
COUNTS = {
    "kafka-0.9.0.1-2-produce.pcapng": {("produce", 1): 7, ("fetch", 1): 58, ("metadata", 0): 7},
    "kafka-0.8.2.2-2-produce.pcapng": {("produce", 0): 7, ("fetch", 0): 33, ("metadata", 0): 7},
    "kafka-0.10.2.2-2-produce.pcapng": {
        ("produce", 2): 19,
        ("fetch", 3): 93,
        ("metadata", 0): 3,
        ("metadata", 1): 4,
        ("metadata", 2): 12,
        ("api_versions", 0): 28,
    },
}


def items(path: Path, choice: Choice | None = None) -> list[tuple[Link, Item | None]]:
    with open_capture(str(path)) as capture:
        followed = list(follow(segments(capture), choice))
        assert capture.damage is None
        return followed


@pytest.mark.parametrize("name", COUNTS)
def test_requests_are_those_that_were_sent(name: str, fixtures: Path) -> None:
    counts: Counter[tuple[Any, Any]] = Counter()
    for _, item in items(fixtures / "pcap" / name):
        if isinstance(item, Frame) and item.description.role == "request":
            counts[item.description.api, item.description.version] += 1
            assert item.decoded.clean
    assert counts == COUNTS[name]


@pytest.mark.parametrize("name", CAPTURES)
def test_every_byte_is_frame_quarantine_duplicate_or_ignored(name: str, fixtures: Path) -> None:
    links = {}
    for link, item in items(fixtures / "pcap" / name):
        if item is None:
            links[link.name] = link
    assert links
    for link in links.values():
        assert link.protocol == name.partition("-")[0].replace("jmq4", link.protocol)
        for side in ("client", "server"):
            accounted = sum(link.bytes[side, fate] for fate in ("frames", "quarantined", "duplicate", "ignored"))
            assert accounted == link.bytes[side, "captured"]


@pytest.mark.parametrize("name", CAPTURES)
def test_frames_of_a_direction_follow_one_another(name: str, fixtures: Path) -> None:
    ends: dict[tuple[str, str], int] = {}
    for link, item in items(fixtures / "pcap" / name):
        if isinstance(item, (Frame, Quarantined)):
            key = (link.name, item.side)
            assert item.offset == ends.get(key, 0)
            ends[key] = item.offset + len(item.data)
        elif isinstance(item, Missing):
            ends[link.name, item.side] = item.offset + item.length


def test_answers_know_their_requests(fixtures: Path) -> None:
    for _, item in items(fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"):
        if isinstance(item, Frame) and item.description.role == "response" and item.reason is None:
            assert item.request is not None
            assert item.request.description.correlation_id == item.description.correlation_id
            assert item.latency_us is not None
            assert 0 <= item.latency_us < 60_000_000


def segment(source: str, target: str, sequence: int, flags: int, payload: bytes = b"", time: int = 0) -> Segment:
    return Segment(time, source, target, sequence, 0, flags, payload, 0, 0, len(payload))


CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.2:9092"


def handshake() -> list[Segment]:
    return [segment(CLIENT, SERVER, 0, SYN), Segment(0, SERVER, CLIENT, 0, 1, SYN | ACK, b"", 0, 0, 0)]


def test_foreign_bytes_are_quarantined_with_a_reason() -> None:
    data = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    followed = list(follow([*handshake(), segment(CLIENT, SERVER, 1, PSH | ACK, data, 10)]))
    quarantined = [item for _, item in followed if isinstance(item, Quarantined)]
    assert b"".join(item.data for item in quarantined) == data
    (reason,) = {item.reason for item in quarantined}
    assert reason.startswith("no known protocol fits; the client sends an HTTP request: ")
    assert followed[-1][0].protocol == ""


def test_bytes_from_inside_a_large_frame_are_quarantined_with_a_hint() -> None:
    """Recognition gives up before the frame ends; with the protocol given, the frame after it is read."""
    large, small = (
        encode("kafka.metadata.request.v0", {"correlation_id": 1, "client_id": "c", "body": {"topics": topics}})
        for topics in (["t" * 30_000] * 3, ["t"])
    )
    data = large[100:] + small
    stream = [segment(CLIENT, SERVER, at, ACK, data[at : at + 1000], at) for at in range(0, len(data), 1000)]
    (reason,) = {item.reason for _, item in follow(stream) if isinstance(item, Quarantined)}
    assert reason == "no known protocol fits; the connection began before the capture: name its protocol with --port"
    chosen = follow(stream, Choice(ports={9092: "kafka"}))
    assert [item.data for _, item in chosen if isinstance(item, Frame)] == [small]


def test_a_chosen_protocol_overrides_recognition() -> None:
    data = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    stream = [*handshake(), segment(CLIENT, SERVER, 1, PSH | ACK, data, 10)]
    for choice in (Choice(protocol="kafka"), Choice(ports={9092: "kafka"})):
        assert list(follow(stream, choice))[-1][0].protocol == "kafka"
    assert list(follow(stream, Choice(ports={1: "kafka"})))[-1][0].protocol == ""


def test_client_and_server_are_swapped_when_the_bytes_say_so() -> None:
    value = {"correlation_id": 1, "client_id": "x", "body": {"topics": []}}
    request = encode("kafka.metadata.request.v0", value)
    stream = [segment(SERVER, CLIENT, 100 + 50 * i, PSH | ACK, request, 10_000 * i) for i in range(1)]
    followed = list(follow(stream))
    frames = [item for _, item in followed if isinstance(item, Frame)]
    assert [frame.description.api for frame in frames] == ["metadata"]
    assert followed[-1][0].addresses(frames[0].side) == (SERVER, CLIENT)


def test_bytes_count_for_the_side_that_sent_them_after_the_sides_are_swapped() -> None:
    value = {"correlation_id": 1, "client_id": "x", "body": {"topics": []}}
    request = encode("kafka.metadata.request.v0", value)
    stream = [segment(SERVER, CLIENT, 100 + len(request) * i, PSH | ACK, request, 10_000 * i) for i in range(3)]
    stream.append(segment(CLIENT, SERVER, 100, PSH | ACK, request[:5], 30_000))
    (link,) = {id(link): link for link, _ in follow([*stream, stream[1]._replace(time_us=40_000)])}.values()
    assert link.client == SERVER
    fates = ("captured", "frames", "quarantined", "duplicate", "ignored")
    counts = {side: [link.bytes[side, fate] for fate in fates] for side in ("client", "server")}
    size = len(request)
    assert counts == {"client": [4 * size, 3 * size, 0, size, 0], "server": [5, 0, 5, 0, 0]}


def test_a_hole_costs_the_frame_it_cuts_and_no_other() -> None:
    def request(number: int) -> bytes:
        value = {"correlation_id": number, "client_id": "x", "body": {"topics": ["a" * 50]}}
        return encode("kafka.metadata.request.v0", value)

    stream, sequence = handshake(), 1
    for number in range(6):
        data = request(number)
        if number != 2:
            stream.append(segment(CLIENT, SERVER, sequence, PSH | ACK, data, 1000 * number))
        sequence += len(data)
    stream.append(Segment(900_000, SERVER, CLIENT, 1, sequence, ACK, b"", 0, 0, 0))
    stream.append(Segment(990_000, SERVER, CLIENT, 1, sequence, ACK, b"", 0, 0, 0))
    followed = [item for _, item in follow(stream)]
    assert [item.description.correlation_id for item in followed if isinstance(item, Frame)] == [0, 1, 3, 4, 5]
    assert [(item.offset, item.length) for item in followed if isinstance(item, Missing)] == [
        (2 * len(request(0)), len(request(2)))
    ]


def test_the_bytes_before_the_first_gap_are_not_examined_at_each_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[tuple[bytes, ...]] = []
    monkeypatch.setattr(follow_module, "recognise_begun", lambda *data: heads.append(data))
    segments = [segment("a:1", "b:2", 0, SYN)]
    segments += [segment("a:1", "b:2", 3 + 2 * number, ACK, b"x", number) for number in range(100)]
    assert len([item for _, item in follow(segments) if isinstance(item, Missing)]) == 100
    assert len(heads) < 10  # and whenever the number of segments has doubled
