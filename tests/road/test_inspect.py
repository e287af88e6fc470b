"""The law of two roads for ``wirekit inspect``: the same counts by objects and by columns."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

pytest.importorskip("numba")

import wirekit
from tests.capture.damage import DAMAGES
from tests.capture.second_parser import Packet, packets, write
from tests.cli.test_selection_roads import OVER_FRAMES, SELECTIONS
from tests.conftest import FIXTURES
from tests.road.kafka_connections import list_groups
from tests.road.law import CAPTURES, EXHAUSTIVE
from tests.road.test_long_names import produced
from tests.road.test_pairing import capture
from wirekit.cli import group, inspect, overview_columns, rules
from wirekit.pipeline import roads
from wirekit.pipeline.flows import Writer
from wirekit.road import tables

CAPTURED = tables.captured
FEW = [
    FIXTURES / "pcap" / name for name in ("jmq4-consume.pcap", "pulsar-consume.pcap", "kafka-0.10.2.2-4-clients.pcapng")
]


def inspected(*arguments: str | Path, road: str) -> tuple[Any, ...]:
    result = CliRunner().invoke(group, ["inspect", *map(str, arguments), "--road", road], standalone_mode=False)
    return result.return_value, result.stdout, result.stderr


def assert_same(*arguments: str | Path, objects: str = "objects") -> None:
    assert inspected(*arguments, road="columns") == inspected(*arguments, road=objects)


def listed(path: Path, road: str) -> tuple[Any, ...]:
    """The violations, in any order, and messages."""
    status, out, err = inspected("--rules", path, "--output", "json", road=road)
    return status, sorted(out.splitlines()), err


@pytest.fixture
def rode(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each capture that columns were asked to count, whether they did."""
    counted: list[bool] = []
    read = overview_columns.OverviewWindows.read

    def count(windows: overview_columns.OverviewWindows) -> bool:
        counted.append(read(windows))
        return counted[-1]

    monkeypatch.setattr(overview_columns.OverviewWindows, "read", count)
    return counted


@pytest.mark.parametrize("path", CAPTURES if EXHAUSTIVE else FEW, ids=lambda path: path.stem)
def test_captures(path: Path, rode: list[bool]) -> None:
    assert_same(path, "--output", "json")
    assert rode == [True]


def test_a_connection_by_its_number(rode: list[bool]) -> None:
    for number in ("1", "24", "38"):
        assert_same(FEW[2], "--output", "json", "--connection", number)
    assert rode == [True, True, True]
    assert_same(FEW[2], "--output", "json", "--connection", "9999")


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_copies(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rode: list[bool]) -> None:
    """In windows of some packets; with violations, and as large captures without them."""
    for path in CAPTURES if EXHAUSTIVE else FEW[1:2]:
        random = Random(f"{path.stem} {damage}")
        copy = write(tmp_path / "copy.pcap", DAMAGES[damage](packets(path), random))
        monkeypatch.setattr(tables, "captured", partial(CAPTURED, window=random.choice((700, 5000, 20_000))))
        assert_same(copy, "--output", "json")
        assert_same(copy, "--output", "json", *random.choice([*SELECTIONS, *OVER_FRAMES]))
        assert listed(copy, road="columns") == listed(copy, road="objects")
        with monkeypatch.context() as patch:  # as where nothing is compiled
            patch.setattr(inspect, "by_columns", lambda _, road: road == "columns")
            patch.setattr(inspect, "LEAST_FOR_COLUMNS", 0)
            assert_same(copy, "--output", "json", objects="auto")
    assert all(rode)


@pytest.mark.parametrize("name", ["jmq4-versions.pcap", "pulsar-consume.pcap", "kafka-0.9.0.1-2-produce.pcapng"])
def test_violations_are_listed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = FIXTURES / "pcap" / name
    by_objects = listed(path, road="objects")
    monkeypatch.setattr(rules, "FollowedCapture", None)
    for window in (1000, 1 << 26):
        monkeypatch.setattr(tables, "captured", partial(CAPTURED, window=window))
        assert listed(path, road="columns") == by_objects
    assert len(by_objects[1]) == (4 if "jmq4" in name else 0)


