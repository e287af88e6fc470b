"""The session has the settings that results depend on, and leaves the caller's environment and directory alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wirekit.errors import Misuse
from wirekit.spark.session import (
    SparkFailed,
    _environment,
    _message_at_start,
    _submitted,
    in_one_line,
    session,
    settings,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_map_in_arrow_over_a_range(spark: SparkSession) -> None:
    # Functions of a test stay inside it: those of a test module would go to the workers by name.
    def squares(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        for batch in batches:
            ids = batch.column(0)
            yield pa.record_batch({"id": ids, "square": pc.multiply(ids, ids)})

    rows = spark.range(1000, numPartitions=4).mapInArrow(squares, "id long, square long").collect()
    assert {row["id"]: row["square"] for row in rows} == {n: n * n for n in range(1000)}


@pytest.mark.spark
def test_one_process_runs_the_tests_that_share_the_session(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    """The scheduler in tests/conftest.py reads the group of a test from the id that pytest reports."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("not with --dist loadgroup")
    assert request.node.nodeid.endswith("@spark")


@pytest.mark.spark
def test_swapped_columns_do_not_pass(spark: SparkSession) -> None:
    def swapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["b", "a"])

    frame = spark.range(1).selectExpr("id a", "id + 1 b").mapInArrow(swapped, "a long, b long")
    with pytest.raises(Exception, match="ARROW_TYPE_MISMATCH"):
        frame.collect()


