"""Flows of a long capture: those that ended long ago leave next to nothing behind."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("numba")

from tests.capture.second_parser import tcp, write
from tests.fuzz.captures import packets_of
from tests.road.kafka_connections import list_groups
from tests.road.law import by_columns, by_objects
from wirekit.road import states
from wirekit.road.connections import Connections
from wirekit.road.tracking import Followed
from wirekit.strategies import Script, Turn

HOUR, EVERY = 3600, 5
"""Seconds: the length of the capture, and from one connection to the next."""
ADDRESSES = 26
"""Offset of the source and the destination of IPv4 in a packet."""
FLAGS = 47
"""Offset of the flags of TCP."""


def readdressed(data: bytes, number: int) -> bytes:
    """A packet between other hosts; 16-bit words that change in opposite ways leave the checksums as they are."""
    source, destination = struct.unpack_from(">I4s", data, ADDRESSES)
    change = number << 16 if source & 1 else -number << 16
    changed = struct.pack(">II", source + change, int.from_bytes(destination) - change)
    return data[:ADDRESSES] + changed + data[ADDRESSES + 8 :]


def test_the_state_of_a_forgotten_flow_makes_room_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds after a connection ended, its flow has a number and the time of its last packet; both count later."""
    monkeypatch.setattr(states, "_FIRST_ROOM", 16)
    script = Script("kafka", tuple(Turn(("client", "server")[side], data, "", "") for side, data in list_groups(1)))
    connection = packets_of(script, Random(1))
    capture = [
        each._replace(time_us=each.time_us + time * 1_000_000, data=readdressed(each.data, 1 + time % HOUR // EVERY))
        for time in (*range(0, HOUR, EVERY), HOUR + 700)
        for each in connection
    ]
    path = write(tmp_path / "hour.pcap", capture)
    sizes: list[tuple[int, int]] = []
    ended = Connections.ended

    def measured(self: Connections, clock: int) -> Iterator[Followed]:
        yield from ended(self, clock)
        sizes.append((self._states.size, len(self._states._words)))

    monkeypatch.setattr(Connections, "ended", measured)
    tables, summary = by_columns(path, window=path.stat().st_size // 40)
    assert len(sizes) > 20
    assert sizes[-1][0] == HOUR // EVERY
    assert sizes[-1][1] < 300 // EVERY
    assert (tables, summary) == by_objects(path)
    assert sum("'ordinal': 1" in row for row in tables["connections"]) == 1


def test_packets_after_a_reset_do_not_delay_its_end(tmp_path: Path) -> None:
    """A reset is repeated after eight seconds; payload after fifteen seconds belongs to another connection."""
    script = Script("kafka", tuple(Turn(("client", "server")[side], data, "", "") for side, data in list_groups(1)))
    connection = packets_of(script, Random(1))
    *_, payload = (each for each in connection if tcp(each).payload)
    opening = connection[: connection.index(payload) + 1]
    first, last = opening[0], opening[-1].time_us
    reset = first._replace(data=first.data[:FLAGS] + b"\x04" + first.data[FLAGS + 1 :])
    later = [(reset, 1), (reset, 8_000_000), (payload, 15_000_000)]
    path = write(tmp_path / "reset.pcap", [*opening, *(each._replace(time_us=last + time) for each, time in later)])
    tables, summary = by_columns(path, window=path.stat().st_size // 2)
    assert (tables, summary) == by_objects(path)
    assert len(tables["connections"]) == 2
