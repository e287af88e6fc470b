"""The driver on Spark: captures are read in parallel, shuffled by flow, and each task follows its flows.

Spark's own writer is not used. After the flows there is no shuffle, so each task writes its Parquet files itself, into
a directory of its attempt, and gives Spark one manifest row; the driver publishes the files of the manifests that came
back. Of 140-byte rows on two cores this took 2.9 million a second, Spark's writer 0.84. It needs a directory that all
workers see.

Nothing may stand between the sort and the tasks: a ``coalesce``, ``repartition`` or rebalancing hint there would cut
flows in two.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext

from wirekit.pipeline.bundles import BUNDLE_BYTES
from wirekit.pipeline.flows import flow_batches
from wirekit.pipeline.inputs import Job, captures
from wirekit.pipeline.run import Progress, Result, publish
from wirekit.pipeline.sink import Manifest, Sink
from wirekit.pipeline.stored import stored_batches
from wirekit.pipeline.summary import Summary
from wirekit.spark.source import register
from wirekit.tables.columns import PACKETS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST_SCHEMA = "manifest string"
PARTITION_BYTES = 64 << 20
WAVES = 4
"""Tasks of a bundle for each core."""
POLL_SECONDS = 0.2

Task = Callable[[Job, str, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def run(
    job: Job,
    output: str | os.PathLike[str],
    spark: SparkSession,
    progress: Progress | None = None,
    *,
    task: Task | None = None,
    bundle: int | None = None,
    replace: bool = False,
    form: str | None = None,
) -> Result:
    """Makes the tables of the captures; the same as ``wirekit.pipeline.serial.run`` makes.

    Args:
        job: what to do.
        output: the lake: a directory that all workers see, or the URI of a prefix.
        spark: a session as ``wirekit.spark.session.session`` gives it.
        progress: is told finished tasks, and how many the stages have that began.
        task: what each task does, by default ``follow_partition``.
        bundle: bytes of captures that are committed together, about; by default what keeps all cores busy.
        replace: whether what the lake has is replaced, when all is complete.
        form: of the tables, see ``publish``.

    Raises:
        Misuse: ``output`` holds something that is not wirekit's, or was made with other options.
    """
    cores = spark.sparkContext.defaultParallelism

    def work(part: Job, attempts: str, _done: int, _total: int) -> list[Manifest]:
        register(spark)
        paths = json.dumps([[each.path for each in files] for files in captures(part.captures)])
        size = sum(each.size for each in part.captures)
        count = max(cores, -(-size // PARTITION_BYTES))
        rows = []
        with _told(spark, progress):
            if part.stored:
                numbers = spark.range(0, len(part.stored), 1, len(part.stored))
                reader = functools.partial(read_stored, part, attempts, count)
                rows += numbers.mapInArrow(reader, MANIFEST_SCHEMA).collect()
            if part.captures:
                rows += _captures(spark, paths, count, functools.partial(task or follow_partition, part, attempts))
        return [Manifest.loads(row.manifest) for row in rows]

    size = max(BUNDLE_BYTES, cores * WAVES * PARTITION_BYTES) if bundle is None else bundle
    return publish(job, output, "spark", work, bundle=size, replace=replace, form=form)


def _captures(
    spark: SparkSession,
    paths: str,
    count: int,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> list[Any]:
    """The manifest rows of all captures, which are shuffled by flow into so many tasks."""
    packets = spark.read.format("wirekit").options(table=PACKETS.name, paths=paths).load()
    sorted_flows = packets.repartition(count, "flow").sortWithinPartitions(*PACKETS.sort)
    return list(sorted_flows.mapInArrow(function, MANIFEST_SCHEMA).collect())


def read_stored(job: Job, attempts: str, first: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads the stored files whose numbers come in, each into files of an attempt of its own; gives the manifests.

    Args:
        first: the number of the task that reads the first of them.
    """
    for batch in batches:
        for number in batch["id"].to_pylist():
            summary = Summary()
            with Sink(attempts, first + number, _attempt("stored", number)) as sink:
                for table, rows in stored_batches(job.stored[number], job, summary):
                    sink.write(table, rows)
                manifest = sink.finish(summary)
            yield pa.record_batch({"manifest": [manifest.dumps()]})


def _attempt(what: str, number: int) -> str:
    """A name that no other attempt has."""
    context = TaskContext.get()
    return f"{what}-{number:05}-{context.attemptNumber() if context else 0}-{uuid.uuid4().hex}"


def follow_partition(job: Job, attempts: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Follows the flows of one partition into files of this attempt; gives its manifest."""
    context = TaskContext.get()
    number = context.partitionId() if context else 0
    summary = Summary()
    with Sink(attempts, number, _attempt("task", number)) as sink:
        for table, batch in flow_batches(batches, job, summary):
            sink.write(table, batch)
        manifest = sink.finish(summary)
    yield pa.record_batch({"manifest": [manifest.dumps()]})


@contextmanager
def _told(spark: SparkSession, progress: Progress | None) -> Iterator[None]:
    """Tells the progress of the jobs that the block starts."""
    if progress is None:
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
            stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
            # A stage whose shuffle files are there already is listed again, and skipped.
            begun = [stage for stage in stages if stage is not None and stage.numActiveTasks + stage.numCompletedTasks]
            if begun:
                progress(sum(stage.numCompletedTasks for stage in begun), sum(stage.numTasks for stage in begun))

    thread = threading.Thread(target=watch, name="wirekit-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        context._jsc.clearJobGroup()
