"""One table of captures and stored files as a stream of Arrow batches; nothing is written."""

from __future__ import annotations

import difflib
import io
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from wirekit.capture.files import check_capture
from wirekit.errors import Misuse, WireError
from wirekit.pipeline.carried import Carried, Continuation
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.inputs import CAPTURE, FlowShare, Input, Job, advised, captures, find_inputs, tables_around
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.predicates import columns_of, may_have_rows
from wirekit.pipeline.roads import road_among
from wirekit.pipeline.serial import captured_batches, sorted_packets
from wirekit.pipeline.stored import stored_batches
from wirekit.pipeline.summary import Summary
from wirekit.registry import registry
from wirekit.stored import Part
from wirekit.tables.columns import CONNECTIONS, FROM_INPUTS, PACKETS, Table
from wirekit.values import quoted

READABLE = {PACKETS.name: PACKETS, **FROM_INPUTS}
"""The tables that can be read without a run."""

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read(
    paths: Paths,
    table: str = "calls",
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,
    *,
    protocol: str = "",
    ports: Mapping[int, str] | None = None,
    separate: bool = False,
    values: bool = False,
) -> pa.RecordBatchReader:
    """Reads one table from captures and log segments; files are read as the batches are consumed.

    Args:
        paths: a capture, a stored file, a directory of them, or several of these.
        table: its name (docs/tables.md); not ``runs`` and ``inputs``, which only a run of the pipeline has.
        columns: the columns to return, in this order; by default all. Other columns are not computed.
        filter: a ``pyarrow.compute`` expression over any columns of the table that selects the rows. A file is not
            decoded if its name, its protocol or its times exclude such rows.
        protocol: the protocol of every connection; by default it is recognised from the bytes.
        ports: {server port: protocol} of connections on known ports.
        separate: whether each file is a separate capture, even if it is a part of a rotation.
        values: whether the table ``frames`` contains the values of frames.

    Returns:
        A ``pyarrow.RecordBatchReader``, which DuckDB, Polars and pandas read, once; Spark needs the table that its
        ``read_all()`` returns. Memory holds the packets of one capture while it is read, or of one window if columns
        read it. Without rows there is one empty batch. After the last batch there is a warning for each file that could
        not be read to its end.

    Raises:
        Misuse: for a table or column that does not exist, for a filter that does not fit the columns, for paths that
            are bytes or an open file, or if none of the files is a capture or a stored file.
        OSError: for a path that does not exist.

    >>> import wirekit
    >>> reader = wirekit.read("fixtures/pcap/pulsar-batch.pcap", columns=["api", "outcome", "topics"])
    >>> reader.read_all().to_pylist()[0]
    {'api': 'CONNECT', 'outcome': 'answered', 'topics': None}
    """
    schema = requested_schema(table, columns)
    _check_filter(table, filter)
    _check_choice(protocol, ports)
    is_list = isinstance(paths, Iterable) and not isinstance(paths, (str, bytes, os.PathLike, io.IOBase))
    inputs = find_inputs(cast("Iterable[str]", paths if is_list else [paths]), separate=separate)
    job = Job(inputs, protocol, dict(ports or {}), values=values)
    refusal = refusal_of(inputs)
    if refusal:
        raise Misuse(refusal)

    def batches() -> Iterator[pa.RecordBatch]:
        summary = Summary()
        is_empty = True
        for batch in table_batches(job, table, schema.names, filter, summary=summary):
            for piece in pa.Table.from_batches([batch]).to_batches() if schema.names else [batch]:
                is_empty = False
                yield piece
        if is_empty:  # Polars refuses a reader without a batch
            yield pa.RecordBatch.from_pylist([], schema=schema)
        for name, reason in summary.unreadable.items():
            warnings.warn(f"{name}: {reason}", RuntimeWarning, stacklevel=2)

    return pa.RecordBatchReader.from_batches(schema, batches())


def requested_schema(table: object, columns: Iterable[str] | None) -> pa.Schema:
    """The schema of the requested columns of a table.

    Args:
        table: its name, one of ``READABLE``.
        columns: the names of the columns; None for all.

    Raises:
        Misuse: the table, or a column, does not exist.
    """
    if not isinstance(table, str) or table not in READABLE:
        near = difflib.get_close_matches(table, READABLE, n=1) if isinstance(table, str) else []
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(READABLE)}"
        raise Misuse(f"no table {quoted(table)} can be read; {hint}")
    schema = READABLE[table].schema
    if isinstance(columns, str) or not isinstance(columns, Iterable | None):
        raise Misuse(f"read: columns must be a list of names, not {quoted(columns)}")
    names = schema.names if columns is None else list(columns)
    for name in names:
        if name not in schema.names:
            raise Misuse(f"the table {table} has no column {quoted(name)}; it has {', '.join(schema.names)}")
    return pa.schema([schema.field(name) for name in names])


