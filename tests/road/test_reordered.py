"""Segments that arrive out of order: columns put them in order where objects release them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.second_parser import Packet, packets, tcp, write
from tests.conftest import FIXTURES
from tests.net.building import ethernet, ipv4, packet
from tests.net.building import tcp as tcp_value
from tests.road.law import assert_same, odd_packets
from wirekit.capture.tcp import Settings, direction
from wirekit.road import kernels
from wirekit.road.kernels import MOST_REORDERED

ENDS = ("0a000001", 40000), ("0a000002", 9092)
FIRST = 1001, 5001  # sequence numbers of the first bytes of client and server
SYN, ACK, FIN, RST, URG = 2, 16, 1, 4, 32
NUMBERS = 1 << 32  # sequence numbers continue from 0 after the last one
HOLD, PATIENCE = Settings().hold_us, Settings().patience_us
METADATA = wirekit.encode(
    "kafka.metadata.request.v0", {"correlation_id": 7, "client_id": "reader", "body": {"topics": ["events"] * 40}}
)
BROKERS = wirekit.encode(
    "kafka.metadata.response.v0", {"correlation_id": 7, "body": {"brokers": [], "topic_metadata": []}}
)


class Part(NamedTuple):
    """A segment of the client, or of the server, ``after`` microseconds after the segment before it."""

    begin: int = 0
    end: int | None = None
    after: int = 100
    side: int = 0
    acked: int = 0
    flags: int = ACK


ANSWER = Part(side=1, acked=len(METADATA))


def capture(path: Path, *parts: Part, first: tuple[int, int] = FIRST) -> Path:
    """A connection of a request and its response in segments; ``acked`` counts the bytes of the other side."""
    time_us, sent = 1_700_000_000_000_000, []
    opening = [(0, first[0] - 1, 0, SYN, b""), (1, first[1] - 1, first[0], SYN | ACK, b""), (0, *first, ACK, b"")]
    segments = [(100, *each) for each in opening]
    for begin, end, after, side, acked, flags in parts:
        payload = (METADATA, BROKERS)[side][begin:end]
        segments.append((after, side, first[side] + begin, first[1 - side] + acked, flags, payload))
    for after, side, sequence, acknowledgment, flags, payload in segments:
        time_us += after
        (source, source_port), (target, target_port) = ENDS[side], ENDS[1 - side]
        numbers = {
            "sequence_number": sequence % NUMBERS, "acknowledgment_number": acknowledgment % NUMBERS, "flags": flags
        }  # fmt: skip
        segment = tcp_value(payload, source_port=source_port, destination_port=target_port, **numbers)
        data = packet("net.ethernet", ethernet(ipv4(segment, source=source, destination=target)))
        sent.append(Packet(time_us, len(data), data))
    return write(path, sent)


PLAIN = {
    "two segments exchanged": [Part(100, 200), Part(0, 100), Part(200), ANSWER],
    "two holes": [Part(300), Part(100, 200), Part(0, 100), Part(200, 300), ANSWER],
    "within the patience": [Part(100), Part(0, 100, after=PATIENCE), ANSWER],
    "a held segment arrives again": [Part(100), Part(100, 300), Part(0, 100), ANSWER],
    "released bytes arrive again": [Part(0, 50), Part(100), Part(0, 50), Part(50, 100), ANSWER],
    "new bytes behind released ones": [Part(0, 50), Part(100), Part(0, 100), ANSWER],
    "acknowledged, then filled": [Part(100), ANSWER._replace(end=0), Part(0, 100, after=HOLD), ANSWER],
    "the response": [Part(), ANSWER._replace(begin=5), ANSWER._replace(end=5)],
    "a keep-alive with an old byte": [Part(0, 50), Part(100), Part(49, 50), Part(50, 100), ANSWER],
    "an empty segment with an old number": [Part(0, 50), Part(100), Part(20, 20), Part(50, 100), ANSWER],
    "a probe of the first byte of the hole": [Part(100), Part(0, 1), Part(1, 100), ANSWER],
    "urgent data": [Part(100, flags=ACK | URG), Part(0, 100), ANSWER],
    "both sides end after the hole is filled": [
        Part(100), Part(0, 100), ANSWER, Part(len(METADATA), flags=ACK | FIN),
        Part(len(BROKERS), side=1, acked=len(METADATA) + 1, flags=ACK | FIN),
    ],
}  # fmt: skip
LEFT_TO_OBJECTS = {
    "after the patience": [Part(100), Part(0, 100, after=PATIENCE + 1), ANSWER],
    "acknowledged for too long": [Part(100), ANSWER._replace(end=0), Part(0, 100, after=HOLD + 1), ANSWER],
    "never filled": [Part(0, 50), Part(100), ANSWER],
    "overlaps a held segment": [Part(100), Part(0, 101), ANSWER],
    "held segments overlap": [Part(100, 200), Part(150), Part(0, 100), ANSWER],
    "a response before its request": [Part(100), ANSWER, Part(0, 100)],
    "both sides have a hole": [Part(100), ANSWER._replace(begin=5), Part(0, 100), ANSWER._replace(end=5)],
    "a reset before the hole is filled": [Part(100), Part(side=1, end=0, flags=ACK | RST), Part(0, 100), ANSWER],
    "the segment that fills the hole has the end": [Part(100, 200), Part(0, 100, flags=ACK | FIN), Part(200), ANSWER],
    "an end before the hole is filled": [Part(100), Part(flags=ACK | FIN, begin=len(METADATA)), Part(0, 100), ANSWER],
}


@pytest.mark.parametrize("name", PLAIN)
def test_columns_put_segments_in_order(name: str, tmp_path: Path) -> None:
    path = capture(tmp_path / "copy.pcap", *PLAIN[name])
    assert odd_packets(path) == (0, 0)
    rows = assert_same(path, windows=(1 << 26, 400))
    assert len(rows["calls"]) == 1
    assert not rows.get("gaps")


@pytest.mark.parametrize("before", [1, 50, 150, len(METADATA)])
def test_sequence_numbers_that_begin_again_at_0(before: int, tmp_path: Path) -> None:
    parts = [Part(0, 50), Part(100, 200), Part(200), Part(50, 100), ANSWER]
    path = capture(tmp_path / "copy.pcap", *parts, first=(NUMBERS - before, NUMBERS - 3))
    assert odd_packets(path) == (0, 0)
    assert len(assert_same(path, windows=(1 << 26, 400))["calls"]) == 1


@pytest.mark.parametrize("packets_between", [MOST_REORDERED - 2, MOST_REORDERED - 1])
def test_the_packets_before_a_hole_is_filled_are_limited(packets_between: int, tmp_path: Path) -> None:
    between = [Part(0, 0, after=1)] * packets_between
    path = capture(tmp_path / "copy.pcap", Part(100), *between, Part(0, 100), ANSWER)
    assert (odd_packets(path) == (0, 0)) == (packets_between < MOST_REORDERED - 1)
    assert_same(path)


@pytest.mark.parametrize("name", LEFT_TO_OBJECTS)
def test_objects_read_other_segments_out_of_order(name: str, tmp_path: Path) -> None:
    path = capture(tmp_path / "copy.pcap", *LEFT_TO_OBJECTS[name])
    assert odd_packets(path)[0]
    assert_same(path, windows=(1 << 26, 400))


@pytest.mark.parametrize("name", ["kafka-0.9.0.1-4-clients.pcapng", "pulsar-batch.pcap", "jmq4-produce.pcap"])
def test_segments_sent_again_after_a_loss_before_the_capture(name: str, tmp_path: Path) -> None:
    whole = packets(FIXTURES / "pcap" / name)
    for seed in range(4):
        random = Random(seed)
        delays = [random.choice([40, 4_000, 300_000]) if random.random() < 1 / 8 else 0 for _ in whole]
        late = [
            each._replace(time_us=each.time_us + delay) if tcp(each).payload else each
            for each, delay in zip(whole, delays, strict=True)
        ]
        late.sort(key=lambda each: each.time_us)
        assert_same(write(tmp_path / "copy.pcap", late), windows=(1 << 26, random.choice([500, 3000])))


def test_both_roads_have_the_same_limits() -> None:
    """Compiled loops have numbers of their own: the cache of their code does not see changes of other modules."""
    assert kernels.WINDOW == direction.WINDOW
    assert kernels.PIECE_COST == direction._PIECE_COST
