"""The driver on Spark: tasks read whole captures, as the serial driver does; a dominating capture is shuffled by flow.

Several tasks read parts of a large stored file.

A capture is shuffled if one task would still read it when all other tasks have ended. Several tasks then read its
packets in parallel, and each further task follows some of its flows, on the road that the whole capture would take. If
that fails because a capture changes meanwhile, one task reads it whole, as far as the file then goes.

Spark's own shuffle and writer are not used, so that no packet and no row passes through the JVM. Each task writes its
files of packets (``wirekit.pipeline.shuffle``) and Parquet files into a directory of its attempt, and returns one row
that lists them. The driver publishes the Parquet files of the returned manifests. All workers must see the directory.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException

from wirekit import stored
from wirekit.capture.files.fragments import Fragments
from wirekit.pipeline.bundles import BUNDLE_BYTES
from wirekit.pipeline.carried import IDLE_US
from wirekit.pipeline.crossing import Crossing, flows_of, read_numbers, write_numbers
from wirekit.pipeline.deferred import DecodedUnits, Outstanding, Unit, completed
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.folders import folder
from wirekit.pipeline.inputs import CAPTURE, Input, Job, Split, captures, changed, renumbered
from wirekit.pipeline.packets import is_compressed, packet_batches
from wirekit.pipeline.reports import report, reported
from wirekit.pipeline.roads import by_columns
from wirekit.pipeline.run import READING, Progress, Reached, Result, publish
from wirekit.pipeline.serial import in_order, write
from wirekit.pipeline.shuffle import Kept, Share, ShuffleFile, kept_windows, shares, windows, write_files
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.stored import parts_of
from wirekit.pipeline.summary import Summary
from wirekit.registry import registry
from wirekit.spark.session import require_classic
from wirekit.spark.source import bundles, freeze_objects
from wirekit.storage import is_remote
from wirekit.tables.columns import PACKETS
from wirekit.values import json_text

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from wirekit.road.splits import Range, Walked

PARTITION_BYTES = 64 << 20
WAVES = 4
"""Tasks of a bundle for each core."""
LEAST_SPLIT = 4 << 20
"""Bytes of a capture below which shuffling takes longer than reading it in one task."""
FILE_BYTES = 1 << 14
"""The number of bytes that opening a file counts as."""
POLL_SECONDS = 0.2
SHUFFLING, FOLLOWING = "reading packets", "following connections"
DECODING = "decoding long connections"
"""Stages of captures that are shuffled. The first counts as half of their bytes, the others as the other half."""
WINDOW = 32 << 20
"""Bytes of shuffled packets in a file, and in a window of the task that follows them."""
SURVEYED = 4 << 20
"""Bytes of packets whose flows are compared to determine whether flows are long."""
AT_ONCE = 64 << 20
"""Bytes of a long connection that the task that follows it decodes; each further task decodes at least as many."""

LEAD = 1.5
"""The processor time of a shuffled capture by columns, in relation to that of the same capture in one task."""

Item = TypeVar("Item")

Group = tuple[Input, ...]
"""The files of a capture, or a stored file."""

Task = Callable[[Job, str, Iterable[int]], Iterable[str]]
"""A task of Spark: takes a job, the folder of attempts, and the numbers of tasks; returns a text for each number, such
as the manifest of the files it wrote."""

OnSpark = Callable[[Iterable[int]], Iterable[str]]
"""A task as Spark calls it, with the numbers alone."""

Part = tuple[Group, Split | None]
"""The files, or the part of a file, whose packets a task reads."""

Assignment = tuple[Sequence[Group], stored.Part | None]
"""The captures and stored files that a task reads, or a stored file and the part of it."""

Run = tuple[int, list[Unit]]
"""A flow, and the units of it that one task decodes."""


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
    """Writes the tables of the captures, the same tables as ``wirekit.pipeline.serial.run``.

    Args:
        job: the inputs, and how protocols are chosen.
        output: the lake: a directory that all workers see, or the URI of a prefix.
        spark: a session of ``wirekit.spark.session.session``.
        progress: receives the progress, as tasks report it; in object stores, as tasks end.
        around: wraps each task, for tests.
        shuffled: whether captures are shuffled by flow; None for the captures that would keep one task busy alone.
        bundle: approximate bytes of captures that are committed together. By default a bundle keeps all cores busy, and
            no capture is cut: one task reads the files of a bundle that belong to a capture of several bundles.
        replace: whether the new tables replace those of the lake once they are complete.
        form, rotating, idle_us: see ``publish``.

    Raises:
        Misuse: ``output`` contains files that wirekit did not write, or was written with other options, or the session
            is one of Spark Connect.
    """
    require_classic(spark)
    cores = spark.sparkContext.defaultParallelism

    def work(part: Job, attempts: str, reached: Reached) -> list[Manifest]:
        groups = captures(part.inputs)
        whole = [each for each in groups if each[0].number not in part.continuations]
        split = [each for each in whole if each[0].kind == CAPTURE and shuffled]
        if shuffled is None:
            split = [each for each in dominating(groups, part.road, cores) if each in whole]
        size = sum(map(_size, split))
        on_spark = functools.partial(_task, attempts=attempts, around=around)

        def watched(stage: str, total: int, begin: int, end: int) -> AbstractContextManager[None]:
            """Reports the progress of a stage of ``total`` bytes, from ``begin`` to ``end`` of the bundle's bytes."""

            def show(share: float) -> None:
                reached(stage, begin + int((end - begin) * share))

            share = lambda: min(reported(attempts, stage) / max(total, 1), 1)  # noqa: E731
            return _watched(spark, None if progress is None else show, share)

        def by_file(groups: Sequence[Group], begin: int, *, divided: bool) -> list[Manifest]:
            """The manifests of captures that tasks read whole, and of stored files; long ones may be divided."""
            of_bundle = functools.partial(on_spark, job=part)
            tasks = _assignments(spark, groups, of_bundle) if divided else _undivided(groups, cores * WAVES)
            if not tasks:
                return []
            total = sum(map(_size, groups))
            with watched(READING, total, begin, begin + total):
                rows = _by_number(spark, len(tasks), of_bundle(functools.partial(read_whole, tasks)))
            reached(READING, begin + total)
            return list(map(Manifest.loads, rows))

        def by_flow() -> list[Manifest]:
            """The manifests of the captures that are shuffled."""
            manifests: list[Manifest] = []
            count = max(cores, -(-size // PARTITION_BYTES))
            # In the packets, captures are numbered without those that are not shuffled.
            alone = dataclasses.replace(part, inputs=renumbered(split), continuations={})
            shuffle = functools.partial(on_spark, job=alone)
            parts = _parts(spark, alone, shuffle)
            columns = by_columns(max(map(_size, split)), part.road)
            half = part.size - size // 2
            with watched(SHUFFLING, size, part.size - size, half):
                crossing = _crossing(spark, parts, attempts, shuffle) if columns and len(parts) > 1 else None
                read = functools.partial(read_parts, parts, count, WINDOW, crossing)
                rows = _by_number(spark, len(parts), shuffle(read))
            read_of_parts = [json.loads(row) for row in rows]
            files = [ShuffleFile(*each) for written, _ in read_of_parts for each in written]
            manifests += [Manifest.loads(text) for _, text in read_of_parts if text is not None]
            flow_shares = shares(files, count, 2 * AT_ONCE if columns else None)
            follow = functools.partial(follow_share, files, count, columns, WINDOW)
            shuffled_size = sum(each.size for each in files)
            followed = part.size - (size // 4 if any(each.flow is not None for each in flow_shares) else 0)
            with watched(FOLLOWING, shuffled_size, half, followed):
                rows = _by_number(spark, len(flow_shares), shuffle(functools.partial(follow, AT_ONCE, flow_shares)))
            reached(FOLLOWING, followed)
            outstanding = list(map(Outstanding.loads, rows))
            manifests += [Manifest.loads(row) for row, each in zip(rows, outstanding, strict=True) if each is None]
            long = [each for each in outstanding if each is not None]
            if long:
                runs = _runs(long)
                left = sum(unit.size for _, units in runs for unit in units)
                with watched(DECODING, left, followed, part.size):
                    rows = _by_number(spark, len(runs), shuffle(functools.partial(decode_units, runs)))
                decoded = [DecodedUnits.loads(row) for row in rows]
                more, again = completed(attempts, long, decoded)
                manifests += more
                if again:
                    flow_shares = [each for each in flow_shares if each.flow in again]
                    rows = _by_number(spark, len(flow_shares), shuffle(functools.partial(follow, None, flow_shares)))
                    manifests += map(Manifest.loads, rows)
            for name in {os.path.dirname(name) for name in (crossing, *(each.name for each in files)) if name}:
                folder(attempts).remove(name)
            return manifests

        def or_whole(read: Callable[[], list[Manifest]], groups: Sequence[Group], begin: int) -> list[Manifest]:
            """The result of ``read``; if a file changed meanwhile and tasks failed, one task each reads the files."""
            try:
                return read()
            except (Py4JJavaError, PySparkException):
                if not changed(each for files in groups for each in files):
                    raise
                return by_file(groups, begin, divided=False)

        others = [each for each in groups if each not in split]
        manifests = or_whole(lambda: by_file(others, 0, divided=True), others, 0)
        if split:
            manifests += or_whole(by_flow, split, part.size - size)
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
    """The part of each task that reads packets: a part of a large file, or several small files."""
    parts: list[Part] = []
    others: list[Group] = []
    for file in job.inputs:
        splits = _splits(spark, file, on_spark) if by_columns(file.size, job.road) else []
        parts += (((file,), each) for each in splits)
        others += [] if splits else [(file,)]
    return [*parts, *((files, None) for files in bundles(others))]


def _crossing(
    spark: SparkSession, parts: Sequence[Part], attempts: str, on_spark: Callable[[Task], OnSpark]
) -> str | None:
    """The file of the flows that several parts have; None if all packets are exchanged."""
    store = folder(attempts)
    names = _by_number(spark, len(parts), on_spark(functools.partial(survey_parts, parts)))
    flows = [read_numbers(store, name) for name in names if name]
    for name in filter(None, names):
        store.remove(os.path.dirname(name))
    if not all(names):
        return None
    crossing = f"crossing-{uuid.uuid4().hex}/flows"
    store.make(os.path.dirname(crossing))
    Crossing.of(flows).write(store, crossing)
    return crossing


def _splits(spark: SparkSession, file: Input, on_spark: Callable[[Task], OnSpark]) -> list[Split]:
    """The parts of a large file; empty if one task reads the whole file."""
    if file.size < 2 * PARTITION_BYTES:
        return []
    from wirekit.road.splits import loads, splits

    def walks(ranges: Sequence[Range]) -> list[Walked | None]:
        walk = on_spark(functools.partial(walk_ranges, file, ranges))
        most = spark.sparkContext.defaultParallelism * WAVES
        return [loads(json.loads(row)) for row in _by_number(spark, len(ranges), walk, most)]

    return splits(file, PARTITION_BYTES, walks)


def _assignments(spark: SparkSession, groups: Sequence[Group], on_spark: Callable[[Task], OnSpark]) -> list[Assignment]:
    """The parts of long stored files in their order, and the other files of each task."""
    count = spark.sparkContext.defaultParallelism * WAVES
    parts: list[Assignment] = []
    others: list[Group] = []
    for group in groups:
        of_file = _stored_parts(spark, group[0], on_spark) if is_long(group, groups, count) else []
        parts += (([group], each) for each in of_file)
        others += [] if of_file else [group]
    return [*parts, *_undivided(others, count)]


def _undivided(groups: Sequence[Group], count: int) -> list[Assignment]:
    return [(files, None) for files in balanced(groups, count)]


def _stored_parts(spark: SparkSession, file: Input, on_spark: Callable[[Task], OnSpark]) -> list[stored.Part]:
    """The parts of a large stored file; empty if one task reads the whole file."""

    def walks(stretches: Sequence[int]) -> list[stored.Walked | None]:
        most = spark.sparkContext.defaultParallelism * WAVES
        rows = _by_number(spark, len(stretches), on_spark(functools.partial(walk_stretches, file)), most)
        return [
            None if row is None else stored.Walked(*(stored.Start(*each) for each in row))
            for row in map(json.loads, rows)
        ]

    return parts_of(file, walks)


def _by_number(spark: SparkSession, count: int, function: OnSpark, most: int | None = None) -> list[str]:
    """The results of a function for the numbers below a count, in a task each or in ``most`` tasks.

    It uses an RDD: with a DataFrame, each task takes 70 ms of processor time besides its work, twice as much.
    """
    if not count:
        return []
    return spark.sparkContext.parallelize(range(count), min(count, most or count)).mapPartitions(function).collect()


def _task(task: Task, job: Job, attempts: str, around: Callable[[Task], Task] | None) -> OnSpark:
    return functools.partial(_settled, task if around is None else around(task), job, attempts)


def _settled(task: Task, job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Runs a task, and leaves nothing to the garbage collection after it."""
    yield from task(job, attempts, numbers)
    freeze_objects()


def bundle_bytes(groups: Sequence[Group], cores: int) -> int:
    """Bytes of a bundle that keeps all cores busy: ``WAVES`` tasks for each core, with at least one capture each.

    >>> bundle_bytes([], 800) >> 30
    200
    """
    mean = sum(map(_size, groups)) // max(len(groups), 1)
    return max(BUNDLE_BYTES, cores * WAVES * max(PARTITION_BYTES, mean))


def dominating(groups: Sequence[Group], road: str, cores: int) -> list[Group]:
    """The captures that one task would still read when all other tasks have ended.

    Args:
        groups: the captures and stored files of a bundle.
        road: the road of the job.
        cores: the number of tasks that run at once.
    """
    share = sum(_size(each) for each in groups) / cores
    large = []
    for group in groups:
        size = _size(group)
        # By objects a task holds all packets of a capture in memory.
        most = max(LEAD * share, PARTITION_BYTES) if by_columns(size, road) else min(share, PARTITION_BYTES)
        if group[0].kind == CAPTURE and size > max(most, LEAST_SPLIT):
            large.append(group)
    return large


def is_long(group: Group, groups: Sequence[Group], count: int) -> bool:
    """Whether a group is a stored file with more bytes than ``count`` tasks read on average."""
    least = max(sum(map(_size, groups)) // count, 2 * PARTITION_BYTES)
    return group[0].kind != CAPTURE and _size(group) >= least


def balanced(groups: Sequence[Group], count: int) -> list[list[Group]]:
    """Distributes groups to at most ``count`` tasks of about the same size; the largest task comes first."""
    if not groups:
        return []
    tasks: list[tuple[int, int, list[Group]]] = [(0, number, []) for number in range(min(count, len(groups)))]
    for group in sorted(groups, key=_size, reverse=True):
        size, number, files = tasks[0]
        files.append(group)
        # Opening a file takes time, even an empty one.
        heapq.heapreplace(tasks, (size + _size(group) + FILE_BYTES, number, files))
    return [files for _, _, files in sorted(tasks, reverse=True)]


def _size(group: Group) -> int:
    return sum(each.size for each in group)


def read_whole(tasks: Sequence[Assignment], job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Reads the captures and stored files of some tasks; returns their manifests.

    Args:
        tasks: the captures and stored files of all tasks.
        job: the job of the bundle.
        attempts: the folder of attempts.
        numbers: the numbers of the tasks.
    """
    for number in numbers:
        with Sink(attempts, number, _attempt("whole", number)) as sink:
            groups, part = tasks[number]
            yield sink.finish(write(groups, job, sink, report(attempts, READING, number), part)).dumps()


def walk_stretches(file: Input, job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Walks over some stretches of a large stored file.

    Args:
        file: the file.
        job, attempts: ignored.
        numbers: the numbers of the stretches.
    """
    protocol, _, layout = file.kind.partition(".")
    for number in numbers:
        walk = registry.protocol(protocol).walk(layout)
        yield json.dumps(None if walk is None else walk(file.path, number, None))


def walk_ranges(file: Input, ranges: Sequence[Range], job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Walks over some ranges of a large file.

    Args:
        file: the file.
        ranges: all of its ranges.
        job, attempts: ignored.
        numbers: the numbers of the ranges.
    """
    from wirekit.road.splits import walk

    for number in numbers:
        walked = walk(file.path, file.size, ranges[number])
        yield json.dumps(None if walked is None else walked.dumps())


def survey_parts(parts: Sequence[Part], job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Finds the flows of some parts; returns the name of a file of them.

    The name is empty if all packets should be exchanged: most flows of the part are long, or it is too large to hold
    the packets of the others in memory.

    Args:
        parts: the parts of all tasks.
        job: a job of the shuffled captures alone.
        attempts: the folder of attempts.
        numbers: the numbers of the parts.
    """
    for number in numbers:
        files, split = parts[number]
        flows = None
        if split is not None or (_size(files) <= 2 * PARTITION_BYTES and not any(map(is_compressed, files))):
            batches = packet_batches(files, road=job.road, table=PACKETS.only(["flow"]), split=split, size=SURVEYED)
            flows = flows_of(batches)
        name = "" if flows is None else f"{_attempt('flows', number)}/flows"
        if flows is not None:
            folder(attempts).make(os.path.dirname(name))
            write_numbers(folder(attempts), name, flows)
        yield name


def read_parts(
    parts: Sequence[Part],
    places: int,
    size: int,
    crossing: str | None,
    job: Job,
    attempts: str,
    numbers: Iterable[int],
) -> Iterator[str]:
    """Reads the packets of some parts; writes those of crossing flows, and follows the other flows.

    Args:
        parts: the parts of all tasks.
        places, size: see ``write_files``.
        crossing: the file of the flows that several parts have; None if all packets are written.
        job: a job of the shuffled captures alone.
        attempts: the folder of attempts.
        numbers: the numbers of the parts.

    Returns:
        For each part its files of packets, and the manifest of the tables of the other flows, if there are any.
    """
    flows = None if crossing is None else Crossing.read(folder(attempts), crossing)
    for number in numbers:
        files, split = parts[number]
        attempt, kept = _attempt("packets", number), None if flows is None else Kept()
        done, written, read = report(attempts, SHUFFLING, number), list[ShuffleFile](), 0
        for file in files:
            fragments = Fragments()
            batches = packet_batches(
                (file,), road=job.road, split=split, size=2 * size if kept is None else size, fragments=fragments
            )
            again = split is not None and not is_remote(file.path)
            for each in write_files(
                file,
                batches,
                attempts,
                attempt,
                places,
                size,
                again=again,
                fragments=fragments,
                crossing=flows,
                kept=kept,
            ):
                written.append(each)
                read += each.size + (kept[each.name].nbytes if kept else 0)
                done(read)
        manifest = None
        if kept and any(rows.num_rows for rows in kept.values()):
            from wirekit.road.flows import flow_batches as followed

            summary = Summary()
            tables = followed(kept_windows(written, kept, size), job, summary)
            manifest = _written(tables, attempts, number, _attempt("kept", number), summary).dumps()
        yield json_text([written, manifest])


def _attempt(stage: str, number: int) -> str:
    """A unique name for an attempt."""
    context = TaskContext.get()
    return f"{stage}-{number:05}-{context.attemptNumber() if context else 0}-{uuid.uuid4().hex}"


def follow_share(
    files: Sequence[ShuffleFile],
    places: int,
    columns: bool,
    window: int,
    before: int | None,
    of_tasks: Sequence[Share],
    job: Job,
    attempts: str,
    numbers: Iterable[int],
) -> Iterator[str]:
    """Follows the flows of some shares; returns their manifests, and the outstanding units of long flows.

    Args:
        files: the files of packets.
        places: see ``write_files``.
        columns: whether columns follow the flows.
        window: bytes of a window.
        before: bytes of a long flow that are decoded here; None for all.
        of_tasks: the shares of all tasks.
        job: a job of the shuffled captures alone.
        attempts: the folder of attempts.
        numbers: the numbers of the shares.
    """
    for number in numbers:
        share = of_tasks[number]
        packets = _reporting(
            windows(files, share, attempts, places, window),
            attrgetter("size"),
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
        yield _written(tables, attempts, number, attempt, summary).dumps()


def _written(
    tables: Iterable[tuple[str, pa.RecordBatch]], attempts: str, number: int, attempt: str, summary: Summary
) -> Manifest:
    """Writes rows of tables in an attempt; the summary is complete after the last rows."""
    with Sink(attempts, number, attempt) as sink:
        for table, rows in tables:
            sink.write(table, rows)
        return sink.finish(summary)


def decode_units(runs: Sequence[Run], job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Decodes the units of some runs.

    Args:
        runs: the units of all tasks.
        job: a job of the shuffled captures alone.
        attempts: the folder of attempts.
        numbers: the numbers of the runs.
    """
    from wirekit.road import deferred

    for number in numbers:
        flow, units = runs[number]
        each_unit = _reporting(units, attrgetter("size"), report(attempts, DECODING, number))
        yield deferred.decode_units(attempts, number, _attempt("units", number), flow, each_unit, job).dumps()


def _reporting(each_of: Iterable[Item], size: Callable[[Item], int], done: Callable[[int], None]) -> Iterator[Item]:
    """Passes items on; reports the size of the items so far when the next one is requested."""
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
def _watched(spark: SparkSession, show: Callable[[float], None] | None, share: Callable[[], float]) -> Iterator[None]:
    """Reports the progress of the Spark job that the block runs, as a share from 0 to 1.

    Args:
        spark: the session.
        show: receives the share; nothing is watched without it.
        share: the share that tasks have reported; the share of ended tasks counts if it is larger.
    """
    if show is None:
        yield
        return
    context = spark.sparkContext
    group = f"wirekit-{uuid.uuid4().hex}"
    context.setJobGroup(group, "wirekit pipeline", interruptOnCancel=True)
    tracker = context.statusTracker()
    ended = threading.Event()

    def watch() -> None:
        most = 0.0
        while not ended.wait(POLL_SECONDS):
            jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)) if job is not None]
            stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
            shares = (stage.numCompletedTasks / stage.numTasks for stage in stages if stage is not None)
            most = max(most, share(), *shares)  # a task that is run again begins at 0
            show(most)

    thread = threading.Thread(target=watch, name="wirekit-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        context._jsc.clearJobGroup()
