"""A capture gives the same tables whole and cut into the files of a rotation."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.capture.second_parser import Packet, packets, write
from tests.conftest import FIXTURES
from tests.pipeline.helpers import tables
from wirekit.cli import group
from wirekit.pipeline import serial
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.run import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURES = sorted((FIXTURES / "pcap").glob("*.pcap*"))
KAFKA = FIXTURES / "pcap" / "kafka-0.8.2.2-2-produce.pcapng"
CUTS = 3
Run = tuple[dict[str, list[dict[str, Any]]], Result]


def cut(folder: Path, whole: list[Packet], places: list[int], naming: str) -> list[Path]:
    """The packets in files that begin at these places, named as ``tcpdump -C`` or ``tcpdump -G`` names them."""
    folder.mkdir()
    paths = []
    for number, (start, end) in enumerate(zip([0, *places], [*places, len(whole)], strict=True)):
        begin = datetime.fromtimestamp(whole[start].time_us / 1e6 + number, UTC)  # parts of one second get two names
        name = f"t-{begin:%Y%m%d%H%M%S}.pcap" if naming == "-G" else f"t.pcap{number or ''}"
        paths.append(write(folder / name, whole[start:end]))
    return paths


def places(whole: list[Packet], random: Random) -> list[int]:
    """Where to cut: from 1 place to all where the time differs."""
    possible = [at for at in range(1, len(whole)) if whole[at].time_us > whole[at - 1].time_us]
    return sorted(random.sample(possible, random.choice([1, 2, 5, len(possible)]) % (len(possible) + 1)))


def run(folder: Path, inputs: Path, **options: Any) -> Run:
    """The tables of files without their names, and the result."""
    result = serial.run(Job(find_inputs([inputs], **options)), folder)
    return without_names(tables(folder)), result


def without_names(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The tables that captures give, with ids that do not depend on the files' names."""
    ends = ("client_address", "client_port", "server_address", "server_port", "ordinal")
    plain = {row["connection_id"]: "/".join(str(row[name]) for name in ends) for row in tables["connections"]}

    def renamed(row: dict[str, Any]) -> dict[str, Any]:
        ids = {name: row[name] for name in ("connection_id", "call_id", "frame_id") if row.get(name) is not None}
        short = {name: f"{plain[id_.partition('-')[0]]}-{id_.partition('-')[2]}" for name, id_ in ids.items()}
        return {**row, **short, "file": None}

    return {
        name: sorted(map(renamed, rows), key=repr) for name, rows in tables.items() if name not in ("runs", "inputs")
    }


def once(run: Callable[[Path, Path], Run], folders: pytest.TempPathFactory) -> Callable[[Path], Run]:
    """Runs on the packets of a capture in one file, once for each capture."""

    @cache
    def run_whole(path: Path) -> Run:
        folder = folders.mktemp("whole")
        return run(folder / "lake", write(folder / "t.pcap", packets(path)))

    return run_whole


@pytest.fixture(scope="module")
def run_whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Run]:
    return once(run, tmp_path_factory)


@pytest.mark.parametrize("naming", ["-C", "-G"])
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_tables_are_the_same_cut_or_whole(
    path: Path, naming: str, tmp_path: Path, run_whole: Callable[[Path], Run]
) -> None:
    whole = packets(path)
    expected, one = run_whole(path)
    random = Random(zlib.crc32(f"{path.stem} {naming}".encode()))
    for number in range(CUTS):
        files = cut(tmp_path / f"cut{number}", whole, places(whole, random), naming)
        content, several = run(tmp_path / f"tables{number}", files[0].parent)
        assert content == expected
        assert [each["file"] for each in several.manifest["inputs"]] == list(map(str, files))
        assert {each["capture"] for each in several.manifest["inputs"]} == {str(files[0])}
        assert list(several.summary.to_json().values()) == list(one.summary.to_json().values())


