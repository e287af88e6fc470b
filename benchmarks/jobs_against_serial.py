"""How much sooner does `wirekit pipeline --jobs N` end than one process? (wall-clock time)

All tables of captures of ``WIREKIT_JOBS_MIB`` MiB (512), of small packets, bulk, and one connection, by one process and
by ``WIREKIT_JOBS`` processes (one per core, at least 2) in turns; the least of two runs each.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from benchmarks import capture_samples

SIZE = int(os.environ.get("WIREKIT_JOBS_MIB", "512")) << 20
JOBS = int(os.environ.get("WIREKIT_JOBS", max(os.cpu_count() or 1, 2)))
RUNS = 2


def measure(capture: Path, jobs: int) -> tuple[float, float]:
    """Seconds until a run ends, and its processor time."""
    output = capture.with_name("tables")
    shutil.rmtree(output, ignore_errors=True)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), monotonic()
    command = [sys.executable, "-m", "wirekit", "pipeline", str(capture), "--output", str(output), "--jobs", str(jobs)]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    end, usage = monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    return end - begin, usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figures)."""
    rows = []
    makers: dict[str, Callable[[Path], int]] = {
        "small packets": lambda path: capture_samples.small_packets(path, SIZE),
        "bulk": lambda path: capture_samples.bulk(path, SIZE),
        "one connection": lambda path: capture_samples.bulk(path, SIZE, connections=1),
    }
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder, "capture.pcap")
        for name, make in makers.items():
            make(capture)
            times: dict[int, list[tuple[float, float]]] = {1: [], JOBS: []}
            for _ in range(RUNS):
                for jobs, of_runs in times.items():
                    of_runs.append(measure(capture, jobs))
            (alone, used_alone), (together, used_together) = map(min, times.values())
            rows += [
                (f"{name}, one process", f"{alone:.1f} s, processor time {used_alone:.1f} s"),
                (
                    f"{name}, {JOBS} processes",
                    f"{together:.1f} s, {alone / together:.2f} × sooner, {used_together:.1f} s",
                ),
            ]
    return str(__doc__).partition("\n")[0], rows
