"""The driver on Spark: a task reads whole captures, as the serial driver does; one that dominates is shuffled by flow.

A capture is shuffled if one task would read it while the others have nothing left to do. Its packets are read in
parallel then, and each task follows its flows, on the road that the capture would take as a whole.

Neither Spark's shuffle nor its writer is used, so that no packet and no row goes through the JVM. Each task writes its
files itself, those of packets (``wirekit.pipeline.shuffle``) and Parquet, into a directory of its attempt, and gives
Spark one row that lists them; the driver publishes the Parquet files of the manifests that came back. This needs a
directory that all workers see.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import heapq
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from pyspark import TaskContext

from wirekit.pipeline.bundles import BUNDLE_BYTES
from wirekit.pipeline.carried import IDLE_US
from wirekit.pipeline.deferred import DecodedUnits, Outstanding, Unit, completed
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.folders import folder
from wirekit.pipeline.inputs import CAPTURE, Input, Job, Split, captures, renumbered
from wirekit.pipeline.packets import packet_batches
from wirekit.pipeline.reports import report, reported
from wirekit.pipeline.roads import by_columns
from wirekit.pipeline.run import READING, Progress, Reached, Result, publish
from wirekit.pipeline.serial import in_order, write
from wirekit.pipeline.shuffle import Share, ShuffleFile, shares, windows, write_files
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.summary import Summary
from wirekit.spark.source import bundles
from wirekit.values import json_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirekit.road.splits import Range, Walked

PARTITION_BYTES = 64 << 20
WAVES = 4
"""Tasks of a bundle for each core."""
LEAST_SPLIT = 4 << 20
"""Bytes of a capture below which the shuffle takes longer than the capture."""
FILE_BYTES = 1 << 14
"""As how many bytes opening a file counts."""
POLL_SECONDS = 0.2
SHUFFLING, FOLLOWING = "reading packets", "following connections"
DECODING = "decoding long connections"
"""Stages of captures that are shuffled. The first counts as half of their bytes, the others as the other half."""
WINDOW = 32 << 20
"""Bytes of shuffled packets that a task writes together, and that one follows at once."""
AT_ONCE = 64 << 20
"""Bytes of a long connection that are decoded by the task that follows it; the others are left to other tasks, of
which each decodes as many at least."""

LEAD = 1.5
"""How many times as much processor time a capture takes by columns if it is shuffled, about."""

Item = TypeVar("Item")

Group = tuple[Input, ...]
"""The files of a capture, or a stored file."""

Task = Callable[[Job, str, Iterable[int]], Iterable[str]]
"""What a task of Spark does: job, folder of attempts, and its number; it gives the manifest of what it wrote, or
another text that says what it found."""

OnSpark = Callable[[Iterable[int]], Iterable[str]]
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
        progress: is told how far the run is: as tasks report it, or in object stores as they end.
        around: gives what each task does instead, from what it would do.
        shuffled: whether captures are shuffled by flow; None for those that would keep one task busy alone.
        bundle: bytes of captures that are committed together, about; by default what keeps all cores busy, and then no
            capture is cut: one task reads what a bundle has of a capture that other bundles have, too.
        replace: whether what the lake has is replaced, when all is complete.
        form, rotating, idle_us: of the tables, see ``publish``.

    Raises:
        Misuse: ``output`` has files that wirekit did not write, or was written with other options.
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

        def watched(stage: str, total: int, begin: int, end: int) -> AbstractContextManager[None]:
            """Tells how far a stage is whose tasks do so many bytes; begin and end are bytes of the bundle."""

            def told(share: float) -> None:
                reached(stage, begin + int((end - begin) * share))

            share = lambda: min(reported(attempts, stage) / max(total, 1), 1)  # noqa: E731
            return _watched(spark, None if progress is None else told, share)

        if tasks:
            with watched(READING, part.size - size, 0, part.size - size):
                rows = _by_number(
                    spark, len(tasks), _task(functools.partial(read_whole, tasks), part, attempts, around)
                )
            manifests += map(Manifest.loads, rows)
            reached(READING, part.size - size)
        if split:
            count = max(cores, -(-size // PARTITION_BYTES))
            # The packets have the numbers that these captures have without the others.
            alone = dataclasses.replace(part, inputs=renumbered(split), continuations={})
            on_spark = functools.partial(_task, job=alone, attempts=attempts, around=around)
            parts = _parts(spark, alone, on_spark)
            read = functools.partial(read_parts, parts, count, WINDOW)
            half = part.size - size // 2
            with watched(SHUFFLING, size, part.size - size, half):
                rows = _by_number(spark, len(parts), on_spark(read))
            files = [ShuffleFile(*each) for row in rows for each in json.loads(row)]
            columns = by_columns(max(map(_size, split)), part.road)
            found_shares = shares(files, count, 2 * AT_ONCE if columns else None)
            follow = functools.partial(follow_share, files, count, columns, WINDOW)
            shuffled_size = sum(each.size for each in files)
            followed = part.size - (size // 4 if any(each.flow is not None for each in found_shares) else 0)
            with watched(FOLLOWING, shuffled_size, half, followed):
                rows = _by_number(spark, len(found_shares), on_spark(functools.partial(follow, AT_ONCE, found_shares)))
            reached(FOLLOWING, followed)
            found = list(map(Outstanding.loads, rows))
            manifests += [Manifest.loads(row) for row, each in zip(rows, found, strict=True) if each is None]
            long = [each for each in found if each is not None]
            if long:
                runs = _runs(long)
                left = sum(unit.size for _, units in runs for unit in units)
                with watched(DECODING, left, followed, part.size):
                    rows = _by_number(spark, len(runs), on_spark(functools.partial(decode_units, runs)))
                decoded = [DecodedUnits.loads(row) for row in rows]
                more, again = completed(attempts, long, decoded)
                manifests += more
                if again:
                    found_shares = [each for each in found_shares if each.flow in again]
                    rows = _by_number(spark, len(found_shares), on_spark(functools.partial(follow, None, found_shares)))
                    manifests += map(Manifest.loads, rows)
            for name in {os.path.dirname(each.name) for each in files}:
                folder(attempts).remove(name)
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
        most = spark.sparkContext.defaultParallelism * WAVES
        return [loads(json.loads(row)) for row in _by_number(spark, len(ranges), walk, most)]

    return splits(file, PARTITION_BYTES, walks)


def _by_number(spark: SparkSession, count: int, function: OnSpark, most: int | None = None) -> list[str]:
    """The results of a function for the numbers below a count, in a task each or in ``most`` tasks.

    As an RDD: with a DataFrame each task takes twice the processor time besides its work, 70 ms.
    """
    if not count:
        return []
    return spark.sparkContext.parallelize(range(count), min(count, most or count)).mapPartitions(function).collect()


def _task(task: Task, job: Job, attempts: str, around: Callable[[Task], Task] | None) -> OnSpark:
    return functools.partial(_settled, task if around is None else around(task), job, attempts)


def _settled(task: Task, job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Runs a task. Spark collects garbage behind each, which takes 0.1 s if it has to look at all modules."""
    yield from task(job, attempts, numbers)
    gc.collect()
    gc.freeze()


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
        most = max(LEAD * share, PARTITION_BYTES) if by_columns(size, road) else min(share, PARTITION_BYTES)
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


