"""How long does a capture take from the file to all tables, next to tshark printing fields or messages of it?

A capture of small packets is made of the conversations in ``fixtures/pcap``, one of bulk of Produce and Fetch; see
``capture_samples``. Ours is ``wirekit pipeline CAPTURE --road columns`` (and ``objects``) with Parquet written, in a
process of its own with kernels that are compiled already, and ``wirekit inspect``, which writes nothing. tshark's is
its usual call for fields (``-T fields``: time, addresses, two of Kafka's) and for all that it knows (``-T ek``).
Processor time. Where tshark is not installed, it says so. ``WIREKIT_CAPTURE_MIB`` makes the captures larger or smaller
than 16 MiB; the least of ``WIREKIT_RUNS`` (1) counts.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

from benchmarks.capture_samples import bulk, small_packets
from wirekit.capture.files import open_capture
from wirekit.capture.links import Choice
from wirekit.capture.tcp import Settings
from wirekit.road.index import cut_frames, index_frames, recognised
from wirekit.road.packets import read_packets
from wirekit.road.streams import put_together

FIELDS = ("frame.time_epoch", "ip.src", "ip.dst", "kafka.api_key", "kafka.correlation_id")


def processor_seconds(*command: object) -> float:
    """Processor seconds of a command; status 1 says that not all of the capture was decoded."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    completed = subprocess.run(
        list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    if completed.returncode not in (0, 1):
        completed.check_returncode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(*command: object) -> float:
    """The least of several runs."""
    return min(processor_seconds(*command) for _ in range(int(os.environ.get("WIREKIT_RUNS", "1"))))


def stages(path: Path) -> list[tuple[str, float, int]]:
    """(stage, processor seconds, odd flows so far) of the road of columns up to the frame index."""
    figures = []
    with open_capture(path) as capture:
        start = process_time()
        packets = read_packets(capture)
        assert packets is not None
        figures.append(("packets", process_time() - start, 0))
        start = process_time()
        streams = put_together(packets, Settings())
        figures.append(("flows and streams", process_time() - start, int(streams.odd.sum())))
        start = process_time()
        odd = streams.odd | ~streams.known
        protocols = recognised(streams, Choice(), packets.endpoints.text, odd)
        figures.append(("protocols", process_time() - start, int(odd.sum())))
        start = process_time()
        cut_frames(streams, protocols, odd)
        figures.append(("frames cut", process_time() - start, int(odd.sum())))
        start = process_time()
        index = index_frames(streams, Choice(), packets.endpoints.text)
        figures.append(("the whole frame index", process_time() - start, int(index.odd.sum())))
    return figures


def measured(name: str, path: Path, count: int, folder: Path) -> list[tuple[str, str]]:
    """The figures of one capture."""
    rows = []
    stages(path)  # compiles
    for stage, seconds, odd in stages(path):
        rows.append((f"{name}: {stage}", f"{seconds / count * 1e6:.2f} µs a packet, {odd:,} flows odd"))
    ours = {}
    for road in ("columns", "objects"):
        command = (
            sys.executable,
            "-m",
            "wirekit",
            "pipeline",
            path,
            "--output",
            folder / road,
            "--road",
            road,
            "--replace",
        )
        processor_seconds(*command) if road == "columns" else None
        ours[road] = least(*command)
        rows.append(
            (f"{name}: all tables, --road {road}", f"{ours[road]:.1f} s, {ours[road] / count * 1e6:.1f} µs a packet")
        )
        seconds = least(sys.executable, "-m", "wirekit", "inspect", path, "--output", "json", "--road", road)
        rows.append((f"{name}: inspect, --road {road}", f"{seconds:.1f} s, {seconds / count * 1e6:.1f} µs a packet"))
    tshark = shutil.which("tshark")
    if tshark is None:
        return [*rows, (f"{name}: tshark", "is not installed: nothing to compare with")]
    fields = [word for field in FIELDS for word in ("-e", field)]
    for label, options in (("-T fields", ["-T", "fields", *fields]), ("-T ek", ["-T", "ek"])):
        seconds = least(tshark, "-n", "-r", path, *options)
        rows.append(
            (f"{name}: tshark {label}", f"{seconds:.1f} s; columns is {seconds / ours['columns']:.2f} × as fast")
        )
    return rows


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure)."""
    size = int(os.environ.get("WIREKIT_CAPTURE_MIB", "16")) << 20
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("small packets", small_packets), ("bulk", bulk)):
            path = Path(folder, f"{name.split()[0]}.pcap")
            count = make(path, size)
            rows.append((f"{name}: packets, MiB", f"{count:,}, {path.stat().st_size >> 20}"))
            rows += measured(name, path, count, Path(folder))
    return str(__doc__).partition("\n")[0], rows
