"""How do column functions in Spark compare with a Python UDF that calls kafka-python? (processor time of all processes)

Each cell is a message set, of one message or of fifty. The time is that of a whole job, JVM and Python workers, from
a Parquet file to nothing, on one thread; of three runs the fastest counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.processes import used_below
from benchmarks.samples import message_set

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

MESSAGES = 1_600_000
OF_PEER = 16  # times fewer for the peer
PER_CELL = (1, 50)


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per contender."""
    from pyspark.sql import functions as sf

    import wirekit.spark as wk
    from wirekit.spark.session import session

    spark = session("local[1]", "benchmark", {"spark.driver.memory": "1g"})
    peer = sf.udf(_records, "array<struct<offset:bigint,crc_ok:boolean,timestamp:bigint,key:binary,value:binary>>")
    key, rows = "kafka.message_set", []
    for count in PER_CELL:
        with tempfile.TemporaryDirectory() as folder:
            _write(spark, Path(folder) / "all", message_set(count), MESSAGES // count)
            _write(spark, Path(folder) / "few", message_set(count), MESSAGES // count // OF_PEER)
            work: list[tuple[str, Any, str, int]] = [
                ("decode", wk.decode("data", key), "all", MESSAGES),
                ("messages", wk.messages("data", key), "all", MESSAGES),
                ("check", wk.check("data", key), "all", MESSAGES),
                ("encode of decode", wk.encode(wk.decode("data", key)["value"], key), "all", MESSAGES),
                ("Python UDF with kafka-python", peer("data"), "few", MESSAGES // OF_PEER),
            ]
            speeds = {}
            for name, column, which, messages in work:
                speeds[name] = messages / min(_time(spark, Path(folder) / which, column) for _ in range(3))
                rows.append((f"{name}, cells of {count}", f"{speeds[name]:,.0f} messages/s a core"))
            ratio = speeds["decode"] / speeds["Python UDF with kafka-python"]
            rows.append((f"decode, of the Python UDF, cells of {count}", f"{ratio:.1f} ×"))
    spark.stop()
    return str(__doc__).partition("\n")[0], rows


def _records(data: bytes) -> list[tuple[Any, ...]]:
    """What the UDF of the peer gives of a cell."""
    from kafka.record import MemoryRecords

    records, decoded = MemoryRecords(bytes(data)), []
    while records.has_next():
        batch = records.next_batch()
        good = batch.validate_crc()
        decoded += [(each.offset, good, each.timestamp, each.key, each.value) for each in batch]
    return decoded


def _write(spark: SparkSession, path: Path, cell: bytes, rows: int) -> None:
    from pyspark.sql import functions as sf

    spark.range(rows).select(sf.lit(bytearray(cell)).alias("data")).coalesce(1).write.parquet(str(path))


def _time(spark: SparkSession, path: Path, column: Column) -> float:
    """Processor time of a job."""
    before = used_below()
    spark.read.parquet(str(path)).select(column).write.format("noop").mode("overwrite").save()
    return used_below() - before
