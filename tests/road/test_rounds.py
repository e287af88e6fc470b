"""A connection that became odd in a window is read by columns again as soon as nothing of it is pending."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("numba")

import wirekit
from tests.capture.damage import DAMAGES
from tests.capture.second_parser import Packet, packets, write
from tests.fuzz.captures import packets_of
from tests.road.law import COPIES, DAMAGED, KAFKA, assert_same, by_columns
from tests.road.test_reordered import ACK, ANSWER, BROKERS, FIN, HOLD, METADATA, PATIENCE, Part, capture
from wirekit.capture.follow import Follower
from wirekit.capture.links import Item
from wirekit.capture.tcp import RST, Event
from wirekit.road import connections, streams, tables
from wirekit.strategies import Script, Turn

CALLS = 2000
SEQUENCE = 14 + 20 + 4
"""The place of the sequence number in a packet."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections change the road for a single packet, as often as they can."""
    monkeypatch.setattr(streams, "LEAST", 1)
    monkeypatch.setattr(connections, "LEAST", 1)
    monkeypatch.setattr(tables, "ROUND", 1)


@pytest.fixture
def by_objects(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """The events of TCP that objects follow."""
    followed: list[Event] = []
    take = Follower.take

    def take_and_note(self: Follower, event: Event) -> list[Item]:
        followed.append(event)
        return take(self, event)

    monkeypatch.setattr(Follower, "take", take_and_note)
    return followed


def many_calls() -> list[Packet]:
    """A connection of Kafka; the packets are a millisecond apart."""
    turns = []
    for number in range(CALLS):
        request = {"correlation_id": number, "client_id": "me", "body": {}}
        response = {"correlation_id": number, "body": {"error_code": 0, "groups": []}}
        turns.append(Turn("client", wirekit.encode("kafka.list_groups.request.v0", request), "", ""))
        turns.append(Turn("server", wirekit.encode("kafka.list_groups.response.v0", response), "", ""))
    return packets_of(Script("kafka", tuple(turns)), Random(1))


@pytest.mark.parametrize("rate", [0.01, 0.1])
@pytest.mark.parametrize("path", [*DAMAGED, KAFKA], ids=lambda path: path.stem)
@pytest.mark.usefixtures("few")
def test_lost_packets(path: Path, rate: float, tmp_path: Path) -> None:
    whole = packets(path)
    for seed in range(COPIES):
        random = Random(f"{path.stem} {rate} {seed}")
        copy = [each for each in whole if random.random() >= rate]
        size = sum(len(each.data) for each in whole)
        assert_same(write(tmp_path / f"{seed}.pcap", copy), windows=(1 << 26, size // 3))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=lambda damage: damage.__name__)
@pytest.mark.usefixtures("few")
def test_other_damages(damage: Callable[[list[Packet], Random], list[Packet]], tmp_path: Path) -> None:
    for path in DAMAGED:
        whole = packets(path)
        for seed in range(COPIES):
            copy = damage(whole, Random(f"{path.stem} {seed}"))
            assert_same(write(tmp_path / f"{path.stem}-{seed}.pcap", copy), windows=(1 << 26,))


@pytest.mark.parametrize("windows", [1, 2])
def test_columns_read_behind_a_hole(windows: int, by_objects: list[Event], tmp_path: Path) -> None:
    whole = many_calls()
    lost = {len(whole) * part // 10 for part in (1, 4, 7)}
    path = write(tmp_path / "lost.pcap", [each for number, each in enumerate(whole) if number not in lost])
    rows = assert_same(path)
    assert sum(rows["gaps"].values()) == len(lost)
    by_objects.clear()
    by_columns(path, window=path.stat().st_size // windows + 1)
    assert len(lost) < len(by_objects) < len(whole) // 20


def test_columns_read_behind_a_segment_out_of_the_window(by_objects: list[Event], tmp_path: Path) -> None:
    whole = many_calls()
    number = len(whole) // 10
    stray = bytearray(whole[number].data)
    (sequence,) = struct.unpack_from(">I", stray, SEQUENCE)
    struct.pack_into(">I", stray, SEQUENCE, (sequence + (1 << 31) - 5) % (1 << 32))
    whole.insert(number, whole[number]._replace(data=bytes(stray)))
    path = write(tmp_path / "stray.pcap", whole)
    assert_same(path, windows=(1 << 26, path.stat().st_size // 3))
    by_objects.clear()
    by_columns(path, window=1 << 26)
    assert len(by_objects) < 10


def test_few_rounds_for_many_holes(by_objects: list[Event], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Objects read the rest of the window if a round costs more than it saves."""
    rounds: list[int] = []
    put_together = tables.put_together

    def counted(packets: Any, *args: Any, **options: Any) -> Any:
        rounds.append(packets.time.size)
        return put_together(packets, *args, **options)

    whole = many_calls()
    path = write(tmp_path / "lost.pcap", [each for number, each in enumerate(whole) if number % 50 != 20])
    rows = assert_same(path)
    assert sum(rows["gaps"].values()) > len(whole) // 100
    monkeypatch.setattr(tables, "put_together", counted)
    by_objects.clear()
    by_columns(path, window=1 << 26)
    assert len(rounds) == 1 + tables.MOST_SMALL
    assert len(by_objects) > len(whole) // 2


def test_a_connection_that_ended_in_an_earlier_window_is_reported_once(tmp_path: Path) -> None:
    end = Part(len(METADATA))
    late = [*[end] * 8, end._replace(after=PATIENCE - 500), end._replace(after=400)]
    lost = [Part(0, 50), Part(100), end._replace(flags=RST | ACK), end._replace(after=HOLD + 1)]
    path = capture(tmp_path / "copy.pcap", *lost, *late, Part(0, 50, after=2 * HOLD))
    rows = assert_same(path, windows=(600, 900))
    assert len(rows["connections"]) == 2


def test_an_acknowledgment_is_out_of_the_window_of_bytes_that_are_not_certain_yet(tmp_path: Path) -> None:
    end, answered = len(METADATA), len(BROKERS)
    acknowledged = Part(end, acked=answered)
    parts = [Part(), ANSWER._replace(after=HOLD + 1), Part(end, acked=(1 << 30) + 1)]
    parts += [
        acknowledged._replace(after=HOLD + 1),
        acknowledged,
        acknowledged._replace(begin=end + 3, flags=FIN | ACK),
    ]
    path = capture(tmp_path / "copy.pcap", *parts)
    rows = assert_same(write(path, packets(path)[3:]), windows=(1 << 26, 400))
    assert {"server_missing': 0" in row for row in rows["connections"]} == {True}
