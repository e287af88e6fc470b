"""``spark.read.format("wirekit")``: captures as a table, without a run."""

from __future__ import annotations

import errno
import gc
import json
import os
import pickle
import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import wirekit
from tests.capture.second_parser import packets, write
from tests.conftest import FIXTURES
from wirekit.compression import compress
from wirekit.errors import Misuse
from wirekit.pipeline import serial
from wirekit.pipeline.inputs import Input, Job, find_inputs, grouped
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.stored import stored_batches
from wirekit.pipeline.summary import Summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PULSAR = FIXTURES / "pcap" / "pulsar-batch.pcap"
KAFKA = FIXTURES / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"
SEGMENT = FIXTURES / "kafka" / "disk" / "0.10.2.2-t-logappend-0.log"
STORED = "00000000000000000000.log"


@pytest.fixture
def spark_with_source(spark: SparkSession) -> SparkSession:
    from wirekit.spark.source import register

    register(spark)
    return spark


@pytest.mark.spark
def test_packets_of_several_captures(spark_with_source: SparkSession) -> None:
    frame = spark_with_source.read.format("wirekit").load([str(PULSAR), str(KAFKA)])
    expected = sum(batch.num_rows for batch in packet_batches(find_inputs([PULSAR, KAFKA])))
    totals = frame.selectExpr("count(*)", "count(distinct file_no)", "sum(length(payload))", "max(flow)").first()
    batches = [batch.to_pydict() for batch in packet_batches(find_inputs([PULSAR, KAFKA]))]
    assert tuple(totals) == (
        expected,
        2,
        sum(len(payload) for batch in batches for payload in batch["payload"]),
        max(flow for batch in batches for flow in batch["flow"]),
    )


@pytest.mark.spark
def test_messages_with_chosen_columns(spark_with_source: SparkSession) -> None:
    reader = spark_with_source.read.format("wirekit").schema("value binary, topic string, timestamp timestamp")
    frame = reader.option("table", "messages").option("paths", json.dumps([str(PULSAR)])).load()
    assert frame.columns == ["value", "topic", "timestamp"]
    assert frame.count() == 10
    assert {row.topic for row in frame.select("topic").collect()} == {"persistent://public/default/t-batch"}
    assert frame.where("timestamp > '2020-01-01'").count() == 10


def test_small_captures_share_a_task() -> None:
    from wirekit.spark.source import BUNDLE_BYTES, CapturePartition

    sizes = ((10,), (50,), (5,), (200,), (1,), (1, 1), (40, 40))
    captures = [tuple(Input(0, "", "", size << 20, 0) for size in files) for files in sizes]
    sizes_by_bundle = [[each.size >> 20 for each in bundle] for bundle in grouped(captures, BUNDLE_BYTES)]
    assert sizes_by_bundle == [[10, 50], [5], [200], [1, 1, 1], [40, 40]]
    partition = CapturePartition(captures[-1])
    assert pickle.loads(pickle.dumps(partition)).captures == partition.captures


def test_a_task_leaves_nothing_to_the_garbage_collection_after_it() -> None:
    from wirekit.spark.source import CaptureReader, source_schema

    options = {"path": str(PULSAR)}
    reader = CaptureReader(source_schema(options), options)
    gc.unfreeze()
    assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) > 0
    assert gc.get_freeze_count() > 0


