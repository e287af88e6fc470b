"""Files of one rotation are one capture: by their names, and by the times of their packets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.capture.second_parser import Packet, packets, write
from tests.conftest import FIXTURES
from wirekit.capture import rotation
from wirekit.capture.rotation import LONGEST_PAUSE_US, rotations

SECOND = 1_000_000
(ANY, *_) = packets(FIXTURES / "pcap" / "pulsar-batch.pcap")


def captured(folder: Path, spans: dict[str, tuple[float, float]]) -> list[list[str]]:
    """The captures that files of these names and spans (seconds) are parts of."""
    for name, (first, last) in spans.items():
        write(folder / name, [ANY._replace(time_us=int(at * SECOND)) for at in (first, last)])
    groups = rotations(str(folder / name) for name in spans)
    return [[Path(path).name for path in parts] for parts in groups]


ROTATED = {
    "tcpdump -C": ["trace.pcap", "trace.pcap1", "trace.pcap2", "trace.pcap10"],
    "tcpdump -C -W": ["trace.pcap00", "trace.pcap01", "trace.pcap02"],
    "tcpdump -C without a suffix": ["trace", "trace1", "trace2"],
    "tcpdump -C -z gzip": ["trace.pcap.gz", "trace.pcap1.gz", "trace.pcap2"],
    "tcpdump -G": ["broker1-20261122235900.pcap", "broker1-20261123000000.pcap", "broker1-20261123000100.pcap"],
    "tcpdump -G, with separators": ["t_2026-11-22_23:59:00.pcap", "t_2026-11-23_00:00:00.pcap"],
    "tcpdump -G, ISO 8601": ["t-2026-11-22T23:59:00Z.pcap", "t-2026-11-23T00:00:00Z.pcap"],
    "tcpdump -G, by day": ["20261122.pcap", "20261123.pcap"],
    "tcpdump -G %s": ["t-1795221311.pcap", "t-1795224911.pcap"],
    "tcpdump -G -C": ["t-20261122235900.pcap", "t-20261122235900.pcap1", "t-20261123000000.pcap"],
    "dumpcap -b": ["t_00001_20261122235900.pcapng", "t_00002_20261123000000.pcapng"],
}


@pytest.mark.parametrize("names", ROTATED.values(), ids=ROTATED)
def test_names_of_rotations_are_one_capture_in_the_order_of_their_times(names: Sequence[str], tmp_path: Path) -> None:
    spans = {name: (7200.0 * number, 7200.0 * number + 60) for number, name in enumerate(names)}
    assert captured(tmp_path, spans) == [names]
    shuffled = Random(1).sample(sorted(spans.items()), len(spans))
    assert captured(tmp_path, dict(shuffled)) == [names]


def test_a_ring_of_files_begins_with_the_oldest(tmp_path: Path) -> None:
    spans = {"t.pcap0": (300, 310), "t.pcap1": (100.0, 200.0), "t.pcap2": (200.0, 300.0)}
    assert captured(tmp_path, spans) == [["t.pcap1", "t.pcap2", "t.pcap0"]]


PAUSE = LONGEST_PAUSE_US / SECOND


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ({"part-1.pcap": (0, 10), "part-2.pcap": (10, 20)}, [["part-1.pcap", "part-2.pcap"]]),
        ({"part-1.pcap": (0, 10), "part-2.pcap": (PAUSE + 10, 9999)}, [["part-1.pcap", "part-2.pcap"]]),
        ({"part-1.pcap": (0, 10), "part-2.pcap": (PAUSE + 11, 9999)}, [["part-1.pcap"], ["part-2.pcap"]]),
        ({"host1.pcap": (0, 10), "host2.pcap": (1, 12)}, [["host1.pcap"], ["host2.pcap"]]),
        ({"t.pcap": (0, 10), "t.pcap1": (9, 12)}, [["t.pcap"], ["t.pcap1"]]),
        ({"t.pcap": (0, 10), "t.pcap1": (9.999, 12)}, [["t.pcap", "t.pcap1"]]),
        ({"copy1.pcap": (0, 0.001), "copy2.pcap": (0, 0.001)}, [["copy1.pcap"], ["copy2.pcap"]]),
        ({"morning.pcap": (0, 10), "noon.pcap": (10, 20)}, [["morning.pcap"], ["noon.pcap"]]),
        ({"a1-0.9.pcap": (0, 10), "a2-0.10.pcap": (10, 20)}, [["a1-0.9.pcap"], ["a2-0.10.pcap"]]),
        (
            {"eth0-20260101.pcap": (0, 9), "eth1-20260101.pcap": (1, 8), "eth0-20260102.pcap": (10, 19)},
            [["eth0-20260101.pcap", "eth0-20260102.pcap"], ["eth1-20260101.pcap"]],
        ),
    ],
)
def test_times_say_whether_files_follow_one_another(
    spans: dict[str, tuple[float, float]], expected: list[list[str]], tmp_path: Path
) -> None:
    assert captured(tmp_path, spans) == expected


def test_files_without_packets_and_pipes_are_captures_of_their_own(tmp_path: Path) -> None:
    spans = {"t.pcap": (0.0, 10.0), "t.pcap3": (20.0, 30.0)}
    captured(tmp_path, spans)
    write(tmp_path / "t.pcap1", [])
    (tmp_path / "t.pcap2").write_bytes(b"no capture")
    os.mkfifo(tmp_path / "t.pcap4")  # opening it would wait for a writer
    groups = rotations(
        str(tmp_path / name) for name in ("t.pcap", "t.pcap1", "t.pcap2", "t.pcap3", "t.pcap4", "t.pcap")
    )
    assert [[Path(path).name for path in parts] for parts in groups] == [
        ["t.pcap", "t.pcap3"],
        ["t.pcap1"],
        ["t.pcap2"],
        ["t.pcap4"],
    ]


def test_files_of_different_directories_are_different_captures(tmp_path: Path) -> None:
    for number, folder in enumerate("ab"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / f"t.pcap{number}", [Packet(number * SECOND, 60, ANY.data)])
    assert len(rotations(str(tmp_path / each) for each in ("a/t.pcap0", "b/t.pcap1"))) == 2


def test_the_captures_of_the_fixtures_are_no_rotation() -> None:
    paths = sorted(map(str, (FIXTURES / "pcap").glob("*.pcap*")))
    assert rotations(paths) == [(path,) for path in paths]


CUT = {"whole": slice(None), "cut": slice(-9), "cut in its header": slice(20)}


@pytest.mark.parametrize("part", CUT.values(), ids=CUT)
@pytest.mark.parametrize("capture", sorted((FIXTURES / "pcap").glob("*.pcap*")), ids=lambda path: path.name)
def test_headers_of_records_give_the_times_that_packets_have(
    capture: Path, part: slice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    path = tmp_path / capture.name
    path.write_bytes(capture.read_bytes()[part])
    expected = rotation.span_of(str(path))
    monkeypatch.setattr(rotation, "_LARGE", 1 << 10)
    monkeypatch.setattr("wirekit.compiler.cache.interpreter_is_compiled", lambda: True)
    assert rotation.span_of(str(path)) == expected
    assert (expected is None) == (part == CUT["cut in its header"])


def test_each_file_is_read_once_for_its_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(rotation, "span_of", read.append)
    paths = [str(tmp_path / f"trace.pcap{number}") for number in range(3)]
    assert rotation.rotations(paths) == [(path,) for path in paths]
    assert sorted(read) == paths
