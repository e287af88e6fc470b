"""The Spark data source ``wirekit``: captures as rows, capture by capture.

Options: ``table`` (``packets`` by default, or a table of docs/tables.md except ``runs`` and ``inputs``),
``path`` or ``paths`` (a JSON list) of files, directories, URIs and patterns, ``protocol``, ``ports``
(``9092=kafka,6650``: only segments from or to these ports are read; a protocol applies to its port), and ``separate``
(``true``: each file is a capture of its own). ``paths`` may also be a list of lists: the files of each capture.

``columns`` (``topic,timestamp``) names the columns of the table, as ``schema()`` of the reader does: Spark does not
tell a source which columns a query needs. ``where`` (``api = 'FETCH' AND latency_us > 1000``) is a filter that tasks
apply before they give rows to Spark, see ``wirekit.pipeline.predicates.parsed``. Both save work. Filters of a query
stay with Spark. Spark 4.3 can push them down to a Python source, but keeps those of one query for the others of the
same DataFrame: the rows of ``f.where("x = 3").union(f.where("x = 4"))`` all have ``x = 4``, and after such a query
``f.count()`` counts only these. A source that takes filters also fails as long as the setting for it is off.

``packets`` has the rows that tasks of the pipeline pass to each other. The other tables are made where the file is
read, by the serial driver's functions: the packets of one capture are held in memory, and no table is written. Files
that brokers store have ``messages``, ``offsets``, ``group_events`` and ``quarantine``. A task logs a warning for each
file that is damaged; ``packets`` has a note instead.
"""

from __future__ import annotations

import difflib
import gc
import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema

from wirekit.capture.files.unpacking import packing_of
from wirekit.errors import Misuse, plural
from wirekit.pipeline.inputs import (
    CAPTURE,
    HEAD,
    FlowShare,
    Input,
    Job,
    Split,
    captures,
    find_inputs,
    grouped,
    joined_inputs,
    renumbered,
)
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.predicates import columns_of, parsed
from wirekit.pipeline.reading import READABLE, ended_batches, refusal_of, requested_schema, table_batches
from wirekit.pipeline.roads import by_columns, is_compressed
from wirekit.pipeline.stored import parts_of
from wirekit.pipeline.summary import Summary
from wirekit.registry import registry
from wirekit.storage import is_remote, local, open_binary
from wirekit.stored import Part
from wirekit.tables.columns import PACKETS, QUARANTINE
from wirekit.values import shown, whole_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from wirekit.pipeline.carried import Carried, Continuation

LOG = logging.getLogger(__name__)
BUNDLE_BYTES = 64 << 20
MOST_SHARES = 8
"""Tasks that follow connections of one capture; each further one reads all packets again."""
SMALL_PACKET = 512
"""Bytes of payload per packet, on average, above which reading is most of the work."""
OPTIONS = ("table", "path", "paths", "columns", "where", "protocol", "ports", "separate")
STREAM_OPTIONS = ("maxFilesPerTrigger", "maxBytesPerTrigger", "settle", "ignoreMissing", "state", "closeAfter")
OF_STREAMS = frozenset(name.lower() for name in STREAM_OPTIONS)
"""Options of streams alone, in their spelling and in lower case."""
OF_STORED_FILES = ("messages", "offsets", "group_events", "quarantine")
"""Tables with rows of files that brokers store."""


def register(spark: SparkSession) -> None:
    """Registers ``spark.read.format("wirekit")`` in a session.

    Spark finds an installed package by its name, but not a package that is installed as editable.
    """
    spark.dataSource.register(import_module("pyspark_wirekit").DefaultSource)


@dataclass
class CapturePartition(InputPartition):
    """The input of one task: the files of one capture or of several small ones, or a part of one large file.

    ``split`` is a part of a capture, ``part`` one of a stored file, ``flows`` the connections that the task reads.
    """

    captures: tuple[Input, ...]
    split: Split | None = None
    part: Part | None = None
    flows: FlowShare | None = None


def source_schema(options: Mapping[str, str]) -> StructType:
    """The Spark schema of the table that the options name."""
    check_names(options, (*OPTIONS, *STREAM_OPTIONS))
    columns = [name for name in (each.strip() for each in options.get("columns", "").split(",")) if name]
    return from_arrow_schema(_checked_schema(options.get("table", PACKETS.name), columns or None))


