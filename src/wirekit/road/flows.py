"""Rows of the table ``packets``, sorted by flow and time, to the tables by columns: what Spark has shuffled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirekit.pipeline.flows import Batch, Writer, packet_tuples
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.summary import Summary
from wirekit.road.deferred import LongFlow
from wirekit.road.packets import Endpoints, Packets
from wirekit.road.tables import CaptureTables
from wirekit.road.windows import WINDOW, Window
from wirekit.tables.columns import FROM_INPUTS, PACKETS, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray


HEADER = 64
"""As how many bytes a segment counts beside its payload, so that those without any fill a window, too."""


class _Part(NamedTuple):
    """Segments of one capture: whole flows, or a part of one; ``last`` says that no flow of them goes on."""

    capture: int
    rows: pa.Table
    last: bool


def flow_batches(
    batches: Iterable[pa.RecordBatch],
    job: Job,
    summary: Summary,
    tables: Mapping[str, Table] = FROM_INPUTS,
    window: int = WINDOW,
    long_flow: Callable[[int], LongFlow] | None = None,
) -> Iterator[Batch]:
    """The tables of packets, as ``wirekit.pipeline.flows.flow_batches`` gives them, by columns.

    Args:
        batches: rows of the table ``packets``, sorted by (flow, ts_us, file_no, position); all rows of a flow.
        job: the captures by number, and how protocols are chosen.
        summary: is counted up.
        tables: those that are wanted, with the columns that are.
        window: bytes that are treated at once, about.
        long_flow: gives what takes the rows of a flow that is longer than a window, and what is left to decode of it;
            the flow is ended when it is left. By default they are given as the others.
    """
    writer = Writer(job, summary, tables)
    made: CaptureTables | None = None
    long: LongFlow | None = None
    with ExitStack() as stack:
        for part in _parts(batches, job, window):
            if isinstance(part, list):
                yield from writer.flow(part)
                continue
            if made is None:
                if not part.last and long_flow is not None:
                    long = stack.enter_context(long_flow(part.rows["flow"][0].as_py()))
                files = [each.number for each in job.inputs if each.capture == part.capture]
                endpoints = Endpoints()
                taker = writer if long is None else Writer(job, long.summary, tables)
                made = CaptureTables(job.capture_name(part.capture), files, endpoints, job, taker, tables, long=long)
            packets = _packets(part.rows, part.capture, endpoints)
            clock = int(packets.time.max()) if packets.time.size else 0
            found = made.window(Window(packets, clock, part.last, 0))
            if long is None:
                yield from found
            else:
                for table, batch in chain(found, taker.rest() if part.last else ()):
                    long.sink.write(table, batch)
            if part.last:
                made = long = None
        yield from writer.rest()


class _Run(NamedTuple):
    """Segments of one flow that stand together; ``size`` bytes of payload and of ``HEADER`` each."""

    flow: int
    capture: int
    rows: pa.RecordBatch
    size: int


Notes = list[tuple[Any, ...]]
"""The rows that are notes on a file."""


def _runs(batches: Iterable[pa.RecordBatch], job: Job) -> Iterator[_Run | Notes]:
    for rows in batches:
        notes = rows["note"].is_valid()
        for _, found in groupby(packet_tuples([rows.filter(notes)]), key=itemgetter(0)):
            yield list(found)
        batch = rows.filter(pc.invert(notes))
        flows = np.asarray(batch["flow"])
        ends = np.flatnonzero(np.append(flows[1:] != flows[:-1], flows.size > 0)) + 1
        sizes = np.append(0, np.cumsum(np.asarray(pc.binary_length(batch["payload"])), dtype=np.int64))
        for begin, end in pairwise([0, *ends.tolist()]):
            capture = job.inputs[batch["file_no"][begin].as_py()].capture
            size = int(sizes[end] - sizes[begin]) + HEADER * (end - begin)
            yield _Run(int(flows[begin]), capture, batch.slice(begin, end - begin), size)


def _parts(batches: Iterable[pa.RecordBatch], job: Job, window: int) -> Iterator[_Part | Notes]:
    """Segments in parts of about a window, and notes."""
    held: list[_Run] = []
    size = 0  # of those
    first = 0  # of the runs that are of the last flow
    before: _Run | None = None
    cut = False  # whether an earlier part has the beginning of the last flow
    for run in _runs(batches, job):
        if isinstance(run, list):
            yield run
            continue
        full = size >= window
        if before is not None and run.flow != before.flow:
            if full or cut or run.capture != before.capture:
                yield _part(before.capture, held, last=True)
                held, size, cut = [], 0, False
            first = len(held)
        elif before is not None and full:
            if first:
                yield _part(before.capture, held[:first], last=True)
                held, first = held[first:], 0
                size = sum(each.size for each in held)
            if size >= window:
                yield _part(before.capture, held, last=False)
                held, size, cut = [], 0, True
        held.append(run)
        size += run.size
        before = run
    if before is not None:
        yield _part(before.capture, held, last=True)


def _part(capture: int, runs: list[_Run], *, last: bool) -> _Part:
    return _Part(capture, pa.Table.from_batches([run.rows for run in runs], PACKETS.schema), last)


def _packets(rows: pa.Table, capture: int, endpoints: Endpoints) -> Packets:
    """Rows as arrays."""
    batch = rows.combine_chunks()
    plain = {name: _array(batch[name]) for name in ("ts_us", "sequence", "acknowledgment", "length", "position")}
    payload = pa.concat_arrays(batch["payload"].chunks) if rows.num_rows else pa.array([], pa.binary())
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
        data=memoryview(b"" if data is None else data),
        position=plain["position"],
        file=_array(batch["file_no"]) - capture,
    )


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.to_numpy())


def _numbers(column: pa.ChunkedArray, endpoints: Endpoints) -> NDArray[Any]:
    """Endpoints as numbers."""
    texts = column.combine_chunks().dictionary_encode()
    texts = texts if isinstance(texts, pa.Array) else texts.chunk(0)
    known = np.array([endpoints.number(text) for text in texts.dictionary.to_pylist()], np.int64)
    return known[np.asarray(texts.indices)] if known.size else np.zeros(0, np.int64)
