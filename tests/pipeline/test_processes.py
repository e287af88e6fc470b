"""Runs in several processes: what kills a process or the run leaves the lake and no process behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Run
from tests.conftest import FIXTURES
from tests.pipeline.helpers import tables
from wirekit.errors import WirekitError, Wrong
from wirekit.pipeline import parallel, processes, serial
from wirekit.pipeline.inputs import Job, find_inputs

CAPTURES = [FIXTURES / "pcap" / "pulsar-batch.pcap", FIXTURES / "pcap" / "jmq4-consume.pcap"]
SECONDS = 60

RUN = """
import sys
from pathlib import Path
from tests.pipeline import test_processes
from wirekit.pipeline import parallel, processes
from wirekit.pipeline.inputs import Job, find_inputs

if __name__ == "__main__":
    output = Path(sys.argv[1])
    parallel.read_whole = test_processes.waiting
    processes.run(Job(find_inputs(sys.argv[2:])), output, 2)
"""


def waiting(tasks: object, job: Job, attempts: str, number: int) -> str:
    """A task that notes its process, and lasts."""
    Path(attempts, f"process-{os.getpid()}").touch()
    time.sleep(10 * SECONDS)
    return ""


def killed(tasks: object, job: Job, attempts: str, number: int) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def wrong(tasks: object, job: Job, attempts: str, number: int) -> str:
    raise Wrong(1, 2, protocol="kafka", path="size", offset=7)


def until(condition: Callable[[], bool]) -> bool:
    """Waits for a condition; whether it became true."""
    end = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def is_alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(("task", "error"), [(killed, "was killed, perhaps"), (wrong, "at byte 7")])
def test_a_task_that_fails_leaves_the_lake(
    task: Callable[..., str], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(find_inputs(CAPTURES))
    serial.run(Job(find_inputs(CAPTURES[:1])), tmp_path)
    before = tables(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(parallel, "read_whole", task)
        with pytest.raises(WirekitError, match=error):
            processes.run(job, tmp_path, 2)
    assert tables(tmp_path) == before
    assert not (tmp_path / ".wirekit").exists()
    processes.run(job, tmp_path, 2)
    serial.run(job, tmp_path / "serial")
    assert {name: len(rows) for name, rows in tables(tmp_path).items() if name != "runs"} == {
        name: len(rows) for name, rows in tables(tmp_path / "serial").items() if name != "runs"
    }


def test_processes_exchange_packets(tmp_path: Path) -> None:
    job = Job(find_inputs(CAPTURES), road="columns")
    result = processes.run(job, tmp_path / "processes", 2, shuffled=True)
    assert result.manifest["engine"] == "processes"
    assert result.summary == serial.run(job, tmp_path / "serial").summary
    assert tables(tmp_path / "processes") == tables(tmp_path / "serial")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_process_outlives_a_run_that_is_killed(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(RUN)
    output = tmp_path / "lake"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    arguments = [sys.executable, str(script), str(output), *map(str, CAPTURES)]
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True) as run:
        noted = lambda: [int(each.name[8:]) for each in output.glob(".wirekit/attempts/process-*")]  # noqa: E731
        try:
            assert until(lambda: len(noted()) == 2)
            workers = noted()
            assert all(map(is_alive, workers))
            run.send_signal(number)
            assert run.wait(SECONDS) != 0
            assert until(lambda: not any(map(is_alive, workers)))
            assert output.exists() == (number == signal.SIGKILL)
        finally:
            run.kill()


def test_jobs_of_the_command(tmp_path: Path) -> None:
    arguments = ["pipeline", *map(str, CAPTURES), "--output", str(tmp_path / "lake"), "--jobs", "2"]
    serial.run(Job(find_inputs(CAPTURES)), tmp_path / "serial")
    command = Run(*arguments, fresh=True)
    assert (command.status, command.err) == (0, "")
    assert tables(tmp_path / "lake") == tables(tmp_path / "serial")
    refused = Run(*arguments, "--engine", "spark")
    assert refused.status == 2
    assert "--jobs is for runs without Spark" in refused.err


def test_a_machine_without_room_for_semaphores_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(processes, "ProcessPoolExecutor", full)
    with pytest.raises(WirekitError, match=r"processes cannot be started: No space left on device; .* in /dev/shm"):
        processes.run(Job(find_inputs(CAPTURES)), tmp_path / "lake", 2)
