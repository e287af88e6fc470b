"""Writes the tables by columns from rows of the table ``packets``, window by window, for tasks that share a capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wirekit.pipeline.clock_steps import STRETCH
from wirekit.pipeline.flows import Writer, packet_tuples
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.shuffle import PacketWindow
from wirekit.pipeline.summary import Summary
from wirekit.road.deferred import LongFlow
from wirekit.road.packets import Endpoints, Packets
from wirekit.road.tables import RELEASING, CaptureTables
from wirekit.road.windows import Window
from wirekit.storage import FileRange, local
from wirekit.tables.columns import FROM_INPUTS, PACKETS, Table

_Payloads = tuple[memoryview, "NDArray[Any]", "NDArray[Any]", FileRange | None]
"""Bytes with payloads, the start and size of each payload, and the range of a file that has these bytes, or None."""


def flow_batches(
    windows: Iterable[PacketWindow],
    job: Job,
    summary: Summary,
    tables: Mapping[str, Table] = FROM_INPUTS,
    long: LongFlow | None = None,
) -> Iterator[Batch]:
    """The tables of shuffled packets by columns, the same as of ``wirekit.pipeline.flows.flow_batches``.

    Args:
        windows: the windows, capture by capture.
        job: the numbered captures, and the choice of protocols.
        summary: receives the counts.
        tables: the tables to return, with their requested columns.
        long: stores frames for other tasks to decode, if all rows are of one flow.
    """
    writer = Writer(job, summary, tables)
    capture_tables: CaptureTables | None = None
    for number, (capture, rows, clock, later, last, _) in enumerate(windows, 1):
        notes = rows["note"].is_valid()
        with_notes = rows.select(PACKETS.names).filter(notes).to_batches()
        for _, group in groupby(packet_tuples(with_notes), key=itemgetter(0)):
            yield from writer.flow(group)
        if capture_tables is None:
            files = [each.number for each in job.inputs if each.capture == capture]
            endpoints = Endpoints()
            capture_tables = CaptureTables(job.capture_name(capture), files, endpoints, job, writer, tables, long=long)
        segments = rows.filter(pc.invert(notes)) if pc.any(notes).as_py() else rows
        packets = _packets(segments, capture, endpoints, job)
        stretch = _array(segments[STRETCH])
        yield from capture_tables.window(Window(packets, clock, later, last, 0, stretch=stretch))
        if last:
            capture_tables = None
        if number % RELEASING == 0:
            pa.default_memory_pool().release_unused()
    yield from writer.flush()


def _packets(rows: pa.Table, capture: int, endpoints: Endpoints, job: Job) -> Packets:
    """Rows as arrays, with their payloads."""
    data, begin, size, origin = _payloads(rows, job)
    batch = rows.drop_columns(["payload"]).combine_chunks()
    plain = {name: _array(batch[name]) for name in ("ts_us", "sequence", "acknowledgment", "length", "position")}
    return Packets(
        time=plain["ts_us"],
        source=_numbers(batch["source"], endpoints),
        target=_numbers(batch["target"], endpoints),
        sequence=plain["sequence"],
        acknowledgment=plain["acknowledgment"],
        flags=_array(batch["flags"]).astype(np.int64),
        begin=begin,
        size=size,
        length=plain["length"],
        endpoints=endpoints,
        data=data,
        position=plain["position"],
        file=_array(batch["file_no"]) - capture,
        origin=origin,
    )


def _payloads(rows: pa.Table, job: Job) -> _Payloads:
    """The payloads of rows."""
    parts = [_read_again(each, job) or _included(each) for each in rows.to_batches() if each.num_rows]
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(data.nbytes for data, *_ in parts)]).tolist()
    none = [np.zeros(0, np.int64)]
    begins = [begin + end for (_, begin, *_), end in zip(parts, ends, strict=False)]
    sizes = [size for _, _, size, _ in parts]
    data = memoryview(b"".join(data for data, *_ in parts))
    return data, np.concatenate(begins or none), np.concatenate(sizes or none), None


def _included(batch: pa.RecordBatch) -> _Payloads:
    """The payloads that a batch has."""
    payload = batch["payload"]
    offsets = np.frombuffer(payload.buffers()[1], np.int32)[payload.offset :][: len(payload) + 1].astype(np.int64)
    data = memoryview(payload.buffers()[2] or b"").toreadonly()
    return data[offsets[0] : offsets[-1]], offsets[:-1] - offsets[0], np.diff(offsets), None


def _read_again(batch: pa.RecordBatch, job: Job) -> _Payloads | None:
    """The payloads that a batch has in a capture file; None if it includes them."""
    if batch["captured"].null_count:
        return None
    position, size = (np.array(batch[name]) for name in ("position", "captured"))
    first = int(position.min())
    origin = FileRange(local(job.inputs[batch["file_no"][0].as_py()].path), first, int((position + size).max()) - first)
    return memoryview(origin.read()), position - first, size, origin


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    """A writable array, as in the serial driver, because kernels are compiled for one type of array."""
    return np.array(column.to_numpy())


def _numbers(column: pa.ChunkedArray, endpoints: Endpoints) -> NDArray[Any]:
    """Endpoints as numbers."""
    texts = column.combine_chunks().dictionary_encode()
    texts = texts if isinstance(texts, pa.Array) else texts.chunk(0)
    numbers = np.array([endpoints.number(text) for text in texts.dictionary.to_pylist()], np.int64)
    return numbers[np.asarray(texts.indices)] if numbers.size else np.zeros(0, np.int64)
