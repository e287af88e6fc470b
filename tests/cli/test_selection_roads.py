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
from wirekit.cli.where import MOST_PLACES

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
OVER_FRAMES = tuple(
    ("--where", each)
    for each in (
        "latency_us > 1000 AND topic LIKE '%t-%'", "error IS NOT NULL AND role = 'response'", "messages > 0",
        "group_id != '' OR client IS NULL", "topic IS NULL AND error IS NULL", "partition >= 0 AND checks_bad = 0",
        "side = 'client' AND client_port > 4000 AND schema LIKE 'kafka.%'", "position % 3 = 1 AND correlation_id > 2",
    )
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


@pytest.mark.parametrize("selection", OVER_FRAMES, ids=" ".join)
def test_frames_by_an_expression_are_the_same(selection: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    use_windows(monkeypatch, WINDOW)
    paths = [FIXTURES / "pcap" / capture for capture in CAPTURES[::2]]
    chosen = [same_lines(functools.partial(run, "frames"), path, *selection) for path in paths]
    assert any(chosen)


def test_an_expression_besides_other_options() -> None:
    path = FIXTURES / "pcap" / CAPTURES[0]
    for expression, expected in (("topic IS NOT NULL", True), ("topic IS NULL", False)):
        lines = same_lines(functools.partial(run, "frames"), path, "--where", expression, "--topic", "t*", "--errors")
        assert bool(lines) is expected


def test_an_expression_that_is_wrong_is_reported_alike() -> None:
    path = FIXTURES / "pcap" / "jmq4-consume.pcap"
    for expression in ("no_such > 0", "length >", "length = 'x'", "_row < 3"):
        objects, columns = (run("frames", path, which, "--where", expression) for which in ("objects", "columns"))
        assert objects.exception is not None
        assert str(columns.exception) == str(objects.exception)


@pytest.mark.parametrize(
    ("expression", "frames"),
    [
        ("topic = 't0' AND partition IS NULL", 2),
        (f"topic = 't{MOST_PLACES - 1}'", 2),
        (f"topic = 't{MOST_PLACES}'", 0),
        ("error IS NOT NULL", 1),
        ("topic = 't1' AND error = 'LEADER_NOT_AVAILABLE'", 1),
        ("topic = 't2' AND error = 'LEADER_NOT_AVAILABLE'", 0),
    ],
)
def test_places_and_errors_of_a_frame(expression: str, frames: int, tmp_path: Path) -> None:
    """The first topics and partitions are evaluated; an error belongs to its topic."""
    names = [f"t{number}" for number in range(MOST_PLACES + 1)]
    topics = [
        {"topic_error_code": 5 * (number == 1), "topic": name, "partition_metadata": []}
        for number, name in enumerate(names)
    ]
    request = {"correlation_id": 1, "client_id": "c", "body": {"topics": names}}
    response = {"correlation_id": 1, "body": {"brokers": [], "topic_metadata": topics}}
    path = connection(
        tmp_path / "many.pcap",
        (0, wirekit.encode("kafka.metadata.request.v0", request)),
        (1, wirekit.encode("kafka.metadata.response.v0", response)),
    )
    assert len(same_lines(functools.partial(run, "frames"), path, "--where", expression)) == frames


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
    where = random.choice(OVER_FRAMES if command == "frames" else [("--where", each) for each in EXPRESSIONS])
    same_lines(functools.partial(run, command), copy, *where)


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


@pytest.mark.parametrize(
    ("command", "options", "reads"),
    [
        ("frames", ("--follow", "9999"), 1),
        ("frames", ("--follow", "10.0.0.1:1>10.0.0.2:2#0"), 1),
        ("frames", ("--follow", "9999", "--topic", "t-*"), 1),
        ("frames", ("--connection", "9999", "--connection", "0", "--topic", "t-*"), 1),
        ("frames", ("--connection", "9999", "--connection", "1"), 2),
        ("messages", ("--connection", "9999"), 1),
        ("inspect", ("--connection", "9999"), 2),
    ],
)
def test_objects_do_not_look_for_a_connection_that_columns_did_not_find(
    command: str, options: tuple[str, ...], reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, count = FIXTURES / "pcap" / "kafka-0.10.2.2-4-clients.pcapng", 0
    captured = road.captured

    def counted(*values: object, **named: object) -> object:
        nonlocal count
        count += 1
        return captured(*values, **named)  # type: ignore[arg-type]

    objects = run(command, path, "objects", *options)
    monkeypatch.setattr(road, "captured", counted)
    if command != "inspect":  # it adds facts that are in no table
        for name in ("frames._listed", "messages.numbered"):
            monkeypatch.setattr(f"wirekit.cli.{name}", None)
    columns = run(command, path, "columns", *options)
    assert (columns.stderr, columns.return_value) == (objects.stderr, objects.return_value)
    assert count == reads


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
