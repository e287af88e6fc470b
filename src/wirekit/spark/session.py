"""Starts the Spark session that wirekit works in: settings, Java, environment, and silence on standard error.

No pipeline and no data source is here. pyspark is imported when a session is requested, not before.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from wirekit.errors import Misuse, WirekitError, lacking
from wirekit.spark.archive import DIRECTORY
from wirekit.spark.java import SCRUBBED, find_java, shimmed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_DIR = "WIREKIT_SPARK_LOCAL_DIR"
"""Environment variable: the directory, on a big disk, for Spark's shuffle files and spilled data."""

_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)(\s*,\s*[1-9]\d*)?\])?|local-cluster\[.+\]|spark://.+|k8s://.+|yarn")
_LACKING = re.compile(r"No module named '(wirekit|pyspark_wirekit|pyarrow|pandas|numpy|construct)\b")
_LOOPBACK = "127.0.0.1"
_REFUSED = {
    "spark.master": ("", "pass it as the master, by --master or as an argument"),
    "spark.remote": ("", "wirekit runs on Spark's classic API"),
    "spark.api.mode": ("classic", "wirekit runs on Spark's classic API"),
    "spark.submit.deployMode": ("client", "the driver runs in this process"),
}
"""Settings that would contradict the session: the only value that they may have, and why."""
_ATTEMPTS = 4
_TRACEBACK = "Traceback (most recent call last):"
_STOPPED = "Cannot call methods on a stopped SparkContext"
"""The error of a context that Spark stopped while it started, because no standalone master answered for a minute."""
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

# Variables of a developer's shell that would select another Spark than the one that this package was tested with.
_SCRUBBED_ALWAYS = (*SCRUBBED, "PYSPARK_SUBMIT_ARGS")
_SCRUBBED_LOCALLY = ("SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE", "SPARK_API_MODE")