def test_a_file_that_the_system_refuses_to_open_fails_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows would look like an answer, and a stream would never read it again."""
    from wirekit.pipeline import packet_rows

    def refused(path: str) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(packet_rows, "open_capture", refused)
    with pytest.raises(OSError, match=r"pulsar-batch\.pcap: Permission denied"):
        read(path=str(PULSAR), table="calls")


def test_parts_of_a_large_file_have_tasks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    from wirekit.spark import source

    before = read(path=str(KAFKA), table="packets")
    monkeypatch.setattr(source, "BUNDLE_BYTES", KAFKA.stat().st_size // 4)
    monkeypatch.setattr(source, "by_columns", lambda size: True)
    reader = source.CaptureReader(source.source_schema({"table": "packets"}), {"path": str(KAFKA), "table": "packets"})
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    assert len(partitions) > 3
    assert all(each.split is not None for each in partitions)
    rows = read(path=str(KAFKA), table="packets")
    assert [row for row in rows if row["note"] is None] == [row for row in before if row["note"] is None]
    assert len(read(path=str(KAFKA), table="frames")) > 0


def test_connections_of_a_large_capture_are_shared_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    from wirekit.pipeline import serial
    from wirekit.spark import source

    tables = ("calls", "connections", "frames", "quarantine")
    before = {table: read(path=str(KAFKA), table=table) for table in tables}
    monkeypatch.setattr(source, "BUNDLE_BYTES", KAFKA.stat().st_size // 4)
    monkeypatch.setattr(source, "by_columns", lambda size: True)
    monkeypatch.setattr(serial, "captures_by_columns", lambda *_: True)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    for table in tables:
        options = {"path": str(KAFKA), "table": table}
        reader = source.CaptureReader(source.source_schema(options), options)
        parts = [[row for batch in reader.read(part) for row in batch.to_pylist()] for part in reader.partitions()]
        assert len(parts) == 3
        assert all(parts) or table == "quarantine"
        assert sorted(map(repr, chain.from_iterable(parts))) == sorted(map(repr, before[table]))
    others = ((os, "cpu_count", lambda: 1), (source, "SMALL_PACKET", 10), (source, "is_compressed", lambda file: True))
    for where, name, value in others:
        with monkeypatch.context() as patch:
            patch.setattr(where, name, value)
            assert len(source.CaptureReader(source.source_schema(options), options).partitions()) == 1


def test_ports_choose_segments_and_protocols() -> None:
    from wirekit.spark.source import CapturePartition, CaptureReader, source_schema

    def count_rows(**options: str) -> int:
        reader = CaptureReader(source_schema(options), {"path": str(PULSAR), **options})
        (partition,) = reader.partitions()
        assert isinstance(partition, CapturePartition)
        return sum(batch.num_rows for batch in reader.read(partition))

    assert count_rows(table="frames", ports="6650") == 12
    assert count_rows(table="frames", ports="6650=joyqueue") == 0
    assert count_rows(table="frames", ports="9092") == 0
    assert count_rows(table="frames", protocol="joyqueue") == 0


def test_later_partitions_know_their_captures() -> None:
    from wirekit.spark.source import CapturePartition, CaptureReader, source_schema

    options = {"path": "unused", "table": "connections"}
    reader = CaptureReader(source_schema(options), options)
    partition = CapturePartition(find_inputs([KAFKA, PULSAR])[1:])
    names = [row["file"] for batch in reader.read(partition) for row in batch.to_pylist()]
    assert names == [str(PULSAR)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"path": "x", "table": "nothing"}, "no table 'nothing'"),
        ({}, "nothing to read"),
        ({"paths": '"a.pcap"'}, "a JSON list"),
        ({"path": "x", "ports": "kafka=9092"}, "not PORT or PORT=PROTOCOL"),
        ({"path": "x", "ports": "99999=kafka"}, "'99999=kafka' is not PORT or PORT=PROTOCOL"),
        ({"path": "x", "ports": "9092=kafka, 9092 = pulsar"}, "names the port 9092 twice"),
        ({"path": "x", "protocol": "kafka", "ports": "6650=pulsar"}, "protocol applies to all connections"),
        ({"path": "x", "ports": "9092=nothing"}, "no protocol 'nothing'"),
        ({"path": "x", "protocol": "net"}, "no byte stream"),
        ({"path": "x", "tabel": "frames"}, r"no option 'tabel'; did you mean table\?"),
        ({"path": "x", "proto": "kafka"}, r"no option 'proto'; did you mean protocol\?"),
        ({"path": "x", "header": "true"}, "no option 'header'; choose from table, path, paths"),
        ({"path": "x", "separate": "yes"}, "separate must be true or false, not 'yes'"),
        ({"paths": '[["a.pcap"], []]'}, "a JSON list"),
        ({"paths": '[["a.pcap"], "b.pcap"]'}, "a JSON list"),
        ({"paths": "a.pcap"}, "a JSON list"),
    ],
)
def test_options_that_make_no_sense_are_misuse(options: dict[str, str], text: str) -> None:
    from wirekit.spark.source import CaptureReader, source_schema

    with pytest.raises(Misuse, match=text):
        CaptureReader(source_schema(options), options)


@pytest.mark.parametrize("name", ["0.log", "x.pcap"])
def test_a_segment_is_recognised_whatever_its_name(tmp_path: Path, name: str) -> None:
    """It was read as a capture without packets."""
    segment = next((KAFKA.parents[1] / "kafka" / "disk").glob("*snappy*.log"))
    path = tmp_path / name
    path.write_bytes(segment.read_bytes())
    assert read(path=str(path), table="messages")
    assert not read(path=str(path), table="quarantine")
    with pytest.raises(Misuse, match="has no table frames: files that brokers store have messages"):
        read(path=str(path), table="frames")


def test_a_named_file_that_gives_no_row_of_any_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"hello" * 100)
    for table in ("messages", "frames", "packets"):
        with pytest.raises(Misuse, match=r"expected a pcap or pcapng file, .*; `wirekit decode` reads single frames"):
            read(path=str(path), table=table)
    assert read(path=str(path), table="quarantine")


def test_a_file_without_a_header_is_refused_and_one_without_packets_is_an_empty_table(tmp_path: Path) -> None:
    """As by ``wirekit.read`` and by all commands. A file that a stream reads may grow."""
    from wirekit.spark.source import CaptureReader, source_schema

    empty, header = tmp_path / "empty.pcap", tmp_path / "header.pcap"
    empty.touch()
    header.write_bytes(PULSAR.read_bytes()[:24])
    for path in (str(empty), empty.as_uri(), f"file:{empty}"):
        for table in ("calls", "packets"):
            with pytest.raises(Misuse, match=r"empty\.pcap: .*; the file is empty"):
                read(path=path, table=table)
        with pytest.raises(Misuse, match="the file is empty"):
            wirekit.read(path, "calls")
        (file,) = CaptureReader(source_schema({}), {"path": path}).files(may_grow=True)
        assert file.name == str(empty)
    empty.write_bytes(PULSAR.read_bytes()[:23])
    with pytest.raises(Misuse) as of_library:
        wirekit.read(empty, "calls")
    with pytest.raises(Misuse, match=f"^{re.escape(str(of_library.value))}$"):
        read(path=str(empty), table="calls")
    for path in (str(header), header.as_uri(), f"file:{header}"):
        assert not read(path=path, table="calls")
        assert wirekit.read(path, "calls").read_all().num_rows == 0


def test_a_file_of_a_lake_is_refused_with_what_reads_it(tmp_path: Path) -> None:
    serial.run(Job(find_inputs([PULSAR])), tmp_path / "lake")
    (part,) = (tmp_path / "lake" / "calls").iterdir()
    with pytest.raises(Misuse, match=r"found a Parquet file, .*/lake has tables .*; `wirekit sql QUERY .*lake` que"):
        read(path=str(part), table="calls")


def read(**options: str) -> list[dict[str, Any]]:
    """The rows of all partitions."""
    from wirekit.spark.source import CapturePartition, CaptureReader, source_schema

    reader = CaptureReader(source_schema(options), options)
    rows: list[dict[str, Any]] = []
    for partition in reader.partitions():
        assert isinstance(partition, CapturePartition)
        rows += [row for batch in reader.read(partition) for row in batch.to_pylist()]
    return rows


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("pulsar-comp_*.pcap", {"pulsar-comp_lz4.pcap", "pulsar-comp_zlib.pcap"}),
        ("pulsar-[!c]*atch.pcap", {"pulsar-batch.pcap", "pulsar-nobatch.pcap"}),
        ("../p?ap/pulsar-batch.pcap", {"pulsar-batch.pcap"}),
        ("../**/pulsar-batch.pcap", {"pulsar-batch.pcap"}),
    ],
)
def test_globs_name_files_and_directories(pattern: str, files: set[str]) -> None:
    connections = read(path=f"{PULSAR.parent}/{pattern}", table="connections")
    assert {Path(row["file"]).name for row in connections} == files


def test_a_glob_that_matches_nothing_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"nothing matches .*/\*\.pcap"):
        read(path=str(tmp_path / "*.pcap"))


def test_a_file_may_be_called_as_a_glob(tmp_path: Path) -> None:
    (tmp_path / "a[1].pcap").write_bytes(PULSAR.read_bytes())
    (tmp_path / "a1.pcap").write_bytes(b"another")
    assert {row["file"] for row in read(path=str(tmp_path / "a[1].pcap"), table="connections")} == {
        str(tmp_path / "a[1].pcap")
    }


def test_segments_have_messages_and_quarantine(tmp_path: Path) -> None:
    (tmp_path / STORED).write_bytes(SEGMENT.read_bytes() + b"\1\2\3")
    messages, quarantine = (read(path=str(tmp_path), table=table) for table in ("messages", "quarantine"))
    piped = list(stored_batches(find_inputs([tmp_path])[0], Job(()), Summary()))
    expected = [row for table, batch in piped for row in batch.to_pylist() if table == "messages"]
    assert messages == expected != []
    assert [row["length"] for row in quarantine] == [3]
    for table in ("packets", "frames", "gaps", "connections"):
        with pytest.raises(Misuse, match=f"has no table {table}: files that brokers store have messages, offsets, "):
            read(path=str(tmp_path), table=table)


def test_damage_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Rows that simply end would look like the whole capture."""
    cut, segment = tmp_path / "cut.pcap", tmp_path / STORED
    cut.write_bytes(PULSAR.read_bytes()[:-9])
    segment.write_bytes(SEGMENT.read_bytes() + b"\1\2\3")
    assert read(path=str(tmp_path), table="messages", columns="topic")
    damaged, undecoded = sorted(caplog.messages, reverse=True)
    assert re.fullmatch(rf"wirekit: {cut}: net\.pcap\.packet.*; the file ends in the middle of this record", damaged)
    assert undecoded.startswith(f"wirekit: {segment}: 3 bytes not decoded: ")


