"""The command line as scripts see it: what is printed where, and the exit status."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Run


@pytest.mark.parametrize(
    "arguments",
    [
        ("decode", "--output", "yaml"),
        ("decode", "pulsar", "--hex", "00", "--spans", "--output", "tree"),
        ("frames",),
        ("decode", "pulsar", "x", "--hex", "00"),
        ("nonsense",),
    ],
    ids=" ".join,
)
def test_usage_errors_have_status_2(arguments: tuple[str, ...]) -> None:
    assert Run(*arguments).status == 2


@pytest.mark.parametrize(
    "arguments",
    [("decode", "kafka"), ("encode", "kafka"), ("frames",), ("messages",), ("inspect",), ("inspect", "--rules")],
    ids=" ".join,
)
def test_empty_input_is_reported_once(arguments: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    run = Run(*arguments, str(path))
    assert run.status == 1
    assert len((run.err + run.out.decode()).splitlines()) == 1


@pytest.mark.parametrize("command", ["frames", "messages", "inspect"])
def test_file_that_does_not_exist(command: str) -> None:
    run = Run(command, "no/such/file.pcap")
    assert run.status == 1
    assert run.err == "wirekit: no/such/file.pcap: No such file or directory\n"


@pytest.mark.parametrize("command", ["frames", "messages", "inspect"])
def test_a_missing_file_among_several_is_reported_before_any_is_read(command: str, fixtures: Path) -> None:
    run = Run(command, str(fixtures / "pcap" / "pulsar-batch.pcap"), "no/such/file.pcap")
    assert (run.status, run.out, run.err) == (1, b"", "wirekit: no/such/file.pcap: No such file or directory\n")


def test_schemas_describes_a_long_structure_once() -> None:
    """Packets may hold packets: with each described in each place, a pcapng file has 34,361 lines."""
    fields = Run("schemas", "net.pcapng", "--output", "json").lines[0]["fields"]
    assert len(fields) < 1000
    assert sum(field["name"] == "type_of_service" for field in fields) == 1
    again = {field["type"] for field in fields if field["name"] == "…"}
    assert "IPv4 as above" in again
    assert {kind.removesuffix(" as above") for kind in again} <= {field["type"] for field in fields}
    short = Run("schemas", "joyqueue.fetch_cluster.response", "--output", "json").lines[0]["fields"]
    assert sum(field["name"] == "concurrent_prefetch_size" for field in short) == 1
    assert sum(field["name"] == "host" for field in short) > 1


def test_schemas() -> None:
    assert "kafka.fetch.response.v2" in Run("schemas").out.decode()
    layout = Run("schemas", "joyqueue.frame").out.decode()
    assert "uint32 = 0xcafebebe" in layout
    assert "bits 1-2" in layout
    assert "  HEARTBEAT (7)" in layout
    message = Run("schemas", "kafka.message").out.decode()
    assert "int8, symbols: magic, no other value; required" in message
    assert "crc32 of all fields after it\n" in message
    assert "int8; default 0\n" in Run("schemas", "joyqueue.batch").out.decode()


def test_closed_pipe_is_no_error(fixtures: Path) -> None:
    capture = fixtures / "pcap" / "kafka-0.9.0.1-2-produce.pcapng"
    command = f"{sys.executable} -m wirekit frames {capture} 2>/dev/null | head -1 | wc -l; echo ${{PIPESTATUS[0]}}"
    completed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert completed.stdout.split()[0] == "1"
    assert "Traceback" not in completed.stderr


def test_output_encoding_that_lacks_a_character(fixtures: Path) -> None:
    command = f"PYTHONIOENCODING=ascii {sys.executable} -m wirekit schemas kafka.message_set"
    completed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert "kafka.message_set" in completed.stdout


@pytest.mark.parametrize("command", ["frames", "messages", "inspect", "decode kafka", "encode kafka"])
def test_an_empty_name_is_shown(command: str) -> None:
    assert Run(*command.split(), "").err == "wirekit: '': No such file or directory\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk"])
def test_signs_that_an_encoding_lacks_keep_their_meaning(encoding: str, fixtures: Path) -> None:
    lines = {}
    for each in ("utf-8", encoding):
        command = [sys.executable, "-m", "wirekit", "frames", "--output", "table", fixtures / "pcap/jmq4-consume.pcap"]
        completed = subprocess.run(
            command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": each}, check=True
        )
        lines[each] = completed.stdout.decode(each).splitlines()
    assert [*map(len, lines[encoding])] == [*map(len, lines["utf-8"])]
    for line, whole in zip(lines[encoding], lines["utf-8"], strict=True):
        for sign, counterpart in {"→": ">", "←": "<", "✓": "+"}.items():
            for at, each in enumerate(whole):
                assert each != sign or line[at] in (sign, counterpart)


@pytest.mark.parametrize("command", ["schemas", "frames fixtures/pcap/pulsar-batch.pcap", "explain kafka.request"])
def test_closed_pipe_has_status_0(command: str, fixtures: Path) -> None:
    script = (
        f"cd {fixtures.parent}; {sys.executable} -m wirekit {command} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    )
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (completed.stdout, completed.stderr) == ("0\n", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("command", ["--version", "schemas kafka", "decode kafka.request --hex 000000"])
def test_output_on_a_full_disk(command: str) -> None:
    with open("/dev/full", "w") as full:
        arguments = [sys.executable, "-m", "wirekit", *command.split()]
        completed = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert completed.returncode == 1
    assert completed.stderr.endswith("wirekit: No space left on device\n")


def test_a_closed_pipe_keeps_the_status_of_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [sys.executable, "-m", "wirekit", "decode", "kafka.request", "--hex", "000000"]
    completed = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert completed.returncode == 1
    assert completed.stderr == "wirekit: kafka.request: size: needs 4 bytes, 3 available, at byte 0 (0x0)\n"


def test_closed_standard_output(fixtures: Path) -> None:
    script = f"{sys.executable} -m wirekit frames {fixtures}/pcap/pulsar-batch.pcap >&-"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in completed.stderr


def test_standard_input_is_read_once(fixtures: Path) -> None:
    for command in ("frames", "messages", "inspect"):
        run = Run(command, "-", "-")
        assert (run.status, run.out) == (2, b"")
        assert "standard input can be read only once" in run.err


def test_a_command_that_is_misspelt() -> None:
    assert "No such command 'frame'. Did you mean 'frames'?" in Run("frame").err


def test_a_report_for_a_directory_that_does_not_exist(fixtures: Path, tmp_path: Path) -> None:
    page = tmp_path / "none" / "page.html"
    run = Run("inspect", str(fixtures / "pcap" / "jmq4-produce.pcap"), "--report", str(page))
    assert (run.status, run.out) == (2, b"")
    assert f"--report {page}: the directory does not exist" in run.err


@pytest.mark.parametrize("command", ["schemas", "decode"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_a_full_disk_cuts_is_an_error(
    command: str, unbuffered: str, tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit on the size of files stands for the disk: the kernel writes a part, and refuses the next byte."""
    room = 4096
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # Python keeps a cut .pyc, and fails on it from then on
    arguments = {
        "schemas": ("schemas", "kafka", "--output", "lua"),
        "decode": ("decode", "kafka.log_segment", str(fixtures / "kafka" / "disk" / "0.10.2.2-t-snappy-0.log")),
    }[command]
    with (tmp_path / "output").open("wb") as output:
        completed = subprocess.run(
            [sys.executable, "-m", "wirekit", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        )
    assert (tmp_path / "output").stat().st_size == room
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-1] == b"wirekit: File too large"
