"""The driver in one process: reads the captures one after the other, with the functions that tasks use."""

from __future__ import annotations

import functools
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Unpack

import pyarrow as pa
import pyarrow.compute as pc

from wirekit.pipeline.bundles import BUNDLE_BYTES
from wirekit.pipeline.carried import Carried
from wirekit.pipeline.clock_steps import STRETCH, stretches
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.inputs import CAPTURE, FlowShare, Input, Job, captures
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.roads import captures_by_columns, road_among
from wirekit.pipeline.rows import Batch
from wirekit.pipeline.run import READING, Options, Progress, Reached, Result, publish
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.stored import stored_batches
from wirekit.pipeline.summary import Summary
from wirekit.storage import ReadAhead
from wirekit.stored import Part
from wirekit.tables.columns import FROM_INPUTS, PACKETS, Table

SLICE_ROWS = 4096
_KEYS = pa.schema([PACKETS.schema.field(key) for key in (*PACKETS.sort, "note")])


def run(
    job: Job,
    output: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    bundle: int = BUNDLE_BYTES,
    **options: Unpack[Options],
) -> Result:
    """Adds the tables of captures to a lake; inputs that the lake already has are not read again.

    Args:
        job: the inputs and options.
        output: the lake, a directory or the URI of a prefix; see ``wirekit.pipeline.output``.
        progress: called with the progress, after each window of a capture that columns read, and after each capture.
        bundle: approximate size in bytes of the captures that are committed together.
        options: see ``publish``.

    Raises:
        Misuse: ``output`` has files that wirekit did not write, or was written with other options.
    """

    def work(part: Job, attempts: str, reached: Reached) -> list[Manifest]:
        with Sink(attempts, 0, "serial") as sink:
            return [sink.finish(write(captures(part.inputs), part, sink, functools.partial(reached, READING)))]

    return publish(job, output, "serial", work, progress, bundle=bundle, **options)


def write(
    groups: Sequence[Sequence[Input]],
    job: Job,
    sink: Sink,
    progress: Callable[[int], object] | None = None,
    part: Part | None = None,
) -> Summary:
    """Writes the tables of captures and of stored files, one after the other; small objects are fetched ahead.

    Args:
        groups: the files of each capture, and each stored file.
        job: the choice of protocols, and the road.
        sink: receives the rows.
        progress: called with the number of bytes read so far.
        part: the part to read of a stored file.

    Returns:
        The counts.
    """
    with ReadAhead((each.path, each.size) for files in groups for each in files):
        return _written(groups, job, sink, progress, part)


def _written(
    groups: Sequence[Sequence[Input]],
    job: Job,
    sink: Sink,
    progress: Callable[[int], object] | None,
    part: Part | None,
) -> Summary:
    summary, processed = Summary(), 0
    size = sum(each.size for files in groups for each in files if each.kind == CAPTURE)
    for files in groups:

        def reached(size: int, before: int = processed) -> None:
            if progress is not None:
                progress(before + size)

        continuation = job.continuations.get(files[0].number)
        carried = None if continuation is None else Carried(continuation, job.choice)
        stored = files[0].kind != CAPTURE
        batches = (
            stored_batches(files[0], job, summary, part=part)
            if stored
            else captured_batches(
                files, replace(job, road=road_among(size, files, job.road)), summary, progress=reached, carried=carried
            )
        )
        for table, batch in batches:
            sink.write(table, batch)
        if carried is not None and carried.goes_on:
            sink.carry(carried)
        processed += sum(each.size for each in files) if part is None else part.size(files[0].size)
        reached(0, processed)
    return summary


