"""How far is a run of the serial driver from the model of docs/scale.md? (processor time)

Bulk and small packets of ``WIREKIT_MODEL_MIB`` MiB (256; ``1024,2048`` for several sizes), each in a process of its own
that has read 64 MiB of the same kind before. Such runs of 64 MiB just before and just after a capture tell how fast the
machine is meanwhile: their measured over their predicted time. With ``WIREKIT_MODEL_SPARK=1``, each capture is also
read on Spark, on two threads, in a session that has read 64 MiB before; its time includes the driver and the JVM.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import process_time

from benchmarks import capture_samples
from benchmarks.processes import used_below
from benchmarks.scale import SIZE, continued
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import run as serial

SIZES = [int(each) for each in os.environ.get("WIREKIT_MODEL_MIB", "256").split(",")]
ON_SPARK = os.environ.get("WIREKIT_MODEL_SPARK") == "1"
KINDS = {"bulk": capture_samples.bulk, "small packets": capture_samples.small_packets}
OF_BYTE, OF_PACKET, OF_FRAME, OF_MESSAGE, OF_CONTINUED = 5e-9, 1e-6, 8e-6, 0.9e-6, 65e-6
"""Seconds of processor time: the formula of docs/scale.md."""


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, predicted and measured) of each capture."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture = folder / "a.pcap"
        for kind, write in KINDS.items():
            small = folder / f"{kind}.pcap"
            write(small, SIZE)
            for size in SIZES:
                write(capture, size << 20)
                with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as process:
                    runs = [process.submit(_times, small, each, folder) for each in (small, capture, small)]
                    before, measured, after = (each.result() for each in runs)
                speed = (before[1] + after[1]) / (before[0] + after[0])
                off = measured[1] / measured[0] - 1
                text = f"{measured[0]:.1f} s predicted, {measured[1]:.1f} s measured, {off * 100:+.0f} %"
                rows.append((f"{size:,} MiB of {kind}", f"{text} (64 MiB meanwhile: {speed:.2f} × the formula)"))
                if ON_SPARK:
                    seconds = _on_spark(small, capture, folder)
                    rows.append(("the same on Spark", f"{seconds:.1f} s, {(seconds / measured[0] - 1) * 100:+.0f} %"))
    return str(__doc__).partition("\n")[0], rows


def _times(first: Path, capture: Path, folder: Path) -> tuple[float, float]:
    """Seconds by the formula, and of a run after one on another capture; the tables are removed."""
    for each in (first, capture):
        job = Job(find_inputs([each]))
        before = process_time()
        result = serial(job, folder / "lake")
        measured = process_time() - before
        shutil.rmtree(folder / "lake")
    (file,) = result.summary.files.values()
    predicted = OF_BYTE * capture.stat().st_size + OF_PACKET * file.segments + OF_CONTINUED * continued(capture)
    predicted += OF_FRAME * sum(file.calls.values()) + OF_MESSAGE * sum(file.messages.values())
    return predicted, measured


def _on_spark(first: Path, capture: Path, folder: Path) -> float:
    """Seconds of all processes for a run on Spark after one on another capture; the tables are removed."""
    from wirekit.spark.pipeline import run as on_spark
    from wirekit.spark.session import session

    with session("local[2,4]", "benchmark") as spark:
        for each in (first, capture):
            job = Job(find_inputs([each]))
            before = process_time() + used_below()
            on_spark(job, folder / "lake", spark)
            seconds = process_time() + used_below() - before
            shutil.rmtree(folder / "lake")
    return seconds
