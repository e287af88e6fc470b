"""The Spark data source ``wirekit``: captures as rows, file by file.

Options: ``table`` (``packets`` by default, or ``frames``, ``messages``, ``quarantine``, ``gaps``, ``connections``),
``path`` or ``paths`` (a JSON list) of files and directories, ``protocol``, and ``ports`` (``9092=kafka,6650``: only
segments from or to these ports are read, and those with a protocol have that one).

``packets`` is what the pipeline shuffles. The other tables are made where the file is read, by the serial driver's
functions: the packets of one capture are held in memory, and no table is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from wirekit.errors import Misuse
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.inputs import Input, Job, find_inputs
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.serial import sorted_packets
from wirekit.pipeline.tables import PACKETS, TABLES
from wirekit.registry import registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

BUNDLE_BYTES = 64 << 20


def register(spark: SparkSession) -> None:
    """Makes ``spark.read.format("wirekit")`` known to a session.

    Spark finds an installed package by itself, but not one that is installed as editable.
    """
    from pyspark_wirekit import DefaultSource

    spark.dataSource.register(DefaultSource)


@dataclass
class CapturePartition(InputPartition):
    """The captures that one task reads: one big one, or several small ones."""

    captures: tuple[Input, ...]


def source_schema(options: Mapping[str, str]) -> StructType:
    """The Spark schema of the table that the options name."""
    return from_arrow_schema(TABLES[_table(options)].schema)


class CaptureReader(DataSourceReader):
    """Reads a table of captures.

    Args:
        schema: the columns to give.
        options: of the data source, see the module header.

    Raises:
        Misuse: for options that make no sense, or a column that the table does not have.
    """

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        self._table = _table(options)
        self._schema = schema
        known = TABLES[self._table].schema.names
        for name in schema.names:
            if name not in known:
                raise Misuse(f"the table {self._table} has no column {name!r}; it has {', '.join(known)}")
        self._paths = _paths(options)
        self._ports = _ports(options.get("ports", ""))
        self._protocol = options.get("protocol", "")
        for each in filter(None, (self._protocol, *self._ports.values())):
            registry.protocol(each).stream("client")

    def partitions(self) -> Sequence[InputPartition]:
        """One partition a capture; small ones share one, up to 64 MiB, as each task costs 30 ms."""
        return [CapturePartition(captures) for captures in bundles(find_inputs(self._paths))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition's captures, in batches of about 16 MiB."""
        if not isinstance(partition, CapturePartition):
            return
        # Spark takes only batches of exactly this schema, and has no timestamps but those of microseconds.
        schema = to_arrow_schema(self._schema, timezone="UTC")
        for batch in self._batches(partition.captures):
            yield batch.select(schema.names).cast(schema)

    def _batches(self, captures: tuple[Input, ...]) -> Iterator[pa.RecordBatch]:
        ports = frozenset(self._ports)
        if self._table == PACKETS.name:
            yield from packet_batches(captures, ports=ports)
            return
        hints = {port: protocol for port, protocol in self._ports.items() if protocol}
        job = Job(tuple(replace(each, number=number) for number, each in enumerate(captures)), self._protocol, hints)
        for capture in job.inputs:
            for table, batch in flow_batches(sorted_packets(capture, ports), job):
                if table == self._table:
                    yield batch


def bundles(captures: Sequence[Input]) -> list[tuple[Input, ...]]:
    """The captures, neighbours together as long as they have no more than 64 MiB."""
    bundled: list[list[Input]] = []
    size = 0
    for capture in captures:
        if bundled and size + capture.size <= BUNDLE_BYTES:
            bundled[-1].append(capture)
            size += capture.size
        else:
            bundled.append([capture])
            size = capture.size
    return [tuple(each) for each in bundled]


def _table(options: Mapping[str, str]) -> str:
    table = options.get("table", PACKETS.name)
    if table not in TABLES:
        raise Misuse(f"no table {table!r}; there are {', '.join(TABLES)}")
    return table


def _paths(options: Mapping[str, str]) -> list[str]:
    paths = [options["path"]] if options.get("path") else []
    if options.get("paths"):
        given = json.loads(options["paths"])
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
            raise Misuse('option paths is a JSON list of strings, as in ["a.pcap", "captures/"]')
        paths += given
    if not paths:
        raise Misuse("nothing to read: pass captures or directories to load(), or as option path or paths")
    return paths


def _ports(text: str) -> dict[int, str]:
    """``9092=kafka,6650`` → ``{9092: "kafka", 6650: ""}``."""
    ports: dict[int, str] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        port, _, protocol = pair.partition("=")
        if not port.isdecimal():
            raise Misuse(f"{pair!r} is not PORT or PORT=PROTOCOL, as in 9092=kafka,6650")
        ports[int(port)] = protocol
    return ports
