"""How far is a run of the serial driver from the model of docs/scale.md? (processor time)

Bulk and small packets of ``WIREKIT_MODEL_MIB`` MiB (256; ``1024,2048`` for several sizes), each in a process that has
read 64 MiB of the same kind before. The second of two such runs gives the speed of the machine: the formula is
multiplied by its measured over its predicted time.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import process_time

from benchmarks import capture_samples
from benchmarks.scale import SIZE, continued
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import run as serial

SIZES = [int(each) for each in os.environ.get("WIREKIT_MODEL_MIB", "256").split(",")]
KINDS = {"bulk": capture_samples.bulk, "small packets": capture_samples.small_packets}
OF_BYTE, OF_PACKET, OF_FRAME, OF_MESSAGE, OF_CONTINUED = 5e-9, 1e-6, 8e-6, 0.9e-6, 65e-6
"""Seconds of processor time: the formula of docs/scale.md."""


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (what, predicted and measured) of each capture."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture = folder / "a.pcap"
        for kind, write in KINDS.items():
            write(capture, SIZE)
            _times(capture, folder / f"first {kind}")
            predicted, measured = _times(capture, folder / f"again {kind}")
            speed = measured / predicted
            rows.append((f"{SIZE >> 20} MiB of {kind}", f"{measured:.2f} s measured, {speed:.2f} × the formula"))
            for size in SIZES:
                write(capture, size << 20)
                predicted, measured = _times(capture, folder / f"{size} {kind}")
                off = measured / (predicted * speed) - 1
                text = f"{predicted * speed:.1f} s predicted, {measured:.1f} s measured, {off * 100:+.0f} %"
                rows.append((f"{size:,} MiB of {kind}", text))
    return str(__doc__).partition("\n")[0], rows


def _times(capture: Path, lake: Path) -> tuple[float, float]:
    """Seconds by the formula, and of a run."""
    job = Job(find_inputs([capture]))
    before = process_time()
    result = serial(job, lake)
    measured = process_time() - before
    (file,) = result.summary.files.values()
    predicted = OF_BYTE * capture.stat().st_size + OF_PACKET * file.segments + OF_CONTINUED * continued(capture)
    predicted += OF_FRAME * sum(file.calls.values()) + OF_MESSAGE * sum(file.messages.values())
    return predicted, measured
