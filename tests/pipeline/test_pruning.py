"""Chosen columns and filters: the rows are those of the whole table, whatever is left out on the way."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import wirekit
from tests.capture.second_parser import packets, write
from tests.conftest import FIXTURES
from wirekit.errors import Misuse
from wirekit.pipeline import reading
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.predicates import columns_of, parsed
from wirekit.pipeline.reading import READABLE, table_batches
from wirekit.tables.columns import FROM_INPUTS, MESSAGES

CAPTURES = (
    "kafka-0.10.2.2-2-produce.pcapng",
    "pulsar-batch.pcap",
    "jmq4-consume.pcap",
)
ROADS = ("objects", "columns")
GROUPS = 5
"""Of columns that are read together."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Captures, and log segments that hold messages, groups and sets in a codec."""
    folder = tmp_path_factory.mktemp("pruning")
    paths = [FIXTURES / "pcap" / name for name in CAPTURES]
    for name, topic in (("0.10.2.2-t-gzip-0", "t-gzip-0"), ("0.10.2.2-__consumer_offsets-0", "__consumer_offsets-0")):
        segment = folder / topic / "00000000000000000000.log"
        segment.parent.mkdir()
        shutil.copy(FIXTURES / "kafka" / "disk" / f"{name}.log", segment)
        paths.append(segment)
    return paths


def table_of(job: Job, table: str, columns: list[str] | None = None, filter: pc.Expression | None = None) -> pa.Table:
    schema = READABLE[table].schema
    chosen = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    return pa.Table.from_batches(table_batches(job, table, columns, filter), chosen)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("table", READABLE)
def test_some_columns_are_those_of_the_whole_table(table: str, road: str, files: list[Path]) -> None:
    if road == "columns":
        pytest.importorskip("numba")
    job = Job(find_inputs(files), road=road, values=True)
    whole = table_of(job, table)
    assert whole.num_rows or table == "gaps"
    names = whole.column_names[::-1]
    for start in range(GROUPS):
        columns = names[start::GROUPS]
        assert rows_of(table_of(job, table, columns)) == rows_of(whole.select(columns)), columns


def rows_of(table: pa.Table) -> list[str]:
    """The rows, which come in another order where frames are read for their values."""
    return sorted(map(repr, table.to_pylist()))


FILTERS = [
    ("calls", "api = 'FETCH' AND latency_us > 100"),
    ("calls", "protocol IN ('pulsar', 'joyqueue') AND error IS NULL"),
    ("calls", "request_time < '2000-01-01'"),
    ("calls", "request_time >= '2000-01-01T00:00:00+02:00' AND api <> 'METADATA'"),
    ("messages", "topic = 't-gzip' AND log_offset >= 10"),
    ("messages", "protocol = 'pulsar'"),
    ("messages", "time IS NULL"),
    ("messages", "date >= '2001-01-01' AND direction != 'stored'"),
    ("offsets", "group_id IS NOT NULL"),
    ("frames", "time > '2100-01-01'"),
    ("connections", "protocol = 'kafka'"),
    ("packets", "length > 100"),
    ("packets", "ts_us < 1 AND note IS NOT NULL"),
]


