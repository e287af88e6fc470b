"""Writes the tables by columns from rows of the table ``packets``, window by window, for tasks of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.pipeline.flows import Batch, Writer, packet_tuples
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.shuffle import PacketWindow
from wirekit.pipeline.summary import Summary
from wirekit.road.deferred import LongFlow
from wirekit.road.packets import Endpoints, Packets
from wirekit.road.tables import RELEASING, CaptureTables
from wirekit.road.windows import Window
from wirekit.tables.columns import FROM_INPUTS, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray


def flow_batches(
    windows: Iterable[PacketWindow],
    job: Job,
    summary: Summary,
    tables: Mapping[str, Table] = FROM_INPUTS,
    long: LongFlow | None = None,
) -> Iterator[Batch]:
    """The tables of rows of ``packets`` by columns, the same as of ``wirekit.pipeline.flows.flow_batches``.

    Args:
        windows: rows of the table ``packets``, capture by capture.
        job: the numbered captures, and the choice of protocols.
        summary: receives the counts.
        tables: the tables to return, with their requested columns.
        long: stores frames for other tasks to decode, if all rows are of one flow.
    """
    writer = Writer(job, summary, tables)
    made: CaptureTables | None = None
    for number, (capture, rows, clock, last) in enumerate(windows, 1):
        notes = rows["note"].is_valid()
        for _, found in groupby(packet_tuples(rows.filter(notes).to_batches()), key=itemgetter(0)):
            yield from writer.flow(found)
        if made is None:
            files = [each.number for each in job.inputs if each.capture == capture]
            endpoints = Endpoints()
            made = CaptureTables(job.capture_name(capture), files, endpoints, job, writer, tables, long=long)
        segments = rows.filter(pc.invert(notes)) if pc.any(notes).as_py() else rows
        packets = _packets(segments, capture, endpoints)
        yield from made.window(Window(packets, clock, last, 0))
        if last:
            made = None
        if number % RELEASING == 0:
            pa.default_memory_pool().release_unused()
    yield from writer.rest()


def _packets(rows: pa.Table, capture: int, endpoints: Endpoints) -> Packets:
    """Rows as arrays."""
    batch = rows.combine_chunks()
    plain = {name: _array(batch[name]) for name in ("ts_us", "sequence", "acknowledgment", "length", "position")}
    payload = batch["payload"].chunk(0) if rows.num_rows else pa.array([], pa.binary())
    offsets = np.frombuffer(payload.buffers()[1] or b"", np.int32)[payload.offset :][: rows.num_rows + 1]
    data = payload.buffers()[2]
    return Packets(
        time=plain["ts_us"],
        source=_numbers(batch["source"], endpoints),
        target=_numbers(batch["target"], endpoints),
        sequence=plain["sequence"],
        acknowledgment=plain["acknowledgment"],
        flags=_array(batch["flags"]).astype(np.int64),
        begin=offsets[:-1].astype(np.int64),
        size=np.diff(offsets).astype(np.int64),
        length=plain["length"],
        endpoints=endpoints,
        data=memoryview(b"" if data is None else data).toreadonly(),
        position=plain["position"],
        file=_array(batch["file_no"]) - capture,
    )


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    """Can be written to, as what the serial driver has: kernels are compiled for one kind of array."""
    return np.array(column.to_numpy())


def _numbers(column: pa.ChunkedArray, endpoints: Endpoints) -> NDArray[Any]:
    """Endpoints as numbers."""
    texts = column.combine_chunks().dictionary_encode()
    texts = texts if isinstance(texts, pa.Array) else texts.chunk(0)
    known = np.array([endpoints.number(text) for text in texts.dictionary.to_pylist()], np.int64)
    return known[np.asarray(texts.indices)] if known.size else np.zeros(0, np.int64)