@pytest.mark.spark
def test_the_active_session_is_returned_with_its_meaning_restored(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    again = session(app_name="another", extra_conf={"spark.sql.ansi.enabled": "true", "spark.driver.memory": "9g"})
    assert again is spark
    assert again.conf.get("spark.sql.session.timeZone") == "UTC"
    assert again.sparkContext.appName == "wirekit tests"


@pytest.mark.spark
def test_another_master_than_that_of_the_active_session_is_refused(spark: SparkSession) -> None:
    assert session("local[2,4]") is spark
    with pytest.raises(Misuse, match=re.escape("Spark runs on local[2,4] already, and cannot change to local[3]")):
        session("local[3]")


@pytest.mark.spark
def test_an_error_of_a_task_is_reported_in_one_line(spark: SparkSession) -> None:
    def full(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        error = OSError(28, "No space left on device")
        error.add_note("in a.pcap, between x and y")
        raise error

    with pytest.raises(SparkFailed) as caught, in_one_line():
        spark.range(1).mapInArrow(full, "id long").collect()
    assert str(caught.value) == "Spark failed: OSError: [Errno 28] No space left on device; in a.pcap, between x and y"
    with pytest.raises(SparkFailed, match=r"^Spark failed: \[TABLE_OR_VIEW_NOT_FOUND\].*") as caught, in_one_line():
        spark.table("nowhere")
    assert "\n" not in str(caught.value)


def test_the_master_of_spark_submit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _submitted() == ""
    monkeypatch.setattr("wirekit.spark.session._submitted", lambda: "spark://host:7077")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(Misuse, match=r"Spark runs on spark://host:7077 already, and cannot change to local\[2\]"):
        session("local[2]")


@pytest.mark.spark
def test_saved_tables_stay_out_of_the_working_directory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spark.range(3).write.saveAsTable("numbers")
    assert spark.table("numbers").count() == 3
    spark.sql("drop table numbers")
    assert list(tmp_path.iterdir()) == []
    assert "spark-warehouse" not in os.listdir(Path(__file__).parents[2])


def test_extra_settings_win_and_java_options_add_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WIREKIT_SPARK_LOCAL_DIR", str(tmp_path))
    conf = settings("local[2,4]", {"spark.sql.shuffle.partitions": "7", "spark.driver.extraJavaOptions": "-Da=1"})
    assert conf["spark.sql.shuffle.partitions"] == "7"
    assert conf["spark.local.dir"] == str(tmp_path)
    assert Path(conf["spark.sql.warehouse.dir"]).parent == tmp_path
    log_settings, mine = conf["spark.driver.extraJavaOptions"].split()
    assert log_settings.startswith("-Dlog4j2.configurationFile=file:///")
    assert Path(log_settings.partition("file://")[2]).is_file()
    assert mine == "-Da=1"


def test_a_cluster_keeps_its_network() -> None:
    conf = settings("spark://host:7077")
    assert not [name for name in conf if name.startswith("spark.driver.") and name != "spark.driver.extraJavaOptions"]


def test_environment_of_a_local_session(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {
        "PYSPARK_SUBMIT_ARGS": "--rubbish",
        "SPARK_CONF_DIR": "/nowhere",
        "SPARK_HOME": "/nowhere",
        "JAVA_TOOL_OPTIONS": "-Xbad",
        "PYSPARK_PYTHON": "/nowhere/python",
    }
    for name, value in mine.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with _environment("local[2,4]", {}):
        variables: dict[str, Any] = {name: os.environ.get(name) for name in (*mine, "SPARK_LOCAL_IP")}
        assert (Path(os.environ["JAVA_HOME"]) / "bin" / "java").exists()
    assert variables == dict.fromkeys(mine) | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("master", "text"),
    [
        ("sc://host:15002", "a Spark Connect address: pass a master such as"),
        ("foo", "'foo' is not a Spark master: pass one such as"),
        ("local[x]", "is not a Spark master"),
        ("local[0]", "is not a Spark master"),
        ("host:7077", "is not a Spark master"),
        ("yarn", "needs HADOOP_CONF_DIR or YARN_CONF_DIR"),
    ],
)
def test_an_invalid_master_is_refused_before_java_starts(
    master: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "JAVA_HOME", "PATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Misuse, match=re.escape(text)):
        session(master)


class Thrown(Exception):
    """An exception of Java, as py4j gives it."""

    def __init__(self, text: str, cause: Thrown | None = None) -> None:
        super().__init__(f"An error occurred while calling None.None.\n: {text}")
        self.java_exception = self
        self.toString = lambda: text
        self.getCause = lambda: cause


def test_a_start_that_fails_names_its_first_cause() -> None:
    refused = Thrown("java.net.ConnectException: Connection refused")
    outer = Thrown("ClientException: An error has occurred.", Thrown("java.io.IOException: broken", refused))
    text = "ClientException: An error has occurred; java.net.ConnectException: Connection refused"
    assert _message_at_start(outer) == text
    assert _message_at_start(refused) == "java.net.ConnectException: Connection refused"
    stopped = "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nIt was created at:"
    assert _message_at_start(Thrown(stopped)) == "no master answers there"


@pytest.mark.spark
def test_a_cluster_that_does_not_answer_is_one_line(fixtures: Path, tmp_path: Path) -> None:
    master = "k8s://https://127.0.0.1:1"
    capture = str(fixtures / "pcap" / "pulsar-batch.pcap")
    command = [sys.executable, "-m", "wirekit", "pipeline", capture, "-o", str(tmp_path / "lake"), "--master", master]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(f"wirekit: Spark does not start on {master}: .*Connection refused\n", ended.stderr)
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("spark.master", "local[1]", "pass it as the master, by --master"),
        ("spark.remote", "sc://host", "wirekit runs on Spark's classic API"),
        ("spark.api.mode", "connect", "wirekit runs on Spark's classic API"),
        ("spark.submit.deployMode", "cluster", "the driver runs in this process"),
    ],
)
def test_settings_that_contradict_a_session_are_refused(name: str, value: str, reason: str) -> None:
    with pytest.raises(Misuse, match=f"^the setting {name} cannot be {re.escape(value)}: {reason}"):
        session(extra_conf={name: value})


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("spark.executor.memroy", "spark.executor.memory"),
        ("spark.sql.shuffle.partition", "spark.sql.shuffle.partitions"),
        ("spark.dynamicallocation.enabled", "spark.dynamicAllocation.enabled"),
    ],
)
def test_a_misspelt_setting_is_refused(spark: SparkSession, name: str, meant: str) -> None:
    """Spark accepts it, and it has no effect."""
    with pytest.raises(Misuse, match=f"^Spark has no setting {re.escape(name)}; did you mean {re.escape(meant)}\\?$"):
        session(extra_conf={"spark.executor.cores": "1", name: "1"})
    assert spark.range(3).count() == 3


@pytest.mark.spark
def test_settings_that_spark_does_not_define_are_passed_on(spark: SparkSession) -> None:
    names = (
        *("spark.hadoop.fs.s3a.endpoint", "spark.sql.catalog.lake", "spark.kubernetes.container.image"),
        *("spark.plugin.of.mine", "spark.io.compression.lz4.block.size", "spark.executorEnv.HOME"),
    )
    assert session(extra_conf=dict.fromkeys(names, "1")) is spark


@pytest.mark.spark
def test_a_run_with_a_misspelt_setting_ends_before_it_reads(fixtures: Path, tmp_path: Path) -> None:
    capture = str(fixtures / "pcap" / "pulsar-batch.pcap")
    command = [sys.executable, "-m", "wirekit", "pipeline", capture, "-o", str(tmp_path / "lake"), "--engine", "spark"]
    command += ["--conf", "spark.executor.core=1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = "wirekit: Spark has no setting spark.executor.core; did you mean spark.executor.cores?\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", expected)
    assert not (tmp_path / "lake").exists()
