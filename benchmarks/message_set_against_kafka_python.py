"""How do the engines compare with kafka-python at reading a message set with its checksums?"""

from __future__ import annotations

import wirekit
from benchmarks.samples import message_set
from benchmarks.timing import best

COUNT = 2_000


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    from kafka.record import MemoryRecords

    data = message_set(COUNT)

    def ours(engine: str) -> None:
        decoded = wirekit.decode(data, "kafka.message_set", engine=engine)
        assert len(decoded.checks) == COUNT
        assert decoded.clean

    def theirs() -> None:
        records = MemoryRecords(data)
        read = 0
        while records.has_next():
            batch = records.next_batch()
            assert batch.validate_crc()
            for record in batch:
                read += len(record.value)
        assert read

    rows, reference, peer = best(lambda: ours("rows")), best(lambda: ours("reference")), best(theirs)
    return (
        str(__doc__),
        [
            ("wirekit rows engine, all verdicts spelled out", f"{rows / COUNT * 1e6:.2f} µs a message"),
            ("wirekit reference engine", f"{reference / COUNT * 1e6:.1f} µs a message"),
            ("kafka-python MemoryRecords", f"{peer / COUNT * 1e6:.2f} µs a message"),
            ("rows engine takes, of kafka-python's time", f"{rows / peer:.2f} ×"),
            ("reference engine takes, of kafka-python's time", f"{reference / peer:.2f} ×"),
        ],
    )
