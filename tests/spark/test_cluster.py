"""A cluster whose workers have Python and Spark alone gets wirekit by an archive."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.helpers import rows
from wirekit.cli import group
from wirekit.errors import Misuse
from wirekit.spark import archive
from wirekit.spark.java import find_java, shimmed

CAPTURE = Path(__file__).parents[2] / "fixtures" / "pcap" / "kafka-0.10.2.2-2-produce.pcapng"


def _archive(path: Path, text: str, name: str = archive.DESCRIPTION) -> Path:
    (path.parent / "text").write_text(text)
    with tarfile.open(path, "w:gz") as file:
        file.add(path.parent / "text", name)
    return path


def test_settings_of_an_archive(tmp_path: Path) -> None:
    here = '{{"python": "{python}", "platform": "{platform}"}}'.format(**archive._platform())
    settings = archive.settings(_archive(tmp_path / "a.tar.gz", here))
    assert settings["spark.archives"] == f"{tmp_path}/a.tar.gz#wirekit-archive"
    assert settings["spark.executorEnv.PYTHONPATH"] == "wirekit-archive/site"
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "run-on-a-cluster.md").read_text(encoding="utf-8")
    example = page.partition("\nspark-submit ")[2].partition("```")[0]
    submitted = dict(re.findall(r"^ +--conf (\S+?)=(\S+) \\$", example, re.M))
    assert submitted == settings | {"spark.archives": "worker.tar.gz#wirekit-archive"}


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ('{"python": "cpython-27", "platform": "vms"}', archive.DESCRIPTION, "was written for python cpython-27"),
        ("{", archive.DESCRIPTION, "is not an archive of `wirekit archive`"),
        ("{}", "other", "is not an archive of `wirekit archive`"),
    ],
)
def test_an_archive_that_workers_cannot_use_is_refused(text: str, name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=reason):
        archive.settings(_archive(tmp_path / "a.tar.gz", text, name))


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(b"PK\3\4")
    with pytest.raises(Misuse, match="is not an archive of `wirekit archive`"):
        archive.settings(tmp_path / "a.tar.gz")
    with pytest.raises(Misuse, match=r"must end in \.tar\.gz"):
        archive.write(tmp_path / "worker.zip")


def test_an_archive_has_each_module_once_and_nothing_of_spark() -> None:
    distributions = archive._distributions()
    assert {"wirekit", "numpy", "numba", "pyarrow", "pandas", "construct", "protobuf"} <= set(distributions)
    assert not {"pyspark", "py4j", "pytest"} & set(distributions)
    names = [name for name, _ in archive._files(distributions)]
    assert len(names) == len(set(names))
    needed = ("wirekit/registry/__init__.py", "wirekit/schemas/kafka/__init__.py", "wirekit/spark/log4j2.properties")
    assert {*needed, "pyspark_wirekit/__init__.py", "numpy/__init__.py"} <= set(names)
    assert not [name for name in names if name.startswith(("..", "/"))]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--archive", str(CAPTURE)], "--archive needs --master of a cluster"),
        (["--archive", str(CAPTURE), "--master", "local[2]"], "--archive needs --master of a cluster"),
        (["--conf", "spark.executor.cores=1"], "--conf needs --engine spark"),
        (["--engine", "spark", "--conf", "executor.cores=1"], "is not a setting of Spark"),
    ],
)
def test_options_are_refused_where_nothing_would_heed_them(arguments: list[str], reason: str, tmp_path: Path) -> None:
    from click.testing import CliRunner

    result = CliRunner().invoke(group, ["pipeline", str(CAPTURE), "-o", str(tmp_path / "out"), *arguments])
    assert result.exit_code == 2
    assert reason in result.output


@contextlib.contextmanager
def _cluster(folder: Path, python: Path) -> Iterator[str]:
    """A master and two workers with a core each, which have one Python on their path; the address of the master."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    java = str(shimmed(find_java()).path)
    environment = {"PATH": f"{python.parent}:{os.defpath}", "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"JAVA_HOME": java, "HOME": str(folder)}
    deploy = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy"]
    address = f"spark://127.0.0.1:{port}"
    host = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = [[deploy[0], f"{deploy[1]}.master.Master", *host, "--port", str(port)]]
    commands += [
        [deploy[0], f"{deploy[1]}.worker.Worker", *host, "-c", "1", "-m", "1g", "-d", str(folder / f"work{n}"), address]
        for n in range(2)
    ]
    running = []
    with contextlib.ExitStack() as stack:
        for number, command in enumerate(commands):
            log = stack.enter_context(open(folder / f"log{number}", "wb"))
            running.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder, start_new_session=True)
            )
        try:
            deadline = time.monotonic() + 120
            while (folder / "log0").read_text().count("Registering worker") < 2:
                assert time.monotonic() < deadline, (folder / "log0").read_text()
                time.sleep(0.2)
            yield address
        finally:
            for each in running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(each.pid, signal.SIGTERM)
            for each in running:
                each.wait(60)


@pytest.mark.spark
@pytest.mark.skipif("WIREKIT_LONG" not in os.environ, reason="takes minutes: make test-long")
@pytest.mark.timeout(1200)
def test_workers_of_a_cluster_with_nothing_but_python(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    python = bare / "bin" / "python{}.{}".format(*sys.version_info)
    assert subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 1
    file = tmp_path / "worker.tar.gz"
    archive.write(file)
    command = [sys.executable, "-m", "wirekit", "pipeline", str(CAPTURE), "--output"]
    subprocess.run([*command, str(tmp_path / "serial")], check=True, capture_output=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}

    def run(output: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, str(tmp_path / output), *arguments], env=environment, capture_output=True, text=True, check=False
        )

    with _cluster(tmp_path, python) as master:
        # The driver's Python has wirekit by the installation; the workers would start the same path, so name another.
        environment["PYSPARK_PYTHON"] = python.name
        environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        refused = run("without", "--master", master)
        assert refused.returncode == 1
        assert "an archive of `wirekit archive`" in refused.stderr.splitlines()[-1]
        del environment["PYSPARK_PYTHON"]
        conf = ["--conf", "spark.executor.memory=800m"]
        run("cluster", "--master", master, "--archive", str(file), *conf).check_returncode()
        kernels = [
            {each.name for each in folder.rglob("*.nbc")}
            for folder in tmp_path.glob("work*/*/*/wirekit-archive/kernels")
        ]
        with tarfile.open(file) as members:
            compiled = {Path(name).name for name in members.getnames() if name.endswith(".nbc")}
        assert kernels == [compiled] * len(kernels)
        assert kernels
    for table in ("calls", "messages", "frames", "connections", "quarantine"):
        assert rows(tmp_path / "cluster", table) == rows(tmp_path / "serial", table)
