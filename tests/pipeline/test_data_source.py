"""``spark.read.format("wirekit")``: captures as a table, without a run."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import FIXTURES
from wirekit.errors import Misuse
from wirekit.pipeline.inputs import Input, find_inputs
from wirekit.pipeline.packets import packet_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PULSAR = FIXTURES / "pcap" / "pulsar-batch.pcap"
KAFKA = FIXTURES / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"


@pytest.fixture
def known(spark: SparkSession) -> SparkSession:
    from wirekit.spark.source import register

    register(spark)
    return spark


@pytest.mark.spark
def test_packets_of_several_captures(known: SparkSession) -> None:
    frame = known.read.format("wirekit").load([str(PULSAR), str(KAFKA)])
    expected = sum(batch.num_rows for batch in packet_batches(find_inputs([PULSAR, KAFKA])))
    found = frame.selectExpr("count(*)", "count(distinct file_no)", "sum(length(payload))", "max(flow)").first()
    batches = [batch.to_pydict() for batch in packet_batches(find_inputs([PULSAR, KAFKA]))]
    assert tuple(found) == (
        expected,
        2,
        sum(len(payload) for batch in batches for payload in batch["payload"]),
        max(flow for batch in batches for flow in batch["flow"]),
    )


@pytest.mark.spark
def test_messages_with_chosen_columns(known: SparkSession) -> None:
    reader = known.read.format("wirekit").schema("value binary, topic string, timestamp timestamp")
    frame = reader.option("table", "messages").option("paths", json.dumps([str(PULSAR)])).load()
    assert frame.columns == ["value", "topic", "timestamp"]
    assert frame.count() == 10
    assert {row.topic for row in frame.select("topic").collect()} == {"persistent://public/default/t-batch"}
    assert frame.where("timestamp > '2020-01-01'").count() == 10


def test_small_captures_share_a_task() -> None:
    from wirekit.spark.source import CapturePartition, bundles

    captures = [Input(number, "", "", size << 20, 0) for number, size in enumerate((10, 50, 5, 200, 1, 1))]
    found = [[each.size >> 20 for each in bundle] for bundle in bundles(captures)]
    assert found == [[10, 50], [5], [200], [1, 1]]
    partition = CapturePartition(tuple(captures))
    assert pickle.loads(pickle.dumps(partition)).captures == partition.captures


def test_ports_choose_segments_and_protocols() -> None:
    from wirekit.spark.source import CapturePartition, CaptureReader, source_schema

    def found(**options: str) -> int:
        reader = CaptureReader(source_schema(options), {"path": str(PULSAR), **options})
        (partition,) = reader.partitions()
        assert isinstance(partition, CapturePartition)
        return sum(batch.num_rows for batch in reader.read(partition))

    assert found(table="frames", ports="6650") == 12
    assert found(table="frames", ports="6650=joyqueue") == 0
    assert found(table="frames", ports="9092") == 0
    assert found(table="frames", protocol="joyqueue") == 0


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
        ({"path": "x", "ports": "9092=nothing"}, "no protocol 'nothing'"),
        ({"path": "x", "protocol": "net"}, "no byte stream"),
    ],
)
def test_options_that_make_no_sense_are_misuse(options: dict[str, str], text: str) -> None:
    from wirekit.spark.source import CaptureReader, source_schema

    with pytest.raises(Misuse, match=text):
        CaptureReader(source_schema(options), options)


def test_a_column_that_does_not_exist_is_misuse() -> None:
    from pyspark.sql.types import StructType

    from wirekit.spark.source import CaptureReader

    with pytest.raises(Misuse, match="no column 'payloda'"):
        CaptureReader(StructType.fromDDL("payloda binary"), {"path": "x"})


def test_the_source_is_light_to_import(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import sys, pyspark_wirekit; print([name for name in sys.modules if name.partition('.')[0] == 'wirekit'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout.strip() == "[]"
