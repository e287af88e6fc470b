"""The law of two roads where times decide: steps of the clock, silence, ends, ports that are used again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("numba")

from tests.capture.damage import DAMAGES
from tests.capture.second_parser import Packet as PacketOfFile
from tests.capture.second_parser import packets, tcp, write
from tests.conftest import FIXTURES
from tests.net.building import block, enhanced, interface, section_header
from tests.road.law import KAFKA, assert_same, by_objects, by_shares
from wirekit.capture.columns import Records
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.tcp import Segment
from wirekit.cli import captures
from wirekit.conversation import Frame
from wirekit.pipeline.summary import failure
from wirekit.road.packets import Endpoints, PacketReader, Packets
from wirekit.road.windows import read_windows


def test_the_end_of_a_connection_that_objects_have_seen(tmp_path: Path) -> None:
    """A packet of the server that has all flags resets it, and in a later window comes more."""
    changed = packets(FIXTURES / "pcap" / "pulsar-comp_lz4.pcap")
    whole = [tcp(each) for each in changed]
    at = next(number for number, each in enumerate(whole) if each.source.endswith(":6650") and len(each.payload) == 207)
    data = bytearray(changed[at].data)
    data[47] = 0x17
    changed[at] = changed[at]._replace(data=bytes(data))
    assert_same(write(tmp_path / "copy.pcap", changed), windows=(166,))


@pytest.mark.parametrize("damage", [None, "dropped", "joined_late"])
def test_ports_again_after_a_long_time(damage: str | None, tmp_path: Path) -> None:
    """A connection after a long time is another one, and told even if nothing but its end was captured."""
    repeated, path = packets(KAFKA), tmp_path / "again.pcap"
    for again in range(1, 3):
        part = repeated[: len(packets(KAFKA))]
        part = part if damage is None else DAMAGES[damage](part, Random(again))
        repeated = repeated + [each._replace(time_us=each.time_us + again * 700_000_000) for each in part]
    write(path, repeated)
    assert_same(path, windows=(1 << 26, path.stat().st_size // 3, path.stat().st_size // 20))


@pytest.mark.parametrize("timed", [0, 1, 5])
def test_packets_without_a_time_before_others(timed: int, tmp_path: Path) -> None:
    """The summary has the times of the others."""
    whole, path = packets(FIXTURES / "pcap" / "pulsar-consume.pcap")[:12], tmp_path / "simple.pcapng"
    without = [block("le", "SIMPLE_PACKET", {"data": each.data.hex()}) for each in whole[timed:]]
    others = [enhanced("le", each.data, each.time_us) for each in whole[:timed]]
    path.write_bytes(b"".join([section_header("le"), interface("le"), *without, *others]))
    assert_same(path)
    first_us = by_objects(path)[1].total().first_us
    assert first_us == (whole[0].time_us if timed else None)


SECOND_US, HOUR_US = 1_000_000, 3_600_000_000


@pytest.mark.parametrize(
    ("name", "places", "steps"),
    [
        ("kafka-0.8.2.2-2-produce.pcapng", [0.5], [-SECOND_US]),
        ("kafka-0.8.2.2-2-produce.pcapng", [0.3, 0.6, 0.9], [-60 * SECOND_US, 2 * SECOND_US, -HOUR_US]),
        ("pulsar-consume.pcap", [0.4], [-24 * HOUR_US]),
        ("pulsar-consume.pcap", [0.2, 0.5, 0.8], [-200_000, 5 * SECOND_US, -60 * SECOND_US]),
    ],
)
def test_a_clock_that_is_set(name: str, places: list[float], steps: list[int], tmp_path: Path) -> None:
    """The packets behind a step are followed in the order of the file, and nothing of what they have is left out."""
    whole, shift, at = packets(FIXTURES / "pcap" / name), 2 * HOUR_US * 24, 0
    copy = list[PacketOfFile]()
    for number, each in enumerate(whole):
        while at < len(steps) and number >= places[at] * len(whole):
            shift, at = shift + steps[at], at + 1
        copy.append(each._replace(time_us=each.time_us + shift))
    size = sum(len(each.data) for each in whole)
    path = write(tmp_path / "copy.pcap", copy)
    rows = assert_same(path, windows=(1 << 26, size // 3, size // 20, 300))
    assert by_shares(path, window=size // 10)[0] == rows
    before = by_objects(FIXTURES / "pcap" / name)[0]
    for table in ("frames", "messages", "calls", "quarantine", "gaps"):
        assert sum(rows.get(table, Counter()).values()) == sum(before.get(table, Counter()).values()), table
    items = (item for _, item in follow(captures.by_time(segments_of(path))))
    assert sum(isinstance(item, Frame) and failure(item) is None for item in items) == sum(rows["frames"].values())


def segments_of(path: Path) -> Iterator[Segment]:
    with open_capture(path) as capture:
        yield from (each for each in segments(capture) if isinstance(each, Segment))


def test_windows_end_behind_a_step_of_the_clock(tmp_path: Path) -> None:
    """They do not wait for the time of before, and the clock of each is that of its packets."""
    whole = packets(FIXTURES / "pcap" / "pulsar-consume.pcap")
    half = len(whole) // 2
    copy = [each._replace(time_us=each.time_us + (HOUR_US if place < half else 0)) for place, each in enumerate(whole)]
    with open_capture(write(tmp_path / "copy.pcap", copy)) as capture:
        windows = read_windows([capture], Endpoints(), 2000)
        assert windows is not None
        clocks = [window.clock for window in windows]
    assert len(clocks) > 10
    assert clocks.index(min(clocks)) == sum(clock > whole[-1].time_us for clock in clocks)
    for clock in (clocks[: clocks.index(min(clocks))], clocks[clocks.index(min(clocks)) :]):
        assert clock == sorted(clock)


def test_steps_are_searched_for_in_all_packets_of_a_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = packets(FIXTURES / "pcap" / "pulsar-consume.pcap")
    copy = [each._replace(time_us=each.time_us + HOUR_US * (place < 50)) for place, each in enumerate(whole)]
    counts: list[int] = []

    def segments_of_part(
        self: PacketReader, part: Records, real: Callable[..., Packets] = PacketReader.segments
    ) -> Packets:
        counts.append(part.rows.num_rows)
        return real(self, part)

    monkeypatch.setattr(PacketReader, "segments", segments_of_part)
    with open_capture(write(tmp_path / "copy.pcap", copy)) as capture:
        assert read_windows([capture], Endpoints(), 1 << 26) is not None
        assert counts == [len(whole)]


def test_late_copies_behind_a_leap_and_a_step_of_the_clock(tmp_path: Path) -> None:
    """A connection takes late segments for ten seconds of its own time, wherever the clock was in between."""
    whole = packets(FIXTURES / "pcap" / "kafka-0.9.0.1-2-produce.pcapng")
    leap, step, again = 11_000_000, -10_500_000, 3_000_000
    for begin in (450, 470, 494):
        shifts = [leap * (place > begin) + step * (place > begin + 25) for place in range(len(whole))]
        copy = [each._replace(time_us=each.time_us + shift) for each, shift in zip(whole, shifts, strict=True)]
        copy += [each._replace(time_us=each.time_us + shifts[-1] + again) for each in whole[begin - 60 :]]
        assert_same(write(tmp_path / f"{begin}.pcap", copy), windows=(300, 2000, 5000))
