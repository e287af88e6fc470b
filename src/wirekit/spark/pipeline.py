"""The driver on Spark: performs the tasks of ``wirekit.pipeline.parallel`` as tasks of Spark.

Spark's own shuffle and writer are not used, so that no packet and no row passes through the JVM. Each task writes its
files into a directory of its attempt, and returns one row that lists them. The driver publishes the Parquet files of
the returned manifests. All workers must see the directory.
"""

from __future__ import annotations

import functools
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Unpack

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from wirekit.pipeline import parallel
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.parallel import Task
from wirekit.pipeline.run import Options, Progress, Result
from wirekit.spark.session import require_classic
from wirekit.spark.source import freeze_objects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    job: Job,
    output: str | os.PathLike[str],
    spark: SparkSession,
    progress: Progress | None = None,
    *,
    around: Callable[[Task], Task] | None = None,
    shuffled: bool | None = None,
    bundle: int | None = None,
    **how: Unpack[Options],
) -> Result:
    """Writes the tables of the captures, the same tables as ``wirekit.pipeline.serial.run``.

    Args:
        job: the inputs, and how protocols are chosen.
        output: the lake: a directory that all workers see, or the URI of a prefix.
        spark: a session of ``wirekit.spark.session.session``.
        progress: receives the progress, as tasks report it; in object stores, as tasks end.
        around: wraps each task, for tests.
        shuffled, bundle: see ``parallel.run``.
        how: see ``publish``.

    Raises:
        Misuse: ``output`` contains files that wirekit did not write, or was written with other options, or the session
            is one of Spark Connect.
    """
    require_classic(spark)
    workers = _Spark(spark, around)
    return parallel.run(job, output, "spark", workers, progress, shuffled=shuffled, bundle=bundle, **how)


class _Spark:
    """The workers of a session; implements ``parallel.Workers``."""

    errors: tuple[type[Exception], ...] = (Py4JJavaError, PySparkException)

    def __init__(self, spark: SparkSession, around: Callable[[Task], Task] | None) -> None:
        self.cores = spark.sparkContext.defaultParallelism
        self._context = spark.sparkContext
        self._around = around
        self._group = ""

    def results(self, task: Task, job: Job, attempts: str, count: int, most: int | None = None) -> list[str]:
        # An RDD, because with a DataFrame each task takes 70 ms of processor time besides its work, twice as much.
        self._group = f"wirekit-{uuid.uuid4().hex}"
        self._context.setJobGroup(self._group, "wirekit pipeline", interruptOnCancel=True)
        try:
            wrapped = task if self._around is None else self._around(task)
            settled = functools.partial(_settled, wrapped, job, attempts)
            return self._context.parallelize(range(count), min(count, most or count)).mapPartitions(settled).collect()
        finally:
            self._context._jsc.clearJobGroup()

    def completed(self) -> float:
        tracker = self._context.statusTracker()
        jobs = [job for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(self._group)) if job is not None]
        stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
        return max((stage.numCompletedTasks / stage.numTasks for stage in stages if stage is not None), default=0.0)


def _settled(task: Task, job: Job, attempts: str, numbers: Iterable[int]) -> Iterator[str]:
    """Runs tasks, and leaves nothing to the garbage collection after them."""
    for number in numbers:
        yield task(job, attempts, number)
    freeze_objects()