# Settings that results depend on.
_MEANING = {
    # Output of mapInArrow is matched by position: without this, swapped columns of one type pass silently.
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOUD = "-Dwirekit.tasks=error -Dwirekit.scheduler=NEUTRAL"
"""Java options with which Spark logs the errors of its tasks on standard error, for each attempt."""
BRIEF = "-XX:TieredStopAtLevel=1"
"""Java option for a driver through which no rows pass: otherwise it would spend most of its time compiling itself."""

# Loggers of Python's logging, not of log4j: each failed query is one JSON line of many kilobytes on standard error,
# and the same text is in the exception.
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class SparkFailed(WirekitError):
    """A job on Spark failed; the text gives the reason in one line, and the cause is Spark's own error."""


def cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def session(
    master: str | None = None, app_name: str = "wirekit", extra_conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session with wirekit's settings.

    If a session is active, it is returned with its master and name. The settings that results depend on are applied to
    it, and the settings of ``extra_conf`` that can still be changed.

    Args:
        master: a Spark master; by default that of the active session, or of ``spark-submit``, or else ``local[n,4]``:
            one thread per core; a task that fails is tried four times. A master that is not local keeps the network,
            Spark and Python settings of the environment.
        app_name: the name that Spark shows.
        extra_conf: further Spark settings; they take precedence. ``spark.driver.extraJavaOptions`` is appended instead.

    Raises:
        JavaMissing: no Java of version 17 or later.
        Misuse: pyspark is not installed; the active session is one of Spark Connect; ``master`` is not a Spark master,
            or differs from that of the active session or of ``spark-submit``; Spark does not start on it;
            ``extra_conf`` names a master, another API, or a setting that is spelt almost like one of Spark.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise lacking("a Spark session", error) from error
    if master is not None:
        _check(master)
    for name, (only, why) in _REFUSED.items():
        if (extra_conf or {}).get(name, only) != only:
            raise Misuse(f"the setting {name} cannot be {(extra_conf or {})[name]}: {why}")
    spark = SparkSession.getActiveSession()
    if spark is not None:
        require_classic(spark)
    running = spark.sparkContext.master if spark is not None else _submitted()
    if running and master and running != master:
        raise Misuse(f"Spark runs on {running} already, and cannot change to {master}: omit the master")
    master = master or running or f"local[{cores()},{_ATTEMPTS}]"
    conf = settings(master, extra_conf)
    begins = spark is None
    if spark is None:
        with _environment(master, conf):
            builder = SparkSession.builder.master(master).appName(app_name)
            for name, value in conf.items():
                builder = builder.config(name, value)
            try:
                spark = builder.getOrCreate()
            except (Py4JError, PySparkException) as error:
                raise Misuse(f"Spark does not start on {master}: {_message_at_start(error)}") from error
    misspelt = _misspelt(spark, extra_conf or ())
    if misspelt:
        if begins:
            spark.stop()
        raise Misuse("Spark has no setting {}; did you mean {}?".format(*misspelt))
    if not begins:
        for name in (*_MEANING, *(extra_conf or ())):
            if spark.conf.isModifiable(name):
                spark.conf.set(name, conf[name])
    for name in _QUERY_LOGGERS:
        # pyspark's own function: a plain logger of this name would not accept the arguments that pyspark passes.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    return spark


def require_classic(spark: object) -> None:
    """Refuses a session of Spark Connect, which has no driver in this process.

    Raises:
        Misuse: the session is one of Spark Connect.
    """
    from pyspark.sql import SparkSession

    if not isinstance(spark, SparkSession):
        raise Misuse(
            "the pipeline needs Spark's classic API, but this session uses Spark Connect: use one of"
            ' wirekit.spark.session.session(), or read captures by spark.read.format("wirekit")'
        )


def _misspelt(spark: SparkSession, names: Iterable[str]) -> tuple[str, str] | None:
    """The first misspelt name, and the name that Spark defines.

    Spark accepts every name, as plugins, file systems and catalogs read settings that it does not define.
    """
    defined = spark._jvm.org.apache.spark.internal.config.ConfigEntry  # type: ignore[union-attr]
    unknown = [name for name in names if defined.findEntry(name) is None]
    defined_names = [each.key() for each in defined.listAllEntries().toArray()] if unknown else []
    return next(((name, each) for name in unknown for each in defined_names if _differ_by_slip(name, each)), None)


def _differ_by_slip(one: str, other: str) -> bool:
    """Whether two names differ only in case, in one character, or in the order of two neighbours.

    >>> _differ_by_slip("spark.executor.memroy", "spark.executor.memory"), _differ_by_slip("spark.cores", "spark.core")
    (True, True)
    >>> _differ_by_slip("spark.executor.uri", "spark.executor.id")
    False
    """
    if one.lower() == other.lower():
        return True
    shorter = min(len(one), len(other))
    at = next((number for number in range(shorter) if one[number] != other[number]), shorter)
    exchanged = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    return exchanged or one[at + 1 :] in (other[at:], other[at + 1 :]) or one[at:] == other[at + 1 :]


def _submitted() -> str:
    """The master that ``spark-submit`` was given, whose JVM runs already; "" without one."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return ""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return SparkConf().get("spark.master") or ""


def _check(master: str) -> None:
    """Refuses an invalid master; Java would report it in forty lines, after its start."""
    if master.startswith("sc://"):
        raise Misuse(f"{master} is a Spark Connect address: pass a master such as local[2,4] or spark://host:7077")
    if not _MASTER.fullmatch(master):
        raise Misuse(f"{master!r} is not a Spark master: pass one such as local[2,4], spark://host:7077 or yarn")
    if master == "yarn" and not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
        raise Misuse("the master yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR, which locate its cluster")


def _message(error: Exception) -> str:
    """The text of a Spark error on one line; for an error in a worker the last lines of its traceback."""
    thrown = getattr(error, "java_exception", None)
    text = str(error if thrown is None else thrown.toString()).strip()
    _, separator, trace = text.rpartition(_TRACEBACK)
    if not separator:
        return text.partition("\n")[0]
    lines = takewhile(lambda line: line.strip() and not line.startswith("\tat "), trace.splitlines()[1:])
    return "; ".join(line.strip() for line in lines if not line.startswith(" "))


def _message_at_start(error: Exception) -> str:
    """The text of an error of a session that does not start, and its first cause, which Spark's text may not name."""
    text = _message(error)
    if _STOPPED in text:
        return "no master answers there"
    cause = first = getattr(error, "java_exception", None)
    while cause is not None:
        first, cause = cause, cause.getCause()
    origin = "" if first is None else str(first.toString()).partition("\n")[0]
    return text if origin in text else f"{text.rstrip('.')}; {origin}"


@contextmanager
def in_one_line() -> Iterator[None]:
    """Raises an error of Spark as a ``SparkFailed`` with a text of one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        text = _message(error)
        if _LACKING.search(text):
            text += "; the workers need wirekit and its extra spark, or an archive of `wirekit archive`"
        raise SparkFailed(f"Spark failed: {text}") from error


def settings(master: str, extra_conf: Mapping[str, str] | None = None) -> dict[str, str]:
    """The Spark settings of a session on ``master``, by name."""
    conf = {
        **_MEANING,
        # Prints the current line of a worker when native code kills it.
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.api.mode": "classic",
    }
    if _is_local(master):
        scratch = os.environ.get(LOCAL_DIR) or None
        if scratch:
            conf["spark.local.dir"] = scratch
        conf |= {
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.driver.host": _LOOPBACK,
            # A local session's tasks share the driver's heap, and each sorts in it.
            "spark.driver.memory": f"{1024 + 512 * cores()}m",
            "spark.sql.shuffle.partitions": str(3 * cores()),
            "spark.sql.warehouse.dir": _warehouse(scratch),
        }
    conf |= dict(extra_conf or {})
    java_options = conf.get(JAVA_OPTIONS, "")
    conf[JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()} {java_options}".rstrip()
    return conf


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _warehouse(scratch: str | None) -> str:
    """A directory that Spark creates only when a table is saved by name, removed when this process ends."""
    path = Path(scratch or tempfile.gettempdir()).resolve() / f"wirekit-warehouse-{uuid.uuid4().hex}"
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return str(path)


@contextmanager
def _environment(master: str, conf: Mapping[str, str]) -> Iterator[None]:
    """Sets the environment with which the JVM and, through it, the Python workers start; restores it afterwards."""
    changes: dict[str, str | None] = dict.fromkeys(_SCRUBBED_ALWAYS)
    # A full Java works without the shim, but prints warnings about the arguments that the shim drops.
    changes["JAVA_HOME"] = str(shimmed(find_java()).path)
    if _is_local(master):
        changes |= dict.fromkeys(_SCRUBBED_LOCALLY)
        changes["PYSPARK_PYTHON"] = sys.executable
        changes["SPARK_LOCAL_IP"] = _LOOPBACK
        if "spark.local.dir" in conf:
            changes["SPARK_LOCAL_DIRS"] = None  # would win over the setting
    else:
        python = sys.executable
        if conf.get("spark.archives", "").endswith(f"#{DIRECTORY}"):
            # By name: a worker has its own Python, and finds wirekit in the archive; the driver's is first on PATH.
            python = "python{}.{}".format(*sys.version_info)
            changes["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        changes["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", python)
    before = {name: os.environ.get(name) for name in changes}
    _apply(changes)
    try:
        yield
    finally:
        _apply(before)


def _apply(changes: Mapping[str, str | None]) -> None:
    """Sets environment variables; None removes one."""
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
