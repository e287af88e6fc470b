"""Which share of the serial driver's throughput per core does Spark reach on one long connection? (processor time)

All tables of a capture with one connection of ``WIREKIT_SPARK_MIB`` MiB (256), by the serial driver and on Spark in
turns. Spark's time is that of its workers, its JVM and its driver. The first run of both, which starts workers and
loads kernels, does not count; the least of the other three does.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import process_time

from benchmarks import capture_samples
from benchmarks.processes import peaks_below, used_below
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import run as serial

SIZE = int(os.environ.get("WIREKIT_SPARK_MIB", "256")) << 20
RUNS = 4


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figures)."""
    from wirekit.spark.pipeline import run as on_spark
    from wirekit.spark.session import session

    driver, below, alone = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder, session("local[2,4]", "benchmark") as spark:
        capture = Path(folder) / "one.pcap"
        capture_samples.bulk(capture, SIZE, connections=1)
        job = Job(find_inputs([capture]))
        for number in range(RUNS):
            begin = process_time()
            serial(job, f"{folder}/serial-{number}")
            end, before = process_time(), used_below()
            alone.append(end - begin)
            on_spark(job, f"{folder}/spark-{number}", spark)
            driver.append(process_time() - end)
            below.append(used_below() - before)
        _, worker = peaks_below()
    best, of_driver = min((sum(pair), pair[0]) for pair in zip(driver[1:], below[1:], strict=True))
    least = min(alone[1:])
    return str(__doc__).partition("\n")[0], [
        ("serial", f"{least:.2f} s"),
        ("Spark", f"{best:.2f} s, of which {of_driver:.2f} s in the driver"),
        ("share", f"{least / best:.2f}"),
        ("largest worker", f"{worker} MiB"),
    ]
