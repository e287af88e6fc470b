"""``spark.readStream.format("wirekit")``: every complete file once, whatever ends the query."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import FIXTURES
from wirekit import read
from wirekit.errors import Misuse
from wirekit.values import byte_size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirekit.spark.stream import CaptureStream

PULSAR = FIXTURES / "pcap" / "pulsar-batch.pcap"
JOYQUEUE = FIXTURES / "pcap" / "jmq4-consume.pcap"
SEGMENT = FIXTURES / "kafka" / "disk" / "0.10.2.2-t-logappend-0.log"

pytest.importorskip("pyspark")


def copy_with_time(source: Path, target: Path, changed: int) -> Path:
    shutil.copy(source, target)
    os.utime(target, (changed, changed))
    return target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three captures; the order of their names is not that of their times."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for name, source, changed in (("c", PULSAR, 1), ("a", JOYQUEUE, 2), ("b", PULSAR, 3)):
        copy_with_time(source, folder / f"{name}.pcap", changed)
    return folder


def stream(path: Path | str, **options: str) -> CaptureStream:
    from wirekit.spark.source import source_schema
    from wirekit.spark.stream import CaptureStream

    parameters = {"table": "messages", "path": str(path), **options}
    return CaptureStream(source_schema(parameters), parameters)


def steps(source: CaptureStream, start: dict[str, Any] | None = None) -> list[list[str]]:
    """The names of the files of each micro-batch until nothing is new."""
    offset = start or source.initialOffset()
    names: list[list[str]] = []
    while (end := source.latestOffset(offset, source.getDefaultReadLimit())) != offset:
        parts = source.partitions(offset, end)
        names.append([Path(each.path).name for part in parts for each in part.captures])  # type: ignore[attr-defined]
        offset = end
    assert source.partitions(offset, offset) == []
    return names


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({}, [["c.pcap", "a.pcap", "b.pcap"]]),
        ({"maxFilesPerTrigger": "2"}, [["c.pcap", "a.pcap"], ["b.pcap"]]),
        ({"maxBytesPerTrigger": "3000"}, [["c.pcap"], ["a.pcap"], ["b.pcap"]]),
        ({"maxBytesPerTrigger": "3k"}, [["c.pcap"], ["a.pcap"], ["b.pcap"]]),
        ({"maxBytesPerTrigger": "1m"}, [["c.pcap", "a.pcap", "b.pcap"]]),
        ({"maxBytesPerTrigger": "10000"}, [["c.pcap", "a.pcap", "b.pcap"]]),
    ],
)
def test_each_file_is_in_one_micro_batch(folder: Path, options: dict[str, str], batches: list[list[str]]) -> None:
    assert steps(stream(folder, **options)) == batches


def test_an_offset_has_the_files_of_its_micro_batch(folder: Path) -> None:
    source = stream(folder, maxFilesPerTrigger="2")
    start = source.initialOffset()
    end = source.latestOffset(start, source.getDefaultReadLimit())
    copy_with_time(PULSAR, folder / "late.pcap", 0)  # older than all
    again = stream(folder, maxFilesPerTrigger="3")
    assert again.partitions(start, end) == source.partitions(start, end)
    assert steps(again, end) == [["late.pcap", "b.pcap"]]
    with pytest.raises(Misuse, match="the offsets 0 and 2 do not bound one micro-batch"):
        source.partitions(start, {**end, "batch": 2})


def test_a_file_that_was_gone_is_a_new_one(folder: Path) -> None:
    source = stream(folder)
    first = source.latestOffset(source.initialOffset(), source.getDefaultReadLimit())
    (folder / "a.pcap").unlink()
    copy_with_time(PULSAR, folder / "d.pcap", 4)
    second = source.latestOffset(first, source.getDefaultReadLimit())
    copy_with_time(JOYQUEUE, folder / "a.pcap", 5)
    copy_with_time(PULSAR, folder / "b.pcap", 6)  # it was there all the time
    assert steps(source, second) == [["a.pcap"]]


def test_a_folder_that_was_empty_for_a_moment_has_no_new_files(folder: Path) -> None:
    source = stream(folder)
    first = source.latestOffset(source.initialOffset(), source.getDefaultReadLimit())
    folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    assert source.latestOffset(first, source.getDefaultReadLimit()) == first
    folder.rmdir()
    folder.with_name("elsewhere").rename(folder)
    assert steps(source, first) == []


def test_available_now_ends_with_the_files_present_at_the_start(folder: Path) -> None:
    source = stream(folder, maxFilesPerTrigger="2")
    source.prepareForTriggerAvailableNow()
    copy_with_time(PULSAR, folder / "d.pcap", 4)
    assert steps(source) == [["c.pcap", "a.pcap"], ["b.pcap"]]


def test_a_file_that_is_being_written_waits(folder: Path) -> None:
    shutil.copy(PULSAR, folder / "new.pcap")
    assert steps(stream(folder)) == [["c.pcap", "a.pcap", "b.pcap"]]
    assert steps(stream(folder, settle="0")) == [["c.pcap", "a.pcap", "b.pcap", "new.pcap"]]


def test_an_empty_folder_and_segments_have_no_calls(tmp_path: Path) -> None:
    assert steps(stream(tmp_path)) == []
    copy_with_time(SEGMENT, tmp_path / "00000000000000000000.log", 1)
    assert steps(stream(tmp_path, table="calls")) == []
    assert steps(stream(tmp_path)) == [["00000000000000000000.log"]]


def test_a_planned_file_that_is_gone(folder: Path) -> None:
    def rows(source: CaptureStream) -> int:
        end = source.latestOffset(source.initialOffset(), source.getDefaultReadLimit())
        (part,) = source.partitions(source.initialOffset(), end)
        (folder / "a.pcap").unlink(missing_ok=True)
        return sum(batch.num_rows for batch in source.read(part))

    with pytest.raises(FileNotFoundError, match=r"the option ignoreMissing skips .*a\.pcap"):
        rows(stream(folder))
    copy_with_time(JOYQUEUE, folder / "a.pcap", 2)
    assert rows(stream(folder, ignoreMissing="true")) == 20


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger must be a number from 1, not '0'"),
        ({"maxFilesPerTrigger": "1k"}, "maxFilesPerTrigger must be a number from 1, not '1k'"),
        ({"maxBytesPerTrigger": "0m"}, "maxBytesPerTrigger must be a number from 1, also with a unit .*, not '0m'"),
        ({"maxBytesPerTrigger": "1 mile"}, "maxBytesPerTrigger must be a number from 1, .*, not '1 mile'"),
        ({"maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1"}, "not both"),
        ({"settle": "soon"}, "settle must be a number of seconds, not 'soon'"),
        ({"separate": "false"}, "only with the option state"),
        ({"maxFiles": "1"}, r"no option 'maxFiles'; did you mean maxFilesPerTrigger\?"),
        ({"ignoremising": "true"}, r"no option 'ignoremising'; did you mean ignoreMissing\?"),
        ({"header": "true"}, "no option 'header'; choose from table, .*, separate, maxFilesPerTrigger, "),
    ],
)
def test_options_that_make_no_sense(folder: Path, options: dict[str, str], text: str) -> None:
    with pytest.raises(Misuse, match=text):
        stream(folder, **options)


def test_numbers_of_bytes_are_those_of_spark(spark: SparkSession) -> None:
    read = spark._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes  # type: ignore[union-attr]
    for text in ("1", "0", "1b", "5k", "5KB", " 1m ", "2GB", "3t", "1p", "8191p", "9223372036854775807"):
        assert byte_size(text) == read(text)
    for text in ("8192p", "9223372036854775808", "-1", "1e", "k", "", "\u0661"):
        assert byte_size(text) is None
        with pytest.raises(Exception, match=r"exceeds Long\.MAX_VALUE|Size must be specified as"):
            read(text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"paths": '["/elsewhere"]'}, "another path:"),
        ({"table": "calls", "columns": ""}, "another table, columns:"),
        ({"columns": "topic,key"}, "another columns:"),
        ({"where": "topic = 't'"}, "another where:"),
        ({"ports": "6650=pulsar"}, "another ports:"),
    ],
)
def test_the_checkpoint_of_another_query_is_refused(folder: Path, change: dict[str, str], text: str) -> None:
    source = stream(folder, columns="topic")
    start = source.initialOffset()
    end = json.loads(json.dumps(source.latestOffset(start, source.getDefaultReadLimit())))
    assert steps(stream(f"{folder}/", columns="topic", maxFilesPerTrigger="1", settle="0"), end) == []
    other = stream(folder, **{"columns": "topic", **change})
    with pytest.raises(Misuse, match=text):
        other.latestOffset(end, other.getDefaultReadLimit())
    with pytest.raises(Misuse, match=text):
        other.partitions(start, end)


def test_an_offset_without_options_is_continued(folder: Path) -> None:
    source = stream(folder, maxFilesPerTrigger="2")
    end = source.latestOffset(source.initialOffset(), source.getDefaultReadLimit())
    earlier = {name: value for name, value in end.items() if name != "options"}
    assert steps(stream(folder), earlier) == [["b.pcap"]]


def test_a_stream_with_a_given_schema_hints_at_its_own_options(folder: Path) -> None:
    from wirekit.spark.source import source_schema
    from wirekit.spark.stream import CaptureStream

    path = {"path": str(folder)}
    with pytest.raises(Misuse, match=r"no option 'closeAfer'; did you mean closeAfter\?"):
        CaptureStream(source_schema(path), {**path, "closeAfer": "1"})


@pytest.mark.parametrize("options", [{"settle": "soon"}, {"ports": "x=y"}, {"where": "nope = 1"}])
def test_the_schema_verifies_all_options(options: dict[str, str], folder: Path) -> None:
    """Spark shows its error; one in ``streamReader`` ends in an UnboundLocalError of Spark."""
    from pyspark_wirekit import DefaultSource

    good = DefaultSource({"path": str(folder), "settle": "1"})
    assert good.schema().names
    with pytest.raises(Misuse, match=r"settle|x=y|nope"):
        DefaultSource({"path": str(folder), **options}).schema()


def test_options_of_streams_are_refused_elsewhere(folder: Path) -> None:
    from wirekit.spark.source import CaptureReader, source_schema

    parameters = {"path": str(folder), "maxFilesPerTrigger": "1"}
    with pytest.raises(Misuse, match="'maxFilesPerTrigger'; it is for readStream"):
        CaptureReader(source_schema(parameters), parameters)


@pytest.mark.skipif("WIREKIT_LONG" not in os.environ, reason="takes a minute: make test-long")
@pytest.mark.spark
def test_a_query_that_is_restarted_in_the_middle(folder: Path, tmp_path: Path, spark: SparkSession) -> None:
    """It dies after a micro-batch is written and before it is committed: the transaction's version keeps it out."""
    deltalake = pytest.importorskip("deltalake")
    from wirekit.spark.source import register

    register(spark)
    (folder / "b.pcap").unlink()
    table = str(tmp_path / "messages")
    written: list[int] = []

    def add(frame: Any, number: int) -> None:
        there = deltalake.DeltaTable.is_deltatable(table)
        last = deltalake.DeltaTable(table).transaction_version("messages") if there else None
        if last is None or last < number:
            version = [deltalake.Transaction("messages", number)]
            properties = deltalake.CommitProperties(app_transactions=version)
            deltalake.write_deltalake(table, frame.toArrow(), mode="append", commit_properties=properties)
        written.append(number)
        if written == [0, 1]:
            raise RuntimeError("killed")

    def query() -> Any:
        captures = spark.readStream.format("wirekit").options(table="messages", maxFilesPerTrigger=1, settle=0)
        writer = captures.load(str(folder)).writeStream.foreachBatch(add)
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()

    with pytest.raises(Exception, match="killed"):
        query().awaitTermination()
    copy_with_time(JOYQUEUE, folder / "0.pcap", 0)  # it comes before the micro-batch that is made again
    query().awaitTermination()
    assert written == [0, 1, 1, 2]
    mine = deltalake.DeltaTable(table).to_pyarrow_table()
    assert sorted(mine["message_id"].to_pylist(), key=str) == sorted(
        read(folder, "messages", columns=["message_id"], separate=True).read_all()["message_id"].to_pylist(), key=str
    )
    assert len(set(mine["file"].to_pylist())) == 3