def captured_batches(
    files: Sequence[Input],
    job: Job,
    summary: Summary,
    tables: Mapping[str, Table] = FROM_INPUTS,
    *,
    progress: Callable[[int], object] | None = None,
    carried: Carried | None = None,
    flows: FlowShare | None = None,
) -> Iterator[Batch]:
    """The rows of one capture, in one file or more, by table.

    Args:
        files: its files, in order.
        job: the choice of protocols, and the road.
        summary: receives the counts.
        tables: the tables to return, with their requested columns.
        progress: called with the bytes of the capture read so far, if this is known on the way.
        carried: its state, if other bundles have files of it.
        flows: the flows to read, None for all. If objects must read the capture, the first share has all of them.
    """
    batches = None
    if captures_by_columns(files, job.road):
        from wirekit.road.tables import captured

        batches = captured(files, job, summary, tables, progress, carried=carried, flows=flows)
    if batches is not None:
        return batches
    if flows is not None and flows.number:
        return iter(())
    summary.file(files[0].name if carried is None else carried.name)  # a capture without packets counts, too
    return flow_batches(sorted_packets(files, road=job.road, carried=carried), job, summary, tables, carried)


def sorted_packets(
    files: Sequence[Input],
    ports: frozenset[int] = frozenset(),
    road: str = "auto",
    carried: Carried | None = None,
) -> Iterator[pa.RecordBatch]:
    """The packets of one capture, sorted for ``flow_batches``.

    The packets of the capture are in memory; columns hold those of one window. For larger captures, sorted runs
    would be written to disk and merged here.

    Args:
        files: the files of the capture.
        ports: if not empty, only segments from or to one of these ports.
        road: as in ``Job``.
        carried: receives the latest time.
    """
    batches = list(packet_batches(files, ports=ports, road=road))
    if carried is not None:
        rows = pa.Table.from_batches([batch.select(_KEYS.names) for batch in batches], _KEYS)
        stretch = stretches(rows)
        rows = rows.filter(pc.and_(pc.equal(stretch, pc.max(stretch)), rows["note"].is_null()))
        latest = pc.max(rows["ts_us"]).as_py() or 0
        set_back = len(stretch) and stretch[-1].as_py()
        carried.clock_us = latest if set_back else max(carried.clock_us, latest)
    return in_order(batches)


def in_order(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the table ``packets`` in the order of the files, sorted for ``flow_batches``.

    Where the clock was set back, the order is that of the files. The rows may have the column ``STRETCH``.
    """
    keys = pa.Table.from_batches([batch.select(_KEYS.names) for batch in batches], _KEYS)
    numbered = bool(batches) and STRETCH in batches[0].schema.names
    stretch = pa.chunked_array([batch[STRETCH] for batch in batches]) if numbered else stretches(keys)
    flow, *others = PACKETS.sort
    if pc.max(stretch).as_py():
        keys, others = keys.append_column(STRETCH, stretch), [STRETCH, *others]
    order = pc.sort_indices(keys, sort_keys=[(key, "ascending") for key in (flow, *others)])
    starts = [0, *accumulate(batch.num_rows for batch in batches)]
    for start in range(0, len(order), SLICE_ROWS):
        yield from gathered(batches, starts, order.slice(start, SLICE_ROWS)).to_batches()


def gathered(batches: list[pa.RecordBatch], starts: list[int], numbers: pa.Array) -> pa.Table:
    """The rows with these numbers, in this order.

    ``Table.take`` would first join all batches, which fails for 2 GiB of payload.

    Args:
        batches: at least one.
        starts: the number of the first row of each batch, and the number of all rows.
        numbers: the numbers.
    """
    ascending = pc.sort_indices(numbers)
    in_order = numbers.take(ascending).cast(pa.int64())
    plain = in_order.to_pylist()
    pieces = []
    begin = 0
    while begin < len(plain):
        index = bisect_right(starts, plain[begin]) - 1
        end = bisect_left(plain, starts[index + 1], begin)
        pieces.append(batches[index].take(pc.subtract(in_order.slice(begin, end - begin), starts[index])))
        begin = end
    return pa.Table.from_batches(pieces, batches[0].schema).take(pc.sort_indices(ascending))
