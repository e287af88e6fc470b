"""What does a run of the pipeline cost in processor time, disk and memory? The constants of docs/scale.md.

The serial driver, all tables, on files of 64 MiB, the second time, when the kernels are loaded; then thousands of
captures of a few KB, for what each file costs besides its packets. ``WIREKIT_SCALE_FILES`` says how many (10,000).
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks import capture_samples
from benchmarks.segment_against_kafka_python import segment
from wirekit.capture.files import open_capture
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.pipeline.serial import run as serial
from wirekit.road.packets import Endpoints
from wirekit.road.windows import read_windows

SIZE = 64 << 20
FILES = int(os.environ.get("WIREKIT_SCALE_FILES", "10000"))
SMALL = (2_000, 12_000)
"""Bytes of the fixtures that are copied, from and to."""


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figures) of each kind of file."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture_samples.bulk(folder / "bulk.pcap", SIZE)
        capture_samples.small_packets(folder / "small.pcap", SIZE)
        (folder / "t-0").mkdir()
        segment(folder / "t-0" / f"{0:020}.log", SIZE, codec=0)
        for label, file in (("bulk", "bulk.pcap"), ("small packets", "small.pcap"), ("a segment", "t-0")):
            _cost(folder / file, folder / f"first-{file}")
            rows.append(
                (f"64 MiB of {label}", _cost(folder / file, folder / f"lake-{file}") + _going_on(folder / file))
            )
        rows.append((f"{FILES:,} captures", _cost(many(folder / "many", FILES), folder / "lake-many", per=FILES)))
    return str(__doc__).partition("\n")[0], rows


def _cost(path: Path, lake: Path, per: int = 0) -> str:
    """The figures of a run."""
    before = time.process_time()
    result = serial(Job(find_inputs([path])), lake)
    spent = time.process_time() - before
    files = result.summary.files.values()
    written = sum(each.stat().st_size for each in lake.rglob("*") if each.is_file())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    each_file = f", {spent / per * 1e3:.2f} ms a file" if per else ""
    return (
        f"{spent:.2f} s{each_file}; {sum(each.segments for each in files):,} packets, "
        f"{_sum(each.calls.values() for each in files):,} frames, "
        f"{_sum(each.messages.values() for each in files):,} messages, "
        f"{_sum(each.connections.values() for each in files):,} connections; {written:,} bytes written, "
        f"peak so far {peak} MiB"
    )


def _going_on(path: Path) -> str:
    return f"; connections go on in another window {continued(path):,} times" if path.is_file() else ""


def continued(path: Path) -> int:
    """How often a connection of a capture goes on in another window."""
    total, flows_before = 0, np.zeros((0, 2), np.int64)
    with open_capture(path) as capture:
        for window in read_windows([capture], Endpoints()) or ():
            ends = np.stack([window.packets.source, window.packets.target], axis=1)
            flows = np.unique(np.sort(ends, axis=1), axis=0)
            total += len(flows)
            flows_before = np.unique(np.concatenate([flows_before, flows]), axis=0)
    return total - len(flows_before)


def _sum(counts: Iterable[Iterable[int]]) -> int:
    return sum(sum(each) for each in counts)


def many(folder: Path, count: int) -> Path:
    """Copies of small fixtures, a thousand in a directory."""
    fixtures = sorted(capture_samples.FIXTURES.glob("*.pcap*"))
    sources = [each for each in fixtures if SMALL[0] < each.stat().st_size < SMALL[1]]
    for number in range(count):
        source = sources[number % len(sources)]
        place = folder / f"{number // 1000:03}" / f"host{number:06}x{source.suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.read_bytes())
    return folder
