"""What do the start of a run on Spark and each of its files cost the driver?

A run over one capture of a few KB in a new session, without the start of the JVM; then a run over thousands of them.
``WIREKIT_SCALE_FILES`` says how many (3,000).
"""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path
from time import monotonic, process_time

from benchmarks import capture_samples
from benchmarks.processes import peaks_below
from benchmarks.scale import many
from wirekit.pipeline.inputs import Job, find_inputs

FILES = int(os.environ.get("WIREKIT_SCALE_FILES", "3000"))


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figures)."""
    begin = monotonic()
    from wirekit.spark.pipeline import run as on_spark
    from wirekit.spark.session import session

    imported = monotonic()
    with tempfile.TemporaryDirectory() as folder, session("local[2,4]", "benchmark") as spark:
        started = monotonic()
        capture = capture_samples.FIXTURES / "pulsar-batch.pcap"
        on_spark(Job(find_inputs([capture])), f"{folder}/one", spark)
        first = monotonic() - started + imported - begin
        files = many(Path(folder) / "many", FILES)
        before, begin = process_time(), monotonic()
        on_spark(Job(find_inputs([files])), f"{folder}/lake", spark)
        each, total = (process_time() - before) / FILES, monotonic() - begin
        java, worker = peaks_below()
        driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return str(__doc__).partition("\n")[0], [
        ("the JVM starts", f"{started - imported:.1f} s"),
        ("imports and a run over one capture", f"{first:.1f} s"),
        (f"{FILES:,} captures", f"{total:.0f} s, {each * 1e3:.2f} ms of driver a file"),
        ("peak memory", f"driver {driver} MiB, JVM {java} MiB, largest worker {worker} MiB"),
    ]
