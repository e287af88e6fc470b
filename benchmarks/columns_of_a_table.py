"""What do two columns of a table cost, of what all of them cost? (processor time)

First by ``wirekit.read``, of files in memory; then through the Spark data source, all processes of a job on one thread,
from the file to nothing, without the start of Python and of Spark. The faster of three runs counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import wirekit
from benchmarks import capture_samples
from benchmarks.processes import used_below
from benchmarks.segment_against_kafka_python import segment

SIZE = 64 << 20
CASES = (
    ("messages of a segment", "t-0", "messages", ("topic", "wire_bytes")),
    ("messages of a capture", "bulk.pcap", "messages", ("topic", "wire_bytes")),
    ("packets of eight captures", "links", "packets", ("ts_us", "length")),
)


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, ratio)."""
    from wirekit.spark.session import session
    from wirekit.spark.source import register

    spark = session("local[1]", "benchmark", {"spark.driver.memory": "1g"})
    register(spark)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "t-0").mkdir()
        segment(Path(folder) / "t-0" / f"{0:020}.log", SIZE, codec=0)
        capture_samples.bulk(Path(folder) / "bulk.pcap", SIZE)
        (Path(folder) / "links").mkdir()
        for host in "abcdefgh":  # one takes as long as a job with nothing to do
            (Path(folder) / "links" / f"{host}.pcap").hardlink_to(Path(folder) / "bulk.pcap")
        for name, file, table, columns in CASES:
            path = f"{folder}/{file}"

            def here(columns: tuple[str, ...] | None, path: str = path, table: str = table) -> None:
                for _ in wirekit.read(path, table, columns):
                    pass

            def spark_job(columns: tuple[str, ...] | None, path: str = path, table: str = table) -> None:
                reader = spark.read.format("wirekit").option("table", table)
                reader = reader.option("columns", ",".join(columns)) if columns else reader
                reader.load(path).write.format("noop").mode("overwrite").save()

            for label, work, clock, idle in (
                ("wirekit.read", here, process_time, 0.0),
                ("Spark", spark_job, used_below, _idle(spark, folder)),
            ):
                every, two = (_best(work, wanted, clock) - idle for wanted in (None, columns))
                rows.append((f"{name}, {label}", f"{two / every:.0%} ({two:.2f} of {every:.2f} s)"))
    spark.stop()
    return str(__doc__).partition("\n")[0], rows


def _idle(spark: object, folder: str) -> float:
    """Processor time of a job of the source with nothing to do."""
    empty = Path(folder) / "empty.pcap"
    empty.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))

    def work(_: None) -> None:
        reader = spark.read.format("wirekit").option("table", "packets")  # type: ignore[attr-defined]
        reader.load(str(empty)).write.format("noop").mode("overwrite").save()

    return _best(work, None, used_below)


def _best(work: Callable[..., None], wanted: tuple[str, ...] | None, clock: Callable[[], float]) -> float:
    times = []
    for _ in range(4):
        before = clock()
        work(wanted)
        times.append(clock() - before)
    return min(times[1:])
