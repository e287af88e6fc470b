"""How long does a segment of 1 GiB take as JSON lines, next to kafka-python's reading it?

The segment repeats what real brokers stored (fixtures/kafka/disk): messages that are not compressed, or sets in gzip
(kafka-python needs more libraries for the other codecs). Ours is
the whole command, ``wirekit messages SEGMENT --output json``, into /dev/null: a process with its start, checksums
verified, offsets and times resolved, every message as a line; it reads and prints in two threads. Kafka-python's is its
``MemoryRecords`` over the bytes of the file, in this process: the checksums of batches verified and all records
iterated, nothing printed. It reads a 64th part of the file, which is multiplied.

``WIREKIT_SEGMENT_MIB`` makes the segment smaller.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import wirekit
from wirekit.protocols.kafka.reading import CODEC_NAMES

DISK = Path(__file__).parents[1] / "fixtures" / "kafka" / "disk"
LESS = 64
RUNS = 3


def segment(path: Path, size: int, *, codec: int) -> int:
    """Writes a segment of at least ``size`` bytes; gives the length of the part that repeats."""
    parts = []
    for each in sorted(DISK.glob("*.log")):
        value = wirekit.decode(each.read_bytes(), "kafka.log_segment").value
        entries = [e for e in value.messages if e.message.attributes.codec == codec]
        parts.append(wirekit.encode("kafka.message_set", {"messages": entries}))
    part = b"".join(parts)
    many = part * -(-(1 << 20) // len(part))
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(many)
    return len(many)


def ours(path: Path) -> float:
    """Seconds that the command takes."""
    command = [sys.executable, "-m", "wirekit", "messages", str(path), "--output", "json"]
    start = time.perf_counter()
    with open(os.devnull, "wb") as nowhere:
        subprocess.run(command, check=True, stdout=nowhere)
    return time.perf_counter() - start


def processor_seconds() -> float:
    """Processor seconds of all processes that were started here and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def theirs(data: bytes) -> tuple[float, float, int]:
    """Seconds that kafka-python takes, processor seconds, and messages that it finds."""
    from kafka.record import MemoryRecords

    start, before = time.perf_counter(), time.process_time()
    count = 0
    records = MemoryRecords(data)
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        for _ in batch:
            count += 1
    return time.perf_counter() - start, time.process_time() - before, count


def compared(size: int, *, codec: int) -> list[tuple[str, str]]:
    """Both readers on one segment."""
    codec_name = CODEC_NAMES[codec]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t-0", "00000000000000000000.log")
        path.parent.mkdir()
        repeat = segment(path, size, codec=codec)
        whole = path.stat().st_size
        part = max(repeat, whole // LESS // repeat * repeat)
        with open(path, "rb") as file:
            data = file.read(part)
        mine = peer = processor = theirs_processor = float("inf")
        for _ in range(RUNS):  # in turns: the machine may be busy with something else
            before = processor_seconds()
            mine = min(mine, ours(path))
            processor = min(processor, processor_seconds() - before)
            seconds, busy, count = theirs(data)
            peer, theirs_processor = min(peer, seconds), min(theirs_processor, busy)
    scale = whole / part
    messages = count * scale
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return [
        (f"{codec_name}: {whole >> 20} MiB, {messages / 1e6:.1f} million messages, ours", f"{mine:.1f} s"),
        (f"{codec_name}: ours, most memory", f"{memory:.0f} MiB"),
        (f"{codec_name}: ours, a message", f"{mine / messages * 1e9:.0f} ns"),
        (f"{codec_name}: kafka-python, a message", f"{peer / count * 1e9:.0f} ns"),
        (f"{codec_name}: kafka-python takes, of our time", f"{peer * scale / mine:.1f} ×"),
        (f"{codec_name}: ours, processor time of a message", f"{processor / messages * 1e9:.0f} ns"),
        (f"{codec_name}: kafka-python, processor time of a message", f"{theirs_processor / count * 1e9:.0f} ns"),
        (f"{codec_name}: kafka-python takes, of our processor time", f"{theirs_processor * scale / processor:.1f} ×"),
    ]


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    size = int(os.environ.get("WIREKIT_SEGMENT_MIB", "1024")) << 20
    rows = compared(size, codec=0) + compared(size, codec=1)
    return str(__doc__).partition("\n")[0], rows
