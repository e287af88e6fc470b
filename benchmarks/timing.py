"""The best of several runs; the machine may be busy with something else."""

from __future__ import annotations

import time
from collections.abc import Callable

RUNS = 5


def best(work: Callable[[], object]) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
