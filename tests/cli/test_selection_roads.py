"""Selection options select the same frames and messages on both roads."""

from __future__ import annotations

import functools
import zlib
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("numba")

import wirekit
import wirekit.road.tables as road
from tests.capture.damage import DAMAGES
from tests.capture.second_parser import packets, write
from tests.cli.roads import same_lines
from tests.conftest import FIXTURES
from tests.road.test_overdue import exchanges, send
from tests.road.test_pairing import capture as connection
from wirekit.cli import group, selected_names

CAPTURES = (
    "kafka-0.10.2.2-4-clients.pcapng", "kafka-0.8.2.2-2-produce.pcapng", "pulsar-consume.pcap",
    "pulsar-corrupt_checksum.pcap", "jmq4-consume.pcap", "jmq4-odd.pcap",
)  # fmt: skip
SELECTIONS = (
    ("--api", "fetch*"), ("--api", "METADATA", "--api", "send"), ("--topic", "*"), ("--topic", "no-such"),
    ("--client", "*"), ("--client", "127.0.0.1:*", "--client", "10.*"), ("--client", "demo"), ("--group", "*"),
    ("--group", "no-such"), ("--id", "5", "--id", "6", "--id", str(1 << 80)), ("--slower-than", "1ms"), ("--errors",),
    ("--errors", "--api", "fetch_partition_message"), ("--since", "09:02:09.100", "--until", "09:02:09.600"),
    ("--until", "2021-01-01"), ("--api", "no-such"), ("--topic", "t*", "--errors", "--strict"),
    ("--connection", "127.0.0.1:47908>127.0.0.1:29201#0", "--connection", "127.0.0.1:42704>127.0.0.1:6650#0"),
    ("--connection", "10.23.45.67:51234>10.1.1.1:50088#1"),
)  # fmt: skip
EXPRESSIONS = (
    "direction = 'produced'", "topic = 't-none' AND log_offset % 2 = 0", "date > '2000-01-01' AND connection_id != ''",
    "redeliveries >= 0 OR octet_length(value) > 10", "call_id IS NULL",
)  # fmt: skip
WINDOW = 20_000
"""Bytes: connections reach beyond it."""


def run(command: str, path: Path, which: str, *options: str) -> Result:
    arguments = [command, str(path), "--output", "json", "--road", which, *options]
    return CliRunner().invoke(group, arguments, standalone_mode=False)


def use_windows(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(road, "captured", functools.partial(road.captured, window=size))


@pytest.mark.parametrize("capture", CAPTURES[::2])
@pytest.mark.parametrize("selection", SELECTIONS, ids=" ".join)
def test_frames_are_the_same(selection: tuple[str, ...], capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_windows(monkeypatch, WINDOW)
    same_lines(functools.partial(run, "frames"), FIXTURES / "pcap" / capture, *selection)


@pytest.mark.parametrize("capture", CAPTURES[:1])
@pytest.mark.parametrize("selection", SELECTIONS, ids=" ".join)
def test_messages_are_the_same(selection: tuple[str, ...], capture: str) -> None:
    same_lines(functools.partial(run, "messages"), FIXTURES / "pcap" / capture, *selection)


@pytest.mark.parametrize("capture", CAPTURES)
def test_messages_by_an_expression_are_the_same(capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_windows(monkeypatch, WINDOW)
    path = FIXTURES / "pcap" / capture
    chosen = [same_lines(functools.partial(run, "messages"), path, "--where", each) for each in EXPRESSIONS]
    assert any(chosen)
    assert not chosen[-1]
    same_lines(functools.partial(run, "messages"), path, "--where", EXPRESSIONS[2], "--topic", "t*", "--errors")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", ["frames", "messages"])
def test_damaged_copies_are_the_same(
    command: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(zlib.crc32(f"{command} {damage}".encode()))
    capture = FIXTURES / "pcap" / random.choice(CAPTURES)
    copy = write(tmp_path / "copy.pcap", DAMAGES[damage](packets(capture), random))
    use_windows(monkeypatch, random.choice((5000, WINDOW)))
    for selection in random.sample(SELECTIONS, 2):
        same_lines(functools.partial(run, command), copy, *selection)
    if command == "messages":
        same_lines(functools.partial(run, command), copy, "--where", random.choice(EXPRESSIONS))


def test_a_capture_is_read_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    path = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"
    by_objects = [len(run(command, path, "objects", "--api", "fetch").stdout) for command in ("frames", "messages")]
    monkeypatch.setattr("wirekit.cli.frames._listed", None)
    monkeypatch.setattr("wirekit.cli.messages.numbered", None)
    by_columns = [len(run(command, path, "columns", "--api", "fetch").stdout) for command in ("frames", "messages")]
    assert by_columns == by_objects
    assert all(by_columns)


def test_names_are_counted_alike_if_nothing_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the most frequent are listed: a name counts once for each frame that has it, or whose request has it."""
    path = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng"
    selection = ("--api", "none", "--topic", "none", "--group", "none", "--client", "none")
    for most in (1, 2, 3):
        monkeypatch.setattr(selected_names, "MOST_NAMES", most)
        objects, columns = (run("frames", path, which, *selection).stderr for which in ("objects", "columns"))
        assert columns == objects
        assert f"{'more' if most > 1 else 'and'}" in objects


def test_names_are_known_after_a_connection_has_changed_roads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects read the calls around a receipt that answers no request, and columns those before and after it."""
    producer = {"producer_id": 1, "request_id": 7, "topic": "persistent://a/b/orders"}
    success = {"request_id": 7, "producer_name": "p"}
    opened = (
        {"command": {"type": "PRODUCER", "producer": producer}},
        {"command": {"type": "PRODUCER_SUCCESS", "producer_success": success}},
    )
    connect, *calls = exchanges("pulsar")
    pieces = [*enumerate(connect), *enumerate(wirekit.encode("pulsar.frame", each) for each in opened)]
    pieces += [piece for each in calls for piece in enumerate(each)]
    pieces.insert(len(pieces) // 2, (1, send(1 << 20).response))
    path = connection(tmp_path / "copy.pcap", *pieces)
    for window in (1 << 26, 20_000, 4000):
        use_windows(monkeypatch, window)
        assert len(same_lines(functools.partial(run, "frames"), path, "--topic", "*/orders")) == 2 * len(calls) + 3
        assert not same_lines(functools.partial(run, "frames"), path, "--errors")
