"""The driver on Spark: a task reads whole captures, as the serial driver does; one that dominates is shuffled by flow.

A capture is shuffled if one task would read it while the others have nothing left to do. Its packets are read in
parallel then, and each task follows its flows, on the road that the capture would take as a whole.

Spark's own writer is not used. After the flows there is no shuffle, so each task writes its Parquet files itself, into
a directory of its attempt, and gives Spark one manifest row; the driver publishes the files of the manifests that came
back. Of 140-byte rows on two cores this took 2.9 million a second, Spark's writer 0.84. It needs a directory that all
workers see.

Nothing may stand between the sort and the tasks: a ``coalesce``, ``repartition`` or rebalancing hint there would cut
flows in two.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema

from wirekit.pipeline.bundles import BUNDLE_BYTES
from wirekit.pipeline.carried import IDLE_US
from wirekit.pipeline.deferred import DecodedUnits, Outstanding, Unit, completed
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.inputs import CAPTURE, Input, Job, Split, captures, renumbered
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.roads import by_columns
from wirekit.pipeline.run import READING, Progress, Reached, Result, publish
from wirekit.pipeline.serial import write
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.summary import Summary
from wirekit.spark.source import bundles
from wirekit.tables.columns import PACKETS

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

    from wirekit.road.deferred import LongFlow
    from wirekit.road.splits import Range, Walked

MANIFEST_SCHEMA = "manifest string"
PARTITION_BYTES = 64 << 20
WAVES = 4
"""Tasks of a bundle for each core."""
LEAST_SPLIT = 4 << 20
"""Bytes of a capture below which the shuffle takes longer than the capture."""
FILE_BYTES = 1 << 14
"""As how many bytes opening a file counts."""
POLL_SECONDS = 0.2
SHUFFLING, FOLLOWING = "reading packets", "following connections"
"""Stages of captures that are shuffled; each counts as half of their bytes."""
DECODING = "decoding long connections"
WINDOW = 32 << 20
"""Bytes of shuffled packets that a task follows at once."""
AT_ONCE = 64 << 20
"""Bytes of a long connection that are decoded by the task that follows it; the others are left to other tasks, of
which each decodes as many at least."""

LEAD = 4
"""How many times as much processor time a capture takes by columns if it is shuffled, about."""

Group = tuple[Input, ...]
"""The files of a capture, or a stored file."""

Task = Callable[[Job, str, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a task of Spark does: job, folder of attempts, and its rows; it gives the manifest of what it wrote, or other
rows that say what it found."""

