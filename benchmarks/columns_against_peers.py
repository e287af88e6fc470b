"""How fast do Kafka messages become Arrow columns, next to other readers and to what the machine allows?"""

from __future__ import annotations

from typing import Any

import wirekit
from benchmarks.samples import message_set
from benchmarks.timing import best

COUNT = 200_000
SLOW_COUNT = 5_000  # for a reader of which each message takes microseconds
SIZES = (1_000, 100_000, 1_000_000)
KEY = "kafka.message_set"


def columns(data: bytes) -> None:
    """Ours: all fields of all messages, checksums verified."""
    batch = wirekit.columns(KEY, data)
    assert batch.schema.metadata[b"wirekit.errors"] == b"0"


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
    """The question, and (what, figure) per contender."""
    from aiokafka.record import MemoryRecords as CythonRecords
    from kafka.record import MemoryRecords

    sample = message_set(1_000)
    data, less = repeated(sample, COUNT), repeated(sample, SLOW_COUNT)
    columns(data)  # compiles, or loads what was compiled
    mine = best(lambda: columns(data)) / COUNT
    cython = best(lambda: read_all(CythonRecords(data))) / COUNT
    python = best(lambda: read_all(MemoryRecords(less))) / SLOW_COUNT
    least = best(lambda: limit(data)) / COUNT
    rows = [
        (f"wirekit.columns, {COUNT:,} messages of {len(sample) // 1000} bytes", f"{mine * 1e9:.0f} ns a message"),
        ("aiokafka MemoryRecords (Cython) with CRC", f"{cython * 1e9:.0f} ns a message, {cython / mine:.1f} × ours"),
        ("kafka-python MemoryRecords with CRC", f"{python * 1e9:.0f} ns a message, {python / mine:.0f} × ours"),
        ("one pass of CRC-32 and one copy", f"{least * 1e9:.0f} ns a message; ours is {mine / least:.2f} ×"),
    ]
    for size in SIZES:
        messages = repeated(sample, size)
        rows.append(
            (f"wirekit.columns, {size:,} messages", f"{best(lambda m=messages: columns(m)) / size * 1e9:.0f} ns")
        )
    return str(__doc__), rows
