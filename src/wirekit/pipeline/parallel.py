"""A run in parallel: tasks read whole captures, as the serial driver does; a dominating capture is shuffled by flow.

Several tasks read parts of a large stored file.

A capture is shuffled if one task would still read it when all other tasks have ended. Several tasks then read its
packets in parallel, and each further task follows some of its flows, on the road that the whole capture would take. If
that fails because a capture changes meanwhile, one task reads it whole, as far as the file then goes.

Tasks exchange packets through files (``wirekit.pipeline.shuffle``) and write Parquet files into a directory of their
attempt. All workers must see the directory.
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
from typing import TYPE_CHECKING, Protocol, Unpack

from wirekit import stored
from wirekit.pipeline.bundles import BUNDLE_BYTES
from wirekit.pipeline.crossing import Crossing, read_numbers
from wirekit.pipeline.deferred import DecodedUnits, Outstanding, completed
from wirekit.pipeline.folders import folder
from wirekit.pipeline.inputs import CAPTURE, Input, Job, Split, captures, changed, grouped, renumbered
from wirekit.pipeline.roads import by_columns
from wirekit.pipeline.run import READING, Options, Progress, Reached, Result, publish
from wirekit.pipeline.shuffle import ShuffleFile, shares
from wirekit.pipeline.sink import Manifest
from wirekit.pipeline.stored import parts_of
from wirekit.pipeline.task_progress import reported
from wirekit.pipeline.tasks import (
    DECODING,
    FOLLOWING,
    PARTITION_BYTES,
    SHUFFLING,
    Assignment,
    Group,
    Part,
    Run,
    decode_units,
    follow_share,
    read_parts,
    read_whole,
    size_of,
    survey_parts,
    walk_ranges,
    walk_stretches,
)

if TYPE_CHECKING:
    from wirekit.road.splits import Range, Walked

WAVES = 4
"""Tasks of a bundle for each core."""
LEAST_SPLIT = 4 << 20
"""Bytes of a capture below which shuffling takes longer than reading it in one task."""
FILE_BYTES = 1 << 14
"""The number of bytes that opening a file counts as."""
POLL_SECONDS = 0.2
WINDOW = 32 << 20
"""Bytes of shuffled packets in a file, and in a window of the task that follows them."""
AT_ONCE = 64 << 20
"""Bytes of a long connection that the task that follows it decodes; each further task decodes at least as many."""
LEAD = 1.5
"""The processor time of a shuffled capture by columns, in relation to that of the same capture in one task."""

Task = Callable[[Job, str, int], str]
"""A task: takes a job, the folder of attempts, and its number; returns a text, such as the manifest of its files."""


class Workers(Protocol):
    """Processes, or executors of Spark, that perform tasks.

    Attributes:
        cores: the number of tasks that run at once.
        errors: the errors that ``results`` raises if a task fails.
    """

    cores: int
    errors: tuple[type[Exception], ...]

    def results(self, task: Task, job: Job, attempts: str, count: int, most: int | None = None) -> list[str]:
        """The results of a task for the numbers below a count, in their order.

        Args:
            task: the task; it can be sent to a worker.
            job, attempts: see ``Task``.
            count: the number of results.
            most: the maximum number of tasks; None for a task for each number.
        """

    def completed(self) -> float:
        """The share of the tasks of the current call of ``results`` that have ended, from any thread."""


def run(
    job: Job,
    output: str | os.PathLike[str],
    engine: str,
    workers: Workers,
    progress: Progress | None = None,
    *,
    shuffled: bool | None = None,
    bundle: int | None = None,
    **options: Unpack[Options],
) -> Result:
    """Writes the tables of the captures, the same tables as ``wirekit.pipeline.serial.run``.

    Args:
        job: the inputs, and how protocols are chosen.
        output: the lake: a directory that all workers see, or the URI of a prefix.
        engine: the name of the driver, for the commits.
        workers: performs the tasks.
        progress: receives the progress, as tasks report it; in object stores, as tasks end.
        shuffled: whether captures are shuffled by flow; None for the captures that would keep one task busy alone.
        bundle: approximate bytes of captures that are committed together. By default a bundle keeps all cores busy, and
            no capture is cut: one task reads the files of a bundle that belong to a capture of several bundles.
        options: see ``publish``.

    Raises:
        Misuse: ``output`` contains files that wirekit did not write, or was written with other options.
    """

    def work(part: Job, attempts: str, reached: Reached) -> list[Manifest]:
        return _Bundle(workers, part, attempts, reached, watched=progress is not None).manifests(shuffled)

    size = bundle_bytes(captures(job.inputs), workers.cores) if bundle is None else bundle
    return publish(job, output, engine, work, progress, bundle=size, cut=bundle is not None, **options)


class _Bundle:
    """Writes the tables of a bundle in tasks.

    Args:
        workers: performs the tasks.
        job: the job of the bundle.
        attempts: the folder of attempts.
        reached: receives the progress.
        watched: whether the progress is watched.
    """

    def __init__(self, workers: Workers, job: Job, attempts: str, reached: Reached, *, watched: bool) -> None:
        self._workers = workers
        self._job = job
        self._attempts = attempts
        self._reached = reached
        self._is_watched = watched

    def manifests(self, shuffled: bool | None) -> list[Manifest]:
        """The manifests of all tasks; ``shuffled``: see ``run``."""
        job = self._job
        groups = captures(job.inputs)
        independent = [each for each in groups if each[0].number not in job.continuations]
        split = [each for each in independent if each[0].kind == CAPTURE and shuffled]
        if shuffled is None:
            split = [each for each in dominating(groups, job.road, self._workers.cores) if each in independent]
        unsplit = [each for each in groups if each not in split]
        manifests = self._or_whole(lambda: self._by_file(unsplit, 0, divided=True), unsplit, 0)
        if split:
            begin = job.size - sum(map(size_of, split))
            manifests += self._or_whole(lambda: self._by_flow(split), split, begin)
        return [dataclasses.replace(each, task=task) for task, each in enumerate(manifests)]

    def _or_whole(self, read: Callable[[], list[Manifest]], groups: Sequence[Group], begin: int) -> list[Manifest]:
        """The result of ``read``; if a file changed meanwhile and tasks failed, one task each reads the files."""
        try:
            return read()
        except self._workers.errors:
            if not changed(each for files in groups for each in files):
                raise
            return self._by_file(groups, begin, divided=False)

    def _by_file(self, groups: Sequence[Group], begin: int, *, divided: bool) -> list[Manifest]:
        """The manifests of captures that tasks read whole, and of stored files; long ones may be divided."""
        count = self._workers.cores * WAVES
        tasks = self._assignments(groups, count) if divided else _undivided(groups, count)
        if not tasks:
            return []
        total = sum(map(size_of, groups))
        with self._watched(READING, total, begin, begin + total):
            rows = self._results(functools.partial(read_whole, tasks), len(tasks))
        self._reached(READING, begin + total)
        return list(map(Manifest.loads, rows))

    def _by_flow(self, split: Sequence[Group]) -> list[Manifest]:
        """The manifests of the captures that are shuffled."""
        size, total = sum(map(size_of, split)), self._job.size
        manifests: list[Manifest] = []
        count = max(self._workers.cores, -(-size // PARTITION_BYTES))
        # In the packets, captures are numbered without those that are not shuffled.
        job = dataclasses.replace(self._job, inputs=renumbered(split), continuations={})
        results = functools.partial(self._results, job=job)
        parts = self._parts(job)
        columns = by_columns(max(map(size_of, split)), job.road)
        half = total - size // 2
        crossing = self._crossing(parts, job) if columns and len(parts) > 1 else None
        with self._watched(SHUFFLING, size, total - size, half):
            rows = results(functools.partial(read_parts, parts, count, WINDOW, crossing), len(parts))
        read_of_parts = [json.loads(row) for row in rows]
        files = [ShuffleFile(*each) for written, _ in read_of_parts for each in written]
        manifests += [Manifest.loads(text) for _, text in read_of_parts if text is not None]
        flow_shares = shares(files, count, 2 * AT_ONCE if columns else None)
        follow = functools.partial(follow_share, files, count, columns, WINDOW)
        shuffled_size = sum(each.size for each in files)
        followed = total - (size // 4 if any(each.flow is not None for each in flow_shares) else 0)
        with self._watched(FOLLOWING, shuffled_size, half, followed):
            rows = results(functools.partial(follow, AT_ONCE, flow_shares), len(flow_shares))
        self._reached(FOLLOWING, followed)
        outstanding = list(map(Outstanding.loads, rows))
        manifests += [Manifest.loads(row) for row, each in zip(rows, outstanding, strict=True) if each is None]
        long = [each for each in outstanding if each is not None]
        if long:
            runs = _runs(long)
            unit_size = sum(unit.size for _, units in runs for unit in units)
            with self._watched(DECODING, unit_size, followed, total):
                rows = results(functools.partial(decode_units, runs), len(runs))
            more, again = completed(self._attempts, long, [DecodedUnits.loads(row) for row in rows])
            manifests += more
            if again:
                flow_shares = [each for each in flow_shares if each.flow in again]
                rows = results(functools.partial(follow, None, flow_shares), len(flow_shares))
                manifests += map(Manifest.loads, rows)
        for name in {os.path.dirname(name) for name in (crossing, *(each.name for each in files)) if name}:
            folder(self._attempts).remove(name)
        return manifests

    def _results(self, task: Task, count: int, *, job: Job | None = None, walks: bool = False) -> list[str]:
        """The results of a task, by default for the job of the bundle; ``walks``: tasks take little time each."""
        if not count:
            return []
        most = self._workers.cores * WAVES if walks else None
        return self._workers.results(task, self._job if job is None else job, self._attempts, count, most)

    def _parts(self, job: Job) -> list[Part]:
        """The part of each task that reads packets: a part of a large file, or several small files."""
        parts: list[Part] = []
        unsplit: list[Group] = []
        for file in job.inputs:
            splits = self._splits(file, job) if by_columns(file.size, job.road) else []
            parts += (((file,), each) for each in splits)
            unsplit += [] if splits else [(file,)]
        return [*parts, *((files, None) for files in grouped(unsplit, PARTITION_BYTES))]

    def _crossing(self, parts: Sequence[Part], job: Job) -> str | None:
        """The file of the flows that several parts have; None if all packets are exchanged."""
        store = folder(self._attempts)
        names = self._results(functools.partial(survey_parts, parts), len(parts), job=job)
        flows = [read_numbers(store, name) for name in names if name]
        for name in filter(None, names):
            store.remove(os.path.dirname(name))
        if not all(names):
            return None
        crossing = f"crossing-{uuid.uuid4().hex}/flows"
        store.make(os.path.dirname(crossing))
        Crossing.of(flows).write(store, crossing)
        return crossing

    def _splits(self, file: Input, job: Job) -> list[Split]:
        """The parts of a large file; empty if one task reads the whole file."""
        if file.size < 2 * PARTITION_BYTES:
            return []
        from wirekit.road.splits import loads, splits

        def walks(ranges: Sequence[Range]) -> list[Walked | None]:
            rows = self._results(functools.partial(walk_ranges, file, ranges), len(ranges), job=job, walks=True)
            return [loads(json.loads(row)) for row in rows]

        return splits(file, PARTITION_BYTES, walks)

    def _assignments(self, groups: Sequence[Group], count: int) -> list[Assignment]:
        """The parts of long stored files in their order, and the other files of each task."""
        parts: list[Assignment] = []
        undivided: list[Group] = []
        for group in groups:
            of_file = self._stored_parts(group[0]) if is_long(group, groups, count) else []
            parts += (([group], each) for each in of_file)
            undivided += [] if of_file else [group]
        return [*parts, *_undivided(undivided, count)]

    def _stored_parts(self, file: Input) -> list[stored.Part]:
        """The parts of a large stored file; empty if one task reads the whole file."""

        def walks(stretches: Sequence[int]) -> list[stored.Walked | None]:
            rows = self._results(functools.partial(walk_stretches, file), len(stretches), walks=True)
            return [
                None if row is None else stored.Walked(*(stored.Start(*each) for each in row))
                for row in map(json.loads, rows)
            ]

        return parts_of(file, walks)

    @contextmanager
    def _watched(self, stage: str, total: int, begin: int, end: int) -> Iterator[None]:
        """Reports the progress of a stage of ``total`` bytes, from ``begin`` to ``end`` of the bundle's bytes.

        The share that tasks have reported counts, or the share of ended tasks if it is larger.
        """
        if not self._is_watched:
            yield
            return
        ended = threading.Event()

        def watch() -> None:
            most = 0.0
            while not ended.wait(POLL_SECONDS):
                # The share of a task that is run again begins at 0.
                share = min(reported(self._attempts, stage) / max(total, 1), 1)
                most = max(most, share, self._workers.completed())
                self._reached(stage, begin + int((end - begin) * most))

        thread = threading.Thread(target=watch, name="wirekit-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def bundle_bytes(groups: Sequence[Group], cores: int) -> int:
    """Bytes of a bundle that keeps all cores busy: ``WAVES`` tasks for each core, with at least one capture each.

    >>> bundle_bytes([], 800) >> 30
    200
    """
    mean = sum(map(size_of, groups)) // max(len(groups), 1)
    return max(BUNDLE_BYTES, cores * WAVES * max(PARTITION_BYTES, mean))


def dominating(groups: Sequence[Group], road: str, cores: int) -> list[Group]:
    """The captures that one task would still read when all other tasks have ended.

    Args:
        groups: the captures and stored files of a bundle.
        road: the road of the job.
        cores: the number of tasks that run at once.
    """
    share = sum(map(size_of, groups)) / cores
    large = []
    for group in groups:
        size = size_of(group)
        # By objects a task holds all packets of a capture in memory.
        most = max(LEAD * share, PARTITION_BYTES) if by_columns(size, road) else min(share, PARTITION_BYTES)
        if group[0].kind == CAPTURE and size > max(most, LEAST_SPLIT):
            large.append(group)
    return large


def is_long(group: Group, groups: Sequence[Group], count: int) -> bool:
    """Whether a group is a stored file with more bytes than ``count`` tasks read on average."""
    least = max(sum(map(size_of, groups)) // count, 2 * PARTITION_BYTES)
    return group[0].kind != CAPTURE and size_of(group) >= least


def balanced(groups: Sequence[Group], count: int) -> list[list[Group]]:
    """Distributes groups to at most ``count`` tasks of about the same size; the largest task comes first."""
    if not groups:
        return []
    tasks: list[tuple[int, int, list[Group]]] = [(0, number, []) for number in range(min(count, len(groups)))]
    for group in sorted(groups, key=size_of, reverse=True):
        size, number, files = tasks[0]
        files.append(group)
        # Opening a file takes time, even an empty one.
        heapq.heapreplace(tasks, (size + size_of(group) + FILE_BYTES, number, files))
    return [files for _, _, files in sorted(tasks, reverse=True)]


def _undivided(groups: Sequence[Group], count: int) -> list[Assignment]:
    return [(files, None) for files in balanced(groups, count)]


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