OnSpark = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""The same, as Spark calls it."""

Part = tuple[Group, Split | None]
"""What a task reads to shuffle it: some files, or a part of one."""

Run = tuple[int, list[Unit]]
"""A flow, and units of it that one task decodes."""


def run(
    job: Job,
    output: str | os.PathLike[str],
    spark: SparkSession,
    progress: Progress | None = None,
    *,
    around: Callable[[Task], Task] | None = None,
    shuffled: bool | None = None,
    bundle: int | None = None,
    replace: bool = False,
    form: str | None = None,
    rotating: bool = False,
    idle_us: int = IDLE_US,
) -> Result:
    """Makes the tables of the captures; the same as ``wirekit.pipeline.serial.run`` makes.

    Args:
        job: what to do.
        output: the lake: a directory that all workers see, or the URI of a prefix.
        spark: a session as ``wirekit.spark.session.session`` gives it.
        progress: is told how far the run is, as tasks end.
        around: gives what each task does instead, from what it would do.
        shuffled: whether captures are shuffled by flow; None for those that would keep one task busy alone.
        bundle: bytes of captures that are committed together, about; by default what keeps all cores busy, and then no
            capture is cut: one task reads what a bundle has of a capture that other bundles have, too.
        replace: whether what the lake has is replaced, when all is complete.
        form, rotating, idle_us: of the tables, see ``publish``.

    Raises:
        Misuse: ``output`` holds something that is not wirekit's, or was made with other options.
    """
    cores = spark.sparkContext.defaultParallelism

    def work(part: Job, attempts: str, reached: Reached) -> list[Manifest]:
        groups = captures(part.inputs)
        whole = [each for each in groups if each[0].number not in part.continuations]
        split = [each for each in whole if each[0].kind == CAPTURE and shuffled]
        if shuffled is None:
            split = [each for each in dominating(groups, part.road, cores) if each in whole]
        tasks = packed([each for each in groups if each not in split], cores * WAVES)
        manifests: list[Manifest] = []
        size = sum(map(_size, split))
        finished = spark.sparkContext.accumulator(0)
        if tasks:
            reader = functools.partial(read_whole, tasks, finished)
            with _watched(spark, None if progress is None else lambda _: reached(READING, finished.value)):
                rows = _by_number(spark, len(tasks), _task(reader, part, attempts, around))
            manifests += map(Manifest.loads, rows)
            reached(READING, part.size - size)
        if split:
            count = max(cores, -(-size // PARTITION_BYTES))
            # The packets have the numbers that these captures have without the others.
            alone = dataclasses.replace(part, inputs=renumbered(split), continuations={})
            on_spark = functools.partial(_task, job=alone, attempts=attempts, around=around)
            parts = _parts(spark, alone, on_spark)
            read = on_spark(functools.partial(read_parts, parts))
            largest = max(map(_size, split))

            def told(shares: Sequence[float]) -> None:
                stage = (SHUFFLING, FOLLOWING)[len(shares) > 1]
                reached(stage, part.size - size + int(size * sum(shares) / 2))

            follow = functools.partial(follow_partition, largest, (WINDOW, AT_ONCE))
            with _watched(spark, None if progress is None else told):
                rows = _flows(spark, len(parts), count, read, on_spark(follow))
            reached(FOLLOWING, part.size)
            found = list(map(Outstanding.loads, rows))
            manifests += [Manifest.loads(row) for row, each in zip(rows, found, strict=True) if each is None]
            long = [each for each in found if each is not None]
            if long:
                reached(DECODING, part.size)
                runs = _runs(long)
                decode = functools.partial(decode_units, runs)
                rows = _by_number(spark, len(runs), on_spark(decode))
                decoded = [DecodedUnits.loads(row) for row in rows]
                more, again = completed(attempts, long, decoded)
                manifests += more
                if again:
                    follow = functools.partial(follow_partition, largest, (WINDOW, None))
                    rows = _flows(spark, len(parts), count, read, on_spark(follow), again)
                    manifests += map(Manifest.loads, rows)
        return [dataclasses.replace(each, task=task) for task, each in enumerate(manifests)]

    size = bundle_bytes(captures(job.inputs), cores) if bundle is None else bundle
    return publish(
        job,
        output,
        "spark",
        work,
        progress,
        bundle=size,
        replace=replace,
        form=form,
        rotating=rotating,
        idle_us=idle_us,
        cut=bundle is not None,
    )


def _parts(spark: SparkSession, job: Job, on_spark: Callable[[Task], OnSpark]) -> list[Part]:
    """What each task reads of the captures: a part of a large file, or small files together."""
    parts: list[Part] = []
    others: list[Group] = []
    for file in job.inputs:
        found = _splits(spark, file, on_spark) if by_columns(file.size, job.road) else []
        parts += (((file,), each) for each in found)
        others += [] if found else [(file,)]
    return [*parts, *((files, None) for files in bundles(others))]


def _splits(spark: SparkSession, file: Input, on_spark: Callable[[Task], OnSpark]) -> list[Split]:
    """The parts of a large file; none of one that a task reads as a whole."""
    if file.size < 2 * PARTITION_BYTES:
        return []
    from wirekit.road.splits import loads, splits

    def walks(ranges: Sequence[Range]) -> list[Walked | None]:
        walk = on_spark(functools.partial(walk_ranges, file, ranges))
        return [loads(json.loads(row)) for row in _by_number(spark, len(ranges), walk)]

    return splits(file, PARTITION_BYTES, walks)


def _flows(
    spark: SparkSession, parts: int, count: int, read: OnSpark, follow: OnSpark, flows: Sequence[int] = ()
) -> list[str]:
    """What tasks say that follow all flows, or some, which are shuffled into so many tasks.

    Args:
        spark: the session.
        parts: how many tasks read packets.
        count: how many tasks follow flows.
        read, follow: what these tasks do.
        flows: those that are followed, if not all.
    """
    numbers = spark.range(0, parts, 1, parts)
    packets = numbers.mapInArrow(read, from_arrow_schema(PACKETS.schema))
    if flows:
        packets = packets.where(packets["flow"].isin(list(flows)))
    sorted_flows = packets.repartition(count, "flow").sortWithinPartitions(*PACKETS.sort)
    return [row.manifest for row in sorted_flows.mapInArrow(follow, MANIFEST_SCHEMA).collect()]


def _by_number(spark: SparkSession, count: int, function: OnSpark) -> list[str]:
    """What tasks say of which each gets its number."""
    if not count:
        return []
    numbers = spark.range(0, count, 1, count)
    return [row.manifest for row in numbers.mapInArrow(function, MANIFEST_SCHEMA).collect()]


def _task(task: Task, job: Job, attempts: str, around: Callable[[Task], Task] | None) -> OnSpark:
    return functools.partial(task if around is None else around(task), job, attempts)


def bundle_bytes(groups: Sequence[Group], cores: int) -> int:
    """Bytes of a bundle that keeps all cores busy: of ``WAVES`` tasks a core, which read one capture at least.

    >>> bundle_bytes([], 800) >> 30
    200
    """
    mean = sum(map(_size, groups)) // max(len(groups), 1)
    return max(BUNDLE_BYTES, cores * WAVES * max(PARTITION_BYTES, mean))


def dominating(groups: Sequence[Group], road: str, cores: int) -> list[Group]:
    """The captures that one task would still read when all others are done.

    Args:
        groups: all of a bundle.
        road: as in ``Job``.
        cores: tasks that run at once.
    """
    share = sum(_size(each) for each in groups) / cores
    found = []
    for group in groups:
        size = _size(group)
        # By objects a task holds all packets of a capture in memory.
        most = LEAD * share if by_columns(size, road) else min(share, PARTITION_BYTES)
        if group[0].kind == CAPTURE and size > max(most, LEAST_SPLIT):
            found.append(group)
    return found


def packed(groups: Sequence[Group], count: int) -> list[list[Group]]:
    """The groups of so many tasks at most, of about the same size; large ones come first."""
    if not groups:
        return []
    tasks: list[tuple[int, int, list[Group]]] = [(0, number, []) for number in range(min(count, len(groups)))]
    for group in sorted(groups, key=_size, reverse=True):
        size, number, files = tasks[0]
        files.append(group)
        # An empty file takes time, too.
        heapq.heapreplace(tasks, (size + _size(group) + FILE_BYTES, number, files))
    return [files for _, _, files in sorted(tasks, reverse=True)]


def _size(group: Group) -> int:
    return sum(each.size for each in group)


def read_whole(
    tasks: Sequence[Sequence[Group]],
    finished: Accumulator[int],
    job: Job,
    attempts: str,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Reads the captures and stored files of the tasks whose numbers come in; gives their manifests.

    Args:
        tasks: of each task, what it reads.
        finished: counts the bytes of the tasks that have ended.
        job: the job of the bundle.
        attempts: the folder of attempts.
        batches: the numbers.
    """
    for batch in batches:
        for number in batch["id"].to_pylist():
            with Sink(attempts, number, _attempt("whole", number)) as sink:
                manifest = sink.finish(write(tasks[number], job, sink))
            finished.add(sum(map(_size, tasks[number])))
            yield pa.record_batch({"manifest": [manifest.dumps()]})