def read_whole(tasks: Sequence[Sequence[Group]], job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Reads the captures and stored files of the tasks whose numbers come in; gives their manifests.

    Args:
        tasks: of each task, what it reads.
        job: the job of the bundle.
        attempts: the folder of attempts.
        numbers: the numbers.
    """
    for number in numbers:
        with Sink(attempts, number, _attempt("whole", number)) as sink:
            yield sink.finish(write(tasks[number], job, sink, report(attempts, READING, number))).dumps()


def walk_ranges(file: Input, ranges: Sequence[Range], job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Walks over the ranges of a large file whose numbers come in.

    Args:
        file: the file.
        ranges: all of its ranges.
        job: not looked at.
        attempts: not looked at.
        numbers: the numbers.
    """
    from wirekit.road.splits import walk

    for number in numbers:
        found = walk(file.path, file.size, ranges[number])
        yield json.dumps(None if found is None else found.dumps())


def read_parts(
    parts: Sequence[Part], places: int, size: int, job: Job, attempts: str, numbers: Iterable[int]
) -> Iterator[str]:
    """Reads the parts whose numbers come in, and writes their packets for those that follow flows.

    Args:
        parts: of each task, what it reads.
        places, size: as of ``write_files``.
        job: with the captures that are shuffled, and no others.
        attempts: the folder of attempts.
        numbers: the numbers.
    """
    for number in numbers:
        files, split = parts[number]
        attempt = _attempt("packets", number)
        done, written = report(attempts, SHUFFLING, number), list[ShuffleFile]()
        for file in files:
            batches = packet_batches((file,), road=job.road, split=split, size=2 * size)
            for each in write_files(file, batches, attempts, attempt, places, size):
                written.append(each)
                done(sum(each.size for each in written))
        yield json_text(written)


def _attempt(what: str, number: int) -> str:
    """A name that no other attempt has."""
    context = TaskContext.get()
    return f"{what}-{number:05}-{context.attemptNumber() if context else 0}-{uuid.uuid4().hex}"


def follow_share(
    files: Sequence[ShuffleFile],
    places: int,
    columns: bool,
    window: int,
    before: int | None,
    found: Sequence[Share],
    job: Job,
    attempts: str,
    numbers: Iterable[int],
) -> Iterator[str]:
    """Follows the shares whose numbers come in; gives their manifests, and what is left of long flows.

    Args:
        files: the packets.
        places: as of ``write_files``.
        columns: whether they are followed by columns.
        window: bytes that are followed at once.
        before: those of a long flow that are decoded here; None for all.
        found: the shares.
        job: with the captures that are shuffled, and no others.
        attempts: the folder of attempts.
        numbers: the numbers.
    """
    for number in numbers:
        share = found[number]
        packets = _reporting(
            windows(files, share, attempts, places, window),
            lambda each: each.rows.nbytes,
            report(attempts, FOLLOWING, number),
        )
        attempt, summary = _attempt("task", number), Summary()
        if not columns:
            tables = flow_batches(in_order([each for part in packets for each in part.rows.to_batches()]), job, summary)
        else:
            from wirekit.road import deferred, flows

            if share.flow is not None and before is not None:
                with deferred.LongFlow(attempts, number, attempt, share.flow, before) as long:
                    for table, rows in flows.flow_batches(packets, job, long.summary, long=long):
                        long.sink.write(table, rows)
                    yield long.dumps()
                continue
            tables = flows.flow_batches(packets, job, summary)
        with Sink(attempts, number, attempt) as sink:
            for table, rows in tables:
                sink.write(table, rows)
            yield sink.finish(summary).dumps()


def decode_units(runs: Sequence[Run], job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Decodes the units of the runs whose numbers come in.

    Args:
        runs: of each task, its units.
        job: with the captures that are shuffled, and no others.
        attempts: the folder of attempts.
        numbers: the numbers.
    """
    from wirekit.road import deferred

    for number in numbers:
        flow, units = runs[number]
        each_unit = _reporting(units, attrgetter("size"), report(attempts, DECODING, number))
        yield deferred.decode_units(attempts, number, _attempt("units", number), flow, each_unit, job).dumps()


def _reporting(each_of: Iterable[Item], size: Callable[[Item], int], done: Callable[[int], None]) -> Iterator[Item]:
    """The same items, each reported when the next one is asked for."""
    total = 0
    for each in each_of:
        yield each
        total += size(each)
        done(total)


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
def _watched(spark: SparkSession, told: Callable[[float], None] | None, share: Callable[[], float]) -> Iterator[None]:
    """Tells again and again which share is done of the job that the block runs.

    Args:
        spark: the session.
        told: is told the share; nothing is looked at without it.
        share: what the tasks say; counts where it is more than the share of those that have ended.
    """
    if told is None:
        yield
        return
    context = spark.sparkContext
    group = f"wirekit-{uuid.uuid4().hex}"
    context.setJobGroup(group, "wirekit pipeline", interruptOnCancel=True)
    tracker = context.statusTracker()
    over = threading.Event()

    def watch() -> None:
        most = 0.0
        while not over.wait(POLL_SECONDS):
            jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)) if job is not None]
            stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
            shares = (stage.numCompletedTasks / stage.numTasks for stage in stages if stage is not None)
            most = max(most, share(), *shares)  # a task that is run again begins anew
            told(most)

    thread = threading.Thread(target=watch, name="wirekit-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        context._jsc.clearJobGroup()
