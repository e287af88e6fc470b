"""The driver in several processes of this machine: they perform the tasks of ``wirekit.pipeline.parallel``."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Unpack

from wirekit.compiler.cache import interpreter_is_compiled
from wirekit.errors import WirekitError
from wirekit.pipeline import parallel
from wirekit.pipeline.inputs import Job
from wirekit.pipeline.parallel import Task
from wirekit.pipeline.roads import captures_by_columns
from wirekit.pipeline.run import Options, Progress, Result
from wirekit.tuning import collect_rarely, keep_pandas_out


def run(
    job: Job,
    output: str | os.PathLike[str],
    processes: int,
    progress: Progress | None = None,
    *,
    shuffled: bool | None = None,
    bundle: int | None = None,
    **options: Unpack[Options],
) -> Result:
    """Writes the tables of the captures in several processes, the same tables as ``wirekit.pipeline.serial.run``.

    The processes import wirekit anew: a script that calls this needs ``if __name__ == "__main__":``, and protocols must
    be found as plugins.

    Args:
        job: the inputs, and how protocols are chosen.
        output: the lake: a directory, or the URI of a prefix.
        processes: the number of processes.
        progress: receives the progress, as processes report it.
        bundle, shuffled: see ``parallel.run``.
        options: see ``publish``.

    Raises:
        Misuse: ``output`` contains files that wirekit did not write, or was written with other options.
        WirekitError: a process was killed, or none can be started.
    """
    if not interpreter_is_compiled() and any(captures_by_columns([each], job.road) for each in job.inputs):
        from wirekit.road.warming import warm

        warm()  # each process would compile the same code
    with _Processes(processes) as workers:
        return parallel.run(job, output, "processes", workers, progress, shuffled=shuffled, bundle=bundle, **options)


class _Processes:
    """The workers of a run; implements ``parallel.Workers``. If a task fails, they end before the lake is tidied.

    Args:
        count: the number of processes.
    """

    errors: tuple[type[Exception], ...] = (Exception,)

    def __init__(self, count: int) -> None:
        self.cores = count
        self._pool: ProcessPoolExecutor | None = None
        self._children_before: set[BaseProcess] = set()
        self._futures: list[Future[str]] = []

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def results(self, task: Task, job: Job, attempts: str, count: int, most: int | None = None) -> list[str]:
        if self._pool is None:
            self._children_before = {*multiprocessing.active_children()}
            # Not forked: this process may have threads, such as those of Arrow.
            spawning = multiprocessing.get_context("spawn")
            try:
                self._pool = ProcessPoolExecutor(self.cores, spawning, initializer=_begin)
            except OSError as error:
                why = f"{error.strerror}; on Linux, their semaphores are in /dev/shm"
                raise WirekitError(f"processes cannot be started: {why}") from error
        try:
            self._futures = [self._pool.submit(task, job, attempts, number) for number in range(count)]
            return [each.result() for each in self._futures]
        except BaseException as error:
            for each in {*multiprocessing.active_children()} - self._children_before:
                each.terminate()
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
            if isinstance(error, BrokenProcessPool):
                raise WirekitError(
                    "a process of the run was killed, perhaps because memory ran out; run again with fewer processes"
                ) from None
            raise

    def completed(self) -> float:
        futures = self._futures
        return sum(each.done() for each in futures) / len(futures) if futures else 0.0


def _begin() -> None:
    """Lets a process end with its parent, and leave an interrupt to the parent."""
    collect_rarely()
    keep_pandas_out()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), name="wirekit-parent", daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