def test_lost_messages_of_a_compressed_set_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its bytes are in the table, because its other messages are."""
    whole = wirekit.encode("kafka.message_set", {"messages": [{"offset": 3, "message": {"magic": 0, "value": "6869"}}]})
    compressed = {"compressed": compress("gzip", whole + whole[:-1]).hex()}
    message = {"magic": 0, "attributes": {"codec": "GZIP"}, "value": compressed}
    segment = tmp_path / STORED
    segment.write_bytes(wirekit.encode("kafka.message_set", {"messages": [{"offset": 4, "message": message}]}))
    assert len(read(path=str(tmp_path), table="messages", columns="topic")) == 1
    (text,) = caplog.messages
    assert text.startswith(f"wirekit: {segment}: damaged in 1 place: messages[].message.value: expected whole messages")


def test_captures_and_segments_are_read_together(tmp_path: Path) -> None:
    for path, name in ((SEGMENT, STORED), (PULSAR, PULSAR.name)):
        (tmp_path / name).write_bytes(path.read_bytes())
    files = {Path(row["file"]).name for row in read(path=str(tmp_path), table="messages")}
    assert files == {STORED, PULSAR.name}
    assert {Path(row["file"]).name for row in read(path=str(tmp_path), table="frames")} == {PULSAR.name}


def test_files_of_one_capture_may_be_named_together(tmp_path: Path) -> None:
    whole = packets(PULSAR)
    one, other = write(tmp_path / "one", whole[:9]), write(tmp_path / "other", whole[9:])
    together = read(paths=json.dumps([[str(one), str(other)]]), table="frames")
    expected = read(path=str(PULSAR), table="frames")
    ids = dict.fromkeys(("file", "connection_id", "call_id", "frame_id"))
    assert [row | ids for row in together] == [row | ids for row in expected]
    assert {row["file"] for row in together} == {str(one)}
    assert len(read(paths=json.dumps([[str(one)], [str(other)]]), table="connections")) == 2


def test_a_column_that_does_not_exist_is_misuse() -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from wirekit.spark.source import CaptureReader

    with pytest.raises(Misuse, match="no column 'payloda'"):
        CaptureReader(StructType([StructField("payloda", BinaryType())]), {"path": "x"})


def test_a_column_that_is_named_twice_is_misuse() -> None:
    from wirekit.spark.source import source_schema

    with pytest.raises(Misuse, match="the option columns names 'api' twice"):
        source_schema({"path": "x", "columns": "api,version,api"})


def test_columns_are_chosen_by_an_option() -> None:
    from wirekit.spark.source import source_schema

    options = {"path": str(PULSAR), "table": "messages", "columns": "value, topic"}
    assert source_schema(options).names == ["value", "topic"]
    rows = read(**options)
    assert len(rows) == 10
    assert {tuple(row) for row in rows} == {("value", "topic")}
    with pytest.raises(Misuse, match="the table messages has no column 'topics'"):
        source_schema({**options, "columns": "topics"})


def test_a_schema_of_other_types_is_misuse() -> None:
    from pyspark.sql.types import LongType, StructType

    from wirekit.spark.source import CaptureReader

    with pytest.raises(Misuse, match="the column topic of the table messages is string, not bigint: cast it in the "):
        CaptureReader(StructType().add("topic", LongType()), {"path": str(PULSAR), "table": "messages"})


@pytest.mark.spark
def test_one_frame_with_two_filters_gives_the_rows_of_both(spark_with_source: SparkSession) -> None:
    spark_with_source.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = (
            spark_with_source.read.format("wirekit")
            .option("table", "frames")
            .option("columns", "api")
            .load(str(PULSAR))
        )
        both = frame.where("api = 'SEND'").union(frame.where("api = 'CONNECT'"))
        assert {row.api for row in both.collect()} == {"SEND", "CONNECT"}
        assert frame.where("api = 'CONNECT'").count() < frame.count()
    finally:
        spark_with_source.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.spark
def test_spark_keeps_pushed_filters_for_other_queries(spark: SparkSession) -> None:
    """Why this source takes no filters. If it fails, Spark has changed: see whether ``pushFilters`` is safe now."""
    from collections.abc import Iterable, Iterator

    from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition
    from pyspark.sql.types import StructType

    class Reader(DataSourceReader):
        wanted = range(10)

        def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
            for each in filters:
                if isinstance(each, EqualTo):
                    self.wanted = range(each.value, each.value + 1)
                else:
                    yield each

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield from ((number,) for number in self.wanted)

    class Numbers(DataSource):
        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "x int"

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader()

    spark.dataSource.register(Numbers)
    with pytest.raises(Exception, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        spark.read.format("numbers").load().count()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("numbers").load()
        assert [row.x for row in frame.where("x = 3").collect()] == [3]
        assert frame.count() == 1  # of ten
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_the_source_is_light_to_import(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import sys, pyspark_wirekit; print([name for name in sys.modules if name.partition('.')[0] == 'wirekit'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout.strip() == "[]"