def command(kind: str, field: str, **fields: Any) -> bytes:
    return wirekit.encode("pulsar.frame", {"command": {"type": kind, field: fields}})


def test_a_request_without_response_breaks_no_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Writer, "calls_of", None)  # which objects need
    produce = {"correlation_id": 5, "client_id": "c", "body": {"acks": 0, "timeout": 1, "topic_data": []}}
    silent = 0, wirekit.encode("kafka.produce.request.v0", produce)
    path = capture(tmp_path / "silent.pcap", silent, *list_groups(1))
    (about,) = json.loads(inspected(path, "--output", "json", road="columns")[1]).values()
    assert (about["quarantine"], about["breaches"]) == ({}, [])


def test_a_request_id_that_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns read the first request, objects the second."""
    request = 0, command("GET_TOPICS_OF_NAMESPACE", "getTopicsOfNamespace", request_id=1, namespace="a/b")
    path = capture(
        tmp_path / "twice.pcap",
        (0, command("CONNECT", "connect", client_version="c", protocol_version=12)),
        (1, command("CONNECTED", "connected", server_version="s", protocol_version=12)),
        request,
        request,
    )
    for window in (100, 1 << 26):
        monkeypatch.setattr(tables, "captured", partial(CAPTURED, window=window))
        assert_same(path, "--output", "json")
    (about,) = json.loads(inspected(path, "--output", "json", road="columns")[1]).values()
    assert [each["rule"] for each in about["breaches"]] == ["request_id_in_use"]


def test_objects_count_all_of_a_large_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = inspected(FEW[0], "--output", "json", road="objects")
    monkeypatch.setattr(inspect, "LEAST_FOR_COLUMNS", 0)
    assert inspected(FEW[0], "--output", "json", road="objects") == expected
    assert inspected(FEW[0], "--output", "json", road="columns") != expected


def test_packets_out_of_the_order_of_time(tmp_path: Path, rode: list[bool]) -> None:
    """They are followed in the order of time."""
    copy = write(tmp_path / "copy.pcap", DAMAGES["late"](packets(FEW[1]), Random(1)))
    assert_same(copy, "--output", "json")
    assert rode == [True]


@pytest.mark.parametrize("road", ["columns", "objects"])
def test_a_pipe_counts_as_a_file_of_the_same_bytes(road: str, tmp_path: Path, rode: list[bool]) -> None:
    """In the order of time, too."""
    copy = write(tmp_path / "copy.pcap", DAMAGES["late"](packets(FEW[1]), Random(1)))
    status, out, err = inspected(copy, "--output", "json", road=road)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        pool.submit(pipe.write_bytes, copy.read_bytes())
        assert inspected(pipe, "--output", "json", road=road) == (status, out.replace(str(copy), str(pipe)), err)
    assert rode == [True, True][: 2 * (road == "columns")]


@pytest.mark.parametrize("options", [[], ["--report", "report.html"]], ids=" ".join)
def test_a_pipe_that_cannot_be_copied(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other captures are counted."""

    def copy(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("shutil.copyfileobj", copy)
    alone = inspected(FEW[0], "--output", "json", road="auto")
    os.mkfifo("pipe")
    with ThreadPoolExecutor() as pool:
        pool.submit(Path("pipe").write_bytes, b"")
        status, out, _ = inspected("pipe", FEW[0], "--output", "json", *options, road="auto")
    counted = json.loads(out)
    why = f"No space left on device for a copy in {tempfile.gettempdir()}; see TMPDIR"
    assert (status, counted.pop("pipe")["unreadable"]) == (1, why)
    assert counted == json.loads(alone[1])


def outputs(path: Path, road: str, *copies: list[Packet]) -> list[tuple[Any, ...]]:
    """The status, messages and lines of each command for copies of a capture."""
    outputs_of_roads = []
    for copy in copies:
        write(path, copy)
        lines: list[Any] = []
        for command in ("inspect", "frames", "messages"):
            arguments = [command, str(path), "--output", "json", "--road", road]
            result = CliRunner().invoke(group, arguments, standalone_mode=False)
            lines += [result.return_value, sorted(result.stderr.splitlines()), result.stdout]
        outputs_of_roads.append(tuple(lines))
    return outputs_of_roads


@pytest.mark.parametrize("road", ["objects", "columns"])
def test_packets_that_were_written_late(road: str, tmp_path: Path) -> None:
    """Each request is behind its response in the file, if the response took less than 20 ms."""
    whole = packets(FEW[2])
    first, second = outputs(tmp_path / "copy.pcap", road, whole, DAMAGES["late"](whole, Random(1)))
    assert first == second


def test_a_clock_that_is_set_back(tmp_path: Path, rode: list[bool]) -> None:
    """The packets behind the step are followed in the order of the file, and none of their bytes is left out."""
    whole = packets(FEW[2])
    copy = [each._replace(time_us=each.time_us - (place > 600) * 7_000_000) for place, each in enumerate(whole)]
    by_objects = [outputs(tmp_path / "copy.pcap", "objects", packets)[0] for packets in (whole, copy)]
    assert by_objects[0][5].count("\n") == by_objects[1][5].count("\n") == 386
    assert outputs(tmp_path / "copy.pcap", "columns", copy) == by_objects[1:]
    assert rode == [False]


def test_packets_that_are_cut_inside_a_header(tmp_path: Path, rode: list[bool]) -> None:
    """Each is undecoded, and all are one kind of reason."""
    copy = write(tmp_path / "copy.pcap", [each._replace(data=each.data[:50]) for each in packets(FEW[0])])
    assert_same(copy, "--output", "json")
    assert rode == [True]
    status, output, _ = inspected(copy, "--output", "json", road="objects")
    (about,) = json.loads(output).values()
    (reason,) = about["quarantine"]
    assert (status, reason.partition(":")[0]) == (1, "cut packet")
    assert about["quarantine"][reason]["pieces"] == about["skipped"]["cut"] == len(packets(FEW[0]))


def test_files_of_a_rotation_and_other_captures(tmp_path: Path, rode: list[bool]) -> None:
    whole = packets(FEW[1])
    cut = [whole[:20], whole[20:70], whole[70:]]
    files = [write(tmp_path / f"part.pcap{number}", part) for number, part in enumerate(cut)]
    assert_same(*files, FEW[0], "--output", "json")
    assert_same(*files, FEW[0], "--separate", "--output", "text")
    assert rode == [True] * (2 + 4)


def test_a_file_that_is_cut(tmp_path: Path, rode: list[bool]) -> None:
    """Its end is among what is not decoded, by bytes and reason."""
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(FEW[0].read_bytes()[:-10])
    assert_same(cut, "--output", "json")
    assert rode == [True]
    (about,) = json.loads(inspected(cut, "--output", "json", road="columns")[1]).values()
    assert [each["pieces"] for each in about["quarantine"].values()] == [1]


@pytest.mark.parametrize("path", CAPTURES if EXHAUSTIVE else FEW, ids=lambda path: path.stem)
def test_selected_frames(path: Path, monkeypatch: pytest.MonkeyPatch, rode: list[bool]) -> None:
    """Their calls, messages and connections are counted, in windows that connections reach beyond."""
    monkeypatch.setattr(tables, "captured", partial(CAPTURED, window=20_000))
    every = 1 if EXHAUSTIVE else len(FEW)
    for selection in [*SELECTIONS, *OVER_FRAMES][FEW.index(path) if path in FEW else 0 :: every]:
        assert_same(path, "--output", "json", *selection)
    assert all(rode)


def test_a_large_capture_of_which_frames_are_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules are not checked on either road."""
    monkeypatch.setattr(inspect, "LEAST_FOR_COLUMNS", 0)
    summaries = [
        json.loads(inspected(FEW[2], "--api", "fetch", "--output", "json", road=road)[1])[str(FEW[2])]
        for road in ("objects", "columns")
    ]
    assert [each["breaches"] for each in summaries] == [[], []]
    assert all(slow["frame"] for slow in summaries[1]["slowest"])
    assert summaries[0] == summaries[1]
    assert "rules" not in inspected(FEW[2], "--api", "fetch", "--output", "text", road="columns")[1]


def test_objects_count_damaged_files_numbers_and_pages(tmp_path: Path, rode: list[bool]) -> None:
    """A file that is damaged or no capture, frames that are selected by number, and frames for a page."""
    damaged, other = tmp_path / "damaged.pcapng", tmp_path / "other.pcap"
    data = FEW[2].read_bytes()
    middle = len(data) // 2
    damaged.write_bytes(data[:middle] + bytes([0xFF]) * 400 + data[middle + 400 :])
    other.write_bytes(b"no capture")
    for path in (damaged, other):
        assert_same(path, "--output", "json")
    assert rode == [False, False]
    assert_same(FEW[0], "--where", "frame > 10", "--output", "json")
    assert_same(FEW[0], "--report", tmp_path / "page.html", "--output", "json")
    assert len(rode) == 2


def test_protocols_that_are_given() -> None:
    assert_same(FEW[2], "--port", "29101=kafka", "--output", "json")
    assert_same(FEW[2], "--protocol", "pulsar", "--output", "json")


@pytest.mark.parametrize("least", [0, 1 << 40])
def test_large_captures_take_columns(least: int, monkeypatch: pytest.MonkeyPatch, rode: list[bool]) -> None:
    monkeypatch.setattr(roads, "LEAST_FOR_COLUMNS", 1 << 40)
    monkeypatch.setattr(roads, "LEAST_COMPILED", least)
    inspected(FEW[0], road="auto")
    assert rode == [True] * (not least)


def test_a_call_whose_topics_come_in_two_batches_counts_once() -> None:
    overview = overview_columns.Overview("a.pcap")
    counts = overview_columns._Counts(overview)
    for calls in (["1", "2", "2"], ["8", "9"], ["2", "2", "3"]):
        counts.call_topics(pa.table({"call_id": calls, "topic": ["t"] * len(calls)}))
    assert overview.to_json()["topics"][0]["calls"] == 5


def test_empty_names_are_names(tmp_path: Path) -> None:
    """As the tables have them; only a topic that is not in the capture is unknown."""
    offsets = {"group_id": "", "topics": [{"topic": "", "partitions": [{"partition": 0}]}]}
    request = {"correlation_id": 2, "client_id": "c", "body": offsets}
    (_, produce), *_ = produced(0, 3)
    pieces = ((0, produce), (0, wirekit.encode("kafka.offset_fetch.request.v0", request)))
    path = capture(tmp_path / "empty.pcap", *pieces)
    assert_same(path, "--output", "json")
    (about,) = json.loads(inspected(path, "--output", "json", road="objects")[1]).values()
    assert about["topics"] == [{"topic": "", "calls": 2, "produced": 3, "delivered": 0, "bytes": 0}]
    assert about["groups"] == [{"group_id": "", "calls": 1, "clients": ["c"]}]
    text = inspected(path, "--output", "text", road="objects")[1]
    assert "  topics         '': 3 produced (0 B), 2 calls\n" in text
    assert "  groups         '': 1 call by c\n" in text


@pytest.mark.parametrize("road", ["objects", "columns"])
def test_the_order_of_equally_slow_calls_does_not_depend_on_the_name_of_the_file(road: str, tmp_path: Path) -> None:
    copy, ports = tmp_path / "one.pcap", range(4000, 4008)
    connections = [packets(capture(copy, *list_groups(1), client=port, port=9092)) for port in ports]
    slowest = []
    for name in "abcd":
        path = write(tmp_path / f"{name}.pcap", [each for packets in connections for each in packets])
        (about,) = json.loads(inspected(path, "--output", "json", road=road)[1]).values()
        slowest.append([each["connection"] for each in about["slowest"]])
    assert slowest == [[f"10.0.0.1:{port}>10.0.0.2:9092#0" for port in range(4007, 4002, -1)]] * 4