@pytest.fixture(scope="module")
def whole_table(files: list[Path]) -> Callable[[str, str], pa.Table]:
    """Reads a table on a road, without values of frames."""
    return cache(lambda table, road: table_of(Job(find_inputs(files), road=road), table))


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(("table", "text"), FILTERS)
def test_filters_choose_of_the_whole_table(
    table: str, text: str, road: str, files: list[Path], whole_table: Callable[[str, str], pa.Table]
) -> None:
    if road == "columns":
        pytest.importorskip("numba")
    job = Job(find_inputs(files), road=road)
    filter = parsed(text, READABLE[table].schema)
    whole = whole_table(table, road)
    columns = whole.column_names[1:9:2]
    assert rows_of(table_of(job, table, columns, filter)) == rows_of(whole.filter(filter).select(columns))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are decoded."""
    names: list[str] = []
    captured, stored = reading.captured_batches, reading.stored_batches

    def captured_noted(files: Any, *more: Any, **named: Any) -> Any:
        names.append(Path(files[0].path).name)
        return captured(files, *more, **named)

    def stored_noted(each: Any, *more: Any) -> Any:
        names.append(Path(each.path).parent.name)
        return stored(each, *more)

    monkeypatch.setattr(reading, "captured_batches", captured_noted)
    monkeypatch.setattr(reading, "stored_batches", stored_noted)
    return names


def test_files_without_a_row_are_not_decoded(files: list[Path], decoded: list[str]) -> None:
    pytest.importorskip("numba")
    job = Job(find_inputs(files), road="columns")
    stored = ["t-gzip-0", "__consumer_offsets-0"]
    assert table_of(job, "messages", None, pc.field("file") == str(files[0])).num_rows
    assert decoded == [files[0].name]
    decoded.clear()
    table_of(job, "messages", None, pc.field("protocol") == "pulsar")
    assert not set(stored) & set(decoded)
    decoded.clear()
    assert not table_of(job, "messages", None, parsed("time < '2000-01-01'", MESSAGES.schema)).num_rows
    assert decoded == stored


def test_a_filter_for_files_whose_names_are_any_bytes(files: list[Path], decoded: list[str], tmp_path: Path) -> None:
    """The table has their names escaped."""
    for name in (b"odd\xff.pcap", b"other.pcap"):
        shutil.copy(files[1], os.fsencode(tmp_path) + b"/" + name)
    odd = pc.field("file") == f"{tmp_path}/odd\\udcff.pcap"
    assert wirekit.read(tmp_path, "calls", ["api"], odd).read_all().num_rows == 6
    assert decoded == ["odd\udcff.pcap"]


def test_damage_is_found_by_the_name_of_its_file(files: list[Path], decoded: list[str], tmp_path: Path) -> None:
    """Other rows of a rotation have the name of its first file."""
    whole = packets(files[0])
    names = [write(tmp_path / f"t.pcap{number or ''}", whole[100 * number :][:100]) for number in range(2)]
    names[1].write_bytes(names[1].read_bytes()[:-5])
    job, by_name = Job(find_inputs([tmp_path, files[1]])), pc.field("file") == str(names[1])
    damage = table_of(job, "quarantine").filter(by_name)
    decoded.clear()
    assert table_of(job, "quarantine", None, by_name) == damage
    assert damage["position"].to_pylist() == [names[1].stat().st_size - 69]
    assert decoded == [str(names[0].name)]


@pytest.mark.parametrize("size", [10, -5])
def test_a_damaged_capture_is_decoded_whatever_its_times(
    size: int, files: list[Path], decoded: list[str], tmp_path: Path
) -> None:
    """Cut in its header, or in its last packet: decoding reports it."""
    pytest.importorskip("numba")
    (damaged := tmp_path / "damaged.pcap").write_bytes(files[1].read_bytes()[:size])
    job, old = Job(find_inputs([files[1], damaged]), road="columns"), parsed("time < '2000-01-01'", MESSAGES.schema)
    assert not table_of(job, "messages", None, old).num_rows
    assert decoded == [damaged.name]


def test_values_are_not_made_for_other_columns(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from wirekit.pipeline import flows

    def never(*_: object) -> str:
        raise AssertionError("a value is made")

    monkeypatch.setattr(flows, "frame_value", never)
    assert wirekit.read(files[0], "frames", ["api"], values=True).read_all().num_rows
    with pytest.raises(AssertionError, match="a value is made"):
        wirekit.read(files[0], "frames", ["value"], values=True).read_all()


@pytest.mark.parametrize("table", ["calls", "messages", "packets"])
def test_no_columns_still_have_rows(table: str, files: list[Path]) -> None:
    expected = wirekit.read(files, table).read_all().num_rows
    assert wirekit.read(files, table, []).read_all().num_rows == expected > 0


@pytest.mark.parametrize("ports", [{"9092": "kafka"}, {99999: ""}, {0: "kafka"}, "9092=kafka"])
def test_ports_that_make_no_sense_are_misuse(ports: Any, files: list[Path]) -> None:
    with pytest.raises(Misuse, match=r"read: (a port|ports) must be a "):
        wirekit.read(files, ports=ports)


@pytest.mark.parametrize(
    ("filter", "reason"),
    [(pc.field("version") / 0 > 1, "divide by zero"), (pc.field("api").cast("int64") > 1, "Failed to parse string")],
)
def test_a_filter_that_a_row_makes_impossible_is_misuse(filter: pc.Expression, reason: str, files: list[Path]) -> None:
    with pytest.raises(Misuse, match=f"cannot be computed for a row: {reason}"):
        wirekit.read(files, filter=filter).read_all()


def test_expressions_by_place_read_all_columns() -> None:
    schema = FROM_INPUTS["calls"].schema
    assert columns_of(pc.field(3) == "kafka", schema) == frozenset(schema.names)
    assert columns_of(pc.field("api") == "topic", schema) == {"api", "topic"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not COLUMN"),
        ("api", "at its end; besides"),
        ("aip = 'x'", "no column 'aip'"),
        ("api = 'x' OR api = 'y'", "at 'OR'"),
        ("api = topic", "at 'topic'"),
        ("api LIKE 'x%'", "at 'LIKE'"),
        ("api = 'x", "is not COLUMN = LITERAL"),
        ("version = 'x'", "not a value of the column version, whose type is int32"),
        ("version = 99999999999", "not a value of the column version"),
        ("latency_us = 99999999999999999999", "not a value of the column latency_us"),
        ("version = true", "true is not a value of the column version"),
        ("api IN (TRUE)", "TRUE is not a value of the column api"),
        ("request_time > 'yesterday'", "not a value of the column request_time"),
        ("request_time > 1564390929", "1564390929 is not a value of the column request_time"),
        ("date IN (18106)", "18106 is not a value of the column date"),
        ("api IN ()", "at '\\)'"),
        ("api = 'x'; drop", "is not COLUMN = LITERAL"),
    ],
)
def test_filters_that_make_no_sense_are_misuse(text: str, reason: str) -> None:
    with pytest.raises(Misuse, match=reason):
        parsed(text, FROM_INPUTS["calls"].schema)


def test_a_time_without_a_zone_is_utc() -> None:
    schema = FROM_INPUTS["calls"].schema
    conditions = [f"request_time >= '{time}'" for time in ("2000-01-01T00:00:00+02:00", "1999-12-31T22:00:00")]
    first, second = (parsed(text, schema) for text in conditions)
    assert first.equals(second)
    assert "22:00:00" in str(first)


def test_truth_values_are_literals(files: list[Path]) -> None:
    schema = FROM_INPUTS["connections"].schema
    assert parsed("known_start = TRUE", schema).equals(pc.field("known_start") == True)  # noqa: E712
    true, not_false, both, false = (
        wirekit.read(files, "connections", ["file"], parsed(f"known_start {each}", schema)).read_all().num_rows
        for each in ("= true", "!= false", "IN (true, false)", "= false")
    )
    assert true == not_false > false > 0
    assert both == true + false


def test_a_quote_in_a_literal() -> None:
    assert str(parsed("api = 'it''s'", FROM_INPUTS["calls"].schema)) == '(api == "it\'s")'


@pytest.mark.parametrize("table", ["messages", "packets"])
def test_the_data_source_takes_both(table: str, files: list[Path]) -> None:
    pytest.importorskip("pyspark")
    from wirekit.spark.source import CapturePartition, CaptureReader, source_schema

    text = "partition = 0 AND log_offset > 3" if table == "messages" else "length > 100"
    name = "topic" if table == "messages" else "position"
    options = {"paths": json.dumps([str(each) for each in files]), "table": table, "columns": name, "where": text}
    reader = CaptureReader(source_schema(options), options)
    read = [
        row[name]
        for each in reader.partitions()
        if isinstance(each, CapturePartition)
        for batch in reader.read(each)
        for row in batch.to_pylist()
    ]
    whole = wirekit.read(files, table, [name], parsed(text, READABLE[table].schema)).read_all()
    assert read
    assert sorted(read) == sorted(whole[name].to_pylist())
    with pytest.raises(Misuse, match="no column 'size'"):
        CaptureReader(source_schema(options), {**options, "where": "size > 3"})