def _checked_schema(table: str, names: Iterable[str] | None) -> pa.Schema:
    """The schema of columns of a table; refuses columns that it does not have, or that are named twice."""
    repeated = [name for name, count in Counter(names or ()).items() if count > 1]
    if repeated:
        raise Misuse(f"the option columns names {repeated[0]!r} twice")
    return requested_schema(table, names)


class CaptureReader(DataSourceReader):
    """Reads a table of captures.

    Args:
        schema: the requested columns.
        options: options of the data source, see the module header.

    Raises:
        Misuse: an option is invalid, or the table does not have a column.
    """

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        check_names(options, OPTIONS)
        self._table = options.get("table", PACKETS.name)
        self._schema = schema
        _checked_schema(self._table, schema.names)
        _same_types(self._table, schema)
        self._where = options.get("where", "")
        if self._where:
            parsed(self._where, READABLE[self._table].schema)
        self._paths = _paths(options)
        self._separate = flag(options, "separate")
        self._ports = _ports(options.get("ports", ""))
        self._protocol = options.get("protocol", "")
        if self._protocol and any(self._ports.values()):
            raise Misuse(
                "the option protocol applies to all connections; leave it out, or name no protocols in the option ports"
            )
        for each in filter(None, (self._protocol, *self._ports.values())):
            registry.protocol(each).stream("client")

    def partitions(self) -> Sequence[InputPartition]:
        """One partition for each capture. Small captures share one, up to 64 MiB, because each task costs 30 ms.

        A large stored file has several partitions, and so has a large capture: for ``packets``, each reads a part of
        it; for other tables, each reads all packets and follows some of the connections.
        """
        groups = captures(self._inputs())
        parts: list[CapturePartition] = []
        undivided: list[tuple[Input, ...]] = []
        is_packets = self._table == PACKETS.name
        for files in [(file,) for file in chain.from_iterable(groups)] if is_packets else groups:
            if is_packets:
                of_files = [CapturePartition(files, split) for split in _splits(files[0])]
            else:
                of_files = [CapturePartition(files, part=part) for part in _parts(files[0])]
                if not self._ports:
                    of_files += (CapturePartition(files, flows=flows) for flows in _flow_shares(files, groups))
            parts += of_files
            undivided += [] if of_files else [files]
        return [*parts, *(CapturePartition(files) for files in grouped(undivided, BUNDLE_BYTES))]

    def _inputs(self) -> tuple[Input, ...]:
        """The files with rows of the table, at least one."""
        files = self.files()
        inputs = self.of_table(files)
        if not inputs:
            tables = ", ".join(OF_STORED_FILES)
            raise Misuse(f"{files[0].name} has no table {self._table}: files that brokers store have {tables}")
        return inputs

    def files(self, *, may_grow: bool = False) -> tuple[Input, ...]:
        """All files that the paths name.

        Args:
            may_grow: whether to accept files that are too short to tell.

        Raises:
            NothingToReadError: the paths name no file.
            Misuse: a path names a file that is neither a capture nor a stored file.
        """
        plain = [path for path in self._paths if isinstance(path, str)]
        if plain:
            inputs = find_inputs(plain, separate=self._separate)
            if self._table != QUARANTINE.name:
                names = {each if is_remote(each) else local(each) for each in plain}
                _refuse_others((each for each in inputs if each.kind == CAPTURE and each.name in names), may_grow)
            return inputs
        return joined_inputs(path for path in self._paths if not isinstance(path, str))

    def of_table(self, inputs: tuple[Input, ...]) -> tuple[Input, ...]:
        """The files that have rows of the table."""
        return inputs if self._table in OF_STORED_FILES else tuple(each for each in inputs if each.kind == CAPTURE)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition's captures, in batches of about 16 MiB."""
        if not isinstance(partition, CapturePartition):
            return
        yield from self._of_schema(self._batches(partition))
        freeze_objects()

    def _of_schema(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark accepts only batches of exactly this schema, and has only timestamps in microseconds.
        schema = to_arrow_schema(self._schema, timezone="UTC")
        for batch in batches:
            yield batch.select(schema.names).cast(schema)

    def _batches(self, partition: CapturePartition) -> Iterator[pa.RecordBatch]:
        files, split, part, flows = partition.captures, partition.split, partition.part, partition.flows
        table, names, where = READABLE[self._table], self._schema.names, self._filter()
        ports = frozenset(self._ports)
        if table is not PACKETS:
            job, summary = self._job(captures(files)), Summary()
            yield from table_batches(
                job, table.name, names, where, ports=ports, summary=summary, part=part, flows=flows
            )
            _report(summary, files)
            return
        for batch in packet_batches(files, ports=ports, table=table.only(self._read()), split=split):
            yield batch if where is None else batch.filter(where)

    def read_part(
        self, files: tuple[Input, ...], continuation: Continuation, keep: Callable[[Carried], object]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the next files of a capture; without any, those of open connections at its end.

        Args:
            files: the files.
            continuation: the capture.
            keep: receives its state if it continues.
        """
        names, where = self._schema.names, self._filter()
        if files:
            job, ports, summary = self._job([files], {0: continuation}), frozenset(self._ports), Summary()

            def keep_complete(carried: Carried) -> None:
                _refuse_unopened(summary)
                keep(carried)

            batches = table_batches(job, self._table, names, where, ports=ports, summary=summary, keep=keep_complete)
            yield from self._of_schema(batches)
            _report(summary, files)
        else:
            yield from self._of_schema(ended_batches(continuation, self._job([]), self._table, names, where))

    def configuration(self) -> str:
        """The options that the state of a capture depends on."""
        ports = sorted(self._ports.items())
        return json.dumps([self._table, sorted(self._read()), self._protocol, ports])

    def identity(self) -> dict[str, str]:
        """Digests of the options that the rows of a stream depend on, by name."""
        options = {
            "path": sorted(each.rstrip("/") if isinstance(each, str) else each for each in self._paths),
            "table": self._table,
            "columns": sorted(self._schema.names),
            "where": self._where,
            "protocol": self._protocol,
            "ports": sorted(self._ports.items()),
        }
        texts = {name: json.dumps(value).encode() for name, value in options.items()}
        return {name: hashlib.blake2b(text, digest_size=8).hexdigest() for name, text in texts.items()}

    def _job(self, groups: Iterable[Sequence[Input]], continuations: Mapping[int, Continuation] | None = None) -> Job:
        protocols = {port: protocol for port, protocol in self._ports.items() if protocol}
        return Job(renumbered(groups), self._protocol, protocols, continuations=continuations or {})

    def _filter(self) -> pc.Expression | None:
        return parsed(self._where, READABLE[self._table].schema) if self._where else None

    def _read(self) -> set[str]:
        """The columns that are read: the requested ones, and those of the filter."""
        where = self._filter()
        return {*self._schema.names, *(() if where is None else columns_of(where, READABLE[self._table].schema))}


def _refuse_others(files: Iterable[Input], may_grow: bool) -> None:
    """Refuses files that would give no row."""
    for each in files:
        with open_binary(each.path) as source:
            head = source.peek(HEAD)[:HEAD]
        if not (may_grow and len(head) < HEAD) and packing_of(head) is None and (refusal := refusal_of([each])):
            raise Misuse(refusal)


def _splits(file: Input) -> list[Split]:
    """The parts of a large file that tasks read by columns; none if one reads all of it."""
    if is_remote(file.path) or file.size < 2 * BUNDLE_BYTES or not by_columns(file.size):
        return []
    from wirekit.road.splits import splits

    return splits(file, BUNDLE_BYTES)


def _flow_shares(files: Sequence[Input], groups: Sequence[Sequence[Input]]) -> list[FlowShare]:
    """The shares of a large capture of small packets whose bytes are more than one core's part of all; else none.

    Each share reads all packets; if they are large, this is most of the work. The driver's cores are counted, as a
    source sees no others.
    """
    cores = min(os.cpu_count() or 1, MOST_SHARES)
    size, total = (sum(each.size for each in part) for part in (files, chain.from_iterable(groups)))
    if size < max(2 * BUNDLE_BYTES, total // cores) or files[0].kind != CAPTURE or is_remote(files[0].path):
        return []
    if cores < 2 or not by_columns(size) or any(map(is_compressed, files)):
        return []
    first = next(packet_batches(files[:1], table=PACKETS.only(["length"])), None)
    mean = None if first is None else pc.mean(first["length"]).as_py()
    return [FlowShare(number, cores) for number in range(cores)] if mean is not None and mean < SMALL_PACKET else []


def _parts(file: Input) -> list[Part]:
    """The parts of a large stored file; none if one task reads all of it."""
    if file.kind == CAPTURE or is_remote(file.path) or file.size < 2 * BUNDLE_BYTES:
        return []
    return parts_of(file)


def _same_types(table: str, schema: StructType) -> None:
    """Refuses types other than those of the table, because values are not cast to them."""
    for each in schema.fields:
        kind = from_arrow_type(READABLE[table].schema.field(each.name).type)
        if each.dataType != kind:
            actual, expected = each.dataType.simpleString(), kind.simpleString()
            raise Misuse(
                f"the column {each.name} of the table {table} is {expected}, not {actual}: cast it in the query"
            )


def freeze_objects() -> None:
    """Excludes a worker's objects from garbage collection after each task, which would take 0.1 s for all modules."""
    gc.collect()
    gc.freeze()


def check_names(options: Mapping[str, str], allowed: Sequence[str]) -> None:
    """Refuses unknown options; Spark would pass on a misspelt option, and it would have no effect."""
    spelt = {name.lower(): name for name in allowed}
    for name in options:
        if name.lower() not in spelt:
            near = difflib.get_close_matches(name.lower(), spelt, n=1)
            hint = f"did you mean {spelt[near[0]]}?" if near else f"choose from {', '.join(allowed)}"
            if name.lower() in OF_STREAMS:
                hint = "it is for readStream"
            raise Misuse(f"no option {name!r}; {hint}")


def flag(options: Mapping[str, str], name: str) -> bool:
    """The value of an option that is ``true`` or ``false``."""
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise Misuse(f"option {name} must be true or false, not {text!r}")
    return text == "true"


def _paths(options: Mapping[str, str]) -> list[str] | list[list[str]]:
    paths = [options["path"]] if options.get("path") else []
    if options.get("paths"):
        try:
            value = json.loads(options["paths"])
        except ValueError:
            value = None
        if not paths and _is_list_of(value, list) and all(each and _is_list_of(each, str) for each in value):
            captures: list[list[str]] = value
            return captures
        if not _is_list_of(value, str):
            raise Misuse(
                'option paths must be a JSON list of strings, as in ["a.pcap", "captures/"], or one of such lists'
            )
        paths += value
    if not paths:
        raise Misuse("nothing to read: pass captures or directories to load(), or as option path or paths")
    return paths


def _refuse_unopened(summary: Summary) -> None:
    """Fails the task if the system refused to read a file: a result without rows would look complete."""
    for name, reason in summary.unreadable.items():
        if name in summary.unopened or summary.files[name].unopened:
            raise OSError(f"{name}: {reason}")


def _report(summary: Summary, files: Iterable[Input]) -> None:
    """Logs each file that could not be read to its end, and the undecoded bytes of stored files.

    Raises:
        OSError: the system refused to read one.
    """
    _refuse_unopened(summary)
    for name, reason in summary.unreadable.items():
        LOG.warning("wirekit: %s: %s", name, reason)
    for name in (each.name for each in files if each.kind != CAPTURE and each.name in summary.files):
        for reason, counts in summary.files[name].undecoded.items():
            size, places = counts["bytes"], counts.get("pieces", 0)
            extent = f"{plural(size, 'byte')} not decoded" if size else f"damaged in {plural(places, 'place')}"
            LOG.warning("wirekit: %s: %s: %s", name, extent, reason)


def _is_list_of(value: object, kind: type) -> bool:
    """Whether a value is a list with at least one element, all of one type."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, kind) for each in value)


def _ports(text: str) -> dict[int, str]:
    """``9092=kafka,6650`` → ``{9092: "kafka", 6650: ""}``."""
    ports: dict[int, str] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        number, _, protocol = (each.strip() for each in pair.partition("="))
        port = whole_number(number) or 0
        if not 0 < port < 1 << 16:
            raise Misuse(f"{shown(pair)} is not PORT or PORT=PROTOCOL, as in 9092=kafka,6650")
        if ports.setdefault(port, protocol) != protocol:
            raise Misuse(f"the option ports names the port {port} twice")
    return ports