def _check_filter(table: str, filter: object) -> None:
    """Refuses a filter that does not fit the columns of a table."""
    if filter is None:
        return
    if not isinstance(filter, pc.Expression):
        raise Misuse(
            f"read: filter must be a pyarrow.compute expression such as field('api') == 'fetch', not {quoted(filter)}"
        )
    schema = READABLE[table].schema
    try:  # the filter on a row of nulls: on an empty table, pyarrow accepts times without a zone
        pa.table([pa.nulls(1, field.type) for field in schema], schema.names).filter(filter)
    except pa.ArrowException as error:
        problem = str(error).partition("\n")[0].partition(f" in {schema.names[0]}: ")[0]
        raise Misuse(f"read: the filter does not fit the table {table}: {problem}") from None


def _check_choice(protocol: str, ports: object) -> None:
    """Refuses ports that are not a mapping of port numbers, and protocols that have no connections."""
    if not isinstance(ports, Mapping | None):
        raise Misuse(f"read: ports must be a mapping of ports to protocols, not {quoted(ports)}")
    for port in ports or ():
        if not isinstance(port, int) or not 0 < port < 1 << 16:
            raise Misuse(f"read: a port must be a number from 1 to 65535, not {quoted(port)}")
    for each in (protocol, *(ports or {}).values()):
        if each:
            registry.protocol(each).stream("client")


def refusal_of(inputs: Iterable[Input]) -> str:
    """If no file can be read, the first file and the reason; otherwise "". No rows would look complete."""
    refusal = ""
    for each in inputs:
        if each.kind != CAPTURE:
            return ""
        try:
            check_capture(each.path)
        except WireError as error:
            error.hint = tables_around(each.name) or error.hint
            refusal = refusal or f"{each.name}: {advised(error, each.path)}"
        except OSError as error:
            refusal = refusal or f"{each.name}: {error.strerror or error}"
        else:
            return ""
    return refusal


def table_batches(
    job: Job,
    table: str,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | None = None,
    *,
    ports: frozenset[int] = frozenset(),
    summary: Summary | None = None,
    keep: Callable[[Carried], object] | None = None,
    part: Part | None = None,
    flows: FlowShare | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of one table, file by file, in batches of about 16 MiB.

    Args:
        job: the files, and the choice of protocols. A capture that continues is read even if no row is requested.
        table: ``packets``, or a table of captures and stored files.
        columns: the columns to return, in this order; by default all.
        filter: the rows to return; files that cannot contain any of them are not read.
        ports: if not empty, only segments from or to one of these ports.
        summary: receives the counts.
        keep: receives the state of a capture that continues, after its files were read.
        part: the part to read of a single stored file.
        flows: the flows to read of a single capture, without ``ports``; see ``captured_batches``.
    """
    summary = Summary() if summary is None else summary
    schema = READABLE[table].schema
    chosen = schema.names if columns is None else list(columns)
    needed = _needed(table, chosen, filter)
    job = replace(job, values=job.values and "value" in needed.names)
    size = sum(each.size for each in job.captures)
    for files in captures(job.inputs):
        continuation = job.continuations.get(files[0].number)
        carried = None if continuation is None else Carried(continuation, job.choice)
        if filter is not None and carried is None and not may_have_rows(files, filter, schema, job.road):
            continue
        if files[0].kind != CAPTURE:
            tables: Iterator[tuple[str, Any]] = stored_batches(files[0], job, summary, {table: needed}, part)
        elif table == PACKETS.name:
            tables = ((table, batch) for batch in packet_batches(files, ports=ports, table=needed))
        elif ports:
            rows = sorted_packets(files, ports, carried=carried)
            tables = flow_batches(rows, job, summary, {table: needed}, carried)
        else:
            chosen_road = replace(job, road=road_among(size, files, job.road))
            tables = captured_batches(files, chosen_road, summary, {table: needed}, carried=carried, flows=flows)
        for name, batch in tables:
            if name == table:
                yield (batch if filter is None else _filtered(batch, filter)).select(chosen)
        if keep is not None and carried is not None and carried.goes_on:
            keep(carried)


def _filtered(batch: pa.RecordBatch, filter: pc.Expression) -> pa.RecordBatch:
    """The rows that a filter selects.

    Raises:
        Misuse: the filter cannot be computed for a row, as a division by zero.
    """
    try:
        return batch.filter(filter)
    except pa.ArrowInvalid as error:
        raise Misuse(f"the filter {filter} cannot be computed for a row: {error}") from None


def ended_batches(
    continuation: Continuation, job: Job, table: str, columns: Sequence[str], filter: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """The open rows at the end of a capture's files, when no more files come; arguments as above."""
    tables = {table: _needed(table, columns, filter)}
    for _, batch in flow_batches((), job, tables=tables, carried=Carried(continuation, job.choice)):
        yield (batch if filter is None else batch.filter(filter)).select(columns)


def _needed(table: str, columns: Iterable[str], filter: pc.Expression | None) -> Table:
    """The table, reduced to the columns that are read."""
    full_table = READABLE[table]
    if table == CONNECTIONS.name:
        return full_table  # the account of a connection's bytes needs all of its columns
    names = {*columns, *(() if filter is None else columns_of(filter, full_table.schema))}
    return full_table.only(names or {full_table.names[0]})
