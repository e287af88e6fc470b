"""The best of several runs in CPU time; the machine may be busy with something else."""

from __future__ import annotations

import time
from collections.abc import Callable

RUNS = 7  # at least
LEAST = 0.2  # seconds: work that is done in less is run more often, as one run in a few may be disturbed


def best(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of several runs, which work in one thread."""
    times: list[float] = []
    while len(times) < RUNS or sum(times) < LEAST:
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)
