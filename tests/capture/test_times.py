"""Capture times are data: any that a file can tell has an end, a place in the tables, and a line on a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import wirekit
from tests.net.building import block, enhanced, interface, ipv4, option, packet, section_header, tcp
from wirekit.capture.files import open_capture, segments
from wirekit.capture.follow import follow
from wirekit.capture.tcp import Connections, Segment
from wirekit.cli import group
from wirekit.conversation import Frame
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.inputs import Input, Job, find_inputs
from wirekit.pipeline.packets import packet_batches

REQUEST = wirekit.encode("kafka.list_groups.request.v0", {"correlation_id": 7, "client_id": "me", "body": {}})
UNITS = st.integers(0, (1 << 64) - 1) | st.sampled_from([0, 1, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, (1 << 64) - 1])
SHIFTS = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, -(1 << 63), (1 << 63) - 1])


def capture(units: list[int], exponent: int, binary: bool, shift: int) -> bytes:
    """A pcapng file: one connection, joined in the middle, a request a packet."""
    resolution = {"binary": binary, "exponent": exponent}
    parts = [section_header("le"), interface("le", 1, option(9, resolution), option(14, shift), option(0, ""))]
    for number, time in enumerate(units):
        segment = tcp(REQUEST, sequence_number=1 + number * len(REQUEST))
        data = packet("net.ethernet", {"payload": ipv4(segment)})
        parts.append(enhanced("le", data, time))
    return b"".join(parts)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("times")


@given(st.lists(UNITS, min_size=1, max_size=6), st.integers(0, 127), st.booleans(), SHIFTS)
def test_any_time_of_any_unit_and_offset_has_an_end(
    directory: Path, units: list[int], exponent: int, binary: bool, shift: int
) -> None:
    path = directory / "a.pcapng"
    path.write_bytes(capture(sorted(units), exponent, binary, shift))
    with open_capture(path) as capture_file:
        frames = [item for _, item in follow(segments(capture_file)) if isinstance(item, Frame)]
    assert b"".join(frame.data for frame in frames) == REQUEST * len(units)

    packets = pa.Table.from_batches(packet_batches(find_inputs([path])))
    packets = packets.sort_by([("ts_us", "ascending"), ("position", "ascending")])
    job = Job((Input(0, str(path), "", 0, 0),))
    rows = [row for name, batch in flow_batches(packets.to_batches(), job) if name == "frames" for row in _times(batch)]
    assert len(rows) == len(units)
    for frame in frames:
        assert frame.time_us is not None
        if abs(frame.time_us) < 1 << 55:
            assert frame.time_us in rows
        elif abs(frame.time_us) > 1 << 60:
            assert None in rows


def _times(batch: pa.RecordBatch) -> list[Any]:
    return list(batch["time"].cast(pa.int64()).to_pylist())


@pytest.mark.parametrize("command", ["frames", "messages", "inspect"])
@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("shift", [0, -(1 << 63), (1 << 63) - 1])
def test_the_command_line_ends(tmp_path: Path, command: str, output: str, shift: int) -> None:
    path = tmp_path / "far.pcapng"
    path.write_bytes(capture([5, (1 << 64) - 1, 6], 0, False, shift))
    result = CliRunner().invoke(group, [command, str(path), "--output", output])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if command == "frames" and output == "json":
        times = [json.loads(line)["time"] for line in result.stdout.splitlines()]
        assert times == [pytest.approx(shift + units) for units in (5, (1 << 64) - 1, 6)]
    elif command == "frames":
        assert result.stdout.count("list_groups") == 3


def test_packets_without_a_time_have_none_anywhere(tmp_path: Path, fixtures: Path) -> None:
    """Simple packets tell no time; those behind a packet with a time have its time."""
    with open_capture(str(fixtures / "pcap" / "pulsar-batch.pcap")) as capture_file:
        packets = [each.data for each in capture_file.packets()]
    simple = [block("le", "SIMPLE_PACKET", {"data": data.hex()}) for data in packets]
    path = tmp_path / "simple.pcapng"
    path.write_bytes(b"".join([section_header("le"), interface("le"), *simple]))
    frames = _lines("frames", str(path))
    assert {(line["time"], line["latency_ms"]) for line in frames} == {(None, None)}
    (summary,) = (counts for line in _lines("inspect", str(path)) for counts in line.values())
    assert (summary["segments"], summary["first_us"], summary["last_us"]) == (len(packets), None, None)
    (connection,) = _lines("inspect", "--connections", str(path))
    assert (connection["opened"], connection["closed"]) == (None, None)
    for table, columns in {"frames": "date time", "calls": "request_time latency_us", "connections": "opened"}.items():
        rows = wirekit.read(path, table, columns=columns.split()).read_all()
        assert all(column.null_count == len(rows) > 0 for column in rows.columns)
    assert "1970" not in CliRunner().invoke(group, ["frames", str(path), "--output", "table"]).stdout
    timed = enhanced("le", packets[0], 1_600_000_000_000_000)
    path.write_bytes(b"".join([section_header("le"), interface("le"), timed, *simple[1:]]))
    assert {line["time"] for line in _lines("frames", str(path))} == {1_600_000_000}


def _lines(*arguments: str) -> list[Any]:
    return [json.loads(line) for line in CliRunner().invoke(group, list(arguments)).stdout.splitlines()]


@given(st.lists(st.integers(-(1 << 90), 1 << 90), min_size=1, max_size=8))
def test_a_state_goes_on_at_any_time(times: list[int]) -> None:
    """What is carried on through JSON is what one go gives."""
    whole, carried = Connections(), Connections()
    expected, given_back = [], []
    for number, time_us in enumerate(times):
        each = Segment(time_us, "10.0.0.1:4000", "10.0.0.2:9092", 1 + 9 * number, 0, 16, b"x", number, 0, 1)
        expected += whole.feed(each)
        given_back += carried.feed(each)
        carried = Connections.from_state(json.loads(json.dumps(carried.state())))
    assert [*given_back, *carried.finish()] == [*expected, *whole.finish()]
