"""A large log segment is read in parts, with the rows of one that is read as a whole."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.conftest import FIXTURES
from tests.kafka.golden import message, message_set
from tests.kafka.test_columns_of_segments import DAMAGE, wrapper
from tests.pipeline.helpers import tables
from wirekit import stored
from wirekit.pipeline import parallel, serial
from wirekit.pipeline.inputs import Input, Job, find_inputs
from wirekit.pipeline.stored import parts_of, stored_batches
from wirekit.pipeline.summary import Summary
from wirekit.protocols.kafka import segment_file
from wirekit.stored import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirekit.pipeline.parallel import Task

pytest.importorskip("numba")

SEGMENTS = sorted((FIXTURES / "kafka" / "disk").glob("*.log"))
BASE = f"{0:020}.log"
HEAD = 12  # bytes of an entry in front of its message
STRETCH = 3000  # bytes
PLAIN = b"".join(message_set(message(b"value %d" % offset, offset=offset, magic=1)) for offset in range(10, 460))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "STRETCH", STRETCH)
    monkeypatch.setattr(segment_file, "PIECE", 1000)


def entries(data: bytes) -> Iterator[bytes]:
    """The whole entries of a segment."""
    while len(data) > HEAD and len(data) >= (size := HEAD + int.from_bytes(data[8:HEAD], "big")):
        yield data[:size]
        data = data[size:]


def repeated(data: bytes, size: int) -> bytes:
    """The entries of a segment again and again, up to about a size, with offsets that ascend as in a log."""
    begin, last, parts = 0, 0, list[bytes]()
    whole = list(entries(data))
    while sum(map(len, parts)) < size:
        for entry in whole:
            last = begin + int.from_bytes(entry[:8], "big")
            parts.append(last.to_bytes(8, "big") + entry[8:])
        begin = last + 1
    return b"".join(parts)


def segment(folder: Path, data: bytes) -> Input:
    path = folder / "__consumer_offsets-3" / BASE
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    (file,) = find_inputs([path])
    return file


def read(file: Input, parts: Iterable[Part | None]) -> tuple[dict[str, pa.Table], Summary]:
    """The rows of the parts of a file, by table in their order, and the counts."""
    by_table: dict[str, list[pa.RecordBatch]] = {}
    summary = Summary()
    for part in parts:
        of_part = Summary()
        for table, batch in stored_batches(file, Job((file,)), of_part, part=part):
            by_table.setdefault(table, []).append(batch)
        summary.merge(of_part)
    return {table: pa.Table.from_batches(batches) for table, batches in by_table.items()}, summary


def guessed(file: Input) -> list[Part]:
    """The parts by walks that search for their starts."""
    from wirekit.protocols.kafka.columns import walk

    return parts_of(file, lambda stretches: [walk(file.path, each) for each in stretches])


def assert_same(file: Input) -> list[Part]:
    parts = parts_of(file)
    assert guessed(file) == parts
    assert sum(part.size(file.size) for part in parts) in (0, file.size)
    assert read(file, parts or [None]) == read(file, [None])
    return parts


@pytest.mark.parametrize("again", [False, True], ids=["in order", "again"])
@pytest.mark.parametrize("log", SEGMENTS, ids=lambda path: path.name)
def test_parts_have_the_rows_of_the_whole(log: Path, again: bool, tmp_path: Path) -> None:
    data = log.read_bytes()
    long = repeated(data, 5 * STRETCH)
    if again:
        long = b"".join(entries(data)) * (1 + len(long) // len(data))
    file = segment(tmp_path, long)
    parts = assert_same(file)
    assert len(parts) == -(-file.size // STRETCH)


def test_a_message_that_is_longer_than_stretches(tmp_path: Path) -> None:
    long = message_set(message(b"x" * 4 * STRETCH, offset=900))
    behind = message_set(message(b"y", offset=901))
    parts = assert_same(segment(tmp_path, PLAIN + long + behind * 400))
    assert [part.size(0) == 0 for part in parts[:-1]].count(True) == 3


def test_a_segment_that_ends_where_a_stretch_does(tmp_path: Path) -> None:
    one = message_set(message(b"v" * (100 - len(message_set(message(b"")))), offset=7))
    file = segment(tmp_path, one * (3 * STRETCH // 100))
    assert [part.start.position for part in assert_same(file)] == [0, STRETCH, 2 * STRETCH]


@pytest.mark.parametrize("place", [0, 2 * STRETCH - 50, 4 * STRETCH])
@pytest.mark.parametrize("name", DAMAGE)
def test_damage_changes_no_row(name: str, place: int, tmp_path: Path) -> None:
    whole = list(entries(PLAIN))
    count = next(number for number in range(len(whole)) if sum(map(len, whole[:number])) >= min(place, len(PLAIN) // 2))
    assert_same(segment(tmp_path, b"".join(whole[:count]) + DAMAGE[name] + b"".join(whole[count:])))


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_at_the_end_changes_no_row(name: str, tmp_path: Path) -> None:
    assert_same(segment(tmp_path, PLAIN + DAMAGE[name]))


@pytest.mark.parametrize("name", DAMAGE)
def test_the_size_of_a_piece_changes_no_row(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = segment(tmp_path, PLAIN + DAMAGE[name] + PLAIN)
    by_size = []
    for size in (1000, 5000, 1 << 22):
        monkeypatch.setattr(segment_file, "PIECE", size)
        by_size.append(read(file, [None]))
    assert by_size[0] == by_size[1] == by_size[2]


@pytest.mark.parametrize("log", [SEGMENTS[0], SEGMENTS[3], SEGMENTS[-1]], ids=lambda path: path.name)
@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_change_no_row(log: Path, seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    data = bytearray(repeated(log.read_bytes(), 4 * STRETCH))
    for _ in range(chosen.choice((1, 2, 6))):
        data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
    if seed % 3 == 0:
        del data[len(data) - chosen.randrange(40) :]
    assert_same(segment(tmp_path, bytes(data)))


def test_messages_beyond_the_limits_before_one_that_does_not_follow(tmp_path: Path) -> None:
    """Behind them the reader searches, so that a size does not show where it goes on."""
    deep = message_set(message(b"", offset=1))
    for _ in range(12):
        deep = message_set(wrapper(gzip.compress(deep), "GZIP", magic=1, offset=1))
    whole = list(entries(PLAIN))
    behind = (2 * STRETCH - len(deep)) // len(whole[-1])
    for at in range(behind - 8, behind + 4):
        assert_same(segment(tmp_path, b"".join([*whole[:at], deep, *whole[100:104], *whole[at:]])))


def test_a_message_that_holds_a_segment(tmp_path: Path) -> None:
    """A guess may find a message in the value of another one; the walk before it does not end there."""
    inner = message_set(message(PLAIN, offset=5))
    file = segment(tmp_path, inner + PLAIN)
    parts = assert_same(file)
    assert [part.start.position for part in parts[:3]] == [0, 0, 0]


def test_walks_stop_at_damage_and_the_last_part_has_the_remaining_bytes(tmp_path: Path) -> None:
    data = bytearray(PLAIN)
    data[3 * STRETCH : 3 * STRETCH + 500] = b"\x55" * 500
    file = segment(tmp_path, bytes(data))
    parts = assert_same(file)
    assert [part.start.stretch for part in parts] == [0, 1, 2, 3]
    assert parts[-1].end is None
    assert parts_of(dataclasses.replace(file, size=STRETCH)) == []


def test_a_part_that_does_not_end_where_the_next_one_begins_is_an_error(tmp_path: Path) -> None:
    file = segment(tmp_path, PLAIN)
    parts = parts_of(file)
    one = message_set(message(b"", offset=10))
    Path(file.path).write_bytes(one + PLAIN)
    with pytest.raises(OSError, match="was changed while it was read"):
        read(file, parts[:1])


def test_without_columns_one_task_reads_a_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wirekit.pipeline import stored as of_pipeline

    file = segment(tmp_path, PLAIN)
    assert parts_of(file)
    monkeypatch.setattr(of_pipeline, "find_spec", lambda name: None)
    assert parts_of(file) == []


def test_the_data_source_reads_a_large_segment_in_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wirekit.spark import source

    file = segment(tmp_path, PLAIN)
    options = {"table": "messages", "path": file.path}
    reader = source.CaptureReader(source.source_schema(options), options)
    assert len(reader.partitions()) == 1
    before = [row for each in reader.read(reader.partitions()[0]) for row in each.to_pylist()]
    monkeypatch.setattr(source, "BUNDLE_BYTES", STRETCH)
    partitions = reader.partitions()
    assert len(partitions) == -(-len(PLAIN) // STRETCH)
    assert [row for part in partitions for each in reader.read(part) for row in each.to_pylist()] == before


def small_stretches(mark: Path, gone: str = "") -> Callable[[Task], Task]:
    """Tasks with small stretches; the first one that reads rows deletes a file. Workers do not know test modules."""

    def around(task: Task) -> Task:
        def run(job: Job, attempts: str, number: int) -> str:
            import os

            from wirekit import stored
            from wirekit.protocols.kafka import segment_file

            if gone and getattr(task, "func", task).__name__ == "read_whole" and not mark.exists():
                mark.touch()
                os.unlink(gone)
            before = stored.STRETCH, segment_file.PIECE
            stored.STRETCH, segment_file.PIECE = 3000, 1000
            try:
                return task(job, attempts, number)
            finally:
                stored.STRETCH, segment_file.PIECE = before

        return run

    return around


@pytest.mark.spark
@pytest.mark.parametrize("damaged", [False, True])
def test_spark_reads_a_large_segment_in_parts(
    damaged: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wirekit.spark import pipeline

    data = bytearray(repeated(SEGMENTS[0].read_bytes(), 5 * STRETCH))
    if damaged:
        data[3 * STRETCH : 3 * STRETCH + 500] = b"\x55" * 500
    job = Job((segment(tmp_path, bytes(data)),))
    monkeypatch.setattr(parallel, "PARTITION_BYTES", STRETCH)
    serial.run(job, tmp_path / "serial")
    result = pipeline.run(job, tmp_path / "spark", spark, around=small_stretches(tmp_path / "mark"))
    assert tables(tmp_path / "spark") == tables(tmp_path / "serial")
    about = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("serial", "spark")]
    assert about[0]["summary"] == about[1]["summary"] == result.summary.to_json()
    assert len(about[1]["tables"]["offsets"]["files"]) == (4 if damaged else -(-len(data) // STRETCH))


@pytest.mark.spark
def test_a_segment_that_is_deleted_while_tasks_share_it_is_noted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wirekit.spark import pipeline

    file = segment(tmp_path, bytes(PLAIN))
    monkeypatch.setattr(parallel, "PARTITION_BYTES", STRETCH)
    around = small_stretches(tmp_path / "mark", file.path)
    result = pipeline.run(Job((file,)), tmp_path / "lake", spark, around=around)
    assert result.gone == {file.name}
    assert result.summary.unreadable == {file.name: "No such file or directory"}
    assert not (tmp_path / "lake" / ".wirekit").exists()