def test_separate_files_are_captures_of_their_own(tmp_path: Path) -> None:
    whole = packets(KAFKA)
    files = cut(tmp_path / "cut", whole, [100, 200, 300], "-C")
    content, result = run(tmp_path / "tables", files[0].parent, separate=True)
    assert list(result.summary.files) == [str(path) for path in files]
    assert len(content["connections"]) > len(run(tmp_path / "one", files[0].parent)[0]["connections"])


def test_an_error_in_a_part_names_the_part(tmp_path: Path) -> None:
    whole = packets(KAFKA)
    files = cut(tmp_path / "cut", whole, [100, 200, 300], "-C")
    for path in files[1:3]:
        path.write_bytes(path.read_bytes()[:-10])
    result = serial.run(Job(find_inputs([files[0].parent])), tmp_path / "tables")
    (damaged,) = result.summary.unreadable.values()
    assert [text.partition(": ")[0] for text in damaged.splitlines()] == [str(path) for path in files[1:3]]
    rows = [row for row in tables(tmp_path / "tables")["quarantine"] if row["connection_id"] is None]
    assert {row["file"] for row in rows} == {str(path) for path in files[1:3]}


def lines(capsys: pytest.CaptureFixture[str], command: str, *arguments: object) -> tuple[list[Any], list[str]]:
    """What a command prints as JSON and says on standard error, without the names of files."""
    group.main([command, *map(str, arguments), "--output", "json"], standalone_mode=False)
    out, err = capsys.readouterr()
    parsed = [json.loads(line) for line in out.splitlines()]
    for each in parsed:
        each.pop("file", None)
    return parsed, [line.split(": ", 2)[-1] for line in err.splitlines()]


@pytest.mark.parametrize("command", ["frames", "messages"])
def test_commands_read_a_rotation_as_one_capture(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = packets(KAFKA)
    expected, complaints = lines(capsys, command, write(tmp_path / "t.pcap", whole))
    files = cut(tmp_path / "cut", whole, [50, 100, 101, 300], "-G")
    printed, remarks = lines(capsys, command, *files[::-1])
    assert printed == expected
    assert remarks == [
        f"read as one capture with 4 files up to {files[-1]}; --separate reads each by itself",
        *complaints,
    ]
    apart, remarks = lines(capsys, command, *files, "--separate")
    clean, clean_apart = (sum(not each.get("error") for each in lines_of_run) for lines_of_run in (expected, apart))
    assert command == "messages" or clean_apart < clean
    assert not any("read as one capture" in text for text in remarks)


@pytest.mark.parametrize(
    ("form", "path"), [([], KAFKA), (["--connections"], KAFKA), (["--rules"], KAFKA.with_name("jmq4-consume.pcap"))]
)
def test_inspect_reads_a_rotation_as_one_capture(
    form: list[str], path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def inspected(*arguments: object) -> list[Any]:
        summaries = lines(capsys, "inspect", *arguments, *form)[0]
        return summaries if form else [list(each.values()) for each in summaries]

    whole = packets(path)
    expected = inspected(write(tmp_path / "t.pcap", whole))
    files = cut(tmp_path / "cut", whole, [20, 30, 31, 40], "-C")
    assert inspected(*files) == expected
    assert inspected(*files, "--separate") != expected


@pytest.mark.spark
def test_tables_on_spark_are_the_same_cut_or_whole(tmp_path: Path, spark: SparkSession) -> None:
    from wirekit.spark import pipeline
    from wirekit.spark.source import register

    register(spark)
    whole = packets(KAFKA)
    expected, one = run(tmp_path / "tables", write(tmp_path / "t.pcap", whole))
    files = cut(tmp_path / "cut", whole, [60, 200, 201, 390], "-C")
    result = pipeline.run(Job(find_inputs([files[0].parent])), tmp_path / "spark", spark)
    assert without_names(tables(tmp_path / "spark")) == expected
    assert list(result.summary.to_json().values()) == list(one.summary.to_json().values())
    reader = spark.read.format("wirekit").option("table", "frames")
    assert reader.load(str(files[0].parent)).count() == len(expected["frames"])
    assert reader.option("separate", "true").load(str(files[0].parent)).count() < len(expected["frames"])
