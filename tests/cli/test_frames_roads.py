"""``wirekit frames`` prints the same lines on both roads, and says the same of what did not decode."""

from __future__ import annotations

import functools
import gc
import json
import subprocess
import sys
import weakref
import zlib
from pathlib import Path
from random import Random
from typing import Any

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
from wirekit.cli.frame_numbers import NumberedFrames, NumberedWindows
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


def table(path: Path, which: str, *options: str) -> Result:
    return frames(path, which, "--output", "table", *options)


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


@pytest.mark.parametrize("command", ["frames", "messages"])
def test_a_file_as_standard_input_is_read_by_columns(command: str) -> None:
    code = "import wirekit.cli.captures as captures; captures.follow = None; from wirekit.cli import main; main()"
    arguments = [sys.executable, "-c", code, command, "--output", "json", "--road", "columns", "-"]
    path = FIXTURES / "pcap" / "pulsar-consume.pcap"
    with path.open("rb") as file:
        completed = subprocess.run(arguments, stdin=file, capture_output=True, text=True, check=False)
    result = CliRunner().invoke(group, [command, str(path), "--output", "json"], standalone_mode=False)
    assert sorted(completed.stdout.splitlines()) == sorted(result.stdout.replace(str(path), "-").splitlines())
    assert (completed.returncode, completed.stderr) == (result.return_value, result.stderr.replace(str(path), "-"))


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
    same_lines(table, copy)
    use_windows(monkeypatch, random.choice((700, 5000, WINDOW)))
    assert_same(copy, objects=objects)


def test_lines_of_hostile_captures_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_windows(monkeypatch, WINDOW)
    path, some = tmp_path / "hostile.pcap", 0
    for seed in range(40):
        hostile(path, seed)
        if assert_same(path, "--allow-cut"):
            some += 1
            same_lines(table, path, "--allow-cut")
    assert some >= 2


@pytest.mark.parametrize("capture", CAPTURES)
def test_tables_are_the_same(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers of frames and connections as well, although windows end between requests and their responses."""
    path = FIXTURES / "pcap" / capture
    objects = table(path, "objects")
    assert table(path, "columns").stdout == objects.stdout
    use_windows(monkeypatch, 4000)
    same_lines(table, path, objects=objects)


@pytest.mark.parametrize(
    "options", [["--errors"], ["--topic", "t-gzip", "--client", "rdkafka"], ["--where", "messages > 1"]]
)
def test_tables_of_selected_frames_are_the_same(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    use_windows(monkeypatch, 4000)
    assert same_lines(table, KAFKA, *options)


@pytest.mark.parametrize(
    ("damage", "seed"),
    [
        ("joined_late", 101),  # the first response is whole, but only the next request shows the protocol
        ("flipped", 210),  # the version of the first request is not known, so the response shows the protocol
    ],
)
def test_numbers_of_a_connection_that_is_recognised_late_are_the_same(damage: str, seed: int, tmp_path: Path) -> None:
    """Other connections have frames before the protocol is known."""
    capture = DAMAGES[damage](packets(KAFKA), Random(f"{KAFKA.name} {damage} {seed}"))
    same_lines(table, write(tmp_path / "late.pcap", capture))


def test_each_frame_of_a_long_capture_has_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is reset inside a frame, and the capture goes on for an hour."""
    capture = packets(KAFKA)
    hour = [each._replace(time_us=each.time_us + 3_600_000_000) for each in capture]
    use_windows(monkeypatch, 4000)
    lines = table(write(tmp_path / "long.pcap", [*capture, *hour]), "columns").stdout.splitlines()
    numbers = [int(line.split()[0]) for line in lines if "→" in line or "←" in line]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    cut = [place for place, line in enumerate(lines) if "ended inside a frame" in line]
    assert cut[0] < len(lines) * 3 // 4


def test_numbers_at_the_end_of_a_capture_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection was reset in an earlier window, and bytes of another one have waited for earlier ones."""
    capture = DAMAGES["ended_early"](packets(KAFKA), Random(f"{KAFKA.name} ended_early 201"))
    use_windows(monkeypatch, 5000)
    same_lines(table, write(tmp_path / "early.pcap", capture))


def test_windows_are_freed_without_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their arrays are large and few, so the collector would run too late."""
    seen: list[weakref.ref[NumberedFrames]] = []
    alive: list[int] = []
    made, end = NumberedFrames.__init__, NumberedWindows.end

    def init(self: NumberedFrames, *arguments: Any) -> None:
        made(self, *arguments)
        seen.append(weakref.ref(self))

    def ended(self: NumberedWindows, size: int = 0) -> None:
        end(self, size)
        alive.append(sum(each() is not None for each in seen))

    monkeypatch.setattr(NumberedFrames, "__init__", init)
    monkeypatch.setattr(NumberedWindows, "end", ended)
    use_windows(monkeypatch, 4000)
    gc.collect()
    gc.disable()
    try:
        assert table(KAFKA, "columns").stdout
    finally:
        gc.enable()
    assert len(seen) > 5
    assert max(alive) <= 2


@pytest.mark.parametrize("capture", DAMAGED)
def test_a_frame_has_the_same_number(capture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its request, or with its response, which may be in a later window."""
    path = write(tmp_path / "copy.pcap", DAMAGES["dropped"](packets(FIXTURES / "pcap" / capture), Random(1)))
    use_windows(monkeypatch, 16_000)
    count = len(frames(path, "objects").stdout.splitlines())
    for number in (1, 2, *range(3, count, count // 20 + 1), count):
        results = [frames(path, road, "--frame", str(number), "--output", "hexdump") for road in ("objects", "columns")]
        assert results[0].stdout == results[1].stdout != ""
        assert results[0].stderr == results[1].stderr
        assert results[0].return_value == results[1].return_value
    refused = [str(frames(path, road, "--frame", str(count + 1)).exception) for road in ("objects", "columns")]
    assert refused[0] == refused[1]
    assert f"it has {count} frames" in refused[0]


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("option", ["--follow", "--connection"])
def test_a_connection_has_the_same_number(option: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_windows(monkeypatch, 16_000)
    names = set()
    for number in (1, 2, 24, 38):
        names.add(tuple(same_lines(frames, KAFKA, option, str(number), "--output", output)))
    assert len(names) == 4
    same_lines(frames, KAFKA, option, "9999", "--output", output)


def test_a_cut_capture_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcapng"
    path.write_bytes(KAFKA.read_bytes()[:-10])
    for number in ("3", "9999"):
        same_lines(frames, path, "--connection", number)


def test_a_connection_with_missing_bytes_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = packets(KAFKA)
    use_windows(monkeypatch, 16_000)
    lost = [place for place, each in enumerate(capture) if tcp(each).payload][100::40]
    path = write(tmp_path / "lost.pcap", [each for place, each in enumerate(capture) if place not in lost])
    for number, gaps in {1: 1, 2: 4, 3: 0, 12: 1, 24: 1, 25: 0, 28: 1, 30: 1}.items():
        lines = same_lines(frames, path, "--output", "table", "--follow", str(number))
        assert sum("✗ missing" in line for line in lines) == gaps


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


def test_expressions_over_numbers_are_for_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(road, "captured")
    assert frames(FIXTURES / "pcap" / "jmq4-produce.pcap", "columns", "--where", "frame > 3").stdout


def test_columns_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    result = frames(FIXTURES / "pcap" / "jmq4-produce.pcap", "columns")
    assert isinstance(result.exception, Misuse)
    assert "needs numba" in str(result.exception)
