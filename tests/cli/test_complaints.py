"""What is said about bytes that are not decoded: a line for the first piece, and one for all that follow it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("numba")

from tests.road.test_pairing import capture
from tests.road.test_snap_length import snapped
from wirekit.cli import group
from wirekit.cli.complaints import MOST_LINES

UNKNOWN = "no known protocol fits"
FIRST, SECOND = "10.0.0.1:40000 > 10.0.0.2:7000", "10.0.0.2:7000 > 10.0.0.1:40000"


def complaints(*arguments: str | Path) -> list[str]:
    """The lines on standard error, without the name of the capture, of a command that ends with status 1."""
    result = CliRunner().invoke(group, [str(each) for each in arguments], standalone_mode=False)
    assert result.return_value == 1
    return [
        line.removeprefix("wirekit: ").removeprefix(f"{arguments[-1]}: ").strip() for line in result.stderr.splitlines()
    ]


@pytest.mark.parametrize("road", ["objects", "columns"])
@pytest.mark.parametrize("command", ["frames", "messages"])
def test_pieces_that_follow_each_other_have_two_lines(command: str, road: str, tmp_path: Path) -> None:
    pieces = [(0, b"GET / HTTP/1.1\r\n"), (1, b"HTTP/1.1 200 OK\r\n"), *[(0, b"Accept: *\r\n")] * 5, (1, b"\r\n")]
    path = capture(tmp_path / "other.pcap", *pieces)
    lines = complaints(command, "--output", "json", "--road", road, path)
    assert [line.partition(" at byte ")[0] for line in lines] == [FIRST, SECOND, FIRST, SECOND]
    texts = [line.partition(" at byte ")[2] for line in lines]
    assert texts[0].startswith(f"0 of the stream: 16 bytes not decoded: {UNKNOWN}")
    assert texts[1].startswith(f"0 of the stream: 17 bytes not decoded: {UNKNOWN}")
    assert texts[2].startswith(f"16 of the stream: 55 more bytes in 5 pieces not decoded: {UNKNOWN}")
    assert texts[3].startswith(f"17 of the stream: 2 more bytes not decoded: {UNKNOWN}")


def test_other_reasons_have_lines_of_their_own(tmp_path: Path) -> None:
    request = bytes.fromhex("0000000b 0010 0000 00000007 0001 63")
    answers = [(1, bytes.fromhex(f"0000000a 0000000{number} 000000000000")) for number in (3, 4)]
    lines = complaints("inspect", "--connections", capture(tmp_path / "unasked.pcap", (0, request), *answers))
    assert len(lines) == 3, lines
    assert all(
        f"no request has correlation id {number}" in line for number, line in zip((3, 4), lines[1:], strict=True)
    )


@pytest.mark.parametrize("command", ["frames", "messages"])
def test_a_frame_and_the_missing_bytes_that_cut_it_have_one_line(command: str, tmp_path: Path) -> None:
    path = snapped("kafka-0.8.2.2-2-produce.pcapng", 128, tmp_path)
    lines = complaints(command, "--output", "json", path)
    cut = [line for line in lines if "cut by missing bytes (snap length), " in line]
    assert len(cut) == MOST_LINES
    assert f"{54 - MOST_LINES} lines left out: cut by missing bytes (snap length)" in lines
    assert not any("missing: snap length" in line for line in lines)


@pytest.mark.parametrize("road", ["objects", "columns"])
def test_many_problems_of_one_kind_are_counted(road: str, tmp_path: Path) -> None:
    answers = [(1, bytes.fromhex(f"0000000a {number:08x} 000000000000")) for number in range(100, 150)]
    request = bytes.fromhex("0000000b 0010 0000 00000007 0001 63")
    lines = complaints("messages", "--road", road, capture(tmp_path / "unasked.pcap", (0, request), *answers))
    assert sum("no request has correlation id 1" in line for line in lines) == MOST_LINES
    assert lines[-1] == f"{50 - MOST_LINES} lines left out: no request has correlation id N"


@pytest.mark.parametrize("options", [("--road", "objects"), ("--road", "columns"), ("--output", "table")])
@pytest.mark.parametrize("chosen", [("--protocol", "kafka"), ("--port", "50088=pulsar")])
def test_a_chosen_protocol_that_does_not_fit_names_the_one_that_does(
    chosen: tuple[str, str], options: tuple[str, str]
) -> None:
    lines = complaints("frames", *chosen, *options, "fixtures/pcap/jmq4-consume.pcap")
    named = [line for line in lines if "begins with a frame of" in line]
    protocol = chosen[1].rpartition("=")[2]
    expected = f"connection 10.23.45.67:51234>10.1.1.1:50088#0 begins with a frame of joyqueue, not of {protocol}"
    assert named == [expected]


def test_no_protocol_is_named_for_bytes_of_none(tmp_path: Path) -> None:
    path = capture(tmp_path / "other.pcap", (0, b"GET / HTTP/1.1\r\n"), (1, b"HTTP/1.1 200 OK\r\n"))
    assert not any("begins with a frame" in line for line in complaints("frames", "--protocol", "kafka", path))
