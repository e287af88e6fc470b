"""How fast do Kafka messages become Arrow columns, and back, next to other readers and to what the machine allows?

``WIREKIT_BENCH_MESSAGES`` bounds how many messages the largest buffer has, for machines with less than 12 GB.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import wirekit
from benchmarks.samples import message_set
from benchmarks.timing import best
from wirekit.compiler import cache
from wirekit.compiler.columns import program, warm

COUNT = 200_000
SLOW_COUNT = 5_000  # for a reader of which each message takes microseconds
LARGEST = int(os.environ.get("WIREKIT_BENCH_MESSAGES", "10000000"))
SIZES = sorted({min(size, LARGEST) for size in (1_000, 10_000, 100_000, 1_000_000, 10_000_000)})
FIELDS = ["offset", "message.timestamp", "message.attributes.timestamp_type", "message.key", "message.value"]
KEY = "kafka.message_set"


def columns(data: bytes) -> None:
    """Ours: all fields of all messages, checksums verified."""
    batch = wirekit.columns(KEY, data)
    assert batch.schema.metadata[b"wirekit.errors"] == b"0"


def walked(data: bytes, fields: list[str] | None = None) -> int:
    """Ours, message after message: columns, and then their rows."""
    total = 0
    for row in wirekit.rows(wirekit.columns(KEY, data), fields):
        total += len(row.message_key) + len(row.message_value) + (row.message_timestamp > 0)
    return total


# In a process of its own, as the peak is the process's: what is needed beside the input, and the output's size.
PEAK = """
import resource, sys, wirekit
from pathlib import Path
from benchmarks.samples import message_set

def most():
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says on Linux begins with the peak of the process that started this one
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

data = message_set(1_000) * (int(sys.argv[1]) // 1_000)
wirekit.columns("kafka.message_set", data[: 1 << 16])
before = most()
batch = wirekit.columns("kafka.message_set", data)
print(len(data), batch.nbytes, most() - before)
"""


def peak(count: int) -> str:
    """How much memory ``columns`` takes at most, next to its input and output."""
    completed = subprocess.run([sys.executable, "-c", PEAK, str(count)], check=True, stdout=subprocess.PIPE, text=True)
    input_size, output, most = map(int, completed.stdout.split())
    bound = "within" if input_size + most <= 3 * input_size + output else "MORE THAN"
    ratio = (input_size + most) / input_size
    return f"{ratio:.1f} × input, output is {output / input_size:.1f} ×: {bound} 3 × input + output"


def read_all(records: Any) -> int:
    """What both libraries offer: batch after batch, message after message."""
    total = 0
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        for record in batch:
            total += len(record.key) + len(record.value) + (record.timestamp > 0)
    return total


def limit(data: bytes) -> None:
    """What cannot be had for less: one pass of CRC-32 and one copy of the bytes."""
    try:
        from isal.isal_zlib import crc32
    except ImportError:
        from zlib import crc32
    crc32(data)
    bytearray(data)


def repeated(sample: bytes, count: int) -> bytes:
    """Messages enough, of a set of a thousand."""
    return sample * (count // 1_000)


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    from aiokafka.record import MemoryRecords as CythonRecords
    from kafka.record import MemoryRecords

    sample = message_set(1_000)
    data, less = repeated(sample, COUNT), repeated(sample, SLOW_COUNT)
    scan_program = program(KEY).scan_program(None, verdicts=False, wide=False)
    scan_program.choose(cache.interpreter())
    columns(data)  # compiles, or loads what was compiled
    alone = best(lambda: columns(data)) / COUNT
    few = best(lambda: columns(sample[: len(sample) // 100])) * 1e6
    assert warm(KEY)
    mine = best(lambda: columns(data)) / COUNT
    cython = best(lambda: read_all(CythonRecords(data))) / COUNT
    python = best(lambda: read_all(MemoryRecords(less))) / SLOW_COUNT
    walking = best(lambda: walked(data)) / COUNT
    some = best(lambda: walked(data, FIELDS)) / COUNT
    batch = wirekit.columns(KEY, data)
    assert wirekit.build_columns(KEY, batch) == data
    building = best(lambda: wirekit.build_columns(KEY, batch)) / COUNT
    least = best(lambda: limit(data)) / COUNT
    rows = [
        (f"wirekit.columns, {COUNT:,} messages of {len(sample) // 1000} bytes", f"{mine * 1e9:.0f} ns a message"),
        ("the same without a kernel: the interpreter", f"{alone * 1e9:.0f} ns a message"),
        (
            "aiokafka MemoryRecords (Cython) with CRC",
            f"{cython * 1e9:.0f} ns a message, {cython / mine:.1f} × ours, {cython / alone:.1f} × the interpreter",
        ),
        ("a call for ten messages", f"{few:.0f} µs"),
        ("kafka-python MemoryRecords with CRC", f"{python * 1e9:.0f} ns a message, {python / mine:.0f} × ours"),
        ("one pass of CRC-32 and one copy", f"{least * 1e9:.0f} ns a message; ours is {mine / least:.2f} ×"),
    ]
    rows += [
        (
            "wirekit.rows of columns, the fields that aiokafka has",
            f"{some * 1e9:.0f} ns a message, {cython / some:.2f} ×",
        ),
        ("wirekit.rows of columns, all fields", f"{walking * 1e9:.0f} ns a message, {cython / walking:.2f} × aiokafka"),
        ("wirekit.build_columns", f"{building * 1e9:.0f} ns a message"),
    ]
    for size in SIZES:
        messages = repeated(sample, size)  # of ten million messages, 1.4 GB
        figure = best(lambda m=messages: columns(m)) / size * 1e9
        rows.append((f"wirekit.columns, {size:,} messages", f"{figure:.0f} ns a message"))
        del messages
    rows.append((f"peak memory, {SIZES[-1]:,} messages", peak(SIZES[-1])))
    return str(__doc__).partition("\n")[0], rows
