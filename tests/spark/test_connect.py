"""Column functions on Spark Connect: in a process of its own, as one cannot have both kinds of sessions."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wirekit.spark.java import find_java, shimmed

pytestmark = pytest.mark.spark

PROGRAM = """
import wirekit, wirekit.spark as wk
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
spark.stop()
"""


@pytest.mark.skipif("WIREKIT_LONG" not in os.environ, reason="takes a minute: make test-long")
def test_functions_on_connect(tmp_path: object) -> None:
    pytest.importorskip("grpc_status", reason="Spark Connect is not installed")
    environment = os.environ | {
        "JAVA_HOME": str(shimmed(find_java()).path),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE", "SPARK_API_MODE"):
        environment.pop(name, None)
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=str(tmp_path), check=False, timeout=300
    )
    assert run.stdout.splitlines()[-1:] == ["[(1, 7, True, 'ok'), (2, 7, True, 'bad')]"], run.stderr[-3000:]
