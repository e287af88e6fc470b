"""The best of several runs in CPU time; the machine may be busy with something else."""

from __future__ import annotations

import time
from collections.abc import Callable

RUNS = 7


def best(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of several runs, which work in one thread."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)