def walk_ranges(
    file: Input, ranges: Sequence[Range], job: Job, attempts: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Walks over the ranges of a large file whose numbers come in.

    Args:
        file: the file.
        ranges: all of its ranges.
        job: not looked at.
        attempts: not looked at.
        batches: the numbers.
    """
    from wirekit.road.splits import walk

    for batch in batches:
        for number in batch["id"].to_pylist():
            found = walk(file.path, file.size, ranges[number])
            yield pa.record_batch({"manifest": [json.dumps(None if found is None else found.dumps())]})


def read_parts(
    parts: Sequence[Part], job: Job, attempts: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Reads the parts whose numbers come in; gives rows of the table ``packets``.

    Args:
        parts: of each task, what it reads.
        job: with the captures that are shuffled, and no others.
        attempts: not looked at.
        batches: the numbers.
    """
    for batch in batches:
        for number in batch["id"].to_pylist():
            files, split = parts[number]
            yield from packet_batches(files, road=job.road, split=split)


def _attempt(what: str, number: int) -> str:
    """A name that no other attempt has."""
    context = TaskContext.get()
    return f"{what}-{number:05}-{context.attemptNumber() if context else 0}-{uuid.uuid4().hex}"


def follow_partition(
    size: int, most: tuple[int, int | None], job: Job, attempts: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Follows the flows of one partition into files of this attempt; gives its manifest, and those of long flows.

    Args:
        size: bytes of the largest capture, which decide the road.
        most: bytes that are followed at once, and those of a long flow that are decoded here; None for all.
        job: with the captures that are shuffled, and no others.
        attempts: the folder of attempts.
        batches: rows of the table ``packets``.
    """
    context = TaskContext.get()
    number = context.partitionId() if context else 0
    summary = Summary()
    long: list[LongFlow] = []
    window, before = most
    # Spark knows of columns that a filter names that they are never null.
    packets = (batch.cast(PACKETS.schema) for batch in batches)
    if by_columns(size, job.road):
        from wirekit.road import deferred, flows

        def long_flow(flow: int) -> LongFlow:
            long.append(deferred.LongFlow(attempts, number, _attempt("long", number), flow, before or 0))
            return long[-1]

        deferring = None if before is None else long_flow
        found = flows.flow_batches(packets, job, summary, window=window, long_flow=deferring)
    else:
        found = flow_batches(packets, job, summary)
    with Sink(attempts, number, _attempt("task", number)) as sink:
        for table, batch in found:
            sink.write(table, batch)
        manifest = sink.finish(summary)
    yield pa.record_batch({"manifest": [manifest.dumps(), *(each.dumps() for each in long)]})


def decode_units(
    runs: Sequence[Run], job: Job, attempts: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Decodes the units of the runs whose numbers come in.

    Args:
        runs: of each task, its units.
        job: with the captures that are shuffled, and no others.
        attempts: the folder of attempts.
        batches: the numbers.
    """
    from wirekit.road import deferred

    for batch in batches:
        for number in batch["id"].to_pylist():
            flow, units = runs[number]
            done = deferred.decode_units(attempts, number, _attempt("units", number), flow, units, job)
            yield pa.record_batch({"manifest": [done.dumps()]})


def _runs(long: Sequence[Outstanding]) -> list[Run]:
    """The units of flows in runs of about ``AT_ONCE`` bytes."""
    runs: list[Run] = []
    for each in long:
        size = AT_ONCE
        for unit in each.units if each.plain else ():
            if size >= AT_ONCE:
                runs.append((each.flow, []))
                size = 0
            runs[-1][1].append(unit)
            size += unit.size
    return runs


@contextmanager
def _watched(spark: SparkSession, told: Callable[[list[float]], None] | None) -> Iterator[None]:
    """Tells again and again which share of the tasks is done of each stage that the block has begun, in order."""
    if told is None:
        yield
        return
    context = spark.sparkContext
    group = f"wirekit-{uuid.uuid4().hex}"
    context.setJobGroup(group, "wirekit pipeline", interruptOnCancel=True)
    tracker = context.statusTracker()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(POLL_SECONDS):
            jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)) if job is not None]
            numbers = sorted({stage for job in jobs for stage in job.stageIds})
            stages = [stage for stage in map(tracker.getStageInfo, numbers) if stage is not None]
            # A stage whose shuffle files are there already is listed again, and skipped.
            begun = [stage for stage in stages if stage.numActiveTasks + stage.numCompletedTasks]
            if begun:
                told([stage.numCompletedTasks / stage.numTasks for stage in begun])

    thread = threading.Thread(target=watch, name="wirekit-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        context._jsc.clearJobGroup()
