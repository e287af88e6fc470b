"""``wirekit frames`` prints the same lines on both roads, and says the same of what did not decode."""

from __future__ import annotations

import functools
import json
import sys
import zlib
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("numba")

import wirekit.road.tables as road
from tests.capture.damage import DAMAGES
from tests.capture.second_parser import Packet, packets, tcp, write
from tests.cli.roads import same_lines
from tests.conftest import FIXTURES
from tests.fuzz.captures import hostile
from wirekit.cli import group
from wirekit.errors import Misuse
from wirekit.pipeline import roads

CAPTURES = sorted(path.name for path in (FIXTURES / "pcap").glob("*.pcap*"))
DAMAGED = ("jmq4-consume.pcap", "pulsar-consume.pcap", "kafka-0.10.2.2-4-clients.pcapng")
KAFKA = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"
WINDOW = 20_000
"""Bytes: connections reach beyond it."""


def frames(path: Path, which: str, *options: str) -> Result:
    arguments = ["frames", str(path), "--output", "json", "--road", which, *options]
    return CliRunner().invoke(group, arguments, standalone_mode=False)


@functools.cache
def by_objects(capture: str) -> Result:
    return frames(FIXTURES / "pcap" / capture, "objects")


def assert_same(path: Path, *options: str, objects: Result | None = None) -> list[str]:
    return same_lines(frames, path, *options, objects=objects)


def use_windows(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(road, "captured", functools.partial(road.captured, window=size))


@pytest.mark.parametrize("capture", CAPTURES)
def test_lines_are_the_same(capture: str) -> None:
    lines = assert_same(FIXTURES / "pcap" / capture, objects=by_objects(capture))
    times = [line["time"] for line in map(json.loads, lines)]
    assert times == sorted(times)


@pytest.mark.parametrize("capture", CAPTURES)
def test_lines_of_connections_that_reach_beyond_windows_are_the_same(
    capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_windows(monkeypatch, WINDOW)
    assert_same(FIXTURES / "pcap" / capture, "--strict")


@pytest.mark.parametrize("window", [1, 300, 4000])
@pytest.mark.parametrize("capture", DAMAGED)
def test_lines_of_windows_of_a_few_packets_are_the_same(
    capture: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = by_objects(capture)
    use_windows(monkeypatch, window)
    assert_same(FIXTURES / "pcap" / capture, objects=objects)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("capture", DAMAGED)
def test_lines_of_damaged_copies_are_the_same(
    capture: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(zlib.crc32(f"{capture} {damage}".encode()))
    copy = write(tmp_path / "copy.pcap", DAMAGES[damage](packets(FIXTURES / "pcap" / capture), random))
    objects = frames(copy, "objects")
    assert_same(copy, objects=objects)
    use_windows(monkeypatch, random.choice((700, 5000, WINDOW)))
    assert_same(copy, objects=objects)


def test_lines_of_hostile_captures_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_windows(monkeypatch, WINDOW)
    path, some = tmp_path / "hostile.pcap", 0
    for seed in range(40):
        hostile(path, seed)
        some += bool(assert_same(path, "--allow-cut"))
    assert some >= 2


def test_a_frame_without_layout_names_the_undeclared_version(tmp_path: Path) -> None:
    """The versions of requests are changed to one that has no layout; their responses have none then."""
    capture = packets(KAFKA)
    metadata = b"\x00\x03\x00\x00", b"\x00\x03\x00\x13"
    for number, each in enumerate(capture):
        if tcp(each).payload[4:8] == metadata[0]:
            capture[number] = each._replace(data=each.data.replace(*metadata, 1))
    lines = map(json.loads, assert_same(write(tmp_path / "changed.pcap", capture)))
    reasons = {line["undeclared"] for line in lines if "undeclared" in line}
    assert reasons >= {"metadata v19 is not known", "the request is metadata v19, which is not known"}


@pytest.mark.parametrize("number", [b"\xff\xff\xff\xff", b"\x80\x00\x00\x01"])
def test_negative_correlation_ids_are_the_same(number: bytes, tmp_path: Path) -> None:
    capture = packets(KAFKA)
    at = next(place for place, each in enumerate(capture) if tcp(each).payload[4:8] == b"\x00\x03\x00\x00")
    request = tcp(capture[at])
    for place, begin in ((at, 8), (_answer(capture, at), 4)):
        payload = tcp(capture[place]).payload
        data = capture[place].data.replace(payload[: begin + 4], payload[:begin] + number, 1)
        capture[place] = capture[place]._replace(data=data)
    lines = [json.loads(line) for line in assert_same(write(tmp_path / "negative.pcap", capture))]
    signed = int.from_bytes(number, "big", signed=True)
    assert {line["from"] for line in lines if line["correlation_id"] == signed} == {request.source, request.target}


def _answer(capture: list[Packet], request: int) -> int:
    """The packet that begins with the response to a Kafka request."""
    question = tcp(capture[request])
    for place, each in enumerate(capture[request:], request):
        answer = tcp(each)
        between = answer.source, answer.target
        if between == (question.target, question.source) and answer.payload[4:8] == question.payload[8:12]:
            return place
    raise AssertionError("no response")


@pytest.mark.parametrize("options", [["--protocol", "pulsar"], ["--port", "29101=kafka"]])
def test_a_protocol_may_be_given(options: list[str]) -> None:
    assert_same(KAFKA, *options)


def test_a_large_capture_goes_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def captured(*values: object, **named: object) -> object:
        read.append(1)
        return road_captured(*values, **named)

    road_captured = road.captured
    monkeypatch.setattr(road, "captured", captured)
    assert frames(KAFKA, "auto").stdout
    assert not read
    monkeypatch.setattr(roads, "LEAST_FOR_COLUMNS", 0)
    monkeypatch.setattr(roads, "LEAST_COMPILED", 0)
    assert frames(KAFKA, "auto").stdout
    assert read


@pytest.mark.parametrize(
    "options",
    [
        ["--connection", "1"],
        ["--where", "frame > 3"],
        ["--output", "table"],
        ["--follow", "1"],
        ["--follow", "10.23.45.67:51234>10.1.1.1:50088#0"],
    ],
)
def test_numbers_of_connections_and_frames_are_for_objects(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(road, "captured")
    assert frames(FIXTURES / "pcap" / "jmq4-produce.pcap", "columns", *options).stdout


def test_columns_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    result = frames(FIXTURES / "pcap" / "jmq4-produce.pcap", "columns")
    assert isinstance(result.exception, Misuse)
    assert "needs numba" in str(result.exception)
