"""What works on Spark Connect: in a process of its own, as one cannot have both kinds of sessions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wirekit.errors import Misuse
from wirekit.pipeline.inputs import Job
from wirekit.spark.java import find_java, shimmed

pytestmark = pytest.mark.spark

REFUSAL = (
    "the pipeline needs Spark's classic API, but this session uses Spark Connect: use one of"
    ' wirekit.spark.session.session(), or read captures by spark.read.format("wirekit")'
)
PROGRAM = """
import sys, wirekit, wirekit.spark as wk
from wirekit.pipeline.inputs import Job, find_inputs
from wirekit.spark import pipeline, session, source
from pyspark.sql import SparkSession, functions as sf
from pyspark.sql.connect.session import SparkSession as Connected

spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
assert isinstance(spark, Connected)
data = wirekit.encode("kafka.message_set", {"messages": [{"offset": 7, "message": {"magic": 0, "value": b"v"}}]})
frame = spark.createDataFrame([(1, bytearray(data)), (2, bytearray(data[:-1] + b"?"))], "id int, data binary")
wk.register(spark, "kafka.message_set")
frame.createOrReplaceTempView("dump")
found = spark.table("dump").select(
    "id",
    sf.element_at(wk.messages("data", "kafka.message_set"), 1)["value"]["offset"].alias("offset"),
    (wk.encode(wk.decode("data", "kafka.message_set")["value"], "kafka.message_set") == sf.col("data")).alias("same"),
    sf.expr("wirekit_check(data, 'kafka.message_set').status").alias("status"),
)
print([tuple(row) for row in found.collect()])
source.register(spark)
options = {"table": "calls", "settle": "0"}
calls = spark.read.format("wirekit").option("table", "calls").load(sys.argv[1])
stream = spark.readStream.format("wirekit").options(**options).load(sys.argv[1]).writeStream.format("memory")
stream.queryName("calls").trigger(availableNow=True).start().awaitTermination()
print(calls.count(), spark.table("calls").count())
for refused in (lambda: pipeline.run(Job(find_inputs(sys.argv[1:])), "lake", spark), session.session):
    try:
        refused()
    except wirekit.Misuse as error:
        print(error)
spark.stop()
"""


@pytest.mark.skipif("WIREKIT_LONG" not in os.environ, reason="takes a minute: make test-long")
def test_functions_and_the_data_source_on_connect(tmp_path: object, fixtures: Path) -> None:
    pytest.importorskip("grpc_status", reason="Spark Connect is not installed")
    environment = os.environ | {
        "JAVA_HOME": str(shimmed(find_java()).path),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE", "SPARK_API_MODE"):
        environment.pop(name, None)
    command = [sys.executable, "-c", PROGRAM, str(fixtures / "pcap" / "pulsar-batch.pcap")]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=str(tmp_path), check=False, timeout=300
    )
    assert run.stdout.splitlines() == ["[(1, 7, True, 'ok'), (2, 7, True, 'bad')]", "6 6", REFUSAL, REFUSAL], (
        run.stderr[-3000:]
    )


def test_the_pipeline_refuses_a_session_of_connect(tmp_path: Path) -> None:
    from wirekit.spark.pipeline import run

    connected: Any = object()  # a session of Connect is no pyspark.sql.SparkSession
    with pytest.raises(Misuse, match=f"^{re.escape(REFUSAL)}$"):
        run(Job(()), tmp_path / "lake", connected)
    assert not (tmp_path / "lake").exists()
